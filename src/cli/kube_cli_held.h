/*
 * kube_cli_held - what is held: by a running gateway, asked over its
 * kube_status location, or by a state file.
 *
 * It reads; what that is compared with is kube_cli_verify's.  Blocks; for the
 * command line tool only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLI_HELD_H
#define KUBE_CLI_HELD_H


#include <cjson/cJSON.h>

#include "kube_record.h"
#include "kube_rv.h"
#include "kube_limits.h"


/* Of a gateway's answers, and of a state file, in bytes. */
#define KUBE_CLI_BODY_MAX  (256u << 20)

typedef struct {
    kube_resource_t  resource;
    char             ns[KUBE_NAMESPACE_LEN_MAX + 1];    /* "": all */
    kube_rv_t        rv;             /* len 0: never listed */
    uint64_t         count;
    char             digest[33];
    uint64_t         refused;        /* with a name */
    uint64_t         unnamed;        /* without one, at most */
} kube_cli_scope_t;

/* An object, or the name of one that is refused; views. */
typedef struct {
    kube_resource_t       resource;
    kube_str_t            ns;
    kube_str_t            name;
    kube_str_t            rv;
    kube_str_t            refused;   /* the reason; empty: it is held */
    bool                  outdated;  /* an older one than the server's */
    char                  digest[33];
    const kube_record_t  *record;    /* one of the two has the object */
    const cJSON          *json;
} kube_cli_row_t;

typedef struct {
    const char         *from;        /* URL or file name */
    const char         *informer;    /* NULL: "default", or the only one */
    uint64_t            ends_ms;     /* CLOCK_MONOTONIC: no answer after that */
    kube_str_t          file;        /* mapped; empty: it is a gateway */
    kube_cli_scope_t    scopes[KUBE_SCOPES_MAX];
    size_t              scopes_n;
    bool                stale;       /* the gateway says so of itself */
    uint64_t            age_s;       /* since it was known to be current */
    char                why[512];    /* what failed, for people */
} kube_cli_held_t;

/* False: a file that is none; why says so.  A gateway is not asked yet. */
bool kube_cli_held_open(kube_cli_held_t *held, const char *from,
    const char *informer)  KUBE_MUST_CHECK;
void kube_cli_held_close(kube_cli_held_t *held);

/* Reads the scopes as they are now. */
bool kube_cli_held_scopes(kube_cli_held_t *held)  KUBE_MUST_CHECK;

/*
 * Calls each for all objects and refused names, in no order; of a gateway that
 * goes on meanwhile, so that one may come old, new, or twice.  False: one call
 * said so (why is its own), or why says what failed.
 */
typedef bool (*kube_cli_row_pt)(void *ctx, const kube_cli_row_t *row);
bool kube_cli_held_rows(kube_cli_held_t *held, kube_cli_row_pt each,
    void *ctx)  KUBE_MUST_CHECK;


#endif /* KUBE_CLI_HELD_H */

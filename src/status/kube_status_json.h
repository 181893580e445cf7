/*
 * kube_status_json - /api/v1/status: the informers, their scopes, what is
 * degraded, and what each key of this nginx resolves to now.
 *
 * The scalar members come from kube_facts; here is only what is a list.
 * Called by workers.  The members are a contract with users.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_STATUS_JSON_H
#define KUBE_STATUS_JSON_H


#include "kube_report.h"
#include "kube_resolver.h"
#include "kube_text.h"


/* What a static key came to when it was resolved. */
typedef struct {
    uint32_t                entry;          /* 0: it is to be resolved */
    uint64_t                head;
    uint64_t                revision;
    uint64_t                next_ms;        /* not again before, while it has
                                               a Service */
    size_t                  n;              /* endpoints */
    kube_str_t              state;          /* theirs; static */
    kube_resolve_error_t    error;
    size_t                  len;
    char                    service[KUBE_KEY_TEXT_MAX];
} kube_status_kept_t;

/* A directive that resolves keys. */
typedef struct {
    kube_str_t              directive;      /* "kube_service" */
    kube_str_t              name;           /* the upstream, the variable */
    kube_str_t              informer;
    kube_str_t              file;
    uint64_t                line;
    kube_str_t              key;            /* as written */
    const kube_resolver_t  *resolver;
    const kube_key_t       *static_key;     /* NULL: it has variables; then */
    kube_str_t             *keys;           /* what it has been lately in
                                               this worker */
    size_t                  keys_n;
    kube_status_kept_t     *kept;           /* of a static key, from one look
                                               at the status to the next, zero
                                               at first; NULL: nothing is */
} kube_status_use_t;

typedef struct {
    kube_str_t              nginx;
    uint64_t                worker;         /* pid */
    int64_t                 now_unix_ms;
    uint64_t                now_ms;         /* monotonic */
    uint64_t              (*worked_us)(void);  /* of the processor */
    const kube_report_t    *reports;
    size_t                  reports_n;
    kube_status_use_t      *uses;
    size_t                  uses_n;
} kube_status_json_t;

/*
 * Resolves the keys in scratch, one at a time: a static one where its Service
 * has changed, and after 20 times what it cost the last time where that was
 * more than 1 ms.  KUBE_OK or KUBE_NOMEM; whether
 * all of it was printed is found in text->failed.
 */
kube_rc_t kube_status_json_print(kube_text_t *text,
    const kube_status_json_t *status, kube_arena_t *scratch)
    KUBE_MUST_CHECK;


#endif /* KUBE_STATUS_JSON_H */

/*
 * kube_state - the state file as bytes: an image of all objects for a cold
 * start while the API server is away.
 *
 * It does no input or output: the host reads and writes the file.  The
 * format is a header (magic, STATE_VERSION of kube_state.c, the zone's layout,
 * identity of server and scopes, time, size, checksum), the marks of the CA,
 * and the records of all scopes, Services and slices.  Checking and reading
 * accept any bytes.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_STATE_H
#define KUBE_STATE_H


#include "kube_record.h"
#include "kube_zone_scope.h"


typedef struct {
    uint64_t  identity;        /* hash of server and scopes: must match */
    uint64_t  ca[KUBE_CA_MARKS_MAX];    /* who vouched for the server: one of
                                           them must still do so */
    size_t    ca_n;
    int64_t   written_ms;      /* unix ms */
    uint64_t  objects;
    uint64_t  size;            /* of the whole file, bytes */
} kube_state_info_t;

/*
 * Scopes that a file has nothing of: who takes back the rights to one namespace
 * makes the file of all others no older by it.
 */
typedef struct {
    unsigned             n;

    struct {
        kube_resource_t  resource;
        size_t           ns_len;
        char             ns[KUBE_NAMESPACE_LEN_MAX];    /* len 0: all */
    } scopes[KUBE_SCOPES_MAX];
} kube_state_omitted_t;

/*
 * Finds those of one namespace that answer 403, and were last current more than
 * max_behind_ms before another one was, or never as they are; now_ms is of the
 * running system.  What the latter hold is of an older file, which nobody can
 * date, or of other selectors, or of another server, which the new file is not
 * of.  Where all scopes of a resource answer so, only those that never were
 * current are omitted: it is no single tenant's doing.  Returns for how many ms
 * one of the others has not been known to be current: a file is as old as that.
 * KUBE_NEVER: one never was.
 */
uint64_t kube_state_omit(const kube_zone_t *zone, uint64_t now_ms,
    uint64_t max_behind_ms, kube_state_omitted_t *omitted);

/* Whether it covers objects, or the scope, of that namespace (empty: all). */
bool kube_state_is_omitted(const kube_state_omitted_t *omitted,
    kube_resource_t resource, kube_str_t ns);

/* Upper bound of the file's size now. */
size_t kube_state_size(const kube_zone_writer_t *writer);

/*
 * Writes the whole file into buf, with the identity, marks and time of info,
 * and without what is omitted; *len is what was used.  KUBE_TOO_LARGE.
 */
kube_rc_t kube_state_encode(const kube_zone_writer_t *writer,
    const kube_state_info_t *info, const kube_state_omitted_t *omitted,
    void *buf, size_t size, size_t *len)  KUBE_MUST_CHECK;

/* Header and checksum of any bytes: KUBE_OK or KUBE_CORRUPT. */
kube_rc_t kube_state_check(const void *bytes, size_t len,
    kube_state_info_t *info)  KUBE_MUST_CHECK;

/*
 * Calls put for each record of a checked file, Services first; bytes is
 * 8-byte aligned (else KUBE_INVALID).  The records carry the flag
 * KUBE_RECORD_F_STATE_FILE and can be staged as they are.  Stops at the
 * first result that is not KUBE_OK and returns it.
 */
typedef kube_rc_t (*kube_state_put_pt)(void *ctx,
    const kube_record_t *record);
kube_rc_t kube_state_each(const void *bytes, size_t len,
    kube_state_put_pt put, void *ctx)  KUBE_MUST_CHECK;

/*
 * The same for each scope, as it was published when the file was made.  Objects
 * are published before their scope: the file may hold newer ones.
 */
typedef kube_rc_t (*kube_state_scope_pt)(void *ctx,
    const kube_scope_info_t *info);
kube_rc_t kube_state_scopes(const void *bytes, size_t len,
    kube_state_scope_pt put, void *ctx)  KUBE_MUST_CHECK;

/* True if one of the marks in a stands in b as well. */
bool kube_state_same_ca(const kube_state_info_t *a,
    const kube_state_info_t *b);


#endif /* KUBE_STATE_H */

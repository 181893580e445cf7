/*
 * kube_ready - whether every key of a configuration can be resolved now: what
 * kube_ready answers and the status shows.
 *
 * It is fed with the keys one by one, for only its caller knows where they are
 * kept, and stops at the first that is not ready.  It remembers nothing
 * between two answers and writes nothing but the caller's struct.  May be
 * called from any process.
 *
 *     kube_ready_init(&ready, zone, allow_state, alloc, reason);
 *     for each key: kube_ready_key(&ready, …);
 *     yes = kube_ready_done(&ready);
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_READY_H
#define KUBE_READY_H


#include "kube_coverage.h"
#include "kube_resolver.h"


/* "not_synced: endpointslices in shop", "no_service: shop/web:http" and NUL. */
#define KUBE_READY_REASON_MAX  512


typedef struct {
    const kube_zone_t  *zone;
    bool                state_serves;    /* allow_state, and it is in use */
    bool                ready;
    size_t              keys;
    char               *reason;
    kube_arena_t        names;           /* of scopes */
    kube_arena_t        arena;           /* a Service at a time */
    kube_coverage_t     coverage;
} kube_ready_t;

/*
 * allow_state: the data of a state file in use count as synced.  reason has
 * KUBE_READY_REASON_MAX bytes and is "" unless something is not ready.  zone
 * without an image is not ready.
 */
void kube_ready_init(kube_ready_t *ready, const kube_zone_t *zone,
    bool allow_state, const kube_alloc_t *alloc, char *reason);

/*
 * Judges one key; returns false where it is not ready: feed no more.
 *
 * A static key is ready once its namespace has synced and it resolves, or
 * would if there were endpoints that may be used: a Service scaled to zero is
 * no reason.  A namespace that answers 403 is one.
 */
bool kube_ready_key(kube_ready_t *ready, const kube_resolver_t *resolver,
    const kube_key_t *key);

/*
 * Judges a key made of variables: all namespaces in named have synced.  No
 * namespace is named: everything watched has, but for namespaces that answer
 * 403, which nobody asked for by name.
 */
bool kube_ready_namespaces(kube_ready_t *ready,
    const kube_namespaces_t *named);

/*
 * The answer; frees what init and the keys took.  Without any key everything
 * that is watched counts, as for a key that names no namespace.
 */
bool kube_ready_done(kube_ready_t *ready);


#endif /* KUBE_READY_H */

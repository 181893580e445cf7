/*
 * kube_ready - whether nginx may be sent requests: what kube_ready answers and
 * the status shows.
 *
 * nginx is ready once it has synced what the keys of its configuration need,
 * and from then on until the zone ends: what is missing later is degraded.
 * Were it not so, one tenant that deletes its Service would take every gateway
 * out of its load balancer.  Strict is: every key can be resolved now.
 *
 * It is fed with the keys one by one, for only its caller knows where they are
 * kept, and stops at the first that is not ready.  What it remembers between
 * two answers is the zone's (kube_zone_cause.h).  For workers.
 *
 *     kube_ready_init(&ready, zone, flags, alloc, reason);
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


/* The data of a state file in use count as synced. */
#define KUBE_READY_ALLOW_STATE  1u
#define KUBE_READY_STRICT       2u

typedef struct {
    kube_zone_t        *zone;
    bool                strict;
    bool                state_serves;    /* it may, and it is in use */
    bool                kept;            /* it was ready once */
    bool                ready;
    bool                missing;         /* a key's Service, or port, is */
    size_t              keys;
    size_t              synced;          /* keys whose namespaces have */
    const kube_coverage_scope_t  *refused;    /* one that answers 403 */
    char               *reason;
    kube_arena_t        names;           /* of scopes */
    kube_arena_t        arena;           /* a Service at a time */
    kube_coverage_t     coverage;
} kube_ready_t;

/*
 * flags: KUBE_READY_ALLOW_STATE, KUBE_READY_STRICT.  reason has
 * KUBE_READY_REASON_MAX bytes and is "" unless something is not ready.  zone
 * without an image is not ready.
 */
void kube_ready_init(kube_ready_t *ready, kube_zone_t *zone, unsigned flags,
    const kube_alloc_t *alloc, char *reason);

/*
 * Judges one key; returns false where it is not ready: feed no more.
 *
 * A static key is ready once its namespace has synced, or answers 403: who may
 * take back the rights to one namespace would keep every new gateway out of its
 * load balancer.  Where all keys' namespaces answer 403, nothing is ready.
 * Strict: it has synced and resolves, or would if there were endpoints that may
 * be used: a Service scaled to zero is no reason.
 */
bool kube_ready_key(kube_ready_t *ready, const kube_resolver_t *resolver,
    const kube_key_t *key);

/* Judges on, as if what was not ready had not been asked; clears reason. */
void kube_ready_again(kube_ready_t *ready);

/*
 * Judges a key made of variables: all namespaces in named, as for a static
 * key.  No namespace is named: everything watched.
 */
bool kube_ready_namespaces(kube_ready_t *ready,
    const kube_namespaces_t *named);

/*
 * The answer; frees what init and the keys took.  Without any key everything
 * that is watched counts, as for a key that names no namespace.
 */
bool kube_ready_done(kube_ready_t *ready);


#endif /* KUBE_READY_H */

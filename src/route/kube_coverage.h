/*
 * kube_coverage - whether what is watched covers a namespace, and is synced.
 *
 * An object that is not in the zone may be missing from the cluster, not
 * listed yet, or hidden by a 403; only the scopes of the zone tell which.  It
 * looks at no object.  No state; may be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_COVERAGE_H
#define KUBE_COVERAGE_H


#include "kube_select.h"
#include "kube_zone.h"


typedef struct {
    kube_resource_t  resource;
    kube_str_t       ns;           /* empty: all */
    bool             synced;       /* has completed a list in this zone */
    bool             forbidden;    /* the API server answers 403 now */
    bool             failed;       /* a request of it did, or had no answer */
    bool             seen;         /* it was current once, maybe before it
                                      was changed: it has an age */
    bool             unnamed;      /* it has objects that had no room, nor have
                                      their names */
} kube_coverage_scope_t;

/* The scopes, each as of a moment of its own; names borrow from the arena. */
typedef struct {
    kube_coverage_scope_t  scopes[KUBE_SCOPES_MAX];
    size_t                 n;
} kube_coverage_t;

/* KUBE_OK or KUBE_NOMEM. */
kube_rc_t kube_coverage_read(const kube_zone_t *zone, kube_arena_t *arena,
    kube_coverage_t *coverage)  KUBE_MUST_CHECK;

/*
 * KUBE_RESOLVE_OK: a scope of a resource of that shape which covers the
 * namespace has synced, so what is not in the zone, nor named there as
 * refused, does not exist, but where the scope is unnamed; else
 * KUBE_RESOLVE_NOT_SYNCED or KUBE_RESOLVE_FORBIDDEN, with *scope the one to
 * blame; NULL: nothing watches the namespace.
 */
kube_resolve_error_t kube_coverage_of(const kube_coverage_t *coverage,
    kube_shape_t shape, kube_str_t ns, const kube_coverage_scope_t **scope);

/*
 * Whether a first list is still to come that decides about one of the
 * namespaces; with all: about anything that is watched.  What answers 403 is
 * not awaited, nor is anything where the arena is too small; nor, if something
 * else serves meanwhile, what has failed once.
 */
bool kube_coverage_awaited(const kube_zone_t *zone,
    const kube_namespaces_t *namespaces, bool served, kube_arena_t *arena);

/*
 * Whether both Services and endpoints of one of the namespaces were current
 * once: what a scope held before it was changed serves until it is listed.
 * With each: of each of them, where they are not forbidden.  False where the
 * arena is too small.
 */
bool kube_coverage_seen(const kube_zone_t *zone,
    const kube_namespaces_t *namespaces, bool each, kube_arena_t *arena);


#endif /* KUBE_COVERAGE_H */

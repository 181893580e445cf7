/*
 * kube_coverage - the scopes of a zone, and which of them cover a namespace.
 *
 * It reads the records and counters of scopes only, and keeps nothing.  No
 * state; may be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_coverage.h"
#include "kube_zone_counters.h"
#include "kube_zone_scope.h"


kube_rc_t
kube_coverage_read(const kube_zone_t *zone, kube_arena_t *arena,
    kube_coverage_t *coverage)
{
    unsigned                i;
    kube_rc_t               rc;
    kube_scope_info_t       info;
    kube_coverage_scope_t  *scope;

    coverage->n = 0;

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        rc = kube_zone_scope_read(zone, i, arena, &info);

        if (rc == KUBE_NOMEM) {
            return KUBE_NOMEM;
        }

        /* there is none, or it cannot be read now: it covers nothing */

        if (rc != KUBE_OK) {
            continue;
        }

        scope = &coverage->scopes[coverage->n++];

        scope->resource = info.resource;
        scope->ns = info.ns;
        scope->synced = info.synced;
        scope->seen = info.synced
                      || kube_zone_scope_counter(zone, i,
                                                 KUBE_COUNTER_GAUGE_CONTACT_MS)
                         != 0;
        scope->unnamed = (info.refused_unnamed != 0);
        scope->failed = info.error_at_ms != 0
                        || kube_zone_scope_counter(zone, i,
                                                   KUBE_COUNTER_GAUGE_CAUSE)
                           != 0;
        scope->forbidden = kube_zone_scope_forbidden(zone, i);
    }

    return KUBE_OK;
}


static bool
coverage_covers(const kube_coverage_scope_t *s, kube_shape_t shape,
    kube_str_t ns)
{
    return kube_resource_info(s->resource)->shape == shape
           && (s->ns.len == 0 || kube_str_eq(s->ns, ns));
}


kube_resolve_error_t
kube_coverage_of(const kube_coverage_t *coverage, kube_shape_t shape,
    kube_str_t ns, const kube_coverage_scope_t **scope)
{
    size_t                        i;
    const kube_coverage_scope_t  *s;

    *scope = NULL;

    for (i = 0; i < coverage->n; i++) {
        s = &coverage->scopes[i];

        if (!coverage_covers(s, shape, ns)) {
            continue;
        }

        *scope = s;

        if (s->synced) {
            return KUBE_RESOLVE_OK;
        }
    }

    return (*scope != NULL && (*scope)->forbidden) ? KUBE_RESOLVE_FORBIDDEN
                                                   : KUBE_RESOLVE_NOT_SYNCED;
}


bool
kube_coverage_awaited(const kube_zone_t *zone,
    const kube_namespaces_t *namespaces, bool served, kube_arena_t *arena)
{
    size_t                        i;
    unsigned                      r;
    kube_shape_t                  shape;
    kube_coverage_t               coverage;
    const kube_coverage_scope_t  *scope;

    if (kube_coverage_read(zone, arena, &coverage) != KUBE_OK) {
        return false;
    }

    if (namespaces->all) {

        for (i = 0; i < coverage.n; i++) {
            scope = &coverage.scopes[i];

            if (!scope->synced
                && !scope->forbidden
                && !(served && scope->failed))
            {
                return true;
            }
        }

        return coverage.n == 0;
    }

    for (i = 0; i < namespaces->names_n; i++) {
        for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
            shape = kube_resource_info((kube_resource_t) r)->shape;

            if (kube_coverage_of(&coverage, shape, namespaces->names[i],
                                 &scope)
                == KUBE_RESOLVE_NOT_SYNCED
                && !(served && scope != NULL && scope->failed))
            {
                return true;
            }
        }
    }

    return false;
}


static bool
coverage_seen_in(const kube_coverage_t *coverage, kube_str_t ns,
    bool forbidden)
{
    size_t                        i;
    unsigned                      r;
    kube_shape_t                  shape;
    const kube_coverage_scope_t  *s;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        shape = kube_resource_info((kube_resource_t) r)->shape;

        for (i = 0; i < coverage->n; i++) {
            s = &coverage->scopes[i];

            if ((s->seen || (forbidden && s->forbidden))
                && coverage_covers(s, shape, ns))
            {
                break;
            }
        }

        if (i == coverage->n) {
            return false;
        }
    }

    return true;
}


bool
kube_coverage_seen(const kube_zone_t *zone,
    const kube_namespaces_t *namespaces, bool each, kube_arena_t *arena)
{
    bool             seen;
    size_t           i, n;
    kube_str_t       ns;
    kube_coverage_t  coverage;

    if (kube_coverage_read(zone, arena, &coverage) != KUBE_OK) {
        return false;
    }

    n = namespaces->all ? coverage.n : namespaces->names_n;

    for (i = 0; i < n; i++) {
        ns = namespaces->all ? coverage.scopes[i].ns : namespaces->names[i];
        seen = coverage_seen_in(&coverage, ns, each);

        if (seen != each) {
            return seen;
        }
    }

    return each && n != 0;
}

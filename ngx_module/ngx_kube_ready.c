/*
 * ngx_kube_ready - whether every upstream's Service can be resolved: what
 * kube_ready answers and the status shows.
 *
 * Looks at the zone, remembers nothing.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_ready.h"


#define NGX_KUBE_READY_ARENA  (64 * 1024 * 1024)


typedef struct {
    kube_resource_t       resource;
    kube_str_t            ns;
    unsigned              synced:1;
    unsigned              forbidden:1;
} ngx_kube_ready_scope_t;

typedef struct {
    ngx_kube_informer_t    *informer;
    kube_health_t           health;
    ngx_uint_t              allow_state;
    u_char                 *reason;
    kube_arena_t            arena;         /* a Service at a time */
    kube_arena_t            names;         /* of scopes */
    ngx_uint_t              n;
    ngx_kube_ready_scope_t  scopes[KUBE_SCOPES_MAX];
} ngx_kube_ready_t;


static ngx_int_t ngx_kube_ready_scopes(ngx_kube_ready_t *ready);
static ngx_int_t ngx_kube_ready_use(ngx_kube_ready_t *ready,
    ngx_kube_use_t *use);
static ngx_int_t ngx_kube_ready_static(ngx_kube_ready_t *ready,
    ngx_kube_use_t *use);
static ngx_int_t ngx_kube_ready_namespace(ngx_kube_ready_t *ready,
    kube_str_t ns);
static ngx_int_t ngx_kube_ready_lookup(ngx_kube_ready_t *ready,
    ngx_kube_use_t *use);
static ngx_int_t ngx_kube_ready_all(ngx_kube_ready_t *ready);
static ngx_int_t ngx_kube_ready_not(ngx_kube_ready_t *ready,
    const char *what, kube_str_t key);
static ngx_int_t ngx_kube_ready_not_scope(ngx_kube_ready_t *ready,
    ngx_uint_t forbidden, kube_resource_t resource, kube_str_t ns);


ngx_int_t
ngx_kube_ready(ngx_kube_informer_t *informer, ngx_uint_t allow_state,
    u_char reason[NGX_KUBE_REASON_MAX])
{
    ngx_int_t          rc;
    ngx_uint_t         i;
    ngx_kube_use_t   **uses;
    ngx_kube_ready_t   ready;

    ngx_memzero(&ready, sizeof(ngx_kube_ready_t));

    ready.informer = informer;
    ready.allow_state = allow_state;
    ready.reason = reason;
    reason[0] = '\0';

    if (informer->zone.image == NULL) {
        return ngx_kube_ready_not(&ready, "no_zone", KUBE_STR_NULL);
    }

    ngx_kube_informer_health(informer, &ready.health);

    kube_arena_init(&ready.arena, &ngx_kube_alloc, NGX_KUBE_READY_ARENA);
    kube_arena_init(&ready.names, &ngx_kube_alloc, NGX_KUBE_READY_ARENA);

    rc = ngx_kube_ready_scopes(&ready);

    uses = informer->uses.elts;

    for (i = 0; rc == NGX_OK && i < informer->uses.nelts; i++) {
        rc = ngx_kube_ready_use(&ready, uses[i]);
    }

    if (rc == NGX_OK && informer->uses.nelts == 0) {
        rc = ngx_kube_ready_all(&ready);
    }

    kube_arena_done(&ready.arena);
    kube_arena_done(&ready.names);

    return rc;
}


static ngx_int_t
ngx_kube_ready_scopes(ngx_kube_ready_t *ready)
{
    unsigned                 slot;
    kube_rc_t                rc;
    kube_zone_t             *zone;
    kube_scope_info_t        info;
    ngx_kube_ready_scope_t  *scope;

    zone = &ready->informer->zone;

    for (slot = 0; slot < KUBE_SCOPES_MAX; slot++) {

        rc = kube_zone_scope_read(zone, slot, &ready->names, &info);

        if (rc == KUBE_NOMEM) {
            return ngx_kube_ready_not(ready, "out of memory", KUBE_STR_NULL);
        }

        if (rc != KUBE_OK) {
            continue;
        }

        scope = &ready->scopes[ready->n++];

        scope->resource = info.resource;
        scope->ns = info.ns;
        scope->synced = info.synced;
        scope->forbidden = kube_zone_scope_counter(zone, slot,
                                                KUBE_COUNTER_GAUGE_FORBIDDEN)
                           != 0;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_ready_use(ngx_kube_ready_t *ready, ngx_kube_use_t *use)
{
    ngx_uint_t   i;
    kube_str_t  *ns;

    if (use->is_static) {
        return ngx_kube_ready_static(ready, use);
    }

    /* namespaces= names them; else whatever is watched may be meant */

    ns = use->namespaces.elts;

    for (i = 0; i < use->namespaces.nelts; i++) {
        if (ngx_kube_ready_namespace(ready, ns[i]) != NGX_OK) {
            return NGX_DECLINED;
        }
    }

    if (use->namespaces.nelts != 0) {
        return NGX_OK;
    }

    return ngx_kube_ready_all(ready);
}


static ngx_int_t
ngx_kube_ready_static(ngx_kube_ready_t *ready, ngx_kube_use_t *use)
{
    if (ngx_kube_ready_namespace(ready, use->key.ns) != NGX_OK) {
        return NGX_DECLINED;
    }

    return ngx_kube_ready_lookup(ready, use);
}


/* Both resources of a namespace are there. */

static ngx_int_t
ngx_kube_ready_namespace(ngx_kube_ready_t *ready, kube_str_t ns)
{
    ngx_uint_t               i, r, forbidden;
    ngx_kube_ready_scope_t  *scope;

    if (ready->allow_state && ready->health.state_in_use) {
        return NGX_OK;
    }

    for (r = 0; r < KUBE_RESOURCES; r++) {

        forbidden = 0;

        for (i = 0; i < ready->n; i++) {

            scope = &ready->scopes[i];

            if (scope->resource != r
                || (scope->ns.len != 0 && !kube_str_eq(scope->ns, ns)))
            {
                continue;
            }

            if (scope->synced) {
                break;
            }

            forbidden = scope->forbidden;
        }

        if (i == ready->n) {
            return ngx_kube_ready_not_scope(ready, forbidden,
                                            (kube_resource_t) r, ns);
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_ready_lookup(ngx_kube_ready_t *ready, ngx_kube_use_t *use)
{
    size_t                 len;
    uint32_t               entry;
    kube_rc_t              rc;
    kube_str_t             what, key;
    kube_zone_t           *zone;
    kube_snapshot_t        snapshot;
    kube_selection_t       selection;
    kube_resolve_error_t   error;
    char                   text[KUBE_KEY_TEXT_MAX];

    zone = &ready->informer->zone;
    error = KUBE_RESOLVE_NO_SERVICE;

    kube_arena_reset(&ready->arena);

    rc = kube_zone_find(zone, KUBE_RESOURCE_SERVICES, use->key.ns,
                        use->key.name, &entry);
    if (rc == KUBE_OK) {
        rc = kube_zone_read(zone, entry, use->key.ns, use->key.name,
                            &ready->arena, &snapshot);
    }

    if (rc == KUBE_OK) {
        rc = kube_select(&ready->arena, &snapshot, &use->key.port,
                         &use->options, &selection);
        error = selection.error;
    }

    /* it changes too fast to be read: it is there */

    if (rc == KUBE_CHANGED || rc == KUBE_CORRUPT) {
        return NGX_OK;
    }

    if (rc == KUBE_NOMEM) {
        return ngx_kube_ready_not(ready, "out of memory", KUBE_STR_NULL);
    }

    if (rc == KUBE_OK
        && (error == KUBE_RESOLVE_OK || error == KUBE_RESOLVE_NO_ENDPOINTS
            || error == KUBE_RESOLVE_ADDRESS_DENIED))
    {
        return NGX_OK;
    }

    len = kube_key_text(&use->key, text);

    what = kube_resolve_error_text(error);
    key.data = text;
    key.len = len;

    return ngx_kube_ready_not(ready, what.data, key);
}


/*
 * Everything that is watched, but what answers 403: nobody named it.  An
 * informer that may see nothing at all is not ready.
 */

static ngx_int_t
ngx_kube_ready_all(ngx_kube_ready_t *ready)
{
    ngx_uint_t               i, synced;
    ngx_kube_ready_scope_t  *scope, *first;

    if (ready->allow_state && ready->health.state_in_use) {
        return NGX_OK;
    }

    first = NULL;
    synced = 0;

    for (i = 0; i < ready->n; i++) {

        scope = &ready->scopes[i];

        if (scope->synced) {
            synced++;
            continue;
        }

        if (first == NULL) {
            first = scope;
        }

        if (!scope->forbidden || scope->ns.len == 0) {
            return ngx_kube_ready_not_scope(ready, scope->forbidden,
                                            scope->resource, scope->ns);
        }
    }

    if (synced == 0) {
        return first == NULL
               ? ngx_kube_ready_not(ready, "not_synced", KUBE_STR_NULL)
               : ngx_kube_ready_not_scope(ready, 1, first->resource,
                                          first->ns);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_ready_not_scope(ngx_kube_ready_t *ready, ngx_uint_t forbidden,
    kube_resource_t resource, kube_str_t ns)
{
    u_char  *last;

    last = ready->reason + NGX_KUBE_REASON_MAX - 1;

    *ngx_slprintf(ready->reason, last, "%s: %s in %s%*s",
                  forbidden ? "forbidden" : "not_synced",
                  kube_resource_text(resource),
                  ns.len ? "" : "all namespaces", ns.len, ns.data) = '\0';

    return NGX_DECLINED;
}


static ngx_int_t
ngx_kube_ready_not(ngx_kube_ready_t *ready, const char *what, kube_str_t key)
{
    u_char  *last;

    last = ready->reason + NGX_KUBE_REASON_MAX - 1;

    *ngx_slprintf(ready->reason, last, "%s%s%*s", what, key.len ? ": " : "",
                  key.len, key.data) = '\0';

    return NGX_DECLINED;
}

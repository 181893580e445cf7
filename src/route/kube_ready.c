/*
 * kube_ready - the scopes that keys need, and what keys resolve to.
 *
 * It decides over a zone and keys; where nginx keeps the keys is not its
 * business.  May be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_ready.h"
#include "kube_zone_cause.h"
#include "kube_zone_guard.h"


#define READY_ARENA_MAX  (64u << 20)


/* Takes the first reason only. */
static bool
ready_not(kube_ready_t *ready, kube_str_t what, kube_str_t key)
{
    if (ready->ready) {
        ready->ready = false;

        (void) snprintf(ready->reason, KUBE_READY_REASON_MAX, "%.*s%s%.*s",
                        (int) what.len, what.data, key.len != 0 ? ": " : "",
                        (int) key.len, key.len != 0 ? key.data : "");
    }

    return false;
}


static bool
ready_not_scope(kube_ready_t *ready, kube_resolve_error_t error,
    const char *resource, kube_str_t ns)
{
    int   n;
    char  text[KUBE_READY_REASON_MAX];

    n = snprintf(text, sizeof(text), "%s in %.*s", resource,
                 (int) (ns.len != 0 ? ns.len : 14),
                 ns.len != 0 ? ns.data : "all namespaces");

    return ready_not(ready, kube_resolve_error_text(error),
                     (kube_str_t) { text, (size_t) n });
}


void
kube_ready_init(kube_ready_t *ready, kube_zone_t *zone, unsigned flags,
    const kube_alloc_t *alloc, char *reason)
{
    bool                allow_state;
    unsigned            bits;
    kube_writer_info_t  writer;

    memset(ready, 0, sizeof(kube_ready_t));

    ready->zone = zone;
    ready->reason = reason;
    ready->ready = true;
    ready->strict = (flags & KUBE_READY_STRICT) != 0;
    reason[0] = '\0';

    kube_arena_init(&ready->names, alloc, READY_ARENA_MAX);
    kube_arena_init(&ready->arena, alloc, READY_ARENA_MAX);

    if (zone->image == NULL) {
        (void) ready_not(ready, KUBE_STR("no_zone"), KUBE_STR_NULL);
        return;
    }

    allow_state = (flags & KUBE_READY_ALLOW_STATE) != 0;
    bits = KUBE_READY_SYNCED | (allow_state ? KUBE_READY_STATE : 0);

    kube_zone_writer_info(zone, &writer);
    ready->state_serves = allow_state
                          && writer.state_in_use == KUBE_STATE_FILE_WHOLE;
    ready->kept = !ready->strict && (kube_zone_ready(zone) & bits) != 0;

    if (kube_coverage_read(zone, &ready->names, &ready->coverage) != KUBE_OK) {
        (void) ready_not(ready, KUBE_STR("out of memory"), KUBE_STR_NULL);
    }
}


/* Objects of every shape have been listed in the namespace, or may not be. */
static bool
ready_namespace(kube_ready_t *ready, kube_str_t ns)
{
    bool                          synced;
    unsigned                      r;
    kube_resolve_error_t          error;
    const kube_coverage_scope_t  *scope;

    if (ready->state_serves || ready->kept) {
        return true;
    }

    synced = true;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        error = kube_coverage_of(&ready->coverage,
                                 kube_resource_info(r)->shape, ns, &scope);

        if (error == KUBE_RESOLVE_FORBIDDEN && !ready->strict) {
            synced = false;
            ready->refused = (ready->refused != NULL) ? ready->refused : scope;

        } else if (error != KUBE_RESOLVE_OK) {
            return ready_not_scope(ready, error, kube_resource_text(r), ns);
        }
    }

    ready->synced += synced;

    return true;
}


/*
 * Everything that is watched has synced, but what answers 403.  An informer
 * that may see nothing at all is not ready.
 */
static bool
ready_all(kube_ready_t *ready)
{
    size_t                        i, synced;
    const kube_coverage_scope_t  *scope, *refused;

    if (ready->state_serves || ready->kept) {
        return true;
    }

    refused = NULL;
    synced = 0;

    for (i = 0; i < ready->coverage.n; i++) {
        scope = &ready->coverage.scopes[i];

        if (scope->synced) {
            synced++;

        } else if (!scope->forbidden) {
            return ready_not_scope(ready, KUBE_RESOLVE_NOT_SYNCED,
                                   kube_resource_text(scope->resource),
                                   scope->ns);

        } else if (refused == NULL || scope->ns.len == 0) {
            refused = scope;
        }
    }

    if (refused != NULL && (synced == 0 || refused->ns.len == 0)) {
        return ready_not_scope(ready, KUBE_RESOLVE_FORBIDDEN,
                               kube_resource_text(refused->resource),
                               refused->ns);
    }

    ready->synced += synced;

    return synced != 0
           || ready_not(ready, kube_resolve_error_text(KUBE_RESOLVE_NOT_SYNCED),
                        KUBE_STR_NULL);
}


bool
kube_ready_key(kube_ready_t *ready, const kube_resolver_t *resolver,
    const kube_key_t *key)
{
    size_t             len;
    kube_rc_t          rc;
    kube_key_t         identity;
    kube_resolution_t  resolution;
    char               text[KUBE_KEY_TEXT_MAX];

    ready->keys++;

    if (!ready->ready || !ready_namespace(ready, key->ns)) {
        return false;
    }

    if (!ready->strict) {
        return true;
    }

    kube_arena_reset(&ready->arena);

    /*
     * The Service's own record tells: endpoints are not looked at, for a probe
     * may come often, and there may be thousands.  Nor does unsynced=fail
     * matter: whether data of a state file count is allow_state's to say.
     */

    rc = kube_resolver_identify(resolver, key, &ready->arena, &resolution,
                                &identity);

    /* what changes too fast to be read is there */

    if (rc == KUBE_CHANGED) {
        return true;
    }

    if (rc != KUBE_OK) {
        return ready_not(ready, KUBE_STR("out of memory"), KUBE_STR_NULL);
    }

    if (resolution.error == KUBE_RESOLVE_OK) {
        return true;
    }

    ready->missing = (resolution.error != KUBE_RESOLVE_NOT_SYNCED
                      && resolution.error != KUBE_RESOLVE_FORBIDDEN);
    len = kube_key_text(key, text);

    return ready_not(ready, kube_resolve_error_text(resolution.error),
                     (kube_str_t) { text, len });
}


void
kube_ready_again(kube_ready_t *ready)
{
    ready->ready = true;
    ready->missing = false;
    ready->reason[0] = '\0';
}


bool
kube_ready_namespaces(kube_ready_t *ready, const kube_namespaces_t *named)
{
    size_t  i;

    ready->keys++;

    if (!ready->ready) {
        return false;
    }

    if (named->names_n == 0) {
        return ready_all(ready);
    }

    for (i = 0; i < named->names_n; i++) {
        if (!ready_namespace(ready, named->names[i])) {
            return false;
        }
    }

    return true;
}


bool
kube_ready_done(kube_ready_t *ready)
{
    if (ready->ready && ready->keys == 0) {
        (void) ready_all(ready);
    }

    if (ready->ready && ready->synced == 0 && ready->refused != NULL) {
        (void) ready_not_scope(ready, KUBE_RESOLVE_FORBIDDEN,
                               kube_resource_text(ready->refused->resource),
                               ready->refused->ns);
    }

    if (ready->ready && !ready->strict && !ready->kept) {
        kube_zone_ready_add(ready->zone, ready->state_serves
                                         ? KUBE_READY_STATE
                                         : KUBE_READY_SYNCED);
    }

    kube_arena_done(&ready->names);
    kube_arena_done(&ready->arena);

    return ready->ready;
}

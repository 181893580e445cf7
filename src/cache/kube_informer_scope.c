/*
 * kube_informer_scope - what a scope is made of: its lister-watcher, its
 * reflector, and its name in the zone.
 *
 * It moves nothing.  Called by kube_informer and its take-over.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_api_lister_watcher.h"
#include "kube_informer_impl.h"


static uint64_t
scope_hash_add(uint64_t h, kube_str_t s)
{
    kube_seed_t  seed;

    seed.k0 = h;
    seed.k1 = s.len;

    return kube_hash64(seed, s.data, s.len);
}


/* The hash is the same in every process: the next informer looks for it. */
static uint64_t
scope_hash(const kube_informer_t *inf, kube_resource_t resource,
    kube_str_t ns)
{
    uint64_t  h;

    h = scope_hash_add(KUBE_ZONE_LAYOUT, inf->conf.server);
    h = scope_hash_add(h, kube_str(kube_resource_text(resource)));
    h = scope_hash_add(h, ns);
    h = scope_hash_add(h, inf->conf.label_selector[resource]);
    h = scope_hash_add(h, inf->conf.field_selector[resource]);

    return (h != 0) ? h : 1;
}


/* True of a scope of the shape of slices; else it is of Services. */
static bool
scope_is_slices(unsigned scope)
{
    return scope % KUBE_SCOPES_A_NAMESPACE != 0;
}


/* Of an informer like this one that follows those slices. */
static uint64_t
scope_identity(const kube_informer_t *inf, kube_resource_t slices)
{
    unsigned    scope;
    uint64_t    h, hash;
    kube_str_t  s;

    h = scope_hash_add(0, inf->conf.server);
    s.data = (const char *) &hash;
    s.len = sizeof(uint64_t);

    for (scope = 0; scope < inf->scopes_n; scope++) {
        hash = scope_hash(inf, scope_is_slices(scope) ? slices
                                                      : KUBE_RESOURCE_SERVICES,
                          inf->scopes[scope].ns);
        h = scope_hash_add(h, s);
    }

    return h;
}


uint64_t
kube_informer_identity(const kube_informer_t *inf)
{
    return scope_identity(inf, inf->slices);
}


bool
kube_informer_accepts_state(kube_informer_t *inf, uint64_t identity)
{
    inf->state_slices = inf->slices;

    if (inf->conf.endpoints == KUBE_ENDPOINTS_AUTO
        && identity == scope_identity(inf, KUBE_RESOURCE_ENDPOINTS))
    {
        inf->state_slices = KUBE_RESOURCE_ENDPOINTS;
    }

    return identity == scope_identity(inf, inf->state_slices);
}


kube_rc_t
kube_informer_scope_init(kube_informer_t *inf, unsigned scope)
{
    uint64_t                         hash;
    kube_rc_t                        rc;
    kube_resource_t                  resource;
    informer_scope_t                *s;
    kube_reflector_t                *reflector;
    kube_lister_watcher_t            lw;
    kube_reflector_options_t         options;
    kube_api_lister_watcher_conf_t   conf;

    s = &inf->scopes[scope];

    resource = scope_is_slices(scope) ? inf->slices : KUBE_RESOURCE_SERVICES;

    if (inf->conf.namespaces_n != 0) {
        s->ns = inf->conf.namespaces[scope / KUBE_SCOPES_A_NAMESPACE];
    }

    hash = scope_hash(inf, resource, s->ns);

    conf.io = inf->conf.io;
    conf.resource = resource;
    conf.ns = s->ns;
    conf.label_selector = inf->conf.label_selector[resource];
    conf.field_selector = inf->conf.field_selector[resource];
    conf.object_bytes_max = inf->conf.object_bytes_max;
    conf.encoding = inf->conf.encoding;
    conf.zone = inf->conf.zone;
    conf.hand = &inf->hand;
    conf.scope = scope;

    rc = kube_api_lister_watcher_create(&inf->alloc, &conf, &lw);

    if (rc != KUBE_OK) {
        return rc;
    }

    memset(&options, 0, sizeof(options));
    options.fifo = inf->fifo;
    options.zone = inf->conf.zone;
    options.turn = &inf->turn;
    options.hand = &inf->hand;
    options.sink = inf->conf.sink;
    options.scope = scope;
    options.resource = resource;
    options.ns = s->ns;
    options.step = inf->conf.reflector;
    options.step.seed += scope;
    options.step.traits = &inf->traits;

    reflector = kube_reflector_create(&inf->alloc, &options, &lw);
    if (reflector == NULL) {
        return KUBE_NOMEM;
    }

    rc = kube_indexer_scope(inf->indexer, scope, resource, s->ns);

    if (rc != KUBE_OK) {
        kube_reflector_destroy(reflector);
        return rc;
    }

    if (s->reflector != NULL && inf->phase == INFORMER_RUNNING) {
        kube_reflector_stop(s->reflector, inf->now_ms);
    }

    kube_reflector_destroy(s->reflector);

    s->reflector = reflector;
    s->resource = resource;
    s->hash = hash;

    return KUBE_OK;
}


kube_rc_t
kube_informer_use_endpoints(kube_informer_t *inf,
    kube_informer_scope_pt begin)
{
    unsigned   scope;
    kube_rc_t  rc;

    inf->slices = KUBE_RESOURCE_ENDPOINTS;

    for (scope = 0; scope < inf->scopes_n; scope++) {

        if (!scope_is_slices(scope)
            || inf->scopes[scope].resource == inf->slices)
        {
            continue;
        }

        rc = kube_informer_scope_init(inf, scope);

        if (rc != KUBE_OK) {
            return rc;
        }

        if (begin != NULL) {
            begin(inf, scope);
        }
    }

    return KUBE_OK;
}

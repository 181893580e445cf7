/*
 * kube_cli_pods - what kube-informer --pods shows: shared informers of Pods.
 *
 * A factory over the byte level of the other informer, and one handler that
 * writes lines.  It decides nothing.  For the command line tool only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_api_lister_watcher.h"
#include "kube_cli_json.h"
#include "kube_cli_pods.h"
#include "kube_factory.h"


#define PODS_ARENA_BYTES  (64u << 20)

typedef struct {
    kube_shared_informer_t    *shared;
    kube_registration_t        registration;
    kube_str_t                 ns;
    kube_rv_t                  shown;        /* the line before; len 0: none */
} pods_scope_t;

struct kube_cli_pods_s {
    const kube_alloc_t        *alloc;
    const kube_cli_options_t  *options;
    kube_informer_conf_t       conf;
    kube_factory_t            *factory;
    kube_arena_t               arena;
    pods_scope_t               scopes[KUBE_NAMESPACES_MAX];
    size_t                     scopes_n;
    bool                       failed;
};


static kube_rc_t
pods_lister_watcher(void *ctx, kube_resource_t resource, kube_str_t ns,
    kube_lister_watcher_t *lw)
{
    const kube_cli_pods_t           *pods = ctx;
    kube_api_lister_watcher_conf_t   conf;

    conf = (kube_api_lister_watcher_conf_t) {
        .io = pods->conf.io,
        .resource = resource,
        .ns = ns,
        .label_selector = pods->options->selectors[resource],
        .object_bytes_max = pods->conf.object_bytes_max
    };

    return kube_api_lister_watcher_create(pods->alloc, &conf, lw);
}


static kube_rc_t
pods_notify(void *ctx, const kube_notification_t *n)
{
    kube_object_t         object;
    kube_cli_pods_t      *pods = ctx;
    const kube_stored_t  *stored;

    stored = (n->new != NULL) ? n->new : n->old;

    if (pods->options->quiet || stored == NULL) {
        return KUBE_OK;
    }

    kube_arena_reset(&pods->arena);

    if (kube_record_decode(&pods->arena, stored->record, stored->record->size,
                           &object) != KUBE_OK)
    {
        pods->failed = true;
        return KUBE_OK;
    }

    kube_cli_json_change(stdout, (n->old == NULL) ? "add"
                                 : (n->new != NULL) ? "update" : "delete",
                         &stored->id, &object);

    return KUBE_OK;
}


static kube_rc_t
pods_scope(kube_cli_pods_t *pods, kube_str_t ns)
{
    kube_rc_t        rc;
    pods_scope_t    *scope;
    kube_handler_t   handler;

    scope = &pods->scopes[pods->scopes_n++];
    scope->ns = ns;

    rc = kube_factory_informer(pods->factory, KUBE_RESOURCE_PODS, ns,
                               &scope->shared);
    if (rc != KUBE_OK) {
        return rc;
    }

    handler = (kube_handler_t) {
        .notify = pods_notify,
        .ctx = pods,
        .resync_ms = KUBE_NEVER
    };

    return kube_shared_informer_add_handler(scope->shared, &handler,
                                            &scope->registration, 0);
}


static kube_rc_t
pods_scopes(kube_cli_pods_t *pods)
{
    size_t     i;
    kube_rc_t  rc;

    if (pods->conf.namespaces_n == 0) {
        return pods_scope(pods, KUBE_STR_NULL);
    }

    rc = KUBE_OK;

    for (i = 0; rc == KUBE_OK && i < pods->conf.namespaces_n; i++) {
        rc = pods_scope(pods, pods->conf.namespaces[i]);
    }

    return rc;
}


kube_cli_pods_t *
kube_cli_pods_create(const kube_alloc_t *alloc,
    const kube_cli_options_t *options, const kube_informer_conf_t *conf)
{
    kube_cli_pods_t      *pods;
    kube_factory_conf_t   factory;

    pods = kube_zalloc(alloc, sizeof(kube_cli_pods_t));
    if (pods == NULL) {
        return NULL;
    }

    pods->alloc = alloc;
    pods->options = options;
    pods->conf = *conf;
    kube_arena_init(&pods->arena, alloc, PODS_ARENA_BYTES);

    factory = (kube_factory_conf_t) {
        .lister_watcher = pods_lister_watcher,
        .ctx = pods,
        .reflector = conf->reflector,
        .processor = {
            .seed = { conf->reflector.seed, conf->pid },
            .changes_max = KUBE_RING_CHANGES,
            .bytes_max = KUBE_RING_BYTES,
            .sink = conf->sink,
            .resync_ms = KUBE_NEVER
        }
    };

    pods->factory = kube_factory_create(alloc, &factory);

    if (pods->factory == NULL || pods_scopes(pods) != KUBE_OK) {
        kube_cli_pods_destroy(pods);
        return NULL;
    }

    return pods;
}


void
kube_cli_pods_destroy(kube_cli_pods_t *pods)
{
    if (pods == NULL) {
        return;
    }

    kube_factory_destroy(pods->factory);
    kube_arena_done(&pods->arena);
    kube_free(pods->alloc, pods);
}


static bool
pods_sum(void *ctx, kube_stored_t *stored)
{
    kube_digest_add(ctx, kube_record_digest(stored->record));

    return true;
}


/* A line once it has synced; with --digest whenever its version is another. */
static void
pods_show(kube_cli_pods_t *pods, pods_scope_t *scope)
{
    bool               first;
    kube_rv_t          rv;
    kube_store_t      *store;
    kube_scope_info_t  info;

    first = (scope->shown.len == 0);

    if (!kube_shared_informer_handler_has_synced(scope->shared,
                                                 scope->registration)
        || (!first && !pods->options->digest)
        || kube_rv_parse(kube_shared_informer_rv(scope->shared), &rv)
           != KUBE_OK
        || (!first && kube_rv_cmp(&rv, &scope->shown) == 0))
    {
        return;
    }

    scope->shown = rv;
    store = kube_shared_informer_store(scope->shared);

    memset(&info, 0, sizeof(kube_scope_info_t));

    info.resource = KUBE_RESOURCE_PODS;
    info.ns = scope->ns;
    info.rv = kube_rv_str(&rv);
    info.count = kube_store_count(store);
    kube_store_each(store, pods_sum, &info.digest);

    kube_cli_json_synced(stdout, &info);
}


bool
kube_cli_pods_process(kube_cli_pods_t *pods, uint64_t now_ms)
{
    size_t  i;

    /* it is over before it ever says KUBE_INVALID */

    pods->failed |= (kube_factory_start(pods->factory, now_ms) != KUBE_OK);
    kube_factory_process(pods->factory, now_ms);

    for (i = 0; i < pods->scopes_n; i++) {
        pods_show(pods, &pods->scopes[i]);
    }

    return !pods->failed;
}


uint64_t
kube_cli_pods_deadline(const kube_cli_pods_t *pods)
{
    return kube_factory_deadline(pods->factory);
}


bool
kube_cli_pods_synced(const kube_cli_pods_t *pods)
{
    size_t  i;

    for (i = 0; i < pods->scopes_n; i++) {
        if (pods->scopes[i].shown.len == 0) {
            return false;
        }
    }

    return true;
}


unsigned
kube_cli_pods_missing(const kube_cli_pods_t *pods, bool quiet,
    bool *refused_only)
{
    size_t               i;
    unsigned             n;
    uint64_t             refused;
    const char          *error;
    const pods_scope_t  *scope;

    n = 0;

    for (i = 0; i < pods->scopes_n; i++) {
        scope = &pods->scopes[i];
        refused = kube_shared_informer_refused(scope->shared);
        error = kube_shared_informer_error(scope->shared);

        if (scope->shown.len == 0) {
            n++;

            if (strncmp(error, "forbidden:", 10) != 0) {
                *refused_only = false;
            }

            if (!quiet) {
                fprintf(stderr, "kube-informer: missing: %s: %s\n",
                        kube_shared_informer_name(scope->shared), error);
            }
        }

        if (refused != 0) {
            n++;

            if (!quiet) {
                fprintf(stderr, "kube-informer: missing: %llu of %s that were "
                        "refused\n", (unsigned long long) refused,
                        kube_shared_informer_name(scope->shared));
            }
        }
    }

    return n;
}

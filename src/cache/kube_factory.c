/*
 * kube_factory - shared informers of one API server, one for each resource and
 * namespace.
 *
 * A list of informers, whose numbers are those of their scopes in the turn to
 * list.  It looks at no object.  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_cache_sync.h"
#include "kube_factory.h"


typedef struct {
    kube_shared_informer_t  *informer;
    kube_resource_t          resource;
    kube_str_t               ns;           /* owned */
    bool                     started;
} factory_entry_t;

struct kube_factory_s {
    kube_alloc_t             alloc;
    kube_factory_conf_t      conf;
    kube_list_turn_t         turn;
    kube_server_traits_t     traits;
    factory_entry_t          entries[KUBE_SCOPES_MAX];
    unsigned                 n;
    bool                     shutdown;
    bool                     processing;
};


kube_factory_t *
kube_factory_create(const kube_alloc_t *alloc, const kube_factory_conf_t *conf)
{
    kube_factory_t  *f;

    f = kube_zalloc(alloc, sizeof(kube_factory_t));
    if (f == NULL) {
        return NULL;
    }

    f->alloc = *alloc;
    f->conf = *conf;
    kube_list_turn_init(&f->turn);

    return f;
}


void
kube_factory_destroy(kube_factory_t *f)
{
    unsigned      i;
    kube_alloc_t  alloc;

    if (f == NULL) {
        return;
    }

    for (i = 0; i < f->n; i++) {
        kube_shared_informer_destroy(f->entries[i].informer);
        kube_str_free(&f->alloc, &f->entries[i].ns);
    }

    alloc = f->alloc;
    kube_free(&alloc, f);
}


/* Fills the entry of a new informer. */
static kube_rc_t
factory_create(kube_factory_t *f, factory_entry_t *entry)
{
    kube_rc_t                    rc;
    kube_lister_watcher_t        lw;
    kube_shared_informer_conf_t  conf;

    rc = f->conf.lister_watcher(f->conf.ctx, entry->resource, entry->ns, &lw);

    if (rc != KUBE_OK) {
        return rc;
    }

    conf = (kube_shared_informer_conf_t) {
        .resource = entry->resource,
        .ns = entry->ns,
        .reflector = f->conf.reflector,
        .processor = f->conf.processor,
        .turn = &f->turn,
        .scope = f->n
    };

    conf.reflector.traits = &f->traits;
    conf.reflector.seed += f->n;

    if (f->conf.resync_ms[entry->resource] != 0) {
        conf.processor.resync_ms = f->conf.resync_ms[entry->resource];
    }

    entry->informer = kube_shared_informer_create(&f->alloc, &conf, &lw);

    if (entry->informer == NULL) {
        return KUBE_NOMEM;
    }

    rc = kube_shared_informer_set_transform(entry->informer,
                                            f->conf.transform,
                                            f->conf.transform_ctx);
    if (rc == KUBE_OK) {
        rc = kube_shared_informer_set_watch_error_handler(entry->informer,
                 f->conf.watch_error, f->conf.watch_error_ctx);
    }

    return rc;
}


kube_rc_t
kube_factory_informer(kube_factory_t *f, kube_resource_t resource,
    kube_str_t ns, kube_shared_informer_t **informer)
{
    unsigned          i;
    kube_rc_t         rc;
    factory_entry_t  *entry;

    if (f->shutdown
        || resource >= KUBE_RESOURCES
        || (ns.len != 0 && !kube_name_is_label(ns)))
    {
        return KUBE_INVALID;
    }

    for (i = 0; i < f->n; i++) {
        entry = &f->entries[i];

        if (entry->resource == resource && kube_str_eq(entry->ns, ns)) {
            *informer = entry->informer;
            return KUBE_OK;
        }
    }

    if (f->n == KUBE_SCOPES_MAX) {
        return KUBE_TOO_LARGE;
    }

    entry = &f->entries[f->n];
    memset(entry, 0, sizeof(factory_entry_t));
    entry->resource = resource;

    rc = kube_str_dup(&f->alloc, ns, &entry->ns);

    if (rc == KUBE_OK) {
        rc = factory_create(f, entry);
    }

    if (rc != KUBE_OK) {
        kube_str_free(&f->alloc, &entry->ns);
        return rc;
    }

    f->n++;
    *informer = entry->informer;

    return KUBE_OK;
}


kube_rc_t
kube_factory_start(kube_factory_t *f, uint64_t now_ms)
{
    unsigned          i;
    kube_rc_t         rc;
    factory_entry_t  *entry;

    if (f->shutdown) {
        return KUBE_INVALID;
    }

    for (i = 0; i < f->n; i++) {
        entry = &f->entries[i];

        if (entry->started) {
            continue;
        }

        /* its user may have started or stopped it */

        entry->started = true;
        rc = kube_shared_informer_start(entry->informer, now_ms);
        (void) rc;
    }

    return KUBE_OK;
}


void
kube_factory_process(kube_factory_t *f, uint64_t now_ms)
{
    unsigned  i;

    if (f->processing) {
        return;
    }

    f->processing = true;

    for (i = 0; i < f->n; i++) {
        kube_shared_informer_process(f->entries[i].informer, now_ms);
    }

    f->processing = false;
}


uint64_t
kube_factory_deadline(const kube_factory_t *f)
{
    unsigned  i;
    uint64_t  deadline_ms, its_ms;

    deadline_ms = KUBE_NEVER;

    for (i = 0; i < f->n; i++) {
        its_ms = kube_shared_informer_deadline(f->entries[i].informer);

        if (its_ms < deadline_ms) {
            deadline_ms = its_ms;
        }
    }

    return deadline_ms;
}


static kube_rc_t
factory_synced(void *ctx)
{
    kube_shared_informer_t  *inf = ctx;

    return kube_shared_informer_has_synced(inf) ? KUBE_OK
           : kube_shared_informer_is_stopped(inf) ? KUBE_CLOSED : KUBE_AGAIN;
}


static const char *
factory_why(void *ctx)
{
    kube_shared_informer_t  *inf = ctx;

    return kube_shared_informer_is_stopped(inf)
           ? "it has stopped" : kube_shared_informer_error(inf);
}


kube_rc_t
kube_factory_wait_for_cache_sync(const kube_factory_t *f,
    uint64_t deadline_ms, uint64_t now_ms, char *cause, size_t size)
{
    size_t               n;
    unsigned             i;
    kube_sync_checker_t  checkers[KUBE_SCOPES_MAX];

    n = 0;

    for (i = 0; i < f->n; i++) {

        if (!f->entries[i].started) {
            continue;
        }

        checkers[n++] = (kube_sync_checker_t) {
            .name = kube_shared_informer_name(f->entries[i].informer),
            .synced = factory_synced,
            .why = factory_why,
            .ctx = f->entries[i].informer
        };
    }

    return kube_wait_for_cache_sync(checkers, n, deadline_ms, now_ms, cause,
                                    size);
}


void
kube_factory_shutdown(kube_factory_t *f, bool drain, uint64_t now_ms)
{
    unsigned  i;

    f->shutdown = true;

    for (i = 0; i < f->n; i++) {
        kube_shared_informer_stop(f->entries[i].informer, drain, now_ms);
    }
}


bool
kube_factory_is_stopped(const kube_factory_t *f)
{
    unsigned  i;

    for (i = 0; i < f->n; i++) {
        if (!kube_shared_informer_is_stopped(f->entries[i].informer)) {
            return false;
        }
    }

    return f->shutdown;
}

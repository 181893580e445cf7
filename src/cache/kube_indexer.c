/*
 * kube_indexer - its life, the deltas as they come, lists as diffs, and the
 * queue of Services to be published.
 *
 * What a delta does to its object is kube_index_object.c's, how objects
 * become readable kube_indexer_publish.c's.  An event costs its object and
 * its Service's slices, never more; a completed list one walk of the side
 * table.  Writer process only, one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_indexer_internal.h"


kube_indexer_t *
kube_indexer_create(const kube_alloc_t *alloc, const kube_indexer_conf_t *conf)
{
    size_t             n;
    kube_indexer_t    *ix;
    kube_zone_usage_t  usage;

    ix = kube_zalloc(alloc, sizeof(kube_indexer_t));
    if (ix == NULL) {
        return NULL;
    }

    ix->alloc = alloc;
    ix->conf = *conf;
    kube_log_init(&ix->log, conf->sink);

    kube_zone_usage(conf->zone, &usage);
    ix->entries_n = (uint32_t) usage.entries;

    for (n = 64; n < ix->entries_n / 4; n *= 2) {
        /* void */
    }

    ix->mask = n - 1;
    ix->buckets = kube_zalloc(alloc, n * sizeof(kube_index_group_t *));
    ix->entries = kube_zalloc(alloc, ((size_t) ix->entries_n + 1)
                                     * sizeof(kube_index_entry_t));
    ix->ready = kube_work_queue_create(alloc, ix->entries_n);
    ix->held = kube_work_queue_create(alloc, ix->entries_n);

    if (ix->buckets == NULL
        || ix->entries == NULL
        || ix->ready == NULL
        || ix->held == NULL)
    {
        kube_indexer_destroy(ix);
        return NULL;
    }

    return ix;
}


void
kube_index_clear(kube_indexer_t *ix)
{
    uint32_t             i;
    uint64_t             read_ms;
    kube_index_entry_t  *e;
    kube_index_scope_t  *scope, cleared;

    if (ix->entries != NULL) {
        for (i = 1; i <= ix->entries_n; i++) {
            e = &ix->entries[i];

            if (e->kind == KUBE_INDEX_SLICE
                && (e->flags & KUBE_INDEX_F_DOOMED))
            {
                kube_free(ix->alloc, e->u.refusal);
            }

            memset(e, 0, sizeof(kube_index_entry_t));
        }
    }

    if (ix->buckets != NULL) {
        kube_index_groups_free(ix);
    }

    while (ix->ready != NULL && kube_work_queue_pop(ix->ready, &read_ms)) {
        /* void */
    }

    while (ix->held != NULL && kube_work_queue_pop(ix->held, &read_ms)) {
        /* void */
    }

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        scope = &ix->scopes[i];

        memset(&cleared, 0, sizeof(kube_index_scope_t));
        cleared.used = scope->used;
        cleared.resource = scope->resource;
        cleared.ns = scope->ns;
        cleared.refused_min = UINT32_MAX;

        *scope = cleared;
    }
}


void
kube_indexer_destroy(kube_indexer_t *ix)
{
    unsigned  i;

    if (ix == NULL) {
        return;
    }

    kube_index_clear(ix);

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        kube_str_free(ix->alloc, &ix->scopes[i].ns);
    }

    kube_work_queue_destroy(ix->ready);
    kube_work_queue_destroy(ix->held);
    kube_free(ix->alloc, ix->entries);
    kube_free(ix->alloc, ix->heap);
    kube_free(ix->alloc, ix->buckets);
    kube_free(ix->alloc, ix);
}


kube_rc_t
kube_indexer_scope(kube_indexer_t *ix, unsigned slot, kube_resource_t resource,
    kube_str_t ns)
{
    kube_rc_t            rc;
    kube_str_t           copy;
    kube_index_scope_t  *scope;

    if (slot >= KUBE_SCOPES_MAX || ns.len > KUBE_NAMESPACE_LEN_MAX) {
        return KUBE_INVALID;
    }

    rc = kube_str_dup(ix->alloc, ns, &copy);
    if (rc != KUBE_OK) {
        return rc;
    }

    scope = &ix->scopes[slot];
    kube_str_free(ix->alloc, &scope->ns);

    scope->used = true;
    scope->resource = resource;
    scope->ns = copy;
    scope->refused_min = UINT32_MAX;

    return KUBE_OK;
}


uint8_t
kube_index_scope_of(const kube_indexer_t *ix, kube_resource_t resource,
    kube_str_t ns)
{
    unsigned                   i;
    const kube_index_scope_t  *scope;

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        scope = &ix->scopes[i];

        if (scope->used
            && scope->resource == resource
            && (scope->ns.len == 0 || kube_str_eq(scope->ns, ns)))
        {
            return (uint8_t) i;
        }
    }

    return KUBE_INDEX_NO_SCOPE;
}


static void
index_list_begin(kube_indexer_t *ix, unsigned slot)
{
    kube_index_scope_t  *scope;

    scope = &ix->scopes[slot];

    scope->list++;
    scope->unnamed_list = false;
    scope->refused_min = UINT32_MAX;
}


/* Those that a list held back; some may be held by another list still. */
static void
index_release(kube_indexer_t *ix)
{
    uint32_t             n, service;
    uint64_t             read_ms;
    kube_index_group_t  *group;

    for (n = kube_work_queue_depth(ix->held); n != 0; n--) {

        service = kube_work_queue_pop(ix->held, &read_ms);
        group = ix->entries[service].u.group;

        if (kube_index_group_is_held(ix, group)) {
            kube_work_queue_add(ix->held, service, read_ms);

        } else {
            group->wait = KUBE_INDEX_READY;
            kube_work_queue_add(ix->ready, service, read_ms);
        }
    }
}


static void
index_list_end(kube_indexer_t *ix, unsigned slot)
{
    uint32_t             i;
    kube_index_entry_t  *e;
    kube_index_scope_t  *scope;

    scope = &ix->scopes[slot];

    /* an end without a beginning saw nothing: nothing may go for it */
    if (scope->list == scope->synced) {
        return;
    }

    for (i = 1; i <= ix->entries_n; i++) {
        e = &ix->entries[i];

        if (e->kind != KUBE_INDEX_NONE
            && e->scope == slot
            && e->mark != scope->list)
        {
            kube_index_end(ix, i, KUBE_INDEX_NO_READ);
        }
    }

    scope->synced = scope->list;
    scope->unnamed = scope->unnamed_list;

    index_release(ix);
}


kube_rc_t
kube_indexer_apply(kube_indexer_t *ix, const kube_delta_t *delta,
    uint64_t now_ms)
{
    kube_rc_t  rc;

    ix->now_ms = now_ms;
    kube_zone_writer_now(ix->conf.writer, now_ms);
    rc = KUBE_OK;

    if (delta->scope >= KUBE_SCOPES_MAX || !ix->scopes[delta->scope].used) {
        return KUBE_OK;
    }

    switch (delta->kind) {

    case KUBE_DELTA_REPLACED:
    case KUBE_DELTA_UPDATED:
        rc = kube_index_apply_object(ix, delta);
        break;

    case KUBE_DELTA_DELETED:
        kube_index_apply_deleted(ix, delta);
        break;

    case KUBE_DELTA_REFUSED:
        rc = kube_index_apply_refused(ix, delta);
        break;

    case KUBE_DELTA_LIST_BEGIN:
        index_list_begin(ix, delta->scope);
        break;

    case KUBE_DELTA_SYNC:
        index_list_end(ix, delta->scope);
        break;
    }

    kube_index_note_full(ix);

    return rc;
}


/*
 * Those that still name a slice of this group let go of it first; they wait
 * to be published themselves, and come again.
 */
static void
index_free_slices(kube_indexer_t *ix, kube_index_group_t *group)
{
    uint32_t  i, named;

    for (i = group->slices; i != 0; i = ix->entries[i].next) {
        named = ix->entries[i].named;

        if (named != 0 && named != group->service) {
            kube_index_group_settle(ix, ix->entries[named].u.group,
                                    KUBE_INDEX_NO_READ);
        }
    }
}


static void
index_publish(kube_indexer_t *ix, kube_index_group_t *group, uint64_t read_ms)
{
    unsigned  n;

    index_free_slices(ix, group);

    for (n = 0; n < KUBE_INDEX_DISPLACE_MAX; n++) {

        if (kube_index_group_try(ix, group, read_ms) == KUBE_OK) {
            return;
        }

        if (kube_index_displace(ix, group) != KUBE_OK) {
            break;
        }
    }

    kube_index_group_settle(ix, group, read_ms);
}


unsigned
kube_indexer_publish(kube_indexer_t *ix, unsigned max, uint64_t now_ms,
    int64_t now_unix_ms)
{
    unsigned             n;
    uint32_t             service;
    uint64_t             read_ms;
    kube_index_group_t  *group;

    ix->now_ms = now_ms;
    kube_zone_writer_now(ix->conf.writer, now_ms);
    ix->now_unix_ms = now_unix_ms;
    n = 0;

    while (n < max) {
        service = kube_work_queue_pop(ix->ready, &read_ms);

        if (service == 0) {
            break;
        }

        group = ix->entries[service].u.group;

        if (kube_index_group_is_held(ix, group)) {
            group->wait = KUBE_INDEX_HELD;
            kube_work_queue_add(ix->held, service, read_ms);
            continue;
        }

        kube_index_group_idle(ix, group);
        n++;

        if (ix->entries[service].flags & KUBE_INDEX_F_DOOMED) {
            kube_index_service_drop(ix, service, NULL);
            continue;
        }

        index_publish(ix, group, read_ms);
    }

    kube_index_note_full(ix);

    return n;
}

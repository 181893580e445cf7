/*
 * kube_index_object - what a delta does to its object: taken, passed over,
 * refused or ended, and which Service must be published for it.
 *
 * It makes nothing readable but slices without a Service (publication does
 * the rest), and decides nothing about lists.  Writer process only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_indexer_internal.h"


/* What an object to be held is, taken from its record once. */
typedef struct {
    const kube_record_t  *record;
    kube_record_id_t      id;
    bool                  listed;       /* an item of a list */
    bool                  watched;      /* an event: latencies count */
    uint64_t              read_ms;
    int64_t               trigger_ms;
} index_item_t;


static bool
item_init(index_item_t *item, const kube_record_t *record)
{
    memset(item, 0, sizeof(index_item_t));

    item->record = record;
    item->read_ms = KUBE_INDEX_NO_READ;

    return (record->kind == KUBE_RECORD_SERVICE
            || record->kind == KUBE_RECORD_SLICE)
           && kube_record_id(record, record->size, &item->id) == KUBE_OK
           && item->id.meta.ns.len <= KUBE_NAMESPACE_LEN_MAX
           && item->id.meta.name.len <= KUBE_NAME_LEN_MAX
           && item->id.service.len <= KUBE_NAME_LEN_MAX;
}


static kube_str_t
item_group_name(const index_item_t *item)
{
    return (item->id.resource == KUBE_RESOURCE_SERVICES)
           ? item->id.meta.name : item->id.service;
}


/* Need it not be taken, for the same or a newer one is held? */
static bool
item_is_held(const kube_indexer_t *ix, const index_item_t *item,
    uint32_t entry)
{
    kube_rv_t             rv, held_rv;
    kube_record_id_t      held;
    const kube_record_t  *record;

    if (ix->entries[entry].flags & KUBE_INDEX_F_DOOMED) {
        return false;
    }

    record = kube_zone_newest(ix->conf.writer, entry);

    if (record == NULL
        || (record->flags & KUBE_RECORD_F_STATE_FILE)
        || kube_record_id(record, record->size, &held) != KUBE_OK
        || !kube_str_eq(held.meta.uid, item->id.meta.uid))
    {
        return false;
    }

    if (kube_str_eq(held.meta.rv, item->id.meta.rv)) {
        return true;
    }

    /* a list may come from a server that was set back: it is right */
    return !item->listed
           && kube_rv_parse(item->id.meta.rv, &rv) == KUBE_OK
           && kube_rv_parse(held.meta.rv, &held_rv) == KUBE_OK
           && kube_rv_cmp(&rv, &held_rv) < 0;
}


static void
index_touch(kube_indexer_t *ix, kube_index_group_t *group, uint8_t slot)
{
    if (slot != KUBE_INDEX_NO_SCOPE
        && ix->scopes[slot].list != ix->scopes[slot].synced)
    {
        group->touched = ix->scopes[slot].list;
    }
}


/* Leaves the group of the label it bore before. */
static void
index_slice_leave(kube_indexer_t *ix, uint32_t entry, uint64_t read_ms)
{
    kube_index_entry_t  *e;
    kube_index_group_t  *old;

    e = &ix->entries[entry];

    if (e->flags & KUBE_INDEX_F_DOOMED) {
        kube_free(ix->alloc, e->u.refusal);
        e->u.group = NULL;
        e->flags &= (uint8_t) ~KUBE_INDEX_F_DOOMED;
        return;
    }

    old = e->u.group;

    kube_index_slice_unlink(ix, entry);
    index_touch(ix, old, e->scope);
    kube_index_group_dirty(ix, old, read_ms);
    kube_index_group_tidy(ix, old);
}


static void
index_slice_enter(kube_indexer_t *ix, kube_index_group_t *group,
    uint32_t entry, const index_item_t *item)
{
    kube_index_entry_t  *e;

    e = &ix->entries[entry];

    if (e->kind == KUBE_INDEX_SLICE
        && ((e->flags & KUBE_INDEX_F_DOOMED) || e->u.group != group))
    {
        index_slice_leave(ix, entry, item->read_ms);
    }

    e->kind = KUBE_INDEX_SLICE;
    e->scope = group->scope[KUBE_RESOURCE_ENDPOINTSLICES];

    if (e->u.group == NULL) {
        kube_index_slice_link(ix, group, entry);
    }

    index_touch(ix, group, e->scope);

    if (item->watched
        && item->trigger_ms > 0
        && (group->trigger_ms == 0 || item->trigger_ms < group->trigger_ms))
    {
        group->trigger_ms = item->trigger_ms;
    }

    if (group->service == 0 && e->named == 0) {
        group->trigger_ms = 0;
        kube_index_orphan_publish(ix, entry);
    }
}


/* Its record is staged: the side table follows. */
static void
index_enter(kube_indexer_t *ix, kube_index_group_t *group, uint32_t entry,
    const index_item_t *item)
{
    kube_index_entry_t  *e;

    e = &ix->entries[entry];

    if (e->kind == KUBE_INDEX_REFUSED) {
        kube_index_refused_forget(ix, entry);
    }

    if (item->id.resource == KUBE_RESOURCE_SERVICES) {
        e->kind = KUBE_INDEX_SERVICE;
        e->scope = group->scope[KUBE_RESOURCE_SERVICES];
        e->flags &= (uint8_t) ~KUBE_INDEX_F_DOOMED;
        e->u.group = group;
        group->service = entry;

    } else {
        index_slice_enter(ix, group, entry, item);
    }

    if (e->scope != KUBE_INDEX_NO_SCOPE) {
        e->mark = ix->scopes[e->scope].list;
    }

    kube_index_group_dirty(ix, group, item->read_ms);
}


static kube_rc_t
index_refuse(kube_indexer_t *ix, kube_resource_t resource, kube_str_t ns,
    kube_str_t name, const kube_index_refusal_t *refusal, uint64_t read_ms)
{
    uint8_t              slot;
    uint32_t             entry;
    kube_index_entry_t  *e;

    entry = kube_zone_writer_find(ix->conf.writer, resource, ns, name);
    e = &ix->entries[entry];

    if (entry == 0
        || e->kind == KUBE_INDEX_NONE
        || e->kind == KUBE_INDEX_REFUSED)
    {
        kube_index_name_refused(ix, resource, ns, name, refusal);
        return KUBE_OK;
    }

    slot = kube_index_scope_of(ix, resource, ns);

    if (slot != KUBE_INDEX_NO_SCOPE) {
        e->mark = ix->scopes[slot].list;
    }

    if (e->kind == KUBE_INDEX_SERVICE) {
        kube_index_service_drop(ix, entry, refusal);
        return KUBE_OK;
    }

    return kube_index_doom(ix, entry, refusal, read_ms);
}


/* A Service cannot name more slices than a publication holds. */
static bool
index_has_place(const kube_indexer_t *ix, const kube_index_group_t *group,
    const index_item_t *item, uint32_t entry)
{
    const kube_index_entry_t  *e;

    e = &ix->entries[entry];

    if (item->id.resource == KUBE_RESOURCE_SERVICES
        || group->name.len == 0
        || group->slices_n < KUBE_SERVICE_SLICES_MAX)
    {
        return true;
    }

    return entry != 0
           && e->kind == KUBE_INDEX_SLICE
           && !(e->flags & KUBE_INDEX_F_DOOMED)
           && e->u.group == group;
}


/* KUBE_OK, KUBE_NOMEM, or with *refusal filled KUBE_FULL. */
static kube_rc_t
index_admit(kube_indexer_t *ix, const index_item_t *item, uint32_t held,
    kube_index_refusal_t *refusal)
{
    uint32_t             entry;
    kube_rc_t            rc;
    kube_str_t           reason;
    kube_index_group_t  *group;

    group = kube_index_group_get(ix, item->id.meta.ns, item_group_name(item));
    if (group == NULL) {
        return KUBE_NOMEM;
    }

    reason = KUBE_STR("too_many_slices");
    rc = KUBE_TOO_LARGE;
    ix->pinned = group;

    if (index_has_place(ix, group, item, held)) {
        reason = KUBE_STR("too_large");
        rc = kube_index_stage(ix, item->record, group,
                              held != 0
                              && ix->entries[held].kind != KUBE_INDEX_REFUSED,
                              &entry);
    }

    if (rc == KUBE_OK) {
        index_enter(ix, group, entry, item);
    }

    ix->pinned = NULL;
    kube_index_group_tidy(ix, group);

    if (rc == KUBE_FULL) {
        *refusal = kube_index_refusal(item->id.meta.rv, KUBE_INDEX_ZONE_FULL,
                                      item->record->size);

    } else {
        *refusal = kube_index_refusal(item->id.meta.rv, reason, 0);
    }

    return (rc == KUBE_OK || rc == KUBE_NOMEM) ? rc : KUBE_FULL;
}


static kube_rc_t
index_put(kube_indexer_t *ix, const index_item_t *item)
{
    uint8_t               slot;
    uint32_t              entry;
    kube_rc_t             rc;
    kube_index_refusal_t  refusal;

    slot = kube_index_scope_of(ix, item->id.resource, item->id.meta.ns);

    if (slot == KUBE_INDEX_NO_SCOPE) {
        return KUBE_OK;
    }

    entry = kube_zone_writer_find(ix->conf.writer, item->id.resource,
                                  item->id.meta.ns, item->id.meta.name);

    if (entry != 0
        && ix->entries[entry].kind != KUBE_INDEX_NONE
        && ix->entries[entry].kind != KUBE_INDEX_REFUSED
        && item_is_held(ix, item, entry))
    {
        ix->entries[entry].mark = ix->scopes[slot].list;
        return KUBE_OK;
    }

    rc = index_admit(ix, item, entry, &refusal);

    if (rc != KUBE_FULL) {
        return rc;
    }

    return index_refuse(ix, item->id.resource, item->id.meta.ns,
                        item->id.meta.name, &refusal, item->read_ms);
}


kube_rc_t
kube_index_put_quietly(kube_indexer_t *ix, const kube_record_t *record)
{
    kube_rc_t             rc;
    index_item_t          item;
    kube_index_refusal_t  refusal;

    if (!item_init(&item, record)
        || kube_index_scope_of(ix, item.id.resource, item.id.meta.ns)
           == KUBE_INDEX_NO_SCOPE
        || kube_zone_writer_find(ix->conf.writer, item.id.resource,
                                 item.id.meta.ns, item.id.meta.name) != 0)
    {
        return KUBE_OK;
    }

    rc = index_admit(ix, &item, 0, &refusal);

    return (rc == KUBE_FULL) ? KUBE_OK : rc;
}


void
kube_index_end(kube_indexer_t *ix, uint32_t entry, uint64_t read_ms)
{
    kube_rc_t  rc;

    switch (ix->entries[entry].kind) {

    case KUBE_INDEX_REFUSED:
        kube_index_refused_drop(ix, entry);
        break;

    case KUBE_INDEX_SERVICE:
    case KUBE_INDEX_SLICE:
        /* without a refusal to keep, nothing is allocated: always KUBE_OK */
        rc = kube_index_doom(ix, entry, NULL, read_ms);
        (void) rc;
        break;

    default:
        break;
    }
}


void
kube_index_apply_deleted(kube_indexer_t *ix, const kube_delta_t *delta)
{
    uint32_t              entry;
    kube_rv_t             rv, held_rv;
    kube_record_id_t      held;
    const kube_record_t  *record;

    entry = kube_zone_writer_find(ix->conf.writer, delta->resource, delta->ns,
                                  delta->name);
    if (entry == 0) {
        return;
    }

    record = kube_zone_newest(ix->conf.writer, entry);

    /* the end of an object that was made anew since */
    if (record != NULL
        && ix->entries[entry].kind != KUBE_INDEX_REFUSED
        && !(record->flags & KUBE_RECORD_F_STATE_FILE)
        && kube_record_id(record, record->size, &held) == KUBE_OK
        && kube_rv_parse(delta->rv, &rv) == KUBE_OK
        && kube_rv_parse(held.meta.rv, &held_rv) == KUBE_OK
        && kube_rv_cmp(&rv, &held_rv) < 0)
    {
        return;
    }

    kube_index_end(ix, entry, delta->read_ms);
}


kube_rc_t
kube_index_apply_object(kube_indexer_t *ix, const kube_delta_t *delta)
{
    index_item_t  item;

    if (delta->record == NULL || !item_init(&item, delta->record)) {
        return KUBE_OK;
    }

    item.listed = (delta->kind == KUBE_DELTA_REPLACED);
    item.watched = (delta->kind == KUBE_DELTA_UPDATED);
    item.trigger_ms = delta->trigger_ms;

    if (item.watched) {
        item.read_ms = delta->read_ms;
    }

    return index_put(ix, &item);
}


kube_rc_t
kube_index_apply_refused(kube_indexer_t *ix, const kube_delta_t *delta)
{
    kube_index_refusal_t  refusal;

    if (delta->ns.len > KUBE_NAMESPACE_LEN_MAX
        || delta->name.len > KUBE_NAME_LEN_MAX
        || kube_index_scope_of(ix, delta->resource, delta->ns)
           == KUBE_INDEX_NO_SCOPE)
    {
        return KUBE_OK;
    }

    refusal = kube_index_refusal(delta->rv, delta->reason, 0);

    return index_refuse(ix, delta->resource, delta->ns, delta->name, &refusal,
                        delta->read_ms);
}

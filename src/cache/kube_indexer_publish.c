/*
 * kube_indexer_publish - how objects become readable, and cease to be.
 *
 * A Service and its slices become readable by one store.  A slice that left
 * its Service's group (deleted, relabelled, refused) stays in the zone until
 * the Service that names it was published without it, for the zone must not
 * lose what a published record names.  A slice that another Service still
 * names therefore waits until that one has let go.
 *
 * It does not decide what is held or who makes room.  Writer process only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_indexer_internal.h"


/* Of a record that a predecessor refused; about a slice with few endpoints. */
#define KUBE_INDEX_SIZE_UNKNOWN  512


/* What one publication changes in the sums of a scope. */
typedef struct {
    uint64_t       added;
    kube_digest_t  more;
    kube_digest_t  less;
    bool           changed;
} publish_diff_t;


/* Readable as an object; a name that is refused is not. */
static const kube_record_t *
publish_readable(const kube_indexer_t *ix, uint32_t entry)
{
    const kube_record_t  *record;

    record = kube_zone_published(ix->conf.writer, entry);

    if (record == NULL || record->kind == KUBE_RECORD_REFUSED) {
        return NULL;
    }

    return record;
}


static void
publish_diff(kube_indexer_t *ix, uint32_t entry, publish_diff_t *diff)
{
    kube_index_entry_t   *e;
    const kube_record_t  *before, *after;

    e = &ix->entries[entry];
    e->flags &= (uint8_t) ~(KUBE_INDEX_F_ADDED | KUBE_INDEX_F_CHANGED);

    before = publish_readable(ix, entry);
    after = kube_zone_newest(ix->conf.writer, entry);

    if (before == after || after == NULL) {
        return;
    }

    if (before == NULL) {
        e->flags |= KUBE_INDEX_F_ADDED;
        diff->added++;

    } else if (kube_record_same(before, after)) {
        return;

    } else {
        e->flags |= KUBE_INDEX_F_CHANGED;
        kube_digest_add(&diff->less, kube_record_digest(before));
    }

    kube_digest_add(&diff->more, kube_record_digest(after));
    diff->changed = true;
}


static void
publish_sum(kube_indexer_t *ix, uint8_t slot, const publish_diff_t *diff)
{
    kube_index_scope_t  *scope;

    if (slot == KUBE_INDEX_NO_SCOPE) {
        return;
    }

    scope = &ix->scopes[slot];

    scope->count += diff->added;
    kube_digest_add(&scope->digest, diff->more);
    kube_digest_sub(&scope->digest, diff->less);
}


static void
publish_unsum(kube_indexer_t *ix, uint8_t slot, const kube_record_t *record)
{
    if (slot == KUBE_INDEX_NO_SCOPE) {
        return;
    }

    ix->scopes[slot].count--;
    kube_digest_sub(&ix->scopes[slot].digest, kube_record_digest(record));
}


static void
publish_tell(kube_indexer_t *ix, uint32_t entry)
{
    uint8_t  flags;

    flags = ix->entries[entry].flags;

    if (ix->conf.change == NULL
        || !(flags & (KUBE_INDEX_F_ADDED | KUBE_INDEX_F_CHANGED)))
    {
        return;
    }

    ix->conf.change(ix->conf.change_ctx,
                    (flags & KUBE_INDEX_F_ADDED) ? KUBE_CHANGE_ADD
                                                 : KUBE_CHANGE_UPDATE,
                    kube_zone_published(ix->conf.writer, entry));
}


static size_t
publish_gather(kube_indexer_t *ix, const kube_index_group_t *group)
{
    size_t    n;
    uint32_t  i, named;

    n = 0;

    for (i = group->slices; i != 0; i = ix->entries[i].next) {
        named = ix->entries[i].named;

        if (n < KUBE_SERVICE_SLICES_MAX
            && (named == 0 || named == group->service))
        {
            ix->slices[n++] = i;
        }
    }

    return n;
}


/* What the published record of a Service names. */
static size_t
publish_named(kube_indexer_t *ix, uint32_t service)
{
    size_t                i, n;
    const kube_ref_t     *refs;
    const kube_record_t  *record;

    record = publish_readable(ix, service);

    if (record == NULL) {
        return 0;
    }

    refs = kube_record_refs(record);
    n = 0;

    for (i = 0; i < record->refs_n && n < KUBE_SERVICE_SLICES_MAX; i++) {

        if (refs[i].entry != 0 && refs[i].entry <= ix->entries_n) {
            ix->named[n++] = refs[i].entry;
        }
    }

    return n;
}


/* The Service that named the slice does so no more. */
static void
publish_let_go(kube_indexer_t *ix, uint32_t slice)
{
    kube_index_entry_t    *e;
    kube_index_refusal_t  *refusal;

    e = &ix->entries[slice];
    e->named = 0;

    if (e->flags & KUBE_INDEX_F_DOOMED) {
        refusal = e->u.refusal;
        e->u.refusal = NULL;

        kube_index_slice_drop(ix, slice, refusal);
        kube_free(ix->alloc, refusal);

    } else if (e->u.group->service == 0) {
        kube_index_orphan_publish(ix, slice);
    }
}


static void
publish_observe(kube_indexer_t *ix, kube_index_group_t *group,
    const publish_diff_t diff[KUBE_RESOURCES], uint64_t read_ms)
{
    int64_t          took_ms;
    kube_resource_t  resource;

    resource = diff[KUBE_RESOURCE_ENDPOINTSLICES].changed
               ? KUBE_RESOURCE_ENDPOINTSLICES : KUBE_RESOURCE_SERVICES;

    if (read_ms != KUBE_INDEX_NO_READ && read_ms <= ix->now_ms) {
        kube_zone_histogram_observe(ix->conf.zone,
                                    KUBE_HISTOGRAM_PUBLISH_LATENCY, resource,
                                    (ix->now_ms - read_ms) * 1000);
    }

    if (group->trigger_ms != 0 && ix->now_unix_ms >= group->trigger_ms) {
        took_ms = ix->now_unix_ms - group->trigger_ms;
        kube_zone_histogram_observe(ix->conf.zone,
                                    KUBE_HISTOGRAM_PROGRAMMING_LATENCY,
                                    KUBE_RESOURCE_ENDPOINTSLICES,
                                    (uint64_t) took_ms * 1000);
    }

    group->trigger_ms = 0;
}


kube_rc_t
kube_index_group_try(kube_indexer_t *ix, kube_index_group_t *group,
    uint64_t read_ms)
{
    bool                 changed;
    size_t               i, n, named_n;
    uint32_t             service;
    kube_rc_t            rc;
    publish_diff_t       diff[KUBE_RESOURCES];
    kube_index_entry_t  *e;

    service = group->service;
    memset(diff, 0, sizeof(diff));

    n = publish_gather(ix, group);
    named_n = publish_named(ix, service);

    publish_diff(ix, service, &diff[KUBE_RESOURCE_SERVICES]);

    for (i = 0; i < n; i++) {
        publish_diff(ix, ix->slices[i], &diff[KUBE_RESOURCE_ENDPOINTSLICES]);
    }

    rc = kube_zone_publish(ix->conf.writer, service, ix->slices, n, &changed);
    if (rc != KUBE_OK) {
        return rc;
    }

    for (i = 0; i < KUBE_RESOURCES; i++) {
        publish_sum(ix, group->scope[i], &diff[i]);
    }

    publish_tell(ix, service);

    for (i = 0; i < n; i++) {
        ix->entries[ix->slices[i]].named = service;
        publish_tell(ix, ix->slices[i]);
    }

    for (i = 0; i < named_n; i++) {
        e = &ix->entries[ix->named[i]];

        if (e->kind == KUBE_INDEX_SLICE
            && e->named == service
            && ((e->flags & KUBE_INDEX_F_DOOMED) || e->u.group != group))
        {
            publish_let_go(ix, ix->named[i]);
        }
    }

    if (changed) {
        publish_observe(ix, group, diff, read_ms);
    }

    return KUBE_OK;
}


void
kube_index_orphan_publish(kube_indexer_t *ix, uint32_t slice)
{
    publish_diff_t  diff;

    memset(&diff, 0, sizeof(publish_diff_t));
    publish_diff(ix, slice, &diff);

    kube_zone_publish_orphan(ix->conf.writer, slice);

    publish_sum(ix, ix->entries[slice].scope, &diff);
    publish_tell(ix, slice);
}


/* Counts it and says so; the entry shows the REFUSED record. */
static void
refused_set(kube_indexer_t *ix, uint32_t entry, uint8_t slot, uint32_t mark,
    uint32_t size)
{
    kube_index_entry_t  *e;
    kube_index_scope_t  *scope;

    e = &ix->entries[entry];

    memset(e, 0, sizeof(kube_index_entry_t));
    e->kind = KUBE_INDEX_REFUSED;
    e->scope = slot;
    e->mark = mark;

    if (size != 0) {
        e->flags = KUBE_INDEX_F_ROOM;
    }

    if (slot == KUBE_INDEX_NO_SCOPE) {
        return;
    }

    scope = &ix->scopes[slot];
    scope->refused++;

    if (size != 0) {
        scope->refused_room++;

        if (size < scope->refused_min) {
            scope->refused_min = size;
        }
    }
}


static void
refused_unset(kube_indexer_t *ix, uint32_t entry)
{
    kube_index_entry_t  *e;
    kube_index_scope_t  *scope;

    e = &ix->entries[entry];

    if (e->scope != KUBE_INDEX_NO_SCOPE) {
        scope = &ix->scopes[e->scope];
        scope->refused--;

        if (e->flags & KUBE_INDEX_F_ROOM) {
            scope->refused_room--;
        }
    }

    memset(e, 0, sizeof(kube_index_entry_t));
}


static void
refused_log(kube_indexer_t *ix, kube_resource_t resource, kube_str_t ns,
    kube_str_t name, const kube_index_refusal_t *refusal, bool named)
{
    char  ns_text[KUBE_NAMESPACE_LEN_MAX + 1];
    char  name_text[KUBE_NAME_LEN_MAX + 1];

    (void) kube_str_escape(ns_text, sizeof(ns_text), ns);
    (void) kube_str_escape(name_text, sizeof(name_text), name);

    kube_log_event(&ix->log, ix->now_ms,
                   named ? KUBE_LOG_WARN : KUBE_LOG_ERROR,
                   refusal->size != 0 ? KUBE_EV_ZONE_FULL : KUBE_EV_REFUSED,
                   "%s %s/%s is not held: %.*s%s",
                   kube_resource_text(resource), ns_text, name_text,
                   (int) refusal->reason_len, refusal->reason,
                   named ? "" : ", and the zone has no room for its name");
}


/*
 * Names a key as refused; what it held must have left the side table.  False
 * where not even the name fits: the scope's version must not move.
 */
static bool
refused_name(kube_indexer_t *ix, kube_resource_t resource, kube_str_t ns,
    kube_str_t name, uint32_t mark, const kube_index_refusal_t *refusal)
{
    uint8_t           slot;
    kube_rc_t         rc;
    kube_zone_item_t  item;

    slot = kube_index_scope_of(ix, resource, ns);

    rc = kube_zone_item_name(ix->conf.writer, resource, ns, name, &item);

    if (rc == KUBE_OK) {
        rc = kube_zone_refuse(ix->conf.writer, &item,
                              kube_rv_str(&refusal->rv),
                              (kube_str_t) { refusal->reason,
                                             refusal->reason_len });
    }

    refused_log(ix, resource, ns, name, refusal, rc == KUBE_OK);

    if (refusal->size != 0 || rc != KUBE_OK) {
        ix->found_full = true;
    }

    if (rc == KUBE_OK) {
        refused_set(ix, item.entry, slot, mark, refusal->size);
        return true;
    }

    if (slot != KUBE_INDEX_NO_SCOPE) {
        ix->scopes[slot].unnamed = true;
        ix->scopes[slot].unnamed_list = true;
    }

    return false;
}


/* The side table's part is over; now the zone's. */
static void
publish_end(kube_indexer_t *ix, uint32_t entry, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, const kube_index_refusal_t *refusal)
{
    uint32_t  mark;

    mark = ix->entries[entry].mark;
    memset(&ix->entries[entry], 0, sizeof(kube_index_entry_t));

    if (refusal != NULL
        && refused_name(ix, resource, ns, name, mark, refusal))
    {
        return;
    }

    kube_zone_remove(ix->conf.writer, entry);
}


static void
publish_tell_gone(kube_indexer_t *ix, uint32_t entry)
{
    const kube_record_t  *record;

    record = publish_readable(ix, entry);

    if (record == NULL) {
        return;
    }

    publish_unsum(ix, ix->entries[entry].scope, record);

    /* told just before: afterwards the record's memory is the zone's */
    if (ix->conf.change != NULL) {
        ix->conf.change(ix->conf.change_ctx, KUBE_CHANGE_DELETE, record);
    }
}


void
kube_index_slice_drop(kube_indexer_t *ix, uint32_t slice,
    const kube_index_refusal_t *refusal)
{
    char                  ns[KUBE_NAMESPACE_LEN_MAX], name[KUBE_NAME_LEN_MAX];
    kube_str_t            ns_str, name_str;
    kube_record_id_t      id;
    const kube_record_t  *record;

    publish_tell_gone(ix, slice);

    record = kube_zone_newest(ix->conf.writer, slice);

    if (refusal == NULL
        || record == NULL
        || kube_record_id(record, record->size, &id) != KUBE_OK
        || id.meta.ns.len > sizeof(ns)
        || id.meta.name.len > sizeof(name))
    {
        publish_end(ix, slice, KUBE_RESOURCE_ENDPOINTSLICES, KUBE_STR_NULL,
                    KUBE_STR_NULL, NULL);
        return;
    }

    /* the zone may move or free the record while it writes the new one */
    memcpy(ns, id.meta.ns.data, id.meta.ns.len);
    memcpy(name, id.meta.name.data, id.meta.name.len);
    ns_str = (kube_str_t) { ns, id.meta.ns.len };
    name_str = (kube_str_t) { name, id.meta.name.len };

    publish_end(ix, slice, KUBE_RESOURCE_ENDPOINTSLICES, ns_str, name_str,
                refusal);
}


void
kube_index_service_drop(kube_indexer_t *ix, uint32_t service,
    const kube_index_refusal_t *refusal)
{
    size_t               i, n;
    uint32_t             slice;
    kube_index_entry_t  *e;
    kube_index_group_t  *group;

    group = ix->entries[service].u.group;
    n = publish_named(ix, service);

    publish_tell_gone(ix, service);

    kube_index_group_idle(ix, group);
    group->service = 0;
    group->trigger_ms = 0;

    publish_end(ix, service, KUBE_RESOURCE_SERVICES, group->ns, group->name,
                refusal);

    for (i = 0; i < n; i++) {
        e = &ix->entries[ix->named[i]];

        if (e->kind == KUBE_INDEX_SLICE && e->named == service) {
            publish_let_go(ix, ix->named[i]);
        }
    }

    /* those that were staged and waited for this Service */
    for (slice = group->slices; slice != 0; slice = ix->entries[slice].next) {

        if (ix->entries[slice].named == 0) {
            kube_index_orphan_publish(ix, slice);
        }
    }

    kube_index_group_tidy(ix, group);
}


void
kube_index_refused_drop(kube_indexer_t *ix, uint32_t entry)
{
    refused_unset(ix, entry);
    kube_zone_remove(ix->conf.writer, entry);
}


void
kube_index_refused_forget(kube_indexer_t *ix, uint32_t entry)
{
    refused_unset(ix, entry);
}


void
kube_index_refused_found(kube_indexer_t *ix, uint32_t entry, uint8_t slot,
    bool room)
{
    refused_set(ix, entry, slot, 0, room ? KUBE_INDEX_SIZE_UNKNOWN : 0);
}


void
kube_index_name_refused(kube_indexer_t *ix, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, const kube_index_refusal_t *refusal)
{
    bool      again;
    uint8_t   slot;
    uint32_t  entry, mark;

    slot = kube_index_scope_of(ix, resource, ns);
    mark = (slot != KUBE_INDEX_NO_SCOPE) ? ix->scopes[slot].list : 0;

    entry = kube_zone_writer_find(ix->conf.writer, resource, ns, name);
    again = (entry != 0 && ix->entries[entry].kind == KUBE_INDEX_REFUSED);

    if (again) {
        refused_unset(ix, entry);
    }

    if (!refused_name(ix, resource, ns, name, mark, refusal) && again) {
        refused_set(ix, entry, slot, mark, refusal->size);
    }
}


static kube_index_refusal_t *
doom_refusal(kube_indexer_t *ix, const kube_index_refusal_t *refusal)
{
    kube_index_refusal_t  *copy;

    copy = kube_alloc(ix->alloc, sizeof(kube_index_refusal_t));

    if (copy != NULL) {
        *copy = *refusal;
    }

    return copy;
}


/* A list that takes a slice away holds its Services as one that changes it. */
static void
doom_touch(kube_indexer_t *ix, kube_index_group_t *group, uint8_t slot,
    uint64_t read_ms)
{
    if (slot != KUBE_INDEX_NO_SCOPE
        && ix->scopes[slot].list != ix->scopes[slot].synced)
    {
        group->touched = ix->scopes[slot].list;
    }

    kube_index_group_dirty(ix, group, read_ms);
}


kube_rc_t
kube_index_doom(kube_indexer_t *ix, uint32_t entry,
    const kube_index_refusal_t *refusal, uint64_t read_ms)
{
    kube_index_entry_t    *e;
    kube_index_group_t    *group;
    kube_index_refusal_t  *copy;

    e = &ix->entries[entry];
    copy = NULL;

    if (e->kind == KUBE_INDEX_SERVICE) {
        e->flags |= KUBE_INDEX_F_DOOMED;
        kube_index_group_dirty(ix, e->u.group, read_ms);
        return KUBE_OK;
    }

    if (refusal != NULL && e->named != 0) {
        copy = doom_refusal(ix, refusal);

        if (copy == NULL) {
            return KUBE_NOMEM;
        }
    }

    if (e->flags & KUBE_INDEX_F_DOOMED) {
        kube_free(ix->alloc, e->u.refusal);
        e->u.refusal = copy;
        return KUBE_OK;
    }

    group = e->u.group;
    kube_index_slice_unlink(ix, entry);

    if (e->named == 0) {
        kube_index_slice_drop(ix, entry, refusal);
        kube_index_group_tidy(ix, group);
        return KUBE_OK;
    }

    e->flags |= KUBE_INDEX_F_DOOMED;
    e->u.refusal = copy;

    doom_touch(ix, ix->entries[e->named].u.group, e->scope, read_ms);
    kube_index_group_tidy(ix, group);

    return KUBE_OK;
}

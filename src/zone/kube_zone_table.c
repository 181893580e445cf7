/*
 * kube_zone_table - looking keys up, taking and freeing entries, for the
 * writer.
 *
 * It writes no record and decides no order of stores that readers see but
 * those of chains: an entry is in no chain, or in the one of its hash.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_image.h"
#include "kube_zone_table.h"


const kube_record_t *
kube_zone_published(const kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t  offset;

    if (entry == 0 || entry > w->zone->geometry.entries_n) {
        return NULL;
    }

    offset = kube_zone_entry_offset(w->zone, entry);

    return (offset != 0) ? kube_zone_record_at(w->zone, offset) : NULL;
}


const kube_record_t *
kube_zone_newest(const kube_zone_writer_t *w, uint32_t entry)
{
    if (entry == 0 || entry > w->zone->geometry.entries_n) {
        return NULL;
    }

    if (w->side[entry].staged != 0) {
        return kube_zone_record_at(w->zone, w->side[entry].staged);
    }

    return kube_zone_published(w, entry);
}


/* Looks up item->id, and fills hash, entry, held and relabelled. */
static void
table_find(const kube_zone_writer_t *w, kube_zone_item_t *item)
{
    uint32_t                  e;
    kube_record_id_t         *held;
    const kube_record_t      *record;
    const kube_zone_entry_t  *entry;

    held = &item->held;
    item->hash = kube_zone_hash(w->zone, &item->id);

    for (e = kube_half_get(kube_zone_bucket(w->zone, item->hash));
         e != 0;
         e = kube_half_get(&entry->next))
    {
        entry = kube_zone_entry(w->zone, e);

        if (kube_half_get(&entry->hash) != item->hash) {
            continue;
        }

        record = kube_zone_newest(w, e);

        if (record != NULL
            && kube_record_id(record, record->size, held) == KUBE_OK
            && held->resource == item->id.resource
            && kube_str_eq(held->meta.name, item->id.meta.name)
            && kube_str_eq(held->meta.ns, item->id.meta.ns))
        {
            item->entry = e;
            item->relabelled = (record->kind != KUBE_RECORD_SLICE
                                || !kube_str_eq(held->service,
                                                item->id.service));
            return;
        }
    }

    memset(held, 0, sizeof(kube_record_id_t));
}


kube_rc_t
kube_zone_item(const kube_zone_writer_t *w, const kube_record_t *record,
    kube_zone_item_t *item)
{
    memset(item, 0, sizeof(kube_zone_item_t));

    if (kube_record_id(record, record->size, &item->id) != KUBE_OK) {
        return KUBE_INVALID;
    }

    item->record = record;
    table_find(w, item);

    return KUBE_OK;
}


kube_rc_t
kube_zone_item_name(const kube_zone_writer_t *w, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, kube_zone_item_t *item)
{
    memset(item, 0, sizeof(kube_zone_item_t));

    if (ns.len == 0 || ns.len > KUBE_NAMESPACE_LEN_MAX
        || name.len == 0 || name.len > KUBE_NAME_LEN_MAX)
    {
        return KUBE_INVALID;
    }

    item->id.resource = resource;
    item->id.meta.ns = ns;
    item->id.meta.name = name;
    table_find(w, item);

    return KUBE_OK;
}


kube_rc_t
kube_zone_item_entry(const kube_zone_writer_t *w, uint32_t entry,
    kube_zone_item_t *item)
{
    const kube_record_t  *record;

    memset(item, 0, sizeof(kube_zone_item_t));
    record = kube_zone_newest(w, entry);

    if (record == NULL
        || kube_record_id(record, record->size, &item->held) != KUBE_OK)
    {
        return KUBE_NOT_FOUND;
    }

    item->id = item->held;
    item->hash = kube_half_get(&kube_zone_entry(w->zone, entry)->hash);
    item->entry = entry;

    return KUBE_OK;
}


uint32_t
kube_zone_writer_find(const kube_zone_writer_t *w, kube_resource_t resource,
    kube_str_t ns, kube_str_t name)
{
    kube_zone_item_t  item;

    if (kube_zone_item_name(w, resource, ns, name, &item) != KUBE_OK) {
        return 0;
    }

    return item.entry;
}


uint32_t
kube_zone_writer_next(const kube_zone_writer_t *w, uint32_t entry)
{
    for (entry++; entry <= w->zone->geometry.entries_n; entry++) {
        if (kube_zone_newest(w, entry) != NULL) {
            return entry;
        }
    }

    return 0;
}


uint32_t
kube_zone_service_of(const kube_zone_writer_t *w, const kube_record_t *slice)
{
    uint32_t              e;
    kube_record_id_t      id;
    const kube_record_t  *service;

    if (kube_record_id(slice, slice->size, &id) != KUBE_OK) {
        return 0;
    }

    e = kube_zone_writer_find(w, KUBE_RESOURCE_SERVICES, id.meta.ns,
                              id.service);
    service = kube_zone_published(w, e);

    return (service != NULL && service->kind == KUBE_RECORD_SERVICE) ? e : 0;
}


const kube_ref_t *
kube_zone_ref_to(const kube_zone_writer_t *w, uint32_t offset,
    uint32_t *service)
{
    uint32_t              i;
    const kube_ref_t     *refs;
    const kube_record_t  *record;

    record = kube_zone_record_at(w->zone, offset);
    *service = w->side[record->entry].service;

    if (*service == KUBE_ZONE_SEVERAL) {
        *service = kube_zone_service_of(w, record);
    }

    record = kube_zone_published(w, *service);

    if (record == NULL) {
        return NULL;
    }

    refs = kube_record_refs(record);

    for (i = 0; i < record->refs_n; i++) {
        if (refs[i].offset == offset) {
            return &refs[i];
        }
    }

    return NULL;
}


void
kube_zone_service_names(kube_zone_writer_t *w, uint32_t service,
    uint32_t slice)
{
    uint32_t  *known;

    known = &w->side[slice].service;

    if (*known != service) {
        *known = (*known == 0) ? service : KUBE_ZONE_SEVERAL;
    }
}


bool
kube_zone_entry_available(const kube_zone_writer_t *w)
{
    uint32_t  first;

    first = w->quarantine_first;

    return w->unused != 0
           || (first != 0 && (uint32_t) w->now_ms - w->side[first].freed_ms
                             >= KUBE_ZONE_QUARANTINE_MS);
}


static void
table_unlink(kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t            e;
    kube_half_t        *link;
    kube_zone_entry_t  *freed;

    freed = kube_zone_entry(w->zone, entry);
    link = kube_zone_bucket(w->zone, kube_half_get(&freed->hash));

    for (e = kube_half_get(link); e != 0; e = kube_half_get(link)) {
        if (e == entry) {
            kube_half_set(link, kube_half_get(&freed->next));
            return;
        }

        link = &kube_zone_entry(w->zone, e)->next;
    }
}


static void
table_link(kube_zone_writer_t *w, uint32_t entry, uint32_t hash)
{
    kube_half_t        *bucket;
    kube_zone_entry_t  *taken;

    taken = kube_zone_entry(w->zone, entry);
    bucket = kube_zone_bucket(w->zone, hash);

    kube_half_set(&taken->hash, hash);
    kube_half_set(&taken->next, kube_half_get(bucket));
    KUBE_FAILPOINT("entry_unlinked");
    kube_half_set(bucket, entry);
}


uint32_t
kube_zone_entry_take(kube_zone_writer_t *w, uint32_t hash)
{
    uint32_t            entry;
    kube_zone_image_t  *image;

    image = w->zone->image;

    if (w->unused != 0) {
        entry = w->unused;
        w->unused = w->side[entry].next;
        table_link(w, entry, hash);

    } else if (kube_zone_entry_available(w)) {
        entry = w->quarantine_first;
        w->quarantine_first = w->side[entry].next;

        kube_word_set(&image->reuse, kube_word_get(&image->reuse) + 1);
        table_unlink(w, entry);
        table_link(w, entry, hash);
        kube_word_set(&image->reuse, kube_word_get(&image->reuse) + 1);

    } else {
        return 0;
    }

    w->side[entry].staged = 0;
    w->side[entry].next = 0;
    w->side[entry].freed_ms = 0;
    w->entries_used++;

    /* the last slice here was removed while a Service named it */
    if (w->side[entry].service != 0) {
        w->side[entry].service = KUBE_ZONE_SEVERAL;
    }

    return entry;
}


void
kube_zone_entry_free(kube_zone_writer_t *w, uint32_t entry)
{
    w->side[entry].staged = 0;
    w->side[entry].next = 0;
    w->side[entry].freed_ms = (uint32_t) w->now_ms;
    w->entries_used--;

    if (w->quarantine_first == 0) {
        w->quarantine_first = entry;

    } else {
        w->side[w->quarantine_last].next = entry;
    }

    w->quarantine_last = entry;
}


void
kube_zone_entry_publish(kube_zone_writer_t *w, uint32_t entry,
    uint32_t offset)
{
    const kube_record_t  *old;

    old = kube_zone_published(w, entry);

    if (old != NULL && old->kind == KUBE_RECORD_REFUSED) {
        w->refused--;
    }

    if (offset != 0
        && kube_zone_record_at(w->zone, offset)->kind == KUBE_RECORD_REFUSED)
    {
        w->refused++;
    }

    w->outdated -= (old != NULL && (old->flags & KUBE_RECORD_F_OUTDATED));
    w->outdated += (offset != 0
                    && (kube_zone_record_at(w->zone, offset)->flags
                        & KUBE_RECORD_F_OUTDATED));

    /* counted first: a scope's record that has the count has the store */
    kube_word_set(&w->zone->image->stores,
                  kube_word_get(&w->zone->image->stores) + 1);
    kube_head_set(&kube_zone_entry(w->zone, entry)->head, offset);
}


void
kube_zone_table_show(kube_zone_writer_t *w)
{
    kube_zone_image_t  *image;

    image = w->zone->image;

    kube_word_set(&image->live_bytes, w->live_bytes);
    kube_word_set(&image->entries_used, w->entries_used);
    kube_word_set(&image->refused, (uint64_t) w->refused + w->outdated);
}

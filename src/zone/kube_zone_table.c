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
#include "kube_zone_live.h"
#include "kube_zone_table.h"


/* Offset of an entry's newest record; 0: it holds none, or is no entry. */
static uint32_t
table_newest(const kube_zone_writer_t *w, uint32_t entry)
{
    const kube_zone_side_t  *side;

    if (entry == 0 || entry > w->zone->geometry.entries_n) {
        return 0;
    }

    side = &w->side[entry];

    return (side->staged != 0) ? side->staged : side->offset;
}


bool
kube_zone_holds(const kube_zone_writer_t *w, uint32_t entry)
{
    return table_newest(w, entry) != 0;
}


bool
kube_zone_is_staged(const kube_zone_writer_t *w, uint32_t entry)
{
    return kube_zone_holds(w, entry) && w->side[entry].staged != 0;
}


/*
 * What an entry holds is never NULL for its callers: in place of a record
 * that is not as it was written there is a refused name that nobody has.
 */
static const kube_record_t *
table_copy(const kube_zone_writer_t *w, uint32_t entry, uint32_t offset,
    kube_record_t *copy)
{
    size_t              i, size;
    uint64_t            word;
    const kube_word_t  *from;

    size = kube_zone_live_size(w, offset);
    from = kube_zone_words(w->zone, offset);

    for (i = 0; i < size / KUBE_ZONE_UNIT; i++) {
        word = kube_word_get(&from[i]);
        memcpy((char *) copy + i * KUBE_ZONE_UNIT, &word, KUBE_ZONE_UNIT);
    }

    if (size == 0
        || copy->size != size
        || copy->entry != entry
        || kube_record_measure(copy, size) != KUBE_OK)
    {
        *w->suspect = true;
        kube_record_raw_encode(KUBE_RECORD_REFUSED, "", 1, copy);
        copy->entry = entry;
    }

    return copy;
}


const kube_record_t *
kube_zone_published(const kube_zone_writer_t *w, uint32_t entry)
{
    if (entry == 0
        || entry > w->zone->geometry.entries_n
        || w->side[entry].offset == 0)
    {
        return NULL;
    }

    return table_copy(w, entry, w->side[entry].offset,
                      w->copies[KUBE_ZONE_COPY_PUBLISHED]);
}


const kube_record_t *
kube_zone_newest(const kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t  offset;

    offset = table_newest(w, entry);

    if (offset == 0) {
        return NULL;
    }

    return table_copy(w, entry, offset, w->copies[KUBE_ZONE_COPY_NEWEST]);
}


static bool
table_place(const kube_zone_writer_t *w, uint32_t entry, uint32_t offset,
    kube_zone_place_t *place)
{
    const kube_record_t  *header;

    if (offset == 0) {
        return false;
    }

    place->offset = offset;
    header = &place->header;

    if (!kube_zone_live_header(w, offset, &place->header)
        || header->entry != entry
        || header->content_size >= kube_record_base(header)
                                   - sizeof(kube_record_t))
    {
        *w->suspect = true;
        return false;
    }

    return true;
}


bool
kube_zone_place_newest(const kube_zone_writer_t *w, uint32_t entry,
    kube_zone_place_t *place)
{
    return table_place(w, entry, table_newest(w, entry), place);
}


bool
kube_zone_place_staged(const kube_zone_writer_t *w, uint32_t entry,
    kube_zone_place_t *place)
{
    return kube_zone_is_staged(w, entry)
           && table_place(w, entry, w->side[entry].staged, place);
}


bool
kube_zone_place_published(const kube_zone_writer_t *w, uint32_t entry,
    kube_zone_place_t *place)
{
    return kube_zone_holds(w, entry)
           && table_place(w, entry, w->side[entry].offset, place);
}


kube_digest_t
kube_zone_place_digest(const kube_zone_writer_t *w,
    const kube_zone_place_t *place)
{
    return kube_record_content_digest(
               kube_zone_record_at(w->zone, place->offset) + 1,
               place->header.content_size);
}


kube_str_t
kube_zone_place_rv(const kube_zone_writer_t *w,
    const kube_zone_place_t *place)
{
    kube_str_t  rv;

    return (kube_record_rv(kube_zone_record_at(w->zone, place->offset),
                           place->header.size, &rv)
            == KUBE_OK) ? rv : KUBE_STR_NULL;
}


kube_ref_t
kube_zone_place_ref(const kube_zone_writer_t *w,
    const kube_zone_place_t *place, uint32_t i)
{
    return kube_zone_ref_at(w->zone, place->offset, &place->header, i);
}


bool
kube_zone_place_same(const kube_zone_writer_t *w,
    const kube_zone_place_t *place, const kube_record_t *record, bool version)
{
    size_t                size, base;
    const kube_record_t  *header;

    header = &place->header;
    base = kube_record_base(header);
    size = version ? base - sizeof(kube_record_t) : header->content_size;

    /* between content and refs there is the resourceVersion alone */
    return header->kind == record->kind
           && header->resource == record->resource
           && header->content_size == record->content_size
           && (!version || base == kube_record_base(record))
           && memcmp(kube_zone_record_at(w->zone, place->offset) + 1,
                     record + 1, size) == 0;
}


/* The identity in an entry's live record, read where it lies, and its kind. */
static kube_rc_t
table_id(const kube_zone_writer_t *w, uint32_t entry, uint32_t offset,
    kube_record_id_t *id, unsigned *kind)
{
    uint32_t              size;
    const kube_record_t  *record;

    size = kube_zone_live_size(w, offset);
    record = kube_zone_record_at(w->zone, offset);

    if (size == 0
        || kube_record_id(record, size, id) != KUBE_OK
        || id->resource >= KUBE_RESOURCES_ROUTED
        || record->entry != entry)
    {
        *w->suspect = true;
        return KUBE_CORRUPT;
    }

    *kind = record->kind;

    return KUBE_OK;
}


kube_rc_t
kube_zone_entry_id(const kube_zone_writer_t *w, uint32_t entry,
    kube_record_id_t *id)
{
    unsigned  kind;
    uint32_t  offset;

    offset = table_newest(w, entry);

    return (offset != 0) ? table_id(w, entry, offset, id, &kind)
                         : KUBE_NOT_FOUND;
}


/*
 * The next entry of the chain of hash, after steps of it.  What is not known to
 * be in this chain, and a loop, end it here.
 */
static uint32_t
table_step(const kube_zone_writer_t *w, const kube_half_t *link,
    uint32_t hash, uint32_t steps)
{
    uint32_t  e;

    e = kube_half_get(link);

    if (e != 0
        && (e > w->entries_top
            || steps >= KUBE_ZONE_CHAIN_MAX
            || !w->side[e].linked
            || kube_zone_bucket(w->zone, w->side[e].hash)
               != kube_zone_bucket(w->zone, hash)))
    {
        *w->suspect = true;
        return 0;
    }

    return e;
}


bool
kube_zone_entry_is_intact(const kube_zone_writer_t *w, uint32_t entry)
{
    bool                      found;
    uint32_t                  e, steps;
    const kube_half_t        *link;
    const kube_zone_side_t   *side;
    const kube_zone_entry_t  *seen;

    side = &w->side[entry];
    seen = kube_zone_entry(w->zone, entry);

    if (kube_head_get(&seen->head) != side->offset) {
        return false;
    }

    if (!side->linked) {
        return true;
    }

    link = kube_zone_bucket(w->zone, side->hash);
    steps = 0;
    found = false;

    /* to the end: there may be a loop behind the entry */
    while ((e = table_step(w, link, side->hash, steps++)) != 0) {
        link = &kube_zone_entry(w->zone, e)->next;
        found = found || e == entry;
    }

    return found && kube_half_get(&seen->hash) == side->hash;
}


/* Looks up item->id, and fills hash, entry, held and relabelled. */
static void
table_find(const kube_zone_writer_t *w, kube_zone_item_t *item)
{
    unsigned           kind;
    uint32_t           e, steps;
    kube_half_t       *link;
    kube_record_id_t  *held;

    held = &item->held;
    item->hash = kube_zone_hash(w->zone, &item->id);
    link = kube_zone_bucket(w->zone, item->hash);
    steps = 0;

    while ((e = table_step(w, link, item->hash, steps++)) != 0) {
        link = &kube_zone_entry(w->zone, e)->next;

        if (w->side[e].hash == item->hash
            && kube_zone_holds(w, e)
            && table_id(w, e, table_newest(w, e), held, &kind) == KUBE_OK
            && held->resource == item->id.resource
            && kube_str_eq(held->meta.name, item->id.meta.name)
            && kube_str_eq(held->meta.ns, item->id.meta.ns))
        {
            item->entry = e;
            item->relabelled = (kind != KUBE_RECORD_SLICE
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

    if (kube_record_id(record, record->size, &item->id) != KUBE_OK
        || item->id.resource >= KUBE_RESOURCES_ROUTED)
    {
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
    memset(item, 0, sizeof(kube_zone_item_t));

    if (kube_zone_entry_id(w, entry, &item->held) != KUBE_OK) {
        return KUBE_NOT_FOUND;
    }

    item->id = item->held;
    item->hash = w->side[entry].hash;
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
    for (entry++; entry <= w->entries_top; entry++) {
        if (kube_zone_holds(w, entry)) {
            return entry;
        }
    }

    return 0;
}


uint32_t
kube_zone_writer_top(const kube_zone_writer_t *w)
{
    return w->entries_top;
}


/* The published Service that a slice of this identity names; 0: none. */
static uint32_t
table_service_of(const kube_zone_writer_t *w, const kube_record_id_t *slice)
{
    uint32_t  e;

    e = kube_zone_writer_find(w, KUBE_RESOURCE_SERVICES, slice->meta.ns,
                              slice->service);

    return (e != 0 && w->side[e].kind == KUBE_RECORD_SERVICE) ? e : 0;
}


uint32_t
kube_zone_service_of(const kube_zone_writer_t *w, const kube_record_t *slice)
{
    kube_record_id_t  id;

    if (kube_record_id(slice, slice->size, &id) != KUBE_OK) {
        return 0;
    }

    return table_service_of(w, &id);
}


bool
kube_zone_ref_to(const kube_zone_writer_t *w, uint32_t offset,
    const kube_record_t *slice, uint32_t *service, size_t *skip)
{
    uint32_t          i, at;
    unsigned          kind;
    kube_record_t     header;
    kube_record_id_t  id;

    /* only entries are of slices, whatever the header says */
    if (slice->entry > w->zone->geometry.entries_n) {
        return false;
    }

    *service = w->side[slice->entry].service;

    if (*service == KUBE_ZONE_SEVERAL) {
        *service = (table_id(w, slice->entry, offset, &id, &kind) == KUBE_OK)
                   ? table_service_of(w, &id) : 0;
    }

    at = w->side[*service].offset;

    if (*service == 0 || at == 0 || !kube_zone_live_header(w, at, &header)) {
        return false;
    }

    for (i = 0; i < header.refs_n; i++) {
        if (kube_zone_ref_at(w->zone, at, &header, i).offset == offset) {
            *skip = kube_record_base(&header) + i * sizeof(kube_ref_t);
            return true;
        }
    }

    return false;
}


void
kube_zone_service_names(kube_zone_writer_t *w, uint32_t service,
    uint32_t slice)
{
    uint32_t  *known;

    if (slice == 0 || slice > w->zone->geometry.entries_n) {
        *w->suspect = true;
        return;
    }

    known = &w->side[slice].service;

    if (*known != service) {
        *known = (*known == 0) ? service : KUBE_ZONE_SEVERAL;
    }
}


/* From anywhere in it. */
static void
table_leave_quarantine(kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t  prev, next;

    prev = w->side[entry].prev;
    next = w->side[entry].next;

    if (prev != 0) {
        w->side[prev].next = next;

    } else {
        w->quarantine_first = next;
    }

    if (next != 0) {
        w->side[next].prev = prev;

    } else {
        w->quarantine_last = prev;
    }

    w->side[entry].prev = 0;
    w->side[entry].freed = false;
}


/* An entry in quarantine that was taken for the same hash; 0: none. */
static uint32_t
table_find_freed(const kube_zone_writer_t *w, uint32_t hash)
{
    uint32_t            e, steps;
    const kube_half_t  *link;

    link = kube_zone_bucket(w->zone, hash);
    steps = 0;

    while ((e = table_step(w, link, hash, steps++)) != 0) {
        if (w->side[e].freed && w->side[e].hash == hash) {
            return e;
        }

        link = &kube_zone_entry(w->zone, e)->next;
    }

    return 0;
}


/* True if the entry that was freed first has rested. */
static bool
table_has_rested(const kube_zone_writer_t *w)
{
    uint32_t  first;

    first = w->quarantine_first;

    return first != 0
           && (uint32_t) w->now_ms - w->side[first].freed_ms
              >= KUBE_ZONE_QUARANTINE_MS;
}


bool
kube_zone_entry_available(const kube_zone_writer_t *w)
{
    return w->unused != 0
           || w->entries_top < w->zone->geometry.entries_n
           || w->quarantine_first != 0;
}


static void
table_unlink(kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t      e, hash, steps;
    kube_half_t  *link;

    hash = w->side[entry].hash;
    link = kube_zone_bucket(w->zone, hash);
    steps = 0;

    while ((e = table_step(w, link, hash, steps++)) != 0) {
        if (e == entry) {
            kube_half_set(link,
                          kube_half_get(&kube_zone_entry(w->zone, e)->next));
            return;
        }

        link = &kube_zone_entry(w->zone, e)->next;
    }

    *w->suspect = true;
}


static void
table_link(kube_zone_writer_t *w, uint32_t entry, uint32_t hash)
{
    uint32_t            next;
    kube_half_t        *bucket;
    kube_zone_entry_t  *taken;

    taken = kube_zone_entry(w->zone, entry);
    bucket = kube_zone_bucket(w->zone, hash);

    /* no reader may find anything here before it is stored */
    if (kube_head_get(&taken->head) != 0) {
        *w->suspect = true;
        kube_head_set(&taken->head, 0);
    }

    /* before it is known to be linked: the bucket may name it already */
    next = table_step(w, bucket, hash, 0);

    w->side[entry].hash = hash;
    w->side[entry].linked = true;
    kube_half_set(&taken->hash, hash);
    kube_half_set(&taken->next, next);
    KUBE_FAILPOINT("entry_unlinked");
    kube_half_set(bucket, entry);
}


/*
 * Those that have rested go before fresh ones: what is touched stays small.
 * One that has not goes before none.
 */
uint32_t
kube_zone_entry_take(kube_zone_writer_t *w, uint32_t hash)
{
    bool                fresh;
    uint32_t            entry;
    kube_zone_image_t  *image;

    image = w->zone->image;

    fresh = (w->entries_top < w->zone->geometry.entries_n);
    entry = table_find_freed(w, hash);

    if (entry != 0) {
        table_leave_quarantine(w, entry);

    } else if (w->unused != 0) {
        entry = w->unused;
        w->unused = w->side[entry].next;
        table_link(w, entry, hash);

    } else if (w->quarantine_first != 0
               && (!fresh || table_has_rested(w)))
    {
        entry = w->quarantine_first;
        table_leave_quarantine(w, entry);

        kube_word_set(&image->reuse, w->reuse + 1);
        table_unlink(w, entry);
        table_link(w, entry, hash);
        w->reuse += 2;
        kube_word_set(&image->reuse, w->reuse);

    } else if (fresh) {
        entry = ++w->entries_top;
        kube_word_set(&image->entries_top, entry);
        table_link(w, entry, hash);

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
    w->side[entry].prev = w->quarantine_last;
    w->side[entry].freed = true;
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
    kube_record_t      header;
    kube_zone_side_t  *side;

    side = &w->side[entry];

    if (side->kind == KUBE_RECORD_REFUSED) {
        w->refused--;
        w->refused_bytes -= kube_zone_live_size(w, side->offset);
    }

    w->outdated -= side->outdated;

    side->kind = 0;
    side->outdated = false;

    if (offset != 0 && kube_zone_live_header(w, offset, &header)) {
        side->kind = header.kind;
        side->outdated = (header.flags & KUBE_RECORD_F_OUTDATED) != 0;
    }

    if (side->kind == KUBE_RECORD_REFUSED) {
        w->refused++;
        w->refused_bytes += kube_zone_live_size(w, offset);
    }

    w->outdated += side->outdated;

    /* counted first: a scope's record that has the count has the store */
    kube_word_set(&w->zone->image->stores,
                  kube_word_get(&w->zone->image->stores) + 1);
    kube_zone_head_store(w, entry, offset);
}


void
kube_zone_head_store(kube_zone_writer_t *w, uint32_t number, uint32_t offset)
{
    w->side[number].offset = offset;
    kube_head_set(kube_zone_head_of(w->zone, number), offset);
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

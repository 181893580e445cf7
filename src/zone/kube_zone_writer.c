/*
 * kube_zone_writer - staging, publishing, refusing and removing objects.
 *
 * It decides what is taken and what is new.  Where records lie is the log's
 * (kube_zone_log.c), which entry an object has the table's, and in which
 * order readers come to see what is kube_zone_store.c's.  For the process
 * that holds the guard, one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_guard.h"
#include "kube_zone_image.h"
#include "kube_zone_live.h"
#include "kube_zone_log.h"
#include "kube_zone_store.h"
#include "kube_zone_writer.h"


/* A record of more than such a part of a segment is large. */
#define ZONE_LARGE  8


/* The sizes of the writer's tables, in bytes. */
static size_t
writer_side_size(const kube_zone_t *zone)
{
    return (kube_zone_server_number(zone) + 1ull) * sizeof(kube_zone_side_t);
}


static size_t
writer_bits_size(const kube_zone_t *zone)
{
    return (size_t) zone->geometry.segments_n * zone->geometry.segment_size
           / KUBE_ZONE_UNIT / 8;
}


static size_t
writer_segments_size(const kube_zone_t *zone)
{
    return (size_t) zone->geometry.segments_n * sizeof(kube_zone_segment_t);
}


static void
writer_free(kube_zone_writer_t *w)
{
    size_t  i;

    for (i = 0; i < KUBE_ZONE_COPIES; i++) {
        kube_free(w->alloc, w->copies[i]);
    }

    kube_pages_free(w->alloc, w->segments, writer_segments_size(w->zone));
    kube_pages_free(w->alloc, w->ends, writer_bits_size(w->zone));
    kube_pages_free(w->alloc, w->bits, writer_bits_size(w->zone));
    kube_pages_free(w->alloc, w->side, writer_side_size(w->zone));
    kube_free(w->alloc, w);
}


kube_zone_writer_t *
kube_zone_writer_create(const kube_alloc_t *alloc, kube_zone_t *zone)
{
    bool                 made;
    size_t               i;
    kube_zone_writer_t  *w;

    w = kube_zalloc(alloc, sizeof(kube_zone_writer_t));

    if (w == NULL) {
        return NULL;
    }

    w->alloc = alloc;
    w->zone = zone;
    w->suspect = &w->suspicion;
    w->open_segment = KUBE_ZONE_NO_SEGMENT;

    w->side = kube_pages_alloc(alloc, writer_side_size(zone));
    w->bits = kube_pages_alloc(alloc, writer_bits_size(zone));
    w->ends = kube_pages_alloc(alloc, writer_bits_size(zone));
    w->segments = kube_pages_alloc(alloc, writer_segments_size(zone));
    made = (w->side != NULL && w->bits != NULL && w->ends != NULL
            && w->segments != NULL);

    for (i = 0; i < KUBE_ZONE_COPIES; i++) {
        w->copies[i] = kube_alloc(alloc, kube_zone_record_max(zone));
        made = made && w->copies[i] != NULL;
    }

    if (!made) {
        writer_free(w);
        return NULL;
    }

    return w;
}


void
kube_zone_writer_destroy(kube_zone_writer_t *w)
{
    if (w == NULL) {
        return;
    }

    kube_zone_writer_release(w);
    writer_free(w);
}


void
kube_zone_writer_release(kube_zone_writer_t *w)
{
    if (w->held) {
        w->held = false;
        kube_zone_guard_release(w->zone);
    }
}


bool
kube_zone_writer_held(const kube_zone_writer_t *w)
{
    return w->held;
}


void
kube_zone_writer_now(kube_zone_writer_t *w, uint64_t now_ms)
{
    w->now_ms = now_ms;
}


static bool
writer_objects_are_max(const kube_zone_writer_t *w)
{
    return w->entries_used - w->refused
           >= w->zone->geometry.objects_max;
}


static uint32_t
writer_names_max(const kube_zone_writer_t *w)
{
    return w->zone->geometry.entries_n - w->zone->geometry.objects_max;
}


static uint64_t
writer_names_bytes(const kube_zone_writer_t *w)
{
    return (uint64_t) writer_names_max(w) * KUBE_ZONE_NAME_BYTES;
}


/* True if a name of size bytes fits, in place of what the entry holds. */
static bool
writer_name_fits(const kube_zone_writer_t *w, uint32_t entry, size_t size)
{
    if (entry != 0 && w->side[entry].kind == KUBE_RECORD_REFUSED) {
        size -= kube_zone_live_size(w, w->side[entry].offset);

    } else if (w->refused >= writer_names_max(w)) {
        return false;
    }

    return w->refused_bytes + size <= writer_names_bytes(w)
           && (entry != 0 || kube_zone_entry_available(w));
}


/* The item's entry, or 0 if it was freed when others made room. */
static uint32_t
writer_item_entry(const kube_zone_writer_t *w, const kube_zone_item_t *item)
{
    return kube_zone_holds(w, item->entry) ? item->entry : 0;
}


/* Makes room for a staged record.  KUBE_OK or KUBE_FULL. */
static kube_rc_t
writer_stage_room(kube_zone_writer_t *w, uint32_t entry, size_t size,
    unsigned flags)
{
    bool               held;
    uint64_t           credit;
    kube_zone_place_t  old;

    if (entry == 0 && !kube_zone_entry_available(w)) {
        return KUBE_FULL;
    }

    if (flags & KUBE_STAGE_USE_RESERVE) {
        return kube_zone_log_reserve(w, size, KUBE_ZONE_MOVES_FORCED);
    }

    /* the record that this one replaces goes once this one is published */
    held = kube_zone_place_newest(w, entry, &old);
    credit = held ? kube_record_base(&old.header) : 0;

    if (w->live_bytes + size > kube_zone_log_limit(w) + credit) {
        return KUBE_FULL;
    }

    if ((!held || old.header.kind == KUBE_RECORD_REFUSED)
        && writer_objects_are_max(w))
    {
        return KUBE_FULL;
    }

    return kube_zone_log_reserve(w, size, KUBE_ZONE_MOVES);
}


bool
kube_zone_is_same(const kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *record)
{
    kube_zone_place_t  published;

    return kube_zone_place_published(w, entry, &published)
           && kube_zone_place_same(w, &published, record, false);
}


kube_rc_t
kube_zone_stage_item(kube_zone_writer_t *w, kube_zone_item_t *item,
    unsigned flags)
{
    bool                  same;
    uint32_t              e, offset;
    uint64_t              revision;
    kube_zone_place_t     published;
    const kube_record_t  *record;

    record = item->record;

    if (record->size > kube_zone_record_max(w->zone)) {
        return KUBE_TOO_LARGE;
    }

    e = writer_item_entry(w, item);
    same = kube_zone_place_published(w, e, &published)
           && kube_zone_place_same(w, &published, record, false);

    if (same
        && published.header.flags == record->flags
        && kube_zone_place_same(w, &published, record, true))
    {
        kube_zone_store_unstage(w, e);
        kube_zone_table_show(w);
        return KUBE_OK;
    }

    if (writer_stage_room(w, e, kube_record_base(record), flags) != KUBE_OK) {
        kube_word_add(&w->zone->image->history.failures, 1);
        return KUBE_FULL;
    }

    if (e == 0) {
        e = kube_zone_entry_take(w, item->hash);
        item->entry = e;
    }

    revision = same ? published.header.revision : kube_zone_store_revision(w);

    offset = kube_zone_log_append(w, record, e, revision, 0);
    KUBE_FAILPOINT("stage_written");

    kube_zone_store_unstage(w, e);
    w->side[e].staged = offset;

    if (item->relabelled && w->side[e].service != 0) {
        w->side[e].service = KUBE_ZONE_SEVERAL;
    }

    kube_zone_table_show(w);

    return KUBE_OK;
}


kube_rc_t
kube_zone_stage(kube_zone_writer_t *w, const kube_record_t *record,
    unsigned flags, uint32_t *entry)
{
    kube_rc_t         rc;
    kube_zone_item_t  item;

    if (record->size > kube_zone_record_max(w->zone)) {
        return KUBE_TOO_LARGE;
    }

    rc = kube_zone_item(w, record, &item);

    if (rc == KUBE_OK) {
        rc = kube_zone_stage_item(w, &item, flags);
        *entry = item.entry;
    }

    return rc;
}


static bool
writer_slice_is_of(const kube_zone_writer_t *w, uint32_t slice,
    uint32_t service)
{
    uint32_t          offset;
    kube_record_t     header;
    kube_record_id_t  id, slice_id;

    if (!kube_zone_holds(w, slice)) {
        return false;
    }

    offset = (w->side[slice].staged != 0) ? w->side[slice].staged
                                          : w->side[slice].offset;

    if (!kube_zone_live_header(w, offset, &header)
        || header.entry != slice
        || header.kind != KUBE_RECORD_SLICE)
    {
        return false;
    }

    /* the slice was published with this Service and has kept its label */
    if (w->side[slice].service == service) {
        return true;
    }

    return kube_zone_entry_id(w, service, &id) == KUBE_OK
           && kube_zone_entry_id(w, slice, &slice_id) == KUBE_OK
           && kube_str_eq(slice_id.service, id.meta.name)
           && kube_str_eq(slice_id.meta.ns, id.meta.ns);
}


kube_rc_t
kube_zone_publish(kube_zone_writer_t *w, uint32_t service,
    const uint32_t *slices, size_t n, bool *changed)
{
    size_t  i;

    *changed = false;

    if (n > KUBE_SERVICE_SLICES_MAX) {
        return KUBE_INVALID;
    }

    for (i = 0; i < n; i++) {
        if (!writer_slice_is_of(w, slices[i], service)) {
            return KUBE_INVALID;
        }
    }

    return kube_zone_store_service(w, service, slices, n, false, changed);
}


void
kube_zone_publish_orphan(kube_zone_writer_t *w, uint32_t slice)
{
    kube_zone_store_staged(w, slice);
}


kube_rc_t
kube_zone_refuse(kube_zone_writer_t *w, kube_zone_item_t *item, kube_str_t rv,
    kube_str_t reason)
{
    uint32_t          e, offset;
    kube_record_id_t  id;

    union {
        kube_record_t  record;
        unsigned char  bytes[KUBE_RECORD_REFUSED_MAX];
    } refused;

    /* the item's names may lie in the zone: encode before anything moves */
    id = item->id;
    id.meta.rv = rv;
    id.reason = reason;

    if (kube_record_refused_encode(&id, refused.bytes) == 0) {
        return KUBE_INVALID;
    }

    e = writer_item_entry(w, item);

    if (kube_zone_is_same(w, e, &refused.record)
        && w->side[e].staged == 0
        && kube_record_same_version(kube_zone_published(w, e),
                                    &refused.record))
    {
        return KUBE_OK;
    }

    if (!writer_name_fits(w, e, refused.record.size)
        || kube_zone_log_reserve(w, refused.record.size,
                                 KUBE_ZONE_MOVES_FORCED) != KUBE_OK)
    {
        kube_word_add(&w->zone->image->history.failures, 1);
        return KUBE_FULL;
    }

    if (e == 0) {
        e = kube_zone_entry_take(w, item->hash);
        item->entry = e;
    }

    offset = kube_zone_log_append(w, &refused.record, e,
                                  kube_zone_store_revision(w), 0);
    kube_zone_store_entry(w, e, offset);

    return KUBE_OK;
}


void
kube_zone_unstage(kube_zone_writer_t *w, uint32_t entry)
{
    if (kube_zone_is_staged(w, entry) && w->side[entry].offset != 0) {
        kube_zone_store_unstage(w, entry);
    }
}


void
kube_zone_outdate(kube_zone_writer_t *w, uint32_t entry,
    kube_reason_t reason, uint64_t since_ms)
{
    const kube_record_t  *record;

    record = kube_zone_newest(w, entry);

    if (record != NULL && record->kind != KUBE_RECORD_REFUSED) {
        kube_zone_store_outdated(w, entry,
                                 kube_record_outdated(reason, since_ms));
    }
}


void
kube_zone_remove(kube_zone_writer_t *w, uint32_t entry)
{
    if (kube_zone_holds(w, entry)) {
        kube_zone_store_entry(w, entry, 0);
        kube_zone_entry_free(w, entry);
        kube_zone_table_show(w);
    }
}


void
kube_zone_evict_begin(kube_zone_writer_t *w, uint32_t entry, unsigned scope)
{
    kube_word_set(&w->zone->image->evicting_scope, scope);
    kube_head_set(&w->zone->image->evicting, entry);
}


void
kube_zone_evict_end(kube_zone_writer_t *w)
{
    kube_head_set(&w->zone->image->evicting, 0);
}


uint64_t
kube_zone_room(const kube_zone_writer_t *w)
{
    return kube_zone_log_limit(w) - writer_names_bytes(w);
}


uint32_t
kube_zone_names_left(const kube_zone_writer_t *w)
{
    uint32_t  n;
    uint64_t  bytes;

    n = writer_names_max(w);
    bytes = writer_names_bytes(w);
    n = (w->refused < n) ? n - w->refused : 0;
    bytes = (w->refused_bytes < bytes) ? bytes - w->refused_bytes : 0;
    bytes = (bytes >= KUBE_RECORD_REFUSED_MAX) ? bytes / KUBE_ZONE_NAME_BYTES
                                               : 0;

    return (bytes < n) ? (uint32_t) bytes : n;
}


uint64_t
kube_zone_room_of(const kube_zone_writer_t *w, uint64_t size)
{
    uint64_t  least, segment;

    least = kube_zone_log_limit(w) / w->zone->geometry.objects_max + 1;
    segment = w->zone->geometry.segment_size;

    if (size > segment / ZONE_LARGE && size <= segment) {
        size = segment / (segment / size);
    }

    return (size > least) ? size : least;
}


void
kube_zone_count_failure(kube_zone_writer_t *w)
{
    kube_word_add(&w->zone->image->history.failures, 1);
}

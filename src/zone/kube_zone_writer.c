/*
 * kube_zone_writer - the guard, staging, publishing, removing.
 *
 * It knows neither where records find room (kube_zone_segment.c) nor how
 * entries are found (kube_zone_table.c); it decides in which order readers
 * come to see what.  For the process that holds the guard, one thread.
 *
 * Order of stores in publish: the new Service record with the new places of
 * its slices under one head store, then the slices' own heads; old records
 * are counted dead afterwards.  A death in between leaves the old or the new
 * state of the Service, and the walk at acquire follows the Service's refs.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE  200809L
#endif

#include <errno.h>
#include <string.h>

#include "kube_failpoint.h"
#include "kube_zone_private.h"


/* SCOPE, ERROR, INFO and REFUSED records are built on the stack. */
#define WRITER_SMALL  1024

typedef union {
    kube_record_t  record;
    unsigned char  bytes[WRITER_SMALL];
} writer_small_t;


kube_zone_writer_t *
kube_zone_writer_create(const kube_alloc_t *alloc, kube_zone_t *zone)
{
    char                        *p;
    size_t                       head, side, bits, segments;
    kube_zone_writer_t          *w;
    const kube_zone_geometry_t  *g;

    g = &zone->image->geometry;

    /* one block: all parts are multiples of 8 */
    head = (sizeof(kube_zone_writer_t) + 7) / 8 * 8;
    side = ((size_t) g->entries_n + 1) * sizeof(kube_zone_side_t);
    bits = (size_t) g->segments_n * g->segment_size / KUBE_ZONE_UNIT / 8;
    segments = (size_t) g->segments_n * sizeof(kube_zone_segment_t);

    p = kube_zalloc(alloc, head + side + bits + segments);

    if (p == NULL) {
        return NULL;
    }

    w = (kube_zone_writer_t *) (void *) p;
    w->alloc = alloc;
    w->zone = zone;
    w->side = (kube_zone_side_t *) (void *) (p + head);
    w->bits = (uint64_t *) (void *) (p + head + side);
    w->segments = (kube_zone_segment_t *) (void *) (p + head + side + bits);
    w->open_segment = KUBE_ZONE_NO_SEGMENT;

    return w;
}


void
kube_zone_writer_destroy(kube_zone_writer_t *w)
{
    if (w == NULL) {
        return;
    }

    kube_zone_writer_release(w);
    kube_free(w->alloc, w);
}


static kube_rc_t
writer_guard_lock(kube_zone_image_t *image, bool *crashed)
{
    *crashed = false;

    switch (pthread_mutex_trylock(&image->guard)) {
    case 0:
        return KUBE_OK;

    case EBUSY:
        return KUBE_BUSY;

    case EOWNERDEAD:
        *crashed = true;
        return (pthread_mutex_consistent(&image->guard) == 0) ? KUBE_OK
                                                              : KUBE_CORRUPT;
    default:
        return KUBE_CORRUPT;
    }
}


kube_rc_t
kube_zone_writer_acquire(kube_zone_writer_t *w, uint64_t now_ms,
    kube_takeover_t *takeover)
{
    kube_rc_t           rc;
    kube_zone_image_t  *image;

    memset(takeover, 0, sizeof(kube_takeover_t));
    image = w->zone->image;

    if (w->held) {
        return KUBE_BUSY;
    }

    if (kube_zone_geometry_check(image, w->zone->size) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    rc = writer_guard_lock(image, &takeover->crashed);

    if (rc != KUBE_OK) {
        return rc;
    }

    w->held = true;
    kube_word_set(&image->starting_pid, 0);
    KUBE_FAILPOINT("acquire_locked");

    if (kube_word_get(&image->epoch) != 0) {
        kube_word_add(&image->takeovers, 1);
    }

    kube_word_add(&image->epoch, 1);
    takeover->epoch = kube_word_get(&image->epoch);

    w->now_ms = now_ms;
    kube_zone_recover(w, takeover);
    KUBE_FAILPOINT("acquire_walked");

    return KUBE_OK;
}


void
kube_zone_writer_release(kube_zone_writer_t *w)
{
    if (!w->held) {
        return;
    }

    w->held = false;
    kube_word_set(&w->zone->image->writer_pid, 0);
    (void) pthread_mutex_unlock(&w->zone->image->guard);
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


uint64_t
kube_zone_revision_next(kube_zone_writer_t *w)
{
    uint64_t  revision;

    revision = kube_word_get(&w->zone->image->revision) + 1;
    kube_word_set(&w->zone->image->revision, revision);

    return revision;
}


static void
writer_drop_staged(kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t  offset;

    offset = w->side[entry].staged;
    w->side[entry].staged = 0;

    kube_zone_log_drop(w, offset);
}


static uint32_t
writer_objects(const kube_zone_writer_t *w)
{
    return w->entries_used - w->refused;
}


static bool
writer_rv_same(const kube_record_t *a, const kube_record_t *b)
{
    size_t  tail;

    /* the same content: the same place; the tail up to base is the rv */
    tail = sizeof(kube_record_t) + a->content_size;

    return kube_record_base(a) == kube_record_base(b)
           && memcmp((const char *) a + tail, (const char *) b + tail,
                     kube_record_base(a) - tail) == 0;
}


/* Room for a staged record, as an ordinary put or with the reserve. */
static kube_rc_t
writer_stage_room(kube_zone_writer_t *w, uint32_t entry, size_t size,
    unsigned flags)
{
    uint64_t              credit;
    const kube_record_t  *old;

    if (entry == 0 && !kube_zone_entry_available(w)) {
        return KUBE_FULL;
    }

    if (flags & KUBE_STAGE_USE_RESERVE) {
        return kube_zone_log_reserve(w, size, KUBE_ZONE_MOVES_FORCED);
    }

    /* what it replaces goes once it is published */
    old = kube_zone_newest(w, entry);
    credit = (old != NULL) ? kube_record_base(old) : 0;

    if (w->live_bytes + size > kube_zone_log_limit(w) + credit) {
        return KUBE_FULL;
    }

    if ((old == NULL || old->kind == KUBE_RECORD_REFUSED)
        && writer_objects(w) >= w->zone->image->geometry.objects_max)
    {
        return KUBE_FULL;
    }

    return kube_zone_log_reserve(w, size, KUBE_ZONE_MOVES);
}


bool
kube_zone_is_same(const kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *record)
{
    const kube_record_t  *published;

    published = kube_zone_published(w, entry);

    return published != NULL && kube_record_same(published, record);
}


/* What made room since the item was made may have taken its entry, too. */
static uint32_t
writer_item_entry(const kube_zone_writer_t *w, const kube_zone_item_t *item)
{
    return (kube_zone_newest(w, item->entry) != NULL) ? item->entry : 0;
}


kube_rc_t
kube_zone_stage_item(kube_zone_writer_t *w, kube_zone_item_t *item,
    unsigned flags)
{
    bool                  same;
    uint32_t              e, offset;
    uint64_t              revision;
    const kube_record_t  *record, *published;

    record = item->record;

    if (record->size > kube_zone_record_max(w->zone)) {
        return KUBE_TOO_LARGE;
    }

    e = writer_item_entry(w, item);
    published = kube_zone_published(w, e);
    same = kube_zone_is_same(w, e, record);

    if (same
        && published->flags == record->flags
        && writer_rv_same(published, record))
    {
        writer_drop_staged(w, e);
        kube_zone_table_show(w);
        return KUBE_OK;
    }

    if (writer_stage_room(w, e, kube_record_base(record), flags) != KUBE_OK) {
        kube_word_add(&w->zone->image->failures, 1);
        return KUBE_FULL;
    }

    if (e == 0) {
        e = kube_zone_entry_take(w, item->hash);
    }

    /* making room may have moved it */
    published = kube_zone_published(w, e);
    revision = same ? published->revision : kube_zone_revision_next(w);

    offset = kube_zone_log_append(w, record, e, revision);
    KUBE_FAILPOINT("stage_written");

    writer_drop_staged(w, e);
    w->side[e].staged = offset;

    if (item->relabelled && w->side[e].service != 0) {
        w->side[e].service = KUBE_ZONE_SEVERAL;
    }

    item->entry = e;
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


static uint32_t
writer_newest_offset(const kube_zone_writer_t *w, uint32_t entry)
{
    return (w->side[entry].staged != 0) ? w->side[entry].staged
                                        : kube_zone_entry_offset(w, entry);
}


/* What a publication would change. */
typedef struct {
    bool  same_refs;         /* nothing at all */
    bool  same_revisions;    /* versions and places only */
} writer_diff_t;


static const kube_ref_t *
writer_ref_of(const kube_ref_t *refs, size_t n, size_t hint, uint32_t entry)
{
    size_t  i;

    if (hint < n && refs[hint].entry == entry) {
        return &refs[hint];
    }

    for (i = 0; i < n; i++) {
        if (refs[i].entry == entry) {
            return &refs[i];
        }
    }

    return NULL;
}


static writer_diff_t
writer_diff(const kube_zone_writer_t *w, const kube_record_t *published,
    const uint32_t *slices, size_t n)
{
    size_t             i;
    uint32_t           offset;
    writer_diff_t      diff;
    const kube_ref_t  *refs, *ref;

    diff.same_refs = (published->refs_n == n);
    diff.same_revisions = diff.same_refs;
    refs = kube_record_refs(published);

    for (i = 0; i < n && diff.same_revisions; i++) {
        offset = writer_newest_offset(w, slices[i]);
        ref = writer_ref_of(refs, n, i, slices[i]);

        if (ref == NULL) {
            diff.same_refs = false;
            diff.same_revisions = false;

        } else if (ref->offset != offset) {
            diff.same_refs = false;
            diff.same_revisions = (kube_zone_record_at(w, ref->offset)
                                   ->revision
                                   == kube_zone_record_at(w, offset)
                                      ->revision);
        }
    }

    return diff;
}


static bool
writer_slice_is_of(const kube_zone_writer_t *w, uint32_t slice,
    uint32_t service)
{
    kube_record_id_t      id, slice_id;
    const kube_record_t  *record, *slice_record;

    slice_record = kube_zone_newest(w, slice);

    if (slice_record == NULL || slice_record->kind != KUBE_RECORD_SLICE) {
        return false;
    }

    /* it was published as one, and has kept its label since */
    if (w->side[slice].service == service) {
        return true;
    }

    record = kube_zone_newest(w, service);

    return kube_record_id(record, record->size, &id) == KUBE_OK
           && kube_record_id(slice_record, slice_record->size, &slice_id)
              == KUBE_OK
           && kube_str_eq(slice_id.service, id.meta.name)
           && kube_str_eq(slice_id.meta.ns, id.meta.ns);
}


static uint32_t
writer_service_append(kube_zone_writer_t *w, uint32_t service,
    const uint32_t *slices, size_t n, uint64_t revision)
{
    size_t                i, base;
    uint32_t              offset;
    kube_ref_t            ref;
    kube_record_t         header;
    const kube_record_t  *newest;

    newest = kube_zone_newest(w, service);
    base = kube_record_base(newest);
    offset = kube_zone_log_take(w, base + n * sizeof(kube_ref_t));

    header = *newest;
    header.size = (uint32_t) (base + n * sizeof(kube_ref_t));
    header.refs_n = (uint32_t) n;
    header.entry = service;
    header.revision = revision;

    kube_zone_log_store(w, offset, 0, &header, sizeof(kube_record_t));
    kube_zone_log_store(w, offset, sizeof(kube_record_t), newest + 1,
                        base - sizeof(kube_record_t));

    for (i = 0; i < n; i++) {
        ref.entry = slices[i];
        ref.offset = writer_newest_offset(w, slices[i]);
        kube_zone_log_store(w, offset, base + i * sizeof(kube_ref_t), &ref,
                            sizeof(kube_ref_t));
    }

    return offset;
}


void
kube_zone_publish_orphan(kube_zone_writer_t *w, uint32_t slice)
{
    uint32_t  old, offset;

    offset = w->side[slice].staged;

    if (offset == 0) {
        return;
    }

    old = kube_zone_entry_offset(w, slice);
    kube_zone_entry_publish(w, slice, offset);
    w->side[slice].staged = 0;

    kube_zone_log_drop(w, old);
    kube_zone_table_show(w);
}


kube_rc_t
kube_zone_service_publish(kube_zone_writer_t *w, uint32_t service,
    const uint32_t *slices, size_t n, bool broken, bool *changed)
{
    size_t                i;
    uint32_t              offset, old, staged;
    uint64_t              revision;
    writer_diff_t         diff;
    const kube_record_t  *newest, *published;

    newest = kube_zone_newest(w, service);
    published = kube_zone_published(w, service);
    *changed = true;

    if (published != NULL && published->kind == KUBE_RECORD_SERVICE
        && !broken)
    {
        diff = writer_diff(w, published, slices, n);
        *changed = !diff.same_revisions
                   || !kube_record_same(newest, published);

        if (diff.same_refs && newest == published) {
            return KUBE_OK;
        }
    }

    if (kube_zone_log_reserve(w, kube_record_base(newest)
                                 + n * sizeof(kube_ref_t),
                              KUBE_ZONE_MOVES_FORCED)
        != KUBE_OK)
    {
        kube_word_add(&w->zone->image->failures, 1);
        *changed = false;
        return KUBE_FULL;
    }

    published = kube_zone_published(w, service);
    revision = *changed ? kube_zone_revision_next(w) : published->revision;

    offset = writer_service_append(w, service, slices, n, revision);
    KUBE_FAILPOINT("publish_written");

    old = kube_zone_entry_offset(w, service);
    kube_zone_entry_publish(w, service, offset);
    KUBE_FAILPOINT("publish_service");

    staged = w->side[service].staged;
    w->side[service].staged = 0;

    for (i = 0; i < n; i++) {
        kube_zone_publish_orphan(w, slices[i]);
        KUBE_FAILPOINT("publish_slice");
    }

    kube_zone_log_drop(w, staged);
    kube_zone_log_drop_service(w, old, !broken);

    for (i = 0; i < n; i++) {
        kube_zone_service_names(w, service, slices[i]);
    }

    kube_zone_table_show(w);

    return KUBE_OK;
}


kube_rc_t
kube_zone_publish(kube_zone_writer_t *w, uint32_t service,
    const uint32_t *slices, size_t n, bool *changed)
{
    size_t                i;
    const kube_record_t  *newest;

    *changed = false;
    newest = kube_zone_newest(w, service);

    if (newest == NULL
        || newest->kind != KUBE_RECORD_SERVICE
        || n > KUBE_SERVICE_SLICES_MAX)
    {
        return KUBE_INVALID;
    }

    for (i = 0; i < n; i++) {
        if (!writer_slice_is_of(w, slices[i], service)) {
            return KUBE_INVALID;
        }
    }

    return kube_zone_service_publish(w, service, slices, n, false, changed);
}


void
kube_zone_remove(kube_zone_writer_t *w, uint32_t entry)
{
    uint32_t  old;

    if (kube_zone_newest(w, entry) == NULL) {
        return;
    }

    old = kube_zone_entry_offset(w, entry);

    if (old != 0) {
        kube_zone_entry_publish(w, entry, 0);
        KUBE_FAILPOINT("remove_head");
    }

    writer_drop_staged(w, entry);
    kube_zone_log_drop_service(w, old, true);
    kube_zone_entry_free(w, entry);
    kube_zone_table_show(w);
}


kube_rc_t
kube_zone_refuse(kube_zone_writer_t *w, kube_zone_item_t *item, kube_str_t rv,
    kube_str_t reason)
{
    uint32_t         e, old, offset;
    writer_small_t   small;

    /* the item's names may lie in the zone: written down before it changes */
    kube_record_refused_encode(item->id.resource, item->id.meta.ns,
                               item->id.meta.name, rv, reason, small.bytes);

    e = writer_item_entry(w, item);

    if (kube_zone_is_same(w, e, &small.record)
        && w->side[e].staged == 0
        && writer_rv_same(kube_zone_published(w, e), &small.record))
    {
        return KUBE_OK;
    }

    if ((e == 0 && !kube_zone_entry_available(w))
        || kube_zone_log_reserve(w, small.record.size,
                                 KUBE_ZONE_MOVES_FORCED) != KUBE_OK)
    {
        kube_word_add(&w->zone->image->failures, 1);
        return KUBE_FULL;
    }

    if (e == 0) {
        e = kube_zone_entry_take(w, item->hash);
    }

    offset = kube_zone_log_append(w, &small.record, e,
                                  kube_zone_revision_next(w));
    old = kube_zone_entry_offset(w, e);
    kube_zone_entry_publish(w, e, offset);
    KUBE_FAILPOINT("refuse_head");

    writer_drop_staged(w, e);
    kube_zone_log_drop_service(w, old, true);
    item->entry = e;
    kube_zone_table_show(w);

    return KUBE_OK;
}


bool
kube_zone_has_room(const kube_zone_writer_t *w, size_t size)
{
    return w->live_bytes + size <= kube_zone_log_limit(w)
           && writer_objects(w) < w->zone->image->geometry.objects_max
           && kube_zone_log_has_room(w, size);
}


kube_rc_t
kube_zone_put_raw(kube_zone_writer_t *w, uint32_t number,
    kube_record_kind_t kind, kube_resource_t resource, const void *content,
    size_t size)
{
    uint32_t         old, offset;
    kube_word_t     *head;
    writer_small_t   small;

    if (kube_record_raw_size(size) > WRITER_SMALL) {
        return KUBE_TOO_LARGE;
    }

    kube_record_raw_encode(kind, resource, content, size, small.bytes);

    if (kube_zone_log_reserve(w, small.record.size, KUBE_ZONE_MOVES_FORCED)
        != KUBE_OK)
    {
        return KUBE_FULL;
    }

    offset = kube_zone_log_append(w, &small.record, number, 0);
    head = kube_zone_head_of(w->zone, number);
    old = kube_head_offset(kube_word_get(head));
    kube_head_set(head, offset);
    KUBE_FAILPOINT("raw_head");

    kube_zone_log_drop(w, old);
    kube_zone_table_show(w);

    return KUBE_OK;
}


void
kube_zone_clear_raw(kube_zone_writer_t *w, uint32_t number)
{
    uint32_t      old;
    kube_word_t  *head;

    head = kube_zone_head_of(w->zone, number);
    old = kube_head_offset(kube_word_get(head));

    if (old != 0) {
        kube_head_set(head, 0);
        kube_zone_log_drop(w, old);
        kube_zone_table_show(w);
    }
}

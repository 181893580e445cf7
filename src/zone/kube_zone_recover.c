/*
 * kube_zone_recover - the walk at acquire: what a predecessor left is
 * validated, completed or cut off, and the writer's own state made anew.
 *
 * It trusts nothing but the geometry.  Its work is bounded by the number of
 * entries and their records, whatever the bytes are.  Dying in it is
 * harmless: every step leaves the image as good as it found it.  Called by
 * acquire only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_failpoint.h"
#include "kube_zone_private.h"


/*
 * During the walk, kube_zone_side_t.freed_ms holds marks, and next the list
 * of a Service's slices: its first in the Service's, the next in a slice's.
 */
#define RECOVER_LINKED  0x1u
#define RECOVER_BROKEN  0x2u


static uint32_t
recover_entries(const kube_zone_writer_t *w)
{
    return w->zone->image->geometry.entries_n;
}


static void
recover_reset(kube_zone_writer_t *w)
{
    uint32_t                     e;
    const kube_zone_geometry_t  *g;

    g = &w->zone->image->geometry;

    memset(w->side, 0, (g->entries_n + 1ull) * sizeof(kube_zone_side_t));

    for (e = 1; e <= g->entries_n; e++) {
        w->side[e].service = KUBE_ZONE_SEVERAL;
    }

    memset(w->bits, 0,
           (size_t) g->segments_n * g->segment_size / KUBE_ZONE_UNIT / 8);
    memset(w->segments, 0, g->segments_n * sizeof(kube_zone_segment_t));

    w->open_segment = KUBE_ZONE_NO_SEGMENT;
    w->free_n = 0;
    w->live_bytes = 0;
    w->entries_used = 0;
    w->refused = 0;
    w->unused = 0;
    w->quarantine_first = 0;
    w->quarantine_last = 0;
}


/* The valid record of number at offset; NULL: there is none. */
static const kube_record_t *
recover_record(const kube_zone_writer_t *w, uint32_t number, uint32_t offset)
{
    size_t                room;
    const kube_record_t  *record;

    room = kube_zone_room_at(w->zone, offset);

    if (room == 0) {
        return NULL;
    }

    record = kube_zone_record_at(w, offset);

    if (kube_record_validate(record, room) != KUBE_OK
        || record->entry != number)
    {
        return NULL;
    }

    return record;
}


/* The same for the record of an object, which must be this entry's. */
static const kube_record_t *
recover_object(const kube_zone_writer_t *w, uint32_t entry, uint32_t offset,
    kube_record_id_t *id)
{
    uint32_t              hash;
    const kube_record_t  *record;

    record = recover_record(w, entry, offset);

    if (record == NULL
        || kube_record_id(record, record->size, id) != KUBE_OK)
    {
        return NULL;
    }

    hash = kube_zone_hash(w->zone, id);

    if (hash != kube_half_get(&kube_zone_entry(w->zone, entry)->hash)) {
        return NULL;
    }

    return record;
}


static void
recover_cut_off(kube_zone_writer_t *w, uint32_t entry,
    kube_takeover_t *takeover)
{
    kube_head_set(&kube_zone_entry(w->zone, entry)->head, 0);
    takeover->cut_off++;
}


static void
recover_revision(kube_zone_writer_t *w, const kube_record_t *record)
{
    kube_zone_image_t  *image;

    image = w->zone->image;

    if (record->revision > kube_word_get(&image->revision)) {
        kube_word_set(&image->revision, record->revision);
    }
}


static void
recover_heads(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    uint32_t              e, offset;
    kube_record_id_t      id;
    const kube_record_t  *record;

    for (e = 1; e <= recover_entries(w); e++) {
        offset = kube_zone_entry_offset(w, e);

        if (offset == 0) {
            continue;
        }

        record = recover_object(w, e, offset, &id);

        if (record == NULL) {
            recover_cut_off(w, e, takeover);

        } else {
            recover_revision(w, record);
        }
    }
}


/* A ref to a valid slice of this Service. */
static const kube_record_t *
recover_ref(const kube_zone_writer_t *w, const kube_record_id_t *service,
    kube_ref_t ref)
{
    kube_record_id_t      id;
    const kube_record_t  *slice;

    if (ref.entry == 0 || ref.entry > recover_entries(w)) {
        return NULL;
    }

    slice = recover_object(w, ref.entry, ref.offset, &id);

    if (slice == NULL
        || slice->kind != KUBE_RECORD_SLICE
        || !kube_str_eq(id.service, service->meta.name)
        || !kube_str_eq(id.meta.ns, service->meta.ns))
    {
        return NULL;
    }

    return slice;
}


/*
 * A Service was published and its slices' heads not yet: they follow.  Equal
 * revisions: a new resourceVersion, or a move; the ref is the newer one.
 */
static void
recover_adopt(kube_zone_writer_t *w, kube_ref_t ref,
    const kube_record_t *slice)
{
    const kube_record_t  *now;

    now = kube_zone_published(w, ref.entry);

    if (now == NULL
        || (slice->revision >= now->revision
            && kube_zone_entry_offset(w, ref.entry) != ref.offset))
    {
        kube_head_set(&kube_zone_entry(w->zone, ref.entry)->head, ref.offset);
        recover_revision(w, slice);
    }
}


static void
recover_service_refs(kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *service)
{
    uint32_t              i;
    kube_record_id_t      id;
    const kube_ref_t     *refs;
    const kube_record_t  *slice;

    if (kube_record_id(service, service->size, &id) != KUBE_OK) {
        return;
    }

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        slice = recover_ref(w, &id, refs[i]);

        if (slice == NULL) {
            w->side[entry].freed_ms |= RECOVER_BROKEN;

        } else {
            recover_adopt(w, refs[i], slice);
        }
    }
}


/* Calls step for every entry that holds a record of the kind. */
static void
recover_each(kube_zone_writer_t *w, kube_record_kind_t kind,
    void (*step)(kube_zone_writer_t *w, uint32_t entry,
                 const kube_record_t *record))
{
    uint32_t              e;
    const kube_record_t  *record;

    for (e = 1; e <= recover_entries(w); e++) {
        record = kube_zone_published(w, e);

        if (record != NULL && record->kind == kind) {
            step(w, e, record);
        }
    }
}


/* Walks all chains; false: a loop, a stray link, or an entry missing. */
static bool
recover_chains_check(kube_zone_writer_t *w)
{
    uint32_t                  i, e;
    const kube_half_t        *bucket;
    const kube_zone_entry_t  *entry;

    for (i = 0; i < w->zone->image->geometry.buckets_n; i++) {
        bucket = kube_zone_bucket(w->zone, i);

        for (e = kube_half_get(bucket); e != 0;
             e = kube_half_get(&entry->next))
        {
            if (e > recover_entries(w)
                || (w->side[e].freed_ms & RECOVER_LINKED))
            {
                return false;
            }

            w->side[e].freed_ms |= RECOVER_LINKED;
            entry = kube_zone_entry(w->zone, e);

            if (kube_zone_bucket(w->zone, kube_half_get(&entry->hash))
                != bucket)
            {
                return false;
            }
        }
    }

    for (e = 1; e <= recover_entries(w); e++) {
        if (kube_zone_entry_offset(w, e) != 0
            && !(w->side[e].freed_ms & RECOVER_LINKED))
        {
            return false;
        }
    }

    return true;
}


/* Reuse is odd meanwhile: who finds nothing looks again. */
static void
recover_chains_rebuild(kube_zone_writer_t *w)
{
    uint32_t            i, e;
    kube_half_t        *bucket;
    kube_zone_entry_t  *entry;

    for (i = 0; i < w->zone->image->geometry.buckets_n; i++) {
        kube_half_set(kube_zone_bucket(w->zone, i), 0);
    }

    for (e = 1; e <= recover_entries(w); e++) {
        w->side[e].freed_ms &= ~RECOVER_LINKED;
        entry = kube_zone_entry(w->zone, e);

        if (kube_zone_entry_offset(w, e) != 0) {
            bucket = kube_zone_bucket(w->zone, kube_half_get(&entry->hash));
            kube_half_set(&entry->next, kube_half_get(bucket));
            kube_half_set(bucket, e);
            w->side[e].freed_ms |= RECOVER_LINKED;
        }
    }
}


static void
recover_chains(kube_zone_writer_t *w)
{
    uint64_t      odd;
    kube_word_t  *reuse;

    reuse = &w->zone->image->reuse;
    odd = kube_word_get(reuse) | 1;

    if (!recover_chains_check(w)) {
        kube_word_set(reuse, odd);
        recover_chains_rebuild(w);
        kube_word_set(reuse, odd + 1);

    } else if (kube_word_get(reuse) == odd) {
        kube_word_set(reuse, odd + 1);
    }
}


static void
recover_mark(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    uint32_t      e, number, offset;
    kube_word_t  *head;

    for (e = 1; e <= recover_entries(w); e++) {
        offset = kube_zone_entry_offset(w, e);

        if (offset == 0) {
            continue;
        }

        if (!kube_zone_log_mark(w, offset)) {
            recover_cut_off(w, e, takeover);
            continue;
        }

        w->entries_used++;
        w->refused += (kube_zone_record_at(w, offset)->kind
                       == KUBE_RECORD_REFUSED);
    }

    number = recover_entries(w) + 1;

    for ( /* void */ ; number <= kube_zone_server_number(w->zone); number++)
    {
        head = kube_zone_head_of(w->zone, number);
        offset = kube_head_offset(kube_word_get(head));

        if (offset == 0) {
            continue;
        }

        if (recover_record(w, number, offset) == NULL
            || !kube_zone_log_mark(w, offset))
        {
            kube_head_set(head, 0);
        }
    }
}


/* What a Service still names stays until the Service is published again. */
static void
recover_mark_refs(kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *service)
{
    uint32_t           i;
    kube_record_id_t   id;
    const kube_ref_t  *refs;

    if (kube_record_id(service, service->size, &id) != KUBE_OK) {
        return;
    }

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        if ((w->side[entry].freed_ms & RECOVER_BROKEN)
            && recover_ref(w, &id, refs[i]) == NULL)
        {
            continue;
        }

        if (!kube_zone_log_mark(w, refs[i].offset)) {
            w->side[entry].freed_ms |= RECOVER_BROKEN;
        }
    }
}


static void
recover_attach(kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *slice)
{
    uint32_t  service;

    service = kube_zone_service_of(w, slice);

    if (service != 0) {
        w->side[entry].next = w->side[service].next;
        w->side[service].next = entry;
    }
}


static void
recover_services(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    bool                  changed, broken;
    uint32_t              e, slice, n, offset;
    const kube_record_t  *record;
    uint32_t              slices[KUBE_SERVICE_SLICES_MAX];

    for (e = 1; e <= recover_entries(w); e++) {
        record = kube_zone_published(w, e);

        if (record == NULL || record->kind != KUBE_RECORD_SERVICE) {
            continue;
        }

        broken = (w->side[e].freed_ms & RECOVER_BROKEN) != 0;
        slice = w->side[e].next;

        for (n = 0; slice != 0 && n < KUBE_SERVICE_SLICES_MAX; n++) {
            slices[n] = slice;
            slice = w->side[slice].next;
        }

        /* one with more slices than can be named chose among them */
        if (slice != 0 && !broken) {
            continue;
        }

        if (kube_zone_service_publish(w, e, slices, n, broken, &changed)
            != KUBE_OK)
        {
            offset = kube_zone_entry_offset(w, e);
            kube_zone_entry_publish(w, e, 0);
            kube_zone_log_drop_service(w, offset, !broken);
            w->entries_used--;
            takeover->cut_off++;

        } else if (changed) {
            takeover->repaired++;
        }
    }
}


/* From here on the side table knows who names whom. */
static void
recover_named(kube_zone_writer_t *w, uint32_t entry,
    const kube_record_t *service)
{
    uint32_t           i;
    const kube_ref_t  *refs;

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        kube_zone_service_names(w, entry, refs[i].entry);
    }
}


static void
recover_free_list(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    uint32_t           e;
    kube_zone_side_t  *side;

    for (e = recover_entries(w); e != 0; e--) {
        side = &w->side[e];
        side->service = 0;

        if (kube_zone_entry_offset(w, e) != 0) {
            side->next = 0;
            side->freed_ms = 0;
            takeover->records++;

        } else if (side->freed_ms & RECOVER_LINKED) {
            w->entries_used++;
            kube_zone_entry_free(w, e);

        } else {
            side->freed_ms = 0;
            side->next = w->unused;
            w->unused = e;
        }
    }
}


void
kube_zone_recover(kube_zone_writer_t *w, kube_takeover_t *takeover)
{
    recover_reset(w);

    recover_heads(w, takeover);
    recover_each(w, KUBE_RECORD_SERVICE, recover_service_refs);
    KUBE_FAILPOINT("recover_heads");

    recover_chains(w);
    KUBE_FAILPOINT("recover_chains");

    recover_mark(w, takeover);
    recover_each(w, KUBE_RECORD_SERVICE, recover_mark_refs);
    kube_zone_log_open(w);
    KUBE_FAILPOINT("recover_marked");

    recover_each(w, KUBE_RECORD_SLICE, recover_attach);
    recover_services(w, takeover);
    recover_free_list(w, takeover);
    recover_each(w, KUBE_RECORD_SERVICE, recover_named);

    kube_zone_table_show(w);
}

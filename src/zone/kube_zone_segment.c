/*
 * kube_zone_segment - room for records: appending to the open segment,
 * evacuating the emptiest one.
 *
 * It decides where records lie, never what they say or who may see them.
 * For the writer only.
 *
 * Records do not cross segments.  Which records are live is known from one
 * bit for each unit of 8 bytes, so nothing in the image has to be trusted.
 * Moving a slice is one store into its Service's record (the ref) and a new
 * sequence for the Service's head; a move needs no room but the record's own,
 * so an evacuation into one free segment cannot fail half-way.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_failpoint.h"
#include "kube_zone_private.h"


#define SEGMENT_UNIT  KUBE_ZONE_UNIT


static uint32_t
segment_size(const kube_zone_writer_t *w)
{
    return w->zone->image->geometry.segment_size;
}


static uint32_t
segment_count(const kube_zone_writer_t *w)
{
    return w->zone->image->geometry.segments_n;
}


/* Units from the first segment on: the bit's number. */
static uint64_t
segment_bit(const kube_zone_writer_t *w, uint32_t offset)
{
    return offset - w->zone->image->geometry.segments / SEGMENT_UNIT;
}


static uint32_t
segment_of(const kube_zone_writer_t *w, uint32_t offset)
{
    return (uint32_t) (segment_bit(w, offset) * SEGMENT_UNIT
                       / segment_size(w));
}


static uint32_t
segment_offset(const kube_zone_writer_t *w, uint32_t segment)
{
    return (uint32_t) ((w->zone->image->geometry.segments
                        + (uint64_t) segment * segment_size(w))
                       / SEGMENT_UNIT);
}


static bool
segment_bit_get(const kube_zone_writer_t *w, uint32_t offset)
{
    uint64_t  bit;

    bit = segment_bit(w, offset);

    return (w->bits[bit / 64] >> (bit % 64) & 1) != 0;
}


static void
segment_bit_flip(kube_zone_writer_t *w, uint32_t offset)
{
    uint64_t  bit;

    bit = segment_bit(w, offset);
    w->bits[bit / 64] ^= 1ull << (bit % 64);
}


static uint32_t
segment_tail(const kube_zone_writer_t *w, uint32_t segment)
{
    if (segment == KUBE_ZONE_NO_SEGMENT) {
        return 0;
    }

    return segment_size(w) - w->segments[segment].used;
}


static void
segment_forget(kube_zone_writer_t *w, uint32_t offset, uint32_t size)
{
    uint32_t              i;
    kube_zone_segment_t  *segment;

    i = segment_of(w, offset);
    segment = &w->segments[i];

    segment_bit_flip(w, offset);

    segment->live -= (size < segment->live) ? size : segment->live;
    w->live_bytes -= (size < w->live_bytes) ? size : w->live_bytes;

    if (segment->live == 0 && i != w->open_segment) {
        segment->used = 0;
        w->free_n++;
    }
}


/* No live record begins inside the one at offset or reaches into it. */
static bool
segment_is_apart(const kube_zone_writer_t *w, uint32_t offset, uint32_t size)
{
    uint32_t  at, first, units;

    for (at = offset + 1; at < offset + size / SEGMENT_UNIT; at++) {
        if (segment_bit_get(w, at)) {
            return false;
        }
    }

    first = segment_offset(w, segment_of(w, offset));

    for (at = offset; at > first; at--) {
        if (segment_bit_get(w, at - 1)) {
            units = kube_zone_record_at(w, at - 1)->size / SEGMENT_UNIT;
            return at - 1 + units <= offset;
        }
    }

    return true;
}


bool
kube_zone_log_mark(kube_zone_writer_t *w, uint32_t offset)
{
    uint32_t              end, size;
    kube_zone_segment_t  *segment;

    if (segment_bit_get(w, offset)) {
        return true;
    }

    size = kube_zone_record_at(w, offset)->size;

    if (!segment_is_apart(w, offset, size)) {
        return false;
    }

    segment_bit_flip(w, offset);

    segment = &w->segments[segment_of(w, offset)];
    end = (offset - segment_offset(w, segment_of(w, offset))) * SEGMENT_UNIT
          + size;

    segment->live += size;
    w->live_bytes += size;

    if (end > segment->used) {
        segment->used = end;
    }

    return true;
}


/* The segment with the fewest live bytes that a move can win room from. */
static uint32_t
segment_emptiest(const kube_zone_writer_t *w)
{
    uint32_t  i, found, live;

    found = KUBE_ZONE_NO_SEGMENT;

    for (i = 0; i < segment_count(w); i++) {
        live = w->segments[i].live;

        if (i == w->open_segment || live == 0 || live >= segment_size(w)) {
            continue;
        }

        if (found == KUBE_ZONE_NO_SEGMENT || live < w->segments[found].live) {
            found = i;
        }
    }

    return found;
}


/* The lowest one: pages above stay untouched for as long as possible. */
static void
segment_open_next(kube_zone_writer_t *w)
{
    uint32_t  i, old;

    old = w->open_segment;

    for (i = 0; i < segment_count(w); i++) {
        if (i != old && w->segments[i].live == 0) {
            break;
        }
    }

    w->open_segment = i;
    w->segments[i].used = 0;
    w->free_n--;

    if (old != KUBE_ZONE_NO_SEGMENT && w->segments[old].live == 0) {
        w->segments[old].used = 0;
        w->free_n++;
    }
}


uint32_t
kube_zone_log_take(kube_zone_writer_t *w, size_t size)
{
    uint32_t              offset;
    kube_zone_segment_t  *segment;

    segment = &w->segments[w->open_segment];
    offset = segment_offset(w, w->open_segment)
             + segment->used / SEGMENT_UNIT;

    segment->used += (uint32_t) size;
    segment->live += (uint32_t) size;
    w->live_bytes += size;

    segment_bit_flip(w, offset);

    return offset;
}


void
kube_zone_log_store(kube_zone_writer_t *w, uint32_t offset, size_t skip,
    const void *data, size_t size)
{
    size_t        i;
    uint64_t      v;
    kube_word_t  *words;

    words = kube_zone_words(w->zone, offset) + skip / SEGMENT_UNIT;

    for (i = 0; i < size / SEGMENT_UNIT; i++) {
        memcpy(&v, (const char *) data + i * SEGMENT_UNIT, SEGMENT_UNIT);
        kube_word_set(&words[i], v);
    }
}


uint32_t
kube_zone_log_append(kube_zone_writer_t *w, const kube_record_t *record,
    uint32_t number, uint64_t revision)
{
    size_t         base;
    uint32_t       offset;
    kube_record_t  header;

    base = kube_record_base(record);
    offset = kube_zone_log_take(w, base);

    header = *record;
    header.size = (uint32_t) base;
    header.refs_n = 0;
    header.entry = number;
    header.revision = revision;

    kube_zone_log_store(w, offset, 0, &header, sizeof(kube_record_t));
    kube_zone_log_store(w, offset, sizeof(kube_record_t), record + 1,
                        base - sizeof(kube_record_t));
    return offset;
}


/* Returns the Service whose ref was changed; 0: none names the slice. */
static uint32_t
segment_move_ref(kube_zone_writer_t *w, uint32_t offset, uint32_t moved)
{
    size_t             at;
    uint32_t           service;
    kube_ref_t         changed;
    const kube_ref_t  *ref;

    ref = kube_zone_ref_to(w, offset, &service);

    if (ref == NULL) {
        return 0;
    }

    changed.entry = ref->entry;
    changed.offset = moved;

    offset = kube_zone_entry_offset(w, service);
    at = (size_t) ((const char *) ref
                   - (const char *) kube_zone_record_at(w, offset));

    kube_zone_log_store(w, offset, at, &changed, sizeof(kube_ref_t));

    return service;
}


static void
segment_move(kube_zone_writer_t *w, uint32_t offset)
{
    uint32_t        moved, size, number, service;
    kube_word_t    *head;
    kube_record_t  *record;

    record = kube_zone_record_at(w, offset);
    size = record->size;
    number = record->entry;

    moved = kube_zone_log_take(w, size);
    kube_zone_log_store(w, moved, 0, record, size);
    KUBE_FAILPOINT("move_copied");

    if (record->kind == KUBE_RECORD_SLICE) {
        service = segment_move_ref(w, offset, moved);
        KUBE_FAILPOINT("move_ref");

        if (service != 0) {
            head = kube_zone_head_of(w->zone, service);
            kube_head_set(head, kube_head_offset(kube_word_get(head)));
            KUBE_FAILPOINT("move_service_head");
        }
    }

    head = kube_zone_head_of(w->zone, number);

    if (kube_head_offset(kube_word_get(head)) == offset) {
        kube_head_set(head, moved);

    } else if (number <= w->zone->image->geometry.entries_n
               && w->side[number].staged == offset)
    {
        w->side[number].staged = moved;
    }

    KUBE_FAILPOINT("move_head");
    segment_forget(w, offset, size);
}


static kube_rc_t
segment_evacuate(kube_zone_writer_t *w, uint32_t segment)
{
    uint32_t  offset, end, size;

    if (w->free_n == 0
        && w->segments[segment].live > segment_tail(w, w->open_segment))
    {
        return KUBE_FULL;
    }

    offset = segment_offset(w, segment);
    end = offset + segment_size(w) / SEGMENT_UNIT;

    for ( /* void */ ; offset < end && w->segments[segment].live != 0;
         offset++)
    {
        if (!segment_bit_get(w, offset)) {
            continue;
        }

        size = kube_zone_record_at(w, offset)->size;

        if (size > segment_tail(w, w->open_segment)) {
            segment_open_next(w);
        }

        segment_move(w, offset);
    }

    return KUBE_OK;
}


/*
 * With free segments left, one that is half empty is evacuated before a
 * fresh one is opened: memory touched stays below twice what is live.
 */
kube_rc_t
kube_zone_log_reserve(kube_zone_writer_t *w, size_t size, unsigned moves)
{
    bool      move;
    uint32_t  x, live;

    if (size > segment_size(w)) {
        return KUBE_FULL;
    }

    for ( ;; ) {
        if (segment_tail(w, w->open_segment) >= size) {
            return KUBE_OK;
        }

        x = segment_emptiest(w);
        move = false;

        if (x != KUBE_ZONE_NO_SEGMENT && moves != 0) {
            live = w->segments[x].live;
            move = (w->free_n >= 2) ? live <= segment_size(w) / 2
                                    : (moves > 1
                                       || live + size <= segment_size(w));
        }

        if (move) {
            moves--;

            if (segment_evacuate(w, x) != KUBE_OK) {
                return KUBE_FULL;
            }

        } else if (w->free_n >= 2) {
            segment_open_next(w);

        } else {
            return KUBE_FULL;
        }
    }
}


bool
kube_zone_log_has_room(const kube_zone_writer_t *w, size_t size)
{
    uint32_t  x;

    if (size > segment_size(w)) {
        return false;
    }

    if (segment_tail(w, w->open_segment) >= size || w->free_n >= 2) {
        return true;
    }

    x = segment_emptiest(w);

    return x != KUBE_ZONE_NO_SEGMENT
           && w->free_n != 0
           && w->segments[x].live + size <= segment_size(w);
}


/* The segment that evacuation needs is not counted as room. */
uint64_t
kube_zone_log_limit(const kube_zone_writer_t *w)
{
    uint64_t  room;

    room = (uint64_t) (segment_count(w) - 1) * segment_size(w);

    return room - room / 8;
}


void
kube_zone_log_open(kube_zone_writer_t *w)
{
    uint32_t  i, x, open;

    w->free_n = 0;
    open = KUBE_ZONE_NO_SEGMENT;

    for (i = 0; i < segment_count(w); i++) {
        if (w->segments[i].live == 0) {
            w->free_n++;

        } else if (w->segments[i].used < segment_size(w)
                   && (open == KUBE_ZONE_NO_SEGMENT
                       || segment_tail(w, i) > segment_tail(w, open)))
        {
            open = i;
        }
    }

    w->open_segment = open;

    if (open == KUBE_ZONE_NO_SEGMENT && w->free_n >= 2) {
        segment_open_next(w);
    }

    /* a predecessor died while it evacuated into the last free segment */
    if (w->free_n == 0) {
        x = segment_emptiest(w);

        if (x != KUBE_ZONE_NO_SEGMENT) {
            (void) segment_evacuate(w, x);
        }
    }
}


void
kube_zone_log_drop(kube_zone_writer_t *w, uint32_t offset)
{
    uint32_t        number, service;
    kube_record_t  *record;

    if (offset == 0 || !segment_bit_get(w, offset)) {
        return;
    }

    record = kube_zone_record_at(w, offset);
    number = record->entry;

    if (kube_head_offset(kube_word_get(kube_zone_head_of(w->zone, number)))
        == offset)
    {
        return;
    }

    if (number <= w->zone->image->geometry.entries_n
        && w->side[number].staged == offset)
    {
        return;
    }

    if (record->kind == KUBE_RECORD_SLICE
        && kube_zone_ref_to(w, offset, &service) != NULL)
    {
        return;
    }

    segment_forget(w, offset, record->size);
}


void
kube_zone_log_drop_service(kube_zone_writer_t *w, uint32_t offset, bool refs)
{
    uint32_t              i;
    const kube_ref_t     *ref;
    const kube_record_t  *record;

    if (offset == 0) {
        return;
    }

    record = kube_zone_record_at(w, offset);
    ref = kube_record_refs(record);

    for (i = 0; refs && i < record->refs_n; i++) {
        if (w->side[ref[i].entry].service == record->entry) {
            w->side[ref[i].entry].service = 0;
        }

        kube_zone_log_drop(w, ref[i].offset);
    }

    kube_zone_log_drop(w, offset);
}

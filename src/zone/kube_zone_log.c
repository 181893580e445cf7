/*
 * kube_zone_log - segments: appending to the open one, evacuating the
 * emptiest one, forgetting records.
 *
 * For the writer only; the header says what the log is.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_image.h"
#include "kube_zone_live.h"
#include "kube_zone_log.h"
#include "kube_zone_table.h"


static uint32_t
log_segment_size(const kube_zone_writer_t *w)
{
    return w->zone->geometry.segment_size;
}


static uint32_t
log_segments_n(const kube_zone_writer_t *w)
{
    return w->zone->geometry.segments_n;
}


static uint32_t
log_segment_of(const kube_zone_writer_t *w, uint32_t offset)
{
    /* a segment's size is a power of two, as create makes it */
    return (uint32_t) (((uint64_t) offset * KUBE_ZONE_UNIT
                        - w->zone->geometry.segments)
                       >> __builtin_ctz(log_segment_size(w)));
}


static uint32_t
log_segment_offset(const kube_zone_writer_t *w, uint32_t segment)
{
    return (uint32_t) ((w->zone->geometry.segments
                        + (uint64_t) segment * log_segment_size(w))
                       / KUBE_ZONE_UNIT);
}


static uint32_t
log_tail(const kube_zone_writer_t *w, uint32_t segment)
{
    if (segment == KUBE_ZONE_NO_SEGMENT) {
        return 0;
    }

    return log_segment_size(w) - w->segments[segment].used;
}


static void
log_forget(kube_zone_writer_t *w, uint32_t offset)
{
    uint32_t              i, size;
    kube_zone_segment_t  *segment;

    i = log_segment_of(w, offset);
    segment = &w->segments[i];
    size = kube_zone_live_size(w, offset);

    kube_zone_live_flip(w, offset, size);

    segment->live -= size;
    w->live_bytes -= size;

    if (segment->live == 0 && i != w->open_segment) {
        segment->used = 0;
        w->free_n++;
    }
}


/* The rows and bits of a segment are in use from now on. */
static void
log_touch(kube_zone_writer_t *w, uint32_t segment)
{
    if (segment >= w->segments_top) {
        w->segments_top = segment + 1;
    }
}


bool
kube_zone_log_mark(kube_zone_writer_t *w, uint32_t offset)
{
    uint32_t              i, end, size;
    kube_record_t         header;
    kube_zone_segment_t  *segment;

    if (kube_zone_live_at(w, offset)) {
        return true;
    }

    /* it was valid a moment ago, which says nothing of its size now */
    if (!kube_zone_header_at(w->zone, offset, &header)
        || kube_zone_live_overlaps(w, offset, header.size))
    {
        return false;
    }

    size = header.size;
    kube_zone_live_flip(w, offset, size);

    i = log_segment_of(w, offset);
    segment = &w->segments[i];
    end = (offset - log_segment_offset(w, i)) * KUBE_ZONE_UNIT + size;
    log_touch(w, i);

    segment->live += size;
    w->live_bytes += size;

    if (end > segment->used) {
        segment->used = end;
    }

    return true;
}


/* Returns the segment with the fewest live bytes, of those with any. */
static uint32_t
log_emptiest(const kube_zone_writer_t *w)
{
    uint32_t  i, found, live;

    found = KUBE_ZONE_NO_SEGMENT;

    for (i = 0; i < log_segments_n(w); i++) {
        live = w->segments[i].live;

        if (i == w->open_segment || live == 0 || live >= log_segment_size(w)) {
            continue;
        }

        if (found == KUBE_ZONE_NO_SEGMENT || live < w->segments[found].live) {
            found = i;
        }
    }

    return found;
}


/* Opens the lowest free segment, so that pages above stay untouched. */
static void
log_open_next(kube_zone_writer_t *w)
{
    uint32_t  i, old;

    old = w->open_segment;

    for (i = 0; i < log_segments_n(w); i++) {
        if (i != old && w->segments[i].live == 0) {
            break;
        }
    }

    w->open_segment = i;
    w->segments[i].used = 0;
    w->free_n--;
    log_touch(w, i);

    if (old != KUBE_ZONE_NO_SEGMENT && w->segments[old].live == 0) {
        w->segments[old].used = 0;
        w->free_n++;
    }
}


/* Takes size bytes that were reserved; returns the offset. */
static uint32_t
log_take(kube_zone_writer_t *w, size_t size)
{
    uint32_t              offset;
    kube_zone_segment_t  *segment;

    segment = &w->segments[w->open_segment];
    offset = log_segment_offset(w, w->open_segment)
             + segment->used / KUBE_ZONE_UNIT;

    segment->used += (uint32_t) size;
    segment->live += (uint32_t) size;
    w->live_bytes += size;

    kube_zone_live_flip(w, offset, (uint32_t) size);

    return offset;
}


void
kube_zone_log_store(kube_zone_writer_t *w, uint32_t offset, size_t skip,
    const void *data, size_t size)
{
    size_t        i;
    uint64_t      v;
    kube_word_t  *words;

    words = kube_zone_words(w->zone, offset) + skip / KUBE_ZONE_UNIT;

    for (i = 0; i < size / KUBE_ZONE_UNIT; i++) {
        memcpy(&v, (const char *) data + i * KUBE_ZONE_UNIT, KUBE_ZONE_UNIT);
        kube_word_set(&words[i], v);
    }
}


uint32_t
kube_zone_log_append(kube_zone_writer_t *w, const kube_record_t *record,
    uint32_t number, uint64_t revision, size_t refs_n)
{
    size_t         base;
    uint32_t       offset;
    kube_record_t  header;

    base = kube_record_base(record);

    header = *record;
    header.size = (uint32_t) (base + refs_n * sizeof(kube_ref_t));
    header.refs_n = (uint32_t) refs_n;
    header.entry = number;
    header.revision = revision;

    offset = log_take(w, header.size);
    kube_zone_log_store(w, offset, 0, &header, sizeof(kube_record_t));
    kube_zone_log_store(w, offset, sizeof(kube_record_t), record + 1,
                        base - sizeof(kube_record_t));
    return offset;
}


/* Returns the Service whose ref was changed; 0: none names the slice. */
static uint32_t
log_move_ref(kube_zone_writer_t *w, uint32_t offset,
    const kube_record_t *header, uint32_t moved)
{
    size_t      skip;
    uint32_t    service;
    kube_ref_t  changed;

    if (!kube_zone_ref_to(w, offset, header, &service, &skip)) {
        return 0;
    }

    changed.entry = header->entry;
    changed.offset = moved;

    kube_zone_log_store(w, w->side[service].offset, skip, &changed,
                        sizeof(kube_ref_t));
    return service;
}


static void
log_move(kube_zone_writer_t *w, uint32_t offset)
{
    uint32_t           moved, size, service;
    kube_record_t      header;
    kube_zone_side_t  *side;

    /* a record that nobody can be found for is not worth its room */
    if (!kube_zone_live_header(w, offset, &header)) {
        log_forget(w, offset);
        return;
    }

    size = header.size;
    side = &w->side[header.entry];
    service = 0;

    moved = log_take(w, size);
    kube_zone_log_store(w, moved, 0, kube_zone_record_at(w->zone, offset),
                        size);
    KUBE_FAILPOINT("move_copied");

    if (header.kind == KUBE_RECORD_SLICE) {
        service = log_move_ref(w, offset, &header, moved);
        KUBE_FAILPOINT("move_ref");

        if (service != 0) {
            kube_zone_head_store(w, service, w->side[service].offset);
            KUBE_FAILPOINT("move_service_head");
        }
    }

    if (side->offset == offset) {
        kube_zone_head_store(w, header.entry, moved);

    } else if (side->staged == offset) {
        side->staged = moved;

    } else if (service == 0) {
        *w->suspect = true;
        log_forget(w, moved);
    }

    KUBE_FAILPOINT("move_head");
    log_forget(w, offset);
}


static kube_rc_t
log_evacuate(kube_zone_writer_t *w, uint32_t segment)
{
    uint32_t  offset, end, size;

    if (w->free_n == 0
        && w->segments[segment].live > log_tail(w, w->open_segment))
    {
        return KUBE_FULL;
    }

    offset = log_segment_offset(w, segment);
    end = offset + log_segment_size(w) / KUBE_ZONE_UNIT;

    while (w->segments[segment].live != 0
           && (offset = kube_zone_live_next(w, offset, end)) < end)
    {
        size = kube_zone_live_size(w, offset);

        if (size > log_tail(w, w->open_segment)) {
            log_open_next(w);
        }

        log_move(w, offset++);
    }

    return KUBE_OK;
}


/*
 * Live bytes of a segment that is moved although its room alone is not enough.
 * Where all are fuller, a record that is refused would move eight of them, and
 * the next one again (measured: a restart of a zone that its state file and the
 * list beside it fill took 14 to 41 s of processor time, 0.3 to 0.5 s now).
 */
static uint32_t
log_worth_moving(const kube_zone_writer_t *w)
{
    return log_segment_size(w) / 32 * 31;
}


/*
 * While segments are free, one that is half empty is evacuated before a fresh
 * one is opened, so that less than twice the live bytes are ever touched.
 */
kube_rc_t
kube_zone_log_reserve(kube_zone_writer_t *w, size_t size, unsigned moves)
{
    bool      move;
    uint32_t  x, live;

    if (size > log_segment_size(w)) {
        return KUBE_FULL;
    }

    for ( ;; ) {
        if (log_tail(w, w->open_segment) >= size) {
            return KUBE_OK;
        }

        x = log_emptiest(w);
        move = false;

        if (x != KUBE_ZONE_NO_SEGMENT && moves != 0) {
            live = w->segments[x].live;
            move = (w->free_n >= 2) ? live <= log_segment_size(w) / 2
                                    : (live + size <= log_segment_size(w)
                                       || (moves > 1
                                           && live <= log_worth_moving(w)));
        }

        if (move) {
            moves--;

            if (log_evacuate(w, x) != KUBE_OK) {
                return KUBE_FULL;
            }

        } else if (w->free_n >= 2) {
            log_open_next(w);

        } else {
            return KUBE_FULL;
        }
    }
}


/* The one segment that evacuation needs is not room for records. */
uint64_t
kube_zone_log_limit(const kube_zone_writer_t *w)
{
    uint64_t  room;

    room = (uint64_t) (log_segments_n(w) - 1) * log_segment_size(w);

    return room - room / 8;
}


void
kube_zone_log_open(kube_zone_writer_t *w)
{
    uint32_t  i, x, open;

    w->free_n = 0;
    open = KUBE_ZONE_NO_SEGMENT;

    for (i = 0; i < log_segments_n(w); i++) {
        if (w->segments[i].live == 0) {
            w->free_n++;

        } else if (w->segments[i].used < log_segment_size(w)
                   && (open == KUBE_ZONE_NO_SEGMENT
                       || log_tail(w, i) > log_tail(w, open)))
        {
            open = i;
        }
    }

    w->open_segment = open;

    if (open == KUBE_ZONE_NO_SEGMENT && w->free_n >= 2) {
        log_open_next(w);
    }

    /* the last writer may have died evacuating into the last free segment */
    if (w->free_n == 0) {
        x = log_emptiest(w);

        if (x != KUBE_ZONE_NO_SEGMENT) {
            (void) log_evacuate(w, x);
        }
    }
}


/* True if a head, the staged record of an entry, or a ref is at offset. */
static bool
log_is_named(const kube_zone_writer_t *w, uint32_t offset)
{
    size_t         skip;
    uint32_t       service;
    kube_record_t  header;

    if (!kube_zone_live_header(w, offset, &header)) {
        return false;
    }

    return w->side[header.entry].offset == offset
           || w->side[header.entry].staged == offset
           || (header.kind == KUBE_RECORD_SLICE
               && kube_zone_ref_to(w, offset, &header, &service, &skip));
}


void
kube_zone_log_drop(kube_zone_writer_t *w, uint32_t offset)
{
    if (offset != 0
        && kube_zone_live_at(w, offset)
        && !log_is_named(w, offset))
    {
        log_forget(w, offset);
    }
}


void
kube_zone_log_drop_refs(kube_zone_writer_t *w, uint32_t offset)
{
    uint32_t       i;
    kube_ref_t     ref;
    kube_record_t  header;

    if (offset == 0 || !kube_zone_live_header(w, offset, &header)) {
        return;
    }

    for (i = 0; i < header.refs_n; i++) {
        ref = kube_zone_ref_at(w->zone, offset, &header, i);

        if (ref.entry == 0 || ref.entry > w->zone->geometry.entries_n) {
            *w->suspect = true;
            continue;
        }

        if (w->side[ref.entry].service == header.entry) {
            w->side[ref.entry].service = 0;
        }

        kube_zone_log_drop(w, ref.offset);
    }
}


void
kube_zone_log_reset(kube_zone_writer_t *w)
{
    size_t  bits;

    bits = (size_t) w->segments_top * log_segment_size(w) / KUBE_ZONE_UNIT / 8;

    memset(w->bits, 0, bits);
    memset(w->ends, 0, bits);
    memset(w->segments, 0, w->segments_top * sizeof(kube_zone_segment_t));

    w->segments_top = 0;
    w->open_segment = KUBE_ZONE_NO_SEGMENT;
    w->free_n = 0;
    w->live_bytes = 0;
}

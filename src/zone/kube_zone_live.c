/*
 * kube_zone_live - which records are live, and how long they are: one bit for
 * where a record begins, one for its last unit.
 *
 * It decides nothing, and reads the image for a header alone.  For the writer
 * only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_image.h"
#include "kube_zone_live.h"


/* Returns the number of the bit: units from the first segment on. */
static uint64_t
live_bit(const kube_zone_writer_t *w, uint32_t offset)
{
    return offset - w->zone->geometry.segments / KUBE_ZONE_UNIT;
}


bool
kube_zone_live_at(const kube_zone_writer_t *w, uint32_t offset)
{
    uint64_t  bit;

    if (kube_zone_room_at(w->zone, offset) == 0) {
        return false;
    }

    bit = live_bit(w, offset);

    return (w->bits[bit / 64] >> (bit % 64) & 1) != 0;
}


void
kube_zone_live_flip(kube_zone_writer_t *w, uint32_t offset, uint32_t size)
{
    uint64_t  bit;

    bit = live_bit(w, offset);
    w->bits[bit / 64] ^= 1ull << (bit % 64);

    bit += size / KUBE_ZONE_UNIT - 1;
    w->ends[bit / 64] ^= 1ull << (bit % 64);
}


/* The bits of words[i] from bit first to bit last - 1, both of the zone. */
static uint64_t
live_word(const uint64_t *words, uint64_t i, uint64_t first, uint64_t last)
{
    uint64_t  word;

    word = words[i];

    if (i == first / 64) {
        word &= UINT64_MAX << (first % 64);
    }

    if (i == last / 64) {
        word &= ~(UINT64_MAX << (last % 64));
    }

    return word;
}


uint32_t
kube_zone_live_next(const kube_zone_writer_t *w, uint32_t offset,
    uint32_t end)
{
    uint64_t  i, first, last, word;

    first = live_bit(w, offset);
    last = live_bit(w, end);

    for (i = first / 64; i * 64 < last; i++) {
        word = live_word(w->bits, i, first, last);

        if (word != 0) {
            return offset + (uint32_t) (i * 64
                                        + (unsigned) __builtin_ctzll(word)
                                        - first);
        }
    }

    return end;
}


bool
kube_zone_live_overlaps(const kube_zone_writer_t *w, uint32_t offset,
    uint32_t size)
{
    uint64_t  i, bit, end, first, begins, ends;

    bit = live_bit(w, offset);
    end = bit + size / KUBE_ZONE_UNIT;
    first = w->zone->geometry.segment_size / KUBE_ZONE_UNIT;
    first = bit / first * first;

    for (i = bit / 64; i * 64 < end; i++) {
        if (live_word(w->bits, i, bit, end) != 0) {
            return true;
        }
    }

    /* the nearest before: it begins, and does not end before; never both */
    for (i = bit / 64; /* void */ ; i--) {
        begins = live_word(w->bits, i, first, bit);
        ends = live_word(w->ends, i, first, bit);

        if ((begins | ends) != 0) {
            return begins > ends;
        }

        if (i == first / 64) {
            return false;
        }
    }
}


uint32_t
kube_zone_live_size(const kube_zone_writer_t *w, uint32_t offset)
{
    uint64_t  i, bit, word;

    if (!kube_zone_live_at(w, offset)) {
        return 0;
    }

    bit = live_bit(w, offset);
    i = bit / 64;
    word = w->ends[i] & (UINT64_MAX << (bit % 64));

    /* each record that begins has an end, in the same segment */
    while (word == 0) {
        word = w->ends[++i];
    }

    return (uint32_t) ((i * 64 + (unsigned) __builtin_ctzll(word) + 1 - bit)
                       * KUBE_ZONE_UNIT);
}


bool
kube_zone_live_header(const kube_zone_writer_t *w, uint32_t offset,
    kube_record_t *header)
{
    uint32_t  size;

    size = kube_zone_live_size(w, offset);

    if (size != 0) {
        kube_zone_header_load(w->zone, offset, header);

        if (header->size == size
            && header->entry != 0
            && header->entry <= kube_zone_server_number(w->zone)
            && kube_zone_refs_fit(header))
        {
            return true;
        }
    }

    *w->suspect = true;

    return false;
}

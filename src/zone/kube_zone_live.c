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

    if (size != 0
        && kube_zone_header_at(w->zone, offset, header)
        && header->size == size
        && header->entry != 0
        && header->entry <= kube_zone_server_number(w->zone)
        && kube_zone_refs_fit(header))
    {
        return true;
    }

    *w->suspect = true;

    return false;
}

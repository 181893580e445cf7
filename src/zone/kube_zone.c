/*
 * kube_zone - making an image, attaching to one, checking one.
 *
 * It neither looks anything up (kube_zone_reader.c) nor writes records
 * (kube_zone_writer.c).  create is called once per image before any other
 * process sees it; the rest may be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE  200809L
#endif

#include <string.h>

#include "kube_zone_layout.h"


#define ZONE_SEGMENT_MIN        4096

/* Parts of the zone's size; performance is in docs/architecture.md. */
#define ZONE_BYTES_AN_OBJECT    512
#define ZONE_BYTES_A_SCOPE      8192
#define ZONE_BYTES_A_WORKER     16384
#define ZONE_SEGMENTS_WANTED    16


static uint64_t
zone_align(uint64_t n)
{
    return (n + 63) & ~(uint64_t) 63;
}


static uint32_t
zone_clamp(uint64_t n, uint32_t low, uint32_t high)
{
    return (n < low) ? low : (n > high) ? high : (uint32_t) n;
}


static uint32_t
zone_segment_size(uint64_t records)
{
    uint32_t  size;

    for (size = ZONE_SEGMENT_MIN; size < KUBE_ZONE_SEGMENT_MAX; size *= 2) {
        if (2ull * size * ZONE_SEGMENTS_WANTED > records) {
            break;
        }
    }

    return size;
}


static uint64_t
zone_geometry_hash(const kube_zone_geometry_t *g)
{
    return kube_hash64((kube_seed_t) { KUBE_ZONE_MAGIC, KUBE_ZONE_LAYOUT },
                       g, offsetof(kube_zone_geometry_t, check));
}


/* All sizes follow from the zone's size alone. */
static void
zone_geometry(kube_zone_geometry_t *g, uint64_t size, kube_seed_t seed)
{
    uint64_t  records;

    memset(g, 0, sizeof(kube_zone_geometry_t));

    g->magic = KUBE_ZONE_MAGIC;
    g->layout = KUBE_ZONE_LAYOUT;
    g->size = size;
    g->seed = seed;

    /* as many can be named as refused as can be held */
    g->objects_max = (uint32_t) (size / ZONE_BYTES_AN_OBJECT);
    g->entries_n = 2 * g->objects_max;

    for (g->buckets_n = 64; g->buckets_n < g->objects_max; /* void */ ) {
        g->buckets_n *= 2;
    }

    g->scopes_n = zone_clamp(size / ZONE_BYTES_A_SCOPE, 4, KUBE_SCOPES_MAX);
    g->workers_n = zone_clamp(size / ZONE_BYTES_A_WORKER, 4,
                              KUBE_WORKER_ROWS);

    g->buckets = zone_align(sizeof(kube_zone_image_t));
    g->entries = zone_align(g->buckets
                            + (uint64_t) g->buckets_n * sizeof(kube_half_t));
    g->scopes = zone_align(g->entries + (uint64_t) g->entries_n
                                        * sizeof(kube_zone_entry_t));
    g->workers = zone_align(g->scopes + (uint64_t) g->scopes_n
                                        * sizeof(kube_zone_scope_t));
    g->segments = zone_align(g->workers + (uint64_t) g->workers_n
                                          * sizeof(kube_zone_worker_t));

    records = size - g->segments;
    g->segment_size = zone_segment_size(records);
    g->segments_n = (uint32_t) (records / g->segment_size);

    g->check = zone_geometry_hash(g);
}


static bool
zone_size_is_valid(const void *mem, size_t size)
{
    return mem != NULL
           && (uintptr_t) mem % KUBE_ZONE_UNIT == 0
           && size >= KUBE_ZONE_SIZE_MIN
           && size <= KUBE_ZONE_SIZE_MAX;
}


kube_rc_t
kube_zone_geometry_check(const void *mem, size_t size)
{
    kube_zone_geometry_t  g, expected;

    if (!zone_size_is_valid(mem, size)) {
        return KUBE_CORRUPT;
    }

    memcpy(&g, mem, sizeof(kube_zone_geometry_t));
    zone_geometry(&expected, size, g.seed);

    return (memcmp(&g, &expected, sizeof(kube_zone_geometry_t)) == 0)
           ? KUBE_OK : KUBE_CORRUPT;
}


static kube_rc_t
zone_guard_init(kube_zone_image_t *image)
{
    int                  rc;
    pthread_mutexattr_t  attr;

    if (pthread_mutexattr_init(&attr) != 0) {
        return KUBE_INVALID;
    }

    rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);

    if (rc == 0) {
        rc = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    }

    if (rc == 0) {
        rc = pthread_mutex_init(&image->guard, &attr);
    }

    (void) pthread_mutexattr_destroy(&attr);

    return (rc == 0) ? KUBE_OK : KUBE_INVALID;
}


kube_rc_t
kube_zone_create(kube_zone_t *zone, void *mem, size_t size, kube_seed_t seed)
{
    kube_zone_geometry_t  g;

    if (!zone_size_is_valid(mem, size)) {
        return KUBE_INVALID;
    }

    zone_geometry(&g, size, seed);

    /* records are not read before a head names them: left untouched */
    memset(mem, 0, g.segments);

    zone->image = mem;
    zone->size = size;

    if (zone_guard_init(zone->image) != KUBE_OK) {
        return KUBE_INVALID;
    }

    zone->image->geometry = g;

    return KUBE_OK;
}


kube_rc_t
kube_zone_attach(kube_zone_t *zone, void *mem, size_t size)
{
    if (kube_zone_geometry_check(mem, size) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    zone->image = mem;
    zone->size = size;

    return KUBE_OK;
}


kube_word_t *
kube_zone_head_of(const kube_zone_t *zone, uint32_t number)
{
    uint32_t                     n;
    const kube_zone_geometry_t  *g;

    g = &zone->image->geometry;

    if (number == 0 || number > kube_zone_server_number(zone)) {
        return NULL;
    }

    if (number <= g->entries_n) {
        return &kube_zone_entry(zone, number)->head;
    }

    if (number == kube_zone_server_number(zone)) {
        return &zone->image->server;
    }

    n = number - g->entries_n - 1;

    return (n % 2 == 0) ? &kube_zone_scope(zone, n / 2)->record
                        : &kube_zone_scope(zone, n / 2)->error;
}


/* Nobody writes to the image: plain reads of a record are fine. */
static bool
zone_record_is_valid(const kube_zone_t *zone, uint32_t number,
    uint32_t offset, const kube_record_t **record)
{
    size_t  room;

    room = kube_zone_room_at(zone, offset);
    *record = kube_zone_at(zone, (uint64_t) offset * KUBE_ZONE_UNIT);

    return room != 0
           && kube_record_validate(*record, room) == KUBE_OK
           && (*record)->entry == number;
}


static bool
zone_refs_are_valid(const kube_zone_t *zone, const kube_record_t *service)
{
    uint32_t              i;
    const kube_ref_t     *refs;
    const kube_record_t  *slice;

    refs = kube_record_refs(service);

    for (i = 0; i < service->refs_n; i++) {
        if (refs[i].entry > zone->image->geometry.entries_n
            || !zone_record_is_valid(zone, refs[i].entry, refs[i].offset,
                                     &slice)
            || slice->kind != KUBE_RECORD_SLICE)
        {
            return false;
        }
    }

    return true;
}


static bool
zone_entry_is_valid(const kube_zone_t *zone, uint32_t entry, uint32_t offset)
{
    uint32_t              hash;
    kube_record_id_t      id;
    const kube_record_t  *record;

    if (!zone_record_is_valid(zone, entry, offset, &record)
        || kube_record_id(record, record->size, &id) != KUBE_OK)
    {
        return false;
    }

    hash = kube_zone_hash(zone, &id);

    return hash == kube_half_get(&kube_zone_entry(zone, entry)->hash)
           && zone_refs_are_valid(zone, record);
}


/* All chains together have as many links as there are entries at most. */
static kube_rc_t
zone_chain_validate(const kube_zone_t *zone, uint32_t bucket,
    uint32_t *steps, uint32_t *used)
{
    uint32_t                  e, offset;
    const kube_zone_entry_t  *entry;

    for (e = kube_half_get(kube_zone_bucket(zone, bucket));
         e != 0;
         e = kube_half_get(&entry->next))
    {
        if (e > zone->image->geometry.entries_n || *steps == 0) {
            return KUBE_CORRUPT;
        }

        (*steps)--;
        entry = kube_zone_entry(zone, e);
        offset = kube_head_offset(kube_word_get(&entry->head));

        if (offset == 0) {
            continue;
        }

        if (kube_zone_bucket(zone, kube_half_get(&entry->hash))
            != kube_zone_bucket(zone, bucket)
            || !zone_entry_is_valid(zone, e, offset))
        {
            return KUBE_CORRUPT;
        }

        (*used)++;
    }

    return KUBE_OK;
}


static kube_rc_t
zone_chains_validate(const kube_zone_t *zone)
{
    uint32_t                     i, steps, used;
    const kube_zone_geometry_t  *g;

    g = &zone->image->geometry;
    steps = g->entries_n;
    used = 0;

    for (i = 0; i < g->buckets_n; i++) {
        if (zone_chain_validate(zone, i, &steps, &used) != KUBE_OK) {
            return KUBE_CORRUPT;
        }
    }

    for (i = 1; i <= g->entries_n; i++) {
        if (kube_head_offset(kube_word_get(&kube_zone_entry(zone, i)->head))
            != 0)
        {
            used--;
        }
    }

    return (used == 0) ? KUBE_OK : KUBE_CORRUPT;
}


kube_rc_t
kube_zone_validate(void *mem, size_t size)
{
    uint32_t              number, offset;
    kube_zone_t           zone;
    const kube_record_t  *record;

    if (kube_zone_attach(&zone, mem, size) != KUBE_OK
        || zone_chains_validate(&zone) != KUBE_OK)
    {
        return KUBE_CORRUPT;
    }

    number = zone.image->geometry.entries_n + 1;

    for ( /* void */ ; number <= kube_zone_server_number(&zone); number++) {
        offset = kube_head_offset(kube_word_get(
                                      kube_zone_head_of(&zone, number)));

        if (offset != 0
            && !zone_record_is_valid(&zone, number, offset, &record))
        {
            return KUBE_CORRUPT;
        }
    }

    return KUBE_OK;
}


uint32_t
kube_key_hash(kube_seed_t seed, kube_resource_t resource, kube_str_t ns,
    kube_str_t name)
{
    unsigned char  bytes[2 + KUBE_NAMESPACE_LEN_MAX + KUBE_NAME_LEN_MAX];

    /* the two lengths keep "a" + "bc" apart from "ab" + "c" */
    bytes[0] = (unsigned char) ns.len;
    bytes[1] = (unsigned char) name.len;

    if (ns.len != 0) {
        memcpy(bytes + 2, ns.data, ns.len);
    }

    if (name.len != 0) {
        memcpy(bytes + 2 + ns.len, name.data, name.len);
    }

    return (uint32_t) (kube_hash64(seed, bytes, 2 + ns.len + name.len)
                       + resource);
}


void
kube_zone_usage(const kube_zone_t *zone, kube_zone_usage_t *usage)
{
    const kube_zone_image_t  *image;

    image = zone->image;

    usage->size_bytes = image->geometry.size;
    usage->table_bytes = image->geometry.segments;
    usage->records_bytes = (uint64_t) image->geometry.segments_n
                           * image->geometry.segment_size;
    usage->live_bytes = kube_word_get(&image->live_bytes);
    usage->entries = image->geometry.entries_n;
    usage->entries_used = kube_word_get(&image->entries_used);
    usage->failures = kube_word_get(&image->failures);
    usage->refused = kube_word_get(&image->refused);
}


size_t
kube_zone_record_max(const kube_zone_t *zone)
{
    return zone->image->geometry.segment_size;
}

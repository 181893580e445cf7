/*
 * kube_zone - making an image, attaching to one.
 *
 * It neither looks anything up (kube_zone_reader.c) nor writes records
 * (kube_zone_writer.c).  create is called once per image before any other
 * process sees it; the rest may be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_image.h"


#define ZONE_SEGMENT_MIN        4096

/* The zone has one of each for so many of its bytes. */
#define ZONE_BYTES_AN_OBJECT    192
#define ZONE_BYTES_A_SCOPE      8192
#define ZONE_BYTES_A_WORKER     16384
#define ZONE_SEGMENTS_WANTED    16

/*
 * The event ring has this part of the zone, if that is enough for the lower
 * number of events (512 KiB of zone), and no more than for the upper one (as
 * from 128 MiB on).  32 MiB have room for 2520: two seconds of 1000 changes
 * each.
 */
#define ZONE_EVENTS_SHARE       32
#define ZONE_EVENTS_MIN         32
#define ZONE_EVENTS_MAX         10240

/* Their names have 5 % of the room for records. */
#define ZONE_OBJECTS_A_NAME     16


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


/* A ring of few events would only ever tell subscribers that they are late. */
static uint32_t
zone_events(uint64_t size)
{
    uint64_t  n;

    n = size / ZONE_EVENTS_SHARE / sizeof(kube_zone_slot_t);

    return (n < ZONE_EVENTS_MIN) ? 0
           : (n > ZONE_EVENTS_MAX) ? ZONE_EVENTS_MAX : (uint32_t) n;
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

    /*
     * About the mean of a Service and a slice of one endpoint: memory ends
     * before entries do.  The others are for names of refused ones.
     */
    g->objects_max = (uint32_t) (size / ZONE_BYTES_AN_OBJECT);
    g->entries_n = g->objects_max + g->objects_max / ZONE_OBJECTS_A_NAME;

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
    g->events = zone_align(g->workers + (uint64_t) g->workers_n
                                        * sizeof(kube_zone_worker_t));
    g->events_n = zone_events(size);
    g->segments = zone_align(g->events + (uint64_t) g->events_n
                                         * sizeof(kube_zone_slot_t));

    records = size - g->segments;
    g->segment_size = zone_segment_size(records);
    g->segments_n = (uint32_t) (records / g->segment_size);

    g->check = kube_hash64((kube_seed_t) { KUBE_ZONE_MAGIC, KUBE_ZONE_LAYOUT },
                           g, offsetof(kube_zone_geometry_t, check));
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
kube_zone_create(kube_zone_t *zone, void *mem, size_t size, kube_seed_t seed)
{
    if (!zone_size_is_valid(mem, size)) {
        return KUBE_INVALID;
    }

    memset(zone, 0, sizeof(kube_zone_t));
    zone->image = mem;
    zone->size = size;
    zone->guard_fd = KUBE_ZONE_PRIVATE;
    zone_geometry(&zone->geometry, size, seed);
    zone->image->geometry = zone->geometry;

    return KUBE_OK;
}


kube_rc_t
kube_zone_attach(kube_zone_t *zone, void *mem, size_t size)
{
    kube_zone_geometry_t  g, expected;

    if (!zone_size_is_valid(mem, size)) {
        return KUBE_CORRUPT;
    }

    memcpy(&g, mem, sizeof(kube_zone_geometry_t));
    zone_geometry(&expected, size, g.seed);

    if (memcmp(&g, &expected, sizeof(kube_zone_geometry_t)) != 0) {
        return KUBE_CORRUPT;
    }

    memset(zone, 0, sizeof(kube_zone_t));
    zone->image = mem;
    zone->size = size;
    zone->geometry = g;
    zone->guard_fd = KUBE_ZONE_PRIVATE;

    return KUBE_OK;
}


void
kube_zone_geometry_heal(kube_zone_t *zone)
{
    if (memcmp(&zone->image->geometry, &zone->geometry,
               sizeof(kube_zone_geometry_t))
        != 0)
    {
        zone->image->geometry = zone->geometry;
    }
}


void
kube_zone_usage(const kube_zone_t *zone, kube_zone_usage_t *usage)
{
    const kube_zone_image_t     *image;
    const kube_zone_geometry_t  *g;

    image = zone->image;
    g = &zone->geometry;

    usage->size_bytes = g->size;
    usage->table_bytes = g->segments;
    usage->records_bytes = (uint64_t) g->segments_n * g->segment_size;
    usage->live_bytes = kube_word_get(&image->live_bytes);
    usage->entries = g->entries_n;
    usage->entries_used = kube_word_get(&image->entries_used);
    usage->failures = kube_word_get(&image->history.failures);
    usage->refused = kube_word_get(&image->refused);
}


size_t
kube_zone_record_max(const kube_zone_t *zone)
{
    return zone->geometry.segment_size;
}


/* Refs have half of a segment; from segments of 16 KiB on that is for all. */
size_t
kube_zone_slices_max(const kube_zone_t *zone)
{
    size_t  n;

    n = zone->geometry.segment_size / 2 / sizeof(kube_ref_t);

    return (n < KUBE_SERVICE_SLICES_MAX) ? n : KUBE_SERVICE_SLICES_MAX;
}


size_t
kube_zone_service_max(const kube_zone_t *zone)
{
    return kube_zone_record_max(zone)
           - kube_zone_slices_max(zone) * sizeof(kube_ref_t);
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

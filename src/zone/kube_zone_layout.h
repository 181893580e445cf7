/*
 * kube_zone_layout - the image as it lies in memory, and the steps that the
 * files of src/zone share.
 *
 * Private to src/zone and its tests.  A change of any struct here is a change
 * of KUBE_ZONE_LAYOUT.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_LAYOUT_H
#define KUBE_ZONE_LAYOUT_H


#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "kube_failpoint.h"
#include "kube_zone_stats.h"


#define KUBE_ZONE_MAGIC     0x656e6f7a6562756bull    /* "kubezone" */

/* Offsets of records count these. */
#define KUBE_ZONE_UNIT      8

typedef _Atomic uint64_t  kube_word_t;
typedef _Atomic uint32_t  kube_half_t;

static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
              "atomics in shared memory must need no lock");
static_assert(sizeof(kube_word_t) == 8 && sizeof(kube_half_t) == 4,
              "atomics are laid out as plain integers");
static_assert(sizeof(kube_record_t) == 32 && sizeof(kube_ref_t) == 8,
              "records are laid out without holes");


/* What create decided; constant afterwards and covered by check. */
typedef struct {
    uint64_t     magic;
    uint32_t     layout;
    uint32_t     entries_n;
    uint64_t     size;
    kube_seed_t  seed;
    uint64_t     buckets;         /* all offsets in bytes */
    uint64_t     entries;
    uint64_t     scopes;
    uint64_t     workers;
    uint64_t     segments;
    uint32_t     buckets_n;       /* a power of two */
    uint32_t     objects_max;     /* entries that may hold objects */
    uint32_t     scopes_n;
    uint32_t     workers_n;
    uint32_t     segment_size;
    uint32_t     segments_n;
    uint64_t     check;
} kube_zone_geometry_t;

/* Entries are numbered from 1.  A free entry keeps sequence, hash, link. */
typedef struct {
    kube_word_t  head;            /* sequence << 32 | offset */
    kube_half_t  next;
    kube_half_t  hash;
} kube_zone_entry_t;

typedef struct {
    kube_word_t  record;          /* heads as those of entries */
    kube_word_t  error;
    kube_word_t  counters[KUBE_COUNTERS];
} kube_zone_scope_t;

typedef struct {
    kube_word_t  counters[KUBE_WORKER_COUNTERS];
} kube_zone_worker_t;

typedef struct {
    kube_word_t  buckets[KUBE_HISTOGRAM_BUCKETS + 1];
    kube_word_t  sum;
} kube_zone_histogram_t;

struct kube_zone_image_s {
    kube_zone_geometry_t    geometry;

    /* the guard; a cache line of its own */
    _Alignas(64)
    pthread_mutex_t         guard;

    _Alignas(64)
    kube_word_t             reuse;          /* odd: an entry changes chains */
    kube_word_t             revision;       /* the last given out */
    kube_word_t             live_bytes;
    kube_word_t             entries_used;
    kube_word_t             refused;
    kube_word_t             failures;
    kube_word_t             server;         /* head of an INFO record */

    kube_word_t             epoch;
    kube_word_t             takeovers;
    kube_word_t             writer_pid;
    kube_word_t             writer_since_ms;
    kube_word_t             starting_pid;
    kube_word_t             crashes;
    kube_word_t             crash_times_ms[4];
    kube_word_t             crash_run;
    kube_word_t             start_delay_until_ms;
    kube_word_t             state_written_ms;
    kube_word_t             state_in_use;
    kube_word_t             state_failed;
    kube_word_t             queue_depth;

    _Alignas(64)
    kube_word_t             corrupt;        /* readers: broken records met */

    kube_zone_histogram_t   histograms[KUBE_HISTOGRAMS][KUBE_RESOURCES];
};


static inline uint64_t
kube_word_get(const kube_word_t *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}


static inline void
kube_word_set(kube_word_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    KUBE_FAILPOINT("store");
}


static inline void
kube_word_add(kube_word_t *word, uint64_t n)
{
    (void) atomic_fetch_add_explicit(word, n, memory_order_relaxed);
}


static inline uint32_t
kube_half_get(const kube_half_t *half)
{
    return atomic_load_explicit(half, memory_order_acquire);
}


static inline void
kube_half_set(kube_half_t *half, uint32_t value)
{
    atomic_store_explicit(half, value, memory_order_release);
    KUBE_FAILPOINT("store");
}


static inline uint32_t
kube_head_offset(uint64_t head)
{
    return (uint32_t) head;
}


/* The head's successor: the sequence grows at every store. */
static inline void
kube_head_set(kube_word_t *word, uint32_t offset)
{
    uint64_t  head;

    head = atomic_load_explicit(word, memory_order_relaxed);
    kube_word_set(word, ((head >> 32) + 1) << 32 | offset);
}


static inline void *
kube_zone_at(const kube_zone_t *zone, uint64_t offset)
{
    return (char *) zone->image + offset;
}


static inline kube_half_t *
kube_zone_bucket(const kube_zone_t *zone, uint32_t hash)
{
    const kube_zone_geometry_t  *g;

    g = &zone->image->geometry;

    return (kube_half_t *) kube_zone_at(zone, g->buckets)
           + (hash & (g->buckets_n - 1));
}


/* entry is 1 .. entries_n */
static inline kube_zone_entry_t *
kube_zone_entry(const kube_zone_t *zone, uint32_t entry)
{
    return (kube_zone_entry_t *)
               kube_zone_at(zone, zone->image->geometry.entries) + entry - 1;
}


static inline kube_zone_scope_t *
kube_zone_scope(const kube_zone_t *zone, unsigned slot)
{
    return (kube_zone_scope_t *)
               kube_zone_at(zone, zone->image->geometry.scopes) + slot;
}


/* A record's first word; offset in units, bounded by the caller. */
static inline kube_word_t *
kube_zone_words(const kube_zone_t *zone, uint32_t offset)
{
    return kube_zone_at(zone, (uint64_t) offset * KUBE_ZONE_UNIT);
}


/*
 * Records that belong to no entry have numbers above the entries': two for
 * each scope slot and one for the server.
 */
static inline uint32_t
kube_zone_scope_number(const kube_zone_t *zone, unsigned slot, bool error)
{
    return zone->image->geometry.entries_n + 1 + 2 * slot + (error ? 1 : 0);
}


static inline uint32_t
kube_zone_server_number(const kube_zone_t *zone)
{
    return zone->image->geometry.entries_n + 1
           + 2 * zone->image->geometry.scopes_n;
}


/* The hash that an object's entry bears; the same for all kinds of record. */
static inline uint32_t
kube_zone_hash(const kube_zone_t *zone, const kube_record_id_t *id)
{
    return kube_key_hash(zone->image->geometry.seed, id->resource,
                         id->meta.ns, id->meta.name);
}


/* The head of any number; NULL: none has it. */
kube_word_t *kube_zone_head_of(const kube_zone_t *zone, uint32_t number);

/* The geometry at mem is one that create makes for size bytes. */
kube_rc_t kube_zone_geometry_check(const void *mem, size_t size)
    KUBE_MUST_CHECK;

/* Bytes that a record at offset may have; 0: no record can begin there. */
size_t kube_zone_room_at(const kube_zone_t *zone, uint32_t offset);

/*
 * Copies the record that head names if head still is *word afterwards.
 * KUBE_OK; KUBE_CHANGED; KUBE_TOO_LARGE (*size is what is needed).
 */
kube_rc_t kube_zone_copy_record(const kube_zone_t *zone,
    const kube_word_t *word, uint64_t head, void *buf, size_t *size)
    KUBE_MUST_CHECK;

/* The record under any head, in the arena; results as kube_zone_read's. */
kube_rc_t kube_zone_load(const kube_zone_t *zone, const kube_word_t *word,
    kube_arena_t *arena, const kube_record_t **record)  KUBE_MUST_CHECK;

/* A Service's record and those of its slices as of one moment. */
typedef struct {
    uint64_t                head;
    const kube_record_t    *service;
    const kube_record_t   **slices;
    size_t                  slices_n;
} kube_zone_bundle_t;

/* Results as kube_zone_read's; ns.len 0: whatever Service it is. */
kube_rc_t kube_zone_load_service(const kube_zone_t *zone, uint32_t entry,
    kube_str_t ns, kube_str_t name, kube_arena_t *arena,
    kube_zone_bundle_t *bundle)  KUBE_MUST_CHECK;


#endif /* KUBE_ZONE_LAYOUT_H */

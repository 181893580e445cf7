/*
 * kube_zone - the shared memory image: creating one, attaching to one.
 *
 * One contiguous, offset-based image laid out in memory that the caller
 * gives (nginx's shared zone, a heap block, a file):
 *
 *   geometry | words | buckets | entries | scopes | workers | events |
 *   segments
 *
 * One process writes records (kube_zone_writer.h); any number of processes
 * reads them (kube_zone_reader.h), without a lock and without leaving a
 * trace.
 *
 * The entry table never moves.  It has one entry for each object (Service,
 * slice) with the hash of the key, a chain link and a 64-bit atomic head: the
 * offset of the record in units of 8 bytes (low 32 bits; 0: none) and a
 * sequence (high 32 bits) that grows at every store, moves included.
 *
 * Publication is one store.  A Service's record names the records of all its
 * slices by entry and offset, so a reader who finds the Service's head
 * unchanged after copying them has one consistent state of the Service.
 *
 * docs/internals/zone.md has the parts and their order.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_H
#define KUBE_ZONE_H


#include "kube_hash.h"
#include "kube_resource.h"


#define KUBE_ZONE_SIZE_MIN      (64u << 10)
#define KUBE_ZONE_SIZE_MAX      (4ull << 30)
#define KUBE_ZONE_SEGMENT_MAX   (256u << 10)

/* Grows with every change of the image or of a record. */
#define KUBE_ZONE_LAYOUT        24

typedef struct kube_zone_image_s   kube_zone_image_t;
typedef struct kube_zone_writer_s  kube_zone_writer_t;

/* Where what lies in an image; it follows from the size and the seed. */
typedef struct {
    uint64_t     magic;
    uint32_t     layout;
    uint32_t     entries_n;
    uint64_t     size;
    kube_seed_t  seed;
    uint64_t     buckets;         /* this and the next five: bytes */
    uint64_t     entries;
    uint64_t     scopes;
    uint64_t     workers;
    uint64_t     events;
    uint64_t     segments;
    uint32_t     buckets_n;       /* a power of two */
    uint32_t     objects_max;     /* entries that may hold objects */
    uint32_t     scopes_n;
    uint32_t     workers_n;
    uint32_t     events_n;        /* slots of the event ring; 0: none */
    uint32_t     segment_size;
    uint32_t     segments_n;
    uint32_t     unused;          /* 0: all bytes are compared */
    uint64_t     check;
} kube_zone_geometry_t;

/*
 * A process's handle; the caller owns it, and may copy it.  The geometry is
 * this process's own: the one in the image is looked at by attach alone, for
 * any process that has the zone mapped may have changed it since.
 */
typedef struct {
    kube_zone_image_t    *image;
    size_t                size;
    kube_zone_geometry_t  geometry;
    int                   guard_fd;       /* kube_zone_guard_open()'s, or
                                             PRIVATE; create and attach set
                                             that, the caller the other */
    bool                  guard_held;     /* kube_zone_guard.c's */
} kube_zone_t;

/* guard_fd of an image that no other process writes. */
#define KUBE_ZONE_PRIVATE  (-1)

/*
 * Makes an image of size bytes at mem, 8-byte aligned, which are zero, as
 * mmap() gives them: it touches the first of them alone, and who writes touches
 * more as it is used.  seed is for the hash table.  Called once, before any
 * other process sees mem.  KUBE_OK, or KUBE_INVALID (size or alignment).
 */
kube_rc_t kube_zone_create(kube_zone_t *zone, void *mem, size_t size,
    kube_seed_t seed)  KUBE_MUST_CHECK;

/*
 * Attaches to an image made by create.  Any bytes are accepted: the geometry
 * must be the one that create makes for size.  KUBE_OK or KUBE_CORRUPT.  Who
 * has a handle, or was forked from a process that has one, keeps that instead.
 */
kube_rc_t kube_zone_attach(kube_zone_t *zone, void *mem, size_t size)
    KUBE_MUST_CHECK;

/* Writes the handle's geometry where the image's is not the same any more. */
void kube_zone_geometry_heal(kube_zone_t *zone);


typedef struct {
    uint64_t  size_bytes;
    uint64_t  table_bytes;       /* all but the segments */
    uint64_t  records_bytes;     /* room for records */
    uint64_t  live_bytes;        /* records in use */
    uint64_t  entries;
    uint64_t  entries_used;
    uint64_t  failures;          /* objects refused for want of room, ever */
    uint64_t  refused;           /* objects named as refused now */
} kube_zone_usage_t;

void kube_zone_usage(const kube_zone_t *zone, kube_zone_usage_t *usage);

/* The largest record the zone can hold, bytes. */
size_t kube_zone_record_max(const kube_zone_t *zone);

/*
 * A Service and the refs to its slices are one record: the most slices that one
 * can have, and the largest record of one without refs, beside which so many
 * refs fit.
 */
size_t kube_zone_slices_max(const kube_zone_t *zone);
size_t kube_zone_service_max(const kube_zone_t *zone);

/*
 * Hash of a key under a seed: one for all tables of keys.  ns and name are
 * not longer than KUBE_NAMESPACE_LEN_MAX and KUBE_NAME_LEN_MAX.
 */
uint32_t kube_key_hash(kube_seed_t seed, kube_resource_t resource,
    kube_str_t ns, kube_str_t name);


#endif /* KUBE_ZONE_H */

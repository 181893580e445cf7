/*
 * kube_zone - the shared memory image: layout, creation, attaching.
 *
 * One contiguous, offset-based image laid out in memory the caller gives
 * (nginx's shared zone, a heap block, a file):
 *
 *   header | buckets | entries | scope slots | stats | segments of records
 *
 * One process writes records (kube_zone_writer.h); any number reads
 * (kube_zone_reader.h) without a lock and without leaving a trace.
 *
 * The entry table never moves: one entry per object (Service, slice) with
 * key hash, chain link and a 64-bit atomic head = record offset in units of
 * 8 bytes (low 32 bits; 0: none) + a sequence (high 32 bits) that grows at
 * every store, moves included.
 *
 * Publication is one store: a Service's record names the records of all its
 * slices by entry and offset, so a reader who finds the Service's head
 * unchanged after copying them has one consistent state of the Service.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_H
#define KUBE_ZONE_H


#include "kube_record.h"


#define KUBE_ZONE_SIZE_MIN      (64u << 10)
#define KUBE_ZONE_SIZE_MAX      (4ull << 30)
#define KUBE_ZONE_LAYOUT        2
#define KUBE_ZONE_SEGMENT_MAX   (256u << 10)

typedef struct kube_zone_image_s  kube_zone_image_t;    /* kube_zone_layout.h */

/* A process's handle; the caller owns it; no memory behind it but the image. */
typedef struct {
    kube_zone_image_t  *image;
    size_t              size;
} kube_zone_t;

/*
 * Formats mem (8-byte aligned; its former content is ignored).  seed is for
 * the hash table.  KUBE_OK or KUBE_INVALID (size).
 */
kube_rc_t kube_zone_create(kube_zone_t *zone, void *mem, size_t size,
    kube_seed_t seed)  KUBE_MUST_CHECK;

/*
 * Attaches to an image made by create.  Any bytes are accepted: header,
 * layout version, sizes and offsets are checked.  KUBE_OK or KUBE_CORRUPT.
 */
kube_rc_t kube_zone_attach(kube_zone_t *zone, void *mem, size_t size)
    KUBE_MUST_CHECK;

/*
 * A full check of an image nobody writes to: header, every chain, every
 * record reachable.  KUBE_OK: every look-up stays in bounds.
 */
kube_rc_t kube_zone_validate(void *mem, size_t size)  KUBE_MUST_CHECK;


typedef struct {
    uint64_t  size_bytes;
    uint64_t  table_bytes;       /* header, tables, stats */
    uint64_t  records_bytes;     /* room for records */
    uint64_t  live_bytes;        /* records in use */
    uint64_t  entries;
    uint64_t  entries_used;
    uint64_t  failures;          /* puts refused for want of room */
    uint64_t  refused;           /* objects named as refused now */
} kube_zone_usage_t;

void kube_zone_usage(const kube_zone_t *zone, kube_zone_usage_t *usage);

/*
 * Hash of a key under a seed: one for all tables of keys.  ns and name are
 * not longer than KUBE_NAMESPACE_LEN_MAX and KUBE_NAME_LEN_MAX.
 */
uint32_t kube_key_hash(kube_seed_t seed, kube_resource_t resource,
    kube_str_t ns, kube_str_t name);

/* The largest record the zone can hold, bytes. */
size_t kube_zone_record_max(const kube_zone_t *zone);


#endif /* KUBE_ZONE_H */

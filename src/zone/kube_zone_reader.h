/*
 * kube_zone_reader - look-up and consistent copies, for any process.
 *
 * Readers take no lock and leave no trace: load head (acquire), bound it,
 * copy the record word by word with acquire loads into own memory, load the
 * head again; changed: again, KUBE_ZONE_TRIES times, then KUBE_CHANGED (keep
 * what you have).  Nothing in a copy is interpreted before that re-check, and
 * the identity in a copy is compared with the one asked for.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_READER_H
#define KUBE_ZONE_READER_H


#include "kube_zone.h"


#define KUBE_ZONE_TRIES  64

/* One acquire load: all a request in steady state pays.  0: entry is free. */
uint64_t kube_zone_head(const kube_zone_t *zone, uint32_t entry);

/*
 * Finds the entry of an object.  *entry is 1-based and stays the object's as
 * long as its head is not 0 and the identity agrees.
 * KUBE_OK or KUBE_NOT_FOUND.  REFUSED records are not found.
 */
kube_rc_t kube_zone_find(const kube_zone_t *zone, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, uint32_t *entry)  KUBE_MUST_CHECK;

/* A Service and its slices as of one moment; all memory is the arena's. */
typedef struct {
    uint32_t         entry;
    uint64_t         head;
    uint64_t         revision;
    bool             from_state_file;
    kube_service_t   service;
    kube_slice_t    *slices;
    size_t           slices_n;
} kube_snapshot_t;

/*
 * KUBE_OK; KUBE_NOT_FOUND (freed, or not this name: ns and name are
 * compared); KUBE_CHANGED (kept changing); KUBE_NOMEM; KUBE_CORRUPT (counted;
 * treat as CHANGED).
 */
kube_rc_t kube_zone_read(const kube_zone_t *zone, uint32_t entry,
    kube_str_t ns, kube_str_t name, kube_arena_t *arena,
    kube_snapshot_t *snapshot)  KUBE_MUST_CHECK;

/*
 * Walks all entries: *cursor starts at 0; each call copies the next live
 * record of the kind into the arena.  KUBE_OK, KUBE_NOT_FOUND (the end),
 * KUBE_NOMEM (cursor unchanged).  Records that keep changing are passed over.
 */
kube_rc_t kube_zone_next(const kube_zone_t *zone, kube_record_kind_t kind,
    uint32_t *cursor, kube_arena_t *arena, const kube_record_t **record,
    uint32_t *entry)  KUBE_MUST_CHECK;


#endif /* KUBE_ZONE_READER_H */

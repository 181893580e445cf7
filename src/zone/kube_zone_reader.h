/*
 * kube_zone_reader - look-up and consistent copies, for any process.
 *
 * Readers take no lock and leave no trace: load head (acquire), bound it,
 * copy the record word by word with acquire loads into own memory, load the
 * head again; changed: again, KUBE_ZONE_TRIES times, then KUBE_CHANGED (keep
 * what you have).  Nothing in a copy is interpreted before that re-check, the
 * identity in a copy is compared with the one asked for, and its checksum is
 * verified: any process that has the zone mapped may have written to it.
 * Copies are made when an instance is built, not for each request.
 *
 * Why the re-check is enough: the writer moves a head away before it
 * overwrites the record under it, both with release stores.  Words are copied
 * with acquire loads, so a copy that holds one overwritten word also sees the
 * head that was moved before.
 *
 * Of a Service and its slices a try keeps what an earlier one copied, where the
 * ref and the whole header, revision and checksum among it, are the same as of
 * this head: so its content is, or the checksum says that it was copied in the
 * wrong moment.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_READER_H
#define KUBE_ZONE_READER_H


#include "kube_record.h"
#include "kube_zone.h"
#include "kube_zone_word.h"


#define KUBE_ZONE_TRIES  64

/* The head of an entry.  0: the entry is free, or is none. */
uint64_t kube_zone_head(const kube_zone_t *zone, uint32_t entry);

/*
 * The word that holds it, in the zone, for who compares it again and again; it
 * is where it is as long as the zone is attached.  NULL: there is no such
 * entry.
 */
const _Atomic uint64_t *kube_zone_head_word(const kube_zone_t *zone,
    uint32_t entry);


/*
 * Whether the word is a head still that kube_zone_head() gave, and that was not
 * 0: one acquire load, which is all that a request in steady state pays.
 */
static inline bool
kube_zone_head_is(const _Atomic uint64_t *word, uint64_t head)
{
    return kube_word_get(word) == head;
}


/*
 * Finds the entry of an object.  *entry is 1-based and stays the object's as
 * long as its head is not 0 and the identity agrees.  KUBE_OK; KUBE_NOT_FOUND
 * (also: the name is one of a refused object); or KUBE_CHANGED: the chains
 * kept changing, and it may be in one.
 */
kube_rc_t kube_zone_find(const kube_zone_t *zone, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, uint32_t *entry)  KUBE_MUST_CHECK;

/*
 * Whether an object is known by its name alone, because it was refused: it is
 * there, and not held.
 */
bool kube_zone_is_refused(const kube_zone_t *zone, kube_resource_t resource,
    kube_str_t ns, kube_str_t name);

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
 * compared); KUBE_CHANGED (it kept changing); KUBE_NOMEM; KUBE_CORRUPT
 * (counted; treat it as CHANGED).
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

/*
 * The same as far as the entry last, for who has other things to do meanwhile:
 * KUBE_AGAIN: none up to there, and entries beyond.
 */
kube_rc_t kube_zone_next_within(const kube_zone_t *zone,
    kube_record_kind_t kind, uint32_t last, uint32_t *cursor,
    kube_arena_t *arena, const kube_record_t **record)  KUBE_MUST_CHECK;

/*
 * The same over all that is refused: records of kind REFUSED, and objects
 * that are outdated (KUBE_RECORD_F_OUTDATED).
 */
kube_rc_t kube_zone_next_refused(const kube_zone_t *zone, uint32_t *cursor,
    kube_arena_t *arena, const kube_record_t **record)  KUBE_MUST_CHECK;

/*
 * Copies one record into the arena, of a Service without its slices; results
 * as kube_zone_read's.  Whose it is has not been compared.
 */
kube_rc_t kube_zone_load(const kube_zone_t *zone, uint32_t number,
    kube_arena_t *arena, const kube_record_t **record)  KUBE_MUST_CHECK;


/* For the files of src/zone. */

/*
 * Copies the record of any number (kube_zone_image.h) into buf; *size is the
 * room there, then what the record takes.  KUBE_OK, KUBE_NOT_FOUND,
 * KUBE_CHANGED, KUBE_TOO_LARGE, KUBE_CORRUPT.
 */
kube_rc_t kube_zone_load_into(const kube_zone_t *zone, uint32_t number,
    void *buf, size_t *size)  KUBE_MUST_CHECK;

/* A Service's record and those of its slices as of one moment. */
typedef struct {
    uint64_t                head;
    const kube_record_t    *service;
    const kube_record_t   **slices;
    size_t                  slices_n;
} kube_zone_bundle_t;

/*
 * Results as kube_zone_read's; ns.len 0: whatever Service it is.  The Service
 * is copied into arena, its slices into the other one (or the same), so that
 * they may go first: they may be most of it.
 */
kube_rc_t kube_zone_load_service(const kube_zone_t *zone, uint32_t entry,
    kube_str_t ns, kube_str_t name, kube_arena_t *arena,
    kube_arena_t *slices, kube_zone_bundle_t *bundle)  KUBE_MUST_CHECK;


#endif /* KUBE_ZONE_READER_H */

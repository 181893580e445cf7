/*
 * kube_zone_writer - the one process that writes records.
 *
 * Guard: a robust process-shared mutex in the image, held for the writer's
 * life; the kernel releases it at death.  Acquiring always walks the table,
 * validates every record, recomputes segment counts, repairs what a dead
 * predecessor left half done, and cuts off what fails validation.
 *
 * Memory: log-structured segments.  A put appends to the open segment; the
 * emptiest segment is evacuated (live records move, their heads' sequences
 * grow, revisions stay) when free segments run low.  One segment is always
 * kept for that; full means less than one eighth of the others free, or as
 * many objects as the zone has entries for (one for each 512 bytes).
 * Publishing, REFUSED, SCOPE, ERROR and INFO records may use the reserve.
 *
 * Staging: kube_zone_stage() writes a record that readers do not see yet;
 * kube_zone_publish() makes a Service and its staged slices visible with one
 * store.  A freed entry keeps its chain link until KUBE_ZONE_QUARANTINE_MS
 * have passed, so that a reader inside the chain finds its live neighbours.
 *
 * Every function is for the process that holds the guard, one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_WRITER_H
#define KUBE_ZONE_WRITER_H


#include "kube_zone_reader.h"


#define KUBE_ZONE_QUARANTINE_MS  10000

typedef struct kube_zone_writer_s  kube_zone_writer_t;

/*
 * zone is borrowed.  NULL: out of memory (16 bytes an entry, and one bit for
 * each 8 bytes of records: about 1/12 of the zone).
 */
kube_zone_writer_t *kube_zone_writer_create(const kube_alloc_t *alloc,
    kube_zone_t *zone)  KUBE_MUST_CHECK;

/* Releases the guard if held. */
void kube_zone_writer_destroy(kube_zone_writer_t *writer);

typedef struct {
    bool      crashed;        /* the predecessor died holding the guard */
    uint32_t  records;        /* live after the walk */
    uint32_t  cut_off;        /* records that failed validation */
    uint32_t  repaired;       /* Services published again */
    uint64_t  epoch;          /* after this take-over */
} kube_takeover_t;

/*
 * Tries to become the writer.  KUBE_BUSY: another process is.  KUBE_CORRUPT:
 * the header is broken beyond repair (the caller may create the image anew).
 */
kube_rc_t kube_zone_writer_acquire(kube_zone_writer_t *writer,
    uint64_t now_ms, kube_takeover_t *takeover)  KUBE_MUST_CHECK;
void kube_zone_writer_release(kube_zone_writer_t *writer);
bool kube_zone_writer_held(const kube_zone_writer_t *writer);

/*
 * Sets the writer's clock (monotonic ms, must not go back), by which freed
 * entries are kept from reuse.  The caller sets it once per turn; acquire
 * sets it, too.
 */
void kube_zone_writer_now(kube_zone_writer_t *writer, uint64_t now_ms);

/*
 * An object on its way into the zone.  Its identity is read and its key is
 * hashed and looked up once, when the item is made; the steps below take the
 * item.  Between the two, no other item of the same key may be staged or
 * refused; that other keys are (to make room) does no harm.
 */
typedef struct {
    const kube_record_t  *record;      /* borrowed; NULL: a name alone */
    kube_record_id_t      id;          /* borrows from record, or the names */
    uint32_t              hash;        /* kube_key_hash(), zone's seed */
    uint32_t              entry;       /* that has the key; 0: none has */
    kube_record_id_t      held;        /* of the entry's newest record; good
                                          until the next call that writes */
    bool                  relabelled;  /* held, but not as a slice of the
                                          same Service */
} kube_zone_item_t;

/*
 * The item of a record (SERVICE or SLICE, as encoded with refs_n 0, not in
 * the zone): KUBE_OK, or KUBE_INVALID (not a record of an object).  The item
 * of a name: KUBE_OK, or KUBE_INVALID (nothing can have this name).  The item
 * of what an entry holds, without a record, id being held: KUBE_OK, or
 * KUBE_NOT_FOUND.
 */
kube_rc_t kube_zone_item(const kube_zone_writer_t *writer,
    const kube_record_t *record, kube_zone_item_t *item)  KUBE_MUST_CHECK;
kube_rc_t kube_zone_item_name(const kube_zone_writer_t *writer,
    kube_resource_t resource, kube_str_t ns, kube_str_t name,
    kube_zone_item_t *item)  KUBE_MUST_CHECK;
kube_rc_t kube_zone_item_entry(const kube_zone_writer_t *writer,
    uint32_t entry, kube_zone_item_t *item)  KUBE_MUST_CHECK;

/* The record may take room that ordinary ones must leave free. */
#define KUBE_STAGE_USE_RESERVE  0x1

/*
 * Stages the item's record under its key, in item->entry, which is taken
 * where it was 0.  What readers see is unchanged.  Staging again replaces
 * what was staged.  flags is 0 or KUBE_STAGE_USE_RESERVE.
 *
 * KUBE_OK; KUBE_FULL (nothing changed, failures + 1); KUBE_TOO_LARGE (than a
 * segment).  An update is ordinary where it is not larger than the room left
 * and what it replaces.
 */
kube_rc_t kube_zone_stage_item(kube_zone_writer_t *writer,
    kube_zone_item_t *item, unsigned flags)  KUBE_MUST_CHECK;

/* Both steps for one record; also KUBE_INVALID. */
kube_rc_t kube_zone_stage(kube_zone_writer_t *writer,
    const kube_record_t *record, unsigned flags, uint32_t *entry)
    KUBE_MUST_CHECK;

/*
 * True if the entry's published record has the content of record; their
 * resourceVersions may differ.
 */
bool kube_zone_is_same(const kube_zone_writer_t *writer, uint32_t entry,
    const kube_record_t *record);

/*
 * The newest record of an entry (staged, else published); NULL if none.  Good
 * until the next call that puts or publishes: making room moves records.
 */
const kube_record_t *kube_zone_newest(const kube_zone_writer_t *writer,
    uint32_t entry);
const kube_record_t *kube_zone_published(const kube_zone_writer_t *writer,
    uint32_t entry);

/*
 * Publishes Service entry service with the newest records of slices[n]
 * (entries; each is then published too, and owned by this Service for moves).
 * Slices formerly named by it and not now keep their entries.  The revision
 * grows iff content of the Service or the set or content of slices changed;
 * *changed tells.  May use the reserve.  KUBE_OK, KUBE_FULL (nothing changed
 * for readers), KUBE_INVALID (not a Service; a slice whose newest record
 * does not name it; more than KUBE_SERVICE_SLICES_MAX).
 */
kube_rc_t kube_zone_publish(kube_zone_writer_t *writer, uint32_t service,
    const uint32_t *slices, size_t n, bool *changed)  KUBE_MUST_CHECK;

/*
 * Publishes a staged slice that belongs to no known Service: a take-over
 * attaches every slice to the Service that its record names.
 */
void kube_zone_publish_orphan(kube_zone_writer_t *writer, uint32_t slice);

/*
 * Frees an entry and its records.  A slice must not be named by a published
 * Service any more (publish that first).
 */
void kube_zone_remove(kube_zone_writer_t *writer, uint32_t entry);

/* The entry of a key (published, staged or refused); 0: none. */
uint32_t kube_zone_writer_find(const kube_zone_writer_t *writer,
    kube_resource_t resource, kube_str_t ns, kube_str_t name);

/* Walks entries that hold something: 0 starts and ends. */
uint32_t kube_zone_writer_next(const kube_zone_writer_t *writer,
    uint32_t entry);

/*
 * Names an object as refused, in item->entry, replacing what its key held
 * before; rv may be empty, reason is cut to KUBE_RECORD_REASON_MAX.  There
 * are entries for as many refused objects as can be held.  KUBE_OK, or
 * KUBE_FULL: not even the name fits (the caller must not publish a version).
 */
kube_rc_t kube_zone_refuse(kube_zone_writer_t *writer,
    kube_zone_item_t *item, kube_str_t rv, kube_str_t reason)
    KUBE_MUST_CHECK;

/* True where a record of size bytes would be taken now (not the reserve). */
bool kube_zone_has_room(const kube_zone_writer_t *writer, size_t size);

/*
 * Copies all objects and scope records of another image (live: it may have a
 * writer of its own) into this fresh one.  Objects that do not fit are left
 * out: scopes are then copied without resourceVersion, so that they are
 * listed again.  For a zone whose size was changed; called before any writer
 * of this zone exists.  KUBE_OK, KUBE_FULL, KUBE_NOMEM, KUBE_CORRUPT.
 */
kube_rc_t kube_zone_copy(kube_zone_t *to, const kube_zone_t *from,
    const kube_alloc_t *alloc)  KUBE_MUST_CHECK;


#endif /* KUBE_ZONE_WRITER_H */

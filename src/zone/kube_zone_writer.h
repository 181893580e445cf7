/*
 * kube_zone_writer - the one process that writes records: staging objects
 * and making them visible.
 *
 * A record is staged first, which readers do not see, and then published: a
 * Service and its staged slices become visible with one store.  Full means
 * that less than one eighth of the room for records is free, or that as many
 * objects are held as the zone has entries for (one for each 192 bytes).
 * Names of refused objects have room of their own, so that neither ever takes
 * the other's.  Publishing, SCOPE, ERROR and INFO records may use the reserve.
 *
 * Every function is for the process that holds the guard (see
 * kube_zone_recover.h for acquire), in one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_WRITER_H
#define KUBE_ZONE_WRITER_H


#include "kube_zone_table.h"


/*
 * zone is borrowed.  NULL: out of memory.  In use it takes 28 bytes for each
 * entry that was ever taken, two bits for each 8 bytes of segments that were
 * ever opened, and two copies of the largest record.
 */
kube_zone_writer_t *kube_zone_writer_create(const kube_alloc_t *alloc,
    kube_zone_t *zone)  KUBE_MUST_CHECK;

/* Releases the guard if held. */
void kube_zone_writer_destroy(kube_zone_writer_t *writer);

void kube_zone_writer_release(kube_zone_writer_t *writer);
bool kube_zone_writer_held(const kube_zone_writer_t *writer);

/*
 * Sets the writer's clock (monotonic ms, must not go back), by which freed
 * entries are kept from reuse.  The caller sets it once per turn; acquire
 * sets it, too.
 */
void kube_zone_writer_now(kube_zone_writer_t *writer, uint64_t now_ms);


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

/* kube_zone_item() and kube_zone_stage_item(); also KUBE_INVALID. */
kube_rc_t kube_zone_stage(kube_zone_writer_t *writer,
    const kube_record_t *record, unsigned flags, uint32_t *entry)
    KUBE_MUST_CHECK;

/*
 * Gives up what is staged of an entry that is published, too: what readers
 * find is the newest again.
 */
void kube_zone_unstage(kube_zone_writer_t *writer, uint32_t entry);

/*
 * True if the entry's published record has the content of record; their
 * resourceVersions may differ.
 */
bool kube_zone_is_same(const kube_zone_writer_t *writer, uint32_t entry,
    const kube_record_t *record);

/*
 * Publishes Service entry service with the newest records of slices[n]
 * (entries; each is then published too).  Slices that it named before and
 * does not now keep their entries.  The revision grows iff content of the
 * Service or the set or content of slices changed, which *changed tells.
 * May use the reserve.
 *
 * KUBE_OK; KUBE_FULL (nothing changed for readers, failures + 1);
 * KUBE_TOO_LARGE (with these refs it is longer than a record may be);
 * KUBE_INVALID (not a Service; a slice whose newest record does not name it;
 * more than KUBE_SERVICE_SLICES_MAX).
 */
kube_rc_t kube_zone_publish(kube_zone_writer_t *writer, uint32_t service,
    const uint32_t *slices, size_t n, bool *changed)  KUBE_MUST_CHECK;

/*
 * Publishes a staged slice that belongs to no known Service: a take-over
 * attaches every slice to the Service that its record names.
 */
void kube_zone_publish_orphan(kube_zone_writer_t *writer, uint32_t slice);

/*
 * Names an object as refused, in item->entry, replacing what its key held
 * before; rv may be empty, reason is cut to KUBE_RECORD_REASON_MAX.  There
 * is room for a name to each 16 objects.  KUBE_OK; KUBE_FULL: not even the
 * name fits, so the caller counts it (kube_zone_scope_unnamed());
 * KUBE_INVALID: no object can have this name.
 */
kube_rc_t kube_zone_refuse(kube_zone_writer_t *writer,
    kube_zone_item_t *item, kube_str_t rv, kube_str_t reason)
    KUBE_MUST_CHECK;

/*
 * What the entry holds is the last good state of an object whose newer one
 * was refused: it stays readable, flagged KUBE_RECORD_F_OUTDATED, until the
 * entry is staged, refused or removed.  It takes no room.  Called again, it
 * changes the reason and since_ms.
 */
void kube_zone_outdate(kube_zone_writer_t *writer, uint32_t entry,
    kube_reason_t reason, uint64_t since_ms);

/*
 * Frees an entry and its records.  No published Service may name the slice
 * any more: publish the Service without it first.
 */
void kube_zone_remove(kube_zone_writer_t *writer, uint32_t entry);

/*
 * An eviction: no event brings its object again, so a death in the middle
 * must not lose its name.  Between the two calls the object (entry, of this
 * scope) is refused, or counted and then removed where not even its name has
 * room; first the Service that names it is published without it.  A second
 * begin ends the first.
 */
void kube_zone_evict_begin(kube_zone_writer_t *writer, uint32_t entry,
    unsigned scope);
void kube_zone_evict_end(kube_zone_writer_t *writer);

/* What the name of a refused object takes: a usual one, in bytes. */
#define KUBE_ZONE_NAME_BYTES  104

/*
 * The bytes of records that all objects may have together, without the reserve
 * and what is there for the names of refused ones.
 */
uint64_t kube_zone_room(const kube_zone_writer_t *writer);

/*
 * What an object of size bytes costs of it: at least its part where as many are
 * held as may be, and of a large one, for records lie whole in segments, the
 * part of a segment in which as many of it fit.
 */
uint64_t kube_zone_room_of(const kube_zone_writer_t *writer, uint64_t size);

/* Something found no room: failures + 1. */
void kube_zone_count_failure(kube_zone_writer_t *writer);

/*
 * How many usual names of refused objects there is room for now; 0 where there
 * is none for one of the longest: who asks for a name may have that.
 */
uint32_t kube_zone_names_left(const kube_zone_writer_t *writer);


#endif /* KUBE_ZONE_WRITER_H */

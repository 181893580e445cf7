/*
 * kube_zone_table - the writer's side of the entry table: looking keys up,
 * taking and freeing entries.
 *
 * It writes no record.  Every function is for the process that holds the
 * guard.
 *
 * A freed entry rests in its chain, with its link, so that a reader inside
 * the chain finds its live neighbours.  It changes chains when it is taken
 * again, and the image's reuse counter is odd meanwhile: a reader whom that
 * led astray looks again.  So that few have to, one that was never used is
 * taken before one that has rested for less than KUBE_ZONE_QUARANTINE_MS; but
 * that before one is missing.  A key that comes back takes the entry that it
 * left: it leads nobody astray, and whoever deletes and makes one object again
 * and again would fill its chain otherwise.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_TABLE_H
#define KUBE_ZONE_TABLE_H


#include "kube_record.h"
#include "kube_zone.h"


#define KUBE_ZONE_QUARANTINE_MS  10000


/*
 * A copy of the newest record of an entry (staged, else published), or of the
 * published one; NULL if there is none.  Its lengths are sound.  It is good
 * until the next call of the same function, and for a call that stages,
 * publishes or refuses: those may make copies of their own.
 *
 * Where the record in the image is not as it was written, the copy is one of
 * kind REFUSED without a name.
 */
const kube_record_t *kube_zone_newest(const kube_zone_writer_t *writer,
    uint32_t entry);
const kube_record_t *kube_zone_published(const kube_zone_writer_t *writer,
    uint32_t entry);

/*
 * An entry's record where it lies, for what needs no copy of it: its header as
 * it was a moment ago, with lengths that are sound.  Good for as long as the
 * copies above.  False: there is none, or it is not as it was written.
 */
typedef struct {
    uint32_t       offset;
    kube_record_t  header;
} kube_zone_place_t;

bool kube_zone_place_newest(const kube_zone_writer_t *writer, uint32_t entry,
    kube_zone_place_t *place);
bool kube_zone_place_staged(const kube_zone_writer_t *writer, uint32_t entry,
    kube_zone_place_t *place);
bool kube_zone_place_published(const kube_zone_writer_t *writer,
    uint32_t entry, kube_zone_place_t *place);

/* As kube_record_digest(), kube_record_rv(), and ref i of header.refs_n. */
kube_digest_t kube_zone_place_digest(const kube_zone_writer_t *writer,
    const kube_zone_place_t *place);
kube_str_t kube_zone_place_rv(const kube_zone_writer_t *writer,
    const kube_zone_place_t *place);
kube_ref_t kube_zone_place_ref(const kube_zone_writer_t *writer,
    const kube_zone_place_t *place, uint32_t i);

/*
 * As kube_record_same(); version: as kube_record_same_version().
 */
bool kube_zone_place_same(const kube_zone_writer_t *writer,
    const kube_zone_place_t *place, const kube_record_t *record,
    bool version);

/* True if the entry holds something: kube_zone_newest() without a copy. */
bool kube_zone_holds(const kube_zone_writer_t *writer, uint32_t entry);

/* True if the entry's newest record is one that readers do not see yet. */
bool kube_zone_is_staged(const kube_zone_writer_t *writer, uint32_t entry);

/*
 * The identity of an entry's newest record.  Its strings lie in the image:
 * they are good until the next call that stages, publishes or refuses, and
 * of the bytes there nothing is certain but that they are there.  KUBE_OK,
 * KUBE_NOT_FOUND, KUBE_CORRUPT.
 */
kube_rc_t kube_zone_entry_id(const kube_zone_writer_t *writer, uint32_t entry,
    kube_record_id_t *id)  KUBE_MUST_CHECK;

/* The next entry that holds something; 0 starts and ends. */
uint32_t kube_zone_writer_next(const kube_zone_writer_t *writer,
    uint32_t entry);

/*
 * The highest entry that was ever taken, which never falls: a table by entry
 * needs to be looked at up to here.
 */
uint32_t kube_zone_writer_top(const kube_zone_writer_t *writer);


/*
 * An object on its way into the zone.  Its identity is read and its key is
 * hashed and looked up once, when the item is made; kube_zone_stage_item()
 * and kube_zone_refuse() take the item.  In between, no other item of the
 * same key may be staged or refused; that other keys are (to make room) does
 * no harm.
 */
typedef struct {
    const kube_record_t  *record;      /* borrowed; NULL: a name alone */
    kube_record_id_t      id;          /* borrows from record, or the names */
    uint32_t              hash;        /* kube_key_hash(), zone's seed */
    uint32_t              entry;       /* that has the key; 0: none has */
    kube_record_id_t      held;        /* of the entry's newest record; good
                                          as long as that record */
    bool                  relabelled;  /* held, but not as a slice of the
                                          same Service */
} kube_zone_item_t;

/*
 * The item of a record of kind SERVICE or SLICE, as encoded, not in the zone:
 * KUBE_OK, or KUBE_INVALID (not a record of an object).
 */
kube_rc_t kube_zone_item(const kube_zone_writer_t *writer,
    const kube_record_t *record, kube_zone_item_t *item)  KUBE_MUST_CHECK;

/* The item of a name: KUBE_OK, or KUBE_INVALID (nothing can have it). */
kube_rc_t kube_zone_item_name(const kube_zone_writer_t *writer,
    kube_resource_t resource, kube_str_t ns, kube_str_t name,
    kube_zone_item_t *item)  KUBE_MUST_CHECK;

/*
 * The item of what an entry holds, without a record, id being held: KUBE_OK,
 * or KUBE_NOT_FOUND.
 */
kube_rc_t kube_zone_item_entry(const kube_zone_writer_t *writer,
    uint32_t entry, kube_zone_item_t *item)  KUBE_MUST_CHECK;

/* The entry of a key (published, staged or refused); 0: none. */
uint32_t kube_zone_writer_find(const kube_zone_writer_t *writer,
    kube_resource_t resource, kube_str_t ns, kube_str_t name);


/* For the files of src/zone. */

/*
 * True if readers see the head and the chain of an entry, up to the highest, as
 * they were stored.
 */
bool kube_zone_entry_is_intact(const kube_zone_writer_t *w, uint32_t entry);

/* The published Service that a slice's label names; 0: none. */
uint32_t kube_zone_service_of(const kube_zone_writer_t *w,
    const kube_record_t *slice);

/*
 * The published Service with a ref to the slice's record at offset, of which
 * slice is the header, and where in the Service's record the ref is.  False:
 * none names it.
 */
bool kube_zone_ref_to(const kube_zone_writer_t *w, uint32_t offset,
    const kube_record_t *slice, uint32_t *service, size_t *skip);

/* Notes that the published Service names a record of the slice. */
void kube_zone_service_names(kube_zone_writer_t *w, uint32_t service,
    uint32_t slice);

/* True if an entry could be had. */
bool kube_zone_entry_available(const kube_zone_writer_t *w);

/* Takes an available entry and links it in; 0: none is available. */
uint32_t kube_zone_entry_take(kube_zone_writer_t *w, uint32_t hash);

/* Puts an entry that holds nothing in quarantine. */
void kube_zone_entry_free(kube_zone_writer_t *w, uint32_t entry);

/* Stores the head of any number, and notes it: what all head stores use. */
void kube_zone_head_store(kube_zone_writer_t *w, uint32_t number,
    uint32_t offset);

/* Stores an entry's head (offset 0: none) and counts the refused. */
void kube_zone_entry_publish(kube_zone_writer_t *w, uint32_t entry,
    uint32_t offset);

/* Shows entries_used, refused and live_bytes to readers. */
void kube_zone_table_show(kube_zone_writer_t *w);


#endif /* KUBE_ZONE_TABLE_H */

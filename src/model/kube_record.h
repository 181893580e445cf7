/*
 * kube_record - one object as self-contained bytes: what the zone, the state
 * file and the DeltaFIFO hold.
 *
 * A record is a header, the content (identity without resourceVersion, then
 * the fields used) and a tail (the resourceVersion; for a published Service
 * also the places of its slices).  Equal content means an equal object: the
 * content alone is hashed, digested and compared.  No pointer is stored.
 *
 * The content is bytes: integers of one, two or eight bytes, counts of seven
 * bits a byte, strings behind their length.  A pod's name is written as what
 * it shares with the name before it and the rest; a node or zone is written
 * at its first use and is a number afterwards.
 *
 * Any bytes are accepted by validate, id and decode; where they begin a
 * record that is used as a kube_record_t they are 8-byte aligned.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_RECORD_H
#define KUBE_RECORD_H


#include "kube_arena.h"
#include "kube_hash.h"
#include "kube_object.h"


typedef enum {
    KUBE_RECORD_SERVICE = 1,    /* = KUBE_RESOURCE_SERVICES + 1 */
    KUBE_RECORD_SLICE = 2,
    KUBE_RECORD_REFUSED = 3,    /* a named object that is not held */
    KUBE_RECORD_SCOPE = 4,
    KUBE_RECORD_ERROR = 5,
    KUBE_RECORD_INFO = 6
} kube_record_kind_t;

/* All fields in host order: the image never leaves the machine. */
typedef struct {
    uint32_t  size;             /* of all, a multiple of 8 */
    uint8_t   kind;
    uint8_t   resource;
    uint16_t  flags;
    uint64_t  revision;         /* grows when the content changes */
    uint32_t  entry;            /* who owns it in the zone; else 0 */
    uint32_t  check;            /* of kind, content and resourceVersion */
    uint32_t  content_size;
    uint32_t  refs_n;           /* published Service: slices */
} kube_record_t;

#define KUBE_RECORD_F_STATE_FILE  0x1    /* not confirmed by a server yet */

/* One aligned word: the writer moves a slice by one atomic store. */
typedef struct {
    uint32_t  entry;            /* the slice's entry */
    uint32_t  offset;           /* of its record, in units of 8 bytes */
} kube_ref_t;

/* Bytes needed for the object with refs_n refs; 0 if it can have no record. */
size_t kube_record_size(const kube_object_t *object, size_t refs_n);

/*
 * Writes the record (refs zeroed) into buf of exactly kube_record_size()
 * bytes, 8-byte aligned, and seals it.
 */
void kube_record_encode(const kube_object_t *object, size_t refs_n, void *buf);

/*
 * A REFUSED record: key, resourceVersion and a reason, which is cut to
 * KUBE_RECORD_REASON_MAX.  The size is an upper bound; 0: not a key.
 */
#define KUBE_RECORD_REASON_MAX  32
size_t kube_record_refused_size(kube_str_t ns, kube_str_t name);
void kube_record_refused_encode(kube_resource_t resource, kube_str_t ns,
    kube_str_t name, kube_str_t rv, kube_str_t reason, void *buf);

/*
 * Computes check again.  Not needed after a change of flags, revision, entry
 * or refs: the zone's walk checks refs against what they name.
 */
void kube_record_seal(kube_record_t *record);

/*
 * Structure and check of the record that any len bytes begin with: KUBE_OK or
 * KUBE_CORRUPT.  Bytes behind its size are not looked at.
 */
kube_rc_t kube_record_validate(const void *bytes, size_t len)
    KUBE_MUST_CHECK;

/*
 * Identity of a valid record of kinds SERVICE, SLICE, REFUSED (reason only
 * there, in service for a slice its Service's name); borrows from it.
 */
typedef struct {
    kube_resource_t  resource;
    kube_meta_t      meta;
    kube_str_t       service;
    kube_str_t       reason;
} kube_record_id_t;

kube_rc_t kube_record_id(const void *bytes, size_t len, kube_record_id_t *id)
    KUBE_MUST_CHECK;

/*
 * The object as views: strings point into bytes or the arena, arrays into
 * the arena.  Structure alone is checked, not the check sum.
 * KUBE_OK, KUBE_CORRUPT, KUBE_NOMEM.  trigger_ms is not kept: 0.
 */
kube_rc_t kube_record_decode(kube_arena_t *arena, const void *bytes,
    size_t len, kube_object_t *object)  KUBE_MUST_CHECK;

/* The refs behind a valid published Service record. */
const kube_ref_t *kube_record_refs(const kube_record_t *record);

/* Contents equal (resourceVersion, revision and refs aside). */
bool kube_record_same(const kube_record_t *a, const kube_record_t *b);

/* H(content): what the per-resource digest sums. */
kube_digest_t kube_record_digest(const kube_record_t *record);


#endif /* KUBE_RECORD_H */

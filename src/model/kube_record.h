/*
 * kube_record - one object as self-contained bytes: what the zone, the state
 * file and the DeltaFIFO hold.
 *
 * A record is a header, the content (identity without resourceVersion, then
 * the fields used) and a tail (the resourceVersion; for a published Service
 * also the places of its slices).  Equal content means an equal object: the
 * content alone is hashed, digested and compared.  No pointer is stored.
 *
 * A pod's name is written as what it shares with the name before it and the
 * rest; a node or zone is written at its first use, without what it shares
 * with the one before it at both ends, and is a number afterwards.  kube_codec
 * writes the values themselves.
 *
 * validate, id and decode accept any bytes.  Where bytes are used as a
 * kube_record_t they are 8-byte aligned.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_RECORD_H
#define KUBE_RECORD_H


#include "kube_codec.h"
#include "kube_hash.h"
#include "kube_object.h"


/* An object's kind is that of its resource's shape. */
typedef enum {
    KUBE_RECORD_SERVICE = 1,
    KUBE_RECORD_SLICE = 2,
    KUBE_RECORD_REFUSED = 3,    /* the name of an object that is not held */
    KUBE_RECORD_SCOPE = 4,
    KUBE_RECORD_ERROR = 5,
    KUBE_RECORD_INFO = 6,
    KUBE_RECORD_METADATA = 7    /* of programs alone: no zone has one */
} kube_record_kind_t;

/* All fields are in host order: the image never leaves the machine. */
typedef struct {
    uint32_t  size;             /* of all, a multiple of 8 */
    uint8_t   kind;
    uint8_t   resource;
    uint16_t  flags;
    uint64_t  revision;         /* grows when the content changes */
    uint32_t  entry;            /* who owns it in the zone; else 0 */
    uint32_t  check;            /* of kind, resource, content and tail */
    uint32_t  content_size;
    uint32_t  refs_n;           /* published Service: slices */
    uint64_t  outdated;         /* 0, or kube_record_outdated() */
} kube_record_t;

/* No server has confirmed the object yet: it comes from a state file. */
#define KUBE_RECORD_F_STATE_FILE  0x1

/*
 * The server has a newer version, which was refused: this one is the last
 * that was good.  It is served, but counts as refused, not as held.
 */
#define KUBE_RECORD_F_OUTDATED    0x2

/* Why an object is refused; the text is that of the status and the log. */
#define KUBE_REASON_MAP(XX)                                                   \
    XX(OTHER, "refused")                                                      \
    XX(TOO_LARGE, "too_large")                                                \
    XX(MALFORMED, "malformed")                                                \
    XX(TOO_MANY_SLICES, "too_many_slices")                                    \
    XX(ZONE_FULL, "zone_full")                                                \
    XX(CRASHED_INFORMER, "crashed_informer")                                  \
    XX(INTERRUPTED, "interrupted")    /* the informer ended while it moved */

typedef enum {
#define XX(name, text)  KUBE_REASON_##name,
    KUBE_REASON_MAP(XX)
#undef XX
    KUBE_REASONS
} kube_reason_t;

/* "refused" for a foreign value, and OTHER for a foreign text. */
kube_str_t kube_reason_text(kube_reason_t reason);
kube_reason_t kube_reason_of(kube_str_t text);

/* One aligned word: the writer moves a slice by one atomic store. */
typedef struct {
    uint32_t  entry;            /* the slice's entry */
    uint32_t  offset;           /* of its record, in units of 8 bytes */
} kube_ref_t;


/*
 * Writes the object's record into buf of cap bytes, 8-byte aligned, if it
 * fits.  Returns its size, also if it does not; 0: an object like this can
 * have none.
 */
size_t kube_record_write(const kube_object_t *object, void *buf, size_t cap);

/* The same in two steps: for a buf of kube_record_size() bytes. */
size_t kube_record_size(const kube_object_t *object);
void kube_record_encode(const kube_object_t *object, void *buf);


/*
 * The identity of a record of an object, or of kind REFUSED.  service is a
 * slice's alone: its label kubernetes.io/service-name.  reason is a refused
 * name's alone; a refused name has no uid.
 */
typedef struct {
    kube_resource_t  resource;
    kube_meta_t      meta;
    kube_str_t       service;
    kube_str_t       reason;
} kube_record_id_t;

#define KUBE_RECORD_REASON_MAX   32
#define KUBE_RECORD_REFUSED_MAX  432

/*
 * Writes a REFUSED record into buf of KUBE_RECORD_REFUSED_MAX bytes, 8-byte
 * aligned, from resource, namespace, name, resourceVersion (left out where
 * it is too long) and reason (cut).  Returns its size; 0: no object can have
 * this name.
 */
size_t kube_record_refused_encode(const kube_record_id_t *id, void *buf);

/*
 * A record of a kind whose content its caller defines.  buf has
 * kube_record_raw_size() bytes, 8-byte aligned.
 */
size_t kube_record_raw_size(size_t content_size);
void kube_record_raw_encode(kube_record_kind_t kind, const void *content,
    size_t content_size, void *buf);


/*
 * Checks lengths, checksum and content of the record that any len bytes
 * begin with: KUBE_OK or KUBE_CORRUPT.  Bytes behind its size are not looked
 * at.  flags, revision, entry and refs are not covered by the checksum, so
 * that they can be stored alone; the zone's walk checks refs against what
 * they name.
 */
kube_rc_t kube_record_validate(const void *bytes, size_t len)
    KUBE_MUST_CHECK;

/* Checks lengths and checksum: what the writer wrote, it is. */
kube_rc_t kube_record_verify(const void *bytes, size_t len)
    KUBE_MUST_CHECK;

/* Checks the lengths alone: content, tail and refs lie within len bytes. */
kube_rc_t kube_record_measure(const void *bytes, size_t len)
    KUBE_MUST_CHECK;

/*
 * The four below check lengths and what they read, not the checksum.
 *
 * The resourceVersion borrows from bytes.  KUBE_OK or KUBE_CORRUPT.
 */
kube_rc_t kube_record_rv(const void *bytes, size_t len, kube_str_t *rv)
    KUBE_MUST_CHECK;

/*
 * The identity borrows from bytes.  KUBE_OK or KUBE_CORRUPT (also: a kind
 * that has none).
 */
kube_rc_t kube_record_id(const void *bytes, size_t len, kube_record_id_t *id)
    KUBE_MUST_CHECK;

/* kube_record_verify() and kube_record_id(), with one look at the lengths. */
kube_rc_t kube_record_verify_id(const void *bytes, size_t len,
    kube_record_id_t *id)  KUBE_MUST_CHECK;

/*
 * The object as views: strings point into bytes or the arena, arrays into
 * the arena.  KUBE_OK, KUBE_CORRUPT, KUBE_NOMEM.  trigger_ms is not kept: 0.
 */
kube_rc_t kube_record_decode(kube_arena_t *arena, const void *bytes,
    size_t len, kube_object_t *object)  KUBE_MUST_CHECK;

/* A cursor over the content of a record of this kind. */
kube_rc_t kube_record_content(const void *bytes, size_t len,
    kube_record_kind_t kind, kube_codec_t *content)  KUBE_MUST_CHECK;


/* All below is for valid records. */

/* Size without refs: what another record of the object takes. */
size_t kube_record_base(const kube_record_t *record);

/* The refs of a published Service. */
const kube_ref_t *kube_record_refs(const kube_record_t *record);

/* Contents equal; resourceVersion, revision and refs may differ. */
bool kube_record_same(const kube_record_t *a, const kube_record_t *b);

/* Contents and resourceVersions equal. */
bool kube_record_same_version(const kube_record_t *a, const kube_record_t *b);

/* Tells one uid from another; 0: an empty one. */
uint64_t kube_uid_hash(kube_str_t uid);

/*
 * The word of a record that is outdated since_ms (monotonic, 48 bits of it),
 * and what is in it.
 */
uint64_t kube_record_outdated(kube_reason_t reason, uint64_t since_ms);
uint64_t kube_record_outdated_since(const kube_record_t *record);
kube_reason_t kube_record_outdated_reason(const kube_record_t *record);

/*
 * Hash of the content: what the digest of a scope sums.  The second form is of
 * content_size bytes behind a header that the caller has read and bounded.
 */
kube_digest_t kube_record_digest(const kube_record_t *record);
kube_digest_t kube_record_content_digest(const void *content,
    size_t content_size);


#endif /* KUBE_RECORD_H */

/*
 * kube_zone_log - room for records: a log in segments.
 *
 * Records are appended to the open segment and do not cross segments.  When
 * free segments run low, the emptiest one is evacuated: its live records
 * move, their heads' sequences grow, revisions stay.  One segment is always
 * kept for that.
 *
 * The log decides where records lie, never what they say or who may see
 * them.  Which records are live is known from one bit for each unit of 8
 * bytes in the writer's memory, so nothing in the image has to be trusted for
 * it.  Moving a slice is one store into its Service's record (the ref) and a
 * new sequence for the Service's head; a move needs no room but the record's
 * own, so an evacuation into one free segment cannot fail half-way.
 *
 * For the files of src/zone, in the process that holds the guard.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_LOG_H
#define KUBE_ZONE_LOG_H


#include "kube_record.h"
#include "kube_zone.h"


/* Segments that reserve moves at most: ordinarily; where it must succeed. */
#define KUBE_ZONE_MOVES         1
#define KUBE_ZONE_MOVES_FORCED  8

/*
 * Makes room for one record of size bytes, which moves other records.
 * KUBE_OK or KUBE_FULL.
 */
kube_rc_t kube_zone_log_reserve(kube_zone_writer_t *w, size_t size,
    unsigned moves)  KUBE_MUST_CHECK;

/* Bytes of records that ordinary ones may fill: seven eighths. */
uint64_t kube_zone_log_limit(const kube_zone_writer_t *w);

/* Stores size bytes (a multiple of 8) at offset + skip bytes. */
void kube_zone_log_store(kube_zone_writer_t *w, uint32_t offset, size_t skip,
    const void *data, size_t size);

/*
 * Takes room that was reserved for a copy of record with refs_n refs, and
 * writes it but for the refs, which the caller stores.  Returns the offset.
 */
uint32_t kube_zone_log_append(kube_zone_writer_t *w,
    const kube_record_t *record, uint32_t number, uint64_t revision,
    size_t refs_n);

/* Forgets the record at offset if nothing names it any more; 0: nothing. */
void kube_zone_log_drop(kube_zone_writer_t *w, uint32_t offset);

/* kube_zone_log_drop() for all that a Service's record at offset names. */
void kube_zone_log_drop_refs(kube_zone_writer_t *w, uint32_t offset);


/* Recovery: forgets which records are live. */
void kube_zone_log_reset(kube_zone_writer_t *w);

/*
 * Recovery: notes a valid record found by the walk, also twice.  False: it
 * overlaps another one, so one of them is not what it seems.
 */
bool kube_zone_log_mark(kube_zone_writer_t *w, uint32_t offset)
    KUBE_MUST_CHECK;

/* Recovery: chooses the open segment, and wins back a free one. */
void kube_zone_log_open(kube_zone_writer_t *w);


#endif /* KUBE_ZONE_LOG_H */

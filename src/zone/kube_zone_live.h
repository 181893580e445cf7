/*
 * kube_zone_live - which records are live, and how long they are, from the
 * writer's own memory.
 *
 * Any process that has the zone mapped can change a length in it.  What is in
 * use and how far it goes is therefore kept here, and a record's header is
 * compared with it before the writer follows anything in it.
 *
 * For the files of src/zone, in the process that holds the guard.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_LIVE_H
#define KUBE_ZONE_LIVE_H


#include "kube_record.h"
#include "kube_zone.h"


/* True if a live record begins at offset, which may be any number. */
bool kube_zone_live_at(const kube_zone_writer_t *w, uint32_t offset);

/*
 * Where the next live record begins, from offset on and before end; end: none
 * does.  Both are in one segment, or end is its end.
 */
uint32_t kube_zone_live_next(const kube_zone_writer_t *w, uint32_t offset,
    uint32_t end);

/*
 * True if a live record shares one of the size bytes at offset, all in one
 * segment.  It looks at 64 units at once, back to the record before.
 */
bool kube_zone_live_overlaps(const kube_zone_writer_t *w, uint32_t offset,
    uint32_t size);

/* Bytes of the live record at offset, any number; 0: none begins there. */
uint32_t kube_zone_live_size(const kube_zone_writer_t *w, uint32_t offset);

/*
 * Notes the size bytes at offset as a live record, or as one no more.  They
 * lie in one segment and overlap no other.
 */
void kube_zone_live_flip(kube_zone_writer_t *w, uint32_t offset,
    uint32_t size);

/*
 * Copies the header of the live record at offset, any number, and checks its
 * lengths and its number.  False: none begins there, or it is not as it was
 * written, which the writer notes.
 */
bool kube_zone_live_header(const kube_zone_writer_t *w, uint32_t offset,
    kube_record_t *header)  KUBE_MUST_CHECK;


#endif /* KUBE_ZONE_LIVE_H */

/*
 * kube_zone_store - the stores that readers see, and their order.
 *
 * Readers see a record once a head names it.  Each function here writes its
 * records first, then moves the heads, and counts dead what no head, staged
 * entry or ref names any more last.  A death between any two stores leaves
 * the old or the new state of each object; the walk at acquire completes
 * what was begun, for it takes a published Service's refs as the truth.
 *
 * It judges nothing: that records belong together is the caller's care.  For
 * the files of src/zone, in the process that holds the guard.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_STORE_H
#define KUBE_ZONE_STORE_H


#include "kube_record.h"
#include "kube_zone.h"


/* The next revision of the image. */
uint64_t kube_zone_store_revision(kube_zone_writer_t *w);

/*
 * Publishes the newest record of entry service, with refs to the newest
 * records of slices[n], and these.  With nothing new to store, nothing is
 * stored.  changed tells whether content or the set of slices changed, which
 * is when the revision grows.  broken: the published record's refs cannot be
 * followed (recovery alone).
 *
 * KUBE_OK; KUBE_FULL: nothing was stored, failures + 1; KUBE_TOO_LARGE: no room
 * would be enough for it.
 */
kube_rc_t kube_zone_store_service(kube_zone_writer_t *w, uint32_t service,
    const uint32_t *slices, size_t n, bool broken, bool *changed)
    KUBE_MUST_CHECK;

/* Publishes the staged record of an entry alone; without one, nothing. */
void kube_zone_store_staged(kube_zone_writer_t *w, uint32_t entry);

/* Publishes the record at offset (0: none), in place of all that was. */
void kube_zone_store_entry(kube_zone_writer_t *w, uint32_t entry,
    uint32_t offset);

/*
 * Flags the newest record of an entry as outdated, where it lies.  word is
 * kube_record_outdated()'s; readers see it before the flag.
 */
void kube_zone_store_outdated(kube_zone_writer_t *w, uint32_t entry,
    uint64_t word);

/* Forgets the staged record of an entry. */
void kube_zone_store_unstage(kube_zone_writer_t *w, uint32_t entry);

/*
 * Replaces the record under one of the numbers above the entries' by one
 * with this content.  KUBE_OK, KUBE_FULL,
 * KUBE_TOO_LARGE.
 */
kube_rc_t kube_zone_store_raw(kube_zone_writer_t *w, uint32_t number,
    kube_record_kind_t kind, const void *content, size_t size)
    KUBE_MUST_CHECK;
void kube_zone_store_raw_clear(kube_zone_writer_t *w, uint32_t number);


#endif /* KUBE_ZONE_STORE_H */

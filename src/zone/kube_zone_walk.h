/*
 * kube_zone_walk - one walk over an image that nobody writes to: every head,
 * every ref, every chain, checked.
 *
 * It trusts nothing in the image, changes nothing itself, and needs no
 * memory.  Its work is bounded by the number of entries and their records,
 * whatever the bytes are; where another process does write, it still stays
 * within the image.  What a visitor is told was checked: recovery repairs what
 * it is told is broken, validation says that something is.  A live image is
 * copied with a reader's means instead (kube_zone_copy.h).
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_WALK_H
#define KUBE_ZONE_WALK_H


#include "kube_record.h"
#include "kube_zone.h"


/*
 * A full check: KUBE_OK means that every look-up and every copy stays in
 * bounds, and that everything that is published can be found.  Any bytes are
 * accepted.  KUBE_OK or KUBE_CORRUPT.
 */
kube_rc_t kube_zone_validate(void *mem, size_t size)  KUBE_MUST_CHECK;


/*
 * For the files of src/zone.  top is the highest entry that is looked at: what
 * the image says of it (kube_zone_top()), or what the caller knows better.
 */

/*
 * Before a record is looked at: what a head or a ref names, which may be any
 * number.  False: it is passed over, and told as one that is not valid.  NULL:
 * every one is looked at.
 */
typedef bool (*kube_zone_enter_pt)(void *ctx, uint32_t number,
    uint32_t offset);

/*
 * A head that names something: an entry's, a scope's, the server's; and the
 * header of the record there.  NULL: no valid record of this number is there.
 * The visitor may store the head.
 */
typedef void (*kube_zone_head_pt)(void *ctx, uint32_t number,
    uint32_t offset, const kube_record_t *header);

void kube_zone_walk_heads(const kube_zone_t *zone, uint32_t top,
    kube_zone_enter_pt enter, kube_zone_head_pt visit, void *ctx);

/*
 * A ref of a published Service, and the header of the slice there.  NULL: no
 * valid slice of this Service is there.  The visitor may store the slice's
 * head.  It comes after walk_heads, whose visitor has cut off what was not
 * valid: what a head names is not checked a second time.
 */
typedef void (*kube_zone_ref_pt)(void *ctx, uint32_t service, kube_ref_t ref,
    const kube_record_t *slice);

void kube_zone_walk_refs(const kube_zone_t *zone, uint32_t top,
    kube_zone_enter_pt enter, kube_zone_ref_pt visit, void *ctx);

/*
 * Looks for each entry in the chain of its hash; link is told of those found,
 * with the hash by which they were, and whether one before it in the chain has
 * the same.  Buckets that no entry belongs to are not looked at.  False: a
 * loop, a stray link, or an entry that holds something is in no chain.
 */
typedef void (*kube_zone_link_pt)(void *ctx, uint32_t entry, uint32_t hash,
    bool twin);

bool kube_zone_walk_chains(const kube_zone_t *zone, uint32_t top,
    kube_zone_link_pt link, void *ctx)  KUBE_MUST_CHECK;

/*
 * The header of the valid slice of the Service with this identity that ref
 * names, of entries up to top; false: there is none.
 */
bool kube_zone_walk_slice(const kube_zone_t *zone, uint32_t top,
    const kube_record_id_t *service, kube_ref_t ref, kube_record_t *slice);


#endif /* KUBE_ZONE_WALK_H */

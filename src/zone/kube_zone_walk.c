/*
 * kube_zone_walk - the walk over an image that nobody writes to.
 *
 * It reads records as plain memory, stores nothing, and never follows what
 * it has not bounded.  Called for validation, and by recovery.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_image.h"
#include "kube_zone_walk.h"


/*
 * Records lie in any order: those of entries that come next are asked for
 * early.  Twice as far was no faster.
 */
#define WALK_AHEAD  8

/* Steps along chains for each entry: eight times what is to be expected. */
#define WALK_STEPS  16


/* True if the record of number is at offset, and is valid. */
static bool
walk_record(const kube_zone_t *zone, uint32_t number, uint32_t offset,
    kube_record_t *header)
{
    return kube_zone_header_at(zone, offset, header)
           && header->entry == number
           && header->resource < KUBE_RESOURCES_ROUTED
           && header->revision <= KUBE_ZONE_REVISION_MAX
           && kube_record_validate(kube_zone_record_at(zone, offset),
                                   header->size) == KUBE_OK;
}


/* The record of an entry whose turn comes soon, of any offset. */
static void
walk_prefetch(const kube_zone_t *zone, uint32_t entry, uint32_t top)
{
    uint32_t  offset;

    if (entry <= top) {
        offset = kube_zone_entry_offset(zone, entry);

        if (kube_zone_room_at(zone, offset) != 0) {
            __builtin_prefetch(kube_zone_words(zone, offset));
            __builtin_prefetch(kube_zone_words(zone, offset) + 8);
        }
    }
}


/* As walk_record(); the record's key must be the entry's. */
static bool
walk_object(const kube_zone_t *zone, uint32_t entry, uint32_t offset,
    kube_record_t *header, kube_record_id_t *id)
{
    return walk_record(zone, entry, offset, header)
           && kube_record_id(kube_zone_record_at(zone, offset), header->size,
                             id) == KUBE_OK
           && kube_zone_hash(zone, id)
              == kube_half_get(&kube_zone_entry(zone, entry)->hash);
}


/* As walk_object() of what an entry's head names, which was found valid. */
static bool
walk_known(const kube_zone_t *zone, uint32_t entry, uint32_t offset,
    kube_record_t *header, kube_record_id_t *id)
{
    return kube_zone_header_at(zone, offset, header)
           && header->entry == entry
           && kube_record_id(kube_zone_record_at(zone, offset), header->size,
                             id) == KUBE_OK;
}


bool
kube_zone_walk_slice(const kube_zone_t *zone, uint32_t top,
    const kube_record_id_t *service, kube_ref_t ref, kube_record_t *slice)
{
    bool              valid;
    kube_record_id_t  id;

    if (ref.entry == 0 || ref.entry > top) {
        return false;
    }

    valid = (kube_zone_entry_offset(zone, ref.entry) == ref.offset)
            ? walk_known(zone, ref.entry, ref.offset, slice, &id)
            : walk_object(zone, ref.entry, ref.offset, slice, &id);

    return valid
           && slice->kind == KUBE_RECORD_SLICE
           && kube_str_eq(id.service, service->meta.name)
           && kube_str_eq(id.meta.ns, service->meta.ns);
}


void
kube_zone_walk_heads(const kube_zone_t *zone, uint32_t top,
    kube_zone_enter_pt enter, kube_zone_head_pt visit, void *ctx)
{
    bool              valid;
    uint32_t          number, offset;
    kube_record_t     header;
    kube_record_id_t  id;

    for (number = 1; number <= top; number++) {
        walk_prefetch(zone, number + WALK_AHEAD, top);
        offset = kube_zone_entry_offset(zone, number);

        if (offset != 0) {
            valid = (enter == NULL || enter(ctx, number, offset))
                    && walk_object(zone, number, offset, &header, &id);
            visit(ctx, number, offset, valid ? &header : NULL);
        }
    }

    for (number = zone->geometry.entries_n + 1;
         number <= kube_zone_server_number(zone);
         number++)
    {
        offset = kube_head_get(kube_zone_head_of(zone, number));

        if (offset != 0) {
            valid = walk_record(zone, number, offset, &header);
            visit(ctx, number, offset, valid ? &header : NULL);
        }
    }
}


void
kube_zone_walk_refs(const kube_zone_t *zone, uint32_t top,
    kube_zone_enter_pt enter, kube_zone_ref_pt visit, void *ctx)
{
    bool              valid;
    uint32_t          e, i, offset;
    kube_ref_t        ref;
    kube_record_t     header, slice;
    kube_record_id_t  id;

    for (e = 1; e <= top; e++) {
        walk_prefetch(zone, e + WALK_AHEAD, top);
        offset = kube_zone_entry_offset(zone, e);

        if (!walk_known(zone, e, offset, &header, &id)
            || header.kind != KUBE_RECORD_SERVICE
            || !kube_zone_refs_fit(&header))
        {
            continue;
        }

        for (i = 0; i < header.refs_n; i++) {
            ref = kube_zone_ref_at(zone, offset, &header, i);
            valid = (enter == NULL || enter(ctx, ref.entry, ref.offset))
                    && kube_zone_walk_slice(zone, top, &id, ref, &slice);
            visit(ctx, e, ref, valid ? &slice : NULL);
        }
    }
}


typedef struct {
    const kube_zone_t  *zone;
    uint32_t            top;
    uint32_t            linked;       /* entries found in their chains */
    uint32_t            links;        /* that lead to them, from all sides */
    uint64_t            steps;        /* left */
} walk_chains_t;


/* True if next is an entry of the chain in bucket. */
static bool
walk_is_link(const walk_chains_t *walk, const kube_half_t *bucket,
    uint32_t next)
{
    const kube_zone_entry_t  *entry;

    if (next == 0 || next > walk->top) {
        return false;
    }

    entry = kube_zone_entry(walk->zone, next);

    return kube_zone_bucket(walk->zone, kube_half_get(&entry->hash)) == bucket;
}


/* Follows the chain of hash up to entry; false: it is not there. */
static bool
walk_chain(walk_chains_t *walk, const kube_half_t *bucket, uint32_t entry,
    uint32_t hash, bool *twin)
{
    uint32_t                  e, steps;
    const kube_zone_entry_t  *other;

    e = kube_half_get(bucket);
    *twin = false;

    for (steps = 0; e != entry; steps++) {

        if (steps == KUBE_ZONE_CHAIN_MAX
            || walk->steps == 0
            || !walk_is_link(walk, bucket, e))
        {
            return false;
        }

        walk->steps--;
        other = kube_zone_entry(walk->zone, e);
        *twin = *twin || kube_half_get(&other->hash) == hash;
        e = kube_half_get(&other->next);
    }

    walk->links += (steps == 0);

    return true;
}


/*
 * Each entry that is linked has one link that leads to it: a bucket's, or the
 * next of another one.  More of them than entries make a loop.
 */
bool
kube_zone_walk_chains(const kube_zone_t *zone, uint32_t top,
    kube_zone_link_pt link, void *ctx)
{
    bool                      twin;
    uint32_t                  e, hash, next;
    walk_chains_t             walk;
    const kube_half_t        *bucket;
    const kube_zone_entry_t  *entry;

    walk = (walk_chains_t) {
        .zone = zone,
        .top = top,
        .steps = (uint64_t) top * WALK_STEPS + KUBE_ZONE_CHAIN_MAX
    };

    for (e = 1; e <= top; e++) {
        if (e + WALK_AHEAD <= top) {
            entry = kube_zone_entry(zone, e + WALK_AHEAD);
            __builtin_prefetch(kube_zone_bucket(zone,
                                                kube_half_get(&entry->hash)));
        }

        entry = kube_zone_entry(zone, e);
        hash = kube_half_get(&entry->hash);
        bucket = kube_zone_bucket(zone, hash);

        if (!walk_chain(&walk, bucket, e, hash, &twin)) {

            if (walk.steps == 0 || kube_zone_entry_offset(zone, e) != 0) {
                return false;
            }

            continue;
        }

        next = kube_half_get(&entry->next);

        if (next != 0) {
            walk.links++;

            if (!walk_is_link(&walk, bucket, next)) {
                return false;
            }
        }

        walk.linked++;
        link(ctx, e, hash, twin);
    }

    return walk.links == walk.linked;
}


/* ctx is a bool: everything was valid so far. */
static void
validate_head(void *ctx, uint32_t number, uint32_t offset,
    const kube_record_t *header)
{
    bool  *valid = ctx;

    (void) number;
    (void) offset;
    *valid = *valid && header != NULL;
}


static void
validate_ref(void *ctx, uint32_t service, kube_ref_t ref,
    const kube_record_t *slice)
{
    bool  *valid = ctx;

    (void) service;
    (void) ref;
    *valid = *valid && slice != NULL;
}


static void
validate_link(void *ctx, uint32_t entry, uint32_t hash, bool twin)
{
    (void) ctx;
    (void) entry;
    (void) hash;
    (void) twin;
}


kube_rc_t
kube_zone_validate(void *mem, size_t size)
{
    bool         valid;
    uint32_t     top;
    kube_zone_t  zone;

    if (kube_zone_attach(&zone, mem, size) != KUBE_OK) {
        return KUBE_CORRUPT;
    }

    top = kube_zone_top(&zone);
    valid = kube_zone_walk_chains(&zone, top, validate_link, NULL);

    if (valid) {
        kube_zone_walk_heads(&zone, top, NULL, validate_head, &valid);
        kube_zone_walk_refs(&zone, top, NULL, validate_ref, &valid);
    }

    return valid ? KUBE_OK : KUBE_CORRUPT;
}

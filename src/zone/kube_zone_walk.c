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


/* True if the record of number is at offset, and is valid. */
static bool
walk_record(const kube_zone_t *zone, uint32_t number, uint32_t offset,
    kube_record_t *header)
{
    return kube_zone_header_at(zone, offset, header)
           && header->entry == number
           && kube_record_validate(kube_zone_record_at(zone, offset),
                                   header->size) == KUBE_OK;
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
kube_zone_walk_slice(const kube_zone_t *zone, const kube_record_id_t *service,
    kube_ref_t ref, kube_record_t *slice)
{
    bool              valid;
    kube_record_id_t  id;

    if (ref.entry == 0 || ref.entry > zone->geometry.entries_n) {
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
kube_zone_walk_heads(const kube_zone_t *zone, kube_zone_head_pt visit,
    void *ctx)
{
    bool              valid;
    uint32_t          number, offset;
    kube_record_t     header;
    kube_record_id_t  id;

    for (number = 1; number <= kube_zone_server_number(zone); number++) {
        offset = kube_head_get(kube_zone_head_of(zone, number));

        if (offset == 0) {
            continue;
        }

        if (number <= zone->geometry.entries_n) {
            valid = walk_object(zone, number, offset, &header, &id);

        } else {
            valid = walk_record(zone, number, offset, &header);
        }

        visit(ctx, number, offset, valid ? &header : NULL);
    }
}


void
kube_zone_walk_refs(const kube_zone_t *zone, kube_zone_ref_pt visit,
    void *ctx)
{
    bool              valid;
    uint32_t          e, i, offset;
    kube_ref_t        ref;
    kube_record_t     header, slice;
    kube_record_id_t  id;

    for (e = 1; e <= zone->geometry.entries_n; e++) {
        offset = kube_zone_entry_offset(zone, e);

        if (!walk_known(zone, e, offset, &header, &id)
            || header.kind != KUBE_RECORD_SERVICE
            || !kube_zone_refs_fit(&header))
        {
            continue;
        }

        for (i = 0; i < header.refs_n; i++) {
            ref = kube_zone_ref_at(zone, offset, &header, i);
            valid = kube_zone_walk_slice(zone, &id, ref, &slice);
            visit(ctx, e, ref, valid ? &slice : NULL);
        }
    }
}


bool
kube_zone_walk_chains(const kube_zone_t *zone,
    void (*link)(void *ctx, uint32_t entry), void *ctx)
{
    uint32_t                     i, e, steps, linked;
    const kube_half_t           *bucket;
    const kube_zone_entry_t     *entry;
    const kube_zone_geometry_t  *g;

    g = &zone->geometry;
    steps = g->entries_n;
    linked = 0;

    for (i = 0; i < g->buckets_n; i++) {
        bucket = kube_zone_bucket(zone, i);

        for (e = kube_half_get(bucket);
             e != 0;
             e = kube_half_get(&entry->next))
        {
            /* only a loop has more links than there are entries */
            if (e > g->entries_n || steps-- == 0) {
                return false;
            }

            entry = kube_zone_entry(zone, e);

            if (kube_zone_bucket(zone, kube_half_get(&entry->hash))
                != bucket)
            {
                return false;
            }

            linked += (kube_zone_entry_offset(zone, e) != 0);
            link(ctx, e);
        }
    }

    for (e = 1; e <= g->entries_n; e++) {
        linked -= (kube_zone_entry_offset(zone, e) != 0);
    }

    return linked == 0;
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
validate_link(void *ctx, uint32_t entry)
{
    (void) ctx;
    (void) entry;
}


kube_rc_t
kube_zone_validate(void *mem, size_t size)
{
    bool         valid;
    kube_zone_t  zone;

    if (kube_zone_attach(&zone, mem, size) != KUBE_OK
        || !kube_zone_walk_chains(&zone, validate_link, NULL))
    {
        return KUBE_CORRUPT;
    }

    valid = true;
    kube_zone_walk_heads(&zone, validate_head, &valid);
    kube_zone_walk_refs(&zone, validate_ref, &valid);

    return valid ? KUBE_OK : KUBE_CORRUPT;
}

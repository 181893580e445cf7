/*
 * kube_indexer_load - what the indexer rebuilds from the zone after a
 * take-over, what it takes from a state file, and the sums it answers with.
 *
 * Nothing here is an event: no change is told, no latency measured.  Writer
 * process only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_indexer_internal.h"


static void
load_sum(kube_indexer_t *ix, uint8_t slot, const kube_record_t *record)
{
    if (slot != KUBE_INDEX_NO_SCOPE) {
        ix->scopes[slot].count++;
        kube_digest_add(&ix->scopes[slot].digest, kube_record_digest(record));
    }
}


static kube_rc_t
load_entry(kube_indexer_t *ix, uint32_t entry)
{
    uint8_t               slot;
    kube_str_t            name;
    kube_record_id_t      id;
    kube_index_entry_t   *e;
    kube_index_group_t   *group;
    const kube_record_t  *record;

    record = kube_zone_newest(ix->conf.writer, entry);

    if (record == NULL
        || kube_record_id(record, record->size, &id) != KUBE_OK
        || id.meta.ns.len > KUBE_NAMESPACE_LEN_MAX
        || id.service.len > KUBE_NAME_LEN_MAX)
    {
        return KUBE_OK;
    }

    e = &ix->entries[entry];
    slot = kube_index_scope_of(ix, id.resource, id.meta.ns);

    if (record->kind == KUBE_RECORD_REFUSED) {
        kube_index_refused_found(ix, entry, slot,
                                 kube_str_eq(id.reason, KUBE_INDEX_ZONE_FULL));
        return KUBE_OK;
    }

    name = (id.resource == KUBE_RESOURCE_SERVICES) ? id.meta.name : id.service;
    group = kube_index_group_get(ix, id.meta.ns, name);

    if (group == NULL) {
        return KUBE_NOMEM;
    }

    e->scope = slot;

    if (id.resource == KUBE_RESOURCE_SERVICES) {
        e->kind = KUBE_INDEX_SERVICE;
        e->u.group = group;
        group->service = entry;

    } else {
        e->kind = KUBE_INDEX_SLICE;
        kube_index_slice_link(ix, group, entry);
    }

    load_sum(ix, slot, record);

    return KUBE_OK;
}


/* Which slices a published Service names. */
static void
load_refs(kube_indexer_t *ix, uint32_t service)
{
    uint32_t              i, slice;
    const kube_ref_t     *refs;
    const kube_record_t  *record;

    record = kube_zone_published(ix->conf.writer, service);

    if (record == NULL || record->kind != KUBE_RECORD_SERVICE) {
        return;
    }

    refs = kube_record_refs(record);

    for (i = 0; i < record->refs_n; i++) {
        slice = refs[i].entry;

        if (slice != 0
            && slice <= ix->entries_n
            && ix->entries[slice].kind == KUBE_INDEX_SLICE)
        {
            ix->entries[slice].named = service;
        }
    }
}


/* The zone repairs this at take-over; what it could not is published anew. */
static void
load_compare(kube_indexer_t *ix, uint32_t entry)
{
    kube_index_entry_t  *e;

    e = &ix->entries[entry];

    if (e->kind != KUBE_INDEX_SLICE || e->named == e->u.group->service) {
        return;
    }

    kube_index_group_dirty(ix, e->u.group, KUBE_INDEX_NO_READ);

    if (e->named != 0) {
        kube_index_group_dirty(ix, ix->entries[e->named].u.group,
                               KUBE_INDEX_NO_READ);
    }
}


/*
 * A zone with a quarter of it free was not full when it was left: it was
 * copied from a smaller one, and what that refused is to be fetched.
 */
static void
load_room(kube_indexer_t *ix)
{
    unsigned            i;
    kube_zone_usage_t   usage;

    kube_zone_usage(ix->conf.zone, &usage);

    if (usage.live_bytes >= usage.records_bytes / 4 * 3) {
        return;
    }

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        ix->scopes[i].full_live = UINT64_MAX;
    }
}


kube_rc_t
kube_indexer_load(kube_indexer_t *ix, uint64_t now_ms)
{
    uint32_t   i;
    kube_rc_t  rc;

    kube_index_clear(ix);

    ix->now_ms = now_ms;
    kube_zone_writer_now(ix->conf.writer, now_ms);

    for (i = kube_zone_writer_next(ix->conf.writer, 0);
         i != 0 && i <= ix->entries_n;
         i = kube_zone_writer_next(ix->conf.writer, i))
    {
        rc = load_entry(ix, i);

        if (rc != KUBE_OK) {
            kube_index_clear(ix);
            return rc;
        }
    }

    for (i = 1; i <= ix->entries_n; i++) {
        if (ix->entries[i].kind == KUBE_INDEX_SERVICE) {
            load_refs(ix, i);
        }
    }

    for (i = 1; i <= ix->entries_n; i++) {
        load_compare(ix, i);
    }

    /* how full it was is not known: any room from now on counts */
    ix->found_full = true;
    kube_index_note_full(ix);
    load_room(ix);

    return KUBE_OK;
}


void
kube_indexer_sweep(kube_indexer_t *ix, uint64_t now_ms)
{
    uint32_t  i;

    ix->now_ms = now_ms;
    kube_zone_writer_now(ix->conf.writer, now_ms);

    for (i = 1; i <= ix->entries_n; i++) {

        if (ix->entries[i].kind != KUBE_INDEX_NONE
            && ix->entries[i].scope == KUBE_INDEX_NO_SCOPE)
        {
            kube_index_end(ix, i, KUBE_INDEX_NO_READ);
        }
    }
}


bool
kube_indexer_pending(const kube_indexer_t *ix, unsigned slot)
{
    return slot < KUBE_SCOPES_MAX && ix->scopes[slot].waiting != 0;
}


void
kube_indexer_sum(const kube_indexer_t *ix, unsigned slot,
    kube_scope_sum_t *sum)
{
    const kube_index_scope_t  *scope;

    memset(sum, 0, sizeof(kube_scope_sum_t));

    if (slot >= KUBE_SCOPES_MAX) {
        return;
    }

    scope = &ix->scopes[slot];

    sum->count = scope->count;
    sum->digest = scope->digest;
    sum->refused = scope->refused;
    sum->refused_unnamed = scope->unnamed;
}


/* The object alone, without refs, flagged: what may be staged. */
static kube_rc_t
state_record(kube_indexer_t *ix, kube_arena_t *arena,
    const kube_record_t *from, kube_record_t **record)
{
    size_t         size;
    kube_rc_t      rc;
    kube_object_t  object;

    *record = NULL;

    rc = kube_record_decode(arena, from, from->size, &object);
    if (rc != KUBE_OK) {
        return rc;
    }

    size = kube_record_size(&object, 0);
    if (size == 0) {
        return KUBE_CORRUPT;
    }

    *record = kube_alloc(ix->alloc, size);
    if (*record == NULL) {
        return KUBE_NOMEM;
    }

    kube_record_encode(&object, 0, *record);
    (*record)->flags |= KUBE_RECORD_F_STATE_FILE;
    kube_record_seal(*record);

    return KUBE_OK;
}


kube_rc_t
kube_indexer_put_state(kube_indexer_t *ix, const kube_record_t *record,
    uint64_t now_ms)
{
    kube_rc_t       rc;
    kube_arena_t    arena;
    kube_record_t  *copy;

    ix->now_ms = now_ms;
    kube_zone_writer_now(ix->conf.writer, now_ms);

    if (record->kind != KUBE_RECORD_SERVICE
        && record->kind != KUBE_RECORD_SLICE)
    {
        return KUBE_OK;
    }

    kube_arena_init(&arena, ix->alloc, KUBE_OBJECT_BYTES_MAX);

    rc = state_record(ix, &arena, record, &copy);

    if (rc == KUBE_OK) {
        rc = kube_index_put_quietly(ix, copy);
    }

    kube_free(ix->alloc, copy);
    kube_arena_done(&arena);

    /* one object less is no reason to refuse the others */
    return (rc == KUBE_NOMEM) ? rc : KUBE_OK;
}

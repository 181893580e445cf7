/*
 * kube_admission - what gets room in a zone that is full, and who makes it.
 *
 * Services named in the configuration come first, with all their slices;
 * then the others by namespace and name.  What ranks last goes first, so two
 * gateways that see the same cluster hold the same part of it.  What goes is
 * named as refused, never forgotten.
 *
 * An update of what is held may use the zone's reserve: what is there stays
 * current as long as possible.  Nothing here decides what "full" means (the
 * zone does).  Writer process only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_indexer_internal.h"


/* A relist for room costs the API server a list: the pace halves each time. */
#define ROOM_WAIT_MIN_MS  1000
#define ROOM_WAIT_MAX_MS  60000

/* Less than this is the breathing of a zone in use, not room. */
#define ROOM_BYTES_MIN    4096


kube_index_refusal_t
kube_index_refusal(kube_str_t rv, kube_str_t reason, uint32_t size)
{
    kube_index_refusal_t  refusal;

    memset(&refusal, 0, sizeof(kube_index_refusal_t));

    if (kube_rv_parse(rv, &refusal.rv) != KUBE_OK) {
        refusal.rv.len = 0;
    }

    refusal.reason = reason.data;
    refusal.reason_len = reason.len;
    refusal.size = size;

    return refusal;
}


static kube_index_refusal_t
admission_refusal(const kube_indexer_t *ix, uint32_t entry)
{
    kube_record_id_t      id;
    const kube_record_t  *record;

    record = kube_zone_newest(ix->conf.writer, entry);

    if (record == NULL
        || kube_record_id(record, record->size, &id) != KUBE_OK)
    {
        return kube_index_refusal(KUBE_STR_NULL, KUBE_INDEX_ZONE_FULL, 1);
    }

    return kube_index_refusal(id.meta.rv, KUBE_INDEX_ZONE_FULL, record->size);
}


/*
 * The last by name.  A group that no Service can have (slices without the
 * label) may be of any size: there, the first of so many will do.
 */
static uint32_t
admission_last_slice(const kube_indexer_t *ix, const kube_index_group_t *group)
{
    unsigned              n;
    uint32_t              i, last;
    kube_str_t            name;
    kube_record_id_t      id;
    const kube_record_t  *record;

    last = group->slices;
    name = KUBE_STR_NULL;
    n = 0;

    for (i = group->slices;
         i != 0 && n < KUBE_SERVICE_SLICES_MAX;
         i = ix->entries[i].next, n++)
    {
        record = kube_zone_newest(ix->conf.writer, i);

        if (record != NULL
            && kube_record_id(record, record->size, &id) == KUBE_OK
            && kube_str_cmp(id.meta.name, name) > 0)
        {
            last = i;
            name = id.meta.name;
        }
    }

    return last;
}


void
kube_index_group_settle(kube_indexer_t *ix, kube_index_group_t *group,
    uint64_t read_ms)
{
    uint32_t              service;
    kube_index_refusal_t  refusal;

    service = group->service;

    if (ix->entries[service].flags & KUBE_INDEX_F_DOOMED) {
        kube_index_service_drop(ix, service, NULL);
        return;
    }

    if (kube_index_group_try(ix, group, read_ms) != KUBE_OK) {
        refusal = admission_refusal(ix, service);
        kube_index_service_drop(ix, service, &refusal);
    }
}


kube_rc_t
kube_index_displace(kube_indexer_t *ix, const kube_index_group_t *group)
{
    uint32_t               slice, named;
    kube_rc_t              rc;
    kube_index_group_t    *last;
    kube_index_refusal_t   refusal;

    last = kube_index_group_last(ix);

    if (last == NULL
        || (group->heap != 0 && kube_index_group_cmp(last, group) <= 0))
    {
        return KUBE_NOT_FOUND;
    }

    slice = admission_last_slice(ix, last);

    if (slice == 0) {
        refusal = admission_refusal(ix, last->service);
        kube_index_service_drop(ix, last->service, &refusal);
        return KUBE_OK;
    }

    refusal = admission_refusal(ix, slice);
    named = ix->entries[slice].named;

    rc = kube_index_doom(ix, slice, &refusal, KUBE_INDEX_NO_READ);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (named != 0) {
        kube_index_group_settle(ix, ix->entries[named].u.group,
                                KUBE_INDEX_NO_READ);
    }

    return KUBE_OK;
}


static kube_rc_t
admission_make_room(kube_indexer_t *ix, const kube_index_group_t *group,
    size_t size)
{
    unsigned   n;
    kube_rc_t  rc;

    for (n = 0; n < KUBE_INDEX_DISPLACE_MAX; n++) {

        if (kube_zone_has_room(ix->conf.writer, size)) {
            return KUBE_OK;
        }

        rc = kube_index_displace(ix, group);
        if (rc != KUBE_OK) {
            return (rc == KUBE_NOMEM) ? rc : KUBE_OK;
        }
    }

    return KUBE_OK;
}


kube_rc_t
kube_index_stage(kube_indexer_t *ix, const kube_record_t *record,
    const kube_index_group_t *group, bool held, uint32_t *entry)
{
    kube_rc_t  rc;

    if (held) {
        rc = kube_zone_stage(ix->conf.writer, record, KUBE_STAGE_USE_RESERVE,
                             entry);
        if (rc != KUBE_FULL) {
            return rc;
        }
    }

    if (record->size > kube_zone_record_max(ix->conf.zone)) {
        return KUBE_TOO_LARGE;
    }

    rc = admission_make_room(ix, group, record->size);
    if (rc != KUBE_OK) {
        return rc;
    }

    return kube_zone_stage(ix->conf.writer, record,
                           held ? KUBE_STAGE_USE_RESERVE : 0, entry);
}


void
kube_index_note_full(kube_indexer_t *ix)
{
    unsigned             i;
    kube_index_scope_t  *scope;
    kube_zone_usage_t    usage;

    if (!ix->found_full) {
        return;
    }

    ix->found_full = false;
    kube_zone_usage(ix->conf.zone, &usage);

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        scope = &ix->scopes[i];

        if (scope->refused_room != 0 || scope->unnamed) {
            scope->full_live = usage.live_bytes;
        }
    }
}


bool
kube_indexer_room_returned(kube_indexer_t *ix, unsigned slot)
{
    uint64_t             need;
    kube_index_scope_t  *scope;
    kube_zone_usage_t    usage;

    if (slot >= KUBE_SCOPES_MAX) {
        return false;
    }

    scope = &ix->scopes[slot];

    if (scope->refused_room == 0 && !scope->unnamed) {
        scope->room_wait_ms = 0;
        return false;
    }

    if (scope->list != scope->synced
        || ix->now_ms < scope->room_ms + scope->room_wait_ms)
    {
        return false;
    }

    need = (scope->refused_min != UINT32_MAX) ? scope->refused_min : 0;

    if (need < ROOM_BYTES_MIN) {
        need = ROOM_BYTES_MIN;
    }

    kube_zone_usage(ix->conf.zone, &usage);

    if (usage.live_bytes + need > scope->full_live
        || !kube_zone_has_room(ix->conf.writer, (size_t) need))
    {
        return false;
    }

    scope->full_live = usage.live_bytes;
    scope->room_ms = ix->now_ms;
    scope->room_wait_ms *= 2;

    if (scope->room_wait_ms < ROOM_WAIT_MIN_MS) {
        scope->room_wait_ms = ROOM_WAIT_MIN_MS;
    }

    if (scope->room_wait_ms > ROOM_WAIT_MAX_MS) {
        scope->room_wait_ms = ROOM_WAIT_MAX_MS;
    }

    kube_log_event(&ix->log, ix->now_ms, KUBE_LOG_NOTICE,
                   KUBE_EV_ROOM_RETURNED, "room for %s that were refused",
                   kube_resource_text(scope->resource));

    return true;
}

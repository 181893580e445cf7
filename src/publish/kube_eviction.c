/*
 * kube_eviction - who makes room in a full zone, and when room has returned.
 *
 * A heap of the groups that are not static; its first is the last by rank.
 * It changes no object.  For the files of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_eviction.h"
#include "kube_zone_writer.h"


/* Freed space below this is normal churn; a list for it would not pay. */
#define ROOM_BYTES_MIN  4096


static bool
eviction_before(void *ctx, kube_heap_node_t *a, kube_heap_node_t *b)
{
    kube_eviction_t  *eviction = ctx;

    return eviction->rank(kube_heap_data(a, kube_group_t, rank),
                               kube_heap_data(b, kube_group_t, rank)) > 0;
}


void
kube_eviction_init(kube_eviction_t *eviction, const kube_alloc_t *alloc)
{
    kube_heap_init(&eviction->heap, alloc, eviction_before, eviction);
}


void
kube_eviction_clear(kube_eviction_t *eviction)
{
    kube_heap_done(&eviction->heap);
}


int
kube_eviction_by_name(const kube_group_t *a, const kube_group_t *b)
{
    int  rc;

    rc = kube_str_cmp(a->ns, b->ns);

    return (rc != 0) ? rc : kube_str_cmp(a->name, b->name);
}


static bool
eviction_is_static(const kube_eviction_t *eviction, const kube_group_t *group)
{
    size_t      i, ns;
    kube_str_t  key;

    ns = group->ns.len;

    for (i = 0; i < eviction->static_keys_n; i++) {
        key = eviction->static_keys[i];

        if (key.len == ns + 1 + group->name.len
            && key.data[ns] == '/'
            && memcmp(key.data, group->ns.data, ns) == 0
            && kube_str_eq((kube_str_t) { key.data + ns + 1, key.len - ns - 1 },
                           group->name))
        {
            return true;
        }
    }

    return false;
}


kube_rc_t
kube_eviction_add(kube_eviction_t *eviction, kube_group_t *group)
{
    if (group->is_static || group->rank.at != 0) {
        return KUBE_OK;
    }

    if (eviction_is_static(eviction, group)) {
        group->is_static = true;
        return KUBE_OK;
    }

    return kube_heap_insert(&eviction->heap, &group->rank);
}


void
kube_eviction_remove(kube_eviction_t *eviction, kube_group_t *group)
{
    kube_heap_remove(&eviction->heap, &group->rank);
}


/*
 * The last slice by name.  The group without a name (slices without the
 * label) may be of any size: there, the last of so many will do.
 */
static uint32_t
eviction_last_slice(const kube_eviction_t *eviction, const kube_group_t *group)
{
    unsigned          n;
    uint32_t          i, last;
    kube_str_t        name;
    kube_record_id_t  id;

    last = group->slices;
    name = KUBE_STR_NULL;
    n = 0;

    for (i = group->slices;
         i != 0 && n < KUBE_SERVICE_SLICES_MAX;
         i = eviction->index->members[i].next, n++)
    {
        if (kube_zone_entry_id(eviction->writer, i, &id) == KUBE_OK
            && kube_str_cmp(id.meta.name, name) > 0)
        {
            last = i;
            name = id.meta.name;
        }
    }

    return last;
}


uint32_t
kube_eviction_next(const kube_eviction_t *eviction, const kube_group_t *group)
{
    kube_group_t      *last;
    kube_heap_node_t  *node;

    node = kube_heap_first(&eviction->heap);

    if (node == NULL) {
        return 0;
    }

    last = kube_heap_data(node, kube_group_t, rank);

    if (!group->is_static && eviction->rank(last, group) <= 0) {
        return 0;
    }

    return (last->slices != 0) ? eviction_last_slice(eviction, last)
                               : last->service;
}


void
kube_room_init(kube_room_t *room)
{
    memset(room, 0, sizeof(kube_room_t));
    room->smallest = UINT32_MAX;
}


void
kube_room_refused(kube_room_t *room, uint32_t size)
{
    room->refused++;

    if (size < room->smallest) {
        room->smallest = size;
    }
}


static bool
room_lacks(const kube_room_t *room)
{
    return room->refused != 0 || room->unnamed;
}


void
kube_room_full(kube_room_t *room, const kube_zone_t *zone)
{
    kube_zone_usage_t  usage;

    if (room_lacks(room)) {
        kube_zone_usage(zone, &usage);
        room->full_bytes = usage.live_bytes;
    }
}


bool
kube_room_returned(kube_room_t *room, const kube_zone_t *zone,
    const kube_zone_writer_t *writer)
{
    uint64_t           need;
    kube_zone_usage_t  usage;

    if (!room_lacks(room)) {
        return false;
    }

    need = ROOM_BYTES_MIN;

    if (room->smallest != UINT32_MAX && room->smallest > need) {
        need = room->smallest;
    }

    kube_zone_usage(zone, &usage);

    if (usage.live_bytes + need > room->full_bytes
        || !kube_zone_has_room(writer, (size_t) need))
    {
        return false;
    }

    room->full_bytes = usage.live_bytes;

    return true;
}

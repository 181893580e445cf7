/*
 * kube_eviction - who makes room in a full zone, and whom room returned for.
 *
 * A heap of namespaces, and two of groups in each: O(log n) an event.  Groups
 * that changed are put in their places when the heaps are looked at.
 * It changes no object.  For the files of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <string.h>

#include "kube_eviction.h"
#include "kube_zone_writer.h"


static bool
eviction_group_before(void *ctx, kube_heap_node_t *a, kube_heap_node_t *b)
{
    const kube_group_t  *x, *y;

    (void) ctx;
    x = kube_heap_data(a, kube_group_t, rank);
    y = kube_heap_data(b, kube_group_t, rank);

    if (x->is_static != y->is_static) {
        return y->is_static;
    }

    if (x->demand != y->demand) {
        return x->demand > y->demand;
    }

    return kube_str_cmp(kube_group_name(x), kube_group_name(y)) > 0;
}


/* What is held and what is lacking. */
static uint64_t
eviction_want(const kube_group_t *group)
{
    return group->bytes + group->lacking;
}


/* Of those that lack something the first by rank comes first. */
static bool
eviction_turn_before(void *ctx, kube_heap_node_t *a, kube_heap_node_t *b)
{
    const kube_group_t  *x, *y;

    (void) ctx;
    x = kube_heap_data(a, kube_group_t, turn);
    y = kube_heap_data(b, kube_group_t, turn);

    if (x->is_static != y->is_static) {
        return x->is_static;
    }

    if (eviction_want(x) != eviction_want(y)) {
        return eviction_want(x) < eviction_want(y);
    }

    return kube_str_cmp(kube_group_name(x), kube_group_name(y)) < 0;
}


static bool
eviction_tenant_before(void *ctx, kube_heap_node_t *a, kube_heap_node_t *b)
{
    const kube_tenant_t  *x, *y;

    (void) ctx;
    x = kube_heap_data(a, kube_tenant_t, node);
    y = kube_heap_data(b, kube_tenant_t, node);

    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes;
    }

    return kube_str_cmp(x->ns, y->ns) > 0;
}


kube_rc_t
kube_eviction_init(kube_eviction_t *eviction)
{
    eviction->unranked = NULL;
    eviction->bytes = 0;
    kube_heap_init(&eviction->tenants, eviction->alloc,
                   eviction_tenant_before, NULL);

    return kube_map_init(&eviction->map, eviction->alloc);
}


void
kube_eviction_clear(kube_eviction_t *eviction)
{
    size_t            bucket;
    kube_tenant_t    *tenant;
    kube_map_link_t  *link;

    bucket = 0;

    while ((link = kube_map_any(&eviction->map, &bucket)) != NULL) {
        tenant = kube_map_data(link, kube_tenant_t, link);
        kube_map_remove(&eviction->map, link);
        kube_heap_done(&tenant->lacking);
        kube_heap_done(&tenant->groups);
        kube_free(eviction->alloc, tenant);
    }

    kube_heap_done(&eviction->tenants);
    eviction->unranked = NULL;
    eviction->bytes = 0;
}


void
kube_eviction_done(kube_eviction_t *eviction)
{
    kube_eviction_clear(eviction);
    kube_map_done(&eviction->map);
}


static bool
eviction_is_static(const kube_eviction_t *eviction, const kube_group_t *group)
{
    size_t      i, ns;
    kube_str_t  key;

    ns = group->ns_len;

    for (i = 0; i < eviction->static_keys_n; i++) {
        key = eviction->static_keys[i];

        if (key.len == ns + 1 + group->name_len
            && key.data[ns] == '/'
            && memcmp(key.data, group->key, ns) == 0
            && kube_str_eq((kube_str_t) { key.data + ns + 1, key.len - ns - 1 },
                           kube_group_name(group)))
        {
            return true;
        }
    }

    return false;
}


static uint64_t
eviction_hash(const kube_eviction_t *eviction, kube_str_t ns)
{
    return kube_hash64(eviction->index->seed, ns.data, ns.len);
}


static kube_tenant_t *
eviction_tenant_create(kube_eviction_t *eviction, kube_str_t ns)
{
    kube_tenant_t  *tenant;

    tenant = kube_zalloc(eviction->alloc, sizeof(kube_tenant_t) + ns.len);

    if (tenant == NULL) {
        return NULL;
    }

    kube_heap_init(&tenant->groups, eviction->alloc, eviction_group_before,
                   NULL);
    kube_heap_init(&tenant->lacking, eviction->alloc, eviction_turn_before,
                   NULL);
    memcpy(tenant + 1, ns.data, ns.len);
    tenant->ns = (kube_str_t) { (char *) (tenant + 1), ns.len };

    if (kube_heap_insert(&eviction->tenants, &tenant->node) != KUBE_OK) {
        kube_free(eviction->alloc, tenant);
        return NULL;
    }

    kube_map_insert(&eviction->map, &tenant->link,
                    eviction_hash(eviction, ns));

    return tenant;
}


static kube_tenant_t *
eviction_tenant(kube_eviction_t *eviction, kube_str_t ns)
{
    kube_tenant_t    *tenant;
    kube_map_link_t  *link;

    for (link = kube_map_first(&eviction->map, eviction_hash(eviction, ns));
         link != NULL;
         link = kube_map_next(link))
    {
        tenant = kube_map_data(link, kube_tenant_t, link);

        if (kube_str_eq(tenant->ns, ns)) {
            return tenant;
        }
    }

    return eviction_tenant_create(eviction, ns);
}


/* Puts a node back that was in the heap: there is a place for it. */
static void
eviction_back(kube_heap_t *heap, kube_heap_node_t *node)
{
    kube_rc_t  rc;

    rc = kube_heap_insert(heap, node);
    assert(rc == KUBE_OK);
    (void) rc;
}


static void
eviction_tenant_add(kube_eviction_t *eviction, kube_tenant_t *tenant,
    uint64_t bytes)
{
    tenant->bytes += bytes;
    kube_heap_moved(&eviction->tenants, &tenant->node);
}


static void
eviction_set_demand(kube_eviction_t *eviction, kube_group_t *group,
    uint64_t demand)
{
    if (demand != group->demand) {
        eviction_tenant_add(eviction, group->tenant, demand - group->demand);
        group->demand = demand;
        kube_heap_moved(&group->tenant->groups, &group->rank);
    }
}


/* A group of which nothing is held makes no room. */
static uint64_t
eviction_demand(const kube_group_t *group)
{
    return (group->bytes != 0) ? eviction_want(group) : 0;
}


/*
 * Ranks all groups by what they demand now.  As long as the zone has room
 * nobody asks who is the last, and a list moves no group in the heaps.
 */
static void
eviction_rank(kube_eviction_t *eviction)
{
    kube_group_t  *group;

    while ((group = eviction->unranked) != NULL) {
        eviction->unranked = group->unranked;
        group->is_unranked = false;
        eviction_set_demand(eviction, group, eviction_demand(group));
    }
}


/*
 * The group demanded before bytes until now.  Where memory is missing for its
 * turn, the next list that is due for another reason brings what it lacks.
 */
static void
eviction_update(kube_eviction_t *eviction, kube_group_t *group,
    uint64_t before)
{
    kube_rc_t  rc;

    eviction->bytes += eviction_demand(group) - before;

    if (!group->is_unranked) {
        group->is_unranked = true;
        group->unranked = eviction->unranked;
        eviction->unranked = group;
    }

    kube_heap_remove(&group->tenant->lacking, &group->turn);

    if (group->lacking != 0) {
        rc = kube_heap_insert(&group->tenant->lacking, &group->turn);
        (void) rc;
    }
}


static void
eviction_remove(kube_eviction_t *eviction, kube_group_t *group)
{
    kube_tenant_t  *tenant;

    tenant = group->tenant;

    if (tenant == NULL) {
        return;
    }

    if (group->is_unranked) {
        eviction_rank(eviction);
    }

    kube_heap_remove(&tenant->groups, &group->rank);
    kube_heap_remove(&tenant->lacking, &group->turn);
    group->tenant = NULL;

    if (--tenant->groups_n == 0) {
        kube_heap_remove(&eviction->tenants, &tenant->node);
        kube_map_remove(&eviction->map, &tenant->link);
        kube_heap_done(&tenant->lacking);
        kube_heap_done(&tenant->groups);
        kube_free(eviction->alloc, tenant);
    }
}


kube_rc_t
kube_eviction_add(kube_eviction_t *eviction, kube_group_t *group)
{
    kube_tenant_t  *tenant;

    if (group->tenant != NULL) {
        return KUBE_OK;
    }

    tenant = eviction_tenant(eviction, kube_group_ns(group));

    if (tenant == NULL) {
        return KUBE_NOMEM;
    }

    group->tenant = tenant;
    tenant->groups_n++;
    group->is_static = eviction_is_static(eviction, group);

    if (kube_heap_insert(&tenant->groups, &group->rank) != KUBE_OK) {
        eviction_remove(eviction, group);
        return KUBE_NOMEM;
    }

    return KUBE_OK;
}


void
kube_eviction_release(kube_eviction_t *eviction, kube_group_t *group)
{
    if (kube_group_is_empty(group)) {
        eviction_remove(eviction, group);
        kube_service_index_remove(eviction->index, group);
    }
}


uint32_t
kube_eviction_charge(const kube_eviction_t *eviction, size_t size)
{
    return (uint32_t) kube_zone_room_of(eviction->writer,
                                        size + sizeof(kube_ref_t));
}


void
kube_eviction_size(kube_eviction_t *eviction, uint32_t entry, uint32_t bytes)
{
    uint64_t        before;
    kube_member_t  *member;

    member = &eviction->index->members[entry];
    before = eviction_demand(member->group);
    member->group->bytes += (uint64_t) bytes - member->bytes;
    member->bytes = bytes;
    eviction_update(eviction, member->group, before);
}


void
kube_eviction_lacks(kube_eviction_t *eviction, kube_lack_t *lack,
    kube_group_t *group, uint32_t bytes)
{
    uint64_t  before;

    assert(lack->group == NULL || lack->group == group);

    before = eviction_demand(group);
    group->lacking += (uint64_t) bytes - lack->bytes;
    group->lacking_n += (bytes != 0);
    group->lacking_n -= (lack->group != NULL);
    lack->group = (bytes != 0) ? group : NULL;
    lack->bytes = bytes;
    eviction_update(eviction, group, before);
}


uint64_t
kube_eviction_lacking(const kube_group_t *group, const kube_lack_t *but)
{
    return group->lacking - (but != NULL && but->group == group ? but->bytes
                                                                : 0);
}


uint64_t
kube_eviction_free(const kube_eviction_t *eviction)
{
    uint64_t  room;

    room = kube_zone_room(eviction->writer);

    return (eviction->bytes < room) ? room - eviction->bytes : 0;
}


/* The last group of a tenant; NULL: it holds nothing. */
static kube_group_t *
eviction_last_of(const kube_tenant_t *tenant)
{
    kube_group_t      *group;
    kube_heap_node_t  *node;

    node = kube_heap_first(&tenant->groups);
    group = (node != NULL) ? kube_heap_data(node, kube_group_t, rank) : NULL;

    return (group != NULL && group->bytes != 0) ? group : NULL;
}


kube_group_t *
kube_eviction_last(kube_eviction_t *eviction)
{
    kube_heap_node_t  *node;

    eviction_rank(eviction);
    node = kube_heap_first(&eviction->tenants);

    return (node != NULL)
           ? eviction_last_of(kube_heap_data(node, kube_tenant_t, node))
           : NULL;
}


/* Takes a group out of the heaps; NULL: it would be self, or there is none. */
static kube_group_t *
eviction_pop(kube_eviction_t *eviction, const kube_tenant_t *tenant,
    const kube_group_t *self)
{
    kube_group_t  *group;

    group = (tenant != NULL) ? eviction_last_of(tenant)
                             : kube_eviction_last(eviction);

    if (group == NULL || group == self) {
        return NULL;
    }

    kube_heap_remove(&group->tenant->groups, &group->rank);
    eviction_tenant_add(eviction, group->tenant, 0 - group->demand);

    return group;
}


/*
 * Leaves those in that need not go, the first by rank before the others: the
 * list is of the last chosen first.  Returns it the other way round.
 */
static kube_group_t *
eviction_spare(kube_group_t *chosen, bool all, uint64_t gain, uint64_t need)
{
    kube_group_t  *group, *next, *victims;

    victims = NULL;

    for (group = chosen; group != NULL; group = next) {
        next = group->victim;

        if (!all && gain - group->demand >= need) {
            gain -= group->demand;
            continue;
        }

        group->victim = victims;
        victims = group;
    }

    return victims;
}


kube_rc_t
kube_eviction_choose(kube_eviction_t *eviction, kube_group_t *group,
    uint64_t more, uint64_t need, kube_group_t **victims)
{
    bool            over;
    uint64_t        gain, cap, demand;
    kube_rc_t       rc;
    kube_group_t   *victim, *chosen;
    kube_tenant_t  *tenant;

    tenant = group->tenant;
    cap = (eviction->share == 0) ? UINT64_MAX
          : kube_zone_room(eviction->writer) / 100 * eviction->share;
    *victims = NULL;

    /* nothing is short, as nearly always */
    if (need == 0 && cap == UINT64_MAX) {
        return KUBE_OK;
    }

    eviction_rank(eviction);
    demand = group->demand;
    eviction_set_demand(eviction, group, demand + more);

    gain = 0;
    over = false;
    chosen = NULL;
    rc = KUBE_OK;

    while (tenant->bytes > cap || gain < need) {
        over = over || tenant->bytes > cap;
        victim = eviction_pop(eviction, tenant->bytes > cap ? tenant : NULL,
                              group);

        if (victim == NULL) {
            rc = KUBE_FULL;
            break;
        }

        gain += victim->demand;
        victim->victim = chosen;
        chosen = victim;
    }

    for (victim = chosen; victim != NULL; victim = victim->victim) {
        eviction_back(&victim->tenant->groups, &victim->rank);
        eviction_tenant_add(eviction, victim->tenant, victim->demand);
    }

    eviction_set_demand(eviction, group, demand);

    if (rc == KUBE_OK) {
        *victims = eviction_spare(chosen, over, gain, need);
    }

    return rc;
}


bool
kube_eviction_takes(kube_eviction_t *eviction, kube_group_t *group,
    uint64_t more)
{
    uint64_t       wanted, room;
    kube_group_t  *victims;

    wanted = eviction->bytes + more;
    room = kube_zone_room(eviction->writer);

    return kube_eviction_choose(eviction, group, more,
                                wanted > room ? wanted - room : 0, &victims)
           == KUBE_OK;
}


/* The first of a tenant's groups in turn would get what it lacks. */
static bool
eviction_has_returned(kube_eviction_t *eviction, kube_group_t *group)
{
    /* what one that holds something lacks is counted already */
    return kube_eviction_takes(eviction, group,
                               (group->bytes != 0) ? 0 : group->lacking);
}


void
kube_eviction_returned(kube_eviction_t *eviction,
    kube_eviction_found_pt found, void *ctx)
{
    size_t             i;
    kube_group_t      *group;
    kube_tenant_t     *tenant;
    kube_map_link_t   *link;
    kube_heap_node_t  *node;

    for (i = 0; i <= eviction->map.mask; i++) {
        for (link = eviction->map.buckets[i]; link != NULL; link = link->next) {
            tenant = kube_map_data(link, kube_tenant_t, link);
            node = kube_heap_first(&tenant->lacking);

            if (node == NULL) {
                continue;
            }

            group = kube_heap_data(node, kube_group_t, turn);

            if (eviction_has_returned(eviction, group)) {
                found(ctx, group);
            }
        }
    }
}

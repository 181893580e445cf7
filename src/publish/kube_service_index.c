/*
 * kube_service_index - which objects belong to which Service, and where each
 * object is in its life.
 *
 * Groups are found by a map over namespace and name; members are an array by
 * entry, a group's slices a list through it.  It decides nothing
 * (kube_publisher does).  For the files of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <string.h>

#include "kube_service_index.h"


static void
index_members_free(kube_service_index_t *index)
{
    kube_pages_free(index->alloc, index->members,
                    ((size_t) index->entries_n + 1) * sizeof(kube_member_t));
}


kube_rc_t
kube_service_index_init(kube_service_index_t *index,
    const kube_alloc_t *alloc, kube_seed_t seed, uint32_t entries_n)
{
    index->alloc = alloc;
    index->seed = seed;
    index->entries_n = entries_n;
    index->members = kube_pages_alloc(alloc, ((size_t) entries_n + 1)
                                             * sizeof(kube_member_t));

    if (index->members == NULL) {
        return KUBE_NOMEM;
    }

    if (kube_map_init(&index->groups, alloc) != KUBE_OK) {
        index_members_free(index);
        return KUBE_NOMEM;
    }

    return KUBE_OK;
}


void
kube_service_index_clear(kube_service_index_t *index, uint32_t top)
{
    size_t            bucket;
    uint32_t          i;
    kube_map_link_t  *link;

    for (i = 1; i <= top; i++) {
        kube_free(index->alloc, index->members[i].refusal);
        memset(&index->members[i], 0, sizeof(kube_member_t));
    }

    bucket = 0;

    while ((link = kube_map_any(&index->groups, &bucket)) != NULL) {
        kube_service_index_remove(index, kube_map_data(link, kube_group_t,
                                                       link));
    }
}


void
kube_service_index_done(kube_service_index_t *index, uint32_t top)
{
    kube_service_index_clear(index, top);
    kube_map_done(&index->groups);
    index_members_free(index);
}


static kube_group_t *
index_group_create(kube_service_index_t *index, kube_str_t ns,
    kube_str_t name, uint64_t hash)
{
    kube_group_t     *group;
    kube_resource_t   r;

    group = kube_zalloc(index->alloc,
                        offsetof(kube_group_t, key) + ns.len + name.len);
    if (group == NULL) {
        return NULL;
    }

    group->ns_len = (uint8_t) ns.len;
    group->name_len = (uint8_t) name.len;
    memcpy(group->key, ns.data, ns.len);

    if (name.len != 0) {
        memcpy(group->key + ns.len, name.data, name.len);
    }

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        group->scope[r] = KUBE_SCOPES_MAX;
    }

    kube_map_insert(&index->groups, &group->link, hash);

    return group;
}


kube_group_t *
kube_service_index_get(kube_service_index_t *index, kube_str_t ns,
    kube_str_t name)
{
    char              key[KUBE_KEY_LEN_MAX];
    uint64_t          hash;
    kube_group_t     *group;
    kube_map_link_t  *link;

    assert(ns.len <= KUBE_NAMESPACE_LEN_MAX && name.len <= KUBE_NAME_LEN_MAX);

    /* a namespace holds no '/': no two keys are the same text */
    memcpy(key, ns.data, ns.len);
    key[ns.len] = '/';

    if (name.len != 0) {
        memcpy(key + ns.len + 1, name.data, name.len);
    }

    hash = kube_hash64(index->seed, key, ns.len + 1 + name.len);

    for (link = kube_map_first(&index->groups, hash);
         link != NULL;
         link = kube_map_next(link))
    {
        group = kube_map_data(link, kube_group_t, link);

        if (kube_str_eq(kube_group_ns(group), ns)
            && kube_str_eq(kube_group_name(group), name))
        {
            return group;
        }
    }

    return index_group_create(index, ns, name, hash);
}


bool
kube_group_is_empty(const kube_group_t *group)
{
    return group->service == 0
           && group->slices == 0
           && group->lacking_n == 0
           && group->pins == 0;
}


void
kube_service_index_remove(kube_service_index_t *index, kube_group_t *group)
{
    kube_map_remove(&index->groups, &group->link);
    kube_free(index->alloc, group);
}


const kube_lack_t *
kube_member_wish(const kube_member_t *member)
{
    return (member->refusal != NULL && member->refusal->wish.group != NULL)
           ? &member->refusal->wish : NULL;
}


bool
kube_member_is_service(const kube_member_t *member)
{
    return kube_resource_info((kube_resource_t) member->resource)->shape
           == KUBE_SHAPE_SERVICE;
}


void
kube_service_index_link(kube_service_index_t *index, kube_group_t *group,
    uint32_t entry)
{
    kube_member_t  *member;

    member = &index->members[entry];
    assert(member->group == NULL);

    member->group = group;

    if (kube_member_is_service(member)) {
        group->service = entry;
        return;
    }

    member->prev = 0;
    member->next = group->slices;

    if (group->slices != 0) {
        index->members[group->slices].prev = entry;
    }

    group->slices = entry;
    group->slices_n++;
}


uint32_t
kube_service_index_owner(kube_service_index_t *index, uint32_t entry)
{
    kube_member_t       *member;
    const kube_group_t  *group;

    member = &index->members[entry];
    group = index->members[member->referenced_by].group;

    if (group == NULL || group->service != member->referenced_by) {
        member->referenced_by = 0;
    }

    return member->referenced_by;
}


/* Where the chain of a group has been; the first is that group. */
typedef struct {
    unsigned             n;
    const kube_group_t  *groups[KUBE_CHAIN_MAX + 1];
} index_walk_t;


/* True if the walk comes to the group for the first time. */
static bool
index_walk_enter(index_walk_t *walk, const kube_group_t *group)
{
    unsigned  i;

    for (i = 0; i < walk->n; i++) {
        if (walk->groups[i] == group) {
            return false;
        }
    }

    if (walk->n == KUBE_CHAIN_MAX + 1) {
        return false;
    }

    walk->groups[walk->n++] = group;

    return true;
}


/* Each level enters a group: there are as many at most as a walk has. */
static void
index_chain_add(kube_service_index_t *index, const kube_group_t *group,
    index_walk_t *walk, kube_chain_t *chain)
{
    uint32_t       i, owner;
    kube_group_t  *other;

    for (i = group->slices; i != 0; i = index->members[i].next) {
        owner = kube_service_index_owner(index, i);

        if (owner == 0 || owner == group->service) {
            continue;
        }

        other = index->members[owner].group;

        if (index_walk_enter(walk, other)) {
            index_chain_add(index, other, walk, chain);
            chain->groups[chain->n++] = other;
        }
    }
}


void
kube_service_index_chain(kube_service_index_t *index, kube_group_t *group,
    kube_chain_t *chain)
{
    index_walk_t  walk;

    walk.n = 0;
    chain->n = 0;
    (void) index_walk_enter(&walk, group);
    index_chain_add(index, group, &walk, chain);
}


void
kube_service_index_unlink(kube_service_index_t *index, uint32_t entry)
{
    kube_group_t   *group;
    kube_member_t  *member;

    member = &index->members[entry];
    group = member->group;
    member->group = NULL;

    if (kube_member_is_service(member)) {
        group->service = 0;
        return;
    }

    if (member->prev != 0) {
        index->members[member->prev].next = member->next;

    } else {
        group->slices = member->next;
    }

    if (member->next != 0) {
        index->members[member->next].prev = member->prev;
    }

    member->prev = 0;
    member->next = 0;
    group->slices_n--;
}


void
kube_member_set(kube_member_t *member, kube_life_t life)
{
#define TO(name)  (1u << KUBE_LIFE_##name)

    static const unsigned  next[] = {
        [KUBE_LIFE_NONE] = TO(STAGED) | TO(LINKED) | TO(REFERENCED)
                           | TO(REFUSED),
        [KUBE_LIFE_STAGED] = TO(STAGED) | TO(LINKED) | TO(REFERENCED)
                             | TO(DELETING),
        [KUBE_LIFE_LINKED] = TO(STAGED) | TO(LINKED) | TO(REFERENCED)
                             | TO(DELETING),
        [KUBE_LIFE_REFERENCED] = TO(STAGED) | TO(LINKED) | TO(REFERENCED)
                                 | TO(DELETING),
        [KUBE_LIFE_DELETING] = TO(STAGED) | TO(DELETING),
        [KUBE_LIFE_REFUSED] = 0
    };

#undef TO

    assert(next[member->life] & (1u << life));
    (void) next;

    member->life = (uint8_t) life;
}


void
kube_service_index_forget(kube_service_index_t *index, uint32_t entry)
{
    kube_member_t  *member;

    member = &index->members[entry];
    assert(member->group == NULL);

    kube_free(index->alloc, member->refusal);
    memset(member, 0, sizeof(kube_member_t));
}


void
kube_refusal_set_rv(kube_refusal_t *refusal, kube_str_t rv)
{
    if (kube_rv_parse(rv, &refusal->rv) != KUBE_OK) {
        refusal->rv.len = 0;
    }
}

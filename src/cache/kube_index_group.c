/*
 * kube_index_group - groups of the indexer: what bears one Service's name.
 *
 * A group exists as long as the Service or one of its slices does, so that
 * slices may come before their Service and stay after it.  Groups are found
 * by a hash table; those that are not static are also kept in a heap whose
 * first is the last by name: the one to go when room is short.  It stores no
 * object and publishes nothing.  Writer process only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_indexer_internal.h"


static uint64_t
group_hash(const kube_indexer_t *ix, kube_str_t ns, kube_str_t name)
{
    char  buf[KUBE_KEY_LEN_MAX];

    /* lengths were checked by the caller; names hold no '/' */
    memcpy(buf, ns.data, ns.len);
    buf[ns.len] = '/';

    if (name.len != 0) {
        memcpy(buf + ns.len + 1, name.data, name.len);
    }

    return kube_hash64(ix->conf.seed, buf, ns.len + 1 + name.len);
}


static bool
group_is_static(const kube_indexer_t *ix, kube_str_t ns, kube_str_t name)
{
    size_t      i;
    kube_str_t  key;

    for (i = 0; i < ix->conf.static_keys_n; i++) {
        key = ix->conf.static_keys[i];

        if (key.len == ns.len + 1 + name.len
            && key.data[ns.len] == '/'
            && memcmp(key.data, ns.data, ns.len) == 0
            && kube_str_eq((kube_str_t) { key.data + ns.len + 1, name.len },
                           name))
        {
            return true;
        }
    }

    return false;
}


int
kube_index_group_cmp(const kube_index_group_t *a, const kube_index_group_t *b)
{
    int  rc;

    rc = kube_str_cmp(a->ns, b->ns);

    return (rc != 0) ? rc : kube_str_cmp(a->name, b->name);
}


static void
group_heap_put(kube_indexer_t *ix, kube_index_group_t *group, size_t at)
{
    ix->heap[at - 1] = group;
    group->heap = at;
}


static void
group_heap_up(kube_indexer_t *ix, kube_index_group_t *group, size_t at)
{
    kube_index_group_t  *parent;

    for ( /* void */ ; at > 1; at /= 2) {
        parent = ix->heap[at / 2 - 1];

        if (kube_index_group_cmp(group, parent) <= 0) {
            break;
        }

        group_heap_put(ix, parent, at);
    }

    group_heap_put(ix, group, at);
}


static void
group_heap_down(kube_indexer_t *ix, kube_index_group_t *group, size_t at)
{
    size_t               child;
    kube_index_group_t  *c;

    for ( /* void */ ; at <= ix->heap_n / 2; at = child) {
        child = 2 * at;

        if (child < ix->heap_n
            && kube_index_group_cmp(ix->heap[child], ix->heap[child - 1]) > 0)
        {
            child++;
        }

        c = ix->heap[child - 1];

        if (kube_index_group_cmp(group, c) >= 0) {
            break;
        }

        group_heap_put(ix, c, at);
    }

    group_heap_put(ix, group, at);
}


static void
group_heap_remove(kube_indexer_t *ix, kube_index_group_t *group)
{
    size_t               at;
    kube_index_group_t  *last;

    at = group->heap;

    if (at == 0) {
        return;
    }

    last = ix->heap[--ix->heap_n];
    group->heap = 0;

    if (last == group) {
        return;
    }

    if (at > 1 && kube_index_group_cmp(last, ix->heap[at / 2 - 1]) > 0) {
        group_heap_up(ix, last, at);

    } else {
        group_heap_down(ix, last, at);
    }
}


kube_index_group_t *
kube_index_group_last(const kube_indexer_t *ix)
{
    return (ix->heap_n != 0) ? ix->heap[0] : NULL;
}


static kube_rc_t
group_heap_reserve(kube_indexer_t *ix)
{
    void       *p;
    kube_rc_t   rc;

    p = ix->heap;
    rc = kube_array_reserve(ix->alloc, &p, &ix->heap_cap, ix->heap_n + 1,
                            sizeof(kube_index_group_t *), SIZE_MAX);
    ix->heap = p;

    return rc;
}


static kube_index_group_t *
group_create(kube_indexer_t *ix, kube_str_t ns, kube_str_t name,
    uint64_t hash)
{
    char                *p;
    kube_resource_t      r;
    kube_index_group_t  *group;

    if (group_heap_reserve(ix) != KUBE_OK) {
        return NULL;
    }

    group = kube_zalloc(ix->alloc,
                        sizeof(kube_index_group_t) + ns.len + name.len);
    if (group == NULL) {
        return NULL;
    }

    p = (char *) (group + 1);
    memcpy(p, ns.data, ns.len);
    group->ns = (kube_str_t) { p, ns.len };

    if (name.len != 0) {
        memcpy(p + ns.len, name.data, name.len);
    }

    group->name = (kube_str_t) { p + ns.len, name.len };
    group->hash = hash;

    for (r = 0; r < KUBE_RESOURCES; r++) {
        group->scope[r] = kube_index_scope_of(ix, r, ns);
    }

    if (!group_is_static(ix, ns, name)) {
        ix->heap_n++;
        group_heap_up(ix, group, ix->heap_n);
    }

    group->chain = ix->buckets[hash & ix->mask];
    ix->buckets[hash & ix->mask] = group;

    return group;
}


kube_index_group_t *
kube_index_group_get(kube_indexer_t *ix, kube_str_t ns, kube_str_t name)
{
    uint64_t             hash;
    kube_index_group_t  *group;

    hash = group_hash(ix, ns, name);

    for (group = ix->buckets[hash & ix->mask];
         group != NULL;
         group = group->chain)
    {
        if (group->hash == hash
            && kube_str_eq(group->ns, ns)
            && kube_str_eq(group->name, name))
        {
            return group;
        }
    }

    return group_create(ix, ns, name, hash);
}


void
kube_index_group_tidy(kube_indexer_t *ix, kube_index_group_t *group)
{
    kube_index_group_t  **p;

    if (group->service != 0 || group->slices != 0 || group == ix->pinned) {
        return;
    }

    p = &ix->buckets[group->hash & ix->mask];

    while (*p != group) {
        p = &(*p)->chain;
    }

    *p = group->chain;

    group_heap_remove(ix, group);
    kube_free(ix->alloc, group);
}


void
kube_index_groups_free(kube_indexer_t *ix)
{
    size_t               i;
    kube_index_group_t  *group, *next;

    for (i = 0; i <= ix->mask; i++) {

        for (group = ix->buckets[i]; group != NULL; group = next) {
            next = group->chain;
            kube_free(ix->alloc, group);
        }

        ix->buckets[i] = NULL;
    }

    ix->heap_n = 0;
}


void
kube_index_slice_link(kube_indexer_t *ix, kube_index_group_t *group,
    uint32_t entry)
{
    kube_index_entry_t  *e;

    e = &ix->entries[entry];

    e->u.group = group;
    e->prev = 0;
    e->next = group->slices;

    if (group->slices != 0) {
        ix->entries[group->slices].prev = entry;
    }

    group->slices = entry;
    group->slices_n++;
}


void
kube_index_slice_unlink(kube_indexer_t *ix, uint32_t entry)
{
    kube_index_entry_t  *e;
    kube_index_group_t  *group;

    e = &ix->entries[entry];
    group = e->u.group;

    if (e->prev != 0) {
        ix->entries[e->prev].next = e->next;

    } else {
        group->slices = e->next;
    }

    if (e->next != 0) {
        ix->entries[e->next].prev = e->prev;
    }

    e->u.group = NULL;
    e->prev = 0;
    e->next = 0;
    group->slices_n--;
}


static void
group_count_waiting(kube_indexer_t *ix, const kube_index_group_t *group,
    bool more)
{
    kube_resource_t      r;
    kube_index_scope_t  *scope;

    for (r = 0; r < KUBE_RESOURCES; r++) {

        if (group->scope[r] == KUBE_INDEX_NO_SCOPE) {
            continue;
        }

        scope = &ix->scopes[group->scope[r]];

        if (more) {
            scope->waiting++;

        } else {
            scope->waiting--;
        }
    }
}


void
kube_index_group_dirty(kube_indexer_t *ix, kube_index_group_t *group,
    uint64_t read_ms)
{
    if (group->service == 0) {
        return;
    }

    /* what no list will change any more need not wait for it */
    if (group->wait == KUBE_INDEX_HELD
        && (ix->entries[group->service].flags & KUBE_INDEX_F_DOOMED))
    {
        kube_index_group_idle(ix, group);
    }

    if (group->wait == KUBE_INDEX_HELD) {
        kube_work_queue_add(ix->held, group->service, read_ms);
        return;
    }

    kube_work_queue_add(ix->ready, group->service, read_ms);

    if (group->wait == KUBE_INDEX_IDLE) {
        group->wait = KUBE_INDEX_READY;
        group_count_waiting(ix, group, true);
    }
}


void
kube_index_group_idle(kube_indexer_t *ix, kube_index_group_t *group)
{
    if (group->wait == KUBE_INDEX_IDLE) {
        return;
    }

    kube_work_queue_remove(ix->ready, group->service);
    kube_work_queue_remove(ix->held, group->service);

    group->wait = KUBE_INDEX_IDLE;
    group_count_waiting(ix, group, false);
}


bool
kube_index_group_is_held(const kube_indexer_t *ix,
    const kube_index_group_t *group)
{
    uint8_t                    slot;
    const kube_index_scope_t  *scope;

    slot = group->scope[KUBE_RESOURCE_ENDPOINTSLICES];

    if (slot == KUBE_INDEX_NO_SCOPE
        || (ix->entries[group->service].flags & KUBE_INDEX_F_DOOMED))
    {
        return false;
    }

    scope = &ix->scopes[slot];

    return scope->list != scope->synced && group->touched > scope->synced;
}

/*
 * kube_service_queue - which Services wait for publication, and which of them
 * a list in progress holds back.
 *
 * Two work queues of Services' entries.  That a Service is held is found when
 * its turn comes; it moves back when a list ends.  For the files of
 * src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_service_queue.h"


kube_rc_t
kube_service_queue_init(kube_service_queue_t *queue,
    const kube_alloc_t *alloc, const kube_service_index_t *index)
{
    memset(queue, 0, sizeof(kube_service_queue_t));

    queue->index = index;
    queue->ready = kube_work_queue_create(alloc, index->entries_n);
    queue->held = kube_work_queue_create(alloc, index->entries_n);

    return (queue->ready != NULL && queue->held != NULL) ? KUBE_OK
                                                         : KUBE_NOMEM;
}


void
kube_service_queue_done(kube_service_queue_t *queue)
{
    kube_work_queue_destroy(queue->ready);
    kube_work_queue_destroy(queue->held);
}


void
kube_service_queue_clear(kube_service_queue_t *queue)
{
    uint64_t  read_ms;

    while (kube_work_queue_pop(queue->ready, &read_ms) != 0) {
        /* void */
    }

    while (kube_work_queue_pop(queue->held, &read_ms) != 0) {
        /* void */
    }

    memset(queue->scopes, 0, sizeof(queue->scopes));
}


static bool
queue_is_deleting(const kube_service_queue_t *queue,
    const kube_group_t *group)
{
    return queue->index->members[group->service].life
           == KUBE_LIFE_DELETING;
}


/* True if a list in progress has changed slices of the group. */
static bool
queue_is_held(const kube_service_queue_t *queue, const kube_group_t *group)
{
    kube_resource_t            r;
    const kube_queue_scope_t  *scope;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        scope = &queue->scopes[group->scope[r]];

        if (scope->list != scope->synced && group->list[r] > scope->synced) {
            return !queue_is_deleting(queue, group);
        }
    }

    return false;
}


/*
 * Counts the group as waiting in the resource's scope: the one that it has now,
 * for a slice may be the first to tell which that is.
 */
static void
queue_wait(kube_service_queue_t *queue, kube_group_t *group, unsigned r)
{
    if (group->waits & (1u << r)) {
        queue->scopes[group->waits_in[r]].waiting--;
    }

    group->waits = (uint8_t) (group->waits | 1u << r);
    group->waits_in[r] = group->scope[r];
    queue->scopes[group->waits_in[r]].waiting++;
}


void
kube_service_queue_add(kube_service_queue_t *queue, kube_group_t *group,
    unsigned resource, uint64_t read_ms)
{
    if (group->service == 0) {
        return;
    }

    if (group->waits == 0) {
        group->added_ms = queue->now_ms;
        queue->added++;
    }

    queue_wait(queue, group, resource);

    /* one being deleted, or let go by an event, is not delayed until the end */
    if (group->held && !queue_is_held(queue, group)) {
        kube_work_queue_remove(queue->held, group->service);
        group->held = false;
    }

    kube_work_queue_add(group->held ? queue->held : queue->ready,
                        group->service, read_ms);
}


uint32_t
kube_service_queue_depth(kube_service_queue_t *queue, uint64_t *added)
{
    *added = queue->added;
    queue->added = 0;

    return kube_work_queue_depth(queue->ready)
           + kube_work_queue_depth(queue->held);
}


void
kube_service_queue_remove(kube_service_queue_t *queue, kube_group_t *group)
{
    unsigned  r;

    kube_work_queue_remove(group->held ? queue->held : queue->ready,
                           group->service);
    group->held = false;

    for (r = 0; group->waits != 0; r++) {
        if (group->waits & (1u << r)) {
            group->waits = (uint8_t) (group->waits & ~(1u << r));
            queue->scopes[group->waits_in[r]].waiting--;
        }
    }
}


kube_group_t *
kube_service_queue_next(kube_service_queue_t *queue, uint64_t *read_ms)
{
    uint32_t       service;
    kube_group_t  *group;

    while ((service = kube_work_queue_pop(queue->ready, read_ms)) != 0) {
        group = queue->index->members[service].group;

        if (!queue_is_held(queue, group)) {
            queue->waited = group->waits;
            kube_service_queue_remove(queue, group);
            return group;
        }

        group->held = true;
        kube_work_queue_add(queue->held, service, *read_ms);
    }

    return NULL;
}


void
kube_service_queue_again(kube_service_queue_t *queue, kube_group_t *group,
    uint64_t read_ms)
{
    unsigned  r;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        if (queue->waited & (1u << r)) {
            kube_service_queue_add(queue, group, r, read_ms);
        }
    }
}


bool
kube_service_queue_pending(const kube_service_queue_t *queue, unsigned scope)
{
    return queue->scopes[scope].waiting != 0;
}


void
kube_service_queue_list_begin(kube_service_queue_t *queue, unsigned scope)
{
    queue->scopes[scope].list++;
    queue->scopes[scope].refill = false;
}


void
kube_service_queue_list_end(kube_service_queue_t *queue, unsigned scope)
{
    uint32_t       n, service;
    uint64_t       read_ms;
    kube_group_t  *group;

    queue->scopes[scope].synced = queue->scopes[scope].list;

    /* those that another list holds, too, are held again */
    for (n = kube_work_queue_depth(queue->held); n != 0; n--) {
        service = kube_work_queue_pop(queue->held, &read_ms);
        group = queue->index->members[service].group;
        group->held = queue_is_held(queue, group);

        kube_work_queue_add(group->held ? queue->held : queue->ready,
                            service, read_ms);
    }
}


bool
kube_service_queue_listing(const kube_service_queue_t *queue, unsigned scope)
{
    return queue->scopes[scope].list != queue->scopes[scope].synced;
}


void
kube_service_queue_refill_begin(kube_service_queue_t *queue, unsigned scope)
{
    /* the end of this one is not that of a list that is to be replaced */
    if (kube_service_queue_listing(queue, scope)) {
        return;
    }

    kube_service_queue_list_begin(queue, scope);
    queue->scopes[scope].refill = true;
}


void
kube_service_queue_refill_end(kube_service_queue_t *queue, unsigned scope)
{
    if (queue->scopes[scope].refill) {
        queue->scopes[scope].refill = false;
        kube_service_queue_list_end(queue, scope);
    }
}


void
kube_service_queue_hold(kube_service_queue_t *queue, kube_group_t *group,
    const kube_member_t *slice, uint64_t read_ms)
{
    const kube_queue_scope_t  *scope;

    scope = &queue->scopes[slice->scope];

    if (!kube_service_queue_listing(queue, slice->scope)) {
        return;
    }

    /*
     * What goes beside a watch takes nothing away: who is served already is
     * served by more, one slice after the other, and events go on.  They let
     * go what it holds, for without it they would not wait either.
     */

    if (!scope->refill || (read_ms == KUBE_NEVER && group->shown == 0)) {
        group->list[slice->resource] = scope->list;

    } else if (read_ms != KUBE_NEVER) {
        group->list[slice->resource] = scope->synced;
    }
}


bool
kube_service_queue_hold_with(kube_service_queue_t *queue, kube_group_t *group,
    const kube_group_t *other)
{
    kube_resource_t  r;

    if (!queue_is_held(queue, other)) {
        return false;
    }

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        if (group->scope[r] == other->scope[r]
            && group->list[r] < other->list[r])
        {
            group->list[r] = other->list[r];
        }
    }

    return queue_is_held(queue, group);
}

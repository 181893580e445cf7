/*
 * kube_service_queue - which Services wait for publication, and which of them
 * a list in progress holds back.
 *
 * A list of slices changes a Service's slices one by one.  A Service that it
 * has changed is held until the list is complete, so that no reader ever sees
 * one half replaced; a Service being deleted is not, for no list changes it
 * any more.  Nor is one that an event changed while a list goes on beside the
 * watch: such a list is one Service's need, and delays no other's changes.
 *
 * It publishes nothing.  For the files of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SERVICE_QUEUE_H
#define KUBE_SERVICE_QUEUE_H


#include "kube_service_index.h"
#include "kube_work_queue.h"


typedef struct {
    uint32_t  list;                   /* lists begun */
    uint32_t  synced;                 /* the one that was completed last */
    uint32_t  waiting;                /* groups with a change to publish */
    bool      refill;                 /* the last one goes beside a watch */
} kube_queue_scope_t;

typedef struct {
    const kube_service_index_t  *index;
    kube_work_queue_t           *ready;       /* entries of Services */
    kube_work_queue_t           *held;
    uint64_t                     now_ms;      /* the publisher's clock */
    uint64_t                     added;       /* Services that did not wait
                                                 yet, since anybody asked */
    uint8_t                      waited;      /* for what: the last to have
                                                 its turn */

    /* the last is of what no scope covers */
    kube_queue_scope_t           scopes[KUBE_SCOPES_MAX + 1];
} kube_service_queue_t;

/* index is borrowed.  KUBE_OK or KUBE_NOMEM: done is called all the same. */
kube_rc_t kube_service_queue_init(kube_service_queue_t *queue,
    const kube_alloc_t *alloc, const kube_service_index_t *index)
    KUBE_MUST_CHECK;
void kube_service_queue_done(kube_service_queue_t *queue);

/* Nothing waits, and no list is in progress. */
void kube_service_queue_clear(kube_service_queue_t *queue);

/*
 * Queues the group's Service, if there is one, for a change of an object of
 * the resource that was read at read_ms (KUBE_NEVER: not an event).
 */
void kube_service_queue_add(kube_service_queue_t *queue, kube_group_t *group,
    unsigned resource, uint64_t read_ms);

/*
 * How many Services wait, held ones among them; sets *added to how many were
 * added since the last call.
 */
uint32_t kube_service_queue_depth(kube_service_queue_t *queue,
    uint64_t *added);

/* Nothing of the group waits any more.  Called before its Service goes. */
void kube_service_queue_remove(kube_service_queue_t *queue,
    kube_group_t *group);

/*
 * The group whose Service has waited longest and is not held; NULL: there is
 * none.  It is removed from the queue; *read_ms is of its earliest change.
 */
kube_group_t *kube_service_queue_next(kube_service_queue_t *queue,
    uint64_t *read_ms);

/* The group that had its turn last waits again, for the same changes. */
void kube_service_queue_again(kube_service_queue_t *queue,
    kube_group_t *group, uint64_t read_ms);

/* True if a change of the scope waits; scope is below KUBE_SCOPES_MAX. */
bool kube_service_queue_pending(const kube_service_queue_t *queue,
    unsigned scope);

/* A list of the scope begins, or is complete; true between the two. */
void kube_service_queue_list_begin(kube_service_queue_t *queue,
    unsigned scope);
void kube_service_queue_list_end(kube_service_queue_t *queue, unsigned scope);
bool kube_service_queue_listing(const kube_service_queue_t *queue,
    unsigned scope);

/*
 * The same of a list beside the scope's watch.  The end of one that was not
 * begun, or that a list has taken the place of, changes nothing.
 */
void kube_service_queue_refill_begin(kube_service_queue_t *queue,
    unsigned scope);
void kube_service_queue_refill_end(kube_service_queue_t *queue,
    unsigned scope);

/*
 * Holds the group until the list in progress, if any, of the slice's scope, for
 * a change that was read at read_ms (KUBE_NEVER: not an event).  A list beside
 * the watch holds only what it changes itself, of Services that show no slice,
 * until an event changes a slice too.
 */
void kube_service_queue_hold(kube_service_queue_t *queue,
    kube_group_t *group, const kube_member_t *slice, uint64_t read_ms);

/* As long as the other one, of the same namespace; false: that is not held. */
bool kube_service_queue_hold_with(kube_service_queue_t *queue,
    kube_group_t *group, const kube_group_t *other);


#endif /* KUBE_SERVICE_QUEUE_H */

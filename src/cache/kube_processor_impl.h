/*
 * kube_processor_impl - what kube_processor.c (the ring, and who listens) and
 * kube_processor_listener.c (what one listener is told) share.  It is for
 * nobody else; what it declares is in the second file and does not call the
 * first.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PROCESSOR_IMPL_H
#define KUBE_PROCESSOR_IMPL_H


#include "kube_map.h"
#include "kube_processor.h"


typedef struct listener_row_s  listener_row_t;
typedef struct listener_s      listener_t;

struct listener_row_s {
    kube_map_link_t       link;
    listener_row_t       *prev;
    listener_row_t       *next;
    kube_store_change_t   change;     /* old and new are held */
};

struct listener_s {
    listener_t           *next;
    uint64_t              id;
    kube_handler_t        handler;
    uint64_t              cursor;       /* the change to be read next */
    bool                  deleted;      /* of that one, the deletion is told */
    bool                  behind;       /* what is pending fell out of it */
    bool                  resync;       /* ... which is to be told */
    bool                  removed;
    bool                  cut;          /* initial adds of it were dropped */
    kube_map_t            map;          /* of rows */
    listener_row_t       *first;
    listener_row_t       *last;
    size_t                initial;      /* rows that are */
    uint64_t              asked_ms;     /* period that the handler wants */
    uint64_t              resync_ms;    /* that it has; KUBE_NEVER: none */
    uint64_t              due_ms;
};

typedef struct {
    kube_store_change_t   change;       /* old and new are held */
    size_t                bytes;
} ring_slot_t;

struct kube_processor_s {
    const kube_alloc_t      *alloc;
    kube_processor_conf_t    conf;
    kube_log_t               log;
    listener_t              *listeners;
    uint64_t                 last_id;
    ring_slot_t             *ring;
    uint64_t                 tail;
    uint64_t                 head;
    size_t                   bytes;
    size_t                   pending;
    uint64_t                 initial_end;  /* changes below are initial */
    bool                     started;
    bool                     synced;
    bool                     calling;
    uint64_t                 current_id;   /* of who is called */
    bool                     removing;     /* some listener is removed */
    bool                     dropped;
    uint64_t                 check_ms;
    uint64_t                 tick_ms;      /* of the timer, or KUBE_NEVER */
    uint64_t                 notifications;
    uint64_t                 errors;
    uint64_t                 fallen_behind;
};


static inline void
kube_change_hold(kube_store_change_t *change)
{
    (void) kube_stored_hold(change->old);
    (void) kube_stored_hold(change->new);
}


static inline void
kube_change_release(kube_store_change_t *change)
{
    kube_stored_release(change->old);
    kube_stored_release(change->new);
}


/* The place of a change in the ring. */
static inline ring_slot_t *
kube_ring_slot(const kube_processor_t *p, uint64_t number)
{
    return &p->ring[number % p->conf.changes_max];
}


/*
 * Takes along the change at the cursor.  KUBE_OK, or KUBE_NOMEM: nothing has
 * changed.
 */
kube_rc_t kube_listener_take_next(kube_processor_t *p, listener_t *l)
    KUBE_MUST_CHECK;

/*
 * Makes all that is held pending: as initial adds, or for a resync, which
 * leaves keys alone that are pending anyway.  KUBE_OK, or KUBE_NOMEM: a part
 * of it is.
 */
kube_rc_t kube_listener_fill(kube_processor_t *p, listener_t *l,
    const kube_store_t *store, bool initial)  KUBE_MUST_CHECK;

/* Tells one thing.  KUBE_OK; KUBE_AGAIN: not now; KUBE_NOT_FOUND: nothing. */
kube_rc_t kube_listener_run(kube_processor_t *p, listener_t *l,
    uint64_t now_ms)  KUBE_MUST_CHECK;

/* Drops what is pending. */
void kube_listener_clear(kube_processor_t *p, listener_t *l);


#endif /* KUBE_PROCESSOR_IMPL_H */

/*
 * kube_delta_fifo - changes on their way to the indexer, at most one per key.
 *
 * Keys leave in the order in which they came; a key that changes again while
 * it waits keeps its place and its newest state.  This compresses more than
 * client-go's DeltaFIFO, whose consumers see every delta: here the newest
 * state per key is all the zone can show.  A key that was added and deleted
 * before the indexer saw it still leaves as DELETED, which is harmless there.
 * An object that was deleted and made anew leaves as its newest state, which
 * says whose deletion came first: handlers see both (kube_shared_informer),
 * readers of the zone none of it.
 *
 * LIST_BEGIN and SYNC mark where a list began and ended, the REFILL marks the
 * same of one beside a watch that goes on (kube_reflector_refill.c), whose
 * items are UPDATED.  They travel in order: what was queued before a mark
 * leaves before it.
 *
 * Whoever reads a stream puts, the informer takes; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DELTA_FIFO_H
#define KUBE_DELTA_FIFO_H


#include "kube_record.h"


typedef enum {
    KUBE_DELTA_REPLACED = 0,   /* an item of a list */
    KUBE_DELTA_UPDATED,        /* ADDED or MODIFIED: the indexer knows which */
    KUBE_DELTA_DELETED,
    KUBE_DELTA_REFUSED,        /* an object that cannot be held; key is known */
    KUBE_DELTA_LIST_BEGIN,     /* marks: they have a scope and nothing else */
    KUBE_DELTA_SYNC,
    KUBE_DELTA_REFILL_BEGIN,   /* the same of a list beside an open watch */
    KUBE_DELTA_REFILL_END,     /* all of it came */
    KUBE_DELTA_REFILL_BROKEN   /* it will not come to its end */
} kube_delta_kind_t;

/* A mark, or false: what has a key. */
#define kube_delta_is_mark(kind)  ((kind) >= KUBE_DELTA_LIST_BEGIN)

typedef struct {
    kube_delta_kind_t     kind;
    unsigned              scope;        /* below KUBE_SCOPES_MAX */
    kube_resource_t       resource;
    kube_str_t            ns;           /* key; not of marks */
    kube_str_t            name;
    kube_str_t            rv;           /* of object or event; may be empty */
    kube_str_t            reason;       /* REFUSED: static text */
    uint64_t              uid_hash;     /* REFUSED, DELETED: kube_uid_hash() */
    uint64_t              deleted_uid;  /* the same of another object of this
                                           key, which was deleted first; 0:
                                           none.  Not looked at by put() */
    const kube_record_t  *record;       /* REPLACED and UPDATED; else NULL */
    uint64_t              read_ms;      /* when its last byte was read;
                                           KUBE_NEVER: it is no change */
    int64_t               trigger_ms;   /* slices: unix ms; 0: unknown */
} kube_delta_t;

typedef struct kube_delta_fifo_s  kube_delta_fifo_t;

/* The limits are of what waits; seed is secret.  NULL: out of memory. */
kube_delta_fifo_t *kube_delta_fifo_create(const kube_alloc_t *alloc,
    kube_seed_t seed, size_t keys_max, size_t bytes_max)  KUBE_MUST_CHECK;
void kube_delta_fifo_destroy(kube_delta_fifo_t *fifo);

/*
 * Queues an object (kind is REPLACED or UPDATED), or what has no object:
 * DELETED, REFUSED and the marks, whose record is not looked at.  Everything
 * is copied but reason.
 *
 * A key that waits keeps its place, unless a list of its scope, of either
 * kind, began behind it: then the older state leaves first and the key waits
 * twice.  A key that was listed while it waits stays REPLACED as long as it is
 * an object.  An object that is too large for a record leaves as REFUSED.
 *
 * KUBE_OK.  KUBE_NOMEM: out of memory, or a limit is reached; nothing
 * changed.  Marks are not limited, and an empty FIFO accepts an object of any
 * size: a large one would wait for ever.  KUBE_INVALID: scope or the length
 * of ns or name is out of range.
 */
kube_rc_t kube_delta_fifo_object(kube_delta_fifo_t *fifo,
    kube_delta_kind_t kind, unsigned scope, const kube_object_t *object,
    uint64_t read_ms)  KUBE_MUST_CHECK;
kube_rc_t kube_delta_fifo_put(kube_delta_fifo_t *fifo,
    const kube_delta_t *delta)  KUBE_MUST_CHECK;

/*
 * The oldest, without taking it: *delta borrows until the next call that
 * changes the FIFO.  KUBE_OK, or KUBE_AGAIN: the FIFO is empty.
 */
kube_rc_t kube_delta_fifo_peek(kube_delta_fifo_t *fifo, kube_delta_t *delta)
    KUBE_MUST_CHECK;

/* Removes what peek showed, unless a newer state has replaced it since. */
void kube_delta_fifo_drop(kube_delta_fifo_t *fifo);

/*
 * All that wait, oldest first, none of them taken: *at is NULL for the oldest,
 * and then where the walk is, until the FIFO changes.  As of peek; KUBE_AGAIN:
 * that was the last one.
 */
kube_rc_t kube_delta_fifo_next(const kube_delta_fifo_t *fifo, const void **at,
    kube_delta_t *delta)  KUBE_MUST_CHECK;

/* How many wait, marks included; 0 for a scope out of range. */
size_t kube_delta_fifo_depth(const kube_delta_fifo_t *fifo);
size_t kube_delta_fifo_depth_scope(const kube_delta_fifo_t *fifo,
    unsigned scope);

/*
 * Above three quarters of a limit the sockets are paused; below half of both
 * they are resumed.
 */
bool kube_delta_fifo_high(const kube_delta_fifo_t *fifo);
bool kube_delta_fifo_low(const kube_delta_fifo_t *fifo);


#endif /* KUBE_DELTA_FIFO_H */

/*
 * kube_delta_fifo - changes on their way to the indexer, at most one per key.
 *
 * Keys leave in the order in which they came; a key that changes again while
 * it waits keeps its place and its newest state.  This compresses more than
 * client-go's DeltaFIFO, whose consumers see every delta: here the newest
 * state per key is all the zone can show.  Added then Deleted of a key the
 * indexer has never seen still leaves as Deleted (harmless there).
 *
 * SYNC marks travel in order: what was queued before a mark leaves before it.
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
    KUBE_DELTA_REFUSED,        /* skipped object whose key is known */
    KUBE_DELTA_LIST_BEGIN,     /* marks: scope only */
    KUBE_DELTA_SYNC
} kube_delta_kind_t;

typedef struct {
    kube_delta_kind_t     kind;
    unsigned              scope;        /* slot */
    kube_resource_t       resource;
    kube_str_t            ns;           /* key, for all but marks */
    kube_str_t            name;
    kube_str_t            rv;           /* of the object or event; may be "" */
    kube_str_t            reason;       /* REFUSED: static text */
    const kube_record_t  *record;       /* REPLACED, UPDATED */
    uint64_t              read_ms;      /* when its last byte was read */
    int64_t               trigger_ms;   /* slices; unix ms; 0 */
} kube_delta_t;

typedef struct kube_delta_fifo_s  kube_delta_fifo_t;

kube_delta_fifo_t *kube_delta_fifo_create(const kube_alloc_t *alloc,
    kube_seed_t seed, size_t keys_max, size_t bytes_max)  KUBE_MUST_CHECK;
void kube_delta_fifo_destroy(kube_delta_fifo_t *fifo);

/*
 * An object, a key or a mark; everything is copied but reason.  A key that
 * waits keeps its place, unless a list of its scope began behind it: then an
 * older state of the key leaves first.  What was listed stays REPLACED while
 * it is an object.  An object that can have no record leaves as REFUSED.
 *
 * KUBE_OK; KUBE_NOMEM, also where a limit is reached and something is queued
 * (marks are always taken); KUBE_INVALID: scope or the lengths of ns or name
 * are out of range.
 */
kube_rc_t kube_delta_fifo_object(kube_delta_fifo_t *fifo,
    kube_delta_kind_t kind, unsigned scope, const kube_object_t *object,
    uint64_t read_ms)  KUBE_MUST_CHECK;
kube_rc_t kube_delta_fifo_key(kube_delta_fifo_t *fifo,
    kube_delta_kind_t kind, unsigned scope, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, kube_str_t rv, kube_str_t reason,
    uint64_t read_ms)  KUBE_MUST_CHECK;
kube_rc_t kube_delta_fifo_mark(kube_delta_fifo_t *fifo,
    kube_delta_kind_t kind, unsigned scope)  KUBE_MUST_CHECK;

/*
 * The oldest, without taking it: *delta borrows until the next call that
 * changes the fifo.  KUBE_AGAIN: empty.  drop removes what peek showed.
 */
kube_rc_t kube_delta_fifo_peek(kube_delta_fifo_t *fifo, kube_delta_t *delta)
    KUBE_MUST_CHECK;
void kube_delta_fifo_drop(kube_delta_fifo_t *fifo);

/* Forgets what is queued of a scope (a list that began anew). */
void kube_delta_fifo_clear(kube_delta_fifo_t *fifo, unsigned scope);

size_t kube_delta_fifo_depth(const kube_delta_fifo_t *fifo);
size_t kube_delta_fifo_depth_scope(const kube_delta_fifo_t *fifo,
    unsigned scope);

/* Above three quarters of a limit: pause the sockets; below half: resume. */
bool kube_delta_fifo_high(const kube_delta_fifo_t *fifo);
bool kube_delta_fifo_low(const kube_delta_fifo_t *fifo);


#endif /* KUBE_DELTA_FIFO_H */

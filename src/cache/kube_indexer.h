/*
 * kube_indexer - the store behind the informer: objects by namespace/name in
 * the zone, an index from a Service to its slices, digest and count per
 * scope, the refused set, and publication Service by Service.
 *
 * Writer process only.  The zone holds the objects; the indexer holds what a
 * successor can rebuild from them: kube_indexer_load() does, after every
 * take-over.
 *
 * A relist is a diff: an object whose uid and resourceVersion (or whose whole
 * content) are unchanged is not touched.  While a scope of slices is being
 * listed, Services with slices staged by that list wait, so that no reader
 * ever sees one half replaced.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_INDEXER_H
#define KUBE_INDEXER_H


#include "kube_delta_fifo.h"
#include "kube_log.h"
#include "kube_work_queue.h"
#include "kube_zone_stats.h"


typedef struct kube_indexer_s  kube_indexer_t;

typedef enum {
    KUBE_CHANGE_ADD = 0,
    KUBE_CHANGE_UPDATE,
    KUBE_CHANGE_DELETE
} kube_change_t;

/*
 * A change after it was published (DELETE: once no Service names it, just
 * before the record goes); record borrows during the call, which must not
 * call the indexer.
 */
typedef void (*kube_change_pt)(void *ctx, kube_change_t change,
    const kube_record_t *record);

typedef struct {
    kube_zone_t         *zone;            /* borrowed: the writer's; needed */
    kube_zone_writer_t  *writer;          /* borrowed */
    kube_log_sink_t      sink;
    kube_seed_t          seed;
    kube_change_pt       change;          /* NULL: nobody listens */
    void                *change_ctx;
    /* "namespace/name" of Services named in the configuration: they get room
       before all others.  Borrowed for the life of the indexer. */
    const kube_str_t    *static_keys;
    size_t               static_keys_n;
} kube_indexer_conf_t;

kube_indexer_t *kube_indexer_create(const kube_alloc_t *alloc,
    const kube_indexer_conf_t *conf)  KUBE_MUST_CHECK;
void kube_indexer_destroy(kube_indexer_t *indexer);

/*
 * Scopes are told before load: slot, resource, namespace (empty: all).
 * Objects in the zone that no scope covers are dropped at load, once no
 * scope is left to be listed first (sweep); see kube_indexer_sweep().
 */
kube_rc_t kube_indexer_scope(kube_indexer_t *indexer, unsigned slot,
    kube_resource_t resource, kube_str_t ns)  KUBE_MUST_CHECK;

/* Rebuilds everything from the zone.  KUBE_OK or KUBE_NOMEM. */
kube_rc_t kube_indexer_load(kube_indexer_t *indexer, uint64_t now_ms)
    KUBE_MUST_CHECK;

/*
 * Applies one delta.  What finds no room displaces what ranks behind it
 * (static Services first, with their slices; then by namespace and Service
 * name), or becomes refused: counted, logged, named.  An update older than
 * what is held (kube_rv_cmp) is passed over; an item of a list is not.
 * KUBE_OK, KUBE_NOMEM (not applied: the caller keeps the delta and comes
 * again).
 */
kube_rc_t kube_indexer_apply(kube_indexer_t *indexer,
    const kube_delta_t *delta, uint64_t now_ms)  KUBE_MUST_CHECK;

/*
 * Publishes up to max Services that wait.  Returns how many it did; those
 * held back by a list in progress stay queued and do not count.
 */
unsigned kube_indexer_publish(kube_indexer_t *indexer, unsigned max,
    uint64_t now_ms, int64_t now_unix_ms);

/* True where something publishable waits for a Service of the scope. */
bool kube_indexer_pending(const kube_indexer_t *indexer, unsigned slot);

/* Removes objects that no scope covers (after every scope has synced). */
void kube_indexer_sweep(kube_indexer_t *indexer, uint64_t now_ms);

typedef struct {
    uint64_t       count;
    kube_digest_t  digest;
    uint64_t       refused;
    bool           refused_unnamed;   /* some could not even be named: the
                                         version must not move */
} kube_scope_sum_t;

/* Of what is held and published now. */
void kube_indexer_sum(const kube_indexer_t *indexer, unsigned slot,
    kube_scope_sum_t *sum);

/*
 * True once after room has returned for what was refused: relist then.  Not
 * during a list; at first at once, then at intervals of 1, 2, 4 .. 60 s by
 * the clock of apply and publish.
 */
bool kube_indexer_room_returned(kube_indexer_t *indexer, unsigned slot);

/* An object of a state file (record flag set until a list confirms it). */
kube_rc_t kube_indexer_put_state(kube_indexer_t *indexer,
    const kube_record_t *record, uint64_t now_ms)  KUBE_MUST_CHECK;


#endif /* KUBE_INDEXER_H */

/*
 * kube_indexer - the store behind the informer: what is held, by key.
 *
 * client-go's Indexer.  The objects themselves lie in the zone, which also
 * finds them by key; the indexer knows which scope covers an object, whether
 * a delta is newer than what is held, and to which Service an object belongs.
 * A list is a diff: what it did not bring is deleted at its end (mark and
 * sweep), and an object whose uid and resourceVersion are unchanged is not
 * touched.
 *
 * What changed goes to its one listener, on_change, which writes the zone
 * (kube_publisher_on_change): nothing here makes an object readable.
 *
 * For the process that holds the zone's guard; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_INDEXER_H
#define KUBE_INDEXER_H


#include "kube_delta_fifo.h"
#include "kube_item.h"
#include "kube_rv.h"


typedef struct kube_indexer_s  kube_indexer_t;

typedef struct {
    const kube_zone_t         *zone;        /* borrowed: the writer's */
    const kube_zone_writer_t  *writer;      /* borrowed */
    kube_item_pt               on_change;
    void                      *on_change_ctx;
} kube_indexer_conf_t;

/* NULL: out of memory. */
kube_indexer_t *kube_indexer_create(const kube_alloc_t *alloc,
    const kube_indexer_conf_t *conf)  KUBE_MUST_CHECK;
void kube_indexer_destroy(kube_indexer_t *indexer);

/*
 * Sets what a scope covers: a resource in one namespace, or in all if ns is
 * empty.  All scopes are set before load.  KUBE_OK, KUBE_NOMEM, KUBE_INVALID:
 * scope or the length of ns is out of range.
 */
kube_rc_t kube_indexer_scope(kube_indexer_t *indexer, unsigned scope,
    kube_resource_t resource, kube_str_t ns)  KUBE_MUST_CHECK;

/* Rebuilds everything from the zone.  KUBE_OK, or KUBE_NOMEM: it is empty. */
kube_rc_t kube_indexer_load(kube_indexer_t *indexer, uint64_t now_ms)
    KUBE_MUST_CHECK;

/*
 * The newest version of an object that load found in a scope of
 * kube_indexer_scope(); len 0: there was none.  Readers may have seen it,
 * whatever version the scope's record shows.  Borrowed, until the next load.
 */
const kube_rv_t *kube_indexer_newest(const kube_indexer_t *indexer,
    unsigned scope);

/*
 * Applies one delta.  An update older than what is held (kube_rv_cmp) is
 * passed over; an item of a list is not, for a server may have been set back.
 * KUBE_OK, or KUBE_NOMEM: not applied, the caller keeps the delta and comes
 * again.
 */
kube_rc_t kube_indexer_apply(kube_indexer_t *indexer,
    const kube_delta_t *delta, uint64_t now_ms)  KUBE_MUST_CHECK;

/*
 * True at the SYNC of a list if it brought an object as an update that was
 * older than what is held: by a server with another past, such a list is whole
 * but not all of it was taken.  With no list begun: if the last update or
 * deletion was older than what is held, and so not taken.
 */
bool kube_indexer_passed_over(const kube_indexer_t *indexer, unsigned scope);

/*
 * Deletes what no scope covers: objects of a namespace that the configuration
 * no longer names.  Called once every scope has synced, so that a changed
 * scope serves what is there until its own list is complete.
 */
void kube_indexer_sweep(kube_indexer_t *indexer, uint64_t now_ms);

/*
 * Takes an object of a state file if its key is not held; it is flagged
 * KUBE_RECORD_F_STATE_FILE until a list or an event confirms it.  The next list
 * of that scope, which may be of another resource of the same shape, deletes it
 * otherwise.  KUBE_OK, also where it was not taken, or KUBE_NOMEM.
 */
kube_rc_t kube_indexer_put_state(kube_indexer_t *indexer,
    const kube_record_t *record, unsigned scope, uint64_t now_ms)
    KUBE_MUST_CHECK;


#endif /* KUBE_INDEXER_H */

/*
 * kube_publisher - makes what the indexer holds readable, Service by Service,
 * and makes room for it.
 *
 * It takes the indexer's items: stages records in the zone, knows which
 * Services wait for publication, publishes a Service with all its slices by
 * one store, names what cannot be held as refused, and keeps count and digest
 * of what is readable of each scope.
 *
 * A slice that left its Service (deleted, relabelled, refused) stays in the
 * zone until the Service that references it was published without it.  While
 * slices of a scope are being listed, Services whose slices that list changed
 * are held back, so that no reader ever sees one half replaced.
 *
 * A refused update does not end what is held: that stays readable, outdated,
 * until a newer version is taken, it is deleted or made anew (another uid), or
 * max_outdated_ms have passed; then its name is refused.
 *
 * When the zone is full, what ranks last (kube_eviction) is refused first.
 *
 * It decides nothing about what is to be held (the indexer does) and talks to
 * no server.  For the process that holds the zone's guard; one thread.  The
 * zone holds all that a successor needs: KUBE_ITEM_FOUND rebuilds the rest.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PUBLISHER_H
#define KUBE_PUBLISHER_H


#include "kube_item.h"
#include "kube_log.h"
#include "kube_zone_poison.h"


typedef struct kube_publisher_s  kube_publisher_t;

typedef struct {
    kube_zone_t         *zone;            /* borrowed: the writer's */
    kube_zone_writer_t  *writer;          /* borrowed */
    kube_hand_t         *hand;            /* borrowed: each Service that is
                                             published; NULL: none */
    kube_log_sink_t      sink;
    kube_seed_t          seed;
    kube_change_pt       change;          /* NULL: nobody listens */
    void                *change_ctx;
    /* "namespace/name" of Services named in the configuration, which get room
       before all others; borrowed for the life of the publisher. */
    const kube_str_t    *static_keys;
    size_t               static_keys_n;
    unsigned             zone_share;           /* percent of the room that one
                                                  namespace may have; 0: all */
    uint64_t             object_max;           /* larger ones come refused;
                                                  0: not known */
    uint64_t             max_outdated_ms;      /* 0: a refused update ends
                                                  what was held at once */
} kube_publisher_conf_t;

/* NULL: out of memory. */
kube_publisher_t *kube_publisher_create(const kube_alloc_t *alloc,
    const kube_publisher_conf_t *conf)  KUBE_MUST_CHECK;
void kube_publisher_destroy(kube_publisher_t *publisher);

/*
 * A kube_item_pt; ctx is the publisher.  What has no room evicts what ranks
 * behind it, or is refused: counted, logged and named.
 */
kube_rc_t kube_publisher_on_change(void *ctx, kube_item_event_t event,
    kube_item_t *item)  KUBE_MUST_CHECK;

/*
 * Publishes up to max Services that wait, and those that the last of them waits
 * for (kube_service_index_chain()); returns how many it did.  Those held back
 * by a list in progress go on waiting.
 */
unsigned kube_publisher_run(kube_publisher_t *publisher, unsigned max,
    uint64_t now_ms, int64_t now_unix_ms);

/* True if a change of the scope waits for publication. */
bool kube_publisher_pending(const kube_publisher_t *publisher,
    unsigned scope);

typedef struct {
    uint64_t       count;             /* objects that are readable now and not
                                         outdated */
    kube_digest_t  digest;            /* of these */
    uint64_t       refused;           /* names with a reason, and outdated
                                         objects */
    uint64_t       refused_unnamed;   /* at most so many that have not even a
                                         name, since the last list */
    bool           interrupted;       /* one of these was between two Services
                                         as a predecessor ended */
    bool           lacks_room;        /* some of them for want of room, not
                                         of room for their names alone */
} kube_scope_sum_t;

/* All 0 for a scope out of range. */
void kube_publisher_sum(const kube_publisher_t *publisher, unsigned scope,
    kube_scope_sum_t *sum);

/* "services shop/web": the last object without room; "": none here. */
const char *kube_publisher_lacking(const kube_publisher_t *publisher);

/*
 * A take-over, after KUBE_ITEM_LOAD_END: the predecessor has counted so many
 * objects of the scope that have no name.  Where one of these was interrupted
 * between two Services a list is asked for, whatever room there is.
 */
void kube_publisher_found_unnamed(kube_publisher_t *publisher, unsigned scope,
    uint64_t n, bool interrupted);

/*
 * Looks, at most once a second, whether room has returned for what was
 * refused; kube_publisher_run() comes first in a turn.
 */
void kube_publisher_look_for_room(kube_publisher_t *publisher);

/* What is to be listed where room has returned. */
typedef struct {
    bool  urgent;   /* an eighth of all room is free: make haste, once more */
    bool  whole;    /* it takes a list that replaces: what is refused is not
                       known to be all that lacks, nor all that exists */
} kube_room_ask_t;

/*
 * True once after room has returned for something of the scope: a list brings
 * it back.  Not during a list.  The reflector paces the lists.  False: *ask is
 * not set.
 */
bool kube_publisher_room_returned(kube_publisher_t *publisher,
    unsigned scope, kube_room_ask_t *ask);


#endif /* KUBE_PUBLISHER_H */

/*
 * kube_item - one object on its way from the indexer to the readers: what the
 * indexer says about it, and what listeners hear of it afterwards.
 *
 * An item is made where a change arrives: its key is read, hashed and looked
 * up there, once, and travels in it.  It borrows all it points to and lives
 * as long as one call.
 *
 * The indexer fills items; kube_publisher takes them.  It owns nothing, and
 * nothing keeps one.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ITEM_H
#define KUBE_ITEM_H


#include "kube_zone_table.h"


/* The scope of an object that no scope covers. */
#define KUBE_SCOPE_NONE  KUBE_SCOPES_MAX


/* What has happened to an item, or to its scope alone. */
typedef enum {
    KUBE_ITEM_PUT = 0,      /* its record is to be held */
    KUBE_ITEM_DELETED,      /* it is held no more; entry is enough */
    KUBE_ITEM_REFUSED,      /* it cannot be held; reason says why */
    KUBE_ITEM_SEEN,         /* it is held as it is: entry and scope are set */

    KUBE_ITEM_LIST_BEGIN,   /* a list of the scope began */
    KUBE_ITEM_LIST_END,     /* it is complete: what was missing is deleted */

    KUBE_ITEM_REFILL_BEGIN, /* a list of the scope began beside its watch, which
                               goes on: it deletes nothing */
    KUBE_ITEM_REFILL_END,   /* it is complete: what came has all come */
    KUBE_ITEM_REFILL_BROKEN,    /* it ended early: what it was for may lack */

    KUBE_ITEM_LOAD_BEGIN,   /* everything is forgotten */
    KUBE_ITEM_FOUND,        /* the zone holds it since before */
    KUBE_ITEM_LOAD_END      /* everything was found */
} kube_item_event_t;

typedef struct {
    kube_zone_item_t   zone;        /* key, version, record, entry */
    kube_str_t         service;     /* name of the Service it belongs to: its
                                       own, or a slice's label; may be empty */
    kube_str_t         reason;      /* REFUSED: static text */
    uint64_t           uid_hash;    /* REFUSED: kube_uid_hash(), for there is
                                       no record; 0: not known */
    unsigned           scope;       /* or KUBE_SCOPE_NONE */
    bool               optional;    /* PUT: left out, not refused, if the zone
                                       has no room */
    uint64_t           read_ms;     /* when an event was read; KUBE_NEVER:
                                       there is no latency to be measured */
    int64_t            trigger_ms;  /* slices: unix ms; 0: unknown */
    uint64_t           now_ms;
} kube_item_t;

/*
 * Takes one event.  item->zone.entry is set where PUT or REFUSED made one.
 *
 * KUBE_OK.  KUBE_FULL: PUT was not taken; if not optional, the object is
 * refused now.  KUBE_NOMEM, of PUT, REFUSED and FOUND: nothing changed, the
 * caller comes again.
 */
typedef kube_rc_t (*kube_item_pt)(void *ctx, kube_item_event_t event,
    kube_item_t *item);


typedef enum {
    KUBE_CHANGE_ADD = 0,
    KUBE_CHANGE_UPDATE,
    KUBE_CHANGE_DELETE,
    KUBE_CHANGE_REFUSE           /* not held any more; the cluster has it */
} kube_change_t;

/*
 * A change that readers see now; of DELETE and REFUSE, just before the record
 * goes.
 * record borrows during the call, which must not call the publisher.
 */
typedef void (*kube_change_pt)(void *ctx, kube_change_t change,
    const kube_record_t *record);


#endif /* KUBE_ITEM_H */

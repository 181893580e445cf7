/*
 * ngx_kube_feed - subscribers of an informer's events in this process, and
 * what wakes them.
 *
 * The events are in the zone (kube_zone_ring.h), where each subscriber reads
 * them with a cursor of its own; a feed only says that there may be more.
 * The informer process writes to an eventfd(2) that all processes have from
 * before the fork; where there is none, or nginx's event method is not
 * edge-triggered, subscribers are woken by a timer.
 *
 * For worker processes, but for the wake-up, which is the informer's.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_FEED_H
#define NGX_KUBE_FEED_H


#include "ngx_kube.h"


/*
 * The caller's memory.  It sets the event's handler, data and log, may set a
 * cancelable timer on it, and may post it.  The handler also runs when there
 * may be events; and with closing when the worker leaves: it unsubscribes and
 * ends at once what it does, for the worker waits for it.
 */
typedef struct {
    ngx_queue_t             queue;
    ngx_event_t             event;
    ngx_kube_informer_t    *informer;
    unsigned                subscribed:1;
    unsigned                closing:1;
} ngx_kube_subscriber_t;


/* NGX_OK; NGX_DECLINED: the worker leaves; NGX_ERROR: no connection. */
ngx_int_t ngx_kube_subscribe(ngx_kube_subscriber_t *subscriber,
    ngx_kube_informer_t *informer);

/* Its event is neither set nor posted then.  Again: nothing. */
void ngx_kube_unsubscribe(ngx_kube_subscriber_t *subscriber);

/* In the informer process: subscribers everywhere are woken. */
void ngx_kube_feed_wake(ngx_kube_informer_t *informer);


#endif /* NGX_KUBE_FEED_H */

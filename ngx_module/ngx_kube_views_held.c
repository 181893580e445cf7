/*
 * ngx_kube_views_held - which instances a worker holds: those used last within
 * the budget, and none for long without use.
 *
 * It decides nothing about keys, nor when a view is made.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_alias.h"
#include "ngx_kube_views_impl.h"

#include "kube_zone_counters.h"

#include <malloc.h>


/* An instance of a key with variables goes after so long without use, ms. */
#define NGX_KUBE_IDLE          60000

/* Instances looked at to make room for one: no request pays for many. */
#define NGX_KUBE_LOOKS         64

/* So many bytes that went since the last time are given back to the system. */
#define NGX_KUBE_TRIM          (1024 * 1024)


/* Of all directives in this process; lru, bare: of keys with variables. */
typedef struct {
    ngx_queue_t             lru;            /* the first was used last */
    ngx_queue_t             bare;           /* the same, of those without a
                                               view: there may be thousands,
                                               and none of them makes room */
    ngx_queue_t             large;          /* truncated, of all keys */
    ngx_event_t             timer;
    uint64_t                trimmed;        /* bytes gone until then */
    ngx_msec_t              strained;       /* when a costly one went last */
    unsigned                strains:1;      /* within NGX_KUBE_IDLE */
    unsigned                ready:1;
    unsigned                marked:1;       /* large is, or was, not empty */
} ngx_kube_instances_t;


static ngx_queue_t *ngx_kube_instances_of(
    const ngx_kube_instance_t *instance);
static void ngx_kube_instances_timer(ngx_msec_t ms);
static void ngx_kube_instances_mark(ngx_kube_informer_t *informer);
static void ngx_kube_instances_expire(ngx_event_t *ev);
static ngx_msec_t ngx_kube_instances_idle(ngx_queue_t *lru);


static ngx_kube_instances_t  ngx_kube_instances;


void
ngx_kube_views_event(ngx_event_t *ev, ngx_event_handler_pt handler)
{
    static ngx_connection_t  dumb;

    ev->handler = handler;
    ev->cancelable = 1;

    /* at the debug level nginx logs whose a timer is, by descriptor */
    dumb.fd = (ngx_socket_t) -1;
    ev->data = &dumb;
}


void
ngx_kube_instance_hold(ngx_kube_instance_t *instance)
{
    instance->used = ngx_current_msec;

    ngx_queue_init(&instance->queue);
    ngx_queue_init(&instance->large);
    ngx_queue_init(&instance->aliases);

    ngx_kube_instances_timer(NGX_KUBE_IDLE);

    if (!instance->views->ref->is_static) {
        ngx_queue_insert_head(ngx_kube_instances_of(instance),
                              &instance->queue);
    }
}


void
ngx_kube_instance_use(ngx_kube_instance_t *instance)
{
    if (!instance->views->ref->is_static) {
        instance->used = ngx_current_msec;

        ngx_queue_remove(&instance->queue);
        ngx_queue_insert_head(ngx_kube_instances_of(instance),
                              &instance->queue);
    }
}


static ngx_queue_t *
ngx_kube_instances_of(const ngx_kube_instance_t *instance)
{
    return (instance->view != NULL) ? &ngx_kube_instances.lru
                                    : &ngx_kube_instances.bare;
}


static void
ngx_kube_instances_timer(ngx_msec_t ms)
{
    ngx_event_t  *timer;

    timer = &ngx_kube_instances.timer;

    if (!ngx_kube_instances.ready) {
        ngx_queue_init(&ngx_kube_instances.lru);
        ngx_queue_init(&ngx_kube_instances.bare);
        ngx_queue_init(&ngx_kube_instances.large);
        ngx_kube_views_event(timer, ngx_kube_instances_expire);
        ngx_kube_instances.ready = 1;
    }

    if (!timer->timer_set) {
        timer->log = ngx_cycle->log;
        ngx_add_timer(timer, ms);
    }
}


/* The Service has more endpoints than are used, or no longer has. */

void
ngx_kube_instance_mark(ngx_kube_instance_t *instance)
{
    ngx_uint_t  was, is;

    is = instance->view->truncated;
    was = !ngx_queue_empty(&instance->large);

    if (is == was) {
        return;
    }

    if (is) {
        ngx_kube_instances_timer(NGX_KUBE_IDLE);
        ngx_queue_insert_tail(&ngx_kube_instances.large, &instance->large);
        ngx_kube_instances.marked = 1;
        instance->truncated_ms = ngx_kube_now();

    } else {
        ngx_queue_remove(&instance->large);
        ngx_queue_init(&instance->large);
    }

    ngx_kube_instances_mark(instance->views->ref->informer);
}


/* A Service that several directives use counts once, if it is named. */

static void
ngx_kube_instances_mark(ngx_kube_informer_t *informer)
{
    size_t                i, shown;
    ngx_queue_t          *q;
    kube_truncated_t      truncated;
    ngx_kube_instance_t  *instance;

    ngx_memzero(&truncated, sizeof(kube_truncated_t));
    shown = 0;

    for (q = ngx_queue_head(&ngx_kube_instances.large);
         q != ngx_queue_sentinel(&ngx_kube_instances.large);
         q = ngx_queue_next(q))
    {
        instance = ngx_queue_data(q, ngx_kube_instance_t, large);

        if (instance->views->ref->informer != informer) {
            continue;
        }

        for (i = 0; i < shown; i++) {
            if (truncated.rows[i].entry == instance->view->entry) {
                break;
            }
        }

        if (i < shown) {
            continue;
        }

        truncated.n++;

        if (shown < KUBE_TRUNCATED_SHOWN_MAX) {
            truncated.rows[shown].entry = instance->view->entry;
            truncated.rows[shown].since_ms = instance->truncated_ms;
            shown++;
        }
    }

    kube_zone_worker_truncated(&informer->zone, (unsigned) ngx_worker,
                               ngx_kube_now(), &truncated);
}


void
ngx_kube_instance_abandon(ngx_kube_instance_t *instance)
{
    ngx_kube_job_t     *job;
    ngx_kube_waiter_t  *waiter;

    job = instance->job;
    instance->job = NULL;

    while (!ngx_queue_empty(&job->waiters)) {
        waiter = ngx_queue_data(ngx_queue_head(&job->waiters),
                                ngx_kube_waiter_t, queue);

        ngx_kube_waiter_leave(waiter);
        ngx_post_event(&waiter->event, &ngx_posted_events);
    }

    ngx_queue_remove(&job->queue);
    ngx_kube_view_end(&job->reading);
    ngx_free(job);
}


void
ngx_kube_waiter_leave(ngx_kube_waiter_t *waiter)
{
    if (waiter->event.posted) {
        ngx_delete_posted_event(&waiter->event);
    }

    ngx_queue_remove(&waiter->queue);
    ngx_queue_init(&waiter->queue);
}


ngx_uint_t
ngx_kube_views_strained(void)
{
    if (ngx_kube_instances.strains
        && ngx_current_msec - ngx_kube_instances.strained >= NGX_KUBE_IDLE)
    {
        ngx_kube_instances.strains = 0;
    }

    return ngx_kube_instances.strains;
}


void
ngx_kube_instance_drop(ngx_kube_instance_t *instance)
{
    ngx_kube_views_t  *views;

    views = instance->views;

    if (views->fixed == instance) {
        views->fixed = NULL;
        views->view = NULL;
    }

    if (instance->job != NULL) {
        ngx_kube_instance_abandon(instance);
    }

    ngx_kube_aliases_remove(&instance->aliases);
    ngx_rbtree_delete(&views->tree, &instance->sn.node);
    ngx_queue_remove(&instance->queue);
    ngx_queue_remove(&instance->large);

    if (instance->view != NULL) {
        ngx_kube_view_release(instance->view);
    }

    ngx_free(instance);
}


ngx_uint_t
ngx_kube_instances_fit(ngx_kube_views_t *views, ngx_kube_instance_t *keep)
{
    ngx_uint_t            n;
    ngx_queue_t          *q, *prev;
    ngx_kube_instance_t  *instance;

    if (ngx_kube_view_bytes() <= *views->budget) {
        return 1;
    }

    kube_zone_worker_over_budget(&views->ref->informer->zone,
                                 (unsigned) ngx_worker, ngx_kube_now());

    if (!ngx_kube_instances.ready) {
        return 0;
    }

    q = ngx_queue_last(&ngx_kube_instances.lru);

    for (n = 0; n < NGX_KUBE_LOOKS; n++) {

        if (q == ngx_queue_sentinel(&ngx_kube_instances.lru)) {
            break;
        }

        prev = ngx_queue_prev(q);
        instance = ngx_queue_data(q, ngx_kube_instance_t, queue);

        if (instance->view->refs != 1) {

            /* requests use it: they are not to hide what others do not */

            ngx_kube_instance_use(instance);

        } else if (instance != keep) {

            if (instance->costly) {
                ngx_kube_instances.strained = ngx_current_msec;
                ngx_kube_instances.strains = 1;
            }

            ngx_kube_instance_drop(instance);

            if (ngx_kube_view_bytes() <= *views->budget) {
                return 1;
            }
        }

        q = prev;
    }

    return 0;
}


static void
ngx_kube_instances_expire(ngx_event_t *ev)
{
    uint64_t               gone;
    ngx_uint_t             i;
    ngx_msec_t             next, bare;
    ngx_kube_conf_t       *kcf;
    ngx_kube_informer_t  **informers;

    next = ngx_kube_instances_idle(&ngx_kube_instances.lru);
    bare = ngx_kube_instances_idle(&ngx_kube_instances.bare);
    next = ngx_min(next, bare);

    if (ngx_kube_instances.marked) {
        ngx_kube_instances.marked = !ngx_queue_empty(&ngx_kube_instances.large);
        kcf = ngx_kube_get_conf(ngx_cycle);
        informers = kcf->informers.elts;

        for (i = 0; i < kcf->informers.nelts; i++) {
            ngx_kube_instances_mark(informers[i]);
        }
    }

    /* most of it by requests, one at a time */

    gone = ngx_kube_view_bytes_gone();

    if (gone - ngx_kube_instances.trimmed >= NGX_KUBE_TRIM) {
        ngx_kube_instances.trimmed = gone;
        (void) malloc_trim(0);
    }

    if (ngx_kube_view_bytes() != 0) {
        ngx_kube_instances_timer(next);
    }
}


/* Drops those that were not used for long.  In how many ms the next one is. */

static ngx_msec_t
ngx_kube_instances_idle(ngx_queue_t *lru)
{
    ngx_msec_t            idle;
    ngx_queue_t          *q;
    ngx_kube_instance_t  *instance;

    while (!ngx_queue_empty(lru)) {

        q = ngx_queue_last(lru);
        instance = ngx_queue_data(q, ngx_kube_instance_t, queue);
        idle = ngx_current_msec - instance->used;

        if (idle < NGX_KUBE_IDLE) {
            return NGX_KUBE_IDLE - idle;
        }

        ngx_kube_instance_drop(instance);
    }

    return NGX_KUBE_IDLE;
}

/*
 * ngx_kube_views_impl - an instance, and what files of ngx_kube_views share:
 * ngx_kube_views.c (keys) uses ngx_kube_views_build.c (when and how an
 * instance's view is made), and both use ngx_kube_views_held.c (which instances
 * a worker holds).  For these alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_VIEWS_IMPL_H
#define NGX_KUBE_VIEWS_IMPL_H


#include "ngx_kube_views.h"


/* A view of a large Service while it is made. */
typedef struct {
    ngx_kube_reading_t      reading;
    ngx_kube_instance_t    *instance;
    ngx_queue_t             queue;          /* between two steps */
    ngx_queue_t             waiters;
    uint64_t                cost;           /* us of the processor so far */
    unsigned                whole:1;        /* in one piece */
} ngx_kube_job_t;

struct ngx_kube_instance_s {
    ngx_str_node_t          sn;             /* str: the key's text */
    ngx_queue_t             queue;          /* of a key with variables */
    ngx_queue_t             large;          /* of a truncated view */
    ngx_queue_t             aliases;        /* spellings that lead here */
    ngx_kube_views_t       *views;
    ngx_kube_view_t        *view;           /* NULL: none could be built */
    ngx_msec_t              used;
    ngx_kube_job_t         *job;            /* NULL: nothing is being made */
    ngx_msec_t              next;           /* no build before, if waits */
    unsigned                waits:1;
    unsigned                costly:1;       /* the last build was no small
                                               one */
    uint64_t                truncated_ms;   /* since when; if large is in use */

    kube_key_t              key;            /* views asked; in the text, which
                                               follows the instance */
};


/* ngx_kube_views_build.c */

/*
 * The instance's newest view.  NULL: none could be built, *error tells why, or
 * the waiter is in the queue of those that are woken; waiter NULL: it can not
 * wait.
 */
ngx_kube_view_t *ngx_kube_instance_serve(ngx_kube_instance_t *instance,
    ngx_kube_waiter_t *waiter, kube_resolve_error_t *error);

/* Counts a static key's endpoints by a look of its own, without a view. */
void ngx_kube_views_look(ngx_kube_views_t *views, ngx_kube_counted_t *counted);


/* ngx_kube_views_held.c */

/* An event of no connection, whose timer keeps no worker that leaves. */
void ngx_kube_views_event(ngx_event_t *ev, ngx_event_handler_pt handler);

/* A new instance, whose views and text are set. */
void ngx_kube_instance_hold(ngx_kube_instance_t *instance);

/* It is asked for. */
void ngx_kube_instance_use(ngx_kube_instance_t *instance);

/* Its view is another one: which Services have too many endpoints is told. */
void ngx_kube_instance_mark(ngx_kube_instance_t *instance);

/* Ends what is being made, and wakes who waits for it. */
void ngx_kube_instance_abandon(ngx_kube_instance_t *instance);

/* Ends an instance; requests keep the views they hold. */
void ngx_kube_instance_drop(ngx_kube_instance_t *instance);

/*
 * Drops what was not used for longest until all views fit into the budget.
 * What requests hold would only be built once more.  0: they do not fit.
 */
ngx_uint_t ngx_kube_instances_fit(ngx_kube_views_t *views,
    ngx_kube_instance_t *keep);


#endif /* NGX_KUBE_VIEWS_IMPL_H */

/*
 * ngx_kube_views - the newest view of each key that was asked for, per
 * directive and worker.
 *
 * An instance is one identity (namespace, name, port name of the Service) of
 * one directive: its newest view, and when the next one may be built.  However
 * clients spell a Service, all spellings lead to one instance.  When the
 * Service has changed the next request gets the successor, at once where that
 * costs little; a large Service is built anew only as often as its cost allows,
 * and the last view serves in between.
 *
 * All views of a worker together have a budget of bytes: above it the instance
 * used least recently goes, and no view is built whose predecessor could not
 * go.  Instances of keys with variables go after 60 s without use.
 *
 * An instance that has no view yet gets its first one in one piece, for there
 * is nothing to serve meanwhile.  Where the budget makes large Services go,
 * clients that ask for one after the other would keep the worker busy with
 * that: it is strained then, and such a view is made in pieces, between other
 * events.  Who can wait is woken when it is made; for others the next one in
 * one piece is made after 20 times what the last one took, and until then they
 * get none.
 *
 * Workers only.  Not http's: any module that has refs may use it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_VIEWS_H
#define NGX_KUBE_VIEWS_H


#include "ngx_kube_view.h"


/*
 * kube_instances size=, and the least it may be: what one Service at its
 * ceiling takes.  The default holds some 3000 Services of ten endpoints.
 */
#define NGX_KUBE_INSTANCES_SIZE      (32 * 1024 * 1024)
#define NGX_KUBE_INSTANCES_SIZE_MIN  (1024 * 1024)


typedef struct ngx_kube_views_s     ngx_kube_views_t;
typedef struct ngx_kube_instance_s  ngx_kube_instance_t;

/* Who waits for the first view of an instance. */
typedef struct {
    ngx_queue_t             queue;          /* of those that wait for it */
    ngx_event_t             event;          /* posted once it is made or given
                                               up; handler, data and log are
                                               the owner's */
    unsigned                now:1;          /* cannot wait, nor do without */
} ngx_kube_waiter_t;

/* How many endpoints a key had when it was looked at. */
typedef struct {
    ngx_uint_t              n;
    uint32_t                entry;          /* 0: nothing to compare with */
    uint64_t                head;
    ngx_msec_t              next;           /* no look before, if waits */
    unsigned                waits:1;
} ngx_kube_counted_t;

/* The views of one directive in one worker. */
struct ngx_kube_views_s {
    ngx_kube_ref_t         *ref;

    /*
     * Makes something of a view before any request sees it, in the view's
     * pool; old is its predecessor or NULL.  NGX_ERROR: the predecessor stays.
     * A clean-up of the pool undoes it.  Not called for a view that has the
     * addresses of its predecessor: what was made of that is shared.  NULL:
     * nothing is made of views.
     */
    ngx_int_t             (*made)(ngx_kube_views_t *views,
                                  ngx_kube_view_t *view,
                                  ngx_kube_view_t *old);
    void                   *data;           /* for made() */

    const size_t           *budget;         /* bytes, of the worker's views */
    ngx_msec_t              pause;          /* at least, between two builds of
                                               what is not small */
    unsigned                keep_missing:1; /* keep a view of no Service */

    ngx_kube_view_t        *view;           /* of a static key; else NULL */
    ngx_kube_instance_t    *fixed;          /* the same */
    ngx_kube_view_t        *missing;        /* of keys that lead nowhere */
    ngx_kube_counted_t      counted;        /* of a static key without view */
    ngx_rbtree_t            tree;           /* by identity */
    ngx_rbtree_node_t       sentinel;
    ngx_rbtree_t            aliases;        /* by what clients write */
    ngx_rbtree_node_t       aliases_sentinel;
};


/* pool: of the configuration; all views go with it.  NGX_ERROR: no memory. */
ngx_int_t ngx_kube_views_init(ngx_pool_t *pool, ngx_kube_views_t *views,
    ngx_kube_ref_t *ref);

/*
 * The newest view of a text that a request evaluated a key with variables to.
 * Borrowed: count a reference to keep it.  NULL, or a view without a name: no
 * Service, or none may be made now; *error tells why, and *key is the key as
 * parsed (into text) unless that is NO_KEY or BAD_KEY.  Else *error is the
 * view's, and *key is not set.
 */
ngx_kube_view_t *ngx_kube_views_find(ngx_kube_views_t *views,
    ngx_str_t *text, kube_key_t *key, kube_resolve_error_t *error);

/* The same for a key that was parsed, or is a view's; or the static key. */
ngx_kube_view_t *ngx_kube_views_by_key(ngx_kube_views_t *views,
    const kube_key_t *key, kube_resolve_error_t *error);

/* The same for a request that has begun with a view, and met a failure. */
ngx_kube_view_t *ngx_kube_views_again(ngx_kube_views_t *views,
    ngx_str_t *text, kube_key_t *key, kube_resolve_error_t *error);

/*
 * Whether large Services went for want of room in the last minute.  Asked by
 * each request where a key has variables.
 */
ngx_uint_t ngx_kube_views_strained(void);

/*
 * 1: the view of that text is being made in pieces, and waiter is woken once,
 * unless it leaves before; 0: there is nothing to wait for.
 */
ngx_uint_t ngx_kube_views_await(ngx_kube_views_t *views, ngx_str_t *text,
    ngx_kube_waiter_t *waiter);

/* Woken or not: it will not be woken any more. */
void ngx_kube_waiter_leave(ngx_kube_waiter_t *waiter);

/*
 * How many endpoints a static key has, for metrics: of its view, which is
 * brought up to date as for a request.  Where no request came yet, of a look
 * whose result stays until the Service changes; a large one is looked at again
 * only as often as its cost allows.
 */
ngx_uint_t ngx_kube_views_count(ngx_kube_views_t *views);

/*
 * us that this worker has worked: of the processor, not of the clock, so that
 * others' load puts nothing off.
 */
uint64_t ngx_kube_worked_us(void);


/*
 * As ngx_kube_views_by_key(); in steady state one atomic load is all that a
 * static key costs.
 */
static ngx_inline ngx_kube_view_t *
ngx_kube_views_get(ngx_kube_views_t *views, const kube_key_t *key,
    kube_resolve_error_t *error)
{
    ngx_kube_view_t  *view;

    view = views->view;

    if (view != NULL && ngx_kube_view_is_newest(view)) {
        *error = view->error;
        return view;
    }

    return ngx_kube_views_by_key(views, key, error);
}


#endif /* NGX_KUBE_VIEWS_H */

/*
 * ngx_kube_view - what keys resolve to: per directive and worker, the newest
 * view of each key that was asked for.
 *
 * A view is what one key resolves to at one revision of its Service.  It never
 * changes, but for its count of references and the head of a record that was
 * only moved in the zone.  A request that holds a view keeps it alive; when
 * the Service has changed, the next request gets the successor.  What a view
 * is made into (peers behind a balancer) hangs on it and is not known here.
 *
 * Workers only; nothing here is shared between processes.  Not http's: any
 * module that has refs may use it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_VIEW_H
#define NGX_KUBE_VIEW_H


#include "ngx_kube_refs.h"


typedef struct ngx_kube_view_s   ngx_kube_view_t;
typedef struct ngx_kube_views_s  ngx_kube_views_t;


typedef struct {
    kube_addr_t             addr;
    in_port_t               port;           /* host order */
    kube_endpoint_state_t   state;
    ngx_str_t               pod;
    ngx_str_t               node;
    ngx_str_t               zone;
} ngx_kube_endpoint_t;

struct ngx_kube_view_s {
    ngx_rbtree_node_t       node;           /* key: hash of asked */
    ngx_queue_t             queue;
    ngx_pool_t             *pool;           /* the view's own, for data too */
    ngx_uint_t              refs;
    ngx_msec_t              used;
    ngx_msec_t              retry;          /* no rebuild before; 0: any time */

    ngx_str_t               asked;          /* the key's canonical text */
    kube_key_t              key;            /* views asked */
    ngx_str_t               name;           /* of what it resolved to:
                                               $kube_service */
    kube_resolve_error_t    error;          /* why n is 0 */
    unsigned                from_state_file:1;

    uint32_t                entry;          /* 0: nothing to compare with */
    uint64_t                head;
    uint64_t                revision;       /* $kube_generation */

    ngx_kube_endpoint_t    *endpoints;
    ngx_uint_t              n;

    void                   *data;           /* what made() made of it */
};

/* The views of one directive in one worker. */
struct ngx_kube_views_s {
    ngx_kube_ref_t         *ref;

    /*
     * Makes something of a view before any request sees it, in the view's
     * pool; old is its predecessor or NULL.  NGX_ERROR: the predecessor stays.
     * A clean-up of the pool undoes it.  NULL: nothing is made of views.
     */
    ngx_int_t             (*made)(ngx_kube_views_t *views,
                                  ngx_kube_view_t *view,
                                  ngx_kube_view_t *old);
    void                   *data;           /* for made() */
    unsigned                keep_missing:1; /* keep views of no Service */

    ngx_kube_view_t        *view;           /* of a static key; else NULL */
    ngx_rbtree_t            tree;           /* of keys with variables */
    ngx_rbtree_node_t       sentinel;
    ngx_queue_t             lru;
    ngx_uint_t              n;
};


void ngx_kube_views_init(ngx_kube_views_t *views, ngx_kube_ref_t *ref);

/*
 * The newest view of a key that kube_resolver_key() let pass; for a static key
 * the ref's.  Borrowed: count a reference to keep it.  NULL: *error tells why
 * there is none; else *error is the view's.
 */
ngx_kube_view_t *ngx_kube_views_find(ngx_kube_views_t *views,
    const kube_key_t *key, kube_resolve_error_t *error);


/* The same; in steady state one atomic load is all that a static key costs. */
static ngx_inline ngx_kube_view_t *
ngx_kube_views_get(ngx_kube_views_t *views, const kube_key_t *key,
    kube_resolve_error_t *error)
{
    ngx_kube_view_t  *view;

    view = views->view;

    if (view != NULL
        && view->entry != 0
        && kube_zone_head(&views->ref->informer->zone, view->entry)
           == view->head)
    {
        *error = view->error;
        return view;
    }

    return ngx_kube_views_find(views, key, error);
}


void ngx_kube_view_release(ngx_kube_view_t *view);

/* NGX_DECLINED: neither IPv4 nor IPv6. */
ngx_int_t ngx_kube_endpoint_sockaddr(const ngx_kube_endpoint_t *endpoint,
    ngx_sockaddr_t *sockaddr, socklen_t *socklen);


/* Counts for the metrics: KUBE_WORKER_RESOLVED(), KUBE_WORKER_REBUILDS. */
void ngx_kube_count(ngx_kube_informer_t *informer, ngx_uint_t counter);

/*
 * Writes why a key could not be resolved: which directive, key, object and
 * choice; at most once in 10 s for each directive and reason.  text is the key
 * as it was evaluated.
 */
void ngx_kube_unresolved(ngx_kube_ref_t *ref, ngx_log_t *log,
    kube_resolve_error_t error, ngx_str_t *text);


#endif /* NGX_KUBE_VIEW_H */

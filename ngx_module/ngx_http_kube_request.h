/*
 * ngx_http_kube_request - what a request remembers of its resolutions: one of
 * the balancer at work, one for each kube_resolve line it used.
 *
 * They are apart because each may be made while another is: a key of
 * kube_service may use a variable of kube_resolve.  A subrequest has its own.
 * It resolves and chooses nothing.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_REQUEST_H
#define NGX_HTTP_KUBE_REQUEST_H


#include "ngx_http_kube_key.h"
#include "ngx_http_kube_peers.h"


/* The hooks of a peer connection that ours stand before. */
typedef struct {
    void                           *data;
    ngx_event_get_peer_pt           get;
    ngx_event_free_peer_pt          free;
    ngx_event_notify_peer_pt        notify;
#ifdef angie_version
    ngx_event_connect_peer_pt       connect;
    ngx_event_close_peer_pt         close;
#endif
} ngx_http_kube_hooks_t;

/* Around the stock balancer while the request is proxied. */
typedef struct {
    ngx_http_kube_pick_t            pick;        /* first: see the request */

    /* of the server in use, and of attempts */
    ngx_http_kube_row_t            *row;         /* NULL: none */
    ngx_array_t                    *tried;       /* ngx_sockaddr_t */
    uint32_t                        attempts;
    uint32_t                        limit;       /* of these; 0: not set yet */
    uint32_t                        begun;       /* so often over newer peers;
                                                    set with limit */
    u_char                          single;      /* the peers were one */
    u_char                          failed;      /* look again first */
    u_char                          rejected;    /* given back unused */
    ngx_uint_t                      number;      /* in the peers' listing; of
                                                    plain methods unused */
    ngx_uint_t                      rejections;  /* so many more */

    ngx_http_kube_row_t            *pinned;      /* of the last one */
    void                          **location;    /* r->loc_conf, then */

    ngx_http_kube_hooks_t           chain;       /* outermost; unused where the
                                                    method is plain */
    ngx_http_kube_hooks_t           method;      /* innermost */

    ngx_http_kube_peers_t          *peers;       /* as long as pick.view is */
    ngx_uint_t                      serial;      /* of the peers, for ever */
} ngx_http_kube_balancing_t;

/* Of one kube_resolve line. */
typedef struct ngx_http_kube_resolution_s  ngx_http_kube_resolution_t;

struct ngx_http_kube_resolution_s {
    ngx_http_kube_resolution_t     *next;
    ngx_http_kube_resolve_t        *resolve;
    ngx_http_kube_pick_t            pick;
    ngx_str_t                       value;       /* "address:port", or empty */
};

/* Of ngx_http_kube_pending.c. */
typedef struct ngx_http_kube_pending_s  ngx_http_kube_pending_t;

typedef struct {
    ngx_http_request_t             *request;     /* the first */
    ngx_http_kube_pick_t           *shown;       /* by the variables */
    ngx_http_kube_pending_t        *pending;     /* NULL: it never was */
    ngx_http_kube_resolution_t     *resolutions;
    ngx_http_kube_balancing_t       balancing;
} ngx_http_kube_request_t;


/*
 * The data of the request's clean-up with that handler; NULL: it has none.  The
 * data begins with the request, for its subrequests have the same pool.
 */
static ngx_inline void *
ngx_http_kube_remembered(ngx_http_request_t *r, ngx_pool_cleanup_pt handler)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln != NULL; cln = cln->next) {
        if (cln->handler == handler
            && *(ngx_http_request_t **) cln->data == r)
        {
            return cln->data;
        }
    }

    return NULL;
}


/* The same where the module's context has none.  For this file. */
ngx_http_kube_request_t *ngx_http_kube_request_find(ngx_http_request_t *r,
    ngx_uint_t create);


/*
 * The request's own, made when create is set; NULL: none, or no memory.  It
 * survives internal redirects, which clear module contexts: a clean-up of the
 * request's pool holds it, and gives all views back.
 */
static ngx_inline ngx_http_kube_request_t *
ngx_http_kube_request(ngx_http_request_t *r, ngx_uint_t create)
{
    ngx_http_kube_request_t  *kr;

    kr = ngx_http_get_module_ctx(r, ngx_http_kube_module);

    return (kr != NULL) ? kr : ngx_http_kube_request_find(r, create);
}


/* Of the upstream that a balancer's pick is of. */
static ngx_inline ngx_http_kube_srv_conf_t *
ngx_http_kube_pick_conf(ngx_http_kube_pick_t *pick)
{
    return pick->of->views.data;
}


/* Of the upstream that the request is balanced over. */
static ngx_inline ngx_http_kube_srv_conf_t *
ngx_http_kube_conf_of(ngx_http_kube_request_t *kr)
{
    return ngx_http_kube_pick_conf(&kr->balancing.pick);
}


static ngx_inline void
ngx_http_kube_hooks_save(ngx_http_kube_hooks_t *hooks,
    ngx_peer_connection_t *pc)
{
    hooks->data = pc->data;
    hooks->get = pc->get;
    hooks->free = pc->free;
    hooks->notify = pc->notify;

#ifdef angie_version
    hooks->connect = pc->connect;
    hooks->close = pc->close;
#endif
}


/* A stock init_peer uses peer.data that is there: it would be ours. */
static ngx_inline void
ngx_http_kube_hooks_clear(ngx_peer_connection_t *pc)
{
    pc->data = NULL;
    pc->notify = NULL;

#ifdef angie_version
    pc->notify_mask = 0;
    pc->connect = NULL;
    pc->close = NULL;
#endif
}


/* Balancing is over the peers of the pick's view from now on. */
static ngx_inline void
ngx_http_kube_peers_of_view(ngx_http_kube_balancing_t *b)
{
    b->peers = b->pick.view->data;
    b->serial = b->peers->serial;
}


#endif /* NGX_HTTP_KUBE_REQUEST_H */

/*
 * ngx_http_kube_request - what a request remembers of its resolutions: one of
 * the balancer at work, one for each kube_resolve line it used.
 *
 * They are apart because each may be made while another is: a key of
 * kube_service may use a variable of kube_resolve.  A subrequest has its own.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_REQUEST_H
#define NGX_HTTP_KUBE_REQUEST_H


#include "ngx_http_kube_key.h"


/* Around the stock balancer while the request is proxied. */
typedef struct {
    ngx_http_kube_pick_t            pick;
    void                          **location;    /* r->loc_conf, then */

    void                           *data;        /* the balancer's */
    ngx_event_get_peer_pt           get;
    ngx_event_free_peer_pt          free;
    ngx_event_notify_peer_pt        notify;
#ifdef angie_version
    ngx_event_connect_peer_pt       connect;
    ngx_event_close_peer_pt         close;
#endif
#if (NGX_HTTP_SSL)
    ngx_event_set_peer_session_pt   set_session;
    ngx_event_save_peer_session_pt  save_session;
#endif

    ngx_array_t                    *tried;       /* ngx_sockaddr_t */
    ngx_uint_t                      attempts;
    unsigned                        failed:1;    /* look again first */
    unsigned                        switched:1;  /* not the first view */
} ngx_http_kube_balancing_t;

/* Of one kube_resolve line. */
typedef struct ngx_http_kube_resolution_s  ngx_http_kube_resolution_t;

struct ngx_http_kube_resolution_s {
    ngx_http_kube_resolution_t     *next;
    ngx_http_kube_resolve_t        *resolve;
    ngx_http_kube_pick_t            pick;
    ngx_str_t                       value;       /* "address:port", or empty */
};

typedef struct {
    ngx_http_request_t             *request;
    ngx_http_kube_pick_t           *shown;       /* by the variables */
    ngx_http_kube_balancing_t       balancing;
    ngx_http_kube_resolution_t     *resolutions;
} ngx_http_kube_request_t;


/*
 * The request's own, made when create is set; NULL: none, or no memory.  It
 * survives internal redirects, which clear module contexts: a clean-up of the
 * request's pool holds it, and gives all views back.
 */
ngx_http_kube_request_t *ngx_http_kube_request(ngx_http_request_t *r,
    ngx_uint_t create);


#endif /* NGX_HTTP_KUBE_REQUEST_H */

/*
 * ngx_http_kube_peers - the peers of a view, behind the stock balancer named in
 * the upstream block.
 *
 * The upstream's own init_upstream builds them from the view's endpoints into
 * the view's pool, exactly as it would from server lines.  They live and end
 * with the view.  Workers only, but for ngx_http_kube_peers_parts() and
 * ngx_http_kube_peers_down(), which are called at configuration time, too.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_PEERS_H
#define NGX_HTTP_KUBE_PEERS_H


#include "ngx_http_kube.h"
#include "ngx_http_kube_rows.h"
#include "ngx_kube_views.h"


/* A view's data; NULL where there is no endpoint and no static server. */
typedef struct {
    ngx_uint_t                    n;          /* the view's endpoints */
    ngx_uint_t                    serial;     /* of all peers ever made */
    unsigned                      single:1;   /* as the balancer has it */
    ngx_http_kube_listing_t       listing;    /* endpoints, static servers,
                                                 backups */
    ngx_http_upstream_srv_conf_t  us;         /* what the balancer sees */
} ngx_http_kube_peers_t;


/* made() of an upstream's views; their data is its ngx_http_kube_srv_conf_t. */
ngx_int_t ngx_http_kube_peers_made(ngx_kube_views_t *views,
    ngx_kube_view_t *view, ngx_kube_view_t *old);

/*
 * Gives a copy of an upstream its own parts of other modules' configuration:
 * clones in pool where peers keep them, else in scratch.  For peers, and for
 * the trial of a method at configuration time.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_kube_peers_parts(ngx_http_kube_balancer_t *balancer,
    ngx_http_upstream_srv_conf_t *us, ngx_pool_t *pool, ngx_pool_t *scratch);

/*
 * A server that is down: nginx refuses an upstream without any, and the
 * configuration's placeholder and a view of backups alone need one.  NULL: no
 * memory.
 */
ngx_http_upstream_server_t *ngx_http_kube_peers_down(ngx_pool_t *pool,
    ngx_array_t *servers, ngx_str_t *name);


/* The view's endpoint of that number in the listing; NULL: a static server. */
static ngx_inline ngx_kube_endpoint_t *
ngx_http_kube_peers_endpoint(ngx_http_kube_peers_t *peers,
    ngx_kube_view_t *view, ngx_uint_t number)
{
    return (number < peers->n) ? &view->endpoints[number] : NULL;
}


#endif /* NGX_HTTP_KUBE_PEERS_H */

/*
 * ngx_http_kube_peers - the peers of a view, behind the stock balancer named in
 * the upstream block.
 *
 * The upstream's own init_upstream builds them from the view's endpoints into
 * the view's pool, exactly as it would from server lines.  They live and end
 * with the view.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_PEERS_H
#define NGX_HTTP_KUBE_PEERS_H


#include "ngx_kube_views.h"

#include <ngx_http.h>


/* A view's data; NULL where there is no endpoint and no static server. */
typedef struct {
    ngx_sockaddr_t               *addrs;      /* of the view's endpoints */
    ngx_http_upstream_srv_conf_t  us;         /* what the balancer sees */
} ngx_http_kube_peers_t;


/* made() of an upstream's views; their data is its ngx_http_kube_srv_conf_t. */
ngx_int_t ngx_http_kube_peers_made(ngx_kube_views_t *views,
    ngx_kube_view_t *view, ngx_kube_view_t *old);

/* The endpoint behind an address that a balancer picked; NULL: static. */
ngx_kube_endpoint_t *ngx_http_kube_peers_endpoint(ngx_kube_view_t *view,
    struct sockaddr *sockaddr);

/*
 * A server that is down: nginx refuses an upstream without any, and the
 * configuration's placeholder and a view of backups alone need one.  NULL: no
 * memory.
 */
ngx_http_upstream_server_t *ngx_http_kube_peers_down(ngx_pool_t *pool,
    ngx_array_t *servers, ngx_str_t *name);


/* Of an address made from an endpoint: IPv4 or IPv6. */
static ngx_inline socklen_t
ngx_http_kube_socklen(const struct sockaddr *sockaddr)
{
    return sockaddr->sa_family == AF_INET
           ? (socklen_t) sizeof(struct sockaddr_in)
           : (socklen_t) sizeof(struct sockaddr_in6);
}


#endif /* NGX_HTTP_KUBE_PEERS_H */

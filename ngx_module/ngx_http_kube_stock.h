/*
 * ngx_http_kube_stock - hooks directly around the stock balancing method of an
 * upstream with kube_service, beneath all that wraps it ("keepalive").
 *
 * Here the rows of servers are brought to the peers and what a request uses of
 * them is copied, so that no wrapper ever sees memory that ends with a revision
 * of a Service.  It picks nothing itself.  Called by ngx_http_kube_balancer.c
 * and by the hooks around a balancer.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_STOCK_H
#define NGX_HTTP_KUBE_STOCK_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * init_upstream of the innermost method, in the place of balancer.method, which
 * it calls.  Peers are made in cf->temp_pool: wrappers get cf->pool.
 */
ngx_int_t ngx_http_kube_stock_init(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);

/*
 * The hooks of TLS sessions, for a connection with data of the request's
 * ngx_http_kube_request_t.
 */
void ngx_http_kube_stock_sessions(ngx_peer_connection_t *pc);


#endif /* NGX_HTTP_KUBE_STOCK_H */

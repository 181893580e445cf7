/*
 * ngx_http_kube_upstream - what stands around the stock balancer of an
 * upstream with kube_service while a request is proxied.
 *
 * Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_UPSTREAM_H
#define NGX_HTTP_KUBE_UPSTREAM_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* peer.init of an upstream with kube_service: of a static key, of others. */
ngx_int_t ngx_http_kube_init_peer_static(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
ngx_int_t ngx_http_kube_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);


#endif /* NGX_HTTP_KUBE_UPSTREAM_H */

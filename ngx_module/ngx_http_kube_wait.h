/*
 * ngx_http_kube_wait - unsynced_wait: requests that come before the first list
 * of what their upstream needs wait for it, a bounded time.
 *
 * Only upstreams with kube_service wait, kube_resolve never does.  Workers
 * only, but for what is for postconfiguration.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_WAIT_H
#define NGX_HTTP_KUBE_WAIT_H


#include "ngx_http_kube.h"


/* What unsynced_wait= is unless given, in ms. */
#define NGX_HTTP_KUBE_WAIT_DEFAULT  500

/*
 * Adds the handler of the preaccess phase, where an upstream waits at all.
 * For postconfiguration.
 */
ngx_int_t ngx_http_kube_wait_add(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf);

/*
 * The upstream that the request's location sends to, where it has a
 * kube_service line, and what says how in *conf.  NULL: it has none, or
 * variables name the upstream.
 */
ngx_http_kube_srv_conf_t *ngx_http_kube_destination(ngx_http_request_t *r,
    ngx_http_upstream_conf_t **conf);


#endif /* NGX_HTTP_KUBE_WAIT_H */

/*
 * ngx_http_kube_balancer - the balancing method of an upstream with
 * kube_service: whether it is one that is known to work over views, and the
 * parts of other modules' configuration that each view's peers clone.
 *
 * It balances nothing.  Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_BALANCER_H
#define NGX_HTTP_KUBE_BALANCER_H


#include "ngx_http_kube.h"


/*
 * Notes what other modules hold for the upstream, before any init_upstream
 * ran.  NGX_ERROR (logged): the method is not a known one, or an unknown module
 * has a part in the upstream; peers could not be made of either.
 */
ngx_int_t ngx_http_kube_balancer_take(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_kube_balancer_t *balancer);

/* Notes how the upstream makes peers, when the whole of http {} was read. */
void ngx_http_kube_balancer_finish(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_kube_balancer_t *balancer);


#endif /* NGX_HTTP_KUBE_BALANCER_H */

/*
 * ngx_http_kube_probe - the trial of a balancing method that is not known to
 * work with kube_service ("kube_balancer unknown=probe").
 *
 * It judges only how peers are made, not what is picked of them.
 * Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_PROBE_H
#define NGX_HTTP_KUBE_PROBE_H


#include "ngx_http_kube.h"


/*
 * Has the method make peers of two servers, in a child that may crash over it.
 * NGX_OK: they are as round robin has them.  NGX_ERROR (logged): they are not,
 * or the child died.  balancer: method and slots are set.
 */
ngx_int_t ngx_http_kube_probe(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_kube_balancer_t *balancer);


#endif /* NGX_HTTP_KUBE_PROBE_H */

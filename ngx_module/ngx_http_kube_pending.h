/*
 * ngx_http_kube_pending - requests for a large Service wait while its first
 * view is made in pieces.
 *
 * That is so only where views of large Services go for want of room
 * (ngx_kube_views.h); elsewhere it costs a request one look.  Only upstreams
 * with kube_service wait, and those whose name is in the configuration.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_PENDING_H
#define NGX_HTTP_KUBE_PENDING_H


#include "ngx_http_kube.h"


/*
 * Has requests looked at before the content phase, where a key has variables.
 * For init_module: nginx makes the phases after all postconfigurations.
 */
void ngx_http_kube_pending_init(ngx_cycle_t *cycle);

/*
 * Whether a worker is strained and the request was looked at on its way to this
 * upstream: a view that it waited for may have gone again, while the body came
 * after all or somebody else held the cache's lock.
 */
ngx_uint_t ngx_http_kube_pending_saw(ngx_http_request_t *r,
    const ngx_http_kube_srv_conf_t *kscf);


#endif /* NGX_HTTP_KUBE_PENDING_H */

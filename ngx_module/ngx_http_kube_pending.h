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
 * Adds the handler of the precontent phase, where a key has variables.  For
 * postconfiguration, after ngx_http_kube_wait_add().
 */
ngx_int_t ngx_http_kube_pending_add(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf);

/*
 * Whether a worker is strained and the request came by that handler on its way
 * to this upstream: a view that it waited for may have gone again, while the
 * body came after all or somebody else held the cache's lock.
 */
ngx_uint_t ngx_http_kube_pending_saw(ngx_http_request_t *r,
    const ngx_http_kube_srv_conf_t *kscf);


#endif /* NGX_HTTP_KUBE_PENDING_H */

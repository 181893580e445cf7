/*
 * ngx_http_kube_request - finds and makes what a request remembers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_request.h"


static void ngx_http_kube_request_cleanup(void *data);


ngx_http_kube_request_t *
ngx_http_kube_request(ngx_http_request_t *r, ngx_uint_t create)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_kube_request_t  *kr;

    kr = ngx_http_get_module_ctx(r, ngx_http_kube_module);
    if (kr != NULL) {
        return kr;
    }

    /* an internal redirect has cleared the context, not the pool */

    for (cln = r->pool->cleanup; cln != NULL; cln = cln->next) {
        if (cln->handler == ngx_http_kube_request_cleanup) {
            kr = cln->data;

            if (kr->request == r) {
                ngx_http_set_ctx(r, kr, ngx_http_kube_module);
                return kr;
            }
        }
    }

    if (!create) {
        return NULL;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_kube_request_t));
    if (cln == NULL) {
        return NULL;
    }

    /* the rest of balancing is set when a balancer is */

    kr = cln->data;
    kr->request = r;
    kr->shown = NULL;
    kr->resolutions = NULL;
    kr->balancing.pick.view = NULL;
    kr->balancing.pick.reads = 0;
    kr->balancing.row = NULL;
    kr->balancing.pinned = NULL;
    kr->balancing.location = NULL;

    cln->handler = ngx_http_kube_request_cleanup;

    ngx_http_set_ctx(r, kr, ngx_http_kube_module);

    return kr;
}


static void
ngx_http_kube_request_cleanup(void *data)
{
    ngx_http_kube_request_t *kr = data;

    ngx_http_kube_resolution_t  *resolution;

    ngx_http_kube_pick_end(&kr->balancing.pick);

    if (kr->balancing.pinned != NULL) {
        ngx_http_kube_row_unpin(kr->balancing.pinned);
    }

    for (resolution = kr->resolutions; resolution != NULL;
         resolution = resolution->next)
    {
        ngx_http_kube_pick_end(&resolution->pick);
    }
}

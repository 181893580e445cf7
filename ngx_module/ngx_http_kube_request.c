/*
 * ngx_http_kube_request - finds and makes what a request remembers.
 *
 * It is in the request's pool, and found by its cleanup: an internal redirect
 * clears a module's context, not that.  It decides nothing.  Contract in the
 * header.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_request.h"


/* In one piece, as each request that is balanced needs both. */
typedef struct {
    ngx_pool_cleanup_t        cleanup;
    ngx_http_kube_request_t   request;
} ngx_http_kube_kept_t;


static void ngx_http_kube_request_cleanup(void *data);


ngx_http_kube_request_t *
ngx_http_kube_request_find(ngx_http_request_t *r, ngx_uint_t create)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_kube_kept_t     *kept;
    ngx_http_kube_request_t  *kr;

    /*
     * An internal redirect has cleared the context, not the pool; or a filter
     * that sends another answer has.  Where there was neither nobody is looked
     * for: a request may have thousands of subrequests, each with a clean-up in
     * the one pool.  What is left of redirects wraps where "post_action"
     * follows the last one.
     */

    if (r->uri_changes != NGX_HTTP_MAX_URI_CHANGES + 1
        || r->filter_finalize
        || r->post_action)
    {
        kr = ngx_http_kube_remembered(r, ngx_http_kube_request_cleanup);

        if (kr != NULL) {
            ngx_http_set_ctx(r, kr, ngx_http_kube_module);
            return kr;
        }
    }

    if (!create) {
        return NULL;
    }

    kept = ngx_palloc(r->pool, sizeof(ngx_http_kube_kept_t));
    if (kept == NULL) {
        return NULL;
    }

    /* the rest of balancing is set when a balancer is */

    kr = &kept->request;
    kr->request = r;
    kr->shown = NULL;
    kr->pending = NULL;
    kr->resolutions = NULL;
    kr->balancing.pick.view = NULL;
    kr->balancing.pick.noted = NULL;
    kr->balancing.pick.pool = r->pool;
    kr->balancing.pinned = NULL;

    /* what ngx_pool_cleanup_add() does */

    cln = &kept->cleanup;
    cln->handler = ngx_http_kube_request_cleanup;
    cln->data = kr;
    cln->next = r->pool->cleanup;
    r->pool->cleanup = cln;

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

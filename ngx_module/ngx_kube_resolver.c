/*
 * ngx_kube_resolver - views: what src/route/kube_resolver.c found, copied into
 * a pool of their own.
 *
 * A view is immutable but for its reference count and the head of a record
 * that merely moved.  Workers only; nothing here is shared between processes.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"


#define NGX_KUBE_VIEW_POOL     1024
#define NGX_KUBE_ARENA_MAX     (16 * 1024 * 1024)
#define NGX_KUBE_LOG_PERIOD    10000


static ngx_kube_view_t *ngx_kube_view_alloc(const kube_key_t *key,
    ngx_log_t *log);
static ngx_int_t ngx_kube_view_fill(ngx_kube_view_t *view,
    ngx_kube_use_t *use, const kube_key_t *key, kube_arena_t *arena);
static ngx_int_t ngx_kube_view_copy(ngx_kube_view_t *view,
    const kube_selection_t *selection);
static ngx_int_t ngx_kube_str_copy(ngx_pool_t *pool, ngx_str_t *to,
    kube_str_t from);


ngx_kube_view_t *
ngx_kube_view_create(ngx_kube_use_t *use, const kube_key_t *key,
    ngx_log_t *log)
{
    ngx_int_t         rc;
    kube_arena_t      arena;
    ngx_kube_view_t  *view;

    view = ngx_kube_view_alloc(key, log);
    if (view == NULL) {
        return NULL;
    }

    kube_arena_init(&arena, &ngx_kube_alloc, NGX_KUBE_ARENA_MAX);

    rc = ngx_kube_view_fill(view, use, key, &arena);

    kube_arena_done(&arena);

    if (rc != NGX_OK) {
        ngx_destroy_pool(view->pool);
        return NULL;
    }

    return view;
}


void
ngx_kube_view_release(ngx_kube_view_t *view)
{
    if (--view->refs == 0) {
        ngx_destroy_pool(view->pool);
    }
}


ngx_int_t
ngx_kube_view_same(ngx_kube_view_t *view, const ngx_kube_view_t *newer)
{
    if (view->entry != newer->entry
        || view->revision != newer->revision
        || view->error != newer->error
        || view->from_state_file != newer->from_state_file)
    {
        return NGX_DECLINED;
    }

    view->head = newer->head;

    return NGX_OK;
}


static ngx_kube_view_t *
ngx_kube_view_alloc(const kube_key_t *key, ngx_log_t *log)
{
    size_t            len;
    ngx_pool_t       *pool;
    ngx_kube_view_t  *view;
    char              text[KUBE_KEY_TEXT_MAX];

    /* the pool outlives the request whose log is given */

    pool = ngx_create_pool(NGX_KUBE_VIEW_POOL, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    view = ngx_pcalloc(pool, sizeof(ngx_kube_view_t));
    if (view == NULL) {
        goto failed;
    }

    len = kube_key_text(key, text);

    view->key.data = ngx_pnalloc(pool, len);
    if (view->key.data == NULL) {
        goto failed;
    }

    ngx_memcpy(view->key.data, text, len);
    view->key.len = len;

    view->pool = pool;
    view->refs = 1;

    return view;

failed:

    ngx_destroy_pool(pool);

    return NULL;
}


static ngx_int_t
ngx_kube_view_fill(ngx_kube_view_t *view, ngx_kube_use_t *use,
    const kube_key_t *key, kube_arena_t *arena)
{
    kube_resolution_t  resolution;

    if (kube_resolve(&use->resolver, key, 0, arena, &resolution) != KUBE_OK) {
        return NGX_ERROR;
    }

    view->error = resolution.error;
    view->entry = resolution.entry;
    view->head = resolution.head;

    if (!resolution.found) {
        return NGX_OK;
    }

    view->revision = resolution.snapshot.revision;
    view->from_state_file = resolution.snapshot.from_state_file;

    return ngx_kube_view_copy(view, &resolution.selection);
}


static ngx_int_t
ngx_kube_view_copy(ngx_kube_view_t *view, const kube_selection_t *selection)
{
    size_t                i;
    ngx_kube_endpoint_t  *ep;

    if (selection->n == 0) {
        return NGX_OK;
    }

    ep = ngx_pcalloc(view->pool, selection->n * sizeof(ngx_kube_endpoint_t));
    if (ep == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < selection->n; i++) {

        ep[i].addr = selection->endpoints[i].addr;
        ep[i].port = selection->endpoints[i].port;
        ep[i].state = selection->endpoints[i].state;

        if (ngx_kube_str_copy(view->pool, &ep[i].pod,
                              selection->endpoints[i].pod)
            != NGX_OK
            || ngx_kube_str_copy(view->pool, &ep[i].node,
                                 selection->endpoints[i].node)
               != NGX_OK
            || ngx_kube_str_copy(view->pool, &ep[i].zone,
                                 selection->endpoints[i].zone)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    view->endpoints = ep;
    view->n = selection->n;

    return NGX_OK;
}


static ngx_int_t
ngx_kube_str_copy(ngx_pool_t *pool, ngx_str_t *to, kube_str_t from)
{
    to->len = from.len;

    if (from.len == 0) {
        to->data = NULL;
        return NGX_OK;
    }

    to->data = ngx_pnalloc(pool, from.len);
    if (to->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(to->data, from.data, from.len);

    return NGX_OK;
}


void
ngx_kube_count(ngx_kube_informer_t *informer, ngx_uint_t counter)
{
    kube_zone_worker_add(&informer->zone, (unsigned) ngx_worker,
                         (unsigned) counter, 1);
}


void
ngx_kube_informer_health(ngx_kube_informer_t *informer,
    kube_health_t *health)
{
    kube_zone_health(&informer->zone, ngx_kube_now(), informer->idle_timeout,
                     health);
}


void
ngx_kube_log_unresolved(ngx_kube_informer_t *informer, ngx_log_t *log,
    kube_resolve_error_t error, ngx_str_t *key)
{
    char               escaped[KUBE_KEY_INPUT_MAX * 4 + 1];
    kube_str_t         s;
    ngx_uint_t         n;
    static ngx_msec_t  last[KUBE_RESOLVE_ERRORS];
    static ngx_uint_t  suppressed[KUBE_RESOLVE_ERRORS];

    if (last[error] != 0
        && (ngx_msec_int_t) (ngx_current_msec - last[error])
           < NGX_KUBE_LOG_PERIOD)
    {
        suppressed[error]++;
        return;
    }

    last[error] = ngx_current_msec;
    n = suppressed[error];
    suppressed[error] = 0;

    s = ngx_kube_str(key);
    s.len = ngx_min(s.len, KUBE_KEY_INPUT_MAX);

    (void) kube_str_escape(escaped, sizeof(escaped), s);

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "kube informer \"%V\": \"%s\" cannot be resolved: %*s "
                  "(%ui more in the last 10 seconds)",
                  &informer->name, escaped,
                  kube_resolve_error_text(error).len,
                  kube_resolve_error_text(error).data, n);
}


ngx_uint_t
ngx_kube_sockaddr(const ngx_kube_endpoint_t *endpoint,
    ngx_sockaddr_t *sockaddr, socklen_t *socklen)
{
    ngx_memzero(sockaddr, sizeof(ngx_sockaddr_t));

#if (NGX_HAVE_INET6)
    if (endpoint->addr.family == KUBE_FAMILY_IPV6) {
        sockaddr->sockaddr_in6.sin6_family = AF_INET6;
        sockaddr->sockaddr_in6.sin6_port = htons(endpoint->port);
        ngx_memcpy(&sockaddr->sockaddr_in6.sin6_addr, endpoint->addr.bytes,
                   16);
        *socklen = sizeof(struct sockaddr_in6);
        return NGX_OK;
    }
#endif

    if (endpoint->addr.family != KUBE_FAMILY_IPV4) {
        return NGX_DECLINED;
    }

    sockaddr->sockaddr_in.sin_family = AF_INET;
    sockaddr->sockaddr_in.sin_port = htons(endpoint->port);
    ngx_memcpy(&sockaddr->sockaddr_in.sin_addr, endpoint->addr.bytes, 4);
    *socklen = sizeof(struct sockaddr_in);

    return NGX_OK;
}

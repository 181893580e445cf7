/*
 * ngx_http_kube_sessions - TLS sessions with the servers of one upstream, in
 * one worker.
 *
 * It knows no server: a holder stands for one, and whoever owns holders drops
 * what they hold.  Called by the hooks around a balancer and by rows.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_SESSIONS_H
#define NGX_HTTP_KUBE_SESSIONS_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/* Sessions kept of an upstream; above it the least recently used one goes. */
#define NGX_HTTP_KUBE_SESSIONS_MAX  1024

/*
 * Bytes of a session's encoding that are kept: a server chooses the size of its
 * ticket and of its certificate (RFC 8446, 4.6.1: a ticket has up to 64 KB),
 * usual sessions take 1 to 4 KB.
 */
#define NGX_HTTP_KUBE_SESSION_SIZE  16384


typedef struct {
    ngx_rbtree_t       tree;
    ngx_rbtree_node_t  sentinel;
    ngx_queue_t        lru;        /* the one used last first */
    ngx_uint_t         n;
} ngx_http_kube_sessions_t;


void ngx_http_kube_sessions_init(ngx_http_kube_sessions_t *sessions);

/* Forgets all that a holder holds. */
void ngx_http_kube_sessions_drop(ngx_http_kube_sessions_t *sessions,
    ngx_queue_t *holder);

#if (NGX_HTTP_SSL)

/*
 * peer.set_session and peer.save_session of a request's upstream.  A session is
 * found by the holder, the location's SSL_CTX and the server's name
 * (proxy_ssl_name); where the client certificate depends on the request there
 * is none, for a session stands for the certificate it was made with.
 */
ngx_int_t ngx_http_kube_sessions_offer(ngx_http_kube_sessions_t *sessions,
    ngx_queue_t *holder, ngx_http_upstream_t *u);
void ngx_http_kube_sessions_save(ngx_http_kube_sessions_t *sessions,
    ngx_queue_t *holder, ngx_http_upstream_t *u);

#endif


#endif /* NGX_HTTP_KUBE_SESSIONS_H */

/*
 * ngx_http_kube_sessions - a table of TLS sessions, the least recently used
 * one going first.
 *
 * Stock nginx keeps a session in the peer itself, which ends with the peers of
 * one revision, and gives it to whatever name and certificate come next.
 * Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_sessions.h"


#if (NGX_HTTP_SSL)

#define NGX_HTTP_KUBE_SSL_NAME_MAX  255


/* The bytes that a session is found by; a name follows. */
typedef struct {
    SSL_CTX            *ctx;
    ngx_queue_t        *holder;
    u_char              name[NGX_HTTP_KUBE_SSL_NAME_MAX];
} ngx_http_kube_session_key_t;

typedef struct {
    ngx_str_node_t      sn;        /* str: the key, behind the structure */
    ngx_queue_t         lru;
    ngx_queue_t         held;      /* of the holder */
    ngx_ssl_session_t  *session;
} ngx_http_kube_session_t;


static ngx_int_t ngx_http_kube_session_key(ngx_queue_t *holder,
    ngx_http_upstream_t *u, ngx_http_kube_session_key_t *key, ngx_str_t *str);
static ngx_http_kube_session_t *ngx_http_kube_session_find(
    ngx_http_kube_sessions_t *sessions, ngx_str_t *str);
static ngx_http_kube_session_t *ngx_http_kube_session_add(
    ngx_http_kube_sessions_t *sessions, ngx_queue_t *holder, ngx_str_t *str);
static void ngx_http_kube_session_remove(ngx_http_kube_sessions_t *sessions,
    ngx_http_kube_session_t *session);

#endif


void
ngx_http_kube_sessions_init(ngx_http_kube_sessions_t *sessions)
{
    ngx_rbtree_init(&sessions->tree, &sessions->sentinel,
                    ngx_str_rbtree_insert_value);
    ngx_queue_init(&sessions->lru);
    sessions->n = 0;
}


#if (NGX_HTTP_SSL)

ngx_int_t
ngx_http_kube_sessions_offer(ngx_http_kube_sessions_t *sessions,
    ngx_queue_t *holder, ngx_http_upstream_t *u)
{
    ngx_str_t                     str;
    ngx_http_kube_session_t      *session;
    ngx_http_kube_session_key_t   key;

    if (ngx_http_kube_session_key(holder, u, &key, &str) != NGX_OK) {
        return NGX_OK;
    }

    session = ngx_http_kube_session_find(sessions, &str);
    if (session == NULL) {
        return NGX_OK;
    }

    return ngx_ssl_set_session(u->peer.connection, session->session);
}


void
ngx_http_kube_sessions_save(ngx_http_kube_sessions_t *sessions,
    ngx_queue_t *holder, ngx_http_upstream_t *u)
{
    int                           len;
    ngx_str_t                     str;
    ngx_ssl_session_t            *made;
    ngx_http_kube_session_t      *session;
    ngx_http_kube_session_key_t   key;

    if (ngx_http_kube_session_key(holder, u, &key, &str) != NGX_OK) {
        return;
    }

    made = ngx_ssl_get_session(u->peer.connection);
    if (made == NULL) {
        return;
    }

    len = i2d_SSL_SESSION(made, NULL);

    if (len <= 0 || len > NGX_HTTP_KUBE_SESSION_SIZE) {
        ngx_ssl_free_session(made);
        return;
    }

    session = ngx_http_kube_session_find(sessions, &str);

    if (session == NULL) {
        session = ngx_http_kube_session_add(sessions, holder, &str);
        if (session == NULL) {
            ngx_ssl_free_session(made);
            return;
        }
    }

    if (session->session != NULL) {
        ngx_ssl_free_session(session->session);
    }

    session->session = made;
}


/* NGX_DECLINED: nothing is kept of such a connection. */

static ngx_int_t
ngx_http_kube_session_key(ngx_queue_t *holder, ngx_http_upstream_t *u,
    ngx_http_kube_session_key_t *key, ngx_str_t *str)
{
    ngx_http_upstream_conf_t  *conf;

    conf = u->conf;

    if (conf->ssl == NULL || u->ssl_name.len > sizeof(key->name)) {
        return NGX_DECLINED;
    }

    if (conf->ssl_certificate != NULL
        && (conf->ssl_certificate->lengths != NULL
            || (conf->ssl_certificate_key != NULL
                && conf->ssl_certificate_key->lengths != NULL)))
    {
        return NGX_DECLINED;
    }

    key->ctx = conf->ssl->ctx;
    key->holder = holder;
    ngx_memcpy(key->name, u->ssl_name.data, u->ssl_name.len);

    str->data = (u_char *) key;
    str->len = offsetof(ngx_http_kube_session_key_t, name) + u->ssl_name.len;

    return NGX_OK;
}


static ngx_http_kube_session_t *
ngx_http_kube_session_find(ngx_http_kube_sessions_t *sessions, ngx_str_t *str)
{
    ngx_str_node_t           *sn;
    ngx_http_kube_session_t  *session;

    sn = ngx_str_rbtree_lookup(&sessions->tree, str,
                               ngx_murmur_hash2(str->data, str->len));
    if (sn == NULL) {
        return NULL;
    }

    session = (ngx_http_kube_session_t *) sn;

    ngx_queue_remove(&session->lru);
    ngx_queue_insert_head(&sessions->lru, &session->lru);

    return session;
}


static ngx_http_kube_session_t *
ngx_http_kube_session_add(ngx_http_kube_sessions_t *sessions,
    ngx_queue_t *holder, ngx_str_t *str)
{
    ngx_queue_t              *q;
    ngx_http_kube_session_t  *session;

    if (sessions->n >= NGX_HTTP_KUBE_SESSIONS_MAX) {
        q = ngx_queue_last(&sessions->lru);
        ngx_http_kube_session_remove(sessions,
                       ngx_queue_data(q, ngx_http_kube_session_t, lru));
    }

    session = ngx_alloc(sizeof(ngx_http_kube_session_t) + str->len,
                        ngx_cycle->log);
    if (session == NULL) {
        return NULL;
    }

    session->session = NULL;
    session->sn.str.data = (u_char *) (session + 1);
    session->sn.str.len = str->len;
    ngx_memcpy(session->sn.str.data, str->data, str->len);

    session->sn.node.key = ngx_murmur_hash2(str->data, str->len);

    ngx_rbtree_insert(&sessions->tree, &session->sn.node);
    ngx_queue_insert_head(&sessions->lru, &session->lru);
    ngx_queue_insert_head(holder, &session->held);
    sessions->n++;

    return session;
}


static void
ngx_http_kube_session_remove(ngx_http_kube_sessions_t *sessions,
    ngx_http_kube_session_t *session)
{
    ngx_rbtree_delete(&sessions->tree, &session->sn.node);
    ngx_queue_remove(&session->lru);
    ngx_queue_remove(&session->held);
    sessions->n--;

    if (session->session != NULL) {
        ngx_ssl_free_session(session->session);
    }

    ngx_free(session);
}

#endif


void
ngx_http_kube_sessions_drop(ngx_http_kube_sessions_t *sessions,
    ngx_queue_t *holder)
{
#if (NGX_HTTP_SSL)
    ngx_queue_t  *q, *next;

    for (q = ngx_queue_head(holder);
         q != ngx_queue_sentinel(holder);
         q = next)
    {
        next = ngx_queue_next(q);
        ngx_http_kube_session_remove(sessions,
                       ngx_queue_data(q, ngx_http_kube_session_t, held));
    }
#endif
}

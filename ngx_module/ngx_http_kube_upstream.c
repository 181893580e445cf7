/*
 * ngx_http_kube_upstream - what stands around the stock balancer of an
 * upstream with kube_service while a request is proxied.
 *
 * The balancer named in the block runs unchanged, over the peers of a view
 * (ngx_http_kube_peers.c).  Around it: the key is resolved, the endpoint
 * picked is remembered for the variables, and after a failed attempt the next
 * one looks at the newest endpoints, carrying the addresses tried.
 *
 * Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_peers.h"
#include "ngx_http_kube_request.h"
#include "ngx_http_kube_upstream.h"


static ngx_int_t ngx_http_kube_view_retire(ngx_http_kube_request_t *kr);
static void ngx_http_kube_view_retired(void *data);
static ngx_int_t ngx_http_kube_attach(ngx_http_kube_request_t *kr);
static void ngx_http_kube_unwrap(ngx_peer_connection_t *pc);
static void ngx_http_kube_wrap(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_int_t ngx_http_kube_unresolved(ngx_http_kube_request_t *kr);
static ngx_http_kube_srv_conf_t *ngx_http_kube_conf_of(
    ngx_http_kube_request_t *kr);
static ngx_int_t ngx_http_kube_get_nothing(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_kube_free_nothing(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_int_t ngx_http_kube_get_peer(ngx_peer_connection_t *pc,
    void *data);
static ngx_int_t ngx_http_kube_get_untried(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b);
static void ngx_http_kube_reject(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b);
static void ngx_http_kube_free_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_uint_t ngx_http_kube_tried(ngx_http_kube_balancing_t *b,
    struct sockaddr *sockaddr, socklen_t socklen);
static void ngx_http_kube_tried_add(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_uint_t ngx_http_kube_gone_stale(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_kube_view_t *ngx_http_kube_newest(ngx_http_kube_balancing_t *b);
static void ngx_http_kube_more_tries(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_uint_t stale);
static ngx_int_t ngx_http_kube_switch(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static void ngx_http_kube_notify_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type);
#ifdef angie_version
static ngx_int_t ngx_http_kube_connect_peer(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_kube_close_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
#endif
#if (NGX_HTTP_SSL)
static ngx_int_t ngx_http_kube_set_session(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_kube_save_session(ngx_peer_connection_t *pc,
    void *data);
#endif


ngx_int_t
ngx_http_kube_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_str_t                   text;
    ngx_http_kube_request_t    *kr;
    ngx_http_kube_srv_conf_t   *kscf;
    ngx_http_kube_balancing_t  *b;

    kscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_kube_module);

    /* may use variables of kube_resolve, which the request remembers too */

    if (ngx_http_kube_key_evaluate(r, &kscf->key, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    kr = ngx_http_kube_request(r, 1);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    b = &kr->balancing;

    /* a request is proxied again after X-Accel-Redirect or error_page */

    if (b->pick.view != NULL && ngx_http_kube_view_retire(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    b->tried = NULL;
    b->attempts = 0;
    b->failed = 0;
    b->switched = 0;

    ngx_http_kube_key_resolve(r, &kscf->key, &text, &b->pick);

    b->location = r->loc_conf;
    kr->shown = &b->pick;

    if (b->pick.view == NULL || b->pick.view->data == NULL) {
        return ngx_http_kube_unresolved(kr);
    }

    return ngx_http_kube_attach(kr);
}


/*
 * What nginx keeps of an attempt ($upstream_addr, messages in the log) views
 * the names of its peers: a view once used stays until the request ends.
 */

static ngx_int_t
ngx_http_kube_view_retire(ngx_http_kube_request_t *kr)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(kr->request->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_kube_view_retired;
    cln->data = kr->balancing.pick.view;

    kr->balancing.pick.view = NULL;

    return NGX_OK;
}


static void
ngx_http_kube_view_retired(void *data)
{
    ngx_kube_view_release(data);
}


/* Has the balancer begin over the peers of the pick's view. */

static ngx_int_t
ngx_http_kube_attach(ngx_http_kube_request_t *kr)
{
    ngx_http_upstream_t    *u;
    ngx_http_kube_peers_t  *peers;

    u = kr->request->upstream;
    peers = kr->balancing.pick.view->data;

    /* Angie looks for the balancer's part here, not in the peer's data */

    u->upstream = &peers->us;

    ngx_http_kube_unwrap(&u->peer);

    if (ngx_http_kube_conf_of(kr)->balancer.init_peer(kr->request, &peers->us)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_http_kube_wrap(&u->peer, kr);

    return NGX_OK;
}


/* A stock init_peer uses peer.data that is there: it would be ours. */

static void
ngx_http_kube_unwrap(ngx_peer_connection_t *pc)
{
    pc->data = NULL;
    pc->notify = NULL;

#ifdef angie_version
    pc->notify_mask = 0;
    pc->connect = NULL;
    pc->close = NULL;
#endif
}


/* Each hook is given the data of who stands outermost: all must be wrapped. */

static void
ngx_http_kube_wrap(ngx_peer_connection_t *pc, ngx_http_kube_request_t *kr)
{
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    b->data = pc->data;
    b->get = pc->get;
    b->free = pc->free;
    b->notify = pc->notify;

    pc->data = kr;
    pc->get = ngx_http_kube_get_peer;
    pc->free = ngx_http_kube_free_peer;
    pc->notify = b->notify ? ngx_http_kube_notify_peer : NULL;

#ifdef angie_version
    b->connect = pc->connect;
    b->close = pc->close;
    pc->connect = b->connect ? ngx_http_kube_connect_peer : NULL;
    pc->close = b->close ? ngx_http_kube_close_peer : NULL;
#endif

#if (NGX_HTTP_SSL)
    b->set_session = pc->set_session;
    b->save_session = pc->save_session;
    pc->set_session = ngx_http_kube_set_session;
    pc->save_session = ngx_http_kube_save_session;
#endif
}


/* 502, with the reason in $kube_error and one line in the log now and then. */

static ngx_int_t
ngx_http_kube_unresolved(ngx_http_kube_request_t *kr)
{
    ngx_peer_connection_t  *pc;
    ngx_http_kube_pick_t   *pick;

    pick = &kr->balancing.pick;

    ngx_kube_unresolved(pick->of->ref, kr->request->connection->log,
                        pick->error, &pick->text);

    pc = &kr->request->upstream->peer;

    ngx_http_kube_unwrap(pc);

    pc->data = kr;
    pc->get = ngx_http_kube_get_nothing;
    pc->free = ngx_http_kube_free_nothing;
    pc->tries = 0;

    return NGX_OK;
}


static ngx_http_kube_srv_conf_t *
ngx_http_kube_conf_of(ngx_http_kube_request_t *kr)
{
    return kr->balancing.pick.of->views.data;
}


static ngx_int_t
ngx_http_kube_get_nothing(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    pc->sockaddr = NULL;
    pc->name = &ngx_http_kube_conf_of(kr)->upstream->host;
    pc->cached = 0;
    pc->connection = NULL;

    /* NGX_BUSY would be logged for every request */

    return NGX_DECLINED;
}


static void
ngx_http_kube_free_nothing(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    pc->tries = 0;
}


static ngx_int_t
ngx_http_kube_get_peer(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    ngx_int_t                   rc;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    if (b->failed) {
        b->failed = 0;

        if (ngx_http_kube_switch(pc, kr) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    rc = ngx_http_kube_get_untried(pc, b);

    if (rc == NGX_BUSY) {
        pc->name = &ngx_http_kube_conf_of(kr)->upstream->host;
    }

    if (rc == NGX_OK || rc == NGX_DONE) {
        b->attempts++;
        b->pick.endpoint = ngx_http_kube_peers_endpoint(b->pick.view,
                                                        pc->sockaddr);
    }

    return rc;
}


/*
 * The balancer over a newer view does not know what was tried before: what it
 * picks again is given back.
 */

static ngx_int_t
ngx_http_kube_get_untried(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b)
{
    ngx_int_t   rc;
    ngx_uint_t  n, tries;

    for (n = 0; n < 2 * b->pick.view->n + 32; n++) {

        rc = b->get(pc, b->data);

        if ((rc != NGX_OK && rc != NGX_DONE)
            || !b->switched
            || !ngx_http_kube_tried(b, pc->sockaddr, pc->socklen))
        {
            return rc;
        }

        tries = pc->tries;
        ngx_http_kube_reject(pc, b);
        pc->tries = tries;
    }

    return NGX_BUSY;
}


static void
ngx_http_kube_reject(ngx_peer_connection_t *pc, ngx_http_kube_balancing_t *b)
{
    b->free(pc, b->data, 0);

    if (pc->connection != NULL) {

        /* from keepalive's cache, and not taken back */

#if (NGX_HTTP_SSL)
        if (pc->connection->ssl) {
            pc->connection->ssl->no_wait_shutdown = 1;
            pc->connection->ssl->no_send_shutdown = 1;
            (void) ngx_ssl_shutdown(pc->connection);
        }
#endif

        if (pc->connection->pool) {
            ngx_destroy_pool(pc->connection->pool);
        }

        ngx_close_connection(pc->connection);
        pc->connection = NULL;
    }

    pc->cached = 0;
    pc->sockaddr = NULL;
}


static void
ngx_http_kube_free_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_kube_request_t *kr = data;

    ngx_uint_t                  stale;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;
    stale = 0;

    if (state & NGX_PEER_FAILED) {
        b->failed = 1;
        stale = ngx_http_kube_gone_stale(pc, kr);

        if (stale) {
            b->attempts--;

        } else {
            ngx_http_kube_tried_add(pc, kr);
        }
    }

    b->free(pc, b->data, state);

    if (b->failed) {
        ngx_http_kube_more_tries(pc, kr, stale);
    }
}


static ngx_uint_t
ngx_http_kube_tried(ngx_http_kube_balancing_t *b, struct sockaddr *sockaddr,
    socklen_t socklen)
{
    ngx_uint_t       i;
    ngx_sockaddr_t  *tried;

    if (b->tried == NULL) {
        return 0;
    }

    tried = b->tried->elts;

    for (i = 0; i < b->tried->nelts; i++) {
        if (ngx_cmp_sockaddr(&tried[i].sockaddr, socklen, sockaddr, socklen,
                             1)
            == NGX_OK)
        {
            return 1;
        }
    }

    return 0;
}


static void
ngx_http_kube_tried_add(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr)
{
    ngx_sockaddr_t             *tried;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    if (pc->sockaddr == NULL
        || pc->socklen > (socklen_t) sizeof(ngx_sockaddr_t))
    {
        return;
    }

    if (b->tried == NULL) {
        b->tried = ngx_array_create(kr->request->pool, 4,
                                    sizeof(ngx_sockaddr_t));
        if (b->tried == NULL) {
            return;
        }
    }

    tried = ngx_array_push(b->tried);
    if (tried == NULL) {
        return;
    }

    ngx_memzero(tried, sizeof(ngx_sockaddr_t));
    ngx_memcpy(tried, pc->sockaddr, pc->socklen);
}


/*
 * An idle connection from the cache that the peer had closed in the meantime
 * says nothing about the peer; nginx does not count it as an attempt either.
 */

static ngx_uint_t
ngx_http_kube_gone_stale(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr)
{
    ngx_connection_t  *c;

    c = pc->connection;

    return pc->cached
           && c != NULL
           && !c->read->timedout
           && !c->write->timedout
           && kr->request->upstream->headers_in.status_n == 0;
}


/* Another view with peers than the one in use, borrowed, or NULL. */

static ngx_kube_view_t *
ngx_http_kube_newest(ngx_http_kube_balancing_t *b)
{
    ngx_kube_view_t       *view;
    kube_resolve_error_t   error;

    view = ngx_kube_views_get(&b->pick.of->views, b->pick.key, &error);

    if (view == NULL || view->data == NULL || view == b->pick.view) {
        return NULL;
    }

    return view;
}


/*
 * Stock nginx gives up when every peer of the set it began with has failed,
 * though new ones may be there.  Whether the request may be sent again at all
 * stays nginx's decision.
 */

static void
ngx_http_kube_more_tries(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_uint_t stale)
{
    ngx_uint_t              i, n, limit;
    ngx_sockaddr_t         *addr;
    ngx_kube_view_t        *view;
    ngx_http_kube_peers_t  *peers;

    view = ngx_http_kube_newest(&kr->balancing);
    if (view == NULL) {
        return;
    }

    peers = view->data;
    n = ngx_http_kube_conf_of(kr)->servers.nelts;

    for (i = 0; i < view->n; i++) {
        addr = &peers->addrs[i];

        if (!ngx_http_kube_tried(&kr->balancing, &addr->sockaddr,
                                 ngx_http_kube_socklen(&addr->sockaddr)))
        {
            n++;
        }
    }

    limit = kr->request->upstream->conf->next_upstream_tries;

    if (limit != 0) {
        limit = (limit > kr->balancing.attempts)
                ? limit - kr->balancing.attempts : 0;
        n = ngx_min(n, limit);
    }

    /* nginx gives the attempt back itself */

    pc->tries = (stale && n != 0) ? n - 1 : n;
}


static ngx_int_t
ngx_http_kube_switch(ngx_peer_connection_t *pc, ngx_http_kube_request_t *kr)
{
    ngx_uint_t                  tries;
    ngx_kube_view_t            *view;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    view = ngx_http_kube_newest(b);
    if (view == NULL) {
        return NGX_OK;
    }

    if (ngx_http_kube_view_retire(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    view->refs++;

    b->pick.view = view;
    b->pick.key = &view->key;
    b->pick.error = view->error;
    b->pick.endpoint = NULL;

    tries = pc->tries;

    if (ngx_http_kube_attach(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    pc->tries = tries;
    b->switched = 1;

    return NGX_OK;
}


static void
ngx_http_kube_notify_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type)
{
    ngx_http_kube_request_t *kr = data;

    kr->balancing.notify(pc, kr->balancing.data, type);
}


#ifdef angie_version

static ngx_int_t
ngx_http_kube_connect_peer(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    return kr->balancing.connect(pc, kr->balancing.data);
}


static void
ngx_http_kube_close_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_kube_request_t *kr = data;

    kr->balancing.close(pc, kr->balancing.data, state);
}

#endif


#if (NGX_HTTP_SSL)

static ngx_int_t
ngx_http_kube_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    return kr->balancing.set_session(pc, kr->balancing.data);
}


static void
ngx_http_kube_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    kr->balancing.save_session(pc, kr->balancing.data);
}

#endif

/*
 * ngx_http_kube_upstream - what stands around the stock balancer of an
 * upstream with kube_service while a request is proxied.
 *
 * The balancer named in the block runs unchanged, over the peers of a view
 * (ngx_http_kube_peers.c).  Before it the key is resolved.  Hooks around it
 * remember the endpoint picked for the variables, and after a failed attempt
 * look at the newest endpoints: beneath keepalive where the method is plain
 * (ngx_http_kube_stock.c), else around the whole chain, here.
 *
 * Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_attempts.h"
#include "ngx_http_kube_pending.h"
#include "ngx_http_kube_stock.h"
#include "ngx_http_kube_upstream.h"


static ngx_inline ngx_int_t ngx_http_kube_begin(ngx_http_request_t *r,
    ngx_http_kube_request_t *kr, ngx_http_kube_srv_conf_t *kscf);
static ngx_int_t ngx_http_kube_attach(ngx_http_kube_request_t *kr)
    NGX_HTTP_KUBE_RARE;
static void ngx_http_kube_wrap(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_int_t ngx_http_kube_astray(ngx_http_kube_pick_t *pick,
    ngx_log_t *log) NGX_HTTP_KUBE_RARE;
static ngx_int_t ngx_http_kube_unresolved(ngx_http_kube_request_t *kr)
    NGX_HTTP_KUBE_RARE;
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
static void ngx_http_kube_notify_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type);
#ifdef angie_version
static ngx_int_t ngx_http_kube_connect_peer(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_kube_close_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
#endif


ngx_int_t
ngx_http_kube_init_peer_static(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_kube_request_t   *kr;
    ngx_http_kube_srv_conf_t  *kscf;

    kr = ngx_http_kube_request(r, 1);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    kscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_kube_module);

    ngx_http_kube_pick_end(&kr->balancing.pick);
    ngx_http_kube_key_resolve_static(&kscf->key, &kr->balancing.pick);

    return ngx_http_kube_begin(r, kr, kscf);
}


ngx_int_t
ngx_http_kube_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_str_t                  text;
    ngx_http_kube_request_t   *kr;
    ngx_http_kube_srv_conf_t  *kscf;

    kscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_kube_module);

    /* may use variables of kube_resolve, which the request remembers too */

    if (ngx_http_complex_value(r, &kscf->key.value, &text) != NGX_OK) {
        return NGX_ERROR;
    }

    kr = ngx_http_kube_request(r, 1);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    ngx_http_kube_pick_end(&kr->balancing.pick);
    ngx_http_kube_key_resolve(r, &kscf->key, &text,
                              ngx_http_kube_pending_saw(r, kscf),
                              &kr->balancing.pick);

    return ngx_http_kube_begin(r, kr, kscf);
}


/*
 * With a pick.  A request may have been balanced before: it is proxied again
 * after X-Accel-Redirect or error_page.
 */

static ngx_inline ngx_int_t
ngx_http_kube_begin(ngx_http_request_t *r, ngx_http_kube_request_t *kr,
    ngx_http_kube_srv_conf_t *kscf)
{
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    b->location = r->loc_conf;
    b->row = NULL;
    b->tried = NULL;
    b->attempts = 0;
    b->limit = 0;
    b->single = 0;
    b->failed = 0;
    b->rejected = 0;

    kr->shown = &b->pick;

    if (b->pick.error != KUBE_RESOLVE_OK
        && ngx_http_kube_astray(&b->pick, r->connection->log) != NGX_OK)
    {
        return ngx_http_kube_unresolved(kr);
    }

    if (!kscf->balancer.plain) {
        return ngx_http_kube_attach(kr);
    }

    ngx_http_kube_peers_of_view(b);

    return kscf->balancer.init_peer(r, &b->peers->us);
}


/* Has what is not plain begin over the peers of the pick's view. */

static ngx_int_t
ngx_http_kube_attach(ngx_http_kube_request_t *kr)
{
    ngx_int_t                   rc;
    ngx_http_upstream_t        *u;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;
    u = kr->request->upstream;

    ngx_http_kube_peers_of_view(b);
    ngx_http_kube_hooks_clear(&u->peer);

    /* Angie looks for the balancer's part here, not in the peer's data */

    u->upstream = &b->peers->us;

    rc = ngx_http_kube_conf_of(kr)->balancer.init_peer(kr->request,
                                                       &b->peers->us);
    if (rc == NGX_OK) {
        ngx_http_kube_wrap(&u->peer, kr);
    }

    return rc;
}


/* Each hook is given the data of who stands outermost: all must be wrapped. */

static void
ngx_http_kube_wrap(ngx_peer_connection_t *pc, ngx_http_kube_request_t *kr)
{
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    ngx_http_kube_hooks_save(&b->chain, pc);

    pc->data = kr;
    pc->get = ngx_http_kube_get_peer;
    pc->free = ngx_http_kube_free_peer;
    pc->notify = b->chain.notify ? ngx_http_kube_notify_peer : NULL;

#ifdef angie_version
    pc->connect = b->chain.connect ? ngx_http_kube_connect_peer : NULL;
    pc->close = b->chain.close ? ngx_http_kube_close_peer : NULL;
#endif

    ngx_http_kube_stock_sessions(pc);
}


/*
 * NGX_OK where static servers serve a key that does not resolve: nobody would
 * see that they do.  The log tells of each cause once, as soon as the lines
 * about this reason have room for it; of keys that lead nowhere, which clients
 * may make, as often as there is room.
 */

static ngx_int_t
ngx_http_kube_astray(ngx_http_kube_pick_t *pick, ngx_log_t *log)
{
    ngx_kube_view_t  *view;

    view = pick->view;

    if (view == NULL || view->data == NULL) {
        return NGX_DECLINED;
    }

    if (!view->told
        && ngx_kube_unresolved(pick->of->ref, log, pick->error,
                               ngx_http_kube_pick_text(pick),
                               "; static servers serve it"))
    {
        view->told = (view->name.len != 0);
    }

    return NGX_OK;
}


/* 502, with the reason in $kube_error and one line in the log now and then. */

static ngx_int_t
ngx_http_kube_unresolved(ngx_http_kube_request_t *kr)
{
    ngx_peer_connection_t  *pc;
    ngx_http_kube_pick_t   *pick;

    pick = &kr->balancing.pick;

    (void) ngx_kube_unresolved(pick->of->ref, kr->request->connection->log,
                               pick->error, ngx_http_kube_pick_text(pick), "");

    ngx_http_kube_pick_leave(pick);

    pc = &kr->request->upstream->peer;

    ngx_http_kube_hooks_clear(pc);

    pc->data = kr;
    pc->get = ngx_http_kube_get_nothing;
    pc->free = ngx_http_kube_free_nothing;
    pc->tries = 0;

    return NGX_OK;
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
    rc = NGX_OK;

    if (b->failed) {
        b->failed = 0;
        rc = ngx_http_kube_attempt_again(pc, kr, ngx_http_kube_attach);
        kr->request->upstream->upstream = &b->peers->us;
    }

    if (rc == NGX_OK) {
        rc = ngx_http_kube_get_untried(pc, b);
    }

    if (rc == NGX_BUSY) {
        pc->name = &ngx_http_kube_conf_of(kr)->upstream->host;
    }

    if (rc == NGX_OK || rc == NGX_DONE) {
        b->attempts++;
        ngx_http_kube_pick_note(&b->pick,
                                ngx_http_kube_peers_endpoint(b->peers,
                                                             b->pick.view,
                                                             b->number));
    }

    return rc;
}


/*
 * No address is asked twice, also by a balancer over newer peers, which does
 * not know what was tried before: what it picks again is given back.
 */

static ngx_int_t
ngx_http_kube_get_untried(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b)
{
    ngx_int_t   rc;
    ngx_uint_t  n, tries;

    if (b->tried == NULL) {
        return b->chain.get(pc, b->chain.data);
    }

    for (n = 0; n < ngx_http_kube_attempt_picks(b); n++) {

        rc = b->chain.get(pc, b->chain.data);

        if ((rc != NGX_OK && rc != NGX_DONE)
            || !ngx_http_kube_attempt_tried(b, pc->sockaddr, pc->socklen))
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
    b->rejected = 1;
    b->chain.free(pc, b->chain.data, 0);
    b->rejected = 0;

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

    if (!(state & (NGX_PEER_FAILED|NGX_PEER_NEXT))) {
        b->chain.free(pc, b->chain.data, state);
        return;
    }

    stale = ngx_http_kube_attempt_failed(pc, kr);

    b->chain.free(pc, b->chain.data, state);

    ngx_http_kube_attempt_tries(pc, kr, stale);
}


static void
ngx_http_kube_notify_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type)
{
    ngx_http_kube_request_t *kr = data;

    kr->balancing.chain.notify(pc, kr->balancing.chain.data, type);
}


#ifdef angie_version

static ngx_int_t
ngx_http_kube_connect_peer(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    return kr->balancing.chain.connect(pc, kr->balancing.chain.data);
}


static void
ngx_http_kube_close_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_kube_request_t *kr = data;

    kr->balancing.chain.close(pc, kr->balancing.chain.data, state);
}

#endif

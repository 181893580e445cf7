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


#include "ngx_http_kube_request.h"
#include "ngx_http_kube_upstream.h"


/*
 * As many attempts a request has where its Service had fewer servers when it
 * began: pods that are replaced may all fail at their start.
 */
#define NGX_HTTP_KUBE_ATTEMPTS  3


static ngx_int_t ngx_http_kube_attach(ngx_http_kube_request_t *kr);
static void ngx_http_kube_unwrap(ngx_peer_connection_t *pc);
static void ngx_http_kube_wrap(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_int_t ngx_http_kube_unresolved(ngx_http_kube_request_t *kr);
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
static void ngx_http_kube_settle(ngx_http_kube_request_t *kr);
static void ngx_http_kube_free_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_uint_t ngx_http_kube_tried(ngx_http_kube_balancing_t *b,
    struct sockaddr *sockaddr, socklen_t socklen);
static void ngx_http_kube_tried_add(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_uint_t ngx_http_kube_gone_stale(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_kube_view_t *ngx_http_kube_newest(ngx_http_kube_pick_t *pick);
static void ngx_http_kube_more_tries(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_uint_t stale);
static ngx_uint_t ngx_http_kube_untried(ngx_http_kube_balancing_t *b,
    ngx_http_kube_peers_t *peers);
static ngx_int_t ngx_http_kube_again(ngx_peer_connection_t *pc,
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

    ngx_http_kube_pick_end(&b->pick);

    b->row = NULL;
    b->tried = NULL;
    b->attempts = 0;
    b->failed = 0;
    b->rejected = 0;

    ngx_http_kube_key_resolve(r, &kscf->key, &text, &b->pick);

    b->location = r->loc_conf;
    kr->shown = &b->pick;

    if (b->pick.view == NULL || b->pick.view->data == NULL) {
        return ngx_http_kube_unresolved(kr);
    }

    if (ngx_http_kube_attach(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    b->limit = ngx_max(r->upstream->peer.tries, NGX_HTTP_KUBE_ATTEMPTS);

    return NGX_OK;
}


/* Has the balancer begin over the peers of the pick's view. */

static ngx_int_t
ngx_http_kube_attach(ngx_http_kube_request_t *kr)
{
    ngx_http_upstream_t        *u;
    ngx_http_kube_peers_t      *peers;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;
    u = kr->request->upstream;

    peers = b->pick.view->data;
    b->peers = peers;
    b->serial = peers->serial;

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

    ngx_http_kube_hooks_save(&b->chain, pc);

    pc->data = kr;
    pc->get = ngx_http_kube_get_peer;
    pc->free = ngx_http_kube_free_peer;
    pc->notify = b->chain.notify ? ngx_http_kube_notify_peer : NULL;

#ifdef angie_version
    pc->connect = b->chain.connect ? ngx_http_kube_connect_peer : NULL;
    pc->close = b->chain.close ? ngx_http_kube_close_peer : NULL;
#endif

#if (NGX_HTTP_SSL)
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

    /* not the first attempt: its view may have been given back */

    if (b->failed || b->pick.view == NULL) {
        b->failed = 0;
        rc = ngx_http_kube_again(pc, kr);
    }

    if (rc == NGX_OK) {
        rc = ngx_http_kube_get_untried(pc, b);
    }

    if (rc == NGX_BUSY) {
        pc->name = &ngx_http_kube_conf_of(kr)->upstream->host;
    }

    if (rc == NGX_OK || rc == NGX_DONE) {
        b->attempts++;
        ngx_http_kube_settle(kr);
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

    for (n = 0; n < 2 * b->peers->listing.n + 32; n++) {

        rc = b->chain.get(pc, b->chain.data);

        if ((rc != NGX_OK && rc != NGX_DONE)
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


/*
 * Notes what variables tell, and gives the view back: requests may last for
 * days, while there is a view for each change of a Service.
 */

static void
ngx_http_kube_settle(ngx_http_kube_request_t *kr)
{
    ngx_kube_endpoint_t        *endpoint;
    ngx_http_kube_srv_conf_t   *kscf;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    endpoint = (b->number < b->peers->n) ? &b->pick.view->endpoints[b->number]
                                         : NULL;

    ngx_http_kube_pick_note(&b->pick, endpoint);

    kscf = ngx_http_kube_conf_of(kr);

    if (kscf->balancer.plain) {
        kr->request->upstream->upstream = kscf->upstream;
        ngx_http_kube_pick_release(&b->pick);
    }
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

    /* NGX_PEER_NEXT: its answer was passed over, as of http_404 */

    if (state & (NGX_PEER_FAILED|NGX_PEER_NEXT)) {
        b->failed = 1;
        stale = ngx_http_kube_gone_stale(pc, kr);

        if (stale) {
            b->attempts--;

        } else {
            ngx_http_kube_tried_add(pc, kr);
        }
    }

    b->chain.free(pc, b->chain.data, state);

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
           && kr->request->upstream->state->bytes_received == 0;
}


/* The newest view with peers, borrowed, or NULL. */

static ngx_kube_view_t *
ngx_http_kube_newest(ngx_http_kube_pick_t *pick)
{
    kube_key_t             key;
    ngx_kube_ref_t        *ref;
    ngx_kube_view_t       *view;
    kube_resolve_error_t   error;

    ref = pick->of->ref;

    if (ref->is_static) {
        view = ngx_kube_views_get(&pick->of->views, &ref->key, &error);

    } else {
        view = ngx_kube_views_find(&pick->of->views, &pick->text, &key,
                                   &error);
    }

    return (view != NULL && view->data != NULL) ? view : NULL;
}


/*
 * Stock nginx gives up when every peer of the set it began with has failed,
 * though new ones may be there, and there may be new ones for ever.  Whether
 * the request may be sent again at all stays nginx's decision.
 */

static void
ngx_http_kube_more_tries(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_uint_t stale)
{
    ngx_uint_t                  tries, limit;
    ngx_kube_view_t            *view;
    ngx_http_kube_peers_t      *peers;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    /* nginx gives an attempt on a stale connection back itself */

    tries = pc->tries + stale;
    view = ngx_http_kube_newest(&b->pick);

    if (view != NULL) {
        peers = view->data;

        if (peers->serial != b->serial) {
            tries = ngx_http_kube_untried(b, peers);
        }

    } else if (b->pick.view == NULL) {
        tries = 0;
    }

    limit = b->limit;

    if (kr->request->upstream->conf->next_upstream_tries != 0) {
        limit = ngx_min(limit,
                        kr->request->upstream->conf->next_upstream_tries);
    }

    limit = (limit > b->attempts) ? limit - b->attempts : 0;
    tries = ngx_min(tries, limit);

    pc->tries = (tries != 0) ? tries - stale : 0;
}


static ngx_uint_t
ngx_http_kube_untried(ngx_http_kube_balancing_t *b,
    ngx_http_kube_peers_t *peers)
{
    ngx_uint_t                    i, n;
    ngx_http_upstream_rr_peer_t  *peer;

    n = 0;

    for (i = 0; i < peers->listing.n; i++) {
        peer = peers->listing.elts[i].peer;

        if (!peer->down
            && !ngx_http_kube_tried(b, peer->sockaddr, peer->socklen))
        {
            n++;
        }
    }

    return n;
}


/*
 * Before another attempt: where there are newer peers the balancer begins
 * anew over these, else it goes on where it was.
 */

static ngx_int_t
ngx_http_kube_again(ngx_peer_connection_t *pc, ngx_http_kube_request_t *kr)
{
    ngx_uint_t                  tries;
    ngx_kube_view_t            *view;
    ngx_http_kube_pick_t       *pick;
    ngx_http_kube_peers_t      *peers;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;
    pick = &b->pick;

    if (b->attempts >= b->limit) {
        return NGX_BUSY;
    }

    view = ngx_http_kube_newest(pick);

    if (view == NULL) {
        return (pick->view != NULL) ? NGX_OK : NGX_BUSY;
    }

    view->refs++;
    ngx_http_kube_pick_release(pick);

    pick->view = view;
    pick->error = view->error;

    peers = view->data;

    if (peers->serial == b->serial) {
        kr->request->upstream->upstream = &peers->us;
        return NGX_OK;
    }

    pick->endpoint = NULL;
    tries = pc->tries;

    if (ngx_http_kube_attach(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    pc->tries = tries;

    return NGX_OK;
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


#if (NGX_HTTP_SSL)

static ngx_int_t
ngx_http_kube_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    ngx_http_kube_row_t  *row;

    row = kr->balancing.row;

    if (row == NULL) {
        return NGX_OK;
    }

    return ngx_http_kube_sessions_offer(&row->set->rows->sessions,
                                        &row->sessions,
                                        kr->request->upstream);
}


static void
ngx_http_kube_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    ngx_http_kube_row_t  *row;

    row = kr->balancing.row;

    /* its address may have left: the next server there is another one */

    if (row == NULL || row->listed == 0) {
        return;
    }

    ngx_http_kube_sessions_save(&row->set->rows->sessions, &row->sessions,
                                kr->request->upstream);
}

#endif

/*
 * ngx_http_kube_attempts - what a request does after a failed attempt: which
 * addresses it has tried, how often it may try again, and over which endpoints.
 *
 * Whether it may be sent again at all stays nginx's decision, and who picks the
 * next server the balancer's.  Workers only; called by the hooks around a
 * balancer.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_attempts.h"


/*
 * As many attempts a request has where its Service had fewer servers when it
 * began: pods that are replaced may all fail at their start.
 */
#define NGX_HTTP_KUBE_ATTEMPTS      3

/*
 * No request has more unless proxy_next_upstream_tries says so: connect() may
 * fail at once, and nginx lets nobody else have a turn before the last server
 * of a Service has failed.
 */
#define NGX_HTTP_KUBE_ATTEMPTS_MAX  256


static void ngx_http_kube_attempt_most(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static void ngx_http_kube_attempt_note(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_uint_t ngx_http_kube_attempt_stale(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_kube_view_t *ngx_http_kube_attempt_newest(
    ngx_http_kube_pick_t *pick, kube_resolve_error_t *error);
static ngx_uint_t ngx_http_kube_attempt_untried(
    ngx_http_kube_balancing_t *b, ngx_http_kube_peers_t *peers,
    ngx_uint_t most);


ngx_uint_t
ngx_http_kube_attempt_tried(ngx_http_kube_balancing_t *b,
    struct sockaddr *sockaddr, socklen_t socklen)
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
ngx_http_kube_attempt_note(ngx_peer_connection_t *pc,
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


ngx_uint_t
ngx_http_kube_attempt_failed(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr)
{
    ngx_uint_t                  stale;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    b->failed = 1;

    ngx_http_kube_attempt_most(pc, kr);

    stale = ngx_http_kube_attempt_stale(pc, kr);

    /*
     * Newer peers offer the address again, and others' requests fill the cache:
     * it may be the request that has the connections closed.  Where the peers
     * stay the same the balancer and the cache end it, as in stock nginx.
     * Where one attempt is allowed one change is not the end: pods that are
     * replaced close what is in the cache, one after the other.
     */

    if (stale && b->begun < ngx_max(b->limit, NGX_HTTP_KUBE_ATTEMPTS)) {
        b->attempts--;

    } else {
        ngx_http_kube_attempt_note(pc, kr);
    }

    return stale;
}


/*
 * Sets the limit, and what is counted beside it, once: few requests need them.
 * Until the first attempt has failed tries is the number of servers that there
 * were when it began, or proxy_next_upstream_tries where that is less.
 */

static void
ngx_http_kube_attempt_most(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr)
{
    ngx_uint_t                  most;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    if (b->limit != 0) {
        return;
    }

    most = kr->request->upstream->conf->next_upstream_tries;

    if (most == 0) {
        most = NGX_HTTP_KUBE_ATTEMPTS_MAX;
    }

    most = ngx_min(most, ngx_max(pc->tries, NGX_HTTP_KUBE_ATTEMPTS));
    b->limit = (uint32_t) ngx_min(most, NGX_MAX_UINT32_VALUE);
    b->begun = 0;
}


/*
 * An idle connection from the cache that the peer had closed in the meantime
 * says nothing about the peer; nginx does not count it as an attempt either.
 */

static ngx_uint_t
ngx_http_kube_attempt_stale(ngx_peer_connection_t *pc,
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


/*
 * The newest view with peers, borrowed, or NULL.  Keys that lead nowhere share
 * one where static servers serve them: *error is the key's own, not the view's.
 */

static ngx_kube_view_t *
ngx_http_kube_attempt_newest(ngx_http_kube_pick_t *pick,
    kube_resolve_error_t *error)
{
    kube_key_t        key;
    ngx_kube_ref_t   *ref;
    ngx_kube_view_t  *view;

    ref = pick->of->ref;

    if (ref->is_static) {
        view = ngx_kube_views_get(&pick->of->views, &ref->key, error);

    } else {
        view = ngx_kube_views_again(&pick->of->views, &pick->text, &key,
                                    error);
    }

    return (view != NULL && view->data != NULL) ? view : NULL;
}


/*
 * Stock nginx gives up when every peer of the set it began with has failed,
 * though new ones may be there, and there may be new ones for ever.
 */

void
ngx_http_kube_attempt_tries(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_uint_t stale)
{
    ngx_uint_t                  tries, limit;
    ngx_kube_view_t            *view;
    kube_resolve_error_t        error;
    ngx_http_kube_peers_t      *peers;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    /* nginx gives an attempt on a stale connection back itself */

    tries = pc->tries + stale;
    limit = (b->limit > b->attempts) ? b->limit - b->attempts : 0;
    view = ngx_http_kube_attempt_newest(&b->pick, &error);

    if (view != NULL) {
        peers = view->data;

        if (peers->serial != b->serial) {
            tries = ngx_http_kube_attempt_untried(b, peers, limit);
        }

    } else if (b->pick.view == NULL) {
        tries = 0;
    }

    tries = ngx_min(tries, limit);

    pc->tries = (tries != 0) ? tries - stale : 0;
}


/* As many as there are, or most: thousands would each be compared. */

static ngx_uint_t
ngx_http_kube_attempt_untried(ngx_http_kube_balancing_t *b,
    ngx_http_kube_peers_t *peers, ngx_uint_t most)
{
    ngx_uint_t                    i, n;
    ngx_http_upstream_rr_peer_t  *peer;

    n = 0;

    for (i = 0; i < peers->listing.n && n < most; i++) {
        peer = peers->listing.elts[i].peer;

        if (!peer->down
            && !ngx_http_kube_attempt_tried(b, peer->sockaddr,
                                            peer->socklen))
        {
            n++;
        }
    }

    return n;
}


ngx_int_t
ngx_http_kube_attempt_again(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_http_kube_begin_pt begin)
{
    ngx_uint_t                  tries;
    ngx_kube_view_t            *view;
    ngx_http_kube_pick_t       *pick;
    kube_resolve_error_t        error;
    ngx_http_kube_peers_t      *peers;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;
    pick = &b->pick;

    ngx_http_kube_attempt_most(pc, kr);

    if (b->attempts >= b->limit) {
        return NGX_BUSY;
    }

    view = ngx_http_kube_attempt_newest(pick, &error);

    if (view == NULL) {
        return (pick->view != NULL) ? NGX_OK : NGX_BUSY;
    }

    view->refs++;
    ngx_http_kube_pick_release(pick);

    pick->view = view;
    pick->error = error;

    peers = view->data;

    if (peers->serial == b->serial) {
        return NGX_OK;
    }

    pick->endpoint = NULL;
    b->begun++;
    tries = pc->tries;

    if (begin(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    pc->tries = tries;

    return NGX_OK;
}

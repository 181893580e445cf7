/*
 * ngx_http_kube_stock - the stock method runs unchanged over peers that hold
 * their rows.
 *
 * A method that is known to keep everything in ngx_http_upstream_rr_peer_t
 * ("plain") picks; giving back is done here, on the row, with the rules of
 * ngx_http_upstream_free_round_robin_peer(): the peers of the pick may be gone.
 * Any other method gives back itself, to a peer that its request keeps alive.
 *
 * Of a plain method these are all hooks that a request has of ours: what hooks
 * around keepalive would do is done here, beneath it.
 *
 * Workers only, but for ngx_http_kube_stock_init(), which is called at
 * configuration time, too.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_attempts.h"
#include "ngx_http_kube_stock.h"


static ngx_inline ngx_http_kube_request_t *ngx_http_kube_stock_enter(
    ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_kube_stock_init_plain(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_kube_stock_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_kube_stock_begin(ngx_http_kube_request_t *kr);
static ngx_int_t ngx_http_kube_stock_get_plain(ngx_peer_connection_t *pc,
    void *data);
static ngx_int_t ngx_http_kube_stock_get(ngx_peer_connection_t *pc,
    void *data);
static ngx_inline ngx_int_t ngx_http_kube_stock_take(
    ngx_peer_connection_t *pc, ngx_http_kube_request_t *kr,
    ngx_http_kube_peers_t *peers, ngx_http_kube_row_t *row);
static ngx_int_t ngx_http_kube_stock_again(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr) NGX_HTTP_KUBE_RARE;
static ngx_int_t ngx_http_kube_stock_reject(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b) NGX_HTTP_KUBE_RARE;
static ngx_int_t ngx_http_kube_stock_none(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_int_t rc) NGX_HTTP_KUBE_RARE;
static ngx_int_t ngx_http_kube_stock_unknown(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b) NGX_HTTP_KUBE_RARE;
static void ngx_http_kube_stock_free_plain(ngx_peer_connection_t *pc,
    void *data, ngx_uint_t state);
static void ngx_http_kube_stock_free_failed(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_uint_t state) NGX_HTTP_KUBE_RARE;
static void ngx_http_kube_stock_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_int_t ngx_http_kube_stock_keep(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr) NGX_HTTP_KUBE_RARE;
static void ngx_http_kube_stock_unpin(void *data);
static void ngx_http_kube_stock_lend(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b, ngx_uint_t state);
static ngx_inline void ngx_http_kube_stock_served(
    ngx_peer_connection_t *pc, ngx_http_kube_balancing_t *b);
static void ngx_http_kube_stock_failed(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b);
static void ngx_http_kube_stock_notify(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type);
#if (NGX_HTTP_SSL)
static ngx_int_t ngx_http_kube_stock_set_session(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_kube_stock_save_session(ngx_peer_connection_t *pc,
    void *data);
#endif
#ifdef angie_version
static ngx_int_t ngx_http_kube_stock_connect(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_kube_stock_close(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
#endif


ngx_int_t
ngx_http_kube_stock_init(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    ngx_conf_t                 conf;
    ngx_http_kube_srv_conf_t  *kscf;

    kscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_kube_module);

    conf = *cf;

    if (us != kscf->upstream) {
        conf.pool = cf->temp_pool;
    }

    if (kscf->balancer.method(&conf, us) != NGX_OK) {
        return NGX_ERROR;
    }

    kscf->balancer.method_init_peer = us->peer.init;
    us->peer.init = kscf->balancer.plain ? ngx_http_kube_stock_init_plain
                                         : ngx_http_kube_stock_init_peer;

    return NGX_OK;
}


/*
 * The method's own init_peer.  us: of peers that the balancing is attached to.
 * NULL: there is no request of ours, or the method failed.
 */

static ngx_inline ngx_http_kube_request_t *
ngx_http_kube_stock_enter(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_http_kube_request_t  *kr;

    kr = ngx_http_kube_request(r, 0);

    if (kr == NULL
        || ngx_http_kube_conf_of(kr)->balancer.method_init_peer(r, us)
           != NGX_OK)
    {
        return NULL;
    }

    return kr;
}


static ngx_int_t
ngx_http_kube_stock_init_plain(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_peer_connection_t    *pc;
    ngx_http_kube_request_t  *kr;

    kr = ngx_http_kube_stock_enter(r, us);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    pc = &r->upstream->peer;

    kr->balancing.method.data = pc->data;
    kr->balancing.method.get = pc->get;
    kr->balancing.method.free = pc->free;

    pc->data = kr;
    pc->get = ngx_http_kube_stock_get_plain;
    pc->free = ngx_http_kube_stock_free_plain;

#if (NGX_HTTP_SSL)
    pc->set_session = ngx_http_kube_stock_set_session;
    pc->save_session = ngx_http_kube_stock_save_session;
#endif

    /* of no plain method */

    pc->notify = NULL;

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_stock_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_peer_connection_t    *pc;
    ngx_http_kube_request_t  *kr;

    kr = ngx_http_kube_stock_enter(r, us);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    pc = &r->upstream->peer;

    ngx_http_kube_hooks_save(&kr->balancing.method, pc);

    pc->data = kr;
    pc->get = ngx_http_kube_stock_get;
    pc->free = ngx_http_kube_stock_free;

    if (pc->notify != NULL) {
        pc->notify = ngx_http_kube_stock_notify;
    }

#ifdef angie_version
    if (pc->connect != NULL) {
        pc->connect = ngx_http_kube_stock_connect;
    }

    if (pc->close != NULL) {
        pc->close = ngx_http_kube_stock_close;
    }
#endif

    return NGX_OK;
}


/* The method alone begins over newer peers; what wraps it stays. */

static ngx_int_t
ngx_http_kube_stock_begin(ngx_http_kube_request_t *kr)
{
    ngx_int_t                   rc;
    ngx_peer_connection_t      *pc, saved;
    ngx_http_kube_srv_conf_t   *kscf;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;
    pc = &kr->request->upstream->peer;
    kscf = ngx_http_kube_conf_of(kr);

    ngx_http_kube_peers_of_view(b);

    saved = *pc;
    ngx_http_kube_hooks_clear(pc);

    rc = kscf->balancer.method_init_peer(kr->request, &b->peers->us);

    if (rc == NGX_OK) {
        ngx_http_kube_hooks_save(&b->method, pc);
    }

    *pc = saved;

    return rc;
}


/*
 * Of a plain method, which hands out the address that its peer was made of: the
 * row's.
 */

static ngx_int_t
ngx_http_kube_stock_get_plain(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    ngx_int_t                   rc;
    ngx_uint_t                  number;
    ngx_http_kube_row_t        *row;
    ngx_http_kube_peers_t      *peers;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    /* not the first attempt: the view was given back */

    if (b->pick.view == NULL) {
        rc = ngx_http_kube_stock_again(pc, kr);
        if (rc != NGX_OK) {
            return rc;
        }
    }

    peers = b->peers;

pick:

    ngx_http_kube_rows_use(&peers->listing);

    rc = b->method.get(pc, b->method.data);

    if (rc != NGX_OK) {
        return ngx_http_kube_stock_none(pc, kr, rc);
    }

    row = ngx_http_kube_row_of(pc->sockaddr);
    number = ngx_http_kube_rows_number(&peers->listing, row);

    if (number == peers->listing.n) {
        return ngx_http_kube_stock_unknown(pc, b);
    }

    if (ngx_http_kube_stock_take(pc, kr, peers, row) != NGX_OK) {
        return NGX_ERROR;
    }

    if (b->tried != NULL
        && ngx_http_kube_attempt_tried(b, pc->sockaddr, pc->socklen))
    {
        if (ngx_http_kube_stock_reject(pc, b) != NGX_OK) {
            return ngx_http_kube_stock_none(pc, kr, NGX_BUSY);
        }

        goto pick;
    }

    b->attempts++;

    /*
     * Requests may last for days, while there is a view for each change of a
     * Service.
     */

    ngx_http_kube_pick_note(&b->pick,
                            ngx_http_kube_peers_endpoint(peers, b->pick.view,
                                                         number));
    ngx_http_kube_pick_release(&b->pick);

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_stock_get(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    ngx_int_t                   rc;
    ngx_uint_t                  number;
    ngx_http_kube_row_t        *row;
    ngx_http_kube_peers_t      *peers;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;
    peers = b->peers;

    ngx_http_kube_rows_use(&peers->listing);

    rc = b->method.get(pc, b->method.data);

    if (rc != NGX_OK && rc != NGX_DONE) {
        return ngx_http_kube_stock_none(pc, kr, rc);
    }

    row = ngx_http_kube_rows_picked(&peers->listing, pc->sockaddr, pc->socklen);

    number = (row != NULL) ? ngx_http_kube_rows_number(&peers->listing, row)
                           : peers->listing.n;

    if (number == peers->listing.n) {
        return ngx_http_kube_stock_unknown(pc, b);
    }

    if (ngx_http_kube_stock_take(pc, kr, peers, row) != NGX_OK) {
        return NGX_ERROR;
    }

    b->number = number;

    return rc;
}


/*
 * The server in use, whose row is pinned until the request ends.  NGX_ERROR: no
 * memory, and what was picked is given back.
 */

static ngx_inline ngx_int_t
ngx_http_kube_stock_take(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_http_kube_peers_t *peers,
    ngx_http_kube_row_t *row)
{
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    if (b->pinned != row) {
        if (b->pinned != NULL && ngx_http_kube_stock_keep(pc, kr) != NGX_OK) {
            return NGX_ERROR;
        }

        ngx_http_kube_row_pin(row);
        b->pinned = row;
    }

    b->row = row;
    b->single = peers->single;

    pc->name = &row->name;

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_stock_again(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr)
{
    ngx_int_t                   rc;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    b->failed = 0;

    rc = ngx_http_kube_attempt_again(pc, kr, ngx_http_kube_stock_begin);

    if (rc == NGX_OK) {
        b->rejections = ngx_http_kube_attempt_picks(b);

    } else if (rc == NGX_BUSY) {
        pc->name = &ngx_http_kube_conf_of(kr)->upstream->host;
    }

    return rc;
}


/*
 * No address is asked twice, also by a method over newer peers, which does not
 * know what was tried before: what it picks again is given back.
 */

static ngx_int_t
ngx_http_kube_stock_reject(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b)
{
    ngx_http_kube_server_t  server;

    /* it was not asked: nothing is known of it */

    ngx_http_kube_row_get(b->row, &server);
    server.conns--;
    ngx_http_kube_row_set(b->row, &server);

    b->row = NULL;
    pc->sockaddr = NULL;

    return (--b->rejections == 0) ? NGX_BUSY : NGX_OK;
}


/* No server is left: such a request may last elsewhere, without the view. */

static ngx_int_t
ngx_http_kube_stock_none(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_int_t rc)
{
    if (rc == NGX_BUSY) {
        pc->name = &ngx_http_kube_conf_of(kr)->upstream->host;

        if (ngx_http_kube_conf_of(kr)->balancer.plain) {
            ngx_http_kube_pick_leave(&kr->balancing.pick);
        }
    }

    return rc;
}


/* Balancers hand out the pointers they were given. */

static ngx_int_t
ngx_http_kube_stock_unknown(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b)
{
    ngx_log_error(NGX_LOG_ALERT, pc->log, 0,
                  "balancer picked an address that it was not given");
    b->method.free(pc, b->method.data, 0);
    pc->sockaddr = NULL;

    return NGX_ERROR;
}


static void
ngx_http_kube_stock_free_plain(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_kube_request_t *kr = data;

    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    if (b->row == NULL || (state & (NGX_PEER_FAILED|NGX_PEER_NEXT))) {
        ngx_http_kube_stock_free_failed(pc, kr, state);
        return;
    }

    ngx_http_kube_stock_served(pc, b);
    b->row = NULL;
}


static void
ngx_http_kube_stock_free_failed(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_uint_t state)
{
    ngx_uint_t                  stale;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    if (b->row == NULL) {
        return;
    }

    stale = ngx_http_kube_attempt_failed(pc, kr);

    if (b->single || !(state & NGX_PEER_FAILED)) {
        ngx_http_kube_stock_served(pc, b);

    } else {
        ngx_http_kube_stock_failed(pc, b);
    }

    b->row = NULL;

    ngx_http_kube_attempt_tries(pc, kr, stale);
}


/*
 * Another server's row is pinned, of an earlier attempt: it stays so until the
 * request ends.  NGX_ERROR: no memory, and what was picked is given back.
 */

static ngx_int_t
ngx_http_kube_stock_keep(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(kr->request->pool, 0);

    if (cln == NULL) {
        kr->balancing.method.free(pc, kr->balancing.method.data, 0);
        pc->sockaddr = NULL;
        return NGX_ERROR;
    }

    cln->handler = ngx_http_kube_stock_unpin;
    cln->data = kr->balancing.pinned;

    return NGX_OK;
}


static void
ngx_http_kube_stock_unpin(void *data)
{
    ngx_http_kube_row_unpin(data);
}


static void
ngx_http_kube_stock_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_kube_request_t *kr = data;

    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    if (b->row == NULL) {
        return;
    }

    ngx_http_kube_stock_lend(pc, b, state);
    b->row = NULL;
}


/* What ngx_http_upstream_free_round_robin_peer() does to its peer. */

static ngx_inline void
ngx_http_kube_stock_served(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b)
{
    ngx_http_kube_row_served(b->row, b->single);

    if (b->single) {
        pc->tries = 0;

    } else if (pc->tries) {
        pc->tries--;
    }
}


/* The same where the attempt failed. */

static void
ngx_http_kube_stock_failed(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b)
{
    time_t                   now;
    ngx_http_kube_row_t     *row;
    ngx_http_kube_server_t   server;

    row = b->row;
    now = ngx_time();

    ngx_http_kube_row_get(row, &server);

    server.conns--;
    server.fails++;
    server.accessed = now;
    server.checked = now;

    if (row->max_fails) {
        server.effective_weight -= row->weight / (ngx_int_t) row->max_fails;

        if (server.fails >= row->max_fails) {
            ngx_log_error(NGX_LOG_WARN, pc->log, 0,
                          "upstream server temporarily disabled");
        }
    }

    server.effective_weight = ngx_max(server.effective_weight, 0);

    ngx_http_kube_row_set(row, &server);

    if (pc->tries) {
        pc->tries--;
    }
}


/* Its own peer may be of an old revision: it is lent the row for the time. */

static void
ngx_http_kube_stock_lend(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b, ngx_uint_t state)
{
    ngx_uint_t                    fails;
    ngx_http_kube_server_t        server;
    ngx_http_upstream_rr_peer_t  *peer;

    peer = b->peers->listing.elts[b->number].peer;

    ngx_http_kube_row_get(b->row, &server);
    ngx_http_kube_server_write(peer, &server);
    fails = server.fails;

    b->method.free(pc, b->method.data, state);

    ngx_http_kube_server_read(peer, &server);

    if (b->rejected) {
        server.fails = fails;
    }

    ngx_http_kube_row_set(b->row, &server);
}


static void
ngx_http_kube_stock_notify(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type)
{
    ngx_http_kube_request_t *kr = data;

    kr->balancing.method.notify(pc, kr->balancing.method.data, type);
}


#ifdef angie_version

static ngx_int_t
ngx_http_kube_stock_connect(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    return kr->balancing.method.connect(pc, kr->balancing.method.data);
}


static void
ngx_http_kube_stock_close(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_kube_request_t *kr = data;

    kr->balancing.method.close(pc, kr->balancing.method.data, state);
}

#endif


#if (NGX_HTTP_SSL)

static ngx_int_t
ngx_http_kube_stock_set_session(ngx_peer_connection_t *pc, void *data)
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
ngx_http_kube_stock_save_session(ngx_peer_connection_t *pc, void *data)
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


void
ngx_http_kube_stock_sessions(ngx_peer_connection_t *pc)
{
#if (NGX_HTTP_SSL)
    pc->set_session = ngx_http_kube_stock_set_session;
    pc->save_session = ngx_http_kube_stock_save_session;
#endif
}

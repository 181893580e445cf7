/*
 * ngx_http_kube_stock - the stock method runs unchanged over peers that hold
 * their rows.
 *
 * A method that is known to keep everything in ngx_http_upstream_rr_peer_t
 * ("plain") picks; giving back is done here, on the row, with the rules of
 * ngx_http_upstream_free_round_robin_peer(): the peers of the pick may be gone.
 * Any other method gives back itself, to a peer that its request keeps alive.
 *
 * Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_request.h"
#include "ngx_http_kube_stock.h"


static ngx_int_t ngx_http_kube_stock_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_http_kube_stock_get(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_kube_stock_free(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_int_t ngx_http_kube_stock_pin(ngx_http_kube_request_t *kr,
    ngx_http_kube_row_t *row);
static void ngx_http_kube_stock_unpin(void *data);
static void ngx_http_kube_stock_lend(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b, ngx_uint_t state);
static void ngx_http_kube_stock_judge(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b, ngx_uint_t state);
static void ngx_http_kube_stock_failed(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b);
static void ngx_http_kube_stock_notify(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type);
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
    us->peer.init = ngx_http_kube_stock_init_peer;

    return NGX_OK;
}


/* us: of peers that the balancing is attached to. */

static ngx_int_t
ngx_http_kube_stock_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_peer_connection_t     *pc;
    ngx_http_kube_request_t   *kr;
    ngx_http_kube_srv_conf_t  *kscf;

    kscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_kube_module);

    kr = ngx_http_kube_request(r, 0);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    if (kscf->balancer.method_init_peer(r, us) != NGX_OK) {
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


static ngx_int_t
ngx_http_kube_stock_get(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    ngx_int_t                   rc;
    ngx_http_kube_listed_t     *listed;
    ngx_http_kube_balancing_t  *b;

    b = &kr->balancing;

    ngx_http_kube_rows_use(&b->peers->listing);

    rc = b->method.get(pc, b->method.data);

    if (rc != NGX_OK && rc != NGX_DONE) {
        return rc;
    }

    listed = ngx_http_kube_peers_listed(b->peers, pc->sockaddr);

    if (listed == NULL) {

        /* balancers hand out the pointers they were given */

        ngx_log_error(NGX_LOG_ALERT, pc->log, 0,
                      "balancer picked an address that it was not given");
        b->method.free(pc, b->method.data, 0);
        pc->sockaddr = NULL;

        return NGX_ERROR;
    }

    if (ngx_http_kube_stock_pin(kr, listed->row) != NGX_OK) {
        b->method.free(pc, b->method.data, 0);
        pc->sockaddr = NULL;

        return NGX_ERROR;
    }

    b->row = listed->row;
    b->peer = listed->peer;
    b->single = b->peers->single;
    b->number = listed - b->peers->listing.elts;

    pc->sockaddr = b->row->sockaddr;
    pc->name = &b->row->name;

    return rc;
}


/*
 * Pins the server's row until the request ends.  Of an earlier attempt another
 * one may be pinned, which then stays so too.
 */

static ngx_int_t
ngx_http_kube_stock_pin(ngx_http_kube_request_t *kr, ngx_http_kube_row_t *row)
{
    ngx_pool_cleanup_t   *cln;
    ngx_http_kube_row_t  *pinned;

    pinned = kr->balancing.pinned;

    if (pinned == row) {
        return NGX_OK;
    }

    if (pinned != NULL) {
        cln = ngx_pool_cleanup_add(kr->request->pool, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_kube_stock_unpin;
        cln->data = pinned;
    }

    kr->balancing.pinned = row;
    ngx_http_kube_row_pin(row);

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

    if (ngx_http_kube_conf_of(kr)->balancer.plain) {
        ngx_http_kube_stock_judge(pc, b, state);

    } else {
        ngx_http_kube_stock_lend(pc, b, state);
    }

    b->row = NULL;
}


/* What ngx_http_upstream_free_round_robin_peer() does to its peer. */

static void
ngx_http_kube_stock_judge(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b, ngx_uint_t state)
{
    if (!b->rejected && (b->single || !(state & NGX_PEER_FAILED))) {
        ngx_http_kube_row_served(b->row, b->single);

    } else {
        ngx_http_kube_stock_failed(pc, b);
    }

    if (b->single) {
        pc->tries = 0;

    } else if (pc->tries) {
        pc->tries--;
    }
}


static void
ngx_http_kube_stock_failed(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b)
{
    time_t                   now;
    ngx_http_kube_row_t     *row;
    ngx_http_kube_server_t   server;

    row = b->row;
    ngx_http_kube_row_get(row, &server);

    server.conns--;

    /* one that was not asked: nothing is known of it */

    if (!b->rejected) {
        now = ngx_time();

        server.fails++;
        server.accessed = now;
        server.checked = now;

        if (row->max_fails) {
            server.effective_weight -= row->weight
                                       / (ngx_int_t) row->max_fails;

            if (server.fails >= row->max_fails) {
                ngx_log_error(NGX_LOG_WARN, pc->log, 0,
                              "upstream server temporarily disabled");
            }
        }

        if (server.effective_weight < 0) {
            server.effective_weight = 0;
        }
    }

    ngx_http_kube_row_set(row, &server);
}


/* Its own peer may be of an old revision: it is lent the row for the time. */

static void
ngx_http_kube_stock_lend(ngx_peer_connection_t *pc,
    ngx_http_kube_balancing_t *b, ngx_uint_t state)
{
    ngx_uint_t               fails;
    ngx_http_kube_server_t   server;

    ngx_http_kube_row_get(b->row, &server);
    ngx_http_kube_server_write(b->peer, &server);
    fails = server.fails;

    b->method.free(pc, b->method.data, state);

    ngx_http_kube_server_read(b->peer, &server);

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

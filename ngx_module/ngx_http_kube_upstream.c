/*
 * ngx_http_kube_upstream - what stands around the stock balancer of an
 * upstream with kube_service while a request is proxied.
 *
 * The balancer named in the block runs unchanged, over the peers of an
 * instance (ngx_http_kube_instance.c).  Around it: the key is resolved, the
 * endpoint picked is remembered for the variables, and after a failed attempt
 * the next one looks at the newest endpoints, carrying the addresses tried.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"


static ngx_int_t ngx_http_kube_request_reset(ngx_http_kube_request_t *kr);
static ngx_int_t ngx_http_kube_retire(ngx_http_kube_request_t *kr);
static void ngx_http_kube_retired(void *data);
static ngx_int_t ngx_http_kube_attach(ngx_http_kube_request_t *kr,
    ngx_http_kube_instance_t *inst);
static void ngx_http_kube_unwrap(ngx_peer_connection_t *pc);
static void ngx_http_kube_wrap(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_int_t ngx_http_kube_unresolved(ngx_http_request_t *r,
    ngx_http_kube_request_t *kr);
static ngx_int_t ngx_http_kube_get_nothing(ngx_peer_connection_t *pc,
    void *data);
static void ngx_http_kube_free_nothing(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_int_t ngx_http_kube_get_peer(ngx_peer_connection_t *pc,
    void *data);
static ngx_int_t ngx_http_kube_get_untried(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static void ngx_http_kube_reject(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static void ngx_http_kube_free_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state);
static ngx_uint_t ngx_http_kube_tried(ngx_http_kube_request_t *kr,
    struct sockaddr *sockaddr, socklen_t socklen);
static void ngx_http_kube_tried_add(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_uint_t ngx_http_kube_gone_stale(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);
static ngx_http_kube_instance_t *ngx_http_kube_newest(
    ngx_http_kube_request_t *kr);
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
    ngx_http_kube_request_t   *kr;
    ngx_http_kube_srv_conf_t  *kscf;
    ngx_http_kube_instance_t  *inst;

    kscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_kube_module);

    kr = ngx_http_kube_request(r, 1);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_kube_request_reset(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    kr->kscf = kscf;
    kr->informer = kscf->use->informer;

    kr->key = kscf->use->key_text;

    if (!kscf->use->is_static
        && ngx_http_complex_value(r, &kscf->key, &kr->key) != NGX_OK)
    {
        return NGX_ERROR;
    }

    inst = ngx_http_kube_instance_get(kscf, &kr->key, r->connection->log,
                                      &kr->error);

    ngx_kube_count(kr->informer, NGX_KUBE_COUNT_RESOLVED(kr->error));

    if (inst == NULL || !inst->usable) {

        if (inst != NULL) {
            inst->refs++;
            kr->instance = inst;
        }

        return ngx_http_kube_unresolved(r, kr);
    }

    return ngx_http_kube_attach(kr, inst);
}


/* A request may be proxied again, after X-Accel-Redirect or error_page. */

static ngx_int_t
ngx_http_kube_request_reset(ngx_http_kube_request_t *kr)
{
    if (ngx_http_kube_retire(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    kr->endpoint = NULL;
    kr->tried = NULL;
    kr->attempts = 0;
    kr->failed = 0;
    kr->switched = 0;
    kr->error = KUBE_RESOLVE_OK;
    ngx_str_null(&kr->key);

    return NGX_OK;
}


/*
 * What nginx keeps of an attempt ($upstream_addr, messages in the log) views
 * the names of its peers: an instance once used stays until the request ends.
 */

static ngx_int_t
ngx_http_kube_retire(ngx_http_kube_request_t *kr)
{
    ngx_pool_cleanup_t  *cln;

    if (kr->instance == NULL) {
        return NGX_OK;
    }

    cln = ngx_pool_cleanup_add(kr->request->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_kube_retired;
    cln->data = kr->instance;

    kr->instance = NULL;

    return NGX_OK;
}


static void
ngx_http_kube_retired(void *data)
{
    ngx_http_kube_instance_release(data);
}


static ngx_int_t
ngx_http_kube_attach(ngx_http_kube_request_t *kr,
    ngx_http_kube_instance_t *inst)
{
    ngx_http_upstream_t  *u;

    u = kr->request->upstream;

    if (ngx_http_kube_retire(kr) != NGX_OK) {
        return NGX_ERROR;
    }

    inst->refs++;
    kr->instance = inst;

    /* Angie looks for the balancer's part here, not in the peer's data */

    u->upstream = &inst->us;

    ngx_http_kube_unwrap(&u->peer);

    if (kr->kscf->init_peer(kr->request, &inst->us) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_kube_wrap(&u->peer, kr);

    return NGX_OK;
}


/* Balancers build upon what is there: it would be ours. */

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
    kr->data = pc->data;
    kr->get = pc->get;
    kr->free = pc->free;
    kr->notify = pc->notify;

    pc->data = kr;
    pc->get = ngx_http_kube_get_peer;
    pc->free = ngx_http_kube_free_peer;
    pc->notify = kr->notify ? ngx_http_kube_notify_peer : NULL;

#ifdef angie_version
    kr->connect = pc->connect;
    kr->close = pc->close;
    pc->connect = kr->connect ? ngx_http_kube_connect_peer : NULL;
    pc->close = kr->close ? ngx_http_kube_close_peer : NULL;
#endif

#if (NGX_HTTP_SSL)
    kr->set_session = pc->set_session;
    kr->save_session = pc->save_session;
    pc->set_session = ngx_http_kube_set_session;
    pc->save_session = ngx_http_kube_save_session;
#endif
}


/* 502, with the reason in $kube_error and one line in the log now and then. */

static ngx_int_t
ngx_http_kube_unresolved(ngx_http_request_t *r, ngx_http_kube_request_t *kr)
{
    ngx_http_upstream_t  *u;

    if (kr->error == KUBE_RESOLVE_OK) {
        kr->error = KUBE_RESOLVE_NO_ENDPOINTS;
    }

    ngx_kube_log_unresolved(kr->informer, r->connection->log, kr->error,
                            &kr->key);

    u = r->upstream;

    ngx_http_kube_unwrap(&u->peer);

    u->peer.data = kr;
    u->peer.get = ngx_http_kube_get_nothing;
    u->peer.free = ngx_http_kube_free_nothing;
    u->peer.tries = 0;

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_get_nothing(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    pc->sockaddr = NULL;
    pc->name = &kr->kscf->upstream->host;
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

    ngx_int_t  rc;

    if (kr->failed) {
        kr->failed = 0;

        if (ngx_http_kube_switch(pc, kr) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    rc = ngx_http_kube_get_untried(pc, kr);

    if (rc == NGX_OK || rc == NGX_DONE) {
        kr->attempts++;
        kr->endpoint = ngx_http_kube_instance_endpoint(kr->instance,
                                                       pc->sockaddr);
    }

    return rc;
}


/*
 * The balancer of a newer instance does not know what was tried before: what
 * it picks again is given back.
 */

static ngx_int_t
ngx_http_kube_get_untried(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr)
{
    ngx_int_t   rc;
    ngx_uint_t  n, tries;

    for (n = 0; n < 2 * kr->instance->view->n + 32; n++) {

        rc = kr->get(pc, kr->data);

        if ((rc != NGX_OK && rc != NGX_DONE)
            || !kr->switched
            || !ngx_http_kube_tried(kr, pc->sockaddr, pc->socklen))
        {
            return rc;
        }

        tries = pc->tries;
        ngx_http_kube_reject(pc, kr);
        pc->tries = tries;
    }

    pc->name = &kr->kscf->upstream->host;

    return NGX_BUSY;
}


static void
ngx_http_kube_reject(ngx_peer_connection_t *pc, ngx_http_kube_request_t *kr)
{
    kr->free(pc, kr->data, 0);

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

    ngx_uint_t  stale;

    stale = 0;

    if (state & NGX_PEER_FAILED) {
        kr->failed = 1;
        stale = ngx_http_kube_gone_stale(pc, kr);

        if (stale) {
            kr->attempts--;

        } else {
            ngx_http_kube_tried_add(pc, kr);
        }
    }

    kr->free(pc, kr->data, state);

    if (kr->failed) {
        ngx_http_kube_more_tries(pc, kr, stale);
    }
}


static ngx_uint_t
ngx_http_kube_tried(ngx_http_kube_request_t *kr, struct sockaddr *sockaddr,
    socklen_t socklen)
{
    ngx_uint_t       i;
    ngx_sockaddr_t  *tried;

    if (kr->tried == NULL) {
        return 0;
    }

    tried = kr->tried->elts;

    for (i = 0; i < kr->tried->nelts; i++) {
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
    ngx_sockaddr_t  *tried;

    if (pc->sockaddr == NULL
        || pc->socklen > (socklen_t) sizeof(ngx_sockaddr_t))
    {
        return;
    }

    if (kr->tried == NULL) {
        kr->tried = ngx_array_create(kr->request->pool, 4,
                                     sizeof(ngx_sockaddr_t));
        if (kr->tried == NULL) {
            return;
        }
    }

    tried = ngx_array_push(kr->tried);
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


/* Another instance than the one in use, or NULL. */

static ngx_http_kube_instance_t *
ngx_http_kube_newest(ngx_http_kube_request_t *kr)
{
    kube_resolve_error_t       error;
    ngx_http_kube_instance_t  *inst;

    inst = ngx_http_kube_instance_get(kr->kscf, &kr->key,
                                      kr->request->connection->log, &error);

    if (inst == NULL || !inst->usable || inst == kr->instance) {
        return NULL;
    }

    return inst;
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
    ngx_uint_t                 i, n, limit;
    ngx_sockaddr_t            *addr;
    ngx_http_kube_instance_t  *inst;

    inst = ngx_http_kube_newest(kr);
    if (inst == NULL) {
        return;
    }

    n = kr->kscf->servers.nelts;

    for (i = 0; i < inst->view->n; i++) {
        addr = &inst->addrs[i];

        if (!ngx_http_kube_tried(kr, &addr->sockaddr,
                                 ngx_kube_socklen(&addr->sockaddr)))
        {
            n++;
        }
    }

    limit = kr->request->upstream->conf->next_upstream_tries;

    if (limit != 0) {
        limit = (limit > kr->attempts) ? limit - kr->attempts : 0;
        n = ngx_min(n, limit);
    }

    /* nginx gives the attempt back itself */

    pc->tries = (stale && n != 0) ? n - 1 : n;
}


static ngx_int_t
ngx_http_kube_switch(ngx_peer_connection_t *pc, ngx_http_kube_request_t *kr)
{
    ngx_uint_t                 tries;
    ngx_http_kube_instance_t  *inst;

    inst = ngx_http_kube_newest(kr);
    if (inst == NULL) {
        return NGX_OK;
    }

    tries = pc->tries;

    if (ngx_http_kube_attach(kr, inst) != NGX_OK) {
        return NGX_ERROR;
    }

    pc->tries = tries;
    kr->switched = 1;

    return NGX_OK;
}


static void
ngx_http_kube_notify_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t type)
{
    ngx_http_kube_request_t *kr = data;

    kr->notify(pc, kr->data, type);
}


#ifdef angie_version

static ngx_int_t
ngx_http_kube_connect_peer(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    return kr->connect(pc, kr->data);
}


static void
ngx_http_kube_close_peer(ngx_peer_connection_t *pc, void *data,
    ngx_uint_t state)
{
    ngx_http_kube_request_t *kr = data;

    kr->close(pc, kr->data, state);
}

#endif


#if (NGX_HTTP_SSL)

static ngx_int_t
ngx_http_kube_set_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    return kr->set_session(pc, kr->data);
}


static void
ngx_http_kube_save_session(ngx_peer_connection_t *pc, void *data)
{
    ngx_http_kube_request_t *kr = data;

    kr->save_session(pc, kr->data);
}

#endif

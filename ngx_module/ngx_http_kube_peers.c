/*
 * ngx_http_kube_peers - server lines made of endpoints, handed to the
 * upstream's own init_upstream.
 *
 * It knows no balancer: what of a balancer's configuration is cloned is in
 * ngx_http_kube_balancer.c.  All balancers that are let in there keep
 * ngx_http_upstream_rr_peers_t.  Workers, but for what the header names.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"
#include "ngx_http_kube_peers.h"


static ngx_int_t ngx_http_kube_peers_servers(ngx_http_kube_srv_conf_t *kscf,
    ngx_kube_view_t *view, ngx_http_kube_peers_t *peers, ngx_pool_t *scratch);
static ngx_int_t ngx_http_kube_peers_addrs(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_peers_t *peers, ngx_pool_t *scratch);
static ngx_addr_t *ngx_http_kube_peers_addrs_of(ngx_array_t *servers,
    ngx_uint_t first, ngx_uint_t backup, ngx_addr_t *addr);
static ngx_int_t ngx_http_kube_peers_init(ngx_http_kube_srv_conf_t *kscf,
    ngx_kube_view_t *view, ngx_http_kube_peers_t *peers, ngx_pool_t *scratch);
static ngx_int_t ngx_http_kube_peers_list(ngx_http_kube_srv_conf_t *kscf,
    ngx_kube_view_t *view, ngx_http_kube_peers_t *peers, ngx_pool_t *scratch);
static ngx_uint_t ngx_http_kube_peers_lines(ngx_array_t *servers,
    ngx_uint_t first, uint32_t backup, ngx_http_kube_line_t *lines,
    ngx_uint_t n);
static ngx_int_t ngx_http_kube_peers_take(ngx_http_kube_peers_t *peers);
static void ngx_http_kube_peers_unlist(void *data);


ngx_int_t
ngx_http_kube_peers_made(ngx_kube_views_t *views, ngx_kube_view_t *view,
    ngx_kube_view_t *old)
{
    ngx_int_t                  rc;
    ngx_pool_t                *scratch;
    ngx_http_kube_peers_t     *peers;
    ngx_http_kube_srv_conf_t  *kscf;

    kscf = views->data;

    if (view->n == 0 && kscf->servers.nelts == 0) {
        return NGX_OK;
    }

    peers = ngx_pcalloc(view->pool, sizeof(ngx_http_kube_peers_t));
    if (peers == NULL) {
        return NGX_ERROR;
    }

    /* what server lines and clones leave is of no use later */

    scratch = view->pool;

    if (kscf->balancer.plain) {
        scratch = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, ngx_cycle->log);
        if (scratch == NULL) {
            return NGX_ERROR;
        }
    }

    rc = ngx_http_kube_peers_servers(kscf, view, peers, scratch);

    if (rc == NGX_OK) {
        rc = ngx_http_kube_peers_init(kscf, view, peers, scratch);
    }

    if (scratch != view->pool) {
        ngx_destroy_pool(scratch);
        peers->us.servers = kscf->upstream->servers;
    }

    if (rc != NGX_OK || ngx_http_kube_peers_take(peers) != NGX_OK) {
        return NGX_ERROR;
    }

    view->data = peers;

    return NGX_OK;
}


/*
 * Lists the rows of endpoints and of static servers, in the order of the peers
 * that stock nginx makes: those that are backups apart.
 */

static ngx_int_t
ngx_http_kube_peers_list(ngx_http_kube_srv_conf_t *kscf,
    ngx_kube_view_t *view, ngx_http_kube_peers_t *peers, ngx_pool_t *scratch)
{
    ngx_uint_t                   i, n, primary;
    ngx_array_t                 *servers;
    ngx_pool_cleanup_t          *cln;
    ngx_http_kube_line_t        *lines;
    ngx_http_upstream_server_t  *server;

    servers = peers->us.servers;
    server = servers->elts;

    n = 0;

    for (i = view->n; i < servers->nelts; i++) {
        n += server[i].naddrs;
    }

    /* one more: without static servers, too, there is a place for lines */

    lines = ngx_palloc(scratch, (n + 1) * sizeof(ngx_http_kube_line_t));
    if (lines == NULL) {
        return NGX_ERROR;
    }

    primary = ngx_http_kube_peers_lines(servers, view->n, 0, lines, 0);
    n = ngx_http_kube_peers_lines(servers, view->n, NGX_HTTP_KUBE_LINE_BACKUP,
                                  lines, primary);

    peers->n = view->n;
    peers->listing.elts = ngx_palloc(view->pool,
                                     (view->n + n)
                                     * sizeof(ngx_http_kube_listed_t));
    cln = ngx_pool_cleanup_add(view->pool, 0);

    if (peers->listing.elts == NULL
        || cln == NULL
        || ngx_http_kube_rows_list(&kscf->rows, view, lines, n,
                                   &peers->listing)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_kube_peers_unlist;
    cln->data = peers;

    return NGX_OK;
}


/*
 * Adds to n lines those of static servers that are backups, or are not; returns
 * how many there are then.
 */

static ngx_uint_t
ngx_http_kube_peers_lines(ngx_array_t *servers, ngx_uint_t first,
    uint32_t backup, ngx_http_kube_line_t *lines, ngx_uint_t n)
{
    uint32_t                     number;
    ngx_uint_t                   i, k;
    ngx_http_upstream_server_t  *server;

    server = servers->elts;
    number = 0;

    for (i = first; i < servers->nelts; i++) {

        if (server[i].backup != (backup != 0)) {
            continue;
        }

        for (k = 0; k < server[i].naddrs; k++) {
            lines[n].line = ++number | backup;
            lines[n].addr = &server[i].addrs[k];
            n++;
        }
    }

    return n;
}


/* Tells the listing which peers were made of its rows. */

static ngx_int_t
ngx_http_kube_peers_take(ngx_http_kube_peers_t *peers)
{
    ngx_uint_t                     i, n;
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_upstream_rr_peers_t  *primary, *backup;

    static ngx_uint_t  serial;

    primary = peers->us.peer.data;
    backup = primary->next;
    n = peers->listing.n;

    for (i = 0, peer = primary->peer; i < n; i++, peer = peer->next) {

        if (peer == NULL && backup != NULL) {
            peer = backup->peer;
            backup = NULL;
        }

        if (peer == NULL
            || peer->sockaddr
               != ngx_http_kube_row_sockaddr(peers->listing.elts[i].row))
        {
            return NGX_ERROR;
        }

        ngx_http_kube_rows_peer(&peers->listing, i, peer);
    }

    peers->single = primary->single;
    peers->serial = ++serial;

    return NGX_OK;
}


static void
ngx_http_kube_peers_unlist(void *data)
{
    ngx_http_kube_peers_t *peers = data;

    ngx_http_kube_rows_unlist(&peers->listing);
}


/*
 * What server lines would have made: endpoints first, then static servers.
 * The rows are there by then; all addresses and names are theirs.
 */

static ngx_int_t
ngx_http_kube_peers_servers(ngx_http_kube_srv_conf_t *kscf,
    ngx_kube_view_t *view, ngx_http_kube_peers_t *peers, ngx_pool_t *scratch)
{
    ngx_uint_t                   i, n, primary;
    ngx_array_t                 *servers;
    ngx_http_upstream_server_t  *server, *fixed;

    static ngx_str_t  name = ngx_string("kube_service");

    peers->us = *kscf->upstream;

    /* one more than there are: none of the pushes below allocates */

    n = view->n + kscf->servers.nelts + 1;
    servers = ngx_array_create(scratch, 1, sizeof(ngx_http_upstream_server_t));

    if (servers == NULL) {
        return NGX_ERROR;
    }

    servers->elts = ngx_kube_view_scratch(scratch, n * servers->size);
    if (servers->elts == NULL) {
        return NGX_ERROR;
    }

    servers->nalloc = n;
    servers->nelts = view->n;
    peers->us.servers = servers;

    primary = view->n;
    fixed = kscf->servers.elts;

    for (i = 0; i < kscf->servers.nelts; i++) {
        server = ngx_array_push(servers);
        *server = fixed[i];

        if (!fixed[i].backup) {
            primary++;
        }
    }

    if (primary == 0
        && ngx_http_kube_peers_down(view->pool, servers, &name) == NULL)
    {
        return NGX_ERROR;
    }

    if (ngx_http_kube_peers_list(kscf, view, peers, scratch) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_kube_peers_addrs(kscf, peers, scratch);
}


static ngx_int_t
ngx_http_kube_peers_addrs(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_peers_t *peers, ngx_pool_t *scratch)
{
    ngx_uint_t                   i;
    ngx_addr_t                  *addr;
    ngx_array_t                 *servers;
    ngx_http_kube_row_t         *row;
    ngx_http_kube_listed_t      *listed;
    ngx_http_upstream_server_t  *server, like;

    servers = peers->us.servers;
    server = servers->elts;
    listed = peers->listing.elts;

    addr = ngx_kube_view_scratch(scratch,
                                 peers->listing.n * sizeof(ngx_addr_t));
    if (addr == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < peers->listing.n; i++) {
        row = listed[i].row;
        addr[i].sockaddr = ngx_http_kube_row_sockaddr(row);
        addr[i].socklen = ngx_http_kube_row_socklen(row);
        addr[i].name = row->name;
    }

    ngx_memzero(&like, sizeof(ngx_http_upstream_server_t));

    like.naddrs = 1;
    like.weight = (ngx_uint_t) kscf->weight;
    like.max_conns = (ngx_uint_t) kscf->max_conns;
    like.max_fails = (ngx_uint_t) kscf->max_fails;
    like.fail_timeout = kscf->fail_timeout;

    for (i = 0; i < peers->n; i++) {
        server[i] = like;
        server[i].name = addr[i].name;
        server[i].addrs = &addr[i];
    }

    addr += peers->n;
    addr = ngx_http_kube_peers_addrs_of(servers, peers->n, 0, addr);
    (void) ngx_http_kube_peers_addrs_of(servers, peers->n, 1, addr);

    return NGX_OK;
}


/* Hands addresses to static servers, or to those that are backups. */

static ngx_addr_t *
ngx_http_kube_peers_addrs_of(ngx_array_t *servers, ngx_uint_t first,
    ngx_uint_t backup, ngx_addr_t *addr)
{
    ngx_uint_t                   i;
    ngx_http_upstream_server_t  *server;

    server = servers->elts;

    for (i = first; i < servers->nelts; i++) {
        if (server[i].backup == backup) {
            server[i].addrs = addr;
            addr += server[i].naddrs;
        }
    }

    return addr;
}


ngx_http_upstream_server_t *
ngx_http_kube_peers_down(ngx_pool_t *pool, ngx_array_t *servers,
    ngx_str_t *name)
{
    ngx_addr_t                  *addr;
    ngx_sockaddr_t              *sa;
    ngx_http_upstream_server_t  *server;

    addr = ngx_pcalloc(pool, sizeof(ngx_addr_t));
    sa = ngx_pcalloc(pool, sizeof(ngx_sockaddr_t));
    server = ngx_array_push(servers);

    if (addr == NULL || sa == NULL || server == NULL) {
        return NULL;
    }

    sa->sockaddr_in.sin_family = AF_INET;

    addr->sockaddr = &sa->sockaddr;
    addr->socklen = sizeof(struct sockaddr_in);
    addr->name = *name;

    ngx_memzero(server, sizeof(ngx_http_upstream_server_t));

    server->name = *name;
    server->addrs = addr;
    server->naddrs = 1;
    server->weight = 1;
    server->max_fails = 1;
    server->fail_timeout = 10;
    server->down = 1;

    return server;
}


ngx_int_t
ngx_http_kube_peers_parts(ngx_http_kube_balancer_t *balancer,
    ngx_http_upstream_srv_conf_t *us, ngx_pool_t *pool, ngx_pool_t *scratch)
{
    void                  **parts, *clone;
    ngx_uint_t              i;
    ngx_http_kube_slot_t   *slot;

    parts = ngx_palloc(balancer->own ? pool : scratch,
                       sizeof(void *) * ngx_http_max_module);
    if (parts == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(parts, us->srv_conf, sizeof(void *) * ngx_http_max_module);
    parts[ngx_http_upstream_module.ctx_index] = us;

    slot = balancer->slots.elts;

    for (i = 0; i < balancer->slots.nelts; i++) {

        clone = ngx_palloc(slot[i].own ? pool : scratch, slot[i].size);
        if (clone == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(clone, slot[i].pristine, slot[i].size);
        parts[slot[i].index] = clone;
    }

    us->srv_conf = parts;

    return NGX_OK;
}


#if (T_NGX_HTTP_ROUND_ROBIN_OPT_ALI)

/*
 * Tengine's round robin keeps whose turn it is in the peers where all weights
 * are equal, and else in each peer, as nginx does: ours take that way, and
 * begin with the first.  After any init_upstream it also lets a random number
 * of turns pass, once a process and for whichever peers are next: for each
 * change of a Service, that is.  They pass here, for peers of no upstream.
 */

static void
ngx_http_kube_peers_settle(ngx_http_upstream_rr_peers_t *made)
{
    ngx_peer_connection_t             pc;
    ngx_http_upstream_rr_peer_t       peer[2];
    ngx_http_upstream_rr_peers_t      peers;
    ngx_http_upstream_rr_peer_data_t  rrp;

    made->weighted = 1;
    made->init_number = 0;

    ngx_memzero(&pc, sizeof(ngx_peer_connection_t));
    ngx_memzero(peer, sizeof(peer));
    ngx_memzero(&peers, sizeof(ngx_http_upstream_rr_peers_t));
    ngx_memzero(&rrp, sizeof(ngx_http_upstream_rr_peer_data_t));

    peer[0].next = &peer[1];

    peers.peer = peer;
    peers.number = 2;
    peers.weighted = 1;

    rrp.peers = &peers;
    rrp.tried = &rrp.data;
    pc.log = ngx_cycle->log;

    (void) ngx_http_upstream_get_round_robin_peer(&pc, &rrp);
}

#endif


/* Runs the upstream's init_upstream over the servers, as at configuration. */

static ngx_int_t
ngx_http_kube_peers_init(ngx_http_kube_srv_conf_t *kscf,
    ngx_kube_view_t *view, ngx_http_kube_peers_t *peers, ngx_pool_t *scratch)
{
    ngx_conf_t                     cf;
    ngx_uint_t                     i;
    ngx_http_kube_slot_t          *slot;
    ngx_http_upstream_srv_conf_t  *us;

    us = &peers->us;

    if (ngx_http_kube_peers_parts(&kscf->balancer, us, view->pool, scratch)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    us->peer.data = NULL;
#if (NGX_HTTP_UPSTREAM_ZONE)
    us->shm_zone = NULL;
#endif

    cf = kscf->balancer.cf;
    cf.pool = scratch;            /* see ngx_http_kube_stock_init() */
    cf.temp_pool = view->pool;
    cf.cycle = (ngx_cycle_t *) ngx_cycle;
    cf.log = ngx_cycle->log;
    cf.conf_file = NULL;
    cf.args = NULL;

    if (kscf->balancer.init_upstream(&cf, us) != NGX_OK) {
        return NGX_ERROR;
    }

#if (T_NGX_HTTP_ROUND_ROBIN_OPT_ALI)
    ngx_http_kube_peers_settle(us->peer.data);
#elif (T_NGX_HTTP_UPSTREAM_RANDOM)

    /* Tengine up to 3.1.0 looks from a random peer on: rows say who is next */

    ((ngx_http_upstream_rr_peers_t *) us->peer.data)->init_number = 0;
#endif

    /* keepalive's cache and the like are the upstream's, not the view's */

    if (!kscf->balancer.own) {
        us->srv_conf = kscf->upstream->srv_conf;
        return NGX_OK;
    }

    slot = kscf->balancer.slots.elts;

    for (i = 0; i < kscf->balancer.slots.nelts; i++) {
        if (!slot[i].own) {
            us->srv_conf[slot[i].index] =
                                 kscf->upstream->srv_conf[slot[i].index];
        }
    }

    return NGX_OK;
}

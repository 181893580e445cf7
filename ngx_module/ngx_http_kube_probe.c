/*
 * ngx_http_kube_probe - a scratch upstream of two servers, and a look at what
 * the method made of them.
 *
 * Nothing that the method returns is followed before it was found to lie in
 * the pool that it was given.  Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_peers.h"
#include "ngx_http_kube_probe.h"
#include "ngx_kube_child.h"

#include <malloc.h>


#define NGX_HTTP_KUBE_PROBE_SERVERS  2


typedef struct {
    ngx_conf_t                    *cf;
    ngx_http_upstream_srv_conf_t  *us;
    ngx_http_kube_balancer_t      *balancer;
} ngx_http_kube_probe_t;


static void ngx_http_kube_probe_child(void *data, void *answer);
static ngx_int_t ngx_http_kube_probe_upstream(ngx_http_kube_probe_t *probe,
    ngx_pool_t *pool, ngx_http_upstream_srv_conf_t *us);
static const char *ngx_http_kube_probe_judge(ngx_pool_t *pool,
    ngx_http_upstream_srv_conf_t *us);
static ngx_uint_t ngx_http_kube_probe_holds(ngx_pool_t *pool, const void *data,
    size_t size);


ngx_int_t
ngx_http_kube_probe(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_kube_balancer_t *balancer)
{
    char                   what[128];
    ngx_http_kube_probe_t  probe;

    probe.cf = cf;
    probe.us = us;
    probe.balancer = balancer;

    if (ngx_kube_child_ask(ngx_http_kube_probe_child, &probe, what,
                           sizeof(what))
        != NGX_OK)
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, ngx_errno,
                      "the balancing method of upstream \"%V\" in %s:%ui died "
                      "or hung in its trial: it cannot be used with "
                      "kube_service", &us->host, us->file_name, us->line);
        return NGX_ERROR;
    }

    what[sizeof(what) - 1] = '\0';

    if (what[0] != '\0') {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "the balancing method of upstream \"%V\" in %s:%ui %s: "
                      "it cannot be used with kube_service", &us->host,
                      us->file_name, us->line, what);
        return NGX_ERROR;
    }

    ngx_log_error(NGX_LOG_WARN, cf->log, 0,
                  "the balancing method of upstream \"%V\" in %s:%ui is not "
                  "known; it passed a trial, and is used at your own risk",
                  &us->host, us->file_name, us->line);

    return NGX_OK;
}


static void
ngx_http_kube_probe_child(void *data, void *answer)
{
    ngx_http_kube_probe_t *probe = data;

    ngx_conf_t                     cf;
    ngx_pool_t                    *pool;
    const char                    *what;
    ngx_http_upstream_srv_conf_t   us;

    what = "could not be tried";

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, probe->cf->log);

    if (pool != NULL
        && ngx_http_kube_probe_upstream(probe, pool, &us) == NGX_OK)
    {
        cf = *probe->cf;
        cf.pool = pool;
        cf.temp_pool = pool;

        what = (probe->balancer->method(&cf, &us) == NGX_OK)
                   ? ngx_http_kube_probe_judge(pool, &us)
                   : "refuses two servers";
    }

    (void) ngx_cpystrn(answer, (u_char *) what, 128);
}


/* As the upstream, with servers of TEST-NET-1 (RFC 5737) and its own parts. */

static ngx_int_t
ngx_http_kube_probe_upstream(ngx_http_kube_probe_t *probe, ngx_pool_t *pool,
    ngx_http_upstream_srv_conf_t *us)
{
    ngx_uint_t                   i;
    ngx_addr_t                  *addr;
    struct sockaddr_in          *sin;
    ngx_http_upstream_server_t  *server;

    *us = *probe->us;

    us->peer.init = NULL;
    us->peer.data = NULL;
    us->servers = ngx_array_create(pool, NGX_HTTP_KUBE_PROBE_SERVERS,
                                   sizeof(ngx_http_upstream_server_t));
    addr = ngx_pcalloc(pool, NGX_HTTP_KUBE_PROBE_SERVERS * sizeof(ngx_addr_t));
    sin = ngx_pcalloc(pool, NGX_HTTP_KUBE_PROBE_SERVERS
                            * sizeof(struct sockaddr_in));

    if (us->servers == NULL || addr == NULL || sin == NULL
        || ngx_http_kube_peers_parts(probe->balancer, us, pool, pool)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < NGX_HTTP_KUBE_PROBE_SERVERS; i++) {
        sin[i].sin_family = AF_INET;
        sin[i].sin_port = htons(80);
        sin[i].sin_addr.s_addr = htonl(0xc0000201 + (uint32_t) i);

        addr[i].sockaddr = (struct sockaddr *) &sin[i];
        addr[i].socklen = sizeof(struct sockaddr_in);
        ngx_str_set(&addr[i].name, "192.0.2.1:80");

        server = ngx_array_push(us->servers);
        ngx_memzero(server, sizeof(ngx_http_upstream_server_t));

        server->name = addr[i].name;
        server->addrs = &addr[i];
        server->naddrs = 1;
        server->weight = 1;
        server->max_fails = 1;
        server->fail_timeout = 10;
    }

    return NGX_OK;
}


/* What is wrong with the peers, or "". */

static const char *
ngx_http_kube_probe_judge(ngx_pool_t *pool, ngx_http_upstream_srv_conf_t *us)
{
    ngx_uint_t                     i;
    ngx_http_upstream_server_t    *server;
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_upstream_rr_peers_t  *peers;

    peers = us->peer.data;
    server = us->servers->elts;

    if (us->peer.init == NULL
        || !ngx_http_kube_probe_holds(pool, peers,
                                      sizeof(ngx_http_upstream_rr_peers_t))
        || peers->number != NGX_HTTP_KUBE_PROBE_SERVERS
        || peers->next != NULL
        || peers->single)
    {
        return "does not keep its servers as round robin does";
    }

    peer = peers->peer;

    for (i = 0; i < NGX_HTTP_KUBE_PROBE_SERVERS; i++) {

        if (!ngx_http_kube_probe_holds(pool, peer,
                                       sizeof(ngx_http_upstream_rr_peer_t))
            || peer->sockaddr != server[i].addrs->sockaddr)
        {
            return "does not keep its servers in round robin's order";
        }

        peer = peer->next;
    }

    return (peer == NULL) ? "" : "has more servers than it was given";
}


static ngx_uint_t
ngx_http_kube_probe_holds(ngx_pool_t *pool, const void *data, size_t size)
{
    ngx_pool_t        *block;
    const u_char      *p;
    ngx_pool_large_t  *large;

    p = data;

    if ((uintptr_t) p % sizeof(void *) != 0) {
        return 0;
    }

    for (block = pool; block != NULL; block = block->d.next) {

        if (p > (u_char *) block
            && p < block->d.last
            && (size_t) (block->d.last - p) >= size)
        {
            return 1;
        }
    }

    for (large = pool->large; large != NULL; large = large->next) {

        if (large->alloc != NULL
            && p >= (u_char *) large->alloc
            && p < (u_char *) large->alloc + malloc_usable_size(large->alloc)
            && (size_t) ((u_char *) large->alloc
                         + malloc_usable_size(large->alloc) - p)
               >= size)
        {
            return 1;
        }
    }

    return 0;
}

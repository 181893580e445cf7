/*
 * ngx_kube_listen - where this nginx listens, and the addresses of this host,
 * for the policy that keeps requests from coming back to the gateway itself.
 *
 * Collected when a cycle begins: an address that an interface gets later is
 * known after the next reload.  It judges nothing (kube_policy.h does).  Master
 * only, before workers are forked.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"

#include <ifaddrs.h>


static ngx_int_t ngx_kube_listen_sockets(ngx_cycle_t *cycle,
    ngx_array_t *listens);
static ngx_int_t ngx_kube_listen_local(ngx_cycle_t *cycle,
    ngx_array_t *local);
static ngx_uint_t ngx_kube_listen_addr(struct sockaddr *sa,
    kube_addr_t *addr);


void
ngx_kube_listen_collect(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf)
{
    ngx_uint_t             i;
    ngx_array_t            listens, local;
    kube_policy_t         *policy;
    ngx_kube_informer_t  **informers;

    if (ngx_array_init(&listens, cycle->pool, 8, sizeof(kube_listen_t))
        != NGX_OK
        || ngx_array_init(&local, cycle->pool, 8, sizeof(kube_addr_t))
           != NGX_OK
        || ngx_kube_listen_sockets(cycle, &listens) != NGX_OK
        || ngx_kube_listen_local(cycle, &local) != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "kube: the gateway's own addresses could not be "
                      "collected: endpoints that are the gateway itself are "
                      "not refused");
        return;
    }

    informers = kcf->informers.elts;

    for (i = 0; i < kcf->informers.nelts; i++) {
        policy = &informers[i]->policy;

        policy->listen = listens.elts;
        policy->listen_n = listens.nelts;
        policy->local = local.elts;
        policy->local_n = local.nelts;
    }
}


static ngx_int_t
ngx_kube_listen_sockets(ngx_cycle_t *cycle, ngx_array_t *listens)
{
    ngx_uint_t        i;
    kube_addr_t       addr;
    kube_listen_t    *listen;
    ngx_listening_t  *ls;

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].type != SOCK_STREAM
            || !ngx_kube_listen_addr(ls[i].sockaddr, &addr))
        {
            continue;
        }

        listen = ngx_array_push(listens);
        if (listen == NULL) {
            return NGX_ERROR;
        }

        listen->addr = addr;
        listen->port = ngx_inet_get_port(ls[i].sockaddr);

#if (NGX_HAVE_INET6)

        /* [::] takes connections for IPv4 addresses too, unless told not to */

        if (ls[i].sockaddr->sa_family == AF_INET6
            && !ls[i].ipv6only
            && ngx_inet_wildcard(ls[i].sockaddr))
        {
            listen = ngx_array_push(listens);
            if (listen == NULL) {
                return NGX_ERROR;
            }

            ngx_memzero(&listen->addr, sizeof(kube_addr_t));
            listen->addr.family = KUBE_FAMILY_IPV4;
            listen->port = ngx_inet_get_port(ls[i].sockaddr);
        }

#endif
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_listen_local(ngx_cycle_t *cycle, ngx_array_t *local)
{
    kube_addr_t      addr, *slot;
    struct ifaddrs  *all, *one;

    if (getifaddrs(&all) == -1) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      "kube: getifaddrs() failed");
        return NGX_ERROR;
    }

    for (one = all; one != NULL; one = one->ifa_next) {

        if (one->ifa_addr == NULL
            || !ngx_kube_listen_addr(one->ifa_addr, &addr))
        {
            continue;
        }

        slot = ngx_array_push(local);
        if (slot == NULL) {
            freeifaddrs(all);
            return NGX_ERROR;
        }

        *slot = addr;
    }

    freeifaddrs(all);

    return NGX_OK;
}


/* Returns 0 for what is no IP address. */

static ngx_uint_t
ngx_kube_listen_addr(struct sockaddr *sa, kube_addr_t *addr)
{
    ngx_memzero(addr, sizeof(kube_addr_t));

    switch (sa->sa_family) {

    case AF_INET:
        addr->family = KUBE_FAMILY_IPV4;
        ngx_memcpy(addr->bytes, &((struct sockaddr_in *) sa)->sin_addr, 4);
        return 1;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        addr->family = KUBE_FAMILY_IPV6;
        ngx_memcpy(addr->bytes, &((struct sockaddr_in6 *) sa)->sin6_addr, 16);
        return 1;
#endif

    default:
        return 0;
    }
}

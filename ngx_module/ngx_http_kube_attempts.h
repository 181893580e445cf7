/*
 * ngx_http_kube_attempts - what a request does after a failed attempt.
 *
 * Workers only; called by the hooks around a balancer, those outside of
 * keepalive and those beneath it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_ATTEMPTS_H
#define NGX_HTTP_KUBE_ATTEMPTS_H


#include "ngx_http_kube_request.h"


/* Begins to balance over the peers of balancing.pick.view: NGX_ERROR if not. */
typedef ngx_int_t (*ngx_http_kube_begin_pt)(ngx_http_kube_request_t *kr);


/* Whether the request has tried an address. */
ngx_uint_t ngx_http_kube_attempt_tried(ngx_http_kube_balancing_t *b,
    struct sockaddr *sockaddr, socklen_t socklen);

/*
 * Notes that the attempt failed, or that its answer was passed over (as of
 * http_404), before the balancer's free.  Returns 1 where nothing was learnt of
 * the server: an idle connection that it had closed in the meantime.
 */
ngx_uint_t ngx_http_kube_attempt_failed(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr);

/* Behind the balancer's free: how many attempts are left. */
void ngx_http_kube_attempt_tries(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_uint_t stale);

/*
 * Before another attempt: where there are newer peers the balancer begins
 * anew over these, else it goes on where it was.  NGX_BUSY: no more attempts.
 */
ngx_int_t ngx_http_kube_attempt_again(ngx_peer_connection_t *pc,
    ngx_http_kube_request_t *kr, ngx_http_kube_begin_pt begin);


/* A balancer may pick what was tried so often, before it is told to end. */
static ngx_inline ngx_uint_t
ngx_http_kube_attempt_picks(ngx_http_kube_balancing_t *b)
{
    return 2 * b->peers->listing.n + 32;
}


#endif /* NGX_HTTP_KUBE_ATTEMPTS_H */

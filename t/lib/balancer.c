/*
 * balancer - a balancing method that the modules do not know, for tests of
 * "kube_balancer unknown=probe".
 *
 * "test_method good|crash|foreign|moved;": round robin under another name, one
 * that dies over its peers, one that keeps them in a struct of its own, and one
 * that copies the addresses it is given.  Built and loaded by t/test_probe.py
 * alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


static char *ngx_test_method(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
static ngx_int_t ngx_test_init_good(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_test_init_crash(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_test_init_foreign(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_test_init_moved(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static ngx_int_t ngx_test_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);

char          *ngx_module_names[] = { "ngx_http_test_method_module", NULL };
char          *ngx_module_order[] = { NULL };

static ngx_command_t  ngx_test_commands[] = {

    { ngx_string("test_method"),
      NGX_HTTP_UPS_CONF|NGX_CONF_TAKE1,
      ngx_test_method,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};

static ngx_http_module_t  ngx_test_ctx = {
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
};

ngx_module_t  ngx_http_test_method_module = {
    NGX_MODULE_V1,
    &ngx_test_ctx,
    ngx_test_commands,
    NGX_HTTP_MODULE,
    NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NGX_MODULE_V1_PADDING
};

ngx_module_t  *ngx_modules[] = { &ngx_http_test_method_module, NULL };


static char *
ngx_test_method(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t                     *value;
    ngx_http_upstream_srv_conf_t  *us;

    value = cf->args->elts;
    us = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    us->flags = NGX_HTTP_UPSTREAM_CREATE;

    switch (value[1].data[0]) {

    case 'c':
        us->peer.init_upstream = ngx_test_init_crash;
        break;

    case 'f':
        us->peer.init_upstream = ngx_test_init_foreign;
        break;

    case 'm':
        us->peer.init_upstream = ngx_test_init_moved;
        break;

    default:
        us->peer.init_upstream = ngx_test_init_good;
        break;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_test_init_good(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    if (ngx_http_upstream_init_round_robin(cf, us) != NGX_OK) {
        return NGX_ERROR;
    }

    us->peer.init = ngx_test_init_peer;

    return NGX_OK;
}


static ngx_int_t
ngx_test_init_crash(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    (void) raise(SIGSEGV);

    return NGX_ERROR;
}


static ngx_int_t
ngx_test_init_foreign(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    us->peer.init = ngx_test_init_peer;
    us->peer.data = ngx_pcalloc(cf->pool, sizeof(ngx_uint_t));

    return us->peer.data != NULL ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_test_init_moved(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    struct sockaddr               *copy;
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_upstream_rr_peers_t  *peers;

    if (ngx_test_init_good(cf, us) != NGX_OK) {
        return NGX_ERROR;
    }

    peers = us->peer.data;

    for (peer = peers->peer; peer != NULL; peer = peer->next) {
        copy = ngx_palloc(cf->pool, peer->socklen);
        if (copy == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(copy, peer->sockaddr, peer->socklen);
        peer->sockaddr = copy;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_test_init_peer(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
    return ngx_http_upstream_init_round_robin_peer(r, us);
}

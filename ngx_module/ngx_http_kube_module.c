/*
 * ngx_http_kube_module - directives and table of the http module, and the
 * data a request carries.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"


static void *ngx_http_kube_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_kube_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_kube_create_srv_conf(ngx_conf_t *cf);
static void *ngx_http_kube_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_kube_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_kube_postconfiguration(ngx_conf_t *cf);
static char *ngx_http_kube_unbuilt(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static void ngx_http_kube_request_cleanup(void *data);


static ngx_command_t  ngx_http_kube_commands[] = {

    { ngx_string("kube_service"),
      NGX_HTTP_UPS_CONF|NGX_CONF_1MORE,
      ngx_http_kube_service,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kube_resolve"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_2MORE,
      ngx_http_kube_resolve,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kube_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_ANY,
      ngx_http_kube_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kube_ready"),
      NGX_HTTP_LOC_CONF|NGX_CONF_ANY,
      ngx_http_kube_ready,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kube_balance"),
      NGX_HTTP_UPS_CONF|NGX_CONF_ANY,
      ngx_http_kube_unbuilt,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kube_slow_start"),
      NGX_HTTP_UPS_CONF|NGX_CONF_ANY,
      ngx_http_kube_unbuilt,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kube_affinity"),
      NGX_HTTP_UPS_CONF|NGX_CONF_ANY,
      ngx_http_kube_unbuilt,
      NGX_HTTP_SRV_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_kube_module_ctx = {
    ngx_http_kube_add_variables,           /* preconfiguration */
    ngx_http_kube_postconfiguration,       /* postconfiguration */

    ngx_http_kube_create_main_conf,        /* create main configuration */
    ngx_http_kube_init_main_conf,          /* init main configuration */

    ngx_http_kube_create_srv_conf,         /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_kube_create_loc_conf,         /* create location configuration */
    ngx_http_kube_merge_loc_conf           /* merge location configuration */
};


ngx_module_t  ngx_http_kube_module = {
    NGX_MODULE_V1,
    &ngx_http_kube_module_ctx,             /* module context */
    ngx_http_kube_commands,                /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_http_kube_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_kube_main_conf_t  *kmcf;

    kmcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_kube_main_conf_t));
    if (kmcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&kmcf->upstreams, cf->pool, 4, sizeof(void *))
        != NGX_OK)
    {
        return NULL;
    }

    return kmcf;
}


/* Runs before the upstream module's, which calls every init_upstream. */

static char *
ngx_http_kube_init_main_conf(ngx_conf_t *cf, void *conf)
{
    if (ngx_http_kube_upstream_prepare(cf, conf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_kube_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_kube_main_conf_t  *kmcf;

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kube_module);

    return ngx_http_kube_upstream_finish(cf, kmcf);
}


static void *
ngx_http_kube_create_srv_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_kube_srv_conf_t));
}


static void *
ngx_http_kube_create_loc_conf(ngx_conf_t *cf)
{
    return ngx_pcalloc(cf->pool, sizeof(ngx_http_kube_loc_conf_t));
}


/* A status page opens where it is written; kube_resolve looks outwards. */

static char *
ngx_http_kube_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_kube_loc_conf_t  *conf = child;

    conf->parent = parent;

    return NGX_CONF_OK;
}


static char *
ngx_http_kube_unbuilt(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown directive \"%V\": it is planned, but version "
                       KUBE_VERSION " does not have it; remove it",
                       &cmd->name);

    return NGX_CONF_ERROR;
}


ngx_http_kube_request_t *
ngx_http_kube_request(ngx_http_request_t *r, ngx_uint_t create)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_kube_request_t  *kr;

    kr = ngx_http_get_module_ctx(r, ngx_http_kube_module);
    if (kr != NULL) {
        return kr;
    }

    /* an internal redirect has cleared the context, not the pool */

    for (cln = r->pool->cleanup; cln != NULL; cln = cln->next) {
        if (cln->handler == ngx_http_kube_request_cleanup) {
            kr = cln->data;

            if (kr->request == r) {
                ngx_http_set_ctx(r, kr, ngx_http_kube_module);
                return kr;
            }
        }
    }

    if (!create) {
        return NULL;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_kube_request_t));
    if (cln == NULL) {
        return NULL;
    }

    kr = cln->data;
    ngx_memzero(kr, sizeof(ngx_http_kube_request_t));
    kr->request = r;

    cln->handler = ngx_http_kube_request_cleanup;

    ngx_http_set_ctx(r, kr, ngx_http_kube_module);

    return kr;
}


static void
ngx_http_kube_request_cleanup(void *data)
{
    ngx_http_kube_request_t *kr = data;

    if (kr->instance != NULL) {
        ngx_http_kube_instance_release(kr->instance);
        kr->instance = NULL;
    }

    if (kr->resolved != NULL) {
        ngx_http_kube_instance_release(kr->resolved);
        kr->resolved = NULL;
    }
}

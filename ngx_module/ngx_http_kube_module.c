/*
 * ngx_http_kube_module - directives and table of the http module, and the life
 * of its configuration.
 *
 * Called by nginx alone, while it reads the configuration.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_pending.h"
#include "ngx_http_kube_resolve.h"
#include "ngx_http_kube_service.h"
#include "ngx_http_kube_variable.h"
#include "ngx_http_kube_wait.h"

#include "kube_version.h"


static void *ngx_http_kube_create_main_conf(ngx_conf_t *cf);
static char *ngx_http_kube_init_main_conf(ngx_conf_t *cf, void *conf);
static void *ngx_http_kube_create_srv_conf(ngx_conf_t *cf);
static void *ngx_http_kube_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_kube_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static ngx_int_t ngx_http_kube_postconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_kube_init_module(ngx_cycle_t *cycle);
static char *ngx_http_kube_unbuilt(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


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

    { ngx_string("kube_instances"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_kube_instances,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("kube_balancer"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_kube_unknown_balancer,
      NGX_HTTP_MAIN_CONF_OFFSET,
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
    ngx_http_kube_init_module,             /* init module */
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

    kmcf->instances_size = NGX_CONF_UNSET_SIZE;
    kmcf->unknown = NGX_CONF_UNSET_UINT;

    if (ngx_array_init(&kmcf->upstreams, cf->pool, 4, sizeof(void *))
        != NGX_OK
        || ngx_array_init(&kmcf->resolved, cf->pool, 4,
                          sizeof(ngx_http_kube_resolved_t))
           != NGX_OK
        || ngx_array_init(&kmcf->max_ages, cf->pool, 1,
                          sizeof(ngx_http_kube_max_age_t))
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
    ngx_http_kube_main_conf_t *kmcf = conf;

    ngx_conf_init_size_value(kmcf->instances_size, NGX_KUBE_INSTANCES_SIZE);
    ngx_conf_init_uint_value(kmcf->unknown, 0);

    if (ngx_http_kube_services_prepare(cf, conf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_kube_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_kube_main_conf_t  *kmcf;

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kube_module);

    ngx_http_kube_services_finish(cf, kmcf);

    if (ngx_http_kube_wait_add(cf, kmcf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_kube_resolve_finish(cf, kmcf);
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


/*
 * kube_resolve looks outwards.  A status page opens where it is written, but
 * "if" and "limit_except" are that place too: nginx's own content handlers
 * pass their settings on to these the same way.
 */

static char *
ngx_http_kube_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_kube_loc_conf_t *prev = parent;
    ngx_http_kube_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    conf->parent = prev;

    if (conf->status || conf->ready) {
        conf->location = clcf;

    } else if (clcf->noname || clcf->lmt_excpt) {
        conf->location = prev->location;
        conf->status = prev->status;
        conf->ready = prev->ready;
        conf->ready_informer = prev->ready_informer;
        conf->ready_max_age = prev->ready_max_age;
        conf->ready_flags = prev->ready_flags;

        if (clcf->lmt_excpt && clcf->handler == NULL && conf->location) {
            clcf->handler = conf->location->handler;
        }
    }

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_kube_init_module(ngx_cycle_t *cycle)
{
    ngx_http_kube_pending_init(cycle);

    return ngx_http_kube_ready_check(cycle);
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

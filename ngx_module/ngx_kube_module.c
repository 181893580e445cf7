/*
 * ngx_kube_module - the core module: its table, the life of its
 * configuration, and the hooks of the cycle.
 *
 * The kube_informer block is in ngx_kube_conf.c, its directives in
 * ngx_kube_directive.c, the process in ngx_kube_process.c.
 * init_module and init_process never fail: a failing one would take nginx
 * down with it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_refs.h"
#include "ngx_kube_state.h"


static void *ngx_kube_create_conf(ngx_cycle_t *cycle);
static char *ngx_kube_init_conf(ngx_cycle_t *cycle, void *conf);
static ngx_int_t ngx_kube_init_module(ngx_cycle_t *cycle);
static ngx_int_t ngx_kube_init_process(ngx_cycle_t *cycle);
static void ngx_kube_exit_process(ngx_cycle_t *cycle);


static ngx_command_t  ngx_kube_commands[] = {

    { ngx_string("kube_informer"),
      NGX_MAIN_CONF|NGX_DIRECT_CONF|NGX_CONF_BLOCK
          |NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_kube_informer_block,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_core_module_t  ngx_kube_module_ctx = {
    ngx_string("kube"),
    ngx_kube_create_conf,
    ngx_kube_init_conf
};


ngx_module_t  ngx_kube_module = {
    NGX_MODULE_V1,
    &ngx_kube_module_ctx,                  /* module context */
    ngx_kube_commands,                     /* module directives */
    NGX_CORE_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_kube_init_module,                  /* init module */
    ngx_kube_init_process,                 /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_kube_exit_process,                 /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void *
ngx_kube_create_conf(ngx_cycle_t *cycle)
{
    ngx_kube_conf_t  *kcf;

    kcf = ngx_pcalloc(cycle->pool, sizeof(ngx_kube_conf_t));
    if (kcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&kcf->informers, cycle->pool, 1, sizeof(void *))
        != NGX_OK
        || ngx_array_init(&kcf->refs, cycle->pool, 4, sizeof(void *))
           != NGX_OK)
    {
        return NULL;
    }

    return kcf;
}


static char *
ngx_kube_init_conf(ngx_cycle_t *cycle, void *conf)
{
    ngx_kube_conf_t *kcf = conf;

    ngx_uint_t             i;
    ngx_kube_informer_t  **informers;

    if (ngx_kube_refs_finish(cycle, kcf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    informers = kcf->informers.elts;

    for (i = 0; i < kcf->informers.nelts; i++) {
        if (ngx_kube_kubeconfig_check(cycle, informers[i]) != NGX_OK) {
            return NGX_CONF_ERROR;
        }

        ngx_kube_state_check(cycle, informers[i]);
    }

    ngx_kube_zone_exchanged(cycle, kcf);

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_kube_init_module(ngx_cycle_t *cycle)
{
    ngx_uint_t             i;
    ngx_kube_conf_t       *kcf;
    ngx_kube_informer_t  **informers;

    if (ngx_test_config || ngx_process == NGX_PROCESS_SIGNALLER) {
        return NGX_OK;
    }

    kcf = ngx_kube_get_conf(cycle);

    if (kcf->informers.nelts == 0) {
        return NGX_OK;
    }

    ngx_kube_listen_collect(cycle, kcf);
    ngx_kube_zone_settled(cycle, kcf);

    informers = kcf->informers.elts;

    for (i = 0; i < kcf->informers.nelts; i++) {
        ngx_kube_state_prepare(cycle, informers[i]);
    }

    if (ngx_kube_process_prepare(cycle) != NGX_OK) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                      "kube: no memory to prepare the informer process");
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_init_process(ngx_cycle_t *cycle)
{
    ngx_uint_t             i;
    ngx_kube_conf_t       *kcf;
    ngx_kube_informer_t  **informers;

    kcf = ngx_kube_get_conf(cycle);

    if (ngx_process == NGX_PROCESS_SINGLE && kcf->informers.nelts != 0) {
        ngx_kube_process_start(cycle);
    }

    if (ngx_process == NGX_PROCESS_WORKER) {
        informers = kcf->informers.elts;

        for (i = 0; i < kcf->informers.nelts; i++) {
            ngx_kube_zone_leave(informers[i]);
        }
    }

    return NGX_OK;
}


static void
ngx_kube_exit_process(ngx_cycle_t *cycle)
{
    if (ngx_process == NGX_PROCESS_SINGLE) {
        ngx_kube_process_stop();
    }
}


/*
 * ngx_stream_kube_module - the place of kube_service in stream upstreams.
 *
 * It is not a data plane: stream is not supported yet, and a configuration
 * that asks for it is refused with a text that says so, rather than with
 * nginx's "unknown directive".  Called by nginx alone, in the master, while
 * it reads the configuration; nothing of it runs in a worker.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_stream.h>


static char *ngx_stream_kube_service(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


static ngx_command_t  ngx_stream_kube_commands[] = {

    { ngx_string("kube_service"),
      NGX_STREAM_UPS_CONF|NGX_CONF_1MORE,
      ngx_stream_kube_service,
      0,
      0,
      NULL },

      ngx_null_command
};


static ngx_stream_module_t  ngx_stream_kube_module_ctx = {
    NULL,                                  /* preconfiguration */
    NULL,                                  /* postconfiguration */

    NULL,                                  /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL                                   /* merge server configuration */
};


ngx_module_t  ngx_stream_kube_module = {
    NGX_MODULE_V1,
    &ngx_stream_kube_module_ctx,           /* module context */
    ngx_stream_kube_commands,              /* module directives */
    NGX_STREAM_MODULE,                     /* module type */
    NULL,                                  /* init master */
    NULL,                                  /* init module */
    NULL,                                  /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    NULL,                                  /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static char *
ngx_stream_kube_service(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "\"kube_service\" is not available in stream yet; "
                       "use it in an upstream of the http block");

    return NGX_CONF_ERROR;
}

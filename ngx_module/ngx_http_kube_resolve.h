/*
 * ngx_http_kube_resolve - the kube_resolve directive and its variable: the
 * address of one endpoint, for proxy_pass, logs and scripts.
 *
 * It needs no upstream and no balancer.  Called by ngx_http_kube_module.c, at
 * configuration time; its variable is evaluated in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_RESOLVE_H
#define NGX_HTTP_KUBE_RESOLVE_H


#include "ngx_http_kube.h"


char *ngx_http_kube_resolve(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/*
 * Gives each variable its meaning, when the whole of http {} was read.
 * NGX_ERROR: something else defines one of them too, which is logged.
 */
ngx_int_t ngx_http_kube_resolve_finish(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf);


#endif /* NGX_HTTP_KUBE_RESOLVE_H */

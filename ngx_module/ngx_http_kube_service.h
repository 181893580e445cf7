/*
 * ngx_http_kube_service - the kube_service directive, and how an upstream is
 * readied for it before and after other modules had their say.
 *
 * Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_SERVICE_H
#define NGX_HTTP_KUBE_SERVICE_H


#include "ngx_http_kube.h"


char *ngx_http_kube_service(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_kube_instances(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_kube_unknown_balancer(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * Before the upstream module calls every init_upstream: notes the static
 * servers and the parts of other modules.  NGX_ERROR: logged.
 */
ngx_int_t ngx_http_kube_services_prepare(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf);

/* After it: goes around whatever wraps the balancer. */
void ngx_http_kube_services_finish(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf);


#endif /* NGX_HTTP_KUBE_SERVICE_H */

/*
 * ngx_http_kube_variable - $kube_service, $kube_error and the other variables
 * that tell what a request was resolved to.
 *
 * They choose nothing.  Made known by ngx_http_kube_module.c, evaluated in
 * workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_VARIABLE_H
#define NGX_HTTP_KUBE_VARIABLE_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


ngx_int_t ngx_http_kube_add_variables(ngx_conf_t *cf);


#endif /* NGX_HTTP_KUBE_VARIABLE_H */

/*
 * ngx_http_kube_page - the files of the status page, as config made string
 * literals of them.
 *
 * The page draws itself from the status API; only the placeholder inside its
 * <noscript> is filled in here.  Called by ngx_http_kube_status.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"

#include "kube_status_html.h"

#include <ngx_http_kube_page.h>


static const struct {
    kube_str_t              name;
    ngx_http_kube_type_e    type;
    kube_str_t              data;
} ngx_http_kube_assets[] = {
    { { "status.css", sizeof("status.css") - 1 }, NGX_HTTP_KUBE_TYPE_CSS,
      { ngx_http_kube_status_css, sizeof(ngx_http_kube_status_css) - 1 } },
    { { "status.js", sizeof("status.js") - 1 }, NGX_HTTP_KUBE_TYPE_JS,
      { ngx_http_kube_status_js, sizeof(ngx_http_kube_status_js) - 1 } }
};


ngx_int_t
ngx_http_kube_page(ngx_http_kube_body_t *body, const kube_report_t *reports,
    ngx_uint_t n)
{
    const char  *start, *place, *rest;

    static const char  placeholder[] = "<!-- facts -->";

    start = ngx_http_kube_status_html;
    place = ngx_strstr(start, placeholder);

    if (place == NULL) {
        return NGX_ERROR;
    }

    rest = place + sizeof(placeholder) - 1;

    ngx_http_kube_body_static(body, start, place - start);
    kube_status_html_print(&body->text, reports, n);
    ngx_http_kube_body_static(body, rest, ngx_strlen(rest));

    return NGX_HTTP_OK;
}


ngx_int_t
ngx_http_kube_asset(ngx_http_kube_body_t *body, kube_str_t name,
    ngx_http_kube_type_e *type)
{
    ngx_uint_t  i;

    for (i = 0; i < sizeof(ngx_http_kube_assets)
                    / sizeof(ngx_http_kube_assets[0]); i++)
    {
        if (kube_str_eq(name, ngx_http_kube_assets[i].name)) {
            *type = ngx_http_kube_assets[i].type;
            ngx_http_kube_body_static(body,
                                      ngx_http_kube_assets[i].data.data,
                                      ngx_http_kube_assets[i].data.len);
            return NGX_HTTP_OK;
        }
    }

    return NGX_DECLINED;
}

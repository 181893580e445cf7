/*
 * ngx_http_kube_status - what the files behind kube_status and kube_ready
 * share: a body that src/status prints into, and its sending.
 *
 * Private to these files.  All memory is the request's.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_STATUS_H
#define NGX_HTTP_KUBE_STATUS_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_kube.h"

#include "kube_report.h"
#include "kube_text.h"


typedef struct {
    kube_text_t             text;        /* what prints, prints here */
    ngx_pool_t             *pool;
    ngx_chain_t            *out;
    ngx_chain_t           **last;
    ngx_buf_t              *buf;
} ngx_http_kube_body_t;

typedef enum {
    NGX_HTTP_KUBE_TYPE_JSON = 0,
    NGX_HTTP_KUBE_TYPE_METRICS,
    NGX_HTTP_KUBE_TYPE_TEXT,
    NGX_HTTP_KUBE_TYPE_HTML,
    NGX_HTTP_KUBE_TYPE_CSS,
    NGX_HTTP_KUBE_TYPE_JS,
    NGX_HTTP_KUBE_TYPE_EVENTS
} ngx_http_kube_type_e;


/* ngx_http_kube_send.c */

/* body points back to itself: it must not move. */
void ngx_http_kube_body_init(ngx_http_kube_body_t *body, ngx_pool_t *pool);

/* Bytes that outlive the request: they are sent without a copy. */
void ngx_http_kube_body_static(ngx_http_kube_body_t *body, const char *data,
    size_t len);

/* {"error": text} with a status; returns the status. */
ngx_int_t ngx_http_kube_body_error(ngx_http_kube_body_t *body,
    ngx_int_t status, const char *text);

/* For other methods than GET and HEAD: sets Allow, returns 405. */
ngx_int_t ngx_http_kube_not_allowed(ngx_http_request_t *r,
    ngx_http_kube_body_t *body);

/*
 * Sends head and body.  status: an HTTP status whose body was printed, or
 * NGX_ERROR: there was no memory.
 */
ngx_int_t ngx_http_kube_send(ngx_http_request_t *r, ngx_int_t status,
    ngx_http_kube_type_e type, ngx_http_kube_body_t *body);

/*
 * Sends the head alone.  len: of the body, -1: it ends with the request.
 * Returns as ngx_http_send_header(), or a status: there was no memory.
 */
ngx_int_t ngx_http_kube_head(ngx_http_request_t *r, ngx_uint_t status,
    ngx_http_kube_type_e type, off_t len);

/* Both strings live as long as the request; NULL: no memory. */
ngx_table_elt_t *ngx_http_kube_header(ngx_http_request_t *r,
    const char *name, const char *value);

/* ngx_http_kube_events.c */

/*
 * Answers with events of the namespace (empty: of all) from now on: NGX_DONE,
 * the request is taken care of.  Else a status whose body was printed.
 */
ngx_int_t ngx_http_kube_events(ngx_http_request_t *r,
    ngx_http_kube_body_t *body, ngx_kube_informer_t *informer,
    kube_str_t ns);

/* ngx_http_kube_page.c: NGX_HTTP_OK, or NGX_DECLINED: no such asset. */

/* The page; its placeholder has the facts of the reports. */
ngx_int_t ngx_http_kube_page(ngx_http_kube_body_t *body,
    const kube_report_t *reports, ngx_uint_t n);
ngx_int_t ngx_http_kube_asset(ngx_http_kube_body_t *body, kube_str_t name,
    ngx_http_kube_type_e *type);


#endif /* NGX_HTTP_KUBE_STATUS_H */

/*
 * ngx_http_kube_status - what the files behind kube_status and kube_ready
 * share: a body that src/status prints into, and its sending.
 *
 * Private to these files.  All memory is the request's.  Workers only.
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
    size_t                  held;        /* bytes that were printed */
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

/*
 * False: clients that read slowly have this worker hold as much of what was
 * printed as it may.
 */
ngx_uint_t ngx_http_kube_body_may(void);

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

/*
 * A body that is made while it is sent: one buffer, which is filled only once
 * it was sent, so that nothing else is kept for a client that reads slowly.
 */
typedef struct ngx_http_kube_stream_s  ngx_http_kube_stream_t;

struct ngx_http_kube_stream_s {
    ngx_http_request_t     *request;
    kube_text_t             text;        /* prints into buf */
    ngx_buf_t               buf;
    ngx_chain_t             out;
    ngx_event_t            *event;       /* posted when buf was sent */

    /* at the request's end; NULL: nothing */
    void                  (*cleanup)(ngx_http_kube_stream_t *stream);
};

/* event is the caller's.  The stream must not move.  NGX_ERROR: no memory. */
ngx_int_t ngx_http_kube_stream_create(ngx_http_request_t *r,
    ngx_http_kube_stream_t *stream, size_t size, ngx_event_t *event);

/* Once the head is sent: the request's events are the stream's. */
void ngx_http_kube_stream_begin(ngx_http_kube_stream_t *stream);

/*
 * True where nginx goes on with the request otherwise, for the client has left:
 * "post_action".  Nothing is to be sent, and the request not to be ended.
 */
ngx_uint_t ngx_http_kube_stream_lost(ngx_http_kube_stream_t *stream);

/* True while something waits to be sent: event comes after it. */
ngx_uint_t ngx_http_kube_stream_pending(ngx_http_kube_stream_t *stream);

/* An empty buffer, for text to print into.  Nothing is pending. */
void ngx_http_kube_stream_rewind(ngx_http_kube_stream_t *stream);

/*
 * Sends the chain, or goes on with what is pending (NULL); event is posted when
 * all of it is sent.  The request may have ended when it returns: the caller
 * runs ngx_http_run_posted_requests().
 */
void ngx_http_kube_stream_send(ngx_http_kube_stream_t *stream,
    ngx_chain_t *out);

/* ngx_http_kube_scrape.c */

/* False: the worker has enough of them. */
ngx_uint_t ngx_http_kube_scrape_may(void);

/*
 * Answers with the body as it was printed, and with the metric
 * service_endpoints of all informers, for a namespace (empty: of all):
 * NGX_DONE, the request is taken care of.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_kube_scrape(ngx_http_request_t *r,
    ngx_http_kube_body_t *body, ngx_kube_conf_t *kcf, kube_str_t ns);

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

/*
 * ngx_http_kube_send - the answers of kube_status and kube_ready: buffers for
 * what src/status prints, the head, and the sending.
 *
 * A body is whole in memory, and bounded, before its head is sent; a stream has
 * one buffer.  It knows nothing of what is printed.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"

#include "kube_json_writer.h"


/* A body larger than this is not sent: 500 instead. */
#define NGX_HTTP_KUBE_BODY_MAX  (64 * 1024 * 1024)

#define NGX_HTTP_KUBE_BUF_SIZE  (16 * 1024)

/* Of bodies in memory: where a worker holds so much, the API begins none. */
#define NGX_HTTP_KUBE_BODIES_MAX  (32 * 1024 * 1024)


static ngx_int_t ngx_http_kube_body_buf(ngx_http_kube_body_t *body,
    ngx_buf_t *b);
static bool ngx_http_kube_body_write(void *ctx, const char *data, size_t len);
static ngx_int_t ngx_http_kube_body_hold(ngx_http_request_t *r,
    size_t size);
static void ngx_http_kube_body_cleanup(void *data);
static ngx_int_t ngx_http_kube_cache_control(ngx_http_request_t *r);
static void ngx_http_kube_stream_cleanup(void *data);
static bool ngx_http_kube_stream_write(void *ctx, const char *data,
    size_t len);
static void ngx_http_kube_stream_writer(ngx_http_request_t *r);


#define ngx_http_kube_type(type, parameters)                                  \
    { ngx_string(type parameters), sizeof(type) - 1 }

/* gzip_types and such look at len bytes: the type without its parameters. */

static const struct {
    ngx_str_t               text;
    size_t                  len;
} ngx_http_kube_types[] = {
    ngx_http_kube_type("application/json", ""),
    ngx_http_kube_type("text/plain", "; version=0.0.4; charset=utf-8"),
    ngx_http_kube_type("text/plain", "; charset=utf-8"),
    ngx_http_kube_type("text/html", "; charset=utf-8"),
    ngx_http_kube_type("text/css", "; charset=utf-8"),
    ngx_http_kube_type("text/javascript", "; charset=utf-8"),
    ngx_http_kube_type("text/event-stream", "")
};

/* data: is for the icon, which is empty. */

static const char  ngx_http_kube_page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'";


/* Bytes of bodies of this worker, until their requests end. */

static size_t  ngx_http_kube_bodies;


ngx_uint_t
ngx_http_kube_body_may(void)
{
    return ngx_http_kube_bodies < NGX_HTTP_KUBE_BODIES_MAX;
}


void
ngx_http_kube_body_init(ngx_http_kube_body_t *body, ngx_pool_t *pool)
{
    ngx_memzero(body, sizeof(ngx_http_kube_body_t));

    kube_text_init(&body->text, ngx_http_kube_body_write, body,
                   NGX_HTTP_KUBE_BODY_MAX);

    body->pool = pool;
    body->last = &body->out;
}


static ngx_int_t
ngx_http_kube_body_buf(ngx_http_kube_body_t *body, ngx_buf_t *b)
{
    ngx_chain_t  *cl;

    cl = ngx_alloc_chain_link(body->pool);

    if (b == NULL || cl == NULL) {
        body->text.failed = true;
        return NGX_ERROR;
    }

    cl->buf = b;
    cl->next = NULL;

    *body->last = cl;
    body->last = &cl->next;
    body->buf = b;

    return NGX_OK;
}


static bool
ngx_http_kube_body_write(void *ctx, const char *data, size_t len)
{
    ngx_http_kube_body_t *body = ctx;

    size_t  n;

    while (len != 0) {

        if ((body->buf == NULL || body->buf->last == body->buf->end)
            && ngx_http_kube_body_buf(body,
                   ngx_create_temp_buf(body->pool, NGX_HTTP_KUBE_BUF_SIZE))
               != NGX_OK)
        {
            return false;
        }

        n = ngx_min(len, (size_t) (body->buf->end - body->buf->last));

        body->buf->last = ngx_cpymem(body->buf->last, data, n);
        body->held += n;
        data += n;
        len -= n;
    }

    return true;
}


void
ngx_http_kube_body_static(ngx_http_kube_body_t *body, const char *data,
    size_t len)
{
    ngx_buf_t  *b;

    b = ngx_calloc_buf(body->pool);

    if (len == 0 || ngx_http_kube_body_buf(body, b) != NGX_OK) {
        return;
    }

    b->memory = 1;
    b->pos = b->start = (u_char *) data;
    b->last = b->end = b->pos + len;

    body->text.size += len;
}


ngx_int_t
ngx_http_kube_body_error(ngx_http_kube_body_t *body, ngx_int_t status,
    const char *text)
{
    kube_json_writer_t  json;

    kube_json_writer_init(&json, &body->text);
    kube_json_open(&json, NULL, '{');
    kube_json_put_str(&json, "error", kube_str(text));
    kube_json_close(&json, '}');
    kube_text_put(&body->text, KUBE_STR("\n"));

    return status;
}


ngx_int_t
ngx_http_kube_not_allowed(ngx_http_request_t *r, ngx_http_kube_body_t *body)
{
    if (ngx_http_kube_header(r, "Allow", "GET, HEAD") == NULL) {
        return NGX_ERROR;
    }

    return ngx_http_kube_body_error(body, NGX_HTTP_NOT_ALLOWED,
                                    "only GET and HEAD");
}


ngx_int_t
ngx_http_kube_send(ngx_http_request_t *r, ngx_int_t status,
    ngx_http_kube_type_e type, ngx_http_kube_body_t *body)
{
    ngx_int_t  rc;

    if (status < NGX_HTTP_OK || body->text.failed || body->out == NULL) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "kube status could not be printed: no memory, or more "
                      "than %d bytes", NGX_HTTP_KUBE_BODY_MAX);
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_kube_body_hold(r, body->held) != NGX_OK) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    rc = ngx_http_kube_head(r, (ngx_uint_t) status, type,
                            (off_t) body->text.size);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    body->buf->last_buf = (r == r->main);
    body->buf->last_in_chain = 1;

    return ngx_http_output_filter(r, body->out);
}


static ngx_int_t
ngx_http_kube_body_hold(ngx_http_request_t *r, size_t size)
{
    size_t              *held;
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(r->pool, sizeof(size_t));
    if (cln == NULL) {
        return NGX_ERROR;
    }

    held = cln->data;
    *held = size;
    ngx_http_kube_bodies += size;

    cln->handler = ngx_http_kube_body_cleanup;

    return NGX_OK;
}


static void
ngx_http_kube_body_cleanup(void *data)
{
    size_t *held = data;

    ngx_http_kube_bodies -= *held;
}


ngx_int_t
ngx_http_kube_head(ngx_http_request_t *r, ngx_uint_t status,
    ngx_http_kube_type_e type, off_t len)
{
    r->headers_out.content_type = ngx_http_kube_types[type].text;
    r->headers_out.content_type_len = ngx_http_kube_types[type].len;
    r->headers_out.content_type_lowcase = NULL;
    r->headers_out.status = status;
    r->headers_out.content_length_n = len;

    /* it is as of now: a 304 or 412 would hide it from a probe */

    r->disable_not_modified = 1;

    if (ngx_http_kube_cache_control(r) != NGX_OK
        || ngx_http_kube_header(r, "X-Content-Type-Options", "nosniff")
           == NULL
        || (type == NGX_HTTP_KUBE_TYPE_HTML
            && ngx_http_kube_header(r, "Content-Security-Policy",
                                    ngx_http_kube_page_policy)
               == NULL))
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    return ngx_http_send_header(r);
}


ngx_table_elt_t *
ngx_http_kube_header(ngx_http_request_t *r, const char *name,
    const char *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NULL;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) name;
    h->key.len = ngx_strlen(name);
    h->value.data = (u_char *) value;
    h->value.len = ngx_strlen(value);

    return h;
}


/* Where nginx looks for it, so that "expires" changes it and adds no second. */

static ngx_int_t
ngx_http_kube_cache_control(ngx_http_request_t *r)
{
    ngx_table_elt_t   *h;
#if (nginx_version < 1023000)
    ngx_table_elt_t  **place;
#endif

    h = ngx_http_kube_header(r, "Cache-Control", "no-store");
    if (h == NULL) {
        return NGX_ERROR;
    }

#if (nginx_version >= 1023000)

    r->headers_out.cache_control = h;

#else

    if (ngx_array_init(&r->headers_out.cache_control, r->pool, 1,
                       sizeof(ngx_table_elt_t *))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    place = ngx_array_push(&r->headers_out.cache_control);
    if (place == NULL) {
        return NGX_ERROR;
    }

    *place = h;

#endif

    return NGX_OK;
}


ngx_int_t
ngx_http_kube_stream_create(ngx_http_request_t *r,
    ngx_http_kube_stream_t *stream, size_t size, ngx_event_t *event)
{
    u_char              *p;
    ngx_http_cleanup_t  *cln;

    p = ngx_palloc(r->pool, size);
    cln = ngx_http_cleanup_add(r, 0);

    if (p == NULL || cln == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(stream, sizeof(ngx_http_kube_stream_t));

    stream->request = r;
    stream->event = event;
    stream->buf.start = p;
    stream->buf.end = p + size;
    stream->buf.temporary = 1;
    stream->buf.flush = 1;
    stream->out.buf = &stream->buf;

    ngx_http_kube_stream_rewind(stream);

    cln->handler = ngx_http_kube_stream_cleanup;
    cln->data = stream;

    return NGX_OK;
}


static void
ngx_http_kube_stream_cleanup(void *data)
{
    ngx_http_kube_stream_t *stream = data;

    if (stream->cleanup != NULL) {
        stream->cleanup(stream);
    }
}


void
ngx_http_kube_stream_begin(ngx_http_kube_stream_t *stream)
{
    ngx_http_request_t  *r;

    r = stream->request;
    r->write_event_handler = ngx_http_kube_stream_writer;

    /* not "discard_body": in freenginx that says that it was asked for */

    if (r->read_event_handler != ngx_http_discarded_request_body_handler) {
        r->read_event_handler = ngx_http_test_reading;
    }
}


ngx_uint_t
ngx_http_kube_stream_lost(ngx_http_kube_stream_t *stream)
{
    return stream->request->write_event_handler != ngx_http_kube_stream_writer;
}


ngx_uint_t
ngx_http_kube_stream_pending(ngx_http_kube_stream_t *stream)
{
    return stream->buf.pos != stream->buf.last
           || stream->request->buffered
           || stream->request->connection->buffered;
}


void
ngx_http_kube_stream_rewind(ngx_http_kube_stream_t *stream)
{
    ngx_buf_t  *b;

    b = &stream->buf;
    b->pos = b->last = b->start;

    kube_text_init(&stream->text, ngx_http_kube_stream_write, b,
                   (size_t) (b->end - b->start));
}


static bool
ngx_http_kube_stream_write(void *ctx, const char *data, size_t len)
{
    ngx_buf_t *b = ctx;

    if (len > (size_t) (b->end - b->last)) {
        return false;
    }

    b->last = ngx_cpymem(b->last, data, len);

    return true;
}


static void
ngx_http_kube_stream_writer(ngx_http_request_t *r)
{
    ngx_event_t               *wev;
    ngx_http_cleanup_t        *cln;
    ngx_http_kube_stream_t    *stream;
    ngx_http_core_loc_conf_t  *clcf;

    wev = r->connection->write;

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "client timed out");
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    /* HTTP/3: who cancels has us stop sending, and resets nothing itself */

    if (wev->error) {
        r->connection->error = 1;
        ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
        return;
    }

    if (wev->delayed || r->aio) {
        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    for (cln = r->cleanup; cln != NULL; cln = cln->next) {
        if (cln->handler == ngx_http_kube_stream_cleanup) {
            break;
        }
    }

    if (cln == NULL) {
        return;
    }

    stream = cln->data;

    if (ngx_http_kube_stream_pending(stream)) {
        ngx_http_kube_stream_send(stream, NULL);
    }
}


void
ngx_http_kube_stream_send(ngx_http_kube_stream_t *stream, ngx_chain_t *out)
{
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = stream->request;
    wev = r->connection->write;

    if (ngx_http_output_filter(r, out) == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    if (ngx_http_kube_stream_pending(stream)) {

        clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

        if (!wev->delayed) {
            ngx_add_timer(wev, clcf->send_timeout);
        }

        if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_ERROR);
        }

        return;
    }

    /* limit_rate's timer goes on: without it nothing is ever sent again */

    if (wev->timer_set && !wev->delayed) {
        ngx_del_timer(wev);
    }

    /* what came while the buffer was sent */

    ngx_post_event(stream->event, &ngx_posted_next_events);
}

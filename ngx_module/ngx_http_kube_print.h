/*
 * ngx_http_kube_print - text into a chain of buffers, up to a limit, with the
 * escaping of JSON, HTML and Prometheus labels.
 *
 * A failure is remembered, not returned: print everything, then look at
 * failed once.  It sends nothing.  Private to the status files.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_PRINT_H
#define NGX_HTTP_KUBE_PRINT_H


#include "ngx_http_kube.h"


/* A body larger than this is not sent: 500 instead. */
#define NGX_HTTP_KUBE_BODY_MAX   (64 * 1024 * 1024)

/* What one ngx_http_kube_print() yields is cut here. */
#define NGX_HTTP_KUBE_PRINT_MAX  512


typedef struct {
    ngx_pool_t    *pool;
    ngx_chain_t   *out;
    ngx_chain_t  **last;
    ngx_buf_t     *buf;
    size_t         size;
    unsigned       failed:1;     /* out of memory, or above the limit */
    unsigned       comma:1;      /* JSON: due before the next value */
} ngx_http_kube_print_t;

typedef enum {
    NGX_HTTP_KUBE_JSON = 0,      /* what stands between the quotes */
    NGX_HTTP_KUBE_HTML,          /* text and quoted attributes */
    NGX_HTTP_KUBE_LABEL          /* a Prometheus label's value */
} ngx_http_kube_escape_e;


/* p is the caller's, buffers are the pool's. */
void ngx_http_kube_print_init(ngx_http_kube_print_t *p, ngx_pool_t *pool);

void ngx_http_kube_print_raw(ngx_http_kube_print_t *p, const void *data,
    size_t len);
#define ngx_http_kube_puts(p, literal)                                        \
    ngx_http_kube_print_raw(p, literal, sizeof(literal) - 1)

/* nginx's formats; for numbers and static texts, for nothing is escaped. */
void ngx_http_kube_print(ngx_http_kube_print_t *p, const char *fmt, ...);

/* Any bytes; what is not UTF-8 becomes U+FFFD, control bytes are escaped. */
void ngx_http_kube_print_escaped(ngx_http_kube_print_t *p, kube_str_t s,
    ngx_http_kube_escape_e how);

/* 2026-01-01T00:00:00Z; unix_ms > 0 */
void ngx_http_kube_print_time(ngx_http_kube_print_t *p, int64_t unix_ms);


/* JSON: key NULL for an element of an array; commas come by themselves. */

void ngx_http_kube_json_open(ngx_http_kube_print_t *p, const char *key,
    u_char bracket);
void ngx_http_kube_json_close(ngx_http_kube_print_t *p, u_char bracket);
void ngx_http_kube_json_str(ngx_http_kube_print_t *p, const char *key,
    kube_str_t s);
void ngx_http_kube_json_num(ngx_http_kube_print_t *p, const char *key,
    uint64_t n);
void ngx_http_kube_json_bool(ngx_http_kube_print_t *p, const char *key,
    ngx_uint_t value);
void ngx_http_kube_json_null(ngx_http_kube_print_t *p, const char *key);
/* Milliseconds as seconds with three digits. */
void ngx_http_kube_json_seconds(ngx_http_kube_print_t *p, const char *key,
    uint64_t ms);
/* Unix ms as a time; 0: null. */
void ngx_http_kube_json_time(ngx_http_kube_print_t *p, const char *key,
    int64_t unix_ms);


static ngx_inline kube_str_t
ngx_http_kube_str(const ngx_str_t *s)
{
    kube_str_t  str;

    str.data = (const char *) s->data;
    str.len = s->len;

    return str;
}


#endif /* NGX_HTTP_KUBE_PRINT_H */

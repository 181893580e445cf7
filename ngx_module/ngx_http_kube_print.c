/*
 * ngx_http_kube_print - text into a chain of buffers, up to a limit, with the
 * escaping of JSON, HTML and Prometheus labels.
 *
 * It sends nothing and knows nothing of what is printed.  Called by the
 * status files of the http glue, in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_print.h"


#define NGX_HTTP_KUBE_BUF_SIZE  (16 * 1024)


static ngx_int_t ngx_http_kube_print_grow(ngx_http_kube_print_t *p);
static size_t ngx_http_kube_utf8_len(const u_char *s, size_t len);
static size_t ngx_http_kube_escape(u_char c, ngx_http_kube_escape_e how,
    u_char *out);
static size_t ngx_http_kube_escape_json(u_char c, u_char *out);
static void ngx_http_kube_json_key(ngx_http_kube_print_t *p, const char *key);


void
ngx_http_kube_print_init(ngx_http_kube_print_t *p, ngx_pool_t *pool)
{
    ngx_memzero(p, sizeof(ngx_http_kube_print_t));

    p->pool = pool;
    p->last = &p->out;
}


static ngx_int_t
ngx_http_kube_print_grow(ngx_http_kube_print_t *p)
{
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    b = ngx_create_temp_buf(p->pool, NGX_HTTP_KUBE_BUF_SIZE);
    cl = ngx_alloc_chain_link(p->pool);

    if (b == NULL || cl == NULL) {
        p->failed = 1;
        return NGX_ERROR;
    }

    cl->buf = b;
    cl->next = NULL;

    *p->last = cl;
    p->last = &cl->next;
    p->buf = b;

    return NGX_OK;
}


void
ngx_http_kube_print_raw(ngx_http_kube_print_t *p, const void *data,
    size_t len)
{
    size_t         n;
    const u_char  *s = data;

    if (len > NGX_HTTP_KUBE_BODY_MAX - p->size) {
        p->failed = 1;
    }

    if (p->failed) {
        return;
    }

    p->size += len;

    while (len != 0) {

        if ((p->buf == NULL || p->buf->last == p->buf->end)
            && ngx_http_kube_print_grow(p) != NGX_OK)
        {
            return;
        }

        n = ngx_min(len, (size_t) (p->buf->end - p->buf->last));

        p->buf->last = ngx_cpymem(p->buf->last, s, n);
        s += n;
        len -= n;
    }
}


void
ngx_http_kube_print(ngx_http_kube_print_t *p, const char *fmt, ...)
{
    u_char   *end;
    va_list   args;
    u_char    text[NGX_HTTP_KUBE_PRINT_MAX];

    va_start(args, fmt);
    end = ngx_vslprintf(text, text + sizeof(text), fmt, args);
    va_end(args);

    ngx_http_kube_print_raw(p, text, end - text);
}


void
ngx_http_kube_print_escaped(ngx_http_kube_print_t *p, kube_str_t s,
    ngx_http_kube_escape_e how)
{
    size_t         i, n, len, start;
    u_char         text[8];
    const u_char  *data;

    data = (const u_char *) s.data;
    start = 0;

    for (i = 0; i < s.len; i += n) {

        n = 1;

        if (data[i] < 0x80) {
            len = ngx_http_kube_escape(data[i], how, text);

            if (len == 0) {
                continue;
            }

        } else {
            n = ngx_http_kube_utf8_len(&data[i], s.len - i);

            if (n != 0) {
                continue;
            }

            n = 1;
            len = 3;
            ngx_memcpy(text, "\xef\xbf\xbd", 3);
        }

        ngx_http_kube_print_raw(p, &data[start], i - start);
        ngx_http_kube_print_raw(p, text, len);
        start = i + n;
    }

    if (start < s.len) {
        ngx_http_kube_print_raw(p, &data[start], s.len - start);
    }
}


/* Of a well-formed sequence (RFC 3629); 0: none. */

static size_t
ngx_http_kube_utf8_len(const u_char *s, size_t len)
{
    size_t  i, n;
    u_char  low, high;

    low = 0x80;
    high = 0xbf;

    if (s[0] >= 0xc2 && s[0] <= 0xdf) {
        n = 2;

    } else if (s[0] >= 0xe0 && s[0] <= 0xef) {
        n = 3;
        low = s[0] == 0xe0 ? 0xa0 : low;
        high = s[0] == 0xed ? 0x9f : high;

    } else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
        n = 4;
        low = s[0] == 0xf0 ? 0x90 : low;
        high = s[0] == 0xf4 ? 0x8f : high;

    } else {
        return 0;
    }

    if (n > len || s[1] < low || s[1] > high) {
        return 0;
    }

    for (i = 2; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
    }

    return n;
}


/* What stands for c in out (8 bytes); 0: c itself. */

static size_t
ngx_http_kube_escape(u_char c, ngx_http_kube_escape_e how, u_char *out)
{
    if (how == NGX_HTTP_KUBE_JSON) {
        return ngx_http_kube_escape_json(c, out);
    }

    if (how == NGX_HTTP_KUBE_LABEL) {

        if (c == '"' || c == '\\') {
            return ngx_sprintf(out, "\\%c", c) - out;
        }

        if (c == '\n') {
            return ngx_sprintf(out, "\\n") - out;
        }

    } else {

        switch (c) {
        case '<':
        case '>':
        case '&':
        case '"':
        case '\'':
            return ngx_sprintf(out, "&#%d;", (int) c) - out;
        }
    }

    if (c < 0x20 || c == 0x7f) {
        return ngx_sprintf(out, "\xef\xbf\xbd") - out;
    }

    return 0;
}


static size_t
ngx_http_kube_escape_json(u_char c, u_char *out)
{
    if (c == '"' || c == '\\') {
        return ngx_sprintf(out, "\\%c", c) - out;
    }

    if (c < 0x20 || c == 0x7f || c == '<') {
        return ngx_sprintf(out, "\\u%04xd", (int) c) - out;
    }

    return 0;
}


void
ngx_http_kube_print_time(ngx_http_kube_print_t *p, int64_t unix_ms)
{
    ngx_tm_t  tm;

    ngx_gmtime((time_t) (unix_ms / 1000), &tm);

    ngx_http_kube_print(p, "%4d-%02d-%02dT%02d:%02d:%02dZ", tm.ngx_tm_year,
                        tm.ngx_tm_mon, tm.ngx_tm_mday, tm.ngx_tm_hour,
                        tm.ngx_tm_min, tm.ngx_tm_sec);
}


static void
ngx_http_kube_json_key(ngx_http_kube_print_t *p, const char *key)
{
    if (p->comma) {
        ngx_http_kube_puts(p, ",");
    }

    p->comma = 1;

    if (key != NULL) {
        ngx_http_kube_print(p, "\"%s\":", key);
    }
}


void
ngx_http_kube_json_open(ngx_http_kube_print_t *p, const char *key,
    u_char bracket)
{
    ngx_http_kube_json_key(p, key);
    ngx_http_kube_print_raw(p, &bracket, 1);
    p->comma = 0;
}


void
ngx_http_kube_json_close(ngx_http_kube_print_t *p, u_char bracket)
{
    ngx_http_kube_print_raw(p, &bracket, 1);
    p->comma = 1;
}


void
ngx_http_kube_json_str(ngx_http_kube_print_t *p, const char *key,
    kube_str_t s)
{
    ngx_http_kube_json_key(p, key);
    ngx_http_kube_puts(p, "\"");
    ngx_http_kube_print_escaped(p, s, NGX_HTTP_KUBE_JSON);
    ngx_http_kube_puts(p, "\"");
}


void
ngx_http_kube_json_num(ngx_http_kube_print_t *p, const char *key, uint64_t n)
{
    ngx_http_kube_json_key(p, key);
    ngx_http_kube_print(p, "%uL", n);
}


void
ngx_http_kube_json_bool(ngx_http_kube_print_t *p, const char *key,
    ngx_uint_t value)
{
    ngx_http_kube_json_key(p, key);
    ngx_http_kube_print(p, "%s", value ? "true" : "false");
}


void
ngx_http_kube_json_null(ngx_http_kube_print_t *p, const char *key)
{
    ngx_http_kube_json_key(p, key);
    ngx_http_kube_puts(p, "null");
}


void
ngx_http_kube_json_seconds(ngx_http_kube_print_t *p, const char *key,
    uint64_t ms)
{
    ngx_http_kube_json_key(p, key);
    ngx_http_kube_print(p, "%uL.%03uL", ms / 1000, ms % 1000);
}


void
ngx_http_kube_json_time(ngx_http_kube_print_t *p, const char *key,
    int64_t unix_ms)
{
    if (unix_ms <= 0) {
        ngx_http_kube_json_null(p, key);
        return;
    }

    ngx_http_kube_json_key(p, key);
    ngx_http_kube_puts(p, "\"");
    ngx_http_kube_print_time(p, unix_ms);
    ngx_http_kube_puts(p, "\"");
}

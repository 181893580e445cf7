/*
 * kube_request - what is asked of the API server, as path and query.
 *
 * It does not know the server's address nor who asks.  Pure; anyone may call
 * it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_request.h"


/* Writes past the end are counted, not made: len > size says so. */
typedef struct {
    char    *out;
    size_t   size;
    size_t   len;
    char     separator;
} request_writer_t;


static void
request_put(request_writer_t *w, const char *data, size_t len)
{
    if (w->len + len < w->size) {
        memcpy(w->out + w->len, data, len);
    }

    w->len += len;
}


static void
request_put_text(request_writer_t *w, const char *text)
{
    request_put(w, text, strlen(text));
}


/* RFC 3986 unreserved */
static bool
request_is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'
           || c == '~';
}


static void
request_put_encoded(request_writer_t *w, kube_str_t s)
{
    char               hex[3];
    size_t             i;
    unsigned char      c;
    static const char  digits[] = "0123456789ABCDEF";

    for (i = 0; i < s.len; i++) {
        c = (unsigned char) s.data[i];

        if (request_is_plain(s.data[i])) {
            request_put(w, s.data + i, 1);
            continue;
        }

        hex[0] = '%';
        hex[1] = digits[c >> 4];
        hex[2] = digits[c & 15];

        request_put(w, hex, 3);
    }
}


static void
request_put_parameter(request_writer_t *w, const char *name, kube_str_t value)
{
    if (value.len == 0) {
        return;
    }

    request_put(w, &w->separator, 1);
    w->separator = '&';

    request_put_text(w, name);
    request_put(w, "=", 1);
    request_put_encoded(w, value);
}


static void
request_put_number(request_writer_t *w, const char *name, uint32_t value)
{
    char  text[12];
    int   n;

    if (value == 0) {
        return;
    }

    n = snprintf(text, sizeof(text), "%lu", (unsigned long) value);

    request_put_parameter(w, name, (kube_str_t) { text, (size_t) n });
}


static void
request_put_path(request_writer_t *w, const kube_request_t *request)
{
    request_put_text(w, kube_resource_info(request->resource)->path);

    if (request->ns.len != 0) {
        request_put_text(w, "/namespaces/");
        request_put_encoded(w, request->ns);
    }

    request_put_text(w, "/");
    request_put_text(w, kube_resource_text(request->resource));
}


static void
request_put_watch(request_writer_t *w, const kube_request_t *request)
{
    request_put_parameter(w, "watch", KUBE_STR("true"));

    if (request->bookmarks) {
        request_put_parameter(w, "allowWatchBookmarks", KUBE_STR("true"));
    }

    request_put_parameter(w, "resourceVersion", request->rv);
    request_put_number(w, "timeoutSeconds", request->timeout_s);
}


static void
request_put_list(request_writer_t *w, const kube_request_t *request)
{
    request_put_number(w, "limit", request->limit);

    /* the server refuses a continuation that names a version as well */

    if (request->continue_token.len != 0) {
        request_put_parameter(w, "continue", request->continue_token);
        return;
    }

    if (request->rv.len != 0) {
        request_put_parameter(w, "resourceVersion", request->rv);

        if (request->not_older_than) {
            request_put_parameter(w, "resourceVersionMatch",
                                  KUBE_STR("NotOlderThan"));
        }
    }
}


kube_rc_t
kube_request_path(const kube_request_t *request, char *out, size_t size)
{
    request_writer_t  w;

    if (size == 0) {
        return KUBE_TOO_LARGE;
    }

    out[0] = '\0';

    /* ".." needs no encoding and would still be another path */

    if (request->ns.len != 0 && !kube_name_is_label(request->ns)) {
        return KUBE_INVALID;
    }

    w.out = out;
    w.size = size;
    w.len = 0;
    w.separator = '?';

    request_put_path(&w, request);

    if (request->watch) {
        request_put_watch(&w, request);

    } else {
        request_put_list(&w, request);
    }

    request_put_parameter(&w, "labelSelector", request->label_selector);
    request_put_parameter(&w, "fieldSelector", request->field_selector);

    if (w.len >= size) {
        out[0] = '\0';
        return KUBE_TOO_LARGE;
    }

    out[w.len] = '\0';

    return KUBE_OK;
}

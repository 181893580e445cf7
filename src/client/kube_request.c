/*
 * kube_request - what is asked of the API server, as path and query.
 *
 * It does not know the server's address, nor who asks.  It is pure: anyone
 * may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_request.h"


/* A request has one of the first five bits, a parameter those it fits. */
enum {
    REQUEST_LIST = 1,        /* the first page, at no version */
    REQUEST_LIST_AT = 2,     /* the first page, with a version */
    REQUEST_PAGE = 4,        /* a later page: its token says which version */
    REQUEST_WATCH = 8,
    REQUEST_STREAM = 16,     /* a WatchList */

    REQUEST_LISTS = REQUEST_LIST | REQUEST_LIST_AT | REQUEST_PAGE,
    REQUEST_WATCHES = REQUEST_WATCH | REQUEST_STREAM,
    REQUEST_VERSIONS = REQUEST_LIST_AT | REQUEST_WATCHES,
    REQUEST_MATCHES = REQUEST_LIST_AT | REQUEST_STREAM,
    REQUEST_ALL = REQUEST_LISTS | REQUEST_WATCHES
};

typedef enum {
    REQUEST_FLAG = 0,        /* a bool: the text of the row, or left out */
    REQUEST_NUMBER,          /* a uint32_t: 0 is left out */
    REQUEST_TEXT             /* a kube_str_t: the empty string is left out */
} request_type_t;

typedef struct {
    const char      *name;
    unsigned         of;        /* REQUEST_ bits */
    request_type_t   type;
    size_t           offset;    /* in kube_request_t */
    const char      *text;      /* of a flag */
} request_parameter_t;

/*
 * A path that is being written.  Bytes beyond size are counted, but not
 * written: len >= size says that the path did not fit.
 */
typedef struct {
    char    *out;
    size_t   size;
    size_t   len;
    char     separator;         /* before the next parameter */
} request_writer_t;


#define P(name, of, type, field, text)                                        \
    { name, REQUEST_##of, REQUEST_##type, offsetof(kube_request_t, field),     \
      text }

static const request_parameter_t  request_parameters[] = {
    P("watch",                WATCHES,  FLAG,   watch,          "true"),
    P("allowWatchBookmarks",  WATCHES,  FLAG,   bookmarks,      "true"),
    P("sendInitialEvents",    STREAM,   FLAG,   initial_events, "true"),
    P("limit",                LISTS,    NUMBER, limit,          NULL),
    P("continue",             PAGE,     TEXT,   continue_token, NULL),
    P("resourceVersion",      VERSIONS, TEXT,   rv,             NULL),
    P("resourceVersionMatch", MATCHES,  FLAG,   not_older_than, "NotOlderThan"),
    P("resourceVersionMatch", LIST_AT,  FLAG,   exact,          "Exact"),
    P("timeoutSeconds",       WATCHES,  NUMBER, timeout_s,      NULL),
    P("labelSelector",        ALL,      TEXT,   label_selector, NULL),
    P("fieldSelector",        ALL,      TEXT,   field_selector, NULL)
};

#undef P


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


/* Only the unreserved bytes of RFC 3986 section 2.3 are written as they are. */
static void
request_put_encoded(request_writer_t *w, kube_str_t s)
{
    char               hex[3];
    size_t             i;
    unsigned char      c;
    static const char  digits[] = "0123456789ABCDEF";

    for (i = 0; i < s.len; i++) {
        c = (unsigned char) s.data[i];

        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
            || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_'
            || c == '~')
        {
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
request_put_parameter(request_writer_t *w, const request_parameter_t *p,
    const kube_request_t *request)
{
    int          n;
    char         number[12];
    kube_str_t   value;
    const void  *field;

    field = (const char *) request + p->offset;
    value = KUBE_STR_NULL;

    switch (p->type) {

    case REQUEST_FLAG:

        if (*(const bool *) field) {
            value = kube_str(p->text);
        }

        break;

    case REQUEST_NUMBER:

        if (*(const uint32_t *) field != 0) {
            n = snprintf(number, sizeof(number), "%lu",
                         (unsigned long) *(const uint32_t *) field);
            value = (kube_str_t) { number, (size_t) n };
        }

        break;

    case REQUEST_TEXT:
        value = *(const kube_str_t *) field;
        break;
    }

    if (value.len == 0) {
        return;
    }

    request_put(w, &w->separator, 1);
    w->separator = '&';

    request_put_text(w, p->name);
    request_put(w, "=", 1);
    request_put_encoded(w, value);
}


kube_rc_t
kube_request_path(const kube_request_t *request, char *out, size_t size)
{
    size_t                       i;
    unsigned                     kind;
    request_writer_t             w = { out, size, 0, '?' };
    const kube_resource_info_t  *info;

    if (size == 0) {
        return KUBE_TOO_LARGE;
    }

    out[0] = '\0';

    /* ".." needs no encoding, and would make it another path */

    if (request->ns.len != 0 && !kube_name_is_label(request->ns)) {
        return KUBE_INVALID;
    }

    info = kube_resource_info(request->resource);
    request_put_text(&w, info->path);

    if (request->ns.len != 0) {
        request_put_text(&w, "/namespaces/");
        request_put(&w, request->ns.data, request->ns.len);
    }

    request_put_text(&w, "/");
    request_put_text(&w, info->text);

    kind = request->watch && request->initial_events ? REQUEST_STREAM
           : request->watch ? REQUEST_WATCH
           : request->continue_token.len != 0 ? REQUEST_PAGE
           : request->rv.len != 0 ? REQUEST_LIST_AT : REQUEST_LIST;

    for (i = 0; i < sizeof(request_parameters) / sizeof(request_parameters[0]);
         i++)
    {
        if (request_parameters[i].of & kind) {
            request_put_parameter(&w, &request_parameters[i], request);
        }
    }

    if (w.len >= size) {
        out[0] = '\0';
        return KUBE_TOO_LARGE;
    }

    out[w.len] = '\0';

    return KUBE_OK;
}


#define REQUEST_PROTOBUF  "application/vnd.kubernetes.protobuf"
#define REQUEST_FRAMES    REQUEST_PROTOBUF ";stream=watch"
#define REQUEST_JSON      "application/json"


const char *
kube_request_accept(const kube_request_t *request)
{
    bool  whole;

    whole = (kube_resource_info(request->resource)->shape
             != KUBE_SHAPE_METADATA);

    if (!whole || request->encoding == KUBE_ENCODING_JSON) {
        return kube_resource_accept(request->resource, request->watch);
    }

    if (request->encoding == KUBE_ENCODING_PROTOBUF) {
        return request->watch ? REQUEST_FRAMES : REQUEST_PROTOBUF;
    }

    return request->watch ? REQUEST_FRAMES ", " REQUEST_JSON
                          : REQUEST_PROTOBUF ", " REQUEST_JSON;
}

/*
 * kube_request - what is asked of the API server, as path and query.
 *
 * It does not know the server's address, nor who asks.  It knows the server's
 * rules (apimachinery, internalversion/validation): a continuation carries
 * neither resourceVersion nor resourceVersionMatch, a plain watch never carries
 * resourceVersionMatch, and a WatchList always does.  It is pure: anyone may
 * call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REQUEST_H
#define KUBE_REQUEST_H


#include "kube_resource.h"


/*
 * Which encodings of objects are accepted.  It is only asked for: what an
 * answer is in says its Content-Type, and a refusal may come in another.
 */
typedef enum {
    KUBE_ENCODING_AUTO = 0,     /* Protocol Buffers, or else JSON */
    KUBE_ENCODING_JSON,
    KUBE_ENCODING_PROTOBUF      /* nothing else */
} kube_encoding_t;

typedef struct {
    kube_resource_t  resource;
    kube_encoding_t  encoding;
    kube_str_t       ns;                /* empty: all namespaces */
    kube_str_t       label_selector;
    kube_str_t       field_selector;
    bool             watch;
    bool             bookmarks;         /* watch only */
    bool             initial_events;    /* watch only: a WatchList */
    kube_str_t       rv;                /* empty: no resourceVersion */
    bool             not_older_than;    /* list with rv, and WatchList */
    bool             exact;             /* list with rv, in its place */
    uint32_t         limit;             /* list only; 0: no limit */
    kube_str_t       continue_token;    /* list only */
    uint32_t         timeout_s;         /* watch only; 0: the server's choice */
} kube_request_t;

/*
 * Writes "/api/v1/…?…" with percent-encoded values, NUL-terminated.  A field
 * that does not belong to the kind of request (list, later page, watch) is
 * left out, whatever it holds.
 * KUBE_OK; KUBE_TOO_LARGE, or KUBE_INVALID (ns is not a DNS label): out is
 * then the empty string.
 */
kube_rc_t kube_request_path(const kube_request_t *request, char *out,
    size_t size)  KUBE_MUST_CHECK;

/*
 * The value of the request's header Accept (RFC 9110 section 12.5.1); static.
 * A watch asks for Protocol Buffers with the server's own parameter for
 * frames, stream=watch.  Resources of which only the metadata is used are asked
 * for as kube_resource_accept() says, in JSON.
 */
const char *kube_request_accept(const kube_request_t *request);


#endif /* KUBE_REQUEST_H */

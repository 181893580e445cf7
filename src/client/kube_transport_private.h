/*
 * kube_transport_private - what kube_transport.c (the loop), kube_exchange.c
 * (one transfer) and kube_exchange_options.c share.  Nobody else includes it.
 *
 * libcurl forbids adding and removing transfers inside its callbacks, which
 * is where handlers run.  So an exchange is only marked there; the loop adds,
 * unpauses and removes outside.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_TRANSPORT_PRIVATE_H
#define KUBE_TRANSPORT_PRIVATE_H


#include <curl/curl.h>

#include "kube_transport.h"
#include "kube_url_private.h"


/* All header lines of an exchange, 1xx heads and trailers included. */
#define KUBE_EXCHANGE_HEADER_BYTES_MAX  (64u << 10)

#define KUBE_EXCHANGE_TYPE_MAX  128

/*
 * What libcurl reads at once: it is also what a paused exchange may hold,
 * and a 100 KiB slice then takes two reads.
 */
#define KUBE_EXCHANGE_BUFFER_BYTES  (64u << 10)


struct kube_exchange_s {
    kube_transport_t               *transport;
    kube_exchange_t                *next;
    const kube_exchange_handler_t  *handler;
    void                           *ctx;
    CURL                           *easy;
    struct curl_slist              *headers;
    struct curl_slist              *connect_to;
    size_t                          server;        /* index */
    size_t                          header_bytes;
    kube_rc_t                       rc;            /* our own verdict */
    const char                     *why;           /* static, for rc */
    uint32_t                        retry_after_s;

    unsigned                        added:1;       /* to the multi handle */
    unsigned                        responded:1;   /* the head was passed on */
    unsigned                        cancelled:1;   /* no callback any more */
    unsigned                        held:1;        /* paused by the owner */
    unsigned                        paused:1;      /* inside libcurl */
    unsigned                        over:1;        /* end it with rc */

    char                            content_type[KUBE_EXCHANGE_TYPE_MAX];
    char                            error[CURL_ERROR_SIZE];
};


struct kube_transport_s {
    kube_alloc_t           alloc;
    kube_transport_conf_t  conf;
    kube_log_t             log;
    CURLM                 *multi;
    kube_exchange_t       *exchanges;      /* in turn: the first is next */
    kube_url_t             urls[KUBE_SERVERS_MAX];
    size_t                 server;         /* index */
    int                    epoll;
    uint64_t               now_ms;         /* of the last call */
    uint64_t               timer_ms;       /* libcurl's, UINT64_MAX: none */
    uint64_t               changed_ms;     /* CA, certificate; _MAX: never */
    size_t                 taken_bytes;    /* in this process() */

    unsigned               initialised:1;  /* curl_global_init() */
    unsigned               processing:1;
    unsigned               more:1;         /* work is left for the next call */
    unsigned               resolves:1;     /* a resolver thread may start */

    char                   agent[128];
};


/* A new exchange, not linked nor added.  As kube_transport_start(). */
kube_rc_t kube_exchange_create(kube_transport_t *transport,
    const char *path, kube_exchange_t **exchange)  KUBE_MUST_CHECK;

/* All options but the callbacks of kube_exchange.c; path is of the server. */
CURLcode kube_exchange_set_options(kube_exchange_t *exchange,
    const kube_url_t *url, const char *path)  KUBE_MUST_CHECK;

/* It is neither linked nor added any more.  Tells nobody. */
void kube_exchange_destroy(kube_exchange_t *exchange);

/* Marks it to be ended by the loop with rc; the first verdict stays. */
void kube_exchange_fail(kube_exchange_t *exchange, kube_rc_t rc,
    const char *why);

/*
 * Calls done(), unless it was cancelled.  code is libcurl's where libcurl
 * ended it; our own verdict comes first.
 */
void kube_exchange_finish(kube_exchange_t *exchange, CURLcode code);


#endif /* KUBE_TRANSPORT_PRIVATE_H */

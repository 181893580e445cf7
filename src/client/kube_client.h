/*
 * kube_client - configuration, credentials and transport as one thing the
 * cache layer can ask: start this request, cancel it, read credentials again.
 *
 * kube_io_t is the seam: tests and the simulator put their own behind it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLIENT_H
#define KUBE_CLIENT_H


#include "kube_transport.h"


/* See kube_transport_start, _cancel, _resume for the contracts. */
typedef struct {
    kube_rc_t  (*start)(void *ctx, const kube_request_t *request,
                   const kube_exchange_handler_t *handler, void *handler_ctx,
                   uint64_t now_ms, kube_exchange_t **exchange);
    void       (*cancel)(void *ctx, kube_exchange_t *exchange);
    void       (*resume)(void *ctx, kube_exchange_t *exchange);
    /*
     * After a 401 or a refused handshake.  At most one real re-read a second;
     * KUBE_OK: go on.  Not from a handler.
     */
    kube_rc_t  (*credentials)(void *ctx, uint64_t now_ms);
    /* The now_ms of the process() in which a handler runs. */
    uint64_t   (*now)(void *ctx);
    void        *ctx;
} kube_io_t;

typedef struct kube_client_s  kube_client_t;

typedef struct {
    const kube_config_t  *config;               /* borrowed */
    uint64_t              connect_timeout_ms;
    const char           *agent;                /* may be NULL */
} kube_client_conf_t;

/*
 * No credential file is read yet.  While a needed one has never been readable
 * every request is answered with done(KUBE_IO) by the next process().
 * NULL: out of memory or descriptors, or a server that is no address.
 */
kube_client_t *kube_client_create(const kube_alloc_t *alloc,
    const kube_client_conf_t *conf, kube_log_sink_t sink)  KUBE_MUST_CHECK;

/* Ends every exchange without a callback.  Not from a handler. */
void kube_client_destroy(kube_client_t *client);

kube_io_t kube_client_io(kube_client_t *client);

/* The transport's descriptor; constant for the life of the client. */
int kube_client_fd(const kube_client_t *client);

/*
 * Credentials that are due, then kube_transport_process(): its deadline's
 * meaning too.  Blocks for reading credential files only.
 */
void kube_client_process(kube_client_t *client, uint64_t now_ms);
uint64_t kube_client_deadline(const kube_client_t *client);

/* The address the next exchange will be sent to. */
kube_str_t kube_client_server(const kube_client_t *client);


#endif /* KUBE_CLIENT_H */

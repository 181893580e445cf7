/*
 * kube_client - configuration, credentials and transport as one thing that the
 * cache layer can ask: start this request, cancel it, read credentials again.
 *
 * kube_io_t is the seam: tests put their own behind it.  The host owns the
 * client, waits for its descriptor and deadline, and calls process().  One
 * thread, the informer's, calls all of this.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLIENT_H
#define KUBE_CLIENT_H


#include "kube_transport.h"


/* Each function is given ctx. */
typedef struct {
    /* See kube_transport.h for the contracts of these six. */
    kube_rc_t  (*start)(void *ctx, const kube_request_t *request,
                   const kube_exchange_handler_t *handler, void *handler_ctx,
                   uint64_t now_ms, kube_exchange_t **exchange);
    void       (*cancel)(void *ctx, kube_exchange_t *exchange);
    void       (*resume)(void *ctx, kube_exchange_t *exchange);
    void       (*verdict)(void *ctx, size_t server,
                   kube_server_verdict_t verdict);
    bool       (*suspect)(void *ctx, const kube_exchange_t *exchange);
    uint64_t   (*healed)(void *ctx);
    /*
     * Reads credentials again after a 401 or a refused handshake, at most
     * once a second.  KUBE_OK: go on.  No handler may call it.
     */
    kube_rc_t  (*credentials)(void *ctx, uint64_t now_ms);
    /*
     * What helps where done() is told KUBE_NO_CREDENTIALS or KUBE_TLS, in its
     * time: static; NULL: what helps against the cause.
     */
    const char  *(*remedy)(void *ctx, kube_rc_t rc);
    /* Returns the now_ms of the process() in which a handler runs. */
    uint64_t   (*now)(void *ctx);
    void        *ctx;
} kube_io_t;

/*
 * Whoever makes an io does it by this: a member that it forgets is an argument
 * too few, and one that is forgotten here a warning of the compiler's.
 */
#define KUBE_IO(start, cancel, resume, verdict, suspect, healed, credentials, \
    remedy, now, ctx)                                                         \
    ((kube_io_t) { (start), (cancel), (resume), (verdict), (suspect),         \
                   (healed), (credentials), (remedy), (now), (ctx) })

typedef struct kube_client_s  kube_client_t;

typedef struct {
    const kube_config_t  *config;               /* borrowed */
    uint64_t              connect_timeout_ms;   /* TCP and TLS */
    const char           *agent;                /* may be NULL */
    uint64_t              seed;                 /* of jitter */
} kube_client_conf_t;

/*
 * No credential file is read yet.  As long as a needed one has never been
 * readable, the next process() answers every request with
 * done(KUBE_NO_CREDENTIALS).
 * NULL: out of memory or descriptors, or a configuration without a server.
 */
kube_client_t *kube_client_create(const kube_alloc_t *alloc,
    const kube_client_conf_t *conf, kube_log_sink_t sink)  KUBE_MUST_CHECK;

/* Ends every exchange without a callback.  No handler may call it. */
void kube_client_destroy(kube_client_t *client);

kube_io_t kube_client_io(kube_client_t *client);

/* Returns the transport's descriptor; constant for the life of the client. */
int kube_client_fd(const kube_client_t *client);

/*
 * Reads the credentials that are due, then calls kube_transport_process();
 * the deadline's meaning is the transport's too.  Blocks for reading
 * credential files only.
 */
void kube_client_process(kube_client_t *client, uint64_t now_ms);
uint64_t kube_client_deadline(const kube_client_t *client);

/* kube_credentials_ca_marks() of its credentials. */
size_t kube_client_ca_marks(const kube_client_t *client,
    uint64_t marks[KUBE_CA_MARKS_MAX]);

/* kube_transport_answered() of its transport. */
bool kube_client_answered(const kube_client_t *client);

/* The address the next exchange will be sent to. */
kube_str_t kube_client_server(const kube_client_t *client);


#endif /* KUBE_CLIENT_H */

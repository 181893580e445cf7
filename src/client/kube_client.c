/*
 * kube_client - credentials and transport behind the seam kube_io_t.
 *
 * It decides one thing: a request for which no credentials could be read yet
 * is not sent, but answered with KUBE_IO as if the network had.  Everything
 * else is the transport's.  Called by the host's loop and, through kube_io_t,
 * by kube_api_lister_watcher.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_client.h"


#define KUBE_CLIENT_REREAD_MS  1000


/* A request that was not sent; stands for an exchange until process(). */
typedef struct client_unsent_s  client_unsent_t;

struct client_unsent_s {
    client_unsent_t                *next;
    const kube_exchange_handler_t  *handler;
    void                           *ctx;
};

struct kube_client_s {
    kube_alloc_t         alloc;
    kube_log_t           log;
    kube_credentials_t  *credentials;
    kube_transport_t    *transport;
    client_unsent_t     *unsent;
    uint64_t             now_ms;
    uint64_t             refresh_ms;     /* when files are due; 0: at once */
    uint64_t             forced_ms;      /* last re-read on demand; 0: none */
    bool                 reread;         /* one was asked for too soon */
    bool                 readable;       /* all needed files, once */
};


kube_client_t *
kube_client_create(const kube_alloc_t *alloc, const kube_client_conf_t *conf,
    kube_log_sink_t sink)
{
    kube_client_t          *client;
    kube_transport_conf_t   transport;

    client = kube_zalloc(alloc, sizeof(kube_client_t));
    if (client == NULL) {
        return NULL;
    }

    client->alloc = *alloc;
    kube_log_init(&client->log, sink);

    client->credentials = kube_credentials_create(alloc, conf->config, sink);
    if (client->credentials == NULL) {
        goto failed;
    }

    memset(&transport, 0, sizeof(kube_transport_conf_t));

    transport.config = conf->config;
    transport.credentials = client->credentials;
    transport.connect_timeout_ms = conf->connect_timeout_ms;
    transport.agent = conf->agent;
    transport.tick_bytes = KUBE_TICK_BYTES;

    client->transport = kube_transport_create(alloc, &transport, sink);
    if (client->transport == NULL) {
        goto failed;
    }

    return client;

failed:

    kube_client_destroy(client);

    return NULL;
}


void
kube_client_destroy(kube_client_t *client)
{
    kube_alloc_t      alloc;
    client_unsent_t  *unsent;

    if (client == NULL) {
        return;
    }

    alloc = client->alloc;

    if (client->transport != NULL) {
        kube_transport_destroy(client->transport);
    }

    if (client->credentials != NULL) {
        kube_credentials_destroy(client->credentials);
    }

    while (client->unsent != NULL) {
        unsent = client->unsent;
        client->unsent = unsent->next;
        kube_free(&alloc, unsent);
    }

    kube_free(&alloc, client);
}


static kube_rc_t
client_refresh(kube_client_t *client, bool force, uint64_t now_ms)
{
    bool       first;
    unsigned   changed;
    kube_rc_t  rc;

    first = !client->readable;
    changed = 0;
    client->reread = false;

    rc = kube_credentials_refresh(client->credentials, now_ms, force,
                                  &changed);

    if (rc == KUBE_OK) {
        client->readable = true;

    } else {
        kube_log_event(&client->log, now_ms, KUBE_LOG_ERROR,
                       KUBE_EV_CREDENTIALS,
                       "credentials cannot be read: %s; requests wait for them",
                       kube_rc_text(rc));
    }

    client->refresh_ms = now_ms + (client->readable
                                   ? KUBE_CREDENTIALS_PERIOD_MS
                                   : KUBE_CLIENT_REREAD_MS);

    /* before the first success no connection was made with others */

    if (changed != 0 && !first) {
        kube_transport_credentials_changed(client->transport, changed);
    }

    return client->readable ? KUBE_OK : rc;
}


/* An opaque handle, never looked into by anyone but client_take(). */
static kube_rc_t
client_refuse(kube_client_t *client, const kube_exchange_handler_t *handler,
    void *ctx, kube_exchange_t **exchange)
{
    client_unsent_t  *unsent, **last;

    unsent = kube_zalloc(&client->alloc, sizeof(client_unsent_t));
    if (unsent == NULL) {
        return KUBE_NOMEM;
    }

    unsent->handler = handler;
    unsent->ctx = ctx;

    for (last = &client->unsent; *last != NULL; last = &(*last)->next) {
        /* void */
    }

    *last = unsent;
    *exchange = (void *) unsent;

    return KUBE_OK;
}


/* Takes the unsent request out of the list; false: it is a real exchange. */
static bool
client_take(kube_client_t *client, const void *exchange)
{
    client_unsent_t  *unsent, **last;

    for (last = &client->unsent; *last != NULL; last = &(*last)->next) {

        unsent = *last;

        if (unsent == exchange) {
            *last = unsent->next;
            kube_free(&client->alloc, unsent);
            return true;
        }
    }

    return false;
}


static kube_rc_t
client_start(void *ctx, const kube_request_t *request,
    const kube_exchange_handler_t *handler, void *handler_ctx,
    uint64_t now_ms, kube_exchange_t **exchange)
{
    kube_client_t  *client = ctx;

    client->now_ms = now_ms;

    if (!client->readable && now_ms >= client->refresh_ms) {
        (void) client_refresh(client, client->reread, now_ms);
    }

    if (!client->readable) {
        return client_refuse(client, handler, handler_ctx, exchange);
    }

    return kube_transport_start(client->transport, request, handler,
                                handler_ctx, now_ms, exchange);
}


static void
client_cancel(void *ctx, kube_exchange_t *exchange)
{
    kube_client_t  *client = ctx;

    if (!client_take(client, exchange)) {
        kube_transport_cancel(exchange);
    }
}


static void
client_resume(void *ctx, kube_exchange_t *exchange)
{
    (void) ctx;

    /* what was not sent has had no bytes that could have been paused */

    kube_transport_resume(exchange);
}


static kube_rc_t
client_credentials(void *ctx, uint64_t now_ms)
{
    kube_client_t  *client = ctx;

    if (client->forced_ms != 0
        && now_ms - client->forced_ms < KUBE_CLIENT_REREAD_MS)
    {
        if (!client->readable) {
            return KUBE_IO;
        }

        /* after a second 401 nobody asks again: it is made up for later */

        client->reread = true;
        client->refresh_ms = client->forced_ms + KUBE_CLIENT_REREAD_MS;

        return KUBE_OK;
    }

    client->forced_ms = (now_ms != 0) ? now_ms : 1;

    return client_refresh(client, true, now_ms);
}


static uint64_t
client_now(void *ctx)
{
    const kube_client_t  *client = ctx;

    return client->now_ms;
}


kube_io_t
kube_client_io(kube_client_t *client)
{
    kube_io_t  io;

    io.start = client_start;
    io.cancel = client_cancel;
    io.resume = client_resume;
    io.credentials = client_credentials;
    io.now = client_now;
    io.ctx = client;

    return io;
}


int
kube_client_fd(const kube_client_t *client)
{
    return kube_transport_fd(client->transport);
}


static void
client_answer_unsent(kube_client_t *client)
{
    size_t            n;
    client_unsent_t  *unsent, taken;

    /* a handler may start another one: that waits for the next round */

    n = 0;

    for (unsent = client->unsent; unsent != NULL; unsent = unsent->next) {
        n++;
    }

    while (n-- != 0 && client->unsent != NULL) {

        taken = *client->unsent;
        (void) client_take(client, client->unsent);

        taken.handler->done(taken.ctx, KUBE_IO, "credentials cannot be read");
    }
}


void
kube_client_process(kube_client_t *client, uint64_t now_ms)
{
    client->now_ms = now_ms;

    if (client->readable && now_ms >= client->refresh_ms) {
        (void) client_refresh(client, client->reread, now_ms);
    }

    client_answer_unsent(client);

    kube_transport_process(client->transport, now_ms);
}


uint64_t
kube_client_deadline(const kube_client_t *client)
{
    uint64_t  deadline_ms;

    if (client->unsent != NULL) {
        return client->now_ms;
    }

    deadline_ms = kube_transport_deadline(client->transport);

    if (client->readable && client->refresh_ms < deadline_ms) {
        return client->refresh_ms;
    }

    return deadline_ms;
}


kube_str_t
kube_client_server(const kube_client_t *client)
{
    return kube_transport_server(client->transport);
}

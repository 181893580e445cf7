/*
 * kube_client - credentials and transport behind the seam kube_io_t.
 *
 * It decides when credentials are read, and that a request is not sent as long
 * as needed ones have never been readable: it is answered with
 * KUBE_NO_CREDENTIALS, as if the network had.  Everything else is the
 * transport's.  Called by the host's loop and, through kube_io_t, by
 * kube_api_lister_watcher.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_client.h"
#include "kube_limits.h"


#define KUBE_CLIENT_REREAD_MS  1000


struct kube_client_s {
    kube_alloc_t         alloc;
    kube_credentials_t  *credentials;
    kube_transport_t    *transport;
    uint64_t             now_ms;         /* of the last process() or start() */
    uint64_t             refresh_ms;     /* when files are due again */
    uint64_t             forced_ms;      /* last re-read on demand, or NEVER */
    bool                 reread;         /* one was asked for too soon */
    bool                 readable;       /* all needed files, at least once */
    bool                 renewing;       /* an exec plugin is asked after 401 */
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
    client->forced_ms = KUBE_NEVER;

    client->credentials = kube_credentials_create(alloc, conf->config, sink);

    if (client->credentials != NULL) {
        memset(&transport, 0, sizeof(kube_transport_conf_t));

        transport.config = conf->config;
        transport.credentials = client->credentials;
        transport.connect_timeout_ms = conf->connect_timeout_ms;
        transport.agent = conf->agent;
        transport.tick_bytes = KUBE_TICK_BYTES;
        transport.seed = conf->seed;

        client->transport = kube_transport_create(alloc, &transport, sink);
    }

    if (client->transport == NULL) {
        kube_client_destroy(client);
        return NULL;
    }

    return client;
}


void
kube_client_destroy(kube_client_t *client)
{
    kube_alloc_t  alloc;

    if (client == NULL) {
        return;
    }

    alloc = client->alloc;

    kube_transport_destroy(client->transport);
    kube_credentials_destroy(client->credentials);
    kube_free(&alloc, client);
}


static kube_rc_t
client_refresh(kube_client_t *client, bool force, uint64_t now_ms)
{
    bool       first;
    uint64_t   due_ms;
    unsigned   changed;
    kube_rc_t  rc;

    first = !client->readable;
    client->reread = false;

    rc = kube_credentials_refresh(client->credentials, now_ms, force,
                                  &changed);

    if (rc == KUBE_OK) {
        client->readable = true;
    }

    client->refresh_ms = now_ms + (client->readable
                                   ? KUBE_CREDENTIALS_PERIOD_MS
                                   : KUBE_CLIENT_REREAD_MS);

    due_ms = kube_credentials_due(client->credentials);

    if (client->readable && due_ms < client->refresh_ms) {
        client->refresh_ms = due_ms;
    }

    kube_transport_watch(client->transport,
                         kube_credentials_fd(client->credentials));

    /* before the first success no connection was made with others */

    if (changed != 0 && !first) {
        kube_transport_credentials_changed(client->transport, changed);
    }

    return client->readable ? KUBE_OK : rc;
}


/* Hears an exec plugin; what waited for its word goes on, or fails. */
static void
client_hear(kube_client_t *client, uint64_t now_ms)
{
    kube_rc_t  rc;

    if (!kube_credentials_poll(client->credentials, now_ms)) {
        return;
    }

    /* its descriptor is closed, and the next may bear the same number */

    kube_transport_watch(client->transport, -1);

    client->renewing = false;

    rc = client_refresh(client, false, now_ms);

    kube_transport_unpark(client->transport,
                          rc == KUBE_OK ? KUBE_OK : KUBE_NO_CREDENTIALS,
                          kube_credentials_why(client->credentials));
}


/* A request would be sent without credentials, or with refused ones. */
static bool
client_waits(const kube_client_t *client)
{
    return (!client->readable || client->renewing)
           && kube_credentials_fd(client->credentials) != -1;
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

    if (client_waits(client)) {
        return kube_transport_park(client->transport, request, handler,
                                   handler_ctx, exchange);
    }

    if (!client->readable) {
        return kube_transport_refuse(client->transport, KUBE_NO_CREDENTIALS,
                                     kube_credentials_why(client->credentials),
                                     handler, handler_ctx, exchange);
    }

    return kube_transport_start(client->transport, request, handler,
                                handler_ctx, now_ms, exchange);
}


static void
client_cancel(void *ctx, kube_exchange_t *exchange)
{
    kube_client_t  *client = ctx;

    kube_transport_cancel(client->transport, exchange);
}


static void
client_resume(void *ctx, kube_exchange_t *exchange)
{
    kube_client_t  *client = ctx;

    kube_transport_resume(client->transport, exchange);
}


static void
client_verdict(void *ctx, size_t server, kube_server_verdict_t verdict)
{
    kube_client_t  *client = ctx;

    kube_transport_verdict(client->transport, server, verdict);
}


static bool
client_suspect(void *ctx, const kube_exchange_t *exchange)
{
    const kube_client_t  *client = ctx;

    return kube_transport_suspect(client->transport, exchange);
}


static uint64_t
client_healed(void *ctx)
{
    const kube_client_t  *client = ctx;

    return kube_transport_healed(client->transport);
}


static kube_rc_t
client_credentials(void *ctx, uint64_t now_ms)
{
    kube_rc_t       rc;
    kube_client_t  *client = ctx;

    if (client->forced_ms != KUBE_NEVER
        && now_ms - client->forced_ms < KUBE_CLIENT_REREAD_MS)
    {
        if (!client->readable) {
            return KUBE_IO;
        }

        /* after a second 401 nobody asks again: process() makes up for it */

        client->reread = true;
        client->refresh_ms = client->forced_ms + KUBE_CLIENT_REREAD_MS;

        return KUBE_OK;
    }

    client->forced_ms = now_ms;

    rc = client_refresh(client, true, now_ms);
    client->renewing = true;

    /* what is asked next waits for its word */

    return (rc == KUBE_AGAIN) ? KUBE_OK : rc;
}


static const char *
client_remedy(void *ctx, kube_rc_t rc)
{
    const kube_client_t  *client = ctx;

    return kube_credentials_remedy(client->credentials, rc);
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
    return KUBE_IO(client_start, client_cancel, client_resume, client_verdict,
                   client_suspect, client_healed, client_credentials,
                   client_remedy, client_now, client);
}


int
kube_client_fd(const kube_client_t *client)
{
    return kube_transport_fd(client->transport);
}


void
kube_client_process(kube_client_t *client, uint64_t now_ms)
{
    client->now_ms = now_ms;

    client_hear(client, now_ms);

    if (client->readable && now_ms >= client->refresh_ms) {
        (void) client_refresh(client, client->reread, now_ms);
    }

    kube_transport_process(client->transport, now_ms);
}


uint64_t
kube_client_deadline(const kube_client_t *client)
{
    uint64_t  deadline_ms, due_ms;

    deadline_ms = kube_transport_deadline(client->transport);

    if (kube_credentials_fd(client->credentials) != -1) {
        due_ms = kube_credentials_due(client->credentials);
        deadline_ms = (due_ms < deadline_ms) ? due_ms : deadline_ms;
    }

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


size_t
kube_client_ca_marks(const kube_client_t *client,
    uint64_t marks[KUBE_CA_MARKS_MAX])
{
    return kube_credentials_ca_marks(client->credentials, marks);
}


bool
kube_client_answered(const kube_client_t *client)
{
    return kube_transport_answered(client->transport);
}

/*
 * sim_net - a kube_io_t whose network is in memory: connections that bring an
 * answer piece by piece, stall, break at any byte, or lose their peer.
 *
 * It keeps the transport's contracts (kube_transport.h): handlers run inside
 * sim_net_*() calls of the simulator only, done() is last, PAUSE holds back
 * what is left, ABORT ends with KUBE_CLOSED.  For t/sim only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"


/*
 * What keepalive and the user timeout make of a peer that is gone (kube_tcp.h):
 * two probes say that it is silent, and 34 s that it is dead.
 */
#define NET_SUSPECT_MS      6000
#define NET_DEAD_MS         34000

/* The client reads its credentials anew, whatever happens. */
#define NET_CREDENTIALS_MS  60000


void
sim_out(sim_exchange_t *x, const char *fmt, ...)
{
    int      n;
    va_list  args;

    for ( ;; ) {
        va_start(args, fmt);
        n = vsnprintf((x->out != NULL) ? x->out + x->out_len : NULL,
                      x->out_cap - x->out_len, fmt, args);
        va_end(args);

        if (n < 0) {
            abort();
        }

        if ((size_t) n < x->out_cap - x->out_len) {
            break;
        }

        x->out_cap = 2 * x->out_cap + (size_t) n + 1024;
        x->out = realloc(x->out, x->out_cap);

        if (x->out == NULL) {
            abort();
        }
    }

    x->out_len += (size_t) n;
}


static uint64_t
net_number(kube_str_t text)
{
    uint64_t  n;

    if (kube_str_to_u64(text, UINT64_MAX, &n) != KUBE_OK) {
        n = 0;
    }

    return n;
}


static void
net_ask(sim_t *s, sim_exchange_t *x, const kube_request_t *request)
{
    uint64_t  token;

    x->shape = (request->resource != KUBE_RESOURCE_SERVICES);
    x->ns = SIM_NAMESPACES;

    if (request->ns.len != 0) {
        for (x->ns = 0; x->ns < SIM_NAMESPACES; x->ns++) {
            if (kube_str_eq(request->ns, kube_str(sim_namespace(x->ns)))) {
                break;
            }
        }
    }

    x->watch = request->watch;
    x->initial = request->initial_events;
    x->not_older = request->not_older_than;
    x->rv = net_number(request->rv);
    x->no_rv = (request->rv.len == 0);
    x->limit = request->limit;

    token = net_number(request->continue_token);
    x->token = token / SIM_KEYS;
    x->token_at = (unsigned) (token % SIM_KEYS);

    if (request->watch && !x->initial && x->rv == 0) {
        sim_fail(s, "a watch without a version");
    }

    if (request->watch) {
        x->ends_ms = s->now_ms + request->timeout_s * 1000ull;
    }
}


static kube_rc_t
net_start(void *ctx, const kube_request_t *request,
    const kube_exchange_handler_t *handler, void *handler_ctx,
    uint64_t now_ms, kube_exchange_t **exchange)
{
    char             path[1024];
    sim_t           *s = ctx;
    unsigned         i;
    sim_exchange_t  *x;

    if (now_ms != s->now_ms) {
        sim_fail(s, "a request of another time");
    }

    if (kube_request_path(request, path, sizeof(path)) != KUBE_OK) {
        sim_fail(s, "a request that has no path");
    }

    if (!s->quiet && sim_fault(s, SIM_FAULT_MEMORY, 60)) {
        return KUBE_NOMEM;
    }

    for (i = 0; i < SIM_EXCHANGES && s->exchanges[i].live; i++) {
        if (s->exchanges[i].ctx == handler_ctx) {
            sim_fail(s, "a call has two exchanges");
        }
    }

    if (i == SIM_EXCHANGES) {
        sim_fail(s, "%u requests at once", SIM_EXCHANGES);
    }

    x = &s->exchanges[i];

    *x = (sim_exchange_t) {
        .live = true,
        .number = ++s->started,
        .handler = handler,
        .ctx = handler_ctx,
        .replica = (unsigned) sim_draw(s, 0, SIM_REPLICAS - 1),
        .started_ms = now_ms,
        .dead_ms = KUBE_NEVER,
        .ends_ms = KUBE_NEVER,
        .out = x->out,
        .out_cap = x->out_cap
    };

    net_ask(s, x, request);
    sim_check_request(s, x);
    sim_say(s, "#%llu to %u: %s", (unsigned long long) x->number, x->replica,
            path);

    *exchange = (void *) x;

    return KUBE_OK;
}


static void
net_cancel(void *ctx, kube_exchange_t *exchange)
{
    sim_t           *s = ctx;
    sim_exchange_t  *x = (void *) exchange;

    if (!x->live) {
        sim_fail(s, "an exchange that is over is cancelled");
    }

    sim_say(s, "#%llu cancelled", (unsigned long long) x->number);
    x->live = false;
}


static void
net_resume(void *ctx, kube_exchange_t *exchange)
{
    sim_t           *s = ctx;
    sim_exchange_t  *x = (void *) exchange;

    if (!x->live || !x->paused) {
        sim_fail(s, "an exchange that is not paused is resumed");
    }

    x->paused = false;
}


static void
net_verdict(void *ctx, size_t server, kube_server_verdict_t verdict)
{
    (void) ctx;
    (void) server;
    (void) verdict;
}


static bool
net_suspect(void *ctx, const kube_exchange_t *exchange)
{
    const sim_t           *s = ctx;
    const sim_exchange_t  *x = (const void *) exchange;

    return x->live
           && x->headed
           && x->dead_ms != KUBE_NEVER
           && s->now_ms - x->dead_ms >= NET_SUSPECT_MS;
}


static uint64_t
net_healed(void *ctx)
{
    const sim_t  *s = ctx;

    return s->healed;
}


static kube_rc_t
net_credentials(void *ctx, uint64_t now_ms)
{
    sim_t  *s = ctx;

    (void) now_ms;

    /* the file may lag behind */

    if (s->quiet || !sim_once_in(s, 4)) {
        s->sent_token = s->token;
    }

    sim_say(s, "credentials are read");

    return KUBE_OK;
}


static uint64_t
net_now(void *ctx)
{
    const sim_t  *s = ctx;

    return s->now_ms;
}


/* It is an operator who is told. */
static const char *
net_remedy(void *ctx, kube_rc_t rc)
{
    (void) ctx;
    (void) rc;

    return NULL;
}


kube_io_t
sim_net_io(sim_t *s)
{
    return (kube_io_t) {
        .start = net_start,
        .cancel = net_cancel,
        .resume = net_resume,
        .verdict = net_verdict,
        .suspect = net_suspect,
        .healed = net_healed,
        .credentials = net_credentials,
        .remedy = net_remedy,
        .now = net_now,
        .ctx = s
    };
}


void
sim_net_end(sim_t *s, sim_exchange_t *x, kube_rc_t rc)
{
    sim_say(s, "#%llu ends: %s", (unsigned long long) x->number,
            kube_rc_text(rc));

    if (rc == KUBE_CONNECT || rc == KUBE_TIMEOUT || rc == KUBE_CLOSED) {
        s->unreached = true;
    }

    x->live = false;
    x->handler->done(x->ctx, rc, (rc == KUBE_OK) ? "" : "simulated");
}


/* False: nothing more is to be sent now. */
static bool
net_head(sim_t *s, sim_exchange_t *x)
{
    sim_head_t       head;
    kube_take_t      take;
    kube_response_t  response;

    sim_server_answer(s, x, &head);

    if (head.wait) {
        return false;
    }

    if (head.rc != KUBE_OK) {
        sim_net_end(s, x, head.rc);
        return false;
    }

    sim_say(s, "#%llu answered %d", (unsigned long long) x->number,
            head.code);

    x->headed = true;
    response.code = head.code;
    response.server = 0;
    response.retry_after_s = head.retry_after_s;
    response.content_type = kube_str(head.type);

    sim_check_status(s, x, head.code, head.retry_after_s);
    take = x->handler->response(x->ctx, &response);

    if (take == KUBE_TAKE_ABORT) {
        sim_net_end(s, x, KUBE_CLOSED);
        return false;
    }

    x->paused = (take == KUBE_TAKE_PAUSE);

    return !x->paused;
}


void
sim_net_pump(sim_t *s, sim_exchange_t *x, size_t max)
{
    size_t       n;
    kube_take_t  take;

    if (!x->live || x->paused || x->dead_ms != KUBE_NEVER) {
        return;
    }

    if (!x->headed && !net_head(s, x)) {
        return;
    }

    if (x->mute) {
        return;
    }

    if (x->out_at == x->out_len && !x->last) {
        x->out_at = 0;
        x->out_len = 0;
        sim_server_more(s, x);
    }

    n = x->out_len - x->out_at;
    n = (n < max) ? n : max;
    n = (s->narrow && n > SIM_NARROW_PIECE) ? SIM_NARROW_PIECE : n;

    if (n != 0) {
        sim_say(s, "#%llu brings %zu bytes", (unsigned long long) x->number,
                n);
        x->out_at += n;
        take = x->handler->bytes(x->ctx, x->out + x->out_at - n, n);

        if (take == KUBE_TAKE_ABORT) {
            sim_net_end(s, x, KUBE_CLOSED);
            return;
        }

        x->paused = (take == KUBE_TAKE_PAUSE);
    }

    if (x->out_at == x->out_len && x->last && !x->paused) {
        sim_net_end(s, x, x->end_rc);
    }
}


void
sim_net_cut(sim_t *s, unsigned replica, kube_rc_t rc)
{
    unsigned  i;

    for (i = 0; i < SIM_EXCHANGES; i++) {

        if (s->exchanges[i].live
            && (replica == SIM_REPLICAS || s->exchanges[i].replica == replica))
        {
            sim_net_end(s, &s->exchanges[i], rc);
        }
    }
}


void
sim_net_forget(sim_t *s)
{
    unsigned  i;

    for (i = 0; i < SIM_EXCHANGES; i++) {
        s->exchanges[i].live = false;
    }
}


void
sim_net_done(sim_t *s)
{
    unsigned  i;

    for (i = 0; i < SIM_EXCHANGES; i++) {
        free(s->exchanges[i].out);
    }
}


void
sim_net_time(sim_t *s)
{
    unsigned         i;
    sim_replica_t   *r;
    sim_exchange_t  *x;

    sim_check_time(s);

    if (s->now_ms - s->token_ms >= NET_CREDENTIALS_MS) {
        s->token_ms = s->now_ms;
        s->sent_token = s->token;
    }

    for (i = 0; i < SIM_REPLICAS; i++) {
        r = &s->replicas[i];

        if (r->mode == SIM_MODE_WELL || s->now_ms < r->until_ms) {
            continue;
        }

        r->mode = SIM_MODE_WELL;
        sim_say(s, "server %u is well", i);

        if (s->unreached) {
            s->unreached = false;
            s->healed++;
        }
    }

    for (i = 0; i < SIM_EXCHANGES; i++) {
        x = &s->exchanges[i];

        if (!x->live) {
            continue;
        }

        if (x->dead_ms != KUBE_NEVER) {

            if (s->now_ms - x->dead_ms >= NET_DEAD_MS) {
                sim_net_end(s, x, KUBE_CLOSED);
            }

        } else if (s->now_ms >= x->ends_ms && x->headed && !x->paused
                   && x->out_at == x->out_len)
        {
            sim_net_end(s, x, KUBE_OK);
        }
    }
}


uint64_t
sim_net_deadline(const sim_t *s)
{
    unsigned               i;
    uint64_t               ms;
    const sim_exchange_t  *x;

    ms = (s->sent_token == s->token) ? KUBE_NEVER
                                     : s->token_ms + NET_CREDENTIALS_MS;

    for (i = 0; i < SIM_EXCHANGES; i++) {
        x = &s->exchanges[i];

        if (!x->live) {
            continue;
        }

        if (x->dead_ms != KUBE_NEVER) {
            ms = (x->dead_ms + NET_DEAD_MS < ms) ? x->dead_ms + NET_DEAD_MS
                                                 : ms;

            if (x->headed && s->now_ms < x->dead_ms + NET_SUSPECT_MS
                && x->dead_ms + NET_SUSPECT_MS < ms)
            {
                ms = x->dead_ms + NET_SUSPECT_MS;
            }

        } else if (x->ends_ms < ms) {
            ms = x->ends_ms;
        }
    }

    return ms;
}

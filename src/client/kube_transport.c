/*
 * kube_transport - the loop side: libcurl's multi handle over a private epoll
 * descriptor, with bounded work per call.
 *
 * It does not know what an exchange is about; kube_exchange.c holds that.
 * One thread, the informer's.  Invariant: between calls no exchange is
 * cancelled or over, except that `more` is set.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "kube_transport_private.h"
#include "kube_version.h"


/*
 * Rounds of epoll within one call: enough for connect, handshake and request
 * to follow each other, few enough to give the host's loop its turn.
 */
#define KUBE_TRANSPORT_ROUNDS_MAX  8
#define KUBE_TRANSPORT_EVENTS_MAX  16

/*
 * Idle connections kept: the one of the lists, and those of watches that the
 * server has just ended.
 */
#define KUBE_TRANSPORT_IDLE_MAX  4


/* libcurl: fd is to be watched for what.  Never fails: see below. */
static int
transport_socket_cb(CURL *easy, curl_socket_t fd, int what, void *arg,
    void *socketp)
{
    int                 rc;
    kube_exchange_t    *e;
    kube_transport_t   *t = arg;
    struct epoll_event  event;

    (void) socketp;

    memset(&event, 0, sizeof(event));
    event.data.fd = fd;

    if (what == CURL_POLL_REMOVE) {
        (void) epoll_ctl(t->epoll, EPOLL_CTL_DEL, fd, &event);
        return 0;
    }

    if (what & CURL_POLL_IN) {
        event.events |= EPOLLIN;
    }

    if (what & CURL_POLL_OUT) {
        event.events |= EPOLLOUT;
    }

    rc = epoll_ctl(t->epoll, EPOLL_CTL_MOD, fd, &event);

    if (rc == -1 && errno == ENOENT) {
        rc = epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event);
    }

    /*
     * -1 would make the multi handle useless for ever: the one exchange is
     * given up instead.
     */

    if (rc == -1) {
        e = NULL;
        (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, &e);

        if (e != NULL) {
            kube_exchange_fail(e, KUBE_IO, "the socket cannot be watched");
        }
    }

    return 0;
}


/*
 * libcurl's clock and the host's are not the same: only the difference
 * counts.  Called early, libcurl arms the timer anew.
 */
static int
transport_timer_cb(CURLM *multi, long timeout_ms, void *arg)
{
    kube_transport_t  *t = arg;

    (void) multi;

    t->timer_ms = timeout_ms < 0 ? UINT64_MAX
                                 : t->now_ms + (uint64_t) timeout_ms;

    return 0;
}


static bool
transport_set_multi(kube_transport_t *t)
{
    t->multi = curl_multi_init();
    if (t->multi == NULL) {
        return false;
    }

    return curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION,
                             transport_socket_cb) == CURLM_OK
           && curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t) == CURLM_OK
           && curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION,
                                transport_timer_cb) == CURLM_OK
           && curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t) == CURLM_OK
           && curl_multi_setopt(t->multi, CURLMOPT_PIPELINING,
                                CURLPIPE_NOTHING) == CURLM_OK;
}


static bool
transport_set_servers(kube_transport_t *t)
{
    size_t                i;
    const char           *what;
    const kube_config_t  *config = t->conf.config;

    if (config->servers_n == 0) {
        return false;
    }

    t->resolves = (config->proxy_url.len != 0);

    for (i = 0; i < config->servers_n; i++) {
        if (kube_url_parse(config->servers[i], &t->urls[i], &what) != KUBE_OK) {
            return false;
        }

        if (!t->urls[i].literal && t->urls[i].path.len == 0) {
            t->resolves = 1;
        }
    }

    return true;
}


static void
transport_set_agent(kube_transport_t *t)
{
    int  n;

    if (t->conf.agent != NULL) {
        n = snprintf(t->agent, sizeof(t->agent),
                     "nginx-kube-informer/" KUBE_VERSION " (%s)",
                     t->conf.agent);

        if (n > 0 && (size_t) n < sizeof(t->agent)) {
            return;
        }
    }

    (void) snprintf(t->agent, sizeof(t->agent),
                    "nginx-kube-informer/" KUBE_VERSION);
}


kube_transport_t *
kube_transport_create(const kube_alloc_t *alloc,
    const kube_transport_conf_t *conf, kube_log_sink_t sink)
{
    kube_transport_t  *t;

    t = kube_zalloc(alloc, sizeof(kube_transport_t));
    if (t == NULL) {
        return NULL;
    }

    t->alloc = *alloc;
    t->conf = *conf;
    t->epoll = -1;
    t->timer_ms = UINT64_MAX;
    t->changed_ms = UINT64_MAX;

    if (t->conf.connect_timeout_ms == 0
        || t->conf.connect_timeout_ms > INT_MAX)
    {
        t->conf.connect_timeout_ms = INT_MAX;
    }

    if (t->conf.tick_bytes == 0) {
        t->conf.tick_bytes = KUBE_TICK_BYTES;
    }

    kube_log_init(&t->log, sink);
    transport_set_agent(t);

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        kube_transport_destroy(t);
        return NULL;
    }

    t->initialised = 1;
    t->epoll = epoll_create1(EPOLL_CLOEXEC);

    if (t->epoll == -1 || !transport_set_servers(t) || !transport_set_multi(t))
    {
        kube_transport_destroy(t);
        return NULL;
    }

    return t;
}


/* Takes it out of libcurl and frees it; it is not linked any more. */
static void
transport_drop(kube_transport_t *t, kube_exchange_t *e)
{
    if (e->added) {
        (void) curl_multi_remove_handle(t->multi, e->easy);
    }

    kube_exchange_destroy(e);
}


void
kube_transport_destroy(kube_transport_t *transport)
{
    kube_alloc_t      alloc;
    kube_exchange_t  *e;

    if (transport == NULL) {
        return;
    }

    alloc = transport->alloc;

    while (transport->exchanges != NULL) {
        e = transport->exchanges;
        transport->exchanges = e->next;
        transport_drop(transport, e);
    }

    if (transport->multi != NULL) {
        (void) curl_multi_cleanup(transport->multi);
    }

    if (transport->epoll != -1) {
        (void) close(transport->epoll);
    }

    if (transport->initialised) {
        curl_global_cleanup();
    }

    kube_free(&alloc, transport);
}


int
kube_transport_fd(const kube_transport_t *transport)
{
    return transport->epoll;
}


static void
transport_append(kube_transport_t *t, kube_exchange_t *e)
{
    kube_exchange_t  **last;

    for (last = &t->exchanges; *last != NULL; last = &(*last)->next) {
        /* void */
    }

    e->next = NULL;
    *last = e;
}


kube_rc_t
kube_transport_start(kube_transport_t *transport,
    const kube_request_t *request, const kube_exchange_handler_t *handler,
    void *ctx, uint64_t now_ms, kube_exchange_t **exchange)
{
    char              path[KUBE_URL_LEN_MAX];
    kube_rc_t         rc;
    kube_exchange_t  *e;

    *exchange = NULL;

    rc = kube_request_path(request, path, sizeof(path));
    if (rc != KUBE_OK) {
        return rc;
    }

    if (!transport->processing) {
        transport->now_ms = now_ms;
    }

    rc = kube_exchange_create(transport, path, &e);
    if (rc != KUBE_OK) {
        return rc;
    }

    e->handler = handler;
    e->ctx = ctx;

    transport_append(transport, e);
    transport->more = 1;

    *exchange = e;

    return KUBE_OK;
}


static void
transport_unlink(kube_transport_t *t, kube_exchange_t *e)
{
    kube_exchange_t  **p;

    for (p = &t->exchanges; *p != NULL; p = &(*p)->next) {
        if (*p == e) {
            *p = e->next;
            return;
        }
    }
}


void
kube_transport_cancel(kube_exchange_t *exchange)
{
    kube_transport_t  *t = exchange->transport;

    if (t->processing) {
        exchange->cancelled = 1;
        return;
    }

    transport_unlink(t, exchange);
    transport_drop(t, exchange);
}


void
kube_transport_resume(kube_exchange_t *exchange)
{
    exchange->held = 0;

    if (exchange->paused) {
        exchange->transport->more = 1;
    }
}


/*
 * Fairness: who was first in the last call is last in this one, so a long
 * list does not eat the whole budget each time.
 */
static void
transport_rotate(kube_transport_t *t)
{
    kube_exchange_t  *first;

    first = t->exchanges;

    if (first != NULL && first->next != NULL) {
        t->exchanges = first->next;
        transport_append(t, first);
    }
}


/*
 * libcurl's limit counts connections in use as well as idle ones, and closes
 * an idle one whenever there are more: a limit below the number of watches
 * would cost a connection for each page of a list.
 */
static void
transport_add_new(kube_transport_t *t)
{
    long              n;
    kube_exchange_t  *e;

    n = KUBE_TRANSPORT_IDLE_MAX;

    for (e = t->exchanges; e != NULL; e = e->next) {
        n++;
    }

    (void) curl_multi_setopt(t->multi, CURLMOPT_MAXCONNECTS, n);

    for (e = t->exchanges; e != NULL; e = e->next) {
        if (e->added || e->cancelled || e->over) {
            continue;
        }

        if (curl_multi_add_handle(t->multi, e->easy) == CURLM_OK) {
            e->added = 1;

        } else {
            kube_exchange_fail(e, KUBE_NOMEM, "libcurl is out of memory");
        }
    }
}


/*
 * curl_easy_pause() hands over what was held back before it returns; if the
 * handler ends it there, libcurl tells us and would go on with the transfer.
 */
static void
transport_unpause(kube_transport_t *t)
{
    CURLcode          code;
    kube_exchange_t  *e;

    for (e = t->exchanges; e != NULL; e = e->next) {
        if (!e->paused || e->held || e->cancelled || e->over) {
            continue;
        }

        if (t->taken_bytes >= t->conf.tick_bytes) {
            t->more = 1;
            return;
        }

        e->paused = 0;

        code = curl_easy_pause(e->easy, CURLPAUSE_CONT);

        if (code != CURLE_OK && !e->cancelled) {
            kube_exchange_fail(e, code == CURLE_OUT_OF_MEMORY ? KUBE_NOMEM
                                                              : KUBE_CLOSED,
                               "the transfer could not be resumed");
        }
    }
}


/* One look at sockets and timer; false: nothing was ready. */
static bool
transport_round(kube_transport_t *t)
{
    int                 i, n, what, running;
    struct epoll_event  events[KUBE_TRANSPORT_EVENTS_MAX];

    n = epoll_wait(t->epoll, events, KUBE_TRANSPORT_EVENTS_MAX, 0);

    for (i = 0; i < n; i++) {
        what = 0;

        if (events[i].events & (EPOLLIN | EPOLLHUP)) {
            what |= CURL_CSELECT_IN;
        }

        if (events[i].events & EPOLLOUT) {
            what |= CURL_CSELECT_OUT;
        }

        if (events[i].events & EPOLLERR) {
            what |= CURL_CSELECT_ERR;
        }

        (void) curl_multi_socket_action(t->multi, events[i].data.fd, what,
                                        &running);
    }

    if (t->timer_ms <= t->now_ms) {
        t->timer_ms = UINT64_MAX;
        (void) curl_multi_socket_action(t->multi, CURL_SOCKET_TIMEOUT, 0,
                                        &running);
        return true;
    }

    return n > 0;
}


static void
transport_end(kube_transport_t *t, kube_exchange_t *e, CURLcode code)
{
    transport_unlink(t, e);

    /* done() may start the next exchange over this very connection */

    if (e->added) {
        (void) curl_multi_remove_handle(t->multi, e->easy);
        e->added = 0;
    }

    kube_exchange_finish(e, code);
    kube_exchange_destroy(e);
}


/* What libcurl has ended, what we have given up, what was cancelled. */
static void
transport_reap(kube_transport_t *t)
{
    int               left;
    CURLMsg          *message;
    CURLcode          code;
    kube_exchange_t  *e;

    for ( ;; ) {
        message = curl_multi_info_read(t->multi, &left);
        if (message == NULL) {
            break;
        }

        if (message->msg != CURLMSG_DONE) {
            continue;
        }

        code = message->data.result;
        e = NULL;

        (void) curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &e);

        if (e != NULL) {
            transport_end(t, e, code);
        }
    }

    /* done() may cancel any other: begin anew after each */

    e = t->exchanges;

    while (e != NULL) {
        if (e->cancelled || e->over) {
            transport_end(t, e, CURLE_OK);
            e = t->exchanges;

        } else {
            e = e->next;
        }
    }
}


void
kube_transport_process(kube_transport_t *transport, uint64_t now_ms)
{
    int                rounds;
    sigset_t           all, old;
    kube_transport_t  *t = transport;

    t->now_ms = now_ms;
    t->taken_bytes = 0;
    t->more = 0;
    t->processing = 1;

    /* a resolver thread inherits the mask: signals are for the main thread */

    if (t->resolves) {
        (void) sigfillset(&all);
        (void) pthread_sigmask(SIG_SETMASK, &all, &old);
    }

    transport_rotate(t);
    transport_add_new(t);
    transport_unpause(t);

    for (rounds = 0; rounds < KUBE_TRANSPORT_ROUNDS_MAX; rounds++) {
        if (!transport_round(t) || t->taken_bytes >= t->conf.tick_bytes) {
            break;
        }
    }

    if (t->resolves) {
        (void) pthread_sigmask(SIG_SETMASK, &old, NULL);
    }

    transport_reap(t);

    t->processing = 0;
}


uint64_t
kube_transport_deadline(const kube_transport_t *transport)
{
    return transport->more ? transport->now_ms : transport->timer_ms;
}


void
kube_transport_credentials_changed(kube_transport_t *transport,
    unsigned changed)
{
    if (changed & (KUBE_CREDENTIALS_CA | KUBE_CREDENTIALS_CERTIFICATE)) {
        transport->changed_ms = transport->now_ms;
    }
}


kube_str_t
kube_transport_server(const kube_transport_t *transport)
{
    return transport->conf.config->servers[transport->server];
}

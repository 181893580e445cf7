/*
 * kube_transport - the loop side: libcurl's multi handle over a private epoll
 * descriptor, with bounded work for each call, and the choice of the address.
 *
 * It does not know what an exchange is about; kube_exchange.c holds that.  One
 * thread, the informer's, calls it.  Invariant: between two calls no exchange
 * is cancelled or over, unless env.more is set.
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

#include "kube_backoff.h"
#include "kube_curl_memory.h"
#include "kube_exchange.h"
#include "kube_limits.h"
#include "kube_tcp.h"
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

/* Without a head for so long an address is to blame for what is given up. */
#define KUBE_TRANSPORT_SILENT_MS  10000

/* A connection is suspect again no sooner than this after one in its place. */
#define KUBE_TRANSPORT_RELIEF_MS  10000


/* What an address was left for last, unless it has said yes since. */
typedef enum {
    TRANSPORT_NOT_LEFT = 0,
    TRANSPORT_UNCONNECTED,          /* a connection is what it lacked */
    TRANSPORT_BLAMED                /* it had one */
} transport_left_t;

/* What is known of one address. */
typedef struct {
    kube_backoff_t    backoff;
    transport_left_t  left;
    uint64_t          again_ms;     /* passed over until then */
    unsigned          refusals;     /* in a row */
    uint64_t          refused_ms;   /* when the last one counted */
} transport_server_t;

struct kube_transport_s {
    kube_exchange_env_t   env;
    CURLM                *multi;
    kube_exchange_t      *exchanges;     /* in turn: the first is next */
    transport_server_t    servers[KUBE_SERVERS_MAX];
    size_t                server;        /* index of the one in use */
    kube_random_t         random;
    int                   epoll;
    int                   watched;       /* another's; -1: none */
    uint64_t              timer_ms;      /* libcurl's, or KUBE_NEVER */
    uint64_t              look_ms;       /* at a socket, or KUBE_NEVER */
    uint64_t              healed;        /* connections that were dialed */
    bool                  unreached;     /* connecting failed, and nothing was
                                            heard since */
    bool                  initialised;   /* curl_global_init() */
    bool                  processing;
};


/* libcurl: fd is to be watched for what.  It must not fail: see below. */
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

    e = NULL;
    (void) curl_easy_getinfo(easy, CURLINFO_PRIVATE, &e);

    if (e == NULL) {
        return 0;
    }

    kube_exchange_use_socket(e, fd);

    /*
     * Returning -1 would make the multi handle useless for ever: the one
     * exchange is given up instead.
     */

    if (rc == -1) {
        kube_exchange_fail(e, KUBE_IO, "the socket cannot be watched");
    }

    return 0;
}


/*
 * libcurl: its timer.  Its clock and the host's are not the same, so only the
 * difference counts; called too early, libcurl sets the timer anew.
 */
static int
transport_timer_cb(CURLM *multi, long timeout_ms, void *arg)
{
    kube_transport_t  *t = arg;

    (void) multi;

    t->timer_ms = timeout_ms < 0 ? KUBE_NEVER
                                 : t->env.now_ms + (uint64_t) timeout_ms;

    return 0;
}


static bool
transport_set_multi(kube_transport_t *t)
{
    t->multi = curl_multi_init();

    return t->multi != NULL
           && curl_multi_setopt(t->multi, CURLMOPT_SOCKETFUNCTION,
                                transport_socket_cb) == CURLM_OK
           && curl_multi_setopt(t->multi, CURLMOPT_SOCKETDATA, t) == CURLM_OK
           && curl_multi_setopt(t->multi, CURLMOPT_TIMERFUNCTION,
                                transport_timer_cb) == CURLM_OK
           && curl_multi_setopt(t->multi, CURLMOPT_TIMERDATA, t) == CURLM_OK
           && curl_multi_setopt(t->multi, CURLMOPT_PIPELINING,
                                CURLPIPE_NOTHING) == CURLM_OK;
}


/* A name that does not fit is left out: ours always stands there. */
static void
transport_set_agent(kube_exchange_env_t *env)
{
    int          n;
    const char  *agent = env->conf.agent;

    n = snprintf(env->agent, sizeof(env->agent),
                 "nginx-kube-informer/" KUBE_VERSION "%s%s%s",
                 agent != NULL ? " (" : "", agent != NULL ? agent : "",
                 agent != NULL ? ")" : "");

    if (n < 0 || (size_t) n >= sizeof(env->agent)) {
        (void) snprintf(env->agent, sizeof(env->agent),
                        "nginx-kube-informer/" KUBE_VERSION);
    }
}


kube_transport_t *
kube_transport_create(const kube_alloc_t *alloc,
    const kube_transport_conf_t *conf, kube_log_sink_t sink)
{
    size_t                i;
    kube_transport_t     *t;
    kube_backoff_conf_t   backoff;
    kube_exchange_env_t  *env;

    t = kube_zalloc(alloc, sizeof(kube_transport_t));
    if (t == NULL) {
        return NULL;
    }

    t->epoll = -1;
    t->watched = -1;
    t->timer_ms = KUBE_NEVER;
    t->look_ms = KUBE_NEVER;

    env = &t->env;
    env->alloc = *alloc;
    env->conf = *conf;
    env->changed_ms = KUBE_NEVER;

    if (conf->connect_timeout_ms == 0 || conf->connect_timeout_ms > INT_MAX) {
        env->conf.connect_timeout_ms = INT_MAX;
    }

    if (conf->tick_bytes == 0) {
        env->conf.tick_bytes = KUBE_TICK_BYTES;
    }

    kube_log_init(&env->log, sink);
    kube_random_init(&t->random, conf->seed);
    transport_set_agent(env);

    backoff.first_ms = KUBE_SERVER_FIRST_MS;
    backoff.max_ms = KUBE_SERVER_MAX_MS;
    backoff.unreachable_ms = KUBE_SERVER_MAX_MS;

    for (i = 0; i < KUBE_SERVERS_MAX; i++) {
        kube_backoff_init(&t->servers[i].backoff, &backoff);
    }

    kube_dialer_init(&env->dialer, -1, conf->seed);

    t->initialised = kube_curl_memory_init();

    if (t->initialised) {
        t->epoll = epoll_create1(EPOLL_CLOEXEC);
        env->dialer.epoll = t->epoll;
    }

    if (t->epoll == -1
        || conf->config->servers_n == 0
        || !transport_set_multi(t))
    {
        kube_transport_destroy(t);
        return NULL;
    }

    return t;
}


/* Takes an exchange that is not linked any more out of libcurl; frees it. */
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

    alloc = transport->env.alloc;

    while (transport->exchanges != NULL) {
        e = transport->exchanges;
        transport->exchanges = e->next;
        transport_drop(transport, e);
    }

    /* closes the idle connections, which needs env and epoll */

    (void) curl_multi_cleanup(transport->multi);
    kube_dialer_done(&transport->env.dialer);

    if (transport->epoll != -1) {
        (void) close(transport->epoll);
    }

    if (transport->initialised) {
        kube_curl_memory_done();
    }

    kube_free(&alloc, transport->env.sockets);
    kube_free(&alloc, transport);
}


int
kube_transport_fd(const kube_transport_t *transport)
{
    return transport->epoll;
}


/* Returns the address in use, or the one to be used in its place. */
static size_t
transport_choose_server(const kube_transport_t *t)
{
    size_t  i, n, k, best;

    best = t->server;
    n = t->env.conf.config->servers_n;

    for (i = 0; i < n; i++) {
        k = (t->server + i) % n;

        if (t->servers[k].again_ms <= t->env.now_ms) {
            return k;
        }

        if (t->servers[k].again_ms < t->servers[best].again_ms) {
            best = k;
        }
    }

    return best;
}


/*
 * Takes an address's refusal.  Returns whether it is one too many: where
 * another exchange stands, what is refused is a matter of what was asked for.
 * Those that come together count once, as in an expired version's case.
 */
static bool
transport_refused(kube_transport_t *t, size_t server, bool again)
{
    uint64_t                now_ms;
    transport_server_t     *s;
    const kube_exchange_t  *e;

    s = &t->servers[server];
    now_ms = t->env.now_ms;

    for (e = t->exchanges; e != NULL; e = e->next) {
        if (e->server == server && e->granted && !e->cancelled) {
            return false;
        }
    }

    if (s->refusals != 0 && now_ms - s->refused_ms < KUBE_SERVER_FIRST_MS) {
        return false;
    }

    s->refusals++;
    s->refused_ms = now_ms;

    return again && s->refusals >= KUBE_SERVER_REFUSALS;
}


static void
transport_leave(kube_transport_t *t, size_t server, transport_left_t why)
{
    size_t               next;
    uint64_t             now_ms;
    transport_server_t  *s;

    s = &t->servers[server];
    s->left = why;
    s->refusals = 0;
    now_ms = t->env.now_ms;

    /* a body that is none of this API's, or not what was asked for, may be the
       answer to another request, and ours the next on that connection; what a
       head says of its connection, kube_exchange has looked at */

    if (!t->processing) {
        kube_exchange_shut_idle(&t->env);
    }

    /* exchanges that fail together count once */

    if (s->again_ms <= now_ms) {
        s->again_ms = now_ms + kube_backoff_next(&s->backoff, &t->random,
                                                 now_ms, false, 0);
    }

    /* whoever is asked next is another one, though it be asked after a pause
       that is longer than this one is passed over */

    next = transport_choose_server(t);

    if (t->servers[next].again_ms <= now_ms) {
        t->server = next;
    }
}


void
kube_transport_verdict(kube_transport_t *transport, size_t server,
    kube_server_verdict_t verdict)
{
    transport_server_t  *s;

    s = &transport->servers[server];

    switch (verdict) {

    case KUBE_SERVER_GRANTS:
        s->refusals = 0;
        break;

    case KUBE_SERVER_ANSWERS:
        kube_backoff_healthy(&s->backoff, transport->env.now_ms);
        s->left = TRANSPORT_NOT_LEFT;
        s->again_ms = transport->env.now_ms;
        break;

    case KUBE_SERVER_DECLINES:
    case KUBE_SERVER_REFUSES:
        if (transport_refused(transport, server,
                              verdict == KUBE_SERVER_REFUSES))
        {
            transport_leave(transport, server, TRANSPORT_BLAMED);
        }

        break;

    case KUBE_SERVER_BAD:
        transport_leave(transport, server, TRANSPORT_BLAMED);
        break;
    }
}


kube_str_t
kube_transport_server(const kube_transport_t *transport)
{
    return transport->env.conf.config->servers[
               transport_choose_server(transport)];
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
    char               path[KUBE_URL_LEN_MAX];
    kube_rc_t          rc;
    kube_transport_t  *t = transport;

    *exchange = NULL;

    rc = kube_request_path(request, path, sizeof(path));
    if (rc != KUBE_OK) {
        return rc;
    }

    if (!t->processing) {
        t->env.now_ms = now_ms;
    }

    t->server = transport_choose_server(t);

    rc = kube_exchange_create(&t->env, t->server, path,
                              kube_request_accept(request), handler, ctx,
                              exchange);
    if (rc != KUBE_OK) {
        return rc;
    }

    transport_append(t, *exchange);
    t->env.more = true;

    return KUBE_OK;
}


kube_rc_t
kube_transport_refuse(kube_transport_t *transport, kube_rc_t rc,
    const char *why, const kube_exchange_handler_t *handler, void *ctx,
    kube_exchange_t **exchange)
{
    *exchange = kube_exchange_create_failed(&transport->env, rc, why, handler,
                                            ctx);
    if (*exchange == NULL) {
        return KUBE_NOMEM;
    }

    transport_append(transport, *exchange);
    transport->env.more = true;

    return KUBE_OK;
}


kube_rc_t
kube_transport_park(kube_transport_t *transport,
    const kube_request_t *request, const kube_exchange_handler_t *handler,
    void *ctx, kube_exchange_t **exchange)
{
    char       path[KUBE_URL_LEN_MAX];
    kube_rc_t  rc;

    *exchange = NULL;

    rc = kube_request_path(request, path, sizeof(path));
    if (rc != KUBE_OK) {
        return rc;
    }

    *exchange = kube_exchange_park(&transport->env, path,
                                   kube_request_accept(request), handler, ctx);
    if (*exchange == NULL) {
        return KUBE_NOMEM;
    }

    transport_append(transport, *exchange);

    return KUBE_OK;
}


void
kube_transport_unpark(kube_transport_t *transport, kube_rc_t rc,
    const char *why)
{
    kube_rc_t          made;
    kube_exchange_t   *e;
    kube_transport_t  *t = transport;

    for (e = t->exchanges; e != NULL; e = e->next) {

        if (e->path == NULL || e->over || e->cancelled) {
            continue;
        }

        if (rc != KUBE_OK) {
            kube_exchange_fail(e, rc, why);
            continue;
        }

        t->server = transport_choose_server(t);
        made = kube_exchange_unpark(e, t->server);

        if (made != KUBE_OK) {
            kube_exchange_fail(e, made, "the request cannot be set up");
        }
    }

    t->env.more = true;
}


void
kube_transport_watch(kube_transport_t *transport, int fd)
{
    struct epoll_event  event;
    kube_transport_t   *t = transport;

    if (fd == t->watched) {
        return;
    }

    if (t->watched != -1) {

        /* it may be closed already, and is then gone by itself */

        (void) epoll_ctl(t->epoll, EPOLL_CTL_DEL, t->watched, NULL);
    }

    t->watched = -1;

    memset(&event, 0, sizeof(event));
    event.events = EPOLLIN;
    event.data.fd = fd;

    if (fd != -1 && epoll_ctl(t->epoll, EPOLL_CTL_ADD, fd, &event) == 0) {
        t->watched = fd;
    }
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
kube_transport_cancel(kube_transport_t *transport, kube_exchange_t *exchange)
{
    if (exchange->easy != NULL
        && !exchange->responded
        && transport->env.now_ms - exchange->created_ms
           >= KUBE_TRANSPORT_SILENT_MS)
    {
        kube_transport_verdict(transport, exchange->server, KUBE_SERVER_BAD);
    }

    /* while done() runs, its exchange is unlinked already */

    if (transport->processing) {
        exchange->cancelled = 1;
        return;
    }

    transport_unlink(transport, exchange);
    transport_drop(transport, exchange);
}


void
kube_transport_resume(kube_transport_t *transport, kube_exchange_t *exchange)
{
    exchange->held = 0;

    if (exchange->paused) {
        transport->env.more = true;
    }
}


static void
transport_rotate(kube_transport_t *t)
{
    kube_exchange_t  *first;

    first = t->exchanges;
    t->exchanges = first->next;
    transport_append(t, first);
}


/* Whether it is one that a dialed connection, to that server, may serve. */
static bool
transport_may_dial(const kube_exchange_t *e)
{
    return e->easy != NULL && e->direct && !e->cancelled && !e->over;
}


/*
 * Looks whether the peer of an exchange answers, and when to look again.  Once
 * a request was sent it stays suspect until something of the answer comes: a
 * probe that is answered after all says nothing of what the server has to send
 * again, and when it will.
 */
static void
transport_look(kube_transport_t *t, kube_exchange_t *e)
{
    int       fd;
    bool      suspect;
    uint64_t  quiet_ms, due_ms;

    fd = kube_exchange_socket(e);
    suspect = (fd != -1 && kube_tcp_suspect(fd, &quiet_ms));

    e->suspect = (suspect || (e->suspect && e->stage >= KUBE_STAGE_READY));
    e->look_ms = t->env.now_ms + KUBE_EXCHANGE_LOOK_MS;

    if (fd == -1 || e->suspect || !e->responded) {
        return;
    }

    due_ms = (KUBE_TCP_IDLE_S + KUBE_TCP_PROBES * KUBE_TCP_INTERVAL_S) * 1000;

    if (quiet_ms + KUBE_EXCHANGE_LOOK_MS < due_ms) {
        e->look_ms = t->env.now_ms + due_ms - quiet_ms;
    }
}


/*
 * Whether the address that was dialed is to be the one in use.  Not where a
 * connection is not what it lacked, and the one that is next may do better.
 */
static bool
transport_is_next(const kube_transport_t *t)
{
    size_t  next;

    next = transport_choose_server(t);

    return t->servers[t->env.dialer.server].left != TRANSPORT_BLAMED
           || t->servers[next].left == TRANSPORT_UNCONNECTED;
}


/*
 * Whether a connection to that address stands that nothing comes over.  Of one
 * that is still awaited we learn when connecting fails.
 */
static bool
transport_is_silent(const kube_transport_t *t, size_t server)
{
    const kube_exchange_t  *e;

    for (e = t->exchanges; e != NULL; e = e->next) {
        if (e->server == server
            && e->suspect
            && e->stage >= KUBE_STAGE_PEER
            && transport_may_dial(e))
        {
            return true;
        }
    }

    return false;
}


/*
 * Where the address that was dialed is none to go back to of itself, the next
 * one is left too if it is silent: for another, or for the one that was dialed.
 */
static void
transport_leave_silent(kube_transport_t *t)
{
    size_t  next;

    next = transport_choose_server(t);

    if (t->servers[t->env.dialer.server].left == TRANSPORT_BLAMED
        && transport_is_silent(t, next))
    {
        transport_leave(t, next, TRANSPORT_UNCONNECTED);
    }
}


/*
 * A connection stands, and its address is the one in use from now on, but see
 * above: whoever connects there, waits for its name to be resolved, or for the
 * head over a silent connection, begins anew, for nothing of it was handed
 * over.  Of those whose body is awaited, from whatever address, their owners
 * are told, see kube_transport_suspect().
 */
static void
transport_relieve(kube_transport_t *t)
{
    bool              resolves;
    kube_exchange_t  *e;

    t->healed++;
    t->unreached = false;

    transport_leave_silent(t);

    if (transport_is_next(t)) {
        t->server = t->env.dialer.server;
        t->servers[t->server].again_ms = t->env.now_ms;
    }

    for (e = t->exchanges; e != NULL; e = e->next) {

        if (!e->added || !transport_may_dial(e)) {
            continue;
        }

        if (!e->responded) {
            transport_look(t, e);
        }

        resolves = (!e->responded && kube_exchange_socket(e) == -1);

        if (!e->suspect && !resolves) {
            continue;
        }

        if (e->responded) {
            e->relieved_ms = t->env.now_ms;
            continue;
        }

        if (e->server != t->env.dialer.server) {
            continue;
        }

        (void) curl_multi_remove_handle(t->multi, e->easy);
        e->added = 0;
        kube_exchange_restart(e);
    }
}


/* Looks at the sockets that are due; the dialer runs where it is needed. */
static void
transport_dial(kube_transport_t *t)
{
    bool              suspect;
    kube_exchange_t  *e;

    suspect = false;
    t->look_ms = KUBE_NEVER;

    if (t->env.heard) {
        t->env.heard = false;
        t->unreached = false;
    }

    for (e = t->exchanges; e != NULL; e = e->next) {

        if (!e->added || !transport_may_dial(e)) {
            continue;
        }

        if (t->env.now_ms >= e->look_ms) {
            transport_look(t, e);
        }

        if (e->look_ms < t->look_ms) {
            t->look_ms = e->look_ms;
        }

        suspect |= (e->suspect
                    && (e->relieved_ms == KUBE_NEVER
                        || t->env.now_ms - e->relieved_ms
                           >= KUBE_TRANSPORT_RELIEF_MS));
    }

    if (suspect || t->unreached) {
        kube_dialer_start(&t->env.dialer, suspect, t->env.now_ms);

    } else {
        kube_dialer_stop(&t->env.dialer);
    }
}


bool
kube_transport_suspect(const kube_transport_t *transport,
    const kube_exchange_t *exchange)
{
    return exchange->suspect
           && exchange->relieved_ms != KUBE_NEVER
           && transport->env.now_ms - exchange->relieved_ms
              < KUBE_TRANSPORT_RELIEF_MS;
}


uint64_t
kube_transport_healed(const kube_transport_t *transport)
{
    return transport->healed;
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
    bool              claimed;
    kube_exchange_t  *e;

    n = KUBE_TRANSPORT_IDLE_MAX;
    claimed = !t->env.dialer.ready;

    for (e = t->exchanges; e != NULL; e = e->next) {
        n++;
    }

    (void) curl_multi_setopt(t->multi, CURLMOPT_MAXCONNECTS, n);

    for (e = t->exchanges; e != NULL; e = e->next) {
        if (e->added || e->cancelled || e->over || e->path != NULL) {
            continue;
        }

        if (e->easy == NULL) {
            e->over = 1;
            continue;
        }

        kube_exchange_shut_unasked(&t->env);

        if (!claimed
            && transport_may_dial(e)
            && e->server == t->env.dialer.server)
        {
            claimed = true;
            kube_exchange_claim(e);
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
 * handler ends the exchange there, libcurl says so and would go on with the
 * transfer.  Where there is not enough budget for all, the first that had no
 * turn is first in the next call, so that a long list does not take all of it
 * each time.
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

        if (t->env.taken_bytes >= t->env.conf.tick_bytes) {
            t->env.more = true;

            while (t->exchanges != e) {
                transport_rotate(t);
            }

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


/* Looks at sockets and timer once; false: nothing was ready. */
static bool
transport_round(kube_transport_t *t)
{
    int                 i, n, what, running;
    struct epoll_event  events[KUBE_TRANSPORT_EVENTS_MAX];

    n = epoll_wait(t->epoll, events, KUBE_TRANSPORT_EVENTS_MAX, 0);

    for (i = 0; i < n; i++) {

        if (events[i].data.fd == t->watched) {
            continue;    /* whoever asked for it looks before this call */
        }

        if (events[i].data.fd == t->env.dialer.fd) {
            t->env.more = true;
            continue;
        }

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

    if (t->timer_ms <= t->env.now_ms) {
        t->timer_ms = KUBE_NEVER;
        (void) curl_multi_socket_action(t->multi, CURL_SOCKET_TIMEOUT, 0,
                                        &running);
        return true;
    }

    return n > 0;
}


static void
transport_end(kube_transport_t *t, kube_exchange_t *e, CURLcode code)
{
    bool  unconnected;

    transport_unlink(t, e);

    /* done() may start the next exchange over this very connection */

    if (e->added) {
        (void) curl_multi_remove_handle(t->multi, e->easy);
        e->added = 0;
    }

    if (kube_exchange_finish(e, code)) {
        unconnected = (e->rc == KUBE_CONNECT
                       && e->stage == KUBE_STAGE_NO_PEER);

        transport_leave(t, e->server, unconnected ? TRANSPORT_UNCONNECTED
                                                  : TRANSPORT_BLAMED);
        t->unreached |= (unconnected && e->direct);
    }

    kube_exchange_destroy(e);
}


/* Ends what libcurl has ended, what we have given up, what was cancelled. */
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

    t->env.now_ms = now_ms;
    t->env.taken_bytes = 0;
    t->env.more = false;
    t->processing = true;

    /* a resolver thread inherits the mask: signals are for the main thread */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &old);

    if (kube_dialer_process(&t->env.dialer, now_ms)) {
        transport_relieve(t);
    }

    transport_add_new(t);
    transport_unpause(t);

    for (rounds = 0; rounds < KUBE_TRANSPORT_ROUNDS_MAX; rounds++) {
        if (!transport_round(t)
            || t->env.taken_bytes >= t->env.conf.tick_bytes)
        {
            break;
        }
    }

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    transport_reap(t);
    transport_dial(t);

    t->processing = false;
}


uint64_t
kube_transport_deadline(const kube_transport_t *transport)
{
    uint64_t  deadline_ms, dial_ms;

    if (transport->env.more) {
        return transport->env.now_ms;
    }

    dial_ms = kube_dialer_deadline(&transport->env.dialer);
    deadline_ms = (transport->timer_ms < transport->look_ms)
                  ? transport->timer_ms : transport->look_ms;

    return (dial_ms < deadline_ms) ? dial_ms : deadline_ms;
}


bool
kube_transport_answered(const kube_transport_t *transport)
{
    return transport->env.answered;
}


void
kube_transport_credentials_changed(kube_transport_t *transport,
    unsigned changed)
{
    if (changed & (KUBE_CREDENTIALS_CA | KUBE_CREDENTIALS_CERTIFICATE)) {
        transport->env.changed_ms = transport->env.now_ms;
        kube_exchange_shut_idle(&transport->env);
    }

    if (changed & KUBE_CREDENTIALS_CA) {
        transport->env.ca++;
        transport->env.answered = false;
    }
}

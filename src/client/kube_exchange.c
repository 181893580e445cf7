/*
 * kube_exchange - one HTTP exchange over libcurl: its sockets, its head, its
 * bytes, its end.
 *
 * It does not run the loop, never adds or removes a transfer, and leaves the
 * options to kube_exchange_options.c.  The callbacks here are called by
 * libcurl from within kube_transport_process(), but for those of sockets,
 * which curl_multi_cleanup() calls as well.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kube_exchange.h"
#include "kube_limits.h"
#include "kube_secret.h"
#include "kube_tcp.h"


/* One socket of each watch that an informer can have, and some lists. */
#define KUBE_EXCHANGE_SOCKETS_MAX  4096


void
kube_exchange_fail(kube_exchange_t *exchange, kube_rc_t rc, const char *why)
{
    if (!exchange->over) {
        exchange->over = 1;
        exchange->rc = rc;
        exchange->why = why;
        exchange->env->more = true;
    }
}


static kube_socket_t *
exchange_find_socket(kube_exchange_env_t *env, int fd)
{
    size_t  i;

    for (i = 0; i < env->sockets_n; i++) {
        if (env->sockets[i].fd == fd) {
            return &env->sockets[i];
        }
    }

    return NULL;
}


/* The socket of the exchange is known, or it uses none any more. */
static void
exchange_heard(kube_exchange_t *e)
{
    e->env->unheard -= e->unheard;
    e->unheard = 0;
}


void
kube_exchange_use_socket(kube_exchange_t *exchange, int fd)
{
    kube_socket_t  *s;

    s = exchange_find_socket(exchange->env, fd);

    if (s != NULL) {
        s->exchange = exchange;
        exchange_heard(exchange);
    }
}


/*
 * Asks a socket what it knows of the peer.  Over TLS an end without
 * close_notify is an error to libcurl, so there the end of the stream counts
 * as well; over plain TCP it is none, and may follow on anything.
 */
static void
exchange_look_at_socket(kube_exchange_t *e, int fd)
{
    char                     byte;
    socklen_t                len;
    struct sockaddr_storage  peer;

    len = sizeof(peer);

    if (getpeername(fd, (struct sockaddr *) &peer, &len) == -1) {
        e->peer_gone = 1;
        return;
    }

    if (e->stage < KUBE_STAGE_PEER) {
        e->stage = KUBE_STAGE_PEER;
    }

    e->peer_gone = (e->tls
                    && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0);
}


int
kube_exchange_socket(const kube_exchange_t *exchange)
{
    size_t                      i;
    const kube_exchange_env_t  *env = exchange->env;

    for (i = 0; i < env->sockets_n; i++) {
        if (env->sockets[i].exchange == exchange) {
            return env->sockets[i].fd;
        }
    }

    return -1;
}


void
kube_exchange_restart(kube_exchange_t *exchange)
{
    size_t                i;
    kube_exchange_env_t  *env = exchange->env;

    for (i = 0; i < env->sockets_n; i++) {
        if (env->sockets[i].exchange == exchange) {
            env->sockets[i].exchange = NULL;
        }
    }

    exchange_heard(exchange);

    exchange->stage = KUBE_STAGE_NO_PEER;
    exchange->created_ms = env->now_ms;
    exchange->look_ms = env->now_ms + KUBE_EXCHANGE_LOOK_MS;
    exchange->header_bytes = 0;
    exchange->peer_gone = 0;
    exchange->tried = 0;
    exchange->suspect = 0;
    exchange->error[0] = '\0';
    env->more = true;
}


/* Shuts what nobody uses; unasked: of that what something has come over. */
static void
exchange_shut(const kube_exchange_env_t *env, bool unasked)
{
    int     fd;
    char    byte;
    size_t  i;

    for (i = 0; i < env->sockets_n && env->unheard == 0; i++) {
        fd = env->sockets[i].fd;

        if (env->sockets[i].exchange == NULL
            && (!unasked || recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0))
        {
            (void) shutdown(fd, SHUT_RDWR);
        }
    }
}


void
kube_exchange_shut_idle(const kube_exchange_env_t *env)
{
    exchange_shut(env, false);
}


void
kube_exchange_shut_unasked(const kube_exchange_env_t *env)
{
    exchange_shut(env, true);
}


void
kube_exchange_claim(kube_exchange_t *exchange)
{
    exchange->claims = 1;

    /* without it the socket goes to the next that asks, and is not lost */

    (void) curl_easy_setopt(exchange->easy, CURLOPT_FRESH_CONNECT, 1L);
}


/*
 * The connection that was dialed, or a new socket.  libcurl connects both: the
 * first is connected by that, see kube_dialer_take().  The option that says "is
 * connected already" is not used, for libcurl 7.88 connects all the same.
 */
static int
exchange_socket(kube_exchange_t *e, const struct curl_sockaddr *addr)
{
    int                   fd;
    kube_exchange_env_t  *env = e->env;

    if (e->direct) {
        kube_dialer_learn(&env->dialer, e->server, &addr->addr, addr->addrlen,
                          !e->tried);
        e->tried = 1;
        e->look_ms = env->now_ms + KUBE_EXCHANGE_LOOK_MS;
    }

    if (e->claims) {
        e->claims = 0;
        fd = kube_dialer_take(&env->dialer, e->server);

        if (fd != -1) {
            return fd;
        }
    }

    return kube_tcp_open(addr->family, addr->socktype, addr->protocol);
}


/* libcurl: opens a socket for a new connection of the exchange. */
static curl_socket_t
exchange_open_socket_cb(void *arg, curlsocktype purpose,
    struct curl_sockaddr *addr)
{
    int                   fd;
    kube_socket_t        *s;
    kube_exchange_t      *e = arg;
    kube_exchange_env_t  *env = e->env;

    (void) purpose;

    fd = exchange_socket(e, addr);

    if (fd == -1) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS
            || errno == ENOMEM)
        {
            e->stage = KUBE_STAGE_NO_SOCKET;
        }

        return CURL_SOCKET_BAD;
    }

    /* a number that is known was closed without telling us */

    s = exchange_find_socket(env, fd);

    if (s == NULL) {
        if (kube_array_reserve(&env->alloc, (void **) &env->sockets,
                               &env->sockets_cap, env->sockets_n + 1,
                               sizeof(kube_socket_t),
                               KUBE_EXCHANGE_SOCKETS_MAX)
            != KUBE_OK)
        {
            (void) close(fd);
            e->stage = KUBE_STAGE_NO_SOCKET;
            return CURL_SOCKET_BAD;
        }

        s = &env->sockets[env->sockets_n++];
    }

    s->fd = fd;
    s->exchange = e;
    e->stage = KUBE_STAGE_NO_PEER;
    exchange_heard(e);

    return fd;
}


/* libcurl: closes a socket, whose exchange may have ended long ago. */
static int
exchange_close_socket_cb(void *arg, curl_socket_t fd)
{
    kube_socket_t        *s;
    kube_exchange_env_t  *env = arg;

    s = exchange_find_socket(env, fd);

    if (s != NULL) {
        if (s->exchange != NULL) {
            exchange_look_at_socket(s->exchange, fd);
        }

        *s = env->sockets[--env->sockets_n];
    }

    return close(fd);
}


/* libcurl: a connection stands, through proxy and TLS; the request is next. */
static int
exchange_ready_cb(void *arg, char *primary_ip, char *local_ip,
    int primary_port, int local_port)
{
    kube_exchange_t  *e = arg;

    (void) primary_ip;
    (void) local_ip;
    (void) primary_port;
    (void) local_port;

    e->stage = KUBE_STAGE_READY;

    /* a connection that was kept: libcurl does not say which */

    if (!e->unheard && kube_exchange_socket(e) == -1) {
        e->unheard = 1;
        e->env->unheard++;
    }

    return CURL_PREREQFUNC_OK;
}


/* Returns whether the transfer goes on. */
static bool
exchange_take(kube_exchange_t *e, kube_take_t take)
{
    if (e->cancelled) {
        return false;
    }

    if (take == KUBE_TAKE_ABORT) {
        kube_exchange_fail(e, KUBE_CLOSED, "ended by the reader");
        return false;
    }

    if (take == KUBE_TAKE_PAUSE) {
        e->held = 1;
    }

    return true;
}


/* The n-th value of that header in the final head; false: there is none. */
static bool
exchange_header(kube_exchange_t *e, const char *name, size_t n,
    const char **value)
{
    struct curl_header  *h;

    if (curl_easy_header(e->easy, name, n, CURLH_HEADER, -1, &h)
        != CURLHE_OK)
    {
        return false;
    }

    *value = h->value;

    return true;
}


/*
 * Of lengths that differ (RFC 9112, 6.3) libcurl takes the last.  It leaves
 * them alone where the body comes in chunks, as Go's client does.
 */
static bool
exchange_body_has_one_length(kube_exchange_t *e)
{
    size_t       n;
    uint64_t     first, length;
    const char  *value;

    first = 0;

    for (n = 0; exchange_header(e, "Content-Length", n, &value); n++) {
        while (value[0] == '0' && value[1] != '\0') {
            value++;
        }

        if (kube_str_to_u64(kube_str(value), INT64_MAX, &length) != KUBE_OK
            || (n != 0 && length != first))
        {
            kube_exchange_fail(e, KUBE_PROTO,
                               n != 0 ? "two lengths of the body: "
                                        "Content-Length is given twice"
                                      : "a Content-Length that is no number");
            return false;
        }

        first = length;
    }

    return true;
}


/* A body that was not asked for like this could not be read. */
static bool
exchange_body_is_plain(kube_exchange_t *e)
{
    size_t       n;
    const char  *value;

    for (n = 0; exchange_header(e, "Content-Encoding", n, &value); n++) {
        if (value[0] != '\0' && strcasecmp(value, "identity") != 0) {
            kube_exchange_fail(e, KUBE_PROTO,
                               "the body is compressed, which was not asked");
            return false;
        }
    }

    for (n = 0; exchange_header(e, "Transfer-Encoding", n, &value); n++) {
        if (strcasecmp(value, "chunked") != 0
            && strcasecmp(value, "identity") != 0)
        {
            kube_exchange_fail(e, KUBE_PROTO,
                               "unknown transfer encoding of the body");
            return false;
        }
    }

    return true;
}


static uint32_t
exchange_retry_after(kube_exchange_t *e)
{
    curl_off_t   seconds;
    const char  *value;

    /* libcurl also takes the one of a head that only announces another */

    if (!exchange_header(e, "Retry-After", 0, &value)
        || curl_easy_getinfo(e->easy, CURLINFO_RETRY_AFTER, &seconds)
           != CURLE_OK
        || seconds <= 0)
    {
        return 0;
    }

    return seconds < KUBE_RETRY_AFTER_MAX ? (uint32_t) seconds
                                          : KUBE_RETRY_AFTER_MAX;
}


/*
 * Zeroes the header lines, one of which holds the token.  Once a head has come
 * libcurl does not send the request again, and a watch may last for long.
 */
static void
exchange_wipe_headers(kube_exchange_t *e)
{
    struct curl_slist  *line;

    for (line = e->headers; line != NULL; line = line->next) {
        explicit_bzero(line->data, strlen(line->data));
    }
}


/*
 * Has libcurl close the connection behind this answer: whoever gave up on one
 * may pass it on all the same, and it would be taken for the next request's.
 * libcurl gives a connection to who waits for one before it says that it is
 * done, so that is too late.
 */
static void
exchange_leave(kube_exchange_t *e)
{
    if (curl_easy_setopt(e->easy, CURLOPT_FORBID_REUSE, 1L) != CURLE_OK) {
        kube_exchange_fail(e, KUBE_NOMEM, "libcurl is out of memory");
    }
}


/* The empty line: a head is complete.  Returns whether the transfer goes on. */
static bool
exchange_on_head(kube_exchange_t *e)
{
    long              code;
    const char       *type;
    kube_response_t   response;

    code = 0;
    (void) curl_easy_getinfo(e->easy, CURLINFO_RESPONSE_CODE, &code);

    /* 100 and 103 announce a head; another one follows */

    if (code >= 100 && code < 200) {
        return true;
    }

    if (!exchange_body_is_plain(e) || !exchange_body_has_one_length(e)) {
        return false;
    }

    type = "";
    (void) exchange_header(e, "Content-Type", 0, &type);

    response.code = (int) code;
    response.server = e->server;
    response.retry_after_s = exchange_retry_after(e);
    response.content_type.data = type;
    response.content_type.len = strcspn(type, "; \t");

    exchange_wipe_headers(e);

    if (code == 408 || code >= 500) {
        exchange_leave(e);
    }

    e->responded = 1;
    e->granted = (code == 200);
    e->stage = KUBE_STAGE_HEAD;
    e->suspect = 0;
    e->env->heard = true;
    e->env->answered |= (e->ca == e->env->ca);

    return exchange_take(e, e->handler->response(e->ctx, &response));
}


/* libcurl: a header line, whole; anything but its length ends the transfer. */
static size_t
exchange_header_cb(char *data, size_t size, size_t n, void *arg)
{
    kube_exchange_t  *e = arg;

    n *= size;

    if (e->cancelled || e->over) {
        return 0;
    }

    e->header_bytes += n;

    if (e->header_bytes > KUBE_EXCHANGE_HEADER_BYTES_MAX) {
        kube_exchange_fail(e, KUBE_PROTO,
                           "the head of the response is too large");
        return 0;
    }

    /* trailers come the same way, after the body */

    if (e->responded || (data[0] != '\r' && data[0] != '\n')) {
        return n;
    }

    return exchange_on_head(e) ? n : 0;
}


/*
 * libcurl: bytes of the body.  A pause has to be asked for before bytes are
 * taken: libcurl hands the same bytes over again afterwards.
 */
static size_t
exchange_write_cb(char *data, size_t size, size_t n, void *arg)
{
    kube_exchange_t      *e = arg;
    kube_exchange_env_t  *env = e->env;

    n *= size;

    if (e->cancelled || e->over || n == 0) {
        return 0;
    }

    if (e->held) {
        e->paused = 1;
        return CURL_WRITEFUNC_PAUSE;
    }

    if (env->taken_bytes >= env->conf.tick_bytes) {
        e->paused = 1;
        env->more = true;
        return CURL_WRITEFUNC_PAUSE;
    }

    env->taken_bytes += n;
    env->heard = true;
    e->suspect = 0;
    e->relieved_ms = KUBE_NEVER;

    return exchange_take(e, e->handler->bytes(e->ctx, data, n)) ? n : 0;
}


static CURLcode
exchange_set_callbacks(kube_exchange_t *e)
{
    CURL  *easy = e->easy;

    /* none of these can fail but for want of the option in libcurl */

    if (curl_easy_setopt(easy, CURLOPT_PRIVATE, e)
        || curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, e->error)
        || curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION,
                            exchange_open_socket_cb)
        || curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, e)
        || curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION,
                            exchange_close_socket_cb)
        || curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, e->env)
        || curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, exchange_ready_cb)
        || curl_easy_setopt(easy, CURLOPT_PREREQDATA, e)
        || curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, exchange_header_cb)
        || curl_easy_setopt(easy, CURLOPT_HEADERDATA, e)
        || curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, exchange_write_cb)
        || curl_easy_setopt(easy, CURLOPT_WRITEDATA, e))
    {
        return CURLE_UNKNOWN_OPTION;
    }

    return CURLE_OK;
}


static kube_exchange_t *
exchange_alloc(kube_exchange_env_t *env,
    const kube_exchange_handler_t *handler, void *ctx)
{
    kube_exchange_t  *e;

    e = kube_zalloc(&env->alloc, sizeof(kube_exchange_t));

    if (e != NULL) {
        e->env = env;
        e->handler = handler;
        e->ctx = ctx;
        e->stage = KUBE_STAGE_NO_PEER;
        e->relieved_ms = KUBE_NEVER;
    }

    return e;
}


kube_exchange_t *
kube_exchange_create_failed(kube_exchange_env_t *env, kube_rc_t rc,
    const char *why, const kube_exchange_handler_t *handler, void *ctx)
{
    kube_exchange_t  *e;

    e = exchange_alloc(env, handler, ctx);

    if (e != NULL) {
        e->rc = rc;
        e->why = why;
    }

    return e;
}


/* Makes the handle of libcurl, with the credentials of this moment. */
static kube_rc_t
exchange_setup(kube_exchange_t *e, size_t server, const char *path)
{
    CURLcode              code;
    kube_exchange_env_t  *env = e->env;

    e->server = server;
    e->ca = env->ca;
    e->created_ms = env->now_ms;
    e->look_ms = env->now_ms + KUBE_EXCHANGE_LOOK_MS;
    code = CURLE_OUT_OF_MEMORY;

    e->easy = curl_easy_init();

    if (e->easy != NULL) {
        e->setup = exchange_set_callbacks(e);
        kube_exchange_set_options(e, path);
        code = e->setup;
    }

    if (code == CURLE_OK) {
        return KUBE_OK;
    }

    if (code == CURLE_OUT_OF_MEMORY) {
        return KUBE_NOMEM;
    }

    /* a CA that was never read, or a libcurl that lacks an option */

    kube_log_event(&env->log, env->now_ms, KUBE_LOG_ERROR, KUBE_EV_INTERNAL,
                   "the request cannot be set up: %s",
                   curl_easy_strerror(code));

    return code == CURLE_URL_MALFORMAT ? KUBE_TOO_LARGE : KUBE_INVALID;
}


kube_rc_t
kube_exchange_create(kube_exchange_env_t *env, size_t server,
    const char *path, const char *accept,
    const kube_exchange_handler_t *handler, void *ctx,
    kube_exchange_t **exchange)
{
    kube_rc_t         rc;
    kube_exchange_t  *e;

    *exchange = NULL;

    e = exchange_alloc(env, handler, ctx);
    if (e == NULL) {
        return KUBE_NOMEM;
    }

    e->accept = accept;
    rc = exchange_setup(e, server, path);

    if (rc != KUBE_OK) {
        kube_exchange_destroy(e);
        return rc;
    }

    *exchange = e;

    return KUBE_OK;
}


kube_exchange_t *
kube_exchange_park(kube_exchange_env_t *env, const char *path,
    const char *accept, const kube_exchange_handler_t *handler, void *ctx)
{
    kube_str_t        copy;
    kube_exchange_t  *e;

    e = exchange_alloc(env, handler, ctx);

    if (e == NULL || kube_str_dup(&env->alloc, kube_str(path), &copy)
                     != KUBE_OK)
    {
        kube_free(&env->alloc, e);
        return NULL;
    }

    e->path = (char *) (uintptr_t) copy.data;
    e->accept = accept;

    return e;
}


kube_rc_t
kube_exchange_unpark(kube_exchange_t *exchange, size_t server)
{
    kube_rc_t  rc;

    rc = exchange_setup(exchange, server, exchange->path);

    kube_free(&exchange->env->alloc, exchange->path);
    exchange->path = NULL;

    return rc;
}


void
kube_exchange_destroy(kube_exchange_t *exchange)
{
    size_t                i;
    kube_alloc_t          alloc;
    kube_exchange_env_t  *env = exchange->env;

    alloc = env->alloc;

    if (exchange->easy != NULL) {
        curl_easy_cleanup(exchange->easy);
    }

    for (i = 0; i < env->sockets_n; i++) {
        if (env->sockets[i].exchange == exchange) {
            env->sockets[i].exchange = NULL;
        }
    }

    exchange_heard(exchange);
    exchange_wipe_headers(exchange);

    curl_slist_free_all(exchange->headers);
    curl_slist_free_all(exchange->connect_to);
    curl_url_cleanup(exchange->url);

    kube_free(&alloc, exchange->path);
    kube_free(&alloc, exchange);
}


/* libcurl speaks of the host of the URL, which is none where this is a path. */
static void
exchange_say_unix(kube_exchange_t *e)
{
    long         err;
    const char  *path;

    path = kube_config_unix_path(e->env->conf.config->servers[e->server].data);

    if (path == NULL) {
        return;
    }

    err = 0;
    (void) curl_easy_getinfo(e->easy, CURLINFO_OS_ERRNO, &err);

    (void) snprintf(e->error, sizeof(e->error), "unix socket %s: %s", path,
                    (err == ECONNREFUSED) ? "connection refused"
                    : kube_secret_errno_text((int) err, "cannot connect"));
}


/* Finds out why libcurl ended the exchange. */
static void
exchange_judge(kube_exchange_t *e, CURLcode code)
{
    size_t                i;
    kube_exchange_env_t  *env = e->env;

    for (i = 0; i < env->sockets_n; i++) {
        if (env->sockets[i].exchange == e) {
            exchange_look_at_socket(e, env->sockets[i].fd);
        }
    }

    if (code == CURLE_COULDNT_CONNECT && e->stage != KUBE_STAGE_NO_SOCKET) {
        exchange_say_unix(e);
    }

    e->rc = kube_exchange_cause(code, e->stage, e->peer_gone);
    e->why = code == CURLE_OK ? "the head of the response is incomplete"
             : e->stage == KUBE_STAGE_NO_SOCKET
               ? "no socket: too many open files, or no memory"
             : e->error[0] != '\0' ? e->error : curl_easy_strerror(code);
}


bool
kube_exchange_finish(kube_exchange_t *exchange, CURLcode code)
{
    char              text[2 * CURL_ERROR_SIZE];
    kube_exchange_t  *e = exchange;

    if (e->cancelled) {
        return false;
    }

    if (!e->over) {
        exchange_judge(e, code);
    }

    /* what is said of credentials is escaped, and has quotes of its own */

    if (e->rc == KUBE_NO_CREDENTIALS) {
        (void) snprintf(text, sizeof(text), "%s", e->why);

    } else {
        (void) kube_str_escape(text, sizeof(text),
                               kube_str(e->rc == KUBE_OK ? "" : e->why));
    }

    e->handler->done(e->ctx, e->rc, text);

    return !e->responded && e->rc != KUBE_NOMEM && e->rc != KUBE_IO
           && e->rc != KUBE_NO_CREDENTIALS;
}

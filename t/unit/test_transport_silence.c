/*
 * test_transport_silence - servers that cannot be reached, and peers that fall
 * silent: connections that are dialed for the next request, and what becomes of
 * the requests that wait.
 *
 * What the kernel says of a silent peer is the test's word here;
 * t/proof/test_healing.py drops real packets.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <netdb.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "transport_bed.h"

#include "kube_dialer.h"
#include "kube_tcp.h"


#define WATCH_HEAD                                                            \
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"                  \
    "Transfer-Encoding: chunked\r\n\r\n"

/* The transport's clock runs ahead of the real one by so much. */
static uint64_t  ahead_ms;

/* The descriptor whose peer is silent, and how it shows; -1: none. */
static int      silent_fd = -1;
static uint8_t  silent_probes;
static uint8_t  silent_backoff;


/* In place of the C library's, for this program. */
int
getsockopt(int fd, int level, int option, void *value, socklen_t *len)
{
    int               rc;
    struct tcp_info  *info;

    rc = (int) syscall(SYS_getsockopt, fd, level, option, value, len);

    if (rc == 0
        && level == IPPROTO_TCP
        && option == TCP_INFO
        && fd == silent_fd)
    {
        info = value;
        info->tcpi_probes = silent_probes;
        info->tcpi_backoff = silent_backoff;
    }

    return rc;
}


/* 127.0.0.x: what each name leads to. */
static atomic_uint  name_leads_to;

/* Look-ups that have begun; that one has no answer while it is held. */
static atomic_uint  name_lookups;
static atomic_uint  name_held;


/* In place of the C library's, in threads of libcurl. */
int
getaddrinfo(const char *node, const char *service,
    const struct addrinfo *hints, struct addrinfo **res)
{
    struct addrinfo     *ai;
    struct sockaddr_in  *in;

    (void) node;

    if (atomic_fetch_add(&name_lookups, 1) + 1 == atomic_load(&name_held)) {
        while (atomic_load(&name_held) != 0) {
            (void) poll(NULL, 0, 1);
        }
    }

    ai = calloc(1, sizeof(struct addrinfo) + sizeof(struct sockaddr_in));

    if (ai == NULL) {
        return EAI_MEMORY;
    }

    in = (void *) (ai + 1);
    in->sin_family = AF_INET;
    in->sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu)
                                + atomic_load(&name_leads_to));
    in->sin_port = htons((uint16_t) strtoul(service, NULL, 10));

    ai->ai_family = AF_INET;
    ai->ai_socktype = hints->ai_socktype;
    ai->ai_addr = (void *) in;
    ai->ai_addrlen = sizeof(struct sockaddr_in);
    *res = ai;

    return 0;
}


void
freeaddrinfo(struct addrinfo *ai)
{
    free(ai);
}


/* The server's end of the first connection. */
static int  served_fd;


/* The head of a watch; of the first one not even that where arg says so. */
static bool
serve_watch(http_bed_t *server, int fd)
{
    if (http_bed_connections(server) == 1) {
        served_fd = fd;
    }

    return (server->arg != NULL && http_bed_connections(server) == 1)
           || http_bed_puts(fd, WATCH_HEAD);
}


static void
silence_step(transport_bed_t *f)
{
    ahead_ms += 10;

    f->processing = true;
    kube_transport_process(f->transport, transport_bed_now_ms() + ahead_ms);
    f->processing = false;

    (void) poll(NULL, 0, 1);
}


static void
silence_until_healed(transport_bed_t *f, uint64_t n)
{
    unsigned  i;

    for (i = 0; kube_transport_healed(f->transport) < n; i++) {
        assert_true(i < 20000);
        silence_step(f);
    }
}


static void
silence_until_responses(transport_bed_t *f, const transport_bed_client_t *c)
{
    unsigned  i;

    for (i = 0; c->responses == 0; i++) {
        assert_true(i < 20000);
        silence_step(f);
    }
}


static void
silence_run(transport_bed_t *f, uint64_t ms)
{
    uint64_t  end_ms;

    for (end_ms = ahead_ms + ms; ahead_ms < end_ms; /* void */ ) {
        silence_step(f);
    }
}


/* The connection that has come, and the request that came over it. */
static int
silence_accept(int fd)
{
    int   peer;
    char  got[3];

    peer = accept(fd, NULL, NULL);
    assert_true(peer != -1);
    assert_int_equal(recv(peer, got, sizeof(got), MSG_WAITALL), 3);
    assert_memory_equal(got, "GET", 3);

    return peer;
}


/* The first socket that is connected to a port. */
static int
silence_socket_to(uint16_t port)
{
    int                 fd;
    socklen_t           len;
    struct sockaddr_in  in;

    for (fd = 3; fd < 1024; fd++) {
        len = sizeof(in);

        if (getpeername(fd, (struct sockaddr *) &in, &len) == 0
            && in.sin_family == AF_INET
            && ntohs(in.sin_port) == port)
        {
            return fd;
        }
    }

    fail();

    return -1;
}


/* That to the server. */
static int
silence_socket(const transport_bed_t *f)
{
    return silence_socket_to(f->server.port);
}


static void
silence_open(transport_bed_t *f, const char *arg)
{
    ahead_ms = 0;
    silent_fd = -1;
    silent_probes = 0;
    silent_backoff = 0;

    transport_bed_serve(f, serve_watch, arg);
    transport_bed_open(f);
}


/* Connecting fails; once the server is back the first connection is used. */
static void
test_refused_and_back(void **state)
{
    int                     fd, peer;
    socklen_t               len;
    struct pollfd           pfd;
    transport_bed_t        *f = *state;
    struct sockaddr_in      in;
    transport_bed_client_t  c = { 0 };

    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(in);
    ahead_ms = 0;

    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &in, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &in, &len), 0);

    transport_bed_add_port(f, "http", ntohs(in.sin_port));
    transport_bed_open(f);

    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    assert_int_equal(kube_transport_healed(f->transport), 0);
    assert_true(kube_transport_deadline(f->transport)
                <= transport_bed_now_ms() + KUBE_DIALER_PACE_MS);
    transport_bed_free(&c);

    silence_run(f, 3000);
    assert_int_equal(kube_transport_healed(f->transport), 0);

    assert_int_equal(listen(fd, 8), 0);
    silence_until_healed(f, 1);

    transport_bed_start(f, &c);
    silence_run(f, 200);

    /* one connection was made, and it has the request */

    peer = silence_accept(fd);

    pfd.fd = fd;
    pfd.events = POLLIN;
    assert_int_equal(poll(&pfd, 1, 0), 0);

    /* it is reached: nobody dials, whatever becomes of this request */

    close(peer);
    silence_run(f, 3000);
    assert_int_equal(c.dones, 1);
    assert_int_equal(c.rc, KUBE_CLOSED);
    assert_int_equal(kube_transport_healed(f->transport), 1);
    assert_int_equal(poll(&pfd, 1, 0), 0);

    transport_bed_free(&c);
    close(fd);
}


/* Listens at a port of the loopback; 0: at any, and *port is that. */
static int
silence_listen(uint16_t *port)
{
    int                 fd, on;
    socklen_t           len;
    struct sockaddr_in  in;

    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(*port);
    len = sizeof(in);
    on = 1;

    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
                                sizeof(on)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &in, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &in, &len), 0);
    assert_int_equal(listen(fd, 8), 0);
    *port = ntohs(in.sin_port);

    return fd;
}


/*
 * A peer that was silent sends the head of a watch, and nothing behind it: it
 * is heard, and nobody dials for it any more.
 */
static void
test_head_after_silence(void **state)
{
    int                     fd, peer;
    uint16_t                port;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    ahead_ms = 0;
    silent_fd = -1;
    silent_probes = 0;
    silent_backoff = 3;
    port = 0;
    fd = silence_listen(&port);
    transport_bed_add_port(f, "http", port);
    transport_bed_open(f);

    transport_bed_start(f, &c);
    silence_run(f, 200);
    peer = silence_accept(fd);
    close(fd);

    silent_fd = silence_socket_to(port);
    silence_run(f, 5000);
    assert_int_equal(kube_transport_healed(f->transport), 0);

    silent_fd = -1;
    assert_true(http_bed_puts(peer, WATCH_HEAD));
    silence_until_responses(f, &c);
    fd = silence_listen(&port);
    silence_run(f, 5000);
    assert_int_equal(kube_transport_healed(f->transport), 0);
    assert_false(kube_transport_suspect(f->transport, c.exchange));
    assert_int_equal(c.dones, 0);

    close(peer);
    transport_bed_until(f, &c.dones, 1);
    transport_bed_free(&c);
    close(fd);
}


/* Of several addresses that failed the one that is back is asked next. */
static void
test_which_is_back(void **state)
{
    int                     fds[2];
    char                    urls[2][64];
    size_t                  i;
    socklen_t               len;
    kube_str_t              server;
    transport_bed_t        *f = *state;
    struct sockaddr_in      in;
    transport_bed_client_t  c = { 0 };

    ahead_ms = 0;
    silent_fd = -1;

    for (i = 0; i < 2; i++) {
        memset(&in, 0, sizeof(in));
        in.sin_family = AF_INET;
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        len = sizeof(in);

        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(bind(fds[i], (struct sockaddr *) &in, len), 0);
        assert_int_equal(getsockname(fds[i], (struct sockaddr *) &in, &len),
                         0);
        transport_bed_add_port(f, "http", ntohs(in.sin_port));
        snprintf(urls[i], sizeof(urls[i]), "http://127.0.0.1:%u",
                 ntohs(in.sin_port));
    }

    transport_bed_open(f);

    /* both fail, the second more often: it is passed over for longer */

    for (i = 0; i < 3; i++) {
        transport_bed_get(f, &c);
        assert_int_equal(c.rc, KUBE_CONNECT);
        transport_bed_free(&c);
        kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
        silence_run(f, 700);
    }

    for (i = 0; i < 6; i++) {
        ahead_ms += KUBE_SERVER_MAX_MS;
        silence_step(f);
        kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
    }

    assert_int_equal(listen(fds[1], 8), 0);
    silence_until_healed(f, 1);

    server = kube_transport_server(f->transport);
    assert_int_equal(server.len, strlen(urls[1]));
    assert_memory_equal(server.data, urls[1], server.len);

    close(fds[0]);
    close(fds[1]);
}


/* It is the address that is in use. */
static void
silence_assert_next(const transport_bed_t *f, uint16_t port)
{
    char        url[64];
    kube_str_t  server;

    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    server = kube_transport_server(f->transport);
    assert_int_equal(server.len, strlen(url));
    assert_memory_equal(server.data, url, server.len);
}


/* Three addresses, of which the first has closed its connection. */
static void
silence_one_fails(transport_bed_t *f, int fds[3], uint16_t ports[3])
{
    size_t                  i;
    transport_bed_client_t  c = { 0 };

    ahead_ms = 0;
    silent_fd = -1;

    for (i = 0; i < 3; i++) {
        ports[i] = 0;
        fds[i] = silence_listen(&ports[i]);
        transport_bed_add_port(f, "http", ports[i]);
    }

    transport_bed_open(f);

    transport_bed_start(f, &c);
    silence_run(f, 200);
    close(silence_accept(fds[0]));
    transport_bed_until(f, &c.dones, 1);
    assert_int_equal(c.rc, KUBE_CLOSED);
    transport_bed_free(&c);
}


/* Nor does the second one listen; nobody has asked the third. */
static void
silence_two_fail(transport_bed_t *f, int fds[3], uint16_t ports[3])
{
    transport_bed_client_t  c = { 0 };

    silence_one_fails(f, fds, ports);
    close(fds[1]);

    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    transport_bed_free(&c);
}


/*
 * That an address can be connected to is no reason to ask it again before one
 * that nobody has asked, where it was left for what it did over a connection;
 * it is one where the other cannot be connected to.
 */
static void
test_connects_and_was_left(void **state)
{
    int                     fds[3];
    uint16_t                ports[3];
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    silence_two_fail(f, fds, ports);
    silence_until_healed(f, 1);
    silence_assert_next(f, ports[2]);

    close(fds[2]);
    silence_run(f, 3000);
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    transport_bed_free(&c);

    silence_until_healed(f, 2);
    silence_assert_next(f, ports[0]);

    close(fds[0]);
}


/* It is one, too, where it has said yes since. */
static void
test_connects_and_is_asked(void **state)
{
    int               fds[3];
    uint16_t          ports[3];
    transport_bed_t  *f = *state;

    silence_two_fail(f, fds, ports);
    kube_transport_verdict(f->transport, 0, KUBE_SERVER_ANSWERS);
    silence_until_healed(f, 1);
    silence_assert_next(f, ports[0]);

    close(fds[0]);
    close(fds[2]);
}


/*
 * The first of three addresses closed its connection, long ago, and the second
 * one, which is in use, falls silent amid a watch: that one is asked no more
 * where another can be connected to.  Whoever was left for nothing is next,
 * then the first one, and the silent one as soon as it can be connected to.
 */
static void
test_silent_and_was_left(void **state)
{
    int                     peer, fds[3];
    uint16_t                ports[3];
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 }, watch = { 0 };

    silence_one_fails(f, fds, ports);

    transport_bed_start(f, &watch);
    silence_run(f, 200);
    peer = silence_accept(fds[1]);
    assert_true(http_bed_puts(peer, WATCH_HEAD));
    silence_until_responses(f, &watch);
    silence_run(f, KUBE_SERVER_MAX_MS);
    silence_assert_next(f, ports[1]);

    close(fds[1]);
    silent_probes = KUBE_TCP_PROBES;
    silent_backoff = 0;
    silent_fd = silence_socket_to(ports[1]);
    silence_until_healed(f, 1);
    silence_assert_next(f, ports[2]);

    close(fds[2]);
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    transport_bed_free(&c);
    silence_assert_next(f, ports[0]);

    close(fds[0]);
    fds[1] = silence_listen(&ports[1]);
    silence_until_healed(f, 2);
    silence_assert_next(f, ports[1]);

    kube_transport_cancel(f->transport, watch.exchange);
    transport_bed_free(&watch);
    close(peer);
    close(fds[1]);
}


/* A connection that is dialed and that no request wants does not stay. */
static void
test_unwanted(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    silence_open(f, NULL);
    transport_bed_start(f, &c);
    silence_until_responses(f, &c);

    silent_fd = silence_socket(f);
    silent_probes = KUBE_TCP_PROBES;
    assert_false(kube_transport_suspect(f->transport, c.exchange));
    silence_until_healed(f, 1);
    assert_true(kube_transport_suspect(f->transport, c.exchange));

    /* for 10 s no other is made in its place, and the owner may be late */

    silence_run(f, 5000);
    assert_int_equal(http_bed_connections(&f->server), 2);
    assert_int_equal(kube_transport_healed(f->transport), 1);
    assert_true(kube_transport_suspect(f->transport, c.exchange));

    /* a probe that is answered says nothing of what is to come */

    silent_probes = 0;
    silence_run(f, 2000);
    assert_true(kube_transport_suspect(f->transport, c.exchange));

    silence_until_healed(f, 2);
    assert_int_equal(c.dones, 0);

    kube_transport_cancel(f->transport, c.exchange);
}


/* The transport's clock. */
static uint64_t
silence_now_ms(void)
{
    return transport_bed_now_ms() + ahead_ms;
}


/*
 * A peer that has spoken since may fall silent again: that is seen after 7 s,
 * and nothing has to be waited for until 10 s are over.  A busy machine gets
 * several tries.
 */
static void
test_again(void **state)
{
    unsigned                n;
    uint64_t                healed_ms, took_ms;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    silence_open(f, NULL);
    transport_bed_start(f, &c);
    silence_until_responses(f, &c);

    silent_fd = silence_socket(f);
    silent_probes = KUBE_TCP_PROBES;
    silence_until_healed(f, 1);
    assert_true(kube_transport_suspect(f->transport, c.exchange));
    took_ms = KUBE_NEVER;

    for (n = 2; took_ms >= 9500; n++) {
        assert_true(n < 6);
        healed_ms = silence_now_ms();

        silent_probes = 0;
        assert_true(http_bed_puts(served_fd, "1\r\nx\r\n"));

        while (kube_transport_suspect(f->transport, c.exchange)) {
            silence_step(f);
        }

        silent_probes = KUBE_TCP_PROBES;
        silence_until_healed(f, n);
        took_ms = silence_now_ms() - healed_ms;
    }

    assert_int_equal(c.dones, 0);

    kube_transport_cancel(f->transport, c.exchange);
    transport_bed_free(&c);
}


/* One probe without an answer is a lost packet. */
static void
test_one_probe(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    silence_open(f, NULL);
    transport_bed_start(f, &c);
    silence_until_responses(f, &c);

    silent_fd = silence_socket(f);
    silent_probes = KUBE_TCP_PROBES - 1;
    silence_run(f, 20000);
    assert_int_equal(kube_transport_healed(f->transport), 0);
    assert_int_equal(http_bed_connections(&f->server), 1);
    assert_false(kube_transport_suspect(f->transport, c.exchange));

    kube_transport_cancel(f->transport, c.exchange);
}


/* The second request goes over what was dialed, beside the first. */
static void
test_second_beside_first(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 }, second = { 0 };

    silence_open(f, NULL);
    transport_bed_start(f, &c);
    silence_until_responses(f, &c);

    silent_fd = silence_socket(f);
    silent_probes = KUBE_TCP_PROBES;
    silence_until_healed(f, 1);

    transport_bed_start(f, &second);
    silence_until_responses(f, &second);
    assert_int_equal(http_bed_connections(&f->server), 2);
    assert_int_equal(c.dones, 0);

    kube_transport_cancel(f->transport, c.exchange);
    kube_transport_cancel(f->transport, second.exchange);
}


/*
 * A request whose bytes get no answer begins anew over another connection, and
 * its owner hears nothing of that.
 */
static void
test_no_head(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    silence_open(f, "no head");
    transport_bed_start(f, &c);
    transport_bed_until(f, &f->server.requests, 1);
    silence_run(f, 3000);
    assert_int_equal(c.responses, 0);
    assert_int_equal(http_bed_connections(&f->server), 1);

    silent_fd = silence_socket(f);
    silent_backoff = KUBE_TCP_RESENT;
    silence_until_responses(f, &c);

    assert_int_equal(http_bed_connections(&f->server), 2);
    assert_int_equal(f->server.requests, 2);
    assert_int_equal(c.dones, 0);

    kube_transport_cancel(f->transport, c.exchange);
}


/* Of what is behind a unix socket or a proxy nothing is known. */
static void
test_not_direct(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    ahead_ms = 0;
    silent_fd = -1;

    assert_int_equal(kube_config_add_server(&f->config,
                                            KUBE_STR("http://unix:/nowhere"),
                                            NULL), KUBE_OK);
    transport_bed_open(f);
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    silence_run(f, 2000);
    assert_int_equal(kube_transport_deadline(f->transport), KUBE_NEVER);
    transport_bed_free(&c);
}


/* A socket that has a port of 127.0.0.x, and does not listen. */
static int
name_bind(transport_bed_t *f, unsigned x)
{
    int                 fd;
    char                url[64];
    socklen_t           len;
    struct sockaddr_in  in;

    ahead_ms = 0;
    silent_fd = -1;
    atomic_store(&name_lookups, 0);
    atomic_store(&name_held, 0);

    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) + x);
    len = sizeof(in);

    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &in, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &in, &len), 0);

    snprintf(url, sizeof(url), "https://kube.test:%u", ntohs(in.sin_port));
    assert_int_equal(kube_config_add_server(&f->config, kube_str(url), NULL),
                     KUBE_OK);
    transport_bed_open(f);

    return fd;
}


static void
name_assert_asked(transport_bed_t *f, int fd)
{
    int       peer;
    char      first;
    unsigned  i;

    struct pollfd  pfd = { .fd = fd, .events = POLLIN };

    for (i = 0; poll(&pfd, 1, 0) == 0; i++) {
        assert_true(i < 2000);
        silence_step(f);
    }

    peer = accept(fd, NULL, NULL);
    assert_true(peer != -1);
    silence_run(f, 100);
    assert_int_equal(recv(peer, &first, 1, MSG_DONTWAIT), 1);
    assert_int_equal(first, 0x16);    /* a handshake of TLS */
    close(peer);
}


/* The name leads elsewhere after the address that it led to has failed. */
static void
test_name_changes(void **state)
{
    int                     fd;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    fd = name_bind(f, 3);
    assert_int_equal(listen(fd, 8), 0);

    atomic_store(&name_leads_to, 2);
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    transport_bed_free(&c);

    atomic_store(&name_leads_to, 3);
    transport_bed_start(f, &c);
    name_assert_asked(f, fd);
    assert_int_equal(atomic_load(&name_lookups), 2);

    transport_bed_until(f, &c.dones, 1);
    transport_bed_free(&c);
    close(fd);
}


/* Who asks for a name over a network that heals waits for no other one. */
static void
test_name_waited_for(void **state)
{
    int                     fd;
    unsigned                i;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    fd = name_bind(f, 4);
    atomic_store(&name_leads_to, 4);
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    transport_bed_free(&c);

    atomic_store(&name_held, 2);
    transport_bed_start(f, &c);

    for (i = 0; atomic_load(&name_lookups) < 2; i++) {
        assert_true(i < 2000);
        silence_step(f);
    }

    assert_int_equal(listen(fd, 8), 0);
    silence_until_healed(f, 1);
    name_assert_asked(f, fd);
    assert_int_equal(atomic_load(&name_lookups), 3);

    atomic_store(&name_held, 0);
    transport_bed_until(f, &c.dones, 1);
    transport_bed_free(&c);
    (void) poll(NULL, 0, 200);
    close(fd);
}


#define SILENCE_TEST(test)                                                    \
    cmocka_unit_test_setup_teardown(test, transport_bed_setup,                \
                                    transport_bed_teardown)


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        SILENCE_TEST(test_refused_and_back),
        SILENCE_TEST(test_head_after_silence),
        SILENCE_TEST(test_which_is_back),
        SILENCE_TEST(test_connects_and_was_left),
        SILENCE_TEST(test_connects_and_is_asked),
        SILENCE_TEST(test_silent_and_was_left),
        SILENCE_TEST(test_unwanted),
        SILENCE_TEST(test_again),
        SILENCE_TEST(test_one_probe),
        SILENCE_TEST(test_second_beside_first),
        SILENCE_TEST(test_no_head),
        SILENCE_TEST(test_not_direct),
        SILENCE_TEST(test_name_changes),
        SILENCE_TEST(test_name_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

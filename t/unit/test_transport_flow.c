/*
 * Tests of kube_transport: how much a call takes, pausing, fairness, and
 * ending an exchange from wherever it may be ended.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <curl/curl.h>

#include "kube_exchange.h"
#include "transport_bed.h"


#define BIG_BYTES     (3u << 20)
#define FLOW_STREAMS  8

#define OK_HEAD  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


static char
big_byte(size_t i)
{
    return (char) ('a' + i % 23);
}


/* BIG_BYTES with a length, or in chunks of odd sizes where arg says so. */
static bool
serve_big(http_bed_t *server, int fd)
{
    char    head[128], piece[4099];
    bool    chunked;
    size_t  i, n, sent;

    chunked = (server->arg != NULL);

    snprintf(head, sizeof(head), OK_HEAD "%s%.*u\r\n\r\n",
             chunked ? "Transfer-Encoding: chunked" : "Content-Length: ",
             chunked ? 0 : 1, chunked ? 0 : BIG_BYTES);

    if (!http_bed_puts(fd, head)) {
        return false;
    }

    for (sent = 0; sent < BIG_BYTES; sent += n) {
        n = 1 + (sent * 7919) % sizeof(piece);
        n = n < BIG_BYTES - sent ? n : BIG_BYTES - sent;

        for (i = 0; i < n; i++) {
            piece[i] = big_byte(sent + i);
        }

        snprintf(head, sizeof(head), "%zx;ext=1\r\n", n);

        if ((chunked && !http_bed_puts(fd, head))
            || !http_bed_write(fd, piece, n)
            || (chunked && !http_bed_puts(fd, "\r\n")))
        {
            return false;
        }
    }

    return chunked ? http_bed_puts(fd, "0\r\nTrailer: x\r\n\r\n") : true;
}


static void
assert_big(const transport_bed_client_t *c)
{
    size_t  i;

    assert_int_equal(c->rc, KUBE_OK);
    assert_int_equal(c->len, BIG_BYTES);

    for (i = 0; i < BIG_BYTES; i++) {
        if (c->body[i] != big_byte(i)) {
            print_error("byte %zu differs\n", i);
            fail();
        }
    }
}


/* However much there is, a call takes about tick_bytes. */
static void
test_transport_bound(void **state)
{
    size_t                  i;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    f->tick_bytes = 32768;
    transport_bed_serve(f, serve_big, NULL);
    transport_bed_open(f);

    for (i = 0; i < 2; i++) {
        f->server.arg = i ? "chunked" : NULL;
        f->calls = 0;

        transport_bed_get(f, &c);
        assert_big(&c);
        assert_in_range(f->call_bytes_peak, 1, 32768 + 16384);
        assert_true(f->calls >= BIG_BYTES / (32768 + 16384));
        transport_bed_free(&c);
    }
}


static kube_take_t
take_and_pause(transport_bed_client_t *c)
{
    (void) c;

    return KUBE_TAKE_PAUSE;
}


/* After each piece it pauses; nothing comes until it is resumed. */
static void
test_transport_pause(void **state)
{
    size_t                  i, n, pieces;
    uint64_t                deadline_ms;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c;

    transport_bed_serve(f, serve_big, NULL);
    transport_bed_open(f);

    for (i = 0; i < 2; i++) {
        memset(&c, 0, sizeof(c));
        c.on_response = take_and_pause;
        c.on_bytes = take_and_pause;
        f->server.arg = i ? "chunked" : NULL;

        transport_bed_start(f, &c);
        transport_bed_until(f, &c.responses, 1);

        while (c.dones == 0) {
            pieces = c.pieces;

            for (n = 0; n < 5 && c.dones == 0; n++) {
                f->processing = true;
                kube_transport_process(f->transport, transport_bed_now_ms());
                f->processing = false;
                assert_int_equal(c.pieces, pieces);
            }

            if (c.dones == 0) {
                kube_transport_resume(f->transport, c.exchange);
                assert_true(!c.exchange->paused
                            || kube_transport_deadline(f->transport)
                               <= transport_bed_now_ms());
                deadline_ms = transport_bed_now_ms()
                              + TRANSPORT_BED_DEADLINE_MS;

                /* the server may not have written it yet */

                while (c.pieces == pieces && c.dones == 0) {
                    assert_true(transport_bed_now_ms() < deadline_ms);
                    transport_bed_step(f);
                }

                assert_true(c.pieces <= pieces + 1);
            }
        }

        assert_big(&c);
        assert_true(c.pieces > 100);
        transport_bed_free(&c);
    }
}


/* A paused exchange costs nothing: the descriptor stays quiet. */
static void
test_transport_pause_is_quiet(void **state)
{
    size_t                  n;
    uint64_t                now_ms;
    struct pollfd           pfd;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    c.on_response = take_and_pause;
    transport_bed_serve(f, serve_big, NULL);
    transport_bed_open(f);
    transport_bed_start(f, &c);
    transport_bed_until(f, &c.responses, 1);

    for (n = 0; n < 20; n++) {
        transport_bed_step(f);
    }

    pfd.fd = kube_transport_fd(f->transport);
    pfd.events = POLLIN;
    now_ms = transport_bed_now_ms();
    assert_int_equal(poll(&pfd, 1, 0), 0);
    assert_true(kube_transport_deadline(f->transport) > now_ms);
    assert_int_equal(c.len, 0);

    /* and may be cancelled as it is */
    kube_transport_cancel(f->transport, c.exchange);
    assert_int_equal(c.dones, 0);
    transport_bed_free(&c);
}


static bool
serve_endless(http_bed_t *server, int fd)
{
    static char  piece[65536];

    if (strstr(server->last, "watch") == NULL) {
        return http_bed_puts(fd, OK_HEAD "Content-Length: 2\r\n\r\n{}");
    }

    (void) http_bed_puts(fd, OK_HEAD "\r\n");

    while (http_bed_write(fd, piece, sizeof(piece))) {
        /* void */
    }

    return false;
}


/* A stream that never ends takes its share, not more. */
static void
test_transport_fairness(void **state)
{
    size_t                  i;
    kube_request_t          request;
    transport_bed_t        *f = *state;
    transport_bed_client_t  endless = { 0 }, small = { 0 };

    f->tick_bytes = 4096;
    transport_bed_serve(f, serve_endless, NULL);
    transport_bed_open(f);

    memset(&request, 0, sizeof(request));
    request.watch = true;
    endless.f = f;
    assert_int_equal(kube_transport_start(f->transport, &request,
                                          &transport_bed_handler, &endless,
                                          transport_bed_now_ms(),
                                          &endless.exchange), KUBE_OK);
    transport_bed_until(f, &endless.pieces, 10);

    for (i = 0; i < 10; i++) {
        transport_bed_get(f, &small);
        assert_int_equal(small.rc, KUBE_OK);
        assert_int_equal(small.len, 2);
        transport_bed_free(&small);
    }

    assert_int_equal(endless.dones, 0);
    kube_transport_cancel(f->transport, endless.exchange);
    transport_bed_free(&endless);
}


/*
 * Of eight streams that never end a call serves two: whoever has bytes that are
 * held back waits for the six others at most.
 */
static void
test_transport_turns(void **state)
{
    bool                    held[FLOW_STREAMS];
    size_t                  i, n, pieces[FLOW_STREAMS];
    unsigned                waits[FLOW_STREAMS] = { 0 };
    kube_request_t          request;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c[FLOW_STREAMS] = { 0 };

    f->tick_bytes = 2 * KUBE_EXCHANGE_BUFFER_BYTES;
    transport_bed_serve(f, serve_endless, NULL);
    transport_bed_open(f);

    memset(&request, 0, sizeof(request));
    request.watch = true;

    for (i = 0; i < FLOW_STREAMS; i++) {
        c[i].f = f;
        assert_int_equal(kube_transport_start(f->transport, &request,
                                              &transport_bed_handler, &c[i],
                                              transport_bed_now_ms(),
                                              &c[i].exchange), KUBE_OK);
    }

    for (i = 0; i < FLOW_STREAMS; i++) {
        transport_bed_until(f, &c[i].pieces, 1);
    }

    for (n = 0; n < 200; n++) {
        for (i = 0; i < FLOW_STREAMS; i++) {
            held[i] = c[i].exchange->paused;
            pieces[i] = c[i].pieces;
            c[i].len = 0;
        }

        transport_bed_step(f);

        for (i = 0; i < FLOW_STREAMS; i++) {
            waits[i] = (held[i] && c[i].pieces == pieces[i]) ? waits[i] + 1
                                                             : 0;
            assert_true(waits[i] < FLOW_STREAMS / 2);
        }
    }

    for (i = 0; i < FLOW_STREAMS; i++) {
        assert_int_equal(c[i].dones, 0);
        kube_transport_cancel(f->transport, c[i].exchange);
        transport_bed_free(&c[i]);
    }
}


/*
 * Three have a byte each, and a call takes one: who is left over does not wait
 * for the next event, though whoever had its turn has no more to say.
 */
static void
test_transport_left_over(void **state)
{
    size_t                  i, n, left;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c[3] = { 0 };

    f->tick_bytes = 1;
    transport_bed_serve(f, http_bed_serve_text,
                        OK_HEAD "Transfer-Encoding: chunked\r\n\r\n");
    transport_bed_open(f);

    for (i = 0; i < 3; i++) {
        transport_bed_start(f, &c[i]);
        transport_bed_until(f, &c[i].responses, 1);
    }

    for (i = 0; i < 3; i++) {
        assert_true(http_bed_deliver(f->server.fds[i], "1\r\na\r\n"));
    }

    for (left = 3, n = 0; left != 0 && n < 1000; n++) {
        transport_bed_step(f);

        for (i = 0, left = 0; i < 3; i++) {
            left += (c[i].pieces == 0);

            assert_true(!c[i].exchange->paused
                        || kube_transport_deadline(f->transport)
                           <= transport_bed_now_ms());
        }
    }

    assert_int_equal(left, 0);

    for (i = 0; i < 3; i++) {
        kube_transport_cancel(f->transport, c[i].exchange);
        transport_bed_free(&c[i]);
    }
}


/* A socket is looked at in time, though libcurl waits for nothing any more. */
static void
test_transport_looks(void **state)
{
    uint64_t                due_ms, deadline_ms;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    transport_bed_serve(f, http_bed_serve_text, "");
    transport_bed_open(f);
    transport_bed_start(f, &c);
    deadline_ms = transport_bed_now_ms() + TRANSPORT_BED_DEADLINE_MS;

    /* it has a timer of 200 ms for other addresses of the name */

    do {
        assert_true(transport_bed_now_ms() < deadline_ms);
        transport_bed_step(f);
        due_ms = kube_transport_deadline(f->transport);

    } while (c.exchange->stage < KUBE_STAGE_READY
             || due_ms <= transport_bed_now_ms() + 200);

    assert_true(due_ms <= transport_bed_now_ms() + KUBE_EXCHANGE_LOOK_MS);

    kube_transport_cancel(f->transport, c.exchange);
    transport_bed_free(&c);
}


static kube_take_t
take_and_cancel(transport_bed_client_t *c)
{
    kube_transport_cancel(c->f->transport, c->exchange);

    return KUBE_TAKE_MORE;
}


static kube_take_t
take_and_cancel_other(transport_bed_client_t *c)
{
    if (c->other->exchange != NULL) {
        kube_transport_cancel(c->f->transport, c->other->exchange);
        c->other->exchange = NULL;
    }

    return KUBE_TAKE_MORE;
}


static kube_take_t
take_and_abort(transport_bed_client_t *c)
{
    (void) c;

    return KUBE_TAKE_ABORT;
}


static void
done_and_cancel(transport_bed_client_t *c)
{
    kube_transport_cancel(c->f->transport, c->exchange);
}


static void
done_and_start(transport_bed_client_t *c)
{
    transport_bed_start(c->f, c->other);
}


static void
test_transport_cancel(void **state)
{
    size_t                  i;
    transport_bed_t        *f = *state;
    transport_bed_client_t  a = { 0 };

    transport_bed_serve(f, serve_big, NULL);
    transport_bed_open(f);

    /* from response, from bytes, before anything was sent */

    for (i = 0; i < 3; i++) {
        a.on_response = i == 0 ? take_and_cancel : NULL;
        a.on_bytes = i == 1 ? take_and_cancel : NULL;
        transport_bed_start(f, &a);

        if (i == 2) {
            kube_transport_cancel(f->transport, a.exchange);
            transport_bed_step(f);
            assert_int_equal(a.responses, 0);

        } else {
            transport_bed_until(f, i == 0 ? &a.responses : &a.pieces, 1);
            transport_bed_step(f);
            assert_int_equal(a.pieces, i);

            /* what is left of an answer is not taken for the next one */
            assert_int_equal(http_bed_connections(&f->server), i + 1);
        }

        assert_int_equal(a.dones, 0);
        transport_bed_free(&a);
    }

}


/* Another one, in flight or not even begun. */
static void
test_transport_cancel_other(void **state)
{
    size_t                  i;
    transport_bed_t        *f = *state;
    transport_bed_client_t  a = { 0 }, b = { 0 };

    transport_bed_serve(f, serve_big, NULL);
    transport_bed_open(f);

    for (i = 0; i < 2; i++) {
        a.on_bytes = take_and_cancel_other;
        a.other = &b;

        if (i == 0) {
            transport_bed_start(f, &b);
            transport_bed_until(f, &b.responses, 1);
        }

        transport_bed_start(f, &a);

        if (i == 1) {
            transport_bed_start(f, &b);
        }

        transport_bed_until(f, &a.dones, 1);
        assert_big(&a);
        assert_int_equal(b.dones, 0);
        transport_bed_free(&a);
        transport_bed_free(&b);
    }

    /* from its own done(); and the next one is started there */

    a.on_done = done_and_cancel;
    transport_bed_get(f, &a);
    assert_big(&a);
    transport_bed_free(&a);

    a.on_done = done_and_start;
    a.other = &b;
    transport_bed_get(f, &a);
    transport_bed_until(f, &b.dones, 1);
    assert_big(&b);
    transport_bed_free(&a);
    transport_bed_free(&b);
}


static void
test_transport_abort(void **state)
{
    size_t                  i;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    f->tick_bytes = 1;
    transport_bed_serve(f, serve_big, NULL);
    transport_bed_open(f);

    for (i = 0; i < 3; i++) {
        c.on_response = i == 0 ? take_and_abort : NULL;
        c.on_bytes = i == 1 ? take_and_abort : NULL;

        transport_bed_start(f, &c);

        if (i == 2) {

            /* on bytes that libcurl had held back */

            transport_bed_until(f, &c.pieces, 2);
            c.on_bytes = take_and_abort;
        }

        transport_bed_until(f, &c.dones, 1);
        assert_int_equal(c.rc, KUBE_CLOSED);
        transport_bed_free(&c);
    }
}


/* A page of a list; the head of a watch, or a whole one where arg says so. */
static bool
serve_scope(http_bed_t *server, int fd)
{
    if (strstr(server->last, "watch") == NULL) {
        return http_bed_puts(fd, OK_HEAD "Content-Length: 2\r\n\r\n{}");
    }

    return http_bed_puts(fd, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n"
                              "2\r\n{}\r\n")
           && (server->arg == NULL || http_bed_puts(fd, "0\r\n\r\n"));
}


static void
flow_watch(transport_bed_t *f, transport_bed_client_t *c)
{
    kube_request_t  request;

    memset(&request, 0, sizeof(request));
    request.watch = true;
    c->f = f;

    assert_int_equal(kube_transport_start(f->transport, &request,
                                          &transport_bed_handler, c,
                                          transport_bed_now_ms(),
                                          &c->exchange), KUBE_OK);
    transport_bed_until(f, &c->pieces, 1);
}


static void
flow_process(transport_bed_t *f, uint64_t now_ms)
{
    f->processing = true;
    kube_transport_process(f->transport, now_ms);
    f->processing = false;
}


/* A watch at the first of two addresses, of which the second is none. */
static void
flow_watch_beside(transport_bed_t *f, transport_bed_client_t *watch)
{
    transport_bed_serve(f, serve_scope, NULL);
    transport_bed_add_port(f, "http", f->server.port);
    transport_bed_add_port(f, "http", 1);
    transport_bed_open(f);

    flow_watch(f, watch);
}


/* Who has answered is not to blame for what is given up later. */
static void
test_transport_cancel_answered(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  watch = { 0 };

    flow_watch_beside(f, &watch);
    flow_process(f, transport_bed_now_ms() + 60000);
    kube_transport_cancel(f->transport, watch.exchange);
    transport_bed_free(&watch);

    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[0]));
}


/* Where all addresses are passed over the first to be asked again is next. */
static void
test_transport_all_left(void **state)
{
    size_t                  i;
    uint64_t                now_ms;
    kube_request_t          request;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    transport_bed_add_port(f, "http", 1);
    transport_bed_add_port(f, "http", 2);
    transport_bed_open(f);

    /* the second one has failed for long, and is left for longer */

    now_ms = 0;

    for (i = 0; i < 10; i++) {
        now_ms += 2 * KUBE_SERVER_MAX_MS;
        flow_process(f, now_ms);
        kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
    }

    flow_process(f, now_ms + 2 * KUBE_SERVER_MAX_MS);
    kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);
    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[1]));

    kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[0]));

    /* so is one that has waited for credentials meanwhile */

    memset(&request, 0, sizeof(request));
    c.f = f;
    assert_int_equal(kube_transport_park(f->transport, &request,
                                         &transport_bed_handler, &c,
                                         &c.exchange), KUBE_OK);
    kube_transport_unpark(f->transport, KUBE_OK, "");
    assert_int_equal(c.exchange->server, 0);
    kube_transport_cancel(f->transport, c.exchange);
    transport_bed_free(&c);
}


/* The answer to what was asked under the CA of before says nothing of this. */
static void
test_transport_answered_before(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    transport_bed_serve(f, http_bed_serve_text, "");
    transport_bed_open(f);
    transport_bed_start(f, &c);

    while (http_bed_connections(&f->server) == 0) {
        transport_bed_step(f);
    }

    kube_transport_credentials_changed(f->transport, KUBE_CREDENTIALS_CA);

    assert_true(http_bed_deliver(f->server.fds[0],
                                 OK_HEAD "Content-Length: 0\r\n\r\n"));
    transport_bed_until(f, &c.dones, 1);
    assert_int_equal(c.rc, KUBE_OK);
    assert_false(kube_transport_answered(f->transport));
    transport_bed_free(&c);

    f->server.arg = OK_HEAD "Content-Length: 0\r\n\r\n";
    transport_bed_get(f, &c);
    assert_true(kube_transport_answered(f->transport));
    transport_bed_free(&c);
}


/* Whether so many refusals of the first address, in time, have it left. */
static bool
flow_refused(transport_bed_t *f, unsigned n)
{
    static uint64_t  later_ms;

    while (n-- != 0) {
        later_ms += KUBE_SERVER_FIRST_MS;
        flow_process(f, transport_bed_now_ms() + later_ms);
        kube_transport_verdict(f->transport, 0, KUBE_SERVER_REFUSES);
    }

    return !kube_str_eq(kube_transport_server(f->transport),
                        f->config.servers[0]);
}


/* Beside what an address has granted, its refusals are of what was asked. */
static void
test_transport_refusals_beside_a_watch(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  watch = { 0 };

    flow_watch_beside(f, &watch);
    assert_false(flow_refused(f, 3 * KUBE_SERVER_REFUSALS));

    kube_transport_cancel(f->transport, watch.exchange);
    transport_bed_free(&watch);
    assert_false(flow_refused(f, KUBE_SERVER_REFUSALS - 1));
    assert_true(flow_refused(f, 1));
}


static kube_take_t
cancel_and_refuse(transport_bed_client_t *c)
{
    kube_transport_cancel(c->f->transport, c->exchange);
    kube_transport_verdict(c->f->transport, 0, KUBE_SERVER_REFUSES);

    return KUBE_TAKE_MORE;
}


/* An exchange that was cancelled amid its bytes shields nobody from then on. */
static void
test_transport_refusals_by_a_watch(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  watch = { .on_bytes = cancel_and_refuse };

    transport_bed_serve(f, serve_scope, NULL);
    transport_bed_add_port(f, "http", f->server.port);
    transport_bed_add_port(f, "http", 1);
    transport_bed_open(f);

    assert_false(flow_refused(f, KUBE_SERVER_REFUSALS - 1));
    flow_watch(f, &watch);
    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[1]));
    transport_bed_free(&watch);
}


static void
flow_pages(transport_bed_t *f, size_t n)
{
    transport_bed_client_t  c = { 0 };

    while (n-- != 0) {
        transport_bed_get(f, &c);
        assert_int_equal(c.rc, KUBE_OK);
        transport_bed_free(&c);
    }
}


/*
 * Each watch in flight has a connection, and all lists share one: neither a
 * page nor the next watch of a scope makes another.
 */
static void
test_transport_connections(void **state)
{
    size_t                  i, round;
    transport_bed_t        *f = *state;
    transport_bed_client_t  watches[16];

    memset(watches, 0, sizeof(watches));
    transport_bed_serve(f, serve_scope, NULL);
    transport_bed_open(f);

    for (i = 0; i < 16; i++) {
        flow_pages(f, 5);
        flow_watch(f, &watches[i]);
        assert_int_equal(http_bed_connections(&f->server), i + 1);
    }

    flow_pages(f, 20);
    assert_int_equal(http_bed_connections(&f->server), 17);

    for (i = 0; i < 16; i++) {
        assert_int_equal(watches[i].dones, 0);
        kube_transport_cancel(f->transport, watches[i].exchange);
        transport_bed_free(&watches[i]);
    }

    /* a watch that the server ends leaves its connection to the next one */

    f->server.arg = "whole";

    for (round = 0; round < 3; round++) {
        for (i = 0; i < 4; i++) {
            flow_watch(f, &watches[i]);
        }

        for (i = 0; i < 4; i++) {
            transport_bed_until(f, &watches[i].dones, 1);
            assert_int_equal(watches[i].rc, KUBE_OK);
            transport_bed_free(&watches[i]);
        }

        flow_pages(f, 3);
    }

    /* fewer where one had ended before the next began */

    assert_in_range(http_bed_connections(&f->server), 17, 17 + 3);
}


/* The answer to a request that has yet to be sent: it will be there at once. */
static kube_take_t
take_and_answer_other(transport_bed_client_t *c)
{
    http_bed_t  *server;

    server = &c->f->server;
    c->on_bytes = NULL;

    assert_true(http_bed_deliver(server->fds[1], "HTTP/1.1 200 OK\r\n"
                                                 "Content-Length: 6\r\n\r\n"
                                                 "ab"));
    return KUBE_TAKE_MORE;
}


/*
 * The request b, over a connection that was kept, is answered at once and
 * paused for want of budget, of which a takes all: libcurl has told nobody of
 * its socket, which is in use.  A libcurl that takes no kept connection with
 * bytes to read (Debian 13's) opens another one: there is nothing to test.
 */
static void
answered_at_once(transport_bed_t *f, transport_bed_client_t *a,
    transport_bed_client_t *b)
{
    unsigned                n;
    transport_bed_client_t  c = { 0 };

    f->tick_bytes = 1;

    transport_bed_serve(f, http_bed_serve_text,
                        "HTTP/1.1 200 OK\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n");
    transport_bed_open(f);
    transport_bed_start(f, a);
    transport_bed_until(f, &a->responses, 1);

    f->server.arg = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    transport_bed_get(f, &c);
    transport_bed_free(&c);
    assert_int_equal(http_bed_connections(&f->server), 2);

    /* the second byte is held back, and comes before what is new is sent */

    f->server.arg = "";
    assert_true(http_bed_deliver(f->server.fds[0],
                                 "1\r\na\r\n1\r\nb\r\n"));
    transport_bed_until(f, &a->len, 1);
    a->on_bytes = take_and_answer_other;
    transport_bed_start(f, b);

    for (n = 0; n < 200 && b->responses == 0; n++) {
        if (http_bed_connections(&f->server) != 2) {
            print_message("libcurl %s opens a connection of its own\n",
                          curl_version_info(CURLVERSION_NOW)->version);
            transport_bed_close(f);
            transport_bed_free(a);
            transport_bed_free(b);
            skip();
        }

        transport_bed_step(f);
    }

    assert_int_equal(b->responses, 1);
    assert_int_equal(b->len, 0);
}


/* What only looks idle is shut by nothing. */
static void
test_transport_idle_by_looks(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  a = { 0 }, b = { 0 }, c = { 0 };

    answered_at_once(f, &a, &b);

    /* neither shuts it */

    kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);
    assert_true(http_bed_deliver(f->server.fds[1], "cd"));
    transport_bed_start(f, &c);

    transport_bed_until(f, &b.len, 2);
    assert_true(http_bed_puts(f->server.fds[1], "ef"));
    transport_bed_until(f, &b.dones, 1);
    assert_int_equal(b.rc, KUBE_OK);
    assert_int_equal(b.len, 6);

    transport_bed_close(f);
    transport_bed_free(&a);
    transport_bed_free(&b);
    transport_bed_free(&c);
}


static kube_take_t
take_bad(transport_bed_client_t *c)
{
    kube_transport_verdict(c->f->transport, 0, KUBE_SERVER_BAD);

    return KUBE_TAKE_MORE;
}


/*
 * What was answered at once and ended with libcurl having told nobody of its
 * socket: what looks idle is idle from then on, and a bad body shuts it.
 */
static void
test_transport_idle_again(void **state)
{
    size_t                  n;
    transport_bed_t        *f = *state;
    transport_bed_client_t  a = { 0 }, b = { 0 }, c = { 0 };

    answered_at_once(f, &a, &b);
    assert_int_equal(b.dones, 0);
    kube_transport_cancel(f->transport, b.exchange);
    transport_bed_step(f);

    f->server.arg = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    transport_bed_get(f, &c);
    transport_bed_free(&c);
    n = http_bed_connections(&f->server);

    transport_bed_get(f, &c);
    transport_bed_free(&c);
    assert_int_equal(http_bed_connections(&f->server), n);

    kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);
    transport_bed_get(f, &c);
    assert_int_equal(http_bed_connections(&f->server), n + 1);

    transport_bed_close(f);
    transport_bed_free(&a);
    transport_bed_free(&b);
    transport_bed_free(&c);
}


/* A head that is bad says nothing of the connections of others. */
static void
test_transport_idle_beside_bad_head(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  a = { 0 }, b = { 0 };

    transport_bed_serve(f, http_bed_serve_text,
                        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    transport_bed_open(f);

    /* two connections, of which one is in use again */

    transport_bed_start(f, &a);
    transport_bed_start(f, &b);
    transport_bed_until(f, &a.responses, 1);
    transport_bed_until(f, &b.responses, 1);
    assert_int_equal(http_bed_connections(&f->server), 2);
    assert_true(http_bed_puts(f->server.fds[0], "x"));
    assert_true(http_bed_puts(f->server.fds[1], "x"));
    transport_bed_until(f, &a.dones, 1);
    transport_bed_until(f, &b.dones, 1);
    transport_bed_free(&a);
    transport_bed_free(&b);

    f->server.arg = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
    a.on_response = take_bad;
    transport_bed_get(f, &a);
    transport_bed_free(&a);

    f->server.arg = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    transport_bed_start(f, &a);
    transport_bed_start(f, &b);
    transport_bed_until(f, &a.responses, 1);
    transport_bed_until(f, &b.responses, 1);
    assert_int_equal(http_bed_connections(&f->server), 2);

    transport_bed_close(f);
    transport_bed_free(&a);
    transport_bed_free(&b);
}


static void
test_transport_destroy_in_flight(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 }, fresh = { 0 };

    transport_bed_serve(f, serve_endless, NULL);
    transport_bed_open(f);
    transport_bed_start(f, &c);
    transport_bed_until(f, &c.responses, 1);
    transport_bed_start(f, &fresh);
    transport_bed_close(f);

    assert_int_equal(fresh.dones, 0);
    transport_bed_free(&c);
    transport_bed_free(&fresh);
}


#define TRANSPORT_TEST(name)                                                  \
    cmocka_unit_test_setup_teardown(name, transport_bed_setup,               \
                                    transport_bed_teardown)


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TRANSPORT_TEST(test_transport_bound),
        TRANSPORT_TEST(test_transport_pause),
        TRANSPORT_TEST(test_transport_pause_is_quiet),
        TRANSPORT_TEST(test_transport_fairness),
        TRANSPORT_TEST(test_transport_turns),
        TRANSPORT_TEST(test_transport_left_over),
        TRANSPORT_TEST(test_transport_looks),
        TRANSPORT_TEST(test_transport_cancel),
        TRANSPORT_TEST(test_transport_cancel_other),
        TRANSPORT_TEST(test_transport_abort),
        TRANSPORT_TEST(test_transport_connections),
        TRANSPORT_TEST(test_transport_cancel_answered),
        TRANSPORT_TEST(test_transport_all_left),
        TRANSPORT_TEST(test_transport_answered_before),
        TRANSPORT_TEST(test_transport_refusals_beside_a_watch),
        TRANSPORT_TEST(test_transport_refusals_by_a_watch),
        TRANSPORT_TEST(test_transport_idle_by_looks),
        TRANSPORT_TEST(test_transport_idle_again),
        TRANSPORT_TEST(test_transport_idle_beside_bad_head),
        TRANSPORT_TEST(test_transport_destroy_in_flight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_dialer - bare connects to addresses of this machine: their pace, their
 * turn, and that a socket which stands can be handed over.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "alloc_test.h"

#include "kube_dialer.h"


typedef struct {
    kube_dialer_t  d;
    int            epoll;
    uint64_t       now_ms;
    size_t         fds;           /* open before */
} dialer_bed_t;


static size_t
open_fds(void)
{
    DIR     *dir;
    size_t   n;

    dir = opendir("/proc/self/fd");
    assert_non_null(dir);

    for (n = 0; readdir(dir) != NULL; n++) {
        /* void */
    }

    closedir(dir);

    return n;
}


static struct sockaddr_in
local(uint16_t port)
{
    struct sockaddr_in  in;

    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    return in;
}


/* A socket that is bound; connections come about if it listens. */
static int
bound(bool listens, uint16_t *port)
{
    int                 fd;
    socklen_t           len;
    struct sockaddr_in  in;

    in = local(0);
    len = sizeof(in);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd != -1);
    assert_int_equal(bind(fd, (struct sockaddr *) &in, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &in, &len), 0);

    if (listens) {
        assert_int_equal(listen(fd, 8), 0);
    }

    *port = ntohs(in.sin_port);

    return fd;
}


static void
learn(dialer_bed_t *b, size_t server, uint16_t port, bool anew)
{
    struct sockaddr_in  in;

    in = local(port);
    kube_dialer_learn(&b->d, server, (struct sockaddr *) &in, sizeof(in),
                      anew);
}


static void
bed_init(dialer_bed_t *b)
{
    b->fds = open_fds();
    b->epoll = epoll_create1(EPOLL_CLOEXEC);
    assert_true(b->epoll != -1);
    b->now_ms = 1000000;
    kube_dialer_init(&b->d, b->epoll, 3);
    assert_int_equal(kube_dialer_deadline(&b->d), KUBE_NEVER);
}


static void
bed_done(dialer_bed_t *b)
{
    kube_dialer_done(&b->d);
    close(b->epoll);
    assert_int_equal(open_fds(), b->fds);
}


/* Until a connection stands, which epoll tells. */
static void
bed_connect(dialer_bed_t *b)
{
    struct pollfd  pfd;

    assert_false(kube_dialer_process(&b->d, b->now_ms));

    pfd.fd = b->epoll;
    pfd.events = POLLIN;
    assert_int_equal(poll(&pfd, 1, 60000), 1);

    assert_true(kube_dialer_process(&b->d, b->now_ms));
}


/* Whoever takes the socket may connect it again, once, to any address. */
static void
test_take(void **state)
{
    int                 listener, fd;
    uint16_t            port;
    dialer_bed_t        b;
    struct pollfd       pfd;
    struct sockaddr_in  other;

    (void) state;

    bed_init(&b);
    listener = bound(true, &port);
    learn(&b, 7, port, true);

    kube_dialer_start(&b.d, true, b.now_ms);
    assert_int_equal(kube_dialer_deadline(&b.d), b.now_ms);
    bed_connect(&b);

    assert_int_equal(kube_dialer_take(&b.d, 6), -1);
    fd = kube_dialer_take(&b.d, 7);
    assert_true(fd != -1);
    assert_int_equal(kube_dialer_take(&b.d, 7), -1);
    assert_int_equal(kube_dialer_deadline(&b.d), KUBE_NEVER);

    /* epoll knows nothing of it any more */

    pfd.fd = b.epoll;
    pfd.events = POLLIN;
    assert_int_equal(poll(&pfd, 1, 0), 0);

    other = local(1);
    assert_int_equal(connect(fd, (struct sockaddr *) &other, sizeof(other)),
                     0);

    close(fd);
    close(listener);
    bed_done(&b);
}


/* Nobody wants it; nobody dials where nobody asked for it. */
static void
test_kept(void **state)
{
    int           listener;
    uint16_t      port;
    dialer_bed_t  b;

    (void) state;

    bed_init(&b);
    listener = bound(true, &port);
    learn(&b, 0, port, true);
    assert_false(kube_dialer_process(&b.d, b.now_ms));
    assert_int_equal(b.d.fd, -1);

    kube_dialer_start(&b.d, true, b.now_ms);
    bed_connect(&b);
    kube_dialer_stop(&b.d);
    assert_int_equal(kube_dialer_deadline(&b.d),
                     b.now_ms + KUBE_DIALER_KEPT_MS);

    b.now_ms += KUBE_DIALER_KEPT_MS - 1;
    assert_false(kube_dialer_process(&b.d, b.now_ms));
    assert_true(b.d.ready);

    b.now_ms++;
    assert_false(kube_dialer_process(&b.d, b.now_ms));
    assert_int_equal(kube_dialer_take(&b.d, 0), -1);
    assert_int_equal(kube_dialer_deadline(&b.d), KUBE_NEVER);

    close(listener);
    bed_done(&b);
}


/* One address after the other; slower after a minute, and ended by stop(). */
static void
test_pace(void **state)
{
    int           fds[2];
    size_t        i, turns[2];
    uint16_t      ports[2];
    uint64_t      began_ms, ms, low_ms, high_ms;
    dialer_bed_t  b;

    (void) state;

    bed_init(&b);

    for (i = 0; i < 2; i++) {
        fds[i] = bound(false, &ports[i]);
        learn(&b, i, ports[i], true);
        turns[i] = 0;
    }

    began_ms = b.now_ms;
    kube_dialer_start(&b.d, false, b.now_ms);

    while (b.now_ms - began_ms < 3 * KUBE_DIALER_MS) {
        ms = kube_dialer_deadline(&b.d) - b.now_ms;

        low_ms = KUBE_DIALER_PACE_MS / 2;
        high_ms = KUBE_DIALER_PACE_MS;

        if (b.now_ms - began_ms >= KUBE_DIALER_MS) {
            low_ms = KUBE_DIALER_SLOW_LOW_MS;
            high_ms = KUBE_DIALER_SLOW_MS;
        }

        assert_in_range(ms, low_ms, high_ms);

        /* asking for it again changes nothing */

        kube_dialer_start(&b.d, true, b.now_ms);
        assert_false(kube_dialer_process(&b.d, b.now_ms));
        assert_int_equal(kube_dialer_deadline(&b.d), b.now_ms + ms);

        b.now_ms += ms;
        i = b.d.turn % 2;
        assert_false(kube_dialer_process(&b.d, b.now_ms));
        assert_int_equal(b.d.server, i);
        turns[i]++;
    }

    assert_in_range(turns[0] - turns[1], 0, 1);
    assert_in_range(turns[0] + turns[1], 60 + 30, 120 + 120);

    kube_dialer_stop(&b.d);
    assert_int_equal(kube_dialer_deadline(&b.d), KUBE_NEVER);
    assert_int_equal(b.d.fd, -1);

    close(fds[0]);
    close(fds[1]);
    bed_done(&b);
}


/* What the last request tried is what counts, and there is a bound. */
static void
test_learn(void **state)
{
    size_t           i;
    dialer_bed_t     b;
    struct sockaddr  unix_path = { .sa_family = AF_UNIX };

    (void) state;

    bed_init(&b);

    for (i = 0; i < 4 * KUBE_DIALER_TARGETS_MAX; i++) {
        learn(&b, i % 2, (uint16_t) (i + 1), false);
    }

    assert_int_equal(b.d.targets_n, KUBE_DIALER_TARGETS_MAX);

    learn(&b, 1, 99, true);
    assert_int_equal(b.d.targets_n, KUBE_DIALER_TARGETS_MAX / 2 + 1);

    for (i = 0; i + 1 < b.d.targets_n; i++) {
        assert_int_equal(b.d.targets[i].server, 0);
    }

    kube_dialer_learn(&b.d, 2, &unix_path, sizeof(unix_path), true);
    kube_dialer_learn(&b.d, 2, &unix_path, sizeof(struct sockaddr_storage) + 1,
                      true);
    assert_int_equal(b.d.targets_n, KUBE_DIALER_TARGETS_MAX / 2 + 1);

    bed_done(&b);

    /* nothing is known: it goes on asking itself, without a socket */

    bed_init(&b);
    kube_dialer_start(&b.d, true, b.now_ms);
    assert_false(kube_dialer_process(&b.d, b.now_ms));
    assert_true(kube_dialer_deadline(&b.d) > b.now_ms);
    assert_int_equal(b.d.fd, -1);
    bed_done(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_pace),
        cmocka_unit_test(test_learn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * kube_dialer - bare connects, one at a time.
 *
 * It knows sockets and time, no request and no name.  Owned and called by
 * kube_transport; kube_exchange takes what stands.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "kube_base.h"
#include "kube_dialer.h"
#include "kube_tcp.h"


void
kube_dialer_init(kube_dialer_t *d, int epoll, uint64_t seed)
{
    memset(d, 0, sizeof(kube_dialer_t));

    d->epoll = epoll;
    d->fd = -1;
    d->since_ms = KUBE_NEVER;
    d->due_ms = KUBE_NEVER;

    kube_random_init(&d->random, seed);
}


static void
dialer_close(kube_dialer_t *d)
{
    if (d->fd != -1) {
        (void) close(d->fd);
    }

    d->fd = -1;
    d->ready = false;
}


void
kube_dialer_done(kube_dialer_t *d)
{
    dialer_close(d);
    d->since_ms = KUBE_NEVER;
    d->due_ms = KUBE_NEVER;
}


void
kube_dialer_learn(kube_dialer_t *d, size_t server,
    const struct sockaddr *addr, socklen_t len, bool anew)
{
    size_t                 i, n;
    kube_dialer_target_t  *target;

    for (i = 0, n = 0; anew && i < d->targets_n; i++) {
        if (d->targets[i].server != server) {
            d->targets[n++] = d->targets[i];
        }
    }

    d->targets_n = anew ? n : d->targets_n;

    if (d->targets_n == KUBE_DIALER_TARGETS_MAX
        || len > sizeof(struct sockaddr_storage)
        || (addr->sa_family != AF_INET && addr->sa_family != AF_INET6))
    {
        return;
    }

    target = &d->targets[d->targets_n++];
    target->server = server;
    target->len = len;
    memcpy(&target->addr, addr, len);
}


static uint64_t
dialer_pause(kube_dialer_t *d, uint64_t now_ms)
{
    if (now_ms - d->since_ms < KUBE_DIALER_MS) {
        return kube_random_range(&d->random, KUBE_DIALER_PACE_MS / 2,
                                 KUBE_DIALER_PACE_MS);
    }

    return kube_random_range(&d->random, KUBE_DIALER_SLOW_LOW_MS,
                             KUBE_DIALER_SLOW_MS);
}


void
kube_dialer_start(kube_dialer_t *d, bool at_once, uint64_t now_ms)
{
    if (d->since_ms != KUBE_NEVER || d->ready) {
        return;
    }

    d->since_ms = now_ms;
    d->due_ms = now_ms + (at_once ? 0 : dialer_pause(d, now_ms));
}


void
kube_dialer_stop(kube_dialer_t *d)
{
    d->since_ms = KUBE_NEVER;

    if (!d->ready) {
        dialer_close(d);
        d->due_ms = KUBE_NEVER;
    }
}


/* The socket is waited for by epoll until it is connected or closed. */
static void
dialer_connect(kube_dialer_t *d)
{
    struct epoll_event           event;
    const kube_dialer_target_t  *target;

    dialer_close(d);

    if (d->targets_n == 0) {
        return;
    }

    d->turn %= d->targets_n;
    target = &d->targets[d->turn++];

    d->server = target->server;
    d->fd = kube_tcp_open(target->addr.ss_family,
                          SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (d->fd == -1) {
        return;
    }

    memset(&event, 0, sizeof(event));
    event.events = EPOLLOUT;
    event.data.fd = d->fd;

    /*
     * On this machine a connect may have its result at once.  Such a socket
     * would be refused by whoever connects it again: the next may do better.
     */

    if (connect(d->fd, (const struct sockaddr *) &target->addr, target->len)
        != -1
        || errno != EINPROGRESS
        || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->fd, &event) == -1)
    {
        dialer_close(d);
    }
}


/* Looks whether the socket has come to something. */
static bool
dialer_look(kube_dialer_t *d)
{
    int            error;
    socklen_t      len;
    struct pollfd  pfd;

    if (d->fd == -1) {
        return false;
    }

    pfd.fd = d->fd;
    pfd.events = POLLOUT;

    if (poll(&pfd, 1, 0) <= 0) {
        return false;
    }

    len = sizeof(error);

    if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1
        || error != 0
        || (pfd.revents & (POLLERR | POLLHUP)))
    {
        dialer_close(d);
        return false;
    }

    (void) epoll_ctl(d->epoll, EPOLL_CTL_DEL, d->fd, NULL);
    d->ready = true;

    return true;
}


bool
kube_dialer_process(kube_dialer_t *d, uint64_t now_ms)
{
    if (d->ready) {

        if (now_ms >= d->due_ms) {
            dialer_close(d);
            d->due_ms = KUBE_NEVER;
        }

        return false;
    }

    if (d->since_ms == KUBE_NEVER) {
        return false;
    }

    if (dialer_look(d)) {
        d->since_ms = KUBE_NEVER;
        d->due_ms = now_ms + KUBE_DIALER_KEPT_MS;

        return true;
    }

    if (now_ms >= d->due_ms) {
        dialer_connect(d);
        d->due_ms = now_ms + dialer_pause(d, now_ms);
    }

    return false;
}


uint64_t
kube_dialer_deadline(const kube_dialer_t *d)
{
    return d->due_ms;
}


int
kube_dialer_take(kube_dialer_t *d, size_t server)
{
    int  fd;

    if (!d->ready || d->server != server) {
        return -1;
    }

    fd = d->fd;

    d->fd = -1;
    d->ready = false;
    d->due_ms = KUBE_NEVER;

    return fd;
}

/*
 * kube_dialer - bare connects: one socket after another is connected to
 * addresses that could not be reached, until one of them stands.
 *
 * A network that heals is found out by the next packet that is sent, and
 * neither TCP's own retransmissions nor pauses between requests send one soon.
 * A bare connect costs the server nothing until it succeeds, and then one
 * connection, which is handed over to the next request: one address in turn,
 * one socket at a time, whatever number of requests wait.
 *
 * It knows no HTTP, resolves no name (addresses are those that were tried) and
 * decides neither when to begin nor when to end: kube_transport, its owner and
 * only caller but for kube_exchange's take() and learn(), does.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DIALER_H
#define KUBE_DIALER_H


#include <stdbool.h>
#include <sys/socket.h>

#include "kube_hash.h"


/*
 * Between two connects: half to all of the pace, and after KUBE_DIALER_MS from
 * SLOW_LOW to SLOW.
 */
#define KUBE_DIALER_PACE_MS       1000
#define KUBE_DIALER_SLOW_MS       4000
#define KUBE_DIALER_SLOW_LOW_MS   1000
#define KUBE_DIALER_MS            60000

/* A connection that no request has wanted is closed after so long. */
#define KUBE_DIALER_KEPT_MS       2000

/* A and AAAA records of a few servers. */
#define KUBE_DIALER_TARGETS_MAX   16

typedef struct {
    size_t                   server;    /* index in the configuration */
    socklen_t                len;
    struct sockaddr_storage  addr;
} kube_dialer_target_t;

typedef struct {
    int                    epoll;       /* where the socket is waited for */
    kube_random_t          random;
    kube_dialer_target_t   targets[KUBE_DIALER_TARGETS_MAX];
    size_t                 targets_n;
    size_t                 turn;        /* the target that is next */
    int                    fd;          /* -1: none */
    bool                   ready;       /* fd is connected */
    size_t                 server;      /* of fd */
    uint64_t               since_ms;    /* KUBE_NEVER: it does not run */
    uint64_t               due_ms;      /* the next connect, or fd's end */
} kube_dialer_t;

/* epoll is borrowed; the socket is in it for writing while it connects. */
void kube_dialer_init(kube_dialer_t *d, int epoll, uint64_t seed);

/* Closes what is open. */
void kube_dialer_done(kube_dialer_t *d);

/*
 * Notes an address of a server that is tried now; anew: the first of this
 * request, and those that were known of the server are forgotten.
 */
void kube_dialer_learn(kube_dialer_t *d, size_t server,
    const struct sockaddr *addr, socklen_t len, bool anew);

/* Begins, with a connect at once or after a pause; where it runs it goes on. */
void kube_dialer_start(kube_dialer_t *d, bool at_once, uint64_t now_ms);

/* Ends; a connection that stands is kept for its time. */
void kube_dialer_stop(kube_dialer_t *d);

/* Does what is due.  True: a connection stands, and it runs no more. */
bool kube_dialer_process(kube_dialer_t *d, uint64_t now_ms);

/* When process() is due, or KUBE_NEVER. */
uint64_t kube_dialer_deadline(const kube_dialer_t *d);

/*
 * The connection that stands, if it is one to that server; the caller's from
 * then on.  -1: none.
 *
 * Its connect() has not been asked for its result: the next call of connect()
 * returns 0, on Linux, whatever address it is given.  Who cannot be told that a
 * socket is connected already may therefore connect it again.
 */
int kube_dialer_take(kube_dialer_t *d, size_t server);


#endif /* KUBE_DIALER_H */

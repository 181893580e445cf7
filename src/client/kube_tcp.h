/*
 * kube_tcp - sockets towards the API server, and what the kernel knows of the
 * peer of one: whether it still answers.
 *
 * It resolves no name and connects nothing; kube_exchange and kube_dialer do.
 * Both may call it, and kube_transport.
 *
 * A keepalive probe is sent where nothing came from the peer for 4 s, and
 * another each second until it answers; a peer that does not is given up after
 * 30 s.  client-go notices after 30 + 15 s.  The probes are the kernel's: they
 * cost an API server neither a wake-up nor a request.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_TCP_H
#define KUBE_TCP_H


#include <stdbool.h>
#include <stdint.h>


#define KUBE_TCP_IDLE_S           4
#define KUBE_TCP_INTERVAL_S       1
#define KUBE_TCP_USER_TIMEOUT_MS  30000

/*
 * Probes without an answer before a connection is suspect.  One is lost now and
 * then; the second is sent a second after it.
 */
#define KUBE_TCP_PROBES           2

/* Times that data was sent again: two are 0.6 s or more without an answer. */
#define KUBE_TCP_RESENT           2

/* Opens a socket with all of these options.  -1: errno says why. */
int kube_tcp_open(int family, int type, int protocol);

/*
 * Whether the peer leaves probes, or data of ours, without an answer, or is not
 * even connected yet, by the kernel's TCP_INFO: tcpi_probes, tcpi_backoff,
 * tcpi_state.  These speak of who is at the other end of the connection, be it
 * a proxy.
 *
 * *quiet_ms: for how long nothing has come, by tcpi_last_data_recv and
 * tcpi_last_ack_recv; before so much more time has passed that probes can be
 * without an answer, there is no need to ask again.  False for what is no TCP.
 */
bool kube_tcp_suspect(int fd, uint64_t *quiet_ms);


#endif /* KUBE_TCP_H */

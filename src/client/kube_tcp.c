/*
 * kube_tcp - sockets towards the API server, and whether the peer of one still
 * answers.
 *
 * It keeps nothing and connects nothing.  Called by kube_exchange, kube_dialer
 * and kube_transport.
 *
 * What the kernel says was measured with packets dropped on the way and at the
 * sender: tcpi_probes and tcpi_backoff count in both cases, tcpi_unacked does
 * not where the sender's own packets are dropped before they leave.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "kube_tcp.h"


static void
tcp_set(int fd, int level, int option, int value)
{
    /* a connection works without any of these options */

    (void) setsockopt(fd, level, option, &value, sizeof(value));
}


int
kube_tcp_open(int family, int type, int protocol)
{
    int  fd;

    fd = socket(family, type | SOCK_CLOEXEC, protocol);

    if (fd == -1 || (family != AF_INET && family != AF_INET6)) {
        return fd;
    }

    tcp_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    tcp_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KUBE_TCP_IDLE_S);
    tcp_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KUBE_TCP_INTERVAL_S);
    tcp_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, KUBE_TCP_USER_TIMEOUT_MS);

    /* where the kernel knows no user timeout, as many probes take as long */

    tcp_set(fd, IPPROTO_TCP, TCP_KEEPCNT,
            (KUBE_TCP_USER_TIMEOUT_MS / 1000 - KUBE_TCP_IDLE_S)
            / KUBE_TCP_INTERVAL_S);

    return fd;
}


bool
kube_tcp_suspect(int fd, uint64_t *quiet_ms)
{
    socklen_t        len;
    struct tcp_info  info;

    *quiet_ms = 0;

    memset(&info, 0, sizeof(info));
    len = sizeof(info);

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == -1) {
        return false;
    }

    *quiet_ms = (info.tcpi_last_data_recv < info.tcpi_last_ack_recv)
                ? info.tcpi_last_data_recv : info.tcpi_last_ack_recv;

    return info.tcpi_state == TCP_SYN_SENT
           || info.tcpi_probes >= KUBE_TCP_PROBES
           || info.tcpi_backoff >= KUBE_TCP_RESENT;
}

/*
 * pods - a process whose connections to 10.0.0.0/8 lead to 127.0.0.0/8.
 *
 * For counts of instructions: addresses of pods are ordinary ones, and what
 * listens for them is on this machine.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>


int
connect(int fd, const struct sockaddr *sa, socklen_t socklen)
{
    struct sockaddr_in  here;

    static int  (*real)(int, const struct sockaddr *, socklen_t);

    if (real == NULL) {
        *(void **) &real = dlsym(RTLD_NEXT, "connect");
    }

    if (sa->sa_family != AF_INET || socklen != sizeof(here)) {
        return real(fd, sa, socklen);
    }

    memcpy(&here, sa, sizeof(here));

    if (ntohl(here.sin_addr.s_addr) >> 24 == 10) {
        here.sin_addr.s_addr = htonl((127u << 24)
                                     | (ntohl(here.sin_addr.s_addr)
                                        & 0xffffff));
    }

    return real(fd, (struct sockaddr *) &here, socklen);
}

/*
 * eventless - the master of an nginx finds no eventfd(2).  Loaded before it
 * (LD_PRELOAD) by test_events.py; its workers, which ask later, get theirs.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>


static pid_t  eventless_first;


static void __attribute__((constructor))
eventless_start(void)
{
    eventless_first = getpid();
}


int
eventfd(unsigned int count, int flags)
{
    if (getpid() == eventless_first) {
        errno = EMFILE;
        return -1;
    }

    return ((__typeof__(&eventfd)) dlsym(RTLD_NEXT, "eventfd"))(count, flags);
}

/*
 * no_time - a process that needs no time of its processor, as it sees it.
 *
 * For counts of instructions: under valgrind a build of a view seems to take so
 * long that the next ones are put off.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stddef.h>
#include <time.h>


int
clock_gettime(clockid_t id, struct timespec *ts)
{
    static int  (*real)(clockid_t, struct timespec *);

    if (id == CLOCK_THREAD_CPUTIME_ID) {
        ts->tv_sec = 1;
        ts->tv_nsec = 0;
        return 0;
    }

    if (real == NULL) {
        *(void **) &real = dlsym(RTLD_NEXT, "clock_gettime");
    }

    return real(id, ts);
}

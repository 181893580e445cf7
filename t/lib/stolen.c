/*
 * stolen - a processor whose time others take, and which counts it as the
 * thread's: each look at that clock finds 50 ms more.  Loaded before nginx's
 * modules (LD_PRELOAD) by test_views.py, so that nothing of it is in what we
 * build.
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
    static long   looks;

    if (id == CLOCK_THREAD_CPUTIME_ID) {
        looks++;
        ts->tv_sec = looks / 20;
        ts->tv_nsec = looks % 20 * 50000000;
        return 0;
    }

    if (real == NULL) {
        *(void **) &real = dlsym(RTLD_NEXT, "clock_gettime");
    }

    return real(id, ts);
}

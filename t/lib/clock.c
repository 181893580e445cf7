/*
 * clock - a wall clock that is wrong.  Loaded before nginx's modules
 * (LD_PRELOAD) by test_state_file.py, so that nothing of it is in what we
 * build.
 *
 *   KUBE_CLOCK_FILE=PATH    while there is such a file, it is a day ahead
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


static char  clock_file[256];


/* Before main(): nginx leaves nothing of the environment to its children. */
__attribute__((constructor))
static void
clock_init(void)
{
    const char  *file;

    file = getenv("KUBE_CLOCK_FILE");

    if (file != NULL) {
        strncpy(clock_file, file, sizeof(clock_file) - 1);
    }
}


int
clock_gettime(clockid_t id, struct timespec *ts)
{
    int                               rc;
    static __typeof__(clock_gettime)  *next;

    if (next == NULL) {
        next = (__typeof__(next)) dlsym(RTLD_NEXT, "clock_gettime");
    }

    rc = next(id, ts);

    if (rc == 0 && id == CLOCK_REALTIME && access(clock_file, F_OK) == 0) {
        ts->tv_sec += 24 * 3600;
    }

    return rc;
}

/*
 * clock - clocks that are wrong.  Loaded before nginx's modules (LD_PRELOAD) by
 * test_state_file.py, test_views.py and test_balancing.py, so that nothing of it
 * is in what we build.
 *
 *   KUBE_CLOCK_FILE=PATH           while there is such a file, the wall clock is
 *                                  ahead by the seconds that it says
 *   KUBE_CLOCK_STEADY_FILE=PATH    so is the clock that timers go by
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>


#define CLOCKS  (sizeof(clocks) / sizeof(clocks[0]))


static struct {
    clockid_t    id;
    const char  *name;
    char         file[256];
} clocks[] = {
    { CLOCK_REALTIME, "KUBE_CLOCK_FILE", "" },
    { CLOCK_MONOTONIC, "KUBE_CLOCK_STEADY_FILE", "" },
    { CLOCK_MONOTONIC_COARSE, "KUBE_CLOCK_STEADY_FILE", "" }
};


/* Before main(): nginx leaves nothing of the environment to its children. */
__attribute__((constructor))
static void
clock_init(void)
{
    size_t       i;
    const char  *file;

    for (i = 0; i < CLOCKS; i++) {
        file = getenv(clocks[i].name);

        if (file != NULL) {
            strncpy(clocks[i].file, file, sizeof(clocks[i].file) - 1);
        }
    }
}


static long
clock_ahead(const char *file)
{
    int      fd;
    char     text[16];
    ssize_t  n;

    fd = (file[0] != '\0') ? open(file, O_RDONLY|O_CLOEXEC) : -1;

    if (fd == -1) {
        return 0;
    }

    n = read(fd, text, sizeof(text) - 1);
    (void) close(fd);
    text[n > 0 ? n : 0] = '\0';

    return strtol(text, NULL, 10);
}


int
clock_gettime(clockid_t id, struct timespec *ts)
{
    int                               rc;
    size_t                            i;
    static __typeof__(clock_gettime)  *next;

    if (next == NULL) {
        next = (__typeof__(next)) dlsym(RTLD_NEXT, "clock_gettime");
    }

    rc = next(id, ts);

    for (i = 0; rc == 0 && i < CLOCKS; i++) {
        if (clocks[i].id == id) {
            ts->tv_sec += clock_ahead(clocks[i].file);
        }
    }

    return rc;
}


/* nginx's own clock. */
int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
    struct timespec  ts;

    (void) tz;

    if (clock_gettime(CLOCK_REALTIME, &ts) == -1) {
        return -1;
    }

    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;

    return 0;
}

/*
 * slow_disk - a disk on which each slice of a state file takes its time.  Loaded
 * before nginx's modules (LD_PRELOAD) by test_state_file.py, so that nothing of
 * it is in what we build.
 *
 *   KUBE_SLOW_DISK=US    so long instead
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <stdlib.h>
#include <unistd.h>

#include "preload.h"


/* Of a whole slice, in us; nothing else that nginx writes is so large. */
#define SLOW_DISK_SLICE  (256 * 1024)
#define SLOW_DISK_TAKES  40000


static useconds_t  slow_disk_takes = SLOW_DISK_TAKES;


/* Before main(): nginx leaves nothing of the environment to its children. */
__attribute__((constructor))
static void
slow_disk_init(void)
{
    const char  *takes;

    takes = getenv("KUBE_SLOW_DISK");

    if (takes != NULL) {
        slow_disk_takes = (useconds_t) atoi(takes);
    }
}


ssize_t
write(int fd, const void *bytes, size_t size)
{
    if (size == SLOW_DISK_SLICE) {
        (void) usleep(slow_disk_takes);
    }

    return PRELOAD_NEXT(write)(fd, bytes, size);
}

/*
 * stray - what a bug in a worker would be like: one byte written where nobody
 * but the writer of a zone may write.  Loaded before nginx's modules
 * (LD_PRELOAD) by test_read_only.py.
 *
 *   KUBE_STRAY_FILE=PATH   the address, in hexadecimal; it is written to, with
 *                          what is there, at each SIGRTMIN + 4
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


static char  stray_file[256];


static void
stray_write(int signo)
{
    int             fd;
    char            text[32];
    ssize_t         n;
    volatile char  *p;

    (void) signo;

    fd = open(stray_file, O_RDONLY);

    if (fd == -1) {
        return;
    }

    n = read(fd, text, sizeof(text) - 1);
    (void) close(fd);

    if (n > 0) {
        text[n] = '\0';
        p = (volatile char *) strtoul(text, NULL, 16);
        *p = *p;
    }
}


/* Before main(): nginx leaves nothing of the environment to its children. */
__attribute__((constructor))
static void
stray_init(void)
{
    const char  *file;

    file = getenv("KUBE_STRAY_FILE");

    if (file != NULL) {
        strncpy(stray_file, file, sizeof(stray_file) - 1);
        (void) signal(SIGRTMIN + 4, stray_write);
    }
}

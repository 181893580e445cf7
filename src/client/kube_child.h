/*
 * kube_child - a program that is run for what it prints, and its end.
 *
 * It never blocks, has a time, and takes nothing of ours along but what it is
 * given: no descriptor, no signal's handler or mask.  It is no child that the
 * host could collect, and ends, with all that it started in its group, when the
 * host stops asking or is gone.
 *
 * For kube_exec alone: in the informer process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CHILD_H
#define KUBE_CHILD_H


#include <sys/types.h>

#include "kube_base.h"


typedef enum {
    KUBE_CHILD_OUT = 0,     /* what it prints */
    KUBE_CHILD_ERR,         /* its standard error */
    KUBE_CHILD_END,         /* one kube_child_end_t, then the end */
    KUBE_CHILD_PIPES
} kube_child_pipe_t;

typedef enum {
    KUBE_CHILD_NOT_STARTED = 1,
    KUBE_CHILD_EXITED,
    KUBE_CHILD_KILLED,      /* by a signal */
    KUBE_CHILD_LATE         /* its time is over, and it was ended */
} kube_child_how_t;

typedef struct {
    kube_child_how_t  how;  /* 0: not yet */
    int               what; /* errno, code, or signal */
} kube_child_end_t;

typedef struct {
    int  epoll;                      /* readable when a pipe is; -1: nothing
                                        runs */
    int  pipes[KUBE_CHILD_PIPES];    /* -1: none, or at its end */
} kube_child_t;


void kube_child_init(kube_child_t *child);

/*
 * Starts the program, found by PATH of env if its name has no slash; one that
 * runs is ended.  KUBE_OK, or KUBE_IO: no process or descriptor.
 */
kube_rc_t kube_child_start(kube_child_t *child, char **argv, char **env,
    unsigned timeout_ms)  KUBE_MUST_CHECK;

/* As read(); 0 for a pipe that is at its end.  It does not block. */
ssize_t kube_child_read(kube_child_t *child, kube_child_pipe_t pipe,
    void *data, size_t size)  KUBE_MUST_CHECK;

/* Ends what runs; may be repeated. */
void kube_child_stop(kube_child_t *child);


#endif /* KUBE_CHILD_H */

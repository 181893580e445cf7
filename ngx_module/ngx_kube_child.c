/*
 * ngx_kube_child - plain fork and pipe.
 *
 * It knows nothing of the questions.  Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"
#include "ngx_kube_child.h"

#include <poll.h>
#include <sys/prctl.h>


static void ngx_kube_child_run(ngx_kube_child_pt run, void *data, size_t size,
    int fd);
static ssize_t ngx_kube_child_read(int fd, void *answer, size_t size);


ngx_int_t
ngx_kube_child_ask(ngx_kube_child_pt run, void *data, void *answer,
    size_t size)
{
    int        fd[2];
    ssize_t    n;
    ngx_err_t  err;
    ngx_pid_t  pid;

    if (pipe(fd) == -1) {
        return NGX_ERROR;
    }

    pid = fork();

    if (pid == 0) {
        (void) close(fd[0]);
        ngx_kube_child_run(run, data, size, fd[1]);
    }

    err = ngx_errno;
    (void) close(fd[1]);

    if (pid == -1) {
        (void) close(fd[0]);
        ngx_set_errno(err);
        return NGX_ERROR;
    }

    n = ngx_kube_child_read(fd[0], answer, size);

    (void) close(fd[0]);

    if (n != (ssize_t) size) {
        (void) kill(pid, SIGKILL);
    }

    /*
     * What counts is the answer, not how the child ended: on a reload nginx's
     * own handler of SIGCHLD may have waited for it.
     */

    while (waitpid(pid, NULL, 0) == -1 && ngx_errno == NGX_EINTR) {
        /* void */
    }

    if (n != (ssize_t) size) {
        ngx_set_errno(n == -1 ? NGX_ETIMEDOUT : 0);
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Never returns, and leaves by _exit(): nothing of nginx is to run here. */

static void
ngx_kube_child_run(ngx_kube_child_pt run, void *data, size_t size, int fd)
{
    ssize_t   n;
    uint64_t  answer[NGX_KUBE_CHILD_ANSWER / sizeof(uint64_t)];

    n = -1;

    (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);

    if (size <= sizeof(answer)) {
        ngx_memzero(answer, sizeof(answer));
        run(data, answer);
        n = write(fd, answer, size);
    }

    _exit(n == (ssize_t) size ? 0 : 1);
}


/* -1: nothing in time; 0: it died. */

static ssize_t
ngx_kube_child_read(int fd, void *answer, size_t size)
{
    ssize_t        n;
    uint64_t       now, deadline;
    struct pollfd  pfd;

    pfd.fd = fd;
    pfd.events = POLLIN;

    deadline = ngx_kube_now() + NGX_KUBE_CHILD_TIMEOUT;

    for (now = ngx_kube_now(); now < deadline; now = ngx_kube_now()) {

        if (poll(&pfd, 1, (int) (deadline - now)) > 0) {

            do {
                n = read(fd, answer, size);
            } while (n == -1 && ngx_errno == NGX_EINTR);

            return n;
        }
    }

    return -1;
}

/*
 * ngx_kube_kubeconfig - a kubeconfig file is judged while nginx reads its own
 * configuration, without its secrets ever entering the master's memory: a
 * child reads the file as the informer will, as "user", and answers by a pipe.
 *
 * It keeps nothing of the file.  The informer process reads it for itself, at
 * run time, through ngx_kube_kubeconfig_read().  Configuration time, but for
 * that.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"

#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>


/* A file on a file system that hangs must not hang a reload. */
#define NGX_KUBE_KUBECONFIG_TIMEOUT  5000


/* What the child found; a pipe takes and gives it in one piece. */
typedef struct {
    kube_rc_t  rc;
    char       what[256];
} ngx_kube_verdict_t;


static void ngx_kube_kubeconfig_child(ngx_kube_informer_t *block,
    ngx_core_conf_t *ccf, int fd);
static ngx_int_t ngx_kube_kubeconfig_answer(ngx_pid_t pid, int fd,
    ngx_kube_verdict_t *verdict);


kube_rc_t
ngx_kube_kubeconfig_read(const ngx_kube_informer_t *block,
    kube_config_t *config, kube_error_t *error)
{
    char  *context;

    context = block->context.len ? (char *) block->context.data : NULL;

    return kube_config_kubeconfig(config, (char *) block->kubeconfig.data,
                                  context, error);
}


ngx_int_t
ngx_kube_kubeconfig_check(ngx_cycle_t *cycle, ngx_kube_informer_t *block)
{
    int                  fd[2];
    ngx_int_t            rc;
    ngx_pid_t            pid;
    ngx_core_conf_t     *ccf;
    ngx_kube_verdict_t   verdict;

    /* a signaller starts nothing: "nginx -s stop" needs no kubeconfig */

    if (block->kubeconfig.len == 0 || ngx_process == NGX_PROCESS_SIGNALLER) {
        return NGX_OK;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (pipe(fd) == -1) {
        goto unchecked;
    }

    pid = fork();

    if (pid == 0) {
        (void) close(fd[0]);
        ngx_kube_kubeconfig_child(block, ccf, fd[1]);
    }

    (void) close(fd[1]);

    if (pid == -1) {
        (void) close(fd[0]);
        goto unchecked;
    }

    rc = ngx_kube_kubeconfig_answer(pid, fd[0], &verdict);

    (void) close(fd[0]);

    if (rc != NGX_OK) {
        goto unchecked;
    }

    if (verdict.rc == KUBE_OK) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                  "kubeconfig \"%V\"%s%V%s%s%s%s: %s in %V:%ui",
                  &block->kubeconfig, block->context.len ? ", context \"" : "",
                  &block->context, block->context.len ? "\"" : "",
                  ccf->username ? ", read as user \"" : "",
                  ccf->username ? ccf->username : "",
                  ccf->username ? "\"" : "",
                  verdict.what, &block->file, block->api_line);

    return NGX_ERROR;

unchecked:

    ngx_log_error(NGX_LOG_WARN, cycle->log, ngx_errno,
                  "kubeconfig \"%V\" could not be checked now; the informer "
                  "process will say what is wrong with it",
                  &block->kubeconfig);

    return NGX_OK;
}


/* Never returns, and leaves by _exit(): nothing of nginx is to run here. */

static void
ngx_kube_kubeconfig_child(ngx_kube_informer_t *block, ngx_core_conf_t *ccf,
    int fd)
{
    ssize_t              n;
    kube_error_t         error;
    kube_config_t        config;
    ngx_kube_verdict_t   verdict;

    ngx_memzero(&verdict, sizeof(ngx_kube_verdict_t));
    ngx_memzero(&error, sizeof(kube_error_t));

    (void) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);

    if (geteuid() == 0
        && (setgid(ccf->group) == -1
            || initgroups(ccf->username, ccf->group) == -1
            || setuid(ccf->user) == -1))
    {
        verdict.rc = KUBE_IO;
        error.what = "cannot become that user";

    } else {
        kube_config_init(&config, &ngx_kube_alloc);
        verdict.rc = ngx_kube_kubeconfig_read(block, &config, &error);
    }

    if (verdict.rc != KUBE_OK && error.what != NULL) {
        (void) ngx_cpystrn((u_char *) verdict.what, (u_char *) error.what,
                           sizeof(verdict.what));
    }

    n = write(fd, &verdict, sizeof(ngx_kube_verdict_t));

    _exit(n == (ssize_t) sizeof(ngx_kube_verdict_t) ? 0 : 1);
}


/*
 * NGX_OK: the child answered.  What counts is the answer, not how the child
 * ended: on a reload nginx's own handler of SIGCHLD may have waited for it.
 */

static ngx_int_t
ngx_kube_kubeconfig_answer(ngx_pid_t pid, int fd, ngx_kube_verdict_t *verdict)
{
    ssize_t        n;
    uint64_t       now, deadline;
    struct pollfd  pfd;

    n = -1;
    pfd.fd = fd;
    pfd.events = POLLIN;

    deadline = ngx_kube_now() + NGX_KUBE_KUBECONFIG_TIMEOUT;

    for (now = ngx_kube_now(); now < deadline; now = ngx_kube_now()) {

        if (poll(&pfd, 1, (int) (deadline - now)) > 0) {

            do {
                n = read(fd, verdict, sizeof(ngx_kube_verdict_t));
            } while (n == -1 && ngx_errno == NGX_EINTR);

            break;
        }
    }

    if (n != (ssize_t) sizeof(ngx_kube_verdict_t)) {
        (void) kill(pid, SIGKILL);
    }

    while (waitpid(pid, NULL, 0) == -1 && ngx_errno == NGX_EINTR) {
        /* void */
    }

    if (n != (ssize_t) sizeof(ngx_kube_verdict_t)) {
        ngx_set_errno(n == -1 ? NGX_ETIMEDOUT : 0);
        return NGX_ERROR;
    }

    verdict->what[sizeof(verdict->what) - 1] = '\0';

    return NGX_OK;
}

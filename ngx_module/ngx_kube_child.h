/*
 * ngx_kube_child - a question answered by a short-lived child, so that what it
 * reads never enters the master's memory and what it breaks ends there.
 *
 * It is no process of nginx's: no cycle, no channel, no respawn.  Configuration
 * time only, in the master or in "nginx -t".
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_CHILD_H
#define NGX_KUBE_CHILD_H


#include <ngx_config.h>
#include <ngx_core.h>


/* How long a child may take, ms: a hanging file system hangs no reload. */
#define NGX_KUBE_CHILD_TIMEOUT  5000

/* Of an answer, bytes: a pipe takes and gives so many in one piece. */
#define NGX_KUBE_CHILD_ANSWER   4096


/* Runs in the child alone; answer: zeroed, ends with a return. */
typedef void (*ngx_kube_child_pt)(void *data, void *answer);

/*
 * Has run() answered by a child that then leaves without a word to nginx.
 * NGX_OK: answer is its.  NGX_ERROR, not logged: none could be made, it died,
 * or it took too long and was killed; ngx_errno tells, 0 for a death.
 */
ngx_int_t ngx_kube_child_ask(ngx_kube_child_pt run, void *data, void *answer,
    size_t size);


#endif /* NGX_KUBE_CHILD_H */

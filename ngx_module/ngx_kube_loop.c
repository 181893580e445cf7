/*
 * ngx_kube_loop - nginx's events and timers as the loop an informer needs:
 * one descriptor, one deadline.
 *
 * The descriptor is the transport's private epoll: one ngx_connection_t for
 * everything, level-triggered, so that no stale event of a reused descriptor
 * can reach us.  Timers are cancelable: an exiting process does not wait for
 * them.  Informer process only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"


static void ngx_kube_loop_handler(ngx_event_t *ev);
static void ngx_kube_loop_run(ngx_kube_loop_t *loop);
static void *ngx_kube_malloc(void *ctx, size_t size);
static void ngx_kube_mfree(void *ctx, void *p);
static void *ngx_kube_mmap(void *ctx, size_t size);
static void ngx_kube_munmap(void *ctx, void *p, size_t size);


const kube_alloc_t  ngx_kube_alloc = {
    ngx_kube_malloc, ngx_kube_mfree, NULL, ngx_kube_mmap, ngx_kube_munmap
};


static void *
ngx_kube_malloc(void *ctx, size_t size)
{
    return malloc(size);
}


static void
ngx_kube_mfree(void *ctx, void *p)
{
    free(p);
}


/* Huge pages would make two megabytes of the first byte of each table. */

static void *
ngx_kube_mmap(void *ctx, size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }

    /* kernels without huge pages refuse it */

    (void) madvise(p, size, MADV_NOHUGEPAGE);

    return p;
}


static void
ngx_kube_munmap(void *ctx, void *p, size_t size)
{
    (void) munmap(p, size);
}


uint64_t
ngx_kube_now(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


int64_t
ngx_kube_unix_ms(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    return (int64_t) ts.tv_sec * 1000 + (int64_t) ts.tv_nsec / 1000000;
}


ngx_int_t
ngx_kube_loop_start(ngx_kube_loop_t *loop)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(loop->fd, loop->log);
    if (c == NULL) {
        return NGX_ERROR;
    }

    c->data = loop;
    c->log = loop->log;
    c->read->log = loop->log;
    c->write->log = loop->log;
    c->read->handler = ngx_kube_loop_handler;

    loop->timer.handler = ngx_kube_loop_handler;
    loop->timer.data = c;
    loop->timer.log = loop->log;
    loop->timer.cancelable = 1;

    loop->again.handler = ngx_kube_loop_handler;
    loop->again.data = c;
    loop->again.log = loop->log;

    if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_LEVEL_EVENT) != NGX_OK) {
        ngx_free_connection(c);
        return NGX_ERROR;
    }

    loop->connection = c;

    ngx_kube_loop_run(loop);

    return NGX_OK;
}


void
ngx_kube_loop_stop(ngx_kube_loop_t *loop)
{
    ngx_connection_t  *c;

    c = loop->connection;

    if (c == NULL) {
        return;
    }

    /* no timer expires any more, and no event that was posted is run */

    (void) ngx_del_event(c->read, NGX_READ_EVENT, 0);

    /* the descriptor is the client's: it is not closed here */

    ngx_free_connection(c);
    c->fd = (ngx_socket_t) -1;

    loop->connection = NULL;
}


void
ngx_kube_loop_wake(ngx_kube_loop_t *loop)
{
    if (loop->connection != NULL && !loop->again.posted) {
        ngx_post_event(&loop->again, &ngx_posted_events);
    }
}


static void
ngx_kube_loop_handler(ngx_event_t *ev)
{
    ngx_connection_t  *c;

    c = ev->data;

    ngx_kube_loop_run(c->data);
}


static void
ngx_kube_loop_run(ngx_kube_loop_t *loop)
{
    uint64_t  now, deadline;

    loop->run(loop->data);

    if (loop->connection == NULL) {
        return;
    }

    now = ngx_kube_now();
    deadline = loop->deadline(loop->data);

    if (deadline <= now) {

        if (loop->timer.timer_set) {
            ngx_del_timer(&loop->timer);
        }

        if (!loop->again.posted) {
            ngx_post_event(&loop->again, &ngx_posted_next_events);
        }

        return;
    }

    /* nginx keeps a timer that is off by less than 300 ms: set it anew */

    if (loop->timer.timer_set) {
        ngx_del_timer(&loop->timer);
    }

    if (deadline - now > 3600 * 1000) {
        deadline = now + 3600 * 1000;
    }

    ngx_add_timer(&loop->timer, (ngx_msec_t) (deadline - now));
}

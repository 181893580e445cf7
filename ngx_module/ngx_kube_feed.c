/*
 * ngx_kube_feed - subscribers of an informer's events in this process, and
 * what wakes them.
 *
 * It reads no event.  Nobody ever reads the eventfd either: it stays readable,
 * and an edge-triggered epoll reports each write to every process that waits.
 * A feed's connection is "idle" for nginx, which therefore tells it when the
 * worker is to leave; it is open only while there are subscribers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_feed.h"

#include <sys/eventfd.h>


/* ms between two looks where nothing wakes subscribers. */
#define NGX_KUBE_FEED_POLL  250


struct ngx_kube_feed_s {
    ngx_kube_informer_t  *informer;
    ngx_queue_t           subscribers;
    ngx_connection_t     *connection;    /* NULL: there are none */
    ngx_event_t           timer;
    unsigned              polled:1;
};


static ngx_int_t ngx_kube_feed_open(ngx_kube_feed_t *feed);
static void ngx_kube_feed_close(ngx_kube_feed_t *feed);
static void ngx_kube_feed_handler(ngx_event_t *ev);
static void ngx_kube_feed_leave(ngx_kube_feed_t *feed);


ngx_int_t
ngx_kube_subscribe(ngx_kube_subscriber_t *subscriber,
    ngx_kube_informer_t *informer)
{
    ngx_kube_feed_t  *feed;

    if (ngx_exiting || ngx_quit || ngx_terminate) {
        return NGX_DECLINED;
    }

    feed = informer->feed;

    if (feed == NULL) {

        /* one for each informer and process, for good */

        feed = ngx_pcalloc(ngx_cycle->pool, sizeof(ngx_kube_feed_t));
        if (feed == NULL) {
            return NGX_ERROR;
        }

        feed->informer = informer;
        ngx_queue_init(&feed->subscribers);
        informer->feed = feed;
    }

    if (feed->connection == NULL && ngx_kube_feed_open(feed) != NGX_OK) {
        return NGX_ERROR;
    }

    subscriber->informer = informer;
    subscriber->subscribed = 1;
    ngx_queue_insert_tail(&feed->subscribers, &subscriber->queue);

    return NGX_OK;
}


void
ngx_kube_unsubscribe(ngx_kube_subscriber_t *subscriber)
{
    ngx_kube_feed_t  *feed;

    if (!subscriber->subscribed) {
        return;
    }

    subscriber->subscribed = 0;

    if (subscriber->event.posted) {
        ngx_delete_posted_event(&subscriber->event);
    }

    if (subscriber->event.timer_set) {
        ngx_del_timer(&subscriber->event);
    }

    feed = subscriber->informer->feed;
    ngx_queue_remove(&subscriber->queue);

    if (ngx_queue_empty(&feed->subscribers)) {
        ngx_kube_feed_close(feed);
    }
}


void
ngx_kube_feed_wake(ngx_kube_informer_t *informer)
{
    static const uint64_t  one = 1;

    if (informer->events_fd != -1
        && write(informer->events_fd, &one, sizeof(uint64_t)) == -1)
    {
        ngx_log_error(NGX_LOG_ALERT, ngx_cycle->log, ngx_errno,
                      "kube informer \"%V\": write() to eventfd failed",
                      &informer->name);
    }
}


static ngx_int_t
ngx_kube_feed_open(ngx_kube_feed_t *feed)
{
    int                fd;
    ngx_log_t         *log;
    ngx_connection_t  *c;

    log = ngx_cycle->log;

    feed->polled = feed->informer->events_fd == -1
                   || !(ngx_event_flags & NGX_USE_CLEAR_EVENT);

    /* nginx tells connections with a descriptor alone that it leaves */

    fd = feed->polled ? eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC)
                      : fcntl(feed->informer->events_fd, F_DUPFD_CLOEXEC, 0);

    if (fd == -1) {
        ngx_log_error(NGX_LOG_ERR, log, ngx_errno,
                      "kube informer \"%V\": no descriptor for events",
                      &feed->informer->name);
        return NGX_ERROR;
    }

    c = ngx_get_connection(fd, log);
    if (c == NULL) {
        (void) close(fd);
        return NGX_ERROR;
    }

    c->data = feed;
    c->log = log;
    c->idle = 1;
    c->read->log = log;
    c->write->log = log;
    c->read->handler = ngx_kube_feed_handler;

    feed->timer.handler = ngx_kube_feed_handler;
    feed->timer.data = c;
    feed->timer.log = log;
    feed->timer.cancelable = 1;

    if (feed->polled) {
        ngx_add_timer(&feed->timer, NGX_KUBE_FEED_POLL);

    } else if (ngx_add_event(c->read, NGX_READ_EVENT, NGX_CLEAR_EVENT)
               != NGX_OK)
    {
        ngx_close_connection(c);
        return NGX_ERROR;
    }

    feed->connection = c;

    return NGX_OK;
}


static void
ngx_kube_feed_close(ngx_kube_feed_t *feed)
{
    ngx_connection_t  *c;

    c = feed->connection;
    feed->connection = NULL;

    if (feed->timer.timer_set) {
        ngx_del_timer(&feed->timer);
    }

    /* others have the same file open: closing alone would not take it out */

    if (c->read->active) {
        (void) ngx_del_event(c->read, NGX_READ_EVENT, 0);
    }

    ngx_close_connection(c);
}


static void
ngx_kube_feed_handler(ngx_event_t *ev)
{
    ngx_queue_t            *q;
    ngx_connection_t       *c;
    ngx_kube_feed_t        *feed;
    ngx_kube_subscriber_t  *subscriber;

    c = ev->data;
    feed = c->data;

    if (c->close) {
        ngx_kube_feed_leave(feed);
        return;
    }

    for (q = ngx_queue_head(&feed->subscribers);
         q != ngx_queue_sentinel(&feed->subscribers);
         q = ngx_queue_next(q))
    {
        subscriber = ngx_queue_data(q, ngx_kube_subscriber_t, queue);

        ngx_post_event(&subscriber->event, &ngx_posted_events);
    }

    if (feed->polled) {
        ngx_add_timer(&feed->timer, NGX_KUBE_FEED_POLL);
    }
}


/*
 * Not at once: nginx 1.22 exits without a look at posted events, such as that
 * of an HTTP/2 connection whose last stream ends, but it waits for timers.
 */

static void
ngx_kube_feed_leave(ngx_kube_feed_t *feed)
{
    ngx_queue_t            *q;
    ngx_event_t            *ev;
    ngx_kube_subscriber_t  *subscriber;

    for (q = ngx_queue_head(&feed->subscribers);
         q != ngx_queue_sentinel(&feed->subscribers);
         q = ngx_queue_next(q))
    {
        subscriber = ngx_queue_data(q, ngx_kube_subscriber_t, queue);
        subscriber->closing = 1;
        ev = &subscriber->event;

        if (ev->timer_set) {
            ngx_del_timer(ev);
        }

        ev->cancelable = 0;
        ngx_add_timer(ev, 1);
    }
}

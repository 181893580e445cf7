/*
 * ngx_http_kube_scrape - the metric service_endpoints, for a scrape that asks
 * for it: lines of each Service, made while they are sent.
 *
 * A large cluster has more Services than may be counted in one piece: a scrape
 * has TURN us of the worker, then others have theirs.  It keeps one buffer and
 * one slice, so a scraper that reads slowly costs no more.  What the lines say
 * is src/status's.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"
#include "ngx_kube_views.h"

#include "kube_prometheus.h"


/*
 * Of a worker: each has a turn whenever the worker looks for events, a buffer,
 * 256 KiB of hashes and a copy of one slice.
 */
#define NGX_HTTP_KUBE_SCRAPES      4

/* us of the processor */
#define NGX_HTTP_KUBE_SCRAPE_TURN  1000

#define NGX_HTTP_KUBE_SCRAPE_BUF   (32 * 1024)

/* ms: a worker that leaves waits for timers, not for turns. */
#define NGX_HTTP_KUBE_SCRAPE_HOLD  60000


typedef struct {
    ngx_http_kube_stream_t  stream;      /* the first: it is the scrape */
    ngx_event_t             event;
    ngx_array_t            *informers;   /* ngx_kube_informer_t * */
    ngx_uint_t              counted;     /* of them */
    ngx_uint_t              told;        /* omitted, of so many */
    uint64_t               *omitted;     /* one of each informer */
    kube_str_t              ns;
    kube_service_counts_t   counts;
    unsigned                counting:1;  /* counts is valid */
} ngx_http_kube_scrape_t;


static ngx_http_kube_scrape_t *ngx_http_kube_scrape_create(
    ngx_http_request_t *r, ngx_kube_conf_t *kcf, kube_str_t ns);
static void ngx_http_kube_scrape_cleanup(ngx_http_kube_stream_t *stream);
static void ngx_http_kube_scrape_handler(ngx_event_t *ev);
static ngx_int_t ngx_http_kube_scrape_end(ngx_http_kube_scrape_t *scrape);
static ngx_int_t ngx_http_kube_scrape_fill(ngx_http_kube_scrape_t *scrape);
static ngx_int_t ngx_http_kube_scrape_step(ngx_http_kube_scrape_t *scrape);


static ngx_uint_t  ngx_http_kube_scrapes;


ngx_uint_t
ngx_http_kube_scrape_may(void)
{
    return ngx_http_kube_scrapes < NGX_HTTP_KUBE_SCRAPES;
}


ngx_int_t
ngx_http_kube_scrape(ngx_http_request_t *r, ngx_http_kube_body_t *body,
    ngx_kube_conf_t *kcf, kube_str_t ns)
{
    ngx_int_t                rc;
    ngx_http_kube_scrape_t  *scrape;

    if (body->text.failed) {
        return NGX_ERROR;
    }

    scrape = NULL;

    if (r->method != NGX_HTTP_HEAD) {

        scrape = ngx_http_kube_scrape_create(r, kcf, ns);
        if (scrape == NULL) {
            return NGX_ERROR;
        }
    }

    r->main->count++;

    ngx_http_clear_accept_ranges(r);

    rc = ngx_http_kube_head(r, NGX_HTTP_OK, NGX_HTTP_KUBE_TYPE_METRICS, -1);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only || scrape == NULL) {
        ngx_http_finalize_request(r, rc);
        return NGX_DONE;
    }

    ngx_http_kube_stream_begin(&scrape->stream);

    r->connection->log->action = "sending metrics";

    body->buf->flush = 1;

    ngx_http_kube_stream_send(&scrape->stream, body->out);

    return NGX_DONE;
}


static ngx_http_kube_scrape_t *
ngx_http_kube_scrape_create(ngx_http_request_t *r, ngx_kube_conf_t *kcf,
    kube_str_t ns)
{
    ngx_http_kube_scrape_t  *scrape;

    scrape = ngx_pcalloc(r->pool, sizeof(ngx_http_kube_scrape_t));

    if (scrape == NULL
        || ngx_http_kube_stream_create(r, &scrape->stream,
                                       NGX_HTTP_KUBE_SCRAPE_BUF,
                                       &scrape->event)
           != NGX_OK)
    {
        return NULL;
    }

    scrape->omitted = ngx_pcalloc(r->pool, (kcf->informers.nelts + 1)
                                           * sizeof(uint64_t));
    if (scrape->omitted == NULL) {
        return NULL;
    }

    scrape->informers = &kcf->informers;
    scrape->ns = ns;

    scrape->event.handler = ngx_http_kube_scrape_handler;
    scrape->event.data = scrape;
    scrape->event.log = r->connection->log;

    scrape->stream.cleanup = ngx_http_kube_scrape_cleanup;
    ngx_http_kube_scrapes++;

    ngx_add_timer(&scrape->event, NGX_HTTP_KUBE_SCRAPE_HOLD);

    return scrape;
}


static void
ngx_http_kube_scrape_cleanup(ngx_http_kube_stream_t *stream)
{
    ngx_http_kube_scrape_t  *scrape;

    scrape = (ngx_http_kube_scrape_t *) stream;
    stream->cleanup = NULL;

    if (scrape->counting) {
        kube_service_counts_done(&scrape->counts);
        scrape->counting = 0;
    }

    if (scrape->event.posted) {
        ngx_delete_posted_event(&scrape->event);
    }

    if (scrape->event.timer_set) {
        ngx_del_timer(&scrape->event);
    }

    ngx_http_kube_scrapes--;
}


/* All before was sent; or the timer expired, beside which a turn is due. */

static void
ngx_http_kube_scrape_handler(ngx_event_t *ev)
{
    ngx_int_t                rc;
    ngx_connection_t        *c;
    ngx_http_request_t      *r;
    ngx_http_kube_scrape_t  *scrape;

    scrape = ev->data;
    r = scrape->stream.request;
    c = r->connection;

    if (ngx_http_kube_stream_lost(&scrape->stream)) {
        return;
    }

    if (ev->timedout) {
        ev->timedout = 0;
        ngx_add_timer(ev, NGX_HTTP_KUBE_SCRAPE_HOLD);
        return;
    }

    rc = ngx_http_kube_scrape_fill(scrape);

    if (rc == NGX_AGAIN) {

        if (scrape->stream.buf.last == scrape->stream.buf.pos) {
            ngx_post_event(ev, &ngx_posted_next_events);
            return;
        }

        ngx_http_kube_stream_send(&scrape->stream, &scrape->stream.out);

    } else if (rc == NGX_OK) {

        /* the request may outlive it, by the rest of a body that comes */

        ngx_http_kube_scrape_cleanup(&scrape->stream);
        ngx_http_finalize_request(r, ngx_http_kube_scrape_end(scrape));

    } else {
        /* the body has no end: a scraper takes none of it */

        ngx_log_error(NGX_LOG_ERR, c->log, 0,
                      "kube metrics could not be printed: no memory");
        ngx_http_finalize_request(r, NGX_ERROR);
    }

    ngx_http_run_posted_requests(c);
}


/* nginx sends no buffer of memory without a byte, be it the last. */

static ngx_int_t
ngx_http_kube_scrape_end(ngx_http_kube_scrape_t *scrape)
{
    ngx_buf_t  *b;

    b = &scrape->stream.buf;

    if (b->last == b->pos) {
        return ngx_http_send_special(scrape->stream.request, NGX_HTTP_LAST);
    }

    b->last_buf = 1;

    return ngx_http_output_filter(scrape->stream.request,
                                  &scrape->stream.out);
}


/* NGX_AGAIN: the turn is over, or the buffer is full; NGX_OK: the end. */

static ngx_int_t
ngx_http_kube_scrape_fill(ngx_http_kube_scrape_t *scrape)
{
    uint64_t    begun;
    ngx_buf_t  *b;
    ngx_int_t   rc;

    b = &scrape->stream.buf;
    begun = ngx_kube_worked_us();

    ngx_http_kube_stream_rewind(&scrape->stream);

    do {
        rc = ngx_http_kube_scrape_step(scrape);

    } while (rc == NGX_AGAIN
             && b->end - b->last >= KUBE_PROMETHEUS_SERVICE_MAX
             && ngx_kube_worked_us() - begun < NGX_HTTP_KUBE_SCRAPE_TURN);

    return scrape->stream.text.failed ? NGX_ERROR : rc;
}


static ngx_int_t
ngx_http_kube_scrape_step(ngx_http_kube_scrape_t *scrape)
{
    kube_rc_t                    rc;
    kube_str_t                   name;
    kube_text_t                 *text;
    ngx_kube_informer_t        **informers;
    kube_service_counts_row_t    row;

    text = &scrape->stream.text;
    informers = scrape->informers->elts;

    if (scrape->counted == scrape->informers->nelts) {

        if (scrape->told == 0) {
            kube_prometheus_print_omitted_head(text);
        }

        if (scrape->told == scrape->counted) {
            return NGX_OK;
        }

        name = ngx_kube_str(&informers[scrape->told]->name);

        kube_prometheus_print_omitted(text, name,
                                      scrape->omitted[scrape->told]);
        scrape->told++;

        return NGX_AGAIN;
    }

    if (!scrape->counting) {
        rc = kube_service_counts_init(&scrape->counts,
                                      &informers[scrape->counted]->zone,
                                      scrape->ns, KUBE_SERVICE_COUNTS_MAX,
                                      &ngx_kube_alloc);
        scrape->counting = 1;

        if (scrape->counted == 0) {
            kube_prometheus_print_services_head(text);
        }

        if (rc != KUBE_OK) {
            return NGX_ERROR;
        }
    }

    rc = kube_service_counts_step(&scrape->counts, &row);

    if (rc == KUBE_OK) {
        name = ngx_kube_str(&informers[scrape->counted]->name);
        kube_prometheus_print_service(text, name, &row);

    } else if (rc == KUBE_NOT_FOUND) {
        scrape->omitted[scrape->counted] = scrape->counts.omitted;
        scrape->counted++;

        kube_service_counts_done(&scrape->counts);
        scrape->counting = 0;

    } else if (rc != KUBE_AGAIN) {
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}

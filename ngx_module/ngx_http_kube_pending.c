/*
 * ngx_http_kube_pending - stands before the content phase, and holds a request
 * there while the first view of what its key names is made in pieces.
 *
 * A balancer cannot wait: it has to have its servers when it is asked.  So the
 * key is evaluated once before, when all that sets variables has run.
 *
 * A handler of the phase before would not see clones of requests, as "slice"
 * makes them: they begin in the content phase.  So it takes the place of what
 * runs that phase, which it calls in the end.
 *
 * It makes nothing itself: ngx_kube_views does.  Workers only, but for what is
 * for init_module.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_pending.h"
#include "ngx_http_kube_request.h"
#include "ngx_http_kube_wait.h"


/*
 * A worker holds no more requests than these, and none for longer, in ms.  Its
 * timer keeps a worker that leaves until the request was answered.
 */
#define NGX_HTTP_KUBE_PENDING_MAX  512
#define NGX_HTTP_KUBE_PENDING_MS   10000


/* A request that was held, or is. */
struct ngx_http_kube_pending_s {
    ngx_http_request_t     *request;
    ngx_kube_waiter_t       waiter;
    unsigned                held:1;
    unsigned                over:1;         /* its phases go on */
    unsigned                beyond:1;       /* it could not be held */
};


static ngx_int_t ngx_http_kube_pending_checker(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph);
static ngx_int_t ngx_http_kube_pending_begin(ngx_http_request_t *r)
    NGX_HTTP_KUBE_RARE;
static void ngx_http_kube_pending_body(ngx_http_request_t *r);
static void ngx_http_kube_pending_writer(ngx_http_request_t *r);
static ngx_http_kube_pending_t *ngx_http_kube_pending_create(
    ngx_http_kube_request_t *kr);
static void ngx_http_kube_pending_over(ngx_event_t *ev);
static void ngx_http_kube_pending_cleanup(void *data);


/* Requests held by this worker. */

static ngx_uint_t  ngx_http_kube_pending;


/* Each configuration has phases of its own. */

void
ngx_http_kube_pending_init(ngx_cycle_t *cycle)
{
    ngx_uint_t                  i;
    ngx_http_phase_handler_t   *ph;
    ngx_http_kube_srv_conf_t  **kscf;
    ngx_http_core_main_conf_t  *cmcf;
    ngx_http_kube_main_conf_t  *kmcf;

    kmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_kube_module);

    if (kmcf == NULL) {
        return;
    }

    kscf = kmcf->upstreams.elts;

    for (i = 0; i < kmcf->upstreams.nelts; i++) {
        if (!kscf[i]->key.ref->is_static) {
            break;
        }
    }

    if (i == kmcf->upstreams.nelts) {
        return;
    }

    cmcf = ngx_http_cycle_get_module_main_conf(cycle, ngx_http_core_module);

    for (ph = cmcf->phase_engine.handlers; ph->checker != NULL; ph++) {

        if (ph->checker == ngx_http_core_content_phase) {
            ph->checker = ngx_http_kube_pending_checker;
            return;
        }
    }
}


/* As ngx_http_core_generic_phase() does it, before the phase itself. */

static ngx_int_t
ngx_http_kube_pending_checker(ngx_http_request_t *r,
    ngx_http_phase_handler_t *ph)
{
    ngx_int_t  rc;

    if (ngx_kube_views_strained()) {
        rc = ngx_http_kube_pending_begin(r);

        if (rc != NGX_DECLINED) {

            if (rc != NGX_AGAIN && rc != NGX_DONE) {
                ngx_http_finalize_request(r, rc);
            }

            return NGX_OK;
        }
    }

    return ngx_http_core_content_phase(r, ph);
}


static ngx_int_t
ngx_http_kube_pending_begin(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_str_t                  text;
    ngx_event_t               *ev;
    ngx_http_kube_pending_t   *pending;
    ngx_http_kube_request_t   *kr;
    ngx_http_kube_srv_conf_t  *kscf;
    ngx_http_upstream_conf_t  *conf;

    kscf = ngx_http_kube_destination(r, &conf);

    if (kscf == NULL || kscf->key.ref->is_static) {
        return NGX_DECLINED;
    }

    kr = ngx_http_kube_request(r, 1);
    if (kr == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    pending = kr->pending;

    if (pending != NULL) {
        ngx_http_kube_pending_cleanup(pending);

        if (pending->over) {
            pending->over = 0;
            return NGX_DECLINED;
        }
    }

    /*
     * A balancer is asked once the body was read: a view may go until then.
     * Who was here before "error_page" may have discarded it: nobody reads one
     * then, and we would be called again at once, with no end.
     */

    if (r == r->main
        && r->request_body == NULL
        && !r->discard_body
        && conf->request_buffering
        && (r->headers_in.content_length_n > 0 || r->headers_in.chunked))
    {
        rc = ngx_http_read_client_request_body(r, ngx_http_kube_pending_body);

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            return rc;
        }

        ngx_http_finalize_request(r, NGX_DONE);
        return NGX_DONE;
    }

    if (pending == NULL) {
        pending = ngx_http_kube_pending_create(kr);

        if (pending == NULL) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }
    }

    pending->beyond = (ngx_http_kube_pending >= NGX_HTTP_KUBE_PENDING_MAX);

    if (pending->beyond
        || ngx_http_complex_value(r, &kscf->key.value, &text) != NGX_OK)
    {
        return NGX_DECLINED;
    }

    ngx_memzero(&pending->waiter, sizeof(ngx_kube_waiter_t));

    ev = &pending->waiter.event;
    ev->handler = ngx_http_kube_pending_over;
    ev->data = pending;
    ev->log = r->connection->log;

    if (!ngx_kube_views_await(&kscf->key.views, &text, &pending->waiter)) {
        return NGX_DECLINED;
    }

    pending->held = 1;
    ngx_http_kube_pending++;

    ngx_add_timer(ev, NGX_HTTP_KUBE_PENDING_MS);

    if (r == r->main) {

        /* a client that leaves is noticed */

        if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
            return NGX_HTTP_INTERNAL_SERVER_ERROR;
        }

        if (!conf->ignore_client_abort) {
            r->read_event_handler = ngx_http_test_reading;
        }
    }

    r->write_event_handler = ngx_http_kube_pending_writer;

    return NGX_AGAIN;
}


ngx_uint_t
ngx_http_kube_pending_saw(ngx_http_request_t *r,
    const ngx_http_kube_srv_conf_t *kscf)
{
    ngx_http_kube_request_t   *kr;
    ngx_http_upstream_conf_t  *conf;

    if (!ngx_kube_views_strained()) {
        return 0;
    }

    /*
     * One that came beyond what may be held has no claim to more than others.
     * One that came before the worker was strained has.
     */

    kr = ngx_http_kube_request(r, 0);

    return (kr == NULL || kr->pending == NULL || !kr->pending->beyond)
           && ngx_http_kube_destination(r, &conf) == kscf;
}


/* Runs the phases from where it was held. */

static void
ngx_http_kube_pending_body(ngx_http_request_t *r)
{
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


/* Does nothing; by it a request that is held is known. */

static void
ngx_http_kube_pending_writer(ngx_http_request_t *r)
{
    return;
}


/*
 * One for each request, which may come again: it is sent elsewhere by
 * X-Accel-Redirect or error_page.
 */

static ngx_http_kube_pending_t *
ngx_http_kube_pending_create(ngx_http_kube_request_t *kr)
{
    ngx_pool_cleanup_t       *cln;
    ngx_http_kube_pending_t  *pending;

    cln = ngx_pool_cleanup_add(kr->request->pool,
                               sizeof(ngx_http_kube_pending_t));
    if (cln == NULL) {
        return NULL;
    }

    pending = cln->data;

    ngx_memzero(pending, sizeof(ngx_http_kube_pending_t));
    pending->request = kr->request;
    kr->pending = pending;

    cln->handler = ngx_http_kube_pending_cleanup;

    return pending;
}


/*
 * Runs the phases from where it was held, which does not happen again: what it
 * waited for is there now, or cannot be made.
 */

static void
ngx_http_kube_pending_over(ngx_event_t *ev)
{
    ngx_http_kube_pending_t *pending = ev->data;

    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = pending->request;
    c = r->connection;

    ngx_http_kube_pending_cleanup(pending);

    /* its client has left, and "post_action" sent it elsewhere */

    if (r->write_event_handler != ngx_http_kube_pending_writer) {
        return;
    }

    pending->over = 1;

    ngx_http_set_log_request(c->log, r);

    if (r == r->main) {

        if (ngx_handle_read_event(c->read, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
            return;
        }

        r->read_event_handler = ngx_http_block_reading;
    }

    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_kube_pending_cleanup(void *data)
{
    ngx_http_kube_pending_t *pending = data;

    if (pending->held) {
        pending->held = 0;
        ngx_http_kube_pending--;
        ngx_kube_waiter_leave(&pending->waiter);

        if (pending->waiter.event.timer_set) {
            ngx_del_timer(&pending->waiter.event);
        }
    }
}

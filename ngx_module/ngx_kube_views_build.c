/*
 * ngx_kube_views_build - when an instance's view is made anew, and in which
 * pieces, so that one Service stalls no worker.
 *
 * It decides nothing about keys or endpoints.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_views_impl.h"

#include "kube_report.h"

#include <time.h>


/* After a build that could not be made (no memory, no budget), ms. */
#define NGX_KUBE_RETRY         100

/*
 * What a build may cost of a worker's time, in us of its processor.  It lets
 * others have their turn each STEP.  One that takes no longer than FREE is
 * never put off; of others the next begins after 20 times the cost of the last,
 * which is 5 % of the worker's time; after 200 times the last piece, in which
 * init_upstream is, where that held up the worker for longer than LONG: at most
 * one request in 200 meets it.  AGAIN: what attempts that failed may have at
 * once, beside a fifth of the time.  TURN: after so much in one turn of nginx's
 * loop, who cannot wait begins no more.  MUCH: what takes longer is remembered
 * in one of SLOTS, which may be another's too.
 */
#define NGX_KUBE_BUILD_STEP    1000
#define NGX_KUBE_BUILD_FREE    1000
#define NGX_KUBE_BUILD_LONG    2000
#define NGX_KUBE_BUILD_AGAIN   200000
#define NGX_KUBE_BUILD_TURN    10000
#define NGX_KUBE_BUILD_MUCH    200
#define NGX_KUBE_BUILD_SLOTS   16384


/* What this worker makes, one at a time, and when it may do so in one piece. */
typedef struct {
    ngx_queue_t             jobs;
    ngx_queue_t             soon;           /* of what is made in one piece */
    ngx_event_t             event;
    ngx_msec_t              whole;
    uint64_t                again;          /* us, for attempts that failed */
    ngx_msec_t              paid;           /* of again, until then */
    uint64_t                last;           /* us of the last piece */
    uint64_t                spent;          /* us in this turn of the loop */
    ngx_msec_t              turn;           /* when it began */
    ngx_msec_t              rest;           /* if strained, until then */
    unsigned                ready:1;
    unsigned                had:1;          /* soon had its turn */
    u_char                  much[NGX_KUBE_BUILD_SLOTS];
} ngx_kube_builds_t;


/* What is remembered of an instance. */
enum {
    NGX_KUBE_BUILD_UNKNOWN = 0,
    NGX_KUBE_BUILD_SMALL,
    NGX_KUBE_BUILD_MIDDLING,                /* MUCH, but no more than a STEP */
    NGX_KUBE_BUILD_LARGE
};


static void ngx_kube_instance_renew(ngx_kube_instance_t *instance,
    ngx_kube_waiter_t *waiter);
static void ngx_kube_instance_press(ngx_kube_instance_t *instance,
    ngx_kube_waiter_t *waiter);
static void ngx_kube_instance_await(ngx_kube_instance_t *instance,
    ngx_kube_waiter_t *waiter);
static void ngx_kube_instance_proceed(ngx_kube_instance_t *instance);
static void ngx_kube_builds_proceed(ngx_event_t *ev);
static void ngx_kube_builds_post(void);
static void ngx_kube_builds_worked(uint64_t us);
static u_char *ngx_kube_builds_much(const ngx_kube_instance_t *instance);
static void ngx_kube_builds_learn(const ngx_kube_instance_t *instance,
    uint64_t cost);
static ngx_queue_t *ngx_kube_builds_queue(
    const ngx_kube_instance_t *instance);
static ngx_uint_t ngx_kube_builds_rest(const ngx_kube_instance_t *instance,
    const ngx_kube_waiter_t *waiter);
static ngx_uint_t ngx_kube_builds_whole(ngx_kube_instance_t *instance,
    const ngx_kube_waiter_t *waiter);
static void ngx_kube_instance_finish(ngx_kube_instance_t *instance,
    ngx_int_t rc, uint64_t cost, uint64_t last);
static ngx_int_t ngx_kube_instance_install(ngx_kube_instance_t *instance);
static ngx_int_t ngx_kube_instance_build(ngx_kube_instance_t *instance,
    ngx_kube_view_t *view);
static ngx_uint_t ngx_kube_view_stays(ngx_kube_view_t *view,
    const ngx_kube_view_t *newer);
static void ngx_kube_instance_wait(ngx_kube_instance_t *instance,
    ngx_msec_t ms);
static void ngx_kube_instance_pace(ngx_kube_instance_t *instance,
    uint64_t cost, uint64_t last);


static ngx_kube_builds_t  ngx_kube_builds;


ngx_kube_view_t *
ngx_kube_instance_serve(ngx_kube_instance_t *instance,
    ngx_kube_waiter_t *waiter, kube_resolve_error_t *error)
{
    ngx_kube_view_t  *view;

    view = instance->view;

    ngx_kube_instance_use(instance);

    if (view == NULL || !ngx_kube_view_is_newest(view)) {
        ngx_kube_instance_renew(instance, waiter);
        view = instance->view;
    }

    *error = (view != NULL) ? view->error : KUBE_RESOLVE_NOT_SYNCED;

    return view;
}


/*
 * Something was stored for the Service: a new revision, or it only moved.  The
 * first view is made at once; so is any other that takes no longer than a step.
 * The rest of a longer one is made between other events, and the last view
 * serves meanwhile.
 */

static void
ngx_kube_instance_renew(ngx_kube_instance_t *instance,
    ngx_kube_waiter_t *waiter)
{
    ngx_queue_t     *queue;
    ngx_kube_job_t  *job;

    if (instance->job != NULL) {
        ngx_kube_instance_press(instance, waiter);
        return;
    }

    if (instance->waits
        && (ngx_msec_int_t) (ngx_current_msec - instance->next) < 0)
    {
        return;
    }

    instance->waits = 0;

    /* an old view that requests hold stays beside the new one */

    if (instance->view != NULL
        && instance->view->refs > 1
        && !ngx_kube_instances_fit(instance->views, instance))
    {
        ngx_kube_instance_wait(instance, NGX_KUBE_RETRY);
        return;
    }

    job = ngx_alloc(sizeof(ngx_kube_job_t), ngx_cycle->log);
    if (job == NULL) {
        ngx_kube_instance_wait(instance, NGX_KUBE_RETRY);
        return;
    }

    job->cost = 0;
    job->instance = instance;
    job->whole = (instance->view == NULL
                  && ngx_kube_builds_whole(instance, waiter));

    ngx_queue_init(&job->queue);
    ngx_queue_init(&job->waiters);

    ngx_kube_view_begin(&job->reading, instance->views->ref, &instance->key);

    instance->job = job;

    if (ngx_kube_builds_rest(instance, waiter)) {
        ngx_kube_builds_post();

    } else {
        ngx_kube_instance_proceed(instance);
    }

    if (instance->job != NULL) {

        /*
         * Behind others it begins anew when its turn comes: it holds no copy
         * until then, which would be an old one.
         */

        queue = ngx_kube_builds_queue(instance);

        if (!ngx_queue_empty(queue)) {
            ngx_kube_view_end(&job->reading);
            ngx_kube_view_begin(&job->reading, instance->views->ref,
                                &instance->key);
        }

        ngx_queue_insert_tail(queue, &job->queue);
        ngx_kube_instance_await(instance, waiter);
    }
}


/* What is being made is asked for again: it may keep the worker by now. */

static void
ngx_kube_instance_press(ngx_kube_instance_t *instance,
    ngx_kube_waiter_t *waiter)
{
    if (instance->view == NULL && ngx_kube_builds_whole(instance, waiter)) {
        instance->job->whole = 1;
        ngx_kube_instance_proceed(instance);

    } else {
        ngx_kube_instance_await(instance, waiter);
    }
}


static void
ngx_kube_instance_await(ngx_kube_instance_t *instance,
    ngx_kube_waiter_t *waiter)
{
    if (instance->view == NULL && waiter != NULL && !waiter->now) {
        ngx_queue_insert_tail(&instance->job->waiters, &waiter->queue);
    }
}


static void
ngx_kube_instance_proceed(ngx_kube_instance_t *instance)
{
    uint64_t         begun, before, now, worked, cost, last;
    ngx_int_t        rc;
    ngx_kube_job_t  *job;

    job = instance->job;
    begun = ngx_kube_worked_us();
    now = begun;

    do {
        before = now;
        rc = ngx_kube_view_step(&job->reading);
        now = ngx_kube_worked_us();

    } while (rc == NGX_AGAIN
             && (now - begun < NGX_KUBE_BUILD_STEP
                 || job->whole
                 || kube_resolving_is_few(&job->reading.resolving)));

    if (rc == NGX_AGAIN) {
        job->cost += now - begun;
        ngx_kube_builds_learn(instance, job->cost);
        ngx_kube_builds_worked(now - begun);
        ngx_kube_builds_post();
        return;
    }

    if (rc == NGX_OK) {
        rc = ngx_kube_instance_install(instance);
        now = ngx_kube_worked_us();

        /* what others take to go keeps the worker, but is not its own cost */

        (void) ngx_kube_instances_fit(instance->views, instance);
    }

    worked = ngx_kube_worked_us() - begun;
    cost = job->cost + now - begun;
    last = now - before;

    /*
     * The clock may count what a hypervisor or the kernel took: it is no reason
     * to keep what a few endpoints were, which may be none, for 20 times as
     * long.
     */

    if (rc == NGX_OK && kube_resolving_is_few(&job->reading.resolving)) {
        cost = ngx_min(cost, NGX_KUBE_BUILD_MUCH);
        last = ngx_min(last, NGX_KUBE_BUILD_MUCH);
    }

    ngx_kube_builds_learn(instance, cost);
    ngx_kube_builds_worked(worked);

    if (job->whole) {
        ngx_kube_builds.whole = ngx_current_msec
                                + (ngx_msec_t) (worked * 20 / 1000);
        ngx_kube_builds.again += worked;
    }

    ngx_kube_instance_finish(instance, rc, cost, last);
}


/*
 * The first of those that are under way, so that little is half made.  What is
 * made in one piece is not behind large ones, nor these behind many of such.
 */

static void
ngx_kube_builds_proceed(ngx_event_t *ev)
{
    ngx_queue_t     *queue;
    ngx_kube_job_t  *job;

    queue = &ngx_kube_builds.jobs;

    if (!ngx_queue_empty(&ngx_kube_builds.soon)
        && (ngx_queue_empty(queue) || !ngx_kube_builds.had))
    {
        queue = &ngx_kube_builds.soon;
    }

    ngx_kube_builds.had = (queue == &ngx_kube_builds.soon);

    if (ngx_queue_empty(queue)) {
        return;
    }

    job = ngx_queue_data(ngx_queue_head(queue), ngx_kube_job_t, queue);

    ngx_kube_instance_proceed(job->instance);

    if (!ngx_queue_empty(&ngx_kube_builds.jobs)
        || !ngx_queue_empty(&ngx_kube_builds.soon))
    {
        ngx_kube_builds_post();
    }
}


/* A worker that is strained has as long for others as the last piece took. */

static void
ngx_kube_builds_post(void)
{
    ngx_event_t  *ev;

    ev = &ngx_kube_builds.event;

    if (!ngx_kube_builds.ready) {
        ngx_queue_init(&ngx_kube_builds.jobs);
        ngx_queue_init(&ngx_kube_builds.soon);
        ngx_kube_views_event(ev, ngx_kube_builds_proceed);
        ngx_kube_builds.ready = 1;
    }

    if (ev->posted || ev->timer_set) {
        return;
    }

    ev->log = ngx_cycle->log;

    if (ngx_kube_views_strained()) {
        ngx_add_timer(ev, (ngx_msec_t) (ngx_kube_builds.last / 1000) + 1);

    } else {
        ngx_post_event(ev, &ngx_posted_next_events);
    }
}


/* nginx's time is that before the pieces: it has to pass twice. */

static void
ngx_kube_builds_worked(uint64_t us)
{
    ngx_kube_builds.last = us;

    if (ngx_kube_builds.turn != ngx_current_msec) {
        ngx_kube_builds.turn = ngx_current_msec;
        ngx_kube_builds.spent = 0;
    }

    ngx_kube_builds.spent += us;

    if (ngx_kube_builds.spent > NGX_KUBE_BUILD_FREE) {
        ngx_kube_builds.rest = ngx_current_msec
                               + (ngx_msec_t) (ngx_kube_builds.spent * 2 / 1000)
                               + 1;
    }
}


/* What an instance costs outlasts its view and itself. */

static u_char *
ngx_kube_builds_much(const ngx_kube_instance_t *instance)
{
    uintptr_t  n;

    n = ((uintptr_t) instance->views >> 4) + instance->sn.node.key;

    return &ngx_kube_builds.much[n % NGX_KUBE_BUILD_SLOTS];
}


static void
ngx_kube_builds_learn(const ngx_kube_instance_t *instance, uint64_t cost)
{
    u_char  *much;

    much = ngx_kube_builds_much(instance);

    if (cost >= NGX_KUBE_BUILD_STEP) {
        *much = NGX_KUBE_BUILD_LARGE;

    } else if (cost > NGX_KUBE_BUILD_MUCH) {
        *much = NGX_KUBE_BUILD_MIDDLING;

    } else {
        *much = NGX_KUBE_BUILD_SMALL;
    }
}


static ngx_queue_t *
ngx_kube_builds_queue(const ngx_kube_instance_t *instance)
{
    return (*ngx_kube_builds_much(instance) == NGX_KUBE_BUILD_LARGE)
           ? &ngx_kube_builds.jobs : &ngx_kube_builds.soon;
}


/*
 * Whether others have their turn first.  Each of many requests that come at
 * once would begin a build otherwise, and these may be over within a piece.
 * What is known to take no time is not behind them.  Who cannot wait fails
 * where nothing was made: some begin.
 */

static ngx_uint_t
ngx_kube_builds_rest(const ngx_kube_instance_t *instance,
    const ngx_kube_waiter_t *waiter)
{
    u_char  much;

    much = *ngx_kube_builds_much(instance);

    if (instance->job->whole
        || !ngx_kube_views_strained()
        || much == NGX_KUBE_BUILD_SMALL)
    {
        return 0;
    }

    if (waiter == NULL || waiter->now) {
        return much != NGX_KUBE_BUILD_UNKNOWN
               && ngx_kube_builds.turn == ngx_current_msec
               && ngx_kube_builds.spent >= NGX_KUBE_BUILD_TURN;
    }

    return (ngx_msec_int_t) (ngx_current_msec - ngx_kube_builds.rest) < 0;
}


/*
 * A first view keeps the worker until it is made.  That is 5 % of the time at
 * most once the budget makes large ones go, and clients could have one after
 * the other made; 20 %, and some at once, for requests that had one and met a
 * failure, which few do unless they are meant to.  What the configuration names
 * is made but once.
 */

static ngx_uint_t
ngx_kube_builds_whole(ngx_kube_instance_t *instance,
    const ngx_kube_waiter_t *waiter)
{
    uint64_t    paid;
    ngx_msec_t  now;

    if (waiter != NULL && !waiter->now) {
        return 0;
    }

    if (instance->views->ref->is_static || !ngx_kube_views_strained()) {
        return 1;
    }

    now = ngx_current_msec;

    if (waiter == NULL) {
        return (ngx_msec_int_t) (now - ngx_kube_builds.whole) >= 0;
    }

    paid = (uint64_t) (now - ngx_kube_builds.paid) * 1000 / 5;
    ngx_kube_builds.again -= ngx_min(paid, ngx_kube_builds.again);
    ngx_kube_builds.paid = now;

    return ngx_kube_builds.again < NGX_KUBE_BUILD_AGAIN;
}


/* last: of the last piece, which holds init_upstream. */

static void
ngx_kube_instance_finish(ngx_kube_instance_t *instance, ngx_int_t rc,
    uint64_t cost, uint64_t last)
{
    ngx_kube_instance_abandon(instance);
    ngx_kube_instance_pace(instance, cost, last);

    /* no memory, or it changes faster than it can be read */

    if (rc != NGX_OK && !instance->waits) {
        ngx_kube_instance_wait(instance, NGX_KUBE_RETRY);
    }
}


/* Takes the view that was read. */

static ngx_int_t
ngx_kube_instance_install(ngx_kube_instance_t *instance)
{
    ngx_kube_view_t   *view, *old;
    ngx_kube_views_t  *views;

    old = instance->view;
    view = instance->job->reading.view;
    views = instance->views;

    if (old != NULL && ngx_kube_view_stays(old, view)) {

        if (old->error != view->error) {
            (void) ngx_kube_unresolved(views->ref, ngx_cycle->log, view->error,
                                       &old->name, "");
        }

        return NGX_OK;
    }

    if (ngx_kube_instance_build(instance, view) != NGX_OK) {
        return NGX_ERROR;
    }

    if (old != NULL) {
        view->turn = old->turn;
        view->told = (old->told && old->error == view->error);
    }

    instance->job->reading.view = NULL;
    instance->view = view;

    if (views->ref->is_static) {
        views->view = view;
    }

    if (view->truncated
        && (old == NULL ? !ngx_kube_views_strained() : !old->truncated))
    {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "kube: \"%V\" of %s \"%V\" in %V:%ui has more than "
                      "%ui usable endpoints: a stable subset of so many is "
                      "used", &view->name, views->ref->kind,
                      &views->ref->name, &views->ref->file, views->ref->line,
                      view->n);
    }

    ngx_kube_instance_mark(instance);

    if (old != NULL) {
        ngx_kube_view_release(old);

    } else {
        /* who waits for it finds it */
        ngx_kube_instance_use(instance);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_instance_build(ngx_kube_instance_t *instance, ngx_kube_view_t *view)
{
    ngx_kube_view_t   *old;
    ngx_kube_views_t  *views;

    old = instance->view;
    views = instance->views;

    if (old != NULL && old->data != NULL && ngx_kube_view_same(old, view)) {

        /* only names have changed */

        ngx_kube_view_share(view, old);

    } else {
        if (views->made != NULL && views->made(views, view, old) != NGX_OK) {
            return NGX_ERROR;
        }

        if (old != NULL) {
            ngx_kube_count(views->ref->informer, KUBE_WORKER_REBUILDS);
        }
    }

    ngx_kube_view_measure(view);

    return NGX_OK;
}


/*
 * True where the view serves on and newer is not needed: the Service is at the
 * same revision and its record has only moved, or it has become too large to
 * be read.  The view takes the new head, so that the Service is looked at again
 * when the head moves again.
 */

static ngx_uint_t
ngx_kube_view_stays(ngx_kube_view_t *view, const ngx_kube_view_t *newer)
{
    if (view->entry != newer->entry) {
        return 0;
    }

    if ((newer->error == KUBE_RESOLVE_TOO_LARGE && view->n != 0)
        || (view->revision == newer->revision
            && view->error == newer->error
            && view->from_state_file == newer->from_state_file))
    {
        view->head = newer->head;
        return 1;
    }

    return 0;
}


static void
ngx_kube_instance_wait(ngx_kube_instance_t *instance, ngx_msec_t ms)
{
    instance->next = ngx_current_msec + ms;
    instance->waits = 1;
}


static void
ngx_kube_instance_pace(ngx_kube_instance_t *instance, uint64_t cost,
    uint64_t last)
{
    uint64_t  pause;

    instance->costly = (cost > NGX_KUBE_BUILD_FREE);

    if (!instance->costly) {
        return;
    }

    pause = cost * 20;

    if (last > NGX_KUBE_BUILD_LONG) {
        pause = ngx_max(pause, last * 200);
    }

    ngx_kube_instance_wait(instance, ngx_max((ngx_msec_t) (pause / 1000),
                                             instance->views->pause));
}


void
ngx_kube_views_look(ngx_kube_views_t *views, ngx_kube_counted_t *c)
{
    uint64_t             begun, pause;
    kube_rc_t            rc;
    ngx_uint_t           few;
    ngx_kube_reading_t   reading;

    begun = ngx_kube_worked_us();

    ngx_kube_view_begin(&reading, views->ref, &views->ref->key);

    do {
        rc = kube_resolving_step(&reading.resolving);
    } while (rc == KUBE_AGAIN);

    /* else it changes faster than it can be read: what was counted stays */

    if (rc == KUBE_OK) {
        c->n = reading.resolving.resolution.selection.n;
        c->entry = reading.resolving.resolution.entry;
        c->head = reading.resolving.resolution.head;
    }

    few = (rc == KUBE_OK && kube_resolving_is_few(&reading.resolving));

    ngx_kube_view_end(&reading);

    pause = kube_resolving_pause(ngx_kube_worked_us() - begun, few);

    c->waits = (pause != 0);
    c->next = ngx_current_msec + (ngx_msec_t) pause;
}


uint64_t
ngx_kube_worked_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

/*
 * kube_list_watch - the life of one scope's exchanges: what the reflector
 * wants is sent, cancelled, timed and counted here.
 *
 * It does not look at bytes (kube_list_watch_stream.c does) and decides
 * nothing.  Called by kube_informer.
 *
 * Handlers only feed the reflector and leave its answer in lw->action; it is
 * carried out by process().  So no request is ever sent, and no exchange
 * cancelled, from inside one.  While an action waits nothing else is fed.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kube_list_watch_internal.h"


/* An action may follow from an action: credentials, request, failure. */
#define KUBE_ACTIONS_MAX  8

/*
 * The tree of an object of the API takes about three times its text; one of
 * nothing but digits and commas would take thirty: that one is skipped.
 */
#define KUBE_ARENA_FACTOR  16


static const kube_counter_t  lw_relist_counters[] = {
#define XX(name, family, value, counts)  [counts] = KUBE_COUNTER_##name,
    KUBE_COUNTER_RELIST_MAP(XX)
#undef XX
};

static_assert(sizeof(lw_relist_counters) / sizeof(lw_relist_counters[0])
              == KUBE_RELIST_REASONS, "each reason has a counter");


void
kube_lw_count(kube_list_watch_t *lw, kube_counter_t counter, uint64_t n)
{
    kube_zone_scope_add(lw->conf.zone, lw->conf.slot, counter, n);
}


void
kube_lw_set(kube_list_watch_t *lw, kube_counter_t counter, uint64_t value)
{
    kube_zone_scope_set(lw->conf.zone, lw->conf.slot, counter, value);
}


void
kube_lw_step(kube_list_watch_t *lw, const kube_input_t *input)
{
    kube_action_t  action;

    action = kube_reflector_step(&lw->reflector, input, lw->now_ms);

    if (action.kind != KUBE_ACTION_NONE) {
        lw->action = action;
    }
}


void
kube_lw_step_kind(kube_list_watch_t *lw, kube_input_kind_t kind)
{
    kube_input_t  input;

    memset(&input, 0, sizeof(kube_input_t));
    input.kind = kind;

    kube_lw_step(lw, &input);
}


static kube_rc_t
lw_copy_conf(kube_list_watch_t *lw, const kube_list_watch_conf_t *conf)
{
    kube_rc_t  rc;

    lw->conf = *conf;
    lw->conf.ns = KUBE_STR_NULL;
    lw->conf.label_selector = KUBE_STR_NULL;
    lw->conf.field_selector = KUBE_STR_NULL;

    rc = kube_str_dup(&lw->alloc, conf->ns, &lw->conf.ns);

    if (rc == KUBE_OK) {
        rc = kube_str_dup(&lw->alloc, conf->label_selector,
                          &lw->conf.label_selector);
    }

    if (rc == KUBE_OK) {
        rc = kube_str_dup(&lw->alloc, conf->field_selector,
                          &lw->conf.field_selector);
    }

    return rc;
}


kube_list_watch_t *
kube_list_watch_create(const kube_alloc_t *alloc,
    const kube_list_watch_conf_t *conf)
{
    kube_list_watch_t  *lw;

    lw = kube_zalloc(alloc, sizeof(kube_list_watch_t));
    if (lw == NULL) {
        return NULL;
    }

    lw->alloc = *alloc;

    kube_log_init(&lw->log, conf->sink);
    kube_reflector_init(&lw->reflector, &conf->reflector);
    kube_arena_init(&lw->arena, &lw->alloc,
                    (conf->object_bytes_max + KUBE_STATUS_BYTES_MAX)
                    * KUBE_ARENA_FACTOR);

    if (lw_copy_conf(lw, conf) != KUBE_OK) {
        kube_list_watch_destroy(lw);
        return NULL;
    }

    (void) snprintf(lw->label, sizeof(lw->label), "%s%s%.*s",
                    kube_resource_text(conf->resource),
                    conf->ns.len ? " in " : "",
                    (int) conf->ns.len, conf->ns.len ? conf->ns.data : "");

    return lw;
}


static void
lw_observe_watch(kube_list_watch_t *lw)
{
    uint64_t        ms;
    lw_exchange_t  *x;

    x = &lw->x;

    if (!x->watch || x->opened_ms == 0) {
        return;
    }

    ms = lw->now_ms - x->opened_ms;

    kube_zone_histogram_observe(lw->conf.zone, KUBE_HISTOGRAM_WATCH_DURATION,
                                lw->conf.resource, ms * 1000);
    kube_zone_histogram_observe(lw->conf.zone, KUBE_HISTOGRAM_ITEMS_PER_WATCH,
                                lw->conf.resource, x->events);

    if (ms < KUBE_SHORT_WATCH_MS && x->events == 0) {
        kube_lw_count(lw, KUBE_COUNTER_SHORT_WATCHES, 1);
    }

    kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_INFO,
                   KUBE_EV_WATCH_CLOSED,
                   "watch of %s ended after %llu ms and %llu events",
                   lw->label, (unsigned long long) ms,
                   (unsigned long long) x->events);
}


/* Whatever was in flight is over; its memory goes. */
static void
lw_end_exchange(kube_list_watch_t *lw)
{
    lw_exchange_t  *x;

    x = &lw->x;

    if (x->handle != NULL) {
        lw->conf.io.cancel(lw->conf.io.ctx, x->handle);
    }

    kube_frame_destroy(x->frame);
    kube_free(&lw->alloc, x->status);
    kube_free(&lw->alloc, x->rest);

    memset(x, 0, sizeof(lw_exchange_t));
}


void
kube_list_watch_destroy(kube_list_watch_t *lw)
{
    kube_alloc_t  alloc;

    if (lw == NULL) {
        return;
    }

    alloc = lw->alloc;

    lw_end_exchange(lw);
    kube_arena_done(&lw->arena);

    kube_str_free(&lw->alloc, &lw->conf.ns);
    kube_str_free(&lw->alloc, &lw->conf.label_selector);
    kube_str_free(&lw->alloc, &lw->conf.field_selector);

    kube_free(&alloc, lw);
}


static bool
lw_take_turn(kube_list_watch_t *lw)
{
    if (!lw->turn) {
        lw->turn = lw->conf.list_turn(lw->conf.ctx, lw->conf.slot);
    }

    lw->waiting = !lw->turn;

    return lw->turn;
}


static void
lw_give_turn(kube_list_watch_t *lw)
{
    if (lw->turn || lw->waiting) {
        lw->turn = false;
        lw->waiting = false;
        lw->conf.list_over(lw->conf.ctx, lw->conf.slot);
    }
}


static void
lw_count_list(kube_list_watch_t *lw, const kube_action_t *action)
{
    lw->list.begun = false;
    lw->list.items = 0;
    lw->list.started_ms = lw->now_ms;

    kube_lw_count(lw, KUBE_COUNTER_LISTS, 1);

    if (!action->relist) {
        kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_INFO, KUBE_EV_LIST,
                       "list of %s", lw->label);
        return;
    }

    kube_lw_count(lw, KUBE_COUNTER_RELISTS, 1);
    kube_lw_count(lw, lw_relist_counters[action->reason], 1);

    kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_NOTICE, KUBE_EV_RELIST,
                   "list of %s again (%s), %s \"%.*s\"", lw->label,
                   kube_relist_reason_text(action->reason),
                   action->not_older_than ? "not older than" : "at",
                   (int) action->rv.len,
                   action->rv.len ? action->rv.data : "");
}


static void
lw_request(const kube_list_watch_t *lw, const kube_action_t *action,
    kube_request_t *request)
{
    memset(request, 0, sizeof(kube_request_t));

    request->resource = lw->conf.resource;
    request->ns = lw->conf.ns;
    request->label_selector = lw->conf.label_selector;
    request->field_selector = lw->conf.field_selector;
    request->rv = action->rv;

    if (action->kind == KUBE_ACTION_WATCH) {
        request->watch = true;
        request->bookmarks = true;
        request->timeout_s = action->timeout_s;
        return;
    }

    request->not_older_than = action->not_older_than;
    request->limit = action->limit;
    request->continue_token = action->continue_token;
}


static void
lw_send(kube_list_watch_t *lw, const kube_action_t *action)
{
    kube_rc_t        rc;
    lw_exchange_t   *x;
    kube_request_t   request;

    x = &lw->x;

    x->watch = (action->kind == KUBE_ACTION_WATCH);
    x->first_page = action->first_page;

    if (x->watch) {
        kube_lw_count(lw, KUBE_COUNTER_WATCHES, 1);
        kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_INFO, KUBE_EV_WATCH,
                       "watch of %s from %.*s for %u s", lw->label,
                       (int) action->rv.len, action->rv.data,
                       (unsigned) action->timeout_s);

    } else if (action->first_page) {
        lw_count_list(lw, action);
    }

    kube_reflector_sent(&lw->reflector, lw->now_ms);

    x->frame = kube_frame_create(&lw->alloc,
                                 x->watch ? KUBE_FRAME_WATCH : KUBE_FRAME_LIST,
                                 lw->conf.object_bytes_max);

    if (x->frame == NULL) {
        kube_lw_failed(lw, KUBE_NOMEM, "");
        return;
    }

    lw_request(lw, action, &request);

    rc = lw->conf.io.start(lw->conf.io.ctx, &request,
                           &kube_list_watch_handler, lw, lw->now_ms,
                           &x->handle);

    if (rc != KUBE_OK) {
        x->handle = NULL;
        kube_lw_failed(lw, rc, "");
        return;
    }

    x->open = true;
}


/* Carries out one action; false: it has to wait. */
static bool
lw_act(kube_list_watch_t *lw)
{
    kube_action_t  action;

    action = lw->action;

    lw_observe_watch(lw);
    lw_end_exchange(lw);

    if (action.kind != KUBE_ACTION_LIST) {
        lw_give_turn(lw);

    } else if (!lw_take_turn(lw)) {
        return false;
    }

    lw->action.kind = KUBE_ACTION_NONE;

    switch (action.kind) {

    case KUBE_ACTION_LIST:
    case KUBE_ACTION_WATCH:
        lw_send(lw, &action);
        break;

    case KUBE_ACTION_CREDENTIALS:
        (void) lw->conf.io.credentials(lw->conf.io.ctx, lw->now_ms);
        kube_lw_step_kind(lw, KUBE_INPUT_TIMER);
        break;

    default:
        break;
    }

    return true;
}


static void
lw_run(kube_list_watch_t *lw)
{
    unsigned  n;

    if (lw->reread) {
        lw->reread = false;
        (void) lw->conf.io.credentials(lw->conf.io.ctx, lw->now_ms);
    }

    for (n = 0; n < KUBE_ACTIONS_MAX; n++) {

        if (lw->action.kind == KUBE_ACTION_NONE || !lw_act(lw)) {
            return;
        }
    }
}


void
kube_list_watch_start(kube_list_watch_t *lw, const kube_rv_t *rv,
    uint64_t now_ms)
{
    kube_input_t  input;

    memset(&input, 0, sizeof(kube_input_t));

    input.kind = KUBE_INPUT_START;
    input.rv = *rv;

    lw->now_ms = now_ms;
    kube_lw_step(lw, &input);
}


static void
lw_gauges(kube_list_watch_t *lw)
{
    bool                backoff;
    kube_scope_state_t  state;

    static const kube_scope_state_t  states[] = {
        [KUBE_REFLECTOR_IDLE] = KUBE_STATE_IDLE,
        [KUBE_REFLECTOR_LISTING] = KUBE_STATE_LISTING,
        [KUBE_REFLECTOR_OPENING] = KUBE_STATE_WATCHING,
        [KUBE_REFLECTOR_WATCHING] = KUBE_STATE_WATCHING,
        [KUBE_REFLECTOR_BACKOFF] = KUBE_STATE_BACKOFF,
        [KUBE_REFLECTOR_STOPPED] = KUBE_STATE_STOPPED
    };

    state = states[lw->reflector.state];
    backoff = (state == KUBE_STATE_BACKOFF);

    kube_lw_set(lw, KUBE_COUNTER_GAUGE_STATE, (uint64_t) state);
    kube_lw_set(lw, KUBE_COUNTER_GAUGE_RETRY_AT_MS,
                backoff ? kube_reflector_deadline(&lw->reflector) : 0);
    kube_lw_set(lw, KUBE_COUNTER_GAUGE_WATCH_OPEN,
                lw->reflector.state == KUBE_REFLECTOR_WATCHING);
}


void
kube_list_watch_stop(kube_list_watch_t *lw, uint64_t now_ms)
{
    lw->now_ms = now_ms;

    kube_lw_step_kind(lw, KUBE_INPUT_STOP);
    lw_run(lw);
    lw_gauges(lw);
}


/* When what is in flight has been without progress for too long. */
static uint64_t
lw_object_deadline(const kube_list_watch_t *lw)
{
    const lw_exchange_t  *x;

    x = &lw->x;

    if (!x->open || x->opened_ms == 0 || x->paused) {
        return UINT64_MAX;
    }

    if (x->watch && !kube_frame_partial(x->frame)) {
        return UINT64_MAX;
    }

    return x->progress_ms + KUBE_OBJECT_MS;
}


static void
lw_timers(kube_list_watch_t *lw)
{
    if (lw->action.kind != KUBE_ACTION_NONE) {
        return;
    }

    if (lw->now_ms >= lw_object_deadline(lw)) {
        kube_lw_failed(lw, KUBE_TIMEOUT, "an object came too slowly");
        return;
    }

    if (lw->now_ms < kube_reflector_deadline(&lw->reflector)) {
        return;
    }

    switch (lw->reflector.state) {

    case KUBE_REFLECTOR_LISTING:
    case KUBE_REFLECTOR_OPENING:
        kube_lw_failed(lw, KUBE_TIMEOUT, "no answer");
        return;

    case KUBE_REFLECTOR_WATCHING:
        kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_INFO, KUBE_EV_IDLE,
                       "watch of %s was silent or is due, opened again",
                       lw->label);
        break;

    default:
        break;
    }

    kube_lw_step_kind(lw, KUBE_INPUT_TIMER);
}


static void
lw_tell_error(kube_list_watch_t *lw)
{
    if (!lw->error.pending) {
        return;
    }

    lw->error.pending = false;
    lw->conf.error(lw->conf.ctx, lw->conf.slot, kube_str(lw->error.reason),
                   kube_str(lw->error.message));
}


void
kube_list_watch_process(kube_list_watch_t *lw, uint64_t now_ms)
{
    lw->now_ms = now_ms;

    lw_run(lw);

    if (lw->x.paused
        && lw->action.kind == KUBE_ACTION_NONE
        && kube_delta_fifo_low(lw->conf.fifo))
    {
        kube_lw_unpause(lw);
    }

    lw_timers(lw);
    lw_run(lw);

    lw_tell_error(lw);
    lw_gauges(lw);
}


uint64_t
kube_list_watch_deadline(const kube_list_watch_t *lw)
{
    uint64_t  reflector_ms, object_ms;

    if (lw->waiting) {
        return UINT64_MAX;
    }

    if (lw->action.kind != KUBE_ACTION_NONE || lw->error.pending) {
        return 0;
    }

    if (lw->x.paused && kube_delta_fifo_low(lw->conf.fifo)) {
        return 0;
    }

    reflector_ms = kube_reflector_deadline(&lw->reflector);
    object_ms = lw_object_deadline(lw);

    return (reflector_ms < object_ms) ? reflector_ms : object_ms;
}


void
kube_list_watch_relist(kube_list_watch_t *lw, kube_relist_reason_t reason,
    uint64_t now_ms)
{
    kube_input_t  input;

    memset(&input, 0, sizeof(kube_input_t));

    input.kind = KUBE_INPUT_RELIST;
    input.reason = reason;

    lw->now_ms = now_ms;

    lw_run(lw);
    kube_lw_step(lw, &input);
}


const kube_rv_t *
kube_list_watch_rv(const kube_list_watch_t *lw)
{
    return &lw->reflector.rv;
}


bool
kube_list_watch_listed(const kube_list_watch_t *lw)
{
    return lw->listed;
}


bool
kube_list_watch_rollback(kube_list_watch_t *lw)
{
    bool  rollback;

    rollback = lw->rollback;
    lw->rollback = false;

    return rollback;
}

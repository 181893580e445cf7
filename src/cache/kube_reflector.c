/*
 * kube_reflector - the life of one scope: its calls, its turn to list, its
 * timers; the actions of its step machine are carried out here.
 *
 * It knows neither bytes nor connections, and decides nothing itself.  What a
 * call yields is kube_reflector_result.c's.  Called by its owner alone.
 *
 * An action waits in r->action until it is carried out, and while it waits no
 * input is fed but STOP, RELIST and, where it is a watch that a list in line
 * comes in place of, TURN.  A list beside the watch has a life of its own
 * (kube_reflector_refill.c): here it begins, and ends where another list does.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kube_reflector_impl.h"
#include "kube_zone_damping.h"
#include "kube_zone_scope.h"


/* Actions in one process(): credentials, request, failure, request, .. */
#define REFLECTOR_ACTIONS_MAX  8


/* The zone's counters of lists, by what they are for. */
#define XX(name, family, value, counts)  [counts] = KUBE_COUNTER_##name,

static const kube_counter_t  reflector_relists[] = {
    KUBE_COUNTER_RELIST_MAP(XX)
};

#undef XX

static_assert(sizeof(reflector_relists) / sizeof(kube_counter_t)
              == KUBE_RELIST_REASONS, "each reason has a counter");

/* What ends a list beside the watch; a pause and another watch do not. */
static const bool  reflector_replaces_refill[] = {
    [KUBE_ACTION_LIST] = true,
    [KUBE_ACTION_STREAM] = true,
    [KUBE_ACTION_STOP] = true
};


static void
reflector_end_second(kube_reflector_t *r)
{
    if (r->second.handle != NULL) {
        r->lw.cancel(r->lw.ctx, r->second.handle);
        r->second.handle = NULL;
    }
}


/*
 * Takes what the call yields until there is nothing more, an action follows
 * from it, or the FIFO is full.
 */
static void
reflector_poll(kube_reflector_t *r)
{
    kube_result_t  result;

    if (r->paused && kube_delta_fifo_low(r->options.fifo)) {
        r->paused = false;

        /* it was not the source that was silent */

        if (r->call.handle != NULL && r->call.opened_ms != KUBE_NEVER) {
            kube_reflector_feed(r, &(kube_input_t) {
                                       .kind = KUBE_INPUT_ALIVE
                                   });
        }
    }

    while (r->call.handle != NULL && r->action.kind == KUBE_ACTION_NONE) {

        if (kube_delta_fifo_high(r->options.fifo)) {
            r->paused = true;
        }

        if (r->paused
            || r->lw.next(r->lw.ctx, r->call.handle, &result) != KUBE_OK)
        {
            return;
        }

        /* the first to speak wins; an end is no word */

        if (result.kind != KUBE_RESULT_END) {
            reflector_end_second(r);
        }

        kube_reflector_result(r, &result);
        kube_reflector_touch(r, &result);
        kube_hand_leave(r->options.hand);
    }
}


/* Cancels the call in progress, if any; a watch that was open is observed. */
static void
reflector_end_call(kube_reflector_t *r)
{
    uint64_t           ms;
    reflector_call_t  *call;

    call = &r->call;

    if (call->handle != NULL) {
        r->lw.cancel(r->lw.ctx, call->handle);
        call->handle = NULL;
    }

    if (!call->watch || call->opened_ms == KUBE_NEVER) {
        return;
    }

    /* one that was silent, or refused, had nothing more that was not taken */

    r->starved = call->starved;

    ms = r->now_ms - call->opened_ms;

    kube_reflector_observe(r, KUBE_HISTOGRAM_WATCH_DURATION, ms * 1000);
    kube_reflector_observe(r, KUBE_HISTOGRAM_ITEMS_PER_WATCH, call->events);

    if (ms < KUBE_SHORT_WATCH_MS
        && kube_rv_cmp(&call->began, &r->machine.rv) == 0)
    {
        kube_reflector_count(r, KUBE_COUNTER_SHORT_WATCHES, 1);
    }

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_WATCH_CLOSED,
                   "watch of %s ended after %llu ms and %llu events",
                   r->label, (unsigned long long) ms,
                   (unsigned long long) call->events);

    call->opened_ms = KUBE_NEVER;
}


/* A watch, or what will be one, begins in that call. */
static void
reflector_watch_call(kube_reflector_t *r, reflector_call_t *call,
    const kube_action_t *action)
{
    memset(call, 0, sizeof(reflector_call_t));

    call->watch = (action->kind != KUBE_ACTION_STREAM);
    call->stream = !call->watch;
    call->began = r->machine.rv;
    call->sent_ms = r->now_ms;
    call->opened_ms = KUBE_NEVER;

    call->handle = r->lw.watch(r->lw.ctx, &(kube_list_options_t) {
                                   .rv = action->rv,
                                   .initial_events = call->stream,
                                   .not_older_than = action->not_older_than,
                                   .timeout_s = action->timeout_s
                               }, r->now_ms);
}


/* The second watch was granted: it is the watch, and the first is closed. */
static void
reflector_replace(kube_reflector_t *r)
{
    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_WATCH,
                   "watch of %s is silent, but a second one was answered",
                   r->label);

    reflector_end_call(r);

    r->call = r->second;
    r->call.opened_ms = r->now_ms;
    r->second.handle = NULL;

    kube_reflector_watching(r);
    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_REPLACED });
}


/*
 * Opens a second watch beside one that is silent, and looks what became of it;
 * a list that is silent is asked for again.
 */
static void
reflector_run_second(kube_reflector_t *r)
{
    kube_result_t  result;

    if ((r->machine.state != KUBE_REFLECTOR_WATCHING
         && r->machine.state != KUBE_REFLECTOR_LISTING)
        || r->action.kind != KUBE_ACTION_NONE
        || r->paused)
    {
        return;
    }

    if (r->second.handle == NULL) {

        if (r->call.handle == NULL
            || r->call.opened_ms == KUBE_NEVER
            || r->lw.suspect == NULL
            || !r->lw.suspect(r->lw.ctx, r->call.handle))
        {
            return;
        }

        kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_SUSPECT });

        if (r->action.kind == KUBE_ACTION_SECOND) {
            reflector_watch_call(r, &r->second, &r->action);
            memset(&r->action, 0, sizeof(kube_action_t));
        }

        return;
    }

    if (r->lw.next(r->lw.ctx, r->second.handle, &result) == KUBE_OK) {

        if (result.kind == KUBE_RESULT_OPENED) {
            reflector_replace(r);

        } else {
            /* refused, or cut off: the first goes on as if it had been alone */
            reflector_end_second(r);
        }

    } else if (r->now_ms - r->second.sent_ms >= KUBE_OPEN_MS) {
        reflector_end_second(r);
    }
}


/* It waits no more; a list that has yet to be sent keeps its place. */
static void
reflector_leave_line(kube_reflector_t *r)
{
    if (r->lined && r->action.kind != KUBE_ACTION_LIST) {
        r->lined = false;

        if (!r->refill.waiting) {
            kube_list_turn_give(r->options.turn, r->options.scope);
        }
    }
}


/*
 * The place is kept while the watch pauses, or one that breaks again and again
 * would be at the end of the line for ever; until it comes up, for then others
 * would wait for the pause.
 */
static bool
reflector_keeps_place(const kube_reflector_t *r)
{
    return r->lined
           && kube_reflector_pauses(&r->machine, r->now_ms)
           && r->now_ms < kube_list_turn_deadline(r->options.turn,
                                                  r->options.scope);
}


/*
 * A list that is due stands in line with its watch open, or about to be opened;
 * it is in place of that once it has its turn.
 */
static void
reflector_line(kube_reflector_t *r)
{
    if (reflector_keeps_place(r)) {
        return;
    }

    if (!kube_reflector_waits(&r->machine, r->now_ms)) {
        reflector_leave_line(r);
        return;
    }

    r->turn = kube_list_turn_take(r->options.turn, r->options.scope,
                                  r->now_ms);
    r->lined = !r->turn;

    if (r->turn) {
        kube_list_turn_anew(r->options.turn, r->options.scope, r->now_ms);
        kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_TURN });
    }
}


/* Tells the machine, while it waits for that, that the source is back. */
static void
reflector_look_for_healing(kube_reflector_t *r)
{
    uint64_t  healed;

    if (r->lw.healed == NULL
        || r->machine.state != KUBE_REFLECTOR_BACKOFF
        || r->action.kind != KUBE_ACTION_NONE)
    {
        return;
    }

    healed = r->lw.healed(r->lw.ctx);

    if (healed != r->healed) {
        r->healed = healed;
        kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_HEALED });
    }
}


static void
reflector_count_list(kube_reflector_t *r, const kube_action_t *action)
{
    kube_counter_t  counter;

    r->list.begun = false;
    r->list.items = 0;
    r->list.started_ms = r->now_ms;

    kube_reflector_count(r, KUBE_COUNTER_LISTS, 1);

    if (!action->relist) {
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_LIST,
                       "%s of %s", (action->kind == KUBE_ACTION_STREAM)
                       ? "WatchList" : "list", r->label);
        return;
    }

    counter = reflector_relists[action->reason];
    kube_reflector_count(r, KUBE_COUNTER_RELISTS, 1);
    kube_reflector_count(r, counter, 1);

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_NOTICE, KUBE_EV_RELIST,
                   "%s of %s again (%s), %s \"%.*s\"",
                   (action->kind == KUBE_ACTION_STREAM) ? "WatchList" : "list",
                   r->label, kube_reflector_reason(counter),
                   action->not_older_than ? "not older than" : "at",
                   (int) action->rv.len,
                   action->rv.len ? action->rv.data : "");
}


static void
reflector_call(kube_reflector_t *r, const kube_action_t *action)
{
    reflector_call_t  *call;

    call = &r->call;

    if (r->lw.healed != NULL) {
        r->healed = r->lw.healed(r->lw.ctx);
    }

    if (action->kind != KUBE_ACTION_WATCH && action->first_page) {
        reflector_count_list(r, action);
    }

    if (action->kind == KUBE_ACTION_WATCH && r->second.handle != NULL) {

        /* the first ended before the second was answered */

        r->call = r->second;
        r->second.handle = NULL;

    } else if (action->kind != KUBE_ACTION_LIST) {
        reflector_watch_call(r, call, action);

    } else {
        memset(call, 0, sizeof(reflector_call_t));

        call->sent_ms = r->now_ms;
        call->opened_ms = KUBE_NEVER;

        call->handle = r->lw.list(r->lw.ctx, &(kube_list_options_t) {
                                      .rv = action->rv,
                                      .not_older_than = action->not_older_than,
                                      .limit = action->limit,
                                      .continue_token = action->continue_token
                                  }, r->now_ms);
    }

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_SENT });

    if (call->handle == NULL) {
        kube_reflector_failed(r, KUBE_NOMEM, "");
    }
}


/* A list has the turn of the one beside the watch, or its place. */
static void
reflector_replace_refill(kube_reflector_t *r, kube_action_kind_t kind)
{
    if (!reflector_replaces_refill[kind]) {
        return;
    }

    if (kind == KUBE_ACTION_LIST && (r->refill.turn || r->refill.waiting)) {
        kube_list_turn_anew(r->options.turn, r->options.scope, r->now_ms);
        r->refill.turn = false;
        r->refill.waiting = false;
    }

    kube_reflector_end_refill(r);
}


/*
 * Carries out the action; false: a list has to wait for its turn, or a
 * WatchList until lists are allowed.
 */
static bool
reflector_act(kube_reflector_t *r)
{
    kube_action_t  action;

    action = r->action;

    if (action.kind == KUBE_ACTION_BESIDE) {
        memset(&r->action, 0, sizeof(kube_action_t));
        kube_reflector_refill(r, &action);
        return true;
    }

    reflector_end_call(r);

    if (action.kind != KUBE_ACTION_WATCH) {
        reflector_end_second(r);
    }

    reflector_replace_refill(r, action.kind);

    if (action.kind != KUBE_ACTION_LIST) {

        if (r->turn || r->waiting) {
            kube_list_turn_give(r->options.turn, r->options.scope);
        }

        /* else reflector_line() sees to the place */

        if (action.kind == KUBE_ACTION_STOP) {
            reflector_leave_line(r);
        }

        r->turn = false;
        r->waiting = (action.kind == KUBE_ACTION_STREAM
                      && r->now_ms < r->options.turn->held_until_ms);

        if (r->waiting) {
            return false;
        }

    } else if (action.first_page) {

        /* that of the list before it may be lost */

        r->turn = kube_list_turn_take(r->options.turn, r->options.scope,
                                      r->now_ms);
        r->waiting = !r->turn;
        r->lined = false;

        if (r->waiting) {
            return false;
        }
    }

    memset(&r->action, 0, sizeof(kube_action_t));

    switch (action.kind) {

    case KUBE_ACTION_LIST:
    case KUBE_ACTION_STREAM:
    case KUBE_ACTION_WATCH:
        reflector_call(r, &action);
        return true;

    case KUBE_ACTION_CREDENTIALS:
        r->lw.credentials(r->lw.ctx, r->now_ms);
        kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_TIMER });
        return true;

    default:
        return true;
    }
}


static void
reflector_timer(kube_reflector_t *r)
{
    bool  watching;

    if (r->paused
        || r->action.kind != KUBE_ACTION_NONE
        || r->now_ms < r->machine.deadline_ms)
    {
        return;
    }

    if (kube_reflector_cut(r, r->call.handle)) {
        reflector_poll(r);

        /* nothing was yielded: it was asked for otherwise, and has its time */

        if (r->action.kind == KUBE_ACTION_NONE) {
            kube_reflector_feed(r, &(kube_input_t) {
                                       .kind = KUBE_INPUT_SENT
                                   });
        }

        return;
    }

    watching = (r->machine.state == KUBE_REFLECTOR_WATCHING);

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_TIMER });

    if (r->action.timeout != NULL) {
        kube_reflector_show_failure(r, KUBE_TIMEOUT, r->action.timeout);

    } else if (watching && r->action.kind == KUBE_ACTION_WATCH) {
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_IDLE,
                       "watch of %s was silent or is due, opened again",
                       r->label);
    }
}


static void
reflector_gauges(kube_reflector_t *r)
{
    bool      backoff;
    uint64_t  held_ms;

    static const kube_scope_state_t  states[] = {
        [KUBE_REFLECTOR_IDLE] = KUBE_STATE_IDLE,
        [KUBE_REFLECTOR_LISTING] = KUBE_STATE_LISTING,
        [KUBE_REFLECTOR_STREAMING] = KUBE_STATE_STREAMING,
        [KUBE_REFLECTOR_OPENING] = KUBE_STATE_WATCHING,
        [KUBE_REFLECTOR_WATCHING] = KUBE_STATE_WATCHING,
        [KUBE_REFLECTOR_BACKOFF] = KUBE_STATE_BACKOFF,
        [KUBE_REFLECTOR_STOPPED] = KUBE_STATE_STOPPED
    };

    static_assert(sizeof(states) / sizeof(states[0]) == KUBE_REFLECTOR_STATES,
                  "each state is shown as one");

    held_ms = r->options.turn->held_until_ms;

    if (r->options.zone != NULL && r->waiting && r->now_ms < held_ms) {
        kube_zone_damped(r->options.zone, r->options.scope, 1, held_ms);
        return;
    }

    backoff = (r->machine.state == KUBE_REFLECTOR_BACKOFF);

    kube_reflector_gauge(r, KUBE_COUNTER_GAUGE_STATE,
                         (uint64_t) states[r->machine.state]);
    kube_reflector_gauge(r, KUBE_COUNTER_GAUGE_RETRY_AT_MS,
                         backoff ? r->machine.deadline_ms : 0);
    kube_reflector_gauge(r, KUBE_COUNTER_GAUGE_WATCH_OPEN,
                         r->machine.state == KUBE_REFLECTOR_WATCHING
                         ? r->machine.watch.opened_ms : 0);
}


/* When a request without an answer becomes trouble; KUBE_NEVER. */
static uint64_t
reflector_silence(const kube_reflector_t *r)
{
    if (r->call.handle == NULL
        || r->call.opened_ms != KUBE_NEVER
        || r->suffering.cause != KUBE_CAUSES)
    {
        return KUBE_NEVER;
    }

    return r->call.sent_ms + KUBE_UNREACHABLE_MS;
}


static void
reflector_refill(kube_reflector_t *r)
{
    kube_reflector_run_refill(r);

    if (r->refill.again) {
        r->refill.again = false;
        kube_reflector_fill(r, false, r->now_ms);
    }
}


/* Carries out actions and takes results until nothing is left to do now. */
static void
reflector_run(kube_reflector_t *r)
{
    unsigned  n;

    reflector_line(r);

    for (n = 0; n < REFLECTOR_ACTIONS_MAX; n++) {

        if (r->action.kind != KUBE_ACTION_NONE && !reflector_act(r)) {
            return;
        }

        reflector_poll(r);
        reflector_refill(r);
        reflector_run_second(r);
        reflector_look_for_healing(r);
        reflector_timer(r);
        reflector_line(r);

        if (r->action.kind == KUBE_ACTION_NONE) {
            return;
        }
    }
}


static void
reflector_wish(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    r->now_ms = now_ms;
    kube_reflector_feed(r, input);
    reflector_line(r);
}


void
kube_reflector_process(kube_reflector_t *r, uint64_t now_ms)
{
    r->now_ms = now_ms;

    reflector_run(r);

    if (now_ms >= reflector_silence(r)) {
        kube_reflector_show_error(r, kube_reflector_reason(
                                         KUBE_COUNTER_ERRORS_TIMEOUT),
                                  "a request gets no answer");
        kube_reflector_suffer(r, KUBE_CAUSE_UNREACHABLE, r->call.sent_ms);
    }

    reflector_gauges(r);
}


/* When its turn in the line with a watch may come. */
static uint64_t
reflector_line_deadline(const kube_reflector_t *r)
{
    return r->lined ? kube_list_turn_deadline(r->options.turn,
                                              r->options.scope)
                    : KUBE_NEVER;
}


static uint64_t
reflector_earlier(uint64_t a_ms, uint64_t b_ms)
{
    return (a_ms < b_ms) ? a_ms : b_ms;
}


uint64_t
kube_reflector_deadline(const kube_reflector_t *r)
{
    uint64_t  deadline_ms;

    if (r->waiting && r->action.kind == KUBE_ACTION_STREAM) {
        return r->options.turn->held_until_ms;
    }

    if (r->waiting) {
        return kube_list_turn_deadline(r->options.turn, r->options.scope);
    }

    if (r->action.kind != KUBE_ACTION_NONE) {
        return 0;
    }

    deadline_ms = reflector_line_deadline(r);

    if (r->paused) {
        return kube_delta_fifo_low(r->options.fifo) ? 0 : deadline_ms;
    }

    if (r->call.handle != NULL && r->lw.ready(r->lw.ctx, r->call.handle)) {
        return 0;
    }

    deadline_ms = reflector_earlier(deadline_ms, reflector_silence(r));
    deadline_ms = reflector_earlier(deadline_ms, r->machine.deadline_ms);
    deadline_ms = reflector_earlier(deadline_ms,
                                    kube_reflector_refill_deadline(r));

    if (r->second.handle == NULL) {
        return deadline_ms;
    }

    if (r->lw.ready(r->lw.ctx, r->second.handle)) {
        return 0;
    }

    return reflector_earlier(deadline_ms, r->second.sent_ms + KUBE_OPEN_MS);
}


void
kube_reflector_start(kube_reflector_t *r, const kube_rv_t *rv,
    const kube_rv_t *floor, uint64_t now_ms)
{
    r->now_ms = now_ms;

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_START,
                                             .rv = *rv,
                                             .floor = *floor });
}


void
kube_reflector_not_older(kube_reflector_t *r, const kube_rv_t *rv)
{
    kube_reflector_raise(&r->machine, rv);
}


const kube_rv_t *
kube_reflector_taken(const kube_reflector_t *r)
{
    return kube_reflector_floor(&r->machine);
}


void
kube_reflector_relist(kube_reflector_t *r, kube_relist_reason_t reason,
    bool urgent, uint64_t now_ms)
{
    reflector_wish(r, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                        .reason = reason,
                                        .urgent = urgent }, now_ms);
}


void
kube_reflector_fill(kube_reflector_t *r, bool urgent, uint64_t now_ms)
{
    bool  replace;

    replace = r->refill.replace;
    r->refill.replace = false;

    reflector_wish(r, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                        .reason = KUBE_RELIST_ROOM,
                                        .urgent = urgent,
                                        .beside = !replace }, now_ms);
}


void
kube_reflector_relist_needed(kube_reflector_t *r, uint64_t now_ms)
{
    reflector_wish(r, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                        .reason = KUBE_RELIST_OTHER,
                                        .urgent = true,
                                        .dropped = true }, now_ms);
}


void
kube_reflector_relist_plainly(kube_reflector_t *r, uint64_t now_ms)
{
    r->now_ms = now_ms;

    /* two pasts are mixed here: nothing more of one until it is replaced */
    kube_reflector_end_refill(r);

    reflector_wish(r, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                        .reason = KUBE_RELIST_OTHER,
                                        .urgent = true,
                                        .plain = true }, now_ms);
}


void
kube_reflector_stop(kube_reflector_t *r, uint64_t now_ms)
{
    r->now_ms = now_ms;

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_STOP });
    (void) reflector_act(r);
    reflector_gauges(r);
}


const kube_rv_t *
kube_reflector_rv(const kube_reflector_t *r)
{
    return &r->machine.rv;
}


bool
kube_reflector_rollback(kube_reflector_t *r)
{
    bool  rollback;

    rollback = r->rollback;
    r->rollback = false;

    return rollback;
}


const kube_suffering_t *
kube_reflector_suffering(const kube_reflector_t *r)
{
    return &r->suffering;
}


bool
kube_reflector_missing(kube_reflector_t *r, uint64_t beside_ms)
{
    if (r->missing_ms != KUBE_NEVER
        && beside_ms != 0
        && r->missing_ms >= beside_ms)
    {
        r->missing++;
    }

    r->missing_ms = KUBE_NEVER;

    return r->missing >= KUBE_MISSING_LISTS;
}


const char *
kube_reflector_label(const kube_reflector_t *r)
{
    return r->label;
}


bool
kube_reflector_error(kube_reflector_t *r, kube_str_t *reason,
    kube_str_t *message)
{
    if (!r->error.pending) {
        return false;
    }

    r->error.pending = false;

    *reason = kube_str(r->error.reason);
    *message = kube_str(r->error.message);

    return true;
}


kube_reflector_t *
kube_reflector_create(const kube_alloc_t *alloc,
    const kube_reflector_options_t *options, const kube_lister_watcher_t *lw)
{
    kube_str_t         ns;
    kube_reflector_t  *r;

    r = kube_zalloc(alloc, sizeof(kube_reflector_t));
    if (r == NULL) {
        lw->destroy(lw->ctx);
        return NULL;
    }

    ns = options->ns;

    r->alloc = *alloc;
    r->options = *options;
    r->options.ns = KUBE_STR_NULL;
    r->lw = *lw;
    r->call.opened_ms = KUBE_NEVER;
    r->refill.owes = KUBE_DELTA_SYNC;
    r->missing_ms = KUBE_NEVER;
    r->suffering.cause = KUBE_CAUSES;
    r->suffering.message = r->error.message;

    kube_log_init(&r->log, options->sink);
    kube_reflector_machine_init(&r->machine, &options->step);

    (void) snprintf(r->label, sizeof(r->label), "%s%s%.*s",
                    kube_resource_text(options->resource), ns.len ? " in " : "",
                    (int) ns.len, ns.len ? ns.data : "");

    return r;
}


void
kube_reflector_destroy(kube_reflector_t *r)
{
    if (r == NULL) {
        return;
    }

    if (r->call.handle != NULL) {
        r->lw.cancel(r->lw.ctx, r->call.handle);
    }

    reflector_end_second(r);

    /* without a mark: nobody reads the FIFO any more */

    r->refill.begun = false;
    kube_reflector_end_refill(r);

    r->lw.destroy(r->lw.ctx);
    kube_free(&r->alloc, r);
}

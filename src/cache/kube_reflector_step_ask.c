/*
 * kube_reflector_step_ask - what the machine asks for next: a list and its
 * pages, a WatchList, a watch, a pause; and when each is given up.
 *
 * It reads no input but a Status; the steps do, and end here.  For the files of
 * kube_reflector_step alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>

#include "kube_reflector_step_impl.h"


const kube_action_t  kube_step_nothing;

const kube_step_ask_t  kube_step_asks[KUBE_ASKS] = {
    [KUBE_ASK_FROM_CACHE] = { false, true, KUBE_ASK_UNPAGED,
                              KUBE_ASK_CONSISTENT },
    [KUBE_ASK_NOT_OLDER] = { false, true, KUBE_ASK_UNPAGED,
                             KUBE_ASK_CONSISTENT },
    [KUBE_ASK_UNPAGED] = { false, false, KUBE_ASK_CONSISTENT,
                           KUBE_ASK_CONSISTENT },
    [KUBE_ASK_CONSISTENT] = { true, true, KUBE_ASK_CONSISTENT_UNPAGED,
                              KUBE_ASK_CONSISTENT },
    [KUBE_ASK_CONSISTENT_UNPAGED] = { true, false,
                                      KUBE_ASK_CONSISTENT_UNPAGED,
                                      KUBE_ASK_CONSISTENT_UNPAGED }
};

static_assert(sizeof(kube_step_asks) / sizeof(kube_step_asks[0]) == KUBE_ASKS,
              "one row for each kind of list");


/* The first timeout, doubled for each one in a row. */
static uint64_t
reflector_timeout(uint64_t ms, unsigned timeouts)
{
    while (timeouts-- != 0 && ms < KUBE_TIMEOUT_MAX_MS) {
        ms *= 2;
    }

    return (ms < KUBE_TIMEOUT_MAX_MS) ? ms : KUBE_TIMEOUT_MAX_MS;
}


/* The earliest of the timers of an open stream that may be silent so long. */
static uint64_t
reflector_idle_deadline(const kube_reflector_watch_t *watch, uint64_t idle_ms)
{
    uint64_t  deadline_ms, object_ms;

    deadline_ms = watch->alive_ms + idle_ms;

    if (watch->deadline_ms < deadline_ms) {
        deadline_ms = watch->deadline_ms;
    }

    object_ms = (watch->partial_ms != KUBE_NEVER)
                ? watch->partial_ms + KUBE_OBJECT_MS : KUBE_NEVER;

    return (object_ms < deadline_ms) ? object_ms : deadline_ms;
}


/* Bytes alone, as bookmarks without the end, are no progress of a list. */
static uint64_t
reflector_stream_deadline(const kube_reflector_machine_t *m)
{
    uint64_t  deadline_ms, item_ms;

    deadline_ms = reflector_idle_deadline(&m->watch, KUBE_STREAM_MS);
    item_ms = m->list.item_ms + KUBE_LIST_MS;

    return (item_ms < deadline_ms) ? item_ms : deadline_ms;
}


/* One on demand that is due, or one that has yet to begin. */
static bool
reflector_wants_list(const kube_reflector_machine_t *m, uint64_t now_ms)
{
    const kube_reflector_demand_t  *demand;

    demand = &m->demand;

    return demand->queued
           || (demand->wanted && !demand->beside && now_ms >= demand->due_ms);
}


bool
kube_reflector_waits(const kube_reflector_machine_t *m, uint64_t now_ms)
{
    return (m->state == KUBE_REFLECTOR_OPENING
            || m->state == KUBE_REFLECTOR_WATCHING)
           && reflector_wants_list(m, now_ms);
}


bool
kube_reflector_pauses(const kube_reflector_machine_t *m, uint64_t now_ms)
{
    return m->state == KUBE_REFLECTOR_BACKOFF
           && reflector_wants_list(m, now_ms);
}


/*
 * The earliest of the timers that run while WATCHING.  What is due already and
 * has no turn waits for that, and for no time.
 */
uint64_t
kube_step_watch_deadline(const kube_reflector_machine_t *m)
{
    uint64_t  deadline_ms;

    deadline_ms = reflector_idle_deadline(&m->watch, m->conf.idle_timeout_ms);

    if (m->demand.wanted
        && m->demand.due_ms < deadline_ms
        && !(m->busy && reflector_wants_list(m, m->now_ms)))
    {
        deadline_ms = m->demand.due_ms;
    }

    return deadline_ms;
}


/* Starts the timer of a call anew, and goes on. */
kube_action_t
kube_step_progress(kube_reflector_machine_t *m)
{
    switch (m->state) {

    case KUBE_REFLECTOR_LISTING:
        m->deadline_ms = m->now_ms + reflector_timeout(KUBE_LIST_MS,
                                                       m->list.timeouts);
        break;

    case KUBE_REFLECTOR_STREAMING:
        m->deadline_ms = reflector_stream_deadline(m);
        break;

    case KUBE_REFLECTOR_OPENING:
        m->deadline_ms = m->now_ms + reflector_timeout(KUBE_OPEN_MS,
                                                       m->watch.timeouts);
        break;

    default:
        m->deadline_ms = kube_step_watch_deadline(m);
        break;
    }

    return kube_step_nothing;
}


const kube_rv_t *
kube_reflector_floor(const kube_reflector_machine_t *m)
{
    return (kube_rv_cmp(&m->list.rv, &m->rv) > 0) ? &m->list.rv : &m->rv;
}


void
kube_reflector_raise(kube_reflector_machine_t *m, const kube_rv_t *rv)
{
    /* what is known is what a list that ends makes ours */

    if (!m->list.known && kube_rv_cmp(rv, &m->list.rv) > 0) {
        m->list.rv = *rv;
    }
}


/* Asks for a page of the list in progress: the first while token is empty. */
kube_action_t
kube_step_page_action(kube_reflector_machine_t *m)
{
    m->list.answered = false;
    m->state = KUBE_REFLECTOR_LISTING;
    (void) kube_step_progress(m);

    return (kube_action_t) {
        .kind = KUBE_ACTION_LIST,
        .relist = (m->listed || m->rv.len != 0),
        .reason = m->reason,
        .limit = kube_step_asks[m->list.ask].paged ? m->conf.page_size : 0,
        .continue_token = { m->list.token, m->list.token_len }
    };
}


/* When a list may be asked for again, by that pace. */
static uint64_t
reflector_demand_due(kube_reflector_machine_t *m, kube_backoff_t *pace)
{
    return m->now_ms + kube_backoff_next(pace, &m->random, m->now_ms, false,
                                         0);
}


/* Draws timeoutSeconds of a stream; *deadline_ms: by when it has to end. */
uint32_t
kube_step_draw_timeout(kube_reflector_machine_t *m, uint64_t *deadline_ms)
{
    uint64_t  t, timeout_s;

    t = (m->conf.watch_timeout_ms < 1000) ? 1000 : m->conf.watch_timeout_ms;
    timeout_s = kube_random_range(&m->random, t, 2 * t - 1) / 1000;

    if (timeout_s > UINT32_MAX) {
        timeout_s = UINT32_MAX;
    }

    *deadline_ms = m->now_ms + timeout_s * 1000 + KUBE_DEADLINE_MARGIN_MS;

    return (uint32_t) timeout_s;
}


/* Sets what a stream begins with, and returns its timeoutSeconds. */
static uint32_t
reflector_stream_begin(kube_reflector_machine_t *m)
{
    m->watch.moved = 0;
    m->watch.partial_ms = KUBE_NEVER;

    return kube_step_draw_timeout(m, &m->watch.deadline_ms);
}


/* A WatchList has moved on: both of its timers start anew. */
kube_action_t
kube_step_stream_progress(kube_reflector_machine_t *m)
{
    m->list.item_ms = m->now_ms;
    m->watch.alive_ms = m->now_ms;
    m->watch.partial_ms = KUBE_NEVER;

    return kube_step_progress(m);
}


static kube_action_t
reflector_stream_action(kube_reflector_machine_t *m)
{
    uint32_t  timeout_s;

    timeout_s = reflector_stream_begin(m);

    m->list.answered = false;
    m->state = KUBE_REFLECTOR_STREAMING;
    (void) kube_step_stream_progress(m);

    return (kube_action_t) {
        .kind = KUBE_ACTION_STREAM,
        .relist = (m->listed || m->rv.len != 0),
        .reason = m->reason,
        .rv = kube_rv_str(kube_reflector_floor(m)),
        .not_older_than = true,
        .timeout_s = timeout_s
    };
}


static bool
reflector_may_stream(const kube_reflector_machine_t *m)
{
    const kube_reflector_list_t  *list;

    list = &m->list;

    if (m->conf.watch_list == KUBE_WATCH_LIST_OFF
        || list->plain
        || list->instead
        || (m->conf.watch_list == KUBE_WATCH_LIST_AUTO
            && m->conf.traits != NULL
            && m->conf.traits->no_watch_list))
    {
        return false;
    }

    return list->ask == KUBE_ASK_FROM_CACHE || list->ask == KUBE_ASK_NOT_OLDER;
}


/* A list was wanted, and one begins, or might have been. */
static void
reflector_demand_met(kube_reflector_machine_t *m)
{
    m->demand.wanted = false;
    m->demand.due_ms = reflector_demand_due(m, &m->demand.backoff);
    m->demand.urgent_ms = reflector_demand_due(m, &m->demand.urgent);
}


bool
kube_step_list_is_due(const kube_reflector_machine_t *m)
{
    return !m->busy && reflector_wants_list(m, m->now_ms);
}


bool
kube_step_beside_is_due(const kube_reflector_machine_t *m)
{
    return m->demand.wanted && m->demand.beside && !m->demand.queued
           && m->now_ms >= m->demand.due_ms;
}


kube_action_t
kube_step_list(kube_reflector_machine_t *m)
{
    kube_action_t           action;
    const kube_rv_t        *floor;
    kube_reflector_list_t  *list;

    list = &m->list;
    floor = kube_reflector_floor(m);

    /* a watch could go on without it: it does, until it is this one's turn */

    if (m->busy && list->yields) {
        m->demand.queued = true;
        return kube_step_watch(m);
    }

    /* a watch was in between, and it is that which wants a list */

    if (m->now_ms < list->not_before_ms) {
        return kube_step_sleep(m, KUBE_NEXT_LIST, false,
                               list->not_before_ms - m->now_ms);
    }

    if (list->ask == KUBE_ASK_FROM_CACHE && floor->len != 0) {
        list->ask = KUBE_ASK_NOT_OLDER;
    }

    list->pages = 0;
    list->empty_pages = 0;
    list->token_len = 0;
    list->known = false;
    list->rollback = false;

    if (reflector_may_stream(m)) {
        action = reflector_stream_action(m);

    } else {
        action = kube_step_page_action(m);

        if (list->ask == KUBE_ASK_FROM_CACHE) {
            action.rv = KUBE_STR("0");

        } else if (!kube_step_asks[list->ask].consistent) {
            action.rv = kube_rv_str(floor);
            action.not_older_than = true;
        }
    }

    action.first_page = true;

    if (action.relist) {
        list->started_ms = m->now_ms;
    }

    /* any list is as good as the one that was wanted, if it is tried again */

    if (!list->instead) {
        m->demand.queued = false;

        if (m->demand.wanted) {
            reflector_demand_met(m);
        }
    }

    return action;
}


/*
 * One that a watch could go on without: where it fails, or has no turn, it
 * gives way to it.  Its pace has counted one that has yet to begin.
 */
kube_action_t
kube_step_yielding_list(kube_reflector_machine_t *m)
{
    m->list.yields = true;

    if (!m->demand.queued) {
        reflector_demand_met(m);
    }

    return kube_step_list(m);
}


/* No list on demand before that time, nor all of a server's at once then. */
static void
reflector_put_off(kube_reflector_machine_t *m, uint64_t at_ms)
{
    kube_reflector_demand_t  *demand;

    demand = &m->demand;

    /* one that has yet to begin has that time too */

    if (demand->queued) {
        demand->queued = false;
        demand->wanted = true;
        demand->beside = false;
    }

    if (demand->due_ms < at_ms) {
        demand->due_ms = at_ms;
    }

    if (demand->urgent_ms < at_ms) {
        demand->urgent_ms = at_ms;
    }

    if (m->state == KUBE_REFLECTOR_WATCHING) {
        m->deadline_ms = kube_step_watch_deadline(m);
    }
}


/* When a list may be asked for that was refused for so long. */
static uint64_t
reflector_after(kube_reflector_machine_t *m, uint64_t floor_ms)
{
    if (floor_ms == 0) {
        return m->now_ms;
    }

    return m->now_ms + floor_ms + kube_random_range(&m->random, 0,
                                                    floor_ms / 2);
}


/*
 * The list that gives way is wanted again: as far from this one's end as it was
 * to be from its beginning, and not before the watch has had the time that the
 * list has taken.  Each may take the same, for no watch is open meanwhile; but
 * one whose events are dropped is owed nothing.
 */
static void
reflector_yield(kube_reflector_machine_t *m, uint64_t floor_ms)
{
    uint64_t                    took_ms;
    kube_reflector_demand_t    *demand;

    demand = &m->demand;
    took_ms = demand->dropped ? 0 : m->now_ms - m->list.started_ms;

    m->list.yields = false;
    m->list.timeouts = 0;

    demand->wanted = true;
    demand->beside = false;
    demand->due_ms += took_ms;
    demand->urgent_ms += took_ms;

    if (demand->hasty && demand->urgent_ms < demand->due_ms) {
        demand->due_ms = demand->urgent_ms;
    }

    reflector_put_off(m, m->now_ms + took_ms);
    reflector_put_off(m, reflector_after(m, floor_ms));
}


/*
 * Two minutes without a demand are counted from here, for the machine does not
 * hear of the end.
 */
kube_action_t
kube_step_beside(kube_reflector_machine_t *m)
{
    reflector_demand_met(m);
    m->demand.hasty = false;
    kube_backoff_healthy(&m->demand.backoff, m->now_ms);
    kube_backoff_healthy(&m->demand.urgent, m->now_ms);
    m->deadline_ms = kube_step_watch_deadline(m);

    return (kube_action_t) {
        .kind = KUBE_ACTION_BESIDE,
        .first_page = true,
        .relist = true,
        .reason = m->reason,
        .rv = kube_rv_str(&m->rv),
        .not_older_than = true,
        .limit = m->conf.page_size
    };
}


kube_action_t
kube_step_watch(kube_reflector_machine_t *m)
{
    uint32_t  timeout_s;

    timeout_s = reflector_stream_begin(m);

    m->list.instead = false;
    m->list.yields = false;
    m->state = KUBE_REFLECTOR_OPENING;
    (void) kube_step_progress(m);

    return (kube_action_t) {
        .kind = KUBE_ACTION_WATCH,
        .rv = kube_rv_str(&m->rv),
        .timeout_s = timeout_s
    };
}


/* Resumes the watch or the list that was interrupted, or begins a due list. */
kube_action_t
kube_step_resume(kube_reflector_machine_t *m)
{
    if (m->next == KUBE_NEXT_LIST) {
        return kube_step_list(m);
    }

    return kube_step_list_is_due(m) ? kube_step_yielding_list(m)
                                    : kube_step_watch(m);
}


kube_action_t
kube_step_sleep(kube_reflector_machine_t *m, kube_reflector_next_t next,
    bool unreachable, uint64_t floor_ms)
{
    m->state = KUBE_REFLECTOR_BACKOFF;
    m->unconnected = false;
    m->next = next;
    m->deadline_ms = m->now_ms + kube_backoff_next(&m->backoff, &m->random,
                                                   m->now_ms, unreachable,
                                                   floor_ms);

    return (kube_action_t) { .kind = KUBE_ACTION_SLEEP };
}


static bool
reflector_lists(const kube_reflector_machine_t *m)
{
    return m->state == KUBE_REFLECTOR_LISTING
           || m->state == KUBE_REFLECTOR_STREAMING;
}


/*
 * What follows a pause unless the failure says otherwise: the same again, but
 * for a list that gives way.  If a list in place of useless watches fails too,
 * it is an outage, which is to end without a list.
 */
kube_reflector_next_t
kube_step_same(kube_reflector_machine_t *m)
{
    if (!reflector_lists(m)) {
        return KUBE_NEXT_WATCH;
    }

    if (m->list.yields) {
        reflector_yield(m, 0);
        return KUBE_NEXT_WATCH;
    }

    if (!m->list.instead) {
        return KUBE_NEXT_LIST;
    }

    m->list.instead = false;
    m->watch.useless = 0;

    return KUBE_NEXT_WATCH;
}


/*
 * The watch that a list gives way to need not pause, for lists are apart, and
 * what is refused to a list says nothing of it.  Nor of the watches that a list
 * is in place of: they pause no longer than their own failures let them.
 */
kube_action_t
kube_step_refused(kube_reflector_machine_t *m, uint64_t floor_ms)
{
    m->list.not_before_ms = m->now_ms + floor_ms;

    if (reflector_lists(m) && m->list.yields) {
        reflector_yield(m, floor_ms);
        return kube_step_watch(m);
    }

    if (m->list.instead) {
        reflector_put_off(m, reflector_after(m, floor_ms));

        if (floor_ms > m->conf.backoff.max_ms) {
            floor_ms = m->conf.backoff.max_ms;
        }
    }

    return kube_step_sleep(m, kube_step_same(m), false, floor_ms);
}


void
kube_reflector_refused_beside(kube_reflector_machine_t *m, uint64_t floor_ms,
    uint64_t now_ms)
{
    if (floor_ms == 0) {
        return;
    }

    m->now_ms = now_ms;
    m->list.not_before_ms = now_ms + floor_ms;
    reflector_put_off(m, reflector_after(m, floor_ms));
}


kube_action_t
kube_step_pause(kube_reflector_machine_t *m)
{
    return kube_step_refused(m, 0);
}


/*
 * A watch that lived for KUBE_SHORT_WATCH_MS counts as success: two minutes of
 * it reset the backoff.
 */
bool
kube_step_watch_lived(kube_reflector_machine_t *m)
{
    if (m->state != KUBE_REFLECTOR_WATCHING
        || m->now_ms - m->watch.opened_ms < KUBE_SHORT_WATCH_MS)
    {
        return false;
    }

    m->watch.short_ones = 0;
    m->watch.useless = 0;
    kube_backoff_healthy(&m->backoff, m->watch.opened_ms);

    return true;
}


/*
 * What follows a call that was of no use.  Where watches stay so, lists at the
 * pace of the backoff follow the server instead.
 */
kube_reflector_next_t
kube_step_useless(kube_reflector_machine_t *m, bool outage)
{
    kube_reflector_watch_t  *watch;

    if (reflector_lists(m)) {
        return kube_step_same(m);
    }

    watch = &m->watch;

    if (watch->useless == 0) {
        watch->useless_ms = m->now_ms;
    }

    if (++watch->useless < KUBE_USELESS_WATCHES_MAX
        || m->now_ms < m->list.not_before_ms
        || (outage && m->now_ms - watch->useless_ms < KUBE_USELESS_MS))
    {
        return KUBE_NEXT_WATCH;
    }

    m->reason = KUBE_RELIST_OTHER;
    m->list.instead = true;

    return KUBE_NEXT_LIST;
}


/*
 * The server was away: what comes back may be another version of it.  One that
 * is away often is not asked each time for what it does not have, nor one for
 * a WatchList that went away three times when it was.
 */
static void
reflector_forget(kube_reflector_machine_t *m)
{
    kube_server_traits_t  *traits;

    if (m->list.died) {
        m->list.died = false;
        m->list.deaths++;
    }

    m->list.plain = (m->list.deaths >= KUBE_STREAM_BROKEN_MAX);
    m->list.suspect = m->list.plain;
    m->list.broken = 0;

    traits = m->conf.traits;

    if (traits != NULL && m->now_ms - traits->learned_ms >= KUBE_TRAITS_MS) {
        traits->no_watch_list = false;
    }
}


/*
 * A WatchList has ended too early.  One that was not even granted says nothing
 * of what the server can do, but a plain list may have more luck.
 */
void
kube_step_broken(kube_reflector_machine_t *m)
{
    if (++m->list.broken >= KUBE_STREAM_BROKEN_MAX) {
        m->list.broken = 0;
        m->list.plain = true;
        m->list.suspect = m->list.answered;
    }
}


/*
 * An open watch has ended by itself, or is ended for want of bytes.  True: it
 * was one of some that said nothing, and a list follows in place of the next.
 */
bool
kube_step_is_silent(kube_reflector_machine_t *m)
{
    kube_reflector_watch_t  *watch;

    watch = &m->watch;

    if (watch->heard) {
        return false;
    }

    if (watch->silent++ == 0) {
        watch->silent_ms = watch->opened_ms;
    }

    if (!m->list.bookmarks
        || watch->silent < KUBE_SILENT_WATCHES_MAX
        || m->now_ms - watch->silent_ms < KUBE_SILENT_MS
        || m->now_ms < m->list.not_before_ms
        || (m->list.silent_ms != KUBE_NEVER
            && m->now_ms - m->list.silent_ms < KUBE_SILENT_LIST_MS))
    {
        return false;
    }

    watch->silent = 0;
    m->list.silent_ms = m->now_ms;
    m->list.plain = true;
    m->reason = KUBE_RELIST_SILENT;

    return true;
}


/* The server was not asked, or the trouble is ours: no word on what it can. */
static bool
reflector_is_unasked(kube_rc_t rc)
{
    return rc == KUBE_CONNECT
           || rc == KUBE_TLS
           || rc == KUBE_IO
           || rc == KUBE_NOMEM
           || rc == KUBE_NO_CREDENTIALS;
}


/*
 * The call has ended without a Status: rc is KUBE_OK for CLOSED.  A watch is
 * resumed at once if it lived.  A short one must have made progress, that is
 * brought a newer version: events alone prove nothing.
 */
kube_action_t
kube_step_end(kube_reflector_machine_t *m, kube_rc_t rc)
{
    bool                   answered, unreachable;
    kube_action_t          action;
    kube_reflector_next_t  next;

    if (kube_step_watch_lived(m)) {
        return (rc == KUBE_OK && kube_step_is_silent(m))
               ? kube_step_yielding_list(m) : kube_step_watch(m);
    }

    if (m->state == KUBE_REFLECTOR_WATCHING
        && m->watch.moved != 0
        && m->watch.short_ones < KUBE_SHORT_WATCHES_MAX)
    {
        m->watch.short_ones++;
        return kube_step_watch(m);
    }

    answered = (m->state == KUBE_REFLECTOR_WATCHING
                || (reflector_lists(m) && m->list.answered));

    unreachable = (rc == KUBE_CONNECT
                   || rc == KUBE_TLS
                   || (!answered
                       && (rc == KUBE_TIMEOUT || rc == KUBE_CLOSED)));

    if (rc == KUBE_CONNECT) {
        reflector_forget(m);

    } else if (m->state == KUBE_REFLECTOR_STREAMING
               && (rc == KUBE_OK || rc == KUBE_CLOSED || rc == KUBE_TIMEOUT))
    {
        kube_step_broken(m);
        m->list.died = true;
    }

    if (reflector_lists(m) && m->list.yields && !reflector_is_unasked(rc)) {
        return kube_step_refused(m, 0);
    }

    next = reflector_is_unasked(rc) ? kube_step_same(m)
                                    : kube_step_useless(m, !answered);

    action = kube_step_sleep(m, next, unreachable, 0);
    m->unconnected = (unreachable && rc != KUBE_TLS);

    return action;
}


/*
 * True: credentials are to be read again, and the request repeated.  A 401
 * behind a good head, or of a later page, would do so without a pause.
 */
bool
kube_step_is_unauthorized(kube_reflector_machine_t *m)
{
    if (m->input->status->verdict != KUBE_VERDICT_UNAUTHORIZED
        || m->credentials_tried
        || (m->credentials_ms != KUBE_NEVER
            && m->now_ms - m->credentials_ms < KUBE_CREDENTIALS_PACE_MS))
    {
        return false;
    }

    m->credentials_tried = true;
    m->credentials_ms = m->now_ms;
    m->next = kube_step_same(m);
    m->unconnected = false;
    m->state = KUBE_REFLECTOR_BACKOFF;
    m->deadline_ms = m->now_ms;

    return true;
}


kube_action_t
kube_step_timed_out(kube_reflector_machine_t *m, const char *what)
{
    kube_action_t  action;

    action = kube_step_end(m, KUBE_TIMEOUT);
    action.timeout = what;

    return action;
}


/* Another request in place of one whose server is silent: now and then. */
bool
kube_step_may_ask_twice(kube_reflector_machine_t *m)
{
    if (m->watch.second_ms != KUBE_NEVER
        && m->now_ms - m->watch.second_ms < KUBE_SECOND_MS)
    {
        return false;
    }

    m->watch.second_ms = m->now_ms;

    return true;
}

/*
 * kube_reflector_step - the decisions of a reflector; the table is in the
 * header, and steps[][] at the end of this file is the same table as data.
 *
 * It does no input or output and calls nothing back.  One machine per scope,
 * owned by kube_reflector.
 *
 * Every transition but STOP and CREDENTIALS ends in reflector_list(),
 * reflector_next_page(), reflector_watch(), reflector_sleep() or in nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <string.h>

#include "kube_reflector_step.h"


typedef kube_action_t (*reflector_step_pt)(kube_reflector_machine_t *m,
    const kube_input_t *input, uint64_t now_ms);


static const kube_action_t  reflector_nothing;

/*
 * What each kind of list asks for, and what is asked for where the server
 * refuses that: its continue token has expired, or its version is not there
 * (410, too large, invalid).  A kind that leads to itself is asked for again
 * after a pause only.
 */
static const struct {
    bool             consistent;
    bool             paged;
    kube_list_ask_t  token_expired;
    kube_list_ask_t  refused;
} reflector_asks[] = {
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

static_assert(sizeof(reflector_asks) / sizeof(reflector_asks[0]) == KUBE_ASKS,
              "one row for each kind of list");


void
kube_reflector_machine_init(kube_reflector_machine_t *m,
    const kube_reflector_conf_t *conf)
{
    kube_backoff_conf_t  demand;

    memset(m, 0, sizeof(kube_reflector_machine_t));

    demand.first_ms = KUBE_DEMAND_FIRST_MS;
    demand.max_ms = KUBE_DEMAND_MAX_MS;
    demand.unreachable_ms = KUBE_DEMAND_MAX_MS;

    m->conf = *conf;
    m->reason = KUBE_RELIST_OTHER;
    m->list.started_ms = KUBE_NEVER;
    m->list.rollback_ms = KUBE_NEVER;
    m->watch.partial_ms = KUBE_NEVER;
    m->deadline_ms = KUBE_NEVER;

    kube_random_init(&m->random, conf->seed);
    kube_backoff_init(&m->backoff, &conf->backoff);
    kube_backoff_init(&m->demand.backoff, &demand);
}


/* The first timeout, doubled for each one in a row. */
static uint64_t
reflector_timeout(uint64_t ms, unsigned timeouts)
{
    while (timeouts-- != 0 && ms < KUBE_TIMEOUT_MAX_MS) {
        ms *= 2;
    }

    return (ms < KUBE_TIMEOUT_MAX_MS) ? ms : KUBE_TIMEOUT_MAX_MS;
}


/* Starts the timer of the state that the machine is in, at now_ms. */
static void
reflector_set_timer(kube_reflector_machine_t *m, uint64_t now_ms)
{
    uint64_t                  deadline_ms;
    kube_reflector_watch_t   *watch;

    watch = &m->watch;

    switch (m->state) {

    case KUBE_REFLECTOR_LISTING:
        m->deadline_ms = now_ms + reflector_timeout(KUBE_LIST_MS,
                                                    m->list.timeouts);
        return;

    case KUBE_REFLECTOR_OPENING:
        m->deadline_ms = now_ms + reflector_timeout(KUBE_OPEN_MS,
                                                    watch->timeouts);
        return;

    default:
        break;
    }

    /* WATCHING: whatever comes first */

    deadline_ms = watch->alive_ms + m->conf.idle_timeout_ms;

    if (watch->deadline_ms < deadline_ms) {
        deadline_ms = watch->deadline_ms;
    }

    if (watch->partial_ms != KUBE_NEVER
        && watch->partial_ms + KUBE_OBJECT_MS < deadline_ms)
    {
        deadline_ms = watch->partial_ms + KUBE_OBJECT_MS;
    }

    if (m->demand.wanted && m->demand.due_ms < deadline_ms) {
        deadline_ms = m->demand.due_ms;
    }

    m->deadline_ms = deadline_ms;
}


/*
 * The newest version anything was taken from.  A list that failed half-way
 * may be ahead of rv; the next one must not be behind it.
 */
static const kube_rv_t *
reflector_floor(const kube_reflector_machine_t *m)
{
    return (kube_rv_cmp(&m->list.rv, &m->rv) > 0) ? &m->list.rv : &m->rv;
}


static kube_action_t
reflector_list(kube_reflector_machine_t *m, uint64_t now_ms)
{
    kube_action_t           action;
    const kube_rv_t        *floor;
    kube_reflector_list_t  *list;

    list = &m->list;
    floor = reflector_floor(m);

    if (list->ask == KUBE_ASK_FROM_CACHE && floor->len != 0) {
        list->ask = KUBE_ASK_NOT_OLDER;
    }

    memset(&action, 0, sizeof(kube_action_t));

    action.kind = KUBE_ACTION_LIST;
    action.first_page = true;
    action.relist = (m->listed || m->rv.len != 0);
    action.reason = m->reason;
    action.limit = reflector_asks[list->ask].paged ? m->conf.page_size : 0;

    if (reflector_asks[list->ask].consistent) {
        action.rv = KUBE_STR_NULL;

    } else if (list->ask == KUBE_ASK_FROM_CACHE) {
        action.rv = KUBE_STR("0");

    } else {
        action.rv = kube_rv_str(floor);
        action.not_older_than = true;
    }

    if (action.relist) {
        list->started_ms = now_ms;
    }

    list->pages = 0;
    list->token_len = 0;
    list->known = false;
    list->answered = false;
    list->rollback = false;

    /* any list is as good as the one that was wanted */

    if (m->demand.wanted) {
        m->demand.wanted = false;
        m->demand.due_ms = now_ms + kube_backoff_next(&m->demand.backoff,
                                                      &m->random, now_ms,
                                                      false, 0);
    }

    m->state = KUBE_REFLECTOR_LISTING;
    reflector_set_timer(m, now_ms);

    return action;
}


static kube_action_t
reflector_next_page(kube_reflector_machine_t *m, uint64_t now_ms)
{
    kube_action_t  action;

    memset(&action, 0, sizeof(kube_action_t));

    action.kind = KUBE_ACTION_LIST;
    action.relist = (m->listed || m->rv.len != 0);
    action.reason = m->reason;
    action.limit = reflector_asks[m->list.ask].paged ? m->conf.page_size : 0;
    action.continue_token.data = m->list.token;
    action.continue_token.len = m->list.token_len;

    m->list.answered = false;
    reflector_set_timer(m, now_ms);

    return action;
}


static kube_action_t
reflector_watch(kube_reflector_machine_t *m, uint64_t now_ms)
{
    uint64_t       t, timeout_s;
    kube_action_t  action;

    t = (m->conf.watch_timeout_ms < 1000) ? 1000 : m->conf.watch_timeout_ms;
    timeout_s = kube_random_range(&m->random, t, 2 * t - 1) / 1000;

    memset(&action, 0, sizeof(kube_action_t));

    action.kind = KUBE_ACTION_WATCH;
    action.rv = kube_rv_str(&m->rv);
    action.timeout_s = (timeout_s < UINT32_MAX) ? (uint32_t) timeout_s
                                                : UINT32_MAX;

    m->watch.moved = 0;
    m->watch.partial_ms = KUBE_NEVER;
    m->watch.deadline_ms = now_ms + (uint64_t) action.timeout_s * 1000
                           + KUBE_DEADLINE_MARGIN_MS;

    m->state = KUBE_REFLECTOR_OPENING;
    reflector_set_timer(m, now_ms);

    return action;
}


/* Resumes what the pause or the list interrupted, or begins a due list. */
static kube_action_t
reflector_resume(kube_reflector_machine_t *m, uint64_t now_ms)
{
    if (m->next == KUBE_NEXT_LIST
        || (m->demand.wanted && now_ms >= m->demand.due_ms))
    {
        return reflector_list(m, now_ms);
    }

    return reflector_watch(m, now_ms);
}


static kube_action_t
reflector_sleep(kube_reflector_machine_t *m, kube_reflector_next_t next,
    bool unreachable, uint64_t floor_ms, uint64_t now_ms)
{
    kube_action_t  action;

    m->state = KUBE_REFLECTOR_BACKOFF;
    m->next = next;
    m->deadline_ms = now_ms + kube_backoff_next(&m->backoff, &m->random,
                                                now_ms, unreachable, floor_ms);

    memset(&action, 0, sizeof(kube_action_t));
    action.kind = KUBE_ACTION_SLEEP;

    return action;
}


/* What follows a pause unless the failure says otherwise: the same again. */
static kube_reflector_next_t
reflector_same(const kube_reflector_machine_t *m)
{
    return (m->state == KUBE_REFLECTOR_LISTING) ? KUBE_NEXT_LIST
                                                : KUBE_NEXT_WATCH;
}


static kube_action_t
reflector_pause(kube_reflector_machine_t *m, uint64_t now_ms)
{
    return reflector_sleep(m, reflector_same(m), false, 0, now_ms);
}


/*
 * A watch that lived for KUBE_SHORT_WATCH_MS counts as success: two minutes of
 * it reset the backoff.
 */
static void
reflector_note_health(kube_reflector_machine_t *m, uint64_t now_ms)
{
    if (m->state == KUBE_REFLECTOR_WATCHING
        && now_ms - m->watch.opened_ms >= KUBE_SHORT_WATCH_MS)
    {
        m->watch.short_ones = 0;
        kube_backoff_healthy(&m->backoff, m->watch.opened_ms);
    }
}


/*
 * True: the watch that ends now may be resumed at once.  A short one must have
 * made progress, that is brought a newer version: events alone prove nothing.
 */
static bool
reflector_watch_was_healthy(kube_reflector_machine_t *m, uint64_t now_ms)
{
    reflector_note_health(m, now_ms);

    if (now_ms - m->watch.opened_ms >= KUBE_SHORT_WATCH_MS) {
        return true;
    }

    if (m->watch.moved == 0
        || m->watch.short_ones == KUBE_SHORT_WATCHES_MAX)
    {
        return false;
    }

    m->watch.short_ones++;

    return true;
}


/* The call has ended without a Status: rc is KUBE_OK for CLOSED. */
static kube_action_t
reflector_end(kube_reflector_machine_t *m, kube_rc_t rc, uint64_t now_ms)
{
    bool  answered, unreachable;

    if (m->state == KUBE_REFLECTOR_WATCHING
        && reflector_watch_was_healthy(m, now_ms))
    {
        return reflector_watch(m, now_ms);
    }

    answered = (m->state == KUBE_REFLECTOR_WATCHING
                || (m->state == KUBE_REFLECTOR_LISTING && m->list.answered));

    unreachable = (rc == KUBE_CONNECT
                   || rc == KUBE_TLS
                   || (!answered
                       && (rc == KUBE_TIMEOUT || rc == KUBE_CLOSED)));

    return reflector_sleep(m, reflector_same(m), unreachable, 0, now_ms);
}


/*
 * The steps, named by input and, where an input means different things, by
 * state.
 */

static kube_action_t
reflector_ignore(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) m;
    (void) input;
    (void) now_ms;

    return reflector_nothing;
}


static kube_action_t
reflector_start(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    if (input->rv.len == 0) {
        return reflector_list(m, now_ms);
    }

    m->rv = input->rv;

    return reflector_watch(m, now_ms);
}


/* The call moves on: its timer starts again. */
static kube_action_t
reflector_progress(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) input;

    reflector_set_timer(m, now_ms);

    return reflector_nothing;
}


static kube_action_t
reflector_list_opened(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) input;

    m->list.answered = true;
    reflector_set_timer(m, now_ms);

    return reflector_nothing;
}


/* Between two items it is the owner who kept the list waiting. */
static kube_action_t
reflector_list_alive(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    if (!input->partial) {
        reflector_set_timer(m, now_ms);
    }

    return reflector_nothing;
}


static kube_action_t
reflector_watch_opened(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) input;

    m->state = KUBE_REFLECTOR_WATCHING;
    m->credentials_tried = false;
    m->watch.timeouts = 0;
    m->watch.opened_ms = now_ms;
    m->watch.alive_ms = now_ms;

    reflector_set_timer(m, now_ms);

    return reflector_nothing;
}


/* A list older than what was taken before: its items must not be. */
static kube_action_t
reflector_older_list(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    kube_reflector_list_t  *list;

    list = &m->list;

    if (!reflector_asks[list->ask].consistent) {

        /* a replica that lags though we asked for no older list */

        if (++list->stale >= KUBE_STALE_LISTS_MAX) {
            list->stale = 0;
            list->ask = KUBE_ASK_CONSISTENT;
        }

        return reflector_pause(m, now_ms);
    }

    if (list->rollback_ms == KUBE_NEVER) {
        list->rollback_ms = now_ms;
    }

    if (now_ms - list->rollback_ms < KUBE_ROLLBACK_MS) {
        return reflector_pause(m, now_ms);
    }

    list->rv = input->rv;
    list->known = true;
    list->rollback = true;
    reflector_set_timer(m, now_ms);

    return reflector_nothing;
}


static kube_action_t
reflector_meta(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    if (m->list.pages != 0) {
        reflector_set_timer(m, now_ms);
        return reflector_nothing;
    }

    if (input->rv.len == 0) {
        return reflector_pause(m, now_ms);
    }

    m->credentials_tried = false;

    if (kube_rv_cmp(&input->rv, reflector_floor(m)) < 0) {
        return reflector_older_list(m, input, now_ms);
    }

    m->list.rv = input->rv;
    m->list.known = true;
    m->list.stale = 0;
    m->list.rollback_ms = KUBE_NEVER;
    reflector_set_timer(m, now_ms);

    return reflector_nothing;
}


static kube_action_t
reflector_page(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    kube_str_t  token, last;

    token = input->continue_token;
    last.data = m->list.token;
    last.len = m->list.token_len;

    /* a list without a version, or a server that sends us in circles */

    if (!m->list.known
        || token.len == 0
        || token.len > sizeof(m->list.token)
        || kube_str_eq(token, last)
        || m->list.pages == KUBE_PAGES_MAX)
    {
        return reflector_pause(m, now_ms);
    }

    memcpy(m->list.token, token.data, token.len);
    m->list.token_len = token.len;
    m->list.pages++;

    return reflector_next_page(m, now_ms);
}


static kube_action_t
reflector_list_done(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    bool           rollback;
    kube_action_t  action;

    (void) input;

    if (!m->list.known) {
        return reflector_pause(m, now_ms);
    }

    rollback = m->list.rollback;

    m->rv = m->list.rv;
    m->listed = true;
    m->next = KUBE_NEXT_WATCH;
    m->list.ask = KUBE_ASK_NOT_OLDER;
    m->list.timeouts = 0;
    m->list.rollback = false;
    m->list.rollback_ms = KUBE_NEVER;
    m->watch.protocol_errors = 0;
    m->watch.unreadable = false;
    kube_backoff_healthy(&m->demand.backoff, now_ms);

    action = reflector_resume(m, now_ms);

    action.synced = true;
    action.rollback = rollback;

    return action;
}


/* An event or a bookmark.  Versions never go back within a watch. */
static kube_action_t
reflector_version(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    int  order;

    m->watch.alive_ms = now_ms;
    m->watch.partial_ms = KUBE_NEVER;

    order = (input->rv.len != 0) ? kube_rv_cmp(&input->rv, &m->rv) : 0;

    /* a real server never sends this: it was restored, or is none */

    if (order < 0) {
        m->reason = KUBE_RELIST_OTHER;
        return reflector_sleep(m, KUBE_NEXT_LIST, false, 0, now_ms);
    }

    if (order > 0) {
        m->rv = input->rv;
        m->watch.moved++;
        m->watch.protocol_errors = 0;
        m->watch.unreadable = false;
        kube_backoff_healthy(&m->backoff, m->watch.opened_ms);
    }

    reflector_set_timer(m, now_ms);

    return reflector_nothing;
}


static kube_action_t
reflector_watch_alive(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    m->watch.alive_ms = now_ms;

    if (!input->partial) {
        m->watch.partial_ms = KUBE_NEVER;

    } else if (m->watch.partial_ms == KUBE_NEVER) {
        m->watch.partial_ms = now_ms;
    }

    reflector_set_timer(m, now_ms);

    return reflector_nothing;
}


/*
 * The watch is resumed once: the bytes may have been damaged on their way.
 * Where they come like this again the event is passed over.
 */
static kube_action_t
reflector_unreadable(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) input;

    m->watch.alive_ms = now_ms;
    m->watch.partial_ms = KUBE_NEVER;
    reflector_note_health(m, now_ms);

    if (!m->watch.unreadable) {
        m->watch.unreadable = true;
        return reflector_pause(m, now_ms);
    }

    reflector_set_timer(m, now_ms);

    return reflector_nothing;
}


/* What may be damage the first time is not when it comes again. */
static kube_action_t
reflector_damaged(kube_reflector_machine_t *m, uint64_t floor_ms,
    uint64_t now_ms)
{
    if (++m->watch.protocol_errors < 2) {
        return reflector_sleep(m, KUBE_NEXT_WATCH, false, floor_ms, now_ms);
    }

    m->watch.protocol_errors = 0;
    m->reason = KUBE_RELIST_PROTOCOL;

    return reflector_sleep(m, KUBE_NEXT_LIST, false, floor_ms, now_ms);
}


static kube_action_t
reflector_unauthorized(kube_reflector_machine_t *m, uint64_t now_ms)
{
    kube_action_t  action;

    m->credentials_tried = true;
    m->next = reflector_same(m);
    m->state = KUBE_REFLECTOR_BACKOFF;
    m->deadline_ms = now_ms;

    memset(&action, 0, sizeof(kube_action_t));
    action.kind = KUBE_ACTION_CREDENTIALS;

    return action;
}


static bool
reflector_version_is_gone(kube_verdict_t verdict)
{
    return verdict == KUBE_VERDICT_EXPIRED
           || verdict == KUBE_VERDICT_TOO_LARGE_RV;
}


static kube_action_t
reflector_list_status(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    kube_verdict_t          verdict;
    kube_list_ask_t         ask;
    kube_reflector_list_t  *list;

    list = &m->list;
    verdict = input->status->verdict;

    if (verdict == KUBE_VERDICT_UNAUTHORIZED && !m->credentials_tried) {
        return reflector_unauthorized(m, now_ms);
    }

    if (reflector_version_is_gone(verdict)) {

        if (verdict == KUBE_VERDICT_EXPIRED && list->pages != 0) {
            ask = reflector_asks[list->ask].token_expired;

        } else {
            ask = reflector_asks[list->ask].refused;
            m->reason = (verdict == KUBE_VERDICT_EXPIRED)
                        ? KUBE_RELIST_EXPIRED : KUBE_RELIST_TOO_LARGE_RV;
        }

        if (ask != list->ask) {
            list->ask = ask;
            return reflector_list(m, now_ms);
        }
    }

    /* the version itself may be what the server does not like */

    if (verdict == KUBE_VERDICT_INVALID) {
        list->ask = KUBE_ASK_CONSISTENT;
    }

    return reflector_sleep(m, KUBE_NEXT_LIST, false,
                           input->status->retry_after_s * 1000ull, now_ms);
}


/* A refused watch, or an ERROR event of an open one. */
static kube_action_t
reflector_watch_status(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    uint64_t        floor_ms;
    kube_verdict_t  verdict;

    verdict = input->status->verdict;
    floor_ms = input->status->retry_after_s * 1000ull;

    reflector_note_health(m, now_ms);

    if (verdict == KUBE_VERDICT_UNAUTHORIZED && !m->credentials_tried) {
        return reflector_unauthorized(m, now_ms);
    }

    if (verdict == KUBE_VERDICT_INVALID) {
        return reflector_damaged(m, floor_ms, now_ms);
    }

    if (!reflector_version_is_gone(verdict)) {
        return reflector_sleep(m, KUBE_NEXT_WATCH, false, floor_ms, now_ms);
    }

    m->reason = KUBE_RELIST_EXPIRED;
    m->list.ask = KUBE_ASK_NOT_OLDER;

    if (verdict == KUBE_VERDICT_TOO_LARGE_RV) {
        m->reason = KUBE_RELIST_TOO_LARGE_RV;
        m->list.ask = KUBE_ASK_CONSISTENT;
    }

    /* 410, list, 410, list must not spin */

    if (m->list.started_ms != KUBE_NEVER
        && now_ms - m->list.started_ms < KUBE_RELIST_PACE_MS)
    {
        return reflector_sleep(m, KUBE_NEXT_LIST, false, floor_ms, now_ms);
    }

    return reflector_list(m, now_ms);
}


/* While LISTING or OPENING it is a wrong head or body: no ground for more. */
static kube_action_t
reflector_protocol(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) input;

    return reflector_pause(m, now_ms);
}


static kube_action_t
reflector_watch_protocol(kube_reflector_machine_t *m,
    const kube_input_t *input, uint64_t now_ms)
{
    (void) input;

    reflector_note_health(m, now_ms);

    return reflector_damaged(m, 0, now_ms);
}


static kube_action_t
reflector_closed(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) input;

    return reflector_end(m, KUBE_OK, now_ms);
}


static kube_action_t
reflector_failed(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    return reflector_end(m, input->rc, now_ms);
}


/* A list without progress, or a watch without a head. */
static kube_action_t
reflector_call_timer(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    kube_action_t  action;

    (void) input;

    if (now_ms < m->deadline_ms) {
        return reflector_nothing;
    }

    if (m->state == KUBE_REFLECTOR_LISTING) {
        m->list.timeouts++;

    } else {
        m->watch.timeouts++;
    }

    action = reflector_end(m, KUBE_TIMEOUT, now_ms);
    action.timeout = "no answer";

    return action;
}


static kube_action_t
reflector_watch_timer(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    kube_action_t  action;

    (void) input;

    if (now_ms < m->deadline_ms) {
        return reflector_nothing;
    }

    if (m->watch.partial_ms != KUBE_NEVER
        && now_ms - m->watch.partial_ms >= KUBE_OBJECT_MS)
    {
        action = reflector_end(m, KUBE_TIMEOUT, now_ms);
        action.timeout = "an object came too slowly";

        return action;
    }

    reflector_note_health(m, now_ms);
    m->next = KUBE_NEXT_WATCH;

    return reflector_resume(m, now_ms);
}


static kube_action_t
reflector_backoff_timer(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) input;

    if (now_ms < m->deadline_ms) {
        return reflector_nothing;
    }

    return reflector_resume(m, now_ms);
}


/* In OPENING and WATCHING the list may begin at once. */
static kube_action_t
reflector_relist(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    m->demand.wanted = true;
    m->reason = input->reason;

    if (now_ms >= m->demand.due_ms) {
        return reflector_list(m, now_ms);
    }

    if (m->state == KUBE_REFLECTOR_WATCHING) {
        reflector_set_timer(m, now_ms);
    }

    return reflector_nothing;
}


/* In LISTING and BACKOFF it has to wait: reflector_resume() thinks of it. */
static kube_action_t
reflector_relist_later(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    (void) now_ms;

    m->demand.wanted = true;
    m->reason = input->reason;

    return reflector_nothing;
}


static kube_action_t
reflector_stop(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    kube_action_t  action;

    (void) input;
    (void) now_ms;

    m->state = KUBE_REFLECTOR_STOPPED;
    m->deadline_ms = KUBE_NEVER;

    memset(&action, 0, sizeof(kube_action_t));
    action.kind = KUBE_ACTION_STOP;

    return action;
}


/*
 * NULL: cannot come in this state.  The states and the inputs are in the order
 * of their enumerations.
 */
static const reflector_step_pt
    steps[KUBE_REFLECTOR_STATES][KUBE_INPUTS] =
{
    [KUBE_REFLECTOR_IDLE] = {
        [KUBE_INPUT_START] = reflector_start,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_LISTING] = {
        [KUBE_INPUT_SENT] = reflector_progress,
        [KUBE_INPUT_OPENED] = reflector_list_opened,
        [KUBE_INPUT_META] = reflector_meta,
        [KUBE_INPUT_ITEM] = reflector_progress,
        [KUBE_INPUT_PAGE] = reflector_page,
        [KUBE_INPUT_LIST_DONE] = reflector_list_done,
        [KUBE_INPUT_ALIVE] = reflector_list_alive,
        [KUBE_INPUT_STATUS] = reflector_list_status,
        [KUBE_INPUT_PROTOCOL] = reflector_protocol,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = reflector_call_timer,
        [KUBE_INPUT_RELIST] = reflector_relist_later,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_OPENING] = {
        [KUBE_INPUT_SENT] = reflector_progress,
        [KUBE_INPUT_OPENED] = reflector_watch_opened,
        [KUBE_INPUT_STATUS] = reflector_watch_status,
        [KUBE_INPUT_PROTOCOL] = reflector_protocol,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = reflector_call_timer,
        [KUBE_INPUT_RELIST] = reflector_relist,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_WATCHING] = {
        [KUBE_INPUT_EVENT] = reflector_version,
        [KUBE_INPUT_BOOKMARK] = reflector_version,
        [KUBE_INPUT_ALIVE] = reflector_watch_alive,
        [KUBE_INPUT_UNREADABLE] = reflector_unreadable,
        [KUBE_INPUT_STATUS] = reflector_watch_status,
        [KUBE_INPUT_PROTOCOL] = reflector_watch_protocol,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = reflector_watch_timer,
        [KUBE_INPUT_RELIST] = reflector_relist,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_BACKOFF] = {
        [KUBE_INPUT_TIMER] = reflector_backoff_timer,
        [KUBE_INPUT_RELIST] = reflector_relist_later,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_STOPPED] = {
        [KUBE_INPUT_RELIST] = reflector_ignore,
        [KUBE_INPUT_STOP] = reflector_ignore
    }
};


kube_action_t
kube_reflector_input(kube_reflector_machine_t *m, const kube_input_t *input,
    uint64_t now_ms)
{
    kube_action_t      action;
    reflector_step_pt  step;

    if (m->conf.coverage != NULL) {
        m->conf.coverage[m->state][input->kind]++;
    }

    step = steps[m->state][input->kind];

    if (step != NULL) {
        return step(m, input, now_ms);
    }

    action = reflector_nothing;
    action.illegal = true;

    return action;
}

/*
 * kube_reflector - the state machine that keeps one scope equal to the API
 * server; the table is in the header, and the switches here follow it.
 *
 * It does no input or output and calls nothing back.  One struct per scope,
 * owned by kube_list_watch.
 *
 * Every transition but STOP and CREDENTIALS ends in reflector_list(),
 * reflector_next_page(), reflector_watch(), reflector_sleep() or in nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_reflector.h"


static const kube_action_t  reflector_nothing;


const char *
kube_relist_reason_text(kube_relist_reason_t reason)
{
    static const char *const  texts[] = {
        "expired", "too_large_rv", "room", "protocol", "other"
    };

    if ((unsigned) reason >= KUBE_RELIST_REASONS) {
        return "unknown";
    }

    return texts[reason];
}


void
kube_reflector_init(kube_reflector_t *r, const kube_reflector_conf_t *conf)
{
    memset(r, 0, sizeof(kube_reflector_t));

    r->conf = *conf;
    r->relist_reason = KUBE_RELIST_OTHER;
    r->deadline_ms = UINT64_MAX;

    kube_random_init(&r->random, conf->seed);
    kube_backoff_init(&r->backoff, &conf->backoff);
}


uint64_t
kube_reflector_deadline(const kube_reflector_t *r)
{
    return r->deadline_ms;
}


void
kube_reflector_sent(kube_reflector_t *r, uint64_t now_ms)
{
    if (r->state == KUBE_REFLECTOR_LISTING) {
        r->deadline_ms = now_ms + KUBE_LIST_IDLE_MS;
    }

    if (r->state == KUBE_REFLECTOR_OPENING) {
        r->deadline_ms = now_ms + KUBE_OPEN_MS;
    }
}


/*
 * The newest version anything was taken from.  A list that failed half-way
 * may be ahead of rv; the next one must not be behind it.
 */
static const kube_rv_t *
reflector_floor(const kube_reflector_t *r)
{
    return (kube_rv_cmp(&r->list.rv, &r->rv) > 0) ? &r->list.rv : &r->rv;
}


static kube_action_t
reflector_list(kube_reflector_t *r, uint64_t now_ms)
{
    kube_action_t     action;
    const kube_rv_t  *floor;

    floor = reflector_floor(r);

    memset(&action, 0, sizeof(kube_action_t));

    action.kind = KUBE_ACTION_LIST;
    action.first_page = true;
    action.relist = (r->listed || r->rv.len != 0);
    action.reason = r->relist_reason;
    action.limit = r->list.full ? 0 : r->conf.page_size;

    if (r->list.rv_unavailable) {
        action.rv = KUBE_STR_NULL;

    } else if (floor->len == 0) {
        action.rv = KUBE_STR("0");

    } else {
        action.rv = kube_rv_str(floor);
        action.not_older_than = true;
    }

    if (action.relist) {
        r->list.started_ms = (now_ms != 0) ? now_ms : 1;
    }

    r->list.pages = 0;
    r->list.token_len = 0;
    r->list.known = false;
    r->list.answered = false;
    r->list.rollback = false;

    r->relist_wanted = false;
    r->watch_next = false;

    r->state = KUBE_REFLECTOR_LISTING;
    r->deadline_ms = now_ms + KUBE_LIST_IDLE_MS;

    return action;
}


static kube_action_t
reflector_next_page(kube_reflector_t *r, uint64_t now_ms)
{
    kube_action_t  action;

    memset(&action, 0, sizeof(kube_action_t));

    action.kind = KUBE_ACTION_LIST;
    action.relist = (r->listed || r->rv.len != 0);
    action.reason = r->relist_reason;
    action.limit = r->list.full ? 0 : r->conf.page_size;
    action.continue_token.data = r->list.token;
    action.continue_token.len = r->list.token_len;

    r->list.answered = false;
    r->deadline_ms = now_ms + KUBE_LIST_IDLE_MS;

    return action;
}


static kube_action_t
reflector_watch(kube_reflector_t *r, uint64_t now_ms)
{
    uint64_t       t, timeout_s;
    kube_action_t  action;

    t = (r->conf.watch_timeout_ms < 1000) ? 1000 : r->conf.watch_timeout_ms;
    timeout_s = kube_random_range(&r->random, t, 2 * t - 1) / 1000;

    memset(&action, 0, sizeof(kube_action_t));

    action.kind = KUBE_ACTION_WATCH;
    action.rv = kube_rv_str(&r->rv);
    action.timeout_s = (timeout_s < UINT32_MAX) ? (uint32_t) timeout_s
                                                : UINT32_MAX;

    r->watch.events = 0;
    r->watch.deadline_ms = now_ms + (uint64_t) action.timeout_s * 1000
                           + KUBE_DEADLINE_MARGIN_MS;

    r->watch_next = false;
    r->state = KUBE_REFLECTOR_OPENING;
    r->deadline_ms = now_ms + KUBE_OPEN_MS;

    return action;
}


/* What was to be done when nothing hindered us. */
static kube_action_t
reflector_go(kube_reflector_t *r, uint64_t now_ms)
{
    if (r->watch_next && !r->relist_wanted) {
        return reflector_watch(r, now_ms);
    }

    return reflector_list(r, now_ms);
}


/* In a watch state the watch is resumed after the pause, else listed anew. */
static void
reflector_pause(kube_reflector_t *r)
{
    r->watch_next = (r->state == KUBE_REFLECTOR_OPENING
                     || r->state == KUBE_REFLECTOR_WATCHING);
    r->state = KUBE_REFLECTOR_BACKOFF;
}


static kube_action_t
reflector_sleep(kube_reflector_t *r, uint64_t now_ms, bool unreachable,
    uint64_t floor_ms)
{
    kube_action_t  action;

    reflector_pause(r);

    r->deadline_ms = now_ms + kube_backoff_next(&r->backoff, &r->random,
                                                now_ms, unreachable, floor_ms);

    memset(&action, 0, sizeof(kube_action_t));
    action.kind = KUBE_ACTION_SLEEP;

    return action;
}


/* A relist that a watch caused.  410, list, 410, list must not spin. */
static kube_action_t
reflector_relist(kube_reflector_t *r, kube_relist_reason_t reason,
    uint64_t floor_ms, uint64_t now_ms)
{
    r->relist_wanted = true;
    r->relist_reason = reason;

    if (r->list.started_ms != 0
        && now_ms - r->list.started_ms < KUBE_RELIST_PACE_MS)
    {
        return reflector_sleep(r, now_ms, false, floor_ms);
    }

    return reflector_list(r, now_ms);
}


static void
reflector_idle_deadline(kube_reflector_t *r, uint64_t now_ms)
{
    uint64_t  deadline_ms;

    deadline_ms = now_ms + r->conf.idle_timeout_ms;

    r->deadline_ms = (deadline_ms < r->watch.deadline_ms)
                     ? deadline_ms : r->watch.deadline_ms;
}


/* A watch that ends now, in whatever way, was health if it lived. */
static void
reflector_note_health(kube_reflector_t *r, uint64_t now_ms)
{
    if (r->state == KUBE_REFLECTOR_WATCHING
        && now_ms - r->watch.opened_ms >= KUBE_SHORT_WATCH_MS)
    {
        r->watch.short_ones = 0;
        kube_backoff_healthy(&r->backoff, r->watch.opened_ms);
    }
}


/* True: the watch that ends now may be resumed at once. */
static bool
reflector_watch_was_healthy(kube_reflector_t *r, uint64_t now_ms)
{
    reflector_note_health(r, now_ms);

    if (now_ms - r->watch.opened_ms >= KUBE_SHORT_WATCH_MS) {
        return true;
    }

    if (r->watch.events == 0) {
        return false;
    }

    if (r->watch.short_ones < KUBE_SHORT_WATCHES_MAX) {
        r->watch.short_ones++;
        return true;
    }

    return false;
}


static kube_action_t
reflector_on_start(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    if (r->state != KUBE_REFLECTOR_IDLE) {
        return reflector_nothing;
    }

    if (input->rv.len == 0) {
        return reflector_list(r, now_ms);
    }

    r->rv = input->rv;

    return reflector_watch(r, now_ms);
}


static kube_action_t
reflector_on_older_list(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    if (!r->list.rv_unavailable) {

        /* a replica that lags though we asked for no older list */

        if (++r->list.stale >= KUBE_STALE_LISTS_MAX) {
            r->list.stale = 0;
            r->list.rv_unavailable = true;
        }

        return reflector_sleep(r, now_ms, false, 0);
    }

    if (r->list.rollback_ms == 0) {
        r->list.rollback_ms = (now_ms != 0) ? now_ms : 1;
        return reflector_sleep(r, now_ms, false, 0);
    }

    if (now_ms - r->list.rollback_ms < KUBE_ROLLBACK_MS) {
        return reflector_sleep(r, now_ms, false, 0);
    }

    r->list.rv = input->rv;
    r->list.known = true;
    r->list.rollback = true;

    return reflector_nothing;
}


static kube_action_t
reflector_on_meta(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    if (r->state != KUBE_REFLECTOR_LISTING || r->list.pages != 0) {
        return reflector_nothing;
    }

    if (input->rv.len == 0) {
        return reflector_sleep(r, now_ms, false, 0);
    }

    r->credentials_tried = false;

    if (kube_rv_cmp(&input->rv, reflector_floor(r)) < 0) {
        return reflector_on_older_list(r, input, now_ms);
    }

    r->list.rv = input->rv;
    r->list.known = true;
    r->list.stale = 0;
    r->list.rollback_ms = 0;

    return reflector_nothing;
}


static kube_action_t
reflector_on_page(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    kube_str_t  token, last;

    if (r->state != KUBE_REFLECTOR_LISTING) {
        return reflector_nothing;
    }

    token = input->continue_token;
    last.data = r->list.token;
    last.len = r->list.token_len;

    /* a list without a version, or a server that sends us in circles */

    if (!r->list.known
        || token.len == 0
        || token.len > sizeof(r->list.token)
        || kube_str_eq(token, last)
        || r->list.pages == KUBE_PAGES_MAX)
    {
        return reflector_sleep(r, now_ms, false, 0);
    }

    memcpy(r->list.token, token.data, token.len);
    r->list.token_len = token.len;
    r->list.pages++;

    return reflector_next_page(r, now_ms);
}


static kube_action_t
reflector_on_list_done(kube_reflector_t *r, uint64_t now_ms)
{
    bool           rollback;
    kube_action_t  action;

    if (r->state != KUBE_REFLECTOR_LISTING) {
        return reflector_nothing;
    }

    if (!r->list.known) {
        return reflector_sleep(r, now_ms, false, 0);
    }

    rollback = r->list.rollback;

    r->rv = r->list.rv;
    r->listed = true;
    r->list.rv_unavailable = false;
    r->list.full = false;
    r->list.rollback = false;
    r->list.rollback_ms = 0;
    r->watch.protocol_errors = 0;

    r->watch_next = true;
    action = reflector_go(r, now_ms);

    action.synced = true;
    action.rollback = rollback;

    return action;
}


static kube_action_t
reflector_on_opened(kube_reflector_t *r, uint64_t now_ms)
{
    if (r->state != KUBE_REFLECTOR_OPENING) {
        return reflector_nothing;
    }

    r->state = KUBE_REFLECTOR_WATCHING;
    r->credentials_tried = false;
    r->watch.opened_ms = now_ms;
    r->watch.events = 0;

    reflector_idle_deadline(r, now_ms);

    return reflector_nothing;
}


static kube_action_t
reflector_on_bytes(kube_reflector_t *r, uint64_t now_ms)
{
    switch (r->state) {

    case KUBE_REFLECTOR_LISTING:
        r->list.answered = true;
        r->deadline_ms = now_ms + KUBE_LIST_IDLE_MS;
        break;

    case KUBE_REFLECTOR_WATCHING:
        reflector_idle_deadline(r, now_ms);
        break;

    default:
        break;
    }

    return reflector_nothing;
}


static kube_action_t
reflector_on_version(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    int  order;

    if (r->state != KUBE_REFLECTOR_WATCHING) {
        return reflector_nothing;
    }

    if (input->rv.len == 0) {
        return reflector_nothing;
    }

    order = kube_rv_cmp(&input->rv, &r->rv);

    /* a real server never sends this: it was restored, or is none */

    if (order < 0) {
        r->relist_wanted = true;
        r->relist_reason = KUBE_RELIST_OTHER;
        return reflector_sleep(r, now_ms, false, 0);
    }

    if (order > 0) {
        r->rv = input->rv;
        r->watch.events++;
        r->watch.protocol_errors = 0;
        kube_backoff_healthy(&r->backoff, r->watch.opened_ms);
    }

    return reflector_nothing;
}


static kube_action_t
reflector_on_protocol(kube_reflector_t *r, uint64_t floor_ms,
    uint64_t now_ms)
{
    if (++r->watch.protocol_errors >= 2) {
        r->watch.protocol_errors = 0;
        r->relist_wanted = true;
        r->relist_reason = KUBE_RELIST_PROTOCOL;
    }

    return reflector_sleep(r, now_ms, false, floor_ms);
}


/* 410 or "too large resource version". */
static kube_action_t
reflector_on_gone(kube_reflector_t *r, const kube_status_t *status,
    uint64_t now_ms)
{
    bool                  too_large;
    kube_relist_reason_t  reason;

    too_large = (status->verdict == KUBE_VERDICT_TOO_LARGE_RV);
    reason = too_large ? KUBE_RELIST_TOO_LARGE_RV : KUBE_RELIST_EXPIRED;

    if (r->state != KUBE_REFLECTOR_LISTING) {
        r->list.rv_unavailable = too_large;
        return reflector_relist(r, reason, status->retry_after_s * 1000ull,
                                now_ms);
    }

    if (r->list.pages != 0 && !r->list.full && !too_large) {
        r->list.full = true;
        return reflector_list(r, now_ms);
    }

    if (!r->list.rv_unavailable) {
        r->list.rv_unavailable = true;
        r->list.full = false;
        r->relist_reason = reason;
        return reflector_list(r, now_ms);
    }

    return reflector_sleep(r, now_ms, false, status->retry_after_s * 1000ull);
}


static kube_action_t
reflector_on_status(kube_reflector_t *r, const kube_status_t *status,
    uint64_t now_ms)
{
    uint64_t       floor_ms;
    kube_action_t  action;

    floor_ms = status->retry_after_s * 1000ull;

    switch (status->verdict) {

    case KUBE_VERDICT_EXPIRED:
    case KUBE_VERDICT_TOO_LARGE_RV:
        return reflector_on_gone(r, status, now_ms);

    case KUBE_VERDICT_UNAUTHORIZED:
        if (r->credentials_tried) {
            break;
        }

        r->credentials_tried = true;
        reflector_pause(r);
        r->deadline_ms = now_ms;

        memset(&action, 0, sizeof(kube_action_t));
        action.kind = KUBE_ACTION_CREDENTIALS;

        return action;

    case KUBE_VERDICT_INVALID:
        /* the version itself may be what it does not like */
        if (r->state != KUBE_REFLECTOR_LISTING) {
            return reflector_on_protocol(r, floor_ms, now_ms);
        }

        r->list.rv_unavailable = true;
        r->list.full = false;
        break;

    default:
        break;
    }

    return reflector_sleep(r, now_ms, false, floor_ms);
}


/* The exchange has ended without a Status: rc is KUBE_OK for CLOSED. */
static kube_action_t
reflector_on_end(kube_reflector_t *r, kube_rc_t rc, uint64_t now_ms)
{
    bool  answered, unreachable;

    if (r->state == KUBE_REFLECTOR_WATCHING
        && reflector_watch_was_healthy(r, now_ms))
    {
        return reflector_watch(r, now_ms);
    }

    answered = (r->state == KUBE_REFLECTOR_WATCHING
                || (r->state == KUBE_REFLECTOR_LISTING && r->list.answered));

    unreachable = (rc == KUBE_CONNECT
                   || rc == KUBE_TLS
                   || (!answered
                       && (rc == KUBE_TIMEOUT || rc == KUBE_CLOSED)));

    return reflector_sleep(r, now_ms, unreachable, 0);
}


static kube_action_t
reflector_on_timer(kube_reflector_t *r, uint64_t now_ms)
{
    if (now_ms < r->deadline_ms) {
        return reflector_nothing;
    }

    switch (r->state) {

    case KUBE_REFLECTOR_LISTING:
    case KUBE_REFLECTOR_OPENING:
        return reflector_on_end(r, KUBE_TIMEOUT, now_ms);

    case KUBE_REFLECTOR_WATCHING:
        reflector_note_health(r, now_ms);
        return reflector_watch(r, now_ms);

    case KUBE_REFLECTOR_BACKOFF:
        return reflector_go(r, now_ms);

    default:
        return reflector_nothing;
    }
}


static kube_action_t
reflector_on_relist(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    if (r->state == KUBE_REFLECTOR_IDLE) {
        return reflector_nothing;
    }

    if (r->state == KUBE_REFLECTOR_WATCHING
        || r->state == KUBE_REFLECTOR_OPENING)
    {
        r->relist_reason = input->reason;
        return reflector_list(r, now_ms);
    }

    r->relist_wanted = true;

    if (r->state == KUBE_REFLECTOR_BACKOFF) {
        r->relist_reason = input->reason;
    }

    return reflector_nothing;
}


static kube_action_t
reflector_on_stop(kube_reflector_t *r)
{
    kube_action_t  action;

    r->state = KUBE_REFLECTOR_STOPPED;
    r->deadline_ms = UINT64_MAX;

    memset(&action, 0, sizeof(kube_action_t));
    action.kind = KUBE_ACTION_STOP;

    return action;
}


static bool
reflector_in_exchange(const kube_reflector_t *r)
{
    return r->state == KUBE_REFLECTOR_LISTING
           || r->state == KUBE_REFLECTOR_OPENING
           || r->state == KUBE_REFLECTOR_WATCHING;
}


/* How an exchange can end badly; nothing once it was given up. */
static kube_action_t
reflector_on_exchange(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    if (!reflector_in_exchange(r)) {
        return reflector_nothing;
    }

    switch (input->kind) {

    case KUBE_INPUT_STATUS:
        reflector_note_health(r, now_ms);
        return reflector_on_status(r, input->status, now_ms);

    case KUBE_INPUT_PROTOCOL:
        reflector_note_health(r, now_ms);

        if (r->state == KUBE_REFLECTOR_WATCHING) {
            return reflector_on_protocol(r, 0, now_ms);
        }

        /* while OPENING it is a wrong head: no ground for a list */

        return reflector_sleep(r, now_ms, false, 0);

    case KUBE_INPUT_CLOSED:
        return reflector_on_end(r, KUBE_OK, now_ms);

    default:
        return reflector_on_end(r, input->rc, now_ms);
    }
}


kube_action_t
kube_reflector_step(kube_reflector_t *r, const kube_input_t *input,
    uint64_t now_ms)
{
    if (r->state == KUBE_REFLECTOR_STOPPED) {
        return reflector_nothing;
    }

    switch (input->kind) {

    case KUBE_INPUT_START:
        return reflector_on_start(r, input, now_ms);

    case KUBE_INPUT_META:
        return reflector_on_meta(r, input, now_ms);

    case KUBE_INPUT_PAGE:
        return reflector_on_page(r, input, now_ms);

    case KUBE_INPUT_LIST_DONE:
        return reflector_on_list_done(r, now_ms);

    case KUBE_INPUT_OPENED:
        return reflector_on_opened(r, now_ms);

    case KUBE_INPUT_BYTES:
        return reflector_on_bytes(r, now_ms);

    case KUBE_INPUT_EVENT:
    case KUBE_INPUT_BOOKMARK:
        return reflector_on_version(r, input, now_ms);

    case KUBE_INPUT_STATUS:
    case KUBE_INPUT_PROTOCOL:
    case KUBE_INPUT_CLOSED:
    case KUBE_INPUT_FAILED:
        return reflector_on_exchange(r, input, now_ms);

    case KUBE_INPUT_TIMER:
        return reflector_on_timer(r, now_ms);

    case KUBE_INPUT_RELIST:
        return reflector_on_relist(r, input, now_ms);

    case KUBE_INPUT_STOP:
        return reflector_on_stop(r);

    default:
        return reflector_nothing;
    }
}

/*
 * kube_reflector_step - the decisions of a reflector; the table is in the
 * header, and steps[][] at the end of this file is the same table as data.
 *
 * It does no input or output and calls nothing back.  One machine per scope,
 * owned by kube_reflector.
 *
 * Every transition but STOP, CREDENTIALS and SECOND ends in reflector_list(),
 * reflector_next_page(), reflector_watch(), reflector_sleep() or in nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <string.h>

#include "kube_reflector_step.h"


typedef kube_action_t (*reflector_step_pt)(kube_reflector_machine_t *m);


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


kube_reflector_conf_t
kube_reflector_conf_defaults(uint64_t seed)
{
    return (kube_reflector_conf_t) {
        .page_size = 500,
        .watch_list = KUBE_WATCH_LIST_AUTO,
        .watch_timeout_ms = 300000,
        .idle_timeout_ms = 90000,
        .backoff = {
            .first_ms = KUBE_BACKOFF_FIRST_MS,
            .max_ms = KUBE_BACKOFF_MAX_MS,
            .unreachable_ms = KUBE_BACKOFF_UNREACHABLE_MS
        },
        .seed = seed
    };
}


void
kube_reflector_machine_init(kube_reflector_machine_t *m,
    const kube_reflector_conf_t *conf)
{
    memset(m, 0, sizeof(kube_reflector_machine_t));

    m->conf = *conf;
    m->reason = KUBE_RELIST_OTHER;
    m->list.started_ms = KUBE_NEVER;
    m->list.rollback_ms = KUBE_NEVER;
    m->list.silent_ms = KUBE_NEVER;
    m->watch.partial_ms = KUBE_NEVER;
    m->watch.second_ms = KUBE_NEVER;
    m->credentials_ms = KUBE_NEVER;
    m->deadline_ms = KUBE_NEVER;

    kube_random_init(&m->random, conf->seed);
    kube_backoff_init(&m->backoff, &conf->backoff);
    kube_backoff_init(&m->demand.backoff, &(kube_backoff_conf_t) {
                          .first_ms = KUBE_DEMAND_FIRST_MS,
                          .max_ms = KUBE_DEMAND_MAX_MS,
                          .unreachable_ms = KUBE_DEMAND_MAX_MS
                      });
    kube_backoff_init(&m->demand.urgent, &(kube_backoff_conf_t) {
                          .first_ms = KUBE_URGENT_FIRST_MS,
                          .max_ms = KUBE_URGENT_MAX_MS,
                          .unreachable_ms = KUBE_URGENT_MAX_MS
                      });
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


/* The earliest of the timers that run while WATCHING. */
static uint64_t
reflector_watch_deadline(const kube_reflector_machine_t *m)
{
    uint64_t  deadline_ms;

    deadline_ms = reflector_idle_deadline(&m->watch, m->conf.idle_timeout_ms);

    if (m->demand.wanted && m->demand.due_ms < deadline_ms) {
        deadline_ms = m->demand.due_ms;
    }

    return deadline_ms;
}


/* Starts the timer of a call anew, and goes on. */
static kube_action_t
reflector_progress(kube_reflector_machine_t *m)
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
        m->deadline_ms = reflector_watch_deadline(m);
        break;
    }

    return reflector_nothing;
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


/* Asks for a page of the list in progress: the first while token is empty. */
static kube_action_t
reflector_page_action(kube_reflector_machine_t *m)
{
    m->list.answered = false;
    m->state = KUBE_REFLECTOR_LISTING;
    (void) reflector_progress(m);

    return (kube_action_t) {
        .kind = KUBE_ACTION_LIST,
        .relist = (m->listed || m->rv.len != 0),
        .reason = m->reason,
        .limit = reflector_asks[m->list.ask].paged ? m->conf.page_size : 0,
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
static uint32_t
reflector_draw_timeout(kube_reflector_machine_t *m, uint64_t *deadline_ms)
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

    return reflector_draw_timeout(m, &m->watch.deadline_ms);
}


/* A WatchList has moved on: both of its timers start anew. */
static kube_action_t
reflector_stream_progress(kube_reflector_machine_t *m)
{
    m->list.item_ms = m->now_ms;
    m->watch.alive_ms = m->now_ms;
    m->watch.partial_ms = KUBE_NEVER;

    return reflector_progress(m);
}


static kube_action_t
reflector_stream_action(kube_reflector_machine_t *m)
{
    uint32_t  timeout_s;

    timeout_s = reflector_stream_begin(m);

    m->list.answered = false;
    m->state = KUBE_REFLECTOR_STREAMING;
    (void) reflector_stream_progress(m);

    return (kube_action_t) {
        .kind = KUBE_ACTION_STREAM,
        .relist = (m->listed || m->rv.len != 0),
        .reason = m->reason,
        .rv = kube_rv_str(reflector_floor(m)),
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


static kube_action_t
reflector_list(kube_reflector_machine_t *m)
{
    kube_action_t           action;
    const kube_rv_t        *floor;
    kube_reflector_list_t  *list;

    list = &m->list;
    floor = reflector_floor(m);

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
        action = reflector_page_action(m);

        if (list->ask == KUBE_ASK_FROM_CACHE) {
            action.rv = KUBE_STR("0");

        } else if (!reflector_asks[list->ask].consistent) {
            action.rv = kube_rv_str(floor);
            action.not_older_than = true;
        }
    }

    action.first_page = true;

    if (action.relist) {
        list->started_ms = m->now_ms;
    }

    /* any list is as good as the one that was wanted */

    if (m->demand.wanted) {
        m->demand.wanted = false;
        m->demand.due_ms = reflector_demand_due(m, &m->demand.backoff);
        m->demand.urgent_ms = reflector_demand_due(m, &m->demand.urgent);
    }

    return action;
}


static kube_action_t
reflector_watch(kube_reflector_machine_t *m)
{
    uint32_t  timeout_s;

    timeout_s = reflector_stream_begin(m);

    m->list.instead = false;
    m->state = KUBE_REFLECTOR_OPENING;
    (void) reflector_progress(m);

    return (kube_action_t) {
        .kind = KUBE_ACTION_WATCH,
        .rv = kube_rv_str(&m->rv),
        .timeout_s = timeout_s
    };
}


/* Resumes the watch or the list that was interrupted, or begins a due list. */
static kube_action_t
reflector_resume(kube_reflector_machine_t *m)
{
    if (m->next == KUBE_NEXT_LIST
        || (m->demand.wanted && m->now_ms >= m->demand.due_ms))
    {
        return reflector_list(m);
    }

    return reflector_watch(m);
}


static kube_action_t
reflector_sleep(kube_reflector_machine_t *m, kube_reflector_next_t next,
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
 * What follows a pause unless the failure says otherwise: the same again.  If
 * a list in place of useless watches fails too, it is an outage, which is to
 * end without a list.
 */
static kube_reflector_next_t
reflector_same(kube_reflector_machine_t *m)
{
    if (!reflector_lists(m)) {
        return KUBE_NEXT_WATCH;
    }

    if (!m->list.instead) {
        return KUBE_NEXT_LIST;
    }

    m->list.instead = false;
    m->watch.useless = 0;

    return KUBE_NEXT_WATCH;
}


static kube_action_t
reflector_pause(kube_reflector_machine_t *m)
{
    return reflector_sleep(m, reflector_same(m), false, 0);
}


/*
 * A watch that lived for KUBE_SHORT_WATCH_MS counts as success: two minutes of
 * it reset the backoff.
 */
static bool
reflector_watch_lived(kube_reflector_machine_t *m)
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
static kube_reflector_next_t
reflector_useless(kube_reflector_machine_t *m, bool outage)
{
    kube_reflector_watch_t  *watch;

    if (reflector_lists(m)) {
        return reflector_same(m);
    }

    watch = &m->watch;

    if (watch->useless == 0) {
        watch->useless_ms = m->now_ms;
    }

    if (++watch->useless < KUBE_USELESS_WATCHES_MAX
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
static void
reflector_broken(kube_reflector_machine_t *m)
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
static bool
reflector_is_silent(kube_reflector_machine_t *m)
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


/*
 * The call has ended without a Status: rc is KUBE_OK for CLOSED.  A watch is
 * resumed at once if it lived.  A short one must have made progress, that is
 * brought a newer version: events alone prove nothing.
 */
static kube_action_t
reflector_end(kube_reflector_machine_t *m, kube_rc_t rc)
{
    bool                   answered, unreachable;
    kube_action_t          action;
    kube_reflector_next_t  next;

    if (reflector_watch_lived(m)) {
        return (rc == KUBE_OK && reflector_is_silent(m)) ? reflector_list(m)
                                                         : reflector_watch(m);
    }

    if (m->state == KUBE_REFLECTOR_WATCHING
        && m->watch.moved != 0
        && m->watch.short_ones < KUBE_SHORT_WATCHES_MAX)
    {
        m->watch.short_ones++;
        return reflector_watch(m);
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
        reflector_broken(m);
        m->list.died = true;
    }

    next = (rc == KUBE_CONNECT || rc == KUBE_TLS)
           ? reflector_same(m) : reflector_useless(m, !answered);

    action = reflector_sleep(m, next, unreachable, 0);
    m->unconnected = (unreachable && rc != KUBE_TLS);

    return action;
}


/*
 * The steps, named by their input and, where that means different things, by
 * the state.
 */

static kube_action_t
reflector_ignore(kube_reflector_machine_t *m)
{
    (void) m;

    return reflector_nothing;
}


static kube_action_t
reflector_start(kube_reflector_machine_t *m)
{
    m->rv = m->input->rv;

    return (m->rv.len == 0) ? reflector_list(m) : reflector_watch(m);
}


static kube_action_t
reflector_list_opened(kube_reflector_machine_t *m)
{
    m->list.answered = true;

    if (m->list.suspect && m->conf.traits != NULL) {
        m->conf.traits->no_watch_list = true;
        m->conf.traits->learned_ms = m->now_ms;
    }

    m->list.suspect = false;

    return reflector_progress(m);
}


static kube_action_t
reflector_watch_opened(kube_reflector_machine_t *m)
{
    m->state = KUBE_REFLECTOR_WATCHING;
    m->credentials_tried = false;
    m->watch.timeouts = 0;
    m->watch.heard = false;
    m->watch.opened_ms = m->now_ms;
    m->watch.alive_ms = m->now_ms;

    return reflector_progress(m);
}


/* Discards a list older than what was taken, unless it is a rollback. */
static kube_action_t
reflector_older_list(kube_reflector_machine_t *m)
{
    kube_reflector_list_t  *list;

    list = &m->list;

    if (!reflector_asks[list->ask].consistent) {

        /* a replica that lags though we asked for no older list */

        if (++list->stale >= KUBE_STALE_LISTS_MAX) {
            list->stale = 0;
            list->ask = KUBE_ASK_CONSISTENT;
        }

        return reflector_pause(m);
    }

    if (list->rollback_ms == KUBE_NEVER) {
        list->rollback_ms = m->now_ms;
    }

    if (m->now_ms - list->rollback_ms < KUBE_ROLLBACK_MS) {
        return reflector_pause(m);
    }

    list->rv = m->input->rv;
    list->known = true;
    list->rollback = true;

    return reflector_progress(m);
}


static kube_action_t
reflector_meta(kube_reflector_machine_t *m)
{
    /* the version of a list is that of its first page */

    if (m->list.pages != 0) {
        return reflector_progress(m);
    }

    if (m->input->rv.len == 0) {
        return reflector_pause(m);
    }

    m->credentials_tried = false;

    if (kube_rv_cmp(&m->input->rv, reflector_floor(m)) < 0) {
        return reflector_older_list(m);
    }

    m->list.rv = m->input->rv;
    m->list.known = true;
    m->list.stale = 0;
    m->list.rollback_ms = KUBE_NEVER;

    /* its items come now: what has begun is brought to its end */

    if (m->list.instead) {
        m->list.instead = false;
        m->list.plain = true;
    }

    return reflector_progress(m);
}


static kube_action_t
reflector_item(kube_reflector_machine_t *m)
{
    m->list.empty_pages = 0;

    return reflector_progress(m);
}


static kube_action_t
reflector_page(kube_reflector_machine_t *m)
{
    kube_str_t              token, last;
    kube_reflector_list_t  *list;

    list = &m->list;
    token = m->input->continue_token;
    last = (kube_str_t) { list->token, list->token_len };

    /* a list without a version, or a server that sends us in circles */

    if (!list->known
        || token.len == 0
        || token.len > sizeof(list->token)
        || kube_str_eq(token, last)
        || ++list->empty_pages > KUBE_EMPTY_PAGES_MAX
        || list->pages == KUBE_PAGES_MAX)
    {
        return reflector_pause(m);
    }

    memcpy(list->token, token.data, token.len);
    list->token_len = token.len;
    list->pages++;

    return reflector_page_action(m);
}


/* All of the list was taken: its version is ours. */
static void
reflector_complete(kube_reflector_machine_t *m)
{
    m->rv = m->list.rv;
    m->listed = true;
    m->next = KUBE_NEXT_WATCH;
    m->list.ask = KUBE_ASK_NOT_OLDER;
    m->list.timeouts = 0;
    m->list.rollback_ms = KUBE_NEVER;
    m->list.plain = false;
    m->list.broken = 0;
    m->list.died = false;
    m->list.deaths = 0;
    m->watch.protocol_errors = 0;
    m->watch.unreadable = false;
    kube_backoff_healthy(&m->demand.backoff, m->now_ms);
    kube_backoff_healthy(&m->demand.urgent, m->now_ms);
}


static kube_action_t
reflector_list_done(kube_reflector_machine_t *m)
{
    bool           rollback;
    kube_action_t  action;

    if (!m->list.known) {
        return reflector_pause(m);
    }

    rollback = m->list.rollback;
    reflector_complete(m);

    action = reflector_resume(m);

    action.synced = true;
    action.rollback = rollback;

    return action;
}


/* Between two items it is the owner who kept the list waiting. */
static kube_action_t
reflector_list_alive(kube_reflector_machine_t *m)
{
    return m->input->partial ? reflector_nothing : reflector_progress(m);
}


static kube_action_t
reflector_stream_opened(kube_reflector_machine_t *m)
{
    m->list.answered = true;
    m->list.headless = false;
    m->credentials_tried = false;

    return reflector_stream_progress(m);
}


/* What was taken of a list that fails is the floor of the next. */
static kube_action_t
reflector_stream_event(kube_reflector_machine_t *m)
{
    if (kube_rv_cmp(&m->input->rv, &m->list.rv) > 0) {
        m->list.rv = m->input->rv;
    }

    return reflector_nothing;
}


static kube_action_t
reflector_stream_item(kube_reflector_machine_t *m)
{
    (void) reflector_stream_event(m);

    return reflector_stream_progress(m);
}


/* The version, of which a server says that it is not older than ours. */
static kube_action_t
reflector_stream_meta(kube_reflector_machine_t *m)
{
    if (m->input->rv.len == 0
        || kube_rv_cmp(&m->input->rv, reflector_floor(m)) < 0)
    {
        m->list.plain = true;
        m->list.suspect = true;

        return reflector_pause(m);
    }

    m->list.rv = m->input->rv;
    m->list.known = true;
    m->list.stale = 0;

    return reflector_stream_progress(m);
}


static kube_action_t
reflector_stream_done(kube_reflector_machine_t *m)
{
    kube_action_t  action;

    if (!m->list.known) {
        return reflector_pause(m);
    }

    reflector_complete(m);
    action = reflector_watch_opened(m);
    action.synced = true;
    m->watch.heard = true;
    m->watch.silent = 0;
    m->list.bookmarks = true;

    return action;
}


/* A plain list meets the same object, but knows its place. */
static kube_action_t
reflector_stream_unreadable(kube_reflector_machine_t *m)
{
    m->list.plain = true;

    return reflector_pause(m);
}


static kube_action_t
reflector_stream_protocol(kube_reflector_machine_t *m)
{
    reflector_broken(m);

    return reflector_pause(m);
}


/* An event or a bookmark.  Versions never go back within a watch. */
static kube_action_t
reflector_version(kube_reflector_machine_t *m)
{
    int               order;
    const kube_rv_t  *rv;

    rv = &m->input->rv;
    order = (rv->len != 0) ? kube_rv_cmp(rv, &m->rv) : 0;

    /* a real server never sends this: it was restored, or is none */

    if (order < 0) {
        m->reason = KUBE_RELIST_OTHER;
        return reflector_sleep(m, KUBE_NEXT_LIST, false, 0);
    }

    if (order > 0) {
        m->rv = *rv;
        m->watch.moved++;
        m->watch.protocol_errors = 0;
        m->watch.useless = 0;
        m->watch.unreadable = false;
        m->list.rollback_ms = KUBE_NEVER;
        kube_backoff_healthy(&m->backoff, m->watch.opened_ms);
    }

    m->watch.alive_ms = m->now_ms;
    m->watch.partial_ms = KUBE_NEVER;

    return reflector_progress(m);
}


static kube_action_t
reflector_watch_alive(kube_reflector_machine_t *m)
{
    m->watch.alive_ms = m->now_ms;

    if (!m->input->partial) {
        m->watch.partial_ms = KUBE_NEVER;

    } else if (m->watch.partial_ms == KUBE_NEVER) {
        m->watch.partial_ms = m->now_ms;
    }

    return reflector_progress(m);
}


/*
 * The watch is resumed once: the bytes may have been damaged on their way.
 * Where they come like this again the event is passed over.
 */
static kube_action_t
reflector_unreadable(kube_reflector_machine_t *m)
{
    (void) reflector_watch_lived(m);

    if (!m->watch.unreadable) {
        m->watch.unreadable = true;
        return reflector_pause(m);
    }

    m->watch.alive_ms = m->now_ms;
    m->watch.partial_ms = KUBE_NEVER;

    return reflector_progress(m);
}


/* Malformed bytes may be damage once; the second time a list gets past them. */
static kube_action_t
reflector_damaged(kube_reflector_machine_t *m, uint64_t floor_ms)
{
    if (++m->watch.protocol_errors < 2) {
        return reflector_sleep(m, KUBE_NEXT_WATCH, false, floor_ms);
    }

    m->watch.protocol_errors = 0;
    m->reason = KUBE_RELIST_PROTOCOL;

    return reflector_sleep(m, KUBE_NEXT_LIST, false, floor_ms);
}


/*
 * True: credentials are to be read again, and the request repeated.  A 401
 * behind a good head, or of a later page, would do so without a pause.
 */
static bool
reflector_is_unauthorized(kube_reflector_machine_t *m)
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
    m->next = reflector_same(m);
    m->unconnected = false;
    m->state = KUBE_REFLECTOR_BACKOFF;
    m->deadline_ms = m->now_ms;

    return true;
}


static kube_action_t
reflector_list_status(kube_reflector_machine_t *m)
{
    kube_list_ask_t         ask;
    kube_reflector_list_t  *list;

    list = &m->list;
    ask = list->ask;

    if (reflector_is_unauthorized(m)) {
        return (kube_action_t) { .kind = KUBE_ACTION_CREDENTIALS };
    }

    switch (m->input->status->verdict) {

    case KUBE_VERDICT_EXPIRED:
        if (list->pages != 0) {
            ask = reflector_asks[ask].token_expired;
            break;
        }

        ask = reflector_asks[ask].refused;
        m->reason = KUBE_RELIST_EXPIRED;
        break;

    case KUBE_VERDICT_TOO_LARGE_RV:
        ask = reflector_asks[ask].refused;
        m->reason = KUBE_RELIST_TOO_LARGE_RV;
        break;

    case KUBE_VERDICT_INVALID:
        /* the version itself may be what the server does not like */
        list->ask = KUBE_ASK_CONSISTENT;
        ask = list->ask;
        break;

    default:
        break;
    }

    if (ask != list->ask) {
        list->ask = ask;
        return reflector_list(m);
    }

    return reflector_sleep(m, reflector_same(m), false,
                           m->input->status->retry_after_s * 1000ull);
}


static kube_action_t
reflector_stream_status(kube_reflector_machine_t *m)
{
    if (reflector_is_unauthorized(m)) {
        return (kube_action_t) { .kind = KUBE_ACTION_CREDENTIALS };
    }

    switch (m->input->status->verdict) {

    case KUBE_VERDICT_EXPIRED:
        m->reason = KUBE_RELIST_EXPIRED;
        m->list.ask = reflector_asks[m->list.ask].refused;
        return reflector_list(m);

    case KUBE_VERDICT_TOO_LARGE_RV:
        m->reason = KUBE_RELIST_TOO_LARGE_RV;
        m->list.ask = reflector_asks[m->list.ask].refused;
        return reflector_list(m);

    case KUBE_VERDICT_INVALID:
    case KUBE_VERDICT_NOT_FOUND:
        m->list.plain = true;
        m->list.suspect = true;
        return reflector_list(m);

    case KUBE_VERDICT_FORBIDDEN:
        /* the permission may come: nothing is learnt of the server */
        m->list.plain = true;
        return reflector_list(m);

    default:
        reflector_broken(m);
        return reflector_sleep(m, KUBE_NEXT_LIST, false,
                               m->input->status->retry_after_s * 1000ull);
    }
}


/* A refused watch, or an ERROR event of an open one. */
static kube_action_t
reflector_watch_status(kube_reflector_machine_t *m)
{
    uint64_t               floor_ms;
    kube_reflector_next_t  next;

    floor_ms = m->input->status->retry_after_s * 1000ull;

    (void) reflector_watch_lived(m);

    if (reflector_is_unauthorized(m)) {
        return (kube_action_t) { .kind = KUBE_ACTION_CREDENTIALS };
    }

    switch (m->input->status->verdict) {

    case KUBE_VERDICT_EXPIRED:
        m->reason = KUBE_RELIST_EXPIRED;
        m->list.ask = KUBE_ASK_NOT_OLDER;
        break;

    case KUBE_VERDICT_TOO_LARGE_RV:
        m->reason = KUBE_RELIST_TOO_LARGE_RV;
        m->list.ask = KUBE_ASK_CONSISTENT;
        break;

    case KUBE_VERDICT_INVALID:
        return reflector_damaged(m, floor_ms);

    case KUBE_VERDICT_UNAUTHORIZED:
        return reflector_sleep(m, KUBE_NEXT_WATCH, false, floor_ms);

    default:
        next = reflector_useless(m, m->state == KUBE_REFLECTOR_OPENING);
        return reflector_sleep(m, next, false, floor_ms);
    }

    m->list.instead = false;

    /* 410, list, 410, list must not spin */

    if (m->list.started_ms != KUBE_NEVER
        && m->now_ms - m->list.started_ms < KUBE_RELIST_PACE_MS)
    {
        return reflector_sleep(m, KUBE_NEXT_LIST, false, floor_ms);
    }

    return reflector_list(m);
}


/* An answer that is none of this API's, as from a proxy. */
static kube_action_t
reflector_open_protocol(kube_reflector_machine_t *m)
{
    return reflector_sleep(m, reflector_useless(m, false), false, 0);
}


static kube_action_t
reflector_watch_protocol(kube_reflector_machine_t *m)
{
    (void) reflector_watch_lived(m);

    return reflector_damaged(m, 0);
}


static kube_action_t
reflector_closed(kube_reflector_machine_t *m)
{
    return reflector_end(m, KUBE_OK);
}


static kube_action_t
reflector_failed(kube_reflector_machine_t *m)
{
    return reflector_end(m, m->input->rc);
}


static kube_action_t
reflector_timed_out(kube_reflector_machine_t *m, const char *what)
{
    kube_action_t  action;

    action = reflector_end(m, KUBE_TIMEOUT);
    action.timeout = what;

    return action;
}


/* A list without progress, or a watch without a head. */
static kube_action_t
reflector_call_timer(kube_reflector_machine_t *m)
{
    if (m->now_ms < m->deadline_ms) {
        return reflector_nothing;
    }

    if (m->state == KUBE_REFLECTOR_LISTING) {
        m->list.timeouts++;

    } else {
        m->watch.timeouts++;
    }

    return reflector_timed_out(m, "no answer");
}


/*
 * It gets no end: nothing came, or nothing that belongs to a list.  Where not
 * even a head came it may be an outage that has just ended; a second such in a
 * row, with a plain list granted between, is a proxy that keeps what is open.
 */
static kube_action_t
reflector_stream_timer(kube_reflector_machine_t *m)
{
    kube_action_t  action;

    if (m->now_ms < m->deadline_ms) {
        return reflector_nothing;
    }

    m->list.plain = true;
    m->list.suspect = (m->list.answered || m->list.headless);
    m->list.headless = !m->list.answered;

    action = reflector_list(m);
    action.timeout = "no end of the initial events";

    return action;
}


static kube_action_t
reflector_watch_timer(kube_reflector_machine_t *m)
{
    if (m->now_ms < m->deadline_ms) {
        return reflector_nothing;
    }

    if (m->watch.partial_ms != KUBE_NEVER
        && m->now_ms - m->watch.partial_ms >= KUBE_OBJECT_MS)
    {
        return reflector_timed_out(m, "an object came too slowly");
    }

    (void) reflector_watch_lived(m);
    m->next = KUBE_NEXT_WATCH;

    /* a list that is due on demand is no word on the watch */

    if (!(m->demand.wanted && m->now_ms >= m->demand.due_ms)
        && reflector_is_silent(m))
    {
        m->next = KUBE_NEXT_LIST;
    }

    return reflector_resume(m);
}


/*
 * A second watch at the same version.  The first may still speak first, so that
 * nothing of it changes.
 */
static kube_action_t
reflector_suspect(kube_reflector_machine_t *m)
{
    uint32_t  timeout_s;

    if (m->watch.second_ms != KUBE_NEVER
        && m->now_ms - m->watch.second_ms < KUBE_SECOND_MS)
    {
        return reflector_nothing;
    }

    m->watch.second_ms = m->now_ms;
    timeout_s = reflector_draw_timeout(m, &m->watch.second_deadline_ms);

    return (kube_action_t) {
        .kind = KUBE_ACTION_SECOND,
        .rv = kube_rv_str(&m->rv),
        .timeout_s = timeout_s
    };
}


static kube_action_t
reflector_replaced(kube_reflector_machine_t *m)
{
    (void) reflector_watch_lived(m);

    m->watch.moved = 0;
    m->watch.partial_ms = KUBE_NEVER;
    m->watch.deadline_ms = m->watch.second_deadline_ms;

    return reflector_watch_opened(m);
}


/* If what follows fails too, in whatever way, its pause is the ordinary one. */
static kube_action_t
reflector_healed(kube_reflector_machine_t *m)
{
    if (!m->unconnected) {
        return reflector_nothing;
    }

    m->unconnected = false;

    return reflector_resume(m);
}


static kube_action_t
reflector_backoff_timer(kube_reflector_machine_t *m)
{
    return (m->now_ms < m->deadline_ms) ? reflector_nothing
                                        : reflector_resume(m);
}


/* In a list and in BACKOFF it has to wait: reflector_resume() sees to it. */
static kube_action_t
reflector_relist_later(kube_reflector_machine_t *m)
{
    m->demand.wanted = true;
    m->reason = m->input->reason;
    m->list.plain |= m->input->plain;

    if (m->input->urgent && m->demand.urgent_ms < m->demand.due_ms) {
        m->demand.due_ms = m->demand.urgent_ms;
    }

    return reflector_nothing;
}


/* In OPENING and WATCHING the list may begin at once. */
static kube_action_t
reflector_relist(kube_reflector_machine_t *m)
{
    (void) reflector_relist_later(m);

    if (m->now_ms >= m->demand.due_ms) {
        return reflector_list(m);
    }

    if (m->state == KUBE_REFLECTOR_WATCHING) {
        m->deadline_ms = reflector_watch_deadline(m);
    }

    return reflector_nothing;
}


static kube_action_t
reflector_stop(kube_reflector_machine_t *m)
{
    m->state = KUBE_REFLECTOR_STOPPED;
    m->deadline_ms = KUBE_NEVER;

    return (kube_action_t) { .kind = KUBE_ACTION_STOP };
}


/* The inputs that bytes after the head of a watch have caused. */
static const bool  reflector_says[KUBE_INPUTS] = {
    [KUBE_INPUT_EVENT] = true,
    [KUBE_INPUT_BOOKMARK] = true,
    [KUBE_INPUT_ALIVE] = true,
    [KUBE_INPUT_UNREADABLE] = true,
    [KUBE_INPUT_STATUS] = true,
    [KUBE_INPUT_PROTOCOL] = true
};


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
        [KUBE_INPUT_ITEM] = reflector_item,
        [KUBE_INPUT_PAGE] = reflector_page,
        [KUBE_INPUT_LIST_DONE] = reflector_list_done,
        [KUBE_INPUT_ALIVE] = reflector_list_alive,
        [KUBE_INPUT_STATUS] = reflector_list_status,
        [KUBE_INPUT_PROTOCOL] = reflector_pause,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = reflector_call_timer,
        [KUBE_INPUT_RELIST] = reflector_relist_later,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_STREAMING] = {
        [KUBE_INPUT_SENT] = reflector_stream_progress,
        [KUBE_INPUT_OPENED] = reflector_stream_opened,
        [KUBE_INPUT_META] = reflector_stream_meta,
        [KUBE_INPUT_ITEM] = reflector_stream_item,
        [KUBE_INPUT_LIST_DONE] = reflector_stream_done,
        [KUBE_INPUT_EVENT] = reflector_stream_event,
        [KUBE_INPUT_BOOKMARK] = reflector_ignore,
        [KUBE_INPUT_ALIVE] = reflector_watch_alive,
        [KUBE_INPUT_UNREADABLE] = reflector_stream_unreadable,
        [KUBE_INPUT_STATUS] = reflector_stream_status,
        [KUBE_INPUT_PROTOCOL] = reflector_stream_protocol,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = reflector_stream_timer,
        [KUBE_INPUT_RELIST] = reflector_relist_later,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_OPENING] = {
        [KUBE_INPUT_SENT] = reflector_progress,
        [KUBE_INPUT_OPENED] = reflector_watch_opened,
        [KUBE_INPUT_STATUS] = reflector_watch_status,
        [KUBE_INPUT_PROTOCOL] = reflector_open_protocol,
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
        [KUBE_INPUT_SUSPECT] = reflector_suspect,
        [KUBE_INPUT_REPLACED] = reflector_replaced,
        [KUBE_INPUT_RELIST] = reflector_relist,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_BACKOFF] = {
        [KUBE_INPUT_TIMER] = reflector_backoff_timer,
        [KUBE_INPUT_HEALED] = reflector_healed,
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

    if (step == NULL) {
        return (kube_action_t) { .illegal = true };
    }

    m->input = input;
    m->now_ms = now_ms;

    if (m->state == KUBE_REFLECTOR_WATCHING && reflector_says[input->kind]) {
        m->watch.heard = true;
        m->watch.silent = 0;
        m->list.bookmarks |= (input->kind == KUBE_INPUT_BOOKMARK);
    }

    action = step(m);

    m->input = NULL;

    return action;
}

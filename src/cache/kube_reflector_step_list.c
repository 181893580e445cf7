/*
 * kube_reflector_step_list - the steps of a list in progress, and of a
 * WatchList until it is a watch.
 *
 * For the files of kube_reflector_step alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_hash.h"
#include "kube_reflector_step_impl.h"


kube_action_t
kube_step_list_opened(kube_reflector_machine_t *m)
{
    m->list.answered = true;

    if (m->list.suspect && m->conf.traits != NULL) {
        m->conf.traits->no_watch_list = true;
        m->conf.traits->learned_ms = m->now_ms;
    }

    m->list.suspect = false;

    return kube_step_progress(m);
}


static bool
reflector_is_second_proof(const kube_reflector_list_t *list, uint64_t now_ms)
{
    return kube_step_asks[list->ask].consistent
           && list->rollback_ms != KUBE_NEVER
           && now_ms - list->rollback_ms >= KUBE_ROLLBACK_MS;
}


bool
kube_reflector_replaces(const kube_reflector_machine_t *m, uint64_t now_ms)
{
    return m->list.known || reflector_is_second_proof(&m->list, now_ms);
}


/*
 * Its items come now: what has begun is brought to its end, for no watch goes
 * on from objects of two versions.
 */
static void
reflector_list_taken(kube_reflector_machine_t *m)
{
    m->list.yields = false;

    if (m->list.instead) {
        m->list.instead = false;
        m->list.plain = true;
    }
}


/* Lists are granted, so that one of the next is the one. */
static kube_action_t
reflector_list_again(kube_reflector_machine_t *m)
{
    return kube_step_sleep(m, m->list.yields ? KUBE_NEXT_LIST
                                             : kube_step_same(m), false, 0);
}


/* Discards a list older than what was taken, unless it is a rollback. */
static kube_action_t
reflector_older_list(kube_reflector_machine_t *m)
{
    kube_reflector_list_t  *list;

    list = &m->list;

    if (!kube_step_asks[list->ask].consistent) {

        /* a replica that lags though we asked for no older list */

        if (++list->stale >= KUBE_STALE_LISTS_MAX) {
            list->stale = 0;
            list->ask = KUBE_ASK_CONSISTENT;
        }

        return reflector_list_again(m);
    }

    if (list->rollback_ms == KUBE_NEVER) {
        list->rollback_ms = m->now_ms;
    }

    if (!reflector_is_second_proof(list, m->now_ms)) {
        return reflector_list_again(m);
    }

    list->rv = m->input->rv;
    list->known = true;
    list->rollback = true;
    reflector_list_taken(m);

    return kube_step_progress(m);
}


kube_action_t
kube_step_meta(kube_reflector_machine_t *m)
{
    /* the version of a list is that of its first page */

    if (m->list.pages != 0) {
        return kube_step_progress(m);
    }

    if (m->input->rv.len == 0) {
        return kube_step_pause(m);
    }

    m->credentials_tried = false;

    if (kube_rv_cmp(&m->input->rv, kube_reflector_floor(m)) < 0) {
        return reflector_older_list(m);
    }

    m->list.rv = m->input->rv;
    m->list.known = true;
    m->list.stale = 0;
    m->list.rollback_ms = KUBE_NEVER;
    reflector_list_taken(m);

    return kube_step_progress(m);
}


kube_action_t
kube_step_item(kube_reflector_machine_t *m)
{
    reflector_list_taken(m);
    m->list.empty_pages = 0;
    kube_reflector_raise(m, &m->input->rv);

    return kube_step_progress(m);
}


bool
kube_reflector_circles(uint64_t *mark, kube_str_t token, unsigned pages,
    uint64_t seed)
{
    uint64_t  hash;

    hash = kube_hash64((kube_seed_t) { seed, 0 }, token.data, token.len);

    if (pages != 0 && hash == *mark) {
        return true;
    }

    if ((pages & (pages - 1)) == 0) {
        *mark = hash;
    }

    return false;
}


kube_action_t
kube_step_page(kube_reflector_machine_t *m)
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
        || kube_reflector_circles(&list->token_mark, token, list->pages,
                                  m->conf.seed)
        || ++list->empty_pages > KUBE_EMPTY_PAGES_MAX
        || list->pages == KUBE_PAGES_MAX)
    {
        return kube_step_pause(m);
    }

    memcpy(list->token, token.data, token.len);
    list->token_len = token.len;
    list->pages++;

    return kube_step_page_action(m);
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
    m->list.yields = false;
    m->list.broken = 0;
    m->list.died = false;
    m->list.deaths = 0;
    m->watch.protocol_errors = 0;
    m->watch.unreadable = false;
    m->demand.hasty &= m->demand.wanted;
    m->demand.dropped = false;
    kube_backoff_healthy(&m->demand.backoff, m->now_ms);
    kube_backoff_healthy(&m->demand.urgent, m->now_ms);
}


kube_action_t
kube_step_list_done(kube_reflector_machine_t *m)
{
    bool           rollback;
    kube_action_t  action;

    if (!m->list.known) {
        return kube_step_pause(m);
    }

    rollback = m->list.rollback;
    reflector_complete(m);

    action = kube_step_resume(m);

    action.synced = true;
    action.rollback = rollback;

    return action;
}


/* Between two items it is the owner who kept the list waiting. */
kube_action_t
kube_step_list_alive(kube_reflector_machine_t *m)
{
    return m->input->partial ? kube_step_nothing : kube_step_progress(m);
}


kube_action_t
kube_step_stream_opened(kube_reflector_machine_t *m)
{
    m->list.answered = true;
    m->list.headless = false;
    m->credentials_tried = false;

    return kube_step_stream_progress(m);
}


/* What was taken of a list that fails is the floor of the next. */
kube_action_t
kube_step_stream_event(kube_reflector_machine_t *m)
{
    m->list.yields = false;

    if (kube_rv_cmp(&m->input->rv, &m->list.rv) > 0) {
        m->list.rv = m->input->rv;
    }

    return kube_step_nothing;
}


kube_action_t
kube_step_stream_item(kube_reflector_machine_t *m)
{
    (void) kube_step_stream_event(m);

    return kube_step_stream_progress(m);
}


/* The version, of which a server says that it is not older than ours. */
kube_action_t
kube_step_stream_meta(kube_reflector_machine_t *m)
{
    if (m->input->rv.len == 0
        || kube_rv_cmp(&m->input->rv, kube_reflector_floor(m)) < 0)
    {
        m->list.plain = true;
        m->list.suspect = true;

        return kube_step_pause(m);
    }

    m->list.rv = m->input->rv;
    m->list.known = true;
    m->list.stale = 0;

    return kube_step_stream_progress(m);
}


kube_action_t
kube_step_stream_done(kube_reflector_machine_t *m)
{
    kube_action_t  action;

    if (!m->list.known) {
        return kube_step_pause(m);
    }

    reflector_complete(m);
    action = kube_step_watch_opened(m);
    action.synced = true;
    m->watch.heard = true;
    m->watch.silent = 0;
    m->list.bookmarks = true;

    return action;
}


/* A plain list meets the same object, but knows its place. */
kube_action_t
kube_step_stream_unreadable(kube_reflector_machine_t *m)
{
    m->list.plain = true;

    return kube_step_pause(m);
}


kube_action_t
kube_step_stream_protocol(kube_reflector_machine_t *m)
{
    kube_step_broken(m);

    return kube_step_pause(m);
}


kube_action_t
kube_step_list_status(kube_reflector_machine_t *m)
{
    kube_list_ask_t         ask;
    kube_reflector_list_t  *list;

    list = &m->list;
    ask = list->ask;

    if (kube_step_is_unauthorized(m)) {
        return (kube_action_t) { .kind = KUBE_ACTION_CREDENTIALS };
    }

    switch (m->input->status->verdict) {

    case KUBE_VERDICT_EXPIRED:
        if (list->pages != 0) {
            ask = kube_step_asks[ask].token_expired;
            break;
        }

        ask = kube_step_asks[ask].refused;
        m->reason = KUBE_RELIST_EXPIRED;
        break;

    case KUBE_VERDICT_TOO_LARGE_RV:
        ask = kube_step_asks[ask].refused;
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
        return kube_step_list(m);
    }

    return kube_step_refused(m, m->input->status->retry_after_s * 1000ull);
}


kube_action_t
kube_step_stream_status(kube_reflector_machine_t *m)
{
    if (kube_step_is_unauthorized(m)) {
        return (kube_action_t) { .kind = KUBE_ACTION_CREDENTIALS };
    }

    switch (m->input->status->verdict) {

    case KUBE_VERDICT_EXPIRED:
        m->reason = KUBE_RELIST_EXPIRED;
        m->list.ask = kube_step_asks[m->list.ask].refused;
        return kube_step_list(m);

    case KUBE_VERDICT_TOO_LARGE_RV:
        m->reason = KUBE_RELIST_TOO_LARGE_RV;
        m->list.ask = kube_step_asks[m->list.ask].refused;
        return kube_step_list(m);

    case KUBE_VERDICT_INVALID:
    case KUBE_VERDICT_NOT_FOUND:
        m->list.plain = true;
        m->list.suspect = true;
        return kube_step_list(m);

    case KUBE_VERDICT_FORBIDDEN:
        /* the permission may come: nothing is learnt of the server */
        m->list.plain = true;
        return kube_step_list(m);

    default:
        kube_step_broken(m);
        return kube_step_refused(m,
                                 m->input->status->retry_after_s * 1000ull);
    }
}


/*
 * It gets no end: nothing came, or nothing that belongs to a list.  Where not
 * even a head came it may be an outage that has just ended; a second such in a
 * row, with a plain list granted between, is a proxy that keeps what is open.
 */
kube_action_t
kube_step_stream_timer(kube_reflector_machine_t *m)
{
    kube_action_t  action;

    if (m->now_ms < m->deadline_ms) {
        return kube_step_nothing;
    }

    m->list.plain = true;
    m->list.suspect = (m->list.answered || m->list.headless);
    m->list.headless = !m->list.answered;

    action = kube_step_list(m);
    action.timeout = "no end of the initial events";

    return action;
}


/*
 * What is left of the page waits for the server's retransmission timer: it is
 * asked for again over the connection that stands.  A first page begins a new
 * list, for what it has brought may be gone by then.
 */
kube_action_t
kube_step_list_suspect(kube_reflector_machine_t *m)
{
    if (!kube_step_may_ask_twice(m)) {
        return kube_step_nothing;
    }

    return (m->list.pages != 0) ? kube_step_page_action(m)
                                : kube_step_list(m);
}

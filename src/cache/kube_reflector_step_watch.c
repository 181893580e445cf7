/*
 * kube_reflector_step_watch - the steps of a watch: asked for, and open.
 *
 * Versions never go back within it.  For the files of kube_reflector_step
 * alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_reflector_step_impl.h"


kube_action_t
kube_step_watch_opened(kube_reflector_machine_t *m)
{
    m->state = KUBE_REFLECTOR_WATCHING;
    m->credentials_tried = false;
    m->watch.timeouts = 0;
    m->watch.heard = false;
    m->watch.opened_ms = m->now_ms;
    m->watch.alive_ms = m->now_ms;

    return kube_step_progress(m);
}


/* An event or a bookmark.  Versions never go back within a watch. */
kube_action_t
kube_step_version(kube_reflector_machine_t *m)
{
    int               order;
    const kube_rv_t  *rv;

    rv = &m->input->rv;
    order = (rv->len != 0) ? kube_rv_cmp(rv, &m->rv) : 0;

    /* a real server never sends this: it was restored, or is none */

    if (order < 0) {
        m->reason = KUBE_RELIST_OTHER;
        return kube_step_sleep(m, KUBE_NEXT_LIST, false, 0);
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

    return kube_step_progress(m);
}


kube_action_t
kube_step_watch_alive(kube_reflector_machine_t *m)
{
    m->watch.alive_ms = m->now_ms;

    if (!m->input->partial) {
        m->watch.partial_ms = KUBE_NEVER;

    } else if (m->watch.partial_ms == KUBE_NEVER) {
        m->watch.partial_ms = m->now_ms;
    }

    return kube_step_progress(m);
}


/*
 * The watch is resumed once: the bytes may have been damaged on their way.
 * Where they come like this again the event is passed over, and what it said
 * is brought by a list on demand, which others like it may wait for, too.
 */
kube_action_t
kube_step_unreadable(kube_reflector_machine_t *m)
{
    uint64_t  due_ms;

    (void) kube_step_watch_lived(m);

    if (!m->watch.unreadable) {
        m->watch.unreadable = true;
        return kube_step_sleep(m, KUBE_NEXT_WATCH, false, 0);
    }

    m->watch.alive_ms = m->now_ms;
    m->watch.partial_ms = KUBE_NEVER;

    due_ms = m->now_ms + KUBE_URGENT_FIRST_MS;

    if (!m->demand.wanted && m->demand.due_ms < due_ms) {
        m->demand.due_ms = due_ms;
    }

    m->demand.wanted = true;
    m->demand.beside = false;
    m->reason = KUBE_RELIST_PROTOCOL;

    return kube_step_progress(m);
}


/* Malformed bytes may be damage once; the second time a list gets past them. */
static kube_action_t
reflector_damaged(kube_reflector_machine_t *m, uint64_t floor_ms)
{
    if (++m->watch.protocol_errors < 2
        || m->now_ms < m->list.not_before_ms)
    {
        return kube_step_sleep(m, KUBE_NEXT_WATCH, false, floor_ms);
    }

    m->watch.protocol_errors = 0;
    m->reason = KUBE_RELIST_PROTOCOL;
    m->list.instead = true;

    return kube_step_sleep(m, KUBE_NEXT_LIST, false, floor_ms);
}


/* A refused watch, or an ERROR event of an open one. */
kube_action_t
kube_step_watch_status(kube_reflector_machine_t *m)
{
    uint64_t               floor_ms;
    kube_reflector_next_t  next;

    floor_ms = m->input->status->retry_after_s * 1000ull;

    (void) kube_step_watch_lived(m);

    if (kube_step_is_unauthorized(m)) {
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
        return kube_step_sleep(m, KUBE_NEXT_WATCH, false, floor_ms);

    default:
        next = kube_step_useless(m, m->state == KUBE_REFLECTOR_OPENING);
        return kube_step_sleep(m, next, false, floor_ms);
    }

    m->list.instead = false;

    /* 410, list, 410, list must not spin */

    if (m->list.started_ms != KUBE_NEVER
        && m->now_ms - m->list.started_ms < KUBE_RELIST_PACE_MS)
    {
        return kube_step_sleep(m, KUBE_NEXT_LIST, false, floor_ms);
    }

    return kube_step_list(m);
}


/* An answer that is none of this API's, as from a proxy. */
kube_action_t
kube_step_open_protocol(kube_reflector_machine_t *m)
{
    return kube_step_sleep(m, kube_step_useless(m, false), false, 0);
}


kube_action_t
kube_step_watch_protocol(kube_reflector_machine_t *m)
{
    (void) kube_step_watch_lived(m);

    return reflector_damaged(m, 0);
}


kube_action_t
kube_step_watch_timer(kube_reflector_machine_t *m)
{
    if (m->now_ms < m->deadline_ms) {
        return kube_step_nothing;
    }

    if (m->watch.partial_ms != KUBE_NEVER
        && m->now_ms - m->watch.partial_ms >= KUBE_OBJECT_MS)
    {
        return kube_step_timed_out(m, "an object came too slowly");
    }

    if (kube_step_beside_is_due(m)) {
        return kube_step_beside(m);
    }

    /* it was a list that came due, and waits for its turn */

    m->deadline_ms = kube_step_watch_deadline(m);

    if (m->now_ms < m->deadline_ms) {
        return kube_step_nothing;
    }

    (void) kube_step_watch_lived(m);
    m->next = KUBE_NEXT_WATCH;

    /* a list that is due on demand is no word on the watch */

    if (!kube_step_list_is_due(m) && kube_step_is_silent(m)) {
        return kube_step_yielding_list(m);
    }

    return kube_step_resume(m);
}


/*
 * A second watch at the same version.  The first may still speak first, so that
 * nothing of it changes.
 */
kube_action_t
kube_step_suspect(kube_reflector_machine_t *m)
{
    uint32_t  timeout_s;

    if (!kube_step_may_ask_twice(m)) {
        return kube_step_nothing;
    }

    timeout_s = kube_step_draw_timeout(m, &m->watch.second_deadline_ms);

    return (kube_action_t) {
        .kind = KUBE_ACTION_SECOND,
        .rv = kube_rv_str(&m->rv),
        .timeout_s = timeout_s
    };
}


kube_action_t
kube_step_replaced(kube_reflector_machine_t *m)
{
    (void) kube_step_watch_lived(m);

    m->watch.moved = 0;
    m->watch.partial_ms = KUBE_NEVER;
    m->watch.deadline_ms = m->watch.second_deadline_ms;
    m->watch.second_ms = KUBE_NEVER;

    return kube_step_watch_opened(m);
}

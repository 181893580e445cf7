/*
 * kube_reflector_step - the decisions of a reflector; the table is in the
 * header, and steps[][] at the end of this file is the same table as data.
 *
 * It does no input or output and calls nothing back.  One machine per scope,
 * owned by kube_reflector.
 *
 * Every transition but STOP, CREDENTIALS, SECOND and BESIDE ends in
 * kube_step_list(), kube_step_page_action(), kube_step_watch(),
 * kube_step_sleep() or in nothing.  A step is here where it is of any state;
 * else kube_reflector_step_list.c and kube_reflector_step_watch.c have it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_reflector_step_impl.h"


typedef kube_action_t (*reflector_step_pt)(kube_reflector_machine_t *m);


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


static kube_action_t
reflector_ignore(kube_reflector_machine_t *m)
{
    (void) m;

    return kube_step_nothing;
}


static kube_action_t
reflector_start(kube_reflector_machine_t *m)
{
    m->rv = m->input->rv;
    m->list.rv = m->input->floor;

    return (m->rv.len == 0) ? kube_step_list(m) : kube_step_watch(m);
}


static kube_action_t
reflector_closed(kube_reflector_machine_t *m)
{
    return kube_step_end(m, KUBE_OK);
}


static kube_action_t
reflector_failed(kube_reflector_machine_t *m)
{
    return kube_step_end(m, m->input->rc);
}


/* A list without progress, or a watch without a head. */
static kube_action_t
reflector_call_timer(kube_reflector_machine_t *m)
{
    if (m->now_ms < m->deadline_ms) {
        return kube_step_nothing;
    }

    if (m->state == KUBE_REFLECTOR_LISTING) {
        m->list.timeouts++;

    } else {
        m->watch.timeouts++;
    }

    return kube_step_timed_out(m, "no answer");
}


/* If what follows fails too, in whatever way, its pause is the ordinary one. */
static kube_action_t
reflector_healed(kube_reflector_machine_t *m)
{
    if (!m->unconnected) {
        return kube_step_nothing;
    }

    m->unconnected = false;

    return kube_step_resume(m);
}


static kube_action_t
reflector_backoff_timer(kube_reflector_machine_t *m)
{
    return (m->now_ms < m->deadline_ms) ? kube_step_nothing
                                        : kube_step_resume(m);
}


/* In a list and in BACKOFF it has to wait: kube_step_resume() sees to it. */
static kube_action_t
reflector_relist_later(kube_reflector_machine_t *m)
{
    m->demand.beside = m->input->beside
                       && (!m->demand.wanted || m->demand.beside);
    m->demand.wanted = true;
    m->demand.hasty |= m->input->urgent;
    m->demand.dropped |= m->input->dropped;
    m->reason = m->input->reason;
    m->list.plain |= m->input->plain;

    if (m->input->urgent && m->demand.urgent_ms < m->demand.due_ms) {
        m->demand.due_ms = m->demand.urgent_ms;
    }

    return kube_step_nothing;
}


/* In OPENING and WATCHING the list may begin at once. */
static kube_action_t
reflector_relist(kube_reflector_machine_t *m)
{
    (void) reflector_relist_later(m);

    if (kube_step_list_is_due(m)) {
        return kube_step_yielding_list(m);
    }

    if (m->state != KUBE_REFLECTOR_WATCHING) {
        return kube_step_nothing;
    }

    if (kube_step_beside_is_due(m)) {
        return kube_step_beside(m);
    }

    m->deadline_ms = kube_step_watch_deadline(m);

    return kube_step_nothing;
}


static kube_action_t
reflector_turn(kube_reflector_machine_t *m)
{
    return kube_step_list_is_due(m) ? kube_step_yielding_list(m)
                                    : kube_step_nothing;
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
        [KUBE_INPUT_SENT] = kube_step_progress,
        [KUBE_INPUT_OPENED] = kube_step_list_opened,
        [KUBE_INPUT_META] = kube_step_meta,
        [KUBE_INPUT_ITEM] = kube_step_item,
        [KUBE_INPUT_PAGE] = kube_step_page,
        [KUBE_INPUT_LIST_DONE] = kube_step_list_done,
        [KUBE_INPUT_ALIVE] = kube_step_list_alive,
        [KUBE_INPUT_STATUS] = kube_step_list_status,
        [KUBE_INPUT_PROTOCOL] = kube_step_pause,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = reflector_call_timer,
        [KUBE_INPUT_SUSPECT] = kube_step_list_suspect,
        [KUBE_INPUT_RELIST] = reflector_relist_later,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_STREAMING] = {
        [KUBE_INPUT_SENT] = kube_step_stream_progress,
        [KUBE_INPUT_OPENED] = kube_step_stream_opened,
        [KUBE_INPUT_META] = kube_step_stream_meta,
        [KUBE_INPUT_ITEM] = kube_step_stream_item,
        [KUBE_INPUT_LIST_DONE] = kube_step_stream_done,
        [KUBE_INPUT_EVENT] = kube_step_stream_event,
        [KUBE_INPUT_BOOKMARK] = reflector_ignore,
        [KUBE_INPUT_ALIVE] = kube_step_watch_alive,
        [KUBE_INPUT_UNREADABLE] = kube_step_stream_unreadable,
        [KUBE_INPUT_STATUS] = kube_step_stream_status,
        [KUBE_INPUT_PROTOCOL] = kube_step_stream_protocol,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = kube_step_stream_timer,
        [KUBE_INPUT_RELIST] = reflector_relist_later,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_OPENING] = {
        [KUBE_INPUT_SENT] = kube_step_progress,
        [KUBE_INPUT_OPENED] = kube_step_watch_opened,
        [KUBE_INPUT_STATUS] = kube_step_watch_status,
        [KUBE_INPUT_PROTOCOL] = kube_step_open_protocol,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = reflector_call_timer,
        [KUBE_INPUT_RELIST] = reflector_relist,
        [KUBE_INPUT_TURN] = reflector_turn,
        [KUBE_INPUT_STOP] = reflector_stop
    },

    [KUBE_REFLECTOR_WATCHING] = {
        [KUBE_INPUT_EVENT] = kube_step_version,
        [KUBE_INPUT_BOOKMARK] = kube_step_version,
        [KUBE_INPUT_ALIVE] = kube_step_watch_alive,
        [KUBE_INPUT_UNREADABLE] = kube_step_unreadable,
        [KUBE_INPUT_STATUS] = kube_step_watch_status,
        [KUBE_INPUT_PROTOCOL] = kube_step_watch_protocol,
        [KUBE_INPUT_CLOSED] = reflector_closed,
        [KUBE_INPUT_FAILED] = reflector_failed,
        [KUBE_INPUT_TIMER] = kube_step_watch_timer,
        [KUBE_INPUT_SUSPECT] = kube_step_suspect,
        [KUBE_INPUT_REPLACED] = kube_step_replaced,
        [KUBE_INPUT_RELIST] = reflector_relist,
        [KUBE_INPUT_TURN] = reflector_turn,
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
        m->watch.second_ms = KUBE_NEVER;
        m->list.bookmarks |= (input->kind == KUBE_INPUT_BOOKMARK);
    }

    action = step(m);

    m->input = NULL;

    return action;
}

/*
 * reflector_step_bed - a machine, a clock and one line per input, for
 * test_reflector_step and test_reflector_walk; not part of the product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REFLECTOR_STEP_BED_H
#define KUBE_REFLECTOR_STEP_BED_H


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kube_reflector_step.h"


typedef struct {
    kube_reflector_machine_t  r;
    kube_action_t             action;
    kube_server_traits_t      traits;
    uint64_t                  now_ms;
    uint32_t                  coverage[KUBE_REFLECTOR_STATES][KUBE_INPUTS];
} bed_t;


static const char *const  state_names[] = {
    [KUBE_REFLECTOR_IDLE] = "IDLE",
    [KUBE_REFLECTOR_LISTING] = "LISTING",
    [KUBE_REFLECTOR_STREAMING] = "STREAMING",
    [KUBE_REFLECTOR_OPENING] = "OPENING",
    [KUBE_REFLECTOR_WATCHING] = "WATCHING",
    [KUBE_REFLECTOR_BACKOFF] = "BACKOFF",
    [KUBE_REFLECTOR_STOPPED] = "STOPPED"
};

static const char *const  action_names[] = {
    [KUBE_ACTION_NONE] = "none",
    [KUBE_ACTION_LIST] = "list",
    [KUBE_ACTION_STREAM] = "stream",
    [KUBE_ACTION_WATCH] = "watch",
    [KUBE_ACTION_SECOND] = "second",
    [KUBE_ACTION_SLEEP] = "sleep",
    [KUBE_ACTION_CREDENTIALS] = "credentials",
    [KUBE_ACTION_STOP] = "stop"
};


static inline kube_rv_t
rv_of(const char *text)
{
    kube_rv_t  rv;

    memset(&rv, 0, sizeof(rv));

    if (text[0] != '\0') {
        assert_int_equal(kube_rv_parse(kube_str(text), &rv), KUBE_OK);
    }

    return rv;
}


static inline void
assert_str(kube_str_t s, const char *text)
{
    assert_int_equal(s.len, strlen(text));
    assert_memory_equal(s.data, text, s.len);
}


static inline kube_action_kind_t
feed(bed_t *b, const kube_input_t *input)
{
    b->action = kube_reflector_input(&b->r, input, b->now_ms);
    return b->action.kind;
}


static inline kube_action_kind_t
say(bed_t *b, kube_input_kind_t kind)
{
    return feed(b, &(kube_input_t) { .kind = kind });
}


static inline kube_action_kind_t
say_rv(bed_t *b, kube_input_kind_t kind, const char *rv)
{
    return feed(b, &(kube_input_t) { .kind = kind, .rv = rv_of(rv) });
}


static inline kube_action_kind_t
say_page(bed_t *b, const char *token)
{
    return feed(b, &(kube_input_t) { .kind = KUBE_INPUT_PAGE,
                                     .continue_token = kube_str(token) });
}


static inline kube_action_kind_t
say_alive(bed_t *b, bool partial)
{
    return feed(b, &(kube_input_t) { .kind = KUBE_INPUT_ALIVE,
                                     .partial = partial });
}


static inline kube_action_kind_t
say_status_after(bed_t *b, kube_verdict_t verdict, uint32_t retry_after_s)
{
    kube_status_t  status;

    memset(&status, 0, sizeof(status));
    status.verdict = verdict;
    status.retry_after_s = retry_after_s;

    return feed(b, &(kube_input_t) { .kind = KUBE_INPUT_STATUS,
                                     .status = &status });
}


static inline kube_action_kind_t
say_status(bed_t *b, kube_verdict_t verdict)
{
    return say_status_after(b, verdict, 0);
}


static inline kube_action_kind_t
say_failed(bed_t *b, kube_rc_t rc)
{
    return feed(b, &(kube_input_t) { .kind = KUBE_INPUT_FAILED, .rc = rc });
}


static inline kube_action_kind_t
say_relist(bed_t *b, kube_relist_reason_t reason)
{
    return feed(b, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                     .reason = reason });
}


/* Goes to the deadline. */
static inline kube_action_kind_t
say_timer(bed_t *b)
{
    assert_true(b->r.deadline_ms != KUBE_NEVER);
    assert_true(b->r.deadline_ms >= b->now_ms);

    b->now_ms = b->r.deadline_ms;

    return say(b, KUBE_INPUT_TIMER);
}


/* Sleeps until the deadline; returns how long that was. */
static inline uint64_t
wake(bed_t *b)
{
    uint64_t  ms;

    assert_int_equal(b->r.state, KUBE_REFLECTOR_BACKOFF);
    assert_true(b->r.deadline_ms >= b->now_ms);

    ms = b->r.deadline_ms - b->now_ms;

    if (ms != 0) {
        b->now_ms += ms - 1;
        assert_int_equal(say(b, KUBE_INPUT_TIMER), KUBE_ACTION_NONE);
        b->now_ms++;
    }

    assert_int_not_equal(say(b, KUBE_INPUT_TIMER), KUBE_ACTION_NONE);

    return ms;
}


static inline void
bed_make(bed_t *b, kube_watch_list_t watch_list)
{
    kube_reflector_conf_t  counted;

    memset(b, 0xa5, sizeof(bed_t));
    memset(b->coverage, 0, sizeof(b->coverage));
    memset(&b->traits, 0, sizeof(b->traits));

    b->now_ms = 1000000;
    counted = kube_reflector_conf_defaults(7);
    counted.coverage = b->coverage;
    counted.watch_list = watch_list;
    counted.traits = &b->traits;

    kube_reflector_machine_init(&b->r, &counted);
}


static inline void
bed_init(bed_t *b)
{
    bed_make(b, KUBE_WATCH_LIST_OFF);
}


/* A bed in the state, at version 100 but for IDLE. */
static inline void
bed_in(bed_t *b, kube_reflector_state_t state)
{
    bed_make(b, (state == KUBE_REFLECTOR_STREAMING) ? KUBE_WATCH_LIST_AUTO
                                                    : KUBE_WATCH_LIST_OFF);

    if (state == KUBE_REFLECTOR_IDLE) {
        return;
    }

    assert_int_equal(say_rv(b, KUBE_INPUT_START, "100"), KUBE_ACTION_WATCH);

    switch (state) {

    case KUBE_REFLECTOR_LISTING:
    case KUBE_REFLECTOR_STREAMING:
        say_status(b, KUBE_VERDICT_EXPIRED);
        break;

    case KUBE_REFLECTOR_WATCHING:
        say(b, KUBE_INPUT_OPENED);
        break;

    case KUBE_REFLECTOR_BACKOFF:
        say_failed(b, KUBE_CONNECT);
        break;

    case KUBE_REFLECTOR_STOPPED:
        say(b, KUBE_INPUT_STOP);
        break;

    default:
        break;
    }

    assert_int_equal(b->r.state, state);
}


#endif /* KUBE_REFLECTOR_STEP_BED_H */

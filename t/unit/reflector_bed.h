/*
 * reflector_bed - a reflector, a clock and one line per input, for
 * test_reflector*; not part of the product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REFLECTOR_BED_H
#define KUBE_REFLECTOR_BED_H


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kube_reflector.h"


typedef struct {
    kube_reflector_t  r;
    kube_action_t     action;
    uint64_t          now_ms;
} bed_t;


static const kube_reflector_conf_t  conf = {
    .page_size = 500,
    .watch_timeout_ms = 300000,
    .idle_timeout_ms = 90000,
    .backoff = {
        .first_ms = 800,
        .max_ms = 30000,
        .unreachable_ms = 4000
    },
    .seed = 7
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
    b->action = kube_reflector_step(&b->r, input, b->now_ms);
    return b->action.kind;
}


static inline kube_action_kind_t
say(bed_t *b, kube_input_kind_t kind)
{
    kube_input_t  input;

    memset(&input, 0, sizeof(input));
    input.kind = kind;

    return feed(b, &input);
}


static inline kube_action_kind_t
say_rv(bed_t *b, kube_input_kind_t kind, const char *rv)
{
    kube_input_t  input;

    memset(&input, 0, sizeof(input));
    input.kind = kind;
    input.rv = rv_of(rv);

    return feed(b, &input);
}


static inline kube_action_kind_t
say_page(bed_t *b, const char *token)
{
    kube_input_t  input;

    memset(&input, 0, sizeof(input));
    input.kind = KUBE_INPUT_PAGE;
    input.continue_token = kube_str(token);

    return feed(b, &input);
}


static inline kube_action_kind_t
say_status_after(bed_t *b, kube_verdict_t verdict, uint32_t retry_after_s)
{
    kube_input_t   input;
    kube_status_t  status;

    memset(&status, 0, sizeof(status));
    status.verdict = verdict;
    status.retry_after_s = retry_after_s;

    memset(&input, 0, sizeof(input));
    input.kind = KUBE_INPUT_STATUS;
    input.status = &status;

    return feed(b, &input);
}


static inline kube_action_kind_t
say_status(bed_t *b, kube_verdict_t verdict)
{
    return say_status_after(b, verdict, 0);
}


static inline kube_action_kind_t
say_failed(bed_t *b, kube_rc_t rc)
{
    kube_input_t  input;

    memset(&input, 0, sizeof(input));
    input.kind = KUBE_INPUT_FAILED;
    input.rc = rc;

    return feed(b, &input);
}


static inline kube_action_kind_t
say_relist(bed_t *b, kube_relist_reason_t reason)
{
    kube_input_t  input;

    memset(&input, 0, sizeof(input));
    input.kind = KUBE_INPUT_RELIST;
    input.reason = reason;

    return feed(b, &input);
}


/* Sleeps until the deadline; returns how long that was. */
static inline uint64_t
wake(bed_t *b)
{
    uint64_t  ms;

    assert_int_equal(b->r.state, KUBE_REFLECTOR_BACKOFF);
    assert_true(kube_reflector_deadline(&b->r) >= b->now_ms);

    ms = kube_reflector_deadline(&b->r) - b->now_ms;

    if (ms != 0) {
        b->now_ms += ms - 1;
        assert_int_equal(say(b, KUBE_INPUT_TIMER), KUBE_ACTION_NONE);
        b->now_ms++;
    }

    assert_int_not_equal(say(b, KUBE_INPUT_TIMER), KUBE_ACTION_NONE);

    return ms;
}


static inline void
bed_init(bed_t *b)
{
    memset(b, 0xa5, sizeof(bed_t));
    b->now_ms = 1000000;
    kube_reflector_init(&b->r, &conf);
}


/* A bed in the state, at version 100 but for IDLE. */
static inline void
bed_in(bed_t *b, kube_reflector_state_t state)
{
    bed_init(b);

    if (state == KUBE_REFLECTOR_IDLE) {
        return;
    }

    assert_int_equal(say_rv(b, KUBE_INPUT_START, "100"), KUBE_ACTION_WATCH);

    switch (state) {

    case KUBE_REFLECTOR_LISTING:
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


#endif /* KUBE_REFLECTOR_BED_H */

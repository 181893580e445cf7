/*
 * test_reflector_walk - versions that must not go back, in sequences written
 * by hand and in hundreds of thousands of random inputs.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_step_bed.h"


static void
test_lagging_replica(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_LISTING);

    for (i = 0; i < KUBE_STALE_LISTS_MAX; i++) {
        assert_str(b.action.rv, "100");
        assert_int_equal(say_rv(&b, KUBE_INPUT_META, "99"),
                         KUBE_ACTION_SLEEP);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    }

    assert_int_equal(b.action.rv.len, 0);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "100"), KUBE_ACTION_NONE);
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    assert_false(b.action.rollback);
    assert_str(b.action.rv, "100");
}


/* A list that failed half-way is the floor of the next. */
static void
test_half_list_floor(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    say(&b, KUBE_INPUT_START);
    say_rv(&b, KUBE_INPUT_META, "50");
    say_failed(&b, KUBE_CLOSED);
    (void) wake(&b);
    assert_str(b.action.rv, "50");
    assert_true(b.action.not_older_than);
    assert_false(b.action.relist);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "49"), KUBE_ACTION_SLEEP);
}


/* What was held before this process began is a floor, too. */
static void
test_floor_of_a_predecessor(void **state)
{
    bed_t         b;
    kube_rv_t     newer;
    kube_input_t  start;

    (void) state;

    start = (kube_input_t) {
        .kind = KUBE_INPUT_START,
        .floor = { .data = "60", .len = 2 }
    };
    newer = (kube_rv_t) { .data = "70", .len = 2 };

    bed_init(&b);
    b.action = kube_reflector_input(&b.r, &start, b.now_ms);
    assert_str(b.action.rv, "60");
    assert_true(b.action.not_older_than);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "59"), KUBE_ACTION_SLEEP);

    /* a state file's is told while a list is on its way */
    (void) wake(&b);
    kube_reflector_raise(&b.r, &newer);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "69"), KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_str(b.action.rv, "70");

    /* and changes nothing of one that is being taken */
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "71"), KUBE_ACTION_NONE);
    newer = (kube_rv_t) { .data = "80", .len = 2 };
    kube_reflector_raise(&b.r, &newer);
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "71");

    /* what is resumed may have to be listed: not before what was taken */
    bed_init(&b);
    start.rv = (kube_rv_t) { .data = "50", .len = 2 };
    b.action = kube_reflector_input(&b.r, &start, b.now_ms);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "50");
    say_status(&b, KUBE_VERDICT_EXPIRED);

    if (b.action.kind == KUBE_ACTION_SLEEP) {
        (void) wake(&b);
    }

    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_str(b.action.rv, "60");
}


static void
test_rollback(void **state)
{
    bed_t     b;
    uint64_t  first_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say_status(&b, KUBE_VERDICT_TOO_LARGE_RV);
    assert_int_equal(b.action.rv.len, 0);

    first_ms = b.now_ms;
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "50"), KUBE_ACTION_SLEEP);

    for ( ;; ) {
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_int_equal(b.action.rv.len, 0);

        if (say_rv(&b, KUBE_INPUT_META, "51") == KUBE_ACTION_NONE) {
            break;
        }
    }

    assert_true(b.now_ms - first_ms >= KUBE_ROLLBACK_MS);

    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    assert_true(b.action.rollback);
    assert_str(b.action.rv, "51");

    /* that was it */
    b.now_ms += 3600000;
    say_status(&b, KUBE_VERDICT_TOO_LARGE_RV);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "50"), KUBE_ACTION_SLEEP);

    /* one that says otherwise in between, and it starts anew */
    (void) wake(&b);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "51"), KUBE_ACTION_NONE);
    say(&b, KUBE_INPUT_LIST_DONE);
    b.now_ms += KUBE_RELIST_PACE_MS;
    say_status(&b, KUBE_VERDICT_TOO_LARGE_RV);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "50"), KUBE_ACTION_SLEEP);

    /* so does an event: what follows a list in place of watches is a watch */
    b.r.next = KUBE_NEXT_WATCH;
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_rv(&b, KUBE_INPUT_EVENT, "102"), KUBE_ACTION_NONE);
    b.now_ms += 3600000;
    say_status(&b, KUBE_VERDICT_TOO_LARGE_RV);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "50"), KUBE_ACTION_SLEEP);
    assert_true(b.r.list.rollback_ms == b.now_ms);
}


/* Random inputs: what must hold after each step holds. */

typedef struct {
    bed_t     b;
    bool      in_flight;
    unsigned  at_once;      /* requests without time passing */
} walk_t;


static void
walk_input(kube_random_t *random, kube_input_t *input, kube_status_t *status,
    const kube_reflector_machine_t *r)
{
    uint64_t  rv;
    char      text[24];

    static const kube_rc_t  rcs[] = {
        KUBE_CONNECT, KUBE_TLS, KUBE_TIMEOUT, KUBE_CLOSED, KUBE_PROTO,
        KUBE_NOMEM, KUBE_IO
    };
    static const char *const  tokens[] = { "", "a", "b", "c" };

    /* what comes from a server that works, or the walk gets nowhere */
    static const kube_input_kind_t  good[KUBE_REFLECTOR_STATES][3] = {
        [KUBE_REFLECTOR_IDLE] = { KUBE_INPUT_START, KUBE_INPUT_START,
                                  KUBE_INPUT_START },
        [KUBE_REFLECTOR_LISTING] = { KUBE_INPUT_META, KUBE_INPUT_ITEM,
                                     KUBE_INPUT_LIST_DONE },
        [KUBE_REFLECTOR_STREAMING] = { KUBE_INPUT_META, KUBE_INPUT_ITEM,
                                       KUBE_INPUT_LIST_DONE },
        [KUBE_REFLECTOR_OPENING] = { KUBE_INPUT_SENT, KUBE_INPUT_OPENED,
                                     KUBE_INPUT_OPENED },
        [KUBE_REFLECTOR_WATCHING] = { KUBE_INPUT_EVENT, KUBE_INPUT_BOOKMARK,
                                      KUBE_INPUT_ALIVE },
        [KUBE_REFLECTOR_BACKOFF] = { KUBE_INPUT_TIMER, KUBE_INPUT_TIMER,
                                     KUBE_INPUT_TIMER }
    };

    memset(input, 0, sizeof(kube_input_t));
    memset(status, 0, sizeof(kube_status_t));

    input->kind = (kube_input_kind_t)
                  kube_random_range(random, 0, KUBE_INPUTS - 2);

    if (kube_random_range(random, 0, 2) != 0) {
        input->kind = good[r->state][kube_random_range(random, 0, 2)];
    }

    input->rc = rcs[kube_random_range(random, 0, 6)];
    input->reason = KUBE_RELIST_ROOM;
    input->partial = kube_random_range(random, 0, 1);
    input->continue_token = kube_str(tokens[kube_random_range(random, 0, 3)]);
    input->status = status;

    status->verdict = (kube_verdict_t)
                      kube_random_range(random, 0, KUBE_VERDICTS - 1);
    status->retry_after_s = (kube_random_range(random, 0, 9) == 0) ? 7 : 0;

    /* mostly the next version, at times an older one or none */
    rv = 0;
    snprintf(text, sizeof(text), "%.*s", (int) r->rv.len, r->rv.data);

    if (r->rv.len != 0) {
        assert_int_equal(kube_str_to_u64(kube_str(text), UINT64_MAX, &rv),
                         KUBE_OK);
    }

    switch (kube_random_range(random, 0, 9)) {

    case 0:
        rv = (rv > 1) ? rv - 1 : 1;
        break;

    case 1:
        return;

    default:
        rv += kube_random_range(random, 1, 3);
        break;
    }

    snprintf(text, sizeof(text), "%llu", (unsigned long long) rv);
    input->rv = rv_of(text);
}


static void
walk_check(walk_t *w, const kube_input_t *input, const kube_rv_t *before,
    kube_reflector_state_t state_before)
{
    bed_t     *b;
    uint64_t   deadline_ms, sleep_ms;

    b = &w->b;
    deadline_ms = b->r.deadline_ms;

    if (kube_rv_cmp(&b->r.rv, before) < 0) {
        assert_int_equal(input->kind, KUBE_INPUT_LIST_DONE);
        assert_true(b->action.rollback);
    }

    if (kube_rv_cmp(&b->r.rv, before) != 0) {
        assert_true(input->kind == KUBE_INPUT_LIST_DONE
                    || input->kind == KUBE_INPUT_EVENT
                    || input->kind == KUBE_INPUT_BOOKMARK
                    || input->kind == KUBE_INPUT_START);
    }

    assert_true(b->r.state == KUBE_REFLECTOR_IDLE
                || deadline_ms != KUBE_NEVER);

    switch (b->action.kind) {

    case KUBE_ACTION_NONE:
        /* an open exchange is never left without an action */
        assert_int_equal(w->in_flight,
                         b->r.state == KUBE_REFLECTOR_LISTING
                         || b->r.state == KUBE_REFLECTOR_STREAMING
                         || b->r.state == KUBE_REFLECTOR_OPENING
                         || b->r.state == KUBE_REFLECTOR_WATCHING);
        return;

    case KUBE_ACTION_SLEEP:
        sleep_ms = deadline_ms - b->now_ms;
        assert_in_range(sleep_ms, 400, 30000);
        w->in_flight = false;
        w->at_once = 0;
        break;

    case KUBE_ACTION_CREDENTIALS:
        assert_int_equal(deadline_ms, b->now_ms);
        w->in_flight = false;
        break;

    case KUBE_ACTION_WATCH:
        assert_true(b->action.rv.len != 0);
        assert_in_range(b->action.timeout_s, 300, 599);
        assert_int_equal(b->r.state, KUBE_REFLECTOR_OPENING);
        assert_in_range(deadline_ms - b->now_ms, KUBE_OPEN_MS,
                        KUBE_TIMEOUT_MAX_MS);
        w->in_flight = true;
        w->at_once++;
        break;

    case KUBE_ACTION_SECOND:
        /* beside the first, which nothing has happened to */
        assert_int_equal(input->kind, KUBE_INPUT_SUSPECT);
        assert_int_equal(b->r.state, KUBE_REFLECTOR_WATCHING);
        assert_true(w->in_flight);
        assert_in_range(b->action.timeout_s, 300, 599);
        return;

    case KUBE_ACTION_STREAM:
        assert_false(b->traits.no_watch_list);
        assert_int_equal(b->r.state, KUBE_REFLECTOR_STREAMING);
        assert_int_equal(deadline_ms - b->now_ms, KUBE_STREAM_MS);
        assert_in_range(b->action.timeout_s, 300, 599);
        assert_true(b->action.first_page);
        assert_true(b->action.not_older_than);
        /* a version that is not the newest taken would let it go back */
        assert_true(b->action.rv.len == 0
                    ? b->r.rv.len == 0 && b->r.list.rv.len == 0
                    : b->action.rv.data == b->r.rv.data
                      || b->action.rv.data == b->r.list.rv.data);
        w->in_flight = true;
        w->at_once++;
        break;

    case KUBE_ACTION_LIST:
        assert_int_equal(b->r.state, KUBE_REFLECTOR_LISTING);
        assert_in_range(deadline_ms - b->now_ms, KUBE_LIST_MS,
                        KUBE_TIMEOUT_MAX_MS);
        assert_true(b->action.first_page
                    == (b->action.continue_token.len == 0));
        assert_false(b->action.continue_token.len != 0
                     && b->action.rv.len != 0);
        assert_false(b->action.not_older_than && b->action.rv.len == 0);
        w->in_flight = true;
        w->at_once++;
        break;

    default:
        fail();
    }

    assert_int_not_equal(state_before, KUBE_REFLECTOR_STOPPED);
}


static void
random_walk(kube_watch_list_t watch_list, unsigned cells_expected)
{
    walk_t                  w;
    bool                    legal[KUBE_REFLECTOR_STATES][KUBE_INPUTS];
    unsigned                i, s, rollbacks, cells;
    uint64_t                reached;
    kube_rv_t               before;
    kube_input_t            input;
    kube_random_t           random;
    kube_status_t           status;
    kube_reflector_state_t  state_before;

    memset(&w, 0, sizeof(w));
    memset(legal, 0, sizeof(legal));
    bed_make(&w.b, watch_list);
    kube_random_init(&random, 42);
    rollbacks = 0;
    reached = 0;

    for (i = 0; i < 200000; i++) {

        walk_input(&random, &input, &status, &w.b.r);

        switch (kube_random_range(&random, 0, 3)) {

        case 0:
            w.b.now_ms += kube_random_range(&random, 0, 2000);
            w.at_once = 0;
            break;

        case 1:
            if (w.b.r.deadline_ms != KUBE_NEVER
                && w.b.r.deadline_ms > w.b.now_ms)
            {
                w.b.now_ms = w.b.r.deadline_ms;
                w.at_once = 0;
            }

            input.kind = KUBE_INPUT_TIMER;
            break;

        default:
            break;
        }

        /* another scope could not connect */
        if (i % 16 == 0) {
            w.b.traits.no_watch_list = false;
        }

        before = w.b.r.rv;
        state_before = w.b.r.state;
        w.b.r.busy = (input.kind != KUBE_INPUT_TURN
                      && kube_random_range(&random, 0, 1));

        feed(&w.b, &input);
        walk_check(&w, &input, &before, state_before);

        rollbacks += w.b.action.rollback;
        reached |= 1ull << (state_before * 8 + w.b.r.state);

        /* nothing asks often without time passing, but for pages */
        if (input.kind == KUBE_INPUT_PAGE) {
            w.at_once = 0;
        }

        assert_true(w.at_once < 40);

        legal[state_before][input.kind] |= !w.b.action.illegal;
    }

    /* every cell of the table that is legal, but those of STOP and STOPPED */
    cells = 0;

    for (s = 0; s < KUBE_REFLECTOR_STATES; s++) {
        for (i = 0; i < KUBE_INPUTS; i++) {
            cells += (legal[s][i] && w.b.coverage[s][i] >= 20);
        }
    }

    cells += legal[KUBE_REFLECTOR_IDLE][KUBE_INPUT_START];
    assert_int_equal(cells, cells_expected);

    /* a walk that never got there shows nothing */
    assert_true(rollbacks > 0);
    assert_true(reached & (1ull << (KUBE_REFLECTOR_LISTING * 8
                                    + KUBE_REFLECTOR_OPENING)));
    assert_true(reached & (1ull << (KUBE_REFLECTOR_OPENING * 8
                                    + KUBE_REFLECTOR_WATCHING)));
    assert_true(reached & (1ull << (KUBE_REFLECTOR_WATCHING * 8
                                    + KUBE_REFLECTOR_OPENING)));

    assert_int_equal(reached & (1ull << (KUBE_REFLECTOR_STREAMING * 8
                                         + KUBE_REFLECTOR_WATCHING)),
                     (watch_list == KUBE_WATCH_LIST_OFF)
                     ? 0 : 1ull << (KUBE_REFLECTOR_STREAMING * 8
                                    + KUBE_REFLECTOR_WATCHING));

    assert_int_equal(say(&w.b, KUBE_INPUT_STOP), KUBE_ACTION_STOP);
    assert_int_equal(w.b.r.deadline_ms, KUBE_NEVER);
}


static void
test_random_walk(void **state)
{
    (void) state;

    random_walk(KUBE_WATCH_LIST_OFF, 40);
    random_walk(KUBE_WATCH_LIST_AUTO, 55);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_lagging_replica),
        cmocka_unit_test(test_half_list_floor),
        cmocka_unit_test(test_floor_of_a_predecessor),
        cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_random_walk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

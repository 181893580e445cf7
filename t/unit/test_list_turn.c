/*
 * test_list_turn - who may list: one at a time, in order, and nobody for ever.
 *
 * The module takes no memory, so there is no out-of-memory run.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_hash.h"
#include "kube_list_turn.h"


static void
test_in_order(void **state)
{
    kube_list_turn_t  turn;

    (void) state;

    kube_list_turn_init(&turn);

    assert_true(kube_list_turn_take(&turn, 3, 100));
    assert_true(kube_list_turn_take(&turn, 3, 100));
    assert_false(kube_list_turn_take(&turn, 1, 100));
    assert_false(kube_list_turn_take(&turn, 2, 100));
    assert_false(kube_list_turn_take(&turn, 0, 100));

    /* asking again keeps the place */
    assert_false(kube_list_turn_take(&turn, 2, 200));
    assert_int_equal(kube_list_turn_deadline(&turn, 1),
                     100 + KUBE_LIST_TURN_MS);
    assert_true(kube_list_turn_deadline(&turn, 2) == KUBE_NEVER);
    assert_true(kube_list_turn_deadline(&turn, 0) == KUBE_NEVER);

    kube_list_turn_give(&turn, 3);
    assert_false(kube_list_turn_take(&turn, 0, 300));
    assert_false(kube_list_turn_take(&turn, 2, 300));
    assert_int_equal(kube_list_turn_deadline(&turn, 1), 0);
    assert_true(kube_list_turn_take(&turn, 1, 300));

    /* who came back stands at the end */
    assert_false(kube_list_turn_take(&turn, 3, 300));
    kube_list_turn_give(&turn, 1);
    assert_true(kube_list_turn_take(&turn, 2, 400));
    kube_list_turn_give(&turn, 2);

    /* who waits no more is passed over */
    kube_list_turn_give(&turn, 0);
    assert_int_equal(kube_list_turn_deadline(&turn, 3), 0);
    assert_true(kube_list_turn_take(&turn, 3, 500));
    kube_list_turn_give(&turn, 3);
    kube_list_turn_give(&turn, 3);
    assert_true(kube_list_turn_take(&turn, 0, 500));
}


static void
test_no_progress(void **state)
{
    kube_list_turn_t  turn;

    (void) state;

    kube_list_turn_init(&turn);

    assert_true(kube_list_turn_take(&turn, 0, 1000));
    assert_false(kube_list_turn_take(&turn, 1, 2000));
    assert_false(kube_list_turn_take(&turn, 2, 2000));

    /* progress holds the turn */
    kube_list_turn_progress(&turn, 0, 5999);
    kube_list_turn_progress(&turn, 1, 9000);
    assert_int_equal(kube_list_turn_deadline(&turn, 1), 10999);
    assert_false(kube_list_turn_take(&turn, 1, 10998));

    /* none for 5 s, and it goes on beside the next */
    assert_false(kube_list_turn_take(&turn, 2, 10999));
    assert_true(kube_list_turn_take(&turn, 1, 10999));
    kube_list_turn_progress(&turn, 0, 12000);
    kube_list_turn_give(&turn, 0);
    assert_int_equal(kube_list_turn_deadline(&turn, 2), 15999);
    assert_false(kube_list_turn_take(&turn, 2, 15998));
    assert_true(kube_list_turn_take(&turn, 2, 15999));

    /* nobody waits: nobody loses */
    assert_true(kube_list_turn_take(&turn, 2, 1000000));
    assert_false(kube_list_turn_take(&turn, 5, 15999));
    kube_list_turn_progress(&turn, 2, 1000000);
    assert_int_equal(kube_list_turn_deadline(&turn, 5),
                     15999 + KUBE_LIST_TURN_MAX_MS);
}


/* A list that makes progress, but does not end. */
static void
test_drips(void **state)
{
    uint64_t          now_ms;
    kube_list_turn_t  turn;

    (void) state;

    kube_list_turn_init(&turn);

    assert_true(kube_list_turn_take(&turn, 0, 1000));

    for (now_ms = 2000; now_ms < 1000 + KUBE_LIST_TURN_MAX_MS; now_ms += 1000) {
        kube_list_turn_progress(&turn, 0, now_ms);
        assert_false(kube_list_turn_take(&turn, 1, now_ms));
    }

    assert_int_equal(kube_list_turn_deadline(&turn, 1), now_ms);
    kube_list_turn_progress(&turn, 0, now_ms - 1);
    assert_false(kube_list_turn_take(&turn, 1, now_ms - 1));
    assert_int_equal(kube_list_turn_deadline(&turn, 1), now_ms);
    assert_true(kube_list_turn_has(&turn, 0));
    assert_true(kube_list_turn_take(&turn, 1, now_ms));
    assert_false(kube_list_turn_has(&turn, 0));
    assert_true(kube_list_turn_has(&turn, 1));

    /* the next one has as long */
    assert_false(kube_list_turn_take(&turn, 2, now_ms));
    assert_int_equal(kube_list_turn_deadline(&turn, 2),
                     now_ms + KUBE_LIST_TURN_MS);
}


/* All scopes at random: each one that asks gets its turn, and in time. */
/* A list that has the turn of the one before it has time of its own. */
static void
test_another_list(void **state)
{
    uint64_t          now_ms;
    kube_list_turn_t  turn;

    (void) state;

    now_ms = 100 + KUBE_LIST_TURN_MAX_MS;
    kube_list_turn_init(&turn);

    assert_true(kube_list_turn_take(&turn, 3, 100));
    kube_list_turn_progress(&turn, 3, now_ms);
    kube_list_turn_anew(&turn, 1, now_ms);
    assert_int_equal(turn.since_ms, 100);

    kube_list_turn_anew(&turn, 3, now_ms);
    assert_false(kube_list_turn_take(&turn, 1, now_ms));
    assert_int_equal(kube_list_turn_deadline(&turn, 1),
                     now_ms + KUBE_LIST_TURN_MS);
}


static void
test_nobody_starves(void **state)
{
    unsigned          i, scope, lists;
    uint64_t          now_ms, asked_ms[KUBE_SCOPES_MAX];
    kube_random_t     random;
    kube_list_turn_t  turn;

    (void) state;

    kube_list_turn_init(&turn);
    kube_random_init(&random, 9);
    now_ms = 1;
    lists = 0;

    for (scope = 0; scope < KUBE_SCOPES_MAX; scope++) {
        asked_ms[scope] = KUBE_NEVER;
    }

    for (i = 0; i < 200000; i++) {
        now_ms += kube_random_range(&random, 0, 200);
        scope = (unsigned) kube_random_range(&random, 0, KUBE_SCOPES_MAX - 1);

        if (turn.waiting_n != 0 && kube_random_range(&random, 0, 1)) {
            scope = turn.waiting[0];
        }

        if (turn.holder == scope && kube_random_range(&random, 0, 1)) {
            kube_list_turn_give(&turn, scope);
            continue;
        }

        kube_list_turn_progress(&turn, scope, now_ms);

        if (asked_ms[scope] == KUBE_NEVER) {
            asked_ms[scope] = now_ms;
        }

        if (kube_list_turn_take(&turn, scope, now_ms)) {
            lists++;
            asked_ms[scope] = KUBE_NEVER;
        }

        assert_true(turn.waiting_n <= KUBE_SCOPES_MAX);
        assert_true(asked_ms[scope] == KUBE_NEVER
                    || now_ms - asked_ms[scope]
                       < 2 * KUBE_SCOPES_MAX * KUBE_LIST_TURN_MS);
    }

    assert_true(lists > 500);
}


/* A hold is for all, and the order stays. */
static void
test_held(void **state)
{
    kube_list_turn_t  turn;

    (void) state;

    kube_list_turn_init(&turn);
    kube_list_turn_hold(&turn, 9000);

    assert_false(kube_list_turn_take(&turn, 2, 1000));
    assert_false(kube_list_turn_take(&turn, 1, 1000));
    assert_int_equal(kube_list_turn_deadline(&turn, 2), 9000);
    assert_true(kube_list_turn_deadline(&turn, 1) == KUBE_NEVER);

    assert_false(kube_list_turn_take(&turn, 2, 8999));
    assert_false(kube_list_turn_take(&turn, 1, 9000));
    assert_true(kube_list_turn_take(&turn, 2, 9000));
    assert_int_equal(kube_list_turn_deadline(&turn, 1),
                     9000 + KUBE_LIST_TURN_MS);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_no_progress),
        cmocka_unit_test(test_drips),
        cmocka_unit_test(test_another_list),
        cmocka_unit_test(test_nobody_starves),
        cmocka_unit_test(test_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

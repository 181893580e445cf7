/*
 * test_backoff - bounds, doubling, reset, floor.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_backoff.h"


static const kube_backoff_conf_t  backoff_conf = {
    KUBE_BACKOFF_FIRST_MS, KUBE_BACKOFF_MAX_MS, KUBE_BACKOFF_UNREACHABLE_MS
};


/* Each sleep lies in [step/2, step] of 800, 1600, ... 30000. */
static void
backoff_doubles(void **state)
{
    unsigned        i, seed;
    uint64_t        step_ms, sleep_ms, low_ms, high_ms;
    kube_random_t   r;
    kube_backoff_t  b;

    (void) state;

    low_ms = UINT64_MAX;
    high_ms = 0;

    for (seed = 0; seed < 500; seed++) {
        kube_random_init(&r, seed);
        kube_backoff_init(&b, &backoff_conf);
        step_ms = 800;

        for (i = 0; i < 12; i++) {
            sleep_ms = kube_backoff_next(&b, &r, 1000, false, 0);
            assert_in_range(sleep_ms, step_ms / 2, step_ms);

            if (i == 0 && sleep_ms < low_ms) {
                low_ms = sleep_ms;
            }

            if (i == 0 && sleep_ms > high_ms) {
                high_ms = sleep_ms;
            }

            step_ms = (step_ms * 2 < 30000) ? step_ms * 2 : 30000;
        }
    }

    /* jitter fills the range */
    assert_in_range(low_ms, 400, 420);
    assert_in_range(high_ms, 780, 800);
}


static void
backoff_unreachable(void **state)
{
    unsigned        i;
    kube_random_t   r;
    kube_backoff_t  b;

    (void) state;

    kube_random_init(&r, 1);
    kube_backoff_init(&b, &backoff_conf);

    for (i = 0; i < 50; i++) {
        assert_true(kube_backoff_next(&b, &r, 1000, true, 0) <= 4000);
    }

    /* silence did not use up the steps of a server that answers */
    assert_in_range(kube_backoff_next(&b, &r, 1000, false, 0), 2000, 4000);
    assert_in_range(kube_backoff_next(&b, &r, 1000, false, 0), 4000, 8000);

    /* nor does it give them back */
    assert_true(kube_backoff_next(&b, &r, 1000, true, 0) <= 4000);
    assert_in_range(kube_backoff_next(&b, &r, 1000, false, 0), 8000, 16000);
}


static void
backoff_resets(void **state)
{
    unsigned        i;
    kube_random_t   r;
    kube_backoff_t  b;

    (void) state;

    kube_random_init(&r, 1);
    kube_backoff_init(&b, &backoff_conf);

    for (i = 0; i < 10; i++) {
        (void) kube_backoff_next(&b, &r, 1000, false, 0);
    }

    /* healthy for less than two minutes */
    kube_backoff_healthy(&b, 5000);
    assert_in_range(kube_backoff_next(&b, &r, 124999, false, 0), 15000,
                    30000);

    /* the failure ended that health */
    assert_in_range(kube_backoff_next(&b, &r, 200000, false, 0), 15000,
                    30000);

    /* a later report keeps the first time */
    kube_backoff_healthy(&b, 300000);
    kube_backoff_healthy(&b, 419999);
    assert_in_range(kube_backoff_next(&b, &r, 420000, false, 0), 400, 800);
    assert_in_range(kube_backoff_next(&b, &r, 420000, false, 0), 800, 1600);

    /* a clock at 0 counts as healthy too */
    kube_backoff_healthy(&b, 0);
    assert_in_range(kube_backoff_next(&b, &r, 120000, false, 0), 400, 800);
}


static void
backoff_floor(void **state)
{
    unsigned        i;
    uint64_t        sleep_ms, low_ms, high_ms;
    kube_random_t   r;
    kube_backoff_t  b;

    (void) state;

    kube_random_init(&r, 3);
    kube_backoff_init(&b, &backoff_conf);

    /* a floor above the ceiling, and up to half of it on top */
    low_ms = UINT64_MAX;
    high_ms = 0;

    for (i = 0; i < 500; i++) {
        sleep_ms = kube_backoff_next(&b, &r, 0, false, 60000);
        assert_in_range(sleep_ms, 60000, 90000);
        low_ms = (sleep_ms < low_ms) ? sleep_ms : low_ms;
        high_ms = (sleep_ms > high_ms) ? sleep_ms : high_ms;
    }

    assert_in_range(low_ms, 60000, 61000);
    assert_in_range(high_ms, 89000, 90000);

    for (i = 0; i < 20; i++) {
        sleep_ms = kube_backoff_next(&b, &r, 0, true, 3500);
        assert_in_range(sleep_ms, 3500, 5250);
    }

    kube_backoff_init(&b, &backoff_conf);
    assert_in_range(kube_backoff_next(&b, &r, 0, false, 1), 1, 1);
}


/* "1" for ever, as priority and fairness says it. */
static void
backoff_floors_in_a_row(void **state)
{
    unsigned        i, round;
    kube_random_t   r;
    kube_backoff_t  b;

    (void) state;

    kube_random_init(&r, 5);
    kube_backoff_init(&b, &backoff_conf);

    for (i = 0; i < 3; i++) {
        assert_in_range(kube_backoff_next(&b, &r, 0, false, 1000), 1000,
                        1500);
    }

    /* from the fourth on the step doubles: four seconds of it cost no ten */
    assert_in_range(kube_backoff_next(&b, &r, 0, false, 1000), 1000, 1500);
    assert_in_range(kube_backoff_next(&b, &r, 0, false, 1000), 1000, 1600);
    assert_in_range(kube_backoff_next(&b, &r, 0, false, 1000), 1600, 3200);
    assert_in_range(kube_backoff_next(&b, &r, 0, false, 1000), 3200, 6400);
    assert_in_range(kube_backoff_next(&b, &r, 0, false, 1000), 6400, 12800);
    assert_in_range(kube_backoff_next(&b, &r, 0, false, 1000), 12800, 25600);
    assert_in_range(kube_backoff_next(&b, &r, 0, false, 1000), 15000, 30000);

    /* health or a failure of another kind ends the row, not the step */
    for (round = 0; round < 2; round++) {

        if (round == 0) {
            kube_backoff_healthy(&b, 1);

        } else {
            assert_in_range(kube_backoff_next(&b, &r, 2, false, 0), 15000,
                            30000);
        }

        for (i = 0; i < 3; i++) {
            assert_in_range(kube_backoff_next(&b, &r, 2, false, 1000), 1000,
                            1500);
        }

        assert_in_range(kube_backoff_next(&b, &r, 2, false, 1000), 15000,
                        30000);
    }
}


static void
backoff_smallest(void **state)
{
    unsigned             i;
    uint64_t             sleep_ms;
    kube_random_t        r;
    kube_backoff_t       b;
    kube_backoff_conf_t  conf;

    (void) state;

    conf.first_ms = 1;
    conf.max_ms = 1;
    conf.unreachable_ms = 1;

    kube_random_init(&r, 3);
    kube_backoff_init(&b, &conf);

    /* never a sleep of 0: that would be a busy loop */
    for (i = 0; i < 100; i++) {
        sleep_ms = kube_backoff_next(&b, &r, 0, i % 2, 0);
        assert_int_equal(sleep_ms, 1);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(backoff_doubles),
        cmocka_unit_test(backoff_unreachable),
        cmocka_unit_test(backoff_resets),
        cmocka_unit_test(backoff_floor),
        cmocka_unit_test(backoff_floors_in_a_row),
        cmocka_unit_test(backoff_smallest)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

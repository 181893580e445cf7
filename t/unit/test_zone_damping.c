/*
 * test_zone_damping - kube_zone_damping: the table of delays after crashes,
 * and a process that dies before it holds the guard.  It allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_damping.h"
#include "zone_test.h"


/* crash at (ms), then the delay expected, in one zone. */
static void
test_damping_crash_delay(void **state)
{
    size_t              i;
    zone_test_t         t;
    kube_writer_info_t  info;

    static const struct {
        uint64_t  at_ms;
        uint64_t  delay_ms;
    } table[] = {
        { 100000, 0 },
        { 110000, 0 },
        { 120000, 0 },
        { 130000, 1000 },         /* the fourth in 60 s */
        { 132000, 2000 },
        { 135000, 4000 },
        { 140000, 8000 },
        { 149000, 16000 },
        { 166000, 30000 },
        { 200000, 30000 },
        { 290000, 30000 },        /* put off to 230000, within 60 s of it */
        { 380001, 0 },            /* 60.001 s after the start at 320000 */
        { 400000, 0 },
        { 1000000, 0 },
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_true(kube_zone_crash_delay(&t.zone, false, 5) == 0);

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_true(kube_zone_crash_delay(&t.zone, true, table[i].at_ms)
                    == table[i].delay_ms);

        /* asked again, without a crash: what is left of it */
        assert_true(kube_zone_crash_delay(&t.zone, false,
                                          table[i].at_ms + 400)
                    == (table[i].delay_ms > 400 ? table[i].delay_ms - 400
                                                : 0));
        assert_true(kube_zone_crash_delay(&t.zone, false,
                                          table[i].at_ms
                                          + table[i].delay_ms) == 0);
    }

    kube_zone_writer_info(&t.zone, &info);
    assert_int_equal(info.crashes, i);
    assert_int_equal(info.crash_times_ms[0], 1000000);
    assert_int_equal(info.crash_times_ms[1], 400000);
    assert_int_equal(info.crash_times_ms[3], 290000);
    zone_test_close(&t);
}


/* What tells a crash before the guard is held. */
static void
test_damping_starting(void **state)
{
    zone_test_t      t;
    kube_takeover_t  takeover;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_zone_writer_release(t.writer);

    assert_true(kube_zone_starting(&t.zone, 10) == 0);
    assert_true(kube_zone_starting(&t.zone, 11) == 10);

    /* 10 leaves late: 11's note stays */
    kube_zone_started(&t.zone, 10);
    assert_true(kube_zone_starting(&t.zone, 12) == 11);
    kube_zone_started(&t.zone, 12);
    assert_true(kube_zone_starting(&t.zone, 13) == 0);

    /* who takes the guard has started: from there on its lock tells */
    zone_test_acquire(&t, 2000, &takeover);
    assert_true(kube_zone_starting(&t.zone, 14) == 0);

    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_damping_crash_delay),
        cmocka_unit_test(test_damping_starting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_zone_damping - kube_zone_damping: the table of delays after crashes,
 * and a process that dies before it holds the guard.  It allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_damping.h"
#include "zone_test.h"


/* A crash; the delays after it lie as said: resume_ms within +- 50 %. */
static void
damping_crash(zone_test_t *t, bool blameless, uint64_t random, uint64_t at_ms,
    uint64_t resume_ms, uint64_t list_ms)
{
    uint64_t            longest;
    kube_zone_delay_t   d, left;

    kube_zone_crashed(&t->zone, blameless, random, at_ms);
    kube_zone_crash_delay(&t->zone, at_ms, &d);

    assert_in_range(d.resume_ms, resume_ms / 2, resume_ms / 2 + resume_ms);

    longest = (d.resume_ms > list_ms) ? d.resume_ms : list_ms;
    assert_int_equal(d.list_ms, longest);

    /* asked again: what is left of it */
    kube_zone_crash_delay(&t->zone, at_ms + 400, &left);
    assert_int_equal(left.resume_ms, d.resume_ms > 400 ? d.resume_ms - 400
                                                       : 0);
    assert_int_equal(left.list_ms, d.list_ms > 400 ? d.list_ms - 400 : 0);

    kube_zone_crash_delay(&t->zone, at_ms + longest, &left);
    assert_int_equal(left.resume_ms, 0);
    assert_int_equal(left.list_ms, 0);
}


/* crash at (ms), then the delays expected, in one zone. */
static void
test_damping_crash_delay(void **state)
{
    size_t              i;
    zone_test_t         t;
    kube_zone_delay_t   d;
    kube_writer_info_t  info;

    static const struct {
        uint64_t  at_ms;
        uint64_t  resume_ms;
        uint64_t  list_ms;
    } table[] = {
        { 100000, 0, 0 },
        { 110000, 0, 0 },
        { 120000, 0, 0 },
        { 130000, 1000, 1000 },       /* the fourth in 60 s */
        { 132000, 1000, 2000 },
        { 135000, 1000, 4000 },
        { 140000, 1000, 8000 },
        { 149000, 1000, 16000 },
        { 166000, 1000, 30000 },
        { 200000, 1000, 30000 },
        { 290000, 1000, 30000 },      /* put off to 230000, within 60 s of it */
        { 380001, 0, 0 },             /* 60.001 s after the start at 320000 */
        { 400000, 0, 0 },
        { 1000000, 0, 0 },
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    kube_zone_crash_delay(&t.zone, 5, &d);
    assert_int_equal(d.resume_ms, 0);
    assert_int_equal(d.list_ms, 0);

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        damping_crash(&t, i % 2, 7919 * i, table[i].at_ms,
                      table[i].resume_ms, table[i].list_ms);
    }

    kube_zone_writer_info(&t.zone, &info);
    assert_int_equal(info.crashes, i);
    assert_int_equal(info.crash_times_ms[0], 1000000);
    assert_int_equal(info.crash_times_ms[1], 400000);
    assert_int_equal(info.crash_times_ms[3], 290000);
    zone_test_close(&t);
}


/* The jitter reaches both ends, and a clock that begins anew waits for none. */
static void
test_damping_jitter(void **state)
{
    uint64_t           i, least, most;
    zone_test_t        t;
    kube_zone_delay_t  d;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    least = UINT64_MAX;
    most = 0;

    for (i = 0; i < 4000; i++) {
        kube_zone_crashed(&t.zone, false, i, 100000 + i);
        kube_zone_crash_delay(&t.zone, 100000 + i, &d);

        if (i >= 3) {
            least = (d.resume_ms < least) ? d.resume_ms : least;
            most = (d.resume_ms > most) ? d.resume_ms : most;
        }
    }

    assert_int_equal(least, 500);
    assert_int_equal(most, 1500);

    kube_zone_crash_delay(&t.zone, 10, &d);
    assert_int_equal(d.resume_ms, 0);
    assert_int_equal(d.list_ms, 0);
    zone_test_close(&t);
}


/* Sixty crashes of a loop that nobody is to blame for: longer. */
static void
test_damping_blameless(void **state)
{
    unsigned     i;
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (i = 0; i < 8; i++) {
        kube_zone_crashed(&t.zone, false, 0, 10000 + 2000 * i);
    }

    for (i = 0; i < 60; i++) {
        damping_crash(&t, true, i * 31, 30000 + 2000 * i, 1000, 30000);
        damping_crash(&t, false, i * 31, 30001 + 2000 * i, 1000, 30000);
    }

    damping_crash(&t, true, i, 150002, 5000, 30000);
    damping_crash(&t, false, i, 160002, 5000, 30000);

    /* a new loop begins anew */
    damping_crash(&t, true, i, 1000000, 0, 0);
    damping_crash(&t, true, i, 1000001, 0, 0);
    damping_crash(&t, true, i, 1000002, 0, 0);
    damping_crash(&t, true, i, 1000003, 1000, 1000);
    zone_test_close(&t);
}


/* What the status shows of scopes that wait. */
static void
test_damping_shown(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1 << 20);
    kube_zone_scope_set(&t.zone, 2, KUBE_COUNTER_GAUGE_WATCH_OPEN, 1);
    kube_zone_scope_set(&t.zone, 4, KUBE_COUNTER_GAUGE_WATCH_OPEN, 1);

    kube_zone_damped(&t.zone, 2, 2, 4711);

    assert_int_equal(kube_zone_scope_counter(&t.zone, 1,
                                             KUBE_COUNTER_GAUGE_STATE),
                     KUBE_STATE_IDLE);
    assert_int_equal(kube_zone_scope_counter(&t.zone, 2,
                                             KUBE_COUNTER_GAUGE_STATE),
                     KUBE_STATE_DAMPED);
    assert_int_equal(kube_zone_scope_counter(&t.zone, 3,
                                             KUBE_COUNTER_GAUGE_RETRY_AT_MS),
                     4711);
    assert_int_equal(kube_zone_scope_counter(&t.zone, 2,
                                             KUBE_COUNTER_GAUGE_WATCH_OPEN),
                     0);
    assert_int_equal(kube_zone_scope_counter(&t.zone, 4,
                                             KUBE_COUNTER_GAUGE_WATCH_OPEN),
                     1);

    /* scopes that the zone has not are passed over */
    kube_zone_damped(&t.zone, 0, 2 * KUBE_SCOPES_MAX, 1);
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


/* A zone that is changed again and again is taken over more and more seldom. */
static void
test_damping_disturbed(void **state)
{
    unsigned     i, n;
    uint64_t     now_ms, wait_ms, last_ms;
    zone_test_t  t;

    static const struct {
        const char  *name;
        uint64_t     quiet_ms;         /* before it is found again */
        uint64_t     wait_ms;
    } table[] = {
        { "the first",          0,            10000 },
        { "as soon as it may",  10000,        20000 },
        { "again",              20000,        40000 },
        { "a little later",     40000 + 5000, 80000 },
        { "again",              80000,        160000 },
        { "again",              160000,       320000 },
        { "no longer than",     320000,       600000 },
        { "that",               600000,       600000 },
        { "after ten minutes",  1200001,      10000 },
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    now_ms = 5000000;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        now_ms += table[i].quiet_ms;

        if (!kube_zone_disturbed(&t.zone, now_ms, &wait_ms)
            || wait_ms != table[i].wait_ms)
        {
            fail_msg("%s: %llu ms", table[i].name,
                     (unsigned long long) wait_ms);
        }

        assert_false(kube_zone_disturbed(&t.zone, now_ms + wait_ms - 1,
                                         &last_ms));
    }

    /* an hour of it is nine lists, and not 360 */
    now_ms += 100000000;
    n = 0;

    for (i = 0; i < 360; i++) {
        n += kube_zone_disturbed(&t.zone, now_ms + i * 10000ull, &wait_ms);
    }

    assert_in_range(n, 5, 12);

    /* whatever its words say, it is no more than ten minutes */
    kube_word_set(&t.zone.image->history.disturbed_until_ms, UINT64_MAX);
    kube_word_set(&t.zone.image->history.disturbance_run, UINT64_MAX);
    assert_true(kube_zone_disturbed(&t.zone, now_ms, &wait_ms));
    kube_word_set(&t.zone.image->history.disturbance_run, UINT64_MAX);
    assert_true(kube_zone_disturbed(&t.zone, now_ms + wait_ms, &wait_ms));
    assert_int_equal(wait_ms, 600000);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_damping_crash_delay),
        cmocka_unit_test(test_damping_jitter),
        cmocka_unit_test(test_damping_blameless),
        cmocka_unit_test(test_damping_shown),
        cmocka_unit_test(test_damping_starting),
        cmocka_unit_test(test_damping_disturbed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

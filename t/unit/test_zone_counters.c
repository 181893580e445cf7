/*
 * test_zone_counters - kube_zone_counters: the rows, workers, histograms.
 * Nothing there allocates.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "zone_test.h"


/* Metrics are printed as the rows say: whole, and by family. */
static void
test_counters_rows(void **state)
{
    bool                        closed;
    unsigned                    i, k, metrics;
    const kube_counter_info_t  *row, *other;

    (void) state;
    metrics = 0;

    for (i = 0; i < KUBE_COUNTERS; i++) {
        row = kube_counter_info((kube_counter_t) i);

        if (row->metric == NULL) {
            assert_true(row->label == NULL && row->value == NULL);
            continue;
        }

        metrics++;
        assert_true(kube_str(row->help).len > 5);
        assert_int_equal(row->label == NULL, row->value == NULL);
        closed = false;

        for (k = i + 1; k < KUBE_COUNTERS; k++) {
            other = kube_counter_info((kube_counter_t) k);

            if (other->metric == NULL
                || strcmp(other->metric, row->metric) != 0)
            {
                closed = true;
                continue;
            }

            assert_false(closed);
            assert_non_null(row->label);
            assert_string_equal(row->label, other->label);
            assert_string_not_equal(row->value, other->value);
        }
    }

    assert_int_equal(metrics, KUBE_COUNTER_GAUGE_STATE - 1);
    assert_string_equal(kube_counter_info(KUBE_COUNTER_ERRORS_TOO_MANY)->value,
                        "too_many_requests");
}


static void
test_counters_of_rc(void **state)
{
    (void) state;
    assert_int_equal(kube_counter_of_rc(KUBE_TLS), KUBE_COUNTER_ERRORS_TLS);
    assert_int_equal(kube_counter_of_rc(KUBE_PROTO),
                     KUBE_COUNTER_ERRORS_PROTOCOL);
    assert_int_equal(kube_counter_of_rc(KUBE_NOMEM),
                     KUBE_COUNTER_ERRORS_OTHER);
    assert_int_equal(kube_counter_of_rc(KUBE_OK), KUBE_COUNTER_ERRORS_OTHER);
}


static void
test_counters_workers(void **state)
{
    unsigned     i;
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (i = 0; i < 200; i++) {
        kube_zone_worker_add(&t.zone, i, 3, i);
        kube_zone_worker_add(&t.zone, i, KUBE_WORKER_COUNTERS, 1);
    }

    kube_zone_worker_count(kube_zone_worker_row(&t.zone, 77), 3);

    assert_int_equal(kube_zone_worker_sum(&t.zone, 3), 199 * 200 / 2 + 1);
    assert_int_equal(kube_zone_worker_sum(&t.zone, 4), 0);
    assert_int_equal(kube_zone_worker_sum(&t.zone, KUBE_WORKER_COUNTERS), 0);
    zone_test_close(&t);
}


static void
test_counters_histograms(void **state)
{
    unsigned          id, i;
    zone_test_t       t;
    const uint64_t   *bounds;
    kube_histogram_t  h;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (id = 0; id < KUBE_HISTOGRAMS; id++) {
        bounds = kube_histogram_info((kube_histogram_id_t) id)->bounds;

        for (i = 1; i < KUBE_HISTOGRAM_BUCKETS; i++) {
            assert_true(bounds[i] > bounds[i - 1]);
        }

        /* a bound belongs to its own bucket */
        kube_zone_histogram_observe(&t.zone, (kube_histogram_id_t) id,
                                    KUBE_RESOURCE_ENDPOINTSLICES, bounds[4]);
        kube_zone_histogram_observe(&t.zone, (kube_histogram_id_t) id,
                                    KUBE_RESOURCE_ENDPOINTSLICES,
                                    bounds[4] + 1);
        kube_zone_histogram_observe(&t.zone, (kube_histogram_id_t) id,
                                    KUBE_RESOURCE_ENDPOINTSLICES,
                                    UINT64_MAX / 4);
        kube_zone_histogram_read(&t.zone, (kube_histogram_id_t) id,
                                 KUBE_RESOURCE_ENDPOINTSLICES, &h);
        assert_int_equal(h.buckets[4], 1);
        assert_int_equal(h.buckets[5], 1);
        assert_int_equal(h.buckets[KUBE_HISTOGRAM_BUCKETS], 1);
        assert_int_equal(h.count, 3);
        assert_true(h.sum == 2 * bounds[4] + 1 + UINT64_MAX / 4);

        kube_zone_histogram_read(&t.zone, (kube_histogram_id_t) id,
                                 KUBE_RESOURCE_SERVICES, &h);
        assert_int_equal(h.count, 0);
    }

    kube_zone_histogram_observe(&t.zone, KUBE_HISTOGRAMS,
                                KUBE_RESOURCE_SERVICES, 1);
    zone_test_close(&t);
}


/* A mark lasts as long as some worker repeats it. */
static void
test_counters_marks(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);

#define OVER(now_ms)  kube_zone_worker_over_budget_since(&t.zone, now_ms)

    assert_int_equal(OVER(1000), 0);

    kube_zone_worker_over_budget(&t.zone, 3, 1000);
    kube_zone_worker_over_budget(&t.zone, 3, 2000);
    kube_zone_worker_over_budget(&t.zone, 4, 3000);
    assert_int_equal(OVER(3000), 1000);

    /* who looks has read the clock before the worker did */
    assert_int_equal(OVER(1999), 1000);

    /* the first worker has died, or is well again */
    assert_int_equal(OVER(2001 + KUBE_MARK_LASTS_MS), 3000);
    assert_int_equal(OVER(3001 + KUBE_MARK_LASTS_MS), 0);

    /* after a pause it begins anew */
    kube_zone_worker_over_budget(&t.zone, 3 + KUBE_WORKER_ROWS,
                                 3000 + 2 * KUBE_MARK_LASTS_MS);
    assert_int_equal(OVER(3000 + 2 * KUBE_MARK_LASTS_MS),
                     3000 + 2 * KUBE_MARK_LASTS_MS);

    /* a clock that was set back does not hide it until it is there again */
    kube_zone_worker_over_budget(&t.zone, 3, 500);
    assert_int_equal(OVER(500), 500);
#undef OVER

    zone_test_close(&t);
}


static void
test_counters_truncated(void **state)
{
    size_t            i;
    zone_test_t       t;
    kube_truncated_t  put, got;

    (void) state;
    zone_test_open(&t, 1u << 20);
    memset(&put, 0, sizeof(kube_truncated_t));

    kube_zone_worker_truncated_read(&t.zone, 3, 1000, &got);
    assert_int_equal(got.n, 0);

    for (i = 0; i < KUBE_TRUNCATED_SHOWN_MAX; i++) {
        put.rows[i].since_ms = 5000 + 1000 * i;
        put.rows[i].entry = (uint32_t) i + 7;
    }

    put.n = 2;
    kube_zone_worker_truncated(&t.zone, 3 + KUBE_WORKER_ROWS, 1000, &put);
    kube_zone_worker_truncated_read(&t.zone, 3, 1000 + KUBE_MARK_LASTS_MS,
                                    &got);
    assert_int_equal(got.n, 2);
    assert_int_equal(got.rows[1].since_ms, 6000);
    assert_int_equal(got.rows[1].entry, 8);
    assert_int_equal(got.rows[2].entry, 0);
    kube_zone_worker_truncated_read(&t.zone, 3, 1001 + KUBE_MARK_LASTS_MS,
                                    &got);
    assert_int_equal(got.n, 0);

    /* more than there are rows, and no such row */
    put.n = KUBE_TRUNCATED_SHOWN_MAX + 3;
    kube_zone_worker_truncated(&t.zone, 3, 2000, &put);
    kube_zone_worker_truncated_read(&t.zone, 3, 2000, &got);
    assert_memory_equal(&got, &put, sizeof(kube_truncated_t));
    kube_zone_worker_truncated_read(&t.zone, KUBE_WORKER_ROWS, 2000, &got);
    assert_int_equal(got.n, 0);

    /* none any more */
    put.n = 0;
    kube_zone_worker_truncated(&t.zone, 3, 2001, &put);
    kube_zone_worker_truncated_read(&t.zone, 3, 2001, &got);
    assert_int_equal(got.n, 0);

    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_counters_rows),
        cmocka_unit_test(test_counters_of_rc),
        cmocka_unit_test(test_counters_workers),
        cmocka_unit_test(test_counters_histograms),
        cmocka_unit_test(test_counters_marks),
        cmocka_unit_test(test_counters_truncated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

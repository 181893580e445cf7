/*
 * test_work_queue - order, each once, the earliest time; and a queue that
 * delays and knows what is worked on, beside a model of it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_hash.h"
#include "kube_work_queue.h"


#define ITEMS  64


static void
test_queue_order(void **state)
{
    uint64_t            ms;
    alloc_test_t        at;
    kube_work_queue_t  *q;

    (void) state;

    alloc_test_init(&at);
    q = kube_work_queue_create(&at.alloc, 3);
    assert_non_null(q);

    assert_int_equal(kube_work_queue_pop(q, &ms), 0);

    kube_work_queue_add(q, 2, 20);
    kube_work_queue_add(q, 3, 30);
    kube_work_queue_add(q, 2, 10);
    kube_work_queue_add(q, 2, 40);
    assert_int_equal(kube_work_queue_depth(q), 2);

    assert_int_equal(kube_work_queue_pop(q, &ms), 2);
    assert_int_equal(ms, 10);

    /* added while it is worked on: it comes again, behind the others */
    kube_work_queue_add(q, 2, 50);
    assert_int_equal(kube_work_queue_pop(q, &ms), 3);
    assert_int_equal(kube_work_queue_pop(q, &ms), 2);
    assert_int_equal(ms, 50);
    assert_int_equal(kube_work_queue_pop(q, &ms), 0);

    /* out of range: nothing happens */
    kube_work_queue_add(q, 0, 1);
    kube_work_queue_add(q, 4, 1);
    kube_work_queue_remove(q, 0);
    kube_work_queue_remove(q, 4);
    kube_work_queue_remove(q, 1);
    assert_int_equal(kube_work_queue_depth(q), 0);

    kube_work_queue_destroy(q);
    kube_work_queue_destroy(NULL);
    alloc_test_assert_no_leak(&at);
}


static void
test_queue_random(void **state)
{
    size_t              n, i;
    uint32_t            item, model[ITEMS];
    uint64_t            ms, times[ITEMS + 1];
    unsigned            step;
    alloc_test_t        at;
    kube_random_t       random;
    kube_work_queue_t  *q;

    (void) state;

    alloc_test_init(&at);
    kube_random_init(&random, 3);
    q = kube_work_queue_create(&at.alloc, ITEMS);
    assert_non_null(q);
    n = 0;

    for (step = 0; step < 100000; step++) {
        item = (uint32_t) kube_random_range(&random, 1, ITEMS);

        for (i = 0; i < n && model[i] != item; i++) {
            /* void */
        }

        switch (kube_random_range(&random, 0, 3)) {
        case 0:
        case 1:
            ms = kube_random_range(&random, 1, 1000);
            kube_work_queue_add(q, item, ms);

            if (i == n) {
                model[n++] = item;
                times[item] = ms;

            } else if (ms < times[item]) {
                times[item] = ms;
            }

            break;

        case 2:
            kube_work_queue_remove(q, item);

            if (i < n) {
                memmove(&model[i], &model[i + 1],
                        (n - i - 1) * sizeof(uint32_t));
                n--;
            }

            break;

        default:
            item = kube_work_queue_pop(q, &ms);
            assert_int_equal(item, n != 0 ? model[0] : 0);

            if (n != 0) {
                assert_int_equal(ms, times[item]);
                memmove(&model[0], &model[1], (n - 1) * sizeof(uint32_t));
                n--;
            }
        }

        assert_int_equal(kube_work_queue_depth(q), n);
    }

    kube_work_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


static kube_rc_t
queue_create(kube_alloc_t *alloc, void *ctx)
{
    kube_work_queue_t  *q;

    (void) ctx;

    q = kube_work_queue_create(alloc, ITEMS);
    kube_work_queue_destroy(q);

    return (q != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static void
test_queue_oom(void **state)
{
    (void) state;

    ALLOC_TEST_EACH(queue_create, NULL);
}


/* Of the model: what of an item is true. */
typedef struct {
    bool      working;
    bool      again;
    uint64_t  due_ms;         /* KUBE_NEVER: it is not delayed */
} model_t;

#define MODEL  8


static void
test_limited_random(void **state)
{
    size_t              n, i, first;
    bool                waits;
    model_t             model[MODEL + 1];
    uint32_t            item, got, queue[MODEL];
    uint64_t            now_ms, delay_ms;
    unsigned            step;
    kube_rc_t           rc;
    alloc_test_t        at;
    kube_random_t       random;
    kube_work_queue_t  *q;

    (void) state;

    alloc_test_init(&at);
    kube_random_init(&random, 5);
    q = kube_work_queue_create_limited(&at.alloc, MODEL,
                                       kube_rate_limiter_default(&at.alloc,
                                                                 MODEL));
    assert_non_null(q);
    assert_null(kube_work_queue_create_limited(&at.alloc, MODEL, NULL));

    n = 0;
    now_ms = 1000;

    for (i = 1; i <= MODEL; i++) {
        model[i] = (model_t) { .due_ms = KUBE_NEVER };
    }

    for (step = 0; step < 100000; step++) {
        item = (uint32_t) kube_random_range(&random, 1, MODEL);
        waits = false;

        for (i = 0; i < n; i++) {
            waits = (waits || queue[i] == item);
        }

        switch (kube_random_range(&random, 0, 4)) {

        case 0:
            kube_work_queue_add(q, item, now_ms);

            if (model[item].working) {
                model[item].again = true;

            } else if (!waits) {
                queue[n++] = item;
            }

            break;

        case 1:
            delay_ms = kube_random_range(&random, 1, 50);
            assert_int_equal(kube_work_queue_add_after(q, item, delay_ms,
                                                       now_ms),
                             KUBE_OK);

            if (now_ms + delay_ms < model[item].due_ms) {
                model[item].due_ms = now_ms + delay_ms;
            }

            break;

        case 2:
            kube_work_queue_done(q, item, now_ms);

            if (model[item].working && model[item].again) {
                queue[n++] = item;
            }

            model[item].working = false;
            model[item].again = false;
            break;

        case 3:
            now_ms++;

            for (i = 1; i <= MODEL; i++) {
                if (model[i].due_ms < now_ms) {
                    fail_msg("item %zu was due", i);
                }
            }

            /* fall through */

        default:

            for ( ;; ) {
                first = 0;

                for (i = 1; i <= MODEL; i++) {
                    if (model[i].due_ms <= now_ms) {
                        first = i;
                        model[i].due_ms = KUBE_NEVER;
                        break;
                    }
                }

                if (first == 0) {
                    break;
                }

                for (i = 0, waits = false; i < n; i++) {
                    waits = (waits || queue[i] == first);
                }

                if (model[first].working) {
                    model[first].again = true;

                } else if (!waits) {
                    queue[n++] = (uint32_t) first;
                }
            }

            rc = kube_work_queue_get(q, now_ms, &got);
            assert_int_equal(rc, n ? KUBE_OK : KUBE_AGAIN);

            if (n == 0) {
                break;
            }

            /* those that were due together may come in any order */

            for (i = 0; i < n && queue[i] != got; i++) {
                /* void */
            }

            assert_true(i < n);
            memmove(&queue[i], &queue[i + 1], (n - i - 1) * sizeof(uint32_t));
            n--;
            model[got].working = true;
        }

        if (n != 0) {
            assert_true(kube_work_queue_deadline(q) <= now_ms);
        }
    }

    kube_work_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


/* What was added while it was worked on, and is removed, does not wait. */
static void
test_removed_at_work(void **state)
{
    uint32_t              item;
    alloc_test_t          at;
    kube_work_queue_t    *q;
    kube_work_metrics_t   m;

    (void) state;

    alloc_test_init(&at);
    q = kube_work_queue_create_limited(&at.alloc, 2,
                                       kube_rate_limiter_default(&at.alloc,
                                                                 2));
    assert_non_null(q);

    kube_work_queue_add(q, 1, 1000);
    assert_int_equal(kube_work_queue_get(q, 1000, &item), KUBE_OK);
    kube_work_queue_add(q, 1, 1000);
    kube_work_queue_metrics(q, 1000, &m);
    assert_int_equal(m.depth, 1);

    kube_work_queue_remove(q, 1);
    kube_work_queue_metrics(q, 1000, &m);
    assert_int_equal(m.depth, 0);
    kube_work_queue_done(q, 1, 1000);
    assert_int_equal(kube_work_queue_get(q, 1000, &item), KUBE_AGAIN);

    kube_work_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_queue_order),
        cmocka_unit_test(test_queue_random),
        cmocka_unit_test(test_queue_oom),
        cmocka_unit_test(test_limited_random),
        cmocka_unit_test(test_removed_at_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_rate_limiter - the bucket beside the tokens it stands for, what is out
 * of range, and memory that is short.
 *
 * What client-go's tests ask of limiters is in test_clientgo_workqueue.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_hash.h"
#include "kube_rate_limiter.h"


#define PER_SECOND  10
#define BURST       4


/* In ms, tokens by the thousand: golang.org/x/time/rate's reservation. */
static void
test_bucket_is_tokens(void **state)
{
    int64_t               tokens;
    uint64_t              now_ms, ms;
    unsigned              step;
    alloc_test_t          at;
    kube_random_t         random;
    kube_rate_limiter_t  *l;

    (void) state;

    alloc_test_init(&at);
    kube_random_init(&random, 9);
    l = kube_rate_limiter_bucket(&at.alloc, PER_SECOND, BURST);
    assert_non_null(l);

    tokens = BURST * 1000;
    now_ms = 0;

    for (step = 0; step < 10000; step++) {

        if (kube_random_range(&random, 0, 3) == 0) {
            ms = kube_random_range(&random, 0, 700);
            now_ms += ms;
            tokens += (int64_t) ms * PER_SECOND;

            if (tokens > BURST * 1000) {
                tokens = BURST * 1000;
            }
        }

        tokens -= 1000;
        assert_int_equal(kube_rate_limiter_when(l, 1, now_ms),
                         (tokens >= 0) ? 0 : -tokens / PER_SECOND);
    }

    assert_int_equal(kube_rate_limiter_requeues(l, 1), 0);
    kube_rate_limiter_forget(l, 1);

    kube_rate_limiter_destroy(l);
    alloc_test_assert_no_leak(&at);
}


/* A token that comes between two milliseconds is there at the later one. */
static void
test_bucket_rounds_up(void **state)
{
    alloc_test_t          at;
    kube_rate_limiter_t  *l;

    (void) state;

    alloc_test_init(&at);
    l = kube_rate_limiter_bucket(&at.alloc, 3, 1);
    assert_non_null(l);

    assert_int_equal(kube_rate_limiter_when(l, 1, 1000), 0);
    assert_int_equal(kube_rate_limiter_when(l, 1, 1000), 334);
    assert_int_equal(kube_rate_limiter_when(l, 1, 1000), 667);

    kube_rate_limiter_destroy(l);
    alloc_test_assert_no_leak(&at);
}


/* 100 at once, then ten a second, though each waits 5 ms at least. */
static void
test_default(void **state)
{
    uint32_t              i;
    alloc_test_t          at;
    kube_rate_limiter_t  *l;

    (void) state;

    alloc_test_init(&at);
    l = kube_rate_limiter_default(&at.alloc, 1000);
    assert_non_null(l);

    for (i = 1; i <= 200; i++) {
        assert_int_equal(kube_rate_limiter_when(l, i, 77),
                         (i <= 100) ? 5 : (i - 100) * 100);
    }

    kube_rate_limiter_destroy(l);
    alloc_test_assert_no_leak(&at);
}


/* The largest item is one, and both of a pair forget it. */
static void
test_last_item(void **state)
{
    alloc_test_t          at;
    kube_rate_limiter_t  *l;

    (void) state;

    alloc_test_init(&at);
    l = kube_rate_limiter_max_of(&at.alloc,
            kube_rate_limiter_exponential(&at.alloc, 2, 1, 1000),
            kube_rate_limiter_fast_slow(&at.alloc, 2, 3, 500, 2));
    assert_non_null(l);

    assert_int_equal(kube_rate_limiter_when(l, 2, 5), 3);
    assert_int_equal(kube_rate_limiter_when(l, 2, 5), 3);
    assert_int_equal(kube_rate_limiter_when(l, 2, 5), 500);
    assert_int_equal(kube_rate_limiter_requeues(l, 2), 3);

    kube_rate_limiter_forget(l, 2);
    assert_int_equal(kube_rate_limiter_requeues(l, 2), 0);
    assert_int_equal(kube_rate_limiter_when(l, 2, 5), 3);

    kube_rate_limiter_destroy(l);
    alloc_test_assert_no_leak(&at);
}


static void
test_out_of_range(void **state)
{
    alloc_test_t          at;
    kube_rate_limiter_t  *l;

    (void) state;

    alloc_test_init(&at);

    assert_null(kube_rate_limiter_bucket(&at.alloc, 0, 1));
    assert_null(kube_rate_limiter_bucket(&at.alloc, 1000001, 1));
    assert_null(kube_rate_limiter_exponential(&at.alloc, 0, 1, 1));
    assert_null(kube_rate_limiter_fast_slow(&at.alloc, 0, 1, 1, 1));
    assert_null(kube_rate_limiter_max_wait(&at.alloc, NULL, 1));
    assert_null(kube_rate_limiter_max_of(&at.alloc, NULL,
                    kube_rate_limiter_bucket(&at.alloc, 1, 1)));
    assert_null(kube_rate_limiter_max_of(&at.alloc,
                    kube_rate_limiter_bucket(&at.alloc, 1, 1), NULL));

    l = kube_rate_limiter_exponential(&at.alloc, 2, 1, 1000);
    assert_non_null(l);
    assert_int_equal(kube_rate_limiter_when(l, 3, 5), 1);
    assert_int_equal(kube_rate_limiter_when(l, 3, 5), 1);
    assert_int_equal(kube_rate_limiter_requeues(l, 3), 0);
    kube_rate_limiter_forget(l, 3);
    kube_rate_limiter_destroy(l);
    kube_rate_limiter_destroy(NULL);

    /* the largest of each, at the end of time as it is counted */

    l = kube_rate_limiter_bucket(&at.alloc, 1, UINT32_MAX);
    assert_non_null(l);
    assert_int_equal(kube_rate_limiter_when(l, 1, UINT64_MAX / 4000), 0);
    kube_rate_limiter_destroy(l);

    alloc_test_assert_no_leak(&at);
}


static kube_rc_t
rate_create(kube_alloc_t *alloc, void *ctx)
{
    kube_rate_limiter_t  *l;

    (void) ctx;

    l = kube_rate_limiter_max_wait(alloc, kube_rate_limiter_default(alloc, 9),
                                   7);
    if (l == NULL) {
        return KUBE_NOMEM;
    }

    kube_rate_limiter_destroy(l);
    l = kube_rate_limiter_fast_slow(alloc, 9, 1, 2, 3);
    kube_rate_limiter_destroy(l);

    return (l != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static void
test_rate_oom(void **state)
{
    (void) state;

    ALLOC_TEST_EACH(rate_create, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_bucket_is_tokens),
        cmocka_unit_test(test_bucket_rounds_up),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_last_item),
        cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_rate_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_clientgo_workqueue - the scenarios of client-go's util/workqueue: of
 * queue_test.go, delaying_queue_test.go, default_rate_limiters_test.go,
 * rate_limiting_queue_test.go and metrics_test.go.
 *
 * The first table is for a plain queue, from which an item is popped as the
 * publisher does; the second for one that knows what is worked on.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_work_queue.h"


#define ITEMS  50

/*
 * What is done: "a" adds an item, "-" takes one and works on it until "."; and
 * what was taken, in order.
 */
static const struct {
    const char  *title;
    const char  *done;
    const char  *taken;
} scenarios[] = {
    { "AddWhileProcessing", "ab-a.-b.-.-.", "abab" },
    { "Len", "aba", "ab" },
    { "Reinsert", "a-.a-.", "aa" },
    { "Reinsert, at once", "a-a.-.-.", "aa" },
    { "Collapse", "aaba-.-.", "ab" },
    { "CollapseWhileProcessing", "a-aaa.-.-.", "aa" }
};


static void
test_add_and_take(void **state)
{
    char                taken[16];
    size_t              i, n;
    uint64_t            ms;
    uint32_t            item;
    const char         *p;
    alloc_test_t        at;
    kube_work_queue_t  *q;

    (void) state;

    for (i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        alloc_test_init(&at);
        q = kube_work_queue_create(&at.alloc, ITEMS);
        assert_non_null(q);
        n = 0;

        for (p = scenarios[i].done; *p != '\0'; p++) {

            if (*p == '-') {
                item = kube_work_queue_pop(q, &ms);

                if (item != 0) {
                    taken[n++] = (char) ('a' + item - 1);
                }

            } else if (*p != '.') {
                kube_work_queue_add(q, (uint32_t) (*p - 'a' + 1), 1);
            }
        }

        /* what is left */
        while ((item = kube_work_queue_pop(q, &ms)) != 0) {
            taken[n++] = (char) ('a' + item - 1);
        }

        taken[n] = '\0';

        if (strcmp(taken, scenarios[i].taken) != 0) {
            fail_msg("%s: %s", scenarios[i].title, taken);
        }

        assert_int_equal(kube_work_queue_depth(q), 0);
        kube_work_queue_destroy(q);
        alloc_test_assert_no_leak(&at);
    }
}


/* What was taken keeps no memory: there is one block, from the beginning. */
static void
test_garbage_collection(void **state)
{
    size_t              before;
    uint64_t            ms;
    uint32_t            i;
    alloc_test_t        at;
    kube_work_queue_t  *q;

    (void) state;

    alloc_test_init(&at);
    q = kube_work_queue_create(&at.alloc, ITEMS);
    assert_non_null(q);
    before = at.live_bytes;

    for (i = 0; i < 100 * ITEMS; i++) {
        kube_work_queue_add(q, i % ITEMS + 1, i);
        assert_int_equal(at.live_bytes, before);

        if (i % 3 != 0) {
            (void) kube_work_queue_pop(q, &ms);
        }
    }

    kube_work_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


/*
 * A word each: "a" adds an item, "a+50" in 50 ms, "a!" as its limiter says;
 * "@60" is 60 ms after the beginning.  "?" takes one, ".a" ends its work, "xa"
 * removes it.  "D" is a shutdown that drains, "S" one that does not.  What is
 * said: what "?" took ("_": nothing, "#": never again), "o": whether the queue
 * is over, "d": the deadline, "=a": requeues, which "~a" forgets.
 */
static const struct {
    const char  *title;
    const char  *script;
    const char  *said;
} worked_on[] = {
    { "TestBasic", "a b ? ? .a .b ?", "a b _ " },
    { "TestAddWhileProcessing", "a b ? a .a ? a .b ? a .a ? .a ?",
      "a b a a _ " },
    { "TestReinsert", "a ? a .a ? .a ?", "a a _ " },
    { "TestCollapse", "a a ? .a ?", "a _ " },
    { "TestCollapseWhileProcessing", "a ? a a ? .a ? .a ?", "a _ a _ " },
    { "TestQueueDrainageUsingShutDownWithDrain", "a b ? ? D ? o .a o .b o",
      "a b # - - over " },
    { "TestNoQueueDrainageUsingShutDown", "a b ? ? S o", "a b over " },
    { "TestForceQueueShutdownUsingShutDown", "a b ? ? D ? o S o",
      "a b # - over " },
    { "TestQueueDrainageUsingShutDownWithDrainWithDirtyItem",
      "a ? a D ? o .a o ? .a ? o", "a # - - a # over " },
    { "a drain waits for what nobody has taken yet", "a D o ? o .a o",
      "- a - over " },
    { "nothing is added after a shutdown", "a b+50 S c d+1 @60 ? ?", "a # " },
    { "TestSimpleQueue", "a+50 ? d @60 ? .a @10060 ?", "_ 50 a _ " },
    { "TestDeduping", "a+50 a+70 ? @60 ? .a @80 ? a+50 a+30 ? @120 ? .a @140 ?",
      "_ a _ _ a _ " },
    { "TestAddTwoFireEarly", "a+1000 b+50 ? @60 ? c+2000 @1060 ? @3060 ?",
      "_ b a c " },
    { "TestCopyShifting", "a+1000 b+500 c+250 @2000 ? ? ?", "c b a " },
    { "TestRateLimitingQueue",
      "a! d xa a! d xa =a b! d xb b! d xb ~a =a a! d",
      "1 2 2 1 2 0 1 " },
    { "due while it is worked on: it comes again", "a ? a+5 @10 ? .a ? .a ?",
      "a _ a _ " },
    { "in no time is at once", "a+0 d ?", "0 a " },
    { "removed while it is worked on", "a ? a xa .a ?", "a _ " },
    { "done twice, and what was never taken", "a ? .a .a .b ? d", "a _ - " }
};


static uint32_t
script_item(char c)
{
    assert_true(c >= 'a' && c <= 'z');

    return (uint32_t) (c - 'a' + 1);
}


static void
script_take(kube_work_queue_t *q, uint64_t now_ms, char *said, size_t size)
{
    uint32_t  item;

    switch (kube_work_queue_get(q, now_ms, &item)) {

    case KUBE_OK:
        snprintf(said, size, "%c ", (char) ('a' + item - 1));
        return;

    case KUBE_AGAIN:
        snprintf(said, size, "_ ");
        return;

    default:
        snprintf(said, size, "# ");
    }
}


static kube_rc_t
script_run(kube_work_queue_t *q, const char *p, char *said, size_t size)
{
    size_t    n;
    uint64_t  now_ms, begin_ms, ms;

    begin_ms = 7000;
    now_ms = begin_ms;

    for (n = 0; *p != '\0'; p += strspn(p, " ")) {

        if (*p == '@') {
            now_ms = begin_ms + strtoull(p + 1, NULL, 10);

        } else if (*p == '?') {
            script_take(q, now_ms, said + n, size - n);

        } else if (*p == 'o') {
            snprintf(said + n, size - n,
                     kube_work_queue_is_over(q) ? "over " : "- ");

        } else if (*p == 'd' && p[1] != '+') {
            ms = kube_work_queue_deadline(q);
            snprintf(said + n, size - n, (ms == KUBE_NEVER) ? "- " : "%u ",
                     (unsigned) (ms == 0 ? 0 : ms - now_ms));

        } else if (*p == '=') {
            snprintf(said + n, size - n, "%u ",
                     kube_work_queue_requeues(q, script_item(p[1])));

        } else if (*p == '~') {
            kube_work_queue_forget(q, script_item(p[1]));

        } else if (*p == '.') {
            kube_work_queue_done(q, script_item(p[1]), now_ms);

        } else if (*p == 'x') {
            kube_work_queue_remove(q, script_item(p[1]));

        } else if (*p == 'D' || *p == 'S') {
            kube_work_queue_shutdown(q, *p == 'D', now_ms);

        } else if (p[1] == '+') {
            if (kube_work_queue_add_after(q, script_item(*p),
                                          strtoull(p + 2, NULL, 10), now_ms)
                != KUBE_OK)
            {
                return KUBE_NOMEM;
            }

        } else if (p[1] == '!') {
            if (kube_work_queue_add_limited(q, script_item(*p), now_ms)
                != KUBE_OK)
            {
                return KUBE_NOMEM;
            }

        } else {
            kube_work_queue_add(q, script_item(*p), now_ms);
        }

        n += strlen(said + n);
        p += strcspn(p, " ");
    }

    return KUBE_OK;
}


static void
test_worked_on(void **state)
{
    char                said[128];
    size_t              i;
    alloc_test_t        at;
    kube_work_queue_t  *q;

    (void) state;

    for (i = 0; i < sizeof(worked_on) / sizeof(worked_on[0]); i++) {
        alloc_test_init(&at);
        q = kube_work_queue_create_limited(&at.alloc, ITEMS,
                kube_rate_limiter_exponential(&at.alloc, ITEMS, 1, 1000));
        assert_non_null(q);

        said[0] = '\0';
        assert_int_equal(script_run(q, worked_on[i].script, said,
                                    sizeof(said)),
                         KUBE_OK);

        if (strcmp(said, worked_on[i].said) != 0) {
            fail_msg("%s: %s", worked_on[i].title, said);
        }

        kube_work_queue_destroy(q);
        alloc_test_assert_no_leak(&at);
    }
}


static kube_rc_t
worked_on_oom(kube_alloc_t *alloc, void *ctx)
{
    char                said[128];
    kube_rc_t           rc;
    kube_work_queue_t  *q;

    (void) ctx;

    q = kube_work_queue_create_limited(alloc, ITEMS,
                                       kube_rate_limiter_default(alloc,
                                                                 ITEMS));
    if (q == NULL) {
        return KUBE_NOMEM;
    }

    said[0] = '\0';
    rc = script_run(q, "a! b! c+7 a+1 d+9 @60 ? ? ? D", said, sizeof(said));
    kube_work_queue_destroy(q);

    return rc;
}


static void
test_worked_on_oom(void **state)
{
    (void) state;

    ALLOC_TEST_EACH(worked_on_oom, NULL);
}


/*
 * What limiters say: of an item's first five failures, and from which on the
 * longest delay, which is never exceeded.  One is exponential where fast_max is
 * 0, fast and slow where max_ms is 0, else the longer of the two; wait_ms is
 * the most that any waits.  client-go has a limiter of steps for the last row.
 */
static const struct {
    const char  *title;
    uint64_t     base_ms;
    uint64_t     max_ms;
    uint64_t     fast_ms;
    uint64_t     slow_ms;
    uint32_t     fast_max;
    uint64_t     wait_ms;
    uint64_t     first_ms[5];
    uint64_t     longest_ms;
    unsigned     longest_from;
} limited[] = {
    { "TestItemExponentialFailureRateLimiter", 1, 1000, 0, 0, 0, 0,
      { 1, 2, 4, 8, 16 }, 1000, 10 },
    { "TestItemExponentialFailureRateLimiterOverFlow", 1, 1000000, 0, 0, 0, 0,
      { 1, 2, 4, 8, 16 }, 1000000, 20 },
    { "hours of a minute", 60000, 3600000000, 0, 0, 0, 0,
      { 60000, 120000, 240000, 480000, 960000 }, 3600000000, 16 },
    { "no end", 1, UINT64_MAX, 0, 0, 0, 0,
      { 1, 2, 4, 8, 16 }, UINT64_MAX, 64 },
    { "it begins beyond its end", UINT64_MAX, 5, 0, 0, 0, 0,
      { 5, 5, 5, 5, 5 }, 5, 0 },
    { "it begins with nothing", 0, 5, 0, 0, 0, 0,
      { 0, 0, 0, 0, 0 }, 5, 64 },
    { "TestItemFastSlowRateLimiter", 0, 0, 5, 10000, 3, 0,
      { 5, 5, 5, 10000, 10000 }, 10000, 3 },
    { "TestMaxOfRateLimiter", 1, 1000, 5, 3000, 3, 0,
      { 5, 5, 5, 3000, 3000 }, 3000, 3 },
    { "TestWithMaxWaitRateLimiter", 0, 0, 5, 1000000, 100, 500000,
      { 5, 5, 5, 5, 5 }, 500000, 100 }
};


static kube_rate_limiter_t *
limited_make(const kube_alloc_t *alloc, size_t row)
{
    kube_rate_limiter_t  *a, *b;

    a = NULL;
    b = NULL;

    if (limited[row].max_ms != 0) {
        a = kube_rate_limiter_exponential(alloc, ITEMS, limited[row].base_ms,
                                          limited[row].max_ms);
    }

    if (limited[row].fast_max != 0) {
        b = kube_rate_limiter_fast_slow(alloc, ITEMS, limited[row].fast_ms,
                                        limited[row].slow_ms,
                                        limited[row].fast_max);
    }

    if (a != NULL && b != NULL) {
        a = kube_rate_limiter_max_of(alloc, b, a);

    } else if (a == NULL) {
        a = b;
    }

    return (limited[row].wait_ms == 0)
           ? a : kube_rate_limiter_max_wait(alloc, a, limited[row].wait_ms);
}


/* Each item is counted by itself, until it is forgotten. */
static void
test_limited(void **state)
{
    size_t                row;
    uint64_t              ms;
    unsigned              i;
    alloc_test_t          at;
    kube_rate_limiter_t  *l;

    (void) state;

    for (row = 0; row < sizeof(limited) / sizeof(limited[0]); row++) {
        alloc_test_init(&at);
        l = limited_make(&at.alloc, row);
        assert_non_null(l);

        for (i = 0; i < 5; i++) {
            ms = kube_rate_limiter_when(l, 1, 5);

            if (ms != limited[row].first_ms[i]) {
                fail_msg("%s: %llu ms", limited[row].title,
                         (unsigned long long) ms);
            }
        }

        assert_int_equal(kube_rate_limiter_requeues(l, 1), 5);

        for (i = 0; i < 1000; i++) {
            ms = kube_rate_limiter_when(l, 2, i);

            if (i >= limited[row].longest_from
                ? ms != limited[row].longest_ms
                : ms >= limited[row].longest_ms)
            {
                fail_msg("%s: %llu ms after %u failures", limited[row].title,
                         (unsigned long long) ms, i);
            }
        }

        assert_int_equal(kube_rate_limiter_requeues(l, 2), 1000);
        assert_int_equal(kube_rate_limiter_requeues(l, 1), 5);

        kube_rate_limiter_forget(l, 1);
        assert_int_equal(kube_rate_limiter_requeues(l, 1), 0);
        assert_int_equal(kube_rate_limiter_when(l, 1, 5),
                         limited[row].first_ms[0]);

        kube_rate_limiter_destroy(l);
        alloc_test_assert_no_leak(&at);
    }
}


static void
test_metrics(void **state)
{
    uint32_t              item;
    unsigned              i;
    alloc_test_t          at;
    kube_work_queue_t    *q;
    kube_work_metrics_t   m;

    (void) state;

    alloc_test_init(&at);
    q = kube_work_queue_create_limited(&at.alloc, ITEMS,
            kube_rate_limiter_exponential(&at.alloc, ITEMS, 1, 1000));
    assert_non_null(q);

    kube_work_queue_add(q, 1, 1000);
    kube_work_queue_metrics(q, 1000, &m);
    assert_int_equal(m.adds_total, 1);
    assert_int_equal(m.depth, 1);

    assert_int_equal(kube_work_queue_get(q, 1050, &item), KUBE_OK);
    kube_work_queue_metrics(q, 1050, &m);
    assert_int_equal(m.queue_duration.count, 1);
    assert_int_equal(m.queue_duration.sum_ms, 50);
    assert_int_equal(m.queue_duration.buckets[2], 1);

    /* added back while it is worked on, and counted once */

    for (i = 0; i < 5; i++) {
        kube_work_queue_add(q, item, 1050);
    }

    kube_work_queue_metrics(q, 1050, &m);
    assert_int_equal(m.adds_total, 2);
    assert_int_equal(m.depth, 1);
    assert_int_equal(kube_work_queue_depth(q), 0);

    kube_work_queue_done(q, item, 1075);
    kube_work_queue_metrics(q, 1075, &m);
    assert_int_equal(m.work_duration.count, 1);
    assert_int_equal(m.work_duration.sum_ms, 25);
    assert_int_equal(m.depth, 1);
    assert_int_equal(m.unfinished_work_ms, 0);

    assert_int_equal(kube_work_queue_get(q, 1075, &item), KUBE_OK);
    kube_work_queue_metrics(q, 1076, &m);
    assert_int_equal(m.queue_duration.count, 2);
    assert_int_equal(m.queue_duration.sum_ms, 75);
    assert_int_equal(m.unfinished_work_ms, 1);
    assert_int_equal(m.longest_running_ms, 1);

    /* two are worked on: the sum, and the longer */

    kube_work_queue_add(q, 2, 1076);
    assert_int_equal(kube_work_queue_get(q, 1080, &item), KUBE_OK);
    kube_work_queue_metrics(q, 1090, &m);
    assert_int_equal(m.unfinished_work_ms, 25);
    assert_int_equal(m.longest_running_ms, 15);

    kube_work_queue_done(q, 1, 1095);
    kube_work_queue_metrics(q, 1100, &m);
    assert_int_equal(m.unfinished_work_ms, 20);
    assert_int_equal(m.longest_running_ms, 20);

    assert_int_equal(kube_work_queue_add_after(q, 3, 5, 1100), KUBE_OK);
    assert_int_equal(kube_work_queue_add_limited(q, 4, 1100), KUBE_OK);
    kube_work_queue_metrics(q, 1100, &m);
    assert_int_equal(m.retries_total, 2);
    assert_int_equal(m.adds_total, 3);
    assert_int_equal(m.depth, 0);

    kube_work_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


static void
test_metric_shutdown(void **state)
{
    uint32_t              item;
    alloc_test_t          at;
    kube_work_queue_t    *q;
    kube_work_metrics_t   m;

    (void) state;

    alloc_test_init(&at);
    q = kube_work_queue_create_limited(&at.alloc, ITEMS,
            kube_rate_limiter_exponential(&at.alloc, ITEMS, 1, 1000));
    assert_non_null(q);

    kube_work_queue_add(q, 1, 1000);
    kube_work_queue_add(q, 2, 1000);
    assert_int_equal(kube_work_queue_get(q, 1000, &item), KUBE_OK);
    kube_work_queue_shutdown(q, false, 1001);

    /* one that is taken after it does not run either */

    assert_int_equal(kube_work_queue_get(q, 2000, &item), KUBE_OK);
    kube_work_queue_metrics(q, 3600000, &m);
    assert_int_equal(m.unfinished_work_ms, 1);
    assert_int_equal(m.longest_running_ms, 1);

    kube_work_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_add_and_take),
        cmocka_unit_test(test_garbage_collection),
        cmocka_unit_test(test_worked_on),
        cmocka_unit_test(test_worked_on_oom),
        cmocka_unit_test(test_limited),
        cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_metric_shutdown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_clientgo_workqueue - the scenarios of client-go's queue_test.go, as far
 * as there is such a queue: what is taken is done, for one thread takes it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_add_and_take),
        cmocka_unit_test(test_garbage_collection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

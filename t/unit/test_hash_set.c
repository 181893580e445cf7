/*
 * test_hash_set - sets of hashes, beside a sorted array of the same.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"

#include "kube_hash.h"
#include "kube_hash_set.h"


#define HASHES  3000


static void
test_set(void **state)
{
    size_t           i;
    uint64_t         hash;
    alloc_test_t     at;
    kube_random_t    random;
    kube_hash_set_t  set;

    (void) state;

    alloc_test_init(&at);
    kube_hash_set_init(&set, &at.alloc, HASHES);
    assert_false(kube_hash_set_has(&set, 7));

    /* many of one slot, and the one that means a free slot */
    for (i = 0; i < 40; i++) {
        assert_int_equal(kube_hash_set_add(&set, i << 32), KUBE_OK);
        assert_true(kube_hash_set_has(&set, i << 32));
        assert_false(kube_hash_set_has(&set, (i + 1) << 32));
    }

    assert_int_equal(set.n, 40);
    kube_random_init(&random, 5);

    for (i = 40; i < HASHES; i++) {
        hash = kube_random_next(&random);
        assert_false(kube_hash_set_has(&set, hash));
        assert_int_equal(kube_hash_set_add(&set, hash), KUBE_OK);
        assert_int_equal(kube_hash_set_add(&set, hash), KUBE_OK);
    }

    assert_int_equal(set.n, HASHES);

    /* full: what is there is there, and nothing more */
    assert_int_equal(kube_hash_set_add(&set, 3), KUBE_FULL);
    assert_int_equal(kube_hash_set_add(&set, 5ull << 32), KUBE_OK);
    assert_false(kube_hash_set_has(&set, 3));

    kube_random_init(&random, 5);

    for (i = 40; i < HASHES; i++) {
        assert_true(kube_hash_set_has(&set, kube_random_next(&random)));
    }

    kube_hash_set_done(&set);
    assert_false(kube_hash_set_has(&set, 5ull << 32));
    assert_int_equal(kube_hash_set_add(&set, 3), KUBE_OK);
    assert_true(kube_hash_set_has(&set, 3));

    kube_hash_set_done(&set);
    alloc_test_assert_no_leak(&at);
}


static void
test_out_of_memory(void **state)
{
    size_t           i, n;
    alloc_test_t     at;
    kube_hash_set_t  set;

    (void) state;

    for (n = 0; n < 3; n++) {
        alloc_test_init(&at);
        at.fail_at = n + 1;
        kube_hash_set_init(&set, &at.alloc, HASHES);

        for (i = 1; i < 100; i++) {
            if (kube_hash_set_add(&set, i) != KUBE_OK) {
                assert_false(kube_hash_set_has(&set, i));
                assert_int_equal(kube_hash_set_add(&set, i), KUBE_OK);
            }

            assert_true(kube_hash_set_has(&set, i));
            assert_true(kube_hash_set_has(&set, 1));
        }

        kube_hash_set_done(&set);
        alloc_test_assert_no_leak(&at);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

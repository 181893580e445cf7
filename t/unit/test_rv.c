/*
 * test_rv - resourceVersions: what is one, and which is newer.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_rv.h"


static void
rv_parse(void **state)
{
    size_t             i;
    kube_rv_t          rv, before;
    static const char  *const bad[] = {
        "", "0", "00", "007", "abc", "-1", "+1", "1.0", " 1", "1 ", "0x1",
        "1a", "12345678901234567890123456789012345678901"
    };

    (void) state;

    memset(&before, 0x5a, sizeof(before));

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        rv = before;
        assert_int_equal(kube_rv_parse(kube_str(bad[i]), &rv), KUBE_INVALID);
        assert_memory_equal(&rv, &before, sizeof(rv));
    }

    assert_int_equal(kube_rv_parse((kube_str_t) { "1\0", 2 }, &rv),
                     KUBE_INVALID);

    assert_int_equal(kube_rv_parse(KUBE_STR("7"), &rv), KUBE_OK);
    assert_true(kube_str_eq(kube_rv_str(&rv), KUBE_STR("7")));

    /* 40 digits: no machine word holds them */
    assert_int_equal(
        kube_rv_parse(KUBE_STR("1234567890123456789012345678901234567890"),
                      &rv), KUBE_OK);
    assert_int_equal(rv.len, 40);
}


/* Ascending; each is compared with each. */
static void
rv_order(void **state)
{
    size_t             i, j, n;
    kube_rv_t          a, b;
    static const char  *const rvs[] = {
        "", "1", "2", "9", "10", "11", "99", "100", "18446744073709551615",
        "18446744073709551616", "99999999999999999999",
        "1000000000000000000000000000000000000000",
        "9999999999999999999999999999999999999999"
    };

    (void) state;

    n = sizeof(rvs) / sizeof(rvs[0]);

    for (i = 0; i < n; i++) {
        for (j = 0; j < n; j++) {
            memset(&a, 0, sizeof(a));
            memset(&b, 0, sizeof(b));

            if (i != 0) {
                assert_int_equal(kube_rv_parse(kube_str(rvs[i]), &a),
                                 KUBE_OK);
            }

            if (j != 0) {
                assert_int_equal(kube_rv_parse(kube_str(rvs[j]), &b),
                                 KUBE_OK);
            }

            assert_int_equal(kube_rv_cmp(&a, &b), (i > j) - (i < j));
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(rv_parse),
        cmocka_unit_test(rv_order)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_date - RFC 3339: forms good and bad, each day, the ends of centuries.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_date.h"


/* 2026-03-01 00:00:00 UTC */
#define DATE_NOW  INT64_C(1772323200)


static void
date_rfc3339(void **state)
{
    size_t             i;
    int64_t            t;
    static const char  *const bad[] = {
        "", "2026-03-01", "2026-03-01T00:00:00", "2026-03-01 00:00:00Z",
        "2026-03-01T00:00:00z", "2026-03-01T00:00:00.Z",
        "2026-03-01T00:00:00Zx", "2026-03-01T00:00:00+0100",
        "2026-03-01T00:00:00+24:00", "2026-03-01T00:00:00*01:00",
        "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z", "2026-00-01T00:00:00Z", "2026-03-00T00:00:00Z",
        "2026-03-01T24:00:00Z", "2026-03-01T00:60:00Z", "2026-03-01T00:00:61Z",
        "202x-03-01T00:00:00Z", "26-03-01T00:00:00Z", " 2026-03-01T00:00:00Z",
        "2026-03-01T00:00:00+01:60", "2026-03-01T00:00:00+01:3",
        "Sun, 06 Nov 1994 08:49:37 GMT"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        t = 77;
        assert_int_equal(kube_date_parse_rfc3339(kube_str(bad[i]), &t),
                         KUBE_INVALID);
        assert_int_equal(t, 77);
    }

    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("1970-01-01T00:00:00Z"), &t), KUBE_OK);
    assert_int_equal(t, 0);

    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("1994-11-06T08:49:37Z"), &t), KUBE_OK);
    assert_int_equal(t, INT64_C(784111777000));

    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("2024-02-29T23:59:60Z"), &t), KUBE_OK);
    assert_int_equal(t, INT64_C(1709251200000));

    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("2026-03-01T00:00:00Z"), &t), KUBE_OK);
    assert_int_equal(t, DATE_NOW * 1000);

    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("2026-03-01T00:00:00.123456789Z"), &t),
                     KUBE_OK);
    assert_int_equal(t, DATE_NOW * 1000 + 123);

    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("2026-03-01T01:30:00.5+01:30"), &t),
                     KUBE_OK);
    assert_int_equal(t, DATE_NOW * 1000 + 500);

    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("2026-02-28T20:00:00-04:00"), &t), KUBE_OK);
    assert_int_equal(t, DATE_NOW * 1000);
}


/* Four years day by day, and the ends of centuries. */
static void
date_days(void **state)
{
    int                y, m, d, n;
    char               text[64];
    int64_t            t, expected;
    static const int   years[] = { 2024, 2025, 2026, 2027 };
    static const char  format[] = "%04d-%02d-%02dT00:00:00Z";

    (void) state;

    /* 2024-01-01 */
    expected = INT64_C(1704067200000);
    n = 0;

    for (y = 0; y < 4; y++) {
        for (m = 1; m <= 12; m++) {
            for (d = 1; d <= 31; d++) {
                (void) snprintf(text, sizeof(text), format, years[y], m, d);

                if (kube_date_parse_rfc3339(kube_str(text), &t) == KUBE_OK) {
                    assert_int_equal(t, expected);
                    expected += 86400000;
                    n++;
                }
            }
        }
    }

    assert_int_equal(n, 366 + 3 * 365);

    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("2100-02-29T00:00:00Z"), &t), KUBE_INVALID);
    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("2000-02-29T00:00:00Z"), &t), KUBE_OK);
    assert_int_equal(t, INT64_C(951782400000));
    assert_int_equal(kube_date_parse_rfc3339(
                         KUBE_STR("9999-12-31T23:59:59Z"), &t), KUBE_OK);
    assert_int_equal(t, INT64_C(253402300799000));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(date_rfc3339),
        cmocka_unit_test(date_days)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_date - HTTP-date and RFC 3339.
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
date_http(void **state)
{
    size_t             i;
    int64_t            t;
    static const char  *const bad[] = {
        "", "Sun", "Sun, 06 Nov 1994", "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 06 Nov 1994 08:49:37 GMT ",
        "Sun, 31 Feb 2024 08:49:37 GMT", "Sun, 29 Feb 2023 08:49:37 GMT",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 1969 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 6 Nov 1994 08:49:37 GMT", "Su, 06 Nov 1994 08:49:37 GMT",
        "Sun 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 19x4 08:49:37 GMT",
        "06 Nov 1994 08:49:37 GMT", "Sun, 06-Nov-1994 08:49:37 GMT",
        "Sun Nov  6 08:49:37 94", "1994-11-06T08:49:37Z"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        t = 77;
        assert_int_equal(kube_date_parse_http(kube_str(bad[i]), DATE_NOW,
                                              &t), KUBE_INVALID);
        assert_int_equal(t, 77);
    }

    assert_int_equal(kube_date_parse_http(
                         KUBE_STR("Sun, 06 Nov 1994 08:49:37 GMT"), DATE_NOW,
                         &t), KUBE_OK);
    assert_int_equal(t, 784111777);

    assert_int_equal(kube_date_parse_http(
                         KUBE_STR("Sunday, 06-Nov-94 08:49:37 GMT"), DATE_NOW,
                         &t), KUBE_OK);
    assert_int_equal(t, 784111777);

    assert_int_equal(kube_date_parse_http(
                         KUBE_STR("Sun Nov  6 08:49:37 1994"), DATE_NOW, &t),
                     KUBE_OK);
    assert_int_equal(t, 784111777);

    assert_int_equal(kube_date_parse_http(
                         KUBE_STR("Thu, 29 Feb 2024 23:59:60 GMT"), DATE_NOW,
                         &t), KUBE_OK);
    assert_int_equal(t, 1709251200);

    assert_int_equal(kube_date_parse_http(
                         KUBE_STR("Thu, 01 Jan 1970 00:00:00 GMT"), DATE_NOW,
                         &t), KUBE_OK);
    assert_int_equal(t, 0);

    /* two digits: not more than 50 years ahead */
    assert_int_equal(kube_date_parse_http(
                         KUBE_STR("Sunday, 01-Mar-26 00:00:00 GMT"), DATE_NOW,
                         &t), KUBE_OK);
    assert_int_equal(t, DATE_NOW);

    assert_int_equal(kube_date_parse_http(
                         KUBE_STR("Sunday, 01-Mar-70 00:00:00 GMT"), DATE_NOW,
                         &t), KUBE_OK);
    assert_true(t > DATE_NOW);

    assert_int_equal(kube_date_parse_http(
                         KUBE_STR("Sunday, 01-Mar-77 00:00:00 GMT"), DATE_NOW,
                         &t), KUBE_OK);
    assert_true(t < DATE_NOW);
}


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
        "2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "0001-01-01T00:00:00Z"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(kube_date_parse_rfc3339(kube_str(bad[i]), &t),
                         KUBE_INVALID);
    }

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
        cmocka_unit_test(date_http),
        cmocka_unit_test(date_rfc3339),
        cmocka_unit_test(date_days)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

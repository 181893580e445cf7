/*
 * test_text - escaping, times, limits, failures; and the writer of JSON.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "kube_hash.h"
#include "kube_json_writer.h"
#include "text_test.h"


#define FFFD  "\xef\xbf\xbd"


static text_test_t  tt;


static int
setup(void **state)
{
    (void) state;

    text_test_init(&tt);

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    text_test_done(&tt);

    return 0;
}


static void
check_escape(kube_escape_t how, kube_str_t in, const char *expected)
{
    text_test_reset(&tt);
    kube_text_escape(&tt.text, in, how);

    assert_false(tt.text.failed);
    assert_string_equal(tt.data, expected);
    assert_int_equal(tt.text.size, strlen(expected));
}


static void
test_text_escape(void **state)
{
    kube_str_t  plain, odd;

    (void) state;

    plain = KUBE_STR("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x99\x82 $%~");
    check_escape(KUBE_ESCAPE_JSON, plain, plain.data);
    check_escape(KUBE_ESCAPE_HTML, plain, plain.data);
    check_escape(KUBE_ESCAPE_LABEL, plain, plain.data);

    odd = KUBE_STR("<a b=\"c\" d='e'>\\&\n\t\0\x7f.");
    check_escape(KUBE_ESCAPE_JSON, odd,
                 "\\u003ca b=\\\"c\\\" d='e'>\\\\&\\u000a\\u0009\\u0000"
                 "\\u007f.");
    check_escape(KUBE_ESCAPE_HTML, odd,
                 "&#60;a b=&#34;c&#34; d=&#39;e&#39;&#62;\\&#38;" FFFD FFFD
                 FFFD FFFD ".");
    check_escape(KUBE_ESCAPE_LABEL, odd,
                 "<a b=\\\"c\\\" d='e'>\\\\&\\n" FFFD FFFD FFFD ".");

    check_escape(KUBE_ESCAPE_JSON, KUBE_STR_NULL, "");
}


/* The table 3-7 of Unicode: what is well formed, and what just is not. */

static void
test_text_utf8(void **state)
{
    size_t                i;
    static const char    *good[] = {
        "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xe1\x80\x80",
        "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
        "\xf0\x90\x80\x80", "\xf1\x80\x80\x80", "\xf4\x8f\xbf\xbf"
    };
    static const struct {
        kube_str_t   in;
        const char  *out;
    } bad[] = {
        { KUBE_STR("\x80"), FFFD },
        { KUBE_STR("\xc0\x80"), FFFD FFFD },
        { KUBE_STR("\xc1\xbf"), FFFD FFFD },
        { KUBE_STR("\xc2"), FFFD },
        { KUBE_STR("\xc2x"), FFFD "x" },
        { KUBE_STR("\xe0\x9f\x80"), FFFD FFFD FFFD },
        { KUBE_STR("\xed\xa0\x80"), FFFD FFFD FFFD },
        { KUBE_STR("\xe2\x82"), FFFD FFFD },
        { KUBE_STR("\xe2\x82x"), FFFD FFFD "x" },
        { KUBE_STR("\xf0\x8f\x80\x80"), FFFD FFFD FFFD FFFD },
        { KUBE_STR("\xf4\x90\x80\x80"), FFFD FFFD FFFD FFFD },
        { KUBE_STR("\xf0\x9f\x99"), FFFD FFFD FFFD },
        { KUBE_STR("\xf5\x80\x80\x80"), FFFD FFFD FFFD FFFD },
        { KUBE_STR("\xff\xc3\xa9"), FFFD "\xc3\xa9" }
    };

    (void) state;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        check_escape(KUBE_ESCAPE_JSON, kube_str(good[i]), good[i]);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        check_escape(KUBE_ESCAPE_JSON, bad[i].in, bad[i].out);
    }
}


static void
check_time(int64_t unix_s)
{
    time_t     t;
    struct tm  tm;
    char       expected[64];

    t = (time_t) unix_s;
    assert_non_null(gmtime_r(&t, &tm));
    assert_int_not_equal(strftime(expected, sizeof(expected),
                                  "%Y-%m-%dT%H:%M:%SZ", &tm), 0);

    text_test_reset(&tt);
    kube_text_time(&tt.text, unix_s * 1000 + 999);
    assert_string_equal(tt.data, expected);
}


static void
test_text_time(void **state)
{
    int64_t        day;
    unsigned       i;
    kube_random_t  random;

    (void) state;

    /* each day of 1970 .. 2500, its first and its last second */

    for (day = 0; day < 531 * 366; day++) {
        check_time(day * 86400);
        check_time(day * 86400 + 86399);
    }

    kube_random_init(&random, 1);

    for (i = 0; i < 10000; i++) {
        check_time((int64_t) kube_random_range(&random, 0, 200000000000));
    }
}


static void
test_text_limits(void **state)
{
    char         big[2 * KUBE_TEXT_PRINTF_MAX];
    kube_text_t  small;

    (void) state;

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';

    /* what one call prints is cut */

    text_test_reset(&tt);
    kube_text_printf(&tt.text, "%s", big);
    assert_false(tt.text.failed);
    assert_int_equal(tt.text.size, KUBE_TEXT_PRINTF_MAX - 1);

    /* above the limit nothing more is written */

    text_test_reset(&tt);
    tt.text.size_max = 5;
    kube_text_put(&tt.text, KUBE_STR("12345"));
    assert_false(tt.text.failed);
    kube_text_put(&tt.text, KUBE_STR("6"));
    assert_true(tt.text.failed);
    assert_string_equal(tt.data, "12345");

    /* a failure stays */

    text_test_reset(&tt);
    tt.fail_at = 2;
    kube_text_put(&tt.text, KUBE_STR("a"));
    kube_text_put(&tt.text, KUBE_STR("b"));
    assert_true(tt.text.failed);
    kube_text_put(&tt.text, KUBE_STR("c"));
    kube_text_printf(&tt.text, "%d", 1);
    assert_string_equal(tt.data, "a");
    assert_int_equal(tt.calls, 2);

    /* nothing is no write at all */

    kube_text_init(&small, NULL, NULL, 0);
    kube_text_put(&small, KUBE_STR_NULL);
    kube_text_escape(&small, KUBE_STR(""), KUBE_ESCAPE_HTML);
    assert_false(small.failed);
}


static void
test_json_writer(void **state)
{
    kube_json_writer_t  json;

    (void) state;

    text_test_reset(&tt);
    kube_json_writer_init(&json, &tt.text);

    kube_json_open(&json, NULL, '{');
    kube_json_put_str(&json, "s", KUBE_STR("a\"b"));
    kube_json_put_optional(&json, "o", KUBE_STR("x"));
    kube_json_put_optional(&json, "p", KUBE_STR_NULL);
    kube_json_open(&json, "a", '[');
    kube_json_close(&json, ']');
    kube_json_open(&json, "n", '[');
    kube_json_put_num(&json, NULL, 0);
    kube_json_put_num(&json, NULL, UINT64_MAX);
    kube_json_open(&json, NULL, '{');
    kube_json_put_bool(&json, "t", true);
    kube_json_put_bool(&json, "f", false);
    kube_json_close(&json, '}');
    kube_json_close(&json, ']');
    kube_json_put_null(&json, "z");
    kube_json_put_seconds(&json, "x", 61002);
    kube_json_put_seconds(&json, "never", KUBE_NEVER);
    kube_json_put_time(&json, "y", 1);
    kube_json_put_time(&json, "w", 0);
    kube_json_close(&json, '}');

    assert_false(tt.text.failed);
    assert_string_equal(tt.data,
        "{\"s\":\"a\\\"b\",\"o\":\"x\",\"p\":null,\"a\":[],"
        "\"n\":[0,18446744073709551615,{\"t\":true,\"f\":false}],\"z\":null,"
        "\"x\":61.002,\"never\":null,\"y\":\"1970-01-01T00:00:00Z\","
        "\"w\":null}");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_text_escape),
        cmocka_unit_test(test_text_utf8),
        cmocka_unit_test(test_text_time),
        cmocka_unit_test(test_text_limits),
        cmocka_unit_test(test_json_writer),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}

/*
 * test_utf8 - sequences, and what is none.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_utf8.h"


typedef struct {
    const char  *text;
    bool         valid;
    uint32_t     code;    /* of the first sequence */
    size_t       len;     /* of what is passed over for it */
} utf8_case_t;


static const utf8_case_t  utf8_cases[] = {
    { .text = "a", .valid = true, .code = 'a', .len = 1 },
    { .text = "\x7f", .valid = true, .code = 0x7f, .len = 1 },
    { .text = "\xc2\x80", .valid = true, .code = 0x80, .len = 2 },
    { .text = "\xc3\xa4", .valid = true, .code = 0xe4, .len = 2 },
    { .text = "\xdf\xbf", .valid = true, .code = 0x7ff, .len = 2 },
    { .text = "\xe0\xa0\x80", .valid = true, .code = 0x800, .len = 3 },
    { .text = "\xe2\x82\xac", .valid = true, .code = 0x20ac, .len = 3 },
    { .text = "\xed\x9f\xbf", .valid = true, .code = 0xd7ff, .len = 3 },
    { .text = "\xee\x80\x80", .valid = true, .code = 0xe000, .len = 3 },
    { .text = "\xef\xbf\xbf", .valid = true, .code = 0xffff, .len = 3 },
    { .text = "\xf0\x90\x80\x80", .valid = true, .code = 0x10000, .len = 4 },
    { .text = "\xf4\x8f\xbf\xbf", .valid = true, .code = 0x10ffff,
      .len = 4 },

    { .text = "\x80", .code = 0xfffd, .len = 1 },
    { .text = "\xbf", .code = 0xfffd, .len = 1 },
    { .text = "\xc3", .code = 0xfffd, .len = 1 },
    { .text = "\xc3\x28", .code = 0xfffd, .len = 1 },
    { .text = "\xc0\x80", .code = 0xfffd, .len = 1 },
    { .text = "\xc1\xbf", .code = 0xfffd, .len = 1 },
    { .text = "\xe0\x80\x80", .code = 0xfffd, .len = 1 },
    { .text = "\xe0\x9f\xbf", .code = 0xfffd, .len = 1 },
    { .text = "\xe2\x82", .code = 0xfffd, .len = 1 },
    { .text = "\xe2\x28\xa1", .code = 0xfffd, .len = 1 },
    { .text = "\xed\xa0\x80", .code = 0xfffd, .len = 1 },
    { .text = "\xed\xbf\xbf", .code = 0xfffd, .len = 1 },
    { .text = "\xf0\x8f\xbf\xbf", .code = 0xfffd, .len = 1 },
    { .text = "\xf0\x9f\x98", .code = 0xfffd, .len = 1 },
    { .text = "\xf0\x9f\x98\x28", .code = 0xfffd, .len = 1 },
    { .text = "\xf4\x90\x80\x80", .code = 0xfffd, .len = 1 },
    { .text = "\xf5\x80\x80\x80", .code = 0xfffd, .len = 1 },
    { .text = "\xfe", .code = 0xfffd, .len = 1 },
    { .text = "\xff", .code = 0xfffd, .len = 1 }
};


/* The text at the end of memory of its own, behind pad letters. */
static char *
utf8_copy(const char *text, size_t pad)
{
    char  *copy;

    copy = malloc(pad + strlen(text));
    assert_non_null(copy);

    memset(copy, 'x', pad);
    memcpy(copy + pad, text, strlen(text));

    return copy;
}


static void
utf8_table(void **state)
{
    char               *copy, out[KUBE_UTF8_LEN_MAX];
    size_t              i, pad, len;
    uint32_t            code;
    kube_str_t          s;
    const utf8_case_t  *c;

    (void) state;

    for (i = 0; i < sizeof(utf8_cases) / sizeof(utf8_cases[0]); i++) {
        c = &utf8_cases[i];
        len = strlen(c->text);

        for (pad = 0; pad < 20; pad++) {
            copy = utf8_copy(c->text, pad);
            s = (kube_str_t) { copy, pad + len };

            if (kube_utf8_check(s) != c->valid) {
                fail_msg("case %zu behind %zu letters", i, pad);
            }

            s = (kube_str_t) { copy + pad, len };
            code = kube_utf8_next(&s);

            assert_int_equal(code, c->code);
            assert_ptr_equal(s.data, copy + pad + c->len);
            assert_int_equal(s.len, len - c->len);

            if (c->valid) {
                assert_int_equal(kube_utf8_put(code, out), len);
                assert_memory_equal(out, c->text, len);
            }

            free(copy);
        }
    }

    assert_true(kube_utf8_check(KUBE_STR_NULL));
}


/* Each code point there and back; what is none becomes U+FFFD. */
static void
utf8_all(void **state)
{
    char        out[KUBE_UTF8_LEN_MAX];
    uint32_t    code, back;
    kube_str_t  s;

    (void) state;

    for (code = 0; code <= 0x110000; code++) {
        s = (kube_str_t) { out, kube_utf8_put(code, out) };
        assert_true(kube_utf8_check(s));

        back = kube_utf8_next(&s);
        assert_int_equal(s.len, 0);

        if (back != code) {
            assert_true((code >= 0xd800 && code <= 0xdfff)
                        || code > 0x10ffff);
            assert_int_equal(back, KUBE_UTF8_REPLACEMENT);
        }
    }

    assert_int_equal(kube_utf8_put(UINT32_MAX, out), 3);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(utf8_table),
        cmocka_unit_test(utf8_all)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_json - the grammar, position by position, and the look-ups.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_json.h"
#include "kube_limits.h"


typedef struct {
    const char  *text;
    size_t       offset;    /* where it is said to be wrong */
} json_bad_t;


static const char  *const json_good[] = {
    "{}", "[]", "0", "-0", "1", "-1", "10", "1.5", "1e1", "1E+10", "1e-10",
    "1e999", "18446744073709551616", "0.0", "-0.0e-0", "\"\"", "true",
    "false", "null", " 1", "1 ", "\t\r\n 1 \t\r\n", "[1]", "[1,2]",
    "[ 1 , 2 ]", "[[]]", "[[],[]]", "[{},{}]", "{\"a\":1}",
    "{ \"a\" : 1 , \"b\" : [ ] }", "{\"a\":{\"b\":{\"c\":null}}}",
    "{\"a\":1,\"a\":2}", "{\"\":0}", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
    "\"\\u0001\\u00e4\\uFFFF\"", "\"\\ud83d\\ude00\"",
    "\"\\uDBFF\\uDFFF\"", "\"\x7f\"", "\"\xc3\xa4\"", "\"\xe2\x82\xac\"",
    "\"\xf0\x9f\x98\x80\"", "\"\xed\x9f\xbf\"", "\"\xee\x80\x80\"",
    "\"\xf4\x8f\xbf\xbf\"", "\"\xef\xbf\xbf\"", "\"\xef\xbb\xbf\"",
    "123456789012345678901234567890123456789012345678901234567890"
};


static const json_bad_t  json_bad[] = {
    { "", 0 }, { " ", 1 }, { "x", 0 }, { "nul", 0 }, { "nulL", 0 },
    { "True", 0 }, { "nan", 0 }, { "Infinity", 0 }, { "'a'", 0 },
    { "/**/1", 0 }, { "1 2", 2 }, { "1,", 1 }, { "{}{}", 2 },
    { "{}\n{}", 3 }, { "nullx", 4 }, { "\xef\xbb\xbf{}", 0 },

    { "01", 1 }, { "-", 1 }, { "-01", 2 }, { "+1", 0 }, { ".5", 0 },
    { "1.", 2 }, { "1.e1", 2 }, { "1e", 2 }, { "1e+", 3 }, { "0x1", 1 },
    { "1_0", 1 }, { "--1", 1 }, { "-a", 1 }, { "1.5.5", 3 }, { "[01]", 2 },
    { "[1.]", 3 }, { "00", 1 },
    { "1234567890123456789012345678901234567890123456789012345678901", 61 },

    { "[", 1 }, { "]", 0 }, { "[1", 2 }, { "[1,", 3 }, { "[1,]", 3 },
    { "[,1]", 1 }, { "[1 2]", 3 }, { "[1}", 2 }, { "[}", 1 }, { "[1]]", 3 },
    { "[1,,2]", 3 }, { "[[]", 3 },

    { "{", 1 }, { "}", 0 }, { "{]", 1 }, { "{1:2}", 1 }, { "{a:1}", 1 },
    { "{\"a\"}", 4 }, { "{\"a\"", 4 }, { "{\"a\":", 5 }, { "{\"a\":}", 5 },
    { "{\"a\" 1}", 5 }, { "{\"a\"::1}", 5 }, { "{\"a\":1", 6 },
    { "{\"a\":1,", 7 }, { "{\"a\":1,}", 7 }, { "{,}", 1 },
    { "{\"a\":1]", 6 }, { "{\"a\":1 \"b\":2}", 7 }, { "{\"a\":1,\"b\"}", 10 },
    { "{\"a\":1}}", 7 }, { "{\"a\":[1}", 7 }, { "{null:1}", 1 },
    { "{\"a\":1,2}", 7 },

    { "\"", 1 }, { "\"a", 2 }, { "\"\\", 2 }, { "\"\\\"", 3 },
    { "\"\\x\"", 2 }, { "\"\\U0041\"", 2 }, { "\"\\'\"", 2 },
    { "\"\\0\"", 2 }, { "\"\n\"", 1 }, { "\"\t\"", 1 }, { "\"\x1f\"", 1 },
    { "\"\\u\"", 3 }, { "\"\\u12\"", 3 }, { "\"\\u12g4\"", 5 },
    { "\"\\u 123\"", 3 }, { "\"\\u0000\"", 7 }, { "\"a\\u0000b\"", 8 },
    { "\"\\ud83d\"", 7 }, { "\"\\ude00\"", 7 }, { "\"\\ud83dx\"", 7 },
    { "\"\\ud83d\\n\"", 7 }, { "\"\\ud83d\\ud83d\"", 13 },
    { "\"\\ud83d\\u0041\"", 13 }, { "\"\\ud83d\\u", 9 },
    { "{\"\\u0000\":1}", 8 },

    { "\"\x80\"", 1 }, { "\"\xbf\"", 1 }, { "\"\xc3\"", 1 },
    { "\"\xc3", 1 }, { "\"\xc3\x28\"", 1 }, { "\"\xc0\x80\"", 1 },
    { "\"\xc1\xbf\"", 1 }, { "\"\xe0\x80\x80\"", 1 },
    { "\"\xe0\x9f\xbf\"", 1 }, { "\"\xe2\x82\"", 1 },
    { "\"\xe2\x28\xa1\"", 1 }, { "\"\xed\xa0\x80\"", 1 },
    { "\"\xed\xbf\xbf\"", 1 }, { "\"\xf0\x8f\xbf\xbf\"", 1 },
    { "\"\xf0\x9f\x98\"", 1 }, { "\"\xf0\x9f\x98\x28\"", 1 },
    { "\"\xf4\x90\x80\x80\"", 1 }, { "\"\xf5\x80\x80\x80\"", 1 },
    { "\"\xff\"", 1 }, { "\"\xfe\"", 1 }, { "{\"\xff\":1}", 2 }
};


/* A copy of its exact length: reading one byte further is seen. */
static kube_rc_t
json_check_exact(const char *data, size_t len, kube_error_t *error)
{
    char       *copy;
    kube_rc_t   rc;

    copy = malloc(len != 0 ? len : 1);
    assert_non_null(copy);

    if (len != 0) {
        memcpy(copy, data, len);
    }

    rc = kube_json_check((kube_str_t) { copy, len }, error);
    free(copy);

    return rc;
}


static void
json_accepts(void **state)
{
    size_t         i;
    cJSON         *tree;
    kube_rc_t      rc;
    kube_arena_t   arena;
    alloc_test_t   at;
    kube_error_t   error;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);

    for (i = 0; i < sizeof(json_good) / sizeof(json_good[0]); i++) {
        rc = json_check_exact(json_good[i], strlen(json_good[i]), &error);

        if (rc != KUBE_OK) {
            fail_msg("%s: %s at %zu", json_good[i], error.what,
                     error.offset);
        }

        /* what the check lets pass, cJSON parses */
        rc = kube_json_parse(&arena, kube_str(json_good[i]), &tree, &error);

        if (rc != KUBE_OK) {
            fail_msg("cJSON refused %s", json_good[i]);
        }

        kube_arena_reset(&arena);
    }

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


static void
json_refuses(void **state)
{
    size_t             i;
    kube_rc_t          rc;
    kube_error_t       error;
    const json_bad_t  *bad;

    (void) state;

    for (i = 0; i < sizeof(json_bad) / sizeof(json_bad[0]); i++) {
        bad = &json_bad[i];
        memset(&error, 0, sizeof(error));

        rc = json_check_exact(bad->text, strlen(bad->text), &error);

        if (rc != KUBE_INVALID || error.offset != bad->offset) {
            fail_msg("%s: %s, offset %zu, not %zu", bad->text,
                     kube_rc_text(rc), error.offset, bad->offset);
        }

        assert_int_equal(error.rc, KUBE_INVALID);
        assert_non_null(error.what);
    }

    /* a NUL anywhere */
    assert_int_equal(json_check_exact("\"a\0b\"", 5, &error), KUBE_INVALID);
    assert_int_equal(json_check_exact("{}\0", 3, &error), KUBE_INVALID);
    assert_int_equal(json_check_exact("\0{}", 3, &error), KUBE_INVALID);
    assert_int_equal(kube_json_check(KUBE_STR_NULL, &error), KUBE_INVALID);
}


/* Each byte of a small text replaced by each byte: never past the end. */
static void
json_mutations(void **state)
{
    char               text[64];
    size_t             i, n, taken;
    unsigned           c;
    kube_rc_t          rc;
    kube_error_t       error;
    static const char  sample[] =
        "{\"a\":[1.5e3,true,null,\"\\u00e4\xc3\xa4\"],\"b\":{}}";

    (void) state;

    n = sizeof(sample) - 1;
    taken = 0;

    for (i = 0; i < n; i++) {
        for (c = 0; c < 256; c++) {
            memcpy(text, sample, n);
            text[i] = (char) c;

            rc = json_check_exact(text, n, &error);

            if (rc == KUBE_OK) {
                taken++;

            } else {
                assert_int_equal(rc, KUBE_INVALID);
                assert_true(error.offset <= n);
            }
        }

        /* and cut there */
        assert_int_equal(json_check_exact(sample, i, &error), KUBE_INVALID);
    }

    /* letters in names, digits in numbers: some, but not most */
    assert_in_range(taken, n, n * 64);
}


static void
json_depth(void **state)
{
    char          *text;
    size_t         n;
    cJSON         *tree;
    kube_arena_t   arena;
    alloc_test_t   at;
    kube_error_t   error;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);

    text = malloc(20000);
    assert_non_null(text);

    n = KUBE_JSON_DEPTH_MAX;
    memset(text, '[', n);
    memset(text + n, ']', n);

    assert_int_equal(kube_json_check((kube_str_t) { text, 2 * n }, &error),
                     KUBE_OK);
    assert_int_equal(kube_json_parse(&arena, (kube_str_t) { text, 2 * n },
                                     &tree, &error), KUBE_OK);

    n++;
    memset(text, '[', n);
    memset(text + n, ']', n);
    assert_int_equal(kube_json_check((kube_str_t) { text, 2 * n }, &error),
                     KUBE_INVALID);
    assert_string_equal(error.what, "nested too deep");
    assert_int_equal(error.offset, KUBE_JSON_DEPTH_MAX);

    n = 10000;
    memset(text, '[', n);
    memset(text + n, ']', n);
    assert_int_equal(kube_json_check((kube_str_t) { text, 2 * n }, &error),
                     KUBE_INVALID);

    /* objects and arrays in turn: each bracket knows its fellow */
    for (n = 0; n < 32; n++) {
        memcpy(text + 6 * n, "{\"a\":[", 6);
        memcpy(text + 192 + 2 * n, "]}", 2);
    }

    assert_int_equal(kube_json_check((kube_str_t) { text, 256 }, &error),
                     KUBE_OK);

    text[192 + 40] = '}';
    assert_int_equal(kube_json_check((kube_str_t) { text, 256 }, &error),
                     KUBE_INVALID);
    assert_int_equal(error.offset, 232);

    free(text);
    kube_arena_done(&arena);
}


static void
json_lookup(void **state)
{
    cJSON         *tree;
    kube_str_t     s;
    kube_arena_t   arena;
    alloc_test_t   at;
    kube_error_t   error;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);

    assert_int_equal(kube_json_parse(&arena, KUBE_STR(
        "{\"a\":\"first\",\"A\":\"upper\",\"a\":\"last\",\"n\":null,"
        "\"i\":5,\"o\":{\"x\":\"\\u00e4\\n\"},\"l\":[\"a\"]}"),
        &tree, &error), KUBE_OK);

    s = kube_json_string(tree, "a");
    assert_string_equal(s.data, "last");
    s = kube_json_string(tree, "A");
    assert_string_equal(s.data, "upper");

    s = kube_json_string(kube_json_get(tree, "o"), "x");
    assert_true(kube_str_eq(s, KUBE_STR("\xc3\xa4\n")));

    assert_int_equal(kube_json_string(tree, "n").len, 0);
    assert_int_equal(kube_json_string(tree, "i").len, 0);
    assert_int_equal(kube_json_string(tree, "none").len, 0);
    assert_int_equal(kube_json_string(NULL, "a").len, 0);
    assert_null(kube_json_get(kube_json_get(tree, "l"), "a"));
    assert_null(kube_json_get(kube_json_get(tree, "a"), "a"));
    assert_non_null(kube_json_get(tree, "n"));

    assert_int_equal(kube_json_print(&arena, kube_json_get(tree, "o"), &s),
                     KUBE_OK);
    assert_string_equal(s.data, "{\"x\":\"\xc3\xa4\\n\"}");

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


/* The hooks are given back: another user of cJSON gets malloc's memory. */
static void
json_hooks_restored(void **state)
{
    cJSON         *tree, *other;
    kube_str_t     text;
    kube_arena_t   arena;
    alloc_test_t   at;
    kube_error_t   error;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);

    assert_int_equal(kube_json_parse(&arena, KUBE_STR("[1]"), &tree, &error),
                     KUBE_OK);
    assert_int_equal(kube_json_print(&arena, tree, &text), KUBE_OK);
    assert_int_equal(kube_json_parse(&arena, KUBE_STR("[1"), &tree, &error),
                     KUBE_INVALID);

    kube_arena_done(&arena);

    other = cJSON_Parse("{\"a\":[1,2,3]}");
    assert_non_null(other);
    cJSON_Delete(other);

    alloc_test_assert_no_leak(&at);
}


/* An arena that is too small by any amount: refused, never half a tree. */
static void
json_small_arena(void **state)
{
    size_t         max;
    cJSON         *tree;
    kube_rc_t      rc;
    kube_str_t     text;
    kube_arena_t   arena;
    alloc_test_t   at;
    kube_error_t   error;

    (void) state;

    for (max = 0; ; max += 16) {
        assert_true(max < 10000);

        alloc_test_init(&at);
        kube_arena_init(&arena, &at.alloc, max);
        tree = NULL;

        rc = kube_json_parse(&arena,
                             KUBE_STR("{\"a\":[1,\"two\",{\"b\":null}]}"),
                             &tree, &error);

        if (rc == KUBE_OK) {
            rc = kube_json_print(&arena, tree, &text);

            if (rc == KUBE_OK) {
                assert_string_equal(text.data,
                                    "{\"a\":[1,\"two\",{\"b\":null}]}");
            }

        } else {
            assert_null(tree);
            assert_int_equal(error.rc, KUBE_INVALID);
            assert_string_equal(error.what, "too large as a tree");
        }

        kube_arena_done(&arena);
        alloc_test_assert_no_leak(&at);

        if (rc == KUBE_OK) {
            break;
        }

        assert_int_equal(rc, KUBE_INVALID);
    }

    assert_true(max > 200);
}


static void
json_oom_body(alloc_test_t *at, void *ctx)
{
    cJSON         *tree;
    kube_rc_t      rc;
    kube_str_t     text;
    kube_arena_t   arena;
    kube_error_t   error;

    kube_arena_init(&arena, &at->alloc, 1u << 20);

    rc = kube_json_parse(&arena, *(kube_str_t *) ctx, &tree, &error);
    alloc_test_assert_rc(at, rc);

    if (rc == KUBE_OK) {
        rc = kube_json_print(&arena, tree, &text);
        alloc_test_assert_rc(at, rc);

    } else {
        assert_int_equal(error.rc, KUBE_NOMEM);
    }

    kube_arena_done(&arena);
}


/* A tree of several blocks, each of which fails once. */
static void
json_out_of_memory(void **state)
{
    char        *data;
    size_t       i;
    kube_str_t   text;

    (void) state;

    text.len = 2 * 4000 + 1;
    data = malloc(text.len);
    assert_non_null(data);

    for (i = 0; i < text.len; i++) {
        data[i] = (i % 2 != 0) ? '7' : ',';
    }

    data[0] = '[';
    data[text.len - 1] = ']';
    text.data = data;

    ALLOC_TEST_RUN(json_oom_body, &text);

    free(data);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(json_accepts),
        cmocka_unit_test(json_refuses),
        cmocka_unit_test(json_mutations),
        cmocka_unit_test(json_depth),
        cmocka_unit_test(json_lookup),
        cmocka_unit_test(json_hooks_restored),
        cmocka_unit_test(json_small_arena),
        cmocka_unit_test(json_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

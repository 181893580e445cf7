/*
 * test_json - trees of cJSON's in an arena, and the look-ups.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_json.h"


static void
json_reads(void **state)
{
    size_t                    i;
    cJSON                    *tree;
    kube_arena_t              arena;
    alloc_test_t              at;
    kube_error_t              error;
    static const char *const  texts[] = {
        "{}", "[]", "0", "-1.5e3", "true", "null", " \"a\" ", "[[],[{}]]",
        "{ \"a\" : 1 , \"b\" : [ ] }\n", "\"\\ud83d\\ude00\\n\"",
        "\"\xf0\x9f\x98\x80\""
    };
    static const char *const  bad[] = {
        "", " ", "x", "{", "[1", "[1}", "{}{}", "1 2", "\"a", "[1,]", "{1:2}",
        "{\"a\":1,}", "\"\\x\"", "\xef\xbb\xbf{}"
    };

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (kube_json_parse(&arena, kube_str(texts[i]), &tree, &error)
            != KUBE_OK)
        {
            fail_msg("%s: %s", texts[i], error.what);
        }

        kube_arena_reset(&arena);
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        error.what = NULL;

        if (kube_json_parse(&arena, kube_str(bad[i]), &tree, &error)
            != KUBE_INVALID)
        {
            fail_msg("%s", bad[i]);
        }

        assert_int_equal(error.rc, KUBE_INVALID);
        assert_non_null(error.what);
        assert_true(error.offset <= strlen(bad[i]));
        kube_arena_reset(&arena);
    }

    assert_int_equal(kube_json_parse(&arena, KUBE_STR_NULL, &tree, &error),
                     KUBE_INVALID);

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


/* cJSON calls itself: what is deeper than it goes is refused, not memory. */
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
    kube_arena_init(&arena, &at.alloc, 16u << 20);

    text = malloc(100000);
    assert_non_null(text);

    for (n = 64; n <= 50000; n *= 5) {
        memset(text, '[', n);
        memset(text + n, ']', n);

        assert_int_equal(kube_json_parse(&arena, (kube_str_t) { text, 2 * n },
                                         &tree, &error),
                         n < CJSON_NESTING_LIMIT ? KUBE_OK : KUBE_INVALID);
        kube_arena_reset(&arena);
    }

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

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


/* The hooks are given back: another user of cJSON gets malloc's memory. */
static void
json_hooks_restored(void **state)
{
    cJSON         *tree, *other;
    kube_arena_t   arena;
    alloc_test_t   at;
    kube_error_t   error;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);

    assert_int_equal(kube_json_parse(&arena, KUBE_STR("[1]"), &tree, &error),
                     KUBE_OK);
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
            assert_int_equal(cJSON_GetArraySize(kube_json_get(tree, "a")), 3);

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
    kube_arena_t   arena;
    kube_error_t   error;

    kube_arena_init(&arena, &at->alloc, 1u << 20);

    rc = kube_json_parse(&arena, *(kube_str_t *) ctx, &tree, &error);
    alloc_test_assert_rc(at, rc);

    assert_true(rc == KUBE_OK || error.rc == KUBE_NOMEM);

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
        cmocka_unit_test(json_reads),
        cmocka_unit_test(json_depth),
        cmocka_unit_test(json_lookup),
        cmocka_unit_test(json_hooks_restored),
        cmocka_unit_test(json_small_arena),
        cmocka_unit_test(json_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

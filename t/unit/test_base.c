/*
 * test_base - result codes, strings, small allocator helpers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <limits.h>

#include "alloc_test.h"


static void
base_rc_texts(void **state)
{
    (void) state;

    assert_string_equal(kube_rc_text(KUBE_OK), "ok");
    assert_string_equal(kube_rc_text(KUBE_CHANGED),
                        "changed while it was read");
    assert_string_equal(kube_rc_text((kube_rc_t) -99), "unknown result");
    assert_string_equal(kube_rc_text((kube_rc_t) 1), "unknown result");

}


static void
base_str(void **state)
{
    (void) state;

    assert_int_equal(kube_str(NULL).len, 0);
    assert_int_equal(kube_str("abc").len, 3);

    assert_true(kube_str_eq(KUBE_STR_NULL, KUBE_STR("")));
    assert_true(kube_str_eq(KUBE_STR("ab"), kube_str("ab")));
    assert_false(kube_str_eq(KUBE_STR("ab"), KUBE_STR("abc")));
    assert_false(kube_str_eq(KUBE_STR("ab"), KUBE_STR("aB")));

    assert_int_equal(kube_str_cmp(KUBE_STR_NULL, KUBE_STR("")), 0);
    assert_int_equal(kube_str_cmp(KUBE_STR_NULL, KUBE_STR("a")), -1);
    assert_int_equal(kube_str_cmp(KUBE_STR("a"), KUBE_STR_NULL), 1);
    assert_int_equal(kube_str_cmp(KUBE_STR("ab"), KUBE_STR("abc")), -1);
    assert_int_equal(kube_str_cmp(KUBE_STR("b"), KUBE_STR("abc")), 1);
    assert_int_equal(kube_str_cmp(KUBE_STR("\xff"), KUBE_STR("a")), 1);
    assert_int_equal(kube_str_cmp(KUBE_STR("same"), KUBE_STR("same")), 0);
}


static void
base_str_to_u64(void **state)
{
    size_t             i;
    uint64_t           v;
    static const char  *const bad[] = {
        "", "00", "01", "-1", "+1", " 1", "1 ", "0x1", "1a", "a", "1.0",
        "18446744073709551616", "99999999999999999999",
        "100000000000000000000000"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        v = 77;
        assert_int_equal(kube_str_to_u64(kube_str(bad[i]), UINT64_MAX, &v),
                         KUBE_INVALID);
        assert_int_equal(v, 77);
    }

    assert_int_equal(kube_str_to_u64(KUBE_STR("0"), 0, &v), KUBE_OK);
    assert_int_equal(v, 0);

    assert_int_equal(kube_str_to_u64(KUBE_STR("18446744073709551615"),
                                     UINT64_MAX, &v), KUBE_OK);
    assert_true(v == UINT64_MAX);

    assert_int_equal(kube_str_to_u64(KUBE_STR("65535"), 65535, &v), KUBE_OK);
    assert_int_equal(v, 65535);
    assert_int_equal(kube_str_to_u64(KUBE_STR("65536"), 65535, &v),
                     KUBE_INVALID);
    assert_int_equal(kube_str_to_u64(KUBE_STR("7"), 5, &v), KUBE_INVALID);
    assert_int_equal(kube_str_to_u64(KUBE_STR("1"), 0, &v), KUBE_INVALID);
}


static void
base_str_escape(void **state)
{
    char    out[64];
    size_t  n, size;

    (void) state;

    n = kube_str_escape(out, sizeof(out), KUBE_STR("a b~"));
    assert_int_equal(n, 4);
    assert_string_equal(out, "a b~");

    n = kube_str_escape(out, sizeof(out), KUBE_STR("\"'\\\r\n\x1b\x7f\xc3"));
    assert_string_equal(out, "\\x22'\\x5c\\x0d\\x0a\\x1b\\x7f\\xc3");
    assert_int_equal(n, 29);

    n = kube_str_escape(out, sizeof(out), (kube_str_t) { "\0a", 2 });
    assert_string_equal(out, "\\x00a");
    assert_int_equal(n, 5);

    /* never half an escape, never past size */
    for (size = 1; size <= 12; size++) {
        memset(out, '#', sizeof(out));
        n = kube_str_escape(out, size, KUBE_STR("a\nb\n"));

        assert_true(n < size);
        assert_int_equal(out[n], '\0');
        assert_int_equal(out[size], '#');
        assert_int_equal(n, size >= 11 ? 10 : size >= 7 ? 6 : size >= 6 ? 5
                            : size >= 2 ? 1 : 0);
    }
}


static void
base_dup_body(alloc_test_t *at, void *ctx)
{
    kube_rc_t   rc;
    kube_str_t  copy;

    (void) ctx;

    copy = KUBE_STR("before");

    rc = kube_str_dup(&at->alloc, (kube_str_t) { "a\0b", 3 }, &copy);
    alloc_test_assert_rc(at, rc);

    if (rc != KUBE_OK) {
        assert_string_equal(copy.data, "before");
        return;
    }

    assert_int_equal(copy.len, 3);
    assert_memory_equal(copy.data, "a\0b", 4);
    kube_str_free(&at->alloc, &copy);
    assert_null(copy.data);
    assert_int_equal(copy.len, 0);
    kube_str_free(&at->alloc, &copy);
    assert_int_equal(at->frees, 1);

    rc = kube_str_dup(&at->alloc, KUBE_STR_NULL, &copy);
    alloc_test_assert_rc(at, rc);

    if (rc == KUBE_OK) {
        assert_string_equal(copy.data, "");
        kube_str_free(&at->alloc, &copy);
    }
}


static void
base_str_dup(void **state)
{
    alloc_test_t  at;
    kube_str_t    copy;

    (void) state;

    ALLOC_TEST_RUN(base_dup_body, NULL);

    alloc_test_init(&at);
    assert_int_equal(kube_str_dup(&at.alloc, (kube_str_t) { "", SIZE_MAX },
                                  &copy), KUBE_TOO_LARGE);
    assert_int_equal(at.calls, 0);
}


static void
base_array_body(alloc_test_t *at, void *ctx)
{
    void       *p, *before;
    int        *v;
    size_t      i, cap, cap_before;
    kube_rc_t   rc;

    (void) ctx;

    p = NULL;
    cap = 0;

    for (i = 0; i < 100; i++) {
        before = p;
        cap_before = cap;

        rc = kube_array_reserve(&at->alloc, &p, &cap, i + 1, sizeof(int),
                                100);
        alloc_test_assert_rc(at, rc);

        if (rc != KUBE_OK) {
            assert_ptr_equal(p, before);
            assert_int_equal(cap, cap_before);
            break;
        }

        assert_true(cap > i && cap <= 100);

        v = p;
        v[i] = (int) i;
        assert_int_equal(v[0], 0);
        assert_int_equal(v[i / 2], (int) (i / 2));
    }

    kube_free(&at->alloc, p);
}


static void
base_array(void **state)
{
    void          *p;
    size_t         cap;
    alloc_test_t   at;

    (void) state;

    ALLOC_TEST_RUN(base_array_body, NULL);

    alloc_test_init(&at);
    p = NULL;
    cap = 0;

    assert_int_equal(kube_array_reserve(&at.alloc, &p, &cap, 101, 4, 100),
                     KUBE_TOO_LARGE);
    assert_int_equal(kube_array_reserve(&at.alloc, &p, &cap, SIZE_MAX / 2,
                                        16, SIZE_MAX), KUBE_TOO_LARGE);
    assert_null(p);
    assert_int_equal(at.calls, 0);

    assert_int_equal(kube_array_reserve(&at.alloc, &p, &cap, 3, 4, 5),
                     KUBE_OK);
    assert_int_equal(cap, 5);
    assert_int_equal(at.live_bytes, 20);

    /* doubling, not one by one */
    assert_int_equal(kube_array_reserve(&at.alloc, &p, &cap, 6, 4, 1000),
                     KUBE_OK);
    assert_int_equal(cap, 10);
    assert_int_equal(at.calls, 2);

    kube_free(&at.alloc, p);
    alloc_test_assert_no_leak(&at);
}


/* A source of pages is used where there is one, in pairs. */
static void *
base_pages(void *ctx, size_t size)
{
    *(size_t *) ctx += size;

    return calloc(1, size);
}


static void
base_pages_free(void *ctx, void *p, size_t size)
{
    *(size_t *) ctx -= size;
    free(p);
}


static void
base_pages_of(void **state)
{
    char          *p;
    size_t         live;
    alloc_test_t   at;

    (void) state;
    alloc_test_init(&at);
    p = kube_pages_alloc(&at.alloc, 100);
    assert_non_null(p);
    assert_true(p[0] == 0 && p[99] == 0);
    assert_int_equal(at.live, 1);
    kube_pages_free(&at.alloc, p, 100);
    kube_pages_free(&at.alloc, NULL, 100);
    alloc_test_assert_no_leak(&at);

    live = 0;
    at.alloc.ctx = &live;
    at.alloc.pages = base_pages;
    at.alloc.pages_free = base_pages_free;
    p = kube_pages_alloc(&at.alloc, 100);
    assert_true(p[0] == 0 && p[99] == 0);
    assert_int_equal(live, 100);
    kube_pages_free(&at.alloc, p, 100);
    kube_pages_free(&at.alloc, NULL, 100);
    assert_int_equal(live, 0);
}


static void
base_zalloc(void **state)
{
    char          *p;
    size_t         i;
    alloc_test_t   at;

    (void) state;

    alloc_test_init(&at);

    p = kube_zalloc(&at.alloc, 100);
    assert_non_null(p);

    for (i = 0; i < 100; i++) {
        assert_int_equal(p[i], 0);
    }

    kube_free(&at.alloc, p);
    kube_free(&at.alloc, NULL);

    alloc_test_fail(&at, 1, false);
    assert_null(kube_zalloc(&at.alloc, 1));
    alloc_test_assert_no_leak(&at);
}


/* Every length around those at which the way changes; nothing behind it. */
static void
base_copy_few(void **state)
{
    size_t  len, i;
    char    from[80], to[81];

    (void) state;

    for (i = 0; i < sizeof(from); i++) {
        from[i] = (char) (i + 1);
    }

    for (len = 1; len <= sizeof(from); len++) {
        memset(to, 0, sizeof(to));
        kube_copy_few(to, from, len);

        assert_memory_equal(to, from, len);

        for (i = len; i < sizeof(to); i++) {
            assert_int_equal(to[i], 0);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(base_rc_texts),
        cmocka_unit_test(base_str),
        cmocka_unit_test(base_str_to_u64),
        cmocka_unit_test(base_str_escape),
        cmocka_unit_test(base_str_dup),
        cmocka_unit_test(base_array),
        cmocka_unit_test(base_zalloc),
        cmocka_unit_test(base_copy_few),
        cmocka_unit_test(base_pages_of)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

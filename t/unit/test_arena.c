/*
 * test_arena - the bump allocator and its ceiling.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_arena.h"


static void
arena_aligned(void **state)
{
    char          *p, *last;
    size_t         size;
    kube_arena_t   arena;
    alloc_test_t   at;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);
    assert_int_equal(at.calls, 0);

    last = NULL;

    for (size = 0; size < 200; size++) {
        p = kube_arena_alloc(&arena, size);

        assert_non_null(p);
        assert_int_equal((uintptr_t) p % 16, 0);
        assert_ptr_not_equal(p, last);
        memset(p, 0xff, size);
        last = p;
    }

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
    assert_int_equal(arena.used_bytes, 0);

    /* done twice, reset of nothing */
    kube_arena_done(&arena);
    kube_arena_reset(&arena);
}


static void
arena_keeps_first_block(void **state)
{
    void          *p;
    size_t         i, used;
    kube_arena_t   arena;
    alloc_test_t   at;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 8u << 20);

    p = kube_arena_alloc(&arena, 1);
    assert_non_null(p);
    used = arena.used_bytes;

    for (i = 0; i < 100; i++) {
        assert_non_null(kube_arena_alloc(&arena, 10000));
    }

    assert_true(at.live > 1);
    assert_true(arena.used_bytes >= 1000000);
    assert_int_equal(arena.used_bytes, at.live_bytes);

    kube_arena_reset(&arena);
    assert_int_equal(at.live, 1);
    assert_int_equal(arena.used_bytes, used);

    /* the same memory again, and no call for it */
    i = at.calls;
    assert_ptr_equal(kube_arena_alloc(&arena, 1), p);
    assert_int_equal(at.calls, i);

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


static void
arena_ceiling(void **state)
{
    size_t        sum;
    kube_arena_t  arena;
    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 100000);

    assert_null(kube_arena_alloc(&arena, 100000));
    assert_null(kube_arena_alloc(&arena, 100001));
    assert_null(kube_arena_alloc(&arena, SIZE_MAX));
    assert_null(kube_arena_alloc(&arena, SIZE_MAX - 8));
    assert_true(arena.full);
    kube_arena_reset(&arena);
    assert_false(arena.full);
    assert_int_equal(at.calls, 0);

    for (sum = 0; kube_arena_alloc(&arena, 1000) != NULL; sum += 1000) {
        assert_true(sum < 100000);
    }

    /* nearly all of it is usable */
    assert_true(sum >= 97000);
    assert_true(arena.full);
    assert_true(at.peak_bytes <= 100000);

    kube_arena_reset(&arena);
    assert_non_null(kube_arena_alloc(&arena, 1000));

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


static void
arena_tiny_ceiling(void **state)
{
    kube_arena_t  arena;
    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);

    kube_arena_init(&arena, &at.alloc, 0);
    assert_null(kube_arena_alloc(&arena, 0));
    assert_null(kube_arena_alloc(&arena, 1));

    kube_arena_init(&arena, &at.alloc, 100);
    assert_non_null(kube_arena_alloc(&arena, 16));
    assert_true(at.live_bytes <= 100);

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


static void
arena_body(alloc_test_t *at, void *ctx)
{
    size_t        i, used;
    kube_arena_t  arena;

    (void) ctx;

    kube_arena_init(&arena, &at->alloc, 8u << 20);

    for (i = 0; i < 60; i++) {
        used = arena.used_bytes;

        if (kube_arena_alloc(&arena, 20000) == NULL) {
            assert_true(at->failed);
            assert_int_equal(arena.used_bytes, used);
            assert_false(arena.full);

            /* usable again once there is memory */
            alloc_test_heal(at);
            assert_non_null(kube_arena_alloc(&arena, 20000));
            at->failed = true;
            break;
        }
    }

    kube_arena_done(&arena);
}


static void
arena_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(arena_body, NULL);
}


static void
arena_allocator(void **state)
{
    void          *p;
    kube_str_t     copy;
    kube_alloc_t   a;
    kube_arena_t   arena;
    alloc_test_t   at;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);
    a = kube_arena_allocator(&arena);

    assert_int_equal(kube_str_dup(&a, KUBE_STR("text"), &copy), KUBE_OK);
    assert_string_equal(copy.data, "text");

    p = kube_alloc(&a, 10);
    kube_free(&a, p);
    assert_int_equal(at.live, 1);

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(arena_aligned),
        cmocka_unit_test(arena_keeps_first_block),
        cmocka_unit_test(arena_ceiling),
        cmocka_unit_test(arena_tiny_ceiling),
        cmocka_unit_test(arena_out_of_memory),
        cmocka_unit_test(arena_allocator)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

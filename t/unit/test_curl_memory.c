/*
 * test_curl_memory - kube_curl_memory: what a block that was given back still
 * holds, and that a block that grows keeps what it held.
 *
 * The sanitizer keeps freed memory as it was for long: that is what lets the
 * test look.  t/test_credentials.py::TestWiped looks into the process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <curl/curl.h>

#include "kube_curl_memory.h"


#define MEMORY_BYTES  1000


const char *__asan_default_options(void);


/* malloc() of too much is to return NULL, as it does elsewhere. */
const char *
__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}


static size_t count(uintptr_t block, size_t bytes)
    __attribute__((no_sanitize("address")));


/* How many of so many bytes of a block, freed or not, are an "s". */
static size_t
count(uintptr_t block, size_t bytes)
{
    size_t                i, n;
    const volatile char  *p;

    p = (const volatile char *) block;
    n = 0;

    for (i = 0; i < bytes; i++) {
        n += (p[i] == 's');
    }

    return n;
}


static char *
filled(uintptr_t *block)
{
    char  *p;

    p = kube_curl_memory_realloc(NULL, MEMORY_BYTES);
    assert_non_null(p);
    assert_int_equal((uintptr_t) p % _Alignof(max_align_t), 0);

    memset(p, 's', MEMORY_BYTES);
    *block = (uintptr_t) p;

    return p;
}


static void
test_freed(void **state)
{
    char       *p;
    uintptr_t   block;

    (void) state;

    p = filled(&block);
    assert_int_equal(count(block, MEMORY_BYTES), MEMORY_BYTES);

    kube_curl_memory_free(p);
    assert_int_equal(count(block, MEMORY_BYTES), 0);

    /* all of it, whatever it was: not as far as a text goes */

    p = filled(&block);
    p[4] = '\0';
    kube_curl_memory_free(p);
    assert_int_equal(count(block, MEMORY_BYTES), 0);

    kube_curl_memory_free(NULL);
}


static void
test_grown(void **state)
{
    char       *p;
    uintptr_t   block;

    (void) state;

    p = kube_curl_memory_realloc(filled(&block), 20 * MEMORY_BYTES);
    assert_non_null(p);
    assert_ptr_not_equal(p, (void *) block);

    assert_int_equal(count((uintptr_t) p, MEMORY_BYTES), MEMORY_BYTES);
    assert_int_equal(count(block, MEMORY_BYTES), 0);

    /* what it gives is malloc()'s own */
    free(p);
}


static void
test_shrunk(void **state)
{
    char       *p;
    uintptr_t   block;

    (void) state;

    p = kube_curl_memory_realloc(filled(&block), MEMORY_BYTES / 2);
    assert_non_null(p);
    assert_int_equal(p[0], 's');
    assert_int_equal(p[MEMORY_BYTES / 2 - 1], 's');

    kube_curl_memory_free(p);
    assert_int_equal(count(block, MEMORY_BYTES), 0);
}


static void
test_out_of_memory(void **state)
{
    char             *p;
    uintptr_t         block;
    volatile size_t   size;

    (void) state;

    size = SIZE_MAX / 2;
    assert_null(kube_curl_memory_realloc(NULL, size));

    p = filled(&block);
    assert_null(kube_curl_memory_realloc(p, size));
    assert_int_equal(count(block, MEMORY_BYTES), MEMORY_BYTES);

    kube_curl_memory_free(p);
}


/* libcurl uses them; it may be initialised more than once. */
static void
test_init(void **state)
{
    char       *p;
    unsigned    i;
    uintptr_t   block;

    (void) state;

    for (i = 0; i < 2; i++) {
        assert_true(kube_curl_memory_init());
    }

    p = curl_easy_escape(NULL, "ssss", 4);
    assert_non_null(p);
    block = (uintptr_t) p;
    assert_int_equal(count(block, 4), 4);

    curl_free(p);
    assert_int_equal(count(block, 4), 0);

    for (i = 0; i < 2; i++) {
        curl_global_cleanup();
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_freed),
        cmocka_unit_test(test_grown),
        cmocka_unit_test(test_shrunk),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_init)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

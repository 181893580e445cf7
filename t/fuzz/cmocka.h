/*
 * cmocka - what headers of t/unit ask of cmocka, for libFuzzer targets: an
 * assertion that does not hold ends the process, for there is no test to fail.
 *
 * Found in cmocka's place by who includes <cmocka.h> with -It/fuzz.  Not for
 * the product, nor for unit tests.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_FUZZ_CMOCKA_H
#define KUBE_FUZZ_CMOCKA_H


#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define print_message(...)  ((void) 0)
#define print_error(...)    ((void) fprintf(stderr, __VA_ARGS__))


static inline void
_fail(const char *file, int line)
{
    print_error("%s:%d: does not hold\n", file, line);
    abort();
}


#define assert_true(c)      ((c) ? (void) 0 : _fail(__FILE__, __LINE__))
#define assert_false(c)     assert_true(!(c))
#define assert_null(p)      assert_true((p) == NULL)
#define assert_non_null(p)  assert_true((p) != NULL)

#define assert_ptr_not_equal(a, b)  assert_true((a) != (b))


static inline void
cmocka_equal(long long a, long long b, const char *file, int line)
{
    if (a != b) {
        print_error("%lld and %lld\n", a, b);
        _fail(file, line);
    }
}


static inline void
cmocka_string_equal(const char *a, const char *b, const char *file, int line)
{
    if (strcmp(a, b) != 0) {
        print_error("\"%s\" and \"%s\"\n", a, b);
        _fail(file, line);
    }
}


#define assert_int_equal(a, b)                                                \
    cmocka_equal((long long) (a), (long long) (b), __FILE__, __LINE__)
#define assert_string_equal(a, b)                                             \
    cmocka_string_equal(a, b, __FILE__, __LINE__)


#endif /* KUBE_FUZZ_CMOCKA_H */

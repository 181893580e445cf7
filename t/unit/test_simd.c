/*
 * test_simd - kube_simd: the masks of this machine against the plain ones, and
 * those against a loop over bytes.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "kube_hash.h"
#include "kube_simd.h"


#define SIMD_ROUNDS  20000


/* In memory of the exact sizes: ASan sees what is read besides. */
static void
compare(const char *p, char *text)
{
    int                 lines;
    uint32_t            quote, odd, hidden;
    unsigned            i;
    unsigned char       ch;
    kube_simd_block_t   a, b, c;

    memcpy(text, p, KUBE_SIMD_TEXT);

    for (lines = 0; lines < 2; lines++) {
        c = (kube_simd_block_t) { 0, 0, 0, 0, 0, 0 };
        quote = 0;
        odd = 0;
        hidden = 0;

        for (i = 0; i < KUBE_SIMD_BLOCK; i++) {
            ch = (unsigned char) p[i];

            c.quote |= (uint64_t) (ch == '"') << i;
            c.open |= (uint64_t) (ch == '{' || ch == '[') << i;
            c.close |= (uint64_t) (ch == '}' || ch == ']') << i;
            c.curly |= (uint64_t) (ch == '{' || ch == '}') << i;
            c.slash |= (uint64_t) (ch == '\\') << i;
            c.feed |= (uint64_t) (lines && ch == '\n') << i;

            if (i < KUBE_SIMD_TEXT) {
                odd |= (uint32_t) (ch <= 0x20 || ch >= 0x7f || ch == '"'
                                   || ch == '\\') << i;
                hidden |= (uint32_t) (ch <= 0x20 || ch >= 0x7f) << i;
            }
        }

        quote = (uint32_t) (c.quote | c.slash | c.feed) & 0xffff;

        a = kube_simd_block(p, lines);
        b = kube_simd_block_plain(p, lines);

        assert_true(a.quote == c.quote && b.quote == c.quote);
        assert_true(a.open == c.open && b.open == c.open);
        assert_true(a.close == c.close && b.close == c.close);
        assert_true(a.curly == c.curly && b.curly == c.curly);
        assert_true(a.slash == c.slash && b.slash == c.slash);
        assert_true(a.feed == c.feed && b.feed == c.feed);
        assert_int_equal(kube_simd_quote(text, lines), quote);
        assert_int_equal(kube_simd_quote_plain(text, lines), quote);
        assert_int_equal(kube_simd_odd(text), odd);
        assert_int_equal(kube_simd_odd_plain(text), odd);
        assert_int_equal(kube_simd_hidden(text), hidden);
        assert_int_equal(kube_simd_hidden_plain(text), hidden);
    }
}


static void
test_masks(void **state)
{
    char           *p, *text;
    unsigned        i, k;
    kube_random_t   random;

    static const char  some[] = "\"\\{}[]\n \x7f\x80\x01!#~Z_y;=";

    (void) state;

    p = malloc(KUBE_SIMD_BLOCK);
    text = malloc(KUBE_SIMD_TEXT);
    assert_non_null(p);
    assert_non_null(text);

    for (i = 0; i < 256; i++) {
        memset(p, (int) i, KUBE_SIMD_BLOCK);
        compare(p, text);
    }

    kube_random_init(&random, 7);

    for (i = 0; i < SIMD_ROUNDS; i++) {
        for (k = 0; k < KUBE_SIMD_BLOCK; k++) {
            p[k] = (i % 2 == 0)
                       ? (char) kube_random_next(&random)
                       : some[kube_random_next(&random) % sizeof(some)];
        }

        compare(p, text);
    }

    free(p);
    free(text);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_masks)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_ca - kube_ca: which bundles share a certificate.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "kube_ca.h"
#include "alloc_test.h"


#define BEGIN  "-----BEGIN CERTIFICATE-----\n"
#define END    "-----END CERTIFICATE-----\n"
#define X64    "MIIBszCCAVmgAwIBAgIUYJq6z3b0o1Zf0aVw8m0xkq7f1u0wCgYIKoZIzj0EAwI"

#define A      BEGIN "AAAA" X64 "\n" X64 "==\n" END
#define B      BEGIN "BBBB" X64 "\n" X64 "==\n" END


typedef struct {
    const char  *one;
    const char  *other;
    size_t       n;          /* of the first */
    size_t       shared;
} ca_case_t;


static const ca_case_t  ca_cases[] = {

    /* the same certificate, written in another way */

    { A, A, 1, 1 },
    { A, "# my CA\r\n" BEGIN "AAAA" X64 X64 "==" END, 1, 1 },
    { A, "-----BEGIN TRUSTED CERTIFICATE-----\r\nAAAA\r\n" X64 "\t" X64
      "= =\r\n-----END TRUSTED CERTIFICATE-----\r\n", 1, 1 },

    /* a rotation: the old one, both, the new one */

    { A, A B, 1, 1 },
    { B A, B, 2, 1 },
    { B A, A B, 2, 2 },
    { A A B A, B, 2, 1 },
    { A, B, 1, 0 },

    /* no certificates */

    { "", A, 0, 0 },
    { "-----BEGIN PRIVATE KEY-----\nAAAA\n", A, 0, 0 },
    { "-----BEGIN ", A, 0, 0 },
    { "-----BEGIN CERTIFICATE----", A, 0, 0 },

    /* one that was cut off is another one */

    { BEGIN "AAAA" X64, A, 1, 0 }
};


static void
test_ca_cases(void **state)
{
    size_t            i, a, b, n[2], shared;
    uint64_t          marks[2][KUBE_CA_MARKS_MAX];
    const ca_case_t  *c;

    (void) state;

    for (i = 0; i < sizeof(ca_cases) / sizeof(ca_cases[0]); i++) {
        c = &ca_cases[i];

        n[0] = kube_ca_marks(kube_str(c->one), marks[0]);
        n[1] = kube_ca_marks(kube_str(c->other), marks[1]);
        shared = 0;

        for (a = 0; a < n[0]; a++) {
            for (b = 0; b < n[1]; b++) {
                shared += (marks[0][a] == marks[1][b]);
            }
        }

        if (n[0] != c->n || shared != c->shared) {
            fail_msg("case %zu: %zu marks, %zu shared", i, n[0], shared);
        }
    }
}


/* Of a large bundle the smallest marks: those that a smaller one has too. */

static void
test_ca_many(void **state)
{
    char      text[128 * 64];
    size_t    i, k, n, len;
    uint64_t  marks[KUBE_CA_MARKS_MAX], fewer[KUBE_CA_MARKS_MAX];

    (void) state;

    for (len = 0, i = 0; i < 100; i++) {
        len += (size_t) snprintf(text + len, sizeof(text) - len,
                                 BEGIN "%04zu\n" END, i);
    }

    n = kube_ca_marks((kube_str_t) { text, len }, marks);
    assert_int_equal(n, KUBE_CA_MARKS_MAX);

    for (i = 1; i < n; i++) {
        assert_true(marks[i - 1] < marks[i]);
    }

    n = kube_ca_marks((kube_str_t) { text, len / 100 * 98 }, fewer);
    assert_int_equal(n, KUBE_CA_MARKS_MAX);

    for (n = 0, i = 0; i < KUBE_CA_MARKS_MAX; i++) {
        for (k = 0; k < KUBE_CA_MARKS_MAX; k++) {
            n += (marks[i] == fewer[k]);
        }
    }

    assert_in_range(n, KUBE_CA_MARKS_MAX - 2, KUBE_CA_MARKS_MAX);
}


static void
test_ca_names(void **state)
{
    (void) state;

    assert_true(kube_ca_mark("system") == kube_ca_mark("system"));
    assert_true(kube_ca_mark("system") != kube_ca_mark("plain"));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_ca_cases),
        cmocka_unit_test(test_ca_many),
        cmocka_unit_test(test_ca_names)
    };

    return cmocka_run_group_tests_name("ca", tests, NULL, NULL);
}

/*
 * test_secret - kube_secret: base64 as Go decodes it, and what is read of
 * files that are none.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc_test.h"

#include "kube_limits.h"
#include "kube_secret.h"


/* Go 1.22, base64.StdEncoding.DecodeString. */
static const struct {
    const char  *text;
    const char  *bytes;      /* NULL: not base64 */
} secret_texts[] = {
    { "", "" },
    { "YQ==", "a" },
    { "YWI=", "ab" },
    { "YWJj", "abc" },
    { "YWJjZA==", "abcd" },
    { "YW\r\nJj\nZA==\n", "abcd" },
    { "+/+/", "\xfb\xff\xbf" },
    { "YQ=\n=", "a" },

    { "YQ", NULL },
    { "YQ=", NULL },
    { "YWJjZA", NULL },
    { "Y", NULL },
    { "Y===", NULL },
    { "====", NULL },
    { "=", NULL },
    { "YQ==YQ==", NULL },
    { "YWI=YWI=", NULL },
    { "YQ=a", NULL },
    { "YWI==", NULL },
    { "YWJj=", NULL },
    { "YWJj====", NULL },
    { "YW Jj", NULL },
    { "YW-_", NULL },
    { "YWJ\xc3", NULL },
};


static void
test_secret_base64(void **state)
{
    size_t        i;
    kube_rc_t     rc;
    kube_str_t    out;
    alloc_test_t  at;

    (void) state;
    alloc_test_init(&at);

    for (i = 0; i < sizeof(secret_texts) / sizeof(secret_texts[0]); i++) {
        rc = kube_secret_base64(&at.alloc, kube_str(secret_texts[i].text),
                                &out);

        if ((rc == KUBE_OK) != (secret_texts[i].bytes != NULL)) {
            print_error("\"%s\": %s\n", secret_texts[i].text,
                        kube_rc_text(rc));
            fail();
        }

        if (rc == KUBE_OK) {
            assert_int_equal(out.len, strlen(secret_texts[i].bytes));
            assert_string_equal(out.data, secret_texts[i].bytes);
            kube_secret_free(&at.alloc, &out);
        }

        assert_int_equal(out.len, 0);
        alloc_test_assert_no_leak(&at);
    }
}


static void
test_secret_trim(void **state)
{
    (void) state;
    assert_true(kube_str_eq(kube_secret_trim(KUBE_STR(" \t\r\n\v\fa b\n ")),
                            KUBE_STR("a b")));
    assert_int_equal(kube_secret_trim(KUBE_STR(" \n")).len, 0);
}


/* It goes into a header: no byte may end the line, or begin another word. */
static void
test_secret_is_token(void **state)
{
    int    c;
    char  *text;

    (void) state;
    assert_false(kube_secret_is_token(KUBE_STR_NULL));

    for (c = 0; c < 256; c++) {
        assert_int_equal(kube_secret_is_token((kube_str_t) {
                             (char[]) { 'a', (char) c, 'b' }, 3 }),
                         c > 0x20 && c < 0x7f);
    }

    text = malloc(KUBE_TOKEN_BYTES_MAX + 1);
    assert_non_null(text);
    memset(text, 'a', KUBE_TOKEN_BYTES_MAX + 1);
    assert_true(kube_secret_is_token((kube_str_t) { text,
                                                    KUBE_TOKEN_BYTES_MAX }));
    assert_false(kube_secret_is_token((kube_str_t) { text,
                                                KUBE_TOKEN_BYTES_MAX + 1 }));
    free(text);
}


static void
test_secret_is_pem(void **state)
{
    (void) state;
    assert_true(kube_secret_is_pem(KUBE_STR("x\n-----BEGIN X-----\n")));
    assert_true(kube_secret_is_pem(KUBE_STR("-----BEGIN ")));
    assert_false(kube_secret_is_pem(KUBE_STR("-----BEGIN")));
    assert_false(kube_secret_is_pem(KUBE_STR_NULL));
}


static struct {
    char  dir[64];
    char  path[96];
} secret_bed;


static int
secret_setup(void **state)
{
    (void) state;
    snprintf(secret_bed.dir, sizeof(secret_bed.dir),
             "/tmp/kube-secret-XXXXXX");
    assert_non_null(mkdtemp(secret_bed.dir));
    snprintf(secret_bed.path, sizeof(secret_bed.path), "%s/x",
             secret_bed.dir);

    return 0;
}


static int
secret_teardown(void **state)
{
    (void) state;
    (void) unlink(secret_bed.path);
    assert_int_equal(rmdir(secret_bed.dir), 0);

    return 0;
}


static void
secret_put(size_t size)
{
    FILE  *f;

    f = fopen(secret_bed.path, "w");
    assert_non_null(f);

    while (size-- != 0) {
        assert_int_equal(putc('x', f), 'x');
    }

    assert_int_equal(fclose(f), 0);
}


static void
test_secret_read(void **state)
{
    kube_str_t     out;
    const char    *what;
    alloc_test_t   at;

    (void) state;
    alloc_test_init(&at);
    errno = 0;
    assert_int_equal(kube_secret_read(&at.alloc, secret_bed.path, 10, &out,
                                      &what), KUBE_IO);
    assert_string_equal(what, "no such file");
    assert_int_equal(errno, ENOENT);

    secret_put(10);
    assert_int_equal(kube_secret_read(&at.alloc, secret_bed.path, 10, &out,
                                      &what), KUBE_OK);
    assert_string_equal(out.data, "xxxxxxxxxx");
    assert_int_equal(out.len, 10);
    kube_secret_free(&at.alloc, &out);

    secret_put(11);
    assert_int_equal(kube_secret_read(&at.alloc, secret_bed.path, 10, &out,
                                      &what), KUBE_TOO_LARGE);
    errno = 0;
    assert_int_equal(kube_secret_read(&at.alloc, secret_bed.dir, 10, &out,
                                      &what), KUBE_IO);
    assert_string_equal(what, "a directory, not a file");
    assert_int_equal(errno, EISDIR);

    /* who opens it otherwise waits for a writer for ever */
    assert_int_equal(unlink(secret_bed.path), 0);
    assert_int_equal(mkfifo(secret_bed.path, 0600), 0);
    assert_int_equal(kube_secret_read(&at.alloc, secret_bed.path, 10, &out,
                                      &what), KUBE_IO);
    assert_string_equal(what, "not a regular file");
    assert_int_equal(errno, EINVAL);
    assert_null(out.data);
    alloc_test_assert_no_leak(&at);
}


static kube_rc_t
secret_oom(kube_alloc_t *alloc, void *ctx)
{
    kube_rc_t    rc;
    kube_str_t   read, decoded;
    const char  *what;

    (void) ctx;
    decoded = KUBE_STR_NULL;
    rc = kube_secret_read(alloc, secret_bed.path, 10, &read, &what);

    if (rc == KUBE_OK) {
        rc = kube_secret_base64(alloc, KUBE_STR("YWJj"), &decoded);
    }

    kube_secret_free(alloc, &read);
    kube_secret_free(alloc, &decoded);

    return rc;
}


static void
test_secret_oom(void **state)
{
    (void) state;
    secret_put(3);
    ALLOC_TEST_EACH(secret_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_secret_base64),
        cmocka_unit_test(test_secret_trim),
        cmocka_unit_test(test_secret_is_token),
        cmocka_unit_test(test_secret_is_pem),
        cmocka_unit_test_setup_teardown(test_secret_read, secret_setup,
                                        secret_teardown),
        cmocka_unit_test_setup_teardown(test_secret_oom, secret_setup,
                                        secret_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * text_test - a kube_text that keeps what is printed, and fails on order.
 *
 * For t/unit only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_TEXT_TEST_H
#define KUBE_TEXT_TEST_H


#include <stdlib.h>
#include <string.h>

#include "kube_text.h"


#define TEXT_TEST_MAX  (256 * 1024)


typedef struct {
    kube_text_t  text;          /* hand &tt->text to the module */
    size_t       calls;
    size_t       fail_at;       /* the k-th write fails; 0: none */
    char        *data;          /* NUL-terminated */
} text_test_t;


static inline bool
text_test_write(void *ctx, const char *data, size_t len)
{
    text_test_t  *tt = ctx;

    if (++tt->calls == tt->fail_at) {
        return false;
    }

    memcpy(tt->data + tt->text.size, data, len);
    tt->data[tt->text.size + len] = '\0';

    return true;
}


/* Forgets what was printed before. */
static inline void
text_test_reset(text_test_t *tt)
{
    kube_text_init(&tt->text, text_test_write, tt, TEXT_TEST_MAX);

    tt->calls = 0;
    tt->fail_at = 0;
    tt->data[0] = '\0';
}


/* tt must not move afterwards: its text points back to it. */
static inline void
text_test_init(text_test_t *tt)
{
    tt->data = malloc(TEXT_TEST_MAX + 1);

    if (tt->data == NULL) {
        abort();
    }

    text_test_reset(tt);
}


static inline void
text_test_done(text_test_t *tt)
{
    free(tt->data);
}


#endif /* KUBE_TEXT_TEST_H */

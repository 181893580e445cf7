/*
 * decode_test - a bed for texts that are decoded: each in memory of its exact
 * length, its envelope read first, as the frame does.
 *
 * For t/unit only; it holds no assertion about what is decoded.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_TEST_H
#define KUBE_DECODE_TEST_H


#include "alloc_test.h"
#include "kube_decode.h"


#define META  "\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\","        \
              "\"uid\":\"u-1\",\"resourceVersion\":\"7\"}"

#define assert_str(s, expected)                                               \
    assert_true(kube_str_eq(s, kube_str(expected)))


typedef struct {
    alloc_test_t             at;
    kube_arena_t             arena;
    char                    *copy;       /* of the text decoded last */
    kube_envelope_reader_t   reader;
    kube_envelope_t          envelope;
    uint32_t                 dropped;
    kube_error_t             error;
    kube_object_t            object;
} decode_test_t;


static inline void
decode_start(decode_test_t *t)
{
    t->copy = NULL;

    alloc_test_init(&t->at);
    kube_arena_init(&t->arena, &t->at.alloc, 16u << 20);
}


static inline void
decode_stop(decode_test_t *t)
{
    free(t->copy);
    t->copy = NULL;

    kube_arena_done(&t->arena);
    alloc_test_assert_no_leak(&t->at);
}


/* A copy that ends where the text does. */
static inline kube_str_t
decode_copy(decode_test_t *t, const char *text, size_t len)
{
    free(t->copy);

    t->copy = malloc(len != 0 ? len : 1);
    assert_non_null(t->copy);
    memcpy(t->copy, text, len);

    return (kube_str_t) { t->copy, len };
}


/* KUBE_INVALID: it is not one item or event, as the frame would find. */
static inline kube_rc_t
decode_envelope(decode_test_t *t, bool event, const char *text, size_t len)
{
    kube_str_t   s;
    const char  *p;

    s = decode_copy(t, text, len);

    p = kube_lexer_space(s.data, s.data + len);
    s.len -= (size_t) (p - s.data);
    s.data = p;

    kube_envelope_reader_init(&t->reader, event);

    t->error = (kube_error_t) { KUBE_INVALID, "no item", 0 };

    if (s.len == 0 || *p != '{'
        || kube_envelope_read(&t->reader, &p, s.data + s.len) != KUBE_OK)
    {
        return KUBE_INVALID;
    }

    if (kube_lexer_space(p, s.data + s.len) != s.data + s.len) {
        t->error.what = "bytes behind the item";
        return KUBE_INVALID;
    }

    kube_envelope_get(&t->reader, s, &t->envelope);

    return KUBE_OK;
}


static inline kube_rc_t
decode_run(decode_test_t *t, kube_resource_t resource, const char *text,
    size_t len)
{
    kube_rc_t  rc;

    kube_arena_reset(&t->arena);

    memset(&t->object, 0, sizeof(t->object));
    t->dropped = 77;

    rc = decode_envelope(t, false, text, len);
    if (rc != KUBE_OK) {
        return rc;
    }

    memset(&t->error, 0, sizeof(t->error));

    rc = kube_decode_object(&t->arena, resource, &t->envelope, &t->object,
                            &t->dropped, &t->error);

    assert_int_equal(t->object.resource, resource);

    if (rc != KUBE_OK) {
        assert_int_equal(t->error.rc, rc);
        assert_non_null(t->error.what);
        assert_true(t->error.offset <= len);
    }

    return rc;
}


#endif /* KUBE_DECODE_TEST_H */

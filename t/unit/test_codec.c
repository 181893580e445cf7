/*
 * test_codec - kube_codec: what is written is read back, and nothing beyond
 * the end or above a maximum is.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_codec.h"
#include "kube_hash.h"


#define CODEC_SIZE  2048


/* Values of every kind; codec_pass is their format. */
typedef struct {
    uint64_t    byte;
    uint64_t    word;
    uint64_t    state;       /* at most 7 */
    size_t      count;       /* at most 1000 */
    kube_str_t  text;        /* at most 200 */
    kube_str_t  names[3];
    kube_str_t  hosts[3];
    char        raw[5];
} codec_values_t;


static void
codec_pass(kube_codec_t *c, codec_values_t *v)
{
    size_t      i;
    kube_str_t  last;

    v->byte = kube_codec_int(c, v->byte, 1);
    v->word = kube_codec_int(c, v->word, 8);
    v->state = kube_codec_max(c, v->state, 7);
    v->count = kube_codec_count(c, v->count, 1000);
    v->text = kube_codec_str(c, v->text, 200);
    kube_codec_bytes(c, v->raw, sizeof(v->raw));
    last = KUBE_STR_NULL;

    for (i = 0; i < 3; i++) {
        v->names[i] = kube_codec_after(c, last, v->names[i]);
        last = v->names[i];
    }

    for (i = 0; i < 3; i++) {
        v->hosts[i] = kube_codec_between(c, last, v->hosts[i]);
        last = v->hosts[i];
    }
}


static codec_values_t
codec_values(void)
{
    return (codec_values_t) {
        .byte = 0xfe, .word = 0x0123456789abcdefull, .state = 7,
        .count = 1000, .text = KUBE_STR("text"),
        .names = { KUBE_STR("web-abc-1"), KUBE_STR("web-abc-22"),
                   KUBE_STR("api") },
        .hosts = { KUBE_STR("ip-10-0-0-9.eu-1.internal"),
                   KUBE_STR("ip-10-0-0-10.eu-1.internal"),
                   KUBE_STR("internal") },
        .raw = { 1, 2, 3, 4, 5 }
    };
}


/* Written into a block of its exact size; the caller frees it. */
static unsigned char *
codec_write(codec_values_t v, size_t *size)
{
    kube_codec_t    c;
    unsigned char  *p;

    c = kube_codec_writer(NULL, 0);
    codec_pass(&c, &v);
    assert_false(c.bad);
    *size = c.size;

    p = malloc(*size);
    assert_non_null(p);
    c = kube_codec_writer(p, *size);
    codec_pass(&c, &v);
    assert_int_equal(c.size, *size);

    return p;
}


static void
test_codec_round_trip(void **state)
{
    size_t           size, i;
    kube_codec_t     c;
    alloc_test_t     at;
    kube_arena_t     arena;
    codec_values_t   v, r;
    unsigned char   *p;

    (void) state;
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, CODEC_SIZE);
    v = codec_values();
    p = codec_write(v, &size);

    memset(&r, 0, sizeof(r));
    c = kube_codec_reader(p, size, &arena);
    codec_pass(&c, &r);
    assert_true(kube_codec_is_done(&c));
    assert_true(r.byte == v.byte && r.word == v.word && r.state == v.state);
    assert_int_equal(r.count, v.count);
    assert_true(kube_str_eq(r.text, v.text));
    assert_memory_equal(r.raw, v.raw, sizeof(v.raw));

    for (i = 0; i < 3; i++) {
        assert_true(kube_str_eq(r.names[i], v.names[i]));
        assert_true(kube_str_eq(r.hosts[i], v.hosts[i]));
    }

    kube_arena_done(&arena);
    free(p);
}


/* Any shorter bytes are bad; any longer ones are not all read. */
static void
test_codec_ends(void **state)
{
    size_t           size, len;
    kube_codec_t     c;
    codec_values_t   r;
    unsigned char   *p, *exact;

    (void) state;
    p = codec_write(codec_values(), &size);

    for (len = 0; len < size; len++) {
        exact = malloc(len + 1);
        assert_non_null(exact);
        memcpy(exact + 1, p, len);
        memset(&r, 0, sizeof(r));
        c = kube_codec_reader(exact + 1, len, NULL);
        codec_pass(&c, &r);
        assert_true(c.bad);
        assert_false(kube_codec_is_done(&c));
        free(exact);
    }

    c = kube_codec_reader(p, size, NULL);
    (void) kube_codec_int(&c, 0, 1);
    assert_false(c.bad);
    assert_false(kube_codec_is_done(&c));
    free(p);
}


/* Into less than it takes: as much is counted, and nothing beyond written. */
static void
test_codec_room(void **state)
{
    size_t           size, cap;
    kube_codec_t     c;
    codec_values_t   v;
    unsigned char   *p, *exact;

    (void) state;
    p = codec_write(codec_values(), &size);

    for (cap = 0; cap < size; cap++) {
        v = codec_values();
        exact = malloc(cap + 1);
        assert_non_null(exact);
        c = kube_codec_writer(exact + 1, cap);
        codec_pass(&c, &v);
        assert_int_equal(c.size, size);
        assert_false(c.bad);
        free(exact);
    }

    free(p);
}


static void
codec_count(size_t v, size_t max, size_t size, bool bad)
{
    kube_codec_t   c;
    unsigned char  bytes[4];

    c = kube_codec_writer(bytes, sizeof(bytes));
    (void) kube_codec_count(&c, v, max);
    assert_int_equal(c.bad, bad);
    assert_int_equal(c.size, size);

    c = kube_codec_reader(bytes, c.size, NULL);
    assert_int_equal(kube_codec_count(&c, 0, max), bad ? 0 : v);
    assert_int_equal(c.bad, bad);
}


static void
test_codec_maxima(void **state)
{
    size_t           i;
    char             text[300];
    kube_codec_t     c;
    codec_values_t   v;

    (void) state;
    memset(text, 'a', sizeof(text));

    codec_count(0, 1000, 1, false);
    codec_count(127, 1000, 1, false);
    codec_count(128, 1000, 2, false);
    codec_count(1000, 1000, 2, false);
    codec_count(1001, 1000, 2, true);

    for (i = 0; i < 5; i++) {
        v = codec_values();

        switch (i) {
        case 0:
            v.state = 8;
            break;

        case 1:
            v.text = (kube_str_t) { text, 201 };
            break;

        case 2:
            v.names[1] = (kube_str_t) { text, KUBE_CODEC_STR_MAX + 1 };
            break;

        case 3:
            v.count = 1001;
            break;

        default:
            v.text = (kube_str_t) { text, 200 };
        }

        c = kube_codec_writer(NULL, 0);
        codec_pass(&c, &v);
        assert_int_equal(c.bad, i != 4);
    }
}


/* A name that shares more than there was, or is empty, is none. */
static void
test_codec_after(void **state)
{
    size_t         i;
    kube_codec_t   c;
    alloc_test_t   at;
    kube_arena_t   arena;

    static const struct {
        const char  *last;
        uint8_t      bytes[4];
        size_t       n;
        bool         bad;
    } table[] = {
        { .last = "ab", .bytes = { 2, 1, 'c' }, .n = 3, .bad = false },
        { .last = "ab", .bytes = { 2, 0 },      .n = 2, .bad = false },
        { .last = "ab", .bytes = { 3, 1, 'c' }, .n = 3, .bad = true },
        { .last = "ab", .bytes = { 0, 0 },      .n = 2, .bad = true },
        { .last = "",   .bytes = { 1, 1, 'c' }, .n = 3, .bad = true },
        { .last = "",   .bytes = { 0, 2, 'c' }, .n = 3, .bad = true },
    };

    (void) state;
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, CODEC_SIZE);

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        c = kube_codec_reader(table[i].bytes, table[i].n, &arena);
        (void) kube_codec_after(&c, kube_str(table[i].last), KUBE_STR_NULL);
        assert_int_equal(c.bad, table[i].bad);
    }

    kube_arena_done(&arena);
}


static void
test_codec_between(void **state)
{
    size_t         i;
    kube_codec_t   c;
    kube_str_t     s;
    alloc_test_t   at;
    kube_arena_t   arena;

    static const struct {
        const char  *last;
        uint8_t      bytes[5];
        size_t       n;
        const char  *is;          /* NULL: bad */
    } table[] = {
        { .last = "abc", .bytes = { 1, 1, 2, 'x', 'y' }, .n = 5, .is = "axyc" },
        { .last = "abc", .bytes = { 1, 2, 0 },           .n = 3, .is = "abc" },
        { .last = "abc", .bytes = { 0, 3, 1, 'x' },      .n = 4, .is = "xabc" },
        { .last = "abc", .bytes = { 0, 0, 1, 'x' },      .n = 4, .is = "x" },
        { .last = "",    .bytes = { 0, 0, 1, 'x' },      .n = 4, .is = "x" },
        { .last = "abc", .bytes = { 2, 2, 0 },           .n = 3, .is = NULL },
        { .last = "abc", .bytes = { 0, 4, 1, 'x' },      .n = 4, .is = NULL },
        { .last = "",    .bytes = { 0, 1, 1, 'x' },      .n = 4, .is = NULL },
        { .last = "abc", .bytes = { 0, 0, 0 },           .n = 3, .is = NULL },
        { .last = "abc", .bytes = { 1, 1, 2, 'x' },      .n = 4, .is = NULL },
        { .last = "abc", .bytes = { 1, 1 },              .n = 2, .is = NULL },
    };

    (void) state;
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, CODEC_SIZE);

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        c = kube_codec_reader(table[i].bytes, table[i].n, &arena);
        s = kube_codec_between(&c, kube_str(table[i].last), KUBE_STR_NULL);
        assert_int_equal(c.bad, table[i].is == NULL);

        if (table[i].is != NULL) {
            assert_true(kube_str_eq(s, kube_str(table[i].is)));
        }
    }

    kube_arena_done(&arena);
}


/* Any two names: what is shared is as much as there is, and comes back. */
static void
test_codec_shares(void **state)
{
    char           a[300], b[300];
    size_t         i, k, front, end;
    unsigned       n;
    kube_str_t     x, y, z;
    kube_codec_t   c;
    alloc_test_t   at;
    kube_arena_t   arena;
    kube_random_t  random;
    unsigned char  bytes[64];

    (void) state;
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, CODEC_SIZE);
    kube_random_init(&random, 7);

    for (n = 0; n < 20000; n++) {
        x = (kube_str_t) { a, kube_random_range(&random, 0, 24) };
        y = (kube_str_t) { b, kube_random_range(&random, 1, 24) };

        for (i = 0; i < 24; i++) {
            a[i] = "ooooooox"[kube_random_range(&random, 0, 7)];
            b[i] = "ooooooox"[kube_random_range(&random, 0, 7)];
        }

        for (front = 0; front < x.len && front < y.len
                        && a[front] == b[front]; front++) { /* void */ }

        k = (x.len < y.len ? x.len : y.len) - front;

        for (end = 0; end < k && a[x.len - 1 - end] == b[y.len - 1 - end];
             end++) { /* void */ }

        c = kube_codec_writer(bytes, sizeof(bytes));
        (void) kube_codec_between(&c, x, y);
        assert_int_equal(c.size, 3 + y.len - front - end);

        c = kube_codec_reader(bytes, c.size, &arena);
        z = kube_codec_between(&c, x, KUBE_STR_NULL);
        assert_true(kube_codec_is_done(&c) && kube_str_eq(y, z));
        kube_arena_reset(&arena);
    }

    kube_arena_done(&arena);
}


static kube_rc_t
codec_read(kube_alloc_t *alloc, void *ctx)
{
    size_t           size;
    kube_codec_t     c;
    kube_arena_t     arena;
    codec_values_t   r;
    unsigned char   *p;

    (void) ctx;
    p = codec_write(codec_values(), &size);
    memset(&r, 0, sizeof(r));
    kube_arena_init(&arena, alloc, CODEC_SIZE);

    c = kube_codec_reader(p, size, &arena);
    codec_pass(&c, &r);
    (void) kube_codec_array(&c, 10, 8);
    kube_arena_done(&arena);
    free(p);

    return c.nomem ? KUBE_NOMEM : KUBE_OK;
}


/*
 * Names that are put together lie one behind the other in pieces of the arena,
 * and none on another, whatever their lengths; nothing is aligned for them.
 */
static void
test_codec_text(void **state)
{
    size_t         i;
    char           names[64][KUBE_CODEC_STR_MAX];
    kube_str_t     s, last, made[64];
    kube_codec_t   c;
    kube_arena_t   arena;
    alloc_test_t   at;
    unsigned char  bytes[64 * (KUBE_CODEC_STR_MAX + 2)];

    (void) state;

    c = kube_codec_writer(bytes, sizeof(bytes));
    last = KUBE_STR_NULL;

    for (i = 0; i < 64; i++) {
        memset(names[i], 'a', sizeof(names[i]));
        s.data = names[i];
        s.len = 1 + i * 61 % KUBE_CODEC_STR_MAX;
        names[i][s.len - 1] = (char) ('A' + i % 26);
        last = kube_codec_after(&c, last, s);
    }

    assert_false(c.bad);
    assert_in_range(c.size, 1, sizeof(bytes));

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);
    c = kube_codec_reader(bytes, c.size, &arena);
    last = KUBE_STR_NULL;

    for (i = 0; i < 64; i++) {
        made[i] = kube_codec_after(&c, last, KUBE_STR_NULL);
        last = made[i];
    }

    assert_true(kube_codec_is_done(&c));

    for (i = 0; i < 64; i++) {
        assert_int_equal(made[i].len, 1 + i * 61 % KUBE_CODEC_STR_MAX);
        assert_memory_equal(made[i].data, names[i], made[i].len);
    }

    /* what is left is the end of the last piece, which is the arena's last */

    assert_in_range(c.text_n, 0, KUBE_CODEC_TEXT - 1);
    assert_ptr_equal(c.text + c.text_n, kube_arena_alloc(&arena, 1));

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


static void
test_codec_no_memory(void **state)
{
    (void) state;
    ALLOC_TEST_EACH(codec_read, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_codec_round_trip),
        cmocka_unit_test(test_codec_ends),
        cmocka_unit_test(test_codec_room),
        cmocka_unit_test(test_codec_maxima),
        cmocka_unit_test(test_codec_after),
        cmocka_unit_test(test_codec_between),
        cmocka_unit_test(test_codec_shares),
        cmocka_unit_test(test_codec_text),
        cmocka_unit_test(test_codec_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

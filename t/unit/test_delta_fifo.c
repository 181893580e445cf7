/*
 * test_delta_fifo - order, coalescing, marks, limits.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_delta_fifo.h"


static const kube_seed_t  seed = { 1, 2 };


/* Borrowed until the next call. */
static kube_object_t
service_of(const char *name, const char *rv)
{
    kube_object_t  o;

    memset(&o, 0, sizeof(kube_object_t));
    o.resource = KUBE_RESOURCE_SERVICES;
    o.u.service.meta.ns = KUBE_STR("shop");
    o.u.service.meta.name = kube_str(name);
    o.u.service.meta.uid = KUBE_STR("u");
    o.u.service.meta.rv = kube_str(rv);

    return o;
}


static kube_rc_t
put(kube_delta_fifo_t *fifo, kube_delta_kind_t kind, unsigned scope,
    const char *name, const char *rv, uint64_t read_ms)
{
    kube_object_t  o;

    if (kind == KUBE_DELTA_REPLACED || kind == KUBE_DELTA_UPDATED) {
        o = service_of(name, rv);
        return kube_delta_fifo_object(fifo, kind, scope, &o, read_ms);
    }

    return kube_delta_fifo_put(fifo, &(kube_delta_t) {
        .kind = kind,
        .scope = scope,
        .resource = KUBE_RESOURCE_SERVICES,
        .ns = KUBE_STR("shop"),
        .name = kube_str(name),
        .rv = kube_str(rv),
        .reason = (kind == KUBE_DELTA_REFUSED) ? KUBE_STR("malformed")
                                               : KUBE_STR_NULL,
        .read_ms = read_ms
    });
}


/* A letter for each kind. */
static const char  kinds[] = "RUDXBSF";


/* What leaves: "U0a@4|U0b@2", as in orders[]. */
static const char *
drain(kube_delta_fifo_t *fifo)
{
    size_t            len;
    kube_delta_t      d;
    kube_record_id_t  id;

    static char  text[65536];

    len = 0;
    text[0] = '\0';

    while (kube_delta_fifo_peek(fifo, &d) == KUBE_OK) {

        if (d.record != NULL) {
            assert_int_equal(kube_record_id(d.record, d.record->size, &id),
                             KUBE_OK);
            assert_true(kube_str_eq(id.meta.name, d.name));
            assert_true(kube_str_eq(id.meta.rv, d.rv));
        }

        assert_true((d.record != NULL)
                    == (d.kind == KUBE_DELTA_REPLACED
                        || d.kind == KUBE_DELTA_UPDATED));

        len += (size_t) snprintf(text + len, sizeof(text) - len,
                                 "%s%c%u%.*s%s%.*s", len != 0 ? "|" : "",
                                 kinds[d.kind], d.scope, (int) d.name.len,
                                 d.name.data, d.rv.len != 0 ? "@" : "",
                                 (int) d.rv.len, d.rv.data);
        kube_delta_fifo_drop(fifo);
    }

    return text;
}


typedef struct {
    alloc_test_t        at;
    kube_delta_fifo_t  *fifo;
} fixture_t;


static void
fixture_init(fixture_t *f, size_t keys, size_t bytes)
{
    alloc_test_init(&f->at);
    f->fifo = kube_delta_fifo_create(&f->at.alloc, seed, keys, bytes);
    assert_non_null(f->fifo);
}


static void
fixture_done(fixture_t *f)
{
    kube_delta_fifo_destroy(f->fifo);
    alloc_test_assert_no_leak(&f->at);
}


#define R  KUBE_DELTA_REPLACED
#define U  KUBE_DELTA_UPDATED
#define D  KUBE_DELTA_DELETED
#define X  KUBE_DELTA_REFUSED
#define B  KUBE_DELTA_LIST_BEGIN
#define S  KUBE_DELTA_SYNC

#define PUT(kind, scope, name, rv)                                            \
    assert_int_equal(put(f.fifo, kind, scope, name, rv, 100), KUBE_OK)


/*
 * What is done, and what leaves.  "U0a@1": an UPDATED of key a in scope 0 at
 * version 1 is put; "?" peeks, "!" drops.
 */
static const struct {
    const char  *title;
    const char  *done;
    const char  *leaves;
} orders[] = {

    { "a key keeps its place and takes its newest state",
      "U0a@1 U0b@2 D0c@3 U0a@4 U1a@5",
      "U0a@4|U0b@2|D0c@3|U1a@5" },

    { "nothing was shown, so nothing goes",
      "U0a@6 !",
      "U0a@6" },

    { "the newest state of any kind counts",
      "U0a@1 D0a@2 D0b@3 U0b@4 X0c@5 U0c@6 U0d@7 X0d@8",
      "D0a@2|U0b@4|U0c@6|X0d@8" },

    { "what a list brought stays so, or a server set back is passed over",
      "R0a@1 U0a@2 R0b@1 D0b@2 U0b@3 U0c@4 R0c@5",
      "R0a@2|R0b@3|R0c@5" },

    { "a state without a version has none",
      "U0a@1 X0a U0b@2 D0b",
      "X0a|D0b" },

    { "that a list brought it is forgotten once it left",
      "R0a@1 ? ! U0a@3",
      "U0a@3" },

    { "an item does not leave in front of the list it is of",
      "U0a@1 U1a@1 B0 R0a@2 R0b@2 U1a@2 S0 U0b@3 U0c@4",
      "U0a@1|U1a@2|B0|R0a@2|R0b@3|S0|U0c@4" },

    { "nor one of a list beside the watch",
      "U0a@1 U1a@1 F0 U0a@2 U1a@2",
      "U0a@1|U1a@2|F0|U0a@2" },

    { "a list that begins anew behind another one waits twice",
      "B0 R0a@1 B0 R0a@2 U0a@3 S0",
      "B0|R0a@1|B0|R0a@3|S0" },

    { "a newer state between peek and drop is not lost",
      "U0a@1 U0b@2 ? U0a@3 !",
      "U0a@3|U0b@2" },

    { "an older state in front of a list's beginning is dropped alone",
      "U0a@1 B0 R0a@2 ? !",
      "B0|R0a@2" },

    { "what was peeked at is dropped once",
      "U0a@1 ? ! U0b@2 U0c@3 !",
      "U0b@2|U0c@3" }
};


static void
order_do(kube_delta_fifo_t *fifo, const char *word)
{
    char           name[16], rv[16];
    size_t         len;
    const char    *at;
    kube_delta_t   d;

    switch (word[0]) {
    case '?':
        assert_int_equal(kube_delta_fifo_peek(fifo, &d), KUBE_OK);
        return;

    case '!':
        kube_delta_fifo_drop(fifo);
        return;
    }

    len = strcspn(word, " ");
    at = memchr(word, '@', len);
    snprintf(name, sizeof(name), "%.*s",
             (int) ((at != NULL ? (size_t) (at - word) : len) - 2), word + 2);
    snprintf(rv, sizeof(rv), "%.*s",
             at != NULL ? (int) (word + len - at - 1) : 0, at + (at != NULL));

    assert_int_equal(put(fifo,
                         (kube_delta_kind_t) (strchr(kinds, word[0]) - kinds),
                         (unsigned) (word[1] - '0'), name, rv, 100),
                     KUBE_OK);
}


static void
test_fifo_order(void **state)
{
    size_t        i;
    fixture_t     f;
    const char   *word, *leaves;
    kube_delta_t  d;

    (void) state;

    for (i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        fixture_init(&f, 100, 1 << 20);
        assert_int_equal(kube_delta_fifo_peek(f.fifo, &d), KUBE_AGAIN);

        for (word = orders[i].done; word != NULL; word = strchr(word, ' ')) {
            word += strspn(word, " ");
            order_do(f.fifo, word);
        }

        leaves = drain(f.fifo);

        if (strcmp(leaves, orders[i].leaves) != 0) {
            fail_msg("%s: %s", orders[i].title, leaves);
        }

        assert_int_equal(kube_delta_fifo_depth(f.fifo), 0);
        fixture_done(&f);
    }

    kube_delta_fifo_destroy(NULL);
}


/* A walk shows what will leave, in this order, and takes nothing. */
static void
test_fifo_walk(void **state)
{
    size_t        n;
    fixture_t     f;
    const void   *at;
    kube_delta_t  d;

    static const char *const  names[] = { "a", "b", "c" };
    static const char *const  rvs[] = { "3", "2", "4" };

    (void) state;

    fixture_init(&f, 100, 1 << 20);
    at = NULL;
    assert_int_equal(kube_delta_fifo_next(f.fifo, &at, &d), KUBE_AGAIN);

    PUT(U, 0, "a", "1");
    PUT(U, 1, "b", "2");
    PUT(D, 0, "a", "3");
    PUT(U, 0, "c", "4");

    for (n = 0; n < 3; n++) {
        assert_int_equal(kube_delta_fifo_next(f.fifo, &at, &d), KUBE_OK);
        assert_int_equal(d.kind, (n == 0) ? D : U);
        assert_int_equal(d.scope, (n == 1) ? 1 : 0);
        assert_true(kube_str_eq(d.name, kube_str(names[n])));
        assert_true(kube_str_eq(d.rv, kube_str(rvs[n])));
        assert_true((d.record != NULL) == (n != 0));
    }

    assert_int_equal(kube_delta_fifo_next(f.fifo, &at, &d), KUBE_AGAIN);
    assert_int_equal(kube_delta_fifo_next(f.fifo, &at, &d), KUBE_AGAIN);
    kube_delta_fifo_drop(f.fifo);
    assert_string_equal(drain(f.fifo), "D0a@3|U1b@2|U0c@4");
    fixture_done(&f);
}


static void
test_fifo_depth(void **state)
{
    fixture_t  f;

    (void) state;

    fixture_init(&f, 100, 1 << 20);

    PUT(U, 0, "a", "1");
    PUT(U, 0, "b", "2");
    PUT(D, 0, "c", "3");
    PUT(U, 0, "a", "4");
    PUT(U, 1, "a", "5");
    assert_int_equal(kube_delta_fifo_depth(f.fifo), 4);
    assert_int_equal(kube_delta_fifo_depth_scope(f.fifo, 0), 3);
    assert_int_equal(kube_delta_fifo_depth_scope(f.fifo, 1), 1);
    assert_int_equal(kube_delta_fifo_depth_scope(f.fifo, 9999), 0);
    assert_string_equal(drain(f.fifo), "U0a@4|U0b@2|D0c@3|U1a@5");
    assert_int_equal(kube_delta_fifo_depth(f.fifo), 0);
    assert_int_equal(kube_delta_fifo_depth_scope(f.fifo, 0), 0);

    fixture_done(&f);
}


static void
test_fifo_fields(void **state)
{
    fixture_t      f;
    kube_delta_t   d;
    kube_object_t  o;

    (void) state;

    fixture_init(&f, 100, 1 << 20);

    memset(&o, 0, sizeof(kube_object_t));
    o.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    o.u.slice.meta.ns = KUBE_STR("shop");
    o.u.slice.meta.name = KUBE_STR("web-1");
    o.u.slice.meta.rv = KUBE_STR("7");
    o.u.slice.service = KUBE_STR("web");
    o.u.slice.family = KUBE_FAMILY_IPV4;
    o.u.slice.trigger_ms = 1234;

    assert_int_equal(kube_delta_fifo_object(f.fifo, U, 3, &o, 50), KUBE_OK);

    /* the earliest read counts, and the newest trigger */
    o.u.slice.trigger_ms = 5678;
    assert_int_equal(kube_delta_fifo_object(f.fifo, U, 3, &o, 60), KUBE_OK);

    assert_int_equal(kube_delta_fifo_peek(f.fifo, &d), KUBE_OK);
    assert_int_equal(d.resource, KUBE_RESOURCE_ENDPOINTSLICES);
    assert_int_equal(d.scope, 3);
    assert_int_equal(d.read_ms, 50);
    assert_int_equal(d.trigger_ms, 5678);
    assert_true(kube_str_eq(d.ns, KUBE_STR("shop")));
    assert_true(kube_str_eq(d.rv, KUBE_STR("7")));
    kube_delta_fifo_drop(f.fifo);

    PUT(X, 0, "a", "8");
    assert_int_equal(kube_delta_fifo_peek(f.fifo, &d), KUBE_OK);
    assert_true(kube_str_eq(d.reason, KUBE_STR("malformed")));
    assert_true(kube_str_eq(d.rv, KUBE_STR("8")));
    assert_null(d.record);
    kube_delta_fifo_drop(f.fifo);

    /* the same name in another namespace or resource is another key */
    d = (kube_delta_t) { .kind = D, .ns = KUBE_STR("ab"),
                         .name = KUBE_STR("c") };
    assert_int_equal(kube_delta_fifo_put(f.fifo, &d), KUBE_OK);
    d.ns = KUBE_STR("a");
    d.name = KUBE_STR("bc");
    assert_int_equal(kube_delta_fifo_put(f.fifo, &d), KUBE_OK);
    d.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    assert_int_equal(kube_delta_fifo_put(f.fifo, &d), KUBE_OK);
    assert_int_equal(kube_delta_fifo_depth(f.fifo), 3);

    fixture_done(&f);
}


static void
test_fifo_bad(void **state)
{
    char          name[300];
    fixture_t     f;
    kube_delta_t  d;

    (void) state;

    fixture_init(&f, 100, 1 << 20);
    memset(name, 'a', sizeof(name));

    d = (kube_delta_t) { .kind = D, .ns = KUBE_STR("shop"),
                         .name = { name, KUBE_NAME_LEN_MAX + 1 } };
    assert_int_equal(kube_delta_fifo_put(f.fifo, &d), KUBE_INVALID);
    d.ns = (kube_str_t) { name, KUBE_NAMESPACE_LEN_MAX + 1 };
    d.name = KUBE_STR("web");
    assert_int_equal(kube_delta_fifo_put(f.fifo, &d), KUBE_INVALID);
    assert_int_equal(put(f.fifo, D, 0, "", "", 0), KUBE_INVALID);
    assert_int_equal(put(f.fifo, D, KUBE_SCOPES_MAX, "a", "", 0),
                     KUBE_INVALID);
    assert_int_equal(put(f.fifo, U, KUBE_SCOPES_MAX, "a", "1", 0),
                     KUBE_INVALID);
    assert_int_equal(put(f.fifo, S, KUBE_SCOPES_MAX, "", "", 0),
                     KUBE_INVALID);
    assert_int_equal(kube_delta_fifo_depth(f.fifo), 0);

    /* a version that is none is not carried on */
    d.ns = KUBE_STR("shop");
    d.rv = (kube_str_t) { name, KUBE_RV_LEN_MAX + 1 };
    assert_int_equal(kube_delta_fifo_put(f.fifo, &d), KUBE_OK);
    assert_int_equal(kube_delta_fifo_peek(f.fifo, &d), KUBE_OK);
    assert_int_equal(d.rv.len, 0);

    fixture_done(&f);
}


static void
test_fifo_limits(void **state)
{
    char       name[16];
    unsigned   i;
    fixture_t  f;

    (void) state;

    fixture_init(&f, 8, 1 << 20);

    for (i = 0; i < 8; i++) {
        assert_int_equal(kube_delta_fifo_high(f.fifo), i > 6);
        snprintf(name, sizeof(name), "n%u", i);
        PUT(U, 0, name, "1");
    }

    assert_true(kube_delta_fifo_high(f.fifo));
    assert_int_equal(put(f.fifo, U, 0, "n8", "1", 0), KUBE_NOMEM);

    /* what waits already needs no place; marks always have one */
    PUT(U, 0, "n0", "2");
    PUT(S, 0, "", "");
    assert_int_equal(kube_delta_fifo_depth(f.fifo), 9);
    assert_false(kube_delta_fifo_low(f.fifo));

    (void) drain(f.fifo);
    assert_true(kube_delta_fifo_low(f.fifo));
    assert_false(kube_delta_fifo_high(f.fifo));
    fixture_done(&f);

    /* bytes: an empty FIFO accepts an object of any size */
    fixture_init(&f, 100, 64);
    PUT(U, 0, "a", "1");
    assert_true(kube_delta_fifo_high(f.fifo));
    assert_int_equal(put(f.fifo, U, 0, "b", "1", 0), KUBE_NOMEM);
    PUT(U, 0, "a", "2");
    assert_string_equal(drain(f.fifo), "U0a@2");
    fixture_done(&f);
}


/* The fewest bytes that n objects of one size need. */
static size_t
limit_of(unsigned n)
{
    char       name[16];
    bool       fits;
    size_t     bytes;
    unsigned   i;
    fixture_t  f;

    for (bytes = 64, fits = false; !fits; bytes++) {
        fixture_init(&f, 100, bytes);
        fits = true;

        for (i = 0; i < n && fits; i++) {
            snprintf(name, sizeof(name), "n%u", i);
            fits = (put(f.fifo, U, 0, name, "1", 0) == KUBE_OK);
        }

        fixture_done(&f);
    }

    return bytes - 1;
}


static void
test_fifo_bytes(void **state)
{
    size_t     two;
    fixture_t  f;

    (void) state;
    two = limit_of(2);
    assert_int_equal(limit_of(3), two / 2 * 3);

    fixture_init(&f, 100, two);
    assert_true(kube_delta_fifo_low(f.fifo));
    PUT(U, 0, "n0", "1");
    assert_true(kube_delta_fifo_low(f.fifo));
    assert_false(kube_delta_fifo_high(f.fifo));
    PUT(U, 0, "n1", "1");
    assert_false(kube_delta_fifo_low(f.fifo));
    assert_true(kube_delta_fifo_high(f.fifo));
    assert_int_equal(put(f.fifo, U, 0, "n2", "1", 0), KUBE_NOMEM);

    /* a newer state takes the place of the one before it, and no other */
    PUT(U, 0, "n0", "2");
    assert_int_equal(put(f.fifo, U, 0, "n0", "20000", 0), KUBE_NOMEM);
    assert_string_equal(drain(f.fifo), "U0n0@2|U0n1@1");
    fixture_done(&f);
}


/* No record can be made of it: it is named all the same. */
static void
test_fifo_too_large(void **state)
{
    fixture_t      f;
    kube_port_t    port;
    kube_delta_t   d;
    kube_object_t  o;

    (void) state;

    fixture_init(&f, 100, 1 << 20);
    memset(&port, 0, sizeof(port));

    /* more than an object may have: their values are not looked at */
    o = service_of("big", "5");
    o.u.service.ports = &port;
    o.u.service.ports_n = KUBE_SERVICE_PORTS_MAX + 1;

    assert_int_equal(kube_delta_fifo_object(f.fifo, U, 0, &o, 1), KUBE_OK);
    assert_int_equal(kube_delta_fifo_peek(f.fifo, &d), KUBE_OK);
    assert_int_equal(d.kind, X);
    assert_true(kube_str_eq(d.reason, KUBE_STR("too_large")));
    assert_true(kube_str_eq(d.name, KUBE_STR("big")));
    assert_int_equal(d.uid_hash, kube_uid_hash(o.u.service.meta.uid));
    assert_int_not_equal(d.uid_hash, 0);

    fixture_done(&f);
}


#define KEYS  20

/* Every key's last state leaves, and what leaves for a key leaves in order. */
static void
test_fifo_random(void **state)
{
    char           name[16], rv[16];
    bool           waits[KEYS];
    unsigned       step, key, last[KEYS], kind[KEYS];
    fixture_t      f;
    kube_delta_t   d;
    kube_random_t  random;

    (void) state;

    fixture_init(&f, 1000, 1 << 20);
    kube_random_init(&random, 5);
    memset(waits, 0, sizeof(waits));

    for (step = 1; step < 50000; step++) {
        key = (unsigned) kube_random_range(&random, 0, KEYS - 1);

        if (kube_random_range(&random, 0, 2) != 0) {
            kind[key] = kube_random_range(&random, 0, 1) ? U : D;
            last[key] = step;
            waits[key] = true;
            snprintf(name, sizeof(name), "k%u", key);
            snprintf(rv, sizeof(rv), "%u", step);
            PUT((kube_delta_kind_t) kind[key], 0, name, rv);
            continue;
        }

        if (kube_delta_fifo_peek(f.fifo, &d) != KUBE_OK) {
            continue;
        }

        memcpy(name, d.name.data, d.name.len);
        name[d.name.len] = '\0';
        key = (unsigned) strtoul(name + 1, NULL, 10);
        memcpy(rv, d.rv.data, d.rv.len);
        rv[d.rv.len] = '\0';

        assert_true(waits[key]);
        assert_int_equal(strtoul(rv, NULL, 10), last[key]);
        assert_int_equal(d.kind, kind[key]);
        waits[key] = false;
        kube_delta_fifo_drop(f.fifo);
    }

    fixture_done(&f);
}


static void
fifo_oom(alloc_test_t *at, void *ctx)
{
    kube_rc_t           rc;
    unsigned            i;
    kube_delta_fifo_t  *fifo;

    static const struct {
        kube_delta_kind_t  kind;
        const char        *name;
        const char        *rv;
    } puts[] = {
        { U, "a", "1" },
        { U, "a", "2" },
        { D, "a", "3" },
        { B, "", "" },
        { R, "b", "4" }
    };

    (void) ctx;

    fifo = kube_delta_fifo_create(&at->alloc, seed, 16, 1 << 20);

    if (fifo == NULL) {
        assert_true(at->failed);
        return;
    }

    for (i = 0; i < sizeof(puts) / sizeof(puts[0]); i++) {
        rc = ALLOC_TEST_AGAIN(at, put(fifo, puts[i].kind, 0, puts[i].name,
                                      puts[i].rv, 1));

        if (rc == KUBE_OK && (i == 1 || i == 2)) {
            assert_int_equal(kube_delta_fifo_depth(fifo), 1);
        }
    }

    if (!at->fail_from) {
        assert_string_equal(drain(fifo), "D0a@3|B0|R0b@4");
    }

    kube_delta_fifo_destroy(fifo);
}


static void
test_fifo_oom(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(fifo_oom, NULL);
}


/* What waits of one key: "Da" the end of uid a, "Ub", "Rb", "X" refused. */
static const struct {
    const char  *words;
    char         deleted;        /* the uid that is told; 0: none */
    char         kind;
} recreations[] = {
    { "Ua", 0, 'U' },
    { "Da", 0, 'D' },
    { "Ua Da", 0, 'D' },
    { "Da Ub", 'a', 'U' },
    { "Ua Da Ub", 'a', 'U' },
    { "Ua Da Ub Ub", 'a', 'U' },
    { "Da Rb", 'a', 'R' },
    { "Da Ua", 0, 'U' },         /* the same object: it was no end */
    { "Da Ub Db", 'a', 'D' },
    { "Da Ub Db Uc", 'a', 'U' },
    { "Ua Ub", 0, 'U' },         /* nobody saw an end */
    { "Ub Db Uc", 'b', 'U' },
    { "Da Xb", 'a', 'X' },
    { "Da Xb Ub", 'a', 'U' },
    { "D- Ub", 0, 'U' }          /* the end of nobody knows whom */
};


static void
test_recreated(void **state)
{
    size_t          i;
    fixture_t       f;
    const char     *word;
    kube_delta_t    d;
    kube_object_t   o;

    (void) state;

    for (i = 0; i < sizeof(recreations) / sizeof(recreations[0]); i++) {
        fixture_init(&f, 100, 1u << 20);

        for (word = recreations[i].words; *word != '\0';
             word += 2 + (word[2] == ' '))
        {
            o = service_of("web", "5");
            o.u.service.meta.uid = (kube_str_t) { word + 1, word[1] != '-' };

            if (word[0] == 'U' || word[0] == 'R') {
                assert_int_equal(kube_delta_fifo_object(f.fifo,
                                     word[0] == 'U' ? KUBE_DELTA_UPDATED
                                                    : KUBE_DELTA_REPLACED,
                                     0, &o, 1), KUBE_OK);
                continue;
            }

            assert_int_equal(kube_delta_fifo_put(f.fifo, &(kube_delta_t) {
                .kind = (word[0] == 'D') ? KUBE_DELTA_DELETED
                                         : KUBE_DELTA_REFUSED,
                .resource = KUBE_RESOURCE_SERVICES,
                .ns = KUBE_STR("shop"),
                .name = KUBE_STR("web"),
                .uid_hash = kube_uid_hash(o.u.service.meta.uid)
            }), KUBE_OK);
        }

        assert_int_equal(kube_delta_fifo_depth(f.fifo), 1);
        assert_int_equal(kube_delta_fifo_peek(f.fifo, &d), KUBE_OK);
        assert_int_equal(kinds[d.kind], recreations[i].kind);
        assert_int_equal(d.deleted_uid, recreations[i].deleted == 0 ? 0
                         : kube_uid_hash((kube_str_t) {
                                             &recreations[i].deleted, 1
                                         }));
        fixture_done(&f);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_fifo_order),
        cmocka_unit_test(test_fifo_walk),
        cmocka_unit_test(test_fifo_depth),
        cmocka_unit_test(test_fifo_fields),
        cmocka_unit_test(test_fifo_bad),
        cmocka_unit_test(test_fifo_limits),
        cmocka_unit_test(test_fifo_bytes),
        cmocka_unit_test(test_fifo_too_large),
        cmocka_unit_test(test_fifo_random),
        cmocka_unit_test(test_fifo_oom),
        cmocka_unit_test(test_recreated)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

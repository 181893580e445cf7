/*
 * test_store - a store on the heap beside a model: keys, indexes, lists as a
 * diff, transactions, and memory that fails.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_store.h"


#define NAMES  12

typedef union {
    kube_record_t  record;
    uint64_t       words[256];
} bytes_t;

typedef struct {
    kube_store_t  *store;
    char           told[4096];
    size_t         len;
    bool           refuse;       /* the next change */
} fixture_t;


/* A slice "a": version rv, of the Service, on nodes "n1,n2". */
static const kube_record_t *
slice_make(bytes_t *b, const char *name, const char *rv, const char *service,
    const char *nodes)
{
    size_t           n, i;
    kube_object_t    o;
    kube_endpoint_t  e[8];

    memset(&o, 0, sizeof(o));
    memset(e, 0, sizeof(e));

    for (n = 0; *nodes != '\0'; n++) {
        i = strcspn(nodes, ",");
        e[n].node = (kube_str_t) { nodes, i };
        e[n].ready = true;
        e[n].address.family = KUBE_FAMILY_IPV4;
        e[n].address.bytes[0] = 10;
        e[n].address.bytes[3] = (uint8_t) nodes[i - 1];
        nodes += i + (nodes[i] == ',');
    }

    o.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    o.u.slice.meta.ns = KUBE_STR("shop");
    o.u.slice.meta.name = kube_str(name);
    o.u.slice.meta.uid = KUBE_STR("u");
    o.u.slice.meta.rv = kube_str(rv);
    o.u.slice.service = kube_str(service);
    o.u.slice.family = KUBE_FAMILY_IPV4;
    o.u.slice.endpoints = e;
    o.u.slice.endpoints_n = n;

    assert_in_range(kube_record_size(&o), 1, sizeof(bytes_t));
    kube_record_encode(&o, b);

    return &b->record;
}


/* "+a@1", "~a@1>2", "-a@2", "-a@2?" */
static kube_rc_t
fixture_change(void *ctx, const kube_store_change_t *change)
{
    fixture_t          *f = ctx;
    const kube_meta_t  *old, *new;

    if (f->refuse) {
        return KUBE_NOMEM;
    }

    old = (change->old != NULL) ? &change->old->id.meta : NULL;
    new = (change->new != NULL) ? &change->new->id.meta : NULL;

    f->len += (size_t) snprintf(f->told + f->len, sizeof(f->told) - f->len,
                                "%s%s%.*s@%.*s%s%.*s%s",
                                f->len ? " " : "",
                                old == NULL ? "+" : new == NULL ? "-" : "~",
                                (int) (old ? old : new)->name.len,
                                (old ? old : new)->name.data,
                                (int) (old ? old : new)->rv.len,
                                (old ? old : new)->rv.data,
                                (old && new) ? ">" : "",
                                (old && new) ? (int) new->rv.len : 0,
                                (old && new) ? new->rv.data : "",
                                change->unknown ? "?" : "");
    return KUBE_OK;
}


static kube_rc_t
fixture_make(fixture_t *f, const kube_alloc_t *alloc)
{
    kube_store_conf_t  conf;

    memset(f, 0, sizeof(fixture_t));
    memset(&conf, 0, sizeof(conf));

    conf.seed.k0 = 3;
    conf.on_change = fixture_change;
    conf.on_change_ctx = f;
    f->store = kube_store_create(alloc, &conf);

    return (f->store != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static const char *
told(fixture_t *f)
{
    f->told[f->len] = '\0';
    f->len = 0;

    return f->told;
}


static void
put(fixture_t *f, const char *name, const char *rv, const char *service,
    const char *nodes)
{
    bytes_t  b;

    assert_int_equal(kube_store_put(f->store, slice_make(&b, name, rv, service,
                                                         nodes), false),
                     KUBE_OK);
}


/* Names in alphabetical order. */
typedef struct {
    bool      there[26];
    unsigned  visits;
    unsigned  stop;
} names_t;


static bool
names_visit(void *ctx, kube_stored_t *stored)
{
    names_t  *names = ctx;

    assert_false(names->there[stored->id.meta.name.data[0] - 'a']);
    names->there[stored->id.meta.name.data[0] - 'a'] = true;

    return ++names->visits != names->stop;
}


static const char *
names_text(const names_t *names)
{
    size_t       i, n;
    static char  text[27];

    for (i = 0, n = 0; i < 26; i++) {
        if (names->there[i]) {
            text[n++] = (char) ('a' + i);
        }
    }

    text[n] = '\0';

    return text;
}


static const char *
by(fixture_t *f, const char *index, const char *value)
{
    names_t  names;

    memset(&names, 0, sizeof(names));
    assert_int_equal(kube_store_by_index(f->store, kube_str(index),
                                         kube_str(value), names_visit,
                                         &names), KUBE_OK);
    return names_text(&names);
}


static bool
values_visit(void *ctx, kube_str_t value, size_t objects)
{
    size_t  *n = ctx;

    (void) value;

    assert_true(objects != 0);
    (*n)++;

    return true;
}


static size_t
values(fixture_t *f, const char *index)
{
    size_t  n;

    n = 0;
    assert_int_equal(kube_store_index_values(f->store, kube_str(index),
                                             values_visit, &n), KUBE_OK);
    return n;
}


static void
add_indexes(fixture_t *f)
{
    assert_int_equal(kube_store_add_index(f->store, KUBE_STR("node"),
                                          kube_index_node, NULL), KUBE_OK);
    assert_int_equal(kube_store_add_index(f->store, KUBE_STR("service"),
                                          kube_index_service, NULL), KUBE_OK);
    assert_int_equal(kube_store_add_index(f->store, KUBE_STR("namespace"),
                                          kube_index_namespace, NULL),
                     KUBE_OK);
    assert_int_equal(kube_store_add_index(f->store, KUBE_STR("address"),
                                          kube_index_address, NULL), KUBE_OK);
}


/* client-go's TestMultiIndexKeys and IndexingFunctionsWithMultipleValues. */
static void
test_indexes(void **state)
{
    names_t       names;
    unsigned      late;
    fixture_t     f;
    alloc_test_t  at;

    (void) state;

    for (late = 0; late < 2; late++) {
        alloc_test_init(&at);
        assert_int_equal(fixture_make(&f, &at.alloc), KUBE_OK);

        if (!late) {
            add_indexes(&f);
        }

        put(&f, "a", "1", "web", "n1,n2,n1");
        put(&f, "b", "2", "web", "n2");
        put(&f, "c", "3", "db", "");

        if (late) {
            add_indexes(&f);
        }

        assert_string_equal(by(&f, "node", "n1"), "a");
        assert_string_equal(by(&f, "node", "n2"), "ab");
        assert_string_equal(by(&f, "node", "n3"), "");
        assert_string_equal(by(&f, "service", "shop/web"), "ab");
        assert_string_equal(by(&f, "service", "shop/db"), "c");
        assert_string_equal(by(&f, "namespace", "shop"), "abc");
        assert_string_equal(by(&f, "address", "10.0.0.50"), "ab");
        assert_int_equal(values(&f, "node"), 2);

        /* all that share a value with one, each once */
        memset(&names, 0, sizeof(names));
        assert_int_equal(kube_store_index(f.store, KUBE_STR("node"),
                                          KUBE_STR("shop"), KUBE_STR("a"),
                                          names_visit, &names), KUBE_OK);
        assert_string_equal(names_text(&names), "ab");

        /* a version alone; other values; none; gone: no empty set stays */
        put(&f, "a", "4", "web", "n1,n2,n1");
        assert_string_equal(by(&f, "node", "n1"), "a");
        put(&f, "a", "5", "db", "n3");
        assert_string_equal(by(&f, "node", "n1"), "");
        assert_string_equal(by(&f, "node", "n2"), "b");
        assert_string_equal(by(&f, "node", "n3"), "a");
        assert_string_equal(by(&f, "service", "shop/db"), "ac");
        assert_int_equal(values(&f, "node"), 2);
        assert_int_equal(kube_store_delete(f.store, KUBE_STR("shop"),
                                           KUBE_STR("b"), false), KUBE_OK);
        assert_int_equal(values(&f, "node"), 1);
        put(&f, "a", "6", "db", "");
        assert_int_equal(values(&f, "node"), 0);
        assert_int_equal(values(&f, "service"), 1);

        /* a visit that ends, and none of what is not there */
        memset(&names, 0, sizeof(names));
        names.stop = 1;
        assert_int_equal(kube_store_by_index(f.store, KUBE_STR("service"),
                                             KUBE_STR("shop/db"), names_visit,
                                             &names), KUBE_OK);
        assert_int_equal(names.visits, 1);
        assert_int_equal(kube_store_index(f.store, KUBE_STR("node"),
                                          KUBE_STR("shop"), KUBE_STR("z"),
                                          names_visit, &names), KUBE_OK);
        assert_int_equal(names.visits, 1);
        assert_int_equal(kube_store_index(f.store, KUBE_STR("none"),
                                          KUBE_STR("shop"), KUBE_STR("a"),
                                          names_visit, &names),
                         KUBE_NOT_FOUND);
        assert_int_equal(kube_store_index_values(f.store, KUBE_STR("none"),
                                                 values_visit, NULL),
                         KUBE_NOT_FOUND);
        assert_int_equal(kube_store_add_index(f.store, KUBE_STR("node"),
                                              kube_index_node, NULL),
                         KUBE_INVALID);
        assert_int_equal(kube_store_add_index(f.store, KUBE_STR(""),
                                              kube_index_node, NULL),
                         KUBE_INVALID);

        kube_store_destroy(f.store);
        alloc_test_assert_no_leak(&at);
    }
}


/* It gives values without end, and fails for "b". */
static kube_rc_t
greedy_index(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *v)
{
    char      text[KUBE_INDEX_VALUE_LEN_MAX + 1];
    unsigned  i;

    (void) ctx;

    memset(text, 'x', sizeof(text));
    kube_index_value(v, (kube_str_t) { text, sizeof(text) });

    for (i = 0; i < 2 * KUBE_INDEX_VALUES_MAX; i++) {
        kube_index_value(v, (kube_str_t) {
            text, (size_t) snprintf(text, sizeof(text), "%u", i)
        });
    }

    return kube_str_eq(stored->id.meta.name, KUBE_STR("b")) ? KUBE_INVALID
                                                            : KUBE_OK;
}


static void
test_index_function(void **state)
{
    fixture_t     f;
    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(fixture_make(&f, &at.alloc), KUBE_OK);
    assert_int_equal(kube_store_add_index(f.store, KUBE_STR("greedy"),
                                          greedy_index, NULL), KUBE_OK);
    put(&f, "b", "1", "web", "");
    assert_int_equal(values(&f, "greedy"), 0);
    assert_int_equal(kube_store_index_errors(f.store), 1);
    assert_int_equal(kube_store_count(f.store), 1);

    put(&f, "a", "2", "web", "");
    assert_int_equal(values(&f, "greedy"), KUBE_INDEX_VALUES_MAX);
    assert_string_equal(by(&f, "greedy", "7"), "a");
    kube_store_destroy(f.store);
    alloc_test_assert_no_leak(&at);
}


static void
test_replace(void **state)
{
    bytes_t               b[5];
    fixture_t             f;
    kube_stored_t        *kept;
    const kube_record_t  *list[5];

    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(fixture_make(&f, &at.alloc), KUBE_OK);
    add_indexes(&f);
    put(&f, "a", "1", "web", "n1");
    put(&f, "b", "2", "web", "n2");
    put(&f, "c", "3", "web", "n3");
    assert_string_equal(told(&f), "+a@1 +b@2 +c@3");

    kept = kube_stored_hold(kube_store_get(f.store, KUBE_STR("shop"),
                                           KUBE_STR("a")));

    /* b as it was, c newer, d new and twice; a is gone: first */
    list[0] = slice_make(&b[0], "d", "5", "web", "n4");
    list[1] = slice_make(&b[1], "b", "2", "web", "n2");
    list[2] = slice_make(&b[2], "c", "4", "db", "n3");
    list[3] = slice_make(&b[3], "d", "6", "db", "n5");
    list[4] = slice_make(&b[4], "c", "7", "db", "n6");
    assert_int_equal(kube_store_replace(f.store, list, 5), KUBE_OK);
    assert_string_equal(told(&f), "-a@1? +d@5? ~c@3>4? ~d@5>6? ~c@4>7?");
    assert_string_equal(by(&f, "service", "shop/db"), "cd");
    assert_string_equal(by(&f, "node", "n5"), "d");
    assert_string_equal(by(&f, "node", "n3"), "");
    assert_int_equal(values(&f, "node"), 3);

    /* a version that comes twice, of what is other: of d */
    list[0] = slice_make(&b[0], "b", "2", "web", "n2");
    list[1] = slice_make(&b[1], "c", "7", "db", "n6");
    list[2] = slice_make(&b[2], "d", "6", "db", "n7");
    assert_int_equal(kube_store_replace(f.store, list, 3), KUBE_OK);
    assert_string_equal(told(&f), "~d@6>6?");
    assert_string_equal(by(&f, "node", "n5"), "");
    assert_string_equal(by(&f, "node", "n7"), "d");

    assert_int_equal(kube_store_replace(f.store, NULL, 0), KUBE_OK);
    assert_int_equal(kube_store_count(f.store), 0);
    assert_int_equal(values(&f, "namespace"), 0);

    /* who holds one has it still */
    assert_true(kube_str_eq(kept->id.meta.rv, KUBE_STR("1")));
    kube_stored_release(kept);

    kube_store_destroy(f.store);
    alloc_test_assert_no_leak(&at);
}


/* client-go's TestCacheTransactionShouldIndexErrors. */
static void
test_transaction(void **state)
{
    bytes_t          b[3];
    fixture_t        f;
    alloc_test_t     at;
    kube_store_op_t  ops[4];

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(fixture_make(&f, &at.alloc), KUBE_OK);
    memset(ops, 0, sizeof(ops));

    ops[0].record = slice_make(&b[0], "a", "1", "web", "");
    ops[1].ns = KUBE_STR("shop");
    ops[1].name = KUBE_STR("z");
    ops[2].record = slice_make(&b[2], "a", "2", "web", "");
    ops[3].ns = KUBE_STR("shop");
    ops[3].name = KUBE_STR("a");

    assert_int_equal(kube_store_transaction(f.store, ops, 4), 3);
    assert_int_equal(ops[0].rc, KUBE_OK);
    assert_int_equal(ops[1].rc, KUBE_NOT_FOUND);
    assert_int_equal(ops[2].rc, KUBE_OK);
    assert_int_equal(ops[3].rc, KUBE_OK);
    assert_string_equal(told(&f), "+a@1 ~a@1>2 -a@2");

    f.refuse = true;
    assert_int_equal(kube_store_transaction(f.store, ops, 4), 0);
    assert_int_equal(kube_store_count(f.store), 0);

    kube_store_destroy(f.store);
    alloc_test_assert_no_leak(&at);
}


/* What is told and what is held are one, whatever fails. */
static void
store_oom(alloc_test_t *at, void *ctx)
{
    size_t                n;
    unsigned              i;
    bytes_t               b[3];
    fixture_t             f;
    kube_rc_t             rc;
    const kube_record_t  *list[3];

    static const char  *const nodes[] = { "n1,n2", "n2", "n3,n1", "" };
    static const char  *const names[] = { "a", "b", "c" };
    static const char  *const rvs[] = { "1", "2", "3", "4", "5", "6", "7" };

    (void) ctx;

    if (fixture_make(&f, &at->alloc) != KUBE_OK) {
        assert_true(at->failed);
        return;
    }

    rc = ALLOC_TEST_AGAIN(at, kube_store_add_index(f.store, KUBE_STR("node"),
                                                   kube_index_node, NULL));

    for (i = 0; i < 7; i++) {

        if (i == 4) {
            rc = ALLOC_TEST_AGAIN(at, kube_store_add_index(f.store,
                                                           KUBE_STR("address"),
                                                           kube_index_address,
                                                           NULL));
        }

        rc = ALLOC_TEST_AGAIN(at, kube_store_put(f.store,
                                                 slice_make(&b[0],
                                                            names[i % 3],
                                                            rvs[i], "web",
                                                            nodes[i % 4]),
                                                 false));
        assert_int_equal(f.len != 0, rc == KUBE_OK);
        (void) told(&f);
    }

    list[0] = slice_make(&b[0], "d", "8", "web", "n1,n9");
    list[1] = slice_make(&b[1], "a", "9", "web", "n8");
    list[2] = slice_make(&b[2], "e", "10", "web", "n7");

    f.refuse = true;
    rc = kube_store_replace(f.store, list, 3);
    assert_int_equal(rc, KUBE_NOMEM);
    f.refuse = false;

    (void) told(&f);
    n = kube_store_count(f.store);
    rc = kube_store_replace(f.store, list, 3);

    if (rc != KUBE_OK) {
        /* all of it or nothing, as Replace() of client-go's store */
        assert_true(at->failed);
        assert_int_equal(f.len, 0);
        assert_int_equal(kube_store_count(f.store), n);
        rc = kube_store_replace(f.store, list, 3);
    }

    assert_true(rc != KUBE_OK || kube_store_count(f.store) == 3);

    if (!at->fail_from) {
        assert_string_equal(by(&f, "node", "n1"), "d");
        assert_int_equal(values(&f, "node"), 4);
    }

    kube_store_destroy(f.store);
}


static void
test_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(store_oom, NULL);
}


static void
test_foreign_record(void **state)
{
    uint64_t          buf[KUBE_RECORD_REFUSED_MAX / 8];
    fixture_t         f;
    alloc_test_t      at;
    kube_record_t    *record;
    kube_record_id_t  id;

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(fixture_make(&f, &at.alloc), KUBE_OK);

    memset(&id, 0, sizeof(id));
    id.meta.ns = KUBE_STR("shop");
    id.meta.name = KUBE_STR("a");
    id.reason = KUBE_STR("malformed");
    assert_true(kube_record_refused_encode(&id, buf) != 0);
    record = (kube_record_t *) (void *) buf;

    assert_int_equal(kube_store_put(f.store, record, false), KUBE_CORRUPT);
    record->kind = 77;
    assert_int_equal(kube_store_put(f.store, record, false), KUBE_CORRUPT);
    assert_int_equal(kube_store_count(f.store), 0);
    assert_null(kube_store_get(f.store, KUBE_STR("shop"), KUBE_STR("a")));

    kube_store_destroy(f.store);
    kube_store_destroy(NULL);
    alloc_test_assert_no_leak(&at);
}


/* Lists, puts and deletions at random, beside an array. */
static void
test_model(void **state)
{
    char           rv[16], name[2], value[3];
    bool           there[NAMES], seen[NAMES];
    unsigned       i, k, node[NAMES], nodes[4], listing;
    bytes_t        b;
    fixture_t      f;
    names_t        names;
    alloc_test_t   at;
    kube_random_t  random;

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(fixture_make(&f, &at.alloc), KUBE_OK);
    add_indexes(&f);
    kube_random_init(&random, 4);
    memset(there, 0, sizeof(there));
    memset(seen, 0, sizeof(seen));
    memset(node, 0, sizeof(node));
    listing = 0;

    for (i = 1; i < 4000; i++) {
        f.len = 0;
        k = (unsigned) kube_random_range(&random, 0, NAMES - 1);
        name[0] = (char) ('a' + k);
        name[1] = '\0';

        switch (kube_random_range(&random, 0, 9)) {

        case 0:
            kube_store_list_begin(f.store);
            memset(seen, 0, sizeof(seen));
            listing = 1;
            break;

        case 1:
            if (listing) {
                assert_int_equal(kube_store_list_end(f.store), KUBE_OK);

                for (k = 0; k < NAMES; k++) {
                    there[k] = (there[k] && seen[k]);
                }
            }

            break;

        case 2:
        case 3:
            assert_int_equal(kube_store_delete(f.store, KUBE_STR("shop"),
                                               kube_str(name), false),
                             there[k] ? KUBE_OK : KUBE_NOT_FOUND);
            there[k] = false;
            break;

        case 4:
            kube_store_list_seen(f.store, KUBE_STR("shop"), kube_str(name));
            seen[k] |= there[k];
            break;

        default:
            node[k] = (unsigned) kube_random_range(&random, 0, 3);
            snprintf(rv, sizeof(rv), "%u", i);
            snprintf(value, sizeof(value), "n%u", node[k]);
            assert_int_equal(kube_store_put(f.store,
                                            slice_make(&b, name, rv, "web",
                                                       value), false),
                             KUBE_OK);
            there[k] = true;
            seen[k] = true;
        }

        memset(nodes, 0, sizeof(nodes));

        for (k = 0; k < NAMES; k++) {
            nodes[node[k]] += there[k];
        }

        for (k = 0; k < 4; k++) {
            snprintf(value, sizeof(value), "n%u", k);
            memset(&names, 0, sizeof(names));
            assert_int_equal(kube_store_by_index(f.store, KUBE_STR("node"),
                                                 kube_str(value), names_visit,
                                                 &names), KUBE_OK);
            assert_int_equal(names.visits, nodes[k]);
        }

        assert_int_equal(kube_store_count(f.store),
                         nodes[0] + nodes[1] + nodes[2] + nodes[3]);
    }

    kube_store_destroy(f.store);
    alloc_test_assert_no_leak(&at);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_indexes),
        cmocka_unit_test(test_index_function),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_transaction),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_foreign_record),
        cmocka_unit_test(test_model)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

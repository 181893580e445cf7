/*
 * test_unnamed - refused objects without names: rows by key, those that a list
 * has not seen, and memory that is missing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_unnamed.h"


#define ROWS  300


static kube_record_id_t
unnamed_id(kube_resource_t resource, const char *ns, const char *name)
{
    kube_record_id_t  id;

    memset(&id, 0, sizeof(kube_record_id_t));
    id.resource = resource;
    id.meta.ns = kube_str(ns);
    id.meta.name = kube_str(name);

    return id;
}


static kube_rc_t
unnamed_init(kube_unnamed_t *unnamed, const kube_alloc_t *alloc)
{
    memset(unnamed, 0, sizeof(kube_unnamed_t));
    unnamed->alloc = alloc;
    unnamed->seed = (kube_seed_t) { 5, 6 };

    return kube_unnamed_init(unnamed);
}


/* A key is resource, namespace and name, and nothing in between. */
static void
test_unnamed_keys(void **state)
{
    size_t               i, k;
    alloc_test_t         at;
    kube_unnamed_t       unnamed;
    kube_record_id_t     id;
    kube_unnamed_row_t  *rows[5];

    static const struct {
        kube_resource_t   resource;
        const char       *ns;
        const char       *name;
    } keys[] = {
        { KUBE_RESOURCE_SERVICES, "shop", "web" },
        { KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web" },
        { KUBE_RESOURCE_SERVICES, "shop", "we" },
        { KUBE_RESOURCE_SERVICES, "sho", "pweb" },
        { KUBE_RESOURCE_SERVICES, "web", "shop" },
    };

    (void) state;
    alloc_test_init(&at);
    assert_int_equal(unnamed_init(&unnamed, &at.alloc), KUBE_OK);

    for (i = 0; i < 5; i++) {
        id = unnamed_id(keys[i].resource, keys[i].ns, keys[i].name);
        assert_null(kube_unnamed_find(&unnamed, &id));
        rows[i] = kube_unnamed_add(&unnamed, &id);
        assert_non_null(rows[i]);
        assert_null(rows[i]->lack.group);

        for (k = 0; k <= i; k++) {
            id = unnamed_id(keys[k].resource, keys[k].ns, keys[k].name);
            assert_ptr_equal(kube_unnamed_find(&unnamed, &id), rows[k]);
        }
    }

    kube_unnamed_remove(&unnamed, rows[2]);
    id = unnamed_id(keys[2].resource, keys[2].ns, keys[2].name);
    assert_null(kube_unnamed_find(&unnamed, &id));

    kube_unnamed_clear(&unnamed);
    id = unnamed_id(keys[0].resource, keys[0].ns, keys[0].name);
    assert_null(kube_unnamed_find(&unnamed, &id));
    kube_unnamed_done(&unnamed);
    alloc_test_assert_no_leak(&at);
}


/* Each row of the scope that the list has not seen is found once. */
static void
test_unnamed_unseen(void **state)
{
    char                 name[16];
    size_t               bucket;
    unsigned             i, n;
    alloc_test_t         at;
    kube_unnamed_t       unnamed;
    kube_record_id_t     id;
    kube_unnamed_row_t  *row;

    (void) state;
    alloc_test_init(&at);
    assert_int_equal(unnamed_init(&unnamed, &at.alloc), KUBE_OK);

    for (i = 0; i < ROWS; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        id = unnamed_id(KUBE_RESOURCE_SERVICES, "shop", name);
        row = kube_unnamed_add(&unnamed, &id);
        assert_non_null(row);
        row->scope = (uint8_t) (i % 3);
        row->list = (i % 2 == 0) ? 7 : 8;
    }

    bucket = 0;
    n = 0;

    while ((row = kube_unnamed_unseen(&unnamed, 1, 8, &bucket)) != NULL) {
        assert_int_equal(row->scope, 1);
        assert_int_equal(row->list, 7);
        kube_unnamed_remove(&unnamed, row);
        n++;
    }

    assert_int_equal(n, ROWS / 6);
    assert_int_equal(unnamed.map.n, ROWS - ROWS / 6);
    kube_unnamed_done(&unnamed);
    alloc_test_assert_no_leak(&at);
}


static void
unnamed_oom(alloc_test_t *at, void *ctx)
{
    char                 name[16];
    unsigned             i, n;
    kube_rc_t            rc;
    kube_unnamed_t       unnamed;
    kube_record_id_t     id;
    kube_unnamed_row_t  *row;

    (void) ctx;
    rc = unnamed_init(&unnamed, &at->alloc);

    if (rc != KUBE_OK) {
        alloc_test_assert_rc(at, rc);
        return;
    }

    n = 0;

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        id = unnamed_id(KUBE_RESOURCE_SERVICES, "shop", name);
        row = kube_unnamed_add(&unnamed, &id);
        assert_ptr_equal(kube_unnamed_find(&unnamed, &id), row);
        n += (row != NULL);
    }

    assert_true(n == 40 || at->failed);
    kube_unnamed_done(&unnamed);
}


static void
test_unnamed_oom(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(unnamed_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_unnamed_keys),
        cmocka_unit_test(test_unnamed_unseen),
        cmocka_unit_test(test_unnamed_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_indexer_list - lists as diffs: what they change, what they take away,
 * and what readers see of them meanwhile.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "indexer_test.h"


#define ZONE  (1u << 20)


static void
test_indexer_list(void **state)
{
    it_t         it;
    uint64_t     before, after;
    it_object_t  web, api, a, b, c;
    char         text[256];

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    api = it_service(&it, "shop", "api");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "web");
    c = it_slice(&it, "shop", "c", "api");

    IT_BEGIN(&it, IT_SERVICES);
    IT_LIST(&it, &web);
    IT_LIST(&it, &api);
    IT_SYNC(&it, IT_SERVICES);
    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &a);
    IT_LIST(&it, &b);

    /* the Service waits for the end of the list, others do not */
    assert_int_equal(it_publish(&it), 1);
    IT_READS(&it, "shop", "web", "-");
    IT_READS(&it, "shop", "api", "1");
    assert_true(kube_publisher_pending(it.publisher, IT_SLICES));
    IT_LIST(&it, &c);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    assert_false(kube_publisher_pending(it.publisher, IT_SLICES));
    IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2");
    IT_READS(&it, "shop", "api", "1 c=1*2");

    /* again, with a moved, b gone, c unchanged: no reader sees a half */
    it_read(&it, "shop", "api", text, sizeof(text), &before);
    a.version++;
    it_stamp(&it, &a);
    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2");

    /* a change of the Service's own waits with it */
    it_change(&it, &web);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2");
    IT_LIST(&it, &c);
    IT_SYNC(&it, IT_SLICES);
    IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2");
    assert_true(kube_publisher_pending(it.publisher, IT_SLICES));
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2 a=2*2");
    it_read(&it, "shop", "api", text, sizeof(text), &after);
    assert_int_equal(before, after);

    /* a list that fails and begins anew; one that ends without beginning */
    IT_BEGIN(&it, IT_SLICES);
    a.version++;
    it_stamp(&it, &a);
    IT_LIST(&it, &a);
    it_publish(&it);
    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &c);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2 a=2*2");
    IT_LIST(&it, &a);
    IT_SYNC(&it, IT_SLICES);
    IT_SYNC(&it, IT_SLICES);
    IT_SYNC(&it, IT_SERVICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2 a=3*2");
    IT_READS(&it, "shop", "api", "1 c=1*2");

    /* a Service that is gone does not wait for its slices' list */
    IT_BEGIN(&it, IT_SLICES);
    it_change(&it, &a);
    it_publish(&it);
    it_delete(&it, &web);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "-");
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);

    it_done(&it);
}


/* A Service that comes while a list has deleted a slice of its waits, too. */
static void
test_indexer_list_comes_late(void **state)
{
    it_t         it;
    it_object_t  web, a, b;

    (void) state;

    it_init(&it, 1u << 20);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "web");
    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &a);
    IT_LIST(&it, &b);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);

    /* a WatchList tells of changes before it is whole */
    IT_BEGIN(&it, IT_SLICES);
    it_delete(&it, &a);
    it_change(&it, &web);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "-");
    b.version++;
    it_stamp(&it, &b);
    IT_LIST(&it, &b);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2 b=2*2");

    it_done(&it);
}


/* What a list takes away from a Service waits for its end as well. */
static void
test_indexer_list_away(void **state)
{
    it_t         it;
    it_object_t  web, api, a, b, c;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    api = it_service(&it, "shop", "api");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "web");
    c = it_slice(&it, "shop", "c", "web");
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &api);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &b);
    IT_UPDATE(&it, &c);
    it_publish(&it);

    IT_BEGIN(&it, IT_SLICES);
    snprintf(a.service, sizeof(a.service), "api");
    it_stamp(&it, &a);
    IT_LIST(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2 c=1*2");
    IT_READS(&it, "shop", "api", "1");
    IT_LIST(&it, &b);
    IT_LIST(&it, &c);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 b=1*2 c=1*2");
    IT_READS(&it, "shop", "api", "1 a=1*2");

    IT_BEGIN(&it, IT_SLICES);
    it_stamp(&it, &b);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &b), KUBE_OK);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 b=1*2 c=1*2");
    assert_true(kube_publisher_pending(it.publisher, IT_SLICES));
    IT_LIST(&it, &a);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1");
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);
    it_done(&it);
}


/* A server restored from a backup: what it lists is right, though older. */
static void
test_indexer_rollback(void **state)
{
    it_t         it;
    it_object_t  web, older;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    older = web;
    web.version = 5;
    snprintf(web.rv, sizeof(web.rv), "900");
    IT_UPDATE(&it, &web);
    it_publish(&it);

    snprintf(older.rv, sizeof(older.rv), "10");
    IT_UPDATE(&it, &older);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "5");

    /* by a WatchList it comes as an update: the list that follows takes it */
    IT_BEGIN(&it, IT_SERVICES);
    IT_UPDATE(&it, &web);
    assert_false(kube_indexer_passed_over(it.ix, IT_SERVICES));
    IT_UPDATE(&it, &older);
    IT_SYNC(&it, IT_SERVICES);
    assert_true(kube_indexer_passed_over(it.ix, IT_SERVICES));
    assert_false(kube_indexer_passed_over(it.ix, IT_SLICES));
    assert_false(kube_indexer_passed_over(it.ix, KUBE_SCOPES_MAX));

    IT_BEGIN(&it, IT_SERVICES);
    IT_LIST(&it, &older);
    IT_SYNC(&it, IT_SERVICES);
    assert_false(kube_indexer_passed_over(it.ix, IT_SERVICES));
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1");

    it.rv = 10;
    it_change(&it, &older);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2");

    it_done(&it);
}


/*
 * A WatchList of a server with another past: what it leaves out stays and what
 * it brings waits, until the list that follows is complete.
 */
static void
test_indexer_other_past(void **state)
{
    it_t         it;
    it_object_t  web, a, b, c, before;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "web");
    c = it_slice(&it, "shop", "c", "web");
    before = a;
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &b);
    IT_UPDATE(&it, &c);
    it_change(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=2*2 b=1*2 c=1*2");

    IT_BEGIN(&it, IT_SLICES);
    IT_UPDATE(&it, &before);
    it_change(&it, &b);
    IT_SYNC(&it, IT_SLICES);
    assert_true(kube_indexer_passed_over(it.ix, IT_SLICES));
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=2*2 b=1*2 c=1*2");

    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &before);
    IT_LIST(&it, &b);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=1*2 b=2*2");

    it_done(&it);
}


/*
 * A server was restored, and has gone on to beyond our version: an object may
 * have the version that we hold, and be another.
 */
static void
test_indexer_version_twice(void **state)
{
    it_t         it;
    uint64_t     before, after;
    char         text[256];
    it_object_t  web, a, b;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "web");
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &b);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2");

    a.version = 7;
    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &a);
    IT_LIST(&it, &b);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), &before);
    assert_string_equal(text, "1 a=7*2 b=1*2");

    /* by a WatchList, too */
    b.version = 8;
    IT_BEGIN(&it, IT_SLICES);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &b);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), &after);
    assert_string_equal(text, "1 a=7*2 b=8*2");
    assert_true(after > before);

    it_done(&it);
}


/* Slices of web, of which one is to move to api. */
typedef struct {
    it_object_t  web;
    it_object_t  api;
    it_object_t  moved;
    it_object_t  a;
    it_object_t  b;
} moved_t;


/* All but api are published once the caller has done that. */
static void
moved_init(it_t *it, moved_t *m)
{
    it_init(it, ZONE);
    m->web = it_service(it, "shop", "web");
    m->api = it_service(it, "shop", "api");
    m->moved = it_slice(it, "shop", "moved", "web");
    m->a = it_slice(it, "shop", "a", "web");
    m->b = it_slice(it, "shop", "b", "web");
    IT_UPDATE(it, &m->web);
    IT_UPDATE(it, &m->moved);
    IT_UPDATE(it, &m->a);
    IT_UPDATE(it, &m->b);
}


static void
moved_change(it_t *it, it_object_t *slice, const char *service)
{
    snprintf(slice->service, sizeof(slice->service), "%s", service);
    it_change(it, slice);
}


/* A list begins, and has brought a part of web. */
static void
moved_list(it_t *it, moved_t *m)
{
    m->a.version = 7;
    it_stamp(it, &m->a);
    m->b.version = 7;
    it_stamp(it, &m->b);
    IT_BEGIN(it, IT_SLICES);
    IT_LIST(it, &m->a);
}


/*
 * A slice has moved, and its new Service is to be published while a list goes
 * on that has changed a part of the one which still names it: both wait.
 */
static void
test_indexer_list_moved(void **state)
{
    it_t      it;
    moved_t   m;
    unsigned  late;

    (void) state;

    for (late = 0; late < 2; late++) {
        moved_init(&it, &m);

        if (!late) {
            IT_UPDATE(&it, &m.api);
        }

        it_publish(&it);
        moved_change(&it, &m.moved, "api");
        moved_list(&it, &m);

        if (late) {
            IT_UPDATE(&it, &m.api);
        }

        it_publish(&it);
        IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2 moved=1*2");
        IT_READS(&it, "shop", "api", late ? "-" : "1");
        assert_int_equal(kube_publisher_pending(it.publisher, IT_SERVICES),
                         late);

        IT_LIST(&it, &m.b);
        IT_LIST(&it, &m.moved);
        it_publish(&it);
        IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2 moved=1*2");

        IT_SYNC(&it, IT_SLICES);
        it_publish(&it);
        IT_READS(&it, "shop", "web", "1 a=7*2 b=7*2");
        IT_READS(&it, "shop", "api", "1 moved=2*2");
        it_done(&it);
    }
}


/*
 * Of a chain, db to web to api, a list holds the one between alone: it is not
 * the first of those that api waits for.
 */
static void
test_indexer_list_moved_chain(void **state)
{
    it_t         it;
    moved_t      m;
    it_object_t  db, x;

    (void) state;

    moved_init(&it, &m);
    db = it_service(&it, "shop", "db");
    x = it_slice(&it, "shop", "x", "db");
    IT_UPDATE(&it, &m.api);
    IT_UPDATE(&it, &db);
    IT_UPDATE(&it, &x);
    it_publish(&it);

    /* api has its turn before db */
    moved_change(&it, &m.moved, "api");
    moved_change(&it, &x, "web");
    moved_list(&it, &m);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=1*2 b=1*2 moved=1*2");
    IT_READS(&it, "shop", "api", "1");

    IT_LIST(&it, &m.b);
    IT_LIST(&it, &m.moved);
    IT_LIST(&it, &x);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    IT_READS(&it, "shop", "db", "1");
    IT_READS(&it, "shop", "web", "1 a=7*2 b=7*2 x=2*2");
    IT_READS(&it, "shop", "api", "1 moved=2*2");
    it_done(&it);
}


/*
 * The Service that a slice has moved to is deleted while a list goes on: its
 * end waits for nobody, and publishes no half of who still names the slice.
 */
static void
test_indexer_list_moved_away(void **state)
{
    it_t         it;
    it_object_t  web, api, moved, b;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    api = it_service(&it, "shop", "api");
    moved = it_slice(&it, "shop", "moved", "web");
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &api);
    IT_UPDATE(&it, &moved);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 moved=1*2");

    /* a slice of web in the place of the one that is api's now */
    snprintf(moved.service, sizeof(moved.service), "api");
    moved.version++;
    it_stamp(&it, &moved);
    b = it_slice(&it, "shop", "b", "web");
    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &moved);
    it_delete(&it, &api);
    it_publish(&it);
    IT_READS(&it, "shop", "api", "-");
    IT_READS(&it, "shop", "web", "1 moved=1*2");

    IT_LIST(&it, &b);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 b=1*2");

    it_done(&it);
}


/* What is held of a past that a backup took back ends with its object. */
static void
test_indexer_ends_after_rollback(void **state)
{
    it_t         it;
    it_object_t  web;

    (void) state;

    it_zone(&it, ZONE);
    it.conf.max_outdated_ms = 1000;
    assert_int_equal(it_start(&it), KUBE_OK);
    assert_int_equal(it_scopes(&it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it.ix, it.now_ms), KUBE_OK);
    web = it_service(&it, "shop", "web");
    snprintf(web.rv, sizeof(web.rv), "900");
    IT_UPDATE(&it, &web);
    it_publish(&it);

    snprintf(web.rv, sizeof(web.rv), "10");
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &web), KUBE_OK);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1");

    snprintf(web.rv, sizeof(web.rv), "11");
    assert_int_equal(it_apply(&it, KUBE_DELTA_DELETED, &web), KUBE_OK);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "-");

    it_done(&it);
}


/* Other namespaces after a reload: what no scope covers goes at the end. */
static void
test_indexer_sweep(void **state)
{
    it_t         it;
    it_object_t  web, a, infra, c;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    infra = it_service(&it, "infra", "echo");
    c = it_slice(&it, "infra", "c", "echo");
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &infra);
    IT_UPDATE(&it, &c);
    it_publish(&it);

    it_stop(&it);
    assert_int_equal(it_start(&it), KUBE_OK);
    assert_int_equal(kube_indexer_scope(it.ix, 0, KUBE_RESOURCE_SERVICES,
                                        KUBE_STR("shop")), KUBE_OK);
    assert_int_equal(kube_indexer_scope(it.ix, 1,
                                        KUBE_RESOURCE_ENDPOINTSLICES,
                                        KUBE_STR("shop")), KUBE_OK);
    assert_int_equal(kube_indexer_load(it.ix, it.now_ms), KUBE_OK);

    IT_READS(&it, "infra", "echo", "1 c=1*2");
    assert_int_equal(it_sum(&it, 0).count, 1);
    assert_int_equal(it_sum(&it, 1).count, 1);

    /* nothing is taken for them any more, and a list of others spares them */
    it_change(&it, &c);
    it_publish(&it);
    IT_READS(&it, "infra", "echo", "1 c=1*2");
    IT_BEGIN(&it, 0);
    IT_LIST(&it, &web);
    IT_SYNC(&it, 0);
    it_publish(&it);
    IT_READS(&it, "infra", "echo", "1 c=1*2");

    kube_indexer_sweep(it.ix, it.now_ms);
    it_publish(&it);
    IT_READS(&it, "infra", "echo", "-");
    IT_READS(&it, "shop", "web", "1 a=1*2");
    assert_int_equal(kube_zone_writer_find(it.writer,
                                           KUBE_RESOURCE_ENDPOINTSLICES,
                                           KUBE_STR("infra"), KUBE_STR("c")),
                     0);
    it_done(&it);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_indexer_list),
        cmocka_unit_test(test_indexer_list_comes_late),
        cmocka_unit_test(test_indexer_list_away),
        cmocka_unit_test(test_indexer_list_moved),
        cmocka_unit_test(test_indexer_list_moved_chain),
        cmocka_unit_test(test_indexer_list_moved_away),
        cmocka_unit_test(test_indexer_rollback),
        cmocka_unit_test(test_indexer_other_past),
        cmocka_unit_test(test_indexer_version_twice),
        cmocka_unit_test(test_indexer_ends_after_rollback),
        cmocka_unit_test(test_indexer_sweep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

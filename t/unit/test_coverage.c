/*
 * test_coverage - which first lists are still to come.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_coverage.h"
#include "route_test.h"


typedef struct {
    kube_namespaces_t  named;
    kube_str_t         list[4];
    char               text[64];
} coverage_names_t;


/* names: separated by commas; "*": all. */
static void
coverage_names(coverage_names_t *c, const char *names)
{
    char  *p, *save;

    memset(&c->named, 0, sizeof(kube_namespaces_t));
    c->named.all = (strcmp(names, "*") == 0);
    c->named.names = c->list;

    snprintf(c->text, sizeof(c->text), "%s", names);

    for (p = strtok_r(c->text, ",", &save); p != NULL && !c->named.all;
         p = strtok_r(NULL, ",", &save))
    {
        c->list[c->named.names_n++] = zone_test_str(p);
    }
}


static bool
awaited_if(zone_test_t *t, const char *names, bool served)
{
    bool              yes;
    kube_arena_t      arena;
    coverage_names_t  c;

    coverage_names(&c, names);
    kube_arena_init(&arena, &t->at.alloc, 1u << 20);
    yes = kube_coverage_awaited(&t->zone, &c.named, served, &arena);
    kube_arena_done(&arena);

    return yes;
}


static bool
awaited(zone_test_t *t, const char *names)
{
    return awaited_if(t, names, false);
}


static bool
seen_if(zone_test_t *t, const char *names, bool each)
{
    bool              yes;
    kube_arena_t      arena;
    coverage_names_t  c;

    coverage_names(&c, names);
    kube_arena_init(&arena, &t->at.alloc, 1u << 20);
    yes = kube_coverage_seen(&t->zone, &c.named, each, &arena);
    kube_arena_done(&arena);

    return yes;
}


static bool
seen(zone_test_t *t, const char *names)
{
    return seen_if(t, names, false);
}


static void
test_coverage_awaited(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);

    assert_true(awaited(&t, "*"));
    assert_true(awaited(&t, "shop"));

    route_test_namespace(&t, 0, "shop", "synced", "listing");
    assert_true(awaited(&t, "shop"));
    assert_true(awaited(&t, "*"));

    route_test_namespace(&t, 0, "shop", "synced", "synced");
    assert_false(awaited(&t, "shop"));
    assert_false(awaited(&t, "*"));
    assert_true(awaited(&t, "shop,infra"));

    route_test_namespace(&t, 2, "infra", "forbidden", "forbidden");
    assert_false(awaited(&t, "infra"));
    assert_false(awaited(&t, "shop,infra"));
    assert_false(awaited(&t, "*"));

    zone_test_close(&t);
}


/* A scope for all namespaces decides about each. */
static void
test_coverage_awaited_all(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);

    route_test_scope(&t, 0, KUBE_RESOURCE_SERVICES, "", "synced");
    route_test_scope(&t, 1, KUBE_RESOURCE_ENDPOINTSLICES, "", "listing");
    assert_true(awaited(&t, "shop"));

    route_test_scope(&t, 1, KUBE_RESOURCE_ENDPOINTSLICES, "", "synced");
    assert_false(awaited(&t, "shop"));

    zone_test_close(&t);
}


/* What is served from elsewhere is not worth waiting for a server away. */
static void
test_coverage_awaited_served(void **state)
{
    unsigned     n;
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);

    assert_true(awaited_if(&t, "shop", true));

    route_test_namespace(&t, 0, "shop", "synced", "listing");
    route_test_namespace(&t, 2, "infra", "listing", "listing");
    assert_true(awaited_if(&t, "shop", true));
    assert_true(awaited_if(&t, "*", true));

    /* a request failed */

    assert_int_equal(kube_zone_scope_error(t.writer, 1, KUBE_STR("timeout"),
                                           KUBE_STR("slow"), 5), KUBE_OK);
    assert_false(awaited_if(&t, "shop", true));
    assert_true(awaited(&t, "shop"));
    assert_true(awaited_if(&t, "shop,infra", true));

    /* no answer for so long that there is a cause */

    for (n = 4; n < 6; n++) {
        assert_true(awaited_if(&t, "*", true));
        kube_zone_scope_set(&t.zone, n, KUBE_COUNTER_GAUGE_CAUSE, 1);
    }

    assert_false(awaited_if(&t, "*", true));
    assert_true(awaited(&t, "*"));

    zone_test_close(&t);
}


/* A scope that is listed anew, as it was changed, was current before. */
static void
test_coverage_seen(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);

    assert_false(seen(&t, "*"));
    assert_false(seen(&t, "shop"));

    route_test_namespace(&t, 0, "shop", "listing", "listing");
    assert_false(seen(&t, "*"));
    assert_false(seen(&t, "shop"));

    route_test_namespace(&t, 0, "shop", "synced", "listing");
    assert_false(seen(&t, "*"));
    assert_false(seen(&t, "shop"));

    kube_zone_scope_set(&t.zone, 1, KUBE_COUNTER_GAUGE_CONTACT_MS, 1);
    assert_true(seen(&t, "*"));
    assert_true(seen(&t, "shop"));

    route_test_namespace(&t, 2, "infra", "listing", "listing");
    assert_true(seen(&t, "*"));
    assert_true(seen(&t, "infra,shop"));

    alloc_test_fail(&t.at, 1, false);
    assert_false(seen(&t, "*"));
    assert_true(t.at.failed);

    zone_test_close(&t);
}


/* Services of one namespace and endpoints of another serve nobody. */
static void
test_coverage_seen_of_a_key(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);

    route_test_namespace(&t, 0, "shop", "synced", "listing");
    route_test_namespace(&t, 2, "infra", "listing", "synced");
    assert_false(seen(&t, "*"));
    assert_false(seen(&t, "shop,infra"));

    route_test_namespace(&t, 0, "shop", "synced", "synced");
    assert_true(seen(&t, "*"));
    assert_true(seen(&t, "shop,infra"));
    assert_false(seen(&t, "infra"));

    /* of all namespaces, which decides about each */

    route_test_scope(&t, 0, KUBE_RESOURCE_SERVICES, "", "synced");
    assert_true(seen(&t, "infra"));

    zone_test_close(&t);
}


/* Each of a key's namespaces, but for what may not be listed. */
static void
test_coverage_seen_each(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);

    assert_false(seen_if(&t, "*", true));
    assert_false(seen_if(&t, "shop", true));

    route_test_namespace(&t, 0, "shop", "synced", "synced");
    assert_true(seen_if(&t, "*", true));
    assert_true(seen_if(&t, "shop", true));
    assert_false(seen_if(&t, "shop,infra", true));

    route_test_namespace(&t, 1, "infra", "synced", "listing");
    assert_false(seen_if(&t, "*", true));
    assert_false(seen_if(&t, "shop,infra", true));
    assert_true(seen_if(&t, "shop", true));
    assert_true(seen(&t, "shop,infra"));

    kube_zone_scope_set(&t.zone, 3, KUBE_COUNTER_GAUGE_CONTACT_MS, 1);
    assert_true(seen_if(&t, "*", true));
    assert_true(seen_if(&t, "infra,shop", true));

    route_test_namespace(&t, 2, "more", "forbidden", "forbidden");
    assert_true(seen_if(&t, "*", true));
    assert_true(seen_if(&t, "more,shop", true));
    assert_false(seen(&t, "more"));

    zone_test_close(&t);
}


/* Nobody waits for what cannot be known. */
static void
test_coverage_awaited_nomem(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);
    route_test_scope(&t, 0, KUBE_RESOURCE_SERVICES, "a-namespace", "listing");
    assert_true(awaited(&t, "*"));

    alloc_test_fail(&t.at, 1, false);
    assert_false(awaited(&t, "*"));
    assert_true(t.at.failed);

    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_coverage_awaited),
        cmocka_unit_test(test_coverage_awaited_all),
        cmocka_unit_test(test_coverage_awaited_served),
        cmocka_unit_test(test_coverage_seen),
        cmocka_unit_test(test_coverage_seen_of_a_key),
        cmocka_unit_test(test_coverage_seen_each),
        cmocka_unit_test(test_coverage_awaited_nomem)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

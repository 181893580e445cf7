/*
 * test_ready - what keys need before nginx may be sent requests.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_ready.h"
#include "kube_zone_cause.h"
#include "route_test.h"


typedef struct {
    zone_test_t      t;
    kube_resolver_t  resolver;
    bool             allow_state;
    bool             lenient;
} bed_t;


static void
bed_open(bed_t *bed)
{
    memset(bed, 0, sizeof(bed_t));
    zone_test_open(&bed->t, 1u << 20);

    bed->resolver.zone = &bed->t.zone;
    bed->resolver.namespaces.all = true;
}


static void
bed_close(bed_t *bed)
{
    zone_test_close(&bed->t);
}


static const kube_alloc_t *
bed_alloc(bed_t *bed)
{
    return &bed->t.at.alloc;
}


/*
 * The reason, "" where ready.  keys, separated by spaces: "ns/name" is a
 * static one, "=a,b" one of variables that may name these, "=" any.
 */
static const char *
ready_of(bed_t *bed, const kube_alloc_t *alloc, const char *keys)
{
    bool               more;
    char              *p, *word, *save, *save_name;
    char               text[256];
    kube_key_t         key;
    kube_str_t         names[4];
    kube_ready_t       ready;
    kube_namespaces_t  named;

    static char  reason[KUBE_READY_REASON_MAX];

    snprintf(text, sizeof(text), "%s", keys);
    kube_ready_init(&ready, &bed->t.zone,
                    (bed->allow_state ? KUBE_READY_ALLOW_STATE : 0)
                    | (bed->lenient ? 0 : KUBE_READY_STRICT), alloc, reason);
    more = true;

    for (word = strtok_r(text, " ", &save); more && word != NULL;
         word = strtok_r(NULL, " ", &save))
    {
        if (word[0] == '=') {
            memset(&named, 0, sizeof(kube_namespaces_t));
            named.names = names;

            for (p = strtok_r(word + 1, ",", &save_name); p != NULL;
                 p = strtok_r(NULL, ",", &save_name))
            {
                names[named.names_n++] = kube_str(p);
            }

            more = kube_ready_namespaces(&ready, &named);

        } else {
            assert_int_equal(kube_key_parse(kube_str(word), false, &key,
                                            NULL), KUBE_OK);
            more = kube_ready_key(&ready, &bed->resolver, &key);
        }
    }

    assert_true(kube_ready_done(&ready) == (reason[0] == '\0'));

    return reason;
}


#define READY(keys, expected)                                                 \
    assert_string_equal(ready_of(&bed, bed_alloc(&bed), keys), expected)


/* Who may take the rights to a namespace back keeps nobody from starting. */
static void
test_ready_forbidden_key(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);
    bed.lenient = true;

    route_test_namespace(&bed.t, 0, "shop", "listing", "listing");
    route_test_namespace(&bed.t, 1, "infra", "forbidden", "listing");
    route_test_namespace(&bed.t, 2, "api", "forbidden", "forbidden");

    READY("shop/web infra/echo", "not_synced: services in shop");
    route_test_namespace(&bed.t, 0, "shop", "synced", "synced");
    READY("shop/web infra/echo", "not_synced: endpointslices in infra");
    READY("api/echo", "forbidden: services in api");
    route_test_namespace(&bed.t, 1, "infra", "forbidden", "synced");
    READY("infra/echo", "forbidden: services in infra");
    READY("infra/echo api/echo =infra,api", "forbidden: services in infra");

    bed.lenient = false;
    READY("shop/web infra/echo", "no_service: shop/web");
    READY("=shop,infra", "forbidden: services in infra");
    bed.lenient = true;
    READY("=infra,shop", "");

    /* and so it stays */
    READY("infra/echo", "");

    bed_close(&bed);
}


static void
test_ready_static(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);

    READY("shop/web", "not_synced: services in shop");
    route_test_namespace(&bed.t, 0, "shop", "listing", "listing");
    READY("shop/web", "not_synced: services in shop");
    route_test_namespace(&bed.t, 0, "shop", "synced", "listing");
    READY("shop/web", "not_synced: endpointslices in shop");
    route_test_namespace(&bed.t, 0, "shop", "synced", "synced");
    READY("shop/web", "no_service: shop/web");

    route_test_service(&bed.t, "shop", "web", "http:80");
    READY("shop/web", "");
    READY("shop/web shop/none:http", "no_service: shop/none:http");
    READY("shop/none shop/web", "no_service: shop/none");
    READY("shop/web:http", "");
    READY("shop/web:81", "no_port: shop/web:81");

    route_test_service(&bed.t, "shop", "two", "a:80 b:81");
    READY("shop/two", "port_needed: shop/two");

    (void) route_test_service_of(&bed.t, "shop", "out", "http:80",
                                 KUBE_SERVICE_EXTERNAL_NAME, 0);
    READY("shop/out", "external_name: shop/out");

    /* a Service none of whose endpoints may be used is there all the same */

    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080",
                     "127.0.0.1=rs");
    READY("shop/web", "");
    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=");
    READY("shop/web", "");
    bed.resolver.select.family = KUBE_SELECT_FAMILY_IPV6;
    READY("shop/web", "");

    bed_close(&bed);
}


/* Strict: a 403 counts where a key names the namespace, and nowhere else. */
static void
test_ready_forbidden(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "shop", "synced", "synced");
    route_test_namespace(&bed.t, 1, "infra", "forbidden", "synced");
    route_test_service(&bed.t, "shop", "web", "http:80");

    READY("shop/web", "");
    READY("shop/web infra/x", "forbidden: services in infra");
    READY("=shop", "");
    READY("=shop,infra", "forbidden: services in infra");
    READY("=", "");
    READY("", "");

    route_test_namespace(&bed.t, 2, "api", "synced", "listing");
    READY("=", "not_synced: endpointslices in api");
    READY("", "not_synced: endpointslices in api");
    READY("shop/web", "");

    bed_close(&bed);
}


static void
test_ready_all_namespaces(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);

    READY("", "not_synced");
    READY("=", "not_synced");
    route_test_namespace(&bed.t, 0, "", "listing", "listing");
    READY("", "not_synced: services in all namespaces");
    route_test_namespace(&bed.t, 0, "", "synced", "forbidden");
    READY("", "forbidden: endpointslices in all namespaces");
    READY("=shop", "forbidden: endpointslices in shop");
    route_test_namespace(&bed.t, 0, "", "synced", "synced");
    READY("", "");
    READY("=shop", "");

    bed_close(&bed);

    /* one namespace, and not even that */

    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "shop", "forbidden", "forbidden");
    READY("", "forbidden: services in shop");
    bed_close(&bed);
}


static void
test_ready_state_file(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "shop", "listing", "listing");
    kube_zone_set_state_file(&bed.t.zone, 1, true, false);
    (void) route_test_service_of(&bed.t, "shop", "web", "http:80",
                                 KUBE_SERVICE_CLUSTER_IP,
                                 KUBE_RECORD_F_STATE_FILE);

    READY("shop/web", "not_synced: services in shop");
    READY("=shop", "not_synced: services in shop");
    READY("", "not_synced: services in shop");

    /* not yet all of it */

    bed.allow_state = true;
    kube_zone_set_state_loading(&bed.t.zone, true);
    READY("", "not_synced: services in shop");
    READY("=shop", "not_synced: services in shop");

    kube_zone_set_state_loading(&bed.t.zone, false);
    READY("", "");
    READY("=shop", "");
    READY("shop/web", "");
    READY("shop/none", "not_synced: shop/none");

    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs");
    READY("shop/web", "");

    /* the parameter of readiness decides, not the upstream's */

    bed.resolver.unsynced_fail = true;
    READY("shop/web", "");

    /* allowed, but not in use */

    bed.resolver.unsynced_fail = false;
    kube_zone_set_state_file(&bed.t.zone, 1, false, false);
    READY("shop/web", "not_synced: services in shop");

    bed_close(&bed);
}


/* Once ready, always ready, whatever goes, until the zone does. */
static void
test_ready_for_good(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);
    bed.lenient = true;

    READY("shop/web", "not_synced: services in shop");
    route_test_namespace(&bed.t, 0, "shop", "synced", "forbidden");
    READY("shop/web", "forbidden: endpointslices in shop");
    assert_int_equal(kube_zone_ready(&bed.t.zone), 0);

    /* the Service need not be there */

    route_test_namespace(&bed.t, 0, "shop", "synced", "synced");
    READY("shop/web", "");
    assert_int_equal(kube_zone_ready(&bed.t.zone), KUBE_READY_SYNCED);

    /* a crash that lost records, a namespace more: it serves what it did */

    route_test_namespace(&bed.t, 0, "shop", "listing", "forbidden");
    READY("shop/web", "");
    READY("shop/web infra/x =api =", "");
    READY("", "");
    bed.lenient = false;
    READY("shop/web", "not_synced: services in shop");
    bed_close(&bed);

    /* what was ready from a state file is not so for who does not allow it */

    bed_open(&bed);
    bed.lenient = true;
    bed.allow_state = true;
    kube_zone_set_state_file(&bed.t.zone, 1, true, false);
    READY("shop/web", "");
    kube_zone_set_state_file(&bed.t.zone, 1, false, false);
    READY("shop/web", "");
    bed.allow_state = false;
    READY("shop/web", "not_synced: services in shop");
    bed_close(&bed);
}


static void
test_ready_no_zone(void **state)
{
    char          reason[KUBE_READY_REASON_MAX];
    kube_zone_t   zone;
    alloc_test_t  at;
    kube_ready_t  ready;

    (void) state;
    memset(&zone, 0, sizeof(kube_zone_t));
    alloc_test_init(&at);
    kube_ready_init(&ready, &zone, KUBE_READY_STRICT, &at.alloc, reason);
    assert_false(kube_ready_namespaces(&ready, &(kube_namespaces_t) { 0 }));
    assert_false(kube_ready_done(&ready));
    assert_string_equal(reason, "no_zone");
    alloc_test_assert_no_leak(&at);
}


/* The least room in which one strict key can be judged, in steps of 64. */
static size_t
ready_room(bed_t *bed, const char *text)
{
    bool          yes;
    char          reason[KUBE_READY_REASON_MAX];
    size_t        room;
    kube_key_t    key;
    kube_ready_t  ready;

    assert_int_equal(kube_key_parse(kube_str(text), false, &key, NULL),
                     KUBE_OK);
    room = 0;

    do {
        room += 64;
        kube_ready_init(&ready, &bed->t.zone, KUBE_READY_STRICT,
                        bed_alloc(bed), reason);
        ready.arena.max_bytes = room;
        yes = kube_ready_key(&ready, &bed->resolver, &key);
        assert_true(kube_ready_done(&ready) == yes);
    } while (!yes && room < 65536);

    return room;
}


/* Probes come often: their cost is not that of the endpoints. */
static void
test_ready_reads_no_slice(void **state)
{
    int     i, n;
    bed_t   bed;
    char    text[ROUTE_TEST_MAX * sizeof("10.0.0.10=rs ")];
    size_t  none;

    (void) state;
    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "", "synced", "synced");
    route_test_service(&bed.t, "shop", "web", "http:80");

    for (i = 0, n = 0; i < ROUTE_TEST_MAX; i++) {
        n += snprintf(text + n, sizeof(text) - (size_t) n, "10.0.0.%d=rs ",
                      i + 1);
    }

    none = ready_room(&bed, "shop/web");

    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080", text);

    /* the Service's record names its slice */

    assert_in_range(ready_room(&bed, "shop/web"), none, none + 64);

    bed_close(&bed);
}


static void
test_ready_again(void **state)
{
    bed_t         bed;
    char          reason[KUBE_READY_REASON_MAX];
    kube_key_t    web, none;
    kube_ready_t  ready;

    (void) state;
    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "", "synced", "synced");
    route_test_service(&bed.t, "shop", "web", "http:80");
    assert_int_equal(kube_key_parse(kube_str("shop/web"), false, &web, NULL),
                     KUBE_OK);
    assert_int_equal(kube_key_parse(kube_str("shop/none"), false, &none, NULL),
                     KUBE_OK);

    kube_ready_init(&ready, &bed.t.zone, KUBE_READY_STRICT, bed_alloc(&bed),
                    reason);
    assert_false(kube_ready_key(&ready, &bed.resolver, &none));
    assert_true(ready.missing);
    assert_string_equal(reason, "no_service: shop/none");
    assert_false(kube_ready_key(&ready, &bed.resolver, &web));

    kube_ready_again(&ready);
    assert_false(ready.missing);
    assert_string_equal(reason, "");
    assert_true(kube_ready_key(&ready, &bed.resolver, &web));
    assert_true(kube_ready_done(&ready));
    bed_close(&bed);
}


static void
ready_oom(alloc_test_t *at, void *ctx)
{
    const char  *reason;

    reason = ready_of(ctx, &at->alloc, "shop/web =shop =");

    assert_string_equal(reason, at->failed ? "out of memory" : "");
}


static void
test_ready_oom(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "", "synced", "synced");
    route_test_service(&bed.t, "shop", "web", "http:80");
    ALLOC_TEST_RUN(ready_oom, &bed);
    bed_close(&bed);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_ready_static),
        cmocka_unit_test(test_ready_forbidden_key),
        cmocka_unit_test(test_ready_forbidden),
        cmocka_unit_test(test_ready_all_namespaces),
        cmocka_unit_test(test_ready_state_file),
        cmocka_unit_test(test_ready_for_good),
        cmocka_unit_test(test_ready_no_zone),
        cmocka_unit_test(test_ready_reads_no_slice),
        cmocka_unit_test(test_ready_again),
        cmocka_unit_test(test_ready_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

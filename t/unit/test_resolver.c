/*
 * test_resolver - from a key to endpoints or a reason, and the words for it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_resolver.h"
#include "route_test.h"


typedef struct {
    zone_test_t        t;
    kube_resolver_t    resolver;
    kube_str_t         names[2];
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


static kube_key_t
key_of(const char *text)
{
    kube_key_t  key;

    assert_int_equal(kube_key_parse(kube_str(text), true, &key, NULL),
                     KUBE_OK);

    return key;
}


/* The same in steps leads to the same. */
static void
resolve_steps(bed_t *bed, const kube_key_t *key, const kube_resolution_t *made)
{
    size_t              i;
    kube_rc_t           rc;
    alloc_test_t        at;
    kube_resolving_t    resolving;
    kube_resolution_t  *other;

    alloc_test_init(&at);
    kube_resolving_init(&resolving, &bed->resolver, key, &at.alloc, 1u << 20);

    do {
        rc = kube_resolving_step(&resolving);
    } while (rc == KUBE_AGAIN);

    assert_int_equal(rc, KUBE_OK);

    other = &resolving.resolution;
    assert_int_equal(other->error, made->error);
    assert_int_equal(other->entry, made->entry);
    assert_true(other->head == made->head);
    assert_int_equal(other->found, made->found);
    assert_int_equal(other->selection.n, made->selection.n);

    if (made->found) {
        assert_true(other->snapshot.revision == made->snapshot.revision);
        assert_int_equal(other->snapshot.from_state_file,
                         made->snapshot.from_state_file);
    }

    for (i = 0; i < made->selection.n; i++) {
        assert_memory_equal(other->selection.endpoints[i].addr.bytes,
                            made->selection.endpoints[i].addr.bytes, 4);
        assert_int_equal(other->selection.endpoints[i].port,
                         made->selection.endpoints[i].port);
    }

    kube_resolving_done(&resolving);
    alloc_test_assert_no_leak(&at);
}


/* Resets the arena first: one resolution at a time. */
static kube_resolution_t
resolve(bed_t *bed, const char *text, unsigned flags)
{
    kube_key_t         key;
    kube_resolution_t  made;

    key = key_of(text);
    kube_arena_reset(&bed->t.arena);
    assert_int_equal(kube_resolve(&bed->resolver, &key, flags, &bed->t.arena,
                                  &made), KUBE_OK);

    assert_true((made.selection.n == 0) == (made.error != KUBE_RESOLVE_OK));

    if (flags == 0) {
        resolve_steps(bed, &key, &made);
    }

    return made;
}


static void
check(bed_t *bed, const char *text, kube_resolve_error_t error,
    const char *canonical, const char *why)
{
    char               out[KUBE_KEY_TEXT_MAX], line[KUBE_RESOLVER_WHY_MAX];
    kube_key_t         key;
    kube_resolution_t  made;

    made = resolve(bed, text, 0);

    if (made.error != error) {
        fail_msg("%s: %d, not %d", text, (int) made.error, (int) error);
    }

    key = key_of(text);
    (void) kube_resolution_text(&key, &made, out);
    assert_string_equal(out, canonical);

    kube_arena_reset(&bed->t.arena);
    assert_int_equal(kube_resolver_why(&bed->resolver, kube_str(text), error,
                                       &bed->t.arena, line), error);
    assert_string_equal(line, why);
}


static void
test_resolver_key(void **state)
{
    bed_t       bed;
    kube_key_t  key;

    (void) state;
    bed_open(&bed);
    bed.names[0] = KUBE_STR("shop");
    bed.names[1] = KUBE_STR("api");
    bed.resolver.namespaces = (kube_namespaces_t) { false, bed.names, 2 };

#define KEY(text, error)                                                      \
    assert_int_equal(kube_resolver_key(&bed.resolver, KUBE_STR(text), &key),  \
                     KUBE_RESOLVE_##error)

    KEY("", NO_KEY);
    KEY("shop", BAD_KEY);
    KEY("shop/../infra/x", BAD_KEY);
    KEY("infra/web", NAMESPACE_DENIED);
    KEY("web.shop", BAD_KEY);
    KEY("shop/web:80", OK);
    assert_true(kube_str_eq(key.ns, KUBE_STR("shop")));
    assert_int_equal(key.port.number, 80);

    bed.resolver.dns = true;
    KEY("web.shop", OK);
    KEY("web.infra", NAMESPACE_DENIED);
#undef KEY

    /* the policy holds in the resolver itself, whoever parsed the key */
    route_test_service(&bed.t, "infra", "web", "http:80");
    check(&bed, "infra/web", KUBE_RESOLVE_NAMESPACE_DENIED, "infra/web",
          "namespace \"infra\" is not in namespaces=shop,api");

    bed_close(&bed);
}


static void
test_resolver_finds(void **state)
{
    bed_t              bed;
    kube_resolution_t  made;

    (void) state;
    bed_open(&bed);
    route_test_service(&bed.t, "shop", "web", "http:80 :81");
    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080 :8081",
                     "10.0.0.2=rs 10.0.0.1=rs 10.0.0.3=");

    made = resolve(&bed, "shop/web:http", 0);
    assert_int_equal(made.error, KUBE_RESOLVE_OK);
    assert_true(made.found);
    assert_int_equal(made.selection.n, 2);
    assert_int_equal(made.selection.endpoints[0].port, 8080);
    assert_int_equal(made.selection.rows_n, 0);
    assert_int_equal(resolve(&bed, "shop/web:http", KUBE_SELECT_EXPLAIN)
                     .selection.rows_n, 3);
    assert_int_equal(made.entry, zone_test_find(&bed.t, KUBE_RESOURCE_SERVICES,
                                                "shop", "web"));
    assert_true(made.head == kube_zone_head(&bed.t.zone, made.entry));
    assert_true(made.snapshot.revision != 0);

    /* by the identity of the port, however the key spells it */
    check(&bed, "shop/web:http", KUBE_RESOLVE_OK, "shop/web:http", "");
    check(&bed, "shop/web:80", KUBE_RESOLVE_OK, "shop/web:http", "");
    check(&bed, "shop/web:81", KUBE_RESOLVE_OK, "shop/web:81", "");

    route_test_service(&bed.t, "shop", "one", "http:80");
    route_test_slice(&bed.t, "shop", "one-1", "one", "http:8080",
                     "10.0.0.1=rs");
    check(&bed, "shop/one", KUBE_RESOLVE_OK, "shop/one:http", "");
    check(&bed, "shop/one:80", KUBE_RESOLVE_OK, "shop/one:http", "");

    bed_close(&bed);
}


/* What a spelling means, as namespace/name:port-name; "": error. */
static void
identified(bed_t *bed, const char *text, kube_resolve_error_t error,
    const char *expected)
{
    char               out[KUBE_KEY_TEXT_MAX];
    kube_key_t         key, identity;
    kube_resolution_t  spelled, exact;

    key = key_of(text);
    kube_arena_reset(&bed->t.arena);
    assert_int_equal(kube_resolver_identify(&bed->resolver, &key,
                                            &bed->t.arena, &exact, &identity),
                     KUBE_OK);
    assert_int_equal(exact.error, error);
    assert_int_equal(exact.entry, zone_test_find(&bed->t,
                     KUBE_RESOURCE_SERVICES, "shop", "web"));
    assert_int_equal(exact.selection.rows_n, 0);

    if (error != KUBE_RESOLVE_OK) {
        return;
    }

    assert_true(identity.port.exact);
    (void) kube_key_text(&identity, out);
    assert_string_equal(out, expected);

    /* either way leads to the same */

    assert_int_equal(kube_resolve(&bed->resolver, &key, 0, &bed->t.arena,
                                  &spelled), KUBE_OK);
    assert_int_equal(kube_resolve(&bed->resolver, &identity, 0, &bed->t.arena,
                                  &exact), KUBE_OK);
    assert_int_equal(spelled.error, KUBE_RESOLVE_OK);
    assert_int_equal(exact.error, KUBE_RESOLVE_OK);
    assert_int_equal(spelled.selection.n, exact.selection.n);
    assert_int_equal(spelled.selection.endpoints[0].port,
                     exact.selection.endpoints[0].port);

    (void) kube_resolution_text(&key, &spelled, out);
    assert_true(strcmp(out, text) == 0 || key.port.name.len == 0);
}


static void
test_resolver_identity(void **state)
{
    bed_t              bed;
    kube_key_t         key, identity;
    kube_resolution_t  made;

    (void) state;
    bed_open(&bed);
    route_test_service(&bed.t, "shop", "web", "http:80 :81");
    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080 :8081",
                     "10.0.0.2=rs 10.0.0.1=rs 10.0.0.3=");

    identified(&bed, "shop/web:http", KUBE_RESOLVE_OK, "shop/web:http");
    identified(&bed, "shop/web:80", KUBE_RESOLVE_OK, "shop/web:http");
    identified(&bed, "web.shop.svc.any:80", KUBE_RESOLVE_OK, "shop/web:http");
    identified(&bed, "shop/web:81", KUBE_RESOLVE_OK, "shop/web:");
    identified(&bed, "shop/web", KUBE_RESOLVE_PORT_NEEDED, "");
    identified(&bed, "shop/web:82", KUBE_RESOLVE_NO_PORT, "");
    identified(&bed, "shop/web:admin", KUBE_RESOLVE_NO_PORT, "");

    /* the same numbers change hands: names stay what they were */

    route_test_service(&bed.t, "shop", "web", "http:81 :80");
    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080 :8081",
                     "10.0.0.2=rs 10.0.0.1=rs 10.0.0.3=");

    identified(&bed, "shop/web:http", KUBE_RESOLVE_OK, "shop/web:http");
    identified(&bed, "shop/web:80", KUBE_RESOLVE_OK, "shop/web:");
    identified(&bed, "shop/web:81", KUBE_RESOLVE_OK, "shop/web:http");

    key = key_of("shop/none");
    assert_int_equal(kube_resolver_identify(&bed.resolver, &key, &bed.t.arena,
                                            &made, &identity), KUBE_OK);
    assert_int_equal(made.error, KUBE_RESOLVE_NOT_SYNCED);
    assert_int_equal(made.entry, 0);

    bed.resolver.namespaces = (kube_namespaces_t) { false, bed.names, 0 };
    key = key_of("shop/web:http");
    assert_int_equal(kube_resolver_identify(&bed.resolver, &key, &bed.t.arena,
                                            &made, &identity), KUBE_OK);
    assert_int_equal(made.error, KUBE_RESOLVE_NAMESPACE_DENIED);

    bed_close(&bed);
}


static void
test_resolver_ports(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);
    route_test_service(&bed.t, "shop", "web", "http:80");
    route_test_service(&bed.t, "shop", "two", "http:80 dns:53/UDP :81");
    route_test_service(&bed.t, "shop", "none", "");

    check(&bed, "shop/web:8080", KUBE_RESOLVE_NO_PORT, "shop/web:8080",
          "Service shop/web has no port 8080; it has http (80)");
    check(&bed, "shop/web:admin", KUBE_RESOLVE_NO_PORT, "shop/web:admin",
          "Service shop/web has no port admin; it has http (80)");
    check(&bed, "shop/two", KUBE_RESOLVE_PORT_NEEDED, "shop/two",
          "Service shop/two has several ports and the key names none; "
          "it has http (80), dns (53 UDP), unnamed (81)");
    check(&bed, "shop/two:dns", KUBE_RESOLVE_NO_PORT, "shop/two:dns",
          "Service shop/two has no TCP port dns; "
          "it has http (80), dns (53 UDP), unnamed (81)");
    check(&bed, "shop/two:53", KUBE_RESOLVE_NO_PORT, "shop/two:53",
          "Service shop/two has no TCP port 53; "
          "it has http (80), dns (53 UDP), unnamed (81)");
    check(&bed, "shop/none", KUBE_RESOLVE_NO_PORT, "shop/none",
          "Service shop/none has no port at all");

    bed_close(&bed);
}


static void
test_resolver_endpoints(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "", "synced", "synced");
    route_test_service(&bed.t, "shop", "web", "http:80");

    check(&bed, "shop/web", KUBE_RESOLVE_NO_ENDPOINTS, "shop/web:http",
          "Service shop/web has no endpoints");

    route_test_slice(&bed.t, "shop", "web-1", "web", "admin:8081",
                     "10.0.0.1=rs 10.0.0.2=rs");
    check(&bed, "shop/web", KUBE_RESOLVE_NO_ENDPOINTS, "shop/web:http",
          "no endpoint of Service shop/web has its port http; it has 2; "
          "see its targetPort, and its slices' ports");

    route_test_service(&bed.t, "shop", "bare", ":80");
    route_test_slice(&bed.t, "shop", "bare-1", "bare", "", "10.0.0.1=rs");
    check(&bed, "shop/bare", KUBE_RESOLVE_NO_ENDPOINTS, "shop/bare:80",
          "no endpoint of Service shop/bare has its port 80; it has 1; "
          "see its targetPort, and its slices' ports");

    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1= 10.0.0.2=t");
    check(&bed, "shop/web", KUBE_RESOLVE_NO_READY_ENDPOINT, "shop/web:http",
          "no endpoint of Service shop/web is ready; it has 2");

    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1= 127.0.0.7=rs 169.254.169.254=rs");
    check(&bed, "shop/web", KUBE_RESOLVE_ADDRESS_DENIED, "shop/web:http",
          "address 127.0.0.7 of Service shop/web is denied: "
          "loopback (127.0.0.0/8)");

    bed.resolver.select.family = KUBE_SELECT_FAMILY_IPV6;
    check(&bed, "shop/web", KUBE_RESOLVE_NO_FAMILY, "shop/web:http",
          "no endpoint of Service shop/web has an IPv6 address; it has 3");

    (void) route_test_service_of(&bed.t, "shop", "out", "http:80",
                                 KUBE_SERVICE_EXTERNAL_NAME, 0);
    check(&bed, "shop/out", KUBE_RESOLVE_EXTERNAL_NAME, "shop/out:http",
          "Service shop/out is an ExternalName, which is not followed");

    bed_close(&bed);
}


/* A change of ipFamilies alone is one of the Service. */
static void
test_resolver_family(void **state)
{
    bed_t              bed;
    size_t             i;
    uint32_t           entry, slices[2];
    uint64_t           revision;
    kube_port_t        ports[ROUTE_TEST_MAX];
    kube_object_t      service, slice;
    kube_endpoint_t    endpoint;
    kube_resolution_t  made;

    static const struct {
        kube_family_t         family;      /* of the Service */
        kube_select_family_t  select;
        size_t                n;
        kube_family_t         first;       /* of what is chosen */
    } cases[] = {
        { KUBE_FAMILY_NONE, KUBE_SELECT_FAMILY_OWN, 2, KUBE_FAMILY_IPV4 },
        { KUBE_FAMILY_IPV6, KUBE_SELECT_FAMILY_OWN, 1, KUBE_FAMILY_IPV6 },
        { KUBE_FAMILY_IPV4, KUBE_SELECT_FAMILY_OWN, 1, KUBE_FAMILY_IPV4 },
        { KUBE_FAMILY_IPV6, KUBE_SELECT_FAMILY_IPV4, 1, KUBE_FAMILY_IPV4 },
        { KUBE_FAMILY_IPV4, KUBE_SELECT_FAMILY_ANY, 2, KUBE_FAMILY_IPV4 }
    };

    (void) state;
    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "", "synced", "synced");
    revision = 0;

    memset(&service, 0, sizeof(kube_object_t));
    service.resource = KUBE_RESOURCE_SERVICES;
    route_test_meta(&service.u.service.meta, "shop", "web");
    service.u.service.ports = ports;
    service.u.service.ports_n = route_test_ports("http:80", ports);

    memset(&slice, 0, sizeof(kube_object_t));
    slice.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    slice.u.slice.service = KUBE_STR("web");
    slice.u.slice.ports = ports;
    slice.u.slice.ports_n = 1;
    slice.u.slice.endpoints = &endpoint;
    slice.u.slice.endpoints_n = 1;
    memset(&endpoint, 0, sizeof(kube_endpoint_t));
    endpoint.ready = true;

    for (i = 0; i < 2; i++) {
        route_test_meta(&slice.u.slice.meta, "shop", i ? "web-6" : "web-4");
        assert_int_equal(kube_addr_parse(i ? KUBE_STR("fd00::1")
                                           : KUBE_STR("10.0.0.1"),
                                         &endpoint.address), KUBE_OK);
        slice.u.slice.family = endpoint.address.family;
        slices[i] = route_test_stage(&bed.t, &slice, 0);
    }

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        service.u.service.family = cases[i].family;
        entry = route_test_stage(&bed.t, &service, 0);
        route_test_publish(&bed.t, entry, slices, 2);

        bed.resolver.select.family = cases[i].select;
        made = resolve(&bed, "shop/web", 0);
        assert_int_equal(made.selection.n, cases[i].n);
        assert_int_equal(made.selection.endpoints[0].addr.family,
                         cases[i].first);

        if (i != 0 && cases[i].family != cases[i - 1].family) {
            assert_true(made.snapshot.revision > revision);
        }

        revision = made.snapshot.revision;
    }

    bed_close(&bed);
}


/* What is missing is "no such" only where it would have been seen. */
static void
test_resolver_coverage(void **state)
{
    bed_t              bed;
    uint32_t           entry;
    kube_resolution_t  made;

    (void) state;
    bed_open(&bed);

    check(&bed, "shop/web", KUBE_RESOLVE_NOT_SYNCED, "shop/web",
          "no list has been completed of the objects in shop");

    route_test_namespace(&bed.t, 0, "shop", "listing", "listing");
    route_test_namespace(&bed.t, 1, "infra", "forbidden", "forbidden");
    route_test_namespace(&bed.t, 2, "api", "synced", "forbidden");

    check(&bed, "shop/web", KUBE_RESOLVE_NOT_SYNCED, "shop/web",
          "no list has been completed of services in shop");
    check(&bed, "infra/web", KUBE_RESOLVE_FORBIDDEN, "infra/web",
          "the API server forbids to list services in infra");
    check(&bed, "api/web", KUBE_RESOLVE_NO_SERVICE, "api/web",
          "there is no Service api/web");
    assert_int_equal(zone_test_refuse(&bed.t, KUBE_RESOURCE_SERVICES, "api",
                                      "full", "7", "zone_full", &entry),
                     KUBE_OK);
    check(&bed, "api/full", KUBE_RESOLVE_NOT_SYNCED, "api/full",
          "Service api/full is not held: it was refused, the status says "
          "why");
    check(&bed, "api/ful", KUBE_RESOLVE_NO_SERVICE, "api/ful",
          "there is no Service api/ful");
    check(&bed, "else/web", KUBE_RESOLVE_NOT_SYNCED, "else/web",
          "no list has been completed of the objects in else");

    /* the Service is there, its slices are not known */

    route_test_service(&bed.t, "api", "web", "http:80");
    route_test_service(&bed.t, "shop", "web", "http:80");

    check(&bed, "api/web", KUBE_RESOLVE_FORBIDDEN, "api/web:http",
          "the API server forbids to list endpointslices in api");
    check(&bed, "shop/web", KUBE_RESOLVE_NOT_SYNCED, "shop/web:http",
          "no list has been completed of endpointslices in shop");

    /* nothing of the Service changes when the list ends: look again */

    made = resolve(&bed, "shop/web", 0);
    assert_true(made.found && made.entry == 0);
    route_test_namespace(&bed.t, 0, "shop", "synced", "synced");
    made = resolve(&bed, "shop/web", 0);
    assert_int_equal(made.error, KUBE_RESOLVE_NO_ENDPOINTS);
    assert_true(made.entry != 0);

    /* a 403 of now does not undo what has been listed */

    kube_zone_scope_set(&bed.t.zone, 1, KUBE_COUNTER_GAUGE_FORBIDDEN, 1);
    made = resolve(&bed, "shop/web", 0);
    assert_int_equal(made.error, KUBE_RESOLVE_NO_ENDPOINTS);

    /* all namespaces at once */

    route_test_namespace(&bed.t, 0, "", "forbidden", "forbidden");
    check(&bed, "shop/none", KUBE_RESOLVE_FORBIDDEN, "shop/none",
          "the API server forbids to list services in all namespaces");

    bed_close(&bed);
}


static void
test_resolver_state_file(void **state)
{
    bed_t              bed;
    kube_resolution_t  made;

    (void) state;
    bed_open(&bed);
    (void) route_test_service_of(&bed.t, "shop", "web", "http:80",
                                 KUBE_SERVICE_CLUSTER_IP,
                                 KUBE_RECORD_F_STATE_FILE);
    route_test_slice(&bed.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs");

    made = resolve(&bed, "shop/web", 0);
    assert_int_equal(made.error, KUBE_RESOLVE_OK);
    assert_true(made.snapshot.from_state_file);

    bed.resolver.unsynced_fail = true;
    made = resolve(&bed, "shop/web", 0);
    assert_int_equal(made.error, KUBE_RESOLVE_NOT_SYNCED);
    assert_true(!made.found && made.entry == 0);

    /* one slice that no server has confirmed is enough */
    route_test_service(&bed.t, "shop", "api", "http:80");
    route_test_slice_of(&bed.t, "shop", "api-1", "api", "http:8080",
                        "10.0.0.1=rs", KUBE_RECORD_F_STATE_FILE);
    made = resolve(&bed, "shop/api", 0);
    assert_int_equal(made.error, KUBE_RESOLVE_NOT_SYNCED);
    route_test_slice(&bed.t, "shop", "api-1", "api", "http:8080",
                     "10.0.0.2=rs");
    made = resolve(&bed, "shop/api", 0);
    assert_int_equal(made.error, KUBE_RESOLVE_OK);

    bed_close(&bed);
}


/* Above the arena's ceiling: a fact about the Service, not about memory. */
static void
test_resolver_too_large(void **state)
{
    bed_t              bed;
    size_t             max;
    kube_key_t         key;
    kube_arena_t       arena;
    kube_resolution_t  made;
    char               line[KUBE_RESOLVER_WHY_MAX];

    (void) state;
    bed_open(&bed);
    assert_int_equal(zone_test_put(&bed.t, "shop", "web", 1, 79, 20, 100,
                                   1000), KUBE_OK);
    key = key_of("shop/web");

    kube_arena_init(&arena, &bed.t.at.alloc, 32u << 10);
    assert_int_equal(kube_resolve(&bed.resolver, &key, 0, &arena, &made),
                     KUBE_OK);
    assert_int_equal(made.error, KUBE_RESOLVE_TOO_LARGE);
    assert_false(made.found);
    assert_true(made.entry != 0);
    assert_true(made.head == kube_zone_head(&bed.t.zone, made.entry));

    kube_arena_reset(&arena);
    assert_int_equal(kube_resolver_why(&bed.resolver, KUBE_STR("shop/web"),
                                       KUBE_RESOLVE_TOO_LARGE, &arena, line),
                     KUBE_RESOLVE_TOO_LARGE);
    assert_string_equal(line, "Service shop/web has more endpoints than can "
                              "be read");
    kube_arena_done(&arena);

    /* also where only what is missing finds no memory any more */
    route_test_service(&bed.t, "shop", "none", "http:80");
    route_test_scope(&bed.t, 0, KUBE_RESOURCE_SERVICES, "", "synced");
    route_test_scope(&bed.t, 1, KUBE_RESOURCE_ENDPOINTSLICES, "", "synced");
    key = key_of("shop/none");

    for (max = 64; max < 64u << 10; max += max / 16) {
        kube_arena_init(&arena, &bed.t.at.alloc, max);
        assert_int_equal(kube_resolve(&bed.resolver, &key, 0, &arena, &made),
                         KUBE_OK);
        assert_int_equal(made.found, made.error != KUBE_RESOLVE_TOO_LARGE);
        kube_arena_done(&arena);
    }

    assert_int_equal(made.error, KUBE_RESOLVE_NO_ENDPOINTS);

    bed_close(&bed);
}


/* Slices of so many endpoints; no two addresses are the same. */
#define LARGE_SLICES     64
#define LARGE_ENDPOINTS  1000


static void
large_service(bed_t *bed)
{
    size_t            i, s;
    uint32_t          n, slices[LARGE_SLICES];
    kube_port_t       ports[ROUTE_TEST_MAX];
    kube_object_t     object;
    kube_endpoint_t  *eps;
    char              name[16], (*pods)[32];

    eps = calloc(LARGE_ENDPOINTS, sizeof(kube_endpoint_t));
    pods = calloc(LARGE_ENDPOINTS, sizeof(*pods));
    assert_true(eps != NULL && pods != NULL);
    memset(&object, 0, sizeof(kube_object_t));

    for (s = 0; s < LARGE_SLICES; s++) {

        for (i = 0; i < LARGE_ENDPOINTS; i++) {
            n = (uint32_t) (s * LARGE_ENDPOINTS + i);
            eps[i].address.family = KUBE_FAMILY_IPV4;
            eps[i].address.bytes[0] = 10;
            memcpy(eps[i].address.bytes + 1, &n, 3);
            eps[i].ready = true;
            snprintf(pods[i], sizeof(pods[i]), "large-%u", n);
            eps[i].pod = zone_test_str(pods[i]);
        }

        snprintf(name, sizeof(name), "large-%zu", s);
        object.resource = KUBE_RESOURCE_ENDPOINTSLICES;
        route_test_meta(&object.u.slice.meta, "shop", name);
        object.u.slice.service = KUBE_STR("large");
        object.u.slice.family = KUBE_FAMILY_IPV4;
        object.u.slice.ports = ports;
        object.u.slice.ports_n = route_test_ports("http:8080", ports);
        object.u.slice.endpoints = eps;
        object.u.slice.endpoints_n = LARGE_ENDPOINTS;
        slices[s] = route_test_stage(&bed->t, &object, 0);
    }

    route_test_service(&bed->t, "shop", "large", "http:80");
    route_test_publish(&bed->t, zone_test_find(&bed->t,
                                               KUBE_RESOURCE_SERVICES,
                                               "shop", "large"),
                       slices, LARGE_SLICES);
    free(eps);
    free(pods);
}


/* A bed that has no more than the large Service. */
static void
large_bed(bed_t *bed)
{
    memset(bed, 0, sizeof(bed_t));
    zone_test_open(&bed->t, 16u << 20);
    bed->resolver.zone = &bed->t.zone;
    bed->resolver.namespaces.all = true;
    large_service(bed);
}


/*
 * A Service with more endpoints than are used costs its copy while it is read,
 * and 384 bytes for each endpoint that may be used; what comes of it 256 bytes,
 * and no copy.
 */
static void
test_resolver_memory(void **state)
{
    bed_t             bed;
    size_t            copies;
    kube_rc_t         rc;
    kube_key_t        key;
    alloc_test_t      at;
    kube_resolving_t  resolving;

    (void) state;
    large_bed(&bed);
    key = key_of("shop/large");

    alloc_test_init(&at);
    kube_resolving_init(&resolving, &bed.resolver, &key, &at.alloc,
                        64u << 20);
    assert_int_equal(kube_resolving_step(&resolving), KUBE_AGAIN);
    copies = at.live_bytes;

    do {
        rc = kube_resolving_step(&resolving);
    } while (rc == KUBE_AGAIN);

    assert_int_equal(rc, KUBE_OK);
    assert_int_equal(resolving.resolution.selection.n,
                     KUBE_SERVICE_BUILT_MAX);
    assert_false(kube_resolving_is_few(&resolving));
    assert_in_range(at.live_bytes, 0, KUBE_SERVICE_BUILT_MAX * 256);
    assert_in_range(at.peak_bytes, 0, copies + KUBE_SERVICE_BUILT_MAX * 384);

    kube_resolving_done(&resolving);
    alloc_test_assert_no_leak(&at);
    bed_close(&bed);
}


/* How much there is of a Service is not known before it was copied. */
static void
test_resolver_few(void **state)
{
    bed_t             bed;
    kube_key_t        key;
    alloc_test_t      at;
    kube_resolving_t  resolving;

    (void) state;
    large_bed(&bed);
    alloc_test_init(&at);

    key = key_of("shop/large");
    kube_resolving_init(&resolving, &bed.resolver, &key, &at.alloc, 64u << 20);
    assert_false(kube_resolving_is_few(&resolving));
    assert_int_equal(kube_resolving_step(&resolving), KUBE_AGAIN);
    assert_false(kube_resolving_is_few(&resolving));
    kube_resolving_done(&resolving);

    kube_resolving_init(&resolving, &bed.resolver, &key, &at.alloc, 1u << 10);
    assert_int_equal(kube_resolving_step(&resolving), KUBE_OK);
    assert_int_equal(resolving.resolution.error, KUBE_RESOLVE_TOO_LARGE);
    assert_false(kube_resolving_is_few(&resolving));
    kube_resolving_done(&resolving);

    key = key_of("shop/none");
    kube_resolving_init(&resolving, &bed.resolver, &key, &at.alloc, 64u << 20);
    assert_false(kube_resolving_is_few(&resolving));
    assert_int_equal(kube_resolving_step(&resolving), KUBE_OK);
    assert_int_not_equal(resolving.resolution.error, KUBE_RESOLVE_OK);
    assert_true(kube_resolving_is_few(&resolving));
    kube_resolving_done(&resolving);

    alloc_test_assert_no_leak(&at);
    bed_close(&bed);
}


/*
 * A line of the log about a large Service: from its own record, in little
 * memory; of what would take its slices, as much as the caller knows.
 */
static void
test_resolver_why_large(void **state)
{
    size_t        i;
    bed_t         bed;
    kube_arena_t  arena;
    char          line[KUBE_RESOLVER_WHY_MAX];

    static const struct {
        const char            *text;
        kube_resolve_error_t   known;
        kube_resolve_error_t   error;
        const char            *line;
    } rows[] = {
        { "shop/large:8080", KUBE_RESOLVE_OK, KUBE_RESOLVE_NO_PORT,
          "Service shop/large has no port 8080; it has http (80)" },
        { "shop/large", KUBE_RESOLVE_OK, KUBE_RESOLVE_OK, "" },
        { "shop/large", KUBE_RESOLVE_NO_ENDPOINTS, KUBE_RESOLVE_NO_ENDPOINTS,
          "Service shop/large has no endpoints" },
        { "shop/large", KUBE_RESOLVE_NO_READY_ENDPOINT,
          KUBE_RESOLVE_NO_READY_ENDPOINT,
          "no endpoint of Service shop/large is ready" },
        { "shop/large", KUBE_RESOLVE_NO_FAMILY, KUBE_RESOLVE_NO_FAMILY,
          "no endpoint of Service shop/large has an IP address" },
        { "shop/large", KUBE_RESOLVE_ADDRESS_DENIED,
          KUBE_RESOLVE_ADDRESS_DENIED,
          "all addresses of Service shop/large that could be used are "
          "denied" },
    };

    (void) state;
    large_bed(&bed);
    kube_arena_init(&arena, &bed.t.at.alloc, 64u << 10);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        kube_arena_reset(&arena);
        assert_int_equal(kube_resolver_why(&bed.resolver,
                                           kube_str(rows[i].text),
                                           rows[i].known, &arena, line),
                         rows[i].error);
        assert_string_equal(line, rows[i].line);
    }

    kube_arena_done(&arena);
    bed_close(&bed);
}


static void
test_resolver_explain(void **state)
{
    bed_t              bed;
    kube_resolution_t  made;

    (void) state;
    bed_open(&bed);
    route_test_service(&bed.t, "shop", "web", "http:80 admin:81");
    route_test_slice(&bed.t, "shop", "web-1", "web", "admin:8081",
                     "10.0.0.1=rs 127.0.0.1=rs");

    made = resolve(&bed, "shop/web", 0);
    assert_int_equal(made.error, KUBE_RESOLVE_PORT_NEEDED);
    assert_int_equal(made.selection.rows_n, 0);

    made = resolve(&bed, "shop/web", KUBE_SELECT_EXPLAIN);
    assert_int_equal(made.error, KUBE_RESOLVE_PORT_NEEDED);
    assert_int_equal(made.selection.rows_n, 2);
    assert_string_equal(made.selection.rows[0].excluded_because,
                        "no such port");

    made = resolve(&bed, "shop/web",
                   KUBE_SELECT_EXPLAIN | KUBE_SELECT_ANY_PORT);
    assert_int_equal(made.error, KUBE_RESOLVE_OK);
    assert_int_equal(made.selection.n, 1);
    assert_null(made.selection.rows[0].excluded_because);
    assert_int_equal(made.selection.rows[0].port, 8081);
    assert_string_equal(made.selection.rows[1].excluded_because,
                        "address denied");
    assert_string_equal(made.selection.rows[1].denied_because,
                        "loopback (127.0.0.0/8)");

    bed_close(&bed);
}


static void
test_resolver_why_of_keys(void **state)
{
    bed_t       bed;
    unsigned    i;
    kube_str_t  many[64];
    char        line[KUBE_RESOLVER_WHY_MAX];

    (void) state;
    bed_open(&bed);

    assert_int_equal(kube_resolver_why(&bed.resolver, KUBE_STR(""),
                                       KUBE_RESOLVE_NO_KEY, &bed.t.arena,
                                       line),
                     KUBE_RESOLVE_NO_KEY);
    assert_string_equal(line, "the key is empty");

    assert_int_equal(kube_resolver_why(&bed.resolver, KUBE_STR("shop/a\nb"),
                                       KUBE_RESOLVE_BAD_KEY, &bed.t.arena,
                                       line),
                     KUBE_RESOLVE_BAD_KEY);
    assert_string_equal(line, "invalid service name");

    /* a line that does not fit is cut, not overrun */

    for (i = 0; i < 64; i++) {
        many[i] = KUBE_STR("a-namespace-with-a-rather-long-name-0123456789");
    }

    bed.resolver.namespaces = (kube_namespaces_t) { false, many, 64 };
    assert_int_equal(kube_resolver_why(&bed.resolver, KUBE_STR("shop/web"),
                                       KUBE_RESOLVE_NAMESPACE_DENIED,
                                       &bed.t.arena, line),
                     KUBE_RESOLVE_NAMESPACE_DENIED);
    assert_int_equal(strlen(line), KUBE_RESOLVER_WHY_MAX - 1);

    bed_close(&bed);
}


static void
resolver_oom(alloc_test_t *at, void *ctx)
{
    bed_t              *bed = ctx;
    kube_rc_t           rc;
    kube_key_t          key, identity;
    kube_arena_t        arena;
    kube_resolving_t    resolving;
    kube_resolution_t   made;
    char                line[KUBE_RESOLVER_WHY_MAX];

    kube_arena_init(&arena, &at->alloc, 16u << 20);

    key = key_of("shop/web");
    rc = kube_resolve(&bed->resolver, &key, 0, &arena, &made);
    alloc_test_assert_rc(at, rc);

    if (rc == KUBE_OK) {
        assert_int_equal(made.error, KUBE_RESOLVE_NO_ENDPOINTS);
    }

    kube_arena_reset(&arena);

    key = key_of("shop/none");
    rc = kube_resolve(&bed->resolver, &key, 0, &arena, &made);
    alloc_test_assert_rc(at, rc);

    kube_arena_reset(&arena);

    key = key_of("shop/web");
    rc = kube_resolver_identify(&bed->resolver, &key, &arena, &made,
                                &identity);
    alloc_test_assert_rc(at, rc);

    kube_resolving_init(&resolving, &bed->resolver, &key, &at->alloc, 1u << 20);

    do {
        rc = kube_resolving_step(&resolving);
    } while (rc == KUBE_AGAIN);

    alloc_test_assert_rc(at, rc);
    assert_true(rc != KUBE_OK || kube_resolving_is_few(&resolving));
    kube_resolving_done(&resolving);

    kube_arena_reset(&arena);
    (void) kube_resolver_why(&bed->resolver, KUBE_STR("shop/none"),
                             KUBE_RESOLVE_NO_SERVICE, &arena, line);

    kube_arena_done(&arena);
}


static void
test_resolver_oom(void **state)
{
    bed_t  bed;

    (void) state;
    bed_open(&bed);
    route_test_namespace(&bed.t, 0, "", "synced", "synced");
    route_test_service(&bed.t, "shop", "web", "http:80");
    ALLOC_TEST_RUN(resolver_oom, &bed);
    bed_close(&bed);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_resolver_key),
        cmocka_unit_test(test_resolver_finds),
        cmocka_unit_test(test_resolver_identity),
        cmocka_unit_test(test_resolver_ports),
        cmocka_unit_test(test_resolver_endpoints),
        cmocka_unit_test(test_resolver_family),
        cmocka_unit_test(test_resolver_coverage),
        cmocka_unit_test(test_resolver_state_file),
        cmocka_unit_test(test_resolver_too_large),
        cmocka_unit_test(test_resolver_memory),
        cmocka_unit_test(test_resolver_few),
        cmocka_unit_test(test_resolver_why_large),
        cmocka_unit_test(test_resolver_explain),
        cmocka_unit_test(test_resolver_why_of_keys),
        cmocka_unit_test(test_resolver_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

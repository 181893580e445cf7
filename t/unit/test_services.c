/*
 * test_services - parts of a list in order, queries, and one Service.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_services.h"
#include "status_test.h"


static status_test_t    st;
static kube_services_t  services;


static int
setup(void **state)
{
    (void) state;

    status_test_open(&st);

    memset(&services, 0, sizeof(kube_services_t));
    services.zone = &st.t.zone;

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    status_test_close(&st);

    return 0;
}


static void
has(const char *text)
{
    if (strstr(st.tt.data, text) == NULL) {
        fail_msg("missing:\n%s\n%s", text, st.tt.data);
    }
}


static const char *
query(const char *ns, const char *limit, const char *after)
{
    return kube_services_query(&services, kube_str(ns), kube_str(limit),
                               kube_str(after));
}


static void
print(void)
{
    text_test_reset(&st.tt);
    kube_arena_reset(&st.arena);
    assert_int_equal(kube_services_print(&st.tt.text, &services, &st.arena,
                                         &st.t.arena), KUBE_OK);
    status_test_is_json(&st);
}


/* The names that were printed, "ns/name ns/name", and next. */
static void
names(char *out, size_t size, char *next, size_t next_size)
{
    size_t       len;
    const char  *p, *ns, *name;

    out[0] = '\0';

    for (p = st.tt.data; (p = strstr(p, "{\"namespace\":\"")) != NULL; p++) {
        ns = p + sizeof("{\"namespace\":\"") - 1;
        name = strstr(ns, "\"name\":\"") + sizeof("\"name\":\"") - 1;
        len = strlen(out);

        snprintf(out + len, size - len, "%s%.*s/%.*s", len ? " " : "",
                 (int) strcspn(ns, "\""), ns, (int) strcspn(name, "\""), name);
    }

    p = strstr(st.tt.data, "],\"next\":\"");
    assert_non_null(p);
    p += sizeof("],\"next\":\"") - 1;
    snprintf(next, next_size, "%.*s", (int) strcspn(p, "\""), p);
}


static void
test_services_query(void **state)
{
    kube_str_t  ns, name;

    (void) state;

    assert_null(query(NULL, NULL, NULL));
    assert_int_equal(services.limit, KUBE_SERVICES_LIMIT_DEFAULT);
    assert_int_equal(services.after_ns.len, 0);

    assert_null(query("shop", "1000", "shop/a.b"));
    assert_int_equal(services.limit, 1000);
    assert_true(kube_str_eq(services.after_name, KUBE_STR("a.b")));

    assert_string_equal(query("../x", "", ""), "namespace is not a name");
    assert_string_equal(query("", "0", ""), "limit must be 1 to 1000");
    assert_string_equal(query("", "1001", ""), "limit must be 1 to 1000");
    assert_string_equal(query("", "-1", ""), "limit must be 1 to 1000");
    assert_string_equal(query("", "", "shop"), "after must be namespace/name");
    assert_string_equal(query("", "", "/"), "after must be namespace/name");

    assert_true(kube_services_name(KUBE_STR("a/b"), &ns, &name));
    assert_true(kube_str_eq(ns, KUBE_STR("a")));
    assert_true(kube_str_eq(name, KUBE_STR("b")));
    assert_false(kube_services_name(KUBE_STR("a/b/c"), &ns, &name));
    assert_false(kube_services_name(KUBE_STR("A/b"), &ns, &name));
    assert_false(kube_services_name(KUBE_STR_NULL, &ns, &name));
}


/* Whatever the limit, all parts together are all Services in order. */

static void
test_services_parts(void **state)
{
    char           all[4096], part[4096], joined[9000], next[64], name[16];
    char           limit[8], after[64];
    size_t         n, size, parts;
    unsigned       i, k;
    kube_random_t  random;

    (void) state;
    kube_random_init(&random, 5);
    all[0] = '\0';

    for (i = 0; i < 120; i++) {
        k = (unsigned) kube_random_range(&random, 0, 999);
        snprintf(name, sizeof(name), "s%03u", k);
        route_test_service(&st.t, k % 3 ? "shop" : "infra", name, "http:80");
    }

    assert_null(query("", "1000", ""));
    print();
    names(all, sizeof(all), next, sizeof(next));
    assert_string_equal(next, "");

    for (size = strlen(all), n = 1, i = 0; i < size; i++) {
        n += (all[i] == ' ');
    }

    /* the last time bytes are the limit */

    for (k = 1; k < n + 2 || services.bytes == 0; k += (k < 5) ? 1 : 7) {
        services.bytes = (k < n + 2) ? 0 : 1000;
        joined[0] = '\0';
        after[0] = '\0';
        parts = 0;

        do {
            snprintf(limit, sizeof(limit), "%u", k);
            assert_null(query("", limit, after));
            print();
            names(part, sizeof(part), next, sizeof(next));
            assert_true(services.bytes == 0 || strlen(st.tt.data) < 1400);

            size = strlen(joined);
            snprintf(joined + size, sizeof(joined) - size, "%s%s",
                     size ? " " : "", part);
            memcpy(after, next, sizeof(after));
            parts++;
        } while (after[0] != '\0');

        assert_string_equal(joined, all);

        if (services.bytes == 0) {
            assert_int_equal(parts, (n + k - 1) / k);

        } else {
            assert_in_range(parts, 5, n / 2);
        }
    }

    services.bytes = 0;

    /* of one namespace, and after a name that is not there any more */

    assert_null(query("infra", "1000", ""));
    print();
    names(part, sizeof(part), next, sizeof(next));
    assert_null(strstr(part, "shop/"));
    assert_memory_equal(all, part, strlen(part));

    assert_null(query("", "1000", "infra/zzz"));
    print();
    names(joined, sizeof(joined), next, sizeof(next));
    assert_string_equal(joined, all + strlen(part) + 1);
}


/* A part ends with the Service of more endpoints than a worker may look at. */

static void
test_services_endpoints(void **state)
{
    char  part[64], next[64];

    (void) state;

    route_test_service(&st.t, "shop", "a", "http:80");
    route_test_service(&st.t, "shop", "b", "http:80");
    route_test_service(&st.t, "shop", "c", "http:80");
    route_test_slice(&st.t, "shop", "a-1", "a", "http:8080",
                     "10.0.0.1=rs 10.0.0.2=rs");
    route_test_slice(&st.t, "shop", "b-1", "b", "http:8080",
                     "10.0.0.3=rs");

    services.endpoints = 1;

    assert_null(query("", "", ""));
    print();
    names(part, sizeof(part), next, sizeof(next));
    assert_string_equal(part, "shop/a");
    assert_string_equal(next, "shop/a");

    assert_null(query("", "", next));
    print();
    names(part, sizeof(part), next, sizeof(next));
    assert_string_equal(part, "shop/b shop/c");
    assert_string_equal(next, "");

    services.endpoints = 0;
}


static void
test_services_rows(void **state)
{
    (void) state;

    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs 10.0.0.2=s 127.0.0.1=rs");
    (void) route_test_service_of(&st.t, "shop", "out", "",
                                 KUBE_SERVICE_EXTERNAL_NAME, 0);

    assert_null(query("", "", ""));
    print();

    has("{\"items\":[{\"namespace\":\"shop\",\"name\":\"out\","
        "\"type\":\"ExternalName\",\"cluster_ips\":[],\"headless\":false,"
        "\"generation\":");
    has(",\"ports\":[],\"endpoints_total\":0,"
        "\"endpoints_used\":0},");
    has("\"ports\":[{\"name\":\"http\",\"port\":80,\"protocol\":\"TCP\"}],"
        "\"endpoints_total\":3,\"endpoints_used\":1}],\"next\":\"\"}\n");

    text_test_reset(&st.tt);
    assert_int_equal(kube_services_print_one(&st.tt.text, &services,
                                             KUBE_STR("shop"),
                                             KUBE_STR("web"), &st.t.arena),
                     KUBE_OK);
    status_test_is_json(&st);

    has("\"endpoints\":[{\"address\":\"10.0.0.1\",\"ports\":[{\"name\":"
        "\"http\",\"port\":8080,\"protocol\":\"TCP\","
        "\"app_protocol\":null}],\"ports_total\":1,"
        "\"ready\":true,\"serving\":true,"
        "\"terminating\":false,\"pod\":null,\"node\":null,\"zone\":null,"
        "\"slice\":\"web-1\",\"used\":true,\"excluded_because\":null,"
        "\"denied_because\":null,");
    has("\"used\":false,\"excluded_because\":\"not ready\"");
    has("\"used\":false,\"excluded_because\":\"address denied\","
        "\"denied_because\":\"");

    text_test_reset(&st.tt);
    assert_int_equal(kube_services_print_one(&st.tt.text, &services,
                                             KUBE_STR("shop"),
                                             KUBE_STR("none"), &st.t.arena),
                     KUBE_NOT_FOUND);
    assert_int_equal(st.tt.text.size, 0);
}


/* One Service too large to read costs the list of the others nothing. */

static void
test_services_too_large(void **state)
{
    kube_arena_t  small;

    (void) state;

    route_test_service(&st.t, "shop", "a", "http:80");
    assert_int_equal(zone_test_put(&st.t, "shop", "big", 1, 7, 60, 60, 1000),
                     KUBE_OK);
    route_test_service(&st.t, "shop", "c", "http:80");

    kube_arena_init(&small, &st.t.at.alloc, 100000);
    assert_null(query("", "", ""));
    text_test_reset(&st.tt);
    assert_int_equal(kube_services_print(&st.tt.text, &services, &st.arena,
                                         &small), KUBE_OK);
    status_test_is_json(&st);
    has("\"name\":\"a\"");
    has("\"name\":\"big\"");
    has("\"endpoints_used\":0,\"error\":\"larger than the limit\"}");
    has("\"name\":\"c\"");

    text_test_reset(&st.tt);
    assert_int_equal(kube_services_print_one(&st.tt.text, &services,
                                             KUBE_STR("shop"),
                                             KUBE_STR("big"), &small),
                     KUBE_TOO_LARGE);
    assert_int_equal(st.tt.text.size, 0);
    kube_arena_done(&small);
}


static void
services_oom(alloc_test_t *at, void *ctx)
{
    kube_arena_t  arena, scratch;

    (void) ctx;

    kube_arena_init(&arena, &at->alloc, 16u << 20);
    kube_arena_init(&scratch, &at->alloc, 16u << 20);

    text_test_reset(&st.tt);
    alloc_test_assert_rc(at, kube_services_print(&st.tt.text, &services,
                                                 &arena, &scratch));
    alloc_test_assert_rc(at, kube_services_print_one(&st.tt.text, &services,
                                                     KUBE_STR("shop"),
                                                     KUBE_STR("web"),
                                                     &scratch));
    kube_arena_done(&arena);
    kube_arena_done(&scratch);
}


static void
test_services_oom(void **state)
{
    (void) state;

    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs 10.0.0.2=s 127.0.0.1=rs");
    assert_null(query("", "", ""));

    ALLOC_TEST_RUN(services_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_services_query, setup, teardown),
        cmocka_unit_test_setup_teardown(test_services_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_services_endpoints, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_services_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_services_too_large, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_services_oom, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

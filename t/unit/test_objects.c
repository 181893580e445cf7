/*
 * test_objects - what a zone holds, part by part: all of it once, with the
 * hashes that make the digest, and names of what is refused.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <inttypes.h>

#include "kube_objects.h"
#include "status_test.h"


static status_test_t  st;


static int
setup(void **state)
{
    (void) state;

    status_test_open(&st);

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    status_test_close(&st);

    return 0;
}


static size_t
occurrences(const char *text)
{
    size_t       n;
    const char  *p;

    for (n = 0, p = st.tt.data; (p = strstr(p, text)) != NULL; p++) {
        n++;
    }

    return n;
}


static void
has(const char *text)
{
    if (strstr(st.tt.data, text) == NULL) {
        fail_msg("missing:\n%s\n%s", text, st.tt.data);
    }
}


static void
print(uint64_t after, size_t limit)
{
    text_test_reset(&st.tt);
    assert_int_equal(kube_objects_print(&st.tt.text, &st.t.zone, after,
                                        limit, &st.t.arena), KUBE_OK);
    status_test_is_json(&st);
}


/* What to give for the next part; false: there is none. */
static bool
next(uint64_t *after)
{
    size_t       len;
    const char  *p;

    p = strstr(st.tt.data, "],\"next\":\"");
    assert_non_null(p);
    p += sizeof("],\"next\":\"") - 1;
    len = strcspn(p, "\"");

    assert_int_equal(kube_objects_after(&st.t.zone, (kube_str_t) { p, len },
                                        after), KUBE_OK);

    return len != 0;
}


static void
test_objects_after(void **state)
{
    size_t    i;
    uint64_t  after, next;
    char      text[24];

    static const struct {
        const char  *text;
        kube_rc_t    rc;
    } cases[] = {
        { "",                     KUBE_OK },
        { "12884901888",          KUBE_INVALID },    /* no fourth walk */
        { "17179869183",          KUBE_INVALID },
        { "18446744073709551615", KUBE_INVALID },
        { "18446744073709551616", KUBE_INVALID },
        { "-1",                   KUBE_INVALID },
        { "1x",                   KUBE_INVALID },
        { "1",                    KUBE_CHANGED },    /* without a mark */
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(kube_objects_after(&st.t.zone, kube_str(cases[i].text),
                                            &after), cases[i].rc);
    }

    /* a zone's own, and the same of a zone with another seed */

    route_test_service(&st.t, "shop", "web", "http:80");
    print(0, 1);
    next = strtoull(strstr(st.tt.data, "],\"next\":\"") + 10, NULL, 10);
    assert_true(next > UINT32_MAX);

    snprintf(text, sizeof(text), "%" PRIu64, next);
    assert_int_equal(kube_objects_after(&st.t.zone, kube_str(text), &after),
                     KUBE_OK);
    assert_true(after < ((uint64_t) 3 << 32));

    st.t.zone.geometry.seed.k0 ^= 1;
    assert_int_equal(kube_objects_after(&st.t.zone, kube_str(text), &after),
                     KUBE_CHANGED);
    st.t.zone.geometry.seed.k0 ^= 1;
}


/* Any number is a place, and those behind the last entry end the walk. */

static void
test_objects_anywhere(void **state)
{
    unsigned        walk;
    uint64_t        after;
    const uint32_t  entries[] = { 0, 1, 2, 3, 4, 1000, 0x7fffffff, 0xffffffff };
    size_t          i;

    (void) state;
    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs");

    for (walk = 0; walk < 3; walk++) {
        for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
            print(((uint64_t) walk << 32) | entries[i], 10);
            assert_false(next(&after));
        }
    }
}


static void
test_objects_rows(void **state)
{
    char                  digest[33], text[64];
    uint32_t              entry;
    uint64_t              after;
    const kube_record_t  *record;

    (void) state;
    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs");
    status_test_refuse(&st, "shop", "big", "too_large");

    print(0, 10);
    assert_false(next(&after));
    assert_int_equal(occurrences("\"digest\":"), 2);

    has("{\"resource\":\"services\",\"namespace\":\"shop\",\"name\":\"web\","
        "\"resource_version\":\"");
    has("\"object\":{\"type\":\"ClusterIP\",\"cluster_ips\":[");
    has("\"object\":{\"service\":\"web\",\"address_type\":\"IPv4\",\"ports\":["
        "{\"name\":\"http\",\"port\":8080,\"protocol\":\"TCP\","
        "\"app_protocol\":null}],\"endpoints\":[{\"address\":\"10.0.0.1\","
        "\"ready\":true,");
    has("\"name\":\"big\",\"resource_version\":\"7\","
        "\"refused\":\"too_large\"}");

    /* the hash is the one that the scope's digest sums */

    assert_int_equal(kube_zone_find(&st.t.zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), KUBE_STR("web"), &entry),
                     KUBE_OK);
    assert_int_equal(kube_zone_load(&st.t.zone, entry, &st.t.arena, &record),
                     KUBE_OK);
    kube_digest_hex(kube_record_digest(record), digest);
    snprintf(text, sizeof(text), "\"outdated\":false,\"digest\":\"%s\"",
             digest);
    has(text);
}


/* Whatever the limit, all parts together are all objects, each once. */

static void
test_objects_parts(void **state)
{
    char      name[16];
    size_t    n, refused, limit;
    unsigned  i;
    uint64_t  after;

    (void) state;

    for (i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "s%02u", i);
        route_test_service(&st.t, i % 2 ? "shop" : "infra", name, "http:80");
    }

    for (i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "r%02u", i);
        status_test_refuse(&st, "shop", name, "too_large");
    }

    for (limit = 1; limit < 30; limit++) {
        after = 0;
        n = 0;
        refused = 0;

        do {
            print(after, limit);
            assert_in_range(occurrences("\"resource\":"), 0, limit);
            n += occurrences("\"digest\":");
            refused += occurrences("\"refused\":");
        } while (next(&after));

        assert_int_equal(n, 20);
        assert_int_equal(refused, 5);
    }
}


static void
objects_oom(alloc_test_t *at, void *ctx)
{
    kube_rc_t     rc;
    text_test_t   tt;
    kube_arena_t  scratch;

    (void) ctx;
    text_test_init(&tt);
    kube_arena_init(&scratch, &at->alloc, 16u << 20);

    rc = kube_objects_print(&tt.text, &st.t.zone, 0, 10, &scratch);
    alloc_test_assert_rc(at, rc);

    kube_arena_done(&scratch);
    text_test_done(&tt);
}


static void
test_objects_oom(void **state)
{
    (void) state;
    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs");
    status_test_refuse(&st, "shop", "big", "too_large");

    ALLOC_TEST_RUN(objects_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_objects_after, setup, teardown),
        cmocka_unit_test_setup_teardown(test_objects_anywhere, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_objects_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(test_objects_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_objects_oom, setup, teardown)
    };

    return cmocka_run_group_tests_name("objects", tests, NULL, NULL);
}

/*
 * test_decode - objects; test_decode_event has events and lists.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "decode_cases.h"
#include "decode_print.h"


#define DECODE_TEXT_MAX  (1u << 20)

static void
decode_table(kube_resource_t resource, const decode_case_t *cases, size_t n)
{
    size_t                i;
    kube_rc_t             rc;
    decode_test_t         t;
    const decode_case_t  *c;

    decode_start(&t);

    for (i = 0; i < n; i++) {
        c = &cases[i];
        rc = decode_run(&t, resource, c->text, strlen(c->text));

        if (c->what == NULL) {
            if (rc != KUBE_OK || t.dropped != c->dropped) {
                fail_msg("%s: %s, dropped %u", c->text,
                         rc == KUBE_OK ? "ok" : t.error.what,
                         (unsigned) t.dropped);
            }

        } else if (rc != KUBE_INVALID
                   || strstr(t.error.what, c->what) == NULL)
        {
            fail_msg("%s: %s %s", c->text, kube_rc_text(rc),
                     rc == KUBE_OK ? "" : t.error.what);
        }
    }

    decode_stop(&t);
}

#define DECODE_TABLE(resource, cases)                                         \
    decode_table(resource, cases, sizeof(cases) / sizeof(cases[0]))


static void
decode_a_service(void **state)
{
    char             text[KUBE_ADDR_TEXT_MAX];
    decode_test_t    t;
    kube_service_t  *s;

    (void) state;

    decode_start(&t);

    assert_int_equal(decode_run(&t, KUBE_RESOURCE_SERVICES, decode_service,
                                sizeof(decode_service) - 1), KUBE_OK);
    s = &t.object.u.service;

    assert_int_equal(t.dropped, 0);
    assert_str(s->meta.ns, "shop");
    assert_str(s->meta.name, "web");
    assert_str(s->meta.uid, "0f6a3c1e-2f7b-4a53-9c55-1b8f3c7e9d10");
    assert_str(s->meta.rv, "1045");
    assert_int_equal(s->type, KUBE_SERVICE_NODE_PORT);
    assert_false(s->headless);
    assert_int_equal(s->family, KUBE_FAMILY_IPV4);

    assert_int_equal(s->cluster_ips_n, 2);
    (void) kube_addr_text(&s->cluster_ips[0], text);
    assert_string_equal(text, "10.96.0.10");
    (void) kube_addr_text(&s->cluster_ips[1], text);
    assert_string_equal(text, "fd00::a");

    assert_int_equal(s->ports_n, 2);
    assert_str(s->ports[0].name, "http");
    assert_str(s->ports[0].app_protocol, "kubernetes.io/ws");
    assert_int_equal(s->ports[0].port, 80);
    assert_int_equal(s->ports[0].protocol, KUBE_PROTOCOL_TCP);
    assert_str(s->ports[1].name, "dns");
    assert_int_equal(s->ports[1].app_protocol.len, 0);
    assert_int_equal(s->ports[1].port, 53);
    assert_int_equal(s->ports[1].protocol, KUBE_PROTOCOL_UDP);

    decode_stop(&t);
}


static void
decode_a_slice(void **state)
{
    char              text[KUBE_ADDR_TEXT_MAX];
    decode_test_t     t;
    kube_slice_t     *s;
    kube_endpoint_t  *e;

    (void) state;

    decode_start(&t);

    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                decode_slice, sizeof(decode_slice) - 1),
                     KUBE_OK);
    s = &t.object.u.slice;
    e = s->endpoints;

    assert_int_equal(t.dropped, 0);
    assert_str(s->meta.name, "web-abc12");
    assert_str(s->service, "web");
    assert_int_equal(s->family, KUBE_FAMILY_IPV4);
    assert_int_equal(s->trigger_ms, 1772323200250);

    assert_int_equal(s->ports_n, 2);
    assert_str(s->ports[0].name, "http");
    assert_int_equal(s->ports[0].port, 8080);
    assert_str(s->ports[1].name, "");
    assert_int_equal(s->ports[1].port, 9090);

    assert_int_equal(s->endpoints_n, 3);
    assert_true(e[0].ready && e[0].serving && !e[0].terminating);
    assert_str(e[0].pod, "web-1");
    assert_str(e[0].node, "node-a");
    assert_str(e[0].zone, "eu-1a");
    assert_true(!e[1].ready && e[1].serving && e[1].terminating);
    assert_int_equal(e[1].pod.len, 0);
    assert_true(e[2].ready && e[2].serving && !e[2].terminating);
    (void) kube_addr_text(&e[2].address, text);
    assert_string_equal(text, "10.1.0.7");

    decode_stop(&t);
}


/* Cut at each byte: refused each time, and nothing is read behind it. */
static void
decode_truncated(void **state)
{
    size_t         i;
    decode_test_t  t;

    (void) state;

    decode_start(&t);

    for (i = 0; i < sizeof(decode_service) - 1; i++) {
        assert_int_equal(decode_run(&t, KUBE_RESOURCE_SERVICES,
                                    decode_service, i), KUBE_INVALID);
    }

    for (i = 0; i < sizeof(decode_slice) - 1; i++) {
        assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                    decode_slice, i), KUBE_INVALID);
    }

    decode_stop(&t);
}


static void
decode_tables(void **state)
{
    (void) state;

    DECODE_TABLE(KUBE_RESOURCE_SERVICES, decode_cases_metadata);
    DECODE_TABLE(KUBE_RESOURCE_SERVICES, decode_cases_services);
    DECODE_TABLE(KUBE_RESOURCE_ENDPOINTSLICES, decode_cases_slices);
}


/*
 * Members that are given twice, as in Go: the last one counts, an element of a
 * list is merged with the one in its place, and null takes back what is a
 * pointer there, an optional struct, or a list.
 */
static void
decode_twice(void **state)
{
    char           *text;
    size_t          i, len;
    FILE           *out;
    decode_test_t   t;

    static const struct {
        kube_resource_t   resource;
        const char       *text;
        const char       *end;      /* of what decode_print() prints */
    } rows[] = {
        { KUBE_RESOURCE_SERVICES,
          "{" META ",\"spec\":{\"ports\":[{\"port\":1,\"port\":null,"
          "\"name\":\"a\",\"name\":null,\"protocol\":\"UDP\","
          "\"protocol\":null,\"appProtocol\":\"x\",\"appProtocol\":null}]}}",
          " ips= ports=a|UDP|1|;" },
        { KUBE_RESOURCE_SERVICES,
          "{" META ",\"spec\":{\"clusterIPs\":[\"None\"],"
          "\"clusterIPs\":[\"1.1.1.1\"]}}",
          " headless=0 family=0 ips=1.1.1.1; ports=" },
        { KUBE_RESOURCE_SERVICES,
          "{" META ",\"spec\":{\"clusterIP\":\"1.1.1.1\","
          "\"clusterIPs\":[\"1.1.1.2\"],\"clusterIPs\":null}}",
          " headless=0 family=0 ips=1.1.1.1; ports=" },
        { KUBE_RESOURCE_SERVICES,
          "{" META ",\"spec\":{\"ipFamilies\":[\"IPv4\"],"
          "\"ipFamilies\":null}}",
          " headless=0 family=0 ips= ports=" },
        { KUBE_RESOURCE_ENDPOINTSLICES,
          SLICE(",\"ports\":[{\"name\":\"a\",\"name\":null,\"port\":1,"
                "\"port\":null,\"protocol\":\"UDP\",\"protocol\":null,"
                "\"appProtocol\":\"x\",\"appProtocol\":null}]"),
          " ports=|TCP|0|; endpoints=" },
        { KUBE_RESOURCE_ENDPOINTSLICES,
          SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
                "\"conditions\":{\"ready\":false,\"serving\":false,"
                "\"terminating\":true,\"ready\":null,\"serving\":null,"
                "\"terminating\":null}}]"),
          " endpoints=1.1.1.1|110|||;" },
        { KUBE_RESOURCE_ENDPOINTSLICES,
          SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
                "\"targetRef\":{\"kind\":\"Pod\",\"name\":\"a\"},"
                "\"targetRef\":null}]"),
          " endpoints=1.1.1.1|110|||;" },
        { KUBE_RESOURCE_ENDPOINTSLICES,
          SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
                "\"targetRef\":{\"kind\":\"Pod\"},"
                "\"targetRef\":{\"name\":\"a\"}}]"),
          " endpoints=1.1.1.1|110|a||;" },
        { KUBE_RESOURCE_ENDPOINTSLICES,
          SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
                "\"nodeName\":\"a\"},{\"addresses\":[\"1.1.1.2\"]}],"
                "\"endpoints\":[{\"zone\":\"y\"}]"),
          " endpoints=1.1.1.1|110||a|y;" }
    };

    (void) state;

    decode_start(&t);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(decode_run(&t, rows[i].resource, rows[i].text,
                                    strlen(rows[i].text)), KUBE_OK);

        out = open_memstream(&text, &len);
        assert_non_null(out);
        decode_print(out, &t.object);
        (void) fclose(out);

        if (len < strlen(rows[i].end)
            || strcmp(text + len - strlen(rows[i].end), rows[i].end) != 0)
        {
            fail_msg("%s: %s", rows[i].text, text);
        }

        free(text);
    }

    decode_stop(&t);
}


static void
decode_lengths(void **state)
{
    char           text[2048];
    int            uid, name;
    kube_rc_t      rc;
    decode_test_t  t;

    (void) state;

    decode_start(&t);

    for (uid = 126; uid <= 130; uid++) {
        for (name = 61; name <= 65; name++) {
            (void) snprintf(text, sizeof(text),
                            "{\"metadata\":{\"namespace\":\"%0*d\","
                            "\"name\":\"%0*d\",\"uid\":\"%0*d\","
                            "\"resourceVersion\":\"1\"}}",
                            name, 1, name, 1, uid, 1);
            rc = decode_run(&t, KUBE_RESOURCE_SERVICES, text, strlen(text));
            assert_int_equal(rc == KUBE_OK, uid <= 128 && name <= 63);
        }
    }

    for (name = 250; name <= 256; name++) {
        (void) snprintf(text, sizeof(text),
                        "{\"addressType\":\"IPv4\",\"metadata\":{"
                        "\"namespace\":\"a\",\"name\":\"%0*d\",\"uid\":\"u\","
                        "\"resourceVersion\":\"1\"},\"endpoints\":[{"
                        "\"addresses\":[\"1.1.1.1\"],\"nodeName\":\"%0*d\","
                        "\"zone\":\"a\\nb\",\"targetRef\":{\"kind\":\"Node\","
                        "\"name\":\"n\"}}]}", name, 1, name, 1);
        rc = decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text,
                        strlen(text));
        assert_int_equal(rc == KUBE_OK, name <= 253);
    }

    /* what only informs and does not fit is absent, not cut */
    (void) snprintf(text, sizeof(text),
                    SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
                          "\"nodeName\":\"%0*d\",\"zone\":\"a\\nb\","
                          "\"targetRef\":{\"kind\":\"Node\",\"name\":\"n\"}},"
                          "{\"addresses\":[\"1.1.1.1\"],\"nodeName\":\"%0*d\","
                          "\"zone\":7,\"targetRef\":null}]"), 254, 1, 253, 1);
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text,
                                strlen(text)), KUBE_OK);
    assert_int_equal(t.object.u.slice.endpoints_n, 2);
    assert_int_equal(t.object.u.slice.endpoints[0].node.len, 0);
    assert_int_equal(t.object.u.slice.endpoints[0].zone.len, 0);
    assert_int_equal(t.object.u.slice.endpoints[0].pod.len, 0);
    assert_int_equal(t.object.u.slice.endpoints[1].node.len, 253);
    assert_int_equal(t.object.u.slice.service.len, 0);
    assert_int_equal(t.object.u.slice.trigger_ms, 0);

    decode_stop(&t);
}


/* head, n times what with commas between, rest. */
static size_t
decode_repeat(char *text, const char *head, const char *what, size_t n,
    const char *rest)
{
    size_t  i, len;

    len = (size_t) snprintf(text, DECODE_TEXT_MAX, "%s", head);

    for (i = 0; i < n; i++) {
        len += (size_t) snprintf(text + len, DECODE_TEXT_MAX - len, "%s%s",
                                 i == 0 ? "" : ",", what);
    }

    return len + (size_t) snprintf(text + len, DECODE_TEXT_MAX - len, "%s",
                                   rest);
}


static void
decode_counts(void **state)
{
    char           *text;
    size_t          len;
    decode_test_t   t;

    (void) state;

    decode_start(&t);

    text = malloc(DECODE_TEXT_MAX);
    assert_non_null(text);

    len = decode_repeat(text, "{" META ",\"addressType\":\"IPv4\","
                        "\"endpoints\":[", "{\"addresses\":[\"1.2.3.4\"]}",
                        1000, "]}");
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text, len),
                     KUBE_OK);
    assert_int_equal(t.object.u.slice.endpoints_n, 1000);

    len = decode_repeat(text, "{" META ",\"addressType\":\"IPv4\","
                        "\"endpoints\":[", "{\"addresses\":[\"1.2.3.4\"]}",
                        1001, "]}");
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text, len),
                     KUBE_INVALID);

    /* refused, but known by name */
    assert_str(t.object.u.slice.meta.name, "web");
    assert_int_equal(t.object.u.slice.endpoints_n, 0);
    assert_null(t.object.u.slice.endpoints);

    len = decode_repeat(text, "{" META ",\"addressType\":\"IPv4\","
                        "\"endpoints\":[{\"addresses\":[", "\"1.2.3.4\"", 100,
                        "]}]}");
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text, len),
                     KUBE_OK);
    assert_int_equal(t.object.u.slice.endpoints_n, 1);

    len = decode_repeat(text, "{" META ",\"addressType\":\"IPv4\","
                        "\"endpoints\":[{\"addresses\":[", "\"1.2.3.4\"", 101,
                        "]}],\"ports\":[{\"port\":80}]}");
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text, len),
                     KUBE_OK);
    assert_str(t.object.u.slice.meta.uid, "u-1");
    assert_int_equal(t.object.u.slice.endpoints_n, 1);
    assert_int_equal(t.object.u.slice.ports_n, 1);

    len = decode_repeat(text, "{" META ",\"addressType\":\"IPv4\","
                        "\"ports\":[", "{\"port\":80}", 20000, "]}");
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text, len),
                     KUBE_OK);
    assert_int_equal(t.object.u.slice.ports_n, 20000);

    len = decode_repeat(text, "{" META ",\"addressType\":\"IPv4\","
                        "\"ports\":[", "{\"port\":80}", 20001, "]}");
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text, len),
                     KUBE_INVALID);

    len = decode_repeat(text, "{" META ",\"spec\":{\"ports\":[",
                        "{\"port\":80}", 70000, "]}}");
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_SERVICES, text, len),
                     KUBE_OK);
    assert_int_equal(t.object.u.service.ports_n, 70000);

    free(text);
    decode_stop(&t);
}


static void
decode_service_forms(void **state)
{
    decode_test_t    t;
    kube_service_t  *s;

    (void) state;

    decode_start(&t);
    s = &t.object.u.service;

    assert_int_equal(decode_run(&t, KUBE_RESOURCE_SERVICES,
                                "{" META "}", strlen("{" META "}")), KUBE_OK);
    assert_int_equal(s->type, KUBE_SERVICE_CLUSTER_IP);
    assert_int_equal(s->cluster_ips_n, 0);
    assert_false(s->headless);

    assert_int_equal(decode_run(&t, KUBE_RESOURCE_SERVICES,
        "{" META ",\"spec\":{\"clusterIP\":\"None\"}}",
        strlen("{" META ",\"spec\":{\"clusterIP\":\"None\"}}")), KUBE_OK);
    assert_true(s->headless);
    assert_int_equal(s->cluster_ips_n, 0);

    assert_int_equal(decode_run(&t, KUBE_RESOURCE_SERVICES,
        "{" META ",\"spec\":{\"clusterIPs\":[\"None\"]}}",
        strlen("{" META ",\"spec\":{\"clusterIPs\":[\"None\"]}}")), KUBE_OK);
    assert_true(s->headless);

    assert_int_equal(decode_run(&t, KUBE_RESOURCE_SERVICES,
        "{" META ",\"spec\":{\"clusterIP\":\"1.1.1.1\",\"clusterIPs\":[]}}",
        strlen("{" META ",\"spec\":{\"clusterIP\":\"1.1.1.1\","
               "\"clusterIPs\":[]}}")), KUBE_OK);
    assert_int_equal(s->cluster_ips_n, 1);
    assert_int_equal(s->family, KUBE_FAMILY_NONE);

    assert_int_equal(decode_run(&t, KUBE_RESOURCE_SERVICES,
        "{" META ",\"spec\":{\"ipFamilies\":[\"IPv6\",\"IPv4\"]}}",
        strlen("{" META ",\"spec\":{\"ipFamilies\":[\"IPv6\","
               "\"IPv4\"]}}")), KUBE_OK);
    assert_int_equal(s->family, KUBE_FAMILY_IPV6);

    decode_stop(&t);
}


static void
decode_slice_forms(void **state)
{
    unsigned       bits;
    char           text[512];
    decode_test_t  t;
    kube_slice_t  *s;

    (void) state;

    decode_start(&t);
    s = &t.object.u.slice;

    /* the eight combinations */
    for (bits = 0; bits < 8; bits++) {
        (void) snprintf(text, sizeof(text),
                        SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
                              "\"conditions\":{\"ready\":%s,\"serving\":%s,"
                              "\"terminating\":%s}}]"),
                        bits & 1 ? "true" : "false",
                        bits & 2 ? "true" : "false",
                        bits & 4 ? "true" : "false");
        assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text,
                                    strlen(text)), KUBE_OK);
        assert_int_equal(s->endpoints[0].ready, (bits & 1) != 0);
        assert_int_equal(s->endpoints[0].serving, (bits & 2) != 0);
        assert_int_equal(s->endpoints[0].terminating, (bits & 4) != 0);
    }

    (void) snprintf(text, sizeof(text), "%s",
                    SLICE(",\"endpoints\":[{\"addresses\":[\"1.1.1.1\"],"
                          "\"conditions\":{\"ready\":null,\"serving\":null,"
                          "\"terminating\":null}}],\"ports\":[{}]"));
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text,
                                strlen(text)), KUBE_OK);
    assert_true(s->endpoints[0].ready && s->endpoints[0].serving);
    assert_false(s->endpoints[0].terminating);
    assert_int_equal(s->ports_n, 1);
    assert_int_equal(s->ports[0].port, 0);

    /* names are no addresses */
    (void) snprintf(text, sizeof(text), "%s",
                    "{" META ",\"addressType\":\"FQDN\",\"endpoints\":[{"
                    "\"addresses\":[\"web.example.com\"]}]}");
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text,
                                strlen(text)), KUBE_OK);
    assert_int_equal(s->family, KUBE_FAMILY_NONE);
    assert_int_equal(s->endpoints_n, 0);
    assert_int_equal(t.dropped, 0);

    /* the last duplicate wins, as in Go */
    (void) snprintf(text, sizeof(text), "%s",
                    SLICE(",\"addressType\":\"IPv6\",\"endpoints\":[{"
                          "\"addresses\":[\"1.1.1.1\"],"
                          "\"addresses\":[\"::ffff:1.1.1.1\"]}]"));
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTSLICES, text,
                                strlen(text)), KUBE_OK);
    assert_int_equal(s->family, KUBE_FAMILY_IPV6);
    assert_int_equal(s->endpoints_n, 1);
    assert_int_equal(s->endpoints[0].address.family, KUBE_FAMILY_IPV6);

    decode_stop(&t);
}


/* Both the memory behind the arena and the arena itself run out. */
static void
decode_oom_body(alloc_test_t *at, void *ctx)
{
    size_t         max;
    uint32_t       dropped;
    kube_rc_t      rc;
    kube_arena_t   arena;
    decode_test_t  t;
    kube_error_t   error;
    kube_object_t  object;

    max = *(size_t *) ctx;
    kube_arena_init(&arena, &at->alloc, max);

    t.copy = NULL;
    assert_int_equal(decode_envelope(&t, false, decode_slice,
                                     sizeof(decode_slice) - 1), KUBE_OK);

    rc = kube_decode_object(&arena, KUBE_RESOURCE_ENDPOINTSLICES,
                            &t.envelope, &object, &dropped, &error);
    assert_true(rc == KUBE_OK || rc == (at->failed ? KUBE_NOMEM
                                                   : KUBE_INVALID));
    assert_int_equal(object.u.slice.endpoints_n, rc == KUBE_OK ? 3 : 0);

    if (rc != KUBE_OK) {
        assert_int_equal(error.rc, rc);
    }

    kube_arena_done(&arena);
    free(t.copy);
}


static void
decode_out_of_memory(void **state)
{
    size_t         max, taken;
    kube_rc_t      rc;
    decode_test_t  t;

    (void) state;

    for (max = 1024; max < 32768; max += 208) {
        ALLOC_TEST_RUN(decode_oom_body, &max);
    }

    /* the ceiling goes up: refused until it is enough, then OK for good */
    taken = 0;

    for (max = 0; max < 32768; max += 64) {
        alloc_test_init(&t.at);
        kube_arena_init(&t.arena, &t.at.alloc, max);
        t.copy = NULL;

        rc = decode_run(&t, KUBE_RESOURCE_SERVICES, decode_service,
                        sizeof(decode_service) - 1);
        assert_int_equal(rc, taken != 0 ? KUBE_OK
                                        : rc == KUBE_OK ? KUBE_OK
                                                        : KUBE_INVALID);
        taken += (rc == KUBE_OK);

        decode_stop(&t);
    }

    assert_true(taken > 0 && taken < 512);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(decode_a_service),
        cmocka_unit_test(decode_a_slice),
        cmocka_unit_test(decode_truncated),
        cmocka_unit_test(decode_tables),
        cmocka_unit_test(decode_twice),
        cmocka_unit_test(decode_lengths),
        cmocka_unit_test(decode_counts),
        cmocka_unit_test(decode_service_forms),
        cmocka_unit_test(decode_slice_forms),
        cmocka_unit_test(decode_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

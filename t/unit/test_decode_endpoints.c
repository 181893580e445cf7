/*
 * test_decode_endpoints - core/v1 Endpoints in the shape of a slice: which port
 * goes with which address, through a record as well.
 *
 * Each row is the subsets of an object and its parts, as text: the ports, and
 * behind "<" the addresses ("!": not ready).  The stream's reader makes the
 * same of them (kube_decode_scan).
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "decode_test.h"
#include "kube_decode_scan.h"
#include "kube_record.h"


#define HEAD                                                                  \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"u-1\"," \
    "\"resourceVersion\":\"7\",\"annotations\":{"                            \
    "\"endpoints.kubernetes.io/last-change-trigger-time\":"                  \
    "\"2026-03-01T00:00:00.250Z\"}}"

#define IP(ip)   "{\"ip\":\"" ip "\"}"
#define HTTP     "{\"name\":\"http\",\"port\":8080,\"protocol\":\"TCP\"}"
#define ADMIN    "{\"name\":\"admin\",\"port\":9090}"

typedef struct {
    const char  *subsets;     /* the member's value; NULL: it is absent */
    const char  *parts;       /* NULL: the object is refused */
    uint32_t     dropped;
} row_t;

static const row_t  rows[] = {
    { NULL, "", 0 },
    { "null", "", 0 },
    { "[]", "", 0 },
    { "[{}]", "", 0 },
    { "[null]", "", 0 },
    { "[{\"addresses\":[" IP("10.0.0.1") "," IP("10.0.0.2") "],\"ports\":["
      HTTP "," ADMIN "]}]",
      "http:8080 admin:9090 <10.0.0.1 10.0.0.2;", 0 },
    { "[{\"ports\":[" HTTP "],\"notReadyAddresses\":[" IP("10.0.0.3")
      "],\"addresses\":[" IP("10.0.0.1") "]}]",
      "http:8080 <10.0.0.1 !10.0.0.3;", 0 },

    /* a port of one subset never goes with an address of another */
    { "[{\"addresses\":[" IP("10.0.0.1") "],\"ports\":[" HTTP "]},"
      "{\"addresses\":[" IP("10.0.0.2") "],\"ports\":[" ADMIN "]},"
      "{\"addresses\":[" IP("10.0.0.3") "],\"ports\":[" HTTP "," ADMIN "]}]",
      "http:8080 <10.0.0.1;admin:9090 <10.0.0.2;"
      "http:8080 admin:9090 <10.0.0.3;", 0 },
    { "[{\"addresses\":[" IP("10.0.0.1") "]},{\"addresses\":["
      IP("10.0.0.2") "],\"ports\":[" HTTP "]}]",
      "<10.0.0.1;http:8080 <10.0.0.2;", 0 },
    { "[{\"ports\":[" HTTP "]},{\"addresses\":[" IP("10.0.0.2")
      "],\"ports\":[" ADMIN "]}]", "admin:9090 <10.0.0.2;", 0 },

    /* given twice, the last one counts */
    { "[{\"addresses\":[" IP("10.0.0.1") "],\"ports\":[" HTTP "]}],"
      "\"subsets\":[{\"addresses\":[" IP("10.0.0.2") "],\"ports\":[" ADMIN
      "]}]", "admin:9090 <10.0.0.2;", 0 },

    /* both families, in whatever order */
    { "[{\"addresses\":[" IP("fd00::1") "," IP("10.0.0.1") "," IP("fd00::2")
      "],\"ports\":[" HTTP "]}]",
      "http:8080 <10.0.0.1;http:8080 <fd00::1 fd00::2;", 0 },

    /* what is bad costs itself */
    { "[{\"addresses\":[" IP("10.0.0.256") "," IP("10.0.0.1") ",7,{}],"
      "\"ports\":[" HTTP ",{\"name\":\"x\",\"port\":0},{\"name\":\"y\"}]}]",
      "http:8080 <10.0.0.1;", 5 },
    { "[7,{\"addresses\":[" IP("10.0.0.1") "],\"ports\":[" HTTP "]}]",
      "http:8080 <10.0.0.1;", 1 },
    { "7", NULL, 0 },
    { "[{\"addresses\":7}]", NULL, 0 },
    { "[{\"ports\":{}}]", NULL, 0 }
};


static void
parts_of(const kube_slice_t *slice, char *out, size_t size)
{
    char          text[KUBE_ADDR_TEXT_MAX];
    size_t        i, k, n;
    kube_slice_t  part;

    n = 0;
    out[0] = '\0';

    for (i = 0; kube_slice_part(slice, &i, &part); ) {

        if (part.ports_n == 0 && part.endpoints_n == 0) {
            continue;
        }

        assert_int_equal(part.subsets_n, 0);

        for (k = 0; k < part.ports_n; k++) {
            n += (size_t) snprintf(out + n, size - n, "%.*s:%u ",
                                   (int) part.ports[k].name.len,
                                   part.ports[k].name.data,
                                   part.ports[k].port);
        }

        for (k = 0; k < part.endpoints_n; k++) {
            assert_int_equal(part.endpoints[k].address.family, part.family);
            assert_int_equal(part.endpoints[k].ready,
                             part.endpoints[k].serving);
            (void) kube_addr_text(&part.endpoints[k].address, text);
            n += (size_t) snprintf(out + n, size - n, "%s%s%s",
                                   k ? " " : "<",
                                   part.endpoints[k].ready ? "" : "!", text);
        }

        n += (size_t) snprintf(out + n, size - n, ";");
        assert_true(n < size);
    }
}


/* The same through a record, and no byte of it need be good. */
static void
check_record(decode_test_t *t, const char *parts)
{
    char             again[1024];
    size_t           size, i;
    kube_object_t    object;
    unsigned char   *record;

    size = kube_record_size(&t->object);
    assert_true(size != 0);
    record = malloc(size);
    assert_non_null(record);
    kube_record_encode(&t->object, record);

    assert_int_equal(kube_record_validate(record, size), KUBE_OK);
    assert_int_equal(kube_record_decode(&t->arena, record, size, &object),
                     KUBE_OK);
    assert_int_equal(object.resource, KUBE_RESOURCE_ENDPOINTS);
    assert_str(object.u.slice.service, "web");
    parts_of(&object.u.slice, again, sizeof(again));
    assert_string_equal(again, parts);

    for (i = sizeof(kube_record_t); i < size; i++) {
        record[i] ^= 0x81;

        if (kube_record_decode(&t->arena, record, size, &object) == KUBE_OK) {
            parts_of(&object.u.slice, again, sizeof(again));
        }

        record[i] ^= 0x81;
    }

    free(record);
}


/* What kube_decode_scan makes of it, unless that leaves it to the others. */
static void
check_scan(decode_test_t *t, const char *text, const char *parts)
{
    char                 again[1024];
    size_t               len;
    uint32_t             dropped;
    kube_str_t           in;
    kube_object_t        object;
    kube_envelope_t      envelope;
    kube_decode_scan_t   scan;

    in = decode_copy(t, text, strlen(text));
    memset(&envelope, 0, sizeof(envelope));

    if (kube_decode_scan_head(&scan, KUBE_RESOURCE_ENDPOINTS, false, in,
                              &envelope)
        != KUBE_OK
        || kube_decode_scan_body(&scan, &t->arena, &envelope, &object,
                                 &dropped, &len)
           != KUBE_OK)
    {
        return;
    }

    assert_int_equal(len, in.len);
    assert_int_equal(dropped, t->dropped);
    parts_of(&object.u.slice, again, sizeof(again));
    assert_string_equal(again, parts);
}


static void
row_text(const row_t *row, char *text, size_t size)
{
    snprintf(text, size, HEAD "%s%s}", row->subsets ? ",\"subsets\":" : "",
             row->subsets ? row->subsets : "");
}


static void
test_rows(void **state)
{
    char           text[1024], parts[1024];
    size_t         i;
    kube_rc_t      rc;
    decode_test_t  t;

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        decode_start(&t);
        row_text(&rows[i], text, sizeof(text));
        rc = decode_run(&t, KUBE_RESOURCE_ENDPOINTS, text, strlen(text));

        if (rows[i].parts == NULL) {
            assert_int_equal(rc, KUBE_INVALID);
            decode_stop(&t);
            continue;
        }

        assert_int_equal(rc, KUBE_OK);
        parts_of(&t.object.u.slice, parts, sizeof(parts));

        if (strcmp(parts, rows[i].parts) != 0
            || t.dropped != rows[i].dropped)
        {
            fail_msg("row %zu: %s (%u)", i, parts, t.dropped);
        }

        assert_str(t.object.u.slice.service, "web");
        assert_int_equal(t.object.u.slice.trigger_ms, 1772323200250);

        check_record(&t, parts);
        check_scan(&t, text, parts);
        decode_stop(&t);
    }
}


/* Endpoints of a name that is no Service's, as of a lease, join none. */
static void
test_service(void **state)
{
    char           text[256];
    size_t         i;
    decode_test_t  t;

    static const struct {
        const char  *name;
        const char  *service;
    } names[] = {
        { "web", "web" },
        { "web-2", "web-2" },
        { "kube.lease", "" }
    };

    (void) state;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"%s\","
                 "\"namespace\":\"shop\",\"uid\":\"u-1\","
                 "\"resourceVersion\":\"7\"}}", names[i].name);
        decode_start(&t);
        assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTS, text,
                                    strlen(text)), KUBE_OK);
        assert_str(t.object.u.slice.service, names[i].service);
        decode_stop(&t);
    }
}


/* 1500 addresses: those that stand first are kept, the others counted. */
static void
test_too_many(void **state)
{
    char           *text;
    size_t          n, i;
    decode_test_t   t;

    (void) state;

    decode_start(&t);
    text = malloc(64 * 1024);
    assert_non_null(text);
    n = (size_t) snprintf(text, 64 * 1024, HEAD ",\"subsets\":[{\"ports\":["
                          HTTP "],\"addresses\":[");

    for (i = 0; i < 1500; i++) {
        n += (size_t) snprintf(text + n, 64 * 1024 - n,
                               "%s{\"ip\":\"10.1.%zu.%zu\"}", i ? "," : "",
                               i / 200, i % 200);
    }

    n += (size_t) snprintf(text + n, 64 * 1024 - n, "]}]}");

    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTS, text, n),
                     KUBE_OK);
    assert_int_equal(t.object.u.slice.endpoints_n, KUBE_SLICE_ENDPOINTS_MAX);
    assert_int_equal(t.dropped, 500);
    assert_true(kube_record_size(&t.object) != 0);

    free(text);
    decode_stop(&t);
}


static void
test_names_are_shown(void **state)
{
    decode_test_t     t;
    kube_endpoint_t  *e;

    static const char  text[] =
        HEAD ",\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\","
        "\"hostname\":\"h\",\"nodeName\":\"node-a\",\"targetRef\":{"
        "\"kind\":\"Pod\",\"name\":\"web-1\"}},{\"ip\":\"10.0.0.2\","
        "\"targetRef\":{\"kind\":\"Node\",\"name\":\"n\"}}]}]}";

    (void) state;

    decode_start(&t);
    assert_int_equal(decode_run(&t, KUBE_RESOURCE_ENDPOINTS, text,
                                sizeof(text) - 1),
                     KUBE_OK);
    e = t.object.u.slice.endpoints;
    assert_str(e[0].pod, "web-1");
    assert_str(e[0].node, "node-a");
    assert_str(e[1].pod, "");
    decode_stop(&t);
}


static void
decode_oom(alloc_test_t *at, void *ctx)
{
    kube_rc_t      rc;
    decode_test_t  t;

    static const char  text[] =
        HEAD ",\"subsets\":[{\"addresses\":[" IP("10.0.0.1") "," IP("fd00::1")
        "],\"ports\":[" HTTP "]},{\"notReadyAddresses\":[" IP("10.0.0.2")
        "],\"ports\":[" ADMIN "]}]}";

    (void) ctx;

    decode_start(&t);
    kube_arena_done(&t.arena);
    kube_arena_init(&t.arena, &at->alloc, 1u << 20);

    rc = decode_run(&t, KUBE_RESOURCE_ENDPOINTS, text, sizeof(text) - 1);
    alloc_test_assert_rc(at, rc);
    assert_true(rc == KUBE_OK || at->failed);

    decode_stop(&t);
}


static void
test_decode_oom(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(decode_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_service),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_names_are_shown),
        cmocka_unit_test(test_decode_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

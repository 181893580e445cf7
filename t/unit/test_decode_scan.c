/*
 * test_decode_scan - kube_decode_scan against kube_frame and kube_decode: what
 * it takes is what they make of the same bytes, and it takes what API servers
 * write.
 *
 * Texts are in memory of their exact length, so that ASan sees what is read
 * behind them.  KUBE_PROOF=1: many more random changes.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "decode_cases.h"
#include "decode_change.h"
#include "kube_decode_scan.h"


#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

#define HEAD  "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\","       \
              "\"uid\":\"u-1\",\"resourceVersion\":\"7\""

/* A slice of one endpoint, and one that begins as API servers write it. */
#define ONE(endpoint)                                                         \
    HEAD "},\"addressType\":\"IPv4\",\"endpoints\":[" endpoint "],"           \
    "\"ports\":[{\"name\":\"http\",\"protocol\":\"TCP\",\"port\":8080}]}"

#define ADDRESS  "{\"addresses\":[\"10.1.0.5\"]"

#define CONDITIONS                                                            \
    ",\"conditions\":{\"ready\":true,\"serving\":true,\"terminating\":false}"

#define TARGET                                                                \
    ",\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"shop\","                \
    "\"name\":\"web-7d4b9c8f6d-x2x4z\","                                      \
    "\"uid\":\"eefba1f8-743c-4ddf-aeef-4a2d9e3b2c9a\"}"

#define NAMES                                                                 \
    ",\"nodeName\":\"ip-10-0-0-1.eu-central-1.compute.internal\","            \
    "\"zone\":\"eu-central-1a\""

#define HINTS  ",\"hints\":{\"forZones\":[{\"name\":\"eu-central-1a\"}]}"

#define NODES  "\"forNodes\":[{\"name\":\"node-1\"}]"

/* 253 bytes, which a name may have, less one. */
#define LONG28  "abcdefghijklmnopqrstuvwxyz01"
#define LONG    LONG28 LONG28 LONG28 LONG28 LONG28 LONG28 LONG28 LONG28 LONG28

#define WHOLE  ADDRESS CONDITIONS TARGET NAMES HINTS "}"

/* More than what an endpoint has room for in kube_decode_slice. */
#define ROOM   1800

/* Texts of the most bytes that are read without looking for the end. */
#define WIDE   LONG28 LONG28 LONG28 LONG28
#define WIDEST                                                                \
    ADDRESS CONDITIONS ",\"hostname\":\"" WIDE "\","                          \
    "\"targetRef\":{\"kind\":\"Pod\",\"namespace\":\"" WIDE "\","             \
    "\"name\":\"" WIDE "\",\"uid\":\"" WIDE "\"},"                             \
    "\"nodeName\":\"" WIDE "\",\"zone\":\"" WIDE "\","                         \
    "\"hints\":{\"forZones\":[{\"name\":\"" WIDE "\"}],"                     \
    "\"forNodes\":[{\"name\":\"" WIDE "\"}]}}"

#define PORTS(ports)                                                          \
    HEAD "},\"addressType\":\"IPv4\",\"ports\":[" ports "]}"

#define SERVED(ports)                                                         \
    HEAD "},\"spec\":{\"ports\":[" ports "]}}"


typedef struct {
    decode_test_t        t;      /* the slow way */
    kube_watch_type_t    type;   /* what it says of an event */
    alloc_test_t         at;
    kube_arena_t         arena;
    kube_object_t        object;
    kube_decode_scan_t   scan;
} bed_t;


/* As a server writes it, with all that is not used. */
static const char  wire_slice[] =
    "{\"metadata\":{\"name\":\"web-00000\",\"generateName\":\"web-\","
    "\"namespace\":\"team-00\","
    "\"uid\":\"f4a7c150-f82d-4e94-af4a-20e332acc867\","
    "\"resourceVersion\":\"200000\",\"generation\":3,"
    "\"creationTimestamp\":\"2026-03-01T12:00:00Z\",\"labels\":{"
    "\"app\":\"web\",\"endpointslice.kubernetes.io/managed-by\":"
    "\"endpointslice-controller.k8s.io\",\"kubernetes.io/service-name\":"
    "\"web\"},\"annotations\":{\"a\":\"{\\\"b\\\":[\\\"c\\\\\\\\\\\"]}\\n\","
    "\"endpoints.kubernetes.io/last-change-trigger-time\":"
    "\"2026-03-01T12:00:00Z\"},\"ownerReferences\":[{\"apiVersion\":\"v1\","
    "\"kind\":\"Service\",\"name\":\"web\",\"uid\":\"fa53\","
    "\"controller\":true}],\"managedFields\":[{\"manager\":\"kcm\","
    "\"fieldsV1\":{\"f:addressType\":{},\"f:endpoints\":{},\"f:metadata\":{"
    "\"f:annotations\":{\".\":{},\"f:a\":{}},\"f:ownerReferences\":{\".\":{},"
    "\"k:{\\\"uid\\\":\\\"fa53e0a8-7c16-4f4a-afa5\\\"}\":{}}},"
    "\"f:ports\":{}}}]},\"addressType\":\"IPv4\",\"endpoints\":["
    WHOLE "," ADDRESS CONDITIONS NAMES "}," ADDRESS CONDITIONS TARGET "}"
    "],\"ports\":[{\"name\":\"http\",\"protocol\":\"TCP\",\"port\":8080}]}";


static void
bed_start(bed_t *b)
{
    decode_start(&b->t);
    alloc_test_init(&b->at);
    kube_arena_init(&b->arena, &b->at.alloc, 16u << 20);
}


static void
bed_stop(bed_t *b)
{
    decode_stop(&b->t);
    kube_arena_done(&b->arena);
    alloc_test_assert_no_leak(&b->at);
}


static void
assert_text(kube_str_t a, kube_str_t b)
{
    assert_true(kube_str_eq(a, b));
}


/* The slow way's verdict on the item that in begins with. */
static kube_rc_t
slow(bed_t *b, kube_resource_t resource, bool event, kube_str_t in,
    size_t *len)
{
    kube_rc_t            rc;
    const char          *p;
    decode_test_t       *t;
    kube_watch_event_t   e;

    t = &b->t;
    p = in.data;
    kube_arena_reset(&t->arena);
    kube_envelope_reader_init(&t->reader, event);

    rc = kube_envelope_read(&t->reader, &p, p + in.len);
    if (rc != KUBE_OK) {
        return rc;
    }

    *len = (size_t) (p - in.data);
    kube_envelope_get(&t->reader, (kube_str_t) { in.data, *len },
                      &t->envelope);

    if (!event) {
        return kube_decode_object(&t->arena, resource, &t->envelope,
                                  &t->object, &t->dropped, &t->error);
    }

    rc = kube_decode_watch_event(&t->arena, resource, &t->envelope, &e,
                                 &t->dropped, &t->error);
    t->object = e.object;

    b->type = e.type;

    return (rc == KUBE_OK && e.object_rc == KUBE_OK
            && e.type < KUBE_WATCH_BOOKMARK) ? KUBE_OK : KUBE_INVALID;
}


/* Returns what the scan makes of it; what it takes is what it has to be. */
static kube_rc_t
compare(bed_t *b, kube_resource_t resource, bool event, const char *text,
    size_t text_len)
{
    size_t            len, slow_len;
    uint32_t          dropped;
    kube_rc_t         rc, slow_rc;
    kube_str_t        in;
    kube_envelope_t   envelope;

    if (text[0] != '{') {
        return KUBE_INVALID;
    }

    in = decode_copy(&b->t, text, text_len);
    slow_rc = slow(b, resource, event, in, &slow_len);

    kube_arena_reset(&b->arena);
    dropped = 77;
    len = 0;

    rc = kube_decode_scan_head(&b->scan, resource, event, in, &envelope);

    if (rc == KUBE_OK) {
        rc = kube_decode_scan_body(&b->scan, &b->arena, &envelope, &b->object,
                            &dropped, &len);
    }

    assert_true(rc == KUBE_OK || rc == KUBE_AGAIN || rc == KUBE_INVALID);

    /* what has not arrived is told from what is odd */

    if (slow_rc == KUBE_AGAIN && rc != KUBE_AGAIN) {
        fail_msg("%s: there is no end, but it is %d", text, (int) rc);
    }

    if (rc == KUBE_AGAIN && slow_rc != KUBE_AGAIN) {
        fail_msg("%s: there is an end", text);
    }

    if (rc != KUBE_OK) {
        assert_int_not_equal(b->scan.surprise, KUBE_SURPRISE_NONE);
        return rc;
    }

    if (slow_rc != KUBE_OK || len != slow_len || dropped != b->t.dropped) {
        fail_msg("%s: taken, %zu bytes, %u left out, but %d, %zu, %u", text,
                 len, (unsigned) dropped, (int) slow_rc, slow_len,
                 (unsigned) b->t.dropped);
    }

    assert_true(!event || b->scan.type == b->type);
    assert_null(b->t.envelope.what);
    assert_text(envelope.type, b->t.envelope.type);
    assert_text(envelope.kind, b->t.envelope.kind);
    assert_text(envelope.meta.ns, b->t.envelope.meta.ns);
    assert_text(envelope.meta.name, b->t.envelope.meta.name);
    assert_text(envelope.meta.uid, b->t.envelope.meta.uid);
    assert_text(envelope.meta.rv, b->t.envelope.meta.rv);
    assert_text(kube_rv_str(&b->scan.rv), b->t.envelope.meta.rv);
    assert_ptr_equal(envelope.object.data, b->t.envelope.object.data);
    assert_int_equal(envelope.object.len, b->t.envelope.object.len);
    assert_false(envelope.too_large);

    change_same(&b->object, &b->t.object, text);

    return KUBE_OK;
}


/* The text alone, with bytes behind it, and as an event. */
static kube_rc_t
compare_all(bed_t *b, kube_resource_t resource, const char *text)
{
    char       wrapped[CHANGE_MAX + 64];
    size_t     i;
    kube_rc_t  rc;

    static const struct {
        bool         event;
        const char  *before;
        const char  *after;
    } rows[] = {
        { false, "", ",{\"metadata\":{\"name\":\"b\"}}]}\n" },
        { false, "", "x" },
        { true, "{\"type\":\"MODIFIED\",\"object\":", "}\n" },
        { true, "{\"type\":\"DELETED\",\"object\":",
          "}\n{\"type\":\"ADDED\"" },
        { true, "{\"type\":\"ADDED\",\"object\":", ",\"type\":\"DELETED\"}" },
        { true, "{\"type\":\"ADDED\",\"object\":", ",\"object\":{}}" },
        { true, "{\"type\":\"BOOKMARK\",\"object\":", "}" },
        { true, "{\"type\":\"ADDED\",\"object\":", " \n}" }
    };

    rc = compare(b, resource, false, text, strlen(text));

    for (i = 0; i < COUNT(rows); i++) {
        (void) snprintf(wrapped, sizeof(wrapped), "%s%s%s", rows[i].before,
                        text, rows[i].after);
        (void) compare(b, resource, rows[i].event, wrapped, strlen(wrapped));
    }

    return rc;
}


/* With so much behind it that ends need not be looked for. */
static kube_rc_t
compare_roomy(bed_t *b, kube_resource_t resource, const char *text)
{
    char    roomy[CHANGE_MAX + ROOM];
    size_t  len;

    len = strlen(text);
    memcpy(roomy, text, len);
    memset(roomy + len, ' ', ROOM);

    return compare(b, resource, false, roomy, len + ROOM);
}


static void
test_cases(void **state)
{
    bed_t   b;
    size_t  i;

    (void) state;

    bed_start(&b);

    for (i = 0; i < COUNT(decode_cases_metadata); i++) {
        (void) compare_all(&b, KUBE_RESOURCE_SERVICES,
                           decode_cases_metadata[i].text);
    }

    for (i = 0; i < COUNT(decode_cases_services); i++) {
        (void) compare_all(&b, KUBE_RESOURCE_SERVICES,
                           decode_cases_services[i].text);
    }

    for (i = 0; i < COUNT(decode_cases_slices); i++) {
        (void) compare_all(&b, KUBE_RESOURCE_ENDPOINTSLICES,
                           decode_cases_slices[i].text);
    }

    bed_stop(&b);
}


/* What is expected is taken, and one surprise is told from another. */
static void
test_surprises(void **state)
{
    bed_t   b;
    size_t  i;

    static const struct {
        kube_resource_t  resource;
        kube_rc_t        rc;
        kube_surprise_t  surprise;
        const char      *text;
    } rows[] = {
#define SLICES    KUBE_RESOURCE_ENDPOINTSLICES
#define SERVICES  KUBE_RESOURCE_SERVICES
#define ROW(resource, rc, surprise, text)                                     \
        { resource, KUBE_##rc, KUBE_SURPRISE_##surprise, text }

        ROW(SLICES, OK, NONE, wire_slice),
        ROW(SERVICES, OK, NONE, decode_service),
        ROW(SLICES, OK, NONE, ONE(WHOLE)),
        ROW(SLICES, OK, NONE, ONE(ADDRESS CONDITIONS TARGET "}")),
        ROW(SLICES, OK, NONE, ONE(ADDRESS CONDITIONS ",\"hostname\":\"h\""
                                  TARGET NAMES "}")),
        ROW(SLICES, OK, NONE, ONE(ADDRESS ",\"conditions\":{\"ready\":false}"
                                  NAMES "}")),
        ROW(SLICES, OK, NONE, ONE(ADDRESS "}")),
        ROW(SLICES, OK, NONE, ONE(ADDRESS ",\"hints\":{" NODES "}}")),
        ROW(SLICES, OK, NONE, ONE(ADDRESS ",\"hints\":{\"forZones\":"
                                  "[{\"name\":\"a\"}]," NODES "}}")),
        ROW(SLICES, OK, NONE, ONE("{\"addresses\":[\"fd00::1\"]}")),

        ROW(SLICES, OK, NONE, ONE(ADDRESS ",\"nodeName\":\"" LONG "a\"}")),

        /* one endpoint goes the slow way */
        ROW(SLICES, OK, NAMES, ONE(ADDRESS ",\"nodeName\":\"" LONG "ab\"}")),
        ROW(SLICES, OK, ADDRESSES, ONE("{}")),
        ROW(SLICES, OK, ADDRESSES, ONE("null," WHOLE)),
        ROW(SLICES, OK, ADDRESSES, ONE("{ \"addresses\":[\"10.1.0.5\"]}")),
        ROW(SLICES, OK, ADDRESSES, ONE("{\"addresses\":[\"a\"]}")),
        ROW(SLICES, OK, ADDRESSES,
            ONE("{\"addresses\":[\"10.1.0.5\",\"10.1.0.6\"]}")),
        ROW(SLICES, OK, ADDRESSES,
            ONE("{\"zone\":\"z\",\"addresses\":[\"10.1.0.5\"]}")),
        ROW(SLICES, OK, CONDITIONS,
            ONE(ADDRESS ",\"conditions\":{\"ready\":null}}")),
        ROW(SLICES, OK, CONDITIONS,
            ONE(ADDRESS ",\"conditions\":{\"ready\":true,\"x\":1}}")),
        ROW(SLICES, OK, CONDITIONS,
            ONE(ADDRESS ",\"conditions\":{\"ready\":truer}}")),
        ROW(SLICES, OK, TARGET,
            ONE(ADDRESS ",\"targetRef\":{\"kind\":\"Pod\",\"namespace\":"
                "\"shop\",\"name\":\"a\\u0041\"}}")),
        ROW(SLICES, OK, TARGET,
            ONE(ADDRESS ",\"targetRef\":{\"kind\":\"Pod\",\"namespace\":"
                "\"shop\",\"name\":\"a\",\"name\":\"b\"}}")),
        ROW(SLICES, OK, NAMES, ONE(ADDRESS ",\"nodeName\":\"a\\\"b\"}")),
        ROW(SLICES, OK, NAMES, ONE(ADDRESS ",\"nodeName\":\"a b\"}")),
        ROW(SLICES, OK, NAMES, ONE(ADDRESS ",\"nodeName\":\"\"}")),
        ROW(SLICES, OK, NAMES, ONE(ADDRESS ",\"nodeName\":\"\xc3\xa4\"}")),
        ROW(SLICES, OK, NAMES, ONE(ADDRESS ",\"zone\":\"\x01\"}")),
        ROW(SLICES, OK, ENDPOINT,
            ONE(ADDRESS NAMES ",\"nodeName\":\"twice\"}")),
        ROW(SLICES, OK, ENDPOINT, ONE(ADDRESS ",\"new\":{\"a\":[]}}")),
        ROW(SLICES, OK, ENDPOINT,
            ONE(ADDRESS ",\"hints\":{\"forZones\":null}}")),
        ROW(SLICES, OK, ENDPOINT, ONE(ADDRESS ",\"hints\":{}}")),
        ROW(SLICES, OK, ENDPOINT,
            ONE(ADDRESS ",\"hints\":{\"forZones\":[{\"name\":\"a\"}],"
                "\"new\":[]}}")),
        ROW(SLICES, OK, ENDPOINT,
            ONE(ADDRESS ",\"hints\":{" NODES ",\"new\":[]}}")),

        /* the item does */
        ROW(SLICES, INVALID, HEAD, "{ " META "}"),
        ROW(SLICES, INVALID, HEAD, "{\"metadata\":{\"namespace\":\"a\"}}"),
        ROW(SLICES, INVALID, HEAD, "{\"kind\":\"Service\",\"apiVersion\":"
                                   "\"discovery.k8s.io/v1\"," META "}"),
        ROW(SLICES, INVALID, HEAD, "{\"kind\":\"EndpointSlice\","
                                   "\"apiVersion\":\"v1\"," META "}"),
        ROW(SLICES, INVALID, HEAD,
            "{\"metadata\":{\"name\":\"-\",\"namespace\":\"shop\","
            "\"uid\":\"u\",\"resourceVersion\":\"7\"}}"),
        ROW(SLICES, INVALID, HEAD,
            "{\"metadata\":{\"name\":\"w\\u0061\",\"namespace\":\"shop\","
            "\"uid\":\"u\",\"resourceVersion\":\"7\"}}"),
        ROW(SLICES, INVALID, OBJECT,
            HEAD ",\"name\":\"other\"},\"addressType\":\"IPv4\"}"),
        ROW(SLICES, INVALID, OBJECT,
            HEAD ",\"uid\":null},\"addressType\":\"IPv4\"}"),
        ROW(SLICES, INVALID, OBJECT,
            HEAD ",\"n\\u0061me\":\"other\"},\"addressType\":\"IPv4\"}"),
        ROW(SLICES, INVALID, OBJECT,
            HEAD "},\"addressType\":\"IPv4\",\"metadata\":{}}"),
        ROW(SLICES, INVALID, OBJECT,
            HEAD "},\"addressType\":\"IPv4\",\"kind\":\"EndpointSlice\"}"),
        ROW(SERVICES, INVALID, OBJECT, HEAD "},\"metadata\":null}"),
        ROW(SERVICES, INVALID, OBJECT, HEAD "},\"kind\":7,\"a\":[]}"),
        ROW(SLICES, INVALID, OBJECT, HEAD "},\"addressType\":\"?\"}"),
        ROW(SLICES, INVALID, OBJECT, HEAD ",\"labels\":[}]}"),
        ROW(SLICES, INVALID, OBJECT, HEAD "},\"endpoints\":7}"),
        ROW(SLICES, AGAIN, OBJECT, HEAD ",\"labels\":{\"a\":\"b\"}"),
        ROW(SLICES, AGAIN, HEAD, "{\"metadata\":{\"name\":\"web")
#undef ROW
    };

    (void) state;

    bed_start(&b);

    for (i = 0; i < COUNT(rows); i++) {
        if (compare(&b, rows[i].resource, false, rows[i].text,
                    strlen(rows[i].text)) != rows[i].rc
            || b.scan.surprise != rows[i].surprise)
        {
            fail_msg("%s: %d", rows[i].text, (int) b.scan.surprise);
        }
    }

    /* as an event, where a newline in a string ends the stream */

    assert_int_equal(compare_all(&b, SLICES,
                                 HEAD ",\"x\":\"a\nb\"},\"addressType\":"
                                 "\"IPv4\"}"),
                     KUBE_OK);
    assert_int_equal(compare_all(&b, SLICES, wire_slice), KUBE_OK);

    bed_stop(&b);
}


/* Cut anywhere it says that more is needed, and reads nothing behind it. */
static void
test_cut(void **state)
{
    bed_t   b;
    char    text[CHANGE_MAX];
    size_t  len, n;

    (void) state;

    bed_start(&b);

    for (n = 1; n < sizeof(wire_slice) - 1; n++) {
        assert_int_equal(compare(&b, KUBE_RESOURCE_ENDPOINTSLICES, false,
                                 wire_slice, n), KUBE_AGAIN);
    }

    assert_int_equal(compare(&b, KUBE_RESOURCE_ENDPOINTSLICES, false,
                             wire_slice, n), KUBE_OK);

    len = (size_t) snprintf(text, sizeof(text),
                            "{\"type\":\"ADDED\",\"object\":%s}",
                            decode_service);

    for (n = 1; n < len; n++) {
        assert_int_equal(compare(&b, KUBE_RESOURCE_SERVICES, true, text, n),
                         KUBE_AGAIN);
    }

    assert_int_equal(compare(&b, KUBE_RESOURCE_SERVICES, true, text, n),
                     KUBE_OK);

    bed_stop(&b);
}


/* The same where endpoints are long, one byte more or less than is usual. */
static void
test_cut_wide(void **state)
{
    bed_t         b;
    char         *text, *p;
    size_t        len, n;
    unsigned      i;

    static const char  wide[] = ONE(ADDRESS "}," WIDEST "," WIDEST ","
                                    ADDRESS "}");

    (void) state;

    bed_start(&b);

    for (i = 0; i < 2; i++) {
        text = strdup(wide);
        assert_non_null(text);

        for (p = text; i != 0 && (p = strstr(p, WIDE)) != NULL; /* void */ ) {
            memmove(p, p + 1, strlen(p));
        }

        len = strlen(text);

        for (n = 1; n < len; n++) {
            assert_int_equal(compare(&b, KUBE_RESOURCE_ENDPOINTSLICES, false,
                                     text, n), KUBE_AGAIN);
        }

        assert_int_equal(compare(&b, KUBE_RESOURCE_ENDPOINTSLICES, false,
                                 text, n), KUBE_OK);
        assert_int_equal(compare_roomy(&b, KUBE_RESOURCE_ENDPOINTSLICES,
                                       text), KUBE_OK);
        assert_int_equal(b.object.u.slice.endpoints_n, 4);
        free(text);
    }

    bed_stop(&b);
}


/* Endpoints that are merged, and ports of each form. */
static void
test_forms(void **state)
{
    bed_t   b;
    size_t  i;

    static const char *const  slices[] = {
        ONE(WHOLE "," WHOLE "," WHOLE "," ADDRESS CONDITIONS "}," WHOLE),
        ONE(WHOLE WHOLE),
        ONE(WHOLE "," WHOLE " ," WHOLE),
        ONE(WHOLE "," WHOLE WHOLE),
        ONE(WHOLE "," WHOLE ",]"),
        ONE(WHOLE "," WHOLE "],\"endpoints\":[" ADDRESS "}," ADDRESS "},"
            WHOLE),
        ONE(WHOLE "," WHOLE "],\"endpoints\":null,\"endpoints\":["
            ADDRESS "}," ADDRESS "}"),
        ONE(WHOLE ",{\"addresses\":[\"10.1.0.256\"]}," WHOLE),
        ONE(WHOLE ",{\"addresses\":[\"10.1.0.255\"]}," WHOLE),
        ONE(WHOLE ",{\"addresses\":[\"10.01.0.2\"]}," WHOLE),
        ONE(WHOLE ",{\"addresses\":[\"0.0.0.0\"]}," WHOLE),
        ONE(WHOLE ",{\"addresses\":[\"10.1.0\"]}," WHOLE),
        ONE(WHOLE ",{\"addresses\":[\"10.1.0.1.2\"]}," WHOLE),
        ONE(WHOLE ",{\"addresses\":[\"10.1.0.1000\"]}," WHOLE),
        ONE(WHOLE ",{\"addresses\":[\"fd00::7\"]}," WHOLE),
        ONE(WHOLE "," ADDRESS ",\"conditions\":{\"ready\":true,"
            "\"serving\":true,\"terminating\":true}}," WHOLE),
        ONE(WHOLE "," ADDRESS ",\"conditions\":{\"ready\":false,"
            "\"serving\":true,\"terminating\":false}}," WHOLE),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":65535}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":65536}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":0}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":080}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80.0}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":8e1}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":}"),
        PORTS("{\"name\":\"\",\"protocol\":\"TCP\",\"port\":80}"),
        PORTS("{\"name\":\"A\",\"protocol\":\"TCP\",\"port\":80}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"UDP\",\"port\":80}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80,"
              "\"appProtocol\":\"h2c\"},{\"name\":\"b\","
              "\"protocol\":\"TCP\",\"port\":81}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80,"
              "\"port\":81}"),
        PORTS("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80}],"
              "\"ports\":[{\"name\":\"b\",\"protocol\":\"TCP\","
              "\"port\":81},{\"name\":\"c\",\"protocol\":\"TCP\","
              "\"port\":82}")
    };

    static const char *const  services[] = {
        SERVED("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80,"
               "\"targetPort\":8080}"),
        SERVED("{\"name\":\"a\",\"protocol\":\"TCP\","
               "\"appProtocol\":\"h2c\",\"port\":80,"
               "\"targetPort\":\"web\",\"nodePort\":30080},"
               "{\"name\":\"b\",\"protocol\":\"TCP\",\"port\":81}"),
        SERVED("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80,"
               "\"targetPort\":0,\"nodePort\":0}"),
        SERVED("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80,"
               "\"targetPort\":\"w\\\"b\",\"nodePort\":70000}"),
        SERVED("{\"name\":\"a\",\"protocol\":\"TCP\",\"port\":80,"
               "\"targetPort\":8080,\"name\":\"b\"}"),
        SERVED("{\"protocol\":\"TCP\",\"port\":80,\"targetPort\":80}")
    };

    (void) state;

    bed_start(&b);

    for (i = 0; i < COUNT(slices); i++) {
        (void) compare_all(&b, KUBE_RESOURCE_ENDPOINTSLICES, slices[i]);
        (void) compare_roomy(&b, KUBE_RESOURCE_ENDPOINTSLICES, slices[i]);
    }

    for (i = 0; i < COUNT(services); i++) {
        (void) compare_all(&b, KUBE_RESOURCE_SERVICES, services[i]);
        (void) compare_roomy(&b, KUBE_RESOURCE_SERVICES, services[i]);
    }

    bed_stop(&b);
}


/* Any byte of it changed to some that matter. */
static void
test_bytes(void **state)
{
    bed_t     b;
    char      text[CHANGE_MAX];
    size_t    i, k, taken;

    static const char  bytes[] = "\"\\{}[]:, \n\x01\x7f\x80z0";

    (void) state;

    bed_start(&b);
    taken = 0;

    for (i = 0; i < sizeof(wire_slice) - 1; i++) {
        for (k = 0; k < sizeof(bytes); k++) {
            memcpy(text, wire_slice, sizeof(wire_slice));
            text[i] = bytes[k];
            taken += (compare(&b, KUBE_RESOURCE_ENDPOINTSLICES, false, text,
                              sizeof(wire_slice) - 1) == KUBE_OK);
            (void) compare_roomy(&b, KUBE_RESOURCE_ENDPOINTSLICES, text);
        }
    }

    assert_in_range(taken, sizeof(wire_slice), sizeof(wire_slice) * 14);
    bed_stop(&b);
}


static void
test_changes(void **state)
{
    bed_t             b;
    char              text[CHANGE_MAX];
    size_t            i, rounds, changes, taken;
    uint64_t          seed;
    kube_resource_t   resource;

    (void) state;

    bed_start(&b);
    seed = 20261122;
    taken = 0;
    rounds = (getenv("KUBE_PROOF") != NULL) ? 1000000 : 4000;

    for (i = 0; i < rounds; i++) {
        resource = (i % 4 == 0) ? KUBE_RESOURCE_SERVICES
                                : KUBE_RESOURCE_ENDPOINTSLICES;

        (void) snprintf(text, sizeof(text), "%s",
                        (i % 4 == 0) ? decode_service
                        : (i % 4 == 1) ? decode_slice : wire_slice);

        changes = 1 + change_random(&seed, 3);

        while (changes-- != 0) {
            change_text(&seed, text);
        }

        taken += (compare_all(&b, resource, text) == KUBE_OK);
        (void) compare_roomy(&b, resource, text);
    }

    assert_in_range(taken, rounds / 8, rounds);
    bed_stop(&b);
}


/* Without memory it gives up, and leaves it to others to say why. */
static void
test_no_memory(void **state)
{
    size_t               len, k;
    uint32_t             dropped;
    kube_rc_t            rc;
    kube_str_t           in;
    alloc_test_t         at;
    kube_arena_t         arena;
    kube_object_t        object;
    kube_envelope_t      envelope;
    kube_decode_scan_t   scan;

    (void) state;

    in = (kube_str_t) { wire_slice, sizeof(wire_slice) - 1 };
    rc = KUBE_INVALID;

    for (k = 1; rc != KUBE_OK; k++) {
        alloc_test_init(&at);
        at.fail_at = k;
        kube_arena_init(&arena, &at.alloc, 1u << 20);

        assert_int_equal(kube_decode_scan_head(&scan,
                                               KUBE_RESOURCE_ENDPOINTSLICES,
                                               false, in, &envelope),
                         KUBE_OK);
        rc = kube_decode_scan_body(&scan, &arena, &envelope, &object, &dropped,
                            &len);
        assert_int_equal(rc, at.failed ? KUBE_INVALID : KUBE_OK);

        kube_arena_done(&arena);
        alloc_test_assert_no_leak(&at);
    }

    assert_true(k > 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_surprises),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_wide),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_no_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

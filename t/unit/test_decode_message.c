/*
 * test_decode_message - an object in Protocol Buffers is the same as in JSON:
 * the tables of test_decode, random changes of them, and random changes of the
 * messages themselves.
 *
 * With KUBE_MESSAGE_DUMP=file each message is written there with what was made
 * of it; t/cluster/decode holds it against Go's own types.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "decode_cases.h"
#include "decode_change.h"
#include "decode_print.h"
#include "message_test.h"


#define ROUNDS        4000
#define ROUNDS_PROOF  400000

typedef struct {
    kube_resource_t       resource;
    const decode_case_t  *cases;
    size_t                n;
} table_t;

/* Of core/v1 Endpoints. */
static const decode_case_t  endpoints_cases[] = {
    { .text = "{" META "}" },
    { .text = "{" META ",\"subsets\":[{\"addresses\":[{\"ip\":\"10.0.0.1\","
              "\"nodeName\":\"n\",\"targetRef\":{\"kind\":\"Pod\","
              "\"name\":\"p\"}},{\"ip\":\"::1\"},{\"ip\":\"x\"}],"
              "\"notReadyAddresses\":[{\"ip\":\"10.0.0.2\"}],"
              "\"ports\":[{\"name\":\"a\",\"port\":80},{\"port\":0},"
              "{\"port\":53,\"protocol\":\"UDP\"}]},{\"addresses\":"
              "[{\"ip\":\"10.0.0.3\"}],\"ports\":[{\"port\":8080}]}]}" },
    { .text = "{" META ",\"subsets\":[{\"ports\":[{\"port\":8080}]}]}" }
};

static const table_t  tables[] = {
    { KUBE_RESOURCE_SERVICES, decode_cases_metadata,
      CHANGE_COUNT(decode_cases_metadata) },
    { KUBE_RESOURCE_SERVICES, decode_cases_services,
      CHANGE_COUNT(decode_cases_services) },
    { KUBE_RESOURCE_ENDPOINTSLICES, decode_cases_slices,
      CHANGE_COUNT(decode_cases_slices) },
    { KUBE_RESOURCE_ENDPOINTS, endpoints_cases,
      CHANGE_COUNT(endpoints_cases) }
};

static FILE  *dump;


static size_t
rounds(void)
{
    const char  *proof;

    proof = getenv("KUBE_PROOF");

    return (proof != NULL && strcmp(proof, "1") == 0) ? ROUNDS_PROOF : ROUNDS;
}


static void
dump_line(kube_resource_t resource, const char *how, kube_str_t object,
    kube_rc_t rc, const decode_test_t *t)
{
    size_t  i;

    if (dump == NULL) {
        return;
    }

    fprintf(dump, "%s\t%s.pb\t%d\t%u\t", how, kube_resource_text(resource),
            rc == KUBE_OK, (unsigned) t->dropped);

    for (i = 0; i < object.len; i++) {
        fprintf(dump, "%02x", (unsigned char) object.data[i]);
    }

    fputc('\t', dump);

    if (rc == KUBE_OK) {
        decode_print(dump, &t->object);

    } else {
        fputs(t->error.what, dump);
    }

    fputc('\n', dump);
}


/* Decodes an item; its bytes have a place of their exact length. */
static kube_rc_t
message_run(decode_test_t *t, kube_resource_t resource, kube_str_t item,
    bool event)
{
    kube_rc_t            rc;
    kube_watch_event_t   e;

    kube_arena_reset(&t->arena);
    memset(&t->object, 0, sizeof(t->object));
    t->dropped = 77;
    t->error = (kube_error_t) { KUBE_OK, "", 0 };

    kube_protobuf_envelope(decode_copy(t, item.data, item.len), event, false,
                           &t->envelope);

    if (!event) {
        rc = kube_decode_object(&t->arena, resource, &t->envelope, &t->object,
                                &t->dropped, &t->error);

    } else {
        rc = kube_decode_watch_event(&t->arena, resource, &t->envelope, &e,
                                     &t->dropped, &t->error);
        t->object = e.object;
        rc = (rc == KUBE_OK) ? e.object_rc : rc;
    }

    if (rc != KUBE_OK) {
        assert_int_equal(t->error.rc, rc);
        assert_true(t->error.offset <= item.len);
    }

    return rc;
}


/* The "kind" or "apiVersion" of a text that was read. */
static bool
type_of(kube_str_t text, const char *name, char out[256])
{
    kube_str_t    key, s;
    kube_lexer_t  lx;

    out[0] = '\0';
    kube_lexer_init(&lx, text);

    if (!kube_lexer_enter(&lx, '{')) {
        return false;
    }

    while (kube_lexer_member(&lx, &key)) {

        if (!kube_str_eq(key, kube_str(name))) {
            kube_lexer_value(&lx, NULL);

        } else if (out[0] != '\0') {
            return false;

        } else if (kube_lexer_peek(&lx) == 'n') {

            if (!message_null(&lx)) {
                return false;
            }

        } else if (!message_string(&lx, out, 255, &s)
                   || memchr(out, '\0', s.len) != NULL)
        {
            return false;

        } else {
            out[s.len] = '\0';
        }
    }

    return true;
}


/* True where the text could be turned into a message. */
static bool
compare(decode_test_t *json, decode_test_t *t, kube_resource_t resource,
    const char *text)
{
    char         kind[256], version[256];
    bool         event;
    unsigned     pass;
    kube_rc_t    rc, expected;
    message_t    object, unknown, whole;
    kube_str_t   s;

    s = kube_str(text);
    object.len = 0;
    unknown.len = 0;
    whole.len = 0;

    if (!message_convert(s, message_of[resource], &object)
        || !type_of(s, "kind", kind)
        || !type_of(s, "apiVersion", version))
    {
        return false;
    }

    message_unknown(&unknown, version, kind, message_str(&object));
    message_event(&whole, "ADDED", message_str(&unknown));

    expected = decode_run(json, resource, text, s.len);

    for (pass = 0; pass < 2; pass++) {
        event = (pass == 0);

        /* an item of a list has neither */

        if (!event && (kind[0] != '\0' || version[0] != '\0')) {
            break;
        }

        rc = message_run(t, resource, message_str(event ? &whole : &object),
                         event);

        if ((rc == KUBE_OK) != (expected == KUBE_OK)) {
            fail_msg("%s: %s in Protocol Buffers, %s in JSON", text,
                     (rc == KUBE_OK) ? "taken" : t->error.what,
                     (expected == KUBE_OK) ? "taken" : json->error.what);
        }

        if (rc == KUBE_OK) {
            change_same(&json->object, &t->object, text);

            if (t->dropped != json->dropped) {
                fail_msg("%s: %u left out, not %u", text,
                         (unsigned) t->dropped, (unsigned) json->dropped);
            }
        }
    }

    if (kind[0] == '\0' && version[0] == '\0') {
        dump_line(resource, "case", message_str(&object), rc, t);
    }

    return true;
}


static void
message_of_cases(void **state)
{
    size_t         i, k, n;
    decode_test_t  json, t;

    (void) state;

    decode_start(&json);
    decode_start(&t);
    n = 0;

    for (i = 0; i < CHANGE_COUNT(tables); i++) {
        for (k = 0; k < tables[i].n; k++) {
            n += compare(&json, &t, tables[i].resource,
                         tables[i].cases[k].text);
        }
    }

    assert_true(compare(&json, &t, KUBE_RESOURCE_SERVICES, decode_service));
    assert_true(compare(&json, &t, KUBE_RESOURCE_ENDPOINTSLICES,
                        decode_slice));
    assert_in_range(n, 60, 300);

    decode_stop(&json);
    decode_stop(&t);
}


static void
random_text(uint64_t *seed, kube_resource_t *resource, char text[CHANGE_MAX])
{
    size_t          k;
    const char     *from;
    const table_t  *table;

    k = change_random(seed, CHANGE_COUNT(tables) + 2);

    if (k < CHANGE_COUNT(tables)) {
        table = &tables[k];
        *resource = table->resource;
        from = table->cases[change_random(seed, (uint32_t) table->n)].text;

    } else {
        *resource = (k == CHANGE_COUNT(tables)) ? KUBE_RESOURCE_SERVICES
                                                : KUBE_RESOURCE_ENDPOINTSLICES;
        from = (*resource == KUBE_RESOURCE_SERVICES) ? decode_service
                                                     : decode_slice;
    }

    (void) snprintf(text, CHANGE_MAX, "%s", from);
}


static void
message_of_changes(void **state)
{
    char             text[CHANGE_MAX];
    size_t           i, n;
    uint64_t         seed;
    unsigned         changes;
    decode_test_t    json, t;
    kube_resource_t  resource;

    (void) state;

    decode_start(&json);
    decode_start(&t);
    seed = 20261122;
    n = 0;

    for (i = 0; i < rounds(); i++) {
        random_text(&seed, &resource, text);
        changes = 1 + change_random(&seed, 3);

        while (changes-- != 0) {
            change_text(&seed, text);
        }

        n += compare(&json, &t, resource, text);
    }

    /* enough of them were for both to read */
    assert_in_range(n, rounds() / 8, rounds());

    decode_stop(&json);
    decode_stop(&t);
}


/* Changes, cuts or repeats some bytes. */
static void
damage(uint64_t *seed, message_t *m)
{
    size_t     at, n;
    message_t  copy;

    at = change_random(seed, (uint32_t) m->len + 1);
    n = change_random(seed, 12);
    n = (n < m->len - at) ? n : m->len - at;

    switch (change_random(seed, 4)) {

    case 0:
        memmove(m->data + at, m->data + at + n, m->len - at - n);
        m->len -= n;
        break;

    case 1:

        if (m->len + n <= MESSAGE_MAX / 2) {
            memcpy(&copy, m, sizeof(copy));
            memcpy(m->data + at + n, copy.data + at, m->len - at);
            m->len += n;
        }

        break;

    default:

        if (at < m->len) {
            m->data[at] = (char) (m->data[at]
                                  ^ (1 << change_random(seed, 8)));
        }
    }
}


/* Whatever is in a message: an object, or none, and no byte outside read. */
static void
message_of_damage(void **state)
{
    char             text[CHANGE_MAX];
    size_t           i, n;
    uint64_t         seed;
    unsigned         changes;
    kube_rc_t        rc;
    message_t        object;
    decode_test_t    t;
    kube_resource_t  resource;

    (void) state;

    decode_start(&t);
    seed = 4711;
    n = 0;

    for (i = 0; i < rounds(); i++) {
        random_text(&seed, &resource, text);
        object.len = 0;

        if (!message_convert(kube_str(text), message_of[resource], &object)) {
            continue;
        }

        changes = 1 + change_random(&seed, 3);

        while (changes-- != 0) {
            damage(&seed, &object);
        }

        rc = message_run(&t, resource, message_str(&object), false);
        dump_line(resource, "random", message_str(&object), rc, &t);
        n += (rc == KUBE_OK);

        (void) message_run(&t, resource, message_str(&object), true);
    }

    assert_in_range(n, rounds() / 50, rounds());

    decode_stop(&t);
}


/* Cut anywhere it is no other object than the whole one, and mostly none. */
static void
message_of_cuts(void **state)
{
    size_t           len;
    message_t        object;
    decode_test_t    whole, t;

    (void) state;

    decode_start(&whole);
    decode_start(&t);
    object.len = 0;

    assert_true(message_convert(kube_str(decode_slice), message_of_slice,
                                &object));
    assert_int_equal(message_run(&whole, KUBE_RESOURCE_ENDPOINTSLICES,
                                 message_str(&object), false), KUBE_OK);

    for (len = 0; len < object.len; len++) {
        if (message_run(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                        (kube_str_t) { object.data, len }, false) == KUBE_OK)
        {
            assert_true(t.object.u.slice.endpoints_n
                        + t.object.u.slice.ports_n
                        < whole.object.u.slice.endpoints_n
                          + whole.object.u.slice.ports_n);
        }
    }

    decode_stop(&whole);
    decode_stop(&t);
}


typedef struct {
    const char  *what;         /* of the error; NULL: taken */
    const char  *bytes;        /* behind the metadata of a slice */
    size_t       len;
} wire_case_t;

#define WIRE(what, bytes)  { what, bytes, sizeof(bytes) - 1 }

#define X16   "xxxxxxxxxxxxxxxx"
#define X112  X16 X16 X16 X16 X16 X16 X16

static const wire_case_t  wire_cases[] = {
    WIRE(NULL, "\x22\x04IPv4"),
    WIRE("addressType", ""),
    WIRE("addressType", "\x22\x04IPv5"),
    WIRE(NULL, "\x22\x04IPv5\x22\x04IPv4"),

    /* unknown ones of each wire type */
    WIRE(NULL, "\x22\x04IPv4\xf8\x3f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
    WIRE(NULL, "\x22\x04IPv4\xf9\x3f" "12345678"),
    WIRE(NULL, "\x22\x04IPv4\xfd\x3f" "1234"),
    WIRE(NULL, "\x22\x04IPv4\xfb\x3f\x08\x01\x13\x12\x01z\x14\xfc\x3f"),

    /* and what ends too early, or never */
    WIRE("beyond", "\x22\x04IPv4\xf9\x3f" "1234567"),
    WIRE("beyond", "\x22\x04IPv4\xfd\x3f" "123"),
    WIRE("beyond", "\x22\x04IPv4\xfb\x3f\x13\x14"),
    WIRE("beyond", "\x22\x04IPv4\xf8\x3f\xff"),
    WIRE("beyond", "\x22\x05IPv4"),
    WIRE("beyond", "\x22\x04IPv4\x7a\x0fxxxxxxxxxxxxxx"),
    WIRE("beyond", "\x22\x04IPv4\x7a\x80\x01" X112 "xxxxxxxxxxxxxxx"),
    WIRE(NULL, "\x22\x04IPv4\x7a\x80\x01" X112 X16),
    WIRE("beyond", "\x22\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01IPv4"),
    WIRE("beyond", "\x22\xff\xff\xff\xff\xff\xff\xff\xff\x7fIPv4"),
    WIRE("ten bytes", "\x22\x04IPv4\xf8\x3f"
         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    WIRE("ten bytes", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    WIRE("wire type", "\x22\x04IPv4\xfc\x3f"),
    WIRE("wire type", "\x22\x04IPv4\xfe\x3f"),
    WIRE("wire type", "\x22\x04IPv4\xff\x3f"),
    WIRE("without a number", "\x22\x04IPv4\x02\x01x"),
    WIRE("without a number", "\x22\x04IPv4\x82\x80\x80\x80\x40\x01x"),

    /* a used field of another type */
    WIRE("wrong wire type", "\x20\x04"),
    WIRE("wrong wire type", "\x22\x04IPv4\x10\x01"),
    WIRE("wrong wire type", "\x22\x04IPv4\x12\x02\x08\x01"),
    WIRE("wrong wire type", "\x22\x04IPv4\x12\x04\x12\x02\x0a\x00"),
    WIRE("wrong wire type", "\x22\x04IPv4\x12\x07\x12\x05\x0d" "1234"),
    WIRE("wrong wire type", "\x22\x04IPv4\x1a\x03\x1a\x01x")
};


static void
message_of_wire(void **state)
{
    size_t         i;
    kube_rc_t      rc;
    message_t      object;
    decode_test_t  t;

    (void) state;

    decode_start(&t);

    for (i = 0; i < CHANGE_COUNT(wire_cases); i++) {
        object.len = 0;
        message_meta(&object, 1, "shop", "web", "u", "7");
        message_put(&object, wire_cases[i].bytes, wire_cases[i].len);

        rc = message_run(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                         message_str(&object), false);

        if ((rc == KUBE_OK) != (wire_cases[i].what == NULL)
            || (rc != KUBE_OK
                && strstr(t.error.what, wire_cases[i].what) == NULL))
        {
            fail_msg("case %zu: %s, not %s", i,
                     (rc == KUBE_OK) ? "taken" : t.error.what,
                     (wire_cases[i].what == NULL) ? "taken"
                                                  : wire_cases[i].what);
        }

        /* whatever is wrong behind it: whose object it is is known */

        assert_str(t.envelope.meta.name, "web");
        assert_str(t.envelope.meta.rv, "7");
    }

    decode_stop(&t);
}


/* What is wrong in metadata refuses the object, which is known all the same. */
static void
message_of_metadata(void **state)
{
    message_t      object, meta;
    decode_test_t  t;

    (void) state;

    decode_start(&t);

    meta.len = 0;
    message_text(&meta, 1, "web");
    message_text(&meta, 3, "shop");
    message_text(&meta, 5, "u");
    message_text(&meta, 6, "7");
    message_put(&meta, "\x62\x05x", 3);
    object.len = 0;
    message_bytes(&object, 1, message_str(&meta));

    assert_int_equal(message_run(&t, KUBE_RESOURCE_SERVICES,
                                 message_str(&object), false), KUBE_INVALID);
    assert_non_null(strstr(t.error.what, "beyond"));
    assert_str(t.object.u.meta.name, "web");

    decode_stop(&t);
}


/* As Go reads a bool: any number but 0 is true, and the last one counts. */
static void
message_of_bools(void **state)
{
    message_t               object, endpoint, conditions;
    decode_test_t           t;
    const kube_endpoint_t  *e;

    (void) state;

    decode_start(&t);

    conditions.len = 0;
    message_number(&conditions, 1, 2);
    message_number(&conditions, 2, 1);
    message_number(&conditions, 2, 0);
    message_number(&conditions, 3, UINT64_MAX);
    endpoint.len = 0;
    message_text(&endpoint, 1, "10.0.0.1");
    message_bytes(&endpoint, 2, message_str(&conditions));
    object.len = 0;
    message_meta(&object, 1, "shop", "web", "u", "7");
    message_bytes(&object, 2, message_str(&endpoint));
    message_text(&object, 4, "IPv4");

    assert_int_equal(message_run(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                 message_str(&object), false), KUBE_OK);
    assert_int_equal(t.object.u.slice.endpoints_n, 1);
    e = t.object.u.slice.endpoints;
    assert_true(e->ready && !e->serving && e->terminating);

    decode_stop(&t);
}


/* A slice with one endpoint of these bytes, behind those. */
static kube_rc_t
endpoint_run(decode_test_t *t, kube_str_t before, kube_str_t bytes)
{
    message_t  object, endpoint;

    endpoint.len = 0;
    message_put(&endpoint, before.data, before.len);
    message_put(&endpoint, bytes.data, bytes.len);
    object.len = 0;
    message_meta(&object, 1, "shop", "web", "u", "7");
    message_text(&object, 4, "IPv4");
    message_bytes(&object, 2, message_str(&endpoint));    /* nothing behind */

    return message_run(t, KUBE_RESOURCE_ENDPOINTSLICES, message_str(&object),
                       false);
}


/*
 * An unknown field, empty, before all others has an endpoint read field by
 * field.  True where it was taken.
 */
static bool
endpoint_compare(decode_test_t *a, decode_test_t *b, kube_str_t bytes)
{
    kube_rc_t  rc;

    rc = endpoint_run(a, KUBE_STR_NULL, bytes);

    assert_int_equal(endpoint_run(b, (kube_str_t) { "\xa2\x06", 3 }, bytes),
                     rc);

    if (rc == KUBE_OK) {
        change_same(&a->object, &b->object, "an endpoint");
        assert_int_equal(a->dropped, b->dropped);
    }

    return rc == KUBE_OK;
}


/* An endpoint as API servers write it: conditions, target and hints too. */
static void
endpoint_usual(message_t *endpoint)
{
    message_t  conditions, target;

    conditions.len = 0;
    message_number(&conditions, 1, 1);
    message_number(&conditions, 2, 0);
    message_number(&conditions, 3, 1);

    target.len = 0;
    message_text(&target, 1, "Pod");
    message_text(&target, 2, "shop");
    message_text(&target, 3, "web-7d4b9c8f6d-0001e");
    message_text(&target, 4, "a84735a9-b7fb-485f-aa84-fe9573a394f9");
    message_text(&target, 5, "");
    message_text(&target, 6, "");
    message_text(&target, 7, "");

    endpoint->len = 0;
    message_text(endpoint, 1, "10.0.0.1");
    message_bytes(endpoint, 2, message_str(&conditions));
    message_text(endpoint, 3, "web-0");
    message_bytes(endpoint, 4, message_str(&target));
    message_text(endpoint, 6, "node-a");
    message_text(endpoint, 7, "zone-b");
    message_bytes(endpoint, 8, (kube_str_t) { "\x0a\x03\x0a\x01z", 5 });
}


/*
 * What is read at once, for all is as usual, is what is read field by field:
 * with any byte changed, cut anywhere, without any bytes, with some twice.
 */
static void
message_of_usual(void **state)
{
    size_t         i, len, n;
    unsigned       byte;
    message_t      usual, m;
    decode_test_t  a, b;

    (void) state;

    decode_start(&a);
    decode_start(&b);
    endpoint_usual(&usual);
    assert_true(endpoint_compare(&a, &b, message_str(&usual)));
    assert_int_equal(a.object.u.slice.endpoints_n, 1);
    assert_str(a.object.u.slice.endpoints[0].pod, "web-7d4b9c8f6d-0001e");
    assert_true(a.object.u.slice.endpoints[0].terminating);
    n = 0;

    for (i = 0; i < usual.len; i++) {
        for (byte = 0; byte < 256; byte++) {
            m = usual;
            m.data[i] = (char) byte;
            n += endpoint_compare(&a, &b, message_str(&m));
        }

        (void) endpoint_compare(&a, &b, (kube_str_t) { usual.data, i });

        for (len = 1; len <= 12 && i + len <= usual.len; len++) {
            m = usual;
            m.len = i;
            message_put(&m, usual.data + i + len, usual.len - i - len);
            n += endpoint_compare(&a, &b, message_str(&m));

            m.len = i + len;
            message_put(&m, usual.data + i, usual.len - i);
            n += endpoint_compare(&a, &b, message_str(&m));
        }
    }

    assert_in_range(n, 20000, 40000);

    decode_stop(&a);
    decode_stop(&b);
}


/* A text that is shown is looked at whole, however long it is. */
static void
message_of_texts(void **state)
{
    char           text[40];
    size_t         i, len;
    message_t      endpoint;
    decode_test_t  t;

    (void) state;

    decode_start(&t);

    for (len = 1; len <= sizeof(text); len++) {
        for (i = 0; i <= len; i++) {
            memset(text, '~', len);

            if (i < len) {
                text[i] = (i % 2 == 0) ? ' ' : '\x7f';
            }

            endpoint.len = 0;
            message_text(&endpoint, 1, "10.0.0.1");
            message_bytes(&endpoint, 7, (kube_str_t) { text, len });

            assert_int_equal(endpoint_run(&t, KUBE_STR_NULL,
                                          message_str(&endpoint)), KUBE_OK);
            assert_int_equal(t.dropped, i < len);
            assert_int_equal(t.object.u.slice.endpoints[0].zone.len,
                             (i < len) ? 0 : len);
        }
    }

    decode_stop(&t);
}


/* More than the limits allow is one object's fault. */
static void
message_of_many(void **state)
{
    size_t         i;
    message_t      object;
    decode_test_t  t;

    (void) state;

    decode_start(&t);

    object.len = 0;
    message_meta(&object, 1, "shop", "web", "u", "7");
    message_text(&object, 4, "IPv4");

    for (i = 0; i <= KUBE_SLICE_ENDPOINTS_MAX; i++) {

        if (i == KUBE_SLICE_ENDPOINTS_MAX) {
            assert_int_equal(message_run(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                         message_str(&object), false),
                             KUBE_OK);
            assert_int_equal(t.dropped, KUBE_SLICE_ENDPOINTS_MAX);
        }

        message_text(&object, 2, "");
    }

    assert_int_equal(message_run(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                 message_str(&object), false), KUBE_INVALID);
    assert_non_null(strstr(t.error.what, "too many"));

    decode_stop(&t);
}


static kube_rc_t
message_without_memory(kube_alloc_t *alloc, void *ctx)
{
    uint32_t           dropped;
    kube_rc_t          rc;
    message_t         *object = ctx;
    kube_arena_t       arena;
    kube_error_t       error;
    kube_object_t      o;
    kube_envelope_t    envelope;

    kube_arena_init(&arena, alloc, 16u << 20);
    kube_protobuf_envelope(message_str(object), false, false, &envelope);

    rc = kube_decode_object(&arena, KUBE_RESOURCE_ENDPOINTSLICES, &envelope,
                            &o, &dropped, &error);

    kube_arena_done(&arena);

    return rc;
}


static void
message_of_memory(void **state)
{
    message_t  object;

    (void) state;

    object.len = 0;
    assert_true(message_convert(kube_str(decode_slice), message_of_slice,
                                &object));
    ALLOC_TEST_EACH(message_without_memory, &object);
}


static void
message_of_events(void **state)
{
    uint32_t            dropped;
    message_t           meta, entry, object, unknown, event;
    kube_arena_t        arena;
    kube_error_t        error;
    decode_test_t       t;
    kube_envelope_t     envelope;
    kube_watch_event_t  e;

    (void) state;

    decode_start(&t);
    arena = t.arena;

    /* a bookmark has its version, and may end what a watch begins with */

    entry.len = 0;
    message_text(&entry, 1, "k8s.io/initial-events-end");
    message_text(&entry, 2, "true");
    meta.len = 0;
    message_text(&meta, 6, "77");
    message_bytes(&meta, 12, message_str(&entry));
    object.len = 0;
    message_bytes(&object, 1, message_str(&meta));
    unknown.len = 0;
    message_unknown(&unknown, "v1", "Service", message_str(&object));
    event.len = 0;
    message_event(&event, "BOOKMARK", message_str(&unknown));

    kube_protobuf_envelope(message_str(&event), true, false, &envelope);
    assert_int_equal(kube_decode_watch_event(&arena, KUBE_RESOURCE_SERVICES,
                                             &envelope, &e, &dropped, &error),
                     KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_BOOKMARK);
    assert_true(e.initial_events_end);
    assert_str(kube_rv_str(&e.rv), "77");

    /* an error's Status is given with what says that it is one */

    event.len = 0;
    message_event(&event, "ERROR", message_str(&unknown));
    kube_protobuf_envelope(message_str(&event), true, false, &envelope);
    assert_int_equal(kube_decode_watch_event(&arena, KUBE_RESOURCE_SERVICES,
                                             &envelope, &e, &dropped, &error),
                     KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_ERROR);
    assert_true(kube_str_eq(e.status_text, message_str(&unknown)));

    /* the object of another resource is refused under its key */

    object.len = 0;
    message_meta(&object, 1, "shop", "web", "u", "7");
    unknown.len = 0;
    message_unknown(&unknown, "v1", "Pod", message_str(&object));
    event.len = 0;
    message_event(&event, "ADDED", message_str(&unknown));
    kube_protobuf_envelope(message_str(&event), true, false, &envelope);
    assert_int_equal(kube_decode_watch_event(&arena, KUBE_RESOURCE_SERVICES,
                                             &envelope, &e, &dropped, &error),
                     KUBE_OK);
    assert_int_equal(e.object_rc, KUBE_INVALID);
    assert_string_equal(error.what, "wrong kind");
    assert_str(e.object.u.meta.name, "web");

    /* what is no object of Kubernetes cannot be named: nor can no event */

    event.len = 0;
    message_event(&event, "ADDED", KUBE_STR("{\"kind\":\"Service\"}"));
    kube_protobuf_envelope(message_str(&event), true, false, &envelope);
    assert_int_equal(kube_decode_watch_event(&arena, KUBE_RESOURCE_SERVICES,
                                             &envelope, &e, &dropped, &error),
                     KUBE_INVALID);

    object.len = 0;
    message_meta(&object, 1, "shop", "web", "u", "7");
    unknown.len = 0;
    message_unknown(&unknown, "v1", "Service", message_str(&object));
    unknown.data[0] = 'K';
    event.len = 0;
    message_event(&event, "ADDED", message_str(&unknown));
    kube_protobuf_envelope(message_str(&event), true, false, &envelope);
    assert_int_equal(kube_decode_watch_event(&arena, KUBE_RESOURCE_SERVICES,
                                             &envelope, &e, &dropped, &error),
                     KUBE_INVALID);

    kube_protobuf_envelope(KUBE_STR(""), true, false, &envelope);
    assert_int_equal(kube_decode_watch_event(&arena, KUBE_RESOURCE_SERVICES,
                                             &envelope, &e, &dropped, &error),
                     KUBE_INVALID);

    t.arena = arena;
    decode_stop(&t);
}


static void
message_of_list_meta(void **state)
{
    message_t         m;
    kube_error_t      error;
    kube_list_meta_t  meta;

    (void) state;

    m.len = 0;
    message_text(&m, 1, "");
    message_text(&m, 2, "900");
    message_text(&m, 3, "token");
    message_number(&m, 4, 12);
    assert_int_equal(kube_decode_list_meta_message(message_str(&m), &meta,
                                                   &error), KUBE_OK);
    assert_str(kube_rv_str(&meta.rv), "900");
    assert_str(meta.continue_token, "token");
    assert_int_equal(meta.remaining, 12);

    /* a number below zero is none */
    message_number(&m, 4, UINT64_MAX - 1);
    assert_int_equal(kube_decode_list_meta_message(message_str(&m), &meta,
                                                   &error), KUBE_OK);
    assert_int_equal(meta.remaining, 12);

    message_text(&m, 3, "a b");
    assert_int_equal(kube_decode_list_meta_message(message_str(&m), &meta,
                                                   &error), KUBE_INVALID);

    m.len = 0;
    message_text(&m, 2, "");
    assert_int_equal(kube_decode_list_meta_message(message_str(&m), &meta,
                                                   &error), KUBE_INVALID);
    assert_int_equal(kube_decode_list_meta_message(KUBE_STR("\x12\x02" "9"),
                                                   &meta, &error),
                     KUBE_INVALID);
}


int
main(void)
{
    int                      rc;
    const char              *path;
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(message_of_cases),
        cmocka_unit_test(message_of_changes),
        cmocka_unit_test(message_of_damage),
        cmocka_unit_test(message_of_cuts),
        cmocka_unit_test(message_of_wire),
        cmocka_unit_test(message_of_metadata),
        cmocka_unit_test(message_of_bools),
        cmocka_unit_test(message_of_usual),
        cmocka_unit_test(message_of_texts),
        cmocka_unit_test(message_of_many),
        cmocka_unit_test(message_of_memory),
        cmocka_unit_test(message_of_events),
        cmocka_unit_test(message_of_list_meta)
    };

    path = getenv("KUBE_MESSAGE_DUMP");
    dump = (path != NULL) ? fopen(path, "w") : NULL;

    rc = cmocka_run_group_tests(tests, NULL, NULL);

    if (dump != NULL) {
        fclose(dump);
    }

    return rc;
}

/*
 * test_envelope - what is known of an object before it is decoded, wherever
 * its bytes are cut.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "decode_test.h"


#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

#define NAME   "\"name\":\"web\","
#define SPACE  "\"namespace\":\"shop\","
#define KEY    NAME SPACE
#define ALL    KEY "\"uid\":\"u-1\",\"resourceVersion\":\"7\""

/* The envelope's texts in the order of the struct, joined by slashes. */
typedef struct {
    const char  *text;
    const char  *texts;     /* type/kind/ns/name/uid/rv */
    const char  *what;      /* NULL: nothing is wrong */
    const char  *object;    /* NULL: there is none */
} envelope_case_t;


/* Members of a list's item, inside its braces. */
static const envelope_case_t  envelope_items[] = {
    { .text = "\"metadata\":{" ALL "}", .texts = "//shop/web/u-1/7" },
    { .text = " \"metadata\" : {" ALL "} , \"kind\"\t:\r\n\"K\" ",
      .texts = "/K/shop/web/u-1/7" },
    { .text = "\"metadata\":{\"resourceVersion\":\"7\"," SPACE
              "\"name\":\"web\"}", .texts = "//shop/web//7" },
    { .text = "\"metadata\":{\"labels\":{\"name\":\"x\",\"n\":[{\"namespace\":"
              "\"y\"}],\"q\":\"\\\"}{\"}," ALL "}",
      .texts = "//shop/web/u-1/7" },
    { .text = "\"metadata\":{\"a\":\"\\u0022,\\\\\",\"b\":[],\"c\":-1.5e+3,"
              "\"d\":true,\"e\":null," ALL "}", .texts = "//shop/web/u-1/7" },
    { .text = "\"metadata\":{" KEY "\"uid\":\"u\"},\"spec\":{\"metadata\":{"
              "\"name\":\"x\"}}", .texts = "//shop/web/u/" },
    { .text = "\"spec\":{\"a\":[{}]},\"x\":[[\"}\"]],\"metadata\":{" ALL "}",
      .texts = "//shop/web/u-1/7" },
    { .text = "\"Metadata\":{" ALL "}", .texts = "/////" },
    { .text = "", .texts = "/////" },

    /* twice, and null */
    { .text = "\"metadata\":{" ALL "},\"metadata\":{\"name\":\"b\"}",
      .texts = "//shop/b/u-1/7" },
    { .text = "\"metadata\":{" ALL "},\"metadata\":null",
      .texts = "//shop/web/u-1/7" },
    { .text = "\"metadata\":{" KEY "\"name\":\"b\",\"name\":null}",
      .texts = "//shop/b//" },
    { .text = "\"kind\":\"A\",\"kind\":null,\"metadata\":{\"name\":null}",
      .texts = "/A////" },

    /* escapes are what they stand for */
    { .text = "\"m\\u0065tadata\":{\"n\\u0061me\":\"w\\u0065b\"}",
      .texts = "///web//" },
    { .text = "\"metadata\":{\"\\u0072\\u0065\\u0073\\u006f\\u0075\\u0072"
              "\\u0063\\u0065\\u0056\\u0065\\u0072\\u0073\\u0069\\u006f\\u006e"
              "\":\"\\u0037\"}", .texts = "/////7" },

    /* of another type, or no text */
    { .text = "\"metadata\":[" KEY "]", .texts = "/////",
      .what = "metadata is no object" },
    { .text = "\"metadata\":\"{\",\"kind\":\"K\"", .texts = "/K////",
      .what = "metadata is no object" },
    { .text = "\"metadata\":7", .texts = "/////",
      .what = "metadata is no object" },
    { .text = "\"metadata\":{\"name\":7," SPACE "\"uid\":\"u\"}",
      .texts = "//shop//u/", .what = "malformed metadata.name" },
    { .text = "\"metadata\":{\"name\":[\"web\"]," SPACE "\"uid\":{}}",
      .texts = "//shop///", .what = "malformed metadata.name" },
    { .text = "\"metadata\":{\"namespace\":true}", .texts = "/////",
      .what = "malformed metadata.namespace" },
    { .text = "\"metadata\":{\"uid\":{\"a\":[]}}", .texts = "/////",
      .what = "malformed metadata.uid" },
    { .text = "\"metadata\":{\"resourceVersion\":7}", .texts = "/////",
      .what = "malformed metadata.resourceVersion" },
    { .text = "\"kind\":1", .texts = "/////", .what = "malformed kind" },
    { .text = "\"kind\":nulx", .texts = "/////", .what = "malformed kind" },
    { .text = "\"metadata\":{\"name\":\"w\\x\"}", .texts = "/////",
      .what = "malformed metadata.name" },

    /* a surprise: the rest is passed over, what was read stays */
    { .text = "\"metadata\":{" ALL "};", .texts = "//shop/web/u-1/7",
      .what = "unreadable JSON" },
    { .text = "\"metadata\":{" ALL ",}", .texts = "//shop/web/u-1/7",
      .what = "unreadable JSON" },
    { .text = "\"metadata\":{" NAME "\"uid\"\"u\"," SPACE "\"a\":{}}",
      .texts = "///web//", .what = "unreadable JSON" },
    { .text = "\"metadata\"={" ALL "}", .texts = "/////",
      .what = "unreadable JSON" },
    { .text = ",\"metadata\":{" ALL "}", .texts = "/////",
      .what = "unreadable JSON" },
    { .text = "\"spec\":,\"metadata\":{" ALL "}", .texts = "/////",
      .what = "unreadable JSON" },
    { .text = "\"spec\":@,\"metadata\":{" ALL "}", .texts = "/////",
      .what = "unreadable JSON" },
    { .text = "\"spec\":1 2,\"metadata\":{" ALL "}", .texts = "/////",
      .what = "unreadable JSON" },
    { .text = "\"spec\":{},,\"metadata\":{" ALL "}", .texts = "/////",
      .what = "unreadable JSON" },
    { .text = "x", .texts = "/////", .what = "unreadable JSON" }
};

/* Whole events. */
static const envelope_case_t  envelope_events[] = {
    { .text = "{\"type\":\"ADDED\",\"object\":{\"kind\":\"K\",\"metadata\":{"
              ALL "}}}", .texts = "ADDED/K/shop/web/u-1/7",
      .object = "{\"kind\":\"K\",\"metadata\":{" ALL "}}" },
    { .text = "{ \"object\" : { \"metadata\" : {" ALL "} } , \"x\" : [{}] ,"
              "\"type\" : \"DELETED\" }", .texts = "DELETED//shop/web/u-1/7",
      .object = "{ \"metadata\" : {" ALL "} }" },
    { .text = "{\"type\":\"ADDED\",\"object\":{}}", .texts = "ADDED/////",
      .object = "{}" },
    { .text = "{\"type\":\"ADDED\",\"object\":null}", .texts = "ADDED/////" },
    { .text = "{\"type\":\"ADDED\"}", .texts = "ADDED/////" },
    { .text = "{\"type\":\"ADDED\",\"metadata\":{" ALL "}}",
      .texts = "ADDED/////" },
    { .text = "{}", .texts = "/////" },
    { .text = "{\"type\":\"A\",\"type\":\"B\",\"type\":null}",
      .texts = "B/////" },
    { .text = "{\"type\":\"ADDE\\u0044\"}", .texts = "ADDED/////" },
    { .text = "{\"type\":\"\"}", .texts = "/////" },

    /* the last object counts, whole */
    { .text = "{\"object\":{\"kind\":\"A\",\"metadata\":{" ALL "}},"
              "\"object\":{\"metadata\":{\"name\":\"b\"}}}",
      .texts = "///b//", .object = "{\"metadata\":{\"name\":\"b\"}}" },
    { .text = "{\"object\":{\"kind\":\"A\",\"a\":[1,2,3,4,5]},\"object\":{x}}",
      .texts = "/////", .what = "unreadable JSON" },
    { .text = "{\"object\":{\"kind\":\"A\"},\"object\":null}",
      .texts = "/A////", .object = "{\"kind\":\"A\"}" },

    { .text = "{\"type\":1,\"object\":{}}", .texts = "/////",
      .what = "malformed type", .object = "{}" },
    { .text = "{\"type\":\"ADDED\",\"object\":[{\"metadata\":{" KEY "}}]}",
      .texts = "ADDED/////", .what = "object is none" },
    { .text = "{\"type\":\"ADDED\",\"object\":\"x\"}", .texts = "ADDED/////",
      .what = "object is none" },
    { .text = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{" ALL "}}x}",
      .texts = "ADDED//shop/web/u-1/7", .what = "unreadable JSON",
      .object = "{\"metadata\":{" ALL "}}" },
    { .text = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{" ALL "}x}}",
      .texts = "ADDED//shop/web/u-1/7", .what = "unreadable JSON" }
};


/* In pieces of step bytes, or cut at a, each in memory of its own. */
static kube_rc_t
envelope_read(kube_envelope_reader_t *r, bool event, const char *text,
    size_t len, size_t a, size_t step, size_t *taken)
{
    char        *piece;
    size_t       at, n;
    kube_rc_t    rc;
    const char  *p;

    kube_envelope_reader_init(r, event);
    rc = KUBE_AGAIN;

    for (at = 0; at < len && rc == KUBE_AGAIN; at += n) {
        n = (step != 0) ? step : (at < a) ? a - at : len - at;
        n = (n < len - at) ? n : len - at;

        piece = malloc(n);
        assert_non_null(piece);
        memcpy(piece, text + at, n);

        p = piece;
        rc = kube_envelope_read(r, &p, piece + n);
        *taken = at + (size_t) (p - piece);

        if (rc == KUBE_AGAIN) {
            assert_ptr_equal(p, piece + n);
        }

        free(piece);
    }

    return rc;
}


static void
envelope_check(const envelope_case_t *c, const kube_envelope_reader_t *r,
    kube_str_t bytes, kube_str_t object)
{
    char             texts[512];
    kube_envelope_t  e;

    kube_envelope_get(r, bytes, &e);

    (void) snprintf(texts, sizeof(texts), "%.*s/%.*s/%.*s/%.*s/%.*s/%.*s",
                    (int) e.type.len, e.type.data,
                    (int) e.kind.len, e.kind.data,
                    (int) e.meta.ns.len, e.meta.ns.data,
                    (int) e.meta.name.len, e.meta.name.data,
                    (int) e.meta.uid.len, e.meta.uid.data,
                    (int) e.meta.rv.len, e.meta.rv.data);

    if (strcmp(texts, c->texts) != 0) {
        fail_msg("%s: %s", c->text, texts);
    }

    assert_string_equal(e.what ? e.what : "", c->what ? c->what : "");
    assert_false(e.too_large);

    if (object.data == NULL) {
        assert_null(e.object.data);

    } else {
        assert_true(kube_str_eq(e.object, object));
    }

    /* where the bytes are not held, all else is as before */
    kube_envelope_get(r, KUBE_STR_NULL, &e);
    assert_true(e.too_large);
    assert_null(e.object.data);
    assert_int_equal(e.meta.name.len == 0, strstr(c->texts, "web") == NULL
                                           && strstr(c->texts, "/b/") == NULL);
}


static void
envelope_run(const envelope_case_t *c, bool event, const char *text,
    kube_str_t object)
{
    size_t                         a, len, taken;
    static kube_envelope_reader_t  r;

    len = strlen(text);

    for (a = 0; a <= len; a++) {
        taken = 0;

        if (envelope_read(&r, event, text, len, a, a == 0, &taken) != KUBE_OK
            || taken != len)
        {
            fail_msg("%s cut at %zu", text, a);
        }

        envelope_check(c, &r, (kube_str_t) { text, len }, object);
    }

    /* what stands behind it is not taken */
    assert_int_equal(envelope_read(&r, event, text, len, len, 0, &taken),
                     KUBE_OK);
    assert_int_equal(taken, len);

    for (a = 1; a < len; a++) {
        assert_int_equal(envelope_read(&r, event, text, a, a, 0, &taken),
                         KUBE_AGAIN);
    }
}


static void
envelope_of_items(void **state)
{
    char                    text[1024];
    size_t                  i;
    kube_str_t              object;
    const envelope_case_t  *c;

    (void) state;

    for (i = 0; i < COUNT(envelope_items); i++) {
        c = &envelope_items[i];
        (void) snprintf(text, sizeof(text), "{%s}", c->text);

        object = (c->what != NULL && strcmp(c->what, "unreadable JSON") == 0)
                     ? KUBE_STR_NULL : kube_str(text);
        envelope_run(c, false, text, object);
    }
}


static void
envelope_of_events(void **state)
{
    size_t                  i;
    const envelope_case_t  *c;

    (void) state;

    for (i = 0; i < COUNT(envelope_events); i++) {
        c = &envelope_events[i];
        envelope_run(c, true, c->text,
                     c->object != NULL ? kube_str(c->object) : KUBE_STR_NULL);
    }
}


/* Brackets that do not match leave no end to be found. */
static void
envelope_broken(void **state)
{
    size_t                         i, a, n, taken;
    static kube_envelope_reader_t  r;
    static const char *const       texts[] = {
        "{]", "{\"a\":[}", "{\"a\":{\"b\":[1}}", "{x]", "{\"metadata\":{]",
        "{\"metadata\":{\"name\":\"a\"]", "{\"metadata\":{x}]"
    };

    (void) state;

    for (i = 0; i < COUNT(texts); i++) {
        n = strlen(texts[i]);

        for (a = 0; a <= n; a++) {
            if (envelope_read(&r, false, texts[i], n, a, a == 0, &taken)
                != KUBE_PROTO)
            {
                fail_msg("%s cut at %zu", texts[i], a);
            }
        }
    }

    /* an event is one line */
    assert_int_equal(envelope_read(&r, true, "{\"type\":\"AD\nDED\"}", 17, 0,
                                   0, &taken), KUBE_PROTO);
    assert_int_equal(envelope_read(&r, true, "{\"a\":[\"b\nc\"]}", 14, 0, 0,
                                   &taken), KUBE_PROTO);
    assert_int_equal(envelope_read(&r, false, "{\"a\":[\"b\nc\"]}", 14, 0, 0,
                                   &taken), KUBE_OK);
    assert_int_equal(envelope_read(&r, false, "[]", 2, 0, 0, &taken),
                     KUBE_PROTO);
}


/* A text that is longer than any that is usable is none. */
static void
envelope_lengths(void **state)
{
    char                           text[4096];
    size_t                         n, len, taken;
    kube_envelope_t                e;
    static kube_envelope_reader_t  r;

    (void) state;

    for (n = 250; n < 1000; n++) {
        len = (size_t) snprintf(text, sizeof(text), "{\"%0*d\":1,\"metadata\":"
                                "{\"uid\":\"%0*d\",\"name\":\"web\"}}",
                                (int) n, 1, (int) n, 2);

        assert_int_equal(envelope_read(&r, false, text, len, 0, 1 + n % 7,
                                       &taken), KUBE_OK);
        kube_envelope_get(&r, (kube_str_t) { text, len }, &e);

        assert_int_equal(e.meta.uid.len,
                         n <= KUBE_ENVELOPE_TEXT_MAX ? n : 0);
        assert_int_equal(e.what == NULL, n <= KUBE_ENVELOPE_TEXT_MAX);
        assert_str(e.meta.name, "web");
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(envelope_of_items),
        cmocka_unit_test(envelope_of_events),
        cmocka_unit_test(envelope_broken),
        cmocka_unit_test(envelope_lengths)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_decode_prefix - the key of what is too large to be held.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_decode_prefix.h"


#define SERVICES  KUBE_RESOURCE_SERVICES
#define SLICES    KUBE_RESOURCE_ENDPOINTSLICES

#define NAME   "\"name\":\"web\","
#define SPACE  "\"namespace\":\"shop\","
#define KEY    NAME SPACE

/* As Go's encoder writes a slice, up to somewhere in its annotations. */
#define GO_META                                                               \
    "\"metadata\":{\"name\":\"web-x.1\",\"generateName\":\"web-\","           \
    "\"namespace\":\"shop\",\"uid\":\"u-1\",\"resourceVersion\":\"2002\","    \
    "\"generation\":3,\"annotations\":{\"name\":\"no\",\"a\":\"xxx"


typedef struct {
    kube_resource_t  resource;
    const char      *text;       /* the members of metadata, open at the end */
    const char      *rv;         /* NULL: KUBE_INVALID */
} prefix_case_t;


static const char  prefix_item[] = "{" GO_META;

static const char  prefix_event[] =
    "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"EndpointSlice\","
    "\"apiVersion\":\"discovery.k8s.io/v1\"," GO_META;


static const prefix_case_t  prefix_cases[] = {
    { SERVICES, KEY "\"resourceVersion\":\"7\"", "7" },
    { SERVICES, " \"name\" :\t\"web\" ,\r\n \"namespace\": \"shop\", "
      "\"resourceVersion\" : \"7\" ", "7" },
    { SERVICES, "\"resourceVersion\":\"7\"," SPACE NAME, "7" },
    { SERVICES, "\"labels\":{\"name\":\"x\",\"n\":[{\"namespace\":\"y\"}],"
      "\"q\":\"\\\"}{\"}," KEY "\"resourceVersion\":\"7\"", "7" },
    { SERVICES, "\"a\":\"\\u0022,\\\\\",\"b\":[],\"c\":-1.5e+3,\"d\":true,"
      "\"e\":null," KEY "\"resourceVersion\":\"7\"", "7" },

    /* the version is not there, or not yet */
    { SERVICES, KEY, "" },
    { SERVICES, KEY "\"resourceVersion\":\"7", "" },
    { SERVICES, KEY "\"uid\":\"u\"}", "" },
    { SERVICES, KEY "\"uid\":\"u\"},\"metadata\":{\"resourceVersion\":\"7\"",
      "" },
    { SERVICES, KEY "\"annotations\":{\"resourceVersion\":\"7\",", "" },
    { SERVICES, KEY "\"generation\":12", "" },

    /* what the API would not take either */
    { SLICES, "\"name\":\"web.a\"," SPACE, "" },
    { SERVICES, "\"name\":\"web.a\"," SPACE, NULL },
    { SERVICES, "\"name\":\"WEB\"," SPACE, NULL },
    { SERVICES, "\"name\":\"\"," SPACE, NULL },
    { SERVICES, "\"name\":\"../x\"," SPACE, NULL },
    { SLICES, "\"name\":\"../x\"," SPACE, NULL },
    { SERVICES, NAME "\"namespace\":\"a.b\",", NULL },
    { SERVICES, NAME "\"namespace\":\"\",", NULL },
    { SERVICES, KEY "\"resourceVersion\":\"0\"", NULL },
    { SERVICES, KEY "\"resourceVersion\":\"07\"", NULL },
    { SERVICES, KEY "\"resourceVersion\":\"7x\"", NULL },
    { SERVICES, KEY "\"resourceVersion\":\"\"", NULL },

    /* other types, twice, missing */
    { SERVICES, "\"name\":7," SPACE, NULL },
    { SERVICES, "\"name\":null," SPACE, NULL },
    { SERVICES, "\"name\":[\"web\"]," SPACE, NULL },
    { SERVICES, KEY "\"resourceVersion\":7", NULL },
    { SERVICES, KEY NAME, NULL },
    { SERVICES, SPACE KEY, NULL },
    { SERVICES, "\"name\":\"\"," KEY, NULL },
    { SERVICES, "\"resourceVersion\":\"7\",\"resourceVersion\":\"7\"," KEY,
      NULL },
    { SERVICES, NAME, NULL },
    { SERVICES, SPACE, NULL },
    { SERVICES, "", NULL },
    { SERVICES, NAME "\"uid\":\"u\"}," SPACE, NULL },
    { SERVICES, "\"labels\":{" KEY "\"x\":1}}", NULL },

    /* escapes and controls */
    { SERVICES, "\"name\":\"w\\u0065b\"," SPACE, NULL },
    { SERVICES, "\"n\\u0061me\":\"web\"," KEY, NULL },
    { SERVICES, KEY "\"resourceVersion\":\"\\u0037\"", NULL },
    { SERVICES, "\"name\":\"web\n\"," SPACE, NULL },
    { SERVICES, "\"a\tb\":1," KEY, NULL },

    /* no JSON */
    { SERVICES, KEY "x", NULL },
    { SERVICES, KEY "}", NULL },
    { SERVICES, KEY "\"uid\"\"u\"", NULL },
    { SERVICES, KEY "\"uid\":\"u\";", NULL },
    { SERVICES, KEY "\"uid\":@", NULL },
    { SERVICES, KEY "\"uid\":\"u\"]", NULL },
    { SERVICES, "\"name\"=\"web\"," SPACE, NULL },
    { SERVICES, ",," KEY, NULL }
};

/* None of them is an item with a key. */
static const char *const  prefix_bad_items[] = {
    "[", "\"", "x", "{}", "{x", "{\"metadata\"", "{\"metadata\":null",
    "{\"metadata\":[" KEY, "{\"metadata\":\"" KEY,
    "{\"spec\":1 2,\"metadata\":{" KEY,
    "{\"spec\":{\"metadata\":{" KEY "}}", "{\"Metadata\":{" KEY,
    "{\"m\\u0065tadata\":{" KEY, "{\"spec\":,\"metadata\":{" KEY,
    "{\"spec\":{},,\"metadata\":{" KEY
};

static const char *const  prefix_bad_events[] = {
    "{\"object\":{\"metadata\":{" KEY,
    "{\"object\":{\"metadata\":{" KEY "\"resourceVersion\":\"7\"}},"
    "\"type\":\"ADDED\"}",
    "{\"type\":\"ADDED\",\"type\":\"DELETED\",\"object\":{\"metadata\":{" KEY,
    "{\"type\":\"\",\"object\":{\"metadata\":{" KEY,
    "{\"type\":1,\"object\":{\"metadata\":{" KEY,
    "{\"type\":\"ADDE\\u0044\",\"object\":{\"metadata\":{" KEY,
    "{\"type\":\"added\",\"object\":{\"metadata\":{" KEY,
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{" KEY,
    "{\"type\":\"ERROR\",\"object\":{\"metadata\":{" KEY,
    "{\"type\":\"ADDED\",\"metadata\":{" KEY,
    "{\"type\":\"ADDED\",\"object\":[{\"metadata\":{" KEY
};


#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))


#define assert_str(s, expected)                                               \
    assert_true(kube_str_eq(s, kube_str(expected)))


/* From memory that ends where the text does. */
static kube_rc_t
prefix_read(kube_resource_t resource, const char *text, size_t len,
    char **copy, kube_object_t *object)
{
    *copy = malloc(len != 0 ? len : 1);
    assert_non_null(*copy);
    memcpy(*copy, text, len);

    return kube_decode_prefix_object(resource, (kube_str_t) { *copy, len },
                                     object);
}


static void
prefix_table(void **state)
{
    int                   n;
    char                 *copy;
    size_t                i;
    kube_rc_t             rc;
    static char           text[1024];
    kube_object_t         object;
    const kube_meta_t    *meta;
    const prefix_case_t  *c;

    (void) state;

    for (i = 0; i < COUNT(prefix_cases); i++) {
        c = &prefix_cases[i];
        n = snprintf(text, sizeof(text), "{\"kind\":\"K\",\"metadata\":{%s",
                     c->text);
        assert_in_range(n, 1, sizeof(text) - 1);

        rc = prefix_read(c->resource, text, (size_t) n, &copy, &object);

        if (rc != (c->rv != NULL ? KUBE_OK : KUBE_INVALID)) {
            fail_msg("%s gave %d", text, (int) rc);
        }

        meta = kube_object_meta(&object);
        assert_int_equal(object.resource, c->resource);
        assert_int_equal(meta->uid.len, 0);

        if (rc == KUBE_OK) {
            assert_str(meta->ns, "shop");
            assert_true(meta->name.len >= 3
                        && memcmp(meta->name.data, "web", 3) == 0);
            assert_str(meta->rv, c->rv);

        } else {
            assert_int_equal(meta->ns.len + meta->name.len + meta->rv.len, 0);
        }

        free(copy);
    }
}


static void
prefix_bad(void **state)
{
    size_t              i;
    kube_object_t       object;
    kube_watch_event_t  event;

    (void) state;

    for (i = 0; i < COUNT(prefix_bad_items); i++) {
        if (kube_decode_prefix_object(SERVICES, kube_str(prefix_bad_items[i]),
                                      &object)
            != KUBE_INVALID)
        {
            fail_msg("%s", prefix_bad_items[i]);
        }
    }

    for (i = 0; i < COUNT(prefix_bad_events); i++) {
        if (kube_decode_prefix_event(SERVICES, kube_str(prefix_bad_events[i]),
                                     &event)
            != KUBE_INVALID)
        {
            fail_msg("%s", prefix_bad_events[i]);
        }
    }

    assert_int_equal(kube_decode_prefix_object(SERVICES, KUBE_STR_NULL,
                                               &object), KUBE_INVALID);
    assert_int_equal(kube_decode_prefix_event(SERVICES, KUBE_STR_NULL,
                                              &event), KUBE_INVALID);
}


/* Where text has been read up to what, what included. */
static size_t
prefix_behind(const char *text, const char *what)
{
    const char  *p;

    p = strstr(text, what);
    assert_non_null(p);

    return (size_t) (p - text) + strlen(what);
}


static void
prefix_item_cuts(void **state)
{
    char               *copy;
    size_t              len, key, version;
    kube_rc_t           rc;
    kube_object_t       object;
    const kube_meta_t  *meta;

    (void) state;

    key = prefix_behind(prefix_item, "\"namespace\":\"shop\"");
    version = prefix_behind(prefix_item, "\"2002\"");

    for (len = 0; len < sizeof(prefix_item); len++) {
        rc = prefix_read(SLICES, prefix_item, len, &copy, &object);
        meta = kube_object_meta(&object);

        assert_int_equal(rc, len < key ? KUBE_INVALID : KUBE_OK);

        if (rc == KUBE_OK) {
            assert_str(meta->name, "web-x.1");
            assert_str(meta->ns, "shop");
            assert_str(meta->rv, len < version ? "" : "2002");
        }

        free(copy);
    }
}


static void
prefix_event_cuts(void **state)
{
    char                *copy;
    size_t               len, key, version;
    kube_rc_t            rc;
    kube_watch_event_t   e;

    (void) state;

    key = prefix_behind(prefix_event, "\"namespace\":\"shop\"");
    version = prefix_behind(prefix_event, "\"2002\"");

    for (len = 0; len < sizeof(prefix_event); len++) {
        copy = malloc(len != 0 ? len : 1);
        assert_non_null(copy);
        memcpy(copy, prefix_event, len);

        rc = kube_decode_prefix_event(SLICES, (kube_str_t) { copy, len }, &e);

        assert_int_equal(rc, len < key ? KUBE_INVALID : KUBE_OK);
        assert_int_equal(e.object_rc, KUBE_TOO_LARGE);

        if (rc == KUBE_OK) {
            assert_int_equal(e.type, KUBE_WATCH_MODIFIED);
            assert_str(kube_object_meta(&e.object)->name, "web-x.1");
            assert_str(kube_rv_str(&e.rv), len < version ? "" : "2002");
        }

        free(copy);
    }
}


static void
prefix_event_types(void **state)
{
    kube_watch_event_t  e;

    (void) state;

    assert_int_equal(kube_decode_prefix_event(SERVICES,
        KUBE_STR("{\"type\":\"ADDED\",\"object\":{\"metadata\":{" KEY), &e),
        KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_ADDED);
    assert_int_equal(e.rv.len, 0);

    assert_int_equal(kube_decode_prefix_event(SERVICES,
        KUBE_STR("{ \"x\" : [ { } ] , \"type\" : \"DELETED\" , \"object\" : "
                 "{ \"metadata\" : {" KEY "\"resourceVersion\":\"9\""), &e),
        KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_DELETED);
    assert_str(kube_rv_str(&e.rv), "9");
    assert_str(e.object.u.service.meta.name, "web");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(prefix_table),
        cmocka_unit_test(prefix_bad),
        cmocka_unit_test(prefix_item_cuts),
        cmocka_unit_test(prefix_event_cuts),
        cmocka_unit_test(prefix_event_types)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

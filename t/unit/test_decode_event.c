/*
 * test_decode_event - watch events and list metadata.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "decode_test.h"


static const char  decode_event[] =
    "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"EndpointSlice\","
    "\"apiVersion\":\"discovery.k8s.io/v1\",\"metadata\":{"
    "\"name\":\"web-abc12\",\"namespace\":\"shop\",\"uid\":\"7d1c\","
    "\"resourceVersion\":\"2002\"},\"addressType\":\"IPv6\",\"endpoints\":["
    "{\"addresses\":[\"fd00::5\"],\"conditions\":{\"ready\":true}}],"
    "\"ports\":[]}}";


static kube_rc_t
decode_watch(decode_test_t *t, kube_resource_t resource, const char *text,
    kube_watch_event_t *event)
{
    kube_arena_reset(&t->arena);

    if (decode_envelope(t, true, text, strlen(text)) != KUBE_OK) {
        return KUBE_INVALID;
    }

    return kube_decode_watch_event(&t->arena, resource, &t->envelope, event,
                                   &t->dropped, &t->error);
}


static const char  decode_error[] =
    "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\"}}";


static void
decode_watch_objects(void **state)
{
    decode_test_t       t;
    kube_watch_event_t  e;

    (void) state;

    decode_start(&t);

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                  decode_event, &e), KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_MODIFIED);
    assert_int_equal(e.object_rc, KUBE_OK);
    assert_str(e.object.u.slice.meta.name, "web-abc12");
    assert_int_equal(e.object.u.slice.endpoints_n, 1);
    assert_str(kube_rv_str(&e.rv), "2002");

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"ADDED\",\"object\":{" META "}}", &e), KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_ADDED);
    assert_int_equal(e.object_rc, KUBE_OK);

    /* members in the other order, DELETED */
    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"object\":{" META "},\"type\":\"DELETED\",\"x\":1}\n", &e),
        KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_DELETED);
    assert_str(kube_rv_str(&e.rv), "7");

    /* an object that is to be skipped still moves the version */
    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                  "{\"type\":\"ADDED\",\"object\":{" META "}}",
                                  &e), KUBE_OK);
    assert_int_equal(e.object_rc, KUBE_INVALID);
    assert_non_null(t.error.what);
    assert_str(kube_rv_str(&e.rv), "7");
    assert_str(kube_object_meta(&e.object)->name, "web");

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\"," META "}}", &e),
        KUBE_OK);
    assert_int_equal(e.object_rc, KUBE_INVALID);
    assert_string_equal(t.error.what, "wrong kind");
    assert_str(e.object.u.service.meta.name, "web");

    /* the end of something else is nobody's here */
    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"DELETED\",\"object\":{\"kind\":\"Pod\"," META "}}", &e),
        KUBE_INVALID);
    assert_string_equal(t.error.what, "wrong kind");

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"ADDED\",\"object\":null}", &e), KUBE_INVALID);
    assert_int_equal(e.rv.len, 0);

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"ADDED\"}", &e), KUBE_INVALID);

    decode_stop(&t);
}


static void
decode_watch_others(void **state)
{
    decode_test_t       t;
    kube_watch_event_t  e;

    (void) state;

    decode_start(&t);

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Service\","
        "\"metadata\":{\"resourceVersion\":\"99\"},\"spec\":{}}}", &e),
        KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_BOOKMARK);
    assert_int_equal(e.object_rc, KUBE_OK);
    assert_false(e.initial_events_end);
    assert_str(kube_rv_str(&e.rv), "99");

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":"
        "\"99\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}",
        &e), KUBE_OK);
    assert_true(e.initial_events_end);

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":"
        "\"0\",\"annotations\":{\"k8s.io/initial-events-end\":true}}}}",
        &e), KUBE_OK);
    assert_false(e.initial_events_end);
    assert_int_equal(e.rv.len, 0);

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410 }}",
        &e), KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_ERROR);
    assert_str(e.status_text, "{\"kind\":\"Status\",\"code\":410 }");

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"ERROR\"}", &e), KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_ERROR);
    assert_int_equal(e.status_text.len, 0);

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"RENAMED\",\"object\":{" META "}}", &e), KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_UNKNOWN);

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":\"added\",\"object\":{" META "}}", &e), KUBE_OK);
    assert_int_equal(e.type, KUBE_WATCH_UNKNOWN);

    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"kind\":\"Status\"}", &e), KUBE_INVALID);
    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES,
        "{\"type\":1}", &e), KUBE_INVALID);
    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES, "[]", &e),
                     KUBE_INVALID);
    assert_int_equal(decode_watch(&t, KUBE_RESOURCE_SERVICES, "{", &e),
                     KUBE_INVALID);

    decode_stop(&t);
}


static kube_rc_t
decode_list(decode_test_t *t, const char *text, kube_list_meta_t *meta)
{
    kube_arena_reset(&t->arena);

    return kube_decode_list_meta(&t->arena, kube_str(text), meta, &t->error);
}


static void
decode_lists(void **state)
{
    char              *text;
    decode_test_t      t;
    kube_list_meta_t   m;

    (void) state;

    decode_start(&t);

    assert_int_equal(decode_list(&t, "{\"resourceVersion\":\"12\"}", &m),
                     KUBE_OK);
    assert_str(kube_rv_str(&m.rv), "12");
    assert_int_equal(m.continue_token.len, 0);
    assert_int_equal(m.remaining, -1);

    assert_int_equal(decode_list(&t,
        "{\"resourceVersion\":\"12\",\"continue\":\"eyJ2IjoibWV0YSJ9\","
        "\"remainingItemCount\":9500,\"selfLink\":\"\"}", &m), KUBE_OK);
    assert_str(m.continue_token, "eyJ2IjoibWV0YSJ9");
    assert_int_equal(m.remaining, 9500);

    assert_int_equal(decode_list(&t,
        "{\"resourceVersion\":\"12\",\"continue\":\"\","
        "\"remainingItemCount\":-5}", &m), KUBE_OK);
    assert_int_equal(m.continue_token.len, 0);
    assert_int_equal(m.remaining, -1);

    assert_int_equal(decode_list(&t,
        "{\"resourceVersion\":\"12\",\"continue\":null,"
        "\"remainingItemCount\":1e30}", &m), KUBE_OK);
    assert_int_equal(m.remaining, -1);

    assert_int_equal(decode_list(&t, "{}", &m), KUBE_INVALID);
    assert_int_equal(decode_list(&t, "{\"resourceVersion\":\"\"}", &m),
                     KUBE_INVALID);
    assert_int_equal(decode_list(&t, "[]", &m), KUBE_INVALID);
    assert_int_equal(decode_list(&t,
        "{\"resourceVersion\":\"1\",\"continue\":5}", &m), KUBE_INVALID);
    assert_int_equal(decode_list(&t,
        "{\"resourceVersion\":\"1\",\"continue\":\"a\\r\\nb\"}", &m),
        KUBE_INVALID);

    text = malloc(8192);
    assert_non_null(text);
    (void) snprintf(text, 8192, "{\"resourceVersion\":\"1\","
                    "\"continue\":\"%0*d\"}", KUBE_CONTINUE_LEN_MAX, 1);
    assert_int_equal(decode_list(&t, text, &m), KUBE_OK);
    (void) snprintf(text, 8192, "{\"resourceVersion\":\"1\","
                    "\"continue\":\"%0*d\"}", KUBE_CONTINUE_LEN_MAX + 1, 1);
    assert_int_equal(decode_list(&t, text, &m), KUBE_INVALID);
    free(text);

    decode_stop(&t);
}


/* Cut at each byte: never an event. */
static void
decode_watch_truncated(void **state)
{
    size_t         i;
    decode_test_t  t;

    (void) state;

    decode_start(&t);

    for (i = 1; i < sizeof(decode_event) - 1; i++) {
        assert_int_equal(decode_envelope(&t, true, decode_event, i),
                         KUBE_INVALID);
    }

    decode_stop(&t);
}


/* Both the memory behind the arena and the arena itself run out. */
static void
decode_oom_body(alloc_test_t *at, void *ctx)
{
    uint32_t            dropped;
    kube_rc_t           rc;
    kube_arena_t        arena;
    decode_test_t       t;
    kube_error_t        error;
    kube_list_meta_t    meta;
    kube_watch_event_t  event;

    kube_arena_init(&arena, &at->alloc, *(size_t *) ctx);
    t.copy = NULL;

    /* a Status is handed on as it is: it takes no memory */
    assert_int_equal(decode_envelope(&t, true, decode_error,
                                     sizeof(decode_error) - 1), KUBE_OK);
    assert_int_equal(kube_decode_watch_event(&arena, KUBE_RESOURCE_SERVICES,
                                             &t.envelope, &event, &dropped,
                                             &error), KUBE_OK);
    assert_int_equal(event.status_text.len, 17);
    kube_arena_reset(&arena);

    assert_int_equal(decode_envelope(&t, true, decode_event,
                                     sizeof(decode_event) - 1), KUBE_OK);

    rc = kube_decode_watch_event(&arena, KUBE_RESOURCE_ENDPOINTSLICES,
                                 &t.envelope, &event, &dropped, &error);
    assert_true(rc == KUBE_OK || rc == KUBE_NOMEM);
    assert_true(rc == KUBE_OK || rc == error.rc);
    assert_true(rc != KUBE_NOMEM || at->failed);
    assert_str(kube_object_meta(&event.object)->name, "web-abc12");

    if (rc == KUBE_OK && event.object_rc == KUBE_OK) {
        assert_int_equal(event.object.u.slice.endpoints_n, 1);

    } else {
        assert_int_equal(event.object.u.slice.endpoints_n, 0);
    }

    kube_arena_reset(&arena);

    rc = kube_decode_list_meta(&arena, KUBE_STR("{\"resourceVersion\":"
                                                "\"\\u0031\"}"),
                               &meta, &error);
    assert_true(rc == KUBE_OK || rc == KUBE_NOMEM || rc == KUBE_INVALID);
    assert_true(rc == KUBE_OK || rc == error.rc);
    assert_true(rc != KUBE_NOMEM || at->failed);

    kube_arena_done(&arena);
    free(t.copy);
}


static void
decode_out_of_memory(void **state)
{
    size_t  max;

    (void) state;

    for (max = 256; max < 16384; max += 112) {
        ALLOC_TEST_RUN(decode_oom_body, &max);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(decode_watch_objects),
        cmocka_unit_test(decode_watch_others),
        cmocka_unit_test(decode_lists),
        cmocka_unit_test(decode_watch_truncated),
        cmocka_unit_test(decode_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_decode_partial - the metadata of a Pod: as the server sends it when it
 * is asked for that alone, and from a whole Pod; through a record, and through
 * the API server's lister-watcher.
 *
 * Each row is "metadata" behind its name and version, and what is kept of it
 * as text: the labels, and behind "@" the time of deletion.  The stream's
 * reader makes the same of it (kube_decode_scan).
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "decode_test.h"
#include "io_bed.h"
#include "kube_api_lister_watcher.h"
#include "kube_decode_scan.h"
#include "kube_record.h"


#define KEY                                                                   \
    "\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\","                \
    "\"uid\":\"u-1\",\"resourceVersion\":\"7\""

#define PARTIAL                                                               \
    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
#define WHOLE   "{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
#define SPEC    ",\"spec\":{\"containers\":[{\"name\":\"c\"}]},\"status\":{}"

#define POD(name, rv)                                                         \
    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","  \
    "\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\","             \
    "\"uid\":\"u-" name "\",\"resourceVersion\":\"" rv "\"}}"

typedef struct {
    const char  *more;       /* of metadata, behind its resourceVersion */
    const char  *kept;       /* NULL: the object is refused */
    uint32_t     dropped;
} row_t;

static char  too_many[KUBE_LABELS_MAX * 16 + 64];
static char  just_enough[sizeof(too_many)];
static char  all_kept[sizeof(too_many)];

static const row_t  rows[] = {
    { "", "", 0 },
    { ",\"labels\":{}", "", 0 },
    { ",\"labels\":null", "", 0 },
    { ",\"labels\":{\"app\":\"web\"}", "app=web ", 0 },
    { ",\"labels\":{\"app\":\"web\",\"app.kubernetes.io/name\":\"\"}",
      "app=web app.kubernetes.io/name= ", 0 },

    /* in the order of their names, and the last of two counts */
    { ",\"labels\":{\"b\":\"1\",\"c\":\"2\",\"a\":\"3\",\"b\":\"4\"}",
      "a=3 b=4 c=2 ", 0 },
    { ",\"labels\":{\"b\":\"1\"},\"labels\":{\"a\":\"2\"}", "a=2 b=1 ", 0 },
    { ",\"labels\":{\"b\":\"1\"},\"labels\":null", "", 0 },
    { ",\"labels\":{\"a\\/b\":\"1\\u0032\",\"c\":null}", "a/b=12 c= ", 0 },

    /* what is bad costs itself */
    { ",\"labels\":7", "", 1 },
    { ",\"labels\":{\"a\":1,\"b\":{},\"c\":\"d e\",\"f g\":\"\",\"\":\"h\","
      "\"i\":\"j\"}", "i=j ", 5 },
    { ",\"labels\":{\"a\":\""
      "0123456789012345678901234567890123456789012345678901234567890123"
      "\"}", "", 1 },

    { ",\"deletionTimestamp\":\"2026-03-01T00:00:00Z\"", "@1772323200000", 0 },
    { ",\"deletionTimestamp\":null", "", 0 },
    { ",\"deletionTimestamp\":\"2026-03-01T00:00:00Z\","
      "\"deletionTimestamp\":null", "", 0 },
    { ",\"deletionTimestamp\":\"soon\"", "", 1 },
    { ",\"deletionTimestamp\":7", "", 1 },
    { ",\"creationTimestamp\":\"2026-03-01T00:00:00Z\",\"labels\":{\"a\":"
      "\"b\"},\"annotations\":{\"labels\":\"x\"},\"managedFields\":[{"
      "\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{}}}}]", "a=b ", 0 },

    { just_enough, all_kept, 0 },
    { too_many, NULL, 0 },
    { ",\"labels\":{\"a\":\"b\"", NULL, 0 }
};


static void
many_labels(char *to, char *kept, size_t n)
{
    size_t  i, len, kept_len;

    len = (size_t) snprintf(to, sizeof(too_many), ",\"labels\":{");
    kept_len = 0;

    for (i = 0; i < n; i++) {
        len += (size_t) snprintf(to + len, sizeof(too_many) - len,
                                 "%s\"l%03zu\":\"v\"", i ? "," : "", i);
        kept_len += (size_t) snprintf(kept + kept_len,
                                      sizeof(all_kept) - kept_len,
                                      "l%03zu=v ", i);
    }

    (void) snprintf(to + len, sizeof(too_many) - len, "}");
}


static void
kept_of(const kube_partial_t *partial, char *out, size_t size)
{
    size_t               i, n;
    const kube_label_t  *label;

    n = 0;
    out[0] = '\0';

    for (i = 0; i < partial->labels_n; i++) {
        label = &partial->labels[i];
        n += (size_t) snprintf(out + n, size - n, "%.*s=%.*s ",
                               (int) label->name.len, label->name.data,
                               (int) label->value.len,
                               label->value.len ? label->value.data : "");
    }

    if (partial->deletion_ms != 0) {
        n += (size_t) snprintf(out + n, size - n, "@%lld",
                               (long long) partial->deletion_ms);
    }

    assert_true(n < size);
}


/* The same through a record, and no byte of it need be good. */
static void
check_record(decode_test_t *t, const char *kept)
{
    char             again[sizeof(all_kept)];
    size_t           size, i, k;
    kube_object_t    object;
    unsigned char   *record;

    static const unsigned char  flips[] = { 0x81, 0xff, 0x01 };

    size = kube_record_size(&t->object);
    assert_true(size != 0);
    record = malloc(size);
    assert_non_null(record);
    kube_record_encode(&t->object, record);

    assert_int_equal(kube_record_validate(record, size), KUBE_OK);
    assert_int_equal(kube_record_decode(&t->arena, record, size, &object),
                     KUBE_OK);
    assert_int_equal(object.resource, KUBE_RESOURCE_PODS);
    assert_str(object.u.meta.uid, "u-1");
    assert_str(object.u.meta.rv, "7");
    kept_of(&object.u.partial, again, sizeof(again));
    assert_string_equal(again, kept);

    for (i = sizeof(kube_record_t); i < size && size < 512; i++) {
        for (k = 0; k < sizeof(flips); k++) {
            record[i] ^= flips[k];

            if (kube_record_decode(&t->arena, record, size, &object)
                == KUBE_OK)
            {
                kept_of(&object.u.partial, again, sizeof(again));
            }

            record[i] ^= flips[k];
        }
    }

    free(record);
}


/* What kube_decode_scan makes of it, unless that leaves it to the others. */
static bool
check_scan(decode_test_t *t, const char *text, const char *kept)
{
    char                 again[sizeof(all_kept)];
    size_t               len;
    uint32_t             dropped;
    kube_str_t           in;
    kube_object_t        object;
    kube_envelope_t      envelope;
    kube_decode_scan_t   scan;

    in = decode_copy(t, text, strlen(text));
    memset(&envelope, 0, sizeof(envelope));

    if (kube_decode_scan_head(&scan, KUBE_RESOURCE_PODS, false, in, &envelope)
        != KUBE_OK
        || kube_decode_scan_body(&scan, &t->arena, &envelope, &object,
                                 &dropped, &len)
           != KUBE_OK)
    {
        return false;
    }

    assert_int_equal(len, in.len);
    assert_int_equal(dropped, t->dropped);
    kept_of(&object.u.partial, again, sizeof(again));
    assert_string_equal(again, kept);

    return true;
}


static void
test_rows(void **state)
{
    char           text[2 * sizeof(too_many)], kept[sizeof(all_kept)];
    size_t         i, k, scanned;
    kube_rc_t      rc;
    decode_test_t  t;

    static const struct {
        const char  *begin;
        const char  *end;
    } forms[] = {
        { PARTIAL, "}}" },        /* as asked for */
        { "{", "}}" },            /* an item without its kind */
        { WHOLE, "}" SPEC "}" },  /* all of it */
        { "{", "}" SPEC "}" }
    };

    (void) state;

    many_labels(too_many, all_kept, KUBE_LABELS_MAX + 1);
    many_labels(just_enough, all_kept, KUBE_LABELS_MAX);
    scanned = 0;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (k = 0; k < sizeof(forms) / sizeof(forms[0]); k++) {
            decode_start(&t);
            (void) snprintf(text, sizeof(text), "%s%s%s%s", forms[k].begin,
                            KEY, rows[i].more, forms[k].end);
            rc = decode_run(&t, KUBE_RESOURCE_PODS, text, strlen(text));

            if (rows[i].kept == NULL) {
                assert_int_equal(rc, KUBE_INVALID);
                decode_stop(&t);
                continue;
            }

            assert_int_equal(rc, KUBE_OK);
            kept_of(&t.object.u.partial, kept, sizeof(kept));

            if (strcmp(kept, rows[i].kept) != 0
                || t.dropped != rows[i].dropped)
            {
                fail_msg("row %zu: %s (%u)", i, kept, t.dropped);
            }

            check_record(&t, kept);
            scanned += check_scan(&t, text, kept);
            decode_stop(&t);
        }
    }

    assert_true(scanned > 40);
}


static void
test_other_kinds(void **state)
{
    size_t         i;
    decode_test_t  t;

    static const struct {
        kube_resource_t   resource;
        const char       *text;
        const char       *what;
    } cases[] = {
        { KUBE_RESOURCE_PODS, "{\"kind\":\"Service\"," KEY "}}",
          "wrong kind" },
        { KUBE_RESOURCE_PODS, "{\"apiVersion\":\"v2\"," KEY "}}",
          "wrong apiVersion" },
        { KUBE_RESOURCE_SERVICES, PARTIAL KEY "}}", "wrong kind" },
        { KUBE_RESOURCE_SERVICES,
          "{\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"name\":\"a\","
          "\"namespace\":\"b\",\"uid\":\"c\",\"resourceVersion\":\"1\"}}",
          "wrong apiVersion" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        decode_start(&t);
        assert_int_equal(decode_run(&t, cases[i].resource, cases[i].text,
                                    strlen(cases[i].text)),
                         KUBE_INVALID);

        assert_string_equal(t.error.what, cases[i].what);

        decode_stop(&t);
    }
}


/* Labels that no server orders so, or has twice, are no record. */
static void
test_record_order(void **state)
{
    size_t         i;
    char           text[512];
    kube_object_t  object;
    kube_label_t   labels[2];

    static const char *const  names[][2] = {
        { "b", "a" }, { "a", "a" }, { "", "a" }
    };

    (void) state;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        memset(&object, 0, sizeof(object));
        memset(labels, 0, sizeof(labels));

        labels[0].name = kube_str(names[i][0]);
        labels[1].name = kube_str(names[i][1]);

        object.resource = KUBE_RESOURCE_PODS;
        object.u.meta.ns = KUBE_STR("shop");
        object.u.meta.name = KUBE_STR("web-1");
        object.u.partial.labels = labels;
        object.u.partial.labels_n = 2;
        assert_int_equal(kube_record_write(&object, text, sizeof(text)), 0);
    }
}


static void
test_asked_for(void **state)
{
    unsigned  r;

    (void) state;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        assert_string_equal(kube_resource_accept(r, false),
                            "application/json");
        assert_string_equal(kube_resource_accept(r, true),
                            "application/json");
    }

    assert_non_null(strstr(kube_resource_accept(KUBE_RESOURCE_PODS, false),
                           "application/json;as=PartialObjectMetadataList;"
                           "g=meta.k8s.io;v=v1"));
    assert_non_null(strstr(kube_resource_accept(KUBE_RESOURCE_PODS, true),
                           "application/json;as=PartialObjectMetadata;"
                           "g=meta.k8s.io;v=v1"));
}


/* Lists and watches, of both forms, to what the reflector is told. */
static void
test_source(void **state)
{
    size_t                           i, n;
    io_bed_t                         io;
    alloc_test_t                     at;
    kube_call_t                     *call;
    kube_result_t                    result;
    io_exchange_t                   *x;
    kube_list_options_t              options;
    kube_lister_watcher_t            lw;
    kube_api_lister_watcher_conf_t   conf;

    static const struct {
        bool         watch;
        const char  *body;
        size_t       objects;
        bool         bookmark;
        bool         fails;
    } cases[] = {
        { false, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":"
          "\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"9\"},"
          "\"items\":[" POD("a", "3") "," POD("b", "4") "]}", 2, false,
          false },
        { false, "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{"
          "\"resourceVersion\":\"9\"},\"items\":[{" KEY "}" SPEC "}]}", 1,
          false, false },
        { false, "{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\","
          "\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[]}", 0, false,
          true },
        { true, "{\"type\":\"ADDED\",\"object\":" POD("a", "6") "}\n"
          "{\"type\":\"MODIFIED\",\"object\":" WHOLE KEY "}" SPEC "}}\n"
          "{\"type\":\"BOOKMARK\",\"object\":" PARTIAL "\"metadata\":{"
          "\"resourceVersion\":\"9\",\"annotations\":{"
          "\"k8s.io/initial-events-end\":\"true\"}}}}\n", 2, true, false }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&io, 0, sizeof(io));
        memset(&conf, 0, sizeof(conf));
        memset(&options, 0, sizeof(options));
        alloc_test_init(&at);
        io.now_ms = 5000000;

        conf.io = io_of(&io);
        conf.resource = KUBE_RESOURCE_PODS;
        conf.object_bytes_max = KUBE_OBJECT_BYTES_MIN;
        assert_int_equal(kube_api_lister_watcher_create(&at.alloc, &conf,
                                                        &lw), KUBE_OK);
        call = cases[i].watch ? lw.watch(lw.ctx, &options, io.now_ms)
                              : lw.list(lw.ctx, &options, io.now_ms);
        assert_non_null(call);

        x = io_find(&io, "/api/v1/pods");
        assert_non_null(x);
        assert_true(io_head(x, 200, "application/json", 0));
        (void) io_body(&io, x, cases[i].body);
        io_done(x, KUBE_OK, "");

        for (n = 0; lw.next(lw.ctx, call, &result) == KUBE_OK; ) {

            if (result.kind == KUBE_RESULT_ITEM
                || result.kind == KUBE_RESULT_EVENT)
            {
                assert_int_equal(result.refusal, KUBE_REFUSAL_NONE);
                n++;
            }

            if (result.kind == KUBE_RESULT_BOOKMARK) {
                assert_true(cases[i].bookmark && result.initial_events_end);
            }

            if (result.kind == KUBE_RESULT_END) {
                assert_int_equal(result.rc != KUBE_OK, cases[i].fails);
            }
        }

        assert_int_equal(n, cases[i].objects);

        lw.cancel(lw.ctx, call);
        lw.destroy(lw.ctx);
        alloc_test_assert_no_leak(&at);
    }
}


static void
decode_oom(alloc_test_t *at, void *ctx)
{
    char           text[2 * sizeof(too_many)];
    kube_rc_t      rc;
    decode_test_t  t;

    (void) ctx;

    decode_start(&t);
    kube_arena_done(&t.arena);
    kube_arena_init(&t.arena, &at->alloc, 1u << 20);

    (void) snprintf(text, sizeof(text), PARTIAL KEY "%s}}", just_enough);
    rc = decode_run(&t, KUBE_RESOURCE_PODS, text, strlen(text));
    alloc_test_assert_rc(at, rc);
    assert_true(rc == KUBE_OK || at->failed);

    decode_stop(&t);
}


static void
test_decode_oom(void **state)
{
    (void) state;

    many_labels(just_enough, all_kept, KUBE_LABELS_MAX);
    ALLOC_TEST_RUN(decode_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_other_kinds),
        cmocka_unit_test(test_record_order),
        cmocka_unit_test(test_asked_for),
        cmocka_unit_test(test_source),
        cmocka_unit_test(test_decode_oom)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_frame - items and events whatever the pieces the bytes arrive in.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_frame.h"


#define FRAME_LOG_MAX  4096

#define FRAME_META(name)                                                      \
    "{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"77\"},\"a\":"


/* What a run gave, as text: one line an item, then the last result. */
typedef struct {
    char    text[FRAME_LOG_MAX];
    size_t  len;
} frame_log_t;

typedef struct {
    const char  *in;
    const char  *out;
} frame_case_t;


static const char  frame_watch[] =
    "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a}\\\"{\"},"
    "\"l\":[{},[]]}}\n"
    "\r\n{\"type\":\"MODIFIED\",\"object\":{\"x\":\"\\\\\",\"y\":\"\\\\\\\"\"}}"
    "\r\n\n"
    "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}\n";

static const char  frame_watch_out[] =
    "I{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a}\\\"{\"},"
    "\"l\":[{},[]]}}\n"
    "I{\"type\":\"MODIFIED\",\"object\":{\"x\":\"\\\\\",\"y\":\"\\\\\\\"\"}}\n"
    "I{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}\n"
    ".\n";

static const char  frame_list[] =
    " {\"kind\" : \"ServiceList\",\"apiVersion\":\"v1\", \"metadata\":"
    "{\"resourceVersion\":\"12\",\"a\":[\"]\"]},\"extra\":{\"items\":[1]},"
    "\"n\":-1.5e3,\"t\":true,\"u\":null,\"a-very-long-member-name-here\":[[]],"
    "\n\"items\":[ {\"a\":1} ,\n{\"b\":{\"c\":\"}]\"}},{}\t] ,\"s\":\"x\" }\n";

static const char  frame_list_out[] =
    "K\"ServiceList\"\nM{\"resourceVersion\":\"12\",\"a\":[\"]\"]}\n"
    "I{\"a\":1}\nI{\"b\":{\"c\":\"}]\"}}\nI{}\nE\n.\n";


static const frame_case_t  frame_lists[] = {
    { "{\"items\":[]}", "E\n.\n" },
    { "{\"items\":null}", "E\n.\n" },
    { "{\"items\":null,\"kind\":\"L\"}", "K\"L\"\nE\n.\n" },
    { "{\"items\":[{}]}\r\n  ", "I{}\nE\n.\n" },
    { "{\"items\":[{}],\"metadata\":{}}", "I{}\nM{}\nE\n.\n" },
    { "{\"kind\":\"a\",\"kind\":\"b\",\"items\":[]}",
      "K\"a\"\nK\"b\"\nE\n.\n" },
    { "{\"x\":1,\"items\":[]}", "E\n.\n" },
    { "{\"itemsitemsitemsitems\":[{}],\"items\":[]}", "E\n.\n" },
    { "{\"Items\":[{}],\"items\":[]}", "E\n.\n" },

    { "", ".\n" },
    { "  ", ".\n" },
    { "{", "~\n" },
    { "{\"items\":[{}", "I{}\n~\n" },
    { "{\"items\":[{}]", "I{}\n~\n" },
    { "{\"items\":nul", "~\n" },

    { "{}", "!\n" },
    { "{\"kind\":\"Status\"}", "K\"Status\"\n!\n" },
    { "[]", "!\n" },
    { "\xef\xbb\xbf{}", "!\n" },
    { "<html>", "!\n" },
    { "null", "!\n" },
    { "{items:[]}", "!\n" },
    { "{\"items\"[]}", "!\n" },
    { "{\"items\":{}}", "!\n" },
    { "{\"items\":\"\"}", "!\n" },
    { "{\"items\":1}", "!\n" },
    { "{\"items\":nullx}", "!\n" },
    { "{\"items\":nul}", "!\n" },
    { "{\"items\":[null]}", "!\n" },
    { "{\"items\":[1]}", "!\n" },
    { "{\"items\":[[]]}", "!\n" },
    { "{\"items\":[,]}", "!\n" },
    { "{\"items\":[{},]}", "I{}\n!\n" },
    { "{\"items\":[{}{}]}", "I{}\n!\n" },
    { "{\"items\":[{}}", "I{}\n!\n" },
    { "{\"items\":[],}", "!\n" },
    { "{\"items\":[],\"items\":[]}", "!\n" },
    { "{\"items\":[{]}", "!\n" },
    { "{\"items\":[{\"a\":[}]}]}", "!\n" },
    { "{\"x\":[{]}],\"items\":[]}", "!\n" },
    { "{\"items\":null,\"items\":[{}]}", "!\n" },
    { "{\"items\":[]]", "!\n" },
    { "{\"items\":[]}x", "E\n!\n" },
    { "{\"items\":[]}{}", "E\n!\n" },
    { "{\"it\\u0065ms\":[]}", "!\n" },
    { "{\"it\\u0065ms\":[{}],\"items\":[]}", "!\n" },
    { "{\"it\nems\":[]}", "!\n" },
    { "{\"kind\":1,\"items\":[]}", "!\n" },
    { "{\"kind\":{},\"items\":[]}", "!\n" },
    { "{\"metadata\":null,\"items\":[]}", "!\n" },
    { "{\"metadata\":[],\"items\":[]}", "!\n" },
    { "{\"x\":,\"items\":[]}", "!\n" },
    { "{\"x\":@,\"items\":[]}", "!\n" },
    { "{\"x\":1 2,\"items\":[]}", "!\n" },
    { "{\"x\":1]", "!\n" }
};


static const frame_case_t  frame_watches[] = {
    { "", ".\n" },
    { "\n\r\n ", ".\n" },
    { "{}{}", "I{}\nI{}\n.\n" },
    { "{}\n{", "I{}\n~\n" },
    { "{\"a\":\"}", "~\n" },
    { "{\"a\":\"\\", "~\n" },
    { "{\"a\":\"x\n", "!\n" },
    { "{\"a\":\"01234567\n89\"}", "!\n" },
    { "{\"a\":\n1}", "I{\"a\":\n1}\n.\n" },
    { "{\"items\":[{}]}", "I{\"items\":[{}]}\n.\n" },
    { "{]", "!\n" },
    { "{\"a\":{\"b\":[1}}", "!\n" },
    { "{},{}", "I{}\n!\n" },
    { "{}x", "I{}\n!\n" },
    { "[]", "!\n" },
    { "]", "!\n" },
    { "}", "!\n" },
    { "\"a\"", "!\n" },
    { "HTTP/1.1 200", "!\n" }
};


static void
frame_log_add(frame_log_t *log, char what, kube_str_t bytes)
{
    assert_true(log->len + bytes.len + 3 < FRAME_LOG_MAX);

    log->text[log->len++] = what;

    if (bytes.len != 0) {
        memcpy(log->text + log->len, bytes.data, bytes.len);
        log->len += bytes.len;
    }

    log->text[log->len++] = '\n';
    log->text[log->len] = '\0';
}


/* One piece, in memory of its own that is gone afterwards. */
static kube_rc_t
frame_feed(kube_frame_t *frame, const char *data, size_t len,
    frame_log_t *log)
{
    char               *copy;
    kube_rc_t           rc;
    kube_str_t          in;
    kube_frame_item_t   item;
    static const char   letters[] = "IKMSE";

    copy = malloc(len != 0 ? len : 1);
    assert_non_null(copy);
    memcpy(copy, data, len);

    in.data = copy;
    in.len = len;

    while ((rc = kube_frame_next(frame, &in, &item)) == KUBE_OK) {
        assert_true(in.len <= len && in.data + in.len == copy + len);

        if (item.kind != KUBE_FRAME_SKIPPED) {
            assert_int_equal(item.bytes.len, item.size_bytes);

        } else {
            assert_null(item.bytes.data);
        }

        frame_log_add(log, letters[item.kind], item.bytes);
    }

    if (rc == KUBE_AGAIN) {
        assert_int_equal(in.len, 0);
    }

    free(copy);

    return rc;
}


static void
frame_finish(kube_frame_t *frame, kube_rc_t rc, frame_log_t *log)
{
    if (rc == KUBE_PROTO) {
        frame_log_add(log, '!', KUBE_STR_NULL);

        /* lost for good, and no truncation */
        assert_int_equal(frame_feed(frame, "{}", 2, log), KUBE_PROTO);
        assert_false(kube_frame_partial(frame));

    } else {
        assert_int_equal(rc, KUBE_AGAIN);
        frame_log_add(log, kube_frame_partial(frame) ? '~' : '.',
                      KUBE_STR_NULL);
    }
}


/* Cuts in at two places (0 <= a <= b <= len), or everywhere where step. */
static void
frame_run(kube_frame_mode_t mode, const char *in, size_t len, size_t a,
    size_t b, size_t step, frame_log_t *log)
{
    size_t         at, end;
    kube_rc_t      rc;
    kube_frame_t  *frame;
    alloc_test_t   test;

    alloc_test_init(&test);
    log->len = 0;
    log->text[0] = '\0';

    frame = kube_frame_create(&test.alloc, mode, KUBE_OBJECT_BYTES_MIN);
    assert_non_null(frame);
    assert_false(kube_frame_partial(frame));

    rc = KUBE_AGAIN;

    for (at = 0; at < len && rc == KUBE_AGAIN; at = end) {
        if (step != 0) {
            end = (at + step < len) ? at + step : len;

        } else {
            end = (at < a) ? a : (at < b) ? b : len;
        }

        rc = frame_feed(frame, in + at, end - at, log);
    }

    frame_finish(frame, rc, log);

    kube_frame_destroy(frame);
    alloc_test_assert_no_leak(&test);
}


static void
frame_check(kube_frame_mode_t mode, const char *in, const char *out)
{
    size_t       a, len;
    frame_log_t  log;

    len = strlen(in);

    for (a = 0; a <= len; a++) {
        frame_run(mode, in, len, a, len, 0, &log);

        if (strcmp(log.text, out) != 0) {
            fail_msg("%s cut at %zu gave\n%s", in, a, log.text);
        }
    }

    frame_run(mode, in, len, 0, 0, 1, &log);
    assert_string_equal(log.text, out);
}


static void
frame_table_of_lists(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(frame_lists) / sizeof(frame_lists[0]); i++) {
        frame_check(KUBE_FRAME_LIST, frame_lists[i].in, frame_lists[i].out);
    }
}


static void
frame_table_of_watches(void **state)
{
    size_t       i;
    frame_log_t  log;

    (void) state;

    for (i = 0; i < sizeof(frame_watches) / sizeof(frame_watches[0]); i++) {
        frame_check(KUBE_FRAME_WATCH, frame_watches[i].in,
                    frame_watches[i].out);
    }

    /* a NUL is no whitespace */
    frame_run(KUBE_FRAME_WATCH, "\0{}", 3, 0, 0, 0, &log);
    assert_string_equal(log.text, "!\n");
}


static void
frame_splits(void **state)
{
    size_t       a, b, len;
    frame_log_t  log;

    (void) state;

    frame_check(KUBE_FRAME_WATCH, frame_watch, frame_watch_out);
    frame_check(KUBE_FRAME_LIST, frame_list, frame_list_out);

    /* each pair of places */
    len = sizeof(frame_list) - 1;

    for (a = 0; a <= len; a += 3) {
        for (b = a; b <= len; b++) {
            frame_run(KUBE_FRAME_LIST, frame_list, len, a, b, 0, &log);
            assert_string_equal(log.text, frame_list_out);
        }
    }

    for (a = 2; a < 40; a++) {
        frame_run(KUBE_FRAME_LIST, frame_list, len, 0, 0, a, &log);
        assert_string_equal(log.text, frame_list_out);
    }
}


static void
frame_in_place(void **state)
{
    size_t              calls;
    kube_str_t          in;
    kube_frame_t       *frame;
    alloc_test_t        at;
    kube_frame_item_t   item;
    static const char   text[] = "{\"a\":1}{\"b\":2}{\"c\"";

    (void) state;

    alloc_test_init(&at);
    frame = kube_frame_create(&at.alloc, KUBE_FRAME_WATCH, 4096);
    assert_non_null(frame);
    calls = at.calls;

    in = KUBE_STR(text);

    assert_int_equal(kube_frame_next(frame, &in, &item), KUBE_OK);
    assert_ptr_equal(item.bytes.data, text);
    assert_int_equal(item.bytes.len, 7);
    assert_int_equal(kube_frame_next(frame, &in, &item), KUBE_OK);
    assert_ptr_equal(item.bytes.data, text + 7);
    assert_int_equal(at.calls, calls);

    assert_int_equal(kube_frame_next(frame, &in, &item), KUBE_AGAIN);
    assert_int_equal(at.calls, calls + 1);
    assert_true(kube_frame_partial(frame));

    /* no input changes nothing */
    in = KUBE_STR_NULL;
    assert_int_equal(kube_frame_next(frame, &in, &item), KUBE_AGAIN);

    in = KUBE_STR(":3}");
    assert_int_equal(kube_frame_next(frame, &in, &item), KUBE_OK);
    assert_true(kube_str_eq(item.bytes, KUBE_STR("{\"c\":3}")));
    assert_false(kube_frame_partial(frame));

    kube_frame_destroy(frame);
    kube_frame_destroy(NULL);
    alloc_test_assert_no_leak(&at);
}


/* Nothing of the item is held, but what it was is known. */
static void
frame_check_skipped(const kube_frame_item_t *item, const char *name, size_t n)
{
    assert_null(item->bytes.data);
    assert_true(item->envelope.too_large);
    assert_null(item->envelope.what);
    assert_null(item->envelope.object.data);
    assert_true(kube_str_eq(item->envelope.meta.name, kube_str(name)));
    assert_true(kube_str_eq(item->envelope.meta.rv, KUBE_STR("77")));
    assert_int_equal(item->size_bytes, n);
}


/* A list of items of n, 10 and n bytes, cut into pieces of step bytes. */
static void
frame_oversize_run(size_t n, size_t step, size_t limit, const char *out)
{
    int                 pad;
    char               *text, what;
    size_t              i, at, len, end;
    kube_rc_t           rc;
    kube_str_t          in;
    frame_log_t         log;
    kube_frame_t       *frame;
    alloc_test_t        test;
    kube_frame_item_t   item;

    alloc_test_init(&test);
    log.len = 0;
    pad = (int) strlen(FRAME_META("a")) + 3;

    text = malloc(2 * n + 100);
    assert_non_null(text);

    len = (size_t) snprintf(text, 2 * n + 100,
                            "{\"items\":[" FRAME_META("a") "\"%*s\"},"
                            "{\"x\":1234}," FRAME_META("b") "\"%*s\"}]}",
                            (int) n - pad, "", (int) n - pad, "");

    /* bytes that tell their place */
    for (i = 0; i < len; i++) {
        if (text[i] == ' ') {
            text[i] = (char) ('a' + i % 23);
        }
    }

    frame = kube_frame_create(&test.alloc, KUBE_FRAME_LIST, limit);
    assert_non_null(frame);

    for (at = 0; at < len; at = end) {
        end = (at + step < len) ? at + step : len;
        in.data = text + at;
        in.len = end - at;

        while ((rc = kube_frame_next(frame, &in, &item)) == KUBE_OK) {
            what = (item.kind == KUBE_FRAME_SKIPPED) ? 'S'
                   : (item.kind == KUBE_FRAME_END) ? 'E' : 'I';

            if (what == 'S') {
                frame_check_skipped(&item, (log.len == 0) ? "a" : "b", n);
            }

            frame_log_add(&log, what, KUBE_STR_NULL);
        }

        assert_int_equal(rc, KUBE_AGAIN);
    }

    assert_string_equal(log.text, out);

    /* what is carried is bounded, while it grows as well */
    if (limit < KUBE_OBJECT_BYTES_MIN) {
        limit = KUBE_OBJECT_BYTES_MIN;
    }

    assert_true(test.peak_bytes <= 2 * limit + 1024);

    kube_frame_destroy(frame);
    alloc_test_assert_no_leak(&test);
    free(text);
}


static void
frame_oversize(void **state)
{
    size_t               i;
    static const size_t  steps[] = { 1, 7, 1000, 4096, 16384, 1u << 22 };

    (void) state;

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        frame_oversize_run(4096, steps[i], 4096, "I\nI\nI\nE\n");
        frame_oversize_run(4097, steps[i], 4096, "S\nI\nS\nE\n");
        frame_oversize_run(200000, steps[i], 4096, "S\nI\nS\nE\n");
        frame_oversize_run(200000, steps[i], 200000, "I\nI\nI\nE\n");
        frame_oversize_run(200001, steps[i], 200000, "S\nI\nS\nE\n");
    }

    /* the limit is taken to the nearest allowed one */
    frame_oversize_run(4096, 100, 0, "I\nI\nI\nE\n");
    frame_oversize_run(1000000, 65536, SIZE_MAX / 4, "I\nI\nI\nE\n");
}


static void
frame_metadata_bounded(void **state)
{
    size_t         i;
    kube_rc_t      rc;
    frame_log_t    log;
    kube_frame_t  *frame;
    alloc_test_t   at;

    (void) state;

    alloc_test_init(&at);
    log.len = 0;

    frame = kube_frame_create(&at.alloc, KUBE_FRAME_LIST, 4096);
    assert_non_null(frame);

    rc = frame_feed(frame, "{\"metadata\":{\"a\":\"", 18, &log);

    for (i = 0; i < 1000 && rc == KUBE_AGAIN; i++) {
        rc = frame_feed(frame, "0123456789012345678901234567890", 31, &log);
    }

    assert_int_equal(rc, KUBE_PROTO);
    assert_in_range(i * 31, KUBE_LIST_META_BYTES_MAX,
                    KUBE_LIST_META_BYTES_MAX + 62);
    assert_true(at.peak_bytes <= 2 * KUBE_LIST_META_BYTES_MAX + 1024);

    kube_frame_destroy(frame);

    /* an unknown member and an unknown name of any size take no memory */
    frame = kube_frame_create(&at.alloc, KUBE_FRAME_LIST, 4096);
    assert_non_null(frame);
    at.peak_bytes = 0;

    rc = frame_feed(frame, "{\"x\":[\"", 7, &log);

    for (i = 0; i < 10000; i++) {
        rc = frame_feed(frame, "[0123456789012345678901234567890", 31, &log);
        assert_int_equal(rc, KUBE_AGAIN);
    }

    rc = frame_feed(frame, "\"],\"", 4, &log);

    for (i = 0; i < 10000; i++) {
        rc = frame_feed(frame, "0123456789012345678901234567890", 31, &log);
        assert_int_equal(rc, KUBE_AGAIN);
    }

    log.len = 0;
    rc = frame_feed(frame, "\":1,\"items\":[]}", 15, &log);
    assert_int_equal(rc, KUBE_AGAIN);
    assert_string_equal(log.text, "E\n");
    assert_int_equal(at.peak_bytes, 0);

    kube_frame_destroy(frame);
    alloc_test_assert_no_leak(&at);
}


/* A carry buffer that one huge item left is given back. */
static void
frame_shrinks(void **state)
{
    char               *text;
    size_t              i;
    frame_log_t         log;
    kube_str_t          in;
    kube_frame_t       *frame;
    alloc_test_t        at;
    kube_frame_item_t   item;

    (void) state;

    alloc_test_init(&at);
    frame = kube_frame_create(&at.alloc, KUBE_FRAME_WATCH, 4u << 20);
    assert_non_null(frame);

    text = malloc(100000);
    assert_non_null(text);
    memset(text, 'x', 100000);

    log.len = 0;
    assert_int_equal(frame_feed(frame, "{\"a\":\"", 6, &log), KUBE_AGAIN);

    for (i = 0; i < 10; i++) {
        assert_int_equal(frame_feed(frame, text, 100000, &log), KUBE_AGAIN);
    }

    in = KUBE_STR("\"}{\"b\":");
    assert_int_equal(kube_frame_next(frame, &in, &item), KUBE_OK);
    assert_int_equal(item.bytes.len, 1000008);
    assert_true(at.live_bytes > 1000000);

    assert_int_equal(kube_frame_next(frame, &in, &item), KUBE_AGAIN);
    assert_true(at.live_bytes < 100000);

    free(text);
    kube_frame_destroy(frame);
    alloc_test_assert_no_leak(&at);
}


/* Every failure once: the same call again, and nothing was lost. */
static void
frame_oom_body(alloc_test_t *at, void *ctx)
{
    size_t              i, sum, len, step;
    kube_rc_t           rc;
    kube_str_t          in, before;
    kube_frame_t       *frame;
    static char         text[32768];
    kube_frame_item_t   item;

    step = *(size_t *) ctx;
    len = (size_t) snprintf(text, sizeof(text),
                            "{\"metadata\":{\"c\":\"%*s\"},\"items\":["
                            "{\"a\":\"%*s\"},{\"b\":\"%*s\"}]}",
                            4992, "", 8992, "", 11992, "");
    sum = 0;

    frame = kube_frame_create(&at->alloc, KUBE_FRAME_LIST, 16384);
    if (frame == NULL) {
        assert_true(at->failed);
        return;
    }

    for (i = 0; i < len; i += step) {
        in.data = text + i;
        in.len = (i + step < len) ? step : len - i;

        do {
            before = in;
            rc = kube_frame_next(frame, &in, &item);

            if (rc == KUBE_OK && item.kind != KUBE_FRAME_END) {
                /* 5000 at first, then 9000 and 12000 */
                sum = sum * 2 + item.bytes.len;
                assert_int_equal(item.bytes.data[0], '{');
                assert_int_equal(item.bytes.data[item.bytes.len - 1], '}');
            }

            if (rc == KUBE_NOMEM) {
                assert_true(at->failed);
                assert_ptr_equal(in.data, before.data);
                assert_int_equal(in.len, before.len);

                if (at->fail_from) {
                    assert_int_equal(kube_frame_next(frame, &in, &item),
                                     KUBE_NOMEM);
                    alloc_test_heal(at);
                    at->failed = true;
                }
            }

        } while (rc == KUBE_OK || rc == KUBE_NOMEM);

        assert_int_equal(rc, KUBE_AGAIN);
    }

    assert_int_equal(sum, 4 * 5000 + 2 * 9000 + 12000);
    assert_false(kube_frame_partial(frame));

    kube_frame_destroy(frame);
}


/* The same of an item above the limit. */
static void
frame_oom_oversize_body(alloc_test_t *at, void *ctx)
{
    size_t              i, n, len, step;
    kube_rc_t           rc;
    kube_str_t          in, before;
    kube_frame_t       *frame;
    static char         text[32768];
    kube_frame_item_t   item;

    step = *(size_t *) ctx;
    len = (size_t) snprintf(text, sizeof(text), "{\"object\":" FRAME_META("a")
                            "\"%*s\"}}", 19992, "");
    n = 0;

    frame = kube_frame_create(&at->alloc, KUBE_FRAME_WATCH, 9000);
    if (frame == NULL) {
        assert_true(at->failed);
        return;
    }

    for (i = 0; i < len; i += step) {
        in.data = text + i;
        in.len = (i + step < len) ? step : len - i;

        do {
            before = in;
            rc = kube_frame_next(frame, &in, &item);

            if (rc == KUBE_OK) {
                n++;
                assert_int_equal(item.kind, KUBE_FRAME_SKIPPED);
                frame_check_skipped(&item, "a", len);
            }

            if (rc == KUBE_NOMEM) {
                assert_true(at->failed);
                assert_ptr_equal(in.data, before.data);
                assert_int_equal(in.len, before.len);
                alloc_test_heal(at);
                at->failed = true;
            }

        } while (rc == KUBE_OK || rc == KUBE_NOMEM);

        assert_int_equal(rc, KUBE_AGAIN);
    }

    assert_int_equal(n, 1);

    kube_frame_destroy(frame);
}


static void
frame_out_of_memory(void **state)
{
    size_t  step;

    (void) state;

    for (step = 500; step < 15000; step += 500) {
        ALLOC_TEST_RUN(frame_oom_body, &step);
        ALLOC_TEST_RUN(frame_oom_oversize_body, &step);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(frame_table_of_lists),
        cmocka_unit_test(frame_table_of_watches),
        cmocka_unit_test(frame_splits),
        cmocka_unit_test(frame_in_place),
        cmocka_unit_test(frame_oversize),
        cmocka_unit_test(frame_metadata_bounded),
        cmocka_unit_test(frame_shrinks),
        cmocka_unit_test(frame_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

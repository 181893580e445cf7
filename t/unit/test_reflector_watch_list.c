/*
 * test_reflector_watch_list - bytes of a WatchList to deltas: the initial
 * events between two marks, then the same stream as the watch.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_bed.h"


static void
bed_auto(bed_t *b)
{
    bed_make_for(b, NULL, "", 1024, KUBE_WATCH_LIST_AUTO);
    assert_non_null(b->r);
}


/* A WatchList from the version ("": none) that was granted. */
static io_exchange_t *
bed_stream(bed_t *b, const char *version)
{
    bed_start(b, version);

    if (version[0] != '\0') {
        assert_true(io_head(bed_x(b), 200, "application/json", 0));
        bed_process(b);
        bed_cut(b, EVENT("ERROR", STATUS(410, "Expired", "")));
    }

    assert_non_null(strstr(bed_x(b)->path, "sendInitialEvents=true"));
    assert_true(io_head(bed_x(b), 200, "application/json", 0));
    bed_process(b);

    return bed_x(b);
}


static void
test_to_the_watch(void **state)
{
    bed_t           b;
    size_t          chunk;
    uint64_t        bytes;
    io_exchange_t  *x;

    (void) state;

    for (chunk = 0; chunk < 900; chunk += 1 + chunk / 16) {

        bed_auto(&b);
        b.io.chunk = chunk;
        bed_start(&b, "");

        x = bed_x(&b);
        assert_non_null(strstr(x->path,
                               "/api/v1/services?watch=true&"
                               "allowWatchBookmarks=true&"
                               "sendInitialEvents=true&"
                               "resourceVersionMatch=NotOlderThan&"
                               "timeoutSeconds="));
        assert_null(strstr(x->path, "resourceVersion="));
        assert_null(strstr(x->path, "limit="));
        assert_int_equal(b.turn.holder, KUBE_SCOPES_MAX);
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_STATE),
                         KUBE_STATE_STREAMING);

        assert_true(io_head(x, 200, "application/json", 0));
        assert_true(io_body(&b.io, x, EVENT("ADDED", FULL("web", "3"))
                                      EVENT("ADDED", FULL("api", "6"))
                                      EVENT("MODIFIED", FULL("web", "8"))
                                      EVENT("DELETED", FULL("api", "9"))
                                      BOOKMARK("9")
                                      INITIAL_END("9", "\"false\"")
                                      INITIAL_END("9", "true")));
        assert_string_equal(drained(&b), "[ U:shop/web@8 D:shop/api@9");
        assert_rv(&b, "");
        assert_false(bed_listed(&b));
        assert_int_equal(counted(&b, KUBE_COUNTER_WATCHES), 0);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENT_BYTES), 0);
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_CONTACT_MS), 0);

        assert_true(io_body(&b.io, x, INITIAL_END("10", "\"true\"")
                                      EVENT("ADDED", FULL("new", "11"))
                                      INITIAL_END("12", "\"true\"")));
        assert_string_equal(drained(&b), "] U:shop/new@11");
        assert_rv(&b, "12");
        assert_true(bed_listed(&b));
        assert_ptr_equal(bed_x(&b), x);
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_STATE),
                         KUBE_STATE_WATCHING);
        assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_WATCHES), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_ADDED), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_BOOKMARK), 1);

        /* what it began with was a list: no bytes of events */
        bytes = counted(&b, KUBE_COUNTER_EVENT_BYTES);
        assert_true(io_body(&b.io, x, BOOKMARK("12")));
        bed_process(&b);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_BOOKMARK), 2);
        assert_in_range(counted(&b, KUBE_COUNTER_EVENT_BYTES) - bytes,
                        strlen(BOOKMARK("12")) / 2, strlen(BOOKMARK("12")));
        assert_in_range(bytes, 0, strlen(EVENT("ADDED", FULL("new", "11"))
                                         INITIAL_END("12", "\"true\"")));

        io_done(x, KUBE_OK, "");
        b.io.now_ms += 2000;
        bed_process(&b);
        assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=12&"));
        assert_null(strstr(bed_x(&b)->path, "sendInitialEvents"));
        assert_int_equal(b.io.started, 2);
        bed_done(&b);
    }
}


/*
 * Its items are a list's, and its watch begins where they end: one that brings
 * something was not short, and one that ends there at once was.
 */
static void
test_counts(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *x;

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_auto(&b);
        x = bed_stream(&b, "");
        b.io.now_ms += 1500;
        assert_true(io_body(&b.io, x, EVENT("ADDED", FULL("web", "3"))
                                      EVENT("MODIFIED", FULL("web", "4"))
                                      EVENT("ADDED", FULL("api", "6"))
                                      INITIAL_END("7", "\"true\"")));
        assert_string_equal(drained(&b), "[ U:shop/web@4 U:shop/api@6 ]");
        assert_int_equal(observed(&b, KUBE_HISTOGRAM_ITEMS_PER_LIST).sum, 2);
        assert_int_equal(observed(&b, KUBE_HISTOGRAM_LIST_DURATION).sum,
                         1500000);

        if (i == 0) {
            assert_true(io_body(&b.io, x, EVENT("ADDED", FULL("new", "8"))));
            assert_string_equal(drained(&b), "U:shop/new@8");
        }

        b.io.now_ms += 500;
        io_done(x, KUBE_OK, "");
        bed_process(&b);
        assert_int_equal(observed(&b, KUBE_HISTOGRAM_WATCH_DURATION).sum,
                         500000);
        assert_int_equal(observed(&b, KUBE_HISTOGRAM_ITEMS_PER_WATCH).sum,
                         1 - i);
        assert_int_equal(counted(&b, KUBE_COUNTER_SHORT_WATCHES), i);
        bed_done(&b);
    }
}


/* No object at all is a list too. */
static void
test_empty(void **state)
{
    bed_t           b;
    io_exchange_t  *x;

    (void) state;

    bed_auto(&b);
    x = bed_stream(&b, "5");
    assert_non_null(strstr(x->path, "resourceVersion=5&"));
    assert_true(io_body(&b.io, x, INITIAL_END("7", "\"true\"")));
    assert_string_equal(drained(&b), "[ ]");
    assert_rv(&b, "7");
    assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS_EXPIRED), 1);
    bed_done(&b);
}


/* Cut off after any byte before its end: never taken for a whole one. */
static void
test_cut_off(void **state)
{
    bed_t           b;
    char            text[1024];
    size_t          cut;
    io_exchange_t  *x;

    static const char  whole[] = EVENT("ADDED", FULL("web", "6"))
                                 INITIAL_END("7", "\"true\"");

    (void) state;

    for (cut = 0; cut < sizeof(whole) - 2; cut++) {
        bed_auto(&b);
        x = bed_stream(&b, "5");

        snprintf(text, sizeof(text), "%.*s", (int) cut, whole);
        assert_true(io_body(&b.io, x, text));
        io_done(x, (cut & 1) ? KUBE_OK : KUBE_CLOSED, "");
        bed_process(&b);

        assert_null(strchr(drained(&b), ']'));
        assert_rv(&b, "5");
        assert_false(bed_listed(&b));
        assert_true(bed_sleep(&b) >= 400);

        /* not older than what was taken of it */
        x = bed_x(&b);
        assert_non_null(strstr(x->path, "sendInitialEvents=true"));
        assert_non_null(strstr(x->path, strchr(b.dump, 'U') != NULL
                                        ? "resourceVersion=6&"
                                        : "resourceVersion=5&"));
        bed_done(&b);
    }
}


/* Answers that lead to a plain list at once, and trouble nobody. */
static void
test_refused(void **state)
{
    bed_t     b;
    unsigned  i;

    static const struct {
        int          code;
        const char  *body;
        bool         remembered;
    } cases[] = {
        { 422, STATUS(422, "Invalid", ""), true },
        { 400, STATUS(400, "BadRequest", ""), true },
        { 404, STATUS(404, "NotFound", ""), true },
        { 403, STATUS(403, "Forbidden", ""), false }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_auto(&b);
        bed_start(&b, "");
        io_answer(&b.io, bed_x(&b), cases[i].code, cases[i].body);
        bed_process(&b);

        assert_string_equal(b.reason, "");
        assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_FORBIDDEN), 0);
        assert_string_equal(bed_x(&b)->path,
                            "/api/v1/services?limit=2&resourceVersion=0");
        assert_int_equal(b.turn.holder, 2);

        io_answer(&b.io, bed_x(&b), 200, LIST("7", "", SERVICE("web", "3")));
        assert_string_equal(drained(&b), "[ R:shop/web@3 ]");
        assert_int_equal(b.traits.no_watch_list, cases[i].remembered);
        assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 2);
        bed_done(&b);
    }

    /* in the stream, though the head was good */
    bed_auto(&b);
    assert_true(io_body(&b.io, bed_stream(&b, ""),
                        EVENT("ERROR", STATUS(422, "Invalid", ""))));
    bed_process(&b);
    assert_null(strstr(bed_x(&b)->path, "watch"));
    bed_done(&b);
}


static void
test_silence(void **state)
{
    bed_t           b;
    io_exchange_t  *x;

    (void) state;

    bed_auto(&b);
    x = bed_stream(&b, "");
    assert_true(io_body(&b.io, x, EVENT("ADDED", FULL("web", "6"))));
    bed_process(&b);
    assert_int_equal(kube_reflector_deadline(b.r),
                     b.io.now_ms + KUBE_STREAM_MS);
    b.io.now_ms += KUBE_STREAM_MS;
    bed_process(&b);
    assert_string_equal(b.reason, "timeout");
    assert_null(strstr(bed_x(&b)->path, "watch"));
    assert_string_equal(drained(&b), "[ U:shop/web@6");

    /* the list that follows is the whole one */
    io_answer(&b.io, bed_x(&b), 200, LIST("7", "", SERVICE("web", "6")));
    assert_string_equal(drained(&b), "[ R:shop/web@6 ]");
    assert_true(b.traits.no_watch_list);
    bed_done(&b);

    /* a full FIFO is not the server's silence */
    bed_make_for(&b, NULL, "", 4, KUBE_WATCH_LIST_AUTO);
    x = bed_stream(&b, "");
    assert_true(io_body(&b.io, x, EVENT("ADDED", FULL("a", "1"))
                                  EVENT("ADDED", FULL("b", "2"))
                                  EVENT("ADDED", FULL("c", "3"))
                                  EVENT("ADDED", FULL("d", "4"))
                                  INITIAL_END("7", "\"true\"")));
    bed_process(&b);
    assert_true(kube_delta_fifo_high(b.fifo));
    b.io.now_ms += 3600000;
    bed_process(&b);
    assert_ptr_equal(bed_x(&b), x);
    (void) drained(&b);
    (void) drained(&b);
    assert_rv(&b, "7");
    assert_ptr_equal(bed_x(&b), x);
    assert_string_equal(b.reason, "");
    bed_done(&b);
}


/* An older end: nothing may be deleted for it, and a list says what is true. */
static void
test_older(void **state)
{
    bed_t           b;
    io_exchange_t  *x;

    (void) state;

    bed_auto(&b);
    x = bed_stream(&b, "50");
    assert_true(io_body(&b.io, x, EVENT("ADDED", FULL("web", "6"))
                                  INITIAL_END("49", "\"true\"")));
    assert_string_equal(drained(&b), "[ U:shop/web@6");
    assert_rv(&b, "50");
    assert_true(bed_sleep(&b) >= 400);
    assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=50&"));
    assert_null(strstr(bed_x(&b)->path, "watch"));
    bed_done(&b);

    /* and one without a version */
    bed_auto(&b);
    x = bed_stream(&b, "50");
    assert_true(io_body(&b.io, x, INITIAL_END("", "\"true\"")));
    assert_string_equal(drained(&b), "");
    assert_string_equal(b.reason, "protocol");
    bed_done(&b);
}


/* Objects that cannot be held are named; one that has no name is listed. */
static void
test_refused_objects(void **state)
{
    bed_t           b;
    io_exchange_t  *x;

    (void) state;

    bed_auto(&b);
    x = bed_stream(&b, "");
    assert_true(io_body(&b.io, x,
                        EVENT("ADDED", "{\"kind\":\"Service\","
                              "\"apiVersion\":\"v1\"," META("bad", "2")
                              ",\"spec\":[]}")
                        EVENT("ADDED", FULL("web", "3"))
                        INITIAL_END("7", "\"true\"")));
    assert_string_equal(drained(&b),
                        "[ X:shop/bad(malformed) U:shop/web@3 ]");
    assert_rv(&b, "7");
    bed_done(&b);

    bed_auto(&b);
    x = bed_stream(&b, "");
    assert_true(io_body(&b.io, x, EVENT("ADDED", "{\"kind\":\"Service\","
                                        "\"metadata\":{\"name\":\"x\"}}")));
    assert_string_equal(drained(&b), "");
    assert_true(bed_sleep(&b) >= 400);
    assert_null(strstr(bed_x(&b)->path, "watch"));
    bed_done(&b);
}


/* Lists are held back after crashes; a turn, it needs none. */
static void
test_turns(void **state)
{
    bed_t  b;

    (void) state;

    bed_auto(&b);
    kube_list_turn_hold(&b.turn, b.io.now_ms + 9000);
    assert_true(kube_list_turn_take(&b.turn, 0, b.io.now_ms + 9000));
    bed_start(&b, "");
    assert_int_equal(b.io.started, 0);
    assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 0);
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_STATE), KUBE_STATE_DAMPED);
    assert_int_equal(kube_reflector_deadline(b.r), b.io.now_ms + 9000);

    b.io.now_ms += 8999;
    bed_process(&b);
    assert_int_equal(b.io.started, 0);
    b.io.now_ms++;
    bed_process(&b);
    assert_non_null(strstr(bed_x(&b)->path, "sendInitialEvents=true"));
    assert_int_equal(b.turn.holder, 0);
    bed_done(&b);

    /* stopped while it waits, and while it streams */
    bed_auto(&b);
    kube_list_turn_hold(&b.turn, b.io.now_ms + 9000);
    bed_start(&b, "");
    kube_reflector_stop(b.r, b.io.now_ms);
    assert_int_equal(kube_reflector_deadline(b.r), KUBE_NEVER);
    bed_done(&b);

    bed_auto(&b);
    (void) bed_stream(&b, "");
    kube_reflector_stop(b.r, b.io.now_ms);
    assert_int_equal(b.io.cancelled, 1);
    assert_int_equal(kube_reflector_deadline(b.r), KUBE_NEVER);
    bed_done(&b);
}


/* Every allocation fails once, or from then on for a while. */

static void
oom_run(alloc_test_t *at, void *ctx)
{
    bed_t           b;
    unsigned        i;
    const char     *deltas;
    io_exchange_t  *x;

    (void) ctx;

    bed_make_for(&b, &at->alloc, "", 1024, KUBE_WATCH_LIST_ON);

    if (b.fifo == NULL || b.r == NULL) {
        assert_true(at->failed);
        bed_done(&b);
        return;
    }

    bed_start(&b, "");

    for (i = 0; i < 60; i++) {

        x = io_find(&b.io, "/");

        if (x == NULL) {
            assert_true(at->failed);
            alloc_test_heal(at);
            (void) bed_sleep(&b);
            continue;
        }

        assert_non_null(strstr(x->path, "watch=true"));
        b.io.chunk = 100;

        if (io_head(x, 200, "application/json", 0)) {
            (void) io_body(&b.io, x, strstr(x->path, "sendInitialEvents")
                                     ? EVENT("ADDED", FULL("web", "8"))
                                       EVENT("DELETED", FULL("api", "10"))
                                       INITIAL_END("12", "\"true\"")
                                     : BOOKMARK("12"));
        }

        bed_process(&b);

        if (kube_str_eq(kube_rv_str(kube_reflector_rv(b.r)),
                        KUBE_STR("12")))
        {
            break;
        }
    }

    assert_true(i < 60);
    deltas = drained(&b);
    assert_non_null(strstr(deltas, "U:shop/web@8 D:shop/api@10 ]"));
    assert_int_equal(counted(&b, KUBE_COUNTER_WATCHES), 1);
    bed_done(&b);
}


static void
test_oom(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(oom_run, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_to_the_watch),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_older),
        cmocka_unit_test(test_refused_objects),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

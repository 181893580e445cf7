/*
 * test_clientgo_reflector - the scenarios of client-go's reflector_test.go and
 * retry_with_deadline_test.go, each under the name that it has there.
 *
 * t/CONFORMANCE.md says which is which, and where ours differs.  WatchList:
 * test_clientgo_watchlist.c.  Watches that are resumed: test_clientgo_watch.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "script_bed.h"


#define TOO_LARGE_CAUSE(what)                                                 \
    STATUS(504, "Timeout", "\"details\":{\"causes\":[{" what "}]},")

#define TOO_LARGE_MESSAGE                                                     \
    "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Timeout\","     \
    "\"message\":\"Timeout: Too large resource version: 40, current: 1\","    \
    "\"code\":504}"

#define INTERNAL  EVENT("ERROR", STATUS(500, "InternalError", ""))

#define TOO_MANY  STATUS(429, "TooManyRequests",                              \
                         "\"details\":{\"retryAfterSeconds\":1},")

#define UNREADABLE  EVENT("ERROR", STATUS(500, "StorageReadError", ""))

#define TWO  SERVICE("p0", "1") "," SERVICE("p1", "2")


/* The exact options of each request, from the first to a relist. */
static void
test_list_and_watch_requests(void **state)
{
    bed_t  b;

    static const script_t  lines[] = {
        { "LIST rv=0 limit=2", 200, LIST("10", ",\"continue\":\"c1\"", TWO),
          false },
        { "LIST continue=c1 limit=2", 200, LIST("10", "", SERVICE("p2", "3")),
          false },
        { "WATCH rv=10", 200, EVENT("ADDED", FULL("p3", "11")), false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    assert_int_equal(SCRIPT(&b, lines), 0);
    assert_string_equal(drained(&b), "[ R:shop/p0@1 R:shop/p1@2 R:shop/p2@3 ] "
                                     "U:shop/p3@11");
    assert_rv(&b, "11");
    bed_done(&b);
}


/*
 * Each failure of a list with each of a watch: whatever is asked for then, the
 * store ends as the server is.
 */

static const script_t  list_faults[] = {
    { NULL, 0, NULL, false },
    { NULL, 500, STATUS(500, "InternalError", ""), false },
    { NULL, 403, STATUS(403, "Forbidden", ""), false },
    { NULL, 410, EXPIRED, false },
    { NULL, 429, TOO_MANY, false },
    { NULL, 200, "<html>", false },
    { NULL, 200, "{\"kind\":\"ServiceList\",\"metadata\":{\"resourceVersion\":"
                 "\"3\"},\"items\":[" SERVICE("gone", "2") ",", false },
    { NULL, 200, LIST("3", ",\"continue\":\"c1\"", SERVICE("gone", "2")),
      false }
};

static const script_t  watch_faults[] = {
    { NULL, 0, NULL, false },
    { NULL, 500, STATUS(500, "InternalError", ""), false },
    { NULL, 403, STATUS(403, "Forbidden", ""), false },
    { NULL, 410, EXPIRED, false },
    { NULL, 429, TOO_MANY, false },
    { NULL, 200, "<html>", false },
    { NULL, 200, "", true },
    { NULL, 200, INTERNAL, false },
    { NULL, 200, EVENT("ERROR", EXPIRED), false },
    { NULL, 200, EVENT("ADDED", FULL("foo", "4")), true },
    { NULL, 200, EVENT("ADDED", FULL("foo", "4")) "{\"type\":\"DELE", true }
};

/* foo comes, bar changes, foo goes. */
static const struct {
    unsigned     rv;
    const char  *text;
} truth[] = {
    { 4, EVENT("ADDED", FULL("foo", "4")) },
    { 5, EVENT("MODIFIED", FULL("bar", "5")) },
    { 6, EVENT("DELETED", FULL("foo", "6")) }
};


/* Answers as a server that knows truth[]. */
static void
answer_truly(bed_t *b, io_exchange_t *x)
{
    size_t       i;
    unsigned     rv;
    const char  *asked;

    asked = script_asked(x);

    if (strncmp(asked, "LIST", 4) == 0) {

        /* the token of a list before the fault is one no more */
        if (strncmp(asked, "LIST continue", 13) == 0) {
            io_answer(&b->io, x, 410, EXPIRED);
            return;
        }

        io_answer(&b->io, x, 200, strcmp(asked, "LIST rv=0 limit=2") == 0
                                  ? LIST("3", "", SERVICE("bar", "3"))
                                  : LIST("6", "", SERVICE("bar", "5")));
        return;
    }

    assert_int_equal(strncmp(asked, "WATCH rv=", 9), 0);
    rv = (unsigned) strtoul(asked + 9, NULL, 10);
    assert_true(io_head(x, 200, "application/json", 0));

    for (i = 0; i < sizeof(truth) / sizeof(truth[0]); i++) {
        if (truth[i].rv > rv) {
            assert_true(io_body(&b->io, x, truth[i].text));
        }
    }
}


static void
test_list_and_watch_with_errors(void **state)
{
    bool            listed, watched, watch;
    bed_t           b;
    size_t          i, k;
    unsigned        n, sleeps;
    io_exchange_t  *x;
    script_store_t  store;

    (void) state;

    for (i = 0; i < sizeof(list_faults) / sizeof(list_faults[0]); i++) {
        for (k = 0; k < sizeof(watch_faults) / sizeof(watch_faults[0]); k++) {

            bed_init(&b);
            bed_start(&b, "");
            memset(&store, 0, sizeof(store));
            listed = false;
            watched = false;

            for (n = 0; n < 20; n++) {
                x = script_next(&b, &sleeps);
                watch = (strstr(x->path, "watch=true") != NULL);

                if (!watch && !listed) {
                    listed = true;
                    script_say(&b, x, &list_faults[i]);

                    if (x->live) {
                        io_done(x, KUBE_CLOSED, "cut");
                    }

                } else if (watch && !watched) {
                    watched = true;
                    script_say(&b, x, &watch_faults[k]);

                    if (x->live) {
                        io_done(x, KUBE_CLOSED, "cut");
                    }

                } else {
                    answer_truly(&b, x);
                }

                bed_process(&b);
                (void) script_take(&b, &store);

                if (watched && kube_str_eq(kube_rv_str(kube_reflector_rv(b.r)),
                                           KUBE_STR("6")))
                {
                    break;
                }
            }

            if (strcmp(script_holds(&store), "bar@5") != 0 || n == 20) {
                fail_msg("list %zu, watch %zu: %s after %u", i, k,
                         script_holds(&store), n);
            }

            bed_done(&b);
        }
    }
}


/* An ERROR event ends its watch, and nothing behind it is taken. */
static void
test_close_watch_channel_on_error(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    bed_cut(&b, INTERNAL EVENT("ADDED", FULL("late", "6")));
    assert_string_equal(drained(&b), "");
    assert_null(io_find(&b.io, "/"));
    assert_rv(&b, "5");
    bed_done(&b);
}


/* Stopped at any moment: nothing is in flight then, and nothing follows. */

typedef enum {
    STOP_UNSTARTED = 0,
    STOP_WAITING_FOR_A_TURN,
    STOP_LISTING_WITHOUT_A_HEAD,
    STOP_LISTING_HALF_AN_ITEM,
    STOP_LISTING_BETWEEN_PAGES,
    STOP_IN_BACKOFF,
    STOP_OPENING,
    STOP_WATCHING,
    STOP_WATCHING_HALF_AN_EVENT,
    STOP_WITH_UNREAD_EVENTS,
    STOP_PAUSED,
    STOP_AFTER_RETRY_AFTER,
    STOPS
} stop_t;


static void
go_to(bed_t *b, stop_t stop)
{
    unsigned        i;
    io_exchange_t  *x;

    switch (stop) {

    case STOP_UNSTARTED:
        return;

    case STOP_WAITING_FOR_A_TURN:
        assert_true(kube_list_turn_take(&b->turn, 5, b->io.now_ms));
        bed_start(b, "");
        assert_int_equal(b->io.started, 0);
        return;

    case STOP_LISTING_WITHOUT_A_HEAD:
    case STOP_LISTING_HALF_AN_ITEM:
    case STOP_LISTING_BETWEEN_PAGES:
        bed_start(b, "");

        if (stop == STOP_LISTING_BETWEEN_PAGES) {
            io_answer(&b->io, bed_x(b), 200,
                      LIST("7", ",\"continue\":\"c1\"", TWO));

        } else if (stop == STOP_LISTING_HALF_AN_ITEM) {
            assert_true(io_head(bed_x(b), 200, "application/json", 0));
            assert_true(io_body(&b->io, bed_x(b), "{\"kind\":\"ServiceList\","
                                "\"metadata\":{\"resourceVersion\":\"7\"},"
                                "\"items\":[{\"meta"));
            bed_process(b);
        }

        return;

    case STOP_IN_BACKOFF:
    case STOP_AFTER_RETRY_AFTER:
        bed_start(b, "5");
        x = bed_x(b);

        if (stop == STOP_IN_BACKOFF) {
            io_done(x, KUBE_CONNECT, "refused");

        } else {
            assert_true(io_head(x, 429, "application/json", 300));
            io_done(x, KUBE_OK, "");
        }

        bed_process(b);
        assert_null(io_find(&b->io, "/"));
        return;

    case STOP_OPENING:
        bed_start(b, "5");
        return;

    default:
        bed_watch(b);
        break;
    }

    x = bed_x(b);

    if (stop == STOP_WATCHING_HALF_AN_EVENT) {
        assert_true(io_body(&b->io, x, "{\"type\":\"ADDED\",\"object\":{"));
        bed_process(b);
    }

    if (stop == STOP_WITH_UNREAD_EVENTS) {
        assert_true(io_body(&b->io, x, EVENT("ADDED", FULL("a", "6"))
                                       EVENT("ADDED", FULL("b", "7"))));
    }

    /* the bed's FIFO holds four keys in this case */
    for (i = 0; stop == STOP_PAUSED && i < 9; i++) {
        char  text[512];

        snprintf(text, sizeof(text), "{\"type\":\"ADDED\",\"object\":{\"kind\":"
                 "\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                 "\"s%u\",\"namespace\":\"shop\",\"uid\":\"u\","
                 "\"resourceVersion\":\"%u\"},\"spec\":{\"ports\":[{\"port\":"
                 "80}]}}}\n", i, i + 10);
        assert_true(io_body(&b->io, x, text));
        bed_process(b);
    }
}


static void
test_stop_in_every_wait(void **state)
{
    bed_t     b;
    unsigned  stop, started;

    (void) state;

    for (stop = 0; stop < STOPS; stop++) {

        bed_make(&b, NULL, "", stop == STOP_PAUSED ? 4 : 1024);
        assert_non_null(b.r);
        go_to(&b, (stop_t) stop);
        assert_true(stop != STOP_PAUSED || kube_delta_fifo_high(b.fifo));

        started = b.io.started;
        kube_reflector_stop(b.r, b.io.now_ms);

        assert_null(io_find(&b.io, "/"));
        assert_true(kube_reflector_deadline(b.r) == KUBE_NEVER);
        assert_int_equal(b.turn.waiting_n, 0);
        assert_int_not_equal(b.turn.holder, 2);
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_STATE),
                         KUBE_STATE_STOPPED);

        b.io.now_ms += 3600000;
        bed_process(&b);
        assert_int_equal(b.io.started, started);
        assert_true(kube_reflector_deadline(b.r) == KUBE_NEVER);
        assert_string_equal(b.reason, stop == STOP_IN_BACKOFF ? "connect"
                            : stop == STOP_AFTER_RETRY_AFTER
                              ? "too_many_requests" : "");
        bed_done(&b);
    }
}


/* Closed within a second and without an event: counted, and waited for. */
static void
test_very_short_watch(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_init(&b);
        bed_watch(&b);
        b.io.now_ms += KUBE_SHORT_WATCH_MS - 1 + i;
        io_done(bed_x(&b), KUBE_OK, "");
        bed_process(&b);

        assert_int_equal(counted(&b, KUBE_COUNTER_SHORT_WATCHES), i == 0);

        if (i == 0) {
            assert_in_range(bed_sleep(&b), 400, 800);
        }

        assert_string_equal(script_asked(bed_x(&b)), "WATCH rv=5");
        bed_done(&b);
    }
}


/* Of another kind: passed over; added, modified and deleted: applied. */
static void
test_watch_handler(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    assert_true(io_body(&b.io, bed_x(&b),
        EVENT("ADDED", "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\","
              META("row", "8") ",\"rows\":[]}")
        EVENT("ADDED", "{\"kind\":\"Pod\",\"apiVersion\":\"v1\","
              META("pod", "9") ",\"spec\":{\"ports\":[{\"port\":80}]}}")
        EVENT("MODIFIED", FULL("bar", "55"))
        EVENT("ADDED", FULL("baz", "66"))
        EVENT("DELETED", FULL("foo", "77"))));

    assert_null(strstr(drained(&b), "U:shop/row"));
    assert_null(strstr(b.dump, "U:shop/pod"));
    assert_non_null(strstr(b.dump, "U:shop/bar@55 U:shop/baz@66 "
                                   "D:shop/foo@77"));
    assert_rv(&b, "77");
    assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_MALFORMED), 2);
    assert_int_equal(b.io.started, 1);
    bed_done(&b);
}


/* The version follows each event, a bookmark that has nothing else included. */
static void
test_resource_version_update(void **state)
{
    bed_t     b;
    size_t    i;

    static const struct {
        const char  *event;
        const char  *rv;
        const char  *delta;
    } events[] = {
        { EVENT("ADDED", FULL("a", "10")), "10", "U:shop/a@10" },
        { EVENT("MODIFIED", FULL("a", "20")), "20", "U:shop/a@20" },
        { EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"30\"}}"),
          "30", "" },
        { BOOKMARK("31"), "31", "" },
        { EVENT("DELETED", FULL("a", "40")), "40", "D:shop/a@40" }
    };

    (void) state;

    bed_init(&b);
    bed_watch(&b);

    for (i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        assert_true(io_body(&b.io, bed_x(&b), events[i].event));
        assert_string_equal(drained(&b), events[i].delta);
        assert_rv(&b, events[i].rv);
    }

    bed_done(&b);
}


/* So many refusals of the connection last between half the steps and all. */
static void
test_init_conn_backoff(void **state)
{
    bed_t     b;
    size_t    i;
    uint64_t  began_ms, all_ms, step_ms;
    unsigned  n;

    static const unsigned  failures[] = { 5, 40 };

    (void) state;

    for (i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
        bed_init(&b);
        bed_start(&b, "1");
        began_ms = b.io.now_ms;
        all_ms = 0;
        step_ms = 800;

        for (n = 0; n < failures[i]; n++) {
            io_done(bed_x(&b), KUBE_CONNECT, "refused");
            bed_process(&b);
            (void) bed_sleep(&b);
            assert_string_equal(script_asked(bed_x(&b)), "WATCH rv=1");

            all_ms += step_ms;
            step_ms = (2 * step_ms < 4000) ? 2 * step_ms : 4000;
        }

        assert_in_range(b.io.now_ms - began_ms, all_ms / 2, all_ms);
        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        bed_process(&b);
        assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 0);
        bed_done(&b);
    }
}


/* Another series, from the configuration; and the length of a watch. */
static void
test_custom_backoff_and_watch_timeout(void **state)
{
    size_t                    i;
    uint64_t                  now_ms, slept_ms, all_ms, step_ms;
    unsigned                  n, draw;
    kube_rv_t                 rv;
    kube_action_t             action;
    kube_reflector_conf_t     conf;
    kube_reflector_machine_t  m;

    static const struct {
        uint64_t  first_ms;
        uint64_t  max_ms;
        uint64_t  watch_ms;
    } cases[] = {
        { KUBE_BACKOFF_FIRST_MS, KUBE_BACKOFF_MAX_MS, 300000 },
        { 10, 100, 1800000 }
    };

    (void) state;

    assert_int_equal(kube_rv_parse(KUBE_STR("1"), &rv), KUBE_OK);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        conf = kube_reflector_conf_defaults(0);
        conf.backoff.first_ms = cases[i].first_ms;
        conf.backoff.max_ms = cases[i].max_ms;
        conf.backoff.unreachable_ms = cases[i].max_ms;
        conf.watch_timeout_ms = cases[i].watch_ms;

        for (draw = 0; draw < 50; draw++) {
            conf.seed = draw;
            now_ms = 1000;
            slept_ms = 0;
            all_ms = 0;
            step_ms = cases[i].first_ms;

            kube_reflector_machine_init(&m, &conf);
            action = kube_reflector_input(&m, &(kube_input_t) {
                .kind = KUBE_INPUT_START, .rv = rv
            }, now_ms);

            for (n = 0; n < 5; n++) {
                assert_int_equal(action.kind, KUBE_ACTION_WATCH);
                assert_in_range(action.timeout_s, cases[i].watch_ms / 1000,
                                2 * cases[i].watch_ms / 1000 - 1);

                (void) kube_reflector_input(&m, &(kube_input_t) {
                    .kind = KUBE_INPUT_FAILED, .rc = KUBE_CONNECT
                }, now_ms);

                slept_ms += m.deadline_ms - now_ms;
                now_ms = m.deadline_ms;
                all_ms += step_ms;
                step_ms = (2 * step_ms < cases[i].max_ms) ? 2 * step_ms
                                                          : cases[i].max_ms;
                action = kube_reflector_input(&m, &(kube_input_t) {
                    .kind = KUBE_INPUT_TIMER
                }, now_ms);
            }

            assert_in_range(slept_ms, all_ms / 2, all_ms);
        }
    }
}


/* 429 of the request and 429 in the stream: one sleep each, and no list. */
static void
test_backoff_on_too_many_requests(void **state)
{
    bed_t  b;

    static const script_t  lines[] = {
        { "LIST rv=0 limit=2", 200, LIST("1", "", ""), false },
        { "WATCH rv=1", 429, TOO_MANY, false },
        { "WATCH rv=1", 200, EVENT("ERROR", TOO_MANY), false },
        { "WATCH rv=1", 200, EVENT("ADDED", FULL("a", "2")), false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    assert_int_equal(SCRIPT(&b, lines), 2);
    assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 1);
    assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_TOO_MANY), 2);
    assert_string_equal(drained(&b), "[ ] U:shop/a@2");
    bed_done(&b);
}


static void
test_no_relist_on_too_many_requests(void **state)
{
    bed_t  b;

    static const script_t  lines[] = {
        { "LIST rv=0 limit=2", 200, LIST("1", "", ""), false },
        { "WATCH rv=1", 429, TOO_MANY, false },
        { "WATCH rv=1", 429, TOO_MANY, false },
        { "WATCH rv=1", 429, TOO_MANY, false },
        { "WATCH rv=1", 429, TOO_MANY, false },
        { "WATCH rv=1", 200, "", false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    assert_int_equal(SCRIPT(&b, lines), 4);
    assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 1);
    assert_int_equal(b.io.started, 6);
    bed_done(&b);
}


/*
 * "etcdserver: no leader" in each watch: resumed some times, then listed; a
 * watch that brings something in between starts the count anew.
 */
static void
test_retry_internal_error(void **state)
{
    bed_t  b;

    static const script_t  all_fail[] = {
        { "WATCH rv=5", 200, INTERNAL, false },
        { "WATCH rv=5", 200, INTERNAL, false },
        { "WATCH rv=5", 200, INTERNAL, false },
        { "WATCH rv=5", 200, INTERNAL, false },
        { "LIST rv=5 NotOlderThan limit=2", 200, LIST("5", "", ""), false }
    };

    static const script_t  one_successful[] = {
        { "WATCH rv=5", 200, INTERNAL, false },
        { "WATCH rv=5", 200, INTERNAL, false },
        { "WATCH rv=5", 200, EVENT("ADDED", FULL("a", "6")) INTERNAL, false },
        { "WATCH rv=6", 200, INTERNAL, false },
        { "WATCH rv=6", 200, INTERNAL, false },
        { "WATCH rv=6", 200, INTERNAL, false },
        { "LIST rv=6 NotOlderThan limit=2", 200, LIST("6", "", ""), false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "5");
    assert_int_equal(SCRIPT(&b, all_fail), 4);
    bed_done(&b);

    bed_init(&b);
    bed_start(&b, "5");
    assert_int_equal(SCRIPT(&b, one_successful), 6);
    bed_done(&b);
}


/* A request that is refused so: a list not before a minute of it. */
static void
test_retry_with_deadline(void **state)
{
    bed_t       b;
    uint64_t    began_ms;
    unsigned    sleeps, watches;

    (void) state;

    bed_init(&b);
    bed_start(&b, "5");
    began_ms = b.io.now_ms;
    sleeps = 0;

    for (watches = 0;
         strncmp(script_asked(script_next(&b, &sleeps)), "WATCH", 5) == 0;
         watches++)
    {
        assert_true(watches < 20);
        io_answer(&b.io, bed_x(&b), 500, STATUS(500, "InternalError", ""));
        bed_process(&b);
    }

    assert_true(watches >= 4);
    assert_in_range(b.io.now_ms - began_ms, KUBE_USELESS_MS,
                    KUBE_USELESS_MS + 2 * 30000);
    assert_string_equal(script_asked(bed_x(&b)),
                        "LIST rv=5 NotOlderThan limit=2");
    bed_done(&b);
}


/* A relist asks for nothing older than what we have, and by pages. */
static void
test_resync_with_resource_version(void **state)
{
    bed_t  b;

    static const script_t  lines[] = {
        { "LIST rv=0 limit=2", 200, LIST("10", "", TWO), false },
        { "WATCH rv=10", 410, EXPIRED, false },
        { "LIST rv=10 NotOlderThan limit=2", 200,
          LIST("11", ",\"continue\":\"c1\"", TWO), false },
        { "LIST continue=c1 limit=2", 200, LIST("11", "", SERVICE("p2", "3")),
          false },
        { "WATCH rv=11", 200, "", false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    assert_int_equal(SCRIPT(&b, lines), 0);
    assert_string_equal(drained(&b), "[ R:shop/p0@1 R:shop/p1@2 ] "
                        "[ R:shop/p0@1 R:shop/p1@2 R:shop/p2@3 ]");
    assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS_EXPIRED), 1);
    bed_done(&b);
}


/* "0", "10" which is expired, then any version. */
static void
test_expired_exact_resource_version(void **state)
{
    bed_t  b;

    static const script_t  lines[] = {
        { "LIST rv=0 limit=2", 200, LIST("10", "", ""), false },
        { "WATCH rv=10", 410, EXPIRED, false },
        { "LIST rv=10 NotOlderThan limit=2", 410, EXPIRED, false },
        { "LIST rv= limit=2", 200, LIST("11", "", TWO), false },
        { "WATCH rv=11", 200, "", false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    assert_int_equal(SCRIPT(&b, lines), 0);
    assert_string_equal(drained(&b), "[ ] [ R:shop/p0@1 R:shop/p1@2 ]");
    bed_done(&b);
}


/* Any version is expired as well: paced, for as long as it lasts. */
static void
test_expired_any_version(void **state)
{
    bed_t     b;
    uint64_t  began_ms;
    unsigned  i;

    static const script_t  first[] = {
        { "LIST rv=0 limit=2", 410, EXPIRED, false },
        { "LIST rv= limit=2", 410, EXPIRED, false }
    };

    static const script_t  again[] = {
        { "LIST rv= limit=2", 410, EXPIRED, false }
    };

    static const script_t  well[] = {
        { "LIST rv= limit=2", 200, LIST("11", "", ""), false },
        { "WATCH rv=11", 200, "", false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    began_ms = b.io.now_ms;
    assert_int_equal(SCRIPT(&b, first), 0);

    for (i = 0; i < 100; i++) {
        assert_int_equal(SCRIPT(&b, again), 1);
    }

    assert_true(b.io.now_ms - began_ms > 100u * 13000);
    assert_int_equal(SCRIPT(&b, well), 1);
    bed_done(&b);
}


/* The second page is expired: the whole list at what the first one said. */
static void
test_full_list_if_expired(void **state)
{
    bed_t  b;

    static const script_t  lines[] = {
        { "LIST rv=0 limit=2", 200, LIST("10", "", TWO), false },
        { "WATCH rv=10", 410, EXPIRED, false },
        { "LIST rv=10 NotOlderThan limit=2", 200,
          LIST("11", ",\"continue\":\"c1\"", TWO), false },
        { "LIST continue=c1 limit=2", 410, EXPIRED, false },
        { "LIST rv=11 NotOlderThan", 200,
          LIST("12", "", TWO "," SERVICE("p2", "3")), false },
        { "WATCH rv=12", 200, "", false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    assert_int_equal(SCRIPT(&b, lines), 0);
    assert_non_null(strstr(drained(&b), "[ R:shop/p0@1 R:shop/p1@2 "
                                        "R:shop/p2@3 ]"));
    bed_done(&b);
}


/* "Too large resource version" as servers from 1.19, 1.17 and before say it */
static void
test_full_list_if_too_large(void **state)
{
    bed_t     b;

    static const script_t  lines[] = {
        { "LIST rv=0 limit=2", 200, LIST("20", "", ""), false },
        { "WATCH rv=20", 410, EXPIRED, false },
        { "LIST rv=20 NotOlderThan limit=2", 504,
          TOO_LARGE_CAUSE("\"reason\":\"ResourceVersionTooLarge\""), false },
        { "LIST rv= limit=2", 200, LIST("30", "", ""), false },
        { "WATCH rv=30", 410, EXPIRED, false },
        { "LIST rv=30 NotOlderThan limit=2", 504,
          TOO_LARGE_CAUSE("\"message\":\"Too large resource version\""),
          false },
        { "LIST rv= limit=2", 200, LIST("40", "", ""), false },
        { "WATCH rv=40", 410, EXPIRED, false },
        { "LIST rv=40 NotOlderThan limit=2", 504, TOO_LARGE_MESSAGE, false },
        { "LIST rv= limit=2", 200, LIST("50", "", ""), false },
        { "WATCH rv=50", 200, "", false }
    };

    (void) state;

    bed_init(&b);
    bed_start(&b, "");

    (void) SCRIPT(&b, lines);
    assert_string_equal(drained(&b), "[ ] [ ] [ ] [ ]");
    assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 7);
    bed_done(&b);
}


/*
 * An object that cannot be read in etcd was deleted by force: the watch ends
 * with StorageReadError instead of a DELETED event.  A list tells.
 */
static void
test_replaces_store_on_unsafe_delete(void **state)
{
    bed_t           b;
    uint64_t        began_ms;
    unsigned        i, k, sleeps;
    io_exchange_t  *x;
    script_store_t  store;

    (void) state;

    /* the server's cache begins anew behind it, or each watch meets it */
    for (k = 0; k < 2; k++) {
        bed_init(&b);
        bed_start(&b, "");
        memset(&store, 0, sizeof(store));
        io_answer(&b.io, bed_x(&b), 200, LIST("3", "", TWO));
        bed_process(&b);
        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        bed_cut(&b, EVENT("ADDED", FULL("foo", "4")) UNREADABLE);
        (void) script_take(&b, &store);
        assert_string_equal(script_holds(&store), "foo@4 p0@1 p1@2");
        began_ms = b.io.now_ms;

        for (i = 0; i < 20; i++) {
            x = script_next(&b, &sleeps);

            if (strncmp(script_asked(x), "LIST", 4) == 0) {
                assert_string_equal(script_asked(x),
                                    "LIST rv=4 NotOlderThan limit=2");
                io_answer(&b.io, x, 200, LIST("5", "", TWO));
                break;
            }

            assert_string_equal(script_asked(x), "WATCH rv=4");

            if (k == 0) {
                io_answer(&b.io, x, 410, EXPIRED);

            } else {
                assert_true(io_head(x, 200, "application/json", 0));
                (void) io_body(&b.io, x, UNREADABLE);
            }

            bed_process(&b);
        }

        (void) script_take(&b, &store);
        assert_string_equal(script_holds(&store), "p0@1 p1@2");
        assert_rv(&b, "5");
        assert_true(b.io.now_ms - began_ms < 30000);
        bed_done(&b);
    }
}


/* A thousand events arrive as a thousand deltas, in their order. */
static void
test_orders_events(void **state)
{
    bed_t           b;
    char            text[512];
    unsigned        i;
    kube_delta_t    d;

    (void) state;

    bed_init(&b);
    bed_watch(&b);

    for (i = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "{\"type\":\"%s\",\"object\":{\"kind\":"
                 "\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                 "\"s%u\",\"namespace\":\"shop\",\"uid\":\"u\","
                 "\"resourceVersion\":\"%u\"},\"spec\":{\"ports\":[{\"port\":"
                 "80}]}}}\n", (i % 3) ? "ADDED" : "DELETED", i, i + 6);
        assert_true(io_body(&b.io, bed_x(&b), text));

        /* read at another pace than written */
        if (i % 7 == 0) {
            bed_process(&b);
        }

        if (i % 100 == 99) {
            bed_process(&b);
            assert_int_equal(kube_delta_fifo_depth(b.fifo), 100);

            while (kube_delta_fifo_peek(b.fifo, &d) == KUBE_OK) {
                snprintf(text, sizeof(text), "s%u", i - 99 + (unsigned)
                         (100 - kube_delta_fifo_depth(b.fifo)));
                assert_int_equal(d.name.len, strlen(text));
                assert_memory_equal(d.name.data, text, d.name.len);
                kube_delta_fifo_drop(b.fifo);
            }
        }
    }

    assert_rv(&b, "1005");
    bed_done(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_list_and_watch_requests),
        cmocka_unit_test(test_list_and_watch_with_errors),
        cmocka_unit_test(test_close_watch_channel_on_error),
        cmocka_unit_test(test_stop_in_every_wait),
        cmocka_unit_test(test_very_short_watch),
        cmocka_unit_test(test_watch_handler),
        cmocka_unit_test(test_resource_version_update),
        cmocka_unit_test(test_init_conn_backoff),
        cmocka_unit_test(test_custom_backoff_and_watch_timeout),
        cmocka_unit_test(test_backoff_on_too_many_requests),
        cmocka_unit_test(test_no_relist_on_too_many_requests),
        cmocka_unit_test(test_retry_internal_error),
        cmocka_unit_test(test_retry_with_deadline),
        cmocka_unit_test(test_resync_with_resource_version),
        cmocka_unit_test(test_expired_exact_resource_version),
        cmocka_unit_test(test_expired_any_version),
        cmocka_unit_test(test_full_list_if_expired),
        cmocka_unit_test(test_full_list_if_too_large),
        cmocka_unit_test(test_replaces_store_on_unsafe_delete),
        cmocka_unit_test(test_orders_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

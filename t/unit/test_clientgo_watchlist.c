/*
 * test_clientgo_watchlist - the scenarios of client-go's
 * reflector_watchlist_test.go: lists as streams.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "script_bed.h"


#define ADDED(name, rv)  EVENT("ADDED", FULL(name, rv))

#define END(rv)  INITIAL_END(rv, "\"true\"")

#define LINES_MAX  7

typedef struct {
    const char  *title;
    const char  *holds;           /* the store; in a list: "…" behind it */
    unsigned     sleeps;          /* before one of its requests */
    script_t     lines[LINES_MAX];
} stream_t;


static const stream_t  streams[] = {

    { "the reflector won't be synced if the bookmark event has been received",
      "p1@1…", 0,
      { { "WATCHLIST rv=", 200, ADDED("p1", "1"), false } } },

    { "returning any other error than apierrors.NewInvalid forces fallback",
      "p1@1 p2@2", 3,
      { { "WATCHLIST rv=", 500, STATUS(500, "InternalError", ""), false },
        { "WATCHLIST rv=", 500, STATUS(500, "InternalError", ""), false },
        { "WATCHLIST rv=", 500, STATUS(500, "InternalError", ""), false },
        { "LIST rv=0 limit=2", 200, LIST("1", "", SERVICE("p1", "1")), false },
        { "WATCH rv=1", 200, ADDED("p2", "2"), false } } },

    { "the reflector can fall back to old LIST/WATCH semantics when a server "
      "doesn't support streaming", "p1@1 p2@2", 0,
      { { "WATCHLIST rv=", 422, STATUS(422, "Invalid", ""), false },
        { "LIST rv=0 limit=2", 200, LIST("1", "", SERVICE("p1", "1")), false },
        { "WATCH rv=1", 200, ADDED("p2", "2"), false } } },

    { "prove that the reflector is synced after receiving a bookmark event",
      "p1@1 p2@2", 0,
      { { "WATCHLIST rv=", 200, ADDED("p1", "1") ADDED("p2", "2") END("2"),
          false } } },

    { "check if Updates and Deletes events are propagated during streaming "
      "(until the bookmark is received)", "p1@3 p2@2", 0,
      { { "WATCHLIST rv=", 200, ADDED("p1", "1") ADDED("p2", "2")
          EVENT("MODIFIED", FULL("p1", "3")) ADDED("p3", "4")
          EVENT("DELETED", FULL("p3", "5")) END("5"), false } } },

    { "checks if the reflector retries 429", "p1@1", 2,
      { { "WATCHLIST rv=", 429, STATUS(429, "TooManyRequests", ""), false },
        { "WATCHLIST rv=", 429, STATUS(429, "TooManyRequests", ""), false },
        { "WATCHLIST rv=", 200, ADDED("p1", "1") END("2"), false } } },

    { "check if stopping a watcher before sync results in creating a new "
      "watch-list request", "p2@3", 1,
      { { "WATCHLIST rv=", 200, ADDED("p1", "1"), true },
        { "WATCHLIST rv=1", 200, ADDED("p2", "3") END("4"), false } } },

    /* it ends at once behind its bookmark: as a watch it was very short */
    { "stopping a watcher after synchronization results in creating a new "
      "watch request", "p1@1 p3@4", 1,
      { { "WATCHLIST rv=", 200, ADDED("p1", "1") END("3"), true },
        { "WATCH rv=3", 200, ADDED("p3", "4"), false } } },

    { "expiring an established watcher results in returning an error from the "
      "reflector", "p1@1 p3@4", 1,
      { { "WATCHLIST rv=", 200, ADDED("p1", "1") END("3"), true },
        { "WATCH rv=3", 410, EXPIRED, false },
        { "WATCHLIST rv=3", 200, ADDED("p1", "1") ADDED("p3", "4") END("5"),
          false } } },

    { "prove that the reflector is checking the value of the initialEventsEnd "
      "annotation", "p1@1…", 0,
      { { "WATCHLIST rv=", 200,
          ADDED("p1", "1") INITIAL_END("2", "\"false\""), false } } },

    /* not in client-go, which tries for ever */
    { "closed again and again without its bookmark", "p1@1", 3,
      { { "WATCHLIST rv=", 200, ADDED("p1", "1"), true },
        { "WATCHLIST rv=1", 200, ADDED("p1", "1"), true },
        { "WATCHLIST rv=1", 200, ADDED("p1", "1"), true },
        { "LIST rv=1 NotOlderThan limit=2", 200,
          LIST("2", "", SERVICE("p1", "1")), false },
        { "WATCH rv=2", 410, EXPIRED, false },
        { "LIST rv=2 NotOlderThan limit=2", 200,
          LIST("3", "", SERVICE("p1", "1")), false } } },
};


static void
bed_auto(bed_t *b)
{
    bed_make_for(b, NULL, "", 1024, KUBE_WATCH_LIST_AUTO);
    assert_non_null(b->r);
}


static void
test_watch_list(void **state)
{
    bed_t            b;
    char             holds[1100];
    size_t           i, n;
    unsigned         sleeps;
    const stream_t  *s;
    script_store_t   store;

    (void) state;

    for (i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
        s = &streams[i];
        n = 0;

        while (n < LINES_MAX && s->lines[n].asked != NULL) {
            n++;
        }

        bed_auto(&b);
        bed_start(&b, "");
        memset(&store, 0, sizeof(store));
        sleeps = script_run(&b, s->lines, n);
        (void) script_take(&b, &store);
        snprintf(holds, sizeof(holds), "%s%s", script_holds(&store),
                 store.in_list ? "…" : "");

        if (strcmp(holds, s->holds) != 0 || sleeps != s->sleeps) {
            fail_msg("%s: %s, %u sleeps", s->title, holds, sleeps);
        }

        assert_int_equal(bed_listed(&b), !store.in_list);
        bed_done(&b);
    }
}


/* The version is that of the bookmark, and there is none before it. */
static void
test_watch_list_resource_version(void **state)
{
    bed_t           b;
    io_exchange_t  *x;

    (void) state;

    bed_auto(&b);
    bed_start(&b, "");
    x = bed_x(&b);
    assert_true(io_head(x, 200, "application/json", 0));
    bed_process(&b);
    assert_rv(&b, "");
    assert_true(io_body(&b.io, x, ADDED("p1", "10")));
    bed_process(&b);
    assert_rv(&b, "");
    assert_true(io_body(&b.io, x, EVENT("MODIFIED", FULL("p1", "11"))));
    bed_process(&b);
    assert_rv(&b, "");
    assert_true(io_body(&b.io, x, END("20")));
    bed_process(&b);
    assert_rv(&b, "20");
    assert_true(io_body(&b.io, x, ADDED("p2", "21")));
    bed_process(&b);
    assert_rv(&b, "21");
    bed_done(&b);
}


/* No event for ten seconds: said, and a plain list. */
static void
test_initial_events_end_bookmark_ticker(void **state)
{
    bed_t     b;
    unsigned  events;

    (void) state;

    for (events = 0; events < 2; events++) {
        bed_auto(&b);
        bed_start(&b, "");
        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        bed_process(&b);

        if (events) {
            b.io.now_ms += 9000;
            assert_true(io_body(&b.io, bed_x(&b), ADDED("p1", "10")));
            bed_process(&b);
        }

        b.io.now_ms += KUBE_STREAM_MS - 1;
        bed_process(&b);
        assert_int_equal(b.io.started, 1);
        b.io.now_ms++;
        bed_process(&b);
        assert_string_equal(b.reason, "timeout");
        assert_int_equal(strncmp(script_asked(bed_x(&b)), "LIST", 4), 0);
        bed_done(&b);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_watch_list),
        cmocka_unit_test(test_watch_list_resource_version),
        cmocka_unit_test(test_initial_events_end_bookmark_ticker),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

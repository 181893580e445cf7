/*
 * test_reflector_stream - when the step machine asks for a WatchList, what it
 * makes of one that is refused or never ended, and what it remembers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_step_bed.h"


static void
bed_cold(bed_t *b, kube_watch_list_t watch_list)
{
    bed_make(b, watch_list);
    say(b, KUBE_INPUT_START);
}


/* A plain list that the server grants, to its end and to an open watch. */
static void
list_plainly(bed_t *b, const char *rv)
{
    assert_int_equal(b->action.kind, KUBE_ACTION_LIST);
    say(b, KUBE_INPUT_OPENED);
    assert_int_equal(say_rv(b, KUBE_INPUT_META, rv), KUBE_ACTION_NONE);
    assert_int_equal(say(b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    assert_true(b->action.synced);
    assert_str(b->action.rv, rv);
    say(b, KUBE_INPUT_OPENED);
}


/* The next list, whatever the last relist's pace was. */
static kube_action_kind_t
expire(bed_t *b)
{
    b->now_ms += 3600000;

    return say_status(b, KUBE_VERDICT_EXPIRED);
}


/*
 * One that is gone each time a WatchList broke off may die of them.  That it
 * cannot be connected to does not make it forgotten, as it would of an outage.
 */
static void
test_dies_of_it(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_cold(&b, KUBE_WATCH_LIST_AUTO);

    for (i = 0; i < KUBE_STREAM_BROKEN_MAX; i++) {
        assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
        say(&b, KUBE_INPUT_SENT);

        if (i != 1) {
            say(&b, KUBE_INPUT_OPENED);
        }

        say_failed(&b, KUBE_CLOSED);
        (void) wake(&b);
        say_failed(&b, KUBE_CONNECT);
        (void) wake(&b);

        /* more of the same outage are no deaths */

        say_failed(&b, KUBE_CONNECT);
        (void) wake(&b);
    }

    say_failed(&b, KUBE_CONNECT);
    (void) wake(&b);
    list_plainly(&b, "7");
    assert_true(b.traits.no_watch_list);

    /* outages without a WatchList teach nothing */

    bed_cold(&b, KUBE_WATCH_LIST_AUTO);

    for (i = 0; i < 3 * KUBE_STREAM_BROKEN_MAX; i++) {
        assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
        say_failed(&b, KUBE_CONNECT);
        (void) wake(&b);
    }

    /* and a list that is complete makes an end of the count */

    for (i = 0; i < 3 * KUBE_STREAM_BROKEN_MAX; i++) {
        assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
        say(&b, KUBE_INPUT_OPENED);
        say_failed(&b, KUBE_CLOSED);
        (void) wake(&b);
        say_failed(&b, KUBE_CONNECT);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
        say(&b, KUBE_INPUT_OPENED);
        say_rv(&b, KUBE_INPUT_META, "9");
        say(&b, KUBE_INPUT_LIST_DONE);
        assert_int_equal(expire(&b), KUBE_ACTION_STREAM);
    }
}


static void
test_cold_start(void **state)
{
    bed_t  b;

    (void) state;

    bed_cold(&b, KUBE_WATCH_LIST_AUTO);

    assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
    assert_int_equal(b.action.rv.len, 0);
    assert_true(b.action.not_older_than);
    assert_true(b.action.first_page);
    assert_false(b.action.relist);
    assert_int_equal(b.action.limit, 0);
    assert_in_range(b.action.timeout_s, 300, 599);

    say(&b, KUBE_INPUT_SENT);
    say(&b, KUBE_INPUT_OPENED);
    say_rv(&b, KUBE_INPUT_ITEM, "7");
    say_rv(&b, KUBE_INPUT_ITEM, "3");
    say_rv(&b, KUBE_INPUT_EVENT, "9");
    say_rv(&b, KUBE_INPUT_BOOKMARK, "11");

    /* the version is that of its end, and nothing before that */
    assert_int_equal(b.r.rv.len, 0);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "12"), KUBE_ACTION_NONE);
    assert_int_equal(b.r.rv.len, 0);
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_NONE);
    assert_true(b.action.synced);
    assert_int_equal(b.r.state, KUBE_REFLECTOR_WATCHING);
    assert_str(kube_rv_str(&b.r.rv), "12");
    assert_int_equal(b.r.deadline_ms, b.now_ms + 90000);

    /* the same call goes on */
    say_rv(&b, KUBE_INPUT_EVENT, "13");
    b.now_ms += 5000;
    assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "13");
    assert_false(b.traits.no_watch_list);
}


/* What is not older than our version may be streamed; the rest is listed. */
static void
test_relists(void **state)
{
    bed_t  b;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_STREAMING);
    assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
    assert_str(b.action.rv, "100");
    assert_true(b.action.relist);
    assert_int_equal(b.action.reason, KUBE_RELIST_EXPIRED);

    /* 410 and 504: a quorum read, whose version is known before its items */
    assert_int_equal(say_status(&b, KUBE_VERDICT_TOO_LARGE_RV),
                     KUBE_ACTION_LIST);
    assert_int_equal(b.action.rv.len, 0);
    assert_int_equal(b.action.reason, KUBE_RELIST_TOO_LARGE_RV);
    list_plainly(&b, "101");

    assert_int_equal(expire(&b), KUBE_ACTION_STREAM);
    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_LIST);
    assert_int_equal(b.action.rv.len, 0);
    list_plainly(&b, "102");
    assert_false(b.traits.no_watch_list);

    b.now_ms += 3600000;
    assert_int_equal(say_status(&b, KUBE_VERDICT_TOO_LARGE_RV),
                     KUBE_ACTION_LIST);
    list_plainly(&b, "103");

    /* one that was asked for waits until the WatchList is whole */
    b.now_ms += 3600000;
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_STREAM);
    assert_int_equal(b.action.reason, KUBE_RELIST_ROOM);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);
    say_rv(&b, KUBE_INPUT_META, "104");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_NONE);
    assert_in_range(b.r.deadline_ms - b.now_ms, 1, KUBE_DEMAND_FIRST_MS);
    assert_int_equal(say_timer(&b), KUBE_ACTION_STREAM);
    assert_str(b.action.rv, "104");

    /* not all of it was taken: a plain list, once */
    say_rv(&b, KUBE_INPUT_META, "105");
    say(&b, KUBE_INPUT_LIST_DONE);
    b.now_ms += 3600000;
    assert_int_equal(feed(&b, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                                .reason = KUBE_RELIST_OTHER,
                                                .plain = true }),
                     KUBE_ACTION_LIST);
    assert_str(b.action.rv, "105");
    list_plainly(&b, "106");
    assert_int_equal(expire(&b), KUBE_ACTION_STREAM);
    assert_false(b.traits.no_watch_list);
}


/* What a server answers to a WatchList, and whether it is asked again. */
static void
test_refusals(void **state)
{
    bed_t     b;
    unsigned  i;

    static const struct {
        kube_verdict_t      verdict;
        kube_watch_list_t   watch_list;
        bool                at_once;       /* the plain list */
        bool                remembered;    /* when that is granted */
        kube_action_kind_t  again;
    } cases[] = {
        { KUBE_VERDICT_INVALID, KUBE_WATCH_LIST_AUTO, true, true,
          KUBE_ACTION_LIST },
        { KUBE_VERDICT_NOT_FOUND, KUBE_WATCH_LIST_AUTO, true, true,
          KUBE_ACTION_LIST },
        { KUBE_VERDICT_FORBIDDEN, KUBE_WATCH_LIST_AUTO, true, false,
          KUBE_ACTION_STREAM },
        { KUBE_VERDICT_INVALID, KUBE_WATCH_LIST_ON, true, true,
          KUBE_ACTION_STREAM },
        { KUBE_VERDICT_TOO_MANY, KUBE_WATCH_LIST_AUTO, false, false,
          KUBE_ACTION_STREAM },
        { KUBE_VERDICT_INTERNAL, KUBE_WATCH_LIST_AUTO, false, false,
          KUBE_ACTION_STREAM }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        bed_cold(&b, cases[i].watch_list);
        say_status(&b, cases[i].verdict);

        if (!cases[i].at_once) {

            /* it may pass: asked again twice, then a plain list */
            (void) wake(&b);
            assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
            say_status(&b, cases[i].verdict);
            (void) wake(&b);
            assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
            assert_int_equal(say_status_after(&b, cases[i].verdict, 9),
                             KUBE_ACTION_SLEEP);
            assert_true(wake(&b) >= 9000);
        }

        /* a list that fails too proves nothing, and no other way is tried */
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_str(b.action.rv, "0");
        assert_int_equal(say_status(&b, KUBE_VERDICT_FORBIDDEN),
                         KUBE_ACTION_SLEEP);
        assert_false(b.traits.no_watch_list);
        (void) wake(&b);

        list_plainly(&b, "10");
        assert_int_equal(b.traits.no_watch_list, cases[i].remembered);
        assert_int_equal(expire(&b), cases[i].again);
    }
}


/* Streams without an end: three, with a pause each; then a plain list. */
static void
test_broken(void **state)
{
    bed_t     b;
    unsigned  i, n;

    static const struct {
        bool       opened;
        kube_rc_t  rc;
        bool       remembered;
    } cases[] = {
        { true, KUBE_OK, true },
        { true, KUBE_CLOSED, true },
        { true, KUBE_PROTO, true },
        { false, KUBE_CLOSED, false },
        { false, KUBE_TIMEOUT, false }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {

        bed_cold(&b, KUBE_WATCH_LIST_AUTO);

        for (n = 0; n < KUBE_STREAM_BROKEN_MAX; n++) {
            assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
            assert_true(b.action.rv.len == (n != 0 && cases[i].opened));

            if (cases[i].opened) {
                say(&b, KUBE_INPUT_OPENED);
                say_rv(&b, KUBE_INPUT_ITEM, "7");
            }

            if (cases[i].rc == KUBE_OK) {
                say(&b, KUBE_INPUT_CLOSED);

            } else if (cases[i].rc == KUBE_PROTO) {
                say(&b, KUBE_INPUT_PROTOCOL);

            } else {
                say_failed(&b, cases[i].rc);
            }

            assert_true(wake(&b) >= 400);
        }

        /* not older than what was taken of them */
        assert_str(b.action.rv, cases[i].opened ? "7" : "0");
        list_plainly(&b, "10");
        assert_int_equal(b.traits.no_watch_list, cases[i].remembered);
    }

    /* those that never connected do not count, nor does lack of memory */
    bed_cold(&b, KUBE_WATCH_LIST_AUTO);

    for (n = 0; n < 20; n++) {
        say_failed(&b, (n % 3 == 0) ? KUBE_CONNECT
                       : (n % 3 == 1) ? KUBE_TLS : KUBE_NOMEM);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
    }

    /* one that ended well begins the count anew */
    for (n = 0; n < 4; n++) {
        say(&b, KUBE_INPUT_OPENED);
        say(&b, KUBE_INPUT_CLOSED);
        (void) wake(&b);
        say(&b, KUBE_INPUT_OPENED);
        say_rv(&b, KUBE_INPUT_META, "10");
        say(&b, KUBE_INPUT_LIST_DONE);
        assert_int_equal(expire(&b), KUBE_ACTION_STREAM);
    }
}


/* Silence, and bytes that bring a list no further. */
static void
test_no_end(void **state)
{
    bed_t     b;
    uint64_t  began_ms;

    (void) state;

    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    say(&b, KUBE_INPUT_OPENED);
    b.now_ms += KUBE_STREAM_MS - 1;
    say_rv(&b, KUBE_INPUT_ITEM, "7");
    assert_int_equal(b.r.deadline_ms, b.now_ms + KUBE_STREAM_MS);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_non_null(b.action.timeout);
    assert_str(b.action.rv, "7");
    list_plainly(&b, "10");
    assert_true(b.traits.no_watch_list);

    /* not even a head: an outage may be over by now, and taught nothing */
    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    assert_int_equal(b.r.deadline_ms, b.now_ms + KUBE_STREAM_MS);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    list_plainly(&b, "10");
    assert_false(b.traits.no_watch_list);
    assert_int_equal(expire(&b), KUBE_ACTION_STREAM);

    /* the same again is no accident */
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    list_plainly(&b, "20");
    assert_true(b.traits.no_watch_list);
    assert_int_equal(expire(&b), KUBE_ACTION_LIST);

    /* one that is answered between two is what is known of it */
    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    list_plainly(&b, "10");
    assert_int_equal(expire(&b), KUBE_ACTION_STREAM);
    say(&b, KUBE_INPUT_OPENED);
    say_rv(&b, KUBE_INPUT_META, "11");
    say(&b, KUBE_INPUT_LIST_DONE);
    assert_int_equal(expire(&b), KUBE_ACTION_STREAM);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    list_plainly(&b, "20");
    assert_false(b.traits.no_watch_list);

    /* bookmarks that are not the one */
    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    say(&b, KUBE_INPUT_OPENED);
    began_ms = b.now_ms;

    while (b.r.state == KUBE_REFLECTOR_STREAMING) {
        b.now_ms += 5000;
        say_alive(&b, false);
        say_rv(&b, KUBE_INPUT_BOOKMARK, "9");

        if (b.now_ms >= b.r.deadline_ms) {
            say(&b, KUBE_INPUT_TIMER);
        }
    }

    assert_int_equal(b.now_ms - began_ms, KUBE_LIST_MS);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);

    /* an object that never ends */
    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    say(&b, KUBE_INPUT_OPENED);
    began_ms = b.now_ms;

    while (b.r.state == KUBE_REFLECTOR_STREAMING) {
        b.now_ms += 1000;
        say_alive(&b, true);

        if (b.now_ms >= b.r.deadline_ms) {
            say(&b, KUBE_INPUT_TIMER);
        }
    }

    assert_in_range(b.now_ms - began_ms, KUBE_OBJECT_MS, KUBE_OBJECT_MS + 1000);

    /* items for ever: until the server should have ended it */
    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    say(&b, KUBE_INPUT_OPENED);
    began_ms = b.now_ms;

    while (b.r.state == KUBE_REFLECTOR_STREAMING) {
        b.now_ms += 1000;
        say_rv(&b, KUBE_INPUT_ITEM, "7");

        if (b.now_ms >= b.r.deadline_ms) {
            say(&b, KUBE_INPUT_TIMER);
        }
    }

    assert_in_range(b.now_ms - began_ms, 300000,
                    600000 + KUBE_DEADLINE_MARGIN_MS);

    /* not the end of a whole list */
    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say(&b, KUBE_INPUT_META), KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
}


/* An end below our version, though the server said that it is not older. */
static void
test_lagging_replica(void **state)
{
    bed_t     b;
    unsigned  i;

    static const struct {
        const char  *item;
        const char  *end;
    } cases[] = {
        { "7", "99" },       /* older than what we have */
        { "120", "119" }     /* than what it has sent itself */
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_in(&b, KUBE_REFLECTOR_STREAMING);
        say(&b, KUBE_INPUT_OPENED);
        say_rv(&b, KUBE_INPUT_ITEM, cases[i].item);
        assert_int_equal(say_rv(&b, KUBE_INPUT_META, cases[i].end),
                         KUBE_ACTION_SLEEP);
        assert_str(kube_rv_str(&b.r.rv), "100");

        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_str(b.action.rv, (i == 0) ? "100" : "120");
        assert_int_equal(say_rv(&b, KUBE_INPUT_META, "99"),
                         KUBE_ACTION_SLEEP);
        (void) wake(&b);
        list_plainly(&b, "130");
    }
}


static void
test_unreadable(void **state)
{
    bed_t  b;

    (void) state;

    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say(&b, KUBE_INPUT_UNREADABLE), KUBE_ACTION_SLEEP);
    (void) wake(&b);
    list_plainly(&b, "10");

    /* one object's fault is not the server's */
    assert_false(b.traits.no_watch_list);
    assert_int_equal(expire(&b), KUBE_ACTION_STREAM);
}


/* What is known is known to all scopes, until it may be another server. */
static void
test_shared(void **state)
{
    bed_t  a, b;

    (void) state;

    bed_make(&a, KUBE_WATCH_LIST_AUTO);
    bed_make(&b, KUBE_WATCH_LIST_AUTO);
    b.r.conf.traits = &a.traits;

    assert_int_equal(say(&a, KUBE_INPUT_START), KUBE_ACTION_STREAM);
    say_status(&a, KUBE_VERDICT_INVALID);
    list_plainly(&a, "10");

    assert_int_equal(say(&b, KUBE_INPUT_START), KUBE_ACTION_LIST);
    assert_str(b.action.rv, "0");
    list_plainly(&b, "10");

    /* no answer is not yet another server */
    say_failed(&b, KUBE_TIMEOUT);
    assert_int_equal(expire(&a), KUBE_ACTION_LIST);
    list_plainly(&a, "11");

    /* nor is one that was away soon after */
    b.now_ms += 600000;
    (void) say(&b, KUBE_INPUT_TIMER);
    say_failed(&b, KUBE_CONNECT);
    assert_int_equal(expire(&a), KUBE_ACTION_LIST);
    list_plainly(&a, "12");

    b.now_ms += KUBE_TRAITS_MS;
    (void) say(&b, KUBE_INPUT_TIMER);
    say_failed(&b, KUBE_CONNECT);
    assert_int_equal(expire(&a), KUBE_ACTION_STREAM);

    /* without a place to remember each list begins with a WatchList */
    bed_make(&b, KUBE_WATCH_LIST_AUTO);
    b.r.conf.traits = NULL;
    say(&b, KUBE_INPUT_START);
    say_status(&b, KUBE_VERDICT_INVALID);
    list_plainly(&b, "10");
    assert_int_equal(expire(&b), KUBE_ACTION_STREAM);
}


/* A list in place of useless watches is none of them. */
static void
test_instead_of_watches(void **state)
{
    bed_t     b;
    unsigned  n;

    (void) state;

    bed_make(&b, KUBE_WATCH_LIST_ON);
    say_rv(&b, KUBE_INPUT_START, "100");

    for (n = 0; n < KUBE_USELESS_WATCHES_MAX; n++) {
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
        say(&b, KUBE_INPUT_PROTOCOL);
        (void) wake(&b);
    }

    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);

    /* once its items have begun it is brought to an end */
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "105"), KUBE_ACTION_NONE);
    say_failed(&b, KUBE_CLOSED);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    say_failed(&b, KUBE_CLOSED);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    list_plainly(&b, "106");
}


static void
test_credentials(void **state)
{
    bed_t  b;

    (void) state;

    bed_cold(&b, KUBE_WATCH_LIST_AUTO);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_CREDENTIALS);
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_STREAM);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_SLEEP);
    (void) wake(&b);

    /* behind a good head, without a loop */
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_SLEEP);
    b.now_ms += KUBE_CREDENTIALS_PACE_MS;
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_STREAM);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_CREDENTIALS);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_dies_of_it),
        cmocka_unit_test(test_cold_start),
        cmocka_unit_test(test_relists),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_no_end),
        cmocka_unit_test(test_lagging_replica),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_instead_of_watches),
        cmocka_unit_test(test_credentials),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

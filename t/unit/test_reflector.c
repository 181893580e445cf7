/*
 * test_reflector - every state with every input, the sequences the header's
 * table promises, and a long random run that looks for broken invariants.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_bed.h"


/* Every state with every input.  "": nothing happens. */

typedef struct {
    const char  *cells[KUBE_INPUTS];   /* "STATE action", by input */
} row_t;

/*
 * Order of columns: START META PAGE LIST_DONE OPENED BYTES EVENT BOOKMARK
 * STATUS(internal) PROTOCOL CLOSED FAILED(closed) TIMER RELIST STOP.  META,
 * EVENT and BOOKMARK carry 101, PAGE a token, START no version.
 */
static const row_t  matrix[] = {
    [KUBE_REFLECTOR_IDLE] = { {
        "L list", "", "", "", "", "", "", "",
        "", "", "", "", "", "", "S stop" } },
    [KUBE_REFLECTOR_LISTING] = { {
        "", "", "B sleep", "B sleep", "", "", "", "",
        "B sleep", "B sleep", "B sleep", "B sleep", "B sleep", "",
        "S stop" } },
    [KUBE_REFLECTOR_OPENING] = { {
        "", "", "", "", "W none", "", "", "",
        "B sleep", "B sleep", "B sleep", "B sleep", "B sleep", "L list",
        "S stop" } },
    [KUBE_REFLECTOR_WATCHING] = { {
        "", "", "", "", "", "", "W none", "W none",
        "B sleep", "B sleep", "B sleep", "B sleep", "O watch", "L list",
        "S stop" } },
    [KUBE_REFLECTOR_BACKOFF] = { {
        "", "", "", "", "", "", "", "",
        "", "", "", "", "O watch", "", "S stop" } },
    [KUBE_REFLECTOR_STOPPED] = { {
        "", "", "", "", "", "", "", "", "", "", "", "", "", "", "" } }
};


static kube_action_kind_t
say_any(bed_t *b, kube_input_kind_t kind)
{
    switch (kind) {

    case KUBE_INPUT_META:
    case KUBE_INPUT_EVENT:
    case KUBE_INPUT_BOOKMARK:
        return say_rv(b, kind, "101");

    case KUBE_INPUT_PAGE:
        return say_page(b, "token");

    case KUBE_INPUT_STATUS:
        return say_status(b, KUBE_VERDICT_INTERNAL);

    case KUBE_INPUT_FAILED:
        return say_failed(b, KUBE_CLOSED);

    case KUBE_INPUT_TIMER:
        if (kube_reflector_deadline(&b->r) != UINT64_MAX) {
            b->now_ms = kube_reflector_deadline(&b->r);
        }

        return say(b, kind);

    default:
        return say(b, kind);
    }
}


static void
test_matrix(void **state)
{
    bed_t                  b;
    unsigned               s, i;
    const char            *cell;
    char                   seen[32];
    static const char      letters[] = "ILOWBS";
    static const char     *actions[] = {
        "none", "list", "watch", "sleep", "credentials", "stop"
    };

    (void) state;

    for (s = 0; s <= KUBE_REFLECTOR_STOPPED; s++) {
        for (i = 0; i < KUBE_INPUTS; i++) {

            bed_in(&b, (kube_reflector_state_t) s);
            (void) say_any(&b, (kube_input_kind_t) i);

            snprintf(seen, sizeof(seen), "%c %s", letters[b.r.state],
                     actions[b.action.kind]);

            cell = matrix[s].cells[i];

            if (cell[0] == '\0') {
                assert_int_equal(b.action.kind, KUBE_ACTION_NONE);
                assert_int_equal(b.r.state, s);
                continue;
            }

            if (strcmp(cell, seen) != 0) {
                print_error("state %c input %u: %s, not %s\n", letters[s], i,
                            seen, cell);
            }

            assert_string_equal(cell, seen);
        }
    }
}


static void
test_cold_start(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    assert_int_equal(kube_reflector_deadline(&b.r), UINT64_MAX);

    assert_int_equal(say(&b, KUBE_INPUT_START), KUBE_ACTION_LIST);
    assert_true(b.action.first_page);
    assert_false(b.action.relist);
    assert_str(b.action.rv, "0");
    assert_false(b.action.not_older_than);
    assert_int_equal(b.action.limit, 500);
    assert_int_equal(b.action.continue_token.len, 0);

    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "10"), KUBE_ACTION_NONE);

    assert_int_equal(say_page(&b, "next"), KUBE_ACTION_LIST);
    assert_false(b.action.first_page);
    assert_str(b.action.continue_token, "next");
    assert_int_equal(b.action.rv.len, 0);
    assert_false(b.action.not_older_than);
    assert_int_equal(b.action.limit, 500);

    /* the version is that of the first page */
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "12"), KUBE_ACTION_NONE);

    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    assert_true(b.action.synced);
    assert_false(b.action.rollback);
    assert_str(b.action.rv, "10");
    assert_in_range(b.action.timeout_s, 300, 599);
    assert_int_equal(b.r.state, KUBE_REFLECTOR_OPENING);

    assert_int_equal(say(&b, KUBE_INPUT_OPENED), KUBE_ACTION_NONE);
    assert_int_equal(say_rv(&b, KUBE_INPUT_EVENT, "11"), KUBE_ACTION_NONE);
    assert_int_equal(say_rv(&b, KUBE_INPUT_BOOKMARK, "99"), KUBE_ACTION_NONE);
    assert_int_equal(say_rv(&b, KUBE_INPUT_EVENT, "99"), KUBE_ACTION_NONE);
    assert_int_equal(say_rv(&b, KUBE_INPUT_EVENT, ""), KUBE_ACTION_NONE);

    assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "99");
    assert_false(b.action.synced);
}


static void
test_list_without_version(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    say(&b, KUBE_INPUT_START);
    assert_int_equal(say(&b, KUBE_INPUT_META), KUBE_ACTION_SLEEP);

    (void) wake(&b);
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_SLEEP);
}


static void
test_pages_in_circles(void **state)
{
    bed_t     b;
    unsigned  i;
    char      token[32];

    (void) state;

    bed_init(&b);
    say(&b, KUBE_INPUT_START);
    say_rv(&b, KUBE_INPUT_META, "10");

    for (i = 0; i < KUBE_PAGES_MAX; i++) {
        snprintf(token, sizeof(token), "token-%u", i);
        assert_int_equal(say_page(&b, token), KUBE_ACTION_LIST);
    }

    assert_int_equal(say_page(&b, "one more"), KUBE_ACTION_SLEEP);

    (void) wake(&b);
    say_rv(&b, KUBE_INPUT_META, "10");
    assert_int_equal(say_page(&b, "same"), KUBE_ACTION_LIST);
    assert_int_equal(say_page(&b, "same"), KUBE_ACTION_SLEEP);
}


static void
test_expired_page(void **state)
{
    bed_t  b;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_LISTING);
    assert_true(b.action.relist);
    assert_int_equal(b.action.reason, KUBE_RELIST_EXPIRED);
    assert_str(b.action.rv, "100");
    assert_true(b.action.not_older_than);
    assert_int_equal(b.action.limit, 500);

    say_rv(&b, KUBE_INPUT_META, "105");
    say_page(&b, "a");

    /* the whole list at what was seen, then a consistent read */
    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_LIST);
    assert_true(b.action.first_page);
    assert_str(b.action.rv, "105");
    assert_true(b.action.not_older_than);
    assert_int_equal(b.action.limit, 0);

    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_LIST);
    assert_int_equal(b.action.rv.len, 0);
    assert_false(b.action.not_older_than);
    assert_int_equal(b.action.limit, 500);

    /* once */
    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_int_equal(b.action.rv.len, 0);

    /* success forgets */
    say_rv(&b, KUBE_INPUT_META, "110");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "110");
    b.now_ms += 3600000;
    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_LIST);
    assert_str(b.action.rv, "110");
    assert_int_equal(b.action.limit, 500);
}


static void
test_too_large(void **state)
{
    bed_t  b;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_LISTING);
    assert_int_equal(say_status(&b, KUBE_VERDICT_TOO_LARGE_RV),
                     KUBE_ACTION_LIST);
    assert_int_equal(b.action.rv.len, 0);
    assert_int_equal(b.action.reason, KUBE_RELIST_TOO_LARGE_RV);
    assert_int_equal(say_status_after(&b, KUBE_VERDICT_TOO_LARGE_RV, 5),
                     KUBE_ACTION_SLEEP);
    assert_true(wake(&b) >= 5000);

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_status(&b, KUBE_VERDICT_TOO_LARGE_RV),
                     KUBE_ACTION_LIST);
    assert_int_equal(b.action.rv.len, 0);
}


/* A list at the watch's version, and the loop 410, list, 410 is paced. */
static void
test_watch_expired(void **state)
{
    bed_t     b;
    uint64_t  began_ms;
    unsigned  i;
    char      rv[16];

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_OPENING);
    began_ms = b.now_ms;

    for (i = 0; i < 1000; i++) {

        if (say_status(&b, KUBE_VERDICT_EXPIRED) == KUBE_ACTION_SLEEP) {
            assert_true(i != 0);
            assert_true(wake(&b) >= 400);

        } else {
            assert_true(i == 0);
        }

        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_true(b.action.not_older_than);

        snprintf(rv, sizeof(rv), "%u", 200 + i);
        say_rv(&b, KUBE_INPUT_META, rv);
        assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    }

    /* in the long run at half the ceiling and more */
    assert_true(b.now_ms - began_ms > 1000ull * 14000);

    /* after a long good time the first comes at once again */
    say(&b, KUBE_INPUT_OPENED);
    b.now_ms += 600000;
    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_LIST);
}


static void
test_unauthorized(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_OPENING);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_CREDENTIALS);
    assert_int_equal(wake(&b), 0);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "100");

    for (i = 0; i < 10; i++) {
        assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                         KUBE_ACTION_SLEEP);
        assert_true(wake(&b) >= 400);
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    }

    /* it worked once: the next 401 is new */
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_CREDENTIALS);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);

    bed_init(&b);
    say(&b, KUBE_INPUT_START);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_CREDENTIALS);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_str(b.action.rv, "0");
}


/* All other verdicts: back off, then the same again. */
static void
test_other_verdicts(void **state)
{
    bed_t                   b;
    unsigned                v, s;
    kube_reflector_state_t  states[] = {
        KUBE_REFLECTOR_LISTING, KUBE_REFLECTOR_OPENING,
        KUBE_REFLECTOR_WATCHING
    };

    (void) state;

    for (v = 0; v < KUBE_VERDICTS; v++) {

        if (v == KUBE_VERDICT_EXPIRED || v == KUBE_VERDICT_TOO_LARGE_RV
            || v == KUBE_VERDICT_UNAUTHORIZED)
        {
            continue;
        }

        for (s = 0; s < 3; s++) {
            bed_in(&b, states[s]);
            assert_int_equal(say_status(&b, (kube_verdict_t) v),
                             KUBE_ACTION_SLEEP);
            assert_in_range(wake(&b), 400, 800);
            assert_int_equal(b.action.kind, (s == 0) ? KUBE_ACTION_LIST
                                                     : KUBE_ACTION_WATCH);
            assert_str(b.action.rv,
                       (s == 0 && v == KUBE_VERDICT_INVALID) ? "" : "100");

            bed_in(&b, states[s]);
            say_status_after(&b, (kube_verdict_t) v, 300);
            assert_int_equal(wake(&b), 300000);
        }
    }

    /* a version the server calls invalid cannot be resumed for ever */
    bed_in(&b, KUBE_REFLECTOR_OPENING);
    say_status(&b, KUBE_VERDICT_INVALID);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    say_status(&b, KUBE_VERDICT_INVALID);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_int_equal(b.action.reason, KUBE_RELIST_PROTOCOL);
}


static void
test_short_watches(void **state)
{
    bed_t     b;
    uint64_t  began_ms, slept_ms;
    unsigned  i, resumed;
    char      rv[16];

    (void) state;

    /* opened and closed without an event */
    bed_in(&b, KUBE_REFLECTOR_OPENING);
    began_ms = b.now_ms;

    for (i = 0; i < 1000; i++) {
        say(&b, KUBE_INPUT_OPENED);
        b.now_ms += 1;
        assert_int_equal((i & 1) ? say(&b, KUBE_INPUT_CLOSED)
                                 : say_failed(&b, KUBE_CLOSED),
                         KUBE_ACTION_SLEEP);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    }

    assert_true(b.now_ms - began_ms > 1000ull * 14000);

    /* with an event each: at once, but not for ever */
    bed_in(&b, KUBE_REFLECTOR_OPENING);
    resumed = 0;
    slept_ms = 0;

    for (i = 0; i < 100; i++) {
        say(&b, KUBE_INPUT_OPENED);
        snprintf(rv, sizeof(rv), "%u", 101 + i);
        say_rv(&b, KUBE_INPUT_EVENT, rv);

        if (say(&b, KUBE_INPUT_CLOSED) == KUBE_ACTION_WATCH) {
            resumed++;
        } else {
            slept_ms += wake(&b);
        }

        assert_str(b.action.rv, rv);
    }

    assert_int_equal(resumed, KUBE_SHORT_WATCHES_MAX);
    assert_true(slept_ms > 90 * 400);

    /* a good one starts the count anew */
    say(&b, KUBE_INPUT_OPENED);
    b.now_ms += KUBE_SHORT_WATCH_MS;
    assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    say_rv(&b, KUBE_INPUT_EVENT, "900");
    assert_int_equal(say_failed(&b, KUBE_CLOSED), KUBE_ACTION_WATCH);
}


static void
test_idle_and_deadline(void **state)
{
    bed_t     b;
    uint64_t  opened_ms, timeout_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    opened_ms = b.now_ms;
    timeout_ms = 0;
    assert_int_equal(kube_reflector_deadline(&b.r), b.now_ms + 90000);

    b.now_ms += 60000;
    say(&b, KUBE_INPUT_BYTES);
    assert_int_equal(kube_reflector_deadline(&b.r), b.now_ms + 90000);

    b.now_ms += 90000;
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "100");

    /* a chatty watch ends at its deadline all the same */
    timeout_ms = b.action.timeout_s * 1000ull;
    opened_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);

    for ( ;; ) {
        b.now_ms += 1000;

        if (b.now_ms >= kube_reflector_deadline(&b.r)) {
            break;
        }

        say(&b, KUBE_INPUT_BYTES);
    }

    assert_in_range(b.now_ms - opened_ms, timeout_ms + 30000,
                    timeout_ms + 31000);
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_WATCH);

    /* no head at all is an unreachable server */
    b.now_ms = kube_reflector_deadline(&b.r);
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_SLEEP);
}


static void
test_outage(void **state)
{
    bed_t      b;
    uint64_t   slept_ms;
    unsigned   i;
    kube_rc_t  rcs[] = {
        KUBE_CONNECT, KUBE_TLS, KUBE_TIMEOUT, KUBE_CLOSED
    };

    (void) state;

    /* a healthy watch breaks: at once; then never longer than 4 s */
    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    b.now_ms += 5000;
    assert_int_equal(say_failed(&b, KUBE_CLOSED), KUBE_ACTION_WATCH);

    for (i = 0; i < 100; i++) {
        assert_int_equal(say_failed(&b, rcs[i % 4]), KUBE_ACTION_SLEEP);
        slept_ms = wake(&b);
        assert_in_range(slept_ms, 400, 4000);
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
        assert_str(b.action.rv, "100");
    }

    /* one that answers, and then breaks, is another thing */
    bed_init(&b);
    say(&b, KUBE_INPUT_START);

    for (i = 0, slept_ms = 0; i < 20; i++) {
        say(&b, KUBE_INPUT_BYTES);
        say_failed(&b, KUBE_CLOSED);
        slept_ms = wake(&b);
        assert_in_range(slept_ms, 400, 30000);
    }

    assert_true(slept_ms >= 15000);
}


static void
test_protocol(void **state)
{
    bed_t  b;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say(&b, KUBE_INPUT_PROTOCOL);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);

    /* the version moved: not twice in a row at the same one */
    say(&b, KUBE_INPUT_OPENED);
    say_rv(&b, KUBE_INPUT_EVENT, "101");
    say(&b, KUBE_INPUT_PROTOCOL);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);

    say(&b, KUBE_INPUT_OPENED);
    say(&b, KUBE_INPUT_PROTOCOL);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_int_equal(b.action.reason, KUBE_RELIST_PROTOCOL);
    assert_str(b.action.rv, "101");
    assert_true(b.action.not_older_than);

    /* a wrong head is no ground for a list */
    bed_in(&b, KUBE_REFLECTOR_OPENING);
    say(&b, KUBE_INPUT_PROTOCOL);
    (void) wake(&b);
    say(&b, KUBE_INPUT_PROTOCOL);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
}


static void
test_older_event(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_in(&b, KUBE_REFLECTOR_WATCHING);
        assert_int_equal(say_rv(&b, i ? KUBE_INPUT_EVENT
                                      : KUBE_INPUT_BOOKMARK, "99"),
                         KUBE_ACTION_SLEEP);
        assert_str(kube_rv_str(&b.r.rv), "100");
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_str(b.action.rv, "100");
        assert_true(b.action.not_older_than);
    }
}


static void
test_relist(void **state)
{
    bed_t  b;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    assert_int_equal(b.action.reason, KUBE_RELIST_ROOM);
    assert_str(b.action.rv, "100");

    /* while listing: once more after it */
    assert_int_equal(say_relist(&b, KUBE_RELIST_OTHER), KUBE_ACTION_NONE);
    say_rv(&b, KUBE_INPUT_META, "101");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_LIST);
    assert_true(b.action.synced);
    say_rv(&b, KUBE_INPUT_META, "101");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);

    bed_in(&b, KUBE_REFLECTOR_BACKOFF);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
}


static void
test_backoff_resets(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_OPENING);

    for (i = 0; i < 10; i++) {
        say_status(&b, KUBE_VERDICT_UNAVAILABLE);
        (void) wake(&b);
    }

    /* two good minutes, in two watches */
    say(&b, KUBE_INPUT_OPENED);
    b.now_ms += 60000;
    assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    b.now_ms += 60000;
    say_status(&b, KUBE_VERDICT_UNAVAILABLE);
    assert_in_range(wake(&b), 400, 800);

    /* not much health: it goes on where it was */
    for (i = 0; i < 10; i++) {
        say_status(&b, KUBE_VERDICT_UNAVAILABLE);
        (void) wake(&b);
    }

    say(&b, KUBE_INPUT_OPENED);
    b.now_ms += 60000;
    say_status(&b, KUBE_VERDICT_UNAVAILABLE);
    assert_in_range(wake(&b), 15000, 30000);
}


static void
test_texts(void **state)
{
    (void) state;

    assert_string_equal(kube_relist_reason_text(KUBE_RELIST_EXPIRED),
                        "expired");
    assert_string_equal(kube_relist_reason_text(KUBE_RELIST_OTHER), "other");
    assert_string_equal(kube_relist_reason_text(KUBE_RELIST_REASONS),
                        "unknown");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_cold_start),
        cmocka_unit_test(test_list_without_version),
        cmocka_unit_test(test_pages_in_circles),
        cmocka_unit_test(test_expired_page),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_watch_expired),
        cmocka_unit_test(test_unauthorized),
        cmocka_unit_test(test_other_verdicts),
        cmocka_unit_test(test_short_watches),
        cmocka_unit_test(test_idle_and_deadline),
        cmocka_unit_test(test_outage),
        cmocka_unit_test(test_protocol),
        cmocka_unit_test(test_older_event),
        cmocka_unit_test(test_relist),
        cmocka_unit_test(test_backoff_resets),
        cmocka_unit_test(test_texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

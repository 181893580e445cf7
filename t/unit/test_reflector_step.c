/*
 * test_reflector_step - every state with every input, and the sequences that
 * the header's table promises.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_step_bed.h"


/*
 * Every state with every input: "STATE action", "" where the input changes
 * nothing, and NULL where it cannot come.  META, EVENT and BOOKMARK carry 101,
 * PAGE a token, START no version, STATUS is internal and FAILED is closed.
 */
static const char *const  matrix[KUBE_REFLECTOR_STATES][KUBE_INPUTS] = {

    [KUBE_REFLECTOR_IDLE] = {
        [KUBE_INPUT_START] = "LISTING list",
        [KUBE_INPUT_STOP] = "STOPPED stop"
    },

    [KUBE_REFLECTOR_LISTING] = {
        [KUBE_INPUT_SENT] = "",
        [KUBE_INPUT_OPENED] = "",
        [KUBE_INPUT_META] = "",
        [KUBE_INPUT_ITEM] = "",
        [KUBE_INPUT_PAGE] = "BACKOFF sleep",
        [KUBE_INPUT_LIST_DONE] = "BACKOFF sleep",
        [KUBE_INPUT_ALIVE] = "",
        [KUBE_INPUT_STATUS] = "BACKOFF sleep",
        [KUBE_INPUT_PROTOCOL] = "BACKOFF sleep",
        [KUBE_INPUT_CLOSED] = "BACKOFF sleep",
        [KUBE_INPUT_FAILED] = "BACKOFF sleep",
        [KUBE_INPUT_TIMER] = "BACKOFF sleep",
        [KUBE_INPUT_SUSPECT] = "LISTING list",
        [KUBE_INPUT_RELIST] = "",
        [KUBE_INPUT_STOP] = "STOPPED stop"
    },

    [KUBE_REFLECTOR_STREAMING] = {
        [KUBE_INPUT_SENT] = "",
        [KUBE_INPUT_OPENED] = "",
        [KUBE_INPUT_META] = "",
        [KUBE_INPUT_ITEM] = "",
        [KUBE_INPUT_LIST_DONE] = "BACKOFF sleep",
        [KUBE_INPUT_EVENT] = "",
        [KUBE_INPUT_BOOKMARK] = "",
        [KUBE_INPUT_ALIVE] = "",
        [KUBE_INPUT_UNREADABLE] = "BACKOFF sleep",
        [KUBE_INPUT_STATUS] = "BACKOFF sleep",
        [KUBE_INPUT_PROTOCOL] = "BACKOFF sleep",
        [KUBE_INPUT_CLOSED] = "BACKOFF sleep",
        [KUBE_INPUT_FAILED] = "BACKOFF sleep",
        [KUBE_INPUT_TIMER] = "LISTING list",
        [KUBE_INPUT_RELIST] = "",
        [KUBE_INPUT_STOP] = "STOPPED stop"
    },

    [KUBE_REFLECTOR_OPENING] = {
        [KUBE_INPUT_SENT] = "",
        [KUBE_INPUT_OPENED] = "WATCHING none",
        [KUBE_INPUT_STATUS] = "BACKOFF sleep",
        [KUBE_INPUT_PROTOCOL] = "BACKOFF sleep",
        [KUBE_INPUT_CLOSED] = "BACKOFF sleep",
        [KUBE_INPUT_FAILED] = "BACKOFF sleep",
        [KUBE_INPUT_TIMER] = "BACKOFF sleep",
        [KUBE_INPUT_RELIST] = "LISTING list",
        [KUBE_INPUT_TURN] = "LISTING list",
        [KUBE_INPUT_STOP] = "STOPPED stop"
    },

    [KUBE_REFLECTOR_WATCHING] = {
        [KUBE_INPUT_EVENT] = "WATCHING none",
        [KUBE_INPUT_BOOKMARK] = "WATCHING none",
        [KUBE_INPUT_ALIVE] = "",
        [KUBE_INPUT_UNREADABLE] = "BACKOFF sleep",
        [KUBE_INPUT_STATUS] = "BACKOFF sleep",
        [KUBE_INPUT_PROTOCOL] = "BACKOFF sleep",
        [KUBE_INPUT_CLOSED] = "BACKOFF sleep",
        [KUBE_INPUT_FAILED] = "BACKOFF sleep",
        [KUBE_INPUT_TIMER] = "OPENING watch",
        [KUBE_INPUT_SUSPECT] = "WATCHING second",
        [KUBE_INPUT_REPLACED] = "WATCHING none",
        [KUBE_INPUT_RELIST] = "LISTING list",
        [KUBE_INPUT_TURN] = "LISTING list",
        [KUBE_INPUT_STOP] = "STOPPED stop"
    },

    [KUBE_REFLECTOR_BACKOFF] = {
        [KUBE_INPUT_TIMER] = "OPENING watch",
        [KUBE_INPUT_HEALED] = "OPENING watch",
        [KUBE_INPUT_RELIST] = "",
        [KUBE_INPUT_STOP] = "STOPPED stop"
    },

    [KUBE_REFLECTOR_STOPPED] = {
        [KUBE_INPUT_RELIST] = "",
        [KUBE_INPUT_STOP] = ""
    }
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
        return (b->r.deadline_ms != KUBE_NEVER) ? say_timer(b)
                                                : say(b, kind);

    case KUBE_INPUT_TURN:
        b->r.demand.queued = true;
        (void) say(b, kind);
        b->r.demand.queued = false;
        return b->action.kind;

    default:
        return say(b, kind);
    }
}


static void
test_matrix(void **state)
{
    bed_t        b;
    unsigned     s, i;
    const char  *cell;
    char         seen[32];

    (void) state;

    for (s = 0; s < KUBE_REFLECTOR_STATES; s++) {
        for (i = 0; i < KUBE_INPUTS; i++) {

            bed_in(&b, (kube_reflector_state_t) s);
            (void) say_any(&b, (kube_input_kind_t) i);

            cell = matrix[s][i];

            assert_int_equal(b.action.illegal, cell == NULL);

            if (cell == NULL || cell[0] == '\0') {
                assert_int_equal(b.action.kind, KUBE_ACTION_NONE);
                assert_int_equal(b.r.state, s);
                continue;
            }

            snprintf(seen, sizeof(seen), "%s %s", state_names[b.r.state],
                     action_names[b.action.kind]);

            if (strcmp(cell, seen) != 0) {
                print_error("state %s input %u: %s, not %s\n",
                            state_names[s], i, seen, cell);
            }

            assert_string_equal(cell, seen);
        }
    }
}


/* A second watch changes nothing of the first, until it takes its place. */
static void
test_second_watch(void **state)
{
    bed_t     b;
    uint32_t  timeout_s;
    uint64_t  first_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    b.now_ms += 5000;
    first_ms = b.r.deadline_ms;

    assert_int_equal(say(&b, KUBE_INPUT_SUSPECT), KUBE_ACTION_SECOND);
    assert_str(b.action.rv, "100");
    assert_in_range(b.action.timeout_s, 300, 599);
    assert_int_equal(b.r.deadline_ms, first_ms);
    assert_int_equal(b.r.state, KUBE_REFLECTOR_WATCHING);

    /* one at a time, and once in ten seconds */

    b.now_ms += 9999;
    assert_int_equal(say(&b, KUBE_INPUT_SUSPECT), KUBE_ACTION_NONE);
    b.now_ms++;
    assert_int_equal(say(&b, KUBE_INPUT_SUSPECT), KUBE_ACTION_SECOND);
    timeout_s = b.action.timeout_s;

    b.now_ms += 10;
    assert_int_equal(say(&b, KUBE_INPUT_REPLACED), KUBE_ACTION_NONE);
    assert_int_equal(b.r.watch.opened_ms, b.now_ms);
    assert_int_equal(b.r.watch.deadline_ms,
                     b.now_ms - 10 + timeout_s * 1000ull
                     + KUBE_DEADLINE_MARGIN_MS);
    assert_true(b.r.deadline_ms > first_ms);

    /* another silence is another matter, whichever watch has ended the last */

    assert_int_equal(say(&b, KUBE_INPUT_SUSPECT), KUBE_ACTION_SECOND);
    assert_int_equal(say(&b, KUBE_INPUT_SUSPECT), KUBE_ACTION_NONE);
    assert_int_equal(say_rv(&b, KUBE_INPUT_EVENT, "101"), KUBE_ACTION_NONE);
    assert_str(kube_rv_str(&b.r.rv), "101");
    assert_int_equal(say(&b, KUBE_INPUT_SUSPECT), KUBE_ACTION_SECOND);
}


/* Healing ends a pause after which nothing had come back, and no other. */
static void
test_healed(void **state)
{
    bed_t     b;
    size_t    i;
    unsigned  n;

    static const kube_rc_t  others[] = {
        KUBE_TLS, KUBE_NOMEM, KUBE_IO, KUBE_PROTO
    };
    static const kube_rc_t  none[] = {
        KUBE_CONNECT, KUBE_TIMEOUT, KUBE_CLOSED
    };

    (void) state;

    for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        bed_in(&b, KUBE_REFLECTOR_OPENING);
        say_failed(&b, none[i]);
        assert_int_equal(say(&b, KUBE_INPUT_HEALED), KUBE_ACTION_WATCH);
    }

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        bed_in(&b, KUBE_REFLECTOR_OPENING);
        say_failed(&b, others[i]);
        assert_int_equal(say(&b, KUBE_INPUT_HEALED), KUBE_ACTION_NONE);
        assert_int_equal(b.r.state, KUBE_REFLECTOR_BACKOFF);
    }

    for (n = 0; n < 2; n++) {
        bed_in(&b, n ? KUBE_REFLECTOR_LISTING : KUBE_REFLECTOR_OPENING);
        say_failed(&b, KUBE_CONNECT);
        assert_int_equal(say(&b, KUBE_INPUT_HEALED),
                         n ? KUBE_ACTION_LIST : KUBE_ACTION_WATCH);

        /* what it was tried with fails: the pause is a pause again */

        say_status(&b, KUBE_VERDICT_UNAVAILABLE);
        assert_int_equal(b.r.state, KUBE_REFLECTOR_BACKOFF);
        assert_int_equal(say(&b, KUBE_INPUT_HEALED), KUBE_ACTION_NONE);
        assert_true(b.r.deadline_ms >= b.now_ms + 400);

        /* until connecting fails again */

        (void) wake(&b);
        say_failed(&b, KUBE_CONNECT);
        assert_int_not_equal(say(&b, KUBE_INPUT_HEALED), KUBE_ACTION_NONE);
    }
}


/* One watch that lives its time; said: what came after its head. */
static kube_action_kind_t
live(bed_t *b, bool said)
{
    assert_int_equal(say(b, KUBE_INPUT_OPENED), KUBE_ACTION_NONE);

    if (said) {
        b->now_ms += 1000;
        say_alive(b, false);
    }

    return say_timer(b);
}


/* Watches without a byte of a server that sends bookmarks: a list at times. */
static void
test_silence(void **state)
{
    bed_t     b;
    unsigned  i, lists;
    uint64_t  began_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say_rv(&b, KUBE_INPUT_BOOKMARK, "101");
    assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);

    for (i = 0; i < 3; i++) {
        assert_int_equal(live(&b, false), KUBE_ACTION_WATCH);
        assert_int_equal(live(&b, false), KUBE_ACTION_WATCH);
        assert_int_equal(live(&b, true), KUBE_ACTION_WATCH);
    }

    assert_int_equal(live(&b, false), KUBE_ACTION_WATCH);
    assert_int_equal(live(&b, false), KUBE_ACTION_WATCH);
    assert_int_equal(live(&b, false), KUBE_ACTION_LIST);
    assert_int_equal(b.action.reason, KUBE_RELIST_SILENT);
    assert_str(b.action.rv, "101");
    assert_true(b.action.not_older_than);
    assert_true(b.action.relist);

    /* politely */

    began_ms = b.now_ms;
    lists = 0;
    say_rv(&b, KUBE_INPUT_META, "105");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);

    while (b.now_ms - began_ms < 6 * KUBE_SILENT_LIST_MS) {
        if (live(&b, false) == KUBE_ACTION_LIST) {
            lists++;
            say_rv(&b, KUBE_INPUT_META, "105");
            say(&b, KUBE_INPUT_LIST_DONE);
        }
    }

    assert_in_range(lists, 4, 6);

    /* where it is refused the watches go on */

    while (live(&b, false) != KUBE_ACTION_LIST) {
        assert_in_range(b.now_ms - began_ms, 0, 9 * KUBE_SILENT_LIST_MS);
    }

    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);

    /* by the server's own end too, but not by failures */

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say_rv(&b, KUBE_INPUT_BOOKMARK, "101");
    b.now_ms += 5000;
    assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_WATCH);

    for (i = 0; i < 20; i++) {
        say(&b, KUBE_INPUT_OPENED);
        b.now_ms += 80000;
        assert_int_equal(say_failed(&b, KUBE_CLOSED), KUBE_ACTION_WATCH);
    }

    for (i = 0; i < 3; i++) {
        say(&b, KUBE_INPUT_OPENED);
        b.now_ms += 80000;
        assert_int_equal(say(&b, KUBE_INPUT_CLOSED),
                         i < 2 ? KUBE_ACTION_WATCH : KUBE_ACTION_LIST);
    }

    /* it is refused: the watches go on, and so does the need */

    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);
    began_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_int_equal(b.action.reason, KUBE_RELIST_SILENT);
    assert_in_range(b.now_ms - began_ms, KUBE_DEMAND_FIRST_MS / 2,
                    KUBE_DEMAND_FIRST_MS);

    /* without bookmarks silence is nothing special */

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say_rv(&b, KUBE_INPUT_EVENT, "101");
    assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);

    for (i = 0; i < 30; i++) {
        assert_int_equal(live(&b, false), KUBE_ACTION_WATCH);
    }
}


/*
 * Others list: a list that a watch can go on without waits for TURN, by no
 * timer and once for its pace.
 */
static void
test_waits_for_its_turn(void **state)
{
    bed_t     b;
    unsigned  i;
    uint64_t  due_ms;

    (void) state;

    /* one for silence */

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say_rv(&b, KUBE_INPUT_BOOKMARK, "101");
    b.r.busy = true;
    assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);

    for (i = 0; i < KUBE_SILENT_WATCHES_MAX; i++) {
        assert_false(kube_reflector_waits(&b.r, b.now_ms));
        assert_int_equal(live(&b, false), KUBE_ACTION_WATCH);
    }

    assert_true(kube_reflector_waits(&b.r, b.now_ms));
    assert_str(b.action.rv, "101");
    assert_int_equal(live(&b, false), KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    due_ms = b.r.demand.due_ms;
    b.r.busy = false;
    assert_int_equal(say(&b, KUBE_INPUT_TURN), KUBE_ACTION_LIST);
    assert_int_equal(b.action.reason, KUBE_RELIST_SILENT);
    assert_int_equal(b.r.demand.due_ms, due_ms);
    assert_false(kube_reflector_waits(&b.r, b.now_ms));

    /* it gives way as it would have without a wait */

    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);

    /* one on demand: its time is no timer of the watch's */

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    b.r.busy = true;
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);
    assert_true(kube_reflector_waits(&b.r, b.now_ms));
    assert_int_equal(b.r.deadline_ms, b.r.watch.alive_ms
                                      + b.r.conf.idle_timeout_ms);
    b.now_ms += 1000;
    say_rv(&b, KUBE_INPUT_EVENT, "102");
    assert_int_equal(b.r.deadline_ms, b.now_ms + b.r.conf.idle_timeout_ms);

    /* the watch breaks: it waits again once that is asked for */

    assert_int_equal(say_status(&b, KUBE_VERDICT_INTERNAL), KUBE_ACTION_SLEEP);
    assert_false(kube_reflector_waits(&b.r, b.now_ms));
    assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);
    assert_true(kube_reflector_waits(&b.r, b.now_ms));
    b.r.busy = false;
    assert_int_equal(say(&b, KUBE_INPUT_TURN), KUBE_ACTION_LIST);
    assert_str(b.action.rv, "102");

    /* what comes due while it is watched wakes once */

    say_rv(&b, KUBE_INPUT_META, "102");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    b.r.busy = true;
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);
    assert_false(kube_reflector_waits(&b.r, b.now_ms));
    assert_int_equal(b.r.deadline_ms, b.r.demand.due_ms);
    assert_int_equal(say_timer(&b), KUBE_ACTION_NONE);
    assert_true(kube_reflector_waits(&b.r, b.now_ms));
    assert_true(b.r.deadline_ms > b.now_ms);

    /* any other list is as good */

    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_LIST);
    say_rv(&b, KUBE_INPUT_META, "103");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    assert_false(kube_reflector_waits(&b.r, b.now_ms + 100000));

    /* Retry-After of the list beside the watch is one for it too */

    say(&b, KUBE_INPUT_OPENED);
    b.r.demand.queued = true;
    kube_reflector_refused_beside(&b.r, 40000, b.now_ms);
    assert_false(kube_reflector_waits(&b.r, b.now_ms + 39999));
    assert_int_equal(b.r.deadline_ms, b.r.demand.due_ms);
    assert_true(kube_reflector_waits(&b.r, b.now_ms + 60000));
}


static void
test_cold_start(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    assert_int_equal(b.r.deadline_ms, KUBE_NEVER);

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
    unsigned  i, n;
    char      token[32];

    (void) state;

    bed_init(&b);
    say(&b, KUBE_INPUT_START);
    say_rv(&b, KUBE_INPUT_META, "10");

    for (i = 0; i < KUBE_PAGES_MAX; i++) {
        snprintf(token, sizeof(token), "token-%u", i);
        say(&b, KUBE_INPUT_ITEM);
        assert_int_equal(say_page(&b, token), KUBE_ACTION_LIST);
    }

    say(&b, KUBE_INPUT_ITEM);

    assert_int_equal(say_page(&b, "one more"), KUBE_ACTION_SLEEP);

    (void) wake(&b);
    say_rv(&b, KUBE_INPUT_META, "10");

    for (i = 0; i < 3; i++) {
        snprintf(token, sizeof(token), "other-%u", i);
        assert_int_equal(say_page(&b, token), KUBE_ACTION_LIST);
    }

    assert_int_equal(say_page(&b, "same"), KUBE_ACTION_LIST);
    assert_int_equal(say_page(&b, "same"), KUBE_ACTION_SLEEP);

    /* a circle of any length, which may begin late: thrice its length */
    for (n = 2; n <= 100; n += 49) {
        (void) wake(&b);
        say_rv(&b, KUBE_INPUT_META, "10");
        i = 0;

        do {
            assert_true(i < 5 + 3 * n);
            snprintf(token, sizeof(token), "circle-%u",
                     (i < 5) ? i + n : (i - 5) % n);
            say(&b, KUBE_INPUT_ITEM);
            i++;
        } while (say_page(&b, token) == KUBE_ACTION_LIST);

        assert_true(i > 5 + n);
    }

    /* pages without an item: a few, and again only after a pause */
    (void) wake(&b);
    say_rv(&b, KUBE_INPUT_META, "10");

    for (i = 0; i < KUBE_EMPTY_PAGES_MAX; i++) {
        snprintf(token, sizeof(token), "empty-%u", i);
        assert_int_equal(say_page(&b, token), KUBE_ACTION_LIST);
    }

    assert_int_equal(say_page(&b, "one more"), KUBE_ACTION_SLEEP);
}


/* A token of any size is a server's to send, and not ours to keep. */
static void
test_long_token(void **state)
{
    bed_t  b;
    char   token[KUBE_CONTINUE_LEN_MAX + 2];

    (void) state;

    memset(token, 'a', sizeof(token) - 1);
    token[KUBE_CONTINUE_LEN_MAX] = '\0';
    token[KUBE_CONTINUE_LEN_MAX + 1] = '\0';

    bed_init(&b);
    say(&b, KUBE_INPUT_START);
    say_rv(&b, KUBE_INPUT_META, "10");
    assert_int_equal(say_page(&b, token), KUBE_ACTION_LIST);
    assert_str(b.action.continue_token, token);
    token[KUBE_CONTINUE_LEN_MAX] = 'a';
    say(&b, KUBE_INPUT_ITEM);
    assert_int_equal(say_page(&b, token), KUBE_ACTION_SLEEP);
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
    b.now_ms += KUBE_CREDENTIALS_PACE_MS;
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_CREDENTIALS);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);

    /* but heads that are good each time do not make a loop of it */
    bed_in(&b, KUBE_REFLECTOR_OPENING);

    for (i = 0; i < 4; i++) {
        say(&b, KUBE_INPUT_OPENED);
        assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                         i ? KUBE_ACTION_SLEEP : KUBE_ACTION_CREDENTIALS);
        assert_true(wake(&b) >= (i ? 400 : 0));
    }

    /* nor do first pages that are */
    bed_init(&b);
    say(&b, KUBE_INPUT_START);

    for (i = 0; i < 4; i++) {
        say_rv(&b, KUBE_INPUT_META, "7");
        assert_int_equal(say_page(&b, "x"), KUBE_ACTION_LIST);
        assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                         i ? KUBE_ACTION_SLEEP : KUBE_ACTION_CREDENTIALS);
        assert_true(wake(&b) >= (i ? 400 : 0));
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    }

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
            assert_in_range(wake(&b), 300000, 450000);
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
        assert_int_equal(b.action.kind, (i < KUBE_USELESS_WATCHES_MAX - 1)
                                        ? KUBE_ACTION_WATCH
                                        : KUBE_ACTION_LIST);

        if (b.action.kind == KUBE_ACTION_LIST) {
            say_rv(&b, KUBE_INPUT_META, "100");
            assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
        }
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


/* So many watches of no use that a list takes their place. */
static void
be_useless(bed_t *b)
{
    unsigned  i;

    for (i = 0; i < KUBE_USELESS_WATCHES_MAX; i++) {
        say(b, KUBE_INPUT_OPENED);
        say_status(b, KUBE_VERDICT_INTERNAL);
        (void) wake(b);
    }

    assert_int_equal(b->action.kind, KUBE_ACTION_LIST);
}


/* Where watches alone are refused, lists take their place. */
static void
test_useless_watches(void **state)
{
    bed_t     b;
    uint64_t  began_ms;
    unsigned  i, lists;

    static const kube_rc_t  ours[] = {
        KUBE_IO, KUBE_NOMEM, KUBE_NO_CREDENTIALS, KUBE_CONNECT, KUBE_TLS
    };

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_OPENING);

    for (i = 1; i < 10; i++) {
        say(&b, KUBE_INPUT_OPENED);
        assert_int_equal(say_status(&b, KUBE_VERDICT_INTERNAL),
                         KUBE_ACTION_SLEEP);
        (void) wake(&b);

        if (i >= KUBE_USELESS_WATCHES_MAX) {
            assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
            assert_int_equal(b.action.reason, KUBE_RELIST_OTHER);
            assert_true(b.action.not_older_than);
            say_rv(&b, KUBE_INPUT_META, "100");
            say(&b, KUBE_INPUT_LIST_DONE);
        }

        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    }

    /* where the list is refused too it is an outage */
    say(&b, KUBE_INPUT_OPENED);
    say_status(&b, KUBE_VERDICT_INTERNAL);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    say_status(&b, KUBE_VERDICT_FORBIDDEN);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);

    /* unless items of it may have been taken */
    be_useless(&b);
    say_rv(&b, KUBE_INPUT_META, "120");
    say_failed(&b, KUBE_CLOSED);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_str(b.action.rv, "120");

    /* nor where somebody asked for one in the meantime: that is wanted still */
    bed_in(&b, KUBE_REFLECTOR_OPENING);

    be_useless(&b);
    say_status(&b, KUBE_VERDICT_INTERNAL);
    say_relist(&b, KUBE_RELIST_ROOM);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_int_equal(say_status(&b, KUBE_VERDICT_INTERNAL), KUBE_ACTION_WATCH);
    assert_true(b.r.demand.wanted);

    /* which one in place of watches is no answer to, if it fails */
    b.r.demand.due_ms = b.now_ms + 3600000;

    be_useless(&b);
    assert_int_equal(b.action.reason, KUBE_RELIST_OTHER);
    say_status(&b, KUBE_VERDICT_INTERNAL);
    assert_true(b.r.demand.wanted);

    /* nor is one of a replica that lags */
    bed_in(&b, KUBE_REFLECTOR_OPENING);

    be_useless(&b);
    assert_int_equal(say_rv(&b, KUBE_INPUT_META, "99"), KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);

    /* and one that was due meanwhile is a list like others: a WatchList here */
    bed_make(&b, KUBE_WATCH_LIST_ON);
    say_rv(&b, KUBE_INPUT_START, "100");

    be_useless(&b);
    assert_int_equal(say_status(&b, KUBE_VERDICT_INTERNAL), KUBE_ACTION_SLEEP);
    say_relist(&b, KUBE_RELIST_ROOM);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);

    /* nor does a list follow what never reached the server */
    bed_in(&b, KUBE_REFLECTOR_OPENING);

    for (i = 0; i < 40; i++) {
        say_failed(&b, ours[i % (sizeof(ours) / sizeof(ours[0]))]);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    }

    /* an outage ends without a list, but for one a minute */
    bed_in(&b, KUBE_REFLECTOR_OPENING);
    began_ms = b.now_ms;
    lists = 0;

    for (i = 0; i < 40; i++) {
        say_status(&b, (i & 1) ? KUBE_VERDICT_UNAVAILABLE
                               : KUBE_VERDICT_FORBIDDEN);
        (void) wake(&b);
        lists += (b.action.kind == KUBE_ACTION_LIST);
        assert_true(lists <= (b.now_ms - began_ms) / KUBE_USELESS_MS);
    }

    assert_true(lists >= 5);

    /* 401 is the same for a list; one that lives is of use */
    bed_in(&b, KUBE_REFLECTOR_OPENING);

    for (i = 0; i < 20; i++) {

        if (say_status(&b, KUBE_VERDICT_UNAUTHORIZED) == KUBE_ACTION_SLEEP) {
            (void) wake(&b);
            assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);

        } else {
            assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);
        }
    }

    for (i = 0; i < 20; i++) {
        say(&b, KUBE_INPUT_OPENED);
        b.now_ms += KUBE_SHORT_WATCH_MS;
        assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_WATCH);
        say_status(&b, KUBE_VERDICT_FORBIDDEN);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    }
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
    assert_int_equal(b.r.deadline_ms, b.now_ms + 90000);

    b.now_ms += 60000;
    say_alive(&b, false);
    assert_int_equal(b.r.deadline_ms, b.now_ms + 90000);

    b.now_ms += 90000;
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "100");

    /* a chatty watch ends at its deadline all the same */
    timeout_ms = b.action.timeout_s * 1000ull;
    opened_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);

    for ( ;; ) {
        b.now_ms += 1000;

        if (b.now_ms >= b.r.deadline_ms) {
            break;
        }

        say_alive(&b, false);
    }

    assert_in_range(b.now_ms - opened_ms, timeout_ms + 30000,
                    timeout_ms + 31000);
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_WATCH);

    /* no head at all is an unreachable server */
    b.now_ms = b.r.deadline_ms;
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_SLEEP);
}


static void
test_outage(void **state)
{
    bed_t      b;
    uint64_t   slept_ms, listed_ms;
    unsigned   i;
    kube_rc_t  rcs[] = {
        KUBE_CONNECT, KUBE_TLS, KUBE_TIMEOUT, KUBE_CLOSED
    };

    (void) state;

    /* a healthy watch breaks: at once; then never longer than 4 s */
    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    b.now_ms += 5000;
    assert_int_equal(say_failed(&b, KUBE_CLOSED), KUBE_ACTION_WATCH);
    listed_ms = b.now_ms;

    for (i = 0; i < 100; i++) {
        assert_int_equal(say_failed(&b, rcs[i % 4]), KUBE_ACTION_SLEEP);
        slept_ms = wake(&b);
        assert_in_range(slept_ms, 400, 4000);
        assert_str(b.action.rv, "100");

        /* it may be the watches alone: a list once a minute, no more */
        if (b.action.kind != KUBE_ACTION_WATCH) {
            assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
            assert_true(b.now_ms - listed_ms >= KUBE_USELESS_MS);
            listed_ms = b.now_ms;
        }
    }

    assert_true(b.now_ms - listed_ms < 2 * KUBE_USELESS_MS);

    /* what never reached the server says nothing of its watches */
    bed_in(&b, KUBE_REFLECTOR_OPENING);

    for (i = 0; i < 100; i++) {
        say_failed(&b, rcs[i % 2]);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    }

    /* one that answers, and then breaks, is another thing */
    bed_init(&b);
    say(&b, KUBE_INPUT_START);

    for (i = 0, slept_ms = 0; i < 20; i++) {
        say(&b, KUBE_INPUT_OPENED);
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
    bed_t     b;
    uint64_t  began_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    began_ms = b.now_ms;
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    assert_int_equal(b.action.reason, KUBE_RELIST_ROOM);
    assert_str(b.action.rv, "100");

    /* while listing: once more after it, when the pace allows */
    assert_int_equal(say_relist(&b, KUBE_RELIST_OTHER), KUBE_ACTION_NONE);
    say_rv(&b, KUBE_INPUT_META, "101");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    assert_true(b.action.synced);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_int_equal(b.action.reason, KUBE_RELIST_OTHER);
    assert_in_range(b.now_ms - began_ms, KUBE_DEMAND_FIRST_MS / 2,
                    KUBE_DEMAND_FIRST_MS);
    say_rv(&b, KUBE_INPUT_META, "101");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);

    bed_in(&b, KUBE_REFLECTOR_BACKOFF);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);

    /* a list that ends while another is due already: that one at once */
    bed_in(&b, KUBE_REFLECTOR_LISTING);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);
    say_rv(&b, KUBE_INPUT_META, "101");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_LIST);
    assert_true(b.action.synced);
    say_rv(&b, KUBE_INPUT_META, "101");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
}


/* One that is urgent need not wait as long for the one before it. */
static void
test_relist_urgent(void **state)
{
    bed_t     b;
    uint64_t  began_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    began_ms = b.now_ms;
    say_rv(&b, KUBE_INPUT_META, "100");
    say(&b, KUBE_INPUT_LIST_DONE);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);
    assert_true(b.r.deadline_ms - began_ms >= KUBE_DEMAND_FIRST_MS / 2);

    assert_int_equal(feed(&b, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                                .reason = KUBE_RELIST_ROOM,
                                                .urgent = true }),
                     KUBE_ACTION_NONE);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - began_ms, KUBE_URGENT_FIRST_MS / 2,
                    KUBE_URGENT_FIRST_MS);
}


static kube_action_kind_t
say_fill(bed_t *b)
{
    return feed(b, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                     .reason = KUBE_RELIST_ROOM,
                                     .beside = true });
}


static void
assert_first_pace(const bed_t *b)
{
    assert_in_range(b->r.demand.due_ms - b->now_ms, 1, KUBE_DEMAND_FIRST_MS);
    assert_in_range(b->r.demand.urgent_ms - b->now_ms, 1,
                    KUBE_URGENT_FIRST_MS);
}


/* Their pace is the first again after two minutes without a demand. */
static void
test_pace_beside(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);

    for (i = 0; i < 5; i++) {
        b.now_ms += KUBE_DEMAND_MAX_MS;
        assert_int_equal(say_fill(&b), KUBE_ACTION_BESIDE);
    }

    assert_true(b.r.demand.due_ms - b.now_ms > KUBE_DEMAND_FIRST_MS);
    assert_in_range(b.r.demand.urgent_ms - b.now_ms, 4000, 8000);

    b.now_ms += KUBE_BACKOFF_RESET_MS;
    assert_int_equal(say_fill(&b), KUBE_ACTION_BESIDE);
    assert_first_pace(&b);
}


/* And so it is after two minutes behind a list that replaces. */
static void
test_pace_replacing(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);

    for (i = 0; i < 5; i++) {
        b.now_ms += KUBE_DEMAND_MAX_MS;
        assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);

        if (i == 4) {
            assert_true(b.r.demand.due_ms - b.now_ms > KUBE_DEMAND_FIRST_MS);
            assert_true(b.r.demand.urgent_ms - b.now_ms
                        > KUBE_URGENT_FIRST_MS);
            b.now_ms += KUBE_BACKOFF_RESET_MS;
        }

        say_rv(&b, KUBE_INPUT_META, "100");
        say(&b, KUBE_INPUT_LIST_DONE);
        say(&b, KUBE_INPUT_OPENED);
    }

    b.now_ms += KUBE_BACKOFF_RESET_MS;
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    assert_first_pace(&b);
}


/*
 * One beside the watch leaves it open; it has the same pace, and waits for a
 * watch where none is open.
 */
static void
test_relist_beside(void **state)
{
    bed_t     b;
    uint64_t  began_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_fill(&b), KUBE_ACTION_BESIDE);
    assert_int_equal(b.r.state, KUBE_REFLECTOR_WATCHING);
    assert_true(b.action.not_older_than);
    assert_true(kube_str_eq(b.action.rv, kube_rv_str(&b.r.rv)));
    assert_int_equal(b.action.reason, KUBE_RELIST_ROOM);
    assert_int_equal(b.action.limit, b.r.conf.page_size);
    began_ms = b.now_ms;

    /* the watch goes on, with timers of its own */
    assert_int_equal(say_rv(&b, KUBE_INPUT_EVENT, "200"), KUBE_ACTION_NONE);
    assert_true(b.r.deadline_ms > b.now_ms);

    assert_int_equal(say_fill(&b), KUBE_ACTION_NONE);
    assert_int_equal(say_timer(&b), KUBE_ACTION_BESIDE);
    assert_in_range(b.now_ms - began_ms, KUBE_DEMAND_FIRST_MS / 2,
                    KUBE_DEMAND_FIRST_MS);

    /* wanted while the watch is away: it comes first */
    assert_int_equal(say_fill(&b), KUBE_ACTION_NONE);
    b.now_ms += KUBE_DEMAND_MAX_MS;
    assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_WATCH);
    assert_int_equal(say_fill(&b), KUBE_ACTION_NONE);
    say(&b, KUBE_INPUT_OPENED);
    assert_true(b.r.deadline_ms <= b.now_ms);
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_BESIDE);

    /* what has to replace goes before, and makes the other needless */
    b.now_ms += KUBE_DEMAND_MAX_MS;
    say(&b, KUBE_INPUT_ALIVE);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    assert_int_equal(say_fill(&b), KUBE_ACTION_NONE);
    assert_int_equal(say_relist(&b, KUBE_RELIST_OTHER), KUBE_ACTION_NONE);
    assert_int_equal(say_fill(&b), KUBE_ACTION_NONE);
    b.now_ms += KUBE_DEMAND_MAX_MS;
    say_rv(&b, KUBE_INPUT_META, "201");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_LIST);
    say_rv(&b, KUBE_INPUT_META, "202");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    assert_true(b.r.deadline_ms - b.now_ms > KUBE_DEMAND_MAX_MS);
}


/* What a list that fails is to end as: nothing of it has been taken. */
static kube_action_kind_t
fail_list(bed_t *b, unsigned how)
{
    switch (how) {

    case 0:
        return say_status(b, KUBE_VERDICT_UNAVAILABLE);

    case 1:
        return say_status(b, KUBE_VERDICT_TOO_MANY);

    case 2:
        return say_status(b, KUBE_VERDICT_FORBIDDEN);

    case 3:
        return say(b, KUBE_INPUT_PROTOCOL);

    case 4:
        return say_failed(b, KUBE_CLOSED);

    case 5:
        return say_rv(b, KUBE_INPUT_META, "");

    default:
        return say_timer(b);
    }
}


/*
 * A watch could serve: a list on demand that is refused for ever keeps nobody
 * from what is watched, and is wanted still.
 */
static void
test_list_gives_way(void **state)
{
    bed_t     b;
    unsigned  how, i;
    uint64_t  failed_ms, took_ms;

    (void) state;

    for (how = 0; how < 7; how++) {
        bed_in(&b, KUBE_REFLECTOR_WATCHING);
        assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);

        for (i = 0; i < 5; i++) {
            took_ms = b.now_ms;
            say(&b, KUBE_INPUT_SENT);
            assert_int_equal(fail_list(&b, how), KUBE_ACTION_WATCH);
            assert_str(b.action.rv, "100");
            failed_ms = b.now_ms;
            took_ms = failed_ms - took_ms;
            assert_true(took_ms <= KUBE_LIST_MS);

            say(&b, KUBE_INPUT_OPENED);
            assert_int_equal(say_rv(&b, KUBE_INPUT_EVENT, "100"),
                             KUBE_ACTION_NONE);
            assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
            assert_int_equal(b.action.reason, KUBE_RELIST_ROOM);
            assert_str(b.action.rv, "100");

            /* no shorter than the list has taken, nor than lists are apart */
            assert_in_range(b.now_ms - failed_ms,
                            took_ms ? took_ms : KUBE_DEMAND_FIRST_MS / 2,
                            KUBE_DEMAND_MAX_MS);
        }

        /* it is granted: nothing is wanted any more */
        say_rv(&b, KUBE_INPUT_META, "101");
        say(&b, KUBE_INPUT_LIST_DONE);
        say(&b, KUBE_INPUT_OPENED);
        assert_int_equal(b.r.deadline_ms, b.now_ms + 90000);
    }
}


/* It comes as it was wanted: urgent, beside no watch, and when it may. */
static void
test_list_comes_again(void **state)
{
    bed_t     b;
    uint64_t  failed_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(feed(&b, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                                .reason = KUBE_RELIST_OTHER,
                                                .urgent = true }),
                     KUBE_ACTION_LIST);

    /* what is asked for meanwhile would go beside a watch, and has no haste */
    assert_int_equal(say_fill(&b), KUBE_ACTION_NONE);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);
    failed_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - failed_ms, KUBE_URGENT_FIRST_MS / 2,
                    KUBE_URGENT_FIRST_MS);

    /* Retry-After is of the list, and of one that is urgent */
    assert_int_equal(say_status_after(&b, KUBE_VERDICT_TOO_MANY, 40),
                     KUBE_ACTION_WATCH);
    failed_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(feed(&b, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                                .reason = KUBE_RELIST_OTHER,
                                                .urgent = true }),
                     KUBE_ACTION_NONE);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - failed_ms, 40000, 60000);

    /* one that is done leaves no haste to the next */
    say_rv(&b, KUBE_INPUT_META, "101");
    say(&b, KUBE_INPUT_LIST_DONE);
    say(&b, KUBE_INPUT_OPENED);
    b.now_ms += 2 * KUBE_BACKOFF_RESET_MS;
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);
    failed_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - failed_ms, KUBE_DEMAND_FIRST_MS / 2,
                    KUBE_DEMAND_FIRST_MS);

    /* credentials that are new are the watch's as well */
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAUTHORIZED),
                     KUBE_ACTION_CREDENTIALS);
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    b.now_ms = b.r.demand.due_ms;
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_LIST);

    /* a server that cannot be reached is not asked for a watch at once */
    assert_int_equal(say_failed(&b, KUBE_CONNECT), KUBE_ACTION_SLEEP);
    assert_true(wake(&b) <= KUBE_BACKOFF_UNREACHABLE_MS);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
}


static kube_action_kind_t
say_urgent(bed_t *b, bool beside)
{
    return feed(b, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                     .reason = KUBE_RELIST_ROOM,
                                     .urgent = true,
                                     .beside = beside });
}


/* It is as far from the end of the one before as that was to have it. */
static void
test_list_comes_again_in_time(void **state)
{
    bed_t     b;
    unsigned  i, later;
    uint64_t  due_ms, urgent_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    due_ms = b.r.demand.due_ms - b.now_ms;
    urgent_ms = b.r.demand.urgent_ms - b.now_ms;

    b.now_ms += KUBE_URGENT_FIRST_MS / 2;
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);
    assert_int_equal(b.r.demand.due_ms - b.now_ms, due_ms);
    assert_int_equal(b.r.demand.urgent_ms - b.now_ms, urgent_ms);

    /* the watch is owed the time of the list, unless its events are dropped */

    for (i = 0; i < 2; i++) {
        bed_in(&b, KUBE_REFLECTOR_WATCHING);
        assert_int_equal(feed(&b, &(kube_input_t) {
                                   .kind = KUBE_INPUT_RELIST,
                                   .reason = KUBE_RELIST_OTHER,
                                   .urgent = true,
                                   .dropped = (i != 0) }), KUBE_ACTION_LIST);
        b.now_ms += 100000;
        assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                         KUBE_ACTION_WATCH);
        assert_int_equal(b.r.demand.due_ms < b.now_ms + 100000, i == 1);
        assert_int_equal(b.r.demand.dropped, i == 1);
    }

    /* until one is complete */

    do {
        say(&b, KUBE_INPUT_OPENED);
        say_rv(&b, KUBE_INPUT_EVENT, "100");
    } while (say_timer(&b) == KUBE_ACTION_WATCH);

    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_true(b.r.demand.dropped);
    say_rv(&b, KUBE_INPUT_META, "120");
    say(&b, KUBE_INPUT_LIST_DONE);
    assert_false(b.r.demand.dropped);

    /* those that were told the same do not come all at once */

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    b.now_ms += KUBE_URGENT_FIRST_MS / 2;
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);

    later = 0;

    for (i = 0; i < 8; i++) {
        do {
            say(&b, KUBE_INPUT_OPENED);
            say_rv(&b, KUBE_INPUT_EVENT, "100");
        } while (say_timer(&b) == KUBE_ACTION_WATCH);

        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_int_equal(say_status_after(&b, KUBE_VERDICT_TOO_MANY, 70),
                         KUBE_ACTION_WATCH);
        assert_in_range(b.r.demand.due_ms - b.now_ms, 70000, 105000);
        later += (b.r.demand.due_ms - b.now_ms > 75000);
    }

    assert_in_range(later, 1, 8);
}


/* The haste is that of the list that was urgent, until it is done. */
static void
test_list_in_haste(void **state)
{
    bed_t  b;

    (void) state;

    /* that one went beside the watch */
    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_urgent(&b, true), KUBE_ACTION_BESIDE);
    b.now_ms += KUBE_BACKOFF_RESET_MS;
    say(&b, KUBE_INPUT_ALIVE);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);
    assert_in_range(b.r.demand.due_ms - b.now_ms, KUBE_DEMAND_FIRST_MS / 2,
                    KUBE_DEMAND_MAX_MS);

    /* it was asked for while another was under way, which ends */
    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    assert_int_equal(say_urgent(&b, false), KUBE_ACTION_NONE);
    say_rv(&b, KUBE_INPUT_META, "101");
    assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);
    assert_in_range(b.r.demand.due_ms - b.now_ms, 1, KUBE_URGENT_MAX_MS);
}


/* Lists of a replica that lags count in a row: one that does not ends it. */
static void
test_stale_in_a_row(void **state)
{
    bed_t     b;
    unsigned  i, round;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);

    for (round = 0; round < 3; round++) {
        b.now_ms += KUBE_DEMAND_MAX_MS;
        assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);

        for (i = 1; i < KUBE_STALE_LISTS_MAX; i++) {
            say_rv(&b, KUBE_INPUT_META, "1");
            assert_int_equal(b.action.kind, KUBE_ACTION_SLEEP);
            (void) wake(&b);
            assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
            assert_int_not_equal(b.r.list.ask, KUBE_ASK_CONSISTENT);
        }

        assert_int_equal(say_rv(&b, KUBE_INPUT_META, "500"),
                         KUBE_ACTION_NONE);
        assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);
        say(&b, KUBE_INPUT_OPENED);
    }
}


/* Others have no watch to give way to, or nothing that is known to be right. */
static void
test_list_does_not_give_way(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    /* its version has expired, whoever wanted one meanwhile */
    bed_in(&b, KUBE_REFLECTOR_LISTING);
    say_relist(&b, KUBE_RELIST_ROOM);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);

    /* items may have been taken: by its version, or without one */
    for (i = 0; i < 2; i++) {
        bed_in(&b, KUBE_REFLECTOR_WATCHING);
        say_relist(&b, KUBE_RELIST_ROOM);
        say_rv(&b, i ? KUBE_INPUT_META : KUBE_INPUT_ITEM, "120");
        assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                         KUBE_ACTION_SLEEP);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_str(b.action.rv, "120");
    }

    /* a replica that lags does grant lists, and is soon found out */
    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say_relist(&b, KUBE_RELIST_ROOM);

    for (i = 0; i < KUBE_STALE_LISTS_MAX; i++) {
        assert_int_equal(say_rv(&b, KUBE_INPUT_META, "99"),
                         KUBE_ACTION_SLEEP);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    }

    assert_int_equal(b.action.rv.len, 0);

    /* but where it is refused then, the watch is granted still */
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_WATCH);
}


/* A WatchList on demand is one, too, until an event of it was taken. */
static void
test_stream_gives_way(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_make(&b, KUBE_WATCH_LIST_ON);
    say_rv(&b, KUBE_INPUT_START, "100");
    say(&b, KUBE_INPUT_OPENED);

    for (i = 0; i < 2; i++) {
        say_relist(&b, KUBE_RELIST_ROOM);

        if (b.action.kind == KUBE_ACTION_NONE) {
            say_timer(&b);
        }

        assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
        assert_int_equal(i ? say_failed(&b, KUBE_CLOSED)
                           : say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                         KUBE_ACTION_WATCH);
        say(&b, KUBE_INPUT_OPENED);
    }

    /* an initial event was taken of the third */
    assert_int_equal(say_timer(&b), KUBE_ACTION_STREAM);
    say_rv(&b, KUBE_INPUT_ITEM, "90");
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
}


/* A list on demand is refused with Retry-After, and gives way to the watch. */
static void
refused_on_demand(bed_t *b, kube_action_kind_t list, uint32_t retry_after_s)
{
    assert_int_equal(say_relist(b, KUBE_RELIST_ROOM), list);
    assert_int_equal(say_status_after(b, KUBE_VERDICT_TOO_MANY, retry_after_s),
                     KUBE_ACTION_WATCH);
}


/* A watch that is open meets bytes that are damaged, and so does the next. */
static void
damage_twice(bed_t *b)
{
    assert_int_equal(say(b, KUBE_INPUT_PROTOCOL), KUBE_ACTION_SLEEP);
    (void) wake(b);
    assert_int_equal(b->action.kind, KUBE_ACTION_WATCH);
    say(b, KUBE_INPUT_OPENED);
    assert_int_equal(say(b, KUBE_INPUT_PROTOCOL), KUBE_ACTION_SLEEP);
    (void) wake(b);
}


/* The watch that a list gave way to expires: Retry-After is not over yet. */
static void
test_refused_then_expired(void **state)
{
    bed_t     b;
    uint64_t  failed_ms;

    (void) state;

    bed_make(&b, KUBE_WATCH_LIST_OFF);
    say_rv(&b, KUBE_INPUT_START, "100");
    say(&b, KUBE_INPUT_OPENED);

    refused_on_demand(&b, KUBE_ACTION_LIST, 60);
    failed_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_SLEEP);
    while (b.action.kind == KUBE_ACTION_SLEEP) {
        (void) wake(&b);
    }

    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - failed_ms, 60000, 120000);
    assert_int_equal(b.r.state, KUBE_REFLECTOR_LISTING);
}


/* A damaged event of the watch is no answer to the list: it waits as before. */
static void
test_refused_then_unreadable(void **state)
{
    bed_t     b;
    uint64_t  failed_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    refused_on_demand(&b, KUBE_ACTION_LIST, 60);
    failed_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);

    /* the pause is that of a server that answers */
    b.r.backoff.step_ms = b.r.conf.backoff.max_ms;
    assert_int_equal(say(&b, KUBE_INPUT_UNREADABLE), KUBE_ACTION_SLEEP);
    assert_in_range(wake(&b), b.r.conf.backoff.max_ms / 2,
                    b.r.conf.backoff.max_ms);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);

    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_SLEEP);

    while (b.action.kind == KUBE_ACTION_SLEEP) {
        (void) wake(&b);
    }

    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - failed_ms, 60000, 120000);
}


/*
 * What is refused to a list in place of useless watches says nothing of them:
 * they go on at their own pace, and no list comes before its time.
 */
static void
test_refused_instead(void **state)
{
    bool      over;
    bed_t     b;
    unsigned  i, watches;
    uint64_t  failed_ms;

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_in(&b, KUBE_REFLECTOR_WATCHING);
        damage_twice(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);

        assert_int_equal(say_status_after(&b, KUBE_VERDICT_TOO_MANY, 120),
                         KUBE_ACTION_SLEEP);
        failed_ms = b.now_ms;
        assert_in_range(wake(&b), 30000, 45000);
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);

        for (watches = 0; b.action.kind == KUBE_ACTION_WATCH; watches++) {
            say(&b, KUBE_INPUT_OPENED);
            over = b.now_ms - failed_ms >= 120000;
            assert_int_equal(i ? say(&b, KUBE_INPUT_PROTOCOL)
                               : say_status(&b, KUBE_VERDICT_INTERNAL),
                             KUBE_ACTION_SLEEP);
            assert_in_range(wake(&b), 1, 30000);
            assert_int_equal(b.action.kind == KUBE_ACTION_LIST, over);
        }

        assert_in_range(watches, 4, 20);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_in_range(b.now_ms - failed_ms, 120000, 180000);
    }
}


/* Who asks for a list then gets it when it may begin: the watch stays open. */
static void
test_refused_instead_and_asked(void **state)
{
    bed_t     b;
    uint64_t  failed_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    damage_twice(&b);
    assert_int_equal(say_status_after(&b, KUBE_VERDICT_TOO_MANY, 120),
                     KUBE_ACTION_SLEEP);
    failed_ms = b.now_ms;
    (void) wake(&b);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);

    while (say_timer(&b) == KUBE_ACTION_WATCH) {
        say(&b, KUBE_INPUT_OPENED);
    }

    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - failed_ms, 120000, 180000);
}


/*
 * A list beside the watch is refused while the next one is wanted already: its
 * time counts from the refusal, and the watch has none but its own.
 */
static void
test_refused_beside(void **state)
{
    bed_t     b;
    uint64_t  opened_ms, deadline_ms;

    static const kube_input_t  beside = {
        .kind = KUBE_INPUT_RELIST, .reason = KUBE_RELIST_ROOM, .beside = true
    };

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    opened_ms = b.now_ms;
    assert_int_equal(feed(&b, &beside), KUBE_ACTION_BESIDE);
    assert_int_equal(feed(&b, &beside), KUBE_ACTION_NONE);
    assert_true(b.r.deadline_ms < opened_ms + b.r.conf.idle_timeout_ms);

    b.now_ms += 20000;
    kube_reflector_refused_beside(&b.r, 10000, b.now_ms);
    assert_in_range(b.r.deadline_ms - b.now_ms, 10000, 15000);

    kube_reflector_refused_beside(&b.r, 600000, b.now_ms);
    assert_int_equal(b.r.deadline_ms,
                     opened_ms + b.r.conf.idle_timeout_ms);
    assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);
    deadline_ms = b.r.deadline_ms;
    kube_reflector_refused_beside(&b.r, 10000, b.now_ms);
    assert_int_equal(b.r.deadline_ms, deadline_ms);
}


/* Silence does not close the watch for a list that may not begin yet. */
static void
test_refused_then_silent(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say_rv(&b, KUBE_INPUT_BOOKMARK, "101");
    assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);
    say(&b, KUBE_INPUT_OPENED);
    refused_on_demand(&b, KUBE_ACTION_LIST, 300);

    for (i = 0; i < 3; i++) {
        say(&b, KUBE_INPUT_OPENED);
        assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);
    }

    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
}


/* Retry-After is of the WatchList; one that is done is not what comes later. */
static void
test_stream_gives_way_once(void **state)
{
    bed_t     b;
    uint64_t  failed_ms;

    (void) state;

    bed_make(&b, KUBE_WATCH_LIST_ON);
    say_rv(&b, KUBE_INPUT_START, "100");
    say(&b, KUBE_INPUT_OPENED);

    refused_on_demand(&b, KUBE_ACTION_STREAM, 40);
    failed_ms = b.now_ms;
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say_timer(&b), KUBE_ACTION_STREAM);
    assert_in_range(b.now_ms - failed_ms, 40000, 60000);

    /* nothing was there to be listed; then its version has expired */
    say(&b, KUBE_INPUT_OPENED);
    say_rv(&b, KUBE_INPUT_META, "101");
    say(&b, KUBE_INPUT_LIST_DONE);
    assert_int_equal(b.r.state, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say_status(&b, KUBE_VERDICT_EXPIRED), KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_STREAM);
    assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                     KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_int_not_equal(b.action.kind, KUBE_ACTION_WATCH);
}


/* Bytes that are damaged twice: a list may get past them, or a watch may. */
static void
test_damaged_list_gives_way(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);

    for (i = 0; i < 4; i++) {
        damage_twice(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_int_equal(b.action.reason, KUBE_RELIST_PROTOCOL);
        assert_int_equal(say_status(&b, KUBE_VERDICT_UNAVAILABLE),
                         KUBE_ACTION_SLEEP);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
        say(&b, KUBE_INPUT_OPENED);
    }
}


/*
 * A server that was set back, whatever the list was for: once a second proof
 * lets items replace newer objects, no watch goes on from both pasts.
 */
static void
test_rollback_does_not_give_way(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    for (i = 0; i < 4; i++) {
        bed_in(&b, KUBE_REFLECTOR_WATCHING);

        if (i == 0) {
            say_relist(&b, KUBE_RELIST_ROOM);

        } else {
            damage_twice(&b);
        }

        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_int_equal(say_status(&b, KUBE_VERDICT_TOO_LARGE_RV),
                         KUBE_ACTION_LIST);
        assert_int_equal(say_rv(&b, KUBE_INPUT_META, "50"),
                         KUBE_ACTION_SLEEP);
        b.now_ms = b.r.deadline_ms + KUBE_ROLLBACK_MS;
        assert_int_equal(say(&b, KUBE_INPUT_TIMER),
                         i ? KUBE_ACTION_WATCH : KUBE_ACTION_LIST);

        if (i != 0) {
            say(&b, KUBE_INPUT_OPENED);
            damage_twice(&b);
        }

        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
        assert_int_equal(b.action.rv.len, 0);

        /* its version, an item, or one that comes before it */
        if (i != 3) {
            assert_int_equal(say_rv(&b, KUBE_INPUT_META, "60"),
                             KUBE_ACTION_NONE);
        }

        if (i >= 2) {
            assert_true(kube_reflector_replaces(&b.r, b.now_ms));
            say_rv(&b, KUBE_INPUT_ITEM, "");
        }

        assert_int_equal(say_failed(&b, KUBE_CLOSED), KUBE_ACTION_SLEEP);
        (void) wake(&b);
        assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    }
}


/* Watches end by themselves after 5 to 10 minutes, and not all at once. */
static void
test_watch_timeouts(void **state)
{
    bed_t     b;
    unsigned  i;
    uint32_t  least, most;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_OPENING);
    least = UINT32_MAX;
    most = 0;

    for (i = 0; i < 100; i++) {
        say(&b, KUBE_INPUT_OPENED);
        b.now_ms += KUBE_SHORT_WATCH_MS;
        assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_WATCH);
        least = (b.action.timeout_s < least) ? b.action.timeout_s : least;
        most = (b.action.timeout_s > most) ? b.action.timeout_s : most;
    }

    assert_in_range(least, 300, 330);
    assert_in_range(most, 570, 599);
}


/* Bytes of an item are no progress of its list, or it would trickle. */
static void
test_list_trickles(void **state)
{
    bed_t     b;
    uint64_t  deadline_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_LISTING);
    deadline_ms = b.r.deadline_ms;
    b.now_ms += KUBE_LIST_MS - 1;
    assert_int_equal(say_alive(&b, true), KUBE_ACTION_NONE);
    assert_int_equal(b.r.deadline_ms, deadline_ms);
    assert_int_equal(say_alive(&b, false), KUBE_ACTION_NONE);
    assert_int_equal(b.r.deadline_ms, b.now_ms + KUBE_LIST_MS);
    b.now_ms++;
    assert_int_equal(say_alive(&b, true), KUBE_ACTION_NONE);
    assert_int_equal(say_timer(&b), KUBE_ACTION_SLEEP);
    assert_string_equal(b.action.timeout, "no answer");
}


/* Lists on demand: 20, 40, 60 s apart at most, half of that at least. */
static void
test_relist_pace(void **state)
{
    bed_t     b;
    unsigned  i;
    uint64_t  began_ms, step_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    step_ms = KUBE_DEMAND_FIRST_MS;
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);

    for (i = 0; i < 50; i++) {
        began_ms = b.now_ms;

        say_rv(&b, KUBE_INPUT_META, "100");
        assert_int_equal(say(&b, KUBE_INPUT_LIST_DONE), KUBE_ACTION_WATCH);

        /* asked for at any time, and any number of times: it is one list */
        if (i % 2) {
            say_relist(&b, KUBE_RELIST_ROOM);
        }

        say(&b, KUBE_INPUT_OPENED);
        assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_NONE);
        assert_int_equal(say_alive(&b, false), KUBE_ACTION_NONE);

        assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
        assert_in_range(b.now_ms - began_ms, step_ms / 2, step_ms);

        step_ms = (step_ms * 2 < KUBE_DEMAND_MAX_MS) ? step_ms * 2
                                                     : KUBE_DEMAND_MAX_MS;
    }

    /* a list for another reason serves as well */
    say_rv(&b, KUBE_INPUT_META, "100");
    say(&b, KUBE_INPUT_LIST_DONE);
    say(&b, KUBE_INPUT_OPENED);
    say_relist(&b, KUBE_RELIST_ROOM);
    say_rv(&b, KUBE_INPUT_EVENT, "99");
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
    say_rv(&b, KUBE_INPUT_META, "100");
    say(&b, KUBE_INPUT_LIST_DONE);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(b.r.deadline_ms, b.now_ms + 90000);

    /* two minutes without a demand, and the pace starts anew */
    b.now_ms += 130000;
    assert_int_equal(say_relist(&b, KUBE_RELIST_ROOM), KUBE_ACTION_LIST);
    began_ms = b.now_ms;
    say_rv(&b, KUBE_INPUT_META, "100");
    say(&b, KUBE_INPUT_LIST_DONE);
    say(&b, KUBE_INPUT_OPENED);
    say_relist(&b, KUBE_RELIST_ROOM);
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - began_ms, KUBE_DEMAND_FIRST_MS / 2,
                    KUBE_DEMAND_FIRST_MS);
}


/* What is slow gets more time the next time; the idle timer does not. */
static void
test_timeouts_double(void **state)
{
    bed_t     b;
    unsigned  i;
    uint64_t  ms;

    (void) state;

    bed_init(&b);
    say(&b, KUBE_INPUT_START);

    for (i = 0, ms = KUBE_LIST_MS; i < 8; i++) {
        b.now_ms += 1000;
        say(&b, KUBE_INPUT_SENT);
        say(&b, KUBE_INPUT_OPENED);
        say_alive(&b, true);
        assert_int_equal(b.r.deadline_ms, b.now_ms + ms);
        assert_int_equal(say_timer(&b), KUBE_ACTION_SLEEP);
        assert_string_equal(b.action.timeout, "no answer");
        (void) wake(&b);
        ms = (2 * ms < KUBE_TIMEOUT_MAX_MS) ? 2 * ms : KUBE_TIMEOUT_MAX_MS;
    }

    /* an item is progress; other failures change nothing */
    b.now_ms += KUBE_TIMEOUT_MAX_MS - 1;
    assert_int_equal(say(&b, KUBE_INPUT_TIMER), KUBE_ACTION_NONE);
    say(&b, KUBE_INPUT_ITEM);
    assert_int_equal(b.r.deadline_ms, b.now_ms + KUBE_TIMEOUT_MAX_MS);
    say_failed(&b, KUBE_TIMEOUT);
    assert_null(b.action.timeout);
    (void) wake(&b);
    assert_int_equal(b.r.deadline_ms, b.now_ms + KUBE_TIMEOUT_MAX_MS);

    say_rv(&b, KUBE_INPUT_META, "100");
    say(&b, KUBE_INPUT_LIST_DONE);

    for (i = 0, ms = KUBE_OPEN_MS; i < 8; i++) {
        assert_int_equal(b.r.deadline_ms, b.now_ms + ms);
        assert_int_equal(say_timer(&b), KUBE_ACTION_SLEEP);
        assert_string_equal(b.action.timeout, "no answer");
        (void) wake(&b);

        if (b.action.kind == KUBE_ACTION_LIST) {
            say_rv(&b, KUBE_INPUT_META, "100");
            say(&b, KUBE_INPUT_LIST_DONE);
        }

        ms = (2 * ms < KUBE_TIMEOUT_MAX_MS) ? 2 * ms : KUBE_TIMEOUT_MAX_MS;
    }

    for (i = 0; i < 8; i++) {
        say(&b, KUBE_INPUT_OPENED);
        assert_int_equal(b.r.deadline_ms, b.now_ms + 90000);
        assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);
        assert_null(b.action.timeout);
        assert_int_equal(b.r.deadline_ms, b.now_ms + KUBE_OPEN_MS);
    }

    /* success forgets: the next list has 60 s again */
    say(&b, KUBE_INPUT_OPENED);
    say_relist(&b, KUBE_RELIST_ROOM);
    assert_int_equal(b.r.deadline_ms, b.now_ms + KUBE_LIST_MS);
}


/* An event that has begun must be complete in time, bytes or not. */
static void
test_slow_event(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    say_alive(&b, true);

    for (i = 0; i < 59; i++) {
        b.now_ms += 1000;
        assert_int_equal(say_alive(&b, true), KUBE_ACTION_NONE);
    }

    assert_int_equal(b.r.deadline_ms, b.now_ms + 1000);
    assert_int_equal(say_timer(&b), KUBE_ACTION_WATCH);
    assert_string_equal(b.action.timeout, "an object came too slowly");

    /* one after the other is no reason */
    say(&b, KUBE_INPUT_OPENED);

    for (i = 0; i < 100; i++) {
        say_alive(&b, true);
        b.now_ms += 30000;

        if (i % 2) {
            say_rv(&b, KUBE_INPUT_EVENT, "100");
            say_alive(&b, true);

        } else {
            say_alive(&b, false);
        }

        if (b.r.deadline_ms == b.r.watch.deadline_ms) {
            break;
        }

        assert_true(b.r.deadline_ms >= b.now_ms + 60000);
    }

    assert_in_range(i, 5, 30);
}


/*
 * Once per version it is read again; then it is passed over, and one list for
 * all that were brings what they said.
 */
static void
test_unreadable(void **state)
{
    bed_t     b;
    unsigned  i;
    uint64_t  began_ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_WATCHING);
    assert_int_equal(say(&b, KUBE_INPUT_UNREADABLE), KUBE_ACTION_SLEEP);
    assert_in_range(wake(&b), 400, 800);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "100");
    say(&b, KUBE_INPUT_OPENED);

    for (i = 0; i < 10; i++) {
        assert_int_equal(say(&b, KUBE_INPUT_UNREADABLE), KUBE_ACTION_NONE);
        assert_int_equal(b.r.state, KUBE_REFLECTOR_WATCHING);
        b.now_ms += 10;
    }

    /* those that came later do not put it off */

    began_ms = b.now_ms;
    assert_int_equal(say_timer(&b), KUBE_ACTION_LIST);
    assert_in_range(b.now_ms - began_ms, KUBE_URGENT_FIRST_MS / 2,
                    KUBE_URGENT_FIRST_MS - 50);
    assert_int_equal(b.action.reason, KUBE_RELIST_PROTOCOL);

    say_rv(&b, KUBE_INPUT_META, "100");
    say(&b, KUBE_INPUT_LIST_DONE);
    say(&b, KUBE_INPUT_OPENED);

    /* the next one keeps its distance from that */
    assert_int_equal(say(&b, KUBE_INPUT_UNREADABLE), KUBE_ACTION_SLEEP);
    (void) wake(&b);
    say(&b, KUBE_INPUT_OPENED);
    assert_int_equal(say(&b, KUBE_INPUT_UNREADABLE), KUBE_ACTION_NONE);
    assert_true(b.r.deadline_ms - began_ms >= KUBE_DEMAND_FIRST_MS / 2);

    /* at another version it may be damage again */
    say_rv(&b, KUBE_INPUT_EVENT, "101");
    assert_int_equal(say(&b, KUBE_INPUT_UNREADABLE), KUBE_ACTION_SLEEP);
    (void) wake(&b);
    assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    assert_str(b.action.rv, "101");
}


/* A short watch with events that bring no newer version is no success. */
static void
test_events_without_progress(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_OPENING);

    for (i = 0; i < 10; i++) {
        say(&b, KUBE_INPUT_OPENED);
        say_rv(&b, KUBE_INPUT_EVENT, "100");
        say_rv(&b, KUBE_INPUT_EVENT, "");
        say_rv(&b, KUBE_INPUT_BOOKMARK, "100");
        assert_int_equal(say(&b, KUBE_INPUT_CLOSED), KUBE_ACTION_SLEEP);
        (void) wake(&b);

        if (i >= KUBE_USELESS_WATCHES_MAX - 1) {
            assert_int_equal(b.action.kind, KUBE_ACTION_LIST);
            say_rv(&b, KUBE_INPUT_META, "100");
            say(&b, KUBE_INPUT_LIST_DONE);
        }

        assert_int_equal(b.action.kind, KUBE_ACTION_WATCH);
    }

    assert_true(b.r.backoff.step_ms >= 30000);
}


/* "Retry after 1 s" for ever: the fourth in a row waits longer. */
static void
test_retry_after_in_a_row(void **state)
{
    bed_t     b;
    unsigned  i;
    uint64_t  ms;

    (void) state;

    bed_in(&b, KUBE_REFLECTOR_OPENING);

    for (i = 0; i < 20; i++) {
        say_status_after(&b, KUBE_VERDICT_TOO_MANY, 1);
        ms = wake(&b);

        if (i < 4) {
            assert_in_range(ms, 1000, 1500);

        } else if (i > 6) {
            assert_true(ms >= 3200);
        }
    }

    assert_in_range(ms, 15000, 30000);
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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_waits_for_its_turn),
        cmocka_unit_test(test_second_watch),
        cmocka_unit_test(test_healed),
        cmocka_unit_test(test_cold_start),
        cmocka_unit_test(test_list_without_version),
        cmocka_unit_test(test_pages_in_circles),
        cmocka_unit_test(test_long_token),
        cmocka_unit_test(test_expired_page),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_watch_expired),
        cmocka_unit_test(test_unauthorized),
        cmocka_unit_test(test_other_verdicts),
        cmocka_unit_test(test_short_watches),
        cmocka_unit_test(test_useless_watches),
        cmocka_unit_test(test_idle_and_deadline),
        cmocka_unit_test(test_outage),
        cmocka_unit_test(test_protocol),
        cmocka_unit_test(test_older_event),
        cmocka_unit_test(test_relist),
        cmocka_unit_test(test_relist_urgent),
        cmocka_unit_test(test_relist_beside),
        cmocka_unit_test(test_list_gives_way),
        cmocka_unit_test(test_list_comes_again),
        cmocka_unit_test(test_list_comes_again_in_time),
        cmocka_unit_test(test_list_in_haste),
        cmocka_unit_test(test_stale_in_a_row),
        cmocka_unit_test(test_list_does_not_give_way),
        cmocka_unit_test(test_stream_gives_way),
        cmocka_unit_test(test_stream_gives_way_once),
        cmocka_unit_test(test_refused_then_expired),
        cmocka_unit_test(test_refused_then_unreadable),
        cmocka_unit_test(test_refused_instead),
        cmocka_unit_test(test_refused_instead_and_asked),
        cmocka_unit_test(test_refused_beside),
        cmocka_unit_test(test_refused_then_silent),
        cmocka_unit_test(test_damaged_list_gives_way),
        cmocka_unit_test(test_rollback_does_not_give_way),
        cmocka_unit_test(test_pace_beside),
        cmocka_unit_test(test_pace_replacing),
        cmocka_unit_test(test_watch_timeouts),
        cmocka_unit_test(test_list_trickles),
        cmocka_unit_test(test_relist_pace),
        cmocka_unit_test(test_timeouts_double),
        cmocka_unit_test(test_slow_event),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_events_without_progress),
        cmocka_unit_test(test_retry_after_in_a_row),
        cmocka_unit_test(test_backoff_resets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

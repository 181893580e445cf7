/*
 * test_reflector - bytes to deltas: lists and watches over a scripted
 * kube_io_t, in pieces of any size, with every error an exchange can have.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_bed.h"


static void
test_list_and_watch(void **state)
{
    bed_t           b;
    size_t          chunk;
    io_exchange_t  *x;

    (void) state;

    /* 0: all at once; else so many bytes at a time */

    for (chunk = 0; chunk < 700; chunk += 1 + chunk / 16) {

        bed_init(&b);
        b.io.chunk = chunk;
        bed_start(&b, "");

        x = bed_x(&b);
        assert_string_equal(x->path,
                            "/api/v1/services?limit=2&resourceVersion=0");
        assert_false(bed_listed(&b));
        assert_int_equal(b.turn.holder, 2);

        io_answer(&b.io, x, 200, LIST("7", ",\"continue\":\"abc\"",
                                      SERVICE("web", "3") ","
                                      SERVICE("api", "6")));
        assert_string_equal(drained(&b), "[ R:shop/web@3 R:shop/api@6");
        assert_rv(&b, "");

        bed_process(&b);
        x = bed_x(&b);
        assert_string_equal(x->path, "/api/v1/services?limit=2&continue=abc");
        assert_int_equal(b.turn.holder, 2);

        io_answer(&b.io, x, 200, LIST("9", "", SERVICE("echo", "2")));
        assert_string_equal(drained(&b), "R:shop/echo@2 ]");
        assert_true(bed_listed(&b));
        assert_rv(&b, "7");

        bed_process(&b);
        x = bed_x(&b);
        assert_non_null(strstr(x->path, "watch=true"));
        assert_non_null(strstr(x->path, "allowWatchBookmarks=true"));
        assert_non_null(strstr(x->path, "resourceVersion=7&"));
        assert_non_null(strstr(x->path, "timeoutSeconds="));
        assert_null(strstr(x->path, "resourceVersionMatch"));

        assert_true(io_head(x, 200, "application/json", 0));
        assert_true(io_body(&b.io, x,
                            EVENT("ADDED", FULL("new", "8"))
                            EVENT("MODIFIED", FULL("web", "9"))
                            EVENT("DELETED", FULL("api", "10"))));
        assert_string_equal(drained(&b),
                            "U:shop/new@8 U:shop/web@9 D:shop/api@10");

        /* a bookmark is no event to people: nothing has changed */
        b.io.now_ms += 5;
        assert_true(io_body(&b.io, x, BOOKMARK("12")));
        bed_process(&b);
        assert_rv(&b, "12");
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_LAST_EVENT_MS),
                         b.io.now_ms - 5);

        io_done(x, KUBE_OK, "");
        b.io.now_ms += 2000;
        bed_process(&b);

        /* it lived for no time, but had events */
        assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=12&"));

        assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS), 0);
        /* the second was asked for and has not been answered */
        assert_int_equal(counted(&b, KUBE_COUNTER_WATCHES), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_ADDED), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_MODIFIED), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_DELETED), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_BOOKMARK), 1);
        assert_int_equal(b.turn.holder, KUBE_SCOPES_MAX);

        bed_done(&b);
    }
}


/* Cut at every byte into two deliveries: the same deltas. */
static void
test_every_split(void **state)
{
    bed_t           b;
    size_t          cut;
    io_exchange_t  *x;

    static const char  text[] = EVENT("ADDED", FULL("new", "8"))
                                "\r\n" EVENT("DELETED", FULL("api", "10"))
                                BOOKMARK("12");

    (void) state;

    for (cut = 1; cut < sizeof(text) - 1; cut++) {
        bed_init(&b);
        bed_watch(&b);
        x = bed_x(&b);

        b.io.chunk = cut;
        assert_true(io_body(&b.io, x, text));

        assert_string_equal(drained(&b), "U:shop/new@8 D:shop/api@10");
        assert_rv(&b, "12");
        bed_done(&b);
    }
}


/* Cut off after every byte: a watch is resumed where it was, at once. */
static void
test_watch_cut_off(void **state)
{
    bed_t           b;
    char            text[1024];
    size_t          cut, first;
    io_exchange_t  *x;

    static const char  one[] = EVENT("ADDED", FULL("new", "8"));
    static const char  both[] = EVENT("ADDED", FULL("new", "8"))
                                EVENT("ADDED", FULL("api", "9"));

    (void) state;

    first = strlen(one) - 1;

    for (cut = 1; cut < sizeof(both) - 2; cut += 3) {
        bed_init(&b);
        bed_watch(&b);
        x = bed_x(&b);
        b.io.now_ms += 1500;

        snprintf(text, sizeof(text), "%.*s", (int) cut, both);
        assert_true(io_body(&b.io, x, text));
        io_done(x, (cut & 1) ? KUBE_OK : KUBE_CLOSED, "");
        bed_process(&b);

        assert_non_null(strstr(bed_x(&b)->path,
                               (cut >= first) ? "resourceVersion=8&"
                                              : "resourceVersion=5&"));
        bed_done(&b);
    }
}


/* A list that is cut off is never taken for a whole one. */
static void
test_list_cut_off(void **state)
{
    bed_t           b;
    char            text[1024];
    size_t          cut;
    const char     *deltas;
    io_exchange_t  *x;

    static const char  whole[] = LIST("7", "", SERVICE("web", "3"));

    (void) state;

    for (cut = 0; cut < sizeof(whole) - 3; cut++) {
        bed_init(&b);
        bed_start(&b, "");
        x = bed_x(&b);

        snprintf(text, sizeof(text), "%.*s", (int) cut, whole);
        assert_true(io_head(x, 200, "application/json", 0));
        assert_true(io_body(&b.io, x, text));
        io_done(x, (cut & 1) ? KUBE_OK : KUBE_CLOSED, "");
        bed_process(&b);

        deltas = drained(&b);
        assert_null(strchr(deltas, ']'));
        assert_rv(&b, "");
        assert_false(bed_listed(&b));
        assert_int_equal(b.turn.holder, KUBE_SCOPES_MAX);

        assert_true(bed_sleep(&b) >= 400);
        assert_null(strstr(bed_x(&b)->path, "watch"));
        bed_done(&b);
    }
}


/*
 * Members in the order of their names, as a map of Go is written: the items are
 * there before the version.  They are taken as changes; what is older than ours
 * ends without a SYNC, and a server that was set back is believed in the end.
 */
static void
test_items_first(void **state)
{
    bed_t     b;
    unsigned  i;

    static const char  body[] =
        "{\"items\":[" SERVICE("web", "3") "],\"kind\":\"ServiceList\","
        "\"metadata\":{\"resourceVersion\":\"7\"}}";
    static const char  old[] =
        "{\"items\":[" SERVICE("web", "3") "],\"kind\":\"ServiceList\","
        "\"metadata\":{\"resourceVersion\":\"4\"}}";

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    io_answer(&b.io, bed_x(&b), 200, body);
    assert_string_equal(drained(&b), "[ U:shop/web@3 ]");
    assert_rv(&b, "7");
    bed_done(&b);

    bed_init(&b);
    bed_watch(&b);
    kube_reflector_relist(b.r, KUBE_RELIST_OTHER, false, b.io.now_ms);
    bed_process(&b);
    io_answer(&b.io, bed_x(&b), 200, body);
    assert_string_equal(drained(&b), "[ U:shop/web@3 ]");
    assert_rv(&b, "7");

    bed_done(&b);

    /* a list that is cut off: what was taken of it is the floor */
    bed_init(&b);
    bed_watch(&b);
    kube_reflector_relist(b.r, KUBE_RELIST_OTHER, false, b.io.now_ms);
    bed_process(&b);
    io_answer(&b.io, bed_x(&b), 200, "{\"items\":[" SERVICE("web", "9"));
    assert_string_equal(drained(&b), "[ U:shop/web@9");
    bed_sleep(&b);
    assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=9&"));

    /* older ones, until a second proof */
    for (i = 0; i < 20; i++) {
        io_answer(&b.io, bed_x(&b), 200, old);

        if (strcmp(drained(&b), "[ R:shop/web@3 ]") == 0) {
            break;
        }

        assert_string_equal(b.dump, "[ U:shop/web@3");
        assert_rv(&b, "5");
        bed_sleep(&b);
    }

    assert_rv(&b, "4");
    assert_true(kube_reflector_rollback(b.r));
    bed_done(&b);
}


/*
 * A list that says behind its items that it is of another kind: what stood in
 * it was taken, for it may be of any length, but it ends nothing.  It is no
 * list, has no version, and the next one that is good drops what it brought.
 */
static void
test_items_of_another_kind_first(void **state)
{
    bed_t  b;

    static const char  body[] =
        "{\"items\":[" SERVICE("secret", "3") "],\"kind\":\"SecretList\","
        "\"metadata\":{\"resourceVersion\":\"7\"}}";
    static const char  good[] =
        "{\"items\":[" SERVICE("web", "3") "],\"kind\":\"ServiceList\","
        "\"metadata\":{\"resourceVersion\":\"7\"}}";

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    io_answer(&b.io, bed_x(&b), 200, body);
    assert_string_equal(drained(&b), "[ U:shop/secret@3");
    assert_string_equal(b.reason, "protocol");
    assert_string_equal(b.message, "not a list of this resource");
    assert_rv(&b, "");
    assert_int_equal(counted(&b, KUBE_COUNTER_WATCHES), 0);

    bed_sleep(&b);
    io_answer(&b.io, bed_x(&b), 200, good);
    assert_string_equal(drained(&b), "[ U:shop/web@3 ]");
    assert_rv(&b, "7");
    bed_done(&b);
}


static void
test_skipped(void **state)
{
    bed_t           b;
    io_exchange_t  *x;
    static char     huge[8192], text[16384];

    (void) state;

    memset(huge, 'x', sizeof(huge) - 1);
    snprintf(text, sizeof(text),
             LIST("7", "",
                  "{" META("big", "2") ",\"x\":\"%s\"},"
                  "{" META("bad", "2") ",\"spec\":[]},"
                  "{\"metadata\":{\"name\":\"UP\",\"namespace\":\"shop\"}},"
                  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\","
                  "\"uid\":\"u\",\"resourceVersion\":\"2\"},\"spec\":"
                  "{\"ports\":[{\"port\":1}]}},"
                  SERVICE("norv", "") "," SERVICE("zero", "0") ","
                  SERVICE("web", "3")), huge);

    bed_make(&b, NULL, "shop", 1024);
    assert_non_null(b.r);
    bed_start(&b, "");
    x = bed_x(&b);
    assert_int_equal(strncmp(x->path, "/api/v1/namespaces/shop/services?", 33),
                     0);
    io_answer(&b.io, x, 200, text);

    assert_string_equal(drained(&b),
                        "[ X:shop/big(too_large) X:shop/bad(malformed) "
                        "X:shop/norv(malformed) X:shop/zero(malformed) "
                        "R:shop/web@3 ]");
    assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_TOO_LARGE), 1);
    assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_MALFORMED), 5);
    assert_int_equal(b.logged[KUBE_EV_SKIPPED], 1);
    assert_rv(&b, "7");

    bed_process(&b);
    x = bed_x(&b);
    assert_true(io_head(x, 200, "application/json", 0));

    snprintf(text, sizeof(text), "{\"type\":\"ADDED\",\"object\":{\"x\":\"%s\","
             META("big", "8") "}}\n", huge);
    assert_true(io_body(&b.io, x, text));
    assert_true(io_body(&b.io, x,
        EVENT("ADDED", "{\"kind\":\"Service\",\"apiVersion\":\"v1\","
              META("bad", "8") ",\"spec\":[]}")
        EVENT("DELETED", "{\"kind\":\"Service\",\"apiVersion\":\"v1\","
              META("gone", "9") ",\"spec\":[]}")
        EVENT("RENAMED", FULL("web", "10"))
        EVENT("MODIFIED", FULL("web", "11"))));

    assert_string_equal(drained(&b),
                        "X:shop/big(too_large) X:shop/bad(malformed) "
                        "D:shop/gone@9 U:shop/web@11");
    assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_TOO_LARGE), 2);
    assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_MALFORMED), 7);
    assert_rv(&b, "11");
    bed_done(&b);
}


/* Above max_object: named wherever the key can be read. */
static void
test_oversize_events(void **state)
{
    size_t               i;
    bed_t                b;
    io_exchange_t       *x;
    static char          huge[8192], text[16384];
    static const size_t  chunks[] = { 0, 1, 7, 1000, 4096, 5000 };

    (void) state;

    memset(huge, 'x', sizeof(huge) - 1);

    for (i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        bed_make(&b, NULL, "shop", 1024);
        assert_non_null(b.r);
        b.io.chunk = chunks[i];
        bed_start(&b, "5");
        bed_process(&b);
        x = bed_x(&b);
        assert_true(io_head(x, 200, "application/json", 0));

        snprintf(text, sizeof(text),
                 EVENT("ADDED", "{" META("big", "8") ",\"x\":\"%s\"}"), huge);
        assert_true(io_body(&b.io, x, text));
        assert_string_equal(drained(&b), "X:shop/big(too_large)");
        assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_TOO_LARGE), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_ADDED), 1);
        assert_rv(&b, "8");

        /* gone for good, and not refused any more */
        snprintf(text, sizeof(text),
                 EVENT("DELETED", "{" META("big", "9") ",\"x\":\"%s\"}"),
                 huge);
        assert_true(io_body(&b.io, x, text));
        assert_string_equal(drained(&b), "D:shop/big@9");
        assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_TOO_LARGE), 1);
        assert_rv(&b, "9");

        /* of another namespace: not ours to name, the version moves */
        snprintf(text, sizeof(text),
                 EVENT("MODIFIED", "{\"metadata\":{\"name\":\"a\","
                       "\"namespace\":\"other\",\"uid\":\"u\","
                       "\"resourceVersion\":\"10\"},\"x\":\"%s\"}"), huge);
        assert_true(io_body(&b.io, x, text));
        assert_string_equal(drained(&b), "");
        assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_TOO_LARGE), 2);
        assert_rv(&b, "10");

        /* the key is found wherever it stands */
        snprintf(text, sizeof(text),
                 EVENT("MODIFIED", "{\"x\":\"%s\"," META("big", "11") "}"),
                 huge);
        assert_true(io_body(&b.io, x, text));
        assert_string_equal(drained(&b), "X:shop/big(too_large)");
        assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_TOO_LARGE), 3);
        assert_rv(&b, "11");
        bed_done(&b);
    }
}


/* One before the version of its list may be of an older state. */
static void
test_oversize_before_metadata(void **state)
{
    bed_t        b;
    static char  huge[8192], text[16384];

    (void) state;

    memset(huge, 'x', sizeof(huge) - 1);
    snprintf(text, sizeof(text),
             "{\"kind\":\"ServiceList\",\"items\":[{" META("big", "2")
             ",\"x\":\"%s\"}],\"metadata\":{\"resourceVersion\":\"3\"}}",
             huge);

    bed_init(&b);
    bed_start(&b, "");
    io_answer(&b.io, bed_x(&b), 200, LIST("7", "", ""));
    assert_string_equal(drained(&b), "[ ]");
    kube_reflector_relist(b.r, KUBE_RELIST_EXPIRED, false,
                          b.io.now_ms);
    bed_process(&b);
    io_answer(&b.io, bed_x(&b), 200, text);
    assert_string_equal(drained(&b), "[ X:shop/big(too_large)");
    bed_process(&b);
    assert_null(io_find(&b.io, "/"));
    assert_rv(&b, "7");
    bed_done(&b);
}


/* What no memory of ours holds is the object's fault, not a failure. */
static void
test_dense_object(void **state)
{
    bed_t        b;
    size_t       n;
    static char  text[8192];

    (void) state;

    bed_init(&b);
    bed_start(&b, "");

    n = (size_t) snprintf(text, sizeof(text), "{\"kind\":\"ServiceList\","
                          "\"metadata\":{\"resourceVersion\":\"7\"},"
                          "\"items\":[{\"x\":[0");

    while (n < 4000) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, ",0");
    }

    snprintf(text + n, sizeof(text) - n, "]}," SERVICE("web", "3") "]}");

    io_answer(&b.io, bed_x(&b), 200, text);
    assert_string_equal(drained(&b), "[ R:shop/web@3 ]");
    assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_TOO_LARGE)
                     + counted(&b, KUBE_COUNTER_SKIPPED_MALFORMED), 1);
    bed_done(&b);
}


/* A watch is not closed for a list that would wait for those of others. */
static void
test_turns_while_watching(void **state)
{
    bed_t     b;
    unsigned  i, started, cancelled;

    (void) state;

    for (i = 0; i < 5; i++) {
        bed_init(&b);
        bed_watch(&b);
        started = b.io.started;
        cancelled = b.io.cancelled;
        assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));

        if (i == 4) {
            /* such a one is due at once, and nobody lists yet */
            kube_list_turn_give(&b.turn, 5);
            kube_reflector_relist(b.r, KUBE_RELIST_ROOM, true, b.io.now_ms);
            assert_true(kube_list_turn_has(&b.turn, 2));

            /* the next one is not: the turn is another's meanwhile */
            bed_process(&b);
            io_answer(&b.io, bed_x(&b), 200, LIST("9", "", ""));
            assert_string_equal(drained(&b), "[ ]");
            assert_true(io_head(bed_x(&b), 200, "application/json", 0));
            bed_process(&b);
            kube_reflector_relist(b.r, KUBE_RELIST_ROOM, false, b.io.now_ms);
            assert_true(kube_reflector_deadline(b.r) > b.io.now_ms);
            assert_int_equal(b.turn.holder, KUBE_SCOPES_MAX);
            assert_int_equal(b.turn.waiting_n, 0);
            bed_done(&b);
            break;
        }

        if (i == 3) {
            kube_list_turn_hold(&b.turn, b.io.now_ms + 30000);
            kube_list_turn_give(&b.turn, 5);
        }

        kube_reflector_relist(b.r, KUBE_RELIST_ROOM, i == 1, b.io.now_ms);

        bed_process(&b);
        assert_int_equal(b.io.started, started);
        assert_int_equal(b.turn.waiting_n, 1);

        io_body(&b.io, bed_x(&b), EVENT("ADDED", FULL("web", "9")));
        bed_process(&b);
        assert_string_equal(drained(&b), "U:shop/web@9");

        if (i == 2) {
            b.io.now_ms += KUBE_LIST_TURN_MS;   /* who lists is stuck */

        } else if (i == 3) {
            assert_true(kube_reflector_deadline(b.r) == b.io.now_ms + 30000);
            b.io.now_ms += 30000;

        } else {
            assert_true(kube_reflector_deadline(b.r)
                        == b.io.now_ms + KUBE_LIST_TURN_MS);
            b.io.now_ms += KUBE_LIST_TURN_MS - 1;
            bed_process(&b);
            assert_int_equal(b.io.started, started);
            assert_int_equal(b.io.cancelled, cancelled);
            assert_int_equal(b.turn.waiting_n, 1);
            kube_list_turn_give(&b.turn, 5);
            assert_int_equal(kube_reflector_deadline(b.r), 0);
        }

        bed_process(&b);
        assert_int_equal(b.io.started, started + 1);
        assert_int_equal(b.turn.holder, 2);
        assert_int_equal(b.turn.waiting_n, 0);
        assert_null(strstr(bed_x(&b)->path, "watch="));
        bed_done(&b);
    }
}


/* Nor is one that broke left closed for it, nor is one given up. */
static void
test_turns_while_broken(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    for (i = 0; i < 3; i++) {
        bed_init(&b);
        bed_watch(&b);
        assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
        kube_reflector_relist(b.r, KUBE_RELIST_ROOM, false, b.io.now_ms);
        bed_process(&b);

        if (i == 2) {
            b.io.now_ms += 2000;
            kube_list_turn_progress(&b.turn, 5, b.io.now_ms);
            io_done(bed_x(&b), KUBE_OK, "");
            bed_process(&b);
            kube_reflector_relist(b.r, KUBE_RELIST_ROOM, true, b.io.now_ms);
            bed_process(&b);

        } else {
            bed_cut(&b, EVENT("ERROR",
                              STATUS(500, "InternalError", "")));
            b.io.now_ms += 60000;

            if (i == 0) {
                kube_list_turn_anew(&b.turn, 5, b.io.now_ms);

            } else {
                kube_list_turn_give(&b.turn, 5);
            }

            bed_process(&b);
        }

        /* but where nobody lists it is the list's time */

        assert_int_equal(b.turn.waiting_n, (i == 1) ? 0 : 1);
        assert_int_equal(strstr(bed_x(&b)->path, "watch=") != NULL, i != 1);
        assert_int_equal(b.turn.holder, (i == 1) ? 2 : 5);
        bed_done(&b);
    }
}


/* A watch that pauses keeps the place, unless it comes up meanwhile. */
static void
test_place_in_a_pause(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    for (i = 0; i < 3; i++) {
        bed_init(&b);
        bed_watch(&b);
        assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
        kube_reflector_relist_needed(b.r, b.io.now_ms);
        bed_process(&b);
        assert_false(kube_list_turn_take(&b.turn, 6, b.io.now_ms));
        assert_int_equal(b.turn.waiting[0], 2);

        if (i == 2) {
            bed_cut(&b, EVENT("ERROR", STATUS(401, "Unauthorized", "")));

        } else {
            bed_cut(&b, EVENT("ERROR", STATUS(500, "InternalError", "")));
            assert_int_equal(b.turn.waiting[0], 2);

            if (i == 1) {
                kube_list_turn_give(&b.turn, 5);
                assert_int_equal(kube_reflector_deadline(b.r), 0);
                bed_process(&b);
                assert_int_equal(b.turn.waiting_n, 1);
                assert_true(kube_list_turn_take(&b.turn, 6, b.io.now_ms));
                assert_true(kube_reflector_deadline(b.r) > b.io.now_ms);
            }

            (void) bed_sleep(&b);
        }

        assert_non_null(strstr(bed_x(&b)->path, "watch=true"));
        assert_int_equal(b.turn.waiting[0], 2);
        kube_list_turn_give(&b.turn, b.turn.holder);
        bed_process(&b);
        assert_int_equal(b.turn.holder, 2);
        assert_null(strstr(bed_x(&b)->path, "watch="));
        bed_done(&b);
    }
}


/*
 * A list on demand that is another one by now, and has yet to begin, has no
 * turn while others list: the watch is opened meanwhile, at its version.
 */
static void
test_turns_of_another_list(void **state)
{
    bed_t     b;
    unsigned  how, started;

    enum { REFUSED, NO_HEAD, NO_END, TOO_OLD, ANEW, SUSPECT, HOWS };

    (void) state;

    for (how = 0; how < HOWS; how++) {
        bed_make_for(&b, NULL, "", 1024, (how <= NO_END)
                                         ? KUBE_WATCH_LIST_AUTO
                                         : KUBE_WATCH_LIST_OFF);
        assert_non_null(b.r);
        bed_watch(&b);
        kube_reflector_relist(b.r, KUBE_RELIST_OTHER, false, b.io.now_ms);
        bed_process(&b);
        assert_int_equal(strstr(bed_x(&b)->path, "sendInitialEvents") != NULL,
                         how <= NO_END);
        assert_int_equal(b.turn.holder == 2, how > NO_END);

        if (how >= ANEW) {
            b.io.now_ms += KUBE_LIST_TURN_MS;
        }

        if (how != TOO_OLD) {
            assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
        }

        switch (how) {

        case REFUSED:
            io_answer(&b.io, bed_x(&b), 400, STATUS(400, "BadRequest", ""));
            break;

        case NO_END:
            assert_true(io_head(bed_x(&b), 200, "application/json", 0));
            bed_process(&b);
            /* fall through */

        case NO_HEAD:
            b.io.now_ms += KUBE_STREAM_MS;
            kube_list_turn_progress(&b.turn, 5, b.io.now_ms);
            break;

        case TOO_OLD:
            io_answer(&b.io, bed_x(&b), 200, LIST("3", "", ""));
            bed_process(&b);
            assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
            b.io.now_ms = kube_reflector_deadline(b.r);
            break;

        case ANEW:
            io_answer(&b.io, bed_x(&b), 504,
                      STATUS(504, "Timeout", "\"details\":{\"causes\":[{"
                             "\"reason\":\"ResourceVersionTooLarge\"}]},"));
            break;

        default:
            assert_true(io_head(bed_x(&b), 200, "application/json", 0));
            bed_process(&b);
            b.io.suspect = bed_x(&b);
            break;
        }

        bed_process(&b);
        b.io.suspect = NULL;
        assert_non_null(strstr(bed_x(&b)->path, "watch=true"));
        assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=5&"));
        assert_null(strstr(bed_x(&b)->path, "sendInitialEvents"));
        assert_int_equal(b.turn.waiting_n, 1);
        assert_int_equal(b.turn.waiting[0], 2);
        assert_true(kube_reflector_suffering(b.r)->cause == KUBE_CAUSES
                    || how == NO_HEAD || how == NO_END);

        /* it follows, and its place is kept by a watch that is opened again */

        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        assert_true(io_body(&b.io, bed_x(&b),
                            EVENT("ADDED", FULL("web", "9"))));
        assert_string_equal(drained(&b), "U:shop/web@9");
        assert_false(kube_list_turn_take(&b.turn, 6, b.io.now_ms));
        io_done(bed_x(&b), KUBE_OK, "");
        bed_process(&b);
        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        bed_process(&b);
        assert_int_equal(b.turn.waiting[0], 2);

        started = b.io.started;
        kube_list_turn_give(&b.turn, 5);
        assert_int_equal(kube_reflector_deadline(b.r), 0);
        bed_process(&b);
        assert_int_equal(b.io.started, started + 1);
        assert_int_equal(b.turn.holder, 2);
        assert_null(strstr(bed_x(&b)->path, "watch="));
        assert_int_equal(strstr(bed_x(&b)->path, "resourceVersion=9&") != NULL,
                         how != ANEW);
        io_answer(&b.io, bed_x(&b), 200, LIST("9", "", ""));
        assert_string_equal(drained(&b), "[ ]");
        assert_int_not_equal(b.turn.holder, 2);
        bed_done(&b);
    }
}


/* The turn of the list beside the watch is not the one that replaces it has. */
static void
test_turn_of_its_own(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_watch_beside(&b);

    /* it hangs, and the other one has the turn before anybody else */

    b.io.now_ms += 2 * KUBE_LIST_TURN_MS;
    kube_reflector_relist(b.r, KUBE_RELIST_OTHER, true, b.io.now_ms);
    assert_false(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
    bed_process(&b);
    assert_int_equal(b.turn.holder, 2);
    assert_null(strstr(bed_x(&b)->path, "watch="));
    bed_done(&b);
}


static void
test_turns(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
    bed_start(&b, "");
    assert_int_equal(b.io.started, 0);
    assert_true(kube_reflector_deadline(b.r)
                == b.io.now_ms + KUBE_LIST_TURN_MS);

    /* waiting is not silence: no timer runs */
    b.io.now_ms += 10 * KUBE_LIST_MS;
    b.turn.since_ms = b.io.now_ms;
    kube_list_turn_progress(&b.turn, 5, b.io.now_ms);
    bed_process(&b);
    assert_int_equal(b.io.started, 0);
    assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 0);

    kube_list_turn_give(&b.turn, 5);
    assert_true(kube_reflector_deadline(b.r) == 0);
    bed_process(&b);
    assert_int_equal(b.io.started, 1);
    assert_true(kube_reflector_deadline(b.r)
                == b.io.now_ms + KUBE_UNREACHABLE_MS);

    /* two pages, one turn */
    assert_false(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
    io_answer(&b.io, bed_x(&b), 200, LIST("7", ",\"continue\":\"abc\"", ""));
    bed_process(&b);
    assert_int_equal(b.turn.holder, 2);
    assert_false(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
    io_done(bed_x(&b), KUBE_CLOSED, "");
    bed_process(&b);
    assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));

    /* who waits no more says so */
    (void) bed_sleep(&b);
    assert_int_equal(b.turn.waiting_n, 1);
    kube_reflector_stop(b.r, b.io.now_ms);
    assert_int_equal(b.turn.waiting_n, 0);
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_STATE),
                     KUBE_STATE_STOPPED);
    bed_done(&b);
}


/* A list that hangs gives its turn away, and is taken when it comes. */
static void
test_turn_is_lost(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *x;

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    x = bed_x(&b);
    assert_true(io_head(x, 200, "application/json", 0));
    bed_process(&b);

    /* items are progress, bytes are none */
    assert_true(io_body(&b.io, x, "{\"kind\":\"ServiceList\",\"metadata\":"
                        "{\"resourceVersion\":\"7\"},\"items\":["));
    bed_process(&b);

    for (i = 0; i < 5; i++) {
        b.io.now_ms += KUBE_LIST_TURN_MS - 1;
        assert_true(io_body(&b.io, x, i ? "," SERVICE("api", "6")
                                        : SERVICE("web", "3")));
        bed_process(&b);
        assert_false(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
    }

    b.io.now_ms += KUBE_LIST_TURN_MS - 1;
    assert_true(io_body(&b.io, x, ","));
    bed_process(&b);
    assert_false(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
    b.io.now_ms++;
    assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));

    /* beside the next, to its end */
    assert_true(io_body(&b.io, x, SERVICE("new", "7") "]}"));
    io_done(x, KUBE_OK, "");
    bed_process(&b);
    assert_true(bed_listed(&b));
    assert_int_equal(b.io.cancelled, 0);
    assert_int_equal(b.turn.holder, 5);
    assert_rv(&b, "7");
    bed_done(&b);

    /* a list that follows at once is another one: it waits like any */
    bed_init(&b);
    bed_start(&b, "");
    b.io.now_ms += KUBE_LIST_TURN_MS;
    assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
    io_answer(&b.io, bed_x(&b), 410, STATUS(410, "Expired", ""));
    bed_process(&b);
    assert_int_equal(b.io.started, 1);
    assert_int_equal(b.turn.waiting_n, 1);
    kube_list_turn_give(&b.turn, 5);
    bed_process(&b);
    assert_string_equal(bed_x(&b)->path, "/api/v1/services?limit=2");
    bed_done(&b);
}


static void
test_idle_and_slow(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *x;

    (void) state;

    /* silence between events: opened again, no error */
    bed_init(&b);
    bed_start(&b, "5");
    kube_zone_scope_set(&b.zone, 2, KUBE_COUNTER_GAUGE_CONTACT_MS, 4);
    kube_reflector_current(b.r);
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_CONTACT_MS), 4);
    kube_zone_scope_set(&b.zone, 2, KUBE_COUNTER_GAUGE_CONTACT_MS, 0);
    kube_reflector_current(b.r);
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_CONTACT_MS), 0);
    assert_true(io_head(bed_x(&b), 200, "application/json", 0));
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_WATCH_OPEN), 0);
    bed_process(&b);
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_CONTACT_MS), 0);
    kube_reflector_current(b.r);
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_CONTACT_MS), b.io.now_ms);
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_WATCH_OPEN), b.io.now_ms);
    b.io.now_ms = kube_reflector_deadline(b.r);
    assert_int_equal(b.io.now_ms, 5000000 + 90000);
    bed_process(&b);
    assert_int_equal(b.io.cancelled, 1);
    assert_int_equal(b.io.started, 2);
    assert_string_equal(b.reason, "");
    assert_int_equal(counted(&b, KUBE_COUNTER_SHORT_WATCHES), 0);
    bed_done(&b);

    /* an object that never ends */
    bed_init(&b);
    bed_watch(&b);
    x = bed_x(&b);
    assert_true(io_body(&b.io, x, "{\"type\":"));
    bed_process(&b);

    for (i = 0; i < 59; i++) {
        b.io.now_ms += 1000;
        assert_true(io_body(&b.io, x, " "));
        bed_process(&b);
        assert_int_equal(b.io.started, 1);
    }

    assert_int_equal(kube_reflector_deadline(b.r), 5000000 + KUBE_OBJECT_MS);
    b.io.now_ms += 1000;
    bed_process(&b);
    assert_int_equal(b.io.started, 2);
    assert_string_equal(b.reason, "timeout");
    assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=5&"));
    bed_done(&b);

    /* a list without a head */
    bed_init(&b);
    bed_start(&b, "");

    /* it is said soon, and given up late */
    b.io.now_ms = kube_reflector_deadline(b.r);
    assert_int_equal(b.io.now_ms, 5000000 + KUBE_UNREACHABLE_MS);
    assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);
    bed_process(&b);
    assert_int_equal(kube_reflector_suffering(b.r)->cause,
                     KUBE_CAUSE_UNREACHABLE);
    assert_int_equal(kube_reflector_suffering(b.r)->since_ms, 5000000);
    assert_int_equal(kube_reflector_suffering(b.r)->attempts, 0);
    assert_int_equal(b.io.started, 1);

    b.io.now_ms = kube_reflector_deadline(b.r);
    assert_int_equal(b.io.now_ms, 5000000 + KUBE_LIST_MS);
    bed_process(&b);
    assert_string_equal(b.reason, "timeout");
    assert_int_equal(kube_reflector_suffering(b.r)->attempts, 1);
    (void) bed_sleep(&b);
    bed_done(&b);
}


/* How long a list and a watch took, in us, and what they brought. */
static void
test_counts(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    b.io.now_ms += 1500;
    io_answer(&b.io, bed_x(&b), 200,
              LIST("7", "", FULL("a", "1") ",{" META("b", "2")
                   ",\"spec\":{\"ports\":[{\"port\":1},{\"port\":-1},"
                   "{\"port\":0},{}]}}"));
    assert_string_equal(drained(&b), "[ R:shop/a@1 R:shop/b@2 ]");
    assert_int_equal(observed(&b, KUBE_HISTOGRAM_LIST_DURATION).sum, 1500000);
    assert_int_equal(observed(&b, KUBE_HISTOGRAM_ITEMS_PER_LIST).sum, 2);
    assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_ENDPOINTS), 3);

    b.io.now_ms += 500;
    assert_true(io_head(bed_x(&b), 200, "application/json", 0));
    bed_process(&b);
    b.io.now_ms += 2500;
    assert_true(io_body(&b.io, bed_x(&b), EVENT("MODIFIED", FULL("a", "8"))
                                          EVENT("MODIFIED", FULL("a", "9"))));
    io_done(bed_x(&b), KUBE_OK, "");
    bed_process(&b);
    assert_int_equal(observed(&b, KUBE_HISTOGRAM_WATCH_DURATION).sum, 2500000);
    assert_int_equal(observed(&b, KUBE_HISTOGRAM_ITEMS_PER_WATCH).sum, 2);
    bed_done(&b);
}


/* The FIFO is full: the socket rests, nothing is lost, order is kept. */
static void
test_pause(void **state)
{
    bed_t           b;
    char            one[512], name[16];
    size_t          chunk, seen, n;
    unsigned        i, rounds;
    static char     text[IO_BODY_MAX];
    io_exchange_t  *x;
    kube_delta_t    d;

    (void) state;

    for (chunk = 0; chunk < 3000; chunk += 997) {

        bed_make(&b, NULL, "", 64);
        assert_non_null(b.r);
        b.io.chunk = chunk;
        bed_start(&b, "");
        x = bed_x(&b);

        n = (size_t) snprintf(text, sizeof(text), "{\"kind\":\"ServiceList\","
                              "\"metadata\":{\"resourceVersion\":\"900\"},"
                              "\"items\":[");

        for (i = 0; n < KUBE_TICK_BYTES + 20000; i++) {
            snprintf(one, sizeof(one), "%s{\"metadata\":{\"name\":\"s%u\","
                     "\"namespace\":\"shop\",\"uid\":\"u\","
                     "\"resourceVersion\":\"%u\"},\"spec\":{\"ports\":[{"
                     "\"port\":80}]}}", i ? "," : "", i, i + 1);
            n += (size_t) snprintf(text + n, sizeof(text) - n, "%s", one);
        }

        snprintf(text + n, sizeof(text) - n, "]}");

        /* what is not asked for rests, here and at the sender */
        assert_true(io_head(x, 200, "application/json", 0));
        assert_true(io_body(&b.io, x, text));
        assert_true(x->paused);
        assert_int_equal(kube_delta_fifo_depth(b.fifo), 0);

        seen = 0;

        for (rounds = 0; rounds < 200 && !bed_listed(&b); rounds++) {

            while (kube_delta_fifo_peek(b.fifo, &d) == KUBE_OK) {

                if (d.kind == KUBE_DELTA_REPLACED) {
                    snprintf(name, sizeof(name), "s%zu", seen++);
                    assert_int_equal(d.name.len, strlen(name));
                    assert_memory_equal(d.name.data, name, d.name.len);
                }

                kube_delta_fifo_drop(b.fifo);
            }

            /* time that passes while the FIFO is full is not the server's */
            b.io.now_ms += 2 * KUBE_LIST_MS;

            assert_int_equal(kube_reflector_deadline(b.r), 0);
            bed_process(&b);

            if (kube_delta_fifo_high(b.fifo)) {
                assert_true(kube_reflector_deadline(b.r) == KUBE_NEVER);
            }

            if (!x->live) {
                continue;
            }

            assert_true(io_deliver(&b.io, x));

            if (x->held_len == 0 && !x->paused) {
                io_done(x, KUBE_OK, "");
            }
        }

        assert_true(bed_listed(&b));
        assert_true(rounds > 5);
        assert_true(chunk == 0 || b.io.resumed >= 1);
        assert_string_equal(b.reason, "");
        assert_string_equal(drained(&b) + strlen(b.dump) - 1, "]");
        bed_done(&b);
    }
}


/* The server is done while we still pause. */
static void
test_end_while_paused(void **state)
{
    bed_t           b;
    unsigned        i;
    char            one[512];
    static char     text[8192];
    io_exchange_t  *x;

    (void) state;

    bed_make(&b, NULL, "", 4);
    assert_non_null(b.r);
    bed_watch(&b);
    x = bed_x(&b);
    b.io.now_ms += 2000;
    text[0] = '\0';

    for (i = 0; i < 10; i++) {
        snprintf(one, sizeof(one), "{\"type\":\"ADDED\",\"object\":{\"kind\":"
                 "\"Service\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                 "\"s%u\",\"namespace\":\"shop\",\"uid\":\"u\","
                 "\"resourceVersion\":\"%u\"},\"spec\":{\"ports\":[{\"port\":"
                 "80}]}}}\n", i, i + 10);
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", one);
    }

    assert_true(io_body(&b.io, x, text));
    io_done(x, KUBE_OK, "");
    bed_process(&b);
    assert_true(kube_delta_fifo_high(b.fifo));
    assert_int_equal(b.io.started, 1);

    /* nothing is timed meanwhile */
    b.io.now_ms += 3600000;
    bed_process(&b);
    assert_int_equal(b.io.started, 1);

    for (i = 0; i < 10 && b.io.started == 1; i++) {
        (void) drained(&b);
        bed_process(&b);
    }

    assert_int_equal(b.io.started, 2);
    assert_rv(&b, "19");
    assert_string_equal(b.reason, "");
    bed_done(&b);
}


/* Every allocation fails once, or from then on for a while. */

static void
oom_run(alloc_test_t *at, void *ctx)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *x;

    (void) ctx;

    bed_make(&b, &at->alloc, "", 1024);

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

        if (strstr(x->path, "watch") == NULL) {

            io_answer(&b.io, x, 200,
                      strstr(x->path, "continue")
                      ? LIST("9", "", SERVICE("echo", "2"))
                      : LIST("7", ",\"continue\":\"abc\"",
                             SERVICE("web", "3") "," SERVICE("api", "6")));
            bed_process(&b);
            continue;
        }

        b.io.chunk = 100;

        if (io_head(x, 200, "application/json", 0)) {
            (void) io_body(&b.io, x, strstr(x->path, "resourceVersion=10&")
                                     ? BOOKMARK("12")
                                     : EVENT("ADDED", FULL("new", "8"))
                                       EVENT("DELETED", FULL("api", "10"))
                                       BOOKMARK("12"));
        }

        bed_process(&b);

        if (kube_str_eq(kube_rv_str(kube_reflector_rv(b.r)),
                        KUBE_STR("12")))
        {
            break;
        }
    }

    assert_true(i < 60);
    assert_rv(&b, "12");
    assert_true(bed_listed(&b));
    assert_non_null(strstr(drained(&b), "]"));
    assert_non_null(strstr(b.dump, "U:shop/new@8"));
    assert_non_null(strstr(b.dump, "D:shop/api@10"));
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
        cmocka_unit_test(test_list_and_watch),
        cmocka_unit_test(test_every_split),
        cmocka_unit_test(test_watch_cut_off),
        cmocka_unit_test(test_list_cut_off),
        cmocka_unit_test(test_items_first),
        cmocka_unit_test(test_items_of_another_kind_first),
        cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_oversize_events),
        cmocka_unit_test(test_oversize_before_metadata),
        cmocka_unit_test(test_dense_object),
        cmocka_unit_test(test_turns_while_watching),
        cmocka_unit_test(test_turns_while_broken),
        cmocka_unit_test(test_place_in_a_pause),
        cmocka_unit_test(test_turns_of_another_list),
        cmocka_unit_test(test_turn_of_its_own),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_turn_is_lost),
        cmocka_unit_test(test_idle_and_slow),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_end_while_paused),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

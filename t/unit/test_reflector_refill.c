/*
 * test_reflector_refill - a list beside an open watch: what it gives, what it
 * leaves to the watch, and that nothing comes of one that fails.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_bed.h"

#include "kube_reflector_refill.c"


#define CONTINUE  ",\"continue\":\"token\""

#define BAD(name, rv)  "{" META(name, rv) ",\"spec\":[]}"

#define BEGUN(rv, items)                                                      \
    "{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\",\"metadata\":"           \
    "{\"resourceVersion\":\"" rv "\"},\"items\":[" items


/* Asks for a list beside the watch; the exchange of its first page. */
static io_exchange_t *
fill(bed_t *b)
{
    unsigned  started;

    started = b->io.started;
    b->beside = true;
    kube_reflector_fill(b->r, false, b->io.now_ms);
    bed_process(b);
    assert_int_equal(b->io.started, started + 1);

    return bed_x(b);
}


/* An exchange that is over may be another one by now. */
static bool
is_watched(const io_exchange_t *watch)
{
    return watch->live && strstr(watch->path, "watch=true") != NULL;
}


/* The next one is due by then, whatever became of the last. */
static void
pace(bed_t *b, io_exchange_t *watch)
{
    b->io.now_ms += KUBE_DEMAND_MAX_MS;
    assert_true(io_body(&b->io, watch, "\n"));
    bed_process(b);
}


/* The next one, whenever it may be asked for at the latest. */
static void
fill_again(bed_t *b, io_exchange_t *watch)
{
    kube_reflector_fill(b->r, false, b->io.now_ms);
    pace(b, watch);
}


/* Its version, and one item: more is to come, after the comma. */
static void
list_begins(bed_t *b, io_exchange_t *list)
{
    assert_true(io_head(list, 200, "application/json", 0));
    assert_true(io_body(&b->io, list, BEGUN("8", SERVICE("web", "3") ",")));
    assert_string_equal(drained(b), "{ U:shop/web@3");
}


/* A watch from 5, *watch, and a list beside it; its first page's exchange. */
static io_exchange_t *
fill_bed(bed_t *b, io_exchange_t **watch)
{
    io_exchange_t  *list;

    bed_init(b);
    bed_watch(b);
    *watch = bed_x(b);
    list = fill(b);

    assert_true((*watch)->live);
    assert_non_null(strstr(list->path, "resourceVersion=5&"));
    assert_non_null(strstr(list->path, "resourceVersionMatch=NotOlderThan"));
    assert_non_null(strstr(list->path, "limit=2"));
    assert_null(strstr(list->path, "watch=true"));

    return list;
}


/* The FIFO's words, and the watch goes on as it was. */
#define FILLED(b, watch, words)                                               \
    do {                                                                      \
        assert_string_equal(drained(b), words);                               \
        assert_true(is_watched(watch));                                       \
        assert_false((b)->turn.holder == 2);                                  \
    } while (0)


static void
test_pages(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    assert_int_equal(b.turn.holder, 2);
    io_answer(&b.io, list, 200,
              LIST("7", CONTINUE, SERVICE("web", "3") "," SERVICE("api", "4")));
    bed_process(&b);

    list = bed_x(&b);
    assert_ptr_not_equal(list, watch);
    assert_non_null(strstr(list->path, "continue=token"));
    assert_null(strstr(list->path, "resourceVersion="));
    io_answer(&b.io, list, 200, LIST("7", "", SERVICE("old", "2")));

    FILLED(&b, watch, "{ U:shop/web@3 U:shop/api@4 U:shop/old@2 }");
    assert_rv(&b, "5");
    assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS_ROOM), 1);
    assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS), 1);
    assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 1);
    assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_STATE),
                     KUBE_STATE_WATCHING);
    assert_true(bed_listed(&b));

    /* no other before its time, and one then */

    kube_reflector_fill(b.r, false, b.io.now_ms);
    bed_process(&b);
    assert_int_equal(b.io.started, 3);
    pace(&b, watch);
    assert_int_equal(b.io.started, 4);

    bed_done(&b);
}


/* Each begins anew: nothing of the pages of the one before is left to it. */
static void
test_begins_anew(void **state)
{
    bed_t             b;
    io_exchange_t    *list, *watch;
    kube_histogram_t  items;

    (void) state;

    list = fill_bed(&b, &watch);
    io_answer(&b.io, list, 200, LIST("7", CONTINUE, SERVICE("web", "3")));
    bed_process(&b);
    list = bed_x(&b);
    assert_null(strstr(list->path, "resourceVersionMatch="));
    b.io.now_ms += 1500;
    io_answer(&b.io, list, 200, LIST("7", "", SERVICE("api", "4")));
    FILLED(&b, watch, "{ U:shop/web@3 U:shop/api@4 }");

    items = observed(&b, KUBE_HISTOGRAM_ITEMS_PER_LIST);
    assert_int_equal(items.count, 1);
    assert_int_equal(items.sum, 2);
    assert_int_equal(observed(&b, KUBE_HISTOGRAM_LIST_DURATION).sum, 1500000);

    fill_again(&b, watch);
    list = bed_x(&b);
    assert_null(strstr(list->path, "continue="));
    assert_non_null(strstr(list->path, "resourceVersion=5&"));
    assert_non_null(strstr(list->path, "resourceVersionMatch=NotOlderThan"));

    /* the same name in another namespace is another key */

    assert_true(io_body(&b.io, watch, EVENT("DELETED", FULL("web", "6"))));
    assert_string_equal(drained(&b), "{ D:shop/web@6");
    io_answer(&b.io, list, 200,
              LIST("7", "",
                   SERVICE("web", "3") ","
                   "{\"metadata\":{\"name\":\"web\",\"namespace\":\"pay\","
                   "\"uid\":\"u\",\"resourceVersion\":\"3\"},"
                   "\"spec\":{\"ports\":[{\"port\":1}]}}"));
    FILLED(&b, watch, "U:pay/web@3 }");

    items = observed(&b, KUBE_HISTOGRAM_ITEMS_PER_LIST);
    assert_int_equal(items.count, 2);
    assert_int_equal(items.sum, 4);

    bed_done(&b);
}


/*
 * A watch that was resumed behind what readers have seen: the list is not older
 * than that, and of it only what the watch has come to is taken.
 */
static void
test_floor(void **state)
{
    bed_t           b;
    kube_rv_t       rv;
    io_exchange_t  *list, *watch;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    watch = bed_x(&b);
    assert_int_equal(kube_rv_parse(kube_str("9"), &rv), KUBE_OK);
    kube_reflector_not_older(b.r, &rv);

    list = fill(&b);
    assert_non_null(strstr(list->path, "resourceVersion=9&"));
    io_answer(&b.io, list, 200,
              LIST("9", "", SERVICE("web", "3") "," SERVICE("api", "8")));
    FILLED(&b, watch, "{ U:shop/web@3 }");

    fill_again(&b, watch);
    io_answer(&b.io, bed_x(&b), 200, LIST("8", "", SERVICE("web", "3")));
    FILLED(&b, watch, "{ !");

    bed_done(&b);
}


/* What the watch speaks of meanwhile is the watch's. */
static void
test_watch_goes_on(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    list_begins(&b, list);

    /* one that was deleted, which the server had listed before that */

    assert_true(io_body(&b.io, watch, EVENT("DELETED", FULL("gone", "6"))
                                      EVENT("MODIFIED", FULL("api", "7"))));
    assert_string_equal(drained(&b), "D:shop/gone@6 U:shop/api@7");
    assert_rv(&b, "7");

    assert_true(io_body(&b.io, list, SERVICE("gone", "4") ","
                                     SERVICE("api", "4") ","
                                     SERVICE("new", "8") ","
                                     SERVICE("lacks", "2") "]}"));
    io_done(list, KUBE_OK, "");
    FILLED(&b, watch, "U:shop/lacks@2 }");

    assert_true(io_body(&b.io, watch, EVENT("ADDED", FULL("new", "8"))));
    FILLED(&b, watch, "U:shop/new@8");

    /* what was said before another one was asked for is nothing to that */

    fill_again(&b, watch);
    io_answer(&b.io, bed_x(&b), 200, LIST("8", "", SERVICE("api", "7")));
    FILLED(&b, watch, "{ U:shop/api@7 }");

    bed_done(&b);
}


/*
 * One that cannot be held comes with its name, which the list may be for, by
 * the same rules; one without a version, too, one without a name does not.
 */
static void
test_refused(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    list_begins(&b, list);
    assert_true(io_body(&b.io, watch, EVENT("DELETED", FULL("gone", "6"))));
    assert_string_equal(drained(&b), "D:shop/gone@6");

    assert_true(io_body(&b.io, list, BAD("old", "3") ","
                                     BAD("gone", "4") ","
                                     BAD("new", "8") ","
                                     BAD("UP", "3") ","
                                     SERVICE("norv", "") "]}"));
    io_done(list, KUBE_OK, "");
    FILLED(&b, watch, "X:shop/old(malformed) X:shop/norv(malformed) }");
    assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_MALFORMED), 2);

    bed_done(&b);
}


/* A list that is of no use ends; the watch does not. */
static void
test_fails(void **state)
{
    bed_t           b;
    size_t          i;
    io_exchange_t  *list, *watch;

    static const struct {
        int             code;
        const char     *body;       /* NULL: no answer */
        const char     *words;
        bool            replace;    /* the next one closes the watch */
        kube_counter_t  counter;    /* KUBE_COUNTERS: none */
    } answers[] = {
        { 200, LIST("4", "", SERVICE("web", "3")), "{ !", false,
          KUBE_COUNTERS },
        { 200, LIST("", "", SERVICE("web", "3")), "{ !", false,
          KUBE_COUNTERS },
        { 200, "{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\",\"items\":["
               SERVICE("web", "3") "],\"metadata\":{\"resourceVersion\":\"7\"}"
               "}", "{ !", true, KUBE_COUNTERS },
        { 200, "{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\",\"items\":[]}",
          "{ !", false, KUBE_COUNTERS },
        { 200, "no list at all", "{ !", false, KUBE_COUNTER_ERRORS_PROTOCOL },
        { 410, STATUS(410, "Expired", ""), "{ !", false,
          KUBE_COUNTER_ERRORS_EXPIRED },
        { 504, STATUS(504, "Timeout", "\"details\":{\"causes\":[{\"reason\":"
                      "\"ResourceVersionTooLarge\"}]},"), "{ !", true,
          KUBE_COUNTER_ERRORS_TOO_LARGE_RV },
        { 401, STATUS(401, "Unauthorized", ""), "{ !", false,
          KUBE_COUNTER_ERRORS_UNAUTHORIZED },
        { 503, "", "{ !", false, KUBE_COUNTER_ERRORS_UNAVAILABLE },
        { 0, NULL, "{ !", false, KUBE_COUNTER_ERRORS_CLOSED },
    };

    (void) state;

    for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        list = fill_bed(&b, &watch);

        if (answers[i].body == NULL) {
            io_done(list, KUBE_CLOSED, "gone");

        } else {
            io_answer(&b.io, list, answers[i].code, answers[i].body);
        }

        FILLED(&b, watch, answers[i].words);
        assert_int_equal(b.io.started, 2);
        assert_int_equal(b.io.credentials, answers[i].code == 401);

        if (answers[i].counter != KUBE_COUNTERS) {
            assert_int_equal(counted(&b, answers[i].counter), 1);
        }

        fill_again(&b, watch);
        assert_int_equal(b.io.started, 3);
        assert_int_equal(is_watched(watch), !answers[i].replace);
        bed_done(&b);
    }
}


/*
 * Pages that have no end are given up as of a list, which would have none
 * either: the next one goes beside the watch as well.
 */
static void
test_pages_without_end(void **state)
{
    bed_t           b;
    char            body[1024], token[16];
    size_t          i;
    unsigned        n;
    io_exchange_t  *watch;

    static const struct {
        unsigned     pages;     /* before the first one */
        const char  *items;
        unsigned     circle;    /* of so many tokens; 0: none comes again */
        unsigned     taken;     /* pages; the next one is too much */
    } servers[] = {
        { KUBE_PAGES_MAX - 40, SERVICE("web", "3"), 0, 39 },
        { 0, SERVICE("web", "3"), 1, 1 },
        { 0, SERVICE("web", "3"), 3, 7 },
        { 0, "", 1, 1 },
        { 0, "", 0, KUBE_EMPTY_PAGES_MAX }
    };

    (void) state;

    for (i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
        (void) fill_bed(&b, &watch);

        b.r->refill.pages = servers[i].pages;

        for (n = 0; n <= servers[i].taken; n++) {
            assert_int_equal(b.io.started, 2 + n);
            (void) snprintf(token, sizeof(token), "t%u",
                            servers[i].circle ? n % servers[i].circle : n);
            (void) snprintf(body, sizeof(body),
                            LIST("7", ",\"continue\":\"%s\"", "%s"), token,
                            servers[i].items);
            io_answer(&b.io, bed_x(&b), 200, body);
            bed_process(&b);
        }

        assert_int_equal(b.io.started, 2 + servers[i].taken);
        assert_non_null(strstr(drained(&b), "!"));
        assert_true(is_watched(watch));

        fill_again(&b, watch);
        assert_true(is_watched(watch));
        assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=5&"));
        bed_done(&b);
    }
}


/* A token that has expired is the list's to mend, which replaces. */
static void
test_token_expired(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    io_answer(&b.io, list, 200, LIST("7", CONTINUE, SERVICE("web", "3")));
    assert_string_equal(drained(&b), "{ U:shop/web@3");
    io_answer(&b.io, bed_x(&b), 410, STATUS(410, "Expired", ""));
    FILLED(&b, watch, "!");

    fill_again(&b, watch);
    assert_false(is_watched(watch));
    io_answer(&b.io, bed_x(&b), 200, LIST("9", "", SERVICE("web", "3")));
    assert_string_equal(drained(&b), "[ R:shop/web@3 ]");

    /* that has replaced once: the next one need not */

    watch = bed_x(&b);
    assert_true(io_head(watch, 200, "application/json", 0));
    bed_process(&b);
    fill_again(&b, watch);
    assert_ptr_not_equal(bed_x(&b), watch);
    assert_true(is_watched(watch));

    bed_done(&b);
}


/* A list that closes the watch for it waits for no other without one. */
static void
test_list_beside_others(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *list, *watch;

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_init(&b);
        bed_watch(&b);
        watch = bed_x(&b);
        list = NULL;

        /* one beside the watch has the turn, or waits for it */

        if (i == 0) {
            list = fill(&b);
            assert_false(kube_list_turn_take(&b.turn, 4, b.io.now_ms));

        } else {
            assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
            b.beside = true;
            kube_reflector_fill(b.r, false, b.io.now_ms);
            bed_process(&b);
            assert_int_equal(b.io.started, 1);
            assert_int_equal(b.turn.waiting_n, 1);
        }

        b.io.now_ms += KUBE_URGENT_FIRST_MS;
        bed_process(&b);
        kube_reflector_relist(b.r, KUBE_RELIST_OTHER, true, b.io.now_ms);
        bed_process(&b);

        if (i == 0) {
            assert_false(list->live);

        } else {
            assert_true(is_watched(watch));
            assert_int_equal(b.turn.waiting_n, 1);
            assert_false(kube_list_turn_take(&b.turn, 6, b.io.now_ms));
            kube_list_turn_give(&b.turn, 4);
            b.io.now_ms += 1000;
            kube_reflector_relist(b.r, KUBE_RELIST_OTHER, true, b.io.now_ms);
            bed_process(&b);
        }

        /* it begins, with the turn or the place of the other one */

        assert_int_equal(b.turn.holder, 2);
        assert_true(b.turn.progress_ms == b.io.now_ms);
        assert_false(is_watched(watch));
        assert_null(strstr(bed_x(&b)->path, "watch=true"));
        io_answer(&b.io, bed_x(&b), 200, LIST("9", "", SERVICE("web", "3")));
        assert_string_equal(drained(&b), i ? "[ R:shop/web@3 ]"
                                           : "{ ! [ R:shop/web@3 ]");
        assert_int_not_equal(b.turn.holder, 2);
        assert_int_equal(b.turn.waiting_n, 1);
        bed_done(&b);
    }
}


/* One that replaces is due, while others list, as room is told of. */
static void
test_due_beside_others(void **state)
{
    bed_t           b;
    io_exchange_t  *watch;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    watch = bed_x(&b);
    b.beside = true;

    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
    kube_reflector_relist(b.r, KUBE_RELIST_OTHER, true, b.io.now_ms);
    bed_process(&b);
    b.io.now_ms += 1000;
    kube_reflector_fill(b.r, true, b.io.now_ms);
    bed_process(&b);
    assert_true(is_watched(watch));
    assert_int_equal(b.turn.waiting_n, 1);

    kube_list_turn_give(&b.turn, 4);
    bed_process(&b);
    assert_false(is_watched(watch));
    assert_int_equal(b.turn.holder, 2);

    bed_done(&b);
}


/* One that waits is replaced by the list after 410: that has its place. */
static void
test_place_of_one_that_waits(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    b.beside = true;

    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
    kube_reflector_fill(b.r, true, b.io.now_ms);
    bed_process(&b);
    assert_false(kube_list_turn_take(&b.turn, 6, b.io.now_ms));
    assert_int_equal(b.turn.waiting[0], 2);

    io_body(&b.io, bed_x(&b), EVENT("ERROR", STATUS(410, "Expired", "")));
    bed_process(&b);
    assert_int_equal(b.turn.waiting_n, 2);
    assert_int_equal(b.turn.waiting[0], 2);

    /* nobody keeps it for a scope that is stopped */

    kube_reflector_stop(b.r, b.io.now_ms);
    assert_int_equal(b.turn.waiting_n, 1);
    bed_done(&b);
}


/*
 * A list beside the watch that lost its turn to scope 4, and another list in
 * line for it, before scope 6.
 */
static io_exchange_t *
fill_and_line(bed_t *b, io_exchange_t **watch)
{
    io_exchange_t  *list;

    list = fill_bed(b, watch);

    b->io.now_ms += 2 * KUBE_LIST_TURN_MS;
    assert_true(kube_list_turn_take(&b->turn, 4, b->io.now_ms));
    kube_reflector_relist(b->r, KUBE_RELIST_OTHER, true, b->io.now_ms);
    assert_false(kube_list_turn_take(&b->turn, 6, b->io.now_ms));
    assert_int_equal(b->turn.waiting[0], 2);

    return list;
}


/* One that lost its turn ends, or its page: a list in line keeps its place. */
static void
test_place_as_one_ends(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *list, *watch;

    static const struct {
        int          code;
        const char  *body;
    } ends[] = {
        { 200, LIST("9", "", "") },
        { 200, LIST("9", ",\"continue\":\"abc\"", "") },
        { 500, STATUS(500, "InternalError", "") }
    };

    (void) state;

    for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        list = fill_and_line(&b, &watch);

        io_answer(&b.io, list, ends[i].code, ends[i].body);
        bed_process(&b);
        assert_true(is_watched(watch));
        assert_int_equal(b.turn.waiting[0], 2);
        assert_int_equal(b.turn.waiting_n, 2);

        kube_list_turn_give(&b.turn, 4);
        bed_process(&b);
        assert_int_equal(b.turn.holder, 2);
        assert_false(is_watched(watch));
        bed_done(&b);
    }
}


/* It is refused, and the list in line is put off by it: who waits goes on. */
static void
test_place_of_one_put_off(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_and_line(&b, &watch);

    assert_true(io_head(list, 429, "application/json", 120));
    assert_true(io_body(&b.io, list, STATUS(429, "TooManyRequests", "")));
    io_done(list, KUBE_OK, "");
    bed_process(&b);
    assert_true(is_watched(watch));
    assert_int_equal(b.turn.waiting_n, 1);
    assert_int_equal(b.turn.waiting[0], 6);
    bed_done(&b);
}


/* Two pasts: the list that replaces them waits in line, as each does. */
static void
test_plainly_beside_others(void **state)
{
    bed_t           b;
    io_exchange_t  *watch;

    (void) state;

    bed_init(&b);
    bed_watch(&b);

    kube_reflector_relist_plainly(b.r, b.io.now_ms);
    bed_process(&b);
    io_answer(&b.io, bed_x(&b), 200, LIST("9", "", SERVICE("web", "3")));
    bed_process(&b);
    watch = bed_x(&b);
    assert_true(io_head(watch, 200, "application/json", 0));
    bed_process(&b);

    /* another one, by its pace */

    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
    assert_false(kube_list_turn_take(&b.turn, 6, b.io.now_ms));
    kube_reflector_relist_plainly(b.r, b.io.now_ms);
    bed_process(&b);
    assert_true(is_watched(watch));
    b.io.now_ms += KUBE_URGENT_MAX_MS;
    bed_process(&b);
    assert_int_equal(b.turn.waiting_n, 2);
    assert_int_equal(b.turn.waiting[1], 2);
    assert_true(is_watched(watch));

    bed_done(&b);
}


/* One that lost its turn is whole: a watch follows, before the next list. */
static void
test_due_as_list_ends(void **state)
{
    bed_t           b;
    io_exchange_t  *watch;

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    assert_int_equal(b.turn.holder, 2);
    kube_reflector_relist(b.r, KUBE_RELIST_OTHER, true, b.io.now_ms);

    b.io.now_ms += KUBE_LIST_TURN_MS;
    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
    io_answer(&b.io, bed_x(&b), 200, LIST("9", "", SERVICE("web", "3")));
    bed_process(&b);
    watch = bed_x(&b);
    assert_true(is_watched(watch));
    assert_int_equal(b.turn.waiting_n, 1);

    assert_true(io_head(watch, 200, "application/json", 0));
    bed_process(&b);
    assert_true(is_watched(watch));

    kube_list_turn_give(&b.turn, 4);
    bed_process(&b);
    assert_false(is_watched(watch));
    assert_int_equal(b.turn.holder, 2);

    bed_done(&b);
}


/* One that moves on, if slowly, keeps its time, and its turn for a while. */
static void
test_slow(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    assert_true(io_head(list, 200, "application/json", 0));
    assert_true(io_body(&b.io, list, BEGUN("8", "")));
    assert_string_equal(drained(&b), "{");

    for (i = 0; i * KUBE_LIST_TURN_MS <= KUBE_LIST_MS; i++) {
        b.io.now_ms += KUBE_LIST_TURN_MS - 1;
        assert_true(io_body(&b.io, list, SERVICE("web", "3") ","));
        assert_true(kube_reflector_deadline(b.r) <= b.io.now_ms);
        assert_true(io_body(&b.io, watch, "\n"));
        assert_string_equal(drained(&b), "U:shop/web@3");
        b.io.now_ms++;
        assert_int_equal(kube_list_turn_take(&b.turn, 4, b.io.now_ms),
                         (i + 1) * KUBE_LIST_TURN_MS >= KUBE_LIST_TURN_MAX_MS);
    }

    assert_true(io_body(&b.io, list, SERVICE("api", "3") "]}"));
    io_done(list, KUBE_OK, "");
    FILLED(&b, watch, "U:shop/api@3 }");
    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));

    bed_done(&b);
}


/* Items are progress, bytes are none: others would wait for ever. */
static void
test_drips(void **state)
{
    bed_t           b;
    unsigned        i;
    uint64_t        began_ms;
    io_exchange_t  *list, *watch;

    (void) state;

    for (i = 0; i < 2; i++) {
        list = fill_bed(&b, &watch);
        list_begins(&b, list);
        began_ms = b.io.now_ms;

        /* within an item, and between two */

        assert_true(io_body(&b.io, list, i ? "{\"metadata\":{" : " "));
        bed_process(&b);

        while (list->live && b.io.now_ms - began_ms < 2 * KUBE_LIST_MS) {
            b.io.now_ms += 1000;
            assert_true(io_body(&b.io, watch, "\n"));
            assert_true(io_body(&b.io, list, " "));
            bed_process(&b);

            if (b.io.now_ms - began_ms == KUBE_LIST_TURN_MS) {
                assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
            }
        }

        assert_int_equal(b.io.now_ms - began_ms, KUBE_LIST_MS);
        FILLED(&b, watch, "!");
        assert_false(list->live);
        bed_done(&b);
    }
}


/* It waits for whoever empties the FIFO, which is not the server's silence. */
static void
test_fifo_full(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    bed_make(&b, NULL, "", 4);
    assert_non_null(b.r);
    bed_watch(&b);
    watch = bed_x(&b);
    list = fill(&b);
    io_answer(&b.io, list, 200,
              LIST("8", "", SERVICE("s1", "1") "," SERVICE("s2", "2") ","
                            SERVICE("s3", "3") "," SERVICE("s4", "4") ","
                            SERVICE("s5", "5")));
    bed_process(&b);
    b.io.now_ms += KUBE_LIST_MS + 1;
    assert_true(io_body(&b.io, watch, "\n"));
    bed_process(&b);

    assert_string_equal(drained(&b), "{ U:shop/s1@1 U:shop/s2@2 U:shop/s3@3");
    FILLED(&b, watch, "U:shop/s4@4 U:shop/s5@5 }");

    bed_done(&b);
}


/* Its end is owed while memory is short, and goes before the next mark. */
static void
test_end_is_owed(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    assert_string_equal(drained(&b), "{");
    io_done(list, KUBE_CLOSED, "gone");
    b.own.fail_at = b.own.calls + 1;
    b.own.fail_from = true;
    bed_process(&b);
    assert_true(kube_reflector_deadline(b.r) <= b.io.now_ms + 1000);

    /* the next one is due; one more failure, and then there is memory */

    b.own.fail_at = 0;
    b.own.fail_from = false;
    b.io.now_ms += KUBE_DEMAND_MAX_MS;
    assert_true(io_body(&b.io, watch, "\n"));
    kube_reflector_fill(b.r, false, b.io.now_ms);
    b.own.fail_at = b.own.calls + 1;
    bed_process(&b);
    assert_true(b.own.failed);
    bed_process(&b);
    assert_string_equal(drained(&b), "! {");
    assert_true(is_watched(watch));

    bed_done(&b);
}


/* Haste is the owner's to ask for. */
static void
test_urgent(void **state)
{
    bed_t           b;
    uint64_t        later_ms;
    unsigned        i;
    io_exchange_t  *watch;

    (void) state;

    (void) fill_bed(&b, &watch);

    for (i = 0; i < 4; i++) {
        io_answer(&b.io, bed_x(&b), 200, LIST("7", "", SERVICE("web", "3")));
        FILLED(&b, watch, "{ U:shop/web@3 }");
        kube_reflector_fill(b.r, false, b.io.now_ms);
        later_ms = kube_reflector_deadline(b.r);

        if (later_ms > b.io.now_ms + KUBE_DEMAND_FIRST_MS) {
            break;
        }

        b.io.now_ms = later_ms;
        assert_true(io_body(&b.io, watch, "\n"));
        bed_process(&b);
    }

    kube_reflector_fill(b.r, true, b.io.now_ms);
    assert_true(kube_reflector_deadline(b.r) < later_ms);

    bed_done(&b);
}


/*
 * Retry-After is a floor of the next one, in haste or not, and of any list,
 * also where the refusal does not end.
 */
static void
test_retry_after(void **state)
{
    bed_t           b;
    unsigned        i;
    uint64_t        refused_ms;
    io_exchange_t  *list, *watch;

    (void) state;

    for (i = 0; i < 3; i++) {
        list = fill_bed(&b, &watch);
        assert_true(io_head(list, i ? 503 : 429, "application/json", 120));

        if (i < 2) {
            assert_true(io_body(&b.io, list,
                                i ? STATUS(503, "ServiceUnavailable", "")
                                  : STATUS(429, "TooManyRequests", "")));
            io_done(list, KUBE_OK, "");

        } else {
            assert_true(io_body(&b.io, watch, "\n"));
            bed_process(&b);
            b.io.now_ms += KUBE_LIST_MS;
            assert_true(io_body(&b.io, watch, "\n"));
        }

        FILLED(&b, watch, "{ !");
        assert_false(list->live);
        refused_ms = b.io.now_ms;

        kube_reflector_fill(b.r, true, b.io.now_ms);
        bed_process(&b);

        if (i == 1) {
            assert_true(io_body(&b.io, watch,
                                EVENT("ERROR", STATUS(410, "Expired", ""))));
            bed_process(&b);
        }

        while (b.io.started < 3 && b.io.now_ms - refused_ms < 600000) {
            b.io.now_ms += 500;

            if (is_watched(watch)) {
                assert_true(io_body(&b.io, watch, "\n"));
            }

            bed_process(&b);
        }

        assert_int_equal(b.io.started, 3);
        assert_in_range(b.io.now_ms - refused_ms, 120000, 181000);
        assert_int_equal(is_watched(watch), i != 1);
        bed_done(&b);
    }
}


/* Memory is missing for a key: the next one is beside the watch again. */
static void
test_no_memory_for_a_key(void **state)
{
    bed_t           b;
    size_t          n, broken;
    const char     *words;
    io_exchange_t  *list, *watch;

    (void) state;
    broken = 0;

    for (n = 1; n < 20; n++) {
        list = fill_bed(&b, &watch);
        assert_string_equal(drained(&b), "{");
        b.own.fail_at = b.own.calls + n;
        (void) io_body(&b.io, watch, EVENT("DELETED", FULL("gone", "6")));
        words = drained(&b);
        b.own.fail_at = 0;

        if (strchr(words, '!') != NULL && is_watched(watch)) {
            broken++;
            assert_false(list->live);
            fill_again(&b, watch);
            assert_true(is_watched(watch));
        }

        bed_done(&b);
    }

    assert_int_not_equal(broken, 0);
}


/* No answer for a minute; the watch's bytes are no progress of the list. */
static void
test_silent(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    list_begins(&b, list);
    assert_true(kube_reflector_deadline(b.r)
                <= b.io.now_ms + KUBE_LIST_MS);

    b.io.now_ms += KUBE_LIST_TURN_MS;
    assert_true(io_body(&b.io, watch, EVENT("ADDED", FULL("new", "8"))));
    assert_string_equal(drained(&b), "U:shop/new@8");

    /* its turn is lost to one that waits: it has made no progress */

    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms)
                || kube_list_turn_deadline(&b.turn, 4) <= b.io.now_ms);

    b.io.now_ms += KUBE_LIST_MS - KUBE_LIST_TURN_MS - 1;
    assert_true(io_body(&b.io, watch, BOOKMARK("9")));
    assert_string_equal(drained(&b), "");
    assert_true(list->live);

    b.io.now_ms++;
    FILLED(&b, watch, "!");
    assert_false(list->live);

    bed_done(&b);
}


/* An event without a key may have been of anything that the list shows. */
static void
test_unreadable(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    watch = bed_x(&b);

    /* the second time it is passed over */

    assert_true(io_body(&b.io, watch, EVENT("ADDED", "7")));
    bed_process(&b);
    (void) bed_sleep(&b);
    watch = bed_x(&b);
    assert_true(io_head(watch, 200, "application/json", 0));
    bed_process(&b);

    list = fill(&b);
    list_begins(&b, list);
    assert_true(io_body(&b.io, watch, EVENT("ADDED", "7")));
    FILLED(&b, watch, "!");
    assert_false(list->live);

    bed_done(&b);
}


/* A list that replaces takes its place; a watch opened anew does not. */
static void
test_watch_ends(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    b.io.now_ms += 2000;
    io_done(watch, KUBE_OK, "");
    bed_process(&b);
    assert_true(list->live);
    watch = bed_x(&b);
    assert_non_null(strstr(watch->path, "watch=true"));
    assert_true(io_head(watch, 200, "application/json", 0));
    list_begins(&b, list);

    assert_true(io_body(&b.io, watch,
                        EVENT("ERROR", STATUS(410, "Expired", ""))));
    assert_string_equal(drained(&b), "!");
    assert_false(list->live);
    assert_int_equal(b.io.verdicts[KUBE_SERVER_BAD], 0);
    assert_false(is_watched(watch));
    io_answer(&b.io, bed_x(&b), 200, LIST("9", "", SERVICE("web", "3")));
    assert_string_equal(drained(&b), "[ R:shop/web@3 ]");

    /* stopped in the middle of one */

    watch = bed_x(&b);
    assert_true(io_head(watch, 200, "application/json", 0));
    bed_process(&b);
    fill_again(&b, watch);
    list = bed_x(&b);
    assert_ptr_not_equal(list, watch);
    kube_reflector_stop(b.r, b.io.now_ms);
    assert_false(list->live);
    assert_false(is_watched(watch));

    bed_done(&b);
}


/* A WatchList that replaces ends it as a list does; so does the end of all. */
static void
test_watch_list(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    bed_make_for(&b, NULL, "", 1024, KUBE_WATCH_LIST_ON);
    assert_non_null(b.r);
    bed_watch(&b);
    watch = bed_x(&b);
    list = fill(&b);
    assert_string_equal(drained(&b), "{");
    assert_true(io_body(&b.io, watch,
                        EVENT("ERROR", STATUS(410, "Expired", ""))));
    bed_process(&b);
    assert_false(list->live);
    assert_non_null(strstr(bed_x(&b)->path, "sendInitialEvents"));
    assert_int_equal(strncmp(drained(&b), "!", 1), 0);
    bed_done(&b);

    /* destroyed in the middle of one: nobody reads what it would say */

    (void) fill_bed(&b, &watch);
    assert_string_equal(drained(&b), "{");
    kube_reflector_destroy(b.r);
    b.r = NULL;
    assert_int_equal(kube_delta_fifo_depth(b.fifo), 0);
    bed_done(&b);
}


/*
 * A watch that is not granted yet: its server may be of another past, and so
 * may what is listed beside.
 */
static void
test_watch_not_granted(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    b.io.now_ms += 2000;
    io_done(watch, KUBE_OK, "");
    bed_process(&b);
    watch = bed_x(&b);
    assert_true(io_head(list, 200, "application/json", 0));
    assert_true(io_body(&b.io, list, BEGUN("8", SERVICE("web", "3"))));
    assert_string_equal(drained(&b), "{");
    assert_int_not_equal(kube_reflector_deadline(b.r), 0);

    io_answer(&b.io, watch, 410, STATUS(410, "Expired", ""));
    assert_string_equal(drained(&b), "!");
    assert_false(list->live);

    bed_done(&b);

    /* or it is mixed with ours already, and is to be replaced */

    list = fill_bed(&b, &watch);
    kube_reflector_relist_plainly(b.r, b.io.now_ms);
    assert_false(list->live);
    assert_string_equal(drained(&b), "{ !");

    bed_done(&b);
}


/* It waits for its turn, and is of where the watch is by then. */
static void
test_turn(void **state)
{
    bed_t           b;
    io_exchange_t  *watch;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    watch = bed_x(&b);
    b.beside = true;

    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
    kube_reflector_fill(b.r, false, b.io.now_ms);
    bed_process(&b);
    assert_int_equal(b.io.started, 1);
    assert_int_equal(kube_reflector_deadline(b.r),
                     b.io.now_ms + KUBE_LIST_TURN_MS);

    assert_true(io_body(&b.io, watch, EVENT("DELETED", FULL("gone", "6"))));
    assert_string_equal(drained(&b), "D:shop/gone@6");

    kube_list_turn_give(&b.turn, 4);
    assert_int_equal(kube_reflector_deadline(b.r), 0);
    bed_process(&b);
    assert_int_equal(b.io.started, 2);
    assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=6&"));

    bed_done(&b);

    /* ended while it waits: it is in nobody's way any more */

    bed_init(&b);
    bed_watch(&b);
    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
    kube_reflector_fill(b.r, false, b.io.now_ms);
    bed_process(&b);
    assert_false(kube_list_turn_take(&b.turn, 6, b.io.now_ms));
    kube_reflector_stop(b.r, b.io.now_ms);
    kube_list_turn_give(&b.turn, 4);
    assert_true(kube_list_turn_take(&b.turn, 6, b.io.now_ms));

    bed_done(&b);
}


/* A list that waits goes between two pages: it may be what others wait for. */
static void
test_turn_between_pages(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    assert_false(kube_list_turn_take(&b.turn, 4, b.io.now_ms));
    io_answer(&b.io, list, 200, LIST("7", CONTINUE, SERVICE("web", "3")));
    bed_process(&b);
    assert_int_equal(b.io.started, 2);
    assert_true(kube_list_turn_take(&b.turn, 4, b.io.now_ms));

    /* what the watch tells meanwhile is the watch's still, and no timer runs */
    assert_true(io_body(&b.io, watch, EVENT("DELETED", FULL("gone", "6"))));
    bed_process(&b);
    b.io.now_ms += KUBE_LIST_TURN_MS - 1;
    kube_list_turn_progress(&b.turn, 4, b.io.now_ms);
    bed_process(&b);
    assert_int_equal(b.io.started, 2);

    kube_list_turn_give(&b.turn, 4);
    assert_int_equal(kube_reflector_deadline(b.r), 0);
    bed_process(&b);
    assert_int_equal(b.io.started, 3);
    assert_int_equal(b.turn.holder, 2);
    list = bed_x(&b);
    assert_non_null(strstr(list->path, "continue=token"));
    io_answer(&b.io, list, 200,
              LIST("7", "", SERVICE("gone", "2") "," SERVICE("old", "2")));
    FILLED(&b, watch, "{ U:shop/web@3 D:shop/gone@6 U:shop/old@2 }");
    assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS_ROOM), 1);

    bed_done(&b);
}


/* More keys than are remembered: the next one is a list that replaces. */
static void
test_too_many_keys(void **state)
{
    bed_t           b;
    char            event[512];
    unsigned        n;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);

    for (n = 0; list->live && n < 70000; n++) {
        (void) snprintf(event, sizeof(event),
                        "{\"type\":\"DELETED\",\"object\":{"
                        "\"kind\":\"Service\","
                        "\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"n%u\","
                        "\"namespace\":\"shop\",\"uid\":\"u\","
                        "\"resourceVersion\":\"%u\"}}}\n", n, 6 + n);
        assert_true(io_body(&b.io, watch, event));

        if (n % 512 == 0) {
            (void) drained(&b);
        }

        bed_process(&b);

        while (kube_delta_fifo_depth(b.fifo) > 256) {
            kube_delta_t  d;

            assert_int_equal(kube_delta_fifo_peek(b.fifo, &d), KUBE_OK);
            kube_delta_fifo_drop(b.fifo);
        }
    }

    assert_in_range(n, 65536, 65600);
    (void) drained(&b);
    fill_again(&b, watch);
    assert_false(is_watched(watch));

    bed_done(&b);
}


/* Memory is missing somewhere: the watch goes on, and no mark is lost. */
static void
refill_oom(alloc_test_t *at, void *ctx)
{
    bool            told, open, brought;
    bed_t           b;
    unsigned        i, started;
    const char     *words;
    io_exchange_t  *list, *watch;

    (void) ctx;
    told = false;
    brought = false;
    open = false;

    bed_make(&b, &at->alloc, "", 1024);

    if (b.r == NULL) {
        bed_done(&b);
        return;
    }

    bed_start(&b, "5");
    watch = io_find(&b.io, "watch=true");

    if (watch != NULL) {
        assert_true(io_head(watch, 200, "application/json", 0));
        bed_process(&b);
        b.beside = true;
        kube_reflector_fill(b.r, false, b.io.now_ms);
        bed_process(&b);
        list = io_find(&b.io, "limit=2");

        if (list != NULL) {
            (void) io_body(&b.io, watch, EVENT("DELETED", FULL("gone", "6")));
            bed_process(&b);

            /* else it comes again, with the watch's next opening */
            told = (kube_reflector_rv(b.r)->data[0] == '6');
        }

        if (list != NULL && list->live) {
            io_answer(&b.io, list, 200,
                      LIST("7", "", SERVICE("web", "3") ","
                                    SERVICE("gone", "4")));
        }

        started = b.io.started;

        for (i = 0; i < 20; i++) {
            b.io.now_ms += 200;

            /* it waits for a watch that is open */

            if (b.io.started != started
                && io_find(&b.io, "watch=true") != NULL)
            {
                started = b.io.started;
                (void) io_head(io_find(&b.io, "watch=true"), 200,
                               "application/json", 0);
            }

            words = drained(&b);
            assert_false(told && strstr(words, "U:shop/gone") != NULL);

            /* a whole one has brought what there was */

            brought |= (strstr(words, "U:shop/web") != NULL);
            assert_false(strchr(words, '}') != NULL && !brought);

            /* what was begun has an end, once there is memory for it */

            open = (open || strchr(words, '{') != NULL)
                   && strpbrk(words, "}!") == NULL;
        }

        assert_false(open && !at->fail_from);
    }

    bed_done(&b);
}


static void
test_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(refill_oom, NULL);
}


/* Who asks while it is under way has it, as it has begun. */
static void
test_asked_for_meanwhile(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    list_begins(&b, list);
    assert_true(io_body(&b.io, watch, EVENT("DELETED", FULL("gone", "6"))));
    assert_string_equal(drained(&b), "D:shop/gone@6");

    b.io.now_ms += KUBE_DEMAND_FIRST_MS;
    assert_true(io_body(&b.io, watch, "\n"));
    kube_reflector_fill(b.r, false, b.io.now_ms);
    bed_process(&b);
    assert_int_equal(b.io.started, 2);

    /* what has gone meanwhile does not come back */

    assert_true(io_body(&b.io, list, SERVICE("gone", "4") "]}"));
    io_done(list, KUBE_OK, "");
    FILLED(&b, watch, "}");
    assert_int_equal(b.io.started, 2);
    bed_done(&b);
}


/* It could not even begin: nobody asks again, so it is wanted as before. */
static void
test_no_memory_for_the_mark(void **state)
{
    bed_t           b;
    size_t          n, put_off;
    io_exchange_t  *watch;

    (void) state;
    put_off = 0;

    for (n = 1; n < 20; n++) {
        bed_init(&b);
        bed_watch(&b);
        watch = bed_x(&b);
        b.beside = true;
        b.own.fail_at = b.own.calls + n;
        kube_reflector_fill(b.r, false, b.io.now_ms);
        bed_process(&b);
        b.own.fail_at = 0;

        if (b.io.started == 1 && drained(&b)[0] == '\0') {
            put_off++;
            b.io.now_ms += KUBE_URGENT_FIRST_MS;
            assert_true(io_body(&b.io, watch, "\n"));
            bed_process(&b);
            assert_int_equal(b.io.started, 1);
            pace(&b, watch);
            assert_int_equal(b.io.started, 2);
            io_answer(&b.io, bed_x(&b), 200,
                      LIST("7", "", SERVICE("web", "3")));
            FILLED(&b, watch, "{ U:shop/web@3 }");

            /* once */
            pace(&b, watch);
            assert_int_equal(b.io.started, 2);
            assert_true(is_watched(watch));
        }

        bed_done(&b);
    }

    assert_int_not_equal(put_off, 0);
}


/* A list in place of such a one closes the watch: not while others list. */
static void
test_replacing_waits_for_others(void **state)
{
    bed_t     b;
    unsigned  cancelled;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    cancelled = b.io.cancelled;
    assert_true(kube_list_turn_take(&b.turn, 5, b.io.now_ms));

    b.r->refill.replace = true;
    kube_reflector_fill(b.r, true, b.io.now_ms);
    bed_process(&b);
    assert_int_equal(b.io.cancelled, cancelled);

    kube_list_turn_give(&b.turn, 5);
    b.io.now_ms = kube_reflector_deadline(b.r);
    bed_process(&b);
    assert_int_equal(b.io.cancelled, cancelled + 1);
    assert_int_equal(b.turn.holder, 2);
    bed_done(&b);
}


/* A list that has the turn of such a one has not the rest of its 30 s. */
static void
test_turn_begins_anew(void **state)
{
    bed_t           b;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);
    list_begins(&b, list);

    b.io.now_ms += KUBE_LIST_TURN_MAX_MS - 1;
    assert_true(io_body(&b.io, watch,
                        EVENT("ERROR", STATUS(410, "Expired", ""))));
    bed_process(&b);
    assert_int_equal(b.turn.holder, 2);
    assert_false(kube_list_turn_take(&b.turn, 5, b.io.now_ms));
    assert_int_equal(kube_list_turn_deadline(&b.turn, 5),
                     b.io.now_ms + KUBE_LIST_TURN_MS);
    bed_done(&b);
}


/* A proxy that ends each watch within the minute keeps none for ever. */
static void
test_silent_while_watches_end(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *list, *watch;

    (void) state;

    list = fill_bed(&b, &watch);

    for (i = 0; i < 3 && list->live; i++) {
        b.io.now_ms += 40000;
        io_done(watch, KUBE_OK, "");
        bed_process(&b);

        watch = io_find(&b.io, "watch=true");
        assert_non_null(watch);
        b.io.now_ms += 10000;
        assert_true(io_head(watch, 200, "application/json", 0));
        bed_process(&b);
    }

    /* 40 s, and 40 s: while no watch was open it was not asked */

    assert_int_equal(i, 2);
    assert_string_equal(drained(&b), "{ !");
    assert_int_not_equal(b.turn.holder, 2);
    bed_done(&b);
}


/* Its turn is its own: a relist that is not due leaves it that. */
static void
test_turn_is_kept(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_watch_beside(&b);

    kube_reflector_relist(b.r, KUBE_RELIST_OTHER, false, b.io.now_ms);
    assert_int_equal(b.turn.holder, 2);
    bed_done(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_begins_anew),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_watch_goes_on),
        cmocka_unit_test(test_fails),
        cmocka_unit_test(test_pages_without_end),
        cmocka_unit_test(test_token_expired),
        cmocka_unit_test(test_list_beside_others),
        cmocka_unit_test(test_due_beside_others),
        cmocka_unit_test(test_place_of_one_that_waits),
        cmocka_unit_test(test_place_as_one_ends),
        cmocka_unit_test(test_place_of_one_put_off),
        cmocka_unit_test(test_plainly_beside_others),
        cmocka_unit_test(test_due_as_list_ends),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_drips),
        cmocka_unit_test(test_fifo_full),
        cmocka_unit_test(test_end_is_owed),
        cmocka_unit_test(test_urgent),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_no_memory_for_a_key),
        cmocka_unit_test(test_asked_for_meanwhile),
        cmocka_unit_test(test_no_memory_for_the_mark),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_watch_ends),
        cmocka_unit_test(test_watch_list),
        cmocka_unit_test(test_watch_not_granted),
        cmocka_unit_test(test_turn),
        cmocka_unit_test(test_turn_between_pages),
        cmocka_unit_test(test_too_many_keys),
        cmocka_unit_test(test_replacing_waits_for_others),
        cmocka_unit_test(test_turn_begins_anew),
        cmocka_unit_test(test_silent_while_watches_end),
        cmocka_unit_test(test_turn_is_kept),
        cmocka_unit_test(test_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

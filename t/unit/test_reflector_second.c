/*
 * test_reflector_second - a second watch beside one whose server is silent, and
 * requests that do not wait once the server can be connected to again.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_bed.h"


/* A watch from 5 that is suspect, with another one beside it. */
static io_exchange_t *
second_bed(bed_t *b)
{
    io_exchange_t  *first;

    bed_init(b);
    bed_watch(b);
    assert_string_equal(drained(b), "");

    first = bed_x(b);
    b->io.now_ms += 6000;
    b->io.suspect = first;
    bed_process(b);

    assert_int_equal(b->io.started, 2);
    assert_true(first->live);
    assert_ptr_not_equal(bed_x(b), first);
    assert_non_null(strstr(bed_x(b)->path, "resourceVersion=5&"));
    assert_non_null(strstr(bed_x(b)->path, "watch=true"));

    /* no third one, however often it is looked at */

    bed_process(b);
    b->io.now_ms += 11000;
    bed_process(b);
    assert_int_equal(b->io.started, 2);
    assert_true(kube_reflector_deadline(b->r) > b->io.now_ms);

    return first;
}


static void
test_second_speaks_first(void **state)
{
    bed_t           b;
    io_exchange_t  *first, *second;

    (void) state;

    first = second_bed(&b);
    second = bed_x(&b);

    assert_true(io_head(second, 200, "application/json", 0));
    assert_int_equal(kube_reflector_deadline(b.r), 0);
    bed_process(&b);

    assert_false(first->live);
    assert_true(second->live);
    assert_int_equal(b.io.cancelled, 1);
    b.io.suspect = NULL;

    assert_true(io_body(&b.io, second,
                        EVENT("ADDED", FULL("web", "6")) BOOKMARK("8")));
    assert_string_equal(drained(&b), "U:shop/web@6");
    assert_rv(&b, "8");
    assert_int_equal(counted(&b, KUBE_COUNTER_WATCHES), 2);
    assert_int_equal(counted(&b, KUBE_COUNTER_LISTS), 0);
    assert_int_equal(counted(&b, KUBE_COUNTER_SHORT_WATCHES), 0);
    assert_string_equal(b.reason, "");

    /* its end is a watch's: another follows at once */

    b.io.now_ms += 2000;
    io_done(second, KUBE_OK, "");
    bed_process(&b);
    assert_int_equal(b.io.started, 3);
    assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=8&"));

    bed_done(&b);
}


static void
test_first_speaks_first(void **state)
{
    bed_t           b;
    size_t          i;
    io_exchange_t  *first, *second;

    static const char *const  said[] = {
        EVENT("ADDED", FULL("web", "6")), BOOKMARK("7"), "{\"type\":"
    };

    (void) state;

    for (i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
        first = second_bed(&b);
        second = bed_x(&b);
        b.io.suspect = NULL;

        assert_true(io_body(&b.io, first, said[i]));
        bed_process(&b);

        assert_true(first->live);
        assert_false(second->live);
        assert_int_equal(b.io.started, 2);
        assert_int_equal(counted(&b, KUBE_COUNTER_WATCHES), 1);
        bed_done(&b);
    }
}


/*
 * A page of which the rest does not come is asked for again, over and over but
 * not often: the first one as another list, for what it had may be gone.
 */
static void
test_list_is_silent(void **state)
{
    bed_t           b;
    unsigned        page;
    const char     *asked;
    io_exchange_t  *x;

    (void) state;

    for (page = 0; page < 2; page++) {
        bed_init(&b);
        bed_start(&b, "");
        asked = "resourceVersion=0";

        if (page == 1) {
            io_answer(&b.io, bed_x(&b), 200,
                      LIST("5", ",\"continue\":\"token\"", FULL("api", "3")));
            bed_process(&b);
            asked = "continue=token";
        }

        x = bed_x(&b);
        assert_non_null(strstr(x->path, asked));
        assert_true(io_head(x, 200, "application/json", 0));
        assert_true(io_body(&b.io, x,
                            "{\"kind\":\"ServiceList\",\"metadata\":"
                            "{\"resourceVersion\":\"5\"},\"items\":["
                            FULL("gone", "4") ","));
        bed_process(&b);

        b.io.now_ms += 6000;
        b.io.suspect = x;
        bed_process(&b);
        assert_int_equal(b.io.cancelled, 1);
        assert_int_equal(b.io.started, page + 2);

        /* of another version, where it is another list */

        x = bed_x(&b);
        asked = page ? "continue=token" : "resourceVersion=5&";
        assert_non_null(strstr(x->path, asked));
        assert_true(io_head(x, 200, "application/json", 0));
        b.io.suspect = x;
        b.io.now_ms += KUBE_SECOND_MS - 1;
        bed_process(&b);
        assert_int_equal(b.io.started, page + 2);
        b.io.now_ms++;
        bed_process(&b);
        assert_int_equal(b.io.cancelled, 2);
        assert_int_equal(b.io.started, page + 3);
        b.io.suspect = NULL;

        io_answer(&b.io, bed_x(&b), 200, LIST("9", "", FULL("web", "8")));
        bed_process(&b);
        assert_string_equal(drained(&b),
                            page ? "[ R:shop/api@3 R:shop/gone@4 R:shop/web@8 ]"
                                 : "[ R:shop/gone@4 [ R:shop/web@8 ]");
        assert_rv(&b, page ? "5" : "9");
        bed_done(&b);
    }
}


/* Whatever becomes of the second alone is nothing to the first. */
static void
test_second_fails(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *first;

    static const struct {
        int          code;        /* 0: no answer */
        const char  *body;
    } answers[] = {
        { 410, STATUS(410, "Expired", "") },
        { 403, STATUS(403, "Forbidden", "") },
        { 401, STATUS(401, "Unauthorized", "") },
        { 503, "" },
        { 0, "" }
    };

    (void) state;

    for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        first = second_bed(&b);

        if (answers[i].code != 0) {
            io_answer(&b.io, bed_x(&b), answers[i].code, answers[i].body);

        } else {
            io_done(bed_x(&b), KUBE_CONNECT, "refused");
        }

        bed_process(&b);
        assert_ptr_equal(bed_x(&b), first);
        assert_string_equal(b.reason, "");
        assert_int_equal(b.io.credentials, 0);
        assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);

        /* and it is the watch still */

        b.io.suspect = NULL;
        assert_true(io_body(&b.io, first, EVENT("ADDED", FULL("web", "6"))));
        assert_string_equal(drained(&b), "U:shop/web@6");
        bed_done(&b);
    }
}


static void
test_second_is_silent(void **state)
{
    bed_t           b;
    uint64_t        due_ms;
    io_exchange_t  *first, *second;

    (void) state;

    first = second_bed(&b);
    second = bed_x(&b);

    due_ms = kube_reflector_deadline(b.r);
    assert_int_equal(due_ms, second->started_ms + KUBE_OPEN_MS);
    b.io.suspect = NULL;
    b.io.now_ms = due_ms;
    bed_process(&b);

    assert_true(first->live);
    assert_false(second->live);
    bed_done(&b);
}


/* What there is of the second is not thrown away: it is the next watch. */
static void
test_first_ends(void **state)
{
    bed_t           b;
    io_exchange_t  *second;

    (void) state;

    io_done(second_bed(&b), KUBE_CLOSED, "timed out");
    second = bed_x(&b);
    b.io.suspect = NULL;
    bed_process(&b);

    assert_true(second->live);
    assert_int_equal(b.io.started, 2);

    assert_true(io_head(second, 200, "application/json", 0));
    assert_true(io_body(&b.io, second, EVENT("ADDED", FULL("web", "6"))));
    assert_string_equal(drained(&b), "U:shop/web@6");
    assert_rv(&b, "6");
    bed_done(&b);
}


/* A stop, and a list that is due, end both. */
static void
test_both_end(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    for (i = 0; i < 3; i++) {
        (void) second_bed(&b);

        if (i == 0) {
            kube_reflector_stop(b.r, b.io.now_ms);
            assert_null(io_find(&b.io, "/"));

        } else if (i == 1) {
            kube_reflector_relist(b.r, KUBE_RELIST_ROOM, false, b.io.now_ms);
            b.io.suspect = NULL;
            bed_process(&b);
            assert_null(strstr(bed_x(&b)->path, "watch=true"));
        }

        bed_done(&b);
    }
}


/* Neither a list nor a request without an answer has a second beside it. */
static void
test_only_open_watches(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_init(&b);
        bed_start(&b, i ? "5" : "");
        b.io.suspect = bed_x(&b);
        bed_process(&b);
        assert_int_equal(b.io.started, 1);
        bed_done(&b);
    }
}


/* A pause that was for want of a connection ends when there is one. */
static void
test_healed(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_init(&b);
    bed_start(&b, "5");

    for (i = 0; i < 3; i++) {
        io_done(bed_x(&b), KUBE_CONNECT, "timed out");
        bed_process(&b);
        assert_null(io_find(&b.io, "/"));

        b.io.healed++;
        bed_process(&b);
        assert_non_null(strstr(bed_x(&b)->path, "watch=true"));

        /* the server is there, but is ill: its pauses are the ordinary ones */

        io_answer(&b.io, bed_x(&b), 503, "");
        bed_process(&b);
        b.io.healed++;
        bed_process(&b);
        assert_null(io_find(&b.io, "/"));
        assert_true(bed_sleep(&b) >= 400);
    }

    /* a request that was under way when it healed is made again, once */

    b.io.healed++;
    io_done(bed_x(&b), KUBE_CONNECT, "timed out");
    bed_process(&b);
    io_done(bed_x(&b), KUBE_CONNECT, "timed out");
    bed_process(&b);
    assert_null(io_find(&b.io, "/"));

    bed_done(&b);
}


static void
oom_run(alloc_test_t *at, void *ctx)
{
    bed_t           b;
    io_exchange_t  *first;

    (void) ctx;

    bed_make(&b, &at->alloc, "", 1024);

    if (b.r != NULL) {
        bed_start(&b, "5");
        first = io_find(&b.io, "/");

        if (first != NULL) {
            assert_true(io_head(first, 200, "application/json", 0));
            bed_process(&b);
            b.io.now_ms += 6000;
            b.io.suspect = first;
            bed_process(&b);

            /* without memory the first goes on alone */

            assert_true(first->live);
            assert_int_equal(b.io.started == 2,
                             io_find(&b.io, "/") != first);
        }
    }

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
        cmocka_unit_test(test_second_speaks_first),
        cmocka_unit_test(test_first_speaks_first),
        cmocka_unit_test(test_second_fails),
        cmocka_unit_test(test_second_is_silent),
        cmocka_unit_test(test_list_is_silent),
        cmocka_unit_test(test_first_ends),
        cmocka_unit_test(test_both_end),
        cmocka_unit_test(test_only_open_watches),
        cmocka_unit_test(test_healed),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

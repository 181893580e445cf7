/*
 * test_reflector_errors - every error an exchange can have: answers, ERROR
 * events, the transport's, malformed bytes, versions that go back.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "reflector_bed.h"


static void
test_not_a_list(void **state)
{
    bed_t     b;
    unsigned  i;

    static const char *const  bodies[] = {
        "", "null", "<html>", "[]", "{}", "{\"kind\":\"ServiceList\"}",
        "{\"kind\":\"Table\",\"metadata\":{\"resourceVersion\":\"7\"},"
            "\"items\":[]}",
        "{\"kind\":\"EndpointSliceList\",\"metadata\":"
            "{\"resourceVersion\":\"7\"},\"items\":[]}",
        LIST("", "", ""), LIST("0", "", ""), LIST("07", "", ""),
        "{\"kind\":\"ServiceList\",\"metadata\":{},\"items\":[]}",
        "{\"kind\":\"ServiceList\",\"items\":[]}",
        "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[]}"
    };

    (void) state;

    for (i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        bed_init(&b);
        bed_start(&b, "");
        io_answer(&b.io, bed_x(&b), 200, bodies[i]);
        bed_process(&b);

        assert_string_equal(b.reason, "protocol");
        assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_PROTOCOL), 1);
        assert_null(strchr(drained(&b), ']'));
        assert_rv(&b, "");
        (void) bed_sleep(&b);
        bed_done(&b);
    }
}


/* A list that is never complete keeps the scope from following: it is said. */
static void
test_never_listed(void **state)
{
    bed_t     b;
    unsigned  i, k;

    static const struct {
        int          code;
        const char  *body;
        const char  *reason;
    } lists[] = {
        { 200, LIST("7", ",\"continue\":\"same\"", ""), "protocol" },
        { 410, STATUS(410, "Expired", ""), "expired" }
    };

    (void) state;

    for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        bed_init(&b);
        bed_start(&b, "");

        for (k = 0; k < 2; k++) {
            assert_int_equal(kube_reflector_suffering(b.r)->cause,
                             KUBE_CAUSES);
            io_answer(&b.io, bed_x(&b), lists[i].code, lists[i].body);
            bed_process(&b);
        }

        assert_string_equal(b.reason, lists[i].reason);
        assert_int_equal(kube_reflector_suffering(b.r)->cause,
                         KUBE_CAUSE_UNREACHABLE);
        assert_int_equal(kube_reflector_suffering(b.r)->attempts, 1);
        (void) bed_sleep(&b);
        bed_done(&b);
    }
}


/*
 * A letter a list: "n" is not found, sent as a watch beside it was open, "o"
 * is not found, sent before that, "-" without one, "5" is a 503, and "y" is
 * granted and cut off.
 */
static void
test_missing(void **state)
{
    bed_t           b;
    bool            missing;
    unsigned        i;
    uint64_t        beside_ms;
    const char     *p;
    io_exchange_t  *x;

    static const struct {
        const char  *lists;
        bool         missing;
    } rows[] = {
        { "nnnn", false },
        { "nnnnn", true },
        { "nnoo--n-on", false },
        { "nn5no-nn", true },
        { "nnnnynnnn", false },
        { "yynnnnynnnnn", true }
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_init(&b);
        bed_start(&b, "");
        missing = false;

        for (p = rows[i].lists; *p != '\0'; p++) {
            assert_false(missing);
            x = bed_x(&b);
            beside_ms = x->started_ms + (*p == 'o');
            b.io.now_ms += 10;

            if (*p == 'y') {
                assert_true(io_head(x, 200, "application/json", 0));
                io_done(x, KUBE_CLOSED, "");

            } else {
                io_answer(&b.io, x, (*p == '5') ? 503 : 404, "");
            }

            bed_process(&b);
            missing = kube_reflector_missing(b.r, (*p == '-') ? 0 : beside_ms);
            (void) bed_sleep(&b);
        }

        assert_int_equal(missing, rows[i].missing);
        bed_done(&b);
    }
}


/* An answer other than 200 to a list and to a watch. */

typedef struct {
    int             code;
    uint32_t        retry_after_s;
    const char     *body;
    const char     *reason;
    kube_counter_t  counter;
    uint32_t        sleep_low_ms;
    uint32_t        sleep_high_ms;
} answer_t;

static const answer_t  answers[] = {
    { 204, 0, "", "other", KUBE_COUNTER_ERRORS_OTHER, 400, 800 },
    { 206, 0, LIST("7", "", ""), "other", KUBE_COUNTER_ERRORS_OTHER,
      400, 800 },
    { 302, 0, "", "redirect", KUBE_COUNTER_ERRORS_REDIRECT, 400, 800 },
    { 400, 0, "", "invalid", KUBE_COUNTER_ERRORS_INVALID, 400, 800 },
    { 403, 0, STATUS(403, "Forbidden", ""), "forbidden",
      KUBE_COUNTER_ERRORS_FORBIDDEN, 400, 800 },
    { 404, 0, "404 page not found\n", "not_found",
      KUBE_COUNTER_ERRORS_NOT_FOUND, 400, 800 },
    { 429, 0, STATUS(429, "TooManyRequests", ""), "too_many_requests",
      KUBE_COUNTER_ERRORS_TOO_MANY, 400, 800 },
    { 429, 5, "", "too_many_requests", KUBE_COUNTER_ERRORS_TOO_MANY,
      5000, 7500 },
    { 429, 5, STATUS(429, "TooManyRequests",
                     "\"details\":{\"retryAfterSeconds\":9},"),
      "too_many_requests", KUBE_COUNTER_ERRORS_TOO_MANY, 9000, 13500 },
    { 500, 0, STATUS(500, "InternalError", ""), "internal",
      KUBE_COUNTER_ERRORS_INTERNAL, 400, 800 },
    { 502, 0, "<html>bad gateway</html>", "other", KUBE_COUNTER_ERRORS_OTHER,
      400, 800 },
    { 503, 300, "", "unavailable", KUBE_COUNTER_ERRORS_UNAVAILABLE,
      300000, 450000 }
};


static void
test_answers(void **state)
{
    bed_t            b;
    unsigned         i, watch;
    const answer_t  *a;
    io_exchange_t   *x;

    (void) state;

    for (i = 0; i < 2 * sizeof(answers) / sizeof(answers[0]); i++) {
        a = &answers[i / 2];
        watch = i % 2;

        bed_init(&b);
        bed_start(&b, watch ? "5" : "");
        x = bed_x(&b);

        assert_true(io_head(x, a->code, "text/plain", a->retry_after_s));
        assert_true(io_body(&b.io, x, a->body));
        io_done(x, KUBE_OK, "");
        bed_process(&b);

        assert_string_equal(b.reason, a->reason);
        assert_int_equal(counted(&b, a->counter), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_ERROR), 0);
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_FORBIDDEN),
                         a->code == 403);
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_STATE),
                         KUBE_STATE_BACKOFF);
        assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_RETRY_AT_MS),
                         kube_reflector_deadline(b.r));

        assert_in_range(bed_sleep(&b), a->sleep_low_ms, a->sleep_high_ms);
        /* 400 and 422 may be about the version: a list asks for none then */
        assert_non_null(strstr(bed_x(&b)->path,
                               watch ? "watch=true"
                               : strcmp(a->reason, "invalid") == 0
                                 ? "services?limit" : "resourceVersion=0"));

        if (a->code == 403) {
            assert_true(io_head(bed_x(&b), 200, "application/json", 0));
            bed_process(&b);
            assert_int_equal(counted(&b, KUBE_COUNTER_GAUGE_FORBIDDEN), 0);
        }

        bed_done(&b);
    }
}


static void
test_endless_refusal(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *x;

    static char  piece[8193];

    (void) state;

    memset(piece, 'x', sizeof(piece) - 1);

    bed_init(&b);
    bed_start(&b, "");
    x = bed_x(&b);
    assert_true(io_head(x, 503, "text/plain", 0));

    for (i = 0; i < 100 && io_body(&b.io, x, piece); i++) {
        /* void */
    }

    assert_int_equal(i, KUBE_STATUS_BYTES_MAX / 8192 - 1);
    bed_process(&b);
    assert_string_equal(b.reason, "unavailable");
    bed_done(&b);
}


/* Time goes by until an answer is waited for no longer. */
static void
until_cut(bed_t *b)
{
    while (b->io.cancelled == 0) {
        b->io.now_ms = kube_reflector_deadline(b->r);
        assert_true(b->io.now_ms != KUBE_NEVER);
        bed_process(b);
    }
}


/*
 * The head of a refusal came, and the rest of it does not: what it says is not
 * lost when it is waited for no longer.
 */
static void
test_refusal_without_end(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *x;

    (void) state;

    for (i = 0; i < 4; i++) {
        bed_init(&b);
        bed_start(&b, (i % 2 == 0) ? "5" : "");

        x = bed_x(&b);
        assert_true(io_head(x, (i < 2) ? 429 : 410, "application/json",
                            (i < 2) ? 300 : 0));
        assert_true(io_body(&b.io, x, "{\"kind\":"));
        bed_process(&b);
        assert_true(x->live);

        until_cut(&b);

        assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_TIMEOUT), 0);
        assert_int_equal(counted(&b, (i < 2) ? KUBE_COUNTER_ERRORS_TOO_MANY
                                             : KUBE_COUNTER_ERRORS_EXPIRED),
                         1);

        if (i < 2) {
            assert_string_equal(b.reason, "too_many_requests");
            assert_in_range(bed_sleep(&b), 300000, 450000);

        } else {
            x = bed_x(&b);
            assert_null(strstr(x->path, "watch=true"));
        }

        bed_done(&b);
    }
}


/* What is asked for instead, as JSON is after a 406, has its time. */
static void
test_not_acceptable_without_end(void **state)
{
    bed_t           b;
    unsigned        i;
    uint64_t        ms;
    io_exchange_t  *x;

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_init(&b);
        bed_start(&b, i ? "5" : "");
        assert_true(io_head(bed_x(&b), 406, "text/plain", 0));
        bed_process(&b);

        until_cut(&b);

        x = bed_x(&b);
        assert_int_equal(x->encoding, KUBE_ENCODING_JSON);

        ms = kube_reflector_deadline(b.r);
        assert_in_range(ms, b.io.now_ms + KUBE_OPEN_MS,
                        b.io.now_ms + KUBE_LIST_MS);
        b.io.now_ms = ms - 1;
        bed_process(&b);
        assert_true(x->live);
        assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_TIMEOUT), 0);
        bed_done(&b);
    }
}


static void
test_content_type(void **state)
{
    bed_t     b;
    unsigned  watch;

    (void) state;

    for (watch = 0; watch < 2; watch++) {
        bed_init(&b);
        bed_start(&b, watch ? "5" : "");
        assert_true(io_head(bed_x(&b), 200, "text/html", 0));
        bed_process(&b);
        assert_int_equal(b.io.cancelled, 1);
        assert_string_equal(b.reason, "protocol");
        (void) bed_sleep(&b);
        assert_true(io_head(bed_x(&b), 200, "Application/JSON", 0));
        bed_done(&b);
    }
}


static void
test_expired(void **state)
{
    bed_t           b;
    unsigned        i;
    io_exchange_t  *x;

    (void) state;

    /* as an answer, and as an event that is not the last thing said */

    for (i = 0; i < 2; i++) {
        bed_init(&b);
        bed_start(&b, "5");
        x = bed_x(&b);

        if (i == 0) {
            io_answer(&b.io, x, 410, STATUS(410, "Expired", ""));

        } else {
            assert_true(io_head(x, 200, "application/json", 0));
            bed_cut(&b, EVENT("ADDED", FULL("web", "8"))
                        EVENT("ERROR", STATUS(410, "Expired", ""))
                        EVENT("ADDED", FULL("late", "9")));
            assert_string_equal(drained(&b), "U:shop/web@8");
            assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_ERROR), 1);
        }

        bed_process(&b);
        x = bed_x(&b);
        assert_string_equal(x->path, i
                            ? "/api/v1/services?limit=2&resourceVersion=8&"
                              "resourceVersionMatch=NotOlderThan"
                            : "/api/v1/services?limit=2&resourceVersion=5&"
                              "resourceVersionMatch=NotOlderThan");
        assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS_EXPIRED), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_EXPIRED), 1);

        /* expired again: a consistent read */
        io_answer(&b.io, x, 410, STATUS(410, "Expired", ""));
        bed_process(&b);
        assert_string_equal(bed_x(&b)->path, "/api/v1/services?limit=2");

        bed_done(&b);
    }
}


/*
 * Watches that are granted, and are none: lists alone are followed, a pause
 * apart, and it suffers in that pause.  One that could be resumed does not.
 */
static void
test_granted_for_nothing(void **state)
{
    bed_t     b;
    size_t    i;
    unsigned  turn;

    static const char  *const says[] = {
        EVENT("ERROR", STATUS(410, "Expired", "")),
        EVENT("MODIFIED", FULL("web", "4")),
        ""
    };

    (void) state;

    for (i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
        bed_init(&b);
        bed_start(&b, "5");

        for (turn = 0; turn < 2; turn++) {
            assert_true(io_head(bed_x(&b), 200, "application/json", 0));
            bed_process(&b);
            assert_int_equal(kube_reflector_suffering(b.r)->cause,
                             KUBE_CAUSES);
            if (i == 2) {
                io_done(bed_x(&b), KUBE_OK, "");
                bed_process(&b);

            } else {
                bed_cut(&b, says[i]);
            }

            if (i == 0 && turn == 0) {
                io_answer(&b.io, bed_x(&b), 200,
                          LIST("5", "", FULL("web", "5")));
                bed_process(&b);
                (void) drained(&b);
                continue;
            }

            assert_int_equal(kube_reflector_suffering(b.r)->cause,
                             KUBE_CAUSE_UNREACHABLE);
            assert_int_equal(kube_reflector_suffering(b.r)->attempts, 1);
            assert_string_equal(b.reason, (i == 0) ? "expired"
                                          : (i == 1) ? "other" : "closed");
            (void) bed_sleep(&b);

            if (i != 2) {
                break;
            }
        }

        bed_done(&b);
    }

    /* it has lived: the next one comes at once */

    bed_init(&b);
    bed_watch(&b);
    b.io.now_ms += 1000;
    io_done(bed_x(&b), KUBE_OK, "");
    bed_process(&b);
    assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);
    bed_done(&b);
}


static void
test_error_events(void **state)
{
    bed_t     b;
    unsigned  i;

    static const struct {
        const char  *object;
        const char  *reason;
        const char  *next;
        uint64_t     sleep_ms;
    } cases[] = {
        { STATUS(500, "InternalError", ""), "internal",
          "resourceVersion=5&", 400 },
        { STATUS(429, "TooManyRequests",
                 "\"details\":{\"retryAfterSeconds\":7},"),
          "too_many_requests", "resourceVersion=5&", 7000 },
        { STATUS(504, "Timeout", "\"details\":{\"causes\":[{\"reason\":"
                 "\"ResourceVersionTooLarge\"}]},"), "too_large_rv",
          "/api/v1/services?limit=2", 0 },
        { STATUS(0, "", ""), "other", "resourceVersion=5&", 400 },
        { "{}", "other", "resourceVersion=5&", 400 },
        { "\"text\"", "other", "resourceVersion=5&", 400 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char  text[1024];

        bed_init(&b);
        bed_watch(&b);

        snprintf(text, sizeof(text), "{\"type\":\"ERROR\",\"object\":%s}\n",
                 cases[i].object);
        bed_cut(&b, text);
        assert_string_equal(b.reason, cases[i].reason);

        if (cases[i].sleep_ms != 0) {
            assert_true(bed_sleep(&b) >= cases[i].sleep_ms);
        }

        assert_non_null(strstr(bed_x(&b)->path, cases[i].next));
        bed_done(&b);
    }
}


static void
test_unauthorized(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_start(&b, "5");

    io_answer(&b.io, bed_x(&b), 401, STATUS(401, "Unauthorized", ""));
    assert_int_equal(b.io.credentials, 0);
    bed_process(&b);
    assert_int_equal(b.io.credentials, 1);
    assert_int_equal(b.io.started, 2);

    /* not at once any more, but what may be renewed is: a plugin is asked */

    io_answer(&b.io, bed_x(&b), 401, STATUS(401, "Unauthorized", ""));
    bed_process(&b);
    assert_int_equal(b.io.credentials, 2);
    assert_int_equal(b.io.started, 2);
    assert_int_equal(kube_reflector_suffering(b.r)->cause,
                     KUBE_CAUSE_UNAUTHORIZED);
    assert_int_equal(kube_reflector_suffering(b.r)->attempts, 2);
    assert_true(bed_sleep(&b) >= 400);
    assert_true(io_head(bed_x(&b), 200, "application/json", 0));
    bed_process(&b);
    assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);
    bed_done(&b);
}


/*
 * What a watch has to say comes again when it is resumed: without memory for it
 * an answer is not the end of the trouble, or nobody would be told of it.
 */
static void
test_no_memory_for_an_event(void **state)
{
    bed_t     b;
    unsigned  i, k;

    (void) state;

    /* until an event has been taken, or a list */

    for (i = 0; i < 2; i++) {
        bed_init(&b);
        bed_start(&b, "5");

        for (k = 1; k <= 3; k++) {
            assert_true(io_head(bed_x(&b), 200, "application/json", 0));
            bed_process(&b);
            assert_int_equal(kube_reflector_suffering(b.r)->cause,
                             (k == 1) ? KUBE_CAUSES : KUBE_CAUSE_UNREACHABLE);

            io_done(bed_x(&b), KUBE_NOMEM, "");
            bed_process(&b);
            assert_int_equal(kube_reflector_suffering(b.r)->cause,
                             KUBE_CAUSE_UNREACHABLE);
            assert_int_equal(kube_reflector_suffering(b.r)->attempts, k);
            (void) bed_sleep(&b);
        }

        if (i == 1) {
            io_answer(&b.io, bed_x(&b), 410, STATUS(410, "Expired", ""));
            bed_process(&b);
            io_answer(&b.io, bed_x(&b), 200, LIST("7", "", ""));
            bed_process(&b);
        }

        assert_true(io_head(bed_x(&b), 200, "application/json", 0));

        if (i == 0) {
            assert_true(io_body(&b.io, bed_x(&b),
                                EVENT("ADDED", FULL("a", "6"))));
        }

        bed_process(&b);
        assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);
        bed_done(&b);
    }
}


/*
 * Nor does what is over stay shown where no event comes: the one that there was
 * no memory for was damaged and is passed over, or was an ERROR, or the watch
 * was quiet until it was due.
 */
static void
test_no_memory_is_over(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    for (i = 0; i < 4; i++) {
        bed_init(&b);
        bed_start(&b, "5");
        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        bed_process(&b);
        io_done(bed_x(&b), KUBE_NOMEM, "");
        bed_process(&b);
        (void) bed_sleep(&b);

        /* not yet */

        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        bed_process(&b);
        assert_int_equal(kube_reflector_suffering(b.r)->cause,
                         KUBE_CAUSE_UNREACHABLE);

        switch (i) {

        case 0:
            assert_true(io_body(&b.io, bed_x(&b), "{\"no\":\"event\"}\n"));
            bed_process(&b);
            (void) bed_sleep(&b);
            break;

        case 1:
            assert_true(io_body(&b.io, bed_x(&b),
                                EVENT("ERROR", STATUS(500, "", ""))));
            bed_process(&b);
            (void) bed_sleep(&b);
            break;

        case 2:
            b.io.now_ms = kube_reflector_deadline(b.r);
            bed_process(&b);
            break;

        default:
            b.io.now_ms += 60000;
            io_done(bed_x(&b), KUBE_OK, "");
            bed_process(&b);
        }

        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        bed_process(&b);
        assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);
        bed_done(&b);
    }
}


/* It is over with a list: a watch that fails after that is another trouble. */
static void
test_no_memory_then_another(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_start(&b, "5");
    assert_true(io_head(bed_x(&b), 200, "application/json", 0));
    bed_process(&b);
    io_done(bed_x(&b), KUBE_NOMEM, "");
    bed_process(&b);
    (void) bed_sleep(&b);

    io_answer(&b.io, bed_x(&b), 410, STATUS(410, "Expired", ""));
    bed_process(&b);
    io_answer(&b.io, bed_x(&b), 200, LIST("7", "", ""));
    bed_process(&b);
    assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);

    io_done(bed_x(&b), KUBE_CONNECT, "");
    bed_process(&b);
    assert_int_equal(kube_reflector_suffering(b.r)->cause,
                     KUBE_CAUSE_UNREACHABLE);
    (void) bed_sleep(&b);

    assert_true(io_head(bed_x(&b), 200, "application/json", 0));
    bed_process(&b);
    assert_int_equal(kube_reflector_suffering(b.r)->cause, KUBE_CAUSES);
    bed_done(&b);
}


/*
 * A trouble began with its first attempt, whatever it is called by now; what
 * helps is of the last one alone.
 */
static void
test_one_trouble(void **state)
{
    bed_t                    b;
    uint64_t                 since_ms;
    const kube_suffering_t  *s;

    (void) state;

    bed_init(&b);
    bed_start(&b, "");
    s = kube_reflector_suffering(b.r);

    since_ms = b.io.now_ms;
    io_answer(&b.io, bed_x(&b), 403, STATUS(403, "Forbidden", ""));
    bed_process(&b);
    assert_int_equal(s->cause, KUBE_CAUSE_FORBIDDEN);
    assert_int_equal(s->since_ms, since_ms);
    assert_non_null(s->remedy);
    assert_non_null(strstr(s->remedy, "grant"));
    (void) bed_sleep(&b);

    io_answer(&b.io, bed_x(&b), 500, STATUS(500, "InternalError", ""));
    bed_process(&b);
    assert_int_equal(s->cause, KUBE_CAUSE_UNREACHABLE);
    assert_int_equal(s->since_ms, since_ms);
    assert_int_equal(s->attempts, 2);
    assert_null(s->remedy);
    bed_done(&b);

    /* a watch that is granted for nothing is not helped by what was before */

    bed_init(&b);
    bed_start(&b, "5");
    s = kube_reflector_suffering(b.r);
    io_answer(&b.io, bed_x(&b), 403, STATUS(403, "Forbidden", ""));
    bed_process(&b);
    assert_non_null(s->remedy);
    (void) bed_sleep(&b);

    assert_true(io_head(bed_x(&b), 200, "application/json", 0));
    bed_process(&b);
    assert_int_equal(s->cause, KUBE_CAUSES);
    io_done(bed_x(&b), KUBE_OK, "");
    bed_process(&b);
    assert_int_equal(s->cause, KUBE_CAUSE_UNREACHABLE);
    assert_null(s->remedy);
    (void) bed_sleep(&b);
    bed_done(&b);
}


static void
test_transport_errors(void **state)
{
    bed_t        b;
    unsigned     i;
    const char  *remedy;

    static const struct {
        kube_rc_t       rc;
        const char     *reason;
        kube_counter_t  counter;
    } cases[] = {
        { KUBE_CONNECT, "connect", KUBE_COUNTER_ERRORS_CONNECT },
        { KUBE_TLS, "tls", KUBE_COUNTER_ERRORS_TLS },
        { KUBE_TIMEOUT, "timeout", KUBE_COUNTER_ERRORS_TIMEOUT },
        { KUBE_CLOSED, "closed", KUBE_COUNTER_ERRORS_CLOSED },
        { KUBE_PROTO, "protocol", KUBE_COUNTER_ERRORS_PROTOCOL },
        { KUBE_NOMEM, "other", KUBE_COUNTER_ERRORS_OTHER },
        { KUBE_IO, "other", KUBE_COUNTER_ERRORS_OTHER }
    };

    (void) state;

    for (i = 0; i < 2 * sizeof(cases) / sizeof(cases[0]); i++) {
        bed_init(&b);
        bed_start(&b, (i & 1) ? "5" : "");
        io_done(bed_x(&b), cases[i / 2].rc, "why");
        bed_process(&b);
        assert_string_equal(b.reason, cases[i / 2].reason);
        assert_string_equal(b.message, "why");
        assert_int_equal(counted(&b, cases[i / 2].counter), 1);
        assert_int_equal(b.io.credentials, cases[i / 2].rc == KUBE_TLS);
        remedy = kube_reflector_suffering(b.r)->remedy;
        assert_int_equal(remedy != NULL && strstr(remedy, "memory") != NULL,
                         cases[i / 2].rc == KUBE_NOMEM);
        assert_int_equal(remedy != NULL && strstr(remedy, "nofile") != NULL,
                         cases[i / 2].rc == KUBE_IO);
        assert_true(bed_sleep(&b) >= 400);
        (void) bed_x(&b);
        bed_done(&b);
    }

    /* what helps is the source's to say: it knows what it could not read */

    for (i = 0; i < 4; i++) {
        bed_init(&b);
        bed_start(&b, "");
        b.io.remedy = (i & 1) ? "create the file" : NULL;
        io_done(bed_x(&b), (i < 2) ? KUBE_NO_CREDENTIALS : KUBE_TLS, "why");
        bed_process(&b);
        assert_int_equal(kube_reflector_suffering(b.r)->cause,
                         (i < 2) ? KUBE_CAUSE_CREDENTIALS : KUBE_CAUSE_TLS);
        assert_ptr_equal(kube_reflector_suffering(b.r)->remedy, b.io.remedy);
        bed_done(&b);
    }

    /* not even started */
    bed_init(&b);
    b.io.start_rc = KUBE_TOO_LARGE;
    bed_start(&b, "");
    assert_int_equal(b.io.started, 0);
    assert_string_equal(b.reason, "other");
    assert_true(bed_sleep(&b) >= 400);
    assert_int_equal(b.io.started, 1);
    bed_done(&b);
}


static void
test_malformed_stream(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    bed_cut(&b, EVENT("ADDED", FULL("web", "8")) "garbage\n");
    assert_rv(&b, "8");
    assert_string_equal(b.reason, "protocol");
    (void) bed_sleep(&b);
    assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=8&"));

    /* the same again at the same version: the list tells */
    assert_true(io_head(bed_x(&b), 200, "application/json", 0));
    bed_cut(&b, "[]\n");
    (void) bed_sleep(&b);
    assert_non_null(strstr(bed_x(&b)->path, "NotOlderThan"));
    assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS_PROTOCOL), 1);
    assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_PROTOCOL), 2);
    bed_done(&b);
}


/* Cut cleanly, but not an event: read again once, then passed over. */
static void
test_unreadable_envelope(void **state)
{
    bed_t     b;
    unsigned  i;

    static const char *const  lines[] = {
        "{\"no\":\"event\"}\n", "{}\n", "{\"type\":1,\"object\":{}}\n",
        "{\"type\":\"ADDED\"}\n", "{\"type\":\"ADDED\",\"object\":[]}\n"
    };

    (void) state;

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        bed_init(&b);
        bed_watch(&b);
        bed_cut(&b, lines[i]);
        assert_string_equal(b.reason, "protocol");
        assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_PROTOCOL), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_MALFORMED), 0);
        assert_in_range(bed_sleep(&b), 400, 800);
        assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=5&"));

        /* no second resume, no list; what comes behind it is applied */
        assert_true(io_head(bed_x(&b), 200, "application/json", 0));
        assert_true(io_body(&b.io, bed_x(&b), lines[i]));
        assert_true(io_body(&b.io, bed_x(&b), lines[i]));
        assert_true(io_body(&b.io, bed_x(&b),
                            EVENT("ADDED", FULL("web", "8"))));
        assert_string_equal(drained(&b), "U:shop/web@8");
        assert_rv(&b, "8");
        assert_int_equal(b.io.started, 2);
        assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_PROTOCOL), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_MALFORMED), 2);
        bed_done(&b);
    }
}


/* An envelope that can be read names the object that cannot. */
static void
test_undecodable_object(void **state)
{
    bed_t     b;
    unsigned  i;
    char      text[1024];

    /* the structure is that of an event, what is in it no Service */
    static const char *const  rests[] = {
        "\"spec\":nul", "\"spec\":[]", "\"spec\" 1", "\"spec\":{\"ports\" []}"
    };

    (void) state;

    for (i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
        bed_init(&b);
        bed_watch(&b);

        snprintf(text, sizeof(text),
                 EVENT("MODIFIED", "{\"kind\":\"Service\",\"apiVersion\":"
                       "\"v1\"," META("bad", "8") ",%s}"), rests[i]);
        assert_true(io_body(&b.io, bed_x(&b), text));
        assert_string_equal(drained(&b), "X:shop/bad(malformed)");
        assert_rv(&b, "8");

        /* gone, though it could never be read */
        snprintf(text, sizeof(text),
                 EVENT("DELETED", "{\"kind\":\"Service\",\"apiVersion\":"
                       "\"v1\"," META("bad", "9") ",%s}"), rests[i]);
        assert_true(io_body(&b.io, bed_x(&b), text));
        assert_string_equal(drained(&b), "D:shop/bad@9");
        assert_rv(&b, "9");

        assert_int_equal(b.io.started, 1);
        assert_string_equal(b.reason, "");
        assert_int_equal(counted(&b, KUBE_COUNTER_SKIPPED_MALFORMED), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_MODIFIED), 1);
        assert_int_equal(counted(&b, KUBE_COUNTER_EVENTS_DELETED), 1);

        /* in a list too */
        kube_reflector_relist(b.r, KUBE_RELIST_ROOM, false, b.io.now_ms);
        bed_process(&b);
        snprintf(text, sizeof(text),
                 LIST("9", "", "{" META("bad", "9") ",%s},"
                      SERVICE("web", "3")), rests[i]);
        io_answer(&b.io, bed_x(&b), 200, text);
        assert_string_equal(drained(&b),
                            "[ X:shop/bad(malformed) R:shop/web@3 ]");
        bed_done(&b);
    }
}


static void
test_older_event(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    bed_cut(&b, EVENT("ADDED", FULL("web", "4")));
    assert_string_equal(drained(&b), "");
    assert_rv(&b, "5");
    assert_int_equal(counted(&b, KUBE_COUNTER_ERRORS_OTHER), 1);
    bed_process(&b);
    (void) bed_sleep(&b);
    assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=5&"
                                            "resourceVersionMatch="));
    bed_done(&b);
}


static void
test_lagging_list(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_watch(&b);
    kube_reflector_relist(b.r, KUBE_RELIST_ROOM, false, b.io.now_ms);
    bed_process(&b);
    assert_int_equal(counted(&b, KUBE_COUNTER_RELISTS_ROOM), 1);

    io_answer(&b.io, bed_x(&b), 200, LIST("4", "", SERVICE("web", "3")));
    assert_string_equal(drained(&b), "");
    bed_process(&b);
    assert_true(bed_sleep(&b) >= 400);
    io_answer(&b.io, bed_x(&b), 200, LIST("6", "", SERVICE("web", "3")));
    assert_string_equal(drained(&b), "[ R:shop/web@3 ]");
    assert_false(kube_reflector_rollback(b.r));
    bed_done(&b);
}


static void
test_rollback(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_init(&b);
    bed_start(&b, "5000");
    io_answer(&b.io, bed_x(&b), 504,
              STATUS(504, "Timeout", "\"details\":{\"causes\":[{\"reason\":"
                     "\"ResourceVersionTooLarge\"}]},"));
    bed_process(&b);

    for (i = 0; i < 20; i++) {
        assert_string_equal(bed_x(&b)->path, "/api/v1/services?limit=2");
        io_answer(&b.io, bed_x(&b), 200, LIST("40", "", SERVICE("web", "3")));
        bed_process(&b);

        if (kube_reflector_rollback(b.r)) {
            break;
        }

        assert_string_equal(drained(&b), "");
        assert_rv(&b, "5000");
        (void) bed_sleep(&b);
    }

    assert_in_range(i, 1, 19);
    assert_false(kube_reflector_rollback(b.r));
    assert_string_equal(drained(&b), "[ R:shop/web@3 ]");
    assert_rv(&b, "40");
    assert_non_null(strstr(bed_x(&b)->path, "resourceVersion=40&"));
    bed_done(&b);
}


/*
 * The version never moves past what the FIFO took: where an event finds no
 * memory the watch is resumed in front of it, and it comes again.
 */
static void
test_version_waits_for_memory(void **state)
{
    bed_t           b;
    size_t          k, refused;
    alloc_test_t    at;
    io_exchange_t  *x;

    (void) state;

    refused = 0;

    for (k = 1; k < 64; k++) {
        alloc_test_init(&at);
        bed_make(&b, &at.alloc, "", 1024);
        bed_watch(&b);
        x = bed_x(&b);
        assert_true(io_body(&b.io, x, EVENT("ADDED", FULL("web", "6"))));
        assert_string_equal(drained(&b), "U:shop/web@6");

        b.io.now_ms += 2000;
        alloc_test_fail(&at, k, false);
        (void) io_body(&b.io, x, EVENT("ADDED", FULL("api", "7")));
        bed_process(&b);
        alloc_test_heal(&at);

        if (b.io.started == 1 && x->live) {
            assert_rv(&b, "7");
            assert_string_equal(drained(&b), "U:shop/api@7");
            bed_done(&b);
            alloc_test_assert_no_leak(&at);
            continue;
        }

        refused++;
        assert_rv(&b, "6");
        assert_string_equal(drained(&b), "");

        if (io_find(&b.io, "/") == NULL) {
            (void) bed_sleep(&b);
        }

        x = bed_x(&b);
        assert_non_null(strstr(x->path, "resourceVersion=6&"));
        assert_non_null(strstr(x->path, "watch=true"));
        assert_true(io_head(x, 200, "application/json", 0));
        assert_true(io_body(&b.io, x, EVENT("ADDED", FULL("api", "7"))));
        assert_string_equal(drained(&b), "U:shop/api@7");
        assert_rv(&b, "7");

        bed_done(&b);
        alloc_test_assert_no_leak(&at);
    }

    assert_true(refused != 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_version_waits_for_memory),
        cmocka_unit_test(test_not_a_list),
        cmocka_unit_test(test_never_listed),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_endless_refusal),
        cmocka_unit_test(test_refusal_without_end),
        cmocka_unit_test(test_not_acceptable_without_end),
        cmocka_unit_test(test_content_type),
        cmocka_unit_test(test_expired),
        cmocka_unit_test(test_granted_for_nothing),
        cmocka_unit_test(test_error_events),
        cmocka_unit_test(test_unauthorized),
        cmocka_unit_test(test_no_memory_for_an_event),
        cmocka_unit_test(test_no_memory_is_over),
        cmocka_unit_test(test_no_memory_then_another),
        cmocka_unit_test(test_one_trouble),
        cmocka_unit_test(test_transport_errors),
        cmocka_unit_test(test_malformed_stream),
        cmocka_unit_test(test_unreadable_envelope),
        cmocka_unit_test(test_undecodable_object),
        cmocka_unit_test(test_older_event),
        cmocka_unit_test(test_lagging_list),
        cmocka_unit_test(test_rollback),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

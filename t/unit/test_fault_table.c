/*
 * test_fault_table - what an API server may answer at each point of a list and
 * a watch, once: status codes, values of Retry-After, ERROR events.
 *
 * An honest server answers all but one request.  Whatever the fault is, the
 * store ends as that server is, by few requests, each of which asks for what
 * it should, after the pause that it should.  Bytes on the wire are not looked
 * at here: test_transport.c, t/converge.  t/FAULTS.md has the whole table.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "script_bed.h"


#define HTML  "<html>no</html>"
#define JSON  "application/json"

/* The truth: three objects in two pages at 10, and a fourth at 11. */
#define PAGE_1   SERVICE("p0", "1") "," SERVICE("p1", "2")
#define PAGE_2   SERVICE("p2", "3")
#define INITIAL  EVENT("ADDED", FULL("p0", "1")) EVENT("ADDED",               \
                 FULL("p1", "2")) EVENT("ADDED", FULL("p2", "3"))
#define LATER    EVENT("ADDED", FULL("p3", "11"))
#define TRUTH    "p0@1 p1@2 p2@3 p3@11"

/* Where the fault comes. */
typedef enum {
    FIRST_PAGE = 0,
    NEXT_PAGE,
    WATCH,
    STREAM,          /* in place of a WatchList */
    IN_STREAM,       /* in a WatchList that has sent p0 */
    IN_WATCH,        /* in a watch that has sent p3 */
    PHASES
} phase_t;

/* What a fault is taken for. */
typedef enum {
    ODD = 0,
    INVALID,
    DENIED,
    EXPIRED_RV,
    TOO_LARGE_RV,
    UNAUTHORIZED,
    RETRY_AFTER,     /* waits_s at least, spread over half as much again */
    VERDICTS
} verdict_t;

/* How the next request comes: after a step of the backoff, or at once. */
typedef enum {
    LATER_ON = 0,
    AT_ONCE
} pace_t;

#define STEP_MIN_MS     400
#define STEP_MAX_MS     800

typedef struct {
    const char  *name;
    int          code;             /* 0: none but an end with KUBE_PROTO */
    const char  *type;             /* NULL: JSON */
    const char  *body;             /* NULL: none */
    uint32_t     retry_after_s;
    verdict_t    verdict;
    uint32_t     waits_s;          /* RETRY_AFTER: at least */
} fault_t;

typedef struct {
    const char  *asked;
    pace_t       pace;
} next_t;

static const next_t  nexts[VERDICTS][PHASES] = {
    [ODD] = {
        [FIRST_PAGE] = { "LIST rv=0 limit=2", LATER_ON },
        [NEXT_PAGE] = { "LIST rv=10 NotOlderThan limit=2", LATER_ON },
        [WATCH] = { "WATCH rv=10", LATER_ON },
        [STREAM] = { "WATCHLIST rv=", LATER_ON },
        [IN_STREAM] = { "WATCHLIST rv=1", LATER_ON },
        [IN_WATCH] = { "WATCH rv=11", LATER_ON }
    },
    [INVALID] = {
        [FIRST_PAGE] = { "LIST rv= limit=2", LATER_ON },
        [NEXT_PAGE] = { "LIST rv= limit=2", LATER_ON },
        [WATCH] = { "WATCH rv=10", LATER_ON },
        [STREAM] = { "LIST rv=0 limit=2", AT_ONCE },
        [IN_STREAM] = { "LIST rv=1 NotOlderThan limit=2", AT_ONCE },
        [IN_WATCH] = { "WATCH rv=11", LATER_ON }
    },
    [DENIED] = {
        [FIRST_PAGE] = { "LIST rv=0 limit=2", LATER_ON },
        [NEXT_PAGE] = { "LIST rv=10 NotOlderThan limit=2", LATER_ON },
        [WATCH] = { "WATCH rv=10", LATER_ON },
        [STREAM] = { "LIST rv=0 limit=2", AT_ONCE },
        [IN_STREAM] = { "LIST rv=1 NotOlderThan limit=2", AT_ONCE },
        [IN_WATCH] = { "WATCH rv=11", LATER_ON }
    },
    [EXPIRED_RV] = {
        [FIRST_PAGE] = { "LIST rv= limit=2", AT_ONCE },
        [NEXT_PAGE] = { "LIST rv=10 NotOlderThan", AT_ONCE },
        [WATCH] = { "LIST rv=10 NotOlderThan limit=2", AT_ONCE },
        [STREAM] = { "LIST rv= limit=2", AT_ONCE },
        [IN_STREAM] = { "LIST rv= limit=2", AT_ONCE },
        [IN_WATCH] = { "LIST rv=11 NotOlderThan limit=2", AT_ONCE }
    },
    [TOO_LARGE_RV] = {
        [FIRST_PAGE] = { "LIST rv= limit=2", AT_ONCE },
        [NEXT_PAGE] = { "LIST rv= limit=2", AT_ONCE },
        [WATCH] = { "LIST rv= limit=2", AT_ONCE },
        [STREAM] = { "LIST rv= limit=2", AT_ONCE },
        [IN_STREAM] = { "LIST rv= limit=2", AT_ONCE },
        [IN_WATCH] = { "LIST rv= limit=2", AT_ONCE }
    },
    [UNAUTHORIZED] = {
        [FIRST_PAGE] = { "LIST rv=0 limit=2", AT_ONCE },
        [NEXT_PAGE] = { "LIST rv=10 NotOlderThan limit=2", AT_ONCE },
        [WATCH] = { "WATCH rv=10", AT_ONCE },
        [STREAM] = { "WATCHLIST rv=", AT_ONCE },
        [IN_STREAM] = { "WATCHLIST rv=1", AT_ONCE },
        [IN_WATCH] = { "WATCH rv=11", AT_ONCE }
    },
    [RETRY_AFTER] = {
        [FIRST_PAGE] = { "LIST rv=0 limit=2", LATER_ON },
        [NEXT_PAGE] = { "LIST rv=10 NotOlderThan limit=2", LATER_ON },
        [WATCH] = { "WATCH rv=10", LATER_ON },
        [STREAM] = { "WATCHLIST rv=", LATER_ON },
        [IN_STREAM] = { "WATCHLIST rv=1", LATER_ON },
        [IN_WATCH] = { "WATCH rv=11", LATER_ON }
    }
};

static struct {
    bed_t           b;
    script_store_t  store;
    const fault_t  *fault;
    phase_t         phase;
    bool            done;          /* the fault */
    unsigned        requests;      /* after it */
    uint64_t        at_ms;
    uint64_t        pause_ms;      /* to the request after it */
    char            next[160];     /* what that asked for */
} now;

static const char *const  phase_names[PHASES] = {
    [FIRST_PAGE] = "first page",
    [NEXT_PAGE] = "next page",
    [WATCH] = "watch",
    [STREAM] = "WatchList",
    [IN_STREAM] = "in a WatchList",
    [IN_WATCH] = "in a watch"
};


static phase_t
asked_phase(const char *asked)
{
    return strncmp(asked, "WATCHLIST", 9) == 0 ? STREAM
           : strncmp(asked, "WATCH", 5) == 0 ? WATCH
           : strncmp(asked, "LIST continue", 13) == 0 ? NEXT_PAGE
           : FIRST_PAGE;
}


static void
answer_honestly(io_exchange_t *x, const char *asked)
{
    bool    paged;
    bed_t  *b = &now.b;

    paged = strstr(asked, "limit=2") != NULL;

    switch (asked_phase(asked)) {

    case FIRST_PAGE:

        /* who was told of p3 gets no list from before it */
        if (now.phase == IN_WATCH && now.done) {
            io_answer(&b->io, x, 200, LIST("11", "", PAGE_1 "," PAGE_2 ","
                                           SERVICE("p3", "11")));
            break;
        }

        io_answer(&b->io, x, 200, paged ? LIST("10", ",\"continue\":\"c1\"",
                                               PAGE_1)
                                        : LIST("10", "", PAGE_1 "," PAGE_2));
        break;

    case NEXT_PAGE:
        io_answer(&b->io, x, 200, LIST("10", "", PAGE_2));
        break;

    case STREAM:
        assert_true(io_head(x, 200, JSON, 0));
        assert_true(io_body(&b->io, x, INITIAL INITIAL_END("10", "\"true\"")
                                       LATER));
        break;

    default:
        assert_true(io_head(x, 200, JSON, 0));

        if (strcmp(asked, "WATCH rv=10") == 0) {
            assert_true(io_body(&b->io, x, LATER));

        } else {
            assert_string_equal(asked, "WATCH rv=11");
        }
    }
}


static void
answer_with_fault(io_exchange_t *x)
{
    bool            again;
    const fault_t  *f = now.fault;

    now.done = true;
    now.at_ms = now.b.io.now_ms;

    if (now.phase == IN_STREAM || now.phase == IN_WATCH) {
        assert_true(io_head(x, 200, JSON, 0));
        assert_true(io_body(&now.b.io, x, now.phase == IN_WATCH
                                          ? LATER
                                          : EVENT("ADDED", FULL("p0", "1"))));
        bed_process(&now.b);
        (void) io_body(&now.b.io, x, f->body);

    } else if (f->code == 0) {
        io_done(x, KUBE_PROTO, "scripted");

    } else {
        again = (x->encoding == KUBE_ENCODING_AUTO
                 && (f->code == 406 || f->code == 415));

        if (io_head(x, f->code, f->type ? f->type : JSON, f->retry_after_s)
            && io_body(&now.b.io, x, f->body ? f->body : ""))
        {
            io_done(x, KUBE_OK, "");
        }

        /* the same request, with nothing but JSON in its Accept */

        if (again) {
            bed_process(&now.b);
            x = io_find(&now.b.io, "/");
            assert_int_equal(x->encoding, KUBE_ENCODING_JSON);
            answer_with_fault(x);
        }
    }
}


/* Where the fault's request is one of these. */
static phase_t
fault_request(void)
{
    return (now.phase == IN_WATCH) ? WATCH
           : (now.phase == IN_STREAM) ? STREAM : now.phase;
}


static void
answer(void)
{
    unsigned        sleeps;
    const char     *asked;
    io_exchange_t  *x;

    sleeps = 0;
    x = script_next(&now.b, &sleeps);
    asked = script_asked(x);

    if (now.done && now.requests++ == 0) {
        now.pause_ms = now.b.io.now_ms - now.at_ms;
        snprintf(now.next, sizeof(now.next), "%s", asked);
    }

    if (!now.done && asked_phase(asked) == fault_request()) {
        answer_with_fault(x);

    } else {
        answer_honestly(x, asked);
    }

    bed_process(&now.b);
    (void) script_take(&now.b, &now.store);
}


static bool
is_whole(void)
{
    return now.done && now.requests != 0
           && strcmp(script_holds(&now.store), TRUTH) == 0
           && io_find(&now.b.io, "watch=true") != NULL;
}


static void
check_next(void)
{
    uint64_t        min_ms, max_ms;
    const next_t   *next;
    const fault_t  *f = now.fault;

    next = &nexts[f->verdict][now.phase];
    min_ms = (next->pace == AT_ONCE) ? 0 : STEP_MIN_MS;
    max_ms = (next->pace == AT_ONCE) ? 0 : STEP_MAX_MS;

    if (f->waits_s != 0) {
        min_ms = 1000ull * f->waits_s;
        max_ms += 1500ull * f->waits_s;
    }

    if (next->asked == NULL
        || strcmp(now.next, next->asked) != 0
        || now.pause_ms < min_ms
        || now.pause_ms > max_ms)
    {
        fail_msg("%s, %s: then %s after %llu ms", f->name,
                 phase_names[now.phase], now.next,
                 (unsigned long long) now.pause_ms);
    }

    assert_int_equal(now.b.io.credentials, f->verdict == UNAUTHORIZED);
    assert_true(now.requests <= 4);
}


static void
try_fault(const fault_t *f, phase_t phase)
{
    unsigned  n;

    memset(&now, 0, sizeof(now));
    now.fault = f;
    now.phase = phase;

    bed_make_for(&now.b, NULL, "", 1024, (phase == STREAM
                                          || phase == IN_STREAM)
                                         ? KUBE_WATCH_LIST_AUTO
                                         : KUBE_WATCH_LIST_OFF);
    assert_non_null(now.b.r);
    bed_start(&now.b, "");

    for (n = 0; !is_whole() && n < 12; n++) {
        answer();
    }

    if (!is_whole()) {
        fail_msg("%s, %s: it holds %s", f->name, phase_names[phase],
                 script_holds(&now.store));
    }

    check_next();
    bed_done(&now.b);
}


static const fault_t  statuses[] = {
    { .name = "200, empty", .code = 200, .body = "" },
    { .name = "200, HTML", .code = 200, .body = HTML },
    { .name = "200, another type", .code = 200, .type = "text/html",
      .body = "{}" },
    { .name = "100", .code = 100 },
    { .name = "103", .code = 103 },
    { .name = "204", .code = 204 },
    { .name = "206", .code = 206, .body = LIST("10", "", "") },
    { .name = "301", .code = 301 },
    { .name = "302", .code = 302 },
    { .name = "303", .code = 303 },
    { .name = "307", .code = 307 },
    { .name = "308", .code = 308, .body = HTML },
    { .name = "400", .code = 400, .verdict = INVALID },
    { .name = "401", .code = 401, .verdict = UNAUTHORIZED },
    { .name = "403", .code = 403, .verdict = DENIED },
    { .name = "404", .code = 404, .verdict = DENIED,
      .body = "404 page not found" },
    { .name = "405", .code = 405 },
    { .name = "406", .code = 406 },
    { .name = "408", .code = 408 },
    { .name = "409", .code = 409 },
    { .name = "410", .code = 410, .verdict = EXPIRED_RV },
    { .name = "413", .code = 413 },
    { .name = "415", .code = 415 },
    { .name = "422", .code = 422, .verdict = INVALID },
    { .name = "426", .code = 426 },
    { .name = "429", .code = 429, .retry_after_s = 2,
      .verdict = RETRY_AFTER, .waits_s = 2 },
    { .name = "431", .code = 431 },
    { .name = "500", .code = 500 },
    { .name = "501", .code = 501 },
    { .name = "502", .code = 502, .body = HTML },
    { .name = "503", .code = 503, .retry_after_s = 2,
      .verdict = RETRY_AFTER, .waits_s = 2 },
    { .name = "504, too large", .code = 504, .verdict = TOO_LARGE_RV,
      .body = STATUS(504, "Timeout", "\"details\":{\"causes\":[{\"reason\":"
                     "\"ResourceVersionTooLarge\"}]},") },
    { .name = "504", .code = 504, .body = STATUS(504, "Timeout", "") },
    { .name = "599", .code = 599 },
    { .name = "999", .code = 999 },
    { .name = "099", .code = 0 },
    { .name = "2 00", .code = 0 }
};


static void
test_statuses(void **state)
{
    size_t   i;
    phase_t  phase;

    (void) state;

    for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        for (phase = FIRST_PAGE; phase <= STREAM; phase++) {
            try_fault(&statuses[i], phase);
        }
    }
}


/* As libcurl gives it on, 0 for none; of texts: test_transport. */
static void
test_retry_after(void **state)
{
    size_t   i, code;
    fault_t  f;

    static const uint32_t  seconds[] = { 0, 1, 5, 30, 300 };

    (void) state;

    for (i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
        for (code = 0; code < 2; code++) {
            f = (fault_t) {
                .name = "Retry-After",
                .code = code ? 503 : 429,
                .retry_after_s = seconds[i],
                .verdict = RETRY_AFTER,
                .waits_s = seconds[i]
            };
            try_fault(&f, FIRST_PAGE);
            try_fault(&f, WATCH);
        }
    }
}


#define REASON(c, reason)  EVENT("ERROR", STATUS(c, reason, ""))

static const fault_t  reasons[] = {
    { .name = "no reason", .body = REASON(500, "") },
    { .name = "Unauthorized", .body = REASON(401, "Unauthorized"),
      .verdict = UNAUTHORIZED },
    { .name = "Forbidden", .body = REASON(403, "Forbidden"),
      .verdict = DENIED },
    { .name = "NotFound", .body = REASON(404, "NotFound"),
      .verdict = DENIED },
    { .name = "AlreadyExists", .body = REASON(409, "AlreadyExists") },
    { .name = "Conflict", .body = REASON(409, "Conflict") },
    { .name = "Gone", .body = REASON(410, "Gone"),
      .verdict = EXPIRED_RV },
    { .name = "Invalid", .body = REASON(422, "Invalid"),
      .verdict = INVALID },
    { .name = "ServerTimeout", .body = REASON(500, "ServerTimeout") },
    { .name = "StorageReadError", .body = REASON(500, "StorageReadError") },
    { .name = "Timeout", .body = REASON(504, "Timeout") },
    { .name = "TooManyRequests", .verdict = RETRY_AFTER, .waits_s = 2,
      .body = EVENT("ERROR", STATUS(429, "TooManyRequests", "\"details\":"
                                    "{\"retryAfterSeconds\":2},")) },
    { .name = "BadRequest", .body = REASON(400, "BadRequest"),
      .verdict = INVALID },
    { .name = "MethodNotAllowed", .body = REASON(405, "MethodNotAllowed") },
    { .name = "NotAcceptable", .body = REASON(406, "NotAcceptable") },
    { .name = "RequestEntityTooLarge",
      .body = REASON(413, "RequestEntityTooLarge") },
    { .name = "UnsupportedMediaType",
      .body = REASON(415, "UnsupportedMediaType") },
    { .name = "InternalError", .body = REASON(500, "InternalError") },
    { .name = "Expired", .body = REASON(410, "Expired"),
      .verdict = EXPIRED_RV },
    { .name = "ServiceUnavailable", .body = REASON(503, "ServiceUnavailable") }
};


static void
test_reasons(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        try_fault(&reasons[i], IN_STREAM);
        try_fault(&reasons[i], IN_WATCH);
    }
}


#define ERROR(object)  EVENT("ERROR", object)

static const fault_t  shapes[] = {
    { .name = "no Status", .body = ERROR("{\"kind\":\"Pod\"}") },
    { .name = "a text", .body = ERROR("\"no\"") },
    { .name = "null", .body = ERROR("null") },
    { .name = "no code", .body = ERROR("{\"kind\":\"Status\","
                                       "\"reason\":\"Conflict\"}") },
    { .name = "code as string", .body = ERROR("{\"kind\":\"Status\","
                                              "\"code\":\"410\"}") },
    { .name = "code 0", .body = ERROR("{\"kind\":\"Status\","
                                      "\"code\":0}") },
    { .name = "unknown reason", .body = REASON(499, "Whatever") },
    { .name = "details null",
      .body = ERROR(STATUS(500, "InternalError", "\"details\":null,")) },
    { .name = "too large, as a cause", .verdict = TOO_LARGE_RV,
      .body = ERROR(STATUS(504, "Timeout", "\"details\":{\"causes\":[{"
                           "\"reason\":\"ResourceVersionTooLarge\"}]},")) },
    { .name = "too large, as a message", .verdict = TOO_LARGE_RV,
      .body = ERROR("{\"kind\":\"Status\",\"code\":504,\"reason\":"
                    "\"Timeout\",\"message\":\"Too large resource version: "
                    "40, current: 1\"}") },
    { .name = "two in a row", .body = REASON(500, "InternalError")
                                      REASON(410, "Expired") },
    { .name = "then more events", .body = REASON(500, "InternalError")
                                          EVENT("ADDED", FULL("no", "12"))
                                          EVENT("DELETED", FULL("p0", "13")) },
    { .name = "then garbage", .body = REASON(500, "InternalError") "rubb" }
};


/* Nothing behind an ERROR event is looked at. */
static void
test_shapes(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        try_fault(&shapes[i], IN_STREAM);
        try_fault(&shapes[i], IN_WATCH);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_shapes)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

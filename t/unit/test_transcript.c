/*
 * test_transcript - what was recorded is replayed byte for byte, whoever asks
 * and in whatever pieces it came; and any bytes may be read as a transcript.
 *
 * The relation: the owner of an exchange is told the same by the transcript as
 * by the io that was recorded.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "io_bed.h"

#include "kube_transcript.h"


#define OWNERS  4

/* An owner of one exchange, and all that it was told. */
typedef struct {
    kube_io_t         io;
    kube_exchange_t  *exchange;      /* NULL: it is over */
    size_t            aborts_at;     /* bytes; 0: never */
    bool              cancels;       /* at its first bytes */
    size_t            n;
    char              told[4096];
} owner_t;

typedef struct {
    alloc_test_t      at;
    io_bed_t          io;
    kube_recorder_t  *recorder;
    size_t            n;
    char              text[32768];
} record_t;

static record_t  record;
static owner_t   owners[OWNERS], again[OWNERS];

static const struct {
    kube_resource_t   resource;
    const char       *ns;
    bool              watch;
    const char       *rv;
} asked[OWNERS] = {
    { KUBE_RESOURCE_SERVICES, "", false, "" },
    { KUBE_RESOURCE_SERVICES, "", true, "5" },
    { KUBE_RESOURCE_ENDPOINTSLICES, "shop", true, "7" },
    { KUBE_RESOURCE_SERVICES, "", false, "" }
};


static kube_take_t
owner_response(void *ctx, const kube_response_t *response)
{
    owner_t  *o = ctx;

    o->n += (size_t) snprintf(o->told + o->n, sizeof(o->told) - o->n,
                              "[%d %u %.*s]", response->code,
                              response->retry_after_s,
                              (int) response->content_type.len,
                              response->content_type.data);

    return KUBE_TAKE_MORE;
}


static kube_take_t
owner_bytes(void *ctx, const char *data, size_t len)
{
    owner_t  *o = ctx;

    assert_true(o->n + len < sizeof(o->told));
    memcpy(o->told + o->n, data, len);
    o->n += len;

    if (o->cancels) {
        o->io.cancel(o->io.ctx, o->exchange);
        o->exchange = NULL;
        return KUBE_TAKE_MORE;
    }

    return (o->aborts_at != 0 && o->n >= o->aborts_at) ? KUBE_TAKE_ABORT
                                                       : KUBE_TAKE_MORE;
}


static void
owner_done(void *ctx, kube_rc_t rc, const char *text)
{
    owner_t  *o = ctx;

    (void) text;

    o->exchange = NULL;
    o->n += (size_t) snprintf(o->told + o->n, sizeof(o->told) - o->n,
                              "(%s)", kube_rc_text(rc));
}


static const kube_exchange_handler_t  owner_handler = {
    owner_response,
    owner_bytes,
    owner_done
};


static kube_rc_t
owner_ask(owner_t *o, const kube_io_t *io, unsigned i, uint32_t timeout_s,
    uint64_t now_ms)
{
    kube_request_t  request;

    memset(o, 0, sizeof(owner_t));
    memset(&request, 0, sizeof(request));

    o->io = *io;
    request.resource = asked[i].resource;
    request.ns = kube_str(asked[i].ns);
    request.watch = asked[i].watch;
    request.rv = kube_str(asked[i].rv);
    request.timeout_s = timeout_s;

    return io->start(io->ctx, &request, &owner_handler, o, now_ms,
                     &o->exchange);
}


static void
record_write(void *ctx, const char *data, size_t len)
{
    record_t  *r = ctx;

    assert_true(r->n + len < sizeof(r->text));
    memcpy(r->text + r->n, data, len);
    r->n += len;
}


/*
 * Four requests of which two are of one path: a list, a watch that goes on, one
 * that is refused, and a list that is cut off.
 */
static void
record_make(void)
{
    unsigned        i;
    kube_io_t       io;
    io_exchange_t  *x[OWNERS];

    memset(&record, 0, sizeof(record));
    alloc_test_init(&record.at);
    record.io.now_ms = 1000;

    io = io_of(&record.io);
    record.recorder = kube_recorder_create(&record.at.alloc, &io,
                                           record_write, &record);
    assert_non_null(record.recorder);
    io = kube_recorder_io(record.recorder);

    for (i = 0; i < OWNERS; i++) {
        assert_int_equal(owner_ask(&owners[i], &io, i, 300 + i,
                                   record.io.now_ms),
                         KUBE_OK);
        x[i] = io_find(&record.io, "/");
        record.io.now_ms += 10;
    }

    io_answer(&record.io, x[0], 200, "{\"a\n\n\":1}\nbytes 1 1 1\n");
    record.io.now_ms += 100;

    assert_true(io_head(x[1], 200, "application/json", 0));
    assert_true(io_body(&record.io, x[1], "{one}\n"));
    record.io.chunk = 3;
    assert_true(io_body(&record.io, x[1], "{two}\n"));
    record.io.now_ms += 100;

    assert_true(io_head(x[2], 429, "text/plain", 7));
    assert_true(io_body(&record.io, x[2], "later"));
    io_done(x[2], KUBE_OK, "");

    assert_true(io_head(x[3], 200, "application/json", 0));
    io_done(x[3], KUBE_CLOSED, "cut off: Bearer secret");

    /* what is asked of one exchange is asked of the one that is recorded */
    assert_false(io.suspect(io.ctx, owners[1].exchange));
    record.io.suspect = x[1];
    assert_true(io.suspect(io.ctx, owners[1].exchange));
    assert_int_equal(io.healed(io.ctx), record.io.healed);

    io.cancel(io.ctx, owners[1].exchange);
    kube_recorder_destroy(record.recorder);
    alloc_test_assert_no_leak(&record.at);
}


static kube_transcript_t *
replay_make(alloc_test_t *at, bool at_once)
{
    kube_error_t        error;
    kube_transcript_t  *t;

    alloc_test_init(at);
    t = kube_transcript_create(&at->alloc,
                               (kube_str_t) { record.text, record.n },
                               at_once, &error);
    assert_non_null(t);

    return t;
}


/* All that is due now. */
static void
replay_now(kube_transcript_t *t, uint64_t now_ms)
{
    while (kube_transcript_deadline(t) <= now_ms) {
        kube_transcript_process(t, now_ms);
    }
}


/* One entry a call, in the order in which they were recorded. */
static void
test_one_at_a_time(void **state)
{
    size_t              n, told;
    unsigned            i, steps;
    kube_io_t           io;
    alloc_test_t        at;
    kube_transcript_t  *t;

    (void) state;

    record_make();
    t = replay_make(&at, true);
    io = kube_transcript_io(t);

    for (i = 0; i < OWNERS; i++) {
        assert_int_equal(owner_ask(&again[i], &io, i, 1, 5), KUBE_OK);
    }

    for (steps = 0; kube_transcript_deadline(t) == 0; steps++) {
        n = again[0].n + again[1].n + again[2].n + again[3].n;
        kube_transcript_process(t, 5);
        told = again[0].n + again[1].n + again[2].n + again[3].n;
        assert_true(told > n);

        /* the list was answered whole before the watch was opened */
        assert_true(again[1].n == 0 || again[0].exchange == NULL);
    }

    /* heads 4; bodies 1, 1 + 2 by three bytes, and 2; ends 3 */
    assert_int_equal(steps, 13);

    kube_transcript_destroy(t);
    alloc_test_assert_no_leak(&at);
}


static void
test_the_same_is_told(void **state)
{
    unsigned            i, order;
    uint64_t            now_ms, ms;
    kube_io_t           io;
    alloc_test_t        at;
    kube_transcript_t  *t;

    (void) state;

    record_make();

    /* at once and by the clock; asked in the same order and in another */

    for (order = 0; order < 4; order++) {
        t = replay_make(&at, order & 1);
        io = kube_transcript_io(t);
        now_ms = 777000;

        for (i = 0; i < OWNERS; i++) {
            assert_int_equal(owner_ask(&again[i], &io,
                                       (order & 2) ? (i + 1) % OWNERS : i,
                                       777, now_ms),
                             KUBE_OK);
        }

        for (ms = now_ms; ms != KUBE_NEVER; ms = kube_transcript_deadline(t)) {
            now_ms = (ms > now_ms) ? ms : now_ms;
            kube_transcript_process(t, now_ms);
            assert_int_equal(io.now(io.ctx), now_ms);
        }

        /* it took as long as it had taken, or no time */
        assert_int_equal(now_ms, (order & 1) ? 777000 : 777000 + 220);

        for (i = 0; i < OWNERS && !(order & 2); i++) {
            assert_int_equal(again[i].n, owners[i].n);
            assert_memory_equal(again[i].told, owners[i].told, owners[i].n);
        }

        /* of one path, the one asked first is answered as the first was */

        if (order & 2) {
            assert_string_equal(again[2].told, owners[0].told);
            assert_string_equal(again[3].told, owners[3].told);
        }

        assert_false(io.suspect(io.ctx, again[(order & 2) ? 0 : 1].exchange));
        assert_int_equal(io.healed(io.ctx), 0);

        /* the watch is open still; nobody may be told twice */
        assert_non_null(again[(order & 2) ? 0 : 1].exchange);
        assert_int_equal(owner_ask(&again[0], &io, 0, 0, now_ms), KUBE_OK);
        assert_int_equal(kube_transcript_deadline(t), 0);
        kube_transcript_process(t, now_ms);
        assert_string_equal(again[0].told, "(the peer closed the connection)");

        kube_transcript_destroy(t);
        alloc_test_assert_no_leak(&at);
    }
}


static void
test_nothing_secret(void **state)
{
    (void) state;

    record_make();
    record.text[record.n] = '\0';

    assert_non_null(strstr(record.text, "request 1 1000 /api/v1/services"));
    assert_null(strstr(record.text, "secret"));
    assert_null(strstr(record.text, "Bearer"));
}


/* Owners that abort, cancel in a handler, and pause. */
static void
test_owners_that_end(void **state)
{
    kube_io_t           io;
    alloc_test_t        at;
    kube_transcript_t  *t;

    (void) state;

    record_make();
    t = replay_make(&at, true);
    io = kube_transcript_io(t);

    assert_int_equal(owner_ask(&again[0], &io, 0, 0, 5), KUBE_OK);
    assert_int_equal(owner_ask(&again[1], &io, 1, 0, 5), KUBE_OK);
    again[0].cancels = true;
    again[1].aborts_at = 1;
    replay_now(t, 5);

    assert_null(again[0].exchange);
    assert_string_equal(again[1].told, "[200 0 application/json]{one}\n"
                                       "(the peer closed the connection)");

    assert_int_equal(owner_ask(&again[2], &io, 2, 0, 5), KUBE_OK);
    assert_true(kube_transcript_deadline(t) == 0);

    kube_transcript_destroy(t);
    alloc_test_assert_no_leak(&at);
}


/* Cut anywhere, or with any one byte changed: an error, or a transcript. */
static void
test_any_bytes(void **state)
{
    char               *copy;
    size_t              len, i;
    unsigned            bad;
    kube_error_t        error;
    alloc_test_t        at;
    kube_transcript_t  *t;

    (void) state;

    record_make();
    bad = 0;

    for (len = 0; len <= record.n; len++) {
        alloc_test_init(&at);
        copy = malloc(len + 1);
        assert_non_null(copy);
        memcpy(copy, record.text, len);
        t = kube_transcript_create(&at.alloc, (kube_str_t) { copy, len }, true,
                                   &error);
        bad += (t == NULL);
        assert_true(t != NULL || error.rc == KUBE_INVALID);
        assert_true(t != NULL || error.offset <= len);
        kube_transcript_destroy(t);
        free(copy);
        alloc_test_assert_no_leak(&at);
    }

    assert_true(bad > record.n / 2);

    for (i = 0; i < record.n; i++) {
        alloc_test_init(&at);
        record.text[i] ^= 1;
        t = kube_transcript_create(&at.alloc,
                                   (kube_str_t) { record.text, record.n },
                                   true, &error);
        kube_transcript_destroy(t);
        record.text[i] ^= 1;
        alloc_test_assert_no_leak(&at);
    }
}


static kube_rc_t
transcript_oom(kube_alloc_t *alloc, void *ctx)
{
    unsigned            i;
    kube_io_t           io;
    kube_rc_t           rc;
    kube_error_t        error;
    kube_transcript_t  *t;

    (void) ctx;

    t = kube_transcript_create(alloc, (kube_str_t) { record.text, record.n },
                               true, &error);
    if (t == NULL) {
        return error.rc;
    }

    io = kube_transcript_io(t);
    rc = KUBE_OK;

    for (i = 0; rc == KUBE_OK && i < OWNERS; i++) {
        rc = owner_ask(&again[i], &io, i, 0, 5);
    }

    replay_now(t, 5);
    kube_transcript_destroy(t);

    return rc;
}


static kube_rc_t
recorder_oom(kube_alloc_t *alloc, void *ctx)
{
    kube_io_t         io;
    kube_rc_t         rc;
    kube_recorder_t  *recorder;

    (void) ctx;

    memset(&record, 0, sizeof(record));
    io = io_of(&record.io);

    recorder = kube_recorder_create(alloc, &io, record_write, &record);
    if (recorder == NULL) {
        return KUBE_NOMEM;
    }

    io = kube_recorder_io(recorder);
    rc = owner_ask(&again[0], &io, 0, 0, 0);

    if (rc == KUBE_OK) {
        io.cancel(io.ctx, again[0].exchange);
    }

    kube_recorder_destroy(recorder);

    return rc;
}


static void
test_transcript_oom(void **state)
{
    (void) state;

    record_make();
    ALLOC_TEST_EACH(transcript_oom, NULL);
    ALLOC_TEST_EACH(recorder_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_the_same_is_told),
        cmocka_unit_test(test_nothing_secret),
        cmocka_unit_test(test_owners_that_end),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_transcript_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * io_bed - a kube_io_t without a network: requests are kept as paths, and the
 * test says what is answered, in pieces of any size.
 *
 * For the tests of kube_api_lister_watcher and kube_transcript, and for the
 * other beds; not part of the product.  It keeps the transport's contracts:
 * handlers run inside io_*() calls of the test only, done() is last, PAUSE
 * holds back what is left, ABORT ends with KUBE_CLOSED.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_IO_BED_H
#define KUBE_IO_BED_H


#include <stdio.h>

#include "alloc_test.h"

#include "kube_client.h"


#define IO_EXCHANGES_MAX  16

/* Of one exchange; whoever needs more says so before including this. */
#ifndef IO_BODY_MAX
#define IO_BODY_MAX       (KUBE_TICK_BYTES + (64u << 10))
#endif

typedef struct {
    bool                            live;
    bool                            headed;
    bool                            paused;
    unsigned                        number;     /* counts from 1 */
    uint64_t                        started_ms;
    size_t                          server;
    char                            path[1024];
    kube_encoding_t                 encoding;
    const kube_exchange_handler_t  *handler;
    void                           *ctx;
    size_t                          held_len;
    char                            held[IO_BODY_MAX];
} io_exchange_t;

typedef struct {
    io_exchange_t  exchanges[IO_EXCHANGES_MAX];
    unsigned       started;
    unsigned       cancelled;
    unsigned       resumed;
    unsigned       credentials;
    unsigned       verdicts[KUBE_SERVER_GRANTS + 1];
    size_t         chunk;          /* bytes a delivery; 0: all at once */
    io_exchange_t *suspect;        /* its peer is silent; NULL: none */
    uint64_t       healed;
    kube_rc_t      start_rc;       /* of the next start */
    const char    *remedy;         /* where there are no credentials */
    size_t         server;         /* that is asked */
    uint64_t       now_ms;
} io_bed_t;


static inline kube_rc_t
io_start(void *ctx, const kube_request_t *request,
    const kube_exchange_handler_t *handler, void *handler_ctx,
    uint64_t now_ms, kube_exchange_t **exchange)
{
    unsigned        i;
    kube_rc_t       rc;
    io_bed_t       *io = ctx;
    io_exchange_t  *x;

    assert_int_equal(now_ms, io->now_ms);

    if (io->start_rc != KUBE_OK) {
        rc = io->start_rc;
        io->start_rc = KUBE_OK;
        return rc;
    }

    for (i = 0; i < IO_EXCHANGES_MAX && io->exchanges[i].live; i++) {
        assert_ptr_not_equal(io->exchanges[i].ctx, handler_ctx);
    }

    assert_true(i < IO_EXCHANGES_MAX);

    x = &io->exchanges[i];
    x->live = true;
    x->headed = false;
    x->paused = false;
    x->number = ++io->started;
    x->started_ms = now_ms;
    x->server = io->server;
    x->handler = handler;
    x->ctx = handler_ctx;
    x->held_len = 0;
    x->encoding = request->encoding;

    assert_int_equal(kube_request_path(request, x->path, sizeof(x->path)),
                     KUBE_OK);

    *exchange = (void *) x;

    return KUBE_OK;
}


static inline void
io_cancel(void *ctx, kube_exchange_t *exchange)
{
    io_bed_t       *io = ctx;
    io_exchange_t  *x = (void *) exchange;

    assert_true(x->live);
    x->live = false;
    io->cancelled++;
}


static inline void
io_resume(void *ctx, kube_exchange_t *exchange)
{
    io_bed_t       *io = ctx;
    io_exchange_t  *x = (void *) exchange;

    assert_true(x->live);
    assert_true(x->paused);
    x->paused = false;
    io->resumed++;
}


static inline void
io_verdict(void *ctx, size_t server, kube_server_verdict_t verdict)
{
    io_bed_t  *io = ctx;

    assert_int_equal(server, io->server);

    io->verdicts[verdict]++;
}


static inline bool
io_suspect(void *ctx, const kube_exchange_t *exchange)
{
    const io_bed_t  *io = ctx;

    return io->suspect != NULL && io->suspect->live
           && (const void *) exchange == io->suspect;
}


static inline uint64_t
io_healed(void *ctx)
{
    const io_bed_t  *io = ctx;

    return io->healed;
}


static inline kube_rc_t
io_credentials(void *ctx, uint64_t now_ms)
{
    io_bed_t  *io = ctx;

    assert_int_equal(now_ms, io->now_ms);
    io->credentials++;

    return KUBE_OK;
}


static inline const char *
io_remedy(void *ctx, kube_rc_t rc)
{
    const io_bed_t  *io = ctx;

    assert_true(rc == KUBE_NO_CREDENTIALS || rc == KUBE_TLS);

    return io->remedy;
}


static inline uint64_t
io_now(void *ctx)
{
    const io_bed_t  *io = ctx;

    return io->now_ms;
}


static inline kube_io_t
io_of(io_bed_t *io)
{
    return KUBE_IO(io_start, io_cancel, io_resume, io_verdict, io_suspect,
                   io_healed, io_credentials, io_remedy, io_now, io);
}


/* The newest exchange in flight whose path holds the text; NULL: none. */
static inline io_exchange_t *
io_find(io_bed_t *io, const char *text)
{
    unsigned        i;
    io_exchange_t  *x;

    x = NULL;

    for (i = 0; i < IO_EXCHANGES_MAX; i++) {

        if (io->exchanges[i].live
            && strstr(io->exchanges[i].path, text) != NULL
            && (x == NULL || io->exchanges[i].number > x->number))
        {
            x = &io->exchanges[i];
        }
    }

    return x;
}


static inline void
io_done(io_exchange_t *x, kube_rc_t rc, const char *text)
{
    assert_true(x->live);
    x->live = false;
    x->handler->done(x->ctx, rc, text);
}


/* False: the handler has had enough, and the exchange is over. */
static inline bool
io_head(io_exchange_t *x, int code, const char *type, uint32_t retry_after_s)
{
    kube_take_t      take;
    kube_response_t  response;

    assert_true(x->live && !x->headed);

    response.code = code;
    response.server = x->server;
    response.retry_after_s = retry_after_s;
    response.content_type = kube_str(type);

    x->headed = true;
    take = x->handler->response(x->ctx, &response);

    if (take == KUBE_TAKE_ABORT) {
        io_done(x, KUBE_CLOSED, "aborted");
        return false;
    }

    x->paused = (take == KUBE_TAKE_PAUSE);

    return true;
}


/* Delivers what is held, as far as the handler takes it. */
static inline bool
io_deliver(io_bed_t *io, io_exchange_t *x)
{
    char         *piece;
    size_t        n;
    kube_take_t   take;

    while (x->live && x->held_len != 0 && !x->paused) {

        n = (io->chunk != 0 && io->chunk < x->held_len) ? io->chunk
                                                        : x->held_len;

        /* bytes of their own, so that reading past them is seen */
        piece = malloc(n);
        assert_non_null(piece);
        memcpy(piece, x->held, n);

        memmove(x->held, x->held + n, x->held_len - n);
        x->held_len -= n;

        take = x->handler->bytes(x->ctx, piece, n);
        free(piece);

        if (take == KUBE_TAKE_ABORT) {
            io_done(x, KUBE_CLOSED, "aborted");
            return false;
        }

        x->paused = (take == KUBE_TAKE_PAUSE);
    }

    return x->live;
}


static inline bool
io_bytes(io_bed_t *io, io_exchange_t *x, const char *data, size_t len)
{
    assert_true(x->held_len + len <= IO_BODY_MAX);

    memcpy(x->held + x->held_len, data, len);
    x->held_len += len;

    return io_deliver(io, x);
}


static inline bool
io_body(io_bed_t *io, io_exchange_t *x, const char *text)
{
    return io_bytes(io, x, text, strlen(text));
}


/* A whole answer; the exchange may be over before its end. */
static inline void
io_answer(io_bed_t *io, io_exchange_t *x, int code, const char *body)
{
    if (!io_head(x, code, "application/json", 0)) {
        return;
    }

    if (!io_body(io, x, body)) {
        return;
    }

    if (!x->paused) {
        io_done(x, KUBE_OK, "");
    }
}


#endif /* KUBE_IO_BED_H */

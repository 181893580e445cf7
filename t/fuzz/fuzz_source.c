/*
 * fuzz_source - libFuzzer target: what an answer of the API server comes to is
 * the same for every way to cut it, and where memory is short it is that up to
 * some point, then the want of memory, and nothing is left allocated.
 *
 * The first five bytes choose resource, request, encoding and code, two places
 * to cut at, the piece of one more run, and the allocation that fails in the
 * last; the rest is the body.  Cut in two ways, an object is read where it
 * stands in the stream or once it is whole: each is the other's oracle.  No
 * test: an aid to find what the tests lack.
 *
 * make fuzz FUZZ=source
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#define IO_BODY_MAX  (64u << 10)

#include "fuzz.h"
#include "io_bed.h"
#include "kube_api_lister_watcher.h"
#include "kube_record.h"


#define FUZZ_HEAD         5
#define FUZZ_RESULTS_MAX  (IO_BODY_MAX / 2)
#define FUZZ_CODES        6

/* One way to hand the body over. */
typedef struct {
    size_t  cuts[2];     /* in order */
    size_t  step;        /* 0: by the cuts alone */
    size_t  fail_at;     /* the k-th allocation; 0: none */
} fuzz_way_t;

typedef struct {
    size_t    n;
    uint64_t  hashes[FUZZ_RESULTS_MAX];    /* a result each, but for ALIVE */
    bool      status[FUZZ_RESULTS_MAX];
    bool      nomem;                       /* what ended it */
    bool      failed;                      /* an allocation was refused */
} fuzz_told_t;

static io_bed_t     fuzz_io;
static fuzz_told_t  fuzz_whole, fuzz_other;

static const int  fuzz_codes[FUZZ_CODES] = { 200, 200, 200, 403, 410, 500 };


/* Of a refused object only what may be used, else its record. */
static void
fuzz_note_object(uint64_t *hash, const kube_result_t *r)
{
    void               *record;
    size_t              size;
    const kube_meta_t  *meta;

    fuzz_note(hash, &r->type, sizeof(r->type));
    fuzz_note(hash, &r->refusal, sizeof(r->refusal));

    meta = kube_object_meta(&r->object);
    fuzz_note_text(hash, meta->ns);
    fuzz_note_text(hash, meta->name);
    fuzz_note_text(hash, meta->uid);
    fuzz_note_text(hash, meta->rv);

    if (r->refusal != KUBE_REFUSAL_NONE || r->type == KUBE_WATCH_DELETED) {
        return;
    }

    fuzz_assert(kube_name_is_label(meta->ns));
    fuzz_assert(kube_name_is_subdomain(meta->name));
    fuzz_note(hash, &r->dropped, sizeof(r->dropped));

    size = kube_record_size(&r->object);

    if (size != 0) {
        record = aligned_alloc(8, (size + 7) / 8 * 8);
        fuzz_assert(record != NULL);
        memset(record, 0, size);
        kube_record_encode(&r->object, record);
        fuzz_note(hash, record, size);
        free(record);
    }
}


static void
fuzz_tell(fuzz_told_t *told, const kube_result_t *r)
{
    uint64_t  hash;

    fuzz_assert(told->n < FUZZ_RESULTS_MAX);

    hash = FUZZ_NOTHING_SEEN;
    fuzz_note(&hash, &r->kind, sizeof(r->kind));

    switch (r->kind) {

    case KUBE_RESULT_ALIVE:
        return;

    case KUBE_RESULT_ITEM:
    case KUBE_RESULT_EVENT:
        fuzz_note_object(&hash, r);
        break;

    case KUBE_RESULT_BOOKMARK:
        fuzz_note(&hash, &r->initial_events_end, sizeof(bool));
        fuzz_note(&hash, &r->rv, sizeof(r->rv));
        break;

    case KUBE_RESULT_META:
        fuzz_note(&hash, &r->rv, sizeof(r->rv));
        break;

    case KUBE_RESULT_STATUS:
        fuzz_note(&hash, &r->status->verdict, sizeof(r->status->verdict));
        fuzz_note(&hash, &r->status->code, sizeof(r->status->code));
        break;

    case KUBE_RESULT_END:
        told->nomem = (r->rc == KUBE_NOMEM);
        fuzz_note(&hash, &r->rc, sizeof(r->rc));
        fuzz_note_text(&hash, r->continue_token);
        break;

    default:
        break;
    }

    told->status[told->n] = (r->kind == KUBE_RESULT_STATUS);
    told->hashes[told->n++] = hash;
}


static void
fuzz_drain(kube_lister_watcher_t *lw, kube_call_t *call, fuzz_told_t *told)
{
    kube_result_t  result;

    for ( ;; ) {
        memset(&result, 0, sizeof(result));

        if (lw->next(lw->ctx, call, &result) != KUBE_OK) {
            return;
        }

        fuzz_tell(told, &result);
    }
}


static void
fuzz_piece(kube_lister_watcher_t *lw, kube_call_t *call, io_exchange_t *x,
    kube_str_t piece, fuzz_told_t *told)
{
    if (!x->live || piece.len == 0) {
        return;
    }

    (void) io_bytes(&fuzz_io, x, piece.data, piece.len);
    fuzz_drain(lw, call, told);

    while (x->live && x->held_len != 0) {
        fuzz_assert(!x->paused);
        (void) io_deliver(&fuzz_io, x);
        fuzz_drain(lw, call, told);
    }
}


static void
fuzz_body(kube_lister_watcher_t *lw, kube_call_t *call, const fuzz_way_t *way,
    kube_str_t body, fuzz_told_t *told)
{
    size_t          at, next;
    io_exchange_t  *x;

    x = io_find(&fuzz_io, "/");
    at = 0;

    while (at < body.len) {
        next = (way->step != 0) ? at + way->step
               : (at < way->cuts[0]) ? way->cuts[0]
               : (at < way->cuts[1]) ? way->cuts[1]
                                     : body.len;

        next = (next < body.len) ? next : body.len;
        fuzz_piece(lw, call, x, (kube_str_t) { body.data + at, next - at },
                   told);
        at = next;
    }

    if (x->live) {
        io_done(x, KUBE_OK, "");
    }

    fuzz_drain(lw, call, told);
}


static void
fuzz_ask(uint8_t how, kube_api_lister_watcher_conf_t *conf,
    kube_list_options_t *options)
{
    memset(conf, 0, sizeof(kube_api_lister_watcher_conf_t));
    conf->io = io_of(&fuzz_io);
    conf->resource = (kube_resource_t) ((how >> 2) % KUBE_RESOURCES);
    conf->object_bytes_max = KUBE_OBJECT_BYTES_MIN;
    conf->encoding = (how & 2) ? KUBE_ENCODING_PROTOBUF : KUBE_ENCODING_JSON;

    memset(options, 0, sizeof(kube_list_options_t));
    options->rv = KUBE_STR("5");
    options->timeout_s = 300;
}


static void
fuzz_run(uint8_t how, uint8_t code, const fuzz_way_t *way, kube_str_t body,
    fuzz_told_t *told)
{
    kube_call_t                     *call;
    alloc_test_t                     at;
    kube_list_options_t              options;
    kube_lister_watcher_t            lw;
    kube_api_lister_watcher_conf_t   conf;

    told->n = 0;
    told->nomem = false;
    fuzz_io.started = 0;

    alloc_test_init(&at);

    if (way->fail_at != 0) {
        alloc_test_fail(&at, way->fail_at, false);
    }

    fuzz_ask(how, &conf, &options);

    if (kube_api_lister_watcher_create(&at.alloc, &conf, &lw) == KUBE_OK) {
        call = (how & 1) ? lw.watch(lw.ctx, &options, 0)
                         : lw.list(lw.ctx, &options, 0);

        if (call != NULL) {
            (void) io_head(io_find(&fuzz_io, "/"),
                           fuzz_codes[code % FUZZ_CODES],
                           (how & 2) ? "application/vnd.kubernetes.protobuf"
                                     : "application/json", 0);
            fuzz_body(&lw, call, way, body, told);
            lw.cancel(lw.ctx, call);
        }

        lw.destroy(lw.ctx);
    }

    told->failed = at.failed;
    fuzz_assert(io_find(&fuzz_io, "/") == NULL);
    alloc_test_assert_no_leak(&at);
}


static void
fuzz_same(void)
{
    size_t  i;

    fuzz_assert(fuzz_other.n == fuzz_whole.n);

    for (i = 0; i < fuzz_whole.n; i++) {
        fuzz_assert(fuzz_other.hashes[i] == fuzz_whole.hashes[i]);
    }
}


/* What was told before memory was short; of a Status its text may be lost. */
static void
fuzz_short(void)
{
    size_t  i, n;

    n = fuzz_other.n - (fuzz_other.nomem ? 1 : 0);

    fuzz_assert(n <= fuzz_whole.n);
    fuzz_assert(fuzz_other.nomem || n == 0 || n == fuzz_whole.n);

    for (i = 0; i < n; i++) {
        fuzz_assert(fuzz_other.hashes[i] == fuzz_whole.hashes[i]
                    || (fuzz_other.status[i] && fuzz_whole.status[i]));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t      i;
    kube_str_t  body;
    fuzz_way_t  ways[3], whole;

    if (size < FUZZ_HEAD || size - FUZZ_HEAD > IO_BODY_MAX) {
        return 0;
    }

    body.data = (const char *) data + FUZZ_HEAD;
    body.len = size - FUZZ_HEAD;

    memset(&whole, 0, sizeof(whole));
    memset(ways, 0, sizeof(ways));
    ways[0].cuts[0] = data[2];
    ways[0].cuts[1] = (size_t) data[2] + data[3];
    ways[1].step = 1;
    ways[2].step = 2 + data[4] % 61;

    fuzz_run(data[0], data[1], &whole, body, &fuzz_whole);
    fuzz_assert(!fuzz_whole.nomem && fuzz_whole.n != 0);

    for (i = 0; i < 3; i++) {
        fuzz_run(data[0], data[1], &ways[i], body, &fuzz_other);
        fuzz_same();
    }

    ways[0].fail_at = 1 + data[4];
    fuzz_run(data[0], data[1], &ways[0], body, &fuzz_other);

    if (fuzz_other.failed) {
        fuzz_short();

    } else {
        fuzz_same();
    }

    return 0;
}

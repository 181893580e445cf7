/*
 * fuzz_frame - libFuzzer target: the same items for every way to cut the
 * input, no byte read past a piece, no more memory than the limit allows.
 *
 * The first three bytes choose the mode and two places to cut at; the rest
 * is the stream.  No test: an aid to find what the tests lack.
 *
 * clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc/base -Isrc/model
 *     -Isrc/api t/fuzz/fuzz_frame.c src/base/kube_base.c src/base/kube_utf8.c
 *     src/api/kube_frame.c src/api/kube_envelope.c src/api/kube_lexer.c
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "fuzz.h"
#include "kube_frame.h"


typedef struct {
    uint64_t  hash;       /* of the items, in order */
    size_t    items;
    bool      partial;
    bool      lost;
} fuzz_result_t;

static size_t  fuzz_live;


static void *
fuzz_limited_alloc(void *ctx, size_t size)
{
    size_t  *p;

    (void) ctx;

    p = malloc(size + 16);
    if (p == NULL) {
        abort();
    }

    *p = size;
    fuzz_live += size;

    if (fuzz_live > 2 * KUBE_LIST_META_BYTES_MAX + 1024) {
        abort();
    }

    return p + 2;
}


static void
fuzz_limited_free(void *ctx, void *p)
{
    size_t  *head;

    (void) ctx;

    head = (size_t *) p - 2;
    fuzz_live -= *head;
    free(head);
}


static void
fuzz_piece(kube_frame_t *frame, const uint8_t *data, size_t len,
    fuzz_result_t *result)
{
    char               *copy;
    kube_rc_t           rc;
    kube_str_t          in;
    kube_frame_item_t   item;

    if (result->lost || len == 0) {
        return;
    }

    copy = malloc(len);
    if (copy == NULL) {
        abort();
    }

    memcpy(copy, data, len);
    in.data = copy;
    in.len = len;

    while ((rc = kube_frame_next(frame, &in, &item)) == KUBE_OK) {
        result->items++;
        fuzz_note(&result->hash, &item.kind, sizeof(item.kind));
        fuzz_note(&result->hash, &item.size_bytes, sizeof(item.size_bytes));
        fuzz_note(&result->hash, item.bytes.data, item.bytes.len);

        if (item.kind == KUBE_FRAME_ITEM || item.kind == KUBE_FRAME_SKIPPED) {
            fuzz_note_text(&result->hash, item.envelope.type);
            fuzz_note_text(&result->hash, item.envelope.kind);
            fuzz_note_text(&result->hash, item.envelope.meta.ns);
            fuzz_note_text(&result->hash, item.envelope.meta.name);
            fuzz_note_text(&result->hash, item.envelope.meta.uid);
            fuzz_note_text(&result->hash, item.envelope.meta.rv);
            fuzz_note_text(&result->hash, item.envelope.object);
            fuzz_note_text(&result->hash, kube_str(item.envelope.what));
        }
    }

    if (in.data < copy || in.data + in.len != copy + len) {
        abort();
    }

    if (rc != KUBE_PROTO && (rc != KUBE_AGAIN || in.len != 0)) {
        abort();
    }

    result->lost = (rc == KUBE_PROTO);

    free(copy);
}


/* Pieces of step bytes, or with step 0 cut at a and b. */
static fuzz_result_t
fuzz_run(kube_frame_mode_t mode, const uint8_t *data, size_t size, size_t a,
    size_t b, size_t step)
{
    size_t         at;
    kube_alloc_t   alloc;
    kube_frame_t  *frame;
    fuzz_result_t  result;

    memset(&result, 0, sizeof(result));
    result.hash = FUZZ_NOTHING_SEEN;

    alloc = (kube_alloc_t) {
        .alloc = fuzz_limited_alloc,
        .free = fuzz_limited_free
    };

    frame = kube_frame_create(&alloc, mode, KUBE_OBJECT_BYTES_MIN);
    if (frame == NULL) {
        abort();
    }

    if (step == 0) {
        fuzz_piece(frame, data, a, &result);
        fuzz_piece(frame, data + a, b - a, &result);
        fuzz_piece(frame, data + b, size - b, &result);
    }

    for (at = 0; step != 0 && at < size; at += step) {
        fuzz_piece(frame, data + at, size - at < step ? size - at : step,
                   &result);
    }

    result.partial = kube_frame_partial(frame);
    kube_frame_destroy(frame);

    if (fuzz_live != 0) {
        abort();
    }

    return result;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t             a, b, i;
    fuzz_result_t      whole, other[3];
    kube_frame_mode_t  mode;

    if (size < 3) {
        return 0;
    }

    mode = (data[0] & 1) ? KUBE_FRAME_LIST : KUBE_FRAME_WATCH;
    a = data[1];
    b = a + data[2];
    data += 3;
    size -= 3;

    a = (a < size) ? a : size;
    b = (b < size) ? b : size;

    whole = fuzz_run(mode, data, size, 0, 0, 0);
    other[0] = fuzz_run(mode, data, size, a, b, 0);
    other[1] = fuzz_run(mode, data, size, 0, 0, 1);
    other[2] = fuzz_run(mode, data, size, 0, 0, 7);

    for (i = 0; i < 3; i++) {
        if (other[i].hash != whole.hash || other[i].items != whole.items
            || other[i].partial != whole.partial
            || other[i].lost != whole.lost)
        {
            abort();
        }
    }

    return 0;
}

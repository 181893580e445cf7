/*
 * fuzz_protobuf - libFuzzer target: a list or watch of Protocol Buffers comes
 * to the same objects for every way to cut the input, no byte outside of a
 * piece is read, and what is taken keeps within its limits.
 *
 * The first three bytes choose resource and mode, and two places to cut at; the
 * rest is the stream.  No test: an aid to find what the tests lack.
 * test_decode_message compares with JSON, t/cluster/decode with Go.
 *
 * make fuzz FUZZ=protobuf
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "fuzz.h"
#include "kube_decode.h"
#include "kube_protobuf_frame.h"
#include "kube_record.h"
#include "kube_status.h"


typedef struct {
    uint64_t         hash;       /* of the items, in order */
    size_t           items;
    bool             end;
    bool             partial;
    bool             lost;
    bool             watch;
    kube_resource_t  resource;
} fuzz_result_t;


/* An object that is good has good metadata, and makes a record. */
static void
fuzz_object(const kube_object_t *o, fuzz_result_t *result)
{
    void               *record;
    size_t              size;
    kube_rv_t           rv;
    const kube_meta_t  *meta;

    meta = kube_object_meta(o);

    fuzz_assert(kube_name_is_label(meta->ns));
    fuzz_assert(kube_name_is_subdomain(meta->name));
    fuzz_assert(meta->uid.len >= 1 && meta->uid.len <= KUBE_UID_LEN_MAX);
    fuzz_assert(kube_rv_parse(meta->rv, &rv) == KUBE_OK);

    if (kube_resource_info(o->resource)->shape == KUBE_SHAPE_SLICE) {
        fuzz_assert(o->u.slice.endpoints_n <= KUBE_SLICE_ENDPOINTS_MAX);
        fuzz_assert(o->u.slice.ports_n <= KUBE_SLICE_PORTS_MAX);
    }

    size = kube_record_size(o);

    if (size == 0) {
        return;
    }

    record = aligned_alloc(8, (size + 7) / 8 * 8);
    fuzz_assert(record != NULL);
    memset(record, 0, size);
    kube_record_encode(o, record);
    fuzz_note(&result->hash, record, size);
    free(record);
}


static void
fuzz_item(const kube_frame_item_t *item, fuzz_result_t *result)
{
    uint32_t            dropped;
    kube_rc_t           rc;
    kube_error_t        error;
    kube_arena_t        arena;
    kube_status_t       status;
    kube_object_t       object;
    kube_list_meta_t    meta;
    kube_watch_event_t  event;

    result->items++;
    rc = KUBE_OK;
    dropped = 0;
    kube_arena_init(&arena, &fuzz_heap, 8u << 20);

    switch (item->kind) {

    case KUBE_FRAME_METADATA:
        rc = kube_decode_list_meta_message(item->bytes, &meta, &error);
        break;

    case KUBE_FRAME_ITEM:
    case KUBE_FRAME_SKIPPED:
        fuzz_note(&result->hash, item->envelope.meta.name.data,
                  item->envelope.meta.name.len);
        fuzz_note(&result->hash, item->envelope.meta.rv.data,
                  item->envelope.meta.rv.len);

        if (!result->watch) {
            rc = kube_decode_object(&arena, result->resource, &item->envelope,
                                    &object, &dropped, &error);

            if (rc == KUBE_OK) {
                fuzz_object(&object, result);
            }

            break;
        }

        rc = kube_decode_watch_event(&arena, result->resource, &item->envelope,
                                     &event, &dropped, &error);

        if (rc == KUBE_OK && event.type <= KUBE_WATCH_DELETED
            && event.object_rc == KUBE_OK)
        {
            fuzz_object(&event.object, result);

        } else if (rc == KUBE_OK && event.type == KUBE_WATCH_ERROR) {
            kube_status_judge(&arena, 0, event.status_text, &status);
            fuzz_note(&result->hash, &status, sizeof(status));
        }

        break;

    default:
        fuzz_note(&result->hash, item->bytes.data, item->bytes.len);
    }

    fuzz_note(&result->hash, &rc, sizeof(rc));
    fuzz_note(&result->hash, &dropped, sizeof(dropped));
    fuzz_note(&result->hash, &item->kind, sizeof(item->kind));
    fuzz_note(&result->hash, &item->size_bytes, sizeof(item->size_bytes));
    kube_arena_done(&arena);
}


static void
fuzz_piece(kube_protobuf_frame_t *frame, const uint8_t *data, size_t len,
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
    fuzz_assert(copy != NULL);
    memcpy(copy, data, len);
    in = (kube_str_t) { copy, len };

    while ((rc = kube_protobuf_frame_next(frame, &in, &item)) == KUBE_OK) {
        fuzz_item(&item, result);
    }

    fuzz_assert(in.data >= copy && in.data + in.len == copy + len);
    fuzz_assert(rc == KUBE_PROTO || (rc == KUBE_AGAIN && in.len == 0));

    result->lost = (rc == KUBE_PROTO);
    free(copy);
}


/* Pieces of step bytes, or with step 0 cut at a and b. */
static fuzz_result_t
fuzz_run(uint8_t how, const uint8_t *data, size_t size, size_t a, size_t b,
    size_t step)
{
    size_t                  at;
    fuzz_result_t           result;
    kube_protobuf_frame_t  *frame;

    memset(&result, 0, sizeof(result));
    result.hash = FUZZ_NOTHING_SEEN;
    result.watch = how & 1;
    result.resource = (kube_resource_t) ((how >> 1) % KUBE_RESOURCES);

    frame = kube_protobuf_frame_create(&fuzz_heap, result.watch
                                                       ? KUBE_FRAME_WATCH
                                                       : KUBE_FRAME_LIST,
                                       KUBE_OBJECT_BYTES_MIN);
    fuzz_assert(frame != NULL);

    if (step == 0) {
        fuzz_piece(frame, data, a, &result);
        fuzz_piece(frame, data + a, b - a, &result);
        fuzz_piece(frame, data + b, size - b, &result);
    }

    for (at = 0; step != 0 && at < size; at += step) {
        fuzz_piece(frame, data + at, size - at < step ? size - at : step,
                   &result);
    }

    result.end = kube_protobuf_frame_end(frame);
    result.partial = kube_protobuf_frame_partial(frame);
    kube_protobuf_frame_destroy(frame);

    return result;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t         a, b, i;
    uint8_t        how;
    fuzz_result_t  whole, other[3];

    if (size < 3) {
        return 0;
    }

    how = data[0];
    a = data[1];
    b = a + data[2];
    data += 3;
    size -= 3;

    a = (a < size) ? a : size;
    b = (b < size) ? b : size;

    whole = fuzz_run(how, data, size, 0, 0, 0);
    other[0] = fuzz_run(how, data, size, a, b, 0);
    other[1] = fuzz_run(how, data, size, 0, 0, 1);
    other[2] = fuzz_run(how, data, size, 0, 0, 7);

    for (i = 0; i < 3; i++) {
        fuzz_assert(other[i].hash == whole.hash);
        fuzz_assert(other[i].items == whole.items);
        fuzz_assert(other[i].end == whole.end);
        fuzz_assert(other[i].partial == whole.partial);
        fuzz_assert(other[i].lost == whole.lost);
    }

    return 0;
}

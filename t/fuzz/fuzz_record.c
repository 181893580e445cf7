/*
 * fuzz_record - any bytes as a record: validate, id and decode stay inside,
 * what is valid decodes, and what decodes can be written again.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc/base -Isrc/model
 *         t/fuzz/fuzz_record.c src/base/<all>.c src/model/<all but kube_record>.c
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdlib.h>
#include <string.h>

#include "kube_record.c"


#define FUZZ_RECORD_MAX  (64u << 10)


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void *
fuzz_heap_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
fuzz_heap_free(void *ctx, void *p)
{
    (void) ctx;
    free(p);
}


/* Not always the same bytes: a name may be written out twice. */
static void
fuzz_again(kube_arena_t *arena, const kube_object_t *object)
{
    void           *again;
    size_t          size;
    kube_object_t   decoded;

    size = kube_record_size(object);

    if (size == 0) {
        abort();
    }

    again = malloc(size);

    if (again == NULL) {
        return;
    }

    kube_record_encode(object, again);

    if (kube_record_validate(again, size) != KUBE_OK
        || kube_record_decode(arena, again, size, &decoded) != KUBE_OK)
    {
        abort();
    }

    free(again);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void                *bytes;
    bool                 viewed;
    kube_rc_t            valid, rc;
    kube_alloc_t         alloc;
    kube_arena_t         arena;
    kube_object_t        object;
    kube_record_id_t     id;
    kube_record_t       *record;

    if (size == 0 || size > FUZZ_RECORD_MAX) {
        return 0;
    }

    bytes = malloc(size);

    if (bytes == NULL) {
        return 0;
    }

    memcpy(bytes, data, size);

    alloc = (kube_alloc_t) {
        .alloc = fuzz_heap_alloc,
        .free = fuzz_heap_free
    };
    kube_arena_init(&arena, &alloc, 16u << 20);

    valid = kube_record_validate(bytes, size);
    rc = kube_record_decode(&arena, bytes, size, &object);

    if (rc == KUBE_OK) {
        fuzz_again(&arena, &object);
    }

    /* no fuzzer finds the check sum: it is given */
    viewed = (kube_record_measure(bytes, size) == KUBE_OK);
    record = bytes;

    if (valid != KUBE_OK && viewed) {
        record->check = record_check(record, (unsigned char *) (record + 1),
                                     kube_record_base(record));
        valid = kube_record_validate(bytes, size);
    }

    if (valid == KUBE_OK && !viewed) {
        abort();
    }

    if (valid == KUBE_OK
        && (record->kind == KUBE_RECORD_SERVICE
            || record->kind == KUBE_RECORD_SLICE)
        && (rc != KUBE_OK || kube_record_id(bytes, size, &id) != KUBE_OK))
    {
        abort();
    }

    kube_arena_done(&arena);
    free(bytes);

    return 0;
}

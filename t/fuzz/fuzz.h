/*
 * fuzz.h - what libFuzzer targets share: a heap without a limit, an assertion
 * that is always on, and decisions out of the input.  Not for the product, nor
 * for unit tests.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_FUZZ_H
#define KUBE_FUZZ_H


#include <stdlib.h>

#include "kube_base.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static inline void *
fuzz_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static inline void
fuzz_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


static const kube_alloc_t  fuzz_heap = {
    .alloc = fuzz_alloc,
    .free = fuzz_free
};


static inline void
fuzz_assert(bool ok)
{
    if (!ok) {
        abort();
    }
}


/* What was seen, in order, as one number (FNV-1a). */
#define FUZZ_NOTHING_SEEN  0xcbf29ce484222325ull


static inline void
fuzz_note(uint64_t *seen, const void *data, size_t len)
{
    size_t                i;
    const unsigned char  *p;

    p = data;

    for (i = 0; i < len; i++) {
        *seen = (*seen ^ p[i]) * 0x100000001b3ull;
    }
}


static inline void
fuzz_note_text(uint64_t *seen, kube_str_t text)
{
    fuzz_note(seen, &text.len, sizeof(text.len));
    fuzz_note(seen, text.data, text.len);
}


/* An input that is read as decisions. */
typedef struct {
    const uint8_t  *data;
    size_t          size;
} fuzz_input_t;


/* 0 to n - 1, n <= 65536; past the end of the input 0. */
static inline unsigned
fuzz_pick(fuzz_input_t *in, unsigned n)
{
    unsigned  value, bytes;

    value = 0;

    for (bytes = (n > 256) ? 2 : 1; bytes != 0 && in->size != 0; bytes--) {
        value = value << 8 | in->data[0];
        in->data++;
        in->size--;
    }

    return value % n;
}


#endif /* KUBE_FUZZ_H */

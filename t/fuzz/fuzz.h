/*
 * fuzz.h - what libFuzzer targets of src/api share: a heap without a limit, and
 * an assertion that is always on.  Not for the product, nor for unit tests.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_FUZZ_H
#define KUBE_FUZZ_H


#include <stdlib.h>

#include "kube_base.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static void *
fuzz_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
fuzz_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


static const kube_alloc_t  fuzz_heap = {
    .alloc = fuzz_alloc,
    .free = fuzz_free
};


static void
fuzz_assert(bool ok)
{
    if (!ok) {
        abort();
    }
}


#endif /* KUBE_FUZZ_H */

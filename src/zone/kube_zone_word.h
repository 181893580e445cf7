/*
 * kube_zone_word - the atomic word of the image, and what a request does with
 * one: a look, or a sum.
 *
 * Stores are the writer's and are in kube_zone_image.h, with all else of the
 * image.  It knows no struct.  For that header, and for those of src/zone with
 * inline functions that workers run with each request; t/util/orders.py sees
 * to the orders.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_WORD_H
#define KUBE_ZONE_WORD_H


#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#include "kube_zone_pause.h"


typedef _Atomic uint64_t  kube_word_t;

static_assert(ATOMIC_LLONG_LOCK_FREE == 2,
              "atomics in shared memory must need no lock");
static_assert(sizeof(kube_word_t) == 8,
              "atomics are laid out as plain integers");


static inline uint64_t
kube_word_get(const kube_word_t *word)
{
    KUBE_ZONE_PAUSE(word);

    return atomic_load_explicit(word, memory_order_acquire);
}


static inline void
kube_word_add(kube_word_t *word, uint64_t n)
{
    (void) atomic_fetch_add_explicit(word, n, memory_order_relaxed);
}


#endif /* KUBE_ZONE_WORD_H */

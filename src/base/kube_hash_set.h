/*
 * kube_hash_set - a set of 64-bit hashes that grows up to a bound.
 *
 * It holds hashes alone: of keys that come from outside they are made with a
 * secret seed (kube_hash64), and two keys of one hash are one to it, which is
 * once in 2^64 for each pair.  Nothing is taken out but by emptying it.
 *
 * Any layer may use it; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_HASH_SET_H
#define KUBE_HASH_SET_H


#include "kube_base.h"


typedef struct {
    const kube_alloc_t  *alloc;
    uint64_t            *slots;         /* 0: free; NULL: no memory yet */
    size_t               size;          /* slots: a power of two */
    size_t               n;
    size_t               max;
} kube_hash_set_t;

/* max: hashes that it may hold, at least 1.  Memory comes with the first. */
void kube_hash_set_init(kube_hash_set_t *set, const kube_alloc_t *alloc,
    size_t max);

/* Frees all of it; the set is empty and may be used again. */
void kube_hash_set_done(kube_hash_set_t *set);

/* KUBE_OK, also if it was there; KUBE_NOMEM, KUBE_FULL: nothing changed. */
kube_rc_t kube_hash_set_add(kube_hash_set_t *set, uint64_t hash)
    KUBE_MUST_CHECK;

bool kube_hash_set_has(const kube_hash_set_t *set, uint64_t hash);


#endif /* KUBE_HASH_SET_H */

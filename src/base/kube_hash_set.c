/*
 * kube_hash_set - open addressing, half full at most; the hashes are random
 * already, so their lowest bits are their places.
 *
 * It knows no keys.  Any layer may use it; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_hash_set.h"


#define HASH_SET_SLOTS  64


void
kube_hash_set_init(kube_hash_set_t *set, const kube_alloc_t *alloc, size_t max)
{
    *set = (kube_hash_set_t) { .alloc = alloc, .max = max };
}


void
kube_hash_set_done(kube_hash_set_t *set)
{
    kube_free(set->alloc, set->slots);
    set->slots = NULL;
    set->size = 0;
    set->n = 0;
}


/* The slot of a hash, or the free one where it belongs. */
static uint64_t *
hash_set_slot(uint64_t *slots, size_t size, uint64_t hash)
{
    size_t  i;

    for (i = hash & (size - 1);
         slots[i] != 0 && slots[i] != hash;
         i = (i + 1) & (size - 1))
    {
        /* void */
    }

    return &slots[i];
}


/* 0 means a free slot. */
static uint64_t
hash_set_value(uint64_t hash)
{
    return (hash != 0) ? hash : 1;
}


static kube_rc_t
hash_set_grow(kube_hash_set_t *set)
{
    size_t     i, size;
    uint64_t  *slots;

    size = (set->size != 0) ? 2 * set->size : HASH_SET_SLOTS;
    slots = kube_zalloc(set->alloc, size * sizeof(uint64_t));

    if (slots == NULL) {
        return KUBE_NOMEM;
    }

    for (i = 0; i < set->size; i++) {
        if (set->slots[i] != 0) {
            *hash_set_slot(slots, size, set->slots[i]) = set->slots[i];
        }
    }

    kube_free(set->alloc, set->slots);
    set->slots = slots;
    set->size = size;

    return KUBE_OK;
}


kube_rc_t
kube_hash_set_add(kube_hash_set_t *set, uint64_t hash)
{
    kube_rc_t  rc;

    if (kube_hash_set_has(set, hash)) {
        return KUBE_OK;
    }

    if (set->n >= set->max) {
        return KUBE_FULL;
    }

    if (2 * (set->n + 1) > set->size) {
        rc = hash_set_grow(set);

        if (rc != KUBE_OK) {
            return rc;
        }
    }

    *hash_set_slot(set->slots, set->size, hash_set_value(hash))
        = hash_set_value(hash);
    set->n++;

    return KUBE_OK;
}


bool
kube_hash_set_has(const kube_hash_set_t *set, uint64_t hash)
{
    return set->size != 0
           && *hash_set_slot(set->slots, set->size, hash_set_value(hash)) != 0;
}

/*
 * kube_arena - a bump allocator with a ceiling, reset in one step.
 *
 * One object is decoded into it, then it is reset.  It keeps its first block
 * between resets.  It is not a general pool: nothing in it is freed singly.
 * Not thread-safe; the caller owns the struct.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ARENA_H
#define KUBE_ARENA_H


#include "kube_base.h"


typedef struct kube_arena_block_s  kube_arena_block_t;

typedef struct {
    const kube_alloc_t  *alloc;
    kube_arena_block_t  *first;
    kube_arena_block_t  *current;
    size_t               used_bytes;
    size_t               max_bytes;
    bool                 full;        /* max_bytes refused something */
} kube_arena_t;

/* max_bytes is the sum of all blocks; nothing is allocated yet. */
void kube_arena_init(kube_arena_t *arena, const kube_alloc_t *alloc,
    size_t max_bytes);
void kube_arena_done(kube_arena_t *arena);

/* Everything allocated becomes invalid; all blocks but the first go. */
void kube_arena_reset(kube_arena_t *arena);

/*
 * 16-byte aligned, not zeroed; NULL when out of memory or above max.  full
 * tells the two apart until the next reset: trying again later helps against
 * the first only.
 */
void *kube_arena_alloc(kube_arena_t *arena, size_t size)  KUBE_MUST_CHECK;

/* An allocator over the arena (free does nothing), for cJSON and tests. */
kube_alloc_t kube_arena_allocator(kube_arena_t *arena);


#endif /* KUBE_ARENA_H */

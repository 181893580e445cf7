/*
 * kube_arena - a bump allocator with a ceiling, reset in one step.
 *
 * One object is decoded into an arena, then the arena is reset; it keeps its
 * first block between resets.  It is not a general pool: nothing in it is
 * freed singly.  The caller owns the struct; one thread at a time may use it.
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
    bool                 full;        /* max_bytes has refused something */
} kube_arena_t;

/*
 * max_bytes bounds the sum of all blocks, heads included.  alloc is borrowed
 * for the life of the arena; init allocates nothing.  done frees all blocks.
 */
void kube_arena_init(kube_arena_t *arena, const kube_alloc_t *alloc,
    size_t max_bytes);
void kube_arena_done(kube_arena_t *arena);

/* Ends everything that was allocated; frees all blocks but the first. */
void kube_arena_reset(kube_arena_t *arena);

/*
 * Returns size bytes, aligned to 16, not zeroed.  NULL: out of memory, or
 * above max_bytes.  full tells the two apart until the next reset: trying
 * again later helps against the first only.
 */
void *kube_arena_alloc(kube_arena_t *arena, size_t size)  KUBE_MUST_CHECK;

/* Returns an allocator over the arena; its free does nothing. */
kube_alloc_t kube_arena_allocator(kube_arena_t *arena);


#endif /* KUBE_ARENA_H */

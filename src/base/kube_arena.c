/*
 * kube_arena - a bump allocator with a ceiling, reset in one step.
 *
 * It is not a general pool: nothing in it is freed singly.  Invariants:
 * current is the last block of the list that starts at first; used_bytes is
 * the sum of the sizes of all blocks, heads included, and never exceeds
 * max_bytes.  Whoever owns the struct may call it, one thread at a time.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_arena.h"


#define KUBE_ARENA_ALIGN  16

/*
 * The tree of an EndpointSlice with its usual 100 endpoints takes about 120
 * KiB: two blocks.  A Service fits in the first.
 */
#define KUBE_ARENA_BLOCK_FIRST  (64u << 10)
#define KUBE_ARENA_BLOCK_MAX    (1u << 20)


struct kube_arena_block_s {
    kube_arena_block_t  *next;
    size_t               size;       /* in bytes, with this head */
    size_t               used;       /* in bytes, with this head */
};


static size_t
arena_align(size_t n)
{
    return (n + KUBE_ARENA_ALIGN - 1) & ~((size_t) KUBE_ARENA_ALIGN - 1);
}


static size_t
arena_head_size(void)
{
    return arena_align(sizeof(kube_arena_block_t));
}


void
kube_arena_init(kube_arena_t *arena, const kube_alloc_t *alloc,
    size_t max_bytes)
{
    arena->alloc = alloc;
    arena->first = NULL;
    arena->current = NULL;
    arena->used_bytes = 0;
    arena->max_bytes = max_bytes;
    arena->full = false;
}


static void
arena_free_from(kube_arena_t *arena, kube_arena_block_t *block)
{
    kube_arena_block_t  *next;

    for ( /* void */ ; block != NULL; block = next) {
        next = block->next;
        arena->used_bytes -= block->size;
        kube_free(arena->alloc, block);
    }
}


void
kube_arena_done(kube_arena_t *arena)
{
    arena_free_from(arena, arena->first);

    arena->first = NULL;
    arena->current = NULL;
}


void
kube_arena_reset(kube_arena_t *arena)
{
    arena->full = false;

    if (arena->first == NULL) {
        return;
    }

    arena_free_from(arena, arena->first->next);

    arena->first->next = NULL;
    arena->first->used = arena_head_size();
    arena->current = arena->first;
}


static kube_arena_block_t *
arena_block_add(kube_arena_t *arena, size_t size)
{
    size_t               room, need, want;
    kube_arena_block_t  *block;

    room = arena->max_bytes - arena->used_bytes;
    need = arena_head_size() + size;

    if (need > room) {
        arena->full = true;
        return NULL;
    }

    want = KUBE_ARENA_BLOCK_FIRST;

    if (arena->current != NULL && arena->current->size >= want) {
        want = arena->current->size * 2;
    }

    if (want > KUBE_ARENA_BLOCK_MAX) {
        want = KUBE_ARENA_BLOCK_MAX;
    }

    if (want > room) {
        want = room & ~((size_t) KUBE_ARENA_ALIGN - 1);
    }

    if (want < need) {
        want = need;
    }

    block = kube_alloc(arena->alloc, want);
    if (block == NULL) {
        return NULL;
    }

    block->next = NULL;
    block->size = want;
    block->used = arena_head_size();

    arena->used_bytes += want;

    if (arena->current != NULL) {
        arena->current->next = block;

    } else {
        arena->first = block;
    }

    arena->current = block;

    return block;
}


void *
kube_arena_alloc(kube_arena_t *arena, size_t size)
{
    void                *p;
    kube_arena_block_t  *block;

    if (size > arena->max_bytes || size > SIZE_MAX / 2) {
        arena->full = true;
        return NULL;
    }

    size = arena_align(size != 0 ? size : 1);
    block = arena->current;

    if (block == NULL || block->size - block->used < size) {
        block = arena_block_add(arena, size);

        if (block == NULL) {
            return NULL;
        }
    }

    p = (char *) block + block->used;
    block->used += size;

    return p;
}


static void *
arena_allocator_alloc(void *ctx, size_t size)
{
    return kube_arena_alloc(ctx, size);
}


static void
arena_allocator_free(void *ctx, void *p)
{
    (void) ctx;
    (void) p;
}


kube_alloc_t
kube_arena_allocator(kube_arena_t *arena)
{
    return (kube_alloc_t) {
        .alloc = arena_allocator_alloc,
        .free = arena_allocator_free,
        .ctx = arena
    };
}

/*
 * kube_heap - a binary heap of nodes that lie inside the caller's own structs.
 *
 * A node knows its place in the array, so that removing it needs no search.
 * It compares nodes only by the caller's function (kube_heap.h).
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_heap.h"


void
kube_heap_init(kube_heap_t *heap, const kube_alloc_t *alloc,
    kube_heap_before_pt before, void *ctx)
{
    heap->alloc = alloc;
    heap->before = before;
    heap->ctx = ctx;
    heap->nodes = NULL;
    heap->n = 0;
    heap->cap = 0;
}


void
kube_heap_done(kube_heap_t *heap)
{
    if (heap->nodes != NULL) {
        kube_free(heap->alloc, heap->nodes);
        heap->nodes = NULL;
    }

    heap->n = 0;
    heap->cap = 0;
}


static void
heap_put(kube_heap_t *heap, kube_heap_node_t *node, size_t at)
{
    heap->nodes[at - 1] = node;
    node->at = (uint32_t) at;
}


/* Places node at at or nearer to the first. */
static void
heap_up(kube_heap_t *heap, kube_heap_node_t *node, size_t at)
{
    while (at > 1
           && heap->before(heap->ctx, node, heap->nodes[at / 2 - 1]))
    {
        heap_put(heap, heap->nodes[at / 2 - 1], at);
        at /= 2;
    }

    heap_put(heap, node, at);
}


/* Places node at at or farther from the first. */
static void
heap_down(kube_heap_t *heap, kube_heap_node_t *node, size_t at)
{
    size_t  child;

    while (at <= heap->n / 2) {
        child = 2 * at;

        if (child < heap->n
            && heap->before(heap->ctx, heap->nodes[child],
                            heap->nodes[child - 1]))
        {
            child++;
        }

        if (!heap->before(heap->ctx, heap->nodes[child - 1], node)) {
            break;
        }

        heap_put(heap, heap->nodes[child - 1], at);
        at = child;
    }

    heap_put(heap, node, at);
}


kube_rc_t
kube_heap_insert(kube_heap_t *heap, kube_heap_node_t *node)
{
    void       *p;
    kube_rc_t   rc;

    p = heap->nodes;
    rc = kube_array_reserve(heap->alloc, &p, &heap->cap, heap->n + 1,
                            sizeof(kube_heap_node_t *), UINT32_MAX);
    heap->nodes = p;

    if (rc != KUBE_OK) {
        return KUBE_NOMEM;
    }

    heap->n++;
    heap_up(heap, node, heap->n);

    return KUBE_OK;
}


/* Places node at at, or nearer to the first, or farther from it. */
static void
heap_place(kube_heap_t *heap, kube_heap_node_t *node, size_t at)
{
    if (at > 1 && heap->before(heap->ctx, node, heap->nodes[at / 2 - 1])) {
        heap_up(heap, node, at);

    } else {
        heap_down(heap, node, at);
    }
}


void
kube_heap_remove(kube_heap_t *heap, kube_heap_node_t *node)
{
    size_t             at;
    kube_heap_node_t  *last;

    at = node->at;

    if (at == 0) {
        return;
    }

    last = heap->nodes[--heap->n];
    node->at = 0;

    if (last != node) {
        heap_place(heap, last, at);
    }
}


void
kube_heap_moved(kube_heap_t *heap, kube_heap_node_t *node)
{
    if (node->at != 0) {
        heap_place(heap, node, node->at);
    }
}


kube_heap_node_t *
kube_heap_first(const kube_heap_t *heap)
{
    return (heap->n != 0) ? heap->nodes[0] : NULL;
}

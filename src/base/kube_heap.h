/*
 * kube_heap - a binary heap of nodes that lie inside the caller's own structs.
 *
 * The first node is the one that comes before all others; any node may be
 * removed.  It owns an array of pointers, nothing else.  It does not notice
 * that a node's order has changed: the caller removes and inserts it again.
 *
 * Any layer may use it; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_HEAP_H
#define KUBE_HEAP_H


#include "kube_base.h"


typedef struct {
    uint32_t  at;                       /* 1-based; 0: in no heap */
} kube_heap_node_t;

/* True if a comes before b; false for equals.  It changes neither. */
typedef bool (*kube_heap_before_pt)(void *ctx, kube_heap_node_t *a,
    kube_heap_node_t *b);

typedef struct {
    const kube_alloc_t   *alloc;
    kube_heap_before_pt   before;
    void                 *ctx;
    kube_heap_node_t    **nodes;
    size_t                n;
    size_t                cap;
} kube_heap_t;

/* The struct that holds a node, as ngx_queue_data(). */
#define kube_heap_data(node, type, field)                                     \
    ((type *) (void *) ((char *) (node) - offsetof(type, field)))

/* Allocates nothing yet. */
void kube_heap_init(kube_heap_t *heap, const kube_alloc_t *alloc,
    kube_heap_before_pt before, void *ctx);

/* Frees the array; nodes are the caller's.  A zeroed heap is accepted. */
void kube_heap_done(kube_heap_t *heap);

/* node is in no heap.  KUBE_OK or KUBE_NOMEM: nothing changed. */
kube_rc_t kube_heap_insert(kube_heap_t *heap, kube_heap_node_t *node)
    KUBE_MUST_CHECK;

/* Nothing happens if the node is in no heap. */
void kube_heap_remove(kube_heap_t *heap, kube_heap_node_t *node);

/* The node's order has changed; nothing happens if it is in no heap. */
void kube_heap_moved(kube_heap_t *heap, kube_heap_node_t *node);

/* NULL: the heap is empty. */
kube_heap_node_t *kube_heap_first(const kube_heap_t *heap);


#endif /* KUBE_HEAP_H */

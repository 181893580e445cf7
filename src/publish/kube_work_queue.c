/*
 * kube_work_queue - Services that wait to be published, each once.
 *
 * A ring of links by item number, with item 0 as its head: adding, removing
 * and taking the oldest cost the same at any depth, and nothing is allocated
 * after creation.  It does not know what an item is.  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_work_queue.h"


/* next of an item that does not wait. */
#define WORK_QUEUE_OUT  UINT32_MAX


typedef struct {
    uint32_t  prev;
    uint32_t  next;
    uint64_t  read_ms;
} work_item_t;

struct kube_work_queue_s {
    const kube_alloc_t  *alloc;
    uint32_t             items_max;
    uint32_t             depth;
    work_item_t         *items;
};


kube_work_queue_t *
kube_work_queue_create(const kube_alloc_t *alloc, uint32_t items_max)
{
    uint32_t            i;
    kube_work_queue_t  *queue;

    if (items_max == WORK_QUEUE_OUT
        || (size_t) items_max + 1 > SIZE_MAX / sizeof(work_item_t))
    {
        return NULL;
    }

    queue = kube_alloc(alloc, sizeof(kube_work_queue_t));
    if (queue == NULL) {
        return NULL;
    }

    queue->items = kube_zalloc(alloc,
                               ((size_t) items_max + 1) * sizeof(work_item_t));
    if (queue->items == NULL) {
        kube_free(alloc, queue);
        return NULL;
    }

    for (i = 1; i <= items_max; i++) {
        queue->items[i].next = WORK_QUEUE_OUT;
    }

    queue->alloc = alloc;
    queue->items_max = items_max;
    queue->depth = 0;

    return queue;
}


void
kube_work_queue_destroy(kube_work_queue_t *queue)
{
    if (queue == NULL) {
        return;
    }

    kube_free(queue->alloc, queue->items);
    kube_free(queue->alloc, queue);
}


void
kube_work_queue_add(kube_work_queue_t *queue, uint32_t item, uint64_t read_ms)
{
    work_item_t  *head, *it;

    if (item == 0 || item > queue->items_max) {
        return;
    }

    head = &queue->items[0];
    it = &queue->items[item];

    if (it->next != WORK_QUEUE_OUT) {

        if (read_ms < it->read_ms) {
            it->read_ms = read_ms;
        }

        return;
    }

    it->read_ms = read_ms;
    it->prev = head->prev;
    it->next = 0;

    queue->items[head->prev].next = item;
    head->prev = item;
    queue->depth++;
}


void
kube_work_queue_remove(kube_work_queue_t *queue, uint32_t item)
{
    work_item_t  *it;

    if (item == 0 || item > queue->items_max) {
        return;
    }

    it = &queue->items[item];

    if (it->next == WORK_QUEUE_OUT) {
        return;
    }

    queue->items[it->prev].next = it->next;
    queue->items[it->next].prev = it->prev;

    it->next = WORK_QUEUE_OUT;
    queue->depth--;
}


uint32_t
kube_work_queue_pop(kube_work_queue_t *queue, uint64_t *read_ms)
{
    uint32_t  item;

    item = queue->items[0].next;

    if (item != 0) {
        *read_ms = queue->items[item].read_ms;
        kube_work_queue_remove(queue, item);
    }

    return item;
}


uint32_t
kube_work_queue_depth(const kube_work_queue_t *queue)
{
    return queue->depth;
}

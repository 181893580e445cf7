/*
 * kube_work_queue - Services that wait to be published, each once.
 *
 * A ring of links by item number, whose head lies behind the items: adding,
 * removing and taking the oldest cost the same at any depth, and nothing is
 * allocated after creation.  It does not know what an item is.  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_work_queue.h"


typedef struct {
    uint32_t  prev;
    uint32_t  next;               /* 0: it does not wait */
    uint64_t  read_ms;
} work_item_t;

struct kube_work_queue_s {
    const kube_alloc_t  *alloc;
    uint32_t             items_max;
    uint32_t             head;
    uint32_t             depth;
    work_item_t         *items;
};


static size_t
work_queue_size(uint32_t items_max)
{
    return ((size_t) items_max + 2) * sizeof(work_item_t);
}


kube_work_queue_t *
kube_work_queue_create(const kube_alloc_t *alloc, uint32_t items_max)
{
    kube_work_queue_t  *queue;

    if (items_max == UINT32_MAX
        || (size_t) items_max + 2 > SIZE_MAX / sizeof(work_item_t))
    {
        return NULL;
    }

    queue = kube_alloc(alloc, sizeof(kube_work_queue_t));
    if (queue == NULL) {
        return NULL;
    }

    queue->items = kube_pages_alloc(alloc, work_queue_size(items_max));
    if (queue->items == NULL) {
        kube_free(alloc, queue);
        return NULL;
    }

    queue->alloc = alloc;
    queue->items_max = items_max;
    queue->head = items_max + 1;
    queue->depth = 0;
    queue->items[queue->head].prev = queue->head;
    queue->items[queue->head].next = queue->head;

    return queue;
}


void
kube_work_queue_destroy(kube_work_queue_t *queue)
{
    if (queue == NULL) {
        return;
    }

    kube_pages_free(queue->alloc, queue->items,
                    work_queue_size(queue->items_max));
    kube_free(queue->alloc, queue);
}


void
kube_work_queue_add(kube_work_queue_t *queue, uint32_t item, uint64_t read_ms)
{
    work_item_t  *head, *it;

    if (item == 0 || item > queue->items_max) {
        return;
    }

    head = &queue->items[queue->head];
    it = &queue->items[item];

    if (it->next != 0) {

        if (read_ms < it->read_ms) {
            it->read_ms = read_ms;
        }

        return;
    }

    it->read_ms = read_ms;
    it->prev = head->prev;
    it->next = queue->head;

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

    if (it->next == 0) {
        return;
    }

    queue->items[it->prev].next = it->next;
    queue->items[it->next].prev = it->prev;

    it->next = 0;
    queue->depth--;
}


uint32_t
kube_work_queue_pop(kube_work_queue_t *queue, uint64_t *read_ms)
{
    uint32_t  item;

    item = queue->items[queue->head].next;

    if (item == queue->head) {
        return 0;
    }

    *read_ms = queue->items[item].read_ms;
    kube_work_queue_remove(queue, item);

    return item;
}


uint32_t
kube_work_queue_depth(const kube_work_queue_t *queue)
{
    return queue->depth;
}

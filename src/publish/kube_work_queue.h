/*
 * kube_work_queue - Services that wait to be published, each once.
 *
 * client-go's util/workqueue for one consumer: adding what waits already is
 * a no-op; what is added again while it is worked on comes again.  Items are
 * zone entries.  It also keeps when an item was first added, for latency.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_WORK_QUEUE_H
#define KUBE_WORK_QUEUE_H


#include "kube_base.h"


typedef struct kube_work_queue_s  kube_work_queue_t;

/* Items are 1 .. items_max. */
kube_work_queue_t *kube_work_queue_create(const kube_alloc_t *alloc,
    uint32_t items_max)  KUBE_MUST_CHECK;
void kube_work_queue_destroy(kube_work_queue_t *queue);

/* Never fails: room for every item was made at creation. */
void kube_work_queue_add(kube_work_queue_t *queue, uint32_t item,
    uint64_t read_ms);
void kube_work_queue_remove(kube_work_queue_t *queue, uint32_t item);

/* The oldest; 0: empty.  *read_ms is the earliest of its adds. */
uint32_t kube_work_queue_pop(kube_work_queue_t *queue, uint64_t *read_ms);
uint32_t kube_work_queue_depth(const kube_work_queue_t *queue);


#endif /* KUBE_WORK_QUEUE_H */

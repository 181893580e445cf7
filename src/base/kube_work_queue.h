/*
 * kube_work_queue - items that wait to be worked on, each once: client-go's
 * util/workqueue.
 *
 * An item is a number.  Adding what waits already is a no-op; what is added
 * again while it is worked on comes again when that is done.  The publisher
 * takes Services by pop(), which is get() and done() in one: it needs the first
 * part of this header alone, and no memory for the second.
 *
 * No thread waits in it and nobody is called: the owner asks for the next item,
 * and for the time at which the next one is due.  Several workers of one thread
 * may have an item each.  It does not know what an item is.  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_WORK_QUEUE_H
#define KUBE_WORK_QUEUE_H


#include "kube_rate_limiter.h"


typedef struct kube_work_queue_s  kube_work_queue_t;

/* Items are 1 .. items_max.  NULL: out of memory, or too many. */
kube_work_queue_t *kube_work_queue_create(const kube_alloc_t *alloc,
    uint32_t items_max)  KUBE_MUST_CHECK;
void kube_work_queue_destroy(kube_work_queue_t *queue);

/*
 * Never fails: room for every item was made at creation.  Nothing happens
 * after a shutdown.  Of several adds the earliest time counts.
 */
void kube_work_queue_add(kube_work_queue_t *queue, uint32_t item,
    uint64_t now_ms);

/* Takes out what waits; one that is worked on does not come again. */
void kube_work_queue_remove(kube_work_queue_t *queue, uint32_t item);

/* The oldest; 0: empty.  *added_ms is the earliest of its adds. */
uint32_t kube_work_queue_pop(kube_work_queue_t *queue, uint64_t *added_ms);

/* How many could be taken now; neither the delayed nor those worked on. */
uint32_t kube_work_queue_depth(const kube_work_queue_t *queue);


/*
 * The same with all of the below, for 32 bytes an item more.  The limiter is
 * taken over, in any case.  NULL: out of memory, also where the limiter is NULL
 * for that; or too many items.
 */
kube_work_queue_t *kube_work_queue_create_limited(const kube_alloc_t *alloc,
    uint32_t items_max, kube_rate_limiter_t *limiter)  KUBE_MUST_CHECK;

/*
 * What was delayed until now_ms waits from then on, in get() and shutdown()
 * too: who counts what waits calls it before.
 */
void kube_work_queue_due(kube_work_queue_t *queue, uint64_t now_ms);

/*
 * The oldest item, which is worked on from now until done().  KUBE_OK;
 * KUBE_AGAIN: none waits; KUBE_CLOSED: none waits, and after a shutdown.
 */
kube_rc_t kube_work_queue_get(kube_work_queue_t *queue, uint64_t now_ms,
    uint32_t *item)  KUBE_MUST_CHECK;

/* Needed for each item that get() gave; others are passed over. */
void kube_work_queue_done(kube_work_queue_t *queue, uint32_t item,
    uint64_t now_ms);

/*
 * Adds the item when delay_ms are over, or what its limiter says.  Of two
 * times the earlier one counts.  KUBE_OK (also: after a shutdown nothing is
 * added), KUBE_NOMEM.
 */
kube_rc_t kube_work_queue_add_after(kube_work_queue_t *queue, uint32_t item,
    uint64_t delay_ms, uint64_t now_ms)  KUBE_MUST_CHECK;
kube_rc_t kube_work_queue_add_limited(kube_work_queue_t *queue, uint32_t item,
    uint64_t now_ms)  KUBE_MUST_CHECK;

/* kube_rate_limiter_forget() and requeues() of the queue's limiter. */
void kube_work_queue_forget(kube_work_queue_t *queue, uint32_t item);
uint32_t kube_work_queue_requeues(const kube_work_queue_t *queue,
    uint32_t item);

/* When get() has an item; 0: now; KUBE_NEVER: none is known. */
uint64_t kube_work_queue_deadline(const kube_work_queue_t *queue);

/*
 * From now on nothing is added, and what is delayed is dropped, but for what is
 * due by now_ms.  What waits may still be taken, and comes again where it was
 * added before.  drain: the queue is over only when all of that is done; false,
 * also after true: at once.
 */
void kube_work_queue_shutdown(kube_work_queue_t *queue, bool drain,
    uint64_t now_ms);
bool kube_work_queue_is_over(const kube_work_queue_t *queue);


/* Counts of durations up to 1, 10, 100 ms, 1 .. 1000 s; the last: longer. */
#define KUBE_WORK_BUCKETS  8

typedef struct {
    uint64_t  count;
    uint64_t  sum_ms;
    uint64_t  buckets[KUBE_WORK_BUCKETS];   /* each of its own range */
} kube_work_histogram_t;

/* client-go's metrics of a queue, by its names. */
typedef struct {
    uint64_t               depth;               /* with what comes again */
    uint64_t               adds_total;
    uint64_t               retries_total;       /* add_after, add_limited */
    kube_work_histogram_t  queue_duration;      /* added .. taken */
    kube_work_histogram_t  work_duration;       /* taken .. done */
    uint64_t               unfinished_work_ms;  /* of all that are worked on */
    uint64_t               longest_running_ms;
} kube_work_metrics_t;

/*
 * At now_ms, not before the last get(); what runs is shown as it was at the
 * shutdown from then on.
 */
void kube_work_queue_metrics(const kube_work_queue_t *queue, uint64_t now_ms,
    kube_work_metrics_t *metrics);


#endif /* KUBE_WORK_QUEUE_H */

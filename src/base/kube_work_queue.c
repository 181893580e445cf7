/*
 * kube_work_queue - items that wait to be worked on, each once.
 *
 * Two rings of links by item number, whose heads lie behind the items: those
 * that wait, and those that are worked on, oldest first; an item is in one of
 * them or in none.  Adding, removing and taking the oldest cost the same at
 * any depth.  It does not know what an item is.  One thread.
 *
 * What delays, limits and measures is in a second table, which a plain queue
 * does not have: its items are worked on by pop().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_heap.h"
#include "kube_work_queue.h"


typedef struct {
    uint32_t  prev;
    uint32_t  next;               /* 0: it is in no ring */
    uint64_t  added_ms;
} work_item_t;

typedef struct {
    kube_heap_node_t  delayed;
    uint64_t          due_ms;
    uint64_t          started_ms;
    bool              working;    /* it is in the ring of those */
    bool              again;      /* and was added since */
} work_state_t;

/* What a plain queue does not have. */
typedef struct {
    work_state_t         *states;     /* by item */
    kube_heap_t           delayed;
    kube_rate_limiter_t  *limiter;    /* owned */
    uint32_t              working_n;
    uint64_t              started_ms;     /* sum of those that are worked on */
    kube_work_metrics_t   metrics;    /* depth: of those that come again; what
                                         runs: as it was at the shutdown */
} work_extra_t;

struct kube_work_queue_s {
    const kube_alloc_t  *alloc;
    uint32_t             items_max;
    uint32_t             head;        /* of those that wait */
    uint32_t             depth;
    bool                 shutdown;
    bool                 drain;
    work_item_t         *items;
    work_extra_t        *extra;       /* NULL: a plain queue */
};


/* Item 0, the items, and two heads. */
static size_t
work_queue_size(uint32_t items_max, size_t size)
{
    return ((size_t) items_max + 3) * size;
}


kube_work_queue_t *
kube_work_queue_create(const kube_alloc_t *alloc, uint32_t items_max)
{
    uint32_t            head;
    kube_work_queue_t  *queue;

    if (items_max > UINT32_MAX - 3) {
        return NULL;
    }

    queue = kube_zalloc(alloc, sizeof(kube_work_queue_t));
    if (queue == NULL) {
        return NULL;
    }

    queue->items = kube_pages_alloc(alloc,
                                    work_queue_size(items_max,
                                                    sizeof(work_item_t)));
    if (queue->items == NULL) {
        kube_free(alloc, queue);
        return NULL;
    }

    queue->alloc = alloc;
    queue->items_max = items_max;
    queue->head = items_max + 1;

    for (head = queue->head; head < queue->head + 2; head++) {
        queue->items[head].prev = head;
        queue->items[head].next = head;
    }

    return queue;
}


static bool
work_is_before(void *ctx, kube_heap_node_t *a, kube_heap_node_t *b)
{
    (void) ctx;

    return kube_heap_data(a, work_state_t, delayed)->due_ms
           < kube_heap_data(b, work_state_t, delayed)->due_ms;
}


kube_work_queue_t *
kube_work_queue_create_limited(const kube_alloc_t *alloc, uint32_t items_max,
    kube_rate_limiter_t *limiter)
{
    work_extra_t       *extra;
    kube_work_queue_t  *queue;

    extra = NULL;
    queue = (limiter != NULL) ? kube_work_queue_create(alloc, items_max)
                              : NULL;

    if (queue != NULL) {
        extra = kube_zalloc(alloc, sizeof(work_extra_t));
        queue->extra = extra;
    }

    if (extra != NULL) {
        extra->states = kube_pages_alloc(alloc,
                                         work_queue_size(items_max,
                                                    sizeof(work_state_t)));
    }

    if (extra == NULL || extra->states == NULL) {
        kube_work_queue_destroy(queue);
        kube_rate_limiter_destroy(limiter);
        return NULL;
    }

    extra->limiter = limiter;
    kube_heap_init(&extra->delayed, alloc, work_is_before, NULL);

    return queue;
}


void
kube_work_queue_destroy(kube_work_queue_t *queue)
{
    work_extra_t  *extra;

    if (queue == NULL) {
        return;
    }

    extra = queue->extra;

    if (extra != NULL) {

        if (extra->states != NULL) {
            kube_heap_done(&extra->delayed);
            kube_pages_free(queue->alloc, extra->states,
                            work_queue_size(queue->items_max,
                                            sizeof(work_state_t)));
        }

        kube_rate_limiter_destroy(extra->limiter);
        kube_free(queue->alloc, extra);
    }

    kube_pages_free(queue->alloc, queue->items,
                    work_queue_size(queue->items_max, sizeof(work_item_t)));
    kube_free(queue->alloc, queue);
}


/* Puts an item, which is in no ring, at the end of the ring of that head. */
static void
work_link(kube_work_queue_t *queue, uint32_t head, uint32_t item)
{
    work_item_t  *end, *it;

    end = &queue->items[head];
    it = &queue->items[item];

    it->prev = end->prev;
    it->next = head;

    queue->items[end->prev].next = item;
    end->prev = item;
}


static void
work_unlink(kube_work_queue_t *queue, uint32_t item)
{
    work_item_t  *it;

    it = &queue->items[item];

    queue->items[it->prev].next = it->next;
    queue->items[it->next].prev = it->prev;

    it->next = 0;
}


/* The state of an item that is worked on; NULL: it is not. */
static work_state_t *
work_working(const kube_work_queue_t *queue, uint32_t item)
{
    work_state_t  *state;

    if (queue->extra == NULL) {
        return NULL;
    }

    state = &queue->extra->states[item];

    return state->working ? state : NULL;
}


void
kube_work_queue_add(kube_work_queue_t *queue, uint32_t item, uint64_t now_ms)
{
    bool           waits;
    work_item_t   *it;
    work_state_t  *state;

    if (item == 0 || item > queue->items_max || queue->shutdown) {
        return;
    }

    it = &queue->items[item];
    state = work_working(queue, item);
    waits = (state != NULL) ? state->again : (it->next != 0);

    if (waits) {

        if (now_ms < it->added_ms) {
            it->added_ms = now_ms;
        }

        return;
    }

    it->added_ms = now_ms;

    if (queue->extra != NULL) {
        queue->extra->metrics.adds_total++;
    }

    if (state != NULL) {
        state->again = true;
        queue->extra->metrics.depth++;
        return;
    }

    work_link(queue, queue->head, item);
    queue->depth++;
}


void
kube_work_queue_remove(kube_work_queue_t *queue, uint32_t item)
{
    work_state_t  *state;

    if (item == 0 || item > queue->items_max) {
        return;
    }

    if (queue->extra != NULL) {
        kube_heap_remove(&queue->extra->delayed,
                         &queue->extra->states[item].delayed);
    }

    state = work_working(queue, item);

    if (state != NULL) {
        queue->extra->metrics.depth -= state->again;
        state->again = false;
        return;
    }

    if (queue->items[item].next == 0) {
        return;
    }

    work_unlink(queue, item);
    queue->depth--;
}


uint32_t
kube_work_queue_pop(kube_work_queue_t *queue, uint64_t *added_ms)
{
    uint32_t  item;

    item = queue->items[queue->head].next;

    if (item == queue->head) {
        return 0;
    }

    *added_ms = queue->items[item].added_ms;

    work_unlink(queue, item);
    queue->depth--;

    return item;
}


uint32_t
kube_work_queue_depth(const kube_work_queue_t *queue)
{
    return queue->depth;
}


static void
work_observe(kube_work_histogram_t *h, uint64_t from_ms, uint64_t to_ms)
{
    unsigned  i;
    uint64_t  ms, bound_ms;

    ms = (to_ms > from_ms) ? to_ms - from_ms : 0;

    for (i = 0, bound_ms = 1; i + 1 < KUBE_WORK_BUCKETS && ms > bound_ms;
         i++)
    {
        bound_ms *= 10;
    }

    h->count++;
    h->sum_ms += ms;
    h->buckets[i]++;
}


/* The delayed state that is due first; NULL: there is none. */
static work_state_t *
work_first_delayed(const kube_work_queue_t *queue)
{
    kube_heap_node_t  *node;

    node = kube_heap_first(&queue->extra->delayed);

    return (node != NULL) ? kube_heap_data(node, work_state_t, delayed)
                          : NULL;
}


void
kube_work_queue_due(kube_work_queue_t *queue, uint64_t now_ms)
{
    work_extra_t  *extra;
    work_state_t  *state;

    extra = queue->extra;

    while ((state = work_first_delayed(queue)) != NULL
           && state->due_ms <= now_ms)
    {
        kube_heap_remove(&extra->delayed, &state->delayed);
        kube_work_queue_add(queue, (uint32_t) (state - extra->states),
                            state->due_ms);
    }
}


kube_rc_t
kube_work_queue_get(kube_work_queue_t *queue, uint64_t now_ms, uint32_t *item)
{
    uint64_t       added_ms;
    work_extra_t  *extra;
    work_state_t  *state;

    extra = queue->extra;
    kube_work_queue_due(queue, now_ms);

    *item = kube_work_queue_pop(queue, &added_ms);

    if (*item == 0) {
        return queue->shutdown ? KUBE_CLOSED : KUBE_AGAIN;
    }

    work_observe(&extra->metrics.queue_duration, added_ms, now_ms);

    state = &extra->states[*item];
    state->working = true;
    state->started_ms = now_ms;

    extra->working_n++;
    extra->started_ms += now_ms;
    work_link(queue, queue->head + 1, *item);

    return KUBE_OK;
}


void
kube_work_queue_done(kube_work_queue_t *queue, uint32_t item, uint64_t now_ms)
{
    work_extra_t  *extra;
    work_state_t  *state;

    if (item > queue->items_max) {
        return;
    }

    state = work_working(queue, item);
    if (state == NULL) {
        return;
    }

    extra = queue->extra;

    work_observe(&extra->metrics.work_duration, state->started_ms, now_ms);
    work_unlink(queue, item);

    state->working = false;
    extra->working_n--;
    extra->started_ms -= state->started_ms;

    if (state->again) {
        state->again = false;
        extra->metrics.depth--;
        work_link(queue, queue->head, item);
        queue->depth++;
    }
}


kube_rc_t
kube_work_queue_add_after(kube_work_queue_t *queue, uint32_t item,
    uint64_t delay_ms, uint64_t now_ms)
{
    uint64_t       due_ms;
    work_extra_t  *extra;
    work_state_t  *state;

    if (item == 0 || item > queue->items_max || queue->shutdown) {
        return KUBE_OK;
    }

    extra = queue->extra;

    if (delay_ms == 0) {
        extra->metrics.retries_total++;
        kube_work_queue_add(queue, item, now_ms);
        return KUBE_OK;
    }

    state = &extra->states[item];
    due_ms = (delay_ms < KUBE_NEVER - now_ms) ? now_ms + delay_ms
                                              : KUBE_NEVER - 1;

    if (state->delayed.at == 0 || due_ms < state->due_ms) {

        /* where it is already there is room for it */

        kube_heap_remove(&extra->delayed, &state->delayed);
        state->due_ms = due_ms;

        if (kube_heap_insert(&extra->delayed, &state->delayed) != KUBE_OK) {
            return KUBE_NOMEM;
        }
    }

    extra->metrics.retries_total++;

    return KUBE_OK;
}


kube_rc_t
kube_work_queue_add_limited(kube_work_queue_t *queue, uint32_t item,
    uint64_t now_ms)
{
    uint64_t  delay_ms;

    if (item == 0 || item > queue->items_max || queue->shutdown) {
        return KUBE_OK;
    }

    delay_ms = kube_rate_limiter_when(queue->extra->limiter, item, now_ms);

    return kube_work_queue_add_after(queue, item, delay_ms, now_ms);
}


void
kube_work_queue_forget(kube_work_queue_t *queue, uint32_t item)
{
    kube_rate_limiter_forget(queue->extra->limiter, item);
}


uint32_t
kube_work_queue_requeues(const kube_work_queue_t *queue, uint32_t item)
{
    return kube_rate_limiter_requeues(queue->extra->limiter, item);
}


uint64_t
kube_work_queue_deadline(const kube_work_queue_t *queue)
{
    const work_state_t  *state;

    if (queue->depth != 0) {
        return 0;
    }

    state = work_first_delayed(queue);

    return (state != NULL) ? state->due_ms : KUBE_NEVER;
}


void
kube_work_queue_shutdown(kube_work_queue_t *queue, bool drain,
    uint64_t now_ms)
{
    work_state_t         *state;
    kube_work_metrics_t   metrics;

    queue->drain = drain;

    if (queue->shutdown) {
        return;
    }

    kube_work_queue_due(queue, now_ms);
    kube_work_queue_metrics(queue, now_ms, &metrics);

    queue->extra->metrics.unfinished_work_ms = metrics.unfinished_work_ms;
    queue->extra->metrics.longest_running_ms = metrics.longest_running_ms;
    queue->shutdown = true;

    while ((state = work_first_delayed(queue)) != NULL) {
        kube_heap_remove(&queue->extra->delayed, &state->delayed);
    }
}


bool
kube_work_queue_is_over(const kube_work_queue_t *queue)
{
    return queue->shutdown
           && (!queue->drain
               || (queue->depth == 0 && queue->extra->working_n == 0));
}


void
kube_work_queue_metrics(const kube_work_queue_t *queue, uint64_t now_ms,
    kube_work_metrics_t *metrics)
{
    uint32_t             oldest;
    const work_extra_t  *extra;

    extra = queue->extra;

    *metrics = extra->metrics;
    metrics->depth += queue->depth;

    if (queue->shutdown || extra->working_n == 0) {
        return;
    }

    oldest = queue->items[queue->head + 1].next;

    metrics->longest_running_ms = now_ms - extra->states[oldest].started_ms;
    metrics->unfinished_work_ms = now_ms * extra->working_n
                                  - extra->started_ms;
}

/*
 * kube_lib_queue - the work queue as programs see it: keys are strings.
 *
 * kube_work_queue orders numbers.  Here a key has a number for as long as
 * somebody may come back to it: while it waits, is delayed, is worked on or
 * has failed.  For programs, through kube.h.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_hash.h"
#include "kube_lib.h"
#include "kube_map.h"
#include "kube_work_queue.h"


static_assert(KUBE_QUEUE_BUCKETS == KUBE_WORK_BUCKETS, "ranges");

typedef struct {
    kube_map_link_t        link;         /* in keys */
    uint32_t               item;
    bool                   waits;
    bool                   working;
    uint64_t               due_ms;       /* delayed until; KUBE_NEVER: not */
    size_t                 len;
    char                   text[];
} queue_key_t;

struct kube_queue_s {
    kube_lib_env_t         env;
    kube_seed_t            seed;
    kube_work_queue_t     *queue;
    kube_rate_limiter_t   *limiter;      /* the queue's */
    kube_map_t             keys;
    queue_key_t          **items;        /* by number; NULL: free */
    uint32_t              *free;         /* a stack of numbers */
    uint32_t               free_n;
    uint32_t               keys_max;
    bool                   shutdown;
};


static uint64_t
queue_now(const kube_queue_t *q)
{
    return q->env.now(q->env.ctx);
}


static size_t
queue_size(const kube_queue_t *q, size_t size)
{
    return ((size_t) q->keys_max + 1) * size;
}


static kube_rate_limiter_t *
queue_limiter(const kube_alloc_t *alloc, uint32_t keys_max)
{
    return kube_rate_limiter_max_of(alloc,
               kube_rate_limiter_exponential(alloc, keys_max,
                                             KUBE_RATE_BASE_MS,
                                             KUBE_RATE_MAX_MS),
               kube_rate_limiter_bucket(alloc, KUBE_RATE_PER_SECOND,
                                        KUBE_RATE_BURST));
}


kube_queue_t *
kube_lib_queue_create(const kube_lib_env_t *env, uint32_t keys_max)
{
    uint32_t       i;
    kube_queue_t  *q;

    if (keys_max == 0 || keys_max > KUBE_LIB_QUEUE_KEYS_MAX) {
        return NULL;
    }

    q = kube_zalloc(&env->alloc, sizeof(kube_queue_t));
    if (q == NULL) {
        return NULL;
    }

    q->env = *env;
    q->seed = kube_lib_seed();
    q->keys_max = keys_max;

    q->items = kube_pages_alloc(&q->env.alloc,
                                queue_size(q, sizeof(queue_key_t *)));
    q->free = kube_pages_alloc(&q->env.alloc,
                               queue_size(q, sizeof(uint32_t)));
    q->limiter = queue_limiter(&q->env.alloc, keys_max);
    q->queue = kube_work_queue_create_limited(&q->env.alloc, keys_max,
                                              q->limiter);

    if (kube_map_init(&q->keys, &q->env.alloc) != KUBE_OK
        || q->items == NULL
        || q->free == NULL
        || q->queue == NULL)
    {
        kube_queue_destroy(q);
        return NULL;
    }

    for (i = keys_max; i != 0; i--) {
        q->free[q->free_n++] = i;
    }

    return q;
}


kube_queue_t *
kube_queue_create(uint32_t keys_max)
{
    kube_lib_env_t  env;

    env = kube_lib_system();

    return kube_lib_queue_create(&env, keys_max);
}


void
kube_queue_destroy(kube_queue_t *q)
{
    uint32_t      i;
    kube_alloc_t  alloc;

    if (q == NULL) {
        return;
    }

    alloc = q->env.alloc;

    for (i = 1; q->items != NULL && i <= q->keys_max; i++) {
        if (q->items[i] != NULL) {
            kube_free(&alloc, q->items[i]);
        }
    }

    if (q->items != NULL) {
        kube_pages_free(&alloc, q->items,
                        queue_size(q, sizeof(queue_key_t *)));
    }

    if (q->free != NULL) {
        kube_pages_free(&alloc, q->free, queue_size(q, sizeof(uint32_t)));
    }

    kube_work_queue_destroy(q->queue);
    kube_map_done(&q->keys);
    kube_free(&alloc, q);
}


static queue_key_t *
queue_find(const kube_queue_t *q, const char *text)
{
    size_t            len;
    queue_key_t      *key;
    kube_map_link_t  *link;

    len = strlen(text);

    for (link = kube_map_first(&q->keys, kube_hash64(q->seed, text, len));
         link != NULL;
         link = kube_map_next(link))
    {
        key = kube_map_data(link, queue_key_t, link);

        if (key->len == len && memcmp(key->text, text, len) == 0) {
            return key;
        }
    }

    return NULL;
}


/* The key, and a new one where there is none. */
static kube_rc_t
queue_key(kube_queue_t *q, const char *text, queue_key_t **found)
{
    size_t        len;
    queue_key_t  *key;

    len = strlen(text);

    if (len == 0) {
        return KUBE_INVALID;
    }

    *found = queue_find(q, text);

    if (*found != NULL) {
        return KUBE_OK;
    }

    if (len > KUBE_LIB_QUEUE_KEY_MAX || q->free_n == 0) {
        return KUBE_TOO_LARGE;
    }

    key = kube_zalloc(&q->env.alloc, sizeof(queue_key_t) + len + 1);
    if (key == NULL) {
        return KUBE_NOMEM;
    }

    memcpy(key->text, text, len);
    key->len = len;
    key->due_ms = KUBE_NEVER;
    key->item = q->free[--q->free_n];

    q->items[key->item] = key;
    kube_map_insert(&q->keys, &key->link, kube_hash64(q->seed, text, len));

    *found = key;

    return KUBE_OK;
}


/* Forgets a key that nobody will come back to. */
static void
queue_settle(kube_queue_t *q, queue_key_t *key)
{
    if (key->waits
        || key->working
        || key->due_ms != KUBE_NEVER
        || kube_work_queue_requeues(q->queue, key->item) != 0)
    {
        return;
    }

    kube_map_remove(&q->keys, &key->link);
    q->items[key->item] = NULL;
    q->free[q->free_n++] = key->item;
    kube_free(&q->env.alloc, key);
}


int
kube_queue_add(kube_queue_t *q, const char *text)
{
    kube_rc_t     rc;
    queue_key_t  *key;

    if (q->shutdown) {
        return KUBE_E_OK;
    }

    rc = queue_key(q, text, &key);

    if (rc != KUBE_OK) {
        return rc;
    }

    key->waits = true;
    kube_work_queue_add(q->queue, key->item, queue_now(q));

    return KUBE_E_OK;
}


static int
queue_add_after(kube_queue_t *q, queue_key_t *key, uint64_t delay_ms)
{
    uint64_t   now_ms, due_ms;
    kube_rc_t  rc;

    now_ms = queue_now(q);
    due_ms = (delay_ms < KUBE_NEVER - now_ms) ? now_ms + delay_ms
                                              : KUBE_NEVER - 1;

    /* what was due is delayed no more: it waits, and may be delayed anew */

    kube_work_queue_due(q->queue, now_ms);

    rc = kube_work_queue_add_after(q->queue, key->item, due_ms - now_ms,
                                   now_ms);

    if (rc != KUBE_OK) {
        queue_settle(q, key);
        return rc;
    }

    if (delay_ms == 0) {
        key->waits = true;

    } else if (key->due_ms <= now_ms || due_ms < key->due_ms) {
        key->due_ms = due_ms;
    }

    return KUBE_E_OK;
}


int
kube_queue_add_after(kube_queue_t *q, const char *text, uint64_t delay_ms)
{
    kube_rc_t     rc;
    queue_key_t  *key;

    if (q->shutdown) {
        return KUBE_E_OK;
    }

    rc = queue_key(q, text, &key);

    return (rc == KUBE_OK) ? queue_add_after(q, key, delay_ms) : (int) rc;
}


int
kube_queue_add_failed(kube_queue_t *q, const char *text)
{
    kube_rc_t     rc;
    queue_key_t  *key;

    if (q->shutdown) {
        return KUBE_E_OK;
    }

    rc = queue_key(q, text, &key);

    if (rc != KUBE_OK) {
        return rc;
    }

    return queue_add_after(q, key,
                           kube_rate_limiter_when(q->limiter, key->item,
                                                  queue_now(q)));
}


const char *
kube_queue_get(kube_queue_t *q)
{
    uint32_t      item;
    uint64_t      now_ms;
    queue_key_t  *key;

    now_ms = queue_now(q);

    if (kube_work_queue_get(q->queue, now_ms, &item) != KUBE_OK) {
        return NULL;
    }

    key = q->items[item];
    key->waits = false;
    key->working = true;

    /* what was due has been taken with it */

    if (key->due_ms <= now_ms) {
        key->due_ms = KUBE_NEVER;
    }

    return key->text;
}


void
kube_queue_done(kube_queue_t *q, const char *text)
{
    queue_key_t  *key;

    key = queue_find(q, text);

    if (key == NULL || !key->working) {
        return;
    }

    key->working = false;

    kube_work_queue_done(q->queue, key->item, queue_now(q));
    queue_settle(q, key);
}


void
kube_queue_forget(kube_queue_t *q, const char *text)
{
    queue_key_t  *key;

    key = queue_find(q, text);

    if (key != NULL) {
        kube_work_queue_forget(q->queue, key->item);
        queue_settle(q, key);
    }
}


uint32_t
kube_queue_failures(const kube_queue_t *q, const char *text)
{
    const queue_key_t  *key;

    key = queue_find(q, text);

    return (key != NULL) ? kube_work_queue_requeues(q->queue, key->item) : 0;
}


size_t
kube_queue_depth(const kube_queue_t *q)
{
    kube_work_queue_due(q->queue, queue_now(q));

    return kube_work_queue_depth(q->queue);
}


static kube_queue_histogram_t
queue_histogram(const kube_work_histogram_t *from)
{
    kube_queue_histogram_t  to;

    to.count = from->count;
    to.sum_ms = from->sum_ms;
    memcpy(to.buckets, from->buckets, sizeof(to.buckets));

    return to;
}


int
kube_queue_metrics(const kube_queue_t *q, kube_queue_metrics_t *metrics)
{
    uint64_t             now_ms;
    kube_work_metrics_t  from;

    if (metrics->size != sizeof(kube_queue_metrics_t)) {
        return KUBE_E_INVALID;
    }

    now_ms = queue_now(q);
    kube_work_queue_due(q->queue, now_ms);
    kube_work_queue_metrics(q->queue, now_ms, &from);

    *metrics = (kube_queue_metrics_t) {
        .size = metrics->size,
        .depth = from.depth,
        .adds_total = from.adds_total,
        .retries_total = from.retries_total,
        .queue_duration = queue_histogram(&from.queue_duration),
        .work_duration = queue_histogram(&from.work_duration),
        .unfinished_work_ms = from.unfinished_work_ms,
        .longest_running_ms = from.longest_running_ms
    };

    return KUBE_E_OK;
}


uint64_t
kube_queue_deadline_ms(const kube_queue_t *q)
{
    return kube_work_queue_deadline(q->queue);
}


void
kube_queue_shutdown(kube_queue_t *q)
{
    q->shutdown = true;
    kube_work_queue_shutdown(q->queue, true, queue_now(q));
}


int
kube_queue_is_over(const kube_queue_t *q)
{
    return kube_work_queue_is_over(q->queue);
}

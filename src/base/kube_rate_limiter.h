/*
 * kube_rate_limiter - how long an item waits before it is tried again:
 * client-go's rate limiters (util/workqueue/default_rate_limiters.go).
 *
 * An item is a number, as in kube_work_queue, which asks a limiter on
 * add_rate_limited(); a program may ask one itself.  A limiter only says how
 * long: it holds no item and knows no time but the one it is given.  One
 * thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_RATE_LIMITER_H
#define KUBE_RATE_LIMITER_H


#include "kube_base.h"


/*
 * client-go's DefaultControllerRateLimiter: the longer of 5 ms .. 1000 s an
 * item, and 10 a second of all, after the first 100.
 */
#define KUBE_RATE_BASE_MS     5
#define KUBE_RATE_MAX_MS      1000000
#define KUBE_RATE_PER_SECOND  10
#define KUBE_RATE_BURST       100

typedef struct kube_rate_limiter_s  kube_rate_limiter_t;

/*
 * Items are 1 .. items_max; each that has failed costs 4 bytes.  NULL: out of
 * memory, or no such items; a limiter that is made of others has taken them
 * over even then.
 *
 * exponential: base_ms, doubled by each failure of the item, at most max_ms.
 */
kube_rate_limiter_t *kube_rate_limiter_exponential(const kube_alloc_t *alloc,
    uint32_t items_max, uint64_t base_ms, uint64_t max_ms)  KUBE_MUST_CHECK;

/* fast_ms for the first fast_max failures of the item, slow_ms for more. */
kube_rate_limiter_t *kube_rate_limiter_fast_slow(const kube_alloc_t *alloc,
    uint32_t items_max, uint64_t fast_ms, uint64_t slow_ms, uint32_t fast_max)
    KUBE_MUST_CHECK;

/*
 * So many a second, 1 .. 1000000, of all items together, and burst, at most
 * 2^32 - 1, at once where there were none before.
 */
kube_rate_limiter_t *kube_rate_limiter_bucket(const kube_alloc_t *alloc,
    uint32_t per_second, uint32_t burst)  KUBE_MUST_CHECK;

/* The longer delay of the two: both are asked, each time. */
kube_rate_limiter_t *kube_rate_limiter_max_of(const kube_alloc_t *alloc,
    kube_rate_limiter_t *a, kube_rate_limiter_t *b)  KUBE_MUST_CHECK;

/* What the other says, at most max_ms. */
kube_rate_limiter_t *kube_rate_limiter_max_wait(const kube_alloc_t *alloc,
    kube_rate_limiter_t *limiter, uint64_t max_ms)  KUBE_MUST_CHECK;

/* DefaultControllerRateLimiter. */
kube_rate_limiter_t *kube_rate_limiter_default(const kube_alloc_t *alloc,
    uint32_t items_max)  KUBE_MUST_CHECK;

/* With those it is made of; NULL is accepted. */
void kube_rate_limiter_destroy(kube_rate_limiter_t *limiter);

/* How long the item has to wait, in ms, after one more failure at now_ms. */
uint64_t kube_rate_limiter_when(kube_rate_limiter_t *limiter, uint32_t item,
    uint64_t now_ms);

/* The item has succeeded, or is given up: its failures are forgotten. */
void kube_rate_limiter_forget(kube_rate_limiter_t *limiter, uint32_t item);

/* How often when() was asked of the item since forget(). */
uint32_t kube_rate_limiter_requeues(const kube_rate_limiter_t *limiter,
    uint32_t item);


#endif /* KUBE_RATE_LIMITER_H */

/*
 * kube_rate_limiter - how long an item waits before it is tried again.
 *
 * One struct for all kinds, told apart by a tag.  It holds no item: what an
 * item costs is its number of failures, in a table that is touched where
 * something failed.  Called by kube_work_queue and by programs.
 *
 * The bucket keeps the time at which it would be empty (a "theoretical
 * arrival time"), in us: that is golang.org/x/time/rate's reservation without
 * floating point.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_rate_limiter.h"


#define RATE_US_PER_SECOND  1000000

typedef enum {
    RATE_EXPONENTIAL = 0,
    RATE_FAST_SLOW,
    RATE_BUCKET,
    RATE_MAX_OF,
    RATE_MAX_WAIT
} rate_kind_t;

struct kube_rate_limiter_s {
    const kube_alloc_t   *alloc;
    rate_kind_t           kind;
    uint32_t              items_max;
    uint32_t             *failures;     /* by item; NULL: it counts none */
    uint32_t              fast_max;
    uint64_t              first_ms;     /* base or fast */
    uint64_t              max_ms;       /* or slow */
    uint64_t              interval_us;  /* of a bucket: between two */
    uint64_t              burst_us;     /* for how long it stays full */
    uint64_t              arrival_us;
    kube_rate_limiter_t  *made_of[2];   /* owned */
};


static size_t
rate_table_size(uint32_t items_max)
{
    return ((size_t) items_max + 1) * sizeof(uint32_t);
}


static kube_rate_limiter_t *
rate_create(const kube_alloc_t *alloc, rate_kind_t kind, uint32_t items_max)
{
    kube_rate_limiter_t  *limiter;

    limiter = kube_zalloc(alloc, sizeof(kube_rate_limiter_t));
    if (limiter == NULL) {
        return NULL;
    }

    limiter->alloc = alloc;
    limiter->kind = kind;
    limiter->items_max = items_max;

    if (items_max == 0) {
        return limiter;
    }

    limiter->failures = kube_pages_alloc(alloc, rate_table_size(items_max));
    if (limiter->failures == NULL) {
        kube_free(alloc, limiter);
        return NULL;
    }

    return limiter;
}


kube_rate_limiter_t *
kube_rate_limiter_exponential(const kube_alloc_t *alloc, uint32_t items_max,
    uint64_t base_ms, uint64_t max_ms)
{
    kube_rate_limiter_t  *limiter;

    limiter = (items_max == 0) ? NULL
              : rate_create(alloc, RATE_EXPONENTIAL, items_max);

    if (limiter != NULL) {
        limiter->first_ms = base_ms;
        limiter->max_ms = max_ms;
    }

    return limiter;
}


kube_rate_limiter_t *
kube_rate_limiter_fast_slow(const kube_alloc_t *alloc, uint32_t items_max,
    uint64_t fast_ms, uint64_t slow_ms, uint32_t fast_max)
{
    kube_rate_limiter_t  *limiter;

    limiter = (items_max == 0) ? NULL
              : rate_create(alloc, RATE_FAST_SLOW, items_max);

    if (limiter != NULL) {
        limiter->first_ms = fast_ms;
        limiter->max_ms = slow_ms;
        limiter->fast_max = fast_max;
    }

    return limiter;
}


kube_rate_limiter_t *
kube_rate_limiter_bucket(const kube_alloc_t *alloc, uint32_t per_second,
    uint32_t burst)
{
    kube_rate_limiter_t  *limiter;

    if (per_second == 0 || per_second > RATE_US_PER_SECOND) {
        return NULL;
    }

    limiter = rate_create(alloc, RATE_BUCKET, 0);

    if (limiter != NULL) {
        limiter->interval_us = RATE_US_PER_SECOND / per_second;
        limiter->burst_us = limiter->interval_us * burst;
    }

    return limiter;
}


static kube_rate_limiter_t *
rate_combine(const kube_alloc_t *alloc, rate_kind_t kind,
    kube_rate_limiter_t *a, kube_rate_limiter_t *b)
{
    kube_rate_limiter_t  *limiter;

    limiter = NULL;

    if (a != NULL && (b != NULL || kind == RATE_MAX_WAIT)) {
        limiter = rate_create(alloc, kind, 0);
    }

    if (limiter == NULL) {
        kube_rate_limiter_destroy(a);
        kube_rate_limiter_destroy(b);
        return NULL;
    }

    limiter->made_of[0] = a;
    limiter->made_of[1] = b;

    return limiter;
}


kube_rate_limiter_t *
kube_rate_limiter_max_of(const kube_alloc_t *alloc, kube_rate_limiter_t *a,
    kube_rate_limiter_t *b)
{
    return rate_combine(alloc, RATE_MAX_OF, a, b);
}


kube_rate_limiter_t *
kube_rate_limiter_max_wait(const kube_alloc_t *alloc,
    kube_rate_limiter_t *inner, uint64_t max_ms)
{
    kube_rate_limiter_t  *limiter;

    limiter = rate_combine(alloc, RATE_MAX_WAIT, inner, NULL);

    if (limiter != NULL) {
        limiter->max_ms = max_ms;
    }

    return limiter;
}


kube_rate_limiter_t *
kube_rate_limiter_default(const kube_alloc_t *alloc, uint32_t items_max)
{
    return kube_rate_limiter_max_of(alloc,
               kube_rate_limiter_exponential(alloc, items_max,
                                             KUBE_RATE_BASE_MS,
                                             KUBE_RATE_MAX_MS),
               kube_rate_limiter_bucket(alloc, KUBE_RATE_PER_SECOND,
                                        KUBE_RATE_BURST));
}


void
kube_rate_limiter_destroy(kube_rate_limiter_t *limiter)
{
    if (limiter == NULL) {
        return;
    }

    kube_rate_limiter_destroy(limiter->made_of[0]);
    kube_rate_limiter_destroy(limiter->made_of[1]);

    if (limiter->failures != NULL) {
        kube_pages_free(limiter->alloc, limiter->failures,
                        rate_table_size(limiter->items_max));
    }

    kube_free(limiter->alloc, limiter);
}


/* The failures of the item before this one. */
static uint32_t
rate_fail(kube_rate_limiter_t *limiter, uint32_t item)
{
    uint32_t  n;

    if (item > limiter->items_max) {
        return 0;
    }

    n = limiter->failures[item];
    limiter->failures[item] = (n == UINT32_MAX) ? n : n + 1;

    return n;
}


static uint64_t
rate_bucket(kube_rate_limiter_t *limiter, uint64_t now_ms)
{
    uint64_t  now_us;

    /* ahead by the burst, so that no time is below 0 */
    now_us = now_ms * 1000 + limiter->burst_us;

    if (limiter->arrival_us < now_us - limiter->burst_us) {
        limiter->arrival_us = now_us - limiter->burst_us;
    }

    limiter->arrival_us += limiter->interval_us;

    return (limiter->arrival_us <= now_us)
           ? 0 : (limiter->arrival_us - now_us + 999) / 1000;
}


uint64_t
kube_rate_limiter_when(kube_rate_limiter_t *limiter, uint32_t item,
    uint64_t now_ms)
{
    uint32_t  n;
    uint64_t  a_ms, b_ms;

    switch (limiter->kind) {

    case RATE_EXPONENTIAL:
        n = rate_fail(limiter, item);

        return (n >= 64 || limiter->first_ms > limiter->max_ms >> n)
               ? limiter->max_ms : limiter->first_ms << n;

    case RATE_FAST_SLOW:
        return (rate_fail(limiter, item) < limiter->fast_max)
               ? limiter->first_ms : limiter->max_ms;

    case RATE_BUCKET:
        return rate_bucket(limiter, now_ms);

    case RATE_MAX_OF:
        a_ms = kube_rate_limiter_when(limiter->made_of[0], item, now_ms);
        b_ms = kube_rate_limiter_when(limiter->made_of[1], item, now_ms);

        return (a_ms > b_ms) ? a_ms : b_ms;

    default:
        a_ms = kube_rate_limiter_when(limiter->made_of[0], item, now_ms);

        return (a_ms < limiter->max_ms) ? a_ms : limiter->max_ms;
    }
}


void
kube_rate_limiter_forget(kube_rate_limiter_t *limiter, uint32_t item)
{
    unsigned  i;

    if (limiter->failures != NULL && item <= limiter->items_max) {
        limiter->failures[item] = 0;
    }

    for (i = 0; i < 2; i++) {

        if (limiter->made_of[i] != NULL) {
            kube_rate_limiter_forget(limiter->made_of[i], item);
        }
    }
}


uint32_t
kube_rate_limiter_requeues(const kube_rate_limiter_t *limiter, uint32_t item)
{
    unsigned  i;
    uint32_t  n, most;

    most = 0;

    if (limiter->failures != NULL && item <= limiter->items_max) {
        most = limiter->failures[item];
    }

    for (i = 0; i < 2; i++) {

        if (limiter->made_of[i] != NULL) {
            n = kube_rate_limiter_requeues(limiter->made_of[i], item);
            most = (n > most) ? n : most;
        }
    }

    return most;
}

/*
 * kube_zone_histogram - the bounds of the histograms and their counters.
 *
 * It prints nothing: cumulative buckets are made by whoever prints.  Any
 * process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_layout.h"


typedef uint64_t  histogram_bounds_t[KUBE_HISTOGRAM_BUCKETS];

/* Microseconds.  Lists take milliseconds to minutes. */
static const histogram_bounds_t  histogram_list_us = {
    1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000,
    2000000, 3000000, 5000000, 7500000, 10000000, 15000000, 20000000,
    30000000, 60000000, 120000000
};

/* Watches live for 5 to 10 minutes where nothing is wrong. */
static const histogram_bounds_t  histogram_watch_us = {
    100000, 500000, 1000000, 2000000, 5000000, 10000000, 20000000, 30000000,
    60000000, 90000000, 120000000, 180000000, 240000000, 300000000,
    360000000, 420000000, 480000000, 540000000, 600000000, 900000000
};

static const histogram_bounds_t  histogram_items = {
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000,
    50000, 100000, 200000, 500000, 1000000, 2000000
};

static const histogram_bounds_t  histogram_publish_us = {
    50, 100, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000, 7500, 10000,
    20000, 50000, 100000, 250000, 500000, 1000000, 5000000
};

/* The API's clock has whole seconds. */
static const histogram_bounds_t  histogram_programming_us = {
    1000, 2000, 5000, 10000, 20000, 50000, 100000, 250000, 500000, 1000000,
    1500000, 2000000, 3000000, 5000000, 10000000, 20000000, 30000000,
    60000000, 120000000, 300000000
};


const uint64_t *
kube_histogram_bounds(kube_histogram_id_t id)
{
    switch (id) {
    case KUBE_HISTOGRAM_LIST_DURATION:
        return histogram_list_us;

    case KUBE_HISTOGRAM_WATCH_DURATION:
        return histogram_watch_us;

    case KUBE_HISTOGRAM_PUBLISH_LATENCY:
        return histogram_publish_us;

    case KUBE_HISTOGRAM_PROGRAMMING_LATENCY:
        return histogram_programming_us;

    default:
        return histogram_items;
    }
}


void
kube_zone_histogram_read(const kube_zone_t *zone, kube_histogram_id_t id,
    kube_resource_t resource, kube_histogram_t *h)
{
    size_t                        i;
    const kube_zone_histogram_t  *from;

    memset(h, 0, sizeof(kube_histogram_t));

    if ((unsigned) id >= KUBE_HISTOGRAMS
        || (unsigned) resource >= KUBE_RESOURCES)
    {
        return;
    }

    from = &zone->image->histograms[id][resource];

    /* the count is that of the buckets read: they must agree when printed */
    for (i = 0; i <= KUBE_HISTOGRAM_BUCKETS; i++) {
        h->buckets[i] = kube_word_get(&from->buckets[i]);
        h->count += h->buckets[i];
    }

    h->sum = kube_word_get(&from->sum);
}


void
kube_zone_histogram_observe(kube_zone_t *zone, kube_histogram_id_t id,
    kube_resource_t resource, uint64_t value)
{
    size_t                  i;
    const uint64_t         *bounds;
    kube_zone_histogram_t  *to;

    if ((unsigned) id >= KUBE_HISTOGRAMS
        || (unsigned) resource >= KUBE_RESOURCES)
    {
        return;
    }

    to = &zone->image->histograms[id][resource];
    bounds = kube_histogram_bounds(id);

    for (i = 0; i < KUBE_HISTOGRAM_BUCKETS && value > bounds[i]; i++) {
        /* void */
    }

    kube_word_add(&to->buckets[i], 1);
    kube_word_add(&to->sum, value);
}

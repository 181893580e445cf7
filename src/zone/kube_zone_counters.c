/*
 * kube_zone_counters - the rows of the counters and histograms, and their
 * words in the image.
 *
 * It measures nothing and prints nothing.  Any process may read; who writes
 * is said in the header.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_zone_image.h"


static const kube_counter_info_t  counters_rows[] = {
#define XX(name, family, value, counts)                                       \
    { family, value },
    KUBE_COUNTER_MAP(XX)
#undef XX
#define XX(name)                                                              \
    { KUBE_METRIC_NONE, NULL },
    KUBE_GAUGE_MAP(XX)
#undef XX
};

static_assert(sizeof(counters_rows) / sizeof(counters_rows[0])
              == KUBE_COUNTERS, "each counter has a row");


#define COUNTERS_ITEMS                                                        \
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000,       \
    50000, 100000, 200000, 500000, 1000000, 2000000

static const uint64_t
    counters_bounds[KUBE_HISTOGRAMS][KUBE_HISTOGRAM_BUCKETS] =
{
    /* a list takes milliseconds to minutes */
    [KUBE_HISTOGRAM_LIST_DURATION] = {
        1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000,
        1000000, 2000000, 3000000, 5000000, 7500000, 10000000, 15000000,
        20000000, 30000000, 60000000, 120000000
    },

    /* a watch lives for 5 to 10 minutes where nothing is wrong */
    [KUBE_HISTOGRAM_WATCH_DURATION] = {
        100000, 500000, 1000000, 2000000, 5000000, 10000000, 20000000,
        30000000, 60000000, 90000000, 120000000, 180000000, 240000000,
        300000000, 360000000, 420000000, 480000000, 540000000, 600000000,
        900000000
    },

    [KUBE_HISTOGRAM_ITEMS_PER_LIST] = { COUNTERS_ITEMS },
    [KUBE_HISTOGRAM_ITEMS_PER_WATCH] = { COUNTERS_ITEMS },

    /* client-go's range */
    [KUBE_HISTOGRAM_PROCESSING_LATENCY] = {
        1000, 2000, 3000, 5000, 7500, 10000, 20000, 30000, 50000, 75000,
        100000, 200000, 300000, 500000, 750000, 1000000, 2000000, 3000000,
        5000000, 10000000
    },

    [KUBE_HISTOGRAM_PUBLISH_LATENCY] = {
        50, 100, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000, 7500,
        10000, 20000, 50000, 100000, 250000, 500000, 1000000, 5000000
    },

    /* last-change-trigger-time has whole seconds */
    [KUBE_HISTOGRAM_PROGRAMMING_LATENCY] = {
        1000, 2000, 5000, 10000, 20000, 50000, 100000, 250000, 500000,
        1000000, 1500000, 2000000, 3000000, 5000000, 10000000, 20000000,
        30000000, 60000000, 120000000, 300000000
    },

    /* of client-go's powers of ten those that the clock tells apart */
    [KUBE_HISTOGRAM_WORKQUEUE] = {
        1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000,
        1000000, 2000000, 5000000, 10000000, 20000000, 50000000, 100000000,
        200000000, 500000000, 1000000000, 2000000000
    }
};

static const kube_histogram_info_t  counters_histograms[KUBE_HISTOGRAMS] = {
#define XX(name, metric, unit, help)                                          \
    { metric, unit, help,                                         \
      counters_bounds[KUBE_HISTOGRAM_##name] },
    KUBE_HISTOGRAM_MAP(XX)
#undef XX
};


const kube_counter_info_t *
kube_counter_info(kube_counter_t counter)
{
    return &counters_rows[counter];
}


kube_counter_t
kube_counter_of_rc(kube_rc_t rc)
{
    size_t  i;

    static const struct {
        kube_rc_t       rc;
        kube_counter_t  counter;
    } rcs[] = {
#define XX(name, family, value, counts)  { counts, KUBE_COUNTER_##name },
        KUBE_COUNTER_RC_MAP(XX)
#undef XX
    };

    for (i = 0; i < sizeof(rcs) / sizeof(rcs[0]); i++) {
        if (rcs[i].rc == rc) {
            return rcs[i].counter;
        }
    }

    return KUBE_COUNTER_ERRORS_OTHER;
}


/* Returns the word of a scope's counter; NULL: the zone has none. */
static kube_word_t *
counters_word(const kube_zone_t *zone, unsigned scope, kube_counter_t counter)
{
    if (scope >= zone->geometry.scopes_n
        || (unsigned) counter >= KUBE_COUNTERS)
    {
        return NULL;
    }

    return &kube_zone_scope(zone, scope)->counters[counter];
}


uint64_t
kube_zone_scope_counter(const kube_zone_t *zone, unsigned scope,
    kube_counter_t counter)
{
    const kube_word_t  *word;

    word = counters_word(zone, scope, counter);

    return (word != NULL) ? kube_word_get(word) : 0;
}


void
kube_zone_scope_add(kube_zone_t *zone, unsigned scope, kube_counter_t counter,
    uint64_t n)
{
    kube_word_t  *word;

    word = counters_word(zone, scope, counter);

    if (word != NULL) {
        kube_word_add(word, n);
    }
}


void
kube_zone_scope_set(kube_zone_t *zone, unsigned scope, kube_counter_t counter,
    uint64_t value)
{
    kube_word_t  *word;

    word = counters_word(zone, scope, counter);

    if (word != NULL) {
        kube_word_set(word, value);
    }
}


const kube_histogram_info_t *
kube_histogram_info(kube_histogram_id_t id)
{
    return &counters_histograms[id];
}


/* Returns the words of a resource's histogram; NULL: the zone has none. */
static kube_zone_histogram_t *
counters_histogram(const kube_zone_t *zone, kube_histogram_id_t id,
    kube_resource_t resource)
{
    if ((unsigned) id >= KUBE_HISTOGRAMS
        || (unsigned) resource >= KUBE_RESOURCES_ROUTED)
    {
        return NULL;
    }

    return &zone->image->histograms[id][resource];
}


void
kube_zone_histogram_read(const kube_zone_t *zone, kube_histogram_id_t id,
    kube_resource_t resource, kube_histogram_t *h)
{
    size_t                        i;
    const kube_zone_histogram_t  *from;

    memset(h, 0, sizeof(kube_histogram_t));
    from = counters_histogram(zone, id, resource);

    if (from == NULL) {
        return;
    }

    /* buckets are observed meanwhile: count must be their sum when printed */
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
    kube_zone_histogram_t  *to;

    to = counters_histogram(zone, id, resource);

    if (to == NULL) {
        return;
    }

    for (i = 0;
         i < KUBE_HISTOGRAM_BUCKETS && value > counters_bounds[id][i];
         i++)
    {
        /* void */
    }

    kube_word_add(&to->buckets[i], 1);
    kube_word_add(&to->sum, value);
}


void
kube_zone_worker_add(kube_zone_t *zone, unsigned worker, unsigned counter,
    uint64_t n)
{
    if (counter < KUBE_WORKER_COUNTERS) {
        kube_word_add(&kube_zone_worker_row(zone, worker)[counter], n);
    }
}


_Atomic uint64_t *
kube_zone_worker_row(kube_zone_t *zone, unsigned worker)
{
    kube_zone_worker_t  *rows;

    rows = kube_zone_at(zone, zone->geometry.workers);

    return rows[worker % zone->geometry.workers_n].counters;
}


uint64_t
kube_zone_worker_sum(const kube_zone_t *zone, unsigned counter)
{
    unsigned                   i;
    uint64_t                   sum;
    const kube_zone_worker_t  *rows;

    sum = 0;
    rows = kube_zone_at(zone, zone->geometry.workers);

    for (i = 0; i < zone->geometry.workers_n; i++) {
        if (counter < KUBE_WORKER_COUNTERS) {
            sum += kube_word_get(&rows[i].counters[counter]);
        }
    }

    return sum;
}


/* A moment of the zone's clock at which a worker still repeated its mark. */
static bool
worker_mark_lasts(uint64_t last_ms, uint64_t now_ms)
{
    return last_ms != 0
           && (last_ms >= now_ms || now_ms - last_ms <= KUBE_MARK_LASTS_MS);
}


void
kube_zone_worker_over_budget(kube_zone_t *zone, unsigned worker,
    uint64_t now_ms)
{
    uint64_t             last;
    kube_zone_mark_t    *mark;
    kube_zone_worker_t  *rows;

    rows = kube_zone_at(zone, zone->geometry.workers);
    mark = &rows[worker % zone->geometry.workers_n].over_budget;
    last = kube_word_get(&mark->last_ms);

    if (last > now_ms || !worker_mark_lasts(last, now_ms)) {
        kube_word_set(&mark->since_ms, now_ms);
    }

    kube_word_set(&mark->last_ms, now_ms);
}


uint64_t
kube_zone_worker_over_budget_since(const kube_zone_t *zone, uint64_t now_ms)
{
    unsigned                   i;
    uint64_t                   since, oldest;
    const kube_zone_mark_t    *mark;
    const kube_zone_worker_t  *rows;

    oldest = 0;
    rows = kube_zone_at(zone, zone->geometry.workers);

    for (i = 0; i < zone->geometry.workers_n; i++) {
        mark = &rows[i].over_budget;
        since = kube_word_get(&mark->since_ms);

        if (since <= now_ms
            && worker_mark_lasts(kube_word_get(&mark->last_ms), now_ms)
            && (oldest == 0 || since < oldest))
        {
            oldest = since;
        }
    }

    return oldest;
}


void
kube_zone_worker_truncated(kube_zone_t *zone, unsigned worker,
    uint64_t now_ms, const kube_truncated_t *truncated)
{
    size_t                  i;
    kube_zone_worker_t     *rows;
    kube_zone_truncated_t  *to;

    rows = kube_zone_at(zone, zone->geometry.workers);
    to = &rows[worker % zone->geometry.workers_n].truncated;

    for (i = 0; i < truncated->n && i < KUBE_TRUNCATED_SHOWN_MAX; i++) {
        kube_word_set(&to->rows[i], truncated->rows[i].since_ms / 1000 << 32
                                    | truncated->rows[i].entry);
    }

    kube_word_set(&to->n, truncated->n);
    kube_word_set(&to->last_ms, now_ms);
}


void
kube_zone_worker_truncated_read(const kube_zone_t *zone, unsigned row,
    uint64_t now_ms, kube_truncated_t *truncated)
{
    size_t                        i;
    uint64_t                      word;
    const kube_zone_worker_t     *rows;
    const kube_zone_truncated_t  *from;

    memset(truncated, 0, sizeof(kube_truncated_t));

    if (row >= zone->geometry.workers_n) {
        return;
    }

    rows = kube_zone_at(zone, zone->geometry.workers);
    from = &rows[row].truncated;

    if (!worker_mark_lasts(kube_word_get(&from->last_ms), now_ms)) {
        return;
    }

    truncated->n = kube_word_get(&from->n);

    for (i = 0; i < truncated->n && i < KUBE_TRUNCATED_SHOWN_MAX; i++) {
        word = kube_word_get(&from->rows[i]);
        truncated->rows[i].since_ms = (word >> 32) * 1000;
        truncated->rows[i].entry = (uint32_t) word;
    }
}

/*
 * kube_zone_counters - the names of what is counted, and the counters,
 * gauges and histograms in the zone that hold it.
 *
 * Each counter is one row below; its place in the image, its line in the
 * metrics and what makes it grow all come from that row.  Counters only
 * grow, gauges are set; both are relaxed atomics that outlive the process
 * that writes them.  Nothing here is printed and nothing is measured: the
 * informer counts, workers print.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_COUNTERS_H
#define KUBE_ZONE_COUNTERS_H


#include "kube_limits.h"
#include "kube_resource.h"
#include "kube_zone.h"
#include "kube_zone_word.h"


/*
 * Metric families: name without prefix, name of the label that tells its
 * counters apart (NULL: the family is one counter), help text.
 */
#define KUBE_METRIC_NONE           NULL, NULL, NULL
#define KUBE_METRIC_LISTS                                                     \
    "lists_total", NULL, "Lists begun, WatchLists among them."
#define KUBE_METRIC_WATCHES        "watches_total", NULL, "Watches opened."
#define KUBE_METRIC_SHORT_WATCHES                                             \
    "short_watches_total", NULL,                                              \
    "Watches that ended within a second without an event."
#define KUBE_METRIC_RELISTS                                                   \
    "relists_total", "reason", "Lists after the first, by reason."
#define KUBE_METRIC_EVENTS                                                    \
    "events_total", "type", "Watch events, by type."
#define KUBE_METRIC_EVENT_BYTES                                               \
    "event_bytes_total", NULL, "Bytes of watch events."
#define KUBE_METRIC_SKIPPED                                                   \
    "skipped_objects_total", "reason",                                        \
    "Objects, or parts of them, passed over, by reason."
#define KUBE_METRIC_TRIGGERS                                                  \
    "trigger_times_ignored_total", NULL,                                      \
    "Times of last change before the watch was opened, or in the future."
#define KUBE_METRIC_FALLBACKS                                                 \
    "decode_fallbacks_total", "field",                                        \
    "Objects not written as API servers write them, by the first field."
#define KUBE_METRIC_ERRORS                                                    \
    "errors_total", "reason", "Failed requests, by reason."


/*
 * The counters of a scope, the members of a family next to each other.
 * Columns:
 *
 *   name    the enumerator behind KUBE_COUNTER_
 *   family  one of the families above
 *   value   of the family's label
 *   counts  what makes the counter grow.  The lists differ in what that is;
 *           where an enumerator stands there, whoever sees its enum derives
 *           a table from the list, with a static_assert on its length
 */
#define KUBE_COUNTER_PLAIN_MAP(XX)                                            \
    XX(LISTS, KUBE_METRIC_LISTS, NULL, -)                                     \
    XX(WATCHES, KUBE_METRIC_WATCHES, NULL, -)                                 \
    XX(SHORT_WATCHES, KUBE_METRIC_SHORT_WATCHES, NULL, -)                     \
    XX(RELISTS, KUBE_METRIC_NONE, NULL, -)                                    \
    XX(EVENT_BYTES, KUBE_METRIC_EVENT_BYTES, NULL, -)                         \
    XX(SKIPPED_TOO_LARGE, KUBE_METRIC_SKIPPED, "too_large", -)                \
    XX(SKIPPED_MALFORMED, KUBE_METRIC_SKIPPED, "malformed", -)                \
    XX(SKIPPED_CRASHED, KUBE_METRIC_SKIPPED, "crashed_informer", -)           \
    XX(SKIPPED_ENDPOINTS, KUBE_METRIC_SKIPPED, "endpoints", -)                \
    XX(TRIGGERS_IGNORED, KUBE_METRIC_TRIGGERS, NULL, -)

/* counts: kube_relist_reason_t */
#define KUBE_COUNTER_RELIST_MAP(XX)                                           \
    XX(RELISTS_EXPIRED, KUBE_METRIC_RELISTS, "expired", KUBE_RELIST_EXPIRED)  \
    XX(RELISTS_TOO_LARGE_RV, KUBE_METRIC_RELISTS, "too_large_rv",             \
       KUBE_RELIST_TOO_LARGE_RV)                                              \
    XX(RELISTS_ROOM, KUBE_METRIC_RELISTS, "room", KUBE_RELIST_ROOM)           \
    XX(RELISTS_PROTOCOL, KUBE_METRIC_RELISTS, "protocol",                     \
       KUBE_RELIST_PROTOCOL)                                                  \
    XX(RELISTS_SILENT, KUBE_METRIC_RELISTS, "silent", KUBE_RELIST_SILENT)     \
    XX(RELISTS_OTHER, KUBE_METRIC_RELISTS, "other", KUBE_RELIST_OTHER)

/* counts: kube_watch_type_t */
#define KUBE_COUNTER_EVENT_MAP(XX)                                            \
    XX(EVENTS_ADDED, KUBE_METRIC_EVENTS, "added", KUBE_WATCH_ADDED)           \
    XX(EVENTS_MODIFIED, KUBE_METRIC_EVENTS, "modified", KUBE_WATCH_MODIFIED)  \
    XX(EVENTS_DELETED, KUBE_METRIC_EVENTS, "deleted", KUBE_WATCH_DELETED)     \
    XX(EVENTS_BOOKMARK, KUBE_METRIC_EVENTS, "bookmark", KUBE_WATCH_BOOKMARK)  \
    XX(EVENTS_ERROR, KUBE_METRIC_EVENTS, "error", KUBE_WATCH_ERROR)

/* counts: kube_surprise_t, all but KUBE_SURPRISE_NONE */
#define KUBE_COUNTER_SURPRISE_MAP(XX)                                         \
    XX(FALLBACKS_HEAD, KUBE_METRIC_FALLBACKS, "head", KUBE_SURPRISE_HEAD)     \
    XX(FALLBACKS_ADDRESSES, KUBE_METRIC_FALLBACKS, "addresses",               \
       KUBE_SURPRISE_ADDRESSES)                                               \
    XX(FALLBACKS_CONDITIONS, KUBE_METRIC_FALLBACKS, "conditions",             \
       KUBE_SURPRISE_CONDITIONS)                                              \
    XX(FALLBACKS_TARGET, KUBE_METRIC_FALLBACKS, "targetRef",                  \
       KUBE_SURPRISE_TARGET)                                                  \
    XX(FALLBACKS_NAMES, KUBE_METRIC_FALLBACKS, "names", KUBE_SURPRISE_NAMES)  \
    XX(FALLBACKS_ENDPOINT, KUBE_METRIC_FALLBACKS, "endpoint",                 \
       KUBE_SURPRISE_ENDPOINT)                                                \
    XX(FALLBACKS_OBJECT, KUBE_METRIC_FALLBACKS, "object",                     \
       KUBE_SURPRISE_OBJECT)

/* counts: kube_rc_t of a request that got no answer */
#define KUBE_COUNTER_RC_MAP(XX)                                               \
    XX(ERRORS_CONNECT, KUBE_METRIC_ERRORS, "connect", KUBE_CONNECT)           \
    XX(ERRORS_TLS, KUBE_METRIC_ERRORS, "tls", KUBE_TLS)                       \
    XX(ERRORS_TIMEOUT, KUBE_METRIC_ERRORS, "timeout", KUBE_TIMEOUT)           \
    XX(ERRORS_CLOSED, KUBE_METRIC_ERRORS, "closed", KUBE_CLOSED)              \
    XX(ERRORS_CREDENTIALS, KUBE_METRIC_ERRORS, "credentials",                 \
       KUBE_NO_CREDENTIALS)                                                   \
    XX(ERRORS_PROTOCOL, KUBE_METRIC_ERRORS, "protocol", KUBE_PROTO)

/* counts: kube_verdict_t, all but KUBE_VERDICT_OK */
#define KUBE_COUNTER_VERDICT_MAP(XX)                                          \
    XX(ERRORS_EXPIRED, KUBE_METRIC_ERRORS, "expired", KUBE_VERDICT_EXPIRED)   \
    XX(ERRORS_TOO_LARGE_RV, KUBE_METRIC_ERRORS, "too_large_rv",               \
       KUBE_VERDICT_TOO_LARGE_RV)                                             \
    XX(ERRORS_UNAUTHORIZED, KUBE_METRIC_ERRORS, "unauthorized",               \
       KUBE_VERDICT_UNAUTHORIZED)                                             \
    XX(ERRORS_FORBIDDEN, KUBE_METRIC_ERRORS, "forbidden",                     \
       KUBE_VERDICT_FORBIDDEN)                                                \
    XX(ERRORS_NOT_FOUND, KUBE_METRIC_ERRORS, "not_found",                     \
       KUBE_VERDICT_NOT_FOUND)                                                \
    XX(ERRORS_TOO_MANY, KUBE_METRIC_ERRORS, "too_many_requests",              \
       KUBE_VERDICT_TOO_MANY)                                                 \
    XX(ERRORS_UNAVAILABLE, KUBE_METRIC_ERRORS, "unavailable",                 \
       KUBE_VERDICT_UNAVAILABLE)                                              \
    XX(ERRORS_INTERNAL, KUBE_METRIC_ERRORS, "internal",                       \
       KUBE_VERDICT_INTERNAL)                                                 \
    XX(ERRORS_REDIRECT, KUBE_METRIC_ERRORS, "redirect",                       \
       KUBE_VERDICT_REDIRECT)                                                 \
    XX(ERRORS_INVALID, KUBE_METRIC_ERRORS, "invalid", KUBE_VERDICT_INVALID)   \
    XX(ERRORS_OTHER, KUBE_METRIC_ERRORS, "other", KUBE_VERDICT_OTHER)

#define KUBE_COUNTER_MAP(XX)                                                  \
    KUBE_COUNTER_PLAIN_MAP(XX)                                                \
    KUBE_COUNTER_RELIST_MAP(XX)                                               \
    KUBE_COUNTER_EVENT_MAP(XX)                                                \
    KUBE_COUNTER_SURPRISE_MAP(XX)                                             \
    KUBE_COUNTER_RC_MAP(XX)                                                   \
    KUBE_COUNTER_VERDICT_MAP(XX)

/* The gauges of a scope; times are monotonic ms, 0: none. */
#define KUBE_GAUGE_MAP(XX)                                                    \
    XX(STATE)                   /* kube_scope_state_t */                      \
    XX(CONTACT_MS)              /* last evidence that the cache is current */ \
    XX(LAST_EVENT_MS)                                                         \
    XX(RETRY_AT_MS)                                                           \
    XX(FORBIDDEN)               /* 1: the last answer was 403 */              \
    XX(WATCH_OPEN)              /* when the watch was answered */             \
    XX(CAUSE)                   /* kube_cause_t + 1; 0: it follows */         \
    XX(SINCE_MS)                /* since when the cause lasts */              \
    XX(QUEUED)                  /* deltas in the FIFO */

typedef enum {
#define XX(name, family, value, counts)  KUBE_COUNTER_##name,
    KUBE_COUNTER_MAP(XX)
#undef XX
#define XX(name)  KUBE_COUNTER_GAUGE_##name,
    KUBE_GAUGE_MAP(XX)
#undef XX
    KUBE_COUNTERS
} kube_counter_t;

typedef struct {
    const char  *metric;      /* NULL: none */
    const char  *label;       /* NULL: none */
    const char  *help;
    const char  *value;       /* of the label; NULL where there is none */
} kube_counter_info_t;

/* The row of a counter (a gauge's is empty); counter is below KUBE_COUNTERS. */
const kube_counter_info_t *kube_counter_info(kube_counter_t counter);

/* The counter of a request that failed with rc without an answer. */
kube_counter_t kube_counter_of_rc(kube_rc_t rc);

/*
 * Reading and writing; a scope or counter that is not there reads as 0, and
 * writing there does nothing.  Only the informer process writes.
 */
uint64_t kube_zone_scope_counter(const kube_zone_t *zone, unsigned scope,
    kube_counter_t counter);
void kube_zone_scope_add(kube_zone_t *zone, unsigned scope,
    kube_counter_t counter, uint64_t n);
void kube_zone_scope_set(kube_zone_t *zone, unsigned scope,
    kube_counter_t counter, uint64_t value);


/*
 * Histograms of a resource, WORKQUEUE of Services alone.  Columns: the
 * enumerator behind KUBE_HISTOGRAM_, metric, unit of bounds and values (US:
 * microseconds, printed as seconds), help.
 */
#define KUBE_HISTOGRAM_MAP(XX)                                                \
    XX(LIST_DURATION, "list_duration_seconds", KUBE_UNIT_US,                  \
       "From a list's request to its last byte.")                             \
    XX(WATCH_DURATION, "watch_duration_seconds", KUBE_UNIT_US,                \
       "From a watch's answer to its end.")                                   \
    XX(ITEMS_PER_LIST, "items_per_list", KUBE_UNIT_ITEMS,                     \
       "Objects of a list.")                                                  \
    XX(ITEMS_PER_WATCH, "items_per_watch", KUBE_UNIT_ITEMS,                   \
       "Events of a watch.")                                                  \
    XX(PROCESSING_LATENCY, "processing_latency_seconds", KUBE_UNIT_US,        \
       "From an object's bytes to the store.")                                 \
    XX(PUBLISH_LATENCY, "publish_latency_seconds", KUBE_UNIT_US,              \
       "From an event's bytes to what workers can read.")                     \
    XX(PROGRAMMING_LATENCY, "programming_latency_seconds", KUBE_UNIT_US,      \
       "From a slice's last-change-trigger-time to what workers can read.")   \
    XX(WORKQUEUE, "workqueue_queue_duration_seconds", KUBE_UNIT_US,           \
       "From a Service's first change to its turn in the work queue.")

typedef enum {
#define XX(name, metric, unit, help)  KUBE_HISTOGRAM_##name,
    KUBE_HISTOGRAM_MAP(XX)
#undef XX
    KUBE_HISTOGRAMS
} kube_histogram_id_t;

typedef enum {
    KUBE_UNIT_US,
    KUBE_UNIT_ITEMS
} kube_unit_t;

#define KUBE_HISTOGRAM_BUCKETS  20

typedef struct {
    const char      *metric;
    kube_unit_t      unit;
    const char      *help;
    const uint64_t  *bounds;       /* upper, KUBE_HISTOGRAM_BUCKETS of them */
} kube_histogram_info_t;

/* id is below KUBE_HISTOGRAMS. */
const kube_histogram_info_t *kube_histogram_info(kube_histogram_id_t id);

typedef struct {
    uint64_t  buckets[KUBE_HISTOGRAM_BUCKETS + 1];    /* the last: above all */
    uint64_t  sum;                                    /* same unit as bounds */
    uint64_t  count;
} kube_histogram_t;

/* Buckets as observed; whoever prints them makes them cumulative. */
void kube_zone_histogram_read(const kube_zone_t *zone,
    kube_histogram_id_t id, kube_resource_t resource, kube_histogram_t *h);
void kube_zone_histogram_observe(kube_zone_t *zone, kube_histogram_id_t id,
    kube_resource_t resource, uint64_t value);


/*
 * Workers' counters, numbered by their owner: each worker adds to a row of
 * its own (worker modulo the rows there are, at most KUBE_WORKER_ROWS), and
 * the rows are added up when printed.
 */
#define KUBE_WORKER_ROWS      64
#define KUBE_WORKER_COUNTERS  32

void kube_zone_worker_add(kube_zone_t *zone, unsigned worker,
    unsigned counter, uint64_t n);

/*
 * That row, in the zone, for who adds to it with each request: of so many
 * counters, to which others may add.
 */
_Atomic uint64_t *kube_zone_worker_row(kube_zone_t *zone, unsigned worker);


/* Adds 1 to a counter of that row. */
static inline void
kube_zone_worker_count(_Atomic uint64_t *row, unsigned counter)
{
    kube_word_add(&row[counter], 1);
}


uint64_t kube_zone_worker_sum(const kube_zone_t *zone, unsigned counter);


/*
 * What workers suffer from.  A worker marks it again and again while it lasts:
 * a mark that is older than KUBE_MARK_LASTS_MS is void, also where its worker
 * has died.  Times are of the zone's clock.
 */
#define KUBE_MARK_LASTS_MS  150000

/* Instances do not fit into the budget of the worker. */
void kube_zone_worker_over_budget(kube_zone_t *zone, unsigned worker,
    uint64_t now_ms);

/* Since when, the oldest of workers' marks; 0: no worker marks it. */
uint64_t kube_zone_worker_over_budget_since(const kube_zone_t *zone,
    uint64_t now_ms);

/* Services that have more endpoints than are used, by entry; whole seconds. */
typedef struct {
    size_t        n;          /* of all; of rows, as many as there are */
    struct {
        uint64_t  since_ms;
        uint32_t  entry;
    } rows[KUBE_TRUNCATED_SHOWN_MAX];
} kube_truncated_t;

/* All of this worker, in the place of those before. */
void kube_zone_worker_truncated(kube_zone_t *zone, unsigned worker,
    uint64_t now_ms, const kube_truncated_t *truncated);

/* Those of one row of workers, below KUBE_WORKER_ROWS; n is 0: none. */
void kube_zone_worker_truncated_read(const kube_zone_t *zone, unsigned row,
    uint64_t now_ms, kube_truncated_t *truncated);


#endif /* KUBE_ZONE_COUNTERS_H */

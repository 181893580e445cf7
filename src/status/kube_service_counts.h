/*
 * kube_service_counts - how many endpoints each Service of a zone has, by
 * state, a Service after the other: what the metric service_endpoints says.
 *
 * A scrape of a large cluster must not hold a worker, so the walk goes in
 * steps: each loads one record or two, or passes over some entries.  It keeps
 * one slice in memory, however many a Service has, and a hash of each Service
 * that it has told: one deleted and made anew meanwhile is told once.
 *
 * It prints nothing.  Called by workers for /metrics.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SERVICE_COUNTS_H
#define KUBE_SERVICE_COUNTS_H


#include "kube_arena.h"
#include "kube_record.h"
#include "kube_zone.h"


/*
 * Services of one walk: three lines each, 3 MB of a scrape with usual names,
 * 13 MB with the longest.  A table of twice as many hashes takes 256 KiB.
 */
#define KUBE_SERVICE_COUNTS_MAX  10000


/*
 * Endpoints by the conditions of their slices: ready; not ready, serving and
 * terminating (used where none is ready); all others.
 */
typedef enum {
    KUBE_SERVICE_COUNTS_READY = 0,
    KUBE_SERVICE_COUNTS_TERMINATING,
    KUBE_SERVICE_COUNTS_NOT_READY,
    KUBE_SERVICE_COUNTS_STATES
} kube_service_counts_state_t;

/* "ready", "terminating", "not_ready" */
const char *kube_service_counts_state_text(kube_service_counts_state_t state);


/* Strings are the walk's, until its next step. */
typedef struct {
    kube_str_t  ns;
    kube_str_t  name;
    uint64_t    endpoints[KUBE_SERVICE_COUNTS_STATES];
} kube_service_counts_row_t;

typedef struct {
    uint64_t                   omitted;    /* Services that no row tells of:
                                              beyond the limit, or they cannot
                                              be read */

    /* private */
    const kube_zone_t         *zone;
    kube_str_t                 ns;
    kube_arena_t               arena;      /* the Service */
    kube_arena_t               scratch;    /* one slice of it */
    const kube_alloc_t        *alloc;
    uint64_t                  *seen;       /* hashes; 0: free */
    uint32_t                   limit;
    uint32_t                   rows;
    uint32_t                   cursor;     /* the last entry looked at */
    const kube_record_t       *service;    /* NULL: between two */
    uint64_t                   head;       /* as of which it was read */
    uint32_t                   ref;        /* of its slices, the next */
    unsigned                   tries;
    bool                       unread;     /* a slice could not be read */
    kube_service_counts_row_t  row;
} kube_service_counts_t;

/*
 * ns empty: of all namespaces; borrowed, as the zone is.  limit is the most
 * Services that are told, at most KUBE_SERVICE_COUNTS_MAX.  KUBE_OK or
 * KUBE_NOMEM: done is called all the same.
 */
kube_rc_t kube_service_counts_init(kube_service_counts_t *counts,
    const kube_zone_t *zone, kube_str_t ns, uint32_t limit,
    const kube_alloc_t *alloc)  KUBE_MUST_CHECK;
void kube_service_counts_done(kube_service_counts_t *counts);

/*
 * KUBE_OK: *row is the next Service's; KUBE_AGAIN: none yet, call it again;
 * KUBE_NOT_FOUND: there are no more; KUBE_NOMEM.  Services are in no order, but
 * in the same as long as none is deleted.  A Service that changes faster than
 * it can be read is told as it was found, of several moments.
 */
kube_rc_t kube_service_counts_step(kube_service_counts_t *counts,
    kube_service_counts_row_t *row)  KUBE_MUST_CHECK;


#endif /* KUBE_SERVICE_COUNTS_H */

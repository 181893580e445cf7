/*
 * kube_report - what the zone of one informer says, read at one moment: the
 * figures behind the status, the metrics and the page.
 *
 * It reads the zone and judges what is degraded; it prints nothing and
 * remembers nothing.  The names of the figures, and how each is printed, are
 * kube_facts'.  Called by workers for each answer.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REPORT_H
#define KUBE_REPORT_H


#include "kube_select.h"
#include "kube_zone_cause.h"
#include "kube_zone_counters.h"
#include "kube_zone_guard.h"
#include "kube_zone_scope.h"


/* One a scope, then what concerns the informer, and workers' own. */
#define KUBE_REPORT_DEGRADED_MAX  (KUBE_SCOPES_MAX + KUBE_CAUSES + 64)

/* A cause that lasts; the table of causes is kube_zone_cause.h's. */
typedef struct {
    kube_cause_t  cause;
    int64_t       since_ms;     /* unix ms; 0: not known */
    kube_str_t    text;
} kube_degraded_t;


/* An object that the API server has and the zone does not hold as it is. */
typedef struct {
    kube_str_t  key;            /* namespace/name */
    kube_str_t  reason;
    uint64_t    outdated_ms;    /* its last good version is served for so long
                                   already; KUBE_NEVER: none is */
    uint64_t    ns;             /* tells its namespace from others */
} kube_report_refused_t;

/* One list and watch. */
typedef struct {
    kube_scope_info_t       info;
    kube_str_t              resource;
    kube_str_t              state;
    kube_str_t              digest;          /* 32 hex digits */
    bool                    watching;        /* a watch is open */
    uint64_t                queued;          /* deltas in the FIFO */
    uint64_t                version;         /* info.rv, its last 15 digits: so
                                                many a metric's value has */
    uint64_t                counters[KUBE_COUNTERS];
    uint64_t                skipped;         /* for whatever reason */
    uint64_t                last_event_ms;   /* ms ago; KUBE_NEVER */
    uint64_t                retry_ms;        /* ms from now; KUBE_NEVER */
    kube_report_refused_t  *refused;         /* some of them: of each namespace
                                                as many, if it has so many */
    size_t                  refused_n;       /* <= KUBE_REFUSED_SHOWN_MAX */
    size_t                  refused_most;    /* no namespace has more rows */
    uint64_t                refused_total;
} kube_report_scope_t;


/* Workers' counters in the zone: resolutions by their result, and others. */
#define KUBE_WORKER_RESOLVED(error)  ((unsigned) (error))
#define KUBE_WORKER_REBUILDS         KUBE_WORKER_RESOLVED(KUBE_RESOLVE_ERRORS)

typedef struct {
    /* the caller's: what the zone does not know */
    kube_str_t            name;              /* of the kube_informer block */
    kube_str_t            zone_name;
    uint64_t              zone_size;
    uint64_t              idle_timeout_ms;
    uint64_t              now_ms;            /* the zone's clock */
    int64_t               now_unix_ms;
    bool                  ready;
    kube_str_t            reason;            /* why it is not ready */

    /* kube_report_read()'s */
    const kube_zone_t    *zone;
    kube_health_t         health;
    kube_writer_info_t    writer;
    kube_zone_usage_t     usage;
    uint64_t              used_bytes;        /* tables and records */
    uint64_t              free_bytes;        /* room for records */
    uint64_t              queue_age_ms;      /* 0: nothing waits */
    kube_str_t            server;
    kube_str_t            state_error;
    uint64_t              resolved[KUBE_RESOLVE_ERRORS];    /* by result */
    uint64_t              rebuilds;          /* instances, by all workers */
    kube_report_scope_t  *scopes;
    size_t                scopes_n;
    kube_degraded_t      *degraded;
    size_t                degraded_n;
    bool                  causes[KUBE_CAUSES];    /* that degraded has */
} kube_report_t;

/*
 * Fills in the second part of a report whose first part is set.  Strings and
 * arrays are the arena's; scratch is reset as often as it likes.
 * KUBE_OK or KUBE_NOMEM.
 */
kube_rc_t kube_report_read(kube_report_t *report, const kube_zone_t *zone,
    kube_arena_t *arena, kube_arena_t *scratch)  KUBE_MUST_CHECK;

/*
 * Adds a cause that the zone does not tell of, after kube_report_read().  One
 * entry for each cause and text: it began with the oldest of them.  since_ms
 * is a unix time, 0: not known.  More than KUBE_REPORT_DEGRADED_MAX entries
 * set the cause alone.  KUBE_OK or KUBE_NOMEM.
 */
kube_rc_t kube_report_degrade(kube_report_t *report, kube_arena_t *arena,
    kube_cause_t cause, int64_t since_ms, const char *fmt, ...)
    KUBE_PRINTF(5, 6)  KUBE_MUST_CHECK;


#endif /* KUBE_REPORT_H */

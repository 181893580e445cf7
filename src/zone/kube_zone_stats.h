/*
 * kube_zone_stats - scopes and the writer's identity in the zone: what the
 * status page shows.
 *
 * A scope is one list+watch: a resource in one namespace (or in all).  Its
 * resourceVersion, count and digest are one record under one head and never
 * read torn.
 * The writer's functions are marked (writer); the rest is for any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_STATS_H
#define KUBE_ZONE_STATS_H


#include "kube_zone_counters.h"
#include "kube_zone_writer.h"


typedef enum {
    KUBE_STATE_IDLE = 0,
    KUBE_STATE_LISTING,
    KUBE_STATE_WATCHING,
    KUBE_STATE_BACKOFF,
    KUBE_STATE_STOPPED,
    KUBE_STATES
} kube_scope_state_t;

/* "idle", "listing", … as in the status API. */
const char *kube_scope_state_text(kube_scope_state_t state);


/* What a scope is and where it stands; strings borrow from the arena. */
typedef struct {
    kube_resource_t  resource;
    kube_str_t       ns;              /* empty: all */
    uint64_t         scope_hash;      /* of resource, namespace, selectors,
                                         server */
    bool             synced;          /* has completed a list in this zone */
    kube_str_t       rv;              /* published resourceVersion; "": none */
    uint64_t         count;
    kube_digest_t    digest;
    kube_str_t       error_reason;    /* last error; empty: none */
    kube_str_t       error_message;
    int64_t          error_at_ms;     /* unix ms; 0: none */
} kube_scope_info_t;

/*
 * Slots are 0 .. KUBE_SCOPES_MAX - 1, fewer in zones below 1 MiB (one for
 * each 8 KiB).  KUBE_NOT_FOUND: the slot is empty or is not there; to publish
 * there is KUBE_FULL.
 */
kube_rc_t kube_zone_scope_read(const kube_zone_t *zone, unsigned slot,
    kube_arena_t *arena, kube_scope_info_t *info)  KUBE_MUST_CHECK;

/* (writer) One store makes all of info visible, but the error_* fields. */
kube_rc_t kube_zone_scope_publish(kube_zone_writer_t *writer, unsigned slot,
    const kube_scope_info_t *info)  KUBE_MUST_CHECK;
/* (writer) */
kube_rc_t kube_zone_scope_error(kube_zone_writer_t *writer, unsigned slot,
    kube_str_t reason, kube_str_t message, int64_t at_ms)  KUBE_MUST_CHECK;
/* (writer) Empties the slot: records, error and counters. */
void kube_zone_scope_clear(kube_zone_writer_t *writer, unsigned slot);

/* The writer, for the status page and for damping a crash loop. */
typedef struct {
    uint64_t  epoch;                 /* take-overs and rollbacks */
    uint64_t  takeovers;
    uint64_t  writer_pid;            /* 0: none now */
    int64_t   writer_since_ms;       /* unix ms */
    uint64_t  crashes;               /* take-overs from a dead writer, ever */
    uint64_t  crash_times_ms[4];     /* monotonic ms of the latest, newest
                                        first; 0: none */
    uint64_t  start_delay_until_ms;  /* damping: no start before; 0: none */
    int64_t   state_written_ms;      /* unix ms of the state file; 0: never */
    uint64_t  state_in_use;          /* 1: serving from a state file */
    uint64_t  state_failed;          /* 1: the last write failed */
    uint64_t  queue_depth;
} kube_writer_info_t;

void kube_zone_writer_info(const kube_zone_t *zone, kube_writer_info_t *info);

/* (writer) identity after acquire. */
void kube_zone_writer_announce(kube_zone_writer_t *writer, uint64_t pid,
    int64_t since_ms);
void kube_zone_writer_epoch(kube_zone_writer_t *writer);     /* epoch + 1 */
void kube_zone_set_state_file(kube_zone_t *zone, int64_t written_ms,
    bool in_use, bool failed);
void kube_zone_set_queue_depth(kube_zone_t *zone, uint64_t depth);

/*
 * Crash damping, callable before the guard is held: notes a crash at now_ms
 * when crashed (crashes + 1), and returns for how long the next start should
 * wait from now on: 0 up to the third crash in 60 s, then 1, 2, 4 … 30 s
 * (ms).  A crash within 60 s after a start that was put off doubles again.
 */
uint64_t kube_zone_crash_delay(kube_zone_t *zone, bool crashed,
    uint64_t now_ms);

/*
 * For crashes before the guard is held, which its lock cannot tell: starting
 * notes that pid (not 0) sets up to become the writer, and returns the pid
 * noted before, 0: none.  If that process is gone, it died while it started.
 * The note ends when anyone takes the guard, or with started by the same pid.
 */
uint64_t kube_zone_starting(kube_zone_t *zone, uint64_t pid);
void kube_zone_started(kube_zone_t *zone, uint64_t pid);

/* (writer) The server's address as shown, cut to 255 bytes. */
kube_rc_t kube_zone_server_set(kube_zone_writer_t *writer, kube_str_t server)
    KUBE_MUST_CHECK;
kube_str_t kube_zone_server(const kube_zone_t *zone, kube_arena_t *arena);


/*
 * The words of the interface, defined in one place.
 *   synced  every watched scope has completed a list since the zone was made
 *   age     seconds since evidence that the cache is current (bytes on a
 *           watch, or a watch re-opened), the oldest scope counting
 *   stale   age above idle_timeout + 30 s, or never any evidence once synced
 * A scope that answers 403 and never had any evidence does not count for age.
 */
typedef struct {
    bool      synced;
    bool      stale;
    bool      state_in_use;
    uint64_t  age_ms;          /* UINT64_MAX: never current */
    unsigned  scopes;
    unsigned  forbidden;       /* scopes answered 403 */
} kube_health_t;

void kube_zone_health(const kube_zone_t *zone, uint64_t now_ms,
    uint64_t idle_timeout_ms, kube_health_t *health);


#endif /* KUBE_ZONE_STATS_H */

/*
 * kube_log - what the informer tells its host: one line for each event, which
 * has an id.
 *
 * The host decides where lines go.  The same event about the same subject is
 * passed on at most once in KUBE_LOG_PERIOD_MS, with the number that was held
 * back.  Callers escape names (kube_str_escape) and never pass secrets.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LOG_H
#define KUBE_LOG_H


#include "kube_base.h"


#define KUBE_LOG_PERIOD_MS  10000
#define KUBE_LOG_LINE_MAX   768


typedef enum {
    KUBE_LOG_ERROR = 0,   /* the API server is not followed, or objects are
                             not held: needs an operator */
    KUBE_LOG_WARN,        /* degraded but serving */
    KUBE_LOG_NOTICE,      /* a state changed: synced, lost, take-over */
    KUBE_LOG_INFO,        /* one line for each list or watch */
    KUBE_LOG_DEBUG
} kube_log_level_t;

#define KUBE_EVENT_MAP(XX)                                                    \
    XX(STARTED, started)              XX(STOPPED, stopped)                    \
    XX(TAKEOVER, takeover)            XX(SYNCED, synced)                      \
    XX(LIST, list)                    XX(WATCH, watch)                        \
    XX(WATCH_CLOSED, watch_closed)    XX(RELIST, relist)                      \
    XX(REQUEST_FAILED, request_failed) XX(SKIPPED, skipped_object)            \
    XX(REFUSED, refused_object)       XX(ZONE_FULL, zone_full)                \
    XX(ROOM_RETURNED, room_returned)  XX(ROLLBACK, rollback)                  \
    XX(CREDENTIALS, credentials)      XX(CONFIG, config)                      \
    XX(STATE_FILE, state_file)        XX(CRASH_LOOP, crash_loop)              \
    XX(DEGRADED, degraded)            XX(RECOVERED, recovered)                \
    XX(INTERNAL, internal)            XX(IDLE, idle_watch)                    \
    XX(CRASHED, crashed_informer)

typedef enum {
#define XX(name, text)  KUBE_EV_##name,
    KUBE_EVENT_MAP(XX)
#undef XX
    KUBE_EV_MAX
} kube_event_id_t;

/* Returns the event's name in logs; "unknown" for a value that is no event. */
const char *kube_event_text(kube_event_id_t id);


/*
 * The host's side: line is NUL-terminated and valid during the call only.
 * Where write is NULL nothing is logged.
 */
typedef struct {
    void  (*write)(void *ctx, kube_log_level_t level, kube_event_id_t id,
               const char *line);
    void   *ctx;
} kube_log_sink_t;

typedef struct {
    kube_log_sink_t  sink;
    uint64_t         last_ms[KUBE_EV_MAX];      /* passed on, or KUBE_NEVER */
    uint32_t         suppressed[KUBE_EV_MAX];   /* held back since then */
} kube_log_t;

/*
 * Each subject (a scope, a transport) has a kube_log_t of its own: what one
 * repeats does not hold back what another says.
 */
void kube_log_init(kube_log_t *log, kube_log_sink_t sink);

/*
 * Formats the line and passes it on.  ERROR and WARN are limited as said
 * above; NOTICE, INFO and DEBUG always pass.  A line longer than
 * KUBE_LOG_LINE_MAX is cut.
 */
void kube_log_event(kube_log_t *log, uint64_t now_ms, kube_log_level_t level,
    kube_event_id_t id, const char *fmt, ...)  KUBE_PRINTF(5, 6);

/* The same without a limit, for a caller that has one of its own. */
void kube_log_line(const kube_log_t *log, kube_log_level_t level,
    kube_event_id_t id, const char *fmt, ...)  KUBE_PRINTF(4, 5);


#endif /* KUBE_LOG_H */

/*
 * kube_log - what the informer tells its host, one line an event, by id.
 *
 * The host decides where lines go.  The same event about the same subject
 * is passed on at most once per KUBE_LOG_PERIOD_MS, with the number held
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
    KUBE_LOG_ERROR = 0,   /* needs an operator */
    KUBE_LOG_WARN,        /* degraded but serving */
    KUBE_LOG_NOTICE,      /* state changes: synced, lost, take-over */
    KUBE_LOG_INFO,        /* one line per list or watch */
    KUBE_LOG_DEBUG
} kube_log_level_t;

#define KUBE_EVENT_MAP(XX)                                                    \
    XX(STARTED, started)              XX(STOPPED, stopped)                    \
    XX(TAKEOVER, takeover)            XX(SYNCED, synced)                      \
    XX(LIST, list)                    XX(WATCH, watch)                        \
    XX(WATCH_CLOSED, watch_closed)    XX(RELIST, relist)                      \
    XX(REQUEST_FAILED, request_failed) XX(FORBIDDEN, forbidden)               \
    XX(UNAUTHORIZED, unauthorized)    XX(SKIPPED, skipped_object)             \
    XX(REFUSED, refused_object)       XX(ZONE_FULL, zone_full)                \
    XX(ROOM_RETURNED, room_returned)  XX(ROLLBACK, rollback)                  \
    XX(CREDENTIALS, credentials)      XX(CONFIG, config)                      \
    XX(STATE_FILE, state_file)        XX(CRASH_LOOP, crash_loop)              \
    XX(INTERNAL, internal)            XX(IDLE, idle_watch)

typedef enum {
#define XX(name, text)  KUBE_EV_##name,
    KUBE_EVENT_MAP(XX)
#undef XX
    KUBE_EV_MAX
} kube_event_id_t;

const char *kube_event_text(kube_event_id_t id);


typedef struct {
    void  (*write)(void *ctx, kube_log_level_t level, kube_event_id_t id,
               const char *line);
    void   *ctx;
} kube_log_sink_t;

typedef struct {
    kube_log_sink_t  sink;
    uint64_t         last_ms[KUBE_EV_MAX];
    uint32_t         suppressed[KUBE_EV_MAX];
} kube_log_t;

/* One kube_log_t per subject (a scope, a transport): limits are apart. */
void kube_log_init(kube_log_t *log, kube_log_sink_t sink);

/* Limited for ERROR and WARN; NOTICE, INFO and DEBUG always pass. */
void kube_log_event(kube_log_t *log, uint64_t now_ms, kube_log_level_t level,
    kube_event_id_t id, const char *fmt, ...)  KUBE_PRINTF(5, 6);


#endif /* KUBE_LOG_H */

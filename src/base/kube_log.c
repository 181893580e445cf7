/*
 * kube_log - formats one line for each event and holds back repeated ones.
 *
 * It writes nowhere itself: the sink is the host's.  It neither escapes nor
 * redacts: callers do.  Each subject has a struct of its own; one thread at a
 * time may use it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kube_log.h"


const char *
kube_event_text(kube_event_id_t id)
{
    switch (id) {
#define XX(name, text)  case KUBE_EV_##name: return #text;
    KUBE_EVENT_MAP(XX)
#undef XX
    default:
        return "unknown";
    }
}


void
kube_log_init(kube_log_t *log, kube_log_sink_t sink)
{
    unsigned  id;

    memset(log, 0, sizeof(kube_log_t));
    log->sink = sink;

    for (id = 0; id < KUBE_EV_MAX; id++) {
        log->last_ms[id] = KUBE_NEVER;
    }
}


/* Returns whether the event came too soon after the last; counts it then. */
static bool
log_is_held(kube_log_t *log, uint64_t now_ms, kube_event_id_t id)
{
    uint64_t  last_ms;

    last_ms = log->last_ms[id];

    if (last_ms != KUBE_NEVER
        && now_ms >= last_ms
        && now_ms - last_ms < KUBE_LOG_PERIOD_MS)
    {
        if (log->suppressed[id] != UINT32_MAX) {
            log->suppressed[id]++;
        }

        return true;
    }

    log->last_ms[id] = now_ms;

    return false;
}


/* Writes a line and held behind it; one too long loses its end, not held. */
static void
log_write(const kube_log_t *log, kube_log_level_t level, kube_event_id_t id,
    const char *held, const char *fmt, va_list args)
{
    char    line[KUBE_LOG_LINE_MAX];
    size_t  n;

    n = strlen(held);

    (void) vsnprintf(line, sizeof(line) - n, fmt, args);
    memcpy(line + strlen(line), held, n + 1);

    log->sink.write(log->sink.ctx, level, id, line);
}


void
kube_log_line(const kube_log_t *log, kube_log_level_t level,
    kube_event_id_t id, const char *fmt, ...)
{
    va_list  args;

    if (log->sink.write == NULL) {
        return;
    }

    va_start(args, fmt);
    log_write(log, level, id, "", fmt, args);
    va_end(args);
}


void
kube_log_event(kube_log_t *log, uint64_t now_ms, kube_log_level_t level,
    kube_event_id_t id, const char *fmt, ...)
{
    char     held[32];
    va_list  args;

    if (log->sink.write == NULL || (unsigned) id >= KUBE_EV_MAX) {
        return;
    }

    held[0] = '\0';

    if (level <= KUBE_LOG_WARN) {
        if (log_is_held(log, now_ms, id)) {
            return;
        }

        if (log->suppressed[id] != 0) {
            (void) snprintf(held, sizeof(held), " (%u suppressed)",
                            (unsigned) log->suppressed[id]);
            log->suppressed[id] = 0;
        }
    }

    va_start(args, fmt);
    log_write(log, level, id, held, fmt, args);
    va_end(args);
}

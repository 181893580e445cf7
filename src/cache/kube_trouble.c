/*
 * kube_trouble - what keeps an informer from following, said once.
 *
 * It judges no answer: that a cause is there, or over, is told by the
 * informer, its only caller.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_limits.h"
#include "kube_trouble.h"
#include "kube_zone_counters.h"


#define TROUBLE_TEXT_MAX  (KUBE_MESSAGE_LEN_MAX + 256)

typedef struct {
    kube_cause_t   cause;
    unsigned       sufferers;    /* scopes, or 1 for the informer */
    bool           open;
    bool           said;         /* that it began */
    bool           owes;         /* to say that it is over: it was said, or
                                    what it followed was */
    uint64_t       since_ms;
    uint64_t       said_ms;      /* the last line; outlives a silent end */
    uint64_t       over_ms;      /* the last sufferer recovered; KUBE_NEVER */
    uint64_t       attempts;
    const char    *remedy;       /* NULL: that of the cause */
    char           text[TROUBLE_TEXT_MAX];
} trouble_one_t;

typedef struct {
    trouble_one_t  *in;          /* NULL: none */
    trouble_one_t  *last;        /* the one it was in before */
    uint64_t        attempts;    /* those counted already */
} trouble_scope_t;

struct kube_trouble_s {
    kube_alloc_t      alloc;
    kube_zone_t      *zone;
    kube_log_t        log;
    kube_str_t        server;
    uint64_t          deadline_ms;
    trouble_scope_t   scopes[KUBE_SCOPES_MAX];
    trouble_one_t     shared[KUBE_CAUSES];
    trouble_one_t     forbidden[KUBE_SCOPES_MAX];
};


kube_trouble_t *
kube_trouble_create(const kube_alloc_t *alloc, kube_zone_t *zone,
    kube_log_sink_t sink, kube_str_t server)
{
    unsigned         i;
    kube_trouble_t  *t;

    t = kube_zalloc(alloc, sizeof(kube_trouble_t));
    if (t == NULL) {
        return NULL;
    }

    t->alloc = *alloc;
    t->zone = zone;
    t->server = server;
    t->deadline_ms = KUBE_NEVER;
    kube_log_init(&t->log, sink);

    for (i = 0; i < KUBE_CAUSES; i++) {
        t->shared[i].cause = (kube_cause_t) i;
        t->shared[i].said_ms = KUBE_NEVER;
    }

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        t->forbidden[i].cause = KUBE_CAUSE_FORBIDDEN;
        t->forbidden[i].said_ms = KUBE_NEVER;
    }

    return t;
}


void
kube_trouble_destroy(kube_trouble_t *trouble)
{
    kube_alloc_t  alloc;

    if (trouble == NULL) {
        return;
    }

    alloc = trouble->alloc;
    kube_free(&alloc, trouble);
}


/* When its next line is due. */
static uint64_t
trouble_due(const trouble_one_t *one)
{
    uint64_t  due_ms;

    if (one->over_ms != KUBE_NEVER) {
        return one->over_ms + KUBE_TROUBLE_SETTLE_MS;
    }

    due_ms = one->said
             ? 0 : one->since_ms
                   + kube_cause_info(one->cause)->grace_ms;

    if (one->said_ms != KUBE_NEVER
        && due_ms < one->said_ms + KUBE_TROUBLE_REPEAT_MS)
    {
        due_ms = one->said_ms + KUBE_TROUBLE_REPEAT_MS;
    }

    return due_ms;
}


static void
trouble_schedule(kube_trouble_t *t, const trouble_one_t *one)
{
    uint64_t  due_ms;

    due_ms = trouble_due(one);

    if (due_ms < t->deadline_ms) {
        t->deadline_ms = due_ms;
    }
}


static void
trouble_join(kube_trouble_t *t, trouble_one_t *one, uint64_t since_ms)
{
    if (!one->open) {
        one->open = true;
        one->said = false;
        one->owes = false;
        one->since_ms = since_ms;
        one->attempts = 0;
        one->remedy = NULL;
        one->text[0] = '\0';
    }

    if (since_ms < one->since_ms) {
        one->since_ms = since_ms;
    }

    one->over_ms = KUBE_NEVER;
    one->sufferers++;
    trouble_schedule(t, one);
}


/*
 * moved: to another cause, so that nothing is over.  Returns whether that one
 * has to say the end of this one.
 */
static bool
trouble_leave(kube_trouble_t *t, trouble_one_t *one, bool moved,
    uint64_t now_ms)
{
    if (--one->sufferers != 0) {
        return false;
    }

    if (moved || !one->owes) {
        one->open = false;
        return one->owes;
    }

    one->over_ms = now_ms;
    trouble_schedule(t, one);

    return false;
}


/* A scope goes over to another trouble, or to none. */
static void
trouble_move(kube_trouble_t *t, trouble_scope_t *s, trouble_one_t *in,
    uint64_t since_ms, uint64_t now_ms)
{
    bool            owes;
    trouble_one_t  *last;

    owes = false;
    last = s->last;

    if (s->in != NULL) {
        s->last = s->in;
        owes = trouble_leave(t, s->in, in != NULL, now_ms);

    } else if (last != NULL && last != in && last->open
               && last->over_ms != KUBE_NEVER)
    {
        /* that one had not settled: it was not over */

        last->open = false;
        owes = last->owes;
    }

    if (in != NULL) {
        trouble_join(t, in, since_ms);
        in->owes |= owes;
    }

    s->in = in;
    s->attempts = 0;
}


void
kube_trouble_scope(kube_trouble_t *t, unsigned scope, const char *label,
    const kube_suffering_t *suffering, uint64_t now_ms)
{
    uint64_t          since_ms;
    kube_cause_t      cause;
    trouble_one_t    *in;
    trouble_scope_t  *s;

    s = &t->scopes[scope];
    cause = suffering->cause;

    in = (cause == KUBE_CAUSES) ? NULL
         : (cause == KUBE_CAUSE_FORBIDDEN) ? &t->forbidden[scope]
         : &t->shared[cause];

    /* what a predecessor suffered from lasts until something is known */

    if (cause == KUBE_CAUSES && s->in == NULL
        && kube_zone_scope_counter(t->zone, scope,
                                   KUBE_COUNTER_GAUGE_WATCH_OPEN)
           == 0)
    {
        return;
    }

    since_ms = kube_zone_scope_counter(t->zone, scope,
                                       KUBE_COUNTER_GAUGE_SINCE_MS);

    if (in == NULL) {
        since_ms = 0;

    } else if (since_ms == 0 || since_ms > now_ms) {
        since_ms = suffering->since_ms;
    }

    if (in != s->in) {
        trouble_move(t, s, in, since_ms, now_ms);
    }

    kube_zone_scope_set(t->zone, scope, KUBE_COUNTER_GAUGE_SINCE_MS, since_ms);
    kube_zone_scope_set(t->zone, scope, KUBE_COUNTER_GAUGE_CAUSE,
                        (in == NULL) ? 0 : (uint64_t) cause + 1);

    if (in == NULL) {
        return;
    }

    if (suffering->attempts > s->attempts || in->text[0] == '\0') {
        in->attempts += suffering->attempts - s->attempts;
        s->attempts = suffering->attempts;
        in->remedy = suffering->remedy;

        (void) snprintf(in->text, sizeof(in->text), "%s at %.*s: %s", label,
                        (int) t->server.len, t->server.data,
                        suffering->message);
    }
}


void
kube_trouble_zone(kube_trouble_t *t, kube_cause_t cause, const char *text,
    uint64_t now_ms)
{
    uint64_t        since_ms;
    trouble_one_t  *one;

    one = &t->shared[cause];
    since_ms = kube_zone_cause_since(t->zone, cause);

    if (text == NULL) {

        if (since_ms != 0) {
            kube_zone_cause_set(t->zone, cause, 0);
        }

        if (one->sufferers != 0) {
            (void) trouble_leave(t, one, false, now_ms);
        }

        return;
    }

    if (since_ms == 0 || since_ms > now_ms) {
        since_ms = now_ms;
        kube_zone_cause_set(t->zone, cause, since_ms);
    }

    if (one->sufferers == 0) {
        trouble_join(t, one, since_ms);
    }

    (void) snprintf(one->text, sizeof(one->text), "%s", text);
}


/* "3 m 12 s" */
static const char *
trouble_duration(uint64_t ms, char *dst, size_t size)
{
    unsigned long long  s;

    s = ms / 1000;

    if (s < 60) {
        (void) snprintf(dst, size, "%llu s", s);

    } else if (s < 3600) {
        (void) snprintf(dst, size, "%llu m %llu s", s / 60, s % 60);

    } else {
        (void) snprintf(dst, size, "%llu h %llu m", s / 3600, s / 60 % 60);
    }

    return dst;
}


static void
trouble_over(kube_trouble_t *t, trouble_one_t *one)
{
    char                      took[48];
    const kube_cause_info_t  *info;

    info = kube_cause_info(one->cause);
    one->open = false;
    one->said_ms = KUBE_NEVER;

    (void) trouble_duration(one->over_ms - one->since_ms, took, sizeof(took));

    if (!info->not_following) {
        kube_log_line(&t->log, KUBE_LOG_NOTICE, KUBE_EV_RECOVERED,
                      "%s: over after %s", info->text, took);
        return;
    }

    kube_log_line(&t->log, KUBE_LOG_NOTICE, KUBE_EV_RECOVERED,
                  "%s: following again after %s, %llu attempts", info->text,
                  took, (unsigned long long) one->attempts);
}


static void
trouble_say(kube_trouble_t *t, trouble_one_t *one, uint64_t now_ms)
{
    char                      took[48];
    const kube_cause_info_t  *info;

    info = kube_cause_info(one->cause);

    if (!one->said) {
        one->said = true;
        one->owes = true;
        kube_log_line(&t->log, KUBE_LOG_ERROR, KUBE_EV_DEGRADED, "%s: %s; %s",
                      info->text, one->text,
                      one->remedy != NULL ? one->remedy : info->remedy);

        one->said_ms = now_ms;
        return;
    }

    (void) trouble_duration(now_ms - one->since_ms, took, sizeof(took));
    one->said_ms = now_ms;

    if (!info->not_following) {
        kube_log_line(&t->log, KUBE_LOG_ERROR, KUBE_EV_DEGRADED,
                      "%s: for %s: %s", info->text, took, one->text);
        return;
    }

    kube_log_line(&t->log, KUBE_LOG_ERROR, KUBE_EV_DEGRADED,
                  "%s: for %s, %llu attempts: %s", info->text, took,
                  (unsigned long long) one->attempts, one->text);
}


static void
trouble_process(kube_trouble_t *t, trouble_one_t *one, uint64_t now_ms)
{
    if (!one->open) {
        return;
    }

    if (now_ms >= trouble_due(one)) {

        if (one->over_ms != KUBE_NEVER) {
            trouble_over(t, one);
            return;
        }

        trouble_say(t, one, now_ms);
    }

    trouble_schedule(t, one);
}


void
kube_trouble_process(kube_trouble_t *t, uint64_t now_ms)
{
    unsigned  i;

    if (now_ms < t->deadline_ms) {
        return;
    }

    t->deadline_ms = KUBE_NEVER;

    for (i = 0; i < KUBE_CAUSES; i++) {
        trouble_process(t, &t->shared[i], now_ms);
    }

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        trouble_process(t, &t->forbidden[i], now_ms);
    }
}


uint64_t
kube_trouble_deadline(const kube_trouble_t *t)
{
    return t->deadline_ms;
}

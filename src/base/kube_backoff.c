/*
 * kube_backoff - sleeps that double, with jitter, and start again after a
 * healthy time.
 *
 * It arms no timer and reads no clock: it only says how long.  The caller has
 * a struct for each peer; one thread at a time may use it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_backoff.h"


void
kube_backoff_init(kube_backoff_t *b, const kube_backoff_conf_t *conf)
{
    b->conf = *conf;
    b->step_ms = conf->first_ms;
    b->healthy_ms = KUBE_NEVER;
}


void
kube_backoff_healthy(kube_backoff_t *b, uint64_t now_ms)
{
    if (b->healthy_ms == KUBE_NEVER) {
        b->healthy_ms = now_ms;
    }
}


static uint64_t
backoff_ceiling(const kube_backoff_t *b, bool unreachable)
{
    if (unreachable && b->conf.unreachable_ms < b->conf.max_ms) {
        return b->conf.unreachable_ms;
    }

    return b->conf.max_ms;
}


uint64_t
kube_backoff_next(kube_backoff_t *b, kube_random_t *r, uint64_t now_ms,
    bool unreachable, uint64_t floor_ms)
{
    uint64_t  ceiling_ms, step_ms, sleep_ms;

    if (b->healthy_ms != KUBE_NEVER
        && now_ms >= b->healthy_ms
        && now_ms - b->healthy_ms >= KUBE_BACKOFF_RESET_MS)
    {
        b->step_ms = b->conf.first_ms;
    }

    b->healthy_ms = KUBE_NEVER;

    ceiling_ms = backoff_ceiling(b, unreachable);
    step_ms = (b->step_ms < ceiling_ms) ? b->step_ms : ceiling_ms;

    sleep_ms = kube_random_range(r, step_ms - step_ms / 2, step_ms);

    /*
     * The step doubles up to the ceiling of this failure only: when a server
     * is back after a long outage and answers 503 once, the sleep must not be
     * half a minute.
     */
    if (b->step_ms < ceiling_ms) {
        b->step_ms = (b->step_ms < ceiling_ms / 2) ? b->step_ms * 2
                                                   : ceiling_ms;
    }

    return (sleep_ms > floor_ms) ? sleep_ms : floor_ms;
}

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
#include "kube_base.h"


void
kube_backoff_init(kube_backoff_t *b, const kube_backoff_conf_t *conf)
{
    b->conf = *conf;
    b->step_ms = conf->first_ms;
    b->healthy_ms = KUBE_NEVER;
    b->floors = 0;
}


void
kube_backoff_healthy(kube_backoff_t *b, uint64_t now_ms)
{
    if (b->healthy_ms == KUBE_NEVER) {
        b->healthy_ms = now_ms;
    }

    b->floors = 0;
}


/* Half to all of the step, which then doubles. */
static uint64_t
backoff_step(kube_backoff_t *b, kube_random_t *r, bool unreachable)
{
    uint64_t  ceiling_ms, step_ms;

    ceiling_ms = b->conf.max_ms;

    if (unreachable && b->conf.unreachable_ms < ceiling_ms) {
        ceiling_ms = b->conf.unreachable_ms;
    }

    step_ms = (b->step_ms < ceiling_ms) ? b->step_ms : ceiling_ms;

    /*
     * The step doubles up to the ceiling of this failure only: when a server
     * is back after a long outage and answers 503 once, the sleep must not be
     * half a minute.
     */
    if (b->step_ms < ceiling_ms) {
        b->step_ms = (b->step_ms < ceiling_ms / 2) ? b->step_ms * 2
                                                   : ceiling_ms;
    }

    return kube_random_range(r, step_ms - step_ms / 2, step_ms);
}


uint64_t
kube_backoff_next(kube_backoff_t *b, kube_random_t *r, uint64_t now_ms,
    bool unreachable, uint64_t floor_ms)
{
    uint64_t  sleep_ms;

    if (b->healthy_ms <= now_ms
        && now_ms - b->healthy_ms >= KUBE_BACKOFF_RESET_MS)
    {
        b->step_ms = b->conf.first_ms;
    }

    b->healthy_ms = KUBE_NEVER;

    if (floor_ms == 0) {
        b->floors = 0;
        return backoff_step(b, r, unreachable);
    }

    floor_ms += kube_random_range(r, 0, floor_ms / 2);

    if (b->floors < KUBE_BACKOFF_FLOORS) {
        b->floors++;
        return floor_ms;
    }

    sleep_ms = backoff_step(b, r, unreachable);

    return (sleep_ms > floor_ms) ? sleep_ms : floor_ms;
}

/*
 * kube_zone_damping - how long a start waits after crashes.
 *
 * Words of the image alone, and no clock.  It neither takes the guard nor
 * waits; who may call what is said in the header.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_damping.h"
#include "kube_zone_image.h"


#define DAMPING_CRASH_WINDOW_MS  60000
#define DAMPING_DELAY_FIRST_MS   1000
#define DAMPING_DELAY_MAX_MS     30000
#define DAMPING_DOUBLINGS        5


/* True if all crashes that are remembered lie in the window that ends now. */
static bool
damping_is_crashing(const kube_zone_history_t *history, uint64_t now_ms)
{
    unsigned  i;

    if (kube_word_get(&history->crashes) < KUBE_ZONE_CRASHES) {
        return false;
    }

    for (i = 0; i < KUBE_ZONE_CRASHES; i++) {
        if (now_ms - kube_word_get(&history->crash_times_ms[i])
            > DAMPING_CRASH_WINDOW_MS)
        {
            return false;
        }
    }

    return true;
}


/*
 * The time waited does not end a loop of crashes: a crash within the window
 * after the start that was put off counts as the next of the same run.
 */
static void
damping_note_crash(kube_zone_history_t *history, uint64_t now_ms)
{
    unsigned  i;
    uint64_t  run, until;

    for (i = KUBE_ZONE_CRASHES - 1; i > 0; i--) {
        kube_word_set(&history->crash_times_ms[i],
                      kube_word_get(&history->crash_times_ms[i - 1]));
    }

    kube_word_set(&history->crash_times_ms[0], now_ms);
    kube_word_add(&history->crashes, 1);

    run = kube_word_get(&history->crash_run);
    until = kube_word_get(&history->start_delay_until_ms);

    if (run != 0 && now_ms <= until + DAMPING_CRASH_WINDOW_MS) {
        run++;

    } else {
        run = damping_is_crashing(history, now_ms);
    }

    if (run == 0) {
        until = 0;

    } else if (run <= DAMPING_DOUBLINGS) {
        until = now_ms + ((uint64_t) DAMPING_DELAY_FIRST_MS << (run - 1));

    } else {
        until = now_ms + DAMPING_DELAY_MAX_MS;
    }

    kube_word_set(&history->crash_run, run);
    kube_word_set(&history->start_delay_until_ms, until);
}


uint64_t
kube_zone_crash_delay(kube_zone_t *zone, bool crashed, uint64_t now_ms)
{
    uint64_t  until;

    if (crashed) {
        damping_note_crash(&zone->image->history, now_ms);
    }

    until = kube_word_get(&zone->image->history.start_delay_until_ms);

    /* after a reboot the clock begins anew: do not wait for the old one */
    if (until <= now_ms || until - now_ms > DAMPING_DELAY_MAX_MS) {
        return 0;
    }

    return until - now_ms;
}


uint64_t
kube_zone_starting(kube_zone_t *zone, uint64_t pid)
{
    return atomic_exchange_explicit(&zone->image->starting_pid, pid,
                                    memory_order_acq_rel);
}


void
kube_zone_started(kube_zone_t *zone, uint64_t pid)
{
    /* another process may have noted its pid since: keep that */
    (void) atomic_compare_exchange_strong_explicit(
               &zone->image->starting_pid, &pid, 0, memory_order_acq_rel,
               memory_order_acquire);
}

/*
 * kube_zone_damping - how long a start waits after crashes.
 *
 * Words of the image alone, and no clock.  It neither takes the guard nor
 * waits; who may call what is said in the header.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_cause.h"
#include "kube_zone_damping.h"
#include "kube_zone_image.h"
#include "kube_zone_scope.h"


#define DAMPING_WINDOW_MS        60000

#define DAMPING_RESUME_MS        1000
#define DAMPING_RESUME_LONG_MS   5000
#define DAMPING_BLAMELESS_MANY   60

#define DAMPING_LIST_FIRST_MS    1000
#define DAMPING_LIST_MAX_MS      30000
#define DAMPING_DOUBLINGS        5

/* As long as a hostile worker may make every gateway list again and again. */
#define DAMPING_DISTURBED_MS     10000
#define DAMPING_DISTURBED_MAX_MS 600000
#define DAMPING_DISTURBED_RUN    6


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
            > DAMPING_WINDOW_MS)
        {
            return false;
        }
    }

    return true;
}


bool
kube_zone_crash_loop(const kube_zone_t *zone, uint64_t now_ms)
{
    const kube_zone_history_t  *history;

    history = &zone->image->history;

    return kube_word_get(&history->crash_run) != 0
           && now_ms <= kube_word_get(&history->list_delay_until_ms)
                        + DAMPING_WINDOW_MS;
}


/*
 * The number of this crash in a loop; 0: there is none.  The time waited does
 * not end a loop: a crash within the window after a start that was put off
 * counts as the next of the same.
 */
static uint64_t
damping_run(const kube_zone_t *zone, uint64_t now_ms)
{
    const kube_zone_history_t  *history;

    history = &zone->image->history;

    return kube_zone_crash_loop(zone, now_ms)
           ? kube_word_get(&history->crash_run) + 1
           : damping_is_crashing(history, now_ms);
}


/* step +- 50 % */
static uint64_t
damping_jitter(uint64_t step_ms, uint64_t random)
{
    return step_ms / 2 + random % (step_ms + 1);
}


void
kube_zone_crashed(kube_zone_t *zone, bool blameless, uint64_t random,
    uint64_t now_ms)
{
    unsigned              i;
    uint64_t              run, many, resume_ms, list_ms;
    kube_zone_history_t  *history;

    history = &zone->image->history;

    for (i = KUBE_ZONE_CRASHES - 1; i > 0; i--) {
        kube_word_set(&history->crash_times_ms[i],
                      kube_word_get(&history->crash_times_ms[i - 1]));
    }

    kube_word_set(&history->crash_times_ms[0], now_ms);
    kube_word_add(&history->crashes, 1);

    run = damping_run(zone, now_ms);
    many = (run == 0) ? 0 : kube_word_get(&history->crashes_blameless)
                            + blameless;
    resume_ms = 0;
    list_ms = 0;

    if (run != 0) {
        resume_ms = damping_jitter((many > DAMPING_BLAMELESS_MANY)
                                   ? DAMPING_RESUME_LONG_MS
                                   : DAMPING_RESUME_MS, random);

        list_ms = (run <= DAMPING_DOUBLINGS)
                  ? (uint64_t) DAMPING_LIST_FIRST_MS << (run - 1)
                  : DAMPING_LIST_MAX_MS;

        list_ms = (list_ms > resume_ms) ? list_ms : resume_ms;
    }

    if (run <= 1) {
        kube_zone_cause_set(zone, KUBE_CAUSE_CRASH_LOOP, run ? now_ms : 0);
    }

    kube_word_set(&history->crash_run, run);
    kube_word_set(&history->crashes_blameless, many);
    kube_word_set(&history->start_delay_until_ms, now_ms + resume_ms);
    kube_word_set(&history->list_delay_until_ms, now_ms + list_ms);
}


/* The clock may have begun anew: no wait is longer than the longest. */
static uint64_t
damping_left(uint64_t until_ms, uint64_t now_ms)
{
    return (until_ms <= now_ms || until_ms - now_ms > DAMPING_LIST_MAX_MS)
           ? 0 : until_ms - now_ms;
}


void
kube_zone_crash_delay(const kube_zone_t *zone, uint64_t now_ms,
    kube_zone_delay_t *delay)
{
    const kube_zone_history_t  *history;

    history = &zone->image->history;

    delay->resume_ms = damping_left(
                           kube_word_get(&history->start_delay_until_ms),
                           now_ms);
    delay->list_ms = damping_left(
                         kube_word_get(&history->list_delay_until_ms),
                         now_ms);
}


void
kube_zone_damped(kube_zone_t *zone, unsigned scope, unsigned n,
    uint64_t until_ms)
{
    for ( /* void */ ; n != 0; n--, scope++) {
        kube_zone_scope_set(zone, scope, KUBE_COUNTER_GAUGE_STATE,
                            KUBE_STATE_DAMPED);
        kube_zone_scope_set(zone, scope, KUBE_COUNTER_GAUGE_RETRY_AT_MS,
                            until_ms);
        kube_zone_scope_set(zone, scope, KUBE_COUNTER_GAUGE_WATCH_OPEN, 0);
    }
}


bool
kube_zone_disturbed(kube_zone_t *zone, uint64_t now_ms, uint64_t *wait_ms)
{
    uint64_t              run, until_ms;
    kube_zone_history_t  *history;

    history = &zone->image->history;
    run = kube_word_get(&history->disturbance_run);
    until_ms = kube_word_get(&history->disturbed_until_ms);

    /* the words may be what was changed: they put nothing off for longer */
    if (until_ms > now_ms && until_ms - now_ms <= DAMPING_DISTURBED_MAX_MS) {
        return false;
    }

    if (until_ms > now_ms || now_ms - until_ms > DAMPING_DISTURBED_MAX_MS) {
        run = 0;
    }

    *wait_ms = (run < DAMPING_DISTURBED_RUN)
               ? (uint64_t) DAMPING_DISTURBED_MS << run
               : DAMPING_DISTURBED_MAX_MS;

    kube_word_set(&history->disturbance_run, run + 1);
    kube_word_set(&history->disturbed_until_ms, now_ms + *wait_ms);
    kube_word_add(&history->disturbances, 1);

    return true;
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

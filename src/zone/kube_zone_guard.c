/*
 * kube_zone_guard - the guard and the writer's identity.
 *
 * It writes no record and walks no table.  Who may call what is said in the
 * header.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE  200809L
#endif

#include <errno.h>

#include "kube_zone_guard.h"
#include "kube_zone_image.h"


kube_rc_t
kube_zone_guard_init(kube_zone_t *zone)
{
    int                  rc;
    pthread_mutexattr_t  attr;

    if (pthread_mutexattr_init(&attr) != 0) {
        return KUBE_INVALID;
    }

    rc = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);

    if (rc == 0) {
        rc = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    }

    if (rc == 0) {
        rc = pthread_mutex_init(&zone->image->guard, &attr);
    }

    (void) pthread_mutexattr_destroy(&attr);

    return (rc == 0) ? KUBE_OK : KUBE_INVALID;
}


kube_rc_t
kube_zone_guard_take(kube_zone_t *zone, bool *crashed)
{
    kube_zone_image_t  *image;

    image = zone->image;

    switch (pthread_mutex_trylock(&image->guard)) {
    case 0:
        break;

    case EBUSY:
        return KUBE_BUSY;

    case EOWNERDEAD:
        if (pthread_mutex_consistent(&image->guard) == 0) {
            break;
        }

        return KUBE_CORRUPT;

    default:
        return KUBE_CORRUPT;
    }

    /* who dies in the walk leaves the word as it was found */
    *crashed = (kube_word_get(&image->dirty) != 0);
    kube_word_set(&image->dirty, 1);
    kube_word_set(&image->starting_pid, 0);
    KUBE_FAILPOINT("guard_taken");

    if (kube_word_get(&image->history.epoch) != 0) {
        kube_word_add(&image->history.takeovers, 1);
    }

    kube_word_add(&image->history.epoch, 1);

    return KUBE_OK;
}


void
kube_zone_guard_release(kube_zone_t *zone)
{
    kube_word_set(&zone->image->writer_pid, 0);
    kube_word_set(&zone->image->dirty, 0);
    (void) pthread_mutex_unlock(&zone->image->guard);
}


void
kube_zone_writer_info(const kube_zone_t *zone, kube_writer_info_t *info)
{
    unsigned                    i;
    const kube_zone_image_t    *image;
    const kube_zone_history_t  *history;

    static_assert(sizeof(info->crash_times_ms)
                  == KUBE_ZONE_CRASHES * sizeof(uint64_t),
                  "all crash times are shown");

    image = zone->image;
    history = &image->history;

    info->epoch = kube_word_get(&history->epoch);
    info->takeovers = kube_word_get(&history->takeovers);
    info->writer_pid = kube_word_get(&image->writer_pid);
    info->writer_since_ms = (int64_t) kube_word_get(&image->writer_since_ms);
    info->crashes = kube_word_get(&history->crashes);
    info->start_delay_until_ms = kube_word_get(&history->start_delay_until_ms);
    info->list_delay_until_ms = kube_word_get(&history->list_delay_until_ms);
    info->state_written_ms =
                         (int64_t) kube_word_get(&history->state_written_ms);
    info->state_in_use = kube_word_get(&history->state_in_use);
    info->state_failed = kube_word_get(&history->state_failed);
    info->queue_depth = kube_word_get(&image->queue_depth);

    for (i = 0; i < KUBE_ZONE_CRASHES; i++) {
        info->crash_times_ms[i] = (i < info->crashes)
                                  ? kube_word_get(&history->crash_times_ms[i])
                                  : KUBE_NEVER;
    }
}


void
kube_zone_writer_announce(kube_zone_writer_t *w, uint64_t pid,
    int64_t since_ms)
{
    kube_word_set(&w->zone->image->writer_since_ms, (uint64_t) since_ms);
    kube_word_set(&w->zone->image->writer_pid, pid);
}


void
kube_zone_writer_epoch(kube_zone_writer_t *w)
{
    kube_word_add(&w->zone->image->history.epoch, 1);
}


void
kube_zone_set_state_file(kube_zone_t *zone, int64_t written_ms, bool in_use,
    bool failed)
{
    kube_zone_history_t  *history;

    history = &zone->image->history;

    kube_word_set(&history->state_written_ms, (uint64_t) written_ms);
    kube_word_set(&history->state_in_use, in_use);
    kube_word_set(&history->state_failed, failed);
}


void
kube_zone_set_queue_depth(kube_zone_t *zone, uint64_t depth)
{
    kube_word_set(&zone->image->queue_depth, depth);
}

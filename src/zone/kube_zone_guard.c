/*
 * kube_zone_guard - the guard and the writer's identity.
 *
 * It writes no record and walks no table.  Who may call what is said in the
 * header.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

/* memfd_create() */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "kube_zone_guard.h"
#include "kube_zone_image.h"


/* Kernels from 6.3 on know it, and may demand it (vm.memfd_noexec). */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL  0x0008U
#endif


int
kube_zone_guard_open(void)
{
    int  fd;

    fd = memfd_create("kube_zone_guard", MFD_CLOEXEC|MFD_NOEXEC_SEAL);

    if (fd == -1 && errno == EINVAL) {
        fd = memfd_create("kube_zone_guard", MFD_CLOEXEC);
    }

    return fd;
}


/* KUBE_OK, KUBE_BUSY, KUBE_CORRUPT; the lock is of the whole file. */
static kube_rc_t
guard_lock(const kube_zone_t *zone, short type)
{
    struct flock  lock;

    if (zone->guard_fd == KUBE_ZONE_PRIVATE) {
        return KUBE_OK;
    }

    lock = (struct flock) { .l_type = type, .l_whence = SEEK_SET };

    if (fcntl(zone->guard_fd, F_SETLK, &lock) == 0) {
        return KUBE_OK;
    }

    return (errno == EACCES || errno == EAGAIN) ? KUBE_BUSY : KUBE_CORRUPT;
}


kube_rc_t
kube_zone_guard_take(kube_zone_t *zone, bool *crashed)
{
    kube_rc_t           rc;
    kube_zone_image_t  *image;

    /* the lock is the process's: it would be had twice */
    if (zone->guard_held) {
        return KUBE_BUSY;
    }

    rc = guard_lock(zone, F_WRLCK);

    if (rc != KUBE_OK) {
        return rc;
    }

    zone->guard_held = true;
    image = zone->image;

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
    kube_rc_t  rc;

    kube_word_set(&zone->image->writer_pid, 0);
    kube_word_set(&zone->image->dirty, 0);

    /* giving back what is held does not fail */
    rc = guard_lock(zone, F_UNLCK);
    (void) rc;

    zone->guard_held = false;
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
    info->disturbances = kube_word_get(&history->disturbances);
    info->crashes = kube_word_get(&history->crashes);
    info->start_delay_until_ms = kube_word_get(&history->start_delay_until_ms);
    info->list_delay_until_ms = kube_word_get(&history->list_delay_until_ms);
    info->state_written_ms =
                         (int64_t) kube_word_get(&history->state_written_ms);
    info->state_in_use = kube_word_get(&history->state_in_use);
    info->state_failed = kube_word_get(&history->state_failed);
    info->queue_depth = kube_word_get(&image->queue_depth);
    info->queue_since_ms = kube_word_get(&image->queue_since_ms);
    info->services_waiting = kube_word_get(&image->services_waiting);
    info->services_added = kube_word_get(&image->services_added);

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
    kube_word_set(&history->state_failed, failed);

    if (in_use != (kube_word_get(&history->state_in_use) != 0)) {
        kube_word_set(&history->state_in_use,
                      in_use ? KUBE_STATE_FILE_WHOLE : 0);
    }
}


void
kube_zone_set_state_loading(kube_zone_t *zone, bool loading)
{
    kube_word_t  *in_use;

    in_use = &zone->image->history.state_in_use;

    if (loading) {
        kube_word_set(in_use, KUBE_STATE_FILE_LOADING);

    } else if (kube_word_get(in_use) == KUBE_STATE_FILE_LOADING) {
        kube_word_set(in_use, KUBE_STATE_FILE_WHOLE);
    }
}


uint64_t
kube_zone_object_max(const kube_zone_t *zone)
{
    return kube_word_get(&zone->image->history.object_max);
}


void
kube_zone_set_object_max(kube_zone_t *zone, uint64_t bytes)
{
    kube_word_set(&zone->image->history.object_max, bytes);
}


void
kube_zone_set_queue(kube_zone_t *zone, uint64_t depth, uint64_t since_ms)
{
    kube_word_set(&zone->image->queue_depth, depth);
    kube_word_set(&zone->image->queue_since_ms, since_ms);
}


void
kube_zone_set_services(kube_zone_t *zone, uint64_t waiting, uint64_t added)
{
    kube_word_set(&zone->image->services_waiting, waiting);
    kube_word_add(&zone->image->services_added, added);
}

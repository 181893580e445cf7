/*
 * kube_zone_recover - becoming the writer.
 *
 * Acquiring always walks the table: what a dead predecessor left is
 * validated, completed or cut off, and the writer's own memory is made anew.
 * It trusts nothing in the image.  Dying in it is harmless: every step
 * leaves the image as good as it found it.  Called by kube_informer's
 * take-over, and for a fresh image by kube_zone_copy; it asks no server.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_RECOVER_H
#define KUBE_ZONE_RECOVER_H


#include "kube_zone_poison.h"


typedef struct {
    bool      crashed;        /* the predecessor died holding the guard */
    bool      blamed;         /* ... and said of what: death is valid */
    bool      distrust;       /* something was lost, now or before, that no
                                 scope's version leaves out */
    uint32_t  records;        /* entries that hold something after the walk */
    uint32_t  cut_off;        /* records that failed validation */
    uint32_t  repaired;       /* Services published again, slices let go */
    uint64_t  epoch;          /* after this take-over */
    uint64_t  stores;         /* heads of entries stored before it */
    kube_death_t  death;
} kube_takeover_t;

/*
 * hand: borrowed; each record is in it while the walk looks at it.  One that
 * killed two processes is not looked at: it becomes a refused name.
 */
void kube_zone_writer_hand(kube_zone_writer_t *writer, kube_hand_t *hand);

/*
 * Tries to become the writer, at now_ms (monotonic).  KUBE_OK; KUBE_BUSY:
 * another process is, or this writer already; KUBE_CORRUPT: the guard is broken
 * beyond repair (the caller may create the image anew).
 */
kube_rc_t kube_zone_writer_acquire(kube_zone_writer_t *writer,
    uint64_t now_ms, kube_takeover_t *takeover)  KUBE_MUST_CHECK;

/*
 * Ends takeover.distrust, of all successors too: every scope in use was
 * published without a version, and those not in use are cleared.
 */
void kube_zone_writer_trust(kube_zone_writer_t *writer);


/*
 * True if, since acquire, the writer found the image not to be as it left it,
 * or a reader met a broken record: another process has written there.  The
 * remedy is to acquire anew, for the walk, and to list: distrust says so to
 * whoever acquires next.  kube_zone_disturbed() (kube_zone_damping.h) says
 * whether it is time for that.
 */
bool kube_zone_writer_is_disturbed(const kube_zone_writer_t *writer);
void kube_zone_writer_distrust(kube_zone_writer_t *writer);


#endif /* KUBE_ZONE_RECOVER_H */

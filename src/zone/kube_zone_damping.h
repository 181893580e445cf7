/*
 * kube_zone_damping - crashes of informers, and how long the next start waits.
 *
 * What is remembered is in the image and outlives the process.  It tells no
 * crash from a clean end (the guard does, or a pid that is gone), and waits
 * for nothing itself.  For the process that is to become the writer, or is.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_DAMPING_H
#define KUBE_ZONE_DAMPING_H


#include "kube_zone.h"


/*
 * Damping of a crash loop, before the guard is held: notes a crash at
 * now_ms (monotonic) where crashed says so, and returns for how many ms the
 * next start should wait from now on.  That is 0 up to the third crash in
 * 60 s, then 1, 2, 4 ... 30 s.  A crash within 60 s after a start that was
 * put off doubles again.
 */
uint64_t kube_zone_crash_delay(kube_zone_t *zone, bool crashed,
    uint64_t now_ms);

/*
 * For crashes before the guard is held, of which its mutex cannot tell:
 * starting notes that pid (not 0) sets up to become the writer, and returns
 * the pid noted before, 0: none.  If that process is gone, it died while it
 * started.  The note ends when anyone takes the guard, or with started by the
 * same pid.
 */
uint64_t kube_zone_starting(kube_zone_t *zone, uint64_t pid);
void kube_zone_started(kube_zone_t *zone, uint64_t pid);


#endif /* KUBE_ZONE_DAMPING_H */

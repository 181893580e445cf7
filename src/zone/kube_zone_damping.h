/*
 * kube_zone_damping - crashes of informers, and how long the next start waits;
 * and take-overs for what another process has changed, and how long the next.
 *
 * What is remembered is in the image and outlives the process.  It tells no
 * crash from a clean end (the guard does, or a pid that is gone), and waits
 * for nothing itself.  For the process that is to become the writer, or is;
 * kube_zone_crash_delay() and kube_zone_crash_loop() are for whoever reads.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_DAMPING_H
#define KUBE_ZONE_DAMPING_H


#include "kube_zone.h"


/* In ms from now; 0: at once. */
typedef struct {
    uint64_t  resume_ms;     /* before watches go on where they stopped */
    uint64_t  list_ms;       /* before the first list; resume_ms or more */
} kube_zone_delay_t;

/*
 * Notes a crash at now_ms (monotonic); blameless: no object is to blame
 * (kube_zone_poison.h).  The first three in 60 s cost nothing.  From the
 * fourth on, and for each within 60 s after a start that was put off:
 *
 *   a resume is put off by 1 s +- 50 %, for without updates requests go to
 *   pods that are gone; by 5 s +- 50 % after 60 crashes without blame
 *   a list, which costs the API server more, by 1, 2, 4 ... 30 s
 *
 * random: any number, for the +- 50 %.
 */
void kube_zone_crashed(kube_zone_t *zone, bool blameless, uint64_t random,
    uint64_t now_ms);

/* What is left to wait at now_ms. */
void kube_zone_crash_delay(const kube_zone_t *zone, uint64_t now_ms,
    kube_zone_delay_t *delay);

/*
 * True if the crashes are a loop at now_ms: those of which the last put
 * something off, for as long as the next crash would count as one more of
 * them.  The zone has since when as KUBE_CAUSE_CRASH_LOOP.
 */
bool kube_zone_crash_loop(const kube_zone_t *zone, uint64_t now_ms);

/* Shows that n scopes, from scope on, are damped until then. */
void kube_zone_damped(kube_zone_t *zone, unsigned scope, unsigned n,
    uint64_t until_ms);

/*
 * For the writer who found that another process has changed the zone: true if
 * the zone is to be taken over anew now, which costs a list.  That is noted,
 * and *wait_ms is how long the next one has to wait: 10, 20, 40 s ... 10 min;
 * from the begin again where nothing was found for 10 min after a wait.
 */
bool kube_zone_disturbed(kube_zone_t *zone, uint64_t now_ms,
    uint64_t *wait_ms);

/*
 * For crashes before the guard is held, of which the guard cannot tell:
 * starting notes that pid (not 0) sets up to become the writer, and returns
 * the pid noted before, 0: none.  If that process is gone, it died while it
 * started.  The note ends when anyone takes the guard, or with started by the
 * same pid.
 */
uint64_t kube_zone_starting(kube_zone_t *zone, uint64_t pid);
void kube_zone_started(kube_zone_t *zone, uint64_t pid);


#endif /* KUBE_ZONE_DAMPING_H */

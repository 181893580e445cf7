/*
 * kube_backoff - sleeps that double, with jitter, and start again after a
 * healthy time.
 *
 * The defaults are client-go's (reflector.go: 800 ms, 30 s, factor 2, reset
 * after 2 min), with two deviations: a sleep lies in [step/2, step] and never
 * above the ceiling (client-go: up to twice the ceiling), and the reset needs
 * two minutes of health, not two minutes since the last reset.  A server that
 * cannot be reached at all has a ceiling of its own: trying it costs it
 * nothing.
 *
 * A floor (Retry-After) is lengthened by up to half of itself, so that many
 * clients do not return together.  The first KUBE_BACKOFF_FLOORS in a row
 * replace the step, which waits meanwhile; after that it doubles, and the
 * longer of the two counts, because priority and fairness of the API server
 * says "1" however long its queues are.
 *
 * It arms no timer and reads no clock: it says how long.  The caller has a
 * struct for each peer; one thread at a time may use it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_BACKOFF_H
#define KUBE_BACKOFF_H


#include <stdbool.h>

#include "kube_hash.h"


#define KUBE_BACKOFF_FIRST_MS        800
#define KUBE_BACKOFF_MAX_MS          30000
#define KUBE_BACKOFF_UNREACHABLE_MS  4000
#define KUBE_BACKOFF_RESET_MS        120000
#define KUBE_BACKOFF_FLOORS          3


typedef struct {
    uint64_t  first_ms;        /* >= 1 */
    uint64_t  max_ms;          /* >= first_ms */
    uint64_t  unreachable_ms;  /* the ceiling if there was no answer */
} kube_backoff_conf_t;

typedef struct {
    kube_backoff_conf_t  conf;
    uint64_t             step_ms;      /* of the next sleep */
    uint64_t             healthy_ms;   /* since when, or KUBE_NEVER */
    unsigned             floors;       /* failures with a floor, in a row */
} kube_backoff_t;

/* Copies conf. */
void kube_backoff_init(kube_backoff_t *b, const kube_backoff_conf_t *conf);

/* Notes that the peer works at now_ms; the first since a failure counts. */
void kube_backoff_healthy(kube_backoff_t *b, uint64_t now_ms);

/*
 * Notes a failure at now_ms and returns how long to sleep, in ms.  The step
 * starts again if the peer was healthy for KUBE_BACKOFF_RESET_MS.  floor_ms
 * (Retry-After; 0: none) is a lower bound and may exceed the ceiling.
 */
uint64_t kube_backoff_next(kube_backoff_t *b, kube_random_t *r,
    uint64_t now_ms, bool unreachable, uint64_t floor_ms);


#endif /* KUBE_BACKOFF_H */

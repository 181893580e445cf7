/*
 * kube_trouble - says why an informer does not follow its API server: a line
 * when a cause appears, one a minute while it lasts, one when it is over.
 *
 * It judges no answer and asks nobody: reflectors tell what a scope suffers
 * from, the informer hands it on, and this decides when to say it.  It also
 * keeps the zone's words about causes (kube_zone_cause.h), which the status,
 * the metrics and kube_ready show.  Owned by kube_informer; one thread, no
 * clock.
 *
 * What concerns the API server is one trouble, however many scopes suffer from
 * it; a scope that is forbidden is one of its own.  One whose scopes have all
 * changed to another cause ends in silence.  One that is over and comes back
 * within KUBE_TROUBLE_SETTLE_MS was never over.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_TROUBLE_H
#define KUBE_TROUBLE_H


#include "kube_log.h"
#include "kube_zone_cause.h"


#define KUBE_TROUBLE_REPEAT_MS  60000
#define KUBE_TROUBLE_SETTLE_MS  2000

/* What one scope suffers from. */
typedef struct {
    kube_cause_t  cause;             /* KUBE_CAUSES: nothing */
    uint64_t      since_ms;
    uint64_t      attempts;          /* that failed since then */
    const char   *message;           /* of the last; escaped; not NULL */
    const char   *remedy;            /* static; NULL: that of the cause */
} kube_suffering_t;

typedef struct kube_trouble_s  kube_trouble_t;

/* server is borrowed.  NULL: out of memory. */
kube_trouble_t *kube_trouble_create(const kube_alloc_t *alloc,
    kube_zone_t *zone, kube_log_sink_t sink, kube_str_t server)
    KUBE_MUST_CHECK;
void kube_trouble_destroy(kube_trouble_t *trouble);

/*
 * What a scope, which label names ("services in shop"), suffers from now; to
 * be told as often as one likes.  A scope that was in trouble in the
 * predecessor's time is so since then, also until its first watch is open or
 * its first request has failed.
 */
void kube_trouble_scope(kube_trouble_t *trouble, unsigned scope,
    const char *label, const kube_suffering_t *suffering, uint64_t now_ms);

/* The same for a cause of the informer as a whole; text NULL: it is over. */
void kube_trouble_zone(kube_trouble_t *trouble, kube_cause_t cause,
    const char *text, uint64_t now_ms);

/* Says what is due. */
void kube_trouble_process(kube_trouble_t *trouble, uint64_t now_ms);

/* When to process() at the latest; KUBE_NEVER. */
uint64_t kube_trouble_deadline(const kube_trouble_t *trouble);


#endif /* KUBE_TROUBLE_H */

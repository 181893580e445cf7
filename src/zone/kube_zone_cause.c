/*
 * kube_zone_cause - the rows of the causes, and their words in the image.
 *
 * It judges nothing and prints nothing; who writes is said in the header.  Any
 * process may read.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_cause.h"
#include "kube_zone_image.h"


static const kube_cause_info_t  cause_rows[] = {
#define XX(name, text, not_following, grace_ms, remedy)                       \
    { text, not_following, grace_ms, remedy },
    KUBE_CAUSE_MAP(XX)
#undef XX
};


const kube_cause_info_t *
kube_cause_info(kube_cause_t cause)
{
    return &cause_rows[cause];
}


const char *
kube_cause_text(kube_cause_t cause)
{
    return cause_rows[cause].text;
}


void
kube_zone_cause_set(kube_zone_t *zone, kube_cause_t cause, uint64_t since_ms)
{
    kube_word_set(&zone->image->history.cause_since_ms[cause], since_ms);
}


uint64_t
kube_zone_cause_since(const kube_zone_t *zone, kube_cause_t cause)
{
    return kube_word_get(&zone->image->history.cause_since_ms[cause]);
}


void
kube_zone_ready_add(kube_zone_t *zone, unsigned bits)
{
    (void) atomic_fetch_or_explicit(&zone->image->history.ready, bits,
                                    memory_order_relaxed);
}


unsigned
kube_zone_ready(const kube_zone_t *zone)
{
    return (unsigned) kube_word_get(&zone->image->history.ready);
}

/*
 * kube_cache_sync - waits until caches are synced, for a loop that polls.
 *
 * It does not sleep and keeps nothing (kube_cache_sync.h).
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_cache_sync.h"


/* The first in order behind name of those that are not synced; NULL: none. */
static const kube_sync_checker_t *
sync_next(const kube_sync_checker_t *checkers, size_t n,
    const kube_sync_checker_t *after)
{
    int                         order;
    size_t                      i;
    const kube_sync_checker_t  *c, *next;

    next = NULL;

    for (i = 0; i < n; i++) {
        c = &checkers[i];

        /* of equal names the order is theirs in the array */

        order = (after != NULL) ? strcmp(c->name, after->name) : 1;

        if (order < 0
            || (order == 0 && c <= after)
            || (next != NULL && strcmp(c->name, next->name) >= 0)
            || c->synced(c->ctx) == KUBE_OK)
        {
            continue;
        }

        next = c;
    }

    return next;
}


kube_rc_t
kube_wait_for_cache_sync(const kube_sync_checker_t *checkers, size_t n,
    uint64_t deadline_ms, uint64_t now_ms, char *cause, size_t size)
{
    int                         written;
    size_t                      len;
    kube_rc_t                   rc;
    const char                 *why;
    const kube_sync_checker_t  *c;

    cause[0] = '\0';
    len = 0;
    rc = KUBE_OK;

    for (c = sync_next(checkers, n, NULL);
         c != NULL;
         c = sync_next(checkers, n, c))
    {
        if (rc != KUBE_AGAIN) {
            rc = (c->synced(c->ctx) == KUBE_AGAIN) ? KUBE_AGAIN : KUBE_CLOSED;
        }

        why = (c->why != NULL) ? c->why(c->ctx) : "";

        written = snprintf(cause + len, size - len, "%s%s%s%s",
                           len != 0 ? ", " : "", c->name,
                           why[0] != '\0' ? ": " : "", why);

        len += (written > 0) ? (size_t) written : 0;

        if (len >= size) {
            len = size - 1;
        }
    }

    return (rc == KUBE_AGAIN && now_ms >= deadline_ms) ? KUBE_TIMEOUT : rc;
}

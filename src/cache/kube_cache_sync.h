/*
 * kube_cache_sync - waits until caches are synced, for a loop that polls:
 * client-go's WaitForCacheSync.
 *
 * It is asked again whenever something may have changed, says what is missing
 * and why, and ends at a deadline.  It does not sleep, keeps nothing and knows
 * no informer: who is waited for is told by functions.  Anyone may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CACHE_SYNC_H
#define KUBE_CACHE_SYNC_H


#include "kube_base.h"


/* Who is waited for.  name and the result of why() are for people. */
typedef struct {
    const char   *name;

    /* KUBE_OK: synced; KUBE_AGAIN: not yet; any other: it never will be. */
    kube_rc_t   (*synced)(void *ctx);

    /* What hinders it; "": nothing is known.  NULL: never. */
    const char *(*why)(void *ctx);
    void         *ctx;
} kube_sync_checker_t;

/*
 * KUBE_OK: all are synced.  KUBE_AGAIN: some are not yet; ask again when
 * something has happened, and at deadline_ms (KUBE_NEVER: there is none).
 * KUBE_TIMEOUT: some are not and the deadline has come.  KUBE_CLOSED: all
 * others are, and these never will be.  Who is synced at the deadline counts
 * as synced.
 *
 * But for KUBE_OK, cause names those that are not, in the order of their
 * names: "endpointslices, services in shop: forbidden: ..."; it is cut at
 * size, which is at least 1.
 */
kube_rc_t kube_wait_for_cache_sync(const kube_sync_checker_t *checkers,
    size_t n, uint64_t deadline_ms, uint64_t now_ms, char *cause, size_t size)
    KUBE_MUST_CHECK;


#endif /* KUBE_CACHE_SYNC_H */

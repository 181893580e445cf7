/*
 * kube_resolver - THE resolver: from a key to endpoints, or to the reason why
 * there are none.  Key, policy, look-up and selection in one place, for
 * upstreams, kube_resolve, readiness and the status page alike.
 *
 * It holds no cache: callers that ask again for the same Service compare heads
 * (kube_zone_head) and call it when the head has moved.  It picks no endpoint:
 * balancers do.  No state; may be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_RESOLVER_H
#define KUBE_RESOLVER_H


#include "kube_select.h"


/* Who asks: a directive.  The caller owns what it names. */
typedef struct {
    const kube_zone_t      *zone;
    kube_namespaces_t       namespaces;       /* that a key may name */
    kube_select_options_t   select;
    bool                    dns;              /* form=dns: both forms */
    bool                    unsynced_fail;    /* unsynced=fail: no data of a
                                                 state file */
} kube_resolver_t;


/*
 * Parses a key made of variables and judges its namespace.  KUBE_RESOLVE_OK,
 * and key's strings are views into text; or NO_KEY, BAD_KEY,
 * NAMESPACE_DENIED.
 */
kube_resolve_error_t kube_resolver_key(const kube_resolver_t *resolver,
    kube_str_t text, kube_key_t *key);


/* Strings and arrays are the arena's. */
typedef struct {
    kube_resolve_error_t  error;       /* why there is no endpoint; else OK */
    uint32_t              entry;       /* the Service's; 0: nothing to compare
                                          heads with */
    uint64_t              head;        /* as of which this was read */
    bool                  refused;     /* there is such a Service, but it is
                                          not held */
    bool                  found;       /* what follows is valid */
    kube_snapshot_t       snapshot;
    kube_selection_t      selection;
} kube_resolution_t;

/*
 * Resolves a key.  flags: KUBE_SELECT_*.  Beyond kube_select()'s, error may be
 * NAMESPACE_DENIED, NO_SERVICE, NOT_SYNCED, FORBIDDEN or TOO_LARGE (for the
 * arena; entry and head are set, so that the caller need not try again until
 * the Service changes).  found is false for these, but for NOT_SYNCED and
 * FORBIDDEN where it is the slices that are missing.
 *
 * KUBE_OK, also where error tells why there is no endpoint; KUBE_NOMEM; or
 * KUBE_CHANGED: the Service changed faster than it could be read, use what was
 * read before.
 */
kube_rc_t kube_resolve(const kube_resolver_t *resolver, const kube_key_t *key,
    unsigned flags, kube_arena_t *arena, kube_resolution_t *resolution)
    KUBE_MUST_CHECK;

/*
 * The same in steps, without rows: for a Service so large that the caller has
 * other things to do meanwhile.  What the zone has is copied in the first step,
 * as of one moment; each other step looks at one slice of the copy, or sorts
 * once over what was chosen.
 */
typedef struct {
    kube_resolution_t       resolution;  /* once KUBE_OK was returned; without
                                            the snapshot's slices */

    /* private */
    const kube_resolver_t  *resolver;
    kube_key_t              key;         /* the caller's strings */
    kube_arena_t            arena;
    kube_arena_t            scratch;     /* of one slice */
    kube_arena_t            copies;      /* bundle.slices, until all are done */
    kube_zone_bundle_t      bundle;
    kube_selector_t        *selector;
    size_t                  slices_n;    /* done */
    bool                    small;       /* scratch and copies are kept */
    bool                    few;
} kube_resolving_t;

/* max_bytes: of memory, at most.  Nothing is read yet. */
void kube_resolving_init(kube_resolving_t *resolving,
    const kube_resolver_t *resolver, const kube_key_t *key,
    const kube_alloc_t *alloc, size_t max_bytes);

/* KUBE_AGAIN: call it again.  Else results as kube_resolve()'s. */
kube_rc_t kube_resolving_step(kube_resolving_t *resolving)  KUBE_MUST_CHECK;

/*
 * Whether no more than a few endpoints were copied, usable or not: what they
 * take is microseconds, whatever a clock says.  False until the first step is
 * over, and of what was too large to be copied.  Also once all is done.
 */
bool kube_resolving_is_few(const kube_resolving_t *resolving);

/*
 * How long, ms, a worker that looks at a Service for the status or for metrics
 * alone goes on with what it saw though that has changed: 20 times the cost of
 * the look, us of the processor, so 5 % of its time; 0 where that was no more
 * than 1 ms, or few, as above.
 */
uint64_t kube_resolving_pause(uint64_t cost_us, bool few);

/* At any time; strings and arrays of the resolution go. */
void kube_resolving_done(kube_resolving_t *resolving);

/*
 * Finds out which port of which Service a key means, from the Service's record
 * alone: resolution as kube_resolve() has it for what it needs, without slices
 * and endpoints.  Where its error is OK, *identity is the Service and the name
 * of its port (exact), which outlives renumbering; strings are the arena's or
 * key's.  Results as kube_resolve().
 */
kube_rc_t kube_resolver_identify(const kube_resolver_t *resolver,
    const kube_key_t *key, kube_arena_t *arena,
    kube_resolution_t *resolution, kube_key_t *identity)  KUBE_MUST_CHECK;

/*
 * The canonical text of what a key resolved to, and NUL: namespace/name and
 * the name of the Service's port, or its number where it has no name; the
 * port as the key has it where the Service has no such port.  Returns the
 * length.
 */
size_t kube_resolution_text(const kube_key_t *key,
    const kube_resolution_t *resolution, char out[KUBE_KEY_TEXT_MAX]);


/* Names the object and the choice there was, such as "Service shop/web has
   no port 8080; it has http (80)". */
#define KUBE_RESOLVER_WHY_MAX  512

/* Of a Service with more slices than that the line tells no addresses. */
#define KUBE_RESOLVER_WHY_SLICES  16

/*
 * Says in words why text cannot be resolved, for a line of a log: goes the
 * whole way again, but for the slices of a large Service, which would take
 * long in one piece: known is the error that was found before, and is taken for
 * it.  out is NUL-terminated, empty where text resolves now.  Returns the error
 * that it found, NOT_SYNCED where it could not look.
 */
kube_resolve_error_t kube_resolver_why(const kube_resolver_t *resolver,
    kube_str_t text, kube_resolve_error_t known, kube_arena_t *arena,
    char out[KUBE_RESOLVER_WHY_MAX]);


#endif /* KUBE_RESOLVER_H */

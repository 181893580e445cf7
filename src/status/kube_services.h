/*
 * kube_services - /api/v1/services, the Services of an informer part by part,
 * and /api/v1/services/namespace/name, one of them with its endpoints and why
 * each is or is not used.
 *
 * A list walks the zone with one record in memory and keeps only the names it
 * was asked for.  Called by workers.  The members printed are a contract with
 * users.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SERVICES_H
#define KUBE_SERVICES_H


#include "kube_arena.h"
#include "kube_policy.h"
#include "kube_text.h"
#include "kube_zone.h"


#define KUBE_SERVICES_LIMIT_DEFAULT  100
#define KUBE_SERVICES_LIMIT_MAX      1000

/*
 * A part ends with the Service that makes it longer, whatever its limit is: one
 * Service may have ten thousands of ports, and workers keep a whole part.
 */
#define KUBE_SERVICES_BYTES_MAX      (8u << 20)

/*
 * And with the one that has more endpoints looked at: a million take a zone
 * five megabytes and a worker a quarter of a second.
 */
#define KUBE_SERVICES_ENDPOINTS_MAX  65536


typedef struct {
    const kube_zone_t    *zone;
    const kube_policy_t  *policy;        /* of the informer's addresses */
    kube_str_t            ns;            /* empty: of all namespaces */
    kube_str_t            after_ns;      /* both empty: from the start */
    kube_str_t            after_name;
    size_t                limit;         /* 1 .. KUBE_SERVICES_LIMIT_MAX */
    size_t                bytes;         /* 0: KUBE_SERVICES_BYTES_MAX */
    size_t                endpoints;     /* 0: KUBE_SERVICES_ENDPOINTS_MAX */
} kube_services_t;

/*
 * Sets ns, after and limit from the arguments of a request, empty where they
 * were not given; views of them are kept.  NULL, or what is wrong with them.
 */
const char *kube_services_query(kube_services_t *services, kube_str_t ns,
    kube_str_t limit, kube_str_t after)  KUBE_MUST_CHECK;

/* "namespace/name" of a Service; false: it can be none. */
bool kube_services_name(kube_str_t text, kube_str_t *ns, kube_str_t *name)
    KUBE_MUST_CHECK;

/*
 * {"items": […], "next": ""}, by namespace and name.  next is what to give as
 * after for the part that follows; empty: this was the last.  There may be less
 * than limit in a part that is not the last.  A Service that
 * goes meanwhile is left out; one that is too large to read has the member
 * "error".  The arena holds the names, scratch one Service at a time.
 * KUBE_OK or KUBE_NOMEM; what was printed is then of no use.
 */
kube_rc_t kube_services_print(kube_text_t *text,
    const kube_services_t *services, kube_arena_t *arena,
    kube_arena_t *scratch)  KUBE_MUST_CHECK;

/*
 * One Service, with its first 4096 endpoints and 16 ports of each; members
 * "..._total" tell how many there are.  KUBE_OK; or, and nothing was printed,
 * KUBE_NOT_FOUND, KUBE_CHANGED (it changes faster than it can be read),
 * KUBE_TOO_LARGE (for scratch) or KUBE_NOMEM.
 */
kube_rc_t kube_services_print_one(kube_text_t *text,
    const kube_services_t *services, kube_str_t ns, kube_str_t name,
    kube_arena_t *scratch)  KUBE_MUST_CHECK;


#endif /* KUBE_SERVICES_H */

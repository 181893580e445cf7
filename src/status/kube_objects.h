/*
 * kube_objects - /api/v1/objects: what a zone holds, object by object, with the
 * hash that each adds to the digest of its scope; and what is refused.
 *
 * It is what "kube-informer --verify" compares with a list of the API server
 * where the digests differ.  A part is a walk over the zone's entries, no state
 * of one moment: what changes meanwhile is seen old or new, or in both states.
 * Called by workers.  The members printed are a contract with that program.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_OBJECTS_H
#define KUBE_OBJECTS_H


#include "kube_arena.h"
#include "kube_text.h"
#include "kube_zone.h"


/* Objects of a part, and bytes: the object that makes it longer ends it. */
#define KUBE_OBJECTS_LIMIT  1000
#define KUBE_OBJECTS_BYTES  (1u << 20)


/*
 * Reads "after" of a request, empty: from the start.  KUBE_OK, KUBE_INVALID: no
 * part says so; KUBE_CHANGED: one of another zone did, such as the one before a
 * reload, and what follows there is not what follows here.
 */
kube_rc_t kube_objects_after(const kube_zone_t *zone, kube_str_t text,
    uint64_t *after)  KUBE_MUST_CHECK;

/*
 * {"items": [...], "next": ""}, in no order.  An item is
 * {"resource", "namespace", "name", "resource_version"} and, of an object that
 * is held, "outdated", "digest" (32 hex digits) and "object"; of one that is
 * refused "refused", the reason.  An outdated one is both.  next is what to
 * give as after for the part that follows; empty: this was the last.  limit is
 * the most objects of a part.
 *
 * scratch holds one object at a time.  KUBE_OK or KUBE_NOMEM; what was printed
 * is then of no use.
 */
kube_rc_t kube_objects_print(kube_text_t *text, const kube_zone_t *zone,
    uint64_t after, size_t limit, kube_arena_t *scratch)  KUBE_MUST_CHECK;


#endif /* KUBE_OBJECTS_H */

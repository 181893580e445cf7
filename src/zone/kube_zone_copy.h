/*
 * kube_zone_copy - filling a fresh image from another one that may be live,
 * for a zone whose size was changed.
 *
 * The other image is read as any reader does; it may have a writer of its
 * own, and nothing is changed in it.  Called while nginx reads its
 * configuration, before any other process sees the fresh one.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_COPY_H
#define KUBE_ZONE_COPY_H


#include "kube_zone.h"


/*
 * Copies all objects, names of refused ones, scopes, counters and the rest.
 * Called before any writer of the fresh image exists.  Objects that do not
 * fit are left out: scopes are then copied without resourceVersion, so that
 * they are listed again.  A slice of a copied Service that comes while that is
 * under way is a name, "interrupted", which asks for a list.
 *
 * KUBE_OK, KUBE_FULL (something was left out), KUBE_NOMEM, KUBE_CORRUPT.
 */
kube_rc_t kube_zone_copy(kube_zone_t *to, const kube_zone_t *from,
    const kube_alloc_t *alloc)  KUBE_MUST_CHECK;


#endif /* KUBE_ZONE_COPY_H */

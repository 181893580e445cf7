/*
 * kube_decode_prefix - the key of an object of which only the first bytes
 * were kept, because it is larger than what may be held.
 *
 * It is no decoder: it reads metadata.name, namespace and resourceVersion
 * and passes over everything else without checking its grammar.  Go's
 * encoder writes metadata before the rest and these first in it.  What it
 * finds is good for naming the object, and for deleting it.  Takes no memory;
 * anyone may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_PREFIX_H
#define KUBE_DECODE_PREFIX_H


#include "kube_decode.h"


/*
 * The first bytes of an item of a list.  KUBE_OK: of *object the resource and
 * meta's ns and name are filled, judged as kube_decode_object() does, and rv
 * where it stands in prefix; all else is empty.  The views point into prefix.
 *
 *   KUBE_INVALID  prefix ends before the key does, or holds anything the API
 *                 server does not write: an escape in a name, one of the three
 *                 twice or of another type, a malformed name or version
 */
kube_rc_t kube_decode_prefix_object(kube_resource_t resource,
    kube_str_t prefix, kube_object_t *object)  KUBE_MUST_CHECK;

/*
 * The first bytes of a watch event.  KUBE_OK: type is ADDED, MODIFIED or
 * DELETED, object_rc KUBE_TOO_LARGE, object as above, and rv its version.
 * KUBE_INVALID as above, and for another type or one that does not come
 * before the object.
 */
kube_rc_t kube_decode_prefix_event(kube_resource_t resource,
    kube_str_t prefix, kube_watch_event_t *event)  KUBE_MUST_CHECK;


#endif /* KUBE_DECODE_PREFIX_H */

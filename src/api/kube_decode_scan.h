/*
 * kube_decode_scan - reads an item of a list, or an event of a watch, where it
 * stands in the stream: its end, its envelope and the fields used in one pass.
 *
 * It knows the order in which API servers write and takes nothing else: on any
 * surprise the same bytes are for kube_frame and kube_decode, which decide what
 * they are.  What it does take is what these make of it, to the last field and
 * count; test_decode_scan holds one against the other.  The fields are read by
 * the projections of kube_decode, so that there is one reader of each.
 *
 * It reads nothing outside the bytes it was given, and changes nothing before
 * it succeeds but the arena.  For src/cache; one struct for each stream.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_SCAN_H
#define KUBE_DECODE_SCAN_H


#include "kube_decode.h"


typedef struct {
    kube_str_t         in;          /* from the first byte of the item on */
    kube_resource_t    resource;
    bool               event;
    kube_watch_type_t  type;        /* of an event; ADDED for an item */
    kube_rv_t          rv;          /* of the object */
    kube_surprise_t    surprise;    /* the first one */
    const char        *object;
    const char        *inside;      /* metadata, behind its resourceVersion */
} kube_decode_scan_t;

/*
 * Reads the type of an event, and of the object's metadata all that is in an
 * envelope, which stands first.  in begins with the '{' of the item and may go
 * on behind it.
 *
 *   KUBE_OK       type, kind and meta of *envelope are filled and good
 *   KUBE_AGAIN    in ends before the item does
 *   KUBE_INVALID  a surprise
 */
kube_rc_t kube_decode_scan_head(kube_decode_scan_t *scan,
    kube_resource_t resource, bool event, kube_str_t in,
    kube_envelope_t *envelope)  KUBE_MUST_CHECK;

/*
 * After kube_decode_scan_head().  KUBE_OK: the item has *len bytes, *object and
 * *dropped are what kube_decode_object() makes of it, and envelope->object is
 * its text.  KUBE_AGAIN, KUBE_INVALID: as above.
 *
 * scan->surprise is also set where an endpoint was not as expected, though
 * the item was read all the same.
 */
kube_rc_t kube_decode_scan_body(kube_decode_scan_t *scan, kube_arena_t *arena,
    kube_envelope_t *envelope, kube_object_t *object, uint32_t *dropped,
    size_t *len)  KUBE_MUST_CHECK;


#endif /* KUBE_DECODE_SCAN_H */

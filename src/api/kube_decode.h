/*
 * kube_decode - one JSON object of the API to the fields used.
 *
 * Today cJSON decodes every item, over an arena.  kube_decode_object() is the
 * seam: a faster scanner may stand before it and must agree with it on
 * every input.
 *
 * Views point into the arena: valid until it is reset.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_H
#define KUBE_DECODE_H


#include "kube_json.h"
#include "kube_object.h"
#include "kube_rv.h"


typedef enum {
    KUBE_WATCH_ADDED = 0,
    KUBE_WATCH_MODIFIED,
    KUBE_WATCH_DELETED,
    KUBE_WATCH_BOOKMARK,
    KUBE_WATCH_ERROR,
    KUBE_WATCH_UNKNOWN
} kube_watch_type_t;

/*
 * One watch event.  For ADDED, MODIFIED, DELETED object is filled (object_rc
 * says how that went: KUBE_OK, or KUBE_INVALID with error: the event's
 * object is to be skipped and counted; rv and, where readable, the key are
 * still given; KUBE_TOO_LARGE comes from kube_decode_prefix alone).  For
 * BOOKMARK only rv and initial_events_end.  For ERROR status_text is the JSON
 * of the Status (printed again by cJSON).
 */
typedef struct {
    kube_watch_type_t  type;
    kube_rc_t          object_rc;
    kube_object_t      object;
    kube_rv_t          rv;                    /* len 0: none or unusable */
    bool               initial_events_end;
    kube_str_t         status_text;
} kube_watch_event_t;

typedef struct {
    kube_rv_t   rv;
    kube_str_t  continue_token;   /* <= KUBE_CONTINUE_LEN_MAX; empty: last */
    int64_t     remaining;        /* -1: not given; never trusted */
} kube_list_meta_t;

/*
 * Decodes an item of a list.  An item's kind and apiVersion may be absent
 * (the server leaves them out in lists); where present they must match.
 *
 *   KUBE_INVALID  bad JSON, wrong kind, missing or malformed name, namespace
 *                 or uid, more elements than the limits allow, a tree larger
 *                 than the arena may become: error->what
 *   KUBE_NOMEM
 * A bad single endpoint (unparsable address, wrong family) or port (number
 * out of range, unknown protocol, a name that is no label) is left out; the
 * object stays.  *dropped is set to their number.  Of an object that is
 * KUBE_INVALID the metadata that was readable is filled, the rest is empty.
 */
kube_rc_t kube_decode_object(kube_arena_t *arena, kube_resource_t resource,
    kube_str_t text, kube_object_t *object, uint32_t *dropped,
    kube_error_t *error)  KUBE_MUST_CHECK;

/*
 * KUBE_INVALID: the line as a whole is not a watch event.  error is filled
 * for that and where event->object_rc is not KUBE_OK.
 */
kube_rc_t kube_decode_watch_event(kube_arena_t *arena,
    kube_resource_t resource, kube_str_t text, kube_watch_event_t *event,
    uint32_t *dropped, kube_error_t *error)  KUBE_MUST_CHECK;

/*
 * The value of a list's "metadata" member.  KUBE_INVALID where it has no
 * usable resourceVersion or a continue token that is none: such a list can
 * be neither watched from nor continued.
 */
kube_rc_t kube_decode_list_meta(kube_arena_t *arena, kube_str_t text,
    kube_list_meta_t *meta, kube_error_t *error)  KUBE_MUST_CHECK;

/* "ServiceList", "EndpointSliceList": what "kind" of a list must be. */
const char *kube_decode_list_kind(kube_resource_t resource);


#endif /* KUBE_DECODE_H */

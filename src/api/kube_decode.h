/*
 * kube_decode - one object of the API to the fields used: in JSON, or in
 * Protocol Buffers, as the envelope says.
 *
 * It judges form only: which event may be applied is the reflector's
 * business.  It reads in three levels (docs/internals/decode.md): the
 * envelope has to be right; a bad value of a used field costs that field,
 * endpoint or port; all else is passed over by its structure.
 *
 * Views point into the envelope, its text and the arena: they are valid until
 * the frame goes on or the arena is reset.  src/cache calls it, and whoever
 * owns the arena.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_H
#define KUBE_DECODE_H


#include "kube_arena.h"
#include "kube_envelope.h"
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
 * What stood otherwise than API servers write it, so that kube_decode_scan left
 * it to the slower readers.
 */
typedef enum {
    KUBE_SURPRISE_NONE = 0,
    KUBE_SURPRISE_HEAD,          /* an event's, or metadata up to the
                                    resourceVersion */
    KUBE_SURPRISE_ADDRESSES,     /* of an endpoint, as those below */
    KUBE_SURPRISE_CONDITIONS,
    KUBE_SURPRISE_TARGET,
    KUBE_SURPRISE_NAMES,         /* hostname, nodeName, zone */
    KUBE_SURPRISE_ENDPOINT,      /* what follows these */
    KUBE_SURPRISE_OBJECT,        /* anything else of it */
    KUBE_SURPRISES
} kube_surprise_t;

/*
 * One watch event.  For ADDED, MODIFIED, DELETED object is what
 * kube_decode_object() made of it and object_rc what that returned, with
 * error; its key and version are always given.  For BOOKMARK only rv and
 * initial_events_end.  For ERROR status_text is the Status, empty where there
 * is none or it is larger than max_object.
 */
typedef struct {
    kube_watch_type_t  type;
    kube_rc_t          object_rc;
    kube_object_t      object;
    kube_rv_t          rv;                    /* len 0: none or unusable */
    bool               initial_events_end;
    kube_str_t         status_text;   /* as kube_status_judge() takes it */
} kube_watch_event_t;

typedef struct {
    kube_rv_t   rv;
    kube_str_t  continue_token;   /* <= KUBE_CONTINUE_LEN_MAX; empty: last */
    int64_t     remaining;        /* -1: not given; never trusted */
} kube_list_meta_t;

/*
 * Decodes an item of a list, or the object of an event.  An item's kind and
 * apiVersion may be absent (the server leaves them out in lists); where
 * present they must match.
 *
 *   KUBE_INVALID    the object is refused: a broken envelope, wrong kind,
 *                   missing or malformed name, namespace, uid or version,
 *                   a text that cannot be walked, more elements than limits
 *                   allow, a bad value that decides about all of it; error
 *                   says what, and where in the object
 *   KUBE_TOO_LARGE  its text is not held
 *   KUBE_NOMEM
 *
 * *dropped is the number of endpoints, ports, cluster IPs and shown texts
 * that were left out.  Of an object that is not KUBE_OK the metadata that was
 * readable is filled, the rest is empty.
 */
kube_rc_t kube_decode_object(kube_arena_t *arena, kube_resource_t resource,
    const kube_envelope_t *envelope, kube_object_t *object,
    uint32_t *dropped, kube_error_t *error)  KUBE_MUST_CHECK;

/*
 * KUBE_INVALID: it is no watch event, or that of an object whose key or
 * version cannot be read: a protocol error.  error is filled for that and
 * where event->object_rc is not KUBE_OK.  KUBE_NOMEM.
 */
kube_rc_t kube_decode_watch_event(kube_arena_t *arena,
    kube_resource_t resource, const kube_envelope_t *envelope,
    kube_watch_event_t *event, uint32_t *dropped, kube_error_t *error)
    KUBE_MUST_CHECK;

/*
 * The value of a list's "metadata" member.  KUBE_INVALID where it has no
 * usable resourceVersion or a continue token that is none: such a list can
 * be neither watched from nor continued.
 */
kube_rc_t kube_decode_list_meta(kube_arena_t *arena, kube_str_t text,
    kube_list_meta_t *meta, kube_error_t *error)  KUBE_MUST_CHECK;

/* The same of a list in Protocol Buffers, from the message of its metadata. */
kube_rc_t kube_decode_list_meta_message(kube_str_t message,
    kube_list_meta_t *meta, kube_error_t *error)  KUBE_MUST_CHECK;


#endif /* KUBE_DECODE_H */

/*
 * kube_zone_ring - the zone's event ring: what has changed, for subscribers
 * in any process.
 *
 * The writer appends an event once readers can see the change; subscribers
 * hold a cursor each and follow without a lock, leaving no trace.  The ring is
 * no store: an event names an object and its versions, and whoever wants the
 * object reads it (kube_zone_reader.h).  Its size is fixed, so an old event is
 * overwritten in the end: a subscriber who has not read it by then is told, and
 * reads everything again.  After the death of a writer all of them are told,
 * for it may have died between a change and its event.
 *
 * Wake-ups are not its business.  Appending is for the process that holds the
 * guard, the rest for any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_RING_H
#define KUBE_ZONE_RING_H


#include "kube_limits.h"
#include "kube_record.h"
#include "kube_zone.h"


typedef enum {
    KUBE_ZONE_EVENT_ADD = 0,
    KUBE_ZONE_EVENT_UPDATE,
    KUBE_ZONE_EVENT_DELETE,
    KUBE_ZONE_EVENT_REFUSE,      /* not held any more; the cluster has it */
    KUBE_ZONE_EVENT_RESYNC,      /* events were lost: read everything again */
    KUBE_ZONE_EVENTS
} kube_zone_event_kind_t;

/* A namespace, a name and two resourceVersions, one behind the other. */
#define KUBE_ZONE_EVENT_TEXT  (KUBE_NAMESPACE_LEN_MAX + KUBE_NAME_LEN_MAX     \
                               + 2 * KUBE_RV_LEN_MAX)

/* The strings point into text: an event must not be copied. */
typedef struct {
    kube_zone_event_kind_t  kind;
    kube_resource_t         resource;    /* this and below: not of RESYNC */
    kube_str_t              ns;
    kube_str_t              name;
    kube_str_t              rv;          /* of DELETE and REFUSE: the last */
    kube_str_t              old_rv;      /* UPDATE: of the one before */
    char                    text[KUBE_ZONE_EVENT_TEXT];
} kube_zone_event_t;

/*
 * The event that a subscriber has read last.  epoch tells one numbering from
 * all others: of another zone, or of this one before it began anew.
 */
typedef struct {
    uint64_t  epoch;
    uint64_t  sequence;
} kube_zone_cursor_t;


/* Events that the ring holds; 0: the zone is too small for any. */
uint32_t kube_zone_ring_size(const kube_zone_t *zone);

/* Sets the cursor behind the newest event. */
void kube_zone_ring_newest(const kube_zone_t *zone,
    kube_zone_cursor_t *cursor);

/*
 * The event after the cursor, which moves on.  Any cursor is accepted, also
 * one that a client has made up.
 *
 * KUBE_OK.  KUBE_NOT_FOUND: there is none yet.  KUBE_CHANGED: what came after
 * the cursor is not there any more; it is behind the newest event now, and the
 * subscriber reads everything again.  A caller in a loop bounds it: another
 * process that changes the zone can make it KUBE_CHANGED for ever.
 */
kube_rc_t kube_zone_ring_next(const kube_zone_t *zone,
    kube_zone_cursor_t *cursor, kube_zone_event_t *event)  KUBE_MUST_CHECK;


/*
 * Makes an event of an object's identity, which is copied: what is longer than
 * an object's may be is cut.
 */
void kube_zone_event_set(kube_zone_event_t *event,
    kube_zone_event_kind_t kind, const kube_record_id_t *id,
    kube_str_t old_rv);

/* Appends it; without a ring, nothing.  A dozen stores. */
void kube_zone_ring_append(kube_zone_writer_t *writer,
    const kube_zone_event_t *event);

/*
 * For acquire alone: goes on after the newest event.  lost: changes may have
 * been published without their events, so a RESYNC is appended.
 */
void kube_zone_ring_acquire(kube_zone_writer_t *writer, bool lost);


#endif /* KUBE_ZONE_RING_H */

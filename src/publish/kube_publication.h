/*
 * kube_publication - how objects become readable, and cease to be.
 *
 * A Service and its slices become readable by one store.  The zone must not
 * lose what a published record references: a slice ends only after the
 * Service that references it was published without it.
 *
 * Sums follow what readers can see: an object counts from its publication to
 * its end.  It does not decide what is published, when, or who makes room
 * (kube_publisher does).
 *
 * For the files of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PUBLICATION_H
#define KUBE_PUBLICATION_H


#include "kube_eviction.h"
#include "kube_publisher.h"


/* What readers can see of a scope, and what of it has no room. */
typedef struct {
    kube_scope_sum_t   sum;
    kube_room_t        room;
} kube_publication_scope_t;

typedef struct {
    const kube_alloc_t        *alloc;
    kube_publisher_conf_t      conf;
    kube_service_index_t      *index;           /* borrowed */
    kube_log_t                 log;
    uint64_t                   now_ms;          /* the caller sets these */
    int64_t                    now_unix_ms;
    bool                       found_full;      /* set; the caller resets it */
    bool                       outdated;        /* set where a member is; the
                                                   caller resets it */
    char                       lacking[KUBE_KEY_LEN_MAX + 32];    /* room */

    /* the last is of what no scope covers; nobody asks for it */
    kube_publication_scope_t   scopes[KUBE_SCOPES_MAX + 1];

    /* during one publication */
    uint32_t                   slices[KUBE_SERVICE_SLICES_MAX];
    uint32_t                   refs[KUBE_SERVICE_SLICES_MAX];
    uint8_t                    changes[KUBE_SERVICE_SLICES_MAX];
} kube_publication_t;


void kube_publication_init(kube_publication_t *p, const kube_alloc_t *alloc,
    const kube_publisher_conf_t *conf, kube_service_index_t *index);

/* Nothing is readable or refused. */
void kube_publication_reset(kube_publication_t *p);

/*
 * Publishes the group's Service with those of its slices that no other
 * Service references; others join once theirs was published without them.
 * KUBE_OK, or KUBE_FULL: nothing changed for readers.
 */
kube_rc_t kube_publication_run(kube_publication_t *p, kube_group_t *group,
    uint64_t read_ms)  KUBE_MUST_CHECK;

/* Makes a slice readable, which no Service references and none will soon. */
void kube_publication_orphan(kube_publication_t *p, uint32_t slice);

/*
 * Ends an object that is in no group and that no Service references: it is
 * removed from the zone, or named as refused if refusal is not NULL.
 */
void kube_publication_end(kube_publication_t *p, uint32_t entry,
    const kube_refusal_t *refusal);

/* The same of a Service; its slices become orphans, its group stays. */
void kube_publication_end_service(kube_publication_t *p, uint32_t service,
    const kube_refusal_t *refusal);

/* Ends a name that is refused. */
void kube_publication_end_refused(kube_publication_t *p, uint32_t entry);

/*
 * Names the item's key as refused, or anew; the zone holds no object of it.
 * Where not even the name has room it is remembered that there is one.
 */
void kube_publication_refuse(kube_publication_t *p, kube_zone_item_t *item,
    unsigned scope, const kube_refusal_t *refusal);

/*
 * Flags the newest record of a member as outdated: its newer version is
 * refused.  Again: the reason is the newer one, the time stays.
 */
void kube_publication_outdate(kube_publication_t *p, uint32_t entry,
    const kube_refusal_t *refusal);

/* A member that was outdated is so no more: a newer record is staged. */
void kube_publication_current(kube_publication_t *p, uint32_t entry);

/* Counts what the zone holds since before: a name, or a member's object. */
void kube_publication_found_refused(kube_publication_t *p,
    const kube_item_t *item);
void kube_publication_found(kube_publication_t *p, uint32_t entry);

/* The row of a name becomes that of an object: it is refused no more. */
void kube_publication_unrefuse(kube_publication_t *p, uint32_t entry);

/* The refs of a published Service, into p->refs; how many. */
size_t kube_publication_refs(kube_publication_t *p, uint32_t service);


#endif /* KUBE_PUBLICATION_H */

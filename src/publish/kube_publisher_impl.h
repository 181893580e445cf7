/*
 * kube_publisher_impl - the publisher's state, and what happens to an object.
 *
 *   kube_publisher.c        the events, take-over, turns and sums
 *   kube_publisher_life.c   the steps below, which call nothing of the first
 *
 * Private to these two files.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PUBLISHER_IMPL_H
#define KUBE_PUBLISHER_IMPL_H


#include "kube_publication.h"
#include "kube_service_queue.h"
#include "kube_zone_writer.h"


struct kube_publisher_s {
    const kube_alloc_t    *alloc;
    kube_service_index_t   index;
    kube_eviction_t        eviction;
    kube_service_queue_t   queue;
    kube_publication_t     publication;
    uint64_t               expire_ms;     /* next look at what is outdated */
    uint64_t               room_ms;       /* next look for room */
    bool                   found;         /* loaded, without a turn since */
    uint32_t               room_row;      /* the last outdated one looked at */
};


/* No entry above was ever taken: rows above it are zero. */
static inline uint32_t
kube_publisher_top(const kube_publisher_t *p)
{
    return kube_zone_writer_top(p->publication.conf.writer);
}


/*
 * A zone with a quarter of it free was not full when a predecessor left it: it
 * was copied from a smaller one.
 */
static inline bool
kube_publisher_was_copied(const kube_publisher_t *p)
{
    return p->eviction.bytes
           < kube_zone_room(p->publication.conf.writer) / 4 * 3;
}


/*
 * Makes the item, whose group is found or made, a member of it, or keeps it
 * one.  NULL: out of memory.
 */
kube_group_t *kube_publisher_group(kube_publisher_t *p,
    const kube_item_t *item)  KUBE_MUST_CHECK;
kube_member_t *kube_publisher_link(kube_publisher_t *p, kube_group_t *group,
    const kube_item_t *item);

/* What kube_item_pt promises of PUT, REFUSED and DELETED. */
kube_rc_t kube_publisher_put(kube_publisher_t *p, kube_item_t *item)
    KUBE_MUST_CHECK;
kube_rc_t kube_publisher_refused(kube_publisher_t *p, kube_item_t *item)
    KUBE_MUST_CHECK;
void kube_publisher_deleted(kube_publisher_t *p, const kube_item_t *item);

/*
 * After a take-over: a name of the group was found; and, once all is and was
 * compared, the evictions that a predecessor had begun are finished.
 */
void kube_publisher_found_refused(kube_publisher_t *p, kube_group_t *group,
    const kube_item_t *item);
void kube_publisher_finish(kube_publisher_t *p);

/*
 * Evicts the last by rank while more is held than has room: the names of what
 * was refused since have taken some.
 */
void kube_publisher_trim(kube_publisher_t *p);

/* Ends an outdated object.  KUBE_OK, or KUBE_NOMEM: it is still there. */
kube_rc_t kube_publisher_expire(kube_publisher_t *p, uint32_t entry)
    KUBE_MUST_CHECK;

/*
 * Publishes the group's Service, or ends it if it is being deleted or the zone
 * has no room for it.  The group may be freed.
 */
void kube_publisher_publish(kube_publisher_t *p, kube_group_t *group,
    uint64_t read_ms);

/* Whom a death is blamed on while the group's Service is published. */
typedef struct {
    kube_hand_t   what;       /* points into the group, and below */
    kube_str_t    ns;
    kube_str_t    name;
    kube_str_t    uid;
    char          buf[KUBE_UID_LEN_MAX];
} kube_publisher_blame_t;

/* There is a Service. */
void kube_publisher_blame(const kube_publisher_t *p, const kube_group_t *group,
    kube_publisher_blame_t *blame);

/*
 * Refuses the group's Service, of which the process has died: it stays as it
 * is served, with its slices.  The group may be freed.
 */
void kube_publisher_crashed(kube_publisher_t *p, kube_group_t *group);


#endif /* KUBE_PUBLISHER_IMPL_H */

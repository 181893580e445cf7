/*
 * kube_eviction - who makes room in a full zone, and when room has returned.
 *
 * Groups stand in an order, the rank: the last of them makes room first, slice
 * by slice, for any that ranks before it, so that two gateways that see the
 * same cluster hold the same part of it.  Groups named in the configuration
 * ("static") make room for nobody.
 *
 * It evicts nothing (kube_publisher does) and does not decide what "full"
 * means (the zone does).  For the files of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_EVICTION_H
#define KUBE_EVICTION_H


#include "kube_service_index.h"
#include "kube_zone.h"


/* Objects that may have to go for one other. */
#define KUBE_EVICTIONS_MAX  64


/* Below 0: b makes room before a does.  It gives no two groups one rank. */
typedef int (*kube_rank_pt)(const kube_group_t *a, const kube_group_t *b);

typedef struct {
    const kube_service_index_t  *index;         /* borrowed, as all here */
    const kube_zone_writer_t    *writer;
    const kube_str_t            *static_keys;   /* "namespace/name" */
    size_t                       static_keys_n;
    kube_rank_pt                 rank;
    kube_heap_t                  heap;
} kube_eviction_t;

/* Fields above heap are set; it allocates nothing yet. */
void kube_eviction_init(kube_eviction_t *eviction, const kube_alloc_t *alloc);

/* Also where all groups are about to be freed: it is as after init then. */
void kube_eviction_clear(kube_eviction_t *eviction);

/* The rank in use: by namespace, then by name. */
int kube_eviction_by_name(const kube_group_t *a, const kube_group_t *b);

/*
 * Every group is added once it is made (twice does no harm), and removed
 * before it is freed.  KUBE_OK or KUBE_NOMEM: not added.
 */
kube_rc_t kube_eviction_add(kube_eviction_t *eviction, kube_group_t *group)
    KUBE_MUST_CHECK;
void kube_eviction_remove(kube_eviction_t *eviction, kube_group_t *group);

/*
 * The entry that makes room for group: a slice of the last group, or its
 * Service if it has no slice.  0: no group ranks behind this one.
 */
uint32_t kube_eviction_next(const kube_eviction_t *eviction,
    const kube_group_t *group);


/*
 * What one scope lacks for want of room.  A list brings it back, once there
 * is room for at least its smallest object.
 */
typedef struct {
    uint64_t  refused;          /* objects, by name */
    uint32_t  smallest;         /* bytes of their smallest record */
    bool      unnamed;          /* not even the name of some had room */
    bool      unnamed_list;     /* the same, since a list began */
    uint64_t  full_bytes;       /* of live records, when it was last full */
} kube_room_t;

/* Nothing is lacking. */
void kube_room_init(kube_room_t *room);

/* An object of size bytes is refused by name. */
void kube_room_refused(kube_room_t *room, uint32_t size);

/* The zone was found full: remembers how full that is, if room lacks any. */
void kube_room_full(kube_room_t *room, const kube_zone_t *zone);

/*
 * True once when room has returned for what is lacking, and again when more
 * has.  How often a list is asked for then is the reflector's to pace.
 */
bool kube_room_returned(kube_room_t *room, const kube_zone_t *zone,
    const kube_zone_writer_t *writer);


#endif /* KUBE_EVICTION_H */

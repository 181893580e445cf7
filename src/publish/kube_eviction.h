/*
 * kube_eviction - who makes room in a full zone, and when room has returned.
 *
 * The zone is shared fairly between namespaces.  The rank of a Service is the
 * bytes of its namespace's Services up to and with it, the smallest first (and
 * those named in the configuration, "static", before all others of their
 * namespace); the last by rank makes room first.  So a namespace is never
 * held to less than an equal share by what others want, but for the size of
 * one Service, and two gateways that see the same cluster hold the same part
 * of it.  One that needs room is ranked, too: if it is itself the last, nobody
 * makes room for it.
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


/* Services that may have to go for one other. */
#define KUBE_EVICTIONS_MAX  64


/* A namespace of which something is held. */
struct kube_tenant_s {
    kube_map_link_t   link;
    kube_heap_node_t  node;           /* of kube_eviction_t.tenants */
    kube_heap_t       groups;         /* the last by rank first */
    size_t            groups_n;       /* that point here */
    uint64_t          bytes;          /* demand of all of groups */
    kube_str_t        ns;             /* behind the struct */
};

typedef struct {
    const kube_alloc_t          *alloc;
    kube_service_index_t        *index;         /* borrowed, as all here */
    const kube_zone_writer_t    *writer;
    const kube_str_t            *static_keys;   /* "namespace/name" */
    size_t                       static_keys_n;
    unsigned                     share;         /* percent of the room that a
                                                   namespace may have; 0: all */
    kube_map_t                   map;           /* of tenants, by namespace */
    kube_heap_t                  tenants;       /* the largest first */
    uint64_t                     bytes;         /* of all tenants */
} kube_eviction_t;

/* Fields above map are set.  KUBE_OK or KUBE_NOMEM: not to be cleared. */
kube_rc_t kube_eviction_init(kube_eviction_t *eviction)  KUBE_MUST_CHECK;

/* Also where all groups are about to be freed: it is as after init then. */
void kube_eviction_clear(kube_eviction_t *eviction);
void kube_eviction_done(kube_eviction_t *eviction);

/*
 * Every group is added once it is made (twice does no harm), and removed
 * before it is freed.  KUBE_OK or KUBE_NOMEM: not added.
 */
kube_rc_t kube_eviction_add(kube_eviction_t *eviction, kube_group_t *group)
    KUBE_MUST_CHECK;
void kube_eviction_remove(kube_eviction_t *eviction, kube_group_t *group);

/*
 * What a record of so many bytes is charged with: not less than its share of
 * the entries, so that what fits by bytes fits by number, too.
 */
uint32_t kube_eviction_charge(const kube_eviction_t *eviction, size_t size);

/*
 * A member of a group has a record that is charged with so many bytes now; 0:
 * it leaves the group, which is said before.
 */
void kube_eviction_size(kube_eviction_t *eviction, uint32_t entry,
    uint32_t bytes);

/*
 * A refused object charged with so many bytes would belong to the group; 0:
 * no more.  A Service is ranked with all that it wants, or its parts would
 * come and go by turns.
 */
void kube_eviction_lacks(kube_eviction_t *eviction, kube_group_t *group,
    uint32_t entry, uint32_t bytes);

/* Bytes that the group lacks, but for the entry's. */
uint64_t kube_eviction_lacking(const kube_eviction_t *eviction,
    const kube_group_t *group, uint32_t entry);

/* The last group by rank; NULL: nothing is held. */
kube_group_t *kube_eviction_last(const kube_eviction_t *eviction);

/*
 * Chooses who goes so that the group gets need bytes of room and can grow by
 * more bytes: up to KUBE_EVICTIONS_MAX groups, *n of them (0: the room is
 * there, and need was 0).  KUBE_OK, or KUBE_FULL: the group is itself the
 * last of those that would have to go.
 */
kube_rc_t kube_eviction_choose(kube_eviction_t *eviction,
    kube_group_t *group, uint64_t more, uint64_t need,
    kube_group_t *victims[KUBE_EVICTIONS_MAX], size_t *n)  KUBE_MUST_CHECK;


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

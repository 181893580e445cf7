/*
 * kube_eviction - who makes room in a full zone, and whom room returned for.
 *
 * The zone is shared fairly between namespaces.  The rank of a Service is the
 * bytes of its namespace's Services up to and with it, the smallest first (and
 * those named in the configuration, "static", before all others of their
 * namespace); the last by rank makes room first.  So a namespace is never
 * held to less than an equal share by what others want, but for the size of
 * one of its own Services, and two gateways that see the same cluster hold the
 * same part of it.  One that needs room is ranked, too: if it is itself the
 * last, nobody makes room for it.
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


/* A namespace of which something is held. */
struct kube_tenant_s {
    kube_map_link_t   link;
    kube_heap_node_t  node;           /* of kube_eviction_t.tenants */
    kube_heap_t       groups;         /* the last by rank first */
    kube_heap_t       lacking;        /* those that lack something, the first
                                         by rank first */
    size_t            groups_n;       /* that point here */
    uint64_t          bytes;          /* demand of all of groups, as ranked */
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
    kube_group_t                *unranked;      /* not in their places yet */
    uint64_t                     bytes;         /* that all groups demand */
} kube_eviction_t;

/* Fields above map are set.  KUBE_OK or KUBE_NOMEM: not to be cleared. */
kube_rc_t kube_eviction_init(kube_eviction_t *eviction)  KUBE_MUST_CHECK;

/* Also where all groups are about to be freed: it is as after init then. */
void kube_eviction_clear(kube_eviction_t *eviction);
void kube_eviction_done(kube_eviction_t *eviction);

/*
 * Every group is added once it is made (twice does no harm), and freed by
 * kube_eviction_release().  KUBE_OK or KUBE_NOMEM: not added.
 */
kube_rc_t kube_eviction_add(kube_eviction_t *eviction, kube_group_t *group)
    KUBE_MUST_CHECK;

/* Removes and frees a group that is empty; others stay. */
void kube_eviction_release(kube_eviction_t *eviction, kube_group_t *group);

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
 * A refused object charged with so many bytes would belong to the group, and to
 * no other one; 0: no more.  A Service is ranked with all that it wants, or its
 * parts would come and go by turns.
 */
void kube_eviction_lacks(kube_eviction_t *eviction, kube_lack_t *lack,
    kube_group_t *group, uint32_t bytes);

/* Bytes that the group lacks, but for one object's, which may be NULL. */
uint64_t kube_eviction_lacking(const kube_group_t *group,
    const kube_lack_t *but);

/* The last group by rank; NULL: nothing is held. */
kube_group_t *kube_eviction_last(kube_eviction_t *eviction);

/* Room that nobody has and nobody that holds something lacks, in bytes. */
uint64_t kube_eviction_free(const kube_eviction_t *eviction);

/*
 * Chooses who goes so that the group gets need bytes of room and can grow by
 * more bytes: a list by victim, NULL: nobody (the room is there, and need was
 * 0).  It is good until the next call of these functions.  KUBE_OK, or
 * KUBE_FULL: the group is itself the last of those that would have to go.
 */
kube_rc_t kube_eviction_choose(kube_eviction_t *eviction,
    kube_group_t *group, uint64_t more, uint64_t need,
    kube_group_t **victims)  KUBE_MUST_CHECK;

/* True if the group gets room for so many bytes more, of others or free. */
bool kube_eviction_takes(kube_eviction_t *eviction, kube_group_t *group,
    uint64_t more);

/*
 * Calls found() with the first by rank of each namespace of those that lack
 * something, where a list would bring that now: it has room, or goes before
 * what is held.  No function of kube_eviction may be called there.
 */
typedef void (*kube_eviction_found_pt)(void *ctx, const kube_group_t *group);

void kube_eviction_returned(kube_eviction_t *eviction,
    kube_eviction_found_pt found, void *ctx);


#endif /* KUBE_EVICTION_H */

/*
 * kube_service_index - which objects belong to which Service, and where each
 * object is in its life.
 *
 * A group is whatever bears one Service's name: the Service, if there is one,
 * and the slices whose label names it, by whatever resource they came.  A
 * group exists as long as one of these does, so that slices may come before
 * their Service and stay after it.
 *
 * A member is the row of one zone entry.  Its life:
 *
 *   STAGED      in its group; its newest version has not been published
 *   LINKED      in its group and published: a Service, or a slice that no
 *               published Service references (an orphan)
 *   REFERENCED  in its group, and the group's published Service references it
 *   DELETING    a Service that is removed with its next publication; a slice
 *               that left its group, but that a published Service still
 *               references
 *   REFUSED     no object, but a name with a reason
 *
 *                 put      published      its Service goes    deleted
 *   NONE          STAGED
 *   STAGED        STAGED   REFERENCED *                       DELETING
 *   LINKED        STAGED   REFERENCED *                       DELETING
 *   REFERENCED    STAGED   REFERENCED     LINKED              DELETING
 *   DELETING      STAGED
 *   REFUSED       STAGED, by way of NONE
 *
 *   * LINKED, if it is a Service or there is no Service
 *
 * Whatever nothing references any more becomes NONE once it is deleted, or
 * REFUSED if it is refused.
 *
 * A slice that moves to another Service is STAGED in the new group while the
 * old Service's published record references it: referenced_by tells.
 *
 * An object whose newer version was refused stays what it is, outdated; what
 * is put, deleted or published of it later goes as above.
 *
 * It stores no object, publishes nothing and knows no reader.  For the files
 * of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SERVICE_INDEX_H
#define KUBE_SERVICE_INDEX_H


#include <assert.h>

#include "kube_hash.h"
#include "kube_heap.h"
#include "kube_map.h"
#include "kube_resource.h"
#include "kube_rv.h"


/* Bytes: records are made of such, so that 16 bits tell how large one is. */
#define KUBE_WANTS_UNIT  8u


typedef enum {
    KUBE_LIFE_NONE = 0,
    KUBE_LIFE_STAGED,
    KUBE_LIFE_LINKED,
    KUBE_LIFE_REFERENCED,
    KUBE_LIFE_DELETING,
    KUBE_LIFE_REFUSED
} kube_life_t;

typedef struct kube_tenant_s  kube_tenant_t;

/* By size of fields: there is one of these for each Service. */
typedef struct kube_group_s {
    kube_map_link_t       link;

    /* kube_eviction's; all in bytes of records */
    kube_tenant_t        *tenant;     /* NULL: not added yet */
    struct kube_group_s  *victim;     /* the next one that is to go */
    struct kube_group_s  *unranked;   /* the next one that is */
    uint64_t              bytes;      /* held */
    uint64_t              lacking;    /* of those refused for want of room */
    uint64_t              demand;     /* both; 0 where nothing is held; as of
                                         its rank */
    kube_heap_node_t      rank;
    kube_heap_node_t      turn;
    uint32_t              lacking_n;  /* refused objects of this Service */

    uint32_t              service;    /* entry; 0: there is no Service */
    uint32_t              slices;     /* first entry of a list; 0: none */
    uint32_t              slices_n;

    /* kube_publisher's and kube_service_queue's */
    int64_t               trigger_ms; /* earliest not yet published; 0: none */
    uint64_t              added_ms;   /* to the work queue; while waits */
    uint32_t              list[KUBE_RESOURCES_ROUTED];  /* that changed
                                         it last */
    uint16_t              pins;       /* in use: not to be freed */
    uint16_t              shown;      /* slices that readers find by it */
    uint8_t               scope[KUBE_RESOURCES_ROUTED];  /* or
                                         KUBE_SCOPES_MAX */
    uint8_t               waits_in[KUBE_RESOURCES_ROUTED];  /* the scope that
                                         counts it, while it waits */
    uint8_t               trigger;    /* resource of that slice */
    uint8_t               waits;      /* for publication: a bit for each
                                         resource that changed */
    bool                  held;       /* by a list in progress */
    bool                  is_unranked;   /* it is not where its rank is */
    bool                  is_static;  /* named in the configuration */
    uint8_t               ns_len;
    uint8_t               name_len;   /* 0: slices without the label */
    char                  key[];      /* ns, name */
} kube_group_t;

static_assert(KUBE_SCOPES_MAX <= UINT8_MAX && KUBE_RESOURCES_ROUTED <= 8
              && KUBE_NAMESPACE_LEN_MAX <= UINT8_MAX
              && KUBE_NAME_LEN_MAX <= UINT8_MAX,
              "fields of kube_group_t have one byte");


static inline kube_str_t
kube_group_ns(const kube_group_t *group)
{
    return (kube_str_t) { group->key, group->ns_len };
}


static inline kube_str_t
kube_group_name(const kube_group_t *group)
{
    return (kube_str_t) { group->key + group->ns_len, group->name_len };
}


/* What one refused object would take. */
typedef struct {
    kube_group_t    *group;         /* that lacks it; NULL: none */
    uint32_t         bytes;
    uint32_t         none;          /* 0: where a member has referenced_by */
} kube_lack_t;

/* Why an object, or its newest version, is not held. */
typedef struct {
    kube_str_t   reason;            /* static text */
    uint32_t     size;              /* bytes that the zone lacked; else 0 */
    kube_rv_t    rv;                /* len 0: unknown */
    uint64_t     uid_hash;          /* kube_uid_hash(); 0: unknown */
    kube_lack_t  wish;              /* of a member: another group wants it */
} kube_refusal_t;

typedef struct {
    kube_group_t    *group;         /* NULL: in none */
    kube_refusal_t  *refusal;       /* DELETING slice: it becomes REFUSED; an
                                       outdated one: for its wish; or NULL;
                                       owned */

    union {
        kube_lack_t  lack;          /* REFUSED: kube_eviction's */

        struct {
            uint32_t  prev;         /* slices of the group, by entry */
            uint32_t  next;
            uint32_t  bytes;        /* kube_eviction's: of the newest record */
            uint32_t  referenced_by;    /* slice: entry of the Service whose
                                           published record references it; 0 */
        };
    };

    uint16_t         wants;         /* outdated for want of room: so many
                                       KUBE_WANTS_UNITs; 0: unknown */
    uint8_t          life;
    uint8_t          resource;
    uint8_t          scope;
    bool             outdated;      /* a newer version was refused; the newest
                                       record is flagged so */
    bool             lacks_room;    /* REFUSED or outdated for want of room */
    uint8_t          list;          /* of its scope, that saw it last: the
                                       lowest bits */
} kube_member_t;

static_assert(offsetof(kube_member_t, lack) + offsetof(kube_lack_t, none)
              == offsetof(kube_member_t, referenced_by)
              || sizeof(void *) != sizeof(uint64_t),
              "no Service references what is refused");

typedef struct {
    const kube_alloc_t  *alloc;
    kube_seed_t          seed;
    kube_map_t           groups;
    uint32_t             entries_n;
    kube_member_t       *members;   /* by entry; [0] stays NONE */
} kube_service_index_t;

/* seed is secret.  KUBE_OK or KUBE_NOMEM: done need not be called. */
kube_rc_t kube_service_index_init(kube_service_index_t *index,
    const kube_alloc_t *alloc, kube_seed_t seed, uint32_t entries_n)
    KUBE_MUST_CHECK;

/* top is the highest entry whose row was used. */
void kube_service_index_done(kube_service_index_t *index, uint32_t top);

/* Finds or makes a group.  NULL: out of memory. */
kube_group_t *kube_service_index_get(kube_service_index_t *index,
    kube_str_t ns, kube_str_t name)  KUBE_MUST_CHECK;

/* Frees all groups and zeroes all rows, up to top as above. */
void kube_service_index_clear(kube_service_index_t *index, uint32_t top);

/* Neither has nor lacks a member, and is not in use: to be removed. */
bool kube_group_is_empty(const kube_group_t *group);
void kube_service_index_remove(kube_service_index_t *index,
    kube_group_t *group);

/*
 * Makes a member of no group, whose resource is set, the group's Service or
 * one of its slices.
 */
void kube_service_index_link(kube_service_index_t *index,
    kube_group_t *group, uint32_t entry);

/* Takes a member out of its group, which is not freed. */
void kube_service_index_unlink(kube_service_index_t *index, uint32_t entry);

/* Moves a member on in its life, as drawn above. */
void kube_member_set(kube_member_t *member, kube_life_t life);

/* Frees the refusal and zeroes the row; it must be in no group. */
void kube_service_index_forget(kube_service_index_t *index, uint32_t entry);

/* Notes the version that is refused, if it is one. */
void kube_refusal_set_rv(kube_refusal_t *refusal, kube_str_t rv);

/*
 * The entry of the Service that references a slice; 0: none does.  Which
 * slices a Service references is read from the zone, where any process may
 * have changed it: a Service may have ended and left a slice behind.
 */
uint32_t kube_service_index_owner(kube_service_index_t *index,
    uint32_t entry);

/* So many Services are published in order for one; kube_service_index_chain */
#define KUBE_CHAIN_MAX  64u

/* Groups that have a Service each; borrowed. */
typedef struct {
    unsigned       n;
    kube_group_t  *groups[KUBE_CHAIN_MAX];
} kube_chain_t;

/*
 * Whom the group waits for, in the order in which they are to be published:
 * the Services that still name one of its slices, after those that these wait
 * for.  Were one published before them, a reader would find there neither the
 * slice that left it nor the one that comes.  Of Services that wait for each
 * other one comes first all the same; none is there twice, nor the group
 * itself.  What is beyond KUBE_CHAIN_MAX is left out.
 */
void kube_service_index_chain(kube_service_index_t *index,
    kube_group_t *group, kube_chain_t *chain);

/*
 * Who lacks what is there, outdated or DELETING: its newest version is of
 * another group, which had no room for it.  That one is ranked with it, and
 * still is once it is a name.  NULL: nobody.
 */
const kube_lack_t *kube_member_wish(const kube_member_t *member);

/* True of what has the shape of a Service; else it is a slice. */
bool kube_member_is_service(const kube_member_t *member);


#endif /* KUBE_SERVICE_INDEX_H */

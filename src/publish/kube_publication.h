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
#include "kube_unnamed.h"


/* What of a scope has no room, and whether that has returned. */
typedef struct {
    uint64_t  refused;         /* names, and outdated objects */
    uint64_t  unnamed;         /* rows of kube_unnamed */
    uint64_t  nameless;        /* of these, those that lack their names alone */
    uint64_t  more;            /* without a row: counted since the last list */
    uint64_t  more_listed;     /* of these, those since a list began */
    uint64_t  unknown;         /* found at take-over: of what size? */
    uint64_t  found_bytes;     /* held then */
    uint32_t  list;            /* lists begun */
    bool      crowded;         /* slices were refused, since the last list or
                                  before, for their Service has too many */
    bool      crowded_listed;  /* the same, since a list began */
    bool      has_place;       /* ... and one has come to have less */
    bool      wanted;          /* a list is to tell what a newcomer wants */
    bool      larger;          /* what a predecessor refused as too large may
                                  not be so any more: until a list ends */
    bool      interrupted;     /* found without a name, between two Services:
                                  until a list ends */
    bool      returned;        /* a list would bring something */
    bool      idle;            /* and much room lies idle */
    bool      asked;           /* a list was asked for */
    bool      urgent;          /* as one that should not wait */
} kube_room_t;

/* What readers can see of a scope, and what they cannot. */
typedef struct {
    kube_scope_sum_t   sum;
    kube_room_t        room;
} kube_publication_scope_t;

typedef struct {
    const kube_alloc_t        *alloc;
    kube_publisher_conf_t      conf;
    kube_service_index_t      *index;           /* borrowed, as eviction */
    kube_eviction_t           *eviction;
    kube_unnamed_t             unnamed;
    kube_log_t                 log;
    uint64_t                   now_ms;          /* the caller sets these */
    int64_t                    now_unix_ms;
    bool                       larger;          /* objects may be larger than
                                                   under the predecessor */
    bool                       outdated;        /* set where a member is; the
                                                   caller resets it */
    char                       lacking[KUBE_KEY_LEN_MAX + 32];    /* room */

    /* the last is of what no scope covers; nobody asks for it */
    kube_publication_scope_t   scopes[KUBE_SCOPES_MAX + 1];

    /* during one publication */
    uint32_t                   slices[KUBE_SERVICE_SLICES_MAX];
    uint32_t                   refs[KUBE_SERVICE_SLICES_MAX];
    uint8_t                    changes[KUBE_SERVICE_SLICES_MAX];
    kube_rv_t                  before_rvs[KUBE_SERVICE_SLICES_MAX];
} kube_publication_t;


/* KUBE_OK or KUBE_NOMEM. */
kube_rc_t kube_publication_init(kube_publication_t *p,
    const kube_alloc_t *alloc, const kube_publisher_conf_t *conf,
    kube_service_index_t *index, kube_eviction_t *eviction)
    KUBE_MUST_CHECK;
void kube_publication_done(kube_publication_t *p);

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
 * Where not even the name has room it is counted.  What the object lacks, its
 * group lacks from now on.
 */
void kube_publication_refuse(kube_publication_t *p, kube_zone_item_t *item,
    unsigned scope, const kube_refusal_t *refusal);

/*
 * Flags the newest record of a member as outdated: its newer version is
 * refused.  Again: the reason is the newer one, the time stays.
 */
void kube_publication_outdate(kube_publication_t *p, uint32_t entry,
    const kube_refusal_t *refusal);

/* No other group wants the object any more; one may be freed. */
void kube_publication_unwish(kube_publication_t *p, uint32_t entry);

/* A member that was outdated is so no more: a newer record is staged. */
void kube_publication_current(kube_publication_t *p, uint32_t entry);

/* Counts what the zone holds since before: a name, or a member's object. */
void kube_publication_found_refused(kube_publication_t *p,
    const kube_item_t *item);
void kube_publication_found(kube_publication_t *p, uint32_t entry);

/* The row of a name becomes that of an object: it is refused no more. */
void kube_publication_unrefuse(kube_publication_t *p, uint32_t entry);

/* The same of one without a name, which need not be known. */
void kube_publication_end_unnamed(kube_publication_t *p,
    const kube_record_id_t *id);

/*
 * Who lacks the item, which is refused or held by another group, and how much;
 * NULL: it is neither, or not known.
 */
const kube_lack_t *kube_publication_lack(const kube_publication_t *p,
    const kube_zone_item_t *item);

/*
 * True if a predecessor has refused something for want of room, of the scope
 * or of the other one of its namespace, which no list has shown since: until
 * both are listed nobody knows what these Services demand, nor their ranks.
 * *unnamed: how many objects of these two have no name, and no row.
 */
bool kube_publication_guesses(const kube_publication_t *p, unsigned scope,
    uint64_t *unnamed);

/* Asks for the lists of these two that are missing. */
void kube_publication_want(kube_publication_t *p, unsigned scope);

/* A list of the scope begins, or ended: what it has not seen is gone. */
void kube_publication_list_begin(kube_publication_t *p, unsigned scope);
void kube_publication_list_end(kube_publication_t *p, unsigned scope);

/*
 * A list of the scope begins beside its watch, or ended: whole, or it broke off
 * and is asked for again.  The watch goes on: all that it knows stays.
 */
void kube_publication_refill_begin(kube_publication_t *p, unsigned scope);
void kube_publication_refill_end(kube_publication_t *p, unsigned scope,
    bool whole);

/* The refs of a published Service, into p->refs; how many. */
size_t kube_publication_refs(kube_publication_t *p, uint32_t service);


#endif /* KUBE_PUBLICATION_H */

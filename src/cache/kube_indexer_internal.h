/*
 * kube_indexer_internal - what the files of the indexer share: its side
 * tables and the steps between them.  Not for anyone else.
 *
 *   kube_indexer.c          life, deltas, lists, the queue
 *   kube_index_object.c     what a delta does to its object
 *   kube_indexer_load.c     what is rebuilt from the zone; state files; sums
 *   kube_index_group.c      groups: a Service's name, its entry, its slices
 *   kube_indexer_publish.c  publication of a group, removal, naming as refused
 *   kube_admission.c        what gets room, and who makes it
 *
 * An object's place is its zone entry.  Its life in the side table:
 *
 *   slice     staged -> linked in its group -> named by a published Service
 *             (or an orphan, named by none) -> doomed: out of its group, but
 *             still named -> removed or refused once its Service is published
 *             without it
 *   Service   staged -> its group's service -> doomed -> removed
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_INDEXER_INTERNAL_H
#define KUBE_INDEXER_INTERNAL_H


#include "kube_indexer.h"
#include "kube_rv.h"


#define KUBE_INDEX_NO_SCOPE  UINT8_MAX

/* No latency is to be measured: not an event of a watch. */
#define KUBE_INDEX_NO_READ   UINT64_MAX

/* Others that may have to go for one object. */
#define KUBE_INDEX_DISPLACE_MAX  64


typedef struct kube_index_group_s  kube_index_group_t;

typedef enum {
    KUBE_INDEX_IDLE = 0,
    KUBE_INDEX_READY,       /* in the queue of those to be published */
    KUBE_INDEX_HELD         /* in the queue of those a list holds back */
} kube_index_wait_t;

/* Whatever bears one Service's name, whether the Service exists or not. */
struct kube_index_group_s {
    kube_index_group_t  *chain;
    uint64_t             hash;
    int64_t              trigger_ms;    /* earliest not yet published; 0 */
    size_t               heap;          /* 1-based; 0: static, never in it */
    uint32_t             service;       /* entry; 0: not held */
    uint32_t             slices;        /* first entry of the list; 0 */
    uint32_t             slices_n;
    uint32_t             touched;       /* list that staged a slice last */
    kube_index_wait_t    wait;
    uint8_t              scope[KUBE_RESOURCES];
    kube_str_t           ns;            /* point behind the struct */
    kube_str_t           name;
};

/* Under which name, and why, something is not held. */
typedef struct {
    kube_rv_t    rv;                    /* len 0: unknown */
    const char  *reason;                /* static text */
    size_t       reason_len;
    uint32_t     size;                  /* zone_full: of its record; else 0 */
} kube_index_refusal_t;

typedef enum {
    KUBE_INDEX_NONE = 0,
    KUBE_INDEX_SERVICE,
    KUBE_INDEX_SLICE,
    KUBE_INDEX_REFUSED
} kube_index_kind_t;

#define KUBE_INDEX_F_DOOMED    0x1
#define KUBE_INDEX_F_ROOM      0x2      /* REFUSED for want of room */
#define KUBE_INDEX_F_ADDED     0x4      /* during one publication only */
#define KUBE_INDEX_F_CHANGED   0x8

typedef struct {
    union {
        kube_index_group_t    *group;
        kube_index_refusal_t  *refusal;    /* doomed slice; owned; or NULL */
    } u;
    uint32_t  prev;                     /* slices of the group */
    uint32_t  next;
    uint32_t  named;                    /* slice: published Service's entry */
    uint32_t  mark;                     /* list that last saw it */
    uint8_t   kind;
    uint8_t   scope;
    uint8_t   flags;
} kube_index_entry_t;

typedef struct {
    bool             used;
    kube_resource_t  resource;
    kube_str_t       ns;                /* owned; empty: all */
    uint32_t         list;              /* of the list that began last */
    uint32_t         synced;            /* of the list completed last */
    uint32_t         waiting;           /* groups with something to publish */
    uint64_t         count;
    kube_digest_t    digest;
    uint64_t         refused;
    uint64_t         refused_room;      /* of these, for want of room */
    uint32_t         refused_min;       /* their smallest record */
    bool             unnamed;           /* some could not even be named */
    bool             unnamed_list;      /* the same, since a list began */
    uint64_t         full_live;         /* bytes live when last found full */
    uint64_t         room_ms;           /* when room was last said to be back */
    uint64_t         room_wait_ms;
} kube_index_scope_t;

struct kube_indexer_s {
    const kube_alloc_t    *alloc;
    kube_indexer_conf_t    conf;
    kube_log_t             log;
    kube_index_scope_t     scopes[KUBE_SCOPES_MAX];

    uint32_t               entries_n;
    kube_index_entry_t    *entries;     /* by zone entry, 1-based */

    kube_index_group_t   **buckets;
    size_t                 mask;
    kube_index_group_t   **heap;        /* non-static groups, last name first */
    size_t                 heap_n;
    size_t                 heap_cap;
    kube_index_group_t    *pinned;      /* in use: not to be freed */

    kube_work_queue_t     *ready;
    kube_work_queue_t     *held;

    uint64_t               now_ms;
    int64_t                now_unix_ms;
    bool                   found_full;  /* in this call */

    /* during one publication */
    uint32_t               slices[KUBE_SERVICE_SLICES_MAX];
    uint32_t               named[KUBE_SERVICE_SLICES_MAX];
};


/* The slot that covers an object, or KUBE_INDEX_NO_SCOPE. */
uint8_t kube_index_scope_of(const kube_indexer_t *ix, kube_resource_t resource,
    kube_str_t ns);

/* Forgets everything but the scopes' names. */
void kube_index_clear(kube_indexer_t *ix);


/* kube_index_object.c */

/* KUBE_OK, or KUBE_NOMEM: nothing was applied. */
kube_rc_t kube_index_apply_object(kube_indexer_t *ix,
    const kube_delta_t *delta)  KUBE_MUST_CHECK;
kube_rc_t kube_index_apply_refused(kube_indexer_t *ix,
    const kube_delta_t *delta)  KUBE_MUST_CHECK;
void kube_index_apply_deleted(kube_indexer_t *ix, const kube_delta_t *delta);

/* Out of the zone, as soon as no published record names it. */
void kube_index_end(kube_indexer_t *ix, uint32_t entry, uint64_t read_ms);

/*
 * A record of a state file: taken where its key is free and there is room;
 * never refused by name.  KUBE_OK or KUBE_NOMEM.
 */
kube_rc_t kube_index_put_quietly(kube_indexer_t *ix,
    const kube_record_t *record)  KUBE_MUST_CHECK;


/* kube_index_group.c */

/* Finds or makes it.  NULL: out of memory. */
kube_index_group_t *kube_index_group_get(kube_indexer_t *ix, kube_str_t ns,
    kube_str_t name)  KUBE_MUST_CHECK;

/* Frees it where it has neither a Service nor a slice. */
void kube_index_group_tidy(kube_indexer_t *ix, kube_index_group_t *group);
void kube_index_groups_free(kube_indexer_t *ix);

/* By namespace, then by name. */
int kube_index_group_cmp(const kube_index_group_t *a,
    const kube_index_group_t *b);

/* The last by name that is not static; NULL: none. */
kube_index_group_t *kube_index_group_last(const kube_indexer_t *ix);

void kube_index_slice_link(kube_indexer_t *ix, kube_index_group_t *group,
    uint32_t entry);
void kube_index_slice_unlink(kube_indexer_t *ix, uint32_t entry);

/* Its Service is to be published; nothing to do where there is none. */
void kube_index_group_dirty(kube_indexer_t *ix, kube_index_group_t *group,
    uint64_t read_ms);
void kube_index_group_idle(kube_indexer_t *ix, kube_index_group_t *group);

/* A list in progress has staged slices of it. */
bool kube_index_group_is_held(const kube_indexer_t *ix,
    const kube_index_group_t *group);


/* kube_indexer_publish.c */

/*
 * One publication with the slices that no other Service names (others join
 * when theirs lets go).  KUBE_OK or KUBE_FULL: nothing changed for readers.
 */
kube_rc_t kube_index_group_try(kube_indexer_t *ix, kube_index_group_t *group,
    uint64_t read_ms)  KUBE_MUST_CHECK;

/* Makes a staged slice without a Service readable. */
void kube_index_orphan_publish(kube_indexer_t *ix, uint32_t slice);

/*
 * Ends a slice that no Service names, or a Service: removed, or where
 * refusal is not NULL named as refused.  The group may be freed.
 */
void kube_index_slice_drop(kube_indexer_t *ix, uint32_t slice,
    const kube_index_refusal_t *refusal);
void kube_index_service_drop(kube_indexer_t *ix, uint32_t service,
    const kube_index_refusal_t *refusal);

/*
 * A refused name: removed from the zone; replaced there by an object; found
 * there by load.
 */
void kube_index_refused_drop(kube_indexer_t *ix, uint32_t entry);
void kube_index_refused_forget(kube_indexer_t *ix, uint32_t entry);
void kube_index_refused_found(kube_indexer_t *ix, uint32_t entry, uint8_t slot,
    bool room);

/*
 * Slices: as drop, but once no published Service names it.  Services: with
 * the next publication.  KUBE_OK or KUBE_NOMEM (nothing changed).
 */
kube_rc_t kube_index_doom(kube_indexer_t *ix, uint32_t entry,
    const kube_index_refusal_t *refusal, uint64_t read_ms)  KUBE_MUST_CHECK;

/* Names a key that the zone holds no object of, or names it anew. */
void kube_index_name_refused(kube_indexer_t *ix, kube_resource_t resource,
    kube_str_t ns, kube_str_t name, const kube_index_refusal_t *refusal);


/* kube_admission.c */

/*
 * Stages a record, making room for it where others rank behind its group.
 * held: the key is held already, so the reserve may be used.  KUBE_OK,
 * KUBE_FULL, KUBE_TOO_LARGE, KUBE_NOMEM.
 */
kube_rc_t kube_index_stage(kube_indexer_t *ix, const kube_record_t *record,
    const kube_index_group_t *group, bool held, uint32_t *entry)
    KUBE_MUST_CHECK;

/*
 * Refuses the last object by name behind group.  KUBE_OK; KUBE_NOT_FOUND
 * where none ranks behind; KUBE_NOMEM.
 */
kube_rc_t kube_index_displace(kube_indexer_t *ix,
    const kube_index_group_t *group)  KUBE_MUST_CHECK;

/* size: of the record, where it is refused for want of room; else 0. */
kube_index_refusal_t kube_index_refusal(kube_str_t rv, kube_str_t reason,
    uint32_t size);

#define KUBE_INDEX_ZONE_FULL  KUBE_STR("zone_full")

/* Publishes, or gives the Service up where there is no room for it. */
void kube_index_group_settle(kube_indexer_t *ix, kube_index_group_t *group,
    uint64_t read_ms);

/* Remembers how full the zone was, for kube_indexer_room_returned(). */
void kube_index_note_full(kube_indexer_t *ix);


#endif /* KUBE_INDEXER_INTERNAL_H */

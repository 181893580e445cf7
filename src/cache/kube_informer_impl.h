/*
 * kube_informer_impl - what the files of an informer share.  Each uses those
 * above it in this list alone, and none but these includes it:
 *
 *   kube_informer_scope.c     what a scope is made of
 *   kube_informer_takeover.c  the guard, and what one informer leaves to the
 *                             next
 *   kube_informer.c           life and work
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_INFORMER_IMPL_H
#define KUBE_INFORMER_IMPL_H


#include "kube_indexer.h"
#include "kube_informer.h"
#include "kube_publisher.h"
#include "kube_reflector.h"
#include "kube_trouble.h"
#include "kube_zone_poison.h"
#include "kube_zone_recover.h"


/* What lacked memory or room is tried, or looked at, again after this. */
#define KUBE_INFORMER_RETRY_MS  1000

/*
 * For so long after a take-over watches go on before one is closed for a list
 * for room: where many processes follow each other, each gets that far.
 */
#define KUBE_INFORMER_FILL_MS   10000

typedef enum {
    INFORMER_WAITING = 0,     /* for the guard */
    INFORMER_DAMPED,          /* holds it, but started too often */
    INFORMER_LOADING,         /* takes over */
    INFORMER_RUNNING,
    INFORMER_STOPPED
} informer_phase_t;

/* One list+watch and what the zone says of it. */
typedef struct {
    kube_reflector_t   *reflector;
    kube_resource_t     resource;
    kube_str_t          ns;            /* empty: all */
    uint64_t            hash;
    kube_rv_t           rv;            /* published; len 0: none */
    kube_rv_t           floor;         /* the zone has it, for a successor */
    uint64_t            count;
    kube_digest_t       digest;
    uint64_t            unnamed;       /* refused so */
    bool                interrupted;   /* ... one of them, between Services */
    bool                behind;        /* the zone had more than these, of a
                                          predecessor */
    bool                published;     /* the zone shows the seven above */
    bool                synced;        /* ... and that a list was completed */
    bool                listing;       /* LIST_BEGIN applied, SYNC not yet */
    kube_rv_t           repeated;      /* what the watch tells up to it may be
                                          told again; len 0: it is not */
    kube_rv_t           deleted;       /* ... and up to this one of what is
                                          gone since */
    bool                passed_over;   /* something of what it repeats was */
    bool                contradicted;  /* what is held, by an event: a list is
                                          to come */
    bool                announce;      /* SYNC applied, not yet told */
} informer_scope_t;

struct kube_informer_s {
    kube_alloc_t            alloc;
    kube_informer_conf_t    conf;
    char                   *server;       /* owned; conf.server shows it */
    kube_log_t              log;
    kube_arena_t            arena;
    kube_zone_writer_t     *writer;
    kube_delta_fifo_t      *fifo;
    kube_publisher_t       *publisher;
    kube_indexer_t         *indexer;
    informer_scope_t       *scopes;
    unsigned                scopes_n;
    kube_resource_t         slices;       /* that are watched: of the shape */
    kube_resource_t         state_slices; /* the same, of a state file */
    kube_server_traits_t    traits;
    kube_list_turn_t        turn;
    kube_trouble_t         *trouble;
    kube_hand_t             hand;         /* what it would have died of */
    informer_phase_t        phase;
    uint64_t                waits_since_ms;  /* for the guard */
    uint64_t                waits_told_ms;   /* is told of next; 0: it does not
                                                wait */
    kube_takeover_t         takeover;
    bool                    wants_state;
    bool                    lacks_state;  /* no memory for all of it */
    bool                    swept;        /* what no scope covers is gone */
    bool                    listed;       /* the zone has KUBE_READY_LISTED */
    bool                    again;        /* more work is left */
    bool                    lacks_room;   /* so does some scope */
    uint64_t                check_ms;     /* the zone is looked at next */
    uint64_t                fill_ms;      /* none lists for room before */
    uint64_t                now_ms;
    int64_t                 now_unix_ms;
    uint64_t                deadline_ms;
    uint64_t                loading;      /* objects of a state file that may
                                             still wait for their turn */
};


/*
 * Makes a scope, or makes it anew; a reflector that it had is stopped.
 * KUBE_NOMEM: it is as it was.
 */
kube_rc_t kube_informer_scope_init(kube_informer_t *informer, unsigned scope)
    KUBE_MUST_CHECK;

typedef void (*kube_informer_scope_pt)(kube_informer_t *informer,
    unsigned scope);

/*
 * Has all scopes that watch EndpointSlices watch Endpoints from now on; begin
 * is called for each, NULL: they are begun later.  KUBE_NOMEM: some may not
 * yet; it is to be called again.
 */
kube_rc_t kube_informer_use_endpoints(kube_informer_t *informer,
    kube_informer_scope_pt begin)  KUBE_MUST_CHECK;

/* Steps from WAITING to RUNNING.  KUBE_OK: RUNNING now. */
kube_rc_t kube_informer_take_over(kube_informer_t *informer)
    KUBE_MUST_CHECK;

/*
 * Makes the zone show a scope's rv, count, digest, unnamed and synced, for
 * readers and for the next informer.  KUBE_FULL: the zone has no room for the
 * record.
 */
kube_rc_t kube_informer_publish_scope(kube_informer_t *informer,
    unsigned scope)  KUBE_MUST_CHECK;


#endif /* KUBE_INFORMER_IMPL_H */

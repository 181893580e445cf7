/*
 * kube_informer - the shared informer of one API server: controller and
 * scopes tied together.
 *
 *   lister-watcher -> reflector -> DeltaFIFO -> indexer -> publisher -> zone
 *
 * It owns the writer's guard while it runs, takes over from a predecessor
 * (resuming watches where it stopped), moves the published resourceVersions,
 * and damps crash loops.  No clock, no socket: the host calls
 * kube_informer_process() after the transport's, and sleeps until the
 * deadline.  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_INFORMER_H
#define KUBE_INFORMER_H


#include "kube_client.h"
#include "kube_item.h"
#include "kube_reflector_step.h"


#define KUBE_TAKEOVER_RETRY_MS  20

/*
 * Between two looks whether another process wrote into the zone: each that
 * finds something costs a take-over and a list.
 */
#define KUBE_INFORMER_CHECK_MS  10000

/* Bounds of one process(): deltas applied, Services published. */
#define KUBE_INFORMER_DELTAS    512
#define KUBE_INFORMER_SERVICES  256

/*
 * Where the endpoints of Services come from.  AUTO: from EndpointSlices; where
 * the API server grants Services but answers 404 for these, from Endpoints.
 * That is decided before the first list of either is complete, and stays so as
 * long as the zone.
 */
typedef enum {
    KUBE_ENDPOINTS_AUTO = 0,
    KUBE_ENDPOINTS_SLICES,
    KUBE_ENDPOINTS_ENDPOINTS
} kube_endpoints_t;

typedef struct kube_informer_s  kube_informer_t;

typedef struct {
    kube_io_t               io;
    kube_zone_t            *zone;              /* borrowed */
    kube_str_t              server;            /* copied; shown, and in scope
                                                  hashes */
    const kube_str_t       *namespaces;        /* n 0: all; borrowed */
    size_t                  namespaces_n;
    /* borrowed */
    kube_str_t              label_selector[KUBE_RESOURCES_ROUTED];
    kube_str_t              field_selector[KUBE_RESOURCES_ROUTED];
    kube_endpoints_t        endpoints;
    size_t                  object_bytes_max;
    kube_encoding_t         encoding;
    kube_reflector_conf_t   reflector;
    const kube_str_t       *static_keys;       /* "ns/name"; borrowed */
    size_t                  static_keys_n;
    unsigned                zone_share;        /* kube_publisher_conf_t */
    uint64_t                max_outdated_ms;   /* the same */
    kube_log_sink_t         sink;
    kube_change_pt          change;            /* NULL: none */
    void                   *change_ctx;
    /* A list is applied, and its version published; NULL: none. */
    void                  (*synced)(void *change_ctx, unsigned scope);
    uint64_t                pid;
} kube_informer_conf_t;

/*
 * NULL: out of memory, more than KUBE_NAMESPACES_MAX namespaces, or a server
 * without a name.
 */
kube_informer_t *kube_informer_create(const kube_alloc_t *alloc,
    const kube_informer_conf_t *conf)  KUBE_MUST_CHECK;

/* Cancels exchanges and releases the guard. */
void kube_informer_destroy(kube_informer_t *informer);

/*
 * Everything that is due at now_ms, in bounded steps.  KUBE_OK; KUBE_BUSY
 * while another process is the writer or a crash loop is damped (come again
 * at the deadline); KUBE_NOMEM before the start, tried again; KUBE_CHANGED:
 * another process has changed the zone, and the host is to stop this informer
 * and to start one anew, whose take-over repairs what it finds and lists.
 */
kube_rc_t kube_informer_process(kube_informer_t *informer, uint64_t now_ms,
    int64_t now_unix_ms);

/* When to come again at the latest; now_ms or less: at once (more work). */
uint64_t kube_informer_deadline(const kube_informer_t *informer);

/* All scopes have synced in this zone and are published. */
bool kube_informer_synced(const kube_informer_t *informer);

/*
 * The same, but for scopes that answer 403 beside one that has synced of their
 * resource: who takes back the rights to one namespace keeps no other out of
 * the state file.  *unconfirmed: what one of these holds is an older file's, or
 * of other selectors.
 */
bool kube_informer_settled(const kube_informer_t *informer,
    bool *unconfirmed);

/* The writer, once the guard is held; else NULL.  For the state file. */
kube_zone_writer_t *kube_informer_writer(kube_informer_t *informer);

/*
 * Asked once, after a take-over of a zone without any object, or of one whose
 * writer ended while it was loading: the host may feed a state file's records
 * now, if the identity in it, a hash of server and scopes, is accepted.  It is
 * where it is ours, and by AUTO also where the file is of an informer that
 * followed Endpoints: these serve until a list of EndpointSlices is complete,
 * or one of Endpoints in its place.  What the zone holds already stays.
 *
 * They are published in turns, as all else is.  While the informer is loading
 * the host reads nothing of the API server, but calls process(): a list that
 * has begun holds back what waits for its turn, and readers would have none of
 * it until that list's end.
 */
bool kube_informer_wants_state(kube_informer_t *informer);
bool kube_informer_accepts_state(kube_informer_t *informer, uint64_t identity);
uint64_t kube_informer_identity(const kube_informer_t *informer);
kube_rc_t kube_informer_put_state(void *informer,
    const kube_record_t *record)  KUBE_MUST_CHECK;
bool kube_informer_loading(const kube_informer_t *informer);

/*
 * For the handler of a fatal signal, and safe there: leaves word in the zone
 * of the object in hand, for the next informer (kube_zone_poison.h).
 */
void kube_informer_last_words(kube_informer_t *informer, int signal_number);

/* Stops cleanly: scopes show "stopped", the guard is released. */
void kube_informer_stop(kube_informer_t *informer);


#endif /* KUBE_INFORMER_H */

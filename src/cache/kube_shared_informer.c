/*
 * kube_shared_informer - deltas from a reflector's FIFO into a store, whose
 * changes a processor tells handlers.
 *
 * What a delta means is decided here, as kube_indexer.c decides it for the
 * zone: an update older than what is held is passed over, an item of a list is
 * not.  It looks at no bytes and calls no handler itself.  A delta that lacks
 * memory stays in the FIFO, which holds the reflector, which holds its source.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_reflector.h"
#include "kube_shared_informer.h"


/* What lacked memory is tried again after this. */
#define SHARED_RETRY_MS        1000

/* Between two tries of a source of this process, which doubles. */
#define SHARED_LOCAL_FIRST_MS  1
#define SHARED_LOCAL_MAX_MS    20

typedef enum {
    SHARED_IDLE = 0,
    SHARED_RUNNING,
    SHARED_DRAINING,
    SHARED_STOPPED
} shared_phase_t;

struct kube_shared_informer_s {
    kube_alloc_t                   alloc;
    kube_shared_informer_conf_t    conf;
    kube_list_turn_t               turn;        /* conf.turn, if its own */
    kube_delta_fifo_t             *fifo;
    kube_reflector_t              *reflector;
    kube_store_t                  *store;
    kube_processor_t              *processor;
    kube_log_t                     log;
    kube_transform_pt              transform;
    void                          *transform_ctx;
    kube_watch_error_pt            watch_error;
    void                          *watch_error_ctx;
    shared_phase_t                 phase;
    bool                           listing;     /* LIST_BEGIN applied, SYNC not
                                                   yet */
    bool                           passed_over; /* something of this list */
    bool                           synced;
    bool                           again;       /* more work is left */
    bool                           processing;
    kube_rv_t                      rv;
    uint64_t                       refused;
    uint64_t                       now_ms;
    uint64_t                       retry_ms;    /* or KUBE_NEVER */
    char                           error[KUBE_MESSAGE_LEN_MAX];
};


static kube_rc_t
shared_transform(void *ctx, kube_object_t *object)
{
    kube_shared_informer_t  *inf = ctx;

    return (inf->transform != NULL)
           ? inf->transform(inf->transform_ctx, object) : KUBE_OK;
}


static kube_rc_t
shared_stores(kube_shared_informer_t *inf)
{
    kube_store_conf_t  conf;

    inf->fifo = kube_delta_fifo_create(&inf->alloc, inf->conf.processor.seed,
                                       KUBE_FIFO_KEYS_MAX,
                                       KUBE_FIFO_BYTES_MAX);
    if (inf->fifo == NULL) {
        return KUBE_NOMEM;
    }

    inf->processor = kube_processor_create(&inf->alloc, &inf->conf.processor);
    if (inf->processor == NULL) {
        return KUBE_NOMEM;
    }

    conf = (kube_store_conf_t) {
        .seed = inf->conf.processor.seed,
        .on_change = kube_processor_on_change,
        .on_change_ctx = inf->processor
    };

    inf->store = kube_store_create(&inf->alloc, &conf);

    return (inf->store != NULL) ? KUBE_OK : KUBE_NOMEM;
}


kube_shared_informer_t *
kube_shared_informer_create(const kube_alloc_t *alloc,
    const kube_shared_informer_conf_t *conf, const kube_lister_watcher_t *lw)
{
    kube_shared_informer_t    *inf;
    kube_reflector_options_t   options;

    inf = kube_zalloc(alloc, sizeof(kube_shared_informer_t));
    if (inf == NULL) {
        lw->destroy(lw->ctx);
        return NULL;
    }

    inf->alloc = *alloc;
    inf->conf = *conf;
    inf->retry_ms = KUBE_NEVER;

    kube_list_turn_init(&inf->turn);
    kube_log_init(&inf->log, conf->processor.sink);

    if (shared_stores(inf) != KUBE_OK) {
        lw->destroy(lw->ctx);
        kube_shared_informer_destroy(inf);
        return NULL;
    }

    options = (kube_reflector_options_t) {
        .fifo = inf->fifo,
        .turn = (conf->turn != NULL) ? conf->turn : &inf->turn,
        .sink = conf->processor.sink,
        .scope = conf->scope,
        .resource = conf->resource,
        .ns = conf->ns,
        .step = conf->reflector,
        .transform = shared_transform,
        .transform_ctx = inf
    };

    if (lw->local) {
        options.step.backoff = (kube_backoff_conf_t) {
            .first_ms = SHARED_LOCAL_FIRST_MS,
            .max_ms = SHARED_LOCAL_MAX_MS,
            .unreachable_ms = SHARED_LOCAL_MAX_MS
        };
    }

    inf->conf.ns = KUBE_STR_NULL;
    inf->reflector = kube_reflector_create(&inf->alloc, &options, lw);

    if (inf->reflector == NULL) {
        kube_shared_informer_destroy(inf);
        return NULL;
    }

    return inf;
}


void
kube_shared_informer_destroy(kube_shared_informer_t *inf)
{
    kube_alloc_t  alloc;

    if (inf == NULL) {
        return;
    }

    if (inf->reflector != NULL && inf->phase != SHARED_STOPPED) {
        kube_shared_informer_stop(inf, false, inf->now_ms);
    }

    alloc = inf->alloc;

    kube_reflector_destroy(inf->reflector);
    kube_store_destroy(inf->store);
    kube_processor_destroy(inf->processor);
    kube_delta_fifo_destroy(inf->fifo);
    kube_free(&alloc, inf);
}


kube_rc_t
kube_shared_informer_set_transform(kube_shared_informer_t *inf,
    kube_transform_pt transform, void *ctx)
{
    if (inf->phase != SHARED_IDLE) {
        return KUBE_INVALID;
    }

    inf->transform = transform;
    inf->transform_ctx = ctx;

    return KUBE_OK;
}


kube_rc_t
kube_shared_informer_set_watch_error_handler(kube_shared_informer_t *inf,
    kube_watch_error_pt handler, void *ctx)
{
    if (inf->phase != SHARED_IDLE) {
        return KUBE_INVALID;
    }

    inf->watch_error = handler;
    inf->watch_error_ctx = ctx;

    return KUBE_OK;
}


kube_rc_t
kube_shared_informer_start(kube_shared_informer_t *inf, uint64_t now_ms)
{
    kube_rv_t  none;

    if (inf->phase != SHARED_IDLE) {
        return KUBE_INVALID;
    }

    memset(&none, 0, sizeof(kube_rv_t));

    inf->phase = SHARED_RUNNING;
    inf->now_ms = now_ms;

    kube_processor_started(inf->processor);
    kube_reflector_start(inf->reflector, &none, &none, now_ms);

    return KUBE_OK;
}


void
kube_shared_informer_stop(kube_shared_informer_t *inf, bool drain,
    uint64_t now_ms)
{
    if (inf->phase == SHARED_STOPPED) {
        return;
    }

    if (inf->phase == SHARED_RUNNING) {
        kube_reflector_stop(inf->reflector, now_ms);
    }

    if (drain && inf->phase != SHARED_IDLE) {
        inf->phase = SHARED_DRAINING;
        inf->again = true;
        return;
    }

    inf->phase = SHARED_STOPPED;
    kube_processor_drop(inf->processor);
}


static bool
shared_is_older(kube_str_t a, kube_str_t b)
{
    kube_rv_t  rv_a, rv_b;

    return kube_rv_parse(a, &rv_a) == KUBE_OK
           && kube_rv_parse(b, &rv_b) == KUBE_OK
           && kube_rv_cmp(&rv_a, &rv_b) < 0;
}


/* True if it was seen that the object ended that is held. */
static bool
shared_saw_end(const kube_delta_t *delta, const kube_stored_t *held)
{
    return delta->deleted_uid != 0
           && delta->deleted_uid == kube_uid_hash(held->id.meta.uid);
}


/*
 * What came is older than what is held, and is not taken.  Of a WatchList its
 * end sees to it; a watch never goes back, so what is held was never a version
 * of this server (kube_informer.c).
 */
static void
shared_pass_over(kube_shared_informer_t *inf)
{
    if (!inf->passed_over && !inf->listing && inf->phase == SHARED_RUNNING) {
        kube_reflector_relist_plainly(inf->reflector, inf->now_ms);
    }

    inf->passed_over = true;
}


static kube_rc_t
shared_put(kube_shared_informer_t *inf, const kube_delta_t *delta)
{
    bool              newer;
    kube_str_t        rv;
    kube_stored_t    *held;
    kube_record_id_t  id;

    if (delta->record == NULL
        || kube_record_id(delta->record, delta->record->size, &id) != KUBE_OK)
    {
        return KUBE_OK;
    }

    held = kube_store_get(inf->store, delta->ns, delta->name);

    if (held == NULL) {
        return kube_store_put(inf->store, delta->record, false);
    }

    if (!kube_str_eq(held->id.meta.uid, id.meta.uid)) {
        return kube_store_put(inf->store, delta->record,
                              !shared_saw_end(delta, held));
    }

    /* a restored server gives a version a second time, of what is other */

    rv = held->id.meta.rv;
    newer = kube_str_eq(rv, delta->rv)
                ? !kube_record_same(held->record, delta->record)
                : (delta->kind == KUBE_DELTA_REPLACED
                   || !shared_is_older(delta->rv, rv));

    if (newer) {
        return kube_store_put(inf->store, delta->record, false);
    }

    if (!kube_str_eq(rv, delta->rv)) {
        shared_pass_over(inf);
    }

    kube_store_list_seen(inf->store, delta->ns, delta->name);

    return KUBE_OK;
}


static kube_rc_t
shared_delete(kube_shared_informer_t *inf, const kube_delta_t *delta)
{
    kube_stored_t  *held;

    held = kube_store_get(inf->store, delta->ns, delta->name);

    if (held == NULL) {
        return KUBE_OK;
    }

    /* it was made anew since */

    if (shared_is_older(delta->rv, held->id.meta.rv)) {

        if (!inf->listing) {
            shared_pass_over(inf);
        }

        return KUBE_OK;
    }

    return kube_store_delete(inf->store, delta->ns, delta->name,
                             delta->uid_hash != 0
                             && delta->uid_hash
                                != kube_uid_hash(held->id.meta.uid)
                             && !shared_saw_end(delta, held));
}


/* What is held of a refused object stays, if it is the same object. */
static kube_rc_t
shared_refuse(kube_shared_informer_t *inf, const kube_delta_t *delta)
{
    kube_rc_t       rc;
    kube_stored_t  *held;

    rc = KUBE_OK;
    held = kube_store_get(inf->store, delta->ns, delta->name);

    if (held != NULL) {

        if (delta->uid_hash == 0
            || delta->uid_hash == kube_uid_hash(held->id.meta.uid))
        {
            kube_store_list_seen(inf->store, delta->ns, delta->name);

        } else {
            rc = kube_store_delete(inf->store, delta->ns, delta->name,
                                   !shared_saw_end(delta, held));
        }
    }

    inf->refused += (rc == KUBE_OK);

    return rc;
}


static kube_rc_t
shared_list_end(kube_shared_informer_t *inf)
{
    if (!inf->listing) {
        return KUBE_OK;
    }

    if (kube_store_list_end(inf->store) != KUBE_OK) {
        return KUBE_NOMEM;
    }

    inf->listing = false;

    /* a WatchList of another past of the server (kube_informer.c) */

    if (inf->passed_over && inf->phase == SHARED_RUNNING) {
        kube_reflector_relist_plainly(inf->reflector, inf->now_ms);
        return KUBE_OK;
    }

    if (!inf->synced) {
        inf->synced = true;
        kube_processor_synced(inf->processor, inf->now_ms);
        kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_NOTICE,
                       KUBE_EV_SYNCED, "%s synced, %llu objects",
                       kube_reflector_label(inf->reflector),
                       (unsigned long long) kube_store_count(inf->store));
    }

    return KUBE_OK;
}


static kube_rc_t
shared_apply(kube_shared_informer_t *inf, const kube_delta_t *delta)
{
    switch (delta->kind) {

    case KUBE_DELTA_REPLACED:
    case KUBE_DELTA_UPDATED:
        return shared_put(inf, delta);

    case KUBE_DELTA_DELETED:
        return shared_delete(inf, delta);

    case KUBE_DELTA_REFUSED:
        return shared_refuse(inf, delta);

    case KUBE_DELTA_LIST_BEGIN:
        inf->listing = true;
        inf->passed_over = false;
        kube_store_list_begin(inf->store);
        return KUBE_OK;

    case KUBE_DELTA_SYNC:
        return shared_list_end(inf);

    /* a store has room for all: nobody asks for these */

    case KUBE_DELTA_REFILL_BEGIN:
    case KUBE_DELTA_REFILL_END:
    case KUBE_DELTA_REFILL_BROKEN:
        break;
    }

    return KUBE_OK;
}


/* Applies deltas, oldest first, and moves the version behind the last. */
static void
shared_drain(kube_shared_informer_t *inf)
{
    unsigned      n;
    kube_delta_t  delta;

    inf->retry_ms = KUBE_NEVER;

    for (n = 0; n < KUBE_SHARED_DELTAS; n++) {

        if (kube_delta_fifo_peek(inf->fifo, &delta) != KUBE_OK) {

            if (!inf->listing && !inf->passed_over && inf->synced) {
                inf->rv = *kube_reflector_rv(inf->reflector);
            }

            return;
        }

        if (shared_apply(inf, &delta) == KUBE_NOMEM) {
            inf->retry_ms = inf->now_ms + SHARED_RETRY_MS;
            return;
        }

        kube_delta_fifo_drop(inf->fifo);
    }

    inf->again = true;
}


static void
shared_errors(kube_shared_informer_t *inf)
{
    kube_str_t  reason, message;

    if (kube_reflector_suffering(inf->reflector)->cause == KUBE_CAUSES) {
        inf->error[0] = '\0';
    }

    if (!kube_reflector_error(inf->reflector, &reason, &message)) {
        return;
    }

    (void) snprintf(inf->error, sizeof(inf->error), "%.*s: %.*s",
                    (int) reason.len, reason.data, (int) message.len,
                    message.data);

    if (inf->watch_error != NULL) {
        inf->watch_error(inf->watch_error_ctx, reason, message);
    }
}


void
kube_shared_informer_process(kube_shared_informer_t *inf, uint64_t now_ms)
{
    if (inf->processing
        || inf->phase == SHARED_IDLE
        || inf->phase == SHARED_STOPPED)
    {
        return;
    }

    inf->processing = true;
    inf->now_ms = now_ms;
    inf->again = false;

    if (inf->phase == SHARED_RUNNING) {
        kube_reflector_process(inf->reflector, now_ms);
        shared_errors(inf);
    }

    if (inf->phase != SHARED_STOPPED) {
        shared_drain(inf);
    }

    inf->again |= kube_processor_run(inf->processor, inf->store, now_ms);

    if (inf->phase == SHARED_DRAINING
        && kube_delta_fifo_depth(inf->fifo) == 0
        && kube_processor_is_idle(inf->processor))
    {
        kube_shared_informer_stop(inf, false, now_ms);
    }

    inf->processing = false;
}


uint64_t
kube_shared_informer_deadline(const kube_shared_informer_t *inf)
{
    uint64_t  deadline_ms, reflector_ms;

    if (inf->phase == SHARED_IDLE || inf->phase == SHARED_STOPPED) {
        return KUBE_NEVER;
    }

    if (inf->again) {
        return 0;
    }

    deadline_ms = kube_processor_deadline(inf->processor);

    if (inf->retry_ms < deadline_ms) {
        deadline_ms = inf->retry_ms;
    }

    if (inf->phase == SHARED_RUNNING) {
        reflector_ms = kube_reflector_deadline(inf->reflector);

        if (reflector_ms < deadline_ms) {
            deadline_ms = reflector_ms;
        }
    }

    return deadline_ms;
}


bool
kube_shared_informer_is_stopped(const kube_shared_informer_t *inf)
{
    return inf->phase == SHARED_STOPPED;
}


bool
kube_shared_informer_has_synced(const kube_shared_informer_t *inf)
{
    return inf->synced;
}


kube_str_t
kube_shared_informer_rv(const kube_shared_informer_t *inf)
{
    return kube_rv_str(&inf->rv);
}


const char *
kube_shared_informer_error(const kube_shared_informer_t *inf)
{
    return inf->error;
}


uint64_t
kube_shared_informer_refused(const kube_shared_informer_t *inf)
{
    return inf->refused;
}


const char *
kube_shared_informer_name(const kube_shared_informer_t *inf)
{
    return kube_reflector_label(inf->reflector);
}


kube_store_t *
kube_shared_informer_store(kube_shared_informer_t *inf)
{
    return inf->store;
}


kube_rc_t
kube_shared_informer_add_index(kube_shared_informer_t *inf, kube_str_t name,
    kube_index_pt index, void *ctx)
{
    return (inf->phase == SHARED_STOPPED)
           ? KUBE_INVALID
           : kube_store_add_index(inf->store, name, index, ctx);
}


kube_rc_t
kube_shared_informer_add_handler(kube_shared_informer_t *inf,
    const kube_handler_t *handler, kube_registration_t *registration,
    uint64_t now_ms)
{
    kube_rc_t  rc;

    if (inf->phase == SHARED_STOPPED || inf->phase == SHARED_DRAINING) {
        return KUBE_INVALID;
    }

    rc = kube_processor_add(inf->processor, handler, inf->store, registration,
                            now_ms);
    inf->again |= (rc == KUBE_OK);

    return rc;
}


void
kube_shared_informer_remove_handler(kube_shared_informer_t *inf,
    kube_registration_t registration)
{
    kube_processor_remove(inf->processor, registration);
}


kube_rc_t
kube_shared_informer_shut_down_handler(kube_shared_informer_t *inf,
    kube_registration_t registration)
{
    return kube_processor_shut_down(inf->processor, registration);
}


bool
kube_shared_informer_handler_has_synced(const kube_shared_informer_t *inf,
    kube_registration_t registration)
{
    return kube_processor_has_synced(inf->processor, registration);
}


const kube_processor_t *
kube_shared_informer_processor(const kube_shared_informer_t *inf)
{
    return inf->processor;
}

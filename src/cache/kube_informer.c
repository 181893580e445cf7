/*
 * kube_informer - the shared informer of one API server: its scopes, the way
 * of a delta from the FIFO to the zone, and the published versions.
 *
 * It looks at no bytes and no object.  Called by its host (the nginx module,
 * the command line tool, tests), one thread.
 *
 * The promise that everything else here serves: a version is published only
 * when every object up to it is readable, or refused: named or counted.  See
 * informer_version().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_informer_impl.h"
#include "kube_zone_cause.h"
#include "kube_zone_counters.h"
#include "kube_zone_damping.h"
#include "kube_zone_guard.h"
#include "kube_zone_scope.h"
#include "kube_zone_scrub.h"
#include "kube_zone_writer.h"


/* Scope records: a few hundred bytes and an error message each. */
#define KUBE_INFORMER_ARENA_BYTES  (256u << 10)


/* The zone forgets what it knew of the scope, and a list begins. */
static void
informer_scope_restart(kube_informer_t *inf, unsigned scope)
{
    informer_scope_t  *s;

    s = &inf->scopes[scope];

    s->rv.len = 0;
    s->floor.len = 0;
    s->count = 0;
    s->digest = (kube_digest_t) { 0, 0 };
    s->unnamed = 0;
    s->interrupted = false;
    s->behind = false;
    s->synced = false;
    s->published = false;
    s->announce = false;
    s->repeated.len = 0;
    s->passed_over = false;
    s->contradicted = false;

    kube_zone_scope_clear(inf->writer, scope);

    if (kube_informer_publish_scope(inf, scope) != KUBE_OK) {
        inf->deadline_ms = inf->now_ms + KUBE_INFORMER_RETRY_MS;
    }

    kube_reflector_start(s->reflector, &s->rv, &s->floor, inf->now_ms);
}


static kube_rc_t
informer_stores(kube_informer_t *inf)
{
    kube_seed_t            seed;
    kube_indexer_conf_t    conf;
    kube_publisher_conf_t  publisher;

    inf->server = kube_zalloc(&inf->alloc, inf->conf.server.len + 1);
    if (inf->server == NULL) {
        return KUBE_NOMEM;
    }

    memcpy(inf->server, inf->conf.server.data, inf->conf.server.len);
    inf->conf.server.data = inf->server;

    seed.k0 = inf->conf.reflector.seed;
    seed.k1 = inf->conf.pid;

    inf->trouble = kube_trouble_create(&inf->alloc, inf->conf.zone,
                                       inf->conf.sink, inf->conf.server);
    if (inf->trouble == NULL) {
        return KUBE_NOMEM;
    }

    inf->fifo = kube_delta_fifo_create(&inf->alloc, seed, KUBE_FIFO_KEYS_MAX,
                                       KUBE_FIFO_BYTES_MAX);
    if (inf->fifo == NULL) {
        return KUBE_NOMEM;
    }

    inf->writer = kube_zone_writer_create(&inf->alloc, inf->conf.zone);
    if (inf->writer == NULL) {
        return KUBE_NOMEM;
    }

    kube_zone_writer_hand(inf->writer, &inf->hand);

    publisher = (kube_publisher_conf_t) {
        .zone = inf->conf.zone,
        .writer = inf->writer,
        .hand = &inf->hand,
        .sink = inf->conf.sink,
        .seed = seed,
        .change = inf->conf.change,
        .change_ctx = inf->conf.change_ctx,
        .static_keys = inf->conf.static_keys,
        .static_keys_n = inf->conf.static_keys_n,
        .zone_share = inf->conf.zone_share,
        .object_max = inf->conf.object_bytes_max,
        .max_outdated_ms = inf->conf.max_outdated_ms
    };

    inf->publisher = kube_publisher_create(&inf->alloc, &publisher);
    if (inf->publisher == NULL) {
        return KUBE_NOMEM;
    }

    conf = (kube_indexer_conf_t) {
        .zone = inf->conf.zone,
        .writer = inf->writer,
        .on_change = kube_publisher_on_change,
        .on_change_ctx = inf->publisher
    };

    inf->indexer = kube_indexer_create(&inf->alloc, &conf);

    return (inf->indexer != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static kube_rc_t
informer_scopes(kube_informer_t *inf)
{
    unsigned   scope;
    kube_rc_t  rc;

    inf->scopes = kube_zalloc(&inf->alloc,
                              inf->scopes_n * sizeof(informer_scope_t));
    if (inf->scopes == NULL) {
        return KUBE_NOMEM;
    }

    for (scope = 0; scope < inf->scopes_n; scope++) {

        rc = kube_informer_scope_init(inf, scope);

        if (rc != KUBE_OK) {
            return rc;
        }
    }

    return KUBE_OK;
}


kube_informer_t *
kube_informer_create(const kube_alloc_t *alloc,
    const kube_informer_conf_t *conf)
{
    kube_informer_t  *inf;

    if (conf->namespaces_n > KUBE_NAMESPACES_MAX || conf->server.len == 0) {
        return NULL;
    }

    inf = kube_zalloc(alloc, sizeof(kube_informer_t));
    if (inf == NULL) {
        return NULL;
    }

    inf->alloc = *alloc;
    inf->conf = *conf;
    inf->slices = (conf->endpoints == KUBE_ENDPOINTS_ENDPOINTS)
                  ? KUBE_RESOURCE_ENDPOINTS : KUBE_RESOURCE_ENDPOINTSLICES;
    inf->state_slices = inf->slices;
    inf->scopes_n = KUBE_SCOPES_A_NAMESPACE
                    * (unsigned) (conf->namespaces_n ? conf->namespaces_n : 1);

    kube_list_turn_init(&inf->turn);
    kube_log_init(&inf->log, conf->sink);
    kube_arena_init(&inf->arena, &inf->alloc, KUBE_INFORMER_ARENA_BYTES);

    if (informer_stores(inf) != KUBE_OK || informer_scopes(inf) != KUBE_OK) {
        kube_informer_destroy(inf);
        return NULL;
    }

    return inf;
}


void
kube_informer_stop(kube_informer_t *inf)
{
    unsigned  scope;

    if (inf->phase == INFORMER_STOPPED) {
        return;
    }

    for (scope = 0; inf->scopes != NULL && scope < inf->scopes_n; scope++) {

        if (inf->scopes[scope].reflector == NULL
            || inf->phase == INFORMER_WAITING)
        {
            continue;
        }

        kube_reflector_stop(inf->scopes[scope].reflector, inf->now_ms);
    }

    if (inf->writer != NULL && kube_zone_writer_held(inf->writer)) {
        kube_zone_writer_release(inf->writer);
        kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_NOTICE,
                       KUBE_EV_STOPPED, "no longer writer of the zone");
    }

    inf->phase = INFORMER_STOPPED;
    inf->deadline_ms = KUBE_NEVER;
}


void
kube_informer_destroy(kube_informer_t *inf)
{
    unsigned      scope;
    kube_alloc_t  alloc;

    if (inf == NULL) {
        return;
    }

    kube_informer_stop(inf);

    alloc = inf->alloc;

    for (scope = 0; inf->scopes != NULL && scope < inf->scopes_n; scope++) {
        kube_reflector_destroy(inf->scopes[scope].reflector);
    }

    kube_indexer_destroy(inf->indexer);
    kube_publisher_destroy(inf->publisher);

    if (inf->writer != NULL) {
        kube_zone_writer_destroy(inf->writer);
    }

    kube_delta_fifo_destroy(inf->fifo);
    kube_trouble_destroy(inf->trouble);
    kube_arena_done(&inf->arena);

    kube_free(&alloc, inf->scopes);
    kube_free(&alloc, inf->server);
    kube_free(&alloc, inf);
}


/* What is held is of another past of the server. */
static void
informer_relist_plainly(kube_informer_t *inf, unsigned scope)
{
    kube_reflector_t  *reflector;

    reflector = inf->scopes[scope].reflector;

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_NOTICE, KUBE_EV_LIST,
                   "objects of %s are newer here than the API server has "
                   "them: a plain list replaces them",
                   kube_reflector_label(reflector));
    kube_reflector_relist_plainly(reflector, inf->now_ms);
}


/*
 * A WatchList of which something was passed over shows no version.  A plain
 * list takes its place.
 */
static void
informer_list_end(kube_informer_t *inf, unsigned scope)
{
    informer_scope_t  *s;

    s = &inf->scopes[scope];

    if (kube_indexer_passed_over(inf->indexer, scope)) {
        informer_relist_plainly(inf, scope);
        return;
    }

    s->listing = false;
    s->announce = true;
}


/*
 * What a delta takes away leaves no version behind, and until the scope's next
 * one is published a successor would have to list from where it is.
 */
static void
informer_floor(kube_informer_t *inf, const kube_delta_t *delta)
{
    kube_rc_t          rc;
    kube_rv_t          rv;
    informer_scope_t  *s;

    if (delta->kind != KUBE_DELTA_DELETED && delta->kind != KUBE_DELTA_SYNC) {
        return;
    }

    s = &inf->scopes[delta->scope];

    if (delta->kind == KUBE_DELTA_SYNC
        || kube_rv_parse(delta->rv, &rv) != KUBE_OK)
    {
        rv.len = 0;
    }

    if (rv.len != 0 && kube_rv_cmp(&rv, &s->floor) <= 0) {
        return;
    }

    /* what follows in the queue is not newer than this */
    rv = *kube_reflector_taken(s->reflector);

    if (kube_rv_cmp(&rv, &s->floor) <= 0) {
        return;
    }

    s->floor = rv;
    rc = kube_zone_scope_floor(inf->writer, delta->scope, kube_rv_str(&rv));

    if (rc != KUBE_OK) {
        kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_WARN,
                       KUBE_EV_ZONE_FULL,
                       "the zone cannot show what a scope has come to: %s",
                       kube_rc_text(rc));
    }
}


/* True if the delta is not newer than what is held; *held: something is. */
static bool
informer_is_old(const kube_informer_t *inf, const kube_delta_t *delta,
    const kube_rv_t *rv, bool *held)
{
    uint32_t          entry;
    kube_rv_t         ours;
    kube_zone_item_t  item;

    entry = kube_zone_writer_find(inf->writer, delta->resource, delta->ns,
                                  delta->name);
    *held = (entry != 0);

    return entry != 0
           && kube_zone_item_entry(inf->writer, entry, &item) == KUBE_OK
           && kube_rv_parse(item.id.meta.rv, &ours) == KUBE_OK
           && kube_rv_cmp(rv, &ours) <= 0;
}


/*
 * A watch that is resumed behind the floor tells again of what was deleted, or
 * made anew, since.  Such an event waits for a list, and so does all that comes
 * after it, for Services to be those of one moment.
 */
static bool
informer_repeats(kube_informer_t *inf, const kube_delta_t *delta)
{
    bool               old, held;
    kube_rv_t          rv;
    informer_scope_t  *s;

    s = &inf->scopes[delta->scope];

    if (s->passed_over) {
        return delta->kind != KUBE_DELTA_LIST_BEGIN;
    }

    /* what a list beside the watch brings is not older than the floor */

    if (s->repeated.len == 0
        || delta->read_ms == KUBE_NEVER
        || kube_rv_parse(delta->rv, &rv) != KUBE_OK
        || kube_rv_cmp(&rv, &s->repeated) > 0)
    {
        return false;
    }

    old = informer_is_old(inf, delta, &rv, &held);

    /* what is newer than all deletions was none */

    if ((delta->kind != KUBE_DELTA_UPDATED
         || held
         || kube_rv_cmp(&rv, &s->deleted) > 0)
        && (delta->kind != KUBE_DELTA_DELETED || !old))
    {
        return false;
    }

    s->passed_over = true;
    kube_reflector_relist_needed(s->reflector, inf->now_ms);

    return true;
}


/*
 * A key has the place of its first change in the queue, and the newest state:
 * so what comes after an event that waits for a list may stand before it, and
 * is to wait, too.  Else a Service would be shown with what has left it, and
 * without what came in its place.
 */
static void
informer_look_ahead(kube_informer_t *inf)
{
    bool          repeats, listed[KUBE_SCOPES_MAX];
    unsigned      scope;
    const void   *at;
    kube_delta_t  delta;

    repeats = false;

    for (scope = 0; scope < KUBE_SCOPES_MAX; scope++) {
        listed[scope] = (scope >= inf->scopes_n
                         || inf->scopes[scope].repeated.len == 0
                         || inf->scopes[scope].passed_over);
        repeats |= !listed[scope];
    }

    at = NULL;

    while (repeats && kube_delta_fifo_next(inf->fifo, &at, &delta) == KUBE_OK) {

        if (delta.kind == KUBE_DELTA_LIST_BEGIN) {
            listed[delta.scope] = true;
        }

        if (!listed[delta.scope]) {
            listed[delta.scope] = informer_repeats(inf, &delta);
        }
    }
}


/*
 * Versions never go back within a watch, so what an event is older than was
 * never a version of this server: a list had shown one that was to come.  Its
 * object would stay as it is until the server has come there.  What a resumed
 * watch repeats is older for a good reason.
 */
static void
informer_contradict(kube_informer_t *inf, const kube_delta_t *delta)
{
    kube_rv_t          rv;
    informer_scope_t  *s;

    s = &inf->scopes[delta->scope];

    if (s->listing
        || s->contradicted
        || (delta->kind != KUBE_DELTA_UPDATED
            && delta->kind != KUBE_DELTA_REFUSED
            && delta->kind != KUBE_DELTA_DELETED)
        || !kube_indexer_passed_over(inf->indexer, delta->scope)
        || kube_rv_parse(delta->rv, &rv) != KUBE_OK
        || kube_rv_cmp(&rv, &s->repeated) <= 0)
    {
        return;
    }

    s->contradicted = true;
    informer_relist_plainly(inf, delta->scope);
}


/* Applies deltas, oldest first.  False: memory was short, try again later. */
static bool
informer_drain(kube_informer_t *inf)
{
    unsigned      n;
    kube_rc_t     rc;
    kube_hand_t   what;
    kube_delta_t  delta;

    what = (kube_hand_t) { .now_ms = inf->now_ms };
    informer_look_ahead(inf);

    for (n = 0; n < KUBE_INFORMER_DELTAS; n++) {

        if (kube_delta_fifo_peek(inf->fifo, &delta) != KUBE_OK) {
            return true;
        }

        what.scope = delta.scope;
        what.resource = delta.resource;
        what.ns = &delta.ns;
        what.name = &delta.name;
        what.record = delta.record;

        if (informer_repeats(inf, &delta)) {
            kube_delta_fifo_drop(inf->fifo);
            continue;
        }

        informer_floor(inf, &delta);

        kube_hand_take(&inf->hand, &what, KUBE_STAGE_APPLY);
        rc = kube_indexer_apply(inf->indexer, &delta, inf->now_ms);
        kube_hand_leave(&inf->hand);

        if (rc == KUBE_NOMEM) {
            return false;
        }

        if (rc != KUBE_OK) {
            kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_ERROR,
                           KUBE_EV_INTERNAL, "a change was not applied: %s",
                           kube_rc_text(rc));
        }

        if (delta.kind == KUBE_DELTA_LIST_BEGIN) {
            inf->scopes[delta.scope].listing = true;
            inf->scopes[delta.scope].repeated.len = 0;
            inf->scopes[delta.scope].passed_over = false;
            inf->scopes[delta.scope].contradicted = false;
        }

        if (delta.kind == KUBE_DELTA_SYNC) {
            informer_list_end(inf, delta.scope);
        }

        informer_contradict(inf, &delta);

        if (delta.read_ms != KUBE_NEVER && delta.read_ms <= inf->now_ms) {
            kube_zone_histogram_observe(inf->conf.zone,
                                        KUBE_HISTOGRAM_PROCESSING_LATENCY,
                                        delta.resource,
                                        (inf->now_ms - delta.read_ms) * 1000);
        }

        kube_delta_fifo_drop(inf->fifo);
    }

    inf->again = true;

    return true;
}


static void
informer_announce(kube_informer_t *inf, unsigned scope)
{
    informer_scope_t  *s;

    s = &inf->scopes[scope];

    if (!s->announce || !s->published) {
        return;
    }

    s->announce = false;

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_NOTICE, KUBE_EV_SYNCED,
                   "%s%s%.*s synced at %.*s, %llu objects",
                   kube_resource_text(s->resource),
                   s->ns.len ? " in " : "",
                   (int) s->ns.len, s->ns.len ? s->ns.data : "",
                   (int) s->rv.len, s->rv.data,
                   (unsigned long long) s->count);

    if (inf->conf.synced != NULL) {
        inf->conf.synced(inf->conf.change_ctx, scope);
    }
}


static bool
informer_scope_is(const informer_scope_t *s, const kube_rv_t *rv,
    const kube_scope_sum_t *sum)
{
    return s->published
           && s->synced
           && !s->behind
           && kube_rv_cmp(&s->rv, rv) == 0
           && s->count == sum->count
           && s->unnamed == sum->refused_unnamed
           && s->interrupted == sum->interrupted
           && s->digest.lo == sum->digest.lo
           && s->digest.hi == sum->digest.hi;
}


/*
 * Publishes the scope's version if everything up to it is readable now:
 * nothing of the scope is queued, none of it waits to be published and no list
 * is half done.  What was refused is named or counted.
 */
static void
informer_version(kube_informer_t *inf, unsigned scope)
{
    const kube_rv_t   *rv;
    kube_scope_sum_t   sum;
    informer_scope_t  *s;

    s = &inf->scopes[scope];
    rv = kube_reflector_rv(s->reflector);

    kube_publisher_sum(inf->publisher, scope, &sum);
    inf->lacks_room |= sum.lacks_room;

    /* whether room has returned is asked now and then */

    if (sum.refused != 0 || sum.refused_unnamed != 0) {
        inf->deadline_ms = inf->now_ms + KUBE_INFORMER_RETRY_MS;
    }

    if (rv->len == 0
        || s->listing
        || s->passed_over
        || s->contradicted
        || kube_delta_fifo_depth_scope(inf->fifo, scope) != 0
        || kube_publisher_pending(inf->publisher, scope))
    {
        return;
    }

    /* all that was told again has come */

    if (kube_rv_cmp(rv, &s->repeated) >= 0) {
        s->repeated.len = 0;
    }

    kube_reflector_current(s->reflector);

    if (!informer_scope_is(s, rv, &sum)) {

        s->rv = *rv;
        s->synced = true;
        s->count = sum.count;
        s->digest = sum.digest;
        s->unnamed = sum.refused_unnamed;
        s->interrupted = sum.interrupted;
        s->behind = false;

        if (kube_informer_publish_scope(inf, scope) != KUBE_OK) {
            inf->deadline_ms = inf->now_ms + KUBE_INFORMER_RETRY_MS;
        }
    }

    informer_announce(inf, scope);
}


static void
informer_rollback(kube_informer_t *inf, unsigned scope)
{
    informer_scope_t  *s;

    s = &inf->scopes[scope];

    if (!kube_reflector_rollback(s->reflector)) {
        return;
    }

    s->floor = *kube_reflector_taken(s->reflector);
    kube_zone_writer_epoch(inf->writer);

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_NOTICE, KUBE_EV_ROLLBACK,
                   "the server went back to an earlier state of %s: a new "
                   "epoch begins",
                   kube_resource_text(s->resource));
}


/* Shows the last error of a scope, and what it suffers from. */
static void
informer_error(kube_informer_t *inf, unsigned scope)
{
    kube_rc_t          rc;
    kube_str_t         reason, message;
    kube_reflector_t  *reflector;

    reflector = inf->scopes[scope].reflector;

    kube_trouble_scope(inf->trouble, scope, kube_reflector_label(reflector),
                       kube_reflector_suffering(reflector), inf->now_ms);

    if (!kube_reflector_error(reflector, &reason, &message)) {
        return;
    }

    rc = kube_zone_scope_error(inf->writer, scope, reason, message,
                               inf->now_unix_ms);

    if (rc != KUBE_OK) {
        kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_WARN,
                       KUBE_EV_ZONE_FULL, "the zone cannot show an error: %s",
                       kube_rc_text(rc));
    }
}


/* What killed the process is tried once more when its time is over. */
static void
informer_trial(kube_informer_t *inf)
{
    unsigned                 scope;
    kube_trial_t             trial;
    const informer_scope_t  *s;

    if (!kube_zone_poison_trial(inf->conf.zone, inf->now_ms, &trial)) {
        return;
    }

    for (scope = 0; scope < inf->scopes_n; scope++) {
        s = &inf->scopes[scope];

        if (kube_trial_concerns(&trial, scope, s->resource, s->ns)) {
            kube_reflector_relist(s->reflector, KUBE_RELIST_OTHER, false,
                                  inf->now_ms);
        }
    }
}


static bool
informer_is_synced(const informer_scope_t *s)
{
    return s->synced && s->published;
}


bool
kube_informer_synced(const kube_informer_t *inf)
{
    unsigned  scope;

    if (inf->phase != INFORMER_RUNNING) {
        return false;
    }

    for (scope = 0; scope < inf->scopes_n; scope++) {
        if (!informer_is_synced(&inf->scopes[scope])) {
            return false;
        }
    }

    return true;
}


bool
kube_informer_settled(const kube_informer_t *inf, bool *unconfirmed)
{
    bool              lacking[KUBE_RESOURCES_ROUTED];
    bool              beside[KUBE_RESOURCES_ROUTED];
    unsigned          scope;
    kube_resource_t   resource;
    kube_scope_sum_t  sum;

    *unconfirmed = false;

    if (inf->phase != INFORMER_RUNNING) {
        return false;
    }

    memset(lacking, 0, sizeof(lacking));
    memset(beside, 0, sizeof(beside));

    for (scope = 0; scope < inf->scopes_n; scope++) {
        resource = inf->scopes[scope].resource;

        if (informer_is_synced(&inf->scopes[scope])) {
            beside[resource] = true;
            continue;
        }

        if (!kube_zone_scope_forbidden(inf->conf.zone, scope)) {
            return false;
        }

        lacking[resource] = true;
        kube_publisher_sum(inf->publisher, scope, &sum);

        if (sum.count != 0) {
            *unconfirmed = true;
        }
    }

    for (resource = 0; resource < KUBE_RESOURCES_ROUTED; resource++) {
        if (lacking[resource] && !beside[resource]) {
            return false;
        }
    }

    return true;
}


static void
informer_room(kube_informer_t *inf)
{
    char         text[KUBE_KEY_LEN_MAX + 128];
    const char  *lacking;

    if (!inf->lacks_room) {
        kube_trouble_zone(inf->trouble, KUBE_CAUSE_ZONE_FULL, NULL,
                          inf->now_ms);
        return;
    }

    lacking = kube_publisher_lacking(inf->publisher);

    (void) snprintf(text, sizeof(text), "%s not held, for the zone has no "
                    "room", lacking[0] != '\0' ? lacking : "objects");

    kube_trouble_zone(inf->trouble, KUBE_CAUSE_ZONE_FULL, text, inf->now_ms);
}


/* Shows what waits: of all, and of each scope. */
static void
informer_queue(kube_informer_t *inf)
{
    unsigned      scope;
    uint64_t      since_ms;
    kube_delta_t  delta;

    since_ms = 0;

    if (kube_delta_fifo_peek(inf->fifo, &delta) == KUBE_OK
        && delta.read_ms != KUBE_NEVER)
    {
        since_ms = delta.read_ms;
    }

    kube_zone_set_queue(inf->conf.zone, kube_delta_fifo_depth(inf->fifo),
                        since_ms);

    for (scope = 0; scope < inf->scopes_n; scope++) {
        kube_zone_scope_set(inf->conf.zone, scope, KUBE_COUNTER_GAUGE_QUEUED,
                            kube_delta_fifo_depth_scope(inf->fifo, scope));
    }
}


/*
 * Decides for Endpoints where the server grants a watch of Services, and so is
 * one, and then has no EndpointSlices (before Kubernetes 1.21).  A list of
 * either ends that.
 */
static void
informer_endpoints(kube_informer_t *inf)
{
    bool                     missing, done;
    unsigned                 scope;
    uint64_t                 services_ms;
    const informer_scope_t  *s;

    if (inf->conf.endpoints != KUBE_ENDPOINTS_AUTO) {
        return;
    }

    missing = (inf->slices == KUBE_RESOURCE_ENDPOINTS);
    done = missing;

    for (scope = 1; scope < inf->scopes_n; scope += KUBE_SCOPES_A_NAMESPACE) {
        s = &inf->scopes[scope];
        done = (done && s->resource == inf->slices);

        if (s->synced) {
            return;
        }

        services_ms = kube_zone_scope_counter(inf->conf.zone, scope - 1,
                                              KUBE_COUNTER_GAUGE_WATCH_OPEN);
        missing |= kube_reflector_missing(s->reflector, services_ms);
    }

    if (!missing || done) {
        return;
    }

    if (kube_informer_use_endpoints(inf, informer_scope_restart) != KUBE_OK) {
        inf->deadline_ms = inf->now_ms + KUBE_INFORMER_RETRY_MS;
        return;
    }

    inf->again = true;

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_NOTICE, KUBE_EV_LIST,
                   "the API server has Services, but no EndpointSlices: "
                   "Endpoints are followed instead");
}


/* Asks for what was refused, where room has returned for it. */
static void
informer_fill(kube_informer_t *inf, unsigned scope)
{
    kube_room_ask_t    ask;
    kube_reflector_t  *reflector;

    if (inf->now_ms < inf->fill_ms
        || !kube_publisher_room_returned(inf->publisher, scope, &ask))
    {
        return;
    }

    reflector = inf->scopes[scope].reflector;

    if (ask.whole) {
        kube_reflector_relist(reflector, KUBE_RELIST_ROOM, ask.urgent,
                              inf->now_ms);

    } else {
        kube_reflector_fill(reflector, ask.urgent, inf->now_ms);
    }
}


static void
informer_publish(kube_informer_t *inf)
{
    bool      loading;
    unsigned  n;

    loading = (inf->loading != 0);

    n = kube_publisher_run(inf->publisher, KUBE_INFORMER_SERVICES,
                           inf->now_ms, inf->now_unix_ms);

    if (n >= KUBE_INFORMER_SERVICES) {
        inf->again = true;
    }

    /* no more turns than it has objects, whatever is queued meanwhile */

    if (n < KUBE_INFORMER_SERVICES || inf->loading < n) {
        inf->loading = 0;

    } else {
        inf->loading -= n;
    }

    /* a part, as a predecessor's that no file has the rest of, stays one */

    if (loading && inf->loading == 0 && !inf->lacks_state) {
        kube_zone_set_state_loading(inf->conf.zone, false);
    }
}


/* No first list is to come any more, but where all lists are forbidden. */
static bool
informer_is_listed(const kube_informer_t *inf)
{
    unsigned  scope;

    for (scope = 0; scope < inf->scopes_n; scope++) {
        if (!informer_is_synced(&inf->scopes[scope])
            && !kube_zone_scope_forbidden(inf->conf.zone, scope))
        {
            return false;
        }
    }

    return true;
}


/* Does what can be done now; inf->again says that more is left. */
static void
informer_work(kube_informer_t *inf)
{
    unsigned  scope;

    inf->again = false;
    inf->lacks_room = false;
    inf->deadline_ms = KUBE_NEVER;

    for (scope = 0; scope < inf->scopes_n; scope++) {
        kube_reflector_process(inf->scopes[scope].reflector, inf->now_ms);
        informer_error(inf, scope);
    }

    if (!informer_drain(inf)) {
        inf->deadline_ms = inf->now_ms + KUBE_INFORMER_RETRY_MS;
    }

    informer_publish(inf);

    kube_publisher_look_for_room(inf->publisher);

    for (scope = 0; scope < inf->scopes_n; scope++) {
        informer_rollback(inf, scope);
        informer_version(inf, scope);

        informer_fill(inf, scope);
    }

    informer_trial(inf);
    informer_endpoints(inf);

    if (!inf->swept && kube_informer_synced(inf)) {
        inf->swept = true;
        inf->again = true;
        kube_indexer_sweep(inf->indexer, inf->now_ms);
    }

    if (!inf->listed && informer_is_listed(inf)) {
        inf->listed = true;
        kube_zone_ready_add(inf->conf.zone, KUBE_READY_LISTED);
    }

    informer_room(inf);
    kube_trouble_process(inf->trouble, inf->now_ms);
    informer_queue(inf);
}


/* True if the host has to start anew, since the zone was written to. */
static bool
informer_is_disturbed(kube_informer_t *inf)
{
    uint64_t  wait_ms;

    if (inf->now_ms < inf->check_ms) {
        return false;
    }

    inf->check_ms = inf->now_ms + KUBE_INFORMER_CHECK_MS;
    kube_zone_writer_scrub(inf->writer, KUBE_ZONE_SCRUB);

    if (!kube_zone_writer_is_disturbed(inf->writer)
        || !kube_zone_disturbed(inf->conf.zone, inf->now_ms, &wait_ms))
    {
        return false;
    }

    kube_zone_writer_distrust(inf->writer);
    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_ERROR, KUBE_EV_TAKEOVER,
                   "another process has changed the zone: it is taken over "
                   "anew, and everything is listed; not again within %llu s",
                   (unsigned long long) wait_ms / 1000);
    return true;
}


kube_rc_t
kube_informer_process(kube_informer_t *inf, uint64_t now_ms,
    int64_t now_unix_ms)
{
    kube_rc_t  rc;

    inf->now_ms = now_ms;
    inf->now_unix_ms = now_unix_ms;
    inf->hand.now_ms = now_ms;

    if (inf->phase == INFORMER_STOPPED) {
        return KUBE_OK;
    }

    if (inf->phase != INFORMER_RUNNING) {

        rc = kube_informer_take_over(inf);

        if (rc != KUBE_OK) {
            return rc;
        }
    }

    if (informer_is_disturbed(inf)) {
        return KUBE_CHANGED;
    }

    informer_work(inf);

    return KUBE_OK;
}


uint64_t
kube_informer_deadline(const kube_informer_t *inf)
{
    unsigned  scope;
    uint64_t  deadline_ms, reflector_ms;

    deadline_ms = inf->deadline_ms;

    if (inf->phase != INFORMER_RUNNING) {
        return deadline_ms;
    }

    if (inf->again) {
        return 0;
    }

    if (inf->check_ms < deadline_ms) {
        deadline_ms = inf->check_ms;
    }

    if (kube_trouble_deadline(inf->trouble) < deadline_ms) {
        deadline_ms = kube_trouble_deadline(inf->trouble);
    }

    for (scope = 0; scope < inf->scopes_n; scope++) {
        reflector_ms = kube_reflector_deadline(inf->scopes[scope].reflector);

        if (reflector_ms < deadline_ms) {
            deadline_ms = reflector_ms;
        }
    }

    return deadline_ms;
}


void
kube_informer_last_words(kube_informer_t *inf, int signal_number)
{
    kube_zone_poison_say(inf->conf.zone, &inf->hand, signal_number);
}


kube_zone_writer_t *
kube_informer_writer(kube_informer_t *inf)
{
    return (inf->phase == INFORMER_RUNNING) ? inf->writer : NULL;
}


bool
kube_informer_wants_state(kube_informer_t *inf)
{
    bool  wants;

    wants = (inf->phase == INFORMER_RUNNING && inf->wants_state);
    inf->wants_state = false;

    return wants;
}


bool
kube_informer_loading(const kube_informer_t *inf)
{
    return (inf->phase == INFORMER_RUNNING && inf->loading != 0);
}


/* The scope that an object of a state file is for; scopes_n: none. */
static unsigned
informer_scope_of(const kube_informer_t *inf, const kube_record_id_t *id)
{
    unsigned                 scope;
    kube_resource_t          resource;
    const informer_scope_t  *s;

    resource = (id->resource == inf->state_slices) ? inf->slices
                                                   : id->resource;

    for (scope = 0; scope < inf->scopes_n; scope++) {
        s = &inf->scopes[scope];

        if (s->resource == resource
            && (s->ns.len == 0 || kube_str_eq(s->ns, id->meta.ns)))
        {
            break;
        }
    }

    return scope;
}


kube_rc_t
kube_informer_put_state(void *informer, const kube_record_t *record)
{
    kube_rc_t         rc;
    kube_rv_t         rv;
    kube_hand_t       what;
    kube_informer_t  *inf = informer;
    kube_record_id_t  id;

    inf->again = true;

    if (inf->loading++ == 0) {
        kube_zone_set_state_loading(inf->conf.zone, true);
    }

    if (kube_record_id(record, record->size, &id) != KUBE_OK) {
        return KUBE_OK;
    }

    what = (kube_hand_t) {
        .now_ms = inf->now_ms,
        .scope = informer_scope_of(inf, &id),
        .resource = id.resource,
        .blame = KUBE_BLAME_OBJECT,
        .ns = &id.meta.ns,
        .name = &id.meta.name,
        .uid = &id.meta.uid
    };

    if (what.scope == inf->scopes_n) {
        return KUBE_OK;
    }

    if (kube_zone_poison_refuses(inf->conf.zone, &what)) {
        kube_zone_scope_add(inf->conf.zone, what.scope,
                            KUBE_COUNTER_SKIPPED_CRASHED, 1);
        return KUBE_OK;
    }

    kube_hand_take(&inf->hand, &what, KUBE_STAGE_STATE);
    rc = kube_indexer_put_state(inf->indexer, record, what.scope,
                                inf->now_ms);
    kube_hand_leave(&inf->hand);

    inf->lacks_state |= (rc != KUBE_OK);

    if (rc == KUBE_OK && kube_rv_parse(id.meta.rv, &rv) == KUBE_OK) {
        kube_reflector_not_older(inf->scopes[what.scope].reflector, &rv);
    }

    return rc;
}

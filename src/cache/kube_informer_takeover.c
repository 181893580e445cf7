/*
 * kube_informer_takeover - how an informer becomes the writer of a zone and
 * goes on where its predecessor stopped; and what it leaves to the next, the
 * records of its scopes.
 *
 * It starts reflectors but does no work of theirs (kube_informer.c does, and
 * calls this: until it is RUNNING, and to publish a scope).
 *
 * A scope is told by its hash, not by its number: a namespace added in the
 * middle of the configuration moves the others without a list.  A scope whose
 * version cannot be trusted is shown without one before anything is changed.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_informer_impl.h"
#include "kube_zone_counters.h"
#include "kube_zone_damping.h"
#include "kube_zone_guard.h"
#include "kube_zone_scope.h"


/* A predecessor that has not left by then is told of. */
#define TAKEOVER_PATIENCE_MS  5000

/* What the predecessor left under the number of a scope. */
typedef struct {
    bool           used;
    bool           synced;
    kube_shape_t   shape;
    char           ns[KUBE_NAMESPACE_LEN_MAX + 1];
    size_t         ns_len;
    uint64_t       hash;
    kube_rv_t      rv;
    kube_rv_t      floor;
    uint64_t       count;
    kube_digest_t  digest;
    uint64_t       unnamed;
    bool           interrupted;
    uint64_t       stores;
    uint64_t       contact_ms;
} takeover_scope_t;


kube_rc_t
kube_informer_publish_scope(kube_informer_t *inf, unsigned scope)
{
    kube_rc_t           rc;
    informer_scope_t   *s;
    kube_scope_info_t   info;

    s = &inf->scopes[scope];

    memset(&info, 0, sizeof(kube_scope_info_t));

    info.resource = s->resource;
    info.ns = s->ns;
    info.scope_hash = s->hash;
    info.synced = s->synced;
    info.rv = kube_rv_str(&s->rv);
    info.floor = kube_rv_str(&s->floor);
    info.count = s->count;
    info.digest = s->digest;
    info.refused_unnamed = s->unnamed;
    info.interrupted = s->interrupted;
    info.behind = s->behind;

    rc = kube_zone_scope_publish(inf->writer, scope, &info);
    s->published = (rc == KUBE_OK);

    return rc;
}


/* Says what the predecessor died of. */
static void
takeover_blame(kube_informer_t *inf)
{
    const kube_death_t  *death;

    death = &inf->takeover.death;

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_ERROR, KUBE_EV_CRASHED,
                   "%s %s killed the informer process%s (%s, signal %d): %s",
                   kube_resource_text(death->resource),
                   death->key[0] ? death->key : "without a readable key",
                   (death->crashes > 1) ? " again" : "",
                   kube_stage_text(death->stage), death->signal_number,
                   death->refused
                       ? "it is refused for 10 minutes, in any version; "
                         "delete it, or make it anew without what is unusual "
                         "about it, and report this crash with the object"
                       : "should it do so again within 10 minutes it is "
                         "refused");
}


/* A crash loop: lists wait longer than watches that only go on. */
static void
takeover_damp(kube_informer_t *inf)
{
    kube_zone_delay_t  delay;

    if (inf->takeover.blamed) {
        takeover_blame(inf);
    }

    if (inf->takeover.crashed) {
        kube_zone_crashed(inf->conf.zone, !inf->takeover.blamed,
                          inf->conf.reflector.seed, inf->now_ms);
    }

    kube_zone_crash_delay(inf->conf.zone, inf->now_ms, &delay);

    if (delay.list_ms == 0) {
        return;
    }

    kube_list_turn_hold(&inf->turn, inf->now_ms + delay.list_ms);

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_ERROR, KUBE_EV_CRASH_LOOP,
                   "the informer process crashes again and again: watches go "
                   "on in %llu ms, lists wait %llu ms",
                   (unsigned long long) delay.resume_ms,
                   (unsigned long long) delay.list_ms);

    if (delay.resume_ms != 0) {
        inf->phase = INFORMER_DAMPED;
        inf->deadline_ms = inf->now_ms + delay.resume_ms;
        kube_zone_damped(inf->conf.zone, 0, inf->scopes_n, inf->deadline_ms);
    }
}


/*
 * A predecessor leaves as soon as it is told to.  One that was stopped, or that
 * waits for a disk, keeps everybody from following, and cannot say so itself.
 */
static void
takeover_waits(kube_informer_t *inf)
{
    kube_writer_info_t  writer;

    if (inf->waits_told_ms == 0) {
        inf->waits_since_ms = inf->now_ms;
        inf->waits_told_ms = inf->now_ms + TAKEOVER_PATIENCE_MS;
    }

    if (inf->now_ms < inf->waits_told_ms) {
        return;
    }

    inf->waits_told_ms = inf->now_ms + KUBE_TROUBLE_REPEAT_MS;

    kube_zone_writer_info(inf->conf.zone, &writer);

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_ERROR, KUBE_EV_TAKEOVER,
                   "process %llu has not left the zone for %llu s, and nothing "
                   "is followed until it has: see what it waits for, or kill "
                   "it", (unsigned long long) writer.writer_pid,
                   (unsigned long long) ((inf->now_ms - inf->waits_since_ms)
                                         / 1000));
}


static kube_rc_t
takeover_acquire(kube_informer_t *inf)
{
    kube_rc_t  rc;

    rc = kube_zone_writer_acquire(inf->writer, inf->now_ms, &inf->takeover);

    if (rc == KUBE_BUSY) {
        inf->deadline_ms = inf->now_ms + KUBE_TAKEOVER_RETRY_MS;
        takeover_waits(inf);
        return rc;
    }

    if (rc != KUBE_OK) {
        inf->deadline_ms = inf->now_ms + KUBE_INFORMER_RETRY_MS;
        kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_ERROR,
                       KUBE_EV_TAKEOVER, "the zone cannot be taken over: %s",
                       kube_rc_text(rc));
        return rc;
    }

    kube_zone_writer_announce(inf->writer, inf->conf.pid, inf->now_unix_ms);

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_NOTICE, KUBE_EV_TAKEOVER,
                   "writer of the zone now, epoch %llu: %u records, %u cut "
                   "off, %u repaired%s",
                   (unsigned long long) inf->takeover.epoch,
                   (unsigned) inf->takeover.records,
                   (unsigned) inf->takeover.cut_off,
                   (unsigned) inf->takeover.repaired,
                   inf->takeover.crashed ? ", after a crash" : "");

    inf->phase = INFORMER_LOADING;
    takeover_damp(inf);

    return KUBE_OK;
}


/* KUBE_OK, also where there is nothing; KUBE_NOMEM: that is not known. */
static kube_rc_t
takeover_read(kube_informer_t *inf, unsigned scope, takeover_scope_t *old)
{
    kube_rc_t          rc;
    kube_scope_info_t  info;

    memset(old, 0, sizeof(takeover_scope_t));
    kube_arena_reset(&inf->arena);
    rc = kube_zone_scope_read(inf->conf.zone, scope, &inf->arena, &info);

    if (rc != KUBE_OK) {
        return (rc == KUBE_NOMEM) ? rc : KUBE_OK;
    }

    old->used = true;
    old->contact_ms = kube_zone_scope_counter(inf->conf.zone, scope,
                                              KUBE_COUNTER_GAUGE_CONTACT_MS);
    old->shape = kube_resource_info(info.resource)->shape;

    /* one that was cut is no namespace's name */

    old->ns_len = (info.ns.len < sizeof(old->ns)) ? info.ns.len
                                                  : sizeof(old->ns);
    if (old->ns_len != 0) {
        memcpy(old->ns, info.ns.data, old->ns_len);
    }

    old->hash = info.scope_hash;
    old->count = info.count;
    old->digest = info.digest;
    old->unnamed = info.refused_unnamed;
    old->interrupted = info.interrupted;
    old->stores = info.stores;

    if (kube_rv_parse(info.floor, &old->floor) != KUBE_OK) {
        old->floor.len = 0;
    }

    if (kube_rv_parse(info.rv, &old->rv) != KUBE_OK) {
        old->rv.len = 0;
        return KUBE_OK;
    }

    if (kube_rv_cmp(&old->rv, &old->floor) > 0) {
        old->floor = old->rv;
    }

    old->synced = info.synced;

    return KUBE_OK;
}


/*
 * Objects are published before the scope's record: what was stored since, the
 * watch repeats.
 */
static bool
takeover_behind(const kube_informer_t *inf, const takeover_scope_t *old)
{
    return old->stores != inf->takeover.stores;
}


/*
 * True if what the zone holds may be what the scope's record says.  If nothing
 * was stored since, count and digest must agree.
 */
static bool
takeover_agrees(const kube_informer_t *inf, unsigned scope,
    const takeover_scope_t *old)
{
    kube_scope_sum_t  sum;

    if (takeover_behind(inf, old)) {
        return true;
    }

    kube_publisher_sum(inf->publisher, scope, &sum);

    return sum.count == old->count
           && sum.digest.lo == old->digest.lo
           && sum.digest.hi == old->digest.hi;
}


/* Finds a scope among the predecessor's by its hash, and takes its version. */
static void
takeover_find(kube_informer_t *inf, const takeover_scope_t *old,
    unsigned number)
{
    unsigned           scope;
    informer_scope_t  *s;

    s = &inf->scopes[number];
    s->rv.len = 0;
    s->synced = false;
    s->count = 0;
    s->digest = (kube_digest_t) { 0, 0 };
    s->unnamed = 0;
    s->interrupted = false;
    s->behind = false;

    /* what was lost is in no refused set: only a list brings it back */

    if (inf->takeover.distrust) {
        return;
    }

    for (scope = 0; scope < KUBE_SCOPES_MAX; scope++) {

        if (old[scope].used
            && old[scope].synced
            && old[scope].hash == s->hash
            && takeover_agrees(inf, number, &old[scope]))
        {
            s->rv = old[scope].rv;
            s->count = old[scope].count;
            s->digest = old[scope].digest;
            s->unnamed = old[scope].unnamed;
            s->interrupted = old[scope].interrupted;
            s->behind = takeover_behind(inf, &old[scope]);
            s->synced = true;
            kube_publisher_found_unnamed(inf->publisher, number, s->unnamed,
                                         s->interrupted);
            return;
        }
    }
}


/*
 * What readers may have seen of a scope, and no object shows: deletions, which
 * the record has the floor of; and the record itself, also where that is not
 * gone on from.  Where something was let go, or has no name, it may be as new
 * as any object.  Objects are newer where the predecessor died within a list,
 * or what it had read: nothing that they are newer than was deleted.
 */
static void
takeover_floor(kube_informer_t *inf, const takeover_scope_t *old,
    unsigned number)
{
    bool               lost;
    unsigned           scope;
    kube_rv_t          floor;
    informer_scope_t  *s;

    s = &inf->scopes[number];
    lost = (inf->takeover.repaired != 0 || inf->takeover.cut_off != 0);
    floor.len = 0;

    for (scope = 0; scope < KUBE_SCOPES_MAX; scope++) {

        if (!old[scope].used || old[scope].hash != s->hash) {
            continue;
        }

        lost |= (old[scope].unnamed != 0);

        if (kube_rv_cmp(&old[scope].floor, &floor) > 0) {
            floor = old[scope].floor;
        }
    }

    s->repeated = *kube_indexer_newest(inf->indexer, number);

    if (kube_rv_cmp(&floor, &s->repeated) > 0) {
        s->repeated = floor;
    }

    s->floor = lost ? s->repeated : floor;
    s->deleted = s->floor;
}


/* What another server's objects were says nothing about this one's. */
static void
takeover_floors(kube_informer_t *inf, const takeover_scope_t *old)
{
    bool        same;
    unsigned    scope;
    kube_str_t  server;

    kube_arena_reset(&inf->arena);

    server = kube_zone_server(inf->conf.zone, &inf->arena);
    same = (server.len == 0 || kube_str_eq(server, inf->conf.server));

    for (scope = 0; scope < inf->scopes_n; scope++) {
        inf->scopes[scope].floor.len = 0;
        inf->scopes[scope].repeated.len = 0;
        inf->scopes[scope].deleted.len = 0;

        if (same) {
            takeover_floor(inf, old, scope);
        }
    }
}


/*
 * Whether it has objects for that namespace; of another resource, it may be.
 * One that was not listed yet counts none: what it has an age of serves there.
 */
static bool
takeover_serves(const takeover_scope_t *old, const informer_scope_t *s)
{
    return (old->count != 0 || !old->synced)
           && old->shape == kube_resource_info(s->resource)->shape
           && (old->ns_len == 0
               || s->ns.len == 0
               || kube_str_eq((kube_str_t) { old->ns, old->ns_len }, s->ns));
}


/*
 * When what the zone holds of a scope was last known to be current; 0: never.
 * Of a changed scope the old data serves, and is as old as the oldest.
 */
static uint64_t
takeover_contact(const kube_informer_t *inf, const takeover_scope_t *old,
    unsigned number)
{
    unsigned          scope;
    uint64_t          contact_ms;
    kube_scope_sum_t  sum;

    contact_ms = 0;
    kube_publisher_sum(inf->publisher, number, &sum);

    for (scope = 0; scope < KUBE_SCOPES_MAX; scope++) {

        if (!old[scope].used) {
            continue;
        }

        if (old[scope].hash == inf->scopes[number].hash) {
            return old[scope].contact_ms;
        }

        if ((sum.count != 0
             || takeover_serves(&old[scope], &inf->scopes[number]))
            && old[scope].contact_ms != 0
            && (contact_ms == 0 || old[scope].contact_ms < contact_ms))
        {
            contact_ms = old[scope].contact_ms;
        }
    }

    return contact_ms;
}


static void
takeover_scopes(kube_informer_t *inf, const takeover_scope_t *old)
{
    bool               published;
    unsigned           scope;
    kube_rc_t          rc;
    informer_scope_t  *s;

    published = true;

    for (scope = 0; scope < KUBE_SCOPES_MAX; scope++) {

        if (scope >= inf->scopes_n) {

            if (old[scope].used) {
                kube_zone_scope_clear(inf->writer, scope);
            }

            continue;
        }

        s = &inf->scopes[scope];
        takeover_find(inf, old, scope);

        if (old[scope].used && old[scope].hash != s->hash) {
            kube_zone_scope_clear(inf->writer, scope);
        }

        kube_zone_scope_set(inf->conf.zone, scope,
                            KUBE_COUNTER_GAUGE_CONTACT_MS,
                            takeover_contact(inf, old, scope));
        rc = kube_informer_publish_scope(inf, scope);

        if (rc != KUBE_OK) {
            published = false;
            kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_ERROR,
                           KUBE_EV_ZONE_FULL,
                           "the zone has no room for the state of a scope: "
                           "%s", kube_rc_text(rc));
        }
    }

    /* none of them shows a version now: what was lost misleads nobody */

    if (inf->takeover.distrust && published) {
        kube_zone_writer_trust(inf->writer);
    }
}


/* A predecessor that had to follow Endpoints is followed in that. */
static kube_rc_t
takeover_endpoints(kube_informer_t *inf)
{
    unsigned           scope;
    kube_rc_t          rc;
    kube_scope_info_t  info;

    if (inf->conf.endpoints != KUBE_ENDPOINTS_AUTO) {
        return KUBE_OK;
    }

    for (scope = 0; scope < KUBE_SCOPES_MAX; scope++) {
        kube_arena_reset(&inf->arena);
        rc = kube_zone_scope_read(inf->conf.zone, scope, &inf->arena, &info);

        if (rc == KUBE_NOMEM) {
            return rc;
        }

        if (rc == KUBE_OK
            && info.resource == KUBE_RESOURCE_ENDPOINTS
            && info.synced)
        {
            return kube_informer_use_endpoints(inf, NULL);
        }
    }

    return KUBE_OK;
}


/*
 * What a state file has is in no zone without an object, and in part in one
 * whose writer died of it, or ended before it had published all.
 */
static bool
takeover_lacks_state(const kube_informer_t *inf)
{
    kube_writer_info_t  writer;

    kube_zone_writer_info(inf->conf.zone, &writer);

    return inf->takeover.records == 0
           || writer.state_in_use == KUBE_STATE_FILE_LOADING
           || (inf->takeover.blamed
               && inf->takeover.death.stage == KUBE_STAGE_STATE);
}


static kube_rc_t
takeover_load(kube_informer_t *inf)
{
    unsigned           scope;
    kube_rc_t          rc;
    takeover_scope_t  *old;

    old = kube_alloc(&inf->alloc, KUBE_SCOPES_MAX * sizeof(takeover_scope_t));
    if (old == NULL) {
        return KUBE_NOMEM;
    }

    rc = takeover_endpoints(inf);

    if (rc == KUBE_OK) {
        rc = kube_indexer_load(inf->indexer, inf->now_ms);
    }

    for (scope = 0; rc == KUBE_OK && scope < KUBE_SCOPES_MAX; scope++) {
        rc = takeover_read(inf, scope, &old[scope]);
    }

    if (rc != KUBE_OK) {
        kube_free(&inf->alloc, old);
        return rc;
    }

    takeover_floors(inf, old);
    takeover_scopes(inf, old);
    kube_free(&inf->alloc, old);

    inf->wants_state = takeover_lacks_state(inf);

    for (scope = 0; scope < inf->scopes_n; scope++) {

        if (inf->scopes[scope].rv.len != 0) {
            inf->wants_state = false;
            inf->fill_ms = inf->now_ms + KUBE_INFORMER_FILL_MS;
        }

        kube_reflector_start(inf->scopes[scope].reflector,
                             &inf->scopes[scope].rv,
                             &inf->scopes[scope].repeated, inf->now_ms);
    }

    rc = kube_zone_server_set(inf->writer, inf->conf.server);

    if (rc != KUBE_OK) {
        kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_WARN,
                       KUBE_EV_ZONE_FULL,
                       "the zone cannot show the server's name: %s",
                       kube_rc_text(rc));
    }

    return KUBE_OK;
}


kube_rc_t
kube_informer_take_over(kube_informer_t *inf)
{
    kube_rc_t  rc;

    if (inf->phase == INFORMER_WAITING) {

        rc = takeover_acquire(inf);

        if (rc != KUBE_OK) {
            return rc;
        }
    }

    if (inf->phase == INFORMER_DAMPED) {

        if (inf->now_ms < inf->deadline_ms) {
            return KUBE_BUSY;
        }

        inf->phase = INFORMER_LOADING;
    }

    rc = takeover_load(inf);

    if (rc != KUBE_OK) {
        inf->deadline_ms = inf->now_ms + KUBE_INFORMER_RETRY_MS;
        return rc;
    }

    inf->phase = INFORMER_RUNNING;
    inf->check_ms = inf->now_ms + KUBE_INFORMER_CHECK_MS;

    kube_log_event(&inf->log, inf->now_ms, KUBE_LOG_NOTICE, KUBE_EV_STARTED,
                   "%u scopes of %.*s", inf->scopes_n,
                   (int) inf->conf.server.len, inf->conf.server.data);

    return KUBE_OK;
}

/*
 * sim_check - what must hold after each turn of the informer process, at each
 * read of a worker, at each request, and once faults are over.
 *
 * The checks and their names are in docs/internals/simulator.md.  They look at
 * the zone as any process can, and at what the cluster was; never at the
 * informer.  For t/sim only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "kube_record.h"
#include "kube_zone_guard.h"
#include "kube_zone_walk.h"
#include "sim.h"


/* How many requests of one scope, but for pages, ten seconds may see. */
#define CHECK_WINDOW_MS     10000
#define CHECK_REQUESTS_MAX  60

/* How long what found no memory may wait. */
#define CHECK_MEMORY_MS     5000

/*
 * A list that began this long ago may have lost its turn, for all its pages: a
 * turn, less what its end may be heard of too late.
 */
#define CHECK_TURN_MS       4500
#define CHECK_SLOW_MS       60000


static void *
check_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
check_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


void
sim_check_init(sim_t *s)
{
    unsigned     i, ns, service;
    sim_seen_t  *seen;

    s->view.alloc.alloc = check_alloc;
    s->view.alloc.free = check_free;
    kube_arena_init(&s->view.arena, &s->view.alloc, 1u << 20);

    for (i = 0; i < SIM_READERS; i++) {
        for (ns = 0; ns < SIM_NAMESPACES; ns++) {
            for (service = 0; service < SIM_SERVICES; service++) {
                seen = &s->check.readers[i][ns][service];
                seen->service.at = -1;
                seen->set.at = -1;
            }
        }
    }

    for (i = 0; i < SIM_SCOPES; i++) {
        s->check.scopes[i].place.at = -1;
    }
}


void
sim_check_done(sim_t *s)
{
    kube_arena_done(&s->view.arena);
}


/* A process knows nothing of what the one before it has told or asked. */
void
sim_check_started(sim_t *s)
{
    memset(s->check.told, 0, sizeof(s->check.told));
    memset(s->check.requests, 0, sizeof(s->check.requests));
    memset(s->check.not_before_ms, 0, sizeof(s->check.not_before_ms));
}


static uint64_t
check_rv(sim_t *s, kube_str_t text)
{
    uint64_t  rv;

    if (text.len == 0) {
        return 0;
    }

    if (kube_str_to_u64(text, UINT64_MAX, &rv) != KUBE_OK) {
        sim_fail(s, "the zone has a version of none of ours");
    }

    return rv;
}


/* The key of a record that is read; SIM_KEYS: of none of ours. */
static unsigned
check_key(const kube_record_t *record, kube_record_id_t *id)
{
    if (kube_record_id(record, record->size, id) != KUBE_OK) {
        return SIM_KEYS;
    }

    return sim_key(id->resource != KUBE_RESOURCE_SERVICES, id->meta.ns,
                   id->meta.name);
}


static void
view_kind(sim_t *s, kube_record_kind_t kind)
{
    unsigned              key;
    uint32_t              cursor, entry;
    sim_row_t            *row;
    kube_record_id_t      id;
    const kube_record_t  *record;

    cursor = 0;

    for ( ;; ) {
        kube_arena_reset(&s->view.arena);

        if (kube_zone_next(&s->zone, kind, &cursor, &s->view.arena, &record,
                           &entry)
            != KUBE_OK)
        {
            return;
        }

        key = check_key(record, &id);

        if (key == SIM_KEYS) {
            sim_fail(s, "the zone has an object of none of ours");
        }

        if (s->by_namespace && SIM_NS(key) >= s->namespaces) {
            sim_fail(s, "C8: %s/%s is of a namespace that is not followed",
                     sim_namespace(SIM_NS(key)), sim_name(key));
        }

        row = &s->view.rows[key];

        if (row->there || row->refused) {
            sim_fail(s, "%s/%s is in the zone twice",
                     sim_namespace(SIM_NS(key)), sim_name(key));
        }

        row->refused = (kind == KUBE_RECORD_REFUSED);
        row->there = !row->refused;
        row->outdated = (record->flags & KUBE_RECORD_F_OUTDATED) != 0;
        row->rv = check_rv(s, id.meta.rv);
        s->view.refused += (row->refused || row->outdated);
    }
}


static void
view_make(sim_t *s)
{
    memset(s->view.rows, 0, sizeof(s->view.rows));
    s->view.refused = 0;

    view_kind(s, KUBE_RECORD_SERVICE);
    view_kind(s, KUBE_RECORD_SLICE);
    view_kind(s, KUBE_RECORD_REFUSED);
}


/*
 * A Service that nobody survives publishing is served as it was for ten
 * minutes, and its slices with it.
 */
static bool
view_may_stay(const sim_t *s, unsigned ns)
{
    unsigned          i;
    const sim_row_t  *row;

    for (i = 0; (s->faults & SIM_FAULT(CRASH)) && i < SIM_SERVICES; i++) {
        row = &s->view.rows[SIM_SERVICE(ns, i)];

        if (row->refused || row->outdated) {
            return true;
        }
    }

    return false;
}


static bool
scope_has(unsigned shape, unsigned ns, unsigned key)
{
    return SIM_SHAPE(key) == shape
           && (ns == SIM_NAMESPACES || SIM_NS(key) == ns);
}


static unsigned
scope_refused(const sim_t *s, unsigned shape, unsigned ns)
{
    unsigned  key, n;

    for (n = 0, key = 0; key < SIM_KEYS; key++) {
        n += (scope_has(shape, ns, key)
              && (s->view.rows[key].refused || s->view.rows[key].outdated));
    }

    return n;
}


/* What a scope has to say at a place. */
static sim_sum_t
scope_sum(const sim_era_t *era, ptrdiff_t at, unsigned shape, unsigned ns)
{
    unsigned          i;
    sim_sum_t         sum;
    const sim_sum_t  *one;

    memset(&sum, 0, sizeof(sim_sum_t));

    for (i = 0; at >= 0 && i < SIM_NAMESPACES; i++) {

        if (ns == SIM_NAMESPACES || i == ns) {
            one = &era->log[at].sums[shape][i];
            sum.count += one->count;
            kube_digest_add(&sum.digest, one->digest);
        }
    }

    return sum;
}


/* Whether events of before a death still come again at a version. */
static bool
scope_repeats(const sim_record_t *record, unsigned era, uint64_t rv)
{
    return era == record->died && rv < record->replayed;
}


static bool
sum_equal(const sim_sum_t *a, const sim_sum_t *b)
{
    return a->count == b->count
           && a->digest.lo == b->digest.lo
           && a->digest.hi == b->digest.hi;
}


/*
 * C1 and C2: the place of a version in the past, at which the sum is right if
 * it has to be.  It never goes back, but with a past that a backup began.
 */
static bool
scope_place(const sim_t *s, const sim_record_t *old, sim_record_t *now,
    unsigned shape, unsigned ns, bool exact)
{
    unsigned          e;
    ptrdiff_t         at;
    sim_sum_t         sum;
    const sim_era_t  *era;

    for (e = old->place.era; e <= s->etcd.era; e++) {
        era = &s->etcd.eras[e];

        if (now->rv > era->rv) {
            continue;
        }

        if (e == old->place.era ? now->rv < old->rv
                                : now->rv < old->rv
                                  && now->epoch == old->epoch)
        {
            continue;
        }

        at = sim_era_find(era, now->rv);

        if (at + 1 < (ptrdiff_t) era->base) {
            continue;
        }

        sum = scope_sum(era, at, shape, ns);

        if (!exact || scope_repeats(now, e, now->rv)
            || sum_equal(&sum, &now->sum))
        {
            now->place = (sim_place_t) { e, at };
            return true;
        }
    }

    return false;
}


/* The newest change of a key up to a place; -1: none. */
static ptrdiff_t
era_newest(const sim_era_t *era, unsigned key, ptrdiff_t at)
{
    ptrdiff_t  i;

    for (i = era->last[key]; i > at; i = era->log[i].before) {
        /* void */
    }

    return i;
}


/*
 * C3, C5: what changed last up to the place is what is there, or something
 * newer.  True: it is missing.
 */
static bool
row_missing(sim_t *s, const sim_record_t *record, unsigned key)
{
    unsigned            e;
    ptrdiff_t           newest, found, i;
    const sim_era_t    *era;
    const sim_row_t    *row;
    const sim_place_t  *place;

    place = &record->place;
    era = &s->etcd.eras[place->era];
    row = &s->view.rows[key];
    newest = era_newest(era, key, place->at);

    if (row->refused) {
        return false;
    }

    if (row->there) {
        found = sim_era_version(era, key, row->rv);

        /* newer than the published version, or what was good last */

        e = row->outdated ? 0 : place->era + 1;

        for ( /* void */ ; found < 0 && e <= s->etcd.era; e++) {
            if (sim_era_version(&s->etcd.eras[e], key, row->rv) >= 0) {
                return false;
            }
        }

        if (found < 0) {
            sim_fail(s, "G2: %s/%s@%llu never was",
                     sim_namespace(SIM_NS(key)), sim_name(key),
                     (unsigned long long) row->rv);
        }

        if (found < newest && !row->outdated && place->era == s->etcd.era
            && !view_may_stay(s, SIM_NS(key)))
        {
            sim_fail(s, "C1: %s/%s@%llu is older than the published version",
                     sim_namespace(SIM_NS(key)), sim_name(key),
                     (unsigned long long) row->rv);
        }

        return false;
    }

    if (newest < 0 || !era->log[newest].state.live
        || place->era != s->etcd.era
        || view_may_stay(s, SIM_NS(key)))
    {
        return false;
    }

    for (i = era->last[key]; i > newest; i = era->log[i].before) {

        /* what a dead process was about to move is let go, and comes again */

        if (!era->log[i].state.live
            || ((s->faults & SIM_FAULT(MOVE))
                && scope_repeats(record, place->era, record->rv)))
        {
            return false;
        }
    }

    return true;
}


static void
scope_promise(sim_t *s, const sim_record_t *record, unsigned shape,
    unsigned ns)
{
    uint64_t  missing;
    unsigned  key, last;

    missing = 0;
    last = 0;

    for (key = 0; key < SIM_KEYS; key++) {

        if (scope_has(shape, ns, key)
            && row_missing(s, record, key))
        {
            last = key;
            missing++;
        }
    }

    if (missing > record->unnamed) {
        sim_fail(s, "C1: %llu objects are missing, %s/%s one of them, and %llu "
                 "were counted", (unsigned long long) missing,
                 sim_namespace(SIM_NS(last)), sim_name(last),
                 (unsigned long long) record->unnamed);
    }
}


/* Whose scope a record is; false: of none. */
static bool
scope_of(const kube_scope_info_t *info, unsigned *shape, unsigned *ns)
{
    *shape = (info->resource != KUBE_RESOURCE_SERVICES);

    if (info->ns.len == 0) {
        *ns = SIM_NAMESPACES;
        return true;
    }

    for (*ns = 0; *ns < SIM_NAMESPACES; (*ns)++) {
        if (kube_str_eq(info->ns, kube_str(sim_namespace(*ns)))) {
            return true;
        }
    }

    return false;
}


/* False: there is no such scope, or it shows no version. */
static bool
scope_read(sim_t *s, unsigned scope, kube_scope_info_t *info,
    sim_record_t *record)
{
    kube_writer_info_t  writer;

    kube_arena_reset(&s->view.arena);

    if (kube_zone_scope_read(&s->zone, scope, &s->view.arena, info)
        != KUBE_OK)
    {
        return false;
    }

    kube_zone_writer_info(&s->zone, &writer);

    record->rv = check_rv(s, info->rv);
    record->epoch = writer.epoch;
    record->sum.count = info->count;
    record->sum.digest = info->digest;
    record->unnamed = info->refused_unnamed;

    return record->rv != 0;
}


static void
check_scope(sim_t *s, unsigned scope, bool *viewed, bool whole)
{
    bool                exact;
    unsigned            shape, ns;
    sim_record_t        now, *old;
    kube_scope_info_t   info;

    old = &s->check.scopes[scope];

    now = *old;

    if (!scope_read(s, scope, &info, &now)
        || (now.rv == old->rv && now.unnamed == old->unnamed
            && sum_equal(&now.sum, &old->sum)))
    {
        return;
    }

    if (!scope_of(&info, &shape, &ns)) {
        sim_fail(s, "a scope of no namespace of ours");
    }

    if (!*viewed) {
        *viewed = true;
        view_make(s);
    }

    s->check.checks++;
    exact = (now.unnamed == 0 && scope_refused(s, shape, ns) == 0
             && scope_refused(s, 0, ns) == 0);

    if (!scope_place(s, old, &now, shape, ns, exact)) {
        sim_fail(s, "%s: scope %u shows %llu objects at %llu, after %llu%s",
                 exact ? "C1" : "C2", scope,
                 (unsigned long long) now.sum.count,
                 (unsigned long long) now.rv, (unsigned long long) old->rv,
                 whole ? "" : ", and the process died");
    }

    *old = now;
    scope_promise(s, &now, shape, ns);
}


void
sim_check_zone(sim_t *s, bool whole)
{
    bool      viewed;
    unsigned  scope;

    viewed = false;

    for (scope = 0; scope < SIM_SCOPES; scope++) {
        check_scope(s, scope, &viewed, whole);
    }
}


/*
 * What a process had published beyond the published version is repeated by the
 * next watch: until that has come so far, a sum is of no version.
 */
void
sim_check_died(sim_t *s)
{
    unsigned       key, scope;
    sim_record_t  *record;

    view_make(s);

    for (scope = 0; scope < SIM_SCOPES; scope++) {
        record = &s->check.scopes[scope];
        record->died = record->place.era;
        record->replayed = (record->died == s->etcd.era)
                           ? s->etcd.eras[record->died].rv : UINT64_MAX;
    }

    for (key = 0; key < SIM_KEYS; key++) {
        s->check.absent[key] |= !s->view.rows[key].there;
    }
}


/*
 * A Service that was not there when a process died may be published with the
 * slices of a list of which that process saw the first pages alone.  It lasts
 * until the scope of slices is where it was.
 */
static bool
check_repeats(sim_t *s, unsigned key)
{
    unsigned            scope, shape, ns;
    sim_record_t        record;
    kube_scope_info_t   info;

    if (!s->check.absent[key]) {
        return false;
    }

    for (scope = 0; scope < SIM_SCOPES; scope++) {

        memset(&info, 0, sizeof(kube_scope_info_t));

        if (scope_read(s, scope, &info, &record)
            && scope_of(&info, &shape, &ns)
            && scope_has(shape, ns, SIM_SERVICE(SIM_NS(key), SIM_SERVICES))
            && !scope_repeats(&s->check.scopes[scope],
                              s->check.scopes[scope].place.era, record.rv))
        {
            s->check.absent[key] = false;
            return false;
        }
    }

    return true;
}


/* Whether anything of a namespace is refused now, as a worker can see. */
static bool
check_refuses(sim_t *s, unsigned ns)
{
    uint32_t              cursor;
    unsigned              scope;
    kube_record_id_t      id;
    kube_scope_info_t     info;
    const kube_record_t  *record;

    if (!(s->faults & (SIM_FAULT(HUGE) | SIM_FAULT(FULL) | SIM_FAULT(CRASH))))
    {
        return false;
    }

    /* a Service is published without a slice, then that is named */

    if (s->process.inside) {
        return true;
    }

    cursor = 0;

    for ( ;; ) {
        kube_arena_reset(&s->view.arena);

        if (kube_zone_next_refused(&s->zone, &cursor, &s->view.arena, &record)
            != KUBE_OK)
        {
            break;
        }

        if (check_key(record, &id) != SIM_KEYS
            && kube_str_eq(id.meta.ns, kube_str(sim_namespace(ns))))
        {
            return true;
        }
    }

    for (scope = 0; scope < SIM_SCOPES; scope++) {
        kube_arena_reset(&s->view.arena);

        if (kube_zone_scope_read(&s->zone, scope, &s->view.arena, &info)
            == KUBE_OK && info.refused_unnamed != 0)
        {
            return true;
        }
    }

    return false;
}


/* Whether something may have been refused while a worker was stopped. */
static bool
check_was_refused(const sim_t *s)
{
    return s->check.paused
           && (s->faults & (SIM_FAULT(HUGE) | SIM_FAULT(FULL)
                            | SIM_FAULT(CRASH)));
}


/* Where in a past that follows another one it may be found at the earliest. */
static ptrdiff_t
place_begin(const sim_place_t *place, const sim_era_t *era, unsigned e)
{
    return (e == place->era) ? place->at : (ptrdiff_t) era->base - 1;
}


/* C4: the first moment, from the one before on, with that set of slices. */
static bool
set_find(const sim_t *s, sim_place_t *place, unsigned key, uint64_t set)
{
    unsigned          e;
    ptrdiff_t         at;
    const sim_era_t  *era;

    for (e = place->era; e <= s->etcd.era; e++) {
        era = &s->etcd.eras[e];

        for (at = place_begin(place, era, e); at < (ptrdiff_t) era->n; at++) {

            if ((at < 0 ? 0 : era->log[at].sets[SIM_NS(key)][SIM_NUMBER(key)])
                == set)
            {
                *place = (sim_place_t) { e, at };
                return true;
            }
        }
    }

    return false;
}


/* C2: the same of the Service itself at a version; 0: it is not there. */
static bool
service_find(const sim_t *s, sim_place_t *place, unsigned key, uint64_t rv)
{
    unsigned            e;
    ptrdiff_t           at, newest;
    const sim_era_t    *era;
    const sim_state_t  *state;

    for (e = place->era; e <= s->etcd.era; e++) {
        era = &s->etcd.eras[e];
        at = place_begin(place, era, e);
        newest = era_newest(era, key, at);

        for ( ;; ) {
            state = (newest >= 0) ? &era->log[newest].state : NULL;

            if ((state != NULL && state->live ? state->rv : 0) == rv) {
                *place = (sim_place_t) { e, at };
                return true;
            }

            for (at++; at < (ptrdiff_t) era->n; at++) {
                if (era->log[at].state.key == key) {
                    break;
                }
            }

            if (at >= (ptrdiff_t) era->n) {
                break;
            }

            newest = at;
        }
    }

    return false;
}


/* Every address says of which state it is: all of them the same. */
static uint64_t
check_slice(sim_t *s, const kube_slice_t *slice)
{
    size_t              i;
    uint64_t            rv;
    unsigned            key, stamp, e;
    ptrdiff_t           at;
    const uint8_t      *a;
    const sim_state_t  *state;

    key = sim_key(1, slice->meta.ns, slice->meta.name);
    rv = check_rv(s, slice->meta.rv);
    state = NULL;

    for (e = 0; key != SIM_KEYS && e <= s->etcd.era && state == NULL; e++) {
        at = sim_era_version(&s->etcd.eras[e], key, rv);
        state = (at >= 0) ? &s->etcd.eras[e].log[at].state : NULL;

        if (state != NULL && (!state->live
                              || state->endpoints != slice->endpoints_n))
        {
            state = NULL;
        }

        stamp = (state != NULL) ? state->stamp : 0;

        for (i = 0; state != NULL && i < slice->endpoints_n; i++) {
            a = slice->endpoints[i].address.bytes;

            if (a[0] != 20 + i
                || (((unsigned) a[1] << 16) | ((unsigned) a[2] << 8) | a[3])
                   != (stamp & 0xffffff))
            {
                state = NULL;
            }
        }
    }

    if (state == NULL) {
        sim_fail(s, "G2: a worker reads slice %.*s/%.*s@%llu as it never was",
                 (int) slice->meta.ns.len, slice->meta.ns.data,
                 (int) slice->meta.name.len, slice->meta.name.data,
                 (unsigned long long) rv);
    }

    return sim_fingerprint(key, state->stamp, state->endpoints);
}


static void
check_no_set(sim_t *s, unsigned key, const sim_seen_t *seen,
    const kube_snapshot_t *snapshot)
{
    char    text[256];
    size_t  i, n;

    text[0] = '\0';

    for (n = 0, i = 0; i < snapshot->slices_n && n < sizeof(text); i++) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, " %.*s@%.*s",
                               (int) snapshot->slices[i].meta.name.len,
                               snapshot->slices[i].meta.name.data,
                               (int) snapshot->slices[i].meta.rv.len,
                               snapshot->slices[i].meta.rv.data);
    }

    sim_fail(s, "C4: the slices of %s/%s are of no moment after change %td of "
             "past %u, or of an earlier one:%s", sim_namespace(SIM_NS(key)),
             sim_name(key), seen->set.at, seen->set.era, text);
}


static void
check_snapshot(sim_t *s, unsigned key, sim_seen_t *seen,
    const kube_snapshot_t *snapshot)
{
    bool      loose;
    size_t    i;
    uint64_t  set, rv;

    set = 0;
    rv = check_rv(s, snapshot->service.meta.rv);

    for (i = 0; i < snapshot->slices_n; i++) {
        set += check_slice(s, &snapshot->slices[i]);
    }

    if (snapshot->revision < seen->revision
        || (snapshot->revision == seen->revision && set != seen->fingerprint))
    {
        sim_fail(s, "C2: revision %llu of %s/%s after %llu",
                 (unsigned long long) snapshot->revision,
                 sim_namespace(SIM_NS(key)), sim_name(key),
                 (unsigned long long) seen->revision);
    }

    seen->revision = snapshot->revision;
    seen->fingerprint = set;
    loose = check_refuses(s, SIM_NS(key)) || check_was_refused(s);

    if (loose) {
        return;
    }

    if (!service_find(s, &seen->service, key, rv)) {
        sim_fail(s, "C2: a worker reads %s/%s@%llu, which it was not after "
                 "change %td of past %u", sim_namespace(SIM_NS(key)),
                 sim_name(key), (unsigned long long) rv, seen->service.at,
                 seen->service.era);
    }

    /*
     * Deltas that found no memory are applied later than those before them; a
     * Service is published while a list holds it back if a slice has to go.
     */

    if (!(s->faults & (SIM_FAULT(MOVE) | SIM_FAULT(FULL)))
        && (!s->process.memory.failed
            || s->now_ms - s->process.memory.failed_ms > CHECK_MEMORY_MS)
        && !set_find(s, &seen->set, key, set)
        && !check_repeats(s, key))
    {
        check_no_set(s, key, seen, snapshot);
    }
}


void
sim_check_read(sim_t *s, unsigned reader, unsigned ns, unsigned service)
{
    unsigned          key;
    uint32_t          entry;
    kube_rc_t         rc;
    sim_seen_t       *seen;
    kube_arena_t      arena;
    kube_snapshot_t   snapshot;

    key = SIM_SERVICE(ns, service);
    seen = &s->check.readers[reader][ns][service];
    s->check.reading = true;
    s->check.paused = false;
    s->check.reads++;

    kube_arena_init(&arena, &s->view.alloc, 1u << 20);
    rc = kube_zone_find(&s->zone, KUBE_RESOURCE_SERVICES,
                        kube_str(sim_namespace(ns)), kube_str(sim_name(key)),
                        &entry);

    if (rc == KUBE_OK) {
        rc = kube_zone_read(&s->zone, entry, kube_str(sim_namespace(ns)),
                            kube_str(sim_name(key)), &arena, &snapshot);
    }

    s->check.pause_in = 0;

    if (rc == KUBE_OK) {
        check_snapshot(s, key, seen, &snapshot);

    } else if (rc == KUBE_NOT_FOUND) {

        if (!check_refuses(s, ns)
            && !check_was_refused(s)
            && !service_find(s, &seen->service, key, 0))
        {
            sim_fail(s, "C2: a worker does not find %s/%s, which it was not "
                     "after change %td of past %u", sim_namespace(ns),
                     sim_name(key), seen->service.at, seen->service.era);
        }

    } else if (rc != KUBE_CHANGED) {
        sim_fail(s, "a worker reads %s/%s: %s", sim_namespace(ns),
                 sim_name(key), kube_rc_text(rc));
    }

    kube_arena_done(&arena);
    s->check.reading = false;
}


/* What is found by walking is found by its name, and nothing else is. */
static void
image_find(sim_t *s)
{
    bool              found;
    unsigned          key;
    uint32_t          entry;
    kube_str_t        ns, name;
    kube_resource_t   resource;
    const sim_row_t  *row;

    for (key = 0; key < SIM_KEYS; key++) {
        row = &s->view.rows[key];
        ns = kube_str(sim_namespace(SIM_NS(key)));
        name = kube_str(sim_name(key));
        resource = SIM_SHAPE(key) ? KUBE_RESOURCE_ENDPOINTSLICES
                                  : KUBE_RESOURCE_SERVICES;
        found = (kube_zone_find(&s->zone, resource, ns, name, &entry)
                 == KUBE_OK);

        if (found != row->there
            || kube_zone_is_refused(&s->zone, resource, ns, name)
               != row->refused)
        {
            sim_fail(s, "zone: %s/%s is %sthere, and %sfound",
                     sim_namespace(SIM_NS(key)), sim_name(key),
                     row->there ? "" : "not ", found ? "" : "not ");
        }
    }
}


static const sim_state_t *
image_state(const sim_t *s, unsigned key, uint64_t rv)
{
    unsigned   e;
    ptrdiff_t  at;

    for (e = s->etcd.era + 1; e-- != 0; ) {
        at = sim_era_version(&s->etcd.eras[e], key, rv);

        if (at >= 0) {
            return &s->etcd.eras[e].log[at].state;
        }
    }

    return NULL;
}


/* Of two versions with one content nobody is told. */
static bool
image_is_same(const sim_t *s, unsigned key, uint64_t a, uint64_t b)
{
    const sim_state_t  *x, *y;

    if (a == b) {
        return true;
    }

    x = image_state(s, key, a);
    y = image_state(s, key, b);

    return x != NULL && y != NULL && x->stamp == y->stamp;
}


/* A subscriber of the event ring reads what has come. */
static void
image_follow(sim_t *s)
{
    bool               lost;
    unsigned           key;
    kube_rc_t          rc;
    sim_row_t         *row;
    kube_zone_event_t  event;

    lost = !s->check.follows;

    while ((rc = kube_zone_ring_next(&s->zone, &s->check.cursor, &event))
           != KUBE_NOT_FOUND)
    {
        if (rc == KUBE_CHANGED || event.kind == KUBE_ZONE_EVENT_RESYNC) {
            lost = true;
            continue;
        }

        key = sim_key(event.resource != KUBE_RESOURCE_SERVICES, event.ns,
                      event.name);

        if (key == SIM_KEYS) {
            sim_fail(s, "ring: an event of none of ours");
        }

        row = &s->check.told_rows[key];

        if (!lost
            && (row->there != (event.kind != KUBE_ZONE_EVENT_ADD)
                || (row->there
                    && !image_is_same(s, key, row->rv,
                                      check_rv(s, event.kind
                                                  == KUBE_ZONE_EVENT_UPDATE
                                                  ? event.old_rv
                                                  : event.rv)))))
        {
            sim_fail(s, "ring: event %d of %s/%s@%.*s, which is %sthere",
                     (int) event.kind, sim_namespace(SIM_NS(key)),
                     sim_name(key), (int) event.rv.len, event.rv.data,
                     row->there ? "" : "not ");
        }

        row->there = (event.kind == KUBE_ZONE_EVENT_ADD
                      || event.kind == KUBE_ZONE_EVENT_UPDATE);
        row->rv = row->there ? check_rv(s, event.rv) : 0;
    }

    if (lost) {
        s->check.follows = true;
        memcpy(s->check.told_rows, s->view.rows, sizeof(s->view.rows));
        return;
    }

    for (key = 0; key < SIM_KEYS; key++) {
        row = &s->check.told_rows[key];

        if (row->there != s->view.rows[key].there
            || (row->there
                && !image_is_same(s, key, row->rv, s->view.rows[key].rv)))
        {
            sim_fail(s, "ring: %s/%s@%llu is %sthere, and events told of @%llu",
                     sim_namespace(SIM_NS(key)), sim_name(key),
                     (unsigned long long) s->view.rows[key].rv,
                     s->view.rows[key].there ? "" : "not ",
                     (unsigned long long) row->rv);
        }

        /* what has the same content has no event; after a restore its number
           may come to be another's */

        row->rv = row->there ? s->view.rows[key].rv : 0;
    }
}


void
sim_check_image(sim_t *s)
{
    if (s->process.inf == NULL) {
        return;
    }

    if (kube_zone_validate(s->mem, s->mem_size) != KUBE_OK) {
        sim_fail(s, "zone: its image is not valid");
    }

    view_make(s);
    image_find(s);

    if (kube_zone_ring_size(&s->zone) != 0) {
        image_follow(s);
    }
}


/* C7: nothing is added twice, and nothing goes that was not there. */
void
sim_check_change(void *ctx, kube_change_t change,
    const kube_record_t *record)
{
    sim_t             *s = ctx;
    unsigned           key;
    sim_held_t        *told;
    kube_record_id_t   id;

    key = check_key(record, &id);

    if (key == SIM_KEYS) {
        sim_fail(s, "a change of an object of none of ours");
    }

    told = &s->check.told[key];

    if (*told == (change == KUBE_CHANGE_ADD ? SIM_HELD : SIM_NOT_HELD)) {
        sim_fail(s, "C7: change %d of %s/%s, which is %sheld", (int) change,
                 sim_namespace(SIM_NS(key)), sim_name(key),
                 (*told == SIM_HELD) ? "" : "not ");
    }

    *told = (change == KUBE_CHANGE_ADD || change == KUBE_CHANGE_UPDATE)
            ? SIM_HELD : SIM_NOT_HELD;
}


static unsigned
request_scope(const sim_t *s, const sim_exchange_t *x)
{
    return x->shape + (s->by_namespace ? 2 * x->ns : 0);
}


void
sim_check_time(sim_t *s)
{
    unsigned               i;
    const sim_exchange_t  *x;

    for (i = 0; i < SIM_EXCHANGES; i++) {
        x = &s->exchanges[i];

        if (x->live && !x->watch && s->now_ms - x->started_ms >= CHECK_TURN_MS)
        {
            s->check.slow_ms = s->now_ms;
        }
    }
}


/*
 * C10, of requests in flight: a watch and a list a scope, which may be beside
 * it, and one more where one is silent.
 */
static void
request_beside(sim_t *s, const sim_exchange_t *x)
{
    unsigned               i, same[2], silent, lists;
    const sim_exchange_t  *y;

    same[false] = 0;
    same[true] = 0;
    silent = 0;
    lists = 0;

    for (i = 0; i < SIM_EXCHANGES; i++) {
        y = &s->exchanges[i];

        if (!y->live) {
            continue;
        }

        if (request_scope(s, y) == request_scope(s, x)) {
            same[y->watch]++;
            silent += (y->dead_ms != KUBE_NEVER);
        }

        lists += !y->watch;
    }

    if (same[true] + same[false] > 2u + (silent != 0)
        || (silent == 0 && (same[true] > 1 || same[false] > 1)))
    {
        sim_fail(s, "C10: %u watches and %u lists of scope %u at once",
                 same[true], same[false], request_scope(s, x));
    }

    if (lists > 1 && s->now_ms - s->check.slow_ms >= CHECK_SLOW_MS) {
        sim_fail(s, "C10: %u lists at once", lists);
    }
}


void
sim_check_request(sim_t *s, const sim_exchange_t *x)
{
    unsigned   scope;
    uint64_t   n, *ring, i;

    scope = request_scope(s, x);

    if (s->by_namespace && x->ns >= s->namespaces) {
        sim_fail(s, "C8: a request for a namespace that is not followed");
    }

    request_beside(s, x);

    /*
     * A list on demand may have been decided upon before the answer came; one
     * that is refused may give way to the watch, which it says nothing of.
     */

    if (!(s->faults & (SIM_FAULT(FULL) | SIM_FAULT(AHEAD) | SIM_FAULT(CRASH)))
        && !s->fills
        && !(x->watch && !x->initial && s->check.not_listed[scope])
        && s->now_ms < s->check.not_before_ms[scope])
    {
        sim_fail(s, "C10: a request %llu ms before Retry-After allows it",
                 (unsigned long long)
                 (s->check.not_before_ms[scope] - s->now_ms));
    }

    if (x->token != 0) {
        return;
    }

    ring = s->check.requests_ms[scope];
    ring[s->check.requests[scope]++ % 64] = s->now_ms;

    for (n = 0, i = s->check.requests[scope]; n < 64 && i != 0; n++) {
        if (s->now_ms - ring[--i % 64] >= CHECK_WINDOW_MS) {
            break;
        }
    }

    if (n > s->conf.totals->requests_max) {
        s->conf.totals->requests_max = n;
    }

    if (n > CHECK_REQUESTS_MAX) {
        sim_fail(s, "C10: %llu requests in ten seconds",
                 (unsigned long long) n);
    }
}


/*
 * What is asked for in another way may be asked at once; so may what goes on
 * where the first of two watches ended after the second was refused.
 */
void
sim_check_status(sim_t *s, const sim_exchange_t *x, int code,
    uint32_t retry_after_s)
{
    unsigned               i;
    const sim_exchange_t  *y;

    for (i = 0; i < SIM_EXCHANGES; i++) {
        y = &s->exchanges[i];

        if (y->live && y != x && request_scope(s, y) == request_scope(s, x)) {
            return;
        }
    }

    if (retry_after_s != 0 && (code == 429 || code == 503)) {
        s->check.not_before_ms[request_scope(s, x)]
            = s->now_ms + retry_after_s * 1000ull;
        s->check.not_listed[request_scope(s, x)] = (!x->watch || x->initial);
    }
}


/* C3, C9. */
const char *
sim_check_equal(sim_t *s)
{
    unsigned             scope, scopes, shape, ns, key;
    uint64_t             newest;
    ptrdiff_t            at;
    sim_record_t         record;
    const sim_era_t     *era;
    const sim_row_t     *row;
    kube_scope_info_t    info;

    static char  text[128];

    era = &s->etcd.eras[s->etcd.era];
    scopes = s->by_namespace ? 2 * s->namespaces : 2;

    if (s->process.inf == NULL || !kube_informer_synced(s->process.inf)) {
        return "the informer is not synced";
    }

    for (scope = 0; scope < scopes; scope++) {

        if (!scope_read(s, scope, &info, &record) || !info.synced
            || !scope_of(&info, &shape, &ns))
        {
            return "a scope shows no version";
        }

        newest = 0;

        for (key = 0; key < SIM_KEYS; key++) {
            at = era->last[key];

            if (scope_has(shape, ns, key) && at >= 0
                && era->log[at].at > newest)
            {
                newest = era->log[at].at;
            }
        }

        if (record.rv < newest || record.rv > era->rv) {
            snprintf(text, sizeof(text), "scope %u shows %llu, not %llu",
                     scope, (unsigned long long) record.rv,
                     (unsigned long long) newest);
            return text;
        }

        if (record.unnamed != 0 && !(s->faults & SIM_FAULT(FULL))) {
            return "objects are refused without a name";
        }
    }

    view_make(s);

    for (key = 0; key < SIM_KEYS; key++) {
        row = &s->view.rows[key];
        at = era->last[key];

        if ((s->by_namespace && SIM_NS(key) >= s->namespaces)
            || view_may_stay(s, SIM_NS(key)))
        {
            continue;
        }

        snprintf(text, sizeof(text), "%s/%s is not as it should be",
                 sim_namespace(SIM_NS(key)), sim_name(key));

        if (at < 0 || !era->log[at].state.live) {

            if (row->there || row->refused) {
                return text;
            }

            continue;
        }

        /* a name and a reason say enough, where there is one */

        if (row->refused || row->outdated) {

            if (era->log[at].state.huge
                || (s->faults & (SIM_FAULT(FULL) | SIM_FAULT(CRASH))))
            {
                continue;
            }

            return text;
        }

        if (row->there ? row->rv != era->log[at].state.rv
                       : !(s->faults & SIM_FAULT(FULL)))
        {
            return text;
        }
    }

    return NULL;
}

/*
 * sim_etcd - the cluster: a few Services and slices, their changes, and what
 * was true at each version of each past.
 *
 * It knows no server and no zone: what is true is known here without asking
 * the code under test, but for the digest of a record, which is made from the
 * object and not from its text.  For t/sim only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <stdlib.h>

#include "kube_record.h"
#include "sim.h"


static const char *const  sim_namespaces[] = { "shop", "infra", "blog" };


const char *
sim_namespace(unsigned ns)
{
    return sim_namespaces[ns];
}


const char *
sim_name(unsigned key)
{
    static const char *const  names[SIM_OBJECTS] = {
        "web", "api", "db", "cache",
        "sl-0", "sl-1", "sl-2", "sl-3", "sl-4", "sl-5", "sl-6", "sl-7"
    };

    return names[SIM_NUMBER(key)];
}


unsigned
sim_key(unsigned shape, kube_str_t ns, kube_str_t name)
{
    unsigned  key;

    for (key = 0; key < SIM_KEYS; key++) {

        if (SIM_SHAPE(key) == shape
            && kube_str_eq(name, kube_str(sim_name(key)))
            && kube_str_eq(ns, kube_str(sim_namespaces[SIM_NS(key)])))
        {
            break;
        }
    }

    return key;
}


uint64_t
sim_fingerprint(unsigned key, unsigned stamp, unsigned endpoints)
{
    uint64_t  words[3];

    words[0] = key;
    words[1] = stamp;
    words[2] = endpoints;

    return kube_hash64((kube_seed_t) { 1, 2 }, words, sizeof(words));
}


static void
era_sum(sim_change_t *change, const sim_state_t *state, bool add)
{
    uint64_t      *set, number;
    sim_sum_t     *sum;
    kube_digest_t  digest;

    static _Alignas(8) char  record[16384];

    if (!state->live || state->huge) {
        return;
    }

    (void) kube_record_write(sim_object(state), record, sizeof(record));
    digest = kube_record_digest((const kube_record_t *) record);
    sum = &change->sums[SIM_SHAPE(state->key)][SIM_NS(state->key)];

    if (add) {
        sum->count++;
        kube_digest_add(&sum->digest, digest);

    } else {
        sum->count--;
        kube_digest_sub(&sum->digest, digest);
    }

    if (SIM_SHAPE(state->key) == 0 || state->service == SIM_SERVICES) {
        return;
    }

    set = &change->sets[SIM_NS(state->key)][state->service];
    number = sim_fingerprint(state->key, state->stamp, state->endpoints);
    *set += add ? number : 0 - number;
}


static void
era_append(sim_era_t *era, uint64_t at, const sim_state_t *state)
{
    sim_change_t  *change;

    if (era->n == era->cap) {
        era->cap = era->cap ? 2 * era->cap : 256;
        era->log = realloc(era->log, era->cap * sizeof(sim_change_t));

        if (era->log == NULL) {
            abort();
        }
    }

    change = &era->log[era->n];

    if (era->n != 0) {
        *change = era->log[era->n - 1];

    } else {
        memset(change, 0, sizeof(sim_change_t));
    }

    change->before = era->last[state->key];

    if (change->before >= 0) {
        era_sum(change, &era->log[change->before].state, false);
    }

    change->at = at;
    change->state = *state;
    era_sum(change, state, true);

    era->last[state->key] = (ptrdiff_t) era->n++;
    era->rv = at;
}


ptrdiff_t
sim_era_find(const sim_era_t *era, uint64_t rv)
{
    size_t  low, high, middle;

    low = 0;
    high = era->n;

    while (low < high) {
        middle = (low + high) / 2;

        if (era->log[middle].at <= rv) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return (ptrdiff_t) low - 1;
}


ptrdiff_t
sim_era_version(const sim_era_t *era, unsigned key, uint64_t rv)
{
    ptrdiff_t  i;

    for (i = era->last[key]; i >= 0; i = era->log[i].before) {

        if (era->log[i].state.rv == rv) {
            return i;
        }
    }

    return -1;
}


static void
era_init(sim_era_t *era)
{
    unsigned  key;

    memset(era, 0, sizeof(sim_era_t));

    for (key = 0; key < SIM_KEYS; key++) {
        era->last[key] = -1;
    }
}


static void
etcd_put(sim_t *s, sim_state_t *state)
{
    uint64_t    at;
    sim_era_t  *era;

    era = &s->etcd.eras[s->etcd.era];

    /* what others write counts too */
    at = era->rv + sim_draw(s, 1, sim_once_in(s, 20) ? 50 : 3);
    state->rv = at;
    era_append(era, at, state);

    s->etcd.changes++;
    s->etcd.newest = (at > s->etcd.newest) ? at : s->etcd.newest;

    sim_say(s, "change %zu: %s/%s@%llu %s%s%s", era->n - 1,
            sim_namespace(SIM_NS(state->key)), sim_name(state->key),
            (unsigned long long) at, state->live ? "put" : "deleted",
            (SIM_SHAPE(state->key) && state->service != SIM_SERVICES)
            ? " of " : "",
            (SIM_SHAPE(state->key) && state->service != SIM_SERVICES)
            ? sim_name(state->service) : "");
}


void
sim_etcd_write(sim_t *s)
{
    unsigned      key;
    ptrdiff_t     last;
    sim_era_t    *era;
    sim_state_t   state;

    era = &s->etcd.eras[s->etcd.era];
    key = (unsigned) sim_draw(s, 0, SIM_KEYS - 1);
    last = era->last[key];

    memset(&state, 0, sizeof(sim_state_t));

    if (last >= 0) {
        state = era->log[last].state;
    }

    if (state.live && sim_once_in(s, 5)) {
        state.live = false;
        etcd_put(s, &state);
        return;
    }

    if (!state.live) {
        state.key = key;
        state.uid = ++s->etcd.stamp;
        state.service = (key + 1) % (SIM_SERVICES + 1);
        state.live = true;
        state.stamp = ++s->etcd.stamp;

    } else if (!sim_once_in(s, 10)) {
        state.stamp = ++s->etcd.stamp;
    }

    if (sim_fault(s, SIM_FAULT_MOVE, 8)) {
        state.service = (unsigned) sim_draw(s, 0, SIM_SERVICES);
    }

    state.endpoints = SIM_SHAPE(key)
                      ? 1 + (state.stamp * 7 + key) % s->endpoints : 0;
    state.huge = sim_fault(s, SIM_FAULT_HUGE, 12);

    etcd_put(s, &state);
}


/* Others write a million times; what came before can be gone back to. */
void
sim_etcd_jump(sim_t *s)
{
    unsigned     scope;
    sim_era_t   *era;

    era = &s->etcd.eras[s->etcd.era];

    /* who has not seen that versions went back would not see it any more */

    for (scope = 0; scope < SIM_SCOPES; scope++) {

        if (s->check.scopes[scope].rv != 0
            && s->check.scopes[scope].place.era != s->etcd.era)
        {
            return;
        }
    }

    if (era->n == era->base || era->n == 0 || s->etcd.point != 0) {
        return;
    }

    s->etcd.point = era->n;
    era->rv += SIM_JUMP;
    s->etcd.newest = (era->rv > s->etcd.newest) ? era->rv : s->etcd.newest;
    sim_say(s, "versions jump to %llu", (unsigned long long) era->rv);
}


/*
 * What a process published beyond the scope's version, before it died, nobody
 * takes back where the server goes back as well before the next one asks: it
 * stays until a list.  So all scopes have to be beyond the jump.
 */
static bool
etcd_is_beyond(const sim_t *s)
{
    unsigned  scope, scopes;
    uint64_t  rv;

    scopes = s->by_namespace ? 2 * s->namespaces : 2;
    rv = s->etcd.eras[s->etcd.era].log[s->etcd.point - 1].at + SIM_JUMP;

    for (scope = 0; scope < scopes; scope++) {

        if (s->check.scopes[scope].place.era != s->etcd.era
            || s->check.scopes[scope].rv < rv)
        {
            return false;
        }
    }

    return true;
}


bool
sim_etcd_restore(sim_t *s, bool ahead)
{
    size_t       to, i;
    uint64_t     rv;
    unsigned     key;
    sim_era_t   *era, *old;
    sim_state_t  states[SIM_KEYS];

    old = &s->etcd.eras[s->etcd.era];

    if (s->etcd.era + 1 == SIM_ERAS
        || old->n == 0
        || (!ahead && (s->etcd.point == 0 || !etcd_is_beyond(s))))
    {
        return false;
    }

    to = ahead ? (size_t) sim_draw(s, 1, old->n) : s->etcd.point;
    rv = ahead ? s->etcd.newest + SIM_JUMP : old->log[to - 1].at;

    memset(states, 0, sizeof(states));

    for (i = 0; i < to; i++) {
        states[old->log[i].state.key] = old->log[i].state;
    }

    s->etcd.era++;
    s->etcd.point = 0;
    era = &s->etcd.eras[s->etcd.era];
    era_init(era);

    for (key = 0; key < SIM_KEYS; key++) {
        if (states[key].live) {
            era_append(era, rv, &states[key]);
        }
    }

    era->base = era->n;
    era->rv = rv;
    s->etcd.newest = (rv > s->etcd.newest) ? rv : s->etcd.newest;

    s->restored = true;

    sim_say(s, "restored from a backup: %llu now", (unsigned long long) rv);

    return true;
}


void
sim_etcd_init(sim_t *s)
{
    unsigned  n;

    era_init(&s->etcd.eras[0]);
    s->etcd.eras[0].rv = 100;

    for (n = 0; n < SIM_KEYS; n++) {
        sim_etcd_write(s);
    }
}


void
sim_etcd_done(sim_t *s)
{
    unsigned  i;

    for (i = 0; i < SIM_ERAS; i++) {
        free(s->etcd.eras[i].log);
    }
}

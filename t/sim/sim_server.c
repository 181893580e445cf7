/*
 * sim_server - what an API server answers: heads, lists by pages, watches,
 * WatchLists, and its ways to fail.
 *
 * It is the watch cache of kube-apiserver in small: a replica knows the changes
 * up to some version and the events since another one; a list at "" is a quorum
 * read, one at N waits until N is known, a watch at a version to come is
 * silent.  It sends nothing: sim_net.c does.  For t/sim only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "sim.h"


/* How long a request waits for a version before it is refused. */
#define SERVER_WAIT_MS  3000

#define SERVER_JSON     "application/json"

/* Of an endpoint: names that share nothing take room. */
#define SERVER_POD      "%u-of-a-deployment-%u"


static const char *const  server_kinds[SIM_SHAPES] = {
    "Service", "EndpointSlice"
};

/* Refusals of a request or of a watch, as the real server words them. */
static const struct {
    int          code;
    uint32_t     retry_after_s;
    const char  *reason;
    const char  *more;
} server_statuses[] = {
    { 410, 0, "Expired", "" },
    { 504, 1, "Timeout", ",\"message\":\"Too large resource version\","
      "\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}],"
      "\"retryAfterSeconds\":1}" },
    { 504, 0, "Timeout", "" },
    { 500, 0, "InternalError", "" },
    { 503, 0, "ServiceUnavailable", "" },
    { 503, 7, "ServiceUnavailable", "" },
    { 429, 1, "TooManyRequests", "" },
    { 429, 6, "TooManyRequests", "" },
    { 403, 0, "Forbidden", "" },
    { 404, 0, "NotFound", "" },
    { 400, 0, "BadRequest", "" },
    { 422, 0, "Invalid", "" },
    { 401, 0, "Unauthorized", "" },
    { 302, 0, "", "" },
    { 204, 0, "", "" }
};


static sim_era_t *
server_era(sim_t *s, const sim_replica_t *r)
{
    return &s->etcd.eras[r->era];
}


/* The version a replica is at. */
static uint64_t
server_rv(sim_t *s, const sim_replica_t *r)
{
    sim_era_t  *era;

    era = server_era(s, r);

    return (r->applied == era->n) ? era->rv
           : (r->applied != 0) ? era->log[r->applied - 1].at : 1;
}


void
sim_server_apply(sim_t *s, unsigned replica, size_t n)
{
    sim_era_t      *era;
    sim_replica_t  *r;

    r = &s->replicas[replica];
    era = server_era(s, r);

    while (n-- != 0 && r->applied < era->n) {
        r->states[era->log[r->applied].state.key]
            = era->log[r->applied].state;
        r->applied++;
    }
}


void
sim_server_restart(sim_t *s, unsigned replica)
{
    sim_replica_t  *r;

    r = &s->replicas[replica];
    memset(r, 0, sizeof(sim_replica_t));

    r->era = s->etcd.era;
    sim_server_apply(s, replica, SIZE_MAX);
    r->window = server_rv(s, r);
}


void
sim_servers_init(sim_t *s)
{
    unsigned  i;

    for (i = 0; i < SIM_REPLICAS; i++) {
        sim_server_restart(s, i);
    }
}


/* As the decoder is to read it. */
const kube_object_t *
sim_object(const sim_state_t *state)
{
    unsigned       i;
    kube_meta_t   *meta;

    static char             uid[24], rv[24], pods[SIM_ENDPOINTS][64];
    static kube_port_t      port;
    static kube_object_t    object;
    static kube_endpoint_t  endpoints[SIM_ENDPOINTS];

    memset(&object, 0, sizeof(kube_object_t));
    memset(&port, 0, sizeof(kube_port_t));
    memset(endpoints, 0, state->endpoints * sizeof(kube_endpoint_t));

    snprintf(uid, sizeof(uid), "u-%u", state->uid);
    snprintf(rv, sizeof(rv), "%llu", (unsigned long long) state->rv);

    meta = &object.u.meta;
    meta->ns = kube_str(sim_namespace(SIM_NS(state->key)));
    meta->name = kube_str(sim_name(state->key));
    meta->uid = kube_str(uid);
    meta->rv = kube_str(rv);
    port.name = KUBE_STR("http");

    if (SIM_SHAPE(state->key) == 0) {
        object.resource = KUBE_RESOURCE_SERVICES;
        object.u.service.cluster_ips[0] = (kube_addr_t) {
            KUBE_FAMILY_IPV4, { 10, (uint8_t) (state->stamp >> 16),
                                (uint8_t) (state->stamp >> 8),
                                (uint8_t) state->stamp }
        };
        object.u.service.cluster_ips_n = 1;
        object.u.service.ports = &port;
        object.u.service.ports_n = 1;
        port.port = 80;

        return &object;
    }

    object.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    port.port = 8080;

    if (state->service != SIM_SERVICES) {
        object.u.slice.service = kube_str(sim_name(state->service));
    }

    object.u.slice.family = KUBE_FAMILY_IPV4;
    object.u.slice.ports = &port;
    object.u.slice.ports_n = 1;
    object.u.slice.endpoints = endpoints;
    object.u.slice.endpoints_n = state->endpoints;

    for (i = 0; i < state->endpoints; i++) {
        snprintf(pods[i], sizeof(pods[i]), SERVER_POD, i, state->stamp);
        endpoints[i].address = (kube_addr_t) {
            KUBE_FAMILY_IPV4, { (uint8_t) (20 + i),
                                (uint8_t) (state->stamp >> 16),
                                (uint8_t) (state->stamp >> 8),
                                (uint8_t) state->stamp }
        };
        endpoints[i].ready = true;
        endpoints[i].serving = true;
        endpoints[i].pod = kube_str(pods[i]);
    }

    return &object;
}


static void
server_object(const sim_t *s, sim_exchange_t *x, const sim_state_t *o)
{
    unsigned  i;

    sim_out(x, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{"
            "\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%u\","
            "\"resourceVersion\":\"%llu\"", server_kinds[SIM_SHAPE(o->key)],
            SIM_SHAPE(o->key) ? "discovery.k8s.io/v1" : "v1",
            sim_name(o->key), sim_namespace(SIM_NS(o->key)), o->uid,
            (unsigned long long) o->rv);

    if (SIM_SHAPE(o->key) && o->service != SIM_SERVICES) {
        sim_out(x, ",\"labels\":{\"kubernetes.io/service-name\":\"%s\"}",
                sim_name(o->service));
    }

    if (o->huge) {
        sim_out(x, ",\"annotations\":{\"a\":\"%0*d\"}",
                (int) s->object_max + 500, 0);
    }

    if (SIM_SHAPE(o->key) == 0) {
        sim_out(x, "},\"spec\":{\"ports\":[{\"name\":\"http\",\"protocol\":"
                "\"TCP\",\"port\":80}],\"clusterIP\":\"10.%u.%u.%u\","
                "\"type\":\"ClusterIP\"}}", (o->stamp >> 16) & 255,
                (o->stamp >> 8) & 255, o->stamp & 255);
        return;
    }

    sim_out(x, "},\"addressType\":\"IPv4\",\"endpoints\":[");

    for (i = 0; i < o->endpoints; i++) {
        sim_out(x, "%s{\"addresses\":[\"%u.%u.%u.%u\"],\"conditions\":{"
                "\"ready\":true},\"targetRef\":{\"kind\":\"Pod\",\"name\":"
                "\"" SERVER_POD "\"}}", i ? "," : "", 20 + i,
                (o->stamp >> 16) & 255, (o->stamp >> 8) & 255, o->stamp & 255,
                i, o->stamp);
    }

    sim_out(x, "],\"ports\":[{\"name\":\"http\",\"port\":8080,"
            "\"protocol\":\"TCP\"}]}");
}


static void
server_event(const sim_t *s, sim_exchange_t *x, const char *type,
    const sim_state_t *o)
{
    sim_out(x, "{\"type\":\"%s\",\"object\":", type);
    server_object(s, x, o);
    sim_out(x, "}\n");
}


static void
server_bookmark(sim_exchange_t *x, uint64_t rv, bool end)
{
    sim_out(x, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\","
            "\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%llu\""
            "%s}}}\n", server_kinds[x->shape],
            x->shape ? "discovery.k8s.io/v1" : "v1", (unsigned long long) rv,
            end ? ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
                : "");
    x->marked = rv;
}


static void
server_refuse(sim_exchange_t *x, sim_head_t *head, int code,
    uint32_t retry_after_s)
{
    size_t  i;

    head->code = code;
    head->retry_after_s = retry_after_s;
    x->last = true;
    x->end_rc = KUBE_OK;

    for (i = 0; i < sizeof(server_statuses) / sizeof(server_statuses[0]);
         i++)
    {
        if (server_statuses[i].code == code) {
            break;
        }
    }

    if (code == 204 || code == 302
        || i == sizeof(server_statuses) / sizeof(server_statuses[0]))
    {
        return;
    }

    sim_out(x, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":"
            "\"Failure\",\"reason\":\"%s\",\"code\":%d%s}",
            server_statuses[i].reason, code, server_statuses[i].more);
}


/* Waits for a version, then says that it is too large. */
static bool
server_waits(sim_t *s, sim_exchange_t *x, sim_head_t *head)
{
    if (x->rv <= server_rv(s, &s->replicas[x->replica])) {
        return false;
    }

    if (s->now_ms - x->started_ms < SERVER_WAIT_MS) {
        head->wait = true;

    } else {
        server_refuse(x, head, 504, 1);
    }

    return true;
}


static bool
server_shows(const sim_exchange_t *x, const sim_state_t *state)
{
    return state->live
           && SIM_SHAPE(state->key) == x->shape
           && (x->ns == SIM_NAMESPACES || SIM_NS(state->key) == x->ns);
}


/* A page of a snapshot, from that key on. */
static void
server_page(const sim_t *s, sim_exchange_t *x, const sim_snapshot_t *snapshot)
{
    unsigned  key, end, n;

    n = 0;
    end = SIM_KEYS;

    for (key = x->token_at; key < SIM_KEYS; key++) {

        if (!server_shows(x, &snapshot->states[key])) {
            continue;
        }

        if (x->limit != 0 && n == x->limit) {
            end = key;
            break;
        }

        n++;
    }

    sim_out(x, "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{"
            "\"resourceVersion\":\"%llu\"", server_kinds[x->shape],
            x->shape ? "discovery.k8s.io/v1" : "v1",
            (unsigned long long) snapshot->rv);

    if (end != SIM_KEYS) {
        sim_out(x, ",\"continue\":\"%llu\",\"remainingItemCount\":1",
                (unsigned long long) (snapshot->id * SIM_KEYS + end));
    }

    sim_out(x, "},\"items\":[");

    for (n = 0, key = x->token_at; key < end; key++) {

        if (server_shows(x, &snapshot->states[key])) {
            sim_out(x, "%s", n++ ? "," : "");
            server_object(s, x, &snapshot->states[key]);
        }
    }

    sim_out(x, "]}");
    x->last = true;
    x->end_rc = KUBE_OK;
}


/* Remembers what a replica has, for the pages to come. */
static sim_snapshot_t *
server_snapshot(sim_t *s, const sim_replica_t *r)
{
    sim_snapshot_t  *snapshot;

    s->snapshots_n++;
    snapshot = &s->snapshots[s->snapshots_n % SIM_SNAPSHOTS];
    snapshot->id = s->snapshots_n;
    snapshot->rv = server_rv(s, r);
    memcpy(snapshot->states, r->states, sizeof(snapshot->states));

    return snapshot;
}


static void
server_list(sim_t *s, sim_exchange_t *x, sim_head_t *head)
{
    sim_replica_t   *r;
    sim_snapshot_t  *snapshot;

    r = &s->replicas[x->replica];

    if (x->token != 0) {
        snapshot = &s->snapshots[x->token % SIM_SNAPSHOTS];

        if (snapshot->id != x->token || sim_fault(s, SIM_FAULT_COMPACT, 8)) {
            server_refuse(x, head, 410, 0);
            return;
        }

        server_page(s, x, snapshot);
        return;
    }

    if (x->no_rv) {
        sim_server_apply(s, x->replica, SIZE_MAX);

    } else if (!sim_fault(s, SIM_FAULT_STALE, 2)
               && server_waits(s, x, head))
    {
        return;
    }

    snapshot = server_snapshot(s, r);
    server_page(s, x, snapshot);
}


static void
server_expired(sim_exchange_t *x)
{
    sim_out(x, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\","
            "\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}}\n");
    x->last = true;
    x->end_rc = KUBE_OK;
}


void
sim_server_expire(sim_t *s, sim_exchange_t *x)
{
    if (x->floor > server_rv(s, &s->replicas[x->replica])) {
        server_expired(x);
    }
}


static void
server_watch(sim_t *s, sim_exchange_t *x, sim_head_t *head)
{
    ptrdiff_t       at;
    sim_replica_t  *r;

    r = &s->replicas[x->replica];

    if (x->rv < r->window || (s->quiet && x->rv > server_rv(s, r))) {

        if (sim_once_in(s, 2)) {
            server_refuse(x, head, 410, 0);

        } else {
            server_expired(x);
        }

        return;
    }

    at = sim_era_find(server_era(s, r), x->rv);
    x->next = (size_t) (at + 1);
    x->floor = x->rv;
    x->marked = x->rv;
}


static void
server_watch_list(sim_t *s, sim_exchange_t *x, sim_head_t *head)
{
    unsigned        key;
    sim_replica_t  *r;

    r = &s->replicas[x->replica];

    if (!s->watch_list) {
        server_refuse(x, head, 422, 0);
        return;
    }

    if (x->rv == 0) {
        sim_server_apply(s, x->replica, SIZE_MAX);

    } else if (server_waits(s, x, head)) {
        return;
    }

    x->next = r->applied;
    x->floor = server_rv(s, r);

    /* one that is never ended */

    if (sim_fault(s, SIM_FAULT_NO_WATCH_LIST, 4))
    {
        return;
    }

    for (key = 0; key < SIM_KEYS; key++) {

        if (!server_shows(x, &r->states[key])) {
            continue;
        }

        /* what is there may change meanwhile, and be marked */

        server_event(s, x, (!s->quiet && sim_once_in(s, 16)) ? "MODIFIED"
                                                             : "ADDED",
                     &r->states[key]);
    }

    server_bookmark(x, x->floor, true);
}


void
sim_server_answer(sim_t *s, sim_exchange_t *x, sim_head_t *head)
{
    size_t          i;
    sim_replica_t  *r;

    r = &s->replicas[x->replica];

    *head = (sim_head_t) { .code = 200, .type = SERVER_JSON };

    switch (r->mode) {

    case SIM_MODE_REFUSED:
        head->rc = KUBE_CONNECT;
        return;

    case SIM_MODE_TLS:
        head->rc = KUBE_TLS;
        return;

    case SIM_MODE_NO_HTTP:
        head->rc = KUBE_PROTO;
        return;

    case SIM_MODE_SILENT:
        x->dead_ms = s->now_ms;
        head->wait = true;
        return;

    case SIM_MODE_STATUS:
        server_refuse(x, head, r->code, r->retry_after_s);
        return;

    case SIM_MODE_HTML:
        head->type = "text/html";
        sim_out(x, "<html>");
        x->last = true;
        return;

    case SIM_MODE_MUTE:
        x->mute = true;
        return;

    default:
        break;
    }

    if (s->sent_token != s->token) {
        server_refuse(x, head, 401, 0);
        return;
    }

    if (!x->held && sim_fault(s, SIM_FAULT_STATUS, 12)) {
        i = (size_t) sim_draw(s, 0, sizeof(server_statuses)
                                    / sizeof(server_statuses[0]) - 1);
        server_refuse(x, head, server_statuses[i].code,
                      server_statuses[i].retry_after_s);
        return;
    }

    if (!x->watch) {
        server_list(s, x, head);

    } else if (x->initial) {
        server_watch_list(s, x, head);

    } else {
        server_watch(s, x, head);
    }

    x->held = head->wait;
}


void
sim_server_more(sim_t *s, sim_exchange_t *x)
{
    unsigned             n;
    uint64_t             rv;
    sim_era_t           *era;
    sim_replica_t       *r;
    const sim_change_t  *change;
    const sim_state_t   *old;

    r = &s->replicas[x->replica];
    era = server_era(s, r);

    for (n = 0; x->next < r->applied && n < 8; x->next++) {
        change = &era->log[x->next];

        if (change->at <= x->floor
            || SIM_SHAPE(change->state.key) != x->shape
            || (x->ns != SIM_NAMESPACES
                && SIM_NS(change->state.key) != x->ns))
        {
            continue;
        }

        old = (change->before >= 0) ? &era->log[change->before].state : NULL;
        n++;

        if (change->state.live) {
            server_event(s, x, (old != NULL && old->live) ? "MODIFIED"
                                                          : "ADDED",
                         &change->state);

        } else if (old != NULL && old->live) {
            server_event(s, x, "DELETED", &change->state);
        }
    }

    rv = server_rv(s, r);

    if (s->bookmarks && x->next == r->applied && rv > x->marked
        && rv > x->floor && sim_once_in(s, s->quiet ? 2 : 12))
    {
        server_bookmark(x, rv, false);
    }
}


void
sim_server_error_event(sim_t *s, sim_exchange_t *x)
{
    size_t  i;

    i = (size_t) sim_draw(s, 0, sizeof(server_statuses)
                                / sizeof(server_statuses[0]) - 3);

    sim_out(x, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\","
            "\"status\":\"Failure\",\"reason\":\"%s\",\"code\":%d%s}}\n",
            server_statuses[i].reason, server_statuses[i].code,
            server_statuses[i].more);
    x->last = true;
    x->end_rc = KUBE_OK;
}


void
sim_server_garbage(sim_t *s, sim_exchange_t *x)
{
    static const char *const  texts[] = {
        "}}", "<html>502 Bad Gateway</html>", "{\"type\":\"ADDED\",]", "\x01"
    };

    sim_out(x, "%s\n", texts[sim_draw(s, 0, 3)]);
    x->last = true;
    x->end_rc = sim_once_in(s, 2) ? KUBE_OK : KUBE_CLOSED;
}


void
sim_server_unreadable(sim_t *s, sim_exchange_t *x)
{
    (void) s;

    sim_out(x, "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"%s\","
            "\"metadata\":{\"name\":5}}}\n", server_kinds[x->shape]);
}

/*
 * server_bed - a small API server over io_bed: objects, one version counter,
 * lists and watches with a window; and the check of the core promise.
 *
 * For test_informer*; not part of the product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SERVER_BED_H
#define KUBE_SERVER_BED_H


/* Lists of a few hundred objects; the bed is on the heap. */
#define IO_BODY_MAX  (1u << 20)

#include "io_bed.h"

#include "kube_informer.h"
#include "kube_list_turn.h"
#include "kube_zone_counters.h"
#include "kube_zone_guard.h"
#include "kube_zone_reader.h"
#include "kube_zone_scope.h"


#define SERVER_OBJECTS_MAX  2048
#define SERVER_LOG_MAX      8192

/* The newest state of a key; a deleted one keeps its row. */
typedef struct {
    kube_resource_t  resource;
    bool             live;
    char             ns[16];
    char             name[32];
    char             service[32];
    unsigned         ip;
    unsigned         endpoints;       /* of a slice */
    bool             malformed;       /* the same: it cannot be held */
    uint64_t         rv;
} server_object_t;

typedef struct {
    uint64_t         rv;
    const char      *type;
    server_object_t  object;
} server_event_t;

typedef struct {
    io_bed_t         io;
    server_object_t  objects[SERVER_OBJECTS_MAX];
    unsigned         objects_n;
    server_event_t   log[SERVER_LOG_MAX];
    unsigned         log_n;
    uint64_t         rv;
    uint64_t         window;          /* events up to it are forgotten */
    uint64_t         sent[64 * 1024]; /* by exchange: up to this version */
    unsigned         lists;
    unsigned         watches;
    unsigned         lists_at_once;   /* most lists seen in flight together,
                                         none of them for as long as a turn */
    unsigned         endpoints;       /* of the next slices; 0: one */
    bool             malformed;       /* the next slices are */
    bool             mute;            /* answers nothing */
    bool             no_slices;       /* as before Kubernetes 1.21 */
    size_t           cut_list;        /* next list ends after so many bytes */
    bool             cut_end;         /* next list lacks its last bracket */
} server_t;


static inline server_object_t *
server_row(server_t *s, kube_resource_t resource, const char *ns,
    const char *name)
{
    unsigned          i;
    server_object_t  *o;

    for (i = 0; i < s->objects_n; i++) {
        o = &s->objects[i];

        if (o->resource == resource
            && strcmp(o->ns, ns) == 0
            && strcmp(o->name, name) == 0)
        {
            return o;
        }
    }

    assert_true(s->objects_n < SERVER_OBJECTS_MAX);

    o = &s->objects[s->objects_n++];
    memset(o, 0, sizeof(server_object_t));

    o->resource = resource;
    snprintf(o->ns, sizeof(o->ns), "%s", ns);
    snprintf(o->name, sizeof(o->name), "%s", name);

    return o;
}


static inline void
server_log(server_t *s, const char *type, server_object_t *o)
{
    assert_true(s->log_n < SERVER_LOG_MAX);

    o->rv = ++s->rv;

    s->log[s->log_n].rv = o->rv;
    s->log[s->log_n].type = type;
    s->log[s->log_n].object = *o;
    s->log_n++;
}


static inline void
server_put(server_t *s, kube_resource_t resource, const char *ns,
    const char *name, const char *service, unsigned ip)
{
    bool              was;
    server_object_t  *o;

    o = server_row(s, resource, ns, name);
    was = o->live;

    o->live = true;
    o->ip = ip;
    o->endpoints = s->endpoints ? s->endpoints : 1;
    o->malformed = s->malformed;
    snprintf(o->service, sizeof(o->service), "%s", service);

    server_log(s, was ? "MODIFIED" : "ADDED", o);
}


static inline void
server_put_service(server_t *s, const char *ns, const char *name, unsigned ip)
{
    server_put(s, KUBE_RESOURCE_SERVICES, ns, name, "", ip);
}


static inline void
server_put_slice(server_t *s, const char *ns, const char *name,
    const char *service, unsigned ip)
{
    server_put(s, KUBE_RESOURCE_ENDPOINTSLICES, ns, name, service, ip);
}


/* Endpoints bear the name of their Service. */
static inline void
server_put_endpoints(server_t *s, const char *ns, const char *name,
    unsigned ip)
{
    server_put(s, KUBE_RESOURCE_ENDPOINTS, ns, name, name, ip);
}


static inline void
server_delete(server_t *s, kube_resource_t resource, const char *ns,
    const char *name)
{
    server_object_t  *o;

    o = server_row(s, resource, ns, name);

    if (o->live) {
        o->live = false;
        server_log(s, "DELETED", o);
    }
}


static inline size_t
server_json(const server_object_t *o, char *out, size_t size)
{
    size_t    n;
    unsigned  i;

    if (o->resource == KUBE_RESOURCE_SERVICES) {
        return (size_t) snprintf(out, size,
            "{\"kind\":\"Service\",\"apiVersion\":\"v1\",\"metadata\":{"
            "\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%s\","
            "\"resourceVersion\":\"%llu\"},\"spec\":{\"type\":\"ClusterIP\","
            "\"clusterIP\":\"10.1.%u.%u\",\"ports\":[{\"name\":\"http\","
            "\"port\":80,\"protocol\":\"TCP\"}]}}", o->name, o->ns, o->name,
            (unsigned long long) o->rv, o->ip / 250, o->ip % 250);
    }

    if (o->resource == KUBE_RESOURCE_ENDPOINTS) {
        return (size_t) snprintf(out, size,
            "{\"kind\":\"Endpoints\",\"apiVersion\":\"v1\",\"metadata\":{"
            "\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"e-%s\","
            "\"resourceVersion\":\"%llu\"},\"subsets\":[{\"addresses\":["
            "{\"ip\":\"10.2.%u.%u\"}],\"ports\":[{\"name\":\"http\","
            "\"port\":8080,\"protocol\":\"TCP\"}]}]}", o->name, o->ns,
            o->name, (unsigned long long) o->rv, o->ip / 250, o->ip % 250);
    }

    n = (size_t) snprintf(out, size,
        "{\"kind\":\"EndpointSlice\",\"apiVersion\":\"discovery.k8s.io/v1\","
        "\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%s\","
        "\"resourceVersion\":\"%llu\",\"labels\":{"
        "\"kubernetes.io/service-name\":\"%s\"}},\"addressType\":%s,"
        "\"ports\":[{\"name\":\"http\",\"port\":8080,"
        "\"protocol\":\"TCP\"}],\"endpoints\":[", o->name, o->ns, o->name,
        (unsigned long long) o->rv, o->service,
        o->malformed ? "[]" : "\"IPv4\"");

    for (i = 0; i < o->endpoints; i++) {
        n += (size_t) snprintf(out + n, size - n,
            "%s{\"addresses\":[\"10.%u.%u.%u\"],\"targetRef\":{\"kind\":"
            "\"Pod\",\"name\":\"%s-%u-%u\"}}", i ? "," : "", i,
            o->ip / 250, o->ip % 250, o->name, o->ip, i);
    }

    n += (size_t) snprintf(out + n, size - n, "]}");
    assert_true(n < size);

    return n;
}


/* What a request is about: resource, namespace ("": all), version (0: none). */
static inline kube_resource_t
server_asked(const char *path, char ns[16], uint64_t *rv)
{
    size_t       n;
    const char  *p;

    ns[0] = '\0';
    p = strstr(path, "/namespaces/");

    if (p != NULL) {
        p += strlen("/namespaces/");
        n = strcspn(p, "/");
        assert_true(n < 16);
        memcpy(ns, p, n);
        ns[n] = '\0';
    }

    *rv = 0;
    p = strstr(path, "resourceVersion=");

    if (p != NULL) {
        *rv = strtoull(p + strlen("resourceVersion="), NULL, 10);
    }

    return strstr(path, "/endpointslices") != NULL
           ? KUBE_RESOURCE_ENDPOINTSLICES
           : strstr(path, "/endpoints") != NULL
             ? KUBE_RESOURCE_ENDPOINTS : KUBE_RESOURCE_SERVICES;
}


static inline void
server_list(server_t *s, io_exchange_t *x)
{
    char             ns[16];
    size_t           n;
    unsigned         i;
    uint64_t         rv;
    const char      *comma;
    kube_resource_t  resource;

    static char  body[IO_BODY_MAX];

    resource = server_asked(x->path, ns, &rv);
    comma = "";

    if (resource == KUBE_RESOURCE_ENDPOINTSLICES && s->no_slices) {
        (void) io_head(x, 404, "text/plain", 0);
        (void) io_body(&s->io, x, "404 page not found\n");
        return;
    }

    n = (size_t) snprintf(body, sizeof(body),
                          "{\"kind\":\"%s\",\"metadata\":{"
                          "\"resourceVersion\":\"%llu\"},\"items\":[",
                          kube_resource_info(resource)->list_kind,
                          (unsigned long long) s->rv);

    for (i = 0; i < s->objects_n; i++) {

        if (!s->objects[i].live
            || s->objects[i].resource != resource
            || (ns[0] != '\0' && strcmp(ns, s->objects[i].ns) != 0))
        {
            continue;
        }

        n += (size_t) snprintf(body + n, sizeof(body) - n, "%s", comma);
        n += server_json(&s->objects[i], body + n, sizeof(body) - n);
        assert_true(n + 8192 < sizeof(body));
        comma = ",";
    }

    n += (size_t) snprintf(body + n, sizeof(body) - n, "]}");

    s->lists++;

    if (!io_head(x, 200, "application/json", 0)) {
        return;
    }

    if (s->cut_end) {
        s->cut_end = false;
        s->cut_list = n - 2;
    }

    if (s->cut_list != 0 && s->cut_list < n) {
        body[s->cut_list] = '\0';
        s->cut_list = 0;

        if (io_body(&s->io, x, body) && !x->paused) {
            io_done(x, KUBE_CLOSED, "cut off");
        }

        return;
    }

    (void) io_body(&s->io, x, body);
}


static inline void
server_watch(server_t *s, io_exchange_t *x)
{
    char      ns[16];
    uint64_t  rv;

    (void) server_asked(x->path, ns, &rv);
    assert_true(rv != 0);
    assert_true(x->number < sizeof(s->sent) / sizeof(s->sent[0]));

    s->watches++;
    s->sent[x->number] = rv;

    if (rv < s->window) {
        io_answer(&s->io, x, 410,
                  "{\"kind\":\"Status\",\"reason\":\"Expired\",\"code\":410}");
        return;
    }

    (void) io_head(x, 200, "application/json", 0);
}


static inline void
server_events(server_t *s, io_exchange_t *x)
{
    char              ns[16], text[8192];
    size_t            n;
    unsigned          i;
    uint64_t          rv;
    kube_resource_t   resource;
    server_event_t   *e;

    resource = server_asked(x->path, ns, &rv);

    for (i = 0; i < s->log_n && x->live && !x->paused; i++) {
        e = &s->log[i];

        if (e->rv <= s->sent[x->number]
            || e->object.resource != resource
            || (ns[0] != '\0' && strcmp(ns, e->object.ns) != 0))
        {
            continue;
        }

        s->sent[x->number] = e->rv;

        n = (size_t) snprintf(text, sizeof(text),
                              "{\"type\":\"%s\",\"object\":", e->type);
        n += server_json(&e->object, text + n, sizeof(text) - n);
        snprintf(text + n, sizeof(text) - n, "}\n");

        (void) io_body(&s->io, x, text);
    }
}


/* Does what a server would do now. */
static inline void
server_run(server_t *s)
{
    bool            watch;
    unsigned        i, lists;
    io_exchange_t  *x;

    lists = 0;

    for (i = 0; i < IO_EXCHANGES_MAX; i++) {
        x = &s->io.exchanges[i];
        watch = (x->live && strstr(x->path, "watch=true") != NULL);
        lists += (x->live && !watch
                  && s->io.now_ms - x->started_ms < KUBE_LIST_TURN_MS);

        if (!x->live || s->mute) {
            continue;
        }

        if (!x->headed) {

            if (watch) {
                server_watch(s, x);

            } else {
                server_list(s, x);
            }

        } else if (!io_deliver(&s->io, x)) {
            continue;
        }

        if (!x->live || x->paused || x->held_len != 0) {
            continue;
        }

        if (watch) {
            server_events(s, x);

        } else {
            io_done(x, KUBE_OK, "");
        }
    }

    if (lists > s->lists_at_once) {
        s->lists_at_once = lists;
    }
}


/* The zone as a reader sees it. */

typedef struct {
    kube_resource_t  resource;
    bool             refused;
    char             ns[16];
    char             name[32];
    uint64_t         rv;
    uint64_t         revision;
} view_row_t;

typedef struct {
    view_row_t     rows[SERVER_OBJECTS_MAX];
    unsigned       n;
    kube_digest_t  digests[KUBE_RESOURCES];
    unsigned       counts[KUBE_RESOURCES];
} view_t;


static inline void
view_kind(view_t *view, const kube_zone_t *zone, kube_arena_t *arena,
    kube_record_kind_t kind)
{
    uint32_t              cursor, entry;
    view_row_t           *row;
    kube_record_id_t      id;
    const kube_record_t  *record;

    cursor = 0;

    for ( ;; ) {
        kube_arena_reset(arena);

        if (kube_zone_next(zone, kind, &cursor, arena, &record, &entry)
            != KUBE_OK)
        {
            return;
        }

        assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
        assert_true(view->n < SERVER_OBJECTS_MAX);

        row = &view->rows[view->n++];
        memset(row, 0, sizeof(view_row_t));

        row->resource = id.resource;
        row->refused = (kind == KUBE_RECORD_REFUSED);
        row->revision = record->revision;

        snprintf(row->ns, sizeof(row->ns), "%.*s", (int) id.meta.ns.len,
                 id.meta.ns.data);
        snprintf(row->name, sizeof(row->name), "%.*s", (int) id.meta.name.len,
                 id.meta.name.data);

        if (id.meta.rv.len != 0) {
            assert_int_equal(kube_str_to_u64(id.meta.rv, UINT64_MAX,
                                             &row->rv),
                             KUBE_OK);
        }

        if (!row->refused) {
            kube_digest_add(&view->digests[id.resource],
                            kube_record_digest(record));
            view->counts[id.resource]++;
        }
    }
}


static inline void
view_make(view_t *view, const kube_zone_t *zone)
{
    alloc_test_t  at;
    kube_arena_t  arena;

    memset(view, 0, sizeof(view_t));
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);

    view_kind(view, zone, &arena, KUBE_RECORD_SERVICE);
    view_kind(view, zone, &arena, KUBE_RECORD_SLICE);
    view_kind(view, zone, &arena, KUBE_RECORD_REFUSED);

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


static inline const view_row_t *
view_find(const view_t *view, kube_resource_t resource, const char *ns,
    const char *name)
{
    unsigned  i;

    for (i = 0; i < view->n; i++) {

        if (view->rows[i].resource == resource
            && strcmp(view->rows[i].ns, ns) == 0
            && strcmp(view->rows[i].name, name) == 0)
        {
            return &view->rows[i];
        }
    }

    return NULL;
}


/* The version the zone shows for a slot; 0: none. */
static inline uint64_t
zone_version(const kube_zone_t *zone, unsigned slot, kube_scope_info_t *out,
    char ns[16])
{
    uint64_t           rv;
    alloc_test_t       at;
    kube_arena_t       arena;
    kube_scope_info_t  info;

    rv = 0;
    memset(out, 0, sizeof(kube_scope_info_t));
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);

    if (kube_zone_scope_read(zone, slot, &arena, &info) == KUBE_OK) {

        *out = info;
        snprintf(ns, 16, "%.*s", (int) info.ns.len,
                 info.ns.len ? info.ns.data : "");

        if (info.rv.len != 0) {
            assert_int_equal(kube_str_to_u64(info.rv, UINT64_MAX, &rv),
                             KUBE_OK);
        }
    }

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);

    return rv;
}


/*
 * The core promise: whatever changed last at or before the published version
 * is what a reader finds, unless it is named as refused, or so many that are
 * missing were counted.
 */
static inline void
server_assert_promise(const server_t *s, const kube_zone_t *zone)
{
    char                    ns[16];
    unsigned                slot, i;
    uint64_t                rv, unnamed;
    const view_row_t       *row;
    kube_scope_info_t       info;
    const server_object_t  *o;

    static view_t  view;

    view_make(&view, zone);

    for (slot = 0; slot < 8; slot++) {

        rv = zone_version(zone, slot, &info, ns);

        if (rv == 0) {
            continue;
        }

        assert_true(rv <= s->rv);
        unnamed = info.refused_unnamed;

        for (i = 0; i < s->objects_n; i++) {
            o = &s->objects[i];

            if (o->resource != info.resource
                || o->rv > rv
                || (ns[0] != '\0' && strcmp(ns, o->ns) != 0))
            {
                continue;
            }

            row = view_find(&view, o->resource, o->ns, o->name);

            if (row != NULL && row->refused) {
                continue;
            }

            if (row == NULL && o->live && unnamed != 0) {
                unnamed--;
                continue;
            }

            if ((row != NULL) != o->live || (row && row->rv != o->rv)) {
                print_error("%s/%s at %llu: zone has %llu, published %llu\n",
                            o->ns, o->name, (unsigned long long) o->rv,
                            row ? (unsigned long long) row->rv : 0ull,
                            (unsigned long long) rv);
                fail();
            }
        }
    }
}


#endif /* KUBE_SERVER_BED_H */

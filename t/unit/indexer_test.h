/*
 * indexer_test - an indexer and a publisher over a zone on the heap, with a
 * cluster as the truth that they are fed from and compared with.
 *
 * Not part of the product.  For the tests of these two and of their files.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_INDEXER_TEST_H
#define KUBE_INDEXER_TEST_H


#include <stdio.h>

#include "alloc_test.h"
#include "kube_indexer.h"
#include "kube_publisher.h"
#include "kube_zone_counters.h"
#include "kube_zone_reader.h"
#include "kube_zone_image.h"
#include "kube_zone_recover.h"
#include "kube_zone_scrub.h"
#include "kube_zone_walk.h"
#include "kube_zone_writer.h"


#define IT_SERVICES  0      /* scopes */
#define IT_SLICES    1

/* An object of the truth. */
typedef struct {
    bool             there;
    kube_resource_t  resource;
    char             ns[24];
    char             name[32];
    char             service[32];      /* slices: the label */
    char             uid[KUBE_UID_LEN_MAX + 1];
    char             rv[16];
    unsigned         version;          /* of the content */
    unsigned         endpoints;        /* slices */
    unsigned         ports;            /* Services; 0: one */
} it_object_t;

typedef struct {
    alloc_test_t              at;
    void                     *mem;
    size_t                    size;
    kube_zone_t               zone;
    kube_zone_writer_t       *writer;
    kube_publisher_t         *publisher;
    kube_publisher_conf_t     conf;
    kube_indexer_t           *ix;
    kube_takeover_t           takeover;
    uint64_t                  now_ms;
    unsigned                  rv;
    unsigned                  logs[KUBE_EV_MAX];
    const char               *why;             /* refused; NULL: malformed */
    bool                      disturbed;
} it_t;


static inline void
it_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    it_t  *it = ctx;

    (void) level;
    (void) line;

    it->logs[id]++;
}


/* The writer and the indexer of a process that starts. */
static inline kube_rc_t
it_start(it_t *it)
{
    it->writer = kube_zone_writer_create(&it->at.alloc, &it->zone);

    if (it->writer == NULL) {
        return KUBE_NOMEM;
    }

    assert_int_equal(kube_zone_writer_acquire(it->writer, it->now_ms,
                                              &it->takeover), KUBE_OK);
    it->conf.zone = &it->zone;
    it->conf.writer = it->writer;
    it->conf.sink.write = it_log;
    it->conf.sink.ctx = it;

    it->publisher = kube_publisher_create(&it->at.alloc, &it->conf);

    if (it->publisher == NULL) {
        return KUBE_NOMEM;
    }

    it->ix = kube_indexer_create(&it->at.alloc, &(kube_indexer_conf_t) {
        .zone = &it->zone,
        .writer = it->writer,
        .on_change = kube_publisher_on_change,
        .on_change_ctx = it->publisher
    });

    return (it->ix != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static inline void
it_stop(it_t *it)
{
    uint32_t  numbers;

    /* nothing but the writer writes, or the test says so and acquires anew */
    if (it->writer != NULL && it->ix != NULL && !it->disturbed) {
        numbers = kube_zone_writer_top(it->writer)
                  + kube_zone_server_number(&it->zone)
                  - it->zone.geometry.entries_n;
        kube_zone_writer_scrub(it->writer, numbers);
        assert_false(kube_zone_writer_is_disturbed(it->writer));
    }

    kube_indexer_destroy(it->ix);
    kube_publisher_destroy(it->publisher);
    kube_zone_writer_destroy(it->writer);
    it->ix = NULL;
    it->publisher = NULL;
    it->writer = NULL;
}


static inline kube_rc_t
it_scopes(it_t *it)
{
    kube_rc_t  rc;

    rc = kube_indexer_scope(it->ix, IT_SERVICES, KUBE_RESOURCE_SERVICES,
                            KUBE_STR_NULL);
    if (rc != KUBE_OK) {
        return rc;
    }

    return kube_indexer_scope(it->ix, IT_SLICES, KUBE_RESOURCE_ENDPOINTSLICES,
                              KUBE_STR_NULL);
}


static inline void
it_zone(it_t *it, size_t size)
{
    memset(it, 0, sizeof(it_t));
    alloc_test_init(&it->at);

    it->size = size;
    it->now_ms = 1000;
    it->mem = aligned_alloc(64, size);
    assert_non_null(it->mem);
    memset(it->mem, 0, size);

    assert_int_equal(kube_zone_create(&it->zone, it->mem, size,
                                      (kube_seed_t) { 3, 4 }), KUBE_OK);
}


/* After it_zone(), by the configuration as it is then. */
static inline void
it_run(it_t *it)
{
    assert_int_equal(it_start(it), KUBE_OK);
    assert_int_equal(it_scopes(it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it->ix, it->now_ms), KUBE_OK);
}


static inline void
it_init(it_t *it, size_t size)
{
    it_zone(it, size);
    it_run(it);
}


static inline void
it_done(it_t *it)
{
    it_stop(it);
    assert_int_equal(kube_zone_validate(it->mem, it->size), KUBE_OK);
    free(it->mem);
    alloc_test_assert_no_leak(&it->at);
}


/* What is counted without a name is in the scopes' records, as it were. */
static inline void
it_takeover(it_t *it)
{
    unsigned          slot;
    kube_scope_sum_t  sums[2];

    for (slot = 0; slot < 2; slot++) {
        kube_publisher_sum(it->publisher, slot, &sums[slot]);
    }

    it_stop(it);
    assert_int_equal(it_start(it), KUBE_OK);
    assert_int_equal(it_scopes(it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it->ix, it->now_ms), KUBE_OK);

    for (slot = 0; slot < 2; slot++) {
        kube_publisher_found_unnamed(it->publisher, slot,
                                     sums[slot].refused_unnamed,
                                     sums[slot].interrupted);
    }
}


/* The next version of the cluster. */
static inline void
it_stamp(it_t *it, it_object_t *o)
{
    snprintf(o->rv, sizeof(o->rv), "%u", ++it->rv);
}


static inline it_object_t
it_service(it_t *it, const char *ns, const char *name)
{
    it_object_t  o;

    memset(&o, 0, sizeof(it_object_t));
    o.there = true;
    o.resource = KUBE_RESOURCE_SERVICES;
    o.version = 1;
    snprintf(o.ns, sizeof(o.ns), "%s", ns);
    snprintf(o.name, sizeof(o.name), "%s", name);
    it_stamp(it, &o);
    snprintf(o.uid, sizeof(o.uid), "u%s", o.rv);

    return o;
}


static inline it_object_t
it_slice(it_t *it, const char *ns, const char *name, const char *service)
{
    it_object_t  o;

    o = it_service(it, ns, name);
    o.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    o.endpoints = 2;
    snprintf(o.service, sizeof(o.service), "%s", service);

    return o;
}


/* As many ports as it has, from port on; NULL: one. */
static inline kube_port_t *
it_ports(const it_object_t *o, const kube_port_t *port)
{
    unsigned      i;
    kube_port_t  *ports;

    if (o->ports == 0) {
        return NULL;
    }

    ports = calloc(o->ports, sizeof(kube_port_t));
    assert_non_null(ports);

    for (i = 0; i < o->ports; i++) {
        ports[i] = *port;
        ports[i].port = (uint16_t) (port->port + i);
    }

    return ports;
}


/* The object as a record, in memory of malloc. */
static inline kube_record_t *
it_record(const it_object_t *o)
{
    size_t            i, size;
    kube_port_t       port, *ports;
    kube_meta_t      *meta;
    kube_object_t     object;
    kube_record_t    *record;
    kube_endpoint_t   endpoints[KUBE_SLICE_ENDPOINTS_MAX];

    memset(&object, 0, sizeof(kube_object_t));
    memset(&port, 0, sizeof(kube_port_t));
    memset(endpoints, 0, sizeof(endpoints));

    object.resource = o->resource;
    port.name = KUBE_STR("http");
    port.port = 8080;
    ports = NULL;

    if (o->resource == KUBE_RESOURCE_SERVICES) {
        meta = &object.u.service.meta;
        port.port = (uint16_t) (1 + o->version % 65535);
        ports = it_ports(o, &port);
        object.u.service.ports = (ports != NULL) ? ports : &port;
        object.u.service.ports_n = (ports != NULL) ? o->ports : 1;

    } else {
        meta = &object.u.slice.meta;
        object.u.slice.service = kube_str(o->service);
        object.u.slice.family = KUBE_FAMILY_IPV4;
        object.u.slice.ports = &port;
        object.u.slice.ports_n = 1;
        object.u.slice.endpoints = endpoints;
        object.u.slice.endpoints_n = o->endpoints;
    }

    for (i = 0; i < o->endpoints; i++) {
        endpoints[i].address.family = KUBE_FAMILY_IPV4;
        endpoints[i].address.bytes[0] = 10;
        endpoints[i].address.bytes[1] = (uint8_t) (o->version >> 8);
        endpoints[i].address.bytes[2] = (uint8_t) o->version;
        endpoints[i].address.bytes[3] = (uint8_t) (i + 1);
        endpoints[i].ready = true;
        endpoints[i].serving = true;
        endpoints[i].pod = KUBE_STR("pod-with-a-usual-name");
    }

    meta->ns = kube_str(o->ns);
    meta->name = kube_str(o->name);
    meta->uid = kube_str(o->uid);
    meta->rv = kube_str(o->rv);

    size = kube_record_size(&object);
    assert_true(size != 0);
    record = malloc(size);
    assert_non_null(record);
    kube_record_encode(&object, record);
    free(ports);

    return record;
}


static inline unsigned
it_slot(const it_object_t *o)
{
    return (o->resource == KUBE_RESOURCE_SERVICES) ? IT_SERVICES : IT_SLICES;
}


/* Any kind but the marks; what an event of this object brings. */
static inline kube_rc_t
it_apply_read(it_t *it, kube_delta_kind_t kind, const it_object_t *o,
    uint64_t read_ms)
{
    kube_rc_t       rc;
    kube_delta_t    d;
    kube_record_t  *record;

    memset(&d, 0, sizeof(kube_delta_t));
    record = NULL;

    d.kind = kind;
    d.scope = it_slot(o);
    d.resource = o->resource;
    d.ns = kube_str(o->ns);
    d.name = kube_str(o->name);
    d.rv = kube_str(o->rv);
    d.read_ms = read_ms;

    if (kind == KUBE_DELTA_REFUSED) {
        d.reason = kube_str(it->why != NULL ? it->why : "malformed");
    }

    if (kind == KUBE_DELTA_REFUSED || kind == KUBE_DELTA_DELETED) {
        d.uid_hash = kube_uid_hash(kube_str(o->uid));
    }

    if (kind == KUBE_DELTA_REPLACED || kind == KUBE_DELTA_UPDATED) {
        record = it_record(o);
        d.record = record;
    }

    rc = kube_indexer_apply(it->ix, &d, it->now_ms);
    free(record);

    return rc;
}


static inline kube_rc_t
it_apply(it_t *it, kube_delta_kind_t kind, const it_object_t *o)
{
    return it_apply_read(it, kind, o, it->now_ms);
}


static inline kube_rc_t
it_mark(it_t *it, kube_delta_kind_t kind, unsigned slot)
{
    kube_delta_t  d;

    memset(&d, 0, sizeof(kube_delta_t));
    d.kind = kind;
    d.scope = slot;

    return kube_indexer_apply(it->ix, &d, it->now_ms);
}


#define IT_UPDATE(it, o)                                                      \
    assert_int_equal(it_apply(it, KUBE_DELTA_UPDATED, o), KUBE_OK)
#define IT_LIST(it, o)                                                        \
    assert_int_equal(it_apply(it, KUBE_DELTA_REPLACED, o), KUBE_OK)
#define IT_MARK(it, kind, slot)                                               \
    assert_int_equal(it_mark(it, kind, slot), KUBE_OK)

/* An item of a list beside the watch. */
#define IT_FILL(it, o)                                                        \
    assert_int_equal(it_apply_read(it, KUBE_DELTA_UPDATED, o, KUBE_NEVER),    \
                     KUBE_OK)
#define IT_BEGIN(it, slot)                                                    \
    assert_int_equal(it_mark(it, KUBE_DELTA_LIST_BEGIN, slot), KUBE_OK)
#define IT_SYNC(it, slot)                                                     \
    assert_int_equal(it_mark(it, KUBE_DELTA_SYNC, slot), KUBE_OK)


/* An event behind its new version. */
static inline void
it_change(it_t *it, it_object_t *o)
{
    o->version++;
    it_stamp(it, o);
    IT_UPDATE(it, o);
}


static inline void
it_delete(it_t *it, it_object_t *o)
{
    it_stamp(it, o);
    o->there = false;
    assert_int_equal(it_apply(it, KUBE_DELTA_DELETED, o), KUBE_OK);
}


static inline unsigned
it_publish(it_t *it)
{
    unsigned  n, total;

    total = 0;

    do {
        n = kube_publisher_run(it->publisher, 3, it->now_ms, 0);
        total += n;
    } while (n != 0);

    return total;
}


/*
 * What a reader finds of a Service: "port slice=version*endpoints ...", the
 * slices by name; "-": nothing.  revision may be NULL.
 */
static inline const char *
it_read(const it_t *it, const char *ns, const char *name, char *text,
    size_t size, uint64_t *revision)
{
    size_t            i, j, len;
    uint32_t          entry;
    alloc_test_t      at;
    kube_arena_t      arena;
    kube_slice_t      slice;
    kube_snapshot_t   s;

    snprintf(text, size, "-");

    if (kube_zone_find(&it->zone, KUBE_RESOURCE_SERVICES, kube_str(ns),
                       kube_str(name), &entry) != KUBE_OK)
    {
        return text;
    }

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 16 << 20);

    assert_int_equal(kube_zone_read(&it->zone, entry, kube_str(ns),
                                    kube_str(name), &arena, &s), KUBE_OK);
    assert_true(s.service.ports_n >= 1);
    len = (size_t) snprintf(text, size, "%u", s.service.ports[0].port - 1u);

    for (i = 1; i < s.slices_n; i++) {
        for (j = i; j > 0 && kube_str_cmp(s.slices[j].meta.name,
                                          s.slices[j - 1].meta.name) < 0; j--)
        {
            slice = s.slices[j];
            s.slices[j] = s.slices[j - 1];
            s.slices[j - 1] = slice;
        }
    }

    for (i = 0; i < s.slices_n; i++) {
        len += (size_t) snprintf(text + len, size - len, " %.*s=%u*%zu",
                                 (int) s.slices[i].meta.name.len,
                                 s.slices[i].meta.name.data,
                                 s.slices[i].endpoints_n == 0 ? 0
                                 : s.slices[i].endpoints[0].address.bytes[1]
                                   * 256u
                                   + s.slices[i].endpoints[0].address.bytes[2],
                                 s.slices[i].endpoints_n);
        assert_true(len < size);
    }

    if (revision != NULL) {
        *revision = s.revision;
    }

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);

    return text;
}


#define IT_READS(it, ns, name, expected)                                      \
    do {                                                                      \
        char  it_text[2048];                                                  \
                                                                              \
        assert_string_equal(it_read(it, ns, name, it_text, sizeof(it_text),   \
                                    NULL), expected);                         \
    } while (0)


static inline kube_scope_sum_t
it_sum(const it_t *it, unsigned slot)
{
    kube_scope_sum_t  sum;

    kube_publisher_sum(it->publisher, slot, &sum);

    return sum;
}


/* Whether a list is asked for because room has returned, as of now_ms. */
static inline bool
it_room_returned(it_t *it, unsigned slot, kube_room_ask_t *ask)
{
    assert_int_equal(kube_publisher_run(it->publisher, 0, it->now_ms, 0), 0);
    kube_publisher_look_for_room(it->publisher);

    return kube_publisher_room_returned(it->publisher, slot, ask);
}


/* The names refused of a resource; reason of the last in *reason. */
static inline unsigned
it_refused(const it_t *it, kube_resource_t resource, char *reason,
    size_t size)
{
    unsigned              n;
    uint32_t              e;
    kube_record_id_t      id;
    const kube_record_t  *record;

    n = 0;

    for (e = kube_zone_writer_next(it->writer, 0);
         e != 0;
         e = kube_zone_writer_next(it->writer, e))
    {
        record = kube_zone_published(it->writer, e);

        if (record == NULL || record->kind != KUBE_RECORD_REFUSED) {
            continue;
        }

        assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);

        if (id.resource == resource) {
            n++;

            if (reason != NULL) {
                snprintf(reason, size, "%.*s", (int) id.reason.len,
                         id.reason.data);
            }
        }
    }

    return n;
}


#endif /* KUBE_INDEXER_TEST_H */

/*
 * zone_test - images, objects and records for the tests of src/zone.
 *
 * It is not part of the product and asserts only that its own steps work.
 * For t/unit only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_TEST_H
#define KUBE_ZONE_TEST_H


#include <stdio.h>

#include "alloc_test.h"
#include "kube_zone_counters.h"
#include "kube_zone_guard.h"
#include "kube_zone_image.h"
#include "kube_zone_reader.h"
#include "kube_zone_recover.h"
#include "kube_zone_scope.h"
#include "kube_zone_walk.h"
#include "kube_zone_writer.h"


#define ZONE_TEST_EP_MAX  120

typedef struct {
    kube_zone_t          zone;
    kube_zone_writer_t  *writer;
    void                *mem;
    size_t               size;
    alloc_test_t         at;
    kube_arena_t         arena;
} zone_test_t;


static const kube_seed_t  zone_test_seed = { 17, 4711 };


static inline kube_str_t
zone_test_str(const char *s)
{
    return (kube_str_t) { s, strlen(s) };
}


/* Released heap memory, zeroed: a sanitizer sees every byte behind it. */
static inline void *
zone_test_memory(size_t size)
{
    void  *mem;

    mem = aligned_alloc(64, size);
    assert_non_null(mem);
    memset(mem, 0, size);

    return mem;
}


static inline void
zone_test_acquire(zone_test_t *t, uint64_t now_ms, kube_takeover_t *takeover)
{
    assert_int_equal(kube_zone_writer_acquire(t->writer, now_ms, takeover),
                     KUBE_OK);
}


/* Nobody reads of the segments what was not written there. */
static inline void
zone_test_dirty(const kube_zone_t *zone)
{
    memset(kube_zone_at(zone, zone->geometry.segments), 0x5a,
           zone->size - zone->geometry.segments);
}


/* An image over mem, its writer and an arena; at fails nothing. */
static inline void
zone_test_over(zone_test_t *t, void *mem, size_t size)
{
    kube_takeover_t  takeover;

    t->mem = mem;
    t->size = size;

    alloc_test_init(&t->at);
    kube_arena_init(&t->arena, &t->at.alloc, 16u << 20);

    assert_int_equal(kube_zone_create(&t->zone, mem, size, zone_test_seed),
                     KUBE_OK);
    zone_test_dirty(&t->zone);
    t->writer = kube_zone_writer_create(&t->at.alloc, &t->zone);
    assert_non_null(t->writer);
    zone_test_acquire(t, 1000, &takeover);
}


static inline void
zone_test_open(zone_test_t *t, size_t size)
{
    zone_test_over(t, zone_test_memory(size), size);
}


static inline void
zone_test_close(zone_test_t *t)
{
    kube_zone_writer_destroy(t->writer);
    kube_arena_done(&t->arena);
    alloc_test_assert_no_leak(&t->at);
    free(t->mem);
}


static inline kube_record_t *
zone_test_encode(const kube_object_t *object)
{
    size_t          size;
    kube_record_t  *record;

    size = kube_record_size(object);
    assert_int_not_equal(size, 0);

    record = malloc(size);
    assert_non_null(record);
    kube_record_encode(object, record);
    assert_int_equal(record->size, size);

    return record;
}


/* A Service with one port: variant.  Free it. */
static inline kube_record_t *
zone_test_service(const char *ns, const char *name, unsigned rv,
    unsigned variant)
{
    char           text[16];
    kube_port_t    port;
    kube_object_t  object;

    memset(&object, 0, sizeof(kube_object_t));
    memset(&port, 0, sizeof(kube_port_t));
    snprintf(text, sizeof(text), "%u", rv);

    port.name = KUBE_STR("http");
    port.port = (uint16_t) (variant % 65535 + 1);

    object.resource = KUBE_RESOURCE_SERVICES;
    object.u.service.meta.ns = zone_test_str(ns);
    object.u.service.meta.name = zone_test_str(name);
    object.u.service.meta.uid =
        KUBE_STR("0b7f8c1e-5a52-4c1f-9d43-6f0f3f1c2a77");
    object.u.service.meta.rv = zone_test_str(text);
    object.u.service.cluster_ips_n = 1;
    object.u.service.cluster_ips[0].family = KUBE_FAMILY_IPV4;
    object.u.service.ports = &port;
    object.u.service.ports_n = 1;

    return zone_test_encode(&object);
}


/* A slice of n endpoints whose pods and addresses carry variant.  Free it. */
static inline kube_record_t *
zone_test_slice(const char *ns, const char *name, const char *service,
    unsigned rv, unsigned variant, size_t n)
{
    char             text[16];
    size_t           i;
    kube_port_t      port;
    kube_object_t    object;
    kube_endpoint_t  eps[ZONE_TEST_EP_MAX];
    char             pods[ZONE_TEST_EP_MAX][96], nodes[ZONE_TEST_EP_MAX][32];

    assert_true(n <= ZONE_TEST_EP_MAX);

    memset(&object, 0, sizeof(kube_object_t));
    memset(&port, 0, sizeof(kube_port_t));
    memset(eps, 0, sizeof(eps));
    snprintf(text, sizeof(text), "%u", rv);

    port.port = 8080;

    for (i = 0; i < n; i++) {
        snprintf(pods[i], sizeof(pods[i]), "%.60s-%07u-%05zu", service,
                 variant, (size_t) (variant * 7919u + i * 31u) % 100000);
        snprintf(nodes[i], sizeof(nodes[i]), "node-%zu",
                 (size_t) (variant + i * 37u) % 100);
        eps[i].address.family = KUBE_FAMILY_IPV4;
        eps[i].address.bytes[0] = 10;
        memcpy(eps[i].address.bytes + 1, &variant, 3);
        eps[i].ready = true;
        eps[i].serving = true;
        eps[i].pod = zone_test_str(pods[i]);
        eps[i].node = zone_test_str(nodes[i]);
        eps[i].zone = (i % 2) ? KUBE_STR("zone-a") : KUBE_STR("zone-b");
    }

    object.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    object.u.slice.meta.ns = zone_test_str(ns);
    object.u.slice.meta.name = zone_test_str(name);
    object.u.slice.meta.uid =
        KUBE_STR("d0f1c9a2-1b7e-4f5a-8a39-2f5d8e6b7c10");
    object.u.slice.meta.rv = zone_test_str(text);
    object.u.slice.service = zone_test_str(service);
    object.u.slice.family = KUBE_FAMILY_IPV4;
    object.u.slice.ports = &port;
    object.u.slice.ports_n = 1;
    object.u.slice.endpoints = eps;
    object.u.slice.endpoints_n = n;

    return zone_test_encode(&object);
}


static inline kube_rc_t
zone_test_stage(zone_test_t *t, kube_record_t *record, uint64_t now_ms,
    uint32_t *entry, bool *same)
{
    kube_rc_t  rc;

    kube_zone_writer_now(t->writer, now_ms);
    rc = kube_zone_stage(t->writer, record, 0, entry);
    *same = (rc == KUBE_OK && kube_zone_is_same(t->writer, *entry, record));
    free(record);

    return rc;
}


/* The entry goes to *entry; KUBE_INVALID: no object can have this name. */
static inline kube_rc_t
zone_test_refuse(zone_test_t *t, kube_resource_t resource, const char *ns,
    const char *name, const char *rv, const char *reason, uint32_t *entry)
{
    kube_rc_t         rc;
    kube_zone_item_t  item;

    *entry = 0;
    rc = kube_zone_item_name(t->writer, resource, zone_test_str(ns),
                             zone_test_str(name), &item);

    if (rc == KUBE_OK) {
        rc = kube_zone_refuse(t->writer, &item, zone_test_str(rv),
                              zone_test_str(reason));
        *entry = item.entry;
    }

    return rc;
}


/* Stages a Service with n slices ("<name>-0" ...) and publishes them. */
static inline kube_rc_t
zone_test_put(zone_test_t *t, const char *ns, const char *name, unsigned rv,
    unsigned variant, size_t n, size_t endpoints, uint64_t now_ms)
{
    bool       same, changed;
    char       slice[80];
    size_t     i;
    uint32_t   service, slices[64];
    kube_rc_t  rc;

    rc = zone_test_stage(t, zone_test_service(ns, name, rv, variant), now_ms,
                         &service, &same);

    for (i = 0; rc == KUBE_OK && i < n; i++) {
        snprintf(slice, sizeof(slice), "%.50s-%zu", name, i);
        rc = zone_test_stage(t, zone_test_slice(ns, slice, name, rv, variant,
                                                endpoints),
                             now_ms, &slices[i], &same);
    }

    if (rc == KUBE_OK) {
        rc = kube_zone_publish(t->writer, service, slices, n, &changed);
    }

    return rc;
}


static inline uint32_t
zone_test_find(const zone_test_t *t, kube_resource_t resource,
    const char *ns, const char *name)
{
    uint32_t  entry;

    if (kube_zone_find(&t->zone, resource, zone_test_str(ns),
                       zone_test_str(name), &entry)
        != KUBE_OK)
    {
        return 0;
    }

    return entry;
}


/* Resets the arena first: one snapshot at a time. */
static inline kube_rc_t
zone_test_read(zone_test_t *t, const char *ns, const char *name,
    kube_snapshot_t *snapshot)
{
    uint32_t  entry;

    kube_arena_reset(&t->arena);
    entry = zone_test_find(t, KUBE_RESOURCE_SERVICES, ns, name);

    if (entry == 0) {
        return KUBE_NOT_FOUND;
    }

    return kube_zone_read(&t->zone, entry, zone_test_str(ns),
                          zone_test_str(name), &t->arena, snapshot);
}


/*
 * The variant that the Service and every endpoint of every slice carry;
 * UINT32_MAX: they disagree.
 */
static inline uint32_t
zone_test_variant(const kube_snapshot_t *snapshot)
{
    size_t    i, k;
    uint32_t  variant, v;

    variant = (uint32_t) snapshot->service.ports[0].port - 1;

    for (i = 0; i < snapshot->slices_n; i++) {
        for (k = 0; k < snapshot->slices[i].endpoints_n; k++) {
            v = 0;
            memcpy(&v, snapshot->slices[i].endpoints[k].address.bytes + 1, 3);

            if (v != variant) {
                return UINT32_MAX;
            }
        }
    }

    return variant;
}


static inline void
zone_test_remove(zone_test_t *t, kube_resource_t resource, const char *ns,
    const char *name, uint64_t now_ms)
{
    uint32_t  entry;

    entry = kube_zone_writer_find(t->writer, resource, zone_test_str(ns),
                                  zone_test_str(name));
    assert_int_not_equal(entry, 0);
    kube_zone_writer_now(t->writer, now_ms);
    kube_zone_remove(t->writer, entry);
}


#endif /* KUBE_ZONE_TEST_H */

/*
 * route_test - a zone with Services, slices and scopes written as texts, for
 * the tests of src/route.
 *
 *     route_test_service(&t, "shop", "web", "http:80 admin:8000");
 *     route_test_slice(&t, "shop", "web-1", "web", "http:8080",
 *                      "10.0.0.1=rs 10.0.0.2=st");
 *     route_test_scope(&t, 0, KUBE_RESOURCE_SERVICES, "", "synced");
 *
 * It is not part of the product and asserts only that its own steps work.
 * For t/unit only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ROUTE_TEST_H
#define KUBE_ROUTE_TEST_H


#include "kube_zone_counters.h"
#include "kube_zone_scope.h"
#include "zone_test.h"


#define ROUTE_TEST_MAX  100


/* "name:port", ":port" or "name:port/UDP", separated by spaces. */
static inline size_t
route_test_ports(const char *text, kube_port_t *ports)
{
    char        *end;
    size_t       n;
    const char  *colon;

    memset(ports, 0, ROUTE_TEST_MAX * sizeof(kube_port_t));

    for (n = 0; *text != '\0'; n++) {
        assert_true(n < ROUTE_TEST_MAX);
        colon = strchr(text, ':');
        assert_non_null(colon);

        ports[n].name = (kube_str_t) { text, (size_t) (colon - text) };
        ports[n].port = (uint16_t) strtoul(colon + 1, &end, 10);

        if (strncmp(end, "/UDP", 4) == 0) {
            ports[n].protocol = KUBE_PROTOCOL_UDP;
            end += 4;
        }

        text = end + (*end == ' ');
    }

    return n;
}


/* "address=flags": r ready, s serving, t terminating. */
static inline size_t
route_test_endpoints(const char *text, kube_endpoint_t *eps)
{
    size_t       n, len;
    const char  *p, *equals;

    memset(eps, 0, ROUTE_TEST_MAX * sizeof(kube_endpoint_t));

    for (n = 0; *text != '\0'; n++) {
        assert_true(n < ROUTE_TEST_MAX);
        equals = strchr(text, '=');
        assert_non_null(equals);

        len = (size_t) (equals - text);
        assert_int_equal(kube_addr_parse((kube_str_t) { text, len },
                                         &eps[n].address), KUBE_OK);

        for (p = equals + 1; *p != '\0' && *p != ' '; p++) {
            eps[n].ready |= (*p == 'r');
            eps[n].serving |= (*p == 's');
            eps[n].terminating |= (*p == 't');
        }

        text = p + (*p == ' ');
    }

    return n;
}


static inline uint32_t
route_test_stage(zone_test_t *t, const kube_object_t *object, uint16_t flags)
{
    uint32_t        entry;
    kube_record_t  *record;

    record = zone_test_encode(object);
    record->flags |= flags;
    assert_int_equal(kube_zone_stage(t->writer, record, 0, &entry), KUBE_OK);
    free(record);

    return entry;
}


static inline void
route_test_publish(zone_test_t *t, uint32_t service, const uint32_t *slices,
    size_t n)
{
    bool  changed;

    assert_int_equal(kube_zone_publish(t->writer, service, slices, n,
                                       &changed), KUBE_OK);
}


static inline void
route_test_meta(kube_meta_t *meta, const char *ns, const char *name)
{
    meta->ns = zone_test_str(ns);
    meta->name = zone_test_str(name);
    meta->uid = KUBE_STR("0b7f8c1e-5a52-4c1f-9d43-6f0f3f1c2a77");
    meta->rv = KUBE_STR("1");
}


/* A Service without slices; flags: of the record.  Returns its entry. */
static inline uint32_t
route_test_service_of(zone_test_t *t, const char *ns, const char *name,
    const char *ports, kube_service_type_t type, uint16_t flags)
{
    uint32_t       entry;
    kube_port_t    p[ROUTE_TEST_MAX];
    kube_object_t  object;

    memset(&object, 0, sizeof(kube_object_t));
    object.resource = KUBE_RESOURCE_SERVICES;
    route_test_meta(&object.u.service.meta, ns, name);
    object.u.service.type = type;
    object.u.service.ports = p;
    object.u.service.ports_n = route_test_ports(ports, p);

    entry = route_test_stage(t, &object, flags);
    route_test_publish(t, entry, NULL, 0);

    return entry;
}


static inline void
route_test_service(zone_test_t *t, const char *ns, const char *name,
    const char *ports)
{
    (void) route_test_service_of(t, ns, name, ports, KUBE_SERVICE_CLUSTER_IP,
                                 0);
}


/* The only slice of its Service, which is there; flags: of the record. */
static inline void
route_test_slice_of(zone_test_t *t, const char *ns, const char *name,
    const char *service, const char *ports, const char *endpoints,
    uint16_t flags)
{
    uint32_t         entry;
    kube_port_t      p[ROUTE_TEST_MAX];
    kube_object_t    object;
    kube_endpoint_t  eps[ROUTE_TEST_MAX];

    memset(&object, 0, sizeof(kube_object_t));
    object.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    route_test_meta(&object.u.slice.meta, ns, name);
    object.u.slice.service = zone_test_str(service);
    object.u.slice.ports = p;
    object.u.slice.ports_n = route_test_ports(ports, p);
    object.u.slice.endpoints = eps;
    object.u.slice.endpoints_n = route_test_endpoints(endpoints, eps);
    object.u.slice.family = (object.u.slice.endpoints_n != 0)
                            ? eps[0].address.family : KUBE_FAMILY_IPV4;

    entry = route_test_stage(t, &object, flags);
    route_test_publish(t, zone_test_find(t, KUBE_RESOURCE_SERVICES, ns,
                                         service), &entry, 1);
}


static inline void
route_test_slice(zone_test_t *t, const char *ns, const char *name,
    const char *service, const char *ports, const char *endpoints)
{
    route_test_slice_of(t, ns, name, service, ports, endpoints, 0);
}


/* state: "synced", "listing" (not yet) or "forbidden". */
static inline void
route_test_scope(zone_test_t *t, unsigned slot, kube_resource_t resource,
    const char *ns, const char *state)
{
    kube_scope_info_t  info;

    memset(&info, 0, sizeof(kube_scope_info_t));
    info.resource = resource;
    info.ns = zone_test_str(ns);
    info.synced = strcmp(state, "synced") == 0;

    assert_int_equal(kube_zone_scope_publish(t->writer, slot, &info),
                     KUBE_OK);
    kube_zone_scope_set(&t->zone, slot, KUBE_COUNTER_GAUGE_FORBIDDEN,
                        strcmp(state, "forbidden") == 0);
}


/* Both resources of a namespace, in the slots 2 * n and 2 * n + 1. */
static inline void
route_test_namespace(zone_test_t *t, unsigned n, const char *ns,
    const char *services, const char *slices)
{
    route_test_scope(t, 2 * n, KUBE_RESOURCE_SERVICES, ns, services);
    route_test_scope(t, 2 * n + 1, KUBE_RESOURCE_ENDPOINTSLICES, ns, slices);
}


#endif /* KUBE_ROUTE_TEST_H */

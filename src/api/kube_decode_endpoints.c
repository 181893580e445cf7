/*
 * kube_decode_endpoints - the projection of core/v1 Endpoints to the shape of a
 * slice.
 *
 * Each subset is addresses times ports.  The addresses and the ports of all
 * subsets stand in one row each; where there is more than one subset, or
 * addresses of both families, kube_subset_t tells them apart.  An address that
 * is not ready is neither serving nor terminating: Endpoints do not know.
 *
 * A bad address or port is left out and counted.  So are addresses above what
 * a slice has, for the controller cuts them off as well (1000, those that are
 * ready first), in clusters that still have no EndpointSlices.
 *
 * For kube_decode.c only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_date.h"
#include "kube_decode_impl.h"


/* One element of "subsets", as it stands there. */
typedef struct {
    kube_decode_array_t  ready;
    kube_decode_array_t  not_ready;
    kube_decode_array_t  all_ports;
    kube_port_t         *ports;      /* those that are good */
    size_t               ports_n;
} endpoints_subset_t;

/* What the object's subsets come to. */
typedef struct {
    kube_decode_array_t  endpoints;
    kube_decode_array_t  ports;
    kube_decode_array_t  subsets;
} endpoints_all_t;


static void
endpoints_address(kube_decode_t *d, kube_endpoint_t *endpoint)
{
    kube_rc_t             rc;
    kube_str_t            name, text;
    kube_decode_target_t  target;

    kube_decode_target_begin(&target, endpoint->pod);
    rc = kube_decode_enter(d, '{');

    while (rc == KUBE_OK && kube_lexer_member(&d->lx, &name)) {

        if (kube_str_eq(name, KUBE_STR("ip"))) {

            if (kube_decode_text(d, &text) != KUBE_OK
                || kube_addr_parse(text, &endpoint->address) != KUBE_OK)
            {
                endpoint->address.family = KUBE_FAMILY_NONE;
            }

        } else if (kube_str_eq(name, KUBE_STR("targetRef"))) {
            kube_decode_target(d, &target);

        } else if (kube_str_eq(name, KUBE_STR("nodeName"))) {
            kube_decode_shown(d, &endpoint->node);

        } else {
            kube_lexer_value(&d->lx, NULL);
        }
    }

    endpoint->pod = kube_decode_target_pod(d, &target);
}


static void
endpoints_addresses(kube_decode_t *d, kube_decode_array_t *array, bool ready)
{
    bool              fresh;
    kube_endpoint_t  *endpoint;

    if (!kube_decode_array(d, array, "addresses is no array")) {
        return;
    }

    while ((endpoint = kube_decode_next(d, array, sizeof(kube_endpoint_t),
                                        SIZE_MAX, "", &fresh))
           != NULL)
    {
        endpoint->ready = ready;
        endpoint->serving = ready;
        endpoints_address(d, endpoint);
    }
}


/* Room for n more elements of size; NULL: the object is refused. */
static void *
endpoints_add(kube_decode_t *d, kube_decode_array_t *array, size_t n,
    size_t size, size_t max, const char *what)
{
    char          *p;
    kube_rc_t      rc;
    kube_alloc_t   alloc;

    alloc = kube_arena_allocator(d->arena);
    rc = kube_array_reserve(&alloc, &array->p, &array->cap, array->n + n + 1,
                            size, max + 1);

    if (rc != KUBE_OK) {
        d->nomem = (rc == KUBE_NOMEM && !d->arena->full);
        kube_lexer_fail(&d->lx, (rc == KUBE_TOO_LARGE) ? what
                                : d->nomem ? "out of memory" : "too large");
        return NULL;
    }

    p = (char *) array->p + array->n * size;
    array->n += n;

    return p;
}


/* Adds the addresses of one family, with the ports if there are any. */
static void
endpoints_family(kube_decode_t *d, const endpoints_subset_t *subset,
    kube_family_t family, endpoints_all_t *all)
{
    size_t                      i, k, first;
    kube_port_t                *to;
    kube_subset_t              *added;
    kube_endpoint_t            *endpoint;
    const kube_endpoint_t      *from;
    const kube_decode_array_t  *arrays[2];

    arrays[0] = &subset->ready;
    arrays[1] = &subset->not_ready;
    first = all->endpoints.n;

    for (k = 0; k < 2; k++) {
        from = arrays[k]->p;

        for (i = 0; i < arrays[k]->n; i++) {

            if (from[i].address.family != family) {
                continue;
            }

            if (all->endpoints.n == KUBE_SLICE_ENDPOINTS_MAX) {
                d->dropped++;
                continue;
            }

            endpoint = endpoints_add(d, &all->endpoints, 1,
                                     sizeof(kube_endpoint_t),
                                     KUBE_SLICE_ENDPOINTS_MAX, "");
            if (endpoint == NULL) {
                return;
            }

            *endpoint = from[i];
        }
    }

    if (all->endpoints.n == first) {
        return;
    }

    to = endpoints_add(d, &all->ports, subset->ports_n, sizeof(kube_port_t),
                       KUBE_SLICE_PORTS_MAX, "ports has too many elements");
    if (to == NULL) {
        return;
    }

    for (i = 0; i < subset->ports_n; i++) {
        to[i] = subset->ports[i];
    }

    added = endpoints_add(d, &all->subsets, 1, sizeof(kube_subset_t),
                          KUBE_SLICE_ENDPOINTS_MAX, "");

    if (added != NULL) {
        *added = (kube_subset_t) { subset->ports_n,
                                   all->endpoints.n - first };
    }
}


/* Adds what is good of a subset to all, and counts what is not. */
static void
endpoints_subset_end(kube_decode_t *d, endpoints_subset_t *subset,
    endpoints_all_t *all)
{
    size_t                  i, k;
    const kube_endpoint_t  *p;

    for (k = 0; k < 2; k++) {
        p = k ? subset->not_ready.p : subset->ready.p;

        for (i = (k ? subset->not_ready.n : subset->ready.n); i != 0; i--) {
            d->dropped += (p[i - 1].address.family == KUBE_FAMILY_NONE);
        }
    }

    kube_decode_ports_end(d, &subset->all_ports, true, &subset->ports,
                          &subset->ports_n);

    endpoints_family(d, subset, KUBE_FAMILY_IPV4, all);
    endpoints_family(d, subset, KUBE_FAMILY_IPV6, all);
}


static void
endpoints_subset(kube_decode_t *d, endpoints_all_t *all)
{
    kube_rc_t           rc;
    kube_str_t          name;
    endpoints_subset_t  subset;

    memset(&subset, 0, sizeof(endpoints_subset_t));
    rc = kube_decode_enter(d, '{');
    d->dropped += (rc == KUBE_INVALID);

    while (rc == KUBE_OK && kube_lexer_member(&d->lx, &name)) {

        if (kube_str_eq(name, KUBE_STR("addresses"))) {
            endpoints_addresses(d, &subset.ready, true);

        } else if (kube_str_eq(name, KUBE_STR("notReadyAddresses"))) {
            endpoints_addresses(d, &subset.not_ready, false);

        } else if (kube_str_eq(name, KUBE_STR("ports"))) {
            kube_decode_ports(d, &subset.all_ports, KUBE_SLICE_PORTS_MAX,
                              false);

        } else {
            kube_lexer_value(&d->lx, NULL);
        }
    }

    endpoints_subset_end(d, &subset, all);
}


static void
endpoints_subsets(kube_decode_t *d, endpoints_all_t *all)
{
    kube_rc_t  rc;

    /* given twice, the last one counts */
    all->endpoints.n = 0;
    all->ports.n = 0;
    all->subsets.n = 0;

    rc = kube_decode_enter(d, '[');

    if (rc == KUBE_INVALID) {
        kube_lexer_fail(&d->lx, "subsets is no array");
    }

    while (rc == KUBE_OK && kube_lexer_element(&d->lx)) {
        endpoints_subset(d, all);
    }
}


static void
endpoints_begin(endpoints_all_t *all, kube_decode_metadata_t *meta)
{
    memset(all, 0, sizeof(endpoints_all_t));

    *meta = (kube_decode_metadata_t) {
        .annotation_key = KUBE_STR("endpoints.kubernetes.io/"
                                   "last-change-trigger-time")
    };
}


static void
endpoints_end(const endpoints_all_t *all, const kube_decode_metadata_t *meta,
    kube_slice_t *slice)
{
    int64_t  ms;

    if (kube_date_parse_rfc3339(meta->annotation, &ms) == KUBE_OK) {
        slice->trigger_ms = ms;
    }

    /* a name no Service can have joins them to none */

    if (kube_name_is_label(slice->meta.name)) {
        slice->service = slice->meta.name;
    }

    slice->endpoints = all->endpoints.p;
    slice->endpoints_n = all->endpoints.n;
    slice->ports = all->ports.p;
    slice->ports_n = all->ports.n;

    if (slice->endpoints_n != 0) {
        slice->family = slice->endpoints[0].address.family;
    }

    if (all->subsets.n > 1) {
        slice->subsets = all->subsets.p;
        slice->subsets_n = all->subsets.n;
    }
}


void
kube_decode_endpoints(kube_decode_t *d, kube_object_t *object)
{
    kube_str_t               name;
    endpoints_all_t          all;
    kube_decode_metadata_t   meta;

    endpoints_begin(&all, &meta);

    if (d->inside) {
        kube_decode_metadata(d, &meta);
    }

    while (kube_lexer_member(&d->lx, &name)) {

        if (kube_str_eq(name, KUBE_STR("metadata"))) {
            kube_decode_metadata(d, &meta);

        } else if (kube_str_eq(name, KUBE_STR("subsets"))) {
            endpoints_subsets(d, &all);

        } else {
            kube_decode_other(d, name, object->resource);
        }
    }

    endpoints_end(&all, &meta, &object->u.slice);
}


/* The numbers of core/v1's Endpoints, EndpointSubset, ... */
enum {
    ENDPOINTS_SUBSETS = 2
};

enum {
    SUBSET_READY = 1,
    SUBSET_NOT_READY = 2,
    SUBSET_PORTS = 3
};

/* ... EndpointAddress, and EndpointPort. */
enum {
    ADDRESS_IP = 1,
    ADDRESS_TARGET = 2,
    ADDRESS_NODE = 4
};

static const kube_decode_port_numbers_t  endpoints_port_numbers = {
    .name = 1,
    .protocol = 3,
    .port = 2,
    .app_protocol = 4
};


static void
endpoints_message_address(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_decode_array_t *array, bool ready)
{
    kube_str_t              text;
    kube_endpoint_t        *endpoint;
    kube_protobuf_t         inner;
    kube_decode_target_t    target;
    kube_protobuf_field_t   part;

    if (!kube_protobuf_enter(m, f, &inner)) {
        return;
    }

    endpoint = kube_decode_more(d, array, sizeof(kube_endpoint_t), SIZE_MAX,
                                "");
    if (endpoint == NULL) {
        return;
    }

    memset(endpoint, 0, sizeof(kube_endpoint_t));
    endpoint->ready = ready;
    endpoint->serving = ready;
    kube_decode_target_begin(&target, KUBE_STR_NULL);

    while (kube_decode_field(d, &inner, &part)) {

        if (part.number == ADDRESS_IP) {

            if (kube_protobuf_bytes(&inner, &part, &text)
                && kube_addr_parse(text, &endpoint->address) != KUBE_OK)
            {
                endpoint->address.family = KUBE_FAMILY_NONE;
            }

        } else if (part.number == ADDRESS_TARGET) {
            kube_decode_message_target(d, &inner, &part, &target);

        } else if (part.number == ADDRESS_NODE) {
            kube_decode_message_shown(d, &inner, &part, &endpoint->node);
        }
    }

    endpoint->pod = kube_decode_target_pod(d, &target);
}


static void
endpoints_message_subset(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, endpoints_all_t *all)
{
    kube_protobuf_t        inner;
    endpoints_subset_t     subset;
    kube_protobuf_field_t  part;

    memset(&subset, 0, sizeof(endpoints_subset_t));

    if (!kube_protobuf_enter(m, f, &inner)) {
        return;
    }

    while (kube_decode_field(d, &inner, &part)) {

        if (part.number == SUBSET_READY) {
            endpoints_message_address(d, &inner, &part, &subset.ready, true);

        } else if (part.number == SUBSET_NOT_READY) {
            endpoints_message_address(d, &inner, &part, &subset.not_ready,
                                      false);

        } else if (part.number == SUBSET_PORTS) {
            kube_decode_message_port(d, &inner, &part, &endpoints_port_numbers,
                                     &subset.all_ports, KUBE_SLICE_PORTS_MAX,
                                     false);
        }
    }

    endpoints_subset_end(d, &subset, all);
}


void
kube_decode_endpoints_message(kube_decode_t *d, kube_protobuf_t *m,
    kube_object_t *object)
{
    endpoints_all_t          all;
    kube_protobuf_field_t    f;
    kube_decode_metadata_t   meta;

    endpoints_begin(&all, &meta);

    while (kube_decode_field(d, m, &f)) {

        if (f.number == KUBE_PROTOBUF_METADATA) {
            kube_decode_message_metadata(d, m, &f, &meta);

        } else if (f.number == ENDPOINTS_SUBSETS) {
            endpoints_message_subset(d, m, &f, &all);
        }
    }

    endpoints_end(&all, &meta, &object->u.slice);
}

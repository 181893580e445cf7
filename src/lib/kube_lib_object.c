/*
 * kube_lib_object - objects as programs see them: structs whose strings end
 * with NUL, in one piece of memory, counted.
 *
 * Two passes over the decoded object: one adds up what is needed, the other
 * writes it.  For the other files of src/lib.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdatomic.h>
#include <string.h>

#include "kube_lib.h"


static_assert((int) KUBE_V1_SERVICE == (int) KUBE_RESOURCE_SERVICES
              && (int) KUBE_V1_ENDPOINTSLICE
                 == (int) KUBE_RESOURCE_ENDPOINTSLICES
              && (int) KUBE_V1_ENDPOINTS == (int) KUBE_RESOURCE_ENDPOINTS
              && (int) KUBE_V1_POD == (int) KUBE_RESOURCE_PODS,
              "resources");
static_assert((int) KUBE_V1_TCP == (int) KUBE_PROTOCOL_TCP
              && (int) KUBE_V1_UDP == (int) KUBE_PROTOCOL_UDP
              && (int) KUBE_V1_SCTP == (int) KUBE_PROTOCOL_SCTP,
              "protocols");
static_assert((int) KUBE_V1_CLUSTER_IP == (int) KUBE_SERVICE_CLUSTER_IP
              && (int) KUBE_V1_NODE_PORT == (int) KUBE_SERVICE_NODE_PORT
              && (int) KUBE_V1_LOAD_BALANCER
                 == (int) KUBE_SERVICE_LOAD_BALANCER
              && (int) KUBE_V1_EXTERNAL_NAME
                 == (int) KUBE_SERVICE_EXTERNAL_NAME,
              "types");

/* The public part is the last: what is behind it is its own. */
typedef struct {
    kube_alloc_t             alloc;
    atomic_size_t            refs;
    kube_v1_service_t        service;
    kube_v1_endpointslice_t  slice;
    kube_v1_metadata_t       metadata;
    kube_v1_object_t         object;
} object_t;

/* Memory that is given out bit by bit; at NULL: it is only counted. */
typedef struct {
    char    *at;
    size_t   n;
} piece_t;


static void *
piece_take(piece_t *piece, size_t n)
{
    void  *p;

    p = (piece->at != NULL) ? piece->at + piece->n : NULL;
    piece->n += n;

    return p;
}


static const char *
piece_str(piece_t *piece, kube_str_t s)
{
    char  *p;

    if (s.len == 0) {
        return "";
    }

    p = piece_take(piece, s.len + 1);

    if (p != NULL) {
        memcpy(p, s.data, s.len);
        p[s.len] = '\0';
    }

    return p;
}


static const char *
piece_addr(piece_t *piece, const kube_addr_t *addr)
{
    char    text[KUBE_ADDR_TEXT_MAX];
    size_t  n;

    n = kube_addr_text(addr, text);

    return piece_str(piece, (kube_str_t) { text, n });
}


static void
object_ports(kube_v1_port_t *to, piece_t *piece, const kube_port_t *ports,
    size_t n)
{
    size_t          i;
    kube_v1_port_t  port;

    for (i = 0; i < n; i++) {
        port = (kube_v1_port_t) {
            .name = piece_str(piece, ports[i].name),
            .app_protocol = piece_str(piece, ports[i].app_protocol),
            .port = ports[i].port,
            .protocol = (kube_v1_protocol_t) ports[i].protocol
        };

        if (to != NULL) {
            to[i] = port;
        }
    }
}


static void
object_endpoints(kube_v1_endpoint_t *to, piece_t *piece,
    const kube_slice_t *slice)
{
    size_t                  i;
    kube_v1_endpoint_t      endpoint;
    const kube_endpoint_t  *from;

    for (i = 0; i < slice->endpoints_n; i++) {
        from = &slice->endpoints[i];

        endpoint = (kube_v1_endpoint_t) {
            .address = piece_addr(piece, &from->address),
            .ready = from->ready,
            .serving = from->serving,
            .terminating = from->terminating,
            .pod = piece_str(piece, from->pod),
            .node = piece_str(piece, from->node),
            .zone = piece_str(piece, from->zone)
        };

        if (to != NULL) {
            to[i] = endpoint;
        }
    }
}


/* Arrays come before strings, which have no alignment. */
static void
object_service(kube_v1_service_t *to, piece_t *piece,
    const kube_service_t *from)
{
    size_t           i;
    kube_v1_port_t  *ports;

    ports = piece_take(piece, from->ports_n * sizeof(kube_v1_port_t));

    *to = (kube_v1_service_t) {
        .type = (kube_v1_service_type_t) from->type,
        .headless = from->headless,
        .cluster_ips = { "", "" },
        .cluster_ips_n = from->cluster_ips_n,
        .ports = ports,
        .ports_n = from->ports_n
    };

    object_ports(ports, piece, from->ports, from->ports_n);

    for (i = 0; i < from->cluster_ips_n; i++) {
        to->cluster_ips[i] = piece_addr(piece, &from->cluster_ips[i]);
    }
}


/* Shows the ports and endpoints of a slice part by part.  Returns how many. */
static size_t
object_subsets(kube_v1_subset_t *to, const kube_slice_t *slice,
    const kube_v1_port_t *ports, const kube_v1_endpoint_t *endpoints)
{
    size_t        i, n;
    kube_slice_t  part;

    n = 0;

    for (i = 0; kube_slice_part(slice, &i, &part); n++) {

        if (to == NULL) {
            continue;
        }

        to[n] = (kube_v1_subset_t) {
            .family = (int) part.family,
            .ports = ports,
            .ports_n = part.ports_n,
            .endpoints = endpoints,
            .endpoints_n = part.endpoints_n
        };

        ports += part.ports_n;
        endpoints += part.endpoints_n;
    }

    return n;
}


static void
object_slice(kube_v1_endpointslice_t *to, piece_t *piece,
    const kube_slice_t *from)
{
    size_t               subsets_n;
    kube_v1_port_t      *ports;
    kube_v1_subset_t    *subsets;
    kube_v1_endpoint_t  *endpoints;

    ports = piece_take(piece, from->ports_n * sizeof(kube_v1_port_t));
    endpoints = piece_take(piece,
                           from->endpoints_n * sizeof(kube_v1_endpoint_t));
    subsets_n = object_subsets(NULL, from, ports, endpoints);
    subsets = piece_take(piece, subsets_n * sizeof(kube_v1_subset_t));

    if (subsets != NULL) {
        (void) object_subsets(subsets, from, ports, endpoints);
    }

    *to = (kube_v1_endpointslice_t) {
        .service = piece_str(piece, from->service),
        .family = (int) from->family,
        .ports = ports,
        .ports_n = from->ports_n,
        .endpoints = endpoints,
        .endpoints_n = from->endpoints_n,
        .subsets = subsets,
        .subsets_n = subsets_n
    };

    object_ports(ports, piece, from->ports, from->ports_n);
    object_endpoints(endpoints, piece, from);
}


static void
object_metadata(kube_v1_metadata_t *to, piece_t *piece,
    const kube_partial_t *from)
{
    size_t            i;
    kube_v1_label_t   label, *labels;

    labels = piece_take(piece, from->labels_n * sizeof(kube_v1_label_t));

    *to = (kube_v1_metadata_t) {
        .labels = labels,
        .labels_n = from->labels_n,
        .deletion_ms = from->deletion_ms
    };

    for (i = 0; i < from->labels_n; i++) {
        label.name = piece_str(piece, from->labels[i].name);
        label.value = piece_str(piece, from->labels[i].value);

        if (labels != NULL) {
            labels[i] = label;
        }
    }
}


static void
object_fill(object_t *to, piece_t *piece, const kube_object_t *from)
{
    kube_shape_t        shape;
    const kube_meta_t  *meta;

    shape = kube_resource_info(from->resource)->shape;

    switch (shape) {

    case KUBE_SHAPE_SERVICE:
        object_service(&to->service, piece, &from->u.service);
        break;

    case KUBE_SHAPE_SLICE:
        object_slice(&to->slice, piece, &from->u.slice);
        break;

    default:
        object_metadata(&to->metadata, piece, &from->u.partial);
    }

    meta = kube_object_meta(from);

    to->object = (kube_v1_object_t) {
        .resource = (kube_v1_resource_t) from->resource,
        .ns = piece_str(piece, meta->ns),
        .name = piece_str(piece, meta->name),
        .uid = piece_str(piece, meta->uid),
        .rv = piece_str(piece, meta->rv),
        .service = (shape == KUBE_SHAPE_SERVICE) ? &to->service : NULL,
        .slice = (shape == KUBE_SHAPE_SLICE) ? &to->slice : NULL,
        .metadata = (shape == KUBE_SHAPE_METADATA) ? &to->metadata : NULL
    };
}


kube_v1_object_t *
kube_lib_object_of(const kube_alloc_t *alloc, const kube_object_t *from)
{
    piece_t    piece;
    object_t  *made, counted;

    piece = (piece_t) { NULL, 0 };
    object_fill(&counted, &piece, from);

    made = kube_alloc(alloc, sizeof(object_t) + piece.n);
    if (made == NULL) {
        return NULL;
    }

    made->alloc = *alloc;
    atomic_init(&made->refs, 1);

    piece = (piece_t) { (char *) (made + 1), 0 };
    object_fill(made, &piece, from);

    return &made->object;
}


kube_rc_t
kube_lib_object(kube_arena_t *arena, const kube_stored_t *stored,
    const kube_v1_object_t **object)
{
    kube_rc_t      rc;
    kube_object_t  from;

    kube_arena_reset(arena);

    rc = kube_record_decode(arena, stored->record, stored->record->size,
                            &from);
    if (rc != KUBE_OK) {
        return rc;
    }

    *object = kube_lib_object_of(arena->alloc, &from);

    return (*object != NULL) ? KUBE_OK : KUBE_NOMEM;
}


const char *
kube_v1_label(const kube_v1_object_t *object, const char *name)
{
    size_t  i;

    if (object->metadata == NULL) {
        return NULL;
    }

    for (i = 0; i < object->metadata->labels_n; i++) {
        if (strcmp(object->metadata->labels[i].name, name) == 0) {
            return object->metadata->labels[i].value;
        }
    }

    return NULL;
}


static object_t *
object_of(const kube_v1_object_t *object)
{
    return (object_t *) ((uintptr_t) object - offsetof(object_t, object));
}


const kube_v1_object_t *
kube_v1_object_hold(const kube_v1_object_t *object)
{
    (void) atomic_fetch_add_explicit(&object_of(object)->refs, 1,
                                     memory_order_relaxed);
    return object;
}


void
kube_v1_object_release(const kube_v1_object_t *object)
{
    kube_alloc_t  alloc;

    if (object == NULL
        || atomic_fetch_sub_explicit(&object_of(object)->refs, 1,
                                     memory_order_acq_rel) != 1)
    {
        return;
    }

    alloc = object_of(object)->alloc;
    kube_free(&alloc, object_of(object));
}

/*
 * kube_resource - the one table of the resources that are listed and watched.
 *
 * A new resource is one row here and the projection that the row names, in a
 * file of its own.  No other file may ask "is it a Service?" of a resource:
 * it asks for the resource's shape, which is what the rest of the informer
 * works with.  Rows of two kinds: those that requests are routed by, which
 * the zone holds, and those that only programs follow (kube_shared_informer),
 * which no zone, state file or worker ever has.  Constant data; any process
 * may read it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_RESOURCE_H
#define KUBE_RESOURCE_H


#include "kube_base.h"


/* What an object of a resource is to routing, whatever it is in the API. */
typedef enum {
    KUBE_SHAPE_SERVICE = 0,     /* a name, its ports, and where they lead */
    KUBE_SHAPE_SLICE,           /* endpoints of a Service */
    KUBE_SHAPE_METADATA,        /* nothing: only its metadata is asked for */
    KUBE_SHAPES
} kube_shape_t;


/*
 * Columns:
 *
 *   name    the enumerator behind KUBE_RESOURCE_
 *   text    the plural of paths, status and metrics
 *   path    the path of the group and version
 *   version "apiVersion" of an object
 *   kind    "kind" of an object; a list's is the same with "List"
 *   shape   the enumerator behind KUBE_SHAPE_
 *   named   what metadata.name must be: kube_name_is_<named>()
 *   decode  the projection: kube_decode_<decode>() in src/api turns the JSON
 *           of one object into the resource's shape, and
 *           kube_decode_<decode>_message() its Protocol Buffers
 *
 * Sources: k8s.io/api core/v1 and discovery/v1; pkg/apis/core/validation and
 * pkg/apis/discovery/validation for the names.
 */
#define KUBE_RESOURCE_ROUTED_MAP(XX)                                          \
    XX(SERVICES, "services", "/api/v1", "v1", "Service",                      \
       SERVICE, label, service)                                               \
    XX(ENDPOINTSLICES, "endpointslices", "/apis/discovery.k8s.io/v1",         \
       "discovery.k8s.io/v1", "EndpointSlice",                                \
       SLICE, subdomain, slice)                                               \
    XX(ENDPOINTS, "endpoints", "/api/v1", "v1", "Endpoints",                  \
       SLICE, subdomain, endpoints)

/* What programs may follow beside these. */
#define KUBE_RESOURCE_OTHER_MAP(XX)                                           \
    XX(PODS, "pods", "/api/v1", "v1", "Pod",                                  \
       METADATA, subdomain, partial)

#define KUBE_RESOURCE_MAP(XX)                                                 \
    KUBE_RESOURCE_ROUTED_MAP(XX)                                              \
    KUBE_RESOURCE_OTHER_MAP(XX)

typedef enum {
#define XX(name, text, path, version, kind, shape, named, decode)             \
    KUBE_RESOURCE_##name,
    KUBE_RESOURCE_MAP(XX)
#undef XX
    KUBE_RESOURCES
} kube_resource_t;

/* How many of them are routed by: these come first. */
#define KUBE_RESOURCE_ONE(name, text, path, version, kind, shape, named,      \
    decode)  + 1
#define KUBE_RESOURCES_ROUTED                                                 \
    (0 KUBE_RESOURCE_ROUTED_MAP(KUBE_RESOURCE_ONE))

typedef struct {
    const char    *text;
    const char    *path;
    const char    *version;
    const char    *kind;
    const char    *list_kind;
    kube_shape_t   shape;
    bool         (*is_name)(kube_str_t name);
} kube_resource_info_t;

/* The row of a resource; r is below KUBE_RESOURCES. */
const kube_resource_info_t *kube_resource_info(kube_resource_t r);

/* The row's text; "unknown" for a foreign value. */
const char *kube_resource_text(kube_resource_t r);

/*
 * "Accept" of a list or a watch, in JSON.  Of a resource of which only the
 * metadata is used that alone is asked for (meta/v1 PartialObjectMetadata), and
 * whole objects are taken from a server, or a proxy, that does not know it.
 */
const char *kube_resource_accept(kube_resource_t r, bool watch);

/* Whether an object, or a list, of this kind may be one of the resource. */
bool kube_resource_is_kind(kube_resource_t r, kube_str_t kind);
bool kube_resource_is_version(kube_resource_t r, kube_str_t version);
bool kube_resource_is_list(kube_resource_t r, kube_str_t kind);

/* DNS-1123 checks used wherever a name comes from outside. */
bool kube_name_is_label(kube_str_t s);       /* 1..63, [a-z0-9-] */
bool kube_name_is_subdomain(kube_str_t s);   /* 1..253, labels with dots */


#endif /* KUBE_RESOURCE_H */

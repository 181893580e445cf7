/*
 * kube_object - the fields used of Service (core/v1), of EndpointSlice
 * (discovery.k8s.io/v1) and Endpoints (core/v1), and the metadata of any other
 * resource.
 *
 * These are views: every string and array belongs to whoever made the view
 * (an arena, a record) and lives as long as that.  Not generated models:
 * what routing and the status page do not need is not here.  Any process or
 * thread may read them.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_OBJECT_H
#define KUBE_OBJECT_H


#include "kube_addr.h"
#include "kube_limits.h"
#include "kube_resource.h"


typedef struct {
    kube_str_t  ns;
    kube_str_t  name;
    kube_str_t  uid;
    kube_str_t  rv;
} kube_meta_t;


typedef enum {
    KUBE_PROTOCOL_TCP = 0,   /* absent means TCP */
    KUBE_PROTOCOL_UDP,
    KUBE_PROTOCOL_SCTP
} kube_protocol_t;

const char *kube_protocol_text(kube_protocol_t p);


typedef struct {
    kube_str_t       name;           /* empty: unnamed */
    kube_str_t       app_protocol;   /* empty: none */
    uint16_t         port;           /* 1..65535; slices: 0 = no port */
    kube_protocol_t  protocol;
} kube_port_t;


typedef enum {
    KUBE_SERVICE_CLUSTER_IP = 0,
    KUBE_SERVICE_NODE_PORT,
    KUBE_SERVICE_LOAD_BALANCER,
    KUBE_SERVICE_EXTERNAL_NAME
} kube_service_type_t;

/* "ClusterIP", "NodePort", "LoadBalancer", "ExternalName" */
const char *kube_service_type_text(kube_service_type_t t);


typedef struct {
    kube_meta_t          meta;
    kube_service_type_t  type;
    bool                 headless;            /* clusterIP: None */
    kube_family_t        family;              /* ipFamilies[0]; NONE: absent */
    kube_addr_t          cluster_ips[KUBE_CLUSTER_IPS_MAX];
    size_t               cluster_ips_n;
    kube_port_t         *ports;
    size_t               ports_n;             /* <= KUBE_SERVICE_PORTS_MAX */
} kube_service_t;


typedef struct {
    kube_addr_t  address;       /* addresses[0] */
    bool         ready;         /* absent: true */
    bool         serving;       /* absent: true */
    bool         terminating;   /* absent: false */
    kube_str_t   pod;           /* targetRef.name where its kind is Pod */
    kube_str_t   node;
    kube_str_t   zone;
} kube_endpoint_t;

/* So many of the slice's ports go with so many of its endpoints, in order. */
typedef struct {
    size_t  ports_n;
    size_t  endpoints_n;             /* all of one family; at least one */
} kube_subset_t;

typedef struct {
    kube_meta_t       meta;
    kube_str_t        service;       /* label kubernetes.io/service-name; of
                                        Endpoints their own name */
    kube_family_t     family;        /* NONE: FQDN, never used */
    kube_port_t      *ports;
    size_t            ports_n;       /* <= KUBE_SLICE_PORTS_MAX */
    kube_endpoint_t  *endpoints;
    size_t            endpoints_n;   /* <= KUBE_SLICE_ENDPOINTS_MAX */
    kube_subset_t    *subsets;
    size_t            subsets_n;     /* 0: every port goes with every endpoint;
                                        else see kube_slice_part() */
    int64_t           trigger_ms;    /* last-change-trigger-time, unix ms; 0 */
} kube_slice_t;

/*
 * The next part in which every port goes with every endpoint: all of an
 * EndpointSlice, a subset of Endpoints.  *i is 0 at first; false: no more.
 *
 *     for (i = 0; kube_slice_part(slice, &i, &part); ) {
 */
bool kube_slice_part(const kube_slice_t *slice, size_t *i,
    kube_slice_t *part);


typedef struct {
    kube_str_t  name;                /* 1..KUBE_LABEL_NAME_MAX */
    kube_str_t  value;               /* ..KUBE_LABEL_VALUE_MAX; may be empty */
} kube_label_t;

/* What of a PartialObjectMetadata (meta/v1) is kept. */
typedef struct {
    kube_meta_t    meta;
    kube_label_t  *labels;           /* by name, each name once */
    size_t         labels_n;         /* <= KUBE_LABELS_MAX */
    int64_t        deletion_ms;      /* deletionTimestamp, unix ms; 0: none */
} kube_partial_t;


/* A decoded object of any resource; its shape says which member is valid. */
typedef struct {
    kube_resource_t  resource;
    union {
        kube_meta_t     meta;          /* what each shape begins with */
        kube_service_t  service;
        kube_slice_t    slice;
        kube_partial_t  partial;       /* of the shape METADATA */
    } u;
} kube_object_t;

static_assert(offsetof(kube_service_t, meta) == 0
              && offsetof(kube_slice_t, meta) == 0
              && offsetof(kube_partial_t, meta) == 0,
              "each shape begins with its metadata");

/* The metadata of any shape. */
const kube_meta_t *kube_object_meta(const kube_object_t *o);

#endif /* KUBE_OBJECT_H */

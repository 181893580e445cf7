/*
 * kube_lib_import - objects that a program made, as the informer has them: for
 * a source in memory, and after a transform.
 *
 * kube_lib_object.c goes the other way.  A count, a number or an address that
 * no object can have is refused here; names and lengths of texts are checked
 * by who takes the object.  For the other files of src/lib.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_lib.h"


/* The arrays of a slice, which are filled part by part. */
typedef struct {
    kube_arena_t   *arena;
    kube_slice_t   *slice;
    size_t          ports_max;
    size_t          endpoints_max;
    bool            numbered;       /* a port has a number; a slice's may not */
} import_t;


/* Returns room for n elements; NULL: *rc says why there is none, or n is 0. */
static void *
import_array(kube_arena_t *arena, size_t n, size_t max, size_t size,
    kube_rc_t *rc)
{
    void  *p;

    if (n == 0 || *rc != KUBE_OK) {
        return NULL;
    }

    if (n > max) {
        *rc = KUBE_INVALID;
        return NULL;
    }

    p = kube_arena_alloc(arena, n * size);

    if (p == NULL) {
        *rc = KUBE_NOMEM;

    } else {
        memset(p, 0, n * size);
    }

    return p;
}


static kube_rc_t
import_ports(kube_port_t *to, const kube_v1_port_t *from, size_t n,
    bool numbered)
{
    size_t  i;

    if (from == NULL && n != 0) {
        return KUBE_INVALID;
    }

    for (i = 0; i < n; i++) {

        if ((unsigned) from[i].protocol > KUBE_PROTOCOL_SCTP
            || (numbered && from[i].port == 0))
        {
            return KUBE_INVALID;
        }

        to[i] = (kube_port_t) {
            .name = kube_str(from[i].name),
            .app_protocol = kube_str(from[i].app_protocol),
            .port = from[i].port,
            .protocol = (kube_protocol_t) from[i].protocol
        };
    }

    return KUBE_OK;
}


static kube_rc_t
import_service(kube_arena_t *arena, const kube_v1_service_t *from,
    kube_service_t *to)
{
    size_t     i;
    kube_rc_t  rc;

    rc = KUBE_OK;

    if ((unsigned) from->type > KUBE_SERVICE_EXTERNAL_NAME
        || from->cluster_ips_n > KUBE_CLUSTER_IPS_MAX)
    {
        return KUBE_INVALID;
    }

    to->type = (kube_service_type_t) from->type;
    to->headless = (from->headless != 0);
    to->cluster_ips_n = from->cluster_ips_n;

    for (i = 0; i < from->cluster_ips_n; i++) {
        if (kube_addr_parse(kube_str(from->cluster_ips[i]),
                            &to->cluster_ips[i]) != KUBE_OK)
        {
            return KUBE_INVALID;
        }
    }

    if (to->family == KUBE_FAMILY_NONE && to->cluster_ips_n != 0) {
        to->family = to->cluster_ips[0].family;
    }

    to->ports = import_array(arena, from->ports_n, KUBE_SERVICE_PORTS_MAX,
                             sizeof(kube_port_t), &rc);
    to->ports_n = from->ports_n;

    return (rc == KUBE_OK) ? import_ports(to->ports, from->ports,
                                          from->ports_n, true)
                           : rc;
}


/* Adds endpoints, all of one family, with the ports that they have. */
static kube_rc_t
import_part(import_t *im, const kube_v1_subset_t *from)
{
    size_t            i;
    kube_rc_t         rc;
    kube_slice_t     *slice;
    kube_endpoint_t  *to;

    slice = im->slice;

    if ((from->endpoints == NULL && from->endpoints_n != 0)
        || from->ports_n > im->ports_max - slice->ports_n
        || from->endpoints_n > im->endpoints_max - slice->endpoints_n)
    {
        return KUBE_INVALID;
    }

    rc = import_ports(slice->ports + slice->ports_n, from->ports,
                      from->ports_n, im->numbered);

    for (i = 0; rc == KUBE_OK && i < from->endpoints_n; i++) {
        to = &slice->endpoints[slice->endpoints_n + i];

        *to = (kube_endpoint_t) {
            .ready = (from->endpoints[i].ready != 0),
            .serving = (from->endpoints[i].serving != 0),
            .terminating = (from->endpoints[i].terminating != 0),
            .pod = kube_str(from->endpoints[i].pod),
            .node = kube_str(from->endpoints[i].node),
            .zone = kube_str(from->endpoints[i].zone)
        };

        rc = kube_addr_parse(kube_str(from->endpoints[i].address),
                             &to->address);

        if (rc == KUBE_OK && (int) to->address.family != from->family) {
            rc = KUBE_INVALID;
        }
    }

    slice->ports_n += from->ports_n;
    slice->endpoints_n += from->endpoints_n;

    return rc;
}


/* Makes room for all ports and endpoints of n parts. */
static kube_rc_t
import_room(import_t *im, const kube_v1_subset_t *parts, size_t n)
{
    size_t     i;
    kube_rc_t  rc;

    rc = KUBE_OK;

    if (parts == NULL && n != 0) {
        return KUBE_INVALID;
    }

    for (i = 0; i < n; i++) {
        if (parts[i].ports_n > KUBE_SLICE_PORTS_MAX - im->ports_max
            || parts[i].endpoints_n
               > KUBE_SLICE_ENDPOINTS_MAX - im->endpoints_max)
        {
            return KUBE_INVALID;
        }

        im->ports_max += parts[i].ports_n;
        im->endpoints_max += parts[i].endpoints_n;
    }

    im->slice->ports = import_array(im->arena, im->ports_max,
                                    KUBE_SLICE_PORTS_MAX,
                                    sizeof(kube_port_t), &rc);
    im->slice->endpoints = import_array(im->arena, im->endpoints_max,
                                        KUBE_SLICE_ENDPOINTS_MAX,
                                        sizeof(kube_endpoint_t), &rc);
    im->slice->subsets = import_array(im->arena, n, KUBE_SLICE_ENDPOINTS_MAX,
                                      sizeof(kube_subset_t), &rc);
    return rc;
}


/* Subsets without endpoints are none, as for the API's decoder. */
static kube_rc_t
import_parts(kube_arena_t *arena, const kube_v1_subset_t *parts, size_t n,
    bool subsets, kube_slice_t *to)
{
    size_t     i;
    import_t   im;
    kube_rc_t  rc;

    im = (import_t) { .arena = arena, .slice = to, .numbered = subsets };

    to->ports_n = 0;
    to->endpoints_n = 0;
    to->subsets_n = 0;

    rc = import_room(&im, parts, n);

    for (i = 0; rc == KUBE_OK && i < n; i++) {

        if (parts[i].endpoints_n == 0 && subsets) {
            continue;
        }

        to->subsets[to->subsets_n++] = (kube_subset_t) {
            .ports_n = parts[i].ports_n,
            .endpoints_n = parts[i].endpoints_n
        };

        rc = import_part(&im, &parts[i]);
    }

    /* one part is all */

    if (to->subsets_n < 2) {
        to->subsets_n = 0;
        to->subsets = NULL;
    }

    return rc;
}


static kube_rc_t
import_slice(kube_arena_t *arena, const kube_v1_endpointslice_t *from,
    bool subsets, kube_slice_t *to)
{
    kube_rc_t         rc;
    kube_v1_subset_t  whole;

    if (from->family != KUBE_FAMILY_NONE
        && from->family != KUBE_FAMILY_IPV4
        && from->family != KUBE_FAMILY_IPV6)
    {
        return KUBE_INVALID;
    }

    to->service = kube_str(from->service);
    to->family = (kube_family_t) from->family;

    if (!subsets) {
        whole = (kube_v1_subset_t) {
            .ports = from->ports,
            .ports_n = from->ports_n,
            .endpoints = from->endpoints,
            .endpoints_n = from->endpoints_n,
            .family = from->family
        };

        return import_parts(arena, &whole, 1, false, to);
    }

    rc = import_parts(arena, from->subsets, from->subsets_n, true, to);

    to->service = kube_name_is_label(to->meta.name) ? to->meta.name
                                                    : KUBE_STR_NULL;
    to->family = (rc == KUBE_OK && to->endpoints_n != 0)
                 ? to->endpoints[0].address.family : KUBE_FAMILY_NONE;

    return rc;
}


/* Labels stand in the order of their names, each once. */
static kube_rc_t
import_metadata(kube_arena_t *arena, const kube_v1_metadata_t *from,
    kube_partial_t *to)
{
    int           cmp;
    size_t        i, k;
    kube_rc_t     rc;
    kube_label_t  label;

    rc = KUBE_OK;

    if (from->labels == NULL && from->labels_n != 0) {
        return KUBE_INVALID;
    }

    to->deletion_ms = from->deletion_ms;
    to->labels_n = from->labels_n;
    to->labels = import_array(arena, from->labels_n, KUBE_LABELS_MAX,
                              sizeof(kube_label_t), &rc);

    for (i = 0; rc == KUBE_OK && i < from->labels_n; i++) {
        label = (kube_label_t) { kube_str(from->labels[i].name),
                                 kube_str(from->labels[i].value) };

        for (k = i; k != 0; k--) {
            cmp = kube_str_cmp(to->labels[k - 1].name, label.name);

            if (cmp == 0) {
                return KUBE_INVALID;
            }

            if (cmp < 0) {
                break;
            }

            to->labels[k] = to->labels[k - 1];
        }

        to->labels[k] = label;
    }

    return rc;
}


kube_rc_t
kube_lib_import(kube_arena_t *arena, const kube_v1_object_t *from,
    kube_object_t *to)
{
    switch (kube_resource_info(to->resource)->shape) {

    case KUBE_SHAPE_SERVICE:
        return (from->service != NULL)
               ? import_service(arena, from->service, &to->u.service)
               : KUBE_INVALID;

    case KUBE_SHAPE_SLICE:
        return (from->slice != NULL)
               ? import_slice(arena, from->slice,
                              from->resource == KUBE_V1_ENDPOINTS,
                              &to->u.slice)
               : KUBE_INVALID;

    default:
        return (from->metadata != NULL)
               ? import_metadata(arena, from->metadata, &to->u.partial)
               : KUBE_INVALID;
    }
}

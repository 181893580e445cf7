/*
 * kube_object - texts of the enums, and the checks of names.
 *
 * It decodes no JSON (kube_decode does) and no address (kube_addr does).  No
 * state; may be called from any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_object.h"


const char *
kube_protocol_text(kube_protocol_t p)
{
    switch (p) {
    case KUBE_PROTOCOL_TCP:
        return "TCP";

    case KUBE_PROTOCOL_UDP:
        return "UDP";

    case KUBE_PROTOCOL_SCTP:
        return "SCTP";

    default:
        return "unknown";
    }
}


const char *
kube_service_type_text(kube_service_type_t t)
{
    switch (t) {
    case KUBE_SERVICE_CLUSTER_IP:
        return "ClusterIP";

    case KUBE_SERVICE_NODE_PORT:
        return "NodePort";

    case KUBE_SERVICE_LOAD_BALANCER:
        return "LoadBalancer";

    case KUBE_SERVICE_EXTERNAL_NAME:
        return "ExternalName";

    default:
        return "unknown";
    }
}


const kube_meta_t *
kube_object_meta(const kube_object_t *o)
{
    return &o->u.meta;
}


bool
kube_slice_part(const kube_slice_t *slice, size_t *i, kube_slice_t *part)
{
    size_t  n;

    n = (*i)++;

    if (n != 0 && n >= slice->subsets_n) {
        return false;
    }

    if (n == 0) {
        *part = *slice;
        part->subsets = NULL;
        part->subsets_n = 0;

    } else {
        part->ports += part->ports_n;
        part->endpoints += part->endpoints_n;
    }

    if (slice->subsets_n == 0) {
        return true;
    }

    part->ports_n = slice->subsets[n].ports_n;
    part->endpoints_n = slice->subsets[n].endpoints_n;
    part->family = part->endpoints[0].address.family;

    return true;
}

/*
 * kube_record_decode - reading the content of records: identity, objects.
 *
 * Accepts any bytes: every length is checked against what is left, every
 * count against its limit before memory is taken for it.  It verifies no
 * check sum (kube_record_validate does).  No state; any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_record_codec.h"


/*
 * Where decoded things go.  arena NULL: nothing is kept, lengths are checked
 * all the same.
 */
typedef struct {
    kube_record_in_t   in;
    kube_arena_t      *arena;
    bool               nomem;
} record_decoder_t;

/* Names of nodes or zones in the order of their first use. */
typedef struct {
    kube_str_t  *names;
    size_t       n;
    kube_str_t   last;
} record_dict_t;


static const unsigned char *
record_take(kube_record_in_t *in, size_t len)
{
    const unsigned char  *p;

    if (in->bad || (size_t) (in->end - in->p) < len) {
        in->bad = true;
        return NULL;
    }

    p = in->p;
    in->p += len;

    return p;
}


uint64_t
kube_record_get(kube_record_in_t *in, size_t bytes)
{
    size_t                i;
    uint64_t              v;
    const unsigned char  *p;

    p = record_take(in, bytes);
    v = 0;

    for (i = 0; p != NULL && i < bytes; i++) {
        v |= (uint64_t) p[i] << (8 * i);
    }

    return v;
}


kube_str_t
kube_record_get_str(kube_record_in_t *in, size_t max)
{
    size_t                len;
    const unsigned char  *p;

    len = (size_t) kube_record_get(in, 1);

    if (len > max) {
        in->bad = true;
    }

    p = record_take(in, len);

    if (p == NULL || len == 0) {
        return KUBE_STR_NULL;
    }

    return (kube_str_t) { (const char *) p, len };
}


static size_t
record_get_count(kube_record_in_t *in, size_t max)
{
    size_t    n;
    uint64_t  byte;
    unsigned  shift;

    n = 0;

    for (shift = 0; shift < 32; shift += 7) {
        byte = kube_record_get(in, 1);
        n |= (size_t) (byte & 0x7f) << shift;

        if (!(byte & 0x80)) {
            break;
        }
    }

    if (n > max || shift >= 32) {
        in->bad = true;
    }

    return in->bad ? 0 : n;
}


static void *
record_array(record_decoder_t *d, size_t n, size_t size)
{
    void  *p;

    if (d->arena == NULL || n == 0 || d->in.bad || d->nomem) {
        return NULL;
    }

    p = kube_arena_alloc(d->arena, n * size);

    if (p == NULL) {
        d->nomem = true;
    }

    return p;
}


/* A string written by what it shares with the one before it. */
static kube_str_t
record_get_after(record_decoder_t *d, kube_str_t last)
{
    char                 *p;
    size_t                shared, rest;
    const unsigned char  *bytes;

    shared = (size_t) kube_record_get(&d->in, 1);
    rest = (size_t) kube_record_get(&d->in, 1);
    bytes = record_take(&d->in, rest);

    if (shared > last.len
        || shared + rest == 0
        || shared + rest > KUBE_RECORD_STRING_MAX)
    {
        d->in.bad = true;
    }

    if (d->in.bad) {
        return KUBE_STR_NULL;
    }

    if (shared == 0 || d->arena == NULL) {
        return (kube_str_t) { (const char *) bytes, shared + rest };
    }

    p = record_array(d, shared + rest, 1);

    if (p == NULL) {
        return KUBE_STR_NULL;
    }

    memcpy(p, last.data, shared);
    memcpy(p + shared, bytes, rest);

    return (kube_str_t) { p, shared + rest };
}


static kube_str_t
record_get_name(record_decoder_t *d, record_dict_t *dict)
{
    size_t      id;
    kube_str_t  s;

    id = record_get_count(&d->in, dict->n);

    if (d->in.bad) {
        return KUBE_STR_NULL;
    }

    if (id < dict->n) {
        return (dict->names != NULL) ? dict->names[id] : KUBE_STR_NULL;
    }

    s = record_get_after(d, dict->last);

    dict->last = s;
    dict->n++;

    if (dict->names != NULL) {
        dict->names[id] = s;
    }

    return s;
}


static kube_addr_t
record_get_addr(kube_record_in_t *in, kube_family_t family)
{
    size_t                len;
    kube_addr_t           addr;
    const unsigned char  *p;

    memset(&addr, 0, sizeof(kube_addr_t));
    addr.family = family;

    len = (family == KUBE_FAMILY_IPV6) ? 16
          : (family == KUBE_FAMILY_IPV4) ? 4 : 0;
    p = record_take(in, len);

    if (p != NULL) {
        memcpy(addr.bytes, p, len);
    }

    return addr;
}


static kube_family_t
record_get_family(kube_record_in_t *in)
{
    uint64_t  v;

    v = kube_record_get(in, 1);

    if (v != KUBE_FAMILY_NONE
        && v != KUBE_FAMILY_IPV4
        && v != KUBE_FAMILY_IPV6)
    {
        in->bad = true;
        return KUBE_FAMILY_NONE;
    }

    return (kube_family_t) v;
}


static kube_port_t *
record_get_ports(record_decoder_t *d, size_t max, size_t *n)
{
    size_t        i;
    uint64_t      protocol;
    kube_port_t  *ports, port;

    *n = record_get_count(&d->in, max);

    /* a port takes five bytes at least: no memory for what is not there */
    if (*n > (size_t) (d->in.end - d->in.p) / 5) {
        d->in.bad = true;
    }

    ports = record_array(d, *n, sizeof(kube_port_t));

    for (i = 0; i < *n && !d->in.bad; i++) {
        protocol = kube_record_get(&d->in, 1);

        if (protocol > KUBE_PROTOCOL_SCTP) {
            d->in.bad = true;
        }

        port.protocol = (kube_protocol_t) protocol;
        port.port = (uint16_t) kube_record_get(&d->in, 2);
        port.name = kube_record_get_str(&d->in, KUBE_RECORD_STRING_MAX);
        port.app_protocol = kube_record_get_str(&d->in,
                                                KUBE_RECORD_STRING_MAX);
        if (ports != NULL) {
            ports[i] = port;
        }
    }

    return ports;
}


static void
record_get_service(record_decoder_t *d, kube_service_t *service)
{
    size_t    i;
    uint64_t  type;

    type = kube_record_get(&d->in, 1);
    service->headless = (type & KUBE_RECORD_SVC_HEADLESS) != 0;
    type &= ~(uint64_t) KUBE_RECORD_SVC_HEADLESS;

    if (type > KUBE_SERVICE_EXTERNAL_NAME) {
        d->in.bad = true;
        return;
    }

    service->type = (kube_service_type_t) type;
    service->cluster_ips_n = record_get_count(&d->in, KUBE_CLUSTER_IPS_MAX);

    for (i = 0; i < service->cluster_ips_n; i++) {
        service->cluster_ips[i] = record_get_addr(&d->in,
                                                  record_get_family(&d->in));
    }

    service->ports = record_get_ports(d, KUBE_SERVICE_PORTS_MAX,
                                      &service->ports_n);
}


static void
record_get_endpoint(record_decoder_t *d, kube_endpoint_t *ep,
    kube_str_t *pod, record_dict_t *nodes, record_dict_t *zones)
{
    uint64_t       flags;
    kube_family_t  family;

    memset(ep, 0, sizeof(kube_endpoint_t));

    flags = kube_record_get(&d->in, 1);

    if ((flags & KUBE_RECORD_EP_IPV4) && (flags & KUBE_RECORD_EP_IPV6)) {
        d->in.bad = true;
        return;
    }

    family = (flags & KUBE_RECORD_EP_IPV4) ? KUBE_FAMILY_IPV4
             : (flags & KUBE_RECORD_EP_IPV6) ? KUBE_FAMILY_IPV6
             : KUBE_FAMILY_NONE;

    ep->ready = (flags & KUBE_RECORD_EP_READY) != 0;
    ep->serving = (flags & KUBE_RECORD_EP_SERVING) != 0;
    ep->terminating = (flags & KUBE_RECORD_EP_TERMINATING) != 0;
    ep->address = record_get_addr(&d->in, family);

    if (flags & KUBE_RECORD_EP_POD) {
        *pod = record_get_after(d, *pod);
        ep->pod = *pod;
    }

    if (flags & KUBE_RECORD_EP_NODE) {
        ep->node = record_get_name(d, nodes);
    }

    if (flags & KUBE_RECORD_EP_ZONE) {
        ep->zone = record_get_name(d, zones);
    }
}


static void
record_get_slice(record_decoder_t *d, kube_slice_t *slice)
{
    size_t            i;
    kube_str_t        pod;
    kube_endpoint_t   ep;
    record_dict_t     nodes, zones;

    slice->family = record_get_family(&d->in);
    slice->ports = record_get_ports(d, KUBE_SLICE_PORTS_MAX,
                                    &slice->ports_n);
    slice->endpoints_n = record_get_count(&d->in, KUBE_SLICE_ENDPOINTS_MAX);

    /* one endpoint takes a byte at least: no memory for what is not there */
    if (slice->endpoints_n > (size_t) (d->in.end - d->in.p)) {
        d->in.bad = true;
        return;
    }

    slice->endpoints = record_array(d, slice->endpoints_n,
                                    sizeof(kube_endpoint_t));

    memset(&nodes, 0, sizeof(record_dict_t));
    memset(&zones, 0, sizeof(record_dict_t));
    nodes.names = record_array(d, 2 * slice->endpoints_n,
                               sizeof(kube_str_t));

    if (nodes.names != NULL) {
        zones.names = nodes.names + slice->endpoints_n;
    }

    pod = KUBE_STR_NULL;

    for (i = 0; i < slice->endpoints_n && !d->in.bad && !d->nomem; i++) {
        record_get_endpoint(d, &ep, &pod, &nodes, &zones);

        if (slice->endpoints != NULL) {
            slice->endpoints[i] = ep;
        }
    }
}


void
kube_record_get_id(kube_record_in_t *in, const kube_record_view_t *view,
    kube_record_id_t *id)
{
    memset(id, 0, sizeof(kube_record_id_t));

    id->resource = (kube_resource_t) view->header.resource;
    id->meta.rv = view->rv;
    id->meta.ns = kube_record_get_str(in, KUBE_NAMESPACE_LEN_MAX);
    id->meta.name = kube_record_get_str(in, KUBE_NAME_LEN_MAX);

    if (id->meta.ns.len == 0 || id->meta.name.len == 0) {
        in->bad = true;
    }

    if (view->header.kind == KUBE_RECORD_REFUSED) {
        id->reason = kube_record_get_str(in, KUBE_RECORD_REASON_MAX);
        return;
    }

    id->meta.uid = kube_record_get_str(in, KUBE_UID_LEN_MAX);

    if (view->header.kind == KUBE_RECORD_SLICE) {
        id->service = kube_record_get_str(in, KUBE_RECORD_STRING_MAX);
    }
}


static kube_record_in_t
record_in(const kube_record_view_t *view)
{
    return (kube_record_in_t) {
        view->content, view->content + view->header.content_size, false
    };
}


static void
record_get_object(record_decoder_t *d, const kube_record_view_t *view,
    kube_object_t *object)
{
    kube_record_id_t  id;

    kube_record_get_id(&d->in, view, &id);
    object->resource = id.resource;

    if (view->header.kind == KUBE_RECORD_SERVICE) {
        object->u.service.meta = id.meta;
        record_get_service(d, &object->u.service);

    } else {
        object->u.slice.meta = id.meta;
        object->u.slice.service = id.service;
        record_get_slice(d, &object->u.slice);
    }

    /* equal objects have equal bytes: nothing may follow */
    if (d->in.p != d->in.end) {
        d->in.bad = true;
    }
}


static bool
record_kind_has_id(unsigned kind)
{
    return kind == KUBE_RECORD_SERVICE
           || kind == KUBE_RECORD_SLICE
           || kind == KUBE_RECORD_REFUSED;
}


kube_rc_t
kube_record_content_check(const kube_record_view_t *view)
{
    kube_object_t     object;
    kube_record_id_t  id;
    record_decoder_t  d;

    if (!record_kind_has_id(view->header.kind)) {
        return KUBE_OK;
    }

    memset(&object, 0, sizeof(kube_object_t));
    d = (record_decoder_t) { record_in(view), NULL, false };

    if (view->header.kind == KUBE_RECORD_REFUSED) {
        kube_record_get_id(&d.in, view, &id);
        d.in.bad |= (d.in.p != d.in.end);

    } else {
        record_get_object(&d, view, &object);
    }

    return d.in.bad ? KUBE_CORRUPT : KUBE_OK;
}


kube_rc_t
kube_record_id(const void *bytes, size_t len, kube_record_id_t *id)
{
    kube_record_in_t    in;
    kube_record_view_t  view;

    if (kube_record_view(bytes, len, &view) != KUBE_OK
        || !record_kind_has_id(view.header.kind))
    {
        return KUBE_CORRUPT;
    }

    in = record_in(&view);
    kube_record_get_id(&in, &view, id);

    return in.bad ? KUBE_CORRUPT : KUBE_OK;
}


kube_rc_t
kube_record_decode(kube_arena_t *arena, const void *bytes, size_t len,
    kube_object_t *object)
{
    record_decoder_t    d;
    kube_record_view_t  view;

    if (kube_record_view(bytes, len, &view) != KUBE_OK
        || (view.header.kind != KUBE_RECORD_SERVICE
            && view.header.kind != KUBE_RECORD_SLICE))
    {
        return KUBE_CORRUPT;
    }

    memset(object, 0, sizeof(kube_object_t));

    d = (record_decoder_t) { record_in(&view), arena, false };
    record_get_object(&d, &view, object);

    /* what follows a string that found no memory looks broken */
    if (d.nomem) {
        return KUBE_NOMEM;
    }

    return d.in.bad ? KUBE_CORRUPT : KUBE_OK;
}

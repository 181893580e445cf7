/*
 * kube_record - writing objects as records, and what is done with a record
 * as a whole: structure, check sum, comparing.
 *
 * It reads no content but the identity (kube_record_decode.c does) and knows
 * no zone.  No state; may be called from any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_record_codec.h"


#define RECORD_ALIGN      8

/* Twice the endpoints of a slice, the next power of two. */
#define RECORD_SLOTS_MAX  2048


typedef struct {
    uint16_t  origin;      /* endpoint that used the string first, + 1 */
    uint16_t  id;
} record_slot_t;

/* The node names, or the zone names, of one slice. */
typedef struct {
    size_t         mask;
    unsigned       n;
    bool           zone;
    kube_str_t     last;
    record_slot_t  slots[RECORD_SLOTS_MAX];
} record_names_t;


static size_t
record_align(size_t n)
{
    return (n + RECORD_ALIGN - 1) & ~((size_t) RECORD_ALIGN - 1);
}


void
kube_record_put(kube_record_out_t *out, const void *data, size_t len)
{
    if (out->p != NULL && len != 0) {
        memcpy(out->p + out->size, data, len);
    }

    out->size += len;
}


void
kube_record_put_int(kube_record_out_t *out, uint64_t value, size_t bytes)
{
    size_t         i;
    unsigned char  b[8];

    for (i = 0; i < bytes; i++) {
        b[i] = (unsigned char) (value >> (8 * i));
    }

    kube_record_put(out, b, bytes);
}


void
kube_record_put_str(kube_record_out_t *out, kube_str_t s)
{
    kube_record_put_int(out, s.len, 1);
    kube_record_put(out, s.data, s.len);
}


static void
record_put_count(kube_record_out_t *out, size_t n)
{
    while (n > 0x7f) {
        kube_record_put_int(out, (n & 0x7f) | 0x80, 1);
        n >>= 7;
    }

    kube_record_put_int(out, n, 1);
}


/* What s shares with the string before it, and the rest. */
static void
record_put_after(kube_record_out_t *out, kube_str_t last, kube_str_t s)
{
    size_t  shared;

    for (shared = 0; shared < last.len && shared < s.len; shared++) {
        if (last.data[shared] != s.data[shared]) {
            break;
        }
    }

    kube_record_put_int(out, shared, 1);
    kube_record_put_int(out, s.len - shared, 1);
    kube_record_put(out, s.data + shared, s.len - shared);
}


static void
record_names_init(record_names_t *names, size_t endpoints, bool zone)
{
    size_t  n;

    for (n = 8; n < 2 * endpoints; n *= 2) {
        /* void */
    }

    names->mask = n - 1;
    names->n = 0;
    names->zone = zone;
    names->last = KUBE_STR_NULL;

    memset(names->slots, 0, n * sizeof(record_slot_t));
}


static kube_str_t
record_names_of(const record_names_t *names, const kube_endpoint_t *endpoint)
{
    return names->zone ? endpoint->zone : endpoint->node;
}


/* The number of the name, and the name itself where it is new. */
static void
record_put_name(kube_record_out_t *out, record_names_t *names,
    const kube_slice_t *slice, size_t i)
{
    uint64_t        hash;
    kube_str_t      s;
    record_slot_t  *slot;

    s = record_names_of(names, &slice->endpoints[i]);

    if (s.len == 0) {
        return;
    }

    hash = kube_hash64((kube_seed_t) { 0, 0 }, s.data, s.len);

    for ( ;; ) {
        slot = &names->slots[hash & names->mask];

        if (slot->origin == 0) {
            break;
        }

        if (kube_str_eq(s, record_names_of(names,
                                           &slice->endpoints[slot->origin
                                                             - 1])))
        {
            record_put_count(out, slot->id);
            return;
        }

        hash++;
    }

    slot->origin = (uint16_t) (i + 1);
    slot->id = (uint16_t) names->n;
    names->n++;

    record_put_count(out, slot->id);
    record_put_after(out, names->last, s);
    names->last = s;
}


static void
record_put_ports(kube_record_out_t *out, const kube_port_t *ports, size_t n)
{
    size_t  i;

    record_put_count(out, n);

    for (i = 0; i < n; i++) {
        kube_record_put_int(out, ports[i].protocol, 1);
        kube_record_put_int(out, ports[i].port, 2);
        kube_record_put_str(out, ports[i].name);
        kube_record_put_str(out, ports[i].app_protocol);
    }
}


static size_t
record_addr_size(kube_family_t family)
{
    switch (family) {
    case KUBE_FAMILY_IPV4:
        return 4;

    case KUBE_FAMILY_IPV6:
        return 16;

    default:
        return 0;
    }
}


static void
record_put_service(kube_record_out_t *out, const kube_service_t *service)
{
    size_t              i;
    const kube_addr_t  *addr;

    kube_record_put_int(out, (unsigned) service->type
                             | (service->headless ? KUBE_RECORD_SVC_HEADLESS
                                                  : 0u), 1);
    kube_record_put_int(out, service->cluster_ips_n, 1);

    for (i = 0; i < service->cluster_ips_n; i++) {
        addr = &service->cluster_ips[i];
        kube_record_put_int(out, addr->family, 1);
        kube_record_put(out, addr->bytes, record_addr_size(addr->family));
    }

    record_put_ports(out, service->ports, service->ports_n);
}


static unsigned
record_endpoint_flags(const kube_endpoint_t *endpoint)
{
    unsigned  flags;

    flags = 0;

    flags |= endpoint->ready ? KUBE_RECORD_EP_READY : 0u;
    flags |= endpoint->serving ? KUBE_RECORD_EP_SERVING : 0u;
    flags |= endpoint->terminating ? KUBE_RECORD_EP_TERMINATING : 0u;
    flags |= endpoint->pod.len != 0 ? KUBE_RECORD_EP_POD : 0u;
    flags |= endpoint->node.len != 0 ? KUBE_RECORD_EP_NODE : 0u;
    flags |= endpoint->zone.len != 0 ? KUBE_RECORD_EP_ZONE : 0u;

    if (endpoint->address.family == KUBE_FAMILY_IPV4) {
        flags |= KUBE_RECORD_EP_IPV4;

    } else if (endpoint->address.family == KUBE_FAMILY_IPV6) {
        flags |= KUBE_RECORD_EP_IPV6;
    }

    return flags;
}


static void
record_put_slice(kube_record_out_t *out, const kube_slice_t *slice)
{
    size_t                  i;
    kube_str_t              pod;
    record_names_t          nodes, zones;
    const kube_endpoint_t  *ep;

    record_names_init(&nodes, slice->endpoints_n, false);
    record_names_init(&zones, slice->endpoints_n, true);
    pod = KUBE_STR_NULL;

    kube_record_put_int(out, slice->family, 1);
    record_put_ports(out, slice->ports, slice->ports_n);
    record_put_count(out, slice->endpoints_n);

    for (i = 0; i < slice->endpoints_n; i++) {
        ep = &slice->endpoints[i];

        kube_record_put_int(out, record_endpoint_flags(ep), 1);
        kube_record_put(out, ep->address.bytes,
                        record_addr_size(ep->address.family));

        if (ep->pod.len != 0) {
            record_put_after(out, pod, ep->pod);
            pod = ep->pod;
        }

        record_put_name(out, &nodes, slice, i);
        record_put_name(out, &zones, slice, i);
    }
}


static void
record_put_object(kube_record_out_t *out, const kube_object_t *object)
{
    const kube_meta_t  *meta;

    meta = kube_object_meta(object);

    kube_record_put_str(out, meta->ns);
    kube_record_put_str(out, meta->name);
    kube_record_put_str(out, meta->uid);

    if (object->resource == KUBE_RESOURCE_SERVICES) {
        record_put_service(out, &object->u.service);

    } else {
        kube_record_put_str(out, object->u.slice.service);
        record_put_slice(out, &object->u.slice);
    }
}


static bool
record_ports_fit(const kube_port_t *ports, size_t n, size_t max)
{
    size_t  i;

    if (n > max) {
        return false;
    }

    for (i = 0; i < n; i++) {
        if (ports[i].name.len > KUBE_RECORD_STRING_MAX
            || ports[i].app_protocol.len > KUBE_RECORD_STRING_MAX)
        {
            return false;
        }
    }

    return true;
}


static bool
record_slice_fits(const kube_slice_t *slice)
{
    size_t                  i;
    const kube_endpoint_t  *ep;

    if (slice->endpoints_n > KUBE_SLICE_ENDPOINTS_MAX
        || slice->service.len > KUBE_RECORD_STRING_MAX
        || !record_ports_fit(slice->ports, slice->ports_n,
                             KUBE_SLICE_PORTS_MAX))
    {
        return false;
    }

    for (i = 0; i < slice->endpoints_n; i++) {
        ep = &slice->endpoints[i];

        if (ep->pod.len > KUBE_RECORD_STRING_MAX
            || ep->node.len > KUBE_RECORD_STRING_MAX
            || ep->zone.len > KUBE_RECORD_STRING_MAX)
        {
            return false;
        }
    }

    return true;
}


static bool
record_key_fits(kube_str_t ns, kube_str_t name, kube_str_t rv)
{
    return ns.len != 0 && ns.len <= KUBE_NAMESPACE_LEN_MAX
           && name.len != 0 && name.len <= KUBE_NAME_LEN_MAX
           && rv.len <= KUBE_RV_LEN_MAX;
}


static bool
record_object_fits(const kube_object_t *object)
{
    const kube_meta_t  *meta;

    meta = kube_object_meta(object);

    if (!record_key_fits(meta->ns, meta->name, meta->rv)
        || meta->uid.len > KUBE_UID_LEN_MAX)
    {
        return false;
    }

    if (object->resource == KUBE_RESOURCE_SERVICES) {
        return object->u.service.cluster_ips_n <= KUBE_CLUSTER_IPS_MAX
               && record_ports_fit(object->u.service.ports,
                                   object->u.service.ports_n,
                                   KUBE_SERVICE_PORTS_MAX);
    }

    return record_slice_fits(&object->u.slice);
}


static size_t
record_size(size_t content, size_t rv, size_t refs)
{
    return record_align(KUBE_RECORD_HEADER_SIZE + content + 1 + rv)
           + refs * sizeof(kube_ref_t);
}


size_t
kube_record_size(const kube_object_t *object, size_t refs_n)
{
    kube_record_out_t  out;

    if (refs_n > KUBE_SERVICE_SLICES_MAX
        || (refs_n != 0 && object->resource != KUBE_RESOURCE_SERVICES)
        || !record_object_fits(object))
    {
        return 0;
    }

    out = (kube_record_out_t) { NULL, 0 };
    record_put_object(&out, object);

    return record_size(out.size, kube_object_meta(object)->rv.len, refs_n);
}


/* Header and tail around content that was written already. */
static void
record_finish(void *buf, kube_record_kind_t kind, kube_resource_t resource,
    size_t content_size, kube_str_t rv, size_t refs_n)
{
    size_t          end, base;
    unsigned char  *tail;
    kube_record_t  *record;

    end = KUBE_RECORD_HEADER_SIZE + content_size + 1 + rv.len;
    base = record_align(end);

    tail = (unsigned char *) buf + KUBE_RECORD_HEADER_SIZE + content_size;
    tail[0] = (unsigned char) rv.len;

    if (rv.len != 0) {
        memcpy(tail + 1, rv.data, rv.len);
    }

    memset((unsigned char *) buf + end, 0,
           base - end + refs_n * sizeof(kube_ref_t));

    record = buf;
    memset(record, 0, sizeof(kube_record_t));

    record->size = (uint32_t) (base + refs_n * sizeof(kube_ref_t));
    record->kind = (uint8_t) kind;
    record->resource = (uint8_t) resource;
    record->content_size = (uint32_t) content_size;
    record->refs_n = (uint32_t) refs_n;

    kube_record_seal(record);
}


static kube_record_out_t
record_out(void *buf)
{
    return (kube_record_out_t) {
        (unsigned char *) buf + KUBE_RECORD_HEADER_SIZE, 0
    };
}


void
kube_record_encode(const kube_object_t *object, size_t refs_n, void *buf)
{
    kube_record_kind_t  kind;
    kube_record_out_t   out;

    kind = (object->resource == KUBE_RESOURCE_SERVICES) ? KUBE_RECORD_SERVICE
                                                        : KUBE_RECORD_SLICE;
    out = record_out(buf);
    record_put_object(&out, object);
    record_finish(buf, kind, object->resource, out.size,
                  kube_object_meta(object)->rv, refs_n);
}


static void
record_put_refused(kube_record_out_t *out, kube_str_t ns, kube_str_t name,
    kube_str_t reason)
{
    if (reason.len > KUBE_RECORD_REASON_MAX) {
        reason.len = KUBE_RECORD_REASON_MAX;
    }

    kube_record_put_str(out, ns);
    kube_record_put_str(out, name);
    kube_record_put_str(out, reason);
}


size_t
kube_record_refused_size(kube_str_t ns, kube_str_t name)
{
    if (!record_key_fits(ns, name, KUBE_STR_NULL)) {
        return 0;
    }

    return record_size(3 + ns.len + name.len + KUBE_RECORD_REASON_MAX,
                       KUBE_RV_LEN_MAX, 0);
}


void
kube_record_refused_encode(kube_resource_t resource, kube_str_t ns,
    kube_str_t name, kube_str_t rv, kube_str_t reason, void *buf)
{
    kube_record_out_t  out;

    if (rv.len > KUBE_RV_LEN_MAX) {
        rv = KUBE_STR_NULL;
    }

    out = record_out(buf);
    record_put_refused(&out, ns, name, reason);
    record_finish(buf, KUBE_RECORD_REFUSED, resource, out.size, rv, 0);
}


size_t
kube_record_raw_size(size_t content_size)
{
    return record_size(content_size, 0, 0);
}


void
kube_record_raw_encode(kube_record_kind_t kind, kube_resource_t resource,
    const void *content, size_t content_size, void *buf)
{
    kube_record_out_t  out;

    out = record_out(buf);
    kube_record_put(&out, content, content_size);
    record_finish(buf, kind, resource, out.size, KUBE_STR_NULL, 0);
}


static uint32_t
record_check(const kube_record_t *header, const unsigned char *content,
    size_t base)
{
    uint64_t     h;
    kube_seed_t  seed;

    seed.k0 = header->content_size;
    seed.k1 = (uint64_t) header->kind << 8 | header->resource;
    h = kube_hash64(seed, content, base - KUBE_RECORD_HEADER_SIZE);

    return (uint32_t) (h ^ (h >> 32));
}


void
kube_record_seal(kube_record_t *record)
{
    record->check = record_check(record, (unsigned char *) record
                                         + KUBE_RECORD_HEADER_SIZE,
                                 kube_record_base(record));
}


size_t
kube_record_base(const kube_record_t *record)
{
    return record->size - record->refs_n * sizeof(kube_ref_t);
}


static bool
record_kind_is_valid(const kube_record_t *h)
{
    if (h->resource >= KUBE_RESOURCES) {
        return false;
    }

    switch (h->kind) {
    case KUBE_RECORD_SERVICE:
        return h->resource == KUBE_RESOURCE_SERVICES;

    case KUBE_RECORD_SLICE:
        return h->resource == KUBE_RESOURCE_ENDPOINTSLICES;

    case KUBE_RECORD_REFUSED:
    case KUBE_RECORD_SCOPE:
    case KUBE_RECORD_ERROR:
    case KUBE_RECORD_INFO:
        return true;

    default:
        return false;
    }
}


kube_rc_t
kube_record_view(const void *bytes, size_t len, kube_record_view_t *view)
{
    size_t                rv_len;
    kube_record_t        *h;
    const unsigned char  *tail;

    h = &view->header;

    if (len < KUBE_RECORD_HEADER_SIZE) {
        return KUBE_CORRUPT;
    }

    memcpy(h, bytes, sizeof(kube_record_t));

    if (h->size > len
        || h->size <= KUBE_RECORD_HEADER_SIZE
        || h->size % RECORD_ALIGN != 0
        || h->content_size >= h->size - KUBE_RECORD_HEADER_SIZE
        || h->refs_n > KUBE_SERVICE_SLICES_MAX
        || (h->refs_n != 0 && h->kind != KUBE_RECORD_SERVICE)
        || !record_kind_is_valid(h))
    {
        return KUBE_CORRUPT;
    }

    view->content = (const unsigned char *) bytes + KUBE_RECORD_HEADER_SIZE;
    tail = view->content + h->content_size;
    rv_len = tail[0];

    if (rv_len > KUBE_RV_LEN_MAX
        || record_size(h->content_size, rv_len, h->refs_n) != h->size)
    {
        return KUBE_CORRUPT;
    }

    view->rv = (kube_str_t) { (const char *) tail + 1, rv_len };
    view->base = h->size - h->refs_n * sizeof(kube_ref_t);

    return KUBE_OK;
}


kube_rc_t
kube_record_validate(const void *bytes, size_t len)
{
    kube_record_view_t  view;

    if (kube_record_view(bytes, len, &view) != KUBE_OK
        || record_check(&view.header, view.content, view.base)
           != view.header.check)
    {
        return KUBE_CORRUPT;
    }

    return kube_record_content_check(&view);
}


const kube_ref_t *
kube_record_refs(const kube_record_t *record)
{
    return (const kube_ref_t *) (const void *)
               ((const char *) record + kube_record_base(record));
}


bool
kube_record_same(const kube_record_t *a, const kube_record_t *b)
{
    return a->kind == b->kind
           && a->resource == b->resource
           && a->content_size == b->content_size
           && memcmp(a + 1, b + 1, a->content_size) == 0;
}


kube_digest_t
kube_record_digest(const kube_record_t *record)
{
    return kube_hash128(record + 1, record->content_size);
}

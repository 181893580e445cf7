/*
 * kube_record_content - the content of a record: identity and fields.
 *
 * Each function is the format of what it names, for both directions: see
 * kube_codec.  It knows neither header nor tail (kube_record.c does).  No
 * state; any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_record_impl.h"


/* The type of a Service is in the lower bits of the byte. */
#define CONTENT_HEADLESS     0x80
#define CONTENT_FAMILY_IPV6  0x40
#define CONTENT_FAMILY_IPV4  0x20

/* A slice has parts; beside its family. */
#define CONTENT_SUBSETS      0x80

/* Bits of an endpoint: conditions, names that follow, address family. */
#define CONTENT_READY        0x01
#define CONTENT_SERVING      0x02
#define CONTENT_TERMINATING  0x04
#define CONTENT_POD          0x08
#define CONTENT_NODE         0x10
#define CONTENT_ZONE         0x20
#define CONTENT_IPV4         0x40
#define CONTENT_IPV6         0x80

/* At least twice the endpoints of a slice, and a power of two. */
#define CONTENT_SLOTS_MAX    2048

/*
 * Names looked at before one is written out again: whoever picks names whose
 * hashes collide makes his own record longer, and costs no more time.
 */
#define CONTENT_PROBES_MAX   16


typedef struct {
    uint16_t  origin;      /* endpoint that used the name first, + 1 */
    uint16_t  number;
} content_slot_t;

/* The node names, or the zone names, of one slice, in order of first use. */
typedef struct {
    bool            zone;
    size_t          n;
    kube_str_t      last;
    kube_str_t     *names;                      /* reading */
    size_t          mask;                       /* writing: a hash table */
    content_slot_t  slots[CONTENT_SLOTS_MAX];
} content_names_t;


static inline KUBE_CODEC_INLINE void
content_names_init(content_names_t *names, const kube_codec_t *c,
    size_t endpoints, bool zone)
{
    size_t  n;

    names->zone = zone;
    names->n = 0;
    names->last = KUBE_STR_NULL;
    names->names = NULL;
    names->mask = 0;

    if (c->reading) {
        return;
    }

    for (n = 8; n < 2 * endpoints; n *= 2) {
        /* void */
    }

    names->mask = n - 1;
    memset(names->slots, 0, n * sizeof(content_slot_t));
}


static kube_str_t
content_name_of(const content_names_t *names, const kube_endpoint_t *ep)
{
    return names->zone ? ep->zone : ep->node;
}


static inline uint64_t
content_word(const char *p, size_t n)
{
    uint64_t  word;

    word = 0;
    memcpy(&word, p, n);

    return word;
}


/*
 * Of no use against collisions, which CONTENT_PROBES_MAX bounds.  Of a long
 * name the last word may be partly one before: no tail is looked at by byte.
 */
static inline size_t
content_name_hash(kube_str_t s)
{
    size_t    n;
    uint64_t  hash;

    hash = s.len;

    for (n = 0; s.len - n > 8; n += 8) {
        hash = (hash ^ content_word(s.data + n, 8)) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 32;
    }

    hash ^= (s.len >= 8) ? content_word(s.data + s.len - 8, 8)
                         : content_word(s.data, s.len);
    hash *= 0x9e3779b97f4a7c15ull;

    return (size_t) (hash ^ hash >> 32);
}


/* Returns the number of endpoint i's name; a new name gets the next one. */
static inline KUBE_CODEC_INLINE size_t
content_name_number(content_names_t *names, const kube_slice_t *slice,
    size_t i)
{
    size_t           hash;
    unsigned         probes;
    kube_str_t       s;
    content_slot_t  *slot;

    s = content_name_of(names, &slice->endpoints[i]);
    hash = content_name_hash(s);

    for (probes = 0; probes < CONTENT_PROBES_MAX; probes++) {
        slot = &names->slots[hash++ & names->mask];

        if (slot->origin == 0) {
            slot->origin = (uint16_t) (i + 1);
            slot->number = (uint16_t) names->n;
            break;
        }

        if (kube_str_eq(s, content_name_of(names,
                                    &slice->endpoints[slot->origin - 1])))
        {
            return slot->number;
        }
    }

    return names->n;
}


static inline KUBE_CODEC_INLINE kube_str_t
content_name(kube_codec_t *c, content_names_t *names,
    const kube_slice_t *slice, size_t i, kube_str_t s)
{
    size_t  number;

    number = c->reading ? 0 : content_name_number(names, slice, i);
    number = kube_codec_count(c, number, names->n);

    if (c->bad) {
        return KUBE_STR_NULL;
    }

    if (number < names->n) {
        return (names->names != NULL) ? names->names[number] : s;
    }

    s = kube_codec_between(c, names->last, s);

    if (names->names != NULL) {
        names->names[names->n] = s;
    }

    names->last = s;
    names->n++;

    return s;
}


static kube_family_t
content_family(kube_codec_t *c, kube_family_t family)
{
    uint64_t  v;

    v = kube_codec_int(c, family, 1);

    if (v != KUBE_FAMILY_NONE
        && v != KUBE_FAMILY_IPV4
        && v != KUBE_FAMILY_IPV6)
    {
        c->bad = true;
        return KUBE_FAMILY_NONE;
    }

    return (kube_family_t) v;
}


/* Passes the bytes of an address whose family has been passed. */
static inline KUBE_CODEC_INLINE void
content_addr(kube_codec_t *c, kube_addr_t *addr)
{
    if (addr->family == KUBE_FAMILY_IPV4) {
        kube_codec_bytes(c, addr->bytes, 4);

    } else if (addr->family == KUBE_FAMILY_IPV6) {
        kube_codec_bytes(c, addr->bytes, 16);
    }
}


static kube_port_t *
content_ports(kube_codec_t *c, kube_port_t *ports, size_t *n, size_t max)
{
    size_t       i;
    kube_port_t  port;

    *n = kube_codec_count(c, *n, max);

    if (c->reading) {
        ports = kube_codec_array(c, *n, sizeof(kube_port_t));
    }

    memset(&port, 0, sizeof(kube_port_t));

    for (i = 0; i < *n && !c->bad; i++) {
        if (!c->reading && ports != NULL) {
            port = ports[i];
        }

        port.protocol = (kube_protocol_t) kube_codec_max(c, port.protocol,
                                                         KUBE_PROTOCOL_SCTP);
        port.port = (uint16_t) kube_codec_int(c, port.port, 2);
        port.name = kube_codec_str(c, port.name, KUBE_CODEC_STR_MAX);
        port.app_protocol = kube_codec_str(c, port.app_protocol,
                                           KUBE_CODEC_STR_MAX);

        if (c->reading && ports != NULL) {
            ports[i] = port;
        }
    }

    return ports;
}


static unsigned
content_service_bits(const kube_service_t *service)
{
    return (unsigned) service->type
           | (service->headless ? CONTENT_HEADLESS : 0u)
           | (service->family == KUBE_FAMILY_IPV4 ? CONTENT_FAMILY_IPV4 : 0u)
           | (service->family == KUBE_FAMILY_IPV6 ? CONTENT_FAMILY_IPV6 : 0u);
}


static void
content_service(kube_codec_t *c, kube_service_t *service)
{
    size_t        i;
    uint64_t      bits, type;
    kube_addr_t  *ip;

    bits = kube_codec_int(c, content_service_bits(service), 1);
    type = bits & (CONTENT_FAMILY_IPV4 - 1);

    if (type > KUBE_SERVICE_EXTERNAL_NAME
        || ((bits & CONTENT_FAMILY_IPV4) && (bits & CONTENT_FAMILY_IPV6)))
    {
        c->bad = true;
        return;
    }

    service->type = (kube_service_type_t) type;
    service->headless = (bits & CONTENT_HEADLESS) != 0;
    service->family = (bits & CONTENT_FAMILY_IPV4) ? KUBE_FAMILY_IPV4
                      : (bits & CONTENT_FAMILY_IPV6) ? KUBE_FAMILY_IPV6
                      : KUBE_FAMILY_NONE;
    service->cluster_ips_n = kube_codec_count(c, service->cluster_ips_n,
                                              KUBE_CLUSTER_IPS_MAX);

    for (i = 0; i < service->cluster_ips_n; i++) {
        ip = &service->cluster_ips[i];
        ip->family = content_family(c, ip->family);
        content_addr(c, ip);
    }

    service->ports = content_ports(c, service->ports, &service->ports_n,
                                   KUBE_SERVICE_PORTS_MAX);
}


static inline KUBE_CODEC_INLINE unsigned
content_endpoint_bits(const kube_endpoint_t *ep)
{
    return (ep->ready ? CONTENT_READY : 0u)
           | (ep->serving ? CONTENT_SERVING : 0u)
           | (ep->terminating ? CONTENT_TERMINATING : 0u)
           | (ep->pod.len != 0 ? CONTENT_POD : 0u)
           | (ep->node.len != 0 ? CONTENT_NODE : 0u)
           | (ep->zone.len != 0 ? CONTENT_ZONE : 0u)
           | (ep->address.family == KUBE_FAMILY_IPV4 ? CONTENT_IPV4 : 0u)
           | (ep->address.family == KUBE_FAMILY_IPV6 ? CONTENT_IPV6 : 0u);
}


/* Passes all but node and zone; *pod is the last name.  Returns the bits. */
static inline KUBE_CODEC_INLINE uint64_t
content_endpoint(kube_codec_t *c, kube_endpoint_t *ep, kube_str_t *pod)
{
    uint64_t  bits;

    bits = kube_codec_int(c, content_endpoint_bits(ep), 1);

    if ((bits & CONTENT_IPV4) && (bits & CONTENT_IPV6)) {
        c->bad = true;
        return 0;
    }

    ep->ready = (bits & CONTENT_READY) != 0;
    ep->serving = (bits & CONTENT_SERVING) != 0;
    ep->terminating = (bits & CONTENT_TERMINATING) != 0;
    ep->address.family = (bits & CONTENT_IPV4) ? KUBE_FAMILY_IPV4
                         : (bits & CONTENT_IPV6) ? KUBE_FAMILY_IPV6
                         : KUBE_FAMILY_NONE;
    content_addr(c, &ep->address);

    if (bits & CONTENT_POD) {
        ep->pod = kube_codec_after(c, *pod, ep->pod);
        *pod = ep->pod;
    }

    return bits;
}


/*
 * The format of all endpoints, compiled once for each direction: reading is a
 * constant, and the cursor a copy of its own.
 */
static inline KUBE_CODEC_INLINE void
content_endpoints(kube_codec_t *from, kube_slice_t *slice, bool reading)
{
    size_t           i;
    uint64_t         bits;
    kube_str_t       pod;
    kube_codec_t     c;
    kube_endpoint_t  copy, *ep;
    content_names_t  nodes, zones;

    c = *from;
    c.reading = reading;
    content_names_init(&nodes, &c, slice->endpoints_n, false);
    content_names_init(&zones, &c, slice->endpoints_n, true);
    pod = KUBE_STR_NULL;

    if (reading) {
        slice->endpoints = kube_codec_array(&c, slice->endpoints_n,
                                            sizeof(kube_endpoint_t));
        nodes.names = kube_codec_array(&c, 2 * slice->endpoints_n,
                                       sizeof(kube_str_t));

        if (nodes.names != NULL) {
            zones.names = nodes.names + slice->endpoints_n;
        }
    }

    for (i = 0; i < slice->endpoints_n && !c.bad && !c.nomem; i++) {

        /* what is read is written where it stays */

        ep = (reading && slice->endpoints != NULL) ? &slice->endpoints[i]
                                                   : &copy;
        if (reading) {
            memset(ep, 0, sizeof(kube_endpoint_t));

        } else {
            copy = slice->endpoints[i];
        }

        bits = content_endpoint(&c, ep, &pod);

        if (bits & CONTENT_NODE) {
            ep->node = content_name(&c, &nodes, slice, i, ep->node);
        }

        if (bits & CONTENT_ZONE) {
            ep->zone = content_name(&c, &zones, slice, i, ep->zone);
        }
    }

    *from = c;
}


/* Which ports go with which endpoints; the parts make up the whole. */
static void
content_subsets(kube_codec_t *c, kube_slice_t *slice)
{
    size_t          i, ports_n, endpoints_n;
    kube_subset_t   subset, *kept;

    slice->subsets_n = kube_codec_count(c, slice->subsets_n,
                                        KUBE_SLICE_ENDPOINTS_MAX);
    kept = NULL;

    if (c->reading) {
        kept = kube_codec_array(c, slice->subsets_n, sizeof(kube_subset_t));
        slice->subsets = kept;
    }

    ports_n = 0;
    endpoints_n = 0;

    for (i = 0; i < slice->subsets_n && !c->bad && !c->nomem; i++) {
        subset = c->reading ? (kube_subset_t) { 0, 0 } : slice->subsets[i];

        subset.ports_n = kube_codec_count(c, subset.ports_n,
                                          KUBE_SLICE_PORTS_MAX);
        subset.endpoints_n = kube_codec_count(c, subset.endpoints_n,
                                              KUBE_SLICE_ENDPOINTS_MAX);

        ports_n += subset.ports_n;
        endpoints_n += subset.endpoints_n;
        c->bad |= (subset.endpoints_n == 0);

        if (kept != NULL) {
            kept[i] = subset;
        }
    }

    if (slice->subsets_n == 0
        || ports_n != slice->ports_n
        || endpoints_n != slice->endpoints_n)
    {
        c->bad = true;
    }
}


static void
content_slice(kube_codec_t *c, kube_slice_t *slice)
{
    bool      parts;
    uint64_t  bits;

    bits = kube_codec_int(c, (unsigned) slice->family
                             | (slice->subsets_n ? CONTENT_SUBSETS : 0u), 1);
    parts = (bits & CONTENT_SUBSETS) != 0;
    slice->family = (kube_family_t) (bits & ~(uint64_t) CONTENT_SUBSETS);

    if (slice->family != KUBE_FAMILY_NONE
        && slice->family != KUBE_FAMILY_IPV4
        && slice->family != KUBE_FAMILY_IPV6)
    {
        c->bad = true;
        return;
    }

    slice->ports = content_ports(c, slice->ports, &slice->ports_n,
                                 KUBE_SLICE_PORTS_MAX);
    slice->endpoints_n = kube_codec_count(c, slice->endpoints_n,
                                          KUBE_SLICE_ENDPOINTS_MAX);

    /* an endpoint takes a byte at least: no memory for what is not there */
    if (c->reading && slice->endpoints_n > (size_t) (c->end - c->from)) {
        c->bad = true;
        return;
    }

    if (c->reading) {
        content_endpoints(c, slice, true);

    } else {
        content_endpoints(c, slice, false);
    }

    if (parts) {
        content_subsets(c, slice);
    }
}


/* Equal labels are equal bytes: a name comes once, and behind lesser ones. */
static void
content_partial(kube_codec_t *c, kube_partial_t *partial)
{
    size_t         i;
    kube_str_t     before;
    kube_label_t   label, *kept;

    partial->deletion_ms = (int64_t) kube_codec_int(c,
                               (uint64_t) partial->deletion_ms, 8);
    partial->labels_n = kube_codec_count(c, partial->labels_n,
                                         KUBE_LABELS_MAX);
    before = KUBE_STR_NULL;
    kept = NULL;

    if (c->reading) {
        kept = kube_codec_array(c, partial->labels_n, sizeof(kube_label_t));
    }

    for (i = 0; i < partial->labels_n && !c->bad; i++) {
        label = c->reading ? (kube_label_t) { { NULL, 0 }, { NULL, 0 } }
                           : partial->labels[i];

        label.name = kube_codec_long_str(c, label.name, KUBE_LABEL_NAME_MAX);
        label.value = kube_codec_str(c, label.value, KUBE_LABEL_VALUE_MAX);

        if (kube_str_cmp(label.name, before) <= 0) {
            c->bad = true;
        }

        before = label.name;

        if (kept != NULL) {
            kept[i] = label;
        }
    }

    if (c->reading) {
        partial->labels = kept;
    }
}


/* The format of an identity. */
static inline KUBE_CODEC_INLINE void
content_id(kube_codec_t *c, unsigned kind, kube_record_id_t *id)
{
    id->meta.ns = kube_codec_str(c, id->meta.ns, KUBE_NAMESPACE_LEN_MAX);
    id->meta.name = kube_codec_str(c, id->meta.name, KUBE_NAME_LEN_MAX);

    if (id->meta.ns.len == 0 || id->meta.name.len == 0) {
        c->bad = true;
    }

    if (kind == KUBE_RECORD_REFUSED) {
        id->reason = kube_codec_str(c, id->reason, KUBE_RECORD_REASON_MAX);

    } else {
        id->meta.uid = kube_codec_str(c, id->meta.uid, KUBE_UID_LEN_MAX);

        if (kind == KUBE_RECORD_SLICE) {
            id->service = kube_codec_str(c, id->service, KUBE_CODEC_STR_MAX);
        }
    }
}


void
kube_content_id(kube_codec_t *c, unsigned kind, kube_record_id_t *id)
{
    content_id(c, kind, id);
}


size_t
kube_content_id_read(const unsigned char *content, size_t len, unsigned kind,
    kube_record_id_t *id)
{
    kube_codec_t  c;

    /* of the cursor nothing is left but what is used here */
    c = (kube_codec_t) {
        .from = content,
        .end = content + len,
        .reading = true
    };
    content_id(&c, kind, id);

    return c.bad ? 0 : (size_t) (c.from - content);
}


void
kube_content_object(kube_codec_t *c, unsigned kind, kube_object_t *object)
{
    kube_record_id_t  id;

    memset(&id, 0, sizeof(kube_record_id_t));

    if (kind == KUBE_RECORD_SERVICE) {
        id.meta = object->u.service.meta;
        kube_content_id(c, kind, &id);
        object->u.service.meta = id.meta;
        content_service(c, &object->u.service);

    } else if (kind == KUBE_RECORD_METADATA) {
        id.meta = object->u.meta;
        kube_content_id(c, kind, &id);
        object->u.meta = id.meta;
        content_partial(c, &object->u.partial);

    } else {
        id.meta = object->u.slice.meta;
        id.service = object->u.slice.service;
        kube_content_id(c, kind, &id);
        object->u.slice.meta = id.meta;
        object->u.slice.service = id.service;
        content_slice(c, &object->u.slice);
    }
}

/*
 * kube_decode_slice - the projection of an EndpointSlice
 * (discovery.k8s.io/v1).
 *
 * A bad endpoint or port is left out and counted.  What decides about the
 * whole slice, its address type, the label that names its Service and the
 * lists, refuses it where it is bad, so that the last good record can stay.
 * Which address may be used is route's business.  For kube_decode.c only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_date.h"
#include "kube_decode_impl.h"


/* Reads addresses[0], the only one used; no family if it is unusable. */
static void
slice_address(kube_decode_t *d, kube_addr_t *addr)
{
    bool         first;
    kube_rc_t    rc;
    kube_str_t   text;
    kube_addr_t  parsed;

    parsed.family = KUBE_FAMILY_NONE;
    first = true;

    rc = kube_decode_enter(d, '[');

    while (rc == KUBE_OK && kube_lexer_element(&d->lx)) {
        if (!first) {
            kube_lexer_value(&d->lx, NULL);

        } else if (kube_decode_text(d, &text) != KUBE_OK
                   || kube_addr_parse(text, &parsed) != KUBE_OK)
        {
            parsed.family = KUBE_FAMILY_NONE;
        }

        first = false;
    }

    *addr = parsed;
}


/* Reads a condition; null means otherwise.  False if it is no bool. */
static bool
slice_condition(kube_decode_t *d, bool otherwise, bool *condition)
{
    kube_str_t  text;

    kube_lexer_value(&d->lx, &text);

    *condition = otherwise;

    if (kube_str_eq(text, KUBE_STR("true"))) {
        *condition = true;

    } else if (kube_str_eq(text, KUBE_STR("false"))) {
        *condition = false;

    } else {
        return kube_str_eq(text, KUBE_STR("null"));
    }

    return true;
}


static bool
slice_conditions(kube_decode_t *d, kube_endpoint_t *endpoint)
{
    bool        good;
    kube_rc_t   rc;
    kube_str_t  name;

    rc = kube_decode_enter(d, '{');
    good = (rc != KUBE_INVALID);

    while (rc == KUBE_OK && kube_lexer_member(&d->lx, &name)) {
        if (kube_str_eq(name, KUBE_STR("ready"))) {
            good &= slice_condition(d, true, &endpoint->ready);

        } else if (kube_str_eq(name, KUBE_STR("serving"))) {
            good &= slice_condition(d, true, &endpoint->serving);

        } else if (kube_str_eq(name, KUBE_STR("terminating"))) {
            good &= slice_condition(d, false, &endpoint->terminating);

        } else {
            kube_lexer_value(&d->lx, NULL);
        }
    }

    return good;
}


/* Reads an endpoint; a bad one is left without an address family. */
static void
slice_endpoint(kube_decode_t *d, kube_endpoint_t *endpoint)
{
    bool                  good;
    kube_rc_t             rc;
    kube_str_t            name;
    kube_decode_target_t  target;

    kube_decode_target_begin(&target, endpoint->pod);

    rc = kube_decode_enter(d, '{');
    good = (rc != KUBE_INVALID);

    while (rc == KUBE_OK && kube_lexer_member(&d->lx, &name)) {
        if (kube_str_eq(name, KUBE_STR("addresses"))) {
            slice_address(d, &endpoint->address);

        } else if (kube_str_eq(name, KUBE_STR("conditions"))) {
            good &= slice_conditions(d, endpoint);

        } else if (kube_str_eq(name, KUBE_STR("targetRef"))) {
            kube_decode_target(d, &target);

        } else if (kube_str_eq(name, KUBE_STR("nodeName"))) {
            kube_decode_shown(d, &endpoint->node);

        } else if (kube_str_eq(name, KUBE_STR("zone"))) {
            kube_decode_shown(d, &endpoint->zone);

        } else {
            kube_lexer_value(&d->lx, NULL);
        }
    }

    endpoint->pod = kube_decode_target_pod(d, &target);

    if (!good) {
        endpoint->address.family = KUBE_FAMILY_NONE;
    }
}


/* Reads true or false; false where anything else stands. */
KUBE_EXPECT_INLINE bool
slice_expect_bool(kube_expect_t *x, bool *value)
{
    *value = KUBE_EXPECT(x, "true");

    return *value || KUBE_EXPECT(x, "false");
}


KUBE_EXPECT_INLINE bool
slice_expect_text(kube_expect_t *x, kube_str_t *s)
{
    return kube_expect_text(x, KUBE_STRING_LEN_MAX, s);
}


/*
 * Takes a part of a dotted quad and the byte behind it; three bytes can be read
 * from *p.
 */
static inline bool
slice_expect_part(const char **p, char behind, uint8_t *part)
{
    unsigned             value, digit;
    const unsigned char *s;

    s = (const unsigned char *) *p;
    value = s[0] - (unsigned) '0';
    digit = s[1] - (unsigned) '0';
    s++;

    if (value > 9 || (value == 0 && digit <= 9)) {
        return false;
    }

    if (digit <= 9) {
        value = value * 10 + digit;
        digit = s[1] - (unsigned) '0';
        s++;

        if (digit <= 9) {
            value = value * 10 + digit;
            s++;
        }
    }

    *part = (uint8_t) value;
    *p = (const char *) s + 1;

    return value <= 255 && *s == (unsigned char) behind;
}


/* Reads an IPv4 address up to the quote; false: there is none. */
KUBE_EXPECT_INLINE bool
slice_expect_ipv4(kube_expect_t *x, kube_addr_t *addr)
{
    const char  *p;

    p = x->p;

    if ((!x->roomy && x->end - p < KUBE_SIMD_TEXT)
        || !slice_expect_part(&p, '.', &addr->bytes[0])
        || !slice_expect_part(&p, '.', &addr->bytes[1])
        || !slice_expect_part(&p, '.', &addr->bytes[2])
        || !slice_expect_part(&p, '"', &addr->bytes[3]))
    {
        return false;
    }

    addr->family = KUBE_FAMILY_IPV4;
    x->p = p - 1;

    return true;
}


/* Reads the address that the quote ends. */
KUBE_EXPECT_INLINE bool
slice_expect_address(kube_expect_t *x, kube_addr_t *addr)
{
    kube_str_t  text;

    return slice_expect_ipv4(x, addr)
           || (slice_expect_text(x, &text)
               && kube_addr_parse(text, addr) == KUBE_OK);
}


/* The usual conditions, behind "ready" and its colon. */
#define SLICE_WELL  "true,\"serving\":true,"
#define SLICE_LIVE  "\"terminating\":false}"


/* Reads conditions behind "ready" and its colon. */
KUBE_EXPECT_INLINE bool
slice_expect_conditions(kube_expect_t *x, kube_endpoint_t *endpoint)
{
    kube_expect_t  well;

    well = *x;

    if (KUBE_EXPECT(&well, SLICE_WELL) && KUBE_EXPECT(&well, SLICE_LIVE)) {
        *x = well;
        return true;
    }

    return slice_expect_bool(x, &endpoint->ready)
           && (!KUBE_EXPECT(x, ",\"serving\":")
               || slice_expect_bool(x, &endpoint->serving))
           && (!KUBE_EXPECT(x, ",\"terminating\":")
               || slice_expect_bool(x, &endpoint->terminating))
           && KUBE_EXPECT(x, "}");
}


/* Reads a reference to a Pod behind its "namespace" and the colon's quote. */
KUBE_EXPECT_INLINE bool
slice_expect_target(kube_expect_t *x, kube_str_t *pod)
{
    return kube_expect_unused(x)
           && KUBE_EXPECT(x, "\",\"name\":\"")
           && slice_expect_text(x, pod)
           && (!KUBE_EXPECT(x, "\",\"uid\":\"") || kube_expect_unused(x))
           && KUBE_EXPECT(x, "\"}");
}


KUBE_EXPECT_INLINE bool
slice_expect_hint(kube_expect_t *x)
{
    return KUBE_EXPECT(x, "\":[{\"name\":\"")
           && kube_expect_unused(x)
           && KUBE_EXPECT(x, "\"}]");
}


/* Reads hints behind their brace: of zones, of nodes (KEP-3015), or both. */
KUBE_EXPECT_INLINE bool
slice_expect_hints(kube_expect_t *x)
{
    if (KUBE_EXPECT(x, "\"forZones")) {

        if (!slice_expect_hint(x)) {
            return false;
        }

        if (!KUBE_EXPECT(x, ",")) {
            return KUBE_EXPECT(x, "}");
        }
    }

    return KUBE_EXPECT(x, "\"forNodes")
           && slice_expect_hint(x)
           && KUBE_EXPECT(x, "}");
}


/*
 * Reads an endpoint as API servers write one, good in every field, into one
 * that is without any: the same that slice_endpoint() makes of it.  Otherwise
 * the result says where it is not, and neither *x nor *endpoint is to be used.
 */
KUBE_EXPECT_INLINE kube_surprise_t
slice_expected(kube_expect_t *x, kube_endpoint_t *endpoint)
{
    if (!KUBE_EXPECT(x, "{\"addresses\":[\"")
        || !slice_expect_address(x, &endpoint->address)
        || !KUBE_EXPECT(x, "\"]"))
    {
        return KUBE_SURPRISE_ADDRESSES;
    }

    if (KUBE_EXPECT(x, ",\"conditions\":{\"ready\":")
        && !slice_expect_conditions(x, endpoint))
    {
        return KUBE_SURPRISE_CONDITIONS;
    }

    if (KUBE_EXPECT(x, ",\"hostname\":\"")
        && (!kube_expect_unused(x) || !KUBE_EXPECT(x, "\"")))
    {
        return KUBE_SURPRISE_NAMES;
    }

    if (KUBE_EXPECT(x, ",\"targetRef\":{\"kind\":\"Pod\",")
        && (!KUBE_EXPECT(x, "\"namespace\":\"")
            || !slice_expect_target(x, &endpoint->pod)))
    {
        return KUBE_SURPRISE_TARGET;
    }

    if (KUBE_EXPECT(x, ",\"nodeName\":\"")
        && (!slice_expect_text(x, &endpoint->node)
            || !KUBE_EXPECT(x, "\"")))
    {
        return KUBE_SURPRISE_NAMES;
    }

    if (KUBE_EXPECT(x, ",\"zone\":\"")
        && (!slice_expect_text(x, &endpoint->zone)
            || !KUBE_EXPECT(x, "\"")))
    {
        return KUBE_SURPRISE_NAMES;
    }

    if (KUBE_EXPECT(x, ",\"hints\":{") && !slice_expect_hints(x)) {
        return KUBE_SURPRISE_ENDPOINT;
    }

    return KUBE_EXPECT(x, "}") ? KUBE_SURPRISE_NONE : KUBE_SURPRISE_ENDPOINT;
}


/* Makes an endpoint what it is without any member. */
static inline void
slice_endpoint_init(kube_endpoint_t *endpoint)
{
    *endpoint = (kube_endpoint_t) {
        .ready = true,
        .serving = true
    };
}


/* Above what an endpoint has: 9 texts, and less than 500 bytes between them. */
#define SLICE_ROOM  (9 * (KUBE_EXPECT_ROOM + KUBE_SIMD_TEXT) + 512)


/*
 * Takes the elements that are as expected, as long as there is room: up to one
 * that is not, or is merged with one given before.
 */
static void
slice_expected_run(kube_decode_t *d, kube_decode_array_t *array)
{
    kube_expect_t     x;
    kube_endpoint_t  *endpoint;

    x = (kube_expect_t) { d->lx.p, d->lx.end, true };

    while (array->n < array->cap && array->n == array->made
           && x.end - x.p >= SLICE_ROOM)
    {
        if (!d->lx.first && !KUBE_EXPECT(&x, ",")) {
            return;
        }

        endpoint = (kube_endpoint_t *) array->p + array->n;
        slice_endpoint_init(endpoint);

        if (slice_expected(&x, endpoint) != KUBE_SURPRISE_NONE) {
            return;
        }

        array->n++;
        array->made = array->n;
        d->lx.p = x.p;
        d->lx.first = false;
    }
}


/* Reads the element that d->lx stands at, if it is as expected. */
static bool
slice_is_expected(kube_decode_t *d, kube_endpoint_t *endpoint)
{
    kube_expect_t    x;
    kube_surprise_t  surprise;

    x = (kube_expect_t) { d->lx.p, d->lx.end, false };
    surprise = slice_expected(&x, endpoint);

    if (surprise == KUBE_SURPRISE_NONE) {
        d->lx.p = x.p;
        return true;
    }

    d->surprise = (d->surprise != KUBE_SURPRISE_NONE) ? d->surprise : surprise;
    slice_endpoint_init(endpoint);

    return false;
}


static void
slice_endpoints(kube_decode_t *d, kube_decode_array_t *array)
{
    bool              fresh;
    kube_endpoint_t  *endpoint;

    if (!kube_decode_array(d, array, "endpoints is no array")) {
        return;
    }

    for ( ;; ) {

        if (d->stream) {
            slice_expected_run(d, array);
        }

        endpoint = kube_decode_next(d, array, sizeof(kube_endpoint_t),
                                    KUBE_SLICE_ENDPOINTS_MAX,
                                    "endpoints has too many elements",
                                    &fresh);
        if (endpoint == NULL) {
            return;
        }

        if (fresh) {
            slice_endpoint_init(endpoint);
        }

        if (!fresh || !d->stream || !slice_is_expected(d, endpoint)) {
            slice_endpoint(d, endpoint);
        }
    }
}


static void
slice_address_type(kube_str_t text, kube_slice_t *slice, bool *known)
{
    *known = true;

    if (kube_str_eq(text, KUBE_STR("IPv4"))) {
        slice->family = KUBE_FAMILY_IPV4;

    } else if (kube_str_eq(text, KUBE_STR("IPv6"))) {
        slice->family = KUBE_FAMILY_IPV6;

    } else if (kube_str_eq(text, KUBE_STR("FQDN"))) {
        slice->family = KUBE_FAMILY_NONE;

    } else {
        *known = false;
    }
}


/* The label decides: a name no Service can have joins the slice to none. */
static void
slice_service(kube_decode_t *d, kube_str_t label, kube_slice_t *slice)
{
    size_t  i;

    if (kube_name_is_label(label)) {
        slice->service = label;
        return;
    }

    for (i = 0; i < label.len; i++) {
        if ((unsigned char) label.data[i] < 0x20 || label.data[i] == 0x7f) {
            kube_lexer_fail(&d->lx, "control byte in the name of its Service");
            return;
        }
    }
}


/* Keeps the endpoints of the slice's family; FQDNs are not used at all. */
static void
slice_endpoints_end(kube_decode_t *d, const kube_decode_array_t *array,
    kube_slice_t *slice)
{
    size_t            i;
    kube_endpoint_t  *p;

    if (slice->family == KUBE_FAMILY_NONE) {
        return;
    }

    p = array->p;
    slice->endpoints = p;

    for (i = 0; i < array->n; i++) {
        if (p[i].address.family != slice->family) {
            d->dropped++;
            continue;
        }

        if (slice->endpoints_n != i) {
            p[slice->endpoints_n] = p[i];
        }

        slice->endpoints_n++;
    }
}


/* What the members of an object, and the fields of a message, come to. */
typedef struct {
    kube_slice_t            *slice;
    bool                     known;       /* addressType is */
    kube_decode_array_t      ports;
    kube_decode_array_t      endpoints;
    kube_decode_metadata_t   meta;
} slice_decode_t;


static void
slice_begin(slice_decode_t *s, kube_object_t *object)
{
    memset(s, 0, sizeof(slice_decode_t));

    s->slice = &object->u.slice;

    s->meta = (kube_decode_metadata_t) {
        .label_key = KUBE_STR("kubernetes.io/service-name"),
        .annotation_key = KUBE_STR("endpoints.kubernetes.io/"
                                   "last-change-trigger-time")
    };
}


static void
slice_end(kube_decode_t *d, slice_decode_t *s)
{
    int64_t  ms;

    slice_service(d, s->meta.label, s->slice);

    if (kube_date_parse_rfc3339(s->meta.annotation, &ms) == KUBE_OK) {
        s->slice->trigger_ms = ms;
    }

    if (!s->known) {
        kube_lexer_fail(&d->lx, "missing or unknown addressType");
    }

    kube_decode_ports_end(d, &s->ports, false, &s->slice->ports,
                          &s->slice->ports_n);
    slice_endpoints_end(d, &s->endpoints, s->slice);
}


void
kube_decode_slice(kube_decode_t *d, kube_object_t *object)
{
    kube_rc_t       rc;
    kube_str_t      name, text;
    slice_decode_t  s;

    slice_begin(&s, object);

    if (d->inside) {
        kube_decode_metadata(d, &s.meta);
    }

    while (kube_lexer_member(&d->lx, &name)) {
        if (kube_str_eq(name, KUBE_STR("metadata"))) {
            kube_decode_metadata(d, &s.meta);

        } else if (kube_str_eq(name, KUBE_STR("addressType"))) {
            text = KUBE_STR_NULL;
            rc = kube_decode_text(d, &text);

            if (rc != KUBE_NOT_FOUND) {
                slice_address_type(text, s.slice, &s.known);
            }

        } else if (kube_str_eq(name, KUBE_STR("endpoints"))) {
            slice_endpoints(d, &s.endpoints);

        } else if (kube_str_eq(name, KUBE_STR("ports"))) {
            kube_decode_ports(d, &s.ports, KUBE_SLICE_PORTS_MAX, true);

        } else {
            kube_decode_other(d, name, object->resource);
        }
    }

    slice_end(d, &s);
}


/* The numbers of discovery.k8s.io/v1's EndpointSlice, Endpoint, ... */
enum {
    SLICE_ENDPOINTS = 2,
    SLICE_PORTS = 3,
    SLICE_ADDRESS_TYPE = 4
};

enum {
    ENDPOINT_ADDRESSES = 1,
    ENDPOINT_CONDITIONS = 2,
    ENDPOINT_HOSTNAME = 3,
    ENDPOINT_TARGET = 4,
    ENDPOINT_NODE = 6,
    ENDPOINT_ZONE = 7,
    ENDPOINT_HINTS = 8
};

/* ... EndpointConditions, core/v1's ObjectReference, and EndpointPort. */
enum {
    CONDITION_READY = 1,
    CONDITION_SERVING = 2,
    CONDITION_TERMINATING = 3
};

enum {
    TARGET_KIND = 1,
    TARGET_NAMESPACE = 2,
    TARGET_NAME = 3,
    TARGET_LAST = 7
};

static const kube_decode_port_numbers_t  slice_port_numbers = {
    .name = 1,
    .protocol = 2,
    .port = 3,
    .app_protocol = 4
};


static void
slice_message_conditions(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_endpoint_t *endpoint)
{
    bool                   *condition;
    uint64_t                value;
    kube_protobuf_t         inner;
    kube_protobuf_field_t   part;

    if (!kube_protobuf_enter(m, f, &inner)) {
        return;
    }

    while (kube_decode_field(d, &inner, &part)) {

        condition = (part.number == CONDITION_READY) ? &endpoint->ready
                    : (part.number == CONDITION_SERVING) ? &endpoint->serving
                    : (part.number == CONDITION_TERMINATING)
                      ? &endpoint->terminating : NULL;

        if (condition != NULL && kube_protobuf_number(&inner, &part, &value)) {
            *condition = (value != 0);
        }
    }
}


/*
 * Takes the field of that number if it stands here, holds bytes, and less than
 * 128 of them; a number is below 16.
 */
static inline bool
slice_take(kube_expect_t *x, unsigned number, kube_str_t *s)
{
    size_t  left;

    left = (size_t) (x->end - x->p);

    if (left < 2
        || (uint8_t) x->p[0] != (number << 3 | KUBE_WIRE_BYTES)
        || (uint8_t) x->p[1] > 0x7f
        || (uint8_t) x->p[1] > left - 2)
    {
        return false;
    }

    *s = (kube_str_t) { x->p + 2, (uint8_t) x->p[1] };
    x->p += 2 + s->len;

    return true;
}


/* The same of a number that is written in one byte. */
static inline void
slice_take_bool(kube_expect_t *x, unsigned number, bool *value)
{
    if (x->end - x->p >= 2
        && (uint8_t) x->p[0] == (number << 3 | KUBE_WIRE_VARINT)
        && (uint8_t) x->p[1] <= 0x7f)
    {
        *value = (x->p[1] != 0);
        x->p += 2;
    }
}


/* Reads conditions that are in the order of their numbers. */
static inline bool
slice_expected_conditions(kube_str_t message, kube_endpoint_t *endpoint)
{
    kube_expect_t  x;

    x = (kube_expect_t) {
        message.data, message.data + message.len, false
    };

    slice_take_bool(&x, CONDITION_READY, &endpoint->ready);
    slice_take_bool(&x, CONDITION_SERVING, &endpoint->serving);
    slice_take_bool(&x, CONDITION_TERMINATING, &endpoint->terminating);

    return x.p == x.end;
}


/* Reads a reference to a Pod; the fields of one that is none may be any. */
static inline bool
slice_expected_target(kube_str_t message, kube_str_t *pod)
{
    unsigned       number;
    kube_str_t     text;
    kube_expect_t  x;

    x = (kube_expect_t) {
        message.data, message.data + message.len, false
    };

    if (!slice_take(&x, TARGET_KIND, &text)
        || !kube_str_eq(text, KUBE_STR("Pod")))
    {
        return false;
    }

    (void) slice_take(&x, TARGET_NAMESPACE, &text);

    if (!slice_take(&x, TARGET_NAME, pod)) {
        return false;
    }

    for (number = TARGET_NAME + 1; number <= TARGET_LAST; number++) {
        (void) slice_take(&x, number, &text);
    }

    return x.p == x.end
           && kube_decode_is_printable(*pod, KUBE_STRING_LEN_MAX);
}


/*
 * Reads an endpoint as API servers write one, each field once, in the order of
 * numbers and good: the same that slice_message_fields() makes of it.  False:
 * it is another one, and *endpoint is not to be used.
 */
static bool
slice_message_expected(const kube_protobuf_t *m, kube_endpoint_t *endpoint)
{
    kube_str_t     text;
    kube_expect_t  x;

    x = (kube_expect_t) { m->p, m->end, false };

    if (!slice_take(&x, ENDPOINT_ADDRESSES, &text)
        || kube_addr_parse(text, &endpoint->address) != KUBE_OK)
    {
        return false;
    }

    if (slice_take(&x, ENDPOINT_CONDITIONS, &text)
        && !slice_expected_conditions(text, endpoint))
    {
        return false;
    }

    (void) slice_take(&x, ENDPOINT_HOSTNAME, &text);

    if (slice_take(&x, ENDPOINT_TARGET, &text)
        && !slice_expected_target(text, &endpoint->pod))
    {
        return false;
    }

    if (slice_take(&x, ENDPOINT_NODE, &endpoint->node)
        && !kube_decode_is_printable(endpoint->node, KUBE_STRING_LEN_MAX))
    {
        return false;
    }

    if (slice_take(&x, ENDPOINT_ZONE, &endpoint->zone)
        && !kube_decode_is_printable(endpoint->zone, KUBE_STRING_LEN_MAX))
    {
        return false;
    }

    (void) slice_take(&x, ENDPOINT_HINTS, &text);

    return x.p == x.end;
}


/* Reads an endpoint, whatever its fields are. */
static void
slice_message_fields(kube_decode_t *d, kube_protobuf_t *inner,
    kube_endpoint_t *endpoint)
{
    bool                    first;
    kube_str_t              text;
    kube_decode_target_t    target;
    kube_protobuf_field_t   part;

    first = true;

    kube_decode_target_begin(&target, KUBE_STR_NULL);

    while (kube_decode_field(d, inner, &part)) {

        switch (part.number) {

        case ENDPOINT_ADDRESSES:

            if (kube_protobuf_bytes(inner, &part, &text) && first
                && kube_addr_parse(text, &endpoint->address) != KUBE_OK)
            {
                endpoint->address.family = KUBE_FAMILY_NONE;
            }

            first = false;
            break;

        case ENDPOINT_CONDITIONS:
            slice_message_conditions(d, inner, &part, endpoint);
            break;

        case ENDPOINT_TARGET:
            kube_decode_message_target(d, inner, &part, &target);
            break;

        case ENDPOINT_NODE:
            kube_decode_message_shown(d, inner, &part, &endpoint->node);
            break;

        case ENDPOINT_ZONE:
            kube_decode_message_shown(d, inner, &part, &endpoint->zone);
            break;

        default:
            break;
        }
    }

    endpoint->pod = kube_decode_target_pod(d, &target);
}


static void
slice_message_endpoint(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_decode_array_t *array)
{
    kube_endpoint_t  *endpoint;
    kube_protobuf_t   inner;

    if (!kube_protobuf_enter(m, f, &inner)) {
        return;
    }

    endpoint = kube_decode_more(d, array, sizeof(kube_endpoint_t),
                                KUBE_SLICE_ENDPOINTS_MAX,
                                "endpoints has too many elements");
    if (endpoint == NULL) {
        return;
    }

    slice_endpoint_init(endpoint);

    if (slice_message_expected(&inner, endpoint)) {
        return;
    }

    slice_endpoint_init(endpoint);
    slice_message_fields(d, &inner, endpoint);
}


void
kube_decode_slice_message(kube_decode_t *d, kube_protobuf_t *m,
    kube_object_t *object)
{
    kube_str_t              text;
    slice_decode_t          s;
    kube_protobuf_field_t   f;

    slice_begin(&s, object);

    while (kube_decode_field(d, m, &f)) {

        switch (f.number) {

        case KUBE_PROTOBUF_METADATA:
            kube_decode_message_metadata(d, m, &f, &s.meta);
            break;

        case SLICE_ENDPOINTS:
            slice_message_endpoint(d, m, &f, &s.endpoints);
            break;

        case SLICE_PORTS:
            kube_decode_message_port(d, m, &f, &slice_port_numbers, &s.ports,
                                     KUBE_SLICE_PORTS_MAX, true);
            break;

        case SLICE_ADDRESS_TYPE:

            if (kube_protobuf_bytes(m, &f, &text)) {
                slice_address_type(text, s.slice, &s.known);
            }

            break;

        default:
            break;
        }
    }

    slice_end(d, &s);
}

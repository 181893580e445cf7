/*
 * fuzz_select - any Service and slices, as records hold them, with any options:
 * what is chosen is what an oracle, which compares each endpoint with each,
 * finds by the rules of kube_select.h.
 *
 * The same again by another seed, with the slices in another order, piece by
 * piece with each slice gone after it was added, with one more of max, and
 * short of memory.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "fuzz.h"
#include "kube_select.h"


#define FUZZ_SLICES     6
#define FUZZ_ENDPOINTS  96     /* of a slice */
#define FUZZ_PORTS      4
#define FUZZ_CIDRS      3
#define FUZZ_ALL        (FUZZ_SLICES * FUZZ_ENDPOINTS)

typedef struct {
    kube_key_port_t        port;
    kube_select_options_t  options;
    unsigned               flags;
    kube_policy_t          policy;
    kube_cidr_t            allow[FUZZ_CIDRS];
    kube_cidr_t            deny[FUZZ_CIDRS];
    kube_listen_t          listen[1];
    kube_addr_t            local[1];
    kube_snapshot_t        snapshot;
    kube_slice_t           slices[FUZZ_SLICES];
    void                  *records[FUZZ_SLICES];
    size_t                 sizes[FUZZ_SLICES];
} fuzz_world_t;

/* What the oracle says of an endpoint. */
typedef struct {
    const kube_endpoint_t  *endpoint;
    const kube_slice_t     *slice;
    uint32_t                slice_n;
    uint32_t                endpoint_n;
    uint16_t                port;        /* 0: none */
    const char             *why;         /* NULL: may be used */
    unsigned                rank;
    bool                    stays;       /* of those of the same address */
    bool                    chosen;      /* but for those that are too many */
} fuzz_judged_t;

typedef struct {
    fuzz_judged_t           all[FUZZ_ALL];
    size_t                  n;
    const kube_port_t      *port;
    kube_resolve_error_t    error;
    size_t                  addresses;   /* of the smallest rank */
    size_t                  chosen;
    bool                    denied;
    bool                    unready;
    bool                    foreign;
} fuzz_oracle_t;

/* A heap that counts, and fails on order. */
typedef struct {
    size_t  live;
    size_t  fail_in;                     /* 0: never */
} fuzz_count_t;

static const char  *const port_names[] = { "", "http", "admin", "dns" };
static const char  *const words[] = { "", "a", "b", "a-much-longer-name" };
static const uint16_t  numbers[] = { 0, 80, 8080, 53, 65535 };

/* What the policy has an opinion of; networks are made of these too. */
static const char  *const addresses[] = {
    "127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1",
    "255.255.255.255", "10.0.0.7", "168.63.129.16", "192.0.2.1",
    "::1", "fe80::1", "::", "ff02::1", "::127.0.0.1", "64:ff9b::7f00:1",
    "2002:7f00:1::", "fd00::7"
};


static void *
fuzz_count_alloc(void *ctx, size_t size)
{
    void          *p;
    fuzz_count_t  *count = ctx;

    if (count->fail_in != 0 && --count->fail_in == 0) {
        return NULL;
    }

    p = malloc(size);
    fuzz_assert(p != NULL);
    memset(p, 0xa5, size);
    count->live++;

    return p;
}


static void
fuzz_count_free(void *ctx, void *p)
{
    fuzz_count_t  *count = ctx;

    if (p != NULL) {
        fuzz_assert(count->live != 0);
        count->live--;
        free(p);
    }
}


/* Few addresses of each kind: they are to meet. */
static kube_addr_t
world_addr(unsigned byte)
{
    unsigned     n;
    kube_addr_t  addr;

    memset(&addr, 0, sizeof(kube_addr_t));
    n = byte & 0x3f;

    switch (byte >> 6) {
    case 0:
    case 1:
        addr.family = KUBE_FAMILY_IPV4;
        addr.bytes[0] = 10;
        addr.bytes[2] = (byte >> 6) ? 0x80 : 0;
        addr.bytes[3] = (uint8_t) n;
        break;

    case 2:
        addr.family = KUBE_FAMILY_IPV6;
        addr.bytes[0] = 0xfd;
        addr.bytes[7] = n & 1;
        addr.bytes[15] = (uint8_t) (n >> 1);
        break;

    default:
        if (n / 2 < sizeof(addresses) / sizeof(addresses[0])) {
            fuzz_assert(kube_addr_parse(kube_str(addresses[n / 2]), &addr)
                        == KUBE_OK);
        }
    }

    return addr;
}


static size_t
world_cidrs(fuzz_input_t *in, kube_cidr_t *cidrs)
{
    char         text[KUBE_ADDR_TEXT_MAX + 8];
    size_t       i, n, len;
    unsigned     bits;
    kube_addr_t  addr;

    n = fuzz_pick(in, FUZZ_CIDRS + 1);

    for (i = 0; i < n; i++) {
        addr = world_addr(fuzz_pick(in, 256));

        if (addr.family == KUBE_FAMILY_NONE) {
            addr = world_addr(0);
        }

        len = kube_addr_text(&addr, text);
        bits = fuzz_pick(in, addr.family == KUBE_FAMILY_IPV4 ? 33 : 129);
        text[len++] = '/';

        if (bits >= 100) {
            text[len++] = '1';
        }

        if (bits >= 10) {
            text[len++] = (char) ('0' + bits / 10 % 10);
        }

        text[len++] = (char) ('0' + bits % 10);
        fuzz_assert(kube_cidr_parse((kube_str_t) { text, len }, &cidrs[i],
                                    NULL) == KUBE_OK);
    }

    return n;
}


static void
world_options(fuzz_world_t *w, fuzz_input_t *in)
{
    unsigned  what;

    static const kube_select_family_t  families[] = {
        KUBE_SELECT_FAMILY_OWN, KUBE_SELECT_FAMILY_ANY,
        KUBE_SELECT_FAMILY_IPV4, KUBE_SELECT_FAMILY_IPV6
    };

    what = fuzz_pick(in, 256);
    w->options.family = families[what & 3];
    w->options.terminating_never = (what & 0x04) != 0;
    w->flags |= (what & 0x10) ? KUBE_SELECT_EXPLAIN : 0;
    w->flags |= (what & 0x60) == 0x20 ? KUBE_SELECT_ANY_PORT : 0;
    w->flags |= (what & 0xe0) == 0xe0 ? KUBE_SELECT_PORT : 0;

    if (what & 0x08) {
        w->options.protocol = (kube_protocol_t) fuzz_pick(in, 3);
    }

    what = fuzz_pick(in, 256);
    w->port.name = kube_str(port_names[what & 3]);
    w->port.number = numbers[(what >> 2) % 5];
    w->port.exact = (what & 0x80) != 0;

    w->options.max = fuzz_pick(in, 256);
    w->options.max = (w->options.max < 128) ? w->options.max % 20
                                            : w->options.max;

    if (fuzz_pick(in, 2) == 0) {
        return;
    }

    w->options.policy = &w->policy;
    w->policy.allow = w->allow;
    w->policy.allow_n = world_cidrs(in, w->allow);
    w->policy.deny = w->deny;
    w->policy.deny_n = world_cidrs(in, w->deny);
    what = fuzz_pick(in, 256);
    w->listen[0].addr = world_addr(what);
    w->listen[0].port = numbers[1 + what % 4];
    w->local[0] = world_addr(fuzz_pick(in, 256));
    w->policy.listen = w->listen;
    w->policy.listen_n = (w->listen[0].addr.family != KUBE_FAMILY_NONE);
    w->policy.local = w->local;
    w->policy.local_n = (w->local[0].family != KUBE_FAMILY_NONE);
}


static size_t
world_ports(fuzz_input_t *in, kube_port_t *ports)
{
    size_t    i, n;
    unsigned  what;

    n = fuzz_pick(in, FUZZ_PORTS + 1);

    for (i = 0; i < n; i++) {
        what = fuzz_pick(in, 256);
        memset(&ports[i], 0, sizeof(kube_port_t));
        ports[i].name = kube_str(port_names[what & 3]);
        ports[i].port = numbers[(what >> 2) % 5];
        ports[i].protocol = (what & 0x80) ? (kube_protocol_t) (what >> 5 & 1)
                                          : KUBE_PROTOCOL_TCP;
    }

    return n;
}


/* Runs of endpoints that are alike but for the address. */
static size_t
world_endpoints(fuzz_input_t *in, kube_endpoint_t *endpoints)
{
    size_t            n;
    unsigned          runs, flags, text, at, count, step;
    kube_endpoint_t  *e;

    n = 0;

    for (runs = fuzz_pick(in, 12); runs != 0; runs--) {
        flags = fuzz_pick(in, 256);
        text = fuzz_pick(in, 64);
        at = fuzz_pick(in, 256);
        count = (flags & 0x08) ? 1 + fuzz_pick(in, FUZZ_ENDPOINTS) : 1;
        step = flags >> 4 & 3;

        for ( /* void */ ; count != 0 && n < FUZZ_ENDPOINTS; count--) {
            e = &endpoints[n++];
            e->ready = (flags & 0x01) != 0;
            e->serving = (flags & 0x02) != 0;
            e->terminating = (flags & 0x04) != 0;
            e->address = world_addr(at & 0xff);
            e->pod = kube_str(words[text & 3]);
            e->node = kube_str(words[text >> 2 & 3]);
            e->zone = kube_str(words[text >> 4]);
            at += step;
        }
    }

    return n;
}


/* What a zone's reader would find of the object. */
static void *
world_record(const kube_object_t *object, size_t *size)
{
    void  *record;

    *size = kube_record_size(object);
    fuzz_assert(*size != 0);
    record = malloc(*size);
    fuzz_assert(record != NULL);
    kube_record_encode(object, record);
    fuzz_assert(kube_record_validate(record, *size) == KUBE_OK);

    return record;
}


static void
world_decode(kube_arena_t *arena, const void *record, size_t size,
    kube_object_t *object)
{
    fuzz_assert(kube_record_decode(arena, record, size, object) == KUBE_OK);
}


static kube_family_t
world_family(fuzz_input_t *in)
{
    static const kube_family_t  families[] = {
        KUBE_FAMILY_IPV4, KUBE_FAMILY_IPV6, KUBE_FAMILY_IPV4, KUBE_FAMILY_NONE
    };

    return families[fuzz_pick(in, 4)];
}


static void
world_slice(fuzz_world_t *w, fuzz_input_t *in, kube_arena_t *arena, size_t i)
{
    char              name[2];
    kube_port_t       ports[FUZZ_PORTS];
    kube_object_t     object;
    kube_endpoint_t   endpoints[FUZZ_ENDPOINTS];

    memset(&object, 0, sizeof(kube_object_t));
    memset(endpoints, 0, sizeof(endpoints));
    name[0] = (char) ('a' + i * 5 % 7);         /* not in their order */

    object.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    object.u.slice.meta.ns = KUBE_STR("shop");
    object.u.slice.meta.name = (kube_str_t) { name, 1 };
    object.u.slice.service = KUBE_STR("web");
    object.u.slice.family = world_family(in);
    object.u.slice.ports = ports;
    object.u.slice.ports_n = world_ports(in, ports);
    object.u.slice.endpoints = endpoints;
    object.u.slice.endpoints_n = world_endpoints(in, endpoints);

    w->records[i] = world_record(&object, &w->sizes[i]);
    world_decode(arena, w->records[i], w->sizes[i], &object);
    w->slices[i] = object.u.slice;
}


/* Returns the Service's record, which the snapshot borrows from. */
static void *
world_init(fuzz_world_t *w, fuzz_input_t *in, kube_arena_t *arena)
{
    void           *record;
    size_t          i, size;
    unsigned        type;
    kube_port_t     ports[FUZZ_PORTS];
    kube_object_t   object;

    memset(w, 0, sizeof(fuzz_world_t));
    memset(&object, 0, sizeof(kube_object_t));
    world_options(w, in);

    object.resource = KUBE_RESOURCE_SERVICES;
    object.u.service.meta.ns = KUBE_STR("shop");
    object.u.service.meta.name = KUBE_STR("web");
    object.u.service.family = world_family(in);
    type = fuzz_pick(in, 16);
    object.u.service.type = (type < 4) ? (kube_service_type_t) type
                                       : KUBE_SERVICE_CLUSTER_IP;
    object.u.service.ports = ports;
    object.u.service.ports_n = world_ports(in, ports);

    record = world_record(&object, &size);
    world_decode(arena, record, size, &object);

    w->snapshot.service = object.u.service;
    w->snapshot.slices = w->slices;
    w->snapshot.slices_n = fuzz_pick(in, FUZZ_SLICES + 1);

    for (i = 0; i < w->snapshot.slices_n; i++) {
        world_slice(w, in, arena, i);
    }

    return record;
}


/* The Service's port; the error where there is none. */
static const kube_port_t *
oracle_port(const fuzz_world_t *w, kube_resolve_error_t *error)
{
    bool                   named, found;
    size_t                 i;
    const kube_service_t  *service = &w->snapshot.service;

    *error = KUBE_RESOLVE_OK;
    named = w->port.exact || w->port.name.len != 0;

    if (!named && w->port.number == 0 && service->ports_n > 1) {
        *error = KUBE_RESOLVE_PORT_NEEDED;
        return NULL;
    }

    for (i = 0; i < service->ports_n; i++) {
        found = service->ports[i].protocol == w->options.protocol;
        found &= !named || kube_str_eq(service->ports[i].name, w->port.name);
        found &= w->port.number == 0
                 || service->ports[i].port == w->port.number;

        if (found) {
            return &service->ports[i];
        }
    }

    *error = KUBE_RESOLVE_NO_PORT;

    return NULL;
}


/* The port of that name in a slice; numbered: one with a number. */
static const kube_port_t *
oracle_slice_port(const kube_slice_t *slice, const kube_port_t *port,
    bool numbered)
{
    size_t  i;

    for (i = 0; i < slice->ports_n; i++) {
        if (slice->ports[i].protocol == port->protocol
            && kube_str_eq(slice->ports[i].name, port->name)
            && (!numbered || slice->ports[i].port != 0))
        {
            return &slice->ports[i];
        }
    }

    return NULL;
}


static const kube_port_t *
oracle_any_port(const fuzz_world_t *w, const kube_slice_t *slice)
{
    size_t                 i;
    unsigned               pass;
    const kube_port_t     *found;
    const kube_service_t  *service = &w->snapshot.service;

    for (pass = 0; pass < 2; pass++) {
        for (i = 0; i < service->ports_n; i++) {
            found = (service->ports[i].protocol == w->options.protocol)
                    ? oracle_slice_port(slice, &service->ports[i], pass == 0)
                    : NULL;

            if (found != NULL) {
                return found;
            }
        }
    }

    return NULL;
}


static const char *
oracle_why(fuzz_oracle_t *o, const fuzz_world_t *w, const fuzz_judged_t *j,
    const kube_port_t *port)
{
    kube_family_t       family;
    kube_addr_number_t  number;

    family = j->endpoint->address.family;

    if (family == KUBE_FAMILY_NONE
        || family != j->slice->family
        || (w->options.family == KUBE_SELECT_FAMILY_IPV4
            && family != KUBE_FAMILY_IPV4)
        || (w->options.family == KUBE_SELECT_FAMILY_IPV6
            && family != KUBE_FAMILY_IPV6))
    {
        o->foreign = true;
        return "wrong family";
    }

    if (port == NULL) {
        return "no such port";
    }

    if (port->port == 0) {
        return "no port number";
    }

    if (!j->endpoint->ready
        && (!j->endpoint->terminating || !j->endpoint->serving
            || w->options.terminating_never))
    {
        o->unready = true;
        return j->endpoint->terminating ? "terminating" : "not ready";
    }

    number = kube_addr_number(&j->endpoint->address);

    if (kube_policy_denies(w->options.policy, &number, port->port) != NULL) {
        o->denied = true;
        return "address denied";
    }

    return NULL;
}


static unsigned
oracle_rank(const fuzz_world_t *w, const fuzz_judged_t *j)
{
    bool  other;

    other = (w->options.family == KUBE_SELECT_FAMILY_OWN
             && w->snapshot.service.family != KUBE_FAMILY_NONE
             && w->snapshot.service.family != j->endpoint->address.family);

    return 2u * other + !j->endpoint->ready;
}


static void
oracle_judge(fuzz_oracle_t *o, const fuzz_world_t *w, uint32_t slice)
{
    uint32_t             i;
    fuzz_judged_t       *j;
    const kube_port_t   *port;
    const kube_slice_t  *s = &w->slices[slice];

    if (w->flags & KUBE_SELECT_ANY_PORT) {
        port = oracle_any_port(w, s);

    } else {
        port = (o->port != NULL) ? oracle_slice_port(s, o->port, false) : NULL;
    }

    for (i = 0; i < s->endpoints_n; i++) {
        j = &o->all[o->n++];
        j->slice = s;
        j->slice_n = slice;
        j->endpoint = &s->endpoints[i];
        j->endpoint_n = i;
        j->port = (port != NULL) ? port->port : 0;
        j->why = oracle_why(o, w, j, port);
        j->rank = oracle_rank(w, j);
        j->stays = false;
        j->chosen = false;
    }
}


static bool
oracle_meet(const fuzz_judged_t *a, const fuzz_judged_t *b)
{
    return a->port == b->port
           && a->endpoint->address.family == b->endpoint->address.family
           && memcmp(a->endpoint->address.bytes, b->endpoint->address.bytes,
                     a->endpoint->address.family == KUBE_FAMILY_IPV4 ? 4 : 16)
              == 0;
}


/* Whether a decides, of two of one address. */
static bool
oracle_decides(const fuzz_judged_t *a, const fuzz_judged_t *b)
{
    int  rc;

    if (a->endpoint->terminating != b->endpoint->terminating) {
        return b->endpoint->terminating;
    }

    rc = kube_str_cmp(a->endpoint->pod, b->endpoint->pod);

    if (rc == 0) {
        rc = kube_str_cmp(a->slice->meta.name, b->slice->meta.name);
    }

    return (rc != 0) ? rc < 0 : a < b;
}


static void
oracle_choose(fuzz_oracle_t *o, fuzz_judged_t *j, unsigned rank)
{
    bool            given;
    size_t          i;
    fuzz_judged_t  *other;

    if (j->why != NULL || j->rank != rank) {
        return;
    }

    given = false;

    for (i = 0; i < o->n; i++) {
        other = &o->all[i];

        if (other == j || !oracle_meet(j, other)) {
            continue;
        }

        if (other->why == NULL && other->rank == rank
            && oracle_decides(other, j))
        {
            return;
        }

        given |= (other->why != NULL
                  && strcmp(other->why, "not ready") == 0);
    }

    /* the pod network has given the address of one that goes away */
    j->stays = true;
    j->chosen = !(j->endpoint->terminating && given);
    o->addresses++;
    o->chosen += j->chosen;
}


static void
oracle_run(fuzz_oracle_t *o, const fuzz_world_t *w)
{
    size_t    i;
    unsigned  rank;

    memset(o, 0, sizeof(fuzz_oracle_t));
    rank = UINT32_MAX;

    if (!(w->flags & KUBE_SELECT_ANY_PORT)) {
        o->port = oracle_port(w, &o->error);
    }

    if (w->snapshot.service.type == KUBE_SERVICE_EXTERNAL_NAME) {
        o->error = KUBE_RESOLVE_EXTERNAL_NAME;
    }

    if (w->flags & KUBE_SELECT_PORT) {
        return;
    }

    for (i = 0; i < w->snapshot.slices_n; i++) {
        oracle_judge(o, w, (uint32_t) i);
    }

    for (i = 0; i < o->n; i++) {
        rank = (o->all[i].why == NULL && o->all[i].rank < rank)
               ? o->all[i].rank : rank;
    }

    for (i = 0; o->error == KUBE_RESOLVE_OK && i < o->n; i++) {
        oracle_choose(o, &o->all[i], rank);
    }

    if (o->error == KUBE_RESOLVE_OK && o->chosen == 0) {
        o->error = o->denied ? KUBE_RESOLVE_ADDRESS_DENIED
                   : o->unready ? KUBE_RESOLVE_NO_READY_ENDPOINT
                   : o->foreign ? KUBE_RESOLVE_NO_FAMILY
                   : KUBE_RESOLVE_NO_ENDPOINTS;
    }
}


static fuzz_judged_t *
oracle_find(fuzz_oracle_t *o, const kube_choice_t *c)
{
    size_t          i;
    fuzz_judged_t  *j;

    for (i = 0; i < o->n; i++) {
        j = &o->all[i];

        if (j->chosen
            && c->slice == j->slice_n
            && c->port == j->port
            && memcmp(&c->addr, &j->endpoint->address, sizeof(kube_addr_t))
               == 0)
        {
            return j;
        }
    }

    return NULL;
}


/* Does not share a line with the policy: the networks, bit by bit. */
static bool
fuzz_inside(const kube_cidr_t *cidr, const kube_addr_t *addr)
{
    uint64_t            bits;
    kube_addr_number_t  a;

    a = kube_addr_number(addr);

    if (a.family != cidr->addr.family) {
        return false;
    }

    for (bits = 0; bits < cidr->bits; bits++) {
        if (bits < 64
            ? (a.high ^ cidr->addr.high) >> (63 - bits) & 1
            : (a.low ^ cidr->addr.low) >> (127 - bits) & 1)
        {
            return false;
        }
    }

    return true;
}


static void
check_policy(const fuzz_world_t *w, const kube_addr_t *addr)
{
    bool    allowed;
    size_t  i;

    allowed = (w->policy.allow_n == 0);

    for (i = 0; i < w->policy.allow_n; i++) {
        allowed |= fuzz_inside(&w->allow[i], addr);
    }

    for (i = 0; i < w->policy.deny_n; i++) {
        allowed &= !fuzz_inside(&w->deny[i], addr);
    }

    fuzz_assert(allowed);
    fuzz_assert(w->policy.allow_n != 0
                || addr->family != KUBE_FAMILY_IPV4
                || (addr->bytes[0] != 127 && addr->bytes[0] != 169));
}


static int
fuzz_cmp(const kube_choice_t *a, const kube_choice_t *b)
{
    int  rc;

    if (a->addr.family != b->addr.family) {
        return (int) a->addr.family - (int) b->addr.family;
    }

    rc = memcmp(a->addr.bytes, b->addr.bytes, sizeof(a->addr.bytes));

    return (rc != 0) ? rc : (int) a->port - (int) b->port;
}


static void
check_choices(const fuzz_world_t *w, fuzz_oracle_t *o,
    const kube_selection_t *s)
{
    size_t                i;
    uint32_t              max;
    fuzz_judged_t        *j;
    const kube_choice_t  *c;

    max = (w->options.max != 0) ? w->options.max : KUBE_SERVICE_BUILT_MAX;

    fuzz_assert(s->port == o->port);
    fuzz_assert(s->n <= max);
    fuzz_assert(s->truncated == (o->addresses > max));
    fuzz_assert((s->n == 0) == (s->error != KUBE_RESOLVE_OK)
                || (w->flags & KUBE_SELECT_PORT));

    if (o->addresses <= max) {
        fuzz_assert(s->n == o->chosen);
        fuzz_assert(s->error == o->error);

    } else {
        fuzz_assert(s->n + (o->addresses - o->chosen) >= max);
    }

    for (i = 0; i < s->n; i++) {
        c = &s->endpoints[i];
        j = oracle_find(o, c);
        fuzz_assert(j != NULL);
        fuzz_assert(c->state == (j->endpoint->ready
                                 ? KUBE_ENDPOINT_READY
                                 : KUBE_ENDPOINT_TERMINATING));
        fuzz_assert(kube_str_eq(c->pod, j->endpoint->pod));
        fuzz_assert(c->state == s->endpoints[0].state);
        fuzz_assert(i == 0 || fuzz_cmp(c - 1, c) < 0);
        check_policy(w, &c->addr);
    }
}


static bool
fuzz_has(const kube_selection_t *s, const fuzz_judged_t *j)
{
    size_t  i;

    for (i = 0; i < s->n; i++) {
        if (s->endpoints[i].slice == j->slice_n
            && s->endpoints[i].port == j->port
            && memcmp(&s->endpoints[i].addr, &j->endpoint->address,
                      sizeof(kube_addr_t)) == 0)
        {
            return true;
        }
    }

    return false;
}


static bool
fuzz_is_outrun(const char *why)
{
    return strcmp(why, "terminating") == 0
           || strcmp(why, "wrong family") == 0
           || strcmp(why, "duplicate") == 0
           || strcmp(why, "too many endpoints") == 0;
}


static void
check_rows(const fuzz_world_t *w, const fuzz_oracle_t *o,
    const kube_selection_t *s)
{
    size_t                   i, used;
    const fuzz_judged_t     *j;
    const kube_explained_t  *row;

    if (!(w->flags & KUBE_SELECT_EXPLAIN) || (w->flags & KUBE_SELECT_PORT)) {
        fuzz_assert(s->rows_n == 0);
        return;
    }

    used = 0;
    fuzz_assert(s->rows_n == o->n);

    for (i = 0; i < o->n; i++) {
        row = &s->rows[i];
        j = &o->all[i];
        used += (row->excluded_because == NULL);

        fuzz_assert(row->slice == j->slice_n
                    && row->endpoint == j->endpoint_n
                    && row->port == j->port);
        fuzz_assert((row->denied_because != NULL)
                    == (j->why != NULL && strcmp(j->why, "address denied")
                                          == 0));

        if (s->error == KUBE_RESOLVE_EXTERNAL_NAME) {
            fuzz_assert(strcmp(row->excluded_because, "external name") == 0);

        } else if (j->why != NULL) {
            fuzz_assert(row->excluded_because != NULL
                        && strcmp(row->excluded_because, j->why) == 0);

        } else if (row->excluded_because == NULL) {
            fuzz_assert(j->chosen && fuzz_has(s, j));

        } else {
            fuzz_assert(fuzz_is_outrun(row->excluded_because));
        }
    }

    fuzz_assert(used == s->n);
}


/* The same choice; slices by name, for their order may be another. */
static void
check_same(const kube_selection_t *a, const kube_slice_t *a_slices,
    const kube_selection_t *b, const kube_slice_t *b_slices)
{
    size_t                i;
    const kube_choice_t  *c, *d;

    fuzz_assert(a->n == b->n && a->error == b->error
                && a->truncated == b->truncated);

    for (i = 0; i < a->n; i++) {
        c = &a->endpoints[i];
        d = &b->endpoints[i];

        fuzz_assert(fuzz_cmp(c, d) == 0 && c->state == d->state);
        fuzz_assert(kube_str_eq(c->pod, d->pod)
                    && kube_str_eq(c->node, d->node)
                    && kube_str_eq(c->zone, d->zone));
        fuzz_assert(kube_str_eq(a_slices[c->slice].meta.name,
                                b_slices[d->slice].meta.name));
    }
}


/* Of max and of one more: nothing that was chosen is left out. */
static void
check_nested(const kube_selection_t *few, const kube_selection_t *more)
{
    size_t  i, k;

    for (i = 0, k = 0; i < few->n; i++, k++) {
        while (k < more->n
               && fuzz_cmp(&more->endpoints[k], &few->endpoints[i]) < 0)
        {
            k++;
        }

        fuzz_assert(k < more->n
                    && fuzz_cmp(&more->endpoints[k], &few->endpoints[i]) == 0);
    }
}


static void
world_select(const fuzz_world_t *w, kube_arena_t *arena,
    const kube_select_options_t *options, kube_selection_t *s)
{
    fuzz_assert(kube_select(arena, &w->snapshot, &w->port, options, w->flags,
                            s) == KUBE_OK);
}


/* By another seed, in another order, and with one more of max. */
static void
fuzz_again(fuzz_world_t *w, kube_arena_t *arena, const kube_selection_t *s,
    unsigned turn)
{
    size_t                 i, n;
    kube_slice_t           slices[FUZZ_SLICES];
    kube_selection_t       again;
    kube_select_options_t  options;

    static const kube_seed_t  seed = { 0x0123456789abcdef, 42 };

    n = w->snapshot.slices_n;
    options = w->options;
    options.seed = &seed;
    world_select(w, arena, &options, &again);
    check_same(s, w->slices, &again, w->slices);

    for (i = 0; i < n; i++) {
        slices[i] = w->slices[(turn & 1) ? n - 1 - i
                                         : (i + 1 + turn / 2) % n];
    }

    w->snapshot.slices = slices;
    world_select(w, arena, &w->options, &again);
    check_same(s, w->slices, &again, slices);
    w->snapshot.slices = w->slices;

    if (w->options.max != 0) {
        options.max++;
        world_select(w, arena, &options, &again);
        check_nested(s, &again);
    }
}


/* Each slice is gone when the next one comes. */
static void
fuzz_pieces(const fuzz_world_t *w, kube_arena_t *arena,
    const kube_selection_t *s)
{
    size_t             i;
    kube_rc_t          rc;
    kube_arena_t       piece;
    kube_object_t      object;
    kube_selector_t   *selector;
    kube_selection_t   again;

    fuzz_assert(kube_selector_create(arena, &w->snapshot.service, &w->port,
                                     &w->options,
                                     w->flags & ~KUBE_SELECT_EXPLAIN,
                                     &selector) == KUBE_OK);

    for (i = 0; kube_selector_error(selector) == KUBE_RESOLVE_OK
                && !(w->flags & KUBE_SELECT_PORT) && i < w->snapshot.slices_n;
         i++)
    {
        void  *record;

        record = malloc(w->sizes[i]);
        fuzz_assert(record != NULL);
        memcpy(record, w->records[i], w->sizes[i]);
        kube_arena_init(&piece, &fuzz_heap, 16u << 20);
        world_decode(&piece, record, w->sizes[i], &object);
        fuzz_assert(kube_selector_add(selector, &object.u.slice) == KUBE_OK);
        kube_arena_done(&piece);
        free(record);
    }

    do {
        rc = kube_selector_sort(selector);
    } while (rc == KUBE_AGAIN);

    fuzz_assert(rc == KUBE_OK);
    fuzz_assert(kube_selector_result(selector, &again) == KUBE_OK);
    check_same(s, w->slices, &again, w->slices);
    kube_selector_done(selector);
}


static void
fuzz_short(const fuzz_world_t *w, const kube_selection_t *s, size_t fail_in)
{
    kube_rc_t         rc;
    fuzz_count_t      count;
    kube_alloc_t      heap;
    kube_arena_t      arena;
    kube_selection_t  again;

    count = (fuzz_count_t) { 0, fail_in };
    heap = (kube_alloc_t) {
        .alloc = fuzz_count_alloc,
        .free = fuzz_count_free,
        .ctx = &count
    };
    kube_arena_init(&arena, &heap, 16u << 20);

    rc = kube_select(&arena, &w->snapshot, &w->port, &w->options, w->flags,
                     &again);

    fuzz_assert(rc == KUBE_OK || rc == KUBE_NOMEM);
    fuzz_assert((rc == KUBE_NOMEM) == (fail_in != 0 && count.fail_in == 0));

    if (rc == KUBE_OK) {
        check_same(s, w->slices, &again, w->slices);
    }

    kube_arena_done(&arena);
    fuzz_assert(count.live == 0);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void              *service;
    size_t             i;
    unsigned           turn;
    fuzz_input_t       in;
    fuzz_world_t       w;
    kube_arena_t       arena;
    kube_selection_t   s;

    static fuzz_oracle_t  oracle;

    in = (fuzz_input_t) { data, size };
    kube_arena_init(&arena, &fuzz_heap, 64u << 20);

    turn = fuzz_pick(&in, 256);
    service = world_init(&w, &in, &arena);
    oracle_run(&oracle, &w);

    world_select(&w, &arena, &w.options, &s);
    check_choices(&w, &oracle, &s);
    check_rows(&w, &oracle, &s);

    fuzz_again(&w, &arena, &s, turn);
    fuzz_pieces(&w, &arena, &s);
    fuzz_short(&w, &s, turn & 0x0f);

    kube_arena_done(&arena);

    for (i = 0; i < w.snapshot.slices_n; i++) {
        free(w.records[i]);
    }

    free(service);

    return 0;
}

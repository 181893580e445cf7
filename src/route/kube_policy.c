/*
 * kube_policy - addresses and namespaces that may be used.
 *
 * It judges what it is given and asks nobody.  No state; may be called from
 * any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_policy.h"


/*
 * An address as two numbers; what stands first in it is in the high bits.  Each
 * endpoint of each new view meets all networks below.
 */
typedef struct {
    kube_family_t  family;
    uint64_t       high;
    uint64_t       low;          /* IPv4: 0 */
} policy_addr_t;

/* Addresses that are alike where the mask is set. */
typedef struct {
    policy_addr_t  addr;
    uint64_t       high;
    uint64_t       low;
    uint8_t        bits;         /* up to the last one of the mask */
    const char    *why;
} policy_net_t;

#define POLICY_MASK(bits)                                                     \
    ((bits) < 64 ? ~(UINT64_MAX >> ((bits) & 63)) : UINT64_MAX)

#define POLICY_IPV4(a, b, c, d, n, text)                                      \
    { { KUBE_FAMILY_IPV4,                                                     \
        ((uint64_t) (a) << 24 | (b) << 16 | (c) << 8 | (d)) << 32, 0 },       \
      POLICY_MASK(n), 0, n, text }

#define POLICY_IPV6(h, l, n, text)                                            \
    { { KUBE_FAMILY_IPV6, h, l },                                             \
      POLICY_MASK(n), (n) > 64 ? POLICY_MASK((n) - 64) : 0, n, text }

/* By the first n bits of the interface's id. */
#define POLICY_INTERFACE(l, n, text)                                          \
    { { KUBE_FAMILY_IPV6, 0, l }, 0, POLICY_MASK(n), 64 + (n), text }

/* Of one family each. */
typedef struct {
    const policy_net_t  *ipv4;
    size_t               ipv4_n;
    const policy_net_t  *ipv6;
    size_t               ipv6_n;
} policy_table_t;

#define POLICY_N(array)  (sizeof(array) / sizeof(array[0]))

#define POLICY_TABLE(v4, v6)  { v4, POLICY_N(v4), v6, POLICY_N(v6) }

/* RFC 1122 "this network", RFC 5771, RFC 919, RFC 4291. */
static const policy_net_t  policy_never_ipv4[] = {
    POLICY_IPV4(0, 0, 0, 0, 8, "\"this network\" (0.0.0.0/8)"),
    POLICY_IPV4(224, 0, 0, 0, 4, "multicast (224.0.0.0/4)"),
    POLICY_IPV4(255, 255, 255, 255, 32, "broadcast (255.255.255.255)")
};

static const policy_net_t  policy_never_ipv6[] = {
    POLICY_IPV6(0, 0, 128, "unspecified (::)"),
    POLICY_IPV6(0xff00000000000000, 0, 8, "multicast (ff00::/8)")
};

static const policy_table_t  policy_never = POLICY_TABLE(policy_never_ipv4,
                                                         policy_never_ipv6);

/*
 * What a Service must not reach unless the operator says so.  Sources: RFC
 * 1122, 3927, 4291, 3879 (site-local), 8215 (NAT64 of local use), 2765
 * (IPv4-translated), 4380 (Teredo), 5214 (ISATAP), and the clouds' own
 * documents for the addresses that hand out metadata and credentials.
 * 240.0.0.0/4 is not here: GKE offers it for Pods.
 */
static const policy_net_t  policy_special_ipv4[] = {
    POLICY_IPV4(127, 0, 0, 0, 8, "loopback (127.0.0.0/8)"),
    POLICY_IPV4(169, 254, 0, 0, 16,
                "link-local, cloud metadata (169.254.0.0/16)"),
    POLICY_IPV4(168, 63, 129, 16, 32, "Azure's host agent (168.63.129.16)"),
    POLICY_IPV4(100, 100, 100, 200, 32,
                "metadata of Alibaba Cloud (100.100.100.200)"),
    POLICY_IPV4(192, 0, 0, 192, 32, "metadata of Oracle Cloud (192.0.0.192)")
};

static const policy_net_t  policy_special_ipv6[] = {
    POLICY_IPV6(0, 1, 128, "loopback (::1)"),
    POLICY_IPV6(0xfe80000000000000, 0, 10, "link-local (fe80::/10)"),
    POLICY_IPV6(0xfec0000000000000, 0, 10, "site-local (fec0::/10)"),
    POLICY_IPV6(0xfd000ec200000000, 0, 32, "metadata of AWS (fd00:ec2::/32)"),
    POLICY_IPV6(0xfd2000ce00000000, 0x0254, 128,
                "metadata of Google Cloud (fd20:ce::254)"),
    POLICY_IPV6(0x0064ff9b00010000, 0, 48,
                "NAT64 of local use (64:ff9b:1::/48)"),
    POLICY_IPV6(0, 0xffff000000000000, 96,
                "IPv4-translated (::ffff:0:0:0/96)"),
    POLICY_IPV6(0x2001000000000000, 0, 32, "Teredo (2001::/32)"),
    POLICY_INTERFACE(0x00005efe00000000, 32, "ISATAP (interface ::5efe:0:0)"),
    POLICY_INTERFACE(0x02005efe00000000, 32,
                     "ISATAP (interface ::200:5efe:0:0)")
};

static const policy_table_t  policy_special = POLICY_TABLE(policy_special_ipv4,
                                                           policy_special_ipv6);

/* IPv6 networks whose addresses carry an IPv4 one, behind so many bits. */
typedef struct {
    policy_net_t  net;
    uint8_t       ahead;
} policy_carrier_t;

static const policy_carrier_t  policy_mapped = {
    POLICY_IPV6(0, 0x0000ffff00000000, 96, NULL), 96
};

/* RFC 4291 2.5.5.1 (deprecated), RFC 6052 (NAT64), RFC 3056 (6to4). */
static const policy_carrier_t  policy_carriers[] = {
    { POLICY_IPV6(0, 0, 96, NULL), 96 },
    { POLICY_IPV6(0x0064ff9b00000000, 0, 96, NULL), 96 },
    { POLICY_IPV6(0x2002000000000000, 0, 16, NULL), 16 }
};


static uint64_t
policy_number(const uint8_t *bytes, size_t n)
{
    size_t    i;
    uint64_t  number;

    number = 0;

    for (i = 0; i < n; i++) {
        number |= (uint64_t) bytes[i] << (56 - 8 * i);
    }

    return number;
}


static policy_addr_t
policy_addr(const kube_addr_t *addr)
{
    if (addr->family == KUBE_FAMILY_IPV4) {
        return (policy_addr_t) { KUBE_FAMILY_IPV4,
                                 policy_number(addr->bytes, 4), 0 };
    }

    return (policy_addr_t) { addr->family, policy_number(addr->bytes, 8),
                             policy_number(addr->bytes + 8, 8) };
}


static bool
policy_net_contains(const policy_net_t *net, const policy_addr_t *addr)
{
    return net->addr.family == addr->family
           && ((net->addr.high ^ addr->high) & net->high) == 0
           && ((net->addr.low ^ addr->low) & net->low) == 0;
}


/* The IPv4 address that an address of the carrier's network carries. */
static bool
policy_carried(const policy_carrier_t *carrier, const policy_addr_t *addr,
    policy_addr_t *ipv4)
{
    uint64_t  number;

    if (!policy_net_contains(&carrier->net, addr)) {
        return false;
    }

    number = (carrier->ahead < 64) ? addr->high << carrier->ahead
                                   : addr->low << (carrier->ahead - 64);

    *ipv4 = (policy_addr_t) { KUBE_FAMILY_IPV4, number & POLICY_MASK(32), 0 };

    return true;
}


static policy_addr_t
policy_unmapped(const kube_addr_t *addr)
{
    policy_addr_t  a, ipv4;

    a = policy_addr(addr);

    if (a.family == KUBE_FAMILY_IPV4) {
        return a;
    }

    return policy_carried(&policy_mapped, &a, &ipv4) ? ipv4 : a;
}


/*
 * Why an address is in one of the networks, by itself (NULL: it is not).
 * *bits grows to the longest prefix among those networks, behind the first
 * ahead bits of whatever carries the address.
 */
static const char *
policy_in(const policy_table_t *table, const policy_addr_t *addr,
    unsigned ahead, unsigned *bits)
{
    size_t               i, n;
    const char          *why;
    const policy_net_t  *nets;

    why = NULL;
    nets = (addr->family == KUBE_FAMILY_IPV4) ? table->ipv4 : table->ipv6;
    n = (addr->family == KUBE_FAMILY_IPV4) ? table->ipv4_n : table->ipv6_n;

    for (i = 0; i < n; i++) {

        if (!policy_net_contains(&nets[i], addr)) {
            continue;
        }

        if (why == NULL) {
            why = nets[i].why;
        }

        if (ahead + nets[i].bits > *bits) {
            *bits = ahead + nets[i].bits;
        }
    }

    return why;
}


/* The same, or because of the IPv4 address that it carries. */
static const char *
policy_among(const policy_table_t *table, const policy_addr_t *addr,
    unsigned *bits)
{
    size_t          i;
    const char     *why;
    policy_addr_t   ipv4;

    why = policy_in(table, addr, 0, bits);

    for (i = 0;
         why == NULL
         && addr->family == KUBE_FAMILY_IPV6
         && i < POLICY_N(policy_carriers);
         i++)
    {
        if (policy_carried(&policy_carriers[i], addr, &ipv4)) {
            why = policy_in(table, &ipv4, policy_carriers[i].ahead, bits);
        }
    }

    return why;
}


static kube_rc_t
cidr_invalid(kube_error_t *error, const char *what, size_t offset)
{
    if (error != NULL) {
        error->rc = KUBE_INVALID;
        error->what = what;
        error->offset = offset;
    }

    return KUBE_INVALID;
}


/* Clears the bits behind the prefix; tells whether any was set. */
static bool
cidr_mask(kube_addr_t *addr, unsigned bits)
{
    bool      low;
    uint8_t   keep;
    unsigned  i, n;

    low = false;
    n = (addr->family == KUBE_FAMILY_IPV4) ? 4 : 16;

    for (i = 0; i < n; i++) {

        if (bits >= 8 * (i + 1)) {
            continue;
        }

        keep = 0;

        if (bits > 8 * i) {
            keep = (uint8_t) ((0xffu << (8 * (i + 1) - bits)) & 0xffu);
        }

        low = low || (addr->bytes[i] & (uint8_t) ~keep) != 0;
        addr->bytes[i] &= keep;
    }

    return low;
}


kube_rc_t
kube_cidr_parse(kube_str_t text, kube_cidr_t *cidr, kube_error_t *error)
{
    size_t          slash;
    uint64_t        bits, max;
    kube_addr_t     addr;
    const char     *p;
    policy_addr_t   a;

    p = (text.len != 0) ? memchr(text.data, '/', text.len) : NULL;
    slash = (p != NULL) ? (size_t) (p - text.data) : text.len;

    if (kube_addr_parse((kube_str_t) { text.data, slash }, &addr) != KUBE_OK) {
        return cidr_invalid(error, "invalid address", 0);
    }

    max = (addr.family == KUBE_FAMILY_IPV4) ? 32 : 128;
    bits = max;

    if (slash < text.len
        && kube_str_to_u64((kube_str_t) { text.data + slash + 1,
                                          text.len - slash - 1 },
                           max, &bits) != KUBE_OK)
    {
        return cidr_invalid(error, "invalid prefix length", slash + 1);
    }

    a = policy_addr(&addr);

    if (bits >= policy_mapped.net.bits
        && policy_net_contains(&policy_mapped.net, &a))
    {
        memmove(addr.bytes, addr.bytes + 12, 4);
        memset(addr.bytes + 4, 0, sizeof(addr.bytes) - 4);
        addr.family = KUBE_FAMILY_IPV4;
        bits -= policy_mapped.net.bits;
    }

    cidr->low_bits = cidr_mask(&addr, (unsigned) bits);
    cidr->addr = addr;
    cidr->bits = (uint8_t) bits;

    return KUBE_OK;
}


static policy_net_t
policy_net(const kube_cidr_t *cidr)
{
    return (policy_net_t) {
        .addr = policy_addr(&cidr->addr),
        .high = POLICY_MASK(cidr->bits),
        .low = (cidr->bits > 64) ? POLICY_MASK(cidr->bits - 64) : 0,
        .bits = cidr->bits
    };
}


static bool
policy_cidr_contains(const kube_cidr_t *cidr, const policy_addr_t *addr)
{
    policy_net_t  net;

    net = policy_net(cidr);

    return addr->family != KUBE_FAMILY_NONE
           && policy_net_contains(&net, addr);
}


/* Only networks of at least this many bits name a special address. */
static bool
policy_names(const kube_cidr_t *cidrs, size_t n, const policy_addr_t *addr,
    unsigned bits)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (cidrs[i].bits >= bits && policy_cidr_contains(&cidrs[i], addr)) {
            return true;
        }
    }

    return false;
}


/* By itself, or by the IPv4 address that it carries. */
static bool
policy_is_denied(const kube_policy_t *policy, const policy_addr_t *addr)
{
    bool           denied;
    size_t         i;
    policy_addr_t  ipv4;

    denied = policy_names(policy->deny, policy->deny_n, addr, 0);

    for (i = 0; !denied && i < POLICY_N(policy_carriers); i++) {
        denied = policy_carried(&policy_carriers[i], addr, &ipv4)
                 && ipv4.high >> 56 != 0    /* ::1 is loopback */
                 && policy_names(policy->deny, policy->deny_n, &ipv4, 0);
    }

    return denied;
}


/*
 * True where no IPv4 network of the tables above begins with that byte, which
 * is so of most pods: each endpoint of each new view is judged.
 */
static bool
policy_is_ordinary(const policy_addr_t *addr)
{
    unsigned  first;

    if (addr->family != KUBE_FAMILY_IPV4) {
        return false;
    }

    first = (unsigned) (addr->high >> 56);

    switch (first) {

    case 0:
    case 100:
    case 127:
    case 168:
    case 169:
    case 192:
    case 255:
        return false;

    default:
        return (first & 0xf0) != 0xe0;
    }
}


const char *
kube_policy_denies(const kube_policy_t *policy, const kube_addr_t *addr)
{
    unsigned        bits;
    const char     *never, *special;
    policy_addr_t   a;

    a = policy_unmapped(addr);

    if (a.family != KUBE_FAMILY_IPV4 && a.family != KUBE_FAMILY_IPV6) {
        return "no IP address";
    }

    bits = 0;
    special = NULL;

    if (!policy_is_ordinary(&a)) {
        never = policy_among(&policy_never, &a, &bits);

        bits = 0;
        special = policy_among(&policy_special, &a, &bits);

        /* ::1 is loopback; that ::/96 would carry 0.0.0.1 decides nothing */

        if (never != NULL && policy_in(&policy_special, &a, 0, &bits) == NULL) {
            return never;
        }
    }

    if (policy == NULL || (policy->deny_n == 0 && policy->allow_n == 0)) {
        return special;
    }

    if (policy_is_denied(policy, &a)) {
        return "named by deny_address";
    }

    if (policy->allow_n == 0) {
        return special;
    }

    if (policy_names(policy->allow, policy->allow_n, &a, bits)) {
        return NULL;
    }

    return (special != NULL) ? special : "not named by allow_address";
}


const char *
kube_policy_wider(const kube_cidr_t *cidr)
{
    size_t               i, n;
    policy_net_t         wider;
    const policy_net_t  *nets, *net;

    wider = policy_net(cidr);
    nets = policy_special.ipv4;
    n = policy_special.ipv4_n;

    if (wider.addr.family == KUBE_FAMILY_IPV6) {
        nets = policy_special.ipv6;
        n = policy_special.ipv6_n;
    }

    for (i = 0; i < n; i++) {
        net = &nets[i];

        /* by the interface alone it lies in every network */

        if (net->high != 0
            && net->bits > cidr->bits
            && policy_net_contains(&wider, &net->addr))
        {
            return net->why;
        }
    }

    return NULL;
}


static bool
policy_addr_eq(const policy_addr_t *a, const policy_addr_t *b)
{
    return a->family == b->family && a->high == b->high && a->low == b->low;
}


static bool
policy_is_local(const kube_policy_t *policy, const policy_addr_t *addr)
{
    size_t         i;
    policy_addr_t  local;

    if (addr->family == KUBE_FAMILY_IPV4 && addr->high >> 56 == 127) {
        return true;
    }

    for (i = 0; i < policy->local_n; i++) {
        local = policy_addr(&policy->local[i]);

        if (policy_addr_eq(&local, addr)) {
            return true;
        }
    }

    return false;
}


bool
kube_policy_is_self(const kube_policy_t *policy, const kube_addr_t *addr,
    uint16_t port)
{
    bool                  self;
    size_t                i;
    policy_addr_t         a, listens;
    const kube_listen_t  *listen;

    self = false;
    a = policy_unmapped(addr);

    for (i = 0; policy != NULL && i < policy->listen_n && !self; i++) {
        listen = &policy->listen[i];

        if (listen->port != port || listen->addr.family != a.family) {
            continue;
        }

        listens = policy_addr(&listen->addr);

        self = (listens.high == 0 && listens.low == 0)
               ? policy_is_local(policy, &a)
               : policy_addr_eq(&listens, &a);
    }

    return self
           && !policy_names(policy->allow, policy->allow_n, &a,
                            a.family == KUBE_FAMILY_IPV4 ? 32 : 128);
}


bool
kube_namespaces_allow(const kube_namespaces_t *namespaces, kube_str_t ns)
{
    size_t  i;

    if (namespaces->all) {
        return true;
    }

    for (i = 0; i < namespaces->names_n; i++) {
        if (kube_str_eq(namespaces->names[i], ns)) {
            return true;
        }
    }

    return false;
}

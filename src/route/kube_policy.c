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


/* A network, and why addresses of it may not be used. */
typedef struct {
    kube_cidr_t  cidr;
    const char  *why;
} policy_net_t;

#define POLICY_MASK(bits)                                                     \
    ((bits) < 64 ? ~(UINT64_MAX >> ((bits) & 63)) : UINT64_MAX)

#define POLICY_IPV4(a, b, c, d, n, text)                                      \
    { { { KUBE_FAMILY_IPV4,                                                   \
          ((uint64_t) (a) << 24 | (b) << 16 | (c) << 8 | (d)) << 32, 0 },     \
        POLICY_MASK(n), 0, n, false }, text }

#define POLICY_IPV6(h, l, n, text)                                            \
    { { { KUBE_FAMILY_IPV6, h, l },                                           \
        POLICY_MASK(n), (n) > 64 ? POLICY_MASK((n) - 64) : 0, n, false },     \
      text }

/* By the first n bits of the interface's id. */
#define POLICY_INTERFACE(l, n, text)                                          \
    { { { KUBE_FAMILY_IPV6, 0, l }, 0, POLICY_MASK(n), 64 + (n), false },     \
      text }

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


static inline bool
policy_contains(const kube_cidr_t *cidr, const kube_addr_number_t *addr)
{
    return cidr->addr.family == addr->family
           && ((cidr->addr.high ^ addr->high) & cidr->high) == 0
           && ((cidr->addr.low ^ addr->low) & cidr->low) == 0;
}


/* The IPv4 address that an address of the carrier's network carries. */
static bool
policy_carried(const policy_carrier_t *carrier, const kube_addr_number_t *addr,
    kube_addr_number_t *ipv4)
{
    uint64_t  number;

    if (!policy_contains(&carrier->net.cidr, addr)) {
        return false;
    }

    number = (carrier->ahead < 64) ? addr->high << carrier->ahead
                                   : addr->low << (carrier->ahead - 64);

    *ipv4 = (kube_addr_number_t) { KUBE_FAMILY_IPV4,
                                   number & POLICY_MASK(32), 0 };

    return true;
}


/*
 * Why an address is in one of the networks, by itself (NULL: it is not).
 * *bits grows to the longest prefix among those networks, behind the first
 * ahead bits of whatever carries the address.
 */
static const char *
policy_in(const policy_table_t *table, const kube_addr_number_t *addr,
    unsigned ahead, unsigned *bits)
{
    size_t               i, n;
    const char          *why;
    const policy_net_t  *nets;

    why = NULL;
    nets = (addr->family == KUBE_FAMILY_IPV4) ? table->ipv4 : table->ipv6;
    n = (addr->family == KUBE_FAMILY_IPV4) ? table->ipv4_n : table->ipv6_n;

    for (i = 0; i < n; i++) {

        if (!policy_contains(&nets[i].cidr, addr)) {
            continue;
        }

        if (why == NULL) {
            why = nets[i].why;
        }

        if (ahead + nets[i].cidr.bits > *bits) {
            *bits = ahead + nets[i].cidr.bits;
        }
    }

    return why;
}


/* The same, or because of the IPv4 address that it carries. */
static const char *
policy_among(const policy_table_t *table, const kube_addr_number_t *addr,
    unsigned *bits)
{
    size_t               i;
    const char          *why;
    kube_addr_number_t   ipv4;

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


kube_rc_t
kube_cidr_parse(kube_str_t text, kube_cidr_t *cidr, kube_error_t *error)
{
    size_t               slash;
    uint64_t             bits, max;
    const char          *p;
    kube_addr_t          addr;
    kube_addr_number_t   number, ipv4;

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

    number = kube_addr_number(&addr);

    if (bits >= policy_mapped.ahead
        && policy_carried(&policy_mapped, &number, &ipv4))
    {
        number = ipv4;
        bits -= policy_mapped.ahead;
    }

    cidr->high = POLICY_MASK(bits);
    cidr->low = (bits > 64) ? POLICY_MASK(bits - 64) : 0;
    cidr->bits = (uint8_t) bits;
    cidr->low_bits = (number.high & ~cidr->high) != 0
                     || (number.low & ~cidr->low) != 0;

    number.high &= cidr->high;
    number.low &= cidr->low;
    cidr->addr = number;

    return KUBE_OK;
}


/* Only networks of at least this many bits name a special address. */
static bool
policy_names(const kube_cidr_t *cidrs, size_t n, const kube_addr_number_t *addr,
    unsigned bits)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (cidrs[i].bits >= bits && policy_contains(&cidrs[i], addr)) {
            return true;
        }
    }

    return false;
}


/* By itself, or by the IPv4 address that it carries. */
static bool
policy_is_denied(const kube_policy_t *policy, const kube_addr_number_t *addr)
{
    bool                denied;
    size_t              i;
    kube_addr_number_t  ipv4;

    denied = policy_names(policy->deny, policy->deny_n, addr, 0);

    for (i = 0;
         !denied
         && addr->family == KUBE_FAMILY_IPV6
         && i < POLICY_N(policy_carriers);
         i++)
    {
        denied = policy_carried(&policy_carriers[i], addr, &ipv4)
                 && ipv4.high >> 56 != 0    /* ::1 is loopback */
                 && policy_names(policy->deny, policy->deny_n, &ipv4, 0);
    }

    return denied;
}


/*
 * The first bytes of the IPv4 networks in the tables above, a bit each: 0, 100,
 * 127, 168, 169, 192 and 224 to 239, 255.
 */
static const uint64_t  policy_firsts[4] = {
    (uint64_t) 1 << 0,
    (uint64_t) 1 << (100 - 64) | (uint64_t) 1 << (127 - 64),
    (uint64_t) 1 << (168 - 128) | (uint64_t) 1 << (169 - 128),
    (uint64_t) 1 << (192 - 192) | (uint64_t) 0xffff << (224 - 192)
    | (uint64_t) 1 << (255 - 192)
};


/*
 * True where no IPv4 network of the tables begins with that byte, which is so
 * of most pods: each endpoint of each new view is judged.
 */
static inline bool
policy_is_ordinary(const kube_addr_number_t *addr)
{
    return addr->family == KUBE_FAMILY_IPV4
           && (policy_firsts[addr->high >> 62] >> (addr->high >> 56 & 63) & 1)
              == 0;
}


static bool
policy_eq(const kube_addr_number_t *a, const kube_addr_number_t *b)
{
    return a->family == b->family && a->high == b->high && a->low == b->low;
}


static bool
policy_is_local(const kube_policy_t *policy, const kube_addr_number_t *addr)
{
    size_t              i;
    kube_addr_number_t  local;

    if (addr->family == KUBE_FAMILY_IPV4 && addr->high >> 56 == 127) {
        return true;
    }

    for (i = 0; i < policy->local_n; i++) {
        local = kube_addr_number(&policy->local[i]);

        if (policy_eq(&local, addr)) {
            return true;
        }
    }

    return false;
}


static bool
policy_is_self(const kube_policy_t *policy, const kube_addr_number_t *addr,
    uint16_t port)
{
    bool                  self;
    size_t                i;
    kube_addr_number_t    listens;
    const kube_listen_t  *listen;

    self = false;

    for (i = 0; i < policy->listen_n && !self; i++) {
        listen = &policy->listen[i];

        if (listen->port != port || listen->addr.family != addr->family) {
            continue;
        }

        listens = kube_addr_number(&listen->addr);

        self = (listens.high == 0 && listens.low == 0)
               ? policy_is_local(policy, addr)
               : policy_eq(&listens, addr);
    }

    return self
           && !policy_names(policy->allow, policy->allow_n, addr,
                            addr->family == KUBE_FAMILY_IPV4 ? 32 : 128);
}


/* By the tables; *bits: of the network that an allow_address has to name. */
static const char *
policy_is_special(const kube_addr_number_t *addr, unsigned *bits, bool *never)
{
    unsigned     ignored;
    const char  *why, *special;

    ignored = 0;
    why = policy_among(&policy_never, addr, &ignored);
    special = policy_among(&policy_special, addr, bits);

    /* ::1 is loopback; that ::/96 would carry 0.0.0.1 decides nothing */

    *never = (why != NULL
              && policy_in(&policy_special, addr, 0, bits) == NULL);

    return *never ? why : special;
}


/* By all rules but that of the gateway itself. */
static const char *
policy_judge(const kube_policy_t *policy, const kube_addr_number_t *addr)
{
    bool         never;
    unsigned     bits;
    const char  *special;

    bits = 0;
    never = false;
    special = policy_is_ordinary(addr) ? NULL
              : policy_is_special(addr, &bits, &never);

    if (never
        || policy == NULL
        || (policy->deny_n == 0 && policy->allow_n == 0))
    {
        return special;
    }

    if (policy->deny_n != 0 && policy_is_denied(policy, addr)) {
        return "named by deny_address";
    }

    if (policy->allow_n == 0) {
        return special;
    }

    if (policy_names(policy->allow, policy->allow_n, addr, bits)) {
        return NULL;
    }

    return (special != NULL) ? special : "not named by allow_address";
}


/* By all rules; not inline, so that the short way keeps no register for it. */
static __attribute__((noinline)) const char *
policy_judge_all(const kube_policy_t *policy, const kube_addr_number_t *addr,
    uint16_t port)
{
    const char          *why;
    kube_addr_number_t   ipv4;

    if (addr->family != KUBE_FAMILY_IPV4) {

        if (addr->family != KUBE_FAMILY_IPV6) {
            return "no IP address";
        }

        if (policy_carried(&policy_mapped, addr, &ipv4)) {
            addr = &ipv4;
        }
    }

    why = policy_judge(policy, addr);

    if (why == NULL
        && port != 0
        && policy != NULL
        && policy_is_self(policy, addr, port))
    {
        return "the gateway's own address and port";
    }

    return why;
}


const char *
kube_policy_denies(const kube_policy_t *policy,
    const kube_addr_number_t *addr, uint16_t port)
{
    if (port == 0
        && policy_is_ordinary(addr)
        && (policy == NULL || (policy->deny_n == 0 && policy->allow_n == 0)))
    {
        return NULL;
    }

    return policy_judge_all(policy, addr, port);
}


bool
kube_policy_listens(const kube_policy_t *policy, uint16_t port)
{
    size_t  i;

    for (i = 0; policy != NULL && i < policy->listen_n; i++) {
        if (policy->listen[i].port == port) {
            return true;
        }
    }

    return false;
}


const char *
kube_policy_wider(const kube_cidr_t *cidr)
{
    size_t               i, n;
    const kube_cidr_t   *net;
    const policy_net_t  *nets;

    nets = policy_special.ipv4;
    n = policy_special.ipv4_n;

    if (cidr->addr.family == KUBE_FAMILY_IPV6) {
        nets = policy_special.ipv6;
        n = policy_special.ipv6_n;
    }

    for (i = 0; i < n; i++) {
        net = &nets[i].cidr;

        /* by the interface alone it lies in every network */

        if (net->high != 0
            && net->bits > cidr->bits
            && policy_contains(cidr, &net->addr))
        {
            return nets[i].why;
        }
    }

    return NULL;
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

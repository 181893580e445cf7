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


/* Addresses that are alike in the bytes from start on, up to bits. */
typedef struct {
    kube_family_t  family;
    uint8_t        start;         /* bytes; not 0: of an interface's id */
    uint8_t        bits;          /* of the address */
    uint8_t        bytes[16];
    const char    *why;
} policy_net_t;

/* RFC 1122 "this network", RFC 5771, RFC 919, RFC 4291. */
static const policy_net_t  policy_never[] = {
    { KUBE_FAMILY_IPV4, 0, 8, { 0 }, "\"this network\" (0.0.0.0/8)" },
    { KUBE_FAMILY_IPV4, 0, 4, { 224 }, "multicast (224.0.0.0/4)" },
    { KUBE_FAMILY_IPV4, 0, 32, { 255, 255, 255, 255 },
      "broadcast (255.255.255.255)" },
    { KUBE_FAMILY_IPV6, 0, 128, { 0 }, "unspecified (::)" },
    { KUBE_FAMILY_IPV6, 0, 8, { 0xff }, "multicast (ff00::/8)" }
};

/*
 * What a Service must not reach unless the operator says so.  Sources: RFC
 * 1122, 3927, 4291, 3879 (site-local), 8215 (NAT64 of local use), 2765
 * (IPv4-translated), 4380 (Teredo), 5214 (ISATAP), and the clouds' own
 * documents for the addresses that hand out metadata and credentials.
 * 240.0.0.0/4 is not here: GKE offers it for Pods.
 */
static const policy_net_t  policy_special[] = {
    { KUBE_FAMILY_IPV4, 0, 8, { 127 }, "loopback (127.0.0.0/8)" },
    { KUBE_FAMILY_IPV4, 0, 16, { 169, 254 },
      "link-local, cloud metadata (169.254.0.0/16)" },
    { KUBE_FAMILY_IPV4, 0, 32, { 168, 63, 129, 16 },
      "Azure's host agent (168.63.129.16)" },
    { KUBE_FAMILY_IPV4, 0, 32, { 100, 100, 100, 200 },
      "metadata of Alibaba Cloud (100.100.100.200)" },
    { KUBE_FAMILY_IPV4, 0, 32, { 192, 0, 0, 192 },
      "metadata of Oracle Cloud (192.0.0.192)" },
    { KUBE_FAMILY_IPV6, 0, 128, { [15] = 1 }, "loopback (::1)" },
    { KUBE_FAMILY_IPV6, 0, 10, { 0xfe, 0x80 }, "link-local (fe80::/10)" },
    { KUBE_FAMILY_IPV6, 0, 10, { 0xfe, 0xc0 }, "site-local (fec0::/10)" },
    { KUBE_FAMILY_IPV6, 0, 32, { 0xfd, 0x00, 0x0e, 0xc2 },
      "metadata of AWS (fd00:ec2::/32)" },
    { KUBE_FAMILY_IPV6, 0, 128, { 0xfd, 0x20, 0x00, 0xce,
                                  [14] = 0x02, 0x54 },
      "metadata of Google Cloud (fd20:ce::254)" },
    { KUBE_FAMILY_IPV6, 0, 48, { 0, 0x64, 0xff, 0x9b, 0, 1 },
      "NAT64 of local use (64:ff9b:1::/48)" },
    { KUBE_FAMILY_IPV6, 0, 96, { [8] = 0xff, 0xff },
      "IPv4-translated (::ffff:0:0:0/96)" },
    { KUBE_FAMILY_IPV6, 0, 32, { 0x20, 0x01 }, "Teredo (2001::/32)" },
    { KUBE_FAMILY_IPV6, 8, 96, { [10] = 0x5e, 0xfe },
      "ISATAP (interface ::5efe:0:0)" },
    { KUBE_FAMILY_IPV6, 8, 96, { [8] = 0x02, 0, 0x5e, 0xfe },
      "ISATAP (interface ::200:5efe:0:0)" }
};

/* IPv6 networks whose addresses carry an IPv4 one, at the offset. */
typedef struct {
    policy_net_t  net;
    uint8_t       offset;
} policy_carrier_t;

static const policy_carrier_t  policy_mapped = {
    { KUBE_FAMILY_IPV6, 0, 96, { [10] = 0xff, 0xff }, NULL }, 12
};

/* RFC 4291 2.5.5.1 (deprecated), RFC 6052 (NAT64), RFC 3056 (6to4). */
static const policy_carrier_t  policy_carriers[] = {
    { { KUBE_FAMILY_IPV6, 0, 96, { 0 }, NULL }, 12 },
    { { KUBE_FAMILY_IPV6, 0, 96, { 0, 0x64, 0xff, 0x9b }, NULL }, 12 },
    { { KUBE_FAMILY_IPV6, 0, 16, { 0x20, 0x02 }, NULL }, 2 }
};

#define POLICY_N(array)  (sizeof(array) / sizeof(array[0]))


static bool
policy_prefix_eq(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    uint8_t   mask;
    unsigned  whole;

    whole = bits / 8;

    /* the first byte tells most networks apart; each endpoint meets them all */

    if (whole != 0 && (a[0] != b[0] || memcmp(a, b, whole) != 0)) {
        return false;
    }

    if (bits % 8 == 0) {
        return true;
    }

    mask = (uint8_t) (0xff << (8 - bits % 8));

    return ((a[whole] ^ b[whole]) & mask) == 0;
}


static bool
policy_net_contains(const policy_net_t *net, const kube_addr_t *addr)
{
    return net->family == addr->family
           && policy_prefix_eq(net->bytes + net->start,
                               addr->bytes + net->start,
                               net->bits - 8u * net->start);
}


/* The IPv4 address that an address of the carrier's network carries. */
static bool
policy_carried(const policy_carrier_t *carrier, const kube_addr_t *addr,
    kube_addr_t *ipv4)
{
    if (!policy_net_contains(&carrier->net, addr)) {
        return false;
    }

    memset(ipv4, 0, sizeof(kube_addr_t));
    ipv4->family = KUBE_FAMILY_IPV4;
    memcpy(ipv4->bytes, addr->bytes + carrier->offset, 4);

    return true;
}


static kube_addr_t
policy_unmapped(const kube_addr_t *addr)
{
    kube_addr_t  ipv4;

    if (policy_carried(&policy_mapped, addr, &ipv4)) {
        return ipv4;
    }

    return *addr;
}


/*
 * Why an address is in one of the networks, by itself (NULL: it is not).
 * *bits grows to the longest prefix among those networks, behind the first
 * ahead bits of whatever carries the address.
 */
static const char *
policy_in(const policy_net_t *nets, size_t n, const kube_addr_t *addr,
    unsigned ahead, unsigned *bits)
{
    size_t       i;
    const char  *why;

    why = NULL;

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
policy_among(const policy_net_t *nets, size_t n, const kube_addr_t *addr,
    unsigned *bits)
{
    size_t       i;
    const char  *why;
    kube_addr_t  ipv4;

    why = policy_in(nets, n, addr, 0, bits);

    for (i = 0; why == NULL && i < POLICY_N(policy_carriers); i++) {
        if (policy_carried(&policy_carriers[i], addr, &ipv4)) {
            why = policy_in(nets, n, &ipv4, 8u * policy_carriers[i].offset,
                            bits);
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
    size_t        slash;
    uint64_t      bits, max;
    kube_addr_t   addr;
    const char   *p;

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

    if (addr.family == KUBE_FAMILY_IPV6
        && bits >= policy_mapped.net.bits
        && policy_net_contains(&policy_mapped.net, &addr))
    {
        addr = policy_unmapped(&addr);
        bits -= policy_mapped.net.bits;
    }

    cidr->low_bits = cidr_mask(&addr, (unsigned) bits);
    cidr->addr = addr;
    cidr->bits = (uint8_t) bits;

    return KUBE_OK;
}


bool
kube_cidr_contains(const kube_cidr_t *cidr, const kube_addr_t *addr)
{
    kube_addr_t  a;

    a = policy_unmapped(addr);

    return a.family != KUBE_FAMILY_NONE
           && a.family == cidr->addr.family
           && policy_prefix_eq(cidr->addr.bytes, a.bytes, cidr->bits);
}


/* Only networks of at least this many bits name a special address. */
static bool
policy_names(const kube_cidr_t *cidrs, size_t n, const kube_addr_t *addr,
    unsigned bits)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (cidrs[i].bits >= bits && kube_cidr_contains(&cidrs[i], addr)) {
            return true;
        }
    }

    return false;
}


/* By itself, or by the IPv4 address that it carries. */
static bool
policy_is_denied(const kube_policy_t *policy, const kube_addr_t *addr)
{
    bool         denied;
    size_t       i;
    kube_addr_t  ipv4;

    denied = policy_names(policy->deny, policy->deny_n, addr, 0);

    for (i = 0; !denied && i < POLICY_N(policy_carriers); i++) {
        denied = policy_carried(&policy_carriers[i], addr, &ipv4)
                 && ipv4.bytes[0] != 0      /* ::1 is loopback */
                 && policy_names(policy->deny, policy->deny_n, &ipv4, 0);
    }

    return denied;
}


/*
 * True where no IPv4 network of the tables above begins with that byte, which
 * is so of most pods: each endpoint of each new view is judged.
 */
static bool
policy_is_ordinary(const kube_addr_t *addr)
{
    if (addr->family != KUBE_FAMILY_IPV4) {
        return false;
    }

    switch (addr->bytes[0]) {

    case 0:
    case 100:
    case 127:
    case 168:
    case 169:
    case 192:
    case 255:
        return false;

    default:
        return (addr->bytes[0] & 0xf0) != 0xe0;
    }
}


const char *
kube_policy_denies(const kube_policy_t *policy, const kube_addr_t *addr)
{
    unsigned     bits;
    kube_addr_t  a;
    const char  *never, *special;

    a = policy_unmapped(addr);

    if (policy_is_ordinary(&a)
        && (policy == NULL
            || (policy->deny_n == 0 && policy->allow_n == 0)))
    {
        return NULL;
    }

    if (a.family != KUBE_FAMILY_IPV4 && a.family != KUBE_FAMILY_IPV6) {
        return "no IP address";
    }

    bits = 0;
    never = policy_among(policy_never, POLICY_N(policy_never), &a, &bits);

    bits = 0;
    special = policy_among(policy_special, POLICY_N(policy_special), &a,
                           &bits);

    /* ::1 is loopback; that ::/96 would carry 0.0.0.1 decides nothing */

    if (never != NULL
        && policy_in(policy_special, POLICY_N(policy_special), &a, 0, &bits)
           == NULL)
    {
        return never;
    }

    if (policy == NULL) {
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
    size_t               i;
    const policy_net_t  *net;

    for (i = 0; i < POLICY_N(policy_special); i++) {
        net = &policy_special[i];

        if (net->family == cidr->addr.family
            && net->start == 0
            && net->bits > cidr->bits
            && policy_prefix_eq(cidr->addr.bytes, net->bytes, cidr->bits))
        {
            return net->why;
        }
    }

    return NULL;
}


static bool
policy_addr_eq(const kube_addr_t *a, const kube_addr_t *b)
{
    return a->family == b->family
           && policy_prefix_eq(a->bytes, b->bytes,
                               a->family == KUBE_FAMILY_IPV4 ? 32 : 128);
}


static bool
policy_is_zero(const kube_addr_t *addr)
{
    static const uint8_t  zeros[sizeof(addr->bytes)];

    return policy_prefix_eq(addr->bytes, zeros,
                            addr->family == KUBE_FAMILY_IPV4 ? 32 : 128);
}


static bool
policy_is_local(const kube_policy_t *policy, const kube_addr_t *addr)
{
    size_t  i;

    if (addr->family == KUBE_FAMILY_IPV4 && addr->bytes[0] == 127) {
        return true;
    }

    for (i = 0; i < policy->local_n; i++) {
        if (policy_addr_eq(&policy->local[i], addr)) {
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
    kube_addr_t           a;
    const kube_listen_t  *listen;

    self = false;
    a = policy_unmapped(addr);

    for (i = 0; policy != NULL && i < policy->listen_n && !self; i++) {
        listen = &policy->listen[i];

        if (listen->port != port || listen->addr.family != a.family) {
            continue;
        }

        self = policy_is_zero(&listen->addr)
               ? policy_is_local(policy, &a)
               : policy_addr_eq(&listen->addr, &a);
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

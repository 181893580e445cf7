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


typedef struct {
    kube_family_t  family;
    uint8_t        bits;
    uint8_t        bytes[16];
} policy_net_t;

/* RFC 791 and 1122: "this network"; RFC 5771; limited broadcast; RFC 4291. */
static const policy_net_t  policy_never[] = {
    { KUBE_FAMILY_IPV4, 8, { 0 } },
    { KUBE_FAMILY_IPV4, 4, { 224 } },
    { KUBE_FAMILY_IPV4, 32, { 255, 255, 255, 255 } },
    { KUBE_FAMILY_IPV6, 128, { 0 } },
    { KUBE_FAMILY_IPV6, 8, { 0xff } }
};

/* Loopback; link-local; the metadata service of AWS over IPv6. */
static const policy_net_t  policy_special[] = {
    { KUBE_FAMILY_IPV4, 8, { 127 } },
    { KUBE_FAMILY_IPV4, 16, { 169, 254 } },
    { KUBE_FAMILY_IPV6, 128, { 0, 0, 0, 0, 0, 0, 0, 0,
                               0, 0, 0, 0, 0, 0, 0, 1 } },
    { KUBE_FAMILY_IPV6, 10, { 0xfe, 0x80 } },
    { KUBE_FAMILY_IPV6, 128, { 0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0,
                               0, 0, 0, 0, 0, 0, 0x02, 0x54 } }
};

/* IPv6 networks whose addresses carry an IPv4 one, at the offset. */
typedef struct {
    policy_net_t  net;
    uint8_t       offset;
} policy_carrier_t;

static const policy_carrier_t  policy_mapped = {
    { KUBE_FAMILY_IPV6, 96, { 0, 0, 0, 0, 0, 0, 0, 0,
                              0, 0, 0xff, 0xff, 0, 0, 0, 0 } }, 12
};

/* RFC 4291 2.5.5.1 (deprecated), RFC 6052 (NAT64), RFC 3056 (6to4). */
static const policy_carrier_t  policy_carriers[] = {
    { { KUBE_FAMILY_IPV6, 96, { 0 } }, 12 },
    { { KUBE_FAMILY_IPV6, 96, { 0, 0x64, 0xff, 0x9b } }, 12 },
    { { KUBE_FAMILY_IPV6, 16, { 0x20, 0x02 } }, 2 }
};

#define POLICY_N(array)  (sizeof(array) / sizeof(array[0]))


static bool
policy_prefix_eq(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    uint8_t   mask;
    unsigned  whole;

    whole = bits / 8;

    if (memcmp(a, b, whole) != 0) {
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
           && policy_prefix_eq(net->bytes, addr->bytes, net->bits);
}


static bool
policy_in(const policy_net_t *nets, size_t n, const kube_addr_t *addr)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (policy_net_contains(&nets[i], addr)) {
            return true;
        }
    }

    return false;
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


static bool
policy_is_never(const kube_addr_t *addr)
{
    size_t       i;
    kube_addr_t  ipv4;

    if (addr->family != KUBE_FAMILY_IPV4 && addr->family != KUBE_FAMILY_IPV6) {
        return true;
    }

    if (policy_in(policy_never, POLICY_N(policy_never), addr)) {
        return true;
    }

    /* ::1 is loopback, not a carrier of 0.0.0.1 */
    if (policy_in(policy_special, POLICY_N(policy_special), addr)) {
        return false;
    }

    for (i = 0; i < POLICY_N(policy_carriers); i++) {
        if (policy_carried(&policy_carriers[i], addr, &ipv4)
            && policy_in(policy_never, POLICY_N(policy_never), &ipv4))
        {
            return true;
        }
    }

    return false;
}


static bool
policy_is_special(const kube_addr_t *addr)
{
    size_t       i;
    kube_addr_t  ipv4;

    if (policy_in(policy_special, POLICY_N(policy_special), addr)) {
        return true;
    }

    for (i = 0; i < POLICY_N(policy_carriers); i++) {
        if (policy_carried(&policy_carriers[i], addr, &ipv4)
            && policy_in(policy_special, POLICY_N(policy_special), &ipv4))
        {
            return true;
        }
    }

    return false;
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


static bool
policy_names(const kube_cidr_t *cidrs, size_t n, const kube_addr_t *addr)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (kube_cidr_contains(&cidrs[i], addr)) {
            return true;
        }
    }

    return false;
}


bool
kube_policy_check(const kube_policy_t *policy, const kube_addr_t *addr)
{
    kube_addr_t  a;

    a = policy_unmapped(addr);

    if (policy_is_never(&a)) {
        return false;
    }

    if (policy != NULL && policy_names(policy->deny, policy->deny_n, &a)) {
        return false;
    }

    if (policy != NULL && policy->allow_n != 0) {
        return policy_names(policy->allow, policy->allow_n, &a);
    }

    return !policy_is_special(&a);
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

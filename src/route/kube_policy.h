/*
 * kube_policy - which endpoint addresses may be used, and which namespaces a
 * key may name.
 *
 * What the API says about an address is never enough: whoever may write an
 * EndpointSlice must not reach this host's loopback or a metadata service
 * through us.  It does not resolve names.  No state; may be called from any
 * process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_POLICY_H
#define KUBE_POLICY_H


#include "kube_addr.h"


/* The addresses that are alike where the mask is set. */
typedef struct {
    kube_addr_number_t  addr;      /* bits behind the prefix are zero */
    uint64_t            high;      /* the mask */
    uint64_t            low;
    uint8_t             bits;      /* 0..32, 0..128: up to its last one */
    bool                low_bits;  /* the text had bits behind the prefix set:
                                      meaningless, worth a warning */
} kube_cidr_t;

/*
 * "address" or "address/bits".  An IPv4-mapped prefix of 96 bits or more
 * becomes the IPv4 one.  KUBE_OK or KUBE_INVALID with *error (NULL: not
 * wanted).
 */
kube_rc_t kube_cidr_parse(kube_str_t text, kube_cidr_t *cidr,
    kube_error_t *error)  KUBE_MUST_CHECK;


/* Where this host listens; an address of zeros: at all that it has. */
typedef struct {
    kube_addr_t  addr;
    uint16_t     port;
} kube_listen_t;

/*
 * allow_address and deny_address, and the gateway itself; the arrays are the
 * caller's.
 */
typedef struct {
    const kube_cidr_t  *allow;
    size_t              allow_n;
    const kube_cidr_t  *deny;
    size_t              deny_n;

    const kube_listen_t *listen;
    size_t              listen_n;
    const kube_addr_t  *local;     /* of this host's interfaces */
    size_t              local_n;
} kube_policy_t;

/*
 * Judges an address and a port of it.  NULL: it may be used; else a static text
 * that says by what rule it may not, such as "loopback (127.0.0.0/8)".  policy
 * NULL: the defaults.  The rules, in this order:
 *
 *   never     "this network", unspecified, multicast, broadcast, no address
 *   deny      what deny_address names, whatever allow_address says
 *   allow     where there is an allow_address: what it names, nothing else
 *   special   loopback, link-local, cloud metadata, IPv6 that carries IPv4:
 *             not used unless allow_address names a network that lies wholly
 *             inside the special one ("0.0.0.0/0" names none of them)
 *   self      where the gateway itself listens, so that a request sent there
 *             would come back again and again; not where an allow_address
 *             names the one address (/32, /128).  Any 127.0.0.0/8 counts as an
 *             address of this host.  port 0: not asked
 *
 * kube_policy.c has the table.  An IPv6 address that carries a special IPv4
 * one (::/96, NAT64 64:ff9b::/96, 6to4 2002::/16) is special as well.
 */
const char *kube_policy_denies(const kube_policy_t *policy,
    const kube_addr_number_t *addr, uint16_t port);

/* Whether the gateway listens at that port of any address. */
bool kube_policy_listens(const kube_policy_t *policy, uint16_t port);

/*
 * The first special network that lies inside the wider one of an
 * allow_address, which therefore does not permit it; NULL: none.
 */
const char *kube_policy_wider(const kube_cidr_t *cidr);


/* Zeroed, it denies every namespace. */
typedef struct {
    bool               all;
    const kube_str_t  *names;      /* the caller's; unused with all */
    size_t             names_n;
} kube_namespaces_t;

bool kube_namespaces_allow(const kube_namespaces_t *namespaces,
    kube_str_t ns);


#endif /* KUBE_POLICY_H */

/*
 * kube_addr - an IPv4 or IPv6 address: from text, as text, as numbers.
 *
 * It resolves no name and judges nothing.  No state; may be called from any
 * process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ADDR_H
#define KUBE_ADDR_H


#include <string.h>

#include "kube_base.h"


typedef enum {
    KUBE_FAMILY_NONE = 0,
    KUBE_FAMILY_IPV4 = 4,
    KUBE_FAMILY_IPV6 = 6
} kube_family_t;

typedef struct {
    kube_family_t  family;
    uint8_t        bytes[16];        /* network order; IPv4 in the first 4 */
} kube_addr_t;

/*
 * Strict textual forms only: dotted quad without leading zeros, RFC 4291
 * text without zone id.  KUBE_OK or KUBE_INVALID.
 */
kube_rc_t kube_addr_parse(kube_str_t s, kube_addr_t *addr)  KUBE_MUST_CHECK;

/* RFC 5952 text and NUL into out; returns the length. */
#define KUBE_ADDR_TEXT_MAX  46
size_t kube_addr_text(const kube_addr_t *addr, char out[KUBE_ADDR_TEXT_MAX]);


/*
 * An address as two numbers, for comparisons and masks: what stands first in
 * it is in the high bits.  Without a family both are 0.
 */
typedef struct {
    kube_family_t  family;
    uint64_t       high;             /* IPv4: all of it, in the upper half */
    uint64_t       low;              /* IPv4: 0 */
} kube_addr_number_t;


/* The first eight bytes as a number.  For this file. */
static inline uint64_t
kube_addr_word(const uint8_t *bytes)
{
    uint64_t  word;

    memcpy(&word, bytes, sizeof(uint64_t));

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif

    return word;
}


static inline kube_addr_number_t
kube_addr_number(const kube_addr_t *addr)
{
    kube_addr_number_t  number;

    number.family = addr->family;
    number.high = 0;
    number.low = 0;

    if (addr->family == KUBE_FAMILY_IPV4) {
        number.high = kube_addr_word(addr->bytes) & ~(uint64_t) UINT32_MAX;

    } else if (addr->family == KUBE_FAMILY_IPV6) {
        number.high = kube_addr_word(addr->bytes);
        number.low = kube_addr_word(addr->bytes + 8);
    }

    return number;
}


#endif /* KUBE_ADDR_H */

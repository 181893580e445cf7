/*
 * kube_hash - SipHash-2-4 in its 64 and 128 bit forms, sums of bytes and of
 * digests, and xorshift64*.
 *
 * Not a cryptographic signature of anything.  No state outside the
 * arguments; may be called from any process or thread.
 *
 * Source: Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012, and
 * the 128-bit variant of its reference code.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_hash.h"


/* Odd, and with as many ones as zeros in each byte: wyhash's own. */
#define SUM_A  0x2d358dccaa6c78a5ull
#define SUM_B  0x8bb84b93962eacc9ull
#define SUM_C  0x4b33a62ed433d4a3ull
#define SUM_D  0x4d5a2da51de1aa47ull


typedef struct {
    uint64_t  v0;
    uint64_t  v1;
    uint64_t  v2;
    uint64_t  v3;
} sip_state_t;


static inline uint64_t
sip_rotl(uint64_t x, unsigned b)
{
    return (x << b) | (x >> (64 - b));
}


static inline void
sip_round(sip_state_t *s)
{
    s->v0 += s->v1;
    s->v1 = sip_rotl(s->v1, 13) ^ s->v0;
    s->v0 = sip_rotl(s->v0, 32);

    s->v2 += s->v3;
    s->v3 = sip_rotl(s->v3, 16) ^ s->v2;

    s->v0 += s->v3;
    s->v3 = sip_rotl(s->v3, 21) ^ s->v0;

    s->v2 += s->v1;
    s->v1 = sip_rotl(s->v1, 17) ^ s->v2;
    s->v2 = sip_rotl(s->v2, 32);
}


/* Little-endian on any machine, as all below. */
static inline uint64_t
hash_load64(const unsigned char *p)
{
    uint64_t  m;

    memcpy(&m, p, 8);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    m = __builtin_bswap64(m);
#endif

    return m;
}


static inline uint64_t
hash_load32(const unsigned char *p)
{
    uint32_t  m;

    memcpy(&m, p, 4);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    m = __builtin_bswap32(m);
#endif

    return m;
}


/* len < 8 bytes; what two loads both bring is the same. */
static inline uint64_t
hash_load(const unsigned char *p, size_t len)
{
    if (len >= 4) {
        return hash_load32(p) | hash_load32(p + len - 4) << (8 * (len - 4));
    }

    if (len == 0) {
        return 0;
    }

    return (uint64_t) p[0]
           | (uint64_t) p[len / 2] << (8 * (len / 2))
           | (uint64_t) p[len - 1] << (8 * (len - 1));
}


static inline void
sip_word(sip_state_t *s, uint64_t m)
{
    s->v3 ^= m;
    sip_round(s);
    sip_round(s);
    s->v0 ^= m;
}


static uint64_t
sip_squeeze(sip_state_t *s)
{
    sip_round(s);
    sip_round(s);
    sip_round(s);
    sip_round(s);

    return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}


/* v1_tweak tells the 128 bit form from the other from the first word on. */
static void
sip_absorb(sip_state_t *s, kube_seed_t seed, uint64_t v1_tweak,
    const void *data, size_t len)
{
    size_t                left;
    const unsigned char  *p;

    s->v0 = seed.k0 ^ 0x736f6d6570736575ull;
    s->v1 = seed.k1 ^ 0x646f72616e646f6dull ^ v1_tweak;
    s->v2 = seed.k0 ^ 0x6c7967656e657261ull;
    s->v3 = seed.k1 ^ 0x7465646279746573ull;

    p = data;

    for (left = len; left >= 8; left -= 8) {
        sip_word(s, hash_load64(p));
        p += 8;
    }

    sip_word(s, ((uint64_t) len << 56) | hash_load(p, left));
}


uint64_t
kube_hash64(kube_seed_t seed, const void *data, size_t len)
{
    sip_state_t  s;

    sip_absorb(&s, seed, 0, data, len);
    s.v2 ^= 0xff;

    return sip_squeeze(&s);
}


uint64_t
kube_hash64_key(kube_seed_t seed, kube_str_t ns, kube_str_t name)
{
    if (ns.len != 0) {
        seed.k0 ^= kube_hash64(seed, ns.data, ns.len);
    }

    return kube_hash64(seed, name.data, name.len);
}


kube_digest_t
kube_hash128(const void *data, size_t len)
{
    sip_state_t    s;
    kube_digest_t  d;

    sip_absorb(&s, (kube_seed_t) { 0, 0 }, 0xee, data, len);

    s.v2 ^= 0xee;
    d.lo = sip_squeeze(&s);

    s.v1 ^= 0xdd;
    d.hi = sip_squeeze(&s);

    return d;
}


kube_digest_t
kube_sum128(uint64_t salt, const void *data, size_t len)
{
    size_t                left;
    uint64_t              a, b, lo, hi;
    const unsigned char  *p;

    p = data;
    lo = salt ^ SUM_C;
    hi = salt + SUM_D;

    /* two lanes, of one product for 16 bytes each; the end mixes them */

    for (left = len; left >= 32; left -= 32) {
        lo = kube_mix64(hash_load64(p) ^ SUM_A, hash_load64(p + 8) ^ lo);
        hi = kube_mix64(hash_load64(p + 16) ^ SUM_B,
                        hash_load64(p + 24) ^ hi);
        p += 32;
    }

    if (left >= 16) {
        lo = kube_mix64(hash_load64(p) ^ SUM_A, hash_load64(p + 8) ^ lo);
        p += 16;
        left -= 16;
    }

    a = (left >= 8) ? hash_load64(p) : hash_load(p, left);
    b = (left >= 8) ? hash_load(p + 8, left - 8) : 0;
    hi = kube_mix64(a ^ SUM_B, b ^ hi);

    return (kube_digest_t) { .lo = kube_mix64(lo ^ SUM_D ^ len, hi ^ SUM_C),
                             .hi = kube_mix64(hi ^ SUM_A, lo ^ SUM_B ^ len) };
}


void
kube_digest_add(kube_digest_t *sum, kube_digest_t h)
{
    sum->lo += h.lo;
    sum->hi += h.hi + (sum->lo < h.lo);
}


void
kube_digest_sub(kube_digest_t *sum, kube_digest_t h)
{
    sum->hi -= h.hi + (sum->lo < h.lo);
    sum->lo -= h.lo;
}


void
kube_digest_hex(kube_digest_t d, char out[33])
{
    unsigned           i;
    static const char  hex[] = "0123456789abcdef";

    for (i = 0; i < 16; i++) {
        out[i] = hex[(d.hi >> (60 - 4 * i)) & 0xf];
        out[16 + i] = hex[(d.lo >> (60 - 4 * i)) & 0xf];
    }

    out[32] = '\0';
}


void
kube_random_init(kube_random_t *r, uint64_t seed)
{
    uint64_t  z;

    /* splitmix64: close seeds (a pid, a clock) must not give close sleeps */
    z = seed + 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    z ^= z >> 31;

    /* xorshift never leaves the all-zero state */
    r->state = (z != 0) ? z : 1;
}


uint64_t
kube_random_next(kube_random_t *r)
{
    uint64_t  x;

    x = r->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    r->state = x;

    return x * 0x2545f4914f6cdd1dull;
}


uint64_t
kube_random_range(kube_random_t *r, uint64_t low, uint64_t high)
{
    uint64_t  span, limit, x;

    span = high - low + 1;

    if (span == 0) {
        return kube_random_next(r);
    }

    /* the last, incomplete multiple of span would favour low values */
    limit = UINT64_MAX - UINT64_MAX % span;

    do {
        x = kube_random_next(r);
    } while (x >= limit);

    return low + x % span;
}

/*
 * kube_hash - SipHash-2-4: 64 bits with a secret seed for hash tables (a
 * client cannot make keys collide), 128 bits with a zero key for names of
 * things.  And a sum that costs a tenth of it, for checksums and digests: it
 * has no secret, so it tells apart what differs by chance and not by design.
 *
 * Source: Aumasson, Bernstein: "SipHash: a fast short-input PRF", 2012; the
 * sum folds 128-bit products as wyhash does (Wang Yi, public domain).
 * Not a cryptographic signature of anything.  No state; any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_HASH_H
#define KUBE_HASH_H


#include "kube_base.h"


typedef struct {
    uint64_t  k0;
    uint64_t  k1;
} kube_seed_t;

/* A sum of 128-bit hashes modulo 2^128: order does not matter. */
typedef struct {
    uint64_t  lo;
    uint64_t  hi;
} kube_digest_t;

uint64_t kube_hash64(kube_seed_t seed, const void *data, size_t len);

/* Of an object's key; ns may be empty.  Two keys have one by chance alone. */
uint64_t kube_hash64_key(kube_seed_t seed, kube_str_t ns, kube_str_t name);

kube_digest_t kube_hash128(const void *data, size_t len);

/*
 * The same on any machine.  Whoever looks for two texts of one sum will find
 * them: only a text of his own is hidden by that, and only from those who
 * compare sums.
 */
kube_digest_t kube_sum128(uint64_t salt, const void *data, size_t len);

void kube_digest_add(kube_digest_t *sum, kube_digest_t h);
void kube_digest_sub(kube_digest_t *sum, kube_digest_t h);

/* 32 lower-case hex digits, hi first, and a NUL. */
void kube_digest_hex(kube_digest_t d, char out[33]);


/* xorshift64*: jitter and timeouts.  Never for secrets.  seed 0 is mended. */
typedef struct {
    uint64_t  state;
} kube_random_t;

void kube_random_init(kube_random_t *r, uint64_t seed);
uint64_t kube_random_next(kube_random_t *r);

/* Uniform in [low, high]; low <= high. */
uint64_t kube_random_range(kube_random_t *r, uint64_t low, uint64_t high);


__extension__ typedef unsigned __int128  kube_u128_t;


/*
 * Two numbers into one: the halves of their product, folded, as wyhash does.
 * In tables of one process each is combined with a part of a seed before, so
 * that nobody can make results meet.
 */
static inline uint64_t
kube_mix64(uint64_t a, uint64_t b)
{
    kube_u128_t  product;

    product = (kube_u128_t) a * b;

    return (uint64_t) product ^ (uint64_t) (product >> 64);
}


#endif /* KUBE_HASH_H */

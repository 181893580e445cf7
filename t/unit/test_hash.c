/*
 * test_hash - SipHash against published and openssl's values, sums of bytes
 * and of digests, random.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_hash.h"


typedef struct {
    size_t    len;       /* of the message 00 01 02 ... */
    uint64_t  h64;       /* key 00 01 .. 0f */
    uint64_t  lo;        /* zero key */
    uint64_t  hi;
} hash_vector_t;


/*
 * h64: the reference code's vectors; lo, hi: openssl mac -macopt size:16
 * -macopt hexkey:00..00 SIPHASH.
 */
static const hash_vector_t  hash_vectors[] = {
    { 0, 0x726fdb47dd0e0e31,
      0x7de0a38047d74950, 0xf4f2ced447ab0242 },
    { 1, 0x74f839c593dc67fd,
      0xb8af4c5ee8121ed4, 0x01b83875e594f031 },
    { 7, 0xab0200f58b01d137,
      0x61e45c40f99b3678, 0xffb28133f87fd757 },
    { 8, 0x93f5f5799a932462,
      0x0e44eb01f934654b, 0x84af754a294055e9 },
    { 15, 0xa129ca6149be45e5,
      0x12250f9c7a53b89f, 0x5e95c04902ea8483 },
    { 16, 0x3f2acc7f57c29bdb,
      0x3250f290ab50ad81, 0x8b502a7358bb34a2 },
    { 63, 0x958a324ceb064572,
      0xef42f95dcf423d4e, 0xded875485be5fa96 }
};


static void
hash_known(void **state)
{
    size_t                i;
    kube_seed_t           seed;
    kube_digest_t         d;
    unsigned char         message[64];
    const hash_vector_t  *v;

    (void) state;

    seed.k0 = 0x0706050403020100;
    seed.k1 = 0x0f0e0d0c0b0a0908;

    for (i = 0; i < sizeof(message); i++) {
        message[i] = (unsigned char) i;
    }

    for (i = 0; i < sizeof(hash_vectors) / sizeof(hash_vectors[0]); i++) {
        v = &hash_vectors[i];

        assert_true(kube_hash64(seed, message, v->len) == v->h64);

        d = kube_hash128(message, v->len);
        assert_true(d.lo == v->lo);
        assert_true(d.hi == v->hi);
    }

    assert_true(kube_hash64(seed, NULL, 0) == hash_vectors[0].h64);
}


static void
hash_unaligned(void **state)
{
    size_t       i;
    char         room[64];
    uint64_t     first;
    kube_seed_t  seed;

    (void) state;

    seed.k0 = 1;
    seed.k1 = 2;
    first = kube_hash64(seed, "shop/web-abcde-12345", 20);

    for (i = 0; i < 16; i++) {
        memcpy(room + i, "shop/web-abcde-12345", 20);
        assert_true(kube_hash64(seed, room + i, 20) == first);
    }

    seed.k1 = 3;
    assert_true(kube_hash64(seed, "shop/web-abcde-12345", 20) != first);
}


/*
 * A sum is of the bytes, their number, the salt, and nothing else: each of
 * these changes both halves, in about half of their bits.
 */
static void
sum_of_bytes(void **state)
{
    char           room[80 + 1];
    size_t         len, bit, ones, tried;
    unsigned       shift;
    kube_digest_t  sum, other;

    (void) state;

    memset(room, 0, sizeof(room));
    ones = 0;
    tried = 0;

    for (len = 0; len < 64; len++) {
        sum = kube_sum128(7, room, len);
        other = kube_sum128(7, room, len + 1);
        assert_true(sum.lo != other.lo && sum.hi != other.hi);
        other = kube_sum128(8, room, len);
        assert_true(sum.lo != other.lo && sum.hi != other.hi);

        for (bit = 0; bit < 8 * len; bit++) {
            room[bit / 8] = (char) (room[bit / 8] ^ 1 << bit % 8);
            other = kube_sum128(7, room, len);
            room[bit / 8] = (char) (room[bit / 8] ^ 1 << bit % 8);

            assert_true(sum.lo != other.lo && sum.hi != other.hi);
            ones += (size_t) __builtin_popcountll(sum.lo ^ other.lo)
                    + (size_t) __builtin_popcountll(sum.hi ^ other.hi);
            tried += 128;
        }
    }

    assert_in_range(ones, tried * 49 / 100, tried * 51 / 100);

    for (len = 0; len < 40; len++) {
        memcpy(room, "shop/web-abcde-12345, and what follows it", 40);
        sum = kube_sum128(7, room, len);

        for (shift = 1; shift < 16; shift++) {
            memmove(room + shift, room + shift - 1, 40);
            other = kube_sum128(7, room + shift, len);
            assert_memory_equal(&sum, &other, sizeof(sum));
        }
    }

    /* written down once: machines and builds must agree */
    sum = kube_sum128(0, "shop/web-abcde-12345", 20);
    assert_true(sum.lo == 0x1eeb5f988d292e36ull
                && sum.hi == 0x31220661c9d4a5c3ull);
    sum = kube_sum128(0, "shop/web-abcde-12345 and shop/db-abcde-67890, 47",
                      48);
    assert_true(sum.lo == 0x4ba1a772e9e509beull
                && sum.hi == 0x2084f0620e05f672ull);
}


static void
digest_sums(void **state)
{
    char           hex[33];
    kube_digest_t  a, b, sum, other;

    (void) state;

    a = kube_hash128("a", 1);
    b = kube_hash128("b", 1);

    sum = (kube_digest_t) { 0, 0 };
    kube_digest_add(&sum, a);
    kube_digest_add(&sum, b);

    other = (kube_digest_t) { 0, 0 };
    kube_digest_add(&other, b);
    kube_digest_add(&other, a);
    assert_memory_equal(&sum, &other, sizeof(sum));

    kube_digest_sub(&sum, a);
    assert_memory_equal(&sum, &b, sizeof(sum));
    kube_digest_sub(&sum, b);
    assert_true(sum.lo == 0 && sum.hi == 0);

    /* carry and borrow */
    sum = (kube_digest_t) { UINT64_MAX, 0 };
    kube_digest_add(&sum, (kube_digest_t) { 1, 0 });
    assert_true(sum.lo == 0 && sum.hi == 1);
    kube_digest_sub(&sum, (kube_digest_t) { 1, 0 });
    assert_true(sum.lo == UINT64_MAX && sum.hi == 0);
    kube_digest_sub(&sum, (kube_digest_t) { 0, 1 });
    assert_true(sum.hi == UINT64_MAX);

    kube_digest_hex((kube_digest_t) { 0x0123456789abcdef, 0xfedcba98 }, hex);
    assert_string_equal(hex, "00000000fedcba980123456789abcdef");
}


static void
random_range(void **state)
{
    unsigned       i, seen[10];
    uint64_t       x;
    kube_random_t  r;

    (void) state;

    memset(seen, 0, sizeof(seen));
    kube_random_init(&r, 42);

    for (i = 0; i < 10000; i++) {
        x = kube_random_range(&r, 5, 14);
        assert_true(x >= 5 && x <= 14);
        seen[x - 5]++;
    }

    /* 1000 each expected; 5 standard deviations are 150 */
    for (i = 0; i < 10; i++) {
        assert_in_range(seen[i], 850, 1150);
    }

    assert_int_equal(kube_random_range(&r, 7, 7), 7);
    (void) kube_random_range(&r, 0, UINT64_MAX);

    x = kube_random_range(&r, UINT64_MAX - 1, UINT64_MAX);
    assert_true(x >= UINT64_MAX - 1);
}


/* A byte on the other side of the border, or none of it, is another key. */
static void
hash_of_keys(void **state)
{
    size_t       i, j;
    kube_seed_t  seed;

    static const struct {
        const char  *ns;
        const char  *name;
    } keys[] = {
        { "", "ab" }, { "a", "b" }, { "ab", "" }, { "b", "a" }, { "a", "ab" },
        { "ab", "a" }, { "aa", "b" }, { "", "b" }, { "", "" }
    };

    (void) state;

    seed = (kube_seed_t) { 3, 4 };

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        for (j = 0; j < sizeof(keys) / sizeof(keys[0]); j++) {
            assert_int_equal(kube_hash64_key(seed, kube_str(keys[i].ns),
                                             kube_str(keys[i].name))
                             == kube_hash64_key(seed, kube_str(keys[j].ns),
                                                kube_str(keys[j].name)),
                             i == j);
        }
    }

    /* without a namespace it is the name's */
    assert_true(kube_hash64_key(seed, KUBE_STR_NULL, KUBE_STR("ab"))
                == kube_hash64(seed, "ab", 2));
}


static void
random_seeds(void **state)
{
    uint64_t       x;
    kube_random_t  a, b;

    (void) state;

    kube_random_init(&a, 0);
    assert_true(kube_random_next(&a) != kube_random_next(&a));

    /* the seed that splitmix64 takes to 0 */
    kube_random_init(&a, 0 - (uint64_t) 0x9e3779b97f4a7c15);
    assert_true(a.state != 0);

    /* close seeds are far apart, equal ones are equal */
    kube_random_init(&a, 1000);
    kube_random_init(&b, 1001);
    x = kube_random_next(&a) ^ kube_random_next(&b);
    assert_true(__builtin_popcountll(x) > 10);

    kube_random_init(&b, 1000);
    (void) kube_random_next(&b);
    assert_true(kube_random_next(&a) == kube_random_next(&b));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(hash_known),
        cmocka_unit_test(hash_unaligned),
        cmocka_unit_test(hash_of_keys),
        cmocka_unit_test(sum_of_bytes),
        cmocka_unit_test(digest_sums),
        cmocka_unit_test(random_range),
        cmocka_unit_test(random_seeds)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

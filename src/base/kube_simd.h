/*
 * kube_simd - bytes looked for 16 or 64 at a time, most of them those of JSON,
 * as bit masks: bit i stands for the byte at p + i.
 *
 * Four questions only, those of src/api.  They are answered by SSE2 on
 * amd64 and by NEON on aarch64.  Each has a plain C form with the suffix
 * _plain, which is what any other machine uses, and what the tests hold the
 * others against; KUBE_SIMD_PLAIN chooses it everywhere.  Nothing is read but
 * the 16 or 64 bytes.  No state; anyone may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SIMD_H
#define KUBE_SIMD_H


#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(KUBE_SIMD_PLAIN)
#define KUBE_SIMD_SSE2  1
#include <emmintrin.h>

#elif defined(__AARCH64EL__) && defined(__ARM_NEON)                         \
      && !defined(KUBE_SIMD_PLAIN)
#define KUBE_SIMD_NEON  1
#include <arm_neon.h>
#endif


#define KUBE_SIMD_TEXT   16
#define KUBE_SIMD_BLOCK  64

/* Bytes of 64 that mean something between values or in strings. */
typedef struct {
    uint64_t  quote;      /* " */
    uint64_t  open;       /* { [ */
    uint64_t  close;      /* } ] */
    uint64_t  curly;      /* of these { } */
    uint64_t  slash;      /* \ */
    uint64_t  feed;       /* newline, where that was asked for */
} kube_simd_block_t;


static inline uint64_t
kube_simd_word(const char *p)
{
    uint64_t  word;

    memcpy(&word, p, 8);

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif

    return word;
}


/* The high bit of each byte of word that equals ch, which is below 0x80. */
static inline uint64_t
kube_simd_eq(uint64_t word, unsigned char ch)
{
    uint64_t  x;

    x = word ^ ch * 0x0101010101010101ull;

    return ~(((x & 0x7f7f7f7f7f7f7f7full) + 0x7f7f7f7f7f7f7f7full) | x)
           & 0x8080808080808080ull;
}


/* Gathers the high bits of the eight bytes. */
static inline uint64_t
kube_simd_gather(uint64_t high)
{
    return (high >> 7) * 0x0102040810204080ull >> 56;
}


static inline kube_simd_block_t
kube_simd_block_plain(const char *p, int lines)
{
    unsigned           i;
    uint64_t           word, open, close;
    kube_simd_block_t  m;

    m = (kube_simd_block_t) { 0, 0, 0, 0, 0, 0 };

    for (i = 0; i < KUBE_SIMD_BLOCK; i += 8) {
        word = kube_simd_word(p + i);

        open = kube_simd_eq(word, '{');
        close = kube_simd_eq(word, '}');
        m.curly |= kube_simd_gather(open | close) << i;

        open |= kube_simd_eq(word, '[');
        close |= kube_simd_eq(word, ']');
        m.open |= kube_simd_gather(open) << i;
        m.close |= kube_simd_gather(close) << i;

        m.quote |= kube_simd_gather(kube_simd_eq(word, '"')) << i;
        m.slash |= kube_simd_gather(kube_simd_eq(word, '\\')) << i;

        if (lines) {
            m.feed |= kube_simd_gather(kube_simd_eq(word, '\n')) << i;
        }
    }

    return m;
}


/* The bytes of 16 that end a string or are special in it: " and \. */
static inline uint32_t
kube_simd_quote_plain(const char *p, int lines)
{
    unsigned  i;
    uint32_t  mask;
    uint64_t  word, found;

    mask = 0;

    for (i = 0; i < KUBE_SIMD_TEXT; i += 8) {
        word = kube_simd_word(p + i);
        found = kube_simd_eq(word, '"') | kube_simd_eq(word, '\\');
        found |= lines ? kube_simd_eq(word, '\n') : 0;
        mask |= (uint32_t) kube_simd_gather(found) << i;
    }

    return mask;
}


/* The bytes of 16 that are no visible ASCII. */
static inline uint32_t
kube_simd_hidden_plain(const char *p)
{
    unsigned       i;
    uint32_t       mask;
    unsigned char  ch;

    mask = 0;

    for (i = 0; i < KUBE_SIMD_TEXT; i++) {
        ch = (unsigned char) p[i];
        mask |= (uint32_t) (ch <= ' ' || ch > '~') << i;
    }

    return mask;
}


/* The bytes of 16 that are no visible ASCII, or " or \. */
static inline uint32_t
kube_simd_odd_plain(const char *p)
{
    return kube_simd_hidden_plain(p) | kube_simd_quote_plain(p, 0);
}


/*
 * What the two have: vectors of 16 bytes; a comparison makes each byte of them
 * 0 or 0xff, and a mask has a bit for each that is 0xff.
 */
#ifdef KUBE_SIMD_SSE2

typedef __m128i  kube_simd_t;


static inline kube_simd_t
kube_simd_load(const char *p)
{
    return _mm_loadu_si128((const __m128i *) (const void *) p);
}


static inline kube_simd_t
kube_simd_fill(char ch)
{
    return _mm_set1_epi8(ch);
}


static inline kube_simd_t
kube_simd_or(kube_simd_t a, kube_simd_t b)
{
    return _mm_or_si128(a, b);
}


static inline kube_simd_t
kube_simd_is(kube_simd_t v, char ch)
{
    return _mm_cmpeq_epi8(v, kube_simd_fill(ch));
}


/* Space, what is below it, and what is above '~'. */
static inline kube_simd_t
kube_simd_unseen(kube_simd_t v)
{
    /* signed: what is above 0x7f is below the space */

    return _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8('!')),
                        kube_simd_is(v, 0x7f));
}


static inline uint32_t
kube_simd_mask(kube_simd_t v)
{
    return (uint32_t) _mm_movemask_epi8(v);
}


static inline uint64_t
kube_simd_mask64(kube_simd_t a, kube_simd_t b, kube_simd_t c, kube_simd_t d)
{
    return (uint64_t) kube_simd_mask(a)
           | (uint64_t) kube_simd_mask(b) << 16
           | (uint64_t) kube_simd_mask(c) << 32
           | (uint64_t) kube_simd_mask(d) << 48;
}


static inline int
kube_simd_any(kube_simd_t v)
{
    return kube_simd_mask(v) != 0;
}


/* The bytes of 64 that have the bit 0x20. */
static inline uint64_t
kube_simd_has_20(kube_simd_t a, kube_simd_t b, kube_simd_t c, kube_simd_t d)
{
    /* it becomes the highest one of each byte */

    return kube_simd_mask64(_mm_slli_epi16(a, 2), _mm_slli_epi16(b, 2),
                            _mm_slli_epi16(c, 2), _mm_slli_epi16(d, 2));
}

#elif defined(KUBE_SIMD_NEON)

typedef uint8x16_t  kube_simd_t;


static inline kube_simd_t
kube_simd_load(const char *p)
{
    return vld1q_u8((const uint8_t *) p);
}


static inline kube_simd_t
kube_simd_fill(char ch)
{
    return vdupq_n_u8((uint8_t) ch);
}


static inline kube_simd_t
kube_simd_or(kube_simd_t a, kube_simd_t b)
{
    return vorrq_u8(a, b);
}


static inline kube_simd_t
kube_simd_is(kube_simd_t v, char ch)
{
    return vceqq_u8(v, kube_simd_fill(ch));
}


/* Space, what is below it, and what is above '~'. */
static inline kube_simd_t
kube_simd_unseen(kube_simd_t v)
{
    /* unsigned: what is below '!' is above all others */

    return vcgtq_u8(vsubq_u8(v, vdupq_n_u8('!')), vdupq_n_u8('~' - '!'));
}


/* NEON has no movemask: of each byte of 0 or 0xff its bit of eight is left. */
static inline kube_simd_t
kube_simd_bits(kube_simd_t v)
{
    uint64x2_t  bits;

    bits = vdupq_n_u64(0x8040201008040201ull);

    return vandq_u8(v, vreinterpretq_u8_u64(bits));
}


/* Adding neighbours brings eight bytes into one. */
static inline uint32_t
kube_simd_mask(kube_simd_t v)
{
    v = kube_simd_bits(v);
    v = vpaddq_u8(v, v);
    v = vpaddq_u8(v, v);
    v = vpaddq_u8(v, v);

    return vgetq_lane_u16(vreinterpretq_u16_u8(v), 0);
}


static inline uint64_t
kube_simd_mask64(kube_simd_t a, kube_simd_t b, kube_simd_t c, kube_simd_t d)
{
    a = vpaddq_u8(kube_simd_bits(a), kube_simd_bits(b));
    c = vpaddq_u8(kube_simd_bits(c), kube_simd_bits(d));
    a = vpaddq_u8(a, c);
    a = vpaddq_u8(a, a);

    return vgetq_lane_u64(vreinterpretq_u64_u8(a), 0);
}


static inline int
kube_simd_any(kube_simd_t v)
{
    return vmaxvq_u8(v) != 0;
}


/* The bytes of 64 that have the bit 0x20. */
static inline uint64_t
kube_simd_has_20(kube_simd_t a, kube_simd_t b, kube_simd_t c, kube_simd_t d)
{
    kube_simd_t  bit;

    bit = vdupq_n_u8(0x20);

    return kube_simd_mask64(vtstq_u8(a, bit), vtstq_u8(b, bit),
                            vtstq_u8(c, bit), vtstq_u8(d, bit));
}

#endif


/* What is made of these. */
#if defined(KUBE_SIMD_SSE2) || defined(KUBE_SIMD_NEON)

/* ch, and the byte that differs from it in this bit alone, as [ does from {. */
static inline kube_simd_t
kube_simd_either(kube_simd_t v, char ch)
{
    return kube_simd_is(kube_simd_or(v, kube_simd_fill(0x20)), ch);
}


/* The bytes of 64 that are ch: most blocks have none. */
static inline uint64_t
kube_simd_where(kube_simd_t a, kube_simd_t b, kube_simd_t c, kube_simd_t d,
    char ch)
{
    a = kube_simd_is(a, ch);
    b = kube_simd_is(b, ch);
    c = kube_simd_is(c, ch);
    d = kube_simd_is(d, ch);

    return kube_simd_any(kube_simd_or(kube_simd_or(a, b), kube_simd_or(c, d)))
           ? kube_simd_mask64(a, b, c, d) : 0;
}


/* No loop: compilers would keep what it finds in memory. */
static inline kube_simd_block_t
kube_simd_block(const char *p, int lines)
{
    kube_simd_t        a, b, c, d;
    kube_simd_block_t  m;

    a = kube_simd_load(p);
    b = kube_simd_load(p + 16);
    c = kube_simd_load(p + 32);
    d = kube_simd_load(p + 48);

    m.quote = kube_simd_mask64(kube_simd_is(a, '"'), kube_simd_is(b, '"'),
                               kube_simd_is(c, '"'), kube_simd_is(d, '"'));

    m.open = kube_simd_mask64(kube_simd_either(a, '{'),
                              kube_simd_either(b, '{'),
                              kube_simd_either(c, '{'),
                              kube_simd_either(d, '{'));

    m.close = kube_simd_mask64(kube_simd_either(a, '}'),
                               kube_simd_either(b, '}'),
                               kube_simd_either(c, '}'),
                               kube_simd_either(d, '}'));

    m.curly = (m.open | m.close) & kube_simd_has_20(a, b, c, d);
    m.slash = kube_simd_where(a, b, c, d, '\\');
    m.feed = lines ? kube_simd_where(a, b, c, d, '\n') : 0;

    return m;
}


static inline uint32_t
kube_simd_quote(const char *p, int lines)
{
    kube_simd_t  v, found;

    v = kube_simd_load(p);
    found = kube_simd_or(kube_simd_is(v, '"'), kube_simd_is(v, '\\'));

    return kube_simd_mask(lines ? kube_simd_or(found, kube_simd_is(v, '\n'))
                                : found);
}


static inline uint32_t
kube_simd_odd(const char *p)
{
    kube_simd_t  v, found;

    v = kube_simd_load(p);
    found = kube_simd_or(kube_simd_is(v, '"'), kube_simd_is(v, '\\'));

    return kube_simd_mask(kube_simd_or(found, kube_simd_unseen(v)));
}


static inline uint32_t
kube_simd_hidden(const char *p)
{
    return kube_simd_mask(kube_simd_unseen(kube_simd_load(p)));
}

#else

#define kube_simd_block  kube_simd_block_plain
#define kube_simd_quote  kube_simd_quote_plain
#define kube_simd_odd    kube_simd_odd_plain
#define kube_simd_hidden kube_simd_hidden_plain

#endif


#endif /* KUBE_SIMD_H */

/*
 * kube_codec - the cursor that writes values as bytes or reads them back.
 *
 * How it begins and ends; the steps in between are in the header.  It knows
 * no format.  No state outside its argument; any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_codec.h"


kube_codec_t
kube_codec_writer(void *to, size_t cap)
{
    return (kube_codec_t) { .to = to, .cap = cap };
}


kube_codec_t
kube_codec_reader(const void *from, size_t len, kube_arena_t *arena)
{
    return (kube_codec_t) {
        .from = from,
        .end = (const unsigned char *) from + len,
        .arena = arena,
        .reading = true
    };
}


bool
kube_codec_is_done(const kube_codec_t *c)
{
    return !c->bad && c->from == c->end;
}


/* How many of eight bytes are the same, from the first on; not all are. */
static inline size_t
codec_same(uint64_t x, uint64_t y)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t) __builtin_ctzll(x ^ y) / 8;
#else
    return (size_t) __builtin_clzll(x ^ y) / 8;
#endif
}


size_t
kube_codec_shared(kube_str_t a, kube_str_t b)
{
    size_t    i, n;
    uint64_t  x, y;

    n = (a.len < b.len) ? a.len : b.len;
    x = 0;
    y = 0;

    for (i = 0; n - i >= 8; i += 8) {
        memcpy(&x, a.data + i, 8);
        memcpy(&y, b.data + i, 8);

        if (x != y) {
            return i + codec_same(x, y);
        }
    }

    /* the last eight reach into those that are known to be the same */

    if (i != 0) {
        memcpy(&x, a.data + n - 8, 8);
        memcpy(&y, b.data + n - 8, 8);

        return (x != y) ? n - 8 + codec_same(x, y) : n;
    }

    while (i < n && a.data[i] == b.data[i]) {
        i++;
    }

    return i;
}


size_t
kube_codec_shared_end(kube_str_t a, kube_str_t b, size_t skip)
{
    size_t       n, len, max;
    uint64_t     x, y;
    const char  *p, *q;

    len = (a.len < b.len) ? a.len : b.len;
    max = (len > skip) ? len - skip : 0;

    if (max == 0) {
        return 0;
    }

    p = a.data + a.len;
    q = b.data + b.len;

    /* the last word may reach into what is skipped: there is no byte less */

    for (n = 0; n < max && len - n >= 8; n += 8) {
        memcpy(&x, p - n - 8, 8);
        memcpy(&y, q - n - 8, 8);

        if (x != y) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            n += (size_t) __builtin_clzll(x ^ y) / 8;
#else
            n += (size_t) __builtin_ctzll(x ^ y) / 8;
#endif
            return (n < max) ? n : max;
        }
    }

    while (n < max && p[-1 - (ptrdiff_t) n] == q[-1 - (ptrdiff_t) n]) {
        n++;
    }

    return (n < max) ? n : max;
}

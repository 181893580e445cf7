/*
 * kube_codec - the cursor that writes values as bytes or reads them back.
 *
 * It knows no format.  No state outside its argument; any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_codec.h"


kube_codec_t
kube_codec_writer(void *to)
{
    return (kube_codec_t) { .to = to };
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


static void
codec_put(kube_codec_t *c, const void *bytes, size_t len)
{
    if (c->to != NULL && len != 0) {
        memcpy(c->to + c->size, bytes, len);
    }

    c->size += len;
}


/* Returns the next len bytes; NULL: there are not so many. */
static const unsigned char *
codec_take(kube_codec_t *c, size_t len)
{
    const unsigned char  *p;

    if (c->bad || (size_t) (c->end - c->from) < len) {
        c->bad = true;
        return NULL;
    }

    p = c->from;
    c->from += len;

    return p;
}


/* One byte is what most calls pass: lengths and bits. */
static inline uint64_t
codec_byte(kube_codec_t *c, uint64_t v)
{
    if (!c->reading) {
        if (c->to != NULL) {
            c->to[c->size] = (unsigned char) v;
        }

        c->size++;
        return v;
    }

    if (c->bad || c->from == c->end) {
        c->bad = true;
        return 0;
    }

    return *c->from++;
}


uint64_t
kube_codec_int(kube_codec_t *c, uint64_t v, size_t bytes)
{
    size_t                i;
    const unsigned char  *p;

    if (bytes == 1) {
        return codec_byte(c, v);
    }

    if (!c->reading) {
        for (i = 0; c->to != NULL && i < bytes; i++) {
            c->to[c->size + i] = (unsigned char) (v >> (8 * i));
        }

        c->size += bytes;
        return v;
    }

    p = codec_take(c, bytes);
    v = 0;

    for (i = 0; p != NULL && i < bytes; i++) {
        v |= (uint64_t) p[i] << (8 * i);
    }

    return v;
}


uint64_t
kube_codec_max(kube_codec_t *c, uint64_t v, uint64_t max)
{
    v = codec_byte(c, v);

    if (v > max) {
        c->bad = true;
        return 0;
    }

    return v;
}


size_t
kube_codec_count(kube_codec_t *c, size_t v, size_t max)
{
    uint64_t  low;

    low = codec_byte(c, (v > 0x7f) ? (v & 0x7f) | 0x80 : v);

    if (low & 0x80) {
        v = (size_t) ((low & 0x7f) | codec_byte(c, v >> 7) << 7);

    } else {
        v = (size_t) low;
    }

    if (v > max) {
        c->bad = true;
    }

    return c->bad ? 0 : v;
}


kube_str_t
kube_codec_str(kube_codec_t *c, kube_str_t s, size_t max)
{
    if (!c->reading) {
        if (s.len > max) {
            c->bad = true;
            return s;
        }

        (void) codec_byte(c, s.len);
        codec_put(c, s.data, s.len);

        return s;
    }

    s.len = (size_t) kube_codec_max(c, 0, max);
    s.data = (const char *) codec_take(c, s.len);

    return (s.data != NULL && s.len != 0) ? s : KUBE_STR_NULL;
}


void
kube_codec_bytes(kube_codec_t *c, void *bytes, size_t len)
{
    const unsigned char  *p;

    if (!c->reading) {
        codec_put(c, bytes, len);
        return;
    }

    p = codec_take(c, len);

    if (p != NULL) {
        memcpy(bytes, p, len);
    }
}


/* How many bytes a and b have in common at their beginning. */
static size_t
codec_shared(kube_str_t a, kube_str_t b)
{
    size_t    i, n;
    uint64_t  x, y;

    n = (a.len < b.len) ? a.len : b.len;

    for (i = 0; n - i >= 8; i += 8) {
        memcpy(&x, a.data + i, 8);
        memcpy(&y, b.data + i, 8);

        if (x != y) {
            break;
        }
    }

    while (i < n && a.data[i] == b.data[i]) {
        i++;
    }

    return i;
}


static void
codec_put_after(kube_codec_t *c, kube_str_t last, kube_str_t s)
{
    size_t  shared;

    if (s.len > KUBE_CODEC_STR_MAX) {
        c->bad = true;
        return;
    }

    shared = codec_shared(last, s);

    (void) codec_byte(c, shared);
    (void) codec_byte(c, s.len - shared);
    codec_put(c, s.data + shared, s.len - shared);
}


kube_str_t
kube_codec_after(kube_codec_t *c, kube_str_t last, kube_str_t s)
{
    char                 *joined;
    size_t                shared, rest;
    const unsigned char  *p;

    if (!c->reading) {
        codec_put_after(c, last, s);
        return s;
    }

    shared = (size_t) kube_codec_max(c, 0, last.len);
    rest = (size_t) codec_byte(c, 0);
    p = codec_take(c, rest);

    if (shared + rest == 0 || shared + rest > KUBE_CODEC_STR_MAX) {
        c->bad = true;
    }

    if (c->bad) {
        return KUBE_STR_NULL;
    }

    if (shared == 0 || c->arena == NULL) {
        return (kube_str_t) { (const char *) p, shared + rest };
    }

    joined = kube_codec_array(c, shared + rest, 1);

    if (joined == NULL) {
        return KUBE_STR_NULL;
    }

    memcpy(joined, last.data, shared);
    memcpy(joined + shared, p, rest);

    return (kube_str_t) { joined, shared + rest };
}


void *
kube_codec_array(kube_codec_t *c, size_t n, size_t size)
{
    void  *p;

    if (c->arena == NULL || n == 0 || c->bad || c->nomem) {
        return NULL;
    }

    p = kube_arena_alloc(c->arena, n * size);

    if (p == NULL) {
        c->nomem = true;
    }

    return p;
}

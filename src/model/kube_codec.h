/*
 * kube_codec - one cursor that writes values as bytes or reads them back.
 *
 * A format is written down once, as a function that passes each value
 * through the cursor and keeps what comes back:
 *
 *     port->port = (uint16_t) kube_codec_int(c, port->port, 2);
 *     port->name = kube_codec_str(c, port->name, KUBE_CODEC_STR_MAX);
 *
 * Writing, the value comes back as it was; reading, it is replaced.  The
 * cursor does not know what it writes: kube_record and kube_zone_scope do.
 * Integers are little-endian, counts seven bits a byte (two bytes at most),
 * strings stand behind their length in one byte.
 *
 * The cursor's functions are here, inline: a format that is passed through a
 * cursor of its own (a copy, put back at the end) is compiled for its one
 * direction, without a call for each value.
 *
 * Any bytes may be read.  A read beyond the end, a value above its maximum
 * and a string too long to write set bad, which stays; what is read
 * afterwards is 0 or empty.  No state but the cursor; any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CODEC_H
#define KUBE_CODEC_H


#include <string.h>

#include "kube_arena.h"


/* A call would have the cursor in memory. */
#define KUBE_CODEC_INLINE   __attribute__((always_inline))

/* Lengths of strings are one byte. */
#define KUBE_CODEC_STR_MAX  255

/*
 * Strings that are put together get room for some at once, in bytes: no more
 * than the longest one takes alone.
 */
#define KUBE_CODEC_TEXT     256

typedef struct {
    unsigned char        *to;         /* writing */
    size_t                cap;        /* bytes at to */
    size_t                size;       /* written so far, or would have been */
    const unsigned char  *from;       /* reading */
    const unsigned char  *end;
    kube_arena_t         *arena;      /* reading: NULL keeps no arrays */
    char                 *text;       /* of the arena, not used yet */
    size_t                text_n;     /* bytes at text */
    bool                  reading;
    bool                  bad;
    bool                  nomem;      /* the arena was full; bad may follow */
} kube_codec_t;

/*
 * Writes into *to what fits into cap bytes, and counts in size all that would
 * be written: if that is more, what is there is of no use.
 */
kube_codec_t kube_codec_writer(void *to, size_t cap);

/*
 * Reads len bytes.  Strings borrow from them; arrays, and strings that are
 * put together, are the arena's.  Without an arena everything is checked and
 * no array is kept.
 */
kube_codec_t kube_codec_reader(const void *from, size_t len,
    kube_arena_t *arena);

/* True if all bytes have been read, and all were good. */
bool kube_codec_is_done(const kube_codec_t *c);

/* How many bytes a and b have in common at their beginning. */
size_t kube_codec_shared(kube_str_t a, kube_str_t b);

/* The same at their end, if both have more than skip bytes before that. */
size_t kube_codec_shared_end(kube_str_t a, kube_str_t b, size_t skip);


/* Writes len bytes.  For this file. */
static inline KUBE_CODEC_INLINE void
kube_codec_put(kube_codec_t *c, const void *bytes, size_t len)
{
    if (c->size <= c->cap && len <= c->cap - c->size
        && bytes != NULL && len != 0)
    {
        kube_copy_few(c->to + c->size, bytes, len);
    }

    c->size += len;
}


/* Returns the next len bytes; NULL: there are not so many.  For this file. */
static inline KUBE_CODEC_INLINE const unsigned char *
kube_codec_take(kube_codec_t *c, size_t len)
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


/* Each passes a value: returns v, or what was read in its place. */

static inline KUBE_CODEC_INLINE uint64_t
kube_codec_byte(kube_codec_t *c, uint64_t v)
{
    if (!c->reading) {
        if (c->size < c->cap) {
            c->to[c->size] = (unsigned char) v;
        }

        c->size++;
        return v;
    }

    if (c->bad || c->from == NULL || c->from == c->end) {
        c->bad = true;
        return 0;
    }

    return *c->from++;
}


static inline KUBE_CODEC_INLINE uint64_t
kube_codec_int(kube_codec_t *c, uint64_t v, size_t bytes)
{
    size_t                i;
    unsigned char         little[8];
    const unsigned char  *p;

    if (!c->reading) {
        for (i = 0; i < bytes; i++) {
            little[i] = (unsigned char) (v >> (8 * i));
        }

        kube_codec_put(c, little, bytes);
        return v;
    }

    p = kube_codec_take(c, bytes);
    v = 0;

    for (i = 0; p != NULL && i < bytes; i++) {
        v |= (uint64_t) p[i] << (8 * i);
    }

    return v;
}


/* One byte, at most max. */
static inline KUBE_CODEC_INLINE uint64_t
kube_codec_max(kube_codec_t *c, uint64_t v, uint64_t max)
{
    v = kube_codec_byte(c, v);

    if (v > max) {
        c->bad = true;
        return 0;
    }

    return v;
}


static inline KUBE_CODEC_INLINE size_t
kube_codec_count(kube_codec_t *c, size_t v, size_t max)
{
    uint64_t  low;

    low = kube_codec_byte(c, (v > 0x7f) ? (v & 0x7f) | 0x80 : v);

    if (low & 0x80) {
        v = (size_t) ((low & 0x7f) | kube_codec_byte(c, v >> 7) << 7);

    } else {
        v = (size_t) low;
    }

    if (v > max) {
        c->bad = true;
    }

    return c->bad ? 0 : v;
}


static inline KUBE_CODEC_INLINE kube_str_t
kube_codec_str(kube_codec_t *c, kube_str_t s, size_t max)
{
    if (!c->reading) {
        if (s.len > max) {
            c->bad = true;
            return s;
        }

        (void) kube_codec_byte(c, s.len);
        kube_codec_put(c, s.data, s.len);

        return s;
    }

    /* length and bytes at once: identities are nothing but strings */

    if (c->bad || c->from == NULL || c->from == c->end
        || *c->from > max
        || *c->from > (size_t) (c->end - c->from) - 1)
    {
        c->bad = true;
        return KUBE_STR_NULL;
    }

    s.len = *c->from++;
    s.data = (const char *) c->from;
    c->from += s.len;

    return (s.len != 0) ? s : KUBE_STR_NULL;
}


/* As kube_codec_str(), of a string that may be longer. */
static inline KUBE_CODEC_INLINE kube_str_t
kube_codec_long_str(kube_codec_t *c, kube_str_t s, size_t max)
{
    s.len = kube_codec_count(c, s.len, max);

    if (!c->reading) {
        kube_codec_put(c, s.data, s.len);
        return s;
    }

    s.data = (const char *) kube_codec_take(c, s.len);

    return (s.data != NULL && s.len != 0) ? s : KUBE_STR_NULL;
}


/* len bytes at bytes, written or replaced. */
static inline KUBE_CODEC_INLINE void
kube_codec_bytes(kube_codec_t *c, void *bytes, size_t len)
{
    const unsigned char  *p;

    if (!c->reading) {
        kube_codec_put(c, bytes, len);
        return;
    }

    p = kube_codec_take(c, len);

    if (p != NULL) {
        memcpy(bytes, p, len);
    }
}


/* Reading: n elements of size bytes in the arena; NULL: not to be kept. */
static inline KUBE_CODEC_INLINE void *
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


/* Room for len bytes, as kube_codec_array(), not aligned.  For this file. */
static inline KUBE_CODEC_INLINE char *
kube_codec_text(kube_codec_t *c, size_t len)
{
    char  *p;

    if (c->text_n < len) {
        c->text = (char *) kube_codec_array(c, KUBE_CODEC_TEXT, 1);
        c->text_n = (c->text != NULL) ? KUBE_CODEC_TEXT : 0;
    }

    p = c->text;

    if (p != NULL) {
        c->text += len;
        c->text_n -= len;
    }

    return p;
}


/* Puts len bytes, or none, at p; returns what is behind.  For this file. */
static inline KUBE_CODEC_INLINE char *
kube_codec_append(char *p, const void *bytes, size_t len)
{
    if (len != 0) {
        kube_copy_few(p, bytes, len);
    }

    return p + len;
}


/* As kube_codec_name(), reading.  For this file. */
static inline KUBE_CODEC_INLINE kube_str_t
kube_codec_take_name(kube_codec_t *c, kube_str_t last, bool ends)
{
    char                 *joined, *to;
    size_t                left, lengths, shared, end, rest;
    const unsigned char  *p;

    /* all lengths at once: most of what is read of endpoints are names */

    lengths = ends ? 3 : 2;
    left = (size_t) (c->end - c->from);

    if (c->bad || left < lengths) {
        c->bad = true;
        return KUBE_STR_NULL;
    }

    shared = c->from[0];
    end = ends ? c->from[1] : 0;
    rest = c->from[lengths - 1];
    p = c->from + lengths;

    if (shared + end > last.len
        || rest > left - lengths
        || shared + rest + end == 0
        || shared + rest + end > KUBE_CODEC_STR_MAX)
    {
        c->bad = true;
        return KUBE_STR_NULL;
    }

    c->from = p + rest;

    if (shared + end == 0 || c->arena == NULL) {
        return (kube_str_t) { (const char *) p, shared + rest + end };
    }

    joined = kube_codec_text(c, shared + rest + end);

    if (joined == NULL) {
        return KUBE_STR_NULL;
    }

    to = kube_codec_append(joined, last.data, shared);
    to = kube_codec_append(to, p, rest);
    (void) kube_codec_append(to, last.data + last.len - end, end);

    return (kube_str_t) { joined, shared + rest + end };
}


/*
 * A string, not empty, as what it shares with last at its beginning, at its
 * end if ends says so, and the rest between.  For this file.
 */
static inline KUBE_CODEC_INLINE kube_str_t
kube_codec_name(kube_codec_t *c, kube_str_t last, kube_str_t s, bool ends)
{
    size_t  shared, end, rest;

    if (c->reading) {
        return kube_codec_take_name(c, last, ends);
    }

    if (s.len > KUBE_CODEC_STR_MAX) {
        c->bad = true;
        return s;
    }

    /* never more than there are, which a compiler does not see */

    shared = kube_codec_shared(last, s);
    end = ends ? kube_codec_shared_end(last, s, shared) : 0;
    rest = (shared + end < s.len) ? s.len - shared - end : 0;

    (void) kube_codec_byte(c, shared);

    if (ends) {
        (void) kube_codec_byte(c, end);
    }

    (void) kube_codec_byte(c, rest);
    kube_codec_put(c, s.data + shared, rest);

    return s;
}


/* A string, not empty, as what it shares with last and the rest. */
static inline KUBE_CODEC_INLINE kube_str_t
kube_codec_after(kube_codec_t *c, kube_str_t last, kube_str_t s)
{
    return kube_codec_name(c, last, s, false);
}


/* The same of names that end alike, too, as those of hosts. */
static inline KUBE_CODEC_INLINE kube_str_t
kube_codec_between(kube_codec_t *c, kube_str_t last, kube_str_t s)
{
    return kube_codec_name(c, last, s, true);
}


#endif /* KUBE_CODEC_H */

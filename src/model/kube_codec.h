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
 * Any bytes may be read.  A read beyond the end, a value above its maximum
 * and a string too long to write set bad, which stays; what is read
 * afterwards is 0 or empty.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CODEC_H
#define KUBE_CODEC_H


#include "kube_arena.h"


/* Lengths of strings are one byte. */
#define KUBE_CODEC_STR_MAX  255

typedef struct {
    unsigned char        *to;         /* writing; NULL: counts alone */
    size_t                size;       /* written so far */
    const unsigned char  *from;       /* reading */
    const unsigned char  *end;
    kube_arena_t         *arena;      /* reading: NULL keeps no arrays */
    bool                  reading;
    bool                  bad;
    bool                  nomem;      /* the arena was full; bad may follow */
} kube_codec_t;

/* Writes to to; with NULL it counts in size what would be written. */
kube_codec_t kube_codec_writer(void *to);

/*
 * Reads len bytes.  Strings borrow from them; arrays, and strings that are
 * put together, are the arena's.  Without an arena everything is checked and
 * no array is kept.
 */
kube_codec_t kube_codec_reader(const void *from, size_t len,
    kube_arena_t *arena);

/* True if all bytes have been read, and all were good. */
bool kube_codec_is_done(const kube_codec_t *c);

/* Each passes a value: returns v, or what was read in its place. */
uint64_t kube_codec_int(kube_codec_t *c, uint64_t v, size_t bytes);

/* One byte, at most max. */
uint64_t kube_codec_max(kube_codec_t *c, uint64_t v, uint64_t max);
size_t kube_codec_count(kube_codec_t *c, size_t v, size_t max);
kube_str_t kube_codec_str(kube_codec_t *c, kube_str_t s, size_t max);

/* len bytes at bytes, written or replaced. */
void kube_codec_bytes(kube_codec_t *c, void *bytes, size_t len);

/* A string, not empty, as what it shares with last and the rest. */
kube_str_t kube_codec_after(kube_codec_t *c, kube_str_t last, kube_str_t s);

/* Reading: n elements of size bytes in the arena; NULL: not to be kept. */
void *kube_codec_array(kube_codec_t *c, size_t n, size_t size);


#endif /* KUBE_CODEC_H */

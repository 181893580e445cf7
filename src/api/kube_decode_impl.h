/*
 * kube_decode_impl - what kube_decode.c gives to the projections, the
 * kube_decode_<name>.c that KUBE_RESOURCE_MAP names: the state of one
 * decoding, and readers of values that many of them use.
 *
 * Not the contract: that is kube_decode.h.  For src/api/kube_decode*.c only.
 *
 * A reader takes one value, whatever it is.  Where a value is of another type
 * than the API's, or a text or number may not stand where it stands, the
 * reader says so and its caller decides what that costs: d->dropped counts
 * what is left out, kube_lexer_fail() refuses the whole object.  null is no
 * value: as for Go it leaves a text or struct as it was, and makes a list, a
 * map and what Go has a pointer for absent.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_IMPL_H
#define KUBE_DECODE_IMPL_H


#include <string.h>

#include "kube_decode.h"
#include "kube_protobuf.h"
#include "kube_simd.h"


/*
 * stream: the text is that of a stream, whose envelope kube_decode_scan has
 * read.  Then a member of it that comes again is a surprise, and so is every
 * fault.
 */
typedef struct {
    kube_lexer_t      lx;
    kube_arena_t     *arena;
    uint32_t          dropped;   /* parts that were left out */
    bool              nomem;
    bool              stream;
    bool              inside;    /* the walk begins inside of metadata */
    kube_surprise_t   surprise;  /* the first one */
} kube_decode_t;


/* What kube_decode.c is made of, for kube_decode_scan.c. */

void kube_decode_begin(kube_decode_t *d, kube_arena_t *arena,
    kube_str_t text);

/* An object without content. */
void kube_decode_reset(kube_object_t *object, kube_resource_t resource,
    const kube_meta_t *meta);

/* Runs the projection of the object's resource. */
void kube_decode_project(kube_decode_t *d, kube_object_t *object);

/* Fills *meta with the texts that are good; NULL, or what is wrong. */
const char *kube_decode_meta(kube_resource_t resource,
    const kube_envelope_t *envelope, kube_meta_t *meta);

kube_watch_type_t kube_decode_watch_type(kube_str_t text);


/*
 * Text that is compared with what is expected.  roomy: its end is so far away
 * that it need not be looked for, as a caller knows who takes few texts, each
 * of them KUBE_EXPECT_ROOM at most.  Where this is a constant, it costs
 * nothing.
 */
typedef struct {
    const char  *p;
    const char  *end;
    bool         roomy;
} kube_expect_t;

#define KUBE_EXPECT_ROOM    (7 * KUBE_SIMD_TEXT)

/* So that roomy is a constant in what they call, too. */
#define KUBE_EXPECT_INLINE  static inline __attribute__((always_inline))


/* Takes the text if it stands here. */
KUBE_EXPECT_INLINE bool
kube_expect(kube_expect_t *x, const char *text, size_t len)
{
    if ((!x->roomy && (size_t) (x->end - x->p) < len)
        || memcmp(x->p, text, len) != 0)
    {
        return false;
    }

    x->p += len;

    return true;
}


/* Texts up to 28 bytes are compared by words, others by a call. */
#define KUBE_EXPECT(x, literal)                                               \
    kube_expect(x, literal, sizeof(literal) - 1)


/* Are there 16 bytes at p, of a text that begins at x->p? */
KUBE_EXPECT_INLINE bool
kube_expect_more(const kube_expect_t *x, const char *p)
{
    return x->roomy ? p - x->p < KUBE_EXPECT_ROOM
                    : x->end - p >= KUBE_SIMD_TEXT;
}


/*
 * Takes 1..max bytes of visible ASCII up to a quote, which stays; false where
 * anything else stands there, or the text ends soon.
 */
KUBE_EXPECT_INLINE bool
kube_expect_text(kube_expect_t *x, size_t max, kube_str_t *s)
{
    uint32_t     odd;
    const char  *p;

    for (p = x->p; kube_expect_more(x, p); p += KUBE_SIMD_TEXT) {
        odd = kube_simd_odd(p);

        if (odd == 0) {
            continue;
        }

        p += __builtin_ctz(odd);
        *s = (kube_str_t) { x->p, (size_t) (p - x->p) };
        x->p = p;

        return *p == '"' && s->len != 0 && s->len <= max;
    }

    return false;
}


/*
 * Passes over text without escapes, up to a quote, which stays; false where it
 * has one, or the text ends soon.
 */
KUBE_EXPECT_INLINE bool
kube_expect_unused(kube_expect_t *x)
{
    uint32_t     found;
    const char  *p;

    for (p = x->p; kube_expect_more(x, p); p += KUBE_SIMD_TEXT) {
        found = kube_simd_quote(p, 0);

        if (found != 0) {
            x->p = p + __builtin_ctz(found);
            return *x->p == '"';
        }
    }

    return false;
}


/* Takes a number of 1..max, as Go writes it; max is below 100000. */
static inline bool
kube_expect_number(kube_expect_t *x, unsigned max, unsigned *value)
{
    unsigned     v, digit;
    const char  *p;

    v = 0;

    for (p = x->p; p < x->end; p++) {
        digit = (unsigned) (unsigned char) *p - '0';

        if (digit > 9) {
            break;
        }

        v = v * 10 + digit;

        if (v == 0 || v > max) {
            return false;
        }
    }

    *value = v;
    x->p = p;

    return v != 0;
}


/*
 * A projection: reads the members of the object that was entered, up to its
 * end, into *object, whose resource and metadata are filled and the rest is
 * zero.  d->inside: it begins with kube_decode_metadata().
 */
#define XX(name, text, path, version, kind, shape, named, decode)             \
    void kube_decode_##decode(kube_decode_t *d, kube_object_t *object);
KUBE_RESOURCE_MAP(XX)
#undef XX

/*
 * The same of an object in Protocol Buffers, whose message *m begins.  What a
 * value means, and what a bad one costs, is one and the same code for both.
 */
#define XX(name, text, path, version, kind, shape, named, decode)             \
    void kube_decode_##decode##_message(kube_decode_t *d, kube_protobuf_t *m, \
        kube_object_t *object);
KUBE_RESOURCE_MAP(XX)
#undef XX


/* 1..max bytes of visible ASCII, no spaces. */
bool kube_decode_is_printable(kube_str_t s, size_t max);

/*
 * The three readers below: KUBE_OK, KUBE_NOT_FOUND for null, KUBE_INVALID for
 * a value that cannot be used.
 */

/* Enters the object or array; it is taken where it is neither. */
kube_rc_t kube_decode_enter(kube_decode_t *d, char open)  KUBE_MUST_CHECK;

/* *s borrows from the text or the arena; unchanged unless KUBE_OK. */
kube_rc_t kube_decode_text(kube_decode_t *d, kube_str_t *s)  KUBE_MUST_CHECK;

/* An integer of low..high, as Go writes them. */
kube_rc_t kube_decode_integer(kube_decode_t *d, uint64_t low, uint64_t high,
    uint64_t *value)  KUBE_MUST_CHECK;

/* The text if it can be shown as it is; what cannot is counted, and empty. */
kube_str_t kube_decode_showable(kube_decode_t *d, kube_str_t text);

/*
 * Reads a text that is only shown, which is a pointer in Go.  What cannot be
 * shown as it is, or is longer than KUBE_STRING_LEN_MAX, is counted, and the
 * empty text stands for it.
 */
void kube_decode_shown(kube_decode_t *d, kube_str_t *s);

/* The member name of the object; apiVersion is checked, all else skipped. */
void kube_decode_other(kube_decode_t *d, kube_str_t name,
    kube_resource_t resource);


/* Up to one label and one annotation of metadata; keys may be empty. */
typedef struct {
    kube_str_t       label_key;
    kube_str_t       label;
    kube_str_t       annotation_key;
    kube_str_t       annotation;
    kube_partial_t  *partial;    /* gets all labels, and the time of deletion;
                                    else NULL */
} kube_decode_metadata_t;

/* Ends the walk: what is expected of a stream is not what stands there. */
void kube_decode_surprise(kube_decode_t *d, kube_surprise_t surprise);

/* A value that is no text is read as the empty one. */
void kube_decode_metadata(kube_decode_t *d, kube_decode_metadata_t *m);


/* An endpoint's targetRef; only a Pod's name is used. */
typedef struct {
    kube_str_t  kind;
    kube_str_t  name;
    bool        bad;
} kube_decode_target_t;

/* pod: of an endpoint that is merged; else empty. */
void kube_decode_target_begin(kube_decode_target_t *target, kube_str_t pod);
void kube_decode_target(kube_decode_t *d, kube_decode_target_t *target);

/* The name of the Pod, or the empty text; what is bad is counted. */
kube_str_t kube_decode_target_pod(kube_decode_t *d,
    const kube_decode_target_t *target);


/* An array that grows in the arena. */
typedef struct {
    void    *p;
    size_t   cap;
    size_t   n;
    size_t   made;     /* elements that were used since it was empty */
} kube_decode_array_t;

/*
 * Enters the array.  An array given before begins anew, and its elements are
 * merged with those that come: Go decodes into them again.  False for null,
 * which empties it, and for another type, which refuses the object with what.
 */
bool kube_decode_array(kube_decode_t *d, kube_decode_array_t *array,
    const char *what);

/* Makes room for another element of size bytes; false: as below. */
bool kube_decode_grow(kube_decode_t *d, kube_decode_array_t *array,
    size_t size, size_t max, const char *what);


/*
 * Another element of size bytes, of which nothing is set.  NULL where memory is
 * short or there are max of them: then the object is refused with what.
 */
static inline void *
kube_decode_more(kube_decode_t *d, kube_decode_array_t *array, size_t size,
    size_t max, const char *what)
{
    if (array->n == array->cap
        && !kube_decode_grow(d, array, size, max, what))
    {
        return NULL;
    }

    return (char *) array->p + array->n++ * size;
}


/*
 * The next element, of size bytes, with d->lx before its value; *fresh: it is
 * zeroed, else it is merged.  NULL at the end of the array, and where memory
 * is short or there are more than max: then the object is refused with what.
 */
void *kube_decode_next(kube_decode_t *d, kube_decode_array_t *array,
    size_t size, size_t max, const char *what, bool *fresh);

/*
 * The value of "ports".  pointers: the members are pointers in Go, so that
 * null makes them absent.
 */
void kube_decode_ports(kube_decode_t *d, kube_decode_array_t *array,
    size_t max, bool pointers);

/*
 * What is left of the ports without the bad ones, which are counted; without
 * a number: those are bad, too, where it is required.
 */
void kube_decode_ports_end(kube_decode_t *d, const kube_decode_array_t *array,
    bool number_required, kube_port_t **ports, size_t *ports_n);


/*
 * What the projections of messages share: kube_decode_message.c.  A field of
 * another wire type than Go's, and a message that cannot be walked, refuse the
 * object: so they do in Go, and no server writes them.
 */

/* The next field; false at the message's end, or if the object is refused. */
static inline bool
kube_decode_field(kube_decode_t *d, kube_protobuf_t *m,
    kube_protobuf_field_t *f)
{
    if (d->lx.what == NULL && kube_protobuf_next(m, f)) {
        return true;
    }

    if (m->what != NULL) {
        kube_lexer_fail(&d->lx, m->what);
    }

    return false;
}


/* The same as kube_decode_metadata(), with f being the field "metadata". */
void kube_decode_message_metadata(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_decode_metadata_t *meta);

/* A text that is only shown. */
void kube_decode_message_shown(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_str_t *s);

/* The value of "targetRef". */
void kube_decode_message_target(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, kube_decode_target_t *target);

/* The fields of a port have other numbers in each kind of object. */
typedef struct {
    int32_t  name;
    int32_t  protocol;
    int32_t  port;
    int32_t  app_protocol;
} kube_decode_port_numbers_t;

/* One of "ports". */
void kube_decode_message_port(kube_decode_t *d, kube_protobuf_t *m,
    const kube_protobuf_field_t *f, const kube_decode_port_numbers_t *numbers,
    kube_decode_array_t *array, size_t max, bool pointers);

/* False: the text is no protocol. */
bool kube_decode_protocol(kube_str_t text, bool pointers,
    kube_protocol_t *protocol);

/* Notes that the port is bad, for kube_decode_ports_end(). */
void kube_decode_port_is_bad(kube_port_t *port);


#endif /* KUBE_DECODE_IMPL_H */

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


#include "kube_arena.h"
#include "kube_lexer.h"
#include "kube_object.h"


typedef struct {
    kube_lexer_t   lx;
    kube_arena_t  *arena;
    uint32_t       dropped;   /* parts that were left out */
    bool           nomem;
} kube_decode_t;

/*
 * A projection: reads the object that d->lx stands before into *object, whose
 * resource and metadata are filled and the rest is zero.
 */
#define XX(name, text, path, version, kind, shape, named, decode)             \
    void kube_decode_##decode(kube_decode_t *d, kube_object_t *object);
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

/*
 * A text that is only shown.  What cannot be shown as it is, or is longer
 * than KUBE_STRING_LEN_MAX, is counted, and the empty text stands for it.
 */
kube_str_t kube_decode_showable(kube_decode_t *d, kube_str_t text);

/* Reads such a text, which is a pointer in Go. */
void kube_decode_shown(kube_decode_t *d, kube_str_t *s);

/* The member name of the object; apiVersion is checked, all else skipped. */
void kube_decode_other(kube_decode_t *d, kube_str_t name,
    kube_resource_t resource);


/* Up to one label and one annotation of metadata; keys may be empty. */
typedef struct {
    kube_str_t  label_key;
    kube_str_t  label;
    kube_str_t  annotation_key;
    kube_str_t  annotation;
} kube_decode_metadata_t;

/* A value that is no text is read as the empty one. */
void kube_decode_metadata(kube_decode_t *d, kube_decode_metadata_t *m);


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


#endif /* KUBE_DECODE_IMPL_H */

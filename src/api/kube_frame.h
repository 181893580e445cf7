/*
 * kube_frame - cuts list items and watch events out of a byte stream as it
 * arrives, and reads their envelopes on the way.
 *
 * It is the lexer at the outermost levels: it knows the members of a list and
 * those of an envelope (kube_envelope), and passes over all else by structure
 * alone.  It decodes nothing (kube_decode does) and holds one item at most.
 * Memory is O(largest item); each byte is looked at once and copied at most
 * twice.  Not thread-safe; the caller owns the struct.
 *
 * A list is {"kind":..,"metadata":{..},"items":[{..},..]} in any member
 * order; other members are skipped, "items":null is an empty list, and no
 * "items" or two of them is no list.  A watch stream is a sequence of JSON
 * objects, each ended by a newline as the API server writes it; framing goes
 * by brackets, so that chunk boundaries, CR LF and empty lines do not matter.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_FRAME_H
#define KUBE_FRAME_H


#include "kube_envelope.h"


typedef enum {
    KUBE_FRAME_LIST = 0,
    KUBE_FRAME_WATCH
} kube_frame_mode_t;

typedef enum {
    KUBE_FRAME_ITEM = 0,    /* list: an element of items; watch: an event */
    KUBE_FRAME_KIND,        /* list: the value of "kind", quotes included */
    KUBE_FRAME_METADATA,    /* list: the value of "metadata" */
    KUBE_FRAME_SKIPPED,     /* an item above the limit: bytes are empty */
    KUBE_FRAME_END          /* list: the closing bracket was seen */
} kube_frame_kind_t;

/* bytes and envelope are valid until the next call. */
typedef struct {
    kube_frame_kind_t  kind;
    kube_str_t         bytes;
    size_t             size_bytes;   /* of the whole item */
    kube_envelope_t    envelope;     /* of ITEM and SKIPPED */
} kube_frame_item_t;

typedef struct kube_frame_s  kube_frame_t;


/* The nearest value of KUBE_OBJECT_BYTES_MIN..MAX. */
static inline size_t
kube_frame_item_bytes(size_t size)
{
    return (size < KUBE_OBJECT_BYTES_MIN)
           ? KUBE_OBJECT_BYTES_MIN
           : (size > KUBE_OBJECT_BYTES_MAX) ? KUBE_OBJECT_BYTES_MAX : size;
}


/*
 * item_bytes_max bounds one item, as by kube_frame_item_bytes().  *alloc is
 * copied.  NULL when out of memory.  destroy accepts NULL.
 */
kube_frame_t *kube_frame_create(const kube_alloc_t *alloc,
    kube_frame_mode_t mode, size_t item_bytes_max)  KUBE_MUST_CHECK;
void kube_frame_destroy(kube_frame_t *frame);

/*
 * Takes bytes from *in (advancing it) up to the end of the next item.
 *
 *   KUBE_OK      *item is filled; call again with the rest of *in
 *   KUBE_AGAIN   *in is used up
 *   KUBE_NOMEM   *in and the state are as before: call again later
 *   KUBE_PROTO   not a list (or a stream of objects), or brackets that do
 *                not match; the stream is lost
 */
kube_rc_t kube_frame_next(kube_frame_t *frame, kube_str_t *in,
    kube_frame_item_t *item)  KUBE_MUST_CHECK;

/* After KUBE_PROTO: true if that is JSON, but of something else than a list. */
bool kube_frame_other(const kube_frame_t *frame);

/*
 * True where an item or event begins: its '{' is the first byte of *in, and
 * what stands before it was taken.  False, with nothing taken, where anything
 * else is next.
 */
bool kube_frame_at_item(kube_frame_t *frame, kube_str_t *in);

/*
 * After kube_frame_at_item(): its reader has found the item to have len bytes,
 * which are taken.  False, with nothing taken, where that is above the limit.
 */
bool kube_frame_take(kube_frame_t *frame, kube_str_t *in, size_t len);

/* True inside a started object: an end of input now is a truncation. */
bool kube_frame_partial(const kube_frame_t *frame);


#endif /* KUBE_FRAME_H */

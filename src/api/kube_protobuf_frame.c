/*
 * kube_protobuf_frame - cuts list items and watch events out of a stream of
 * Protocol Buffers.
 *
 * Tags and lengths are taken byte by byte, what they announce in one piece.
 * Every byte of a list counts against the length of raw, so that nothing in it
 * goes beyond its end.  Invariants as in kube_frame.c: a call takes at least
 * one byte, returns an item, or leaves the state as it was (NOMEM); a value
 * that lies whole in one piece of input is handed out in place.
 *
 *   watch   LENGTH -> VALUE(event) -> LENGTH
 *
 *   list    MAGIC -> TAG
 *           TAG -> NUMBER (a varint, or the length of what follows)
 *               -> SKIP (fixed), or TAG (groups)
 *           NUMBER -> VALUE (typeMeta, metadata, an item), SKIP (unknown)
 *               -> TAG: of raw, whose fields then follow
 *           VALUE, SKIP -> TAG
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_protobuf.h"
#include "kube_protobuf_frame.h"


#define FRAME_CARRY_MIN   (4u << 10)

/* A carry buffer that one huge item left is given back above this. */
#define FRAME_CARRY_KEEP  (256u << 10)


typedef enum {
    FRAME_LENGTH = 0,
    FRAME_MAGIC,
    FRAME_TAG,
    FRAME_NUMBER,
    FRAME_VALUE,
    FRAME_SKIP,
    FRAME_LOST
} frame_state_t;

/* What a value is. */
typedef enum {
    FRAME_IS_UNKNOWN = 0,
    FRAME_IS_TYPE_META,
    FRAME_IS_RAW,
    FRAME_IS_METADATA,
    FRAME_IS_ITEM
} frame_value_t;

/* The state that a call may change and KUBE_NOMEM restores. */
typedef struct {
    frame_state_t   state;
    frame_value_t   value;
    kube_wire_t     wire;          /* of the field in hand */
    uint64_t        number;        /* that is being read */
    unsigned        digits;        /* bytes of it so far */
    uint64_t        left;          /* bytes of VALUE or SKIP to come */
    uint64_t        groups;        /* open ones, which are passed over */
    bool            in_raw;
    bool            raw_seen;
    uint64_t        raw_left;
    size_t          size_bytes;    /* of the value, whole */
    size_t          carry_len;
} frame_cursor_t;

struct kube_protobuf_frame_s {
    kube_alloc_t     alloc;
    bool             watch;
    size_t           item_bytes_max;
    frame_cursor_t   c;
    void            *carry;
    size_t           carry_cap;
};


kube_protobuf_frame_t *
kube_protobuf_frame_create(const kube_alloc_t *alloc, kube_frame_mode_t mode,
    size_t item_bytes_max)
{
    kube_protobuf_frame_t  *frame;

    frame = kube_zalloc(alloc, sizeof(kube_protobuf_frame_t));
    if (frame == NULL) {
        return NULL;
    }

    frame->alloc = *alloc;
    frame->item_bytes_max = kube_frame_item_bytes(item_bytes_max);
    frame->watch = (mode == KUBE_FRAME_WATCH);
    frame->c.state = frame->watch ? FRAME_LENGTH : FRAME_MAGIC;

    return frame;
}


void
kube_protobuf_frame_destroy(kube_protobuf_frame_t *frame)
{
    kube_alloc_t  alloc;

    if (frame == NULL) {
        return;
    }

    alloc = frame->alloc;

    kube_free(&alloc, frame->carry);
    kube_free(&alloc, frame);
}


bool
kube_protobuf_frame_end(const kube_protobuf_frame_t *frame)
{
    const frame_cursor_t  *c;

    c = &frame->c;

    return c->raw_seen && c->state != FRAME_LOST
           && (!c->in_raw || (c->raw_left == 0 && c->state == FRAME_TAG
                              && c->digits == 0 && c->groups == 0));
}


bool
kube_protobuf_frame_partial(const kube_protobuf_frame_t *frame)
{
    const frame_cursor_t  *c;

    c = &frame->c;

    if (c->state == FRAME_LOST) {
        return false;
    }

    if (c->state == FRAME_LENGTH || c->state == FRAME_MAGIC) {
        return c->digits != 0;
    }

    return frame->watch || !kube_protobuf_frame_end(frame);
}


static void
frame_take(frame_cursor_t *c, kube_str_t *in, size_t n)
{
    in->data += n;
    in->len -= n;

    if (c->in_raw) {
        c->raw_left -= n;
    }
}


/* Begins to read a field, or in a watch an event. */
static void
frame_field(kube_protobuf_frame_t *frame)
{
    frame->c.state = frame->watch ? FRAME_LENGTH : FRAME_TAG;
    frame->c.number = 0;
    frame->c.digits = 0;
}


/* Hands out a value; only of an item the bytes may be those of its head. */
static kube_rc_t
frame_emit(kube_protobuf_frame_t *frame, kube_frame_item_t *item,
    kube_str_t bytes)
{
    bool                      cut;
    frame_cursor_t           *c;
    kube_protobuf_unknown_t   unknown;

    c = &frame->c;
    cut = (c->size_bytes > bytes.len);

    item->bytes = cut ? KUBE_STR_NULL : bytes;
    item->size_bytes = c->size_bytes;

    frame_field(frame);

    switch (c->value) {

    case FRAME_IS_TYPE_META:
        memset(&unknown, 0, sizeof(kube_protobuf_unknown_t));

        if (kube_protobuf_type_meta(bytes, &unknown) != NULL) {
            return KUBE_PROTO;
        }

        item->kind = KUBE_FRAME_KIND;
        item->bytes = unknown.kind;
        return KUBE_OK;

    case FRAME_IS_METADATA:
        item->kind = KUBE_FRAME_METADATA;
        return KUBE_OK;

    default:
        item->kind = cut ? KUBE_FRAME_SKIPPED : KUBE_FRAME_ITEM;
        kube_protobuf_envelope(bytes, frame->watch, cut, &item->envelope);
        return KUBE_OK;
    }
}


/* A length is known: what follows is a value, or raw and its fields. */
static kube_rc_t
frame_begin(kube_protobuf_frame_t *frame, kube_str_t *in,
    kube_frame_item_t *item)
{
    uint64_t         max;
    frame_cursor_t  *c;

    c = &frame->c;

    if (c->in_raw && c->number > c->raw_left) {
        return KUBE_PROTO;
    }

    if (c->value == FRAME_IS_RAW) {

        if (c->raw_seen || c->number > INT64_MAX) {
            return KUBE_PROTO;
        }

        c->raw_seen = true;
        c->in_raw = true;
        c->raw_left = c->number;
        frame_field(frame);

        return KUBE_AGAIN;
    }

    c->left = c->number;

    if (c->value == FRAME_IS_UNKNOWN) {

        if (c->left > INT64_MAX) {
            return KUBE_PROTO;
        }

        c->state = FRAME_SKIP;

        if (c->left == 0) {
            frame_field(frame);
        }

        return KUBE_AGAIN;
    }

    max = (c->value == FRAME_IS_ITEM) ? KUBE_PROTOBUF_LENGTH_MAX
                                      : KUBE_LIST_META_BYTES_MAX;

    if (c->left > max) {
        return KUBE_PROTO;
    }

    c->state = FRAME_VALUE;
    c->size_bytes = (size_t) c->left;

    return (c->left != 0) ? KUBE_AGAIN
                          : frame_emit(frame, item,
                                       (kube_str_t) { in->data, 0 });
}


/* Takes the four bytes before an event. */
static kube_rc_t
frame_on_length(kube_protobuf_frame_t *frame, kube_str_t *in,
    kube_frame_item_t *item)
{
    frame_cursor_t  *c;

    c = &frame->c;

    c->number = c->number << 8 | (uint8_t) *in->data;
    c->digits++;
    frame_take(c, in, 1);

    if (c->digits < 4) {
        return KUBE_AGAIN;
    }

    c->value = FRAME_IS_ITEM;

    return frame_begin(frame, in, item);
}


static kube_rc_t
frame_on_magic(kube_protobuf_frame_t *frame, kube_str_t *in)
{
    frame_cursor_t  *c;

    c = &frame->c;

    if (*in->data != KUBE_PROTOBUF_MAGIC[c->digits]) {
        return KUBE_PROTO;
    }

    c->digits++;
    frame_take(c, in, 1);

    if (c->digits == KUBE_PROTOBUF_MAGIC_LEN) {
        frame_field(frame);
    }

    return KUBE_AGAIN;
}


/* Takes a byte of a varint; KUBE_OK: it was the last one. */
static kube_rc_t
frame_digit(frame_cursor_t *c, kube_str_t *in)
{
    uint8_t  byte;

    byte = (uint8_t) *in->data;

    c->number |= (uint64_t) (byte & 0x7f) << (7 * c->digits);
    c->digits++;
    frame_take(c, in, 1);

    return (byte < 0x80) ? KUBE_OK
           : (c->digits < KUBE_VARINT_MAX) ? KUBE_AGAIN : KUBE_PROTO;
}


/* What the field of that number is, at the level of Unknown or of a list. */
static frame_value_t
frame_value(const frame_cursor_t *c, int32_t number)
{
    if (c->wire != KUBE_WIRE_BYTES || c->groups != 0) {
        return FRAME_IS_UNKNOWN;
    }

    switch (number) {

    case 1:
        return c->in_raw ? FRAME_IS_METADATA : FRAME_IS_TYPE_META;

    case 2:
        return c->in_raw ? FRAME_IS_ITEM : FRAME_IS_RAW;

    default:
        return FRAME_IS_UNKNOWN;
    }
}


static kube_rc_t
frame_on_tag(kube_protobuf_frame_t *frame, kube_str_t *in)
{
    int32_t          number;
    kube_rc_t        rc;
    frame_cursor_t  *c;

    c = &frame->c;
    rc = frame_digit(c, in);

    if (rc != KUBE_OK) {
        return rc;
    }

    number = (int32_t) (uint32_t) (c->number >> 3);
    c->wire = (kube_wire_t) (c->number & 7);
    c->value = frame_value(c, number);

    /* as Go, which looks at numbers outside of groups alone */
    if (number <= 0 && c->groups == 0) {
        return KUBE_PROTO;
    }

    /* known fields of another wire type are no list of Kubernetes */
    if (c->groups == 0 && (number == 1 || number == 2)
        && c->wire != KUBE_WIRE_BYTES)
    {
        return KUBE_PROTO;
    }

    frame_field(frame);

    switch (c->wire) {

    case KUBE_WIRE_VARINT:
    case KUBE_WIRE_BYTES:
        c->state = FRAME_NUMBER;
        return KUBE_AGAIN;

    case KUBE_WIRE_FIXED64:
    case KUBE_WIRE_FIXED32:
        c->left = (c->wire == KUBE_WIRE_FIXED64) ? 8 : 4;
        c->state = FRAME_SKIP;

        return (c->in_raw && c->left > c->raw_left) ? KUBE_PROTO : KUBE_AGAIN;

    case KUBE_WIRE_GROUP:
        c->groups++;
        return KUBE_AGAIN;

    case KUBE_WIRE_GROUP_END:

        if (c->groups == 0) {
            return KUBE_PROTO;
        }

        c->groups--;
        return KUBE_AGAIN;

    default:
        return KUBE_PROTO;
    }
}


static kube_rc_t
frame_on_number(kube_protobuf_frame_t *frame, kube_str_t *in,
    kube_frame_item_t *item)
{
    kube_rc_t        rc;
    frame_cursor_t  *c;

    c = &frame->c;
    rc = frame_digit(c, in);

    if (rc != KUBE_OK) {
        return rc;
    }

    if (c->wire == KUBE_WIRE_VARINT) {
        frame_field(frame);
        return KUBE_AGAIN;
    }

    return frame_begin(frame, in, item);
}


static kube_rc_t
frame_on_skip(kube_protobuf_frame_t *frame, kube_str_t *in)
{
    size_t           n;
    frame_cursor_t  *c;

    c = &frame->c;
    n = (in->len < c->left) ? in->len : (size_t) c->left;

    frame_take(c, in, n);
    c->left -= n;

    if (c->left == 0) {
        frame_field(frame);
    }

    return KUBE_AGAIN;
}


/*
 * Takes what has come of a value.  Of one above the limit no more than its
 * head goes to carry.
 */
static kube_rc_t
frame_on_value(kube_protobuf_frame_t *frame, kube_str_t *in,
    kube_frame_item_t *item)
{
    size_t           n, keep, max;
    kube_str_t       bytes;
    frame_cursor_t  *c;

    c = &frame->c;
    n = (in->len < c->left) ? in->len : (size_t) c->left;

    max = (c->value == FRAME_IS_ITEM
           && c->size_bytes > frame->item_bytes_max) ? KUBE_PROTOBUF_HEAD
                                                     : c->size_bytes;

    if (n == c->size_bytes) {

        bytes = (kube_str_t) { in->data, max };

    } else {

        keep = (n < max - c->carry_len) ? n : max - c->carry_len;

        if (keep != 0
            && kube_array_reserve(&frame->alloc, &frame->carry,
                                  &frame->carry_cap,
                                  (c->carry_len + keep < FRAME_CARRY_MIN)
                                  ? FRAME_CARRY_MIN : c->carry_len + keep,
                                  1, KUBE_OBJECT_BYTES_MAX)
               != KUBE_OK)
        {
            return KUBE_NOMEM;
        }

        if (keep != 0) {
            memcpy((char *) frame->carry + c->carry_len, in->data, keep);
            c->carry_len += keep;
        }

        bytes = (kube_str_t) { frame->carry, c->carry_len };
    }

    frame_take(c, in, n);
    c->left -= n;

    return (c->left != 0) ? KUBE_AGAIN : frame_emit(frame, item, bytes);
}


/* One step; *in is not empty.  KUBE_AGAIN: go on. */
static kube_rc_t
frame_step(kube_protobuf_frame_t *frame, kube_str_t *in,
    kube_frame_item_t *item)
{
    frame_cursor_t  *c;

    c = &frame->c;

    if (c->in_raw && c->raw_left == 0) {

        if (!kube_protobuf_frame_end(frame)) {
            return KUBE_PROTO;
        }

        c->in_raw = false;
    }

    switch (c->state) {

    case FRAME_LENGTH:
        return frame_on_length(frame, in, item);

    case FRAME_MAGIC:
        return frame_on_magic(frame, in);

    case FRAME_TAG:
        return frame_on_tag(frame, in);

    case FRAME_NUMBER:
        return frame_on_number(frame, in, item);

    case FRAME_VALUE:
        return frame_on_value(frame, in, item);

    case FRAME_SKIP:
        return frame_on_skip(frame, in);

    default:
        return KUBE_PROTO;
    }
}


/* Frees what the value handed out by the last call has left. */
static void
frame_let_go(kube_protobuf_frame_t *frame)
{
    frame->c.carry_len = 0;

    if (frame->carry_cap > FRAME_CARRY_KEEP) {
        kube_free(&frame->alloc, frame->carry);
        frame->carry = NULL;
        frame->carry_cap = 0;
    }
}


kube_rc_t
kube_protobuf_frame_next(kube_protobuf_frame_t *frame, kube_str_t *in,
    kube_frame_item_t *item)
{
    kube_rc_t        rc;
    kube_str_t       start;
    frame_cursor_t   saved;

    if (frame->c.state != FRAME_VALUE) {
        frame_let_go(frame);
    }

    start = *in;
    saved = frame->c;
    rc = KUBE_AGAIN;

    while (in->len != 0 && rc == KUBE_AGAIN) {
        rc = frame_step(frame, in, item);
    }

    if (rc == KUBE_NOMEM) {
        frame->c = saved;
        *in = start;

    } else if (rc == KUBE_PROTO) {
        frame->c.state = FRAME_LOST;
    }

    return rc;
}

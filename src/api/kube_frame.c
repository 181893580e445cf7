/*
 * kube_frame - cuts list items and watch events out of a byte stream as it
 * arrives, and reads their envelopes on the way.
 *
 * It reads the members of a list itself and leaves items and events to
 * kube_envelope.  One struct per stream; whoever owns it may call it.
 *
 * Invariants: every call either takes at least one byte, returns an item, or
 * leaves the state as it was (NOMEM).  A value that lies whole in one piece
 * of input is handed out in place; only one that is cut by the end of a
 * piece goes through carry, which never exceeds the limit of that value.
 *
 *   watch    GAP -'{'-> VALUE(item) -> GAP
 *
 *   list     START -'{'-> NAME_FIRST -'"'-> NAME -> COLON -> MEMBER
 *            MEMBER   kind, metadata, unknown: VALUE or WORD -> AFTER
 *                     items: null -> WORD -> AFTER, '[' -> ITEM_FIRST
 *            ITEM_FIRST, ITEM -'{'-> VALUE(item) -> ITEM_AFTER
 *            ITEM_AFTER -','-> ITEM, -']'-> AFTER
 *            AFTER -','-> NAME_NEXT -'"'-> NAME, -'}'-> DONE
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_frame.h"


/* Longer than any name or word that means something here. */
#define KUBE_FRAME_WORD_MAX    16

#define KUBE_FRAME_CARRY_MIN   (4u << 10)

/* A carry buffer that one huge item left is given back above this. */
#define KUBE_FRAME_CARRY_KEEP  (256u << 10)


typedef enum {
    FRAME_GAP = 0,
    FRAME_START,
    FRAME_NAME_FIRST,
    FRAME_NAME_NEXT,
    FRAME_NAME,
    FRAME_COLON,
    FRAME_MEMBER,
    FRAME_WORD,
    FRAME_AFTER,
    FRAME_ITEM_FIRST,
    FRAME_ITEM,
    FRAME_ITEM_AFTER,
    FRAME_VALUE,
    FRAME_DONE,
    FRAME_LOST
} frame_state_t;

typedef enum {
    FRAME_IS_UNKNOWN = 0,
    FRAME_IS_KIND,
    FRAME_IS_METADATA,
    FRAME_IS_ITEMS
} frame_member_t;

/* The state that a call may change and KUBE_NOMEM restores. */
typedef struct {
    frame_state_t   state;
    frame_member_t  member;        /* the top-level member in hand */
    bool            items_seen;
    bool            other;         /* it could be read, and is no list */
    bool            oversize;
    char            word[KUBE_FRAME_WORD_MAX];
    size_t          word_len;
    size_t          size_bytes;    /* of the value, so far */
    size_t          carry_len;
} frame_cursor_t;

/* For a value that is no item only reader.skip is used. */
struct kube_frame_s {
    kube_alloc_t             alloc;
    bool                     watch;
    size_t                   item_bytes_max;
    frame_cursor_t           c;
    kube_envelope_reader_t   reader;
    void                    *carry;
    size_t                   carry_cap;
};


kube_frame_t *
kube_frame_create(const kube_alloc_t *alloc, kube_frame_mode_t mode,
    size_t item_bytes_max)
{
    kube_frame_t  *frame;

    frame = kube_zalloc(alloc, sizeof(kube_frame_t));
    if (frame == NULL) {
        return NULL;
    }

    frame->alloc = *alloc;
    frame->item_bytes_max = kube_frame_item_bytes(item_bytes_max);
    frame->watch = (mode == KUBE_FRAME_WATCH);
    frame->c.state = frame->watch ? FRAME_GAP : FRAME_START;

    return frame;
}


void
kube_frame_destroy(kube_frame_t *frame)
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
kube_frame_partial(const kube_frame_t *frame)
{
    switch (frame->c.state) {
    case FRAME_GAP:
    case FRAME_START:
    case FRAME_DONE:
    case FRAME_LOST:
        return false;

    default:
        return true;
    }
}


static void
frame_skip_space(kube_str_t *in)
{
    const char  *p;

    p = kube_lexer_space(in->data, in->data + in->len);
    in->len -= (size_t) (p - in->data);
    in->data = p;
}


static void
frame_take(kube_str_t *in, size_t n)
{
    in->data += n;
    in->len -= n;
}


/* Begins a value, whose first byte is a bracket or a quote. */
static void
frame_value_begin(kube_frame_t *frame)
{
    frame_cursor_t  *c;

    c = &frame->c;

    c->state = FRAME_VALUE;
    c->oversize = false;
    c->size_bytes = 0;

    if (c->member == FRAME_IS_ITEMS) {
        kube_envelope_reader_init(&frame->reader, frame->watch);

    } else {
        kube_lexer_skip_init(&frame->reader.skip, false);
    }
}


/* Makes room in carry for len bytes more, as far as max allows. */
static kube_rc_t
frame_reserve(kube_frame_t *frame, size_t len, size_t max)
{
    size_t  need;

    need = frame->c.carry_len + len;

    if (need < KUBE_FRAME_CARRY_MIN) {
        need = KUBE_FRAME_CARRY_MIN;
    }

    if (kube_array_reserve(&frame->alloc, &frame->carry, &frame->carry_cap,
                           need < max ? need : max, 1, max)
        != KUBE_OK)
    {
        return KUBE_NOMEM;
    }

    return KUBE_OK;
}


/* Hands out a value; bytes are KUBE_STR_NULL if it is above the limit. */
static kube_rc_t
frame_emit(kube_frame_t *frame, kube_frame_item_t *item, kube_str_t bytes)
{
    frame_cursor_t  *c;

    c = &frame->c;

    item->bytes = bytes;
    item->size_bytes = c->size_bytes;

    switch (c->member) {
    case FRAME_IS_KIND:
        item->kind = KUBE_FRAME_KIND;
        c->state = FRAME_AFTER;
        break;

    case FRAME_IS_METADATA:
        item->kind = KUBE_FRAME_METADATA;
        c->state = FRAME_AFTER;
        break;

    default:
        item->kind = c->oversize ? KUBE_FRAME_SKIPPED : KUBE_FRAME_ITEM;
        kube_envelope_get(&frame->reader, bytes, &item->envelope);
        c->state = frame->watch ? FRAME_GAP : FRAME_ITEM_AFTER;
    }

    return KUBE_OK;
}


static kube_rc_t
frame_on_value(kube_frame_t *frame, kube_str_t *in, kube_frame_item_t *item)
{
    bool             begun;
    size_t           max;
    kube_rc_t        rc;
    kube_str_t       piece;
    const char      *p;
    frame_cursor_t  *c;

    c = &frame->c;

    max = (c->member == FRAME_IS_ITEMS) ? frame->item_bytes_max
                                        : KUBE_LIST_META_BYTES_MAX;
    begun = (c->size_bytes != 0);

    /* the reader cannot step back: make room before it moves on */
    if (begun && c->member != FRAME_IS_UNKNOWN && !c->oversize
        && frame_reserve(frame, in->len, max) != KUBE_OK)
    {
        return KUBE_NOMEM;
    }

    p = in->data;

    rc = (c->member == FRAME_IS_ITEMS)
             ? kube_envelope_read(&frame->reader, &p, in->data + in->len)
             : kube_lexer_skip(&frame->reader.skip, &p, in->data + in->len);

    if (rc == KUBE_PROTO) {
        return rc;
    }

    piece.data = in->data;
    piece.len = (size_t) (p - in->data);
    frame_take(in, piece.len);

    if (c->member == FRAME_IS_UNKNOWN) {
        c->state = (rc == KUBE_OK) ? FRAME_AFTER : FRAME_VALUE;
        return KUBE_AGAIN;
    }

    c->size_bytes += piece.len;

    if (c->size_bytes > max) {
        if (c->member != FRAME_IS_ITEMS) {
            return KUBE_PROTO;
        }

        c->oversize = true;
        c->carry_len = 0;
    }

    if (c->oversize) {
        return (rc == KUBE_OK) ? frame_emit(frame, item, KUBE_STR_NULL) : rc;
    }

    if (rc == KUBE_OK && !begun) {
        return frame_emit(frame, item, piece);
    }

    /* if this fails, the next call begins the value anew */
    if (!begun && frame_reserve(frame, piece.len, max) != KUBE_OK) {
        return KUBE_NOMEM;
    }

    memcpy((char *) frame->carry + c->carry_len, piece.data, piece.len);
    c->carry_len += piece.len;

    if (rc != KUBE_OK) {
        return rc;
    }

    return frame_emit(frame, item,
                      (kube_str_t) { frame->carry, c->carry_len });
}


static frame_member_t
frame_member(const frame_cursor_t *c)
{
    kube_str_t  name;

    name.data = c->word;
    name.len = c->word_len;

    if (kube_str_eq(name, KUBE_STR("items"))) {
        return FRAME_IS_ITEMS;
    }

    if (kube_str_eq(name, KUBE_STR("metadata"))) {
        return FRAME_IS_METADATA;
    }

    if (kube_str_eq(name, KUBE_STR("kind"))) {
        return FRAME_IS_KIND;
    }

    return FRAME_IS_UNKNOWN;
}


/* Keeps the first bytes of a name; a longer one is unknown anyway. */
static void
frame_word_add(frame_cursor_t *c, const char *from, const char *to)
{
    size_t  n, room;

    n = (size_t) (to - from);
    room = KUBE_FRAME_WORD_MAX - c->word_len;

    memcpy(c->word + c->word_len, from, n < room ? n : room);
    c->word_len += (n < room) ? n : room;
}


static kube_rc_t
frame_on_name(kube_frame_t *frame, kube_str_t *in)
{
    kube_rc_t           rc;
    const char         *p;
    kube_lexer_skip_t  *skip;

    skip = &frame->reader.skip;

    p = in->data;
    rc = kube_lexer_skip_string(skip, &p, in->data + in->len);

    /* an escaped "items" taken for unknown would be an empty list */
    if (rc == KUBE_PROTO || skip->had_escape) {
        return KUBE_PROTO;
    }

    frame_word_add(&frame->c, in->data, (rc == KUBE_OK) ? p - 1 : p);
    frame_take(in, (size_t) (p - in->data));

    if (rc == KUBE_OK) {
        frame->c.member = frame_member(&frame->c);
        frame->c.state = FRAME_COLON;
    }

    return KUBE_AGAIN;
}


/* The value of a top-level member begins with the first byte of *in. */
static kube_rc_t
frame_on_member(kube_frame_t *frame, kube_str_t *in)
{
    char             ch;
    frame_cursor_t  *c;

    c = &frame->c;
    ch = *in->data;

    switch (c->member) {
    case FRAME_IS_KIND:
        if (ch != '"') {
            return KUBE_PROTO;
        }

        break;

    case FRAME_IS_METADATA:
        if (ch != '{') {
            return KUBE_PROTO;
        }

        break;

    case FRAME_IS_ITEMS:
        if (c->items_seen || (ch != '[' && ch != 'n')) {
            return KUBE_PROTO;
        }

        c->items_seen = true;

        if (ch == '[') {
            c->state = FRAME_ITEM_FIRST;
            frame_take(in, 1);
            return KUBE_AGAIN;
        }

        break;

    default:
        break;
    }

    if (ch == '{' || ch == '[' || ch == '"') {
        frame_value_begin(frame);

    } else {
        c->state = FRAME_WORD;
        c->word_len = 0;
    }

    return KUBE_AGAIN;
}


/* A number, true, false or null: up to a byte that cannot be part of it. */
static kube_rc_t
frame_on_word(frame_cursor_t *c, kube_str_t *in)
{
    kube_str_t   word;
    const char  *p;

    p = kube_lexer_word(in->data, in->data + in->len);
    frame_word_add(c, in->data, p);
    frame_take(in, (size_t) (p - in->data));

    if (in->len == 0) {
        return KUBE_AGAIN;
    }

    word.data = c->word;
    word.len = c->word_len;

    if (word.len == 0
        || (c->member == FRAME_IS_ITEMS
            && !kube_str_eq(word, KUBE_STR("null"))))
    {
        return KUBE_PROTO;
    }

    c->state = FRAME_AFTER;

    return KUBE_AGAIN;
}


/* Behind a top-level member; the first byte of *in is no space. */
static kube_rc_t
frame_on_after(frame_cursor_t *c, kube_str_t *in, kube_frame_item_t *item)
{
    char  ch;

    ch = *in->data;
    frame_take(in, 1);

    if (ch == ',') {
        c->state = FRAME_NAME_NEXT;
        return KUBE_AGAIN;
    }

    /* an object without items is no list, and no empty one either */
    if (ch != '}' || !c->items_seen) {
        c->other = (ch == '}');
        return KUBE_PROTO;
    }

    c->state = FRAME_DONE;

    item->kind = KUBE_FRAME_END;
    item->bytes = KUBE_STR_NULL;
    item->size_bytes = 0;

    return KUBE_OK;
}


/* Where an item or the end of items may stand. */
static kube_rc_t
frame_on_item(kube_frame_t *frame, kube_str_t *in)
{
    char             ch;
    frame_cursor_t  *c;

    c = &frame->c;
    ch = *in->data;

    if (ch == '{' && c->state != FRAME_ITEM_AFTER) {
        c->member = FRAME_IS_ITEMS;
        frame_value_begin(frame);
        return KUBE_AGAIN;
    }

    frame_take(in, 1);

    if (ch == ',' && c->state == FRAME_ITEM_AFTER) {
        c->state = FRAME_ITEM;
        return KUBE_AGAIN;
    }

    if (ch == ']' && c->state != FRAME_ITEM) {
        c->state = FRAME_AFTER;
        return KUBE_AGAIN;
    }

    return KUBE_PROTO;
}


/* A byte that must be ch leads to state. */
static kube_rc_t
frame_expect(frame_cursor_t *c, kube_str_t *in, char ch, frame_state_t state)
{
    if (*in->data != ch) {
        return KUBE_PROTO;
    }

    frame_take(in, 1);

    c->state = state;
    c->word_len = 0;

    return KUBE_AGAIN;
}


/* One step; *in is not empty.  KUBE_AGAIN: go on. */
static kube_rc_t
frame_step(kube_frame_t *frame, kube_str_t *in, kube_frame_item_t *item)
{
    frame_cursor_t  *c;

    c = &frame->c;

    if (c->state == FRAME_VALUE) {
        return frame_on_value(frame, in, item);
    }

    if (c->state == FRAME_NAME) {
        return frame_on_name(frame, in);
    }

    if (c->state == FRAME_WORD) {
        return frame_on_word(c, in);
    }

    frame_skip_space(in);

    if (in->len == 0) {
        return KUBE_AGAIN;
    }

    switch (c->state) {
    case FRAME_GAP:
    case FRAME_ITEM_FIRST:
    case FRAME_ITEM:
    case FRAME_ITEM_AFTER:
        if (c->state == FRAME_GAP && *in->data != '{') {
            return KUBE_PROTO;
        }

        return frame_on_item(frame, in);

    case FRAME_START:
        c->other = (*in->data == '[');
        return frame_expect(c, in, '{', FRAME_NAME_FIRST);

    case FRAME_NAME_FIRST:
        c->other = (*in->data == '}');

        /* fall through */

    case FRAME_NAME_NEXT:
        kube_lexer_skip_init(&frame->reader.skip, true);
        return frame_expect(c, in, '"', FRAME_NAME);

    case FRAME_COLON:
        return frame_expect(c, in, ':', FRAME_MEMBER);

    case FRAME_MEMBER:
        return frame_on_member(frame, in);

    case FRAME_AFTER:
        return frame_on_after(c, in, item);

    default:
        return KUBE_PROTO;
    }
}


/*
 * True inside what needs no carry: its end and the failure of a value behind
 * it may come in one call, which then has to find the skip as it was.
 */
static bool
frame_skips(const frame_cursor_t *c)
{
    return c->state == FRAME_NAME
           || (c->state == FRAME_VALUE && c->member == FRAME_IS_UNKNOWN);
}


bool
kube_frame_other(const kube_frame_t *frame)
{
    return frame->c.other;
}


bool
kube_frame_at_item(kube_frame_t *frame, kube_str_t *in)
{
    kube_str_t      rest;
    frame_state_t   state;

    state = frame->c.state;
    rest = *in;
    frame_skip_space(&rest);

    if (state == FRAME_ITEM_AFTER && rest.len != 0 && *rest.data == ',') {
        state = FRAME_ITEM;
        frame_take(&rest, 1);
        frame_skip_space(&rest);
    }

    if ((state != FRAME_GAP && state != FRAME_ITEM_FIRST
         && state != FRAME_ITEM)
        || rest.len == 0 || *rest.data != '{')
    {
        return false;
    }

    frame->c.state = state;
    *in = rest;

    return true;
}


bool
kube_frame_take(kube_frame_t *frame, kube_str_t *in, size_t len)
{
    if (len > frame->item_bytes_max) {
        return false;
    }

    frame->c.state = frame->watch ? FRAME_GAP : FRAME_ITEM_AFTER;
    frame->c.carry_len = 0;
    frame_take(in, len);

    return true;
}


kube_rc_t
kube_frame_next(kube_frame_t *frame, kube_str_t *in, kube_frame_item_t *item)
{
    kube_rc_t          rc;
    kube_str_t         start;
    frame_cursor_t     saved;
    kube_lexer_skip_t  skip;

    /* carry of a value handed out by the last call */
    if (frame->c.state != FRAME_VALUE) {
        frame->c.carry_len = 0;

        if (frame->carry_cap > KUBE_FRAME_CARRY_KEEP) {
            kube_free(&frame->alloc, frame->carry);
            frame->carry = NULL;
            frame->carry_cap = 0;
        }
    }

    start = *in;
    saved = frame->c;
    rc = KUBE_AGAIN;

    kube_lexer_skip_init(&skip, false);

    if (frame_skips(&saved)) {
        skip = frame->reader.skip;
    }

    while (in->len != 0 && rc == KUBE_AGAIN) {
        rc = frame_step(frame, in, item);
    }

    if (rc == KUBE_NOMEM) {
        frame->c = saved;
        *in = start;

        if (frame_skips(&saved)) {
            frame->reader.skip = skip;
        }

    } else if (rc == KUBE_PROTO) {
        frame->c.state = FRAME_LOST;
    }

    return rc;
}

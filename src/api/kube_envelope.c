/*
 * kube_envelope - what of an object is known before it is decoded.
 *
 * One state machine over the members of at most three structs, each inside
 * the one before: event, object, metadata.  A byte that cannot stand where it
 * stands in them is no reason to give up a stream: the rest of the item is
 * passed over by structure alone, and what is set.  For kube_frame and
 * kube_decode.
 *
 *     START -'{'-> FIRST -'"'-> NAME -> COLON -':'-> VALUE
 *     VALUE  a text that is kept: TEXT -> AFTER
 *            object, metadata: FIRST, one struct further in
 *            any other: SKIP or WORD -> AFTER
 *     AFTER -','-> NEXT -'"'-> NAME, -'}'-> AFTER, one struct further out
 *     FIRST -'}'-> AFTER, the same
 *     a surprise: LOST, up to the end of the outermost struct
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_envelope.h"


typedef enum {
    ENVELOPE_START = 0,
    ENVELOPE_FIRST,
    ENVELOPE_NEXT,
    ENVELOPE_NAME,
    ENVELOPE_COLON,
    ENVELOPE_VALUE,
    ENVELOPE_TEXT,
    ENVELOPE_SKIP,
    ENVELOPE_WORD,
    ENVELOPE_AFTER,
    ENVELOPE_LOST,
    ENVELOPE_DONE
} envelope_state_t;

enum {
    ENVELOPE_IN_EVENT = 0,
    ENVELOPE_IN_OBJECT,
    ENVELOPE_IN_META
};

/* Members beside those whose text is kept. */
enum {
    ENVELOPE_OBJECT = KUBE_ENVELOPE_TEXTS,
    ENVELOPE_METADATA,
    ENVELOPE_OTHER
};

typedef struct {
    uint8_t      level;
    kube_str_t   name;
    const char  *what;     /* of a value that is of another type */
} envelope_member_t;

static const envelope_member_t  envelope_members[ENVELOPE_OTHER] = {
    [KUBE_ENVELOPE_TYPE] =
        { ENVELOPE_IN_EVENT, { "type", 4 }, "malformed type" },
    [ENVELOPE_OBJECT] =
        { ENVELOPE_IN_EVENT, { "object", 6 }, "object is none" },
    [KUBE_ENVELOPE_KIND] =
        { ENVELOPE_IN_OBJECT, { "kind", 4 }, "malformed kind" },
    [ENVELOPE_METADATA] =
        { ENVELOPE_IN_OBJECT, { "metadata", 8 }, "metadata is no object" },
    [KUBE_ENVELOPE_NAME] =
        { ENVELOPE_IN_META, { "name", 4 }, "malformed metadata.name" },
    [KUBE_ENVELOPE_NAMESPACE] =
        { ENVELOPE_IN_META, { "namespace", 9 },
          "malformed metadata.namespace" },
    [KUBE_ENVELOPE_UID] =
        { ENVELOPE_IN_META, { "uid", 3 }, "malformed metadata.uid" },
    [KUBE_ENVELOPE_RV] =
        { ENVELOPE_IN_META, { "resourceVersion", 15 },
          "malformed metadata.resourceVersion" }
};


void
kube_envelope_reader_init(kube_envelope_reader_t *r, bool event)
{
    kube_lexer_skip_init(&r->skip, event);

    r->event = event;
    r->state = ENVELOPE_START;
    r->level = event ? ENVELOPE_IN_EVENT : ENVELOPE_IN_OBJECT;
    r->member = ENVELOPE_OTHER;
    r->what = NULL;
    r->at = 0;
    r->object_at = 0;
    r->object_len = 0;
    r->word_len = 0;

    memset(r->text_len, 0, sizeof(r->text_len));
}


/* Appends bytes to a text; a text that is too long stays size + 1 long. */
static size_t
envelope_keep(char *dst, size_t len, size_t size, const char *from,
    const char *to)
{
    size_t  n;

    n = (size_t) (to - from);

    if (len > size || n > size - len) {
        return size + 1;
    }

    memcpy(dst + len, from, n);

    return len + n;
}


/* Resolves escapes in place; returns the length, 0 if it is unusable. */
static size_t
envelope_resolve(const kube_envelope_reader_t *r, char *text, size_t len,
    size_t size)
{
    char    plain[KUBE_ENVELOPE_TEXT_MAX];
    size_t  n;

    if (len > size) {
        return 0;
    }

    if (!r->skip.had_escape) {
        return len;
    }

    if (kube_lexer_unescape((kube_str_t) { text, len }, plain, size, &n)
        != KUBE_OK)
    {
        return 0;
    }

    memcpy(text, plain, n);

    return n;
}


static uint8_t
envelope_member(kube_envelope_reader_t *r)
{
    unsigned    i;
    kube_str_t  name;

    name.data = r->word;
    name.len = envelope_resolve(r, r->word, r->word_len, sizeof(r->word));

    for (i = 0; i < ENVELOPE_OTHER; i++) {
        if (envelope_members[i].level == r->level
            && kube_str_eq(name, envelope_members[i].name))
        {
            return (uint8_t) i;
        }
    }

    return ENVELOPE_OTHER;
}


static void
envelope_say(kube_envelope_reader_t *r, const char *what)
{
    if (r->what == NULL) {
        r->what = what;
    }
}


/* Passes over the rest of the item by its structure alone. */
static void
envelope_lose(kube_envelope_reader_t *r)
{
    uint32_t  open;

    envelope_say(r, "unreadable JSON");

    open = (uint32_t) (r->level - (r->event ? ENVELOPE_IN_EVENT
                                            : ENVELOPE_IN_OBJECT)) + 1;

    kube_lexer_skip_init(&r->skip, r->event);
    r->skip.depth = open;
    r->skip.objects[0] = (1ull << open) - 1;
    r->state = ENVELOPE_LOST;
}


/* Leaves a struct that ends before offset at. */
static kube_rc_t
envelope_leave(kube_envelope_reader_t *r, size_t at)
{
    if (r->level == ENVELOPE_IN_OBJECT) {
        r->object_len = at - r->object_at;
    }

    if (r->level == (r->event ? ENVELOPE_IN_EVENT : ENVELOPE_IN_OBJECT)) {
        r->state = ENVELOPE_DONE;
        return KUBE_OK;
    }

    r->level--;
    r->state = ENVELOPE_AFTER;

    return KUBE_AGAIN;
}


/* Begins the value whose first byte ch is at offset at; true takes it. */
static bool
envelope_value(kube_envelope_reader_t *r, char ch, size_t at)
{
    bool  text;

    text = (r->member < KUBE_ENVELOPE_TEXTS);

    kube_lexer_skip_init(&r->skip, r->event);
    r->word_len = 0;

    if (text && ch == '"') {
        r->text_len[r->member] = 0;
        r->state = ENVELOPE_TEXT;
        return true;
    }

    if (ch == '{' && r->member == ENVELOPE_METADATA) {
        r->level++;
        r->state = ENVELOPE_FIRST;
        return true;
    }

    if (ch == '{' && r->member == ENVELOPE_OBJECT) {
        /* an object that was given before is forgotten whole, as in Go */
        memset(&r->text_len[KUBE_ENVELOPE_KIND], 0,
               sizeof(r->text_len)
               - KUBE_ENVELOPE_KIND * sizeof(r->text_len[0]));
        r->object_at = at;
        r->object_len = 0;
        r->level++;
        r->state = ENVELOPE_FIRST;
        return true;
    }

    if (ch == '"' || ch == '{' || ch == '[') {
        if (r->member != ENVELOPE_OTHER) {
            envelope_say(r, envelope_members[r->member].what);
        }

        r->state = ENVELOPE_SKIP;

    } else {
        r->state = ENVELOPE_WORD;
    }

    return false;
}


/* Ends a number, true, false or null. */
static void
envelope_word_end(kube_envelope_reader_t *r)
{
    kube_str_t  word;

    word.data = r->word;
    word.len = r->word_len;

    r->state = ENVELOPE_AFTER;

    if (word.len == 0) {
        envelope_lose(r);

    } else if (r->member != ENVELOPE_OTHER
               && !kube_str_eq(word, KUBE_STR("null")))
    {
        envelope_say(r, envelope_members[r->member].what);
    }
}


static void
envelope_text_end(kube_envelope_reader_t *r)
{
    size_t  *len;

    len = &r->text_len[r->member];

    if (*len != 0) {
        *len = envelope_resolve(r, r->text[r->member], *len,
                                KUBE_ENVELOPE_TEXT_MAX);

        if (*len == 0) {
            envelope_say(r, envelope_members[r->member].what);
        }
    }

    r->state = ENVELOPE_AFTER;
}


/* Takes bytes of a string, of a word, or of a value that is passed over. */
static kube_rc_t
envelope_run(kube_envelope_reader_t *r, const char **pp, const char *end)
{
    size_t      *len;
    kube_rc_t    rc;
    const char  *p, *to;

    p = *pp;

    switch (r->state) {
    case ENVELOPE_NAME:
    case ENVELOPE_TEXT:
        rc = kube_lexer_skip_string(&r->skip, &p, end);
        to = (rc == KUBE_OK) ? p - 1 : p;

        if (r->state == ENVELOPE_NAME) {
            r->word_len = envelope_keep(r->word, r->word_len,
                                        sizeof(r->word), *pp, to);
        } else {
            len = &r->text_len[r->member];
            *len = envelope_keep(r->text[r->member], *len,
                                 KUBE_ENVELOPE_TEXT_MAX, *pp, to);
        }

        break;

    case ENVELOPE_WORD:
        p = kube_lexer_word(p, end);
        rc = (p == end) ? KUBE_AGAIN : KUBE_OK;
        r->word_len = envelope_keep(r->word, r->word_len, sizeof(r->word),
                                    *pp, p);
        break;

    default:
        rc = kube_lexer_skip(&r->skip, &p, end);
    }

    *pp = p;

    if (rc != KUBE_OK) {
        return rc;
    }

    switch (r->state) {
    case ENVELOPE_NAME:
        r->member = envelope_member(r);
        r->state = ENVELOPE_COLON;
        break;

    case ENVELOPE_TEXT:
        envelope_text_end(r);
        break;

    case ENVELOPE_WORD:
        envelope_word_end(r);
        break;

    case ENVELOPE_LOST:
        r->state = ENVELOPE_DONE;
        return KUBE_OK;

    default:
        r->state = ENVELOPE_AFTER;
    }

    return KUBE_AGAIN;
}


/* Handles a byte between values, at offset at; *take: it is used up. */
static kube_rc_t
envelope_byte(kube_envelope_reader_t *r, char ch, size_t at, bool *take)
{
    *take = true;

    switch (r->state) {
    case ENVELOPE_START:
        if (ch == '{') {
            r->state = ENVELOPE_FIRST;
            return KUBE_AGAIN;
        }

        return KUBE_PROTO;

    case ENVELOPE_FIRST:
    case ENVELOPE_NEXT:
        if (ch == '"') {
            kube_lexer_skip_init(&r->skip, r->event);
            r->word_len = 0;
            r->state = ENVELOPE_NAME;
            return KUBE_AGAIN;
        }

        if (ch == '}' && r->state == ENVELOPE_FIRST) {
            return envelope_leave(r, at + 1);
        }

        break;

    case ENVELOPE_COLON:
        if (ch == ':') {
            r->state = ENVELOPE_VALUE;
            return KUBE_AGAIN;
        }

        break;

    case ENVELOPE_VALUE:
        *take = envelope_value(r, ch, at);
        return KUBE_AGAIN;

    default:
        if (ch == ',') {
            r->state = ENVELOPE_NEXT;
            return KUBE_AGAIN;
        }

        if (ch == '}') {
            return envelope_leave(r, at + 1);
        }
    }

    *take = false;
    envelope_lose(r);

    return KUBE_AGAIN;
}


kube_rc_t
kube_envelope_read(kube_envelope_reader_t *r, const char **pp,
    const char *end)
{
    bool         take;
    kube_rc_t    rc;
    const char  *p, *start;

    start = *pp;
    p = start;
    rc = KUBE_AGAIN;

    while (p < end && rc == KUBE_AGAIN) {

        switch (r->state) {
        case ENVELOPE_NAME:
        case ENVELOPE_TEXT:
        case ENVELOPE_WORD:
        case ENVELOPE_SKIP:
        case ENVELOPE_LOST:
            rc = envelope_run(r, &p, end);
            continue;

        default:
            p = kube_lexer_space(p, end);

            if (p < end) {
                rc = envelope_byte(r, *p, r->at + (size_t) (p - start),
                                   &take);
                p += take;
            }
        }
    }

    r->at += (size_t) (p - start);
    *pp = p;

    return rc;
}


static kube_str_t
envelope_text(const kube_envelope_reader_t *r, kube_envelope_text_t i)
{
    return (kube_str_t) { r->text[i], r->text_len[i] };
}


void
kube_envelope_get(const kube_envelope_reader_t *r, kube_str_t bytes,
    kube_envelope_t *envelope)
{
    envelope->type = envelope_text(r, KUBE_ENVELOPE_TYPE);
    envelope->kind = envelope_text(r, KUBE_ENVELOPE_KIND);
    envelope->meta.name = envelope_text(r, KUBE_ENVELOPE_NAME);
    envelope->meta.ns = envelope_text(r, KUBE_ENVELOPE_NAMESPACE);
    envelope->meta.uid = envelope_text(r, KUBE_ENVELOPE_UID);
    envelope->meta.rv = envelope_text(r, KUBE_ENVELOPE_RV);
    envelope->what = r->what;
    envelope->too_large = (bytes.data == NULL);
    envelope->protobuf = false;
    envelope->version = KUBE_STR_NULL;
    envelope->object = KUBE_STR_NULL;

    if (bytes.data != NULL && r->object_len != 0) {
        envelope->object.data = bytes.data + r->object_at;
        envelope->object.len = r->object_len;
    }
}

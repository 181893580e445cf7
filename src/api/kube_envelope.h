/*
 * kube_envelope - what of an object is known before it is decoded: a watch
 * event's type, and the object's kind, name, namespace, uid and version.
 *
 * The reader passes over an item of a list or an event of a watch as its
 * bytes arrive, finds its end, and keeps these six on the way; all else is
 * passed over by its structure alone.  So an object that cannot be decoded,
 * or is too large to be held, has its key and version all the same.  It takes
 * no memory.  kube_frame drives the reader; kube_decode and src/cache read
 * the envelope.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ENVELOPE_H
#define KUBE_ENVELOPE_H


#include "kube_lexer.h"
#include "kube_object.h"


/*
 * Texts are empty where they are absent, null, or unusable; then and where
 * the structure is not that of an item or event, what says so.  No text is
 * judged further: kube_decode knows which names are good.  Of a member given
 * twice the last one counts, but null leaves the one before, and metadata
 * given twice is merged: so does Go.
 */
typedef struct {
    kube_str_t   type;       /* of an event */
    kube_str_t   kind;
    kube_str_t   version;    /* "apiVersion"; in JSON the decoder reads it */
    kube_meta_t  meta;
    kube_str_t   object;     /* its text; NULL data: none, or not held */
    bool         too_large;  /* the text is not held */
    bool         protobuf;   /* the text is a message, see kube_protobuf.h */
    const char  *what;       /* a static text; NULL: nothing is wrong */
} kube_envelope_t;


/* The texts that are kept, and where they stand. */
typedef enum {
    KUBE_ENVELOPE_TYPE = 0,
    KUBE_ENVELOPE_KIND,
    KUBE_ENVELOPE_NAME,
    KUBE_ENVELOPE_NAMESPACE,
    KUBE_ENVELOPE_UID,
    KUBE_ENVELOPE_RV,
    KUBE_ENVELOPE_TEXTS
} kube_envelope_text_t;

/* No text that is usable is longer: it is a name, or shorter than one. */
#define KUBE_ENVELOPE_TEXT_MAX  (KUBE_NAME_LEN_MAX + 3)

/* A member's name as it is written, each letter escaped at worst. */
#define KUBE_ENVELOPE_WORD_MAX  (6 * 15)

/* The struct is its user's; its members are kube_envelope.c's own. */
typedef struct {
    kube_lexer_skip_t  skip;
    bool               event;        /* else an item of a list */
    uint8_t            state;
    uint8_t            level;        /* the struct whose members are read */
    uint8_t            member;       /* of it, the one in hand */
    const char        *what;
    size_t             at;           /* bytes taken */
    size_t             object_at;
    size_t             object_len;
    size_t             word_len;
    char               word[KUBE_ENVELOPE_WORD_MAX];
    size_t             text_len[KUBE_ENVELOPE_TEXTS];
    char               text[KUBE_ENVELOPE_TEXTS][KUBE_ENVELOPE_TEXT_MAX];
} kube_envelope_reader_t;

/* Before the first byte of an item, or of an event. */
void kube_envelope_reader_init(kube_envelope_reader_t *r, bool event);

/*
 * Moves *p behind what belongs to the item or event, at most to end; its
 * first byte must be '{'.  KUBE_OK: it ends there.  KUBE_AGAIN: it goes on.
 * KUBE_PROTO: where it ends cannot be known (see kube_lexer_skip).
 */
kube_rc_t kube_envelope_read(kube_envelope_reader_t *r, const char **p,
    const char *end)  KUBE_MUST_CHECK;

/*
 * After KUBE_OK.  bytes is the whole item or event, or KUBE_STR_NULL where it
 * is not held.  The texts of *envelope point into *r, object into bytes.
 */
void kube_envelope_get(const kube_envelope_reader_t *r, kube_str_t bytes,
    kube_envelope_t *envelope);


#endif /* KUBE_ENVELOPE_H */

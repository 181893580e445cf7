/*
 * kube_lexer - the one reader of JSON text: where values end, and what their
 * members are.
 *
 * It has two faces.  kube_lexer_skip_t passes over one value in bulk, in
 * pieces of any size and in constant memory: kube_frame cuts streams with it.
 * kube_lexer_t walks a text that lies in memory whole, member by member: the
 * decoder reads with it.  Neither takes memory nor converts anything.
 *
 * What is passed over is judged by its structure alone, quotes and brackets;
 * what is walked is judged by the grammar of RFC 8259 as Go's encoding/json
 * reads it.  Only src/api uses it; one struct for each text or stream.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LEXER_H
#define KUBE_LEXER_H


#include "kube_base.h"
#include "kube_limits.h"


/* One value on its way past, from its first byte to its last. */
typedef struct {
    uint32_t  depth;         /* open brackets */
    bool      in_string;
    bool      escaped;       /* the last byte was a backslash in a string */
    bool      had_escape;    /* the value is a string that had a backslash */
    bool      lines;         /* a newline in a string cannot be */
    bool      too_deep;      /* deeper than KUBE_JSON_DEPTH_MAX */
    uint64_t  objects[(KUBE_JSON_DEPTH_MAX + 63) / 64];  /* kinds, by depth */
} kube_lexer_skip_t;

/*
 * Begins a value.  lines: values stand one a line, as watch events do, so
 * that a newline in a string tells that a line was cut off.
 */
void kube_lexer_skip_init(kube_lexer_skip_t *s, bool lines);

/*
 * Moves *p behind what belongs to the value, at most to end.  The value's
 * first byte must be a bracket that opens, or a quote.
 *
 *   KUBE_OK     the value ends at *p
 *   KUBE_AGAIN  *p is end, the value goes on
 *   KUBE_PROTO  a bracket is closed by one of another kind, or a line ended
 *               inside a string: where the value ends cannot be known
 *
 * Brackets below KUBE_JSON_DEPTH_MAX are only counted, and set too_deep.
 */
kube_rc_t kube_lexer_skip(kube_lexer_skip_t *s, const char **p,
    const char *end)  KUBE_MUST_CHECK;

/* Does the same for a string whose opening quote was taken already. */
kube_rc_t kube_lexer_skip_string(kube_lexer_skip_t *s, const char **p,
    const char *end)  KUBE_MUST_CHECK;

/* Returns the first byte of [p, end) that is no white space, or end. */
const char *kube_lexer_space(const char *p, const char *end);

/* Returns the first byte of [p, end) that no number or literal has, or end. */
const char *kube_lexer_word(const char *p, const char *end);

/*
 * Writes what the text between the quotes of a string stands for, as Go reads
 * it: escapes are resolved, lone surrogates and invalid UTF-8 become U+FFFD.
 * KUBE_INVALID if an escape is malformed or the result has more than size
 * bytes.
 */
kube_rc_t kube_lexer_unescape(kube_str_t raw, char *dst, size_t size,
    size_t *len)  KUBE_MUST_CHECK;


/* Longer names of members mean nothing here. */
#define KUBE_LEXER_NAME_MAX  64

/*
 * A walk over a text.  The first thing that is wrong ends it: what is set and
 * p stands there, and everything called later finds the end.
 *
 *     if (kube_lexer_enter(lx, '{')) {
 *         while (kube_lexer_member(lx, &name)) {
 *             ... takes one value ...
 *         }
 *     }
 */
typedef struct {
    const char  *start;
    const char  *p;
    const char  *end;
    const char  *what;      /* NULL: nothing is wrong so far */
    bool         first;     /* a bracket was entered just now */
    char         name[KUBE_LEXER_NAME_MAX];
} kube_lexer_t;

void kube_lexer_init(kube_lexer_t *lx, kube_str_t text);

/* Ends the walk: what is wrong, unless an earlier fault was recorded. */
void kube_lexer_fail(kube_lexer_t *lx, const char *what);

/*
 * Returns the kind of the next value and takes nothing: '{', '[', '"', 'n'
 * for null, 't', 'f', '0' for any number; 0 if no value follows.
 */
char kube_lexer_peek(kube_lexer_t *lx);

/* Takes the opening bracket; false if the next value begins otherwise. */
bool kube_lexer_enter(kube_lexer_t *lx, char open);

/*
 * Takes the name of the next member of the object entered last; false at the
 * object's end, which is taken.  *name is valid until the next call; a name
 * with escapes that is longer than KUBE_LEXER_NAME_MAX is given as empty.
 */
bool kube_lexer_member(kube_lexer_t *lx, kube_str_t *name);

/* Does the same for an array: true if an element follows. */
bool kube_lexer_element(kube_lexer_t *lx);

/*
 * Takes a string; *raw is the text between its quotes and points into the
 * walked text, *plain is true if it has no escape.  False, with nothing
 * taken, if the next value is no string.
 */
bool kube_lexer_string(kube_lexer_t *lx, kube_str_t *raw, bool *plain);

/* Takes any value; unless text is NULL, *text is its text. */
void kube_lexer_value(kube_lexer_t *lx, kube_str_t *text);

/* Returns true if nothing was wrong and only white space is left. */
bool kube_lexer_end(kube_lexer_t *lx);


#endif /* KUBE_LEXER_H */

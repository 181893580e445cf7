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
    bool      had_escape;    /* a string of the value had a backslash */
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

/* The same for the rest of a string, *p behind its opening quote. */
kube_rc_t kube_lexer_skip_string(kube_lexer_skip_t *s, const char **p,
    const char *end)  KUBE_MUST_CHECK;

/* The first byte of [p, end) that is no white space, or end. */
const char *kube_lexer_space(const char *p, const char *end);

/* The first byte of [p, end) that no number, true, false or null has. */
const char *kube_lexer_word(const char *p, const char *end);

/*
 * The text between the quotes of a string to what it stands for, as Go reads
 * it: escapes are resolved, lone surrogates and invalid UTF-8 become U+FFFD.
 * KUBE_INVALID: an escape there is none of, or more than size bytes.
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

/* Says what is wrong here, unless something was before. */
void kube_lexer_fail(kube_lexer_t *lx, const char *what);

/*
 * The first byte of the value that comes next: '{', '[', '"', 'n' for null,
 * 't', 'f', '0' for any number; 0 where there is no value.  Takes nothing.
 */
char kube_lexer_peek(kube_lexer_t *lx);

/* Takes the bracket that opens; false: the next value is another. */
bool kube_lexer_enter(kube_lexer_t *lx, char open);

/*
 * The next member of the object entered last, up to its value; false at its
 * end, which is taken.  *name borrows; it is empty where the name is longer
 * than KUBE_LEXER_NAME_MAX or no text.
 */
bool kube_lexer_member(kube_lexer_t *lx, kube_str_t *name);

/* The same for the elements of an array. */
bool kube_lexer_element(kube_lexer_t *lx);

/*
 * Takes a string: *raw is the text between the quotes, which borrows.
 * *plain: it stands for itself.  False: no string, and nothing is taken.
 */
bool kube_lexer_string(kube_lexer_t *lx, kube_str_t *raw, bool *plain);

/* Takes any value; *text, unless NULL, is what was taken. */
void kube_lexer_value(kube_lexer_t *lx, kube_str_t *text);

/* False, and what is set, unless only white space is left. */
bool kube_lexer_end(kube_lexer_t *lx);


#endif /* KUBE_LEXER_H */

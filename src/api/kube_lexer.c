/*
 * kube_lexer - the one reader of JSON text.
 *
 * Strings are passed over 16 bytes at a time, and containers 64 at a time: one
 * bit of a mask for each quote and bracket (kube_simd).  What is left at the
 * end of a text goes byte by byte, by a table.  No state but the caller's; for
 * src/api only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_lexer.h"
#include "kube_simd.h"
#include "kube_utf8.h"


/* Classes of bytes; 0: it means nothing between values. */
enum {
    LEXER_QUOTE = 1,
    LEXER_OPEN = 2,
    LEXER_CLOSE = 4,
    LEXER_SPACE = 8
};

#define LEXER_STRUCTURE  (LEXER_QUOTE | LEXER_OPEN | LEXER_CLOSE)

static const uint8_t  lexer_bytes[256] = {
    ['"'] = LEXER_QUOTE,
    ['{'] = LEXER_OPEN, ['['] = LEXER_OPEN,
    ['}'] = LEXER_CLOSE, [']'] = LEXER_CLOSE,
    [' '] = LEXER_SPACE, ['\t'] = LEXER_SPACE,
    ['\n'] = LEXER_SPACE, ['\r'] = LEXER_SPACE
};


static inline uint8_t
lexer_class(char ch)
{
    return lexer_bytes[(unsigned char) ch];
}


void
kube_lexer_skip_init(kube_lexer_skip_t *s, bool lines)
{
    /* objects is written before it is read */

    s->depth = 0;
    s->in_string = false;
    s->escaped = false;
    s->had_escape = false;
    s->lines = lines;
    s->too_deep = false;
}


/*
 * Returns the place of the first quote or backslash from p on, or end; with
 * lines a newline is looked for as well.
 */
static inline const char *
lexer_quote(const char *p, const char *end, bool lines)
{
    uint32_t  found;

    while (end - p >= KUBE_SIMD_TEXT) {
        found = kube_simd_quote(p, lines);

        if (found != 0) {
            return p + __builtin_ctz(found);
        }

        p += KUBE_SIMD_TEXT;
    }

    while (p < end && *p != '"' && *p != '\\' && !(lines && *p == '\n')) {
        p++;
    }

    return p;
}


kube_rc_t
kube_lexer_skip_string(kube_lexer_skip_t *s, const char **pp, const char *end)
{
    const char  *p;

    p = *pp;
    s->in_string = true;

    /* the piece before ended with a backslash: this byte belongs to it */
    if (s->escaped && p < end) {
        s->escaped = false;
        p++;
    }

    for ( ;; ) {
        p = s->lines ? lexer_quote(p, end, true) : lexer_quote(p, end, false);

        if (p == end) {
            *pp = p;
            return KUBE_AGAIN;
        }

        if (*p == '"') {
            s->in_string = false;
            *pp = p + 1;
            return KUBE_OK;
        }

        if (*p == '\n') {
            return KUBE_PROTO;
        }

        s->had_escape = true;

        if (end - p < 2) {
            s->escaped = true;
            *pp = end;
            return KUBE_AGAIN;
        }

        p += 2;
    }
}


/* Returns false if the bracket closes one of another kind. */
static inline bool
lexer_bracket(kube_lexer_skip_t *s, char ch)
{
    bool       open;
    uint32_t   at;
    uint64_t  *word, bit, object;

    /* { 0x7b, } 0x7d, [ 0x5b, ] 0x5d */

    object = ((unsigned) ch >> 5) & 1;
    open = (ch & 2) != 0;
    at = open ? s->depth++ : --s->depth;

    if (at >= KUBE_JSON_DEPTH_MAX) {
        s->too_deep = true;
        return true;
    }

    word = &s->objects[at / 64];
    bit = 1ull << (at % 64);

    if (open) {

        /* no word was zeroed: the first bracket of a word begins it */

        *word = (bit == 1 ? 0 : *word & (bit - 1)) | object << (at % 64);
        return true;
    }

    return (*word >> (at % 64) & 1) == object;
}


/* Of each bit: is the number of bits up to and with it odd? */
static inline uint64_t
lexer_parity(uint64_t bits)
{
    bits ^= bits << 1;
    bits ^= bits << 2;
    bits ^= bits << 4;
    bits ^= bits << 8;
    bits ^= bits << 16;
    bits ^= bits << 32;

    return bits;
}


/*
 * The bytes that belong to a backslash before them; *carry is 1 if the first
 * byte does, and becomes so for the next block.  In a run of backslashes each
 * second one is such a byte: an addition tells runs that begin at an odd place
 * from the others.
 */
static inline uint64_t
lexer_escaped(uint64_t slash, uint64_t *carry)
{
    uint64_t  follows, odd, even;

    even = 0x5555555555555555ull;

    slash &= ~*carry;
    follows = slash << 1 | *carry;
    odd = slash & ~even & ~follows;
    *carry = (odd + slash < odd);

    return (even ^ (odd + slash) << 1) & follows;
}


/*
 * Brackets without those pairs that hold nothing: what closes is of the kind of
 * what opens, so that nothing is changed by them.  Most of managedFields is
 * such pairs.
 */
static inline uint64_t
lexer_without_pairs(const kube_simd_block_t *m, uint64_t brackets)
{
    uint64_t  pairs;

    pairs = brackets & m->open & (brackets & m->close) >> 1
            & ~(m->curly ^ m->curly >> 1);

    return brackets & ~(pairs | pairs << 1);
}


/* What is known of a block; bits from n on are not. */
typedef struct {
    uint64_t  brackets;    /* outside of strings */
    uint64_t  inside;      /* of a string; so is the quote that opens it */
    unsigned  n;
} lexer_block_t;


/*
 * Judges 64 bytes, or those up to a byte that is for the loop over bytes: a
 * newline in a string, where lines matter; or that means nothing: a backslash
 * outside of one.
 */
static inline lexer_block_t
lexer_block(const char *p, bool lines, uint64_t within, uint64_t *carry)
{
    uint64_t           escaped, wrong;
    lexer_block_t      b;
    kube_simd_block_t  m;

    m = kube_simd_block(p, lines);
    b.n = KUBE_SIMD_BLOCK;

    if ((m.slash | m.feed | *carry) == 0) {
        b.inside = lexer_parity(m.quote) ^ within;
        b.brackets = (m.open | m.close) & ~b.inside;
        b.brackets = lexer_without_pairs(&m, b.brackets);

        return b;
    }

    escaped = lexer_escaped(m.slash, carry);
    b.inside = lexer_parity(m.quote & ~escaped) ^ within;
    b.brackets = (m.open | m.close) & ~b.inside;
    wrong = ((m.slash & ~b.inside) | (m.feed & b.inside)) & ~escaped;

    if (wrong != 0) {
        b.n = (unsigned) __builtin_ctzll(wrong);
        b.brackets &= (1ull << b.n) - 1;
        *carry = 0;
    }

    b.brackets = lexer_without_pairs(&m, b.brackets);

    return b;
}


/*
 * Moves *p over blocks of 64 bytes.  KUBE_AGAIN: what follows is for the loop
 * over bytes.
 */
static kube_rc_t
lexer_blocks(kube_lexer_skip_t *s, const char **pp, const char *end)
{
    unsigned        at;
    uint64_t        within, carry;
    const char     *p;
    lexer_block_t   b;

    p = *pp;
    within = s->in_string ? UINT64_MAX : 0;
    carry = s->escaped;

    /* a pair that is left out must not be too deep */

    while (end - p >= KUBE_SIMD_BLOCK
           && s->depth < KUBE_JSON_DEPTH_MAX - KUBE_SIMD_BLOCK)
    {
        b = lexer_block(p, s->lines, within, &carry);

        for ( /* void */ ; b.brackets != 0; b.brackets &= b.brackets - 1) {
            at = (unsigned) __builtin_ctzll(b.brackets);

            if (!lexer_bracket(s, p[at])) {
                return KUBE_PROTO;
            }

            if (s->depth == 0) {
                s->in_string = false;
                s->escaped = false;
                *pp = p + at + 1;
                return KUBE_OK;
            }
        }

        p += b.n;

        if (b.n != 0) {
            within = 0 - (b.inside >> (b.n - 1) & 1);
        }

        if (b.n == KUBE_SIMD_BLOCK) {
            continue;
        }

        if (within != 0) {
            break;
        }

        p++;
    }

    s->in_string = (within != 0);
    s->escaped = (carry != 0);
    *pp = p;

    return KUBE_AGAIN;
}


kube_rc_t
kube_lexer_skip(kube_lexer_skip_t *s, const char **pp, const char *end)
{
    uint8_t      class;
    kube_rc_t    rc;
    const char  *p;

    p = *pp;

    for ( ;; ) {
        if (s->depth != 0) {
            rc = lexer_blocks(s, &p, end);

            if (rc != KUBE_AGAIN) {
                *pp = p;
                return rc;
            }
        }

        if (s->in_string) {
            rc = kube_lexer_skip_string(s, &p, end);

            if (rc != KUBE_OK || s->depth == 0) {
                *pp = p;
                return rc;
            }
        }

        class = 0;

        while (p < end) {
            class = lexer_class(*p++) & LEXER_STRUCTURE;

            if (class != 0) {
                break;
            }
        }

        if (class == 0) {
            *pp = p;
            return KUBE_AGAIN;
        }

        if (class == LEXER_QUOTE) {
            s->in_string = true;
            continue;
        }

        if (s->depth == UINT32_MAX || !lexer_bracket(s, p[-1])) {
            return KUBE_PROTO;
        }

        if (s->depth == 0) {
            *pp = p;
            return KUBE_OK;
        }
    }
}


const char *
kube_lexer_space(const char *p, const char *end)
{
    while (p < end && lexer_class(*p) == LEXER_SPACE) {
        p++;
    }

    return p;
}


const char *
kube_lexer_word(const char *p, const char *end)
{
    char  lower;

    for ( /* void */ ; p < end; p++) {
        lower = (char) (*p | 0x20);

        if (!(lower >= 'a' && lower <= 'z') && !(*p >= '0' && *p <= '9')
            && *p != '-' && *p != '+' && *p != '.')
        {
            break;
        }
    }

    return p;
}


/* Reads four hexadecimal digits; false if there are fewer. */
static bool
lexer_hex4(kube_str_t *s, uint32_t *value)
{
    int     digit;
    size_t  i;

    *value = 0;

    for (i = 0; i < 4; i++) {
        if (s->len == 0) {
            return false;
        }

        digit = (unsigned char) *s->data;

        if (digit >= '0' && digit <= '9') {
            digit -= '0';

        } else if ((digit | 0x20) >= 'a' && (digit | 0x20) <= 'f') {
            digit = (digit | 0x20) - 'a' + 10;

        } else {
            return false;
        }

        *value = *value << 4 | (uint32_t) digit;
        s->data++;
        s->len--;
    }

    return true;
}


/*
 * Reads what follows "\u".  A lone surrogate is returned as it is:
 * kube_utf8_put() writes U+FFFD for it.
 */
static bool
lexer_unicode(kube_str_t *s, uint32_t *code)
{
    uint32_t    low;
    kube_str_t  rest;

    if (!lexer_hex4(s, code)) {
        return false;
    }

    if (*code < 0xd800 || *code > 0xdbff || s->len < 2
        || s->data[0] != '\\' || s->data[1] != 'u')
    {
        return true;
    }

    rest = (kube_str_t) { s->data + 2, s->len - 2 };

    if (lexer_hex4(&rest, &low) && low >= 0xdc00 && low <= 0xdfff) {
        *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
        *s = rest;
    }

    return true;
}


/* Reads what follows a backslash; false if no escape begins so. */
static bool
lexer_escape(kube_str_t *s, uint32_t *code)
{
    char                ch;
    const char         *at;
    static const char   letters[] = "\"\\/bfnrt";
    static const char   meanings[] = "\"\\/\b\f\n\r\t";

    if (s->len == 0) {
        return false;
    }

    ch = *s->data;
    s->data++;
    s->len--;

    if (ch == 'u') {
        return lexer_unicode(s, code);
    }

    at = memchr(letters, ch, sizeof(letters) - 1);
    *code = (at != NULL) ? (unsigned char) meanings[at - letters] : 0;

    return at != NULL;
}


kube_rc_t
kube_lexer_unescape(kube_str_t raw, char *dst, size_t size, size_t *len)
{
    char      text[KUBE_UTF8_LEN_MAX];
    size_t    n;
    uint32_t  code;

    *len = 0;

    while (raw.len != 0) {
        code = kube_utf8_next(&raw);

        if (code == '\\' && !lexer_escape(&raw, &code)) {
            return KUBE_INVALID;
        }

        n = kube_utf8_put(code, text);

        if (n > size - *len) {
            return KUBE_INVALID;
        }

        memcpy(dst + *len, text, n);
        *len += n;
    }

    return KUBE_OK;
}


void
kube_lexer_init(kube_lexer_t *lx, kube_str_t text)
{
    lx->start = (text.len != 0) ? text.data : "";
    lx->p = lx->start;
    lx->end = lx->start + text.len;
    lx->what = NULL;
    lx->first = false;
}


void
kube_lexer_fail(kube_lexer_t *lx, const char *what)
{
    if (lx->what == NULL) {
        lx->what = what;
    }

    /* later calls find the end here and do nothing */
    lx->end = lx->p;
}


/* Returns the next byte that is no white space, or 0 at the end. */
static inline char
lexer_next(kube_lexer_t *lx)
{
    if (lx->p < lx->end && lexer_class(*lx->p) == LEXER_SPACE) {
        lx->p = kube_lexer_space(lx->p, lx->end);
    }

    return (lx->p < lx->end) ? *lx->p : '\0';
}


char
kube_lexer_peek(kube_lexer_t *lx)
{
    char  ch;

    ch = lexer_next(lx);

    switch (ch) {
    case '{':
    case '[':
    case '"':
    case 'n':
    case 't':
    case 'f':
        return ch;

    default:
        return (ch == '-' || (ch >= '0' && ch <= '9')) ? '0' : '\0';
    }
}


bool
kube_lexer_enter(kube_lexer_t *lx, char open)
{
    if (lexer_next(lx) != open) {
        return false;
    }

    lx->p++;
    lx->first = true;

    return true;
}


/* Takes the comma before a member or element, or the closing bracket. */
static bool
lexer_more(kube_lexer_t *lx, char close)
{
    char  ch;

    ch = lexer_next(lx);

    if (ch == close && lx->p < lx->end) {
        lx->p++;
        lx->first = false;
        return false;
    }

    if (!lx->first) {
        if (ch != ',') {
            kube_lexer_fail(lx, "comma or closing bracket expected");
            return false;
        }

        lx->p++;
    }

    lx->first = false;

    return true;
}


bool
kube_lexer_element(kube_lexer_t *lx)
{
    /* an object behind another, most often */

    if (!lx->first && lx->end - lx->p >= 2 && lx->p[0] == ','
        && lx->p[1] == '{')
    {
        lx->p++;
        return true;
    }

    if (!lexer_more(lx, ']')) {
        return false;
    }

    if (lexer_next(lx) == ']') {
        kube_lexer_fail(lx, "value expected");
    }

    return lx->what == NULL;
}


/* Takes a member as servers write it: no white space, and no escapes. */
static inline bool
lexer_plain_member(kube_lexer_t *lx, kube_str_t *name)
{
    const char  *p, *from;

    p = lx->p;

    if (!lx->first) {
        if (p == lx->end || *p != ',') {
            return false;
        }

        p++;
    }

    if (p == lx->end || *p != '"') {
        return false;
    }

    from = p + 1;
    p = lexer_quote(from, lx->end, false);

    if (lx->end - p < 2 || p[0] != '"' || p[1] != ':') {
        return false;
    }

    *name = (kube_str_t) { from, (size_t) (p - from) };
    lx->p = p + 2;
    lx->first = false;

    return true;
}


/* Apart, so that a plain member is read without its frame. */
static __attribute__((noinline)) bool
lexer_any_member(kube_lexer_t *lx, kube_str_t *name)
{
    bool    plain;
    size_t  len;

    if (!lexer_more(lx, '}')) {
        return false;
    }

    if (!kube_lexer_string(lx, name, &plain)) {
        kube_lexer_fail(lx, "member name expected");
        return false;
    }

    if (!plain) {
        if (kube_lexer_unescape(*name, lx->name, sizeof(lx->name), &len)
            != KUBE_OK)
        {
            len = 0;
        }

        *name = (kube_str_t) { lx->name, len };
    }

    if (lexer_next(lx) != ':') {
        kube_lexer_fail(lx, "colon expected");
        return false;
    }

    lx->p++;

    return true;
}


bool
kube_lexer_member(kube_lexer_t *lx, kube_str_t *name)
{
    return lexer_plain_member(lx, name) || lexer_any_member(lx, name);
}


bool
kube_lexer_string(kube_lexer_t *lx, kube_str_t *raw, bool *plain)
{
    const char  *from, *p;

    if (lexer_next(lx) != '"') {
        return false;
    }

    from = lx->p + 1;
    *plain = true;

    for (p = from; ; p += 2) {
        p = lexer_quote(p, lx->end, false);

        if (lx->end - p < 2) {
            break;
        }

        if (*p == '"') {
            break;
        }

        *plain = false;
    }

    if (p >= lx->end || *p != '"') {
        kube_lexer_fail(lx, "unterminated string");
        return false;
    }

    *raw = (kube_str_t) { from, (size_t) (p - from) };
    lx->p = p + 1;

    return true;
}


static __attribute__((noinline)) void
lexer_any_value(kube_lexer_t *lx, kube_str_t *text)
{
    bool                plain;
    kube_rc_t           rc;
    kube_str_t          raw;
    const char         *from;
    kube_lexer_skip_t   skip;

    switch (lexer_next(lx)) {
    case '"':
        from = lx->p;
        (void) kube_lexer_string(lx, &raw, &plain);
        break;

    case '{':
    case '[':
        from = lx->p;
        kube_lexer_skip_init(&skip, false);

        rc = kube_lexer_skip(&skip, &lx->p, lx->end);

        if (rc != KUBE_OK || skip.too_deep) {
            kube_lexer_fail(lx, (rc == KUBE_AGAIN) ? "unterminated"
                                : (rc == KUBE_OK) ? "nested too deep"
                                : "a bracket of another kind expected");
        }

        break;

    default:
        from = lx->p;
        lx->p = kube_lexer_word(lx->p, lx->end);

        if (lx->p == from) {
            kube_lexer_fail(lx, "value expected");
        }
    }

    *text = (kube_str_t) { from, (size_t) (lx->p - from) };
}


void
kube_lexer_value(kube_lexer_t *lx, kube_str_t *text)
{
    const char  *p;
    kube_str_t   unused;

    if (text == NULL) {
        text = &unused;
    }

    lx->first = false;
    p = lx->p;

    /* a text without escapes, most often */

    if (p < lx->end && *p == '"') {
        p = lexer_quote(p + 1, lx->end, false);

        if (p < lx->end && *p == '"') {
            *text = (kube_str_t) { lx->p, (size_t) (p + 1 - lx->p) };
            lx->p = p + 1;
            return;
        }
    }

    lexer_any_value(lx, text);
}


bool
kube_lexer_end(kube_lexer_t *lx)
{
    if (lx->what == NULL && (lexer_next(lx) != '\0' || lx->p != lx->end)) {
        kube_lexer_fail(lx, "bytes behind the value");
    }

    return lx->what == NULL;
}

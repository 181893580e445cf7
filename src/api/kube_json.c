/*
 * kube_json - a strict grammar before cJSON, and look-ups as Go does them.
 *
 * The check walks the text once, without recursion: the open brackets are
 * one bit each in a word.  What it lets pass cJSON parses too, so that a
 * tree that does not come about means that memory ran out, or that the arena
 * may not become that large.  It judges no meaning: kube_decode does.
 * Whoever owns the arena may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_json.h"
#include "kube_limits.h"


/* cJSON 1.7 copies a number into 64 bytes and fails on a longer one. */
#define KUBE_JSON_NUMBER_LEN_MAX  60


typedef struct {
    const unsigned char  *start;
    const unsigned char  *p;
    const unsigned char  *end;
    const char           *what;
    uint64_t              objects;   /* bit 0: the innermost is an object */
    unsigned              depth;
} json_check_t;


/*
 * The one mutable global of src: cJSON's hooks carry no context.  Set and
 * used only inside json_hooks_set() .. json_hooks_restore().
 */
static _Thread_local kube_arena_t  *json_arena;


static bool
json_fail(json_check_t *c, const char *what)
{
    c->what = what;

    return false;
}


static void
json_skip_space(json_check_t *c)
{
    while (c->p < c->end
           && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r'
               || *c->p == '\t'))
    {
        c->p++;
    }
}


static bool
json_check_word(json_check_t *c, const char *word, size_t len)
{
    if ((size_t) (c->end - c->p) < len || memcmp(c->p, word, len) != 0) {
        return json_fail(c, "invalid literal");
    }

    c->p += len;

    return true;
}


static size_t
json_skip_digits(json_check_t *c)
{
    const unsigned char  *from;

    from = c->p;

    while (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
        c->p++;
    }

    return (size_t) (c->p - from);
}


static bool
json_check_number(json_check_t *c)
{
    size_t                digits;
    const unsigned char  *from;

    from = c->p;

    if (*c->p == '-') {
        c->p++;
    }

    if (c->p < c->end && *c->p == '0') {
        c->p++;
        digits = 1;

        if (c->p < c->end && *c->p >= '0' && *c->p <= '9') {
            return json_fail(c, "leading zero");
        }

    } else {
        digits = json_skip_digits(c);
    }

    if (digits != 0 && c->p < c->end && *c->p == '.') {
        c->p++;
        digits = json_skip_digits(c);
    }

    if (digits != 0 && c->p < c->end && (*c->p | 0x20) == 'e') {
        c->p++;

        if (c->p < c->end && (*c->p == '+' || *c->p == '-')) {
            c->p++;
        }

        digits = json_skip_digits(c);
    }

    if (digits == 0) {
        return json_fail(c, "invalid number");
    }

    if (c->p - from > KUBE_JSON_NUMBER_LEN_MAX) {
        return json_fail(c, "number too long");
    }

    return true;
}


static bool
json_hex4(json_check_t *c, unsigned *value)
{
    unsigned       i;
    unsigned char  ch;

    *value = 0;

    if (c->end - c->p < 4) {
        return json_fail(c, "invalid \\u escape");
    }

    for (i = 0; i < 4; i++) {
        ch = *c->p;

        if (ch >= '0' && ch <= '9') {
            ch = (unsigned char) (ch - '0');

        } else if ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'f') {
            ch = (unsigned char) ((ch | 0x20) - 'a' + 10);

        } else {
            return json_fail(c, "invalid \\u escape");
        }

        *value = *value << 4 | ch;
        c->p++;
    }

    return true;
}


/* p stands behind "\u". */
static bool
json_check_unicode(json_check_t *c)
{
    unsigned  high, low;

    if (!json_hex4(c, &high)) {
        return false;
    }

    if (high == 0) {
        return json_fail(c, "U+0000 in a string");
    }

    if (high >= 0xdc00 && high <= 0xdfff) {
        return json_fail(c, "lone surrogate");
    }

    if (high < 0xd800 || high > 0xdbff) {
        return true;
    }

    if (c->end - c->p < 2 || c->p[0] != '\\' || c->p[1] != 'u') {
        return json_fail(c, "lone surrogate");
    }

    c->p += 2;

    if (!json_hex4(c, &low)) {
        return false;
    }

    if (low < 0xdc00 || low > 0xdfff) {
        return json_fail(c, "lone surrogate");
    }

    return true;
}


/* p stands behind the backslash. */
static bool
json_check_escape(json_check_t *c)
{
    if (c->p == c->end) {
        return json_fail(c, "unterminated string");
    }

    switch (*c->p) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        c->p++;
        return true;

    case 'u':
        c->p++;
        return json_check_unicode(c);

    default:
        return json_fail(c, "invalid escape");
    }
}


/* One sequence of two to four bytes: Unicode 15, table 3-7. */
static bool
json_check_utf8(json_check_t *c)
{
    size_t         i, n;
    unsigned char  lead, low, high;

    lead = *c->p;
    low = 0x80;
    high = 0xbf;

    if (lead >= 0xc2 && lead <= 0xdf) {
        n = 1;

    } else if (lead >= 0xe0 && lead <= 0xef) {
        n = 2;
        low = (lead == 0xe0) ? 0xa0 : low;
        high = (lead == 0xed) ? 0x9f : high;

    } else if (lead >= 0xf0 && lead <= 0xf4) {
        n = 3;
        low = (lead == 0xf0) ? 0x90 : low;
        high = (lead == 0xf4) ? 0x8f : high;

    } else {
        return json_fail(c, "invalid UTF-8");
    }

    if ((size_t) (c->end - c->p) <= n || c->p[1] < low || c->p[1] > high) {
        return json_fail(c, "invalid UTF-8");
    }

    for (i = 2; i <= n; i++) {
        if ((c->p[i] & 0xc0) != 0x80) {
            return json_fail(c, "invalid UTF-8");
        }
    }

    c->p += n + 1;

    return true;
}


/* p stands on the opening quote. */
static bool
json_check_string(json_check_t *c)
{
    bool                  ok;
    unsigned char         ch;
    const unsigned char  *p;

    c->p++;

    for ( ;; ) {
        for (p = c->p; p < c->end; p++) {
            ch = *p;

            if (ch < 0x20 || ch >= 0x80 || ch == '"' || ch == '\\') {
                break;
            }
        }

        c->p = p;

        if (p == c->end) {
            return json_fail(c, "unterminated string");
        }

        ch = *p;

        if (ch == '"') {
            c->p++;
            return true;
        }

        if (ch < 0x20) {
            return json_fail(c, "control byte in a string");
        }

        if (ch == '\\') {
            c->p++;
            ok = json_check_escape(c);

        } else {
            ok = json_check_utf8(c);
        }

        if (!ok) {
            return false;
        }
    }
}


/* p stands on a member's name or before it; leaves it behind the colon. */
static bool
json_check_name(json_check_t *c)
{
    json_skip_space(c);

    if (c->p == c->end || *c->p != '"') {
        return json_fail(c, "member name expected");
    }

    if (!json_check_string(c)) {
        return false;
    }

    json_skip_space(c);

    if (c->p == c->end || *c->p != ':') {
        return json_fail(c, "colon expected");
    }

    c->p++;

    return true;
}


/* A bracket opens; *closed says that it closed at once. */
static bool
json_check_open(json_check_t *c, bool *closed)
{
    bool  object;

    object = (*c->p == '{');

    if (c->depth == KUBE_JSON_DEPTH_MAX) {
        return json_fail(c, "nested too deep");
    }

    c->p++;
    json_skip_space(c);

    *closed = (c->p < c->end && *c->p == (object ? '}' : ']'));

    if (*closed) {
        c->p++;
        return true;
    }

    c->depth++;
    c->objects = c->objects << 1 | object;

    return object ? json_check_name(c) : true;
}


/* What may begin a value; *closed: the value ends here. */
static bool
json_check_value(json_check_t *c, bool *closed)
{
    json_skip_space(c);

    *closed = true;

    if (c->p == c->end) {
        return json_fail(c, "value expected");
    }

    switch (*c->p) {
    case '{':
    case '[':
        return json_check_open(c, closed);

    case '"':
        return json_check_string(c);

    case 't':
        return json_check_word(c, "true", 4);

    case 'f':
        return json_check_word(c, "false", 5);

    case 'n':
        return json_check_word(c, "null", 4);

    default:
        if (*c->p == '-' || (*c->p >= '0' && *c->p <= '9')) {
            return json_check_number(c);
        }

        return json_fail(c, "value expected");
    }
}


/* Behind a value inside a bracket: closes what ends, up to the next value. */
static bool
json_check_next(json_check_t *c)
{
    bool  object;

    while (c->depth != 0) {
        object = c->objects & 1;

        json_skip_space(c);

        if (c->p == c->end) {
            return json_fail(c, "unterminated");
        }

        if (*c->p == ',') {
            c->p++;
            return object ? json_check_name(c) : true;
        }

        if (*c->p != (object ? '}' : ']')) {
            return json_fail(c, "comma or closing bracket expected");
        }

        c->p++;
        c->depth--;
        c->objects >>= 1;
    }

    return true;
}


static bool
json_check_text(json_check_t *c)
{
    bool  closed;

    do {
        if (!json_check_value(c, &closed)) {
            return false;
        }

        if (closed && !json_check_next(c)) {
            return false;
        }

    } while (c->depth != 0);

    json_skip_space(c);

    if (c->p != c->end) {
        return json_fail(c, "bytes behind the value");
    }

    return true;
}


kube_rc_t
kube_json_check(kube_str_t text, kube_error_t *error)
{
    json_check_t  c;

    memset(&c, 0, sizeof(json_check_t));

    c.start = (const unsigned char *) (text.len != 0 ? text.data : "");
    c.p = c.start;
    c.end = c.start + text.len;

    if (json_check_text(&c)) {
        return KUBE_OK;
    }

    error->rc = KUBE_INVALID;
    error->what = c.what;
    error->offset = (size_t) (c.p - c.start);

    return KUBE_INVALID;
}


static void *
json_hook_malloc(size_t size)
{
    return kube_arena_alloc(json_arena, size);
}


static void
json_hook_free(void *p)
{
    (void) p;
}


static void
json_hooks_set(kube_arena_t *arena)
{
    cJSON_Hooks  hooks;

    json_arena = arena;

    hooks.malloc_fn = json_hook_malloc;
    hooks.free_fn = json_hook_free;

    cJSON_InitHooks(&hooks);
}


static void
json_hooks_restore(void)
{
    cJSON_InitHooks(NULL);
    json_arena = NULL;
}


/* What the ceiling refuses it will refuse for ever: no NOMEM. */
static kube_rc_t
json_nomem(const kube_arena_t *arena)
{
    return arena->full ? KUBE_INVALID : KUBE_NOMEM;
}


kube_rc_t
kube_json_parse(kube_arena_t *arena, kube_str_t text, cJSON **tree,
    kube_error_t *error)
{
    cJSON      *root;
    kube_rc_t   rc;

    rc = kube_json_check(text, error);
    if (rc != KUBE_OK) {
        return rc;
    }

    json_hooks_set(arena);
    root = cJSON_ParseWithLengthOpts(text.data, text.len, NULL, 0);
    json_hooks_restore();

    if (root == NULL) {
        error->rc = json_nomem(arena);
        error->what = arena->full ? "too large as a tree" : "out of memory";
        error->offset = 0;

        return error->rc;
    }

    *tree = root;

    return KUBE_OK;
}


kube_rc_t
kube_json_print(kube_arena_t *arena, const cJSON *tree, kube_str_t *text)
{
    char  *p;

    json_hooks_set(arena);
    p = cJSON_PrintUnformatted(tree);
    json_hooks_restore();

    if (p == NULL) {
        return json_nomem(arena);
    }

    *text = kube_str(p);

    return KUBE_OK;
}


const cJSON *
kube_json_get(const cJSON *object, const char *name)
{
    const cJSON  *child, *found;

    if (!cJSON_IsObject(object)) {
        return NULL;
    }

    found = NULL;

    for (child = object->child; child != NULL; child = child->next) {
        if (child->string != NULL && strcmp(child->string, name) == 0) {
            found = child;
        }
    }

    return found;
}


kube_str_t
kube_json_string(const cJSON *object, const char *name)
{
    const cJSON  *value;

    value = kube_json_get(object, name);

    if (!cJSON_IsString(value)) {
        return KUBE_STR_NULL;
    }

    return kube_str(value->valuestring);
}

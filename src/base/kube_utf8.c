/*
 * kube_utf8 - UTF-8 as RFC 3629 has it.
 *
 * It knows code points only: what may be shown of them, and how JSON escapes
 * them, is the caller's business.  No state.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_utf8.h"


/* The length of the sequence at s, and its code point; 0: there is none. */
static size_t
utf8_sequence(kube_str_t s, uint32_t *code)
{
    size_t                i, n;
    unsigned char         low, high;
    const unsigned char  *p;

    p = (const unsigned char *) s.data;

    /* Unicode 15, table 3-7: only the second byte has bounds of its own */
    low = 0x80;
    high = 0xbf;

    if (p[0] < 0x80) {
        *code = p[0];
        return 1;
    }

    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;
        *code = p[0] & 0x1fu;

    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        *code = p[0] & 0x0fu;
        low = (p[0] == 0xe0) ? 0xa0 : low;
        high = (p[0] == 0xed) ? 0x9f : high;

    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        *code = p[0] & 0x07u;
        low = (p[0] == 0xf0) ? 0x90 : low;
        high = (p[0] == 0xf4) ? 0x8f : high;

    } else {
        return 0;
    }

    if (s.len < n) {
        return 0;
    }

    for (i = 1; i < n; i++) {
        if (p[i] < low || p[i] > high) {
            return 0;
        }

        *code = *code << 6 | (p[i] & 0x3fu);
        low = 0x80;
        high = 0xbf;
    }

    return n;
}


/* Below eight bytes the two words overlap, or there are single bytes. */
static inline bool
utf8_is_ascii(kube_str_t s)
{
    size_t    i;
    uint64_t  word, all;
    uint32_t  half[2];

    all = 0;

    if (s.len >= 8) {

        for (i = 0; i + 8 < s.len; i += 8) {
            memcpy(&word, s.data + i, 8);
            all |= word;
        }

        memcpy(&word, s.data + s.len - 8, 8);
        all |= word;

    } else if (s.len >= 4) {
        memcpy(&half[0], s.data, 4);
        memcpy(&half[1], s.data + s.len - 4, 4);
        all = half[0] | half[1];

    } else {

        for (i = 0; i < s.len; i++) {
            all |= (unsigned char) s.data[i];
        }
    }

    return (all & 0x8080808080808080ull) == 0;
}


bool
kube_utf8_check(kube_str_t s)
{
    size_t    n;
    uint32_t  code;

    if (utf8_is_ascii(s)) {
        return true;
    }

    while (s.len != 0) {
        n = utf8_sequence(s, &code);

        if (n == 0) {
            return false;
        }

        s.data += n;
        s.len -= n;
    }

    return true;
}


uint32_t
kube_utf8_next(kube_str_t *s)
{
    size_t    n;
    uint32_t  code;

    n = utf8_sequence(*s, &code);

    if (n == 0) {
        code = KUBE_UTF8_REPLACEMENT;
        n = 1;
    }

    s->data += n;
    s->len -= n;

    return code;
}


size_t
kube_utf8_put(uint32_t code, char out[KUBE_UTF8_LEN_MAX])
{
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        code = KUBE_UTF8_REPLACEMENT;
    }

    if (code < 0x80) {
        out[0] = (char) code;
        return 1;
    }

    if (code < 0x800) {
        out[0] = (char) (0xc0 | code >> 6);
        out[1] = (char) (0x80 | (code & 0x3f));
        return 2;
    }

    if (code < 0x10000) {
        out[0] = (char) (0xe0 | code >> 12);
        out[1] = (char) (0x80 | (code >> 6 & 0x3f));
        out[2] = (char) (0x80 | (code & 0x3f));
        return 3;
    }

    out[0] = (char) (0xf0 | code >> 18);
    out[1] = (char) (0x80 | (code >> 12 & 0x3f));
    out[2] = (char) (0x80 | (code >> 6 & 0x3f));
    out[3] = (char) (0x80 | (code & 0x3f));

    return 4;
}

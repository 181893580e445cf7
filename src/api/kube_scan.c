/*
 * kube_scan - finds the end of a JSON value in a byte stream.
 *
 * It knows brackets, quotes and backslashes, and takes any bracket for the
 * fellow of any other: kube_json checks the grammar.  This is the loop that
 * every byte of a list goes through.  For kube_frame only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_scan.h"


/* What a byte means outside of strings; 0: nothing. */
enum {
    SCAN_BYTE_QUOTE = 1,
    SCAN_BYTE_OPEN,
    SCAN_BYTE_CLOSE
};

static const uint8_t  scan_bytes[256] = {
    ['"'] = SCAN_BYTE_QUOTE,
    ['{'] = SCAN_BYTE_OPEN,
    ['['] = SCAN_BYTE_OPEN,
    ['}'] = SCAN_BYTE_CLOSE,
    [']'] = SCAN_BYTE_CLOSE
};


void
kube_scan_init(kube_scan_t *s, bool lines)
{
    s->depth = 0;
    s->in_string = false;
    s->escaped = false;
    s->lines = lines;
    s->broken = false;
}


/* Not 0 where a byte of word equals the byte that needles repeats. */
static inline uint64_t
scan_match(uint64_t word, uint64_t needles)
{
    uint64_t  x;

    x = word ^ needles;

    return (x - 0x0101010101010101ull) & ~x & 0x8080808080808080ull;
}


/* The first quote or backslash from p on, or end. */
static inline const char *
scan_string(const char *p, const char *end)
{
    uint64_t  word;

    /* eight bytes at once; which of them is found below */
    while (end - p >= 8) {
        memcpy(&word, p, 8);

        if (scan_match(word, 0x2222222222222222ull)
            | scan_match(word, 0x5c5c5c5c5c5c5c5cull))
        {
            break;
        }

        p += 8;
    }

    while (p < end && *p != '"' && *p != '\\') {
        p++;
    }

    return p;
}


/* Moves *pp over string bytes; false where the string is still open. */
static inline bool
scan_past_string(kube_scan_t *s, const char **pp, const char *end)
{
    const char  *p, *from;

    p = *pp;

    while (p < end) {
        if (s->escaped) {
            s->escaped = false;
            p++;
            continue;
        }

        from = p;
        p = scan_string(p, end);

        if (s->lines && memchr(from, '\n', (size_t) (p - from)) != NULL) {
            s->broken = true;
            break;
        }

        if (p == end) {
            break;
        }

        if (*p++ == '"') {
            *pp = p;
            s->in_string = false;
            return true;
        }

        s->escaped = true;
    }

    *pp = p;

    return false;
}


kube_rc_t
kube_scan(kube_scan_t *s, const char **pp, const char *end)
{
    uint8_t      class;
    uint32_t     depth;
    const char  *p;

    p = *pp;
    depth = s->depth;

    for ( ;; ) {
        if (s->in_string) {
            if (!scan_past_string(s, &p, end)) {
                if (s->broken) {
                    return KUBE_PROTO;
                }

                break;
            }

            if (depth == 0) {
                *pp = p;
                return KUBE_OK;
            }
        }

        class = 0;

        while (p < end) {
            class = scan_bytes[(unsigned char) *p++];

            if (class != 0) {
                break;
            }
        }

        if (class == 0) {
            break;
        }

        if (class == SCAN_BYTE_QUOTE) {
            s->in_string = true;

        } else if (class == SCAN_BYTE_OPEN) {
            if (depth == UINT32_MAX) {
                return KUBE_PROTO;
            }

            depth++;

        } else if (--depth == 0) {
            s->depth = 0;
            *pp = p;
            return KUBE_OK;
        }
    }

    s->depth = depth;
    *pp = p;

    return KUBE_AGAIN;
}

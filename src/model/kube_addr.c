/*
 * kube_addr - addresses from text, and as text.
 *
 * It judges no address (the policy in route does).  No state; may be called
 * from any process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_addr.h"


#define KUBE_ADDR_GROUPS  8


/* True if a digit stands at p; *value is the number that it ends. */
static inline bool
addr_digit(const char *p, const char *end, unsigned *value)
{
    unsigned  digit;

    if (p == end) {
        return false;
    }

    digit = (unsigned) (unsigned char) *p - '0';

    if (digit > 9) {
        return false;
    }

    *value = *value * 10 + digit;

    return true;
}


/*
 * Reads a number up to 255, without a zero before it, into *value.  Returns
 * what follows it; NULL: there is none.
 */
static inline const char *
addr_parse_part(const char *p, const char *end, unsigned *value)
{
    *value = 0;

    if (!addr_digit(p, end, value)) {
        return NULL;
    }

    p++;

    if (*value == 0 || !addr_digit(p, end, value)) {
        return p;
    }

    p++;

    if (!addr_digit(p, end, value)) {
        return p;
    }

    return (*value <= 255) ? p + 1 : NULL;
}


static kube_rc_t
addr_parse_ipv4(kube_str_t s, uint8_t bytes[4])
{
    size_t       part;
    unsigned     value;
    const char  *p, *end;

    p = s.data;
    end = p + s.len;

    for (part = 0; part < 4; part++) {
        if (part != 0 && (p == end || *p++ != '.')) {
            return KUBE_INVALID;
        }

        p = addr_parse_part(p, end, &value);

        if (p == NULL) {
            return KUBE_INVALID;
        }

        bytes[part] = (uint8_t) value;
    }

    return (p == end) ? KUBE_OK : KUBE_INVALID;
}


static int
addr_hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }

    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }

    return -1;
}


/* One group of 1..4 hex digits at *pos; moves *pos behind it. */
static kube_rc_t
addr_parse_group(kube_str_t s, size_t *pos, unsigned *value)
{
    int     digit;
    size_t  n;

    *value = 0;

    for (n = 0; *pos < s.len; n++, (*pos)++) {
        digit = addr_hex_digit(s.data[*pos]);

        if (digit < 0) {
            break;
        }

        if (n == 4) {
            return KUBE_INVALID;
        }

        *value = *value << 4 | (unsigned) digit;
    }

    return (n != 0) ? KUBE_OK : KUBE_INVALID;
}


/*
 * The groups from pos on, at most max of them, written as bytes; a dotted
 * quad may stand for the last two.  Stops behind "::" with *gap set.
 */
static kube_rc_t
addr_parse_groups(kube_str_t s, size_t *pos, uint8_t *bytes, size_t *groups,
    bool *gap)
{
    size_t    start;
    unsigned  value;

    *gap = false;

    for ( ;; ) {
        start = *pos;

        if (*groups == KUBE_ADDR_GROUPS
            || addr_parse_group(s, pos, &value) != KUBE_OK)
        {
            return KUBE_INVALID;
        }

        if (*pos < s.len && s.data[*pos] == '.') {
            if (*groups > KUBE_ADDR_GROUPS - 2) {
                return KUBE_INVALID;
            }

            bytes += 2 * *groups;
            *groups += 2;
            *pos = s.len;

            return addr_parse_ipv4((kube_str_t) { s.data + start,
                                                  s.len - start }, bytes);
        }

        bytes[2 * *groups] = (uint8_t) (value >> 8);
        bytes[2 * *groups + 1] = (uint8_t) (value & 0xff);
        (*groups)++;

        if (*pos == s.len) {
            return KUBE_OK;
        }

        if (s.data[*pos] != ':' || *pos + 1 == s.len) {
            return KUBE_INVALID;
        }

        (*pos)++;

        if (s.data[*pos] == ':') {
            (*pos)++;
            *gap = true;
            return KUBE_OK;
        }
    }
}


static kube_rc_t
addr_parse_ipv6(kube_str_t s, uint8_t bytes[16])
{
    bool     gap, again;
    size_t   pos, head, tail;
    uint8_t  rest[16];

    pos = 0;
    head = 0;
    gap = (s.len >= 2 && s.data[0] == ':' && s.data[1] == ':');

    if (gap) {
        pos = 2;

    } else if (addr_parse_groups(s, &pos, bytes, &head, &gap) != KUBE_OK) {
        return KUBE_INVALID;
    }

    if (!gap) {
        return (head == KUBE_ADDR_GROUPS) ? KUBE_OK : KUBE_INVALID;
    }

    tail = 0;

    if (pos < s.len
        && (addr_parse_groups(s, &pos, rest, &tail, &again) != KUBE_OK
            || again))
    {
        return KUBE_INVALID;
    }

    /* "::" stands for at least one group */
    if (head + tail >= KUBE_ADDR_GROUPS) {
        return KUBE_INVALID;
    }

    memset(bytes + 2 * head, 0, 16 - 2 * head);
    memcpy(bytes + 16 - 2 * tail, rest, 2 * tail);

    return KUBE_OK;
}


kube_rc_t
kube_addr_parse(kube_str_t s, kube_addr_t *addr)
{
    kube_rc_t    rc;
    kube_addr_t  parsed;

    if (s.len == 0 || s.len >= KUBE_ADDR_TEXT_MAX) {
        return KUBE_INVALID;
    }

    parsed = (kube_addr_t) { .family = KUBE_FAMILY_IPV4 };
    rc = addr_parse_ipv4(s, parsed.bytes);

    if (rc != KUBE_OK && memchr(s.data, ':', s.len) != NULL) {
        parsed = (kube_addr_t) { .family = KUBE_FAMILY_IPV6 };
        rc = addr_parse_ipv6(s, parsed.bytes);
    }

    if (rc == KUBE_OK) {
        *addr = parsed;
    }

    return rc;
}


/* RFC 5952 4.2: the first of the longest runs of two or more zero groups. */
static void
addr_find_gap(const unsigned groups[KUBE_ADDR_GROUPS], size_t *at, size_t *n)
{
    size_t  i, run;

    *at = KUBE_ADDR_GROUPS;
    *n = 1;
    run = 0;

    for (i = 0; i < KUBE_ADDR_GROUPS; i++) {
        run = (groups[i] == 0) ? run + 1 : 0;

        if (run > *n) {
            *n = run;
            *at = i + 1 - run;
        }
    }
}


static size_t
addr_text_ipv6(const uint8_t *b, char out[KUBE_ADDR_TEXT_MAX])
{
    int       n;
    size_t    i, len, gap, gap_n;
    unsigned  groups[KUBE_ADDR_GROUPS];

    for (i = 0; i < KUBE_ADDR_GROUPS; i++) {
        groups[i] = (unsigned) b[2 * i] << 8 | b[2 * i + 1];
    }

    addr_find_gap(groups, &gap, &gap_n);

    /* RFC 5952 5: IPv4-mapped addresses in mixed notation */
    if (gap == 0 && gap_n == 5 && groups[5] == 0xffff) {
        n = snprintf(out, KUBE_ADDR_TEXT_MAX, "::ffff:%u.%u.%u.%u",
                     b[12], b[13], b[14], b[15]);
        return (size_t) n;
    }

    len = 0;

    for (i = 0; i < KUBE_ADDR_GROUPS; /* void */ ) {
        if (i == gap) {
            out[len++] = ':';
            out[len++] = ':';
            i += gap_n;
            continue;
        }

        n = snprintf(out + len, KUBE_ADDR_TEXT_MAX - len, "%s%x",
                     (i == 0 || i == gap + gap_n) ? "" : ":", groups[i]);
        len += (size_t) n;
        i++;
    }

    out[len] = '\0';

    return len;
}


size_t
kube_addr_text(const kube_addr_t *addr, char out[KUBE_ADDR_TEXT_MAX])
{
    int             n;
    const uint8_t  *b;

    b = addr->bytes;

    switch (addr->family) {
    case KUBE_FAMILY_IPV4:
        n = snprintf(out, KUBE_ADDR_TEXT_MAX, "%u.%u.%u.%u",
                     b[0], b[1], b[2], b[3]);
        return (size_t) n;

    case KUBE_FAMILY_IPV6:
        return addr_text_ipv6(b, out);

    default:
        out[0] = '\0';
        return 0;
    }
}

/*
 * kube_base - result codes, strings and the allocator's small helpers.
 *
 * It is not a utility library: a thing belongs here only if two layers use
 * it.  It keeps no state; any process or thread may call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_base.h"


#define KUBE_ARRAY_CAP_FIRST  8


const char *
kube_rc_text(kube_rc_t rc)
{
    switch (rc) {
#define XX(name, value, text)  case KUBE_##name: return text;
    KUBE_RC_MAP(XX)
#undef XX
    default:
        return "unknown result";
    }
}


kube_str_t
kube_str(const char *cstr)
{
    if (cstr == NULL) {
        return KUBE_STR_NULL;
    }

    return (kube_str_t) { cstr, strlen(cstr) };
}


int
kube_str_cmp(kube_str_t a, kube_str_t b)
{
    int     rc;
    size_t  n;

    n = (a.len < b.len) ? a.len : b.len;

    /* memcmp() must not see NULL, even for no bytes */
    rc = (n != 0) ? memcmp(a.data, b.data, n) : 0;

    if (rc != 0) {
        return (rc < 0) ? -1 : 1;
    }

    if (a.len == b.len) {
        return 0;
    }

    return (a.len < b.len) ? -1 : 1;
}


kube_rc_t
kube_str_to_u64(kube_str_t s, uint64_t max, uint64_t *value)
{
    size_t    i;
    uint64_t  v, digit;

    if (s.len == 0 || (s.len > 1 && s.data[0] == '0')) {
        return KUBE_INVALID;
    }

    v = 0;

    for (i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return KUBE_INVALID;
        }

        digit = (uint64_t) (s.data[i] - '0');

        if (v > max / 10 || v * 10 > max - digit || digit > max) {
            return KUBE_INVALID;
        }

        v = v * 10 + digit;
    }

    *value = v;

    return KUBE_OK;
}


static bool
str_byte_is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}


size_t
kube_str_escape(char *dst, size_t size, kube_str_t s)
{
    size_t             i, n;
    unsigned char      c;
    static const char  hex[] = "0123456789abcdef";

    n = 0;

    for (i = 0; i < s.len; i++) {
        c = (unsigned char) s.data[i];

        if (str_byte_is_plain(c)) {
            if (size - n < 2) {
                break;
            }

            dst[n++] = (char) c;
            continue;
        }

        /* half an escape would be read as something else */
        if (size - n < 5) {
            break;
        }

        dst[n++] = '\\';
        dst[n++] = 'x';
        dst[n++] = hex[c >> 4];
        dst[n++] = hex[c & 0xf];
    }

    dst[n] = '\0';

    return n;
}


void *
kube_alloc(const kube_alloc_t *a, size_t size)
{
    return a->alloc(a->ctx, size);
}


void *
kube_zalloc(const kube_alloc_t *a, size_t size)
{
    void  *p;

    p = a->alloc(a->ctx, size);

    if (p != NULL) {
        memset(p, 0, size);
    }

    return p;
}


void
kube_free(const kube_alloc_t *a, void *p)
{
    if (p != NULL) {
        a->free(a->ctx, p);
    }
}


void *
kube_pages_alloc(const kube_alloc_t *a, size_t size)
{
    return (a->pages != NULL) ? a->pages(a->ctx, size) : kube_zalloc(a, size);
}


void
kube_pages_free(const kube_alloc_t *a, void *p, size_t size)
{
    if (p != NULL && a->pages != NULL) {
        a->pages_free(a->ctx, p, size);

    } else {
        kube_free(a, p);
    }
}


kube_rc_t
kube_str_dup(const kube_alloc_t *a, kube_str_t s, kube_str_t *copy)
{
    char  *p;

    if (s.len == SIZE_MAX) {
        return KUBE_TOO_LARGE;
    }

    p = kube_alloc(a, s.len + 1);
    if (p == NULL) {
        return KUBE_NOMEM;
    }

    if (s.len != 0) {
        memcpy(p, s.data, s.len);
    }

    p[s.len] = '\0';

    copy->data = p;
    copy->len = s.len;

    return KUBE_OK;
}


void
kube_str_free(const kube_alloc_t *a, kube_str_t *s)
{
    kube_free(a, (char *) (uintptr_t) s->data);

    *s = KUBE_STR_NULL;
}


kube_rc_t
kube_array_reserve(const kube_alloc_t *a, void **p, size_t *cap, size_t need,
    size_t size, size_t max)
{
    void    *grown;
    size_t   n;

    if (need <= *cap) {
        return KUBE_OK;
    }

    if (max > SIZE_MAX / size) {
        max = SIZE_MAX / size;
    }

    if (need > max) {
        return KUBE_TOO_LARGE;
    }

    n = (*cap != 0) ? *cap : KUBE_ARRAY_CAP_FIRST;

    while (n < need && n <= max / 2) {
        n *= 2;
    }

    if (n < need || n > max) {
        n = max;
    }

    grown = kube_alloc(a, n * size);
    if (grown == NULL) {
        return KUBE_NOMEM;
    }

    if (*cap != 0) {
        memcpy(grown, *p, *cap * size);
    }

    kube_free(a, *p);

    *p = grown;
    *cap = n;

    return KUBE_OK;
}

/*
 * kube_ca - what tells one CA from another: a mark for each certificate of a
 * bundle.
 *
 * It verifies nothing, libcurl does.  Pure; kube_credentials calls it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_ca.h"
#include "kube_hash.h"


#define CA_CHUNK  64


/* What follows text in s; false: it is not there. */
static bool
ca_after(kube_str_t *s, kube_str_t text)
{
    const char  *p;

    while (s->len >= text.len) {
        p = memchr(s->data, text.data[0], s->len - text.len + 1);

        if (p == NULL) {
            return false;
        }

        s->len -= (size_t) (p - s->data);
        s->data = p;

        if (memcmp(p, text.data, text.len) == 0) {
            s->data += text.len;
            s->len -= text.len;
            return true;
        }

        s->data++;
        s->len--;
    }

    return false;
}


/* The hash of what base64 s begins with, in pieces that no line ends. */
static uint64_t
ca_hash(kube_str_t s)
{
    char      chunk[CA_CHUNK];
    size_t    i, n;
    uint64_t  h;

    h = 0;
    n = 0;

    for (i = 0; i < s.len && s.data[i] != '-'; i++) {

        if (s.data[i] <= ' ') {
            continue;
        }

        chunk[n++] = s.data[i];

        if (n == CA_CHUNK) {
            h = kube_hash64((kube_seed_t) { h, n }, chunk, n);
            n = 0;
        }
    }

    return kube_hash64((kube_seed_t) { h, n }, chunk, n);
}


/* Puts mark where it belongs, or nowhere. */
static size_t
ca_insert(uint64_t marks[KUBE_CA_MARKS_MAX], size_t n, uint64_t mark)
{
    size_t  i;

    for (i = 0; i < n && marks[i] < mark; i++) {
        /* void */
    }

    if (i == KUBE_CA_MARKS_MAX || (i < n && marks[i] == mark)) {
        return n;
    }

    if (n < KUBE_CA_MARKS_MAX) {
        n++;
    }

    memmove(&marks[i + 1], &marks[i], (n - i - 1) * sizeof(uint64_t));
    marks[i] = mark;

    return n;
}


size_t
kube_ca_marks(kube_str_t pem, uint64_t marks[KUBE_CA_MARKS_MAX])
{
    size_t  n;

    n = 0;

    /* also "TRUSTED CERTIFICATE" and "X509 CERTIFICATE", as OpenSSL has it */

    while (ca_after(&pem, KUBE_STR("-----BEGIN "))
           && ca_after(&pem, KUBE_STR("CERTIFICATE-----")))
    {
        n = ca_insert(marks, n, ca_hash(pem));
    }

    return n;
}


uint64_t
kube_ca_mark(const char *name)
{
    return kube_hash64((kube_seed_t) { 0, 0 }, name, strlen(name));
}

/*
 * kube_scan - finds the end of a JSON value in a byte stream.
 *
 * Private to kube_frame and kube_decode_prefix: it checks no grammar and
 * copies nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SCAN_H
#define KUBE_SCAN_H


#include "kube_base.h"


typedef struct {
    uint32_t  depth;       /* open brackets */
    bool      in_string;
    bool      escaped;     /* the last byte was a backslash in a string */
    bool      lines;       /* a newline in a string cannot be */
    bool      broken;      /* there was one */
} kube_scan_t;

/*
 * The value's first byte must then be a bracket that opens, or a quote.
 * lines: values are one a line, so a newline in a string is a truncation.
 */
void kube_scan_init(kube_scan_t *s, bool lines);

/*
 * Moves *p behind the bytes that belong to the value, end at most.
 * KUBE_OK: it ends there, KUBE_AGAIN: it goes on, KUBE_PROTO: 2^32 brackets
 * are open, or a line ended inside a string.
 */
kube_rc_t kube_scan(kube_scan_t *s, const char **p, const char *end)
    KUBE_MUST_CHECK;


#endif /* KUBE_SCAN_H */

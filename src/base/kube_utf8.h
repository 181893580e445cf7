/*
 * kube_utf8 - UTF-8 as RFC 3629 has it: a check, and code points one by one.
 *
 * What is not UTF-8 is read as Go reads it: one U+FFFD for each byte that
 * begins no sequence.  Surrogates, overlong forms and what lies above
 * U+10FFFF are not UTF-8.  No state; any layer, process or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_UTF8_H
#define KUBE_UTF8_H


#include "kube_base.h"


#define KUBE_UTF8_REPLACEMENT  0xfffdu

/* The longest sequence, in bytes. */
#define KUBE_UTF8_LEN_MAX      4

/* Returns true if all of s is UTF-8; the empty string is. */
bool kube_utf8_check(kube_str_t s);

/*
 * Returns the code point that *s begins with and moves *s behind it; s->len
 * is at least 1.  Where *s begins no sequence the result is
 * KUBE_UTF8_REPLACEMENT and one byte is passed over.
 */
uint32_t kube_utf8_next(kube_str_t *s);

/*
 * Writes code as UTF-8 and returns its length, 1..4.  A surrogate and what
 * lies above U+10FFFF is written as KUBE_UTF8_REPLACEMENT.
 */
size_t kube_utf8_put(uint32_t code, char out[KUBE_UTF8_LEN_MAX]);


#endif /* KUBE_UTF8_H */

/*
 * kube_rv - comparison of resourceVersions.
 *
 * A resourceVersion is a positive decimal number without leading zeros of
 * any length (KEP-5504): longer is newer, equal lengths compare bytewise.
 * "" and "0" are not versions of an object.  Those of two servers, or of before
 * and after a restored backup, are not told apart here.  No state; any process
 * or thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_RV_H
#define KUBE_RV_H


#include "kube_base.h"
#include "kube_limits.h"


typedef struct {
    char     data[KUBE_RV_LEN_MAX];
    uint8_t  len;                      /* 0: none */
} kube_rv_t;

/* KUBE_OK or KUBE_INVALID ("", "0", leading zero, non-digit, too long). */
kube_rc_t kube_rv_parse(kube_str_t s, kube_rv_t *rv)  KUBE_MUST_CHECK;

/* -1, 0, 1; an empty rv is older than any. */
int kube_rv_cmp(const kube_rv_t *a, const kube_rv_t *b);

kube_str_t kube_rv_str(const kube_rv_t *rv);   /* borrows */


#endif /* KUBE_RV_H */

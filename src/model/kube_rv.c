/*
 * kube_rv - comparison of resourceVersions.
 *
 * It orders versions of one resource of one server; across servers or
 * restores of etcd the order says nothing, and that is not judged here.
 * No state; may be called from any process or thread.
 *
 * Source: KEP-5504; CompareResourceVersion in apimachinery/pkg/util/
 * resourceversion.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_rv.h"


kube_rc_t
kube_rv_parse(kube_str_t s, kube_rv_t *rv)
{
    size_t  i;

    if (s.len == 0 || s.len > KUBE_RV_LEN_MAX || s.data[0] == '0') {
        return KUBE_INVALID;
    }

    for (i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return KUBE_INVALID;
        }
    }

    /* the whole struct is compared and stored by others: no stale bytes */
    memset(rv, 0, sizeof(kube_rv_t));
    memcpy(rv->data, s.data, s.len);
    rv->len = (uint8_t) s.len;

    return KUBE_OK;
}


int
kube_rv_cmp(const kube_rv_t *a, const kube_rv_t *b)
{
    if (a->len != b->len) {
        return (a->len < b->len) ? -1 : 1;
    }

    return kube_str_cmp(kube_rv_str(a), kube_rv_str(b));
}


kube_str_t
kube_rv_str(const kube_rv_t *rv)
{
    return (kube_str_t) { rv->data, rv->len };
}

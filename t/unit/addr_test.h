/*
 * addr_test - when two addresses are the same, for unit tests.
 *
 * The code compares addresses with networks only; tests compare what went in
 * with what came out.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef ADDR_TEST_H
#define ADDR_TEST_H


#include <string.h>

#include "kube_object.h"


static inline bool
addr_eq(const kube_addr_t *a, const kube_addr_t *b)
{
    if (a->family != b->family) {
        return false;
    }

    if (a->family == KUBE_FAMILY_NONE) {
        return true;
    }

    return memcmp(a->bytes, b->bytes,
                  a->family == KUBE_FAMILY_IPV4 ? 4 : 16) == 0;
}


#endif /* ADDR_TEST_H */

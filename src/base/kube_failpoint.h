/*
 * kube_failpoint - named places where a test may kill or stop the process.
 *
 * Nothing at all without -DKUBE_FAILPOINTS; with it, a function that the test
 * defines is called.  Not a logging or tracing facility.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_FAILPOINT_H
#define KUBE_FAILPOINT_H


#ifdef KUBE_FAILPOINTS

/* Weak: a build with failpoints runs without a test, too. */
void kube_failpoint_hit(const char *name)  __attribute__((weak));

#define KUBE_FAILPOINT(name)                                                  \
    do {                                                                      \
        if (kube_failpoint_hit != NULL) {                                     \
            kube_failpoint_hit(name);                                         \
        }                                                                     \
    } while (0)

#else

#define KUBE_FAILPOINT(name)  ((void) 0)

#endif


#endif /* KUBE_FAILPOINT_H */

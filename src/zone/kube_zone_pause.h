/*
 * kube_zone_pause - the place before each atomic load where a test may make a
 * reader pause, and let a writer run meanwhile.
 *
 * Nothing at all without -DKUBE_ZONE_PAUSES; with it, a function that the
 * test defines is called before every load of the image.  Failpoints are for
 * writers (kube_failpoint.h).  For kube_zone_word.h and kube_zone_image.h
 * alone, through which all loads go: t/util/orders.py sees to that.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_PAUSE_H
#define KUBE_ZONE_PAUSE_H


#ifdef KUBE_ZONE_PAUSES

/* Weak, as kube_failpoint_hit() is; address is what is loaded. */
void kube_zone_pause_hit(const void *address)  __attribute__((weak));

#define KUBE_ZONE_PAUSE(address)                                              \
    do {                                                                      \
        if (kube_zone_pause_hit != NULL) {                                    \
            kube_zone_pause_hit(address);                                     \
        }                                                                     \
    } while (0)

#else

#define KUBE_ZONE_PAUSE(address)  ((void) 0)

#endif


#endif /* KUBE_ZONE_PAUSE_H */

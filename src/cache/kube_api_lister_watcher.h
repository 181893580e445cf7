/*
 * kube_api_lister_watcher - the API server as a source: one resource in one
 * namespace, or in all, over a kube_io_t.
 *
 * It makes requests of options, and results of what is answered: heads, frames
 * and objects.  It decides nothing (the reflector does) and stores nothing.
 * Created by kube_informer, owned by a kube_reflector; one thread.
 *
 * What has arrived is kept as bytes and decoded by next(), one object at a
 * time.  Above KUBE_TICK_BYTES the exchange is paused until they are used up.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_API_LISTER_WATCHER_H
#define KUBE_API_LISTER_WATCHER_H


#include "kube_client.h"
#include "kube_lister_watcher.h"
#include "kube_zone_poison.h"


typedef struct {
    kube_io_t         io;
    kube_resource_t   resource;
    kube_str_t        ns;               /* empty: all; the strings are copied */
    kube_str_t        label_selector;
    kube_str_t        field_selector;
    size_t            object_bytes_max; /* larger ones are refused */
    kube_encoding_t   encoding;         /* AUTO is JSON once a server has
                                           answered with a 406 or 415 */
    kube_zone_t      *zone;             /* borrowed: says who is poison */
    kube_hand_t      *hand;             /* borrowed: each object, before it is
                                           decoded; NULL: neither is used */
    unsigned          scope;            /* of the hand */
} kube_api_lister_watcher_conf_t;

/* KUBE_OK: *lw is filled and wants a destroy().  KUBE_NOMEM. */
kube_rc_t kube_api_lister_watcher_create(const kube_alloc_t *alloc,
    const kube_api_lister_watcher_conf_t *conf, kube_lister_watcher_t *lw)
    KUBE_MUST_CHECK;


#endif /* KUBE_API_LISTER_WATCHER_H */

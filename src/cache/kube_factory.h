/*
 * kube_factory - shared informers of one API server, one for each resource and
 * namespace, however many ask for it: client-go's SharedInformerFactory.
 *
 * What informers of one server share is here: the turn to list, what is known
 * of the server, the defaults.  It makes no lister-watchers itself, has no
 * thread and no clock; its owner calls process() as that of an informer
 * (kube_shared_informer.h).  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_FACTORY_H
#define KUBE_FACTORY_H


#include "kube_shared_informer.h"


typedef struct kube_factory_s  kube_factory_t;

typedef struct {
    /*
     * Makes the source of an informer; selectors and the like are its own
     * business.  KUBE_OK: *lw is the informer's.  Anything else is what
     * kube_factory_informer() returns.
     */
    kube_rc_t             (*lister_watcher)(void *ctx,
                               kube_resource_t resource, kube_str_t ns,
                               kube_lister_watcher_t *lw);
    void                   *ctx;
    kube_reflector_conf_t   reflector;     /* traits are the factory's own */
    kube_processor_conf_t   processor;     /* resync_ms: the default */
    uint64_t                resync_ms[KUBE_RESOURCES];   /* 0: the default */
    kube_transform_pt       transform;     /* of all; NULL: none */
    void                   *transform_ctx;
    kube_watch_error_pt     watch_error;   /* of all; NULL: none */
    void                   *watch_error_ctx;
} kube_factory_conf_t;

/* alloc is copied.  NULL: out of memory. */
kube_factory_t *kube_factory_create(const kube_alloc_t *alloc,
    const kube_factory_conf_t *conf)  KUBE_MUST_CHECK;

/* Destroys its informers.  Not from within a callback. */
void kube_factory_destroy(kube_factory_t *factory);

/*
 * The informer of a resource in a namespace (empty: in all), the same for all
 * who ask; the factory owns it.  One that is new is started by the next
 * start().
 *
 * KUBE_OK, KUBE_NOMEM; KUBE_INVALID: after shutdown(), or a namespace or
 * resource that there cannot be; KUBE_TOO_LARGE: there are KUBE_SCOPES_MAX.
 */
kube_rc_t kube_factory_informer(kube_factory_t *factory,
    kube_resource_t resource, kube_str_t ns,
    kube_shared_informer_t **informer)  KUBE_MUST_CHECK;

/*
 * Starts those that are not started yet; may be called again and again.
 * KUBE_OK, or KUBE_INVALID after shutdown().
 */
kube_rc_t kube_factory_start(kube_factory_t *factory, uint64_t now_ms)
    KUBE_MUST_CHECK;

/* As those of an informer, of all. */
void kube_factory_process(kube_factory_t *factory, uint64_t now_ms);
uint64_t kube_factory_deadline(const kube_factory_t *factory);

/* kube_wait_for_cache_sync() of all that are started. */
kube_rc_t kube_factory_wait_for_cache_sync(const kube_factory_t *factory,
    uint64_t deadline_ms, uint64_t now_ms, char *cause, size_t size)
    KUBE_MUST_CHECK;

/* Stops all (kube_shared_informer_stop()), and none is started any more. */
void kube_factory_shutdown(kube_factory_t *factory, bool drain,
    uint64_t now_ms);

/* After shutdown(): no handler is called any more. */
bool kube_factory_is_stopped(const kube_factory_t *factory);


#endif /* KUBE_FACTORY_H */

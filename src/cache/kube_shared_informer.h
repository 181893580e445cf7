/*
 * kube_shared_informer - one resource of one scope in a store on the heap, and
 * any number of handlers that are told what changes in it: client-go's
 * SharedIndexInformer.
 *
 *   lister-watcher -> reflector -> DeltaFIFO -> store -> processor -> handlers
 *
 * For programs; what nginx routes by goes another way (kube_informer.h), and no
 * request waits for a handler.  It has no thread, clock or socket: its owner
 * calls process() whenever its lister-watcher may have something, and at the
 * deadline.  Handlers, the transform and the watch error handler are called
 * from process() alone.  One thread.
 *
 * A list is applied as it comes, and what it did not bring is deleted at its
 * end; an object that did not change is not told.  An object that cannot be
 * held (too large, malformed, refused by the transform) is counted; what was
 * held of it before stays, unless its uid is another.
 *
 * From within a callback: handlers may be added and removed, the informer be
 * stopped, the store be read.  process() and destroy() may not be called; a
 * transform, a filter and an index function call nothing of the informer.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_SHARED_INFORMER_H
#define KUBE_SHARED_INFORMER_H


#include "kube_lister_watcher.h"
#include "kube_list_turn.h"
#include "kube_processor.h"
#include "kube_reflector_step.h"


/* Deltas applied in one process(). */
#define KUBE_SHARED_DELTAS  512

typedef struct kube_shared_informer_s  kube_shared_informer_t;

/* As kube_reflector_options_t says. */
typedef kube_rc_t (*kube_transform_pt)(void *ctx, kube_object_t *object);

/* A list or watch failed.  It cannot influence what follows. */
typedef void (*kube_watch_error_pt)(void *ctx, kube_str_t reason,
    kube_str_t message);

typedef struct {
    kube_resource_t         resource;
    kube_str_t              ns;            /* for the log; empty: all; not
                                              kept */
    kube_reflector_conf_t   reflector;
    kube_processor_conf_t   processor;     /* the log and the seed are those
                                              of all parts */
    kube_list_turn_t       *turn;          /* borrowed: of the API server;
                                              NULL: one of its own */
    unsigned                scope;         /* its number there */
} kube_shared_informer_conf_t;

/*
 * Takes the lister-watcher over, and destroys it, in any case.  alloc is
 * copied.  NULL: out of memory.
 */
kube_shared_informer_t *kube_shared_informer_create(const kube_alloc_t *alloc,
    const kube_shared_informer_conf_t *conf, const kube_lister_watcher_t *lw)
    KUBE_MUST_CHECK;
void kube_shared_informer_destroy(kube_shared_informer_t *informer);

/* Before start(); KUBE_INVALID afterwards.  NULL: none. */
kube_rc_t kube_shared_informer_set_transform(kube_shared_informer_t *informer,
    kube_transform_pt transform, void *ctx)  KUBE_MUST_CHECK;
kube_rc_t kube_shared_informer_set_watch_error_handler(
    kube_shared_informer_t *informer, kube_watch_error_pt handler, void *ctx)
    KUBE_MUST_CHECK;

/* KUBE_OK, or KUBE_INVALID: it was started or stopped before. */
kube_rc_t kube_shared_informer_start(kube_shared_informer_t *informer,
    uint64_t now_ms)  KUBE_MUST_CHECK;

/* What is due, in bounded steps.  Nothing happens within a callback. */
void kube_shared_informer_process(kube_shared_informer_t *informer,
    uint64_t now_ms);

/* When to come again at the latest; 0: at once; KUBE_NEVER: when told. */
uint64_t kube_shared_informer_deadline(const kube_shared_informer_t *informer);

/*
 * No request is in progress any more.  What handlers have not been told yet is
 * dropped, as in client-go; with drain it is told by process() first, and a
 * handler that says KUBE_AGAIN delays the end.  A second call without drain
 * ends a drain.
 */
void kube_shared_informer_stop(kube_shared_informer_t *informer, bool drain,
    uint64_t now_ms);

/* No handler is called any more. */
bool kube_shared_informer_is_stopped(const kube_shared_informer_t *informer);

/*
 * The first list is in the store, and what changes from now on is no part of
 * it.  Whether handlers were told is asked by has_synced of each.
 */
bool kube_shared_informer_has_synced(const kube_shared_informer_t *informer);

/*
 * The version up to which everything is in the store (but for what was
 * refused); empty: none.  Borrowed until the next call.
 */
kube_str_t kube_shared_informer_rv(const kube_shared_informer_t *informer);

/* The last error of a list or watch; "" : none since a watch is open. */
const char *kube_shared_informer_error(const kube_shared_informer_t *informer);

/* Objects that were refused, ever. */
uint64_t kube_shared_informer_refused(const kube_shared_informer_t *informer);

/* What it says of itself: "services in shop". */
const char *kube_shared_informer_name(const kube_shared_informer_t *informer);

/* Read only. */
kube_store_t *kube_shared_informer_store(kube_shared_informer_t *informer);

/* kube_store_add_index(), at any time; KUBE_INVALID also once stopped. */
kube_rc_t kube_shared_informer_add_index(kube_shared_informer_t *informer,
    kube_str_t name, kube_index_pt index, void *ctx)  KUBE_MUST_CHECK;

/* Handlers: kube_processor.h.  add: KUBE_INVALID once stopped. */
kube_rc_t kube_shared_informer_add_handler(kube_shared_informer_t *informer,
    const kube_handler_t *handler, kube_registration_t *registration,
    uint64_t now_ms)  KUBE_MUST_CHECK;
void kube_shared_informer_remove_handler(kube_shared_informer_t *informer,
    kube_registration_t registration);
kube_rc_t kube_shared_informer_shut_down_handler(
    kube_shared_informer_t *informer, kube_registration_t registration)
    KUBE_MUST_CHECK;
bool kube_shared_informer_handler_has_synced(
    const kube_shared_informer_t *informer, kube_registration_t registration);

/* For metrics. */
const kube_processor_t *kube_shared_informer_processor(
    const kube_shared_informer_t *informer);


#endif /* KUBE_SHARED_INFORMER_H */

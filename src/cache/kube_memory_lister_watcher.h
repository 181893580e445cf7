/*
 * kube_memory_lister_watcher - objects in memory as a source: what is put,
 * changed and removed by calls is listed and watched as an API server's is.
 *
 * For programs that have objects of their own, and for tests: client-go's
 * FakeControllerSource is the model.  A source holds the objects of one
 * resource and its newest changes; any number of lister-watchers may be made
 * of it, each of one namespace or of all.  It speaks to no network, knows no
 * time but the one it is given, and is no cache: a reflector lists and watches
 * it like any other.
 *
 * What it does as an API server: versions that grow by one at each change,
 * lists by pages of one version in the order of the keys (of namespace and
 * name), watches from a version, WatchLists, bookmarks, timeouts, and 410
 * Expired where what is asked for has been forgotten.  It knows no selectors.
 *
 * Finding an object costs a binary search; a new one moves those behind it by
 * one place each.  The owner polls: a change makes ready() true, and nobody is
 * called.  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_MEMORY_LISTER_WATCHER_H
#define KUBE_MEMORY_LISTER_WATCHER_H


#include "kube_lister_watcher.h"


/*
 * A bookmark every so many ms, as the API server's watch cache sends them
 * (bookmarkFrequency in k8s.io/apiserver's storage/cacher).
 */
#define KUBE_MEMORY_BOOKMARK_MS  60000

typedef struct kube_memory_source_s  kube_memory_source_t;

/*
 * An empty source at version 1, that remembers changes_max changes, at least
 * one: a watch that falls further behind is told 410.  NULL: out of memory.
 */
kube_memory_source_t *kube_memory_source_create(const kube_alloc_t *alloc,
    kube_resource_t resource, size_t changes_max)  KUBE_MUST_CHECK;

/* After its last lister-watcher was destroyed. */
void kube_memory_source_destroy(kube_memory_source_t *source);

/* KUBE_OK: *lw is filled and wants a destroy().  KUBE_NOMEM.  ns is copied. */
kube_rc_t kube_memory_lister_watcher_create(kube_memory_source_t *source,
    kube_str_t ns, kube_lister_watcher_t *lw)  KUBE_MUST_CHECK;


/*
 * Adds the object, or changes the one of its key; everything is copied.  Its
 * resourceVersion is not looked at: the source gives one.  An empty uid is
 * that of the object before it, or a new one; another uid than before makes a
 * DELETED and an ADDED of it, two changes.
 *
 * KUBE_OK.  KUBE_NOMEM: nothing changed.  KUBE_INVALID: it is of another
 * resource, has a namespace or name that none may have, or fits no record.
 */
kube_rc_t kube_memory_source_put(kube_memory_source_t *source,
    const kube_object_t *object)  KUBE_MUST_CHECK;

/* KUBE_OK, KUBE_NOT_FOUND. */
kube_rc_t kube_memory_source_remove(kube_memory_source_t *source,
    kube_str_t ns, kube_str_t name);

/* The newest version; how many objects there are. */
uint64_t kube_memory_source_rv(const kube_memory_source_t *source);
size_t kube_memory_source_count(const kube_memory_source_t *source);

/*
 * While quiet changes happen, but no watch is told of them, ever: client-go's
 * AddDropWatch() and its like.  Only a list shows them.
 */
void kube_memory_source_quiet(kube_memory_source_t *source, bool quiet);

/* Forgets all changes up to now, as etcd's compaction does. */
void kube_memory_source_compact(kube_memory_source_t *source);

/* Each open watch gets a bookmark behind the events that it has not read. */
void kube_memory_source_bookmark(kube_memory_source_t *source);

/* Ends each call in progress with rc; of a list nothing more is sent. */
void kube_memory_source_reset(kube_memory_source_t *source, kube_rc_t rc);

/*
 * The next n lists, or watches, are answered by a Status of this HTTP code,
 * with Retry-After where retry_after_s is not 0.
 */
void kube_memory_source_refuse(kube_memory_source_t *source, bool watches,
    unsigned n, int code, uint32_t retry_after_s);

/*
 * Ends watches whose timeout is over and sends bookmarks that are due.  A
 * source without it has neither.
 */
void kube_memory_source_process(kube_memory_source_t *source,
    uint64_t now_ms);

/* When process() has something to do; KUBE_NEVER: no watch is open. */
uint64_t kube_memory_source_deadline(const kube_memory_source_t *source);


#endif /* KUBE_MEMORY_LISTER_WATCHER_H */

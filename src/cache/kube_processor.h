/*
 * kube_processor - tells handlers what changes in a store: client-go's
 * sharedProcessor with its processorListeners.
 *
 * Changes lie in one ring; a listener is a handler and a cursor on it.  The
 * ring is bounded in number and bytes.  Who has not read the oldest change
 * when its place is needed takes it along as *pending*: by key, what it was
 * told last and what is held by now.  So a listener that is slow is told the
 * difference, each key once, and it is told so first (RESYNC); its memory is
 * at most an older state of each object that it knows, and a pending row of
 * each key.  client-go's grows without a bound.
 *
 * What a listener that is added late is told is pending too: all that is held,
 * as initial adds; and so is a periodic resync.
 *
 * Promises, to each listener by itself: what it is told of a key is in order
 * and has no gap, each old state is the new one before it; no callback begins
 * before the one before it has returned; an object that was made anew under
 * its key (another uid) is DELETED and ADDED.  Between listeners, and between
 * keys where it is slow, there is no order.
 *
 * It calls handlers from run() alone, and from nothing else.  Within a
 * callback listeners may be added and removed.  It has no thread and no clock.
 * Owned by kube_shared_informer.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_PROCESSOR_H
#define KUBE_PROCESSOR_H


#include "kube_log.h"
#include "kube_store.h"


/*
 * Changes and bytes of their objects that wait in the ring for the slowest
 * listener: a burst, as a rollout of some hundred Pods makes it.
 */
#define KUBE_RING_CHANGES        1024
#define KUBE_RING_BYTES          (8u << 20)

/* Handlers of one informer; notifications of one listener in one run(). */
#define KUBE_LISTENERS_MAX       1024
#define KUBE_LISTENER_RUN        64

/* client-go's minimumResyncPeriod; what lacked memory is tried after it. */
#define KUBE_RESYNC_MIN_MS       1000

typedef enum {
    KUBE_NOTIFY_ADDED = 0,
    KUBE_NOTIFY_UPDATED,      /* a periodic resync: old and new are the same */
    KUBE_NOTIFY_DELETED,
    KUBE_NOTIFY_RESYNC        /* the listener fell behind: the difference
                                 follows */
} kube_notify_kind_t;

typedef struct {
    kube_notify_kind_t   kind;
    kube_stored_t       *old;              /* UPDATED; DELETED: the last state
                                              that is known */
    kube_stored_t       *new;              /* ADDED, UPDATED */
    bool                 in_initial_list;  /* ADDED */

    /*
     * DELETED: old may not be the state in which the object ended, for only a
     * list told the end, or more than this happened while the listener was
     * behind.
     */
    bool                 final_state_unknown;
} kube_notification_t;

typedef struct {
    /*
     * KUBE_OK: taken.  KUBE_AGAIN: not now; the same comes again with the next
     * run(), and nothing else before.  Any other: taken, and counted as an
     * error; the next one follows.
     */
    kube_rc_t  (*notify)(void *ctx, const kube_notification_t *notification);

    /*
     * Objects that the handler is not to see; NULL: it sees all.  An update
     * that crosses the filter is an ADDED or a DELETED.  The answer for one
     * object must always be the same.
     */
    bool       (*filter)(void *ctx, const kube_stored_t *stored);
    void        *ctx;

    /* 0: the informer's resync period; KUBE_NEVER: no resync. */
    uint64_t     resync_ms;
} kube_handler_t;

/* Of one listener, never of another one. */
typedef struct {
    const void  *owner;
    uint64_t     id;
} kube_registration_t;

typedef struct kube_processor_s  kube_processor_t;

typedef struct {
    kube_seed_t        seed;         /* secret */
    size_t             changes_max;  /* KUBE_RING_CHANGES; at least 1 */
    size_t             bytes_max;    /* KUBE_RING_BYTES */
    kube_log_sink_t    sink;
    uint64_t           resync_ms;    /* of handlers that name none, and how
                                        often it is looked who is due;
                                        KUBE_NEVER: none */
} kube_processor_conf_t;

/* alloc is borrowed.  NULL: out of memory. */
kube_processor_t *kube_processor_create(const kube_alloc_t *alloc,
    const kube_processor_conf_t *conf)  KUBE_MUST_CHECK;

/* Not from within a callback. */
void kube_processor_destroy(kube_processor_t *processor);

/* For kube_store_conf_t: KUBE_OK, or KUBE_NOMEM: nothing is told. */
kube_rc_t kube_processor_on_change(void *processor,
    const kube_store_change_t *change)  KUBE_MUST_CHECK;

/*
 * Adds a listener, which is told all that the store holds as initial adds.
 * Periods of resyncs are those of client-go: one below KUBE_RESYNC_MIN_MS is
 * raised to it; before started() a shorter one than the informer's shortens
 * that, afterwards it is raised to that; there is none if the informer has
 * none.
 *
 * KUBE_OK; KUBE_NOMEM; KUBE_TOO_LARGE: there are KUBE_LISTENERS_MAX.
 */
kube_rc_t kube_processor_add(kube_processor_t *processor,
    const kube_handler_t *handler, const kube_store_t *store,
    kube_registration_t *registration, uint64_t now_ms)  KUBE_MUST_CHECK;

/*
 * Removes a listener: it is told nothing more.  One that was removed before,
 * or is not of this processor, is left alone.  remove() does so from within
 * its own callback too, which then is its last one; shut_down() promises that
 * no callback of it runs any more, and where one does it is refused:
 * KUBE_BUSY, and the listener stays.
 */
void kube_processor_remove(kube_processor_t *processor,
    kube_registration_t registration);
kube_rc_t kube_processor_shut_down(kube_processor_t *processor,
    kube_registration_t registration)  KUBE_MUST_CHECK;

/* Periods of resyncs are fixed from now on. */
void kube_processor_started(kube_processor_t *processor);

/* The initial list is told; the first resync is a period from now. */
void kube_processor_synced(kube_processor_t *processor, uint64_t now_ms);

/* True once the listener has taken all that was initial to it. */
bool kube_processor_has_synced(const kube_processor_t *processor,
    kube_registration_t registration);

/*
 * Asks the resync timer, then calls handlers: KUBE_LISTENER_RUN times each at
 * most.  True: there is more to do now.
 */
bool kube_processor_run(kube_processor_t *processor,
    const kube_store_t *store, uint64_t now_ms);

/* When the next resync is looked for; KUBE_NEVER. */
uint64_t kube_processor_deadline(const kube_processor_t *processor);

/* True within a callback. */
bool kube_processor_is_calling(const kube_processor_t *processor);

/* True if no listener has anything to be told. */
bool kube_processor_is_idle(const kube_processor_t *processor);

/* Drops what has not been told yet.  Handlers are called no more. */
void kube_processor_drop(kube_processor_t *processor);

/* For tests and metrics. */
typedef struct {
    size_t    listeners;
    size_t    ring;              /* changes in it */
    size_t    ring_bytes;
    size_t    pending;           /* rows of all listeners */
    uint64_t  notifications;     /* taken, ever */
    uint64_t  errors;            /* of handlers, ever */
    uint64_t  fallen_behind;     /* RESYNCs, ever */
} kube_processor_stats_t;

void kube_processor_stats(const kube_processor_t *processor,
    kube_processor_stats_t *stats);

/* The period of a listener now, ms, or KUBE_NEVER; and of the timer. */
uint64_t kube_processor_resync_ms(const kube_processor_t *processor,
    kube_registration_t registration);
uint64_t kube_processor_check_ms(const kube_processor_t *processor);


#endif /* KUBE_PROCESSOR_H */

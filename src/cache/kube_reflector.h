/*
 * kube_reflector - keeps one scope (a resource in one namespace, or in all)
 * equal to its source: lists it, watches it, and feeds the DeltaFIFO.
 *
 * It owns a lister-watcher, its calls and its timers, counts and logs.  What
 * to do next is decided by its step machine (kube_reflector_step.h); what an
 * object is worth, by who takes it from the FIFO.  Owned by kube_informer or,
 * for programs, by kube_shared_informer; one thread, no clock.
 *
 * It calls nobody back but the log and the transform: its owner asks for what
 * it wants to know after each process().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REFLECTOR_H
#define KUBE_REFLECTOR_H


#include "kube_delta_fifo.h"
#include "kube_list_turn.h"
#include "kube_lister_watcher.h"
#include "kube_log.h"
#include "kube_reflector_step.h"
#include "kube_trouble.h"
#include "kube_zone_poison.h"


/* Lists, WatchLists among them, that prove a resource to be missing: one 404
   may be a proxy's answer. */
#define KUBE_MISSING_LISTS  5

typedef struct kube_reflector_s  kube_reflector_t;

typedef struct {
    kube_delta_fifo_t      *fifo;         /* borrowed */
    kube_zone_t            *zone;         /* borrowed: counters and gauges;
                                             NULL: nothing is counted */
    kube_list_turn_t       *turn;         /* borrowed: of the API server */
    kube_hand_t            *hand;         /* borrowed: emptied after each
                                             result; NULL: none */
    kube_log_sink_t         sink;
    unsigned                scope;
    kube_resource_t         resource;
    kube_str_t              ns;           /* for the log; empty: all */
    kube_reflector_conf_t   step;

    /*
     * Changes an object before it is queued; once for each that arrives, but
     * not for deletions.  Its namespace, name, uid and resourceVersion stay
     * what they were; other strings and arrays it may set to ones of its own,
     * that last until its next call.  KUBE_NOMEM: the call ends, and is made
     * anew later.  Other than that and KUBE_OK: the object is refused.  NULL:
     * none.
     */
    kube_rc_t             (*transform)(void *ctx, kube_object_t *object);
    void                   *transform_ctx;
} kube_reflector_options_t;

/*
 * Takes the lister-watcher over, and destroys it, in any case.  NULL: out of
 * memory.
 */
kube_reflector_t *kube_reflector_create(const kube_alloc_t *alloc,
    const kube_reflector_options_t *options, const kube_lister_watcher_t *lw)
    KUBE_MUST_CHECK;
void kube_reflector_destroy(kube_reflector_t *r);

/*
 * rv: resume the watch there; len 0: list.  No list older than floor is taken,
 * unless the server was set back (len 0: any may be).  Once.
 */
void kube_reflector_start(kube_reflector_t *r, const kube_rv_t *rv,
    const kube_rv_t *floor, uint64_t now_ms);

/* As kube_reflector_raise(), at any time after start. */
void kube_reflector_not_older(kube_reflector_t *r, const kube_rv_t *rv);

/* The newest version that anything was taken from: kube_reflector_floor(). */
const kube_rv_t *kube_reflector_taken(const kube_reflector_t *r);

/* No call is left in progress.  Only destroy may follow. */
void kube_reflector_stop(kube_reflector_t *r, uint64_t now_ms);

/*
 * What has arrived, as far as the FIFO takes it, and what is due: timers, a
 * list whose turn has come, the next request.
 */
void kube_reflector_process(kube_reflector_t *r, uint64_t now_ms);

/* When to process() at the latest; 0: at once; KUBE_NEVER: when told. */
uint64_t kube_reflector_deadline(const kube_reflector_t *r);

/*
 * Asks for a list: at once or, where one was asked for shortly before, when
 * its pace allows; the pace of those that are urgent is a faster one.  Asking
 * again meanwhile changes nothing else.  The watch goes on until it is the
 * list's turn.
 */
void kube_reflector_relist(kube_reflector_t *r, kube_relist_reason_t reason,
    bool urgent, uint64_t now_ms);

/*
 * Asks, at that pace, for what was refused once room has returned: by a list
 * beside the watch, which goes on meanwhile.  Where no watch is open one is
 * waited for; a list that begins meanwhile is as good.
 */
void kube_reflector_fill(kube_reflector_t *r, bool urgent, uint64_t now_ms);

/*
 * Urgently, for a list without which the watch is of no use: where it fails the
 * watch is owed no time.
 */
void kube_reflector_relist_needed(kube_reflector_t *r, uint64_t now_ms);

/* For what is held of two pasts: urgently, and by no WatchList. */
void kube_reflector_relist_plainly(kube_reflector_t *r, uint64_t now_ms);

/*
 * The version up to which everything has been given to the FIFO; len 0:
 * none.  Publish it only when the FIFO holds nothing of the scope.
 */
const kube_rv_t *kube_reflector_rv(const kube_reflector_t *r);

/*
 * All up to kube_reflector_rv() is in the zone: it has an age from now on, that
 * of the last evidence.  Called before a version is published; later it changes
 * nothing.
 */
void kube_reflector_current(kube_reflector_t *r);

/* True once after a rollback was accepted: a new epoch. */
bool kube_reflector_rollback(kube_reflector_t *r);

/*
 * True once after an error that is to be shown: its reason, and a message for
 * people (escaped), valid until the next process().
 */
bool kube_reflector_error(kube_reflector_t *r, kube_str_t *reason,
    kube_str_t *message);

/*
 * What keeps the scope from following now: from the first attempt that failed,
 * or KUBE_UNREACHABLE_MS without an answer, until a watch is open.  What the
 * answer asks for anyway (a list where the version is too old) is none.
 */
const kube_suffering_t *kube_reflector_suffering(const kube_reflector_t *r);

/*
 * Asked after each process(), by whoever can do without the resource: true if
 * the server does not have it.  KUBE_MISSING_LISTS lists were answered 404 and
 * none was granted, each sent while a watch of another resource was open there,
 * since beside_ms (0: none is).
 */
bool kube_reflector_missing(kube_reflector_t *r, uint64_t beside_ms);

/* "services in shop" */
const char *kube_reflector_label(const kube_reflector_t *r);


#endif /* KUBE_REFLECTOR_H */

/*
 * kube_lister_watcher - where a reflector gets its objects from: the interface
 * of a source that can be listed and watched, client-go's ListerWatcher.
 *
 * The API server is one (kube_api_lister_watcher.h), objects in memory are
 * another (kube_memory_lister_watcher.h).  It speaks of pages, objects and
 * Status, never of bytes or connections; it takes no decision and knows no
 * time but the one it is given.  Owned and called by a reflector.
 *
 * A call is one page of a list, or one watch.  Any number may be in progress
 * at once.  No function of a lister-watcher ever calls back, not even on
 * immediate failure: what a call yields waits in it until its owner asks for
 * it with next().  An owner that does not ask holds its source back, so that
 * memory stays bounded.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LISTER_WATCHER_H
#define KUBE_LISTER_WATCHER_H


#include "kube_decode.h"
#include "kube_status.h"


/* Each implementation has a struct of its own behind it. */
typedef struct kube_call_s  kube_call_t;

/* The part of metav1.ListOptions that differs from call to call. */
typedef struct {
    kube_str_t  rv;               /* resourceVersion; empty: none is asked */
    bool        initial_events;   /* watches: a WatchList, see below */
    bool        not_older_than;   /* resourceVersionMatch; lists, needs rv;
                                     a WatchList always */
    bool        exact;            /* the same: the state at rv, or STATUS;
                                     lists of an API server, in its place */
    bool        beside;           /* lists: it may be ended at any time for a
                                     reason that is not the source's */
    uint32_t    limit;            /* lists; 0: in one piece */
    kube_str_t  continue_token;   /* lists */
    uint32_t    timeout_s;        /* watches; 0: the source's own */
} kube_list_options_t;

/*
 * What a call yields, in this order:
 *
 *   a list   OPENED, then META once and ITEM any number of times in any order,
 *            ALIVE anywhere, then END: rc is KUBE_OK only for a whole page
 *   a watch  OPENED, then EVENT, BOOKMARK, UNREADABLE, ALIVE, then END; of a
 *            WatchList the first events are what is there, up to a BOOKMARK
 *            with initial_events_end
 *   either   STATUS in place of OPENED (refused), or later in a watch (an
 *            ERROR event); END alone where there was no answer
 *
 * Nothing comes after END or STATUS.
 */
typedef enum {
    KUBE_RESULT_OPENED = 0,
    KUBE_RESULT_META,         /* rv: of the list */
    KUBE_RESULT_ITEM,         /* object */
    KUBE_RESULT_EVENT,        /* type, object, rv */
    KUBE_RESULT_BOOKMARK,     /* rv */
    KUBE_RESULT_UNREADABLE,   /* an event without readable type, key and
                                 version; what */
    KUBE_RESULT_ALIVE,        /* the source sent size_bytes; partial: an object
                                 has begun and is not complete, or a list */
    KUBE_RESULT_STATUS,       /* status */
    KUBE_RESULT_END           /* rc, text, remedy, continue_token */
} kube_result_kind_t;

/* Why an object cannot be held. */
typedef enum {
    KUBE_REFUSAL_NONE = 0,
    KUBE_REFUSAL_TOO_LARGE,
    KUBE_REFUSAL_MALFORMED,
    KUBE_REFUSAL_CRASHED      /* the process died of it, twice */
} kube_refusal_t;

/* What is not of the kind is undefined; views last until the next call. */
typedef struct {
    kube_result_kind_t     kind;
    kube_rv_t              rv;         /* len 0: none, or unusable */
    bool                   initial_events_end;    /* BOOKMARK */

    /* ADDED, MODIFIED, DELETED or UNKNOWN (which is always refused) */
    kube_watch_type_t      type;

    /*
     * Refused: only namespace, name, uid and resourceVersion may be used;
     * each may be empty, and an empty name says that the key is not known
     * either.  DELETED: the same, and the key is known.
     */
    kube_object_t          object;
    kube_refusal_t         refusal;
    const char            *what;       /* for the log */
    uint32_t               dropped;    /* malformed parts left out of object */
    kube_surprise_t        surprise;   /* ITEM, EVENT: why it was read slowly */

    size_t                 size_bytes;
    bool                   partial;
    const kube_status_t   *status;
    kube_rc_t              rc;
    const char            *text;       /* escaped; "": rc says it all */
    const char            *remedy;     /* END: static; NULL: what helps against
                                          the cause */
    kube_str_t             continue_token;    /* empty: the last page */
} kube_result_t;

typedef struct {
    /* Begins a call.  NULL: out of memory; all else is told by next(). */
    kube_call_t  *(*list)(void *ctx, const kube_list_options_t *options,
                      uint64_t now_ms);
    kube_call_t  *(*watch)(void *ctx, const kube_list_options_t *options,
                      uint64_t now_ms);

    /* KUBE_OK: *result is filled.  KUBE_AGAIN: nothing more for now. */
    kube_rc_t     (*next)(void *ctx, kube_call_t *call,
                      kube_result_t *result);

    /* True: next() has something. */
    bool          (*ready)(void *ctx, const kube_call_t *call);

    /*
     * What a call has said so far is all that is waited for.  True: it was
     * refused, the refusal did not end, and next() has it now.  NULL: a refusal
     * comes whole.
     */
    bool          (*cut)(void *ctx, kube_call_t *call);

    /* Ends a call and frees it, whatever has become of it.  Needed for each. */
    void          (*cancel)(void *ctx, kube_call_t *call);

    /*
     * Credentials are read again, after a 401 or a refused handshake.  The
     * source limits how often that is really done.
     */
    void          (*credentials)(void *ctx, uint64_t now_ms);

    /*
     * True: whoever answers a watch that was opened is silent, and another call
     * would reach the source now.  NULL: it is never known.
     */
    bool          (*suspect)(void *ctx, const kube_call_t *call);

    /*
     * Grows when a source that could not be connected to can be again: a call
     * is worth a try at once.  NULL: it is never known.
     */
    uint64_t      (*healed)(void *ctx);

    /*
     * The source is of this process, and no server to be spared: what fails is
     * tried again in milliseconds.  Of kube_shared_informer alone.
     */
    bool            local;

    /* After the last call was cancelled. */
    void          (*destroy)(void *ctx);
    void           *ctx;
} kube_lister_watcher_t;


#endif /* KUBE_LISTER_WATCHER_H */

/*
 * kube_reflector - the state machine that keeps one scope (a resource in one
 * namespace, or in all) equal to the API server: list, watch, resume, relist.
 *
 * Sans-IO: it owns no socket, byte, clock or object.  It is told what
 * happened by kube_reflector_step() and answers with at most one action.  It
 * never calls back.  kube_list_watch turns bytes into its inputs.
 *
 * States and inputs (the switch in the code and the tests keep this order;
 * "resume" is a watch at the last resourceVersion, RL a relist not older than
 * it, RL0 a relist at resourceVersion ""):
 *
 *   IDLE       START            -> LISTING or, with a version, OPENING
 *   LISTING    META             -> LISTING; RL older than ours -> BACKOFF, RL
 *                                  (a lagging replica; after five: RL0); RL0
 *                                  older than ours: see rollback
 *              PAGE             -> LISTING (continue token)
 *              LIST_DONE        -> OPENING
 *              STATUS expired   -> page 1: RL0 at once, once; later page: a
 *                                  full list without a limit, then RL0
 *              STATUS too large -> RL0 at once, once
 *              STATUS invalid   -> BACKOFF, then RL0: it may be the version
 *              other STATUS, FAILED, PROTOCOL, CLOSED, DEADLINE -> BACKOFF
 *   OPENING    OPENED           -> WATCHING (evidence of being current)
 *              STATUS expired   -> RL; too large -> RL0 (both at once, but
 *                                  within 10 s of the last relist: BACKOFF
 *                                  first); invalid -> as PROTOCOL in
 *                                  WATCHING; else BACKOFF, resume
 *              FAILED, CLOSED, PROTOCOL, DEADLINE -> BACKOFF, then resume
 *   WATCHING   EVENT, BOOKMARK  -> WATCHING, version moves; older than ours:
 *                                  BACKOFF, RL (the version stays)
 *              CLOSED           -> resume at once; under 1 s without an event
 *                                  (a very short watch): BACKOFF, resume
 *              IDLE, DEADLINE   -> cancel, resume at once (no error)
 *              FAILED           -> resume: at once when the watch was healthy
 *                                  (>= 1 s or an event), else BACKOFF
 *              STATUS expired   -> RL; too large -> RL0; unauthorized ->
 *                                  credentials, resume; internal and other ->
 *                                  BACKOFF, resume
 *              PROTOCOL         -> BACKOFF, resume; twice in a row at the same
 *                                  version: RL
 *   BACKOFF    TIMER            -> what was to be done
 *   any        RELIST (scope changed, room returned) -> RL; a list in
 *                                  progress is finished first
 *              STOP             -> STOPPED
 *   any STATUS unauthorized     -> once: credentials are read again and the
 *                                  request repeated at once; then BACKOFF
 *   any STATUS with Retry-After -> BACKOFF not shorter than that
 *
 * What does not belong to a state is passed over: an exchange that was
 * cancelled may have left something behind.
 *
 * A watch that had events but lived less than a second is resumed at once
 * ten times in a row; then it counts as very short.
 *
 * Rollback (a server restored from a backup): an RL0 list older than our
 * version is not applied; only when a second one, at least
 * KUBE_ROLLBACK_MS later, says so too is it accepted: ROLLBACK.  One lagging
 * replica cannot cause it.
 *
 * Deviations from client-go are listed in docs/internals/reflector.md.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REFLECTOR_H
#define KUBE_REFLECTOR_H


#include "kube_backoff.h"
#include "kube_rv.h"
#include "kube_status.h"


#define KUBE_ROLLBACK_MS         10000
#define KUBE_SHORT_WATCH_MS      1000
#define KUBE_DEADLINE_MARGIN_MS  30000
#define KUBE_LIST_IDLE_MS        60000    /* a list without a byte */
#define KUBE_OPEN_MS             30000    /* a watch without a head */
#define KUBE_RELIST_PACE_MS      10000    /* between relists without a sleep */
#define KUBE_SHORT_WATCHES_MAX   10       /* with events, in a row */
#define KUBE_STALE_LISTS_MAX     5        /* of a lagging replica, in a row */
#define KUBE_PAGES_MAX           100000

typedef enum {
    KUBE_REFLECTOR_IDLE = 0,
    KUBE_REFLECTOR_LISTING,
    KUBE_REFLECTOR_OPENING,
    KUBE_REFLECTOR_WATCHING,
    KUBE_REFLECTOR_BACKOFF,
    KUBE_REFLECTOR_STOPPED
} kube_reflector_state_t;

typedef enum {
    KUBE_INPUT_START = 0,     /* rv: resume there; empty: list */
    KUBE_INPUT_META,          /* the list's version is known: rv; answered by
                                 NONE (go on) or an action (discard it) */
    KUBE_INPUT_PAGE,          /* a page ended with a continue token */
    KUBE_INPUT_LIST_DONE,     /* the last page ended; all items were taken */
    KUBE_INPUT_OPENED,        /* 200 for a watch */
    KUBE_INPUT_BYTES,         /* something arrived (idle timer) */
    KUBE_INPUT_EVENT,         /* rv: of the event, taken by the FIFO */
    KUBE_INPUT_BOOKMARK,      /* rv */
    KUBE_INPUT_STATUS,        /* status: non-200 response or ERROR event */
    KUBE_INPUT_PROTOCOL,      /* malformed bytes, wrong kind, truncated */
    KUBE_INPUT_CLOSED,        /* the body ended as HTTP says */
    KUBE_INPUT_FAILED,        /* transport; rc */
    KUBE_INPUT_TIMER,         /* deadline_ms has come */
    KUBE_INPUT_RELIST,        /* reason */
    KUBE_INPUT_STOP,
    KUBE_INPUTS
} kube_input_kind_t;

typedef enum {
    KUBE_RELIST_EXPIRED = 0,
    KUBE_RELIST_TOO_LARGE_RV,
    KUBE_RELIST_ROOM,
    KUBE_RELIST_PROTOCOL,
    KUBE_RELIST_OTHER,
    KUBE_RELIST_REASONS
} kube_relist_reason_t;

const char *kube_relist_reason_text(kube_relist_reason_t reason);

typedef struct {
    kube_input_kind_t      kind;
    kube_rv_t              rv;
    const kube_status_t   *status;         /* STATUS */
    kube_rc_t              rc;             /* FAILED */
    kube_str_t             continue_token; /* PAGE: copied */
    kube_relist_reason_t   reason;         /* RELIST */
} kube_input_t;

typedef enum {
    KUBE_ACTION_NONE = 0,
    KUBE_ACTION_LIST,          /* start (the next page of) a list */
    KUBE_ACTION_WATCH,         /* open a watch */
    KUBE_ACTION_SLEEP,         /* nothing until deadline_ms */
    KUBE_ACTION_CREDENTIALS,   /* read them again, then step TIMER at once */
    KUBE_ACTION_STOP
} kube_action_kind_t;

/*
 * LIST, WATCH, SLEEP, CREDENTIALS and STOP each mean first: cancel the
 * exchange in flight, if any.
 */
typedef struct {
    kube_action_kind_t     kind;
    bool                   first_page;      /* LIST: a new list begins */
    bool                   relist;          /* LIST: not the first ever */
    bool                   rollback;        /* after LIST_DONE: epoch changed */
    bool                   synced;          /* after LIST_DONE: list is whole */
    kube_relist_reason_t   reason;          /* LIST, relist */
    kube_str_t             rv;              /* borrows from the reflector */
    bool                   not_older_than;
    uint32_t               limit;
    kube_str_t             continue_token;  /* borrows */
    uint32_t               timeout_s;       /* WATCH */
} kube_action_t;

typedef struct {
    uint32_t             page_size;          /* 0: one piece */
    uint64_t             watch_timeout_ms;   /* drawn from [t, 2t) */
    uint64_t             idle_timeout_ms;
    kube_backoff_conf_t  backoff;
    uint64_t             seed;
} kube_reflector_conf_t;

/* The list in progress, or the last one. */
typedef struct {
    kube_rv_t               rv;             /* of its first page */
    char                    token[KUBE_CONTINUE_LEN_MAX];
    size_t                  token_len;
    unsigned                pages;
    unsigned                stale;          /* discarded in a row */
    bool                    known;          /* rv is of this list */
    bool                    answered;       /* a byte came for this one */
    bool                    rv_unavailable; /* list at "" */
    bool                    full;           /* without a limit */
    bool                    rollback;       /* older, and accepted as such */
    uint64_t                started_ms;     /* of the last relist; 0: none */
    uint64_t                rollback_ms;    /* first older RL0 list; 0: none */
} kube_reflector_list_t;

/* The watch in progress. */
typedef struct {
    unsigned                events;         /* in this watch */
    unsigned                short_ones;     /* in a row */
    unsigned                protocol_errors; /* in a row */
    uint64_t                opened_ms;
    uint64_t                deadline_ms;    /* absolute */
} kube_reflector_watch_t;

typedef struct {
    kube_reflector_conf_t   conf;
    kube_reflector_state_t  state;
    kube_random_t           random;
    kube_backoff_t          backoff;
    kube_rv_t               rv;             /* last that was taken; len 0 */
    kube_reflector_list_t   list;
    kube_reflector_watch_t  watch;
    bool                    listed;         /* a list was ever completed */
    bool                    watch_next;     /* after BACKOFF: resume */
    bool                    credentials_tried;
    bool                    relist_wanted;
    kube_relist_reason_t    relist_reason;
    uint64_t                deadline_ms;    /* when TIMER is due; UINT64_MAX */
} kube_reflector_t;

/* Fills r; no memory of its own; done is not needed. */
void kube_reflector_init(kube_reflector_t *r,
    const kube_reflector_conf_t *conf);

/* One input at now_ms (monotonic, never going back), at most one action. */
kube_action_t kube_reflector_step(kube_reflector_t *r,
    const kube_input_t *input, uint64_t now_ms);

/* The request of the last LIST or WATCH leaves only now: timers start. */
void kube_reflector_sent(kube_reflector_t *r, uint64_t now_ms);

/* When TIMER is due; UINT64_MAX: not at all. */
uint64_t kube_reflector_deadline(const kube_reflector_t *r);


#endif /* KUBE_REFLECTOR_H */

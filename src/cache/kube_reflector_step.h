/*
 * kube_reflector_step - the decisions of a reflector, as a pure state machine:
 * when to list, to watch, to resume and to wait.
 *
 * It owns no socket, clock or object and includes no lister-watcher.  Its
 * owner (kube_reflector.c; in tests a random walk) tells it what happened and
 * gets at most one action back.  It never calls back, allocates nothing, and
 * draws random numbers from its own seed, so that a run can be repeated.
 *
 * States and inputs; steps[][] in the code, the matrix in the test and the
 * table in docs/internals/reflector.md keep this order.  "Resume" is a watch
 * at the last resourceVersion.  The kind of list that is asked for next is
 * kube_list_ask_t; "relist" is a list at NOT_OLDER.
 *
 *   IDLE       START            -> LISTING or, with a version, OPENING
 *   LISTING    SENT             -> LISTING (the timer starts)
 *              OPENED           -> LISTING
 *              META             -> LISTING; older than what we have: BACKOFF,
 *                                  the same again (a lagging replica; after
 *                                  five: CONSISTENT); a CONSISTENT list that
 *                                  is older: see rollback
 *              ITEM             -> LISTING (progress)
 *              PAGE             -> LISTING (continue token)
 *              LIST_DONE        -> OPENING
 *              STATUS expired   -> first page: CONSISTENT at once, once; later
 *                                  page: the same without pages, then
 *                                  CONSISTENT
 *              STATUS too large -> CONSISTENT at once, once
 *              STATUS invalid   -> BACKOFF, CONSISTENT: it may be the version
 *              SUSPECT          -> LISTING: the page again, at once; the first
 *                                  as a new list
 *              other STATUS, FAILED, PROTOCOL, CLOSED, TIMER -> BACKOFF, list;
 *                                  one that gives way: OPENING, see below
 *   STREAMING  SENT, OPENED     -> STREAMING (the timers start)
 *              ITEM             -> STREAMING (progress)
 *              EVENT            -> STREAMING: a change behind the items
 *              BOOKMARK         -> STREAMING: it is not the one
 *              META             -> STREAMING: the one; none or older than what
 *                                  we have: BACKOFF, a plain list
 *              LIST_DONE        -> WATCHING: the same call goes on as a watch
 *              STATUS expired, too large -> CONSISTENT at once
 *              STATUS invalid, not found, forbidden -> a plain list at once
 *              TIMER            -> a plain list at once
 *              UNREADABLE       -> BACKOFF, a plain list
 *              other STATUS, FAILED, PROTOCOL, CLOSED -> BACKOFF, the same;
 *                                  after three, but for what did not connect:
 *                                  a plain list; as LISTING, see below
 *   OPENING    SENT             -> OPENING (the timer starts)
 *              OPENED           -> WATCHING (evidence of being current)
 *              STATUS expired   -> relist; too large -> CONSISTENT (both at
 *                                  once, but within 10 s of the last relist:
 *                                  BACKOFF first); invalid -> as PROTOCOL in
 *                                  WATCHING; else BACKOFF, resume
 *              FAILED, CLOSED, PROTOCOL, TIMER -> BACKOFF, resume
 *   WATCHING   EVENT, BOOKMARK  -> WATCHING, version moves; older than ours:
 *                                  BACKOFF, relist (the version stays)
 *              ALIVE            -> WATCHING (the idle timer starts again)
 *              UNREADABLE       -> once per version: BACKOFF, resume; then the
 *                                  event is passed over, and a list follows
 *                                  on demand
 *              CLOSED           -> resume at once; under 1 s and no newer
 *                                  version (a very short watch): BACKOFF,
 *                                  resume
 *              FAILED           -> the same
 *              TIMER            -> idle or at its deadline: resume at once, no
 *                                  error; an object was too slow: as FAILED
 *              STATUS expired   -> relist; too large -> CONSISTENT;
 *                                  unauthorized -> credentials, resume;
 *                                  internal and other -> BACKOFF, resume
 *              PROTOCOL         -> BACKOFF, resume; twice in a row at the same
 *                                  version: relist
 *              SUSPECT          -> WATCHING: a second watch is opened beside it
 *              REPLACED         -> WATCHING: the second is the watch now
 *   BACKOFF    TIMER            -> what was to follow
 *              HEALED           -> the same at once, if not a byte of HTTP had
 *                                  come back
 *   any        RELIST           -> relist at once, or as soon as the pace of
 *                                  relists on demand allows it; a list in
 *                                  progress is finished first.  One that may go
 *                                  beside the watch waits for one to be open,
 *                                  and leaves this machine as it is
 *              TURN             -> the list that waited for it
 *              STOP             -> STOPPED
 *   any STATUS unauthorized     -> once, and not within 10 s of the last time:
 *                                  credentials are read again and the request
 *                                  repeated at once; else BACKOFF, where the
 *                                  owner reads them as well
 *   a BACKOFF after a STATUS with Retry-After: by kube_backoff's rules for
 *   floors
 *
 * A watch that brought newer versions but lived less than a second is resumed
 * at once ten times in a row; then it counts as very short.
 *
 * Useless watches: refused though the server is there, or very short.  From the
 * fourth in a row on a relist follows the BACKOFF, so that a server or a proxy
 * that grants lists only is followed by lists.  401 does not count, for it is
 * the same for lists, nor what never reached the server; and what may end by
 * itself (any other STATUS in place of a watch, such as 5xx, 429 or 403; no
 * head) counts only after a minute, for an outage is to end without a list.  If
 * that list fails as well it was one: watches go on.  So does a watch that was
 * damaged twice.
 *
 * Giving way: a list on demand or for silence closes a watch that could serve.
 * If it fails before anything of it was taken, by whatever but an older
 * version, the watch is resumed, at once unless the server was not asked, and
 * the list is wanted again: at the pace of lists on demand, no sooner than
 * Retry-After or the time that it took, which does not double.
 *
 * Waiting in line: a list that gives way, and has not the turn that the owner
 * deals out, leaves the watch open, or has it opened at its version, until
 * TURN.  Whatever made it a list that has yet to begin: one on demand or for
 * silence, a WatchList that was refused, a list that was too old or is asked
 * for anew.
 *
 * Timers that end a list or the opening of a watch double each time, up to
 * KUBE_TIMEOUT_MAX_MS: what is merely slow must succeed in the end, but for a
 * list that gives way.  The idle timer of an open watch never does.
 *
 * WatchList: a list by ADDED events, ended by the bookmark that says so, whose
 * stream goes on as the watch.  It is asked for in place of a first page at
 * FROM_CACHE or NOT_OLDER (a server holds the latter back until it is true),
 * and never for CONSISTENT, whose version has to be known before its items are
 * taken, nor in place of useless watches.  Once it came to a plain list, that
 * stays so until a list is complete.  If the server grants a plain list though
 * it refused the WatchList or never ended it, that is remembered
 * (kube_server_traits_t), until the server cannot be connected to: it may come
 * back as another version.
 *
 * Silence: a proxy that passes heads and holds bodies back has watches that are
 * good, live their time and say nothing.  After three such in a row, and three
 * minutes, a plain list follows, once in ten minutes at most; but only if the
 * server is known to send bookmarks, without which silence is nothing special.
 *
 * A server that is gone after a WatchList broke off may have died of it: the
 * third time in a row a plain list is asked for once it is back.
 *
 * Rollback (a server restored from a backup): a CONSISTENT list older than our
 * version is not applied; only when a second one, at least KUBE_ROLLBACK_MS
 * later, says so too is it accepted.  One lagging replica cannot cause it.
 *
 * Deviations from client-go are listed in docs/internals/reflector.md.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REFLECTOR_STEP_H
#define KUBE_REFLECTOR_STEP_H


#include "kube_backoff.h"
#include "kube_rv.h"
#include "kube_status.h"


#define KUBE_ROLLBACK_MS         2000
#define KUBE_SHORT_WATCH_MS      1000
#define KUBE_DEADLINE_MARGIN_MS  30000    /* beyond timeoutSeconds */
#define KUBE_LIST_MS             60000    /* no head, no item, no page's end */
#define KUBE_OPEN_MS             30000    /* a watch without a head */
#define KUBE_STREAM_MS           10000    /* a WatchList without a byte */
#define KUBE_STREAM_BROKEN_MAX   3        /* WatchLists without their end */
#define KUBE_TRAITS_MS           3600000  /* what a server lacks is known */
#define KUBE_SECOND_MS           10000    /* between two second requests of
                                             a silence */
#define KUBE_OBJECT_MS           60000    /* an event begun, not complete */
#define KUBE_TIMEOUT_MAX_MS      600000   /* to which LIST and OPEN double */
#define KUBE_RELIST_PACE_MS      10000    /* between lists that a 410 causes */
#define KUBE_CREDENTIALS_PACE_MS 10000    /* between 401 repeated at once */
#define KUBE_DEMAND_FIRST_MS     20000    /* between lists that RELIST asks */
#define KUBE_DEMAND_MAX_MS       60000    /* for: half to all of it, doubling */
#define KUBE_URGENT_FIRST_MS     2000     /* the same, of those that say they */
#define KUBE_URGENT_MAX_MS       8000     /* are urgent */
#define KUBE_SHORT_WATCHES_MAX   10       /* with progress, in a row */
#define KUBE_STALE_LISTS_MAX     5        /* of a lagging replica, in a row */
#define KUBE_PAGES_MAX           100000
#define KUBE_EMPTY_PAGES_MAX     10       /* in a row; no real server does */
#define KUBE_SILENT_WATCHES_MAX  3        /* in a row, before a list */
#define KUBE_SILENT_MS           180000   /* of them together: bookmarks come
                                             once a minute */
#define KUBE_SILENT_LIST_MS      600000   /* between two such lists */
#define KUBE_USELESS_WATCHES_MAX 4        /* in a row, before a list is tried */
#define KUBE_USELESS_MS          60000    /* and for so long, where it may be
                                             an outage */

typedef enum {
    KUBE_REFLECTOR_IDLE = 0,
    KUBE_REFLECTOR_LISTING,
    KUBE_REFLECTOR_STREAMING,   /* the initial events of a WatchList */
    KUBE_REFLECTOR_OPENING,
    KUBE_REFLECTOR_WATCHING,
    KUBE_REFLECTOR_BACKOFF,
    KUBE_REFLECTOR_STOPPED,
    KUBE_REFLECTOR_STATES
} kube_reflector_state_t;

typedef enum {
    KUBE_INPUT_START = 0,     /* rv: resume there; empty: list; floor: no list
                                 may be older, empty: rv's own */
    KUBE_INPUT_SENT,          /* the request leaves now; it may have waited */
    KUBE_INPUT_OPENED,        /* the request was granted */
    KUBE_INPUT_META,          /* the list's version is known: rv; answered by
                                 NONE (go on) or an action (discard it) */
    KUBE_INPUT_ITEM,          /* an item was taken by the FIFO; rv: of a
                                 WatchList's, its own */
    KUBE_INPUT_PAGE,          /* a page ended with a continue token */
    KUBE_INPUT_LIST_DONE,     /* the last page ended; all items were taken */
    KUBE_INPUT_EVENT,         /* rv: of the event, taken by the FIFO */
    KUBE_INPUT_BOOKMARK,      /* rv */
    KUBE_INPUT_ALIVE,         /* something arrived; partial: inside an event */
    KUBE_INPUT_UNREADABLE,    /* an event of which not even type, key and
                                 version can be read; answered by NONE (pass
                                 over it) or an action */
    KUBE_INPUT_STATUS,        /* status: a refusal, or an ERROR event */
    KUBE_INPUT_PROTOCOL,      /* malformed bytes, wrong kind, truncated */
    KUBE_INPUT_CLOSED,        /* the watch ended as HTTP says */
    KUBE_INPUT_FAILED,        /* transport; rc */
    KUBE_INPUT_TIMER,         /* deadline_ms has come */
    KUBE_INPUT_SUSPECT,       /* who answers is silent, and a connection to it
                                 stands */
    KUBE_INPUT_REPLACED,      /* the second watch was granted, and the first is
                                 closed */
    KUBE_INPUT_HEALED,        /* the server can be connected to again */
    KUBE_INPUT_RELIST,        /* reason */
    KUBE_INPUT_TURN,          /* the list that waits for its turn has it */
    KUBE_INPUT_STOP,
    KUBE_INPUTS
} kube_input_kind_t;

typedef enum {
    KUBE_RELIST_EXPIRED = 0,
    KUBE_RELIST_TOO_LARGE_RV,
    KUBE_RELIST_ROOM,         /* room has returned for what was refused */
    KUBE_RELIST_PROTOCOL,
    KUBE_RELIST_SILENT,       /* watches that live and never say a byte */
    KUBE_RELIST_OTHER,
    KUBE_RELIST_REASONS
} kube_relist_reason_t;

/* What is asked of the server by a list. */
typedef enum {
    KUBE_ASK_FROM_CACHE = 0,  /* resourceVersion=0: whatever it has in memory */
    KUBE_ASK_NOT_OLDER,       /* than anything that was taken, by pages */
    KUBE_ASK_UNPAGED,         /* the same in one piece: a token had expired */
    KUBE_ASK_CONSISTENT,      /* resourceVersion="": a quorum read, by pages */
    KUBE_ASK_CONSISTENT_UNPAGED,
    KUBE_ASKS
} kube_list_ask_t;

typedef enum {
    KUBE_NEXT_LIST = 0,
    KUBE_NEXT_WATCH
} kube_reflector_next_t;

typedef struct {
    kube_input_kind_t      kind;
    kube_rv_t              rv;
    kube_rv_t              floor;          /* START */
    const kube_status_t   *status;         /* STATUS */
    kube_rc_t              rc;             /* FAILED */
    kube_str_t             continue_token; /* PAGE: copied */
    kube_relist_reason_t   reason;         /* RELIST */
    bool                   urgent;         /* RELIST */
    bool                   plain;          /* RELIST: by no WatchList */
    bool                   beside;         /* RELIST: the watch may stay open */
    bool                   dropped;        /* RELIST: so is what the watch
                                              tells, until a list is complete */
    bool                   partial;        /* ALIVE */
} kube_input_t;

typedef enum {
    KUBE_ACTION_NONE = 0,
    KUBE_ACTION_LIST,          /* start (the next page of) a list */
    KUBE_ACTION_STREAM,        /* open a WatchList */
    KUBE_ACTION_WATCH,         /* open a watch */
    KUBE_ACTION_SECOND,        /* open one beside the one that is open */
    KUBE_ACTION_BESIDE,        /* start a list beside it: the owner's affair,
                                  no input tells of it */
    KUBE_ACTION_SLEEP,         /* nothing until deadline_ms */
    KUBE_ACTION_CREDENTIALS,   /* read them again, then TIMER at once */
    KUBE_ACTION_STOP
} kube_action_kind_t;

/*
 * LIST, STREAM, WATCH, SLEEP, CREDENTIALS and STOP each mean first: cancel the
 * call in progress, if any.  Strings borrow from the machine until its next
 * input.
 */
typedef struct {
    kube_action_kind_t     kind;
    bool                   first_page;      /* LIST: a new list begins; STREAM:
                                               always */
    bool                   relist;          /* either: not the first ever;
                                               BESIDE: always */
    bool                   rollback;        /* after LIST_DONE: new epoch */
    bool                   synced;          /* after LIST_DONE: list is whole */
    kube_relist_reason_t   reason;          /* either, relist */
    kube_str_t             rv;
    bool                   not_older_than;
    uint32_t               limit;           /* LIST, BESIDE; 0: in one piece */
    kube_str_t             continue_token;
    uint32_t               timeout_s;       /* STREAM, WATCH, SECOND */
    const char            *timeout;         /* after TIMER: what was too slow;
                                               NULL: nothing was */
    bool                   illegal;         /* NONE: see below */
} kube_action_t;

/* Whether lists are asked for as WatchLists. */
typedef enum {
    KUBE_WATCH_LIST_OFF = 0,
    KUBE_WATCH_LIST_AUTO,      /* unless the server is known not to do it */
    KUBE_WATCH_LIST_ON         /* always, before a plain list */
} kube_watch_list_t;

/* What is known of an API server by all its scopes; at first all zero. */
typedef struct {
    bool      no_watch_list;   /* refused, or never ended, and a plain list was
                                  granted */
    uint64_t  learned_ms;      /* that, for the last time */
} kube_server_traits_t;

typedef struct {
    uint32_t               page_size;        /* 0: one piece */
    kube_watch_list_t      watch_list;
    kube_server_traits_t  *traits;           /* borrowed, shared by scopes;
                                                NULL: nothing is remembered */
    uint64_t               watch_timeout_ms; /* drawn from [t, 2t) */
    uint64_t               idle_timeout_ms;
    kube_backoff_conf_t    backoff;
    uint64_t               seed;
    /* NULL, or a row of counters for each state, one for each input: the
       coverage of a test.  Borrowed. */
    uint32_t             (*coverage)[KUBE_INPUTS];
} kube_reflector_conf_t;

/* The list in progress, or the last one. */
typedef struct {
    kube_list_ask_t         ask;            /* of the next one between two */
    kube_rv_t               rv;             /* of its first page */
    char                    token[KUBE_CONTINUE_LEN_MAX];
    size_t                  token_len;
    uint64_t                token_mark;     /* see kube_reflector_circles() */
    unsigned                pages;
    unsigned                empty_pages;    /* in a row */
    unsigned                stale;          /* discarded in a row */
    unsigned                timeouts;       /* in a row */
    bool                    known;          /* rv is of this list */
    bool                    answered;       /* something came for this page */
    bool                    rollback;       /* older, and accepted as such */
    bool                    instead;        /* in place of useless watches */
    bool                    yields;         /* to the watch, if it fails before
                                               anything of it was taken */
    uint64_t                not_before_ms;  /* Retry-After of one that failed */
    bool                    plain;          /* no WatchList, until complete */
    bool                    suspect;        /* one was refused, or not ended */
    unsigned                broken;         /* WatchLists in a row */
    bool                    headless;       /* the last one got no answer */
    bool                    died;           /* the last one broke off */
    unsigned                deaths;         /* of these, the server could not be
                                               connected to then; in a row */
    bool                    bookmarks;      /* the server sends them */
    uint64_t                silent_ms;      /* the last list for silence */
    uint64_t                item_ms;        /* of a WatchList, the last one */
    uint64_t                started_ms;     /* of the last relist */
    uint64_t                rollback_ms;    /* first older CONSISTENT list */
} kube_reflector_list_t;

/* The watch in progress; its timers are those of a WatchList too. */
typedef struct {
    unsigned                moved;          /* events with a newer version */
    unsigned                short_ones;     /* in a row */
    unsigned                timeouts;       /* while OPENING, in a row */
    unsigned                protocol_errors; /* in a row, at one version */
    unsigned                useless;        /* answered, without effect; in a
                                               row */
    uint64_t                useless_ms;     /* the first of them */
    bool                    heard;          /* anything after its head */
    unsigned                silent;         /* not heard, in a row */
    uint64_t                silent_ms;      /* the first of them was opened */
    bool                    unreadable;     /* resumed for that at this
                                               version already */
    uint64_t                opened_ms;
    uint64_t                alive_ms;       /* something arrived last */
    uint64_t                partial_ms;     /* since when inside an event */
    uint64_t                deadline_ms;    /* absolute */
    uint64_t                second_ms;      /* when the last second watch was
                                               asked for, of this silence */
    uint64_t                second_deadline_ms;    /* absolute, of it */
} kube_reflector_watch_t;

/* Lists that may wait: the owner asked for them, or silence did. */
typedef struct {
    bool                    wanted;
    bool                    beside;         /* one beside the watch will do */
    bool                    hasty;          /* an urgent one is among them */
    bool                    dropped;        /* what the watch tells, until one
                                               is complete */
    bool                    queued;         /* one that was to begin had no
                                               turn */
    kube_backoff_t          backoff;
    kube_backoff_t          urgent;
    uint64_t                due_ms;         /* none before this */
    uint64_t                urgent_ms;      /* nor an urgent one */
} kube_reflector_demand_t;

/* Times are KUBE_NEVER where there is none. */
typedef struct {
    kube_reflector_conf_t    conf;
    kube_reflector_state_t   state;
    kube_random_t            random;
    kube_backoff_t           backoff;
    kube_rv_t                rv;            /* last that was taken; len 0 */
    kube_reflector_list_t    list;
    kube_reflector_watch_t   watch;
    kube_reflector_demand_t  demand;
    kube_reflector_next_t    next;          /* after BACKOFF */
    kube_relist_reason_t     reason;        /* of the next list */
    bool                     busy;          /* others list: the owner's, before
                                               each input */
    bool                     listed;        /* a list was ever completed */
    bool                     unconnected;   /* BACKOFF: nothing came
                                                back, but TLS was no trouble */
    bool                     credentials_tried;
    uint64_t                 credentials_ms; /* when they were last; or never */
    uint64_t                 deadline_ms;   /* when TIMER is due */
    const kube_input_t      *input;         /* in hand; NULL between two */
    uint64_t                 now_ms;        /* of the last input */
} kube_reflector_machine_t;

/*
 * What a host sets unless it is told otherwise: pages of 500 and a timeout of
 * watches of 5 min, client-go's; 90 s of silence, half as long again as the
 * minute between two bookmarks; kube_backoff's sleeps.  No traits: it has its
 * own.
 */
kube_reflector_conf_t kube_reflector_conf_defaults(uint64_t seed);

/* Fills m; no memory of its own; done is not needed. */
void kube_reflector_machine_init(kube_reflector_machine_t *m,
    const kube_reflector_conf_t *conf);

/*
 * One input at now_ms (monotonic, never going back), at most one action.  One
 * that cannot come in this state, by the table, changes nothing and is
 * answered by NONE with illegal set: the owner broke the contract.
 */
kube_action_t kube_reflector_input(kube_reflector_machine_t *m,
    const kube_input_t *input, uint64_t now_ms);

/*
 * The newest version anything was taken from, by this process or before it.  A
 * list that broke half-way may be ahead of rv; the next one must not be behind
 * it.  len 0: nothing was.  Borrowed from m.
 */
const kube_rv_t *kube_reflector_floor(const kube_reflector_machine_t *m);

/*
 * Readers see an object of that version that came from elsewhere: no list older
 * than it is to be taken.  Once the version of a list is known nothing changes.
 */
void kube_reflector_raise(kube_reflector_machine_t *m, const kube_rv_t *rv);

/*
 * True: that token has come before, so that the pages have no end.  *mark is
 * the hash of the one that was the last to come after 2^n pages, which is met
 * again once there are more than a circle has.  pages: that ended with a token
 * before this one.
 */
bool kube_reflector_circles(uint64_t *mark, kube_str_t token, unsigned pages,
    uint64_t seed);

/*
 * An item of the list in progress replaces a newer object that is held: the
 * list's version is known, or this one is to prove for the second time that the
 * server was set back.
 */
bool kube_reflector_replaces(const kube_reflector_machine_t *m,
    uint64_t now_ms);

/*
 * True: a list is due that has no turn, and the watch goes on meanwhile.  The
 * owner sees to its place in the line, and says TURN.
 */
bool kube_reflector_waits(const kube_reflector_machine_t *m, uint64_t now_ms);

/* The same of a list while a pause is between two watches: no TURN is said. */
bool kube_reflector_pauses(const kube_reflector_machine_t *m, uint64_t now_ms);

/*
 * The list beside the watch was refused, with Retry-After: the next one, beside
 * it or not, is not asked for before.
 */
void kube_reflector_refused_beside(kube_reflector_machine_t *m,
    uint64_t floor_ms, uint64_t now_ms);


#endif /* KUBE_REFLECTOR_STEP_H */

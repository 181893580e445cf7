/*
 * kube_reflector_impl - what the files of a reflector share.  Each uses those
 * above it in this list alone, and none but these includes it:
 *
 *   kube_reflector_report.c  counters, gauges, errors; the machine's inputs
 *   kube_reflector_result.c  what a result of the call means
 *   kube_reflector_refill.c  a list beside an open watch
 *   kube_reflector.c         calls, turns, timers
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REFLECTOR_IMPL_H
#define KUBE_REFLECTOR_IMPL_H


#include "kube_hash_set.h"
#include "kube_reflector.h"
#include "kube_zone_counters.h"


/* One page of a list, or a watch, in progress. */
typedef struct {
    kube_call_t            *handle;       /* NULL: none */
    bool                    watch;
    bool                    stream;       /* a WatchList that is no watch yet */
    bool                    listed;       /* the bytes in hand ended its list */
    kube_rv_t               began;        /* a watch: the version then */
    uint64_t                sent_ms;
    uint64_t                opened_ms;    /* or KUBE_NEVER */
    uint64_t                events;
    bool                    starved;      /* a watch: no memory for what it
                                             said; it ends of that */
} reflector_call_t;

/* The list in progress, over all its pages. */
typedef struct {
    bool                    begun;        /* its LIST_BEGIN is in the FIFO */
    uint64_t                items;
    uint64_t                started_ms;
} reflector_list_t;

/* A list beside an open watch (kube_reflector_refill.c). */
typedef struct {
    kube_call_t            *handle;       /* the page in hand; NULL: none */
    bool                    waiting;      /* for its turn to list */
    bool                    turn;
    bool                    begun;        /* its REFILL_BEGIN is in the FIFO */
    bool                    known;        /* its version is not older than rv */
    bool                    replace;      /* the next one is to be an ordinary
                                             list */
    bool                    again;        /* one that was to begin did not: it
                                             is to be asked for anew */
    kube_delta_kind_t       owes;         /* the mark that the FIFO had no
                                             memory for; SYNC: none */
    kube_rv_t               rv;           /* the floor, as it began */
    uint32_t                limit;
    unsigned                pages;        /* that ended with a token */
    unsigned                empty_pages;  /* of them, the last in a row */
    uint64_t                items;
    uint64_t                started_ms;
    uint64_t                progress_ms;
    uint64_t                unread_ms;    /* since when nothing of it is read;
                                             KUBE_NEVER: it is */
    kube_hash_set_t         touched;      /* keys of events since it began */
    size_t                  token_len;
    uint64_t                token_mark;   /* see kube_reflector_circles() */
    char                    token[KUBE_CONTINUE_LEN_MAX];
} reflector_refill_t;

/* The last error, until it is asked for. */
typedef struct {
    bool                    pending;
    const char             *reason;
    char                    message[KUBE_MESSAGE_LEN_MAX];
} reflector_error_t;

struct kube_reflector_s {
    kube_alloc_t               alloc;
    kube_reflector_options_t   options;
    kube_lister_watcher_t      lw;
    kube_reflector_machine_t   machine;
    kube_action_t              action;    /* to be done; NONE: nothing */
    kube_log_t                 log;
    reflector_call_t           call;
    reflector_call_t           second;    /* a watch beside a silent one */
    reflector_list_t           list;
    reflector_refill_t         refill;
    reflector_error_t          error;
    kube_suffering_t           suffering; /* its message is error.message */
    bool                       starved;   /* the last watch that was open ended
                                             for want of memory, and nothing
                                             was taken since */
    bool                       waiting;   /* action is a list that waits for
                                             its turn, or a WatchList until
                                             lists are allowed; no call */
    bool                       lined;     /* a list is wanted that has a place
                                             in the line; the watch goes on */
    bool                       turn;      /* it was got for a list; a slow one
                                             may have lost it since */
    bool                       paused;    /* the FIFO was full */
    bool                       rollback;
    uint64_t                   healed;    /* of the source, when last asked */
    uint64_t                   missing_ms;    /* KUBE_NEVER, or when a list was
                                                 sent: 404, not counted yet */
    unsigned                   missing;       /* such lists that count */
    uint64_t                   contact_ms;    /* 0, or of the last evidence
                                                 that all is known */
    uint64_t                   now_ms;    /* of the call we are in */
    char                       label[128];    /* for the log */
};


/* Where there is a zone. */
void kube_reflector_count(kube_reflector_t *r, kube_counter_t counter,
    uint64_t n);
void kube_reflector_gauge(kube_reflector_t *r, kube_counter_t counter,
    uint64_t value);
void kube_reflector_observe(kube_reflector_t *r, kube_histogram_id_t histogram,
    uint64_t value);

/* The word of the metrics, the status and the log for a counter. */
const char *kube_reflector_reason(kube_counter_t counter);

/* Gives the machine an input; what it answers waits in r->action. */
void kube_reflector_feed(kube_reflector_t *r, const kube_input_t *input);

/* Both texts are for people; the message is copied, the reason is constant. */
void kube_reflector_show_error(kube_reflector_t *r, const char *reason,
    const char *message);

/* What the call is to people: there is no watch before one is open. */
const char *kube_reflector_doing(const kube_reflector_t *r);

/* The scope does not follow, for another attempt failed or none is answered. */
void kube_reflector_suffer(kube_reflector_t *r, kube_cause_t cause,
    uint64_t since_ms);

/* Counts, shows and logs the failure of a call that got no answer or end. */
void kube_reflector_show_failure(kube_reflector_t *r, kube_rc_t rc,
    const char *text);

/* The same, and tells the machine. */
void kube_reflector_failed(kube_reflector_t *r, kube_rc_t rc,
    const char *text);

/* Evidence that all is known: shown where it was in the zone before. */
void kube_reflector_contact(kube_reflector_t *r);

/* A watch is open: the scope follows, unless memory is wanting for an event. */
void kube_reflector_watching(kube_reflector_t *r);

/* There was memory for an event, or for a list. */
void kube_reflector_fed(kube_reflector_t *r);

/* Takes one result of r->call, which borrows from the lister-watcher. */
void kube_reflector_result(kube_reflector_t *r, const kube_result_t *result);

/* Queues an item of a refill, as a change that nobody waits for. */
kube_rc_t kube_reflector_queue_item(kube_reflector_t *r,
    const kube_result_t *item)  KUBE_MUST_CHECK;

/* True: a call that is late, or NULL, has a refusal that did not end. */
bool kube_reflector_cut(kube_reflector_t *r, kube_call_t *handle);

/* What counts a refusal. */
kube_counter_t kube_reflector_verdict(kube_verdict_t verdict);

/* Carries out BESIDE: it begins when its turn has come; once at a time. */
void kube_reflector_refill(kube_reflector_t *r, const kube_action_t *action);

/* What the watch has told of is the watch's: no refill may say what it is. */
void kube_reflector_touch(kube_reflector_t *r, const kube_result_t *result);

/* Takes of it what has arrived and what is due; a bounded piece at a time. */
void kube_reflector_run_refill(kube_reflector_t *r);

/* Ends it early, if it is there: a list that replaces begins, or nothing. */
void kube_reflector_end_refill(kube_reflector_t *r);

/* As kube_reflector_deadline(), for it alone. */
uint64_t kube_reflector_refill_deadline(const kube_reflector_t *r);


#endif /* KUBE_REFLECTOR_IMPL_H */

/*
 * kube_list_watch_internal - what the parts of kube_list_watch share:
 * kube_list_watch.c (life, actions, timers), kube_list_watch_stream.c (head,
 * bytes, end) and kube_list_watch_object.c (items).  For nobody else.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LIST_WATCH_INTERNAL_H
#define KUBE_LIST_WATCH_INTERNAL_H


#include "kube_decode.h"
#include "kube_frame.h"
#include "kube_list_watch.h"


/* Bytes of one delivery that wait while the FIFO is full. */
#define KUBE_REST_BYTES_MAX  (4u << 20)


/* One exchange: a page of a list, or a watch. */
typedef struct {
    kube_exchange_t  *handle;         /* NULL: not started, or it is gone */
    kube_frame_t     *frame;
    bool              open;           /* its bytes and its end still count */
    bool              watch;
    bool              first_page;
    bool              paused;
    bool              ended;          /* done() came while paused */
    bool              kind_seen;
    bool              meta_seen;
    bool              end_seen;
    kube_rc_t         ended_rc;
    int               code;           /* 0: no head yet */
    uint32_t          retry_after_s;
    char             *status;         /* KUBE_STATUS_BYTES_MAX; NULL: none */
    size_t            status_len;
    void             *rest;           /* unparsed bytes while paused */
    size_t            rest_cap;
    size_t            rest_len;
    size_t            token_len;
    char              token[KUBE_CONTINUE_LEN_MAX];
    uint64_t          events;
    uint64_t          opened_ms;      /* the 200; 0: none */
    uint64_t          progress_ms;    /* last complete object, or between */
} lw_exchange_t;

/* The list in progress, over all its pages. */
typedef struct {
    bool              begun;          /* its LIST_BEGIN is in the FIFO */
    uint64_t          items;
    uint64_t          started_ms;
} lw_list_t;

/* The last error, until it is told. */
typedef struct {
    bool              pending;
    char              reason[64];
    char              message[KUBE_MESSAGE_LEN_MAX];
} lw_error_t;

struct kube_list_watch_s {
    kube_alloc_t             alloc;
    kube_list_watch_conf_t   conf;
    kube_reflector_t         reflector;
    kube_action_t            action;     /* to be done; NONE: nothing */
    kube_arena_t             arena;      /* of one item */
    kube_log_t               log;
    lw_exchange_t            x;
    lw_list_t                list;
    lw_error_t               error;
    bool                     waiting;    /* for its turn to list */
    bool                     turn;
    bool                     listed;
    bool                     rollback;
    bool                     reread;     /* credentials: TLS was refused */
    uint64_t                 now_ms;     /* of the call we are in */
    char                     label[128]; /* for the log */
};


extern const kube_exchange_handler_t  kube_list_watch_handler;

/* One input for the reflector; what it answers waits for process(). */
void kube_lw_step(kube_list_watch_t *lw, const kube_input_t *input);
void kube_lw_step_kind(kube_list_watch_t *lw, kube_input_kind_t kind);

/* Goes on with what was kept while paused. */
void kube_lw_unpause(kube_list_watch_t *lw);

/* One item of the frame; what it means is fed, or lw->action is set. */
void kube_lw_item(kube_list_watch_t *lw, const kube_frame_item_t *item);

/* The end of the exchange by an error: counted, logged, shown, and fed. */
void kube_lw_failed(kube_list_watch_t *lw, kube_rc_t rc, const char *text);
void kube_lw_protocol(kube_list_watch_t *lw, const char *text);

/* By an answer other than 200, or by an ERROR event (code 0). */
void kube_lw_status(kube_list_watch_t *lw, int code, kube_str_t body);

/* For the status page until the next one; text is escaped already. */
void kube_lw_show_error(kube_list_watch_t *lw, const char *reason,
    const char *text);

void kube_lw_count(kube_list_watch_t *lw, kube_counter_t counter, uint64_t n);
void kube_lw_set(kube_list_watch_t *lw, kube_counter_t counter,
    uint64_t value);


#endif /* KUBE_LIST_WATCH_INTERNAL_H */

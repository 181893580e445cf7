/*
 * kube_list_watch - the byte side of one scope: turns an exchange's head and
 * bytes into deltas for the FIFO and inputs for the reflector, and the
 * reflector's actions into requests.
 *
 * It knows frames, objects and Status; it decides nothing (the reflector
 * does) and stores nothing (the indexer does).  One exchange at a time.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LIST_WATCH_H
#define KUBE_LIST_WATCH_H


#include "kube_client.h"
#include "kube_delta_fifo.h"
#include "kube_reflector.h"
#include "kube_zone_stats.h"


typedef struct kube_list_watch_s  kube_list_watch_t;

typedef struct {
    kube_io_t               io;
    kube_delta_fifo_t      *fifo;         /* borrowed */
    kube_zone_t            *zone;         /* borrowed: counters */
    kube_log_sink_t         sink;
    unsigned                slot;
    kube_resource_t         resource;
    kube_str_t              ns;           /* copied */
    kube_str_t              label_selector;   /* copied */
    kube_str_t              field_selector;   /* copied */
    size_t                  object_bytes_max;
    kube_reflector_conf_t   reflector;
    /*
     * Asked before a first page is sent: one LIST at a time per server.
     * False: asked again by every process(), until true or list_over, which
     * also tells that a turn is not wanted any more.
     */
    bool                  (*list_turn)(void *ctx, unsigned slot);
    void                  (*list_over)(void *ctx, unsigned slot);
    /* An error to show: reason and message (escaped).  From process() only. */
    void                  (*error)(void *ctx, unsigned slot, kube_str_t reason,
                              kube_str_t message);
    void                   *ctx;
} kube_list_watch_conf_t;

/* A started object must be complete, and a list move on, within this. */
#define KUBE_OBJECT_MS  60000

/* NULL: out of memory. */
kube_list_watch_t *kube_list_watch_create(const kube_alloc_t *alloc,
    const kube_list_watch_conf_t *conf)  KUBE_MUST_CHECK;
void kube_list_watch_destroy(kube_list_watch_t *lw);

/* rv: resume the watch there; len 0: list. */
void kube_list_watch_start(kube_list_watch_t *lw, const kube_rv_t *rv,
    uint64_t now_ms);

/* STOP: no exchange is left.  Only destroy may follow. */
void kube_list_watch_stop(kube_list_watch_t *lw, uint64_t now_ms);

/*
 * What the handlers of the exchange left to do (requests are never sent from
 * a handler), timers, a list whose turn has come, resuming a paused socket.
 */
void kube_list_watch_process(kube_list_watch_t *lw, uint64_t now_ms);

/* When to process() at the latest; 0: at once; UINT64_MAX: when told. */
uint64_t kube_list_watch_deadline(const kube_list_watch_t *lw);

/* Asks for a list as soon as what is in progress allows it. */
void kube_list_watch_relist(kube_list_watch_t *lw,
    kube_relist_reason_t reason, uint64_t now_ms);

/*
 * The version up to which everything has been given to the FIFO; len 0:
 * none.  Publish it only when the FIFO holds nothing of the scope.
 */
const kube_rv_t *kube_list_watch_rv(const kube_list_watch_t *lw);

/* A complete list was given to the FIFO since start. */
bool kube_list_watch_listed(const kube_list_watch_t *lw);

/* True once after a rollback was accepted: a new epoch. */
bool kube_list_watch_rollback(kube_list_watch_t *lw);


#endif /* KUBE_LIST_WATCH_H */

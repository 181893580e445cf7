/*
 * kube_list_turn - one LIST at a time per API server, first come first served.
 *
 * It is politeness, not a lock: a list that makes no progress for
 * KUBE_LIST_TURN_MS, or is not over after KUBE_LIST_TURN_MAX_MS, loses its turn
 * as soon as another one waits, and goes on beside that.  So one list that
 * hangs, or drips, holds up no other for longer.
 *
 * A WatchList takes no turn: its server sends it at the reader's pace.  The
 * turn is of the whole list, all its pages, but of a list beside a watch each
 * page has its own.  Who waits may have a watch open meanwhile.  Scopes are
 * numbered from 0.
 * It knows no list and calls nobody: who waits asks again at the deadline.
 * Owned by kube_informer, kube_factory or a shared informer that is alone, used
 * by their reflectors; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LIST_TURN_H
#define KUBE_LIST_TURN_H


#include <stdbool.h>
#include <stdint.h>

#include "kube_limits.h"


#define KUBE_LIST_TURN_MS      5000
#define KUBE_LIST_TURN_MAX_MS  30000

typedef struct {
    unsigned  holder;                     /* KUBE_SCOPES_MAX: nobody */
    uint64_t  held_until_ms;              /* no list begins before */
    uint64_t  since_ms;                   /* the holder has it */
    uint64_t  progress_ms;                /* of the holder */
    unsigned  waiting[KUBE_SCOPES_MAX];   /* in order */
    unsigned  waiting_n;
} kube_list_turn_t;

/* Fills turn; no memory of its own; done is not needed. */
void kube_list_turn_init(kube_list_turn_t *turn);

/* Nobody gets a turn before until_ms: for the damping of a crash loop. */
void kube_list_turn_hold(kube_list_turn_t *turn, uint64_t until_ms);

/*
 * True: the scope has the turn now, and keeps it until it gives it.  False: it
 * waits, behind those that have asked before; it asks again at the deadline,
 * or gives up waiting by kube_list_turn_give().
 */
bool kube_list_turn_take(kube_list_turn_t *turn, unsigned scope,
    uint64_t now_ms);

/* True while the scope has the turn: it may have lost it to another one. */
bool kube_list_turn_has(const kube_list_turn_t *turn, unsigned scope);

/* The scope's list has moved on.  Nothing happens to one that lost its turn. */
void kube_list_turn_progress(kube_list_turn_t *turn, unsigned scope,
    uint64_t now_ms);

/* Another list of the scope goes on with its turn: in a time of its own. */
void kube_list_turn_anew(kube_list_turn_t *turn, unsigned scope,
    uint64_t now_ms);

/* The list of the scope is over, or is not wanted any more. */
void kube_list_turn_give(kube_list_turn_t *turn, unsigned scope);

/*
 * When a waiting scope should ask again: in the past where it would get the
 * turn now, KUBE_NEVER where another one has to go before it.
 */
uint64_t kube_list_turn_deadline(const kube_list_turn_t *turn,
    unsigned scope);


#endif /* KUBE_LIST_TURN_H */

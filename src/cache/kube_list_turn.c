/*
 * kube_list_turn - one LIST at a time per API server, first come first served.
 *
 * It holds numbers only; what a list is, is up to kube_reflector.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_base.h"
#include "kube_list_turn.h"


#define LIST_TURN_NOBODY  KUBE_SCOPES_MAX


void
kube_list_turn_init(kube_list_turn_t *turn)
{
    memset(turn, 0, sizeof(kube_list_turn_t));

    turn->holder = LIST_TURN_NOBODY;
}


void
kube_list_turn_hold(kube_list_turn_t *turn, uint64_t until_ms)
{
    turn->held_until_ms = until_ms;
}


/* The place in the queue; waiting_n: none. */
static unsigned
list_turn_place(const kube_list_turn_t *turn, unsigned scope)
{
    unsigned  i;

    for (i = 0; i < turn->waiting_n && turn->waiting[i] != scope; i++) {
        /* void */
    }

    return i;
}


static void
list_turn_leave(kube_list_turn_t *turn, unsigned scope)
{
    unsigned  i;

    i = list_turn_place(turn, scope);

    if (i < turn->waiting_n) {
        turn->waiting_n--;
        memmove(&turn->waiting[i], &turn->waiting[i + 1],
                (turn->waiting_n - i) * sizeof(unsigned));
    }
}


/* When the holder, if there is one, loses the turn to who waits. */
static uint64_t
list_turn_end(const kube_list_turn_t *turn)
{
    uint64_t  idle_ms, end_ms;

    idle_ms = turn->progress_ms + KUBE_LIST_TURN_MS;
    end_ms = turn->since_ms + KUBE_LIST_TURN_MAX_MS;

    return (idle_ms < end_ms) ? idle_ms : end_ms;
}


/* In the queue, at that place. */
static bool
list_turn_is_next(const kube_list_turn_t *turn, unsigned place,
    uint64_t now_ms)
{
    return place == 0
           && now_ms >= turn->held_until_ms
           && (turn->holder == LIST_TURN_NOBODY
               || now_ms >= list_turn_end(turn));
}


bool
kube_list_turn_has(const kube_list_turn_t *turn, unsigned scope)
{
    return turn->holder == scope;
}


bool
kube_list_turn_take(kube_list_turn_t *turn, unsigned scope, uint64_t now_ms)
{
    unsigned  place;

    if (turn->holder == scope) {
        return true;
    }

    place = list_turn_place(turn, scope);

    if (place == turn->waiting_n) {
        turn->waiting[turn->waiting_n++] = scope;
    }

    if (!list_turn_is_next(turn, place, now_ms)) {
        return false;
    }

    list_turn_leave(turn, scope);
    turn->holder = scope;
    turn->since_ms = now_ms;
    turn->progress_ms = now_ms;

    return true;
}


void
kube_list_turn_progress(kube_list_turn_t *turn, unsigned scope,
    uint64_t now_ms)
{
    if (turn->holder == scope) {
        turn->progress_ms = now_ms;
    }
}


void
kube_list_turn_anew(kube_list_turn_t *turn, unsigned scope, uint64_t now_ms)
{
    if (turn->holder == scope) {
        turn->since_ms = now_ms;
        turn->progress_ms = now_ms;
    }
}


void
kube_list_turn_give(kube_list_turn_t *turn, unsigned scope)
{
    list_turn_leave(turn, scope);

    if (turn->holder == scope) {
        turn->holder = LIST_TURN_NOBODY;
    }
}


uint64_t
kube_list_turn_deadline(const kube_list_turn_t *turn, unsigned scope)
{
    uint64_t  at_ms;

    if (list_turn_place(turn, scope) != 0) {
        return KUBE_NEVER;
    }

    at_ms = (turn->holder == LIST_TURN_NOBODY) ? 0 : list_turn_end(turn);

    return (at_ms > turn->held_until_ms) ? at_ms : turn->held_until_ms;
}

/*
 * kube_reflector_step_impl - what the files of the machine share.  Each uses
 * those above it in this file alone, and none but these includes it:
 *
 *   kube_reflector_step_ask.c    what is asked for next: a list, a watch, a
 *                                pause; and the timers of each
 *   kube_reflector_step_watch.c  the steps of OPENING and WATCHING
 *   kube_reflector_step_list.c   those of LISTING and STREAMING
 *   kube_reflector_step.c        those of any state, and the table
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REFLECTOR_STEP_IMPL_H
#define KUBE_REFLECTOR_STEP_IMPL_H


#include "kube_reflector_step.h"


typedef struct {
    bool             consistent;
    bool             paged;
    kube_list_ask_t  token_expired;
    kube_list_ask_t  refused;
} kube_step_ask_t;

/*
 * What each kind of list asks for, and what is asked for where the server
 * refuses that: its continue token has expired, or its version is not there
 * (410, too large, invalid).  A kind that leads to itself is asked for again
 * after a pause only.
 */
extern const kube_step_ask_t  kube_step_asks[KUBE_ASKS];

/* No action: it goes on. */
extern const kube_action_t  kube_step_nothing;


/* What is asked for next: the body says of each when it is the thing to do. */

uint64_t kube_step_watch_deadline(const kube_reflector_machine_t *m);
kube_action_t kube_step_progress(kube_reflector_machine_t *m);
kube_action_t kube_step_page_action(kube_reflector_machine_t *m);
uint32_t kube_step_draw_timeout(kube_reflector_machine_t *m,
    uint64_t *deadline_ms);
kube_action_t kube_step_stream_progress(kube_reflector_machine_t *m);
kube_action_t kube_step_list(kube_reflector_machine_t *m);
kube_action_t kube_step_yielding_list(kube_reflector_machine_t *m);
bool kube_step_list_is_due(const kube_reflector_machine_t *m);
bool kube_step_beside_is_due(const kube_reflector_machine_t *m);
kube_action_t kube_step_beside(kube_reflector_machine_t *m);
kube_action_t kube_step_watch(kube_reflector_machine_t *m);
kube_action_t kube_step_resume(kube_reflector_machine_t *m);
kube_action_t kube_step_sleep(kube_reflector_machine_t *m,
    kube_reflector_next_t next, bool unreachable, uint64_t floor_ms);
kube_reflector_next_t kube_step_same(kube_reflector_machine_t *m);
kube_action_t kube_step_refused(kube_reflector_machine_t *m,
    uint64_t floor_ms);
kube_action_t kube_step_pause(kube_reflector_machine_t *m);
bool kube_step_watch_lived(kube_reflector_machine_t *m);
kube_reflector_next_t kube_step_useless(kube_reflector_machine_t *m,
    bool outage);
void kube_step_broken(kube_reflector_machine_t *m);
bool kube_step_is_silent(kube_reflector_machine_t *m);
kube_action_t kube_step_end(kube_reflector_machine_t *m, kube_rc_t rc);
bool kube_step_is_unauthorized(kube_reflector_machine_t *m);
kube_action_t kube_step_timed_out(kube_reflector_machine_t *m,
    const char *what);
bool kube_step_may_ask_twice(kube_reflector_machine_t *m);


/* Steps: m->input is what happened; named by it and, where that means different
   things, by the state. */

kube_action_t kube_step_watch_opened(kube_reflector_machine_t *m);
kube_action_t kube_step_version(kube_reflector_machine_t *m);
kube_action_t kube_step_watch_alive(kube_reflector_machine_t *m);
kube_action_t kube_step_unreadable(kube_reflector_machine_t *m);
kube_action_t kube_step_watch_status(kube_reflector_machine_t *m);
kube_action_t kube_step_open_protocol(kube_reflector_machine_t *m);
kube_action_t kube_step_watch_protocol(kube_reflector_machine_t *m);
kube_action_t kube_step_watch_timer(kube_reflector_machine_t *m);
kube_action_t kube_step_suspect(kube_reflector_machine_t *m);
kube_action_t kube_step_replaced(kube_reflector_machine_t *m);

kube_action_t kube_step_list_opened(kube_reflector_machine_t *m);
kube_action_t kube_step_meta(kube_reflector_machine_t *m);
kube_action_t kube_step_item(kube_reflector_machine_t *m);
kube_action_t kube_step_page(kube_reflector_machine_t *m);
kube_action_t kube_step_list_done(kube_reflector_machine_t *m);
kube_action_t kube_step_list_alive(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_opened(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_event(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_item(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_meta(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_done(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_unreadable(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_protocol(kube_reflector_machine_t *m);
kube_action_t kube_step_list_status(kube_reflector_machine_t *m);
kube_action_t kube_step_list_suspect(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_status(kube_reflector_machine_t *m);
kube_action_t kube_step_stream_timer(kube_reflector_machine_t *m);


#endif /* KUBE_REFLECTOR_STEP_IMPL_H */

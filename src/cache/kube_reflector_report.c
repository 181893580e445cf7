/*
 * kube_reflector_report - what a reflector counts, shows and says of itself,
 * and the one way to its step machine.
 *
 * It decides nothing and makes no call, but that credentials are read again
 * after TLS has failed.  For the files of kube_reflector alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "kube_reflector_impl.h"


void
kube_reflector_count(kube_reflector_t *r, kube_counter_t counter, uint64_t n)
{
    if (r->options.zone != NULL) {
        kube_zone_scope_add(r->options.zone, r->options.scope, counter, n);
    }
}


void
kube_reflector_gauge(kube_reflector_t *r, kube_counter_t counter,
    uint64_t value)
{
    if (r->options.zone != NULL) {
        kube_zone_scope_set(r->options.zone, r->options.scope, counter, value);
    }
}


void
kube_reflector_observe(kube_reflector_t *r, kube_histogram_id_t histogram,
    uint64_t value)
{
    if (r->options.zone != NULL) {
        kube_zone_histogram_observe(r->options.zone, histogram,
                                    r->options.resource, value);
    }
}


/* The word of the metrics, the status and the log for a counter. */
const char *
kube_reflector_reason(kube_counter_t counter)
{
    return kube_counter_info(counter)->value;
}


void
kube_reflector_feed(kube_reflector_t *r, const kube_input_t *input)
{
    kube_action_t  action;

    /* the turn of a list beside the watch may be lost to another one's */

    r->machine.busy = !r->turn
                      || !kube_list_turn_has(r->options.turn,
                                             r->options.scope);

    action = kube_reflector_input(&r->machine, input, r->now_ms);

    if (action.illegal) {
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_ERROR, KUBE_EV_INTERNAL,
                       "input %d of %s in state %d", (int) input->kind,
                       r->label, (int) r->machine.state);
    }

    if (action.kind != KUBE_ACTION_NONE) {
        r->action = action;
    }
}


void
kube_reflector_show_error(kube_reflector_t *r, const char *reason,
    const char *message)
{
    r->error.pending = true;
    r->error.reason = reason;

    (void) snprintf(r->error.message, sizeof(r->error.message), "%s",
                    message);
}


/* What the call is to people: there is no watch before one is open. */
const char *
kube_reflector_doing(const kube_reflector_t *r)
{
    return r->call.stream ? "WatchList of"
           : !r->call.watch ? "list of"
           : (r->call.opened_ms == KUBE_NEVER) ? "request to follow"
           : "watch of";
}


/* The scope does not follow, for another attempt failed or none is answered. */
void
kube_reflector_suffer(kube_reflector_t *r, kube_cause_t cause,
    uint64_t since_ms)
{
    if (r->suffering.cause == KUBE_CAUSES) {
        r->suffering.since_ms = since_ms;
        r->suffering.attempts = 0;
    }

    r->suffering.cause = cause;
    r->suffering.message = r->error.message;
    r->suffering.remedy = NULL;
}


/* Counts, shows and logs the failure of a call that got no answer or end. */
void
kube_reflector_show_failure(kube_reflector_t *r, kube_rc_t rc, const char *text)
{
    const char      *reason;
    kube_counter_t   counter;

    counter = kube_counter_of_rc(rc);
    reason = kube_reflector_reason(counter);

    if (text[0] == '\0') {
        text = kube_rc_text(rc);
    }

    kube_reflector_count(r, counter, 1);
    kube_reflector_show_error(r, reason, text);

    kube_reflector_suffer(r, (rc == KUBE_TLS) ? KUBE_CAUSE_TLS
                             : (rc == KUBE_NO_CREDENTIALS)
                               ? KUBE_CAUSE_CREDENTIALS
                               : KUBE_CAUSE_UNREACHABLE, r->now_ms);
    r->suffering.attempts++;

    /* the server is not to blame */

    r->suffering.remedy = (rc == KUBE_IO) ? "raise \"worker_rlimit_nofile\""
                          : (rc == KUBE_NOMEM) ? "give this host more memory"
                          : NULL;

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_REQUEST_FAILED,
                   "%s %s failed: %s: %s", kube_reflector_doing(r), r->label,
                   reason, text);
}


void
kube_reflector_failed(kube_reflector_t *r, kube_rc_t rc, const char *text)
{
    kube_reflector_show_failure(r, rc, text);

    r->call.starved = (rc == KUBE_NOMEM);

    if (rc == KUBE_TLS) {
        r->lw.credentials(r->lw.ctx, r->now_ms);
    }

    kube_reflector_feed(r, &(kube_input_t) { .kind = (rc == KUBE_PROTO)
                                                     ? KUBE_INPUT_PROTOCOL
                                                     : KUBE_INPUT_FAILED,
                                             .rc = rc });
}


void
kube_reflector_fed(kube_reflector_t *r)
{
    if (r->starved) {
        r->starved = false;
        r->suffering.cause = KUBE_CAUSES;
    }
}


static bool
report_was_current(const kube_reflector_t *r)
{
    return r->options.zone != NULL
           && kube_zone_scope_counter(r->options.zone, r->options.scope,
                                      KUBE_COUNTER_GAUGE_CONTACT_MS)
              != 0;
}


/* What was listed only is not in the zone yet: it is as old as before. */
void
kube_reflector_contact(kube_reflector_t *r)
{
    r->contact_ms = r->now_ms;

    if (report_was_current(r)) {
        kube_reflector_gauge(r, KUBE_COUNTER_GAUGE_CONTACT_MS, r->contact_ms);
    }
}


void
kube_reflector_current(kube_reflector_t *r)
{
    if (!report_was_current(r)) {
        kube_reflector_gauge(r, KUBE_COUNTER_GAUGE_CONTACT_MS, r->contact_ms);
    }
}


/* Without memory for an event: a watch that is resumed begins with it. */
void
kube_reflector_watching(kube_reflector_t *r)
{
    if (!r->starved) {
        r->suffering.cause = KUBE_CAUSES;
    }

    kube_reflector_count(r, KUBE_COUNTER_WATCHES, 1);
    kube_reflector_contact(r);

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_WATCH,
                   "watch of %s from %.*s is open", r->label,
                   (int) r->call.began.len, r->call.began.data);
}

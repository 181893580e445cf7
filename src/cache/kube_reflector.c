/*
 * kube_reflector - the life of one scope: what its lister-watcher yields
 * becomes deltas for the FIFO and inputs for the step machine, and the
 * machine's actions become calls.
 *
 * It knows neither bytes nor connections, and decides nothing itself.  Called
 * by kube_informer.
 *
 * An action waits in r->action until it is carried out, and while it waits no
 * input but STOP and RELIST is fed.  Order matters in three places: LIST_BEGIN
 * is in the FIFO before the first item, a delta before the machine hears of
 * its version, and SYNC before LIST_DONE.  Where the FIFO has no memory the
 * call is given up: the version has not moved, so nothing is lost.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kube_reflector.h"
#include "kube_zone_counters.h"
#include "kube_zone_damping.h"
#include "kube_zone_scope.h"


/* Actions in one process(): credentials, request, failure, request, .. */
#define REFLECTOR_ACTIONS_MAX  8

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
} reflector_call_t;

/* The list in progress, over all its pages. */
typedef struct {
    bool                    begun;        /* its LIST_BEGIN is in the FIFO */
    uint64_t                items;
    uint64_t                started_ms;
} reflector_list_t;

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
    reflector_error_t          error;
    kube_suffering_t           suffering; /* its message is error.message */
    bool                       waiting;   /* for its turn to list */
    bool                       turn;
    bool                       paused;    /* the FIFO was full */
    bool                       rollback;
    uint64_t                   healed;    /* of the source, when last asked */
    uint64_t                   missing_ms;    /* KUBE_NEVER, or when a list was
                                                 sent: 404, not counted yet */
    unsigned                   missing;       /* such lists that count */
    uint64_t                   now_ms;    /* of the call we are in */
    char                       label[128];    /* for the log */
};

static const kube_meta_t  reflector_no_meta;

/* The zone's counters, by what makes them grow. */
#define XX(name, family, value, counts)  [counts] = KUBE_COUNTER_##name,

static const kube_counter_t  reflector_relists[] = {
    KUBE_COUNTER_RELIST_MAP(XX)
};

static const kube_counter_t  reflector_events[] = {
    KUBE_COUNTER_EVENT_MAP(XX)
};

static const kube_counter_t  reflector_surprises[] = {
    KUBE_COUNTER_SURPRISE_MAP(XX)
};

static const kube_counter_t  reflector_verdicts[] = {
    [KUBE_VERDICT_OK] = KUBE_COUNTER_ERRORS_OTHER,
    KUBE_COUNTER_VERDICT_MAP(XX)
};

#undef XX

/* What a refusal means; all others: the server cannot be followed. */
static const struct {
    kube_verdict_t  verdict;
    kube_cause_t    cause;
} reflector_causes[] = {
    { KUBE_VERDICT_EXPIRED, KUBE_CAUSES },
    { KUBE_VERDICT_TOO_LARGE_RV, KUBE_CAUSES },
    { KUBE_VERDICT_UNAUTHORIZED, KUBE_CAUSE_UNAUTHORIZED },
    { KUBE_VERDICT_FORBIDDEN, KUBE_CAUSE_FORBIDDEN }
};

static const kube_counter_t  reflector_refusals[] = {
    [KUBE_REFUSAL_NONE] = KUBE_COUNTERS,
    [KUBE_REFUSAL_TOO_LARGE] = KUBE_COUNTER_SKIPPED_TOO_LARGE,
    [KUBE_REFUSAL_MALFORMED] = KUBE_COUNTER_SKIPPED_MALFORMED,
    [KUBE_REFUSAL_CRASHED] = KUBE_COUNTER_SKIPPED_CRASHED
};

static_assert(sizeof(reflector_relists) / sizeof(kube_counter_t)
              == KUBE_RELIST_REASONS, "each reason has a counter");
static_assert(sizeof(reflector_events) / sizeof(kube_counter_t)
              == KUBE_WATCH_UNKNOWN, "each type of event has a counter");
static_assert(sizeof(reflector_surprises) / sizeof(kube_counter_t)
              == KUBE_SURPRISES, "each surprise has a counter");
static_assert(sizeof(reflector_verdicts) / sizeof(kube_counter_t)
              == KUBE_VERDICTS, "each verdict has a counter");


static void
reflector_count(kube_reflector_t *r, kube_counter_t counter, uint64_t n)
{
    if (r->options.zone != NULL) {
        kube_zone_scope_add(r->options.zone, r->options.scope, counter, n);
    }
}


static void
reflector_gauge(kube_reflector_t *r, kube_counter_t counter, uint64_t value)
{
    if (r->options.zone != NULL) {
        kube_zone_scope_set(r->options.zone, r->options.scope, counter, value);
    }
}


static void
reflector_observe(kube_reflector_t *r, kube_histogram_id_t histogram,
    uint64_t value)
{
    if (r->options.zone != NULL) {
        kube_zone_histogram_observe(r->options.zone, histogram,
                                    r->options.resource, value);
    }
}


/* The word of the metrics, the status and the log for a counter. */
static const char *
reflector_reason(kube_counter_t counter)
{
    return kube_counter_info(counter)->value;
}


static void
reflector_input(kube_reflector_t *r, const kube_input_t *input)
{
    kube_action_t  action;

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


static void
reflector_show_error(kube_reflector_t *r, const char *reason,
    const char *message)
{
    r->error.pending = true;
    r->error.reason = reason;

    (void) snprintf(r->error.message, sizeof(r->error.message), "%s",
                    message);
}


/* What the call is to people: there is no watch before one is open. */
static const char *
reflector_doing(const kube_reflector_t *r)
{
    return r->call.stream ? "WatchList of"
           : !r->call.watch ? "list of"
           : (r->call.opened_ms == KUBE_NEVER) ? "request to follow"
           : "watch of";
}


/* The scope does not follow, for another attempt failed or none is answered. */
static void
reflector_suffer(kube_reflector_t *r, kube_cause_t cause, uint64_t since_ms)
{
    if (r->suffering.cause == KUBE_CAUSES) {
        r->suffering.since_ms = since_ms;
        r->suffering.attempts = 0;
    }

    r->suffering.cause = cause;
    r->suffering.message = r->error.message;
}


/* Counts, shows and logs the failure of a call that got no answer or end. */
static void
reflector_error(kube_reflector_t *r, kube_rc_t rc, const char *text)
{
    const char      *reason;
    kube_counter_t   counter;

    counter = kube_counter_of_rc(rc);
    reason = reflector_reason(counter);

    if (text[0] == '\0') {
        text = kube_rc_text(rc);
    }

    reflector_count(r, counter, 1);
    reflector_show_error(r, reason, text);

    reflector_suffer(r, (rc == KUBE_TLS) ? KUBE_CAUSE_TLS
                        : (rc == KUBE_NO_CREDENTIALS) ? KUBE_CAUSE_CREDENTIALS
                        : KUBE_CAUSE_UNREACHABLE, r->now_ms);
    r->suffering.attempts++;

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_REQUEST_FAILED,
                   "%s %s failed: %s: %s", reflector_doing(r), r->label,
                   reason, text);
}


static void
reflector_failed(kube_reflector_t *r, kube_rc_t rc, const char *text)
{
    reflector_error(r, rc, text);

    if (rc == KUBE_TLS) {
        r->lw.credentials(r->lw.ctx, r->now_ms);
    }

    reflector_input(r, &(kube_input_t) { .kind = (rc == KUBE_PROTO)
                                                 ? KUBE_INPUT_PROTOCOL
                                                 : KUBE_INPUT_FAILED,
                                         .rc = rc });
}


static void
reflector_on_status(kube_reflector_t *r, const kube_status_t *status)
{
    size_t          i;
    kube_cause_t    cause;
    kube_counter_t  counter;

    counter = reflector_verdicts[status->verdict];
    cause = KUBE_CAUSE_UNREACHABLE;

    if (!r->call.watch && status->verdict == KUBE_VERDICT_NOT_FOUND) {
        r->missing_ms = r->call.sent_ms;
    }

    for (i = 0; i < sizeof(reflector_causes) / sizeof(reflector_causes[0]);
         i++)
    {
        if (reflector_causes[i].verdict == status->verdict) {
            cause = reflector_causes[i].cause;
        }
    }

    if (r->call.opened_ms != KUBE_NEVER) {
        reflector_count(r, KUBE_COUNTER_EVENTS_ERROR, 1);
    }

    reflector_count(r, counter, 1);

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_REQUEST_FAILED,
                   "%s %s was answered %d %s: %s%s", reflector_doing(r),
                   r->label, status->code, kube_verdict_text(status->verdict),
                   status->message,
                   status->retry_after_s ? " (with Retry-After)" : "");

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_STATUS,
                                         .status = status });

    /* a server that has no WatchList is in order; whether a list is forbidden
       the plain one says */

    if (r->call.stream && r->action.kind == KUBE_ACTION_LIST) {
        return;
    }

    if (cause == KUBE_CAUSE_FORBIDDEN) {
        reflector_gauge(r, KUBE_COUNTER_GAUGE_FORBIDDEN, 1);
    }

    reflector_show_error(r, kube_verdict_text(status->verdict),
                         status->message);

    if (cause != KUBE_CAUSES) {
        reflector_suffer(r, cause, r->now_ms);
        r->suffering.attempts++;
    }

    /* it has no other way to ask left: it does not follow */

    if (cause == KUBE_CAUSES && !r->call.watch
        && r->action.kind == KUBE_ACTION_SLEEP)
    {
        reflector_suffer(r, KUBE_CAUSE_UNREACHABLE, r->now_ms);
        r->suffering.attempts++;
    }
}


/* Writes a key, safe to print. */
static const char *
reflector_key(const kube_meta_t *meta, char *dst, size_t size)
{
    size_t  n;

    n = kube_str_escape(dst, size, meta->ns);

    if (n + 2 <= size) {
        dst[n++] = '/';
        (void) kube_str_escape(dst + n, size - n, meta->name);
    }

    return dst;
}


/* Queues a delta that has no object: a key that is gone or refused, a mark. */
static kube_rc_t
reflector_put(kube_reflector_t *r, kube_delta_kind_t kind,
    const kube_meta_t *meta, const char *reason)
{
    return kube_delta_fifo_put(r->options.fifo,
                               &(kube_delta_t) {
                                   .kind = kind,
                                   .scope = r->options.scope,
                                   .resource = r->options.resource,
                                   .ns = meta->ns,
                                   .name = meta->name,
                                   .rv = meta->rv,
                                   .reason = kube_str(reason),
                                   .uid_hash = kube_uid_hash(meta->uid),
                                   .read_ms = r->now_ms
                               });
}


/*
 * Counts an object that cannot be held.  If its key is known the object is
 * named, so that the version may move past it.
 */
static kube_rc_t
reflector_refuse(kube_reflector_t *r, kube_refusal_t refusal,
    const kube_meta_t *meta, const char *what)
{
    char             key[KUBE_KEY_LEN_MAX + 1];
    kube_counter_t   counter;

    counter = reflector_refusals[refusal];
    reflector_count(r, counter, 1);

    if (meta->name.len == 0) {
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                       "an object of %s was skipped: %s", r->label, what);
        return KUBE_OK;
    }

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                   "%s of %s was skipped: %s",
                   reflector_key(meta, key, sizeof(key)), r->label, what);

    return reflector_put(r, KUBE_DELTA_REFUSED, meta,
                         reflector_reason(counter));
}


/* Queues an object, as the transform wants it. */
static kube_rc_t
reflector_put_object(kube_reflector_t *r, kube_delta_kind_t kind,
    const kube_object_t *object)
{
    kube_rc_t      rc;
    kube_meta_t    meta;
    kube_object_t  changed;

    if (r->options.transform != NULL) {
        changed = *object;
        meta = *kube_object_meta(object);
        rc = r->options.transform(r->options.transform_ctx, &changed);

        if (rc == KUBE_NOMEM) {
            return rc;
        }

        if (rc != KUBE_OK) {
            return reflector_refuse(r, KUBE_REFUSAL_MALFORMED, &meta,
                                    "the transform refused it");
        }

        changed.resource = object->resource;
        changed.u.meta = meta;
        object = &changed;
    }

    return kube_delta_fifo_object(r->options.fifo, kind, r->options.scope,
                                  object,
                                  r->call.stream ? KUBE_NEVER : r->now_ms);
}


/* Queues what an item or an event says of its object. */
static kube_rc_t
reflector_queue(kube_reflector_t *r, kube_delta_kind_t kind,
    const kube_result_t *result)
{
    char                key[KUBE_KEY_LEN_MAX + 1];
    const kube_meta_t  *meta;

    meta = kube_object_meta(&result->object);

    if (result->surprise != KUBE_SURPRISE_NONE) {
        reflector_count(r, reflector_surprises[result->surprise], 1);
    }

    if (result->refusal != KUBE_REFUSAL_NONE) {
        return reflector_refuse(r, result->refusal, meta, result->what);
    }

    if (kind == KUBE_DELTA_DELETED) {
        return reflector_put(r, kind, meta, NULL);
    }

    if (result->dropped != 0) {
        reflector_count(r, KUBE_COUNTER_SKIPPED_ENDPOINTS, result->dropped);
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                       "%u malformed parts of %s of %s were left out",
                       (unsigned) result->dropped,
                       reflector_key(meta, key, sizeof(key)), r->label);
    }

    return reflector_put_object(r, kind, &result->object);
}


/* False: the FIFO has no memory, and the list is given up. */
static bool
reflector_begin_list(kube_reflector_t *r)
{
    if (r->list.begun) {
        return true;
    }

    if (reflector_put(r, KUBE_DELTA_LIST_BEGIN, &reflector_no_meta, NULL)
        != KUBE_OK)
    {
        reflector_failed(r, KUBE_NOMEM, "");
        return false;
    }

    r->list.begun = true;

    return true;
}


static void
reflector_on_meta(kube_reflector_t *r, const kube_rv_t *rv)
{
    const kube_rv_t  *ours;

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_META, .rv = *rv });

    if (r->action.kind == KUBE_ACTION_NONE) {
        (void) reflector_begin_list(r);
        return;
    }

    ours = &r->machine.rv;

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN, KUBE_EV_LIST,
                   "a list of %s at %.*s is older than %.*s: not taken",
                   r->label, (int) rv->len, rv->data, (int) ours->len,
                   ours->data);
}


static void
reflector_on_item(kube_reflector_t *r, const kube_result_t *result)
{
    kube_rc_t  rc;

    /* before its version is known a list may be older than what we have */

    if (!r->list.begun
        && (r->machine.rv.len != 0 || r->machine.list.rv.len != 0))
    {
        reflector_failed(r, KUBE_PROTO,
                         "a list with items before its metadata");
        return;
    }

    if (!reflector_begin_list(r)) {
        return;
    }

    r->list.items++;
    rc = reflector_queue(r, KUBE_DELTA_REPLACED, result);

    if (rc != KUBE_OK) {
        reflector_failed(r, rc, "");
        return;
    }

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_ITEM });
}


/* The version of an event that the FIFO has taken, or of a bookmark. */
static void
reflector_on_version(kube_reflector_t *r, kube_input_kind_t kind,
    const kube_rv_t *rv)
{
    const kube_rv_t  *ours;

    r->call.events++;
    reflector_gauge(r, KUBE_COUNTER_GAUGE_LAST_EVENT_MS, r->now_ms);

    ours = &r->machine.rv;

    if (rv->len != 0 && kube_rv_cmp(rv, ours) < 0) {
        reflector_count(r, KUBE_COUNTER_ERRORS_OTHER, 1);
        reflector_show_error(r, reflector_reason(KUBE_COUNTER_ERRORS_OTHER),
                             "an event older than the last one");
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN,
                       KUBE_EV_REQUEST_FAILED,
                       "watch of %s went back from %.*s to %.*s", r->label,
                       (int) ours->len, ours->data, (int) rv->len, rv->data);
    }

    reflector_input(r, &(kube_input_t) { .kind = kind, .rv = *rv });
}


static void
reflector_on_event(kube_reflector_t *r, const kube_result_t *result)
{
    kube_rc_t  rc;

    if (result->type != KUBE_WATCH_UNKNOWN) {
        reflector_count(r, reflector_events[result->type], 1);
    }

    /* an older event is not applied: the machine asks for a list */

    if (result->rv.len == 0
        || kube_rv_cmp(&result->rv, &r->machine.rv) >= 0)
    {
        rc = reflector_queue(r, (result->type == KUBE_WATCH_DELETED)
                                ? KUBE_DELTA_DELETED : KUBE_DELTA_UPDATED,
                             result);

        if (rc != KUBE_OK) {
            reflector_failed(r, rc, "");
            return;
        }
    }

    reflector_on_version(r, KUBE_INPUT_EVENT, &result->rv);
}


static void
reflector_on_unreadable(kube_reflector_t *r, const char *what)
{
    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_UNREADABLE });

    if (r->action.kind != KUBE_ACTION_NONE) {
        reflector_error(r, KUBE_PROTO, what);
        return;
    }

    (void) reflector_refuse(r, KUBE_REFUSAL_MALFORMED, &reflector_no_meta,
                            what);
}


/* The scope follows from now on. */
static void
reflector_watching(kube_reflector_t *r)
{
    r->suffering.cause = KUBE_CAUSES;

    reflector_count(r, KUBE_COUNTER_WATCHES, 1);
    reflector_gauge(r, KUBE_COUNTER_GAUGE_CONTACT_MS, r->now_ms);

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_WATCH,
                   "watch of %s from %.*s is open", r->label,
                   (int) r->call.began.len, r->call.began.data);
}


static bool
reflector_has_no_watch_list(const kube_reflector_t *r)
{
    const kube_server_traits_t  *traits;

    traits = r->options.step.traits;

    return traits != NULL && traits->no_watch_list;
}


static void
reflector_on_opened(kube_reflector_t *r)
{
    bool  known;

    r->call.opened_ms = r->now_ms;
    r->missing = 0;
    reflector_gauge(r, KUBE_COUNTER_GAUGE_FORBIDDEN, 0);

    if (r->call.watch) {
        reflector_watching(r);
    }

    /* a list that is answered ends a silence, but follows nothing yet */

    if (r->suffering.attempts == 0) {
        r->suffering.cause = KUBE_CAUSES;
    }

    known = reflector_has_no_watch_list(r);
    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_OPENED });

    if (!known && reflector_has_no_watch_list(r)) {
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_NOTICE, KUBE_EV_LIST,
                       "the API server grants lists of %s, but no WatchList: "
                       "it is not asked for one again", r->label);
    }
}


static void
reflector_on_alive(kube_reflector_t *r, const kube_result_t *result)
{
    if (r->call.watch) {

        if (!r->call.listed) {
            reflector_count(r, KUBE_COUNTER_EVENT_BYTES, result->size_bytes);
        }

        r->call.listed = false;
        reflector_gauge(r, KUBE_COUNTER_GAUGE_CONTACT_MS, r->now_ms);
    }

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_ALIVE,
                                         .partial = result->partial });
}


/* Marks the end of a complete list in the FIFO, then tells the machine. */
static void
reflector_list_done(kube_reflector_t *r)
{
    if (reflector_put(r, KUBE_DELTA_SYNC, &reflector_no_meta, NULL)
        != KUBE_OK)
    {
        reflector_failed(r, KUBE_NOMEM, "");
        return;
    }

    reflector_observe(r, KUBE_HISTOGRAM_LIST_DURATION,
                      (r->now_ms - r->list.started_ms) * 1000);
    reflector_observe(r, KUBE_HISTOGRAM_ITEMS_PER_LIST, r->list.items);

    reflector_gauge(r, KUBE_COUNTER_GAUGE_CONTACT_MS, r->now_ms);
    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_LIST_DONE });

    r->rollback = (r->rollback || r->action.rollback);
}


/*
 * What a WatchList begins with goes the way of events, for it has no version
 * until its end: where a newer object is held the older is passed over.
 */
static void
reflector_on_initial(kube_reflector_t *r, const kube_result_t *result)
{
    bool       added;
    kube_rc_t  rc;

    if (!reflector_begin_list(r)) {
        return;
    }

    added = (result->type == KUBE_WATCH_ADDED);
    r->list.items += added;

    rc = reflector_queue(r, (result->type == KUBE_WATCH_DELETED)
                            ? KUBE_DELTA_DELETED : KUBE_DELTA_UPDATED,
                         result);

    if (rc != KUBE_OK) {
        reflector_failed(r, rc, "");
        return;
    }

    reflector_input(r, &(kube_input_t) { .kind = added ? KUBE_INPUT_ITEM
                                                       : KUBE_INPUT_EVENT,
                                         .rv = result->rv });
}


/* The list of a WatchList is whole: its stream is a watch from now on. */
static void
reflector_on_initial_end(kube_reflector_t *r, const kube_rv_t *rv)
{
    if (rv->len == 0) {
        reflector_failed(r, KUBE_PROTO, "a WatchList without a version");
        return;
    }

    reflector_on_meta(r, rv);

    if (r->action.kind == KUBE_ACTION_NONE) {
        reflector_list_done(r);
    }

    if (r->action.kind != KUBE_ACTION_NONE) {
        return;
    }

    r->call.stream = false;
    r->call.watch = true;
    r->call.listed = true;
    r->call.began = *rv;
    r->call.opened_ms = r->now_ms;

    reflector_watching(r);
}


static void
reflector_on_end(kube_reflector_t *r, const kube_result_t *result)
{
    if (result->rc != KUBE_OK) {
        reflector_failed(r, result->rc, result->text);
        return;
    }

    if (r->call.watch || r->call.stream) {
        reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_CLOSED });
        return;
    }

    if (result->continue_token.len == 0) {
        reflector_list_done(r);
        return;
    }

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_PAGE,
                                         .continue_token
                                             = result->continue_token });

    if (r->action.kind == KUBE_ACTION_SLEEP) {
        reflector_error(r, KUBE_PROTO, "a list whose pages have no end");
    }
}


static void
reflector_result(kube_reflector_t *r, const kube_result_t *result)
{
    if (result->kind != KUBE_RESULT_ALIVE) {
        kube_list_turn_progress(r->options.turn, r->options.scope, r->now_ms);
    }

    switch (result->kind) {

    case KUBE_RESULT_OPENED:
        reflector_on_opened(r);
        return;

    case KUBE_RESULT_META:
        reflector_on_meta(r, &result->rv);
        return;

    case KUBE_RESULT_ITEM:
        reflector_on_item(r, result);
        return;

    case KUBE_RESULT_EVENT:

        if (r->call.stream) {
            reflector_on_initial(r, result);

        } else {
            reflector_on_event(r, result);
        }

        return;

    case KUBE_RESULT_BOOKMARK:

        if (!r->call.stream) {
            reflector_count(r, KUBE_COUNTER_EVENTS_BOOKMARK, 1);
            reflector_on_version(r, KUBE_INPUT_BOOKMARK, &result->rv);

        } else if (result->initial_events_end) {
            reflector_on_initial_end(r, &result->rv);
        }

        return;

    case KUBE_RESULT_UNREADABLE:
        reflector_on_unreadable(r, result->what);
        return;

    case KUBE_RESULT_ALIVE:
        reflector_on_alive(r, result);
        return;

    case KUBE_RESULT_STATUS:
        reflector_on_status(r, result->status);
        return;

    case KUBE_RESULT_END:
        reflector_on_end(r, result);
    }
}


static void
reflector_end_second(kube_reflector_t *r)
{
    if (r->second.handle != NULL) {
        r->lw.cancel(r->lw.ctx, r->second.handle);
        r->second.handle = NULL;
    }
}


/*
 * Takes what the call yields until there is nothing more, an action follows
 * from it, or the FIFO is full.
 */
static void
reflector_poll(kube_reflector_t *r)
{
    kube_result_t  result;

    if (r->paused && kube_delta_fifo_low(r->options.fifo)) {
        r->paused = false;

        /* it was not the source that was silent */

        if (r->call.handle != NULL && r->call.opened_ms != KUBE_NEVER) {
            reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_ALIVE });
        }
    }

    while (r->call.handle != NULL && r->action.kind == KUBE_ACTION_NONE) {

        if (kube_delta_fifo_high(r->options.fifo)) {
            r->paused = true;
        }

        if (r->paused
            || r->lw.next(r->lw.ctx, r->call.handle, &result) != KUBE_OK)
        {
            return;
        }

        /* the first to speak wins; an end is no word */

        if (result.kind != KUBE_RESULT_END) {
            reflector_end_second(r);
        }

        reflector_result(r, &result);
        kube_hand_leave(r->options.hand);
    }
}


/* Cancels the call in progress, if any; a watch that was open is observed. */
static void
reflector_end_call(kube_reflector_t *r)
{
    uint64_t           ms;
    reflector_call_t  *call;

    call = &r->call;

    if (call->handle != NULL) {
        r->lw.cancel(r->lw.ctx, call->handle);
        call->handle = NULL;
    }

    if (!call->watch || call->opened_ms == KUBE_NEVER) {
        return;
    }

    ms = r->now_ms - call->opened_ms;

    reflector_observe(r, KUBE_HISTOGRAM_WATCH_DURATION, ms * 1000);
    reflector_observe(r, KUBE_HISTOGRAM_ITEMS_PER_WATCH, call->events);

    if (ms < KUBE_SHORT_WATCH_MS
        && kube_rv_cmp(&call->began, &r->machine.rv) == 0)
    {
        reflector_count(r, KUBE_COUNTER_SHORT_WATCHES, 1);
    }

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_WATCH_CLOSED,
                   "watch of %s ended after %llu ms and %llu events",
                   r->label, (unsigned long long) ms,
                   (unsigned long long) call->events);

    call->opened_ms = KUBE_NEVER;
}


/* A watch, or what will be one, begins in that call. */
static void
reflector_watch_call(kube_reflector_t *r, reflector_call_t *call,
    const kube_action_t *action)
{
    memset(call, 0, sizeof(reflector_call_t));

    call->watch = (action->kind != KUBE_ACTION_STREAM);
    call->stream = !call->watch;
    call->began = r->machine.rv;
    call->sent_ms = r->now_ms;
    call->opened_ms = KUBE_NEVER;

    call->handle = r->lw.watch(r->lw.ctx, &(kube_list_options_t) {
                                   .rv = action->rv,
                                   .initial_events = call->stream,
                                   .not_older_than = action->not_older_than,
                                   .timeout_s = action->timeout_s
                               }, r->now_ms);
}


/* The second watch was granted: it is the watch, and the first is closed. */
static void
reflector_replace(kube_reflector_t *r)
{
    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_WATCH,
                   "watch of %s is silent, but a second one was answered",
                   r->label);

    reflector_end_call(r);

    r->call = r->second;
    r->call.opened_ms = r->now_ms;
    r->second.handle = NULL;

    reflector_watching(r);
    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_REPLACED });
}


/* Opens a second watch beside one that is silent; looks what became of it. */
static void
reflector_run_second(kube_reflector_t *r)
{
    kube_result_t  result;

    if (r->machine.state != KUBE_REFLECTOR_WATCHING
        || r->action.kind != KUBE_ACTION_NONE
        || r->paused)
    {
        return;
    }

    if (r->second.handle == NULL) {

        if (r->lw.suspect == NULL
            || !r->lw.suspect(r->lw.ctx, r->call.handle))
        {
            return;
        }

        reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_SUSPECT });

        if (r->action.kind == KUBE_ACTION_SECOND) {
            reflector_watch_call(r, &r->second, &r->action);
            memset(&r->action, 0, sizeof(kube_action_t));
        }

        return;
    }

    if (r->lw.next(r->lw.ctx, r->second.handle, &result) == KUBE_OK) {

        if (result.kind == KUBE_RESULT_OPENED) {
            reflector_replace(r);

        } else {
            /* refused, or cut off: the first goes on as if it had been alone */
            reflector_end_second(r);
        }

    } else if (r->now_ms - r->second.sent_ms >= KUBE_OPEN_MS) {
        reflector_end_second(r);
    }
}


/* Tells the machine, while it waits for that, that the source is back. */
static void
reflector_look_for_healing(kube_reflector_t *r)
{
    uint64_t  healed;

    if (r->lw.healed == NULL
        || r->machine.state != KUBE_REFLECTOR_BACKOFF
        || r->action.kind != KUBE_ACTION_NONE)
    {
        return;
    }

    healed = r->lw.healed(r->lw.ctx);

    if (healed != r->healed) {
        r->healed = healed;
        reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_HEALED });
    }
}


static void
reflector_count_list(kube_reflector_t *r, const kube_action_t *action)
{
    kube_counter_t  counter;

    r->list.begun = false;
    r->list.items = 0;
    r->list.started_ms = r->now_ms;

    reflector_count(r, KUBE_COUNTER_LISTS, 1);

    if (!action->relist) {
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_LIST,
                       "%s of %s", (action->kind == KUBE_ACTION_STREAM)
                       ? "WatchList" : "list", r->label);
        return;
    }

    counter = reflector_relists[action->reason];
    reflector_count(r, KUBE_COUNTER_RELISTS, 1);
    reflector_count(r, counter, 1);

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_NOTICE, KUBE_EV_RELIST,
                   "%s of %s again (%s), %s \"%.*s\"",
                   (action->kind == KUBE_ACTION_STREAM) ? "WatchList" : "list",
                   r->label, reflector_reason(counter),
                   action->not_older_than ? "not older than" : "at",
                   (int) action->rv.len,
                   action->rv.len ? action->rv.data : "");
}


static void
reflector_call(kube_reflector_t *r, const kube_action_t *action)
{
    reflector_call_t  *call;

    call = &r->call;

    if (r->lw.healed != NULL) {
        r->healed = r->lw.healed(r->lw.ctx);
    }

    if (action->kind != KUBE_ACTION_WATCH && action->first_page) {
        reflector_count_list(r, action);
    }

    if (action->kind == KUBE_ACTION_WATCH && r->second.handle != NULL) {

        /* the first ended before the second was answered */

        r->call = r->second;
        r->second.handle = NULL;

    } else if (action->kind != KUBE_ACTION_LIST) {
        reflector_watch_call(r, call, action);

    } else {
        memset(call, 0, sizeof(reflector_call_t));

        call->sent_ms = r->now_ms;
        call->opened_ms = KUBE_NEVER;

        call->handle = r->lw.list(r->lw.ctx, &(kube_list_options_t) {
                                      .rv = action->rv,
                                      .not_older_than = action->not_older_than,
                                      .limit = action->limit,
                                      .continue_token = action->continue_token
                                  }, r->now_ms);
    }

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_SENT });

    if (call->handle == NULL) {
        reflector_failed(r, KUBE_NOMEM, "");
    }
}


/*
 * Carries out the action; false: a list has to wait for its turn, or a
 * WatchList until lists are allowed.
 */
static bool
reflector_act(kube_reflector_t *r)
{
    kube_action_t  action;

    action = r->action;

    reflector_end_call(r);

    if (action.kind != KUBE_ACTION_WATCH) {
        reflector_end_second(r);
    }

    if (action.kind != KUBE_ACTION_LIST) {

        if (r->turn || r->waiting) {
            kube_list_turn_give(r->options.turn, r->options.scope);
        }

        r->turn = false;
        r->waiting = (action.kind == KUBE_ACTION_STREAM
                      && r->now_ms < r->options.turn->held_until_ms);

        if (r->waiting) {
            return false;
        }

    } else if (action.first_page) {

        /* that of the list before it may be lost */

        r->turn = kube_list_turn_take(r->options.turn, r->options.scope,
                                      r->now_ms);
        r->waiting = !r->turn;

        if (r->waiting) {
            return false;
        }
    }

    memset(&r->action, 0, sizeof(kube_action_t));

    switch (action.kind) {

    case KUBE_ACTION_LIST:
    case KUBE_ACTION_STREAM:
    case KUBE_ACTION_WATCH:
        reflector_call(r, &action);
        return true;

    case KUBE_ACTION_CREDENTIALS:
        r->lw.credentials(r->lw.ctx, r->now_ms);
        reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_TIMER });
        return true;

    default:
        return true;
    }
}


static void
reflector_timer(kube_reflector_t *r)
{
    bool  watching;

    if (r->paused
        || r->action.kind != KUBE_ACTION_NONE
        || r->now_ms < r->machine.deadline_ms)
    {
        return;
    }

    watching = (r->machine.state == KUBE_REFLECTOR_WATCHING);

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_TIMER });

    if (r->action.timeout != NULL) {
        reflector_error(r, KUBE_TIMEOUT, r->action.timeout);

    } else if (watching && r->action.kind == KUBE_ACTION_WATCH) {
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_IDLE,
                       "watch of %s was silent or is due, opened again",
                       r->label);
    }
}


static void
reflector_gauges(kube_reflector_t *r)
{
    bool      backoff;
    uint64_t  held_ms;

    static const kube_scope_state_t  states[] = {
        [KUBE_REFLECTOR_IDLE] = KUBE_STATE_IDLE,
        [KUBE_REFLECTOR_LISTING] = KUBE_STATE_LISTING,
        [KUBE_REFLECTOR_STREAMING] = KUBE_STATE_STREAMING,
        [KUBE_REFLECTOR_OPENING] = KUBE_STATE_WATCHING,
        [KUBE_REFLECTOR_WATCHING] = KUBE_STATE_WATCHING,
        [KUBE_REFLECTOR_BACKOFF] = KUBE_STATE_BACKOFF,
        [KUBE_REFLECTOR_STOPPED] = KUBE_STATE_STOPPED
    };

    static_assert(sizeof(states) / sizeof(states[0]) == KUBE_REFLECTOR_STATES,
                  "each state is shown as one");

    held_ms = r->options.turn->held_until_ms;

    if (r->options.zone != NULL && r->waiting && r->now_ms < held_ms) {
        kube_zone_damped(r->options.zone, r->options.scope, 1, held_ms);
        return;
    }

    backoff = (r->machine.state == KUBE_REFLECTOR_BACKOFF);

    reflector_gauge(r, KUBE_COUNTER_GAUGE_STATE,
                    (uint64_t) states[r->machine.state]);
    reflector_gauge(r, KUBE_COUNTER_GAUGE_RETRY_AT_MS,
                    backoff ? r->machine.deadline_ms : 0);
    reflector_gauge(r, KUBE_COUNTER_GAUGE_WATCH_OPEN,
                    r->machine.state == KUBE_REFLECTOR_WATCHING
                    ? r->machine.watch.opened_ms : 0);
}


/* When a request without an answer becomes trouble; KUBE_NEVER. */
static uint64_t
reflector_silence(const kube_reflector_t *r)
{
    if (r->call.handle == NULL
        || r->call.opened_ms != KUBE_NEVER
        || r->suffering.cause != KUBE_CAUSES)
    {
        return KUBE_NEVER;
    }

    return r->call.sent_ms + KUBE_UNREACHABLE_MS;
}


/* Carries out actions and takes results until nothing is left to do now. */
static void
reflector_run(kube_reflector_t *r)
{
    unsigned  n;

    for (n = 0; n < REFLECTOR_ACTIONS_MAX; n++) {

        if (r->action.kind != KUBE_ACTION_NONE && !reflector_act(r)) {
            return;
        }

        reflector_poll(r);
        reflector_run_second(r);
        reflector_look_for_healing(r);
        reflector_timer(r);

        if (r->action.kind == KUBE_ACTION_NONE) {
            return;
        }
    }
}


void
kube_reflector_process(kube_reflector_t *r, uint64_t now_ms)
{
    r->now_ms = now_ms;

    reflector_run(r);

    if (now_ms >= reflector_silence(r)) {
        reflector_show_error(r, reflector_reason(KUBE_COUNTER_ERRORS_TIMEOUT),
                             "a request gets no answer");
        reflector_suffer(r, KUBE_CAUSE_UNREACHABLE, r->call.sent_ms);
    }

    reflector_gauges(r);
}


uint64_t
kube_reflector_deadline(const kube_reflector_t *r)
{
    uint64_t  silence_ms, deadline_ms;

    if (r->waiting && r->action.kind == KUBE_ACTION_STREAM) {
        return r->options.turn->held_until_ms;
    }

    if (r->waiting) {
        return kube_list_turn_deadline(r->options.turn, r->options.scope);
    }

    if (r->action.kind != KUBE_ACTION_NONE) {
        return 0;
    }

    if (r->paused) {
        return kube_delta_fifo_low(r->options.fifo) ? 0 : KUBE_NEVER;
    }

    if (r->call.handle != NULL && r->lw.ready(r->lw.ctx, r->call.handle)) {
        return 0;
    }

    silence_ms = reflector_silence(r);
    deadline_ms = (silence_ms < r->machine.deadline_ms)
                  ? silence_ms : r->machine.deadline_ms;

    if (r->second.handle == NULL) {
        return deadline_ms;
    }

    if (r->lw.ready(r->lw.ctx, r->second.handle)) {
        return 0;
    }

    return (r->second.sent_ms + KUBE_OPEN_MS < deadline_ms)
           ? r->second.sent_ms + KUBE_OPEN_MS : deadline_ms;
}


void
kube_reflector_start(kube_reflector_t *r, const kube_rv_t *rv,
    uint64_t now_ms)
{
    r->now_ms = now_ms;

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_START,
                                         .rv = *rv });
}


void
kube_reflector_relist(kube_reflector_t *r, kube_relist_reason_t reason,
    bool urgent, uint64_t now_ms)
{
    r->now_ms = now_ms;

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                         .reason = reason,
                                         .urgent = urgent });
}


void
kube_reflector_relist_plainly(kube_reflector_t *r, uint64_t now_ms)
{
    r->now_ms = now_ms;

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_RELIST,
                                         .reason = KUBE_RELIST_OTHER,
                                         .urgent = true,
                                         .plain = true });
}


void
kube_reflector_stop(kube_reflector_t *r, uint64_t now_ms)
{
    r->now_ms = now_ms;

    reflector_input(r, &(kube_input_t) { .kind = KUBE_INPUT_STOP });
    (void) reflector_act(r);
    reflector_gauges(r);
}


const kube_rv_t *
kube_reflector_rv(const kube_reflector_t *r)
{
    return &r->machine.rv;
}


bool
kube_reflector_rollback(kube_reflector_t *r)
{
    bool  rollback;

    rollback = r->rollback;
    r->rollback = false;

    return rollback;
}


const kube_suffering_t *
kube_reflector_suffering(const kube_reflector_t *r)
{
    return &r->suffering;
}


bool
kube_reflector_missing(kube_reflector_t *r, uint64_t beside_ms)
{
    if (r->missing_ms != KUBE_NEVER
        && beside_ms != 0
        && r->missing_ms >= beside_ms)
    {
        r->missing++;
    }

    r->missing_ms = KUBE_NEVER;

    return r->missing >= KUBE_MISSING_LISTS;
}


const char *
kube_reflector_label(const kube_reflector_t *r)
{
    return r->label;
}


bool
kube_reflector_error(kube_reflector_t *r, kube_str_t *reason,
    kube_str_t *message)
{
    if (!r->error.pending) {
        return false;
    }

    r->error.pending = false;

    *reason = kube_str(r->error.reason);
    *message = kube_str(r->error.message);

    return true;
}


kube_reflector_t *
kube_reflector_create(const kube_alloc_t *alloc,
    const kube_reflector_options_t *options, const kube_lister_watcher_t *lw)
{
    kube_str_t         ns;
    kube_reflector_t  *r;

    r = kube_zalloc(alloc, sizeof(kube_reflector_t));
    if (r == NULL) {
        lw->destroy(lw->ctx);
        return NULL;
    }

    ns = options->ns;

    r->alloc = *alloc;
    r->options = *options;
    r->options.ns = KUBE_STR_NULL;
    r->lw = *lw;
    r->call.opened_ms = KUBE_NEVER;
    r->missing_ms = KUBE_NEVER;
    r->suffering.cause = KUBE_CAUSES;
    r->suffering.message = r->error.message;

    kube_log_init(&r->log, options->sink);
    kube_reflector_machine_init(&r->machine, &options->step);

    (void) snprintf(r->label, sizeof(r->label), "%s%s%.*s",
                    kube_resource_text(options->resource), ns.len ? " in " : "",
                    (int) ns.len, ns.len ? ns.data : "");

    return r;
}


void
kube_reflector_destroy(kube_reflector_t *r)
{
    if (r == NULL) {
        return;
    }

    if (r->call.handle != NULL) {
        r->lw.cancel(r->lw.ctx, r->call.handle);
    }

    reflector_end_second(r);

    r->lw.destroy(r->lw.ctx);
    kube_free(&r->alloc, r);
}

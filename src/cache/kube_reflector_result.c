/*
 * kube_reflector_result - what a lister-watcher yields becomes deltas for the
 * FIFO and inputs for the step machine.
 *
 * Order matters in three places: LIST_BEGIN is in the FIFO before the first
 * item, a delta before the machine hears of its version, and SYNC before
 * LIST_DONE.  Where the FIFO has no memory the call is given up: the version
 * has not moved, so nothing is lost.  For the files of kube_reflector alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>

#include "kube_reflector_impl.h"


static const kube_meta_t  reflector_no_meta;

/* The zone's counters, by what makes them grow. */
#define XX(name, family, value, counts)  [counts] = KUBE_COUNTER_##name,

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

static_assert(sizeof(reflector_events) / sizeof(kube_counter_t)
              == KUBE_WATCH_UNKNOWN, "each type of event has a counter");
static_assert(sizeof(reflector_surprises) / sizeof(kube_counter_t)
              == KUBE_SURPRISES, "each surprise has a counter");
static_assert(sizeof(reflector_verdicts) / sizeof(kube_counter_t)
              == KUBE_VERDICTS, "each verdict has a counter");


bool
kube_reflector_cut(kube_reflector_t *r, kube_call_t *handle)
{
    return handle != NULL && r->lw.cut != NULL
           && r->lw.cut(r->lw.ctx, handle);
}


kube_counter_t
kube_reflector_verdict(kube_verdict_t verdict)
{
    return reflector_verdicts[verdict];
}


/* Where what the last input brought is a pause it does not follow meanwhile. */
static void
reflector_on_pause(kube_reflector_t *r)
{
    if (r->action.kind == KUBE_ACTION_SLEEP) {
        kube_reflector_suffer(r, KUBE_CAUSE_UNREACHABLE, r->now_ms);
        r->suffering.attempts++;
    }
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
        kube_reflector_count(r, KUBE_COUNTER_EVENTS_ERROR, 1);
    }

    kube_reflector_count(r, counter, 1);

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_REQUEST_FAILED,
                   "%s %s was answered %d %s: %s%s", kube_reflector_doing(r),
                   r->label, status->code, kube_verdict_text(status->verdict),
                   status->message,
                   status->retry_after_s ? " (with Retry-After)" : "");

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_STATUS,
                                             .status = status });

    /* the request is repeated at once now and then; credentials are read, and
       an exec plugin is asked, each time, for nothing else may renew them */

    if (status->verdict == KUBE_VERDICT_UNAUTHORIZED
        && r->action.kind == KUBE_ACTION_SLEEP)
    {
        r->lw.credentials(r->lw.ctx, r->now_ms);
    }

    /* a server that has no WatchList is in order; whether a list is forbidden
       the plain one says */

    if (r->call.stream
        && (r->action.kind == KUBE_ACTION_LIST
            || kube_reflector_waits(&r->machine, r->now_ms)))
    {
        return;
    }

    if (cause == KUBE_CAUSE_FORBIDDEN) {
        kube_reflector_gauge(r, KUBE_COUNTER_GAUGE_FORBIDDEN, 1);
    }

    kube_reflector_show_error(r, kube_verdict_text(status->verdict),
                              status->message);

    if (cause != KUBE_CAUSES) {
        kube_reflector_suffer(r, cause, r->now_ms);
        r->suffering.remedy = status->remedy;
        r->suffering.attempts++;
    }

    /* it has no other way to ask left, or a list has not helped */

    if (cause == KUBE_CAUSES) {
        reflector_on_pause(r);
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
    kube_reflector_count(r, counter, 1);

    if (meta->name.len == 0) {
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                       "an object of %s was skipped: %s", r->label, what);
        return KUBE_OK;
    }

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                   "%s of %s was skipped: %s",
                   reflector_key(meta, key, sizeof(key)), r->label, what);

    return reflector_put(r, KUBE_DELTA_REFUSED, meta,
                         kube_reflector_reason(counter));
}


/* Queues an object, as the transform wants it. */
static kube_rc_t
reflector_put_object(kube_reflector_t *r, kube_delta_kind_t kind,
    const kube_object_t *object, uint64_t read_ms)
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
                                  object, read_ms);
}


/*
 * Queues what an item or an event says of its object; read_ms: KUBE_NEVER
 * where nobody waits for it.
 */
static kube_rc_t
reflector_queue_result(kube_reflector_t *r, kube_delta_kind_t kind,
    const kube_result_t *result, uint64_t read_ms)
{
    char                key[KUBE_KEY_LEN_MAX + 1];
    const kube_meta_t  *meta;

    meta = kube_object_meta(&result->object);

    if (result->surprise != KUBE_SURPRISE_NONE) {
        kube_reflector_count(r, reflector_surprises[result->surprise], 1);
    }

    if (result->refusal != KUBE_REFUSAL_NONE) {
        return reflector_refuse(r, result->refusal, meta, result->what);
    }

    if (kind == KUBE_DELTA_DELETED) {
        return reflector_put(r, kind, meta, NULL);
    }

    if (result->dropped != 0) {
        kube_reflector_count(r, KUBE_COUNTER_SKIPPED_ENDPOINTS,
                             result->dropped);
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                       "%u malformed parts of %s of %s were left out",
                       (unsigned) result->dropped,
                       reflector_key(meta, key, sizeof(key)), r->label);
    }

    return reflector_put_object(r, kind, &result->object, read_ms);
}


static kube_rc_t
reflector_queue(kube_reflector_t *r, kube_delta_kind_t kind,
    const kube_result_t *result)
{
    return reflector_queue_result(r, kind, result,
                                  r->call.watch ? r->now_ms : KUBE_NEVER);
}


kube_rc_t
kube_reflector_queue_item(kube_reflector_t *r, const kube_result_t *item)
{
    return reflector_queue_result(r, KUBE_DELTA_UPDATED, item, KUBE_NEVER);
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
        kube_reflector_failed(r, KUBE_NOMEM, "");
        return false;
    }

    r->list.begun = true;

    return true;
}


static void
reflector_on_meta(kube_reflector_t *r, const kube_rv_t *rv)
{
    const kube_rv_t  *ours;

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_META,
                                             .rv = *rv });

    if (r->action.kind == KUBE_ACTION_NONE) {
        (void) reflector_begin_list(r);
        return;
    }

    ours = kube_reflector_floor(&r->machine);

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN, KUBE_EV_LIST,
                   "a list of %s at %.*s is older than %.*s: not taken",
                   r->label, (int) rv->len, rv->data, (int) ours->len,
                   ours->data);
}


/*
 * Before its version is known a list may be older than what we have, though it
 * was asked to be none: as of a WatchList, no newer object is given up for an
 * item of it, and nothing goes before the version is known.
 */
static void
reflector_on_item(kube_reflector_t *r, const kube_result_t *result)
{
    bool       replaces;
    kube_rc_t  rc;
    kube_rv_t  rv;

    if (!reflector_begin_list(r)) {
        return;
    }

    r->list.items++;
    replaces = kube_reflector_replaces(&r->machine, r->now_ms);

    if (replaces
        || kube_rv_parse(kube_object_meta(&result->object)->rv, &rv)
           != KUBE_OK)
    {
        rv.len = 0;
    }

    rc = reflector_queue(r, replaces ? KUBE_DELTA_REPLACED
                                     : KUBE_DELTA_UPDATED, result);

    if (rc != KUBE_OK) {
        kube_reflector_failed(r, rc, "");
        return;
    }

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_ITEM,
                                             .rv = rv });
}


/* The version of an event that the FIFO has taken, or of a bookmark. */
static void
reflector_on_version(kube_reflector_t *r, kube_input_kind_t kind,
    const kube_rv_t *rv)
{
    const kube_rv_t  *ours;

    r->call.events++;
    kube_reflector_fed(r);

    if (kind == KUBE_INPUT_EVENT) {
        kube_reflector_gauge(r, KUBE_COUNTER_GAUGE_LAST_EVENT_MS, r->now_ms);
    }

    ours = &r->machine.rv;

    if (rv->len != 0 && kube_rv_cmp(rv, ours) < 0) {
        kube_reflector_count(r, KUBE_COUNTER_ERRORS_OTHER, 1);
        kube_reflector_show_error(r, kube_reflector_reason(
                                         KUBE_COUNTER_ERRORS_OTHER),
                                  "an event older than the last one");
        kube_log_event(&r->log, r->now_ms, KUBE_LOG_WARN,
                       KUBE_EV_REQUEST_FAILED,
                       "watch of %s went back from %.*s to %.*s", r->label,
                       (int) ours->len, ours->data, (int) rv->len, rv->data);
    }

    kube_reflector_feed(r, &(kube_input_t) { .kind = kind, .rv = *rv });
    reflector_on_pause(r);
}


static void
reflector_on_event(kube_reflector_t *r, const kube_result_t *result)
{
    kube_rc_t  rc;

    if (result->type != KUBE_WATCH_UNKNOWN) {
        kube_reflector_count(r, reflector_events[result->type], 1);
    }

    /* an older event is not applied: the machine asks for a list */

    if (result->rv.len == 0
        || kube_rv_cmp(&result->rv, &r->machine.rv) >= 0)
    {
        rc = reflector_queue(r, (result->type == KUBE_WATCH_DELETED)
                                ? KUBE_DELTA_DELETED : KUBE_DELTA_UPDATED,
                             result);

        if (rc != KUBE_OK) {
            kube_reflector_failed(r, rc, "");
            return;
        }
    }

    reflector_on_version(r, KUBE_INPUT_EVENT, &result->rv);
}


static void
reflector_on_unreadable(kube_reflector_t *r, const char *what)
{
    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_UNREADABLE });

    if (r->action.kind != KUBE_ACTION_NONE) {
        kube_reflector_show_failure(r, KUBE_PROTO, what);
        return;
    }

    (void) reflector_refuse(r, KUBE_REFUSAL_MALFORMED, &reflector_no_meta,
                            what);
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
    kube_reflector_gauge(r, KUBE_COUNTER_GAUGE_FORBIDDEN, 0);

    if (r->call.watch) {
        kube_reflector_watching(r);
    }

    /* a list that is answered ends a silence, but follows nothing yet */

    if (r->suffering.attempts == 0) {
        r->suffering.cause = KUBE_CAUSES;
    }

    known = reflector_has_no_watch_list(r);
    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_OPENED });

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
            kube_reflector_count(r, KUBE_COUNTER_EVENT_BYTES,
                                 result->size_bytes);
        }

        r->call.listed = false;
        kube_reflector_contact(r);
    }

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_ALIVE,
                                             .partial = result->partial });
}


/* Marks the end of a complete list in the FIFO, then tells the machine. */
static void
reflector_list_done(kube_reflector_t *r)
{
    if (reflector_put(r, KUBE_DELTA_SYNC, &reflector_no_meta, NULL)
        != KUBE_OK)
    {
        kube_reflector_failed(r, KUBE_NOMEM, "");
        return;
    }

    kube_reflector_fed(r);

    kube_reflector_observe(r, KUBE_HISTOGRAM_LIST_DURATION,
                           (r->now_ms - r->list.started_ms) * 1000);
    kube_reflector_observe(r, KUBE_HISTOGRAM_ITEMS_PER_LIST, r->list.items);

    kube_reflector_contact(r);
    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_LIST_DONE });

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
        kube_reflector_failed(r, rc, "");
        return;
    }

    kube_reflector_feed(r, &(kube_input_t) { .kind = added ? KUBE_INPUT_ITEM
                                                           : KUBE_INPUT_EVENT,
                                             .rv = result->rv });
}


/* The list of a WatchList is whole: its stream is a watch from now on. */
static void
reflector_on_initial_end(kube_reflector_t *r, const kube_rv_t *rv)
{
    if (rv->len == 0) {
        kube_reflector_failed(r, KUBE_PROTO, "a WatchList without a version");
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

    kube_reflector_watching(r);
}


/* Ends are in order, but not for a watch that has hardly begun. */
static void
reflector_on_closed(kube_reflector_t *r)
{
    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_CLOSED });

    if (r->action.kind == KUBE_ACTION_SLEEP) {
        kube_reflector_show_error(r, kube_reflector_reason(
                                         KUBE_COUNTER_ERRORS_CLOSED),
                                  r->call.stream
                                  ? "a WatchList that ended before its items"
                                  : "a watch that ended as soon as it was "
                                    "open");
    }

    reflector_on_pause(r);
}


static void
reflector_on_end(kube_reflector_t *r, const kube_result_t *result)
{
    if (result->rc != KUBE_OK) {
        kube_reflector_failed(r, result->rc, result->text);

        if (result->rc == KUBE_NO_CREDENTIALS || result->rc == KUBE_TLS) {
            r->suffering.remedy = result->remedy;
        }

        return;
    }

    if (r->call.watch || r->call.stream) {
        reflector_on_closed(r);
        return;
    }

    if (result->continue_token.len == 0) {
        reflector_list_done(r);
        return;
    }

    kube_reflector_feed(r, &(kube_input_t) { .kind = KUBE_INPUT_PAGE,
                                             .continue_token
                                                 = result->continue_token });

    if (r->action.kind == KUBE_ACTION_SLEEP) {
        kube_reflector_show_failure(r, KUBE_PROTO,
                                    "a list whose pages have no end");
    }
}


void
kube_reflector_result(kube_reflector_t *r, const kube_result_t *result)
{
    /* what a watch says is no progress of the list beside it */

    if (result->kind != KUBE_RESULT_ALIVE && !r->call.watch) {
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
            kube_reflector_count(r, KUBE_COUNTER_EVENTS_BOOKMARK, 1);
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

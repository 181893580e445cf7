/*
 * kube_list_watch_stream - the head, the bytes and the end of one exchange,
 * and what they mean where they are errors.
 *
 * It sends nothing and knows no object (kube_list_watch_object.c does).  Its
 * entry points are the exchange's handlers, and kube_lw_unpause() for what
 * waited while the FIFO was full.
 *
 * SYNC is in the FIFO before the reflector hears of LIST_DONE.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "kube_list_watch_internal.h"


static kube_counter_t
lw_rc_counter(kube_rc_t rc)
{
    switch (rc) {

    case KUBE_CONNECT:
        return KUBE_COUNTER_ERRORS_CONNECT;

    case KUBE_TLS:
        return KUBE_COUNTER_ERRORS_TLS;

    case KUBE_TIMEOUT:
        return KUBE_COUNTER_ERRORS_TIMEOUT;

    case KUBE_CLOSED:
        return KUBE_COUNTER_ERRORS_CLOSED;

    case KUBE_PROTO:
        return KUBE_COUNTER_ERRORS_PROTOCOL;

    default:
        return KUBE_COUNTER_ERRORS_OTHER;
    }
}


static const char *
lw_rc_reason(kube_rc_t rc)
{
    switch (rc) {

    case KUBE_CONNECT:
        return "connect";

    case KUBE_TLS:
        return "tls";

    case KUBE_TIMEOUT:
        return "timeout";

    case KUBE_CLOSED:
        return "closed";

    case KUBE_PROTO:
        return "protocol";

    default:
        return "other";
    }
}


static kube_counter_t
lw_verdict_counter(kube_verdict_t verdict)
{
    static const kube_counter_t  counters[] = {
        [KUBE_VERDICT_OK] = KUBE_COUNTER_ERRORS_OTHER,
#define XX(name, family, value, counts)  [counts] = KUBE_COUNTER_##name,
        KUBE_COUNTER_VERDICT_MAP(XX)
#undef XX
    };

    static_assert(sizeof(counters) / sizeof(counters[0]) == KUBE_VERDICTS,
                  "each verdict has a counter");

    return counters[verdict];
}


/* Shown by the status page until the next one; text is escaped already. */
void
kube_lw_show_error(kube_list_watch_t *lw, const char *reason, const char *text)
{
    lw->error.pending = true;

    (void) snprintf(lw->error.reason, sizeof(lw->error.reason), "%s", reason);
    (void) snprintf(lw->error.message, sizeof(lw->error.message), "%s", text);
}


void
kube_lw_failed(kube_list_watch_t *lw, kube_rc_t rc, const char *text)
{
    kube_input_t  input;

    if (text[0] == '\0') {
        text = kube_rc_text(rc);
    }

    kube_lw_count(lw, lw_rc_counter(rc), 1);
    kube_lw_show_error(lw, lw_rc_reason(rc), text);

    kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_WARN,
                   KUBE_EV_REQUEST_FAILED, "%s of %s failed: %s: %s",
                   lw->x.watch ? "watch" : "list", lw->label,
                   lw_rc_reason(rc), text);

    lw->reread = (lw->reread || rc == KUBE_TLS);
    lw->x.open = false;

    memset(&input, 0, sizeof(kube_input_t));

    input.kind = (rc == KUBE_PROTO) ? KUBE_INPUT_PROTOCOL : KUBE_INPUT_FAILED;
    input.rc = rc;

    kube_lw_step(lw, &input);
}


/* An answer other than 200, or an ERROR event (code 0). */
void
kube_lw_status(kube_list_watch_t *lw, int code, kube_str_t body)
{
    kube_input_t     input;
    kube_status_t    status;
    kube_event_id_t  id;

    kube_status_judge(&lw->arena, code, body, &status);

    /* 204, 206: success, but not with what was asked for */

    if (status.verdict == KUBE_VERDICT_OK) {
        status.verdict = KUBE_VERDICT_OTHER;
    }

    if (code != 0 && lw->x.retry_after_s > status.retry_after_s) {
        status.retry_after_s = lw->x.retry_after_s;
    }

    kube_lw_count(lw, lw_verdict_counter(status.verdict), 1);
    kube_lw_show_error(lw, kube_verdict_text(status.verdict), status.message);

    id = KUBE_EV_REQUEST_FAILED;

    if (status.verdict == KUBE_VERDICT_FORBIDDEN) {
        kube_lw_set(lw, KUBE_COUNTER_GAUGE_FORBIDDEN, 1);
        id = KUBE_EV_FORBIDDEN;
    }

    if (status.verdict == KUBE_VERDICT_UNAUTHORIZED) {
        id = KUBE_EV_UNAUTHORIZED;
    }

    kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_WARN, id,
                   "%s of %s was answered %d %s: %s%s",
                   lw->x.watch ? "watch" : "list", lw->label, status.code,
                   kube_verdict_text(status.verdict), status.message,
                   status.retry_after_s ? " (with Retry-After)" : "");

    lw->x.open = false;

    memset(&input, 0, sizeof(kube_input_t));

    input.kind = KUBE_INPUT_STATUS;
    input.status = &status;

    kube_lw_step(lw, &input);
}


void
kube_lw_protocol(kube_list_watch_t *lw, const char *text)
{
    kube_lw_failed(lw, KUBE_PROTO, text);
}


static void
lw_parse(kube_list_watch_t *lw, kube_str_t *in)
{
    kube_rc_t          rc;
    lw_exchange_t     *x;
    kube_frame_item_t  item;

    x = &lw->x;

    while (lw->action.kind == KUBE_ACTION_NONE) {

        if (kube_delta_fifo_high(lw->conf.fifo)) {
            x->paused = true;
            return;
        }

        rc = kube_frame_next(x->frame, in, &item);

        if (rc == KUBE_AGAIN) {

            if (x->watch && !kube_frame_partial(x->frame)) {
                x->progress_ms = lw->now_ms;
            }

            return;
        }

        if (rc != KUBE_OK) {
            kube_lw_failed(lw, (rc == KUBE_NOMEM) ? rc : KUBE_PROTO,
                           (rc == KUBE_NOMEM) ? "" : "unreadable JSON");
            return;
        }

        x->progress_ms = lw->now_ms;
        kube_lw_item(lw, &item);
    }
}


/* Keeps in[] behind what is kept already. */
static void
lw_keep(kube_list_watch_t *lw, kube_str_t in)
{
    kube_rc_t       rc;
    lw_exchange_t  *x;

    x = &lw->x;

    if (in.len == 0 || lw->action.kind != KUBE_ACTION_NONE) {
        return;
    }

    rc = kube_array_reserve(&lw->alloc, &x->rest, &x->rest_cap,
                            x->rest_len + in.len, 1, KUBE_REST_BYTES_MAX);

    if (rc != KUBE_OK) {
        kube_lw_failed(lw, rc, "");
        return;
    }

    memcpy((char *) x->rest + x->rest_len, in.data, in.len);
    x->rest_len += in.len;
}


static void
lw_list_is_whole(kube_list_watch_t *lw)
{
    kube_input_t  input;

    if (lw->x.token_len != 0) {

        memset(&input, 0, sizeof(kube_input_t));

        input.kind = KUBE_INPUT_PAGE;
        input.continue_token.data = lw->x.token;
        input.continue_token.len = lw->x.token_len;

        kube_lw_step(lw, &input);

        return;
    }

    if (kube_delta_fifo_put(lw->conf.fifo, &(kube_delta_t) {
            .kind = KUBE_DELTA_SYNC,
            .scope = lw->conf.slot
        })
        != KUBE_OK)
    {
        kube_lw_failed(lw, KUBE_NOMEM, "");
        return;
    }

    kube_zone_histogram_observe(lw->conf.zone, KUBE_HISTOGRAM_LIST_DURATION,
                                lw->conf.resource,
                                (lw->now_ms - lw->list.started_ms) * 1000);
    kube_zone_histogram_observe(lw->conf.zone, KUBE_HISTOGRAM_ITEMS_PER_LIST,
                                lw->conf.resource, lw->list.items);

    kube_lw_set(lw, KUBE_COUNTER_GAUGE_CONTACT_MS, lw->now_ms);
    lw->listed = true;

    kube_lw_step_kind(lw, KUBE_INPUT_LIST_DONE);

    lw->rollback = (lw->rollback || lw->action.rollback);
}


static void
lw_end_of_list(kube_list_watch_t *lw, kube_rc_t rc, const char *text)
{
    if (lw->x.end_seen && lw->x.kind_seen && lw->x.meta_seen) {
        lw_list_is_whole(lw);
        return;
    }

    if (rc == KUBE_OK) {
        kube_lw_protocol(lw, lw->x.end_seen ? "not a list"
                                            : "a list was cut off");
        return;
    }

    kube_lw_failed(lw, rc, text);
}


static void
lw_end_of_watch(kube_list_watch_t *lw, kube_rc_t rc, const char *text)
{
    if (rc != KUBE_OK) {
        kube_lw_failed(lw, rc, text);
        return;
    }

    if (kube_frame_partial(lw->x.frame)) {
        kube_lw_failed(lw, KUBE_CLOSED, "an event was cut off");
        return;
    }

    lw->x.open = false;
    kube_lw_step_kind(lw, KUBE_INPUT_CLOSED);
}


/* All bytes were looked at and no more will come. */
static void
lw_finish(kube_list_watch_t *lw, kube_rc_t rc, const char *text)
{
    kube_str_t      body;
    lw_exchange_t  *x;

    x = &lw->x;

    if (x->code != 0 && x->code != 200) {
        body.data = x->status;
        body.len = x->status_len;
        kube_arena_reset(&lw->arena);
        kube_lw_status(lw, x->code, body);
        return;
    }

    if (x->code == 0) {
        kube_lw_failed(lw, (rc == KUBE_OK) ? KUBE_PROTO : rc, text);
        return;
    }

    if (x->watch) {
        lw_end_of_watch(lw, rc, text);
        return;
    }

    lw_end_of_list(lw, rc, text);
}


void
kube_lw_unpause(kube_list_watch_t *lw)
{
    size_t          used;
    kube_str_t      in;
    lw_exchange_t  *x;

    x = &lw->x;
    x->paused = false;
    x->progress_ms = lw->now_ms;

    in.data = x->rest;
    in.len = x->rest_len;

    lw_parse(lw, &in);

    if (lw->action.kind != KUBE_ACTION_NONE) {
        return;
    }

    used = x->rest_len - in.len;

    if (in.len != 0 && used != 0) {
        memmove(x->rest, (char *) x->rest + used, in.len);
    }

    x->rest_len = in.len;

    if (x->paused) {
        return;
    }

    if (x->ended) {
        lw_finish(lw, x->ended_rc, "");
        return;
    }

    kube_lw_step_kind(lw, KUBE_INPUT_BYTES);
    lw->conf.io.resume(lw->conf.io.ctx, x->handle);
}


/* True where the handler's exchange still counts. */
static bool
lw_enter(kube_list_watch_t *lw)
{
    lw->now_ms = lw->conf.io.now(lw->conf.io.ctx);

    return lw->x.open && lw->action.kind == KUBE_ACTION_NONE;
}


static kube_take_t
lw_leave(const kube_list_watch_t *lw)
{
    if (!lw->x.open || lw->action.kind != KUBE_ACTION_NONE) {
        return KUBE_TAKE_ABORT;
    }

    return lw->x.paused ? KUBE_TAKE_PAUSE : KUBE_TAKE_MORE;
}


static bool
lw_is_json(kube_str_t type)
{
    size_t  i;

    static const char  json[] = "application/json";

    if (type.len != sizeof(json) - 1) {
        return false;
    }

    for (i = 0; i < type.len; i++) {
        if ((type.data[i] | 0x20) != (json[i] | 0x20)) {
            return false;
        }
    }

    return true;
}


static kube_take_t
lw_on_response(void *ctx, const kube_response_t *response)
{
    lw_exchange_t      *x;
    kube_list_watch_t  *lw = ctx;

    if (!lw_enter(lw)) {
        return KUBE_TAKE_ABORT;
    }

    x = &lw->x;
    x->code = response->code;
    x->retry_after_s = response->retry_after_s;

    if (x->code != 200) {
        return KUBE_TAKE_MORE;
    }

    if (!lw_is_json(response->content_type)) {
        kube_lw_protocol(lw, "the answer is not application/json");
        return KUBE_TAKE_ABORT;
    }

    x->opened_ms = (lw->now_ms != 0) ? lw->now_ms : 1;
    x->progress_ms = lw->now_ms;

    kube_lw_set(lw, KUBE_COUNTER_GAUGE_FORBIDDEN, 0);

    if (x->watch) {
        kube_lw_set(lw, KUBE_COUNTER_GAUGE_CONTACT_MS, lw->now_ms);
        kube_lw_step_kind(lw, KUBE_INPUT_OPENED);

    } else {
        kube_lw_step_kind(lw, KUBE_INPUT_BYTES);
    }

    return lw_leave(lw);
}


/* The body of a refusal; without memory the code has to do. */
static void
lw_keep_status(kube_list_watch_t *lw, const char *data, size_t len)
{
    lw_exchange_t  *x;

    x = &lw->x;

    if (x->status == NULL) {
        x->status = kube_alloc(&lw->alloc, KUBE_STATUS_BYTES_MAX);
    }

    if (x->status == NULL) {
        lw_finish(lw, KUBE_OK, "");
        return;
    }

    if (len > KUBE_STATUS_BYTES_MAX - x->status_len) {
        len = KUBE_STATUS_BYTES_MAX - x->status_len;
    }

    memcpy(x->status + x->status_len, data, len);
    x->status_len += len;

    if (x->status_len == KUBE_STATUS_BYTES_MAX) {
        lw_finish(lw, KUBE_OK, "");
    }
}


static kube_take_t
lw_on_bytes(void *ctx, const char *data, size_t len)
{
    kube_str_t          in;
    kube_list_watch_t  *lw = ctx;

    if (!lw_enter(lw)) {
        return KUBE_TAKE_ABORT;
    }

    if (lw->x.code != 200) {
        lw_keep_status(lw, data, len);
        return lw_leave(lw);
    }

    kube_lw_count(lw, KUBE_COUNTER_EVENT_BYTES, len);
    kube_lw_step_kind(lw, KUBE_INPUT_BYTES);

    if (lw->x.watch) {
        kube_lw_set(lw, KUBE_COUNTER_GAUGE_CONTACT_MS, lw->now_ms);
    }

    in.data = data;
    in.len = len;

    if (!lw->x.paused) {
        lw_parse(lw, &in);
    }

    lw_keep(lw, in);

    return lw_leave(lw);
}


static void
lw_on_done(void *ctx, kube_rc_t rc, const char *text)
{
    bool                counts;
    kube_list_watch_t  *lw = ctx;

    counts = lw_enter(lw);
    lw->x.handle = NULL;

    if (!counts) {
        return;
    }

    if (lw->x.paused) {
        lw->x.ended = true;
        lw->x.ended_rc = rc;
        return;
    }

    lw_finish(lw, rc, text);
}


const kube_exchange_handler_t  kube_list_watch_handler = {
    lw_on_response,
    lw_on_bytes,
    lw_on_done
};

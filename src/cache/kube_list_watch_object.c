/*
 * kube_list_watch_object - items of a list and events of a watch, one at a
 * time, to deltas for the FIFO.
 *
 * It knows nothing of heads, chunks and closing (kube_list_watch_stream.c
 * does, and calls kube_lw_item()).  What cannot be held is skipped, counted
 * and, where its key is known, named.
 *
 * Order matters in two places: a delta is in the FIFO before the reflector
 * hears of its version, and LIST_BEGIN is there before the first item.  Where
 * the FIFO has no memory the exchange is given up: the version has not moved,
 * so nothing is lost.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>
#include <string.h>

#include "kube_decode.h"
#include "kube_list_watch_internal.h"


static const kube_counter_t  lw_event_counters[] = {
#define XX(name, family, value, counts)  [counts] = KUBE_COUNTER_##name,
    KUBE_COUNTER_EVENT_MAP(XX)
#undef XX
};

static_assert(sizeof(lw_event_counters) / sizeof(lw_event_counters[0])
              == KUBE_WATCH_UNKNOWN, "each type of event has a counter");


/* Of a key, safe to print. */
static void
lw_name(const kube_meta_t *meta, char *dst, size_t size)
{
    size_t  n;

    n = kube_str_escape(dst, size, meta->ns);

    if (n + 2 <= size) {
        dst[n++] = '/';
        (void) kube_str_escape(dst + n, size - n, meta->name);
    }
}


static bool
lw_key_is_good(const kube_list_watch_t *lw, const kube_meta_t *meta)
{
    return kube_name_is_label(meta->ns)
           && kube_name_is_subdomain(meta->name)
           && (lw->conf.ns.len == 0 || kube_str_eq(meta->ns, lw->conf.ns));
}


/*
 * An object that cannot be held.  Where its key is known it is named, so that
 * the version may move past it; else it is only counted.
 */
static kube_rc_t
lw_skip(kube_list_watch_t *lw, kube_counter_t counter, const kube_meta_t *meta,
    const char *reason, const char *what)
{
    char  name[KUBE_KEY_LEN_MAX + 1];

    kube_lw_count(lw, counter, 1);

    if (meta == NULL || !lw_key_is_good(lw, meta)) {
        kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                       "an object of %s was skipped: %s", lw->label, what);
        return KUBE_OK;
    }

    lw_name(meta, name, sizeof(name));

    kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                   "%s of %s was skipped: %s", name, lw->label, what);

    return kube_delta_fifo_put(lw->conf.fifo, &(kube_delta_t) {
        .kind = KUBE_DELTA_REFUSED,
        .scope = lw->conf.slot,
        .resource = lw->conf.resource,
        .ns = meta->ns,
        .name = meta->name,
        .rv = meta->rv,
        .reason = kube_str(reason),
        .read_ms = lw->now_ms
    });
}


/* What is decoded goes on; what may be decoded but not held is skipped. */
static kube_rc_t
lw_queue(kube_list_watch_t *lw, kube_delta_kind_t kind,
    const kube_object_t *object, uint32_t dropped)
{
    char                name[KUBE_KEY_LEN_MAX + 1];
    kube_rv_t           rv;
    const kube_meta_t  *meta;

    meta = kube_object_meta(object);

    if (lw->conf.ns.len != 0 && !kube_str_eq(meta->ns, lw->conf.ns)) {
        return lw_skip(lw, KUBE_COUNTER_SKIPPED_MALFORMED, NULL, "",
                       "it is of another namespace");
    }

    if (kube_rv_parse(meta->rv, &rv) != KUBE_OK) {
        return lw_skip(lw, KUBE_COUNTER_SKIPPED_MALFORMED, meta, "malformed",
                       "no usable resourceVersion");
    }

    if (dropped != 0) {
        kube_lw_count(lw, KUBE_COUNTER_SKIPPED_ENDPOINTS, dropped);
        lw_name(meta, name, sizeof(name));
        kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_WARN, KUBE_EV_SKIPPED,
                       "%u malformed parts of %s of %s were left out",
                       (unsigned) dropped, name, lw->label);
    }

    return kube_delta_fifo_object(lw->conf.fifo, kind, lw->conf.slot, object,
                                  lw->now_ms);
}


/*
 * NOMEM because the arena's ceiling is near is the object's own fault, and
 * would come again for ever.
 */
static bool
lw_arena_is_full(const kube_list_watch_t *lw)
{
    return lw->arena.used_bytes > lw->arena.max_bytes / 2;
}


static void
lw_begin_list(kube_list_watch_t *lw)
{
    if (lw->list.begun) {
        return;
    }

    if (kube_delta_fifo_put(lw->conf.fifo, &(kube_delta_t) {
            .kind = KUBE_DELTA_LIST_BEGIN,
            .scope = lw->conf.slot
        })
        != KUBE_OK)
    {
        kube_lw_failed(lw, KUBE_NOMEM, "");
        return;
    }

    lw->list.begun = true;
}


static void
lw_on_kind(kube_list_watch_t *lw, kube_str_t text)
{
    size_t       len;
    const char  *kind;

    kind = kube_resource_info(lw->conf.resource)->list_kind;
    len = strlen(kind);

    if (text.len != len + 2 || memcmp(text.data + 1, kind, len) != 0) {
        kube_lw_protocol(lw, "not a list of this resource");
        return;
    }

    lw->x.kind_seen = true;
}


static void
lw_on_metadata(kube_list_watch_t *lw, kube_str_t text)
{
    kube_rc_t         rc;
    kube_error_t      error;
    kube_input_t      input;
    kube_list_meta_t  meta;

    rc = kube_decode_list_meta(&lw->arena, text, &meta, &error);

    if (rc == KUBE_NOMEM && !lw_arena_is_full(lw)) {
        kube_lw_failed(lw, rc, "");
        return;
    }

    if (rc != KUBE_OK || meta.continue_token.len > KUBE_CONTINUE_LEN_MAX) {
        kube_lw_protocol(lw, "a list with unusable metadata");
        return;
    }

    lw->x.meta_seen = true;
    lw->x.token_len = meta.continue_token.len;

    if (meta.continue_token.len != 0) {
        memcpy(lw->x.token, meta.continue_token.data,
               meta.continue_token.len);
    }

    memset(&input, 0, sizeof(kube_input_t));

    input.kind = KUBE_INPUT_META;
    input.rv = meta.rv;

    kube_lw_step(lw, &input);

    if (lw->action.kind == KUBE_ACTION_NONE) {
        lw_begin_list(lw);
        return;
    }

    kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_WARN, KUBE_EV_LIST,
                   "a list of %s at %.*s is older than %.*s: not taken",
                   lw->label, (int) meta.rv.len, meta.rv.data,
                   (int) lw->reflector.rv.len, lw->reflector.rv.data);
}


/* False: the list is given up. */
static bool
lw_begin_item(kube_list_watch_t *lw)
{
    /* before its version is known a list may be older than what we have */

    if (!lw->list.begun
        && (lw->reflector.rv.len != 0 || lw->reflector.list.rv.len != 0))
    {
        kube_lw_protocol(lw, "a list with items before its metadata");
        return false;
    }

    lw_begin_list(lw);

    if (lw->action.kind != KUBE_ACTION_NONE) {
        return false;
    }

    lw->list.items++;

    return true;
}


static void
lw_on_list_item(kube_list_watch_t *lw, const kube_envelope_t *envelope)
{
    uint32_t       dropped;
    kube_rc_t      rc;
    kube_error_t   error;
    kube_object_t  object;

    if (!lw_begin_item(lw)) {
        return;
    }

    rc = kube_decode_object(&lw->arena, lw->conf.resource, envelope, &object,
                            &dropped, &error);

    if (rc == KUBE_OK) {
        rc = lw_queue(lw, KUBE_DELTA_REPLACED, &object, dropped);

    } else if (rc == KUBE_INVALID) {
        rc = lw_skip(lw, KUBE_COUNTER_SKIPPED_MALFORMED,
                     kube_object_meta(&object), "malformed", error.what);

    } else if (rc == KUBE_TOO_LARGE) {
        rc = lw_skip(lw, KUBE_COUNTER_SKIPPED_TOO_LARGE,
                     kube_object_meta(&object), "too_large", error.what);

    } else if (rc == KUBE_NOMEM && lw_arena_is_full(lw)) {
        rc = lw_skip(lw, KUBE_COUNTER_SKIPPED_TOO_LARGE, NULL, "",
                     "too many members");
    }

    if (rc != KUBE_OK) {
        kube_lw_failed(lw, rc, "");
    }
}


static void
lw_on_version(kube_list_watch_t *lw, kube_input_kind_t kind,
    const kube_rv_t *rv)
{
    kube_input_t  input;

    lw->x.events++;
    kube_lw_set(lw, KUBE_COUNTER_GAUGE_LAST_EVENT_MS, lw->now_ms);

    if (kube_rv_cmp(rv, &lw->reflector.rv) < 0 && rv->len != 0) {
        kube_lw_count(lw, KUBE_COUNTER_ERRORS_OTHER, 1);
        kube_lw_show_error(lw, "other", "an event older than the last one");
        kube_log_event(&lw->log, lw->now_ms, KUBE_LOG_WARN,
                       KUBE_EV_REQUEST_FAILED,
                       "watch of %s went back from %.*s to %.*s", lw->label,
                       (int) lw->reflector.rv.len, lw->reflector.rv.data,
                       (int) rv->len, rv->data);
    }

    memset(&input, 0, sizeof(kube_input_t));

    input.kind = kind;
    input.rv = *rv;

    kube_lw_step(lw, &input);
}


/* ADDED, MODIFIED or DELETED, not older than what we have. */
static kube_rc_t
lw_queue_event(kube_list_watch_t *lw, const kube_watch_event_t *event,
    uint32_t dropped, const char *what)
{
    const kube_meta_t  *meta;

    meta = kube_object_meta(&event->object);

    if (event->type == KUBE_WATCH_DELETED
        && event->rv.len != 0
        && lw_key_is_good(lw, meta))
    {
        return kube_delta_fifo_put(lw->conf.fifo, &(kube_delta_t) {
            .kind = KUBE_DELTA_DELETED,
            .scope = lw->conf.slot,
            .resource = lw->conf.resource,
            .ns = meta->ns,
            .name = meta->name,
            .rv = meta->rv,
            .read_ms = lw->now_ms
        });
    }

    if (event->object_rc == KUBE_TOO_LARGE) {
        return lw_skip(lw, KUBE_COUNTER_SKIPPED_TOO_LARGE, meta, "too_large",
                       what);
    }

    if (event->object_rc != KUBE_OK || event->type == KUBE_WATCH_DELETED) {
        return lw_skip(lw, KUBE_COUNTER_SKIPPED_MALFORMED, meta, "malformed",
                       (event->object_rc != KUBE_OK) ? what
                                                     : "an unusable deletion");
    }

    return lw_queue(lw, KUBE_DELTA_UPDATED, &event->object, dropped);
}


static void
lw_on_object_event(kube_list_watch_t *lw, const kube_watch_event_t *event,
    uint32_t dropped, const char *what)
{
    kube_rc_t  rc;

    kube_lw_count(lw, lw_event_counters[event->type], 1);

    if (event->rv.len == 0
        || kube_rv_cmp(&event->rv, &lw->reflector.rv) >= 0)
    {
        rc = lw_queue_event(lw, event, dropped, what);

        if (rc != KUBE_OK) {
            kube_lw_failed(lw, rc, "");
            return;
        }
    }

    lw_on_version(lw, KUBE_INPUT_EVENT, &event->rv);
}


static void
lw_on_event(kube_list_watch_t *lw, const kube_envelope_t *envelope)
{
    uint32_t            dropped;
    kube_rc_t           rc;
    kube_error_t        error;
    kube_watch_event_t  event;

    error.what = "malformed";

    rc = kube_decode_watch_event(&lw->arena, lw->conf.resource, envelope,
                                 &event, &dropped, &error);

    if (rc == KUBE_NOMEM && lw_arena_is_full(lw)) {
        (void) lw_skip(lw, KUBE_COUNTER_SKIPPED_TOO_LARGE, NULL, "",
                       "too many members");
        return;
    }

    if (rc != KUBE_OK) {
        kube_lw_failed(lw, (rc == KUBE_NOMEM) ? rc : KUBE_PROTO,
                       (rc == KUBE_NOMEM) ? "" : error.what);
        return;
    }

    switch (event.type) {

    case KUBE_WATCH_ADDED:
    case KUBE_WATCH_MODIFIED:
    case KUBE_WATCH_DELETED:
        lw_on_object_event(lw, &event, dropped, error.what);
        return;

    case KUBE_WATCH_BOOKMARK:
        kube_lw_count(lw, KUBE_COUNTER_EVENTS_BOOKMARK, 1);
        lw_on_version(lw, KUBE_INPUT_BOOKMARK, &event.rv);
        return;

    case KUBE_WATCH_ERROR:
        kube_lw_count(lw, KUBE_COUNTER_EVENTS_ERROR, 1);
        kube_lw_status(lw, 0, event.status_text);
        return;

    default:
        (void) lw_skip(lw, KUBE_COUNTER_SKIPPED_MALFORMED, NULL, "",
                       "an event of an unknown type");
        lw_on_version(lw, KUBE_INPUT_EVENT, &event.rv);
    }
}


void
kube_lw_item(kube_list_watch_t *lw, const kube_frame_item_t *item)
{
    kube_arena_reset(&lw->arena);

    switch (item->kind) {

    case KUBE_FRAME_ITEM:
    case KUBE_FRAME_SKIPPED:
        if (lw->x.watch) {
            lw_on_event(lw, &item->envelope);
            return;
        }

        lw_on_list_item(lw, &item->envelope);
        return;

    case KUBE_FRAME_KIND:
        lw_on_kind(lw, item->bytes);
        return;

    case KUBE_FRAME_METADATA:
        lw_on_metadata(lw, item->bytes);
        return;

    case KUBE_FRAME_END:
        lw->x.end_seen = true;
    }
}

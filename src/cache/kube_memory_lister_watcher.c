/*
 * kube_memory_lister_watcher - objects in memory as a source: its calls.
 *
 * A list takes the states of its page, with a reference each; a watch has told
 * everything up to call->rv, and what follows there is a change that it has to
 * tell, or call->rv is the newest version: so ready() need not look.  Nobody is
 * called back; the owner, a reflector, polls.  It changes no object.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_memory_impl.h"


/* The largest object that a record may be of, decoded. */
#define MEMORY_ARENA_BYTES  (4 * (size_t) KUBE_OBJECT_BYTES_MAX)


static void
memory_refuse(memory_call_t *call, kube_verdict_t verdict, int code)
{
    call->verdict = verdict;
    call->code = code;
}


/*
 * Takes up to limit objects (0: all) behind a key, as they were at version rv.
 * One that has changed since then is in the ring, as what was before the first
 * change after rv.
 */
static kube_rc_t
memory_snapshot(const memory_lw_t *lw, memory_call_t *call, uint64_t rv,
    const kube_meta_t *after, size_t limit)
{
    bool                          found;
    size_t                        i, at, first;
    uint64_t                      v;
    memory_state_t               *state, **items, **objects;
    const kube_memory_source_t   *source;

    source = lw->source;
    objects = source->objects;
    first = 0;

    if (after != NULL) {
        first = kube_memory_place(objects, source->objects_n, after->ns,
                                  after->name, &found);
        first += found;
    }

    items = kube_alloc(&source->alloc,
                       (source->objects_n - first + (source->rv - rv) + 1)
                       * sizeof(memory_state_t *));
    if (items == NULL) {
        return KUBE_NOMEM;
    }

    call->items = items;
    call->items_n = 0;
    call->rv = rv;

    for (i = first; i < source->objects_n; i++) {

        if (objects[i]->rv <= rv && kube_memory_is_in(lw, objects[i])) {
            items[call->items_n++] = objects[i];
        }
    }

    for (v = rv + 1; v <= source->rv; v++) {
        state = kube_memory_change(source, v)->before;

        if (state == NULL
            || state->rv > rv
            || !kube_memory_is_in(lw, state)
            || (after != NULL
                && kube_memory_cmp(state, after->ns, after->name) <= 0))
        {
            continue;
        }

        at = kube_memory_place(items, call->items_n, state->id.meta.ns,
                               state->id.meta.name, &found);

        memmove(&items[at + 1], &items[at],
                (call->items_n - at) * sizeof(memory_state_t *));
        items[at] = state;
        call->items_n++;
    }

    if (limit != 0 && call->items_n > limit) {
        call->items_n = limit;
        call->more = true;

        (void) snprintf(call->token, sizeof(call->token), "%llu/%.*s/%.*s",
                        (unsigned long long) rv,
                        (int) items[limit - 1]->id.meta.ns.len,
                        items[limit - 1]->id.meta.ns.data,
                        (int) items[limit - 1]->id.meta.name.len,
                        items[limit - 1]->id.meta.name.data);
    }

    for (i = 0; i < call->items_n; i++) {
        (void) kube_memory_hold(items[i]);
    }

    return KUBE_OK;
}


/* False: it is no token that a list was given. */
static bool
memory_token(kube_str_t token, uint64_t *rv, kube_meta_t *after)
{
    const char  *end, *slash;

    end = token.data + token.len;
    slash = memchr(token.data, '/', token.len);

    if (slash == NULL
        || kube_str_to_u64((kube_str_t) { token.data,
                                          (size_t) (slash - token.data) },
                           UINT64_MAX, rv)
           != KUBE_OK)
    {
        return false;
    }

    after->ns.data = slash + 1;
    slash = memchr(after->ns.data, '/', (size_t) (end - after->ns.data));

    if (slash == NULL) {
        return false;
    }

    after->ns.len = (size_t) (slash - after->ns.data);
    after->name.data = slash + 1;
    after->name.len = (size_t) (end - after->name.data);

    return true;
}


/*
 * Which state is asked for.  True: the call goes on at *rv, 0 where any will
 * do; else it is refused.
 */
static bool
memory_version(const kube_memory_source_t *source, memory_call_t *call,
    kube_str_t text, uint64_t *rv)
{
    *rv = 0;

    if (text.len == 0 || kube_str_eq(text, KUBE_STR("0"))) {
        return true;
    }

    if (kube_str_to_u64(text, UINT64_MAX, rv) != KUBE_OK) {
        memory_refuse(call, KUBE_VERDICT_INVALID, 400);
        return false;
    }

    if (*rv > source->rv) {
        memory_refuse(call, KUBE_VERDICT_TOO_LARGE_RV, 504);
        return false;
    }

    return true;
}


static kube_rc_t
memory_list_begin(memory_lw_t *lw, memory_call_t *call,
    const kube_list_options_t *options)
{
    bool                         paged;
    uint64_t                     rv;
    kube_meta_t                  after;
    const kube_memory_source_t  *source;

    source = lw->source;
    paged = (options->continue_token.len != 0);

    if (paged && !memory_token(options->continue_token, &rv, &after)) {
        memory_refuse(call, KUBE_VERDICT_INVALID, 400);
        return KUBE_OK;
    }

    if (!paged && !memory_version(source, call, options->rv, &rv)) {
        return KUBE_OK;
    }

    /* a version with a limit and no match is meant exactly (legacy) */

    if (rv == 0 || (!paged && (options->not_older_than
                               || options->limit == 0)))
    {
        rv = source->rv;
    }

    if (rv < source->forgotten || rv > source->rv) {
        memory_refuse(call, KUBE_VERDICT_EXPIRED, 410);
        return KUBE_OK;
    }

    return memory_snapshot(lw, call, rv, paged ? &after : NULL,
                           options->limit);
}


static kube_rc_t
memory_watch_begin(memory_lw_t *lw, memory_call_t *call,
    const kube_list_options_t *options, uint64_t now_ms)
{
    uint64_t  rv;

    if (!memory_version(lw->source, call, options->rv, &rv)) {
        return KUBE_OK;
    }

    call->bookmark_ms = now_ms + KUBE_MEMORY_BOOKMARK_MS;

    if (options->timeout_s != 0) {
        call->deadline_ms = now_ms + (uint64_t) options->timeout_s * 1000;
    }

    /* without a version a watch begins with what is there */

    if (options->initial_events || rv == 0) {
        call->initial_end = options->initial_events;

        return memory_snapshot(lw, call, lw->source->rv, NULL, 0);
    }

    if (rv < lw->source->forgotten) {
        memory_refuse(call, KUBE_VERDICT_EXPIRED, 410);
        return KUBE_OK;
    }

    call->rv = rv;
    kube_memory_skip(lw, call);

    return KUBE_OK;
}


static void
memory_call_free(const memory_lw_t *lw, memory_call_t *call)
{
    size_t               i;
    const kube_alloc_t  *alloc;

    alloc = &lw->source->alloc;

    for (i = 0; i < call->items_n; i++) {
        kube_memory_release(alloc, call->items[i]);
    }

    kube_memory_release(alloc, call->held);

    kube_free(alloc, call->items);
    kube_free(alloc, call);
}


static kube_call_t *
memory_begin(memory_lw_t *lw, bool watch, const kube_list_options_t *options,
    uint64_t now_ms)
{
    kube_rc_t          rc;
    memory_call_t     *call;
    memory_refusal_t  *refusal;

    call = kube_zalloc(&lw->source->alloc, sizeof(memory_call_t));
    if (call == NULL) {
        return NULL;
    }

    call->watch = watch;
    call->verdict = KUBE_VERDICT_OK;
    call->deadline_ms = KUBE_NEVER;
    call->bookmark_ms = KUBE_NEVER;

    refusal = &lw->source->refusals[watch];

    if (refusal->n != 0) {
        refusal->n--;
        call->retry_after_s = refusal->retry_after_s;
        memory_refuse(call, KUBE_VERDICT_OTHER, refusal->code);
        rc = KUBE_OK;

    } else {
        rc = watch ? memory_watch_begin(lw, call, options, now_ms)
                   : memory_list_begin(lw, call, options);
    }

    if (rc != KUBE_OK) {
        memory_call_free(lw, call);
        return NULL;
    }

    call->next = lw->calls;
    lw->calls = call;

    return (void *) call;
}


static kube_call_t *
memory_list(void *ctx, const kube_list_options_t *options, uint64_t now_ms)
{
    return memory_begin(ctx, false, options, now_ms);
}


static kube_call_t *
memory_watch(void *ctx, const kube_list_options_t *options, uint64_t now_ms)
{
    return memory_begin(ctx, true, options, now_ms);
}


static kube_rc_t
memory_end(memory_call_t *call, kube_result_t *result, kube_rc_t rc)
{
    call->over = true;

    result->kind = KUBE_RESULT_END;
    result->rc = rc;
    result->text = "";
    result->remedy = NULL;
    result->continue_token = call->more ? kube_str(call->token)
                                        : KUBE_STR_NULL;

    return KUBE_OK;
}


static kube_rc_t
memory_status(memory_lw_t *lw, memory_call_t *call, kube_result_t *result)
{
    call->over = true;

    kube_status_judge(&lw->arena, call->code, KUBE_STR_NULL, &lw->status);

    if (call->verdict != KUBE_VERDICT_OTHER) {
        lw->status.verdict = call->verdict;
    }

    lw->status.retry_after_s = call->retry_after_s;

    (void) snprintf(lw->status.message, sizeof(lw->status.message),
                    "%s of a source in memory was refused",
                    call->watch ? "a watch" : "a list");

    result->kind = KUBE_RESULT_STATUS;
    result->status = &lw->status;

    return KUBE_OK;
}


static void
memory_set_rv(memory_lw_t *lw, uint64_t rv, kube_result_t *result)
{
    lw->rv.len = (uint8_t) snprintf(lw->rv.data, sizeof(lw->rv.data), "%llu",
                                    (unsigned long long) rv);
    result->rv = lw->rv;
}


/* A state as the object of the result, at version rv. */
static kube_rc_t
memory_object(memory_lw_t *lw, memory_call_t *call, memory_state_t *state,
    uint64_t rv, kube_result_t *result)
{
    kube_rc_t             rc;
    const kube_record_t  *record;

    record = (const void *) state->record;
    rc = kube_record_decode(&lw->arena, record, record->size,
                            &result->object);

    if (rc != KUBE_OK) {
        return memory_end(call, result, rc);
    }

    if (kube_resource_info(lw->source->resource)->shape == KUBE_SHAPE_SLICE) {
        result->object.u.slice.trigger_ms = state->trigger_ms;
    }

    memory_set_rv(lw, rv, result);

    result->object.u.meta.rv = kube_rv_str(&lw->rv);
    result->type = KUBE_WATCH_ADDED;
    result->refusal = KUBE_REFUSAL_NONE;
    result->what = "";
    result->dropped = 0;
    result->surprise = KUBE_SURPRISE_NONE;

    call->fresh += record->size;

    return KUBE_OK;
}


/* An object of a list, or of what a watch begins with. */
static kube_rc_t
memory_item(memory_lw_t *lw, memory_call_t *call, kube_result_t *result)
{
    memory_state_t  *state;

    state = call->items[call->at++];
    result->kind = call->watch ? KUBE_RESULT_EVENT : KUBE_RESULT_ITEM;

    return memory_object(lw, call, state, state->rv, result);
}


static kube_rc_t
memory_event(memory_lw_t *lw, memory_call_t *call, kube_result_t *result)
{
    kube_rc_t               rc;
    const memory_change_t  *change;

    change = kube_memory_change(lw->source, ++call->rv);
    call->held = change->state;
    call->held->refs++;

    result->kind = KUBE_RESULT_EVENT;
    rc = memory_object(lw, call, change->state, call->rv, result);
    result->type = change->type;

    kube_memory_skip(lw, call);

    return rc;
}


static kube_rc_t
memory_bookmark(memory_lw_t *lw, memory_call_t *call, kube_result_t *result)
{
    result->kind = KUBE_RESULT_BOOKMARK;
    result->initial_events_end = call->initial_end;
    memory_set_rv(lw, call->rv, result);

    call->initial_end = false;
    call->bookmark = false;
    call->fresh++;

    return KUBE_OK;
}


/* What a watch has to say; KUBE_AGAIN: nothing. */
static kube_rc_t
memory_watch_next(memory_lw_t *lw, memory_call_t *call,
    kube_result_t *result)
{
    if (call->at < call->items_n) {
        return memory_item(lw, call, result);
    }

    if (call->initial_end) {
        return memory_bookmark(lw, call, result);
    }

    if (call->rv < lw->source->forgotten) {
        memory_refuse(call, KUBE_VERDICT_EXPIRED, 410);
        return memory_status(lw, call, result);
    }

    if (call->rv != lw->source->rv) {
        return memory_event(lw, call, result);
    }

    if (call->bookmark) {
        return memory_bookmark(lw, call, result);
    }

    if (call->fresh != 0) {
        result->kind = KUBE_RESULT_ALIVE;
        result->size_bytes = call->fresh;
        result->partial = false;
        call->fresh = 0;

        return KUBE_OK;
    }

    return KUBE_AGAIN;
}


static bool
memory_ready(void *ctx, const kube_call_t *handle)
{
    const memory_lw_t    *lw = ctx;
    const memory_call_t  *call = (const void *) handle;

    if (call->over) {
        return false;
    }

    return !call->watch
           || call->ended
           || !call->opened
           || call->at < call->items_n
           || call->initial_end
           || call->bookmark
           || call->fresh != 0
           || call->rv != lw->source->rv;
}


static kube_rc_t
memory_next(void *ctx, kube_call_t *handle, kube_result_t *result)
{
    memory_lw_t    *lw = ctx;
    memory_call_t  *call = (void *) handle;

    if (!memory_ready(ctx, handle)) {
        return KUBE_AGAIN;
    }

    kube_arena_reset(&lw->arena);
    kube_memory_release(&lw->source->alloc, call->held);
    call->held = NULL;

    if (call->ended) {
        return memory_end(call, result, call->ended_rc);
    }

    if (call->verdict != KUBE_VERDICT_OK) {
        return memory_status(lw, call, result);
    }

    if (!call->opened) {
        call->opened = true;
        result->kind = KUBE_RESULT_OPENED;

        return KUBE_OK;
    }

    if (call->watch) {
        return memory_watch_next(lw, call, result);
    }

    if (!call->meta) {
        call->meta = true;
        result->kind = KUBE_RESULT_META;
        memory_set_rv(lw, call->rv, result);

        return KUBE_OK;
    }

    return (call->at < call->items_n) ? memory_item(lw, call, result)
                                      : memory_end(call, result, KUBE_OK);
}


static void
memory_cancel(void *ctx, kube_call_t *handle)
{
    memory_lw_t     *lw = ctx;
    memory_call_t   *call = (void *) handle;
    memory_call_t  **p;

    for (p = &lw->calls; *p != call; p = &(*p)->next) {
        /* void */
    }

    *p = call->next;
    memory_call_free(lw, call);
}


/* There are none. */
static void
memory_credentials(void *ctx, uint64_t now_ms)
{
    (void) ctx;
    (void) now_ms;
}


static void
memory_destroy(void *ctx)
{
    memory_lw_t    *lw = ctx;
    memory_lw_t   **p;
    kube_alloc_t    alloc;

    for (p = &lw->source->lws; *p != lw; p = &(*p)->next) {
        /* void */
    }

    *p = lw->next;
    alloc = lw->source->alloc;

    kube_arena_done(&lw->arena);
    kube_str_free(&alloc, &lw->ns);
    kube_free(&alloc, lw);
}


kube_rc_t
kube_memory_lister_watcher_create(kube_memory_source_t *source, kube_str_t ns,
    kube_lister_watcher_t *lw)
{
    memory_lw_t  *memory;

    memory = kube_zalloc(&source->alloc, sizeof(memory_lw_t));
    if (memory == NULL) {
        return KUBE_NOMEM;
    }

    if (kube_str_dup(&source->alloc, ns, &memory->ns) != KUBE_OK) {
        kube_free(&source->alloc, memory);
        return KUBE_NOMEM;
    }

    kube_arena_init(&memory->arena, &source->alloc, MEMORY_ARENA_BYTES);

    memory->source = source;
    memory->next = source->lws;
    source->lws = memory;

    lw->list = memory_list;
    lw->watch = memory_watch;
    lw->next = memory_next;
    lw->ready = memory_ready;
    lw->cancel = memory_cancel;
    lw->credentials = memory_credentials;
    lw->cut = NULL;
    lw->suspect = NULL;
    lw->healed = NULL;
    lw->local = false;
    lw->destroy = memory_destroy;
    lw->ctx = memory;

    return KUBE_OK;
}

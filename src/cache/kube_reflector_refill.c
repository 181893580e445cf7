/*
 * kube_reflector_refill - a list beside an open watch, for what was refused for
 * want of room or of a place and no event will bring again.
 *
 * The watch goes on meanwhile and stays the truth: the list deletes nothing,
 * moves no version, and gives only what the watch has not spoken of since the
 * list was asked for.  So an item is that object's newest state, or the watch
 * brings a newer one later:
 *
 *   the list is not older than anything that was taken before it was asked
 *   for, by this process or the one before it;
 *   an item of a key of which an event came since is left out, for the object
 *   may be gone since;
 *   an item that is newer than the watch is left out, for its event is to come.
 *
 * It is one need's affair: where it fails it ends, and its pace (the step
 * machine's) says when it is asked for again.  For the files of kube_reflector
 * alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_reflector_impl.h"


/* Results that are taken before the watch is asked again. */
#define REFILL_RESULTS  64

/* Keys of which events come meanwhile; beyond them a list replaces. */
#define REFILL_KEYS     65536

/* Until the FIFO is asked again whether it has memory for a mark. */
#define REFILL_RETRY_MS 100


static kube_rc_t
refill_mark(kube_reflector_t *r, kube_delta_kind_t kind)
{
    return kube_delta_fifo_put(r->options.fifo, &(kube_delta_t) {
                                   .kind = kind,
                                   .scope = r->options.scope
                               });
}


static uint64_t
refill_key(const kube_reflector_t *r, const kube_meta_t *meta)
{
    kube_seed_t  seed;

    seed.k0 = r->options.step.seed;
    seed.k1 = r->options.scope;

    return kube_hash64_key(seed, meta->ns, meta->name);
}


/* Its end is in the FIFO, or will be once that has memory. */
static void
refill_say_end(kube_reflector_t *r)
{
    reflector_refill_t  *refill;

    refill = &r->refill;

    if (refill->owes != KUBE_DELTA_SYNC
        && refill_mark(r, refill->owes) == KUBE_OK)
    {
        refill->owes = KUBE_DELTA_SYNC;
    }
}


static void
refill_cancel(kube_reflector_t *r)
{
    reflector_refill_t  *refill;

    refill = &r->refill;

    if (refill->handle != NULL) {
        r->lw.cancel(r->lw.ctx, refill->handle);
        refill->handle = NULL;
    }

    /* a list in line has the place, where the turn was lost to another one */

    if (!r->lined && (refill->turn || refill->waiting)) {
        kube_list_turn_give(r->options.turn, r->options.scope);
    }

    refill->turn = false;
    refill->waiting = false;
    kube_hash_set_done(&refill->touched);
}


/* Ends it: as a whole one, or as one that broke off. */
static void
refill_end(kube_reflector_t *r, kube_delta_kind_t end)
{
    refill_cancel(r);

    if (r->refill.begun) {
        r->refill.begun = false;
        r->refill.owes = end;
        refill_say_end(r);
    }
}


/* replace: the next one is no refill, for it would fail in the same way. */
static void
refill_broken(kube_reflector_t *r, const char *why, bool replace)
{
    kube_log_event(&r->log, r->now_ms, KUBE_LOG_INFO, KUBE_EV_LIST,
                   "list of %s beside its watch was given up: %s", r->label,
                   why);

    refill_end(r, KUBE_DELTA_REFILL_BROKEN);
    r->refill.replace = replace;
}


static void
refill_call(kube_reflector_t *r)
{
    reflector_refill_t  *refill;

    refill = &r->refill;
    refill->progress_ms = r->now_ms;
    refill->unread_ms = KUBE_NEVER;

    refill->handle = r->lw.list(r->lw.ctx, &(kube_list_options_t) {
                                    .rv = (refill->pages == 0)
                                          ? kube_rv_str(&refill->rv)
                                          : KUBE_STR_NULL,
                                    .not_older_than = (refill->pages == 0),
                                    .beside = true,
                                    .limit = refill->limit,
                                    .continue_token = { refill->token,
                                                        refill->token_len }
                                }, r->now_ms);

    if (refill->handle == NULL) {
        refill_broken(r, kube_rc_text(KUBE_NOMEM), false);
    }
}


void
kube_reflector_refill(kube_reflector_t *r, const kube_action_t *action)
{
    reflector_refill_t  *refill;

    refill = &r->refill;

    /* one is to come, or under way */

    if (refill->waiting || refill->begun) {
        return;
    }

    refill->waiting = true;
    refill->known = false;
    refill->pages = 0;
    refill->empty_pages = 0;
    refill->items = 0;
    refill->token_len = 0;
    refill->limit = action->limit;
    kube_hash_set_init(&refill->touched, &r->alloc, REFILL_KEYS);
}


/* The first page, not older than what is known now. */
static void
refill_begin(kube_reflector_t *r)
{
    reflector_refill_t  *refill;

    refill = &r->refill;

    if (refill_mark(r, KUBE_DELTA_REFILL_BEGIN) != KUBE_OK) {
        refill_broken(r, kube_rc_text(KUBE_NOMEM), false);

        /* who asked sees no end of it, and so would not ask again */

        refill->again = true;
        return;
    }

    refill->begun = true;
    refill->rv = *kube_reflector_floor(&r->machine);
    refill->started_ms = r->now_ms;

    kube_reflector_count(r, KUBE_COUNTER_LISTS, 1);
    kube_reflector_count(r, KUBE_COUNTER_RELISTS, 1);
    kube_reflector_count(r, KUBE_COUNTER_RELISTS_ROOM, 1);

    kube_log_event(&r->log, r->now_ms, KUBE_LOG_NOTICE, KUBE_EV_RELIST,
                   "list of %s again (%s), beside its watch, not older than "
                   "\"%.*s\"", r->label,
                   kube_reflector_reason(KUBE_COUNTER_RELISTS_ROOM),
                   (int) refill->rv.len, refill->rv.data);

    refill_call(r);
}


/* The next page, the first one too, once it is its turn. */
static void
refill_page(kube_reflector_t *r)
{
    reflector_refill_t  *refill;

    refill = &r->refill;
    refill->turn = kube_list_turn_take(r->options.turn, r->options.scope,
                                       r->now_ms);
    refill->waiting = !refill->turn;

    if (refill->waiting) {
        return;
    }

    if (refill->begun) {
        refill_call(r);

    } else {
        refill_begin(r);
    }
}


void
kube_reflector_touch(kube_reflector_t *r, const kube_result_t *result)
{
    kube_rc_t           rc;
    const kube_meta_t  *meta;

    if (!r->refill.begun
        || (result->kind != KUBE_RESULT_EVENT
            && result->kind != KUBE_RESULT_UNREADABLE))
    {
        return;
    }

    meta = kube_object_meta(&result->object);

    if (result->kind == KUBE_RESULT_UNREADABLE || meta->name.len == 0) {
        refill_broken(r, "the watch told of an object without a key", false);
        return;
    }

    rc = kube_hash_set_add(&r->refill.touched, refill_key(r, meta));

    if (rc != KUBE_OK) {
        refill_broken(r, "too much changed meanwhile", rc == KUBE_FULL);
    }
}


static void
refill_on_meta(kube_reflector_t *r, const kube_rv_t *rv)
{
    if (r->refill.known) {
        return;
    }

    r->refill.known = true;

    if (rv->len == 0 || kube_rv_cmp(rv, &r->refill.rv) < 0) {
        refill_broken(r, "it is older than the watch", false);
    }
}


/*
 * True if the watch has not spoken of the item, nor will.  One that cannot be
 * held, and may have no version, is wanted too: the list may be for its name.
 */
static bool
refill_wants(const kube_reflector_t *r, const kube_result_t *item)
{
    kube_rv_t           rv;
    const kube_meta_t  *meta;

    meta = kube_object_meta(&item->object);

    if (kube_rv_parse(meta->rv, &rv) != KUBE_OK) {
        rv.len = 0;
    }

    return meta->name.len != 0
           && kube_rv_cmp(&rv, &r->machine.rv) <= 0
           && !kube_hash_set_has(&r->refill.touched, refill_key(r, meta));
}


static void
refill_on_item(kube_reflector_t *r, const kube_result_t *item)
{
    r->refill.items++;
    r->refill.empty_pages = 0;

    /* "items" in front of "metadata": it may be older than the watch */

    if (!r->refill.known) {
        refill_broken(r, "its version comes behind its items", true);
        return;
    }

    if (refill_wants(r, item)
        && kube_reflector_queue_item(r, item) != KUBE_OK)
    {
        refill_broken(r, kube_rc_text(KUBE_NOMEM), false);
    }
}


/* Takes it for the next page; false: the pages go on, and lead nowhere. */
static bool
refill_token(kube_reflector_t *r, kube_str_t token)
{
    kube_str_t           last;
    reflector_refill_t  *refill;

    refill = &r->refill;
    last = (kube_str_t) { refill->token, refill->token_len };

    if (token.len > sizeof(refill->token)
        || kube_str_eq(token, last)
        || kube_reflector_circles(&refill->token_mark, token, refill->pages,
                                  r->options.step.seed)
        || ++refill->empty_pages > KUBE_EMPTY_PAGES_MAX
        || ++refill->pages >= KUBE_PAGES_MAX)
    {
        return false;
    }

    memcpy(refill->token, token.data, token.len);
    refill->token_len = token.len;

    return true;
}


static void
refill_on_end(kube_reflector_t *r, const kube_result_t *result)
{
    reflector_refill_t  *refill;

    refill = &r->refill;

    if (result->rc != KUBE_OK) {
        kube_reflector_count(r, kube_counter_of_rc(result->rc), 1);
        refill_broken(r, result->text[0] != '\0' ? result->text
                                                 : kube_rc_text(result->rc),
                      false);
        return;
    }

    if (!refill->known) {
        refill_broken(r, "it has no version", true);
        return;
    }

    if (result->continue_token.len == 0) {
        kube_reflector_observe(r, KUBE_HISTOGRAM_LIST_DURATION,
                               (r->now_ms - refill->started_ms) * 1000);
        kube_reflector_observe(r, KUBE_HISTOGRAM_ITEMS_PER_LIST,
                               refill->items);
        refill_end(r, KUBE_DELTA_REFILL_END);
        return;
    }

    /* a list that replaces had no end either, and no watch beside it */

    if (!refill_token(r, result->continue_token)) {
        refill_broken(r, "its pages have no end", false);
        return;
    }

    r->lw.cancel(r->lw.ctx, refill->handle);
    refill->handle = NULL;

    refill->turn = false;
    refill->waiting = true;

    /* others' changes may wait for a list that waits: it goes between pages */

    if (!r->lined) {
        kube_list_turn_give(r->options.turn, r->options.scope);
        refill_page(r);
    }
}


/* A later page whose token has expired: a list knows what to do then. */
static void
refill_on_status(kube_reflector_t *r, const kube_status_t *status)
{
    kube_verdict_t  verdict;

    verdict = status->verdict;
    kube_reflector_count(r, kube_reflector_verdict(verdict), 1);

    if (verdict == KUBE_VERDICT_UNAUTHORIZED) {
        r->lw.credentials(r->lw.ctx, r->now_ms);
    }

    kube_reflector_refused_beside(&r->machine, status->retry_after_s * 1000ull,
                                  r->now_ms);

    /* one that was set back, and keeps its watch silent, is found by a list */

    refill_broken(r, kube_verdict_text(verdict),
                  (r->refill.pages != 0 && verdict == KUBE_VERDICT_EXPIRED)
                  || verdict == KUBE_VERDICT_TOO_LARGE_RV);
}


static void
refill_result(kube_reflector_t *r, const kube_result_t *result)
{
    /* items are progress, bytes are none: others wait for its turn */

    if (result->kind != KUBE_RESULT_ALIVE) {
        r->refill.progress_ms = r->now_ms;
        kube_list_turn_progress(r->options.turn, r->options.scope, r->now_ms);
    }

    switch (result->kind) {

    case KUBE_RESULT_META:
        refill_on_meta(r, &result->rv);
        return;

    case KUBE_RESULT_ITEM:
        refill_on_item(r, result);
        return;

    case KUBE_RESULT_STATUS:
        refill_on_status(r, result->status);
        return;

    case KUBE_RESULT_END:
        refill_on_end(r, result);
        return;

    default:
        return;
    }
}


/*
 * The time in which nothing is read of it is not the source's; only that is
 * left out, for a watch that is opened again each minute would be no end.
 */
static void
refill_reads(kube_reflector_t *r, bool reads)
{
    reflector_refill_t  *refill;

    refill = &r->refill;

    if (!reads) {
        refill->unread_ms = (refill->unread_ms == KUBE_NEVER)
                            ? r->now_ms : refill->unread_ms;

    } else if (refill->unread_ms != KUBE_NEVER) {
        refill->progress_ms += r->now_ms - refill->unread_ms;
        refill->unread_ms = KUBE_NEVER;
    }
}


/* A refusal that did not end says more than that it is late. */
static void
refill_late(kube_reflector_t *r)
{
    kube_result_t  result;

    if (kube_reflector_cut(r, r->refill.handle)
        && r->lw.next(r->lw.ctx, r->refill.handle, &result) == KUBE_OK)
    {
        refill_result(r, &result);
        return;
    }

    refill_broken(r, kube_rc_text(KUBE_TIMEOUT), false);
}


void
kube_reflector_run_refill(kube_reflector_t *r)
{
    unsigned             n;
    kube_result_t        result;
    reflector_refill_t  *refill;

    refill = &r->refill;
    refill_say_end(r);

    /* who does not grant the watch may be of another past than it was */

    if (r->machine.state != KUBE_REFLECTOR_WATCHING) {

        /* a list that follows has its place, once that is sent */

        if (refill->waiting && !r->lined
            && r->action.kind != KUBE_ACTION_LIST)
        {
            kube_list_turn_give(r->options.turn, r->options.scope);
        }

        refill_reads(r, false);
        return;
    }

    /* a list that replaces has its place, where one is in line */

    if (refill->waiting && refill->owes == KUBE_DELTA_SYNC && !r->lined) {
        refill_page(r);
    }

    for (n = 0; n < REFILL_RESULTS && refill->handle != NULL; n++) {

        if (r->paused || kube_delta_fifo_high(r->options.fifo)) {
            refill_reads(r, false);
            return;
        }

        refill_reads(r, true);

        if (r->lw.next(r->lw.ctx, refill->handle, &result) != KUBE_OK) {
            break;
        }

        refill_result(r, &result);
        kube_hand_leave(r->options.hand);
    }

    if (refill->handle != NULL
        && r->now_ms - refill->progress_ms >= KUBE_LIST_MS)
    {
        refill_late(r);
    }
}


void
kube_reflector_end_refill(kube_reflector_t *r)
{
    refill_end(r, KUBE_DELTA_REFILL_BROKEN);
}


uint64_t
kube_reflector_refill_deadline(const kube_reflector_t *r)
{
    const reflector_refill_t  *refill;

    refill = &r->refill;

    if (refill->owes != KUBE_DELTA_SYNC) {
        return r->now_ms + REFILL_RETRY_MS;
    }

    if (r->machine.state != KUBE_REFLECTOR_WATCHING) {
        return KUBE_NEVER;
    }

    if (refill->waiting) {
        return kube_list_turn_deadline(r->options.turn, r->options.scope);
    }

    if (refill->handle == NULL) {
        return KUBE_NEVER;
    }

    return r->lw.ready(r->lw.ctx, refill->handle)
           ? 0 : refill->progress_ms + KUBE_LIST_MS;
}

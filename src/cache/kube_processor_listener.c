/*
 * kube_processor_listener - what one listener is told: pending rows first, then
 * the ring from its cursor on.
 *
 * A row's old state is what the listener was told last, NULL: of nothing.  Its
 * new state is the one at the cursor, and what the ring says of the key goes
 * on from there.  What has come and gone in between leaves no row.  It knows
 * no other listener.  Called by kube_processor.c; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_processor_impl.h"


/* A resync, or an initial fill, while the store is walked. */
typedef struct {
    kube_processor_t  *processor;
    listener_t        *listener;
    bool               initial;
    kube_rc_t          rc;
} listener_fill_t;


static const kube_meta_t *
change_meta(const kube_store_change_t *change)
{
    return (change->new != NULL) ? &change->new->id.meta
                                 : &change->old->id.meta;
}


static bool
change_is_update(const kube_store_change_t *change)
{
    return change->old != NULL
           && change->new != NULL
           && kube_stored_same_uid(change->old, change->new);
}


static uint64_t
listener_hash(const kube_processor_t *p, const kube_meta_t *meta)
{
    return kube_hash64_key(p->conf.seed, meta->ns, meta->name);
}


static listener_row_t *
listener_find(const kube_processor_t *p, const listener_t *l,
    const kube_meta_t *meta)
{
    listener_row_t     *row;
    kube_map_link_t    *link;
    const kube_meta_t  *its;

    for (link = kube_map_first(&l->map, listener_hash(p, meta));
         link != NULL;
         link = kube_map_next(link))
    {
        row = kube_map_data(link, listener_row_t, link);
        its = change_meta(&row->change);

        if (kube_str_eq(its->ns, meta->ns)
            && kube_str_eq(its->name, meta->name))
        {
            return row;
        }
    }

    return NULL;
}


static void
listener_remove_row(kube_processor_t *p, listener_t *l, listener_row_t *row)
{
    if (row->prev != NULL) {
        row->prev->next = row->next;

    } else {
        l->first = row->next;
    }

    if (row->next != NULL) {
        row->next->prev = row->prev;

    } else {
        l->last = row->prev;
    }

    l->initial -= row->change.initial;
    p->pending--;

    if (l->first == NULL) {
        l->behind = false;
    }

    kube_map_remove(&l->map, &row->link);
    kube_change_release(&row->change);
    kube_free(p->alloc, row);
}


static kube_rc_t
listener_add_row(kube_processor_t *p, listener_t *l,
    const kube_store_change_t *change)
{
    listener_row_t  *row;

    row = kube_zalloc(p->alloc, sizeof(listener_row_t));
    if (row == NULL) {
        return KUBE_NOMEM;
    }

    row->change = *change;
    kube_change_hold(&row->change);
    row->prev = l->last;

    if (l->last != NULL) {
        l->last->next = row;

    } else {
        l->first = row;
    }

    l->last = row;
    l->initial += change->initial;
    p->pending++;

    kube_map_insert(&l->map, &row->link,
                    listener_hash(p, change_meta(change)));

    return KUBE_OK;
}


/* Makes a change pending, on top of what is pending of its key. */
static kube_rc_t
listener_take_along(kube_processor_t *p, listener_t *l,
    const kube_store_change_t *change)
{
    listener_row_t       *row;
    kube_store_change_t  *told;

    row = listener_find(p, l, change_meta(change));

    if (row == NULL) {
        return listener_add_row(p, l, change);
    }

    told = &row->change;

    if (told->old == NULL && change->new == NULL) {
        listener_remove_row(p, l, row);
        return KUBE_OK;
    }

    /* the end of the object that the listener knows */

    if (change_is_update(told)
        && (change->new == NULL
            || !kube_stored_same_uid(told->old, change->new)))
    {
        told->unknown = (change->unknown || told->old != change->old);
    }

    (void) kube_stored_hold(change->new);
    kube_stored_release(told->new);
    told->new = change->new;

    return KUBE_OK;
}


/* Takes along the change at the cursor. */
kube_rc_t
kube_listener_take_next(kube_processor_t *p, listener_t *l)
{
    kube_rc_t            rc;
    kube_store_change_t  change;

    change = kube_ring_slot(p, l->cursor)->change;

    if (l->deleted) {
        change.old = NULL;
    }

    rc = listener_take_along(p, l, &change);

    if (rc == KUBE_OK) {
        l->cursor++;
        l->deleted = false;
    }

    return rc;
}


void
kube_listener_clear(kube_processor_t *p, listener_t *l)
{
    while (l->first != NULL) {
        listener_remove_row(p, l, l->first);
    }
}


/* A row of what is held, unless one of its key is pending already. */
static bool
listener_fill_row(void *ctx, kube_stored_t *stored)
{
    listener_fill_t      *fill = ctx;
    kube_store_change_t   change;

    if (listener_find(fill->processor, fill->listener, &stored->id.meta)
        != NULL)
    {
        return true;
    }

    change = (kube_store_change_t) {
        .old = fill->initial ? NULL : stored,
        .new = stored,
        .initial = fill->initial
    };

    fill->rc = listener_add_row(fill->processor, fill->listener, &change);

    return fill->rc == KUBE_OK;
}


kube_rc_t
kube_listener_fill(kube_processor_t *p, listener_t *l,
    const kube_store_t *store, bool initial)
{
    listener_fill_t  fill;

    fill = (listener_fill_t) {
        .processor = p,
        .listener = l,
        .initial = initial,
        .rc = KUBE_OK
    };

    kube_store_each(store, listener_fill_row, &fill);

    return fill.rc;
}


/* KUBE_OK: taken, whatever the handler says of it; KUBE_AGAIN. */
static kube_rc_t
listener_notify(kube_processor_t *p, listener_t *l,
    const kube_notification_t *notification, uint64_t now_ms)
{
    kube_rc_t  rc;

    p->calling = true;
    p->current_id = l->id;
    rc = l->handler.notify(l->handler.ctx, notification);
    p->calling = false;

    if (rc == KUBE_AGAIN) {
        return rc;
    }

    p->notifications++;

    if (rc != KUBE_OK) {
        p->errors++;
        kube_log_event(&p->log, now_ms, KUBE_LOG_WARN, KUBE_EV_INTERNAL,
                       "a handler failed: %s", kube_rc_text(rc));
    }

    return KUBE_OK;
}


static kube_stored_t *
listener_sees(const listener_t *l, kube_stored_t *stored)
{
    if (stored == NULL
        || l->handler.filter == NULL
        || l->handler.filter(l->handler.ctx, stored))
    {
        return stored;
    }

    return NULL;
}


/*
 * Tells a change, or what of it the listener sees.  *deleted: its first half
 * is told, and is set when it is.
 */
static kube_rc_t
listener_tell(kube_processor_t *p, listener_t *l,
    const kube_store_change_t *change, bool *deleted, uint64_t now_ms)
{
    kube_notification_t  n;
    kube_store_change_t  seen;

    seen = *change;
    seen.old = *deleted ? NULL : listener_sees(l, change->old);
    seen.new = listener_sees(l, change->new);

    memset(&n, 0, sizeof(kube_notification_t));

    if (change_is_update(&seen)) {
        n.kind = KUBE_NOTIFY_UPDATED;
        n.old = seen.old;
        n.new = seen.new;
        return listener_notify(p, l, &n, now_ms);
    }

    if (seen.old != NULL) {
        n.kind = KUBE_NOTIFY_DELETED;
        n.old = seen.old;

        /* one that leaves the filter is well known */
        n.final_state_unknown = (change->unknown && !change_is_update(change));

        if (listener_notify(p, l, &n, now_ms) != KUBE_OK) {
            return KUBE_AGAIN;
        }

        *deleted = true;

        if (l->removed || p->dropped) {
            return KUBE_OK;
        }
    }

    if (seen.new == NULL) {
        return KUBE_OK;
    }

    memset(&n, 0, sizeof(kube_notification_t));
    n.kind = KUBE_NOTIFY_ADDED;
    n.new = seen.new;
    n.in_initial_list = change->initial;

    return listener_notify(p, l, &n, now_ms);
}


static kube_rc_t
listener_tell_row(kube_processor_t *p, listener_t *l, uint64_t now_ms)
{
    bool             deleted;
    kube_rc_t        rc;
    listener_row_t  *row;

    row = l->first;
    deleted = false;

    rc = listener_tell(p, l, &row->change, &deleted, now_ms);

    if (rc == KUBE_OK) {
        listener_remove_row(p, l, row);

    } else if (deleted) {
        kube_stored_release(row->change.old);
        row->change.old = NULL;
    }

    return rc;
}


kube_rc_t
kube_listener_run(kube_processor_t *p, listener_t *l, uint64_t now_ms)
{
    kube_rc_t            rc;
    kube_notification_t  n;

    if (l->resync) {
        memset(&n, 0, sizeof(kube_notification_t));
        n.kind = KUBE_NOTIFY_RESYNC;
        rc = listener_notify(p, l, &n, now_ms);
        l->resync = (rc != KUBE_OK);

        return rc;
    }

    if (l->first != NULL) {
        return listener_tell_row(p, l, now_ms);
    }

    if (l->cursor == p->head) {
        return KUBE_NOT_FOUND;
    }

    rc = listener_tell(p, l, &kube_ring_slot(p, l->cursor)->change, &l->deleted,
                       now_ms);

    if (rc == KUBE_OK) {
        l->deleted = false;
        l->cursor++;
    }

    return rc;
}

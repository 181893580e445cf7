/*
 * kube_processor - the ring of changes, and who listens.
 *
 * A change has a number; the ring has those from tail to head.  A listener has
 * read all below its cursor, but for what is pending, which it is told first
 * (kube_processor_listener.c).  Called by kube_shared_informer; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <assert.h>

#include "kube_processor_impl.h"


kube_processor_t *
kube_processor_create(const kube_alloc_t *alloc,
    const kube_processor_conf_t *conf)
{
    kube_processor_t  *p;

    p = kube_zalloc(alloc, sizeof(kube_processor_t));
    if (p == NULL) {
        return NULL;
    }

    p->alloc = alloc;
    p->conf = *conf;

    if (conf->resync_ms < KUBE_RESYNC_MIN_MS) {
        p->conf.resync_ms = KUBE_RESYNC_MIN_MS;
    }

    p->check_ms = p->conf.resync_ms;
    p->tick_ms = KUBE_NEVER;
    kube_log_init(&p->log, conf->sink);

    p->ring = kube_zalloc(alloc, conf->changes_max * sizeof(ring_slot_t));
    if (p->ring == NULL) {
        kube_free(alloc, p);
        return NULL;
    }

    return p;
}


/* Ends the oldest change. */
static void
ring_drop(kube_processor_t *p)
{
    ring_slot_t  *slot;

    slot = kube_ring_slot(p, p->tail);
    p->bytes -= slot->bytes;
    kube_change_release(&slot->change);
    p->tail++;
}


/* Ends what all listeners have read. */
static void
ring_trim(kube_processor_t *p)
{
    uint64_t     read;
    listener_t  *l;

    read = p->head;

    for (l = p->listeners; l != NULL; l = l->next) {
        if (!l->removed && l->cursor < read) {
            read = l->cursor;
        }
    }

    while (p->tail < read) {
        ring_drop(p);
    }
}


/* Makes a place in the ring: who has not read the oldest takes it along. */
static kube_rc_t
ring_push_out(kube_processor_t *p)
{
    listener_t  *l;

    for (l = p->listeners; l != NULL; l = l->next) {

        if (l->removed || l->cursor != p->tail) {
            continue;
        }

        if (kube_listener_take_next(p, l) != KUBE_OK) {
            return KUBE_NOMEM;
        }

        if (!l->behind) {
            l->behind = true;
            l->resync = true;
            p->fallen_behind++;
        }
    }

    ring_drop(p);

    return KUBE_OK;
}


kube_rc_t
kube_processor_on_change(void *processor, const kube_store_change_t *change)
{
    size_t             bytes;
    ring_slot_t       *slot;
    kube_processor_t  *p = processor;

    assert(!p->calling);

    if (p->listeners == NULL || p->dropped) {
        return KUBE_OK;
    }

    bytes = (change->old != NULL ? change->old->record->size : 0)
            + (change->new != NULL ? change->new->record->size : 0);

    while (p->head != p->tail
           && (p->head - p->tail == p->conf.changes_max
               || p->bytes > p->conf.bytes_max
               || bytes > p->conf.bytes_max - p->bytes))
    {
        if (ring_push_out(p) != KUBE_OK) {
            return KUBE_NOMEM;
        }
    }

    slot = kube_ring_slot(p, p->head);
    slot->change = *change;
    slot->change.initial = (!p->synced && change->old == NULL);
    slot->bytes = bytes;

    kube_change_hold(&slot->change);
    p->bytes += bytes;
    p->head++;

    return KUBE_OK;
}


static void
listener_free(kube_processor_t *p, listener_t *l)
{
    kube_listener_clear(p, l);
    kube_map_done(&l->map);
    kube_free(p->alloc, l);
}


/* Frees the listeners that were removed. */
static void
processor_reap(kube_processor_t *p)
{
    listener_t  *l, **at;

    if (!p->removing) {
        return;
    }

    p->removing = false;

    for (at = &p->listeners; *at != NULL; /* void */ ) {
        l = *at;

        if (!l->removed) {
            at = &l->next;
            continue;
        }

        *at = l->next;
        listener_free(p, l);
    }

    ring_trim(p);
}


void
kube_processor_destroy(kube_processor_t *p)
{
    listener_t  *l;

    if (p == NULL) {
        return;
    }

    while (p->tail < p->head) {
        ring_drop(p);
    }

    while (p->listeners != NULL) {
        l = p->listeners;
        p->listeners = l->next;
        listener_free(p, l);
    }

    kube_free(p->alloc, p->ring);
    kube_free(p->alloc, p);
}


/* A period may be as long as a program likes. */
static uint64_t
processor_after(uint64_t now_ms, uint64_t period_ms)
{
    return (period_ms < KUBE_NEVER - now_ms) ? now_ms + period_ms : KUBE_NEVER;
}


/* client-go's determineResyncPeriod(). */
static uint64_t
processor_period(kube_processor_t *p, uint64_t asked_ms, uint64_t now_ms)
{
    if (asked_ms == KUBE_NEVER) {
        return KUBE_NEVER;
    }

    if (p->check_ms == KUBE_NEVER) {
        kube_log_event(&p->log, now_ms, KUBE_LOG_WARN, KUBE_EV_CONFIG,
                       "a handler asks for a resync every %llu ms, but the "
                       "informer has none",
                       (unsigned long long) asked_ms);
        return KUBE_NEVER;
    }

    if (asked_ms < p->check_ms) {
        kube_log_event(&p->log, now_ms, KUBE_LOG_WARN, KUBE_EV_CONFIG,
                       "a handler's resync every %llu ms is raised to the "
                       "informer's, every %llu ms",
                       (unsigned long long) asked_ms,
                       (unsigned long long) p->check_ms);
        return p->check_ms;
    }

    return asked_ms;
}


/* The period that a handler wants, which may shorten the informer's. */
static uint64_t
processor_asked(kube_processor_t *p, uint64_t asked_ms, uint64_t now_ms)
{
    listener_t  *l;

    if (asked_ms == 0) {
        asked_ms = p->conf.resync_ms;
    }

    if (asked_ms < KUBE_RESYNC_MIN_MS) {
        asked_ms = KUBE_RESYNC_MIN_MS;
    }

    if (p->started || p->check_ms == KUBE_NEVER || asked_ms >= p->check_ms) {
        return asked_ms;
    }

    p->check_ms = asked_ms;

    for (l = p->listeners; l != NULL; l = l->next) {
        l->resync_ms = processor_period(p, l->asked_ms, now_ms);
    }

    return asked_ms;
}


kube_rc_t
kube_processor_add(kube_processor_t *p, const kube_handler_t *handler,
    const kube_store_t *store, kube_registration_t *registration,
    uint64_t now_ms)
{
    size_t       n;
    listener_t  *l, **at;

    n = 0;

    for (at = &p->listeners; *at != NULL; at = &(*at)->next) {
        n++;
    }

    if (n >= KUBE_LISTENERS_MAX) {
        return KUBE_TOO_LARGE;
    }

    l = kube_zalloc(p->alloc, sizeof(listener_t));
    if (l == NULL) {
        return KUBE_NOMEM;
    }

    if (kube_map_init(&l->map, p->alloc) != KUBE_OK) {
        kube_free(p->alloc, l);
        return KUBE_NOMEM;
    }

    l->handler = *handler;
    l->cursor = p->head;

    if (kube_listener_fill(p, l, store, true) != KUBE_OK) {
        listener_free(p, l);
        return KUBE_NOMEM;
    }

    l->asked_ms = processor_asked(p, handler->resync_ms, now_ms);
    l->resync_ms = processor_period(p, l->asked_ms, now_ms);
    l->due_ms = processor_after(now_ms, l->resync_ms);
    l->id = ++p->last_id;
    *at = l;

    *registration = (kube_registration_t) { .owner = p, .id = l->id };

    return KUBE_OK;
}


static listener_t *
processor_find(const kube_processor_t *p, kube_registration_t registration)
{
    listener_t  *l;

    if (registration.owner != p) {
        return NULL;
    }

    for (l = p->listeners; l != NULL; l = l->next) {
        if (l->id == registration.id && !l->removed) {
            return l;
        }
    }

    return NULL;
}


void
kube_processor_remove(kube_processor_t *p, kube_registration_t registration)
{
    listener_t  *l;

    l = processor_find(p, registration);

    if (l == NULL) {
        return;
    }

    l->removed = true;
    p->removing = true;

    /* run() walks the list, and its caller may be this handler */

    if (!p->calling) {
        processor_reap(p);
    }
}


kube_rc_t
kube_processor_shut_down(kube_processor_t *p, kube_registration_t registration)
{
    if (p->calling && p->current_id == registration.id
        && registration.owner == p)
    {
        return KUBE_BUSY;
    }

    kube_processor_remove(p, registration);

    return KUBE_OK;
}


void
kube_processor_started(kube_processor_t *p)
{
    p->started = true;
}


void
kube_processor_synced(kube_processor_t *p, uint64_t now_ms)
{
    if (p->synced) {
        return;
    }

    p->synced = true;
    p->initial_end = p->head;

    if (p->check_ms != KUBE_NEVER) {
        p->tick_ms = processor_after(now_ms, p->check_ms);
    }
}


bool
kube_processor_has_synced(const kube_processor_t *p,
    kube_registration_t registration)
{
    const listener_t  *l;

    l = processor_find(p, registration);

    return l != NULL
           && p->synced
           && !l->cut
           && l->initial == 0
           && l->cursor >= p->initial_end;
}


/* Makes all that is held pending for a listener whose time has come. */
static kube_rc_t
listener_resync(kube_processor_t *p, listener_t *l, const kube_store_t *store)
{
    /* what is held is newer than what the ring has */

    while (l->cursor < p->head) {
        if (kube_listener_take_next(p, l) != KUBE_OK) {
            return KUBE_NOMEM;
        }
    }

    return kube_listener_fill(p, l, store, false);
}


static void
processor_resync(kube_processor_t *p, const kube_store_t *store,
    uint64_t now_ms)
{
    listener_t  *l;

    if (now_ms < p->tick_ms) {
        return;
    }

    p->tick_ms = processor_after(now_ms, p->check_ms);

    for (l = p->listeners; l != NULL; l = l->next) {

        if (l->resync_ms == KUBE_NEVER || now_ms < l->due_ms) {
            continue;
        }

        if (listener_resync(p, l, store) == KUBE_OK) {
            l->due_ms = processor_after(now_ms, l->resync_ms);

        } else {
            p->tick_ms = now_ms + KUBE_RESYNC_MIN_MS;
        }
    }
}


static bool
listener_is_idle(const kube_processor_t *p, const listener_t *l)
{
    return l->removed
           || (!l->resync && l->first == NULL && l->cursor == p->head);
}


bool
kube_processor_run(kube_processor_t *p, const kube_store_t *store,
    uint64_t now_ms)
{
    bool         more;
    unsigned     n;
    kube_rc_t    rc;
    listener_t  *l;

    if (p->calling || p->dropped) {
        return false;
    }

    processor_resync(p, store, now_ms);
    more = false;

    for (l = p->listeners; l != NULL && !p->dropped; l = l->next) {
        rc = KUBE_OK;

        for (n = 0; n < KUBE_LISTENER_RUN && rc == KUBE_OK; n++) {
            rc = (l->removed || p->dropped) ? KUBE_NOT_FOUND
                                            : kube_listener_run(p, l, now_ms);
        }

        more |= (rc == KUBE_OK && !listener_is_idle(p, l));
    }

    processor_reap(p);
    ring_trim(p);

    if (p->dropped) {
        kube_processor_drop(p);
        return false;
    }

    return more;
}


uint64_t
kube_processor_deadline(const kube_processor_t *p)
{
    return p->dropped ? KUBE_NEVER : p->tick_ms;
}


bool
kube_processor_is_calling(const kube_processor_t *p)
{
    return p->calling;
}


bool
kube_processor_is_idle(const kube_processor_t *p)
{
    const listener_t  *l;

    for (l = p->listeners; l != NULL; l = l->next) {
        if (!listener_is_idle(p, l)) {
            return false;
        }
    }

    return true;
}


void
kube_processor_drop(kube_processor_t *p)
{
    listener_t  *l;

    p->dropped = true;

    /* what is being told stays until run() comes back here */

    if (p->calling) {
        return;
    }

    for (l = p->listeners; l != NULL; l = l->next) {
        l->cut |= (l->initial != 0 || l->cursor < p->initial_end);
        kube_listener_clear(p, l);

        l->resync = false;
        l->deleted = false;
        l->cursor = p->head;
    }

    ring_trim(p);
}


void
kube_processor_stats(const kube_processor_t *p, kube_processor_stats_t *stats)
{
    const listener_t  *l;

    *stats = (kube_processor_stats_t) {
        .ring = (size_t) (p->head - p->tail),
        .ring_bytes = p->bytes,
        .pending = p->pending,
        .notifications = p->notifications,
        .errors = p->errors,
        .fallen_behind = p->fallen_behind
    };

    for (l = p->listeners; l != NULL; l = l->next) {
        stats->listeners += !l->removed;
    }
}


uint64_t
kube_processor_resync_ms(const kube_processor_t *p,
    kube_registration_t registration)
{
    const listener_t  *l;

    l = processor_find(p, registration);

    return (l != NULL) ? l->resync_ms : KUBE_NEVER;
}


uint64_t
kube_processor_check_ms(const kube_processor_t *p)
{
    return p->check_ms;
}

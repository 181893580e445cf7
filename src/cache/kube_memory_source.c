/*
 * kube_memory_source - the objects that kube_memory_lister_watcher lists and
 * watches: the newest states in the order of their keys, and a ring of changes.
 *
 * States are never changed; the objects, the changes and the calls share them.
 * Versions have no gaps: the change that made version v stands in the ring at v
 * modulo its size.  Called by the owner of the objects, through the header of
 * the lister-watcher; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_memory_impl.h"


void
kube_memory_release(const kube_alloc_t *alloc, memory_state_t *state)
{
    if (state != NULL && --state->refs == 0) {
        kube_free(alloc, state);
    }
}


memory_state_t *
kube_memory_hold(memory_state_t *state)
{
    if (state != NULL) {
        state->refs++;
    }

    return state;
}


static memory_state_t *
memory_state_create(const kube_alloc_t *alloc, const kube_object_t *object,
    uint64_t rv)
{
    size_t           size;
    memory_state_t  *state;

    size = kube_record_size(object);

    state = kube_zalloc(alloc, sizeof(memory_state_t) + size);
    if (state == NULL) {
        return NULL;
    }

    kube_record_encode(object, state->record);

    if (kube_record_id(state->record, size, &state->id) != KUBE_OK) {
        kube_free(alloc, state);
        return NULL;
    }

    state->refs = 1;
    state->rv = rv;

    if (kube_resource_info(object->resource)->shape == KUBE_SHAPE_SLICE) {
        state->trigger_ms = object->u.slice.trigger_ms;
    }

    return state;
}


int
kube_memory_cmp(const memory_state_t *state, kube_str_t ns, kube_str_t name)
{
    int  cmp;

    cmp = kube_str_cmp(state->id.meta.ns, ns);

    return (cmp != 0) ? cmp : kube_str_cmp(state->id.meta.name, name);
}


/*
 * The place of a key among n states: of the state that has it, or where it
 * would stand.
 */
size_t
kube_memory_place(memory_state_t *const *states, size_t n, kube_str_t ns,
    kube_str_t name, bool *found)
{
    int     cmp;
    size_t  low, middle;

    *found = false;
    low = 0;

    while (low < n) {
        middle = low + (n - low) / 2;
        cmp = kube_memory_cmp(states[middle], ns, name);

        if (cmp == 0) {
            *found = true;
            return middle;
        }

        if (cmp < 0) {
            low = middle + 1;

        } else {
            n = middle;
        }
    }

    return low;
}


memory_change_t *
kube_memory_change(const kube_memory_source_t *source, uint64_t rv)
{
    return &source->changes[rv % source->changes_max];
}


/* Forgets the oldest change. */
static void
memory_forget(kube_memory_source_t *source)
{
    memory_change_t  *change;

    change = kube_memory_change(source, ++source->forgotten);

    kube_memory_release(&source->alloc, change->state);
    kube_memory_release(&source->alloc, change->before);
    memset(change, 0, sizeof(memory_change_t));
}


bool
kube_memory_is_in(const memory_lw_t *lw, const memory_state_t *state)
{
    return lw->ns.len == 0 || kube_str_eq(lw->ns, state->id.meta.ns);
}


/* True if a watch of the lister-watcher has to tell the change of rv. */
static bool
memory_tells(const memory_lw_t *lw, uint64_t rv)
{
    const memory_change_t  *change;

    change = kube_memory_change(lw->source, rv);

    return !change->quiet && kube_memory_is_in(lw, change->state);
}


/* Moves a watch over the changes that it does not tell. */
void
kube_memory_skip(const memory_lw_t *lw, memory_call_t *call)
{
    while (call->rv >= lw->source->forgotten
           && call->rv < lw->source->rv
           && !memory_tells(lw, call->rv + 1))
    {
        call->rv++;
    }
}


/* The source is at its next version.  Takes both references over. */
static void
memory_changed(kube_memory_source_t *source, kube_watch_type_t type,
    memory_state_t *state, memory_state_t *before)
{
    memory_lw_t    *lw;
    memory_call_t  *call;

    if (source->rv - source->forgotten == source->changes_max) {
        memory_forget(source);
    }

    source->rv++;

    *kube_memory_change(source, source->rv) = (memory_change_t) {
        .type = type,
        .quiet = source->quiet,
        .state = state,
        .before = before
    };

    for (lw = source->lws; lw != NULL; lw = lw->next) {
        for (call = lw->calls; call != NULL; call = call->next) {

            if (call->watch && call->rv == source->rv - 1) {
                kube_memory_skip(lw, call);
            }
        }
    }
}


kube_memory_source_t *
kube_memory_source_create(const kube_alloc_t *alloc, kube_resource_t resource,
    size_t changes_max)
{
    kube_memory_source_t  *source;

    changes_max += (changes_max == 0);

    if (changes_max > SIZE_MAX / sizeof(memory_change_t)) {
        return NULL;
    }

    source = kube_zalloc(alloc, sizeof(kube_memory_source_t));
    if (source == NULL) {
        return NULL;
    }

    source->changes = kube_zalloc(alloc,
                                  changes_max * sizeof(memory_change_t));
    if (source->changes == NULL) {
        kube_free(alloc, source);
        return NULL;
    }

    source->alloc = *alloc;
    source->resource = resource;
    source->changes_max = changes_max;
    source->rv = 1;
    source->forgotten = 1;

    return source;
}


void
kube_memory_source_destroy(kube_memory_source_t *source)
{
    size_t            i;
    memory_state_t  **objects;

    if (source == NULL) {
        return;
    }

    kube_memory_source_compact(source);
    objects = source->objects;

    for (i = 0; i < source->objects_n; i++) {
        kube_memory_release(&source->alloc, objects[i]);
    }

    kube_free(&source->alloc, source->objects);
    kube_free(&source->alloc, source->changes);
    kube_free(&source->alloc, source);
}


void
kube_memory_source_compact(kube_memory_source_t *source)
{
    while (source->forgotten != source->rv) {
        memory_forget(source);
    }
}


kube_rc_t
kube_memory_source_remove(kube_memory_source_t *source, kube_str_t ns,
    kube_str_t name)
{
    bool              found;
    size_t            at;
    memory_state_t   *state, **objects;

    objects = source->objects;
    at = kube_memory_place(objects, source->objects_n, ns, name, &found);

    if (!found) {
        return KUBE_NOT_FOUND;
    }

    state = objects[at];
    source->objects_n--;
    memmove(&objects[at], &objects[at + 1],
            (source->objects_n - at) * sizeof(memory_state_t *));

    memory_changed(source, KUBE_WATCH_DELETED, state, kube_memory_hold(state));

    return KUBE_OK;
}


static bool
memory_is_good(const kube_memory_source_t *source,
    const kube_object_t *object)
{
    return object->resource == source->resource
           && kube_name_is_label(object->u.meta.ns)
           && kube_resource_info(object->resource)->is_name(
                  object->u.meta.name)
           && kube_record_size(object) != 0;
}


kube_rc_t
kube_memory_source_put(kube_memory_source_t *source,
    const kube_object_t *object)
{
    bool              found, again;
    char              uid[sizeof("memory-") + 20];
    size_t            at;
    kube_str_t        ns, name;
    kube_object_t     copy;
    memory_state_t   *state, **objects;

    if (!memory_is_good(source, object)) {
        return KUBE_INVALID;
    }

    ns = object->u.meta.ns;
    name = object->u.meta.name;

    if (kube_array_reserve(&source->alloc, &source->objects,
                           &source->objects_cap, source->objects_n + 1,
                           sizeof(memory_state_t *), SIZE_MAX)
        != KUBE_OK)
    {
        return KUBE_NOMEM;
    }

    objects = source->objects;
    at = kube_memory_place(objects, source->objects_n, ns, name, &found);

    copy = *object;
    copy.u.meta.rv = KUBE_STR_NULL;
    again = false;

    if (copy.u.meta.uid.len != 0) {
        again = (found && !kube_str_eq(objects[at]->id.meta.uid,
                                       copy.u.meta.uid));

    } else if (found) {
        copy.u.meta.uid = objects[at]->id.meta.uid;

    } else {
        (void) snprintf(uid, sizeof(uid), "memory-%llu",
                        (unsigned long long) source->rv + 1);
        copy.u.meta.uid = kube_str(uid);
    }

    state = memory_state_create(&source->alloc, &copy,
                                source->rv + 1 + again);
    if (state == NULL) {
        return KUBE_NOMEM;
    }

    if (again) {
        memory_changed(source, KUBE_WATCH_DELETED, objects[at],
                       kube_memory_hold(objects[at]));
        objects[at] = state;
        memory_changed(source, KUBE_WATCH_ADDED, kube_memory_hold(state), NULL);

        return KUBE_OK;
    }

    if (found) {
        memory_changed(source, KUBE_WATCH_MODIFIED, kube_memory_hold(state),
                       objects[at]);
        objects[at] = state;

        return KUBE_OK;
    }

    memmove(&objects[at + 1], &objects[at],
            (source->objects_n - at) * sizeof(memory_state_t *));

    objects[at] = state;
    source->objects_n++;
    memory_changed(source, KUBE_WATCH_ADDED, kube_memory_hold(state), NULL);

    return KUBE_OK;
}


uint64_t
kube_memory_source_rv(const kube_memory_source_t *source)
{
    return source->rv;
}


size_t
kube_memory_source_count(const kube_memory_source_t *source)
{
    return source->objects_n;
}


void
kube_memory_source_quiet(kube_memory_source_t *source, bool quiet)
{
    source->quiet = quiet;
}


void
kube_memory_source_refuse(kube_memory_source_t *source, bool watches,
    unsigned n, int code, uint32_t retry_after_s)
{
    source->refusals[watches] = (memory_refusal_t) {
        .n = n,
        .code = code,
        .retry_after_s = retry_after_s
    };
}


void
kube_memory_source_bookmark(kube_memory_source_t *source)
{
    memory_lw_t    *lw;
    memory_call_t  *call;

    for (lw = source->lws; lw != NULL; lw = lw->next) {
        for (call = lw->calls; call != NULL; call = call->next) {
            call->bookmark = call->watch;
        }
    }
}


void
kube_memory_source_reset(kube_memory_source_t *source, kube_rc_t rc)
{
    memory_lw_t    *lw;
    memory_call_t  *call;

    for (lw = source->lws; lw != NULL; lw = lw->next) {
        for (call = lw->calls; call != NULL; call = call->next) {
            call->ended = true;
            call->ended_rc = rc;
        }
    }
}


void
kube_memory_source_process(kube_memory_source_t *source, uint64_t now_ms)
{
    memory_lw_t    *lw;
    memory_call_t  *call;

    for (lw = source->lws; lw != NULL; lw = lw->next) {
        for (call = lw->calls; call != NULL; call = call->next) {

            if (!call->ended && now_ms >= call->deadline_ms) {
                call->ended = true;
                call->ended_rc = KUBE_OK;
            }

            if (now_ms >= call->bookmark_ms) {
                call->bookmark = true;
                call->bookmark_ms = now_ms + KUBE_MEMORY_BOOKMARK_MS;
            }
        }
    }
}


uint64_t
kube_memory_source_deadline(const kube_memory_source_t *source)
{
    uint64_t              deadline_ms;
    const memory_lw_t    *lw;
    const memory_call_t  *call;

    deadline_ms = KUBE_NEVER;

    for (lw = source->lws; lw != NULL; lw = lw->next) {
        for (call = lw->calls; call != NULL; call = call->next) {

            if (!call->ended && call->deadline_ms < deadline_ms) {
                deadline_ms = call->deadline_ms;
            }

            if (!call->ended && call->bookmark_ms < deadline_ms) {
                deadline_ms = call->bookmark_ms;
            }
        }
    }

    return deadline_ms;
}

/*
 * kube_indexer - the store behind the informer: what is held, by key.
 *
 * A row for each zone entry says which scope's list has seen the object last.
 * An event costs one look-up; a completed list one walk of the rows.  It
 * writes nothing to the zone (its listener does).  For the process that holds
 * the zone's guard; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_indexer.h"
#include "kube_rv.h"


typedef struct {
    bool             used;
    kube_resource_t  resource;
    kube_str_t       ns;                /* owned; empty: all */
    uint32_t         list;              /* lists begun */
    uint32_t         synced;            /* the one that was completed last */
    bool             passed_over;       /* an item of it was, for its age; with
                                           no list begun: the last update was */
    kube_rv_t        newest;            /* of what load found */
} indexer_scope_t;

/*
 * A row outlives its object until its entry is used again: whether the entry
 * holds anything is the zone's to say.
 */
typedef struct {
    uint32_t  list_generation;          /* scope's list that saw it last */
    uint8_t   scope;
    bool      deleted;                  /* the zone may hold it for a while */
} indexer_row_t;

struct kube_indexer_s {
    const kube_alloc_t   *alloc;
    kube_indexer_conf_t   conf;
    indexer_scope_t       scopes[KUBE_SCOPES_MAX];
    uint32_t              rows_n;
    indexer_row_t        *rows;         /* by zone entry, from 1 */
};


kube_indexer_t *
kube_indexer_create(const kube_alloc_t *alloc, const kube_indexer_conf_t *conf)
{
    kube_indexer_t     *ix;
    kube_zone_usage_t   usage;

    ix = kube_zalloc(alloc, sizeof(kube_indexer_t));
    if (ix == NULL) {
        return NULL;
    }

    ix->alloc = alloc;
    ix->conf = *conf;

    kube_zone_usage(conf->zone, &usage);
    ix->rows_n = (uint32_t) usage.entries;
    ix->rows = kube_pages_alloc(alloc, ((size_t) ix->rows_n + 1)
                                       * sizeof(indexer_row_t));

    if (ix->rows == NULL) {
        kube_free(alloc, ix);
        return NULL;
    }

    return ix;
}


void
kube_indexer_destroy(kube_indexer_t *ix)
{
    unsigned  i;

    if (ix == NULL) {
        return;
    }

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        kube_str_free(ix->alloc, &ix->scopes[i].ns);
    }

    kube_pages_free(ix->alloc, ix->rows,
                    ((size_t) ix->rows_n + 1) * sizeof(indexer_row_t));
    kube_free(ix->alloc, ix);
}


kube_rc_t
kube_indexer_scope(kube_indexer_t *ix, unsigned scope,
    kube_resource_t resource, kube_str_t ns)
{
    kube_rc_t         rc;
    kube_str_t        copy;
    indexer_scope_t  *s;

    if (scope >= KUBE_SCOPES_MAX || ns.len > KUBE_NAMESPACE_LEN_MAX) {
        return KUBE_INVALID;
    }

    rc = kube_str_dup(ix->alloc, ns, &copy);
    if (rc != KUBE_OK) {
        return rc;
    }

    s = &ix->scopes[scope];
    kube_str_free(ix->alloc, &s->ns);

    s->used = true;
    s->resource = resource;
    s->ns = copy;

    return KUBE_OK;
}


/* The scope that covers an object, or KUBE_SCOPE_NONE. */
static unsigned
indexer_scope_of(const kube_indexer_t *ix, kube_resource_t resource,
    kube_str_t ns)
{
    unsigned                i;
    const indexer_scope_t  *s;

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        s = &ix->scopes[i];

        if (s->used
            && s->resource == resource
            && (s->ns.len == 0 || kube_str_eq(s->ns, ns)))
        {
            return i;
        }
    }

    return KUBE_SCOPE_NONE;
}


/*
 * The index function: the name of the Service that an object belongs to, in
 * its own namespace.
 */
static kube_str_t
indexer_service(const kube_record_id_t *id)
{
    switch (kube_resource_info(id->resource)->shape) {

    case KUBE_SHAPE_SERVICE:
        return id->meta.name;

    case KUBE_SHAPE_SLICE:
        return id->service;

    default:
        return KUBE_STR_NULL;
    }
}


static void
indexer_item_init(const kube_indexer_t *ix, kube_item_t *item,
    uint64_t now_ms)
{
    item->service = indexer_service(&item->zone.id);
    item->reason = KUBE_STR_NULL;
    item->uid_hash = 0;
    item->scope = indexer_scope_of(ix, item->zone.id.resource,
                                   item->zone.id.meta.ns);
    item->optional = false;
    item->read_ms = KUBE_NEVER;
    item->trigger_ms = 0;
    item->now_ms = now_ms;
}


/* An event without an object: of a scope, or of none. */
static void
indexer_tell(kube_indexer_t *ix, kube_item_event_t event, unsigned scope,
    uint64_t now_ms)
{
    kube_rc_t    rc;
    kube_item_t  item;

    memset(&item, 0, sizeof(kube_item_t));
    item.scope = scope;
    item.now_ms = now_ms;

    /* these events need no memory: always KUBE_OK */
    rc = ix->conf.on_change(ix->conf.on_change_ctx, event, &item);
    (void) rc;
}


/* Marks what an entry holds as seen by the list in progress, if any. */
static void
indexer_mark(kube_indexer_t *ix, const kube_item_t *item, bool deleted)
{
    indexer_row_t  *row;

    row = &ix->rows[item->zone.entry];

    row->scope = (uint8_t) item->scope;
    row->deleted = deleted;
    row->list_generation = (item->scope != KUBE_SCOPE_NONE)
                           ? ix->scopes[item->scope].list : 0;
}


/* A list has begun, and was not completed. */
static bool
indexer_lists(const indexer_scope_t *scope)
{
    return scope->list != scope->synced;
}


static bool
indexer_is_older(kube_str_t a, kube_str_t b)
{
    kube_rv_t  rv_a, rv_b;

    return kube_rv_parse(a, &rv_a) == KUBE_OK
           && kube_rv_parse(b, &rv_b) == KUBE_OK
           && kube_rv_cmp(&rv_a, &rv_b) < 0;
}


/* True if an object is held under the item's key; place: where. */
static bool
indexer_holds(const kube_indexer_t *ix, const kube_item_t *item,
    kube_zone_place_t *place)
{
    return item->zone.entry != 0
           && !ix->rows[item->zone.entry].deleted
           && kube_zone_place_newest(ix->conf.writer, item->zone.entry, place)
           && place->header.kind != KUBE_RECORD_REFUSED;
}


/* True if the object that the item is to be, or a newer one, is held. */
static bool
indexer_is_held(const kube_indexer_t *ix, const kube_item_t *item, bool listed)
{
    kube_zone_place_t   place;
    const kube_meta_t  *held, *meta;

    held = &item->zone.held.meta;
    meta = &item->zone.id.meta;

    if (!indexer_holds(ix, item, &place)
        || (place.header.flags & KUBE_RECORD_F_STATE_FILE))
    {
        return false;
    }

    /* whatever its uid: it may have been deleted, and made anew, since */
    if (!listed && indexer_is_older(meta->rv, held->rv)) {
        return true;
    }

    /* a restored server gives a version a second time, of what is other */
    return !(place.header.flags & KUBE_RECORD_F_OUTDATED)
           && kube_str_eq(held->rv, meta->rv)
           && kube_zone_place_same(ix->conf.writer, &place, item->zone.record,
                                   false);
}


/* False if the record can be none of an object that is held. */
static bool
indexer_item_of_record(const kube_indexer_t *ix, const kube_record_t *record,
    uint64_t now_ms, kube_item_t *item)
{
    if ((record->kind != KUBE_RECORD_SERVICE
         && record->kind != KUBE_RECORD_SLICE)
        || kube_zone_item(ix->conf.writer, record, &item->zone) != KUBE_OK)
    {
        return false;
    }

    indexer_item_init(ix, item, now_ms);

    return item->service.len <= KUBE_NAME_LEN_MAX;
}


/*
 * True if an event is of an older version than what could not be held: a
 * resumed watch repeats what readers have seen go.
 */
static bool
indexer_is_refused(const kube_indexer_t *ix, const kube_item_t *item)
{
    kube_zone_place_t  place;

    return item->zone.entry != 0
           && kube_zone_place_newest(ix->conf.writer, item->zone.entry, &place)
           && place.header.kind == KUBE_RECORD_REFUSED
           && indexer_is_older(item->zone.id.meta.rv,
                               item->zone.held.meta.rv);
}


static kube_rc_t
indexer_put(kube_indexer_t *ix, const kube_delta_t *delta, uint64_t now_ms)
{
    bool              listed;
    kube_rc_t         rc;
    kube_item_t       item;
    indexer_scope_t  *scope;

    listed = (delta->kind == KUBE_DELTA_REPLACED);

    if (delta->record == NULL
        || !indexer_item_of_record(ix, delta->record, now_ms, &item)
        || item.scope == KUBE_SCOPE_NONE)
    {
        return KUBE_OK;
    }

    scope = &ix->scopes[item.scope];
    scope->passed_over &= indexer_lists(scope);

    if (indexer_is_held(ix, &item, listed)) {
        scope->passed_over |= !kube_str_eq(item.zone.held.meta.rv,
                                           item.zone.id.meta.rv);
        indexer_mark(ix, &item, false);
        return ix->conf.on_change(ix->conf.on_change_ctx, KUBE_ITEM_SEEN,
                                  &item);
    }

    if (!listed
        && !indexer_lists(scope)
        && indexer_is_refused(ix, &item))
    {
        scope->passed_over = true;
        return KUBE_OK;
    }

    /* latencies are those of changes: neither a list is late nor what a
       WatchList begins with */
    if (!listed && delta->read_ms != KUBE_NEVER) {
        item.read_ms = delta->read_ms;
        item.trigger_ms = delta->trigger_ms;
    }

    rc = ix->conf.on_change(ix->conf.on_change_ctx, KUBE_ITEM_PUT, &item);

    if (rc == KUBE_NOMEM) {
        return rc;
    }

    /* an object that was not taken must be taken when it comes again */
    indexer_mark(ix, &item, rc != KUBE_OK);

    return KUBE_OK;
}


/*
 * True if an event refuses an older version than what is held: a resumed watch
 * repeats what was refused, and has become good since.
 */
static bool
indexer_refuses_past(const kube_indexer_t *ix, const kube_item_t *item,
    const kube_delta_t *delta)
{
    kube_zone_place_t  place;

    return indexer_holds(ix, item, &place)
           && !(place.header.flags & KUBE_RECORD_F_STATE_FILE)
           && indexer_is_older(delta->rv, item->zone.held.meta.rv);
}


static kube_rc_t
indexer_refuse(kube_indexer_t *ix, const kube_delta_t *delta, uint64_t now_ms)
{
    kube_rc_t         rc;
    kube_item_t       item;
    indexer_scope_t  *scope;

    if (kube_zone_item_name(ix->conf.writer, delta->resource, delta->ns,
                            delta->name, &item.zone)
        != KUBE_OK)
    {
        return KUBE_OK;
    }

    indexer_item_init(ix, &item, now_ms);

    if (item.scope == KUBE_SCOPE_NONE) {
        return KUBE_OK;
    }

    scope = &ix->scopes[item.scope];
    scope->passed_over &= indexer_lists(scope);

    if (!indexer_lists(scope) && indexer_refuses_past(ix, &item, delta)) {
        scope->passed_over = true;
        return KUBE_OK;
    }

    item.zone.id.meta.rv = delta->rv;

    /* a name stays as new as it is, or what was held between the two refusals
       would be newer */
    if (!indexer_lists(scope) && indexer_is_refused(ix, &item)) {
        return KUBE_OK;
    }

    item.reason = delta->reason;
    item.uid_hash = delta->uid_hash;
    item.read_ms = delta->read_ms;

    rc = ix->conf.on_change(ix->conf.on_change_ctx, KUBE_ITEM_REFUSED, &item);

    if (rc == KUBE_OK) {
        indexer_mark(ix, &item, true);
    }

    return rc;
}


static void
indexer_delete(kube_indexer_t *ix, kube_item_t *item)
{
    kube_rc_t  rc;

    ix->rows[item->zone.entry].deleted = true;

    /* deleting needs no memory: always KUBE_OK */
    rc = ix->conf.on_change(ix->conf.on_change_ctx, KUBE_ITEM_DELETED, item);
    (void) rc;
}


static void
indexer_deleted(kube_indexer_t *ix, const kube_delta_t *delta,
    uint64_t now_ms)
{
    kube_item_t           item;
    indexer_scope_t      *scope;
    const kube_record_t  *record;

    scope = &ix->scopes[delta->scope];
    scope->passed_over &= indexer_lists(scope);

    if (kube_zone_item_name(ix->conf.writer, delta->resource, delta->ns,
                            delta->name, &item.zone)
        != KUBE_OK)
    {
        return;
    }

    /* NULL: not held, but it may have been refused without a name */
    record = kube_zone_newest(ix->conf.writer, item.zone.entry);

    /*
     * The end of an object that was made anew since.  One of the same uid is
     * that object's: its version was of a past that a backup took back.
     */
    if (record != NULL
        && record->kind != KUBE_RECORD_REFUSED
        && !(record->flags & KUBE_RECORD_F_STATE_FILE)
        && (delta->uid_hash == 0
            || delta->uid_hash != kube_uid_hash(item.zone.held.meta.uid))
        && indexer_is_older(delta->rv, item.zone.held.meta.rv))
    {
        scope->passed_over |= !indexer_lists(scope);
        return;
    }

    indexer_item_init(ix, &item, now_ms);
    item.read_ms = delta->read_ms;
    indexer_delete(ix, &item);
}


/* Deletes all of a scope that was not seen by the list of that number. */
static void
indexer_sweep_scope(kube_indexer_t *ix, unsigned scope, uint32_t list,
    uint64_t now_ms)
{
    uint32_t        i;
    kube_item_t     item;
    indexer_row_t  *row;

    for (i = 1; i <= kube_zone_writer_top(ix->conf.writer); i++) {
        row = &ix->rows[i];

        if (row->scope != scope
            || row->list_generation == list
            || !kube_zone_holds(ix->conf.writer, i))
        {
            continue;
        }

        memset(&item, 0, sizeof(kube_item_t));
        item.zone.entry = i;
        item.scope = scope;
        item.read_ms = KUBE_NEVER;
        item.now_ms = now_ms;
        indexer_delete(ix, &item);
    }
}


void
kube_indexer_sweep(kube_indexer_t *ix, uint64_t now_ms)
{
    /* no list sees what no scope covers */
    indexer_sweep_scope(ix, KUBE_SCOPE_NONE, UINT32_MAX, now_ms);
}


kube_rc_t
kube_indexer_apply(kube_indexer_t *ix, const kube_delta_t *delta,
    uint64_t now_ms)
{
    indexer_scope_t  *scope;

    if (delta->scope >= KUBE_SCOPES_MAX || !ix->scopes[delta->scope].used) {
        return KUBE_OK;
    }

    scope = &ix->scopes[delta->scope];

    switch (delta->kind) {

    case KUBE_DELTA_REPLACED:
    case KUBE_DELTA_UPDATED:
        return indexer_put(ix, delta, now_ms);

    case KUBE_DELTA_DELETED:
        indexer_deleted(ix, delta, now_ms);
        break;

    case KUBE_DELTA_REFUSED:
        return indexer_refuse(ix, delta, now_ms);

    case KUBE_DELTA_LIST_BEGIN:
        scope->list++;
        scope->passed_over = false;
        indexer_tell(ix, KUBE_ITEM_LIST_BEGIN, delta->scope, now_ms);
        break;

    case KUBE_DELTA_SYNC:

        /* an end without a beginning saw nothing: nothing may go for it */
        if (!indexer_lists(scope)) {
            break;
        }

        /* half of it is of another past: readers wait for the list to come */
        if (scope->passed_over) {
            break;
        }

        indexer_sweep_scope(ix, delta->scope, scope->list, now_ms);
        scope->synced = scope->list;
        indexer_tell(ix, KUBE_ITEM_LIST_END, delta->scope, now_ms);
        break;

    case KUBE_DELTA_REFILL_BEGIN:
        indexer_tell(ix, KUBE_ITEM_REFILL_BEGIN, delta->scope, now_ms);
        break;

    case KUBE_DELTA_REFILL_END:
        indexer_tell(ix, KUBE_ITEM_REFILL_END, delta->scope, now_ms);
        break;

    case KUBE_DELTA_REFILL_BROKEN:
        indexer_tell(ix, KUBE_ITEM_REFILL_BROKEN, delta->scope, now_ms);
        break;
    }

    return KUBE_OK;
}


bool
kube_indexer_passed_over(const kube_indexer_t *ix, unsigned scope)
{
    return scope < KUBE_SCOPES_MAX && ix->scopes[scope].passed_over;
}


static void
indexer_raise(kube_indexer_t *ix, const kube_item_t *item)
{
    kube_rv_t  rv, *newest;

    if (item->scope == KUBE_SCOPE_NONE
        || kube_rv_parse(item->zone.id.meta.rv, &rv) != KUBE_OK)
    {
        return;
    }

    newest = &ix->scopes[item->scope].newest;

    if (kube_rv_cmp(&rv, newest) > 0) {
        *newest = rv;
    }
}


const kube_rv_t *
kube_indexer_newest(const kube_indexer_t *ix, unsigned scope)
{
    return &ix->scopes[scope].newest;
}


kube_rc_t
kube_indexer_load(kube_indexer_t *ix, uint64_t now_ms)
{
    uint32_t     i;
    kube_rc_t    rc;
    kube_item_t  item;

    indexer_tell(ix, KUBE_ITEM_LOAD_BEGIN, KUBE_SCOPE_NONE, now_ms);

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        ix->scopes[i].list = 0;
        ix->scopes[i].synced = 0;
        ix->scopes[i].newest.len = 0;
    }

    for (i = kube_zone_writer_next(ix->conf.writer, 0);
         i != 0 && i <= ix->rows_n;
         i = kube_zone_writer_next(ix->conf.writer, i))
    {
        ix->rows[i].scope = KUBE_SCOPE_NONE;

        if (kube_zone_item_entry(ix->conf.writer, i, &item.zone) != KUBE_OK) {
            continue;
        }

        indexer_item_init(ix, &item, now_ms);

        if (item.zone.id.meta.ns.len > KUBE_NAMESPACE_LEN_MAX
            || item.service.len > KUBE_NAME_LEN_MAX)
        {
            continue;
        }

        rc = ix->conf.on_change(ix->conf.on_change_ctx, KUBE_ITEM_FOUND,
                                &item);
        if (rc != KUBE_OK) {
            indexer_tell(ix, KUBE_ITEM_LOAD_BEGIN, KUBE_SCOPE_NONE, now_ms);
            return rc;
        }

        indexer_mark(ix, &item, false);
        indexer_raise(ix, &item);
    }

    indexer_tell(ix, KUBE_ITEM_LOAD_END, KUBE_SCOPE_NONE, now_ms);

    return KUBE_OK;
}


/* Copies a record without its refs, flagged as one of a state file. */
static kube_rc_t
indexer_state_record(const kube_alloc_t *alloc, const kube_record_t *from,
    kube_record_t **record)
{
    size_t         size;
    kube_rc_t      rc;
    kube_arena_t   arena;
    kube_object_t  object;

    *record = NULL;
    kube_arena_init(&arena, alloc, KUBE_OBJECT_BYTES_MAX);

    rc = kube_record_decode(&arena, from, from->size, &object);

    if (rc == KUBE_OK) {
        size = kube_record_size(&object);
        *record = (size != 0) ? kube_alloc(alloc, size) : NULL;
        rc = (size == 0) ? KUBE_CORRUPT
                         : (*record == NULL) ? KUBE_NOMEM : KUBE_OK;
    }

    if (rc == KUBE_OK) {
        kube_record_encode(&object, *record);
        (*record)->flags |= KUBE_RECORD_F_STATE_FILE;
    }

    kube_arena_done(&arena);

    return rc;
}


kube_rc_t
kube_indexer_put_state(kube_indexer_t *ix, const kube_record_t *record,
    unsigned scope, uint64_t now_ms)
{
    kube_rc_t       rc;
    kube_item_t     item;
    kube_record_t  *copy;

    if (scope >= KUBE_SCOPES_MAX
        || !ix->scopes[scope].used
        || !indexer_item_of_record(ix, record, now_ms, &item)
        || item.zone.entry != 0)
    {
        return KUBE_OK;
    }

    rc = indexer_state_record(ix->alloc, record, &copy);

    if (rc == KUBE_OK) {
        item.zone.record = copy;
        item.scope = scope;
        item.optional = true;
        rc = ix->conf.on_change(ix->conf.on_change_ctx, KUBE_ITEM_PUT, &item);

        if (rc == KUBE_OK) {
            indexer_mark(ix, &item, false);
        }
    }

    kube_free(ix->alloc, copy);

    /* one object less is no reason to refuse the others */
    return (rc == KUBE_NOMEM) ? rc : KUBE_OK;
}

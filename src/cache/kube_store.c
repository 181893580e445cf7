/*
 * kube_store - objects on the heap by key: puts, deletions, lists as a diff.
 *
 * Each change has three steps: memory for all of it is prepared, the change is
 * told, and it is made, which cannot fail any more.  What indexes are is in
 * kube_store_index.c.  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_store_impl.h"


/* A put that wants memory no more. */
typedef struct {
    kube_stored_t   *stored;
    store_row_t     *row;            /* held, or new */
    kube_stored_t   *old;            /* of the row then */
    store_member_t  *members;        /* of the content, where it is another */
    bool             added;          /* the row is new */
    bool             indexed;        /* members take the place of the row's */
} store_put_t;


static kube_rc_t
stored_create(const kube_alloc_t *alloc, const kube_record_t *record,
    kube_stored_t **stored)
{
    kube_rc_t         rc;
    kube_stored_t    *s;
    kube_record_id_t  id;

    rc = kube_record_id(record, record->size, &id);

    if (rc != KUBE_OK || record->kind == KUBE_RECORD_REFUSED) {
        return KUBE_CORRUPT;
    }

    s = kube_alloc(alloc, sizeof(kube_stored_t) + record->size);
    if (s == NULL) {
        return KUBE_NOMEM;
    }

    memcpy(s + 1, record, record->size);

    s->alloc = alloc;
    s->record = (const kube_record_t *) (const void *) (s + 1);
    s->refs = 1;

    /* of the same bytes it was good above */
    rc = kube_record_id(s->record, s->record->size, &s->id);
    (void) rc;

    *stored = s;

    return KUBE_OK;
}


kube_stored_t *
kube_stored_hold(kube_stored_t *stored)
{
    if (stored != NULL) {
        stored->refs++;
    }

    return stored;
}


void
kube_stored_release(kube_stored_t *stored)
{
    if (stored != NULL && --stored->refs == 0) {
        kube_free(stored->alloc, stored);
    }
}


bool
kube_stored_same_uid(const kube_stored_t *a, const kube_stored_t *b)
{
    return kube_str_eq(a->id.meta.uid, b->id.meta.uid);
}


kube_store_t *
kube_store_create(const kube_alloc_t *alloc, const kube_store_conf_t *conf)
{
    kube_store_t  *store;

    store = kube_zalloc(alloc, sizeof(kube_store_t));
    if (store == NULL) {
        return NULL;
    }

    if (kube_map_init(&store->map, alloc) != KUBE_OK) {
        kube_free(alloc, store);
        return NULL;
    }

    store->alloc = alloc;
    store->conf = *conf;

    return store;
}


static uint64_t
store_hash(const kube_store_t *store, kube_str_t ns, kube_str_t name)
{
    return kube_hash64_key(store->conf.seed, ns, name);
}


static store_row_t *
store_find(const kube_store_t *store, kube_str_t ns, kube_str_t name)
{
    store_row_t      *row;
    kube_map_link_t  *link;

    for (link = kube_map_first(&store->map, store_hash(store, ns, name));
         link != NULL;
         link = kube_map_next(link))
    {
        row = kube_map_data(link, store_row_t, link);

        if (kube_str_eq(row->stored->id.meta.ns, ns)
            && kube_str_eq(row->stored->id.meta.name, name))
        {
            return row;
        }
    }

    return NULL;
}


static kube_rc_t
store_tell(kube_store_t *store, const kube_store_change_t *change)
{
    return (store->conf.on_change != NULL)
           ? store->conf.on_change(store->conf.on_change_ctx, change)
           : KUBE_OK;
}


static void
store_link(kube_store_t *store, store_row_t *row)
{
    const kube_meta_t  *meta;

    meta = &row->stored->id.meta;
    kube_map_insert(&store->map, &row->link,
                    store_hash(store, meta->ns, meta->name));

    row->prev = store->last;
    row->next = NULL;

    if (store->last != NULL) {
        store->last->next = row;

    } else {
        store->first = row;
    }

    store->last = row;
}


/* Takes a row out and frees it. */
static void
store_remove(kube_store_t *store, store_row_t *row)
{
    kube_store_members_free(store, row->members, true);
    kube_map_remove(&store->map, &row->link);

    if (row->prev != NULL) {
        row->prev->next = row->next;

    } else {
        store->first = row->next;
    }

    if (row->next != NULL) {
        row->next->prev = row->prev;

    } else {
        store->last = row->prev;
    }

    kube_stored_release(row->stored);
    kube_free(store->alloc, row);
}


void
kube_store_destroy(kube_store_t *store)
{
    if (store == NULL) {
        return;
    }

    while (store->first != NULL) {
        store_remove(store, store->first);
    }

    kube_store_indexes_free(store);
    kube_map_done(&store->map);
    kube_free(store->alloc, store);
}


/* Gives back what a put that is not made had prepared. */
static void
store_put_abort(kube_store_t *store, store_put_t *put)
{
    kube_store_members_free(store, put->members, false);
    kube_stored_release(put->stored);

    if (put->added) {
        kube_free(store->alloc, put->row);
    }
}


static kube_rc_t
store_put_prepare(kube_store_t *store, const kube_record_t *record,
    store_put_t *put)
{
    kube_rc_t  rc;

    memset(put, 0, sizeof(store_put_t));

    rc = stored_create(store->alloc, record, &put->stored);

    if (rc != KUBE_OK) {
        return rc;
    }

    put->row = store_find(store, put->stored->id.meta.ns,
                          put->stored->id.meta.name);

    if (put->row == NULL) {
        put->row = kube_zalloc(store->alloc, sizeof(store_row_t));
        put->added = (put->row != NULL);
    }

    put->old = (put->row != NULL) ? put->row->stored : NULL;
    put->indexed = (put->old == NULL
                    || !kube_record_same(put->old->record, record));

    if (put->row == NULL
        || (put->indexed
            && kube_store_members(store, NULL, put->stored, &put->members)
               != KUBE_OK))
    {
        store_put_abort(store, put);
        return KUBE_NOMEM;
    }

    return KUBE_OK;
}


/* Tells the change and makes it; the put is over in any case. */
static kube_rc_t
store_put_make(kube_store_t *store, store_put_t *put, bool unknown)
{
    kube_rc_t             rc;
    store_row_t          *row;
    kube_store_change_t   change;

    row = put->row;

    change = (kube_store_change_t) {
        .old = row->stored,
        .new = put->stored,
        .unknown = unknown
    };

    rc = store_tell(store, &change);

    if (rc != KUBE_OK) {
        store_put_abort(store, put);
        return rc;
    }

    kube_stored_release(row->stored);
    row->stored = put->stored;
    row->list = store->list;

    if (put->added) {
        store_link(store, row);
    }

    if (put->indexed) {
        kube_store_members_free(store, row->members, true);
        row->members = put->members;
        kube_store_members_link(row->members, row);
    }

    return KUBE_OK;
}


kube_rc_t
kube_store_put(kube_store_t *store, const kube_record_t *record, bool unknown)
{
    kube_rc_t    rc;
    store_put_t  put;

    rc = store_put_prepare(store, record, &put);

    return (rc == KUBE_OK) ? store_put_make(store, &put, unknown) : rc;
}


static kube_rc_t
store_delete(kube_store_t *store, store_row_t *row, bool unknown)
{
    kube_rc_t            rc;
    kube_store_change_t  change;

    change = (kube_store_change_t) {
        .old = row->stored,
        .unknown = unknown
    };

    rc = store_tell(store, &change);

    if (rc == KUBE_OK) {
        store_remove(store, row);
    }

    return rc;
}


kube_rc_t
kube_store_delete(kube_store_t *store, kube_str_t ns, kube_str_t name,
    bool unknown)
{
    store_row_t  *row;

    row = store_find(store, ns, name);

    return (row != NULL) ? store_delete(store, row, unknown) : KUBE_NOT_FOUND;
}


void
kube_store_list_begin(kube_store_t *store)
{
    store->list++;
}


void
kube_store_list_seen(kube_store_t *store, kube_str_t ns, kube_str_t name)
{
    store_row_t  *row;

    row = store_find(store, ns, name);

    if (row != NULL) {
        row->list = store->list;
    }
}


kube_rc_t
kube_store_list_end(kube_store_t *store)
{
    kube_rc_t     rc;
    store_row_t  *row, *next;

    for (row = store->first; row != NULL; row = next) {
        next = row->next;

        if (row->list == store->list) {
            continue;
        }

        rc = store_delete(store, row, true);

        if (rc != KUBE_OK) {
            return rc;
        }
    }

    return KUBE_OK;
}


/*
 * True if the store has the very version of the object.  A restored server
 * gives one a second time, of what is other.
 */
static bool
store_has(const kube_store_t *store, const kube_record_id_t *id,
    const kube_record_t *record)
{
    const store_row_t  *row;

    row = store_find(store, id->meta.ns, id->meta.name);

    return row != NULL
           && kube_record_same_version(row->stored->record, record);
}


/*
 * Marks what a list has as seen and prepares what it changes: a put each, in
 * puts, whose stored is NULL where nothing changes.
 */
static kube_rc_t
store_replace_prepare(kube_store_t *store, const kube_record_t *const *records,
    size_t n, store_put_t *puts)
{
    size_t            i;
    kube_rc_t         rc;
    kube_record_id_t  id;

    for (i = 0; i < n; i++) {
        puts[i].stored = NULL;
        rc = kube_record_id(records[i], records[i]->size, &id);

        if (rc == KUBE_OK && store_has(store, &id, records[i])) {
            kube_store_list_seen(store, id.meta.ns, id.meta.name);
            continue;
        }

        if (rc == KUBE_OK) {
            kube_store_list_seen(store, id.meta.ns, id.meta.name);
            rc = store_put_prepare(store, records[i], &puts[i]);
        }

        if (rc != KUBE_OK) {

            while (i-- > 0) {
                if (puts[i].stored != NULL) {
                    store_put_abort(store, &puts[i]);
                }
            }

            return rc;
        }
    }

    return KUBE_OK;
}


/* A put of a list that has a key twice is prepared anew. */
static kube_rc_t
store_replace_put(kube_store_t *store, store_put_t *put)
{
    kube_rc_t            rc;
    kube_stored_t       *stored;
    const store_row_t   *row;

    stored = put->stored;
    row = store_find(store, stored->id.meta.ns, stored->id.meta.name);

    if (((row != NULL) ? row->stored : NULL) == put->old) {
        return store_put_make(store, put, true);
    }

    (void) kube_stored_hold(stored);
    store_put_abort(store, put);
    rc = kube_store_put(store, stored->record, true);
    kube_stored_release(stored);

    return rc;
}


kube_rc_t
kube_store_replace(kube_store_t *store, const kube_record_t *const *records,
    size_t n)
{
    size_t        i;
    kube_rc_t     rc;
    store_put_t  *puts;

    if (n > SIZE_MAX / sizeof(store_put_t) - 1) {
        return KUBE_NOMEM;
    }

    puts = kube_alloc(store->alloc, (n + 1) * sizeof(store_put_t));
    if (puts == NULL) {
        return KUBE_NOMEM;
    }

    kube_store_list_begin(store);

    rc = store_replace_prepare(store, records, n, puts);

    if (rc != KUBE_OK) {
        kube_free(store->alloc, puts);
        return rc;
    }

    rc = kube_store_list_end(store);

    for (i = 0; i < n; i++) {

        if (puts[i].stored == NULL) {
            continue;
        }

        if (rc == KUBE_OK) {
            rc = store_replace_put(store, &puts[i]);

        } else {
            store_put_abort(store, &puts[i]);
        }
    }

    kube_free(store->alloc, puts);

    return rc;
}


size_t
kube_store_transaction(kube_store_t *store, kube_store_op_t *ops, size_t n)
{
    size_t            i, done;
    kube_store_op_t  *op;

    done = 0;

    for (i = 0; i < n; i++) {
        op = &ops[i];
        op->rc = (op->record != NULL)
                 ? kube_store_put(store, op->record, false)
                 : kube_store_delete(store, op->ns, op->name, false);
        done += (op->rc == KUBE_OK);
    }

    return done;
}


kube_stored_t *
kube_store_get(const kube_store_t *store, kube_str_t ns, kube_str_t name)
{
    const store_row_t  *row;

    row = store_find(store, ns, name);

    return (row != NULL) ? row->stored : NULL;
}


size_t
kube_store_count(const kube_store_t *store)
{
    return store->map.n;
}


void
kube_store_each(const kube_store_t *store, kube_store_visit_pt visit,
    void *ctx)
{
    const store_row_t  *row;

    for (row = store->first; row != NULL; row = row->next) {
        if (!visit(ctx, row->stored)) {
            return;
        }
    }
}


kube_rc_t
kube_store_index(kube_store_t *store, kube_str_t index, kube_str_t ns,
    kube_str_t name, kube_store_visit_pt visit, void *ctx)
{
    return kube_store_shared(store, index, store_find(store, ns, name), visit,
                             ctx);
}

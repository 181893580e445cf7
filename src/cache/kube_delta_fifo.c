/*
 * kube_delta_fifo - changes on their way to the indexer, at most one per key.
 *
 * A list of nodes in the order in which they leave, and a map of those that
 * may still take a newer state.  It decides nothing about what a change means
 * (the indexer does).  One thread.
 *
 * Invariants: a node is in the map if and only if it has a key and no list of
 * its scope began after it.  So a key is in the map at most once, and waits
 * at most once more per list that began.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_delta_fifo.h"
#include "kube_map.h"


typedef struct delta_node_s  delta_node_t;

struct delta_node_s {
    delta_node_t      *prev;
    delta_node_t      *next;
    kube_map_link_t    link;
    kube_delta_t       delta;           /* ns, name, rv: empty; see below */
    kube_record_t     *record;          /* owned; NULL: none */
    size_t             bytes;
    bool               mapped;
    bool               listed;          /* a list brought a state of it */
    uint8_t            rv_len;
    uint8_t            ns_len;
    uint16_t           name_len;
    char               rv[KUBE_RV_LEN_MAX];
    char               key[];           /* ns, name */
};

struct kube_delta_fifo_s {
    const kube_alloc_t  *alloc;
    kube_seed_t          seed;
    size_t               keys_max;
    size_t               bytes_max;
    size_t               keys;
    size_t               bytes;
    kube_map_t           map;
    delta_node_t        *first;
    delta_node_t        *last;
    delta_node_t        *peeked;
    size_t               depth[KUBE_SCOPES_MAX];
    size_t               scratch_n;
    kube_record_t       *scratch;         /* the last record; NULL: none yet */
};


kube_delta_fifo_t *
kube_delta_fifo_create(const kube_alloc_t *alloc, kube_seed_t seed,
    size_t keys_max, size_t bytes_max)
{
    kube_delta_fifo_t  *fifo;

    fifo = kube_zalloc(alloc, sizeof(kube_delta_fifo_t));
    if (fifo == NULL) {
        return NULL;
    }

    if (kube_map_init(&fifo->map, alloc) != KUBE_OK) {
        kube_free(alloc, fifo);
        return NULL;
    }

    fifo->alloc = alloc;
    fifo->seed = seed;
    fifo->keys_max = keys_max;
    fifo->bytes_max = bytes_max;

    return fifo;
}


static void
fifo_node_free(kube_delta_fifo_t *fifo, delta_node_t *node)
{
    kube_free(fifo->alloc, node->record);
    kube_free(fifo->alloc, node);
}


void
kube_delta_fifo_destroy(kube_delta_fifo_t *fifo)
{
    delta_node_t  *node, *next;

    if (fifo == NULL) {
        return;
    }

    for (node = fifo->first; node != NULL; node = next) {
        next = node->next;
        fifo_node_free(fifo, node);
    }

    kube_map_done(&fifo->map);
    kube_free(fifo->alloc, fifo->scratch);
    kube_free(fifo->alloc, fifo);
}


static uint64_t
fifo_hash(const kube_delta_fifo_t *fifo, const kube_delta_t *delta)
{
    char    buf[2 + KUBE_KEY_LEN_MAX];
    size_t  len;

    buf[0] = (char) delta->resource;
    buf[1] = (char) delta->ns.len;
    len = 2;

    if (delta->ns.len != 0) {
        memcpy(buf + len, delta->ns.data, delta->ns.len);
        len += delta->ns.len;
    }

    memcpy(buf + len, delta->name.data, delta->name.len);

    return kube_hash64(fifo->seed, buf, len + delta->name.len);
}


static delta_node_t *
fifo_find(const kube_delta_fifo_t *fifo, const kube_delta_t *delta,
    uint64_t hash)
{
    kube_str_t        ns, name;
    delta_node_t     *node;
    kube_map_link_t  *link;

    for (link = kube_map_first(&fifo->map, hash);
         link != NULL;
         link = kube_map_next(link))
    {
        node = kube_map_data(link, delta_node_t, link);
        ns = (kube_str_t) { node->key, node->ns_len };
        name = (kube_str_t) { node->key + node->ns_len, node->name_len };

        if (node->delta.scope == delta->scope
            && node->delta.resource == delta->resource
            && kube_str_eq(ns, delta->ns)
            && kube_str_eq(name, delta->name))
        {
            return node;
        }
    }

    return NULL;
}


static void
fifo_unmap(kube_delta_fifo_t *fifo, delta_node_t *node)
{
    if (node->mapped) {
        node->mapped = false;
        kube_map_remove(&fifo->map, &node->link);
    }
}


static void
fifo_append(kube_delta_fifo_t *fifo, delta_node_t *node)
{
    node->prev = fifo->last;
    node->next = NULL;

    if (fifo->last != NULL) {
        fifo->last->next = node;

    } else {
        fifo->first = node;
    }

    fifo->last = node;
    fifo->keys++;
    fifo->bytes += node->bytes;
    fifo->depth[node->delta.scope]++;
}


static void
fifo_remove(kube_delta_fifo_t *fifo, delta_node_t *node)
{
    if (node->prev != NULL) {
        node->prev->next = node->next;

    } else {
        fifo->first = node->next;
    }

    if (node->next != NULL) {
        node->next->prev = node->prev;

    } else {
        fifo->last = node->prev;
    }

    if (fifo->peeked == node) {
        fifo->peeked = NULL;
    }

    fifo_unmap(fifo, node);

    fifo->keys--;
    fifo->bytes -= node->bytes;
    fifo->depth[node->delta.scope]--;

    fifo_node_free(fifo, node);
}


static size_t
fifo_node_bytes(const kube_delta_t *delta)
{
    return sizeof(delta_node_t) + delta->ns.len + delta->name.len
           + (delta->record != NULL ? delta->record->size : 0);
}


/*
 * The uid of an object whose deletion the node has seen before delta, the
 * state of another one.  The first of them stays: whoever takes from the FIFO
 * may know that one, but none that came after it.
 */
static uint64_t
fifo_deleted_uid(const delta_node_t *node, const kube_delta_t *delta)
{
    uint64_t          uid_hash;
    kube_record_id_t  id;

    if (node->delta.deleted_uid != 0
        || node->delta.kind != KUBE_DELTA_DELETED
        || delta->kind == KUBE_DELTA_DELETED)
    {
        return node->delta.deleted_uid;
    }

    uid_hash = delta->uid_hash;

    if (delta->record != NULL
        && kube_record_id(delta->record, delta->record->size, &id) == KUBE_OK)
    {
        uid_hash = kube_uid_hash(id.meta.uid);
    }

    return (uid_hash != node->delta.uid_hash) ? node->delta.uid_hash : 0;
}


/* Moves the node to its newest state and takes over the state's record. */
static void
fifo_node_set(kube_delta_fifo_t *fifo, delta_node_t *node,
    const kube_delta_t *delta, kube_record_t *record)
{
    uint64_t  read_ms, deleted_uid;

    kube_free(fifo->alloc, node->record);

    read_ms = node->delta.read_ms;
    deleted_uid = fifo_deleted_uid(node, delta);
    node->delta = *delta;
    node->delta.deleted_uid = deleted_uid;

    if (read_ms < delta->read_ms) {
        node->delta.read_ms = read_ms;
    }

    node->record = record;
    node->bytes = fifo_node_bytes(delta);
    node->rv_len = 0;

    if (delta->rv.len != 0 && delta->rv.len <= KUBE_RV_LEN_MAX) {
        memcpy(node->rv, delta->rv.data, delta->rv.len);
        node->rv_len = (uint8_t) delta->rv.len;
    }

    if (delta->kind == KUBE_DELTA_REPLACED) {
        node->listed = true;
    }

    /*
     * The indexer takes an older version only from a list: an event that
     * came after the list's item must not hide that there was one.
     */
    if (delta->kind == KUBE_DELTA_UPDATED && node->listed) {
        node->delta.kind = KUBE_DELTA_REPLACED;
    }
}


static delta_node_t *
fifo_node_create(kube_delta_fifo_t *fifo, const kube_delta_t *delta,
    kube_record_t *record)
{
    delta_node_t  *node;

    node = kube_zalloc(fifo->alloc,
                       sizeof(delta_node_t) + delta->ns.len + delta->name.len);
    if (node == NULL) {
        return NULL;
    }

    node->delta.read_ms = KUBE_NEVER;
    node->ns_len = (uint8_t) delta->ns.len;
    node->name_len = (uint16_t) delta->name.len;

    if (delta->ns.len != 0) {
        memcpy(node->key, delta->ns.data, delta->ns.len);
    }

    if (delta->name.len != 0) {
        memcpy(node->key + delta->ns.len, delta->name.data, delta->name.len);
    }

    fifo_node_set(fifo, node, delta, record);

    return node;
}


/* True if delta, in place of node where that is not NULL, is too much. */
static bool
fifo_is_full(const kube_delta_fifo_t *fifo, const delta_node_t *node,
    const kube_delta_t *delta)
{
    size_t  keys, bytes;

    keys = fifo->keys;
    bytes = fifo->bytes;

    if (node != NULL) {
        keys--;
        bytes -= node->bytes;
    }

    /* an empty FIFO accepts any size: a large object would wait for ever */
    return keys != 0
           && (keys >= fifo->keys_max
               || bytes > fifo->bytes_max
               || fifo_node_bytes(delta) > fifo->bytes_max - bytes);
}


/* Queues what has a key; record is taken over in case of KUBE_OK only. */
static kube_rc_t
fifo_put_key(kube_delta_fifo_t *fifo, const kube_delta_t *delta,
    kube_record_t *record)
{
    uint64_t       hash;
    delta_node_t  *node;

    if (delta->scope >= KUBE_SCOPES_MAX
        || delta->ns.len > KUBE_NAMESPACE_LEN_MAX
        || delta->name.len == 0
        || delta->name.len > KUBE_NAME_LEN_MAX)
    {
        return KUBE_INVALID;
    }

    hash = fifo_hash(fifo, delta);
    node = fifo_find(fifo, delta, hash);

    if (fifo_is_full(fifo, node, delta)) {
        return KUBE_NOMEM;
    }

    if (node != NULL) {
        fifo->bytes -= node->bytes;
        fifo_node_set(fifo, node, delta, record);
        fifo->bytes += node->bytes;

        /* drop must not remove this newer state, which nobody has seen */
        if (fifo->peeked == node) {
            fifo->peeked = NULL;
        }

        return KUBE_OK;
    }

    node = fifo_node_create(fifo, delta, record);
    if (node == NULL) {
        return KUBE_NOMEM;
    }

    node->mapped = true;
    kube_map_insert(&fifo->map, &node->link, hash);
    fifo_append(fifo, node);

    return KUBE_OK;
}


static kube_rc_t
fifo_put_mark(kube_delta_fifo_t *fifo, const kube_delta_t *mark)
{
    delta_node_t  *node, *older;

    if (mark->scope >= KUBE_SCOPES_MAX) {
        return KUBE_INVALID;
    }

    node = fifo_node_create(fifo, mark, NULL);
    if (node == NULL) {
        return KUBE_NOMEM;
    }

    /* an item of the list must not leave in front of the list's beginning */
    if (mark->kind == KUBE_DELTA_LIST_BEGIN
        || mark->kind == KUBE_DELTA_REFILL_BEGIN)
    {
        for (older = fifo->first; older != NULL; older = older->next) {
            if (older->delta.scope == mark->scope) {
                fifo_unmap(fifo, older);
            }
        }
    }

    fifo_append(fifo, node);

    return KUBE_OK;
}


kube_rc_t
kube_delta_fifo_put(kube_delta_fifo_t *fifo, const kube_delta_t *delta)
{
    kube_delta_t  d;

    if (kube_delta_is_mark(delta->kind)) {
        d = (kube_delta_t) {
            .kind = delta->kind,
            .scope = delta->scope,
            .read_ms = KUBE_NEVER
        };

        return fifo_put_mark(fifo, &d);
    }

    d = *delta;
    d.record = NULL;

    return fifo_put_key(fifo, &d, NULL);
}


/*
 * The object's record, for the caller to free; NULL where it can have none.
 * It is written where the largest so far had room, and then copied, so that no
 * object is measured first.  KUBE_OK or KUBE_NOMEM.
 */
static kube_rc_t
fifo_record(kube_delta_fifo_t *fifo, const kube_object_t *object,
    kube_record_t **record)
{
    void       *p;
    size_t      size;
    kube_rc_t   rc;

    *record = NULL;
    size = kube_record_write(object, fifo->scratch, fifo->scratch_n);

    if (size > fifo->scratch_n) {
        p = fifo->scratch;
        rc = kube_array_reserve(fifo->alloc, &p, &fifo->scratch_n, size, 1,
                                SIZE_MAX);
        fifo->scratch = p;

        if (rc != KUBE_OK) {
            return KUBE_NOMEM;
        }

        size = kube_record_write(object, fifo->scratch, fifo->scratch_n);
    }

    if (size == 0) {
        return KUBE_OK;
    }

    *record = kube_alloc(fifo->alloc, size);

    if (*record == NULL) {
        return KUBE_NOMEM;
    }

    memcpy(*record, fifo->scratch, size);

    return KUBE_OK;
}


kube_rc_t
kube_delta_fifo_object(kube_delta_fifo_t *fifo, kube_delta_kind_t kind,
    unsigned scope, const kube_object_t *object, uint64_t read_ms)
{
    kube_rc_t           rc;
    kube_delta_t        delta;
    kube_record_t      *record;
    const kube_meta_t  *meta;

    meta = kube_object_meta(object);

    delta = (kube_delta_t) {
        .kind = kind,
        .scope = scope,
        .resource = object->resource,
        .ns = meta->ns,
        .name = meta->name,
        .rv = meta->rv,
        .read_ms = read_ms
    };

    rc = fifo_record(fifo, object, &record);

    if (rc != KUBE_OK) {
        return rc;
    }

    if (record == NULL) {
        delta.kind = KUBE_DELTA_REFUSED;
        delta.reason = kube_reason_text(KUBE_REASON_TOO_LARGE);
        delta.uid_hash = kube_uid_hash(meta->uid);
        return fifo_put_key(fifo, &delta, NULL);
    }

    if (kube_resource_info(object->resource)->shape == KUBE_SHAPE_SLICE) {
        delta.trigger_ms = object->u.slice.trigger_ms;
    }

    delta.record = record;
    rc = fifo_put_key(fifo, &delta, record);

    if (rc != KUBE_OK) {
        kube_free(fifo->alloc, record);
    }

    return rc;
}


static void
fifo_show(const delta_node_t *node, kube_delta_t *delta)
{
    *delta = node->delta;
    delta->ns = (kube_str_t) { node->key, node->ns_len };
    delta->name = (kube_str_t) { node->key + node->ns_len, node->name_len };
    delta->rv = (kube_str_t) { node->rv, node->rv_len };
    delta->record = node->record;
}


kube_rc_t
kube_delta_fifo_peek(kube_delta_fifo_t *fifo, kube_delta_t *delta)
{
    delta_node_t  *node;

    node = fifo->first;

    if (node == NULL) {
        return KUBE_AGAIN;
    }

    fifo->peeked = node;
    fifo_show(node, delta);

    return KUBE_OK;
}


kube_rc_t
kube_delta_fifo_next(const kube_delta_fifo_t *fifo, const void **at,
    kube_delta_t *delta)
{
    const delta_node_t  *node;

    node = *at;
    node = (node == NULL) ? fifo->first : node->next;

    if (node == NULL) {
        return KUBE_AGAIN;
    }

    *at = node;
    fifo_show(node, delta);

    return KUBE_OK;
}


void
kube_delta_fifo_drop(kube_delta_fifo_t *fifo)
{
    if (fifo->peeked != NULL) {
        fifo_remove(fifo, fifo->peeked);
    }
}


size_t
kube_delta_fifo_depth(const kube_delta_fifo_t *fifo)
{
    return fifo->keys;
}


size_t
kube_delta_fifo_depth_scope(const kube_delta_fifo_t *fifo, unsigned scope)
{
    return (scope < KUBE_SCOPES_MAX) ? fifo->depth[scope] : 0;
}


bool
kube_delta_fifo_high(const kube_delta_fifo_t *fifo)
{
    return fifo->keys > fifo->keys_max - fifo->keys_max / 4
           || fifo->bytes > fifo->bytes_max - fifo->bytes_max / 4;
}


bool
kube_delta_fifo_low(const kube_delta_fifo_t *fifo)
{
    return fifo->keys < fifo->keys_max / 2 + 1
           && fifo->bytes < fifo->bytes_max / 2 + 1;
}

/*
 * kube_delta_fifo - changes on their way to the indexer, at most one per key.
 *
 * A list of nodes in the order in which they leave, and a hash table over
 * those that may still take a newer state.  It decides nothing about what a
 * change means (the indexer does).  One thread.
 *
 * Invariants: a node is in the table iff it is an object's or a key's and no
 * list of its scope began after it; so a key is in the table at most once,
 * and waits at most once more per list that began.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_delta_fifo.h"


typedef struct delta_node_s  delta_node_t;

struct delta_node_s {
    delta_node_t       *prev;
    delta_node_t       *next;
    delta_node_t       *chain;
    kube_record_t      *record;         /* owned; NULL: none */
    const char         *reason;         /* static text */
    size_t              reason_len;
    uint64_t            hash;
    uint64_t            read_ms;        /* the earliest of what it holds */
    int64_t             trigger_ms;
    size_t              bytes;
    kube_delta_kind_t   kind;
    kube_resource_t     resource;
    unsigned            scope;
    bool                hashed;
    bool                listed;         /* some state of it came by a list */
    uint8_t             rv_len;
    uint8_t             ns_len;
    uint16_t            name_len;
    char                rv[KUBE_RV_LEN_MAX];
    char                key[];          /* ns, name */
};

struct kube_delta_fifo_s {
    const kube_alloc_t  *alloc;
    kube_seed_t          seed;
    size_t               keys_max;
    size_t               bytes_max;
    size_t               keys;
    size_t               bytes;
    size_t               mask;
    delta_node_t       **buckets;
    delta_node_t        *first;
    delta_node_t        *last;
    delta_node_t        *peeked;
    size_t               depth[KUBE_SCOPES_MAX];
};

/* What is to be queued, before it has a node. */
typedef struct {
    kube_delta_kind_t   kind;
    unsigned            scope;
    kube_resource_t     resource;
    kube_str_t          ns;
    kube_str_t          name;
    kube_str_t          rv;
    kube_str_t          reason;
    kube_record_t      *record;
    uint64_t            read_ms;
    int64_t             trigger_ms;
} delta_state_t;


kube_delta_fifo_t *
kube_delta_fifo_create(const kube_alloc_t *alloc, kube_seed_t seed,
    size_t keys_max, size_t bytes_max)
{
    size_t              n;
    kube_delta_fifo_t  *fifo;

    fifo = kube_zalloc(alloc, sizeof(kube_delta_fifo_t));
    if (fifo == NULL) {
        return NULL;
    }

    for (n = 16; n < keys_max && n < SIZE_MAX / 4 / sizeof(void *); n *= 2) {
        /* void */
    }

    fifo->buckets = kube_zalloc(alloc, n * sizeof(delta_node_t *));
    if (fifo->buckets == NULL) {
        kube_free(alloc, fifo);
        return NULL;
    }

    fifo->alloc = alloc;
    fifo->seed = seed;
    fifo->keys_max = keys_max;
    fifo->bytes_max = bytes_max;
    fifo->mask = n - 1;

    return fifo;
}


static void
delta_node_free(kube_delta_fifo_t *fifo, delta_node_t *node)
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
        delta_node_free(fifo, node);
    }

    kube_free(fifo->alloc, fifo->buckets);
    kube_free(fifo->alloc, fifo);
}


static uint64_t
delta_hash(const kube_delta_fifo_t *fifo, const delta_state_t *state)
{
    char    buf[2 + KUBE_KEY_LEN_MAX];
    size_t  len;

    buf[0] = (char) state->resource;
    buf[1] = (char) state->ns.len;
    len = 2;

    if (state->ns.len != 0) {
        memcpy(buf + len, state->ns.data, state->ns.len);
        len += state->ns.len;
    }

    if (state->name.len != 0) {
        memcpy(buf + len, state->name.data, state->name.len);
        len += state->name.len;
    }

    return kube_hash64(fifo->seed, buf, len);
}


static delta_node_t *
delta_node_find(const kube_delta_fifo_t *fifo, const delta_state_t *state,
    uint64_t hash)
{
    kube_str_t     ns, name;
    delta_node_t  *node;

    for (node = fifo->buckets[hash & fifo->mask];
         node != NULL;
         node = node->chain)
    {
        ns = (kube_str_t) { node->key, node->ns_len };
        name = (kube_str_t) { node->key + node->ns_len, node->name_len };

        if (node->hash == hash
            && node->scope == state->scope
            && node->resource == state->resource
            && kube_str_eq(ns, state->ns)
            && kube_str_eq(name, state->name))
        {
            return node;
        }
    }

    return NULL;
}


static void
delta_node_unhash(kube_delta_fifo_t *fifo, delta_node_t *node)
{
    delta_node_t  **p;

    if (!node->hashed) {
        return;
    }

    p = &fifo->buckets[node->hash & fifo->mask];

    while (*p != node) {
        p = &(*p)->chain;
    }

    *p = node->chain;
    node->hashed = false;
}


static void
delta_node_append(kube_delta_fifo_t *fifo, delta_node_t *node)
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
    fifo->depth[node->scope]++;
}


static void
delta_node_remove(kube_delta_fifo_t *fifo, delta_node_t *node)
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

    delta_node_unhash(fifo, node);

    fifo->keys--;
    fifo->bytes -= node->bytes;
    fifo->depth[node->scope]--;

    delta_node_free(fifo, node);
}


static size_t
delta_node_bytes(const delta_state_t *state)
{
    return sizeof(delta_node_t) + state->ns.len + state->name.len
           + (state->record != NULL ? state->record->size : 0);
}


/* Takes the state, and its record, over into the node. */
static void
delta_node_set(kube_delta_fifo_t *fifo, delta_node_t *node,
    const delta_state_t *state)
{
    kube_free(fifo->alloc, node->record);

    node->record = state->record;
    node->reason = state->reason.data;
    node->reason_len = state->reason.len;
    node->trigger_ms = state->trigger_ms;
    node->bytes = delta_node_bytes(state);
    node->kind = state->kind;
    node->rv_len = 0;

    if (state->rv.len != 0 && state->rv.len <= KUBE_RV_LEN_MAX) {
        memcpy(node->rv, state->rv.data, state->rv.len);
        node->rv_len = (uint8_t) state->rv.len;
    }

    if (state->kind == KUBE_DELTA_REPLACED) {
        node->listed = true;
    }

    /*
     * The indexer takes an older version only from a list: an event that
     * came behind a list's item must not hide that it was one.
     */
    if (state->kind == KUBE_DELTA_UPDATED && node->listed) {
        node->kind = KUBE_DELTA_REPLACED;
    }

    if (state->read_ms < node->read_ms) {
        node->read_ms = state->read_ms;
    }
}


/* One object is taken in any case: it could never be taken otherwise. */
static bool
delta_fifo_full(const kube_delta_fifo_t *fifo, const delta_node_t *node,
    const delta_state_t *state)
{
    size_t  keys, bytes;

    keys = fifo->keys;
    bytes = fifo->bytes;

    if (node != NULL) {
        keys--;
        bytes -= node->bytes;
    }

    return keys != 0
           && (keys >= fifo->keys_max
               || bytes > fifo->bytes_max
               || delta_node_bytes(state) > fifo->bytes_max - bytes);
}


static delta_node_t *
delta_node_create(kube_delta_fifo_t *fifo, const delta_state_t *state)
{
    delta_node_t  *node;

    node = kube_zalloc(fifo->alloc,
                       sizeof(delta_node_t) + state->ns.len + state->name.len);
    if (node == NULL) {
        return NULL;
    }

    node->scope = state->scope;
    node->resource = state->resource;
    node->read_ms = UINT64_MAX;
    node->ns_len = (uint8_t) state->ns.len;
    node->name_len = (uint16_t) state->name.len;

    if (state->ns.len != 0) {
        memcpy(node->key, state->ns.data, state->ns.len);
    }

    if (state->name.len != 0) {
        memcpy(node->key + state->ns.len, state->name.data, state->name.len);
    }

    delta_node_set(fifo, node, state);

    return node;
}


/* The record is taken over in case of KUBE_OK only. */
static kube_rc_t
delta_fifo_put(kube_delta_fifo_t *fifo, const delta_state_t *state)
{
    uint64_t       hash;
    delta_node_t  *node;

    if (state->scope >= KUBE_SCOPES_MAX
        || state->ns.len > KUBE_NAMESPACE_LEN_MAX
        || state->name.len == 0
        || state->name.len > KUBE_NAME_LEN_MAX)
    {
        return KUBE_INVALID;
    }

    hash = delta_hash(fifo, state);
    node = delta_node_find(fifo, state, hash);

    if (delta_fifo_full(fifo, node, state)) {
        return KUBE_NOMEM;
    }

    if (node != NULL) {
        fifo->bytes -= node->bytes;
        delta_node_set(fifo, node, state);
        fifo->bytes += node->bytes;

        /* what was shown is gone: drop must not remove this newer state */
        if (fifo->peeked == node) {
            fifo->peeked = NULL;
        }

        return KUBE_OK;
    }

    node = delta_node_create(fifo, state);
    if (node == NULL) {
        return KUBE_NOMEM;
    }

    node->hash = hash;
    node->hashed = true;
    node->chain = fifo->buckets[hash & fifo->mask];
    fifo->buckets[hash & fifo->mask] = node;

    delta_node_append(fifo, node);

    return KUBE_OK;
}


kube_rc_t
kube_delta_fifo_object(kube_delta_fifo_t *fifo, kube_delta_kind_t kind,
    unsigned scope, const kube_object_t *object, uint64_t read_ms)
{
    size_t              size;
    kube_rc_t           rc;
    delta_state_t       state;
    const kube_meta_t  *meta;

    meta = kube_object_meta(object);
    size = kube_record_size(object, 0);

    if (size == 0) {
        return kube_delta_fifo_key(fifo, KUBE_DELTA_REFUSED, scope,
                                   object->resource, meta->ns, meta->name,
                                   meta->rv, KUBE_STR("too_large"), read_ms);
    }

    memset(&state, 0, sizeof(delta_state_t));

    state.kind = kind;
    state.scope = scope;
    state.resource = object->resource;
    state.ns = meta->ns;
    state.name = meta->name;
    state.rv = meta->rv;
    state.read_ms = read_ms;

    if (object->resource == KUBE_RESOURCE_ENDPOINTSLICES) {
        state.trigger_ms = object->u.slice.trigger_ms;
    }

    state.record = kube_alloc(fifo->alloc, size);
    if (state.record == NULL) {
        return KUBE_NOMEM;
    }

    kube_record_encode(object, 0, state.record);

    rc = delta_fifo_put(fifo, &state);

    if (rc != KUBE_OK) {
        kube_free(fifo->alloc, state.record);
    }

    return rc;
}


kube_rc_t
kube_delta_fifo_key(kube_delta_fifo_t *fifo, kube_delta_kind_t kind,
    unsigned scope, kube_resource_t resource, kube_str_t ns, kube_str_t name,
    kube_str_t rv, kube_str_t reason, uint64_t read_ms)
{
    delta_state_t  state;

    memset(&state, 0, sizeof(delta_state_t));

    state.kind = kind;
    state.scope = scope;
    state.resource = resource;
    state.ns = ns;
    state.name = name;
    state.rv = rv;
    state.reason = reason;
    state.read_ms = read_ms;

    return delta_fifo_put(fifo, &state);
}


/* Behind LIST_BEGIN no key of the scope may slip in front of it. */
static void
delta_fifo_close(kube_delta_fifo_t *fifo, unsigned scope)
{
    delta_node_t  *node;

    for (node = fifo->first; node != NULL; node = node->next) {
        if (node->scope == scope) {
            delta_node_unhash(fifo, node);
        }
    }
}


kube_rc_t
kube_delta_fifo_mark(kube_delta_fifo_t *fifo, kube_delta_kind_t kind,
    unsigned scope)
{
    delta_node_t   *node;
    delta_state_t   state;

    if (scope >= KUBE_SCOPES_MAX) {
        return KUBE_INVALID;
    }

    memset(&state, 0, sizeof(delta_state_t));

    state.kind = kind;
    state.scope = scope;

    node = delta_node_create(fifo, &state);
    if (node == NULL) {
        return KUBE_NOMEM;
    }

    if (kind == KUBE_DELTA_LIST_BEGIN) {
        delta_fifo_close(fifo, scope);
    }

    delta_node_append(fifo, node);

    return KUBE_OK;
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

    delta->kind = node->kind;
    delta->scope = node->scope;
    delta->resource = node->resource;
    delta->ns = (kube_str_t) { node->key, node->ns_len };
    delta->name = (kube_str_t) { node->key + node->ns_len, node->name_len };
    delta->rv = (kube_str_t) { node->rv, node->rv_len };
    delta->reason = (kube_str_t) { node->reason, node->reason_len };
    delta->record = node->record;
    delta->read_ms = node->read_ms;
    delta->trigger_ms = node->trigger_ms;

    return KUBE_OK;
}


void
kube_delta_fifo_drop(kube_delta_fifo_t *fifo)
{
    if (fifo->peeked != NULL) {
        delta_node_remove(fifo, fifo->peeked);
    }
}


void
kube_delta_fifo_clear(kube_delta_fifo_t *fifo, unsigned scope)
{
    delta_node_t  *node, *next;

    for (node = fifo->first; node != NULL; node = next) {
        next = node->next;

        if (node->scope == scope) {
            delta_node_remove(fifo, node);
        }
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

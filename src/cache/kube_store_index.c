/*
 * kube_store_index - the named indexes of a kube_store: from a value to the
 * objects that have it, and back.
 *
 * A value is a set of members, one for each object that has it; an object
 * knows its members in all indexes, so that it leaves without a search.  A set
 * ends with its last member.  It knows no keys.  One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_arena.h"
#include "kube_store_impl.h"


/* An object's text for the index functions that decode it. */
#define STORE_ARENA_BYTES  KUBE_OBJECT_BYTES_MAX

/* What an index function gives its values to. */
struct kube_index_values_s {
    kube_store_t    *store;
    store_index_t   *index;
    store_member_t  *members;        /* in front of those before */
    uint64_t         stamp;
    size_t           n;
    bool             failed;         /* out of memory */
};


static store_set_t *
index_set(const kube_store_t *store, const store_index_t *index,
    kube_str_t value)
{
    store_set_t      *set;
    kube_map_link_t  *link;

    for (link = kube_map_first(&index->sets,
                               kube_hash64(store->conf.seed, value.data,
                                           value.len));
         link != NULL;
         link = kube_map_next(link))
    {
        set = kube_map_data(link, store_set_t, link);

        if (kube_str_eq((kube_str_t) { set->value, set->len }, value)) {
            return set;
        }
    }

    return NULL;
}


static store_set_t *
index_set_create(kube_store_t *store, store_index_t *index, kube_str_t value)
{
    store_set_t  *set;

    set = kube_zalloc(store->alloc, sizeof(store_set_t) + value.len);
    if (set == NULL) {
        return NULL;
    }

    set->index = index;
    set->len = value.len;

    if (value.len != 0) {
        memcpy(set->value, value.data, value.len);
    }

    kube_map_insert(&index->sets, &set->link,
                    kube_hash64(store->conf.seed, value.data, value.len));

    return set;
}


static void
index_member_free(kube_store_t *store, store_member_t *member, bool in)
{
    store_set_t  *set;

    set = member->set;

    if (in) {
        set->n--;

        if (member->prev != NULL) {
            member->prev->next = member->next;

        } else {
            set->first = member->next;
        }

        if (member->next != NULL) {
            member->next->prev = member->prev;
        }
    }

    if (--set->members == 0) {
        kube_map_remove(&set->index->sets, &set->link);
        kube_free(store->alloc, set);
    }

    kube_free(store->alloc, member);
}


/* Ends members up to the first that is not meant: end. */
static void
index_members_free(kube_store_t *store, store_member_t *members,
    const store_member_t *end, bool in)
{
    store_member_t  *member, *next;

    for (member = members; member != end; member = next) {
        next = member->next_of_row;
        index_member_free(store, member, in);
    }
}


void
kube_store_members_free(kube_store_t *store, store_member_t *members, bool in)
{
    index_members_free(store, members, NULL, in);
}


void
kube_index_value(kube_index_values_t *values, kube_str_t value)
{
    store_set_t     *set;
    store_member_t  *member;

    if (values->failed
        || values->n == KUBE_INDEX_VALUES_MAX
        || value.len > KUBE_INDEX_VALUE_LEN_MAX)
    {
        return;
    }

    set = index_set(values->store, values->index, value);

    if (set != NULL && set->stamp == values->stamp) {
        return;
    }

    member = kube_zalloc(values->store->alloc, sizeof(store_member_t));

    if (member != NULL && set == NULL) {
        set = index_set_create(values->store, values->index, value);
    }

    if (member == NULL || set == NULL) {

        if (member != NULL) {
            kube_free(values->store->alloc, member);
        }

        values->failed = true;
        return;
    }

    set->stamp = values->stamp;
    set->members++;

    member->set = set;
    member->next_of_row = values->members;
    values->members = member;
    values->n++;
}


/* The members of an object in one index, in front of *members. */
static kube_rc_t
index_members(kube_store_t *store, store_index_t *index,
    const kube_stored_t *stored, store_member_t **members)
{
    kube_rc_t            rc;
    kube_index_values_t  values;

    values = (kube_index_values_t) {
        .store = store,
        .index = index,
        .members = *members,
        .stamp = ++store->stamp
    };

    rc = index->values(index->ctx, stored, &values);

    if (rc == KUBE_OK && !values.failed) {
        *members = values.members;
        return KUBE_OK;
    }

    index_members_free(store, values.members, *members, false);

    if (values.failed || rc == KUBE_NOMEM) {
        return KUBE_NOMEM;
    }

    store->index_errors++;

    return KUBE_OK;
}


kube_rc_t
kube_store_members(kube_store_t *store, store_index_t *index,
    const kube_stored_t *stored, store_member_t **members)
{
    store_index_t   *i;
    store_member_t  *head;

    if (index != NULL) {
        return index_members(store, index, stored, members);
    }

    head = *members;

    for (i = store->indexes; i != NULL; i = i->next) {

        if (index_members(store, i, stored, &head) != KUBE_OK) {
            index_members_free(store, head, *members, false);
            return KUBE_NOMEM;
        }
    }

    *members = head;

    return KUBE_OK;
}


void
kube_store_members_link(store_member_t *members, store_row_t *row)
{
    store_set_t     *set;
    store_member_t  *member;

    for (member = members; member != NULL; member = member->next_of_row) {
        set = member->set;

        member->row = row;
        member->prev = NULL;
        member->next = set->first;

        if (set->first != NULL) {
            set->first->prev = member;
        }

        set->first = member;
        set->n++;
    }
}


static void
index_free(kube_store_t *store, store_index_t *index)
{
    kube_map_done(&index->sets);
    kube_free(store->alloc, index);
}


void
kube_store_indexes_free(kube_store_t *store)
{
    store_index_t  *index;

    while (store->indexes != NULL) {
        index = store->indexes;
        store->indexes = index->next;
        index_free(store, index);
    }
}


static store_index_t *
index_find(const kube_store_t *store, kube_str_t name)
{
    store_index_t  *index;

    for (index = store->indexes; index != NULL; index = index->next) {
        if (kube_str_eq((kube_str_t) { index->name, index->name_len }, name)) {
            return index;
        }
    }

    return NULL;
}


/*
 * The members of everything that is held in a new index, each alone in the
 * list of its object until all are made.
 */
static kube_rc_t
index_fill(kube_store_t *store, store_index_t *index)
{
    store_row_t     *row, *undo;
    store_member_t  *members, *last;

    for (row = store->first; row != NULL; row = row->next) {

        members = NULL;

        if (index_members(store, index, row->stored, &members) != KUBE_OK) {
            break;
        }

        if (members == NULL) {
            continue;
        }

        kube_store_members_link(members, row);

        for (last = members; last->next_of_row != NULL; /* void */ ) {
            last = last->next_of_row;
        }

        last->next_of_row = row->members;
        row->members = members;
    }

    if (row == NULL) {
        return KUBE_OK;
    }

    /* what is of the new index is in front */

    for (undo = store->first; undo != row; undo = undo->next) {

        while (undo->members != NULL && undo->members->set->index == index) {
            members = undo->members;
            undo->members = members->next_of_row;
            index_member_free(store, members, true);
        }
    }

    return KUBE_NOMEM;
}


kube_rc_t
kube_store_add_index(kube_store_t *store, kube_str_t name,
    kube_index_pt values, void *ctx)
{
    store_index_t  *index;

    if (name.len == 0
        || name.len > KUBE_INDEX_NAME_LEN_MAX
        || index_find(store, name) != NULL)
    {
        return KUBE_INVALID;
    }

    index = kube_zalloc(store->alloc, sizeof(store_index_t) + name.len);
    if (index == NULL) {
        return KUBE_NOMEM;
    }

    index->values = values;
    index->ctx = ctx;
    index->name_len = name.len;
    memcpy(index->name, name.data, name.len);

    if (kube_map_init(&index->sets, store->alloc) != KUBE_OK
        || index_fill(store, index) != KUBE_OK)
    {
        index_free(store, index);
        return KUBE_NOMEM;
    }

    index->next = store->indexes;
    store->indexes = index;

    return KUBE_OK;
}


/* Visits a set; stamp 0: all, else those without it, which get it. */
static bool
index_visit(const store_set_t *set, uint64_t stamp, kube_store_visit_pt visit,
    void *ctx)
{
    const store_member_t  *member;

    for (member = set->first; member != NULL; member = member->next) {

        if (stamp != 0) {

            if (member->row->stamp == stamp) {
                continue;
            }

            member->row->stamp = stamp;
        }

        if (!visit(ctx, member->row->stored)) {
            return false;
        }
    }

    return true;
}


kube_rc_t
kube_store_by_index(const kube_store_t *store, kube_str_t name,
    kube_str_t value, kube_store_visit_pt visit, void *ctx)
{
    const store_set_t    *set;
    const store_index_t  *index;

    index = index_find(store, name);

    if (index == NULL) {
        return KUBE_NOT_FOUND;
    }

    set = index_set(store, index, value);

    if (set != NULL) {
        (void) index_visit(set, 0, visit, ctx);
    }

    return KUBE_OK;
}


kube_rc_t
kube_store_shared(kube_store_t *store, kube_str_t name,
    const store_row_t *row, kube_store_visit_pt visit, void *ctx)
{
    uint64_t               stamp;
    const store_index_t   *index;
    const store_member_t  *member;

    index = index_find(store, name);

    if (index == NULL) {
        return KUBE_NOT_FOUND;
    }

    if (row == NULL) {
        return KUBE_OK;
    }

    stamp = ++store->stamp;

    for (member = row->members; member != NULL; member = member->next_of_row) {
        if (member->set->index == index
            && !index_visit(member->set, stamp, visit, ctx))
        {
            break;
        }
    }

    return KUBE_OK;
}


kube_rc_t
kube_store_index_values(const kube_store_t *store, kube_str_t name,
    kube_store_value_pt visit, void *ctx)
{
    size_t                i;
    kube_map_link_t      *link;
    const store_set_t    *set;
    const store_index_t  *index;

    index = index_find(store, name);

    if (index == NULL) {
        return KUBE_NOT_FOUND;
    }

    for (i = 0; i <= index->sets.mask; i++) {
        for (link = index->sets.buckets[i]; link != NULL; link = link->next) {
            set = kube_map_data(link, store_set_t, link);

            if (!visit(ctx, (kube_str_t) { set->value, set->len }, set->n)) {
                return KUBE_OK;
            }
        }
    }

    return KUBE_OK;
}


uint64_t
kube_store_index_errors(const kube_store_t *store)
{
    return store->index_errors;
}


kube_rc_t
kube_index_namespace(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values)
{
    (void) ctx;

    kube_index_value(values, stored->id.meta.ns);

    return KUBE_OK;
}


kube_rc_t
kube_index_service(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values)
{
    char        key[KUBE_KEY_LEN_MAX];
    size_t      len;
    kube_str_t  ns, service;

    (void) ctx;

    ns = stored->id.meta.ns;
    service = stored->id.service;

    if (service.len == 0 || ns.len + 1 + service.len > sizeof(key)) {
        return KUBE_OK;
    }

    len = 0;

    if (ns.len != 0) {
        memcpy(key, ns.data, ns.len);
        len = ns.len;
    }

    key[len++] = '/';
    memcpy(key + len, service.data, service.len);

    kube_index_value(values, (kube_str_t) { key, len + service.len });

    return KUBE_OK;
}


typedef enum {
    INDEX_NODES = 0,
    INDEX_ADDRESSES,
    INDEX_LABELS
} index_what_t;


static void
index_address(const kube_addr_t *address, kube_index_values_t *values)
{
    char    text[KUBE_ADDR_TEXT_MAX];
    size_t  len;

    len = kube_addr_text(address, text);
    kube_index_value(values, (kube_str_t) { text, len });
}


static void
index_slice(const kube_slice_t *slice, index_what_t what,
    kube_index_values_t *values)
{
    size_t                  i;
    const kube_endpoint_t  *endpoint;

    for (i = 0; i < slice->endpoints_n; i++) {
        endpoint = &slice->endpoints[i];

        if (what == INDEX_ADDRESSES) {
            index_address(&endpoint->address, values);

        } else if (what == INDEX_NODES && endpoint->node.len != 0) {
            kube_index_value(values, endpoint->node);
        }
    }
}


/* "name=value", as label selectors have it. */
static void
index_labels(const kube_partial_t *partial, kube_index_values_t *values)
{
    char                 text[KUBE_INDEX_VALUE_LEN_MAX];
    size_t               i, len;
    const kube_label_t  *label;

    for (i = 0; i < partial->labels_n; i++) {
        label = &partial->labels[i];
        len = label->name.len;

        memcpy(text, label->name.data, len);
        text[len++] = '=';

        if (label->value.len != 0) {
            memcpy(text + len, label->value.data, label->value.len);
            len += label->value.len;
        }

        kube_index_value(values, (kube_str_t) { text, len });
    }
}


/* What of an object has to be decoded; an object that has none has no value. */
static kube_rc_t
index_decoded(const kube_stored_t *stored, index_what_t what,
    kube_index_values_t *values)
{
    size_t         i;
    kube_rc_t      rc;
    kube_arena_t   arena;
    kube_object_t  object;

    kube_arena_init(&arena, stored->alloc, STORE_ARENA_BYTES);
    rc = kube_record_decode(&arena, stored->record, stored->record->size,
                            &object);

    if (rc != KUBE_OK) {
        kube_arena_done(&arena);
        return rc;
    }

    switch (kube_resource_info(object.resource)->shape) {

    case KUBE_SHAPE_SLICE:
        index_slice(&object.u.slice, what, values);
        break;

    case KUBE_SHAPE_SERVICE:

        for (i = 0; what == INDEX_ADDRESSES
                    && i < object.u.service.cluster_ips_n; i++)
        {
            index_address(&object.u.service.cluster_ips[i], values);
        }

        break;

    default:

        if (what == INDEX_LABELS) {
            index_labels(&object.u.partial, values);
        }
    }

    kube_arena_done(&arena);

    return KUBE_OK;
}


kube_rc_t
kube_index_node(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values)
{
    (void) ctx;

    return index_decoded(stored, INDEX_NODES, values);
}


kube_rc_t
kube_index_address(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values)
{
    (void) ctx;

    return index_decoded(stored, INDEX_ADDRESSES, values);
}


kube_rc_t
kube_index_label(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values)
{
    (void) ctx;

    return index_decoded(stored, INDEX_LABELS, values);
}

/*
 * kube_store_impl - what kube_store.c (keys) and kube_store_index.c (values)
 * share.  It is for nobody else; what it declares is in the second file and
 * does not call the first.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_STORE_IMPL_H
#define KUBE_STORE_IMPL_H


#include "kube_map.h"
#include "kube_store.h"


typedef struct store_row_s     store_row_t;
typedef struct store_member_s  store_member_t;
typedef struct store_index_s   store_index_t;

/*
 * Those that have one value in one index.  It lives as long as it has members,
 * those among them that are only prepared.
 */
typedef struct {
    kube_map_link_t    link;
    store_index_t     *index;
    store_member_t    *first;        /* of those that are in */
    size_t             n;            /* how many are in */
    size_t             members;      /* and those that are prepared */
    uint64_t           stamp;        /* of the values that have it already */
    size_t             len;
    char               value[];
} store_set_t;

/* One row in one set. */
struct store_member_s {
    store_member_t    *next_of_row;
    store_member_t    *prev;         /* in the set */
    store_member_t    *next;
    store_set_t       *set;
    store_row_t       *row;
};

struct store_row_s {
    kube_map_link_t    link;
    store_row_t       *prev;
    store_row_t       *next;
    kube_stored_t     *stored;
    store_member_t    *members;      /* in all indexes */
    uint64_t           stamp;        /* of the visit that has seen it */
    uint32_t           list;         /* that has seen it last */
};

struct store_index_s {
    store_index_t     *next;
    kube_map_t         sets;
    kube_index_pt      values;
    void              *ctx;
    size_t             name_len;
    char               name[];
};

struct kube_store_s {
    const kube_alloc_t  *alloc;
    kube_store_conf_t    conf;
    kube_map_t           map;
    store_row_t         *first;
    store_row_t         *last;
    store_index_t       *indexes;
    uint64_t             stamp;
    uint64_t             index_errors;
    uint32_t             list;
};


/*
 * Prepares the members of an object in one index (NULL: in all), in front of
 * *members.  KUBE_OK, or KUBE_NOMEM: *members is as it was.
 */
kube_rc_t kube_store_members(kube_store_t *store, store_index_t *index,
    const kube_stored_t *stored, store_member_t **members)  KUBE_MUST_CHECK;

/* Puts prepared members into their sets, as those of row. */
void kube_store_members_link(store_member_t *members, store_row_t *row);

/* Ends members; in: they are in their sets, else only prepared. */
void kube_store_members_free(kube_store_t *store, store_member_t *members,
    bool in);

/* What kube_store_index() does, of a row; NULL: there is none. */
kube_rc_t kube_store_shared(kube_store_t *store, kube_str_t index,
    const store_row_t *row, kube_store_visit_pt visit, void *ctx)
    KUBE_MUST_CHECK;

/* After the last member. */
void kube_store_indexes_free(kube_store_t *store);


#endif /* KUBE_STORE_IMPL_H */

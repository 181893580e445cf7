/*
 * kube_store - objects on the heap, by key and by named indexes: client-go's
 * Store and Indexer.
 *
 * For programs that keep objects themselves; what nginx serves lies in the
 * zone (kube_indexer.h).  It owns what it holds and copies what it is given;
 * objects are records, immutable and counted, so that who was told of one may
 * keep it.  It decides nothing about versions: kube_shared_informer does.
 *
 * A change is told before it is made (on_change), and is not made where the
 * one who is told has no memory for it: nothing is held that was not told.
 * Each function that fails has changed nothing, where nothing else is said.
 *
 * One thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_STORE_H
#define KUBE_STORE_H


#include "kube_record.h"


/* Values that one object has in one index: a slice has as many addresses.  The
   longest is "name=value" of a label. */
#define KUBE_INDEX_VALUES_MAX     KUBE_SLICE_ENDPOINTS_MAX
#define KUBE_INDEX_VALUE_LEN_MAX  (KUBE_LABEL_NAME_MAX + 1                    \
                                   + KUBE_LABEL_VALUE_MAX)
#define KUBE_INDEX_NAME_LEN_MAX   63


/*
 * An object that is held or was.  Its fields are read only; hold() makes it
 * last until as many release().
 */
typedef struct {
    const kube_alloc_t   *alloc;
    const kube_record_t  *record;
    kube_record_id_t      id;           /* views of the record */
    size_t                refs;
} kube_stored_t;

/* Returns stored; NULL gives NULL. */
kube_stored_t *kube_stored_hold(kube_stored_t *stored);

/* Frees the object with its last reference.  NULL is accepted. */
void kube_stored_release(kube_stored_t *stored);

/* Both are of one object: their uids are equal. */
bool kube_stored_same_uid(const kube_stored_t *a, const kube_stored_t *b);


/*
 * What changes of one key.  old NULL: it is added; new NULL: it is deleted.
 * Both, with two uids: the old one was deleted and a new one made.
 *
 * unknown, where old was deleted: nobody saw it, a list does not have it any
 * more (client-go's DeletedFinalStateUnknown); old is the last known state.
 */
typedef struct {
    kube_stored_t  *old;
    kube_stored_t  *new;
    bool            unknown;
    bool            initial;     /* of the initial list: kube_processor.h */
} kube_store_change_t;

/* KUBE_OK, or KUBE_NOMEM: the change is not made. */
typedef kube_rc_t (*kube_store_change_pt)(void *ctx,
    const kube_store_change_t *change);

typedef struct {
    kube_seed_t            seed;        /* secret */
    kube_store_change_pt   on_change;   /* NULL: nobody is told */
    void                  *on_change_ctx;
} kube_store_conf_t;

typedef struct kube_store_s  kube_store_t;

/* alloc is borrowed.  NULL: out of memory. */
kube_store_t *kube_store_create(const kube_alloc_t *alloc,
    const kube_store_conf_t *conf)  KUBE_MUST_CHECK;

/* Tells nobody.  Objects that somebody holds stay until they are released. */
void kube_store_destroy(kube_store_t *store);


/*
 * Adds the object, or updates the one of its key.  unknown is told if the key
 * was held with another uid.  KUBE_OK, KUBE_NOMEM, or KUBE_CORRUPT: the record
 * is none of an object.
 */
kube_rc_t kube_store_put(kube_store_t *store, const kube_record_t *record,
    bool unknown)  KUBE_MUST_CHECK;

/* KUBE_OK, KUBE_NOT_FOUND, KUBE_NOMEM. */
kube_rc_t kube_store_delete(kube_store_t *store, kube_str_t ns,
    kube_str_t name, bool unknown)  KUBE_MUST_CHECK;

/*
 * Makes the store equal to a list, as a diff: what the list does not have is
 * deleted, then each of it is put; what is as it was (content and
 * resourceVersion) is not touched.  KUBE_OK; KUBE_CORRUPT or KUBE_NOMEM for
 * memory of its own: nothing changed; KUBE_NOMEM of on_change: a part of it was
 * done, each change whole, and the same call again does the rest.
 */
kube_rc_t kube_store_replace(kube_store_t *store,
    const kube_record_t *const *records, size_t n)  KUBE_MUST_CHECK;

/*
 * The same for a list that comes by pieces: what is put, or seen, between the
 * two stays, and the end deletes the rest.  Another begin starts anew.
 * KUBE_OK, or KUBE_NOMEM of on_change: the same call again does the rest.
 */
void kube_store_list_begin(kube_store_t *store);
void kube_store_list_seen(kube_store_t *store, kube_str_t ns, kube_str_t name);
kube_rc_t kube_store_list_end(kube_store_t *store)  KUBE_MUST_CHECK;

/* One put (record) or delete (ns and name; record NULL) of a transaction. */
typedef struct {
    const kube_record_t  *record;
    kube_str_t            ns;
    kube_str_t            name;
    kube_rc_t             rc;           /* what became of it */
} kube_store_op_t;

/*
 * Does them in order.  One that fails stops no other; returns how many did not
 * fail.
 */
size_t kube_store_transaction(kube_store_t *store, kube_store_op_t *ops,
    size_t n);


/* Borrowed until the next change.  NULL: not held. */
kube_stored_t *kube_store_get(const kube_store_t *store, kube_str_t ns,
    kube_str_t name);
size_t kube_store_count(const kube_store_t *store);

/* False: no further one is wanted.  The store must not be changed meanwhile. */
typedef bool (*kube_store_visit_pt)(void *ctx, kube_stored_t *stored);

/* Visits all, in the order in which their keys came. */
void kube_store_each(const kube_store_t *store, kube_store_visit_pt visit,
    void *ctx);


/*
 * An index function gives each value of an object by kube_index_value(), and
 * returns KUBE_OK.  A value that was given already, or is longer than
 * KUBE_INDEX_VALUE_LEN_MAX, or above KUBE_INDEX_VALUES_MAX, is left out.  It is
 * of the content and not of the resourceVersion, for an object whose content
 * is as it was is not asked about again.
 *
 * Any other result: the object is in the store but not in this index, and is
 * counted (client-go panics).
 */
typedef struct kube_index_values_s  kube_index_values_t;

typedef kube_rc_t (*kube_index_pt)(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values);

void kube_index_value(kube_index_values_t *values, kube_str_t value);

/*
 * Index functions that are there: of the namespace; of "namespace/name" of the
 * Service that a slice belongs to; of a slice's nodes; of a slice's addresses
 * as kube_addr_text() writes them, and of a Service's cluster addresses; of
 * "name=value" of each label, where only the metadata is held.
 */
kube_rc_t kube_index_namespace(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values);
kube_rc_t kube_index_service(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values);
kube_rc_t kube_index_node(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values);
kube_rc_t kube_index_address(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values);
kube_rc_t kube_index_label(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values);

/*
 * Adds an index, at any time: it has at once what is held.  name is copied.
 * KUBE_OK, KUBE_NOMEM; KUBE_INVALID: there is one of this name, or the name is
 * empty or longer than KUBE_INDEX_NAME_LEN_MAX.
 */
kube_rc_t kube_store_add_index(kube_store_t *store, kube_str_t name,
    kube_index_pt index, void *ctx)  KUBE_MUST_CHECK;

/* Visits the objects that have the value, in any order.  KUBE_NOT_FOUND: no
   such index. */
kube_rc_t kube_store_by_index(const kube_store_t *store, kube_str_t index,
    kube_str_t value, kube_store_visit_pt visit, void *ctx)  KUBE_MUST_CHECK;

/*
 * Visits the objects that share a value with the one of that key, itself
 * among them, each once; none if the key is not held.
 */
kube_rc_t kube_store_index(kube_store_t *store, kube_str_t index,
    kube_str_t ns, kube_str_t name, kube_store_visit_pt visit, void *ctx)
    KUBE_MUST_CHECK;

/* Visits the values of an index, in any order; none is without objects. */
typedef bool (*kube_store_value_pt)(void *ctx, kube_str_t value,
    size_t objects);

kube_rc_t kube_store_index_values(const kube_store_t *store,
    kube_str_t index, kube_store_value_pt visit, void *ctx)  KUBE_MUST_CHECK;

/* How often an index function had no answer for an object. */
uint64_t kube_store_index_errors(const kube_store_t *store);


#endif /* KUBE_STORE_H */

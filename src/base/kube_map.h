/*
 * kube_map - a hash table of links that lie inside the caller's own structs.
 *
 * It allocates no memory for what it holds, knows no keys and hashes nothing:
 * the caller gives each key's hash, made with a secret seed (kube_hash64)
 * where keys come from outside, and compares the keys of equal hashes:
 *
 *     for (link = kube_map_first(&map, hash);
 *          link != NULL;
 *          link = kube_map_next(link))
 *     {
 *         thing = kube_map_data(link, thing_t, link);
 *         ...
 *     }
 *
 * The table doubles as it fills.  Memory missing for that costs time, not
 * the insertion: chains grow until memory is there.  It never shrinks.
 *
 * Any layer may use it; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_MAP_H
#define KUBE_MAP_H


#include "kube_base.h"


typedef struct kube_map_link_s  kube_map_link_t;

struct kube_map_link_s {
    kube_map_link_t  *next;             /* of the same bucket */
    uint64_t          hash;
};

typedef struct {
    const kube_alloc_t   *alloc;
    kube_map_link_t     **buckets;
    size_t                mask;         /* buckets - 1 */
    size_t                n;            /* links */
} kube_map_t;

/* The struct that holds a link, as ngx_queue_data(). */
#define kube_map_data(link, type, field)                                      \
    ((type *) (void *) ((char *) (link) - offsetof(type, field)))

/* KUBE_OK or KUBE_NOMEM; the map is empty. */
kube_rc_t kube_map_init(kube_map_t *map, const kube_alloc_t *alloc)
    KUBE_MUST_CHECK;

/* Frees the table; links are the caller's.  A zeroed map is accepted. */
void kube_map_done(kube_map_t *map);

/* Does not look whether the key is there: two links may be of one key. */
void kube_map_insert(kube_map_t *map, kube_map_link_t *link, uint64_t hash);

/* link is in the map. */
void kube_map_remove(kube_map_t *map, kube_map_link_t *link);

/* A link with this hash, and the next with the same; NULL: none. */
kube_map_link_t *kube_map_first(const kube_map_t *map, uint64_t hash);
kube_map_link_t *kube_map_next(const kube_map_link_t *link);

/*
 * Any link; NULL: the map is empty.  With kube_map_remove() it empties a map
 * in one pass over the buckets if the caller keeps *bucket, 0 at first.
 */
kube_map_link_t *kube_map_any(const kube_map_t *map, size_t *bucket);


#endif /* KUBE_MAP_H */

/*
 * kube_map - a hash table of links that lie inside the caller's own structs.
 *
 * Chains in an array of buckets, a power of two of them; the table doubles
 * when there are more links than buckets.  It knows no keys (kube_map.h).
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_map.h"


#define MAP_BUCKETS_MIN  16


kube_rc_t
kube_map_init(kube_map_t *map, const kube_alloc_t *alloc)
{
    map->alloc = alloc;
    map->mask = MAP_BUCKETS_MIN - 1;
    map->n = 0;
    map->buckets = kube_zalloc(alloc,
                               MAP_BUCKETS_MIN * sizeof(kube_map_link_t *));

    return (map->buckets != NULL) ? KUBE_OK : KUBE_NOMEM;
}


void
kube_map_done(kube_map_t *map)
{
    if (map->buckets != NULL) {
        kube_free(map->alloc, map->buckets);
        map->buckets = NULL;
    }
}


static void
map_link(kube_map_t *map, kube_map_link_t *link)
{
    kube_map_link_t  **bucket;

    bucket = &map->buckets[link->hash & map->mask];
    link->next = *bucket;
    *bucket = link;
}


/* Doubles the table; without memory it stays as it is. */
static void
map_grow(kube_map_t *map)
{
    size_t             i, n;
    kube_map_link_t  **old, *link, *next;

    old = map->buckets;
    n = map->mask + 1;

    if (n > SIZE_MAX / 2 / sizeof(kube_map_link_t *)) {
        return;
    }

    map->buckets = kube_zalloc(map->alloc, 2 * n * sizeof(kube_map_link_t *));

    if (map->buckets == NULL) {
        map->buckets = old;
        return;
    }

    map->mask = 2 * n - 1;

    for (i = 0; i < n; i++) {
        for (link = old[i]; link != NULL; link = next) {
            next = link->next;
            map_link(map, link);
        }
    }

    kube_free(map->alloc, old);
}


void
kube_map_insert(kube_map_t *map, kube_map_link_t *link, uint64_t hash)
{
    if (map->n > map->mask) {
        map_grow(map);
    }

    link->hash = hash;
    map_link(map, link);
    map->n++;
}


void
kube_map_remove(kube_map_t *map, kube_map_link_t *link)
{
    kube_map_link_t  **p;

    p = &map->buckets[link->hash & map->mask];

    while (*p != link) {
        p = &(*p)->next;
    }

    *p = link->next;
    map->n--;
}


static kube_map_link_t *
map_match(kube_map_link_t *link, uint64_t hash)
{
    while (link != NULL && link->hash != hash) {
        link = link->next;
    }

    return link;
}


kube_map_link_t *
kube_map_first(const kube_map_t *map, uint64_t hash)
{
    return map_match(map->buckets[hash & map->mask], hash);
}


kube_map_link_t *
kube_map_next(const kube_map_link_t *link)
{
    return map_match(link->next, link->hash);
}


kube_map_link_t *
kube_map_any(const kube_map_t *map, size_t *bucket)
{
    for ( /* void */ ; *bucket <= map->mask; (*bucket)++) {
        if (map->buckets[*bucket] != NULL) {
            return map->buckets[*bucket];
        }
    }

    return NULL;
}

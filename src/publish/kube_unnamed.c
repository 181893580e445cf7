/*
 * kube_unnamed - refused objects for whose names the zone has no room.
 *
 * A map of rows by the hash of their keys; two keys of one hash would be one
 * object (2^-64).  For the files of src/publish; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_limits.h"
#include "kube_unnamed.h"


kube_rc_t
kube_unnamed_init(kube_unnamed_t *unnamed)
{
    return kube_map_init(&unnamed->map, unnamed->alloc);
}


void
kube_unnamed_clear(kube_unnamed_t *unnamed)
{
    size_t            bucket;
    kube_map_link_t  *link;

    bucket = 0;

    while (unnamed->map.n != 0
           && (link = kube_map_any(&unnamed->map, &bucket)) != NULL)
    {
        kube_unnamed_remove(unnamed, kube_map_data(link, kube_unnamed_row_t,
                                                   link));
    }
}


void
kube_unnamed_done(kube_unnamed_t *unnamed)
{
    kube_unnamed_clear(unnamed);
    kube_map_done(&unnamed->map);
}


static uint64_t
unnamed_hash(const kube_unnamed_t *unnamed, const kube_record_id_t *id)
{
    size_t  n;
    char    key[1 + KUBE_KEY_LEN_MAX];

    /* a namespace holds no '/': no two keys are the same bytes */
    key[0] = (char) id->resource;
    n = 1;
    memcpy(key + n, id->meta.ns.data, id->meta.ns.len);
    n += id->meta.ns.len;
    key[n++] = '/';
    memcpy(key + n, id->meta.name.data, id->meta.name.len);
    n += id->meta.name.len;

    return kube_hash64(unnamed->seed, key, n);
}


kube_unnamed_row_t *
kube_unnamed_find(const kube_unnamed_t *unnamed, const kube_record_id_t *id)
{
    kube_map_link_t  *link;

    if (unnamed->map.n == 0) {
        return NULL;
    }

    link = kube_map_first(&unnamed->map, unnamed_hash(unnamed, id));

    return (link != NULL) ? kube_map_data(link, kube_unnamed_row_t, link)
                          : NULL;
}


kube_unnamed_row_t *
kube_unnamed_add(kube_unnamed_t *unnamed, const kube_record_id_t *id)
{
    kube_unnamed_row_t  *row;

    if (unnamed->map.n >= KUBE_UNNAMED_MAX) {
        return NULL;
    }

    row = kube_zalloc(unnamed->alloc, sizeof(kube_unnamed_row_t));

    if (row != NULL) {
        kube_map_insert(&unnamed->map, &row->link, unnamed_hash(unnamed, id));
    }

    return row;
}


void
kube_unnamed_remove(kube_unnamed_t *unnamed, kube_unnamed_row_t *row)
{
    kube_map_remove(&unnamed->map, &row->link);
    kube_free(unnamed->alloc, row);
}


kube_unnamed_row_t *
kube_unnamed_unseen(const kube_unnamed_t *unnamed, unsigned scope,
    uint32_t list, size_t *bucket)
{
    kube_map_link_t     *link;
    kube_unnamed_row_t  *row;

    for ( /* void */ ; *bucket <= unnamed->map.mask; (*bucket)++) {
        for (link = unnamed->map.buckets[*bucket];
             link != NULL;
             link = link->next)
        {
            row = kube_map_data(link, kube_unnamed_row_t, link);

            if (row->scope == scope && row->list != list) {
                return row;
            }
        }
    }

    return NULL;
}

/*
 * ngx_http_kube_status_names - the names of a part of an informer's Services,
 * in order.
 *
 * The zone is walked with one record in memory; only as many names are kept
 * as are asked for.  Called by the status files of the http glue, in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_status.h"


static int ngx_http_kube_name_cmp(const ngx_http_kube_name_t *a,
    kube_str_t ns, kube_str_t name);
static void ngx_http_kube_names_take(ngx_http_kube_names_t *names,
    ngx_uint_t limit, kube_str_t ns, kube_str_t name);
static void ngx_http_kube_names_sink(ngx_http_kube_name_t *names,
    ngx_uint_t n, ngx_uint_t i);
static void ngx_http_kube_names_sort(ngx_http_kube_names_t *names);


ngx_int_t
ngx_http_kube_names(ngx_http_request_t *r, ngx_kube_informer_t *informer,
    kube_str_t ns, const ngx_http_kube_name_t *after, ngx_uint_t limit,
    ngx_http_kube_names_t *names)
{
    uint32_t              cursor, entry;
    kube_rc_t             rc;
    kube_arena_t         *arena;
    kube_record_id_t      id;
    const kube_record_t  *record;

    names->n = 0;
    names->more = 0;
    names->names = ngx_palloc(r->pool, limit * sizeof(ngx_http_kube_name_t));
    arena = ngx_http_kube_arena(r);

    if (names->names == NULL || arena == NULL) {
        return NGX_ERROR;
    }

    cursor = 0;

    for ( ;; ) {

        kube_arena_reset(arena);

        rc = kube_zone_next(&informer->zone, KUBE_RECORD_SERVICE, &cursor,
                            arena, &record, &entry);

        if (rc != KUBE_OK) {
            break;
        }

        if (kube_record_id(record, record->size, &id) != KUBE_OK
            || (ns.len != 0 && !kube_str_eq(ns, id.meta.ns))
            || (after != NULL
                && ngx_http_kube_name_cmp(after, id.meta.ns, id.meta.name)
                   >= 0))
        {
            continue;
        }

        ngx_http_kube_names_take(names, limit, id.meta.ns, id.meta.name);
    }

    ngx_http_kube_names_sort(names);

    return rc == KUBE_NOT_FOUND ? NGX_OK : NGX_ERROR;
}


static int
ngx_http_kube_name_cmp(const ngx_http_kube_name_t *a, kube_str_t ns,
    kube_str_t name)
{
    int  rc;

    rc = kube_str_cmp(ngx_http_kube_name_ns(a), ns);

    return rc != 0 ? rc : kube_str_cmp(ngx_http_kube_name_name(a), name);
}


void
ngx_http_kube_name_set(ngx_http_kube_name_t *to, kube_str_t ns,
    kube_str_t name)
{
    to->ns_len = (u_char) ngx_min(ns.len, sizeof(to->ns));
    to->name_len = (u_char) ngx_min(name.len, sizeof(to->name));

    ngx_memcpy(to->ns, ns.data, to->ns_len);
    ngx_memcpy(to->name, name.data, to->name_len);
}


/* A heap with the last name on top, of at most limit names: the first ones. */

static void
ngx_http_kube_names_take(ngx_http_kube_names_t *names, ngx_uint_t limit,
    kube_str_t ns, kube_str_t name)
{
    ngx_uint_t            i, parent;
    ngx_http_kube_name_t  swap, *heap;

    heap = names->names;

    if (names->n == limit) {

        names->more = 1;

        if (ngx_http_kube_name_cmp(&heap[0], ns, name) > 0) {
            ngx_http_kube_name_set(&heap[0], ns, name);
            ngx_http_kube_names_sink(heap, names->n, 0);
        }

        return;
    }

    i = names->n++;
    ngx_http_kube_name_set(&heap[i], ns, name);

    while (i != 0) {

        parent = (i - 1) / 2;

        if (ngx_http_kube_name_cmp(&heap[parent],
                                   ngx_http_kube_name_ns(&heap[i]),
                                   ngx_http_kube_name_name(&heap[i]))
            >= 0)
        {
            break;
        }

        swap = heap[i];
        heap[i] = heap[parent];
        heap[parent] = swap;
        i = parent;
    }
}


static void
ngx_http_kube_names_sink(ngx_http_kube_name_t *names, ngx_uint_t n,
    ngx_uint_t i)
{
    ngx_uint_t            child;
    ngx_http_kube_name_t  swap;

    for (child = 2 * i + 1; child < n; child = 2 * i + 1) {

        if (child + 1 < n
            && ngx_http_kube_name_cmp(&names[child],
                               ngx_http_kube_name_ns(&names[child + 1]),
                               ngx_http_kube_name_name(&names[child + 1]))
               < 0)
        {
            child++;
        }

        if (ngx_http_kube_name_cmp(&names[i],
                                   ngx_http_kube_name_ns(&names[child]),
                                   ngx_http_kube_name_name(&names[child]))
            >= 0)
        {
            return;
        }

        swap = names[i];
        names[i] = names[child];
        names[child] = swap;
        i = child;
    }
}


static void
ngx_http_kube_names_sort(ngx_http_kube_names_t *names)
{
    ngx_uint_t            n;
    ngx_http_kube_name_t  swap;

    for (n = names->n; n > 1; n--) {

        swap = names->names[0];
        names->names[0] = names->names[n - 1];
        names->names[n - 1] = swap;

        ngx_http_kube_names_sink(names->names, n - 1, 0);
    }
}

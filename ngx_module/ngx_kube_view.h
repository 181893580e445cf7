/*
 * ngx_kube_view - what a key resolves to at one revision of its Service, as a
 * copy of what the resolver in src/route found.
 *
 * A view never changes, but for its count of references, whose turn it is,
 * whether the log was told of it, and the head of a record that was only moved
 * in the zone.  A request that holds a
 * view keeps it alive.  What a view is made into (peers behind a balancer)
 * hangs on it and is not known here; who keeps the newest one of each key is
 * ngx_kube_views'.
 *
 * Workers only; nothing here is shared between processes.  Not http's: any
 * module that has refs may use it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_VIEW_H
#define NGX_KUBE_VIEW_H


#include "ngx_kube_refs.h"

#include "kube_zone_counters.h"


typedef struct ngx_kube_view_s    ngx_kube_view_t;
typedef struct ngx_kube_reader_s  ngx_kube_reader_t;


typedef struct {
    kube_addr_t             addr;
    in_port_t               port;           /* host order */
    kube_endpoint_state_t   state;
    ngx_str_t               pod;
    ngx_str_t               node;
    ngx_str_t               zone;
} ngx_kube_endpoint_t;

/*
 * Who reads a view as long as it is there, and keeps it no longer than others
 * do: requests may last for days, while there is a view for each change of a
 * Service.
 */
struct ngx_kube_reader_s {
    ngx_queue_t             queue;

    /* The view ends now: it is the last time that it can be read. */
    void                  (*ended)(ngx_kube_reader_t *reader);
};

struct ngx_kube_view_s {
    ngx_pool_t             *pool;           /* the view's own, for data too */
    ngx_uint_t              refs;
    ngx_queue_t             readers;        /* not counted in refs */
    size_t                  bytes;          /* of the pool, once counted */

    kube_key_t              key;            /* what it is asked for by */
    ngx_str_t               name;           /* of what it resolved to:
                                               $kube_service; empty: nobody's,
                                               many keys share it */
    ngx_str_t               identity;       /* namespace/name:port-name, which
                                               outlives renumbering; empty
                                               where there is no such port */
    kube_resolve_error_t    error;          /* why n is 0 */
    unsigned                from_state_file:1;
    unsigned                truncated:1;    /* the Service has more endpoints */
    unsigned                told:1;         /* the log, why n is 0 */

    uint32_t                entry;          /* 0: nothing to compare with */
    uint64_t                head;
    const _Atomic uint64_t *head_word;      /* of entry, in the zone; NULL: 0 */
    uint64_t                revision;       /* $kube_generation */

    ngx_kube_endpoint_t    *endpoints;      /* by family, address, port */
    ngx_uint_t              n;
    ngx_uint_t              turn;           /* kube_resolve's, modulo n; goes
                                               on in the successor */

    void                   *data;           /* what made() made of it */
    ngx_kube_view_t        *maker;          /* counted: in whose pool data is;
                                               NULL: the view's own */
};


/* A view that is being made; of a large Service it takes many steps. */
typedef struct {
    kube_resolving_t        resolving;
    ngx_kube_view_t        *view;           /* with one reference, once it is
                                               made; who takes it sets NULL */
} ngx_kube_reading_t;

/* key: its strings must last as long as the reading. */
void ngx_kube_view_begin(ngx_kube_reading_t *reading, ngx_kube_ref_t *ref,
    const kube_key_t *key);

/*
 * NGX_AGAIN: one step more.  NGX_OK: the view is made.  NGX_ERROR: out of
 * memory, or the Service changes faster than it can be read.
 */
ngx_int_t ngx_kube_view_step(ngx_kube_reading_t *reading);

void ngx_kube_view_end(ngx_kube_reading_t *reading);

/* A view of nothing, without a name: of keys that lead nowhere. */
ngx_kube_view_t *ngx_kube_view_empty(void);

/* Whether both have the same addresses and ports in the same order. */
ngx_uint_t ngx_kube_view_same(const ngx_kube_view_t *a,
    const ngx_kube_view_t *b);

/* Takes over what was made of a view that has the same addresses. */
void ngx_kube_view_share(ngx_kube_view_t *view, ngx_kube_view_t *maker);

/*
 * Memory that ends with the pool, for what is needed only while something is
 * made of a view: none of it is left between views.
 */
void *ngx_kube_view_scratch(ngx_pool_t *pool, size_t size);

/* Counts the bytes that the view's pool has by now. */
void ngx_kube_view_measure(ngx_kube_view_t *view);

/* What outlives views and counts as well, such as a balancer's rows. */
void ngx_kube_view_bytes_more(size_t bytes);
void ngx_kube_view_bytes_less(size_t bytes);

/* Of all views of this worker, held by requests or not; and of those gone. */
size_t ngx_kube_view_bytes(void);
uint64_t ngx_kube_view_bytes_gone(void);

/* Nobody refers to it any more.  For this file. */
void ngx_kube_view_destroy(ngx_kube_view_t *view);


static ngx_inline void
ngx_kube_view_release(ngx_kube_view_t *view)
{
    if (--view->refs == 0) {
        ngx_kube_view_destroy(view);
    }
}


/* reader: has no view; ended is set. */
static ngx_inline void
ngx_kube_view_read(ngx_kube_view_t *view, ngx_kube_reader_t *reader)
{
    ngx_queue_insert_head(&view->readers, &reader->queue);
}


/* Not for a reader whose view has ended. */
static ngx_inline void
ngx_kube_reader_leave(ngx_kube_reader_t *reader)
{
    ngx_queue_remove(&reader->queue);
}


/*
 * Writes address:port, as nginx writes it, to at most NGX_SOCKADDR_STRLEN bytes
 * at text; of IPv4, at most 21, all of which may be written to.  Returns how
 * many.  0: neither IPv4 nor IPv6.
 */
size_t ngx_kube_endpoint_text(const ngx_kube_endpoint_t *endpoint,
    u_char *text);

/*
 * An address of a server: no endpoint's is as long as ngx_sockaddr_t, which has
 * room for the path of a Unix socket, four times as much.
 */
typedef union {
    struct sockaddr         sockaddr;
    struct sockaddr_in      sockaddr_in;
#if (NGX_HAVE_INET6)
    struct sockaddr_in6     sockaddr_in6;
#endif
} ngx_kube_sockaddr_t;

/* NGX_DECLINED: neither IPv4 nor IPv6. */
ngx_int_t ngx_kube_endpoint_sockaddr(const ngx_kube_endpoint_t *endpoint,
    ngx_kube_sockaddr_t *sockaddr, socklen_t *socklen);


/* Whether the Service is as it was when the view was made; one load. */
static ngx_inline ngx_uint_t
ngx_kube_view_is_newest(const ngx_kube_view_t *view)
{
    return view->head_word != NULL
           && kube_zone_head_is(view->head_word, view->head);
}


/* The worker's counters.  For this file. */
_Atomic uint64_t *ngx_kube_counters(ngx_kube_informer_t *informer);


/* Counts for the metrics: KUBE_WORKER_RESOLVED(), KUBE_WORKER_REBUILDS. */
static ngx_inline void
ngx_kube_count(ngx_kube_informer_t *informer, ngx_uint_t counter)
{
    _Atomic uint64_t  *row;

    row = informer->counters;

    if (row == NULL) {
        row = ngx_kube_counters(informer);
    }

    kube_zone_worker_count(row, (unsigned) counter);
}


/*
 * Writes why a key could not be resolved: which directive, key, object and
 * choice; at most once in 10 s for each directive and reason.  text is the key
 * as it was evaluated; but: what comes of the request all the same, or "".
 * Returns 1 where a line was written.
 */
ngx_uint_t ngx_kube_unresolved(ngx_kube_ref_t *ref, ngx_log_t *log,
    kube_resolve_error_t error, const ngx_str_t *text, const char *but);


#endif /* NGX_KUBE_VIEW_H */

/*
 * ngx_http_kube_rows - what a balancer learnt of the servers of an upstream:
 * connections, failures and weights, in one worker.
 *
 * Stock nginx keeps that in its peers, and peers end with each revision of a
 * Service.  A row outlives them: it belongs to a server, which is an address of
 * a Service's port, or a static server line beside it.  Workers only, but for
 * ngx_http_kube_rows_init(), which kube_service calls; called by what builds
 * peers and by the hooks directly around the stock method.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_ROWS_H
#define NGX_HTTP_KUBE_ROWS_H


#include "ngx_http_kube_sessions.h"
#include "ngx_kube_view.h"


/*
 * Angie keeps the end of a pause, which serves the same comparison, and counts
 * turns in hundredths of a weight, for its slow_start.
 */
#ifdef angie_version
#define ngx_http_kube_accessed     recover_at
#define NGX_HTTP_KUBE_TURN         100
#else
#define ngx_http_kube_accessed     accessed
#define NGX_HTTP_KUBE_TURN         1
#endif

/* Beside the endpoints: the number of a static server, from 1 on. */
#define NGX_HTTP_KUBE_LINE_BACKUP  0x80000000


typedef struct ngx_http_kube_set_s  ngx_http_kube_set_t;


/* The fields of ngx_http_upstream_rr_peer_t that requests change. */
typedef struct {
    ngx_uint_t                    conns;
    ngx_uint_t                    fails;
    time_t                        accessed;
    time_t                        checked;
    ngx_int_t                     current_weight;
    ngx_int_t                     effective_weight;
} ngx_http_kube_server_t;

typedef struct {
    ngx_str_node_t                sn;        /* str: line and address */
    ngx_http_kube_set_t          *set;

    ngx_str_t                     name;      /* address:port, behind str */

    uint32_t                      line;      /* 0: an endpoint */
    uint32_t                      listed;    /* in so many listings */
    uint32_t                      number;    /* in the last of them */
    uint32_t                      pins;      /* by requests */
    ngx_queue_t                   sessions;  /* holder of TLS sessions */

    ngx_int_t                     weight;
    ngx_uint_t                    max_fails;

    /*
     * Where it is now: in a peer of the listing that was used last, or here.
     */
    ngx_http_upstream_rr_peer_t  *peer;
    ngx_http_kube_server_t        server;
    unsigned                      made:1;    /* into a peer, once */
    unsigned                      known:1;   /* was in a peer before */
} ngx_http_kube_row_t;

/* A server beside the endpoints. */
typedef struct {
    uint32_t                      line;      /* its number, not 0 */
    ngx_addr_t                   *addr;
} ngx_http_kube_line_t;

typedef struct {
    ngx_http_upstream_rr_peer_t  *peer;
    ngx_http_kube_row_t          *row;
} ngx_http_kube_listed_t;

/* The peers of one revision, each with its row. */
typedef struct {
    ngx_http_kube_set_t          *set;       /* NULL: not listed */
    ngx_http_kube_listed_t       *elts;
    ngx_uint_t                    n;
} ngx_http_kube_listing_t;

/* All rows of one Service's port. */
struct ngx_http_kube_set_s {
    ngx_str_node_t                sn;        /* str: the port's identity */
    struct ngx_http_kube_rows_s  *rows;
    ngx_rbtree_t                  tree;
    ngx_rbtree_node_t             sentinel;
    ngx_uint_t                    n;
    ngx_uint_t                    listings;
    ngx_http_kube_listing_t      *user;      /* where its rows are now */
    ngx_http_kube_listing_t      *last;      /* made; NULL: it has gone */
};

/* Of one upstream. */
typedef struct ngx_http_kube_rows_s {
    ngx_rbtree_t                  tree;
    ngx_rbtree_node_t             sentinel;
    ngx_http_kube_sessions_t      sessions;
} ngx_http_kube_rows_t;


void ngx_http_kube_rows_init(ngx_http_kube_rows_t *rows);

/*
 * Lists the rows, old or new, of a view's endpoints and, behind them, of other
 * servers: as many as the listing's elts have room for.  Peers are made of
 * these, with addresses and names that are the rows'.  NGX_ERROR: no memory,
 * nothing is listed.
 */
ngx_int_t ngx_http_kube_rows_list(ngx_http_kube_rows_t *rows,
    const ngx_kube_view_t *view, const ngx_http_kube_line_t *lines,
    ngx_uint_t n, ngx_http_kube_listing_t *listing);

/* The peer made of the listing's row of that number. */
void ngx_http_kube_rows_peer(ngx_http_kube_listing_t *listing,
    ngx_uint_t number, ngx_http_upstream_rr_peer_t *peer);

/* Before its peers end.  A row goes that nobody lists or pins any more. */
void ngx_http_kube_rows_unlist(ngx_http_kube_listing_t *listing);

/* Writes the rows into the listing's peers. */
void ngx_http_kube_rows_write(ngx_http_kube_listing_t *listing);


/* Before a method looks at the peers of a listing. */
static ngx_inline void
ngx_http_kube_rows_use(ngx_http_kube_listing_t *listing)
{
    if (listing->set->user != listing) {
        ngx_http_kube_rows_write(listing);
    }
}


/* In the row's str, behind the line. */
static ngx_inline struct sockaddr *
ngx_http_kube_row_sockaddr(const ngx_http_kube_row_t *row)
{
    return (struct sockaddr *) ((u_char *) (row + 1) + sizeof(uint32_t));
}


static ngx_inline socklen_t
ngx_http_kube_row_socklen(const ngx_http_kube_row_t *row)
{
    return (socklen_t) (row->sn.str.len - sizeof(uint32_t));
}


/* The row of an address that is a row's. */
static ngx_inline ngx_http_kube_row_t *
ngx_http_kube_row_of(struct sockaddr *sockaddr)
{
    return (ngx_http_kube_row_t *) ((u_char *) sockaddr - sizeof(uint32_t))
           - 1;
}


/* The number of a row in a listing; listing->n: it is not there.  For below. */
ngx_uint_t ngx_http_kube_rows_search(const ngx_http_kube_listing_t *listing,
    const ngx_http_kube_row_t *row);


static ngx_inline ngx_uint_t
ngx_http_kube_rows_number(const ngx_http_kube_listing_t *listing,
    const ngx_http_kube_row_t *row)
{
    ngx_uint_t  number;

    number = row->number;

    if (number < listing->n && listing->elts[number].row == row) {
        return number;
    }

    return ngx_http_kube_rows_search(listing, row);
}


/*
 * The row of an address that a method which may do anything has picked; NULL:
 * it was not given that address.
 */
ngx_http_kube_row_t *ngx_http_kube_rows_picked(
    const ngx_http_kube_listing_t *listing, struct sockaddr *sockaddr,
    socklen_t socklen);


/*
 * A request counts on the row until it unpins it: keepalive and nginx read its
 * address after the peers may be gone, and its name is in $upstream_addr and in
 * messages of the log until the request ends.
 */
static ngx_inline void
ngx_http_kube_row_pin(ngx_http_kube_row_t *row)
{
    row->pins++;
}


/* The last pin of a row that is not listed.  For this file. */
void ngx_http_kube_row_drop(ngx_http_kube_row_t *row);


static ngx_inline void
ngx_http_kube_row_unpin(ngx_http_kube_row_t *row)
{
    if (--row->pins == 0 && row->listed == 0) {
        ngx_http_kube_row_drop(row);
    }
}


/*
 * What ngx_http_upstream_free_round_robin_peer() does to the peer of a server
 * that did not fail; single: of one peer alone.
 */
static ngx_inline void
ngx_http_kube_row_served(ngx_http_kube_row_t *row, ngx_uint_t single)
{
    ngx_http_upstream_rr_peer_t  *peer;

    peer = row->peer;

    if (peer != NULL) {
        peer->conns--;

        if (single || peer->ngx_http_kube_accessed < peer->checked) {
            peer->fails = 0;
        }

        return;
    }

    row->server.conns--;

    if (single || row->server.accessed < row->server.checked) {
        row->server.fails = 0;
    }
}


/* Reads and changes a row, wherever it is. */
void ngx_http_kube_row_get(const ngx_http_kube_row_t *row,
    ngx_http_kube_server_t *server);
void ngx_http_kube_row_set(ngx_http_kube_row_t *row,
    const ngx_http_kube_server_t *server);


/* The same of a peer, which need not be where its row is now. */
static ngx_inline void
ngx_http_kube_server_read(const ngx_http_upstream_rr_peer_t *peer,
    ngx_http_kube_server_t *server)
{
    server->conns = peer->conns;
    server->fails = peer->fails;
    server->accessed = peer->ngx_http_kube_accessed;
    server->checked = peer->checked;
    server->current_weight = peer->current_weight;
    server->effective_weight = peer->effective_weight;
}


static ngx_inline void
ngx_http_kube_server_write(ngx_http_upstream_rr_peer_t *peer,
    const ngx_http_kube_server_t *server)
{
    peer->conns = server->conns;
    peer->fails = server->fails;
    peer->ngx_http_kube_accessed = server->accessed;
    peer->checked = server->checked;
    peer->current_weight = server->current_weight;
    peer->effective_weight = server->effective_weight;
}


#endif /* NGX_HTTP_KUBE_ROWS_H */

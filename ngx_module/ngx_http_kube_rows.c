/*
 * ngx_http_kube_rows - rows by identity, and by address within it; each in one
 * place at a time.
 *
 * While the same peers are used a row lies in its peer, and requests pay
 * nothing for it.  When other peers are used all rows are taken back from the
 * former and written into these.  It decides nothing about a server: stock
 * methods do.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_rows.h"
#include "ngx_kube_view.h"


#define ngx_http_kube_row_size(str, name)                                     \
    (sizeof(ngx_http_kube_row_t) + (str) + (name))


static ngx_http_kube_set_t *ngx_http_kube_set_get(ngx_http_kube_rows_t *rows,
    ngx_str_t *identity);
static void ngx_http_kube_set_release(ngx_http_kube_set_t *set);
static ngx_http_kube_row_t *ngx_http_kube_row_beside(
    ngx_http_kube_listing_t *last, ngx_uint_t number,
    const ngx_http_kube_listed_t *listed);
static ngx_http_kube_row_t *ngx_http_kube_row_find(ngx_http_kube_set_t *set,
    ngx_http_kube_listed_t *listed);
static void ngx_http_kube_row_release(ngx_http_kube_row_t *row);
static void ngx_http_kube_rows_take(ngx_http_kube_listing_t *listing);
static void ngx_http_kube_rows_begin(ngx_http_kube_listing_t *listing);
static void ngx_http_kube_rows_bound(ngx_http_kube_listing_t *listing);


void
ngx_http_kube_rows_init(ngx_http_kube_rows_t *rows)
{
    ngx_rbtree_init(&rows->tree, &rows->sentinel,
                    ngx_str_rbtree_insert_value);
    ngx_http_kube_sessions_init(&rows->sessions);
}


/*
 * Of one revision and the next most servers are the same, in the same order:
 * these are not looked up.
 */

ngx_int_t
ngx_http_kube_rows_list(ngx_http_kube_rows_t *rows, ngx_str_t *identity,
    ngx_http_kube_listing_t *listing)
{
    ngx_uint_t            i, n, next;
    ngx_http_kube_set_t  *set;
    ngx_http_kube_row_t  *row;

    set = ngx_http_kube_set_get(rows, identity);
    if (set == NULL) {
        return NGX_ERROR;
    }

    set->listings++;

    n = listing->n;
    next = 0;
    listing->set = set;

    for (i = 0; i < n; i++) {
        row = ngx_http_kube_row_beside(set->last, next, &listing->elts[i]);

        if (row == NULL) {
            row = ngx_http_kube_row_find(set, &listing->elts[i]);

            if (row == NULL) {
                listing->n = i;
                ngx_http_kube_rows_unlist(listing);
                return NGX_ERROR;
            }
        }

        /* of a row that is new here, the same one is expected again */

        if (row->listed != 0) {
            next = row->number + 1;
        }

        row->listed++;
        row->number = i;
        listing->elts[i].row = row;
    }

    set->last = listing;

    return NGX_OK;
}


void
ngx_http_kube_rows_unlist(ngx_http_kube_listing_t *listing)
{
    ngx_uint_t            i;
    ngx_http_kube_row_t  *row;
    ngx_http_kube_set_t  *set;

    set = listing->set;

    if (set->user == listing) {
        ngx_http_kube_rows_take(listing);
    }

    if (set->last == listing) {
        set->last = NULL;
    }

    for (i = 0; i < listing->n; i++) {
        row = listing->elts[i].row;

        if (--row->listed == 0) {
            ngx_http_kube_sessions_drop(&set->rows->sessions, &row->sessions);
            ngx_http_kube_row_release(row);
        }
    }

    listing->set = NULL;
    set->listings--;

    ngx_http_kube_set_release(set);
}


void
ngx_http_kube_rows_write(ngx_http_kube_listing_t *listing)
{
    ngx_uint_t               i;
    ngx_http_kube_row_t     *row;
    ngx_http_kube_set_t     *set;
    ngx_http_kube_listed_t  *listed;

    set = listing->set;

    if (set->user != NULL) {
        ngx_http_kube_rows_take(set->user);
    }

    ngx_http_kube_rows_begin(listing);
    ngx_http_kube_rows_bound(listing);

    for (i = 0; i < listing->n; i++) {
        listed = &listing->elts[i];
        row = listed->row;

        ngx_http_kube_server_write(listed->peer, &row->server);
        row->peer = listed->peer;
        row->known = 1;
    }

    set->user = listing;
}


static void
ngx_http_kube_rows_take(ngx_http_kube_listing_t *listing)
{
    ngx_uint_t            i;
    ngx_http_kube_row_t  *row;

    for (i = 0; i < listing->n; i++) {
        row = listing->elts[i].row;

        if (row->peer != NULL) {
            ngx_http_kube_server_read(row->peer, &row->server);
            row->peer = NULL;
        }
    }

    listing->set->user = NULL;
}


/*
 * Where no server was there before: as if a random number of the endpoints,
 * which have one weight, had had their turn.  Many workers and gateways would
 * else all begin with the first one.
 */

static void
ngx_http_kube_rows_begin(ngx_http_kube_listing_t *listing)
{
    ngx_int_t             n, turn, i;
    ngx_http_kube_row_t  *row;

    n = 0;

    for (i = 0; (ngx_uint_t) i < listing->n; i++) {

        if (listing->elts[i].row->known) {
            return;
        }

        if (listing->elts[i].line == 0) {
            n++;
        }
    }

    turn = (n != 0) ? ngx_random() % n : 0;

    for (i = 0; i < n; i++) {
        row = listing->elts[i].row;
        row->server.current_weight = NGX_HTTP_KUBE_TURN * row->weight
                                     * ((i < turn) ? turn - n : turn);
    }
}


/*
 * Among many servers one may be owed, or have had, as many turns as there were
 * weights.  Where few of them are left it would get all requests, or none, for
 * so long: no more than the weights of these.
 */

static void
ngx_http_kube_rows_bound(ngx_http_kube_listing_t *listing)
{
    ngx_int_t                total;
    ngx_uint_t               i;
    ngx_http_kube_server_t  *server;

    total = 0;

    for (i = 0; i < listing->n; i++) {
        total += NGX_HTTP_KUBE_TURN * listing->elts[i].row->weight;
    }

    for (i = 0; i < listing->n; i++) {
        server = &listing->elts[i].row->server;

        server->current_weight = ngx_min(server->current_weight, total);
        server->current_weight = ngx_max(server->current_weight, -total);
    }
}


void
ngx_http_kube_row_drop(ngx_http_kube_row_t *row)
{
    ngx_http_kube_set_t  *set;

    set = row->set;

    ngx_http_kube_row_release(row);
    ngx_http_kube_set_release(set);
}


void
ngx_http_kube_row_get(const ngx_http_kube_row_t *row,
    ngx_http_kube_server_t *server)
{
    if (row->peer != NULL) {
        ngx_http_kube_server_read(row->peer, server);

    } else {
        *server = row->server;
    }
}


void
ngx_http_kube_row_set(ngx_http_kube_row_t *row,
    const ngx_http_kube_server_t *server)
{
    if (row->peer != NULL) {
        ngx_http_kube_server_write(row->peer, server);

    } else {
        row->server = *server;
    }
}


void
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


void
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


static ngx_http_kube_set_t *
ngx_http_kube_set_get(ngx_http_kube_rows_t *rows, ngx_str_t *identity)
{
    uint32_t              hash;
    ngx_http_kube_set_t  *set;

    hash = ngx_murmur_hash2(identity->data, identity->len);

    set = (ngx_http_kube_set_t *) ngx_str_rbtree_lookup(&rows->tree, identity,
                                                        hash);
    if (set != NULL) {
        return set;
    }

    set = ngx_calloc(sizeof(ngx_http_kube_set_t) + identity->len,
                     ngx_cycle->log);
    if (set == NULL) {
        return NULL;
    }

    set->rows = rows;
    set->sn.node.key = hash;
    set->sn.str.len = identity->len;
    set->sn.str.data = (u_char *) (set + 1);

    /* static servers beside no Service: there is no identity, nor data */

    if (identity->len != 0) {
        ngx_memcpy(set->sn.str.data, identity->data, identity->len);
    }

    ngx_rbtree_init(&set->tree, &set->sentinel, ngx_str_rbtree_insert_value);
    ngx_rbtree_insert(&rows->tree, &set->sn.node);

    return set;
}


static void
ngx_http_kube_set_release(ngx_http_kube_set_t *set)
{
    if (set->n == 0 && set->listings == 0) {
        ngx_rbtree_delete(&set->rows->tree, &set->sn.node);
        ngx_free(set);
    }
}


/* NULL: the row of that number is another server's, or there is none. */

static ngx_http_kube_row_t *
ngx_http_kube_row_beside(ngx_http_kube_listing_t *last, ngx_uint_t number,
    const ngx_http_kube_listed_t *listed)
{
    ngx_http_kube_row_t           *row;
    ngx_http_upstream_rr_peer_t   *peer;

    if (last == NULL
        || number >= last->n
        || last->elts[number].line != listed->line)
    {
        return NULL;
    }

    peer = listed->peer;
    row = last->elts[number].row;

    if (row->sn.str.len != sizeof(uint32_t) + peer->socklen
        || ngx_memcmp(row->sockaddr, peer->sockaddr, peer->socklen) != 0)
    {
        return NULL;
    }

    return row;
}


/* The row of a server, made where there is none. */

static ngx_http_kube_row_t *
ngx_http_kube_row_find(ngx_http_kube_set_t *set,
    ngx_http_kube_listed_t *listed)
{
    uint32_t                      hash;
    ngx_str_t                     str;
    ngx_http_kube_row_t          *row;
    ngx_http_upstream_rr_peer_t  *peer;
    u_char                        text[sizeof(uint32_t)
                                       + sizeof(ngx_sockaddr_t)];

    peer = listed->peer;

    if (peer->socklen > (socklen_t) sizeof(ngx_sockaddr_t)) {
        return NULL;
    }

    ngx_memcpy(text, &listed->line, sizeof(uint32_t));
    ngx_memcpy(text + sizeof(uint32_t), peer->sockaddr, peer->socklen);

    str.data = text;
    str.len = sizeof(uint32_t) + peer->socklen;

    hash = ngx_murmur_hash2(str.data, str.len);

    row = (ngx_http_kube_row_t *) ngx_str_rbtree_lookup(&set->tree, &str,
                                                        hash);
    if (row != NULL) {
        return row;
    }

    row = ngx_calloc(ngx_http_kube_row_size(str.len, peer->name.len),
                     ngx_cycle->log);
    if (row == NULL) {
        return NULL;
    }

    row->set = set;
    row->weight = peer->weight;
    row->max_fails = peer->max_fails;
    ngx_http_kube_server_read(peer, &row->server);
    ngx_queue_init(&row->sessions);

    row->sn.node.key = hash;
    row->sn.str.len = str.len;
    row->sn.str.data = (u_char *) (row + 1);
    ngx_memcpy(row->sn.str.data, str.data, str.len);

    row->sockaddr = (struct sockaddr *) (row->sn.str.data + sizeof(uint32_t));

    row->name.len = peer->name.len;
    row->name.data = row->sn.str.data + str.len;
    ngx_memcpy(row->name.data, peer->name.data, peer->name.len);

    ngx_rbtree_insert(&set->tree, &row->sn.node);
    set->n++;

    ngx_kube_view_bytes_more(ngx_http_kube_row_size(str.len, row->name.len));

    return row;
}


static void
ngx_http_kube_row_release(ngx_http_kube_row_t *row)
{
    if (row->listed == 0 && row->pins == 0) {
        ngx_rbtree_delete(&row->set->tree, &row->sn.node);
        row->set->n--;

        ngx_kube_view_bytes_less(ngx_http_kube_row_size(row->sn.str.len,
                                                        row->name.len));
        ngx_free(row);
    }
}

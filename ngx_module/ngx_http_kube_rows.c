/*
 * ngx_http_kube_rows - rows by identity, and by address within it; each in one
 * place at a time.
 *
 * While the same peers are used a row lies in its peer, and requests pay
 * nothing for it.  When other peers are used all rows are taken back from the
 * former and written into these.  It decides nothing about a server: stock
 * methods do.  Workers only, but for ngx_http_kube_rows_init().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_rows.h"


#define ngx_http_kube_row_size(str, name)                                     \
    (sizeof(ngx_http_kube_row_t) + (str) + (name))


static ngx_http_kube_set_t *ngx_http_kube_set_get(ngx_http_kube_rows_t *rows,
    const ngx_str_t *identity);
static void ngx_http_kube_set_release(ngx_http_kube_set_t *set);
static ngx_int_t ngx_http_kube_rows_add(ngx_http_kube_listing_t *listing,
    ngx_http_kube_row_t *row, ngx_uint_t *next);
static ngx_http_kube_row_t *ngx_http_kube_row_endpoint(
    ngx_http_kube_set_t *set, ngx_uint_t next,
    const ngx_kube_endpoint_t *endpoint);
static ngx_uint_t ngx_http_kube_row_is(const ngx_http_kube_row_t *row,
    const ngx_kube_endpoint_t *endpoint);
static ngx_http_kube_row_t *ngx_http_kube_row_line(ngx_http_kube_set_t *set,
    const ngx_http_kube_line_t *line);
static ngx_http_kube_row_t *ngx_http_kube_row_find(
    ngx_http_kube_set_t *set, u_char *text, ngx_str_t *str, uint32_t line,
    struct sockaddr *sockaddr, socklen_t socklen);
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
ngx_http_kube_rows_list(ngx_http_kube_rows_t *rows,
    const ngx_kube_view_t *view, const ngx_http_kube_line_t *lines,
    ngx_uint_t n, ngx_http_kube_listing_t *listing)
{
    ngx_int_t             rc;
    ngx_uint_t            i, next;
    ngx_http_kube_set_t  *set;

    set = ngx_http_kube_set_get(rows, &view->identity);
    if (set == NULL) {
        return NGX_ERROR;
    }

    set->listings++;

    rc = NGX_OK;
    next = 0;
    listing->set = set;
    listing->n = 0;

    for (i = 0; i < view->n && rc == NGX_OK; i++) {
        rc = ngx_http_kube_rows_add(listing,
                 ngx_http_kube_row_endpoint(set, next, &view->endpoints[i]),
                 &next);
    }

    for (i = 0; i < n && rc == NGX_OK; i++) {
        rc = ngx_http_kube_rows_add(listing,
                                    ngx_http_kube_row_line(set, &lines[i]),
                                    &next);
    }

    if (rc != NGX_OK) {
        ngx_http_kube_rows_unlist(listing);
        return NGX_ERROR;
    }

    set->last = listing;

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_rows_add(ngx_http_kube_listing_t *listing,
    ngx_http_kube_row_t *row, ngx_uint_t *next)
{
    if (row == NULL) {
        return NGX_ERROR;
    }

    /* of a row that is new here, the same one is expected again */

    if (row->listed != 0) {
        *next = row->number + 1;
    }

    row->listed++;
    row->number = (uint32_t) listing->n;
    listing->elts[listing->n++].row = row;

    return NGX_OK;
}


void
ngx_http_kube_rows_peer(ngx_http_kube_listing_t *listing, ngx_uint_t number,
    ngx_http_upstream_rr_peer_t *peer)
{
    ngx_http_kube_row_t  *row;

    listing->elts[number].peer = peer;
    row = listing->elts[number].row;

    if (!row->made) {
        row->weight = peer->weight;
        row->max_fails = peer->max_fails;
        ngx_http_kube_server_read(peer, &row->server);
        row->made = 1;
    }
}


ngx_uint_t
ngx_http_kube_rows_search(const ngx_http_kube_listing_t *listing,
    const ngx_http_kube_row_t *row)
{
    ngx_uint_t  i;

    for (i = 0; i < listing->n; i++) {
        if (listing->elts[i].row == row) {
            break;
        }
    }

    return i;
}


ngx_http_kube_row_t *
ngx_http_kube_rows_picked(const ngx_http_kube_listing_t *listing,
    struct sockaddr *sockaddr, socklen_t socklen)
{
    ngx_str_t             str;
    ngx_uint_t            i;
    ngx_http_kube_row_t  *row;
    u_char                text[sizeof(uint32_t) + sizeof(ngx_sockaddr_t)];

    if (sockaddr == NULL || socklen > (socklen_t) sizeof(ngx_sockaddr_t)) {
        return NULL;
    }

    /* what it points to is looked at, and not what may lie before it */

    row = ngx_http_kube_row_find(listing->set, text, &str, 0, sockaddr,
                                 socklen);

    if (row != NULL && ngx_http_kube_row_sockaddr(row) == sockaddr) {
        return row;
    }

    for (i = listing->n; i != 0; i--) {
        row = listing->elts[i - 1].row;

        if (row->line == 0) {
            break;
        }

        if (ngx_http_kube_row_sockaddr(row) == sockaddr) {
            return row;
        }
    }

    return NULL;
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

        if (listing->elts[i].row->line == 0) {
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


static ngx_http_kube_set_t *
ngx_http_kube_set_get(ngx_http_kube_rows_t *rows, const ngx_str_t *identity)
{
    uint32_t              hash;
    ngx_str_t             text;
    ngx_http_kube_set_t  *set;

    text = *identity;
    hash = ngx_murmur_hash2(text.data, text.len);

    set = (ngx_http_kube_set_t *) ngx_str_rbtree_lookup(&rows->tree, &text,
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


/*
 * The row of an endpoint, made where there is none.  next: where it would be in
 * the last listing if nothing had changed.
 */

static ngx_http_kube_row_t *
ngx_http_kube_row_endpoint(ngx_http_kube_set_t *set, ngx_uint_t next,
    const ngx_kube_endpoint_t *endpoint)
{
    ngx_addr_t            addr;
    ngx_http_kube_row_t  *row;
    ngx_kube_sockaddr_t   sa;
    ngx_http_kube_line_t  line;
    u_char                name[NGX_SOCKADDR_STRLEN];

    if (set->last != NULL && next < set->last->n) {
        row = set->last->elts[next].row;

        if (ngx_http_kube_row_is(row, endpoint)) {
            return row;
        }
    }

    if (ngx_kube_endpoint_sockaddr(endpoint, &sa, &addr.socklen) != NGX_OK) {
        return NULL;
    }

    addr.sockaddr = &sa.sockaddr;
    addr.name.data = name;
    addr.name.len = ngx_kube_endpoint_text(endpoint, name);

    line.line = 0;
    line.addr = &addr;

    return ngx_http_kube_row_line(set, &line);
}


static ngx_inline ngx_uint_t
ngx_http_kube_row_is(const ngx_http_kube_row_t *row,
    const ngx_kube_endpoint_t *endpoint)
{
    const ngx_kube_sockaddr_t  *sa;

    if (row->line != 0) {
        return 0;
    }

    sa = (const ngx_kube_sockaddr_t *) ngx_http_kube_row_sockaddr(row);

#if (NGX_HAVE_INET6)
    if (endpoint->addr.family == KUBE_FAMILY_IPV6) {
        return sa->sockaddr.sa_family == AF_INET6
               && sa->sockaddr_in6.sin6_port == htons(endpoint->port)
               && ngx_memcmp(&sa->sockaddr_in6.sin6_addr,
                             endpoint->addr.bytes, 16)
                  == 0;
    }
#endif

    return endpoint->addr.family == KUBE_FAMILY_IPV4
           && sa->sockaddr.sa_family == AF_INET
           && sa->sockaddr_in.sin_port == htons(endpoint->port)
           && ngx_memcmp(&sa->sockaddr_in.sin_addr, endpoint->addr.bytes, 4)
              == 0;
}


/* The row of a server, made where there is none. */

static ngx_http_kube_row_t *
ngx_http_kube_row_line(ngx_http_kube_set_t *set,
    const ngx_http_kube_line_t *line)
{
    ngx_str_t             str;
    const ngx_addr_t     *addr;
    ngx_http_kube_row_t  *row;
    u_char                text[sizeof(uint32_t) + sizeof(ngx_sockaddr_t)];

    addr = line->addr;

    if (addr->socklen > (socklen_t) sizeof(ngx_sockaddr_t)) {
        return NULL;
    }

    row = ngx_http_kube_row_find(set, text, &str, line->line, addr->sockaddr,
                                 addr->socklen);
    if (row != NULL) {
        return row;
    }

    row = ngx_calloc(ngx_http_kube_row_size(str.len, addr->name.len),
                     ngx_cycle->log);
    if (row == NULL) {
        return NULL;
    }

    row->set = set;
    row->line = line->line;
    ngx_queue_init(&row->sessions);

    row->sn.node.key = ngx_murmur_hash2(str.data, str.len);
    row->sn.str.len = str.len;
    row->sn.str.data = (u_char *) (row + 1);
    ngx_memcpy(row->sn.str.data, str.data, str.len);

    row->name.len = addr->name.len;
    row->name.data = row->sn.str.data + str.len;
    ngx_memcpy(row->name.data, addr->name.data, addr->name.len);

    ngx_rbtree_insert(&set->tree, &row->sn.node);
    set->n++;

    ngx_kube_view_bytes_more(ngx_http_kube_row_size(str.len, row->name.len));

    return row;
}


/* str: what it is looked up by, in text. */

static ngx_http_kube_row_t *
ngx_http_kube_row_find(ngx_http_kube_set_t *set, u_char *text, ngx_str_t *str,
    uint32_t line, struct sockaddr *sockaddr, socklen_t socklen)
{
    ngx_memcpy(text, &line, sizeof(uint32_t));
    ngx_memcpy(text + sizeof(uint32_t), sockaddr, socklen);

    str->data = text;
    str->len = sizeof(uint32_t) + socklen;

    return (ngx_http_kube_row_t *)
               ngx_str_rbtree_lookup(&set->tree, str,
                                     ngx_murmur_hash2(str->data, str->len));
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

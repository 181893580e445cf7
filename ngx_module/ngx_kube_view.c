/*
 * ngx_kube_view - views by canonical key, as copies of what the resolver in
 * src/route found.
 *
 * A key without any use for 60 s, or the least recently used one above
 * NGX_KUBE_VIEWS_MAX keys, is forgotten: clients may choose keys.  It decides
 * nothing about keys or endpoints.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_view.h"

#include "kube_report.h"


#define NGX_KUBE_VIEWS_MAX     4096
#define NGX_KUBE_VIEW_IDLE     60000
#define NGX_KUBE_VIEW_RETRY    100
#define NGX_KUBE_VIEW_POOL     1024
#define NGX_KUBE_ARENA_MAX     (16 * 1024 * 1024)
#define NGX_KUBE_LOG_PERIOD    10000


/* A key as it is looked up. */
typedef struct {
    uint32_t  hash;
    size_t    len;
    char      text[KUBE_KEY_TEXT_MAX];
} ngx_kube_asked_t;


static ngx_int_t ngx_kube_view_cmp(uint32_t hash, const char *text,
    size_t len, ngx_rbtree_node_t *node);
static void ngx_kube_view_place(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static ngx_kube_view_t *ngx_kube_views_search(ngx_kube_views_t *views,
    const ngx_kube_asked_t *asked);
static ngx_kube_view_t *ngx_kube_views_renew(ngx_kube_views_t *views,
    ngx_kube_view_t *old);
static ngx_kube_view_t *ngx_kube_views_first(ngx_kube_views_t *views,
    const kube_key_t *key, kube_resolve_error_t *error);
static void ngx_kube_views_insert(ngx_kube_views_t *views,
    ngx_kube_view_t *view);
static void ngx_kube_views_remove(ngx_kube_views_t *views,
    ngx_kube_view_t *view);
static void ngx_kube_views_expire(ngx_kube_views_t *views);
static ngx_uint_t ngx_kube_view_stays(ngx_kube_view_t *view,
    const ngx_kube_view_t *newer);
static ngx_kube_view_t *ngx_kube_view_create(ngx_kube_ref_t *ref,
    const kube_key_t *key);
static ngx_int_t ngx_kube_view_key(ngx_kube_view_t *view,
    const kube_key_t *key);
static ngx_int_t ngx_kube_view_fill(ngx_kube_view_t *view,
    ngx_kube_ref_t *ref, kube_arena_t *arena);
static ngx_int_t ngx_kube_view_copy(ngx_kube_view_t *view,
    const kube_selection_t *selection);
static ngx_int_t ngx_kube_str_copy(ngx_pool_t *pool, ngx_str_t *to,
    kube_str_t from);


void
ngx_kube_views_init(ngx_kube_views_t *views, ngx_kube_ref_t *ref)
{
    views->ref = ref;

    ngx_rbtree_init(&views->tree, &views->sentinel, ngx_kube_view_place);
    ngx_queue_init(&views->lru);
}


ngx_kube_view_t *
ngx_kube_views_find(ngx_kube_views_t *views, const kube_key_t *key,
    kube_resolve_error_t *error)
{
    ngx_kube_view_t   *view;
    ngx_kube_asked_t   asked;

    if (views->ref->is_static) {
        view = views->view;

    } else {
        asked.len = kube_key_text(key, asked.text);
        asked.hash = ngx_crc32_short((u_char *) asked.text, asked.len);

        view = ngx_kube_views_search(views, &asked);
    }

    if (view == NULL) {
        return ngx_kube_views_first(views, key, error);
    }

    if (view->entry == 0
        || kube_zone_head(&views->ref->informer->zone, view->entry)
           != view->head)
    {
        view = ngx_kube_views_renew(views, view);
    }

    *error = view->error;

    return view;
}


/* Clients can make hashes equal: the text decides then. */

static ngx_int_t
ngx_kube_view_cmp(uint32_t hash, const char *text, size_t len,
    ngx_rbtree_node_t *node)
{
    ngx_kube_view_t  *view;

    if (hash != node->key) {
        return hash < node->key ? -1 : 1;
    }

    view = (ngx_kube_view_t *) node;

    if (len != view->asked.len) {
        return len < view->asked.len ? -1 : 1;
    }

    return ngx_memcmp(text, view->asked.data, len);
}


static void
ngx_kube_view_place(ngx_rbtree_node_t *root, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel)
{
    ngx_kube_view_t     *view;
    ngx_rbtree_node_t  **p;

    view = (ngx_kube_view_t *) node;

    for ( ;; ) {
        p = (ngx_kube_view_cmp((uint32_t) node->key,
                               (char *) view->asked.data, view->asked.len,
                               root)
             < 0) ? &root->left : &root->right;

        if (*p == sentinel) {
            break;
        }

        root = *p;
    }

    *p = node;
    node->parent = root;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


static ngx_kube_view_t *
ngx_kube_views_search(ngx_kube_views_t *views, const ngx_kube_asked_t *asked)
{
    ngx_int_t           rc;
    ngx_kube_view_t    *view;
    ngx_rbtree_node_t  *node;

    node = views->tree.root;

    while (node != views->tree.sentinel) {

        rc = ngx_kube_view_cmp(asked->hash, asked->text, asked->len, node);

        if (rc == 0) {
            view = (ngx_kube_view_t *) node;
            view->used = ngx_current_msec;

            ngx_queue_remove(&view->queue);
            ngx_queue_insert_head(&views->lru, &view->queue);

            return view;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}


/* Something was stored for the Service: a new revision, or it only moved. */

static ngx_kube_view_t *
ngx_kube_views_renew(ngx_kube_views_t *views, ngx_kube_view_t *old)
{
    ngx_kube_view_t  *view;

    if (old->retry != 0
        && (ngx_msec_int_t) (ngx_current_msec - old->retry) < 0)
    {
        return old;
    }

    view = ngx_kube_view_create(views->ref, &old->key);

    if (view != NULL && ngx_kube_view_stays(old, view)) {

        if (old->error != view->error) {
            ngx_kube_unresolved(views->ref, ngx_cycle->log, view->error,
                                &old->asked);
        }

        ngx_kube_view_release(view);
        return old;
    }

    if (view == NULL
        || (views->made != NULL && views->made(views, view, old) != NGX_OK))
    {
        if (view != NULL) {
            ngx_kube_view_release(view);
        }

        /* no memory, or it changes faster than it can be read */

        old->retry = ngx_current_msec + NGX_KUBE_VIEW_RETRY;
        return old;
    }

    ngx_kube_count(views->ref->informer, KUBE_WORKER_REBUILDS);

    if (views->ref->is_static) {
        views->view = view;

    } else {
        ngx_kube_views_remove(views, old);
        ngx_kube_views_insert(views, view);
    }

    ngx_kube_view_release(old);

    return view;
}


static ngx_kube_view_t *
ngx_kube_views_first(ngx_kube_views_t *views, const kube_key_t *key,
    kube_resolve_error_t *error)
{
    ngx_kube_view_t  *view;

    view = ngx_kube_view_create(views->ref,
                                views->ref->is_static ? &views->ref->key
                                                      : key);
    if (view == NULL) {
        *error = KUBE_RESOLVE_NOT_SYNCED;
        return NULL;
    }

    *error = view->error;

    /* clients may ask for any name: what is not there is not kept */

    if (view->entry == 0 && !views->keep_missing) {
        ngx_kube_view_release(view);
        return NULL;
    }

    if (views->made != NULL && views->made(views, view, NULL) != NGX_OK) {
        ngx_kube_view_release(view);
        *error = KUBE_RESOLVE_NOT_SYNCED;
        return NULL;
    }

    if (views->ref->is_static) {
        views->view = view;

    } else {
        ngx_kube_views_expire(views);
        ngx_kube_views_insert(views, view);
    }

    return view;
}


static void
ngx_kube_views_insert(ngx_kube_views_t *views, ngx_kube_view_t *view)
{
    view->node.key = ngx_crc32_short(view->asked.data, view->asked.len);

    ngx_rbtree_insert(&views->tree, &view->node);
    ngx_queue_insert_head(&views->lru, &view->queue);
    views->n++;
}


static void
ngx_kube_views_remove(ngx_kube_views_t *views, ngx_kube_view_t *view)
{
    ngx_rbtree_delete(&views->tree, &view->node);
    ngx_queue_remove(&view->queue);
    views->n--;
}


/* Forgets at most four keys, so that no request pays for many. */

static void
ngx_kube_views_expire(ngx_kube_views_t *views)
{
    ngx_uint_t        n;
    ngx_queue_t      *q;
    ngx_kube_view_t  *view;

    for (n = 0; n < 4 && !ngx_queue_empty(&views->lru); n++) {

        q = ngx_queue_last(&views->lru);
        view = ngx_queue_data(q, ngx_kube_view_t, queue);

        if (views->n < NGX_KUBE_VIEWS_MAX
            && (ngx_msec_int_t) (ngx_current_msec - view->used)
               < NGX_KUBE_VIEW_IDLE)
        {
            return;
        }

        ngx_kube_views_remove(views, view);
        ngx_kube_view_release(view);
    }
}


/*
 * True where the view serves on and newer is not needed: the Service is at the
 * same revision and its record has only moved, or it has become too large to
 * be read.  The view takes the new head, so that the Service is looked at again
 * when the head moves again.
 */

static ngx_uint_t
ngx_kube_view_stays(ngx_kube_view_t *view, const ngx_kube_view_t *newer)
{
    if (view->entry != newer->entry) {
        return 0;
    }

    if ((newer->error == KUBE_RESOLVE_TOO_LARGE && view->n != 0)
        || (view->revision == newer->revision
            && view->error == newer->error
            && view->from_state_file == newer->from_state_file))
    {
        view->head = newer->head;
        return 1;
    }

    return 0;
}


/* NULL: out of memory, or the Service changes faster than it can be read. */

static ngx_kube_view_t *
ngx_kube_view_create(ngx_kube_ref_t *ref, const kube_key_t *key)
{
    ngx_int_t         rc;
    ngx_pool_t       *pool;
    kube_arena_t      arena;
    ngx_kube_view_t  *view;

    /* it outlives the request: not the request's log */

    pool = ngx_create_pool(NGX_KUBE_VIEW_POOL, ngx_cycle->log);
    if (pool == NULL) {
        return NULL;
    }

    view = ngx_pcalloc(pool, sizeof(ngx_kube_view_t));
    if (view == NULL) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    view->pool = pool;
    view->refs = 1;
    view->used = ngx_current_msec;

    kube_arena_init(&arena, &ngx_kube_alloc, NGX_KUBE_ARENA_MAX);

    rc = ngx_kube_view_key(view, key);

    if (rc == NGX_OK) {
        rc = ngx_kube_view_fill(view, ref, &arena);
    }

    kube_arena_done(&arena);

    if (rc != NGX_OK) {
        ngx_destroy_pool(pool);
        return NULL;
    }

    return view;
}


void
ngx_kube_view_release(ngx_kube_view_t *view)
{
    if (--view->refs == 0) {
        ngx_destroy_pool(view->pool);
    }
}


/* The key's own copy lies in its canonical text: it is not parsed again. */

static ngx_int_t
ngx_kube_view_key(ngx_kube_view_t *view, const kube_key_t *key)
{
    char        text[KUBE_KEY_TEXT_MAX];
    kube_str_t  asked;

    asked.data = text;
    asked.len = kube_key_text(key, text);

    if (ngx_kube_str_copy(view->pool, &view->asked, asked) != NGX_OK) {
        return NGX_ERROR;
    }

    view->key = *key;
    view->key.ns.data = (char *) view->asked.data;
    view->key.name.data = view->key.ns.data + key->ns.len + 1;
    view->key.port.name.data = view->key.name.data + key->name.len + 1;

    return NGX_OK;
}


static ngx_int_t
ngx_kube_view_fill(ngx_kube_view_t *view, ngx_kube_ref_t *ref,
    kube_arena_t *arena)
{
    kube_str_t         name;
    kube_resolution_t  resolution;
    char               text[KUBE_KEY_TEXT_MAX];

    if (kube_resolve(&ref->resolver, &view->key, 0, arena, &resolution)
        != KUBE_OK)
    {
        return NGX_ERROR;
    }

    view->error = resolution.error;
    view->entry = resolution.entry;
    view->head = resolution.head;

    name.data = text;
    name.len = kube_resolution_text(&view->key, &resolution, text);

    if (ngx_kube_str_copy(view->pool, &view->name, name) != NGX_OK) {
        return NGX_ERROR;
    }

    if (!resolution.found) {
        return NGX_OK;
    }

    view->revision = resolution.snapshot.revision;
    view->from_state_file = resolution.snapshot.from_state_file;

    return ngx_kube_view_copy(view, &resolution.selection);
}


static ngx_int_t
ngx_kube_view_copy(ngx_kube_view_t *view, const kube_selection_t *selection)
{
    size_t                i;
    ngx_kube_endpoint_t  *ep;

    if (selection->n == 0) {
        return NGX_OK;
    }

    ep = ngx_pcalloc(view->pool, selection->n * sizeof(ngx_kube_endpoint_t));
    if (ep == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < selection->n; i++) {

        ep[i].addr = selection->endpoints[i].addr;
        ep[i].port = selection->endpoints[i].port;
        ep[i].state = selection->endpoints[i].state;

        if (ngx_kube_str_copy(view->pool, &ep[i].pod,
                              selection->endpoints[i].pod)
            != NGX_OK
            || ngx_kube_str_copy(view->pool, &ep[i].node,
                                 selection->endpoints[i].node)
               != NGX_OK
            || ngx_kube_str_copy(view->pool, &ep[i].zone,
                                 selection->endpoints[i].zone)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    view->endpoints = ep;
    view->n = selection->n;

    return NGX_OK;
}


static ngx_int_t
ngx_kube_str_copy(ngx_pool_t *pool, ngx_str_t *to, kube_str_t from)
{
    to->len = from.len;

    if (from.len == 0) {
        to->data = NULL;
        return NGX_OK;
    }

    to->data = ngx_pnalloc(pool, from.len);
    if (to->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(to->data, from.data, from.len);

    return NGX_OK;
}


ngx_int_t
ngx_kube_endpoint_sockaddr(const ngx_kube_endpoint_t *endpoint,
    ngx_sockaddr_t *sockaddr, socklen_t *socklen)
{
    ngx_memzero(sockaddr, sizeof(ngx_sockaddr_t));

#if (NGX_HAVE_INET6)
    if (endpoint->addr.family == KUBE_FAMILY_IPV6) {
        sockaddr->sockaddr_in6.sin6_family = AF_INET6;
        sockaddr->sockaddr_in6.sin6_port = htons(endpoint->port);
        ngx_memcpy(&sockaddr->sockaddr_in6.sin6_addr, endpoint->addr.bytes,
                   16);
        *socklen = sizeof(struct sockaddr_in6);
        return NGX_OK;
    }
#endif

    if (endpoint->addr.family != KUBE_FAMILY_IPV4) {
        return NGX_DECLINED;
    }

    sockaddr->sockaddr_in.sin_family = AF_INET;
    sockaddr->sockaddr_in.sin_port = htons(endpoint->port);
    ngx_memcpy(&sockaddr->sockaddr_in.sin_addr, endpoint->addr.bytes, 4);
    *socklen = sizeof(struct sockaddr_in);

    return NGX_OK;
}


void
ngx_kube_count(ngx_kube_informer_t *informer, ngx_uint_t counter)
{
    kube_zone_worker_add(&informer->zone, (unsigned) ngx_worker,
                         (unsigned) counter, 1);
}


void
ngx_kube_unresolved(ngx_kube_ref_t *ref, ngx_log_t *log,
    kube_resolve_error_t error, ngx_str_t *text)
{
    char                 escaped[KUBE_KEY_INPUT_MAX * 4 + 1];
    char                 why[KUBE_RESOLVER_WHY_MAX];
    kube_str_t           s;
    kube_arena_t         arena;
    ngx_kube_ref_log_t  *held;

    held = &ref->log[error];

    if (held->written
        && (ngx_msec_int_t) (ngx_current_msec - held->last)
           < NGX_KUBE_LOG_PERIOD)
    {
        held->held++;
        return;
    }

    kube_arena_init(&arena, &ngx_kube_alloc, NGX_KUBE_ARENA_MAX);

    s = ngx_kube_str(text);

    if (kube_resolver_why(&ref->resolver, s, &arena, why) != error) {

        /* it has changed in the meantime */

        why[0] = '\0';
    }

    kube_arena_done(&arena);

    s.len = ngx_min(s.len, KUBE_KEY_INPUT_MAX);
    (void) kube_str_escape(escaped, sizeof(escaped), s);

    s = kube_resolve_error_text(error);

    ngx_log_error(NGX_LOG_ERR, log, 0,
                  "key \"%V\" of %s \"%V\" in %V:%ui: \"%s\" cannot be "
                  "resolved: %*s%s%s (%ui more in the last 10 seconds)",
                  &ref->expression, ref->kind, &ref->name, &ref->file,
                  ref->line,
                  escaped, s.len, s.data, why[0] != '\0' ? ": " : "", why,
                  held->held);

    held->last = ngx_current_msec;
    held->held = 0;
    held->written = 1;
}

/*
 * ngx_http_kube_instance - per worker and key, an immutable set of peers
 * behind the stock balancer named in the upstream block.
 *
 * The upstream's own init_upstream builds the peers from the resolver's view
 * into the instance's pool, exactly as it would from server lines.  Requests
 * hold an instance by reference; when the Service's revision has moved, the
 * next request builds the successor.  Nothing is shared between workers.
 *
 * A key without any use for 60 s, or above NGX_HTTP_KUBE_INSTANCES_MAX keys,
 * is forgotten: clients may choose keys.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"


#define NGX_HTTP_KUBE_INSTANCES_MAX  4096
#define NGX_HTTP_KUBE_IDLE           60000
#define NGX_HTTP_KUBE_RETRY          100


static ngx_int_t ngx_http_kube_instance_cmp(uint32_t hash, ngx_str_t *text,
    ngx_rbtree_node_t *node);
static void ngx_http_kube_instance_place(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static ngx_http_kube_instance_t *ngx_http_kube_instance_find(
    ngx_http_kube_srv_conf_t *kscf, ngx_str_t *text, uint32_t hash);
static ngx_http_kube_instance_t *ngx_http_kube_instance_renew(
    ngx_http_kube_srv_conf_t *kscf, ngx_http_kube_instance_t *old,
    ngx_log_t *log);
static ngx_http_kube_instance_t *ngx_http_kube_instance_first(
    ngx_http_kube_srv_conf_t *kscf, ngx_str_t *text, uint32_t hash,
    ngx_log_t *log, kube_resolve_error_t *error);
static ngx_http_kube_instance_t *ngx_http_kube_instance_create(
    ngx_http_kube_srv_conf_t *kscf, ngx_str_t *text, ngx_kube_view_t *view);
static ngx_int_t ngx_http_kube_instance_key(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst, ngx_str_t *text);
static ngx_int_t ngx_http_kube_instance_addrs(ngx_http_kube_instance_t *inst);
static ngx_int_t ngx_http_kube_instance_servers(
    ngx_http_kube_srv_conf_t *kscf, ngx_http_kube_instance_t *inst);
static ngx_int_t ngx_http_kube_instance_endpoints(
    ngx_http_kube_srv_conf_t *kscf, ngx_http_kube_instance_t *inst);
static ngx_int_t ngx_http_kube_instance_filler(
    ngx_http_kube_instance_t *inst);
static ngx_int_t ngx_http_kube_instance_peers(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst);
static void ngx_http_kube_instance_insert(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst, uint32_t hash);
static void ngx_http_kube_instance_remove(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst);
static void ngx_http_kube_instances_expire(ngx_http_kube_srv_conf_t *kscf);
#if (NGX_HTTP_SSL)
static void ngx_http_kube_sessions_move(ngx_http_kube_instance_t *to,
    ngx_http_kube_instance_t *from);
static void ngx_http_kube_sessions_free(ngx_http_kube_instance_t *inst);
#endif


void
ngx_http_kube_instances_init(ngx_http_kube_srv_conf_t *kscf)
{
    ngx_rbtree_init(&kscf->tree, &kscf->sentinel,
                    ngx_http_kube_instance_place);
    ngx_queue_init(&kscf->lru);
}


ngx_http_kube_instance_t *
ngx_http_kube_instance_get(ngx_http_kube_srv_conf_t *kscf, ngx_str_t *text,
    ngx_log_t *log, kube_resolve_error_t *error)
{
    uint32_t                   hash;
    ngx_http_kube_instance_t  *inst;

    hash = 0;

    if (kscf->use->is_static) {
        inst = kscf->instance;

    } else {

        if (text->len > KUBE_KEY_INPUT_MAX) {
            *error = KUBE_RESOLVE_BAD_KEY;
            return NULL;
        }

        hash = ngx_crc32_short(text->data, text->len);
        inst = ngx_http_kube_instance_find(kscf, text, hash);
    }

    if (inst == NULL) {
        return ngx_http_kube_instance_first(kscf, text, hash, log, error);
    }

    if (ngx_kube_view_current(kscf->use, inst->view) != NGX_OK) {
        inst = ngx_http_kube_instance_renew(kscf, inst, log);
    }

    *error = inst->view->error;

    return inst;
}


void
ngx_http_kube_instance_release(ngx_http_kube_instance_t *inst)
{
    if (--inst->refs != 0) {
        return;
    }

#if (NGX_HTTP_SSL)
    ngx_http_kube_sessions_free(inst);
#endif

    ngx_kube_view_release(inst->view);
    ngx_destroy_pool(inst->pool);
}


ngx_kube_endpoint_t *
ngx_http_kube_instance_endpoint(ngx_http_kube_instance_t *inst,
    struct sockaddr *sockaddr)
{
    ngx_sockaddr_t  *sa;

    /* balancers hand out the pointers they were given */

    sa = (ngx_sockaddr_t *) sockaddr;

    if (inst->addrs == NULL
        || sa < inst->addrs || sa >= inst->addrs + inst->view->n)
    {
        return NULL;
    }

    return &inst->view->endpoints[sa - inst->addrs];
}


/* Clients can make hashes equal: the text decides then. */

static ngx_int_t
ngx_http_kube_instance_cmp(uint32_t hash, ngx_str_t *text,
    ngx_rbtree_node_t *node)
{
    ngx_http_kube_instance_t  *inst;

    if (hash != node->key) {
        return hash < node->key ? -1 : 1;
    }

    inst = (ngx_http_kube_instance_t *) node;

    if (text->len != inst->text.len) {
        return text->len < inst->text.len ? -1 : 1;
    }

    return ngx_memcmp(text->data, inst->text.data, text->len);
}


static void
ngx_http_kube_instance_place(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t         **p;
    ngx_http_kube_instance_t   *inst;

    inst = (ngx_http_kube_instance_t *) node;

    for ( ;; ) {
        p = (ngx_http_kube_instance_cmp((uint32_t) node->key, &inst->text,
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


static ngx_http_kube_instance_t *
ngx_http_kube_instance_find(ngx_http_kube_srv_conf_t *kscf, ngx_str_t *text,
    uint32_t hash)
{
    ngx_int_t                  rc;
    ngx_rbtree_node_t         *node;
    ngx_http_kube_instance_t  *inst;

    node = kscf->tree.root;

    while (node != kscf->tree.sentinel) {

        rc = ngx_http_kube_instance_cmp(hash, text, node);

        if (rc == 0) {
            inst = (ngx_http_kube_instance_t *) node;
            inst->used = ngx_current_msec;

            ngx_queue_remove(&inst->queue);
            ngx_queue_insert_head(&kscf->lru, &inst->queue);

            return inst;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}


/* Something was stored for the Service: a new revision, or it only moved. */

static ngx_http_kube_instance_t *
ngx_http_kube_instance_renew(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *old, ngx_log_t *log)
{
    uint32_t                   hash;
    ngx_kube_view_t           *view;
    ngx_http_kube_instance_t  *inst;

    if (old->retry != 0
        && (ngx_msec_int_t) (ngx_current_msec - old->retry) < 0)
    {
        return old;
    }

    view = ngx_kube_view_create(kscf->use, &old->key, log);
    if (view == NULL) {
        goto later;
    }

    if (ngx_kube_view_same(old->view, view) == NGX_OK) {
        ngx_kube_view_release(view);
        return old;
    }

    inst = ngx_http_kube_instance_create(kscf, &old->text, view);
    if (inst == NULL) {
        goto later;
    }

    ngx_kube_count(kscf->use->informer, NGX_KUBE_COUNT_REBUILDS);

#if (NGX_HTTP_SSL)
    ngx_http_kube_sessions_move(inst, old);
#endif

    inst->next = old->next;

    if (kscf->use->is_static) {
        kscf->instance = inst;

    } else {
        hash = (uint32_t) old->node.key;
        ngx_http_kube_instance_remove(kscf, old);
        ngx_http_kube_instance_insert(kscf, inst, hash);
    }

    ngx_http_kube_instance_release(old);

    return inst;

later:

    /* no memory, or it changes faster than it can be read: the old one */

    old->retry = ngx_current_msec + NGX_HTTP_KUBE_RETRY;

    return old;
}


static ngx_http_kube_instance_t *
ngx_http_kube_instance_first(ngx_http_kube_srv_conf_t *kscf, ngx_str_t *text,
    uint32_t hash, ngx_log_t *log, kube_resolve_error_t *error)
{
    kube_key_t                 key;
    ngx_kube_view_t           *view;
    ngx_http_kube_instance_t  *inst;

    key = kscf->use->key;

    if (!kscf->use->is_static) {
        *error = kube_resolver_key(&kscf->use->resolver, ngx_kube_str(text),
                                   &key);

        if (*error != KUBE_RESOLVE_OK) {
            return NULL;
        }
    }

    view = ngx_kube_view_create(kscf->use, &key, log);
    if (view == NULL) {
        *error = KUBE_RESOLVE_NOT_SYNCED;
        return NULL;
    }

    *error = view->error;

    if (view->entry == 0 && kscf->servers.nelts == 0) {

        /* nothing to keep: clients may ask for any name */

        ngx_kube_view_release(view);
        return NULL;
    }

    inst = ngx_http_kube_instance_create(kscf, text, view);
    if (inst == NULL) {
        *error = KUBE_RESOLVE_NOT_SYNCED;
        return NULL;
    }

    if (kscf->use->is_static) {
        kscf->instance = inst;

    } else {
        ngx_http_kube_instances_expire(kscf);
        ngx_http_kube_instance_insert(kscf, inst, hash);
    }

    return inst;
}


/* Takes the view over, also where it fails. */

static ngx_http_kube_instance_t *
ngx_http_kube_instance_create(ngx_http_kube_srv_conf_t *kscf,
    ngx_str_t *text, ngx_kube_view_t *view)
{
    ngx_pool_t                *pool;
    ngx_http_kube_instance_t  *inst;

    pool = ngx_create_pool(1024, ngx_cycle->log);
    if (pool == NULL) {
        ngx_kube_view_release(view);
        return NULL;
    }

    inst = ngx_pcalloc(pool, sizeof(ngx_http_kube_instance_t));
    if (inst == NULL) {
        goto failed;
    }

    inst->pool = pool;
    inst->refs = 1;
    inst->used = ngx_current_msec;
    inst->view = view;

    if (ngx_http_kube_instance_key(kscf, inst, text) != NGX_OK) {
        goto failed;
    }

    inst->usable = (view->n != 0 || kscf->servers.nelts != 0);

    if (!inst->usable || kscf->upstream == NULL) {
        return inst;
    }

    if (ngx_http_kube_instance_addrs(inst) != NGX_OK
        || ngx_http_kube_instance_servers(kscf, inst) != NGX_OK
        || ngx_http_kube_instance_peers(kscf, inst) != NGX_OK)
    {
        goto failed;
    }

    return inst;

failed:

    ngx_kube_view_release(view);
    ngx_destroy_pool(pool);

    return NULL;
}


static ngx_int_t
ngx_http_kube_instance_key(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst, ngx_str_t *text)
{
    if (kscf->use->is_static) {
        inst->key = kscf->use->key;
        return NGX_OK;
    }

    inst->text.data = ngx_pnalloc(inst->pool, text->len);
    if (inst->text.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(inst->text.data, text->data, text->len);
    inst->text.len = text->len;

    if (kube_resolver_key(&kscf->use->resolver, ngx_kube_str(&inst->text),
                          &inst->key)
        != KUBE_RESOLVE_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_instance_addrs(ngx_http_kube_instance_t *inst)
{
    socklen_t   socklen;
    ngx_uint_t  i;

    if (inst->view->n == 0) {
        return NGX_OK;
    }

    inst->addrs = ngx_palloc(inst->pool,
                             inst->view->n * sizeof(ngx_sockaddr_t));
    if (inst->addrs == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < inst->view->n; i++) {
        if (ngx_kube_sockaddr(&inst->view->endpoints[i], &inst->addrs[i],
                              &socklen)
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* What server lines would have made: endpoints first, then static servers. */

static ngx_int_t
ngx_http_kube_instance_servers(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst)
{
    ngx_uint_t                   i, primary;
    ngx_http_upstream_server_t  *server, *fixed;

    inst->us = *kscf->upstream;

    inst->us.servers = ngx_array_create(inst->pool,
                                        inst->view->n
                                        + kscf->servers.nelts + 1,
                                        sizeof(ngx_http_upstream_server_t));
    if (inst->us.servers == NULL) {
        return NGX_ERROR;
    }

    if (ngx_http_kube_instance_endpoints(kscf, inst) != NGX_OK) {
        return NGX_ERROR;
    }

    primary = inst->view->n;
    fixed = kscf->servers.elts;

    for (i = 0; i < kscf->servers.nelts; i++) {
        server = ngx_array_push(inst->us.servers);
        *server = fixed[i];

        if (!fixed[i].backup) {
            primary++;
        }
    }

    return primary ? NGX_OK : ngx_http_kube_instance_filler(inst);
}


static ngx_int_t
ngx_http_kube_instance_endpoints(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst)
{
    ngx_uint_t                   i;
    ngx_addr_t                  *addr;
    ngx_http_upstream_server_t  *server;
    u_char                       text[NGX_SOCKADDR_STRLEN];

    if (inst->view->n == 0) {
        return NGX_OK;
    }

    addr = ngx_pcalloc(inst->pool, inst->view->n * sizeof(ngx_addr_t));
    if (addr == NULL) {
        return NGX_ERROR;
    }

    for (i = 0; i < inst->view->n; i++) {

        addr[i].sockaddr = &inst->addrs[i].sockaddr;
        addr[i].socklen = ngx_kube_socklen(addr[i].sockaddr);

        addr[i].name.len = ngx_sock_ntop(addr[i].sockaddr, addr[i].socklen,
                                         text, NGX_SOCKADDR_STRLEN, 1);

        addr[i].name.data = ngx_pnalloc(inst->pool, addr[i].name.len);
        if (addr[i].name.data == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(addr[i].name.data, text, addr[i].name.len);

        /* the array was made large enough */

        server = ngx_array_push(inst->us.servers);
        ngx_memzero(server, sizeof(ngx_http_upstream_server_t));

        server->name = addr[i].name;
        server->addrs = &addr[i];
        server->naddrs = 1;
        server->weight = (ngx_uint_t) kscf->weight;
        server->max_conns = kscf->max_conns;
        server->max_fails = kscf->max_fails;
        server->fail_timeout = kscf->fail_timeout;
    }

    return NGX_OK;
}


/* Backups alone make no upstream: a server that is down stands for none. */

static ngx_int_t
ngx_http_kube_instance_filler(ngx_http_kube_instance_t *inst)
{
    ngx_addr_t                  *addr;
    ngx_sockaddr_t              *sa;
    ngx_http_upstream_server_t  *server;

    addr = ngx_pcalloc(inst->pool, sizeof(ngx_addr_t));
    sa = ngx_pcalloc(inst->pool, sizeof(ngx_sockaddr_t));
    if (addr == NULL || sa == NULL) {
        return NGX_ERROR;
    }

    sa->sockaddr_in.sin_family = AF_INET;

    addr->sockaddr = &sa->sockaddr;
    addr->socklen = sizeof(struct sockaddr_in);
    ngx_str_set(&addr->name, "kube_service");

    server = ngx_array_push(inst->us.servers);
    ngx_memzero(server, sizeof(ngx_http_upstream_server_t));

    server->name = addr->name;
    server->addrs = addr;
    server->naddrs = 1;
    server->weight = 1;
    server->max_fails = 1;
    server->fail_timeout = 10;
    server->down = 1;

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_instance_peers(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst)
{
    void                  *clone;
    ngx_conf_t             cf;
    ngx_uint_t             i;
    ngx_http_kube_slot_t  *slot;

    inst->us.srv_conf = ngx_palloc(inst->pool,
                                   sizeof(void *) * ngx_http_max_module);
    if (inst->us.srv_conf == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(inst->us.srv_conf, kscf->upstream->srv_conf,
               sizeof(void *) * ngx_http_max_module);

    inst->us.srv_conf[ngx_http_upstream_module.ctx_index] = &inst->us;
    inst->us.peer.data = NULL;
#if (NGX_HTTP_UPSTREAM_ZONE)
    inst->us.shm_zone = NULL;
#endif

    slot = kscf->slots.elts;

    for (i = 0; i < kscf->slots.nelts; i++) {

        clone = ngx_palloc(inst->pool, slot[i].size);
        if (clone == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(clone, slot[i].pristine, slot[i].size);
        inst->us.srv_conf[slot[i].index] = clone;
    }

    cf = kscf->cf;
    cf.pool = inst->pool;
    cf.temp_pool = inst->pool;
    cf.cycle = (ngx_cycle_t *) ngx_cycle;
    cf.log = ngx_cycle->log;
    cf.conf_file = NULL;
    cf.args = NULL;

    if (kscf->init_upstream(&cf, &inst->us) != NGX_OK) {
        return NGX_ERROR;
    }

    /* keepalive's cache and the like are the upstream's, not the instance's */

    for (i = 0; i < kscf->slots.nelts; i++) {
        if (!slot[i].own) {
            inst->us.srv_conf[slot[i].index] =
                                 kscf->upstream->srv_conf[slot[i].index];
        }
    }

    return NGX_OK;
}


static void
ngx_http_kube_instance_insert(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst, uint32_t hash)
{
    inst->node.key = hash;

    ngx_rbtree_insert(&kscf->tree, &inst->node);
    ngx_queue_insert_head(&kscf->lru, &inst->queue);
    kscf->instances++;
}


static void
ngx_http_kube_instance_remove(ngx_http_kube_srv_conf_t *kscf,
    ngx_http_kube_instance_t *inst)
{
    ngx_rbtree_delete(&kscf->tree, &inst->node);
    ngx_queue_remove(&inst->queue);
    kscf->instances--;
}


static void
ngx_http_kube_instances_expire(ngx_http_kube_srv_conf_t *kscf)
{
    ngx_uint_t                 n;
    ngx_queue_t               *q;
    ngx_http_kube_instance_t  *inst;

    for (n = 0; n < 4 && !ngx_queue_empty(&kscf->lru); n++) {

        q = ngx_queue_last(&kscf->lru);
        inst = ngx_queue_data(q, ngx_http_kube_instance_t, queue);

        if (kscf->instances < NGX_HTTP_KUBE_INSTANCES_MAX
            && (ngx_msec_int_t) (ngx_current_msec - inst->used)
               < NGX_HTTP_KUBE_IDLE)
        {
            return;
        }

        ngx_http_kube_instance_remove(kscf, inst);
        ngx_http_kube_instance_release(inst);
    }
}


#if (NGX_HTTP_SSL)

/* TLS sessions go to the same addresses of the successor. */

static void
ngx_http_kube_sessions_move(ngx_http_kube_instance_t *to,
    ngx_http_kube_instance_t *from)
{
    ngx_http_upstream_rr_peer_t   *a, *b;
    ngx_http_upstream_rr_peers_t  *p, *q;

    p = from->us.peer.data;
    q = to->us.peer.data;

    if (p == NULL || q == NULL) {
        return;
    }

    for (a = p->peer; a != NULL; a = a->next) {

        if (a->ssl_session == NULL) {
            continue;
        }

        for (b = q->peer; b != NULL; b = b->next) {
            if (b->ssl_session == NULL
                && ngx_cmp_sockaddr(a->sockaddr, a->socklen, b->sockaddr,
                                    b->socklen, 1)
                   == NGX_OK)
            {
                b->ssl_session = a->ssl_session;
                a->ssl_session = NULL;
                break;
            }
        }
    }
}


static void
ngx_http_kube_sessions_free(ngx_http_kube_instance_t *inst)
{
    ngx_http_upstream_rr_peer_t   *peer;
    ngx_http_upstream_rr_peers_t  *peers;

    for (peers = inst->us.peer.data; peers != NULL; peers = peers->next) {
        for (peer = peers->peer; peer != NULL; peer = peer->next) {
            if (peer->ssl_session != NULL) {
                ngx_ssl_free_session(peer->ssl_session);
                peer->ssl_session = NULL;
            }
        }
    }
}

#endif

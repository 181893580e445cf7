/*
 * ngx_kube_views - from a key, or a client's spelling of one, to an instance.
 *
 * It decides nothing about keys or endpoints.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_alias.h"
#include "ngx_kube_views_impl.h"


#define NGX_KUBE_ARENA_MAX     (16 * 1024 * 1024)


static void ngx_kube_views_clear(void *data);
static ngx_kube_view_t *ngx_kube_views_newest(ngx_kube_views_t *views,
    ngx_str_t *text, ngx_kube_waiter_t *waiter, kube_key_t *key,
    kube_resolve_error_t *error);
static ngx_kube_view_t *ngx_kube_views_identify(ngx_kube_views_t *views,
    const kube_key_t *key, const ngx_str_t *spelling,
    ngx_kube_waiter_t *waiter, kube_resolve_error_t *error);
static ngx_kube_view_t *ngx_kube_views_nothing(ngx_kube_views_t *views);
static ngx_kube_instance_t *ngx_kube_instance_find(ngx_kube_views_t *views,
    const kube_key_t *key);
static ngx_kube_instance_t *ngx_kube_instance_add(ngx_kube_views_t *views,
    const kube_key_t *key);


ngx_int_t
ngx_kube_views_init(ngx_pool_t *pool, ngx_kube_views_t *views,
    ngx_kube_ref_t *ref)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_kube_views_clear;
    cln->data = views;

    views->ref = ref;

    ngx_rbtree_init(&views->tree, &views->sentinel,
                    ngx_str_rbtree_insert_value);
    ngx_rbtree_init(&views->aliases, &views->aliases_sentinel,
                    ngx_str_rbtree_insert_value);

    return NGX_OK;
}


/* Views that requests hold stay for these. */

static void
ngx_kube_views_clear(void *data)
{
    ngx_kube_views_t *views = data;

    while (views->tree.root != views->tree.sentinel) {
        ngx_kube_instance_drop((ngx_kube_instance_t *) views->tree.root);
    }

    if (views->missing != NULL) {
        ngx_kube_view_release(views->missing);
        views->missing = NULL;
    }
}


ngx_kube_view_t *
ngx_kube_views_find(ngx_kube_views_t *views, ngx_str_t *text,
    kube_key_t *key, kube_resolve_error_t *error)
{
    return ngx_kube_views_newest(views, text, NULL, key, error);
}


ngx_kube_view_t *
ngx_kube_views_again(ngx_kube_views_t *views, ngx_str_t *text,
    kube_key_t *key, kube_resolve_error_t *error)
{
    ngx_kube_waiter_t  waiter;

    ngx_queue_init(&waiter.queue);
    waiter.now = 1;

    return ngx_kube_views_newest(views, text, &waiter, key, error);
}


ngx_uint_t
ngx_kube_views_await(ngx_kube_views_t *views, ngx_str_t *text,
    ngx_kube_waiter_t *waiter)
{
    kube_key_t            key;
    kube_resolve_error_t  error;

    ngx_queue_init(&waiter->queue);
    waiter->now = 0;

    (void) ngx_kube_views_newest(views, text, waiter, &key, &error);

    return !ngx_queue_empty(&waiter->queue);
}


static ngx_kube_view_t *
ngx_kube_views_newest(ngx_kube_views_t *views, ngx_str_t *text,
    ngx_kube_waiter_t *waiter, kube_key_t *key, kube_resolve_error_t *error)
{
    ngx_kube_view_t   *view;
    ngx_kube_alias_t  *alias;

    alias = ngx_kube_alias_find(&views->aliases, text);

    if (alias != NULL) {
        view = ngx_kube_instance_serve(alias->target, waiter, error);

        if (view != NULL
            && (alias->lasts || alias->revision == view->revision))
        {
            return view;
        }

        /* the number, or no port at all, may mean another port now */

        ngx_kube_alias_remove(alias);
    }

    *error = kube_resolver_key(&views->ref->resolver, ngx_kube_str(text), key);

    if (*error != KUBE_RESOLVE_OK) {
        return ngx_kube_views_nothing(views);
    }

    view = ngx_kube_views_identify(views, key, text, waiter, error);

    /* static servers serve also while none may be made */

    return (view != NULL) ? view : ngx_kube_views_nothing(views);
}


ngx_kube_view_t *
ngx_kube_views_by_key(ngx_kube_views_t *views, const kube_key_t *key,
    kube_resolve_error_t *error)
{
    ngx_kube_instance_t  *instance;

    if (views->ref->is_static) {

        if (views->fixed == NULL) {
            views->fixed = ngx_kube_instance_add(views, &views->ref->key);
        }

        instance = views->fixed;

    } else {
        instance = key->port.exact ? ngx_kube_instance_find(views, key) : NULL;

        if (instance == NULL) {
            return ngx_kube_views_identify(views, key, NULL, NULL, error);
        }
    }

    if (instance == NULL) {
        *error = KUBE_RESOLVE_NOT_SYNCED;
        return NULL;
    }

    return ngx_kube_instance_serve(instance, NULL, error);
}


ngx_uint_t
ngx_kube_views_count(ngx_kube_views_t *views)
{
    ngx_kube_view_t       *view;
    ngx_kube_counted_t    *c;
    kube_resolve_error_t   error;

    c = &views->counted;

    if (views->fixed != NULL) {
        view = ngx_kube_views_get(views, &views->ref->key, &error);
        return (view != NULL) ? view->n : 0;
    }

    if (c->entry != 0
        && kube_zone_head(&views->ref->informer->zone, c->entry) == c->head)
    {
        return c->n;
    }

    if (!c->waits || (ngx_msec_int_t) (ngx_current_msec - c->next) >= 0) {
        ngx_kube_views_look(views, c);
    }

    return c->n;
}


/* What a key means is asked of the Service itself; spelling is kept for it. */

static ngx_kube_view_t *
ngx_kube_views_identify(ngx_kube_views_t *views, const kube_key_t *key,
    const ngx_str_t *spelling, ngx_kube_waiter_t *waiter,
    kube_resolve_error_t *error)
{
    kube_rc_t             rc;
    kube_key_t            identity;
    kube_arena_t          arena;
    ngx_kube_view_t      *view;
    ngx_kube_alias_t     *alias;
    kube_resolution_t     resolution;
    ngx_kube_instance_t  *instance;

    instance = NULL;

    kube_arena_init(&arena, &ngx_kube_alloc, NGX_KUBE_ARENA_MAX);

    rc = kube_resolver_identify(&views->ref->resolver, key, &arena,
                                &resolution, &identity);

    *error = (rc == KUBE_OK) ? resolution.error : KUBE_RESOLVE_NOT_SYNCED;

    if (*error == KUBE_RESOLVE_OK) {
        instance = ngx_kube_instance_find(views, &identity);

        if (instance == NULL) {
            instance = ngx_kube_instance_add(views, &identity);
        }

        if (instance == NULL) {
            *error = KUBE_RESOLVE_NOT_SYNCED;
        }
    }

    kube_arena_done(&arena);

    if (instance == NULL) {

        /* clients may ask for anything: what is not there is not kept */

        return (rc == KUBE_OK) ? ngx_kube_views_nothing(views) : NULL;
    }

    view = ngx_kube_instance_serve(instance, waiter, error);

    if (view != NULL && spelling != NULL) {
        alias = ngx_kube_alias_add(&views->aliases, spelling, instance,
                                   &instance->aliases);

        if (alias != NULL) {
            alias->revision = resolution.snapshot.revision;
            alias->lasts = (key->port.name.len != 0);
        }
    }

    return view;
}


/* One for all keys that lead nowhere, where something serves these. */

static ngx_kube_view_t *
ngx_kube_views_nothing(ngx_kube_views_t *views)
{
    ngx_kube_view_t  *view;

    if (!views->keep_missing || views->missing != NULL) {
        return views->missing;
    }

    view = ngx_kube_view_empty();
    if (view == NULL) {
        return NULL;
    }

    if (views->made != NULL && views->made(views, view, NULL) != NGX_OK) {
        ngx_kube_view_release(view);
        return NULL;
    }

    ngx_kube_view_measure(view);
    views->missing = view;

    return view;
}


static ngx_kube_instance_t *
ngx_kube_instance_find(ngx_kube_views_t *views, const kube_key_t *key)
{
    ngx_str_t  text;
    u_char     buf[KUBE_KEY_TEXT_MAX];

    text.data = buf;
    text.len = kube_key_text(key, (char *) buf);

    return (ngx_kube_instance_t *)
               ngx_str_rbtree_lookup(&views->tree, &text,
                                     ngx_murmur_hash2(buf, text.len));
}


static ngx_kube_instance_t *
ngx_kube_instance_add(ngx_kube_views_t *views, const kube_key_t *key)
{
    size_t                len;
    ngx_kube_instance_t  *instance;
    char                  text[KUBE_KEY_TEXT_MAX];

    len = kube_key_text(key, text);

    instance = ngx_calloc(sizeof(ngx_kube_instance_t) + len, ngx_cycle->log);
    if (instance == NULL) {
        return NULL;
    }

    instance->views = views;
    instance->sn.str.data = (u_char *) (instance + 1);
    instance->sn.str.len = len;
    ngx_memcpy(instance->sn.str.data, text, len);

    /* the key's own copy lies in its text: it is not parsed again */

    instance->key = *key;
    instance->key.ns.data = (char *) instance->sn.str.data;
    instance->key.name.data = instance->key.ns.data + key->ns.len + 1;
    instance->key.port.name.data = instance->key.name.data + key->name.len + 1;

    instance->sn.node.key = ngx_murmur_hash2(instance->sn.str.data,
                                             instance->sn.str.len);

    ngx_rbtree_insert(&views->tree, &instance->sn.node);
    ngx_kube_instance_hold(instance);

    return instance;
}

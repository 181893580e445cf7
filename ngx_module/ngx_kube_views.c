/*
 * ngx_kube_views - instances by identity, their budget, and the pace of their
 * builds.
 *
 * It decides nothing about keys or endpoints.  Workers only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_alias.h"
#include "ngx_kube_views.h"

#include "kube_report.h"

#include <malloc.h>
#include <time.h>


#define NGX_KUBE_ARENA_MAX     (16 * 1024 * 1024)

/* An instance of a key with variables goes after so long without use, ms. */
#define NGX_KUBE_IDLE          60000

/* After a build that could not be made (no memory, no budget), ms. */
#define NGX_KUBE_RETRY         100

/* Instances looked at to make room for one: no request pays for many. */
#define NGX_KUBE_LOOKS         64

/* So many bytes that went since the last time are given back to the system. */
#define NGX_KUBE_TRIM          (1024 * 1024)

/*
 * What a build may cost of a worker's time, in us of its processor.  It lets
 * others have their turn each STEP.  One that takes no longer than FREE is
 * never put off; of others the next begins after 20 times the cost of the last,
 * which is 5 % of the worker's time; after 200 times the last piece, in which
 * init_upstream is, where that held up the worker for longer than LONG: at most
 * one request in 200 meets it.
 */
#define NGX_KUBE_BUILD_STEP    1000
#define NGX_KUBE_BUILD_FREE    1000
#define NGX_KUBE_BUILD_LONG    2000


/* A view of a large Service while it is made. */
typedef struct {
    ngx_kube_reading_t      reading;
    ngx_event_t             event;          /* posted between two steps */
    uint64_t                cost;           /* us of the processor so far */
} ngx_kube_job_t;

struct ngx_kube_instance_s {
    ngx_rbtree_node_t       node;           /* key: hash of asked */
    ngx_queue_t             queue;          /* of a key with variables */
    ngx_queue_t             large;          /* of a truncated view */
    ngx_queue_t             aliases;        /* spellings that lead here */
    ngx_kube_views_t       *views;
    ngx_kube_view_t        *view;           /* NULL: none could be built */
    ngx_msec_t              used;
    ngx_kube_job_t         *job;            /* NULL: nothing is being made */
    ngx_msec_t              next;           /* no build before, if waits */
    unsigned                waits:1;
    uint64_t                truncated_ms;   /* since when; if large is in use */

    kube_key_t              key;            /* views asked */
    ngx_str_t               asked;          /* the key's text */
    u_char                  text[KUBE_KEY_TEXT_MAX];
};

/* Of all directives in this process; lru: of keys with variables. */
typedef struct {
    ngx_queue_t             lru;            /* the first was used last */
    ngx_queue_t             large;          /* truncated, of all keys */
    ngx_event_t             timer;
    uint64_t                trimmed;        /* bytes gone until then */
    unsigned                ready:1;
    unsigned                marked:1;       /* large is, or was, not empty */
} ngx_kube_instances_t;


static void ngx_kube_views_clear(void *data);
static ngx_int_t ngx_kube_instance_cmp(const u_char *text, size_t len,
    ngx_rbtree_node_t *node);
static void ngx_kube_instance_place(ngx_rbtree_node_t *root,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static ngx_kube_view_t *ngx_kube_views_identify(ngx_kube_views_t *views,
    const kube_key_t *key, const ngx_str_t *spelling,
    kube_resolve_error_t *error);
static ngx_kube_view_t *ngx_kube_views_nothing(ngx_kube_views_t *views);
static ngx_kube_instance_t *ngx_kube_instance_find(ngx_kube_views_t *views,
    const kube_key_t *key);
static ngx_kube_instance_t *ngx_kube_instance_add(ngx_kube_views_t *views,
    const kube_key_t *key);
static void ngx_kube_instances_timer(ngx_msec_t ms);
static void ngx_kube_instance_mark(ngx_kube_instance_t *instance);
static void ngx_kube_instances_mark(ngx_kube_informer_t *informer);
static void ngx_kube_instance_drop(ngx_kube_views_t *views,
    ngx_kube_instance_t *instance);
static ngx_kube_view_t *ngx_kube_instance_serve(ngx_kube_instance_t *instance,
    kube_resolve_error_t *error);
static void ngx_kube_instance_renew(ngx_kube_instance_t *instance);
static void ngx_kube_instance_proceed(ngx_event_t *ev);
static void ngx_kube_instance_finish(ngx_kube_instance_t *instance,
    ngx_int_t rc, uint64_t cost, uint64_t last);
static void ngx_kube_instance_abandon(ngx_kube_instance_t *instance);
static ngx_int_t ngx_kube_instance_install(ngx_kube_instance_t *instance);
static ngx_int_t ngx_kube_instance_build(ngx_kube_instance_t *instance,
    ngx_kube_view_t *view);
static ngx_uint_t ngx_kube_view_stays(ngx_kube_view_t *view,
    const ngx_kube_view_t *newer);
static void ngx_kube_instance_wait(ngx_kube_instance_t *instance,
    ngx_msec_t ms);
static void ngx_kube_instance_pace(ngx_kube_instance_t *instance,
    uint64_t cost, uint64_t last);
static uint64_t ngx_kube_worked_us(void);
static ngx_uint_t ngx_kube_instances_fit(ngx_kube_views_t *views,
    ngx_kube_instance_t *keep);
static void ngx_kube_instances_expire(ngx_event_t *ev);


static ngx_kube_instances_t  ngx_kube_instances;


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

    ngx_rbtree_init(&views->tree, &views->sentinel, ngx_kube_instance_place);

    return NGX_OK;
}


/* Views that requests hold stay for these. */

static void
ngx_kube_views_clear(void *data)
{
    ngx_kube_views_t *views = data;

    while (views->tree.root != views->tree.sentinel) {
        ngx_kube_instance_drop(views,
                               (ngx_kube_instance_t *) views->tree.root);
    }

    if (views->missing != NULL) {
        ngx_kube_view_release(views->missing);
        views->missing = NULL;
    }
}


ngx_kube_view_t *
ngx_kube_views_find(ngx_kube_views_t *views, const ngx_str_t *text,
    kube_key_t *key, kube_resolve_error_t *error)
{
    ngx_kube_view_t   *view;
    ngx_kube_alias_t  *alias;

    alias = ngx_kube_alias_find(views, text);

    if (alias != NULL) {
        view = ngx_kube_instance_serve(alias->target, error);

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
        return NULL;
    }

    return ngx_kube_views_identify(views, key, text, error);
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
            return ngx_kube_views_identify(views, key, NULL, error);
        }
    }

    if (instance == NULL) {
        *error = KUBE_RESOLVE_NOT_SYNCED;
        return NULL;
    }

    return ngx_kube_instance_serve(instance, error);
}


static ngx_int_t
ngx_kube_instance_cmp(const u_char *text, size_t len, ngx_rbtree_node_t *node)
{
    ngx_kube_instance_t  *instance;

    instance = (ngx_kube_instance_t *) node;

    if (len != instance->asked.len) {
        return len < instance->asked.len ? -1 : 1;
    }

    return ngx_memcmp(text, instance->asked.data, len);
}


static void
ngx_kube_instance_place(ngx_rbtree_node_t *root, ngx_rbtree_node_t *node,
    ngx_rbtree_node_t *sentinel)
{
    ngx_int_t             rc;
    ngx_rbtree_node_t   **p;
    ngx_kube_instance_t  *instance;

    instance = (ngx_kube_instance_t *) node;

    for ( ;; ) {

        if (node->key != root->key) {
            rc = node->key < root->key ? -1 : 1;

        } else {
            rc = ngx_kube_instance_cmp(instance->asked.data,
                                       instance->asked.len, root);
        }

        p = (rc < 0) ? &root->left : &root->right;

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


/* What a key means is asked of the Service itself; spelling is kept for it. */

static ngx_kube_view_t *
ngx_kube_views_identify(ngx_kube_views_t *views, const kube_key_t *key,
    const ngx_str_t *spelling, kube_resolve_error_t *error)
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
    }

    kube_arena_done(&arena);

    if (instance == NULL) {

        /* clients may ask for anything: what is not there is not kept */

        return (rc == KUBE_OK) ? ngx_kube_views_nothing(views) : NULL;
    }

    view = ngx_kube_instance_serve(instance, error);

    if (view != NULL && spelling != NULL) {
        alias = ngx_kube_alias_add(views, spelling, instance,
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
    size_t              len;
    uint32_t            hash;
    ngx_int_t           rc;
    ngx_rbtree_node_t  *node;
    char                text[KUBE_KEY_TEXT_MAX];

    len = kube_key_text(key, text);
    hash = ngx_murmur_hash2((u_char *) text, len);
    node = views->tree.root;

    while (node != views->tree.sentinel) {

        if (hash != node->key) {
            node = (hash < node->key) ? node->left : node->right;
            continue;
        }

        rc = ngx_kube_instance_cmp((u_char *) text, len, node);

        if (rc == 0) {
            return (ngx_kube_instance_t *) node;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}


static ngx_kube_instance_t *
ngx_kube_instance_add(ngx_kube_views_t *views, const kube_key_t *key)
{
    ngx_kube_instance_t  *instance;

    instance = ngx_calloc(sizeof(ngx_kube_instance_t), ngx_cycle->log);
    if (instance == NULL) {
        return NULL;
    }

    instance->views = views;
    instance->used = ngx_current_msec;
    instance->asked.data = instance->text;
    instance->asked.len = kube_key_text(key, (char *) instance->text);

    /* the key's own copy lies in its text: it is not parsed again */

    instance->key = *key;
    instance->key.ns.data = (char *) instance->text;
    instance->key.name.data = instance->key.ns.data + key->ns.len + 1;
    instance->key.port.name.data = instance->key.name.data + key->name.len + 1;

    instance->node.key = ngx_murmur_hash2(instance->asked.data,
                                          instance->asked.len);

    ngx_queue_init(&instance->queue);
    ngx_queue_init(&instance->large);
    ngx_queue_init(&instance->aliases);
    ngx_rbtree_insert(&views->tree, &instance->node);

    ngx_kube_instances_timer(NGX_KUBE_IDLE);

    if (!views->ref->is_static) {
        ngx_queue_insert_head(&ngx_kube_instances.lru, &instance->queue);
    }

    return instance;
}


static void
ngx_kube_instances_timer(ngx_msec_t ms)
{
    ngx_event_t  *timer;

    static ngx_connection_t  dumb;

    timer = &ngx_kube_instances.timer;

    if (!ngx_kube_instances.ready) {
        ngx_queue_init(&ngx_kube_instances.lru);
        ngx_queue_init(&ngx_kube_instances.large);
        timer->handler = ngx_kube_instances_expire;
        timer->cancelable = 1;

        /* at the debug level nginx logs whose it is, by descriptor */
        dumb.fd = (ngx_socket_t) -1;
        timer->data = &dumb;

        ngx_kube_instances.ready = 1;
    }

    if (!timer->timer_set) {
        timer->log = ngx_cycle->log;
        ngx_add_timer(timer, ms);
    }
}


/* The Service has more endpoints than are used, or no longer has. */

static void
ngx_kube_instance_mark(ngx_kube_instance_t *instance)
{
    ngx_uint_t  was, is;

    is = instance->view->truncated;
    was = !ngx_queue_empty(&instance->large);

    if (is == was) {
        return;
    }

    if (is) {
        ngx_kube_instances_timer(NGX_KUBE_IDLE);
        ngx_queue_insert_tail(&ngx_kube_instances.large, &instance->large);
        ngx_kube_instances.marked = 1;
        instance->truncated_ms = ngx_kube_now();

    } else {
        ngx_queue_remove(&instance->large);
        ngx_queue_init(&instance->large);
    }

    ngx_kube_instances_mark(instance->views->ref->informer);
}


/* A Service that several directives use counts once, if it is named. */

static void
ngx_kube_instances_mark(ngx_kube_informer_t *informer)
{
    size_t                i, shown;
    ngx_queue_t          *q;
    kube_truncated_t      truncated;
    ngx_kube_instance_t  *instance;

    ngx_memzero(&truncated, sizeof(kube_truncated_t));
    shown = 0;

    for (q = ngx_queue_head(&ngx_kube_instances.large);
         q != ngx_queue_sentinel(&ngx_kube_instances.large);
         q = ngx_queue_next(q))
    {
        instance = ngx_queue_data(q, ngx_kube_instance_t, large);

        if (instance->views->ref->informer != informer) {
            continue;
        }

        for (i = 0; i < shown; i++) {
            if (truncated.rows[i].entry == instance->view->entry) {
                break;
            }
        }

        if (i < shown) {
            continue;
        }

        truncated.n++;

        if (shown < KUBE_TRUNCATED_SHOWN_MAX) {
            truncated.rows[shown].entry = instance->view->entry;
            truncated.rows[shown].since_ms = instance->truncated_ms;
            shown++;
        }
    }

    kube_zone_worker_truncated(&informer->zone, (unsigned) ngx_worker,
                               ngx_kube_now(), &truncated);
}


static void
ngx_kube_instance_drop(ngx_kube_views_t *views,
    ngx_kube_instance_t *instance)
{
    if (views->fixed == instance) {
        views->fixed = NULL;
        views->view = NULL;
    }

    if (instance->job != NULL) {
        ngx_kube_instance_abandon(instance);
    }

    ngx_kube_aliases_remove(&instance->aliases);
    ngx_rbtree_delete(&views->tree, &instance->node);
    ngx_queue_remove(&instance->queue);
    ngx_queue_remove(&instance->large);

    if (instance->view != NULL) {
        ngx_kube_view_release(instance->view);
    }

    ngx_free(instance);
}


/* The instance's newest view; NULL: none could be built, *error tells why. */

static ngx_kube_view_t *
ngx_kube_instance_serve(ngx_kube_instance_t *instance,
    kube_resolve_error_t *error)
{
    ngx_kube_view_t  *view;

    view = instance->view;

    if (!instance->views->ref->is_static) {
        instance->used = ngx_current_msec;

        ngx_queue_remove(&instance->queue);
        ngx_queue_insert_head(&ngx_kube_instances.lru, &instance->queue);
    }

    if (view == NULL
        || view->entry == 0
        || kube_zone_head(&instance->views->ref->informer->zone, view->entry)
           != view->head)
    {
        ngx_kube_instance_renew(instance);
        view = instance->view;
    }

    *error = (view != NULL) ? view->error : KUBE_RESOLVE_NOT_SYNCED;

    return view;
}


/*
 * Something was stored for the Service: a new revision, or it only moved.  The
 * first view is made at once; so is any other that takes no longer than a step.
 * The rest of a longer one is made between other events, and the last view
 * serves meanwhile.
 */

static void
ngx_kube_instance_renew(ngx_kube_instance_t *instance)
{
    ngx_kube_job_t  *job;

    if (instance->job != NULL
        || (instance->waits
            && (ngx_msec_int_t) (ngx_current_msec - instance->next) < 0))
    {
        return;
    }

    instance->waits = 0;

    /* an old view that requests hold stays beside the new one */

    if (instance->view != NULL
        && instance->view->refs > 1
        && !ngx_kube_instances_fit(instance->views, instance))
    {
        ngx_kube_instance_wait(instance, NGX_KUBE_RETRY);
        return;
    }

    job = ngx_alloc(sizeof(ngx_kube_job_t), ngx_cycle->log);
    if (job == NULL) {
        ngx_kube_instance_wait(instance, NGX_KUBE_RETRY);
        return;
    }

    job->cost = 0;

    ngx_memzero(&job->event, sizeof(ngx_event_t));
    job->event.handler = ngx_kube_instance_proceed;
    job->event.data = instance;
    job->event.log = ngx_cycle->log;

    ngx_kube_view_begin(&job->reading, instance->views->ref, &instance->key);

    instance->job = job;

    ngx_kube_instance_proceed(&job->event);
}


static void
ngx_kube_instance_proceed(ngx_event_t *ev)
{
    ngx_kube_instance_t *instance = ev->data;

    uint64_t         begun, before, now;
    ngx_int_t        rc;
    ngx_kube_job_t  *job;

    job = instance->job;
    begun = ngx_kube_worked_us();
    now = begun;

    do {
        before = now;
        rc = ngx_kube_view_step(&job->reading);
        now = ngx_kube_worked_us();

    } while (rc == NGX_AGAIN
             && (now - begun < NGX_KUBE_BUILD_STEP || instance->view == NULL));

    if (rc == NGX_AGAIN) {
        job->cost += now - begun;
        ngx_post_event(ev, &ngx_posted_next_events);
        return;
    }

    if (rc == NGX_OK) {
        rc = ngx_kube_instance_install(instance);
        now = ngx_kube_worked_us();
    }

    ngx_kube_instance_finish(instance, rc, job->cost + now - begun,
                             now - before);
}


/* last: of the last piece, which holds init_upstream. */

static void
ngx_kube_instance_finish(ngx_kube_instance_t *instance, ngx_int_t rc,
    uint64_t cost, uint64_t last)
{
    ngx_kube_instance_abandon(instance);
    ngx_kube_instance_pace(instance, cost, last);

    /* no memory, or it changes faster than it can be read */

    if (rc != NGX_OK && !instance->waits) {
        ngx_kube_instance_wait(instance, NGX_KUBE_RETRY);
    }
}


static void
ngx_kube_instance_abandon(ngx_kube_instance_t *instance)
{
    ngx_kube_job_t  *job;

    job = instance->job;
    instance->job = NULL;

    if (job->event.posted) {
        ngx_delete_posted_event(&job->event);
    }

    ngx_kube_view_end(&job->reading);
    ngx_free(job);
}


/* Takes the view that was read. */

static ngx_int_t
ngx_kube_instance_install(ngx_kube_instance_t *instance)
{
    ngx_kube_view_t   *view, *old;
    ngx_kube_views_t  *views;

    old = instance->view;
    view = instance->job->reading.view;
    views = instance->views;

    if (old != NULL && ngx_kube_view_stays(old, view)) {

        if (old->error != view->error) {
            ngx_kube_unresolved(views->ref, ngx_cycle->log, view->error,
                                &old->name);
        }

        return NGX_OK;
    }

    if (ngx_kube_instance_build(instance, view) != NGX_OK) {
        return NGX_ERROR;
    }

    if (old != NULL) {
        view->turn = old->turn;
    }

    instance->job->reading.view = NULL;
    instance->view = view;

    if (views->ref->is_static) {
        views->view = view;
    }

    if (view->truncated && (old == NULL || !old->truncated)) {
        ngx_log_error(NGX_LOG_WARN, ngx_cycle->log, 0,
                      "kube: \"%V\" of %s \"%V\" in %V:%ui has more than "
                      "%ui usable endpoints: a stable subset of so many is "
                      "used", &view->name, views->ref->kind,
                      &views->ref->name, &views->ref->file, views->ref->line,
                      view->n);
    }

    ngx_kube_instance_mark(instance);

    if (old != NULL) {
        ngx_kube_view_release(old);
    }

    (void) ngx_kube_instances_fit(views, instance);

    return NGX_OK;
}


static ngx_int_t
ngx_kube_instance_build(ngx_kube_instance_t *instance, ngx_kube_view_t *view)
{
    ngx_kube_view_t   *old;
    ngx_kube_views_t  *views;

    old = instance->view;
    views = instance->views;

    if (old != NULL && old->data != NULL && ngx_kube_view_same(old, view)) {

        /* only names have changed */

        ngx_kube_view_share(view, old);

    } else {
        if (views->made != NULL && views->made(views, view, old) != NGX_OK) {
            return NGX_ERROR;
        }

        if (old != NULL) {
            ngx_kube_count(views->ref->informer, KUBE_WORKER_REBUILDS);
        }
    }

    ngx_kube_view_measure(view);

    return NGX_OK;
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


static void
ngx_kube_instance_wait(ngx_kube_instance_t *instance, ngx_msec_t ms)
{
    instance->next = ngx_current_msec + ms;
    instance->waits = 1;
}


static void
ngx_kube_instance_pace(ngx_kube_instance_t *instance, uint64_t cost,
    uint64_t last)
{
    uint64_t  pause;

    if (cost <= NGX_KUBE_BUILD_FREE) {
        return;
    }

    pause = cost * 20;

    if (last > NGX_KUBE_BUILD_LONG) {
        pause = ngx_max(pause, last * 200);
    }

    ngx_kube_instance_wait(instance, ngx_max((ngx_msec_t) (pause / 1000),
                                             instance->views->pause));
}


/* Of the processor, not of the clock: others' load puts nothing off. */

static uint64_t
ngx_kube_worked_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


/*
 * Drops what was not used for longest until all views fit into the budget.
 * What requests hold would only be built once more.  0: they do not fit.
 */

static ngx_uint_t
ngx_kube_instances_fit(ngx_kube_views_t *views, ngx_kube_instance_t *keep)
{
    ngx_uint_t            n;
    ngx_queue_t          *q, *prev;
    ngx_kube_instance_t  *instance;

    if (ngx_kube_view_bytes() <= *views->budget) {
        return 1;
    }

    kube_zone_worker_over_budget(&views->ref->informer->zone,
                                 (unsigned) ngx_worker, ngx_kube_now());

    if (!ngx_kube_instances.ready) {
        return 0;
    }

    q = ngx_queue_last(&ngx_kube_instances.lru);

    for (n = 0; n < NGX_KUBE_LOOKS; n++) {

        if (q == ngx_queue_sentinel(&ngx_kube_instances.lru)) {
            break;
        }

        prev = ngx_queue_prev(q);
        instance = ngx_queue_data(q, ngx_kube_instance_t, queue);

        if (instance != keep
            && instance->view != NULL
            && instance->view->refs == 1)
        {
            ngx_kube_instance_drop(instance->views, instance);

            if (ngx_kube_view_bytes() <= *views->budget) {
                return 1;
            }
        }

        q = prev;
    }

    return 0;
}


static void
ngx_kube_instances_expire(ngx_event_t *ev)
{
    uint64_t               gone;
    ngx_uint_t             i;
    ngx_msec_t             idle, next;
    ngx_queue_t           *q;
    ngx_kube_conf_t       *kcf;
    ngx_kube_informer_t  **informers;
    ngx_kube_instance_t   *instance;

    next = NGX_KUBE_IDLE;

    while (!ngx_queue_empty(&ngx_kube_instances.lru)) {

        q = ngx_queue_last(&ngx_kube_instances.lru);
        instance = ngx_queue_data(q, ngx_kube_instance_t, queue);
        idle = ngx_current_msec - instance->used;

        if (idle < NGX_KUBE_IDLE) {
            next = NGX_KUBE_IDLE - idle;
            break;
        }

        ngx_kube_instance_drop(instance->views, instance);
    }

    if (ngx_kube_instances.marked) {
        ngx_kube_instances.marked = !ngx_queue_empty(&ngx_kube_instances.large);
        kcf = ngx_kube_get_conf(ngx_cycle);
        informers = kcf->informers.elts;

        for (i = 0; i < kcf->informers.nelts; i++) {
            ngx_kube_instances_mark(informers[i]);
        }
    }

    /* most of it by requests, one at a time */

    gone = ngx_kube_view_bytes_gone();

    if (gone - ngx_kube_instances.trimmed >= NGX_KUBE_TRIM) {
        ngx_kube_instances.trimmed = gone;
        (void) malloc_trim(0);
    }

    if (ngx_kube_view_bytes() != 0) {
        ngx_kube_instances_timer(next);
    }
}

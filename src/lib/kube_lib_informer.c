/*
 * kube_lib_informer - informers as programs see them: handlers, the store,
 * indexes.
 *
 * What is told and held is kube_shared_informer's; here it is put into the
 * words of kube.h.  A handler whose object has no memory is called again
 * later: nothing is told that was not understood, nothing is left out.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_lib.h"


struct kube_lib_handler_s {
    kube_lib_handler_t     *next;
    kube_t                 *kube;
    kube_handlers_t         handlers;
    kube_registration_t     registration;
    uint64_t                id;
    bool                    removed;
};

struct kube_lib_index_s {
    kube_lib_index_t       *next;
    kube_t                 *kube;
    kube_index_t            index;
    void                   *ctx;
};

struct kube_informer_handle_s {
    kube_informer_t         *next;
    kube_t                  *kube;
    kube_shared_informer_t  *shared;
    kube_lib_handler_t      *handlers;
    kube_lib_index_t        *indexes;
    char                     rv[KUBE_RV_LEN_MAX + 1];
};

struct kube_values_s {
    kube_index_values_t     *values;
};

/* Who wants to see objects of a store. */
typedef struct {
    kube_t                  *kube;
    kube_str_t               ns;
    kube_visit_t             visit;
    void                    *ctx;
    kube_rc_t                rc;
} visitor_t;


static void
informer_watch_error(void *ctx, kube_str_t reason, kube_str_t message)
{
    char                   texts[2][KUBE_MESSAGE_LEN_MAX];
    kube_informer_t       *inf = ctx;
    const kube_options_t  *o;

    o = &inf->kube->options;

    (void) snprintf(texts[0], sizeof(texts[0]), "%.*s", (int) reason.len,
                    reason.data);
    (void) snprintf(texts[1], sizeof(texts[1]), "%.*s", (int) message.len,
                    message.data);

    o->watch_error(o->watch_error_ctx, inf, texts[0], texts[1]);
}


int
kube_informer(kube_t *kube, kube_v1_resource_t resource, const char *ns,
    kube_informer_t **informer)
{
    kube_rc_t                rc;
    kube_informer_t         *inf;
    kube_shared_informer_t  *shared;

    rc = kube_factory_informer(kube->factory, (kube_resource_t) resource,
                               kube_str(ns), &shared);
    if (rc != KUBE_OK) {
        return rc;
    }

    for (inf = kube->informers; inf != NULL; inf = inf->next) {
        if (inf->shared == shared) {
            *informer = inf;
            return KUBE_E_OK;
        }
    }

    /* the factory's stays where this fails; it is found the next time */

    inf = kube_zalloc(&kube->env.alloc, sizeof(kube_informer_t));
    if (inf == NULL) {
        return KUBE_E_NOMEM;
    }

    inf->kube = kube;
    inf->shared = shared;
    inf->next = kube->informers;
    kube->informers = inf;

    /* the factory may have started it since an earlier call that failed */

    if (kube->options.watch_error != NULL) {
        rc = kube_shared_informer_set_watch_error_handler(shared,
                                                  informer_watch_error, inf);
        (void) rc;
    }

    *informer = inf;

    return KUBE_E_OK;
}


static void
informer_sweep(kube_informer_t *inf, bool all)
{
    kube_lib_handler_t  *handler, **p;

    p = &inf->handlers;

    while (*p != NULL) {
        handler = *p;

        if (!all && !handler->removed) {
            p = &handler->next;
            continue;
        }

        *p = handler->next;
        kube_free(&inf->kube->env.alloc, handler);
    }
}


void
kube_lib_informers_sweep(kube_t *kube)
{
    kube_informer_t  *inf;

    for (inf = kube->informers; inf != NULL; inf = inf->next) {
        informer_sweep(inf, false);
    }
}


void
kube_lib_informers_done(kube_t *kube)
{
    kube_informer_t   *inf;
    kube_lib_index_t  *index;

    while (kube->informers != NULL) {
        inf = kube->informers;
        kube->informers = inf->next;
        informer_sweep(inf, true);

        while (inf->indexes != NULL) {
            index = inf->indexes;
            inf->indexes = index->next;
            kube_free(&kube->env.alloc, index);
        }

        kube_free(&kube->env.alloc, inf);
    }
}


const char *
kube_informer_name(const kube_informer_t *inf)
{
    return kube_shared_informer_name(inf->shared);
}


const char *
kube_informer_error(const kube_informer_t *inf)
{
    return kube_shared_informer_error(inf->shared);
}


const char *
kube_informer_rv(kube_informer_t *inf)
{
    kube_str_t  rv;

    rv = kube_shared_informer_rv(inf->shared);
    (void) snprintf(inf->rv, sizeof(inf->rv), "%.*s", (int) rv.len, rv.data);

    return inf->rv;
}


int
kube_informer_has_synced(const kube_informer_t *inf)
{
    return kube_shared_informer_has_synced(inf->shared);
}


uint64_t
kube_informer_refused(const kube_informer_t *inf)
{
    return kube_shared_informer_refused(inf->shared);
}


/* An object and whether the handlers see it; NULL is seen by none. */
static kube_rc_t
handler_object(const kube_lib_handler_t *h, const kube_stored_t *stored,
    const kube_v1_object_t **object)
{
    kube_rc_t  rc;

    *object = NULL;

    if (stored == NULL) {
        return KUBE_OK;
    }

    rc = kube_lib_object(&h->kube->arena, stored, object);

    if (rc == KUBE_OK
        && h->handlers.filter != NULL
        && !h->handlers.filter(h->handlers.ctx, *object))
    {
        kube_v1_object_release(*object);
        *object = NULL;
    }

    return rc;
}


static void
handler_tell(const kube_lib_handler_t *h, const kube_notification_t *n,
    const kube_v1_object_t *old, const kube_v1_object_t *new)
{
    const kube_handlers_t  *hs;

    hs = &h->handlers;

    if (old != NULL && new != NULL) {
        if (hs->updated != NULL) {
            hs->updated(hs->ctx, old, new);
        }

    } else if (new != NULL) {
        if (hs->added != NULL) {
            hs->added(hs->ctx, new, n->in_initial_list);
        }

    } else if (old != NULL && hs->deleted != NULL) {
        hs->deleted(hs->ctx, old, n->final_state_unknown);
    }
}


static kube_rc_t
handler_notify(void *ctx, const kube_notification_t *n)
{
    kube_rc_t                rc;
    kube_lib_handler_t      *h = ctx;
    const kube_v1_object_t  *old, *new;

    if (n->kind == KUBE_NOTIFY_RESYNC) {

        if (h->handlers.behind != NULL) {
            h->handlers.behind(h->handlers.ctx);
        }

        return KUBE_OK;
    }

    new = NULL;
    rc = handler_object(h, n->old, &old);

    /* a resync: by the same pointer programs know it */

    if (rc == KUBE_OK && n->new == n->old) {
        new = (old != NULL) ? kube_v1_object_hold(old) : NULL;

    } else if (rc == KUBE_OK) {
        rc = handler_object(h, n->new, &new);
    }

    if (rc == KUBE_OK) {
        handler_tell(h, n, old, new);

    } else if (rc == KUBE_NOMEM) {
        h->kube->retry_ms = h->kube->env.now(h->kube->env.ctx)
                            + KUBE_LIB_RETRY_MS;
        rc = KUBE_AGAIN;
    }

    kube_v1_object_release(old);
    kube_v1_object_release(new);

    return rc;
}


int
kube_informer_add_handlers(kube_informer_t *inf,
    const kube_handlers_t *handlers, uint64_t *id)
{
    kube_rc_t            rc;
    kube_t              *kube;
    kube_handler_t       handler;
    kube_lib_handler_t  *h;

    if (handlers->size != sizeof(kube_handlers_t)) {
        return KUBE_E_INVALID;
    }

    kube = inf->kube;

    h = kube_zalloc(&kube->env.alloc, sizeof(kube_lib_handler_t));
    if (h == NULL) {
        return KUBE_E_NOMEM;
    }

    h->kube = kube;
    h->handlers = *handlers;

    handler = (kube_handler_t) {
        .notify = handler_notify,
        .ctx = h,
        .resync_ms = handlers->resync_ms
    };

    rc = kube_shared_informer_add_handler(inf->shared, &handler,
                                          &h->registration,
                                          kube->env.now(kube->env.ctx));
    if (rc != KUBE_OK) {
        kube_free(&kube->env.alloc, h);
        return rc;
    }

    h->id = ++kube->handler_id;
    h->next = inf->handlers;
    inf->handlers = h;

    if (id != NULL) {
        *id = h->id;
    }

    return KUBE_E_OK;
}


static kube_lib_handler_t *
informer_handler(const kube_informer_t *inf, uint64_t id)
{
    kube_lib_handler_t  *h;

    for (h = inf->handlers; h != NULL; h = h->next) {
        if (h->id == id && !h->removed) {
            break;
        }
    }

    return h;
}


void
kube_informer_remove_handlers(kube_informer_t *inf, uint64_t id)
{
    kube_lib_handler_t  *h;

    h = informer_handler(inf, id);

    if (h == NULL) {
        return;
    }

    h->removed = true;
    kube_shared_informer_remove_handler(inf->shared, h->registration);

    if (!inf->kube->processing) {
        informer_sweep(inf, false);
    }
}


int
kube_informer_handlers_synced(const kube_informer_t *inf, uint64_t id)
{
    const kube_lib_handler_t  *h;

    h = informer_handler(inf, id);

    return h != NULL
           && kube_shared_informer_handler_has_synced(inf->shared,
                                                      h->registration);
}


int
kube_informer_get(const kube_informer_t *inf, const char *ns,
    const char *name, const kube_v1_object_t **object)
{
    kube_stored_t  *stored;

    stored = kube_store_get(kube_shared_informer_store(inf->shared),
                            kube_str(ns), kube_str(name));
    if (stored == NULL) {
        return KUBE_E_NOT_FOUND;
    }

    return kube_lib_object(&inf->kube->arena, stored, object);
}


size_t
kube_informer_count(const kube_informer_t *inf)
{
    return kube_store_count(kube_shared_informer_store(inf->shared));
}


static bool
visitor_visit(void *ctx, kube_stored_t *stored)
{
    int                      enough;
    visitor_t               *v = ctx;
    const kube_v1_object_t  *object;

    if (v->ns.len != 0 && !kube_str_eq(v->ns, stored->id.meta.ns)) {
        return true;
    }

    v->rc = kube_lib_object(&v->kube->arena, stored, &object);

    if (v->rc != KUBE_OK) {
        return false;
    }

    enough = v->visit(v->ctx, object);
    kube_v1_object_release(object);

    return enough == 0;
}


int
kube_informer_list(const kube_informer_t *inf, const char *ns,
    kube_visit_t visit, void *ctx)
{
    visitor_t  v;

    v = (visitor_t) { inf->kube, kube_str(ns), visit, ctx, KUBE_OK };

    kube_store_each(kube_shared_informer_store(inf->shared), visitor_visit,
                    &v);
    return v.rc;
}


int
kube_informer_by_index(const kube_informer_t *inf, const char *name,
    const char *value, kube_visit_t visit, void *ctx)
{
    kube_rc_t  rc;
    visitor_t  v;

    v = (visitor_t) { inf->kube, KUBE_STR_NULL, visit, ctx, KUBE_OK };

    rc = kube_store_by_index(kube_shared_informer_store(inf->shared),
                             kube_str(name), kube_str(value), visitor_visit,
                             &v);

    return (rc != KUBE_OK) ? rc : v.rc;
}


void
kube_value(kube_values_t *values, const char *value)
{
    kube_index_value(values->values, kube_str(value));
}


static kube_rc_t
index_values(void *ctx, const kube_stored_t *stored,
    kube_index_values_t *values)
{
    int                      answer;
    kube_rc_t                rc;
    kube_values_t            theirs;
    kube_lib_index_t        *index = ctx;
    const kube_v1_object_t  *object;

    rc = kube_lib_object(&index->kube->arena, stored, &object);

    if (rc != KUBE_OK) {
        return rc;
    }

    theirs.values = values;
    answer = index->index(index->ctx, object, &theirs);
    kube_v1_object_release(object);

    return (answer == 0) ? KUBE_OK : KUBE_INVALID;
}


static int
informer_add_own(kube_informer_t *inf, const char *name)
{
    size_t  i;

    static const struct {
        const char     *name;
        kube_index_pt   index;
    } own[] = {
        { "namespace",  kube_index_namespace },
        { "service",    kube_index_service },
        { "node",       kube_index_node },
        { "address",    kube_index_address },
        { "label",      kube_index_label }
    };

    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(name, own[i].name) == 0) {
            return kube_shared_informer_add_index(inf->shared, kube_str(name),
                                                  own[i].index, NULL);
        }
    }

    return KUBE_E_INVALID;
}


int
kube_informer_add_index(kube_informer_t *inf, const char *name,
    kube_index_t function, void *ctx)
{
    kube_rc_t          rc;
    kube_lib_index_t  *index;

    if (function == NULL) {
        return informer_add_own(inf, name);
    }

    index = kube_zalloc(&inf->kube->env.alloc, sizeof(kube_lib_index_t));
    if (index == NULL) {
        return KUBE_E_NOMEM;
    }

    index->kube = inf->kube;
    index->index = function;
    index->ctx = ctx;

    rc = kube_shared_informer_add_index(inf->shared, kube_str(name),
                                        index_values, index);
    if (rc != KUBE_OK) {
        kube_free(&inf->kube->env.alloc, index);
        return rc;
    }

    index->next = inf->indexes;
    inf->indexes = index;

    return KUBE_E_OK;
}


uint64_t
kube_informer_index_errors(const kube_informer_t *inf)
{
    return kube_store_index_errors(kube_shared_informer_store(inf->shared));
}

/*
 * ngx_http_kube_key - the key of a kube_service or kube_resolve line, compiled
 * once and evaluated for each request.
 *
 * Beyond a request's own memory it remembers nothing: views do.  Compiled at
 * configuration time, evaluated in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_KEY_H
#define NGX_HTTP_KUBE_KEY_H


#include "ngx_http_kube.h"

#include "kube_report.h"


/* What a key came to in one request, and what was picked of it. */
typedef struct {
    ngx_kube_view_t       *view;        /* counted; NULL: none, or noted */
    const ngx_kube_view_t *noted;       /* read there until it ends */

    /* what variables tell, once noted: in the view, then the request's own */
    ngx_kube_endpoint_t   *endpoint;    /* the last one picked; NULL: none, or
                                           a static server */
    const kube_key_t      *key;         /* parsed once; NULL: no key, or a
                                           static one, or service says it */
    ngx_http_kube_key_t   *of;
    kube_resolve_error_t   error;
    unsigned               ended:1;     /* a view that was noted */
    unsigned               from_state_file:1;
    ngx_pool_t            *pool;        /* the request's */
    ngx_kube_reader_t      reader;
    ngx_str_t              text;        /* as evaluated; not of a static key */

    /* of a view that was noted and has ended */
    uint64_t               revision;
    ngx_str_t              service;     /* $kube_service */
} ngx_http_kube_pick_t;


/*
 * The key and parameters of the directive that is being parsed, from its
 * argument number first on; key->ref is there already.  own: further
 * parameters; their table may be NULL.  NGX_ERROR: logged.
 */
ngx_int_t ngx_http_kube_key_parse(ngx_conf_t *cf, ngx_http_kube_key_t *key,
    ngx_uint_t first, const ngx_kube_parameters_t *own);

/*
 * Resolves a text into a pick without endpoint, and counts what came of it.
 * waited: the request was seen in time to wait for a view, see
 * ngx_http_kube_pending_saw().  pick is overwritten, but for its pool, which is
 * set; the caller gives its view back.
 */
void ngx_http_kube_key_resolve(ngx_http_request_t *r,
    ngx_http_kube_key_t *key, ngx_str_t *text, ngx_uint_t waited,
    ngx_http_kube_pick_t *pick);


/* The view of a pick that was noted ends.  For this file. */
void ngx_http_kube_pick_copy(ngx_kube_reader_t *reader);


/*
 * Notes that variables tell of the pick's view and an endpoint of it, or of
 * none.  The view may then be given back: it is read where it is, and what is
 * told of it is copied when it ends.
 */
static ngx_inline void
ngx_http_kube_pick_note(ngx_http_kube_pick_t *pick,
    ngx_kube_endpoint_t *endpoint)
{
    if (pick->noted != NULL) {
        ngx_kube_reader_leave(&pick->reader);

        if (pick->key == &pick->noted->key) {
            pick->key = NULL;
        }
    }

    pick->noted = pick->view;
    pick->endpoint = endpoint;
    pick->reader.ended = ngx_http_kube_pick_copy;
    ngx_kube_view_read(pick->view, &pick->reader);
}


/* The key as it was evaluated. */
static ngx_inline const ngx_str_t *
ngx_http_kube_pick_text(const ngx_http_kube_pick_t *pick)
{
    return pick->of->ref->is_static ? &pick->of->ref->key_text : &pick->text;
}


/* The view that tells of the pick; NULL: none, or it has ended. */
static ngx_inline const ngx_kube_view_t *
ngx_http_kube_pick_view(const ngx_http_kube_pick_t *pick)
{
    return (pick->noted != NULL) ? pick->noted
                                 : pick->ended ? NULL : pick->view;
}


/* Gives the view back, if there is one. */
static ngx_inline void
ngx_http_kube_pick_release(ngx_http_kube_pick_t *pick)
{
    if (pick->view != NULL) {
        ngx_kube_view_release(pick->view);
        pick->view = NULL;
    }
}


/*
 * The same where nothing is picked of it: the request may last elsewhere, and
 * variables tell of it.
 */
static ngx_inline void
ngx_http_kube_pick_leave(ngx_http_kube_pick_t *pick)
{
    if (pick->view != NULL && pick->noted == NULL && !pick->ended) {
        ngx_http_kube_pick_note(pick, NULL);
    }

    ngx_http_kube_pick_release(pick);
}


/* The same, and tells nothing of it any more. */
static ngx_inline void
ngx_http_kube_pick_end(ngx_http_kube_pick_t *pick)
{
    if (pick->noted != NULL) {
        ngx_kube_reader_leave(&pick->reader);
        pick->noted = NULL;
    }

    ngx_http_kube_pick_release(pick);
}


/* As ngx_http_kube_key_resolve() of a static key, on the shortest way. */
static ngx_inline void
ngx_http_kube_key_resolve_static(ngx_http_kube_key_t *key,
    ngx_http_kube_pick_t *pick)
{
    ngx_kube_ref_t  *ref;

    ref = key->ref;

    pick->of = key;
    pick->key = NULL;
    pick->noted = NULL;
    pick->ended = 0;
    pick->endpoint = NULL;
    pick->view = ngx_kube_views_get(&key->views, &ref->key, &pick->error);

    if (pick->view != NULL) {
        pick->view->refs++;
    }

    ngx_kube_count(ref->informer, KUBE_WORKER_RESOLVED(pick->error));
}


/* The key's text for this request, in the request's or longer memory. */
static ngx_inline ngx_int_t
ngx_http_kube_key_evaluate(ngx_http_request_t *r, ngx_http_kube_key_t *key,
    ngx_str_t *text)
{
    if (key->ref->is_static) {
        *text = key->ref->key_text;
        return NGX_OK;
    }

    return ngx_http_complex_value(r, &key->value, text);
}


#endif /* NGX_HTTP_KUBE_KEY_H */

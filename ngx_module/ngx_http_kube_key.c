/*
 * ngx_http_kube_key - from a key's variables to a view.
 *
 * It reads what a directive says of a key, and evaluates that per request;
 * what a view holds, and when it is built, is ngx_kube_views'.  Contract in the
 * header.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_key.h"


ngx_int_t
ngx_http_kube_key_parse(ngx_conf_t *cf, ngx_http_kube_key_t *key,
    ngx_uint_t first, const ngx_kube_parameters_t *own)
{
    ngx_str_t                         *value;
    ngx_kube_parameters_t              sets[2];
    ngx_http_kube_main_conf_t         *kmcf;
    ngx_http_compile_complex_value_t   ccv;

    sets[0].table = ngx_kube_ref_parameters;
    sets[0].conf = key->ref;
    sets[1] = *own;

    if (ngx_kube_parameters_set(cf, first + 1, sets, own->table ? 2 : 1)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    value = cf->args->elts;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = &value[first];
    ccv.complex_value = &key->value;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK
        || ngx_kube_ref_add(cf, key->ref, &value[first],
                            key->value.lengths == NULL)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kube_module);
    key->views.budget = &kmcf->instances_size;

    return ngx_kube_views_init(cf->pool, &key->views, key->ref);
}


void
ngx_http_kube_key_resolve(ngx_http_request_t *r, ngx_http_kube_key_t *key,
    ngx_str_t *text, ngx_uint_t waited, ngx_http_kube_pick_t *pick)
{
    kube_key_t  parsed, *copy;

    if (key->ref->is_static) {
        ngx_http_kube_key_resolve_static(key, pick);
        return;
    }

    pick->of = key;
    pick->text = *text;
    pick->noted = NULL;
    pick->ended = 0;
    pick->endpoint = NULL;

    pick->key = NULL;
    pick->view = waited ? ngx_kube_views_again(&key->views, text, &parsed,
                                               &pick->error)
                        : ngx_kube_views_find(&key->views, text, &parsed,
                                              &pick->error);

    if (pick->view != NULL && pick->view->name.len != 0) {
        pick->key = &pick->view->key;

    } else if (pick->error != KUBE_RESOLVE_NO_KEY
               && pick->error != KUBE_RESOLVE_BAD_KEY)
    {
        /* for $kube_service */

        copy = ngx_palloc(r->pool, sizeof(kube_key_t));

        if (copy != NULL) {
            *copy = parsed;
            pick->key = copy;
        }
    }

    if (pick->view != NULL) {
        pick->view->refs++;
    }

    ngx_kube_count(key->ref->informer, KUBE_WORKER_RESOLVED(pick->error));
}


/* Without memory for it the variables are empty from now on. */

void
ngx_http_kube_pick_copy(ngx_kube_reader_t *reader)
{
    size_t                 len;
    u_char                *p;
    ngx_uint_t             i;
    ngx_str_t             *s[4];
    ngx_kube_endpoint_t   *copy;
    ngx_http_kube_pick_t  *pick;
    const ngx_kube_view_t *view;

    pick = ngx_queue_data(reader, ngx_http_kube_pick_t, reader);
    view = pick->noted;

    pick->noted = NULL;
    pick->ended = 1;
    pick->from_state_file = view->from_state_file;
    pick->revision = view->revision;
    pick->service = view->name;

    if (pick->key == &view->key) {
        pick->key = NULL;
    }

    len = pick->service.len;

    if (pick->endpoint != NULL) {
        len += pick->endpoint->pod.len + pick->endpoint->node.len
               + pick->endpoint->zone.len;
    }

    copy = ngx_palloc(pick->pool, sizeof(ngx_kube_endpoint_t) + len);

    if (copy == NULL) {
        pick->service.len = 0;
        pick->endpoint = NULL;
        return;
    }

    p = (u_char *) (copy + 1);

    s[0] = &pick->service;
    s[1] = &copy->pod;
    s[2] = &copy->node;
    s[3] = &copy->zone;

    if (pick->endpoint != NULL) {
        *copy = *pick->endpoint;
        pick->endpoint = copy;
    }

    for (i = 0; i < (pick->endpoint != NULL ? 4 : 1); i++) {

        /* a view of nothing has no name, nor data */

        if (s[i]->len != 0) {
            ngx_memcpy(p, s[i]->data, s[i]->len);
        }

        s[i]->data = p;
        p += s[i]->len;
    }
}

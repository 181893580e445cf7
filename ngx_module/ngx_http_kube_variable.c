/*
 * ngx_http_kube_variable - the $kube_* variables.
 *
 * They read what the request carries or the zone holds, and choose nothing.
 * They tell of one resolution: the balancer's, or where none is at work in
 * this location, the one of the kube_resolve variable that was used last.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_request.h"
#include "ngx_http_kube_variable.h"


static ngx_int_t ngx_http_kube_service_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_endpoint_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_state_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_error_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_generation_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_age_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_synced_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_kube_pick_t *ngx_http_kube_shown(ngx_http_request_t *r);
static ngx_kube_informer_t *ngx_http_kube_informer_of(ngx_http_request_t *r);
static ngx_int_t ngx_http_kube_value_copy(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, const void *data, size_t len);


static ngx_http_variable_t  ngx_http_kube_variables[] = {

    { ngx_string("kube_service"), NULL, ngx_http_kube_service_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_pod"), NULL, ngx_http_kube_endpoint_variable,
      offsetof(ngx_kube_endpoint_t, pod), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_node"), NULL, ngx_http_kube_endpoint_variable,
      offsetof(ngx_kube_endpoint_t, node), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_zone"), NULL, ngx_http_kube_endpoint_variable,
      offsetof(ngx_kube_endpoint_t, zone), NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_endpoint_state"), NULL, ngx_http_kube_state_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_error"), NULL, ngx_http_kube_error_variable,
      0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_generation"), NULL,
      ngx_http_kube_generation_variable, 0, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_age"), NULL, ngx_http_kube_age_variable, 0,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_synced"), NULL, ngx_http_kube_synced_variable, 0,
      NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_kube_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_kube_variables; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


/* NULL: nothing was resolved for the request. */

static ngx_http_kube_pick_t *
ngx_http_kube_shown(ngx_http_request_t *r)
{
    ngx_http_kube_request_t  *kr;

    kr = ngx_http_kube_request(r, 0);

    return kr != NULL ? kr->shown : NULL;
}


/* A copy, for a view may be gone before the request is. */

static ngx_int_t
ngx_http_kube_value_copy(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    const void *data, size_t len)
{
    u_char  *p;

    p = NULL;

    if (len != 0) {
        p = ngx_pnalloc(r->pool, len);
        if (p == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(p, data, len);
    }

    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->data = p;
    v->len = (unsigned) len;

    return NGX_OK;
}


/* The canonical key, also of what could not be resolved. */

static ngx_int_t
ngx_http_kube_service_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    size_t                 len;
    const ngx_str_t       *s;
    const kube_key_t      *key;
    ngx_http_kube_pick_t  *pick;
    const ngx_kube_view_t *view;
    char                   text[KUBE_KEY_TEXT_MAX];

    pick = ngx_http_kube_shown(r);

    if (pick == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    s = NULL;
    view = ngx_http_kube_pick_view(pick);

    if (view != NULL) {
        s = &view->name;

    } else if (pick->ended) {
        s = &pick->service;
    }

    if (s != NULL && s->len != 0) {
        return ngx_http_kube_value_copy(r, v, s->data, s->len);
    }

    key = pick->of->ref->is_static ? &pick->of->ref->key : pick->key;
    len = (key != NULL) ? kube_key_text(key, text) : 0;

    return ngx_http_kube_value_copy(r, v, text, len);
}


/* data: the offset of an ngx_str_t in the endpoint. */

static ngx_int_t
ngx_http_kube_endpoint_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t             *s;
    ngx_http_kube_pick_t  *pick;

    pick = ngx_http_kube_shown(r);

    if (pick == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    if (pick->endpoint == NULL) {
        return ngx_http_kube_value_copy(r, v, NULL, 0);
    }

    s = (ngx_str_t *) ((char *) pick->endpoint + data);

    return ngx_http_kube_value_copy(r, v, s->data, s->len);
}


static ngx_int_t
ngx_http_kube_state_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    kube_str_t             text;
    ngx_http_kube_pick_t  *pick;
    const ngx_kube_view_t *view;

    pick = ngx_http_kube_shown(r);

    if (pick == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    if (pick->endpoint == NULL) {
        return ngx_http_kube_value_copy(r, v, NULL, 0);
    }

    view = ngx_http_kube_pick_view(pick);

    text = (view != NULL ? view->from_state_file : pick->from_state_file)
           ? KUBE_STR("state_file")
           : kube_endpoint_state_text(pick->endpoint->state);

    return ngx_http_kube_value_copy(r, v, text.data, text.len);
}


static ngx_int_t
ngx_http_kube_error_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    kube_str_t             text;
    ngx_http_kube_pick_t  *pick;

    pick = ngx_http_kube_shown(r);

    if (pick == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    text = kube_resolve_error_text(pick->error);

    return ngx_http_kube_value_copy(r, v, text.data, text.len);
}


static ngx_int_t
ngx_http_kube_generation_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                 text[NGX_INT64_LEN];
    ngx_http_kube_pick_t  *pick;
    const ngx_kube_view_t *view;

    pick = ngx_http_kube_shown(r);
    view = (pick != NULL) ? ngx_http_kube_pick_view(pick) : NULL;

    if (view == NULL && (pick == NULL || !pick->ended)) {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_kube_value_copy(r, v, text,
               (size_t) (ngx_sprintf(text, "%uL",
                                     view != NULL ? view->revision
                                                  : pick->revision)
                         - text));
}


/* The informer of what is shown; where nothing is, the default one. */

static ngx_kube_informer_t *
ngx_http_kube_informer_of(ngx_http_request_t *r)
{
    ngx_str_t              name;
    ngx_http_kube_pick_t  *pick;

    pick = ngx_http_kube_shown(r);

    if (pick != NULL) {
        return pick->of->ref->informer;
    }

    ngx_str_set(&name, "default");

    return ngx_kube_informer_find(ngx_kube_get_conf(ngx_cycle), &name);
}


static ngx_int_t
ngx_http_kube_age_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                text[NGX_INT64_LEN + 4];
    kube_health_t         health;
    ngx_kube_informer_t  *informer;

    informer = ngx_http_kube_informer_of(r);

    if (informer == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    ngx_kube_informer_health(informer, &health);

    if (health.age_ms == KUBE_NEVER) {
        v->not_found = 1;
        return NGX_OK;
    }

    return ngx_http_kube_value_copy(r, v, text,
               (size_t) (ngx_sprintf(text, "%uL.%03uL", health.age_ms / 1000,
                                     health.age_ms % 1000) - text));
}


static ngx_int_t
ngx_http_kube_synced_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    kube_health_t         health;
    ngx_kube_informer_t  *informer;

    informer = ngx_http_kube_informer_of(r);

    if (informer == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    ngx_kube_informer_health(informer, &health);

    return ngx_http_kube_value_copy(r, v, health.synced ? "1" : "0", 1);
}

/*
 * ngx_http_kube_variable - $kube_* variables and kube_resolve.
 *
 * They read what the request carries or the zone holds; they choose nothing
 * but kube_resolve's endpoint, in turn per worker.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"


static ngx_int_t ngx_http_kube_text_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_generation_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_age_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_int_t ngx_http_kube_synced_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_kube_srv_conf_t *ngx_http_kube_resolve_key(ngx_conf_t *cf);
static ngx_int_t ngx_http_kube_resolve_name(ngx_conf_t *cf, ngx_str_t *value);
static ngx_int_t ngx_http_kube_resolve_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_kube_informer_t *ngx_http_kube_informer_of(ngx_http_request_t *r);
static ngx_int_t ngx_http_kube_resolve_pick(ngx_http_request_t *r,
    ngx_http_kube_srv_conf_t *kscf, ngx_http_variable_value_t *v);


typedef enum {
    NGX_HTTP_KUBE_SERVICE = 0,
    NGX_HTTP_KUBE_POD,
    NGX_HTTP_KUBE_NODE,
    NGX_HTTP_KUBE_ZONE,
    NGX_HTTP_KUBE_STATE,
    NGX_HTTP_KUBE_ERROR
} ngx_http_kube_text_e;


static ngx_http_variable_t  ngx_http_kube_variables[] = {

    { ngx_string("kube_service"), NULL, ngx_http_kube_text_variable,
      NGX_HTTP_KUBE_SERVICE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_pod"), NULL, ngx_http_kube_text_variable,
      NGX_HTTP_KUBE_POD, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_node"), NULL, ngx_http_kube_text_variable,
      NGX_HTTP_KUBE_NODE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_zone"), NULL, ngx_http_kube_text_variable,
      NGX_HTTP_KUBE_ZONE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_endpoint_state"), NULL, ngx_http_kube_text_variable,
      NGX_HTTP_KUBE_STATE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("kube_error"), NULL, ngx_http_kube_text_variable,
      NGX_HTTP_KUBE_ERROR, NGX_HTTP_VAR_NOCACHEABLE, 0 },

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


static void
ngx_http_kube_value(ngx_http_variable_value_t *v, u_char *data, size_t len)
{
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;
    v->data = data;
    v->len = (unsigned) len;
}


/* A copy: an instance may be gone before the request is. */

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

    ngx_http_kube_value(v, p, len);

    return NGX_OK;
}


static ngx_http_kube_instance_t *
ngx_http_kube_instance_of(ngx_http_kube_request_t *kr)
{
    return kr->instance != NULL ? kr->instance : kr->resolved;
}


/* The canonical key, also of what could not be resolved. */

static ngx_int_t
ngx_http_kube_service_value(ngx_http_request_t *r,
    ngx_http_kube_request_t *kr, ngx_http_variable_value_t *v)
{
    size_t                     len;
    kube_key_t                 key;
    ngx_http_kube_instance_t  *inst;
    char                       text[KUBE_KEY_TEXT_MAX];

    inst = ngx_http_kube_instance_of(kr);

    if (inst != NULL) {
        return ngx_http_kube_value_copy(r, v, inst->view->key.data,
                                        inst->view->key.len);
    }

    len = 0;

    if (kr->kscf != NULL
        && kube_key_parse(ngx_kube_str(&kr->key),
                          kr->kscf->use->resolver.dns, &key, NULL)
           == KUBE_OK)
    {
        len = kube_key_text(&key, text);
    }

    return ngx_http_kube_value_copy(r, v, text, len);
}


static ngx_int_t
ngx_http_kube_text_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_str_t                 s;
    kube_str_t                text;
    ngx_http_kube_request_t  *kr;

    v->not_found = 1;

    kr = ngx_http_kube_request(r, 0);
    if (kr == NULL) {
        return NGX_OK;
    }

    if (data == NGX_HTTP_KUBE_SERVICE) {
        return ngx_http_kube_service_value(r, kr, v);
    }

    if (data == NGX_HTTP_KUBE_ERROR) {
        text = kube_resolve_error_text(kr->error);
        return ngx_http_kube_value_copy(r, v, text.data, text.len);
    }

    ngx_str_null(&s);

    if (kr->endpoint == NULL) {
        return ngx_http_kube_value_copy(r, v, NULL, 0);
    }

    switch (data) {

    case NGX_HTTP_KUBE_STATE:
        if (ngx_http_kube_instance_of(kr)->view->from_state_file) {
            ngx_str_set(&s, "state_file");
            break;
        }

        text = kube_endpoint_state_text(kr->endpoint->state);
        s.data = (u_char *) text.data;
        s.len = text.len;
        break;

    case NGX_HTTP_KUBE_POD:
        s = kr->endpoint->pod;
        break;

    case NGX_HTTP_KUBE_NODE:
        s = kr->endpoint->node;
        break;

    default:
        s = kr->endpoint->zone;
    }

    return ngx_http_kube_value_copy(r, v, s.data, s.len);
}


static ngx_int_t
ngx_http_kube_generation_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                   *p;
    ngx_http_kube_request_t  *kr;

    v->not_found = 1;

    kr = ngx_http_kube_request(r, 0);
    if (kr == NULL || ngx_http_kube_instance_of(kr) == NULL) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_http_kube_value(v, p, (size_t) (ngx_sprintf(p, "%uL",
                        ngx_http_kube_instance_of(kr)->view->revision) - p));

    return NGX_OK;
}


/* The request's informer; where it has none, the default one. */

static ngx_kube_informer_t *
ngx_http_kube_informer_of(ngx_http_request_t *r)
{
    ngx_str_t                 name;
    ngx_kube_conf_t          *kcf;
    ngx_http_kube_request_t  *kr;

    kr = ngx_http_kube_request(r, 0);
    if (kr != NULL && kr->informer != NULL) {
        return kr->informer;
    }

    kcf = ngx_kube_get_conf(ngx_cycle);
    ngx_str_set(&name, "default");

    return ngx_kube_informer_find(kcf, &name);
}


static ngx_int_t
ngx_http_kube_age_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char               *p;
    kube_health_t         health;
    ngx_kube_informer_t  *informer;

    v->not_found = 1;

    informer = ngx_http_kube_informer_of(r);
    if (informer == NULL) {
        return NGX_OK;
    }

    ngx_kube_informer_health(informer, &health);

    if (health.age_ms == UINT64_MAX) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_INT64_LEN + 4);
    if (p == NULL) {
        return NGX_ERROR;
    }

    ngx_http_kube_value(v, p, (size_t) (ngx_sprintf(p, "%uL.%03uL",
                                        health.age_ms / 1000,
                                        health.age_ms % 1000) - p));

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_synced_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    kube_health_t         health;
    ngx_kube_informer_t  *informer;

    v->not_found = 1;

    informer = ngx_http_kube_informer_of(r);
    if (informer == NULL) {
        return NGX_OK;
    }

    ngx_kube_informer_health(informer, &health);

    ngx_http_kube_value(v, (u_char *) (health.synced ? "1" : "0"), 1);

    return NGX_OK;
}


char *
ngx_http_kube_resolve(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_loc_conf_t *klcf = conf;

    ngx_str_t                *value;
    ngx_http_kube_resolve_t  *resolve;

    value = cf->args->elts;

    if (klcf->resolves == NULL) {
        klcf->resolves = ngx_array_create(cf->pool, 2,
                                          sizeof(ngx_http_kube_resolve_t));
        if (klcf->resolves == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    resolve = ngx_array_push(klcf->resolves);
    if (resolve == NULL) {
        return NGX_CONF_ERROR;
    }

    resolve->kscf = ngx_http_kube_resolve_key(cf);
    if (resolve->kscf == NULL) {
        return NGX_CONF_ERROR;
    }

    resolve->index = ngx_http_kube_resolve_name(cf, &value[1]);
    if (resolve->index == NGX_ERROR) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* The key and its parameters; NULL: logged. */

static ngx_http_kube_srv_conf_t *
ngx_http_kube_resolve_key(ngx_conf_t *cf)
{
    ngx_int_t                  rc;
    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_http_kube_srv_conf_t  *kscf;

    kscf = ngx_pcalloc(cf->pool, sizeof(ngx_http_kube_srv_conf_t));
    if (kscf == NULL) {
        return NULL;
    }

    kscf->use = ngx_pcalloc(cf->pool, sizeof(ngx_kube_use_t));
    if (kscf->use == NULL) {
        return NULL;
    }

    value = cf->args->elts;

    for (i = 3; i < cf->args->nelts; i++) {

        rc = ngx_kube_use_parameter(cf, kscf->use, &value[i]);

        if (rc == NGX_DECLINED) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\" of kube_resolve: "
                               "expected informer=, namespaces=, form=dns, "
                               "family=, terminating=, unsynced= or empty=",
                               &value[i]);
        }

        if (rc != NGX_OK) {
            return NULL;
        }
    }

    if (ngx_http_kube_key(cf, kscf, &value[2]) != NGX_OK) {
        return NULL;
    }

    ngx_http_kube_instances_init(kscf);

    return kscf;
}


/* The variable's index; NGX_ERROR: logged. */

static ngx_int_t
ngx_http_kube_resolve_name(ngx_conf_t *cf, ngx_str_t *value)
{
    ngx_int_t             index;
    ngx_str_t             name;
    ngx_http_variable_t  *var;

    if (value->len < 2 || value->data[0] != '$') {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid variable \"%V\": expected "
                           "\"kube_resolve $variable key\"", value);
        return NGX_ERROR;
    }

    name.data = value->data + 1;
    name.len = value->len - 1;

    var = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_CHANGEABLE);
    if (var == NULL) {
        return NGX_ERROR;
    }

    if (var->get_handler != NULL
        && var->get_handler != ngx_http_kube_resolve_variable)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "variable \"$%V\" is defined by something else: "
                           "choose another name", &name);
        return NGX_ERROR;
    }

    index = ngx_http_get_variable_index(cf, &name);
    if (index == NGX_ERROR) {
        return NGX_ERROR;
    }

    var->get_handler = ngx_http_kube_resolve_variable;
    var->data = (uintptr_t) index;

    return index;
}


static ngx_int_t
ngx_http_kube_resolve_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_uint_t                 i;
    ngx_http_kube_resolve_t   *resolve;
    ngx_http_kube_loc_conf_t  *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);

    for ( /* void */ ; klcf != NULL; klcf = klcf->parent) {

        if (klcf->resolves == NULL) {
            continue;
        }

        resolve = klcf->resolves->elts;

        for (i = klcf->resolves->nelts; i != 0; i--) {
            if (resolve[i - 1].index == (ngx_int_t) data) {
                return ngx_http_kube_resolve_pick(r, resolve[i - 1].kscf, v);
            }
        }
    }

    ngx_http_kube_value(v, NULL, 0);

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_resolve_pick(ngx_http_request_t *r,
    ngx_http_kube_srv_conf_t *kscf, ngx_http_variable_value_t *v)
{
    u_char                    *p;
    size_t                     len;
    ngx_str_t                  key;
    socklen_t                  socklen;
    ngx_sockaddr_t             sa;
    kube_resolve_error_t       error;
    ngx_kube_endpoint_t       *ep;
    ngx_http_kube_request_t   *kr;
    ngx_http_kube_instance_t  *inst;

    kr = ngx_http_kube_request(r, 1);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    key = kscf->use->key_text;

    if (!kscf->use->is_static
        && ngx_http_complex_value(r, &kscf->key, &key) != NGX_OK)
    {
        return NGX_ERROR;
    }

    inst = ngx_http_kube_instance_get(kscf, &key, r->connection->log,
                                      &error);

    ngx_kube_count(kscf->use->informer, NGX_KUBE_COUNT_RESOLVED(error));

    ngx_http_kube_value(v, NULL, 0);

    /* a balancer at work for this request has the first word */

    if (kr->instance == NULL) {
        kr->kscf = kscf;
        kr->informer = kscf->use->informer;
        kr->key = key;
        kr->error = error;
        kr->endpoint = NULL;

        if (kr->resolved != NULL) {
            ngx_http_kube_instance_release(kr->resolved);
        }

        kr->resolved = inst;

        if (inst != NULL) {
            inst->refs++;
        }
    }

    if (inst == NULL || inst->view->n == 0) {
        ngx_kube_log_unresolved(kscf->use->informer, r->connection->log,
                                error, &key);
        return NGX_OK;
    }

    ep = &inst->view->endpoints[inst->next++ % inst->view->n];

    if (ngx_kube_sockaddr(ep, &sa, &socklen) != NGX_OK) {
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, NGX_SOCKADDR_STRLEN);
    if (p == NULL) {
        return NGX_ERROR;
    }

    len = ngx_sock_ntop(&sa.sockaddr, socklen, p, NGX_SOCKADDR_STRLEN, 1);

    if (kr->instance == NULL) {
        kr->endpoint = ep;
    }

    ngx_http_kube_value(v, p, len);

    return NGX_OK;
}

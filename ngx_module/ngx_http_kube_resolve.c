/*
 * ngx_http_kube_resolve - kube_resolve's variable, over views alone.
 *
 * The value is never kept in r->variables: a request and its subrequests share
 * those, and each location may have a kube_resolve of its own.  What was picked
 * is remembered per request and directive instead, so that a request sees one
 * endpoint however often the variable is used.
 *
 * Endpoints are taken in turn, per worker, directive and Service, beginning
 * anywhere.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_request.h"
#include "ngx_http_kube_resolve.h"


static ngx_int_t ngx_http_kube_resolve_name(ngx_conf_t *cf, ngx_str_t *value,
    ngx_int_t *index);
static ngx_int_t ngx_http_kube_resolve_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static ngx_http_kube_resolve_t *ngx_http_kube_resolve_find(
    ngx_http_request_t *r, ngx_int_t index);
static ngx_http_kube_resolution_t *ngx_http_kube_resolve_pick(
    ngx_http_kube_request_t *kr, ngx_http_kube_resolve_t *resolve,
    ngx_str_t *text);
static ngx_int_t ngx_http_kube_resolve_address(ngx_http_request_t *r,
    ngx_kube_endpoint_t *endpoint, ngx_str_t *value);


char *
ngx_http_kube_resolve(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_loc_conf_t *klcf = conf;

    ngx_int_t                  index;
    ngx_str_t                 *value;
    ngx_uint_t                 i;
    ngx_kube_ref_t            *ref;
    ngx_kube_parameters_t      own;
    ngx_http_kube_resolve_t  **slot, *resolve;

    value = cf->args->elts;

    if (ngx_http_kube_resolve_name(cf, &value[1], &index) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (klcf->resolves == NULL) {
        klcf->resolves = ngx_array_create(cf->pool, 2, sizeof(void *));
        if (klcf->resolves == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    /* the last of two would be used, and the other one never */

    slot = klcf->resolves->elts;

    for (i = 0; i < klcf->resolves->nelts; i++) {
        if (slot[i]->index == index) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "\"kube_resolve %V\" is duplicate",
                               &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    /* not in the array itself: views and requests point to it */

    slot = ngx_array_push(klcf->resolves);
    resolve = ngx_pcalloc(cf->pool, sizeof(ngx_http_kube_resolve_t));
    ref = ngx_kube_ref_create(cf, "variable", &value[1]);

    if (slot == NULL || resolve == NULL || ref == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = resolve;
    resolve->index = index;
    resolve->key.ref = ref;

    own.table = NULL;
    own.conf = NULL;

    if (ngx_http_kube_key_parse(cf, &resolve->key, 2, &own) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/*
 * Registers the variable, without a handler until all of http {} was read:
 * whoever else defines it sets one, and is found by it.
 */

static ngx_int_t
ngx_http_kube_resolve_name(ngx_conf_t *cf, ngx_str_t *value, ngx_int_t *index)
{
    ngx_str_t                   name;
    ngx_uint_t                  i;
    ngx_http_variable_t        *var;
    ngx_http_kube_resolved_t   *resolved;
    ngx_http_kube_main_conf_t  *kmcf;

    /* $1 is what a regular expression captured, whoever defines a "1" */

    if (value->len < 2 || value->data[0] != '$'
        || (value->data[1] >= '0' && value->data[1] <= '9'))
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid variable \"%V\": expected "
                           "\"kube_resolve $variable key\"", value);
        return NGX_ERROR;
    }

    name.data = value->data + 1;
    name.len = value->len - 1;

    var = ngx_http_add_variable(cf, &name, NGX_HTTP_VAR_CHANGEABLE
                                           |NGX_HTTP_VAR_NOCACHEABLE);
    if (var == NULL) {
        return NGX_ERROR;
    }

    if (var->get_handler != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "variable \"$%V\" of kube_resolve is defined "
                           "above by something else (\"set\", \"map\", "
                           "\"geo\" or the like): choose another name", &name);
        return NGX_ERROR;
    }

    *index = ngx_http_get_variable_index(cf, &name);
    if (*index == NGX_ERROR) {
        return NGX_ERROR;
    }

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kube_module);
    resolved = kmcf->resolved.elts;

    for (i = 0; i < kmcf->resolved.nelts; i++) {
        if (resolved[i].index == *index) {
            return NGX_OK;
        }
    }

    resolved = ngx_array_push(&kmcf->resolved);
    if (resolved == NULL) {
        return NGX_ERROR;
    }

    resolved->name = var->name;
    resolved->index = *index;
    resolved->file = cf->conf_file->file.name;
    resolved->line = cf->conf_file->line;

    return NGX_OK;
}


ngx_int_t
ngx_http_kube_resolve_finish(ngx_conf_t *cf, ngx_http_kube_main_conf_t *kmcf)
{
    ngx_uint_t                 i;
    ngx_http_variable_t       *var;
    ngx_http_kube_resolved_t  *resolved;

    resolved = kmcf->resolved.elts;

    for (i = 0; i < kmcf->resolved.nelts; i++) {

        var = ngx_http_add_variable(cf, &resolved[i].name,
                                    NGX_HTTP_VAR_CHANGEABLE);
        if (var == NULL) {
            return NGX_ERROR;
        }

        if (var->get_handler != NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "variable \"$%V\" is defined twice: by kube_resolve "
                          "in %V:%ui, and behind it by something else "
                          "(\"set\", \"map\", \"geo\" or the like): choose "
                          "another name for one of them", &resolved[i].name,
                          &resolved[i].file, resolved[i].line);
            return NGX_ERROR;
        }

        var->get_handler = ngx_http_kube_resolve_variable;
        var->data = (uintptr_t) resolved[i].index;
        var->flags |= NGX_HTTP_VAR_NOCACHEABLE;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_resolve_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_int_t                    rc;
    ngx_str_t                    text;
    ngx_http_kube_resolve_t     *resolve;
    ngx_http_kube_request_t     *kr;
    ngx_http_kube_resolution_t  *resolution;

    v->valid = 1;
    v->no_cacheable = 1;
    v->not_found = 0;
    v->len = 0;
    v->data = NULL;

    resolve = ngx_http_kube_resolve_find(r, (ngx_int_t) data);
    if (resolve == NULL) {
        return NGX_OK;
    }

    /* nginx would go on to a depth of 100, twice on each level */

    if (resolve->evaluated) {
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                      "cycle while evaluating variable \"%V\" of kube_resolve "
                      "in %V:%ui", &resolve->key.ref->name,
                      &resolve->key.ref->file, resolve->key.ref->line);
        return NGX_ERROR;
    }

    resolve->evaluated = 1;
    rc = ngx_http_kube_key_evaluate(r, &resolve->key, &text);
    resolve->evaluated = 0;

    if (rc != NGX_OK) {
        return NGX_ERROR;
    }

    kr = ngx_http_kube_request(r, 1);
    if (kr == NULL) {
        return NGX_ERROR;
    }

    resolution = ngx_http_kube_resolve_pick(kr, resolve, &text);
    if (resolution == NULL) {
        return NGX_ERROR;
    }

    /* a balancer at work in this location has the first word */

    if (kr->shown != &kr->balancing.pick
        || kr->balancing.location != r->loc_conf)
    {
        kr->shown = &resolution->pick;
    }

    v->len = (unsigned) resolution->value.len;
    v->data = resolution->value.data;

    return NGX_OK;
}


/* The last line for the variable, in the location or the nearest around it. */

static ngx_http_kube_resolve_t *
ngx_http_kube_resolve_find(ngx_http_request_t *r, ngx_int_t index)
{
    ngx_uint_t                  i;
    ngx_http_kube_resolve_t   **resolves;
    ngx_http_kube_loc_conf_t   *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);

    for ( /* void */ ; klcf != NULL; klcf = klcf->parent) {

        if (klcf->resolves == NULL) {
            continue;
        }

        resolves = klcf->resolves->elts;

        for (i = klcf->resolves->nelts; i != 0; i--) {
            if (resolves[i - 1]->index == index) {
                return resolves[i - 1];
            }
        }
    }

    return NULL;
}


/* What the request has picked already, for the same key; else a new pick. */

static ngx_http_kube_resolution_t *
ngx_http_kube_resolve_pick(ngx_http_kube_request_t *kr,
    ngx_http_kube_resolve_t *resolve, ngx_str_t *text)
{
    const ngx_str_t             *before;
    ngx_kube_view_t             *view;
    ngx_http_request_t          *r;
    ngx_kube_endpoint_t         *endpoint;
    ngx_http_kube_resolution_t  *resolution;

    r = kr->request;

    for (resolution = kr->resolutions; resolution != NULL;
         resolution = resolution->next)
    {
        if (resolution->resolve != resolve) {
            continue;
        }

        before = ngx_http_kube_pick_text(&resolution->pick);

        if (before->len == text->len
            && ngx_memcmp(before->data, text->data, text->len) == 0)
        {
            return resolution;
        }
    }

    resolution = ngx_pcalloc(r->pool, sizeof(ngx_http_kube_resolution_t));
    if (resolution == NULL) {
        return NULL;
    }

    resolution->resolve = resolve;
    resolution->pick.pool = r->pool;

    ngx_http_kube_key_resolve(r, &resolve->key, text, 0, &resolution->pick);

    resolution->next = kr->resolutions;
    kr->resolutions = resolution;

    view = resolution->pick.view;

    if (view == NULL || view->n == 0) {
        (void) ngx_kube_unresolved(resolve->key.ref, r->connection->log,
                                   resolution->pick.error, text, "");
        ngx_http_kube_pick_leave(&resolution->pick);
        return resolution;
    }

    endpoint = &view->endpoints[view->turn++ % view->n];

    if (ngx_http_kube_resolve_address(r, endpoint, &resolution->value)
        != NGX_OK)
    {
        return NULL;
    }

    ngx_http_kube_pick_note(&resolution->pick, endpoint);
    ngx_http_kube_pick_release(&resolution->pick);

    return resolution;
}


static ngx_int_t
ngx_http_kube_resolve_address(ngx_http_request_t *r,
    ngx_kube_endpoint_t *endpoint, ngx_str_t *value)
{
    size_t  len;
    u_char  text[NGX_SOCKADDR_STRLEN];

    len = ngx_kube_endpoint_text(endpoint, text);
    if (len == 0) {
        return NGX_OK;
    }

    value->data = ngx_pnalloc(r->pool, len);
    if (value->data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(value->data, text, len);
    value->len = len;

    return NGX_OK;
}

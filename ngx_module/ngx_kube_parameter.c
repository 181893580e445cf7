/*
 * ngx_kube_parameter - finds the row of a parameter and calls its setter.
 *
 * It judges no value.  Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_parameter.h"

#include "kube_version.h"


#define NGX_KUBE_NAMES_MAX  512


static ngx_int_t ngx_kube_parameter_set(ngx_conf_t *cf,
    const ngx_kube_parameter_t *p, ngx_str_t *parameter, void *conf);
static const ngx_kube_parameter_t *ngx_kube_parameter_find(
    const ngx_kube_parameter_t *table, ngx_str_t *parameter);
static void ngx_kube_parameter_unknown(ngx_conf_t *cf, ngx_str_t *parameter,
    const ngx_kube_parameters_t *sets, ngx_uint_t n);


ngx_int_t
ngx_kube_parameters_set(ngx_conf_t *cf, ngx_uint_t first,
    const ngx_kube_parameters_t *sets, ngx_uint_t n)
{
    ngx_str_t                   *value;
    ngx_uint_t                   i, k;
    const ngx_kube_parameter_t  *p;

    value = cf->args->elts;

    for (i = first; i < cf->args->nelts; i++) {

        p = NULL;

        for (k = 0; k < n; k++) {
            p = ngx_kube_parameter_find(sets[k].table, &value[i]);

            if (p != NULL) {
                break;
            }
        }

        if (p == NULL) {
            ngx_kube_parameter_unknown(cf, &value[i], sets, n);
            return NGX_ERROR;
        }

        if (ngx_kube_parameter_set(cf, p, &value[i], sets[k].conf) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static const ngx_kube_parameter_t *
ngx_kube_parameter_find(const ngx_kube_parameter_t *table,
    ngx_str_t *parameter)
{
    for ( /* void */ ; table->name.len; table++) {
        if (parameter->len >= table->name.len
            && ngx_strncmp(parameter->data, table->name.data, table->name.len)
               == 0
            && (parameter->len == table->name.len
                || parameter->data[table->name.len] == '='))
        {
            return table;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_kube_parameter_set(ngx_conf_t *cf, const ngx_kube_parameter_t *p,
    ngx_str_t *parameter, void *conf)
{
    char           *rv;
    ngx_str_t       words[2], *directive;
    ngx_array_t     args, *saved;
    ngx_command_t   cmd;

    words[0] = p->name;
    words[1].data = parameter->data + p->name.len;
    words[1].len = parameter->len - p->name.len;

    if (words[1].len != 0) {

        /* what follows "=" */

        words[1].data++;
        words[1].len--;
    }

    ngx_memzero(&args, sizeof(ngx_array_t));
    args.elts = words;
    args.nelts = 2;

    ngx_memzero(&cmd, sizeof(ngx_command_t));
    cmd.name = p->name;
    cmd.offset = p->offset;
    cmd.post = p->post;

    saved = cf->args;
    cf->args = &args;

    rv = p->set(cf, &cmd, conf);

    cf->args = saved;

    if (rv == NGX_CONF_OK) {
        return NGX_OK;
    }

    if (rv != NGX_CONF_ERROR) {
        directive = saved->elts;

        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid parameter \"%V\" of %V: %s; expected %s",
                           parameter, directive, rv, p->expected);
    }

    return NGX_ERROR;
}


static void
ngx_kube_parameter_unknown(ngx_conf_t *cf, ngx_str_t *parameter,
    const ngx_kube_parameters_t *sets, ngx_uint_t n)
{
    u_char                      *p, names[NGX_KUBE_NAMES_MAX];
    ngx_str_t                   *directive;
    ngx_uint_t                   i;
    const ngx_kube_parameter_t  *row;

    p = names;

    for (i = 0; i < n; i++) {
        for (row = sets[i].table; row->name.len; row++) {
            if (row->set != ngx_kube_parameter_planned) {
                p = ngx_slprintf(p, names + sizeof(names), "%s%V=",
                                 p == names ? "" : ", ", &row->name);
            }
        }
    }

    directive = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" of %V: expected %*s",
                       parameter, directive, p - names, names);
}


char *
ngx_kube_parameter_word(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t        *value;
    ngx_uint_t       *field, i;
    ngx_conf_enum_t  *words;

    value = cf->args->elts;
    words = cmd->post;
    field = (ngx_uint_t *) ((char *) conf + cmd->offset);

    if (*field != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    for (i = 0; words[i].name.len; i++) {
        if (words[i].name.len == value[1].len
            && ngx_strncmp(words[i].name.data, value[1].data, value[1].len)
               == 0)
        {
            *field = words[i].value;
            return NGX_CONF_OK;
        }
    }

    return "unknown value";
}


char *
ngx_kube_parameter_planned(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_str_t  *value;

    value = cf->args->elts;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "unknown parameter \"%V%s%V\": it is planned, but "
                       "version " KUBE_VERSION " does not have it; remove it",
                       &value[0], value[1].len ? "=" : "", &value[1]);

    return NGX_CONF_ERROR;
}

/*
 * ngx_kube_parameter - the name=value parameters of a directive, as tables of
 * the kind that nginx has for directives: a row names a setter, which may be
 * one of nginx's own slots, and the field it sets.
 *
 * It knows no parameter itself.  Called by directives' handlers.
 * Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_PARAMETER_H
#define NGX_KUBE_PARAMETER_H


#include <ngx_config.h>
#include <ngx_core.h>


/*
 * set is called as for a directive "name value;".  It may log and return
 * NGX_CONF_ERROR, or return what is wrong as a text.  A table ends with a row
 * without a name.
 */
typedef struct {
    ngx_str_t     name;           /* without "=" */
    char       *(*set)(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
    ngx_uint_t    offset;
    void         *post;
    const char   *expected;       /* what would be right, for messages */
} ngx_kube_parameter_t;

/* A table, and the struct whose fields it sets. */
typedef struct {
    const ngx_kube_parameter_t  *table;
    void                        *conf;
} ngx_kube_parameters_t;


/* Sets the arguments of a directive from number first on; NGX_ERROR: logged. */
ngx_int_t ngx_kube_parameters_set(ngx_conf_t *cf, ngx_uint_t first,
    const ngx_kube_parameters_t *sets, ngx_uint_t n);

/* A setter: one of the words of post, an ngx_conf_enum_t[], as ngx_uint_t. */
char *ngx_kube_parameter_word(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* A setter: refuses a parameter that a later version will have. */
char *ngx_kube_parameter_planned(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


#endif /* NGX_KUBE_PARAMETER_H */

/*
 * ngx_kube_refs - the directives that resolve keys: what kube_service and
 * kube_resolve have in common, and the informers that are named by a name.
 *
 * A ref (Gateway API would say backendRef) is registered while the file is
 * parsed and tied to its informer when the whole file was read, for a
 * kube_informer block may stand behind http {}.  It resolves nothing: views do
 * (ngx_kube_view.h).  Configuration time only, but for reading.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_REFS_H
#define NGX_KUBE_REFS_H


#include "ngx_kube.h"
#include "ngx_kube_parameter.h"

#include "kube_resolver.h"
#include "kube_status_json.h"


/* The lines of a log about one reason that were held back in this worker. */
typedef struct {
    ngx_msec_t            last;           /* when one was written */
    ngx_uint_t            held;           /* since then */
    unsigned              written:1;
} ngx_kube_ref_log_t;

/* Lives in the pool of the configuration. */
typedef struct {
    ngx_kube_informer_t  *informer;       /* once the file was read */
    ngx_str_t             informer_name;  /* informer= */
    ngx_str_t             file;           /* where the directive stands */
    ngx_uint_t            line;
    ngx_str_t             directive;
    const char           *kind;           /* "upstream" or "variable" */
    ngx_str_t             name;           /* of that */
    ngx_str_t             expression;     /* the key as it was written */

    kube_key_t            key;            /* of a static key */
    ngx_str_t             key_text;       /* the same, canonical */
    unsigned              is_static:1;

    ngx_array_t          *namespaces;     /* kube_str_t: namespaces= */

    /* parameters that are words: values of the tables in ngx_kube_refs.c */
    ngx_uint_t            form;
    ngx_uint_t            family;
    ngx_uint_t            terminating;
    ngx_uint_t            unsynced;
    ngx_uint_t            empty;

    kube_resolver_t       resolver;       /* once the file was read */
    ngx_kube_ref_log_t    log[KUBE_RESOLVE_ERRORS];
    kube_status_kept_t    kept;           /* of a static key, in this worker */
} ngx_kube_ref_t;


/* The parameters that every directive with a key has; conf is the ref. */
extern const ngx_kube_parameter_t  ngx_kube_ref_parameters[];

/*
 * A ref of the directive that is being parsed, of the kind and name given;
 * NULL: no memory.
 */
ngx_kube_ref_t *ngx_kube_ref_create(ngx_conf_t *cf, const char *kind,
    ngx_str_t *name);

/*
 * Registers a ref whose parameters are set.  key is as written; is_static:
 * without variables.  NGX_ERROR: no memory, or a bad static key (logged).
 */
ngx_int_t ngx_kube_ref_add(ngx_conf_t *cf, ngx_kube_ref_t *ref,
    ngx_str_t *key, ngx_uint_t is_static);

/* Has it checked, once the file was read, that there is such an informer. */
ngx_int_t ngx_kube_ref_informer(ngx_conf_t *cf, ngx_str_t *name);

/* Ties refs to informers once the file was read; NGX_ERROR: logged. */
ngx_int_t ngx_kube_refs_finish(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf);


#endif /* NGX_KUBE_REFS_H */

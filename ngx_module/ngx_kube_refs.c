/*
 * ngx_kube_refs - keys and parameters that kube_service and kube_resolve
 * share, and the tie to informers once the whole file was read.
 *
 * What a key may name is decided here once, for the whole life of the
 * configuration; whether it does is asked of src/route per request.
 * Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_refs.h"


static char *ngx_kube_ref_namespaces(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
static char *ngx_kube_ref_not_empty(ngx_conf_t *cf, void *post, void *data);
static ngx_int_t ngx_kube_ref_push(ngx_conf_t *cf, ngx_kube_ref_t *ref);
static ngx_int_t ngx_kube_ref_static(ngx_conf_t *cf, ngx_kube_ref_t *ref,
    ngx_str_t *key);
static ngx_int_t ngx_kube_ref_tie(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf,
    ngx_kube_ref_t *ref);
static ngx_int_t ngx_kube_ref_room(ngx_cycle_t *cycle, ngx_kube_ref_t *ref);
static ngx_int_t ngx_kube_ref_allowed(ngx_cycle_t *cycle,
    ngx_kube_ref_t *ref);
static ngx_int_t ngx_kube_namespaces_auto(ngx_cycle_t *cycle,
    ngx_kube_informer_t *informer);


static ngx_conf_enum_t  ngx_kube_forms[] = {
    { ngx_string("dns"), 1 },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_kube_families[] = {
    { ngx_string("any"), KUBE_SELECT_FAMILY_ANY },
    { ngx_string("ipv4"), KUBE_SELECT_FAMILY_IPV4 },
    { ngx_string("ipv6"), KUBE_SELECT_FAMILY_IPV6 },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_kube_terminating[] = {
    { ngx_string("fallback"), 0 },
    { ngx_string("never"), 1 },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_kube_unsynced[] = {
    { ngx_string("state"), 0 },
    { ngx_string("fail"), 1 },
    { ngx_null_string, 0 }
};

static ngx_conf_enum_t  ngx_kube_empty[] = {
    { ngx_string("fail"), 0 },
    { ngx_null_string, 0 }
};

static ngx_conf_post_t  ngx_kube_not_empty = { ngx_kube_ref_not_empty };


#define ngx_kube_ref_field(name)  offsetof(ngx_kube_ref_t, name)

const ngx_kube_parameter_t  ngx_kube_ref_parameters[] = {

    { ngx_string("informer"), ngx_conf_set_str_slot,
      ngx_kube_ref_field(informer_name), &ngx_kube_not_empty,
      "informer= with the name of a kube_informer block" },

    { ngx_string("namespaces"), ngx_kube_ref_namespaces,
      ngx_kube_ref_field(namespaces), NULL,
      "namespaces= with names of lower case letters, digits and \"-\", "
      "separated by commas" },

    { ngx_string("form"), ngx_kube_parameter_word,
      ngx_kube_ref_field(form), ngx_kube_forms, "form=dns" },

    { ngx_string("family"), ngx_kube_parameter_word,
      ngx_kube_ref_field(family), ngx_kube_families,
      "family=ipv4, ipv6 or any" },

    { ngx_string("terminating"), ngx_kube_parameter_word,
      ngx_kube_ref_field(terminating), ngx_kube_terminating,
      "terminating=fallback or never" },

    { ngx_string("unsynced"), ngx_kube_parameter_word,
      ngx_kube_ref_field(unsynced), ngx_kube_unsynced,
      "unsynced=state or fail" },

    { ngx_string("empty"), ngx_kube_parameter_word,
      ngx_kube_ref_field(empty), ngx_kube_empty, "empty=fail" },

    { ngx_string("services"), ngx_kube_parameter_planned, 0, NULL, NULL },
    { ngx_string("require_label"), ngx_kube_parameter_planned, 0, NULL, NULL },
    { ngx_string("topology"), ngx_kube_parameter_planned, 0, NULL, NULL },

    { ngx_null_string, NULL, 0, NULL, NULL }
};


ngx_kube_ref_t *
ngx_kube_ref_create(ngx_conf_t *cf, const char *kind, ngx_str_t *name)
{
    ngx_str_t       *value;
    ngx_kube_ref_t  *ref;

    ref = ngx_pcalloc(cf->pool, sizeof(ngx_kube_ref_t));
    if (ref == NULL) {
        return NULL;
    }

    value = cf->args->elts;

    ref->directive = value[0];
    ref->kind = kind;
    ref->name = *name;
    ref->file = cf->conf_file->file.name;
    ref->line = cf->conf_file->line;
    ref->form = NGX_CONF_UNSET_UINT;
    ref->family = NGX_CONF_UNSET_UINT;
    ref->terminating = NGX_CONF_UNSET_UINT;
    ref->unsynced = NGX_CONF_UNSET_UINT;
    ref->empty = NGX_CONF_UNSET_UINT;

    return ref;
}


static char *
ngx_kube_ref_not_empty(ngx_conf_t *cf, void *post, void *data)
{
    ngx_str_t  *value = data;

    return value->len != 0 ? NGX_CONF_OK : "the value is empty";
}


static char *
ngx_kube_ref_namespaces(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_kube_ref_t *ref = conf;

    u_char      *p, *last, *comma;
    kube_str_t   ns, *slot, *named;
    ngx_str_t   *value;
    ngx_uint_t   i;

    if (ref->namespaces != NULL) {
        return "is duplicate";
    }

    ref->namespaces = ngx_array_create(cf->pool, 4, sizeof(kube_str_t));
    if (ref->namespaces == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;
    p = value[1].data;
    last = p + value[1].len;

    for ( ;; ) {

        comma = ngx_strlchr(p, last, ',');
        ns.data = (char *) p;
        ns.len = (size_t) ((comma ? comma : last) - p);

        if (!kube_name_is_label(ns)) {
            return "invalid namespace";
        }

        /* words of the block's "namespaces": no namespace could be meant */

        if (kube_str_eq(ns, kube_str("all"))
            || kube_str_eq(ns, kube_str("auto")))
        {
            return "each namespace has to be named here";
        }

        named = ref->namespaces->elts;

        for (i = 0; i < ref->namespaces->nelts; i++) {
            if (kube_str_eq(named[i], ns)) {
                return "a namespace is named twice";
            }
        }

        slot = ngx_array_push(ref->namespaces);
        if (slot == NULL) {
            return NGX_CONF_ERROR;
        }

        *slot = ns;

        if (comma == NULL) {
            return NGX_CONF_OK;
        }

        p = comma + 1;
    }
}


static ngx_int_t
ngx_kube_ref_push(ngx_conf_t *cf, ngx_kube_ref_t *ref)
{
    ngx_kube_ref_t   **slot;
    ngx_kube_conf_t   *kcf;

    kcf = ngx_kube_get_conf(cf->cycle);

    slot = ngx_array_push(&kcf->refs);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = ref;

    if (ref->informer_name.len == 0) {
        ngx_str_set(&ref->informer_name, "default");
    }

    return NGX_OK;
}


ngx_int_t
ngx_kube_ref_add(ngx_conf_t *cf, ngx_kube_ref_t *ref, ngx_str_t *key,
    ngx_uint_t is_static)
{
    ref->expression = *key;

    ngx_conf_init_uint_value(ref->form, 0);
    ngx_conf_init_uint_value(ref->family, KUBE_SELECT_FAMILY_OWN);
    ngx_conf_init_uint_value(ref->terminating, 0);
    ngx_conf_init_uint_value(ref->unsynced, 0);

    ref->resolver.dns = ref->form != 0;
    ref->resolver.unsynced_fail = ref->unsynced != 0;
    ref->resolver.select.family = (kube_select_family_t) ref->family;
    ref->resolver.select.terminating_never = ref->terminating != 0;

    if (is_static && ngx_kube_ref_static(cf, ref, key) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_kube_ref_push(cf, ref);
}


static ngx_int_t
ngx_kube_ref_static(ngx_conf_t *cf, ngx_kube_ref_t *ref, ngx_str_t *key)
{
    kube_error_t  error;
    char          canonical[KUBE_KEY_TEXT_MAX];

    if (kube_key_parse(ngx_kube_str(key), true, &ref->key, &error) != KUBE_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid key \"%V\": %s; expected "
                           "\"namespace/service[:port]\" or "
                           "\"service.namespace[.svc][:port]\", names of lower "
                           "case letters, digits and \"-\", 63 of them at most",
                           key, error.what);
        return NGX_ERROR;
    }

    ref->is_static = 1;

    ref->key_text.len = kube_key_text(&ref->key, canonical);
    ref->key_text.data = ngx_pnalloc(cf->pool, ref->key_text.len);
    if (ref->key_text.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(ref->key_text.data, canonical, ref->key_text.len);

    return NGX_OK;
}


ngx_int_t
ngx_kube_ref_informer(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_kube_ref_t  *ref;

    ref = ngx_kube_ref_create(cf, "kube_informer", name);
    if (ref == NULL) {
        return NGX_ERROR;
    }

    ref->informer_name = *name;

    return ngx_kube_ref_push(cf, ref);
}


ngx_int_t
ngx_kube_refs_finish(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf)
{
    ngx_uint_t             i;
    ngx_kube_ref_t       **refs;
    ngx_kube_informer_t  **informers;

    refs = kcf->refs.elts;
    informers = kcf->informers.elts;

    for (i = 0; i < kcf->refs.nelts; i++) {
        if (ngx_kube_ref_tie(cycle, kcf, refs[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < kcf->informers.nelts; i++) {
        if (informers[i]->namespaces_mode == NGX_KUBE_NAMESPACES_AUTO
            && ngx_kube_namespaces_auto(cycle, informers[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    /* what is watched is known now, and limits what a key may name */

    for (i = 0; i < kcf->refs.nelts; i++) {
        if (refs[i]->expression.len != 0
            && ngx_kube_ref_allowed(cycle, refs[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_ref_tie(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf,
    ngx_kube_ref_t *ref)
{
    ngx_kube_ref_t  **slot;

    ref->informer = ngx_kube_informer_find(kcf, &ref->informer_name);

    if (ref->informer == NULL) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "no kube_informer \"%V\", which is needed in %V:%ui: "
                      "add a kube_informer block of that name beside http {}, "
                      "or name one that is there with \"informer=\"",
                      &ref->informer_name, &ref->file, ref->line);
        return NGX_ERROR;
    }

    if (ref->expression.len == 0) {
        return NGX_OK;
    }

    ref->resolver.zone = &ref->informer->zone;
    ref->resolver.select.policy = &ref->informer->policy;
    ref->resolver.select.seed = &ref->informer->zone.geometry.seed;

    slot = ngx_array_push(&ref->informer->refs);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = ref;

    return ref->is_static ? ngx_kube_ref_room(cycle, ref) : NGX_OK;
}


/* Notes "namespace/name" of a static key: such Services get room first. */

static ngx_int_t
ngx_kube_ref_room(ngx_cycle_t *cycle, ngx_kube_ref_t *ref)
{
    u_char      *p;
    size_t       len;
    kube_str_t   key, *keys;
    ngx_uint_t   i;

    len = ref->key.ns.len + 1 + ref->key.name.len;

    p = ngx_pnalloc(cycle->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    key.data = (char *) p;
    key.len = len;

    p = ngx_cpymem(p, ref->key.ns.data, ref->key.ns.len);
    *p++ = '/';
    ngx_memcpy(p, ref->key.name.data, ref->key.name.len);

    keys = ref->informer->static_keys.elts;

    for (i = 0; i < ref->informer->static_keys.nelts; i++) {
        if (kube_str_eq(keys[i], key)) {
            return NGX_OK;
        }
    }

    keys = ngx_array_push(&ref->informer->static_keys);
    if (keys == NULL) {
        return NGX_ERROR;
    }

    *keys = key;

    return NGX_OK;
}


/*
 * "namespaces auto": where every key is static, just their namespaces, which
 * a Role suffices for; all of them otherwise.
 */

static ngx_int_t
ngx_kube_namespaces_auto(ngx_cycle_t *cycle, ngx_kube_informer_t *informer)
{
    kube_str_t       *ns;
    ngx_uint_t        i, j, many;
    ngx_kube_ref_t  **refs;

    many = 0;
    refs = informer->refs.elts;

    for (i = 0; i < informer->refs.nelts; i++) {

        if (!refs[i]->is_static) {
            goto all;
        }

        ns = informer->namespaces.elts;

        for (j = 0; j < informer->namespaces.nelts; j++) {
            if (kube_str_eq(ns[j], refs[i]->key.ns)) {
                break;
            }
        }

        if (j < informer->namespaces.nelts) {
            continue;
        }

        if (j == NGX_KUBE_AUTO_NAMESPACES) {
            many = 1;
            continue;
        }

        ns = ngx_array_push(&informer->namespaces);
        if (ns == NULL) {
            return NGX_ERROR;
        }

        *ns = refs[i]->key.ns;
    }

    if (many) {

        /* with a Role in each none of them would be followed any more */

        ngx_log_error(NGX_LOG_WARN, cycle->log, 0,
                      "kube_informer \"%V\": keys name more than %d "
                      "namespaces, so all are watched, which takes a "
                      "ClusterRole: name those in \"namespaces\", or \"all\"",
                      &informer->name, NGX_KUBE_AUTO_NAMESPACES);

    } else if (informer->namespaces.nelts != 0) {
        return NGX_OK;
    }

all:

    informer->namespaces.nelts = 0;
    informer->namespaces_mode = NGX_KUBE_NAMESPACES_ALL;

    return NGX_OK;
}


/* Which namespaces a key may name: deny by default. */

static ngx_int_t
ngx_kube_ref_allowed(ngx_cycle_t *cycle, ngx_kube_ref_t *ref)
{
    size_t                i;
    kube_namespaces_t     watched, *allowed;
    ngx_kube_informer_t  *informer;

    informer = ref->informer;

    watched.all = (informer->namespaces.nelts == 0);
    watched.names = informer->namespaces.elts;
    watched.names_n = informer->namespaces.nelts;

    allowed = &ref->resolver.namespaces;
    *allowed = watched;

    if (ref->namespaces != NULL) {
        allowed->all = false;
        allowed->names = ref->namespaces->elts;
        allowed->names_n = ref->namespaces->nelts;
    }

    if (ref->is_static) {

        if (!kube_namespaces_allow(&watched, ref->key.ns)) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "namespace \"%*s\" of the key in %V:%ui is not "
                          "watched: add it to \"namespaces\" of "
                          "kube_informer \"%V\"",
                          ref->key.ns.len, ref->key.ns.data, &ref->file,
                          ref->line, &informer->name);
            return NGX_ERROR;
        }

        if (!kube_namespaces_allow(allowed, ref->key.ns)) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "the key in %V:%ui is in a namespace that its "
                          "\"namespaces=\" does not name",
                          &ref->file, ref->line);
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    if (allowed->all) {
        ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                      "a key with variables needs \"namespaces=a,b\" in "
                      "%V:%ui, for kube_informer \"%V\" watches all "
                      "namespaces and a client may choose the key",
                      &ref->file, ref->line, &informer->name);
        return NGX_ERROR;
    }

    for (i = 0; i < allowed->names_n; i++) {
        if (!kube_namespaces_allow(&watched, allowed->names[i])) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "\"namespaces=\" in %V:%ui names \"%*s\", which "
                          "kube_informer \"%V\" does not watch",
                          &ref->file, ref->line, allowed->names[i].len,
                          allowed->names[i].data, &informer->name);
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}

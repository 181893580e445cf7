/*
 * ngx_kube_use - those who resolve: keys and parameters that kube_service and
 * kube_resolve share, and the tie to their informers once the whole file was
 * read (a kube_informer block may stand behind http {}).
 *
 * Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"


static ngx_int_t ngx_kube_use_unbuilt(ngx_conf_t *cf, ngx_str_t *value);
static ngx_int_t ngx_kube_use_namespaces(ngx_conf_t *cf, ngx_kube_use_t *use,
    ngx_str_t *list);
static ngx_int_t ngx_kube_use_informer(ngx_cycle_t *cycle,
    ngx_kube_conf_t *kcf, ngx_kube_use_t *use);
static ngx_int_t ngx_kube_use_tie(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf,
    ngx_kube_use_t *use);
static ngx_int_t ngx_kube_use_allowed(ngx_cycle_t *cycle,
    ngx_kube_use_t *use);
static ngx_int_t ngx_kube_namespaces_auto(ngx_cycle_t *cycle,
    ngx_kube_informer_t *informer);
static ngx_int_t ngx_kube_static_key(ngx_cycle_t *cycle,
    ngx_kube_use_t *use);


typedef enum {
    NGX_KUBE_DNS = 0,
    NGX_KUBE_IPV4,
    NGX_KUBE_IPV6,
    NGX_KUBE_ANY_FAMILY,
    NGX_KUBE_TERMINATING_FALLBACK,
    NGX_KUBE_TERMINATING_NEVER,
    NGX_KUBE_UNSYNCED_STATE,
    NGX_KUBE_UNSYNCED_FAIL,
    NGX_KUBE_EMPTY_FAIL
} ngx_kube_word_e;


static void ngx_kube_use_word(ngx_kube_use_t *use, ngx_kube_word_e word);


/* Parameters that are one of a few words. */

static struct {
    ngx_str_t         text;
    ngx_kube_word_e   word;
} ngx_kube_words[] = {
    { ngx_string("form=dns"), NGX_KUBE_DNS },
    { ngx_string("family=ipv4"), NGX_KUBE_IPV4 },
    { ngx_string("family=ipv6"), NGX_KUBE_IPV6 },
    { ngx_string("family=any"), NGX_KUBE_ANY_FAMILY },
    { ngx_string("terminating=fallback"), NGX_KUBE_TERMINATING_FALLBACK },
    { ngx_string("terminating=never"), NGX_KUBE_TERMINATING_NEVER },
    { ngx_string("unsynced=state"), NGX_KUBE_UNSYNCED_STATE },
    { ngx_string("unsynced=fail"), NGX_KUBE_UNSYNCED_FAIL },
    { ngx_string("empty=fail"), NGX_KUBE_EMPTY_FAIL },
    { ngx_null_string, NGX_KUBE_EMPTY_FAIL }
};


/* Parameters known here, whatever their value. */

static ngx_str_t  ngx_kube_prefixes[] = {
    ngx_string("informer="),
    ngx_string("form="),
    ngx_string("family="),
    ngx_string("terminating="),
    ngx_string("unsynced="),
    ngx_string("empty="),
    ngx_null_string
};


/* Parameters of the interface that this version does not have. */

static ngx_str_t  ngx_kube_unbuilt[] = {
    ngx_string("services="),
    ngx_string("require_label="),
    ngx_string("topology="),
    ngx_null_string
};


#define ngx_kube_starts(value, prefix)                                        \
    ((value)->len >= sizeof(prefix) - 1                                       \
     && ngx_strncmp((value)->data, prefix, sizeof(prefix) - 1) == 0)


ngx_kube_informer_t *
ngx_kube_informer_find(ngx_kube_conf_t *kcf, ngx_str_t *name)
{
    ngx_uint_t             i;
    ngx_kube_informer_t  **informers;

    informers = kcf->informers.elts;

    for (i = 0; i < kcf->informers.nelts; i++) {
        if (informers[i]->name.len == name->len
            && ngx_strncmp(informers[i]->name.data, name->data, name->len)
               == 0)
        {
            return informers[i];
        }
    }

    return NULL;
}


ngx_int_t
ngx_kube_use_add(ngx_conf_t *cf, ngx_kube_use_t *use)
{
    ngx_kube_use_t   **slot;
    ngx_kube_conf_t   *kcf;

    kcf = ngx_kube_get_conf(cf->cycle);

    slot = ngx_array_push(&kcf->uses);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = use;

    use->file = cf->conf_file->file.name;
    use->line = cf->conf_file->line;

    if (use->informer_name.len == 0) {
        ngx_str_set(&use->informer_name, "default");
    }

    return NGX_OK;
}


ngx_int_t
ngx_kube_name_add(ngx_conf_t *cf, ngx_str_t *name)
{
    ngx_kube_use_t   *use;
    ngx_kube_conf_t  *kcf;

    kcf = ngx_kube_get_conf(cf->cycle);

    use = ngx_array_push(&kcf->names);
    if (use == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(use, sizeof(ngx_kube_use_t));

    use->informer_name = *name;
    use->file = cf->conf_file->file.name;
    use->line = cf->conf_file->line;

    return NGX_OK;
}


ngx_int_t
ngx_kube_use_parameter(ngx_conf_t *cf, ngx_kube_use_t *use, ngx_str_t *value)
{
    ngx_str_t   s;
    ngx_uint_t  i;

    if (ngx_kube_starts(value, "informer=") && value->len > 9) {
        use->informer_name.data = value->data + 9;
        use->informer_name.len = value->len - 9;

        return NGX_OK;
    }

    if (ngx_kube_starts(value, "namespaces=")) {
        s.data = value->data + 11;
        s.len = value->len - 11;

        return ngx_kube_use_namespaces(cf, use, &s);
    }

    for (i = 0; ngx_kube_words[i].text.len; i++) {
        if (value->len == ngx_kube_words[i].text.len
            && ngx_strncmp(value->data, ngx_kube_words[i].text.data,
                           value->len)
               == 0)
        {
            ngx_kube_use_word(use, ngx_kube_words[i].word);
            return NGX_OK;
        }
    }

    for (i = 0; ngx_kube_prefixes[i].len; i++) {
        if (value->len >= ngx_kube_prefixes[i].len
            && ngx_strncmp(value->data, ngx_kube_prefixes[i].data,
                           ngx_kube_prefixes[i].len)
               == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid parameter \"%V\": version "
                               KUBE_VERSION " knows informer=name, "
                               "namespaces=a,b, form=dns, "
                               "family=ipv4|ipv6|any, "
                               "terminating=fallback|never, "
                               "unsynced=state|fail, empty=fail", value);
            return NGX_ERROR;
        }
    }

    return ngx_kube_use_unbuilt(cf, value);
}


static void
ngx_kube_use_word(ngx_kube_use_t *use, ngx_kube_word_e word)
{
    switch (word) {

    case NGX_KUBE_DNS:
        use->resolver.dns = true;
        break;

    case NGX_KUBE_IPV4:
        use->resolver.select.family = KUBE_FAMILY_IPV4;
        break;

    case NGX_KUBE_IPV6:
        use->resolver.select.family = KUBE_FAMILY_IPV6;
        break;

    case NGX_KUBE_ANY_FAMILY:
        use->resolver.select.family = KUBE_FAMILY_NONE;
        break;

    case NGX_KUBE_TERMINATING_FALLBACK:
        use->resolver.select.terminating_never = false;
        break;

    case NGX_KUBE_TERMINATING_NEVER:
        use->resolver.select.terminating_never = true;
        break;

    case NGX_KUBE_UNSYNCED_STATE:
        use->resolver.unsynced_fail = false;
        break;

    case NGX_KUBE_UNSYNCED_FAIL:
        use->resolver.unsynced_fail = true;
        break;

    case NGX_KUBE_EMPTY_FAIL:
        break;
    }
}


static ngx_int_t
ngx_kube_use_unbuilt(ngx_conf_t *cf, ngx_str_t *value)
{
    ngx_uint_t  i;

    for (i = 0; ngx_kube_unbuilt[i].len; i++) {

        if (value->len >= ngx_kube_unbuilt[i].len
            && ngx_strncmp(value->data, ngx_kube_unbuilt[i].data,
                           ngx_kube_unbuilt[i].len)
               == 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "unknown parameter \"%V\": it is planned, but "
                               "version " KUBE_VERSION " does not have it; "
                               "remove it", value);
            return NGX_ERROR;
        }
    }

    return NGX_DECLINED;
}


static ngx_int_t
ngx_kube_use_namespaces(ngx_conf_t *cf, ngx_kube_use_t *use, ngx_str_t *list)
{
    u_char      *p, *last, *comma;
    kube_str_t   ns, *slot;

    if (use->namespaces.elts != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate \"namespaces=\": name all in one, "
                           "separated by commas");
        return NGX_ERROR;
    }

    if (ngx_array_init(&use->namespaces, cf->pool, 4, sizeof(kube_str_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    p = list->data;
    last = p + list->len;

    for ( ;; ) {

        comma = ngx_strlchr(p, last, ',');
        ns.data = (char *) p;
        ns.len = (size_t) ((comma ? comma : last) - p);

        if (!kube_name_is_label(ns)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid namespace in \"namespaces=%V\": "
                               "expected names of lower case letters, digits "
                               "and \"-\", separated by commas", list);
            return NGX_ERROR;
        }

        slot = ngx_array_push(&use->namespaces);
        if (slot == NULL) {
            return NGX_ERROR;
        }

        *slot = ns;

        if (comma == NULL) {
            return NGX_OK;
        }

        p = comma + 1;
    }
}


ngx_int_t
ngx_kube_use_static(ngx_conf_t *cf, ngx_kube_use_t *use, ngx_str_t *key)
{
    kube_error_t  error;
    char          canonical[KUBE_KEY_TEXT_MAX];

    if (kube_key_parse(ngx_kube_str(key), true, &use->key, &error) != KUBE_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "invalid key \"%V\": %s; expected "
                           "\"namespace/service[:port]\" or "
                           "\"service.namespace[.svc][:port]\"",
                           key, error.what);
        return NGX_ERROR;
    }

    use->is_static = 1;

    use->key_text.len = kube_key_text(&use->key, canonical);
    use->key_text.data = ngx_pnalloc(cf->pool, use->key_text.len);
    if (use->key_text.data == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(use->key_text.data, canonical, use->key_text.len);

    return NGX_OK;
}


ngx_int_t
ngx_kube_conf_finish(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf)
{
    ngx_uint_t             i;
    ngx_kube_use_t       **uses, *names;
    ngx_kube_informer_t  **informers;

    uses = kcf->uses.elts;
    names = kcf->names.elts;
    informers = kcf->informers.elts;

    for (i = 0; i < kcf->names.nelts; i++) {
        if (ngx_kube_use_informer(cycle, kcf, &names[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    for (i = 0; i < kcf->uses.nelts; i++) {
        if (ngx_kube_use_tie(cycle, kcf, uses[i]) != NGX_OK) {
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

    for (i = 0; i < kcf->uses.nelts; i++) {
        if (ngx_kube_use_allowed(cycle, uses[i]) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_kube_use_informer(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf,
    ngx_kube_use_t *use)
{
    use->informer = ngx_kube_informer_find(kcf, &use->informer_name);

    if (use->informer != NULL) {
        return NGX_OK;
    }

    ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                  "no kube_informer \"%V\", which is needed in %V:%ui: add a "
                  "kube_informer block of that name beside http {}",
                  &use->informer_name, &use->file, use->line);

    return NGX_ERROR;
}


static ngx_int_t
ngx_kube_use_tie(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf,
    ngx_kube_use_t *use)
{
    ngx_kube_use_t  **slot;

    if (ngx_kube_use_informer(cycle, kcf, use) != NGX_OK) {
        return NGX_ERROR;
    }

    use->resolver.zone = &use->informer->zone;
    use->resolver.select.policy = &use->informer->policy;

    slot = ngx_array_push(&use->informer->uses);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = use;

    return use->is_static ? ngx_kube_static_key(cycle, use) : NGX_OK;
}


/* "namespace/name" of a static key: such Services get room first. */

static ngx_int_t
ngx_kube_static_key(ngx_cycle_t *cycle, ngx_kube_use_t *use)
{
    u_char      *p;
    size_t       len;
    kube_str_t   key, *keys;
    ngx_uint_t   i;

    len = use->key.ns.len + 1 + use->key.name.len;

    p = ngx_pnalloc(cycle->pool, len);
    if (p == NULL) {
        return NGX_ERROR;
    }

    key.data = (char *) p;
    key.len = len;

    p = ngx_cpymem(p, use->key.ns.data, use->key.ns.len);
    *p++ = '/';
    ngx_memcpy(p, use->key.name.data, use->key.name.len);

    keys = use->informer->static_keys.elts;

    for (i = 0; i < use->informer->static_keys.nelts; i++) {
        if (kube_str_eq(keys[i], key)) {
            return NGX_OK;
        }
    }

    keys = ngx_array_push(&use->informer->static_keys);
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
    ngx_uint_t        i, j;
    ngx_kube_use_t  **uses;

    uses = informer->uses.elts;

    for (i = 0; i < informer->uses.nelts; i++) {

        if (!uses[i]->is_static) {
            goto all;
        }

        ns = informer->namespaces.elts;

        for (j = 0; j < informer->namespaces.nelts; j++) {
            if (kube_str_eq(ns[j], uses[i]->key.ns)) {
                break;
            }
        }

        if (j < informer->namespaces.nelts) {
            continue;
        }

        if (j == NGX_KUBE_AUTO_NAMESPACES) {
            goto all;
        }

        ns = ngx_array_push(&informer->namespaces);
        if (ns == NULL) {
            return NGX_ERROR;
        }

        *ns = uses[i]->key.ns;
    }

    if (informer->namespaces.nelts != 0) {
        return NGX_OK;
    }

all:

    informer->namespaces.nelts = 0;
    informer->namespaces_mode = NGX_KUBE_NAMESPACES_ALL;

    return NGX_OK;
}


/* Which namespaces a key may name: deny by default. */

static ngx_int_t
ngx_kube_use_allowed(ngx_cycle_t *cycle, ngx_kube_use_t *use)
{
    kube_str_t           *ns;
    ngx_uint_t            i;
    kube_namespaces_t     watched;
    ngx_kube_informer_t  *informer;

    informer = use->informer;

    watched.all = (informer->namespaces.nelts == 0);
    watched.names = informer->namespaces.elts;
    watched.names_n = informer->namespaces.nelts;

    if (use->is_static) {

        if (!kube_namespaces_allow(&watched, use->key.ns)) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "namespace of the key in %V:%ui is not watched: add "
                          "it to \"namespaces\" of kube_informer \"%V\"",
                          &use->file, use->line, &informer->name);
            return NGX_ERROR;
        }

        /* namespaces= may narrow a static key too */

        watched.all = (use->namespaces.nelts == 0);
        watched.names = use->namespaces.elts;
        watched.names_n = use->namespaces.nelts;

        if (!kube_namespaces_allow(&watched, use->key.ns)) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "the key in %V:%ui is in a namespace that its "
                          "\"namespaces=\" does not name",
                          &use->file, use->line);
            return NGX_ERROR;
        }

        use->resolver.namespaces = watched;
        return NGX_OK;
    }

    if (use->namespaces.nelts == 0) {

        if (watched.all) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "a key with variables needs \"namespaces=a,b\" in "
                          "%V:%ui, for kube_informer \"%V\" watches all "
                          "namespaces and a client may choose the key",
                          &use->file, use->line, &informer->name);
            return NGX_ERROR;
        }

        use->resolver.namespaces = watched;
        return NGX_OK;
    }

    ns = use->namespaces.elts;

    for (i = 0; i < use->namespaces.nelts; i++) {
        if (!kube_namespaces_allow(&watched, ns[i])) {
            ngx_log_error(NGX_LOG_EMERG, cycle->log, 0,
                          "\"namespaces=\" in %V:%ui names \"%*s\", which "
                          "kube_informer \"%V\" does not watch",
                          &use->file, use->line, ns[i].len, ns[i].data,
                          &informer->name);
            return NGX_ERROR;
        }
    }

    use->resolver.namespaces.all = false;
    use->resolver.namespaces.names = ns;
    use->resolver.namespaces.names_n = use->namespaces.nelts;

    return NGX_OK;
}

/*
 * ngx_kube_conf - the kube_informer block: its creation, defaults, the checks
 * of the block as a whole, and its zone.
 *
 * Structure only: no credential is kept here, the API server is not asked.
 * A bad value fails "nginx -t" with file, line and what would be right.
 * The directives inside are ngx_kube_directive.c's.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube.h"


static void *ngx_kube_pool_alloc(void *ctx, size_t size);
static void ngx_kube_pool_free(void *ctx, void *p);
static ngx_int_t ngx_kube_env_keep(ngx_conf_t *cf);
static ngx_kube_informer_t *ngx_kube_block_create(ngx_conf_t *cf);
static char *ngx_kube_block_finish(ngx_conf_t *cf,
    ngx_kube_informer_t *block);
static char *ngx_kube_block_api(ngx_conf_t *cf, ngx_kube_informer_t *block);
static ngx_uint_t ngx_kube_block_has_credentials(ngx_kube_informer_t *block);
static char *ngx_kube_block_zone(ngx_conf_t *cf, ngx_kube_informer_t *block);


/*
 * nginx clears the environment of its processes: these variables are kept, or a
 * binary upgrade would lose the address of the API server.
 */

static ngx_str_t  ngx_kube_env[] = {
    ngx_string("KUBERNETES_SERVICE_HOST"),
    ngx_string("KUBERNETES_SERVICE_PORT"),
    ngx_null_string
};


static void *
ngx_kube_pool_alloc(void *ctx, size_t size)
{
    return ngx_palloc(ctx, size);
}


static void
ngx_kube_pool_free(void *ctx, void *p)
{
    /* the cycle's pool frees it */
}


static ngx_int_t
ngx_kube_env_keep(ngx_conf_t *cf)
{
    ngx_str_t        *var;
    ngx_uint_t        i, n;
    ngx_core_conf_t  *ccf;

    ccf = (ngx_core_conf_t *) ngx_get_conf(cf->cycle->conf_ctx,
                                           ngx_core_module);

    for (i = 0; ngx_kube_env[i].len; i++) {

        var = ccf->env.elts;

        for (n = 0; n < ccf->env.nelts; n++) {
            if (var[n].len >= ngx_kube_env[i].len
                && ngx_strncmp(var[n].data, ngx_kube_env[i].data,
                               ngx_kube_env[i].len)
                   == 0
                && (var[n].len == ngx_kube_env[i].len
                    || var[n].data[ngx_kube_env[i].len] == '='))
            {
                break;
            }
        }

        if (n < ccf->env.nelts) {
            continue;
        }

        var = ngx_array_push(&ccf->env);
        if (var == NULL) {
            return NGX_ERROR;
        }

        *var = ngx_kube_env[i];
    }

    return NGX_OK;
}


char *
ngx_kube_informer_block(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    char                  *rv;
    void                 **ctx;
    ngx_conf_t             save;
    ngx_str_t             *value;
    ngx_kube_conf_t       *kcf;
    ngx_kube_informer_t   *block, **slot;

    kcf = ngx_kube_get_conf(cf->cycle);

    block = ngx_kube_block_create(cf);
    if (block == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2) {
        block->name = value[1];

        if (!kube_name_is_label(ngx_kube_str(&block->name))) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid kube_informer name \"%V\": lower "
                               "case letters, digits and \"-\" are allowed, "
                               "63 of them at most", &block->name);
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_kube_informer_find(kcf, &block->name) != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "duplicate kube_informer \"%V\": give each block "
                           "a name of its own", &block->name);
        return NGX_CONF_ERROR;
    }

    slot = ngx_array_push(&kcf->informers);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = block;

    if (ngx_kube_env_keep(cf) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    /* nginx takes the conf of a direct directive from here, by its module */

    ctx = ngx_pcalloc(cf->temp_pool,
                      (ngx_kube_block_module.index + 1) * sizeof(void *));
    if (ctx == NULL) {
        return NGX_CONF_ERROR;
    }

    ctx[ngx_kube_block_module.index] = block;

    save = *cf;
    cf->ctx = ctx;
    cf->module_type = NGX_KUBE_BLOCK_MODULE;
    cf->cmd_type = NGX_KUBE_BLOCK_CONF;

    rv = ngx_conf_parse(cf, NULL);

    *cf = save;

    if (rv != NGX_CONF_OK) {
        return rv;
    }

    return ngx_kube_block_finish(cf, block);
}


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


static ngx_kube_informer_t *
ngx_kube_block_create(ngx_conf_t *cf)
{
    kube_alloc_t          alloc;
    ngx_kube_informer_t  *block;

    block = ngx_pcalloc(cf->pool, sizeof(ngx_kube_informer_t));
    if (block == NULL) {
        return NULL;
    }

    ngx_str_set(&block->name, "default");
    block->file = cf->conf_file->file.name;
    block->line = cf->conf_file->line;
    block->page_size = NGX_CONF_UNSET;
    block->watch_list = NGX_CONF_UNSET_UINT;
    block->endpoints = NGX_CONF_UNSET_UINT;
    block->encoding = NGX_CONF_UNSET_UINT;
    block->watch_timeout = NGX_CONF_UNSET_MSEC;
    block->connect_timeout = NGX_CONF_UNSET_MSEC;
    block->idle_timeout = NGX_CONF_UNSET_MSEC;
    block->backoff_first = NGX_CONF_UNSET_MSEC;
    block->state_max_age = NGX_CONF_UNSET_MSEC;
    block->max_outdated = NGX_CONF_UNSET_MSEC;
    block->zone_share = NGX_CONF_UNSET;
    block->max_object = NGX_CONF_UNSET_SIZE;
    block->tls_verify = NGX_CONF_UNSET;

    ngx_memzero(&alloc, sizeof(kube_alloc_t));

    alloc.alloc = ngx_kube_pool_alloc;
    alloc.free = ngx_kube_pool_free;
    alloc.ctx = cf->pool;

    kube_config_init(&block->config, &alloc);

    if (ngx_array_init(&block->namespaces, cf->pool, 4, sizeof(kube_str_t))
        != NGX_OK
        || ngx_array_init(&block->static_keys, cf->pool, 4,
                          sizeof(kube_str_t))
           != NGX_OK
        || ngx_array_init(&block->refs, cf->pool, 4, sizeof(void *))
           != NGX_OK
        || ngx_array_init(&block->allow, cf->pool, 4, sizeof(kube_cidr_t))
           != NGX_OK
        || ngx_array_init(&block->deny, cf->pool, 4, sizeof(kube_cidr_t))
           != NGX_OK)
    {
        return NULL;
    }

    return block;
}


static char *
ngx_kube_block_finish(ngx_conf_t *cf, ngx_kube_informer_t *block)
{
    kube_reflector_conf_t  defaults;

    defaults = kube_reflector_conf_defaults(0);

    ngx_conf_init_value(block->page_size, defaults.page_size);
    ngx_conf_init_uint_value(block->watch_list, defaults.watch_list);
    ngx_conf_init_uint_value(block->endpoints, KUBE_ENDPOINTS_AUTO);
    ngx_conf_init_uint_value(block->encoding, KUBE_ENCODING_AUTO);
    ngx_conf_init_msec_value(block->watch_timeout,
                             defaults.watch_timeout_ms);
    ngx_conf_init_msec_value(block->connect_timeout, 3000);
    ngx_conf_init_msec_value(block->idle_timeout, defaults.idle_timeout_ms);
    ngx_conf_init_msec_value(block->state_max_age, 3600000);
    ngx_conf_init_value(block->zone_share, 100);
    ngx_conf_init_msec_value(block->max_outdated, KUBE_OUTDATED_MS_DEFAULT);

    if (block->backoff_first == NGX_CONF_UNSET_MSEC) {
        block->backoff_first = defaults.backoff.first_ms;
        block->backoff_max = defaults.backoff.max_ms;
        block->backoff_unreachable = defaults.backoff.unreachable_ms;
    }

    ngx_conf_init_size_value(block->max_object, KUBE_OBJECT_BYTES_DEFAULT);
    ngx_conf_init_value(block->tls_verify, 1);

    block->config.tls_verify_off = !block->tls_verify;

    if (!block->state_named) {
        ngx_str_set(&block->state_path, NGX_KUBE_STATE_PATH);
    }

    block->policy.allow = block->allow.elts;
    block->policy.allow_n = block->allow.nelts;
    block->policy.deny = block->deny.elts;
    block->policy.deny_n = block->deny.nelts;

    if (ngx_kube_block_api(cf, block) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    return ngx_kube_block_zone(cf, block);
}


static char *
ngx_kube_block_api(ngx_conf_t *cf, ngx_kube_informer_t *block)
{
    char          *host, *port;
    kube_error_t   error;

    if (block->kubeconfig.len) {

        /* the file itself is judged once "user" is known */

        if (ngx_kube_block_has_credentials(block)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "token_file, ca_file, client_certificate, "
                               "client_certificate_key, tls_server_name and "
                               "tls_verify belong into the kubeconfig file "
                               "when \"api kubeconfig=\" is used");
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

    if (block->config.servers_n == 0) {

        if (ngx_kube_block_has_credentials(block)) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "token_file, ca_file, client_certificate, "
                               "client_certificate_key, tls_server_name and "
                               "tls_verify need \"api https://…\": \"api "
                               "in_cluster\", which kube_informer \"%V\" "
                               "uses, takes the pod's service account",
                               &block->name);
            return NGX_CONF_ERROR;
        }

        host = getenv("KUBERNETES_SERVICE_HOST");
        port = getenv("KUBERNETES_SERVICE_PORT");

        if (kube_config_in_cluster(&block->config, host, port,
                                   KUBE_SERVICE_ACCOUNT_DIR, &error)
            != KUBE_OK)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "kube_informer \"%V\" uses \"api in_cluster\", "
                               "but %s: outside of a pod name the server with "
                               "\"api kubeconfig=path\" or \"api https://…\"",
                               &block->name, error.what);
            return NGX_CONF_ERROR;
        }
    }

    if (kube_config_check(&block->config, &error) != KUBE_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "kube_informer \"%V\": %s",
                           &block->name, error.what);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* Whether the block says what a kubeconfig, or a pod's account, says too. */

static ngx_uint_t
ngx_kube_block_has_credentials(ngx_kube_informer_t *block)
{
    return block->config.token.path.len != 0
           || block->config.ca.path.len != 0
           || block->config.certificate.path.len != 0
           || block->config.key.path.len != 0
           || block->config.tls_server_name.len != 0
           || !block->tls_verify;
}


static char *
ngx_kube_block_zone(ngx_conf_t *cf, ngx_kube_informer_t *block)
{
    if (block->zone_size == 0) {
        block->zone_size = NGX_KUBE_ZONE_SIZE;
    }

    if (block->zone_name.len == 0) {
        block->zone_name.data = ngx_pnalloc(cf->pool, 5 + block->name.len);
        if (block->zone_name.data == NULL) {
            return NGX_CONF_ERROR;
        }

        block->zone_name.len = ngx_sprintf(block->zone_name.data, "kube_%V",
                                           &block->name)
                               - block->zone_name.data;
    }

    block->shm_zone = ngx_shared_memory_add(cf, &block->zone_name,
                                            block->zone_size,
                                            &ngx_kube_module);
    if (block->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    if (block->shm_zone->data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "zone \"%V\" belongs to another kube_informer "
                           "already", &block->zone_name);
        return NGX_CONF_ERROR;
    }

    if (ngx_kube_zone_add(cf, block) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}

/*
 * ngx_http_kube_slots - what other modules hold for an upstream, as it was
 * before any init_upstream ran: instances are made from clones of it.
 *
 * "hash" and "random" keep derived data (points, ranges) in their part, so an
 * instance keeps its clone; all others (keepalive's cache above all) are
 * shared.  A module that is not known here and has changed its part cannot be
 * cloned safely: the configuration is refused.  Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"

#include <malloc.h>


static ngx_uint_t ngx_http_kube_slot_has(ngx_module_t *module);
static size_t ngx_http_kube_slot_size(ngx_conf_t *cf, ngx_module_t *module,
    ngx_pool_t *pool, void **fresh);
static ngx_int_t ngx_http_kube_slot_take(ngx_conf_t *cf,
    ngx_http_kube_srv_conf_t *kscf, ngx_module_t *module);


/* Known to work on a shallow clone; own: derived data stay in the clone. */

static struct {
    const char  *name;
    ngx_uint_t   own;
} ngx_http_kube_known[] = {
    { "ngx_http_upstream_hash_module", 1 },
    { "ngx_http_upstream_random_module", 1 },
    { "ngx_http_upstream_ip_hash_module", 0 },
    { "ngx_http_upstream_least_conn_module", 0 },
    { "ngx_http_upstream_least_time_module", 0 },
    { "ngx_http_upstream_keepalive_module", 0 },
    { "ngx_http_upstream_sticky_module", 0 },
    { "ngx_http_upstream_zone_module", 0 },
    { NULL, 0 }
};


ngx_int_t
ngx_http_kube_slots_take(ngx_conf_t *cf, ngx_http_kube_srv_conf_t *kscf)
{
    ngx_uint_t     i;
    ngx_module_t  *module;

    if (ngx_array_init(&kscf->slots, cf->pool, 4,
                       sizeof(ngx_http_kube_slot_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; cf->cycle->modules[i]; i++) {
        module = cf->cycle->modules[i];

        if (module->type != NGX_HTTP_MODULE
            || module == &ngx_http_kube_module
            || module == &ngx_http_upstream_module
            || kscf->upstream->srv_conf[module->ctx_index] == NULL
            || !ngx_http_kube_slot_has(module))
        {
            continue;
        }

        if (ngx_http_kube_slot_take(cf, kscf, module) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_uint_t
ngx_http_kube_slot_has(ngx_module_t *module)
{
    ngx_command_t      *cmd;
    ngx_http_module_t  *ctx;

    ctx = module->ctx;

    if (ctx->create_srv_conf == NULL || module->commands == NULL) {
        return 0;
    }

    for (cmd = module->commands; cmd->name.len; cmd++) {
        if (cmd->type & NGX_HTTP_UPS_CONF) {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_kube_slot_take(ngx_conf_t *cf, ngx_http_kube_srv_conf_t *kscf,
    ngx_module_t *module)
{
    void                  *fresh, *slot;
    size_t                 size;
    ngx_uint_t             i;
    ngx_int_t              rc;
    ngx_pool_t            *pool;
    ngx_http_kube_slot_t  *taken;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, cf->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;
    slot = kscf->upstream->srv_conf[module->ctx_index];

    size = ngx_http_kube_slot_size(cf, module, pool, &fresh);
    if (size == 0) {
        goto done;
    }

    for (i = 0; ngx_http_kube_known[i].name; i++) {
        if (ngx_strcmp(ngx_http_kube_known[i].name, module->name) == 0) {
            break;
        }
    }

    if (ngx_http_kube_known[i].name == NULL) {

        if (ngx_memcmp(fresh, slot, size) != 0) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "upstream \"%V\" in %s:%ui uses both kube_service "
                          "and %s, which is not known to work with it: "
                          "remove one of them", &kscf->upstream->host,
                          kscf->upstream->file_name, kscf->upstream->line,
                          module->name);
            goto done;
        }

        /* unused here: shared as it is */

        rc = NGX_OK;
        goto done;
    }

    taken = ngx_array_push(&kscf->slots);
    if (taken == NULL) {
        goto done;
    }

    taken->pristine = ngx_palloc(cf->pool, size);
    if (taken->pristine == NULL) {
        goto done;
    }

    ngx_memcpy(taken->pristine, slot, size);
    taken->size = size;
    taken->index = module->ctx_index;
    taken->own = ngx_http_kube_known[i].own ? 1 : 0;

    rc = NGX_OK;

done:

    ngx_destroy_pool(pool);

    return rc;
}


/*
 * The structures are private to their modules: their size is what creating
 * one takes from an empty pool, or of the block where every allocation is
 * malloc's (NGX_DEBUG_PALLOC).
 */

static size_t
ngx_http_kube_slot_size(ngx_conf_t *cf, ngx_module_t *module,
    ngx_pool_t *pool, void **fresh)
{
    u_char             *p;
    ngx_pool_t         *saved;
    ngx_http_module_t  *ctx;

    ctx = module->ctx;

    saved = cf->pool;
    cf->pool = pool;

    p = ctx->create_srv_conf(cf);

    cf->pool = saved;

    *fresh = p;

    if (p == NULL) {
        return 0;
    }

    if (p >= (u_char *) pool && p < pool->d.last) {
        return (size_t) (pool->d.last - p);
    }

    return malloc_usable_size(p);
}

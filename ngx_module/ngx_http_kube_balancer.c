/*
 * ngx_http_kube_balancer - which balancing methods are let in, and clones of
 * what they keep.
 *
 * Methods.  A method is a function, init_upstream, that is private to its
 * module, so a list of names says nothing about the one that an upstream has.
 * Each known directive is therefore given to its own module once more, for an
 * upstream made up here, and the function that it sets is compared with the
 * upstream's.  A module that wraps another method ("keepalive") is found by
 * where it keeps a function made up here, and the one that the upstream's
 * module keeps there is judged next.  Any other function is refused: it may
 * keep anything in peer.data, where ours expects ngx_http_upstream_rr_peers_t.
 *
 * Parts.  "hash" and "random" keep derived data (points, ranges) in their part
 * of the upstream's configuration, so a view's peers keep a clone; all others
 * (keepalive's cache above all) are shared.  A module that is not known here
 * and has changed its part cannot be cloned safely: it is refused.
 *
 * Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_balancer.h"
#include "ngx_http_kube_probe.h"
#include "ngx_http_kube_stock.h"

#include <malloc.h>


#define NGX_HTTP_KUBE_WORDS_MAX  3
#define NGX_HTTP_KUBE_WRAPS_MAX  4

/* The number of the only second directive of a module: "hash consistent". */
#define NGX_HTTP_KUBE_POINTS     1


/*
 * own: peers keep their clone.  plain: all that it keeps of a pick is in the
 * peer and in memory of the request, and free is round robin's.  tries:
 * directives of the module, one for each init_upstream it has; each word ends
 * with a NUL, as modules expect it.
 */
typedef struct {
    const char   *module;
    unsigned      own;
    unsigned      plain;
    const char   *tries[2];
} ngx_http_kube_known_t;

static const ngx_http_kube_known_t  ngx_http_kube_known[] = {

    { "ngx_http_upstream_least_conn_module", 0, 1, { "least_conn\0", NULL } },

    { "ngx_http_upstream_ip_hash_module", 0, 1, { "ip_hash\0", NULL } },

    { "ngx_http_upstream_hash_module", 1, 1,
      { "hash\0k\0", "hash\0k\0consistent\0" } },

    { "ngx_http_upstream_random_module", 1, 1, { "random\0", NULL } },

    { "ngx_http_upstream_least_time_module", 0, 0,
      { "least_time\0header\0", NULL } },

    { "ngx_http_upstream_keepalive_module", 0, 1,
      { "keepalive\0001\0", NULL } },

    { "ngx_http_upstream_sticky_module", 0, 0,
      { "sticky\0cookie\0kube\0", NULL } },

    { "ngx_http_upstream_zone_module", 0, 1, { NULL, NULL } },

    { NULL, 0, 0, { NULL, NULL } }
};

/* What a known directive does to an upstream: to any. */
typedef struct {
    const ngx_http_kube_known_t *known;
    ngx_uint_t                   number;   /* among its module's */
    ngx_uint_t                   index;    /* ctx_index of the module */
    ngx_http_upstream_init_pt    init;
    size_t                       inner;    /* where in its part it keeps what
                                              it wraps */
    unsigned                     wraps:1;
} ngx_http_kube_trial_t;


static ngx_int_t ngx_http_kube_method_take(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_kube_balancer_t *balancer);
static const ngx_http_kube_known_t *ngx_http_kube_method_known(
    ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_upstream_init_pt init, ngx_http_upstream_init_pt **inner,
    ngx_uint_t *number);
static ngx_array_t *ngx_http_kube_method_trials(ngx_conf_t *cf);
static ngx_int_t ngx_http_kube_method_try(ngx_conf_t *cf,
    ngx_module_t *module, const char *text, ngx_http_kube_trial_t *trial);
static void ngx_http_kube_method_pool(void *data);
static ngx_command_t *ngx_http_kube_method_words(ngx_module_t *module,
    const char *text, ngx_array_t *args);
static ngx_int_t ngx_http_kube_method_none(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static void ngx_http_kube_method_refuse(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
static const ngx_http_kube_known_t *ngx_http_kube_module_known(
    ngx_module_t *module);
static ngx_uint_t ngx_http_kube_module_part(ngx_module_t *module);
static size_t ngx_http_kube_part_size(ngx_conf_t *cf, ngx_module_t *module,
    ngx_pool_t *pool, void **fresh);
static ngx_int_t ngx_http_kube_part_take(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us, ngx_http_kube_balancer_t *balancer,
    ngx_module_t *module);


ngx_int_t
ngx_http_kube_balancer_take(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_kube_balancer_t *balancer)
{
    ngx_uint_t     i;
    ngx_module_t  *module;

    if (ngx_array_init(&balancer->slots, cf->pool, 4,
                       sizeof(ngx_http_kube_slot_t))
        != NGX_OK
        || ngx_http_kube_method_take(cf, us, balancer) != NGX_OK)
    {
        return NGX_ERROR;
    }

    balancer->own = !balancer->plain;

    for (i = 0; cf->cycle->modules[i]; i++) {
        module = cf->cycle->modules[i];

        if (ngx_http_kube_module_part(module)
            && ((ngx_http_module_t *) module->ctx)->create_srv_conf != NULL
            && us->srv_conf[module->ctx_index] != NULL
            && ngx_http_kube_part_take(cf, us, balancer, module) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return balancer->unknown ? ngx_http_kube_probe(cf, us, balancer) : NGX_OK;
}


void
ngx_http_kube_balancer_finish(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_kube_balancer_t *balancer)
{
    balancer->init_upstream = us->peer.init_upstream;
    balancer->init_peer = us->peer.init;
    balancer->cf = *cf;
}


/* Puts ours in the place of the innermost method, before parts are cloned. */

static ngx_int_t
ngx_http_kube_method_take(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_kube_balancer_t *balancer)
{
    ngx_uint_t                    n, number;
    ngx_http_upstream_init_pt    *at, *inner;
    const ngx_http_kube_known_t  *known;

#ifndef angie_version
    balancer->plain = 1;
#endif

    at = &us->peer.init_upstream;

    for (n = 0; n < NGX_HTTP_KUBE_WRAPS_MAX; n++) {

        if (*at == NULL) {
            *at = ngx_http_upstream_init_round_robin;
        }

        inner = NULL;

        if (*at != ngx_http_upstream_init_round_robin) {
            known = ngx_http_kube_method_known(cf, us, *at, &inner, &number);

            if (known == NULL) {
                if (!balancer->probe) {
                    break;
                }

                balancer->unknown = 1;

            } else if (number == NGX_HTTP_KUBE_POINTS) {
                balancer->points = 1;
            }

            if (known == NULL || !known->plain) {
                balancer->plain = 0;
            }
        }

        if (inner == NULL) {
            balancer->method = *at;
            *at = ngx_http_kube_stock_init;
            return NGX_OK;
        }

        at = inner;
    }

    ngx_http_kube_method_refuse(cf, us);

    return NGX_ERROR;
}


/*
 * *inner: in the upstream, what the method wraps; else untouched.  *number: of
 * the directive among its module's.
 */

static const ngx_http_kube_known_t *
ngx_http_kube_method_known(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_upstream_init_pt init, ngx_http_upstream_init_pt **inner,
    ngx_uint_t *number)
{
    ngx_uint_t              i;
    ngx_array_t            *trials;
    ngx_http_kube_trial_t  *trial;

    trials = ngx_http_kube_method_trials(cf);
    if (trials == NULL) {
        return NULL;
    }

    trial = trials->elts;

    for (i = 0; i < trials->nelts; i++) {

        if (trial[i].init != init) {
            continue;
        }

        if (trial[i].wraps) {
            *inner = (ngx_http_upstream_init_pt *)
                ((u_char *) us->srv_conf[trial[i].index] + trial[i].inner);
        }

        *number = trial[i].number;

        return trial[i].known;
    }

    return NULL;
}


/* Once a configuration: each trial keeps a pool, and upstreams are many. */

static ngx_array_t *
ngx_http_kube_method_trials(ngx_conf_t *cf)
{
    ngx_uint_t                    i, k;
    ngx_array_t                  *trials;
    ngx_module_t                 *module;
    ngx_http_kube_trial_t        *trial, tried;
    ngx_http_kube_main_conf_t    *kmcf;
    const ngx_http_kube_known_t  *known;

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kube_module);

    if (kmcf->trials != NULL) {
        return kmcf->trials;
    }

    trials = ngx_array_create(cf->pool, 8, sizeof(ngx_http_kube_trial_t));
    if (trials == NULL) {
        return NULL;
    }

    for (i = 0; cf->cycle->modules[i]; i++) {

        module = cf->cycle->modules[i];
        known = ngx_http_kube_module_known(module);

        for (k = 0; known != NULL && k < 2 && known->tries[k] != NULL; k++) {

            ngx_memzero(&tried, sizeof(ngx_http_kube_trial_t));

            if (ngx_http_kube_method_try(cf, module, known->tries[k], &tried)
                != NGX_OK)
            {
                continue;
            }

            trial = ngx_array_push(trials);
            if (trial == NULL) {
                return NULL;
            }

            *trial = tried;
            trial->known = known;
            trial->number = k;
            trial->index = module->ctx_index;
        }
    }

    kmcf->trials = trials;

    return trials;
}


/*
 * Gives a directive to its module for an upstream that is thrown away.  The
 * pool is the configuration's: the module may register variables.
 */

static ngx_int_t
ngx_http_kube_method_try(ngx_conf_t *cf, ngx_module_t *module,
    const char *text, ngx_http_kube_trial_t *trial)
{
    void                          *part;
    size_t                         at, size;
    ngx_log_t                      log;
    ngx_str_t                      words[NGX_HTTP_KUBE_WORDS_MAX];
    ngx_conf_t                     conf;
    ngx_pool_t                    *pool;
    ngx_array_t                    args;
    ngx_command_t                 *cmd;
    ngx_http_module_t             *module_ctx;
    ngx_pool_cleanup_t            *cln;
    ngx_http_conf_ctx_t            ctx;
    ngx_http_upstream_init_pt      kept;
    ngx_http_upstream_srv_conf_t   scratch;

    ngx_memzero(&args, sizeof(ngx_array_t));
    args.elts = words;

    cmd = ngx_http_kube_method_words(module, text, &args);
    if (cmd == NULL) {
        return NGX_DECLINED;
    }

    /* "load balancing method redefined" and the like concern nobody */

    log = *cf->log;
    log.log_level = 0;

    ngx_memzero(&scratch, sizeof(ngx_http_upstream_srv_conf_t));
    scratch.peer.init_upstream = ngx_http_kube_method_none;
    scratch.srv_conf = ngx_pcalloc(cf->pool,
                                   sizeof(void *) * ngx_http_max_module);
    if (scratch.srv_conf == NULL) {
        return NGX_ERROR;
    }

    ctx = *(ngx_http_conf_ctx_t *) cf->ctx;
    ctx.srv_conf = scratch.srv_conf;

    conf = *cf;
    conf.ctx = &ctx;
    conf.args = &args;
    conf.log = &log;

    size = 0;
    part = NULL;
    module_ctx = module->ctx;

    if (module_ctx->create_srv_conf != NULL) {

        /* in a zeroed pool: a module may leave fields of its part unset */

        cln = ngx_pool_cleanup_add(cf->pool, 0);
        if (cln == NULL) {
            return NGX_ERROR;
        }

        pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, cf->log);
        if (pool == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_kube_method_pool;
        cln->data = pool;

        /* cf->log is the last cycle's, which goes before this one does */

        pool->log = &cf->cycle->new_log;

        ngx_memzero(pool->d.last, pool->d.end - pool->d.last);

        size = ngx_http_kube_part_size(&conf, module, pool, &part);
        if (part == NULL) {
            return NGX_ERROR;
        }
    }

    scratch.srv_conf[module->ctx_index] = part;
    scratch.srv_conf[ngx_http_upstream_module.ctx_index] = &scratch;

    if (cmd->set(&conf, cmd, part) != NGX_CONF_OK) {
        return NGX_DECLINED;
    }

    trial->init = scratch.peer.init_upstream;

    for (at = 0; at + sizeof(kept) <= size; at += sizeof(kept)) {

        ngx_memcpy(&kept, (u_char *) part + at, sizeof(kept));

        if (kept == ngx_http_kube_method_none) {
            trial->inner = at;
            trial->wraps = 1;
            break;
        }
    }

    return NGX_OK;
}


static void
ngx_http_kube_method_pool(void *data)
{
    ngx_destroy_pool(data);
}


/* The command that a text begins with; its words go into args. */

static ngx_command_t *
ngx_http_kube_method_words(ngx_module_t *module, const char *text,
    ngx_array_t *args)
{
    u_char         *p;
    ngx_str_t      *words;
    ngx_command_t  *cmd;

    words = args->elts;

    for (p = (u_char *) text; *p != '\0'; p += ngx_strlen(p) + 1) {
        words[args->nelts].data = p;
        words[args->nelts].len = ngx_strlen(p);
        args->nelts++;
    }

    for (cmd = module->commands; cmd->name.len; cmd++) {
        if (cmd->name.len == words[0].len
            && ngx_strncmp(cmd->name.data, words[0].data, words[0].len) == 0)
        {
            return cmd;
        }
    }

    return NULL;
}


/* Stands for a method; only its address is used. */

static ngx_int_t
ngx_http_kube_method_none(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    return NGX_ERROR;
}


static void
ngx_http_kube_method_refuse(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us)
{
    ngx_uint_t     i;
    ngx_module_t  *module;
    const char    *name;

    name = "an unknown module";

    for (i = 0; cf->cycle->modules[i]; i++) {
        module = cf->cycle->modules[i];

        if (ngx_http_kube_module_part(module)
            && ngx_http_kube_module_known(module) == NULL)
        {
            name = module->name;
        }
    }

    ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                  "the balancing method of upstream \"%V\" in %s:%ui (%s) is "
                  "not known to work with kube_service: use round robin, "
                  "least_conn, ip_hash, hash or random, or have it tried "
                  "with \"kube_balancer unknown=probe\"", &us->host,
                  us->file_name, us->line, name);
}


static const ngx_http_kube_known_t *
ngx_http_kube_module_known(ngx_module_t *module)
{
    const ngx_http_kube_known_t  *known;

    if (module->type != NGX_HTTP_MODULE) {
        return NULL;
    }

    for (known = ngx_http_kube_known; known->module; known++) {
        if (ngx_strcmp(known->module, module->name) == 0) {
            return known;
        }
    }

    return NULL;
}


/* True where a module has directives for upstreams, and is another one's. */

static ngx_uint_t
ngx_http_kube_module_part(ngx_module_t *module)
{
    ngx_command_t  *cmd;

    if (module->type != NGX_HTTP_MODULE
        || module == &ngx_http_kube_module
        || module == &ngx_http_upstream_module
        || module->commands == NULL)
    {
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
ngx_http_kube_part_take(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *us,
    ngx_http_kube_balancer_t *balancer, ngx_module_t *module)
{
    void                         *fresh, *part;
    size_t                        size;
    ngx_int_t                     rc;
    ngx_pool_t                   *pool;
    ngx_http_kube_slot_t         *taken;
    const ngx_http_kube_known_t  *known;

    pool = ngx_create_pool(NGX_DEFAULT_POOL_SIZE, cf->log);
    if (pool == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;
    part = us->srv_conf[module->ctx_index];

    size = ngx_http_kube_part_size(cf, module, pool, &fresh);
    if (size == 0) {
        goto done;
    }

    known = ngx_http_kube_module_known(module);

    if (known == NULL) {

        if (ngx_memcmp(fresh, part, size) == 0) {

            /* unused here: shared as it is */

            rc = NGX_OK;
            goto done;
        }

        if (!balancer->probe) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "upstream \"%V\" in %s:%ui uses both kube_service "
                          "and %s, which is not known to work with it: "
                          "remove one of them", &us->host, us->file_name,
                          us->line, module->name);
            goto done;
        }
    }

    taken = ngx_array_push(&balancer->slots);
    if (taken == NULL) {
        goto done;
    }

    taken->pristine = ngx_palloc(cf->pool, size);
    if (taken->pristine == NULL) {
        goto done;
    }

    ngx_memcpy(taken->pristine, part, size);
    taken->size = size;
    taken->index = module->ctx_index;
    taken->own = (known == NULL || known->own);
    balancer->own |= taken->own;

    rc = NGX_OK;

done:

    ngx_destroy_pool(pool);

    return rc;
}


/*
 * The structures are private to their modules: their size is what creating
 * one takes from an empty pool, or of the block where every allocation is
 * malloc's (NGX_DEBUG_PALLOC).  fresh: the one made, or NULL: not wanted.
 */

static size_t
ngx_http_kube_part_size(ngx_conf_t *cf, ngx_module_t *module,
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

    if (fresh != NULL) {
        *fresh = p;
    }

    if (p == NULL) {
        return 0;
    }

    if (p >= (u_char *) pool && p < pool->d.last) {
        return (size_t) (pool->d.last - p);
    }

    return malloc_usable_size(p);
}

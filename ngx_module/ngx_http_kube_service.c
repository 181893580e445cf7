/*
 * ngx_http_kube_service - the kube_service directive, and how an upstream is
 * readied for it before and after other modules had their say.
 *
 * Order in the block does not matter: the line only records; what stands
 * around the balancer is put there when the whole of http {} was read.
 * Configuration time only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube.h"


static char *ngx_http_kube_service_parameter(ngx_conf_t *cf,
    ngx_http_kube_srv_conf_t *kscf, ngx_str_t *value);
static ngx_int_t ngx_http_kube_placeholder(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *uscf);
static ngx_int_t ngx_http_kube_statics(ngx_conf_t *cf,
    ngx_http_kube_srv_conf_t *kscf);


/* nginx refuses an upstream without servers: this one stands for the key. */

static ngx_str_t  ngx_http_kube_placeholder_name = ngx_string("kube_service");


char *
ngx_http_kube_service(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_srv_conf_t *kscf = conf;

    ngx_str_t                  *value;
    ngx_uint_t                  i;
    ngx_http_kube_main_conf_t  *kmcf;
    ngx_http_kube_srv_conf_t  **slot;

    if (kscf->use != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "a second \"kube_service\" in one upstream is not "
                           "possible in version " KUBE_VERSION ": use two "
                           "upstreams");
        return NGX_CONF_ERROR;
    }

    kscf->upstream = ngx_http_conf_get_module_srv_conf(cf,
                                                    ngx_http_upstream_module);
    kscf->weight = 1;
    kscf->max_fails = 1;
    kscf->fail_timeout = 10;

    kscf->use = ngx_pcalloc(cf->pool, sizeof(ngx_kube_use_t));
    if (kscf->use == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    for (i = 2; i < cf->args->nelts; i++) {
        if (ngx_http_kube_service_parameter(cf, kscf, &value[i])
            != NGX_CONF_OK)
        {
            return NGX_CONF_ERROR;
        }
    }

    if (ngx_http_kube_key(cf, kscf, &value[1]) != NGX_OK
        || ngx_http_kube_placeholder(cf, kscf->upstream) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kube_module);

    slot = ngx_array_push(&kmcf->upstreams);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = kscf;

    ngx_http_kube_instances_init(kscf);

    return NGX_CONF_OK;
}


ngx_int_t
ngx_http_kube_key(ngx_conf_t *cf, ngx_http_kube_srv_conf_t *kscf,
    ngx_str_t *text)
{
    ngx_str_t                         *value;
    ngx_http_compile_complex_value_t   ccv;

    /* for the status */

    value = cf->args->elts;
    kscf->use->directive = value[0];
    kscf->use->name = kscf->upstream ? kscf->upstream->host : value[1];
    kscf->use->text = *text;

    ngx_memzero(&ccv, sizeof(ngx_http_compile_complex_value_t));

    ccv.cf = cf;
    ccv.value = text;
    ccv.complex_value = &kscf->key;

    if (ngx_http_compile_complex_value(&ccv) != NGX_OK) {
        return NGX_ERROR;
    }

    if (kscf->key.lengths == NULL
        && ngx_kube_use_static(cf, kscf->use, text) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_kube_use_add(cf, kscf->use);
}


static char *
ngx_http_kube_service_parameter(ngx_conf_t *cf,
    ngx_http_kube_srv_conf_t *kscf, ngx_str_t *value)
{
    ngx_str_t  s;
    ngx_int_t  n;

    switch (ngx_kube_use_parameter(cf, kscf->use, value)) {

    case NGX_OK:
        return NGX_CONF_OK;

    case NGX_ERROR:
        return NGX_CONF_ERROR;
    }

    if (value->len > 7 && ngx_strncmp(value->data, "weight=", 7) == 0) {
        n = ngx_atoi(value->data + 7, value->len - 7);

        if (n == NGX_ERROR || n == 0 || n > 65535) {
            goto invalid;
        }

        kscf->weight = n;
        return NGX_CONF_OK;
    }

    if (value->len > 10 && ngx_strncmp(value->data, "max_conns=", 10) == 0) {
        n = ngx_atoi(value->data + 10, value->len - 10);

        if (n == NGX_ERROR) {
            goto invalid;
        }

        kscf->max_conns = (ngx_uint_t) n;
        return NGX_CONF_OK;
    }

    if (value->len > 10 && ngx_strncmp(value->data, "max_fails=", 10) == 0) {
        n = ngx_atoi(value->data + 10, value->len - 10);

        if (n == NGX_ERROR) {
            goto invalid;
        }

        kscf->max_fails = (ngx_uint_t) n;
        return NGX_CONF_OK;
    }

    if (value->len > 13
        && ngx_strncmp(value->data, "fail_timeout=", 13) == 0)
    {
        s.data = value->data + 13;
        s.len = value->len - 13;
        n = ngx_parse_time(&s, 1);

        if (n == NGX_ERROR) {
            goto invalid;
        }

        kscf->fail_timeout = (time_t) n;
        return NGX_CONF_OK;
    }

    if (value->len == 6 && ngx_strncmp(value->data, "backup", 6) == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "unknown parameter \"backup\": it is planned, but "
                           "version " KUBE_VERSION " does not have it; remove "
                           "it");
        return NGX_CONF_ERROR;
    }

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                       "invalid parameter \"%V\" of kube_service: expected "
                       "informer=, namespaces=, form=dns, family=, "
                       "terminating=, unsynced=, empty=, weight=, max_conns=, "
                       "max_fails= or fail_timeout=", value);

    return NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_kube_placeholder(ngx_conf_t *cf, ngx_http_upstream_srv_conf_t *uscf)
{
    ngx_addr_t                  *addr;
    ngx_sockaddr_t              *sa;
    ngx_http_upstream_server_t  *server;

    addr = ngx_pcalloc(cf->pool, sizeof(ngx_addr_t));
    sa = ngx_pcalloc(cf->pool, sizeof(ngx_sockaddr_t));
    server = ngx_array_push(uscf->servers);

    if (addr == NULL || sa == NULL || server == NULL) {
        return NGX_ERROR;
    }

    sa->sockaddr_in.sin_family = AF_INET;

    addr->sockaddr = &sa->sockaddr;
    addr->socklen = sizeof(struct sockaddr_in);
    addr->name = ngx_http_kube_placeholder_name;

    ngx_memzero(server, sizeof(ngx_http_upstream_server_t));

    server->name = ngx_http_kube_placeholder_name;
    server->addrs = addr;
    server->naddrs = 1;
    server->weight = 1;
    server->max_fails = 1;
    server->fail_timeout = 10;
    server->down = 1;

    return NGX_OK;
}


/*
 * Before the upstream module calls every init_upstream: the parts of other
 * modules as their directives left them, and the static server lines.
 */

ngx_int_t
ngx_http_kube_upstream_prepare(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf)
{
    ngx_uint_t                      i;
    ngx_http_kube_srv_conf_t      **kscf;
    ngx_http_upstream_srv_conf_t   *uscf;

    kscf = kmcf->upstreams.elts;

    for (i = 0; i < kmcf->upstreams.nelts; i++) {

        uscf = kscf[i]->upstream;

#if (NGX_HTTP_UPSTREAM_ZONE)
        if (uscf->shm_zone != NULL) {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "\"zone\" and \"kube_service\" cannot both be in "
                          "upstream \"%V\" in %s:%ui: remove \"zone\", the "
                          "endpoints are shared already",
                          &uscf->host, uscf->file_name, uscf->line);
            return NGX_ERROR;
        }
#endif

        if ((kscf[i]->weight != 1 && !(uscf->flags & NGX_HTTP_UPSTREAM_WEIGHT))
            || (kscf[i]->max_conns != 0
                && !(uscf->flags & NGX_HTTP_UPSTREAM_MAX_CONNS)))
        {
            ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                          "the balancing method of upstream \"%V\" in %s:%ui "
                          "does not support weight= or max_conns=",
                          &uscf->host, uscf->file_name, uscf->line);
            return NGX_ERROR;
        }

        if (ngx_http_kube_statics(cf, kscf[i]) != NGX_OK
            || ngx_http_kube_slots_take(cf, kscf[i]) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_statics(ngx_conf_t *cf, ngx_http_kube_srv_conf_t *kscf)
{
    ngx_uint_t                   i;
    ngx_http_upstream_server_t  *server, *copy;

    server = kscf->upstream->servers->elts;

    if (ngx_array_init(&kscf->servers, cf->pool, 2,
                       sizeof(ngx_http_upstream_server_t))
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    for (i = 0; i < kscf->upstream->servers->nelts; i++) {

        if (server[i].name.data == ngx_http_kube_placeholder_name.data) {
            continue;
        }

        copy = ngx_array_push(&kscf->servers);
        if (copy == NULL) {
            return NGX_ERROR;
        }

        *copy = server[i];
    }

    return NGX_OK;
}


/* After it: whatever wraps the balancer stands, we go around all of it. */

ngx_int_t
ngx_http_kube_upstream_finish(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf)
{
    ngx_uint_t                      i;
    ngx_http_kube_srv_conf_t      **kscf;
    ngx_http_upstream_srv_conf_t   *uscf;

    kscf = kmcf->upstreams.elts;

    for (i = 0; i < kmcf->upstreams.nelts; i++) {

        uscf = kscf[i]->upstream;

        kscf[i]->init_upstream = uscf->peer.init_upstream
                                 ? uscf->peer.init_upstream
                                 : ngx_http_upstream_init_round_robin;
        kscf[i]->init_peer = uscf->peer.init;
        kscf[i]->cf = *cf;

        uscf->peer.init = ngx_http_kube_init_peer;
    }

    return NGX_OK;
}

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


#include "ngx_http_kube_balancer.h"
#include "ngx_http_kube_key.h"
#include "ngx_http_kube_peers.h"
#include "ngx_http_kube_service.h"
#include "ngx_http_kube_upstream.h"
#include "ngx_http_kube_wait.h"

#include "kube_version.h"


static char *ngx_http_kube_check_instances(ngx_conf_t *cf, void *post,
    void *data);
static char *ngx_http_kube_check_weight(ngx_conf_t *cf, void *post,
    void *data);
static ngx_int_t ngx_http_kube_service_check(ngx_conf_t *cf,
    ngx_http_kube_srv_conf_t *kscf);
static ngx_int_t ngx_http_kube_service_servers(ngx_conf_t *cf,
    ngx_http_kube_srv_conf_t *kscf);


/* At least, between two builds of "hash consistent" that take long, ms. */

#define NGX_HTTP_KUBE_POINTS_PAUSE  250


/* The name of the server that stands for the key until views are made. */

static ngx_str_t  ngx_http_kube_placeholder = ngx_string("kube_service");


static ngx_conf_post_t  ngx_http_kube_weight_post = {
    ngx_http_kube_check_weight
};


#define ngx_http_kube_field(name)  offsetof(ngx_http_kube_srv_conf_t, name)

static const ngx_kube_parameter_t  ngx_http_kube_service_parameters[] = {

    { ngx_string("weight"), ngx_conf_set_num_slot,
      ngx_http_kube_field(weight), &ngx_http_kube_weight_post,
      "weight= with a number from 1 to 65535" },

    { ngx_string("max_conns"), ngx_conf_set_num_slot,
      ngx_http_kube_field(max_conns), NULL, "max_conns= with a number" },

    { ngx_string("max_fails"), ngx_conf_set_num_slot,
      ngx_http_kube_field(max_fails), NULL, "max_fails= with a number" },

    { ngx_string("fail_timeout"), ngx_conf_set_sec_slot,
      ngx_http_kube_field(fail_timeout), NULL, "fail_timeout= with a time" },

    { ngx_string("unsynced_wait"), ngx_conf_set_msec_slot,
      ngx_http_kube_field(unsynced_wait), NULL,
      "unsynced_wait= with a time" },

    { ngx_string("backup"), ngx_kube_parameter_planned, 0, NULL, NULL },

    { ngx_null_string, NULL, 0, NULL, NULL }
};


static ngx_conf_post_t  ngx_http_kube_instances_post = {
    ngx_http_kube_check_instances
};

static ngx_conf_enum_t  ngx_http_kube_unknown[] = {
    { ngx_string("refuse"), 0 },
    { ngx_string("probe"), 1 },
    { ngx_null_string, 0 }
};

static const ngx_kube_parameter_t  ngx_http_kube_balancer_parameters[] = {

    { ngx_string("unknown"), ngx_kube_parameter_word,
      offsetof(ngx_http_kube_main_conf_t, unknown), ngx_http_kube_unknown,
      "unknown= with probe or refuse" },

    { ngx_null_string, NULL, 0, NULL, NULL }
};


static const ngx_kube_parameter_t  ngx_http_kube_instances_parameters[] = {

    { ngx_string("size"), ngx_conf_set_size_slot,
      offsetof(ngx_http_kube_main_conf_t, instances_size),
      &ngx_http_kube_instances_post, "size= with a size of at least 1m" },

    { ngx_null_string, NULL, 0, NULL, NULL }
};


char *
ngx_http_kube_service(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_srv_conf_t *kscf = conf;

    ngx_kube_ref_t                *ref;
    ngx_kube_parameters_t          own;
    ngx_http_kube_main_conf_t     *kmcf;
    ngx_http_kube_srv_conf_t     **slot;
    ngx_http_upstream_srv_conf_t  *us;

    if (kscf->key.ref != NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "a second \"kube_service\" in one upstream is not "
                           "possible in version " KUBE_VERSION ": use two "
                           "upstreams");
        return NGX_CONF_ERROR;
    }

    us = ngx_http_conf_get_module_srv_conf(cf, ngx_http_upstream_module);

    ref = ngx_kube_ref_create(cf, "upstream", &us->host);
    if (ref == NULL) {
        return NGX_CONF_ERROR;
    }

    kscf->key.ref = ref;
    kscf->upstream = us;
    kscf->weight = NGX_CONF_UNSET;
    kscf->max_conns = NGX_CONF_UNSET;
    kscf->max_fails = NGX_CONF_UNSET;
    kscf->fail_timeout = NGX_CONF_UNSET;
    kscf->unsynced_wait = NGX_CONF_UNSET_MSEC;

    own.table = ngx_http_kube_service_parameters;
    own.conf = kscf;

    if (ngx_http_kube_key_parse(cf, &kscf->key, 1, &own) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    ngx_conf_init_value(kscf->weight, 1);
    ngx_conf_init_value(kscf->max_conns, 0);
    ngx_conf_init_value(kscf->max_fails, 1);
    ngx_conf_init_value(kscf->fail_timeout, 10);
    ngx_conf_init_msec_value(kscf->unsynced_wait, NGX_HTTP_KUBE_WAIT_DEFAULT);

    kscf->key.views.made = ngx_http_kube_peers_made;
    kscf->key.views.data = kscf;
    ngx_http_kube_rows_init(&kscf->rows);

    /* nginx refuses an upstream without servers */

    if (ngx_http_kube_peers_down(cf->pool, us->servers,
                                 &ngx_http_kube_placeholder)
        == NULL)
    {
        return NGX_CONF_ERROR;
    }

    kmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_kube_module);

    slot = ngx_array_push(&kmcf->upstreams);
    if (slot == NULL) {
        return NGX_CONF_ERROR;
    }

    *slot = kscf;

    return NGX_CONF_OK;
}


char *
ngx_http_kube_unknown_balancer(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_main_conf_t *kmcf = conf;

    ngx_kube_parameters_t  set;

    if (kmcf->unknown != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    set.table = ngx_http_kube_balancer_parameters;
    set.conf = kmcf;

    return ngx_kube_parameters_set(cf, 1, &set, 1) == NGX_OK ? NGX_CONF_OK
                                                             : NGX_CONF_ERROR;
}


char *
ngx_http_kube_instances(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_kube_main_conf_t *kmcf = conf;

    ngx_kube_parameters_t  set;

    if (kmcf->instances_size != NGX_CONF_UNSET_SIZE) {
        return "is duplicate";
    }

    set.table = ngx_http_kube_instances_parameters;
    set.conf = kmcf;

    return ngx_kube_parameters_set(cf, 1, &set, 1) == NGX_OK ? NGX_CONF_OK
                                                             : NGX_CONF_ERROR;
}


static char *
ngx_http_kube_check_instances(ngx_conf_t *cf, void *post, void *data)
{
    size_t  *size = data;

    return *size >= NGX_KUBE_INSTANCES_SIZE_MIN ? NGX_CONF_OK : "too small";
}


static char *
ngx_http_kube_check_weight(ngx_conf_t *cf, void *post, void *data)
{
    ngx_int_t  *weight = data;

    return (*weight >= 1 && *weight <= 65535) ? NGX_CONF_OK : "out of range";
}


ngx_int_t
ngx_http_kube_services_prepare(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf)
{
    ngx_uint_t                  i;
    ngx_http_kube_srv_conf_t  **kscf;

    kscf = kmcf->upstreams.elts;

    for (i = 0; i < kmcf->upstreams.nelts; i++) {
        kscf[i]->balancer.probe = (kmcf->unknown != 0);

        if (ngx_http_kube_service_check(cf, kscf[i]) != NGX_OK
            || ngx_http_kube_service_servers(cf, kscf[i]) != NGX_OK
            || ngx_http_kube_balancer_take(cf, kscf[i]->upstream,
                                           &kscf[i]->balancer)
               != NGX_OK)
        {
            return NGX_ERROR;
        }

        if (kscf[i]->balancer.points) {
            kscf[i]->key.ref->resolver.select.max =
                                                 KUBE_SERVICE_BUILT_HASH_MAX;
            kscf[i]->key.views.pause = NGX_HTTP_KUBE_POINTS_PAUSE;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_service_check(ngx_conf_t *cf, ngx_http_kube_srv_conf_t *kscf)
{
    ngx_http_upstream_srv_conf_t  *us;

    us = kscf->upstream;

#if (NGX_HTTP_UPSTREAM_ZONE)
    if (us->shm_zone != NULL) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "\"zone\" and \"kube_service\" cannot both be in "
                      "upstream \"%V\" in %s:%ui: remove \"zone\", the "
                      "endpoints are shared already, and \"resolve\" of its "
                      "\"server\" lines, which needs a \"zone\"",
                      &us->host, us->file_name, us->line);
        return NGX_ERROR;
    }
#endif

    if ((kscf->weight != 1 && !(us->flags & NGX_HTTP_UPSTREAM_WEIGHT))
        || (kscf->max_conns != 0
            && !(us->flags & NGX_HTTP_UPSTREAM_MAX_CONNS)))
    {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "the balancing method of upstream \"%V\" in %s:%ui "
                      "does not support weight= or max_conns=",
                      &us->host, us->file_name, us->line);
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_kube_service_servers(ngx_conf_t *cf, ngx_http_kube_srv_conf_t *kscf)
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

        if (server[i].name.data == ngx_http_kube_placeholder.data) {
            continue;
        }

        copy = ngx_array_push(&kscf->servers);
        if (copy == NULL) {
            return NGX_ERROR;
        }

        *copy = server[i];
    }

    /* these serve a key of which there is no Service */

    kscf->key.views.keep_missing = (kscf->servers.nelts != 0);

    return NGX_OK;
}


void
ngx_http_kube_services_finish(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf)
{
    ngx_uint_t                  i;
    ngx_http_kube_srv_conf_t  **kscf;

    kscf = kmcf->upstreams.elts;

    for (i = 0; i < kmcf->upstreams.nelts; i++) {
        ngx_http_kube_balancer_finish(cf, kscf[i]->upstream,
                                      &kscf[i]->balancer);

        kscf[i]->upstream->peer.init = kscf[i]->key.ref->is_static
                                       ? ngx_http_kube_init_peer_static
                                       : ngx_http_kube_init_peer;
    }
}

/*
 * ngx_http_kube - what the http files of the glue share.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_H
#define NGX_HTTP_KUBE_H


#include "ngx_kube.h"

#include <ngx_http.h>


#define NGX_HTTP_KUBE_PAGE     0x1
#define NGX_HTTP_KUBE_API      0x2
#define NGX_HTTP_KUBE_METRICS  0x4


typedef struct ngx_http_kube_instance_s  ngx_http_kube_instance_t;
typedef struct ngx_http_kube_request_s   ngx_http_kube_request_t;


typedef struct {
    ngx_array_t                   upstreams;   /* ngx_http_kube_srv_conf_t * */
} ngx_http_kube_main_conf_t;


/* A module's part of an upstream's configuration that instances clone. */
typedef struct {
    ngx_uint_t                    index;       /* ctx_index */
    size_t                        size;
    void                         *pristine;    /* before any init_upstream */
    unsigned                      own:1;       /* instances keep their clone */
} ngx_http_kube_slot_t;


/* An upstream with a kube_service line. */
typedef struct {
    ngx_kube_use_t               *use;         /* NULL: no kube_service here */
    ngx_http_complex_value_t      key;         /* keys with variables */

    ngx_int_t                     weight;
    ngx_uint_t                    max_conns;
    ngx_uint_t                    max_fails;
    time_t                        fail_timeout;

    ngx_http_upstream_srv_conf_t *upstream;
    ngx_array_t                   servers;     /* static server lines */
    ngx_array_t                   slots;       /* ngx_http_kube_slot_t */
    ngx_http_upstream_init_pt     init_upstream;
    ngx_http_upstream_init_peer_pt init_peer;
    ngx_conf_t                    cf;          /* for init_upstream later */

    /* of a worker */
    ngx_http_kube_instance_t     *instance;    /* static key */
    ngx_rbtree_t                  tree;        /* keys with variables */
    ngx_rbtree_node_t             sentinel;
    ngx_queue_t                   lru;
    ngx_uint_t                    instances;
} ngx_http_kube_srv_conf_t;


typedef struct ngx_http_kube_loc_conf_s  ngx_http_kube_loc_conf_t;

struct ngx_http_kube_loc_conf_s {
    ngx_uint_t                    status;      /* NGX_HTTP_KUBE_*; 0: off */
    ngx_flag_t                    ready;
    ngx_str_t                     ready_informer;    /* empty: all */
    ngx_msec_t                    ready_max_age;     /* 0: none */
    ngx_flag_t                    ready_allow_state;

    ngx_array_t                  *resolves;    /* ngx_http_kube_resolve_t */
    ngx_http_kube_loc_conf_t     *parent;      /* where to look next */
};


/* One kube_resolve line. */
typedef struct {
    ngx_int_t                     index;       /* of the variable */
    ngx_http_kube_srv_conf_t     *kscf;        /* views only, no peers */
} ngx_http_kube_resolve_t;


/* What a request remembers: for the balancer's wrappers and the variables. */
struct ngx_http_kube_request_s {
    ngx_http_request_t           *request;
    ngx_http_kube_srv_conf_t     *kscf;
    ngx_http_kube_instance_t     *instance;    /* the balancer's, counted */
    ngx_http_kube_instance_t     *resolved;    /* kube_resolve's, counted */
    ngx_kube_informer_t          *informer;
    ngx_str_t                     key;         /* canonical, or as given */
    ngx_kube_endpoint_t          *endpoint;    /* the last one picked */
    kube_resolve_error_t          error;

    void                         *data;        /* the wrapped balancer's */
    ngx_event_get_peer_pt         get;
    ngx_event_free_peer_pt        free;
    ngx_event_notify_peer_pt      notify;
#ifdef angie_version
    ngx_event_connect_peer_pt     connect;
    ngx_event_close_peer_pt       close;
#endif
#if (NGX_HTTP_SSL)
    ngx_event_set_peer_session_pt   set_session;
    ngx_event_save_peer_session_pt  save_session;
#endif

    ngx_array_t                  *tried;       /* ngx_sockaddr_t */
    ngx_uint_t                    attempts;
    unsigned                      failed:1;    /* look again before the next */
    unsigned                      switched:1;  /* not the first instance */
};


extern ngx_module_t  ngx_http_kube_module;


/* ngx_http_kube_module.c */

/*
 * The request's kube data, made when create is set.  It survives internal
 * redirects, which clear module contexts: a pool clean-up holds it.
 */
ngx_http_kube_request_t *ngx_http_kube_request(ngx_http_request_t *r,
    ngx_uint_t create);


/* ngx_http_kube_service.c, _upstream.c, _slots.c, _instance.c */

char *ngx_http_kube_service(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* The key of kube_service or kube_resolve: static or with variables. */
ngx_int_t ngx_http_kube_key(ngx_conf_t *cf, ngx_http_kube_srv_conf_t *kscf,
    ngx_str_t *text);
ngx_int_t ngx_http_kube_upstream_prepare(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf);
ngx_int_t ngx_http_kube_upstream_finish(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf);
ngx_int_t ngx_http_kube_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);

/*
 * Snapshots what other modules hold for this upstream, before any
 * init_upstream ran; NGX_ERROR (logged) where an unknown module changed its
 * part: an instance could not be made of it.
 */
ngx_int_t ngx_http_kube_slots_take(ngx_conf_t *cf,
    ngx_http_kube_srv_conf_t *kscf);

/* Readies the look-up of instances; kscf->use is set. */
void ngx_http_kube_instances_init(ngx_http_kube_srv_conf_t *kscf);

struct ngx_http_kube_instance_s {
    ngx_rbtree_node_t             node;        /* key: hash of text */
    ngx_queue_t                   queue;
    ngx_str_t                     text;        /* the key as evaluated */
    kube_key_t                    key;         /* views text */

    ngx_pool_t                   *pool;
    ngx_uint_t                    refs;
    ngx_msec_t                    used;
    ngx_msec_t                    retry;       /* a build failed: not before */
    ngx_kube_view_t              *view;        /* counted */
    ngx_sockaddr_t               *addrs;       /* view->n */
    ngx_uint_t                    usable;      /* has peers to try */
    ngx_uint_t                    next;        /* kube_resolve: turn */
    ngx_http_upstream_srv_conf_t  us;          /* peers of this revision */
};

/*
 * The newest instance for a key, borrowed (reference it to keep it), or NULL
 * with *error.  text views the request's memory.
 */
ngx_http_kube_instance_t *ngx_http_kube_instance_get(
    ngx_http_kube_srv_conf_t *kscf, ngx_str_t *text, ngx_log_t *log,
    kube_resolve_error_t *error);
void ngx_http_kube_instance_release(ngx_http_kube_instance_t *inst);

/* The endpoint behind an address that a balancer picked; NULL: static. */
ngx_kube_endpoint_t *ngx_http_kube_instance_endpoint(
    ngx_http_kube_instance_t *inst, struct sockaddr *sockaddr);


/* ngx_http_kube_variable.c */

ngx_int_t ngx_http_kube_add_variables(ngx_conf_t *cf);
char *ngx_http_kube_resolve(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


/* ngx_http_kube_status.c, ngx_http_kube_ready.c */

char *ngx_http_kube_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_kube_ready(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


#endif /* NGX_HTTP_KUBE_H */

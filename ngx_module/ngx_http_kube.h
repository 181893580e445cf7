/*
 * ngx_http_kube - the configuration of the http module, as its files see it.
 *
 * Types, and the directives kube_status and kube_ready; each other file has its
 * functions in a header of its own.  It does nothing itself; for the files of
 * the http module, at configuration time and in workers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_HTTP_KUBE_H
#define NGX_HTTP_KUBE_H


#include "ngx_http_kube_rows.h"
#include "ngx_kube_views.h"


#define NGX_HTTP_KUBE_PAGE     0x1
#define NGX_HTTP_KUBE_API      0x2
#define NGX_HTTP_KUBE_METRICS  0x4
#define NGX_HTTP_KUBE_EVENTS   0x8

/* Modules that send requests to upstreams, by name. */
#define NGX_HTTP_KUBE_SENDERS_MAX  7


/*
 * Of what few requests need: inlined, it would have all of them save registers
 * for it.
 */
#define NGX_HTTP_KUBE_RARE     __attribute__((cold, noinline))


/* The key of a kube_service or kube_resolve line, and its views. */
typedef struct {
    ngx_kube_ref_t               *ref;
    ngx_http_complex_value_t      value;       /* unused with a static key */
    ngx_kube_views_t              views;
} ngx_http_kube_key_t;


/* A module's part of an upstream's configuration that peers clone. */
typedef struct {
    ngx_uint_t                    index;       /* ctx_index */
    size_t                        size;
    void                         *pristine;    /* before any init_upstream */
    unsigned                      own:1;       /* peers keep their clone */
} ngx_http_kube_slot_t;

/* The balancing method of an upstream, as stock modules set it up. */
typedef struct {
    ngx_array_t                   slots;       /* ngx_http_kube_slot_t */
    ngx_http_upstream_init_pt     init_upstream;
    ngx_http_upstream_init_peer_pt init_peer;
    ngx_conf_t                    cf;          /* for init_upstream later */

    /* the innermost one; what stands in its place calls it */
    ngx_http_upstream_init_pt     method;
    ngx_http_upstream_init_peer_pt method_init_peer;
    unsigned                      probe:1;     /* kube_balancer */
    unsigned                      unknown:1;   /* method passed its trial */
    unsigned                      points:1;    /* hash consistent: many for
                                                  each peer, sorted */
    unsigned                      own:1;       /* peers keep parts of other
                                                  modules that are theirs */
    unsigned                      plain:1;     /* requests need not keep views:
                                                  see ngx_http_kube_stock.c */
} ngx_http_kube_balancer_t;


/* An upstream with a kube_service line. */
typedef struct {
    ngx_http_kube_key_t           key;         /* ref NULL: no kube_service */

    ngx_int_t                     weight;
    ngx_int_t                     max_conns;
    ngx_int_t                     max_fails;
    time_t                        fail_timeout;
    ngx_msec_t                    unsynced_wait;

    /* of unsynced_wait, in each worker: not seen synced yet */
    unsigned                      may_wait:1;
    unsigned                      awaited:1;   /* as of awaited_msec */
    ngx_msec_t                    awaited_msec;

    ngx_http_upstream_srv_conf_t *upstream;
    ngx_array_t                   servers;     /* static server lines */
    ngx_http_kube_balancer_t      balancer;
    ngx_http_kube_rows_t          rows;        /* a worker's */
} ngx_http_kube_srv_conf_t;


/* A kube_resolve line. */
typedef struct {
    ngx_int_t                     index;       /* of the variable */
    unsigned                      evaluated:1; /* its key, at this moment */
    ngx_http_kube_key_t           key;
} ngx_http_kube_resolve_t;

/* A variable of kube_resolve lines, and the first of them. */
typedef struct {
    ngx_str_t                     name;
    ngx_int_t                     index;
    ngx_str_t                     file;
    ngx_uint_t                    line;
} ngx_http_kube_resolved_t;


/* A kube_ready line with max_age=. */
typedef struct {
    ngx_str_t                     informer;    /* empty: all */
    ngx_msec_t                    max_age;
    ngx_str_t                     file;
    ngx_uint_t                    line;
} ngx_http_kube_max_age_t;


typedef struct {
    ngx_array_t                   upstreams;   /* ngx_http_kube_srv_conf_t * */
    ngx_array_t                   resolved;    /* ngx_http_kube_resolved_t */
    ngx_array_t                  *trials;      /* of balancing methods; NULL:
                                                  none was tried yet */
    ngx_array_t                   max_ages;    /* ngx_http_kube_max_age_t */
    size_t                        instances_size;    /* kube_instances */
    ngx_uint_t                    unknown;     /* kube_balancer: probe them */

    /* of unsynced_wait; see its file */
    ngx_uint_t                    senders[NGX_HTTP_KUBE_SENDERS_MAX];
    ngx_uint_t                    senders_n;
} ngx_http_kube_main_conf_t;


typedef struct ngx_http_kube_loc_conf_s  ngx_http_kube_loc_conf_t;

struct ngx_http_kube_loc_conf_s {
    ngx_http_core_loc_conf_t     *location;    /* of status or ready */
    ngx_uint_t                    status;      /* NGX_HTTP_KUBE_*; 0: off */
    ngx_flag_t                    ready;
    ngx_str_t                     ready_informer;    /* empty: all */
    ngx_msec_t                    ready_max_age;     /* 0: none */
    unsigned                      ready_flags;       /* KUBE_READY_ */
    unsigned                      never_waits:1;     /* in this worker */

    ngx_array_t                  *resolves;    /* ngx_http_kube_resolve_t * */
    ngx_http_kube_loc_conf_t     *parent;      /* where to look next */
};


extern ngx_module_t  ngx_http_kube_module;


/* ngx_http_kube_status.c, ngx_http_kube_ready.c */

char *ngx_http_kube_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_kube_ready(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* Once the file was read: warns of a max_age= that a quiet cluster exceeds. */
ngx_int_t ngx_http_kube_ready_check(ngx_cycle_t *cycle);


#endif /* NGX_HTTP_KUBE_H */

/*
 * ngx_kube - what the glue files share: the configuration of kube_informer
 * blocks, the zone's handle, and what the informer process is made of.
 *
 * Who resolves keys is in ngx_kube_refs.h, what they resolve to in
 * ngx_kube_view.h.  No parsing of API objects, no policy and no state machine
 * here: those are in src/.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef NGX_KUBE_H
#define NGX_KUBE_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>

#include "kube_informer.h"
#include "kube_policy.h"
#include "kube_zone_scope.h"


#define NGX_KUBE_ZONE_SIZE        (32 * 1024 * 1024)
#define NGX_KUBE_AUTO_NAMESPACES  8

/* Where state files go unless state_path says otherwise. */
#ifndef NGX_KUBE_STATE_PATH
#define NGX_KUBE_STATE_PATH       "/var/lib/nginx/kube"
#endif


typedef enum {
    NGX_KUBE_NAMESPACES_AUTO = 0,
    NGX_KUBE_NAMESPACES_ALL,
    NGX_KUBE_NAMESPACES_NAMED
} ngx_kube_namespaces_e;


typedef struct ngx_kube_feed_s  ngx_kube_feed_t;     /* ngx_kube_feed.h */

/* One kube_informer block.  Lives in its cycle's pool. */
typedef struct {
    ngx_str_t               name;
    ngx_str_t               file;              /* where the block stands */
    ngx_uint_t              line;

    ngx_str_t               zone_name;
    size_t                  zone_size;
    ngx_shm_zone_t         *shm_zone;
    kube_zone_t             zone;              /* image NULL: not attached */
    _Atomic uint64_t       *counters;          /* in it, of this worker; NULL:
                                                  it has counted nothing yet */
    int                     events_fd;         /* eventfd(2); -1: there is
                                                  none */
    ngx_kube_feed_t        *feed;              /* of this process, or NULL */

    kube_config_t           config;            /* structure, no secrets read */
    ngx_str_t               kubeconfig;        /* read by the informer */
    ngx_str_t               context;
    ngx_uint_t              api_line;          /* of the "api" directive */
    ngx_flag_t              tls_verify;
    unsigned                api_set:1;

    ngx_kube_namespaces_e   namespaces_mode;
    unsigned                namespaces_set:1;
    ngx_array_t             namespaces;        /* kube_str_t; n 0: all */

    ngx_array_t             static_keys;       /* kube_str_t "ns/name" */
    ngx_array_t             refs;              /* ngx_kube_ref_t *, with keys */

    kube_str_t              label_selector[KUBE_RESOURCES_ROUTED];
    ngx_int_t               page_size;
    ngx_uint_t              watch_list;        /* kube_watch_list_t */
    ngx_uint_t              endpoints;         /* kube_endpoints_t */
    ngx_uint_t              encoding;          /* kube_encoding_t */
    ngx_msec_t              watch_timeout;
    ngx_msec_t              connect_timeout;
    ngx_msec_t              idle_timeout;
    ngx_msec_t              backoff_first;
    ngx_msec_t              backoff_max;
    ngx_msec_t              backoff_unreachable;
    size_t                  max_object;
    ngx_msec_t              max_outdated;
    ngx_int_t               zone_share;        /* percent */

    ngx_array_t             allow;             /* kube_cidr_t */
    ngx_array_t             deny;              /* kube_cidr_t */
    kube_policy_t           policy;

    ngx_str_t               state_path;        /* empty: off */
    ngx_msec_t              state_max_age;
    unsigned                state_named:1;     /* given, not the default */
} ngx_kube_informer_t;


typedef struct {
    ngx_array_t             informers;         /* ngx_kube_informer_t * */
    ngx_array_t             refs;              /* ngx_kube_ref_t * */
} ngx_kube_conf_t;


extern ngx_module_t  ngx_kube_module;

/* Its commands are the directives inside a block; "KUBE" and a type bit. */
extern ngx_module_t  ngx_kube_block_module;

#define NGX_KUBE_BLOCK_MODULE  0x4542554b
#define NGX_KUBE_BLOCK_CONF    0x02000000

#define ngx_kube_get_conf(cycle)                                              \
    ((ngx_kube_conf_t *) ngx_get_conf((cycle)->conf_ctx, ngx_kube_module))


/* The same bytes as src/ sees them. */
static ngx_inline kube_str_t
ngx_kube_str(const ngx_str_t *s)
{
    kube_str_t  str;

    str.data = (char *) s->data;
    str.len = s->len;

    return str;
}


/* ngx_kube_conf.c, ngx_kube_directive.c */

ngx_kube_informer_t *ngx_kube_informer_find(ngx_kube_conf_t *kcf,
    ngx_str_t *name);

char *ngx_kube_informer_block(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

/* ngx_kube_kubeconfig.c */

/*
 * Reads the block's kubeconfig, in the context it names, into an initialised
 * config.  Results and error as kube_config_kubeconfig().  Only where secrets
 * may be: in the informer process.
 */
kube_rc_t ngx_kube_kubeconfig_read(const ngx_kube_informer_t *block,
    kube_config_t *config, kube_error_t *error);

/* Writes what is wrong with it, and in which line, cut and with a NUL. */
void ngx_kube_kubeconfig_what(u_char *what, size_t size,
    const kube_error_t *error);

/*
 * Has a child judge the block's kubeconfig, if it names one, as "user".
 * NGX_ERROR: it cannot be used, which is logged; that it could not be judged
 * in 5 s is a warning.
 */
ngx_int_t ngx_kube_kubeconfig_check(ngx_cycle_t *cycle,
    ngx_kube_informer_t *block);


/* ngx_kube_listen.c */

/* Tells the policy of each block where this nginx listens, once that is set. */
void ngx_kube_listen_collect(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf);


/* ngx_kube_zone.c */

/* Makes the block's shm_zone its own. */
ngx_int_t ngx_kube_zone_add(ngx_conf_t *cf, ngx_kube_informer_t *informer);

/* New memory for zones that pass from one cluster to another. */
void ngx_kube_zone_exchanged(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf);

/* That is kept from now on: the configuration is the one that runs. */
void ngx_kube_zone_settled(ngx_cycle_t *cycle, ngx_kube_conf_t *kcf);

/*
 * In a worker: closes the guard.  A debug build also maps what is in the zone
 * read-only there, but for the rows that workers count in: a stray write ends
 * the process at once.
 */
void ngx_kube_zone_leave(ngx_kube_informer_t *informer);

void ngx_kube_informer_health(ngx_kube_informer_t *informer,
    kube_health_t *health);


/* ngx_kube_process.c */

/* Makes the cache manager host the informers of the cycle. */
ngx_int_t ngx_kube_process_prepare(ngx_cycle_t *cycle);
/* In the only process of "master_process off". */
void ngx_kube_process_start(ngx_cycle_t *cycle);
void ngx_kube_process_stop(void);


/* ngx_kube_loop.c: nginx's events and timers as the loop of an informer */

typedef struct {
    void        (*run)(void *data);            /* does what is due */
    uint64_t    (*deadline)(void *data);       /* when to run again */
    void         *data;
    int           fd;                          /* level-triggered readable */

    ngx_connection_t  *connection;
    ngx_event_t        timer;
    ngx_event_t        again;
    ngx_log_t         *log;
} ngx_kube_loop_t;

ngx_int_t ngx_kube_loop_start(ngx_kube_loop_t *loop);

/* As the process ends. */
void ngx_kube_loop_stop(ngx_kube_loop_t *loop);

/* Has a loop that was started run before nginx waits for events again. */
void ngx_kube_loop_wake(ngx_kube_loop_t *loop);

/* CLOCK_MONOTONIC in ms: the clock of the zone, the same in all processes. */
uint64_t ngx_kube_now(void);
int64_t ngx_kube_unix_ms(void);

/* malloc, for what outlives requests. */
extern const kube_alloc_t  ngx_kube_alloc;


/* ngx_kube_state.c: the state file, in the informer process only */

typedef struct ngx_kube_state_s  ngx_kube_state_t;

/*
 * The client, which knows the CA, and the loop that writes are borrowed.  NULL:
 * there is to be none.
 */
ngx_kube_state_t *ngx_kube_state_create(ngx_kube_informer_t *informer,
    kube_client_t *client, ngx_kube_loop_t *loop, ngx_log_t *log);
void ngx_kube_state_destroy(ngx_kube_state_t *state);

/*
 * For a zone that is new: asks the process that writes the file, where there
 * is one, to write it now.
 */
void ngx_kube_state_ask(ngx_kube_state_t *state, uint64_t now_ms);

/*
 * Returns when to look again (monotonic ms), or 0: there is nothing to wait
 * for, the file is as new as it will be.  It never waits for long.
 */
uint64_t ngx_kube_state_awaited(ngx_kube_state_t *state, uint64_t now_ms);

/* Feeds a valid, young file to an informer that wants one. */
void ngx_kube_state_load(ngx_kube_state_t *state, kube_informer_t *inf);

/* What the status shows where no file is written any more. */
void ngx_kube_state_off(ngx_kube_informer_t *informer, kube_informer_t *inf);

/* Writes the file when due; returns when to come again (monotonic ms). */
uint64_t ngx_kube_state_process(ngx_kube_state_t *state,
    kube_informer_t *inf, uint64_t now_ms);

/*
 * At the end of the process: last takes what is to be written from the
 * informer, if the file lacks it, and finish, which needs no informer, writes
 * it until the deadline, and then what is no more than a slice.  Of no state
 * (NULL) or no informer nothing is written.
 */
void ngx_kube_state_last(ngx_kube_state_t *state, kube_informer_t *inf,
    uint64_t now_ms);
void ngx_kube_state_finish(ngx_kube_state_t *state, uint64_t deadline_ms);


#endif /* NGX_KUBE_H */

/*
 * ngx_http_kube_wait - a handler of the preaccess phase that holds a request
 * while the first list of what its upstream needs is on its way.
 *
 * An upstream waits until it was seen synced once, in each worker: an outage
 * later costs nobody a wait.  Which upstream a request will go to is read from
 * the configuration of the module that will send it there; where variables in
 * "proxy_pass" name the upstream, nobody knows that yet, and nothing waits.
 *
 * It keeps nothing of what it resolves.  Workers only, but for what is for
 * postconfiguration.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_http_kube_request.h"
#include "ngx_http_kube_wait.h"

#include <assert.h>

#include "kube_coverage.h"
#include "kube_resolver.h"
#include "kube_zone_cause.h"
#include "kube_zone_damping.h"
#include "kube_zone_guard.h"


/* A worker holds no more requests than these, and looks every 10 ms. */
#define NGX_HTTP_KUBE_WAIT_MAX     512
#define NGX_HTTP_KUBE_WAIT_PERIOD  10

#define NGX_HTTP_KUBE_WAIT_ARENA   (1024 * 1024)


/* A request that is held. */
typedef struct {
    ngx_http_request_t        *request;    /* the first */
    ngx_http_kube_srv_conf_t  *kscf;
    ngx_msec_t                 begin;
    unsigned                   held:1;
} ngx_http_kube_wait_t;

/* What a look at the zone has found, whatever the key is. */
typedef struct {
    const kube_zone_t  *zone;
    kube_arena_t        arena;
    bool                listed;          /* the first lists are over */
    bool                put_off;         /* a crash loop has lists wait, and
                                            a state file serves meanwhile */
    ngx_uint_t          state_in_use;
} ngx_http_kube_look_t;


static void ngx_http_kube_wait_senders(ngx_conf_t *cf,
    ngx_http_kube_main_conf_t *kmcf);
static ngx_int_t ngx_http_kube_wait_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_kube_wait_begin(ngx_http_request_t *r,
    ngx_http_kube_loc_conf_t *klcf) NGX_HTTP_KUBE_RARE;
static ngx_uint_t ngx_http_kube_wait_needed(ngx_http_kube_srv_conf_t *kscf);
static ngx_uint_t ngx_http_kube_of_file(const kube_resolution_t *resolution,
    ngx_uint_t in_use);
static bool ngx_http_kube_of_slices(const kube_resolution_t *resolution);
static bool ngx_http_kube_static_awaited(ngx_kube_ref_t *ref,
    const kube_namespaces_t *its, ngx_http_kube_look_t *look);
static bool ngx_http_kube_variable_awaited(ngx_kube_ref_t *ref,
    ngx_http_kube_look_t *look);
static ngx_uint_t ngx_http_kube_awaited(ngx_kube_ref_t *ref);
static void ngx_http_kube_wait_again(ngx_http_request_t *r,
    ngx_http_kube_wait_t *wait);
static void ngx_http_kube_wait_over(ngx_http_request_t *r);
static void ngx_http_kube_wait_cleanup(void *data);


/*
 * Modules whose location configuration begins with the upstream's, which
 * begins with a pointer to the upstream (NULL where variables name it).
 */
static const char *const  ngx_http_kube_senders[] = {
    "ngx_http_proxy_module",
    "ngx_http_grpc_module",
    "ngx_http_fastcgi_module",
    "ngx_http_uwsgi_module",
    "ngx_http_scgi_module",
    "ngx_http_memcached_module",
    "ngx_http_tunnel_module"
};

#define NGX_HTTP_KUBE_SENDERS                                                 \
    (sizeof(ngx_http_kube_senders) / sizeof(ngx_http_kube_senders[0]))

static_assert(offsetof(ngx_http_upstream_conf_t, upstream) == 0,
              "the upstream is looked for where its configuration begins");

static_assert(NGX_HTTP_KUBE_SENDERS <= NGX_HTTP_KUBE_SENDERS_MAX,
              "each sender has its place in the main configuration");


/* Requests held by this worker. */

static ngx_uint_t  ngx_http_kube_held;


ngx_int_t
ngx_http_kube_wait_add(ngx_conf_t *cf, ngx_http_kube_main_conf_t *kmcf)
{
    ngx_uint_t                  i, n;
    ngx_http_handler_pt        *handler;
    ngx_http_kube_srv_conf_t  **kscf;
    ngx_http_core_main_conf_t  *cmcf;

    kscf = kmcf->upstreams.elts;
    n = 0;

    for (i = 0; i < kmcf->upstreams.nelts; i++) {
        kscf[i]->may_wait = (kscf[i]->unsynced_wait != 0);
        n += kscf[i]->may_wait;
    }

    ngx_http_kube_wait_senders(cf, kmcf);

    if (n == 0) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    handler = ngx_array_push(
                   &cmcf->phases[NGX_HTTP_PREACCESS_PHASE].handlers);
    if (handler == NULL) {
        return NGX_ERROR;
    }

    *handler = ngx_http_kube_wait_handler;

    return NGX_OK;
}


static void
ngx_http_kube_wait_senders(ngx_conf_t *cf, ngx_http_kube_main_conf_t *kmcf)
{
    ngx_uint_t     i, n;
    ngx_module_t  *module;

    for (i = 0; cf->cycle->modules[i] != NULL; i++) {
        module = cf->cycle->modules[i];

        if (module->type != NGX_HTTP_MODULE) {
            continue;
        }

        for (n = 0; n < NGX_HTTP_KUBE_SENDERS; n++) {
            if (ngx_strcmp(module->name, ngx_http_kube_senders[n]) == 0) {
                kmcf->senders[kmcf->senders_n++] = module->ctx_index;
                break;
            }
        }
    }
}


static ngx_int_t
ngx_http_kube_wait_handler(ngx_http_request_t *r)
{
    ngx_http_kube_loc_conf_t  *klcf;

    klcf = ngx_http_get_module_loc_conf(r, ngx_http_kube_module);

    if (klcf->never_waits || r != r->main) {
        return NGX_DECLINED;
    }

    return ngx_http_kube_wait_begin(r, klcf);
}


static ngx_int_t
ngx_http_kube_wait_begin(ngx_http_request_t *r,
    ngx_http_kube_loc_conf_t *klcf)
{
    ngx_http_kube_wait_t      *wait;
    ngx_pool_cleanup_t        *cln;
    ngx_http_kube_srv_conf_t  *kscf;
    ngx_http_upstream_conf_t  *conf;

    /* where a location sends requests does not change; it waits but once */

    kscf = ngx_http_kube_destination(r, &conf);

    if (kscf != NULL && kscf->may_wait) {
        kscf->may_wait = ngx_http_kube_wait_needed(kscf);
    }

    if (kscf == NULL || !kscf->may_wait) {
        klcf->never_waits = 1;
        return NGX_DECLINED;
    }

    /* a request waits once, wherever it is sent internally */

    if (ngx_http_kube_held >= NGX_HTTP_KUBE_WAIT_MAX
        || ngx_http_kube_remembered(r, ngx_http_kube_wait_cleanup) != NULL)
    {
        return NGX_DECLINED;
    }

    cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_kube_wait_t));
    if (cln == NULL
        || ngx_handle_read_event(r->connection->read, 0) != NGX_OK)
    {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    wait = cln->data;
    wait->request = r;
    wait->kscf = kscf;
    wait->begin = ngx_current_msec;
    wait->held = 1;

    cln->handler = ngx_http_kube_wait_cleanup;
    ngx_http_kube_held++;

    if (!conf->ignore_client_abort) {
        r->read_event_handler = ngx_http_test_reading;
    }

    r->write_event_handler = ngx_http_kube_wait_over;

    ngx_http_kube_wait_again(r, wait);

    return NGX_AGAIN;
}


ngx_http_kube_srv_conf_t *
ngx_http_kube_destination(ngx_http_request_t *r,
    ngx_http_upstream_conf_t **conf)
{
    ngx_uint_t                     i;
    ngx_http_core_loc_conf_t      *clcf;
    ngx_http_kube_srv_conf_t      *kscf;
    ngx_http_upstream_conf_t      *sender;
    ngx_http_kube_main_conf_t     *kmcf;
    ngx_http_upstream_srv_conf_t  *us;

    kmcf = ngx_http_get_module_main_conf(r, ngx_http_kube_module);
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);
    us = NULL;

    for (i = 0; i < kmcf->senders_n; i++) {
        sender = r->loc_conf[kmcf->senders[i]];

        if (sender->upstream == NULL) {
            continue;
        }

        if (us == NULL) {
            us = sender->upstream;
            *conf = sender;

        } else if (clcf->noname) {

            /* an "if" has what it inherited beside what it names itself */

            return NULL;
        }
    }

    /* an upstream without a block of its own has no srv_conf */

    if (us == NULL || us->srv_conf == NULL) {
        return NULL;
    }

    kscf = ngx_http_conf_upstream_srv_conf(us, ngx_http_kube_module);

    return (kscf->key.ref != NULL) ? kscf : NULL;
}


/* Asked by every request that is held: the zone is looked at once a ms. */

static ngx_uint_t
ngx_http_kube_wait_needed(ngx_http_kube_srv_conf_t *kscf)
{
    if (!kscf->awaited || kscf->awaited_msec != ngx_current_msec) {
        kscf->awaited = ngx_http_kube_awaited(kscf->key.ref);
        kscf->awaited_msec = ngx_current_msec;
    }

    return kscf->awaited;
}


/* Whether it is a state file's; what has no room in the arena may be. */

static ngx_uint_t
ngx_http_kube_of_file(const kube_resolution_t *resolution, ngx_uint_t in_use)
{
    ngx_uint_t  large;

    large = (resolution->error == KUBE_RESOLVE_TOO_LARGE && in_use);

    return (large && resolution->snapshot.entry == 0)
           || (resolution->snapshot.from_state_file
               && (large || resolution->found));
}


/*
 * Of a first list within which an informer process ended there may be a part of
 * a Service: that serves nobody until its namespace was listed.  What the
 * Service alone says, that there is none once all Services are listed, or that
 * there will be no list, is known whatever else is listed.
 */

static bool
ngx_http_kube_of_slices(const kube_resolution_t *resolution)
{
    switch (resolution->error) {

    case KUBE_RESOLVE_NO_SERVICE:
    case KUBE_RESOLVE_NO_PORT:
    case KUBE_RESOLVE_PORT_NEEDED:
    case KUBE_RESOLVE_EXTERNAL_NAME:
    case KUBE_RESOLVE_FORBIDDEN:
        return false;

    default:
        return true;
    }
}


static bool
ngx_http_kube_static_awaited(ngx_kube_ref_t *ref,
    const kube_namespaces_t *its, ngx_http_kube_look_t *look)
{
    bool               seen;
    kube_rc_t          rc;
    kube_resolution_t  resolution;

    kube_arena_reset(&look->arena);
    seen = look->put_off
           || kube_coverage_seen(look->zone, its, true, &look->arena);

    kube_arena_reset(&look->arena);
    rc = kube_resolve(&ref->resolver, &ref->key, 0, &look->arena, &resolution);

    if (rc != KUBE_OK) {
        return rc == KUBE_CHANGED;
    }

    if (resolution.error == KUBE_RESOLVE_NOT_SYNCED) {
        return true;
    }

    if (!seen && ngx_http_kube_of_slices(&resolution)) {
        return true;
    }

    return !look->put_off
           && ngx_http_kube_of_file(&resolution, look->state_in_use);
}


static bool
ngx_http_kube_variable_awaited(ngx_kube_ref_t *ref, ngx_http_kube_look_t *look)
{
    if (look->put_off && look->state_in_use == KUBE_STATE_FILE_WHOLE) {
        return false;
    }

    kube_arena_reset(&look->arena);

    return !kube_coverage_seen(look->zone, &ref->resolver.namespaces,
                               !look->listed, &look->arena);
}


/*
 * A changed scope is listed anew while what was there before serves on: then
 * only a static key that cannot be resolved waits.  A key of variables is not
 * evaluated here, where not all of these have their values yet: it waits until
 * each of the namespaces that it may name was listed, be it by a predecessor
 * of this informer process; once the first lists are over until one was.  A
 * state file, which may tell of Pods that are gone, is for a server that is
 * away: until that has shown, the list is awaited, whichever informer process
 * lists, and what the file alone tells of serves nobody.  While a crash loop
 * has lists put off, and no failure shows, it serves as if the server were
 * away, a key of variables once all of it is loaded.
 */

static ngx_uint_t
ngx_http_kube_awaited(ngx_kube_ref_t *ref)
{
    bool                  awaited, served, another;
    kube_zone_delay_t     delay;
    kube_namespaces_t     its;
    kube_writer_info_t    writer;
    ngx_http_kube_look_t  look;

    look.zone = &ref->informer->zone;
    kube_zone_writer_info(look.zone, &writer);
    kube_zone_crash_delay(look.zone, ngx_kube_now(), &delay);

    served = (writer.state_in_use && !ref->resolver.unsynced_fail);
    another = (writer.takeovers != 0);

    look.state_in_use = writer.state_in_use;
    look.put_off = (served && delay.list_ms != 0);

    its = ref->resolver.namespaces;

    if (ref->is_static) {
        ngx_memzero(&its, sizeof(kube_namespaces_t));
        its.names = &ref->key.ns;
        its.names_n = 1;
    }

    kube_arena_init(&look.arena, &ngx_kube_alloc, NGX_HTTP_KUBE_WAIT_ARENA);

    awaited = kube_coverage_awaited(look.zone, &its, served, &look.arena);
    look.listed = (kube_zone_ready(look.zone) & KUBE_READY_LISTED) != 0;

    if (awaited && ref->is_static && another) {
        awaited = ngx_http_kube_static_awaited(ref, &its, &look);

    } else if (awaited && !ref->is_static && (look.listed || another)) {
        awaited = ngx_http_kube_variable_awaited(ref, &look);
    }

    kube_arena_done(&look.arena);

    return awaited;
}


static void
ngx_http_kube_wait_again(ngx_http_request_t *r, ngx_http_kube_wait_t *wait)
{
    ngx_msec_t  left;

    left = wait->begin + wait->kscf->unsynced_wait - ngx_current_msec;

    r->connection->write->delayed = 1;
    ngx_add_timer(r->connection->write,
                  ngx_min(left, NGX_HTTP_KUBE_WAIT_PERIOD));
}


/* Runs the phases from the preaccess handler on, which holds nobody twice. */

static void
ngx_http_kube_wait_over(ngx_http_request_t *r)
{
    ngx_event_t           *wev;
    ngx_http_kube_wait_t  *wait;

    wev = r->connection->write;

    if (wev->delayed) {

        if (ngx_handle_write_event(wev, 0) != NGX_OK) {
            ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        }

        return;
    }

    wait = ngx_http_kube_remembered(r, ngx_http_kube_wait_cleanup);

    if (ngx_current_msec - wait->begin < wait->kscf->unsynced_wait
        && ngx_http_kube_wait_needed(wait->kscf))
    {
        ngx_http_kube_wait_again(r, wait);
        return;
    }

    ngx_http_kube_wait_cleanup(wait);

    if (ngx_handle_read_event(r->connection->read, 0) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_HTTP_INTERNAL_SERVER_ERROR);
        return;
    }

    r->read_event_handler = ngx_http_block_reading;
    r->write_event_handler = ngx_http_core_run_phases;

    ngx_http_core_run_phases(r);
}


static void
ngx_http_kube_wait_cleanup(void *data)
{
    ngx_http_kube_wait_t *wait = data;

    ngx_http_kube_held -= wait->held;
    wait->held = 0;
}

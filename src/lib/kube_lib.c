/*
 * kube_lib - a kube_t: who is asked and as whom, the factory of informers, and
 * the loop.
 *
 * The descriptor that programs wait for is an epoll of two: the client's, and
 * an eventfd for kube_wake().  Nothing here looks at objects.  Called by
 * programs, through kube.h.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "kube_api_lister_watcher.h"
#include "kube_curl_memory.h"
#include "kube_lib.h"


#define LIB_CONNECT_MS      3000
#define LIB_CONNECT_MAX_MS  600000


static uint64_t
lib_now(const kube_t *kube)
{
    return kube->env.now(kube->env.ctx);
}


static void
lib_why(char *why, size_t size, const char *text, size_t line)
{
    if (size == 0) {
        return;
    }

    if (line != 0) {
        (void) snprintf(why, size, "%s in line %zu", text, line);

    } else {
        (void) snprintf(why, size, "%s", text);
    }
}


static void
lib_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    char           text[KUBE_LOG_LINE_MAX + 32];
    const kube_t  *kube = ctx;

    (void) snprintf(text, sizeof(text), "%s: %s", kube_event_text(id), line);

    kube->options.log(kube->options.log_ctx, (kube_l_level_t) level, text);
}


static kube_log_sink_t
lib_sink(kube_t *kube)
{
    return (kube_log_sink_t) {
        .write = (kube->options.log != NULL) ? lib_log : NULL,
        .ctx = kube
    };
}


/* The program's source, or the API server. */
static kube_rc_t
lib_lister_watcher(void *ctx, kube_resource_t resource, kube_str_t ns,
    kube_lister_watcher_t *lw)
{
    kube_rc_t                        rc;
    kube_t                          *kube = ctx;
    kube_api_lister_watcher_conf_t   conf;

    if (kube->sources[resource] != NULL) {
        rc = kube_memory_lister_watcher_create(
                 kube->sources[resource]->memory, ns, lw);

        if (rc == KUBE_OK) {
            lw->local = true;
        }

        return rc;
    }

    if (kube->client == NULL) {
        return KUBE_NOT_FOUND;
    }

    conf = (kube_api_lister_watcher_conf_t) {
        .encoding = KUBE_ENCODING_JSON,
        .io = kube_client_io(kube->client),
        .resource = resource,
        .ns = ns,
        .label_selector = kube->selectors[resource],
        .object_bytes_max = KUBE_OBJECT_BYTES_DEFAULT
    };

    return kube_api_lister_watcher_create(&kube->env.alloc, &conf, lw);
}


static kube_rc_t
lib_config_url(kube_t *kube, kube_error_t *error)
{
    kube_rc_t              rc;
    kube_config_t         *config;
    const kube_options_t  *o;

    o = &kube->options;
    config = &kube->config;

    rc = kube_config_add_server(config, kube_str(o->server), error);

    if (rc != KUBE_OK) {
        return rc;
    }

    error->what = NULL;

    if (o->token_file != NULL) {
        rc = kube_config_set(config, &config->token.path,
                             kube_str(o->token_file));
    }

    if (rc == KUBE_OK && o->ca_file != NULL) {
        rc = kube_config_set(config, &config->ca.path, kube_str(o->ca_file));
    }

    return rc;
}


static kube_rc_t
lib_config(kube_t *kube, kube_error_t *error)
{
    kube_rc_t              rc;
    const kube_options_t  *o;

    o = &kube->options;

    if (o->kubeconfig != NULL) {
        rc = kube_config_kubeconfig(&kube->config, o->kubeconfig, o->context,
                                    error);
    } else if (o->server != NULL) {
        rc = lib_config_url(kube, error);

    } else {
        rc = kube_config_in_cluster(&kube->config,
                                    getenv("KUBERNETES_SERVICE_HOST"),
                                    getenv("KUBERNETES_SERVICE_PORT"),
                                    KUBE_SERVICE_ACCOUNT_DIR, error);
    }

    return (rc == KUBE_OK) ? kube_config_check(&kube->config, error) : rc;
}


static kube_rc_t
lib_client(kube_t *kube, kube_error_t *error)
{
    kube_rc_t           rc;
    kube_client_conf_t  conf;

    /* before its parser of URLs: another thread may be about to, too */

    kube->curl = kube_curl_memory_init();

    if (!kube->curl) {
        return KUBE_NOMEM;
    }

    rc = lib_config(kube, error);

    if (rc != KUBE_OK) {
        return rc;
    }

    conf = (kube_client_conf_t) {
        .config = &kube->config,
        .connect_timeout_ms = kube->options.connect_timeout_ms,
        .agent = kube->options.agent,
        .seed = kube_lib_seed().k0
    };

    kube->client = kube_client_create(&kube->env.alloc, &conf,
                                      lib_sink(kube));
    error->what = NULL;

    return (kube->client != NULL) ? KUBE_OK : KUBE_NOMEM;
}


/*
 * Shows an object to the program before it is held.  What it leaves is used
 * until the next one.
 */
static kube_rc_t
lib_transform(void *ctx, kube_object_t *object)
{
    kube_t  *kube = ctx;

    kube_v1_object_release(kube->transformed);
    kube_arena_reset(&kube->transforming);

    kube->transformed = kube_lib_object_of(&kube->env.alloc, object);

    if (kube->transformed == NULL) {
        return KUBE_NOMEM;
    }

    if (kube->options.transform(kube->options.transform_ctx,
                                kube->transformed) != 0)
    {
        return KUBE_INVALID;
    }

    return kube_lib_import(&kube->transforming, kube->transformed, object);
}


static kube_rc_t
lib_factory(kube_t *kube)
{
    kube_factory_conf_t  conf;

    conf = (kube_factory_conf_t) {
        .lister_watcher = lib_lister_watcher,
        .ctx = kube,
        .reflector = kube_reflector_conf_defaults(kube_lib_seed().k0),
        .processor = {
            .seed = kube_lib_seed(),
            .changes_max = KUBE_RING_CHANGES,
            .bytes_max = KUBE_RING_BYTES,
            .sink = lib_sink(kube),
            .resync_ms = kube->options.resync_ms
        },
        .transform = (kube->options.transform != NULL) ? lib_transform : NULL,
        .transform_ctx = kube
    };

    if (kube->options.page_size != 0) {
        conf.reflector.page_size = kube->options.page_size;
    }

    if (kube->env.lister_watcher != NULL) {
        conf.lister_watcher = kube->env.lister_watcher;
        conf.ctx = kube->env.ctx;
    }

    kube->factory = kube_factory_create(&kube->env.alloc, &conf);

    return (kube->factory != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static bool
lib_watch_fd(kube_t *kube, int fd)
{
    struct epoll_event  event;

    memset(&event, 0, sizeof(struct epoll_event));

    event.events = EPOLLIN;
    event.data.fd = fd;

    return epoll_ctl(kube->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}


static kube_rc_t
lib_descriptors(kube_t *kube)
{
    kube->epoll = epoll_create1(EPOLL_CLOEXEC);
    kube->event = eventfd(0, EFD_CLOEXEC|EFD_NONBLOCK);

    return (kube->epoll != -1
            && kube->event != -1
            && lib_watch_fd(kube, kube->event)
            && (kube->client == NULL
                || lib_watch_fd(kube, kube_client_fd(kube->client))))
           ? KUBE_OK : KUBE_IO;
}


static kube_rc_t
lib_sources(kube_t *kube, kube_error_t *error)
{
    size_t                i;
    kube_local_source_t  *source;

    if (kube->options.sources == NULL && kube->options.sources_n != 0) {
        error->what = "sources_n without sources";
        return KUBE_INVALID;
    }

    for (i = 0; i < kube->options.sources_n; i++) {
        source = kube->options.sources[i];

        if (source == NULL) {
            error->what = "a source that is NULL";
            return KUBE_INVALID;
        }

        if (kube->sources[source->resource] != NULL) {
            error->what = "two sources of one resource";
            return KUBE_INVALID;
        }

        kube->sources[source->resource] = source;
    }

    return KUBE_OK;
}


/* What is wrong with options; NULL: nothing. */
static const char *
lib_refused(const kube_options_t *o)
{
    const char  *p;

    if (o->connect_timeout_ms > LIB_CONNECT_MAX_MS) {
        return "connect_timeout_ms is above 600000";
    }

    if (o->kubeconfig != NULL && o->server != NULL) {
        return "kubeconfig and server do not go together";
    }

    if (o->context != NULL && o->kubeconfig == NULL) {
        return "context without kubeconfig";
    }

    if (o->server == NULL && (o->ca_file != NULL || o->token_file != NULL)) {
        return "ca_file and token_file go with server alone";
    }

    /* It becomes part of a header: no control character may end that. */
    for (p = o->agent; p != NULL && *p != '\0'; p++) {
        if ((unsigned char) *p < 0x20 || *p == 0x7f) {
            return "agent has a control character";
        }
    }

    return NULL;
}


/* Fills in what was left 0, and checks. */
static kube_rc_t
lib_options(kube_t *kube, kube_error_t *error)
{
    size_t           i;
    kube_rc_t        rc;
    kube_options_t  *o;
    const char      *selectors[KUBE_RESOURCES];

    o = &kube->options;

    memset(selectors, 0, sizeof(selectors));

    o->resync_ms = (o->resync_ms != 0) ? o->resync_ms : KUBE_NEVER;

    if (o->connect_timeout_ms == 0) {
        o->connect_timeout_ms = LIB_CONNECT_MS;
    }

    error->what = lib_refused(o);

    if (error->what != NULL) {
        return KUBE_INVALID;
    }

    selectors[KUBE_RESOURCE_SERVICES] = o->service_selector;
    selectors[KUBE_RESOURCE_ENDPOINTSLICES] = o->slice_selector;
    selectors[KUBE_RESOURCE_ENDPOINTS] = o->endpoints_selector;
    selectors[KUBE_RESOURCE_PODS] = o->pod_selector;

    for (i = 0; i < KUBE_RESOURCES; i++) {

        if (kube_str(selectors[i]).len > KUBE_SELECTOR_LEN_MAX) {
            error->what = "a selector that is too long";
            return KUBE_TOO_LARGE;
        }

        rc = kube_str_dup(&kube->env.alloc, kube_str(selectors[i]),
                          &kube->selectors[i]);
        if (rc != KUBE_OK) {
            return rc;
        }
    }

    return lib_sources(kube, error);
}


/* Whether the API server is asked for anything. */
static bool
lib_has_server(const kube_t *kube)
{
    return kube->options.sources_n == 0
           || kube->options.server != NULL
           || kube->options.kubeconfig != NULL;
}


int
kube_lib_create(const kube_lib_env_t *env, const kube_options_t *options,
    kube_t **made, char *why, size_t why_size)
{
    int            err;
    kube_t        *kube;
    kube_rc_t      rc;
    kube_error_t   error;

    if (options->size < KUBE_LIB_OPTIONS_FIRST
        || options->size > sizeof(kube_options_t))
    {
        lib_why(why, why_size, "options of another size than kube.h says", 0);
        return KUBE_E_INVALID;
    }

    kube = kube_zalloc(&env->alloc, sizeof(kube_t));
    if (kube == NULL) {
        lib_why(why, why_size, kube_strerror(KUBE_E_NOMEM), 0);
        return KUBE_E_NOMEM;
    }

    kube->env = *env;
    memcpy(&kube->options, options, options->size);
    kube->retry_ms = KUBE_NEVER;
    kube->epoll = -1;
    kube->event = -1;

    kube_config_init(&kube->config, &kube->env.alloc);
    kube_arena_init(&kube->arena, &kube->env.alloc, KUBE_LIB_ARENA_BYTES);
    kube_arena_init(&kube->transforming, &kube->env.alloc,
                    KUBE_LIB_ARENA_BYTES);

    memset(&error, 0, sizeof(kube_error_t));
    rc = lib_options(kube, &error);

    if (rc == KUBE_OK && env->lister_watcher == NULL
        && lib_has_server(kube))
    {
        rc = lib_client(kube, &error);
    }

    if (rc == KUBE_OK) {
        rc = lib_factory(kube);
    }

    if (rc == KUBE_OK) {
        rc = lib_descriptors(kube);
    }

    if (rc != KUBE_OK) {
        err = errno;
        lib_why(why, why_size,
                (error.what != NULL) ? error.what : kube_rc_text(rc),
                error.offset);
        kube_destroy(kube);
        errno = err;
        return rc;
    }

    *made = kube;

    return KUBE_E_OK;
}


int
kube_create(const kube_options_t *options, kube_t **kube, char *why,
    size_t why_size)
{
    kube_lib_env_t  env;

    env = kube_lib_system();

    return kube_lib_create(&env, options, kube, why, why_size);
}


void
kube_destroy(kube_t *kube)
{
    size_t        i;
    kube_alloc_t  alloc;

    if (kube == NULL) {
        return;
    }

    /* informers cancel what they have in the client */

    kube_factory_destroy(kube->factory);
    kube_lib_informers_done(kube);
    kube_v1_object_release(kube->transformed);
    kube_arena_done(&kube->transforming);
    kube_client_destroy(kube->client);
    kube_config_done(&kube->config);

    if (kube->curl) {
        kube_curl_memory_done();
    }

    kube_arena_done(&kube->arena);

    if (kube->epoll != -1) {
        (void) close(kube->epoll);
    }

    if (kube->event != -1) {
        (void) close(kube->event);
    }

    for (i = 0; i < KUBE_RESOURCES; i++) {
        kube_str_free(&kube->env.alloc, &kube->selectors[i]);
    }

    alloc = kube->env.alloc;
    kube_free(&alloc, kube);
}


int
kube_fd(const kube_t *kube)
{
    return kube->epoll;
}


uint64_t
kube_deadline_ms(const kube_t *kube)
{
    size_t    i;
    uint64_t  deadline_ms, client_ms, source_ms;

    if (kube_factory_is_stopped(kube->factory)) {
        return KUBE_NEVER;
    }

    deadline_ms = kube_factory_deadline(kube->factory);

    if (kube->retry_ms < deadline_ms) {
        deadline_ms = kube->retry_ms;
    }

    if (kube->client != NULL) {
        client_ms = kube_client_deadline(kube->client);
        deadline_ms = (client_ms < deadline_ms) ? client_ms : deadline_ms;
    }

    for (i = 0; i < KUBE_RESOURCES; i++) {

        if (kube->sources[i] != NULL) {
            source_ms = kube_memory_source_deadline(kube->sources[i]->memory);
            deadline_ms = (source_ms < deadline_ms) ? source_ms : deadline_ms;
        }
    }

    return deadline_ms;
}


void
kube_process(kube_t *kube)
{
    size_t    i;
    ssize_t   n;
    uint64_t  now_ms, woken;

    if (kube->processing) {
        return;
    }

    kube->processing = true;
    now_ms = lib_now(kube);

    if (kube->retry_ms <= now_ms) {
        kube->retry_ms = KUBE_NEVER;
    }

    /* EAGAIN: nobody has called kube_wake() */

    n = read(kube->event, &woken, sizeof(woken));
    (void) n;

    if (kube->client != NULL) {
        kube_client_process(kube->client, now_ms);
    }

    for (i = 0; i < KUBE_RESOURCES; i++) {
        if (kube->sources[i] != NULL) {
            kube_memory_source_process(kube->sources[i]->memory, now_ms);
        }
    }

    kube_factory_process(kube->factory, now_ms);

    kube_lib_informers_sweep(kube);
    kube->processing = false;
}


void
kube_wake(kube_t *kube)
{
    int       saved;
    ssize_t   n;
    uint64_t  one;

    static_assert(sizeof(one) == 8, "what an eventfd takes");

    one = 1;
    saved = errno;

    /* EAGAIN: it is readable anyway */

    n = write(kube->event, &one, sizeof(one));
    (void) n;

    errno = saved;
}


/* Milliseconds for poll(): -1 is for ever. */
static int
lib_timeout(const kube_t *kube, int timeout_ms)
{
    uint64_t  now_ms, deadline_ms, left_ms;

    now_ms = lib_now(kube);
    deadline_ms = kube_deadline_ms(kube);

    if (deadline_ms == KUBE_NEVER) {
        return timeout_ms;
    }

    left_ms = (deadline_ms > now_ms) ? deadline_ms - now_ms : 0;
    left_ms = (left_ms < INT_MAX) ? left_ms : INT_MAX;

    return (timeout_ms < 0 || left_ms < (uint64_t) timeout_ms)
           ? (int) left_ms : timeout_ms;
}


int
kube_run_once(kube_t *kube, int timeout_ms)
{
    struct pollfd  pfd;

    if (kube->processing) {
        return KUBE_E_INVALID;
    }

    if (kube_is_stopped(kube)) {
        return KUBE_E_CLOSED;
    }

    pfd = (struct pollfd) { .fd = kube->epoll, .events = POLLIN };

    if (poll(&pfd, 1, lib_timeout(kube, timeout_ms)) == -1
        && errno != EINTR)
    {
        return KUBE_E_IO;
    }

    kube_process(kube);

    return KUBE_E_OK;
}


static kube_rc_t
lib_has_synced(const kube_t *kube, uint64_t deadline_ms, char *why,
    size_t why_size)
{
    char  none[1];

    return kube_factory_wait_for_cache_sync(kube->factory, deadline_ms,
                                            lib_now(kube),
                                            (why_size != 0) ? why : none,
                                            (why_size != 0) ? why_size : 1);
}


int
kube_has_synced(const kube_t *kube, char *why, size_t why_size)
{
    return lib_has_synced(kube, KUBE_NEVER, why, why_size) == KUBE_OK;
}


int
kube_wait_for_sync(kube_t *kube, uint64_t timeout_ms, char *why,
    size_t why_size)
{
    int        rc;
    uint64_t   now_ms, end_ms, left_ms;

    if (kube->processing) {
        return KUBE_E_INVALID;
    }

    now_ms = lib_now(kube);
    end_ms = (timeout_ms < KUBE_NEVER - now_ms) ? now_ms + timeout_ms
                                                : KUBE_NEVER;
    for ( ;; ) {
        rc = lib_has_synced(kube, end_ms, why, why_size);

        if (rc != KUBE_AGAIN) {
            return rc;
        }

        now_ms = lib_now(kube);
        left_ms = (end_ms > now_ms) ? end_ms - now_ms : 0;

        rc = kube_run_once(kube, (left_ms < INT_MAX) ? (int) left_ms : -1);

        if (rc != KUBE_E_OK) {
            return rc;
        }
    }
}


int
kube_start(kube_t *kube)
{
    return kube_factory_start(kube->factory, lib_now(kube));
}


void
kube_shutdown(kube_t *kube, int drain)
{
    kube_factory_shutdown(kube->factory, drain != 0, lib_now(kube));
}


int
kube_is_stopped(const kube_t *kube)
{
    return kube_factory_is_stopped(kube->factory);
}

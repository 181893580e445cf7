/*
 * ngx_kube_process - life of the informer process: nginx's own cache manager,
 * which nginx starts, respawns and replaces on reload, hosts one informer per
 * kube_informer block.
 *
 * It starts in the manager callback, for init_process also runs in the cache
 * loader.  The process ends by exit(), without exit_process hooks, so the guard
 * of the zone is released in an atexit handler.  A process that dies in another
 * way leaves the guard to the kernel, and its successor sees a crash.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */


#include "ngx_kube_feed.h"

#include <limits.h>
#include <sys/prctl.h>

#include "kube_trouble.h"
#include "kube_zone_damping.h"
#include "kube_zone_ring.h"


#define NGX_KUBE_SETUP_RETRY  5000

/* The state files may take so long, in ms, when the process ends. */
#define NGX_KUBE_FINISH  500

/* Room for a sanitizer's report, too. */
#define NGX_KUBE_SIGNAL_STACK  (128 * 1024)


typedef struct {
    ngx_kube_informer_t  *block;
    kube_config_t         kubeconfig;      /* read by this process */
    const kube_config_t  *config;          /* that, or the block's */
    kube_client_t        *client;
    kube_informer_t      *informer;
    ngx_kube_state_t     *state;
    uint64_t              state_deadline;
    uint64_t              awaits_deadline;     /* 0: no state file */
    ngx_kube_loop_t       loop;
    ngx_log_t            *log;
    u_char                agent[64];
    ngx_uint_t            missing_attempts;    /* to read the kubeconfig */
    uint64_t              missing_since;
    uint64_t              missing_said;        /* 0: not */
    kube_zone_cursor_t    told;                /* events that others know of */
} ngx_kube_host_t;


static ngx_msec_t ngx_kube_manager(void *data);
static void ngx_kube_host_start(ngx_kube_host_t *host);
static ngx_msec_t ngx_kube_host_delay(ngx_kube_host_t *host);
static void ngx_kube_host_later(ngx_kube_host_t *host, ngx_msec_t delay);
static void ngx_kube_host_try(ngx_event_t *ev);
static ngx_int_t ngx_kube_host_setup(ngx_kube_host_t *host);
static void ngx_kube_host_teardown(ngx_kube_host_t *host);
static void ngx_kube_host_leave(ngx_kube_host_t *host);
static ngx_int_t ngx_kube_host_config(ngx_kube_host_t *host);
static void ngx_kube_host_missing(ngx_kube_host_t *host,
    const kube_error_t *error);
static void ngx_kube_signals_install(ngx_log_t *log);
static void ngx_kube_signal_fatal(int signo, siginfo_t *info, void *ucontext);
static ngx_int_t ngx_kube_host_informer(ngx_kube_host_t *host);
static void ngx_kube_host_run(void *data);
static void ngx_kube_host_tell(ngx_kube_host_t *host);
static uint64_t ngx_kube_host_deadline(void *data);
static void ngx_kube_log_write(void *ctx, kube_log_level_t level,
    kube_event_id_t id, const char *line);


/* One host for each kube_informer block; set in the informer process alone. */

static ngx_kube_host_t  *ngx_kube_hosts;
static ngx_uint_t        ngx_kube_hosts_n;

/* Signals that a process gets for what it did, and who handled them before. */

static struct {
    int               signo;
    struct sigaction  before;
} ngx_kube_signals[] = {
    { .signo = SIGSEGV }, { .signo = SIGBUS }, { .signo = SIGILL },
    { .signo = SIGFPE }, { .signo = SIGABRT }
};

#define NGX_KUBE_SIGNALS                                                      \
    (sizeof(ngx_kube_signals) / sizeof(ngx_kube_signals[0]))


/*
 * nginx spawns its cache manager where a path of the cycle has a manager.  The
 * path is pushed by hand and after nginx has created the directories of all
 * paths: ngx_add_path() would make nginx create a directory of that name.
 */

ngx_int_t
ngx_kube_process_prepare(ngx_cycle_t *cycle)
{
    ngx_path_t  *path, **slot;

    path = ngx_pcalloc(cycle->pool, sizeof(ngx_path_t));
    if (path == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(&path->name, "kube");
    path->manager = ngx_kube_manager;
    path->data = cycle;

    slot = ngx_array_push(&cycle->paths);
    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = path;

    return NGX_OK;
}


static ngx_msec_t
ngx_kube_manager(void *data)
{
    ngx_cycle_t  *cycle = data;

    if (ngx_kube_hosts == NULL) {
        ngx_setproctitle("cache manager process (kube informer)");
        ngx_kube_process_start(cycle);
    }

    return 3600 * 1000;
}


void
ngx_kube_process_start(ngx_cycle_t *cycle)
{
    ngx_uint_t             i;
    ngx_kube_conf_t       *kcf;
    ngx_kube_informer_t  **blocks;

    kcf = ngx_kube_get_conf(cycle);
    blocks = kcf->informers.elts;

    ngx_kube_hosts = calloc(kcf->informers.nelts, sizeof(ngx_kube_host_t));
    if (ngx_kube_hosts == NULL) {
        ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                      "kube: no memory for informers");
        return;
    }

    ngx_kube_hosts_n = kcf->informers.nelts;

    if (ngx_process != NGX_PROCESS_SINGLE) {

        /* the process holds the token: no core dump, no ptrace() by workers */

        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, ngx_errno,
                          "kube: prctl(PR_SET_DUMPABLE) failed");
        }

        if (atexit(ngx_kube_process_stop) != 0) {
            ngx_log_error(NGX_LOG_ALERT, cycle->log, 0,
                          "kube: atexit() failed");
        }

        ngx_kube_signals_install(cycle->log);
    }

    for (i = 0; i < ngx_kube_hosts_n; i++) {
        ngx_kube_hosts[i].block = blocks[i];
        ngx_kube_hosts[i].log = cycle->log;

        ngx_kube_host_start(&ngx_kube_hosts[i]);
    }
}


/*
 * An object that kills this process would kill the next one too: the handler
 * leaves word of what was in hand.  It has a stack of its own, for the
 * process's may be what has overflowed.
 */

static void
ngx_kube_signals_install(ngx_log_t *log)
{
    stack_t           stack;
    ngx_uint_t        i;
    struct sigaction  action;

    static u_char  memory[NGX_KUBE_SIGNAL_STACK];

    ngx_memzero(&stack, sizeof(stack_t));
    stack.ss_sp = memory;
    stack.ss_size = sizeof(memory);

    ngx_memzero(&action, sizeof(struct sigaction));
    action.sa_sigaction = ngx_kube_signal_fatal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void) sigemptyset(&action.sa_mask);

    if (sigaltstack(&stack, NULL) == -1) {
        ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                      "kube: sigaltstack() failed");
    }

    for (i = 0; i < NGX_KUBE_SIGNALS; i++) {
        if (sigaction(ngx_kube_signals[i].signo, &action,
                      &ngx_kube_signals[i].before)
            == -1)
        {
            ngx_log_error(NGX_LOG_ALERT, log, ngx_errno,
                          "kube: sigaction() failed");
        }
    }
}


/*
 * Async-signal-safe.  The handlers before ours are put back first: should this
 * one fault, they get that.  A fault comes again as soon as we return, and is
 * theirs then, with all that they want to know of it; a signal that was sent
 * is sent again.  Of another process's kill() no object is to blame.
 */

static void
ngx_kube_signal_fatal(int signo, siginfo_t *info, void *ucontext)
{
    ngx_uint_t  i;

    (void) ucontext;

    for (i = 0; i < NGX_KUBE_SIGNALS; i++) {
        (void) sigaction(ngx_kube_signals[i].signo,
                         &ngx_kube_signals[i].before, NULL);
    }

    if (info->si_code > 0 || info->si_pid == ngx_pid) {
        for (i = 0; i < ngx_kube_hosts_n; i++) {
            if (ngx_kube_hosts[i].informer != NULL) {
                kube_informer_last_words(ngx_kube_hosts[i].informer, signo);
            }
        }
    }

    if (info->si_code <= 0) {
        (void) raise(signo);
    }
}


/* Zones are left first: a successor waits for these, not for our disk. */

void
ngx_kube_process_stop(void)
{
    uint64_t          now;
    ngx_uint_t        i;
    ngx_kube_host_t  *host;

    now = ngx_kube_now();

    for (i = 0; i < ngx_kube_hosts_n; i++) {
        host = &ngx_kube_hosts[i];

        ngx_kube_state_last(host->state, host->informer, now);
        ngx_kube_host_leave(host);
    }

    for (i = 0; i < ngx_kube_hosts_n; i++) {
        host = &ngx_kube_hosts[i];

        ngx_kube_state_finish(host->state, now + NGX_KUBE_FINISH);
        ngx_kube_host_teardown(host);
        kube_config_done(&host->kubeconfig);
        kube_zone_started(&host->block->zone, (uint64_t) ngx_pid);
    }

    ngx_kube_hosts_n = 0;
}


static void
ngx_kube_host_start(ngx_kube_host_t *host)
{
    ngx_msec_t  delay;

    (void) ngx_snprintf(host->agent, sizeof(host->agent) - 1, "%s%Z",
                        NGINX_VER);

    kube_config_init(&host->kubeconfig, &ngx_kube_alloc);

    delay = ngx_kube_host_delay(host);

    if (delay != 0) {
        ngx_log_error(NGX_LOG_ERR, host->log, 0,
                      "kube informer \"%V\" crashed while it started, again "
                      "and again: it waits %M ms", &host->block->name, delay);

        ngx_kube_host_later(host, delay);
        return;
    }

    if (ngx_kube_host_setup(host) != NGX_OK) {
        ngx_kube_host_later(host, NGX_KUBE_SETUP_RETRY);
    }
}


/*
 * Returns how long the start has to wait, in ms.  nginx starts a dead child
 * again at once: the guard shows the crash of a writer, and a pid in the zone
 * the crash of a process that died before it held the guard.
 */

static ngx_msec_t
ngx_kube_host_delay(ngx_kube_host_t *host)
{
    uint64_t            pid;
    kube_zone_t        *zone;
    kube_zone_delay_t   delay;

    zone = &host->block->zone;

    pid = kube_zone_starting(zone, (uint64_t) ngx_pid);

    if (pid == 0 || pid > INT_MAX || pid == (uint64_t) ngx_pid
        || kill((ngx_pid_t) pid, 0) == 0
        || ngx_errno != ESRCH)
    {
        return 0;
    }

    kube_zone_crashed(zone, true, (uint64_t) ngx_random(), ngx_kube_now());
    kube_zone_crash_delay(zone, ngx_kube_now(), &delay);

    if (delay.resume_ms != 0) {
        kube_zone_damped(zone, 0, KUBE_SCOPES_MAX,
                         ngx_kube_now() + delay.resume_ms);
    }

    return (ngx_msec_t) delay.resume_ms;
}


/* Tries the set-up again later: a missing kubeconfig may have come by then. */

static void
ngx_kube_host_later(ngx_kube_host_t *host, ngx_msec_t delay)
{
    ngx_event_t  *ev;

    ev = &host->loop.timer;

    ngx_memzero(ev, sizeof(ngx_event_t));
    ev->handler = ngx_kube_host_try;
    ev->data = host;
    ev->log = host->log;
    ev->cancelable = 1;

    ngx_add_timer(ev, delay);
}


static void
ngx_kube_host_try(ngx_event_t *ev)
{
    ngx_kube_host_t  *host;

    host = ev->data;

    if (ngx_kube_host_setup(host) != NGX_OK) {
        ngx_kube_host_later(host, NGX_KUBE_SETUP_RETRY);
    }
}


static ngx_int_t
ngx_kube_host_setup(ngx_kube_host_t *host)
{
    kube_log_sink_t     sink;
    kube_client_conf_t  conf;

    if (ngx_kube_host_config(host) != NGX_OK) {
        return NGX_ERROR;
    }

    sink.write = ngx_kube_log_write;
    sink.ctx = host;

    ngx_memzero(&conf, sizeof(kube_client_conf_t));
    conf.config = host->config;
    conf.connect_timeout_ms = host->block->connect_timeout;
    conf.agent = (char *) host->agent;
    conf.seed = (uint64_t) ngx_random();

    host->client = kube_client_create(&ngx_kube_alloc, &conf, sink);
    if (host->client == NULL) {
        goto failed;
    }

    if (ngx_kube_host_informer(host) != NGX_OK) {
        goto failed;
    }

    host->state = ngx_kube_state_create(host->block, host->client,
                                        &host->loop, host->log);

    if (host->state != NULL) {
        ngx_kube_state_ask(host->state, ngx_kube_now());
    }

    ngx_memzero(&host->loop, sizeof(ngx_kube_loop_t));
    host->loop.run = ngx_kube_host_run;
    host->loop.deadline = ngx_kube_host_deadline;
    host->loop.data = host;
    host->loop.fd = kube_client_fd(host->client);
    host->loop.log = host->log;

    if (ngx_kube_loop_start(&host->loop) == NGX_OK) {
        return NGX_OK;
    }

failed:

    ngx_log_error(NGX_LOG_ALERT, host->log, 0,
                  "kube informer \"%V\" could not be started",
                  &host->block->name);

    ngx_kube_host_teardown(host);

    return NGX_ERROR;
}


static void
ngx_kube_host_teardown(ngx_kube_host_t *host)
{
    ngx_kube_host_leave(host);

    ngx_kube_state_destroy(host->state);
    host->state = NULL;
}


static void
ngx_kube_host_leave(ngx_kube_host_t *host)
{
    ngx_kube_loop_stop(&host->loop);

    if (host->informer != NULL) {
        kube_informer_stop(host->informer);
        kube_informer_destroy(host->informer);
        host->informer = NULL;
    }

    if (host->client != NULL) {
        kube_client_destroy(host->client);
        host->client = NULL;
    }
}


/* Reads the kubeconfig with its secrets: in this process alone, as "user". */

static ngx_int_t
ngx_kube_host_config(ngx_kube_host_t *host)
{
    kube_error_t          error;
    ngx_kube_informer_t  *block;

    block = host->block;

    if (block->kubeconfig.len == 0) {
        host->config = &block->config;
        return NGX_OK;
    }

    host->config = &host->kubeconfig;

    kube_config_done(&host->kubeconfig);
    kube_config_init(&host->kubeconfig, &ngx_kube_alloc);

    if (ngx_kube_kubeconfig_read(block, &host->kubeconfig, &error) != KUBE_OK) {
        ngx_kube_host_missing(host, &error);
        return NGX_ERROR;
    }

    if (host->missing_said != 0) {
        ngx_log_error(NGX_LOG_NOTICE, host->log, 0,
                      "kube informer \"%V\": recovered: credentials: "
                      "following again after %uL s, %ui attempts",
                      &block->name, (ngx_kube_now() - host->missing_since)
                                    / 1000, host->missing_attempts);
    }

    host->missing_said = 0;
    host->missing_attempts = 0;

    kube_zone_cause_set(&block->zone, KUBE_CAUSE_CREDENTIALS, 0);

    return NGX_OK;
}


/* There is no informer without its kubeconfig: said as kube_trouble would. */

static void
ngx_kube_host_missing(ngx_kube_host_t *host, const kube_error_t *error)
{
    u_char                what[256];
    uint64_t              now;
    ngx_kube_informer_t  *block;

    block = host->block;
    now = ngx_kube_now();

    if (host->missing_attempts++ == 0) {
        host->missing_since = now;
        kube_zone_cause_set(&block->zone, KUBE_CAUSE_CREDENTIALS, now);
    }

    if (host->missing_said != 0
        && now - host->missing_said < KUBE_TROUBLE_REPEAT_MS)
    {
        return;
    }

    host->missing_said = now;

    ngx_kube_kubeconfig_what(what, sizeof(what), error);

    ngx_log_error(NGX_LOG_ERR, host->log, 0,
                  "kube informer \"%V\": degraded: credentials: kubeconfig "
                  "\"%V\": %s, %ui attempts; %s", &block->name,
                  &block->kubeconfig, what, host->missing_attempts,
                  kube_cause_info(KUBE_CAUSE_CREDENTIALS)->remedy);
}


static ngx_int_t
ngx_kube_host_informer(ngx_kube_host_t *host)
{
    ngx_uint_t             r;
    ngx_kube_informer_t   *block;
    kube_informer_conf_t   conf;

    block = host->block;

    ngx_memzero(&conf, sizeof(kube_informer_conf_t));

    conf.io = kube_client_io(host->client);
    conf.zone = &block->zone;
    conf.server = kube_client_server(host->client);
    conf.namespaces = block->namespaces.elts;
    conf.namespaces_n = block->namespaces.nelts;
    conf.endpoints = (kube_endpoints_t) block->endpoints;
    conf.object_bytes_max = block->max_object;
    conf.encoding = (kube_encoding_t) block->encoding;
    conf.static_keys = block->static_keys.elts;
    conf.static_keys_n = block->static_keys.nelts;
    conf.max_outdated_ms = block->max_outdated;
    conf.zone_share = (unsigned) block->zone_share;
    conf.sink.write = ngx_kube_log_write;
    conf.sink.ctx = host;
    conf.pid = (uint64_t) ngx_pid;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        conf.label_selector[r] = block->label_selector[r];
    }

    conf.reflector.page_size = (uint32_t) block->page_size;
    conf.reflector.watch_list = (kube_watch_list_t) block->watch_list;
    conf.reflector.watch_timeout_ms = block->watch_timeout;
    conf.reflector.idle_timeout_ms = block->idle_timeout;
    conf.reflector.backoff.first_ms = block->backoff_first;
    conf.reflector.backoff.max_ms = block->backoff_max;
    conf.reflector.backoff.unreachable_ms = block->backoff_unreachable;
    conf.reflector.seed = ((uint64_t) ngx_random() << 32)
                          ^ (uint64_t) ngx_random() ^ ngx_kube_now();

    host->informer = kube_informer_create(&ngx_kube_alloc, &conf);

    return host->informer == NULL ? NGX_ERROR : NGX_OK;
}


static void
ngx_kube_host_run(void *data)
{
    ngx_kube_host_t *host = data;

    uint64_t   now;
    kube_rc_t  rc;

    now = ngx_kube_now();

    /*
     * Nothing is listed before: a list that was asked for earlier would be
     * older than the file, and would be thrown away for it.
     */

    if (host->state != NULL) {
        host->awaits_deadline = ngx_kube_state_awaited(host->state, now);

        if (host->awaits_deadline != 0) {
            return;
        }
    }

    if (!kube_informer_loading(host->informer)) {
        kube_client_process(host->client, now);
    }

    rc = kube_informer_process(host->informer, now, ngx_kube_unix_ms());

    ngx_kube_host_tell(host);

    if (rc == KUBE_CHANGED) {
        /*
         * The master starts this process again, which takes over.  What others
         * have changed is written nowhere.
         */
        ngx_kube_state_destroy(host->state);
        host->state = NULL;
        exit(0);
    }

    if (rc != KUBE_OK) {
        host->state_deadline = UINT64_MAX;
        return;
    }

    if (host->state == NULL) {
        host->state_deadline = UINT64_MAX;
        ngx_kube_state_off(host->block, host->informer);
        return;
    }

    if (kube_informer_wants_state(host->informer)) {
        ngx_kube_state_load(host->state, host->informer);
    }

    host->state_deadline = ngx_kube_state_process(host->state,
                                                  host->informer, now);
}


/* One wake-up a turn, whatever it has changed. */

static void
ngx_kube_host_tell(ngx_kube_host_t *host)
{
    kube_zone_cursor_t  newest;

    kube_zone_ring_newest(&host->block->zone, &newest);

    if (newest.epoch != host->told.epoch
        || newest.sequence != host->told.sequence)
    {
        host->told = newest;
        ngx_kube_feed_wake(host->block);
    }
}


static uint64_t
ngx_kube_host_deadline(void *data)
{
    ngx_kube_host_t *host = data;

    uint64_t  a, b;

    if (host->awaits_deadline != 0) {
        return host->awaits_deadline;
    }

    a = kube_client_deadline(host->client);
    b = kube_informer_deadline(host->informer);

    a = ngx_min(a, b);

    return ngx_min(a, host->state_deadline);
}


static void
ngx_kube_log_write(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    ngx_kube_host_t *host = ctx;

    static const ngx_uint_t  levels[] = {
        NGX_LOG_ERR, NGX_LOG_WARN, NGX_LOG_NOTICE, NGX_LOG_INFO,
        NGX_LOG_DEBUG
    };

    ngx_log_error(levels[level], host->log, 0, "kube informer \"%V\": %s: %s",
                  &host->block->name, kube_event_text(id), line);
}

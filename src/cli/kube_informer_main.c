/*
 * kube-informer - the informer of src/ over poll(2): one JSON line a change.
 *
 * The host that is not nginx: it gives memory (malloc), time, a log (stderr)
 * and a loop.  Used by tests and benchmarks, and to look at a cluster.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kube_cli_clock.h"
#include "kube_cli_json.h"
#include "kube_cli_options.h"
#include "kube_cli_pods.h"
#include "kube_cli_verify.h"
#include "kube_informer.h"
#include "kube_transcript.h"
#include "kube_version.h"
#include "kube_zone_scope.h"


#define CLI_ARENA_BYTES  (64u << 20)

typedef struct {
    kube_cli_options_t   options;
    kube_alloc_t         alloc;
    kube_config_t        config;
    kube_client_t       *client;      /* NULL: with --replay */
    kube_recorder_t     *recorder;
    FILE                *record;      /* with --record */
    kube_transcript_t   *transcript;
    kube_str_t           replayed;    /* the text of --replay, mapped */
    void                *mem;
    kube_zone_t          zone;
    kube_informer_t     *informer;
    kube_cli_pods_t     *pods;        /* NULL: without --pods */
    kube_arena_t         arena;
    int                  signals;
    uint64_t             ends_ms;                  /* UINT64_MAX: never */
    kube_rv_t            shown[KUBE_SCOPES_MAX];   /* with --digest */
    bool                 failed;
} cli_t;


static void *
cli_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
cli_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


/* Huge pages would make two megabytes of the first byte of each table. */
static void *
cli_pages(void *ctx, size_t size)
{
    void  *p;

    (void) ctx;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED) {
        return NULL;
    }

    /* kernels without huge pages refuse it */
    (void) madvise(p, size, MADV_NOHUGEPAGE);

    return p;
}


static void
cli_pages_free(void *ctx, void *p, size_t size)
{
    (void) ctx;

    (void) munmap(p, size);
}


static void
cli_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    const cli_t  *cli = ctx;

    static const char *const  levels[] = {
        "error", "warn", "notice", "info", "debug"
    };

    if (level > KUBE_LOG_WARN && !cli->options.verbose) {
        return;
    }

    fprintf(stderr, "kube-informer: %s: %s: %s\n", levels[level],
            kube_event_text(id), line);
}


static bool
cli_error(const char *what, const char *why)
{
    fprintf(stderr, "kube-informer: %s: %s\n", what, why);
    return false;
}


static void
cli_change(void *ctx, kube_change_t change, const kube_record_t *record)
{
    cli_t             *cli = ctx;
    kube_object_t      object;
    kube_record_id_t   id;

    /* what is refused is no delete: the cluster has it */

    static const char *const  changes[] = { "add", "update", "delete",
                                            "refused" };

    kube_arena_reset(&cli->arena);

    if (kube_record_id(record, record->size, &id) != KUBE_OK
        || kube_record_decode(&cli->arena, record, record->size, &object)
           != KUBE_OK)
    {
        cli->failed = !cli_error("a change", "cannot be shown");
        return;
    }

    kube_cli_json_change(stdout, changes[change], &id, &object);
}


/* A line for what the slot shows now, if it is new or the list's. */
static void
cli_show_scope(cli_t *cli, unsigned slot, bool list)
{
    kube_rv_t          rv;
    kube_scope_info_t  info;

    kube_arena_reset(&cli->arena);

    if (kube_zone_scope_read(&cli->zone, slot, &cli->arena, &info) != KUBE_OK
        || kube_rv_parse(info.rv, &rv) != KUBE_OK
        || (!list && kube_rv_cmp(&rv, &cli->shown[slot]) == 0))
    {
        return;
    }

    cli->shown[slot] = rv;
    kube_cli_json_synced(stdout, &info);
}


static void
cli_synced(void *ctx, unsigned slot)
{
    cli_show_scope(ctx, slot, true);
}


/*
 * Says on stderr which parts of the cluster are not shown, and why: scopes that
 * have not synced, and how many objects were refused.  refused_only: whether
 * only a scope that the server refuses to list keeps us from having synced.
 */
static unsigned
cli_missing(cli_t *cli, bool quiet, bool *refused_only)
{
    unsigned            slot, n;
    kube_zone_usage_t   usage;
    kube_scope_info_t   info;

    *refused_only = true;
    n = (cli->pods != NULL) ? kube_cli_pods_missing(cli->pods, quiet,
                                                    refused_only) : 0;

    for (slot = 0; slot < KUBE_SCOPES_MAX; slot++) {
        kube_arena_reset(&cli->arena);

        if (kube_zone_scope_read(&cli->zone, slot, &cli->arena, &info)
            != KUBE_OK
            || info.synced)
        {
            continue;
        }

        n++;

        if (!kube_zone_scope_forbidden(&cli->zone, slot)) {
            *refused_only = false;
        }

        if (!quiet) {
            fprintf(stderr, "kube-informer: missing: %s in %.*s: %.*s: %.*s\n",
                    kube_resource_text(info.resource),
                    (int) (info.ns.len ? info.ns.len : 14),
                    info.ns.len ? info.ns.data : "all namespaces",
                    (int) info.error_reason.len, info.error_reason.data,
                    (int) info.error_message.len, info.error_message.data);
        }
    }

    kube_zone_usage(&cli->zone, &usage);

    if (usage.refused != 0 && !quiet) {
        fprintf(stderr, "kube-informer: missing: %llu objects that were "
                "refused, for want of room or as malformed\n",
                (unsigned long long) usage.refused);
    }

    return n + (usage.refused != 0);
}


/* Whether all that can be had was listed; code: 0 where that is everything. */
static bool
cli_is_complete(cli_t *cli, int *code)
{
    bool  refused_only;

    if ((!kube_informer_synced(cli->informer)
         || (cli->pods != NULL && !kube_cli_pods_synced(cli->pods)))
        && (cli_missing(cli, true, &refused_only) == 0 || !refused_only))
    {
        return false;
    }

    *code = (cli_missing(cli, false, &refused_only) == 0) ? 0 : 1;

    return true;
}


static bool
cli_config_url(cli_t *cli, kube_error_t *error)
{
    size_t                     i;
    kube_rc_t                  rc;
    const kube_cli_options_t  *o;

    o = &cli->options;
    rc = KUBE_OK;

    for (i = 0; rc == KUBE_OK && i < o->servers_n; i++) {
        rc = kube_config_add_server(&cli->config, kube_str(o->servers[i]),
                                    error);
    }

    if (rc != KUBE_OK) {
        return false;
    }

    error->what = "out of memory";

    if (o->token_file != NULL) {
        rc = kube_config_set(&cli->config, &cli->config.token.path,
                             kube_str(o->token_file));
    }

    if (rc == KUBE_OK && o->ca_file != NULL) {
        rc = kube_config_set(&cli->config, &cli->config.ca.path,
                             kube_str(o->ca_file));
    }

    return rc == KUBE_OK;
}


static bool
cli_config(cli_t *cli)
{
    bool                       ok;
    char                       why[256];
    const char                *what;
    kube_error_t               error;
    const kube_cli_options_t  *o;

    o = &cli->options;
    memset(&error, 0, sizeof(kube_error_t));

    if (o->replay != NULL) {
        return true;
    }

    if (o->kubeconfig != NULL) {
        ok = kube_config_kubeconfig(&cli->config, o->kubeconfig, o->context,
                                    &error) == KUBE_OK;

    } else if (o->in_cluster) {
        ok = kube_config_in_cluster(&cli->config,
                                    getenv("KUBERNETES_SERVICE_HOST"),
                                    getenv("KUBERNETES_SERVICE_PORT"),
                                    KUBE_SERVICE_ACCOUNT_DIR, &error)
             == KUBE_OK;

    } else {
        ok = cli_config_url(cli, &error);
    }

    if (ok && kube_config_check(&cli->config, &error) == KUBE_OK) {
        return true;
    }

    what = error.what ? error.what : kube_rc_text(error.rc);

    if (o->kubeconfig != NULL && error.offset != 0) {
        (void) snprintf(why, sizeof(why), "line %zu: %s", error.offset, what);
        what = why;
    }

    return cli_error(o->kubeconfig ? o->kubeconfig : "configuration", what);
}


static bool
cli_zone(cli_t *cli)
{
    char          text[96];
    void         *mem;
    size_t        n;
    kube_seed_t   seed;

    mem = mmap(NULL, cli->options.zone_size, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (mem == MAP_FAILED) {
        return cli_error("zone", strerror(errno));
    }

    cli->mem = mem;

    seed.k0 = kube_cli_clock_ms(CLOCK_REALTIME);
    seed.k1 = (uint64_t) getpid();

    if (kube_zone_create(&cli->zone, mem, cli->options.zone_size, seed)
        != KUBE_OK)
    {
        return cli_error("zone", "cannot be made of this size");
    }

    n = cli->options.namespaces_n;

    if (n * KUBE_SCOPES_A_NAMESPACE <= cli->zone.geometry.scopes_n) {
        return true;
    }

    /* a scope, which takes 8 KiB, has its place there, or is never shown */

    (void) snprintf(text, sizeof(text), "no room for %zu namespaces: give it "
                    "%zuk or more", n, n * KUBE_SCOPES_A_NAMESPACE * 8);

    return cli_error("--zone-size", text);
}


/* What cannot be written shows at the end of the step. */
static void
cli_record_write(void *ctx, const char *data, size_t len)
{
    cli_t  *cli = ctx;

    (void) fwrite(data, 1, len, cli->record);
}


/* The objects are in it: it is for its owner alone. */
static bool
cli_record(cli_t *cli, kube_io_t *io)
{
    int  fd;

    fd = open(cli->options.record, O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0600);

    if (fd == -1) {
        return cli_error(cli->options.record, strerror(errno));
    }

    cli->record = fdopen(fd, "w");

    if (cli->record == NULL) {
        (void) close(fd);
        return cli_error(cli->options.record, strerror(errno));
    }

    cli->recorder = kube_recorder_create(&cli->alloc, io, cli_record_write,
                                         cli);
    if (cli->recorder == NULL) {
        return cli_error("transcript", "out of memory");
    }

    *io = kube_recorder_io(cli->recorder);

    return true;
}


static bool
cli_replay(cli_t *cli)
{
    int            fd;
    void          *text;
    struct stat    st;
    kube_error_t   error;

    text = MAP_FAILED;
    fd = open(cli->options.replay, O_RDONLY|O_CLOEXEC);

    if (fd != -1 && fstat(fd, &st) == 0) {
        text = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }

    if (text == MAP_FAILED) {
        (void) cli_error(cli->options.replay, strerror(errno));

    } else {
        cli->replayed = (kube_str_t) { text, (size_t) st.st_size };
    }

    if (fd != -1) {
        (void) close(fd);
    }

    if (text == MAP_FAILED) {
        return false;
    }

    cli->transcript = kube_transcript_create(&cli->alloc, cli->replayed,
                                             false, &error);

    return cli->transcript != NULL
           || cli_error(cli->options.replay, error.what);
}


/* Whom the lister-watchers ask: a server, or a transcript. */
static bool
cli_source(cli_t *cli, kube_informer_conf_t *conf)
{
    kube_client_conf_t  client;

    if (cli->options.replay != NULL) {

        if (!cli_replay(cli)) {
            return false;
        }

        conf->io = kube_transcript_io(cli->transcript);
        conf->server = KUBE_STR("transcript");

    } else {
        memset(&client, 0, sizeof(kube_client_conf_t));

        client.config = &cli->config;
        client.connect_timeout_ms = 3000;

        cli->client = kube_client_create(&cli->alloc, &client, conf->sink);
        if (cli->client == NULL) {
            return cli_error("client", "out of memory or descriptors");
        }

        conf->io = kube_client_io(cli->client);
        conf->server = kube_client_server(cli->client);
    }

    return cli->options.record == NULL || cli_record(cli, &conf->io);
}


static bool
cli_informer(cli_t *cli)
{
    unsigned              r;
    kube_informer_conf_t  conf;

    memset(&conf, 0, sizeof(kube_informer_conf_t));

    conf.sink.write = cli_log;
    conf.sink.ctx = cli;

    if (!cli_source(cli, &conf)) {
        return false;
    }

    conf.zone = &cli->zone;
    conf.namespaces = cli->options.namespaces;
    conf.namespaces_n = cli->options.namespaces_n;
    conf.endpoints = cli->options.endpoints;
    conf.encoding = cli->options.encoding;
    conf.object_bytes_max = KUBE_OBJECT_BYTES_DEFAULT;
    conf.max_outdated_ms = KUBE_OUTDATED_MS_DEFAULT;
    conf.reflector = kube_reflector_conf_defaults(
                         kube_cli_clock_ms(CLOCK_REALTIME) * 1000003
                         + (uint64_t) getpid());
    conf.reflector.page_size = (uint32_t) cli->options.page_size;
    conf.reflector.watch_list = cli->options.watch_list;
    conf.change = cli->options.quiet ? NULL : cli_change;
    conf.change_ctx = cli;
    conf.synced = cli_synced;
    conf.pid = (uint64_t) getpid();

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        conf.label_selector[r] = cli->options.selectors[r];
    }

    cli->informer = kube_informer_create(&cli->alloc, &conf);

    if (cli->options.pods) {
        cli->pods = kube_cli_pods_create(&cli->alloc, &cli->options, &conf);
    }

    if (cli->informer == NULL || (cli->options.pods && cli->pods == NULL)) {
        return cli_error("informer", "out of memory");
    }

    return true;
}


/* What cannot be written is an error with a text. */
static void
cli_no_signals(void)
{
    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGXFSZ, SIG_IGN);
}


/* Before anything may start a thread: it inherits the mask. */
static bool
cli_signals(cli_t *cli)
{
    sigset_t  set;

    cli_no_signals();

    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGINT);
    (void) sigaddset(&set, SIGTERM);

    cli->signals = -1;

    if (sigprocmask(SIG_BLOCK, &set, NULL) == 0) {
        cli->signals = signalfd(-1, &set, SFD_CLOEXEC|SFD_NONBLOCK);
    }

    return cli->signals != -1 || cli_error("event loop", strerror(errno));
}


static int
cli_timeout(const cli_t *cli, uint64_t now_ms)
{
    uint64_t  a, b;

    a = (cli->client != NULL) ? kube_client_deadline(cli->client)
                              : kube_transcript_deadline(cli->transcript);
    b = kube_informer_deadline(cli->informer);
    a = (a < b) ? a : b;

    b = (cli->pods != NULL) ? kube_cli_pods_deadline(cli->pods) : a;
    a = (a < b) ? a : b;
    a = (a < cli->ends_ms) ? a : cli->ends_ms;

    if (a <= now_ms) {
        return 0;
    }

    return (a - now_ms > 60000) ? 60000 : (int) (a - now_ms);
}


/* How many scopes the informer has: the lowest of the zone's. */
static unsigned
cli_scopes(const cli_t *cli)
{
    size_t  n;

    n = cli->options.namespaces_n;

    return KUBE_SCOPES_A_NAMESPACE * (unsigned) (n != 0 ? n : 1);
}


static bool
cli_step(cli_t *cli, uint64_t now_ms)
{
    unsigned   slot, scopes;
    kube_rc_t  rc;

    if (cli->client != NULL) {
        kube_client_process(cli->client, now_ms);

    } else {
        kube_transcript_process(cli->transcript, now_ms);
    }

    rc = kube_informer_process(cli->informer, now_ms,
                               (int64_t) kube_cli_clock_ms(CLOCK_REALTIME));

    if (rc != KUBE_OK && rc != KUBE_NOMEM) {
        return cli_error("informer", kube_rc_text(rc));
    }

    if (cli->pods != NULL && !kube_cli_pods_process(cli->pods, now_ms)) {
        return cli_error("pods", "cannot be shown");
    }

    scopes = cli->options.digest ? cli_scopes(cli) : 0;

    for (slot = 0; slot < scopes; slot++) {
        cli_show_scope(cli, slot, false);
    }

    if (fflush(stdout) != 0 || ferror(stdout)) {
        return cli_error("stdout", strerror(errno));
    }

    if (cli->record != NULL
        && (fflush(cli->record) != 0 || ferror(cli->record)))
    {
        return cli_error(cli->options.record, strerror(errno));
    }

    return !cli->failed;
}


static int
cli_run(cli_t *cli)
{
    int            n, code;
    bool           refused_only;
    uint64_t       now_ms;
    struct pollfd  fds[2];

    fds[0] = (struct pollfd) { .fd = cli->signals, .events = POLLIN };
    fds[1] = (struct pollfd) { .fd = -1, .events = POLLIN };

    if (cli->client != NULL) {
        fds[1].fd = kube_client_fd(cli->client);
    }

    now_ms = kube_cli_now_ms();
    cli->ends_ms = cli->options.timeout_ms ? now_ms + cli->options.timeout_ms
                                           : UINT64_MAX;

    for ( ;; ) {

        if (!cli_step(cli, now_ms)) {
            return 1;
        }

        if (cli->options.until_synced && cli_is_complete(cli, &code)) {
            return code;
        }

        if (now_ms >= cli->ends_ms) {
            (void) cli_missing(cli, false, &refused_only);

            if (!cli->options.until_synced) {
                return 0;
            }

            (void) cli_error("timeout", "not synced in time");
            return 1;
        }

        n = poll(fds, 2, cli_timeout(cli, now_ms));

        if (n > 0 && fds[0].revents != 0) {
            (void) cli_missing(cli, !cli->options.until_synced,
                               &refused_only);
            return cli->options.until_synced ? 1 : 0;
        }

        if (n == -1 && errno != EINTR) {
            (void) cli_error("event loop", strerror(errno));
            return 1;
        }

        now_ms = kube_cli_now_ms();
    }
}


static void
cli_done(cli_t *cli)
{
    /* the informer cancels what it has in the client */

    kube_cli_pods_destroy(cli->pods);
    kube_informer_destroy(cli->informer);
    kube_recorder_destroy(cli->recorder);
    kube_transcript_destroy(cli->transcript);
    kube_client_destroy(cli->client);
    kube_config_done(&cli->config);
    kube_arena_done(&cli->arena);

    if (cli->mem != NULL) {
        (void) munmap(cli->mem, cli->options.zone_size);
    }

    if (cli->record != NULL) {
        (void) fclose(cli->record);
    }

    if (cli->replayed.data != NULL) {
        (void) munmap((void *) (uintptr_t) cli->replayed.data,
                      cli->replayed.len);
    }

    if (cli->signals > 0) {
        (void) close(cli->signals);
    }
}


static int
cli_verify(cli_t *cli)
{
    kube_log_sink_t  sink;

    cli_no_signals();

    sink.write = cli_log;
    sink.ctx = cli;

    return cli_config(cli) ? kube_cli_verify(&cli->options, &cli->config,
                                             &cli->alloc, sink)
                           : 2;
}


int
main(int argc, char *argv[])
{
    int    code;
    cli_t  cli;

    memset(&cli, 0, sizeof(cli_t));

    if (!kube_cli_options_parse(&cli.options, argc, argv)) {
        return 2;
    }

    if (cli.options.help) {
        kube_cli_usage();
        return 0;
    }

    if (cli.options.version) {
        puts("kube-informer " KUBE_VERSION);
        return 0;
    }

    cli.alloc.alloc = cli_alloc;
    cli.alloc.free = cli_free;
    cli.alloc.pages = cli_pages;
    cli.alloc.pages_free = cli_pages_free;

    kube_arena_init(&cli.arena, &cli.alloc, CLI_ARENA_BYTES);
    kube_config_init(&cli.config, &cli.alloc);

    if (cli.options.verify != NULL) {
        code = cli_verify(&cli);
        cli_done(&cli);
        return code;
    }

    code = 1;

    if (cli_signals(&cli)
        && cli_config(&cli)
        && cli_zone(&cli)
        && cli_informer(&cli))
    {
        code = cli_run(&cli);
    }

    cli_done(&cli);

    return code;
}

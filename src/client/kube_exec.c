/*
 * kube_exec - what an exec plugin is told, and what is taken from it.
 *
 * It decides neither when to ask nor what the answer replaces, and is no
 * process's parent: kube_child is.  The informer process alone calls it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kube_arena.h"
#include "kube_child.h"
#include "kube_date.h"
#include "kube_exec.h"
#include "kube_json.h"
#include "kube_json_writer.h"
#include "kube_limits.h"
#include "kube_secret.h"


/* Of its standard error the end is kept. */
#define EXEC_ERROR_MAX  256

/* A supervisor that does not keep to the program's time is given up, ms. */
#define EXEC_GRACE_MS   2000

/* Where there is no PATH: nginx hands none to its processes. */
#define EXEC_PATH                                                             \
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#define EXEC_INFO       "KUBERNETES_EXEC_INFO="

struct kube_exec_s {
    kube_alloc_t          alloc;
    const kube_config_t  *config;
    kube_child_t          child;
    uint64_t              late_ms;
    kube_child_end_t      end;
    char                 *out;
    size_t                out_n;
    char                  err[EXEC_ERROR_MAX];
    size_t                err_n;
    kube_str_t            token;
    kube_str_t            certificate;
    kube_str_t            key;
    char                  why[1536];
    const char           *remedy;       /* of why; static */
};

/* Text that is printed into memory; what does not fit is an error. */
typedef struct {
    char                 *data;
    size_t                n;
    size_t                size;
} exec_buffer_t;


extern char  **environ;


kube_exec_t *
kube_exec_create(const kube_alloc_t *alloc, const kube_config_t *config)
{
    kube_exec_t  *exec;

    exec = kube_zalloc(alloc, sizeof(kube_exec_t));
    if (exec == NULL) {
        return NULL;
    }

    exec->alloc = *alloc;
    exec->config = config;

    kube_child_init(&exec->child);

    return exec;
}


static void
exec_forget(kube_exec_t *exec)
{
    kube_secret_free(&exec->alloc, &exec->token);
    kube_secret_free(&exec->alloc, &exec->certificate);
    kube_secret_free(&exec->alloc, &exec->key);

    if (exec->out != NULL) {
        explicit_bzero(exec->out, KUBE_EXEC_OUTPUT_MAX);
        kube_free(&exec->alloc, exec->out);
        exec->out = NULL;
    }

    exec->out_n = 0;
    exec->err_n = 0;
    exec->end.how = 0;
    exec->why[0] = '\0';
}


void
kube_exec_destroy(kube_exec_t *exec)
{
    kube_alloc_t  alloc;

    if (exec == NULL) {
        return;
    }

    alloc = exec->alloc;

    kube_child_stop(&exec->child);
    exec_forget(exec);
    kube_free(&alloc, exec);
}


static kube_rc_t
exec_fail(kube_exec_t *exec, kube_rc_t rc, const char *what)
{
    char                     name[256], text[2 * EXEC_ERROR_MAX];
    char                     hint[256];
    const kube_exec_conf_t  *conf = &exec->config->exec;

    (void) kube_str_escape(name, sizeof(name), conf->command);
    (void) kube_str_escape(text, sizeof(text), kube_secret_trim(
                               (kube_str_t) { exec->err, exec->err_n }));
    (void) kube_str_escape(hint, sizeof(hint), exec->end.how
                           == KUBE_CHILD_NOT_STARTED ? conf->install_hint
                                               : KUBE_STR_NULL);

    (void) snprintf(exec->why, sizeof(exec->why), "exec plugin \"%s\": %s"
                    "%s%s%s%s%s", name, what,
                    text[0] != '\0' ? ", it says \"" : "", text,
                    text[0] != '\0' ? "\"" : "",
                    hint[0] != '\0' ? "; " : "", hint);

    exec->remedy = (rc == KUBE_NOMEM) ? "give this host more memory"
                   : (exec->end.how == KUBE_CHILD_NOT_STARTED)
                     ? "install the exec plugin, where nginx's \"user\" finds "
                       "it and may run it"
                     : "run the exec plugin as nginx's \"user\", and mend what "
                       "it says";

    kube_child_stop(&exec->child);

    return rc;
}


/* Standard base64, as certificate-authority-data has it. */
static kube_rc_t
exec_base64(const kube_alloc_t *alloc, kube_str_t s, kube_str_t *out)
{
    char               *p;
    size_t              i, j, left;
    uint32_t            n;
    static const char   digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                   "abcdefghijklmnopqrstuvwxyz0123456789+/";

    p = kube_alloc(alloc, (s.len + 2) / 3 * 4 + 1);
    if (p == NULL) {
        return KUBE_NOMEM;
    }

    out->data = p;
    out->len = (s.len + 2) / 3 * 4;

    for (i = 0; i < s.len; i += 3) {
        n = 0;
        left = s.len - i;

        for (j = 0; j < 3; j++) {
            n = n << 8 | (j < left ? (uint8_t) s.data[i + j] : 0);
        }

        for (j = 0; j < 4; j++) {
            *p++ = (j <= left) ? digits[n >> (18 - 6 * j) & 63] : '=';
        }
    }

    return KUBE_OK;
}


static bool
exec_buffer_write(void *ctx, const char *data, size_t len)
{
    exec_buffer_t  *b = ctx;

    if (b->size - b->n < len) {
        return false;
    }

    memcpy(b->data + b->n, data, len);
    b->n += len;

    return true;
}


/* The cluster, for a program that asks for it (provideClusterInfo). */
static kube_rc_t
exec_cluster(kube_exec_t *exec, kube_json_writer_t *json)
{
    kube_rc_t             rc;
    kube_str_t            ca, coded;
    const char           *what;
    const kube_config_t  *config = exec->config;

    ca = KUBE_STR_NULL;

    if (config->ca.data.len != 0) {
        rc = kube_str_dup(&exec->alloc, config->ca.data, &ca);

    } else if (config->ca.path.len != 0) {
        rc = kube_secret_read(&exec->alloc, config->ca.path.data,
                              KUBE_CREDENTIAL_BYTES_MAX, &ca, &what);
    } else {
        rc = KUBE_OK;
    }

    if (rc != KUBE_OK) {
        return rc;
    }

    rc = exec_base64(&exec->alloc, ca, &coded);
    kube_secret_free(&exec->alloc, &ca);

    if (rc != KUBE_OK) {
        return rc;
    }

    kube_json_open(json, "cluster", '{');
    kube_json_put_str(json, "server", config->servers[0]);

    if (config->tls_server_name.len != 0) {
        kube_json_put_str(json, "tls-server-name", config->tls_server_name);
    }

    if (config->tls_verify_off) {
        kube_json_put_bool(json, "insecure-skip-tls-verify", true);
    }

    if (coded.len != 0) {
        kube_json_put_str(json, "certificate-authority-data", coded);
    }

    if (config->proxy_url.len != 0) {
        kube_json_put_str(json, "proxy-url", config->proxy_url);
    }

    kube_json_close(json, '}');
    kube_secret_free(&exec->alloc, &coded);

    return KUBE_OK;
}


/* KUBERNETES_EXEC_INFO=..., with a NUL; the caller frees it. */
static kube_rc_t
exec_info(kube_exec_t *exec, char **info)
{
    kube_rc_t           rc;
    kube_text_t         text;
    exec_buffer_t       b;
    kube_json_writer_t  json;

    b.n = 0;
    b.size = 2 * KUBE_CREDENTIAL_BYTES_MAX;
    b.data = kube_alloc(&exec->alloc, b.size);

    if (b.data == NULL) {
        return KUBE_NOMEM;
    }

    kube_text_init(&text, exec_buffer_write, &b, b.size - 1);
    kube_json_writer_init(&json, &text);

    kube_text_put(&text, KUBE_STR(EXEC_INFO));
    kube_json_open(&json, NULL, '{');
    kube_json_put_str(&json, "kind", KUBE_STR("ExecCredential"));
    kube_json_put_str(&json, "apiVersion", exec->config->exec.api_version);
    kube_json_open(&json, "spec", '{');

    rc = exec->config->exec.cluster_info ? exec_cluster(exec, &json) : KUBE_OK;

    kube_json_put_bool(&json, "interactive", false);
    kube_json_close(&json, '}');
    kube_json_close(&json, '}');

    if (rc == KUBE_OK && text.failed) {
        rc = KUBE_TOO_LARGE;
    }

    if (rc != KUBE_OK) {
        kube_free(&exec->alloc, b.data);
        return rc;
    }

    b.data[b.n] = '\0';
    *info = b.data;

    return KUBE_OK;
}


/* The name of an environment's line is in one of the lines. */
static bool
exec_names(const char *line, const kube_str_t *lines, size_t n)
{
    size_t  i, len;

    len = strcspn(line, "=") + 1;

    for (i = 0; i < n; i++) {
        if (lines[i].len >= len && memcmp(lines[i].data, line, len) == 0) {
            return true;
        }
    }

    return false;
}


static bool
exec_is_info(const char *line)
{
    return strncmp(line, EXEC_INFO, sizeof(EXEC_INFO) - 1) == 0;
}


/*
 * Ours, then what the kubeconfig says in its place, and info.  Each name once:
 * of two lines programs would take either, and client-go takes the last.  An
 * array of borrowed pointers; NULL: out of memory.
 */
static char **
exec_environment(kube_exec_t *exec, char *info)
{
    bool                     path;
    char                   **env;
    size_t                   i, n;
    const kube_exec_conf_t  *conf = &exec->config->exec;

    for (n = 0; environ != NULL && environ[n] != NULL; n++) { /* void */ }

    env = kube_alloc(&exec->alloc, (n + conf->env_n + 3) * sizeof(char *));
    if (env == NULL) {
        return NULL;
    }

    n = 0;
    path = false;

    for (i = 0; environ != NULL && environ[i] != NULL; i++) {
        if (!exec_names(environ[i], conf->env, conf->env_n)
            && !exec_is_info(environ[i]))
        {
            env[n++] = environ[i];
        }
    }

    for (i = 0; i < conf->env_n; i++) {
        if (!exec_names(conf->env[i].data, &conf->env[i + 1],
                        conf->env_n - i - 1)
            && !exec_is_info(conf->env[i].data))
        {
            env[n++] = (char *) (uintptr_t) conf->env[i].data;
        }
    }

    for (i = 0; i < n; i++) {
        path = path || strncmp(env[i], "PATH=", 5) == 0;
    }

    if (!path) {
        env[n++] = (char *) (uintptr_t) EXEC_PATH;
    }

    env[n++] = info;
    env[n] = NULL;

    return env;
}


kube_rc_t
kube_exec_start(kube_exec_t *exec, uint64_t now_ms)
{
    char                    *info, **env, *argv[KUBE_EXEC_WORDS_MAX + 2];
    size_t                   n;
    kube_rc_t                rc;
    const kube_exec_conf_t  *conf = &exec->config->exec;

    kube_child_stop(&exec->child);
    exec_forget(exec);

    exec->late_ms = now_ms + KUBE_EXEC_TIMEOUT_MS + EXEC_GRACE_MS;

    argv[0] = (char *) (uintptr_t) conf->command.data;

    for (n = 0; n < conf->args_n; n++) {
        argv[n + 1] = (char *) (uintptr_t) conf->args[n].data;
    }

    argv[n + 1] = NULL;

    env = NULL;
    exec->out = kube_alloc(&exec->alloc, KUBE_EXEC_OUTPUT_MAX);
    rc = (exec->out != NULL) ? exec_info(exec, &info) : KUBE_NOMEM;

    if (rc == KUBE_OK) {
        env = exec_environment(exec, info);
        rc = (env != NULL) ? kube_child_start(&exec->child, argv, env,
                                              KUBE_EXEC_TIMEOUT_MS)
                           : KUBE_NOMEM;
        kube_free(&exec->alloc, env);
        kube_free(&exec->alloc, info);
    }

    if (rc == KUBE_OK) {
        return KUBE_OK;
    }

    return exec_fail(exec, rc, rc == KUBE_NOMEM ? "out of memory"
                     : rc == KUBE_IO ? "no process, no descriptor, or the "
                                       "cluster's CA cannot be read"
                     : "the cluster's CA cannot be handed over");
}


int
kube_exec_fd(const kube_exec_t *exec)
{
    return exec->child.epoll;
}


uint64_t
kube_exec_deadline(const kube_exec_t *exec)
{
    return exec->late_ms;
}


static kube_rc_t
exec_read_out(kube_exec_t *exec)
{
    ssize_t  n;

    do {
        if (exec->out_n == KUBE_EXEC_OUTPUT_MAX) {
            return KUBE_TOO_LARGE;
        }

        n = kube_child_read(&exec->child, KUBE_CHILD_OUT,
                            exec->out + exec->out_n,
                            KUBE_EXEC_OUTPUT_MAX - exec->out_n);

        exec->out_n += (n > 0) ? (size_t) n : 0;

    } while (n > 0);

    return KUBE_OK;
}


static void
exec_read_err(kube_exec_t *exec)
{
    char     piece[EXEC_ERROR_MAX];
    size_t   keep;
    ssize_t  n;
    int      turns;

    /* one that writes for ever is heard a while at a time */

    for (turns = 0; turns < 256; turns++) {

        n = kube_child_read(&exec->child, KUBE_CHILD_ERR, piece,
                            sizeof(piece));
        if (n <= 0) {
            return;
        }

        keep = EXEC_ERROR_MAX - (size_t) n;
        keep = (exec->err_n < keep) ? exec->err_n : keep;

        memmove(exec->err, exec->err + exec->err_n - keep, keep);
        memcpy(exec->err + keep, piece, (size_t) n);
        exec->err_n = keep + (size_t) n;
    }
}


static kube_rc_t
exec_version(kube_exec_t *exec, const cJSON *tree)
{
    char        text[256], version[128];
    kube_str_t  kind, got;

    kind = kube_json_string(tree, "kind");
    got = kube_json_string(tree, "apiVersion");

    if (kube_str_eq(kind, KUBE_STR("ExecCredential"))
        && kube_str_eq(got, exec->config->exec.api_version))
    {
        return KUBE_OK;
    }

    (void) kube_str_escape(version, sizeof(version), got);
    (void) snprintf(text, sizeof(text), "it printed no ExecCredential of %s, "
                    "but of \"%s\"", exec->config->exec.api_version.data,
                    version);

    return exec_fail(exec, KUBE_INVALID, text);
}


/*
 * expirationTimestamp, as what is left of it.  Whether it has expired is the
 * server's to say, whose clock need not be ours.
 */
static kube_rc_t
exec_lifetime(kube_exec_t *exec, const cJSON *status, uint64_t *lifetime_ms)
{
    int64_t          ends_ms, now_ms;
    kube_str_t       text;
    struct timespec  now;

    *lifetime_ms = KUBE_NEVER;
    text = kube_json_string(status, "expirationTimestamp");

    /* the second is how Go's programs print a time that was never set */

    if (text.len == 0 || kube_str_eq(text, KUBE_STR("0001-01-01T00:00:00Z"))) {
        return KUBE_OK;
    }

    if (kube_date_parse_rfc3339(text, &ends_ms) != KUBE_OK) {
        return exec_fail(exec, KUBE_INVALID,
                         "its expirationTimestamp is no time of RFC 3339");
    }

    (void) clock_gettime(CLOCK_REALTIME, &now);
    now_ms = (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;

    *lifetime_ms = (ends_ms > now_ms) ? (uint64_t) (ends_ms - now_ms)
                                      : KUBE_EXEC_EXPIRED_MS;

    return KUBE_OK;
}


static kube_rc_t
exec_status(kube_exec_t *exec, const cJSON *tree, kube_exec_result_t *result)
{
    kube_rc_t     rc;
    kube_str_t    token, certificate, key;
    const cJSON  *status;

    status = kube_json_get(tree, "status");

    token = kube_json_string(status, "token");
    certificate = kube_json_string(status, "clientCertificateData");
    key = kube_json_string(status, "clientKeyData");

    if ((token.len == 0 && certificate.len == 0)
        || (certificate.len == 0) != (key.len == 0))
    {
        return exec_fail(exec, KUBE_INVALID, "it printed neither a token nor "
                         "a client certificate with its key");
    }

    if ((token.len != 0 && !kube_secret_is_token(token))
        || (certificate.len != 0 && (!kube_secret_is_pem(certificate)
                                     || !kube_secret_is_pem(key))))
    {
        return exec_fail(exec, KUBE_INVALID, "its token holds bytes that a "
                         "header cannot carry, or its certificate is not PEM");
    }

    rc = exec_lifetime(exec, status, &result->lifetime_ms);

    if (rc != KUBE_OK) {
        return rc;
    }

    if (kube_str_dup(&exec->alloc, token, &exec->token) != KUBE_OK
        || kube_str_dup(&exec->alloc, certificate, &exec->certificate)
           != KUBE_OK
        || kube_str_dup(&exec->alloc, key, &exec->key) != KUBE_OK)
    {
        return exec_fail(exec, KUBE_NOMEM, "out of memory");
    }

    result->token = exec->token;
    result->certificate = exec->certificate;
    result->key = exec->key;

    return KUBE_OK;
}


/* Memory of cJSON's tree: secrets are zeroed before it is freed. */

static void *
exec_secret_alloc(void *ctx, size_t size)
{
    size_t  *p;

    p = kube_alloc(ctx, size + 16);
    if (p == NULL) {
        return NULL;
    }

    *p = size + 16;

    return (char *) p + 16;
}


static void
exec_secret_free(void *ctx, void *data)
{
    size_t  *p;

    p = (size_t *) (void *) ((char *) data - 16);

    explicit_bzero(p, *p);
    kube_free(ctx, p);
}


static kube_rc_t
exec_judge(kube_exec_t *exec, kube_exec_result_t *result)
{
    cJSON         *tree;
    kube_rc_t      rc;
    kube_alloc_t   secret;
    kube_arena_t   arena;
    kube_error_t   error;

    memset(&secret, 0, sizeof(secret));
    secret.alloc = exec_secret_alloc;
    secret.free = exec_secret_free;
    secret.ctx = &exec->alloc;

    kube_arena_init(&arena, &secret, 16 * KUBE_EXEC_OUTPUT_MAX);

    rc = kube_json_parse(&arena, (kube_str_t) { exec->out, exec->out_n },
                         &tree, &error);

    if (rc != KUBE_OK) {
        rc = exec_fail(exec, rc, rc == KUBE_NOMEM ? "out of memory"
                                 : "what it printed is not JSON");
    } else {
        rc = exec_version(exec, tree);
    }

    if (rc == KUBE_OK) {
        rc = exec_status(exec, tree, result);
    }

    kube_arena_done(&arena);

    return rc;
}


/* It has ended, and how. */
static kube_rc_t
exec_ended(kube_exec_t *exec, kube_exec_result_t *result)
{
    char       text[128];
    kube_rc_t  rc;

    text[0] = '\0';
    rc = KUBE_IO;

    switch (exec->end.how) {

    case KUBE_CHILD_NOT_STARTED:
        (void) snprintf(text, sizeof(text), "it cannot be started (%d: %s)",
                        exec->end.what, strerror(exec->end.what));
        break;

    case KUBE_CHILD_EXITED:
        if (exec->end.what != 0) {
            (void) snprintf(text, sizeof(text), "it exited with code %d",
                            exec->end.what);
        }

        break;

    case KUBE_CHILD_KILLED:
        (void) snprintf(text, sizeof(text), "it was ended by signal %d",
                        exec->end.what);
        break;

    case KUBE_CHILD_LATE:
        (void) snprintf(text, sizeof(text), "it took more than %d s",
                        KUBE_EXEC_TIMEOUT_MS / 1000);
        rc = KUBE_TIMEOUT;
        break;

    default:
        (void) snprintf(text, sizeof(text), "its supervisor is gone");
        break;
    }

    if (text[0] != '\0') {
        return exec_fail(exec, rc, text);
    }

    kube_child_stop(&exec->child);

    return exec_judge(exec, result);
}


kube_rc_t
kube_exec_poll(kube_exec_t *exec, uint64_t now_ms, kube_exec_result_t *result)
{
    ssize_t           n;
    kube_child_end_t  end;

    if (exec->child.epoll == -1) {
        return KUBE_IO;
    }

    memset(result, 0, sizeof(kube_exec_result_t));

    /* the end first: what was printed before it is then there to be read */

    n = kube_child_read(&exec->child, KUBE_CHILD_END, &end, sizeof(end));

    if (n == (ssize_t) sizeof(end)) {
        exec->end = end;
    }

    if (exec_read_out(exec) != KUBE_OK) {
        return exec_fail(exec, KUBE_TOO_LARGE, "it prints too much");
    }

    exec_read_err(exec);

    if (n >= 0) {
        return exec_ended(exec, result);
    }

    if (now_ms >= exec->late_ms) {
        exec->end.how = KUBE_CHILD_LATE;
        return exec_ended(exec, result);
    }

    return KUBE_AGAIN;
}


const char *
kube_exec_why(const kube_exec_t *exec)
{
    return exec->why;
}


const char *
kube_exec_remedy(const kube_exec_t *exec)
{
    return exec->remedy;
}

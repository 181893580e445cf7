/*
 * kube_credentials - token, CA and client certificate as they are now.
 *
 * It never decides who we are: kube_config does.  A value is replaced only by
 * one that was read whole and looks right; a certificate and its key are
 * replaced together or not at all.  The informer process alone calls this.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "kube_ca.h"
#include "kube_credentials.h"
#include "kube_exec.h"
#include "kube_limits.h"
#include "kube_secret.h"


/* A path and what is wrong with it, or what an exec plugin says. */
#define CREDENTIALS_WHY_MAX  1536

/* Between two runs of an exec plugin, ms; after failures up to the other. */
#define CREDENTIALS_EXEC_FIRST_MS  1000
#define CREDENTIALS_EXEC_MAX_MS    30000

struct kube_credentials_s {
    kube_alloc_t          alloc;
    const kube_config_t  *config;
    kube_log_t            log;
    kube_str_t            now[KUBE_CREDENTIALS];
    uint64_t              due_ms;
    bool                  token_read;   /* from its file, at least once */
    bool                  complete;     /* nothing that is needed is missing */
    bool                  warned[KUBE_CREDENTIALS];    /* others may read it */

    kube_exec_t          *exec;         /* NULL: no plugin logs in */
    bool                  exec_said;    /* at least once */
    bool                  exec_wanted;  /* after a 401 */
    unsigned              exec_changed; /* by what it said, not told yet */
    unsigned              exec_fails;   /* in a row */
    uint64_t              exec_next_ms; /* not asked before */
    uint64_t              exec_renew_ms;
    char                  why[CREDENTIALS_WHY_MAX];
    const char           *remedy;       /* of why; static; NULL: the usual */
    char                  said[CREDENTIALS_WHY_MAX];    /* in the log */
};

/* Where a credential comes from and what it must look like. */
typedef struct {
    const char  *name;                  /* for the log */
    size_t       source;                /* offset in kube_config_t */
    bool         file_wins;
    bool         secret;
    size_t       max;
    bool       (*check)(kube_str_t value);
} credentials_want_t;


static const credentials_want_t  credentials_wants[KUBE_CREDENTIALS] = {

    [KUBE_CREDENTIAL_TOKEN] = {
        "token", offsetof(kube_config_t, token), true, true,
        KUBE_TOKEN_BYTES_MAX,
        kube_secret_is_token
    },

    [KUBE_CREDENTIAL_CA] = {
        "CA", offsetof(kube_config_t, ca), false, false,
        KUBE_CREDENTIAL_BYTES_MAX, kube_secret_is_pem
    },

    [KUBE_CREDENTIAL_CERTIFICATE] = {
        "client certificate", offsetof(kube_config_t, certificate), false,
        false, KUBE_CREDENTIAL_BYTES_MAX, kube_secret_is_pem
    },

    [KUBE_CREDENTIAL_KEY] = {
        "client certificate's key", offsetof(kube_config_t, key), false,
        true, KUBE_CREDENTIAL_BYTES_MAX, kube_secret_is_pem
    }
};


kube_credentials_t *
kube_credentials_create(const kube_alloc_t *alloc, const kube_config_t *config,
    kube_log_sink_t sink)
{
    kube_credentials_t  *c;

    c = kube_zalloc(alloc, sizeof(kube_credentials_t));
    if (c == NULL) {
        return NULL;
    }

    c->alloc = *alloc;
    c->config = config;

    kube_log_init(&c->log, sink);

    if (config->exec.command.len != 0) {
        c->exec = kube_exec_create(alloc, config);

        if (c->exec == NULL) {
            kube_free(alloc, c);
            return NULL;
        }
    }

    return c;
}


void
kube_credentials_destroy(kube_credentials_t *credentials)
{
    unsigned      i;
    kube_alloc_t  alloc;

    if (credentials == NULL) {
        return;
    }

    alloc = credentials->alloc;

    kube_exec_destroy(credentials->exec);

    for (i = 0; i < KUBE_CREDENTIALS; i++) {
        kube_secret_free(&alloc, &credentials->now[i]);
    }

    kube_free(&alloc, credentials);
}


/*
 * Keeps what is wrong, for whoever cannot send requests because of it.  Where
 * another value serves instead nobody notices: that is logged, once.
 */
static void
credentials_report(kube_credentials_t *c, const credentials_want_t *want,
    kube_str_t from, uint64_t now_ms, const char *what, const char *instead)
{
    char  path[256];

    (void) kube_str_escape(path, sizeof(path), from);
    (void) snprintf(c->why, sizeof(c->why), "%s \"%s\": %s", want->name,
                    path, what);

    if (instead[0] == '\0' || strcmp(c->why, c->said) == 0) {
        return;
    }

    memcpy(c->said, c->why, sizeof(c->said));
    kube_log_event(&c->log, now_ms, KUBE_LOG_WARN, KUBE_EV_CREDENTIALS,
                   "%s%s", c->why, instead);
}


/* A file that Kubernetes mounts into a pod. */
static bool
credentials_is_pods(kube_str_t from)
{
    return strncmp(from.data, KUBE_SERVICE_ACCOUNT_DIR,
                   sizeof(KUBE_SERVICE_ACCOUNT_DIR) - 1) == 0;
}


/* What helps where a file could not be read, for errno, or not be used. */
static const char *
credentials_file_remedy(kube_rc_t rc, int err, kube_str_t from)
{
    if (rc == KUBE_NOMEM) {
        return "give this host more memory";
    }

    if (rc != KUBE_IO) {
        return "write anew what it is to hold";
    }

    switch (err) {

    case ENOENT:
    case ENOTDIR:
        return credentials_is_pods(from)
               ? "let the pod mount its service account's token: no "
                 "\"automountServiceAccountToken: false\""
               : "create the file, or correct its path";

    case EACCES:
    case EPERM:
        return "let nginx's \"user\" read the file, and enter its directories";

    case EMFILE:
    case ENFILE:
        return "raise \"worker_rlimit_nofile\"";

    case EISDIR:
    case EINVAL:
    case ELOOP:
        return "name the file itself";

    default:
        return NULL;
    }
}


/* Checks and copies raw; *out is new memory. */
static kube_rc_t
credentials_accept(kube_credentials_t *c, const credentials_want_t *want,
    kube_str_t raw, kube_str_t *out, const char **what)
{
    kube_str_t  value;

    value = kube_secret_trim(raw);

    if (!want->check(value)) {
        *what = value.len == 0 ? "it is empty" : "it is malformed";
        return KUBE_INVALID;
    }

    *what = "out of memory";

    return kube_str_dup(&c->alloc, value, out);
}


/*
 * Warns once about a secret that any user of this host may read.  The mode of
 * a pod's own token is Kubernetes' to choose, and nobody else is in the pod.
 */
static void
credentials_mode(kube_credentials_t *c, kube_credential_t which,
    kube_str_t from, uint64_t now_ms)
{
    char         path[256];
    struct stat  st;

    if (c->warned[which] || !credentials_wants[which].secret
        || credentials_is_pods(from)
        || stat(from.data, &st) == -1
        || (st.st_mode & S_IROTH) == 0)
    {
        return;
    }

    c->warned[which] = true;

    (void) kube_str_escape(path, sizeof(path), from);
    kube_log_event(&c->log, now_ms, KUBE_LOG_WARN, KUBE_EV_CREDENTIALS,
                   "%s \"%s\" may be read by all users of this host: chmod "
                   "o-r", credentials_wants[which].name, path);
}


/* *out is new memory; it is empty if the configuration names nothing. */
static kube_rc_t
credentials_load(kube_credentials_t *c, kube_credential_t which,
    uint64_t now_ms, kube_str_t *out)
{
    int                        err;
    bool                       inlined;
    kube_rc_t                  rc;
    kube_str_t                 raw, from;
    const char                *what;
    const kube_source_t       *source;
    const credentials_want_t  *want;

    *out = KUBE_STR_NULL;

    want = &credentials_wants[which];
    source = (const void *) ((const char *) c->config + want->source);

    if (source->path.len == 0 && source->data.len == 0) {
        return KUBE_OK;
    }

    err = 0;
    inlined = (source->data.len != 0);

    if (source->path.len == 0 || (inlined && !want->file_wins)) {
        from = KUBE_STR("(inline)");
        rc = credentials_accept(c, want, source->data, out, &what);

    } else {
        from = source->path;
        rc = kube_secret_read(&c->alloc, source->path.data, want->max, &raw,
                              &what);
        err = errno;

        if (rc == KUBE_OK) {
            rc = credentials_accept(c, want, raw, out, &what);
            kube_secret_free(&c->alloc, &raw);
        }

        if (rc == KUBE_OK) {
            c->token_read |= (which == KUBE_CREDENTIAL_TOKEN);
            credentials_mode(c, which, source->path, now_ms);

        } else if (inlined && !c->token_read) {
            credentials_report(c, want, from, now_ms, what,
                               "; the inline one is used instead");
            from = KUBE_STR("(inline)");
            rc = credentials_accept(c, want, source->data, out, &what);
        }
    }

    if (rc != KUBE_OK) {
        credentials_report(c, want, from, now_ms, what, c->complete
                           ? "; the last good one stays in use" : "");
        c->remedy = credentials_file_remedy(rc, err, from);
    }

    return rc;
}


/* Puts value in the place of the one before; sets its bit if they differ. */
static void
credentials_replace(kube_credentials_t *c, kube_credential_t which,
    kube_str_t value, unsigned bit, unsigned *changed)
{
    if (!kube_str_eq(c->now[which], value)) {
        *changed |= bit;
    }

    kube_secret_free(&c->alloc, &c->now[which]);
    c->now[which] = value;
}


static void
credentials_exec_failed(kube_credentials_t *c, uint64_t now_ms)
{
    uint64_t  pause_ms;

    pause_ms = CREDENTIALS_EXEC_FIRST_MS;
    pause_ms <<= (c->exec_fails < 5) ? c->exec_fails : 5;

    c->exec_fails++;
    c->exec_next_ms = now_ms + (pause_ms < CREDENTIALS_EXEC_MAX_MS
                                ? pause_ms : CREDENTIALS_EXEC_MAX_MS);

    if (c->exec_said && strcmp(kube_exec_why(c->exec), c->said) != 0) {
        (void) snprintf(c->said, sizeof(c->said), "%s",
                        kube_exec_why(c->exec));
        kube_log_event(&c->log, now_ms, KUBE_LOG_WARN, KUBE_EV_CREDENTIALS,
                       "%s; what it said last stays in use", c->said);
    }
}


/* Asks the plugin if that is due; KUBE_OK: there is what to log in with. */
static kube_rc_t
credentials_exec(kube_credentials_t *c, uint64_t now_ms, bool force)
{
    kube_rc_t  rc;

    c->exec_wanted = c->exec_wanted || force;
    rc = KUBE_IO;

    if (kube_exec_fd(c->exec) == -1
        && now_ms >= c->exec_next_ms
        && (!c->exec_said || c->exec_wanted || now_ms >= c->exec_renew_ms))
    {
        c->exec_wanted = false;
        rc = kube_exec_start(c->exec, now_ms);

        if (rc != KUBE_OK) {
            credentials_exec_failed(c, now_ms);
        }
    }

    if (c->exec_said) {
        return KUBE_OK;
    }

    if (kube_exec_fd(c->exec) != -1) {
        return KUBE_AGAIN;
    }

    (void) snprintf(c->why, sizeof(c->why), "%s", kube_exec_why(c->exec));
    c->remedy = kube_exec_remedy(c->exec);

    return rc;
}


bool
kube_credentials_poll(kube_credentials_t *credentials, uint64_t now_ms)
{
    kube_rc_t            rc;
    uint64_t             margin_ms;
    kube_str_t           token, certificate, key;
    kube_credentials_t  *c = credentials;
    kube_exec_result_t   result;

    if (c->exec == NULL || kube_exec_fd(c->exec) == -1) {
        return false;
    }

    rc = kube_exec_poll(c->exec, now_ms, &result);

    if (rc == KUBE_AGAIN) {
        return false;
    }

    token = certificate = key = KUBE_STR_NULL;

    if (rc != KUBE_OK
        || kube_str_dup(&c->alloc, result.token, &token) != KUBE_OK
        || kube_str_dup(&c->alloc, result.certificate, &certificate)
           != KUBE_OK
        || kube_str_dup(&c->alloc, result.key, &key) != KUBE_OK)
    {
        kube_secret_free(&c->alloc, &token);
        kube_secret_free(&c->alloc, &certificate);
        credentials_exec_failed(c, now_ms);

        return true;
    }

    credentials_replace(c, KUBE_CREDENTIAL_TOKEN, token,
                        KUBE_CREDENTIALS_TOKEN, &c->exec_changed);
    credentials_replace(c, KUBE_CREDENTIAL_CERTIFICATE, certificate,
                        KUBE_CREDENTIALS_CERTIFICATE, &c->exec_changed);
    credentials_replace(c, KUBE_CREDENTIAL_KEY, key,
                        KUBE_CREDENTIALS_CERTIFICATE, &c->exec_changed);

    margin_ms = result.lifetime_ms / 10 < 60000 ? result.lifetime_ms / 10
                                                : 60000;

    c->exec_said = true;
    c->exec_fails = 0;
    c->exec_next_ms = now_ms + CREDENTIALS_EXEC_FIRST_MS;
    c->exec_renew_ms = (result.lifetime_ms != KUBE_NEVER)
                       ? now_ms + result.lifetime_ms - margin_ms : KUBE_NEVER;

    return true;
}


int
kube_credentials_fd(const kube_credentials_t *credentials)
{
    return credentials->exec != NULL ? kube_exec_fd(credentials->exec) : -1;
}


uint64_t
kube_credentials_due(const kube_credentials_t *credentials)
{
    const kube_credentials_t  *c = credentials;

    if (c->exec == NULL) {
        return KUBE_NEVER;
    }

    if (kube_exec_fd(c->exec) != -1) {
        return kube_exec_deadline(c->exec);
    }

    if (!c->exec_said || c->exec_wanted || c->exec_renew_ms < c->exec_next_ms) {
        return c->exec_next_ms;
    }

    return c->exec_renew_ms;
}


kube_rc_t
kube_credentials_refresh(kube_credentials_t *credentials, uint64_t now_ms,
    bool force, unsigned *changed)
{
    unsigned             i;
    kube_rc_t            rc, rcs[KUBE_CREDENTIALS];
    kube_str_t           values[KUBE_CREDENTIALS];
    kube_credentials_t  *c = credentials;

    *changed = c->exec_changed;
    c->exec_changed = 0;

    if (c->complete && !force && now_ms < c->due_ms
        && now_ms < kube_credentials_due(c))
    {
        return KUBE_OK;
    }

    c->why[0] = '\0';
    c->remedy = NULL;
    rc = (c->exec != NULL) ? credentials_exec(c, now_ms, force) : KUBE_OK;

    for (i = 0; i < KUBE_CREDENTIALS; i++) {
        rcs[i] = credentials_load(c, (kube_credential_t) i, now_ms,
                                  &values[i]);
        rc = (rc == KUBE_OK) ? rcs[i] : rc;
    }

    /* a new certificate with an old key, or the reverse, fits nobody */

    if (rcs[KUBE_CREDENTIAL_KEY] != KUBE_OK) {
        rcs[KUBE_CREDENTIAL_CERTIFICATE] = rcs[KUBE_CREDENTIAL_KEY];
    }

    rcs[KUBE_CREDENTIAL_KEY] = rcs[KUBE_CREDENTIAL_CERTIFICATE];

    for (i = 0; i < KUBE_CREDENTIALS; i++) {

        /* what a plugin said is in place already */

        if (rcs[i] != KUBE_OK
            || (c->exec != NULL && i != KUBE_CREDENTIAL_CA))
        {
            kube_secret_free(&c->alloc, &values[i]);
            continue;
        }

        credentials_replace(c, (kube_credential_t) i, values[i],
                            i == KUBE_CREDENTIAL_KEY
                            ? KUBE_CREDENTIALS_CERTIFICATE : 1u << i, changed);
    }

    if (c->why[0] == '\0' && c->exec_fails == 0) {
        c->said[0] = '\0';
    }

    c->due_ms = now_ms + KUBE_CREDENTIALS_PERIOD_MS;
    c->complete = (c->complete || rc == KUBE_OK);

    /* once complete, an older value stands in for what failed now */

    return c->complete ? KUBE_OK : rc;
}


static bool
credentials_names_ca(const kube_config_t *config)
{
    return config->ca.path.len != 0 || config->ca.data.len != 0;
}


const char *
kube_credentials_why(const kube_credentials_t *credentials)
{
    return credentials->why;
}


const char *
kube_credentials_remedy(const kube_credentials_t *credentials, kube_rc_t rc)
{
    const kube_config_t  *config;

    if (rc != KUBE_TLS) {
        return (rc == KUBE_NO_CREDENTIALS) ? credentials->remedy : NULL;
    }

    config = credentials->config;

    if (credentials_names_ca(config) || config->tls_verify_off) {
        return NULL;
    }

    /* the system may have no CAs at all, and seldom has a cluster's */

    return "name the server's CA, for none is named, or install the system's "
           "(ca-certificates); compare the server's name and its port with "
           "its certificate, and ours with its key";
}


size_t
kube_credentials_ca_marks(const kube_credentials_t *credentials,
    uint64_t marks[KUBE_CA_MARKS_MAX])
{
    size_t                i;
    const char           *instead;
    const kube_config_t  *config;

    config = credentials->config;

    if (credentials_names_ca(config)) {
        return kube_ca_marks(credentials->now[KUBE_CREDENTIAL_CA], marks);
    }

    instead = "plain";

    for (i = 0; i < config->servers_n; i++) {
        if (strncmp(config->servers[i].data, "https:", 6) == 0) {
            instead = config->tls_verify_off ? "unverified" : "system";
        }
    }

    marks[0] = kube_ca_mark(instead);

    return 1;
}


kube_str_t
kube_credentials_get(const kube_credentials_t *credentials,
    kube_credential_t which)
{
    return credentials->now[which];
}

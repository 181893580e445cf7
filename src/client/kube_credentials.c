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

#include <string.h>

#include "kube_credentials.h"
#include "kube_secret_private.h"


typedef struct {
    kube_str_t  token;
    kube_str_t  ca;
    kube_str_t  certificate;
    kube_str_t  key;
} credentials_set_t;

struct kube_credentials_s {
    kube_alloc_t          alloc;
    const kube_config_t  *config;
    kube_log_t            log;
    credentials_set_t     now;
    uint64_t              due_ms;
    bool                  complete;   /* nothing that is needed is missing */
};

/* Where a credential comes from and what it must look like. */
typedef struct {
    const char           *name;       /* for the log */
    const kube_source_t  *source;
    bool                  file_wins;
    size_t                max;
    bool                (*check)(kube_str_t value);
} credentials_want_t;


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

    return c;
}


void
kube_credentials_destroy(kube_credentials_t *credentials)
{
    kube_alloc_t  alloc;

    if (credentials == NULL) {
        return;
    }

    alloc = credentials->alloc;

    kube_secret_free(&alloc, &credentials->now.token);
    kube_secret_free(&alloc, &credentials->now.ca);
    kube_secret_free(&alloc, &credentials->now.certificate);
    kube_secret_free(&alloc, &credentials->now.key);

    kube_free(&alloc, credentials);
}


static void
credentials_report(kube_credentials_t *c, const credentials_want_t *want,
    uint64_t now_ms, const char *what)
{
    char        path[256];
    kube_str_t  from;

    from = want->source->path.len != 0 ? want->source->path
                                       : KUBE_STR("(inline)");

    (void) kube_str_escape(path, sizeof(path), from);

    kube_log_event(&c->log, now_ms, c->complete ? KUBE_LOG_WARN
                                                : KUBE_LOG_ERROR,
                   KUBE_EV_CREDENTIALS,
                   "%s \"%s\": %s%s", want->name, path, what,
                   c->complete ? "; the last good one stays in use" : "");
}


/* *out is new memory; empty where the source names nothing. */
static kube_rc_t
credentials_load(kube_credentials_t *c, const credentials_want_t *want,
    uint64_t now_ms, kube_str_t *out)
{
    kube_rc_t             rc;
    kube_str_t            raw, value;
    const char           *what;
    const kube_source_t  *s;

    *out = KUBE_STR_NULL;

    s = want->source;
    raw = KUBE_STR_NULL;

    if (s->path.len != 0 && (s->data.len == 0 || want->file_wins)) {
        rc = kube_secret_read(&c->alloc, s->path.data, want->max, &raw, &what);
        if (rc != KUBE_OK) {
            credentials_report(c, want, now_ms, what);
            return rc;
        }

        value = kube_secret_trim(raw);

    } else if (s->data.len != 0) {
        value = s->data;

    } else {
        return KUBE_OK;
    }

    if (want->check(value)) {
        rc = kube_str_dup(&c->alloc, value, out);

    } else {
        credentials_report(c, want, now_ms, value.len == 0 ? "it is empty"
                                            : "it is malformed");
        rc = KUBE_INVALID;
    }

    kube_secret_free(&c->alloc, &raw);

    return rc;
}


/* Puts value in the place of *old; true if they differ. */
static bool
credentials_replace(kube_credentials_t *c, kube_str_t *old, kube_str_t value)
{
    bool  differs;

    differs = !kube_str_eq(*old, value);

    kube_secret_free(&c->alloc, old);
    *old = value;

    return differs;
}


/* A credential of one file: into slot, with its bit where it differs. */
static kube_rc_t
credentials_refresh_one(kube_credentials_t *c, const credentials_want_t *want,
    kube_str_t *slot, unsigned bit, uint64_t now_ms, unsigned *changed)
{
    kube_rc_t   rc;
    kube_str_t  value;

    rc = credentials_load(c, want, now_ms, &value);

    if (rc == KUBE_OK && credentials_replace(c, slot, value)) {
        *changed |= bit;
    }

    return rc;
}


static kube_rc_t
credentials_refresh_pair(kube_credentials_t *c, uint64_t now_ms,
    unsigned *changed)
{
    bool                differs;
    kube_rc_t           rc;
    kube_str_t          certificate, key;
    credentials_want_t  want = {
        "client certificate", &c->config->certificate, false,
        KUBE_CREDENTIAL_BYTES_MAX, kube_secret_is_pem
    };

    rc = credentials_load(c, &want, now_ms, &certificate);
    if (rc != KUBE_OK) {
        return rc;
    }

    want.name = "client certificate's key";
    want.source = &c->config->key;

    rc = credentials_load(c, &want, now_ms, &key);
    if (rc != KUBE_OK) {
        kube_secret_free(&c->alloc, &certificate);
        return rc;
    }

    differs = credentials_replace(c, &c->now.certificate, certificate);
    differs |= credentials_replace(c, &c->now.key, key);

    if (differs) {
        *changed |= KUBE_CREDENTIALS_CERTIFICATE;
    }

    return KUBE_OK;
}


kube_rc_t
kube_credentials_refresh(kube_credentials_t *credentials, uint64_t now_ms,
    bool force, unsigned *changed)
{
    kube_rc_t           rc, token, ca, pair;
    credentials_want_t  want_token = {
        "token", &credentials->config->token, true, KUBE_TOKEN_BYTES_MAX,
        kube_secret_is_token
    };
    credentials_want_t  want_ca = {
        "CA", &credentials->config->ca, false, KUBE_CREDENTIAL_BYTES_MAX,
        kube_secret_is_pem
    };

    *changed = 0;

    if (credentials->complete && !force && now_ms < credentials->due_ms) {
        return KUBE_OK;
    }

    token = credentials_refresh_one(credentials, &want_token,
                                    &credentials->now.token,
                                    KUBE_CREDENTIALS_TOKEN, now_ms, changed);
    ca = credentials_refresh_one(credentials, &want_ca, &credentials->now.ca,
                                 KUBE_CREDENTIALS_CA, now_ms, changed);
    pair = credentials_refresh_pair(credentials, now_ms, changed);

    rc = token != KUBE_OK ? token : ca != KUBE_OK ? ca : pair;

    credentials->due_ms = now_ms + KUBE_CREDENTIALS_PERIOD_MS;

    if (rc == KUBE_OK) {
        credentials->complete = true;
    }

    /* once complete, an older value stands in for what failed now */

    return credentials->complete ? KUBE_OK : rc;
}


kube_str_t
kube_credentials_token(const kube_credentials_t *credentials)
{
    return credentials->now.token;
}


kube_str_t
kube_credentials_ca(const kube_credentials_t *credentials)
{
    return credentials->now.ca;
}


kube_str_t
kube_credentials_certificate(const kube_credentials_t *c)
{
    return c->now.certificate;
}


kube_str_t
kube_credentials_key(const kube_credentials_t *credentials)
{
    return credentials->now.key;
}

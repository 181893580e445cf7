/*
 * kube_config - who we talk to and as whom.
 *
 * The structure, its checks and the in-cluster source; kubeconfig files are
 * read in kube_kubeconfig.c.  No credential is read here.  Every string is
 * owned by the structure and zeroed when it goes, secret or not.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kube_config.h"
#include "kube_secret_private.h"
#include "kube_url_private.h"


/* Every string of a kube_config_t but the servers. */
static const size_t  config_strings[] = {
    offsetof(kube_config_t, ca.path),
    offsetof(kube_config_t, ca.data),
    offsetof(kube_config_t, certificate.path),
    offsetof(kube_config_t, certificate.data),
    offsetof(kube_config_t, key.path),
    offsetof(kube_config_t, key.data),
    offsetof(kube_config_t, token.path),
    offsetof(kube_config_t, token.data),
    offsetof(kube_config_t, tls_server_name),
    offsetof(kube_config_t, proxy_url)
};


static kube_rc_t
config_error(kube_error_t *error, kube_rc_t rc, const char *what)
{
    if (error != NULL) {
        error->rc = rc;
        error->what = what;
        error->offset = 0;
    }

    return rc;
}


void
kube_config_init(kube_config_t *config, const kube_alloc_t *alloc)
{
    memset(config, 0, sizeof(kube_config_t));

    config->alloc = *alloc;
}


void
kube_config_done(kube_config_t *config)
{
    size_t  i;

    for (i = 0; i < config->servers_n; i++) {
        kube_secret_free(&config->alloc, &config->servers[i]);
    }

    config->servers_n = 0;

    for (i = 0; i < sizeof(config_strings) / sizeof(config_strings[0]); i++) {
        kube_secret_free(&config->alloc, (kube_str_t *) (void *)
                                     ((char *) config + config_strings[i]));
    }

    config->tls_verify_off = false;
}


kube_rc_t
kube_config_set(kube_config_t *config, kube_str_t *field, kube_str_t value)
{
    kube_rc_t   rc;
    kube_str_t  copy;

    copy = KUBE_STR_NULL;

    if (value.len != 0) {
        rc = kube_str_dup(&config->alloc, value, &copy);
        if (rc != KUBE_OK) {
            return rc;
        }
    }

    kube_secret_free(&config->alloc, field);
    *field = copy;

    return KUBE_OK;
}


kube_rc_t
kube_config_add_server(kube_config_t *config, kube_str_t url,
    kube_error_t *error)
{
    char         text[KUBE_URL_LEN_MAX];
    int          n;
    kube_rc_t    rc;
    kube_str_t   copy;
    kube_url_t   parts;
    const char  *what;

    if (config->servers_n == KUBE_SERVERS_MAX) {
        return config_error(error, KUBE_TOO_LARGE,
                            "more than 8 addresses of one API server");
    }

    what = "";

    rc = kube_url_parse(url, &parts, &what);
    if (rc != KUBE_OK) {
        return config_error(error, rc, what);
    }

    if (parts.path.len != 0) {
        n = snprintf(text, sizeof(text), "http://unix:%.*s",
                     (int) parts.path.len, parts.path.data);

    } else {
        n = snprintf(text, sizeof(text), "%s://%.*s%.*s",
                     parts.tls ? "https" : "http",
                     (int) parts.authority.len, parts.authority.data,
                     (int) parts.prefix.len,
                     parts.prefix.len ? parts.prefix.data : "");
    }

    rc = kube_str_dup(&config->alloc, (kube_str_t) { text, (size_t) n }, &copy);
    if (rc != KUBE_OK) {
        return config_error(error, rc, "out of memory");
    }

    config->servers[config->servers_n++] = copy;

    return KUBE_OK;
}


static kube_rc_t
config_set_path(kube_config_t *config, kube_str_t *field, const char *dir,
    const char *name, kube_error_t *error)
{
    char  path[KUBE_URL_LEN_MAX];
    int   n;

    n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    if (n < 0 || (size_t) n >= sizeof(path)) {
        return config_error(error, KUBE_TOO_LARGE,
                            "the service account's path is too long");
    }

    if (kube_config_set(config, field, kube_str(path)) != KUBE_OK) {
        return config_error(error, KUBE_NOMEM, "out of memory");
    }

    return KUBE_OK;
}


/* Fills an empty config; what is there after a failure is the caller's. */
static kube_rc_t
config_fill_in_cluster(kube_config_t *config, const char *host,
    const char *port, const char *dir, kube_error_t *error)
{
    int        n;
    bool       bracket;
    char       url[KUBE_NAME_LEN_MAX + 32];
    kube_rc_t  rc;

    bracket = (strchr(host, ':') != NULL && host[0] != '[');

    n = snprintf(url, sizeof(url), "https://%s%s%s:%s",
                 bracket ? "[" : "", host, bracket ? "]" : "", port);

    if (n < 0 || (size_t) n >= sizeof(url) || strchr(host, '/') != NULL
        || strchr(port, '/') != NULL)
    {
        return config_error(error, KUBE_INVALID, "KUBERNETES_SERVICE_HOST or "
                            "KUBERNETES_SERVICE_PORT is no address");
    }

    rc = kube_config_add_server(config, kube_str(url), error);
    if (rc != KUBE_OK) {
        return rc;
    }

    rc = config_set_path(config, &config->ca.path, dir, "ca.crt", error);
    if (rc != KUBE_OK) {
        return rc;
    }

    return config_set_path(config, &config->token.path, dir, "token", error);
}


kube_rc_t
kube_config_in_cluster(kube_config_t *config, const char *host,
    const char *port, const char *dir, kube_error_t *error)
{
    kube_rc_t      rc;
    kube_config_t  filled;

    if (host == NULL || port == NULL || *host == '\0' || *port == '\0') {
        return config_error(error, KUBE_INVALID, "KUBERNETES_SERVICE_HOST and "
                            "KUBERNETES_SERVICE_PORT are not in the "
                            "environment: not in a pod");
    }

    kube_config_init(&filled, &config->alloc);

    rc = config_fill_in_cluster(&filled, host, port, dir, error);
    if (rc != KUBE_OK) {
        kube_config_done(&filled);
        return rc;
    }

    kube_config_done(config);
    *config = filled;

    return KUBE_OK;
}


static bool
config_has(const kube_source_t *source)
{
    return source->path.len != 0 || source->data.len != 0;
}


static bool
config_is_server_name(kube_str_t name)
{
    kube_addr_t  addr;

    return kube_url_is_host(name) || kube_addr_parse(name, &addr) == KUBE_OK;
}


static bool
config_is_proxy(kube_str_t url)
{
    size_t                    i, len;
    static const char *const  schemes[] = {
        "http://", "https://", "socks5://", "socks5h://"
    };

    if (url.len > KUBE_URL_LEN_MAX) {
        return false;
    }

    for (i = 0; i < url.len; i++) {
        if (url.data[i] <= 0x20 || url.data[i] >= 0x7f) {
            return false;
        }
    }

    for (i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        len = strlen(schemes[i]);

        if (url.len > len && strncasecmp(url.data, schemes[i], len) == 0) {
            return true;
        }
    }

    return false;
}


kube_rc_t
kube_config_check(const kube_config_t *config, kube_error_t *error)
{
    if (config->servers_n == 0) {
        return config_error(error, KUBE_INVALID, "no address of an API server");
    }

    if (config_has(&config->certificate) != config_has(&config->key)) {
        return config_error(error, KUBE_INVALID, "a client certificate needs "
                            "its key, and a key its certificate: give both");
    }

    if (config->tls_verify_off && config_has(&config->ca)) {
        return config_error(error, KUBE_INVALID, "a CA is given and "
                            "verification is off: remove one of them");
    }

    if (config->tls_server_name.len != 0
        && !config_is_server_name(config->tls_server_name))
    {
        return config_error(error, KUBE_INVALID, "the TLS server name is "
                            "neither a host name nor an address");
    }

    if (config->proxy_url.len != 0 && !config_is_proxy(config->proxy_url)) {
        return config_error(error, KUBE_INVALID, "a proxy's URL begins with "
                            "http://, https://, socks5:// or socks5h://");
    }

    return KUBE_OK;
}

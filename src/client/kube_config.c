/*
 * kube_config - who we talk to and as whom: the structure, the rules for
 * addresses, the checks, and the in-cluster source.
 *
 * Kubeconfig files are read in kube_kubeconfig.c, credentials nowhere here.
 * The structure owns its strings, which are zeroed before they are freed,
 * secret or not.  libcurl's URL parser takes addresses apart; that opens no
 * connection and keeps no state, so any process may call this.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <curl/curl.h>

#include "kube_config.h"
#include "kube_limits.h"
#include "kube_addr.h"
#include "kube_secret.h"


/* sockaddr_un.sun_path without its NUL */
#define KUBE_SOCKET_LEN_MAX  107

#define CONFIG_BAD_HOST                                                       \
    "the host is neither a name nor an address (IPv6 in brackets)"


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
    offsetof(kube_config_t, proxy_url),
    offsetof(kube_config_t, exec.command),
    offsetof(kube_config_t, exec.api_version),
    offsetof(kube_config_t, exec.install_hint)
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

    for (i = 0; i < config->exec.args_n; i++) {
        kube_secret_free(&config->alloc, &config->exec.args[i]);
    }

    for (i = 0; i < config->exec.env_n; i++) {
        kube_secret_free(&config->alloc, &config->exec.env[i]);
    }

    config->exec.args_n = 0;
    config->exec.env_n = 0;
    config->exec.cluster_info = false;
    config->tls_verify_off = false;
}


const char *
kube_config_unix_path(const char *server)
{
    return strncmp(server, "http://unix:", 12) == 0 ? server + 12 : NULL;
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


/* The parts of a URL that the rules for addresses look at. */
enum {
    SERVER_SCHEME = 0,
    SERVER_USER,
    SERVER_PASSWORD,
    SERVER_HOST,
    SERVER_PORT,
    SERVER_PATH,
    SERVER_QUERY,
    SERVER_FRAGMENT,
    SERVER_PARTS
};

static const CURLUPart  config_parts[SERVER_PARTS] = {
    CURLUPART_SCHEME, CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_HOST,
    CURLUPART_PORT, CURLUPART_PATH, CURLUPART_QUERY, CURLUPART_FRAGMENT
};


static bool
config_is_host_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}


/* A name that TLS and DNS can mean: letters, digits, "-", "_" and dots. */
static bool
config_is_host(kube_str_t host)
{
    size_t  i;

    if (host.len == 0 || host.len > KUBE_NAME_LEN_MAX || host.data[0] == '.'
        || host.data[0] == '-')
    {
        return false;
    }

    for (i = 0; i < host.len; i++) {
        if (!config_is_host_byte(host.data[i])
            || (i != 0 && host.data[i] == '.' && host.data[i - 1] == '.'))
        {
            return false;
        }
    }

    return true;
}


static bool
config_is_loopback(const kube_addr_t *addr)
{
    static const uint8_t  one[16] = { [15] = 1 };

    return addr->family == KUBE_FAMILY_IPV4
           ? addr->bytes[0] == 127 : memcmp(addr->bytes, one, 16) == 0;
}


/* A label that may be a part of an address: 1, 017, 0x7f. */
static bool
config_is_number(const char *label)
{
    return label[strspn(label, "0123456789")] == '\0'
           || strncasecmp(label, "0x", 2) == 0;
}


/* host is as libcurl prints it: an IPv6 address in brackets. */
static const char *
config_judge_host(const char *host, bool tls)
{
    bool         literal;
    kube_str_t   s;
    const char  *last;
    kube_addr_t  addr;

    s = kube_str(host);

    if (s.data[0] == '[') {
        s.data++;
        s.len -= 2;
    }

    literal = (kube_addr_parse(s, &addr) == KUBE_OK);

    if (!literal) {

        /* what ends in a number is an address to some and a name to others */

        last = strrchr(host, '.');
        last = (last != NULL) ? last + 1 : host;

        if (!config_is_host(s) || config_is_number(last)) {
            return CONFIG_BAD_HOST;
        }
    }

    if (tls
        || (literal && config_is_loopback(&addr))
        || (!literal && strcasecmp(host, "localhost") == 0))
    {
        return NULL;
    }

    return "http:// would send the token in clear: use https://, http:// is "
           "for loopback addresses and unix sockets";
}


static const char *
config_judge_path(const char *path)
{
    const char  *p;

    for (p = path; *p != '\0'; p++) {
        if (!config_is_host_byte(*p) && strchr("/~:+,;=", *p) == NULL) {
            return "the path holds a byte that is not allowed there";
        }

        if (p[0] == '/' && p[1] == '.') {
            return "no part of the path begins with a dot";
        }
    }

    return NULL;
}


/*
 * Returns what is wrong, or NULL.  server is the address as libcurl reads it,
 * which must be the one that was written: of "127.1", "0x7f.1" and
 * "https:///a" others may think differently.  An IPv6 address has several
 * spellings, all with one meaning.
 */
static const char *
config_judge_server(char *const part[SERVER_PARTS], const char *server,
    const char *text)
{
    size_t       len;
    const char  *what;

    if (part[SERVER_USER] != NULL || part[SERVER_PASSWORD] != NULL) {
        return "user and password do not belong in the URL";
    }

    if (part[SERVER_QUERY] != NULL || part[SERVER_FRAGMENT] != NULL) {
        return "no query and no fragment in the URL";
    }

    if (part[SERVER_PORT] != NULL && strcmp(part[SERVER_PORT], "0") == 0) {
        return "the port is not a number from 1 to 65535";
    }

    what = config_judge_host(part[SERVER_HOST],
                             strcmp(part[SERVER_SCHEME], "https") == 0);

    if (what == NULL) {
        what = config_judge_path(part[SERVER_PATH]);
    }

    len = strlen(server);

    if (what == NULL
        && part[SERVER_HOST][0] != '['
        && (strncasecmp(server, text, len) != 0
            || text[len + strspn(text + len, "/")] != '\0'))
    {
        return "the URL is not written as https://host[:port][/path]";
    }

    return what;
}


/* Of slashes in a row one is sent, as by client-go, which joins paths. */
static void
config_join_path(char *path)
{
    char  *p;

    for (p = path; *path != '\0'; path++) {
        if (path[0] != '/' || path[1] != '/') {
            *p++ = *path;
        }
    }

    *p = '\0';
}


/* Writes the address as libcurl reads it, without a slash at its end. */
static kube_rc_t
config_parse_server(const char *text, char *server, const char **what)
{
    char      *part[SERVER_PARTS];
    CURLU     *url;
    size_t     i, len;
    CURLUcode  code;

    if (strncasecmp(text, "https://", 8) != 0
        && strncasecmp(text, "http://", 7) != 0)
    {
        *what = "a URL begins with https:// (or http://, loopback only)";
        return KUBE_INVALID;
    }

    if (strchr(text, '%') != NULL) {
        *what = "no escapes (%) and no zones of addresses in the URL";
        return KUBE_INVALID;
    }

    memset(part, 0, sizeof(part));

    url = curl_url();
    code = (url != NULL) ? curl_url_set(url, CURLUPART_URL, text,
                                        CURLU_PATH_AS_IS)
                         : CURLUE_OUT_OF_MEMORY;

    for (i = 0; code == CURLUE_OK && i < SERVER_PARTS; i++) {

        /* a part that is not there is an error of its own, and no error */

        if (curl_url_get(url, config_parts[i], &part[i], 0)
            == CURLUE_OUT_OF_MEMORY)
        {
            code = CURLUE_OUT_OF_MEMORY;
        }
    }

    if (code == CURLUE_OK && part[SERVER_HOST] == NULL) {
        code = CURLUE_NO_HOST;
    }

    if (code == CURLUE_OK) {
        (void) snprintf(server, KUBE_URL_LEN_MAX, "%s://%s%s%s%s",
                        part[SERVER_SCHEME], part[SERVER_HOST],
                        part[SERVER_PORT] != NULL ? ":" : "",
                        part[SERVER_PORT] != NULL ? part[SERVER_PORT] : "",
                        part[SERVER_PATH]);

        for (len = strlen(server); server[len - 1] == '/'; len--) {
            server[len - 1] = '\0';
        }

        *what = config_judge_server(part, server, text);
        config_join_path(server + strlen(part[SERVER_SCHEME]) + 3);

    } else {
        *what = code == CURLUE_OUT_OF_MEMORY ? "out of memory"
                : code == CURLUE_BAD_PORT_NUMBER
                ? "the port is not a number from 1 to 65535"
                : CONFIG_BAD_HOST;
    }

    for (i = 0; i < SERVER_PARTS; i++) {
        curl_free(part[i]);
    }

    curl_url_cleanup(url);

    return code == CURLUE_OUT_OF_MEMORY ? KUBE_NOMEM
           : *what != NULL ? KUBE_INVALID : KUBE_OK;
}


kube_rc_t
kube_config_add_server(kube_config_t *config, kube_str_t url,
    kube_error_t *error)
{
    char         text[KUBE_URL_LEN_MAX], server[KUBE_URL_LEN_MAX];
    size_t       i;
    kube_rc_t    rc;
    const char  *what;

    if (config->servers_n == KUBE_SERVERS_MAX) {
        return config_error(error, KUBE_TOO_LARGE,
                            "more than 8 addresses of one API server");
    }

    if (url.len > KUBE_URL_LEN_MAX / 2) {
        return config_error(error, KUBE_TOO_LARGE, "the URL is too long");
    }

    for (i = 0; i < url.len; i++) {
        if (url.data[i] <= 0x20 || url.data[i] >= 0x7f) {
            return config_error(error, KUBE_INVALID,
                                "the URL holds a byte that is not allowed");
        }

        text[i] = url.data[i];
    }

    text[url.len] = '\0';

    if (strncasecmp(text, "http://unix:", 12) == 0) {

        if (url.len < 14 || url.len - 12 > KUBE_SOCKET_LEN_MAX
            || text[12] != '/')
        {
            return config_error(error, KUBE_INVALID, "a unix socket is "
                                "written http://unix:/path, 107 bytes at "
                                "most");
        }

        memcpy(text, "http://unix:", 12);
        memcpy(server, text, url.len + 1);

    } else {
        rc = config_parse_server(text, server, &what);
        if (rc != KUBE_OK) {
            return config_error(error, rc, what);
        }
    }

    rc = kube_str_dup(&config->alloc, kube_str(server),
                      &config->servers[config->servers_n]);
    if (rc != KUBE_OK) {
        return config_error(error, rc, "out of memory");
    }

    config->servers_n++;

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

    return config_is_host(name) || kube_addr_parse(name, &addr) == KUBE_OK;
}


/*
 * Whether libcurl will read a proxy's URL.  What it cannot it would quote in
 * its message, password and all; and it goes without the proxy where user or
 * password, decoded, hold a control byte.
 */
static kube_rc_t
config_read_proxy(const char *text)
{
    char      *part;
    CURLU     *url;
    size_t     i;
    CURLUcode  code;

    static const CURLUPart  parts[] = {
        CURLUPART_HOST, CURLUPART_USER, CURLUPART_PASSWORD
    };

    url = curl_url();
    code = (url != NULL) ? curl_url_set(url, CURLUPART_URL, text,
                                        CURLU_NON_SUPPORT_SCHEME)
                         : CURLUE_OUT_OF_MEMORY;

    for (i = 0; code == CURLUE_OK && i < sizeof(parts) / sizeof(parts[0]); i++)
    {
        part = NULL;
        code = curl_url_get(url, parts[i], &part, CURLU_URLDECODE);
        curl_free(part);

        if (code == CURLUE_NO_USER || code == CURLUE_NO_PASSWORD) {
            code = CURLUE_OK;
        }
    }

    curl_url_cleanup(url);

    return code == CURLUE_OK ? KUBE_OK
           : code == CURLUE_OUT_OF_MEMORY ? KUBE_NOMEM : KUBE_INVALID;
}


/* The schemes of client-go (clientcmd, parseProxyURL), and socks5h. */
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


static kube_rc_t
config_check_proxy(kube_str_t url, kube_error_t *error)
{
    kube_rc_t  rc;

    if (!config_is_proxy(url)) {
        return config_error(error, KUBE_INVALID, "a proxy's URL begins with "
                            "http://, https://, socks5:// or socks5h://");
    }

    rc = config_read_proxy(url.data);

    return rc == KUBE_OK ? KUBE_OK
           : config_error(error, rc, rc == KUBE_NOMEM ? "out of memory"
                          : "the proxy's URL is not scheme://[user:password@]"
                            "host[:port]; within user and password \"@\" is "
                            "written %40, \"/\" %2F and \":\" %3A");
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

    if (config->exec.command.len != 0
        && (config_has(&config->token) || config_has(&config->certificate)))
    {
        return config_error(error, KUBE_INVALID, "a user logs in with exec, or "
                            "with a token or certificate, not with both");
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

    return config->proxy_url.len != 0
           ? config_check_proxy(config->proxy_url, error) : KUBE_OK;
}

/*
 * kube_exchange_options - how libcurl is told what an exchange is to be.
 *
 * Every option is set for every exchange: nothing is left to libcurl's
 * defaults or to the environment.  It knows nothing of answers and runs
 * nothing; kube_exchange.c alone calls it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "kube_exchange.h"
#include "kube_limits.h"


typedef struct {
    CURLoption  option;
    long        value;
} options_number_t;

static const options_number_t  options_numbers[] = {
    { CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
    { CURLOPT_HTTP09_ALLOWED, 0 },
    { CURLOPT_HTTPGET, 1 },
    { CURLOPT_FOLLOWLOCATION, 0 },
    { CURLOPT_SUPPRESS_CONNECT_HEADERS, 1 },
    { CURLOPT_HEADEROPT, CURLHEADER_SEPARATE },    /* no token to a proxy */
    { CURLOPT_BUFFERSIZE, KUBE_EXCHANGE_BUFFER_BYTES },
    { CURLOPT_NOPROGRESS, 1 },
    { CURLOPT_TCP_NODELAY, 1 },

    /* libcurl offers a SOCKS5 proxy GSSAPI, which it cannot speak to the end:
       one that picks it would be of no use */
    { CURLOPT_SOCKS5_AUTH, (long) CURLAUTH_BASIC },

    /* where a name leads now: connections are few, and its old address may be
       what has failed */
    { CURLOPT_DNS_CACHE_TIMEOUT, 0 },

    /* the host's signals and its exit must not wait for libcurl */
    { CURLOPT_NOSIGNAL, 1 },
    { CURLOPT_QUICK_EXIT, 1 },

    { CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },

    /*
     * A resumed session would carry on with the CA and the certificate of
     * yesterday; connections are too few for its cost to matter.
     */
    { CURLOPT_SSL_SESSIONID_CACHE, 0 },

    /* the system's CAs, if none is given: else a rotation shows in 24 h */
    { CURLOPT_CA_CACHE_TIMEOUT, 0 }
};


/* Once an option has failed the others are not tried. */

static void
options_long(kube_exchange_t *e, CURLoption option, long value)
{
    if (e->setup == CURLE_OK) {
        e->setup = curl_easy_setopt(e->easy, option, value);
    }
}


static void
options_pointer(kube_exchange_t *e, CURLoption option, const void *value)
{
    if (e->setup == CURLE_OK) {
        e->setup = curl_easy_setopt(e->easy, option, value);
    }
}


static void
options_blob(kube_exchange_t *e, CURLoption option, kube_str_t value)
{
    struct curl_blob  blob;

    if (value.len != 0) {
        blob.data = (char *) (uintptr_t) value.data;
        blob.len = value.len;
        blob.flags = CURL_BLOB_COPY;

        options_pointer(e, option, &blob);
    }
}


static void
options_header(kube_exchange_t *e, const char *name, kube_str_t value)
{
    char               *line;
    size_t              len, size;
    struct curl_slist  *list;

    if (e->setup != CURLE_OK || value.len == 0) {
        return;
    }

    e->setup = CURLE_OUT_OF_MEMORY;

    len = strlen(name);
    size = len + value.len + 1;

    line = kube_alloc(&e->env->alloc, size);
    if (line == NULL) {
        return;
    }

    memcpy(line, name, len);
    memcpy(line + len, value.data, value.len);
    line[size - 1] = '\0';

    list = curl_slist_append(e->headers, line);

    explicit_bzero(line, size);
    kube_free(&e->env->alloc, line);

    if (list != NULL) {
        e->headers = list;
        e->setup = CURLE_OK;
    }
}


/*
 * With a TLS server name the URL bears that name, for SNI and verification
 * follow the URL, and CONNECT_TO leads to the real address; the Host header
 * stays what the configuration says, as client-go's does.
 */
static void
options_server_name(kube_exchange_t *e, kube_str_t name, kube_str_t authority)
{
    bool   v6;
    char  *host, *port, text[2 * KUBE_NAME_LEN_MAX];

    host = NULL;
    port = NULL;
    e->setup = CURLE_OUT_OF_MEMORY;    /* until the end */

    if (curl_url_get(e->url, CURLUPART_HOST, &host, 0) == CURLUE_OK
        && curl_url_get(e->url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT)
           == CURLUE_OK)
    {
        (void) snprintf(text, sizeof(text), "::%s:%s", host, port);
        e->connect_to = curl_slist_append(NULL, text);
    }

    curl_free(host);
    curl_free(port);

    v6 = (memchr(name.data, ':', name.len) != NULL);

    (void) snprintf(text, sizeof(text), "%s%.*s%s", v6 ? "[" : "",
                    (int) name.len, name.data, v6 ? "]" : "");

    if (e->connect_to != NULL
        && curl_url_set(e->url, CURLUPART_HOST, text, 0) == CURLUE_OK)
    {
        e->setup = CURLE_OK;
    }

    options_pointer(e, CURLOPT_CONNECT_TO, e->connect_to);
    options_header(e, "Host: ", authority);
}


/*
 * A proxy's URL as Go reads it: that of a socks5:// finds the server by its
 * name, which libcurl calls socks5h, and its path says nothing, which at
 * "localhost" would be that of a unix socket; that of an http:// without a port
 * has port 80, which would be 1080.
 */
static void
options_proxy(kube_exchange_t *e, kube_str_t url)
{
    char  text[KUBE_URL_LEN_MAX + 8];

    if (strncasecmp(url.data, "socks5://", 9) == 0) {
        (void) snprintf(text, sizeof(text), "socks5h://%.*s",
                        (int) strcspn(url.data + 9, "/?#"), url.data + 9);
        options_pointer(e, CURLOPT_PROXY, text);
        explicit_bzero(text, sizeof(text));

    } else {
        options_pointer(e, CURLOPT_PROXY, url.data);
    }

    options_long(e, CURLOPT_PROXYPORT,
                 strncasecmp(url.data, "http://", 7) == 0 ? 80 : 0);
}


/* Where it goes: the URL, and the unix socket or the proxy on the way. */
static void
options_url(kube_exchange_t *e, const char *path)
{
    int                   n;
    char                  text[2 * KUBE_URL_LEN_MAX];
    const char           *server, *socket;
    const kube_config_t  *config = e->env->conf.config;

    server = config->servers[e->server].data;
    socket = kube_config_unix_path(server);
    e->tls = (strncmp(server, "https://", 8) == 0);

    if (socket != NULL) {
        server = "http://localhost";
    }

    e->direct = (socket == NULL && !(e->tls && config->proxy_url.len != 0));

    n = snprintf(text, sizeof(text), "%s%s", server, path);

    if (e->setup != CURLE_OK) {
        return;
    }

    if (n < 0 || n > KUBE_URL_LEN_MAX) {
        e->setup = CURLE_URL_MALFORMAT;
        return;
    }

    e->url = curl_url();

    if (e->url == NULL
        || curl_url_set(e->url, CURLUPART_URL, text, CURLU_PATH_AS_IS)
           != CURLUE_OK)
    {
        e->setup = CURLE_OUT_OF_MEMORY;
        return;
    }

    if (e->tls && config->tls_server_name.len != 0) {
        options_server_name(e, config->tls_server_name,
                            (kube_str_t) { server + 8,
                                           strcspn(server + 8, "/") });
    }

    options_pointer(e, CURLOPT_CURLU, e->url);
    options_pointer(e, CURLOPT_UNIX_SOCKET_PATH, socket);
    options_pointer(e, CURLOPT_PROTOCOLS_STR, "http,https");

    /*
     * libcurl would take both from the environment if they were not set.  A
     * server on this machine (http://) is not behind a proxy.
     */

    options_pointer(e, CURLOPT_NOPROXY, "");

    if (e->tls && config->proxy_url.len != 0) {
        options_proxy(e, config->proxy_url);

    } else {
        options_pointer(e, CURLOPT_PROXY, "");
    }
}


static void
options_tls(kube_exchange_t *e)
{
    long                       verify;
    kube_str_t                 ca;
    const kube_config_t       *config = e->env->conf.config;
    const kube_credentials_t  *c = e->env->conf.credentials;

    verify = config->tls_verify_off ? 0 : 1;
    ca = kube_credentials_get(c, KUBE_CREDENTIAL_CA);

    /* the system's CAs must not stand in for one that could not be read */

    if (ca.len == 0 && (config->ca.path.len != 0 || config->ca.data.len != 0)) {
        e->setup = CURLE_SSL_CACERT_BADFILE;
        return;
    }

    options_long(e, CURLOPT_SSL_VERIFYPEER, verify);
    options_long(e, CURLOPT_SSL_VERIFYHOST, verify * 2);

    if (ca.len != 0) {

        /* a path of trusted CAs would count beside the CA that is given */

        options_pointer(e, CURLOPT_CAINFO, NULL);
        options_pointer(e, CURLOPT_CAPATH, NULL);
        options_blob(e, CURLOPT_CAINFO_BLOB, ca);
    }

    options_pointer(e, CURLOPT_SSLCERTTYPE, "PEM");
    options_pointer(e, CURLOPT_SSLKEYTYPE, "PEM");
    options_blob(e, CURLOPT_SSLCERT_BLOB,
                 kube_credentials_get(c, KUBE_CREDENTIAL_CERTIFICATE));
    options_blob(e, CURLOPT_SSLKEY_BLOB,
                 kube_credentials_get(c, KUBE_CREDENTIAL_KEY));
}


/*
 * libcurl keeps a connection only for a transfer with the same CA and client
 * certificate; the lifetime makes sure whatever its version compares.
 */
static void
options_freshness(kube_exchange_t *e)
{
    uint64_t  age_s;

    if (e->env->changed_ms == KUBE_NEVER) {
        return;
    }

    age_s = (e->env->now_ms - e->env->changed_ms) / 1000;

    /* both ages are cut to seconds: one second less is on the safe side */

    if (age_s < 2) {
        options_long(e, CURLOPT_FRESH_CONNECT, 1);

    } else {
        options_long(e, CURLOPT_MAXLIFETIME_CONN,
                     age_s < 86400 ? (long) age_s - 1 : 86400);
    }
}


void
kube_exchange_set_options(kube_exchange_t *exchange, const char *path)
{
    size_t            i;
    kube_exchange_t  *e = exchange;

    for (i = 0; i < sizeof(options_numbers) / sizeof(options_numbers[0]); i++)
    {
        options_long(e, options_numbers[i].option, options_numbers[i].value);
    }

    options_long(e, CURLOPT_CONNECTTIMEOUT_MS,
                 (long) e->env->conf.connect_timeout_ms);
    options_pointer(e, CURLOPT_USERAGENT, e->env->agent);

    options_url(e, path);

    if (e->tls) {
        options_tls(e);
    }

    options_freshness(e);

    options_header(e, "Accept: ", kube_str(e->accept));
    options_header(e, "Accept-Encoding: ", KUBE_STR("identity"));
    options_header(e, "Authorization: Bearer ",
                   kube_credentials_get(e->env->conf.credentials,
                                        KUBE_CREDENTIAL_TOKEN));
    options_pointer(e, CURLOPT_HTTPHEADER, e->headers);
}

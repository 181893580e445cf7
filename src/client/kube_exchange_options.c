/*
 * kube_exchange_options - how libcurl is told what an exchange is to be.
 *
 * Every option is set for every exchange: nothing is left to libcurl's
 * defaults or to the environment.  It knows nothing of answers and runs
 * nothing.  For kube_exchange.c only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "kube_transport_private.h"


/* A dead peer is noticed in 15 + 3 x 5 s; kubelet and Go take 30 to 45. */
#define KUBE_EXCHANGE_KEEPIDLE_S       15L
#define KUBE_EXCHANGE_KEEPINTVL_S      5L
#define KUBE_EXCHANGE_KEEPCNT          3
#define KUBE_EXCHANGE_USER_TIMEOUT_MS  30000


typedef struct {
    CURLoption   option;
    long         value;
} exchange_number_t;

typedef struct {
    CURLoption   option;
    const char  *value;
} exchange_text_t;

typedef struct {
    CURLoption   option;
    kube_str_t   value;
} exchange_blob_t;


static const exchange_number_t  exchange_numbers[] = {
    { CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
    { CURLOPT_HTTP09_ALLOWED, 0 },
    { CURLOPT_HTTPGET, 1 },
    { CURLOPT_FOLLOWLOCATION, 0 },
    { CURLOPT_DISALLOW_USERNAME_IN_URL, 1 },
    { CURLOPT_PATH_AS_IS, 1 },
    { CURLOPT_SUPPRESS_CONNECT_HEADERS, 1 },
    { CURLOPT_HEADEROPT, CURLHEADER_SEPARATE },    /* no token to a proxy */
    { CURLOPT_BUFFERSIZE, KUBE_EXCHANGE_BUFFER_BYTES },
    { CURLOPT_NOPROGRESS, 1 },

    /* the host's signals and its exit are not ours to delay */
    { CURLOPT_NOSIGNAL, 1 },
    { CURLOPT_QUICK_EXIT, 1 },

    { CURLOPT_TCP_NODELAY, 1 },
    { CURLOPT_TCP_KEEPALIVE, 1 },
    { CURLOPT_TCP_KEEPIDLE, KUBE_EXCHANGE_KEEPIDLE_S },
    { CURLOPT_TCP_KEEPINTVL, KUBE_EXCHANGE_KEEPINTVL_S },

    { CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },

    /*
     * A resumed session would carry on with the CA and the certificate of
     * yesterday; connections are too few for it to matter.
     */
    { CURLOPT_SSL_SESSIONID_CACHE, 0 },

    /* the system's CAs, where none is given: else a rotation shows in 24 h */
    { CURLOPT_CA_CACHE_TIMEOUT, 0 }
};


/* What libcurl has no option for.  A failure here is not worth a failure. */
static int
exchange_socket_cb(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    int        domain, value;
    socklen_t  len;

    (void) arg;

    len = sizeof(domain);

    if (purpose != CURLSOCKTYPE_IPCXN
        || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == -1
        || (domain != AF_INET && domain != AF_INET6))
    {
        return CURL_SOCKOPT_OK;
    }

    value = KUBE_EXCHANGE_KEEPCNT;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &value, sizeof(value));

    value = KUBE_EXCHANGE_USER_TIMEOUT_MS;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, sizeof(value));

    return CURL_SOCKOPT_OK;
}


static CURLcode
exchange_set_numbers(kube_exchange_t *e)
{
    size_t                    i, n;
    CURLcode                  code;
    const exchange_number_t  *number;

    n = sizeof(exchange_numbers) / sizeof(exchange_numbers[0]);

    for (i = 0; i < n; i++) {
        number = &exchange_numbers[i];

        code = curl_easy_setopt(e->easy, number->option, number->value);
        if (code != CURLE_OK) {
            return code;
        }
    }

    return CURLE_OK;
}


static CURLcode
exchange_set_texts(kube_exchange_t *e, const exchange_text_t *texts, size_t n)
{
    size_t    i;
    CURLcode  code;

    for (i = 0; i < n; i++) {
        code = curl_easy_setopt(e->easy, texts[i].option, texts[i].value);
        if (code != CURLE_OK) {
            return code;
        }
    }

    return CURLE_OK;
}


/* "host:port", an IPv6 address in brackets; false: it does not fit. */
static bool
exchange_authority(char *out, size_t size, kube_str_t host, unsigned port)
{
    int   n;
    bool  v6;

    v6 = (memchr(host.data, ':', host.len) != NULL);

    n = snprintf(out, size, "%s%.*s%s:%u", v6 ? "[" : "", (int) host.len,
                 host.data, v6 ? "]" : "", port);

    return n > 0 && (size_t) n < size;
}


/*
 * With a TLS server name the URL bears that name, for SNI and verification
 * follow the URL, and CONNECT_TO leads to the real address; the Host header
 * stays what the configuration says, as client-go's does.
 */
static CURLcode
exchange_set_connect_to(kube_exchange_t *e, const char *named,
    const kube_url_t *url)
{
    int   n;
    char  real[320], text[640];

    if (!exchange_authority(real, sizeof(real), url->host, url->port)) {
        return CURLE_URL_MALFORMAT;
    }

    n = snprintf(text, sizeof(text), "%s:%s", named, real);
    if (n < 0 || (size_t) n >= sizeof(text)) {
        return CURLE_URL_MALFORMAT;
    }

    e->connect_to = curl_slist_append(NULL, text);
    if (e->connect_to == NULL) {
        return CURLE_OUT_OF_MEMORY;
    }

    return curl_easy_setopt(e->easy, CURLOPT_CONNECT_TO, e->connect_to);
}


static CURLcode
exchange_set_url(kube_exchange_t *e, const kube_url_t *url, const char *path)
{
    int         n;
    char        named[320], text[2 * KUBE_URL_LEN_MAX];
    CURLcode    code;
    kube_str_t  authority, name;

    authority = url->authority;
    name = e->transport->conf.config->tls_server_name;

    if (url->tls && name.len != 0) {
        if (!exchange_authority(named, sizeof(named), name, url->port)) {
            return CURLE_URL_MALFORMAT;
        }

        code = exchange_set_connect_to(e, named, url);
        if (code != CURLE_OK) {
            return code;
        }

        authority = kube_str(named);
    }

    n = snprintf(text, sizeof(text), "%s://%.*s%.*s%s",
                 url->tls ? "https" : "http",
                 (int) authority.len, authority.data, (int) url->prefix.len,
                 url->prefix.len ? url->prefix.data : "", path);

    if (n < 0 || n > KUBE_URL_LEN_MAX) {
        return CURLE_URL_MALFORMAT;
    }

    return curl_easy_setopt(e->easy, CURLOPT_URL, text);
}


static CURLcode
exchange_set_blobs(kube_exchange_t *e, const exchange_blob_t *blobs, size_t n)
{
    size_t            i;
    CURLcode          code;
    struct curl_blob  blob;

    for (i = 0; i < n; i++) {
        if (blobs[i].value.len == 0) {
            continue;
        }

        blob.data = (char *) (uintptr_t) blobs[i].value.data;
        blob.len = blobs[i].value.len;
        blob.flags = CURL_BLOB_COPY;

        code = curl_easy_setopt(e->easy, blobs[i].option, &blob);
        if (code != CURLE_OK) {
            return code;
        }
    }

    return CURLE_OK;
}


static CURLcode
exchange_set_tls(kube_exchange_t *e)
{
    long                   verify;
    CURLcode               code;
    const kube_config_t   *config = e->transport->conf.config;
    kube_credentials_t    *c = e->transport->conf.credentials;
    const exchange_text_t  texts[] = {

        /* a path of trusted CAs would count beside the CA that is given */
        { CURLOPT_CAINFO, NULL },
        { CURLOPT_CAPATH, NULL },
    };
    const exchange_text_t  formats[] = {
        { CURLOPT_SSLCERTTYPE, "PEM" },
        { CURLOPT_SSLKEYTYPE, "PEM" },
    };
    const exchange_blob_t  blobs[] = {
        { CURLOPT_CAINFO_BLOB, kube_credentials_ca(c) },
        { CURLOPT_SSLCERT_BLOB, kube_credentials_certificate(c) },
        { CURLOPT_SSLKEY_BLOB, kube_credentials_key(c) },
    };

    verify = config->tls_verify_off ? 0 : 1;

    /* the system's CAs must not stand in for one that could not be read */

    if (blobs[0].value.len == 0
        && (config->ca.path.len != 0 || config->ca.data.len != 0))
    {
        return CURLE_SSL_CACERT_BADFILE;
    }

    code = curl_easy_setopt(e->easy, CURLOPT_SSL_VERIFYPEER, verify);
    if (code != CURLE_OK) {
        return code;
    }

    code = curl_easy_setopt(e->easy, CURLOPT_SSL_VERIFYHOST, verify * 2);
    if (code != CURLE_OK) {
        return code;
    }

    if (blobs[0].value.len != 0) {
        code = exchange_set_texts(e, texts, 2);
        if (code != CURLE_OK) {
            return code;
        }
    }

    code = exchange_set_texts(e, formats, 2);
    if (code != CURLE_OK) {
        return code;
    }

    return exchange_set_blobs(e, blobs, 3);
}


/*
 * libcurl keeps a connection only for a transfer with the same CA and client
 * certificate; the lifetime makes sure whatever its version compares.
 */
static CURLcode
exchange_set_freshness(kube_exchange_t *e)
{
    uint64_t           age_s;
    kube_transport_t  *t = e->transport;

    if (t->changed_ms == UINT64_MAX) {
        return CURLE_OK;
    }

    age_s = (t->now_ms - t->changed_ms) / 1000;

    /* both ages are cut to seconds: one second less is on the safe side */

    if (age_s < 2) {
        return curl_easy_setopt(e->easy, CURLOPT_FRESH_CONNECT, 1L);
    }

    return curl_easy_setopt(e->easy, CURLOPT_MAXLIFETIME_CONN,
                            age_s < 86400 ? (long) age_s - 1 : 86400L);
}


static CURLcode
exchange_add_header(kube_exchange_t *e, const char *name, kube_str_t value)
{
    char               *line;
    size_t              len, size;
    struct curl_slist  *list;
    kube_transport_t   *t = e->transport;

    len = strlen(name);
    size = len + value.len + 1;

    line = kube_alloc(&t->alloc, size);
    if (line == NULL) {
        return CURLE_OUT_OF_MEMORY;
    }

    memcpy(line, name, len);

    if (value.len != 0) {
        memcpy(line + len, value.data, value.len);
    }

    line[size - 1] = '\0';

    list = curl_slist_append(e->headers, line);

    explicit_bzero(line, size);
    kube_free(&t->alloc, line);

    if (list == NULL) {
        return CURLE_OUT_OF_MEMORY;
    }

    e->headers = list;

    return CURLE_OK;
}


static CURLcode
exchange_set_headers(kube_exchange_t *e, const kube_url_t *url)
{
    CURLcode           code;
    kube_str_t         token;
    kube_transport_t  *t = e->transport;

    code = exchange_add_header(e, "Accept: ", KUBE_STR("application/json"));

    if (code == CURLE_OK) {
        code = exchange_add_header(e, "Accept-Encoding: ",
                                   KUBE_STR("identity"));
    }

    if (code == CURLE_OK && url->tls && t->conf.config->tls_server_name.len) {
        code = exchange_add_header(e, "Host: ", url->authority);
    }

    token = kube_credentials_token(t->conf.credentials);

    if (code == CURLE_OK && token.len != 0) {
        code = exchange_add_header(e, "Authorization: Bearer ", token);
    }

    if (code != CURLE_OK) {
        return code;
    }

    return curl_easy_setopt(e->easy, CURLOPT_HTTPHEADER, e->headers);
}


/*
 * PROXY and NOPROXY are always set, or libcurl would take them from the
 * environment.  A loopback server is not behind a proxy.
 */
static CURLcode
exchange_set_route(kube_exchange_t *e, const kube_url_t *url)
{
    char             path[128];
    kube_str_t       proxy;
    exchange_text_t  texts[] = {
        { CURLOPT_PROTOCOLS_STR, "http,https" },
        { CURLOPT_USERAGENT, e->transport->agent },
        { CURLOPT_NOPROXY, "" },
        { CURLOPT_PROXY, "" },
        { CURLOPT_UNIX_SOCKET_PATH, NULL },
    };

    proxy = e->transport->conf.config->proxy_url;

    if (url->tls && proxy.len != 0) {
        texts[3].value = proxy.data;
    }

    if (url->path.len != 0 && url->path.len < sizeof(path)) {
        memcpy(path, url->path.data, url->path.len);
        path[url->path.len] = '\0';
        texts[4].value = path;
    }

    return exchange_set_texts(e, texts, sizeof(texts) / sizeof(texts[0]));
}


CURLcode
kube_exchange_set_options(kube_exchange_t *exchange, const kube_url_t *url,
    const char *path)
{
    CURLcode          code;
    kube_exchange_t  *e = exchange;

    code = exchange_set_numbers(e);

    if (code == CURLE_OK) {
        code = curl_easy_setopt(e->easy, CURLOPT_SOCKOPTFUNCTION,
                                exchange_socket_cb);
    }

    if (code == CURLE_OK) {
        code = exchange_set_route(e, url);
    }

    if (code == CURLE_OK) {
        code = exchange_set_url(e, url, path);
    }

    if (code == CURLE_OK && url->tls) {
        code = exchange_set_tls(e);
    }

    if (code == CURLE_OK) {
        code = exchange_set_freshness(e);
    }

    if (code == CURLE_OK) {
        code = exchange_set_headers(e, url);
    }

    return code;
}

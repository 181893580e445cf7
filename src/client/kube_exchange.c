/*
 * kube_exchange - one HTTP exchange: its head, its bytes, its end.
 *
 * It does not run the loop, never adds or removes a transfer, and leaves the
 * options to kube_exchange_options.c.  Callbacks here are called by libcurl
 * from within kube_transport_process().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "kube_secret_private.h"
#include "kube_transport_private.h"


typedef struct {
    CURLcode   code;
    kube_rc_t  rc;
} exchange_result_t;


/* libcurl's codes that mean one thing only; the others need a look. */
static const exchange_result_t  exchange_results[] = {
    { CURLE_OK, KUBE_OK },
    { CURLE_OUT_OF_MEMORY, KUBE_NOMEM },
    { CURLE_COULDNT_RESOLVE_HOST, KUBE_CONNECT },
    { CURLE_COULDNT_RESOLVE_PROXY, KUBE_CONNECT },
    { CURLE_PROXY, KUBE_CONNECT },
    { CURLE_SSL_CONNECT_ERROR, KUBE_TLS },
    { CURLE_PEER_FAILED_VERIFICATION, KUBE_TLS },
    { CURLE_SSL_CERTPROBLEM, KUBE_TLS },
    { CURLE_SSL_CIPHER, KUBE_TLS },
    { CURLE_SSL_CACERT_BADFILE, KUBE_TLS },
    { CURLE_SSL_ISSUER_ERROR, KUBE_TLS },
    { CURLE_SSL_INVALIDCERTSTATUS, KUBE_TLS },
    { CURLE_SSL_CLIENTCERT, KUBE_TLS },
    { CURLE_USE_SSL_FAILED, KUBE_TLS }
};


void
kube_exchange_fail(kube_exchange_t *exchange, kube_rc_t rc, const char *why)
{
    if (!exchange->over) {
        exchange->over = 1;
        exchange->rc = rc;
        exchange->why = why;
        exchange->transport->more = 1;
    }
}


/* Whether the transfer goes on. */
static bool
exchange_take(kube_exchange_t *e, kube_take_t take)
{
    if (e->cancelled) {
        return false;
    }

    if (take == KUBE_TAKE_ABORT) {
        kube_exchange_fail(e, KUBE_CLOSED, "ended by the reader");
        return false;
    }

    if (take == KUBE_TAKE_PAUSE) {
        e->held = 1;
    }

    return true;
}


/* The value of a header line if it has that name. */
static bool
exchange_header_is(kube_str_t line, const char *name, kube_str_t *value)
{
    size_t  len;

    len = strlen(name);

    if (line.len <= len || line.data[len] != ':'
        || strncasecmp(line.data, name, len) != 0)
    {
        return false;
    }

    value->data = line.data + len + 1;
    value->len = line.len - len - 1;
    *value = kube_secret_trim(*value);

    return true;
}


static bool
exchange_value_is(kube_str_t value, const char *text)
{
    return value.len == strlen(text)
           && strncasecmp(value.data, text, value.len) == 0;
}


/*
 * RFC 9110 section 10.2.3: seconds or a date.  A date needs the time of day,
 * and here is the only place that asks for it.
 */
static uint32_t
exchange_retry_after(kube_str_t value)
{
    char      text[64];
    size_t    i;
    time_t    date, now;
    uint64_t  seconds;

    seconds = 0;

    for (i = 0; i < value.len; i++) {
        if (value.data[i] < '0' || value.data[i] > '9') {
            break;
        }

        if (seconds <= KUBE_RETRY_AFTER_MAX) {
            seconds = seconds * 10 + (uint64_t) (value.data[i] - '0');
        }
    }

    if (i == 0 && value.len != 0 && value.len < sizeof(text)
        && ((value.data[0] | 0x20) >= 'a' && (value.data[0] | 0x20) <= 'z'))
    {
        memcpy(text, value.data, value.len);
        text[value.len] = '\0';

        date = curl_getdate(text, NULL);
        now = time(NULL);

        if (date > now) {
            seconds = (uint64_t) (date - now);
        }

    } else if (i != value.len) {
        return 0;
    }

    return seconds < KUBE_RETRY_AFTER_MAX ? (uint32_t) seconds
                                          : KUBE_RETRY_AFTER_MAX;
}


static void
exchange_keep_content_type(kube_exchange_t *e, kube_str_t value)
{
    const char  *end;

    e->content_type[0] = '\0';

    end = value.len ? memchr(value.data, ';', value.len) : NULL;

    if (end != NULL) {
        value.len = (size_t) (end - value.data);
        value = kube_secret_trim(value);
    }

    if (value.len < sizeof(e->content_type)
        && (value.len == 0 || memchr(value.data, '\0', value.len) == NULL))
    {
        memcpy(e->content_type, value.data, value.len);
        e->content_type[value.len] = '\0';
    }
}


static void
exchange_on_header(kube_exchange_t *e, kube_str_t line)
{
    kube_str_t  value;

    if (exchange_header_is(line, "Content-Type", &value)) {
        exchange_keep_content_type(e, value);

    } else if (exchange_header_is(line, "Retry-After", &value)) {
        e->retry_after_s = exchange_retry_after(value);

    } else if (exchange_header_is(line, "Content-Encoding", &value)) {
        if (value.len != 0 && !exchange_value_is(value, "identity")) {
            kube_exchange_fail(e, KUBE_PROTO,
                               "the body is compressed, which was not asked");
        }

    } else if (exchange_header_is(line, "Transfer-Encoding", &value)) {
        if (!exchange_value_is(value, "chunked")
            && !exchange_value_is(value, "identity"))
        {
            kube_exchange_fail(e, KUBE_PROTO,
                               "unknown transfer encoding of the body");
        }
    }
}


/* The empty line: the head is complete. */
static bool
exchange_on_head(kube_exchange_t *e)
{
    long             code;
    kube_take_t      take;
    kube_response_t  response;

    code = 0;
    (void) curl_easy_getinfo(e->easy, CURLINFO_RESPONSE_CODE, &code);

    /* 100 and 103 announce a head; another one follows */

    if (code >= 100 && code < 200) {
        return true;
    }

    e->responded = 1;

    response.code = (int) code;
    response.retry_after_s = e->retry_after_s;
    response.content_type = kube_str(e->content_type);

    take = e->handler->response(e->ctx, &response);

    return exchange_take(e, take);
}


/* libcurl: each header line whole; anything but its length ends it. */
static size_t
exchange_header_cb(char *data, size_t size, size_t n, void *arg)
{
    bool              go_on;
    kube_str_t        line;
    kube_exchange_t  *e = arg;

    n *= size;
    line = kube_secret_trim((kube_str_t) { data, n });

    if (e->cancelled || e->over) {
        return 0;
    }

    e->header_bytes += n;

    if (e->header_bytes > KUBE_EXCHANGE_HEADER_BYTES_MAX) {
        kube_exchange_fail(e, KUBE_PROTO, "the head of the response is too "
                                          "large");
        return 0;
    }

    /* trailers come the same way, after the body */

    if (e->responded) {
        return n;
    }

    if (line.len == 0) {
        go_on = exchange_on_head(e);

    } else if (line.len >= 5 && memcmp(line.data, "HTTP/", 5) == 0) {
        e->content_type[0] = '\0';
        e->retry_after_s = 0;
        go_on = true;

    } else {
        exchange_on_header(e, line);
        go_on = !e->over;
    }

    return go_on ? n : 0;
}


/*
 * A pause has to be asked for before bytes are taken: libcurl hands the same
 * bytes over again afterwards.
 */
static size_t
exchange_write_cb(char *data, size_t size, size_t n, void *arg)
{
    kube_take_t        take;
    kube_exchange_t   *e = arg;
    kube_transport_t  *t = e->transport;

    n *= size;

    if (e->cancelled || e->over) {
        return 0;
    }

    if (n == 0) {
        return 0;
    }

    if (e->held) {
        e->paused = 1;
        return CURL_WRITEFUNC_PAUSE;
    }

    if (t->taken_bytes >= t->conf.tick_bytes) {
        e->paused = 1;
        t->more = 1;
        return CURL_WRITEFUNC_PAUSE;
    }

    t->taken_bytes += n;

    take = e->handler->bytes(e->ctx, data, n);

    return exchange_take(e, take) ? n : 0;
}


static CURLcode
exchange_set_callbacks(kube_exchange_t *e)
{
    size_t    i;
    CURLcode  code[7];

    code[0] = curl_easy_setopt(e->easy, CURLOPT_HEADERFUNCTION,
                               exchange_header_cb);
    code[1] = curl_easy_setopt(e->easy, CURLOPT_HEADERDATA, e);
    code[2] = curl_easy_setopt(e->easy, CURLOPT_WRITEFUNCTION,
                               exchange_write_cb);
    code[3] = curl_easy_setopt(e->easy, CURLOPT_WRITEDATA, e);
    code[4] = curl_easy_setopt(e->easy, CURLOPT_PRIVATE, e);
    code[5] = curl_easy_setopt(e->easy, CURLOPT_ERRORBUFFER, e->error);
    code[6] = curl_easy_setopt(e->easy, CURLOPT_CONNECTTIMEOUT_MS,
                               (long) e->transport->conf.connect_timeout_ms);

    for (i = 0; i < sizeof(code) / sizeof(code[0]); i++) {
        if (code[i] != CURLE_OK) {
            return code[i];
        }
    }

    return CURLE_OK;
}


kube_rc_t
kube_exchange_create(kube_transport_t *transport, const char *path,
    kube_exchange_t **exchange)
{
    CURLcode          code;
    kube_exchange_t  *e;

    *exchange = NULL;

    e = kube_zalloc(&transport->alloc, sizeof(kube_exchange_t));
    if (e == NULL) {
        return KUBE_NOMEM;
    }

    e->transport = transport;
    e->server = transport->server;

    e->easy = curl_easy_init();
    if (e->easy == NULL) {
        kube_exchange_destroy(e);
        return KUBE_NOMEM;
    }

    code = exchange_set_callbacks(e);

    if (code == CURLE_OK) {
        code = kube_exchange_set_options(e, &transport->urls[e->server], path);
    }

    if (code != CURLE_OK) {
        kube_exchange_destroy(e);

        if (code == CURLE_OUT_OF_MEMORY) {
            return KUBE_NOMEM;
        }

        /* a CA that was never read, or a libcurl that lacks an option */

        kube_log_event(&transport->log, transport->now_ms, KUBE_LOG_ERROR,
                       KUBE_EV_INTERNAL, "the request cannot be set up: %s",
                       curl_easy_strerror(code));

        return code == CURLE_URL_MALFORMAT ? KUBE_TOO_LARGE : KUBE_INVALID;
    }

    *exchange = e;

    return KUBE_OK;
}


void
kube_exchange_destroy(kube_exchange_t *exchange)
{
    kube_alloc_t        alloc;
    struct curl_slist  *line;

    alloc = exchange->transport->alloc;

    if (exchange->easy != NULL) {
        curl_easy_cleanup(exchange->easy);
    }

    for (line = exchange->headers; line != NULL; line = line->next) {
        explicit_bzero(line->data, strlen(line->data));
    }

    curl_slist_free_all(exchange->headers);
    curl_slist_free_all(exchange->connect_to);

    kube_free(&alloc, exchange);
}


/*
 * TCP, but no TLS in time, is another matter than nobody there.  libcurl
 * takes the time of the connect after TLS only; the local port it knows from
 * TCP on.
 */
static kube_rc_t
exchange_timeout_rc(kube_exchange_t *e)
{
    long  port;

    port = 0;
    (void) curl_easy_getinfo(e->easy, CURLINFO_LOCAL_PORT, &port);

    return port > 0 ? KUBE_TIMEOUT : KUBE_CONNECT;
}


/* Connected, through proxy and TLS where there are any. */
static bool
exchange_is_ready(kube_exchange_t *e)
{
    curl_off_t  ready_us;

    ready_us = 0;
    (void) curl_easy_getinfo(e->easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us);

    return ready_us != 0;
}


/* socket() failed for want of descriptors: not the peer's fault. */
static kube_rc_t
exchange_connect_rc(kube_exchange_t *e)
{
    long  err;

    err = 0;
    (void) curl_easy_getinfo(e->easy, CURLINFO_OS_ERRNO, &err);

    return err == EMFILE || err == ENFILE || err == ENOBUFS ? KUBE_IO
                                                            : KUBE_CONNECT;
}


static kube_rc_t
exchange_rc(kube_exchange_t *e, CURLcode code)
{
    size_t  i;

    for (i = 0;
         i < sizeof(exchange_results) / sizeof(exchange_results[0]);
         i++)
    {
        if (exchange_results[i].code == code) {
            return exchange_results[i].rc;
        }
    }

    switch (code) {

    case CURLE_COULDNT_CONNECT:
    case CURLE_FAILED_INIT:
        return exchange_connect_rc(e);

    case CURLE_OPERATION_TIMEDOUT:
        return exchange_timeout_rc(e);

    case CURLE_RECV_ERROR:

        /* one code for a lost connection and for a chunk that is none */

        if (strstr(e->error, "chunked-encoding") != NULL) {
            return KUBE_PROTO;
        }

        /* fall through */

    case CURLE_PARTIAL_FILE:
    case CURLE_SEND_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_ABORTED_BY_CALLBACK:
    case CURLE_WRITE_ERROR:

        /* before a request was due it is a proxy that refused */

        return exchange_is_ready(e) ? KUBE_CLOSED : KUBE_CONNECT;

    default:
        return KUBE_PROTO;
    }
}


void
kube_exchange_finish(kube_exchange_t *exchange, CURLcode code)
{
    char              text[2 * CURL_ERROR_SIZE];
    kube_rc_t         rc;
    const char       *why;
    kube_exchange_t  *e = exchange;

    if (e->cancelled) {
        return;
    }

    /* libcurl is content with a head that was cut off */

    if (code == CURLE_OK && !e->responded) {
        kube_exchange_fail(e, KUBE_CLOSED, "the head of the response is "
                                           "incomplete");
    }

    /* its answer, before 8.4, to a header line of 100 KiB */

    if (code == CURLE_OUT_OF_MEMORY && !e->responded && exchange_is_ready(e)) {
        kube_exchange_fail(e, KUBE_PROTO, "the head of the response is too "
                                          "large");
    }

    if (e->over) {
        rc = e->rc;
        why = e->why;

    } else {
        rc = exchange_rc(e, code);
        why = e->error[0] != '\0' ? e->error : curl_easy_strerror(code);
    }

    if (rc == KUBE_OK) {
        why = "";

    } else if ((rc == KUBE_CONNECT || rc == KUBE_TLS || rc == KUBE_TIMEOUT)
               && e->server == e->transport->server)
    {
        e->transport->server = (e->server + 1)
                               % e->transport->conf.config->servers_n;
    }

    (void) kube_str_escape(text, sizeof(text), kube_str(why));

    e->handler->done(e->ctx, rc, text);
}

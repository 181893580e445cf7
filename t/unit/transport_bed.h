/*
 * transport_bed - what the transport's tests share: a transport over a
 * counting allocator, a handler that records, and a loop with a deadline.
 *
 * For t/unit only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_TRANSPORT_BED_H
#define KUBE_TRANSPORT_BED_H


#include <dirent.h>
#include <signal.h>
#include <time.h>

#include "http_bed.h"

#include "kube_limits.h"
#include "kube_transport.h"


/* No test takes long; one that hangs fails here. */
#define TRANSPORT_BED_DEADLINE_MS  120000


typedef struct {
    alloc_test_t         at;
    http_bed_t           server;
    bool                 serving;
    kube_config_t        config;
    kube_credentials_t  *credentials;
    kube_transport_t    *transport;
    uint64_t             connect_timeout_ms;
    const char          *agent;
    size_t               tick_bytes;
    size_t               call_bytes;        /* taken in this process() */
    size_t               call_bytes_peak;
    size_t               calls;
    bool                 processing;
    size_t               fds;               /* open before */
} transport_bed_t;

/* One exchange and what its handler was told. */
typedef struct transport_bed_client_s  transport_bed_client_t;

struct transport_bed_client_s {
    transport_bed_t  *f;
    kube_exchange_t  *exchange;
    size_t            responses;
    int               code;
    size_t            server;
    uint32_t          retry_after_s;
    char              content_type[128];
    char             *body;
    size_t            len;
    size_t            pieces;
    size_t            dones;
    kube_rc_t         rc;
    char              text[1024];

    kube_take_t             (*on_response)(transport_bed_client_t *c);
    kube_take_t             (*on_bytes)(transport_bed_client_t *c);
    void                    (*on_done)(transport_bed_client_t *c);
    transport_bed_client_t   *other;
};


static inline uint64_t
transport_bed_now_ms(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


static inline size_t
transport_bed_fds(void)
{
    DIR     *dir;
    size_t   n;

    dir = opendir("/proc/self/fd");
    assert_non_null(dir);

    for (n = 0; readdir(dir) != NULL; n++) {
        /* void */
    }

    closedir(dir);

    return n;
}


static inline void
transport_bed_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    (void) ctx;
    (void) level;
    (void) id;
    (void) line;
}


static inline kube_take_t
transport_bed_on_response(void *ctx, const kube_response_t *response)
{
    transport_bed_client_t  *c = ctx;

    assert_true(c->f->processing);
    assert_int_equal(c->responses, 0);
    assert_int_equal(c->dones, 0);

    c->responses++;
    c->code = response->code;
    c->server = response->server;
    c->retry_after_s = response->retry_after_s;
    assert_true(response->content_type.len < sizeof(c->content_type));
    memcpy(c->content_type, response->content_type.data,
           response->content_type.len);

    return c->on_response != NULL ? c->on_response(c) : KUBE_TAKE_MORE;
}


static inline kube_take_t
transport_bed_on_bytes(void *ctx, const char *data, size_t len)
{
    transport_bed_client_t  *c = ctx;

    assert_true(c->f->processing);
    assert_int_equal(c->responses, 1);
    assert_int_equal(c->dones, 0);
    assert_true(len > 0);

    c->body = realloc(c->body, c->len + len);
    assert_non_null(c->body);
    memcpy(c->body + c->len, data, len);

    c->len += len;
    c->f->call_bytes += len;
    c->pieces++;

    return c->on_bytes != NULL ? c->on_bytes(c) : KUBE_TAKE_MORE;
}


static inline void
transport_bed_on_done(void *ctx, kube_rc_t rc, const char *text)
{
    transport_bed_client_t  *c = ctx;

    assert_true(c->f->processing);
    assert_int_equal(c->dones, 0);
    assert_non_null(text);
    assert_int_equal(rc == KUBE_OK, text[0] == '\0');
    assert_null(strstr(text, "s3cret"));

    c->dones++;
    c->rc = rc;
    snprintf(c->text, sizeof(c->text), "%s", text);

    if (c->on_done != NULL) {
        c->on_done(c);
    }
}


static const kube_exchange_handler_t  transport_bed_handler = {
    transport_bed_on_response,
    transport_bed_on_bytes,
    transport_bed_on_done
};


static inline int
transport_bed_setup(void **state)
{
    transport_bed_t  *f;

    (void) signal(SIGPIPE, SIG_IGN);

    f = calloc(1, sizeof(transport_bed_t));
    assert_non_null(f);

    f->fds = transport_bed_fds();
    f->connect_timeout_ms = 10000;
    f->agent = "unit/1";
    f->tick_bytes = KUBE_TICK_BYTES;

    alloc_test_init(&f->at);
    kube_config_init(&f->config, &f->at.alloc);
    assert_int_equal(kube_config_set(&f->config, &f->config.token.data,
                                     KUBE_STR("s3cret")), KUBE_OK);

    *state = f;

    return 0;
}


static inline void
transport_bed_close(transport_bed_t *f)
{
    kube_transport_destroy(f->transport);
    kube_credentials_destroy(f->credentials);
    f->transport = NULL;
    f->credentials = NULL;

    if (f->serving) {
        http_bed_stop(&f->server);
        f->serving = false;
    }
}


static inline int
transport_bed_teardown(void **state)
{
    transport_bed_t  *f = *state;

    transport_bed_close(f);
    kube_config_done(&f->config);

    alloc_test_assert_no_leak(&f->at);
    assert_int_equal(transport_bed_fds(), f->fds);
    free(f);

    return 0;
}


static inline void
transport_bed_serve(transport_bed_t *f, http_bed_serve_pt serve,
    const void *arg)
{
    http_bed_start(&f->server, NULL, serve, arg);
    f->serving = true;
}


static inline void
transport_bed_add_port(transport_bed_t *f, const char *scheme, unsigned port)
{
    char  url[64];

    snprintf(url, sizeof(url), "%s://127.0.0.1:%u", scheme, port);
    assert_int_equal(kube_config_add_server(&f->config, kube_str(url), NULL),
                     KUBE_OK);
}


/* The transport for what config says by now. */
static inline void
transport_bed_open(transport_bed_t *f)
{
    unsigned               changed;
    kube_log_sink_t        sink = { transport_bed_log, NULL };
    kube_transport_conf_t  conf;

    if (f->config.servers_n == 0) {
        transport_bed_add_port(f, "http", f->server.port);
    }

    f->credentials = kube_credentials_create(&f->at.alloc, &f->config, sink);
    assert_non_null(f->credentials);
    assert_int_equal(kube_credentials_refresh(f->credentials, 1, true,
                                              &changed), KUBE_OK);

    memset(&conf, 0, sizeof(conf));
    conf.config = &f->config;
    conf.credentials = f->credentials;
    conf.connect_timeout_ms = f->connect_timeout_ms;
    conf.agent = f->agent;
    conf.tick_bytes = f->tick_bytes;

    f->transport = kube_transport_create(&f->at.alloc, &conf, sink);
    assert_non_null(f->transport);
}


static inline void
transport_bed_start(transport_bed_t *f, transport_bed_client_t *c)
{
    kube_request_t  request;

    c->f = f;
    memset(&request, 0, sizeof(request));

    assert_int_equal(kube_transport_start(f->transport, &request,
                                          &transport_bed_handler, c,
                                          transport_bed_now_ms(),
                                          &c->exchange), KUBE_OK);
    assert_non_null(c->exchange);
    assert_true(kube_transport_deadline(f->transport)
                <= transport_bed_now_ms());
}


static inline void
transport_bed_free(transport_bed_client_t *c)
{
    free(c->body);
    memset(c, 0, sizeof(transport_bed_client_t));
}


/* Waits as a host would, then lets the transport work once. */
static inline void
transport_bed_step(transport_bed_t *f)
{
    uint64_t       now_ms, due_ms;
    struct pollfd  pfd;

    now_ms = transport_bed_now_ms();
    due_ms = kube_transport_deadline(f->transport);

    pfd.fd = kube_transport_fd(f->transport);
    pfd.events = POLLIN;

    (void) poll(&pfd, 1, due_ms <= now_ms ? 0
                         : due_ms - now_ms < 50 ? (int) (due_ms - now_ms) : 50);

    f->call_bytes = 0;
    f->processing = true;
    kube_transport_process(f->transport, transport_bed_now_ms());
    f->processing = false;
    f->calls++;

    if (f->call_bytes > f->call_bytes_peak) {
        f->call_bytes_peak = f->call_bytes;
    }
}


/* Until *count is at least n. */
static inline void
transport_bed_until(transport_bed_t *f, const size_t *count, size_t n)
{
    uint64_t  deadline_ms;

    deadline_ms = transport_bed_now_ms() + TRANSPORT_BED_DEADLINE_MS;

    while (*count < n) {
        assert_true(transport_bed_now_ms() < deadline_ms);
        transport_bed_step(f);
    }
}


/* One exchange to its end. */
static inline void
transport_bed_get(transport_bed_t *f, transport_bed_client_t *c)
{
    transport_bed_start(f, c);
    transport_bed_until(f, &c->dones, 1);
}


#endif /* KUBE_TRANSPORT_BED_H */

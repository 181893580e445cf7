/*
 * test_client - requests without credentials, and with them, over the real
 * transport against a port where nobody listens.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc_test.h"

#include "kube_transport.h"


/* What the transport was told to be new. */
static unsigned  client_changed;


static void
client_credentials_changed(kube_transport_t *transport, unsigned changed)
{
    client_changed |= changed;
    kube_transport_credentials_changed(transport, changed);
}


#define kube_transport_credentials_changed  client_credentials_changed

#include "kube_client.c"

#undef kube_transport_credentials_changed


typedef struct {
    alloc_test_t    own;
    kube_config_t   config;
    kube_client_t  *client;
    kube_io_t       io;
    char            dir[64];
    char            token[96];
    uint64_t        now_ms;
    unsigned        warned;        /* of credentials */
} bed_t;

typedef struct {
    bed_t      *bed;
    unsigned    done;
    kube_rc_t   rc;
    char        text[256];
} answer_t;


static kube_take_t
answer_response(void *ctx, const kube_response_t *response)
{
    (void) ctx;
    (void) response;

    fail();

    return KUBE_TAKE_ABORT;
}


static kube_take_t
answer_bytes(void *ctx, const char *data, size_t len)
{
    (void) ctx;
    (void) data;
    (void) len;

    fail();

    return KUBE_TAKE_ABORT;
}


static void
answer_done(void *ctx, kube_rc_t rc, const char *text)
{
    answer_t  *a = ctx;

    assert_non_null(text);
    assert_int_equal(a->bed->io.now(a->bed->io.ctx), a->bed->now_ms);

    a->done++;
    a->rc = rc;
    (void) snprintf(a->text, sizeof(a->text), "%s", text);
}


static const kube_exchange_handler_t  handler = {
    answer_response,
    answer_bytes,
    answer_done
};


static void
bed_config(bed_t *b, const kube_alloc_t *alloc)
{
    kube_error_t  error;

    kube_config_init(&b->config, alloc);

    assert_int_equal(kube_config_add_server(&b->config,
                                            KUBE_STR("http://127.0.0.1:1"),
                                            &error),
                     KUBE_OK);
    assert_int_equal(kube_config_set(&b->config, &b->config.token.path,
                                     kube_str(b->token)),
                     KUBE_OK);
}


static void
bed_dir(bed_t *b)
{
    memset(b, 0, sizeof(bed_t));
    alloc_test_init(&b->own);

    b->now_ms = 1000000;
    snprintf(b->dir, sizeof(b->dir), "/tmp/kube-client-XXXXXX");
    assert_non_null(mkdtemp(b->dir));
    snprintf(b->token, sizeof(b->token), "%s/token", b->dir);
}


static void
bed_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    bed_t  *b = ctx;

    (void) level;
    (void) line;

    b->warned += (id == KUBE_EV_CREDENTIALS);
}


static void
bed_init(bed_t *b)
{
    kube_client_conf_t  conf;
    kube_log_sink_t     sink;

    bed_dir(b);
    bed_config(b, &b->own.alloc);

    memset(&conf, 0, sizeof(conf));
    memset(&sink, 0, sizeof(sink));

    conf.config = &b->config;
    conf.connect_timeout_ms = 1000;
    sink.write = bed_log;
    sink.ctx = b;

    b->client = kube_client_create(&b->own.alloc, &conf, sink);
    assert_non_null(b->client);
    b->io = kube_client_io(b->client);
}


static void
bed_token(bed_t *b, const char *text)
{
    FILE  *f;

    f = fopen(b->token, "w");
    assert_non_null(f);
    assert_int_equal(fchmod(fileno(f), 0600), 0);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}


static void
bed_done(bed_t *b)
{
    kube_client_destroy(b->client);
    kube_config_done(&b->config);
    alloc_test_assert_no_leak(&b->own);

    (void) unlink(b->token);
    assert_int_equal(rmdir(b->dir), 0);
}


static kube_exchange_t *
bed_ask(bed_t *b, answer_t *a)
{
    kube_request_t    request;
    kube_exchange_t  *x;

    memset(a, 0, sizeof(answer_t));
    memset(&request, 0, sizeof(request));
    a->bed = b;

    assert_int_equal(b->io.start(b->io.ctx, &request, &handler, a, b->now_ms,
                                 &x),
                     KUBE_OK);
    assert_non_null(x);
    assert_int_equal(a->done, 0);

    return x;
}


/* Real time passes here, on the transport's descriptor and deadline. */
static void
bed_wait(bed_t *b, const answer_t *a)
{
    unsigned       i;
    uint64_t       deadline_ms;
    struct pollfd  p;

    for (i = 0; i < 1000 && a->done == 0; i++) {
        kube_client_process(b->client, b->now_ms);

        deadline_ms = kube_client_deadline(b->client);

        p.fd = kube_client_fd(b->client);
        p.events = POLLIN;
        (void) poll(&p, 1, deadline_ms <= b->now_ms ? 0 : 10);
        b->now_ms += 10;
    }

    assert_int_equal(a->done, 1);
}


static void
test_no_credentials(void **state)
{
    char              text[256];
    bed_t             b;
    answer_t          one, two, three;
    kube_exchange_t  *x;

    (void) state;

    bed_init(&b);

    (void) bed_ask(&b, &one);
    x = bed_ask(&b, &two);
    (void) bed_ask(&b, &three);
    assert_true(kube_client_deadline(b.client) <= b.now_ms);

    b.io.cancel(b.io.ctx, x);
    kube_client_process(b.client, b.now_ms);

    assert_int_equal(one.done, 1);
    assert_int_equal(one.rc, KUBE_NO_CREDENTIALS);
    assert_string_equal(b.io.remedy(b.io.ctx, one.rc),
                        "create the file, or correct its path");
    (void) snprintf(text, sizeof(text), "token \"%s\": no such file", b.token);
    assert_string_equal(one.text, text);
    assert_int_equal(two.done, 0);
    assert_int_equal(three.done, 1);

    /* one that nobody answers goes with the client */
    (void) bed_ask(&b, &two);
    bed_done(&b);
    assert_int_equal(two.done, 0);
}


/* The file appears: the next request goes out. */
static void
test_credentials_come(void **state)
{
    bed_t     b;
    answer_t  a;

    (void) state;

    bed_init(&b);

    (void) bed_ask(&b, &a);
    kube_client_process(b.client, b.now_ms);
    assert_int_equal(a.rc, KUBE_NO_CREDENTIALS);

    bed_token(&b, "secret");
    b.now_ms += 2000;
    (void) bed_ask(&b, &a);
    bed_wait(&b, &a);
    assert_int_equal(a.rc, KUBE_CONNECT);

    /* it is read again in time, and gone is not lost */
    assert_true(kube_client_deadline(b.client)
                <= b.now_ms + KUBE_CREDENTIALS_PERIOD_MS);
    assert_int_equal(unlink(b.token), 0);
    b.now_ms += KUBE_CREDENTIALS_PERIOD_MS;
    kube_client_process(b.client, b.now_ms);
    (void) bed_ask(&b, &a);
    bed_wait(&b, &a);
    assert_int_equal(a.rc, KUBE_CONNECT);
    bed_done(&b);
}


static void
test_reread(void **state)
{
    bed_t     b;
    answer_t  a;

    (void) state;

    bed_init(&b);
    client_changed = 0;
    assert_int_equal(b.io.credentials(b.io.ctx, b.now_ms), KUBE_IO);

    /* at most once a second */
    bed_token(&b, "secret");
    b.now_ms += 999;
    assert_int_equal(b.io.credentials(b.io.ctx, b.now_ms), KUBE_IO);
    b.now_ms += 1;
    assert_int_equal(b.io.credentials(b.io.ctx, b.now_ms), KUBE_OK);

    /* one that came too soon is made up for, with nobody asking again */
    kube_client_process(b.client, b.now_ms);
    assert_true(kube_client_deadline(b.client) > b.now_ms + 1000);
    assert_int_equal(unlink(b.token), 0);
    b.now_ms += 500;
    assert_int_equal(b.io.credentials(b.io.ctx, b.now_ms), KUBE_OK);
    assert_int_equal(kube_client_deadline(b.client), b.now_ms + 500);
    assert_int_equal(b.warned, 0);
    b.now_ms += 500;
    kube_client_process(b.client, b.now_ms);
    assert_int_equal(b.warned, 1);

    /* connections that were made with others are left only for new ones */
    b.now_ms += 1000;
    bed_token(&b, "secret");
    assert_int_equal(b.io.credentials(b.io.ctx, b.now_ms), KUBE_OK);
    assert_int_equal(client_changed, 0);
    b.now_ms += 1000;
    bed_token(&b, "another");
    assert_int_equal(b.io.credentials(b.io.ctx, b.now_ms), KUBE_OK);
    assert_int_equal(client_changed, KUBE_CREDENTIALS_TOKEN);
    kube_client_process(b.client, b.now_ms);
    assert_true(kube_client_deadline(b.client) > b.now_ms + 1000);

    (void) bed_ask(&b, &a);
    bed_wait(&b, &a);
    assert_int_equal(a.rc, KUBE_CONNECT);
    assert_true(kube_str_eq(kube_client_server(b.client),
                            KUBE_STR("http://127.0.0.1:1")));
    bed_done(&b);
}


static void
oom_run(alloc_test_t *at, void *ctx)
{
    bed_t               b;
    answer_t            a;
    kube_client_conf_t  conf;
    kube_log_sink_t     sink;
    kube_request_t      request;
    kube_exchange_t    *x;

    (void) ctx;

    bed_dir(&b);
    bed_config(&b, &b.own.alloc);

    memset(&conf, 0, sizeof(conf));
    memset(&sink, 0, sizeof(sink));
    memset(&request, 0, sizeof(request));
    memset(&a, 0, sizeof(a));

    conf.config = &b.config;
    conf.connect_timeout_ms = 1000;

    b.client = kube_client_create(&at->alloc, &conf, sink);

    if (b.client == NULL) {
        assert_true(at->failed);

    } else {
        b.io = kube_client_io(b.client);
        a.bed = &b;
        alloc_test_assert_rc(at, b.io.start(b.io.ctx, &request, &handler, &a,
                                            b.now_ms, &x));
        kube_client_process(b.client, b.now_ms);
    }

    bed_done(&b);
}


static void
test_oom(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(oom_run, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_no_credentials),
        cmocka_unit_test(test_credentials_come),
        cmocka_unit_test(test_reread),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

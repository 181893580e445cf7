/*
 * Tests of kube_transport over plain HTTP: what is asked, what is answered,
 * how it ends, and addresses.  test_transport_flow.c has pausing, bounds and
 * cancelling, test_transport_tls.c TLS and proxies.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "transport_bed.h"

#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/un.h>

#include "kube_backoff.h"
#include "kube_version.h"


#define OK_HEAD  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


typedef struct {
    const char  *answer;
    size_t       len;         /* 0: a text */
    bool         reset;
    kube_rc_t    rc;
    int          code;        /* 0: no response() */
    const char  *body;        /* NULL: how much arrives is open */
} transport_answer_t;


static bool
serve_answer(http_bed_t *server, int fd)
{
    const transport_answer_t  *a = server->arg;

    (void) http_bed_write(fd, a->answer, a->len ? a->len : strlen(a->answer));

    if (a->reset) {
        http_bed_reset(fd);
    }

    return false;
}


static void
test_transport_request(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    transport_bed_serve(f, http_bed_serve_text,
                        "HTTP/1.1 100 Continue\r\nRetry-After: 9\r\n\r\n"
                        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                        "HTTP/1.1 200 OK\r\n"
                        "content-TYPE:  application/json ; charset=utf-8\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n"
                        "2\r\n{}\r\n1\r\n\n\r\n0\r\nContent-Type: t\r\n\r\n");
    transport_bed_open(f);
    transport_bed_get(f, &c);

    assert_int_equal(c.rc, KUBE_OK);
    assert_int_equal(c.code, 200);
    assert_int_equal(c.retry_after_s, 0);
    assert_string_equal(c.content_type, "application/json");
    assert_int_equal(c.len, 3);
    assert_memory_equal(c.body, "{}\n", 3);

    assert_true(http_bed_saw(&f->server, "GET /api/v1/services HTTP/1.1\r\n"));
    assert_true(http_bed_saw(&f->server,
                             "\r\nAuthorization: Bearer s3cret\r\n"));
    assert_true(http_bed_saw(&f->server,
                             "\r\nAccept: application/vnd.kubernetes.protobuf,"
                             " application/json\r\n"));
    assert_true(http_bed_saw(&f->server, "\r\nUser-Agent: nginx-kube-informer/"
                                          KUBE_VERSION " (unit/1)\r\n"));
    assert_true(http_bed_saw(&f->server, "\r\nHost: 127.0.0.1:"));
    assert_false(http_bed_saw(&f->server, "gzip"));

    transport_bed_free(&c);

    /* the connection is used again */
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_OK);
    assert_int_equal(http_bed_connections(&f->server), 1);
    transport_bed_free(&c);
}


/*
 * Where somebody gave up on an answer it may come all the same, behind what was
 * said in its place: the connection is not used again.  A refusal is an answer.
 */
static void
test_transport_late_answer(void **state)
{
    size_t                  i, known;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    static const struct {
        const char  *answer;
        bool         again;
    } answers[] = {
        { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", true },
        { "HTTP/1.1 408 No\r\nContent-Length: 2\r\n\r\nno", false },
        { "HTTP/1.1 410 Gone\r\nContent-Length: 2\r\n\r\nno", true },
        { "HTTP/1.1 429 No\r\nContent-Length: 2\r\n\r\nno", true },
        { "HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno", false },
        { "HTTP/1.1 504 No\r\nContent-Length: 2\r\n\r\nno", false },
        { "HTTP/1.1 504 No\r\nContent-Length: 0\r\n\r\n", false },
    };

    transport_bed_serve(f, http_bed_serve_text, answers[0].answer);
    transport_bed_open(f);
    transport_bed_get(f, &c);
    transport_bed_free(&c);

    for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        known = http_bed_connections(&f->server);

        f->server.arg = answers[i].answer;
        transport_bed_get(f, &c);
        transport_bed_free(&c);
        assert_int_equal(http_bed_connections(&f->server), known);

        f->server.arg = answers[0].answer;
        transport_bed_get(f, &c);
        assert_int_equal(c.code, 200);
        transport_bed_free(&c);
        assert_int_equal(http_bed_connections(&f->server),
                         known + (answers[i].again ? 0 : 1));
    }

    /* nor one that brought what cannot be the answer */

    known = http_bed_connections(&f->server);
    kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);
    transport_bed_get(f, &c);
    assert_int_equal(c.code, 200);
    transport_bed_free(&c);
    assert_int_equal(http_bed_connections(&f->server), known + 1);
}


/* Of this thread, which libcurl is called in: a request is answered at once. */
static _Thread_local bool  transport_quick;


/* What libcurl calls, in the place of libc's. */
ssize_t
send(int fd, const void *data, size_t len, int flags)
{
    ssize_t        n;
    struct pollfd  pfd;

    n = sendto(fd, data, len, flags, NULL, 0);

    if (n > 0 && transport_quick) {
        pfd.fd = fd;
        pfd.events = POLLIN;
        (void) poll(&pfd, 1, TRANSPORT_BED_DEADLINE_MS);
    }

    return n;
}


/*
 * ... nor by one that was started beside it: libcurl reads the answer once the
 * request is sent, and gives the connection to the next one before it says that
 * the first is over.
 */
static void
test_transport_late_answer_beside(void **state)
{
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 }, next = { 0 };

    transport_bed_serve(f, http_bed_serve_text,
                        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    transport_bed_open(f);
    transport_bed_get(f, &c);
    transport_bed_free(&c);

    f->server.arg = "HTTP/1.1 502 No\r\nContent-Length: 2\r\n\r\nno";
    transport_quick = true;
    transport_bed_start(f, &c);
    transport_bed_start(f, &next);
    transport_bed_until(f, &c.dones, 1);
    transport_bed_until(f, &next.dones, 1);
    transport_quick = false;

    assert_int_equal(c.rc, KUBE_OK);
    assert_int_equal(next.rc, KUBE_OK);
    assert_int_equal(next.code, 502);
    assert_int_equal(http_bed_connections(&f->server), 2);
    transport_bed_free(&c);
    transport_bed_free(&next);
}


/*
 * What comes over a connection that nobody uses answers nothing that was asked:
 * whatever was answered before, the next request goes over another one.
 */
static void
test_transport_unasked_answer(void **state)
{
    size_t                  i, n;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 }, w = { 0 };

    static const char *const  answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno",
        "HTTP/1.1 429 No\r\nContent-Length: 2\r\n\r\nno",
    };

    static const char *const  late[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate",
        "HTTP/1.1 408 Timeout\r\nContent-Length: 4\r\n\r\nlate",
        "\n",
    };

    transport_bed_serve(f, http_bed_serve_text, answers[0]);
    transport_bed_open(f);
    transport_bed_get(f, &c);
    transport_bed_free(&c);

    /* a watch over the connection that was kept */

    f->server.arg = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    transport_bed_start(f, &w);
    transport_bed_until(f, &w.responses, 1);

    for (i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        f->server.arg = answers[i];
        transport_bed_get(f, &c);
        transport_bed_free(&c);

        n = http_bed_connections(&f->server);
        assert_int_equal(n, i + 2);
        assert_true(http_bed_deliver(f->server.fds[n - 1], late[i]));

        f->server.arg = answers[0];
        transport_bed_get(f, &c);
        assert_int_equal(c.code, 200);
        assert_int_equal(c.len, 2);
        transport_bed_free(&c);
        assert_int_equal(http_bed_connections(&f->server), n + 1);
    }

    assert_int_equal(w.dones, 0);
    assert_true(http_bed_puts(f->server.fds[0], "w"));
    transport_bed_until(f, &w.dones, 1);
    assert_int_equal(w.rc, KUBE_OK);
    transport_bed_free(&w);
}


/* Our name comes first, whoever runs us. */
static void
test_transport_agent(void **state)
{
    char                    agent[300];
    size_t                  i;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };
    const char             *agents[] = { "nginx/1.22.1", NULL, agent };

    static const char *const  lines[] = {
        "\r\nUser-Agent: nginx-kube-informer/" KUBE_VERSION
        " (nginx/1.22.1)\r\n",
        "\r\nUser-Agent: nginx-kube-informer/" KUBE_VERSION "\r\n",
        "\r\nUser-Agent: nginx-kube-informer/" KUBE_VERSION "\r\n",
    };

    memset(agent, 'x', sizeof(agent) - 1);
    agent[sizeof(agent) - 1] = '\0';

    for (i = 0; i < 3; i++) {
        transport_bed_serve(f, http_bed_serve_text,
                            OK_HEAD "Content-Length: 0\r\n\r\n");
        f->agent = agents[i];
        transport_bed_open(f);
        transport_bed_get(f, &c);
        assert_int_equal(c.rc, KUBE_OK);
        assert_true(http_bed_saw(&f->server, lines[i]));

        transport_bed_free(&c);
        transport_bed_close(f);
        kube_config_done(&f->config);
    }
}


static const transport_answer_t  transport_answers[] = {

    /* complete, one way or the other */
    { OK_HEAD "Content-Length: 2\r\n\r\n{}", 0, false, KUBE_OK, 200, "{}" },
    { OK_HEAD "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 0, false,
      KUBE_OK, 200, "{}" },
    { OK_HEAD "Content-Length: 2\r\nContent-Length: 02 \r\n\r\n{}", 0, false,
      KUBE_OK, 200, "{}" },

    /* chunks win, as for Go (RFC 9112, 6.3) */
    { OK_HEAD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\n{}\r\n0\r\n\r\n", 0, false, KUBE_OK, 200, "{}" },
    { OK_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"
      "2\r\n{}\r\n0\r\n\r\n", 0, false, KUBE_OK, 200, "{}" },

    { OK_HEAD "Connection: close\r\n\r\n{}", 0, false, KUBE_OK, 200, "{}" },
    { "HTTP/1.0 200 OK\r\n\r\n{}", 0, false, KUBE_OK, 200, "{}" },
    { "HTTP/1.1 204 No Content\r\n\r\n", 0, false, KUBE_OK, 204, "" },
    { "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 0, false, KUBE_OK, 200,
      "" },
    { OK_HEAD "Content-Encoding: Identity\r\nContent-Length: 1\r\n\r\nx", 0,
      false, KUBE_OK, 200, "x" },

    /* errors are answers like any other; no redirect is followed */
    { "HTTP/1.1 401 U\r\nContent-Length: 1\r\n\r\nx", 0, false, KUBE_OK,
      401, "x" },
    { "HTTP/1.1 410 Gone\r\nContent-Length: 1\r\n\r\nx", 0, false, KUBE_OK,
      410, "x" },
    { "HTTP/1.1 503 S\r\nContent-Length: 1\r\n\r\nx", 0, false, KUBE_OK,
      503, "x" },
    { "HTTP/1.1 599 S\r\nContent-Length: 1\r\n\r\nx", 0, false, KUBE_OK,
      599, "x" },

    /* cut off */
    { "", 0, true, KUBE_CLOSED, 0, "" },
    { OK_HEAD "Content-Length: 9\r\n\r\n{}", 0, true, KUBE_CLOSED, 0,
      NULL },
    { "", 0, false, KUBE_CLOSED, 0, "" },
    { "HTTP/1.1 200 OK\r\nContent-", 0, false, KUBE_CLOSED, 0, "" },
    { OK_HEAD "Content-Length: 9\r\n\r\n{}", 0, false, KUBE_CLOSED, 200,
      "{}" },
    { OK_HEAD "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", 0, false,
      KUBE_CLOSED, 200, "{}" },
    { OK_HEAD "Transfer-Encoding: chunked\r\n\r\n9\r\n{}", 0, false,
      KUBE_CLOSED, 200, "{}" },
    { OK_HEAD "Transfer-Encoding: chunked\r\n\r\n", 0, false, KUBE_CLOSED,
      200, "" },

    /* not HTTP as we know it */
    { "SSH-2.0-OpenSSH_9.2\r\n", 0, false, KUBE_PROTO, 0, "" },
    { "{\"kind\":\"ServiceList\"}", 0, false, KUBE_PROTO, 0, "" },
    { "\x15\x03\x01\x00\x02\x02\x28", 7, false, KUBE_PROTO, 0, "" },
    { "HTTP/1.1 2 00\r\n\r\n", 0, false, KUBE_PROTO, 0, "" },
    { OK_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0, false,
      KUBE_PROTO, 200, "" },
    { OK_HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", 0,
      false, KUBE_PROTO, 200, "" },
    { OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 0,
      false, KUBE_PROTO, 0, "" },
    { OK_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 0, false,
      KUBE_PROTO, 0, "" },
    { OK_HEAD "Content-Length: -1\r\n\r\n", 0, false, KUBE_PROTO, 0, "" },

    /* two ends of one body, of which libcurl alone would take the last */
    { OK_HEAD "Content-Length: 2\r\nContent-Length: 1\r\n\r\n{}", 0, false,
      KUBE_PROTO, 0, "" },
    { OK_HEAD "Content-Length: 1\r\nX: y\r\ncontent-length: 2\r\n\r\n{}", 0,
      false, KUBE_PROTO, 0, "" },
    { OK_HEAD "Content-Length: 1, 2\r\n\r\n{}", 0, false, KUBE_PROTO, 0, "" },
};


static void
test_transport_answers(void **state)
{
    size_t                     i, n;
    transport_bed_t           *f = *state;
    const transport_answer_t  *a;
    transport_bed_client_t     c = { 0 };

    transport_bed_serve(f, serve_answer, &transport_answers[0]);
    transport_bed_open(f);

    n = sizeof(transport_answers) / sizeof(transport_answers[0]);

    for (i = 0; i < n; i++) {
        a = &transport_answers[i];
        f->server.arg = a;
        transport_bed_get(f, &c);

        if (c.rc != a->rc
            || (a->body != NULL
                && (c.code != a->code || c.len != strlen(a->body)
                    || (c.len && memcmp(c.body, a->body, c.len)))))
        {
            print_error("answer %zu: rc %d (%s), code %d, %zu bytes\n%s\n", i,
                        (int) c.rc, c.text, c.code, c.len, a->answer);
            fail();
        }

        transport_bed_free(&c);
    }
}


/* 40 header lines of 4 KiB are more than anyone needs. */
static void
test_transport_large_head(void **state)
{
    char                   *text;
    size_t                  i;
    transport_bed_t        *f = *state;
    transport_answer_t      large;
    transport_bed_client_t  c = { 0 };

    text = malloc(200000);
    assert_non_null(text);
    snprintf(text, 200000, "HTTP/1.1 200 OK\r\n");

    for (i = 0; i < 40; i++) {
        snprintf(text + strlen(text), 200000 - strlen(text), "X: %04096d\r\n",
                 0);
    }

    memset(&large, 0, sizeof(large));
    large.answer = text;

    transport_bed_serve(f, serve_answer, &large);
    transport_bed_open(f);
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_PROTO);
    assert_non_null(strstr(c.text, "too large"));
    assert_int_equal(c.responses, 0);

    transport_bed_free(&c);

    /* the server may still be sending what nobody reads any more */

    transport_bed_close(f);
    kube_config_done(&f->config);

    /* one line of 190 KB: libcurl's own limit comes first */

    memset(text, 'x', 190000);
    memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
    text[190000] = '\0';

    transport_bed_serve(f, serve_answer, &large);
    transport_bed_open(f);
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_PROTO);
    assert_int_equal(c.responses, 0);

    transport_bed_free(&c);
    transport_bed_close(f);
    free(text);
}


static void
test_transport_retry_after(void **state)
{
    char                      answer[256], date[64];
    time_t                    later;
    size_t                    i;
    struct tm                 tm;
    transport_bed_t          *f = *state;
    transport_bed_client_t    c = { 0 };
    static const struct {
        const char  *value;
        uint32_t     low;
        uint32_t     high;
    } cases[] = {
        { "", 0, 0 }, { "0", 0, 0 }, { "1", 1, 1 }, { "5", 5, 5 },
        { "30", 30, 30 }, { "300", 300, 300 }, { "301", 300, 300 },
        { "3600", 300, 300 }, { "2147483648", 300, 300 }, { "007", 7, 7 },
        { "-1", 0, 0 }, { "abc", 0, 0 },
        { "Fri, 31 Dec 1999 23:59:59 GMT", 0, 0 },
        { "Fri, 31 Dec 2100 23:59:59 GMT", 300, 300 },

        /* what is no number is read as well as libcurl's version can */

        { "+1", 0, 1 }, { "1.5", 0, 1 }, { "1s", 0, 1 }, { "5 5", 0, 5 },
        { "99999999999999999999999999", 0, 300 },
    };

    transport_bed_serve(f, http_bed_serve_text, answer);
    transport_bed_open(f);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(answer, sizeof(answer), "HTTP/1.1 429 Too Many\r\n"
                 "Retry-After: %s\r\nContent-Length: 0\r\n\r\n",
                 cases[i].value);
        transport_bed_get(f, &c);

        if (c.retry_after_s < cases[i].low || c.retry_after_s > cases[i].high
            || c.code != 429)
        {
            print_error("\"%s\": %u\n", cases[i].value, c.retry_after_s);
            fail();
        }

        transport_bed_free(&c);
    }

    later = time(NULL) + 100;
    assert_non_null(gmtime_r(&later, &tm));
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    snprintf(answer, sizeof(answer), "HTTP/1.1 503 S\r\n"
             "Retry-After: %s\r\nContent-Length: 0\r\n\r\n", date);
    transport_bed_get(f, &c);
    assert_in_range(c.retry_after_s, 70, 100);
    transport_bed_free(&c);
}


static void
test_transport_redirect(void **state)
{
    char                    answer[256];
    size_t                  i;
    http_bed_t              elsewhere;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };
    static const int        codes[] = { 301, 302, 303, 307, 308 };

    http_bed_start(&elsewhere, NULL, http_bed_serve_text, OK_HEAD "\r\n");
    transport_bed_serve(f, http_bed_serve_text, answer);
    transport_bed_open(f);

    for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        snprintf(answer, sizeof(answer), "HTTP/1.1 %d Go\r\nLocation: "
                 "http://127.0.0.1:%u/\r\nContent-Length: 0\r\n\r\n", codes[i],
                 elsewhere.port);
        transport_bed_get(f, &c);

        assert_int_equal(c.rc, KUBE_OK);
        assert_int_equal(c.code, codes[i]);
        transport_bed_free(&c);
    }

    assert_int_equal(http_bed_connections(&elsewhere), 0);
    http_bed_stop(&elsewhere);
}


/* A port nobody listens on; another test may not take it meanwhile. */
static uint16_t
closed_port(int *fd)
{
    socklen_t           len;
    struct sockaddr_in  in;

    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(in);

    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(*fd, (struct sockaddr *) &in, len), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *) &in, &len), 0);

    return ntohs(in.sin_port);
}


static void
test_transport_servers(void **state)
{
    int                     fd;
    transport_bed_t        *f = *state;
    transport_bed_client_t  a = { 0 }, b = { 0 };

    transport_bed_serve(f, http_bed_serve_text,
                        OK_HEAD "Content-Length: 0\r\n\r\n");
    transport_bed_add_port(f, "http", closed_port(&fd));
    transport_bed_add_port(f, "http", f->server.port);
    transport_bed_open(f);

    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[0]));

    /* two that fail together move on by one, not by two */

    transport_bed_start(f, &a);
    transport_bed_start(f, &b);
    transport_bed_until(f, &a.dones, 1);
    transport_bed_until(f, &b.dones, 1);

    assert_int_equal(a.rc, KUBE_CONNECT);
    assert_int_equal(b.rc, KUBE_CONNECT);
    assert_int_equal(a.responses, 0);
    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[1]));
    transport_bed_free(&a);
    transport_bed_free(&b);

    transport_bed_get(f, &a);
    assert_int_equal(a.rc, KUBE_OK);
    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[1]));

    transport_bed_free(&a);
    close(fd);
}


static void
servers_at(transport_bed_t *f, uint64_t now_ms, size_t server)
{
    f->processing = true;
    kube_transport_process(f->transport, now_ms);
    f->processing = false;

    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[server]));
}


/* A bad address is passed over, longer each time; the one in use stays. */
static void
test_transport_verdicts(void **state)
{
    size_t            i, server;
    uint64_t          now_ms;
    transport_bed_t  *f = *state;

    server = 0;

    for (i = 0; i < 3; i++) {
        transport_bed_add_port(f, "http", (unsigned) i + 1);
    }

    transport_bed_open(f);
    now_ms = 1000000;
    servers_at(f, now_ms, 0);

    kube_transport_verdict(f->transport, 0, KUBE_SERVER_ANSWERS);
    servers_at(f, now_ms, 0);

    kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);
    servers_at(f, now_ms, 1);
    kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
    servers_at(f, now_ms, 2);

    /* all are bad: the first one to be over; more blame changes nothing */

    kube_transport_verdict(f->transport, 2, KUBE_SERVER_BAD);

    for (i = 0; i < 10; i++) {
        kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);
        kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
        kube_transport_verdict(f->transport, 2, KUBE_SERVER_BAD);
    }

    servers_at(f, now_ms + KUBE_SERVER_FIRST_MS, 2);

    /* a good answer ends it at once */

    now_ms += KUBE_SERVER_FIRST_MS;
    kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);
    kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
    kube_transport_verdict(f->transport, 2, KUBE_SERVER_BAD);
    kube_transport_verdict(f->transport, 1, KUBE_SERVER_ANSWERS);
    servers_at(f, now_ms, 1);

    /* never longer than the ceiling, and that long in the end */

    for (i = 0; i < 10; i++) {
        now_ms += KUBE_SERVER_MAX_MS;
        server = (2 + 2 * i) % 3;
        servers_at(f, now_ms, server);
        kube_transport_verdict(f->transport, server, KUBE_SERVER_BAD);
        kube_transport_verdict(f->transport, (server + 1) % 3, KUBE_SERVER_BAD);
        kube_transport_verdict(f->transport, (server + 2) % 3, KUBE_SERVER_BAD);
    }

    kube_transport_verdict(f->transport, server, KUBE_SERVER_ANSWERS);
    servers_at(f, now_ms + KUBE_SERVER_MAX_MS / 2 - 1, server);

    /* after a pause that is longer than it is passed over it is not the next */

    now_ms += 2 * KUBE_SERVER_MAX_MS;
    server = (server + 2) % 3;
    servers_at(f, now_ms, server);
    kube_transport_verdict(f->transport, server, KUBE_SERVER_BAD);
    servers_at(f, now_ms + 2 * KUBE_SERVER_MAX_MS, (server + 1) % 3);
}


/* Who was well for some minutes is passed over no longer than at first. */
static void
test_transport_was_well(void **state)
{
    size_t            i;
    uint64_t          now_ms;
    transport_bed_t  *f = *state;

    transport_bed_add_port(f, "http", 1);
    transport_bed_add_port(f, "http", 2);
    transport_bed_open(f);
    now_ms = 1000000;

    for (i = 0; i < 10; i++) {
        now_ms += KUBE_SERVER_MAX_MS;
        servers_at(f, now_ms, i != 0);
        kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);
    }

    kube_transport_verdict(f->transport, 0, KUBE_SERVER_ANSWERS);
    now_ms += KUBE_BACKOFF_RESET_MS;
    servers_at(f, now_ms, 1);
    kube_transport_verdict(f->transport, 0, KUBE_SERVER_BAD);

    now_ms += KUBE_SERVER_FIRST_MS;
    servers_at(f, now_ms, 1);
    kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
    servers_at(f, now_ms, 0);
}


/* Some refusals in a row are bad; what is granted starts the count again. */
static void
test_transport_refusals(void **state)
{
    unsigned          i;
    uint64_t          now_ms;
    transport_bed_t  *f = *state;

    transport_bed_add_port(f, "http", 1);
    transport_bed_add_port(f, "http", 2);
    transport_bed_open(f);
    now_ms = 1000000;

    for (i = 0; i < 10; i++) {
        servers_at(f, now_ms, 0);
        kube_transport_verdict(f->transport, 0, KUBE_SERVER_REFUSES);
        now_ms += KUBE_SERVER_FIRST_MS;

        if (i % (KUBE_SERVER_REFUSALS - 1) == 0) {
            kube_transport_verdict(f->transport, 0, KUBE_SERVER_GRANTS);
        }
    }

    /* whoever is first in the line may be the only one who is refused */

    kube_transport_verdict(f->transport, 0, KUBE_SERVER_GRANTS);

    for (i = 0; i < 10 * KUBE_SERVER_REFUSALS; i++) {
        servers_at(f, now_ms, 0);
        kube_transport_verdict(f->transport, 0, KUBE_SERVER_DECLINES);
        now_ms += KUBE_SERVER_FIRST_MS;
    }

    servers_at(f, now_ms, 0);

    /* many scopes refused together are one refusal; a head grants nothing */

    kube_transport_verdict(f->transport, 0, KUBE_SERVER_GRANTS);

    for (i = 0; i < 10 * KUBE_SERVER_REFUSALS - 1; i++) {
        servers_at(f, now_ms + i / 10 * KUBE_SERVER_FIRST_MS, 0);
        kube_transport_verdict(f->transport, 0, KUBE_SERVER_ANSWERS);
        kube_transport_verdict(f->transport, 0, KUBE_SERVER_REFUSES);

        if (i == 10 * (KUBE_SERVER_REFUSALS - 1)) {
            servers_at(f, now_ms + i / 10 * KUBE_SERVER_FIRST_MS, 1);
            break;
        }
    }

    /* and from then on they are counted anew */

    now_ms += 2 * KUBE_SERVER_MAX_MS;
    servers_at(f, now_ms, 1);
    kube_transport_verdict(f->transport, 1, KUBE_SERVER_BAD);
    servers_at(f, now_ms, 0);
    kube_transport_verdict(f->transport, 0, KUBE_SERVER_REFUSES);
    servers_at(f, now_ms, 0);
}


/* One that is given up says nothing, unless it had waited for its head. */
static void
test_transport_silent(void **state)
{
    kube_request_t          request;
    transport_bed_t        *f = *state;
    transport_bed_client_t  a = { .f = f }, b = { .f = f };

    memset(&request, 0, sizeof(request));
    transport_bed_add_port(f, "http", 1);
    transport_bed_add_port(f, "http", 2);
    transport_bed_open(f);

    assert_int_equal(kube_transport_start(f->transport, &request,
                                          &transport_bed_handler, &a, 1000000,
                                          &a.exchange), KUBE_OK);
    assert_int_equal(kube_transport_start(f->transport, &request,
                                          &transport_bed_handler, &b, 1010000,
                                          &b.exchange), KUBE_OK);

    kube_transport_cancel(f->transport, b.exchange);
    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[0]));
    kube_transport_cancel(f->transport, a.exchange);
    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[1]));
}


static bool
serve_and_close(http_bed_t *server, int fd)
{
    if (server->arg != NULL) {
        (void) http_bed_puts(fd, server->arg);
    }

    return false;
}


/* What fails before its head is bad without anybody saying so. */
static void
test_transport_bad_by_itself(void **state)
{
    size_t                    i;
    http_bed_t                bad;
    transport_bed_t          *f = *state;
    transport_bed_client_t    c = { 0 };
    static const char *const  heads[] = {
        NULL, "SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 200 OK\r\nContent-"
    };

    for (i = 0; i < 3; i++) {
        http_bed_start(&bad, NULL, serve_and_close, heads[i]);
        transport_bed_serve(f, http_bed_serve_text,
                            OK_HEAD "Content-Length: 0\r\n\r\n");
        transport_bed_add_port(f, "http", bad.port);
        transport_bed_add_port(f, "http", f->server.port);
        transport_bed_open(f);

        transport_bed_get(f, &c);
        assert_int_equal(c.responses, 0);
        assert_int_equal(c.rc, i == 1 ? KUBE_PROTO : KUBE_CLOSED);
        transport_bed_free(&c);

        transport_bed_get(f, &c);
        assert_int_equal(c.rc, KUBE_OK);
        assert_int_equal(c.server, 1);
        transport_bed_free(&c);

        transport_bed_close(f);
        kube_config_done(&f->config);
        http_bed_stop(&bad);
    }
}


/* Want of descriptors is our fault: no address is to blame. */
static void
test_transport_no_descriptors(void **state)
{
    int                     fd;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };
    struct rlimit           before, none;

    transport_bed_add_port(f, "http", closed_port(&fd));
    transport_bed_add_port(f, "http", 1);
    transport_bed_open(f);
    transport_bed_start(f, &c);

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    transport_bed_step(f);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

    transport_bed_until(f, &c.dones, 1);
    assert_int_equal(c.rc, KUBE_IO);
    assert_non_null(strstr(c.text, "too many open files"));
    assert_true(kube_str_eq(kube_transport_server(f->transport),
                            f->config.servers[0]));

    transport_bed_free(&c);
    close(fd);
}


/* Nobody accepts, and the queue is full: the SYN gets no answer. */
static void
test_transport_connect_timeout(void **state)
{
    int                     fd, other[3];
    size_t                  i;
    uint16_t                port;
    uint64_t                begin_ms;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };
    struct sockaddr_in      in;

    port = closed_port(&fd);
    assert_int_equal(listen(fd, 0), 0);

    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in.sin_port = htons(port);

    for (i = 0; i < 3; i++) {
        other[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          0);
        (void) connect(other[i], (struct sockaddr *) &in, sizeof(in));
    }

    f->connect_timeout_ms = 300;
    transport_bed_add_port(f, "http", port);
    transport_bed_open(f);

    begin_ms = transport_bed_now_ms();
    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    assert_true(transport_bed_now_ms() - begin_ms >= 250);

    transport_bed_free(&c);
    close(fd);

    for (i = 0; i < 3; i++) {
        close(other[i]);
    }
}


static void
test_transport_no_such_name(void **state)
{
    int                     signo;
    sigset_t                before, after;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    f->connect_timeout_ms = 1000;
    assert_int_equal(kube_config_add_server(&f->config,
                                            KUBE_STR("https://kube.invalid"),
                                            NULL), KUBE_OK);
    transport_bed_open(f);

    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &before), 0);
    transport_bed_get(f, &c);
    assert_int_equal(sigprocmask(SIG_BLOCK, NULL, &after), 0);

    assert_int_equal(c.rc, KUBE_CONNECT);

    for (signo = 1; signo < 32; signo++) {
        assert_int_equal(sigismember(&before, signo),
                         sigismember(&after, signo));
    }

    transport_bed_free(&c);
}


static void
test_transport_unix_socket(void **state)
{
    char                    path[64], url[96];
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    snprintf(path, sizeof(path), "/tmp/kube-transport-%d.sock", (int) getpid());
    snprintf(url, sizeof(url), "http://unix:%s", path);

    http_bed_start(&f->server, path, http_bed_serve_text,
                   OK_HEAD "Content-Length: 2\r\n\r\n{}");
    f->serving = true;
    assert_int_equal(kube_config_add_server(&f->config, kube_str(url), NULL),
                     KUBE_OK);
    transport_bed_open(f);
    transport_bed_get(f, &c);

    assert_int_equal(c.rc, KUBE_OK);
    assert_int_equal(c.len, 2);
    assert_true(http_bed_saw(&f->server, "\r\nHost: localhost\r\n"));
    transport_bed_free(&c);
}


/* What libcurl says of one names "localhost port 80". */
static void
test_transport_unix_socket_away(void **state)
{
    int                     fd;
    char                    path[64], url[96], text[96];
    transport_bed_t        *f = *state;
    struct sockaddr_un      un = { .sun_family = AF_UNIX };
    transport_bed_client_t  c = { 0 }, d = { 0 };

    snprintf(path, sizeof(path), "/tmp/kube-transport-%d.gone",
             (int) getpid());
    snprintf(url, sizeof(url), "http://unix:%s", path);
    assert_int_equal(kube_config_add_server(&f->config, kube_str(url), NULL),
                     KUBE_OK);
    transport_bed_open(f);

    transport_bed_get(f, &c);
    assert_int_equal(c.rc, KUBE_CONNECT);
    snprintf(text, sizeof(text), "unix socket %s: no such file", path);
    assert_string_equal(c.text, text);
    transport_bed_free(&c);

    /* bound, but nobody listens */

    snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &un, sizeof(un)), 0);
    transport_bed_get(f, &d);
    (void) close(fd);
    (void) unlink(path);

    assert_int_equal(d.rc, KUBE_CONNECT);
    snprintf(text, sizeof(text), "unix socket %s: connection refused", path);
    assert_string_equal(d.text, text);
    transport_bed_free(&d);
}


static void
test_transport_credentials(void **state)
{
    unsigned                changed;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    transport_bed_serve(f, http_bed_serve_text,
                        OK_HEAD "Content-Length: 0\r\n\r\n");
    transport_bed_open(f);
    transport_bed_get(f, &c);
    transport_bed_free(&c);

    /* a new token is for the next request, over the same connection */

    assert_int_equal(kube_config_set(&f->config, &f->config.token.data,
                                     KUBE_STR("s3cret-2")), KUBE_OK);
    assert_int_equal(kube_credentials_refresh(f->credentials, 2, true,
                                              &changed), KUBE_OK);
    kube_transport_credentials_changed(f->transport, changed);
    transport_bed_get(f, &c);
    assert_true(http_bed_saw(&f->server, "Bearer s3cret-2\r\n"));
    assert_int_equal(http_bed_connections(&f->server), 1);
    transport_bed_free(&c);

    /* a new CA or certificate is for new connections */

    kube_transport_credentials_changed(f->transport,
                                       KUBE_CREDENTIALS_CERTIFICATE);
    transport_bed_get(f, &c);
    assert_int_equal(http_bed_connections(&f->server), 2);
    transport_bed_free(&c);

    /* and without a token no header says anything */

    assert_int_equal(kube_config_set(&f->config, &f->config.token.data,
                                     KUBE_STR_NULL), KUBE_OK);
    assert_int_equal(kube_credentials_refresh(f->credentials, 3, true,
                                              &changed), KUBE_OK);
    transport_bed_get(f, &c);
    assert_false(http_bed_saw(&f->server, "Authorization"));
    transport_bed_free(&c);
}


static bool
serve_nothing(http_bed_t *server, int fd)
{
    (void) server;
    (void) fd;

    return true;
}


/* The options of the one socket that is connected to the server. */
static void
test_transport_keepalive(void **state)
{
    int                       fd, i, value;
    size_t                    seen;
    socklen_t                 len;
    transport_bed_t          *f = *state;
    transport_bed_client_t    c = { 0 };
    struct sockaddr_in        in;
    static const int          want[][2] = {
        { TCP_KEEPIDLE, 4 }, { TCP_KEEPINTVL, 1 }, { TCP_KEEPCNT, 26 },
        { TCP_USER_TIMEOUT, 30000 }, { TCP_NODELAY, 1 },
    };

    transport_bed_serve(f, serve_nothing, NULL);
    transport_bed_open(f);
    transport_bed_start(f, &c);
    transport_bed_until(f, &f->server.requests, 1);

    for (seen = 0, fd = 3; fd < 1024; fd++) {
        len = sizeof(in);

        if (getpeername(fd, (struct sockaddr *) &in, &len) == -1
            || in.sin_family != AF_INET || ntohs(in.sin_port) != f->server.port)
        {
            continue;
        }

        seen++;

        for (i = 0; i < 5; i++) {
            len = sizeof(value);
            assert_int_equal(getsockopt(fd, IPPROTO_TCP, want[i][0], &value,
                                        &len), 0);
            assert_int_equal(value, want[i][1]);
        }

        len = sizeof(value);
        assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value,
                                    &len), 0);
        assert_int_equal(value, 1);
    }

    assert_int_equal(seen, 1);
    kube_transport_cancel(f->transport, c.exchange);
}


/* A descriptor that was closed meanwhile, and the next one of its number. */
static void
test_transport_watch_again(void **state)
{
    int               i, own, pair[2];
    transport_bed_t  *f = *state;
    struct pollfd     pfd;

    transport_bed_serve(f, serve_nothing, NULL);
    transport_bed_open(f);
    own = -1;

    for (i = 0; i < 3; i++) {
        assert_int_equal(pipe(pair), 0);
        assert_true(own == -1 || own == pair[0]);
        own = pair[0];

        kube_transport_watch(f->transport, own);
        assert_int_equal(write(pair[1], "x", 1), 1);

        pfd.fd = kube_transport_fd(f->transport);
        pfd.events = POLLIN;
        assert_int_equal(poll(&pfd, 1, 0), 1);

        assert_int_equal(close(pair[0]), 0);
        assert_int_equal(close(pair[1]), 0);
        kube_transport_watch(f->transport, -1);
        assert_int_equal(poll(&pfd, 1, 0), 0);
    }
}


static void
transport_oom_run(alloc_test_t *at, void *ctx)
{
    kube_rc_t               rc;
    kube_request_t          request;
    kube_log_sink_t         sink = { transport_bed_log, NULL };
    kube_exchange_t        *exchange;
    transport_bed_t        *f = ctx;
    kube_transport_t       *t;
    kube_transport_conf_t   conf;
    transport_bed_client_t  c = { 0 };

    memset(&conf, 0, sizeof(conf));
    memset(&request, 0, sizeof(request));
    conf.config = &f->config;
    conf.credentials = f->credentials;
    conf.connect_timeout_ms = 1000;

    t = kube_transport_create(&at->alloc, &conf, sink);
    if (t == NULL) {
        assert_true(at->failed);
        return;
    }

    rc = kube_transport_start(t, &request, &transport_bed_handler, &c, 1,
                              &exchange);
    alloc_test_assert_rc(at, rc);
    assert_int_equal(rc == KUBE_OK, exchange != NULL);

    kube_transport_destroy(t);
}


static void
test_transport_oom(void **state)
{
    transport_bed_t  *f = *state;

    transport_bed_add_port(f, "http", 1);
    transport_bed_open(f);
    ALLOC_TEST_RUN(transport_oom_run, f);
}


static void
test_transport_bad_start(void **state)
{
    kube_request_t          request;
    kube_exchange_t        *exchange;
    transport_bed_t        *f = *state;
    transport_bed_client_t  c = { 0 };

    transport_bed_add_port(f, "http", 1);
    transport_bed_open(f);

    memset(&request, 0, sizeof(request));
    request.ns = KUBE_STR("..");
    assert_int_equal(kube_transport_start(f->transport, &request,
                                          &transport_bed_handler, &c, 1,
                                          &exchange), KUBE_INVALID);
    assert_null(exchange);
    assert_true(kube_transport_deadline(f->transport) == KUBE_NEVER);
    kube_transport_destroy(NULL);
}


#define TRANSPORT_TEST(name)                                                  \
    cmocka_unit_test_setup_teardown(name, transport_bed_setup,               \
                                    transport_bed_teardown)


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TRANSPORT_TEST(test_transport_request),
        TRANSPORT_TEST(test_transport_late_answer),
        TRANSPORT_TEST(test_transport_late_answer_beside),
        TRANSPORT_TEST(test_transport_unasked_answer),
        TRANSPORT_TEST(test_transport_agent),
        TRANSPORT_TEST(test_transport_answers),
        TRANSPORT_TEST(test_transport_large_head),
        TRANSPORT_TEST(test_transport_retry_after),
        TRANSPORT_TEST(test_transport_redirect),
        TRANSPORT_TEST(test_transport_servers),
        TRANSPORT_TEST(test_transport_verdicts),
        TRANSPORT_TEST(test_transport_was_well),
        TRANSPORT_TEST(test_transport_refusals),
        TRANSPORT_TEST(test_transport_silent),
        TRANSPORT_TEST(test_transport_bad_by_itself),
        TRANSPORT_TEST(test_transport_no_descriptors),
        TRANSPORT_TEST(test_transport_connect_timeout),
        TRANSPORT_TEST(test_transport_no_such_name),
        TRANSPORT_TEST(test_transport_unix_socket),
        TRANSPORT_TEST(test_transport_unix_socket_away),
        TRANSPORT_TEST(test_transport_credentials),
        TRANSPORT_TEST(test_transport_keepalive),
        TRANSPORT_TEST(test_transport_watch_again),
        TRANSPORT_TEST(test_transport_oom),
        TRANSPORT_TEST(test_transport_bad_start),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

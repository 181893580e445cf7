/*
 * Tests of kube_transport over TLS: who is trusted, as whom we come, what is
 * stalled or garbled, and where a proxy stands.
 *
 * The other side is openssl(1) s_server with certificates made for the run.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "transport_bed.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>


#define ARGS_MAX  32


typedef struct {
    transport_bed_t  *f;
    char              dir[64];
    pid_t             pid;        /* s_server; 0: none */
    int               in;         /* what it sends comes from here */
    int               out;
} tls_fixture_t;


static const char *const  tls_files[] = {
    "ca.pem", "ca.key", "other.pem", "other.key", "ip.pem", "ip.key",
    "name.pem", "name.key", "client.pem", "client.key", "old.pem", "old.key",
    "api/v1/services"
};


/* Runs openssl(1) in dir with pipes to and from it (out NULL: to nowhere). */
static pid_t
tls_spawn(const char *dir, const char *const *args, int *in, int *out)
{
    int     fds[2], from[2], null;
    pid_t   pid;
    char   *argv[ARGS_MAX + 2] = { (char *) "openssl" };
    size_t  i;

    for (i = 0; i < ARGS_MAX && args[i] != NULL; i++) {
        argv[i + 1] = (char *) args[i];
    }

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(pipe(from), 0);

    pid = fork();
    assert_true(pid >= 0);

    if (pid == 0) {
        null = open("/dev/null", O_RDWR);

        if (chdir(dir) == 0 && null != -1) {
            (void) dup2(out != NULL ? from[0] : null, 0);
            (void) dup2(out != NULL ? fds[1] : null, 1);
            (void) dup2(null, 2);
            close(fds[0]);
            close(fds[1]);
            close(from[0]);
            close(from[1]);
            (void) execvp(argv[0], argv);
        }

        _exit(127);
    }

    close(fds[1]);
    close(from[0]);

    if (out != NULL) {
        *out = fds[0];
        *in = from[1];

    } else {
        close(fds[0]);
        close(from[1]);
    }

    return pid;
}


static void
tls_run(const char *dir, const char *const *args)
{
    int    status;
    pid_t  pid;

    pid = tls_spawn(dir, args, NULL, NULL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}


/* ca NULL: signed by itself. */
static void
tls_make(const char *dir, const char *name, const char *ca, const char *san)
{
    char         pem[32], key[32], ca_pem[32], ca_key[32], ext[96], cn[32];
    const char  *args[ARGS_MAX] = {
        "req", "-x509", "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-out", pem,
        "-keyout", key, "-subj", cn, "-addext", ext, NULL
    };

    snprintf(pem, sizeof(pem), "%s.pem", name);
    snprintf(key, sizeof(key), "%s.key", name);
    snprintf(cn, sizeof(cn), "/CN=%s", name);
    snprintf(ext, sizeof(ext), "subjectAltName=%s", san);

    if (ca != NULL) {
        snprintf(ca_pem, sizeof(ca_pem), "%s.pem", ca);
        snprintf(ca_key, sizeof(ca_key), "%s.key", ca);
        args[17] = "-CA";
        args[18] = ca_pem;
        args[19] = "-CAkey";
        args[20] = ca_key;
        args[21] = "-addext";
        args[22] = "basicConstraints=critical,CA:FALSE";
    }

    tls_run(dir, args);
}


static const char *
tls_path(const tls_fixture_t *t, const char *name)
{
    static char  path[128];

    snprintf(path, sizeof(path), "%s/%s", t->dir, name);

    return path;
}


static int
tls_group_setup(void **state)
{
    FILE           *file;
    tls_fixture_t  *t;

    t = calloc(1, sizeof(tls_fixture_t));
    assert_non_null(t);

    snprintf(t->dir, sizeof(t->dir), "/tmp/kube-tls-XXXXXX");
    assert_non_null(mkdtemp(t->dir));

    tls_make(t->dir, "ca", NULL, "DNS:ca");
    tls_make(t->dir, "other", NULL, "DNS:other");
    tls_make(t->dir, "ip", "ca", "IP:127.0.0.1,IP:::1");
    tls_make(t->dir, "name", "ca", "DNS:kube.test");
    tls_make(t->dir, "client", "ca", "DNS:client");
    tls_make(t->dir, "old", "other", "IP:127.0.0.1");

    assert_int_equal(mkdir(tls_path(t, "api"), 0700), 0);
    assert_int_equal(mkdir(tls_path(t, "api/v1"), 0700), 0);

    file = fopen(tls_path(t, "api/v1/services"), "w");
    assert_non_null(file);
    fputs("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
          "Connection: close\r\nContent-Length: 2\r\n\r\n{}", file);
    assert_int_equal(fclose(file), 0);

    *state = t;

    return 0;
}


static int
tls_group_teardown(void **state)
{
    size_t          i;
    tls_fixture_t  *t = *state;

    for (i = 0; i < sizeof(tls_files) / sizeof(tls_files[0]); i++) {
        assert_int_equal(unlink(tls_path(t, tls_files[i])), 0);
    }

    assert_int_equal(rmdir(tls_path(t, "api/v1")), 0);
    assert_int_equal(rmdir(tls_path(t, "api")), 0);
    assert_int_equal(rmdir(t->dir), 0);
    free(t);

    return 0;
}


static int
tls_setup(void **state)
{
    void           *f;
    tls_fixture_t  *t = *state;

    assert_int_equal(transport_bed_setup(&f), 0);
    t->f = f;

    return 0;
}


static void
tls_stop(tls_fixture_t *t)
{
    if (t->pid != 0) {
        (void) kill(t->pid, SIGKILL);
        assert_int_equal(waitpid(t->pid, NULL, 0), t->pid);
        t->pid = 0;
        close(t->in);
        close(t->out);
    }
}


static int
tls_teardown(void **state)
{
    void           *f;
    tls_fixture_t  *t = *state;

    tls_stop(t);
    f = t->f;

    return transport_bed_teardown(&f);
}


/* Starts s_server with the certificate; returns its port. */
static unsigned
tls_serve(tls_fixture_t *t, const char *name, const char *const *more)
{
    char         pem[32], key[32], line[256], *colon;
    size_t       i, n;
    unsigned     port;
    const char  *args[ARGS_MAX] = {
        "s_server", "-accept", "127.0.0.1:0", "-cert", pem, "-key", key
    };

    snprintf(pem, sizeof(pem), "%s.pem", name);
    snprintf(key, sizeof(key), "%s.key", name);

    for (i = 0; more[i] != NULL; i++) {
        args[7 + i] = more[i];
    }

    tls_stop(t);
    t->pid = tls_spawn(t->dir, args, &t->in, &t->out);

    n = 0;
    port = 0;

    while (port == 0 && n < sizeof(line) - 1
           && read(t->out, line + n, 1) == 1)
    {
        if (line[n++] == '\n') {
            line[n - 1] = '\0';
            colon = strrchr(line, ':');

            if (strncmp(line, "ACCEPT ", 7) == 0 && colon != NULL) {
                port = (unsigned) strtoul(colon + 1, NULL, 10);
            }

            n = 0;
        }
    }

    assert_true(port != 0);

    return port;
}


static const char *const  tls_http[] = { "-HTTP", NULL };


static void
tls_set(tls_fixture_t *t, kube_str_t *field, const char *name)
{
    assert_int_equal(kube_config_set(&t->f->config, field,
                                     kube_str(tls_path(t, name))), KUBE_OK);
}


static kube_rc_t
tls_get(tls_fixture_t *t)
{
    kube_rc_t               rc;
    transport_bed_client_t  c = { 0 };

    transport_bed_get(t->f, &c);
    rc = c.rc;

    if (rc == KUBE_OK) {
        assert_int_equal(c.code, 200);
        assert_int_equal(c.len, 2);

    } else {
        assert_int_equal(c.responses, 0);
    }

    transport_bed_free(&c);

    return rc;
}


static void
test_tls_trust(void **state)
{
    size_t                i;
    unsigned              port;
    tls_fixture_t        *t = *state;
    static const struct {
        const char  *certificate;
        const char  *ca;               /* "": the system's */
        const char  *server_name;
        bool         verify_off;
        kube_rc_t    rc;
    } cases[] = {
        { "ip",   "ca.pem",    "",          false, KUBE_OK },
        { "ip",   "other.pem", "",          false, KUBE_TLS },
        { "ip",   "",          "",          false, KUBE_TLS },
        { "ip",   "",          "",          true,  KUBE_OK },
        { "ip",   "ip.pem",    "",          false, KUBE_OK },
        { "old",  "ca.pem",    "",          false, KUBE_TLS },
        { "name", "ca.pem",    "",          false, KUBE_TLS },
        { "name", "ca.pem",    "kube.test", false, KUBE_OK },
        { "name", "ca.pem",    "evil.test", false, KUBE_TLS },
        { "name", "other.pem", "kube.test", false, KUBE_TLS },
        { "ip",   "ca.pem",    "kube.test", false, KUBE_TLS },
        { "ip",   "ca.pem",    "::1",       false, KUBE_OK },
        { "ip",   "ca.pem",    "::2",       false, KUBE_TLS },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kube_config_done(&t->f->config);
        port = tls_serve(t, cases[i].certificate, tls_http);
        transport_bed_add_port(t->f, "https", port);

        if (cases[i].ca[0] != '\0') {
            tls_set(t, &t->f->config.ca.path, cases[i].ca);
        }

        t->f->config.tls_verify_off = cases[i].verify_off;
        assert_int_equal(kube_config_set(&t->f->config,
                                         &t->f->config.tls_server_name,
                                         kube_str(cases[i].server_name)),
                         KUBE_OK);

        transport_bed_open(t->f);

        if (tls_get(t) != cases[i].rc) {
            print_error("case %zu\n", i);
            fail();
        }

        transport_bed_close(t->f);
    }
}


static void
test_tls_client_certificate(void **state)
{
    size_t                    i;
    unsigned                  port;
    tls_fixture_t            *t = *state;
    kube_config_t            *c;
    static const char *const  demand[] = {
        "-HTTP", "-Verify", "1", "-verify_return_error", "-CAfile", "ca.pem",
        NULL
    };
    static const struct {
        const char  *certificate;
        const char  *key;
        bool         ok;
    } cases[] = {
        { "client.pem", "client.key", true },
        { NULL, NULL, false },
        { "old.pem", "old.key", false },
        { "client.pem", "old.key", false },
    };

    c = &t->f->config;
    port = tls_serve(t, "ip", demand);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kube_config_done(c);
        transport_bed_add_port(t->f, "https", port);
        tls_set(t, &c->ca.path, "ca.pem");

        if (cases[i].certificate != NULL) {
            tls_set(t, &c->certificate.path, cases[i].certificate);
            tls_set(t, &c->key.path, cases[i].key);
        }

        transport_bed_open(t->f);
        assert_int_equal(tls_get(t) == KUBE_OK, cases[i].ok);
        transport_bed_close(t->f);
    }
}


/* The file changes; the next exchange believes the new one only. */
static void
test_tls_rotation(void **state)
{
    unsigned        changed, port;
    tls_fixture_t  *t = *state;

    port = tls_serve(t, "ip", tls_http);
    transport_bed_add_port(t->f, "https", port);
    tls_set(t, &t->f->config.ca.path, "ca.pem");
    transport_bed_open(t->f);
    assert_false(kube_transport_answered(t->f->transport));
    assert_int_equal(tls_get(t), KUBE_OK);
    assert_true(kube_transport_answered(t->f->transport));

    tls_set(t, &t->f->config.ca.path, "other.pem");
    assert_int_equal(kube_credentials_refresh(t->f->credentials, 2, true,
                                              &changed), KUBE_OK);
    assert_int_equal(changed, KUBE_CREDENTIALS_CA);
    kube_transport_credentials_changed(t->f->transport, changed);
    assert_int_equal(tls_get(t), KUBE_TLS);
    assert_false(kube_transport_answered(t->f->transport));

    tls_set(t, &t->f->config.ca.path, "ca.pem");
    assert_int_equal(kube_credentials_refresh(t->f->credentials, 3, true,
                                              &changed), KUBE_OK);
    kube_transport_credentials_changed(t->f->transport, changed);
    assert_int_equal(tls_get(t), KUBE_OK);
    assert_true(kube_transport_answered(t->f->transport));

    /* a new token is no new CA */
    kube_transport_credentials_changed(t->f->transport,
                                       KUBE_CREDENTIALS_TOKEN);
    assert_true(kube_transport_answered(t->f->transport));
}


static void
test_tls_old_version(void **state)
{
    unsigned                  port;
    tls_fixture_t            *t = *state;
    static const char *const  old[] = {
        "-HTTP", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", NULL
    };

    port = tls_serve(t, "ip", old);
    transport_bed_add_port(t->f, "https", port);
    tls_set(t, &t->f->config.ca.path, "ca.pem");
    transport_bed_open(t->f);
    assert_int_equal(tls_get(t), KUBE_TLS);
}


/* The system's CAs do not stand in for one that was never read. */
static void
test_tls_ca_not_read(void **state)
{
    kube_request_t         request;
    tls_fixture_t         *t = *state;
    kube_log_sink_t        sink = { transport_bed_log, NULL };
    kube_exchange_t       *exchange;
    kube_transport_conf_t  conf;

    transport_bed_add_port(t->f, "https", 1);
    tls_set(t, &t->f->config.ca.path, "none.pem");

    t->f->credentials = kube_credentials_create(&t->f->at.alloc,
                                                &t->f->config, sink);
    assert_non_null(t->f->credentials);

    memset(&conf, 0, sizeof(conf));
    conf.config = &t->f->config;
    conf.credentials = t->f->credentials;
    t->f->transport = kube_transport_create(&t->f->at.alloc, &conf, sink);
    assert_non_null(t->f->transport);

    memset(&request, 0, sizeof(request));
    assert_int_equal(kube_transport_start(t->f->transport, &request,
                                          &transport_bed_handler, NULL, 1,
                                          &exchange), KUBE_INVALID);
}


/*
 * A connection that ends without close_notify is an error to libcurl, as is a
 * chunk that is none: what the socket says tells them apart.
 */
static void
test_tls_cut(void **state)
{
    size_t                    i;
    unsigned                  port;
    tls_fixture_t            *t = *state;
    transport_bed_client_t    c = { 0 };
    static const char *const  raw[] = { "-no_ticket", NULL };
    static const struct {
        const char  *answer;
        bool         kill;
        kube_rc_t    rc;
    } cases[] = {
        { "Content-Length: 9\r\n\r\n{}", true, KUBE_CLOSED },
        { "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", true,
          KUBE_CLOSED },
        { "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n",
          false, KUBE_PROTO },
        { "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
          false, KUBE_OK },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kube_config_done(&t->f->config);
        port = tls_serve(t, "ip", raw);
        transport_bed_add_port(t->f, "https", port);
        tls_set(t, &t->f->config.ca.path, "ca.pem");
        transport_bed_open(t->f);

        assert_true(dprintf(t->in, "HTTP/1.1 200 OK\r\nContent-Type: "
                            "application/json\r\n%s", cases[i].answer) > 0);

        transport_bed_start(t->f, &c);
        transport_bed_until(t->f, &c.pieces, 1);

        if (cases[i].kill) {
            tls_stop(t);
        }

        transport_bed_until(t->f, &c.dones, 1);
        assert_int_equal(c.rc, cases[i].rc);
        assert_int_equal(c.len, 2);

        transport_bed_free(&c);
        transport_bed_close(t->f);
    }
}


typedef struct {
    int          fd;
    const char  *text;       /* said to the one that comes */
    bool         reset;      /* then a reset, not an end */
} tls_rude_t;


/* Accepts one connection, says its piece and goes. */
static void *
tls_be_rude(void *arg)
{
    int          other;
    char         byte;
    tls_rude_t  *rude = arg;

    other = accept(rude->fd, NULL, NULL);

    if (other != -1) {
        (void) http_bed_puts(other, rude->text);

        if (rude->reset) {
            http_bed_reset(other);

        } else {
            (void) shutdown(other, SHUT_WR);

            while (recv(other, &byte, 1, 0) == 1) {
                /* void */
            }
        }

        close(other);
    }

    return NULL;
}


/* Nothing at all in place of a handshake, garbage, the end, a reset. */
static void
test_tls_handshake(void **state)
{
    int                       fd;
    size_t                    i;
    uint64_t                  begin_ms;
    pthread_t                 thread;
    socklen_t                 len;
    kube_rc_t                 rc;
    tls_rude_t                rude;
    tls_fixture_t            *t = *state;
    struct sockaddr_in        in;
    static const char *const  rudes[] = {
        "HTTP/1.1 400 Bad Request\r\n\r\n", "", ""
    };

    /* it accepts, in the kernel, and never says a word */

    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(in);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *) &in, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *) &in, &len), 0);
    assert_int_equal(listen(fd, 16), 0);

    t->f->connect_timeout_ms = 200;
    transport_bed_add_port(t->f, "https", ntohs(in.sin_port));
    transport_bed_open(t->f);

    begin_ms = transport_bed_now_ms();
    assert_int_equal(tls_get(t), KUBE_TIMEOUT);
    assert_in_range(transport_bed_now_ms() - begin_ms, 150, 10000);

    transport_bed_close(t->f);

    /* plain HTTP where TLS is due, the end of the stream, a reset */

    rude.fd = fd;
    t->f->connect_timeout_ms = 10000;
    close(accept(fd, NULL, NULL));

    for (i = 0; i < sizeof(rudes) / sizeof(rudes[0]); i++) {
        rude.text = rudes[i];
        rude.reset = (i == 2);
        assert_int_equal(pthread_create(&thread, NULL, tls_be_rude, &rude), 0);

        transport_bed_open(t->f);
        rc = tls_get(t);

        /* a reset may be seen before the connection is */

        assert_true(rc == KUBE_TLS || (i == 2 && rc == KUBE_CONNECT));

        transport_bed_close(t->f);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }

    close(fd);
}


static bool
serve_reply(http_bed_t *server, int fd)
{
    (void) http_bed_puts(fd, server->arg);

    return false;
}


static void
test_tls_proxy(void **state)
{
    char              url[64];
    tls_fixture_t    *t = *state;
    transport_bed_t  *f;

    f = t->f;

    /* what the environment says does not matter */

    assert_int_equal(setenv("https_proxy", "http://127.0.0.1:1", 1), 0);
    assert_int_equal(setenv("ALL_PROXY", "http://127.0.0.1:1", 1), 0);
    transport_bed_add_port(f, "https", tls_serve(t, "ip", tls_http));
    tls_set(t, &f->config.ca.path, "ca.pem");
    transport_bed_open(f);
    assert_int_equal(tls_get(t), KUBE_OK);
    transport_bed_close(f);

    /* ours is asked, even for loopback, and learns no token */

    assert_int_equal(setenv("no_proxy", "*", 1), 0);
    transport_bed_serve(f, serve_reply, "HTTP/1.1 403 No\r\n"
                        "Content-Length: 0\r\n\r\n");
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", f->server.port);
    assert_int_equal(kube_config_set(&f->config, &f->config.proxy_url,
                                     kube_str(url)), KUBE_OK);
    assert_int_equal(kube_config_set(&f->config, &f->config.token.data,
                                     KUBE_STR("s3cret")), KUBE_OK);
    transport_bed_open(f);
    assert_int_equal(tls_get(t), KUBE_CONNECT);
    assert_true(http_bed_saw(&f->server, "CONNECT 127.0.0.1:"));
    assert_false(http_bed_saw(&f->server, "s3cret"));
    assert_false(http_bed_saw(&f->server, "Authorization"));

    unsetenv("https_proxy");
    unsetenv("ALL_PROXY");
    unsetenv("no_proxy");
}


typedef struct {
    int            fd;
    bool           gssapi;              /* was offered */
    unsigned char  request[5 + 7];      /* of SOCKS5, as far as the name */
} tls_socks_t;


static void *
tls_be_socks(void *arg)
{
    int            other;
    unsigned char  hello[2], methods[255];
    tls_socks_t   *socks = arg;

    other = accept(socks->fd, NULL, NULL);

    if (other != -1) {
        if (recv(other, hello, 2, MSG_WAITALL) == 2
            && recv(other, methods, hello[1], MSG_WAITALL) == hello[1]
            && send(other, "\5\0", 2, MSG_NOSIGNAL) == 2)
        {
            socks->gssapi = (memchr(methods, 1, hello[1]) != NULL);
            (void) recv(other, socks->request, sizeof(socks->request),
                        MSG_WAITALL);
        }

        close(other);
    }

    return NULL;
}


/*
 * As client-go's: it is the proxy that knows where the server's name leads; it
 * is not offered what we cannot do, and is no unix socket.
 */
static void
test_tls_proxy_socks(void **state)
{
    char                url[64];
    pthread_t           thread;
    socklen_t           len;
    tls_socks_t         socks;
    tls_fixture_t      *t = *state;
    struct sockaddr_in  in;

    memset(&socks, 0, sizeof(socks));
    memset(&in, 0, sizeof(in));
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    len = sizeof(in);
    socks.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(socks.fd, (struct sockaddr *) &in, len), 0);
    assert_int_equal(getsockname(socks.fd, (struct sockaddr *) &in, &len), 0);
    assert_int_equal(listen(socks.fd, 16), 0);

    snprintf(url, sizeof(url), "SOCKS5://localhost:%u/path",
             ntohs(in.sin_port));
    assert_int_equal(kube_config_set(&t->f->config, &t->f->config.proxy_url,
                                     kube_str(url)), KUBE_OK);
    assert_int_equal(kube_config_add_server(&t->f->config,
                         KUBE_STR("https://invalid:6443"), NULL), KUBE_OK);
    assert_int_equal(pthread_create(&thread, NULL, tls_be_socks, &socks), 0);

    transport_bed_open(t->f);
    assert_int_not_equal(tls_get(t), KUBE_OK);
    transport_bed_close(t->f);

    /* who resolves the name itself never comes */

    (void) shutdown(socks.fd, SHUT_RDWR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    close(socks.fd);

    assert_memory_equal(socks.request, "\5\1\0\3\7invalid", 12);
    assert_false(socks.gssapi);
}


/*
 * Where it was looked for is in the text, as nobody is there to answer; or some
 * web server of this host is, and takes no CONNECT.
 */
static void
test_tls_proxy_port(void **state)
{
    tls_fixture_t           *t = *state;
    transport_bed_client_t   c = { 0 };

    assert_int_equal(kube_config_set(&t->f->config, &t->f->config.proxy_url,
                                     KUBE_STR("http://127.0.0.83/")), KUBE_OK);
    assert_int_equal(kube_config_add_server(&t->f->config,
                         KUBE_STR("https://10.0.0.1:6443"), NULL), KUBE_OK);

    transport_bed_open(t->f);
    transport_bed_get(t->f, &c);

    if (strstr(c.text, "127.0.0.83 port 80 ") == NULL
        && strstr(c.text, "CONNECT") == NULL)
    {
        print_error("%s\n", c.text);
        fail();
    }

    transport_bed_free(&c);
    transport_bed_close(t->f);
}


#define TLS_TEST(name)                                                        \
    cmocka_unit_test_setup_teardown(name, tls_setup, tls_teardown)


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TLS_TEST(test_tls_trust),
        TLS_TEST(test_tls_client_certificate),
        TLS_TEST(test_tls_rotation),
        TLS_TEST(test_tls_old_version),
        TLS_TEST(test_tls_ca_not_read),
        TLS_TEST(test_tls_cut),
        TLS_TEST(test_tls_handshake),
        TLS_TEST(test_tls_proxy),
        TLS_TEST(test_tls_proxy_socks),
        TLS_TEST(test_tls_proxy_port),
    };

    return cmocka_run_group_tests(tests, tls_group_setup, tls_group_teardown);
}

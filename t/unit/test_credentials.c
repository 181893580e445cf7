/*
 * Tests of kube_credentials: what is read when, what replaces what, and that
 * nothing bad ever does.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"

#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kube_credentials.h"
#include "kube_limits.h"


#define PEM_A  "-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----"
#define PEM_B  "-----BEGIN CERTIFICATE-----\nB\n-----END CERTIFICATE-----"

#define TOKEN        KUBE_CREDENTIALS_TOKEN
#define CA           KUBE_CREDENTIALS_CA
#define CERTIFICATE  KUBE_CREDENTIALS_CERTIFICATE


typedef struct {
    alloc_test_t         at;
    char                 dir[64];
    char                 token[96];
    char                 ca[96];
    char                 certificate[96];
    char                 key[96];
    kube_config_t        config;
    kube_credentials_t  *credentials;
    size_t               lines;
    char                 line[KUBE_LOG_LINE_MAX];
} credentials_fixture_t;


static void
credentials_write_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    credentials_fixture_t  *f = ctx;

    assert_true(level == KUBE_LOG_ERROR || level == KUBE_LOG_WARN);
    assert_int_equal(id, KUBE_EV_CREDENTIALS);

    f->lines++;
    snprintf(f->line, sizeof(f->line), "%s", line);
}


static mode_t  credentials_file_mode = 0600;


static void
credentials_write(const char *path, const char *data, size_t len)
{
    char   other[128];
    FILE  *file;

    /* as the kubelet does it: the name changes over in one step */

    snprintf(other, sizeof(other), "%s.new", path);

    file = fopen(other, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fchmod(fileno(file), credentials_file_mode), 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(other, path), 0);
}


static void
credentials_put(const char *path, const char *text)
{
    credentials_write(path, text, strlen(text));
}


static int
credentials_setup(void **state)
{
    kube_log_sink_t         sink;
    credentials_fixture_t  *f;

    f = calloc(1, sizeof(credentials_fixture_t));
    assert_non_null(f);

    alloc_test_init(&f->at);

    snprintf(f->dir, sizeof(f->dir), "/tmp/kube-credentials-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->token, sizeof(f->token), "%s/token", f->dir);
    snprintf(f->ca, sizeof(f->ca), "%s/ca", f->dir);
    snprintf(f->certificate, sizeof(f->certificate), "%s/crt", f->dir);
    snprintf(f->key, sizeof(f->key), "%s/key", f->dir);

    kube_config_init(&f->config, &f->at.alloc);
    assert_int_equal(kube_config_set(&f->config, &f->config.token.path,
                                     kube_str(f->token)), KUBE_OK);

    sink.write = credentials_write_log;
    sink.ctx = f;

    f->credentials = kube_credentials_create(&f->at.alloc, &f->config, sink);
    assert_non_null(f->credentials);

    *state = f;

    return 0;
}


static int
credentials_teardown(void **state)
{
    credentials_fixture_t  *f = *state;

    kube_credentials_destroy(f->credentials);
    kube_credentials_destroy(NULL);
    kube_config_done(&f->config);
    alloc_test_assert_no_leak(&f->at);

    (void) unlink(f->token);
    (void) unlink(f->ca);
    (void) unlink(f->certificate);
    (void) unlink(f->key);
    assert_int_equal(rmdir(f->dir), 0);
    free(f);

    return 0;
}


static void
credentials_expect(credentials_fixture_t *f, uint64_t now_ms, bool force,
    kube_rc_t rc, unsigned changed, const char *token)
{
    unsigned    got;
    kube_str_t  s;

    assert_int_equal(kube_credentials_refresh(f->credentials, now_ms, force,
                                              &got), rc);
    assert_int_equal(got, changed);

    s = kube_credentials_get(f->credentials, KUBE_CREDENTIAL_TOKEN);

    if (!kube_str_eq(s, kube_str(token))) {
        print_error("token of %zu bytes, not \"%s\"\n", s.len, token);
        fail();
    }
}


static void
test_credentials_token(void **state)
{
    credentials_fixture_t  *f = *state;

    credentials_put(f->token, " \n first\r\n\t");
    credentials_expect(f, 1000, false, KUBE_OK, TOKEN, "first");

    /* read again after the period, or when forced, not before */

    credentials_put(f->token, "second");
    credentials_expect(f, 1000 + KUBE_CREDENTIALS_PERIOD_MS - 1, false,
                       KUBE_OK, 0, "first");
    credentials_expect(f, 1000 + KUBE_CREDENTIALS_PERIOD_MS, false, KUBE_OK,
                       TOKEN, "second");

    credentials_put(f->token, "third");
    credentials_expect(f, 1001 + KUBE_CREDENTIALS_PERIOD_MS, false, KUBE_OK, 0,
                       "second");
    credentials_expect(f, 1001 + KUBE_CREDENTIALS_PERIOD_MS, true, KUBE_OK,
                       TOKEN, "third");
    credentials_expect(f, 1002 + KUBE_CREDENTIALS_PERIOD_MS, true, KUBE_OK, 0,
                       "third");

    assert_int_equal(f->lines, 0);
}


/* The remedy that is said holds the text; NULL: none is. */
static void
credentials_remedy_is(credentials_fixture_t *f, const char *text)
{
    const char  *remedy;

    remedy = kube_credentials_remedy(f->credentials, KUBE_NO_CREDENTIALS);

    if (text == NULL || remedy == NULL) {
        assert_ptr_equal(text, remedy);
        return;
    }

    if (strstr(remedy, text) == NULL) {
        print_error("\"%s\" has no \"%s\"\n", remedy, text);
        fail();
    }
}


/* What cannot be read as root is read as somebody else. */
static void
credentials_remedy_denied(credentials_fixture_t *f)
{
    bool  root;

    root = (geteuid() == 0);
    credentials_put(f->token, "token");
    assert_int_equal(chmod(f->token, 0), 0);
    assert_true(!root || seteuid(65534) == 0);
    credentials_expect(f, 1, true, KUBE_IO, 0, "");
    assert_true(!root || seteuid(0) == 0);
    credentials_remedy_is(f, "let nginx's \"user\" read");
    assert_int_equal(unlink(f->token), 0);
}


static void
credentials_remedy_descriptors(credentials_fixture_t *f)
{
    struct rlimit  limit, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    credentials_expect(f, 1, true, KUBE_IO, 0, "");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    credentials_remedy_is(f, "worker_rlimit_nofile");
}


/* What helps is said of what is wrong: nobody is sent to another file. */
static void
test_credentials_remedy(void **state)
{
    kube_str_t              path;
    credentials_fixture_t  *f = *state;

    credentials_expect(f, 1, true, KUBE_IO, 0, "");
    credentials_remedy_is(f, "create the file");
    credentials_remedy_descriptors(f);
    credentials_remedy_denied(f);

    assert_int_equal(mkdir(f->token, 0700), 0);
    credentials_expect(f, 1, true, KUBE_IO, 0, "");
    credentials_remedy_is(f, "name the file itself");
    assert_int_equal(rmdir(f->token), 0);

    path = f->config.token.path;
    f->config.token.path = KUBE_STR(KUBE_SERVICE_ACCOUNT_DIR "/none-such");
    credentials_expect(f, 1, true, KUBE_IO, 0, "");
    credentials_remedy_is(f, "automountServiceAccountToken");
    f->config.token.path = path;

    credentials_put(f->token, "");
    credentials_expect(f, 1, true, KUBE_INVALID, 0, "");
    credentials_remedy_is(f, "write anew");

    credentials_put(f->token, "good");
    credentials_expect(f, 1, true, KUBE_OK, TOKEN, "good");
    credentials_remedy_is(f, NULL);
}


/* Where no CA is named there is none to compare the certificate with. */
static void
test_credentials_remedy_tls(void **state)
{
    const char             *remedy;
    credentials_fixture_t  *f = *state;

    remedy = kube_credentials_remedy(f->credentials, KUBE_TLS);
    assert_non_null(remedy);
    assert_non_null(strstr(remedy, "name the server's CA"));
    assert_null(kube_credentials_remedy(f->credentials, KUBE_CONNECT));

    f->config.tls_verify_off = true;
    assert_null(kube_credentials_remedy(f->credentials, KUBE_TLS));
    f->config.tls_verify_off = false;

    assert_int_equal(kube_config_set(&f->config, &f->config.ca.path,
                                     kube_str(f->ca)), KUBE_OK);
    assert_null(kube_credentials_remedy(f->credentials, KUBE_TLS));
}


static void
test_credentials_bad_token(void **state)
{
    char                   *large;
    size_t                  i;
    uint64_t                now_ms;
    credentials_fixture_t  *f = *state;
    static const struct {
        const char  *data;
        size_t       len;
    } bad[] = {
        { "", 0 }, { " \n", 2 }, { "a\r\nX-Evil: 1", 12 }, { "a b", 3 },
        { "a\0b", 3 }, { "\0", 1 }, { "t\xc3\xa4", 3 }, { "a\x7f", 2 },
        { "a\x01", 2 }, { "a\tb", 3 },
    };

    /* never readable: whoever has no request sent is told why */

    credentials_expect(f, 1, false, KUBE_IO, 0, "");
    assert_int_equal(f->lines, 0);
    assert_non_null(strstr(kube_credentials_why(f->credentials), f->token));
    assert_non_null(strstr(kube_credentials_why(f->credentials),
                           "no such file"));

    credentials_put(f->token, "");
    credentials_expect(f, 2, false, KUBE_INVALID, 0, "");
    assert_non_null(strstr(kube_credentials_why(f->credentials), "empty"));
    credentials_put(f->token, "good-token");
    credentials_expect(f, 3, false, KUBE_OK, TOKEN, "good-token");
    assert_string_equal(kube_credentials_why(f->credentials), "");

    now_ms = 100000;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        credentials_write(f->token, bad[i].data, bad[i].len);
        f->lines = 0;
        now_ms += KUBE_CREDENTIALS_PERIOD_MS;

        credentials_expect(f, now_ms, false, KUBE_OK, 0, "good-token");
        assert_int_equal(f->lines, 1);
        assert_non_null(strstr(f->line, "last good"));
        assert_null(strstr(f->line, "good-token"));

        credentials_expect(f, now_ms, true, KUBE_OK, 0, "good-token");
        assert_int_equal(f->lines, 1);

        credentials_put(f->token, "good-token");
        credentials_expect(f, now_ms, true, KUBE_OK, 0, "good-token");
    }

    large = malloc(KUBE_TOKEN_BYTES_MAX + 1);
    assert_non_null(large);
    memset(large, 'a', KUBE_TOKEN_BYTES_MAX + 1);
    credentials_write(f->token, large, KUBE_TOKEN_BYTES_MAX + 1);
    credentials_expect(f, now_ms, true, KUBE_OK, 0, "good-token");
    free(large);

    assert_int_equal(unlink(f->token), 0);
    credentials_expect(f, now_ms, true, KUBE_OK, 0, "good-token");

    /* nobody writes to it: a blocking open would hang here */
    assert_int_equal(mkfifo(f->token, 0600), 0);
    credentials_expect(f, now_ms, true, KUBE_OK, 0, "good-token");

    assert_int_equal(unlink(f->token), 0);
    assert_int_equal(mkdir(f->token, 0700), 0);
    credentials_expect(f, now_ms, true, KUBE_OK, 0, "good-token");
    assert_int_equal(rmdir(f->token), 0);

    credentials_put(f->token, "back");
    credentials_expect(f, now_ms, true, KUBE_OK, TOKEN, "back");
}


/* A secret that all may read is said once; what is public is not. */
static void
test_credentials_mode(void **state)
{
    unsigned                i;
    credentials_fixture_t  *f = *state;

    credentials_file_mode = 0640;
    credentials_put(f->token, "first");
    credentials_expect(f, 1, true, KUBE_OK, TOKEN, "first");
    assert_int_equal(f->lines, 0);

    credentials_file_mode = 0644;

    for (i = 0; i < 3; i++) {
        credentials_put(f->token, i % 2 ? "second" : "third");
        credentials_expect(f, 100000 * (i + 1), true, KUBE_OK, TOKEN,
                           i % 2 ? "second" : "third");
        assert_int_equal(f->lines, 1);
    }

    credentials_file_mode = 0600;

    assert_non_null(strstr(f->line, "all users"));
    assert_non_null(strstr(f->line, f->token));
    assert_null(strstr(f->line, "third"));
}


/* The same is said once, however often the files are read. */
static void
test_credentials_log_is_limited(void **state)
{
    uint64_t                now_ms;
    credentials_fixture_t  *f = *state;

    credentials_put(f->token, "good-token");
    credentials_expect(f, 1, false, KUBE_OK, TOKEN, "good-token");
    assert_int_equal(unlink(f->token), 0);

    for (now_ms = 1000; now_ms < 1000 + 3 * KUBE_LOG_PERIOD_MS; now_ms += 100) {
        credentials_expect(f, now_ms, true, KUBE_OK, 0, "good-token");
    }

    assert_int_equal(f->lines, 1);
}


static void
test_credentials_link_swap(void **state)
{
    char                    one[128], two[128];
    credentials_fixture_t  *f = *state;

    snprintf(one, sizeof(one), "%s.1", f->token);
    snprintf(two, sizeof(two), "%s.2", f->token);
    credentials_put(one, "one");
    credentials_put(two, "two");

    assert_int_equal(symlink(one, f->token), 0);
    credentials_expect(f, 1, true, KUBE_OK, TOKEN, "one");

    assert_int_equal(unlink(f->token), 0);
    credentials_expect(f, 2, true, KUBE_OK, 0, "one");
    assert_int_equal(symlink(two, f->token), 0);
    credentials_expect(f, 3, true, KUBE_OK, TOKEN, "two");

    assert_int_equal(unlink(one), 0);
    assert_int_equal(unlink(two), 0);
}


static void
credentials_use_tls(credentials_fixture_t *f)
{
    kube_config_t  *c = &f->config;

    assert_int_equal(kube_config_set(c, &c->token.path, KUBE_STR_NULL),
                     KUBE_OK);
    assert_int_equal(kube_config_set(c, &c->ca.path, kube_str(f->ca)),
                     KUBE_OK);
    assert_int_equal(kube_config_set(c, &c->certificate.path,
                                     kube_str(f->certificate)), KUBE_OK);
    assert_int_equal(kube_config_set(c, &c->key.path, kube_str(f->key)),
                     KUBE_OK);
}


static void
credentials_assert_one(credentials_fixture_t *f, kube_credential_t which,
    const char *value)
{
    assert_true(kube_str_eq(kube_credentials_get(f->credentials, which),
                            kube_str(value)));
}


static void
credentials_assert_tls(credentials_fixture_t *f, const char *ca,
    const char *certificate, const char *key)
{
    credentials_assert_one(f, KUBE_CREDENTIAL_CA, ca);
    credentials_assert_one(f, KUBE_CREDENTIAL_CERTIFICATE, certificate);
    credentials_assert_one(f, KUBE_CREDENTIAL_KEY, key);
}


static void
test_credentials_tls(void **state)
{
    credentials_fixture_t  *f = *state;

    credentials_use_tls(f);
    credentials_put(f->ca, PEM_A "\n");
    credentials_put(f->certificate, PEM_A);
    credentials_expect(f, 1, false, KUBE_IO, CA, "");
    credentials_assert_tls(f, PEM_A, "", "");

    credentials_put(f->key, PEM_A);
    credentials_expect(f, 2, false, KUBE_OK, CERTIFICATE, "");
    credentials_assert_tls(f, PEM_A, PEM_A, PEM_A);

    /* the pair is replaced together or not at all */

    credentials_put(f->certificate, PEM_B);
    credentials_put(f->key, "garbage");
    credentials_expect(f, 3, true, KUBE_OK, 0, "");
    credentials_assert_tls(f, PEM_A, PEM_A, PEM_A);
    credentials_put(f->certificate, "garbage");
    credentials_put(f->key, PEM_B);
    credentials_expect(f, 3, true, KUBE_OK, 0, "");
    credentials_assert_tls(f, PEM_A, PEM_A, PEM_A);
    credentials_put(f->certificate, PEM_B);

    credentials_put(f->key, PEM_B);
    credentials_put(f->ca, PEM_B);
    credentials_expect(f, 4, true, KUBE_OK, CA | CERTIFICATE, "");
    credentials_assert_tls(f, PEM_B, PEM_B, PEM_B);

    credentials_put(f->ca, "");
    credentials_expect(f, 5, true, KUBE_OK, 0, "");
    credentials_put(f->ca, "----BEGIN no");
    credentials_expect(f, 6, true, KUBE_OK, 0, "");
    credentials_assert_tls(f, PEM_B, PEM_B, PEM_B);

    /* only the key's bytes differ */
    credentials_put(f->key, PEM_A);
    credentials_expect(f, 7, true, KUBE_OK, CERTIFICATE, "");
}


/* Inline PEM wins over a file, a token file over an inline token. */
static void
test_credentials_inline(void **state)
{
    kube_config_t          *c;
    credentials_fixture_t  *f = *state;

    c = &f->config;

    assert_int_equal(kube_config_set(c, &c->token.data, KUBE_STR("inline")),
                     KUBE_OK);
    assert_int_equal(kube_config_set(c, &c->ca.data, KUBE_STR(PEM_A)),
                     KUBE_OK);
    assert_int_equal(kube_config_set(c, &c->ca.path, KUBE_STR("/none")),
                     KUBE_OK);

    credentials_put(f->token, "file");
    credentials_expect(f, 1, false, KUBE_OK, TOKEN | CA, "file");
    credentials_assert_tls(f, PEM_A, "", "");

    assert_int_equal(kube_config_set(c, &c->token.path, KUBE_STR_NULL),
                     KUBE_OK);
    credentials_expect(f, 2, true, KUBE_OK, TOKEN, "inline");
}


/* Without its file an inline token serves, until the file has been read. */
static void
test_credentials_inline_instead(void **state)
{
    kube_config_t          *c;
    credentials_fixture_t  *f = *state;

    c = &f->config;

    assert_int_equal(kube_config_set(c, &c->token.data, KUBE_STR("inline")),
                     KUBE_OK);

    credentials_expect(f, 1, false, KUBE_OK, TOKEN, "inline");
    assert_int_equal(f->lines, 1);
    assert_non_null(strstr(f->line, "no such file"));
    assert_non_null(strstr(f->line, "inline one is used"));

    credentials_put(f->token, "");
    credentials_expect(f, 2, true, KUBE_OK, 0, "inline");
    credentials_put(f->token, "a b");
    credentials_expect(f, 3, true, KUBE_OK, 0, "inline");

    credentials_put(f->token, "file");
    credentials_expect(f, 4, true, KUBE_OK, TOKEN, "file");

    /* client-go's source of tokens keeps the last good one, too */

    assert_int_equal(unlink(f->token), 0);
    credentials_expect(f, KUBE_LOG_PERIOD_MS + 5, true, KUBE_OK, 0, "file");
    assert_non_null(strstr(f->line, "last good"));
}


static void
credentials_ignore_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    (void) ctx;
    (void) level;
    (void) id;
    (void) line;
}


static void
credentials_oom_run(alloc_test_t *at, void *ctx)
{
    unsigned                changed;
    kube_rc_t               rc;
    kube_str_t              token;
    kube_log_sink_t         sink;
    kube_credentials_t     *c;
    credentials_fixture_t  *f = ctx;

    sink.write = credentials_ignore_log;
    sink.ctx = NULL;

    credentials_put(f->token, "one");

    c = kube_credentials_create(&at->alloc, &f->config, sink);
    if (c == NULL) {
        assert_true(at->failed);
        return;
    }

    rc = kube_credentials_refresh(c, 1, true, &changed);
    alloc_test_assert_rc(at, rc);

    credentials_put(f->token, "two");

    if (rc == KUBE_OK) {
        assert_int_equal(kube_credentials_refresh(c, 2, true, &changed),
                         KUBE_OK);
        token = kube_credentials_get(c, KUBE_CREDENTIAL_TOKEN);

        /* what could not be read leaves the one before */
        assert_true(kube_str_eq(token, KUBE_STR("two"))
                    || (at->failed && kube_str_eq(token, KUBE_STR("one"))));
        assert_int_equal(!!(changed & TOKEN),
                         kube_str_eq(token, KUBE_STR("two")));
    }

    kube_credentials_destroy(c);
}


static void
test_credentials_oom(void **state)
{
    kube_config_t          *c;
    credentials_fixture_t  *f = *state;

    c = &f->config;
    credentials_use_tls(f);
    assert_int_equal(kube_config_set(c, &c->token.path, kube_str(f->token)),
                     KUBE_OK);

    credentials_put(f->ca, PEM_A);
    credentials_put(f->certificate, PEM_A);
    credentials_put(f->key, PEM_A);

    ALLOC_TEST_RUN(credentials_oom_run, f);
}


/* An exec plugin: a shell that prints what the file "token" holds. */

#define EXEC_HEAD  "{\"kind\":\"ExecCredential\",\"apiVersion\":"            \
                   "\"client.authentication.k8s.io/v1\",\"status\":{\"token\":"


static void
credentials_plugin(credentials_fixture_t *f)
{
    char               script[256];
    kube_log_sink_t    sink;
    kube_exec_conf_t  *exec = &f->config.exec;

    snprintf(script, sizeof(script), "cat %s", f->token);

    assert_int_equal(kube_config_set(&f->config, &f->config.token.path,
                                     KUBE_STR_NULL), KUBE_OK);
    assert_int_equal(kube_config_set(&f->config, &exec->command,
                                     KUBE_STR("sh")), KUBE_OK);
    assert_int_equal(kube_config_set(&f->config, &exec->api_version,
                         KUBE_STR("client.authentication.k8s.io/v1")),
                     KUBE_OK);
    assert_int_equal(kube_config_set(&f->config, &exec->args[0],
                                     KUBE_STR("-c")), KUBE_OK);
    assert_int_equal(kube_config_set(&f->config, &exec->args[1],
                                     kube_str(script)), KUBE_OK);
    exec->args_n = 2;

    assert_int_equal(kube_config_add_server(&f->config,
                         KUBE_STR("https://api.example"), NULL), KUBE_OK);

    kube_credentials_destroy(f->credentials);

    sink.write = credentials_write_log;
    sink.ctx = f;

    f->credentials = kube_credentials_create(&f->at.alloc, &f->config, sink);
    assert_non_null(f->credentials);
}


/* Waits for the plugin's word at that time of ours. */
static void
credentials_hear(credentials_fixture_t *f, uint64_t now_ms)
{
    struct pollfd  pfd;

    while (!kube_credentials_poll(f->credentials, now_ms)) {
        pfd.fd = kube_credentials_fd(f->credentials);
        pfd.events = POLLIN;

        assert_int_not_equal(pfd.fd, -1);
        assert_int_equal(poll(&pfd, 1, 60000), 1);
    }

    assert_int_equal(kube_credentials_fd(f->credentials), -1);
}


static void
test_credentials_exec(void **state)
{
    char                    text[256], ends[64];
    time_t                  then;
    uint64_t                due_ms;
    credentials_fixture_t  *f = *state;

    credentials_plugin(f);
    assert_int_equal(kube_credentials_fd(f->credentials), -1);

    /* not there at first: nothing can be sent, and it is asked again */

    credentials_expect(f, 1000, false, KUBE_AGAIN, 0, "");
    credentials_hear(f, 1000);
    credentials_expect(f, 1001, false, KUBE_IO, 0, "");
    assert_int_equal(kube_credentials_fd(f->credentials), -1);
    assert_non_null(strstr(kube_credentials_why(f->credentials),
                           "exec plugin \"sh\": it exited with code 1"));
    credentials_remedy_is(f, "run the exec plugin");
    assert_int_equal(f->lines, 0);

    due_ms = kube_credentials_due(f->credentials);
    assert_int_equal(due_ms, 2000);

    /* its word holds until a tenth of its lifetime is left */

    then = time(NULL) + 1000;
    assert_int_not_equal(strftime(ends, sizeof(ends), "%Y-%m-%dT%H:%M:%SZ",
                                  gmtime(&then)), 0);
    snprintf(text, sizeof(text), EXEC_HEAD
             "\"one\",\"expirationTimestamp\":\"%s\"}}", ends);
    credentials_put(f->token, text);

    credentials_expect(f, due_ms, false, KUBE_AGAIN, 0, "");
    credentials_hear(f, due_ms);
    credentials_expect(f, due_ms + 1, false, KUBE_OK, TOKEN, "one");

    due_ms = kube_credentials_due(f->credentials);
    assert_in_range(due_ms, 2000 + 930 * 1000, 2000 + 940 * 1000);

    credentials_put(f->token, EXEC_HEAD "\"two\"}}");
    credentials_expect(f, due_ms - 1, false, KUBE_OK, 0, "one");
    assert_int_equal(kube_credentials_fd(f->credentials), -1);

    /* the old one serves while the plugin runs */

    credentials_expect(f, due_ms, false, KUBE_OK, 0, "one");
    credentials_hear(f, due_ms);
    credentials_expect(f, due_ms + 1, false, KUBE_OK, TOKEN, "two");
    assert_true(kube_credentials_due(f->credentials) == KUBE_NEVER);

    /* refused: it is asked, though not twice in a second */

    credentials_put(f->token, EXEC_HEAD "\"three\"}}");
    credentials_expect(f, due_ms + 2, true, KUBE_OK, 0, "two");
    assert_int_equal(kube_credentials_fd(f->credentials), -1);
    assert_int_equal(kube_credentials_due(f->credentials), due_ms + 1000);
    credentials_expect(f, due_ms + 1000, false, KUBE_OK, 0, "two");
    credentials_hear(f, due_ms + 1000);
    credentials_expect(f, due_ms + 1001, false, KUBE_OK, TOKEN, "three");
    assert_int_equal(f->lines, 0);

    /* once is enough */

    assert_true(kube_credentials_due(f->credentials) == KUBE_NEVER);
    credentials_expect(f, due_ms + 8000, false, KUBE_OK, 0, "three");
    assert_int_equal(kube_credentials_fd(f->credentials), -1);

    /* a failure leaves it in place, and is said once */

    assert_int_equal(unlink(f->token), 0);
    credentials_expect(f, due_ms + 9000, true, KUBE_OK, 0, "three");
    credentials_hear(f, due_ms + 9000);
    credentials_expect(f, due_ms + 9001, false, KUBE_OK, 0, "three");
    assert_int_equal(f->lines, 1);
    assert_non_null(strstr(f->line, "stays in use"));
    assert_null(strstr(f->line, "three"));

    /* the failures before its word are forgotten: it waits one second again */

    credentials_expect(f, due_ms + 9002, true, KUBE_OK, 0, "three");
    assert_int_equal(kube_credentials_due(f->credentials), due_ms + 10000);

    credentials_expect(f, due_ms + 99000, true, KUBE_OK, 0, "three");
    credentials_hear(f, due_ms + 99000);
    credentials_expect(f, due_ms + 99001, false, KUBE_OK, 0, "three");
    assert_int_equal(f->lines, 1);
}


#define EXEC_CRT  "-----BEGIN CERTIFICATE-----\\nA\\n"                         \
                  "-----END CERTIFICATE-----"
#define EXEC_KEY(text)                                                        \
    "-----BEGIN PRIVATE KEY-----\\n" text "\\n-----END PRIVATE KEY-----"


/* A new key is a new certificate, and none where both are what they were. */
static void
test_credentials_exec_key(void **state)
{
    size_t                  i;
    uint64_t                now_ms;
    credentials_fixture_t  *f = *state;

    static const struct {
        const char  *text;
        unsigned     changed;
    } cases[] = {
        { EXEC_HEAD "\"t\",\"clientCertificateData\":\"" EXEC_CRT
          "\",\"clientKeyData\":\"" EXEC_KEY("B") "\"}}",
          TOKEN | KUBE_CREDENTIALS_CERTIFICATE },
        { EXEC_HEAD "\"t\",\"clientCertificateData\":\"" EXEC_CRT
          "\",\"clientKeyData\":\"" EXEC_KEY("B") "\"}}", 0 },
        { EXEC_HEAD "\"t\",\"clientCertificateData\":\"" EXEC_CRT
          "\",\"clientKeyData\":\"" EXEC_KEY("C") "\"}}",
          KUBE_CREDENTIALS_CERTIFICATE },
    };

    credentials_plugin(f);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        now_ms = 1000 + 10000 * i;
        credentials_put(f->token, cases[i].text);
        credentials_expect(f, now_ms, true, i == 0 ? KUBE_AGAIN : KUBE_OK, 0,
                           i == 0 ? "" : "t");
        credentials_hear(f, now_ms);
        credentials_expect(f, now_ms + 1, false, KUBE_OK, cases[i].changed,
                           "t");
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_credentials_token,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_remedy,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_remedy_tls,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_bad_token,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_mode,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_log_is_limited,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_link_swap,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_tls,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_inline,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_inline_instead,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_oom,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_exec,
                                        credentials_setup,
                                        credentials_teardown),
        cmocka_unit_test_setup_teardown(test_credentials_exec_key,
                                        credentials_setup,
                                        credentials_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

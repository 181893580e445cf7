/*
 * Tests of kube_config: addresses, the in-cluster source, kubeconfig files
 * good and hostile, checks, and every allocation failing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kube_config.h"
#include "kube_limits.h"


/* base64 of "-----BEGIN CERTIFICATE-----\nx\n" */
#define PEM64  "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCngK"
#define PEM    "-----BEGIN CERTIFICATE-----\nx\n"

/* A kubeconfig around a cluster's and a user's members. */
#define AROUND(cluster, user)                                                 \
    "apiVersion: v1\nkind: Config\ncurrent-context: one\n"                    \
    "clusters:\n- name: c\n  cluster: " cluster "\n"                          \
    "users:\n- name: u\n  user: " user "\n"                                   \
    "contexts:\n- name: one\n  context: {cluster: c, user: u}\n"

#define SERVER  "server: 'https://10.0.0.1:6443'"

/* Parts of a login by a program. */
#define V1      "apiVersion: client.authentication.k8s.io/v1"
#define NEVER   "interactiveMode: Never"
#define EXEC    "exec: {command: x, " V1 ", " NEVER


typedef struct {
    alloc_test_t   at;
    char           dir[64];
    char           path[96];
    kube_config_t  config;
} config_fixture_t;

typedef struct {
    const char  *text;
    kube_rc_t    rc;
    const char  *what;     /* a part of error->what */
} config_bad_t;


static int
config_setup(void **state)
{
    config_fixture_t  *f;

    f = calloc(1, sizeof(config_fixture_t));
    assert_non_null(f);

    alloc_test_init(&f->at);

    snprintf(f->dir, sizeof(f->dir), "/tmp/kube-config-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/kubeconfig", f->dir);

    kube_config_init(&f->config, &f->at.alloc);

    *state = f;

    return 0;
}


static int
config_teardown(void **state)
{
    config_fixture_t  *f = *state;

    kube_config_done(&f->config);
    kube_config_done(&f->config);
    alloc_test_assert_no_leak(&f->at);

    (void) unlink(f->path);
    assert_int_equal(rmdir(f->dir), 0);
    free(f);

    return 0;
}


static void
config_write(config_fixture_t *f, const void *data, size_t len)
{
    FILE  *file;

    file = fopen(f->path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}


static kube_rc_t
config_load(config_fixture_t *f, const char *text, const char *context,
    kube_error_t *error)
{
    memset(error, 0, sizeof(kube_error_t));
    config_write(f, text, strlen(text));

    return kube_config_kubeconfig(&f->config, f->path, context, error);
}


static void
config_assert_str(kube_str_t s, const char *text)
{
    if (!kube_str_eq(s, kube_str(text))) {
        print_error("\"%.*s\" is not \"%s\"\n", (int) s.len,
                    s.data != NULL ? s.data : "", text);
        fail();
    }

    if (s.len != 0) {
        assert_int_equal(s.data[s.len], '\0');
    }
}


static void
test_config_servers(void **state)
{
    size_t                    i;
    kube_error_t              error;
    config_fixture_t         *f = *state;
    static const char *const  good[][2] = {
        { "https://10.0.0.1", "https://10.0.0.1" },
        { "https://10.0.0.1:6443/", "https://10.0.0.1:6443" },
        { "HTTPS://[fd00::1]:443//", "https://[fd00::1]:443" },
        { "https://api.example.com/k8s/clusters/c-1/",
          "https://api.example.com/k8s/clusters/c-1" },
        { "https://api.example.com///k8s//c-1//",
          "https://api.example.com/k8s/c-1" },
        { "http://127.0.0.1:8001", "http://127.0.0.1:8001" },
        { "http://[::1]:8001/", "http://[::1]:8001" },
        { "http://localhost", "http://localhost" },
        { "http://unix:/run/kube.sock", "http://unix:/run/kube.sock" },
    };
    static const char *const  spellings[][2] = {
        { "https://[FD00:0:0:0:0:0:0:1]:6443/a/", "https://[" },
        { "https://API.Example.com", "https://API.Example.com" },
        { "https://1.api", "https://1.api" },
        { "https://01-master:6443", "https://01-master:6443" },
        { "https://master.2nd/", "https://master.2nd" },
        { "HTTP://UNIX:/run/x", "http://unix:/run/x" },
    };

    for (i = 0; i < 8; i++) {
        assert_int_equal(kube_config_add_server(&f->config,
                                                kube_str(good[i][0]), &error),
                         KUBE_OK);
        config_assert_str(f->config.servers[i], good[i][1]);
    }

    assert_int_equal(kube_config_add_server(&f->config,
                                            KUBE_STR("https://a"), &error),
                     KUBE_TOO_LARGE);
    assert_int_equal(f->config.servers_n, KUBE_SERVERS_MAX);

    kube_config_done(&f->config);

    for (i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        assert_int_equal(kube_config_add_server(&f->config,
                                                kube_str(spellings[i][0]),
                                                &error), KUBE_OK);
        assert_memory_equal(f->config.servers[i].data, spellings[i][1],
                            strlen(spellings[i][1]));
    }
}


static void
test_config_bad_servers(void **state)
{
    char                     *text;
    size_t                    i;
    kube_rc_t                 rc;
    kube_error_t              error;
    config_fixture_t         *f = *state;
    static const char *const  bad[] = {
        "", "https", "https://", "https:///", "10.0.0.1:6443", "ftp://a",
        "unix:/a", "https//a", "//a", "https://:443", "https://a:",
        "https://a:0", "https://a:65536", "https://a:+1", "https://a:04",
        "https://a:443x", "https://user@a", "https://user:secret@a/",
        "https://a?x=1", "https://a/?x=1", "https://a#f", "https://a/#f",
        "https://a/%2e%2e/b", "https://a/../b", "https://a/./b",
        "https://a b", "https://a\r\nX: y", "https://a/b c", "https://a/b\nc",
        "https://[::1", "https://::1", "https://[10.0.0.1]", "https://[::1]x",
        "https://[fe80::1%25eth0]", "https://127.1", "https://2130706433",
        "https://0177.0.0.1", "https://1.2.3.4.", "https://a..b", "https://.a",
        "https://a.0x7f", "https://a.1",
        "https://-a", "https://a\\b", "https://\xc3\xa4.example",
        "http://10.0.0.1", "http://api.example.com", "http://localhost.evil.x",
        "http://127.0.0.1.evil.x", "http://127.0.0.1@evil.x",
        "http://[::ffff:10.0.0.1]", "http://0.0.0.0", "http://[::]",
        "http://2130706433", "http://unix:", "http://unix:/",
        "http://unix:run/a", "http://unix:/a b", "http://unix:/a\nb",
        "https://unix:/run/a.sock", "https:///a", "https:////a", "https://a//?",
        "https://a:80:80", "https://[::1]:0", "https://[::1%eth0]",
        "http://unix:/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    };

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&error, 0, sizeof(error));
        rc = kube_config_add_server(&f->config, kube_str(bad[i]), &error);

        if (rc != KUBE_INVALID || error.what == NULL || error.rc != rc) {
            print_error("\"%s\": %d\n", bad[i], (int) rc);
            fail();
        }
    }

    /* a NUL does not end what is checked */
    assert_int_equal(kube_config_add_server(&f->config,
                                            KUBE_STR("https://a\0.evil"),
                                            NULL), KUBE_INVALID);
    assert_int_equal(kube_config_add_server(&f->config,
                                            KUBE_STR("https://a/x\0y"), NULL),
                     KUBE_INVALID);

    text = malloc(KUBE_URL_LEN_MAX);
    assert_non_null(text);
    memset(text, 'a', KUBE_URL_LEN_MAX);
    memcpy(text, "https://a/", 10);
    assert_int_equal(kube_config_add_server(&f->config,
                                            (kube_str_t) { text,
                                                           KUBE_URL_LEN_MAX },
                                            &error), KUBE_TOO_LARGE);
    free(text);

    assert_int_equal(f->config.servers_n, 0);
}


static void
test_config_in_cluster(void **state)
{
    size_t                    i;
    kube_error_t              error;
    config_fixture_t         *f = *state;
    static const char *const  bad[][2] = {
        { NULL, "443" }, { "10.96.0.1", NULL }, { "", "443" },
        { "10.96.0.1", "" }, { "10.96.0.1/x", "443" }, { "a b", "443" },
        { "10.96.0.1", "443/x" }, { "10.96.0.1", "https" }, { "a@b", "1" },
    };

    assert_int_equal(kube_config_in_cluster(&f->config, "10.96.0.1", "443",
                                            "/sa", &error), KUBE_OK);
    assert_int_equal(f->config.servers_n, 1);
    config_assert_str(f->config.servers[0], "https://10.96.0.1:443");
    config_assert_str(f->config.ca.path, "/sa/ca.crt");
    config_assert_str(f->config.token.path, "/sa/token");
    assert_int_equal(kube_config_check(&f->config, &error), KUBE_OK);

    assert_int_equal(kube_config_in_cluster(&f->config, "fd00::1", "6443",
                                            KUBE_SERVICE_ACCOUNT_DIR, &error),
                     KUBE_OK);
    assert_int_equal(f->config.servers_n, 1);
    config_assert_str(f->config.servers[0], "https://[fd00::1]:6443");

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        memset(&error, 0, sizeof(error));
        assert_int_equal(kube_config_in_cluster(&f->config, bad[i][0],
                                                bad[i][1], "/sa", &error),
                         KUBE_INVALID);
        assert_non_null(error.what);
    }

    /* what failed has changed nothing */
    config_assert_str(f->config.servers[0], "https://[fd00::1]:6443");
}


static void
test_config_kubeconfig(void **state)
{
    char               path[160];
    kube_error_t       error;
    config_fixture_t  *f = *state;

    assert_int_equal(config_load(f, AROUND("{" SERVER ", "
        "certificate-authority-data: " PEM64 ", "
        "certificate-authority: ca.pem, "
        "tls-server-name: kubernetes.default, "
        "proxy-url: 'http://proxy:3128', disable-compression: true}",
        "{token: ' abc.def\n', tokenFile: sub/token, "
        "client-certificate: /etc/c.pem, client-key-data: " PEM64 "}"),
        NULL, &error), KUBE_OK);

    assert_int_equal(f->config.servers_n, 1);
    config_assert_str(f->config.servers[0], "https://10.0.0.1:6443");
    config_assert_str(f->config.ca.data, PEM);
    config_assert_str(f->config.tls_server_name, "kubernetes.default");
    config_assert_str(f->config.proxy_url, "http://proxy:3128");
    config_assert_str(f->config.token.data, "abc.def");
    config_assert_str(f->config.certificate.path, "/etc/c.pem");
    config_assert_str(f->config.key.data, PEM);
    assert_false(f->config.tls_verify_off);

    snprintf(path, sizeof(path), "%s/ca.pem", f->dir);
    config_assert_str(f->config.ca.path, path);
    snprintf(path, sizeof(path), "%s/sub/token", f->dir);
    config_assert_str(f->config.token.path, path);
}


static void
test_config_kubeconfig_contexts(void **state)
{
    kube_error_t       error;
    config_fixture_t  *f = *state;
    static const char  text[] =
        "current-context: two\n"
        "clusters:\n"
        "- {name: a, cluster: {server: 'https://a'}}\n"
        "- {name: b, cluster: {server: 'https://b', "
        "insecure-skip-tls-verify: yes}}\n"
        "contexts:\n"
        "- {name: one, context: {cluster: a, user: u}}\n"
        "- {name: two, context: {cluster: b, namespace: x}}\n"
        "- {name: three, context: {cluster: c}}\n"
        "- {name: four, context: {cluster: a, user: v}}\n"
        "- {name: five, context: {cluster: a, user: w}}\n"
        "- {name: six}\n"
        "users:\n"
        "- {name: u, user: {token: t, exec: null, username: '', as: ~}}\n"
        "- {name: w, user: {exec: {command: aws}}}\n";

    assert_int_equal(config_load(f, text, NULL, &error), KUBE_OK);
    config_assert_str(f->config.servers[0], "https://b");
    assert_true(f->config.tls_verify_off);
    assert_int_equal(f->config.token.data.len, 0);

    assert_int_equal(config_load(f, text, "one", &error), KUBE_OK);
    config_assert_str(f->config.servers[0], "https://a");
    config_assert_str(f->config.token.data, "t");
    assert_false(f->config.tls_verify_off);

    assert_int_equal(config_load(f, text, "three", &error), KUBE_NOT_FOUND);
    assert_int_equal(error.offset, 3);
    assert_int_equal(config_load(f, text, "four", &error), KUBE_NOT_FOUND);
    assert_int_equal(config_load(f, text, "absent", &error), KUBE_NOT_FOUND);
    assert_int_equal(config_load(f, text, "six", &error), KUBE_INVALID);

    assert_int_equal(config_load(f, text, "five", &error), KUBE_INVALID);
    assert_non_null(strstr(error.what, "exec"));
    assert_int_equal(error.offset, 14);

    /* what failed has changed nothing */
    config_assert_str(f->config.token.data, "t");
}


/*
 * Merge keys give what sigs.k8s.io/yaml gives (asked with Go), and what it
 * reads otherwise than YAML's rule is refused.
 */
static void
test_config_kubeconfig_merges(void **state)
{
    char                  text[2048];
    size_t                i;
    kube_rc_t             rc;
    kube_error_t          error;
    config_fixture_t     *f = *state;
    static const struct {
        const char  *cluster;
        kube_rc_t    rc;
        const char  *expected;     /* the server's host, or what was wrong */
    } cases[] = {
        { "{<<: *a, server: 'https://own'}", KUBE_OK, "https://own" },
        { "{<<: *a}", KUBE_OK, "https://a" },
        { "{<<: {server: 'https://inline'}}", KUBE_OK, "https://inline" },
        { "{<<: [*a, *b]}", KUBE_OK, "https://a" },
        { "{<<: [*proxy, *b]}", KUBE_OK, "https://b" },
        { "{<<: *a, <<: *b}", KUBE_OK, "https://b" },
        { "{<<: *deep}", KUBE_OK, "https://b" },
        { "{proxy-url: 'http://p', <<: *a}", KUBE_OK, "https://a" },
        { "{<<: *a, server: ~}", KUBE_INVALID, "no server" },
        { "{'<<': *a}", KUBE_INVALID, "no server" },
        { "{server: 'https://own', <<: *a}", KUBE_INVALID, "put << first" },
        { "{<<: text}", KUBE_INVALID, "takes a mapping" },
        { "{<<: [text]}", KUBE_INVALID, "takes a mapping" },
        { "{<<: ~}", KUBE_INVALID, "takes a mapping" },
        { "&c {<<: *c}", KUBE_INVALID, "" },
        { "&c {<<: [*proxy, *c]}", KUBE_INVALID, "" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "x:\n"
                 "- &a {server: 'https://a'}\n"
                 "- &b {server: 'https://b'}\n"
                 "- &proxy {proxy-url: 'http://proxy:3128'}\n"
                 "- &deep {<<: [*proxy, *b], tls-server-name: t}\n"
                 AROUND("%s", "{token: t}"), cases[i].cluster);

        rc = config_load(f, text, NULL, &error);

        if (rc != cases[i].rc) {
            print_error("%s: %d\n", cases[i].cluster, (int) rc);
            fail();
        }

        if (rc == KUBE_OK) {
            config_assert_str(f->config.servers[0], cases[i].expected);

        } else {
            assert_non_null(strstr(error.what, cases[i].expected));
        }
    }

    /* the rest of a merged mapping counts as well */

    assert_int_equal(config_load(f, "x: &deep {<<: {server: 'https://b'}, "
                                 "tls-server-name: t}\n"
                                 AROUND("{<<: *deep, proxy-url: 'http://p'}",
                                        "{<<: {token: t}}"), NULL, &error),
                     KUBE_OK);
    config_assert_str(f->config.tls_server_name, "t");
    config_assert_str(f->config.proxy_url, "http://p");
    config_assert_str(f->config.token.data, "t");

    /* a refused login is refused wherever it comes from */

    assert_int_equal(config_load(f, AROUND("{" SERVER "}",
                                           "{<<: {exec: {command: x}}}"),
                                 NULL, &error), KUBE_INVALID);
    assert_non_null(strstr(error.what, "exec"));
}


static void
test_config_kubeconfig_proxies(void **state)
{
    char                      text[512];
    size_t                    i;
    kube_error_t              error;
    config_fixture_t         *f = *state;
    static const char *const  proxies[] = {
        "http://proxy:3128", "http://10.0.0.1:3128/", "HTTP://proxy",
        "http://user:password@proxy:3128", "https://proxy", "socks5://proxy",
        "socks5h://[fd00::1]:1080", "http://u%40x:p%2f%3A%20@proxy:3128",
        "http://user@proxy", "http://proxy:/", "socks5://u:p@proxy"
    };

    for (i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
        snprintf(text, sizeof(text), AROUND("{" SERVER ", proxy-url: '%s'}",
                                            "{}"), proxies[i]);
        assert_int_equal(config_load(f, text, NULL, &error), KUBE_OK);
        config_assert_str(f->config.proxy_url, proxies[i]);
    }

    /* an empty one is none */

    assert_int_equal(config_load(f, AROUND("{" SERVER ", proxy-url: ''}",
                                           "{}"), NULL, &error), KUBE_OK);
    assert_int_equal(f->config.proxy_url.len, 0);
}


/* What client-go takes, and says nothing. */
static void
test_config_kubeconfig_odd(void **state)
{
    char                      text[512];
    size_t                    i;
    kube_error_t              error;
    config_fixture_t         *f = *state;
    static const char *const  words[] = { "y", "ON", "Y", "on" };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        snprintf(text, sizeof(text), AROUND("{" SERVER
                 ", insecure-skip-tls-verify: %s}", "{}"), words[i]);
        assert_int_equal(config_load(f, text, NULL, &error), KUBE_OK);
        assert_true(f->config.tls_verify_off);
    }

    assert_int_equal(config_load(f, AROUND("{" SERVER
                                           ", insecure-skip-tls-verify: n}",
                                           "{token: t, as-groups: [], "
                                           "as-user-extra: {}}"),
                                 NULL, &error), KUBE_OK);
    assert_false(f->config.tls_verify_off);
    config_assert_str(f->config.token.data, "t");

    assert_int_equal(config_load(f, AROUND("{" SERVER "}", "{" EXEC ", args: "
                                           "[~, 'null'], installHint: "
                                           "\"\\n Install it.\\nNow.\"}}"),
                                 NULL, &error), KUBE_OK);
    assert_int_equal(f->config.exec.args_n, 2);
    config_assert_str(f->config.exec.args[0], "");
    config_assert_str(f->config.exec.args[1], "null");
    config_assert_str(f->config.exec.install_hint, "Install it.");
}


static const config_bad_t  config_bad[] = {

    { "", KUBE_INVALID, "not a kubeconfig" },
    { "\n---\n", KUBE_INVALID, "not a kubeconfig" },
    { "just text", KUBE_INVALID, "not a kubeconfig" },
    { "[]", KUBE_INVALID, "not a kubeconfig" },
    { "{}", KUBE_NOT_FOUND, "current-context" },
    { "{", KUBE_INVALID, "YAML" },
    { "a: b: c", KUBE_INVALID, "YAML" },
    { "a: 'x", KUBE_INVALID, "YAML" },
    { "\t- a", KUBE_INVALID, "YAML" },
    { "a: *nowhere", KUBE_INVALID, "YAML" },
    { "\xff\xfe\x00", KUBE_INVALID, "" },
    { "a: \x01", KUBE_INVALID, "YAML" },
    { "a: \xc3(", KUBE_INVALID, "YAML" },
    { "current-context: [x]", KUBE_INVALID, "current-context" },
    { "current-context: x", KUBE_NOT_FOUND, "context" },
    { "current-context: x\ncontexts: {}", KUBE_INVALID, "lists" },
    { "current-context: x\ncontexts: [x]", KUBE_INVALID, "mapping" },
    { "current-context: x\ncontexts: [{name: [x]}]", KUBE_INVALID, "name" },
    { "current-context: x\ncontexts: [{name: x, context: y}]", KUBE_INVALID,
      "mapping" },
    { "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]",
      KUBE_NOT_FOUND, "cluster" },
    { "current-context: x\ncurrent-context: y", KUBE_INVALID, "twice" },
    { "current-context: x\ncontexts: [{name: x, context: {cluster: c}}, "
      "{name: x, context: {cluster: d}}]", KUBE_INVALID, "twice" },
    { "current-context: &a x\ncontexts: &b [*b]", KUBE_INVALID, "mapping" },
    { "&r {current-context: x, contexts: [*r, {name: x, context: *r}]}",
      KUBE_NOT_FOUND, "cluster" },

    { AROUND("~", "{}"), KUBE_INVALID, "empty" },
    { AROUND("{}", "{}"), KUBE_INVALID, "no server" },
    { AROUND("{server: }", "{}"), KUBE_INVALID, "no server" },
    { AROUND("{server: [a]}", "{}"), KUBE_INVALID, "server" },
    { AROUND("{server: '10.0.0.1:6443'}", "{}"), KUBE_INVALID, "https://" },
    { AROUND("{server: 'http://10.0.0.1'}", "{}"), KUBE_INVALID, "clear" },
    { AROUND("{server: 'https://u:p@a'}", "{}"), KUBE_INVALID, "password" },
    { AROUND("{server: \"https://a\\r\\nX: y\"}", "{}"), KUBE_INVALID, "" },
    { AROUND("{server: \"https://a\\0b\"}", "{}"), KUBE_INVALID, "server" },
    { AROUND("{" SERVER ", server: 'https://b'}", "{}"), KUBE_INVALID,
      "twice" },
    { AROUND("{" SERVER ", insecure-skip-tls-verify: maybe}", "{}"),
      KUBE_INVALID, "insecure" },
    { AROUND("{" SERVER ", insecure-skip-tls-verify: 'true'}", "{}"),
      KUBE_INVALID, "insecure" },
    { AROUND("{" SERVER ", insecure-skip-tls-verify: true, "
             "certificate-authority: ca.pem}", "{}"), KUBE_INVALID, "CA" },
    { AROUND("{" SERVER ", insecure-skip-tls-verify: true, "
             "certificate-authority-data: " PEM64 "}", "{}"), KUBE_INVALID,
      "CA" },
    { AROUND("{" SERVER ", certificate-authority-data: 'not base64'}", "{}"),
      KUBE_INVALID, "certificate-authority-data" },
    { AROUND("{" SERVER ", certificate-authority-data: bm8gUEVN}", "{}"),
      KUBE_INVALID, "certificate-authority-data" },
    { AROUND("{" SERVER ", certificate-authority: \"a\\nb\"}", "{}"),
      KUBE_INVALID, "certificate-authority" },
    { AROUND("{" SERVER ", certificate-authority: {a: b}}", "{}"),
      KUBE_INVALID, "certificate-authority" },
    { AROUND("{" SERVER ", tls-server-name: 'a b'}", "{}"), KUBE_INVALID,
      "TLS server name" },
    { AROUND("{" SERVER ", proxy-url: 'file:///x'}", "{}"), KUBE_INVALID,
      "proxy" },

    /* libcurl would quote it, or go without the proxy */

    { AROUND("{" SERVER ", proxy-url: 'http://u:p@q@proxy:3128'}", "{}"),
      KUBE_INVALID, "%40" },
    { AROUND("{" SERVER ", proxy-url: 'http://u:p/q@proxy:3128'}", "{}"),
      KUBE_INVALID, "%2F" },
    { AROUND("{" SERVER ", proxy-url: 'http://u:p@proxy:99999'}", "{}"),
      KUBE_INVALID, "host[:port]" },
    { AROUND("{" SERVER ", proxy-url: 'http://u:p@[fd00::1'}", "{}"),
      KUBE_INVALID, "host[:port]" },
    { AROUND("{" SERVER ", proxy-url: 'http://u:p%0a@proxy'}", "{}"),
      KUBE_INVALID, "user:password" },
    { AROUND("{" SERVER ", proxy-url: 'socks5://u%00:p@proxy'}", "{}"),
      KUBE_INVALID, "user:password" },
    { AROUND("{" SERVER ", proxy-url: 'http://pro%01xy'}", "{}"),
      KUBE_INVALID, "user:password" },

    { AROUND("{" SERVER ", proxy-url: \"http://a\\nb\"}", "{}"), KUBE_INVALID,
      "proxy-url" },

    { AROUND("{" SERVER "}", "[]"), KUBE_INVALID, "mapping" },
    { AROUND("{" SERVER "}", "{exec: {command: x}}"), KUBE_INVALID, "exec" },
    { AROUND("{" SERVER "}", "{exec: x}"), KUBE_INVALID, "mapping" },
    { AROUND("{" SERVER "}", "{exec: {" V1 ", " NEVER "}}"), KUBE_INVALID,
      "names no command" },
    { AROUND("{" SERVER "}", "{exec: {command: x, " V1 "}}"), KUBE_INVALID,
      "interactiveMode" },
    { AROUND("{" SERVER "}", "{exec: {command: x, " V1
             ", interactiveMode: Always}}"), KUBE_INVALID, "terminal" },
    { AROUND("{" SERVER "}", "{exec: {command: x, " V1
             ", interactiveMode: Perhaps}}"), KUBE_INVALID, "IfAvailable" },
    { AROUND("{" SERVER "}", "{exec: {command: x, " NEVER ", apiVersion: "
             "client.authentication.k8s.io/v1alpha1}}"), KUBE_INVALID,
      "apiVersion" },
    { AROUND("{" SERVER "}", "{" EXEC ", args: x}}"), KUBE_INVALID, "args" },
    { AROUND("{" SERVER "}", "{" EXEC ", args: [[x]]}}"), KUBE_INVALID,
      "args" },
    { AROUND("{" SERVER "}", "{" EXEC ", args: [\"a\\0b\"]}}"), KUBE_INVALID,
      "zero byte" },
    { AROUND("{" SERVER "}", "{" EXEC ", env: {A: b}}}"), KUBE_INVALID,
      "env" },
    { AROUND("{" SERVER "}", "{" EXEC ", env: [{value: b}]}}"), KUBE_INVALID,
      "name" },
    { AROUND("{" SERVER "}", "{" EXEC ", env: [{name: 'A=B', value: b}]}}"),
      KUBE_INVALID, "name" },
    { AROUND("{" SERVER "}", "{" EXEC ", provideClusterInfo: 'yes'}}"),
      KUBE_INVALID, "provideClusterInfo" },
    { AROUND("{" SERVER "}", "{token: t, " EXEC "}}"), KUBE_INVALID, "both" },
    { AROUND("{" SERVER "}", "{auth-provider: {}}"), KUBE_INVALID,
      "auth-provider" },
    { AROUND("{" SERVER "}", "{auth-provider: {name: gcp}}"), KUBE_INVALID,
      "auth-provider" },
    { AROUND("{" SERVER "}", "{username: a, password: b}"), KUBE_INVALID,
      "username" },
    { AROUND("{" SERVER "}", "{password: b}"), KUBE_INVALID, "password" },
    { AROUND("{" SERVER "}", "{token: t, as: admin}"), KUBE_INVALID,
      "impersonation" },
    { AROUND("{" SERVER "}", "{as-uid: 1}"), KUBE_INVALID, "impersonation" },
    { AROUND("{" SERVER "}", "{as-groups: [a]}"), KUBE_INVALID,
      "impersonation" },
    { AROUND("{" SERVER "}", "{as-user-extra: {a: [b]}}"), KUBE_INVALID,
      "impersonation" },
    { AROUND("{" SERVER "}", "{token: \"a\\r\\nX: y\"}"), KUBE_INVALID,
      "token" },
    { AROUND("{" SERVER "}", "{token: 'a b'}"), KUBE_INVALID, "token" },
    { AROUND("{" SERVER "}", "{token: ' '}"), KUBE_INVALID, "token" },
    { AROUND("{" SERVER "}", "{token: \"t\\u00e4\"}"), KUBE_INVALID, "token" },
    { AROUND("{" SERVER "}", "{token: [t]}"), KUBE_INVALID, "token" },
    { AROUND("{" SERVER "}", "{token: !!binary dG9rZW4=}"), KUBE_INVALID,
      "token" },
    { AROUND("{" SERVER "}", "{token: a, token: b}"), KUBE_INVALID, "twice" },
    { AROUND("{" SERVER "}", "{client-certificate: c.pem}"), KUBE_INVALID,
      "both" },
    { AROUND("{" SERVER "}", "{client-key-data: " PEM64 "}"), KUBE_INVALID,
      "both" },
    { AROUND("{" SERVER "}", "{client-key-data: 'LS0=='}"), KUBE_INVALID,
      "client-key-data" },
};


static void
test_config_kubeconfig_bad(void **state)
{
    size_t             i;
    kube_rc_t          rc;
    kube_error_t       error;
    config_fixture_t  *f = *state;

    assert_int_equal(kube_config_add_server(&f->config, KUBE_STR("https://k"),
                                            NULL), KUBE_OK);

    for (i = 0; i < sizeof(config_bad) / sizeof(config_bad[0]); i++) {
        rc = config_load(f, config_bad[i].text, NULL, &error);

        if (rc != config_bad[i].rc || error.rc != rc || error.what == NULL
            || strstr(error.what, config_bad[i].what) == NULL)
        {
            print_error("case %zu: %d \"%s\"\n%s\n", i, (int) rc,
                        error.what ? error.what : "", config_bad[i].text);
            fail();
        }

        /* what failed has changed nothing */
        assert_int_equal(f->config.servers_n, 1);
        config_assert_str(f->config.servers[0], "https://k");
    }
}


/* No expansion, no recursion: neither time nor memory grows. */
static void
test_config_kubeconfig_bombs(void **state)
{
    char              *text;
    size_t             i, n;
    kube_error_t       error;
    config_fixture_t  *f = *state;

    text = malloc(KUBE_CREDENTIAL_BYTES_MAX + 2);
    assert_non_null(text);

    n = (size_t) snprintf(text, 64, "a0: &a0 [x,x]\n");

    for (i = 1; i < 100; i++) {
        n += (size_t) snprintf(text + n, 64,
                               "a%zu: &a%zu [*a%zu,*a%zu,*a%zu]\n", i, i,
                               i - 1, i - 1, i - 1);
    }

    (void) snprintf(text + n, 1024, AROUND("{" SERVER "}", "{token: t}"));
    assert_int_equal(config_load(f, text, NULL, &error), KUBE_OK);

    memset(text, '[', 10000);
    text[10000] = '\0';
    assert_int_equal(config_load(f, text, NULL, &error), KUBE_INVALID);

    memset(text, '#', KUBE_CREDENTIAL_BYTES_MAX + 1);
    config_write(f, text, KUBE_CREDENTIAL_BYTES_MAX + 1);
    assert_int_equal(kube_config_kubeconfig(&f->config, f->path, NULL, &error),
                     KUBE_TOO_LARGE);

    free(text);
}


static void
test_config_kubeconfig_files(void **state)
{
    kube_error_t       error;
    config_fixture_t  *f = *state;

    assert_int_equal(kube_config_kubeconfig(&f->config, f->path, NULL, &error),
                     KUBE_IO);
    assert_non_null(strstr(error.what, "no such file"));

    assert_int_equal(kube_config_kubeconfig(&f->config, f->dir, NULL, &error),
                     KUBE_IO);
    assert_int_equal(kube_config_kubeconfig(&f->config, "/dev/zero", NULL,
                                            &error), KUBE_IO);

    /* nobody writes to it: a blocking open would hang here */
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(kube_config_kubeconfig(&f->config, f->path, NULL, &error),
                     KUBE_IO);
    assert_non_null(strstr(error.what, "regular"));
    assert_int_equal(kube_config_kubeconfig(&f->config, f->path, NULL, NULL),
                     KUBE_IO);
}


static void
test_config_set_and_check(void **state)
{
    kube_error_t       error;
    config_fixture_t  *f = *state;
    kube_config_t     *c = &f->config;

    assert_int_equal(kube_config_check(c, &error), KUBE_INVALID);

    assert_int_equal(kube_config_add_server(c, KUBE_STR("https://a"), NULL),
                     KUBE_OK);
    assert_int_equal(kube_config_check(c, &error), KUBE_OK);

    assert_int_equal(kube_config_set(c, &c->key.path, KUBE_STR("/k")), KUBE_OK);
    assert_int_equal(kube_config_check(c, &error), KUBE_INVALID);
    assert_int_equal(kube_config_set(c, &c->certificate.path, KUBE_STR("/c")),
                     KUBE_OK);
    assert_int_equal(kube_config_check(c, &error), KUBE_OK);

    assert_int_equal(kube_config_set(c, &c->ca.path, KUBE_STR("/ca")), KUBE_OK);
    assert_int_equal(kube_config_set(c, &c->ca.path, KUBE_STR("/ca2")),
                     KUBE_OK);
    config_assert_str(c->ca.path, "/ca2");

    c->tls_verify_off = true;
    assert_int_equal(kube_config_check(c, &error), KUBE_INVALID);
    assert_int_equal(kube_config_set(c, &c->ca.path, KUBE_STR_NULL), KUBE_OK);
    assert_null(c->ca.path.data);
    assert_int_equal(kube_config_check(c, &error), KUBE_OK);

    assert_int_equal(kube_config_set(c, &c->tls_server_name, KUBE_STR("a/b")),
                     KUBE_OK);
    assert_int_equal(kube_config_check(c, NULL), KUBE_INVALID);
    assert_int_equal(kube_config_set(c, &c->tls_server_name,
                                     KUBE_STR("fd00::1")), KUBE_OK);
    assert_int_equal(kube_config_check(c, &error), KUBE_OK);

    assert_int_equal(kube_config_set(c, &c->proxy_url, KUBE_STR("socks5://p")),
                     KUBE_OK);
    assert_int_equal(kube_config_check(c, &error), KUBE_OK);
    assert_int_equal(kube_config_set(c, &c->proxy_url, KUBE_STR("p:3128")),
                     KUBE_OK);
    assert_int_equal(kube_config_check(c, &error), KUBE_INVALID);
}


static void
config_oom_run(alloc_test_t *at, void *ctx)
{
    kube_rc_t          rc;
    kube_error_t       error;
    kube_config_t      c;
    config_fixture_t  *f = ctx;

    kube_config_init(&c, &at->alloc);

    rc = kube_config_kubeconfig(&c, f->path, NULL, &error);
    alloc_test_assert_rc(at, rc);
    assert_int_equal(c.servers_n, rc == KUBE_OK ? 1 : 0);

    rc = kube_config_in_cluster(&c, "10.0.0.1", "443", "/sa", &error);
    alloc_test_assert_rc(at, rc);

    rc = kube_config_set(&c, &c.tls_server_name, KUBE_STR("x"));
    alloc_test_assert_rc(at, rc);

    rc = kube_config_add_server(&c, KUBE_STR("https://a"), &error);
    alloc_test_assert_rc(at, rc);

    kube_config_done(&c);
}


static void
test_config_oom(void **state)
{
    config_fixture_t  *f = *state;
    static const char  text[] =
        AROUND("{" SERVER ", certificate-authority-data: " PEM64 ", "
               "certificate-authority: ca.pem}",
               "{token: t, client-certificate: c.pem, client-key: k.pem}");

    config_write(f, text, sizeof(text) - 1);
    ALLOC_TEST_RUN(config_oom_run, f);
}


/* As "aws eks update-kubeconfig" and its like write it. */
static void
test_config_exec(void **state)
{
    kube_error_t       error;
    config_fixture_t  *f = *state;

    assert_int_equal(config_load(f, AROUND("{" SERVER "}", "\n"
        "    exec:\n"
        "      apiVersion: client.authentication.k8s.io/v1beta1\n"
        "      command: aws\n"
        "      args:\n      - eks\n      - get-token\n      - 'a b'\n"
        "      - 7\n"
        "      env:\n"
        "      - {name: AWS_PROFILE, value: prod}\n"
        "      - {name: EMPTY}\n"
        "      installHint: |\n        get it\n        from here\n"
        "      provideClusterInfo: true\n"), NULL, &error), KUBE_OK);

    config_assert_str(f->config.exec.command, "aws");
    config_assert_str(f->config.exec.api_version,
                      "client.authentication.k8s.io/v1beta1");
    assert_int_equal(f->config.exec.args_n, 4);
    config_assert_str(f->config.exec.args[2], "a b");
    config_assert_str(f->config.exec.args[3], "7");
    assert_int_equal(f->config.exec.env_n, 2);
    config_assert_str(f->config.exec.env[0], "AWS_PROFILE=prod");
    config_assert_str(f->config.exec.env[1], "EMPTY=");
    config_assert_str(f->config.exec.install_hint, "get it");
    assert_true(f->config.exec.cluster_info);

    /* a path counts from where the file is, as client-go has it */

    assert_int_equal(config_load(f, AROUND("{" SERVER "}",
        "{exec: {command: bin/login, args: null, env: null, " V1
        ", interactiveMode: IfAvailable}}"), NULL, &error), KUBE_OK);
    assert_int_equal(f->config.exec.command.data[0], '/');
    assert_non_null(strstr(f->config.exec.command.data, "/bin/login"));
    assert_int_equal(f->config.exec.args_n, 0);
    assert_int_equal(f->config.exec.env_n, 0);
    assert_false(f->config.exec.cluster_info);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_config_servers, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(test_config_bad_servers, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(test_config_in_cluster, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(test_config_kubeconfig, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(test_config_kubeconfig_contexts,
                                        config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(test_config_kubeconfig_merges,
                                        config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(test_config_kubeconfig_proxies,
                                        config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(test_config_kubeconfig_odd,
                                        config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(test_config_kubeconfig_bad,
                                        config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(test_config_kubeconfig_bombs,
                                        config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(test_config_kubeconfig_files,
                                        config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(test_config_set_and_check,
                                        config_setup, config_teardown),
        cmocka_unit_test_setup_teardown(test_config_oom, config_setup,
                                        config_teardown),
        cmocka_unit_test_setup_teardown(test_config_exec, config_setup,
                                        config_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

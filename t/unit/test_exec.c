/*
 * Tests of kube_exec, with small shell scripts as plugins: what they are told,
 * what is taken from them, how they end, and that nothing of them is left.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube_exec.h"


#define V1   "client.authentication.k8s.io/v1"
#define CRT  "-----BEGIN CERTIFICATE-----\\nA\\n-----END CERTIFICATE-----"
#define KEY  "-----BEGIN PRIVATE KEY-----\\nB\\n-----END PRIVATE KEY-----"

#define CREDENTIAL(status)                                                    \
    "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\","           \
    "\"status\":{" status "}}'"


typedef struct {
    alloc_test_t         at;
    char                 dir[64];
    char                 plugin[96];
    char                 trace[96];
    kube_config_t        config;
    kube_exec_t         *exec;
    kube_exec_result_t   result;
} exec_fixture_t;


static void
exec_word(exec_fixture_t *f, kube_str_t *field, const char *text)
{
    assert_int_equal(kube_config_set(&f->config, field, kube_str(text)),
                     KUBE_OK);
}


static int
exec_setup(void **state)
{
    exec_fixture_t  *f;

    f = calloc(1, sizeof(exec_fixture_t));
    assert_non_null(f);

    alloc_test_init(&f->at);

    snprintf(f->dir, sizeof(f->dir), "/tmp/kube-exec-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->plugin, sizeof(f->plugin), "%s/plugin", f->dir);
    snprintf(f->trace, sizeof(f->trace), "%s/trace", f->dir);

    kube_config_init(&f->config, &f->at.alloc);
    assert_int_equal(kube_config_add_server(&f->config,
                         KUBE_STR("https://api.example:6443"), NULL), KUBE_OK);

    exec_word(f, &f->config.exec.command, f->plugin);
    exec_word(f, &f->config.exec.api_version, V1);
    exec_word(f, &f->config.exec.install_hint, "install it from example");
    exec_word(f, &f->config.exec.args[f->config.exec.args_n++], "get-token");
    exec_word(f, &f->config.exec.args[f->config.exec.args_n++], "a b");
    exec_word(f, &f->config.exec.env[f->config.exec.env_n++], "PLACE=here");

    f->exec = kube_exec_create(&f->at.alloc, &f->config);
    assert_non_null(f->exec);

    *state = f;

    return 0;
}


static int
exec_teardown(void **state)
{
    exec_fixture_t  *f = *state;

    kube_exec_destroy(f->exec);
    kube_exec_destroy(NULL);
    kube_config_done(&f->config);
    alloc_test_assert_no_leak(&f->at);

    (void) unlink(f->plugin);
    (void) unlink(f->trace);
    assert_int_equal(rmdir(f->dir), 0);
    free(f);

    /* what ran was never a child of ours */

    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);

    return 0;
}


static void
exec_write(exec_fixture_t *f, const char *script)
{
    FILE  *file;

    file = fopen(f->plugin, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\ncd %s\n%s\n", f->dir, script);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(f->plugin, 0700), 0);
}


static kube_rc_t
exec_wait(exec_fixture_t *f)
{
    kube_rc_t      rc;
    struct pollfd  pfd;

    for ( ;; ) {
        rc = kube_exec_poll(f->exec, 1000, &f->result);

        if (rc != KUBE_AGAIN) {
            assert_int_equal(kube_exec_fd(f->exec), -1);
            return rc;
        }

        pfd.fd = kube_exec_fd(f->exec);
        pfd.events = POLLIN;
        assert_int_equal(poll(&pfd, 1, 60000), 1);
    }
}


static kube_rc_t
exec_run(exec_fixture_t *f, const char *script)
{
    kube_rc_t  rc;

    if (script != NULL) {
        exec_write(f, script);
    }

    rc = kube_exec_start(f->exec, 1000);

    return (rc == KUBE_OK) ? exec_wait(f) : rc;
}


static void
exec_expect_str(kube_str_t got, const char *expected)
{
    assert_int_equal(got.len, strlen(expected));
    assert_memory_equal(got.data, expected, got.len);
}


static void
exec_expect_trace(exec_fixture_t *f, const char *part)
{
    char    text[65536];
    FILE   *file;
    size_t  n;

    file = fopen(f->trace, "r");
    assert_non_null(file);
    n = fread(text, 1, sizeof(text) - 1, file);
    text[n] = '\0';
    assert_int_equal(fclose(file), 0);

    if (strstr(text, part) == NULL) {
        print_error("no \"%s\" in: %s\n", part, text);
        fail();
    }
}


static void
test_exec_token(void **state)
{
    exec_fixture_t  *f = *state;

    assert_int_equal(kube_exec_fd(f->exec), -1);
    assert_int_equal(exec_run(f, CREDENTIAL("\"token\":\"abc\"")), KUBE_OK);
    exec_expect_str(f->result.token, "abc");
    exec_expect_str(f->result.certificate, "");
    assert_true(f->result.lifetime_ms == KUBE_NEVER);
    assert_string_equal(kube_exec_why(f->exec), "");
}


static void
test_exec_certificate(void **state)
{
    exec_fixture_t  *f = *state;

    assert_int_equal(exec_run(f,
        "printf '%s' '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\","
        "\"status\":{\"clientCertificateData\":\"" CRT "\","
        "\"clientKeyData\":\"" KEY "\","
        "\"expirationTimestamp\":\"2999-01-01T00:00:00Z\"}}'"), KUBE_OK);

    exec_expect_str(f->result.token, "");
    assert_non_null(strstr(f->result.certificate.data, "\nA\n"));
    assert_non_null(strstr(f->result.key.data, "\nB\n"));
    assert_true(f->result.lifetime_ms != KUBE_NEVER);
    assert_true(f->result.lifetime_ms > UINT64_C(365) * 86400 * 1000);
}


/* By our clock: the server, whose clock may be another, has the last word. */
static void
test_exec_expired(void **state)
{
    exec_fixture_t  *f = *state;

    assert_int_equal(exec_run(f, CREDENTIAL("\"token\":\"a\","
        "\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"")), KUBE_OK);

    exec_expect_str(f->result.token, "a");
    assert_int_equal(f->result.lifetime_ms, KUBE_EXEC_EXPIRED_MS);

    /* a time that a program in Go has not set is none */

    assert_int_equal(exec_run(f, CREDENTIAL("\"token\":\"a\","
        "\"expirationTimestamp\":\"0001-01-01T00:00:00Z\"")), KUBE_OK);
    assert_true(f->result.lifetime_ms == KUBE_NEVER);
}


/* Arguments as they are, its own environment, and who it logs in to. */
static void
test_exec_what_it_is_told(void **state)
{
    exec_fixture_t  *f = *state;

    exec_word(f, &f->config.ca.data, "<PEM>");
    f->config.exec.cluster_info = true;
    exec_word(f, &f->config.exec.env[f->config.exec.env_n++], "OURSELVES=no");

    assert_int_equal(setenv("PLACE", "there", 1), 0);
    assert_int_equal(setenv("OURS", "yes", 1), 0);

    assert_int_equal(exec_run(f, "{ for a; do echo \"[$a]\"; done; env; "
        "echo stdin=$(cat | wc -c); ls -l /proc/self/fd; } > trace; "
        CREDENTIAL("\"token\":\"abc\"")), KUBE_OK);

    exec_expect_trace(f, "[get-token]\n[a b]\n");
    exec_expect_trace(f, "PLACE=here\n");
    exec_expect_trace(f, "OURS=yes\n");
    exec_expect_trace(f, "PATH=");
    exec_expect_trace(f, "stdin=0\n");
    exec_expect_trace(f, "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\","
                      "\"apiVersion\":\"" V1 "\",\"spec\":{\"cluster\":"
                      "{\"server\":\"https://api.example:6443\","
                      "\"certificate-authority-data\":\"PFBFTT4=\"},"
                      "\"interactive\":false}}\n");

    assert_int_equal(unsetenv("OURS"), 0);
    assert_int_equal(unsetenv("PLACE"), 0);
}


/* Nothing of the cluster, unless it is asked for. */
static void
test_exec_no_cluster_info(void **state)
{
    exec_fixture_t  *f = *state;

    assert_int_equal(exec_run(f, "env > trace; "
        CREDENTIAL("\"token\":\"abc\"")), KUBE_OK);
    exec_expect_trace(f, "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\","
                      "\"apiVersion\":\"" V1 "\",\"spec\":{"
                      "\"interactive\":false}}\n");
}


/* None of ours is left open in it, whatever its number. */
static void
test_exec_inherits_no_descriptor(void **state)
{
    int              fds[2], high;
    char             text[64];
    FILE            *file;
    exec_fixture_t  *f = *state;

    assert_int_equal(pipe(fds), 0);
    high = dup2(fds[0], 300);
    assert_int_equal(high, 300);

    assert_int_equal(exec_run(f, "exec ls /proc/self/fd > trace"),
                     KUBE_INVALID);

    file = fopen(f->trace, "r");
    assert_non_null(file);

    while (fgets(text, sizeof(text), file) != NULL) {

        /* 3 is the directory, as ls reads it */

        if (strtol(text, NULL, 10) > 3) {
            print_error("open: %s", text);
            fail();
        }
    }

    assert_int_equal(fclose(file), 0);

    (void) close(high);
    (void) close(fds[0]);
    (void) close(fds[1]);
}


/*
 * Whatever number of descriptors there is: it runs with its own pipes, or not
 * at all.  What is open at 3, 4 and 5 here is a log or a channel in nginx.
 */
static void
test_exec_few_descriptors(void **state)
{
    int              i, low[3], first, ours[2], started;
    char             c;
    rlim_t           n;
    kube_rc_t        rc;
    struct rlimit    limit, few;
    exec_fixture_t  *f = *state;

    exec_write(f, "echo here >&2; " CREDENTIAL("\"token\":\"abc\""));

    assert_int_equal(pipe(ours), 0);
    assert_int_equal(fcntl(ours[0], F_SETFL, O_NONBLOCK), 0);

    for (i = 0; i < 3; i++) {
        low[i] = dup(3 + i);
        assert_int_equal(dup2(ours[1], 3 + i), 3 + i);
    }

    first = dup(ours[0]);
    assert_true(first > 6);
    assert_int_equal(close(first), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);

    for (n = (rlim_t) first, started = 0; n < (rlim_t) first + 24; n++) {
        few = limit;
        few.rlim_cur = n;

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        rc = exec_run(f, NULL);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);

        if (rc != KUBE_OK) {
            assert_int_equal(rc, KUBE_IO);
            assert_true(strstr(kube_exec_why(f->exec), "no descriptor") != NULL
                        || strstr(kube_exec_why(f->exec), "24: ") != NULL);
        }

        started += (rc == KUBE_OK);
        assert_int_equal(read(ours[0], &c, 1), -1);
    }

    assert_in_range(started, 1, 23);

    for (i = 0; i < 3; i++) {
        (void) (low[i] != -1 ? dup2(low[i], 3 + i) : close(3 + i));
        (void) close(low[i]);
    }

    (void) close(ours[0]);
    (void) close(ours[1]);
}


static void
test_exec_failures(void **state)
{
    size_t           i;
    exec_fixture_t  *f = *state;
    static const struct {
        const char  *script;
        kube_rc_t    rc;
        const char  *why;
    } cases[] = {
        { "echo 'no login' >&2; exit 3", KUBE_IO,
          "code 3, it says \"no login\"" },
        { "printf '%0255d' 1 >&2; printf '%0250d' 2 >&2; echo 'no login' >&2; "
          "exit 3", KUBE_IO, "0002no login\"" },
        { "kill -9 $$", KUBE_IO, "signal 9" },
        { "exit 0", KUBE_INVALID, "not JSON" },
        { "echo '{'", KUBE_INVALID, "not JSON" },
        { "echo '[]'", KUBE_INVALID, "no ExecCredential" },
        { "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\"}'",
          KUBE_INVALID, "but of \"v9\"" },
        { CREDENTIAL(""), KUBE_INVALID, "neither a token" },
        { CREDENTIAL("\"token\":7"), KUBE_INVALID, "neither a token" },
        { CREDENTIAL("\"token\":\"a b\""), KUBE_INVALID, "header" },
        { CREDENTIAL("\"clientCertificateData\":\"x\""), KUBE_INVALID,
          "with its key" },
        { CREDENTIAL("\"token\":\"a\",\"clientKeyData\":\"x\""), KUBE_INVALID,
          "with its key" },
        { CREDENTIAL("\"clientCertificateData\":\"x\",\"clientKeyData\":"
                     "\"y\""), KUBE_INVALID, "not PEM" },
        { CREDENTIAL("\"token\":\"a\",\"expirationTimestamp\":\"soon\""),
          KUBE_INVALID, "RFC 3339" },
        { "yes", KUBE_TOO_LARGE, "too much" },
        { "yes >&2", KUBE_IO, "signal" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]) - 1; i++) {
        assert_int_equal(exec_run(f, cases[i].script), cases[i].rc);

        if (strstr(kube_exec_why(f->exec), cases[i].why) == NULL) {
            print_error("%s: %s\n", cases[i].script, kube_exec_why(f->exec));
            fail();
        }

        assert_non_null(strstr(kube_exec_why(f->exec), f->plugin));
    }

    /* what failed is no obstacle to the next */

    assert_int_equal(exec_run(f, CREDENTIAL("\"token\":\"abc\"")), KUBE_OK);
}


static void
test_exec_not_there(void **state)
{
    exec_fixture_t  *f = *state;

    assert_int_equal(exec_run(f, NULL), KUBE_IO);
    assert_non_null(strstr(kube_exec_why(f->exec), "cannot be started"));
    assert_non_null(strstr(kube_exec_remedy(f->exec), "install the exec"));
    assert_non_null(strstr(kube_exec_why(f->exec), "install it from example"));

    exec_write(f, "exit 0");
    assert_int_equal(chmod(f->plugin, 0600), 0);
    assert_int_equal(exec_run(f, NULL), KUBE_IO);
    assert_non_null(strstr(kube_exec_why(f->exec), "cannot be started"));
}


/* A name without a slash is looked for in PATH. */
static void
test_exec_by_name(void **state)
{
    exec_fixture_t  *f = *state;

    exec_word(f, &f->config.exec.command, "sh");
    exec_word(f, &f->config.exec.args[0], "-c");
    exec_word(f, &f->config.exec.args[1], CREDENTIAL("\"token\":\"abc\""));
    assert_int_equal(exec_run(f, NULL), KUBE_OK);
}


/* nginx has no PATH for its processes; then the plugin's own counts. */
static void
test_exec_by_name_without_path(void **state)
{
    char            *before, path[128];
    exec_fixture_t  *f = *state;

    exec_word(f, &f->config.exec.command, "plugin");
    snprintf(path, sizeof(path), "PATH=%s:/usr/bin:/bin", f->dir);
    exec_word(f, &f->config.exec.env[f->config.exec.env_n++], path);

    before = getenv("PATH");
    assert_non_null(before);
    before = strdup(before);
    assert_non_null(before);

    /* a PATH that is there counts alone, as for client-go */

    assert_int_equal(exec_run(f, CREDENTIAL("\"token\":\"abc\"")), KUBE_IO);

    assert_int_equal(unsetenv("PATH"), 0);
    assert_int_equal(exec_run(f, NULL), KUBE_OK);

    assert_int_equal(setenv("PATH", before, 1), 0);
    free(before);
}


/* As client-go: the last one counts, and what we say of ourselves is ours. */
static void
test_exec_environment_twice(void **state)
{
    exec_fixture_t  *f = *state;

    exec_word(f, &f->config.exec.env[f->config.exec.env_n++], "PLACE=last");
    exec_word(f, &f->config.exec.env[f->config.exec.env_n++],
              "KUBERNETES_EXEC_INFO=theirs");

    /* what the shell was given, not what it made of that */

    assert_int_equal(exec_run(f, "tr '\\0' '\\n' < /proc/$$/environ > trace; "
        CREDENTIAL("\"token\":\"abc\"")), KUBE_OK);
    exec_expect_trace(f, "PLACE=last\n");
    exec_expect_trace(f, "KUBERNETES_EXEC_INFO={");

    assert_int_equal(exec_run(f, "! grep -E 'PLACE=here|INFO=theirs' trace && "
        CREDENTIAL("\"token\":\"abc\"")), KUBE_OK);
}


/* Starts a program that starts another; the pids of that and its supervisor. */
static void
exec_start_two(exec_fixture_t *f, long *pid, long *supervisor)
{
    int      fd;
    char     text[64], other[128], *end;
    ssize_t  n;

    snprintf(other, sizeof(other), "%s/fifo", f->dir);
    assert_int_equal(mkfifo(other, 0600), 0);

    exec_write(f, "sleep 1000 & echo $! $PPID > fifo; wait");
    assert_int_equal(kube_exec_start(f->exec, 1000), KUBE_OK);

    fd = open(other, O_RDONLY);
    assert_true(fd != -1);
    n = read(fd, text, sizeof(text) - 1);
    assert_true(n > 0);
    text[n] = '\0';

    *pid = strtol(text, &end, 10);
    *supervisor = strtol(end, NULL, 10);
    assert_true(*pid > 1 && *supervisor > 1);

    (void) close(fd);
    assert_int_equal(unlink(other), 0);
}


/* Waits until a process is gone, or a zombie that nobody collects here. */
static void
exec_wait_gone(long pid)
{
    char      path[64], line[256];
    bool      zombie;
    FILE     *file;
    unsigned  tries;

    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);

    for (tries = 0; tries < 4000; tries++) {

        file = fopen(path, "r");

        if (file == NULL) {
            return;
        }

        zombie = (fgets(line, sizeof(line), file) == NULL
                  || strstr(line, ") Z ") != NULL);
        (void) fclose(file);

        if (zombie) {
            return;
        }

        (void) poll(NULL, 0, 5);
    }

    (void) kill((pid_t) pid, SIGKILL);
    fail_msg("process %ld is still there", pid);
}


/* Whoever asked is gone: the program, and what it started, end. */
static void
test_exec_ends_with_us(void **state)
{
    long             pid, supervisor;
    exec_fixture_t  *f = *state;

    exec_start_two(f, &pid, &supervisor);
    kube_exec_destroy(f->exec);
    f->exec = NULL;

    exec_wait_gone(pid);
    exec_wait_gone(supervisor);
}


/* The supervisor is killed: they end, too, and that is told. */
static void
test_exec_ends_with_supervisor(void **state)
{
    kube_rc_t        rc;
    long             pid, supervisor;
    exec_fixture_t  *f = *state;

    exec_start_two(f, &pid, &supervisor);
    assert_int_equal(kill((pid_t) supervisor, SIGKILL), 0);
    exec_wait_gone(pid);

    do {
        rc = kube_exec_poll(f->exec, 1000, &f->result);
    } while (rc == KUBE_AGAIN && poll(NULL, 0, 5) == 0);

    assert_int_equal(rc, KUBE_IO);
    assert_non_null(strstr(kube_exec_why(f->exec), "supervisor is gone"));
}


/* The supervisor itself is given up when its time is over. */
static void
test_exec_late(void **state)
{
    exec_fixture_t  *f = *state;

    exec_write(f, "sleep 1000");
    assert_int_equal(kube_exec_start(f->exec, 1000), KUBE_OK);
    assert_int_equal(kube_exec_poll(f->exec, 1000, &f->result), KUBE_AGAIN);
    assert_int_equal(kube_exec_poll(f->exec, 1000 + KUBE_EXEC_TIMEOUT_MS,
                                    &f->result), KUBE_AGAIN);
    assert_int_equal(kube_exec_poll(f->exec, 10000 + KUBE_EXEC_TIMEOUT_MS,
                                    &f->result), KUBE_TIMEOUT);
    assert_non_null(strstr(kube_exec_why(f->exec), "60 s"));
    assert_int_equal(kube_exec_fd(f->exec), -1);
}


static void
test_exec_out_of_memory(void **state)
{
    size_t           k;
    kube_rc_t        rc;
    exec_fixture_t  *f = *state;

    f->config.exec.cluster_info = true;
    exec_write(f, CREDENTIAL("\"token\":\"abc\""));

    for (k = 1; ; k++) {
        alloc_test_fail(&f->at, k, false);
        rc = exec_run(f, NULL);
        alloc_test_heal(&f->at);

        if (rc == KUBE_OK) {
            break;
        }

        assert_int_equal(rc, KUBE_NOMEM);
        assert_int_equal(kube_exec_fd(f->exec), -1);
    }

    assert_true(k > 3);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_exec_token, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_certificate, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_expired, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_what_it_is_told, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_no_cluster_info, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_inherits_no_descriptor,
                                        exec_setup, exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_few_descriptors,
                                        exec_setup, exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_failures, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_not_there, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_by_name, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_by_name_without_path,
                                        exec_setup, exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_environment_twice,
                                        exec_setup, exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_ends_with_us, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_ends_with_supervisor,
                                        exec_setup, exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_late, exec_setup,
                                        exec_teardown),
        cmocka_unit_test_setup_teardown(test_exec_out_of_memory, exec_setup,
                                        exec_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

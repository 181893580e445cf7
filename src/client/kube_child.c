/*
 * kube_child - starts a program under a supervisor, which is nobody's child:
 *
 *   host ── fork ── starter, which leaves at once
 *                      └── supervisor ── fork ── guard, a group
 *                                         └──── the program, in that group
 *
 * A host that collects its children (nginx does) collects the starter alone.
 * The supervisor tells by a pipe how the program ended; it kills the program's
 * group when the time is over, or when nobody reads that pipe any more.  The
 * guard waits for the supervisor's own end alone, and kills the group then: it
 * is there before the program is.
 *
 * It knows nothing of what the program prints.  For kube_exec alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube_child.h"


/* The supervisor looks whether the program has ended each so many ms. */
#define CHILD_LOOK_MS  20

/* Descriptors of ours that a program could inherit, on an old kernel. */
#define CHILD_FDS_MAX  65536


void
kube_child_init(kube_child_t *child)
{
    unsigned  i;

    child->epoll = -1;

    for (i = 0; i < KUBE_CHILD_PIPES; i++) {
        child->pipes[i] = -1;
    }
}


static void
child_close(int *fd)
{
    if (*fd != -1) {
        (void) close(*fd);
        *fd = -1;
    }
}


/* A supervisor that is still there sees it and ends the program. */
void
kube_child_stop(kube_child_t *child)
{
    unsigned  i;

    for (i = 0; i < KUBE_CHILD_PIPES; i++) {
        child_close(&child->pipes[i]);
    }

    child_close(&child->epoll);
}


/* In a process that was forked: async-signal-safe functions alone. */

static void
child_close_from(int first)
{
    int  fd;

#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned) first, ~0u, 0u) == 0) {
        return;
    }
#endif

    for (fd = first; fd < CHILD_FDS_MAX; fd++) {
        (void) close(fd);
    }
}


static_assert(KUBE_CHILD_PIPES == 3, "as many as child_arrange() says");


/*
 * Puts the pipes' ends at 3, 4 and 5, and nothing behind them.  False: there
 * is no descriptor for that, and they are where they were; what is open at 3,
 * 4 and 5 is the host's.
 */
static bool
child_arrange(int ends[KUBE_CHILD_PIPES])
{
    int  i, high[KUBE_CHILD_PIPES];

    for (i = 0; i < KUBE_CHILD_PIPES; i++) {
        high[i] = fcntl(ends[i], F_DUPFD, 3 + KUBE_CHILD_PIPES);

        if (high[i] == -1) {
            return false;
        }
    }

    for (i = 0; i < KUBE_CHILD_PIPES; i++) {
        (void) dup2(high[i], 3 + i);
        ends[i] = 3 + i;
    }

    child_close_from(3 + KUBE_CHILD_PIPES);

    return true;
}


static void
child_say(int fd, kube_child_how_t how, int what)
{
    ssize_t           n;
    kube_child_end_t  end;

    memset(&end, 0, sizeof(end));
    end.how = how;
    end.what = what;

    n = write(fd, &end, sizeof(end));
    (void) n;
}


/* The program, in that group, 0: its own; it returns only if there is none. */
static void
child_program(const int ends[KUBE_CHILD_PIPES], pid_t group, char **argv,
    char **env)
{
    int       null;
    sigset_t  none;

    (void) setpgid(0, group);

    null = open("/dev/null", O_RDONLY);

    (void) dup2(null, STDIN_FILENO);
    (void) dup2(ends[KUBE_CHILD_OUT], STDOUT_FILENO);
    (void) dup2(ends[KUBE_CHILD_ERR], STDERR_FILENO);

    (void) fcntl(ends[KUBE_CHILD_END], F_SETFD, FD_CLOEXEC);
    (void) close(ends[KUBE_CHILD_OUT]);
    (void) close(ends[KUBE_CHILD_ERR]);

    if (null > STDERR_FILENO) {
        (void) close(null);
    }

    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);

    /* execvpe() looks in the host's PATH, and in /bin alone without one */

    if (getenv("PATH") == NULL) {
        environ = env;
    }

    (void) execvpe(argv[0], argv, env);
}


/* Waits for the program, its time, or that nobody asks any more. */
static void
child_supervise(const int ends[KUBE_CHILD_PIPES], pid_t program, pid_t group,
    unsigned timeout_ms)
{
    int            status;
    unsigned       waited_ms;
    struct pollfd  reader;

    reader.fd = ends[KUBE_CHILD_END];
    reader.events = 0;

    for (waited_ms = 0; waited_ms < timeout_ms; waited_ms += CHILD_LOOK_MS) {

        if (waitpid(program, &status, WNOHANG) == program) {

            if (WIFEXITED(status)) {
                child_say(ends[KUBE_CHILD_END], KUBE_CHILD_EXITED,
                          WEXITSTATUS(status));

            } else {
                child_say(ends[KUBE_CHILD_END], KUBE_CHILD_KILLED,
                          WTERMSIG(status));
            }

            return;
        }

        reader.revents = 0;

        if (poll(&reader, 1, CHILD_LOOK_MS) == 1) {
            (void) kill(-group, SIGKILL);
            (void) kill(program, SIGKILL);
            return;
        }
    }

    (void) kill(-group, SIGKILL);
    (void) kill(program, SIGKILL);
    child_say(ends[KUBE_CHILD_END], KUBE_CHILD_LATE, 0);
}


/*
 * Forks the guard, whose group the program will join; -1: there is none, and
 * the program goes without.  What tells it that the supervisor has gone is a
 * pipe that only the supervisor can write to, and which a program never has.
 */
static pid_t
child_guard(const int ends[KUBE_CHILD_PIPES])
{
    int      i, two[2];
    char     c;
    pid_t    pid;
    ssize_t  n;

    if (pipe2(two, O_CLOEXEC) == -1) {
        return -1;
    }

    pid = fork();

    if (pid != 0) {
        (void) close(two[0]);
        (void) setpgid(pid, pid);
        return pid;
    }

    (void) setpgid(0, 0);
    (void) close(two[1]);

    for (i = 0; i < KUBE_CHILD_PIPES; i++) {
        (void) close(ends[i]);
    }

    do {
        n = read(two[0], &c, 1);
    } while (n == -1 && errno == EINTR);

    (void) kill(0, SIGKILL);

    _exit(0);
}


/* The starter: makes the supervisor and leaves. */
static void
child_starter(int ends[KUBE_CHILD_PIPES], char **argv, char **env,
    unsigned timeout_ms)
{
    int               i;
    pid_t             program, guard;
    struct sigaction  action;

    if (fork() != 0) {
        _exit(0);
    }

    (void) setsid();

    memset(&action, 0, sizeof(action));
    action.sa_handler = SIG_DFL;

    for (i = 1; i < NSIG; i++) {
        (void) sigaction(i, &action, NULL);
    }

    if (!child_arrange(ends)) {
        child_say(ends[KUBE_CHILD_END], KUBE_CHILD_NOT_STARTED, errno);
        _exit(0);
    }

    guard = child_guard(ends);
    program = fork();

    if (program == 0) {
        child_program(ends, (guard != -1) ? guard : 0, argv, env);
        child_say(ends[KUBE_CHILD_END], KUBE_CHILD_NOT_STARTED, errno);
        _exit(127);
    }

    (void) close(ends[KUBE_CHILD_OUT]);
    (void) close(ends[KUBE_CHILD_ERR]);

    if (program == -1) {
        child_say(ends[KUBE_CHILD_END], KUBE_CHILD_NOT_STARTED, errno);

    } else {
        child_supervise(ends, program, (guard != -1) ? guard : program,
                        timeout_ms);
    }

    /* what the program has left behind may go on */

    if (guard != -1) {
        (void) kill(guard, SIGKILL);
    }

    _exit(0);
}


static kube_rc_t
child_open(kube_child_t *child, int ends[KUBE_CHILD_PIPES])
{
    int                 i, two[2];
    struct epoll_event  event;

    child->epoll = epoll_create1(EPOLL_CLOEXEC);

    if (child->epoll == -1) {
        return KUBE_IO;
    }

    for (i = 0; i < KUBE_CHILD_PIPES; i++) {

        if (pipe2(two, O_CLOEXEC) == -1) {
            return KUBE_IO;
        }

        child->pipes[i] = two[0];
        ends[i] = two[1];

        memset(&event, 0, sizeof(event));
        event.events = EPOLLIN;
        event.data.u32 = (uint32_t) i;

        if (fcntl(two[0], F_SETFL, O_NONBLOCK) == -1
            || epoll_ctl(child->epoll, EPOLL_CTL_ADD, two[0], &event) == -1)
        {
            return KUBE_IO;
        }
    }

    return KUBE_OK;
}


static kube_rc_t
child_fork(int ends[KUBE_CHILD_PIPES], char **argv, char **env,
    unsigned timeout_ms)
{
    pid_t     pid;
    sigset_t  all, old;

    /* nobody else is to collect the starter, nor be told of it */

    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &old);

    pid = fork();

    if (pid == 0) {
        child_starter(ends, argv, env, timeout_ms);
    }

    while (pid != -1 && waitpid(pid, NULL, 0) == -1 && errno == EINTR) {
        /* void */
    }

    (void) pthread_sigmask(SIG_SETMASK, &old, NULL);

    return pid != -1 ? KUBE_OK : KUBE_IO;
}


kube_rc_t
kube_child_start(kube_child_t *child, char **argv, char **env,
    unsigned timeout_ms)
{
    int        i, ends[KUBE_CHILD_PIPES] = { -1, -1, -1 };
    kube_rc_t  rc;

    kube_child_stop(child);

    rc = child_open(child, ends);

    if (rc == KUBE_OK) {
        rc = child_fork(ends, argv, env, timeout_ms);
    }

    for (i = 0; i < KUBE_CHILD_PIPES; i++) {
        child_close(&ends[i]);
    }

    if (rc != KUBE_OK) {
        kube_child_stop(child);
    }

    return rc;
}


ssize_t
kube_child_read(kube_child_t *child, kube_child_pipe_t pipe, void *data,
    size_t size)
{
    ssize_t  n;

    if (child->pipes[pipe] == -1) {
        return 0;
    }

    n = read(child->pipes[pipe], data, size);

    if (n == 0) {
        child_close(&child->pipes[pipe]);
    }

    return n;
}

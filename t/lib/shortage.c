/*
 * shortage - workers that find too little memory, or time, for what they make
 * of a Service.  Loaded before nginx's modules (LD_PRELOAD) by test_views.py
 * and test_scrape.py, so that nothing of it is in what we build.
 *
 *   KUBE_SHORTAGE_FILE=PATH    while there is such a file, it says what is
 *                              short; each build that begins is told on stderr,
 *                              each spelling of a key that is parsed, and each
 *                              turn of a scrape that is stuck
 *
 *   costly   each step of a build takes longer than a worker may be kept
 *   lines    each line of a scrape takes as long as its turn
 *   nomem    there is no memory
 *   nothing  nothing is
 *   small    a Service is larger than may be read
 *   stuck    a build that began comes to no end, and costs as much, which is
 *            told of the first; nor does what a scrape counts, which is told
 *            once more where nobody else had a turn before
 *   some     the same of builds, but of Services alone whose names begin with s;
 *            of those that begin with m the last step takes half as long
 *   late     the last step of a build takes as long, and is told on stderr
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"

#include "kube_prometheus.h"
#include "kube_resolver.h"
#include "kube_service_counts.h"


#define SHORTAGE_SMALL  1024

/* Of the processor, in us: more than NGX_KUBE_BUILD_STEP. */
#define SHORTAGE_STEP   1100


static char  shortage_file[256];

/* Steps of scrapes since this worker has looked for events. */
static unsigned  shortage_steps;


__attribute__((constructor))
static void
shortage_init(void)
{
    preload_env(shortage_file, sizeof(shortage_file), "KUBE_SHORTAGE_FILE");
}


static int
shortage_is(const char *what)
{
    int      fd;
    char     text[16];
    ssize_t  n;

    fd = open(shortage_file, O_RDONLY);

    if (fd == -1) {
        return 0;
    }

    n = read(fd, text, sizeof(text));
    (void) close(fd);

    return n >= (ssize_t) strlen(what) && memcmp(text, what, strlen(what)) == 0;
}


/* Whether a build for that key comes to no end. */

static int
shortage_is_some(const kube_key_t *key, char first)
{
    return shortage_is("some")
           && key->name.len != 0 && key->name.data[0] == first;
}


static int
shortage_is_stuck(const kube_key_t *key)
{
    return shortage_is("stuck") || shortage_is_some(key, 's');
}


void
kube_resolving_init(kube_resolving_t *resolving,
    const kube_resolver_t *resolver, const kube_key_t *key,
    const kube_alloc_t *alloc, size_t max_bytes)
{
    static const char  told[] = "shortage: a build began\n";

    if (shortage_is("small") || shortage_is("nomem")
        || shortage_is_stuck(key))
    {
        (void) !write(STDERR_FILENO, told, sizeof(told) - 1);
    }

    PRELOAD_NEXT(kube_resolving_init)(resolving, resolver, key, alloc,
                                       shortage_is("small") ? SHORTAGE_SMALL
                                                            : max_bytes);
}


kube_resolve_error_t
kube_resolver_key(const kube_resolver_t *resolver, kube_str_t text,
    kube_key_t *key)
{
    static const char  told[] = "shortage: a key was parsed\n";

    if (shortage_is("no")) {
        (void) !write(STDERR_FILENO, told, sizeof(told) - 1);
    }

    return PRELOAD_NEXT(kube_resolver_key)(resolver, text, key);
}


static long
shortage_worked_us(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (long) ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}


static void
shortage_work(long us)
{
    long  begun;

    begun = shortage_worked_us();

    while (shortage_worked_us() - begun < us) {
        continue;
    }
}


kube_rc_t
kube_resolving_step(kube_resolving_t *resolving)
{
    kube_rc_t  rc;

    static int         stuck;
    static const char  told[] = "shortage: a build was late\n";
    static const char  goes[] = "shortage: a build does not go on\n";

    if (shortage_is_stuck(&resolving->key)) {

        if (!stuck) {
            (void) !write(STDERR_FILENO, goes, sizeof(goes) - 1);
        }

        stuck = 1;
        shortage_work(SHORTAGE_STEP);
        return KUBE_AGAIN;
    }

    stuck = 0;

    if (shortage_is("costly")) {
        shortage_work(SHORTAGE_STEP);
    }

    if (shortage_is("nomem")) {
        return KUBE_NOMEM;
    }

    rc = PRELOAD_NEXT(kube_resolving_step)(resolving);

    if (rc != KUBE_AGAIN && shortage_is("late")) {
        (void) !write(STDERR_FILENO, told, sizeof(told) - 1);
        shortage_work(SHORTAGE_STEP);
    }

    if (rc != KUBE_AGAIN && shortage_is_some(&resolving->key, 'm')) {
        shortage_work(SHORTAGE_STEP / 2);
    }

    return rc;
}


int
epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
    shortage_steps = 0;

    return PRELOAD_NEXT(epoll_wait)(epoll, events, max, timeout);
}


kube_rc_t
kube_service_counts_step(kube_service_counts_t *counts,
    kube_service_counts_row_t *row)
{
    static const char  told[] = "shortage: a scrape has its turn\n";
    static const char  again[] = "shortage: a scrape has another at once\n";

    if (shortage_is("stuck")) {
        (void) !write(STDERR_FILENO, told, sizeof(told) - 1);

        if (shortage_steps++ != 0) {
            (void) !write(STDERR_FILENO, again, sizeof(again) - 1);
        }

        shortage_work(SHORTAGE_STEP);
        return KUBE_AGAIN;
    }

    return PRELOAD_NEXT(kube_service_counts_step)(counts, row);
}


void
kube_prometheus_print_service(kube_text_t *text, kube_str_t informer,
    const kube_service_counts_row_t *row)
{
    if (shortage_is("lines")) {
        shortage_work(SHORTAGE_STEP);
    }

    PRELOAD_NEXT(kube_prometheus_print_service)(text, informer, row);
}


void
kube_prometheus_print_omitted(kube_text_t *text, kube_str_t informer,
    uint64_t omitted)
{
    if (shortage_is("lines")) {
        shortage_work(SHORTAGE_STEP);
    }

    PRELOAD_NEXT(kube_prometheus_print_omitted)(text, informer, omitted);
}

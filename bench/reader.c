/*
 * reader - when a change can be read: in a kube-informer's zone by another
 * process, or as bytes by who waits for them and does nothing else.
 *
 *     reader zone PID LAST
 *     reader bytes PORT
 *
 * The first maps the zone of that process, which takes root, and looks without
 * a pause how far EndpointSlices have come there, in time that nobody else
 * wants (SCHED_IDLE); it says "ready", and after version LAST one line for each
 * version it has seen, with the wall clock's ns.  The second connects to that
 * port of 127.0.0.1, and says after its end how many bytes had come when.  For
 * bench/latency.py alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "kube_arena.h"
#include "kube_zone.h"
#include "kube_zone_scope.h"


#define READER_SEEN_MAX     (1u << 17)
#define READER_ARENA_BYTES  (64u << 10)

/* What is looked for longer is not there. */
#define READER_PATIENCE_S   120


typedef struct {
    uint64_t  what;         /* version, or bytes so far */
    uint64_t  at_ns;
} reader_seen_t;

typedef struct {
    void    *start;
    size_t   size;
} reader_mapping_t;


static reader_seen_t  seen[READER_SEEN_MAX];
static size_t         seen_n;


static void
reader_fail(const char *what)
{
    fprintf(stderr, "reader: %s\n", what);
    exit(1);
}


static uint64_t
reader_now_ns(void)
{
    struct timespec  ts;

    if (clock_gettime(CLOCK_REALTIME, &ts) != 0) {
        reader_fail("no clock");
    }

    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}


static void
reader_note(uint64_t what)
{
    if (seen_n == READER_SEEN_MAX) {
        reader_fail("too many changes");
    }

    seen[seen_n].what = what;
    seen[seen_n].at_ns = reader_now_ns();
    seen_n++;
}


static void
reader_print(void)
{
    size_t  i;

    for (i = 0; i < seen_n; i++) {
        printf("%" PRIu64 " %" PRIu64 "\n", seen[i].what, seen[i].at_ns);
    }
}


static void *
reader_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
reader_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


/* The largest memory that the process shares: it has no other that is large. */
static reader_mapping_t
reader_map(const char *pid)
{
    int               fd;
    FILE             *f;
    char              name[128], line[512], range[64];
    uint64_t          from, to;
    reader_mapping_t  map;

    map.size = 0;
    (void) snprintf(name, sizeof(name), "/proc/%s/maps", pid);
    f = fopen(name, "r");

    if (f == NULL) {
        reader_fail("no such process");
    }

    while (fgets(line, sizeof(line), f) != NULL) {
        if (strstr(line, " rw-s ") != NULL
            && sscanf(line, "%" SCNx64 "-%" SCNx64, &from, &to) == 2
            && to - from > map.size)
        {
            map.size = (size_t) (to - from);
            (void) snprintf(range, sizeof(range), "%" PRIx64 "-%" PRIx64, from,
                            to);
        }
    }

    (void) fclose(f);

    if (map.size == 0) {
        reader_fail("the process shares no memory");
    }

    (void) snprintf(name, sizeof(name), "/proc/%s/map_files/%s", pid, range);
    fd = open(name, O_RDWR);

    if (fd == -1) {
        reader_fail("its memory cannot be opened: root may");
    }

    map.start = mmap(NULL, map.size, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);
    (void) close(fd);

    if (map.start == MAP_FAILED) {
        reader_fail("its memory cannot be mapped");
    }

    return map;
}


/* The scope of EndpointSlices: all are looked at until it is there. */
static unsigned
reader_scope(const kube_zone_t *zone, kube_arena_t *arena)
{
    unsigned           i;
    uint64_t           end;
    kube_scope_info_t  info;

    end = reader_now_ns() + READER_PATIENCE_S * 1000000000ull;

    while (reader_now_ns() < end) {
        for (i = 0; i < zone->geometry.scopes_n; i++) {
            kube_arena_reset(arena);

            if (kube_zone_scope_read(zone, i, arena, &info) == KUBE_OK
                && info.resource == KUBE_RESOURCE_ENDPOINTSLICES
                && info.rv.len != 0)
            {
                return i;
            }
        }
    }

    reader_fail("no EndpointSlices in the zone");

    return 0;
}


static void
reader_zone(const char *pid, uint64_t last)
{
    unsigned            scope;
    uint64_t            rv, before, end;
    kube_zone_t         zone;
    kube_arena_t        arena;
    kube_scope_info_t   info;
    reader_mapping_t    map;
    struct sched_param  idle;

    const kube_alloc_t  heap = { .alloc = reader_alloc, .free = reader_free };

    map = reader_map(pid);

    if (kube_zone_attach(&zone, map.start, map.size) != KUBE_OK) {
        reader_fail("its memory is no zone");
    }

    memset(&idle, 0, sizeof(idle));

    if (sched_setscheduler(0, SCHED_IDLE, &idle) != 0) {
        reader_fail("SCHED_IDLE is refused");
    }

    kube_arena_init(&arena, &heap, READER_ARENA_BYTES);
    scope = reader_scope(&zone, &arena);
    before = 0;
    end = reader_now_ns() + READER_PATIENCE_S * 1000000000ull;
    puts("ready");
    (void) fflush(stdout);

    while (before < last) {
        kube_arena_reset(&arena);

        if (kube_zone_scope_read(&zone, scope, &arena, &info) == KUBE_OK
            && kube_str_to_u64(info.rv, UINT64_MAX, &rv) == KUBE_OK
            && rv != before)
        {
            reader_note(rv);
            before = rv;
        }

        if (reader_now_ns() > end) {
            reader_fail("the last version did not come");
        }
    }

    kube_arena_done(&arena);
}


static void
reader_bytes(uint64_t port)
{
    int                 fd;
    char                buf[65536];
    ssize_t             n;
    uint64_t            total;
    struct sockaddr_in  to;

    memset(&to, 0, sizeof(to));
    to.sin_family = AF_INET;
    to.sin_port = htons((uint16_t) port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd == -1 || connect(fd, (struct sockaddr *) &to, sizeof(to)) != 0) {
        reader_fail("cannot connect");
    }

    total = 0;

    while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
        total += (uint64_t) n;
        reader_note(total);
    }

    (void) close(fd);
}


int
main(int argc, char **argv)
{
    uint64_t  n;

    if (argc == 4 && strcmp(argv[1], "zone") == 0
        && kube_str_to_u64(kube_str(argv[3]), UINT64_MAX, &n) == KUBE_OK)
    {
        reader_zone(argv[2], n);

    } else if (argc == 3 && strcmp(argv[1], "bytes") == 0
               && kube_str_to_u64(kube_str(argv[2]), 65535, &n) == KUBE_OK)
    {
        reader_bytes(n);

    } else {
        reader_fail("zone PID LAST, or bytes PORT");
    }

    reader_print();

    return 0;
}

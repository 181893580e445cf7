/*
 * test_zone_hostile - one process changes bytes of the image while an
 * informer's indexer and publisher write, two readers choose endpoints and a
 * copier fills another image from it.  Nobody dies, nobody hangs, no address
 * appears that no object had; and once it has stopped, a take-over and a list
 * make everything right again.
 *
 * Who takes part is a process of its own, so that one that dies is seen.  A
 * phase ends when all have done their share of work, not with the time.
 *
 * KUBE_HOSTILE_STEPS is how often the share (default 1); KUBE_HOSTILE_SEED is
 * the first seed.  With KUBE_PROOF=1 each region has its phases for a minute.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "indexer_test.h"
#include "kube_select.h"
#include "kube_zone_copy.h"
#include "kube_zone_guard.h"
#include "kube_zone_image.h"
#include "kube_zone_scope.h"


#define HOSTILE_SIZE      (128u << 10)
#define HOSTILE_COPY      (192u << 10)
#define HOSTILE_SERVICES  6
#define HOSTILE_SLICES    3
#define HOSTILE_REGIONS   8
#define HOSTILE_OBJECTS   (HOSTILE_SERVICES * (1 + HOSTILE_SLICES))

/* Addresses that objects have are rare among all: one flip makes none. */
#define HOSTILE_RARE      251

/* Shares of work of a phase. */
#define HOSTILE_WRITES    150
#define HOSTILE_READS     400
#define HOSTILE_COPIES    3
#define HOSTILE_FLIPS     100

/* For so long with KUBE_PROOF=1; a phase then has so many shares. */
#define HOSTILE_PROOF_S       60
#define HOSTILE_PROOF_SHARES  20

/* A process that has not done its share by then hangs: 100 times as long. */
#define HOSTILE_HANG_S    600


/* Who takes part; each counts its steps where the others do not write. */
enum {
    HOSTILE_FLIPPER,
    HOSTILE_WRITER,
    HOSTILE_READER,
    HOSTILE_READER_2,
    HOSTILE_COPIER,
    HOSTILE_ROLES
};

typedef struct {
    _Atomic uint64_t  steps[HOSTILE_ROLES];
    _Atomic uint64_t  useful[HOSTILE_ROLES];
    _Atomic uint64_t  found;           /* the writer noticed something */
    atomic_bool       stop;
} hostile_board_t;

typedef struct {
    const char  *name;
    uint64_t     from;             /* bytes */
    uint64_t     to;
} hostile_region_t;

typedef struct {
    it_t              it;
    hostile_board_t  *board;
    unsigned          role;
    kube_random_t     random;
    it_object_t       objects[HOSTILE_OBJECTS];

    /* the flipper's */
    hostile_region_t  region;
    bool              slow;
} hostile_t;


static unsigned
hostile_pick(hostile_t *h, unsigned n)
{
    return (unsigned) kube_random_range(&h->random, 0, n - 1);
}


static void
hostile_require(bool what, const char *text)
{
    if (!what) {
        fprintf(stderr, "hostile: %s\n", text);
        abort();
    }
}


/* The truth of seed: each Service with all its slices. */
static void
hostile_truth(hostile_t *h)
{
    char       name[24], slice[24];
    unsigned   i, k, n;

    n = 0;

    for (i = 0; i < HOSTILE_SERVICES; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        h->objects[n++] = it_service(&h->it, "shop", name);

        for (k = 0; k < HOSTILE_SLICES; k++) {
            snprintf(slice, sizeof(slice), "svc-%u-%u", i, k);
            h->objects[n++] = it_slice(&h->it, "shop", slice, name);
        }
    }

    for (i = 0; i < n; i++) {
        h->objects[i].version = HOSTILE_RARE * (1 + hostile_pick(h, 250));
    }
}


static void
hostile_list(hostile_t *h)
{
    unsigned  i, slot;

    for (slot = IT_SERVICES; slot <= IT_SLICES; slot++) {
        (void) it_mark(&h->it, KUBE_DELTA_LIST_BEGIN, slot);

        for (i = 0; i < HOSTILE_OBJECTS; i++) {
            if (h->objects[i].there && it_slot(&h->objects[i]) == slot) {
                (void) it_apply(&h->it, KUBE_DELTA_REPLACED, &h->objects[i]);
            }
        }

        (void) it_mark(&h->it, KUBE_DELTA_SYNC, slot);
    }
}


/* As an informer that starts over: the walk, what it found, a list. */
static void
hostile_restart(hostile_t *h)
{
    it_stop(&h->it);

    hostile_require(it_start(&h->it) == KUBE_OK, "no take-over");
    hostile_require(it_scopes(&h->it) == KUBE_OK, "no scopes");
    hostile_require(kube_indexer_load(h->it.ix, h->it.now_ms) == KUBE_OK,
                    "no load");
    hostile_list(h);
}


static void
hostile_event(hostile_t *h)
{
    it_object_t  *o;

    o = &h->objects[hostile_pick(h, HOSTILE_OBJECTS)];
    it_stamp(&h->it, o);

    switch (hostile_pick(h, 8)) {

    case 0:
        o->there = false;
        (void) it_apply(&h->it, KUBE_DELTA_DELETED, o);
        break;

    case 1:
        (void) it_apply(&h->it, KUBE_DELTA_REFUSED, o);
        break;

    default:
        o->there = true;
        o->version = HOSTILE_RARE * (1 + hostile_pick(h, 250));
        o->endpoints = (o->resource == KUBE_RESOURCE_SERVICES)
                       ? 0 : hostile_pick(h, 20);
        (void) it_apply(&h->it, KUBE_DELTA_UPDATED, o);
    }
}


static void
hostile_write(hostile_t *h)
{
    unsigned  turns;

    h->it.now_ms += 500;
    hostile_event(h);

    /* what cannot be published waits: nothing is published for ever */
    for (turns = 0; turns < 100; turns++) {
        if (kube_publisher_run(h->it.publisher, 3, h->it.now_ms, 0) == 0) {
            break;
        }
    }

    if (hostile_pick(h, 20) == 0) {
        hostile_list(h);
    }

    kube_zone_writer_scrub(h->it.writer, 16);

    if (*h->it.writer->suspect) {
        atomic_fetch_add(&h->board->found, 1);
    }

    if (hostile_pick(h, *h->it.writer->suspect ? 4 : 40) == 0) {
        hostile_restart(h);
    }

    atomic_fetch_add(&h->board->useful[h->role], 1);
}


static void
hostile_address(const kube_addr_t *addr)
{
    unsigned  i, version;

    version = addr->bytes[1] * 256u + addr->bytes[2];

    hostile_require(addr->family == KUBE_FAMILY_IPV4
                    && addr->bytes[0] == 10
                    && version != 0
                    && version % HOSTILE_RARE == 0
                    && addr->bytes[3] != 0
                    && addr->bytes[3] <= 20,
                    "an address that no object had");

    for (i = 4; i < sizeof(addr->bytes); i++) {
        hostile_require(addr->bytes[i] == 0, "an address with a tail");
    }
}


static void
hostile_read_service(hostile_t *h, const kube_zone_t *zone,
    kube_arena_t *arena)
{
    char                    name[24];
    size_t                  i;
    uint32_t                entry;
    kube_snapshot_t         s;
    kube_selection_t        selection;
    kube_select_options_t   options;

    memset(&options, 0, sizeof(kube_select_options_t));
    snprintf(name, sizeof(name), "svc-%u", hostile_pick(h, HOSTILE_SERVICES));

    if (kube_zone_find(zone, KUBE_RESOURCE_SERVICES, KUBE_STR("shop"),
                       kube_str(name), &entry) != KUBE_OK
        || kube_zone_read(zone, entry, KUBE_STR("shop"), kube_str(name),
                          arena, &s) != KUBE_OK
        || kube_select(arena, &s, NULL, &options, KUBE_SELECT_ANY_PORT,
                       &selection) != KUBE_OK)
    {
        return;
    }

    hostile_require(s.slices_n <= KUBE_SERVICE_SLICES_MAX, "too many slices");

    for (i = 0; i < selection.n; i++) {
        hostile_address(&selection.endpoints[i].addr);
    }

    atomic_fetch_add(&h->board->useful[h->role], selection.n != 0);
}


/* What the status page and health checks look at. */
static void
hostile_read_rest(const kube_zone_t *zone, kube_arena_t *arena)
{
    uint32_t              cursor, entry;
    kube_health_t         health;
    kube_scope_info_t     scope;
    kube_zone_usage_t     usage;
    kube_writer_info_t    writer;
    const kube_record_t  *record;

    kube_zone_usage(zone, &usage);
    kube_zone_health(zone, 1000, 1000, &health);
    kube_zone_writer_info(zone, &writer);
    (void) kube_zone_server(zone, arena);
    hostile_require(kube_zone_scope_read(zone, 0, arena, &scope)
                    != KUBE_NOMEM, "no memory for a scope");

    cursor = 0;

    while (kube_zone_next(zone, KUBE_RECORD_SLICE, &cursor, arena, &record,
                          &entry) == KUBE_OK)
    {
        hostile_require(kube_record_verify(record, record->size) == KUBE_OK,
                        "a record that is broken");
    }
}


static void
hostile_read(hostile_t *h)
{
    kube_arena_t  arena;

    kube_arena_init(&arena, &h->it.at.alloc, 4u << 20);
    hostile_read_service(h, &h->it.zone, &arena);

    if (hostile_pick(h, 16) == 0) {
        kube_arena_reset(&arena);
        hostile_read_rest(&h->it.zone, &arena);
    }

    kube_arena_done(&arena);
}


static void
hostile_copy(hostile_t *h)
{
    void          *mem;
    unsigned       i;
    kube_zone_t    to;
    kube_arena_t   arena;

    mem = calloc(1, HOSTILE_COPY);
    hostile_require(mem != NULL
                    && kube_zone_create(&to, mem, HOSTILE_COPY,
                                        (kube_seed_t) { 5, 6 }) == KUBE_OK,
                    "no copy");

    hostile_require(kube_zone_copy(&to, &h->it.zone, &h->it.at.alloc)
                    != KUBE_NOMEM, "no memory to copy");
    hostile_require(kube_zone_validate(mem, HOSTILE_COPY) == KUBE_OK,
                    "a copy that is broken");

    kube_arena_init(&arena, &h->it.at.alloc, 4u << 20);

    for (i = 0; i < 2 * HOSTILE_SERVICES; i++) {
        kube_arena_reset(&arena);
        hostile_read_service(h, &to, &arena);
    }

    kube_arena_done(&arena);
    free(mem);
}


/* Changes bytes: any, a small number in a link's place, or another's word. */
static void
hostile_flip(hostile_t *h)
{
    char             *image;
    uint64_t          at, from, room;
    uint32_t          small;
    struct timespec   ms = { 0, 1000000 };

    image = h->it.mem;
    room = h->region.to - h->region.from;
    at = h->region.from + kube_random_range(&h->random, 0, room - 1);

    switch (hostile_pick(h, 4)) {

    case 0:
        small = hostile_pick(h, h->it.zone.geometry.entries_n + 2);
        at = at / 8 * 8 + 4 * hostile_pick(h, 2);
        memcpy(image + at, &small, sizeof(uint32_t));
        break;

    case 1:
        from = (h->region.from + kube_random_range(&h->random, 0, room - 1))
               / 8 * 8;
        memmove(image + at / 8 * 8, image + from, 8);
        break;

    default:
        image[at] ^= (char) (1 + hostile_pick(h, 255));
    }

    if (h->slow) {
        nanosleep(&ms, NULL);
    }
}


static void
hostile_run(hostile_t *h)
{
    static void  (*const steps[])(hostile_t *h) = {
        [HOSTILE_FLIPPER] = hostile_flip,
        [HOSTILE_WRITER] = hostile_write,
        [HOSTILE_READER] = hostile_read,
        [HOSTILE_READER_2] = hostile_read,
        [HOSTILE_COPIER] = hostile_copy
    };

    (void) alarm(HOSTILE_HANG_S);

    if (h->role == HOSTILE_WRITER) {
        hostile_restart(h);
    }

    while (!atomic_load(&h->board->stop)) {
        steps[h->role](h);
        atomic_fetch_add(&h->board->steps[h->role], 1);
    }
}


static bool
hostile_is_done(const hostile_t *h, unsigned share)
{
    unsigned  i;

    static const unsigned  shares[HOSTILE_ROLES] = {
        [HOSTILE_FLIPPER] = HOSTILE_FLIPS,
        [HOSTILE_WRITER] = HOSTILE_WRITES,
        [HOSTILE_READER] = HOSTILE_READS,
        [HOSTILE_READER_2] = HOSTILE_READS,
        [HOSTILE_COPIER] = HOSTILE_COPIES
    };

    for (i = 0; i < HOSTILE_ROLES; i++) {
        if (atomic_load(&h->board->steps[i])
            < (uint64_t) shares[i] * share)
        {
            return false;
        }
    }

    return true;
}


/* Each role in a process; -1: one ended before its time. */
static int
hostile_phase(hostile_t *h, unsigned share)
{
    int       rc, status;
    pid_t     pids[HOSTILE_ROLES];
    unsigned  i;

    memset(h->board, 0, sizeof(hostile_board_t));

    for (i = 0; i < HOSTILE_ROLES; i++) {
        fflush(NULL);
        pids[i] = fork();
        assert_true(pids[i] >= 0);

        if (pids[i] == 0) {
            h->role = i;
            h->random.state += 7919 * i;
            hostile_run(h);
            _exit(0);
        }
    }

    rc = 0;

    while (rc == 0 && !hostile_is_done(h, share)) {
        sched_yield();

        for (i = 0; i < HOSTILE_ROLES; i++) {
            if (pids[i] != 0 && waitpid(pids[i], &status, WNOHANG) != 0) {
                print_error("hostile: role %u ended, status %x\n", i, status);
                pids[i] = 0;
                rc = -1;
            }
        }
    }

    atomic_store(&h->board->stop, true);

    for (i = 0; i < HOSTILE_ROLES; i++) {
        if (pids[i] != 0
            && (waitpid(pids[i], &status, 0) != pids[i] || status != 0))
        {
            print_error("hostile: role %u ended, status %x\n", i, status);
            rc = -1;
        }
    }

    return rc;
}


/* After the last flip: a take-over, a list, and everything is as it should. */
static void
hostile_heals(hostile_t *h)
{
    char      expected[512];
    size_t    len;
    unsigned  i, k;

    h->it.now_ms += 100000000;
    h->it.rv += 100000000;
    hostile_truth(h);
    hostile_restart(h);

    /* what the walk found free in a chain rests before it is taken again */
    h->it.now_ms += KUBE_ZONE_QUARANTINE_MS;
    kube_zone_writer_now(h->it.writer, h->it.now_ms);
    hostile_list(h);
    (void) it_publish(&h->it);

    for (i = 0; i < HOSTILE_OBJECTS; i += 1 + HOSTILE_SLICES) {
        len = (size_t) snprintf(expected, sizeof(expected), "%u",
                                h->objects[i].version % 65535);

        for (k = 1; k <= HOSTILE_SLICES; k++) {
            len += (size_t) snprintf(expected + len, sizeof(expected) - len,
                                     " %s=%u*%u", h->objects[i + k].name,
                                     h->objects[i + k].version,
                                     h->objects[i + k].endpoints);
        }

        IT_READS(&h->it, "shop", h->objects[i].name, expected);
    }

    assert_int_equal(it_sum(&h->it, IT_SERVICES).count, HOSTILE_SERVICES);
    assert_int_equal(it_sum(&h->it, IT_SLICES).count,
                     HOSTILE_SERVICES * HOSTILE_SLICES);
    assert_int_equal(kube_zone_validate(h->it.mem, h->it.size), KUBE_OK);

    it_takeover(&h->it);
    assert_int_equal(h->it.takeover.cut_off, 0);
    assert_int_equal(it_sum(&h->it, IT_SLICES).count,
                     HOSTILE_SERVICES * HOSTILE_SLICES);
    it_stop(&h->it);
}


static unsigned
hostile_number(const char *name, unsigned standard)
{
    const char  *text;

    text = getenv(name);

    return (text != NULL) ? (unsigned) strtoul(text, NULL, 10) : standard;
}


/* The image lies between two pages that nobody may touch. */
static void
hostile_open(hostile_t *h)
{
    char  *mem;

    memset(h, 0, sizeof(hostile_t));
    alloc_test_init(&h->it.at);
    h->it.disturbed = true;

    mem = mmap(NULL, HOSTILE_SIZE + 2 * 4096, PROT_NONE,
               MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(mem != MAP_FAILED);
    assert_int_equal(mprotect(mem + 4096, HOSTILE_SIZE, PROT_READ|PROT_WRITE),
                     0);
    h->board = mmap(NULL, sizeof(hostile_board_t), PROT_READ|PROT_WRITE,
                    MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_true(h->board != MAP_FAILED);

    h->it.mem = mem + 4096;
    h->it.size = HOSTILE_SIZE;
    h->it.now_ms = 1000;
    assert_int_equal(kube_zone_create(&h->it.zone, h->it.mem, h->it.size,
                                      (kube_seed_t) { 3, 4 }), KUBE_OK);
}


static void
hostile_close(hostile_t *h)
{
    alloc_test_assert_no_leak(&h->it.at);
    assert_int_equal(munmap(h->board, sizeof(hostile_board_t)), 0);
    assert_int_equal(munmap((char *) h->it.mem - 4096,
                            HOSTILE_SIZE + 2 * 4096), 0);
}


static void
hostile_print(const hostile_t *h)
{
    print_message("hostile: %-8s %s: %7llu flips, %llu writes (%llu found "
                  "something), %llu reads with endpoints, %llu copies\n",
                  h->region.name, h->slow ? "1 kHz" : "fast",
                  (unsigned long long) h->board->steps[HOSTILE_FLIPPER],
                  (unsigned long long) h->board->steps[HOSTILE_WRITER],
                  (unsigned long long) h->board->found,
                  (unsigned long long) (h->board->useful[HOSTILE_READER]
                                        + h->board->useful[HOSTILE_READER_2]),
                  (unsigned long long) h->board->steps[HOSTILE_COPIER]);
}


static void
hostile_regions(const kube_zone_t *zone, hostile_region_t *regions)
{
    const kube_zone_geometry_t  *g;

    g = &zone->geometry;

    regions[0] = (hostile_region_t) {
        "geometry", 0, sizeof(kube_zone_geometry_t)
    };
    regions[1] = (hostile_region_t) {
        "words", sizeof(kube_zone_geometry_t), g->buckets
    };
    regions[2] = (hostile_region_t) { "buckets", g->buckets, g->entries };
    regions[3] = (hostile_region_t) { "entries", g->entries, g->scopes };
    regions[4] = (hostile_region_t) { "scopes", g->scopes, g->workers };
    regions[5] = (hostile_region_t) { "workers", g->workers, g->segments };
    regions[6] = (hostile_region_t) { "segments", g->segments, HOSTILE_SIZE };
    regions[7] = (hostile_region_t) { "all", 0, HOSTILE_SIZE };
}


/* One phase, and what is right again after it. */
static void
hostile_try(hostile_t *h, bool slow, unsigned share, unsigned seed)
{
    kube_random_init(&h->random, seed);
    h->slow = slow;
    hostile_truth(h);

    if (hostile_phase(h, share) != 0) {
        fail_msg("%s, %s, seed %u", h->region.name,
                 slow ? "1 kHz" : "full speed", seed);
    }

    hostile_print(h);
    hostile_heals(h);
}


static void
test_hostile_every_region(void **state)
{
    bool              proof;
    time_t            ends;
    unsigned          i, share, seed;
    hostile_t         h;
    hostile_region_t  regions[HOSTILE_REGIONS];

    (void) state;
    hostile_open(&h);
    hostile_regions(&h.it.zone, regions);
    proof = (getenv("KUBE_PROOF") != NULL);
    share = hostile_number("KUBE_HOSTILE_STEPS",
                           proof ? HOSTILE_PROOF_SHARES : 1);
    seed = hostile_number("KUBE_HOSTILE_SEED", 1);

    for (i = 0; i < HOSTILE_REGIONS; i++) {
        h.region = regions[i];
        ends = time(NULL) + (proof ? HOSTILE_PROOF_S : 0);

        do {
            hostile_try(&h, true, share, seed++);
            hostile_try(&h, false, share, seed++);
        } while (time(NULL) < ends);
    }

    hostile_close(&h);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_hostile_every_region),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

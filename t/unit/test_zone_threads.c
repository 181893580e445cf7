/*
 * test_zone_threads - one writer and four readers as threads over a heap
 * image: what a reader gets is one state of a Service, never parts of two.
 *
 * ThreadSanitizer cannot see shared memory of processes; built with
 * -fsanitize=thread this is the program it looks at.  Bounded by steps, not
 * by time.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <pthread.h>
#include <sched.h>

#include "zone_test.h"


#ifndef THREADS_STEPS
#define THREADS_STEPS   10000
#endif

#define THREADS_READERS   4
#define THREADS_SERVICES  12
#define THREADS_SLICES    3


typedef struct {
    zone_test_t  *t;
    atomic_uint   stop;
    atomic_uint   ready;
    unsigned      reads[THREADS_READERS];
    unsigned      torn[THREADS_READERS];
    unsigned      back[THREADS_READERS];
    unsigned      broken[THREADS_READERS];
} threads_t;

typedef struct {
    threads_t  *all;
    unsigned    number;
    uint64_t    revisions[THREADS_SERVICES];
} threads_reader_t;


static void *
threads_heap_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
threads_heap_free(void *ctx, void *p)
{
    (void) ctx;
    free(p);
}


/* A scope's resourceVersion, count and digest all say the same number. */
static void
threads_read_scope(threads_reader_t *r, kube_arena_t *arena)
{
    uint64_t           rv;
    kube_rc_t          rc;
    kube_health_t      health;
    kube_scope_info_t  info;

    rc = kube_zone_scope_read(&r->all->t->zone, 0, arena, &info);

    if (rc == KUBE_OK) {
        if (kube_str_to_u64(info.rv, UINT64_MAX, &rv) != KUBE_OK
            || rv != info.count
            || rv != info.digest.lo
            || rv != ~info.digest.hi)
        {
            r->all->torn[r->number]++;
        }

    } else if (rc != KUBE_CHANGED) {
        r->all->broken[r->number]++;
    }

    kube_zone_health(&r->all->t->zone, 1, 1, &health);

    if (health.scopes != 1) {
        r->all->broken[r->number]++;
    }
}


static void
threads_read_service(threads_reader_t *r, kube_arena_t *arena, unsigned i)
{
    char             name[32];
    uint32_t         e;
    kube_rc_t        rc;
    kube_snapshot_t  s;

    snprintf(name, sizeof(name), "svc-%u", i);

    if (kube_zone_find(&r->all->t->zone, KUBE_RESOURCE_SERVICES,
                       KUBE_STR("shop"), zone_test_str(name), &e) != KUBE_OK)
    {
        /* every second Service is never removed */
        r->all->broken[r->number] += (i % 2 == 0);
        return;
    }

    rc = kube_zone_read(&r->all->t->zone, e, KUBE_STR("shop"),
                        zone_test_str(name), arena, &s);

    if (rc == KUBE_CHANGED || (rc == KUBE_NOT_FOUND && i % 2 == 1)) {
        return;
    }

    if (rc != KUBE_OK) {
        r->all->broken[r->number]++;
        return;
    }

    r->all->reads[r->number]++;

    if (zone_test_variant(&s) == UINT32_MAX
        || (s.slices_n != THREADS_SLICES && i % 2 == 0))
    {
        r->all->torn[r->number]++;
    }

    if (s.revision < r->revisions[i]) {
        r->all->back[r->number]++;
    }

    r->revisions[i] = s.revision;
}


static void *
threads_reader(void *arg)
{
    unsigned           i;
    kube_alloc_t       alloc;
    kube_arena_t       arena;
    threads_reader_t  *r;

    r = arg;
    alloc = (kube_alloc_t) {
        .alloc = threads_heap_alloc,
        .free = threads_heap_free
    };
    kube_arena_init(&arena, &alloc, 8u << 20);
    atomic_fetch_add(&r->all->ready, 1);

    for (i = r->number; !atomic_load(&r->all->stop); i++) {
        kube_arena_reset(&arena);
        threads_read_service(r, &arena, i % THREADS_SERVICES);
        threads_read_scope(r, &arena);
    }

    kube_arena_done(&arena);

    return NULL;
}


static void
threads_put_scope(zone_test_t *t, uint64_t n)
{
    char               rv[24];
    kube_scope_info_t  info;

    snprintf(rv, sizeof(rv), "%llu", (unsigned long long) n);
    memset(&info, 0, sizeof(info));
    info.rv = zone_test_str(rv);
    info.count = n;
    info.digest.lo = n;
    info.digest.hi = ~n;
    assert_int_equal(kube_zone_scope_publish(t->writer, 0, &info), KUBE_OK);
}


/* Odd ones come and go, and the entries of the gone are used again. */
static void
threads_write(zone_test_t *t, unsigned step, uint64_t now)
{
    char      name[32];
    size_t    k, n;
    unsigned  i;
    uint32_t  e;

    i = step % THREADS_SERVICES;
    snprintf(name, sizeof(name), "svc-%u", i);

    if (i % 2 == 1 && step % 5 == 0) {
        e = kube_zone_writer_find(t->writer, KUBE_RESOURCE_SERVICES,
                                  KUBE_STR("shop"), zone_test_str(name));
        kube_zone_writer_now(t->writer, now);
        kube_zone_remove(t->writer, e);

        for (k = 0; k < THREADS_SLICES; k++) {
            snprintf(name, sizeof(name), "svc-%u-%zu", i, k);
            e = kube_zone_writer_find(t->writer, KUBE_RESOURCE_ENDPOINTSLICES,
                                      KUBE_STR("shop"), zone_test_str(name));
            kube_zone_remove(t->writer, e);
        }

        return;
    }

    n = THREADS_SLICES;
    assert_int_equal(zone_test_put(t, "shop", name, step, step % 60000, n,
                                   1 + step % 9, now), KUBE_OK);
}


static void
test_threads_one_writer_four_readers(void **state)
{
    size_t            k;
    unsigned          i, reads, torn, back, broken;
    pthread_t         tid[THREADS_READERS];
    threads_t         all;
    zone_test_t       t;
    threads_reader_t  readers[THREADS_READERS];

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    memset(&all, 0, sizeof(all));
    memset(readers, 0, sizeof(readers));
    all.t = &t;

    for (i = 0; i < THREADS_SERVICES; i++) {
        threads_write(&t, 12 + i, 1000);
    }

    threads_put_scope(&t, 1);

    for (k = 0; k < THREADS_READERS; k++) {
        readers[k].all = &all;
        readers[k].number = (unsigned) k;
        assert_int_equal(pthread_create(&tid[k], NULL, threads_reader,
                                        &readers[k]), 0);
    }

    while (atomic_load(&all.ready) < THREADS_READERS) {
        sched_yield();
    }

    for (i = 24; i < 24 + THREADS_STEPS; i++) {
        threads_write(&t, i, i * 1000ull);
        threads_put_scope(&t, i);
    }

    atomic_store(&all.stop, 1);
    reads = torn = back = broken = 0;

    for (k = 0; k < THREADS_READERS; k++) {
        assert_int_equal(pthread_join(tid[k], NULL), 0);
        reads += all.reads[k];
        torn += all.torn[k];
        back += all.back[k];
        broken += all.broken[k];
    }

    print_message("threads: %u reads beside %u writes\n", reads,
                  THREADS_STEPS);
    assert_int_equal(torn, 0);
    assert_int_equal(back, 0);
    assert_int_equal(broken, 0);
    assert_true(reads > 100);
    assert_true(kube_word_get(&t.zone.image->corrupt) == 0);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_threads_one_writer_four_readers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_zone - kube_zone: creating, attaching, checking images of any bytes,
 * what fits into which size, copying into another size.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <time.h>

#include "kube_zone_private.h"
#include "zone_test.h"


#define ZONE_MUTATIONS  1500


static void
test_zone_create_bounds(void **state)
{
    void         *mem;
    size_t        size;
    kube_zone_t   zone;

    (void) state;
    mem = zone_test_memory(KUBE_ZONE_SIZE_MIN);

    assert_int_equal(kube_zone_create(&zone, NULL, KUBE_ZONE_SIZE_MIN,
                                      zone_test_seed), KUBE_INVALID);
    assert_int_equal(kube_zone_create(&zone, mem, KUBE_ZONE_SIZE_MIN - 1,
                                      zone_test_seed), KUBE_INVALID);
    assert_int_equal(kube_zone_create(&zone, (char *) mem + 4,
                                      KUBE_ZONE_SIZE_MIN, zone_test_seed),
                     KUBE_INVALID);
    assert_int_equal(kube_zone_create(&zone, mem, KUBE_ZONE_SIZE_MAX + 1,
                                      zone_test_seed), KUBE_INVALID);

    for (size = KUBE_ZONE_SIZE_MIN; size < (1u << 20); size += 4096 + 8) {
        free(mem);
        mem = zone_test_memory((size + 63) / 64 * 64);
        assert_int_equal(kube_zone_create(&zone, mem, size, zone_test_seed),
                         KUBE_OK);
        assert_int_equal(kube_zone_validate(mem, size), KUBE_OK);
        assert_true(zone.image->geometry.segments
                    + (uint64_t) zone.image->geometry.segments_n
                      * zone.image->geometry.segment_size <= size);
        assert_true(zone.image->geometry.segments_n >= 8);
    }

    free(mem);
}


static void
test_zone_attach_refuses(void **state)
{
    void          *mem;
    size_t         i;
    kube_zone_t    zone;
    unsigned char  was;

    (void) state;
    mem = zone_test_memory(KUBE_ZONE_SIZE_MIN);

    assert_int_equal(kube_zone_attach(&zone, mem, KUBE_ZONE_SIZE_MIN),
                     KUBE_CORRUPT);
    assert_int_equal(kube_zone_create(&zone, mem, KUBE_ZONE_SIZE_MIN,
                                      zone_test_seed), KUBE_OK);
    assert_int_equal(kube_zone_attach(&zone, mem, KUBE_ZONE_SIZE_MIN),
                     KUBE_OK);
    assert_int_equal(kube_zone_attach(&zone, mem, KUBE_ZONE_SIZE_MIN - 8),
                     KUBE_CORRUPT);
    assert_int_equal(kube_zone_attach(&zone, NULL, KUBE_ZONE_SIZE_MIN),
                     KUBE_CORRUPT);

    for (i = 0; i < sizeof(kube_zone_geometry_t); i++) {
        was = ((unsigned char *) mem)[i];
        ((unsigned char *) mem)[i] ^= 1;
        assert_int_equal(kube_zone_attach(&zone, mem, KUBE_ZONE_SIZE_MIN),
                         KUBE_CORRUPT);
        ((unsigned char *) mem)[i] = was;
    }

    free(mem);
}


static void
zone_fill(zone_test_t *t, unsigned services)
{
    char      name[32];
    unsigned  i;

    for (i = 0; i < services; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_put(t, "shop", name, 1, i, 2, 3, 1000),
                         KUBE_OK);
    }
}


/* Reads everything a worker could read; results do not matter. */
static void
zone_read_all(zone_test_t *t, unsigned services)
{
    char                  name[32];
    uint32_t              cursor, entry;
    unsigned              i;
    kube_snapshot_t       snapshot;
    kube_scope_info_t     info;
    const kube_record_t  *record;

    for (i = 0; i < services; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        (void) !zone_test_read(t, "shop", name, &snapshot);
    }

    kube_arena_reset(&t->arena);
    cursor = 0;

    while (kube_zone_next(&t->zone, KUBE_RECORD_SLICE, &cursor, &t->arena,
                          &record, &entry) == KUBE_OK)
    {
        /* void */
    }

    (void) !kube_zone_scope_read(&t->zone, 0, &t->arena, &info);
    (void) kube_zone_server(&t->zone, &t->arena);
}


static void
zone_mutate(kube_random_t *r, unsigned char *mem, size_t from, size_t size)
{
    size_t    at, len;
    unsigned  k, n;

    n = (unsigned) kube_random_range(r, 1, 40);

    for (k = 0; k < n; k++) {
        at = (size_t) kube_random_range(r, from, size - 9);

        switch (kube_random_next(r) % 4) {
        case 0:
            mem[at] ^= (unsigned char) (1u << kube_random_next(r) % 8);
            break;

        case 1:
            mem[at] = (unsigned char) kube_random_next(r);
            break;

        case 2:
            /* what lies elsewhere: valid records in wrong places */
            len = (size_t) kube_random_range(r, 8, 512) / 8 * 8;
            at = at / 8 * 8;

            if (at + len < size) {
                memmove(mem + at, mem + (size_t) kube_random_range(r, from,
                                                        size - len) / 8 * 8,
                        len);
            }

            break;

        default:
            memset(mem + at, 0xff * (int) (kube_random_next(r) & 1), 8);
        }
    }
}


/*
 * A mutated image is read, taken over, written to; afterwards it must be
 * valid.  The guard is made anew: its bytes are the C library's.
 */
static void
zone_try_mutated(zone_test_t *t, const void *pristine, kube_random_t *r)
{
    char             name[32];
    size_t           guard;
    uint32_t         e;
    unsigned         i;
    kube_rc_t        rc;
    kube_takeover_t  takeover;

    kube_zone_writer_release(t->writer);
    memcpy(t->mem, pristine, t->size);

    guard = offsetof(kube_zone_image_t, guard) + sizeof(pthread_mutex_t);
    zone_mutate(r, t->mem, guard, t->size);

    (void) !kube_zone_validate(t->mem, t->size);
    zone_read_all(t, 10);
    zone_test_acquire(t, 2000, &takeover);
    assert_int_equal(kube_zone_validate(t->mem, t->size), KUBE_OK);

    for (i = 0; i < 20; i++) {
        snprintf(name, sizeof(name), "svc-%u",
                 (unsigned) kube_random_range(r, 0, 30));
        rc = zone_test_put(t, "shop", name, 2, 100 + i, 2, 3, 3000);
        assert_true(rc == KUBE_OK || rc == KUBE_FULL);
    }

    for (e = kube_zone_writer_next(t->writer, 0); e != 0;
         e = kube_zone_writer_next(t->writer, e))
    {
        if (kube_random_next(r) % 4 == 0) {
            kube_zone_remove(t->writer, e);
        }
    }

    zone_read_all(t, 30);
}


static void
test_zone_any_bytes(void **state)
{
    void             *pristine;
    unsigned          i;
    zone_test_t       t;
    kube_random_t     r;
    kube_scope_info_t info;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    zone_fill(&t, 20);
    memset(&info, 0, sizeof(info));
    info.rv = KUBE_STR("12");
    assert_int_equal(kube_zone_scope_publish(t.writer, 0, &info), KUBE_OK);
    assert_int_equal(kube_zone_server_set(t.writer, KUBE_STR("https://x")),
                     KUBE_OK);
    kube_zone_writer_release(t.writer);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);

    pristine = zone_test_memory(t.size);
    memcpy(pristine, t.mem, t.size);
    kube_random_init(&r, 3);

    for (i = 0; i < ZONE_MUTATIONS; i++) {
        zone_try_mutated(&t, pristine, &r);
    }

    free(pristine);
    zone_test_close(&t);
}


/* Nothing but noise behind an intact header. */
static void
test_zone_noise(void **state)
{
    size_t           i, from;
    unsigned         round;
    zone_test_t      t;
    kube_random_t    r;
    kube_takeover_t  takeover;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_random_init(&r, 4);
    from = offsetof(kube_zone_image_t, guard) + sizeof(pthread_mutex_t);

    for (round = 0; round < 50; round++) {
        kube_zone_writer_release(t.writer);

        for (i = from; i < t.size; i++) {
            ((unsigned char *) t.mem)[i] = (unsigned char)
                                               kube_random_next(&r);
        }

        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_CORRUPT);
        zone_read_all(&t, 10);
        zone_test_acquire(&t, 2000, &takeover);
        assert_int_equal(takeover.records, 0);
        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
        zone_fill(&t, 10);
    }

    for (i = 0; i < t.size; i++) {
        ((unsigned char *) t.mem)[i] ^= 0x55;
    }

    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_CORRUPT);

    for (i = 0; i < t.size; i++) {
        ((unsigned char *) t.mem)[i] ^= 0x55;
    }

    zone_test_close(&t);
}


/* A valid record inside another valid one: one of the two must go. */
static void
test_zone_overlap(void **state)
{
    bool                  scope, service;
    uint32_t              e, outer;
    zone_test_t           t;
    kube_word_t          *head;
    kube_takeover_t       takeover;
    kube_snapshot_t       s;
    kube_zone_usage_t     u;
    const kube_record_t  *inner, *left;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 0, 0, 1000),
                     KUBE_OK);
    e = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "web");
    inner = kube_zone_published(t.writer, e);

    /* content begins 32 bytes, 4 units, behind the record */
    assert_int_equal(kube_zone_put_raw(t.writer,
                                       kube_zone_scope_number(&t.zone, 0,
                                                              false),
                                       KUBE_RECORD_SCOPE,
                                       KUBE_RESOURCE_SERVICES, inner,
                                       inner->size), KUBE_OK);
    head = kube_zone_head_of(&t.zone, kube_zone_scope_number(&t.zone, 0,
                                                             false));
    outer = kube_head_offset(kube_word_get(head));
    kube_head_set(&kube_zone_entry(&t.zone, e)->head, outer + 4);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);

    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 1000, &takeover);
    service = (zone_test_read(&t, "shop", "web", &s) == KUBE_OK);
    scope = (kube_head_offset(kube_word_get(head)) != 0);
    assert_true(service != scope);

    left = service ? kube_zone_published(t.writer, e)
                   : kube_zone_record_at(t.writer, outer);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.live_bytes, left->size);
    zone_test_close(&t);
}


static double
zone_seconds(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}


/* Puts 10 000 Services of 10 endpoints; returns how many fitted. */
static unsigned
zone_put_many(zone_test_t *t, unsigned services)
{
    char      ns[32], name[32];
    unsigned  i, n;

    for (i = 0, n = 0; i < services; i++) {
        snprintf(ns, sizeof(ns), "tenant-%02u", i % 100);
        snprintf(name, sizeof(name), "service-%05u", i);
        n += (zone_test_put(t, ns, name, 100000 + i, i, 1, 10, 1000)
              == KUBE_OK);
    }

    return n;
}


static void
zone_print_speed(zone_test_t *t)
{
    char             ns[32], name[32];
    double           start, find, read, head;
    uint32_t         entries[1000];
    uint64_t         sum;
    unsigned         i;
    kube_snapshot_t  s;

    start = zone_seconds();

    for (i = 0; i < 100000; i++) {
        snprintf(ns, sizeof(ns), "tenant-%02u", i * 7919 % 10000 % 100);
        snprintf(name, sizeof(name), "service-%05u", i * 7919 % 10000);
        assert_int_equal(kube_zone_find(&t->zone, KUBE_RESOURCE_SERVICES,
                                        zone_test_str(ns),
                                        zone_test_str(name),
                                        &entries[i % 1000]), KUBE_OK);
    }

    find = (zone_seconds() - start) / 100000;
    start = zone_seconds();

    for (i = 0; i < 100000; i++) {
        if (i % 64 == 0) {
            kube_arena_reset(&t->arena);
        }

        assert_int_equal(kube_zone_read(&t->zone, entries[999],
                                        zone_test_str(ns),
                                        zone_test_str(name), &t->arena, &s),
                         KUBE_OK);
    }

    read = (zone_seconds() - start) / 100000;
    start = zone_seconds();
    sum = 0;

    for (i = 0; i < 10000000; i++) {
        sum += kube_zone_head(&t->zone, entries[i % 1000]);
    }

    head = (zone_seconds() - start) / 10000000;

    print_message("zone: this build: head %.1f ns, find %.0f ns with "
                  "printing the name, read %.0f ns (%u)\n", head * 1e9,
                  find * 1e9, read * 1e9, (unsigned) sum & 1);
}


static void
test_zone_scale(void **state)
{
    double             all;
    zone_test_t        t;
    kube_snapshot_t    s;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, 32u << 20);
    assert_int_equal(zone_put_many(&t, 10000), 10000);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.entries_used, 20000);
    assert_int_equal(u.failures, 0);

    all = (double) u.live_bytes
          + (double) u.entries_used * (sizeof(kube_zone_entry_t) + 4);
    print_message("zone: 10 000 x 10 endpoints: %.1f bytes an endpoint in "
                  "records, %.1f with entries\n",
                  (double) u.live_bytes / 100000, all / 100000);
    assert_true(all / 100000 <= 56);
    assert_true(u.live_bytes < u.records_bytes / 2);

    zone_print_speed(&t);
    zone_test_close(&t);

    /* in a quarter of it what fits is there and stays */
    zone_test_open(&t, 8u << 20);
    assert_in_range(zone_put_many(&t, 10000), 5000, 9999);
    kube_zone_usage(&t.zone, &u);
    assert_true(u.failures > 0);
    assert_int_equal(zone_test_read(&t, "tenant-17", "service-00017", &s),
                     KUBE_OK);
    assert_int_equal(zone_test_variant(&s), 17);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);
}


static void
zone_copy_setup(zone_test_t *t)
{
    uint32_t           e;
    bool               same;
    kube_scope_info_t  info;

    zone_test_open(t, 1u << 20);
    zone_fill(t, 100);

    assert_int_equal(zone_test_stage(t, zone_test_slice("shop", "lone",
                                                        "nobody", 5, 1, 2),
                                     1000, &e, &same), KUBE_OK);
    kube_zone_publish_orphan(t->writer, e);
    assert_int_equal(zone_test_refuse(t, KUBE_RESOURCE_SERVICES, "shop",
                                      "big", "9", "too_large", &e), KUBE_OK);

    memset(&info, 0, sizeof(info));
    info.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    info.ns = KUBE_STR("shop");
    info.scope_hash = 77;
    info.synced = true;
    info.rv = KUBE_STR("1234");
    assert_int_equal(kube_zone_scope_publish(t->writer, 1, &info), KUBE_OK);
    assert_int_equal(kube_zone_scope_error(t->writer, 1, KUBE_STR("timeout"),
                                           KUBE_STR("slow"), 5), KUBE_OK);
    kube_zone_scope_add(&t->zone, 1, KUBE_COUNTER_LISTS, 3);
    kube_zone_worker_add(&t->zone, 5, 2, 11);
}


static void
test_zone_copy_grows(void **state)
{
    void               *mem;
    uint64_t            revision;
    zone_test_t         t;
    kube_zone_t         to;
    kube_snapshot_t     s;
    kube_zone_usage_t   u;
    kube_scope_info_t   info;

    (void) state;
    zone_copy_setup(&t);
    assert_int_equal(zone_test_read(&t, "shop", "svc-7", &s), KUBE_OK);
    revision = s.revision;

    mem = zone_test_memory(2u << 20);
    assert_int_equal(kube_zone_create(&to, mem, 2u << 20, zone_test_seed),
                     KUBE_OK);
    assert_int_equal(kube_zone_copy(&to, &t.zone, &t.at.alloc), KUBE_OK);
    assert_int_equal(kube_zone_validate(mem, 2u << 20), KUBE_OK);

    kube_zone_usage(&to, &u);
    assert_int_equal(u.entries_used, 302);
    assert_int_equal(u.refused, 1);

    kube_zone_writer_destroy(t.writer);
    t.writer = NULL;
    free(t.mem);
    t.mem = mem;
    t.zone = to;
    assert_int_equal(zone_test_read(&t, "shop", "svc-7", &s), KUBE_OK);
    assert_int_equal(s.slices_n, 2);
    assert_int_equal(zone_test_variant(&s), 7);
    assert_true(s.revision > revision);

    assert_int_equal(kube_zone_scope_read(&to, 1, &t.arena, &info), KUBE_OK);
    assert_true(kube_str_eq(info.rv, KUBE_STR("1234")));
    assert_true(kube_str_eq(info.error_message, KUBE_STR("slow")));
    assert_true(info.synced);
    assert_int_equal(kube_zone_scope_counter(&to, 1, KUBE_COUNTER_LISTS), 3);
    assert_int_equal(kube_zone_worker_sum(&to, 2), 11);

    zone_test_close(&t);
}


static void
test_zone_copy_shrinks(void **state)
{
    void               *mem;
    zone_test_t         t;
    kube_zone_t         to;
    kube_zone_usage_t   u;
    kube_scope_info_t   info;

    (void) state;
    zone_copy_setup(&t);

    mem = zone_test_memory(64u << 10);
    assert_int_equal(kube_zone_create(&to, mem, 64u << 10, zone_test_seed),
                     KUBE_OK);
    assert_int_equal(kube_zone_copy(&to, &t.zone, &t.at.alloc), KUBE_FULL);
    assert_int_equal(kube_zone_validate(mem, 64u << 10), KUBE_OK);

    kube_zone_usage(&to, &u);
    assert_in_range(u.entries_used, 50, 200);

    /* not everything is there: it must be listed again */
    assert_int_equal(kube_zone_scope_read(&to, 1, &t.arena, &info), KUBE_OK);
    assert_int_equal(info.rv.len, 0);
    assert_true(kube_str_eq(info.ns, KUBE_STR("shop")));

    free(mem);
    zone_test_close(&t);
}


typedef struct {
    kube_zone_t  *from;
    void         *mem;
} zone_copy_oom_t;


static void
zone_copy_oom_body(alloc_test_t *at, void *ctx)
{
    kube_zone_t       to;
    zone_copy_oom_t  *c;

    c = ctx;
    assert_int_equal(kube_zone_create(&to, c->mem, 1u << 20, zone_test_seed),
                     KUBE_OK);
    alloc_test_assert_rc(at, kube_zone_copy(&to, c->from, &at->alloc));
    assert_int_equal(kube_zone_validate(c->mem, 1u << 20), KUBE_OK);
}


static void
test_zone_copy_no_memory(void **state)
{
    zone_test_t      t;
    zone_copy_oom_t  c;

    (void) state;
    zone_copy_setup(&t);
    c.from = &t.zone;
    c.mem = zone_test_memory(1u << 20);
    ALLOC_TEST_RUN(zone_copy_oom_body, &c);
    free(c.mem);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_zone_create_bounds),
        cmocka_unit_test(test_zone_attach_refuses),
        cmocka_unit_test(test_zone_any_bytes),
        cmocka_unit_test(test_zone_noise),
        cmocka_unit_test(test_zone_overlap),
        cmocka_unit_test(test_zone_scale),
        cmocka_unit_test(test_zone_copy_grows),
        cmocka_unit_test(test_zone_copy_shrinks),
        cmocka_unit_test(test_zone_copy_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

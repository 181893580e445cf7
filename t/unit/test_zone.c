/*
 * test_zone - kube_zone: creating and attaching, what fits into which size.
 * It allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <time.h>

#include "zone_test.h"


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
        assert_true(zone.geometry.segments
                    + (uint64_t) zone.geometry.segments_n
                      * zone.geometry.segment_size <= size);
        assert_true(zone.geometry.segments_n >= 8);
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


/*
 * With a geometry of other bytes in the image a handle works on as before, and
 * the next take-over writes the right one.
 */
static void
test_zone_geometry_is_copied(void **state)
{
    kube_zone_t        other;
    zone_test_t        t;
    kube_takeover_t    takeover;
    kube_snapshot_t    s;
    kube_zone_usage_t  before, after;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 7, 2, 5, 1000),
                     KUBE_OK);
    kube_zone_usage(&t.zone, &before);
    memset(t.mem, 0xa5, sizeof(kube_zone_geometry_t));

    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(zone_test_variant(&s), 7);
    assert_int_equal(zone_test_put(&t, "shop", "web", 2, 8, 2, 5, 1000),
                     KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(zone_test_variant(&s), 8);

    kube_zone_usage(&t.zone, &after);
    assert_int_equal(after.records_bytes, before.records_bytes);
    assert_int_equal(after.entries, before.entries);
    assert_int_equal(kube_zone_attach(&other, t.mem, t.size), KUBE_CORRUPT);

    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 2000, &takeover);
    assert_int_equal(takeover.cut_off, 0);
    assert_int_equal(kube_zone_attach(&other, t.mem, t.size), KUBE_OK);
    assert_memory_equal(&other.geometry, &t.zone.geometry,
                        sizeof(kube_zone_geometry_t));
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

    /* in an eighth of it what fits is there and stays */
    zone_test_open(&t, 4u << 20);
    assert_in_range(zone_put_many(&t, 10000), 5000, 9999);
    kube_zone_usage(&t.zone, &u);
    assert_true(u.failures > 0);
    assert_int_equal(zone_test_read(&t, "tenant-17", "service-00017", &s),
                     KUBE_OK);
    assert_int_equal(zone_test_variant(&s), 17);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);
}


/* Where a record may begin, and how long it may be: no further than that. */
static void
test_zone_bounds(void **state)
{
    size_t                       i;
    uint32_t                     first, segment, end;
    zone_test_t                  t;
    kube_record_t                header, *record;
    const kube_zone_geometry_t  *g;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    g = &t.zone.geometry;
    first = (uint32_t) (g->segments / KUBE_ZONE_UNIT);
    segment = (uint32_t) (g->segment_size / KUBE_ZONE_UNIT);
    end = first + g->segments_n * segment;

    assert_int_equal(kube_zone_room_at(&t.zone, first), g->segment_size);
    assert_int_equal(kube_zone_room_at(&t.zone, first + segment),
                     g->segment_size);
    assert_int_equal(kube_zone_room_at(&t.zone, end - segment),
                     g->segment_size);
    assert_int_equal(kube_zone_room_at(&t.zone, end - 1), 0);
    assert_int_equal(kube_zone_room_at(&t.zone, end), 0);
    assert_int_equal(kube_zone_room_at(&t.zone, end + 1), 0);
    assert_int_equal(kube_zone_room_at(&t.zone, UINT32_MAX), 0);
    assert_int_equal(kube_zone_room_at(&t.zone, first - 1), 0);
    assert_int_equal(kube_zone_room_at(&t.zone, 0), 0);

    record = kube_zone_record_at(&t.zone, end - 100);

    for (i = 0; i < 200; i++) {
        memset(record, 0, sizeof(kube_record_t));
        record->size = (uint32_t) (i * KUBE_ZONE_UNIT);
        assert_int_equal(kube_zone_header_at(&t.zone, end - 100, &header),
                         record->size > sizeof(kube_record_t) && i <= 100);
        record->size++;
        assert_false(kube_zone_header_at(&t.zone, end - 100, &header));
    }

    memset(&header, 0, sizeof(kube_record_t));
    header.refs_n = 10;
    header.size = sizeof(kube_record_t) + 10 * sizeof(kube_ref_t);
    assert_false(kube_zone_refs_fit(&header));
    header.size += KUBE_ZONE_UNIT;
    assert_true(kube_zone_refs_fit(&header));
    header.size = UINT32_MAX;
    header.refs_n = KUBE_SERVICE_SLICES_MAX;
    assert_true(kube_zone_refs_fit(&header));
    header.refs_n++;
    assert_false(kube_zone_refs_fit(&header));
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_zone_create_bounds),
        cmocka_unit_test(test_zone_attach_refuses),
        cmocka_unit_test(test_zone_geometry_is_copied),
        cmocka_unit_test(test_zone_scale),
        cmocka_unit_test(test_zone_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

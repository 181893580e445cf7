/*
 * test_zone_log - kube_zone_log: a zone that is full, evacuation, and that
 * nothing is lost of the room.  It allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_log.h"
#include "zone_test.h"


/* Room is counted to the byte, and no record is larger than a segment. */
static void
test_log_room(void **state)
{
    size_t          max;
    uint32_t        a, b;
    uint64_t        limit;
    zone_test_t     t;
    kube_record_t  *record;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    max = kube_zone_record_max(&t.zone);
    limit = kube_zone_log_limit(t.writer);
    assert_int_equal(limit, (uint64_t) (t.zone.geometry.segments_n - 1)
                            * max / 8 * 7);

    assert_int_equal(kube_zone_log_reserve(t.writer, max + 8,
                                           KUBE_ZONE_MOVES_FORCED), KUBE_FULL);
    assert_int_equal(kube_zone_log_reserve(t.writer, max, KUBE_ZONE_MOVES),
                     KUBE_OK);

    record = zone_test_service("shop", "web", 1, 1);
    a = kube_zone_log_append(t.writer, record, 1, 7, 2);
    b = kube_zone_log_append(t.writer, record, 2, 8, 0);
    assert_int_equal(b - a, record->size / KUBE_ZONE_UNIT + 2);
    assert_int_equal(kube_zone_record_at(&t.zone, a)->refs_n, 2);
    assert_int_equal(kube_zone_record_at(&t.zone, a)->revision, 7);
    assert_int_equal(t.writer->live_bytes, 2 * record->size + 16);

    /* nothing names either; the second time there is nothing to drop */
    kube_zone_log_drop(t.writer, a);
    kube_zone_log_drop(t.writer, a);
    kube_zone_log_drop(t.writer, b);
    kube_zone_log_drop(t.writer, 0);
    assert_int_equal(t.writer->live_bytes, 0);
    free(record);
    zone_test_close(&t);
}


static void
test_log_baseline(void **state)
{
    char               name[32];
    uint64_t           now;
    unsigned           round, i, n, first;
    zone_test_t        t;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, 128u << 10);
    first = 0;

    for (round = 0; round < 20; round++) {
        now = 1000 + round * 20000ull;

        for (n = 0; /* void */ ; n++) {
            snprintf(name, sizeof(name), "svc-%02u-%u", round, n);

            if (zone_test_put(&t, "shop", name, 1, n, 1, 10, now)
                != KUBE_OK)
            {
                break;
            }
        }

        if (round == 0) {
            first = n;
        }

        assert_int_equal(n, first);
        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);

        for (i = kube_zone_writer_next(t.writer, 0); i != 0;
             i = kube_zone_writer_next(t.writer, i))
        {
            if (kube_zone_newest(t.writer, i)->kind == KUBE_RECORD_SERVICE) {
                kube_zone_remove(t.writer, i);
            }
        }

        for (i = kube_zone_writer_next(t.writer, 0); i != 0;
             i = kube_zone_writer_next(t.writer, i))
        {
            kube_zone_remove(t.writer, i);
        }

        kube_zone_usage(&t.zone, &u);
        assert_int_equal(u.live_bytes, 0);
        assert_int_equal(u.entries_used, 0);
    }

    assert_true(first > 20);
    zone_test_close(&t);
}


static unsigned
log_fill(zone_test_t *t)
{
    char      name[32];
    unsigned  n;

    for (n = 0; /* void */ ; n++) {
        snprintf(name, sizeof(name), "svc-%u", n);

        if (zone_test_put(t, "shop", name, 1, n, 1, 10, 1000) != KUBE_OK) {
            return n;
        }
    }
}


/* Even what may use the reserve leaves a place to evacuate to. */
static void
log_fill_reserve(zone_test_t *t)
{
    char               name[32];
    uint32_t           entries[200];
    unsigned           n;
    kube_rc_t          rc;
    kube_record_t     *record;
    kube_zone_usage_t  u;

    for (n = 0; n < 200; n++) {
        snprintf(name, sizeof(name), "more-%u", n);
        record = zone_test_slice("shop", name, "more", 1, n, 10);
        rc = kube_zone_stage(t->writer, record, KUBE_STAGE_USE_RESERVE,
                             &entries[n]);
        free(record);
        assert_true(t->writer->free_n >= 1);

        if (rc != KUBE_OK) {
            break;
        }
    }

    assert_in_range(n, 5, 199);
    kube_zone_usage(&t->zone, &u);
    assert_true(u.live_bytes > u.records_bytes / 10 * 8);

    while (n-- != 0) {
        kube_zone_remove(t->writer, entries[n]);
    }
}


/* What could not be is named, and there is room for that. */
static void
log_refuse_many(zone_test_t *t, unsigned n)
{
    char      name[32];
    uint32_t  e;
    unsigned  i;

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "refused-%u", i);
        assert_int_equal(zone_test_refuse(t, KUBE_RESOURCE_ENDPOINTSLICES,
                                          "shop", name, "1", "zone_full", &e),
                         KUBE_OK);
    }
}


/* A zone that is full: nothing is harmed, updates go on, deletes help. */
static void
test_log_full(void **state)
{
    char               name[32];
    uint32_t           e;
    unsigned           i, n, round;
    kube_record_t     *record;
    zone_test_t        t;
    kube_snapshot_t    s;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    n = log_fill(&t);
    kube_zone_usage(&t.zone, &u);
    assert_true(u.failures > 0);
    assert_true(n > 30);

    record = zone_test_slice("shop", "one-0", "one", 1, 1, 10);
    assert_int_equal(kube_zone_stage(t.writer, record, 0, &e), KUBE_FULL);
    assert_int_equal(kube_zone_stage(t.writer, record,
                                     KUBE_STAGE_USE_RESERVE, &e), KUBE_OK);
    kube_zone_remove(t.writer, e);
    free(record);
    log_fill_reserve(&t);

    /* a Service is staged beside the old one before its slice is */
    for (i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "svc-%u", --n);
        zone_test_remove(&t, KUBE_RESOURCE_SERVICES, "shop", name, 1000);
        snprintf(name, sizeof(name), "svc-%u-0", n);
        zone_test_remove(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", name,
                         1000);
    }

    /* the same size fits where the old one was, again and again */
    for (round = 1; round < 40; round++) {
        for (i = 0; i < n; i++) {
            snprintf(name, sizeof(name), "svc-%u", i);
            assert_int_equal(zone_test_put(&t, "shop", name, 1 + round % 8,
                                           i + round, 1, 10, 1000), KUBE_OK);
        }
    }

    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_read(&t, "shop", name, &s), KUBE_OK);
        assert_int_equal(s.slices_n, 1);
        assert_int_equal(zone_test_variant(&s), i + 39);
    }

    log_refuse_many(&t, 20);

    for (i = 0; i < 15; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        zone_test_remove(&t, KUBE_RESOURCE_SERVICES, "shop", name, 1000);
        snprintf(name, sizeof(name), "svc-%u-0", i);
        zone_test_remove(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", name,
                         1000);
    }

    assert_int_equal(zone_test_put(&t, "shop", "new", 1, 5, 1, 10, 1000),
                     KUBE_OK);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);
}


#define LOG_MANY   40000
#define LOG_TRIES  100


/* Where each of them stands; returns how many have moved since. */
static unsigned
log_moved(const zone_test_t *t, const uint32_t *entries, unsigned n,
    uint32_t *places)
{
    uint32_t  place;
    unsigned  i, moved;

    moved = 0;

    for (i = 0; i < n; i++) {
        place = t->writer->side[entries[i]].staged;
        moved += (places[i] != place);
        places[i] = place;
    }

    return moved;
}


/* Slices that fill all segments; returns how many. */
static unsigned
log_fill_all(zone_test_t *t, uint32_t *entries)
{
    char            name[32];
    unsigned        n;
    kube_rc_t       rc;
    kube_record_t  *record;

    for (n = 0, rc = KUBE_OK; rc == KUBE_OK; n += (rc == KUBE_OK)) {
        assert_in_range(n, 0, LOG_MANY - 1);
        snprintf(name, sizeof(name), "more-%u", n);
        record = zone_test_slice("shop", name, "more", 1, n, 1);
        rc = kube_zone_stage(t->writer, record, KUBE_STAGE_USE_RESERVE,
                             &entries[n]);
        free(record);
    }

    assert_in_range(n, 1000, LOG_MANY - 1);

    return n;
}


/* No segment has the room alone, two of them together have. */
static void
test_log_moves_several(void **state)
{
    size_t          size;
    uint32_t        e;
    unsigned        i, n;
    zone_test_t     t;
    kube_record_t  *record;

    static uint32_t  entries[LOG_MANY];

    (void) state;
    zone_test_open(&t, 1u << 20);
    n = log_fill_all(&t, entries);

    for (i = 0; i < n; i += 20) {
        kube_zone_remove(t.writer, entries[i]);
    }

    record = zone_test_slice("shop", "other", "more", 1, n,
                             ZONE_TEST_EP_MAX);
    size = t.zone.geometry.segment_size;

    for (i = 0; i < t.zone.geometry.segments_n; i++) {
        if (t.writer->segments[i].live != 0) {
            assert_true(t.writer->segments[i].live + record->size > size);
        }
    }

    assert_int_equal(kube_zone_stage(t.writer, record, KUBE_STAGE_USE_RESERVE,
                                     &e),
                     KUBE_OK);
    free(record);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);
}


/* Where next to nothing is to be gained, what is refused moves next to none. */
static void
test_log_full_to_the_brim(void **state)
{
    char            name[32];
    uint32_t        e;
    unsigned        i, n, moved;
    zone_test_t     t;
    kube_record_t  *record;

    static uint32_t  entries[LOG_MANY], places[LOG_MANY];

    (void) state;
    zone_test_open(&t, 4u << 20);
    n = log_fill_all(&t, entries);

    /* a hundredth of each segment */
    for (i = 0; i < n; i += 100) {
        kube_zone_remove(t.writer, entries[i]);
    }

    (void) log_moved(&t, entries, n, places);
    moved = 0;

    for (i = 0; i < LOG_TRIES; i++) {
        snprintf(name, sizeof(name), "other-%u", i);
        record = zone_test_slice("shop", name, "more", 1, n, 100);
        (void) !kube_zone_stage(t.writer, record, KUBE_STAGE_USE_RESERVE, &e);
        free(record);
        moved += log_moved(&t, entries, n, places);
    }

    assert_in_range(moved, 0, n / 10);

    /* what is let go is room again */
    for (i = 1; i < n; i += 2) {
        kube_zone_remove(t.writer, entries[i]);
    }

    record = zone_test_slice("shop", "other", "more", 1, n, 40);
    assert_int_equal(kube_zone_stage(t.writer, record, 0, &e), KUBE_OK);
    free(record);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);
}


/* The places of a Service's slices may change only under another head. */
static void
log_check_moves(const zone_test_t *t, uint32_t service, uint64_t *head,
    kube_ref_t refs[100], unsigned *moves)
{
    bool                  moved;
    const kube_record_t  *record;

    record = kube_zone_published(t->writer, service);
    assert_int_equal(record->refs_n, 100);
    moved = (memcmp(refs, kube_record_refs(record), 100 * sizeof(kube_ref_t))
             != 0);

    if (moved) {
        assert_true(kube_zone_head(&t->zone, service) != *head);
        memcpy(refs, kube_record_refs(record), 100 * sizeof(kube_ref_t));
        (*moves)++;
    }

    *head = kube_zone_head(&t->zone, service);

    /* there is always a place to evacuate to */
    assert_true(t->writer->free_n >= 1);
}


static uint32_t
log_put_big(zone_test_t *t)
{
    bool      changed, same;
    char      name[32];
    uint32_t  service, slices[100];
    unsigned  i;

    assert_int_equal(zone_test_stage(t, zone_test_service("shop", "big", 1,
                                                          77),
                                     1000, &service, &same), KUBE_OK);

    for (i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "big-%u", i);
        assert_int_equal(zone_test_stage(t, zone_test_slice("shop", name,
                                                            "big", 1, 77, 20),
                                         1000, &slices[i], &same), KUBE_OK);

        /* neighbours that will not stay */
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_put(t, "shop", name, 1, i, 1, 20, 1000),
                         KUBE_OK);
    }

    assert_int_equal(kube_zone_publish(t->writer, service, slices, 100,
                                       &changed), KUBE_OK);

    return service;
}


/* Slices of one Service move with the churn around them, at 80 % fill. */
static void
test_log_evacuation(void **state)
{
    bool               changed, same;
    char               name[32];
    uint32_t           service, late;
    uint64_t           revision, head;
    unsigned           round, moves, staged, staged_moves;
    kube_ref_t         refs[100];
    zone_test_t        t;
    kube_snapshot_t    s;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, 256u << 10);
    /* what is staged moves, too */
    assert_int_equal(zone_test_stage(&t, zone_test_service("shop", "late", 1,
                                                           55),
                                     1000, &late, &same), KUBE_OK);
    assert_int_equal(zone_test_put(&t, "shop", "svc-0", 1, 1, 1, 80, 1000),
                     KUBE_OK);
    service = log_put_big(&t);
    assert_int_equal(zone_test_read(&t, "shop", "big", &s), KUBE_OK);
    revision = s.revision;

    memset(refs, 0, sizeof(refs));
    head = 0;
    moves = 0;
    staged = t.writer->side[late].staged;
    staged_moves = 0;

    for (round = 0; round < 3000; round++) {
        snprintf(name, sizeof(name), "svc-%u", round % 120);
        (void) !zone_test_put(&t, "shop", name, round + 1, round, 1,
                              50 + round % 40, 1000);
        log_check_moves(&t, service, &head, refs, &moves);
        staged_moves += (t.writer->side[late].staged != staged);
        staged = t.writer->side[late].staged;

        if (round % 100 == 0) {
            assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
            assert_int_equal(zone_test_read(&t, "shop", "big", &s), KUBE_OK);
            assert_int_equal(s.slices_n, 100);
            assert_int_equal(zone_test_variant(&s), 77);
            assert_true(s.revision == revision);
        }
    }

    assert_true(moves > 10);
    assert_true(staged_moves > 0);
    kube_zone_usage(&t.zone, &u);
    assert_true(u.live_bytes > u.records_bytes / 10 * 8);

    assert_int_equal(kube_zone_publish(t.writer, late, NULL, 0,
                                       &changed), KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "late", &s), KUBE_OK);
    assert_int_equal(zone_test_variant(&s), 55);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_log_room),
        cmocka_unit_test(test_log_baseline),
        cmocka_unit_test(test_log_full),
        cmocka_unit_test(test_log_moves_several),
        cmocka_unit_test(test_log_full_to_the_brim),
        cmocka_unit_test(test_log_evacuation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

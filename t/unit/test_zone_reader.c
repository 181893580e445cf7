/*
 * test_zone_reader - kube_zone_reader: look-up, names, damaged records,
 * memory running out, walking.  Readers beside a writer: test_zone_threads.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_live.h"
#include "zone_test.h"


static void
test_reader_find(void **state)
{
    char         name[64], text[300];
    uint32_t     e, k;
    unsigned     i;
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 256u << 10);

    for (i = 0; i < 150; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_put(&t, (i % 2) ? "a" : "b", name, 1, i, 1,
                                       1, 1000), KUBE_OK);
    }

    for (i = 0; i < 150; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        e = zone_test_find(&t, KUBE_RESOURCE_SERVICES, (i % 2) ? "a" : "b",
                           name);
        assert_int_not_equal(e, 0);
        assert_int_equal(zone_test_find(&t, KUBE_RESOURCE_SERVICES,
                                        (i % 2) ? "b" : "a", name), 0);
        assert_int_equal(zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                                        (i % 2) ? "a" : "b", name), 0);
        snprintf(name, sizeof(name), "svc-%u-0", i);
        k = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES,
                           (i % 2) ? "a" : "b", name);
        assert_int_not_equal(k, 0);
        assert_int_not_equal(k, e);
    }

    /* keys that nothing can have */
    memset(text, 'x', sizeof(text));
    assert_int_equal(kube_zone_find(&t.zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR(""), KUBE_STR("svc-1"), &e),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_find(&t.zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("a"), KUBE_STR_NULL, &e),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_find(&t.zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("a"),
                                    (kube_str_t) { text, 254 }, &e),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_find(&t.zone, KUBE_RESOURCE_SERVICES,
                                    (kube_str_t) { text, 64 },
                                    KUBE_STR("svc-1"), &e), KUBE_NOT_FOUND);

    /* "a" + "bc" is not "ab" + "c" */
    assert_int_equal(zone_test_put(&t, "ns", "abc", 1, 1, 0, 0, 1000),
                     KUBE_OK);
    assert_int_equal(zone_test_find(&t, KUBE_RESOURCE_SERVICES, "nsa", "bc"),
                     0);
    zone_test_close(&t);
}


/* While chains are rebuilt, or until who rebuilt them has a successor. */
static void
test_reader_find_in_a_rebuild(void **state)
{
    uint32_t      e, i;
    uint64_t      reuse;
    zone_test_t   t;
    kube_word_t  *word;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 1, 1, 1000),
                     KUBE_OK);

    word = &t.zone.image->reuse;
    reuse = kube_word_get(word);
    kube_word_set(word, reuse | 1);
    assert_int_equal(kube_zone_find(&t.zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), KUBE_STR("web"), &e),
                     KUBE_OK);

    for (i = 0; i < t.zone.geometry.buckets_n; i++) {
        kube_half_set(kube_zone_bucket(&t.zone, i), 0);
    }

    assert_int_equal(kube_zone_find(&t.zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), KUBE_STR("web"), &e),
                     KUBE_CHANGED);

    kube_word_set(word, (reuse | 1) + 1);
    assert_int_equal(kube_zone_find(&t.zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), KUBE_STR("web"), &e),
                     KUBE_NOT_FOUND);
    zone_test_close(&t);
}


static void
test_reader_head(void **state)
{
    uint32_t     e;
    uint64_t     head;
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_true(kube_zone_head(&t.zone, 0) == 0);
    assert_true(kube_zone_head(&t.zone, UINT32_MAX) == 0);
    assert_true(kube_zone_head(&t.zone, 1) == 0);

    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 0, 0, 1000),
                     KUBE_OK);
    e = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "web");
    head = kube_zone_head(&t.zone, e);
    assert_true(head != 0);

    assert_int_equal(zone_test_put(&t, "shop", "web", 2, 2, 0, 0, 1000),
                     KUBE_OK);
    assert_true(kube_zone_head(&t.zone, e) >> 32 > head >> 32);

    kube_zone_remove(t.writer, e);
    assert_true(kube_zone_head(&t.zone, e) == 0);
    zone_test_close(&t);
}


static void
test_reader_names(void **state)
{
    uint32_t         e, slice;
    zone_test_t      t;
    kube_snapshot_t  s;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 2, 5, 1000),
                     KUBE_OK);
    e = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "web");
    slice = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web-0");

    assert_int_equal(kube_zone_read(&t.zone, e, KUBE_STR("shop"),
                                    KUBE_STR("web"), &t.arena, &s), KUBE_OK);
    assert_int_equal(s.entry, e);
    assert_true(s.head == kube_zone_head(&t.zone, e));
    assert_false(s.from_state_file);
    assert_int_equal(s.slices_n, 2);
    assert_int_equal(s.slices[1].endpoints_n, 5);
    assert_true(kube_str_eq(s.service.meta.name, KUBE_STR("web")));

    /* the entry is another's by now */
    assert_int_equal(kube_zone_read(&t.zone, e, KUBE_STR("shop"),
                                    KUBE_STR("api"), &t.arena, &s),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_read(&t.zone, e, KUBE_STR("shot"),
                                    KUBE_STR("web"), &t.arena, &s),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_read(&t.zone, slice, KUBE_STR("shop"),
                                    KUBE_STR("web-0"), &t.arena, &s),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_read(&t.zone, 0, KUBE_STR("shop"),
                                    KUBE_STR("web"), &t.arena, &s),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_read(&t.zone, UINT32_MAX, KUBE_STR("shop"),
                                    KUBE_STR("web"), &t.arena, &s),
                     KUBE_NOT_FOUND);
    zone_test_close(&t);
}


/* A head that names another one's record, by whoever wrote it. */
static void
test_reader_head_of_another(void **state)
{
    uint32_t              a, b;
    uint64_t              head;
    zone_test_t           t;
    const kube_record_t  *record;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 2, 5, 1000),
                     KUBE_OK);
    a = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web-0");
    b = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web-1");
    head = kube_zone_head(&t.zone, a);
    assert_int_equal(kube_zone_load(&t.zone, a, &t.arena, &record), KUBE_OK);

    kube_word_set(&kube_zone_entry(&t.zone, a)->head,
                  kube_zone_head(&t.zone, b));
    assert_int_equal(kube_zone_load(&t.zone, a, &t.arena, &record),
                     KUBE_CORRUPT);
    assert_int_equal(kube_word_get(&t.zone.image->corrupt), 1);
    assert_int_equal(kube_zone_load(&t.zone, b, &t.arena, &record), KUBE_OK);

    kube_word_set(&kube_zone_entry(&t.zone, a)->head, head);
    zone_test_close(&t);
}


static void
test_reader_state_file_flag(void **state)
{
    bool             same, changed;
    uint32_t         e;
    kube_record_t   *record;
    zone_test_t      t;
    kube_snapshot_t  s;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    record = zone_test_service("shop", "web", 1, 1);
    record->flags = KUBE_RECORD_F_STATE_FILE;
    assert_int_equal(zone_test_stage(&t, record, 1000, &e, &same), KUBE_OK);
    assert_int_equal(kube_zone_publish(t.writer, e, NULL, 0, &changed),
                     KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_true(s.from_state_file);

    /* a server says the same: confirmed, not changed */
    assert_int_equal(zone_test_stage(&t, zone_test_service("shop", "web", 1,
                                                           1),
                                     1000, &e, &same), KUBE_OK);
    assert_true(same);
    assert_int_equal(kube_zone_publish(t.writer, e, NULL, 0, &changed),
                     KUBE_OK);
    assert_false(changed);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_false(s.from_state_file);
    zone_test_close(&t);
}


static void
test_reader_damaged(void **state)
{
    uint32_t            e;
    uint64_t            head;
    zone_test_t         t;
    kube_word_t        *word;
    kube_snapshot_t     s;
    kube_record_t      *record;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 1, 2, 1000),
                     KUBE_OK);
    e = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "web");
    word = &kube_zone_entry(&t.zone, e)->head;
    head = kube_word_get(word);

    /* offsets that lead nowhere */
    kube_word_set(word, (head & ~0xffffffffull) | 1);
    assert_int_equal(kube_zone_read(&t.zone, e, KUBE_STR("shop"),
                                    KUBE_STR("web"), &t.arena, &s),
                     KUBE_CORRUPT);
    kube_word_set(word, head | 0xffffffffull);
    assert_int_equal(kube_zone_read(&t.zone, e, KUBE_STR("shop"),
                                    KUBE_STR("web"), &t.arena, &s),
                     KUBE_CORRUPT);
    assert_true(kube_word_get(&t.zone.image->corrupt) == 2);
    kube_word_set(word, head);

    /* a slice that is not one */
    record = kube_zone_at(&t.zone, (uint64_t) kube_head_offset(head) * 8);
    ((kube_ref_t *) (void *) ((char *) record + kube_record_base(record)))
        ->offset += 1;
    assert_int_equal(kube_zone_read(&t.zone, e, KUBE_STR("shop"),
                                    KUBE_STR("web"), &t.arena, &s),
                     KUBE_CORRUPT);
    zone_test_close(&t);
}


static void
test_reader_next(void **state)
{
    char                  name[32];
    uint32_t              cursor, entry, seen;
    unsigned              i;
    kube_arena_t          tiny;
    zone_test_t           t;
    const kube_record_t  *record;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_put(&t, "shop", name, 1, i, 2, 1, 1000),
                         KUBE_OK);
    }

    for (seen = 0, cursor = 0;
         kube_zone_next(&t.zone, KUBE_RECORD_SLICE, &cursor, &t.arena,
                        &record, &entry) == KUBE_OK;
         seen++)
    {
        assert_int_equal(record->kind, KUBE_RECORD_SLICE);
        assert_int_equal(record->entry, entry);
    }

    assert_int_equal(seen, 60);

    cursor = 0;
    assert_int_equal(kube_zone_next(&t.zone, KUBE_RECORD_REFUSED, &cursor,
                                    &t.arena, &record, &entry),
                     KUBE_NOT_FOUND);

    kube_arena_init(&tiny, &t.at.alloc, 32);
    cursor = 0;
    assert_int_equal(kube_zone_next(&t.zone, KUBE_RECORD_SLICE, &cursor,
                                    &tiny, &record, &entry), KUBE_NOMEM);
    assert_int_equal(cursor, 0);
    kube_arena_done(&tiny);
    zone_test_close(&t);
}


static void
reader_oom_body(alloc_test_t *at, void *ctx)
{
    uint32_t          e;
    zone_test_t      *t;
    kube_arena_t      arena;
    kube_snapshot_t   s;

    t = ctx;
    kube_arena_init(&arena, &at->alloc, 16u << 20);
    e = zone_test_find(t, KUBE_RESOURCE_SERVICES, "shop", "web");
    alloc_test_assert_rc(at, kube_zone_read(&t->zone, e, KUBE_STR("shop"),
                                            KUBE_STR("web"), &arena, &s));
    kube_arena_done(&arena);
}


static void
test_reader_no_memory(void **state)
{
    size_t           max;
    uint32_t         e;
    kube_rc_t        rc;
    kube_arena_t     arena;
    zone_test_t      t;
    kube_snapshot_t  s;

    (void) state;
    zone_test_open(&t, 512u << 10);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 60, 100, 1000),
                     KUBE_OK);
    ALLOC_TEST_RUN(reader_oom_body, &t);

    /* the arena ends anywhere */
    e = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "web");

    for (max = 64; max < 600000; max += 4800) {
        kube_arena_init(&arena, &t.at.alloc, max);
        rc = kube_zone_read(&t.zone, e, KUBE_STR("shop"), KUBE_STR("web"),
                            &arena, &s);
        assert_true(rc == KUBE_NOMEM || rc == KUBE_OK);
        kube_arena_done(&arena);
    }

    zone_test_close(&t);
}


/*
 * One changed bit in a record, wherever it is, never gives an endpoint that
 * was not published: the copy is as it was, or it is broken, and that is
 * counted.
 */
static void
test_reader_verifies_checksums(void **state)
{
    char              was;
    char             *bytes;
    size_t            i, k, size;
    uint32_t          entry;
    uint64_t          corrupt;
    unsigned          broken;
    kube_rc_t         rc;
    zone_test_t       t;
    kube_snapshot_t   s;

    static const struct {
        kube_resource_t   resource;
        const char       *name;
    } records[] = {
        { KUBE_RESOURCE_SERVICES, "web" },
        { KUBE_RESOURCE_ENDPOINTSLICES, "web-0" },
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 7, 1, 5, 1000),
                     KUBE_OK);

    for (k = 0; k < sizeof(records) / sizeof(records[0]); k++) {
        entry = kube_zone_writer_find(t.writer, records[k].resource,
                                      KUBE_STR("shop"),
                                      zone_test_str(records[k].name));
        assert_int_not_equal(entry, 0);
        bytes = (char *) kube_zone_record_at(&t.zone,
                                             t.writer->side[entry].offset);
        size = kube_zone_live_size(t.writer, t.writer->side[entry].offset);
        broken = 0;

        for (i = 0; i < size; i++) {
            was = bytes[i];
            bytes[i] ^= (char) (1 << (i % 8));
            corrupt = kube_word_get(&t.zone.image->corrupt);
            rc = zone_test_read(&t, "shop", "web", &s);
            broken += (rc != KUBE_OK);

            if (rc == KUBE_OK) {
                assert_int_equal(zone_test_variant(&s), 7);
                assert_int_equal(s.slices_n, 1);
                assert_int_equal(s.slices[0].endpoints_n, 5);

            } else if (rc == KUBE_CORRUPT) {
                assert_true(kube_word_get(&t.zone.image->corrupt) > corrupt);

            } else {
                assert_int_equal(rc, KUBE_NOT_FOUND);
            }

            bytes[i] = was;
        }

        assert_true(kube_zone_writer_is_disturbed(t.writer));

        /* flags, revision and a few of the tail may be anything */
        assert_true(broken > size - 24);
        assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    }

    zone_test_close(&t);
}


/* A ref to a record that is good in itself, and not the Service's to name. */
static void
test_reader_foreign_slice(void **state)
{
    size_t            i;
    uint32_t          service, slice;
    zone_test_t       t;
    kube_ref_t       *refs;
    kube_record_t    *record;
    kube_snapshot_t   s;

    static const struct {
        const char  *ns;
        const char  *name;
        kube_rc_t    rc;
    } rows[] = {
        { "shop", "web-0", KUBE_OK },
        { "shop", "api-0", KUBE_CORRUPT },
        { "infra", "web-0", KUBE_CORRUPT },
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
        assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 1, 3, 1000),
                         KUBE_OK);
        assert_int_equal(zone_test_put(&t, "shop", "api", 1, 1, 1, 3, 1000),
                         KUBE_OK);
        assert_int_equal(zone_test_put(&t, "infra", "web", 1, 1, 1, 3, 1000),
                         KUBE_OK);

        service = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "web");
        slice = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, rows[i].ns,
                               rows[i].name);
        record = kube_zone_record_at(&t.zone,
                                     kube_zone_entry_offset(&t.zone, service));
        refs = (kube_ref_t *) (void *) ((char *) record
                                        + kube_record_base(record));
        refs[0].entry = slice;
        refs[0].offset = kube_zone_entry_offset(&t.zone, slice);

        assert_int_equal(zone_test_read(&t, "shop", "web", &s), rows[i].rc);
        zone_test_close(&t);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_reader_verifies_checksums),
        cmocka_unit_test(test_reader_find),
        cmocka_unit_test(test_reader_find_in_a_rebuild),
        cmocka_unit_test(test_reader_head),
        cmocka_unit_test(test_reader_names),
        cmocka_unit_test(test_reader_head_of_another),
        cmocka_unit_test(test_reader_state_file_flag),
        cmocka_unit_test(test_reader_damaged),
        cmocka_unit_test(test_reader_next),
        cmocka_unit_test(test_reader_no_memory),
        cmocka_unit_test(test_reader_foreign_slice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

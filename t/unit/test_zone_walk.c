/*
 * test_zone_walk - kube_zone_walk and recovery over images of any bytes: what
 * is read stays in bounds, and what is taken over is valid afterwards.  The
 * walk allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_store.h"
#include "zone_test.h"


#define WALK_MUTATIONS  1500


static void
walk_fill(zone_test_t *t, unsigned services)
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
walk_read_all(zone_test_t *t, unsigned services)
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
walk_mutate(kube_random_t *r, unsigned char *mem, size_t from, size_t size)
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
 * valid.
 */
static void
walk_try_mutated(zone_test_t *t, const void *pristine, kube_random_t *r)
{
    char             name[32];
    uint32_t         e;
    unsigned         i;
    kube_rc_t        rc;
    kube_takeover_t  takeover;

    kube_zone_writer_release(t->writer);
    memcpy(t->mem, pristine, t->size);

    walk_mutate(r, t->mem, offsetof(kube_zone_image_t, reuse), t->size);

    (void) !kube_zone_validate(t->mem, t->size);
    walk_read_all(t, 10);
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

    walk_read_all(t, 30);
}


static void
test_walk_any_bytes(void **state)
{
    void             *pristine;
    unsigned          i;
    zone_test_t       t;
    kube_random_t     r;
    kube_scope_info_t info;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    walk_fill(&t, 20);
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

    for (i = 0; i < WALK_MUTATIONS; i++) {
        walk_try_mutated(&t, pristine, &r);
    }

    free(pristine);
    zone_test_close(&t);
}


/* Nothing but noise behind an intact header. */
static void
test_walk_noise(void **state)
{
    size_t           i, from;
    unsigned         round;
    zone_test_t      t;
    kube_random_t    r;
    kube_takeover_t  takeover;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_random_init(&r, 4);
    from = offsetof(kube_zone_image_t, reuse);

    for (round = 0; round < 50; round++) {
        kube_zone_writer_release(t.writer);

        for (i = from; i < t.size; i++) {
            ((unsigned char *) t.mem)[i] = (unsigned char)
                                               kube_random_next(&r);
        }

        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_CORRUPT);
        walk_read_all(&t, 10);
        zone_test_acquire(&t, 2000, &takeover);
        assert_int_equal(takeover.records, 0);
        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
        walk_fill(&t, 10);
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
test_walk_overlap(void **state)
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

    /* content begins 40 bytes, 5 units, behind the record */
    assert_int_equal(kube_zone_store_raw(t.writer,
                                         kube_zone_scope_number(&t.zone, 0,
                                                                false),
                                         KUBE_RECORD_SCOPE, inner,
                                         inner->size), KUBE_OK);
    head = kube_zone_head_of(&t.zone, kube_zone_scope_number(&t.zone, 0,
                                                             false));
    outer = kube_head_offset(kube_word_get(head));
    kube_head_set(&kube_zone_entry(&t.zone, e)->head, outer + 5);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);

    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 1000, &takeover);
    service = (zone_test_read(&t, "shop", "web", &s) == KUBE_OK);
    scope = (kube_head_offset(kube_word_get(head)) != 0);
    assert_true(service != scope);

    left = service ? kube_zone_published(t.writer, e)
                   : kube_zone_record_at(&t.zone, outer);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.live_bytes, left->size);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_walk_any_bytes),
        cmocka_unit_test(test_walk_noise),
        cmocka_unit_test(test_walk_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_zone_scrub - kube_zone_scrub: what another process changes is found by
 * one round of it, without anybody having touched it, and nothing else is.  It
 * allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_live.h"
#include "kube_zone_scrub.h"
#include "zone_test.h"


#define SCRUB_SIZE      (128u << 10)
#define SCRUB_SERVICES  12

/* Rounds over all numbers, twice what is needed. */
#define SCRUB_ROUND     100000u


static uint32_t
scrub_find(zone_test_t *t, kube_resource_t resource, const char *name)
{
    uint32_t  entry;

    entry = zone_test_find(t, resource, "shop", name);
    assert_int_not_equal(entry, 0);

    return entry;
}


static kube_zone_entry_t *
scrub_entry(zone_test_t *t, const char *name)
{
    return kube_zone_entry(&t->zone, scrub_find(t, KUBE_RESOURCE_SERVICES,
                                                name));
}


static unsigned char *
scrub_record(zone_test_t *t, kube_resource_t resource, const char *name)
{
    uint32_t  entry;

    entry = scrub_find(t, resource, name);

    return (unsigned char *) kube_zone_record_at(&t->zone,
                                             t->writer->side[entry].offset);
}


static void
scrub_head_cut(zone_test_t *t)
{
    kube_head_set(&scrub_entry(t, "svc-3")->head, 0);
}


static void
scrub_head_moved(zone_test_t *t)
{
    kube_head_set(&scrub_entry(t, "svc-3")->head,
                  kube_head_get(&scrub_entry(t, "svc-4")->head));
}


static void
scrub_hash(zone_test_t *t)
{
    kube_half_set(&scrub_entry(t, "svc-3")->hash, 4711);
}


static void
scrub_next(zone_test_t *t)
{
    kube_half_set(&scrub_entry(t, "svc-3")->next,
                  scrub_find(t, KUBE_RESOURCE_SERVICES, "svc-3"));
}


static void
scrub_bucket(zone_test_t *t)
{
    kube_half_set(kube_zone_bucket(&t->zone,
                                   kube_half_get(&scrub_entry(t, "svc-3")
                                                 ->hash)), 0);
}


static void
scrub_free_head(zone_test_t *t)
{
    uint32_t  e;

    e = scrub_find(t, KUBE_RESOURCE_SERVICES, "svc-3");
    kube_zone_remove(t->writer, scrub_find(t, KUBE_RESOURCE_SERVICES,
                                           "svc-0"));

    /* who was removed first has the lowest entry */
    kube_head_set(&kube_zone_entry(&t->zone, 1)->head,
                  t->writer->side[e].offset);
}


static void
scrub_content(zone_test_t *t)
{
    scrub_record(t, KUBE_RESOURCE_ENDPOINTSLICES, "svc-3-0")
        [sizeof(kube_record_t) + 40] ^= 1;
}


static void
scrub_size(zone_test_t *t)
{
    scrub_record(t, KUBE_RESOURCE_ENDPOINTSLICES, "svc-3-0")[0] ^= 8;
}


static void
scrub_ref(zone_test_t *t)
{
    kube_record_t  *service;
    kube_ref_t     *ref;

    service = (kube_record_t *) (void *)
                  scrub_record(t, KUBE_RESOURCE_SERVICES, "svc-3");
    ref = (kube_ref_t *) (void *) ((char *) service
                                   + kube_record_base(service));
    ref->entry ^= 1;
}


static void
scrub_scope(zone_test_t *t)
{
    kube_head_set(&kube_zone_scope(&t->zone, 0)->record, 0);
}


static void
scrub_open(zone_test_t *t)
{
    char               name[16];
    unsigned           i;
    kube_scope_info_t  info;

    zone_test_open(t, SCRUB_SIZE);

    for (i = 0; i < SCRUB_SERVICES; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_put(t, "shop", name, 1, i, 2, 3, 1000),
                         KUBE_OK);
    }

    memset(&info, 0, sizeof(info));
    info.rv = KUBE_STR("12");
    assert_int_equal(kube_zone_scope_publish(t->writer, 0, &info), KUBE_OK);
}


static void
test_scrub_finds(void **state)
{
    unsigned     i, steps;
    zone_test_t  t;

    static const struct {
        const char  *name;
        void       (*change)(zone_test_t *t);
    } table[] = {
        { "head, cut off", scrub_head_cut },
        { "head, another's", scrub_head_moved },
        { "hash", scrub_hash },
        { "link", scrub_next },
        { "bucket", scrub_bucket },
        { "head of a free entry", scrub_free_head },
        { "content", scrub_content },
        { "size", scrub_size },
        { "ref", scrub_ref },
        { "scope", scrub_scope },
    };

    (void) state;

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        scrub_open(&t);
        kube_zone_writer_scrub(t.writer, SCRUB_ROUND);
        assert_false(kube_zone_writer_is_disturbed(t.writer));
        table[i].change(&t);

        for (steps = 0; !kube_zone_writer_is_disturbed(t.writer); steps++) {

            if (steps > kube_zone_server_number(&t.zone)) {
                fail_msg("%s", table[i].name);
            }

            kube_zone_writer_scrub(t.writer, 1);
        }

        zone_test_close(&t);
    }
}


/* What the writer has words of its own for is put right at once. */
static void
test_scrub_heals_words(void **state)
{
    zone_test_t           t;
    kube_zone_t           other;
    kube_snapshot_t       s;
    kube_zone_image_t    *image;

    (void) state;
    scrub_open(&t);
    image = t.zone.image;

    memset(&image->geometry, 0x33, sizeof(kube_zone_geometry_t));
    kube_word_set(&image->entries_top, 2);
    kube_word_set(&image->reuse, 7);
    kube_word_set(&image->entries_used, 7);
    kube_zone_writer_scrub(t.writer, 0);

    assert_false(kube_zone_writer_is_disturbed(t.writer));
    assert_int_equal(kube_zone_attach(&other, t.mem, t.size), KUBE_OK);
    assert_int_equal(kube_zone_top(&other), 3 * SCRUB_SERVICES);
    assert_int_equal(kube_word_get(&image->reuse) % 2, 0);
    assert_int_equal(kube_word_get(&image->entries_used),
                     3 * SCRUB_SERVICES);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "svc-3", &s), KUBE_OK);
    zone_test_close(&t);
}


/* Whatever a writer does, it finds nothing to say of its own image. */
static void
test_scrub_finds_nothing(void **state)
{
    char             name[16];
    unsigned         i;
    uint32_t         entry;
    zone_test_t      t;
    kube_random_t    r;
    kube_takeover_t  takeover;

    (void) state;
    zone_test_open(&t, SCRUB_SIZE);
    kube_random_init(&r, 6);

    for (i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "svc-%u",
                 (unsigned) kube_random_range(&r, 0, 60));

        switch (kube_random_next(&r) % 8) {
        case 0:
            entry = kube_zone_writer_find(t.writer, KUBE_RESOURCE_SERVICES,
                                          KUBE_STR("shop"),
                                          zone_test_str(name));
            (void) zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "other", name,
                                    "1", "x", &entry);
            break;

        case 1:
            entry = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", name);

            if (entry != 0) {
                kube_zone_outdate(t.writer, entry, KUBE_REASON_MALFORMED, i);
            }

            break;

        case 2:
            if (kube_random_next(&r) % 16 == 0) {
                kube_zone_writer_release(t.writer);
                zone_test_acquire(&t, 1000 + i * 100, &takeover);
            }

            break;

        default:
            (void) zone_test_put(&t, "shop", name, i, i,
                                 (size_t) kube_random_range(&r, 0, 3), 5,
                                 1000 + i * 100);
        }

        kube_zone_writer_scrub(t.writer, 64);
        assert_false(kube_zone_writer_is_disturbed(t.writer));
    }

    kube_zone_writer_scrub(t.writer, SCRUB_ROUND);
    assert_false(kube_zone_writer_is_disturbed(t.writer));
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_scrub_finds),
        cmocka_unit_test(test_scrub_heals_words),
        cmocka_unit_test(test_scrub_finds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_zone_reader_race - what a reader must see of a writer that comes between
 * two of his loads, each case by itself: the writer acts before a given load of
 * a given word.
 *
 * test_zone_paused goes through all loads of whole histories and finds states
 * that never were; here are images that no history of ours makes often enough,
 * or only a writer gone mad.  The reader's source is built into this program
 * with a pause at each load.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_ZONE_PAUSES  1

#include "kube_zone_reader.c"
#include "zone_test.h"


#define RACE_ZONE    (1u << 20)
#define RACE_SLICES  3


static struct {
    const void  *address;     /* NULL: nothing is done any more */
    unsigned     loads;       /* of it, before the writer acts */
    void       (*act)(void);
    unsigned     acted;

    zone_test_t   t;
    kube_half_t  *bucket;
    uint32_t      first;      /* of the bucket */
    kube_word_t  *size;       /* the first word of a slice */
    size_t        more;       /* bytes by which the slice grows */
} race;

/* Weak where it is used, so that others may do without. */
void kube_zone_pause_hit(const void *address);


void
kube_zone_pause_hit(const void *address)
{
    if (race.address == NULL || address != race.address
        || race.loads-- != 0)
    {
        return;
    }

    race.address = NULL;
    race.acted++;
    race.act();
}


static void
race_arm(const void *address, unsigned loads, void (*act)(void))
{
    race.address = address;
    race.loads = loads;
    race.act = act;
    race.acted = 0;
}


static void
race_open(void)
{
    memset(&race, 0, sizeof(race));
    zone_test_open(&race.t, RACE_ZONE);
    assert_int_equal(zone_test_put(&race.t, "shop", "web", 1, 7, RACE_SLICES,
                                   100, 1000), KUBE_OK);
}


static uint32_t
race_service(void)
{
    return zone_test_find(&race.t, KUBE_RESOURCE_SERVICES, "shop", "web");
}


static void
race_chain_again(void)
{
    kube_half_set(race.bucket, race.first);
}


/*
 * Chains are being changed while the reader walks, and are so still when he
 * has ended: that he has found nothing means nothing.
 */
static void
test_chains_are_changed_meanwhile(void **state)
{
    uint32_t      entry;
    reader_key_t  key;

    (void) state;
    race_open();
    entry = race_service();
    assert_int_equal(reader_key_make(&race.t.zone, KUBE_RESOURCE_SERVICES,
                                     KUBE_STR("shop"), KUBE_STR("web"), &key),
                     KUBE_OK);

    race.bucket = kube_zone_bucket(&race.t.zone, key.hash);
    race.first = kube_half_get(race.bucket);
    kube_word_add(&race.t.zone.image->reuse, 1);
    kube_half_set(race.bucket, 0);

    /* the load before the walk is the first one */
    race_arm(&race.t.zone.image->reuse, 1, race_chain_again);
    assert_int_equal(race_service(), entry);
    assert_int_equal(race.acted, 1);

    kube_word_add(&race.t.zone.image->reuse, 1);
    zone_test_close(&race.t);
}


/* The words of what a head names. */
static kube_word_t *
race_words(uint64_t head)
{
    return kube_zone_words(&race.t.zone, kube_head_offset(head));
}


static void
race_replace(void)
{
    uint64_t       first;
    kube_record_t  header;

    assert_int_equal(zone_test_put(&race.t, "shop", "web", 2, 8, RACE_SLICES,
                                   100, 3000), KUBE_OK);

    first = kube_word_get(race.size);
    memcpy(&header, &first, sizeof(uint64_t));
    header.kind = KUBE_RECORD_SLICE;
    memcpy(&first, &header, sizeof(uint64_t));
    kube_word_set(race.size, first);
}


/*
 * The record that a walk looks at is replaced, and its room is another one's,
 * before its kind is read: the Service is held all the time.
 */
static void
test_replaced_while_a_walk_looks_at_it(void **state)
{
    uint32_t              cursor, entry, found;
    kube_rc_t             rc;
    const kube_record_t  *record;

    (void) state;
    race_open();
    entry = race_service();
    race.size = race_words(kube_word_get(
                               &kube_zone_entry(&race.t.zone, entry)->head));

    race_arm(race.size, 0, race_replace);
    cursor = entry - 1;
    kube_arena_reset(&race.t.arena);

    rc = kube_zone_next(&race.t.zone, KUBE_RECORD_SERVICE, &cursor,
                        &race.t.arena, &record, &found);
    assert_int_equal(race.acted, 1);
    assert_int_equal(rc, KUBE_OK);
    assert_int_equal(found, entry);

    zone_test_close(&race.t);
}


static void
race_grow(void)
{
    uint64_t       first;
    kube_record_t  header;

    first = kube_word_get(race.size);
    memcpy(&header, &first, sizeof(uint64_t));
    header.size += (uint32_t) race.more;
    memcpy(&first, &header, sizeof(uint64_t));
    kube_word_set(race.size, first);
}


/*
 * A slice is longer when it is copied than when room for all was made: nothing
 * is written behind that room, which ends with the block that the sanitizer
 * knows.
 */
static void
test_slice_grows_before_it_is_copied(void **state)
{
    size_t              max;
    uint32_t            entry;
    kube_rc_t           rc;
    kube_arena_t        slices;
    kube_zone_bundle_t  bundle;

    (void) state;
    race_open();
    entry = race_service();
    max = 0;

    do {
        max += 16;
        kube_arena_init(&slices, &race.t.at.alloc, max);
        kube_arena_reset(&race.t.arena);
        rc = kube_zone_load_service(&race.t.zone, entry, KUBE_STR("shop"),
                                    KUBE_STR("web"), &race.t.arena, &slices,
                                    &bundle);
        kube_arena_done(&slices);
    } while (rc == KUBE_NOMEM);

    assert_int_equal(rc, KUBE_OK);
    assert_int_equal(bundle.slices_n, RACE_SLICES);

    race.size = race_words((uint64_t) kube_record_refs(bundle.service)
                                          [RACE_SLICES - 1].offset);

    for (race.more = 8; race.more < 2048; race.more += 8) {
        kube_arena_init(&slices, &race.t.at.alloc, max);
        kube_arena_reset(&race.t.arena);

        /* the first load makes room */
        race_arm(race.size, 1, race_grow);
        rc = kube_zone_load_service(&race.t.zone, entry, KUBE_STR("shop"),
                                    KUBE_STR("web"), &race.t.arena, &slices,
                                    &bundle);
        assert_int_equal(race.acted, 1);
        assert_int_equal(rc, KUBE_CORRUPT);
        kube_arena_done(&slices);

        race.more = (size_t) 0 - race.more;
        race_grow();
        race.more = (size_t) 0 - race.more;
    }

    zone_test_close(&race.t);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains_are_changed_meanwhile),
        cmocka_unit_test(test_replaced_while_a_walk_looks_at_it),
        cmocka_unit_test(test_slice_grows_before_it_is_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

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

/* A Service that changes all the time. */
#define RACE_MANY       60
#define RACE_ENDPOINTS  (ZONE_TEST_EP_MAX - 1)
#define RACE_CHANGES    1000


static struct {
    unsigned     every;       /* so many loads of anything; 0: none */
    unsigned     all;         /* loads that were made meanwhile */
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
    unsigned  every;

    every = race.every;

    if (every != 0) {
        race.all++;

        if (race.all % every == 0 && race.acted < RACE_CHANGES) {
            race.every = 0;
            race.acted++;
            race.act();
            race.every = every;
        }

        return;
    }

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


static uint32_t
race_slice(unsigned n)
{
    char  name[16];

    snprintf(name, sizeof(name), "web-%u", n);

    return kube_zone_writer_find(race.t.writer, KUBE_RESOURCE_ENDPOINTSLICES,
                                 KUBE_STR("shop"), kube_str(name));
}


/*
 * One slice of many is another one, and longer than before; each second time
 * the Service is without its first one.
 */
static void
race_change_one(void)
{
    bool      same, changed;
    char      name[16];
    size_t    i, first;
    uint32_t  entry, slices[RACE_MANY];

    first = race.acted % 2;
    snprintf(name, sizeof(name), "web-%u", race.acted * 7 % RACE_MANY);
    assert_int_equal(zone_test_stage(&race.t,
                                     zone_test_slice("shop", name, "web",
                                                     race.acted + 10, 7,
                                                     RACE_ENDPOINTS + first),
                                     1000, &entry, &same), KUBE_OK);

    for (i = 0; i < RACE_MANY; i++) {
        slices[i] = race_slice((unsigned) i);
    }

    entry = kube_zone_writer_find(race.t.writer, KUBE_RESOURCE_SERVICES,
                                  KUBE_STR("shop"), KUBE_STR("web"));
    assert_int_equal(kube_zone_publish(race.t.writer, entry, slices + first,
                                       RACE_MANY - first, &changed), KUBE_OK);
}


static void
race_open_many(void)
{
    memset(&race, 0, sizeof(race));
    zone_test_open(&race.t, 2 * RACE_ZONE);
    assert_int_equal(zone_test_put(&race.t, "shop", "web", 1, 7, RACE_MANY,
                                   RACE_ENDPOINTS, 1000), KUBE_OK);
}


/*
 * Reads it once while act is called three times for as many loads as it takes
 * when nothing changes: these are returned.
 */
static unsigned
race_read_meanwhile(void (*act)(void), kube_rc_t rc, kube_snapshot_t *s)
{
    unsigned  whole;

    race.every = UINT32_MAX;
    assert_int_equal(zone_test_read(&race.t, "shop", "web", s), KUBE_OK);
    whole = race.all;

    race.act = act;
    race.all = 0;
    race.every = whole / 3;
    assert_int_equal(zone_test_read(&race.t, "shop", "web", s), rc);
    race.every = 0;

    return whole;
}


/*
 * A Service of many slices, of which one after the other changes while it is
 * read, three of them before all are copied once: what has not changed is not
 * copied again, so that the reader is soon done.
 */
static void
test_one_of_many_slices_changes_all_the_time(void **state)
{
    size_t           i;
    unsigned         whole;
    kube_snapshot_t  s;

    (void) state;
    race_open_many();
    whole = race_read_meanwhile(race_change_one, KUBE_OK, &s);
    assert_true(race.acted >= 3);
    assert_true(race.all < 2 * whole);
    assert_true(s.slices_n >= RACE_MANY - 1);
    assert_int_equal(zone_test_variant(&s), 7);

    for (i = 0; i < s.slices_n; i++) {
        assert_true(s.slices[i].endpoints_n >= RACE_ENDPOINTS);
    }

    zone_test_close(&race.t);
}


/* All slices are others before they have been copied. */
static void
race_change_all(void)
{
    assert_int_equal(zone_test_put(&race.t, "shop", "web", race.acted + 1,
                                   race.acted + 7, RACE_MANY, RACE_ENDPOINTS,
                                   1000), KUBE_OK);
}


/* Whoever reads one that is never the same is held up for a while only. */
static void
test_all_of_many_slices_change_all_the_time(void **state)
{
    kube_snapshot_t  s;

    (void) state;
    race_open_many();
    (void) race_read_meanwhile(race_change_all, KUBE_CHANGED, &s);
    assert_true(race.all * sizeof(uint64_t)
                < READER_COPIED_MAX + READER_COPIED_MAX / 4);

    /* and it is read once it stays */
    assert_int_equal(zone_test_read(&race.t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(zone_test_variant(&s), race.acted + 7);

    zone_test_close(&race.t);
}


/* Arms for a word of a slice that is copied before the one that changes. */
static void
race_arm_slice(size_t word, void (*act)(void))
{
    uint64_t  head;

    head = kube_word_get(&kube_zone_entry(&race.t.zone, race_slice(2))->head);
    race.size = race_words(head);
    race_arm(race.size + word, 0, act);
}


static void
race_outdate(void)
{
    kube_zone_outdate(race.t.writer, race_slice(1), KUBE_REASON_MALFORMED,
                      1000);
    race_change_one();
}


/* A slice is outdated, where it lies, after it was copied. */
static void
test_a_copy_that_is_kept_is_of_now(void **state)
{
    uint32_t            entry;
    kube_zone_bundle_t  bundle;

    (void) state;
    race_open_many();
    entry = race_service();
    race_arm_slice(READER_HEADER_WORDS, race_outdate);
    assert_int_equal(kube_zone_load_service(&race.t.zone, entry,
                                            KUBE_STR("shop"), KUBE_STR("web"),
                                            &race.t.arena, &race.t.arena,
                                            &bundle), KUBE_OK);
    assert_int_equal(race.acted, 1);
    assert_int_equal(bundle.slices[0]->entry, race_slice(1));
    assert_true(bundle.slices[0]->flags & KUBE_RECORD_F_OUTDATED);
    zone_test_close(&race.t);
}


static void
race_flip(void)
{
    kube_word_t  *word;

    word = race.size + READER_HEADER_WORDS + 8;
    kube_word_set(word, kube_word_get(word) ^ 1);
}


static void
race_overwrite(void)
{
    race_flip();
    race_change_one();

    /* it is back when the next try looks whether it is the same */
    race_arm(race.size, 0, race_flip);
}


/* What was copied while it was another one is not taken for broken. */
static void
test_a_copy_that_is_kept_was_overwritten(void **state)
{
    kube_snapshot_t  s;

    (void) state;
    race_open_many();
    race_arm_slice(READER_HEADER_WORDS + 8, race_overwrite);
    assert_int_equal(zone_test_read(&race.t, "shop", "web", &s), KUBE_OK);
    assert_null(race.address);
    assert_int_equal(zone_test_variant(&s), 7);
    assert_int_equal(kube_word_get(&race.t.zone.image->corrupt), 0);
    zone_test_close(&race.t);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chains_are_changed_meanwhile),
        cmocka_unit_test(test_replaced_while_a_walk_looks_at_it),
        cmocka_unit_test(test_slice_grows_before_it_is_copied),
        cmocka_unit_test(test_one_of_many_slices_changes_all_the_time),
        cmocka_unit_test(test_all_of_many_slices_change_all_the_time),
        cmocka_unit_test(test_a_copy_that_is_kept_is_of_now),
        cmocka_unit_test(test_a_copy_that_is_kept_was_overwritten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_eviction - who makes room for whom, and when room has returned.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "indexer_test.h"
#include "kube_eviction.h"


#define ZONE  (512u << 10)

typedef struct {
    it_t                   it;
    kube_service_index_t   index;
    kube_eviction_t        eviction;
} bed_t;


static void
bed_init(bed_t *bed, kube_rank_pt rank, const kube_str_t *static_keys,
    size_t n)
{
    it_zone(&bed->it, ZONE);
    bed->it.writer = kube_zone_writer_create(&bed->it.at.alloc,
                                             &bed->it.zone);
    assert_non_null(bed->it.writer);
    assert_int_equal(kube_zone_writer_acquire(bed->it.writer, 1,
                                              &bed->it.takeover), KUBE_OK);
    assert_int_equal(kube_service_index_init(&bed->index, &bed->it.at.alloc,
                                             (kube_seed_t) { 1, 2 }, 1000),
                     KUBE_OK);

    memset(&bed->eviction, 0, sizeof(kube_eviction_t));
    bed->eviction.index = &bed->index;
    bed->eviction.writer = bed->it.writer;
    bed->eviction.static_keys = static_keys;
    bed->eviction.static_keys_n = n;
    bed->eviction.rank = rank;
    kube_eviction_init(&bed->eviction, &bed->it.at.alloc);
}


static void
bed_done(bed_t *bed)
{
    kube_eviction_clear(&bed->eviction);
    kube_service_index_done(&bed->index);
    it_done(&bed->it);
}


static void
bed_member(bed_t *bed, kube_group_t *group, it_object_t *o)
{
    uint32_t        entry;
    kube_record_t  *record;

    record = it_record(o);
    assert_int_equal(kube_zone_stage(bed->it.writer, record, 0, &entry),
                     KUBE_OK);
    free(record);
    bed->index.members[entry].resource = (uint8_t) o->resource;
    kube_service_index_link(&bed->index, group, entry);
}


/*
 * Makes a group of "namespace/name+3": a Service, if there is a '+', and as
 * many slices, by the names of the group and "-1", "-2" ...
 */
static kube_group_t *
bed_group(bed_t *bed, const char *word)
{
    char           ns[16], name[16], slice[32];
    size_t         len;
    unsigned       i, n;
    kube_group_t  *group;
    it_object_t    o;

    len = strcspn(word, "/");
    snprintf(ns, sizeof(ns), "%.*s", (int) len, word);
    word += len + 1;
    len = strcspn(word, "+* ");
    snprintf(name, sizeof(name), "%.*s", (int) len, word);
    n = (unsigned) strtoul(word + len + 1, NULL, 10);

    group = kube_service_index_get(&bed->index, kube_str(ns), kube_str(name));
    assert_non_null(group);
    assert_int_equal(kube_eviction_add(&bed->eviction, group), KUBE_OK);
    assert_int_equal(kube_eviction_add(&bed->eviction, group), KUBE_OK);

    if (word[len] == '+') {
        o = it_service(&bed->it, ns, name);
        bed_member(bed, group, &o);
    }

    for (i = 1; i <= n; i++) {
        snprintf(slice, sizeof(slice), "%s-%u", name, i);
        o = it_slice(&bed->it, ns, slice, name);
        bed_member(bed, group, &o);
    }

    return group;
}


/* Evicts for the group until nothing more goes; the names in that order. */
static const char *
bed_evict(bed_t *bed, const kube_group_t *group)
{
    size_t                 len;
    uint32_t               entry;
    kube_group_t          *last;
    kube_record_id_t       id;
    const kube_record_t   *record;

    static char  text[1024];

    len = 0;
    text[0] = '\0';

    while ((entry = kube_eviction_next(&bed->eviction, group)) != 0) {
        record = kube_zone_newest(bed->it.writer, entry);
        assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
        len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%.*s",
                                 len != 0 ? " " : "", (int) id.meta.name.len,
                                 id.meta.name.data);

        last = bed->index.members[entry].group;
        kube_service_index_unlink(&bed->index, entry);
        kube_zone_remove(bed->it.writer, entry);

        if (kube_group_is_empty(last)) {
            kube_eviction_remove(&bed->eviction, last);
            kube_service_index_remove(&bed->index, last);
        }
    }

    return text;
}


static int
rank_backwards(const kube_group_t *a, const kube_group_t *b)
{
    return -kube_eviction_by_name(a, b);
}


static const struct {
    const char     *title;
    const char     *groups;            /* the first is who needs room */
    const char     *evicted;
    kube_rank_pt    rank;
} rows[] = {

    { "the last group goes first, slice by slice, then its Service",
      "shop/a+1 shop/b+3", "b-3 b-2 b-1 b", kube_eviction_by_name },

    { "by namespace before name",
      "a/z+0 b/a+0 a/zz+0", "a zz", kube_eviction_by_name },

    { "none makes room for what ranks behind it, or for itself",
      "shop/z+2 shop/a+1 shop/b+1", "", kube_eviction_by_name },

    { "slices without a Service are as good as others",
      "shop/a+0 shop/c*2 shop/b+1", "c-2 c-1 b-1 b", kube_eviction_by_name },

    { "slices of no group go by its empty name",
      "infra/x+0 shop/*2 shop/a+0", "a -2 -1", kube_eviction_by_name },

    { "static groups make room for nobody",
      "shop/a+0 shop/s1+1 shop/t+1 shop/s2+1", "t-1 t",
      kube_eviction_by_name },

    { "everybody else makes room for a static one",
      "shop/s1+1 shop/a+1 shop/s2+1 shop/z+0", "z a-1 a",
      kube_eviction_by_name },

    { "another rank, another order",
      "shop/m+0 shop/a+1 shop/z+0 shop/b+0", "a-1 a b", rank_backwards }
};


static void
test_eviction_order(void **state)
{
    size_t         i;
    bed_t          bed;
    const char    *word, *evicted;
    kube_group_t  *first, *group;

    static const kube_str_t  keys[] = {
        { "shop/s1", 7 }, { "shop/s2", 7 }, { "other/t", 7 }
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_init(&bed, rows[i].rank, keys, 3);
        first = NULL;

        for (word = rows[i].groups; word != NULL; word = strchr(word, ' ')) {
            word += strspn(word, " ");
            group = bed_group(&bed, word);
            first = (first != NULL) ? first : group;
        }

        evicted = bed_evict(&bed, first);

        if (strcmp(evicted, rows[i].evicted) != 0) {
            fail_msg("%s: %s", rows[i].title, evicted);
        }

        bed_done(&bed);
    }
}


/* Nobody at all. */
static void
test_eviction_none(void **state)
{
    bed_t          bed;
    kube_group_t  *group;

    (void) state;

    bed_init(&bed, kube_eviction_by_name, NULL, 0);
    group = kube_service_index_get(&bed.index, KUBE_STR("a"), KUBE_STR("b"));
    assert_int_equal(kube_eviction_next(&bed.eviction, group), 0);
    assert_int_equal(kube_eviction_add(&bed.eviction, group), KUBE_OK);
    assert_int_equal(kube_eviction_next(&bed.eviction, group), 0);
    kube_eviction_remove(&bed.eviction, group);
    kube_eviction_remove(&bed.eviction, group);
    bed_done(&bed);
}


/* Puts objects into the zone until live bytes have grown by that much. */
static void
room_fill(bed_t *bed, uint64_t bytes)
{
    char               name[24];
    uint64_t           until;
    it_object_t        o;
    kube_group_t      *group;
    kube_zone_usage_t  usage;

    kube_zone_usage(&bed->it.zone, &usage);
    until = usage.live_bytes + bytes;
    group = kube_service_index_get(&bed->index, KUBE_STR("a"), KUBE_STR("b"));

    while (usage.live_bytes < until) {
        snprintf(name, sizeof(name), "o%u", bed->it.rv);
        o = it_slice(&bed->it, "a", name, "b");
        bed_member(bed, group, &o);
        kube_zone_usage(&bed->it.zone, &usage);
    }
}


static void
room_empty(bed_t *bed, unsigned n)
{
    uint32_t       entry;
    kube_group_t  *group;

    group = kube_service_index_get(&bed->index, KUBE_STR("a"), KUBE_STR("b"));

    for ( /* void */ ; n != 0 && group->slices != 0; n--) {
        entry = group->slices;
        kube_service_index_unlink(&bed->index, entry);
        kube_zone_remove(bed->it.writer, entry);
    }
}


#define RETURNED()                                                            \
    kube_room_returned(&room, &bed.it.zone, bed.it.writer)


static void
test_room_returned(void **state)
{
    bed_t        bed;
    kube_room_t  room;

    (void) state;

    bed_init(&bed, kube_eviction_by_name, NULL, 0);
    kube_room_init(&room);

    /* nothing is lacking */
    assert_false(RETURNED());
    kube_room_full(&room, &bed.it.zone);
    assert_int_equal(room.full_bytes, 0);

    room_fill(&bed, 100000);
    kube_room_refused(&room, 20000);
    kube_room_refused(&room, 300);
    kube_room_full(&room, &bed.it.zone);
    assert_int_equal(room.refused, 2);
    assert_int_equal(room.smallest, 300);
    assert_true(room.full_bytes != 0);

    /* the room of a few small objects is none */
    assert_false(RETURNED());
    room_empty(&bed, 3);
    assert_false(RETURNED());
    room_empty(&bed, 100);
    assert_true(RETURNED());

    /* said once, and said again only for more */
    assert_false(RETURNED());
    room_empty(&bed, 100);
    assert_true(RETURNED());
    assert_false(RETURNED());
    room_empty(&bed, 100);
    assert_true(RETURNED());

    /* nothing is lacking any more, but then a name is */
    room_empty(&bed, 100);
    room.refused = 0;
    assert_false(RETURNED());
    room.unnamed = true;
    assert_true(RETURNED());
    room_empty(&bed, 1000);
    assert_true(RETURNED());

    /* the smallest must fit */
    kube_room_init(&room);
    kube_room_refused(&room, 1u << 20);
    room.full_bytes = UINT64_MAX;
    assert_false(RETURNED());
    kube_room_refused(&room, 100);
    assert_true(RETURNED());
    bed_done(&bed);
}


/* A group that could not be added is not evicted, and can be added later. */
static void
eviction_oom(alloc_test_t *at, void *ctx)
{
    unsigned          i;
    kube_rc_t         rc;
    kube_group_t     *groups = ctx;
    kube_eviction_t   eviction;

    static const char  names[] = "0123456789abcdefghijklmnopqrstuvwxyz++++";

    memset(&eviction, 0, sizeof(kube_eviction_t));
    memset(groups, 0, 40 * sizeof(kube_group_t));
    eviction.rank = kube_eviction_by_name;
    kube_eviction_init(&eviction, &at->alloc);

    for (i = 0; i < 40; i++) {
        groups[i].ns = KUBE_STR("shop");
        groups[i].name = (kube_str_t) { names + i, 1 };
        groups[i].service = i + 1;
        rc = ALLOC_TEST_AGAIN(at, kube_eviction_add(&eviction, &groups[i]));
        assert_int_equal(groups[i].rank.at != 0, rc == KUBE_OK);
    }

    if (!at->failed) {
        assert_int_equal(kube_eviction_next(&eviction, &groups[0]), 36);
    }

    kube_eviction_clear(&eviction);
}


static void
test_eviction_oom(void **state)
{
    kube_group_t  groups[40];

    (void) state;

    ALLOC_TEST_RUN(eviction_oom, groups);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_eviction_order),
        cmocka_unit_test(test_eviction_none),
        cmocka_unit_test(test_room_returned),
        cmocka_unit_test(test_eviction_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

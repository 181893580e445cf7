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
    uint32_t               entries;        /* given to members */
} bed_t;


static void
bed_init(bed_t *bed, const kube_str_t *static_keys, size_t n)
{
    it_zone(&bed->it, ZONE);
    bed->entries = 0;
    bed->it.writer = kube_zone_writer_create(&bed->it.at.alloc,
                                             &bed->it.zone);
    assert_non_null(bed->it.writer);
    assert_int_equal(kube_zone_writer_acquire(bed->it.writer, 1,
                                              &bed->it.takeover), KUBE_OK);
    assert_int_equal(kube_service_index_init(&bed->index, &bed->it.at.alloc,
                                             (kube_seed_t) { 1, 2 }, 1000),
                     KUBE_OK);

    memset(&bed->eviction, 0, sizeof(kube_eviction_t));
    bed->eviction.alloc = &bed->it.at.alloc;
    bed->eviction.index = &bed->index;
    bed->eviction.writer = bed->it.writer;
    bed->eviction.static_keys = static_keys;
    bed->eviction.static_keys_n = n;
    assert_int_equal(kube_eviction_init(&bed->eviction), KUBE_OK);
}


static void
bed_done(bed_t *bed)
{
    kube_eviction_done(&bed->eviction);
    kube_service_index_done(&bed->index, bed->index.entries_n);
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
 * The group of "namespace/name=700-200": it has a slice of 700 bytes, and
 * lacks 200; each part may be left out.
 */
static kube_group_t *
bed_group(bed_t *bed, const char *word)
{
    char           ns[16], name[16];
    size_t         len;
    uint32_t       e;
    kube_group_t  *group;

    len = strcspn(word, "/");
    snprintf(ns, sizeof(ns), "%.*s", (int) len, word);
    word += len + 1;
    len = strcspn(word, "=- ");
    snprintf(name, sizeof(name), "%.*s", (int) len, word);
    word += len;

    group = kube_service_index_get(&bed->index, kube_str(ns), kube_str(name));
    assert_non_null(group);
    assert_int_equal(kube_eviction_add(&bed->eviction, group), KUBE_OK);
    assert_int_equal(kube_eviction_add(&bed->eviction, group), KUBE_OK);

    if (*word == '=') {
        e = ++bed->entries;
        bed->index.members[e].resource = KUBE_RESOURCE_ENDPOINTSLICES;
        kube_service_index_link(&bed->index, group, e);
        kube_eviction_size(&bed->eviction, e,
                           (uint32_t) strtoul(word + 1, NULL, 10));
        word += strcspn(word, "- ");
    }

    if (*word == '-') {
        e = ++bed->entries;
        kube_eviction_lacks(&bed->eviction, group, e,
                            (uint32_t) strtoul(word + 1, NULL, 10));
    }

    return group;
}


/* As the publisher does where a group ends. */
static void
bed_clear(bed_t *bed)
{
    uint32_t        e;
    kube_member_t  *member;

    for (e = 1; e <= bed->entries; e++) {
        member = &bed->index.members[e];

        if (member->group != NULL) {
            kube_eviction_size(&bed->eviction, e, 0);

        } else if (member->lacks != NULL) {
            kube_eviction_lacks(&bed->eviction, member->lacks, e, 0);
        }
    }

    assert_int_equal(bed->eviction.bytes, 0);
}


/* Who goes for the first group; what a name takes is not gained. */
static const struct {
    const char  *title;
    const char  *groups;           /* the first is who needs room */
    unsigned     more;             /* bytes by which it would grow */
    unsigned     need;
    unsigned     share;            /* percent */
    const char  *victims;          /* "full": nobody goes */
} rows[] = {

    { "nobody goes where there is room",
      "a/x=700 b/y=900", 100, 0, 0, "" },

    { "the last is the largest of the largest namespace",
      "a/x=700 b/y=900 b/z=300 c/w=1100", 0, 100, 0, "b/y" },

    { "ties go by name, the last first",
      "a/x=700 a/y=700 a/z=700", 0, 100, 0, "a/z" },

    { "none makes room for what is last itself",
      "a/z=700 a/y=700 b/x=100", 0, 100, 0, "full" },

    { "what is new is ranked with what it wants",
      "a/x b/y=900", 800, 100, 0, "b/y" },

    { "and is itself the last where it wants most",
      "a/x b/y=900", 1000, 100, 0, "full" },

    { "what lacks a part is ranked with all of it",
      "a/x=100-900 b/y=900", 0, 100, 0, "full" },

    { "of which nothing is held can make no room",
      "a/x=100 b/y-900", 0, 100, 0, "full" },

    { "as many as are needed, in their order",
      "a/x=300 b/y=900 b/z=800 c/w=500", 0, 1600, 0, "b/y b/z c/w" },

    { "all or nobody",
      "a/x=300 b/y=900 c/z=800", 0, 1500, 0, "full" },

    { "who need not go after all stays",
      "a/x=100 b/y=200 b/z=900 c/w=1000", 0, 890, 0, "c/w" },

    { "static ones are the first of their namespace",
      "shop/a=300 shop/s1=900 shop/t=400", 0, 100, 0, "shop/t" },

    { "and a newcomer of it is last against them",
      "shop/a=300 shop/s1=900", 0, 100, 0, "full" },

    { "but a namespace is not larger for them",
      "a/x=300 shop/s1=900 b/y=700", 0, 100, 0, "shop/s1" },

    { "above its share a namespace makes its own room",
      "a/x=100 a/y=3000 a/z=1000 b/w=5000", 0, 0, 1, "a/y" },

    { "and has no more",
      "a/x=100 a/y=50 b/w=5000", 9000, 0, 1, "full" }
};


static const char *
bed_choose(bed_t *bed, kube_group_t *group, size_t row)
{
    size_t         i, n, len;
    kube_group_t  *victims[KUBE_EVICTIONS_MAX];

    static char  text[256];

    if (kube_eviction_choose(&bed->eviction, group, rows[row].more,
                             rows[row].need, victims, &n) != KUBE_OK)
    {
        return "full";
    }

    len = 0;
    text[0] = '\0';

    for (i = 0; i < n; i++) {
        len += (size_t) snprintf(text + len, sizeof(text) - len,
                                 "%s%.*s/%.*s", i != 0 ? " " : "",
                                 (int) victims[i]->ns.len,
                                 victims[i]->ns.data,
                                 (int) victims[i]->name.len,
                                 victims[i]->name.data);
    }

    return text;
}


static void
test_eviction_order(void **state)
{
    size_t         i;
    bed_t          bed;
    unsigned       again;
    uint64_t       bytes;
    const char    *word, *chosen;
    kube_group_t  *first, *group;

    static const kube_str_t  keys[] = {
        { "shop/s1", 7 }, { "shop/s2", 7 }, { "other/t", 7 }
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_init(&bed, keys, 3);
        bed.eviction.share = rows[i].share;
        first = NULL;

        for (word = rows[i].groups; word != NULL; word = strchr(word, ' ')) {
            word += strspn(word, " ");
            group = bed_group(&bed, word);
            first = (first != NULL) ? first : group;
        }

        bytes = bed.eviction.bytes;

        /* to choose changes nothing */
        for (again = 0; again < 2; again++) {
            chosen = bed_choose(&bed, first, i);

            if (strcmp(chosen, rows[i].victims) != 0) {
                fail_msg("%s: %s", rows[i].title, chosen);
            }

            assert_int_equal(bed.eviction.bytes, bytes);
        }

        bed_clear(&bed);
        bed_done(&bed);
    }
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

    bed_init(&bed, NULL, 0);
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


/* A group that could not be added makes no room, and can be added later. */
static void
eviction_oom(alloc_test_t *at, void *ctx)
{
    size_t                 n;
    unsigned               i;
    kube_rc_t              rc;
    bed_t                 *bed = ctx;
    kube_group_t          *group, *first;
    kube_group_t          *victims[KUBE_EVICTIONS_MAX];

    static const char  *const words[] = {
        "a/x", "b/y", "b/z", "c/x", "c/y", "d/x", "d/z", "e/x", "f/x"
    };

    bed->eviction.alloc = &at->alloc;
    bed->eviction.bytes = 0;
    bed->index.alloc = &bed->it.at.alloc;
    rc = kube_eviction_init(&bed->eviction);

    if (rc != KUBE_OK) {
        alloc_test_assert_rc(at, rc);
        return;
    }

    first = NULL;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        group = kube_service_index_get(&bed->index,
                                       (kube_str_t) { words[i], 1 },
                                       (kube_str_t) { words[i] + 2, 1 });
        assert_non_null(group);
        rc = ALLOC_TEST_AGAIN(at, kube_eviction_add(&bed->eviction, group));

        if (rc != KUBE_OK) {
            alloc_test_assert_rc(at, rc);
            assert_null(group->tenant);
            kube_service_index_remove(&bed->index, group);
            continue;
        }

        first = (first != NULL) ? first : group;
        bed->index.members[i + 1].resource = KUBE_RESOURCE_ENDPOINTSLICES;
        kube_service_index_link(&bed->index, group, i + 1);
        kube_eviction_size(&bed->eviction, i + 1, 1000 + i);
    }

    if (!at->failed) {
        assert_int_equal(kube_eviction_choose(&bed->eviction, first, 0, 1,
                                              victims, &n), KUBE_OK);
        assert_int_equal(n, 1);
    }

    kube_eviction_done(&bed->eviction);
    kube_service_index_clear(&bed->index, bed->index.entries_n);
}


static void
test_eviction_oom(void **state)
{
    bed_t  *bed;

    (void) state;

    bed = malloc(sizeof(bed_t));
    assert_non_null(bed);
    bed_init(bed, NULL, 0);
    kube_eviction_done(&bed->eviction);
    ALLOC_TEST_RUN(eviction_oom, bed);
    bed->eviction.alloc = &bed->it.at.alloc;
    assert_int_equal(kube_eviction_init(&bed->eviction), KUBE_OK);
    bed_done(bed);
    free(bed);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_eviction_order),
        cmocka_unit_test(test_room_returned),
        cmocka_unit_test(test_eviction_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

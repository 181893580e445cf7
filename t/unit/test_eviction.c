/*
 * test_eviction - who makes room for whom, and whom room has returned for.
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
        kube_eviction_lacks(&bed->eviction, &bed->index.members[e].lack,
                            group, (uint32_t) strtoul(word + 1, NULL, 10));
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

        } else if (member->lack.group != NULL) {
            kube_eviction_lacks(&bed->eviction, &member->lack,
                                member->lack.group, 0);
        }
    }

    assert_int_equal(bed->eviction.bytes, 0);
}


/* Who goes for the first group. */
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

    { "and those of namespaces, the last first, in whatever order they came",
      "x/x=100 a/w=700 b/w=700 c/w=700", 0, 100, 0, "c/w" },

    { "...", "x/x=100 c/w=700 a/w=700 b/w=700", 0, 100, 0, "c/w" },

    { "...", "x/x=100 c/w=700 b/w=700 a/w=700", 0, 100, 0, "c/w" },

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
      "a/x=300 b/y=900 b/z=800 c/w=500", 0, 1800, 0, "b/y b/z c/w" },

    { "all or nobody",
      "a/x=300 b/y=900 c/z=800", 0, 1900, 0, "full" },

    { "who need not go after all stays",
      "a/x=100 b/y=200 b/z=900 c/w=1000", 0, 950, 0, "c/w" },

    { "static ones are the first of their namespace",
      "shop/a=300 shop/s1=900 shop/t=400", 0, 100, 0, "shop/t" },

    { "and a newcomer of it is last against them",
      "shop/a=300 shop/s1=900", 0, 100, 0, "full" },

    { "not those of another namespace whose name is as long",
      "stop/a=300 stop/s1=900 stop/t=400", 0, 100, 0, "stop/s1" },

    { "but a namespace is not larger for them",
      "a/x=300 shop/s1=900 b/y=700", 0, 100, 0, "shop/s1" },

    { "above its share a namespace makes its own room",
      "a/x=100 a/y=3000 a/z=1000 b/w=5000", 0, 0, 1, "a/y" },

    { "and has no more",
      "a/x=100 a/y=50 b/w=5000", 9000, 0, 1, "full" }
};


static size_t
bed_put(char *text, size_t size, size_t len, const kube_group_t *group)
{
    return len + (size_t) snprintf(text + len, size - len, "%s%.*s/%.*s",
                                   len != 0 ? " " : "", (int) group->ns_len,
                                   group->key, (int) group->name_len,
                                   group->key + group->ns_len);
}


static const char *
bed_choose(bed_t *bed, kube_group_t *group, size_t row)
{
    size_t         len;
    kube_group_t  *victim;

    static char  text[256];

    if (kube_eviction_choose(&bed->eviction, group, rows[row].more,
                             rows[row].need, &victim) != KUBE_OK)
    {
        assert_null(victim);
        return "full";
    }

    text[0] = '\0';

    for (len = 0; victim != NULL; victim = victim->victim) {
        len = bed_put(text, sizeof(text), len, victim);
    }

    return text;
}


static kube_group_t *
bed_groups(bed_t *bed, const char *word)
{
    kube_group_t  *first, *group;

    first = NULL;

    for ( /* void */ ; word != NULL; word = strchr(word, ' ')) {
        word += strspn(word, " ");
        group = bed_group(bed, word);
        first = (first != NULL) ? first : group;
    }

    return first;
}


static void
test_eviction_order(void **state)
{
    size_t         i;
    bed_t          bed;
    unsigned       again;
    uint64_t       bytes;
    const char    *chosen;
    kube_group_t  *first;

    static const kube_str_t  keys[] = {
        { "shop/s1", 7 }, { "shop/s2", 7 }, { "other/t", 7 }
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_init(&bed, keys, 3);
        bed.eviction.share = rows[i].share;
        first = bed_groups(&bed, rows[i].groups);
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


/*
 * For whom room has returned.  So many bytes are left of a zone's room; the
 * rest is held by Services of 1000 bytes of the namespace "all".
 */
static const struct {
    const char  *title;
    unsigned     left;
    const char  *groups;
    const char  *returned;
} room_rows[] = {

    { "nobody lacks anything", 500, "a/x=100", "" },
    { "who goes before what is held", 500, "a/x-600", "a/x" },
    { "who does not has to wait", 500, "all/x-1100", "" },
    { "for room for all of it", 1200, "all/x-1100", "all/x" },
    { "the first of a namespace", 1200, "all/x-1150 all/y-1100", "all/y" },
    { "what one with a part lacks is counted", 500, "all/x=100-300",
      "all/x" },
    { "and has to be there", 500, "all/x=100-1200", "" },
    { "and counted once", 1200, "all/x=100-1100", "all/x" },
    { "more than others would make", 500, "a/x-300000", "" },
    { "one of several", 500, "a/x-100000000 b/y-200 c/z=9-9", "b/y c/z" },
};


static void
returned_fill(bed_t *bed, uint64_t bytes)
{
    char      word[64];
    unsigned  i;
    uint64_t  size;

    for (i = 0; bytes != 0; i++) {
        size = (bytes > 1000) ? 1000 : bytes;
        bytes -= size;
        snprintf(word, sizeof(word), "all/s%u=%u", i, (unsigned) size);
        (void) bed_group(bed, word);
    }
}


static void
returned_found(void *ctx, const kube_group_t *group)
{
    char  *text = ctx;

    (void) bed_put(text, 256, strlen(text), group);
}


static void
test_eviction_returned(void **state)
{
    size_t  i;
    bed_t   bed;
    char    text[256];

    (void) state;

    for (i = 0; i < sizeof(room_rows) / sizeof(room_rows[0]); i++) {
        bed_init(&bed, NULL, 0);
        returned_fill(&bed, kube_zone_room(bed.it.writer)
                            - room_rows[i].left);
        assert_int_equal(kube_eviction_free(&bed.eviction),
                         room_rows[i].left);
        (void) bed_groups(&bed, room_rows[i].groups);

        text[0] = '\0';
        kube_eviction_returned(&bed.eviction, returned_found, text);

        if (strlen(text) != strlen(room_rows[i].returned)) {
            fail_msg("%s: %s", room_rows[i].title, text);
        }

        bed_clear(&bed);
        bed_done(&bed);
    }
}


/* All groups go at once, ranked or not, and others come: a state file's. */
static void
test_eviction_clear(void **state)
{
    bed_t          bed;
    unsigned       again;
    kube_group_t  *group;

    (void) state;
    bed_init(&bed, NULL, 0);

    for (again = 0; again < 2; again++) {
        assert_null(kube_eviction_last(&bed.eviction));
        (void) bed_groups(&bed, "a/x=700 b/y=900 b/z=100-300 c/w-800");

        if (again == 1) {
            group = kube_eviction_last(&bed.eviction);
            assert_true(kube_str_eq(kube_group_name(group), KUBE_STR("y")));
        }

        kube_eviction_clear(&bed.eviction);
        kube_service_index_clear(&bed.index, bed.entries);
        bed.entries = 0;
        assert_null(bed.eviction.unranked);
        assert_int_equal(bed.eviction.bytes, 0);
    }

    bed_done(&bed);
}


/* A group that could not be added makes no room, and can be added later. */
static void
eviction_oom(alloc_test_t *at, void *ctx)
{
    unsigned       i;
    kube_rc_t      rc;
    bed_t         *bed = ctx;
    kube_group_t  *group, *first, *victims;

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
                                              &victims), KUBE_OK);
        assert_non_null(victims);
        assert_null(victims->victim);
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
        cmocka_unit_test(test_eviction_returned),
        cmocka_unit_test(test_eviction_clear),
        cmocka_unit_test(test_eviction_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

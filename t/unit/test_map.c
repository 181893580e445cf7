/*
 * test_map - what was inserted is found until it is removed, at any size, and
 * with memory missing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_hash.h"
#include "kube_map.h"


#define THINGS  3000

typedef struct {
    unsigned         key;
    bool             there;
    kube_map_link_t  link;
} thing_t;

static const kube_seed_t  seed = { 5, 6 };


static uint64_t
thing_hash(unsigned key)
{
    return kube_hash64(seed, &key, sizeof(key));
}


static thing_t *
thing_find(const kube_map_t *map, unsigned key, uint64_t hash)
{
    thing_t          *thing;
    kube_map_link_t  *link;

    for (link = kube_map_first(map, hash);
         link != NULL;
         link = kube_map_next(link))
    {
        thing = kube_map_data(link, thing_t, link);
        assert_int_equal(link->hash, hash);

        if (thing->key == key) {
            return thing;
        }
    }

    return NULL;
}


static void
test_map_random(void **state)
{
    size_t         n, bucket;
    unsigned       step, key;
    thing_t       *things;
    kube_map_t     map;
    alloc_test_t   at;
    kube_random_t  random;

    (void) state;

    alloc_test_init(&at);
    kube_random_init(&random, 1);
    assert_int_equal(kube_map_init(&map, &at.alloc), KUBE_OK);
    things = calloc(THINGS, sizeof(thing_t));
    assert_non_null(things);
    n = 0;

    for (step = 0; step < 200000; step++) {
        key = (unsigned) kube_random_range(&random, 0, THINGS - 1);
        assert_ptr_equal(thing_find(&map, key, thing_hash(key)),
                         things[key].there ? &things[key] : NULL);

        /* it fills in the first half of the run, and empties in the second */
        if (!things[key].there && step < 100000) {
            things[key].key = key;
            things[key].there = true;
            kube_map_insert(&map, &things[key].link, thing_hash(key));
            n++;

        } else if (things[key].there && kube_random_range(&random, 0, 2) == 0)
        {
            things[key].there = false;
            kube_map_remove(&map, &things[key].link);
            n--;
        }

        assert_int_equal(map.n, n);
    }

    assert_true(map.mask + 1 >= THINGS / 2);

    for (bucket = 0; kube_map_any(&map, &bucket) != NULL; n--) {
        kube_map_remove(&map, kube_map_any(&map, &bucket));
    }

    assert_int_equal(n, 0);
    kube_map_done(&map);
    kube_map_done(&map);
    free(things);
    alloc_test_assert_no_leak(&at);
}


/* All keys under one hash, as if the seed were known. */
static void
test_map_collide(void **state)
{
    unsigned      i;
    thing_t       things[40];
    kube_map_t    map;
    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(kube_map_init(&map, &at.alloc), KUBE_OK);
    assert_null(kube_map_first(&map, 7));

    for (i = 0; i < 40; i++) {
        things[i].key = i;
        kube_map_insert(&map, &things[i].link, i == 20 ? 7 + (1ull << 40) : 7);
    }

    for (i = 0; i < 40; i++) {
        assert_ptr_equal(thing_find(&map, i, 7), i == 20 ? NULL : &things[i]);
    }

    for (i = 0; i < 40; i += 2) {
        kube_map_remove(&map, &things[i].link);
    }

    for (i = 0; i < 40; i++) {
        assert_ptr_equal(thing_find(&map, i, 7), i % 2 ? &things[i] : NULL);
    }

    kube_map_done(&map);
    alloc_test_assert_no_leak(&at);
}


/* A table that cannot grow holds and finds everything all the same. */
static void
map_oom(alloc_test_t *at, void *ctx)
{
    unsigned    i;
    thing_t    *things = ctx;
    kube_map_t  map;

    if (kube_map_init(&map, &at->alloc) != KUBE_OK) {
        assert_true(at->failed);
        kube_map_done(&map);
        return;
    }

    for (i = 0; i < 100; i++) {
        things[i].key = i;
        kube_map_insert(&map, &things[i].link, thing_hash(i));
    }

    for (i = 0; i < 100; i++) {
        assert_ptr_equal(thing_find(&map, i, thing_hash(i)), &things[i]);
    }

    /* memory that was missing once was asked for again */
    assert_int_equal(map.mask + 1, at->fail_from ? map.mask + 1 : 128);
    kube_map_done(&map);
}


static void
test_map_oom(void **state)
{
    thing_t  things[100];

    (void) state;

    ALLOC_TEST_RUN(map_oom, things);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_map_random),
        cmocka_unit_test(test_map_collide),
        cmocka_unit_test(test_map_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

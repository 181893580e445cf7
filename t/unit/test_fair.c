/*
 * test_fair - a full zone shared between random tenants, against the share
 * that brute force computes.
 *
 * Each namespace holds at least its max-min share, less one of its own largest
 * Services; two gateways that saw the cluster in
 * different orders hold the same; and relists of an unchanged cluster change
 * nothing, by a process that has taken the zone over either.  Names in the
 * configuration are served up to an equal share.
 *
 * KUBE_TEST_SEED and KUBE_TEST_ROUNDS replay or lengthen it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "indexer_test.h"


#define ZONE     (192u << 10)
#define TENANTS  6
#define GROUPS   420

typedef struct {
    it_object_t   service;
    it_object_t   slice;
    unsigned      tenant;
    unsigned      bytes;         /* of both records */
} pair_t;

typedef struct {
    it_t          it;
    pair_t       *pairs;
    unsigned      order[GROUPS];
    unsigned      changes;
    kube_str_t    static_key;
} gateway_t;


static void
fair_change(void *ctx, kube_change_t change, const kube_record_t *record)
{
    gateway_t  *g = ctx;

    (void) change;
    (void) record;
    g->changes++;
}


static unsigned
fair_size(const it_object_t *o)
{
    unsigned        size;
    kube_record_t  *record;

    record = it_record(o);
    size = record->size + (unsigned) sizeof(kube_ref_t);
    free(record);

    return size;
}


/* The cluster: a few namespaces, one of which wants nearly everything. */
static void
fair_cluster(pair_t *pairs, kube_random_t *random)
{
    it_t      it;
    char      ns[8], name[16];
    unsigned  i, t, large;

    memset(&it, 0, sizeof(it_t));
    it.rv = 10000;
    large = (unsigned) kube_random_range(random, 0, TENANTS - 1);

    for (i = 0; i < GROUPS; i++) {
        t = (unsigned) kube_random_range(random, 0, TENANTS - 1);
        t = (kube_random_range(random, 0, 2) != 0) ? large : t;
        snprintf(ns, sizeof(ns), "t%u", t);
        snprintf(name, sizeof(name), "s%03u", i);
        pairs[i].tenant = t;
        pairs[i].service = it_service(&it, ns, name);
        pairs[i].slice = it_slice(&it, ns, name, name);
        pairs[i].slice.endpoints = (unsigned) kube_random_range(random, 0,
                                                                60);
        pairs[i].bytes = fair_size(&pairs[i].service)
                         + fair_size(&pairs[i].slice);
    }
}


static gateway_t *
fair_gateway(pair_t *pairs, kube_random_t *random, const char *static_key)
{
    unsigned    i, j, swap;
    gateway_t  *g;

    g = calloc(1, sizeof(gateway_t));
    assert_non_null(g);
    g->pairs = pairs;

    for (i = 0; i < GROUPS; i++) {
        g->order[i] = i;
    }

    for (i = GROUPS - 1; i > 0; i--) {
        j = (unsigned) kube_random_range(random, 0, i);
        swap = g->order[i];
        g->order[i] = g->order[j];
        g->order[j] = swap;
    }

    it_zone(&g->it, ZONE);
    g->it.conf.change = fair_change;
    g->it.conf.change_ctx = g;
    g->static_key = kube_str(static_key);
    g->it.conf.static_keys = &g->static_key;
    g->it.conf.static_keys_n = 1;
    assert_int_equal(it_start(&g->it), KUBE_OK);
    assert_int_equal(it_scopes(&g->it), KUBE_OK);
    assert_int_equal(kube_indexer_load(g->it.ix, 1), KUBE_OK);

    return g;
}


static void
fair_destroy(gateway_t *g)
{
    it_done(&g->it);
    free(g);
}


static void
fair_list(gateway_t *g, unsigned slot)
{
    unsigned       i;
    const pair_t  *pair;

    IT_BEGIN(&g->it, slot);

    for (i = 0; i < GROUPS; i++) {
        pair = &g->pairs[g->order[i]];
        IT_LIST(&g->it, slot == IT_SERVICES ? &pair->service : &pair->slice);
        kube_publisher_run(g->it.publisher, 2, g->it.now_ms, 0);
    }

    IT_SYNC(&g->it, slot);
    it_publish(&g->it);
}


static bool
fair_serves(const gateway_t *g, unsigned i)
{
    char  text[256];

    it_read(&g->it, g->pairs[i].service.ns, g->pairs[i].service.name, text,
            sizeof(text), NULL);

    return strchr(text, ' ') != NULL;
}


/*
 * The max-min share: bytes are given to all that still want some, in equal
 * parts, until there are none.
 */
static void
fair_shares(const pair_t *pairs, uint64_t room, uint64_t share[TENANTS])
{
    bool      some;
    unsigned  i, t;
    uint64_t  want[TENANTS];

    memset(share, 0, TENANTS * sizeof(uint64_t));
    memset(want, 0, sizeof(want));

    for (i = 0; i < GROUPS; i++) {
        want[pairs[i].tenant] += pairs[i].bytes;
    }

    do {
        some = false;

        for (t = 0; t < TENANTS && room != 0; t++) {
            if (share[t] < want[t]) {
                share[t]++;
                room--;
                some = true;
            }
        }
    } while (some && room != 0);
}


/* What is held is what the room is: the two must agree on that. */
static void
fair_check_shares(const gateway_t *g)
{
    unsigned  i, t, largest[TENANTS];
    uint64_t  room, held[TENANTS], share[TENANTS];

    room = 0;
    memset(largest, 0, sizeof(largest));
    memset(held, 0, sizeof(held));

    for (i = 0; i < GROUPS; i++) {
        t = g->pairs[i].tenant;

        if (g->pairs[i].bytes > largest[t]) {
            largest[t] = g->pairs[i].bytes;
        }

        if (fair_serves(g, i)) {
            held[t] += g->pairs[i].bytes;
            room += g->pairs[i].bytes;
        }
    }

    fair_shares(g->pairs, room, share);

    for (t = 0; t < TENANTS; t++) {
        if (held[t] + largest[t] < share[t]) {
            fail_msg("t%u holds %llu of its share %llu", t,
                     (unsigned long long) held[t],
                     (unsigned long long) share[t]);
        }
    }

    /* the room is used: most of the zone, but for a fringe and the names */
    assert_true(room > ZONE / 4);
}


/* Lists until room does not come back any more; how many. */
static unsigned
fair_settle(gateway_t *g)
{
    unsigned         slot, lists;
    kube_room_ask_t  ask;

    fair_list(g, IT_SERVICES);
    fair_list(g, IT_SLICES);

    for (lists = 1; lists < 8; lists++) {
        g->changes = 0;

        for (slot = 0; slot < 2; slot++) {
            g->it.now_ms += 1000;
            (void) it_room_returned(&g->it, slot, &ask);
            fair_list(g, slot);
        }

        if (g->changes == 0) {
            break;
        }
    }

    return lists;
}


/*
 * The cluster is as it was: ten lists change nothing, and ask for none.  A
 * process that took over does not know what most of those want that it finds
 * refused: whichever resource is listed first, alone for a while.
 */
static void
fair_relist(gateway_t *g, unsigned first)
{
    unsigned         i, slot;
    kube_room_ask_t  ask;

    for (i = 0; i < 20; i++) {
        g->changes = 0;
        fair_list(g, (i < 3) ? first : (first + i) % 2);

        if (g->changes != 0) {
            fail_msg("list %u, of resource %u, brought %u changes", i,
                     (i < 3) ? first : (first + i) % 2, g->changes);
        }

        for (slot = 0; slot < 2; slot++) {
            g->it.now_ms += 1000;
            assert_false(it_room_returned(&g->it, slot, &ask));
        }
    }
}


static void
fair_run(uint64_t seed)
{
    char           key[64];
    unsigned       i, lists[2];
    uint64_t       share[TENANTS];
    pair_t        *pairs;
    gateway_t     *a, *b;
    kube_random_t  random;

    kube_random_init(&random, seed);
    pairs = calloc(GROUPS, sizeof(pair_t));
    assert_non_null(pairs);
    fair_cluster(pairs, &random);
    snprintf(key, sizeof(key), "%s/%s", pairs[7].service.ns,
             pairs[7].service.name);

    a = fair_gateway(pairs, &random, key);
    b = fair_gateway(pairs, &random, key);
    lists[0] = fair_settle(a);
    lists[1] = fair_settle(b);
    print_message("seed %llu: settled after %u and %u lists\n",
                  (unsigned long long) seed, lists[0], lists[1]);
    assert_true(lists[0] < 8 && lists[1] < 8);
    fair_check_shares(a);
    fair_check_shares(b);

    for (i = 0; i < GROUPS; i++) {
        if (fair_serves(a, i) != fair_serves(b, i)) {
            fail_msg("%s/%s is served by one of two", pairs[i].service.ns,
                     pairs[i].service.name);
        }
    }

    fair_shares(pairs, ZONE / 4, share);

    if (pairs[7].bytes < share[pairs[7].tenant]) {
        assert_true(fair_serves(a, 7));
    }

    /* nothing has changed: nothing comes, nothing goes */
    for (i = 0; i < 3; i++) {
        fair_relist(a, i % 2);
        it_takeover(&a->it);
    }

    fair_destroy(a);
    fair_destroy(b);
    free(pairs);
}


static uint64_t
env_number(const char *name, uint64_t otherwise)
{
    const char  *value;

    value = getenv(name);

    return (value != NULL) ? strtoull(value, NULL, 10) : otherwise;
}


static void
test_fair(void **state)
{
    uint64_t  seed, rounds;

    (void) state;

    seed = env_number("KUBE_TEST_SEED", 1);
    rounds = env_number("KUBE_TEST_ROUNDS", 12);

    for ( /* void */ ; rounds != 0; rounds--, seed++) {
        fair_run(seed);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_fair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

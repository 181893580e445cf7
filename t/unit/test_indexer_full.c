/*
 * test_indexer_full - a zone too small for the cluster: what is held, what is
 * named, what comes back.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "indexer_test.h"


#define ZONE    (160u << 10)
#define GROUPS  400

typedef struct {
    it_t         it;
    it_object_t  services[GROUPS];
    it_object_t  slices[GROUPS];
    unsigned     order[GROUPS];
    unsigned     changes;        /* that readers saw */
    kube_str_t   static_keys[2];
} full_t;


static void
full_change(void *ctx, kube_change_t change, const kube_record_t *record)
{
    full_t  *f = ctx;

    (void) change;
    (void) record;
    f->changes++;
}


static full_t *
full_create(uint64_t seed, unsigned endpoints)
{
    char           name[24];
    full_t        *f;
    unsigned       i, j, swap;
    kube_random_t  random;

    f = calloc(1, sizeof(full_t));
    assert_non_null(f);

    it_zone(&f->it, ZONE);
    f->it.rv = 1000;            /* versions of one length: one size */
    f->static_keys[0] = KUBE_STR("shop/s399");
    f->static_keys[1] = KUBE_STR("shop/s350");
    f->it.conf.static_keys = f->static_keys;
    f->it.conf.static_keys_n = 2;
    f->it.conf.change = full_change;
    f->it.conf.change_ctx = f;
    assert_int_equal(it_start(&f->it), KUBE_OK);
    assert_int_equal(it_scopes(&f->it), KUBE_OK);
    assert_int_equal(kube_indexer_load(f->it.ix, 1), KUBE_OK);

    for (i = 0; i < GROUPS; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        f->services[i] = it_service(&f->it, "shop", name);
        f->slices[i] = it_slice(&f->it, "shop", name, name);
        f->slices[i].endpoints = endpoints;
        f->order[i] = i;
    }

    kube_random_init(&random, seed);

    for (i = GROUPS - 1; seed != 0 && i > 0; i--) {
        j = (unsigned) kube_random_range(&random, 0, i);
        swap = f->order[i];
        f->order[i] = f->order[j];
        f->order[j] = swap;
    }

    return f;
}


static void
full_destroy(full_t *f)
{
    it_done(&f->it);
    free(f);
}


static void
full_list_and(full_t *f, unsigned slot, const it_object_t *other)
{
    unsigned      i;
    it_object_t  *o;

    IT_BEGIN(&f->it, slot);

    if (other != NULL) {
        IT_LIST(&f->it, other);
    }

    for (i = 0; i < GROUPS; i++) {
        o = (slot == IT_SERVICES) ? &f->services[f->order[i]]
                                  : &f->slices[f->order[i]];

        if (o->there) {
            IT_LIST(&f->it, o);
            kube_publisher_run(f->it.publisher, 2, f->it.now_ms, 0);
        }
    }

    IT_SYNC(&f->it, slot);
    it_publish(&f->it);
}


static void
full_list(full_t *f, unsigned slot)
{
    full_list_and(f, slot, NULL);
}


static bool
full_serves(const full_t *f, unsigned i)
{
    char  text[256], expected[64];

    it_read(&f->it, "shop", f->services[i].name, text, sizeof(text), NULL);
    snprintf(expected, sizeof(expected), "%u %s=%u*%u",
             f->services[i].version, f->slices[i].name, f->slices[i].version,
             f->slices[i].endpoints);

    return strcmp(text, expected) == 0;
}


static void
full_check_named(const full_t *f, unsigned there)
{
    unsigned          slot;
    kube_scope_sum_t  sum;

    for (slot = 0; slot < 2; slot++) {
        sum = it_sum(&f->it, slot);
        assert_int_equal(sum.count + sum.refused + sum.refused_unnamed, there);
        assert_int_equal(it_refused(&f->it, (kube_resource_t) slot, NULL, 0),
                         sum.refused);
        assert_false(kube_publisher_pending(f->it.publisher, slot));
    }
}


/* How many are served; those must be the first by name, but for a fringe. */
static unsigned
full_check_order(const full_t *f)
{
    unsigned  i, n, last, holes;

    n = 0;
    last = 0;
    holes = 0;

    for (i = 0; i < GROUPS; i++) {
        if (full_serves(f, i)) {
            n++;

            if (i != 350 && i != 399) {
                last = i;
            }
        }
    }

    for (i = 0; i < last; i++) {
        holes += !full_serves(f, i);
    }

    print_message("%u of %u served, the last is %u, %u holes\n", n, GROUPS,
                  last, holes);
    assert_true(full_serves(f, 399));
    assert_true(full_serves(f, 350));
    assert_true(n > 50);
    assert_true(n < GROUPS - 50);
    assert_true(holes <= 10);

    return n;
}


static void
full_order_run(uint64_t seed)
{
    full_t    *f;
    unsigned   i, n;

    f = full_create(seed, 10);

    /* what a Service wants is known once its slices were listed */
    for (i = 0; i < 3; i++) {
        full_list(f, IT_SERVICES);
        full_list(f, IT_SLICES);
        full_check_named(f, GROUPS);
    }

    n = full_check_order(f);

    /* from then on nothing comes or goes */
    f->changes = 0;

    for (i = 0; i < 10; i++) {
        full_list(f, i % 2 == 0 ? IT_SLICES : IT_SERVICES);
    }

    assert_int_equal(f->changes, 0);
    assert_true(f->it.logs[KUBE_EV_ZONE_FULL] != 0);
    assert_int_equal(kube_zone_validate(f->it.mem, f->it.size), KUBE_OK);

    /* what is held stays current */
    for (i = 0; i < GROUPS; i++) {
        if (full_serves(f, i)) {
            it_change(&f->it, &f->slices[i]);
            it_publish(&f->it);
            assert_true(full_serves(f, i));
        }
    }

    assert_int_equal(full_check_order(f), n);
    full_check_named(f, GROUPS);

    /* a successor finds the same */
    it_takeover(&f->it);
    assert_int_equal(full_check_order(f), n);
    full_check_named(f, GROUPS);

    full_destroy(f);
}


static void
test_full_order(void **state)
{
    (void) state;

    full_order_run(0);
    full_order_run(1);
    full_order_run(2);
}


static void
full_delete(full_t *f, unsigned from, unsigned to)
{
    unsigned  i;

    for (i = from; i < to; i++) {
        it_delete(&f->it, &f->slices[i]);
        it_delete(&f->it, &f->services[i]);
    }

    it_publish(&f->it);
}


/* As the informer does where room has returned. */
static unsigned
full_heal(full_t *f)
{
    unsigned         slot, lists, idle;
    kube_room_ask_t  ask;

    lists = 0;

    for (idle = 0; idle < 80; idle++) {

        for (slot = 0; slot < 2; slot++) {
            if (it_room_returned(&f->it, slot, &ask)) {
                assert_false(it_room_returned(&f->it, slot, &ask));
                full_list(f, slot);
                lists++;
                idle = 0;
            }
        }

        f->it.now_ms += 1000;
        it_publish(&f->it);
    }

    return lists;
}


static void
full_heal_run(bool takeover)
{
    full_t           *f;
    unsigned          n, lists;
    kube_room_ask_t   ask;

    f = full_create(3, 10);
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    full_check_named(f, GROUPS);
    assert_true(it_sum(&f->it, IT_SLICES).refused_unnamed > 20);

    /* no room, no list; room for one brings one */
    assert_int_equal(full_heal(f), 0);
    n = full_check_order(f);
    full_delete(f, 0, 1);
    assert_int_equal(full_heal(f), 2);
    assert_int_equal(full_check_order(f), n);

    if (takeover) {
        it_takeover(&f->it);
    }

    full_delete(f, 1, 300);
    lists = full_heal(f);
    print_message("%u lists\n", lists);
    assert_true(lists >= 1);
    assert_true(lists <= 4);
    assert_true(f->it.logs[KUBE_EV_ROOM_RETURNED] != 0);
    assert_int_equal(it_sum(&f->it, IT_SERVICES).refused, 0);
    assert_int_equal(it_sum(&f->it, IT_SLICES).refused, 0);
    assert_int_equal(it_sum(&f->it, IT_SLICES).refused_unnamed, 0);
    full_check_named(f, GROUPS - 300);
    assert_true(full_serves(f, 300));
    assert_true(full_serves(f, 398));
    assert_false(it_room_returned(&f->it, IT_SLICES, &ask));

    full_destroy(f);
}


static void
test_full_heal(void **state)
{
    (void) state;

    full_heal_run(false);
    full_heal_run(true);
}


/* A static Service that comes late, and grows, finds room at others' cost. */
static void
test_full_static(void **state)
{
    full_t            *f;
    uint64_t           refused;
    it_object_t        service, slice;

    (void) state;

    f = full_create(4, 10);
    service = f->services[399];
    slice = f->slices[399];
    f->services[399].there = false;
    f->slices[399].there = false;

    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    full_check_named(f, GROUPS - 1);
    refused = it_sum(&f->it, IT_SLICES).refused;

    IT_UPDATE(&f->it, &service);
    IT_UPDATE(&f->it, &slice);
    it_publish(&f->it);
    f->services[399] = service;
    f->slices[399] = slice;
    assert_true(full_serves(f, 399));

    f->slices[399].endpoints = 200;
    it_change(&f->it, &f->slices[399]);
    it_publish(&f->it);
    assert_true(full_serves(f, 399));
    assert_true(it_sum(&f->it, IT_SLICES).refused >= refused);
    full_check_named(f, GROUPS);

    full_destroy(f);
}


/* Everything that is held grows until nothing more fits: still all named. */
static void
test_full_growth(void **state)
{
    full_t    *f;
    unsigned   i, round;

    (void) state;

    f = full_create(5, 4);
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);

    for (round = 0; round < 6; round++) {
        for (i = 0; i < GROUPS; i++) {
            f->slices[f->order[i]].endpoints = 10 + 10 * round;
            it_change(&f->it, &f->slices[f->order[i]]);
            kube_publisher_run(f->it.publisher, 4, f->it.now_ms, 0);
        }

        it_publish(&f->it);
        full_check_named(f, GROUPS);
        assert_true(full_serves(f, 399));
        assert_true(full_serves(f, 350));
        assert_int_equal(kube_zone_validate(f->it.mem, f->it.size), KUBE_OK);
    }

    /* and shrinks: the lists for room bring them back */
    for (i = 0; i < GROUPS; i++) {
        f->slices[i].endpoints = 1;
        it_change(&f->it, &f->slices[i]);
    }

    it_publish(&f->it);
    (void) full_heal(f);
    full_check_named(f, GROUPS);

    full_destroy(f);
}


/*
 * More than there is room for names: counted, exactly while the process lives;
 * what is counted ranks as what is named does, and comes back as that does.
 */
static void
test_full_unnamed(void **state)
{
    full_t             *f;
    unsigned            i, n, changed;
    uint64_t            unnamed, bytes;
    kube_room_ask_t     ask;
    kube_zone_usage_t   usage;

    (void) state;

    f = full_create(6, 20);
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    full_check_named(f, GROUPS);
    n = full_check_order(f);
    unnamed = it_sum(&f->it, IT_SLICES).refused_unnamed;
    assert_true(unnamed > 100);

    /* names keep to their own */
    kube_zone_usage(&f->it.zone, &usage);
    bytes = usage.refused * KUBE_ZONE_NAME_BYTES;
    assert_true(usage.refused > 30);
    assert_true(bytes < usage.records_bytes / 16);

    /* changes of those without a name count nothing twice */
    for (i = 0, changed = 0; i < GROUPS; i++) {
        if (!full_serves(f, i)) {
            it_change(&f->it, &f->slices[i]);
            it_change(&f->it, &f->slices[i]);
            changed++;
        }
    }

    it_publish(&f->it);
    assert_int_equal(changed, GROUPS - n);
    full_check_named(f, GROUPS);
    assert_int_equal(full_check_order(f), n);

    /* one that is deleted is gone, told twice or once */
    for (i = 0; i < GROUPS; i++) {
        if (!full_serves(f, i) && i % 2 == 0) {
            it_delete(&f->it, &f->slices[i]);
            it_delete(&f->it, &f->slices[i]);
            it_delete(&f->it, &f->services[i]);
            changed--;
        }
    }

    full_check_named(f, n + changed);
    assert_false(it_room_returned(&f->it, IT_SLICES, &ask));

    /* and one that no list has seen any more */
    for (i = 0; i < GROUPS; i++) {
        if (!full_serves(f, i)) {
            f->slices[i].there = false;
            f->services[i].there = false;
        }
    }

    f->changes = 0;
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    assert_int_equal(f->changes, 0);
    full_check_named(f, n);
    assert_int_equal(it_sum(&f->it, IT_SLICES).refused_unnamed, 0);
    full_destroy(f);
}


/* Refused for another reason, and too many to name: the zone is not full. */
static void
test_full_names_alone(void **state)
{
    full_t            *f;
    unsigned           i;
    kube_scope_sum_t   sum;

    (void) state;

    f = full_create(0, 1);
    IT_BEGIN(&f->it, IT_SLICES);

    for (i = 0; i < GROUPS; i++) {
        assert_int_equal(it_apply(&f->it, KUBE_DELTA_REFUSED, &f->slices[i]),
                         KUBE_OK);
    }

    IT_SYNC(&f->it, IT_SLICES);
    sum = it_sum(&f->it, IT_SLICES);
    assert_true(sum.refused > 30 && sum.refused_unnamed > 100);
    assert_false(sum.lacks_room);
    full_destroy(f);
}


/* A list beside the watch that names what it can. */
static void
full_refill_refused(full_t *f, unsigned n)
{
    unsigned  i;

    IT_MARK(&f->it, KUBE_DELTA_REFILL_BEGIN, IT_SLICES);

    for (i = 0; i < n; i++) {
        if (f->slices[i].there) {
            assert_int_equal(it_apply(&f->it, KUBE_DELTA_REFUSED,
                                      &f->slices[i]), KUBE_OK);
        }
    }

    IT_MARK(&f->it, KUBE_DELTA_REFILL_END, IT_SLICES);
    f->it.now_ms += 1000;
}


/* As many long names as there is room for, some of them shorter; and one. */
static unsigned
full_long_names(full_t *f, unsigned shorter)
{
    unsigned      n;
    it_object_t  *o;

    f->it.why = "a reason of as many bytes as are";
    n = 0;

    do {
        assert_true(n < GROUPS);
        o = &f->slices[n];
        snprintf(o->ns, sizeof(o->ns), "a-long-namespace");
        snprintf(o->name, sizeof(o->name), "%s-%03u",
                 n < shorter ? "a-short-one" : "a-name-that-is-no-short-one",
                 n);
        assert_int_equal(it_apply(&f->it, KUBE_DELTA_REFUSED, o), KUBE_OK);
        n++;
    } while (it_sum(&f->it, IT_SLICES).refused_unnamed == 0);

    f->it.now_ms += 1000;

    return n;
}


/*
 * There is room for a name of usual length, but who lacks one has a longer one:
 * nothing is asked for that would bring it again and again.
 */
static void
test_full_long_names(void **state)
{
    full_t           *f;
    unsigned          i, n, shorter;
    kube_room_ask_t   ask;

    (void) state;

    for (shorter = 0; shorter < 8; shorter++) {
        f = full_create(0, 1);
        n = full_long_names(f, shorter);

        for (i = 0; i < 60 && it_room_returned(&f->it, IT_SLICES, &ask); i++) {
            full_refill_refused(f, n);
        }

        assert_int_equal(i, 0);

        /* some go: one list names it */

        for (i = 0; i < 4; i++) {
            it_delete(&f->it, &f->slices[i]);
        }

        f->it.now_ms += 1000;
        assert_true(it_room_returned(&f->it, IT_SLICES, &ask));
        assert_false(ask.whole);
        full_refill_refused(f, n);
        assert_int_equal(it_sum(&f->it, IT_SLICES).refused_unnamed, 0);
        assert_false(it_room_returned(&f->it, IT_SLICES, &ask));
        full_destroy(f);
    }
}


/* A full zone, and a successor that has taken it over. */
static full_t *
full_succeeded(void)
{
    full_t  *f;

    f = full_create(0, 1);
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    assert_int_equal(full_heal(f), 0);
    it_takeover(&f->it);

    return f;
}


/*
 * A predecessor has counted some: that stands until the next list, and where
 * there is room one is asked for.
 */
static void
test_full_found_unnamed(void **state)
{
    full_t           *f;
    kube_room_ask_t   ask;

    (void) state;

    f = full_succeeded();
    kube_publisher_found_unnamed(f->it.publisher, IT_SLICES, 3, false);
    assert_int_equal(it_sum(&f->it, IT_SLICES).refused_unnamed, 3);
    assert_int_equal(it_sum(&f->it, IT_SERVICES).refused_unnamed, 0);
    assert_true(it_sum(&f->it, IT_SLICES).lacks_room);

    /* the zone is full as before: no list for that */
    assert_false(it_room_returned(&f->it, IT_SLICES, &ask));
    full_delete(f, 0, 60);
    f->it.now_ms += 1000;
    assert_false(it_room_returned(&f->it, IT_SERVICES, &ask));
    assert_true(it_room_returned(&f->it, IT_SLICES, &ask));
    full_list(f, IT_SLICES);
    assert_int_equal(it_sum(&f->it, IT_SLICES).refused_unnamed, 0);
    f->it.now_ms += 1000;
    assert_false(it_room_returned(&f->it, IT_SLICES, &ask));
    full_destroy(f);
}


/*
 * One of them was between two Services as its process ended: a list is asked
 * for at once, whatever room there is, also by who follows before it ended.
 */
static void
test_full_found_interrupted(void **state)
{
    full_t           *f;
    unsigned          i;
    kube_room_ask_t   ask;

    (void) state;

    f = full_succeeded();
    assert_false(it_sum(&f->it, IT_SLICES).interrupted);
    kube_publisher_found_unnamed(f->it.publisher, IT_SLICES, 3, true);

    for (i = 0; i < 2; i++) {
        assert_true(it_sum(&f->it, IT_SLICES).interrupted);
        assert_false(it_sum(&f->it, IT_SERVICES).interrupted);
        f->it.now_ms += 1000;
        assert_true(it_room_returned(&f->it, IT_SLICES, &ask));
        assert_true(ask.whole);
        assert_false(it_room_returned(&f->it, IT_SERVICES, &ask));

        if (i == 0) {
            it_takeover(&f->it);
        }
    }

    full_list(f, IT_SLICES);
    assert_false(it_sum(&f->it, IT_SLICES).interrupted);
    it_takeover(&f->it);
    f->it.now_ms += 1000;
    assert_false(it_room_returned(&f->it, IT_SLICES, &ask));
    full_destroy(f);
}


/*
 * max_object has refused one that ranks before what is held, and its name has
 * no room: who allows more lists it, as does who follows before that; nobody
 * else does.
 */
static void
test_full_unnamed_too_large(void **state)
{
    full_t           *f;
    unsigned          i, follows;
    it_object_t       web, big;
    kube_room_ask_t   ask;

    (void) state;

    for (i = 0; i < 2; i++) {
        f = full_create(6, 20);
        f->it.conf.object_max = 4096;
        it_takeover(&f->it);
        full_list(f, IT_SERVICES);
        full_list(f, IT_SLICES);
        assert_int_equal(full_heal(f), 0);
        web = it_service(&f->it, "few", "web");
        big = it_slice(&f->it, "few", "web", "web");
        IT_UPDATE(&f->it, &web);
        it_publish(&f->it);
        IT_READS(&f->it, "few", "web", "1");

        f->it.why = "too_large";
        assert_int_equal(it_apply(&f->it, KUBE_DELTA_REFUSED, &big), KUBE_OK);
        assert_false(kube_zone_is_refused(&f->it.zone, big.resource,
                                          KUBE_STR("few"), KUBE_STR("web")));

        f->it.conf.object_max += i;

        for (follows = 0; follows < 2; follows++) {
            it_takeover(&f->it);
            f->it.now_ms += 1000;
            assert_int_equal(it_room_returned(&f->it, IT_SLICES, &ask), i);
        }

        /* both, for there is room for nobody until both are listed */

        for (follows = 0; follows < 2; follows++) {
            full_list_and(f, IT_SERVICES, &web);
            full_list_and(f, IT_SLICES, &big);
        }

        IT_READS(&f->it, "few", "web", "1 web=1*2");
        f->it.now_ms += 1000;
        assert_false(it_room_returned(&f->it, IT_SLICES, &ask));
        it_takeover(&f->it);
        f->it.now_ms += 1000;
        assert_false(it_room_returned(&f->it, IT_SLICES, &ask));
        full_destroy(f);
    }
}


/* As full_heal(), with one that is not of this cluster's order. */
static unsigned
full_heal_and(full_t *f, const it_object_t *service, const it_object_t *slice)
{
    unsigned         i, slot, lists;
    kube_room_ask_t  ask;

    lists = 0;

    for (i = 0; i < 80; i++) {

        for (slot = 0; slot < 2; slot++) {
            if (it_room_returned(&f->it, slot, &ask)) {
                full_list_and(f, slot, slot == IT_SERVICES ? service : slice);
                lists++;
            }
        }

        f->it.now_ms += 1000;
        it_publish(&f->it);
    }

    return lists;
}


/*
 * max_object has refused one by name, and Services have no room, none of them
 * its own: nobody makes room for it until they are listed as well.
 */
static void
test_full_too_large_beside(void **state)
{
    full_t       *f;
    unsigned      i;
    it_object_t   web, big;

    (void) state;

    f = full_create(0, 20);
    f->it.conf.object_max = 4096;

    for (i = 270; i < GROUPS; i++) {
        f->services[i].there = (i == 350 || i == 399);
        f->slices[i].there = f->services[i].there;
    }

    it_takeover(&f->it);
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    web = it_service(&f->it, "few", "web");
    big = it_slice(&f->it, "few", "web", "web");
    big.endpoints = 100;
    IT_UPDATE(&f->it, &web);
    f->it.why = "too_large";
    assert_int_equal(it_apply(&f->it, KUBE_DELTA_REFUSED, &big), KUBE_OK);
    it_publish(&f->it);
    IT_READS(&f->it, "few", "web", "1");
    assert_true(it_sum(&f->it, IT_SERVICES).refused != 0);
    assert_int_equal(it_sum(&f->it, IT_SERVICES).refused_unnamed, 0);
    assert_true(kube_zone_is_refused(&f->it.zone, big.resource,
                                     KUBE_STR("few"), KUBE_STR("web")));

    f->it.conf.object_max++;
    it_takeover(&f->it);
    i = full_heal_and(f, &web, &big);
    IT_READS(&f->it, "few", "web", "1 web=1*100");
    assert_true(i <= 4);
    full_destroy(f);
}


/*
 * A Service that comes after a take-over, and ranks before others: it may be
 * one of those that the predecessor counted.  Two lists tell, and two bring it.
 */
static void
test_full_newcomer(void **state)
{
    full_t    *f;
    unsigned   lists;

    (void) state;

    f = full_create(3, 10);
    f->services[350].there = false;
    f->slices[350].there = false;
    f->slices[350].endpoints = 60;
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    (void) full_heal(f);
    it_takeover(&f->it);
    assert_int_equal(full_heal(f), 0);

    /* a slice alone is no newcomer */
    it_stamp(&f->it, &f->slices[398]);
    IT_UPDATE(&f->it, &f->slices[398]);
    assert_int_equal(full_heal(f), 0);

    f->services[350].there = true;
    f->slices[350].there = true;
    IT_UPDATE(&f->it, &f->services[350]);
    IT_UPDATE(&f->it, &f->slices[350]);
    f->changes = 0;
    it_publish(&f->it);
    assert_int_equal(f->changes, 0);
    lists = full_heal(f);
    print_message("%u lists\n", lists);
    assert_true(full_serves(f, 350));
    assert_true(lists <= 4);
    (void) full_check_order(f);
    full_check_named(f, GROUPS);
    full_destroy(f);
}


static kube_rc_t
oom_send(it_t *it, const it_object_t *o)
{
    kube_rc_t  rc;
    unsigned   tries;

    for (tries = 0; tries < 2; tries++) {
        rc = it_apply(it, KUBE_DELTA_UPDATED, o);
        alloc_test_assert_rc(&it->at, rc);

        if (rc == KUBE_OK) {
            break;
        }
    }

    it_publish(it);

    return rc;
}


#define OOM_GROUPS  40

/* Room is made with memory missing: what was refused is sent again. */
static void
full_oom(alloc_test_t *at, void *ctx)
{
    char          name[24];
    unsigned      i, sent;
    kube_rc_t     rc;
    it_t         *it = ctx;
    kube_str_t    key;
    it_object_t   o;

    it_zone(it, KUBE_ZONE_SIZE_MIN);
    it->at = *at;
    it->at.alloc.ctx = &it->at;

    key = KUBE_STR("shop/zzz");
    it->conf.static_keys = &key;
    it->conf.static_keys_n = 1;
    sent = 0;

    rc = it_start(it);

    if (rc == KUBE_OK) {
        rc = it_scopes(it);
    }

    for (i = 0; i < 2 * OOM_GROUPS && rc == KUBE_OK; i++) {
        snprintf(name, sizeof(name), "s%02u", OOM_GROUPS - i / 2);
        o = (i % 2 == 0) ? it_service(it, "shop", name)
                         : it_slice(it, "shop", name, name);
        o.endpoints *= 100;
        rc = oom_send(it, &o);
        sent++;
    }

    if (rc == KUBE_OK) {
        o = it_service(it, "shop", "zzz");
        rc = oom_send(it, &o);
    }

    if (rc == KUBE_OK) {
        o = it_slice(it, "shop", "zzz", "zzz");
        o.endpoints = 300;
        rc = oom_send(it, &o);
    }

    if (rc == KUBE_OK) {
        IT_READS(it, "shop", "zzz", "1 zzz=1*300");
        assert_true(it_sum(it, IT_SLICES).refused > 5);
        assert_int_equal(it_sum(it, IT_SLICES).count
                         + it_sum(it, IT_SLICES).refused
                         + it_sum(it, IT_SERVICES).count
                         + it_sum(it, IT_SERVICES).refused
                         + it_sum(it, IT_SLICES).refused_unnamed
                         + it_sum(it, IT_SERVICES).refused_unnamed, sent + 2);

    } else {
        alloc_test_assert_rc(&it->at, rc);
    }

    it_stop(it);
    assert_int_equal(kube_zone_validate(it->mem, it->size), KUBE_OK);
    free(it->mem);

    *at = it->at;
    at->alloc.ctx = at;
}


static void
test_full_oom(void **state)
{
    it_t  *it;

    (void) state;

    it = malloc(sizeof(it_t));
    assert_non_null(it);
    ALLOC_TEST_RUN(full_oom, it);
    free(it);
}


#define LARGE_ZONE    (512u << 10)
#define LARGE_HOG     200


static void
full_large_send(it_t *it, const char *ns, const char *name,
    unsigned endpoints)
{
    it_object_t  service, slice;

    service = it_service(it, ns, name);
    slice = it_slice(it, ns, name, name);
    slice.endpoints = endpoints;
    IT_UPDATE(it, &service);
    IT_UPDATE(it, &slice);
    it_publish(it);
}


static unsigned
full_large_run(unsigned small, unsigned endpoints)
{
    it_t         *it;
    char          name[24], text[256], expected[64];
    unsigned      i, bad;
    it_object_t   slice;

    bad = 0;
    it = calloc(1, sizeof(it_t));
    assert_non_null(it);
    it_init(it, LARGE_ZONE);
    it->rv = 1000;

    full_large_send(it, "other", "web", endpoints);

    for (i = 0; i < small; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        full_large_send(it, (i % 2 == 0) ? "small-0" : "small-1", name, 20);
    }

    for (i = 0; i < LARGE_HOG; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        full_large_send(it, "hog", name, endpoints);
    }

    slice = it_slice(it, "other", "web", "web");
    slice.endpoints = endpoints;

    for (i = 0; i < 4; i++) {
        it_change(it, &slice);
        it_publish(it);
        it_read(it, "other", "web", text, sizeof(text), NULL);
        snprintf(expected, sizeof(expected), "1 web=%u*%u", slice.version,
                 endpoints);

        if (strcmp(text, expected) != 0) {
            print_message("%u small ones, %u endpoints: %s, not %s\n",
                          small, endpoints, text, expected);
            bad++;
        }
    }

    it_done(it);
    free(it);

    return bad;
}


/*
 * Slices of which few fit in a segment: one namespace has more of them than
 * there is room for, and what another one changes of its own is taken.
 */
static void
test_full_large(void **state)
{
    unsigned  small, endpoints, bad;

    (void) state;
    bad = 0;

    for (small = 40; small <= 240; small += 40) {
        for (endpoints = 40; endpoints <= 560; endpoints += 20) {
            bad += full_large_run(small, endpoints);
        }
    }

    assert_int_equal(bad, 0);
}


#define GIANT_ZONE    (1u << 20)
#define GIANT_OTHERS  200
#define GIANT_TEXT    (64u << 10)


static unsigned
full_giant_served(const it_t *it)
{
    char      name[24], text[256];
    unsigned  i, n;

    n = 0;

    for (i = 0; i < GIANT_OTHERS; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        n += (strchr(it_read(it, "other", name, text, sizeof(text), NULL), ' ')
              != NULL);
    }

    return n;
}


/*
 * A Service with so many slices comes to have so many ports: which version of
 * it is served, and how many slices are not.
 */
static unsigned
full_giant_run(size_t size, unsigned ports, unsigned slices,
    unsigned *refused)
{
    it_t         *it;
    char          name[24], *text;
    unsigned      i, version;
    it_object_t   giant, slice;

    it = calloc(1, sizeof(it_t));
    text = malloc(GIANT_TEXT);
    assert_non_null(it);
    assert_non_null(text);
    it_zone(it, size);
    it->conf.max_outdated_ms = 60000;
    it_run(it);
    it->rv = 1000;

    for (i = 0; i < GIANT_OTHERS && size == GIANT_ZONE; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        full_large_send(it, "other", name, 120);
    }

    giant = it_service(it, "hog", "giant");
    IT_UPDATE(it, &giant);

    for (i = 0; i < slices; i++) {
        snprintf(name, sizeof(name), "g%03u", i);
        slice = it_slice(it, "hog", name, "giant");
        slice.endpoints = 1;
        IT_UPDATE(it, &slice);
    }

    it_publish(it);
    giant.ports = ports;

    for (i = 0; i < 4; i++) {
        it_change(it, &giant);
        it_publish(it);
    }

    if (size == GIANT_ZONE) {
        assert_int_equal(full_giant_served(it), GIANT_OTHERS);
    }

    it_read(it, "hog", "giant", text, GIANT_TEXT, NULL);
    assert_non_null(strstr(text, " g255=1*1"));
    version = (unsigned) strtoul(text, NULL, 10);
    *refused = it_refused(it, KUBE_RESOURCE_ENDPOINTSLICES, NULL, 0);
    it_done(it);
    free(it);
    free(text);

    return version;
}


/*
 * A Service and the refs to its slices are one record.  What would be too long
 * with these is not taken: nobody makes room for it, and what is held stays.
 */
static void
test_full_giant(void **state)
{
    unsigned  ports, refused;

    (void) state;

    for (ports = 2400; ports <= 4000; ports += 100) {
        assert_int_equal(full_giant_run(GIANT_ZONE, ports, 500, &refused),
                         (ports <= 2700) ? 5 : 1);
        assert_int_equal(refused, 0);
    }

    /* segments of 4 KiB: half of one has 256 refs */
    (void) full_giant_run(160u << 10, 0, 256, &refused);
    assert_int_equal(refused, 0);
    (void) full_giant_run(160u << 10, 0, 260, &refused);
    assert_int_equal(refused, 4);
}


/* As in a larger zone: who left a place has a list asked for, once. */
static void
test_full_places(void **state)
{
    it_t             it;
    char             name[24];
    unsigned         i;
    it_object_t      web, slice;
    kube_room_ask_t  ask;

    (void) state;
    it_init(&it, 160u << 10);
    web = it_service(&it, "hog", "web");
    IT_UPDATE(&it, &web);

    for (i = 0; i < 257; i++) {
        snprintf(name, sizeof(name), "g%03u", i);
        slice = it_slice(&it, "hog", name, "web");
        slice.endpoints = 1;
        IT_UPDATE(&it, &slice);
    }

    it_publish(&it);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    it_takeover(&it);
    it_publish(&it);
    assert_false(it_room_returned(&it, IT_SLICES, &ask));

    slice = it_slice(&it, "hog", "g000", "web");
    it_delete(&it, &slice);
    it_publish(&it);
    it.now_ms += 1000;
    assert_true(it_room_returned(&it, IT_SLICES, &ask));
    it.now_ms += 1000;
    assert_false(it_room_returned(&it, IT_SLICES, &ask));
    it_done(&it);
}


/*
 * A Service that a predecessor took, longer than may be with all refs: with
 * too many of them it goes, and no list is asked for, as none would bring it.
 */
static void
test_full_found_giant(void **state)
{
    it_t              it;
    bool              changed;
    char              name[24], reason[64];
    unsigned          i;
    uint32_t          entry;
    it_object_t       giant, slice;
    kube_record_t    *record;
    kube_room_ask_t   ask;

    (void) state;
    it_init(&it, GIANT_ZONE);
    giant = it_service(&it, "hog", "giant");
    IT_UPDATE(&it, &giant);
    it_publish(&it);

    giant.ports = 2700;
    it_stamp(&it, &giant);
    record = it_record(&giant);

    while (record->size < kube_zone_service_max(&it.zone) + 200) {
        free(record);
        giant.ports++;
        record = it_record(&giant);
    }

    assert_int_equal(kube_zone_stage(it.writer, record, 0, &entry), KUBE_OK);
    assert_int_equal(kube_zone_publish(it.writer, entry, NULL, 0, &changed),
                     KUBE_OK);
    free(record);
    it_takeover(&it);
    it_publish(&it);

    for (i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "g%03u", i);
        slice = it_slice(&it, "hog", name, "giant");
        slice.endpoints = 1;
        IT_UPDATE(&it, &slice);
    }

    it_publish(&it);
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_SERVICES, reason,
                                sizeof(reason)), 1);
    assert_string_equal(reason, "too_large");
    assert_false(it_sum(&it, IT_SERVICES).lacks_room);
    it.now_ms += 1000;
    assert_false(it_room_returned(&it, IT_SERVICES, &ask));
    it_done(&it);
}


#define STALE_GROUPS  1140


/*
 * A list brings newer versions of all: for a while both are held, which is more
 * than the zone has, though it has room for either.  What stays as it was is
 * asked for once there is room again, and not when it is outdated too long.
 */
static void
full_outdated(unsigned groups, const char *ns, bool takeover)
{
    char              name[24];
    it_t             *it;
    unsigned          i, lists;
    it_object_t      *services, *slices;
    kube_room_ask_t   ask;

    it = calloc(1, sizeof(it_t));
    services = calloc(STALE_GROUPS, sizeof(it_object_t));
    slices = calloc(STALE_GROUPS, sizeof(it_object_t));
    assert_non_null(it);
    assert_non_null(services);
    assert_non_null(slices);
    it_zone(it, GIANT_ZONE);
    it->conf.max_outdated_ms = 600000;
    it_run(it);
    it->rv = 1000;

    for (i = 0; i < groups; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        services[i] = it_service(it, (i % 4 == 0) ? ns : "hog", name);
        slices[i] = it_slice(it, services[i].ns, name, name);
        slices[i].endpoints = 45;
        IT_UPDATE(it, &services[i]);
        IT_UPDATE(it, &slices[i]);
    }

    it_publish(it);
    assert_int_equal(it_sum(it, IT_SLICES).refused, 0);
    IT_BEGIN(it, IT_SLICES);

    for (i = 0; i < groups; i++) {
        slices[i].version++;
        it_stamp(it, &slices[i]);
        IT_LIST(it, &slices[i]);
    }

    IT_SYNC(it, IT_SLICES);
    it_publish(it);
    assert_true(it_sum(it, IT_SLICES).refused != 0);

    if (takeover) {
        it_takeover(it);
    }

    for (lists = 0; it_sum(it, IT_SLICES).refused != 0 && lists < 8; lists++) {
        it->now_ms += 1000;
        assert_true(it_room_returned(it, IT_SLICES, &ask));
        assert_int_equal(ask.whole, takeover);

        if (takeover) {
            IT_BEGIN(it, IT_SLICES);
        }

        for (i = 0; i < groups; i++) {
            if (takeover) {
                IT_LIST(it, &slices[i]);

            } else {
                IT_FILL(it, &slices[i]);
            }

            it_publish(it);
        }

        if (takeover) {
            IT_SYNC(it, IT_SLICES);
            it_publish(it);
            takeover = false;
        }
    }

    assert_in_range(lists, 1, 2);
    free(services);
    free(slices);
    it_done(it);
    free(it);
}


/*
 * Of one namespace with hardly any room left, too: newer ones take no more.  A
 * successor asks for the same, once, whatever room there is.
 */
static void
test_full_outdated(void **state)
{
    (void) state;
    full_outdated(1000, "other", false);
    full_outdated(STALE_GROUPS, "hog", false);
    full_outdated(1000, "other", true);
    full_outdated(STALE_GROUPS, "hog", true);
}


/*
 * Room that had returned before a take-over, and was not asked for yet, is not
 * forgotten: none more needs to return.
 */
static void
test_full_handed_over(void **state)
{
    full_t    *f;
    unsigned   i, n, lists, served;

    (void) state;
    f = full_create(3, 10);
    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    (void) full_heal(f);
    n = full_check_order(f);
    full_delete(f, 0, 40);
    it_takeover(&f->it);
    lists = full_heal(f);

    for (i = 40, served = 0; i < GROUPS; i++) {
        served += full_serves(f, i);
    }

    print_message("%u lists, %u of %u served\n", lists, served, n);
    assert_in_range(lists, 2, 6);
    assert_in_range(served, n - 4, n + 4);
    full_check_named(f, GROUPS - 40);
    full_destroy(f);
}


#define DELETED_SLICES  40


/*
 * A slice that is deleted is in no group until its Service was published
 * without it, which may be some turns later: room is looked for meanwhile.
 */
static void
test_full_outdated_deleted(void **state)
{
    it_t             *it;
    unsigned          i;
    it_object_t       service, slices[DELETED_SLICES];
    kube_room_ask_t   ask;

    (void) state;
    it = calloc(1, sizeof(it_t));
    assert_non_null(it);
    it_zone(it, 64u << 10);
    it->conf.max_outdated_ms = 600000;
    it_run(it);
    it->rv = 1000;
    service = it_service(it, "shop", "web");
    IT_UPDATE(it, &service);

    for (i = 0; i < DELETED_SLICES; i++) {
        slices[i] = it_slice(it, "shop", "web", "web");
        snprintf(slices[i].name, sizeof(slices[i].name), "web-%u", i);
        IT_UPDATE(it, &slices[i]);
    }

    it_publish(it);
    assert_int_equal(it_sum(it, IT_SLICES).refused, 0);

    for (i = 0; i < DELETED_SLICES; i++) {
        slices[i].endpoints = 200;
        it_change(it, &slices[i]);
        it_publish(it);
    }

    assert_true(it_sum(it, IT_SLICES).refused != 0);

    for (i = 0; i < DELETED_SLICES; i++) {
        it_delete(it, &slices[i]);
    }

    it->now_ms += 1000;
    assert_false(it_room_returned(it, IT_SLICES, &ask));
    it_publish(it);
    assert_int_equal(it_sum(it, IT_SLICES).refused, 0);
    it_done(it);
    free(it);
}


/*
 * A slice whose newer version is too large is evicted as it is held: its name
 * says why, and nobody lacks the older one, which no list would bring.
 */
static void
test_full_outdated_too_large(void **state)
{
    it_t         it;
    char         name[16], reason[64];
    unsigned     i;
    it_object_t  web, slice, other, part;

    (void) state;
    it_zone(&it, 64u << 10);
    it.conf.max_outdated_ms = 600000;
    it_run(&it);
    web = it_service(&it, "hog", "web");
    slice = it_slice(&it, "hog", "web", "web");
    slice.endpoints = 80;
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &slice);
    it_publish(&it);
    slice.endpoints = KUBE_SLICE_ENDPOINTS_MAX;
    it_change(&it, &slice);
    it_publish(&it);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    assert_int_equal(it_sum(&it, IT_SERVICES).count, 1);
    assert_false(it_sum(&it, IT_SLICES).lacks_room);

    /* others, each of which wants less, until there is no room for it */

    for (i = 0; i < 200 && it_sum(&it, IT_SERVICES).refused == 0; i++) {
        snprintf(name, sizeof(name), "n%03u", i);
        other = it_service(&it, name, "a");
        part = it_slice(&it, name, "a", "a");
        part.endpoints = 20;
        IT_UPDATE(&it, &other);
        IT_UPDATE(&it, &part);
        it_publish(&it);
    }

    assert_int_equal(it_refused(&it, KUBE_RESOURCE_ENDPOINTSLICES, reason,
                                sizeof(reason)), 1);
    assert_string_equal(reason, "too_large");
    assert_int_equal(it_sum(&it, IT_SLICES).refused_unnamed, 0);
    assert_false(it_sum(&it, IT_SLICES).lacks_room);
    assert_true(it_sum(&it, IT_SERVICES).lacks_room);
    it_done(&it);
}


#define CROWD_GROUPS  600

/* So many Services of one namespace that not all have room. */
static void
full_crowd(it_t *it, it_object_t *crowd, unsigned endpoints)
{
    char         name[24];
    unsigned     i;
    it_object_t  service;

    for (i = 0; i < CROWD_GROUPS; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        service = it_service(it, "hog", name);
        IT_UPDATE(it, &service);
        crowd[i] = it_slice(it, "hog", name, name);
        crowd[i].endpoints = endpoints;
        IT_UPDATE(it, &crowd[i]);
    }

    it_publish(it);
    assert_true(it_sum(it, IT_SLICES).refused != 0);
}


/*
 * A list evicts slices that it would have found gone, whose Services went
 * before, and their names have no room: they are not counted, nor is a list
 * asked for them once room has returned.
 */
static void
test_full_gone_amid_list(void **state)
{
    full_t            *f;
    unsigned           i;
    kube_room_ask_t    ask;
    kube_scope_sum_t   sum;

    (void) state;

    f = full_create(6, 20);

    for (i = 0; i < GROUPS; i++) {
        f->services[i].there = (i % 2 == 0);
        f->slices[i].there = (i % 2 == 0);
        f->slices[i].endpoints = (i % 2 == 0) ? 60 : 20;
    }

    for (i = 0; i < 2; i++) {
        full_list(f, IT_SERVICES);
        full_list(f, IT_SLICES);
    }

    full_check_named(f, GROUPS / 2);
    assert_true(it_sum(&f->it, IT_SLICES).refused_unnamed != 0);

    for (i = 0; i < GROUPS; i++) {
        f->services[i].there = (i % 2 != 0);
        f->slices[i].there = (i % 2 != 0);
    }

    full_list(f, IT_SERVICES);
    full_list(f, IT_SLICES);
    sum = it_sum(&f->it, IT_SLICES);
    assert_int_equal(sum.count + sum.refused + sum.refused_unnamed,
                     GROUPS / 2);

    for (i = 1; i < GROUPS; i += 2) {
        it_delete(&f->it, &f->slices[i]);
        it_delete(&f->it, &f->services[i]);
    }

    it_publish(&f->it);
    f->it.now_ms += 1000;
    assert_false(it_room_returned(&f->it, IT_SLICES, &ask));
    full_destroy(f);
}


/*
 * A slice that moves to a name that has nothing yet, after a take-over of a
 * full zone: its old Service serves it until lists tell what that name wants.
 * They are asked for.
 */
static void
test_full_found_moved(void **state)
{
    it_t             *it;
    unsigned          slot;
    it_object_t       service, slice, *crowd;
    kube_room_ask_t   ask;

    (void) state;
    it = calloc(1, sizeof(it_t));
    crowd = calloc(CROWD_GROUPS, sizeof(it_object_t));
    assert_non_null(it);
    assert_non_null(crowd);
    it_zone(it, 192u << 10);
    it->conf.max_outdated_ms = 600000;
    it_run(it);
    it->rv = 1000;
    service = it_service(it, "shop", "web");
    slice = it_slice(it, "shop", "web-1", "web");
    IT_UPDATE(it, &service);
    IT_UPDATE(it, &slice);

    full_crowd(it, crowd, 60);
    assert_true(it_sum(it, IT_SLICES).refused_unnamed != 0);
    it_takeover(it);
    snprintf(slice.service, sizeof(slice.service), "elsewhere");
    it_change(it, &slice);
    it_publish(it);
    IT_READS(it, "shop", "web", "1 web-1=1*2");

    for (slot = 0; slot < 2; slot++) {
        it->now_ms += 1000;
        assert_true(it_room_returned(it, slot, &ask));
        assert_true(ask.whole);
    }

    free(crowd);
    it_done(it);
    free(it);
}


/*
 * The last slice of a group is refused for want of room: with its Service, or
 * outdated without one, until that was too long.  Its name has no room, nor has
 * the process memory to know it: nothing is left of the group then.
 */
static void
full_gone_memory(uint64_t max_outdated_ms)
{
    it_t         *it;
    uint64_t      unnamed;
    it_object_t   a, slices[2], *crowd;

    it = calloc(1, sizeof(it_t));
    crowd = calloc(CROWD_GROUPS, sizeof(it_object_t));
    assert_non_null(it);
    assert_non_null(crowd);
    it_zone(it, 192u << 10);
    it->conf.max_outdated_ms = max_outdated_ms;
    it_run(it);
    a = it_service(it, "hog", "a");
    slices[0] = it_slice(it, "hog", "a-1", "a");
    slices[1] = it_slice(it, "hog", "a-2", "a");
    IT_UPDATE(it, &a);
    IT_UPDATE(it, &slices[0]);
    IT_UPDATE(it, &slices[1]);
    full_crowd(it, crowd, 40);
    IT_READS(it, "hog", "a", "1 a-1=1*2 a-2=1*2");

    slices[0].endpoints = 100;
    it_change(it, &slices[0]);
    it_delete(it, &slices[1]);
    it_delete(it, &a);

    if (max_outdated_ms != 0) {
        it_publish(it);
        it->now_ms += max_outdated_ms;
    }

    unnamed = it_sum(it, IT_SLICES).refused_unnamed;
    alloc_test_fail(&it->at, 1, false);
    it_publish(it);
    alloc_test_heal(&it->at);
    assert_int_equal(it_sum(it, IT_SLICES).refused_unnamed, unnamed + 1);
    IT_READS(it, "hog", "a", "-");

    free(crowd);
    it_done(it);
    free(it);
}


static void
test_full_gone_memory(void **state)
{
    (void) state;
    full_gone_memory(0);
    full_gone_memory(600000);
}


/*
 * A zone with room for all: hog's one Service is the largest, a slice of t's
 * belongs to a, and others are small.  As many of these as are given, or until
 * one is refused; how many there were.
 */
static unsigned
full_moved_fill(full_t *f, it_object_t *slice, unsigned others)
{
    char          name[16];
    unsigned      i;
    it_t         *it;
    it_object_t   o;

    it = &f->it;
    o = it_service(it, "hog", "s");
    IT_UPDATE(it, &o);

    for (i = 0; i < 8; i++) {
        o = it_slice(it, "hog", f->slices[i].name, "s");
        o.endpoints = 60;
        IT_UPDATE(it, &o);
    }

    o = it_service(it, "t", "a");
    o.ports = 30;
    IT_UPDATE(it, &o);
    o = it_service(it, "t", "b");
    IT_UPDATE(it, &o);
    o = it_slice(it, "t", "b-1", "b");
    IT_UPDATE(it, &o);

    *slice = it_slice(it, "t", "moved", "a");
    slice->endpoints = 60;
    IT_UPDATE(it, slice);
    it_publish(it);

    for (i = 0; i < others; i++) {
        snprintf(name, sizeof(name), "o%u", i % 8);
        o = it_service(it, name, f->services[i].name);
        o.ports = 20;
        IT_UPDATE(it, &o);
        it_publish(it);

        if (it_sum(it, IT_SERVICES).refused != 0) {
            break;
        }
    }

    return i;
}


/* The same with as many others as there is just room for. */
static full_t *
full_moved_create(it_object_t *slice)
{
    full_t    *f;
    unsigned   others;

    f = full_create(0, 1);
    others = full_moved_fill(f, slice, GROUPS);
    assert_in_range(others, 100, GROUPS - 1);
    full_destroy(f);

    f = full_create(0, 1);
    assert_int_equal(full_moved_fill(f, slice, others), others);

    return f;
}


/*
 * What moves between two Services of one namespace is no more than it was: in
 * a zone that has just room for all nobody makes room for it.
 */
static void
test_full_moved(void **state)
{
    full_t       *f;
    unsigned      i;
    it_object_t   slice;

    (void) state;
    f = full_moved_create(&slice);
    f->changes = 0;

    for (i = 1; i <= 20; i++) {
        snprintf(slice.service, sizeof(slice.service), "%s",
                 (i % 2 == 0) ? "a" : "b");
        it_change(&f->it, &slice);
        it_publish(&f->it);
        assert_int_equal(f->changes, i);
        assert_int_equal(it_sum(&f->it, IT_SERVICES).refused, 0);
        assert_int_equal(it_sum(&f->it, IT_SLICES).refused, 0);
    }

    IT_READS(&f->it, "t", "b", "1 b-1=1*2");
    IT_READS(&f->it, "t", "a", "1 moved=21*60");
    full_destroy(f);
}


/*
 * The same of a Service that is deleted, and of another one that comes in its
 * place before that is published.
 */
static void
test_full_renamed(void **state)
{
    full_t       *f;
    unsigned      i;
    it_object_t   slice, o;

    (void) state;
    f = full_moved_create(&slice);
    o = it_service(&f->it, "t", "a");

    for (i = 1; i <= 20; i++) {
        it_delete(&f->it, &o);
        o = it_service(&f->it, "t", (i % 2 == 0) ? "a" : "c");
        o.ports = 30;
        IT_UPDATE(&f->it, &o);
        assert_int_equal(it_sum(&f->it, IT_SERVICES).refused, 0);
        assert_int_equal(it_sum(&f->it, IT_SLICES).refused, 0);
        it_publish(&f->it);
    }

    IT_READS(&f->it, "t", "a", "1 moved=1*60");
    full_destroy(f);
}


/* How many of the crowd are served. */
static unsigned
full_crowd_served(it_t *it, const it_object_t *crowd)
{
    char      text[2048];
    unsigned  i, n;

    n = 0;

    for (i = 0; i < CROWD_GROUPS; i++) {
        n += strchr(it_read(it, "hog", crowd[i].name, text, sizeof(text),
                            NULL), '=') != NULL;
    }

    return n;
}


/* What a state file has is a guess, and takes nobody's room. */
static void
test_full_state_file(void **state)
{
    it_t           *it;
    char            name[24];
    unsigned        i, k, served;
    it_object_t     o[2], *crowd;
    kube_record_t  *record;

    (void) state;
    it = calloc(1, sizeof(it_t));
    crowd = calloc(CROWD_GROUPS, sizeof(it_object_t));
    assert_non_null(it);
    assert_non_null(crowd);
    it_zone(it, 192u << 10);
    it_run(it);
    full_crowd(it, crowd, 40);
    served = full_crowd_served(it, crowd);

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "c%03u", i);
        o[0] = it_service(it, "calm", name);
        o[1] = it_slice(it, "calm", name, name);
        o[1].endpoints = 40;

        for (k = 0; k < 2; k++) {
            record = it_record(&o[k]);
            assert_int_equal(kube_indexer_put_state(it->ix, record, k, 1),
                             KUBE_OK);
            free(record);
        }
    }

    it_publish(it);
    assert_int_equal(full_crowd_served(it, crowd), served);

    /* the server's word is another matter */
    IT_UPDATE(it, &o[0]);
    IT_UPDATE(it, &o[1]);
    it_publish(it);
    assert_true(full_crowd_served(it, crowd) < served);

    free(crowd);
    it_done(it);
    free(it);
}


/* Those that are not served leave, and so many others: a bit of the room. */
static void
full_crowd_leaves(it_t *it, it_object_t *crowd, unsigned others)
{
    char      text[2048];
    unsigned  i;

    for (i = 0; i < CROWD_GROUPS; i++) {

        if (strchr(it_read(it, "hog", crowd[i].name, text, sizeof(text), NULL),
                   '=') == NULL)
        {
            it_delete(it, &crowd[i]);

        } else if (others != 0) {
            others--;
            it_delete(it, &crowd[i]);
        }
    }

    it_publish(it);
}


/* A process that dies twice while it publishes the Service. */
static void
full_poison(it_t *it, const it_object_t *o)
{
    unsigned      i;
    kube_str_t    ns, name, uid;
    kube_hand_t   what, hand;
    kube_death_t  death;

    ns = kube_str(o->ns);
    name = kube_str(o->name);
    uid = kube_str(o->uid);
    what = (kube_hand_t) { .now_ms = it->now_ms, .scope = IT_SERVICES,
                           .resource = KUBE_RESOURCE_SERVICES,
                           .blame = KUBE_BLAME_SERVICE,
                           .ns = &ns, .name = &name, .uid = &uid };

    for (i = 0; i < 2; i++) {
        kube_hand_take(&hand, &what, KUBE_STAGE_PUBLISH);
        kube_zone_poison_say(&it->zone, &hand, 11);
        assert_true(kube_zone_poison_take(&it->zone, it->now_ms, &death));
    }

    assert_true(death.refused);
}


/* Where a Service can have crashed: an empty crowd, the caller's. */
static it_object_t *
full_crashing(full_t *f, kube_hand_t *hand)
{
    it_object_t  *crowd;

    crowd = calloc(CROWD_GROUPS, sizeof(it_object_t));
    assert_non_null(crowd);
    memset(hand, 0, sizeof(kube_hand_t));
    f->it.conf.hand = hand;
    f->it.conf.max_outdated_ms = UINT32_MAX;
    it_takeover(&f->it);

    return crowd;
}


/*
 * A slice that was published with a and has changed, moves to b, which has no
 * room for it, before that is published; and a's publication has killed two
 * processes.  The slice stays as it is served, but b is brought it once it has
 * room: what b lacks is no fault of a's.
 */
static void
test_full_moved_amid_crash(void **state)
{
    full_t           *f;
    it_t             *it;
    unsigned          i;
    it_object_t       a, b, slice, *crowd;
    kube_hand_t       hand;
    kube_room_ask_t   ask;

    (void) state;
    f = full_create(0, 1);
    it = &f->it;
    crowd = full_crashing(f, &hand);

    a = it_service(it, "hog", "a");
    b = it_service(it, "hog", "b");
    slice = it_slice(it, "hog", "a-1", "a");
    IT_UPDATE(it, &a);
    IT_UPDATE(it, &b);
    IT_UPDATE(it, &slice);
    full_crowd(it, crowd, 2);
    IT_READS(it, "hog", "a", "1 a-1=1*2");

    full_poison(it, &a);
    it_change(it, &slice);
    snprintf(slice.service, sizeof(slice.service), "b");
    slice.endpoints = 300;
    it_change(it, &slice);
    it_publish(it);
    IT_READS(it, "hog", "a", "1 a-1=1*2");
    assert_true(it_sum(it, IT_SLICES).lacks_room);

    for (i = 0; i < CROWD_GROUPS; i++) {
        it_delete(it, &crowd[i]);
    }

    it_publish(it);
    it->now_ms += 1000;
    assert_true(it_room_returned(it, IT_SLICES, &ask));

    free(crowd);
    full_destroy(f);
}


/*
 * What a Service would give up, of which the process has died, makes nobody go:
 * each list would bring it, and what went, again.
 */
static void
test_full_crashed_grows(void **state)
{
    full_t            *f;
    it_t              *it;
    unsigned           i;
    it_object_t        a, slice, other, *crowd;
    kube_hand_t        hand;
    kube_scope_sum_t   before;

    (void) state;
    f = full_create(0, 1);
    it = &f->it;
    crowd = full_crashing(f, &hand);

    a = it_service(it, "one", "a");
    slice = it_slice(it, "one", "a-1", "a");
    IT_UPDATE(it, &a);
    IT_UPDATE(it, &slice);
    full_crowd(it, crowd, 2);
    full_poison(it, &a);

    before = it_sum(it, IT_SERVICES);
    f->changes = 0;

    for (i = 0; i < 3; i++) {
        slice.endpoints = 300;
        it_change(it, &slice);
        other = it_slice(it, "one", "a-2", "a");
        other.endpoints = 300;
        IT_UPDATE(it, &other);
        it_change(it, &a);
        it_publish(it);
    }

    assert_int_equal(f->changes, 0);
    assert_int_equal(it_sum(it, IT_SERVICES).count, before.count - 1);
    IT_READS(it, "one", "a", "1 a-1=1*2");

    /* deleted, or made anew, it is no longer that which crashed */
    it_delete(it, &other);
    it_delete(it, &slice);
    it_delete(it, &a);
    it_publish(it);
    IT_READS(it, "one", "a", "-");

    free(crowd);
    full_destroy(f);
}


/*
 * A slice whose newest version, which is larger, is another Service's, stays
 * outdated in that which has it.  Room returns, and a list beside the watch
 * moves it: the other Service is held back until that ends.  A process that
 * ends before leaves its name, or counts it, and the next one asks for it at
 * once, whatever room there is, and so does the one after that.
 */
static void
test_full_moved_beside(void **state)
{
    it_t             *it;
    unsigned          i;
    it_object_t       a, b, first, moved, *crowd;
    kube_room_ask_t   ask;
    char              reason[64];

    (void) state;
    it = calloc(1, sizeof(it_t));
    crowd = calloc(CROWD_GROUPS, sizeof(it_object_t));
    assert_non_null(it);
    assert_non_null(crowd);
    it_zone(it, 192u << 10);
    it->conf.max_outdated_ms = 600000;
    it_run(it);
    it->rv = 1000;
    a = it_service(it, "hog", "a");
    first = it_slice(it, "hog", "a-1", "a");
    moved = it_slice(it, "hog", "a-2", "a");
    IT_UPDATE(it, &a);
    IT_UPDATE(it, &first);
    IT_UPDATE(it, &moved);
    full_crowd(it, crowd, 40);

    b = it_service(it, "hog", "b");
    snprintf(moved.service, sizeof(moved.service), "b");
    moved.endpoints = 100;
    it_change(it, &moved);
    IT_UPDATE(it, &b);
    it_publish(it);
    IT_READS(it, "hog", "a", "1 a-1=1*2 a-2=1*2");

    full_crowd_leaves(it, crowd, 4);
    it_stamp(it, &b);
    IT_UPDATE(it, &b);
    it_publish(it);
    IT_MARK(it, KUBE_DELTA_REFILL_BEGIN, IT_SLICES);
    IT_FILL(it, &moved);
    it_publish(it);
    IT_READS(it, "hog", "a", "1 a-1=1*2");

    for (i = 0; i < 2; i++) {
        it_takeover(it);
        IT_READS(it, "hog", "a", "1 a-1=1*2");
        assert_int_equal(it_refused(it, KUBE_RESOURCE_ENDPOINTSLICES, reason,
                                    sizeof(reason)), 1);
        assert_string_equal(reason, "interrupted");
        it->now_ms += 1000;
        assert_true(it_room_returned(it, IT_SLICES, &ask));
        assert_true(ask.whole);
    }

    IT_BEGIN(it, IT_SLICES);
    IT_LIST(it, &first);
    IT_LIST(it, &moved);
    IT_SYNC(it, IT_SLICES);
    it_publish(it);
    assert_int_equal(it_sum(it, IT_SLICES).refused, 0);
    IT_READS(it, "hog", "a", "1 a-1=1*2");
    free(crowd);
    it_done(it);
    free(it);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_full_order),
        cmocka_unit_test(test_full_heal),
        cmocka_unit_test(test_full_static),
        cmocka_unit_test(test_full_growth),
        cmocka_unit_test(test_full_unnamed),
        cmocka_unit_test(test_full_names_alone),
        cmocka_unit_test(test_full_long_names),
        cmocka_unit_test(test_full_found_unnamed),
        cmocka_unit_test(test_full_found_interrupted),
        cmocka_unit_test(test_full_unnamed_too_large),
        cmocka_unit_test(test_full_too_large_beside),
        cmocka_unit_test(test_full_newcomer),
        cmocka_unit_test(test_full_large),
        cmocka_unit_test(test_full_giant),
        cmocka_unit_test(test_full_places),
        cmocka_unit_test(test_full_found_giant),
        cmocka_unit_test(test_full_outdated),
        cmocka_unit_test(test_full_outdated_deleted),
        cmocka_unit_test(test_full_outdated_too_large),
        cmocka_unit_test(test_full_gone_amid_list),
        cmocka_unit_test(test_full_gone_memory),
        cmocka_unit_test(test_full_found_moved),
        cmocka_unit_test(test_full_moved),
        cmocka_unit_test(test_full_renamed),
        cmocka_unit_test(test_full_moved_amid_crash),
        cmocka_unit_test(test_full_crashed_grows),
        cmocka_unit_test(test_full_state_file),
        cmocka_unit_test(test_full_moved_beside),
        cmocka_unit_test(test_full_handed_over),
        cmocka_unit_test(test_full_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

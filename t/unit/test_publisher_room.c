/*
 * test_publisher_room - random histories of a cluster that a small zone has no
 * room for: slices grow, change their Services and go, lists end or break off,
 * processes follow each other.
 *
 * Once the cluster rests no list is asked for without end; each object is held
 * as it is, held outdated, named or counted; what has no room is lacked by the
 * Service that it is of; and what a list would bring was asked for.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdlib.h>

#include "indexer_test.h"

#include "kube_publisher.c"


#define ZONE       (64u << 10)
#define TENANTS    3
#define SERVICES   8               /* of a tenant */
#define SLICES     20
#define STEPS      150
#define RESTS      400             /* looks for room, a second apart */
#define QUIET      70              /* of these, without a list, are the end */
#define LISTS_MAX  14
#define CROWD      200             /* Services, more than there is room for */
#define OUTDATED_MS  1000          /* in one history of three; else for ever */

typedef struct {
    it_t           it;
    kube_random_t  random;
    it_object_t    services[TENANTS][SERVICES];
    it_object_t    slices[TENANTS][SLICES];
    unsigned       changes;
    unsigned       saved[2];       /* the scopes' versions in the zone */
} room_t;


static unsigned
room_random(room_t *r, unsigned n)
{
    return (unsigned) kube_random_range(&r->random, 0, n - 1);
}


static void
room_change(void *ctx, kube_change_t change, const kube_record_t *record)
{
    room_t  *r = ctx;

    (void) change;
    (void) record;
    r->changes++;
}


/* A slice of any Service and size. */
static void
room_slice(room_t *r, it_object_t *o)
{
    snprintf(o->service, sizeof(o->service), "s%u", room_random(r, SERVICES));
    o->endpoints = 1 + room_random(r, room_random(r, 4) == 0 ? 700 : 150);
}


static room_t *
room_create(uint64_t seed)
{
    char       ns[8], name[8];
    room_t    *r;
    unsigned   t, i;

    r = calloc(1, sizeof(room_t));
    assert_non_null(r);
    kube_random_init(&r->random, seed);
    it_zone(&r->it, ZONE);
    r->it.rv = 1000;
    r->it.conf.max_outdated_ms = (seed % 3 == 0) ? OUTDATED_MS : UINT32_MAX;
    r->it.conf.change = room_change;
    r->it.conf.change_ctx = r;
    it_run(&r->it);

    for (t = 0; t < TENANTS; t++) {
        snprintf(ns, sizeof(ns), "t%u", t);

        for (i = 0; i < SERVICES; i++) {
            snprintf(name, sizeof(name), "s%u", i);
            r->services[t][i] = it_service(&r->it, ns, name);
            r->services[t][i].there = false;
        }

        for (i = 0; i < SLICES; i++) {
            snprintf(name, sizeof(name), "e%u", i);
            r->slices[t][i] = it_slice(&r->it, ns, name, "s0");
            r->slices[t][i].there = false;
        }
    }

    return r;
}


static it_object_t *
room_object(room_t *r, unsigned slot, unsigned i)
{
    return (slot == IT_SERVICES)
           ? &r->services[i / SERVICES][i % SERVICES]
           : &r->slices[i / SLICES][i % SLICES];
}


static unsigned
room_objects(unsigned slot)
{
    return (slot == IT_SERVICES) ? TENANTS * SERVICES : TENANTS * SLICES;
}


/* What a list shows, from a random one on: an API server lists by name. */
static void
room_items(room_t *r, unsigned slot, bool whole, unsigned n)
{
    unsigned            i;
    const it_object_t  *o;

    for (i = 0; i < n; i++) {
        o = room_object(r, slot, i);

        if (!o->there) {
            continue;
        }

        if (whole) {
            IT_LIST(&r->it, o);

        } else {
            IT_FILL(&r->it, o);
        }

        kube_publisher_run(r->it.publisher, room_random(r, 3), r->it.now_ms,
                           0);
    }
}


static void
room_list(room_t *r, unsigned slot, bool whole)
{
    if (whole) {
        IT_BEGIN(&r->it, slot);
        room_items(r, slot, true, room_objects(slot));
        IT_SYNC(&r->it, slot);

    } else {
        IT_MARK(&r->it, KUBE_DELTA_REFILL_BEGIN, slot);
        room_items(r, slot, false, room_objects(slot));
        IT_MARK(&r->it, KUBE_DELTA_REFILL_END, slot);
    }

    it_publish(&r->it);
}


/*
 * A process ends, perhaps in the middle of a list.  Its successor's watch
 * begins with what its readers had not seen.
 */
static void
room_takeover(room_t *r)
{
    unsigned            i, slot, how;
    const it_object_t  *o;

    slot = room_random(r, 2);
    how = room_random(r, 3);

    if (how == 1) {
        IT_BEGIN(&r->it, slot);

    } else if (how == 2) {
        IT_MARK(&r->it, KUBE_DELTA_REFILL_BEGIN, slot);
    }

    if (how != 0) {
        room_items(r, slot, how == 1, room_random(r, room_objects(slot)));
    }

    it_takeover(&r->it);

    for (slot = 0; slot < 2; slot++) {
        for (i = 0; i < room_objects(slot); i++) {
            o = room_object(r, slot, i);

            if (strtoul(o->rv, NULL, 10) > r->saved[slot]) {
                assert_int_equal(it_apply(&r->it, o->there
                                          ? KUBE_DELTA_UPDATED
                                          : KUBE_DELTA_DELETED, o), KUBE_OK);
            }
        }
    }
}


/* The scope's version moves on once readers see all up to it. */
static void
room_save(room_t *r)
{
    unsigned  slot;

    for (slot = 0; slot < 2; slot++) {
        if (!kube_publisher_pending(r->it.publisher, slot)) {
            r->saved[slot] = r->it.rv;
        }
    }
}


/* An event; where memory is missing it comes again. */
static void
room_event(room_t *r, it_object_t *o, kube_delta_kind_t kind)
{
    kube_rc_t  rc;

    it_stamp(&r->it, o);
    o->there = (kind != KUBE_DELTA_DELETED);

    if (room_random(r, 8) == 0) {
        r->it.at.fail_at = r->it.at.calls + 1 + room_random(r, 4);
    }

    do {
        rc = it_apply(&r->it, kind, o);
        assert_true(rc == KUBE_OK || rc == KUBE_NOMEM);
    } while (rc == KUBE_NOMEM);

    r->it.at.fail_at = 0;
}


static void
room_step(room_t *r)
{
    unsigned      what;
    it_object_t  *slice, *service;

    slice = room_object(r, IT_SLICES, room_random(r, room_objects(IT_SLICES)));
    service = room_object(r, IT_SERVICES,
                          room_random(r, room_objects(IT_SERVICES)));
    what = room_random(r, 100);

    if (what < 55) {

        if (room_random(r, 2) == 0 || !slice->there) {
            room_slice(r, slice);

        } else {
            slice->endpoints += room_random(r, 150);
            slice->endpoints = slice->endpoints % 700 + 1;
        }

        slice->version++;
        room_event(r, slice, KUBE_DELTA_UPDATED);

    } else if (what < 65) {

        if (slice->there) {
            room_event(r, slice, KUBE_DELTA_DELETED);
        }

    } else if (what < 83) {
        service->version++;
        room_event(r, service, KUBE_DELTA_UPDATED);

    } else if (what < 85) {

        if (service->there) {
            room_event(r, service, KUBE_DELTA_DELETED);
        }

    } else if (what < 90) {
        room_list(r, room_random(r, 2), false);

    } else if (what < 93) {
        room_list(r, room_random(r, 2), true);

    } else if (what < 96) {
        room_takeover(r);

    } else {
        r->it.now_ms += 1000;
    }

    kube_publisher_run(r->it.publisher, room_random(r, 4), r->it.now_ms, 0);
    room_save(r);
}


/* Lists what is asked for until nothing is; how many lists. */
static unsigned
room_rest(room_t *r)
{
    unsigned         i, slot, lists, quiet;
    kube_room_ask_t  ask;

    lists = 0;
    quiet = 0;

    for (i = 0; i < RESTS && quiet < QUIET; i++, quiet++) {
        r->it.now_ms += 1000;

        for (slot = 0; slot < 2; slot++) {
            if (it_room_returned(&r->it, slot, &ask)) {
                room_list(r, slot, ask.whole);
                lists++;
                quiet = 0;
            }
        }

        it_publish(&r->it);
    }

    return lists;
}


/* True if the zone says of the object how it is: as it is, old, or refused. */
static bool
room_knows(const room_t *r, const it_object_t *o, bool *is_current)
{
    kube_zone_item_t      item;
    const kube_record_t  *record;

    *is_current = false;

    if (kube_zone_item_name(r->it.writer, o->resource, kube_str(o->ns),
                            kube_str(o->name), &item) != KUBE_OK
        || item.entry == 0)
    {
        return false;
    }

    record = kube_zone_published(r->it.writer, item.entry);
    assert_non_null(record);

    if (record->kind == KUBE_RECORD_REFUSED
        || (record->flags & KUBE_RECORD_F_OUTDATED))
    {
        return o->there;
    }

    *is_current = true;
    assert_true(o->there);
    assert_true(kube_str_eq(item.held.meta.rv, kube_str(o->rv)));

    return true;
}


static void
room_check(room_t *r)
{
    bool              is_current;
    unsigned          i, slot, unknown, current;
    it_object_t      *o;
    kube_scope_sum_t  sum;

    for (slot = 0; slot < 2; slot++) {
        sum = it_sum(&r->it, slot);
        unknown = 0;
        current = 0;

        for (i = 0; i < room_objects(slot); i++) {
            o = room_object(r, slot, i);
            unknown += !room_knows(r, o, &is_current) && o->there;
            current += is_current;
        }

        assert_int_equal(sum.count, current);
        assert_true(unknown <= sum.refused_unnamed);
        assert_false(kube_publisher_pending(r->it.publisher, slot));
    }
}


/*
 * Who lacks what is not held as it is: the Service that it is of, and as large
 * as it is, or nobody where the zone would not hold it.  At rest that is known
 * of all.
 */
static void
room_check_lack(room_t *r, const it_object_t *o, bool rests, uint64_t seed)
{
    bool                  too_large;
    uint32_t              bytes;
    const char           *service;
    kube_record_t        *record;
    kube_zone_item_t      item;
    const kube_lack_t    *lack;
    kube_publisher_t     *p;
    const kube_group_t   *group;
    const kube_member_t  *member;

    p = r->it.publisher;
    assert_int_equal(kube_zone_item_name(r->it.writer, o->resource,
                                         kube_str(o->ns), kube_str(o->name),
                                         &item), KUBE_OK);
    member = &p->index.members[item.entry];

    if (!o->there || (member->group != NULL && !member->outdated)) {
        return;
    }

    lack = kube_publication_lack(&p->publication, &item);
    group = (lack != NULL) ? lack->group : member->group;
    service = (it_slot(o) == IT_SERVICES) ? o->name : o->service;

    record = it_record(o);
    bytes = kube_eviction_charge(&p->eviction, kube_record_base(record));
    too_large = (record->size > kube_zone_record_max(&r->it.zone));
    free(record);

    if (too_large || (lack == NULL && group == NULL && !rests)) {
        assert_true(lack == NULL || group == NULL);
        return;
    }

    if (group == NULL
        || !kube_str_eq(kube_group_ns(group), kube_str(o->ns))
        || !kube_str_eq(kube_group_name(group), kube_str(service))
        || group->scope[o->resource] != it_slot(o)
        || (lack != NULL && lack->bytes != bytes))
    {
        fail_msg("seed %llu: %s/%s is not lacked by %s",
                 (unsigned long long) seed, o->ns, o->name, service);
    }
}


/* What a predecessor has refused, or left outdated, lists are to tell. */
static void
room_check_lacks(room_t *r, bool rests, uint64_t seed)
{
    unsigned  i, slot;
    uint64_t  unnamed;

    if (!rests
        && kube_publication_guesses(&r->it.publisher->publication, IT_SLICES,
                                    &unnamed))
    {
        return;
    }

    for (slot = 0; slot < 2; slot++) {
        for (i = 0; i < room_objects(slot); i++) {
            room_check_lack(r, room_object(r, slot, i), rests, seed);
        }
    }
}


static void
room_add(uint64_t *bytes, uint64_t *n, const kube_lack_t *lack)
{
    if (lack != NULL && lack->group != NULL) {
        *bytes += lack->bytes;
        (*n)++;
    }
}


/* What a group has takes room, but for a Service that is on its way out. */
static void
room_check_bytes(const kube_publisher_t *p, uint32_t entry)
{
    const kube_member_t  *member;
    const kube_record_t  *record;

    member = &p->index.members[entry];

    if (member->group != NULL) {
        record = kube_zone_newest(p->publication.conf.writer, entry);
        assert_int_equal(member->bytes,
                         member->life == KUBE_LIFE_DELETING ? 0
                         : kube_eviction_charge(&p->eviction,
                                                kube_record_base(record)));
    }
}


/* Services lack what members and rows say, no more and no less. */
static void
room_check_sums(room_t *r)
{
    size_t                i;
    uint64_t              bytes, n, lacking, lacking_n;
    kube_map_link_t      *link;
    kube_publisher_t     *p;
    const kube_map_t     *map;
    const kube_group_t   *group;
    const kube_member_t  *member;

    p = r->it.publisher;
    bytes = n = lacking = lacking_n = 0;

    for (i = 1; i <= kube_publisher_top(p); i++) {
        member = &p->index.members[i];
        room_check_bytes(p, i);

        if (member->life == KUBE_LIFE_REFUSED) {
            room_add(&bytes, &n, &member->lack);
        }

        if (kube_member_wish(member) != NULL) {
            room_add(&bytes, &n, kube_member_wish(member));
            assert_true(member->outdated
                        || member->life == KUBE_LIFE_DELETING);
            assert_ptr_not_equal(member->group, member->refusal->wish.group);
        }
    }

    map = &p->publication.unnamed.map;

    for (i = 0; i <= map->mask; i++) {
        for (link = map->buckets[i]; link != NULL; link = link->next) {
            room_add(&bytes, &n,
                     &kube_map_data(link, kube_unnamed_row_t, link)->lack);
        }
    }

    map = &p->index.groups;

    for (i = 0; i <= map->mask; i++) {
        for (link = map->buckets[i]; link != NULL; link = link->next) {
            group = kube_map_data(link, kube_group_t, link);
            assert_false(kube_group_is_empty(group));
            assert_int_equal(group->pins, 0);
            lacking += group->lacking;
            lacking_n += group->lacking_n;
        }
    }

    assert_int_equal(lacking, bytes);
    assert_int_equal(lacking_n, n);
}


/* The cluster rests: lists are asked for, but not without end. */
static unsigned
room_rests(room_t *r, uint64_t seed)
{
    unsigned  lists;

    it_publish(&r->it);
    lists = room_rest(r);

    if (lists > LISTS_MAX) {
        fail_msg("seed %llu: %u lists", (unsigned long long) seed, lists);
    }

    room_check(r);

    return lists;
}


/*
 * Nothing has changed, and nothing is asked for: who lists all the same finds
 * nothing that has room.
 */
static void
room_has_all(room_t *r, uint64_t seed)
{
    unsigned  i;

    r->changes = 0;

    for (i = 0; i < 4; i++) {
        room_list(r, i % 2, false);
    }

    if (r->changes != 0) {
        fail_msg("seed %llu: %u changes", (unsigned long long) seed,
                 r->changes);
    }

    room_check(r);
}


static unsigned
room_run(uint64_t seed)
{
    room_t    *r;
    unsigned   i, lists;

    r = room_create(seed);

    for (i = 0; i < STEPS; i++) {
        room_step(r);
        room_check_sums(r);
        room_check_lacks(r, false, seed);
    }

    lists = room_rests(r, seed);

    /* what a predecessor has refused only lists tell: they are not due yet */
    room_list(r, IT_SERVICES, true);
    room_list(r, IT_SLICES, true);
    lists += room_rests(r, seed);
    room_has_all(r, seed);
    room_check_lacks(r, true, seed);

    it_done(&r->it);
    free(r);

    return lists;
}


static uint64_t
env_number(const char *name, uint64_t otherwise)
{
    const char  *value;

    value = getenv(name);

    return (value != NULL) ? strtoull(value, NULL, 10) : otherwise;
}


static void
test_room(void **state)
{
    unsigned  lists;
    uint64_t  seed, rounds, left;

    (void) state;
    seed = env_number("KUBE_TEST_SEED", 1);
    rounds = env_number("KUBE_TEST_ROUNDS", 200);
    lists = 0;

    for (left = rounds; left != 0; left--, seed++) {
        lists += room_run(seed);
    }

    print_message("%u lists in %llu histories\n", lists,
                  (unsigned long long) rounds);
}


/* A zone that is full of one tenant's Services, of so many endpoints each. */
static void
room_crowd(it_t *it, unsigned endpoints)
{
    char         name[24];
    unsigned     i;
    it_object_t  service, slice;

    for (i = 0; i < CROWD; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        service = it_service(it, "hog", name);
        slice = it_slice(it, "hog", name, name);
        slice.endpoints = endpoints;
        IT_UPDATE(it, &service);
        IT_UPDATE(it, &slice);
    }

    it_publish(it);
    assert_true(it_sum(it, IT_SLICES).lacks_room);
}


static const kube_member_t *
room_member(it_t *it, const it_object_t *o)
{
    kube_zone_item_t  item;

    assert_int_equal(kube_zone_item_name(it->writer, o->resource,
                                         kube_str(o->ns), kube_str(o->name),
                                         &item), KUBE_OK);
    assert_int_not_equal(item.entry, 0);

    return &it->publisher->index.members[item.entry];
}


static const kube_lack_t *
room_lack(it_t *it, const it_object_t *o)
{
    kube_zone_item_t  item;

    assert_int_equal(kube_zone_item_name(it->writer, o->resource,
                                         kube_str(o->ns), kube_str(o->name),
                                         &item), KUBE_OK);

    return kube_publication_lack(&it->publisher->publication, &item);
}


/* Who wants a slice wants it no more once no zone of that size holds it. */
static void
test_wish_ends(void **state)
{
    it_t         *it;
    it_object_t   service, first, moved;

    (void) state;
    it = calloc(1, sizeof(it_t));
    assert_non_null(it);
    it_zone(it, ZONE);
    it->rv = 1000;
    it->conf.max_outdated_ms = 600000;
    it_run(it);
    service = it_service(it, "hog", "a");
    first = it_slice(it, "hog", "a-1", "a");
    moved = it_slice(it, "hog", "a-2", "a");
    IT_UPDATE(it, &service);
    IT_UPDATE(it, &first);
    IT_UPDATE(it, &moved);
    room_crowd(it, 20);

    snprintf(moved.service, sizeof(moved.service), "b");
    moved.endpoints = 60;
    it_change(it, &moved);
    it_publish(it);
    assert_true(room_member(it, &moved)->outdated);
    assert_non_null(kube_member_wish(room_member(it, &moved)));

    moved.endpoints = 900;
    it_change(it, &moved);
    it_publish(it);
    assert_true(room_member(it, &moved)->outdated);
    assert_null(kube_member_wish(room_member(it, &moved)));

    it_done(it);
    free(it);
}


/*
 * A slice that grew and had no room, shrank again, and goes with its Service
 * for others' sake is lacked as it is, not as it once was.
 */
static void
test_lack_of_what_shrank(void **state)
{
    it_t                 *it;
    char                  name[24];
    unsigned              i;
    kube_record_t        *record;
    it_object_t           service, slice, other[2];
    const kube_lack_t    *lack;
    const kube_member_t  *member;

    (void) state;
    it = calloc(1, sizeof(it_t));
    assert_non_null(it);
    it_zone(it, ZONE);
    it->rv = 1000;
    it->conf.max_outdated_ms = 600000;
    it_run(it);
    service = it_service(it, "hog", "a");
    slice = it_slice(it, "hog", "a-1", "a");
    slice.endpoints = 12;
    IT_UPDATE(it, &service);
    IT_UPDATE(it, &slice);
    room_crowd(it, 20);

    slice.endpoints = 100;
    it_change(it, &slice);
    it_publish(it);
    member = room_member(it, &slice);
    assert_true(member->outdated);
    assert_int_not_equal(member->wants, 0);

    slice.endpoints = 12;
    it_change(it, &slice);
    it_publish(it);
    assert_false(member->outdated);
    assert_null(room_lack(it, &slice));

    for (i = 0; i < CROWD && room_lack(it, &slice) == NULL; i++) {
        snprintf(name, sizeof(name), "c%03u", i);
        other[0] = it_service(it, "hog", name);
        other[1] = it_slice(it, "hog", name, name);
        other[1].endpoints = 1;
        IT_UPDATE(it, &other[0]);
        IT_UPDATE(it, &other[1]);
        it_publish(it);
    }

    lack = room_lack(it, &slice);
    assert_non_null(lack);
    record = it_record(&slice);
    assert_int_equal(lack->bytes,
                     kube_eviction_charge(&it->publisher->eviction,
                                          kube_record_base(record)));
    free(record);
    it_done(it);
    free(it);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_wish_ends),
        cmocka_unit_test(test_lack_of_what_shrank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_indexer - what one delta after the other does: events, moves between
 * Services, refusals, callbacks, take-over.
 *
 * Lists: test_indexer_list.c.  Against a model: test_indexer_model.c.  A full
 * zone: test_indexer_full.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "indexer_test.h"
#include "kube_zone_counters.h"


#define ZONE  (1u << 20)


static void
test_indexer_events(void **state)
{
    it_t         it;
    it_object_t  web, a, b;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "web-a", "web");
    b = it_slice(&it, "shop", "web-b", "web");

    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &b);

    /* nothing is readable before it is published, and then all at once */
    IT_READS(&it, "shop", "web", "-");
    assert_true(kube_publisher_pending(it.publisher, IT_SERVICES));
    assert_true(kube_publisher_pending(it.publisher, IT_SLICES));
    assert_int_equal(it_publish(&it), 1);
    assert_false(kube_publisher_pending(it.publisher, IT_SERVICES));
    assert_false(kube_publisher_pending(it.publisher, IT_SLICES));
    IT_READS(&it, "shop", "web", "1 web-a=1*2 web-b=1*2");

    it_change(&it, &a);
    IT_READS(&it, "shop", "web", "1 web-a=1*2 web-b=1*2");
    assert_int_equal(it_publish(&it), 1);
    IT_READS(&it, "shop", "web", "1 web-a=2*2 web-b=1*2");

    it_change(&it, &web);
    it_delete(&it, &b);
    assert_int_equal(it_publish(&it), 1);
    IT_READS(&it, "shop", "web", "2 web-a=2*2");
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);

    /* its slices outlive a Service, and serve the next of that name */
    it_delete(&it, &web);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "-");
    assert_int_equal(it_sum(&it, IT_SERVICES).count, 0);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);

    it_change(&it, &a);
    assert_int_equal(it_publish(&it), 0);
    web = it_service(&it, "shop", "web");
    IT_UPDATE(&it, &web);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 web-a=3*2");

    it_delete(&it, &a);
    it_delete(&it, &web);
    it_publish(&it);
    assert_int_equal(it_sum(&it, IT_SERVICES).count, 0);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 0);
    assert_int_equal(it_sum(&it, IT_SLICES).digest.lo, 0);
    assert_int_equal(it_sum(&it, IT_SERVICES).digest.hi, 0);
    it_done(&it);
}


static void
has_uid(const it_t *it, const char *ns, const char *name, const char *uid)
{
    uint32_t         entry;
    alloc_test_t     at;
    kube_arena_t     arena;
    kube_snapshot_t  s;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1 << 20);
    assert_int_equal(kube_zone_find(&it->zone, KUBE_RESOURCE_SERVICES,
                                    kube_str(ns), kube_str(name), &entry),
                     KUBE_OK);
    assert_int_equal(kube_zone_read(&it->zone, entry, kube_str(ns),
                                    kube_str(name), &arena, &s), KUBE_OK);
    assert_int_equal(s.service.meta.uid.len, strlen(uid));
    assert_memory_equal(s.service.meta.uid.data, uid, strlen(uid));
    kube_arena_done(&arena);
}


static void
test_indexer_order(void **state)
{
    it_t         it;
    uint64_t     before, after;
    it_object_t  web, old, a;
    char         text[256];

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    old = web;
    IT_UPDATE(&it, &web);
    it_change(&it, &web);
    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), &before);

    /* older, or the same: passed over */
    IT_UPDATE(&it, &old);
    assert_true(kube_indexer_passed_over(it.ix, IT_SERVICES));
    IT_UPDATE(&it, &web);
    assert_false(kube_indexer_passed_over(it.ix, IT_SERVICES));
    assert_int_equal(it_publish(&it), 0);
    IT_READS(&it, "shop", "web", "2");

    /* the end of an earlier one */
    snprintf(old.uid, sizeof(old.uid), "before");
    assert_int_equal(it_apply(&it, KUBE_DELTA_DELETED, &old), KUBE_OK);
    assert_true(kube_indexer_passed_over(it.ix, IT_SERVICES));
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2");

    /* the next deletion has nothing against it */
    a = it_service(&it, "shop", "api");
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &old);
    assert_true(kube_indexer_passed_over(it.ix, IT_SERVICES));
    it_delete(&it, &a);
    assert_false(kube_indexer_passed_over(it.ix, IT_SERVICES));
    it_publish(&it);

    /* 9 is older than 10 */
    it.rv = 99998;
    it_change(&it, &web);
    old = web;
    it_change(&it, &web);
    IT_UPDATE(&it, &old);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "4");

    /* the same content under a newer version changes nothing but that */
    it_read(&it, "shop", "web", text, sizeof(text), &before);
    it_stamp(&it, &web);
    IT_UPDATE(&it, &web);
    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), &after);
    assert_int_equal(before, after);

    /* other content under the same version is no server's, and is taken */
    old = web;
    old.version = 77;
    IT_UPDATE(&it, &old);
    assert_int_equal(it_publish(&it), 1);
    IT_READS(&it, "shop", "web", "77");

    /* a watch that begins before this object was made tells of another one */
    old = web;
    snprintf(old.uid, sizeof(old.uid), "other");
    snprintf(old.rv, sizeof(old.rv), "5");
    old.version = 9;
    IT_UPDATE(&it, &old);
    assert_int_equal(it_publish(&it), 0);
    IT_READS(&it, "shop", "web", "77");

    /* a list may: the server was set back, or has another past */
    IT_LIST(&it, &old);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "9");
    snprintf(old.uid, sizeof(old.uid), "third");
    old.version = 8;
    IT_LIST(&it, &old);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "8");

    /* what looks the same is another one all the same */
    snprintf(old.uid, sizeof(old.uid), "fourth");
    IT_LIST(&it, &old);
    it_publish(&it);
    has_uid(&it, "shop", "web", "fourth");

    /* gone and back before anybody saw it gone */
    a = it_slice(&it, "shop", "a", "web");
    IT_UPDATE(&it, &a);
    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), &before);
    it_delete(&it, &a);
    it_stamp(&it, &a);
    IT_UPDATE(&it, &a);
    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), &after);
    assert_int_equal(before, after);
    IT_READS(&it, "shop", "web", "8 a=1*2");

    it_done(&it);
}


/*
 * What could not be held and then could is told again by a watch that is
 * resumed before both: readers go on with what they have.
 */
static void
test_indexer_refused_before(void **state)
{
    it_t         it;
    it_object_t  web, old, first;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    first = web;
    it_stamp(&it, &web);
    old = web;
    snprintf(old.uid, sizeof(old.uid), "before");
    it_change(&it, &web);
    it_publish(&it);

    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &old), KUBE_OK);
    assert_true(kube_indexer_passed_over(it.ix, IT_SERVICES));
    assert_int_equal(it_publish(&it), 0);
    IT_READS(&it, "shop", "web", "2");
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_SERVICES, NULL, 0), 0);

    /* a list may: the server was set back */
    IT_BEGIN(&it, IT_SERVICES);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &old), KUBE_OK);
    IT_SYNC(&it, IT_SERVICES);
    it_publish(&it);
    assert_false(kube_indexer_passed_over(it.ix, IT_SERVICES));
    IT_READS(&it, "shop", "web", "-");
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_SERVICES, NULL, 0), 1);

    /* nothing is held that a refusal could be older than */
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &old), KUBE_OK);
    assert_false(kube_indexer_passed_over(it.ix, IT_SERVICES));

    it_takeover(&it);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &first), KUBE_OK);
    assert_false(kube_indexer_passed_over(it.ix, IT_SERVICES));

    it_done(&it);
}


/*
 * What is outdated is told again in the version before it: readers go on with
 * what they have, which is marked as it was.
 */
static void
test_indexer_outdated_before(void **state)
{
    it_t         it;
    it_object_t  web, older, old;

    (void) state;

    it_zone(&it, ZONE);
    it.conf.max_outdated_ms = 60000;
    it_run(&it);
    web = it_service(&it, "shop", "web");
    it_change(&it, &web);
    older = web;
    it_publish(&it);
    it_change(&it, &web);
    old = web;
    it_publish(&it);
    it_stamp(&it, &web);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &web), KUBE_OK);
    IT_READS(&it, "shop", "web", "3");

    it_takeover(&it);
    IT_UPDATE(&it, &older);
    assert_true(kube_indexer_passed_over(it.ix, IT_SERVICES));
    assert_int_equal(it_publish(&it), 0);
    IT_READS(&it, "shop", "web", "3");
    assert_int_equal(it_sum(&it, IT_SERVICES).refused, 1);

    /* the very version that it is of is taken: it may be current again */
    IT_UPDATE(&it, &old);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "3");
    assert_int_equal(it_sum(&it, IT_SERVICES).refused, 0);

    /* a list may bring any: the server was set back */
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &web), KUBE_OK);
    IT_BEGIN(&it, IT_SERVICES);
    IT_LIST(&it, &older);
    IT_SYNC(&it, IT_SERVICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2");

    it_done(&it);
}


/*
 * A Service in a first version, which nobody has seen, in a good one, which
 * readers have, and in one that is refused, as web; then another process.
 */
static void
it_name(it_t *it, it_object_t *web, it_object_t *first, it_object_t *good)
{
    it_init(it, ZONE);
    *web = it_service(it, "shop", "web");
    *first = *web;
    it_change(it, web);
    *good = *web;
    it_publish(it);
    it_stamp(it, web);
    assert_int_equal(it_apply(it, KUBE_DELTA_REFUSED, web), KUBE_OK);
    it_publish(it);
    IT_READS(it, "shop", "web", "-");

    it_takeover(it);
}


/*
 * What was held, and then could not be, is told again from before: it stays
 * the name that it has become.
 */
static void
test_indexer_name_before(void **state)
{
    it_t         it;
    it_object_t  web, first, old;

    (void) state;

    it_name(&it, &web, &first, &old);
    IT_UPDATE(&it, &old);
    assert_true(kube_indexer_passed_over(it.ix, IT_SERVICES));
    it_publish(&it);
    IT_READS(&it, "shop", "web", "-");
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_SERVICES, NULL, 0), 1);

    /* a list may bring it: the server was set back */
    IT_BEGIN(&it, IT_SERVICES);
    IT_UPDATE(&it, &old);
    IT_SYNC(&it, IT_SERVICES);
    it_publish(&it);
    assert_false(kube_indexer_passed_over(it.ix, IT_SERVICES));
    IT_READS(&it, "shop", "web", "2");

    it_stamp(&it, &web);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &web), KUBE_OK);
    IT_BEGIN(&it, IT_SERVICES);
    IT_LIST(&it, &old);
    IT_SYNC(&it, IT_SERVICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2");

    it_done(&it);
}


/*
 * A refusal is told again that is older than the name: what was held between
 * the two stays gone.
 */
static void
test_indexer_name_before_name(void **state)
{
    it_t         it;
    it_object_t  web, first, good;

    (void) state;

    it_name(&it, &web, &first, &good);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &first), KUBE_OK);
    IT_UPDATE(&it, &good);
    assert_true(kube_indexer_passed_over(it.ix, IT_SERVICES));
    it_publish(&it);
    IT_READS(&it, "shop", "web", "-");
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_SERVICES, NULL, 0), 1);

    /* a list may bring an older name: the server was set back */
    IT_BEGIN(&it, IT_SERVICES);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &first), KUBE_OK);
    IT_SYNC(&it, IT_SERVICES);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "-");
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_SERVICES, NULL, 0), 1);
    IT_UPDATE(&it, &good);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2");

    it_done(&it);
}


static void
test_indexer_moves(void **state)
{
    it_t         it;
    it_object_t  web, api, a, b;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    api = it_service(&it, "shop", "api");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "api");
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &api);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &b);
    it_publish(&it);

    /* to each other's Service at once: neither can go first */
    snprintf(a.service, sizeof(a.service), "api");
    snprintf(b.service, sizeof(b.service), "web");
    it_change(&it, &a);
    it_change(&it, &b);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 b=2*2");
    IT_READS(&it, "shop", "api", "1 a=2*2");

    /* to a Service that does not exist, and back */
    snprintf(a.service, sizeof(a.service), "none");
    it_change(&it, &a);
    assert_int_equal(kube_zone_validate(it.mem, it.size), KUBE_OK);
    it_publish(&it);
    IT_READS(&it, "shop", "api", "1");
    assert_int_equal(it_sum(&it, IT_SLICES).count, 2);
    snprintf(a.service, sizeof(a.service), "api");
    it_change(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "api", "1 a=4*2");

    /* without a label; deleted while it moves; the same name elsewhere */
    a.service[0] = '\0';
    it_change(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "api", "1");
    snprintf(a.service, sizeof(a.service), "web");
    it_change(&it, &a);
    it_delete(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 b=2*2");
    snprintf(b.service, sizeof(b.service), "api");
    it_change(&it, &b);
    it_delete(&it, &b);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1");
    IT_READS(&it, "shop", "api", "1");
    assert_int_equal(it_sum(&it, IT_SLICES).count, 0);

    a = it_slice(&it, "other", "a", "web");
    IT_UPDATE(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1");

    it_done(&it);
}


static void
test_indexer_refused(void **state)
{
    it_t         it;
    char         reason[64];
    it_object_t  web, a, b, c;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "web");
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &b);
    it_publish(&it);

    /* what cannot be read any more is not served as if it were current */
    it_stamp(&it, &a);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &a), KUBE_OK);
    assert_true(kube_publisher_pending(it.publisher, IT_SLICES));
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 b=1*2");
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_ENDPOINTSLICES, reason,
                                sizeof(reason)), 1);
    assert_string_equal(reason, "malformed");
    assert_true(it.logs[KUBE_EV_REFUSED] != 0);

    /* twice is once; and a good version ends it */
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &a), KUBE_OK);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    it_takeover(&it);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    it_change(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=2*2 b=1*2");
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 0);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 2);

    /* a good version before it was even gone */
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &a), KUBE_OK);
    it_change(&it, &a);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 a=3*2 b=1*2");
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 0);

    /* deleted before it was gone; deleted when it is only a name */
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &a), KUBE_OK);
    it_delete(&it, &a);
    it_publish(&it);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 0);
    IT_READS(&it, "shop", "web", "1 b=1*2");
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &a), KUBE_OK);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    it_delete(&it, &a);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 0);

    /* a Service; its slices stay */
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &web), KUBE_OK);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "-");
    assert_int_equal(it_sum(&it, IT_SERVICES).refused, 1);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);
    it_change(&it, &web);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2 b=1*2");

    /* names are swept by a list as objects are */
    c = it_slice(&it, "shop", "c", "web");
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &c), KUBE_OK);
    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &b);
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &a), KUBE_OK);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);

    it_done(&it);
}


/*
 * A slice is on its way out, but its Service has not been published without it
 * yet; a list of a server that was restored has it as it was: it stays.
 */
static void
test_indexer_stays(void **state)
{
    it_t         it;
    size_t       i;
    it_object_t  web, slice, old;

    static const kube_delta_kind_t  kinds[] = {
        KUBE_DELTA_UPDATED,       /* too large: it is not taken */
        KUBE_DELTA_REFUSED,
        KUBE_DELTA_DELETED
    };

    (void) state;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        it_init(&it, KUBE_ZONE_SIZE_MIN);
        web = it_service(&it, "shop", "web");
        slice = it_slice(&it, "shop", "web-1", "web");
        IT_UPDATE(&it, &web);
        IT_UPDATE(&it, &slice);
        it_publish(&it);
        IT_READS(&it, "shop", "web", "1 web-1=1*2");

        old = slice;
        slice.endpoints = KUBE_SLICE_ENDPOINTS_MAX;
        it_stamp(&it, &slice);
        assert_int_equal(it_apply(&it, kinds[i], &slice), KUBE_OK);

        IT_BEGIN(&it, IT_SLICES);
        IT_LIST(&it, &old);
        IT_SYNC(&it, IT_SLICES);
        it_publish(&it);
        IT_READS(&it, "shop", "web", "1 web-1=1*2");
        assert_int_equal(it_sum(&it, IT_SLICES).count, 1);
        assert_int_equal(it_sum(&it, IT_SLICES).refused, 0);
        it_done(&it);
    }
}


/* Larger than any record of the zone may be: no displacing helps. */
static void
test_indexer_too_large(void **state)
{
    it_t         it;
    char         reason[64];
    it_object_t  web, a, big;

    (void) state;

    it_init(&it, KUBE_ZONE_SIZE_MIN);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "z", "zzz");
    big = it_slice(&it, "shop", "big", "web");
    big.endpoints = KUBE_SLICE_ENDPOINTS_MAX;
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &big);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1");
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_ENDPOINTSLICES, reason,
                                sizeof(reason)), 1);
    assert_string_equal(reason, "too_large");
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);
    assert_int_equal(it_sum(&it, IT_SLICES).refused_unnamed, 0);

    /* it was held while it was smaller */
    big.endpoints = 2;
    it_change(&it, &big);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1 big=2*2");
    big.endpoints = KUBE_SLICE_ENDPOINTS_MAX;
    it_change(&it, &big);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "1");
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 1);
    it_done(&it);
}


/* A second later. */
static bool
slices_have_place(it_t *it)
{
    bool             place;
    kube_room_ask_t  ask;

    it->now_ms += 1000;
    it_publish(it);
    place = it_room_returned(it, IT_SLICES, &ask);

    /* though the zone is as good as empty: a tenant may go on so for ever */
    assert_false(place && ask.urgent);

    return place;
}


/* A list beside the watch holds back neither end of a move, nor a deletion. */
static void
test_events_beside(void **state)
{
    it_t         it;
    it_object_t  o;

    (void) state;

    it_init(&it, ZONE);
    o = it_service(&it, "shop", "web");
    IT_UPDATE(&it, &o);
    o = it_service(&it, "shop", "api");
    IT_UPDATE(&it, &o);
    o = it_slice(&it, "shop", "a", "web");
    o.endpoints = 1;
    IT_UPDATE(&it, &o);
    it_publish(&it);

    IT_MARK(&it, KUBE_DELTA_REFILL_BEGIN, IT_SLICES);
    snprintf(o.service, sizeof(o.service), "api");
    it_change(&it, &o);
    it_publish(&it);
    assert_false(kube_publisher_pending(it.publisher, IT_SLICES));
    IT_READS(&it, "shop", "web", "1");

    it_delete(&it, &o);
    it_publish(&it);
    assert_false(kube_publisher_pending(it.publisher, IT_SLICES));
    IT_READS(&it, "shop", "api", "1");
    IT_MARK(&it, KUBE_DELTA_REFILL_END, IT_SLICES);
    it_done(&it);
}


/*
 * Of a list beside the watch: one that broke off is asked for again, one that
 * is whole is not, unless something lacked a place meanwhile.  What it brings
 * is readable at once where its Service has others, as what an event brings.
 */
static void
slices_come_beside(it_t *it)
{
    it_object_t  a, b, other;

    a = it_slice(it, "shop", "t0", "web");
    b = it_slice(it, "shop", "t1", "web");
    other = it_slice(it, "pay", "o", "api");
    other.endpoints = 1;
    IT_UPDATE(it, &other);
    other = it_service(it, "pay", "api");
    IT_UPDATE(it, &other);
    a.endpoints = 1;
    b.endpoints = 1;
    IT_UPDATE(it, &a);
    it_publish(it);
    assert_int_equal(it_sum(it, IT_SLICES).refused, 1);

    other = it_slice(it, "shop", "s0", "web");
    it_delete(it, &other);
    assert_true(slices_have_place(it));

    IT_MARK(it, KUBE_DELTA_REFILL_BEGIN, IT_SLICES);
    assert_false(slices_have_place(it));
    IT_MARK(it, KUBE_DELTA_REFILL_BROKEN, IT_SLICES);
    assert_true(slices_have_place(it));

    IT_MARK(it, KUBE_DELTA_REFILL_BEGIN, IT_SLICES);
    IT_FILL(it, &a);
    it_publish(it);
    assert_int_equal(it_sum(it, IT_SLICES).count, KUBE_SERVICE_SLICES_MAX + 1);
    assert_false(kube_publisher_pending(it->publisher, IT_SLICES));

    other = it_slice(it, "pay", "o", "api");
    other.version = 7;
    IT_UPDATE(it, &other);
    it_publish(it);
    IT_READS(it, "pay", "api", "1 o=7*2");

    IT_FILL(it, &b);
    IT_MARK(it, KUBE_DELTA_REFILL_END, IT_SLICES);
    it_publish(it);
    assert_false(kube_publisher_pending(it->publisher, IT_SLICES));
    assert_int_equal(it_sum(it, IT_SLICES).count, KUBE_SERVICE_SLICES_MAX + 1);
    assert_int_equal(it_sum(it, IT_SLICES).refused, 1);

    /* b is without a place still; then it goes, and another list is whole */
    other = it_slice(it, "shop", "s3", "web");
    it_delete(it, &other);
    assert_true(slices_have_place(it));
    it_delete(it, &b);
    IT_MARK(it, KUBE_DELTA_REFILL_BEGIN, IT_SLICES);
    IT_MARK(it, KUBE_DELTA_REFILL_END, IT_SLICES);
    assert_false(slices_have_place(it));
    IT_UPDATE(it, &b);
}


/*
 * One publication names a bounded number of slices; what is refused for it
 * comes back by a list as soon as there is a place.
 */
static void
test_indexer_slices_max(void **state)
{
    it_t         it;
    char         name[24], reason[64], text[65536];
    unsigned     i;
    it_object_t  web, a;

    (void) state;

    it_init(&it, 16u << 20);
    web = it_service(&it, "shop", "web");
    IT_UPDATE(&it, &web);

    for (i = 0; i < KUBE_SERVICE_SLICES_MAX + 1; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        a = it_slice(&it, "shop", name, "web");
        a.endpoints = 1;
        IT_UPDATE(&it, &a);
    }

    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), NULL);
    assert_int_equal(it_sum(&it, IT_SLICES).count, KUBE_SERVICE_SLICES_MAX);
    assert_int_equal(it_refused(&it, KUBE_RESOURCE_ENDPOINTSLICES, reason,
                                sizeof(reason)), 1);
    assert_string_equal(reason, "too_many_slices");

    /* those that are in may change */
    a = it_slice(&it, "shop", "s0", "web");
    a.version = 9;
    IT_UPDATE(&it, &a);
    it_publish(&it);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);

    /* one goes: a list is asked for, once, also by the next process */
    assert_false(slices_have_place(&it));
    a = it_slice(&it, "shop", "s1", "web");
    it_delete(&it, &a);
    it_publish(&it);
    it_takeover(&it);
    it_publish(&it);
    assert_true(slices_have_place(&it));
    assert_false(slices_have_place(&it));

    IT_BEGIN(&it, IT_SLICES);

    for (i = 0; i < KUBE_SERVICE_SLICES_MAX + 1; i++) {
        if (i != 1) {
            snprintf(name, sizeof(name), "s%u", i);
            a = it_slice(&it, "shop", name, "web");
            a.endpoints = 1;
            IT_LIST(&it, &a);
        }
    }

    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    assert_int_equal(it_sum(&it, IT_SLICES).count, KUBE_SERVICE_SLICES_MAX);
    assert_int_equal(it_sum(&it, IT_SLICES).refused, 0);
    assert_false(slices_have_place(&it));
    slices_come_beside(&it);
    a = it_slice(&it, "shop", "s2", "web");
    it_delete(&it, &a);
    it_publish(&it);
    assert_false(slices_have_place(&it));

    /* slices that no Service can have are not counted together */
    for (i = 0; i < KUBE_SERVICE_SLICES_MAX + 1; i++) {
        snprintf(name, sizeof(name), "o%u", i);
        a = it_slice(&it, "shop", name, "");
        a.endpoints = 1;
        IT_UPDATE(&it, &a);
    }

    assert_int_equal(it_sum(&it, IT_SLICES).refused, 0);
    it_done(&it);
}


static void
test_indexer_takeover(void **state)
{
    it_t              it;
    uint64_t          before, after;
    it_object_t       web, a, b, orphan;
    kube_scope_sum_t  sum;
    char              text[256];

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "web");
    orphan = it_slice(&it, "shop", "o", "later");
    IT_UPDATE(&it, &web);
    IT_UPDATE(&it, &a);
    IT_UPDATE(&it, &b);
    IT_UPDATE(&it, &orphan);
    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), &before);
    sum = it_sum(&it, IT_SLICES);
    assert_int_equal(sum.count, 3);

    /* with something staged that nobody saw */
    it_change(&it, &a);
    it_takeover(&it);
    assert_int_equal(it_publish(&it), 0);
    it_read(&it, "shop", "web", text, sizeof(text), &after);
    assert_string_equal(text, "1 a=1*2 b=1*2");
    assert_int_equal(before, after);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 3);
    assert_true(it_sum(&it, IT_SLICES).digest.lo == sum.digest.lo
                && it_sum(&it, IT_SLICES).digest.hi == sum.digest.hi);
    assert_false(kube_publisher_pending(it.publisher, IT_SLICES));

    /* the orphan waits for its Service in the new process as well */
    web = it_service(&it, "shop", "later");
    IT_UPDATE(&it, &web);
    it_delete(&it, &b);
    it_publish(&it);
    IT_READS(&it, "shop", "later", "1 o=1*2");
    IT_READS(&it, "shop", "web", "1 a=1*2");

    /* load may be called again, and again */
    assert_int_equal(kube_indexer_load(it.ix, it.now_ms), KUBE_OK);
    assert_int_equal(kube_indexer_load(it.ix, it.now_ms), KUBE_OK);
    assert_int_equal(it_sum(&it, IT_SLICES).count, 2);
    it_done(&it);
}


static bool
from_state_file(const it_t *it, const char *name)
{
    bool              flag;
    uint32_t          entry;
    alloc_test_t      at;
    kube_arena_t      arena;
    kube_snapshot_t   s;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1 << 20);
    assert_int_equal(kube_zone_find(&it->zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), kube_str(name),
                                    &entry), KUBE_OK);
    assert_int_equal(kube_zone_read(&it->zone, entry, KUBE_STR("shop"),
                                    kube_str(name), &arena, &s), KUBE_OK);
    flag = s.from_state_file;
    kube_arena_done(&arena);

    return flag;
}


static void
test_indexer_state_file(void **state)
{
    it_t            it;
    uint64_t        before, after;
    char            text[256];
    it_object_t     web, api, a;
    kube_record_t  *record;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    api = it_service(&it, "shop", "api");
    a = it_slice(&it, "shop", "a", "web");

    record = it_record(&web);
    assert_int_equal(kube_indexer_put_state(it.ix, record, IT_SERVICES, 1),
                     KUBE_OK);
    free(record);
    record = it_record(&api);
    assert_int_equal(kube_indexer_put_state(it.ix, record, IT_SERVICES, 1),
                     KUBE_OK);
    free(record);
    record = it_record(&a);
    assert_int_equal(kube_indexer_put_state(it.ix, record, IT_SLICES, 1),
                     KUBE_OK);
    free(record);
    it_publish(&it);

    it_read(&it, "shop", "web", text, sizeof(text), &before);
    assert_string_equal(text, "1 a=1*2");
    assert_true(from_state_file(&it, "web"));

    /* a list confirms it: the same revision, no more a guess */
    IT_BEGIN(&it, IT_SERVICES);
    IT_LIST(&it, &web);
    IT_SYNC(&it, IT_SERVICES);
    IT_BEGIN(&it, IT_SLICES);
    IT_LIST(&it, &a);
    IT_SYNC(&it, IT_SLICES);
    it_publish(&it);
    it_read(&it, "shop", "web", text, sizeof(text), &after);
    assert_int_equal(before, after);
    assert_false(from_state_file(&it, "web"));
    IT_READS(&it, "shop", "api", "-");

    /* what is held already is not replaced by a guess */
    it_change(&it, &web);
    it_publish(&it);
    web.version = 50;
    record = it_record(&web);
    assert_int_equal(kube_indexer_put_state(it.ix, record, IT_SERVICES, 1),
                     KUBE_OK);
    free(record);
    it_publish(&it);
    IT_READS(&it, "shop", "web", "2 a=1*2");
    assert_false(from_state_file(&it, "web"));

    /* nor does the version of a guess keep it from being deleted */
    api = it_service(&it, "shop", "api");
    record = it_record(&api);
    assert_int_equal(kube_indexer_put_state(it.ix, record, IT_SERVICES, 1),
                     KUBE_OK);
    free(record);
    it_publish(&it);
    assert_true(from_state_file(&it, "api"));
    snprintf(api.uid, sizeof(api.uid), "before");
    snprintf(api.rv, sizeof(api.rv), "1");
    assert_int_equal(it_apply(&it, KUBE_DELTA_DELETED, &api), KUBE_OK);
    it_publish(&it);
    IT_READS(&it, "shop", "api", "-");

    /* or refused */
    api = it_service(&it, "shop", "api");
    record = it_record(&api);
    assert_int_equal(kube_indexer_put_state(it.ix, record, IT_SERVICES, 1),
                     KUBE_OK);
    free(record);
    it_publish(&it);
    assert_true(from_state_file(&it, "api"));
    snprintf(api.rv, sizeof(api.rv), "1");
    assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &api), KUBE_OK);
    it_publish(&it);
    IT_READS(&it, "shop", "api", "-");

    it_done(&it);
}


/* Whatever no caller should send is survived. */
static void
test_indexer_odd(void **state)
{
    it_t              it;
    it_object_t       web;
    kube_delta_t      d;
    kube_room_ask_t   ask;
    kube_scope_sum_t  sum;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");

    memset(&d, 0, sizeof(kube_delta_t));
    d.kind = KUBE_DELTA_UPDATED;
    assert_int_equal(kube_indexer_apply(it.ix, &d, 1), KUBE_OK);
    d.scope = KUBE_SCOPES_MAX;
    assert_int_equal(kube_indexer_apply(it.ix, &d, 1), KUBE_OK);
    d.scope = 7;
    d.kind = KUBE_DELTA_SYNC;
    assert_int_equal(kube_indexer_apply(it.ix, &d, 1), KUBE_OK);
    d.scope = 0;
    d.kind = KUBE_DELTA_DELETED;
    assert_int_equal(kube_indexer_apply(it.ix, &d, 1), KUBE_OK);
    assert_false(kube_publisher_pending(it.publisher, KUBE_SCOPES_MAX));
    kube_publisher_sum(it.publisher, KUBE_SCOPES_MAX, &sum);
    assert_int_equal(sum.count, 0);
    assert_false(it_room_returned(&it, KUBE_SCOPES_MAX, &ask));
    assert_int_equal(kube_indexer_scope(it.ix, KUBE_SCOPES_MAX,
                                        KUBE_RESOURCE_SERVICES,
                                        KUBE_STR_NULL), KUBE_INVALID);
    it_delete(&it, &web);
    assert_int_equal(it_publish(&it), 0);
    it_done(&it);
}


typedef struct {
    char    text[1024];
    size_t  len;
} changes_t;


static void
changes_add(void *ctx, kube_change_t change, const kube_record_t *record)
{
    changes_t         *c = ctx;
    kube_record_id_t   id;

    assert_int_equal(kube_record_validate(record, record->size), KUBE_OK);
    assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
    c->len += (size_t) snprintf(c->text + c->len, sizeof(c->text) - c->len,
                                "%c%.*s ", "+~-"[change],
                                (int) id.meta.name.len, id.meta.name.data);
}


#define CHANGES(c, expected)                                                  \
    do {                                                                      \
        assert_string_equal((c)->text, expected);                             \
        (c)->len = 0;                                                         \
        (c)->text[0] = '\0';                                                  \
    } while (0)


static void
test_indexer_changes(void **state)
{
    it_t         it;
    changes_t    c;
    it_object_t  web, a, b;

    (void) state;

    memset(&c, 0, sizeof(changes_t));
    it_zone(&it, ZONE);
    it.conf.change = changes_add;
    it.conf.change_ctx = &c;
    assert_int_equal(it_start(&it), KUBE_OK);
    assert_int_equal(it_scopes(&it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it.ix, 1), KUBE_OK);

    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "none");
    IT_UPDATE(&it, &a);
    CHANGES(&c, "+a ");
    IT_UPDATE(&it, &web);
    CHANGES(&c, "");
    it_publish(&it);
    CHANGES(&c, "+web ");
    IT_UPDATE(&it, &b);
    CHANGES(&c, "+b ");

    /* a slice's change is not its Service's */
    it_change(&it, &a);
    it_publish(&it);
    CHANGES(&c, "~a ");
    it_change(&it, &web);
    it_publish(&it);
    CHANGES(&c, "~web ");

    /* no more than a version */
    it_stamp(&it, &a);
    IT_UPDATE(&it, &a);
    it_publish(&it);
    CHANGES(&c, "");

    it_takeover(&it);
    CHANGES(&c, "");
    it_delete(&it, &a);
    it_publish(&it);
    CHANGES(&c, "-a ");
    it_delete(&it, &web);
    it_delete(&it, &b);
    it_publish(&it);
    CHANGES(&c, "-b -web ");
    it_done(&it);
}


static void
test_indexer_latency(void **state)
{
    it_t              it;
    unsigned          i;
    kube_delta_t      d;
    kube_histogram_t  h;
    it_object_t       web, a;
    kube_record_t    *record;

    static const struct {
        int64_t   trigger_ms;
        unsigned  observed;
        unsigned  ignored;
    } cases[] = {
        { 98700, 2, 0 },
        { 98699, 2, 1 },
        { 100001, 2, 2 },
        { 1, 2, 3 },
        { 100000, 3, 3 }
    };

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    IT_BEGIN(&it, IT_SERVICES);
    IT_LIST(&it, &web);
    IT_SYNC(&it, IT_SERVICES);
    it_publish(&it);
    kube_zone_histogram_read(&it.zone, KUBE_HISTOGRAM_PUBLISH_LATENCY,
                             KUBE_RESOURCE_SERVICES, &h);
    assert_int_equal(h.count, 0);

    record = it_record(&a);
    memset(&d, 0, sizeof(kube_delta_t));
    d.kind = KUBE_DELTA_UPDATED;
    d.scope = IT_SLICES;
    d.record = record;
    d.read_ms = 990;
    d.trigger_ms = 5000;
    assert_int_equal(kube_indexer_apply(it.ix, &d, 995), KUBE_OK);
    assert_int_equal(kube_publisher_run(it.publisher, 10, 1000, 5250), 1);
    free(record);

    kube_zone_histogram_read(&it.zone, KUBE_HISTOGRAM_PUBLISH_LATENCY,
                             KUBE_RESOURCE_ENDPOINTSLICES, &h);
    assert_int_equal(h.count, 1);
    assert_int_equal(h.sum, 10 * 1000);
    kube_zone_histogram_read(&it.zone, KUBE_HISTOGRAM_PROGRAMMING_LATENCY,
                             KUBE_RESOURCE_ENDPOINTSLICES, &h);
    assert_int_equal(h.count, 1);
    assert_int_equal(h.sum, 250 * 1000);

    /* who may write a slice may write any time: the watch opened at 900 */

    kube_zone_scope_set(&it.zone, IT_SLICES, KUBE_COUNTER_GAUGE_WATCH_OPEN,
                        900);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(a.rv, sizeof(a.rv), "9000%u", i);
        a.version++;
        record = it_record(&a);
        d.record = record;
        d.trigger_ms = cases[i].trigger_ms;
        assert_int_equal(kube_indexer_apply(it.ix, &d, 1200), KUBE_OK);
        assert_int_equal(kube_publisher_run(it.publisher, 10, 1200, 100000),
                         1);
        free(record);

        kube_zone_histogram_read(&it.zone, KUBE_HISTOGRAM_PROGRAMMING_LATENCY,
                                 KUBE_RESOURCE_ENDPOINTSLICES, &h);
        assert_int_equal(h.count, cases[i].observed);
        assert_int_equal(kube_zone_scope_counter(&it.zone, IT_SLICES,
                                               KUBE_COUNTER_TRIGGERS_IGNORED),
                         cases[i].ignored);
    }

    it_done(&it);
}


/* An event of the slice, read at 990, whose trigger is of trigger_ms. */
static void
latency_update(it_t *it, const it_object_t *slice, int64_t trigger_ms)
{
    kube_delta_t    d;
    kube_record_t  *record;

    record = it_record(slice);
    memset(&d, 0, sizeof(kube_delta_t));
    d.kind = KUBE_DELTA_UPDATED;
    d.scope = IT_SLICES;
    d.record = record;
    d.read_ms = 990;
    d.trigger_ms = trigger_ms;
    assert_int_equal(kube_indexer_apply(it->ix, &d, it->now_ms), KUBE_OK);
    free(record);
}


/* Of whichever resource. */
static void
latency_is(const it_t *it, kube_histogram_id_t id, unsigned count,
    unsigned sum_ms)
{
    uint64_t          n, sum;
    kube_resource_t   r;
    kube_histogram_t  h;

    n = 0;
    sum = 0;

    for (r = 0; r < KUBE_RESOURCES_ROUTED; r++) {
        kube_zone_histogram_read(&it->zone, id, r, &h);
        n += h.count;
        sum += h.sum;
    }

    assert_int_equal(n, count);
    assert_int_equal(sum, sum_ms * 1000);
}


/*
 * Of the triggers that wait for one publication the oldest counts, whichever
 * came first; one of a Service that ended before is nobody's, nor that of the
 * Service that is made anew.  A deletion is a change as any other.
 */
static void
test_indexer_latency_of_several(void **state)
{
    it_t         it;
    it_object_t  web, a, b;

    (void) state;

    it_init(&it, ZONE);
    web = it_service(&it, "shop", "web");
    a = it_slice(&it, "shop", "a", "web");
    b = it_slice(&it, "shop", "b", "web");
    IT_BEGIN(&it, IT_SERVICES);
    IT_LIST(&it, &web);
    IT_SYNC(&it, IT_SERVICES);
    it_publish(&it);

    latency_update(&it, &a, 5000);
    latency_update(&it, &b, 4500);
    assert_int_equal(kube_publisher_run(it.publisher, 10, 1000, 5250), 1);
    latency_is(&it, KUBE_HISTOGRAM_PROGRAMMING_LATENCY, 1, 750);
    latency_is(&it, KUBE_HISTOGRAM_PUBLISH_LATENCY, 1, 10);

    a.version++;
    it_stamp(&it, &a);
    latency_update(&it, &a, 5300);
    b.version++;
    it_stamp(&it, &b);
    latency_update(&it, &b, 5400);
    assert_int_equal(kube_publisher_run(it.publisher, 10, 1000, 5500), 1);
    latency_is(&it, KUBE_HISTOGRAM_PROGRAMMING_LATENCY, 2, 950);
    latency_is(&it, KUBE_HISTOGRAM_PUBLISH_LATENCY, 2, 20);

    it_stamp(&it, &b);
    assert_int_equal(it_apply_read(&it, KUBE_DELTA_DELETED, &b, 970), KUBE_OK);
    assert_int_equal(kube_publisher_run(it.publisher, 10, 1000, 5500), 1);
    latency_is(&it, KUBE_HISTOGRAM_PUBLISH_LATENCY, 3, 50);
    IT_READS(&it, "shop", "web", "1 a=2*2");

    a.version++;
    it_stamp(&it, &a);
    latency_update(&it, &a, 5600);
    it_delete(&it, &web);
    assert_int_equal(kube_publisher_run(it.publisher, 10, 1000, 5700), 1);
    it_stamp(&it, &web);
    IT_UPDATE(&it, &web);
    assert_int_equal(kube_publisher_run(it.publisher, 10, 1000, 5800), 1);
    IT_READS(&it, "shop", "web", "1 a=3*2");
    latency_is(&it, KUBE_HISTOGRAM_PROGRAMMING_LATENCY, 2, 950);

    it_done(&it);
}


/*
 * A slice that was refused as too large, or is outdated for that: a successor
 * who allows more asks for a list, as does who follows before one has ended;
 * and nobody else does.
 */
static void
test_too_large_under_a_predecessor(void **state)
{
    it_t             it;
    bool             larger;
    unsigned         i, follows;
    it_object_t      web, a;
    kube_room_ask_t  ask;

    (void) state;

    for (i = 0; i < 8; i++) {
        larger = i & 1;
        it_init(&it, ZONE);
        it.conf.max_outdated_ms = (i & 2) ? 600000 : 0;
        it.conf.object_max = 4096;
        it.why = (i & 4) ? "malformed" : "too_large";
        it_takeover(&it);
        web = it_service(&it, "shop", "web");
        a = it_slice(&it, "shop", "a", "web");
        IT_UPDATE(&it, &web);
        IT_UPDATE(&it, &a);
        it_publish(&it);
        it_stamp(&it, &a);
        assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &a), KUBE_OK);
        it_publish(&it);
        assert_int_equal(it_sum(&it, IT_SLICES).refused, 1);

        it.conf.object_max += larger;

        for (follows = 0; follows < 3; follows++) {
            it_takeover(&it);
            it.now_ms += 1000;
            assert_int_equal(it_room_returned(&it, IT_SLICES, &ask),
                             larger && !(i & 4));
            assert_false(it_room_returned(&it, IT_SERVICES, &ask));

            /* which is no want of room */
            assert_false(it_sum(&it, IT_SLICES).lacks_room);
        }

        IT_BEGIN(&it, IT_SLICES);

        if (i & 2) {
            IT_LIST(&it, &a);

        } else {
            assert_int_equal(it_apply(&it, KUBE_DELTA_REFUSED, &a), KUBE_OK);
        }

        IT_SYNC(&it, IT_SLICES);
        it_publish(&it);
        assert_int_equal(it_sum(&it, IT_SLICES).refused, !(i & 2));

        for (follows = 0; follows < 2; follows++) {
            it.now_ms += 1000;
            assert_false(it_room_returned(&it, IT_SLICES, &ask));
            it_takeover(&it);
        }

        it_done(&it);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_indexer_events),
        cmocka_unit_test(test_events_beside),
        cmocka_unit_test(test_indexer_order),
        cmocka_unit_test(test_indexer_refused_before),
        cmocka_unit_test(test_indexer_outdated_before),
        cmocka_unit_test(test_indexer_name_before),
        cmocka_unit_test(test_indexer_name_before_name),
        cmocka_unit_test(test_indexer_moves),
        cmocka_unit_test(test_indexer_refused),
        cmocka_unit_test(test_indexer_stays),
        cmocka_unit_test(test_indexer_too_large),
        cmocka_unit_test(test_indexer_slices_max),
        cmocka_unit_test(test_indexer_takeover),
        cmocka_unit_test(test_indexer_state_file),
        cmocka_unit_test(test_indexer_odd),
        cmocka_unit_test(test_indexer_changes),
        cmocka_unit_test(test_too_large_under_a_predecessor),
        cmocka_unit_test(test_indexer_latency),
        cmocka_unit_test(test_indexer_latency_of_several),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

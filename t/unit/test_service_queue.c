/*
 * test_service_queue - which Services wait, and which a list holds back.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_service_queue.h"


#define SERVICES  0     /* scopes */
#define SLICES    1

typedef struct {
    alloc_test_t           at;
    kube_service_index_t   index;
    kube_service_queue_t   queue;
    kube_group_t          *a;          /* their Services are entries 1, 2 */
    kube_group_t          *b;
    kube_member_t         *slice;      /* of a */
} bed_t;


static kube_group_t *
bed_group(bed_t *bed, const char *name, uint32_t entry)
{
    kube_group_t  *group;

    group = kube_service_index_get(&bed->index, KUBE_STR("shop"),
                                   kube_str(name));
    assert_non_null(group);
    group->scope[KUBE_RESOURCE_SERVICES] = SERVICES;
    group->scope[KUBE_RESOURCE_ENDPOINTSLICES] = SLICES;
    bed->index.members[entry].resource = KUBE_RESOURCE_SERVICES;
    kube_service_index_link(&bed->index, group, entry);
    kube_member_set(&bed->index.members[entry], KUBE_LIFE_STAGED);

    return group;
}


static void
bed_init(bed_t *bed)
{
    alloc_test_init(&bed->at);
    assert_int_equal(kube_service_index_init(&bed->index, &bed->at.alloc,
                                             (kube_seed_t) { 1, 2 }, 10),
                     KUBE_OK);
    assert_int_equal(kube_service_queue_init(&bed->queue, &bed->at.alloc,
                                             &bed->index), KUBE_OK);
    bed->a = bed_group(bed, "a", 1);
    bed->b = bed_group(bed, "b", 2);
    bed->slice = &bed->index.members[3];
    bed->slice->resource = KUBE_RESOURCE_ENDPOINTSLICES;
    bed->slice->scope = SLICES;
    kube_service_index_link(&bed->index, bed->a, 3);
    kube_member_set(bed->slice, KUBE_LIFE_STAGED);
}


static void
bed_done(bed_t *bed)
{
    kube_service_queue_done(&bed->queue);
    kube_service_index_done(&bed->index, bed->index.entries_n);
    alloc_test_assert_no_leak(&bed->at);
}


static void
bed_expect(bed_t *bed, const kube_group_t *group, uint64_t read_ms)
{
    uint64_t  ms;

    assert_ptr_equal(kube_service_queue_next(&bed->queue, &ms), group);

    if (group != NULL) {
        assert_int_equal(ms, read_ms);
        assert_int_equal(group->waits, 0);
        assert_false(group->held);
    }
}


#define PENDING(services, slices)                                             \
    do {                                                                      \
        assert_int_equal(kube_service_queue_pending(&bed.queue, SERVICES),    \
                         services);                                           \
        assert_int_equal(kube_service_queue_pending(&bed.queue, SLICES),      \
                         slices);                                             \
    } while (0)


static void
test_queue_waits(void **state)
{
    bed_t  bed;

    (void) state;

    bed_init(&bed);
    PENDING(0, 0);
    bed_expect(&bed, NULL, 0);

    /* in the order in which they came, each once, at its earliest time */
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_SERVICES, 30);
    PENDING(1, 0);
    kube_service_queue_add(&bed.queue, bed.b, KUBE_RESOURCE_ENDPOINTSLICES,
                           20);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES,
                           10);
    PENDING(1, 1);
    bed_expect(&bed, bed.a, 10);
    PENDING(0, 1);
    bed_expect(&bed, bed.b, 20);
    PENDING(0, 0);
    bed_expect(&bed, NULL, 0);

    /* a group without a Service waits for nothing */
    kube_service_index_unlink(&bed.index, 2);
    kube_service_queue_add(&bed.queue, bed.b, KUBE_RESOURCE_ENDPOINTSLICES, 1);
    PENDING(0, 0);

    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_SERVICES, 1);
    kube_service_queue_remove(&bed.queue, bed.a);
    PENDING(0, 0);
    bed_expect(&bed, NULL, 0);

    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_SERVICES, 1);
    kube_service_queue_clear(&bed.queue);
    bed_expect(&bed, NULL, 0);
    bed_done(&bed);
}


/*
 * A list beside a watch holds what it has changed itself, of Services that are
 * not served yet; what an event changes meanwhile goes its way, of the same
 * Service too.
 */
static void
test_queue_refill(void **state)
{
    bed_t  bed;

    (void) state;

    bed_init(&bed);

    /* the end of one that never began */
    kube_service_queue_refill_end(&bed.queue, SLICES);

    kube_service_queue_refill_begin(&bed.queue, SLICES);
    assert_true(kube_service_queue_listing(&bed.queue, SLICES));
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, 5);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 5);
    bed_expect(&bed, bed.a, 5);

    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 6);
    bed_expect(&bed, NULL, 0);
    kube_service_queue_refill_end(&bed.queue, SLICES);
    assert_false(kube_service_queue_listing(&bed.queue, SLICES));
    bed_expect(&bed, bed.a, 6);

    /* what the list has brought does not delay an event that comes behind it */
    kube_service_queue_refill_begin(&bed.queue, SLICES);
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES,
                           KUBE_NEVER);
    bed_expect(&bed, NULL, 0);
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, 7);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 7);
    bed_expect(&bed, bed.a, 7);
    PENDING(0, 0);
    kube_service_queue_refill_end(&bed.queue, SLICES);

    /* who is served by others is served by it at once, and has its events */
    bed.a->shown = 1;
    kube_service_queue_refill_begin(&bed.queue, SLICES);
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 8);
    bed_expect(&bed, bed.a, 8);
    PENDING(0, 0);
    kube_service_queue_refill_end(&bed.queue, SLICES);

    /* a list takes its place: the end of what broke off is not the list's */
    kube_service_queue_refill_begin(&bed.queue, SLICES);
    kube_service_queue_list_begin(&bed.queue, SLICES);
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, 7);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 7);
    kube_service_queue_refill_end(&bed.queue, SLICES);
    bed_expect(&bed, NULL, 0);
    kube_service_queue_list_end(&bed.queue, SLICES);
    bed_expect(&bed, bed.a, 7);

    /* beside a list that was not taken as whole: it holds until another one */
    kube_service_queue_list_begin(&bed.queue, SLICES);
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, 9);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 9);
    kube_service_queue_refill_begin(&bed.queue, SLICES);
    kube_service_queue_refill_end(&bed.queue, SLICES);
    bed_expect(&bed, NULL, 0);
    kube_service_queue_list_end(&bed.queue, SLICES);
    bed_expect(&bed, bed.a, 9);

    bed_done(&bed);
}


/* It waits in the scope that it has by then, and in no other afterwards. */
static void
test_queue_waits_in(void **state)
{
    bed_t  bed;

    (void) state;
    bed_init(&bed);
    bed.a->scope[KUBE_RESOURCE_ENDPOINTSLICES] = KUBE_SCOPES_MAX;
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 1);
    PENDING(0, 0);

    bed.a->scope[KUBE_RESOURCE_ENDPOINTSLICES] = SLICES;
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 1);
    PENDING(0, 1);
    bed_expect(&bed, bed.a, 1);
    PENDING(0, 0);

    bed.a->scope[KUBE_RESOURCE_ENDPOINTSLICES] = KUBE_SCOPES_MAX;
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 1);
    bed.a->scope[KUBE_RESOURCE_ENDPOINTSLICES] = SLICES;
    bed_expect(&bed, bed.a, 1);
    PENDING(0, 0);
    bed_done(&bed);
}


static void
test_queue_held(void **state)
{
    bed_t  bed;

    (void) state;

    bed_init(&bed);
    assert_false(kube_service_queue_listing(&bed.queue, SLICES));

    /* outside of a list nothing is held */
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 1);
    bed_expect(&bed, bed.a, 1);

    /* only what the list has changed is */
    kube_service_queue_list_begin(&bed.queue, SLICES);
    assert_true(kube_service_queue_listing(&bed.queue, SLICES));
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 5);
    kube_service_queue_add(&bed.queue, bed.b, KUBE_RESOURCE_ENDPOINTSLICES, 6);
    bed_expect(&bed, bed.b, 6);
    bed_expect(&bed, NULL, 0);
    PENDING(0, 1);

    /* what else changes waits with it; a list of others ends nothing */
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_SERVICES, 4);
    bed_expect(&bed, NULL, 0);
    kube_service_queue_list_begin(&bed.queue, SERVICES);
    kube_service_queue_list_end(&bed.queue, SERVICES);
    bed_expect(&bed, NULL, 0);
    PENDING(1, 1);

    /* a list that begins anew goes on holding what the first has changed */
    kube_service_queue_list_begin(&bed.queue, SLICES);
    bed_expect(&bed, NULL, 0);
    kube_service_queue_list_end(&bed.queue, SLICES);
    assert_false(kube_service_queue_listing(&bed.queue, SLICES));
    bed_expect(&bed, bed.a, 4);
    PENDING(0, 0);

    /* the next list has changed nothing yet */
    kube_service_queue_list_begin(&bed.queue, SLICES);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_SERVICES, 7);
    bed_expect(&bed, bed.a, 7);
    bed_done(&bed);
}


/*
 * A Service is held with another one by the lists that both have scopes of, and
 * not at all once it is deleted.
 */
static void
test_queue_held_with(void **state)
{
    bed_t  bed;

    (void) state;
    bed_init(&bed);
    bed.b->scope[KUBE_RESOURCE_ENDPOINTSLICES] = KUBE_SCOPES_MAX;
    assert_false(kube_service_queue_hold_with(&bed.queue, bed.b, bed.a));

    kube_service_queue_list_begin(&bed.queue, SLICES);
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    assert_false(kube_service_queue_hold_with(&bed.queue, bed.b, bed.a));
    kube_service_queue_add(&bed.queue, bed.b, KUBE_RESOURCE_SERVICES, 5);
    bed_expect(&bed, bed.b, 5);

    bed.b->scope[KUBE_RESOURCE_ENDPOINTSLICES] = SLICES;
    assert_true(kube_service_queue_hold_with(&bed.queue, bed.b, bed.a));
    kube_service_queue_add(&bed.queue, bed.b, KUBE_RESOURCE_SERVICES, 6);
    bed_expect(&bed, NULL, 0);

    kube_member_set(&bed.index.members[2], KUBE_LIFE_DELETING);
    assert_false(kube_service_queue_hold_with(&bed.queue, bed.b, bed.a));
    bed_done(&bed);
}


/* Deleted while it is held, and held while it is deleted. */
static void
test_queue_deleting(void **state)
{
    bed_t  bed;

    (void) state;

    bed_init(&bed);
    kube_service_queue_list_begin(&bed.queue, SLICES);
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 5);
    bed_expect(&bed, NULL, 0);
    assert_true(bed.a->held);

    kube_member_set(&bed.index.members[1], KUBE_LIFE_DELETING);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_SERVICES, 6);
    PENDING(1, 1);
    bed_expect(&bed, bed.a, 6);
    PENDING(0, 0);

    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES, 8);
    bed_expect(&bed, bed.a, 8);

    /* one that is removed while it is held leaves nothing behind */
    kube_service_queue_hold(&bed.queue, bed.b, bed.slice, KUBE_NEVER);
    kube_service_queue_add(&bed.queue, bed.b, KUBE_RESOURCE_ENDPOINTSLICES, 9);
    bed_expect(&bed, NULL, 0);
    kube_service_queue_remove(&bed.queue, bed.b);
    PENDING(0, 0);
    kube_service_queue_list_end(&bed.queue, SLICES);
    bed_expect(&bed, NULL, 0);
    bed_done(&bed);
}


static kube_rc_t
queue_oom(kube_alloc_t *alloc, void *ctx)
{
    kube_rc_t              rc;
    kube_service_index_t   index;
    kube_service_queue_t   queue;

    (void) ctx;

    memset(&index, 0, sizeof(kube_service_index_t));
    index.entries_n = 10;
    rc = kube_service_queue_init(&queue, alloc, &index);
    kube_service_queue_done(&queue);

    return rc;
}


static void
test_queue_oom(void **state)
{
    (void) state;

    ALLOC_TEST_EACH(queue_oom, NULL);
}


/* Counted once while it waits, with the time of its first change. */

static void
test_queue_metrics(void **state)
{
    bed_t     bed;
    uint64_t  read_ms, added;

    (void) state;
    bed_init(&bed);

    bed.queue.now_ms = 100;
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_ENDPOINTSLICES,
                           90);
    bed.queue.now_ms = 150;
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_SERVICES, 140);
    kube_service_queue_add(&bed.queue, bed.b, KUBE_RESOURCE_SERVICES, 140);

    assert_int_equal(kube_service_queue_depth(&bed.queue, &added), 2);
    assert_int_equal(added, 2);
    assert_int_equal(bed.a->added_ms, 100);
    assert_int_equal(bed.b->added_ms, 150);

    assert_ptr_equal(kube_service_queue_next(&bed.queue, &read_ms), bed.a);
    kube_service_queue_add(&bed.queue, bed.a, KUBE_RESOURCE_SERVICES, 150);
    assert_int_equal(bed.a->added_ms, 150);
    assert_int_equal(kube_service_queue_depth(&bed.queue, &added), 2);
    assert_int_equal(added, 1);

    /* one that a list holds waits, too, and is not added anew after it */

    kube_service_queue_list_begin(&bed.queue, SLICES);
    kube_service_queue_hold(&bed.queue, bed.a, bed.slice, KUBE_NEVER);
    bed.queue.now_ms = 200;
    assert_ptr_equal(kube_service_queue_next(&bed.queue, &read_ms), bed.b);
    assert_null(kube_service_queue_next(&bed.queue, &read_ms));
    assert_int_equal(kube_service_queue_depth(&bed.queue, &added), 1);
    kube_service_queue_list_end(&bed.queue, SLICES);
    assert_ptr_equal(kube_service_queue_next(&bed.queue, &read_ms), bed.a);
    assert_int_equal(bed.a->added_ms, 150);
    assert_int_equal(kube_service_queue_depth(&bed.queue, &added), 0);
    assert_int_equal(added, 0);

    bed_done(&bed);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_queue_waits),
        cmocka_unit_test(test_queue_waits_in),
        cmocka_unit_test(test_queue_held),
        cmocka_unit_test(test_queue_held_with),
        cmocka_unit_test(test_queue_refill),
        cmocka_unit_test(test_queue_deleting),
        cmocka_unit_test(test_queue_metrics),
        cmocka_unit_test(test_queue_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

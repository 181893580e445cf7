/*
 * test_heap - the first node is the first by order, whatever is inserted,
 * removed and changed.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_hash.h"
#include "kube_heap.h"


#define THINGS  64

typedef struct {
    uint64_t          order;
    kube_heap_node_t  node;
} thing_t;


/* The order is the caller's: *ctx turns it round. */
static bool
thing_before(void *ctx, kube_heap_node_t *a, kube_heap_node_t *b)
{
    const thing_t  *x, *y;

    x = kube_heap_data(a, thing_t, node);
    y = kube_heap_data(b, thing_t, node);

    return *(bool *) ctx ? x->order > y->order : x->order < y->order;
}


static void
check_first(const kube_heap_t *heap, const thing_t *things, bool down)
{
    size_t    i, n;
    uint64_t  first;
    thing_t  *top;

    n = 0;
    first = down ? 0 : UINT64_MAX;

    for (i = 0; i < THINGS; i++) {
        if (things[i].node.at != 0) {
            assert_ptr_equal(heap->nodes[things[i].node.at - 1],
                             &things[i].node);
            n++;

            if (down ? things[i].order > first : things[i].order < first) {
                first = things[i].order;
            }
        }
    }

    assert_int_equal(heap->n, n);

    if (n == 0) {
        assert_null(kube_heap_first(heap));
        return;
    }

    top = kube_heap_data(kube_heap_first(heap), thing_t, node);
    assert_int_equal(top->order, first);
}


static void
heap_random_run(bool down)
{
    unsigned       step;
    thing_t        things[THINGS], *thing;
    kube_heap_t    heap;
    alloc_test_t   at;
    kube_random_t  random;

    alloc_test_init(&at);
    kube_random_init(&random, 2);
    memset(things, 0, sizeof(things));
    kube_heap_init(&heap, &at.alloc, thing_before, &down);

    for (step = 0; step < 50000; step++) {
        thing = &things[kube_random_range(&random, 0, THINGS - 1)];

        if (thing->node.at == 0 && kube_random_range(&random, 0, 3) != 0) {
            thing->order = kube_random_range(&random, 0, 99);
            assert_int_equal(kube_heap_insert(&heap, &thing->node), KUBE_OK);

        } else if (kube_random_range(&random, 0, 2) == 0) {
            /* also of one that is in no heap */
            thing->order = kube_random_range(&random, 0, 99);
            kube_heap_moved(&heap, &thing->node);

        } else {
            kube_heap_remove(&heap, &thing->node);
            assert_int_equal(thing->node.at, 0);
        }

        check_first(&heap, things, down);
    }

    kube_heap_done(&heap);
    assert_null(kube_heap_first(&heap));
    alloc_test_assert_no_leak(&at);
}


static void
test_heap_random(void **state)
{
    (void) state;

    heap_random_run(false);
    heap_random_run(true);
}


static void
heap_oom(alloc_test_t *at, void *ctx)
{
    bool         down;
    unsigned     i;
    kube_rc_t    rc;
    thing_t     *things = ctx;
    kube_heap_t  heap;

    down = false;
    memset(things, 0, THINGS * sizeof(thing_t));
    kube_heap_init(&heap, &at->alloc, thing_before, &down);

    for (i = 0; i < THINGS; i++) {
        things[i].order = THINGS - i;
        rc = ALLOC_TEST_AGAIN(at, kube_heap_insert(&heap, &things[i].node));

        /* refused: in no heap, and those that are stay in order */
        assert_int_equal(things[i].node.at != 0, rc == KUBE_OK);
        check_first(&heap, things, down);
    }

    kube_heap_done(&heap);
}


static void
test_heap_oom(void **state)
{
    thing_t  things[THINGS];

    (void) state;

    ALLOC_TEST_RUN(heap_oom, things);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_heap_random),
        cmocka_unit_test(test_heap_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

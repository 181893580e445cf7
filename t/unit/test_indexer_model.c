/*
 * test_indexer_model - random histories against a model: after each batch of
 * deltas readers must find the cluster as it is, sums must equal what is
 * computed anew, and what was not touched must keep its revision.
 *
 * KUBE_TEST_SEED and KUBE_TEST_ROUNDS replay or lengthen it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "indexer_model.h"


static unsigned
random_pick(void *ctx, unsigned n)
{
    return (unsigned) kube_random_range(ctx, 0, n - 1);
}


static uint64_t
env_number(const char *name, uint64_t otherwise)
{
    const char  *value;

    value = getenv(name);

    return (value != NULL) ? strtoull(value, NULL, 10) : otherwise;
}


static void
test_model(void **state)
{
    model_t                *m;
    uint64_t                seed, seeds, step, steps;
    kube_random_t           random;
    kube_publisher_conf_t   conf;

    (void) state;

    m = malloc(sizeof(model_t));
    assert_non_null(m);

    seed = env_number("KUBE_TEST_SEED", 1);
    seeds = env_number("KUBE_TEST_ROUNDS", 20);
    steps = 400;

    for ( /* void */ ; seeds != 0; seeds--, seed++) {
        print_message("seed %llu\n", (unsigned long long) seed);
        kube_random_init(&random, seed);
        memset(&conf, 0, sizeof(kube_publisher_conf_t));
        model_init(m, 1u << 20, &conf, random_pick, &random);

        for (step = 0; step < steps; step++) {
            model_step(m);
            model_check(m);
        }

        assert_true(m->untouched > steps);
        it_done(&m->it);
    }

    free(m);
}


/* Each allocation fails once; what was refused is sent again, and taken. */
static void
model_oom(alloc_test_t *at, void *ctx)
{
    unsigned      i, n;
    kube_rc_t     rc;
    it_t         *it = ctx;
    it_object_t   objects[6];

    it_zone(it, 1u << 18);

    /* the fixture's own allocator must be the failing one */
    it->at = *at;
    it->at.alloc.ctx = &it->at;

    rc = it_start(it);

    if (rc == KUBE_OK) {
        rc = it_scopes(it);
    }

    if (rc == KUBE_OK) {
        rc = kube_indexer_load(it->ix, 1);
    }

    if (rc != KUBE_OK) {
        alloc_test_assert_rc(&it->at, rc);
        goto done;
    }

    objects[0] = it_slice(it, "shop", "a", "web");
    objects[1] = it_service(it, "shop", "web");
    objects[2] = it_service(it, "shop", "api");
    objects[3] = it_slice(it, "shop", "b", "api");
    objects[4] = it_slice(it, "shop", "a", "api");
    snprintf(objects[4].uid, sizeof(objects[4].uid), "%s", objects[0].uid);
    objects[5] = it_slice(it, "shop", "b", "api");

    for (i = 0; i < 6; i++) {

        for (n = 0; n < 2; n++) {
            rc = it_apply(it, i == 5 ? KUBE_DELTA_REFUSED
                                     : KUBE_DELTA_UPDATED, &objects[i]);
            alloc_test_assert_rc(&it->at, rc);

            if (rc == KUBE_OK) {
                break;
            }
        }

        if (rc != KUBE_OK) {
            goto done;
        }

        it_publish(it);
    }

    IT_READS(it, "shop", "web", "1");
    IT_READS(it, "shop", "api", "1 a=1*2");
    assert_int_equal(it_sum(it, IT_SLICES).refused, 1);

    /* all of it once more, as a process that starts */
    rc = kube_indexer_load(it->ix, 2);
    alloc_test_assert_rc(&it->at, rc);

    if (rc == KUBE_NOMEM && !it->at.fail_from) {
        assert_int_equal(kube_indexer_load(it->ix, 2), KUBE_OK);
        rc = KUBE_OK;
    }

    if (rc == KUBE_OK) {
        assert_int_equal(it_sum(it, IT_SLICES).count, 1);
        assert_int_equal(it_sum(it, IT_SERVICES).count, 2);
    }

done:

    it_stop(it);
    free(it->mem);

    *at = it->at;
    at->alloc.ctx = at;
}


static void
test_model_oom(void **state)
{
    it_t  *it;

    (void) state;

    it = malloc(sizeof(it_t));
    assert_non_null(it);
    ALLOC_TEST_RUN(model_oom, it);
    free(it);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_model_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

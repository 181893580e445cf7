/*
 * test_sim - the short form of the simulator (t/sim): some seeds, each the
 * same twice, and some of their allocations that fail.
 *
 * Seeds are fixed: nothing here fails by chance.  KUBE_PROOF=1: a hundred runs
 * with failing allocations.  "make sim" has the long form.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../sim/sim.h"


static sim_totals_t  sim_totals;


static uint64_t
run(uint64_t seed, unsigned rounds, unsigned steps, uint64_t fail_at)
{
    char        why[512];
    uint64_t    trace;
    sim_conf_t  conf;

    conf = (sim_conf_t) {
        .seed = seed,
        .rounds = rounds,
        .steps = steps,
        .faults = SIM_FAULTS_ALL,
        .fail_at = fail_at,
        .totals = &sim_totals
    };

    if (!sim_run(&conf, why, &trace)) {
        fail_msg("seed %llu: %s; to repeat it: make sim SEED=%llu "
                 "SIM_ARGS=\"--rounds %u --steps %u --fail-at %llu --verbose\"",
                 (unsigned long long) seed, why, (unsigned long long) seed,
                 rounds, steps, (unsigned long long) fail_at);
    }

    return trace;
}


static void
test_seeds(void **state)
{
    uint64_t  seed;

    (void) state;

    for (seed = 1; seed <= 32; seed++) {
        (void) run(seed, 2, 250, 0);
    }

    /* something was done, and nothing came that cannot */
    assert_true(sim_totals.changes > 1000);
    assert_true(sim_totals.kills > 10);
    assert_true(sim_totals.restores > 10);
    assert_int_equal(sim_check_table(&sim_totals, 0, false), 0);
}


static void
test_same_twice(void **state)
{
    uint64_t  seed;

    (void) state;

    for (seed = 3; seed <= 6; seed++) {
        assert_true(run(seed, 1, 250, 0) == run(seed, 1, 250, 0));
    }
}


/* State unchanged or a clean close, and no leak. */
static void
test_out_of_memory(void **state)
{
    uint64_t  seed, k, calls, stride, seeds;

    (void) state;

    seeds = (getenv("KUBE_PROOF") != NULL) ? 100 : 2;

    for (seed = 1; seed <= seeds; seed++) {
        calls = sim_totals.allocations;
        (void) run(seed, 1, 60, 0);
        calls = sim_totals.allocations - calls;
        stride = (getenv("KUBE_PROOF") != NULL) ? 1 : 1 + calls / 40;

        for (k = 1; k <= calls; k += stride) {
            (void) run(seed, 1, 60, k);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_same_twice),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

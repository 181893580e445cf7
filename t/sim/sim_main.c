/*
 * sim_main - the simulator as a program: many seeds, or one with its trace.
 *
 *     sim [--seed N] [--seeds N] [--rounds N] [--steps N] [--faults MASK]
 *         [--events N] [--least N] [--memory[=N]] [--fail-at N] [--shrink]
 *         [--verbose]
 *
 * events: seeds are run until there were so many steps.  least: each legal
 * transition of the reflector has to be taken so often.  memory: each seed is
 * run once for each of its allocations, which fails.  A run that fails is told
 * with the command that repeats it; shrink looks for a smaller one first.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim.h"


typedef struct {
    sim_conf_t  conf;
    uint64_t    seeds;
    uint64_t    events;
    uint64_t    stride;      /* --memory: of the allocations */
    uint32_t    least;
    bool        memory;
    bool        shrink;
} main_t;


static bool
main_run(const sim_conf_t *conf, char why[512])
{
    uint64_t  trace;

    return sim_run(conf, why, &trace);
}


/* Fewer faults and rounds that still fail. */
static void
main_shrink(sim_conf_t *conf, char why[512])
{
    unsigned       fault;
    sim_conf_t     less;
    sim_totals_t  *totals;

    totals = conf->totals;
    conf->totals = calloc(1, sizeof(sim_totals_t));

    if (conf->totals == NULL) {
        abort();
    }

    for (fault = 0; fault < SIM_FAULTS; fault++) {
        less = *conf;
        less.faults &= ~(1u << fault);

        if (less.faults != conf->faults && !main_run(&less, why)) {
            *conf = less;
        }
    }

    while (conf->rounds > 1) {
        less = *conf;
        less.rounds--;

        if (main_run(&less, why)) {
            break;
        }

        *conf = less;
    }

    while (conf->steps > 1) {
        less = *conf;
        less.steps -= (less.steps + 9) / 10;

        if (less.steps == 0 || main_run(&less, why)) {
            break;
        }

        *conf = less;
    }

    (void) main_run(conf, why);

    free(conf->totals);
    conf->totals = totals;
}


static void
main_tell(const main_t *m, const sim_conf_t *failed, char why[512])
{
    unsigned    fault;
    sim_conf_t  conf;

    conf = *failed;

    if (m->shrink) {
        main_shrink(&conf, why);
    }

    printf("sim: seed %llu FAILED: %s\n", (unsigned long long) conf.seed, why);
    printf("sim: faults that may be:");

    for (fault = 0; fault < SIM_FAULTS; fault++) {
        if (conf.faults & (1u << fault)) {
            printf(" %s", sim_fault_text((sim_fault_t) fault));
        }
    }

    printf("\nsim: to repeat it: make sim SEED=%llu SIM_ARGS=\"--rounds %u "
           "--steps %u --faults 0x%x", (unsigned long long) conf.seed,
           conf.rounds, conf.steps, conf.faults);

    if (conf.fail_at != 0) {
        printf(" --fail-at %llu", (unsigned long long) conf.fail_at);
    }

    printf(" --verbose\"\n");
}


/* One seed; with --memory once more for each allocation that it makes. */
static bool
main_seed(const main_t *m, uint64_t seed)
{
    char        why[512];
    uint64_t    k, calls;
    sim_conf_t  conf;

    conf = m->conf;
    conf.seed = seed;
    calls = conf.totals->allocations;

    if (!main_run(&conf, why)) {
        main_tell(m, &conf, why);
        return false;
    }

    if (!m->memory) {
        return true;
    }

    calls = conf.totals->allocations - calls;

    for (k = 1; k <= calls; k += m->stride) {
        conf.fail_at = k;

        if (!main_run(&conf, why)) {
            main_tell(m, &conf, why);
            return false;
        }
    }

    return true;
}


static void
main_print(const sim_totals_t *t)
{
    unsigned  fault;

    printf("sim: %llu runs, %llu steps, %llu changes, %llu requests, %llu "
           "kills, %llu crashes, %llu stops, %llu backups\n",
           (unsigned long long) t->runs, (unsigned long long) t->steps,
           (unsigned long long) t->changes, (unsigned long long) t->requests,
           (unsigned long long) t->kills, (unsigned long long) t->crashes,
           (unsigned long long) t->stops, (unsigned long long) t->restores);
    printf("sim: %llu versions and %llu reads checked; %llu allocations, %llu "
           "runs with one that failed\n", (unsigned long long) t->checks,
           (unsigned long long) t->reads, (unsigned long long) t->allocations,
           (unsigned long long) t->failures);
    printf("sim: equal %llu ms after the last fault at the latest, %llu ms "
           "without a backup and a death, %llu requests of a scope in ten "
           "seconds at most\n", (unsigned long long) t->settle_ms,
           (unsigned long long) t->plain_ms,
           (unsigned long long) t->requests_max);
    printf("sim: faults:");

    for (fault = 0; fault < SIM_FAULTS; fault++) {
        printf(" %s %llu", sim_fault_text((sim_fault_t) fault),
               (unsigned long long) t->fired[fault]);
    }

    printf("\n");
}


static uint64_t
main_number(const char *text)
{
    char      *end;
    uint64_t   n;

    n = strtoull(text, &end, 0);

    if (*end != '\0' || end == text) {
        fprintf(stderr, "sim: \"%s\" is no number\n", text);
        exit(2);
    }

    return n;
}


static void
main_options(main_t *m, int argc, char **argv)
{
    int  option;

    static const struct option  options[] = {
        { "seed", required_argument, NULL, 's' },
        { "seeds", required_argument, NULL, 'n' },
        { "rounds", required_argument, NULL, 'r' },
        { "steps", required_argument, NULL, 't' },
        { "faults", required_argument, NULL, 'f' },
        { "events", required_argument, NULL, 'e' },
        { "least", required_argument, NULL, 'l' },
        { "fail-at", required_argument, NULL, 'k' },
        { "memory", optional_argument, NULL, 'm' },
        { "shrink", no_argument, NULL, 'z' },
        { "verbose", no_argument, NULL, 'v' },
        { NULL, 0, NULL, 0 }
    };

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {

        switch (option) {

        case 's':
            m->conf.seed = main_number(optarg);
            break;

        case 'n':
            m->seeds = main_number(optarg);
            break;

        case 'r':
            m->conf.rounds = (unsigned) main_number(optarg);
            break;

        case 't':
            m->conf.steps = (unsigned) main_number(optarg);
            break;

        case 'f':
            m->conf.faults = (uint32_t) main_number(optarg);
            break;

        case 'e':
            m->events = main_number(optarg);
            break;

        case 'l':
            m->least = (uint32_t) main_number(optarg);
            break;

        case 'k':
            m->conf.fail_at = main_number(optarg);
            break;

        case 'm':
            m->memory = true;
            m->stride = (optarg != NULL) ? main_number(optarg) : 1;
            break;

        case 'z':
            m->shrink = true;
            break;

        case 'v':
            m->conf.verbose = true;
            break;

        default:
            exit(2);
        }
    }
}


int
main(int argc, char **argv)
{
    main_t        m;
    uint64_t      n;
    unsigned      wrong;
    sim_totals_t  totals;

    memset(&totals, 0, sizeof(totals));

    m = (main_t) {
        .conf = { .seed = 1, .rounds = 4, .steps = 500,
                  .faults = SIM_FAULTS_ALL, .totals = &totals },
        .seeds = 1,
        .stride = 1
    };

    main_options(&m, argc, argv);

    for (n = 0; m.events ? totals.steps < m.events : n < m.seeds; n++) {
        if (!main_seed(&m, m.conf.seed + n)) {
            return 1;
        }
    }

    main_print(&totals);
    wrong = sim_check_table(&totals, m.least, m.least != 0);

    printf("sim: seeds %llu to %llu: %s\n", (unsigned long long) m.conf.seed,
           (unsigned long long) (m.conf.seed + n - 1),
           wrong ? "FAILED" : "passed");

    return wrong != 0;
}

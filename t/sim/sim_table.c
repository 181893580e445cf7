/*
 * sim_table - the transitions that all runs have taken, beside the reflector's
 * table.
 *
 * The step machine is built into this file, for its table.  For t/sim only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "kube_reflector_step.c"
#include "sim.h"


/*
 * Legal, but not fed by a reflector over an API server.  They are for other
 * lister-watchers, or for nobody; test_reflector_step.c has them.
 */
static const struct {
    kube_reflector_state_t  state;
    kube_input_kind_t       input;
} table_others[] = {
    /* a list that ends well is whole, or broken: kube_api_lister_watcher.c */
    { KUBE_REFLECTOR_LISTING, KUBE_INPUT_CLOSED },
    /* what ends before its head is no HTTP, or failed */
    { KUBE_REFLECTOR_OPENING, KUBE_INPUT_CLOSED },
    /* kube_reflector_result() passes over those that are not the end */
    { KUBE_REFLECTOR_STREAMING, KUBE_INPUT_BOOKMARK },
    /* the informer that stops a reflector asks nothing of it any more */
    { KUBE_REFLECTOR_STOPPED, KUBE_INPUT_RELIST },
    { KUBE_REFLECTOR_STOPPED, KUBE_INPUT_STOP }
};

static const char *const  table_states[KUBE_REFLECTOR_STATES] = {
    "IDLE", "LISTING", "STREAMING", "OPENING", "WATCHING", "BACKOFF",
    "STOPPED"
};

static const char *const  table_inputs[KUBE_INPUTS] = {
    "START", "SENT", "OPENED", "META", "ITEM", "PAGE", "LIST_DONE", "EVENT",
    "BOOKMARK", "ALIVE", "UNREADABLE", "STATUS", "PROTOCOL", "CLOSED",
    "FAILED", "TIMER", "SUSPECT", "REPLACED", "HEALED", "RELIST", "TURN",
    "STOP"
};


static bool
table_is_other(unsigned state, unsigned input)
{
    size_t  i;

    for (i = 0; i < sizeof(table_others) / sizeof(table_others[0]); i++) {

        if (table_others[i].state == state && table_others[i].input == input) {
            return true;
        }
    }

    return false;
}


/* An input that cannot come says so, and changes nothing. */
static bool
table_refuses(unsigned state, unsigned input)
{
    kube_action_t              action;
    kube_reflector_machine_t   m, before;

    kube_reflector_machine_init(&m, &(kube_reflector_conf_t) { .seed = 1 });
    m.state = (kube_reflector_state_t) state;
    before = m;

    action = kube_reflector_input(&m, &(kube_input_t) {
                                      .kind = (kube_input_kind_t) input
                                  }, 1);

    return action.illegal && action.kind == KUBE_ACTION_NONE
           && memcmp(&m, &before, sizeof(m)) == 0;
}


unsigned
sim_check_table(const sim_totals_t *totals, uint32_t least, bool print)
{
    unsigned  state, input, legal, taken, wrong;
    uint32_t  n;

    legal = 0;
    taken = 0;
    wrong = 0;

    for (state = 0; state < KUBE_REFLECTOR_STATES; state++) {
        for (input = 0; input < KUBE_INPUTS; input++) {

            n = totals->cells[state][input];

            if (steps[state][input] == NULL || table_is_other(state, input)) {

                if (n != 0 || (steps[state][input] == NULL
                               && !table_refuses(state, input)))
                {
                    wrong++;
                    printf("sim: %s %s cannot come, and did %u times\n",
                           table_states[state], table_inputs[input], n);
                }

                continue;
            }

            legal++;
            taken += (n >= least);

            if (n < least) {
                wrong++;

                if (print) {
                    printf("sim: %s %s: %u times\n", table_states[state],
                           table_inputs[input], n);
                }
            }
        }
    }

    if (print) {
        printf("sim: %u of %u transitions of the reflector %u times or more\n",
               taken, legal, least);
    }

    return wrong;
}

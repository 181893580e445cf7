/*
 * dawdle - an informer that is slower than its API server, as on a machine that
 * has much else to do: each turn takes longer while a state file is loading.
 * Loaded before nginx's modules (LD_PRELOAD) by test_state_file.py, so that
 * nothing of it is in what we build.
 *
 *   KUBE_DAWDLE_FILE=PATH    while there is such a file, much longer: what a
 *                            test does meanwhile finds it loading; and it takes
 *                            longer to leave than a state file may at the end
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <unistd.h>

#include "preload.h"

#include "kube_informer.h"


/* Of a turn, in us; a server on loopback has answered by then. */
#define DAWDLE_TURN  50000
#define DAWDLE_LONG  20    /* such turns */
#define DAWDLE_END   11    /* more than NGX_KUBE_FINISH */


static char  dawdle_file[256];


__attribute__((constructor))
static void
dawdle_init(void)
{
    preload_env(dawdle_file, sizeof(dawdle_file), "KUBE_DAWDLE_FILE");
}


static int
dawdle_much(void)
{
    return dawdle_file[0] != '\0' && access(dawdle_file, F_OK) == 0;
}


static void
dawdle(int turns)
{
    while (turns--) {
        (void) usleep(DAWDLE_TURN);
    }
}


kube_rc_t
kube_informer_process(kube_informer_t *informer, uint64_t now_ms,
    int64_t now_unix_ms)
{
    if (PRELOAD_NEXT(kube_informer_loading)(informer)) {
        dawdle(dawdle_much() ? DAWDLE_LONG : 1);
    }

    return PRELOAD_NEXT(kube_informer_process)(informer, now_ms, now_unix_ms);
}


void
kube_informer_destroy(kube_informer_t *informer)
{
    if (dawdle_much()) {
        dawdle(DAWDLE_END);
    }

    PRELOAD_NEXT(kube_informer_destroy)(informer);
}

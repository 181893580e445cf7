/*
 * dawdle - an informer that is slower than its API server, as on a machine that
 * has much else to do: each turn takes longer while a state file is loading.
 * Loaded before nginx's modules (LD_PRELOAD) by test_state_file.py, so that
 * nothing of it is in what we build.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <unistd.h>

#include "kube_informer.h"


/* Of a turn, in us; a server on loopback has answered by then. */
#define DAWDLE_TURN  50000

/* The function of that name behind us: the module's. */
#define DAWDLE_NEXT(name)  ((__typeof__(&name)) dlsym(RTLD_NEXT, #name))


kube_rc_t
kube_informer_process(kube_informer_t *informer, uint64_t now_ms,
    int64_t now_unix_ms)
{
    if (DAWDLE_NEXT(kube_informer_loading)(informer)) {
        (void) usleep(DAWDLE_TURN);
    }

    return DAWDLE_NEXT(kube_informer_process)(informer, now_ms, now_unix_ms);
}

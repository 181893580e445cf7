/*
 * kube_cli_clock - the clocks, in milliseconds, for the command line tool.
 *
 * It keeps nothing.  Called by the other files of src/cli alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdlib.h>

#include "kube_cli_clock.h"


uint64_t
kube_cli_clock_ms(clockid_t id)
{
    struct timespec  ts;

    if (clock_gettime(id, &ts) != 0) {
        abort();
    }

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


uint64_t
kube_cli_now_ms(void)
{
    return kube_cli_clock_ms(CLOCK_MONOTONIC);
}

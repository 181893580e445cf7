/*
 * kube_cli_clock - the clocks, in milliseconds, for the command line tool.
 *
 * What src/ is told of time comes from its caller; this is where that caller
 * gets it from.  Called by the other files of src/cli alone.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLI_CLOCK_H
#define KUBE_CLI_CLOCK_H


#include <stdint.h>
#include <time.h>


/* Milliseconds of that clock.  One that the system lacks ends the process. */
uint64_t kube_cli_clock_ms(clockid_t id);

/* Of CLOCK_MONOTONIC: what src/ calls now_ms. */
uint64_t kube_cli_now_ms(void);


#endif /* KUBE_CLI_CLOCK_H */

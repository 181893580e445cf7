/*
 * kube_cli_verify - kube-informer --verify: what is held, compared with a list
 * of the API server at the same resourceVersion.
 *
 * client-go has its like in tools/cache's consistency detector, which compares
 * an informer's store with a LIST (resourceVersionMatch=Exact).  Here digests
 * are compared first, objects only where these differ.
 *
 * A gateway goes on meanwhile: what can be of another version than the list is
 * no difference, and is looked at again, a bounded number of times.  Blocks;
 * for the command line tool only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLI_VERIFY_H
#define KUBE_CLI_VERIFY_H


#include "kube_cli_options.h"


/*
 * Looks at a scope that cannot be compared: the gateway has moved on between
 * two answers, its version is too old for the server, or too new.
 */
#define KUBE_CLI_VERIFY_TRIES     10
#define KUBE_CLI_VERIFY_PAUSE_MS  500

/* Without --timeout. */
#define KUBE_CLI_VERIFY_MS        60000

/* Differences of a scope that are printed; the others are counted. */
#define KUBE_CLI_VERIFY_SHOWN     1000


/*
 * Prints a JSON line a scope, a difference and a refused name on stdout, and
 * what cannot be compared on stderr.  Returns the exit code: 0 equal, but for
 * what the gateway says it refused; 1 different; 2 not compared, wholly or in
 * part, and no difference found.
 */
int kube_cli_verify(const kube_cli_options_t *options,
    const kube_config_t *config, const kube_alloc_t *alloc,
    kube_log_sink_t sink)  KUBE_MUST_CHECK;


#endif /* KUBE_CLI_VERIFY_H */

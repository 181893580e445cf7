/*
 * kube_cli_pods - what kube-informer --pods shows beside Services and
 * endpoints: shared informers of Pods, metadata only, in a store on the heap.
 *
 * No zone holds a Pod, and nothing is routed by one.  For the command line
 * tool only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CLI_PODS_H
#define KUBE_CLI_PODS_H


#include "kube_cli_options.h"
#include "kube_informer.h"


typedef struct kube_cli_pods_s  kube_cli_pods_t;

/*
 * Makes an informer for each namespace of the options, over the source that
 * the other informer has; process() starts them.  alloc and options are
 * borrowed.  NULL: out of memory.
 */
kube_cli_pods_t *kube_cli_pods_create(const kube_alloc_t *alloc,
    const kube_cli_options_t *options, const kube_informer_conf_t *conf)
    KUBE_MUST_CHECK;
void kube_cli_pods_destroy(kube_cli_pods_t *pods);

/* Writes the lines that are due.  False: a Pod could not be shown. */
bool kube_cli_pods_process(kube_cli_pods_t *pods, uint64_t now_ms);
uint64_t kube_cli_pods_deadline(const kube_cli_pods_t *pods);

/* All were listed, and are shown. */
bool kube_cli_pods_synced(const kube_cli_pods_t *pods);

/*
 * How many namespaces were not listed, and Pods refused; says which on stderr,
 * unless quiet.  *refused_only becomes false where another reason than that
 * the server refuses it keeps a namespace from being listed.
 */
unsigned kube_cli_pods_missing(const kube_cli_pods_t *pods, bool quiet,
    bool *refused_only);


#endif /* KUBE_CLI_PODS_H */

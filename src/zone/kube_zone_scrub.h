/*
 * kube_zone_scrub - the writer compares what readers see with what it knows, a
 * few entries at a time.
 *
 * What another process has changed is otherwise found when the writer or a
 * reader comes across it, which may be never.  It repairs no entry: the writer
 * is disturbed then (kube_zone_recover.h), and a take-over does.
 *
 * For the process that holds the guard.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_SCRUB_H
#define KUBE_ZONE_SCRUB_H


#include "kube_zone.h"


/*
 * Compares the next n numbers of entries, scopes and the server, round and
 * round: the head, the chain, the record with its checksum, the refs.  Words
 * that the writer can simply write anew are.
 */
void kube_zone_writer_scrub(kube_zone_writer_t *writer, uint32_t n);


#endif /* KUBE_ZONE_SCRUB_H */

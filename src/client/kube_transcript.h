/*
 * kube_transcript - requests and answers as a text: recorded from one kube_io_t
 * and replayed as another, byte for byte.
 *
 * What a lister-watcher of the API server did on somebody's cluster can be seen
 * again in a test or a debugger: kube_api_lister_watcher over a transcript's io
 * is a source without a network.  A transcript holds paths, codes, content
 * types, bodies and times; it never holds a header of a request, so no token,
 * nor what the transport says of a failure.  It does hold the objects.
 *
 *   nginx-kube-informer transcript 1
 *   request  N MS PATH            N counts from 1, MS is the owner's clock
 *   response N MS CODE RETRY TYPE
 *   bytes    N MS LEN             LEN bytes and a newline follow
 *   done     N MS RC              0, or -kube_rc_t
 *   cancel   N MS                 by the owner; nothing of N follows
 *
 * It takes no decision and opens no file.  kube-informer and tests call it;
 * one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_TRANSCRIPT_H
#define KUBE_TRANSCRIPT_H


#include "kube_client.h"


typedef struct kube_recorder_s    kube_recorder_t;
typedef struct kube_transcript_s  kube_transcript_t;

/* Given each piece of the text, in order. */
typedef void (*kube_recorder_write_pt)(void *ctx, const char *data,
    size_t len);

/* io is borrowed. */
kube_recorder_t *kube_recorder_create(const kube_alloc_t *alloc,
    const kube_io_t *io, kube_recorder_write_pt write, void *write_ctx)
    KUBE_MUST_CHECK;

/* After its last exchange has ended. */
void kube_recorder_destroy(kube_recorder_t *recorder);

/* What the lister-watchers are given in place of the io that is recorded. */
kube_io_t kube_recorder_io(kube_recorder_t *recorder);


/*
 * Checks the text, which is borrowed.  at_once: an answer comes as soon as it
 * may; else as long after its request as it did.  NULL: error says what is
 * wrong, its offset is that of a byte.
 *
 * A request is answered as the first one of its path that was not replayed
 * yet, timeoutSeconds aside, which is drawn; any other ends with KUBE_CLOSED.
 */
kube_transcript_t *kube_transcript_create(const kube_alloc_t *alloc,
    kube_str_t text, bool at_once, kube_error_t *error)  KUBE_MUST_CHECK;

/* Ends every exchange without a callback. */
void kube_transcript_destroy(kube_transcript_t *transcript);

kube_io_t kube_transcript_io(kube_transcript_t *transcript);

/*
 * Tells what stands first in the text of all that is due: one entry a call, so
 * that what the owner makes of it does not depend on how fast it is.  Handlers
 * run inside this call only.
 */
void kube_transcript_process(kube_transcript_t *transcript, uint64_t now_ms);

/* When to process(); 0: at once; KUBE_NEVER: nothing is left to be told. */
uint64_t kube_transcript_deadline(const kube_transcript_t *transcript);


#endif /* KUBE_TRANSCRIPT_H */

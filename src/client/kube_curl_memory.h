/*
 * kube_curl_memory - libcurl's memory, zeroed before it is given back.
 *
 * A request's head holds the token, and libcurl copies it: into the buffer of
 * the head, into that of the upload, and into a larger one as either grows.  It
 * zeroes none of them.  These functions do, so that a token or a key that was
 * rotated is gone with the last request that used it.  They count nothing and
 * keep no state.  kube_transport.c calls this, once for each transport; so does
 * whoever parses a URL in a process of several threads, before that.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_CURL_MEMORY_H
#define KUBE_CURL_MEMORY_H


#include "kube_base.h"


/*
 * In the place of curl_global_init(), as often as kube_curl_memory_done().  It
 * may be called by several threads at once, which libcurl sees to from 7.84 on,
 * and what a thread calls after its own reads nothing that another's writes.
 * Blocks are malloc()'s own, without a header: a program beside libkube may
 * give free() what libcurl gave it, as it always could.  Where somebody else
 * initialised libcurl before, its memory stays as it is, and nothing of it is
 * zeroed.
 * False: libcurl cannot be initialised.
 */
bool kube_curl_memory_init(void)  KUBE_MUST_CHECK;
void kube_curl_memory_done(void);

/* What libcurl gets; p may be NULL where free() and realloc() allow it. */
void *kube_curl_memory_realloc(void *p, size_t size);
void kube_curl_memory_free(void *p);


#endif /* KUBE_CURL_MEMORY_H */

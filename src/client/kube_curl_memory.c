/*
 * kube_curl_memory - libcurl's memory, zeroed before it is given back.
 *
 * The size of a block is what malloc_usable_size() says: at least what was
 * asked for, and all of it may be written.  A block that grows is copied and
 * zeroed here, for realloc() would leave the old one as it was.
 *
 * It counts nothing.  kube_transport and kube_lib give it to libcurl.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "kube_curl_memory.h"


void
kube_curl_memory_free(void *p)
{
    if (p != NULL) {
        explicit_bzero(p, malloc_usable_size(p));
        free(p);
    }
}


void *
kube_curl_memory_realloc(void *p, size_t size)
{
    void    *grown;
    size_t   held;

    held = (p != NULL) ? malloc_usable_size(p) : 0;

    if (p != NULL && size <= held) {
        return p;
    }

    grown = malloc(size);

    if (grown != NULL && p != NULL) {
        memcpy(grown, p, held);
        kube_curl_memory_free(p);
    }

    return grown;
}


bool
kube_curl_memory_init(void)
{
    return curl_global_init_mem(CURL_GLOBAL_DEFAULT, malloc,
                                kube_curl_memory_free,
                                kube_curl_memory_realloc, strdup, calloc)
           == CURLE_OK;
}


void
kube_curl_memory_done(void)
{
    curl_global_cleanup();
}

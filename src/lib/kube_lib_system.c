/*
 * kube_lib_system - what the library takes from the system: memory, time,
 * random numbers; and texts.
 *
 * Nothing else in src/lib calls malloc() or asks for the time.  For the other
 * files of src/lib.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "kube_lib.h"
#include "kube_version.h"


/* What a program sees by number is what it is inside. */
static_assert((int) KUBE_E_OK == (int) KUBE_OK
              && (int) KUBE_E_NOMEM == (int) KUBE_NOMEM
              && (int) KUBE_E_TOO_LARGE == (int) KUBE_TOO_LARGE
              && (int) KUBE_E_INVALID == (int) KUBE_INVALID
              && (int) KUBE_E_NOT_FOUND == (int) KUBE_NOT_FOUND
              && (int) KUBE_E_IO == (int) KUBE_IO
              && (int) KUBE_E_CLOSED == (int) KUBE_CLOSED
              && (int) KUBE_E_TIMEOUT == (int) KUBE_TIMEOUT,
              "results");
static_assert(KUBE_FOREVER == KUBE_NEVER, "times");
static_assert((int) KUBE_L_ERROR == (int) KUBE_LOG_ERROR
              && (int) KUBE_L_WARN == (int) KUBE_LOG_WARN
              && (int) KUBE_L_NOTICE == (int) KUBE_LOG_NOTICE
              && (int) KUBE_L_INFO == (int) KUBE_LOG_INFO
              && (int) KUBE_L_DEBUG == (int) KUBE_LOG_DEBUG,
              "levels");


static void *
system_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
system_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


static void *
system_pages(void *ctx, size_t size)
{
    void  *p;

    (void) ctx;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE,
             MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    return (p != MAP_FAILED) ? p : NULL;
}


static void
system_pages_free(void *ctx, void *p, size_t size)
{
    (void) ctx;

    (void) munmap(p, size);
}


static uint64_t
system_now(void *ctx)
{
    (void) ctx;

    return kube_now_ms();
}


kube_lib_env_t
kube_lib_system(void)
{
    return (kube_lib_env_t) {
        .alloc = {
            .alloc = system_alloc,
            .free = system_free,
            .pages = system_pages,
            .pages_free = system_pages_free
        },
        .now = system_now
    };
}


/* It cannot fail for 16 bytes once the system has booted. */
kube_seed_t
kube_lib_seed(void)
{
    kube_seed_t  seed;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t) sizeof(seed)) {
        seed.k0 = kube_now_ms();
        seed.k1 = (uint64_t) getpid();
    }

    return seed;
}


uint64_t
kube_now_ms(void)
{
    struct timespec  ts;

    if (clock_gettime(CLOCK_MONOTONIC, &ts) != 0) {
        abort();
    }

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


const char *
kube_strerror(int rc)
{
    /* here it is no peer that closes, and arguments come too late as well */

    switch (rc) {
    case KUBE_E_CLOSED:
        return "it was shut down";

    case KUBE_E_INVALID:
        return "invalid value, or at the wrong time";

    default:
        return kube_rc_text((kube_rc_t) rc);
    }
}


const char *
kube_version(void)
{
    return KUBE_VERSION;
}

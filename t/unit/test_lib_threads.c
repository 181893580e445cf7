/*
 * test_lib_threads - each thread may make a kube_t of its own: libcurl is
 * initialised, under its own lock, before anything of it is called, and stays
 * so as long as the kube_t is there.
 *
 * The functions of libcurl that are counted here stand in front of its own.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <curl/curl.h>

#include "alloc_test.h"
#include "kube.h"


#define THREADS  4
#define ROUNDS   50

static atomic_int       initialised;     /* minus those that were cleaned up */
static atomic_int       early;           /* calls while it was not */
static atomic_int       urls;
static _Thread_local int  mine;          /* of this thread's */


static void *
next(const char *name)
{
    void  *p;

    p = dlsym(RTLD_NEXT, name);
    assert_non_null(p);

    return p;
}


CURLcode
curl_global_init_mem(long flags, curl_malloc_callback m,
    curl_free_callback f, curl_realloc_callback r, curl_strdup_callback s,
    curl_calloc_callback c)
{
    CURLcode    code;
    CURLcode  (*own)(long, curl_malloc_callback, curl_free_callback,
                     curl_realloc_callback, curl_strdup_callback,
                     curl_calloc_callback);

    *(void **) &own = next("curl_global_init_mem");
    code = own(flags, m, f, r, s, c);

    if (code == CURLE_OK) {
        initialised++;
        mine++;
    }

    return code;
}


void
curl_global_cleanup(void)
{
    void  (*own)(void);

    initialised--;
    mine--;

    *(void **) &own = next("curl_global_cleanup");
    own();
}


CURLU *
curl_url(void)
{
    CURLU  *(*own)(void);

    urls++;
    early += (mine == 0);

    *(void **) &own = next("curl_url");

    return own();
}


static int
make(const char *server)
{
    int             rc;
    char            why[128];
    kube_t         *kube;
    kube_options_t  options;

    kube = NULL;
    options = (kube_options_t) { .size = sizeof(options), .server = server };

    rc = kube_create(&options, &kube, why, sizeof(why));
    kube_destroy(kube);

    return rc;
}


static void
test_initialised(void **state)
{
    (void) state;

    assert_int_equal(make("https://127.0.0.1:1"), KUBE_E_OK);
    assert_true(urls != 0);
    assert_int_equal(early, 0);
    assert_int_equal(initialised, 0);

    assert_int_equal(make("http://example.com"), KUBE_E_INVALID);
    assert_int_equal(early, 0);
    assert_int_equal(initialised, 0);
}


static void *
thread_run(void *failed)
{
    unsigned  i;

    for (i = 0; i < ROUNDS; i++) {
        if (make("https://127.0.0.1:1") != KUBE_E_OK) {
            *(int *) failed = 1;
        }
    }

    return NULL;
}


static void
test_threads(void **state)
{
    int        failed[THREADS];
    size_t     i;
    pthread_t  threads[THREADS];

    (void) state;

    memset(failed, 0, sizeof(failed));

    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, thread_run,
                                        &failed[i]), 0);
    }

    for (i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(failed[i], 0);
    }

    assert_int_equal(early, 0);
    assert_int_equal(initialised, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_initialised),
        cmocka_unit_test(test_threads)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

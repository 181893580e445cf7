/*
 * alloc_test - a kube_alloc_t that counts and fails on order, and two helpers
 * that run a body once for every allocation it makes, failing that one.
 *
 * It is not part of the product and knows nothing of the module under test.
 * For t/unit only; include it after cmocka.h or alone.
 *
 * ALLOC_TEST_EACH takes a body that gives up at the first failure and returns
 * it; the helper asserts that KUBE_NOMEM is returned if, and only if, an
 * allocation failed, and that nothing is left allocated:
 *
 *     static kube_rc_t
 *     queue_create(kube_alloc_t *alloc, void *ctx)
 *     {
 *         kube_work_queue_t  *q;
 *
 *         q = kube_work_queue_create(alloc, ITEMS);
 *         kube_work_queue_destroy(q);
 *         return (q != NULL) ? KUBE_OK : KUBE_NOMEM;
 *     }
 *
 *     ALLOC_TEST_EACH(queue_create, NULL);
 *
 * ALLOC_TEST_RUN is for modules that survive a failure: its body sees
 * at->failed, goes on, and asserts itself.  ALLOC_TEST_AGAIN helps it where
 * a call that was refused for memory is to be made once more:
 *
 *     ALLOC_TEST_RUN(fifo_oom, NULL);
 *     rc = ALLOC_TEST_AGAIN(at, kube_delta_fifo_put(fifo, &delta));
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ALLOC_TEST_H
#define KUBE_ALLOC_TEST_H


#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kube_base.h"


/* A body that needs more failing runs than this does not terminate. */
#define ALLOC_TEST_RUNS_MAX  100000


typedef struct {
    kube_alloc_t  alloc;          /* hand &at->alloc to the module */
    size_t        calls;          /* alloc calls since init */
    size_t        frees;
    size_t        fail_at;        /* the k-th call fails; 0: none */
    bool          fail_from;      /* all from the k-th on fail */
    bool          failed;         /* a failure was given out */
    size_t        live;           /* blocks not freed yet */
    size_t        live_bytes;
    size_t        peak_bytes;
} alloc_test_t;

typedef void (*alloc_test_body_pt)(alloc_test_t *at, void *ctx);
typedef kube_rc_t (*alloc_test_each_pt)(kube_alloc_t *alloc, void *ctx);

/* A body of ALLOC_TEST_EACH as the ctx of a body of ALLOC_TEST_RUN. */
typedef struct {
    alloc_test_each_pt  body;
    void               *ctx;
    const char         *file;
    int                 line;
} alloc_test_each_t;

/* Before each block: its size, padded to keep malloc's alignment. */
typedef union {
    size_t       size;
    max_align_t  align;
} alloc_test_head_t;


static inline void *
alloc_test_alloc(void *ctx, size_t size)
{
    alloc_test_t       *at = ctx;
    alloc_test_head_t  *head;

    assert_true(size != 0);

    at->calls++;

    if (at->fail_at != 0
        && (at->calls == at->fail_at
            || (at->fail_from && at->calls > at->fail_at)))
    {
        at->failed = true;
        return NULL;
    }

    head = malloc(sizeof(alloc_test_head_t) + size);
    assert_non_null(head);

    head->size = size;
    at->live++;
    at->live_bytes += size;

    if (at->live_bytes > at->peak_bytes) {
        at->peak_bytes = at->live_bytes;
    }

    /* nobody may count on zeroed memory */
    memset(head + 1, 0xa5, size);

    return head + 1;
}


static inline void
alloc_test_free(void *ctx, void *p)
{
    alloc_test_t       *at = ctx;
    alloc_test_head_t  *head;

    if (p == NULL) {
        return;
    }

    head = (alloc_test_head_t *) p - 1;

    assert_true(at->live > 0);
    at->live--;
    at->live_bytes -= head->size;
    at->frees++;

    free(head);
}


/* at must not move afterwards: its alloc points back to it. */
static inline void
alloc_test_init(alloc_test_t *at)
{
    memset(at, 0, sizeof(alloc_test_t));

    at->alloc.alloc = alloc_test_alloc;
    at->alloc.free = alloc_test_free;
    at->alloc.ctx = at;
}


/* The k-th call from now on fails (k >= 1); with from, all later ones too. */
static inline void
alloc_test_fail(alloc_test_t *at, size_t k, bool from)
{
    at->fail_at = at->calls + k;
    at->fail_from = from;
    at->failed = false;
}


static inline void
alloc_test_heal(alloc_test_t *at)
{
    at->fail_at = 0;
    at->fail_from = false;
    at->failed = false;
}


/* KUBE_OK, or KUBE_NOMEM where a failure was given out. */
static inline void
alloc_test_check_rc(const alloc_test_t *at, kube_rc_t rc, const char *file,
    int line)
{
    if (rc != KUBE_OK && !(rc == KUBE_NOMEM && at->failed)) {
        print_error("unexpected result %d (%s), failure given: %d\n",
                    (int) rc, kube_rc_text(rc), (int) at->failed);
        _fail(file, line);
    }
}

#define alloc_test_assert_rc(at, rc)                                          \
    alloc_test_check_rc(at, rc, __FILE__, __LINE__)


/*
 * The result of call, which may be KUBE_NOMEM only for a failure given out;
 * such a call is made once more, and succeeds if only the k-th allocation
 * fails.  call is evaluated twice then.
 */
#define ALLOC_TEST_AGAIN(at, call)                                            \
    (alloc_test_refused(at, call, __FILE__, __LINE__)                         \
     ? alloc_test_second(at, call, __FILE__, __LINE__)                        \
     : KUBE_OK)


static inline bool
alloc_test_refused(const alloc_test_t *at, kube_rc_t rc, const char *file,
    int line)
{
    alloc_test_check_rc(at, rc, file, line);
    return rc != KUBE_OK;
}


static inline kube_rc_t
alloc_test_second(const alloc_test_t *at, kube_rc_t rc, const char *file,
    int line)
{
    alloc_test_check_rc(at, rc, file, line);

    if (rc != KUBE_OK && !at->fail_from) {
        print_error("refused again, though memory was there\n");
        _fail(file, line);
    }

    return rc;
}


static inline void
alloc_test_check_leak(const alloc_test_t *at, const char *file, int line)
{
    if (at->live != 0) {
        print_error("leak of %zu blocks, %zu bytes (fail_at %zu%s)\n",
                    at->live, at->live_bytes, at->fail_at,
                    at->fail_from ? " and later" : "");
        _fail(file, line);
    }
}

#define alloc_test_assert_no_leak(at)                                         \
    alloc_test_check_leak(at, __FILE__, __LINE__)


/*
 * Runs body with nothing failing, then with call 1, 2, ... failing until a
 * run makes fewer calls than that; the whole again with every later call
 * failing as well.  After each run nothing may be left allocated.
 */
static inline void
alloc_test_run(alloc_test_body_pt body, void *ctx, const char *file, int line)
{
    size_t        k, pass;
    alloc_test_t  at;

    alloc_test_init(&at);
    body(&at, ctx);
    alloc_test_check_leak(&at, file, line);

    /* a body that allocates nothing shows nothing */
    if (at.calls == 0) {
        print_error("the body made no allocation\n");
        _fail(file, line);
    }

    for (pass = 0; pass < 2; pass++) {
        for (k = 1; k < ALLOC_TEST_RUNS_MAX; k++) {
            alloc_test_init(&at);
            alloc_test_fail(&at, k, pass == 1);

            body(&at, ctx);
            alloc_test_check_leak(&at, file, line);

            if (!at.failed && at.calls < k) {
                break;
            }
        }

        if (k == ALLOC_TEST_RUNS_MAX) {
            print_error("the body never got through\n");
            _fail(file, line);
        }
    }
}

#define ALLOC_TEST_RUN(body, ctx)                                             \
    alloc_test_run(body, ctx, __FILE__, __LINE__)


/* Runs a body of ALLOC_TEST_EACH: KUBE_NOMEM exactly where one failed. */
static inline void
alloc_test_each(alloc_test_t *at, void *ctx)
{
    kube_rc_t           rc;
    alloc_test_each_t  *each = ctx;

    rc = each->body(&at->alloc, each->ctx);

    if (rc != (at->failed ? KUBE_NOMEM : KUBE_OK)) {
        print_error("result %d (%s), allocation %zu failed: %d\n", (int) rc,
                    kube_rc_text(rc), at->fail_at, (int) at->failed);
        _fail(each->file, each->line);
    }
}

#define ALLOC_TEST_EACH(body, ctx)                                            \
    alloc_test_run(alloc_test_each,                                           \
                   &(alloc_test_each_t) { body, ctx, __FILE__, __LINE__ },    \
                   __FILE__, __LINE__)


#endif /* KUBE_ALLOC_TEST_H */

/*
 * test_processor - listeners on a small ring: who is slow, falls behind, is
 * told the difference, comes and goes; and memory that fails.
 *
 * Each listener here has a model of the store, and checks with each
 * notification that it goes on from what it was told before.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_processor.h"


#define KEYS       8
#define RING       4
#define LISTENERS  4

typedef struct {
    uint64_t  words[64];
} bytes_t;

typedef struct {
    kube_registration_t   registration;
    bool                  there[KEYS];
    unsigned              version[KEYS];
    char                  uid[KEYS];
    unsigned              again;         /* so often it says KUBE_AGAIN */
    unsigned              random;        /* in so many of a hundred */
    kube_random_t         source;
    bool                  odd;           /* it sees odd versions alone */
    unsigned              resyncs;
    unsigned              unknown;
    unsigned              n;
} listener_t;

typedef struct {
    kube_processor_t  *p;
    kube_store_t      *store;
    uint64_t           now_ms;
    unsigned           version;
    bool               there[KEYS];
    unsigned           held[KEYS];       /* version */
} fixture_t;


static unsigned
version_of(const kube_stored_t *stored)
{
    uint64_t  version;

    assert_int_equal(kube_str_to_u64(stored->id.meta.rv, UINT32_MAX,
                                     &version), KUBE_OK);
    return (unsigned) version;
}


static bool
listener_filter(void *ctx, const kube_stored_t *stored)
{
    (void) ctx;

    return version_of(stored) % 2 == 1;
}


static void
listener_check(listener_t *l, const kube_stored_t *old)
{
    unsigned  k;

    k = (unsigned) (old->id.meta.name.data[0] - 'a');
    assert_true(l->there[k]);
    assert_int_equal(version_of(old), l->version[k]);
    assert_int_equal(old->id.meta.uid.data[0], l->uid[k]);
}


static void
listener_set(listener_t *l, const kube_stored_t *new)
{
    unsigned  k;

    k = (unsigned) (new->id.meta.name.data[0] - 'a');
    l->there[k] = true;
    l->version[k] = version_of(new);
    l->uid[k] = new->id.meta.uid.data[0];
}


static kube_rc_t
listener_notify(void *ctx, const kube_notification_t *n)
{
    unsigned     k;
    listener_t  *l = ctx;

    if (l->again != 0) {
        l->again--;
        return KUBE_AGAIN;
    }

    if (l->random != 0
        && kube_random_range(&l->source, 1, 100) <= l->random)
    {
        return KUBE_AGAIN;
    }

    l->n++;
    l->unknown += n->final_state_unknown;

    switch (n->kind) {

    case KUBE_NOTIFY_ADDED:
        k = (unsigned) (n->new->id.meta.name.data[0] - 'a');
        assert_false(l->there[k]);
        listener_set(l, n->new);
        break;

    case KUBE_NOTIFY_UPDATED:
        listener_check(l, n->old);
        assert_true(kube_stored_same_uid(n->old, n->new));
        listener_set(l, n->new);
        break;

    case KUBE_NOTIFY_DELETED:
        listener_check(l, n->old);
        l->there[n->old->id.meta.name.data[0] - 'a'] = false;
        break;

    case KUBE_NOTIFY_RESYNC:
        l->resyncs++;
    }

    return KUBE_OK;
}


static kube_rc_t
fixture_make(fixture_t *f, const kube_alloc_t *alloc, size_t changes,
    size_t bytes, uint64_t resync_ms)
{
    kube_store_conf_t      conf;
    kube_processor_conf_t  processor;

    memset(f, 0, sizeof(fixture_t));
    memset(&conf, 0, sizeof(conf));
    memset(&processor, 0, sizeof(processor));

    processor.changes_max = changes;
    processor.bytes_max = bytes;
    processor.resync_ms = resync_ms;
    f->p = kube_processor_create(alloc, &processor);
    if (f->p == NULL) {
        return KUBE_NOMEM;
    }

    conf.on_change = kube_processor_on_change;
    conf.on_change_ctx = f->p;
    f->store = kube_store_create(alloc, &conf);

    return (f->store != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static void
fixture_done(fixture_t *f)
{
    kube_store_destroy(f->store);
    kube_processor_destroy(f->p);
}


static kube_rc_t
put(fixture_t *f, unsigned k, char uid)
{
    char           name[1], rv[16];
    bytes_t        b;
    kube_rc_t      rc;
    kube_object_t  o;

    memset(&o, 0, sizeof(o));
    name[0] = (char) ('a' + k);
    snprintf(rv, sizeof(rv), "%u", f->version + 1);

    o.resource = KUBE_RESOURCE_SERVICES;
    o.u.service.meta.ns = KUBE_STR("shop");
    o.u.service.meta.name = (kube_str_t) { name, 1 };
    o.u.service.meta.uid = (kube_str_t) { &uid, 1 };
    o.u.service.meta.rv = kube_str(rv);
    assert_in_range(kube_record_size(&o), 1, sizeof(b));
    kube_record_encode(&o, &b);

    rc = kube_store_put(f->store, (const kube_record_t *) (const void *) &b,
                        false);

    if (rc == KUBE_OK) {
        f->version++;
        f->there[k] = true;
        f->held[k] = f->version;
    }

    return rc;
}


static kube_rc_t
cut(fixture_t *f, unsigned k)
{
    char       name;
    kube_rc_t  rc;

    name = (char) ('a' + k);
    rc = kube_store_delete(f->store, KUBE_STR("shop"),
                           (kube_str_t) { &name, 1 }, false);

    if (rc == KUBE_OK) {
        f->there[k] = false;
    }

    return rc;
}


static kube_rc_t
listener_add(fixture_t *f, listener_t *l, uint64_t resync_ms)
{
    kube_handler_t  handler;

    memset(l->there, 0, sizeof(l->there));

    handler = (kube_handler_t) {
        .notify = listener_notify,
        .filter = l->odd ? listener_filter : NULL,
        .ctx = l,
        .resync_ms = resync_ms
    };

    return kube_processor_add(f->p, &handler, f->store, &l->registration,
                              f->now_ms);
}


static void
settle(fixture_t *f)
{
    unsigned  n;

    for (n = 0; kube_processor_run(f->p, f->store, f->now_ms); n++) {
        assert_true(n < 1000);
    }
}


static void
assert_agrees(const fixture_t *f, const listener_t *l)
{
    bool      sees;
    unsigned  k;

    for (k = 0; k < KEYS; k++) {
        sees = f->there[k] && (!l->odd || f->held[k] % 2 == 1);
        assert_int_equal(l->there[k], sees);
        assert_true(!sees || l->version[k] == f->held[k]);
    }
}


/* One that falls behind costs neither the quick one nor memory. */
static void
test_slow_listener(void **state)
{
    unsigned                 i;
    fixture_t                f;
    listener_t               quick, slow;
    alloc_test_t             at;
    kube_processor_stats_t   stats;

    (void) state;

    alloc_test_init(&at);
    memset(&quick, 0, sizeof(quick));
    memset(&slow, 0, sizeof(slow));
    assert_int_equal(fixture_make(&f, &at.alloc, RING, 1u << 20, KUBE_NEVER),
                     KUBE_OK);
    assert_int_equal(put(&f, 0, 'u'), KUBE_OK);
    assert_int_equal(listener_add(&f, &quick, KUBE_NEVER), KUBE_OK);
    assert_int_equal(listener_add(&f, &slow, KUBE_NEVER), KUBE_OK);
    settle(&f);
    slow.again = UINT32_MAX;

    for (i = 0; i < 1000; i++) {
        assert_int_equal(put(&f, i % KEYS, 'u'), KUBE_OK);

        if (i % 3 == 2) {
            settle(&f);
        }

        kube_processor_stats(f.p, &stats);
        assert_true(stats.ring <= RING);
        assert_true(stats.pending <= KEYS);
        assert_true(at.live_bytes < 32768);
    }

    settle(&f);
    assert_int_equal(quick.n, 1001);
    assert_int_equal(quick.resyncs, 0);
    assert_agrees(&f, &quick);

    /* RESYNC first, then a key once, what was added, what is gone */

    assert_int_equal(cut(&f, 0), KUBE_OK);
    assert_int_equal(cut(&f, 1), KUBE_OK);

    for (i = 0; i < RING; i++) {
        assert_int_equal(put(&f, 7, 'u'), KUBE_OK);
    }

    slow.again = 0;
    i = slow.n;
    settle(&f);
    assert_int_equal(slow.resyncs, 1);
    assert_agrees(&f, &slow);
    assert_true(slow.n - i <= 1 + KEYS + RING);

    /* the state it was told was not the last one */
    assert_int_equal(slow.unknown, 1);

    kube_processor_stats(f.p, &stats);
    assert_int_equal(stats.ring, 0);
    assert_int_equal(stats.ring_bytes, 0);
    assert_int_equal(stats.pending, 0);
    /* six changes without a run: the quick one had no chance */
    assert_int_equal(stats.fallen_behind, 2);
    assert_agrees(&f, &quick);
    assert_int_equal(stats.listeners, 2);

    /* who has caught up may fall behind again, and is told again */

    slow.again = UINT32_MAX;

    for (i = 0; i < 3 * RING; i++) {
        assert_int_equal(put(&f, i % KEYS, 'u'), KUBE_OK);
        settle(&f);
    }

    slow.again = 0;
    settle(&f);
    assert_int_equal(slow.resyncs, 2);
    assert_agrees(&f, &slow);
    kube_processor_stats(f.p, &stats);
    assert_int_equal(stats.fallen_behind, 3);

    fixture_done(&f);
    alloc_test_assert_no_leak(&at);
}


/* Who has missed the last state of what was made anew is told that it has. */
static void
test_recreated_late(void **state)
{
    unsigned      i;
    fixture_t     f;
    listener_t    l;
    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);
    memset(&l, 0, sizeof(l));
    assert_int_equal(fixture_make(&f, &at.alloc, RING, 1u << 20, KUBE_NEVER),
                     KUBE_OK);
    assert_int_equal(put(&f, 0, 'u'), KUBE_OK);
    assert_int_equal(listener_add(&f, &l, KUBE_NEVER), KUBE_OK);
    settle(&f);
    l.again = UINT32_MAX;

    assert_int_equal(put(&f, 0, 'u'), KUBE_OK);
    assert_int_equal(put(&f, 0, 'v'), KUBE_OK);

    for (i = 0; i < RING; i++) {
        assert_int_equal(put(&f, 1, 'u'), KUBE_OK);
    }

    l.again = 0;
    settle(&f);
    assert_int_equal(l.resyncs, 1);
    assert_int_equal(l.unknown, 1);
    assert_agrees(&f, &l);

    fixture_done(&f);
    alloc_test_assert_no_leak(&at);
}


/* Two halves, with a refusal between, in the ring and out of it. */
static void
test_recreated(void **state)
{
    unsigned      fallen, again;
    fixture_t     f;
    listener_t    l;
    alloc_test_t  at;

    (void) state;

    for (fallen = 0; fallen < 2; fallen++) {
        for (again = 0; again < 4; again++) {
            alloc_test_init(&at);
            memset(&l, 0, sizeof(l));
            assert_int_equal(fixture_make(&f, &at.alloc, RING, 1u << 20,
                                          KUBE_NEVER), KUBE_OK);
            assert_int_equal(listener_add(&f, &l, KUBE_NEVER), KUBE_OK);
            assert_int_equal(put(&f, 0, 'u'), KUBE_OK);
            settle(&f);

            assert_int_equal(put(&f, 0, 'v'), KUBE_OK);
            kube_random_init(&l.source, again + 1);
            l.random = 60;

            if (again & 1) {
                (void) kube_processor_run(f.p, f.store, 0);
            }

            while (fallen && f.version < 2 + 2 * RING) {
                assert_int_equal(put(&f, f.version % 2, 'v'), KUBE_OK);

                if (again & 2) {
                    (void) kube_processor_run(f.p, f.store, 0);
                }
            }

            l.random = 0;
            settle(&f);
            assert_agrees(&f, &l);
            assert_int_equal(l.uid[0], 'v');
            fixture_done(&f);
            alloc_test_assert_no_leak(&at);
        }
    }
}


/* The ring is bounded in bytes too, but takes one change of any size. */
static void
test_bytes(void **state)
{
    unsigned                 i;
    fixture_t                f;
    listener_t               l;
    alloc_test_t             at;
    kube_processor_stats_t   stats;

    (void) state;

    alloc_test_init(&at);
    memset(&l, 0, sizeof(l));
    assert_int_equal(fixture_make(&f, &at.alloc, 64, 1, KUBE_NEVER), KUBE_OK);
    assert_int_equal(listener_add(&f, &l, KUBE_NEVER), KUBE_OK);

    for (i = 0; i < 20; i++) {
        assert_int_equal(put(&f, i % 3, 'u'), KUBE_OK);
        kube_processor_stats(f.p, &stats);
        assert_int_equal(stats.ring, 1);
    }

    settle(&f);
    assert_agrees(&f, &l);
    assert_int_equal(l.resyncs, 1);
    fixture_done(&f);
    alloc_test_assert_no_leak(&at);
}


static void
walk(uint64_t seed, unsigned steps)
{
    unsigned                 i, k;
    fixture_t                f;
    listener_t               ls[LISTENERS];
    alloc_test_t             at;
    kube_random_t            random;
    kube_processor_stats_t   stats;

    alloc_test_init(&at);
    kube_random_init(&random, seed);
    memset(ls, 0, sizeof(ls));
    assert_int_equal(fixture_make(&f, &at.alloc, RING, 4096, 2000), KUBE_OK);

    for (k = 0; k < LISTENERS; k++) {
        ls[k].random = k * 30;
        ls[k].odd = (k == 2);
        kube_random_init(&ls[k].source, seed + k);
        assert_int_equal(listener_add(&f, &ls[k], (k == 1) ? 0 : KUBE_NEVER),
                         KUBE_OK);
    }

    kube_processor_started(f.p);

    for (i = 0; i < steps; i++) {
        k = (unsigned) kube_random_range(&random, 0, KEYS - 1);

        switch (kube_random_range(&random, 0, 15)) {

        case 0:
        case 1:
            assert_int_equal(cut(&f, k) == KUBE_OK || !f.there[k], true);
            break;

        case 2:
            assert_int_equal(put(&f, k, (char) ('u' + i % 3)), KUBE_OK);
            break;

        case 3:
        case 4:
        case 5:
            (void) kube_processor_run(f.p, f.store, f.now_ms);
            break;

        case 6:
            f.now_ms += kube_random_range(&random, 0, 900);
            break;

        case 7:
            k %= LISTENERS;

            if (kube_random_range(&random, 0, 7) == 0) {
                kube_processor_remove(f.p, ls[k].registration);
                assert_int_equal(listener_add(&f, &ls[k],
                                              (k == 1) ? 0 : KUBE_NEVER),
                                 KUBE_OK);
            }

            break;

        case 8:
            kube_processor_synced(f.p, f.now_ms);
            break;

        default:
            assert_int_equal(put(&f, k, f.there[k]
                                        ? kube_store_get(f.store,
                                              KUBE_STR("shop"),
                                              (kube_str_t) {
                                                  &"abcdefgh"[k], 1
                                              })->id.meta.uid.data[0]
                                        : 'u'), KUBE_OK);
        }

        kube_processor_stats(f.p, &stats);
        assert_true(stats.ring <= RING);
        assert_true(stats.pending <= LISTENERS * 2 * KEYS);

        if (i % 97 == 0) {
            for (k = 0; k < LISTENERS; k++) {
                ls[k].random = 0;
            }

            settle(&f);
            assert_true(kube_processor_is_idle(f.p));

            for (k = 0; k < LISTENERS; k++) {
                assert_agrees(&f, &ls[k]);
                ls[k].random = k * 30;
            }
        }
    }

    assert_true(ls[3].resyncs != 0);
    fixture_done(&f);
    alloc_test_assert_no_leak(&at);
}


static void
test_walk(void **state)
{
    uint64_t  seed;

    (void) state;

    for (seed = 1; seed <= (getenv("KUBE_PROOF") ? 2000 : 8); seed++) {
        walk(seed, 4000);
    }
}


static void
stop_it(fixture_t *f)
{
    kube_processor_drop(f->p);
}


static fixture_t  *stopping;


static kube_rc_t
stopping_notify(void *ctx, const kube_notification_t *n)
{
    unsigned  *calls = ctx;

    (void) n;

    (*calls)++;
    assert_true(kube_processor_is_calling(stopping->p));
    stop_it(stopping);

    return KUBE_OK;
}


/* Nothing is told behind a stop, which may come from a callback. */
static void
test_drop(void **state)
{
    unsigned                 calls;
    fixture_t                f;
    listener_t               l;
    alloc_test_t             at;
    kube_handler_t           handler;
    kube_registration_t      registration;
    kube_processor_stats_t   stats;

    (void) state;

    alloc_test_init(&at);
    memset(&l, 0, sizeof(l));
    calls = 0;
    stopping = &f;
    assert_int_equal(fixture_make(&f, &at.alloc, RING, 1u << 20, 2000),
                     KUBE_OK);
    handler = (kube_handler_t) { .notify = stopping_notify, .ctx = &calls };
    assert_int_equal(kube_processor_add(f.p, &handler, f.store, &registration,
                                        0), KUBE_OK);
    assert_int_equal(put(&f, 0, 'u'), KUBE_OK);
    assert_int_equal(put(&f, 0, 'v'), KUBE_OK);
    assert_int_equal(put(&f, 0, 'w'), KUBE_OK);
    assert_int_equal(put(&f, 1, 'u'), KUBE_OK);
    assert_int_equal(listener_add(&f, &l, KUBE_NEVER), KUBE_OK);
    kube_processor_synced(f.p, 0);
    assert_int_equal(kube_processor_deadline(f.p), 2000);
    settle(&f);
    assert_int_equal(calls, 1);
    assert_int_equal(l.n, 0);
    assert_false(kube_processor_has_synced(f.p, registration));
    assert_int_equal(kube_processor_deadline(f.p), KUBE_NEVER);
    assert_int_equal(put(&f, 2, 'u'), KUBE_OK);
    assert_true(kube_processor_is_idle(f.p));
    kube_processor_stats(f.p, &stats);
    assert_int_equal(stats.ring + stats.pending, 0);
    fixture_done(&f);
    alloc_test_assert_no_leak(&at);
}


static void
test_listeners_max(void **state)
{
    unsigned      i;
    fixture_t     f;
    listener_t    l;
    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);
    memset(&l, 0, sizeof(l));
    assert_int_equal(fixture_make(&f, &at.alloc, RING, 1u << 20, KUBE_NEVER),
                     KUBE_OK);

    for (i = 0; i < KUBE_LISTENERS_MAX; i++) {
        assert_int_equal(listener_add(&f, &l, KUBE_NEVER), KUBE_OK);
    }

    assert_int_equal(listener_add(&f, &l, KUBE_NEVER), KUBE_TOO_LARGE);
    fixture_done(&f);
    kube_processor_destroy(NULL);
    alloc_test_assert_no_leak(&at);
}


/* A change that cannot be told is not made, and can be made again. */
static void
processor_oom(alloc_test_t *at, void *ctx)
{
    unsigned    i, k;
    fixture_t   f;
    kube_rc_t   rc;
    listener_t  ls[3];

    (void) ctx;

    memset(ls, 0, sizeof(ls));

    if (fixture_make(&f, &at->alloc, RING, 1u << 20, 1000) != KUBE_OK) {
        assert_true(at->failed);
        fixture_done(&f);
        return;
    }

    rc = ALLOC_TEST_AGAIN(at, listener_add(&f, &ls[0], 0));
    rc = ALLOC_TEST_AGAIN(at, listener_add(&f, &ls[1], KUBE_NEVER));
    ls[1].again = UINT32_MAX;

    for (i = 0; i < 14; i++) {
        rc = ALLOC_TEST_AGAIN(at, put(&f, i % 5, (char) ('u' + (i > 9))));

        if (i == 8) {
            rc = f.there[3] ? ALLOC_TEST_AGAIN(at, cut(&f, 3)) : KUBE_OK;
            rc = ALLOC_TEST_AGAIN(at, listener_add(&f, &ls[2], 0));
            kube_processor_synced(f.p, 0);
        }

        if (i % 4 == 0) {
            f.now_ms += 1000;
            settle(&f);
        }
    }

    (void) rc;

    ls[1].again = 0;
    f.now_ms += 5000;
    settle(&f);

    for (k = 0; k < 3; k++) {
        if (ls[k].registration.id != 0) {
            assert_agrees(&f, &ls[k]);
        }
    }

    fixture_done(&f);
}


/* A resync that there was no memory for is made soon, not a period later. */
static void
test_resync_without_memory(void **state)
{
    fixture_t     f;
    listener_t    l;
    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);
    memset(&l, 0, sizeof(l));
    assert_int_equal(fixture_make(&f, &at.alloc, RING, 1u << 20, 60000),
                     KUBE_OK);
    assert_int_equal(put(&f, 0, 'u'), KUBE_OK);
    assert_int_equal(listener_add(&f, &l, 60000), KUBE_OK);
    kube_processor_synced(f.p, f.now_ms);
    settle(&f);

    f.now_ms = kube_processor_deadline(f.p);
    alloc_test_fail(&at, 1, true);
    settle(&f);
    alloc_test_heal(&at);
    assert_true(kube_processor_deadline(f.p)
                <= f.now_ms + KUBE_RESYNC_MIN_MS);

    f.now_ms = kube_processor_deadline(f.p);
    settle(&f);
    assert_int_equal(kube_processor_deadline(f.p), f.now_ms + 60000);

    fixture_done(&f);
    alloc_test_assert_no_leak(&at);
}


static void
test_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(processor_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_slow_listener),
        cmocka_unit_test(test_recreated),
        cmocka_unit_test(test_recreated_late),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_listeners_max),
        cmocka_unit_test(test_resync_without_memory),
        cmocka_unit_test(test_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

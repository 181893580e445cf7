/*
 * test_factory - informers that are shared, started, waited for and stopped
 * together: client-go's factory and wait_test.go.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "handler_bed.h"
#include "kube_cache_sync.h"
#include "kube_factory.h"


typedef struct {
    alloc_test_t           own;
    kube_memory_source_t  *sources[KUBE_RESOURCES];
    kube_factory_t        *factory;
    unsigned               made;        /* lister-watchers */
    uint64_t               now_ms;
    char                   cause[128];
} factory_bed_t;


static kube_rc_t
make_source(void *ctx, kube_resource_t resource, kube_str_t ns,
    kube_lister_watcher_t *lw)
{
    factory_bed_t  *b = ctx;

    b->made++;

    return kube_memory_lister_watcher_create(b->sources[resource], ns, lw);
}


static void
factory_make(factory_bed_t *b, const kube_alloc_t *alloc)
{
    unsigned                     r;
    kube_factory_conf_t          conf;
    kube_shared_informer_conf_t  informer;

    memset(b, 0, sizeof(factory_bed_t));
    alloc_test_init(&b->own);
    b->now_ms = 1000000;

    for (r = 0; r < KUBE_RESOURCES; r++) {
        b->sources[r] = kube_memory_source_create(&b->own.alloc,
                                                  (kube_resource_t) r, 64);
        assert_non_null(b->sources[r]);
    }

    informer = bed_conf(KUBE_NEVER);
    memset(&conf, 0, sizeof(conf));
    conf.lister_watcher = make_source;
    conf.ctx = b;
    conf.reflector = informer.reflector;
    conf.processor = informer.processor;
    conf.resync_ms[KUBE_RESOURCE_SERVICES] = 7000;

    b->factory = kube_factory_create((alloc != NULL) ? alloc : &b->own.alloc,
                                     &conf);
}


static void
factory_done(factory_bed_t *b)
{
    unsigned  r;

    kube_factory_destroy(b->factory);

    for (r = 0; r < KUBE_RESOURCES; r++) {
        kube_memory_source_destroy(b->sources[r]);
    }

    alloc_test_assert_no_leak(&b->own);
}


static kube_shared_informer_t *
informer_of(factory_bed_t *b, kube_resource_t resource, const char *ns)
{
    kube_shared_informer_t  *informer;

    assert_int_equal(kube_factory_informer(b->factory, resource, kube_str(ns),
                                           &informer), KUBE_OK);
    return informer;
}


static void
factory_settle(factory_bed_t *b)
{
    unsigned  n;

    for (n = 0; n < 1000; n++) {
        kube_factory_process(b->factory, b->now_ms);

        if (kube_factory_deadline(b->factory) > b->now_ms) {
            return;
        }
    }

    fail_msg("it never settles");
}


static kube_rc_t
wait_for(factory_bed_t *b, uint64_t deadline_ms)
{
    return kube_factory_wait_for_cache_sync(b->factory, deadline_ms,
                                            b->now_ms, b->cause,
                                            sizeof(b->cause));
}


static void
test_shared(void **state)
{
    factory_bed_t            b;
    kube_shared_informer_t  *all, *shop, *slices;

    (void) state;

    factory_make(&b, NULL);
    all = informer_of(&b, KUBE_RESOURCE_SERVICES, "");
    shop = informer_of(&b, KUBE_RESOURCE_SERVICES, "shop");
    slices = informer_of(&b, KUBE_RESOURCE_ENDPOINTSLICES, "");
    assert_true(all != shop && all != slices);
    assert_ptr_equal(informer_of(&b, KUBE_RESOURCE_SERVICES, "shop"), shop);
    assert_int_equal(b.made, 3);
    assert_int_equal(kube_processor_check_ms(
                         kube_shared_informer_processor(shop)), 7000);
    assert_int_equal(kube_processor_check_ms(
                         kube_shared_informer_processor(slices)), KUBE_NEVER);
    assert_int_equal(kube_factory_informer(b.factory, KUBE_RESOURCES,
                                           KUBE_STR(""), &all), KUBE_INVALID);
    assert_int_equal(kube_factory_informer(b.factory, KUBE_RESOURCE_SERVICES,
                                           KUBE_STR("No"), &all),
                     KUBE_INVALID);
    factory_done(&b);
}


/* Those that are new are started by another start(); none twice. */
static void
test_life(void **state)
{
    factory_bed_t            b;
    kube_shared_informer_t  *services, *slices;

    (void) state;

    factory_make(&b, NULL);
    assert_int_equal(wait_for(&b, 0), KUBE_OK);

    services = informer_of(&b, KUBE_RESOURCE_SERVICES, "");
    assert_int_equal(kube_factory_start(b.factory, b.now_ms), KUBE_OK);
    assert_int_equal(wait_for(&b, KUBE_NEVER), KUBE_AGAIN);
    assert_string_equal(b.cause, "services");

    slices = informer_of(&b, KUBE_RESOURCE_ENDPOINTSLICES, "shop");
    factory_settle(&b);
    assert_int_equal(wait_for(&b, b.now_ms), KUBE_OK);
    assert_string_equal(b.cause, "");
    assert_true(kube_shared_informer_has_synced(services));
    assert_false(kube_shared_informer_has_synced(slices));

    /* why: that of the one that hinders, at the deadline */

    kube_memory_source_refuse(b.sources[KUBE_RESOURCE_ENDPOINTSLICES], false,
                              1, 403, 0);
    assert_int_equal(kube_factory_start(b.factory, b.now_ms), KUBE_OK);
    factory_settle(&b);
    assert_int_equal(wait_for(&b, b.now_ms + 1), KUBE_AGAIN);
    assert_int_equal(wait_for(&b, b.now_ms), KUBE_TIMEOUT);
    assert_memory_equal(b.cause, "endpointslices in shop: ", 24);
    b.now_ms += 60000;
    factory_settle(&b);
    assert_int_equal(wait_for(&b, 0), KUBE_OK);

    assert_false(kube_factory_is_stopped(b.factory));
    kube_factory_shutdown(b.factory, true, b.now_ms);
    factory_settle(&b);
    assert_true(kube_factory_is_stopped(b.factory));
    assert_int_equal(kube_factory_start(b.factory, b.now_ms), KUBE_INVALID);
    assert_int_equal(kube_factory_informer(b.factory, KUBE_RESOURCE_SERVICES,
                                           KUBE_STR(""), &services),
                     KUBE_INVALID);
    assert_int_equal(kube_factory_deadline(b.factory), KUBE_NEVER);

    /* what was synced is so still */
    assert_int_equal(wait_for(&b, 0), KUBE_OK);
    factory_done(&b);

    /* what will never be is said at once */
    factory_make(&b, NULL);
    services = informer_of(&b, KUBE_RESOURCE_SERVICES, "");
    assert_int_equal(kube_factory_start(b.factory, b.now_ms), KUBE_OK);
    kube_factory_shutdown(b.factory, false, b.now_ms);
    assert_int_equal(wait_for(&b, KUBE_NEVER), KUBE_CLOSED);
    assert_string_equal(b.cause, "services: it has stopped");
    factory_done(&b);
}


static void
test_informers_max(void **state)
{
    char                     ns[16];
    unsigned                 i;
    factory_bed_t            b;
    kube_shared_informer_t  *informer;

    (void) state;

    factory_make(&b, NULL);

    for (i = 0; i < KUBE_SCOPES_MAX; i++) {
        snprintf(ns, sizeof(ns), "n%u", i);
        (void) informer_of(&b, KUBE_RESOURCE_SERVICES, ns);
    }

    assert_int_equal(kube_factory_informer(b.factory, KUBE_RESOURCE_SERVICES,
                                           KUBE_STR("more"), &informer),
                     KUBE_TOO_LARGE);
    assert_int_equal(kube_factory_start(b.factory, b.now_ms), KUBE_OK);
    factory_settle(&b);
    assert_int_equal(wait_for(&b, 0), KUBE_OK);
    factory_done(&b);
}


typedef struct {
    kube_rc_t    rc;
    const char  *why;
} cache_t;


static kube_rc_t
cache_synced(void *ctx)
{
    return ((cache_t *) ctx)->rc;
}


static const char *
cache_why(void *ctx)
{
    return ((cache_t *) ctx)->why;
}


/* client-go's TestWaitFor, and what TestSyncResult says. */
static const struct {
    const char  *title;
    cache_t      caches[3];        /* c, a, b */
    uint64_t     now_ms;
    kube_rc_t    rc;
    const char  *cause;
} waits[] = {
    { "all at once", { { KUBE_OK, "" }, { KUBE_OK, "" }, { KUBE_OK, "" } },
      99, KUBE_OK, "" },
    { "synced at the deadline",
      { { KUBE_OK, "" }, { KUBE_OK, "" }, { KUBE_OK, "x" } },
      100, KUBE_OK, "" },
    { "one is late",
      { { KUBE_OK, "" }, { KUBE_AGAIN, "" }, { KUBE_OK, "" } },
      99, KUBE_AGAIN, "a" },
    { "in order of names",
      { { KUBE_AGAIN, "far" }, { KUBE_AGAIN, "" }, { KUBE_OK, "" } },
      100, KUBE_TIMEOUT, "a, c: far" },
    { "one never comes, others may",
      { { KUBE_CLOSED, "gone" }, { KUBE_OK, "" }, { KUBE_AGAIN, "" } },
      0, KUBE_AGAIN, "b, c: gone" },
    { "one never comes",
      { { KUBE_OK, "" }, { KUBE_CLOSED, "gone" }, { KUBE_OK, "" } },
      0, KUBE_CLOSED, "a: gone" }
};


static void
test_wait_for(void **state)
{
    char                 cause[64];
    size_t               i, k;
    cache_t              caches[3];
    kube_sync_checker_t  checkers[3];

    static const char  *const names[] = { "c", "a", "b" };

    (void) state;

    for (i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        for (k = 0; k < 3; k++) {
            caches[k] = waits[i].caches[k];
            checkers[k] = (kube_sync_checker_t) {
                .name = names[k],
                .synced = cache_synced,
                .why = cache_why,
                .ctx = &caches[k]
            };
        }

        assert_int_equal(kube_wait_for_cache_sync(checkers, 3, 100,
                                                  waits[i].now_ms, cause,
                                                  sizeof(cause)),
                         waits[i].rc);
        assert_string_equal(cause, waits[i].cause);
    }

    /* equal names, no reasons, a short buffer */
    caches[0].rc = caches[1].rc = caches[2].rc = KUBE_AGAIN;

    for (k = 0; k < 3; k++) {
        checkers[k].name = "same";
        checkers[k].why = NULL;
    }

    assert_int_equal(kube_wait_for_cache_sync(checkers, 3, KUBE_NEVER, 5,
                                              cause, sizeof(cause)),
                     KUBE_AGAIN);
    assert_string_equal(cause, "same, same, same");
    assert_int_equal(kube_wait_for_cache_sync(checkers, 3, KUBE_NEVER, 5,
                                              cause, 7), KUBE_AGAIN);
    assert_string_equal(cause, "same, ");
    assert_int_equal(kube_wait_for_cache_sync(checkers, 3, KUBE_NEVER, 5,
                                              cause, 1), KUBE_AGAIN);
    assert_string_equal(cause, "");
    assert_int_equal(kube_wait_for_cache_sync(NULL, 0, 0, 5, cause, 1),
                     KUBE_OK);
}


static kube_rc_t
factory_oom(kube_alloc_t *alloc, void *ctx)
{
    kube_rc_t                rc;
    factory_bed_t            b;
    kube_shared_informer_t  *informer;

    (void) ctx;

    factory_make(&b, alloc);

    if (b.factory == NULL) {
        factory_done(&b);
        return KUBE_NOMEM;
    }

    rc = kube_factory_informer(b.factory, KUBE_RESOURCE_SERVICES,
                               KUBE_STR("shop"), &informer);

    if (rc == KUBE_OK) {
        rc = kube_factory_informer(b.factory, KUBE_RESOURCE_ENDPOINTSLICES,
                                   KUBE_STR(""), &informer);
    }

    factory_done(&b);

    return rc;
}


static void
test_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_EACH(factory_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_informers_max),
        cmocka_unit_test(test_wait_for),
        cmocka_unit_test(test_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

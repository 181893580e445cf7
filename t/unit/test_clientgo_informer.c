/*
 * test_clientgo_informer - the scenarios of client-go's controller_test.go and
 * shared_informer_test.go that need no handler: when an informer has synced,
 * and what it holds whatever happens meanwhile.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "informer_bed.h"


/* Not before the lists, nor before the last of their items is published. */
static void
test_has_synced(void **state)
{
    bed_t           b;
    char            name[32];
    size_t          i;
    unsigned        k, steps;
    io_exchange_t  *x;

    static const unsigned  items[] = { 0, 1, 2, 3 * KUBE_INFORMER_DELTAS };

    (void) state;

    for (i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
        bed_init(&b);

        for (k = 0; k < items[i]; k++) {
            snprintf(name, sizeof(name), "s%04u", k);
            server_put_service(b.server, "shop", name, k);
        }

        assert_false(kube_informer_synced(b.inf));
        (void) bed_process(&b);
        assert_false(kube_informer_synced(b.inf));

        /* one list of two is whole */
        x = io_find(&b.server->io, "/services?");
        assert_non_null(x);
        server_list(b.server, x);

        for (steps = 0; x->live; steps++) {
            assert_true(steps < 100);
            (void) bed_process(&b);
            assert_false(kube_informer_synced(b.inf));

            if (!x->paused && x->held_len == 0) {
                io_done(x, KUBE_OK, "");

            } else if (!x->paused) {
                (void) io_deliver(&b.server->io, x);
            }
        }

        for (steps = 0; bed_version(&b, 0) == 0; steps++) {
            assert_true(steps < 100);
            (void) bed_process(&b);
            assert_false(kube_informer_synced(b.inf));
        }

        assert_true(items[i] < KUBE_INFORMER_DELTAS || steps > 1);
        bed_settle(&b);
        assert_true(kube_informer_synced(b.inf));
        bed_assert_equal(&b);

        /* and it stays so, whatever becomes of the server */
        b.server->mute = true;
        b.server->window = b.server->rv + 1;
        b.server->io.now_ms += 600000;
        bed_settle(&b);
        assert_true(kube_informer_synced(b.inf));
        bed_done(&b);
    }
}


/* A change at any moment between list and watch is neither lost nor twice. */
static void
test_update(void **state)
{
    bed_t     b;
    unsigned  moment, step;

    (void) state;

    for (moment = 0; moment < 12; moment++) {
        bed_init(&b);
        bed_shop(&b);

        for (step = 0; step < 12; step++) {

            if (step == moment) {
                server_put_slice(b.server, "shop", "web-a", "web", 77);
                server_put_service(b.server, "shop", "new", 78);
                server_delete(b.server, KUBE_RESOURCE_SERVICES, "infra",
                              "echo");
            }

            if (step % 2 == 0) {
                (void) bed_process(&b);

            } else {
                server_run(b.server);
            }
        }

        bed_settle(&b);
        bed_assert_equal(&b);
        assert_int_equal(b.server->lists, 2);

        /* told once: as what the list brought, or as a change of it */
        assert_true(b.changes[KUBE_CHANGE_UPDATE] <= 1);
        assert_int_equal(b.changes[KUBE_CHANGE_ADD]
                         - b.changes[KUBE_CHANGE_DELETE], 6);
        bed_done(&b);
    }
}


/* All is added, changed and deleted at once, faster than it is taken. */
static void
test_hammer_controller(void **state)
{
    bed_t          b;
    char           name[32];
    unsigned       i;
    kube_random_t  random;

    (void) state;

    bed_init(&b);
    kube_random_init(&random, 21);

    for (i = 0; i < 4000; i++) {
        snprintf(name, sizeof(name), "n%u",
                 (unsigned) kube_random_range(&random, 0, 199));

        if (kube_random_range(&random, 0, 3) == 0) {
            server_delete(b.server, KUBE_RESOURCE_SERVICES, "shop", name);

        } else {
            server_put_service(b.server, "shop", name, i);
        }

        if (i % 50 == 0) {
            server_run(b.server);
            (void) bed_process(&b);
        }
    }

    for (i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        server_delete(b.server, KUBE_RESOURCE_SERVICES, "shop", name);
    }

    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.changes[KUBE_CHANGE_ADD],
                     b.changes[KUBE_CHANGE_DELETE]);
    assert_int_equal(b.server->lists, 2);
    bed_done(&b);
}


/*
 * Added, changed, deleted and made again while no watch is open: told once
 * each, whether the watch can be resumed or not.
 */
static void
test_watch_disruption(void **state)
{
    bed_t     b;
    unsigned  i, expired;

    (void) state;

    for (expired = 0; expired < 2; expired++) {
        bed_init(&b);
        bed_shop(&b);
        bed_settle(&b);
        memset(b.changes, 0, sizeof(b.changes));

        for (i = 0; i < IO_EXCHANGES_MAX; i++) {
            if (b.server->io.exchanges[i].live) {
                io_done(&b.server->io.exchanges[i], KUBE_CLOSED, "cut");
            }
        }

        server_put_service(b.server, "shop", "pod3", 3);
        server_put_slice(b.server, "shop", "web-a", "web", 50);
        server_delete(b.server, KUBE_RESOURCE_SERVICES, "infra", "echo");
        server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                      "web-b");
        server_put_slice(b.server, "shop", "web-b", "web", 51);

        if (expired) {
            b.server->window = b.server->rv + 1;
            b.server->io.now_ms += 2000;
            (void) bed_process(&b);
            server_run(b.server);
            (void) bed_process(&b);
            b.server->window = 0;
        }

        bed_converge(&b);
        bed_assert_equal(&b);
        assert_int_equal(b.changes[KUBE_CHANGE_ADD], 1);
        assert_int_equal(b.changes[KUBE_CHANGE_UPDATE], 2);
        assert_int_equal(b.changes[KUBE_CHANGE_DELETE], 1);
        assert_int_equal(b.server->lists, expired ? 4 : 2);
        bed_done(&b);
    }
}


/* The version that readers find moves with changes, deletions, bookmarks. */
static void
test_store_resource_version(void **state)
{
    bed_t           b;
    char            text[128];
    uint64_t        rv;
    io_exchange_t  *x;

    (void) state;

    bed_init(&b);
    assert_int_equal(bed_version(&b, 0), 0);
    bed_shop(&b);
    bed_settle(&b);
    rv = b.server->rv;
    assert_int_equal(bed_version(&b, 0), rv);

    server_put_service(b.server, "shop", "web", 9);
    bed_settle(&b);
    assert_int_equal(bed_version(&b, 0), rv + 1);
    assert_int_equal(bed_version(&b, 1), rv);

    server_delete(b.server, KUBE_RESOURCE_SERVICES, "shop", "web");
    bed_settle(&b);
    assert_int_equal(bed_version(&b, 0), rv + 2);

    x = io_find(&b.server->io, "/services?watch=true");
    assert_non_null(x);
    b.server->rv += 40;
    snprintf(text, sizeof(text), "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":"
             "\"Service\",\"metadata\":{\"resourceVersion\":\"%llu\"}}}\n",
             (unsigned long long) b.server->rv);
    assert_true(io_body(&b.server->io, x, text));
    bed_settle(&b);
    assert_int_equal(bed_version(&b, 0), rv + 42);
    assert_int_equal(bed_version(&b, 1), rv);
    bed_done(&b);
}


/* Stopped at any moment: nothing in flight, no memory; the zone is whole. */
static void
test_shutdown(void **state)
{
    bed_t     b;
    unsigned  moment, step;

    (void) state;

    for (moment = 0; moment < 10; moment++) {
        bed_init(&b);
        bed_shop(&b);

        for (step = 0; step < moment; step++) {
            if (step % 2 == 0) {
                (void) bed_process(&b);

            } else {
                server_run(b.server);
            }
        }

        kube_informer_stop(b.inf);
        assert_null(io_find(&b.server->io, "/"));
        bed_stop(&b);
        server_assert_promise(b.server, &b.zone);

        /* who comes next takes over */
        bed_start(&b);
        bed_converge(&b);
        bed_assert_equal(&b);
        bed_done(&b);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_has_synced),
        cmocka_unit_test(test_update),
        cmocka_unit_test(test_hammer_controller),
        cmocka_unit_test(test_watch_disruption),
        cmocka_unit_test(test_store_resource_version),
        cmocka_unit_test(test_shutdown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

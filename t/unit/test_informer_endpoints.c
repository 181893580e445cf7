/*
 * test_informer_endpoints - "endpoints auto": when Endpoints are followed in
 * place of EndpointSlices, and what a state file of such an informer is worth.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "informer_bed.h"

#include "kube_reflector.h"
#include "kube_state.h"


/* Two Services, each with the endpoints of either kind. */
static void
shop_make(bed_t *b)
{
    server_put_service(b->server, "shop", "web", 1);
    server_put_endpoints(b->server, "shop", "web", 1);
    server_put_slice(b->server, "shop", "web-a", "web", 1);
    server_put_service(b->server, "shop", "api", 2);
    server_put_endpoints(b->server, "shop", "api", 2);
    server_put_slice(b->server, "shop", "api-a", "api", 2);
}


/* The zone has all of the server's Services and of those, and nothing else. */
static bool
follows(bed_t *b, kube_resource_t slices)
{
    char               ns[16];
    kube_scope_info_t  info;

    static view_t  view;

    if (!kube_informer_synced(b->inf)
        || zone_version(&b->zone, 1, &info, ns) == 0
        || info.resource != slices)
    {
        return false;
    }

    view_make(&view, &b->zone);

    return view.n == 4
           && view.counts[KUBE_RESOURCE_SERVICES] == 2
           && view.counts[slices] == 2
           && view_find(&view, KUBE_RESOURCE_SERVICES, "shop", "api") != NULL;
}


/* Lists of slices that are not found, until one is granted. */
static void
test_missing(void **state)
{
    bed_t     b;
    unsigned  missing, asked;

    (void) state;

    for (missing = 0; missing <= KUBE_MISSING_LISTS; missing++) {
        bed_init(&b);
        shop_make(&b);
        asked = 0;

        while (!kube_informer_synced(b.inf)) {
            b.server->no_slices = (asked < missing);
            asked += (io_find(&b.server->io, "/endpointslices?") != NULL);
            assert_true(asked <= KUBE_MISSING_LISTS + 1);
            server_run(b.server);
            (void) bed_process(&b);

            if (kube_informer_deadline(b.inf) > b.server->io.now_ms
                && io_find(&b.server->io, "?limit") == NULL)
            {
                b.server->io.now_ms = kube_informer_deadline(b.inf);
            }
        }

        b.server->no_slices = (missing == KUBE_MISSING_LISTS);
        bed_converge(&b);
        assert_true(follows(&b, (missing == KUBE_MISSING_LISTS)
                                ? KUBE_RESOURCE_ENDPOINTS
                                : KUBE_RESOURCE_ENDPOINTSLICES));

        /* neither is asked for that was not decided for */
        assert_int_equal(b.server->lists, 2);
        bed_done(&b);
    }
}


/* What is followed is followed on: by events, and by a successor. */
static void
test_stays(void **state)
{
    bed_t     b;
    unsigned  lists;

    (void) state;

    bed_init(&b);
    b.server->no_slices = true;
    shop_make(&b);
    bed_converge(&b);
    assert_true(follows(&b, KUBE_RESOURCE_ENDPOINTS));
    lists = b.server->lists;

    server_put_endpoints(b.server, "shop", "web", 9);
    bed_settle(&b);
    assert_true(follows(&b, KUBE_RESOURCE_ENDPOINTS));
    assert_int_equal(bed_version(&b, 1), b.server->rv);

    bed_stop(&b);
    b.server->no_slices = false;
    bed_start(&b);
    bed_converge(&b);
    assert_true(follows(&b, KUBE_RESOURCE_ENDPOINTS));
    assert_int_equal(b.server->lists, lists);
    bed_done(&b);
}


/* Who has no list of them yet has shown no need of them: it is seen anew. */
static void
test_asked_for_alone(void **state)
{
    bed_t     b;
    unsigned  n;

    (void) state;

    bed_init(&b);
    b.server->no_slices = true;
    shop_make(&b);

    for (n = 0; io_find(&b.server->io, "/endpoints?") == NULL; n++) {
        assert_true(n < 100);
        server_run(b.server);
        (void) bed_process(&b);

        if (kube_informer_deadline(b.inf) > b.server->io.now_ms
            && io_find(&b.server->io, "?limit") == NULL)
        {
            b.server->io.now_ms = kube_informer_deadline(b.inf);
        }
    }

    bed_stop(&b);
    b.server->no_slices = false;
    bed_start(&b);
    bed_converge(&b);
    assert_true(follows(&b, KUBE_RESOURCE_ENDPOINTSLICES));
    bed_done(&b);
}


/* Whichever allocation of a successor fails. */
static void
test_stays_no_memory(void **state)
{
    bool      failed;
    bed_t     b;
    size_t    n;
    unsigned  lists;

    (void) state;

    bed_init(&b);
    b.server->no_slices = true;
    shop_make(&b);
    bed_converge(&b);
    lists = b.server->lists;
    b.server->no_slices = false;

    for (n = 0, failed = true; failed; n++) {
        assert_true(n < 1000);
        failed = bed_succeed_without(&b, n);
        assert_true(follows(&b, KUBE_RESOURCE_ENDPOINTS));
        assert_int_equal(b.server->lists, lists);
    }

    assert_true(n > 4);
    bed_done(&b);
}


/* Services are not found either: that is a proxy, and no API server. */
static void
test_all_missing(void **state)
{
    bed_t           b;
    unsigned        i, k;
    io_exchange_t  *x;

    (void) state;

    bed_init(&b);
    shop_make(&b);

    for (i = 0; i < 40; i++) {
        (void) bed_process(&b);

        for (k = 0; k < IO_EXCHANGES_MAX; k++) {
            x = &b.server->io.exchanges[k];

            if (x->live) {
                assert_null(strstr(x->path, "/endpoints?"));
                io_answer(&b.server->io, x, 404, "");
            }
        }

        (void) bed_process(&b);
        b.server->io.now_ms += 10000;
    }

    bed_converge(&b);
    assert_true(follows(&b, KUBE_RESOURCE_ENDPOINTSLICES));
    bed_done(&b);
}


/* A state file's bytes, and whose it is. */
static uint64_t  file[8192];
static size_t    file_len;
static uint64_t  file_identity;


static void
file_make(bed_t *b)
{
    kube_state_info_t     info;
    kube_state_omitted_t  omitted;

    memset(&info, 0, sizeof(kube_state_info_t));
    omitted.n = 0;

    file_identity = kube_informer_identity(b->inf);
    info.identity = file_identity;
    info.written_ms = 1;

    assert_int_equal(kube_state_encode(kube_informer_writer(b->inf), &info,
                                       &omitted, file, sizeof(file), &file_len),
                     KUBE_OK);
}


/* A cold start, while the server is away, with that file. */
static void
file_load(bed_t *b)
{
    b->server->mute = true;
    (void) bed_process(b);
    assert_true(kube_informer_wants_state(b->inf));
    assert_false(kube_informer_accepts_state(b->inf, file_identity ^ 1));
    assert_true(kube_informer_accepts_state(b->inf, file_identity));
    assert_int_equal(kube_state_each(file, file_len, kube_informer_put_state,
                                     b->inf),
                     KUBE_OK);
    bed_settle(b);
}


/*
 * A file of either kind serves at a cold start; then what the server has takes
 * its place, whichever kind that is.
 */
static void
test_state_file(void **state)
{
    bed_t            b;
    unsigned         row;
    kube_resource_t  resources[2];

    static view_t  view;

    static const struct {
        bool  no_slices;       /* when it was written */
        bool  then;            /* and when the server is back */
    } rows[] = {
        { true, true }, { true, false }, { false, true }, { false, false }
    };

    (void) state;

    for (row = 0; row < 4; row++) {
        resources[0] = rows[row].no_slices ? KUBE_RESOURCE_ENDPOINTS
                                           : KUBE_RESOURCE_ENDPOINTSLICES;
        resources[1] = rows[row].then ? KUBE_RESOURCE_ENDPOINTS
                                      : KUBE_RESOURCE_ENDPOINTSLICES;

        bed_init(&b);
        b.server->no_slices = rows[row].no_slices;
        shop_make(&b);
        bed_converge(&b);
        assert_true(follows(&b, resources[0]));
        file_make(&b);
        bed_done(&b);

        bed_init(&b);
        file_load(&b);
        assert_false(kube_informer_synced(b.inf));
        view_make(&view, &b.zone);
        assert_int_equal(view.counts[KUBE_RESOURCE_SERVICES], 2);
        assert_int_equal(view.counts[resources[0]], 2);

        b.server->mute = false;
        b.server->no_slices = rows[row].then;
        shop_make(&b);
        b.server->io.now_ms += 600000;
        bed_converge(&b);
        bed_converge(&b);
        assert_true(follows(&b, resources[1]));
        assert_int_equal(kube_informer_identity(b.inf) == file_identity,
                         rows[row].no_slices == rows[row].then);
        bed_done(&b);
    }
}


static void
switch_oom(alloc_test_t *at, void *ctx)
{
    bed_t     b;
    unsigned  i;

    (void) ctx;

    bed_make(&b, ZONE_BYTES);
    b.server->no_slices = true;
    shop_make(&b);

    b.inf = bed_informer(&b, &at->alloc);

    if (b.inf == NULL) {
        assert_true(at->failed);
        munmap(b.mem, b.mem_size);
        free(b.server);
        return;
    }

    for (i = 0; i < 600 && !follows(&b, KUBE_RESOURCE_ENDPOINTS); i++) {
        server_run(b.server);
        (void) bed_process(&b);

        if (kube_informer_deadline(b.inf) > b.server->io.now_ms) {
            b.server->io.now_ms += 500;
        }

        if (at->failed && i % 8 == 7) {
            alloc_test_heal(at);
        }
    }

    assert_true(follows(&b, KUBE_RESOURCE_ENDPOINTS));
    bed_done(&b);
}


static void
test_oom(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(switch_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_stays),
        cmocka_unit_test(test_asked_for_alone),
        cmocka_unit_test(test_stays_no_memory),
        cmocka_unit_test(test_all_missing),
        cmocka_unit_test(test_state_file),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

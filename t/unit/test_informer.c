/*
 * test_informer - the whole way from bytes to the zone, with the real FIFO,
 * indexer and zone, against a small server; the core promise is checked after
 * every step.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "informer_bed.h"
#include "kube_zone_cause.h"
#include "kube_zone_guard.h"
#include "kube_zone_image.h"
#include "kube_zone_recover.h"


static void
test_sync_and_events(void **state)
{
    bed_t   b;
    size_t  chunk;

    (void) state;

    for (chunk = 0; chunk < 200; chunk += 67) {
        bed_init(&b);
        b.server->io.chunk = chunk;
        bed_shop(&b);
        assert_false(kube_informer_synced(b.inf));

        bed_settle(&b);
        bed_assert_equal(&b);
        assert_int_equal(b.server->lists, 2);
        assert_int_equal(b.server->lists_at_once, 1);
        assert_int_equal(b.changes[KUBE_CHANGE_ADD], 6);
        assert_int_equal(b.logged[KUBE_EV_SYNCED], 2);

        server_put_slice(b.server, "shop", "web-a", "web", 9);
        server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                      "web-b");
        server_put_service(b.server, "shop", "new", 4);
        server_delete(b.server, KUBE_RESOURCE_SERVICES, "infra", "echo");
        bed_settle(&b);
        bed_assert_equal(&b);
        assert_int_equal(bed_version(&b, 0), b.server->rv);
        assert_int_equal(bed_version(&b, 1), b.server->rv - 2);
        assert_int_equal(b.changes[KUBE_CHANGE_DELETE], 2);
        assert_int_equal(b.changes[KUBE_CHANGE_UPDATE], 1);
        assert_int_equal(b.changes[KUBE_CHANGE_ADD], 7);
        assert_int_equal(b.server->lists, 2);

        bed_done(&b);
    }
}


/* The window is gone: one list as a diff, what did not change is untouched. */
static void
test_relist_is_a_diff(void **state)
{
    bed_t              b;
    unsigned           i, updates;
    const view_row_t  *before;

    static view_t  old, new;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    view_make(&old, &b.zone);
    bed_stop(&b);

    server_put_slice(b.server, "shop", "web-a", "web", 21);
    server_delete(b.server, KUBE_RESOURCE_SERVICES, "infra", "echo");
    b.server->window = b.server->rv + 1;
    memset(b.changes, 0, sizeof(b.changes));

    bed_start(&b);
    server_run(b.server);
    (void) bed_process(&b);
    b.server->window = 0;
    bed_converge(&b);
    bed_assert_equal(&b);

    view_make(&new, &b.zone);
    updates = 0;

    for (i = 0; i < new.n; i++) {
        before = view_find(&old, new.rows[i].resource, new.rows[i].ns,
                           new.rows[i].name);
        assert_non_null(before);
        updates += (before->revision != new.rows[i].revision);
    }

    /* the slice and its Service */
    assert_int_equal(updates, 2);
    assert_int_equal(b.changes[KUBE_CHANGE_ADD], 0);
    assert_int_equal(b.changes[KUBE_CHANGE_UPDATE], 1);
    assert_int_equal(b.changes[KUBE_CHANGE_DELETE], 1);
    bed_done(&b);
}


/* More events at once than are applied in one turn: no version before them. */
static void
test_burst(void **state)
{
    bed_t     b;
    char      name[16], service[16];
    unsigned  i;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);

    /* of few Services: these do not wait for their turn */
    for (i = 0; i < KUBE_INFORMER_DELTAS + 100; i++) {
        snprintf(name, sizeof(name), "s-%u", i);
        snprintf(service, sizeof(service), "s-%u", i % 10);
        server_put_slice(b.server, "shop", name, service, i);
    }

    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(bed_version(&b, 1), b.server->rv);
    bed_done(&b);
}


/*
 * A restored server: readers of versions are told that a new epoch began.  Who
 * finds something lost has no version of its own, but what may be told again.
 */
static void
informer_rolls_back(bool lost)
{
    bed_t               b;
    unsigned            i, lists;
    uint64_t            epoch;
    kube_writer_info_t  info;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);

    if (lost) {
        kube_zone_writer_distrust(kube_informer_writer(b.inf));
    }

    bed_stop(&b);

    for (i = 0; i < b.server->objects_n; i++) {
        b.server->objects[i].rv = i + 1;
    }

    b.server->rv = 20;
    b.server->log_n = 0;
    b.server->window = UINT64_MAX;
    bed_start(&b);
    assert_int_equal(kube_informer_process(b.inf, b.server->io.now_ms, 1),
                     KUBE_OK);
    kube_zone_writer_info(&b.zone, &info);
    epoch = info.epoch;

    /* the promise does not hold until the older state is taken for true */
    for (i = 0; i < 5000 && b.logged[KUBE_EV_ROLLBACK] < 2; i++) {
        server_run(b.server);
        b.server->window = (b.server->lists >= 4) ? 0 : UINT64_MAX;
        assert_int_equal(kube_informer_process(b.inf, b.server->io.now_ms, 1),
                         KUBE_OK);

        if (kube_informer_deadline(b.inf) != KUBE_NEVER
            && kube_informer_deadline(b.inf) > b.server->io.now_ms)
        {
            b.server->io.now_ms += 100;
        }
    }

    assert_int_equal(b.logged[KUBE_EV_ROLLBACK], 2);
    kube_zone_writer_info(&b.zone, &info);
    assert_int_equal(info.epoch, epoch + 2);
    bed_converge(&b);
    bed_assert_equal(&b);
    assert_int_equal(bed_version(&b, 0), 20);

    /* nothing of the former epoch says that this is told again */

    lists = b.server->lists;
    server_put_service(b.server, "shop", "next", 5);
    bed_converge(&b);
    bed_assert_equal(&b);
    assert_int_equal(bed_version(&b, 0), 21);
    assert_int_equal(b.server->lists, lists);

    /* nothing of the former epoch bounds what a successor takes */

    bed_stop(&b);
    bed_start(&b);
    server_put_service(b.server, "shop", "new", 5);
    bed_converge(&b);
    bed_assert_equal(&b);
    assert_int_equal(bed_version(&b, 0), 22);
    assert_int_equal(b.server->lists, lists);
    bed_done(&b);
}


static void
test_rollback(void **state)
{
    (void) state;

    informer_rolls_back(false);
    informer_rolls_back(true);
}


/*
 * A list showed a version that was to come: the object's next event seems older
 * than what is held.  No version is shown for it until a list has told it.
 */
static void
informer_ahead(bool malformed)
{
    bed_t              b;
    kube_zone_usage_t  usage;

    bed_init(&b);
    bed_shop(&b);
    server_row(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web-a")->rv
        = 9000;
    bed_settle(&b);
    assert_int_equal(b.server->lists, 2);

    b.server->malformed = malformed;
    server_put_slice(b.server, "shop", "web-a", "web", 7);
    bed_settle(&b);
    assert_int_equal(bed_version(&b, 1), b.server->rv);
    assert_int_equal(b.server->lists, 3);
    kube_zone_usage(&b.zone, &usage);
    assert_int_equal(usage.refused, malformed);

    if (!malformed) {
        bed_assert_equal(&b);
    }

    bed_done(&b);
}


static void
test_ahead(void **state)
{
    (void) state;

    informer_ahead(false);
    informer_ahead(true);
}


/* Who finds that the zone was written to trusts nothing of it any more. */
static void
test_disturbed(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    b.server->io.now_ms += KUBE_INFORMER_CHECK_MS;
    assert_int_equal(bed_process(&b), KUBE_OK);
    assert_int_equal(kube_word_get(&b.zone.image->history.distrust), 0);

    /* as a reader does who finds a record that is none */
    kube_word_add(&b.zone.image->corrupt, 1);
    b.server->io.now_ms += KUBE_INFORMER_CHECK_MS;
    assert_int_equal(bed_process(&b), KUBE_CHANGED);
    assert_int_equal(kube_word_get(&b.zone.image->history.distrust), 1);

    bed_stop(&b);
    bed_start(&b);
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(kube_word_get(&b.zone.image->history.distrust), 0);
    assert_int_equal(b.server->lists, 4);
    bed_done(&b);
}


/* While a list runs, and after one broke, nothing is claimed of it. */
static void
test_version_waits(void **state)
{
    bed_t              b;
    char               ns[16];
    unsigned           slot;
    uint64_t           rv;
    kube_scope_info_t  before, info;

    (void) state;

    for (slot = 0; slot < 2; slot++) {
        bed_init(&b);
        bed_shop(&b);
        bed_settle(&b);
        rv = zone_version(&b.zone, slot, &before, ns);
        bed_stop(&b);

        server_put_service(b.server, "shop", "aaa", 31);
        server_put_slice(b.server, "shop", "zzz", "web", 32);
        b.server->window = b.server->rv + 1;

        bed_start(&b);
        (void) bed_process(&b);
        server_run(b.server);
        b.server->window = 0;
        (void) bed_process(&b);

        if (slot == 1) {

            /* Services come first */
            server_run(b.server);
            (void) bed_process(&b);
        }

        assert_non_null(io_find(&b.server->io, slot
                                ? "/endpointslices?limit" : "/services?limit"));
        b.server->cut_end = true;
        server_run(b.server);
        assert_false(b.server->cut_end);
        b.server->mute = true;
        bed_settle(&b);

        assert_true(zone_version(&b.zone, slot, &info, ns) == rv);
        assert_int_equal(info.count, before.count);
        assert_true(info.digest.lo == before.digest.lo);

        b.server->mute = false;
        bed_converge(&b);
        bed_assert_equal(&b);
        assert_true(bed_version(&b, slot) == b.server->rv);
        bed_done(&b);
    }
}


/* More than one process() can do: the version never runs ahead of it. */
static void
test_backlog(void **state)
{
    bed_t             b;
    char              name[32];
    unsigned          i, steps;
    uint64_t          rv;
    kube_histogram_t  h;

    (void) state;

    bed_init(&b);
    bed_settle(&b);
    rv = bed_version(&b, 0);

    for (i = 0; i < 2 * KUBE_INFORMER_DELTAS; i++) {
        snprintf(name, sizeof(name), "s%04u", i);
        server_put_service(b.server, "shop", name, i);
    }

    server_run(b.server);

    for (steps = 0; bed_version(&b, 0) != b.server->rv; steps++) {
        assert_true(bed_version(&b, 0) >= rv);
        assert_true(steps < 100);
        rv = bed_version(&b, 0);
        (void) bed_process(&b);
        server_run(b.server);
    }

    assert_true(steps >= 2);
    kube_zone_histogram_read(&b.zone, KUBE_HISTOGRAM_PROCESSING_LATENCY,
                             KUBE_RESOURCE_SERVICES, &h);
    assert_true(h.count >= 2 * KUBE_INFORMER_DELTAS);
    bed_assert_equal(&b);
    bed_done(&b);
}


/* More than fits: named or counted, the version moves, room heals. */
static void
full_zone(size_t size, unsigned slices, unsigned endpoints)
{
    bed_t              b;
    char               name[32];
    unsigned           i;
    kube_scope_info_t  info;

    static view_t  view;

    bed_make(&b, size);
    b.server->endpoints = endpoints;

    for (i = 0; i < slices; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        server_put_slice(b.server, "shop", name, "web", i);
    }

    bed_start(&b);
    bed_settle(&b);

    view_make(&view, &b.zone);
    assert_in_range(view.counts[1], 20, slices - 1);

    assert_true(view.n < slices);
    assert_int_equal(zone_version(&b.zone, 1, &info, name), b.server->rv);
    assert_int_equal(view.n + info.refused_unnamed, slices);
    assert_true(kube_informer_synced(b.inf));
    server_assert_promise(b.server, &b.zone);

    for (i = 0; i < slices - 15; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop", name);

        if (i % 16 == 0) {
            bed_settle(&b);
        }
    }

    for (i = 0; i < 20; i++) {
        bed_converge(&b);
        b.server->io.now_ms += 15000;
    }

    bed_assert_equal(&b);
    assert_true(b.server->lists > 2);
    assert_true(b.server->lists < 30);
    bed_done(&b);
}


static void
test_full_zone(void **state)
{
    (void) state;

    full_zone(64u << 10, 90, 80);
    full_zone(64u << 10, 900, 1);
}


/* The lists of so many minutes in which nothing changes. */
static unsigned
lists_within(bed_t *b, unsigned minutes)
{
    unsigned  lists;
    uint64_t  until_ms;

    lists = b->server->lists;
    until_ms = b->server->io.now_ms + minutes * 60000ull;

    while (b->server->io.now_ms < until_ms) {
        b->server->io.now_ms += 1000;
        bed_settle(b);
    }

    return b->server->lists - lists;
}


/*
 * More that cannot be held than there is room for names: those that are left
 * get theirs where it has returned, and then nothing is asked for.
 */
static void
test_full_names(void **state)
{
    bed_t              b;
    char               name[32], ns[16];
    unsigned           i;
    kube_scope_info_t  info;

    static view_t  view;

    (void) state;

    bed_make(&b, 64u << 10);
    b.server->malformed = true;

    for (i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        server_put_slice(b.server, "shop", name, "web", i);
    }

    bed_start(&b);
    bed_settle(&b);
    (void) zone_version(&b.zone, 1, &info, ns);
    assert_in_range(info.refused_unnamed, 1, 199);
    assert_int_equal(lists_within(&b, 10), 0);

    for (i = 0; i < 198; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop", name);
    }

    assert_int_equal(lists_within(&b, 60), 1);
    assert_int_equal(zone_version(&b.zone, 1, &info, ns), b.server->rv);
    assert_int_equal(info.refused_unnamed, 0);
    view_make(&view, &b.zone);
    assert_int_equal(view.n, 2);
    bed_done(&b);
}


static void
test_errors_are_shown(void **state)
{
    bed_t              b;
    alloc_test_t       at;
    kube_arena_t       arena;
    kube_scope_info_t  info;

    (void) state;

    bed_init(&b);
    (void) bed_process(&b);
    io_answer(&b.server->io, io_find(&b.server->io, "/services?"), 403,
              "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403,"
              "\"message\":\"services is forbidden\"}");
    (void) bed_process(&b);

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 16);
    assert_int_equal(kube_zone_scope_read(&b.zone, 0, &arena, &info), KUBE_OK);
    assert_true(kube_str_eq(info.error_reason, KUBE_STR("forbidden")));
    assert_true(kube_str_eq(info.error_message,
                            KUBE_STR("services is forbidden")));
    assert_true(info.error_at_ms > 1700000000000);
    kube_arena_done(&arena);

    /* the other scope is not held up */
    server_run(b.server);
    bed_settle(&b);
    assert_true(bed_version(&b, 1) != 0);
    bed_done(&b);
}


static void
bed_forbid_services(bed_t *b)
{
    (void) bed_process(b);
    (void) bed_process(b);
    io_answer(&b->server->io, io_find(&b->server->io, "/services?"), 403,
              "{\"kind\":\"Status\",\"code\":403}");
    (void) bed_process(b);
}


/* A scope that is forbidden has none to come; one that is added later does not
   begin them anew. */
static void
test_first_lists_are_over(void **state)
{
    bed_t  b;

    (void) state;

    bed_make(&b, ZONE_BYTES);
    b.namespaces[0] = KUBE_STR("shop");
    b.namespaces[1] = KUBE_STR("infra");
    b.namespaces_n = 1;
    bed_start(&b);
    bed_shop(&b);
    bed_forbid_services(&b);
    assert_int_equal(kube_zone_ready(&b.zone), 0);

    /* its successor is amid them, too */

    bed_stop(&b);
    bed_start(&b);
    bed_forbid_services(&b);
    assert_int_equal(kube_zone_ready(&b.zone), 0);

    server_list(b.server, io_find(&b.server->io, "/endpointslices?"));
    io_done(io_find(&b.server->io, "/endpointslices?"), KUBE_OK, "");
    (void) bed_process(&b);
    (void) bed_process(&b);
    assert_false(kube_informer_synced(b.inf));
    assert_int_equal(kube_zone_ready(&b.zone), KUBE_READY_LISTED);

    bed_stop(&b);
    b.namespaces_n = 2;
    bed_start(&b);
    (void) bed_process(&b);
    assert_int_equal(kube_zone_ready(&b.zone), KUBE_READY_LISTED);
    bed_done(&b);
}


/*
 * What was listed, but is not yet in the zone, has no age: requests of a key
 * with variables wait for who never had one, also once another informer process
 * goes on.
 */
static void
age_of_a_list_in_turns(bed_t *b)
{
    char               ns[16];
    unsigned           slot, steps, between;
    uint64_t           age;
    kube_scope_info_t  info;

    static view_t  view;

    between = 0;

    for (steps = 0; !kube_informer_synced(b->inf); steps++) {
        assert_true(steps < 100);
        server_run(b->server);
        (void) bed_process(b);
        view_make(&view, &b->zone);

        for (slot = 0; slot < KUBE_SCOPES_A_NAMESPACE; slot++) {
            (void) zone_version(&b->zone, slot, &info, ns);
            age = kube_zone_scope_age(&b->zone, slot, b->server->io.now_ms);
            assert_int_equal(info.synced, age != KUBE_NEVER);
            between += (!info.synced && view.counts[slot] != 0);
        }
    }

    assert_true(between >= 2);
}


static void
test_age_of_the_first_lists(void **state)
{
    bed_t     b;
    char      name[32];
    unsigned  i;

    (void) state;

    bed_make(&b, ZONE_BYTES);

    for (i = 0; i < 3 * KUBE_INFORMER_SERVICES; i++) {
        snprintf(name, sizeof(name), "s%04u", i);
        server_put_service(b.server, "shop", name, i);
    }

    bed_start(&b);
    (void) bed_process(&b);
    bed_stop(&b);
    bed_start(&b);
    age_of_a_list_in_turns(&b);

    /* and the one that it has stays until there is another */
    b.server->mute = true;
    b.server->io.now_ms += 5000;
    bed_settle(&b);
    assert_int_equal(kube_zone_scope_age(&b.zone, 0, b.server->io.now_ms),
                     5000);
    bed_done(&b);
}


/* What has yet to be listed is awaited, whatever else has been. */
static void
test_settled_awaits_a_list(void **state)
{
    bed_t  b;
    bool   unconfirmed;

    (void) state;

    bed_make(&b, ZONE_BYTES);
    b.namespaces[0] = KUBE_STR("shop");
    b.namespaces_n = 1;
    bed_start(&b);
    bed_shop(&b);
    (void) bed_process(&b);
    (void) bed_process(&b);
    server_list(b.server, io_find(&b.server->io, "/services?"));
    io_done(io_find(&b.server->io, "/services?"), KUBE_OK, "");
    (void) bed_process(&b);
    (void) bed_process(&b);
    assert_non_null(io_find(&b.server->io, "/endpointslices?"));
    assert_false(kube_informer_settled(b.inf, &unconfirmed));
    bed_done(&b);
}


/* A list that hangs holds up no other for more than 5 s. */
static void
test_list_beside(void **state)
{
    bed_t           b;
    io_exchange_t  *x;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    (void) bed_process(&b);
    (void) bed_process(&b);

    x = io_find(&b.server->io, "/services?");
    assert_non_null(x);
    assert_null(io_find(&b.server->io, "/endpointslices?"));
    assert_int_equal(kube_informer_deadline(b.inf),
                     b.server->io.now_ms + KUBE_LIST_TURN_MS);

    b.server->io.now_ms += KUBE_LIST_TURN_MS - 1;
    (void) bed_process(&b);
    assert_null(io_find(&b.server->io, "/endpointslices?"));
    b.server->io.now_ms++;
    (void) bed_process(&b);
    assert_non_null(io_find(&b.server->io, "/endpointslices?"));
    assert_true(x->live);

    server_list(b.server, io_find(&b.server->io, "/endpointslices?"));
    io_done(io_find(&b.server->io, "/endpointslices?"), KUBE_OK, "");
    (void) bed_process(&b);
    (void) bed_process(&b);
    assert_int_equal(bed_version(&b, 1), b.server->rv);
    assert_int_equal(bed_version(&b, 0), 0);

    /* it is taken when it comes, from where it was */
    server_list(b.server, x);
    io_done(x, KUBE_OK, "");
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, 2);
    bed_done(&b);
}


/* Everything at once, at random; the promise holds after every step. */
static void
test_random(void **state)
{
    bed_t           b;
    char            name[32], service[32];
    unsigned        step, i, seed, takeovers;
    kube_random_t   random;
    io_exchange_t  *x;

    (void) state;

    for (seed = 1; seed <= 6; seed++) {

        bed_init(&b);
        kube_random_init(&random, seed);
        takeovers = 0;

        for (step = 0; step < 400; step++) {

            snprintf(name, sizeof(name), "n%u",
                     (unsigned) kube_random_range(&random, 0, 15));
            snprintf(service, sizeof(service), "n%u",
                     (unsigned) kube_random_range(&random, 0, 15));

            switch (kube_random_range(&random, 0, 12)) {

            case 0:
            case 1:
            case 2:
                server_put_slice(b.server, "shop", name, service, step);
                break;

            case 3:
            case 4:
                server_put_service(b.server, "shop", name, step);
                break;

            case 5:
                server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                              name);
                break;

            case 6:
                server_delete(b.server, KUBE_RESOURCE_SERVICES, "shop", name);
                break;

            case 7:
                b.server->io.chunk = kube_random_range(&random, 0, 300);
                break;

            case 8:
                for (i = 0; i < IO_EXCHANGES_MAX; i++) {
                    x = &b.server->io.exchanges[i];

                    if (x->live && kube_random_range(&random, 0, 1)) {
                        io_done(x, KUBE_CLOSED, "cut");
                    }
                }

                break;

            case 9:
                if (kube_random_range(&random, 0, 3) == 0) {
                    b.server->window = b.server->rv;
                }

                break;

            case 10:
                if (kube_random_range(&random, 0, 3) == 0) {
                    bed_stop(&b);
                    bed_start(&b);
                    takeovers++;
                }

                break;

            case 11:
                b.server->cut_list = (unsigned)
                    kube_random_range(&random, 1, 4000);
                break;

            default:
                b.server->io.now_ms += kube_random_range(&random, 0, 5000);
                break;
            }

            if (kube_random_range(&random, 0, 2) != 0) {
                server_run(b.server);
            }

            (void) bed_process(&b);
        }

        b.server->cut_list = 0;
        bed_converge(&b);
        bed_assert_equal(&b);
        assert_int_equal(b.server->lists_at_once, 1);
        assert_true(takeovers > 0);
        assert_true(b.server->lists > 2);
        bed_done(&b);
    }
}


/* An event without memory for it is late: until then there is no version. */
static void
test_event_without_memory(void **state)
{
    bed_t               b;
    char                name[16];
    unsigned            k, waited;
    uint64_t            queued, late_us, applied;
    kube_histogram_t    h;
    kube_writer_info_t  info;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);

    /* the beginning and the end of a list were read at no time */
    kube_zone_histogram_read(&b.zone, KUBE_HISTOGRAM_PROCESSING_LATENCY,
                             KUBE_RESOURCE_SERVICES, &h);
    assert_int_equal(h.count, 0);

    kube_zone_histogram_read(&b.zone, KUBE_HISTOGRAM_PROCESSING_LATENCY,
                             KUBE_RESOURCE_ENDPOINTSLICES, &h);
    applied = h.count;
    late_us = h.sum;
    waited = 0;

    for (k = 1; k < 20; k++) {
        snprintf(name, sizeof(name), "e-%u", k);
        server_put_slice(b.server, "shop", name, name, k);
        alloc_test_fail(&b.own, k, true);
        server_run(b.server);
        (void) bed_process(&b);
        (void) bed_process(&b);

        /* what waits is shown, since when, and how long it did in the end */

        queued = kube_zone_scope_counter(&b.zone, 1,
                                         KUBE_COUNTER_GAUGE_QUEUED);
        kube_zone_writer_info(&b.zone, &info);
        assert_int_equal(info.queue_depth, queued);
        assert_int_equal(info.queue_since_ms,
                         queued ? b.server->io.now_ms : 0);
        waited += (queued != 0);

        alloc_test_heal(&b.own);
        b.server->io.now_ms += 5000;
        bed_converge(&b);
        bed_assert_equal(&b);

        kube_zone_histogram_read(&b.zone, KUBE_HISTOGRAM_PROCESSING_LATENCY,
                                 KUBE_RESOURCE_ENDPOINTSLICES, &h);
        assert_int_equal(h.count, ++applied);
        assert_true(h.sum - late_us >= (queued ? 5000000u : 0u));
        late_us = h.sum;
        assert_int_equal(kube_zone_scope_counter(&b.zone, 1,
                                                 KUBE_COUNTER_GAUGE_QUEUED),
                         0);
    }

    assert_true(waited != 0);

    bed_done(&b);
}


static void
oom_run(alloc_test_t *at, void *ctx)
{
    bed_t     b;
    unsigned  i;

    (void) ctx;

    bed_make(&b, ZONE_BYTES);
    bed_shop(&b);

    b.inf = bed_informer(&b, &at->alloc);

    if (b.inf == NULL) {
        assert_true(at->failed);
        munmap(b.mem, b.mem_size);
        free(b.server);
        return;
    }

    for (i = 0; i < 200 && !kube_informer_synced(b.inf); i++) {
        server_run(b.server);
        (void) bed_process(&b);

        if (at->failed && i % 8 == 7) {
            alloc_test_heal(at);
            b.server->io.now_ms += 5000;
        }
    }

    assert_true(kube_informer_synced(b.inf));
    server_put_slice(b.server, "shop", "web-a", "web", 99);
    bed_converge(&b);
    bed_assert_equal(&b);
    bed_done(&b);
}


static void
test_oom(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(oom_run, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_sync_and_events),
        cmocka_unit_test(test_relist_is_a_diff),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_event_without_memory),
        cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_disturbed),
        cmocka_unit_test(test_version_waits),
        cmocka_unit_test(test_backlog),
        cmocka_unit_test(test_full_zone),
        cmocka_unit_test(test_full_names),
        cmocka_unit_test(test_errors_are_shown),
        cmocka_unit_test(test_first_lists_are_over),
        cmocka_unit_test(test_age_of_the_first_lists),
        cmocka_unit_test(test_settled_awaits_a_list),
        cmocka_unit_test(test_list_beside),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

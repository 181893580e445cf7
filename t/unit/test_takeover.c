/*
 * test_takeover - one informer after another on the same zone: resuming,
 * changed scopes, damage, crashes, state files.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "informer_bed.h"
#include "kube_zone_counters.h"
#include "kube_zone_image.h"
#include "kube_zone_poison.h"
#include "kube_zone_recover.h"
#include "kube_zone_scope.h"
#include "kube_zone_writer.h"


/* The scope that has no room for its record; KUBE_SCOPES_MAX: none. */
static unsigned  takeover_full = KUBE_SCOPES_MAX;

/* What a death after the record of scope 1 leaves of it; NULL: nobody asks. */
static bed_t  *takeover_dying;
static char   *takeover_left;


static kube_rc_t
takeover_scope_publish(kube_zone_writer_t *w, unsigned scope,
    const kube_scope_info_t *info)
{
    kube_rc_t  rc;

    rc = (scope == takeover_full) ? KUBE_FULL
                                  : kube_zone_scope_publish(w, scope, info);

    if (takeover_dying != NULL && scope == 1) {
        memcpy(takeover_left, takeover_dying->mem, takeover_dying->mem_size);
        takeover_dying = NULL;
    }

    return rc;
}


#define kube_zone_scope_publish  takeover_scope_publish

#include "kube_informer_takeover.c"

#undef kube_zone_scope_publish


static void
test_take_over(void **state)
{
    bed_t     b;
    unsigned  i;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);

    for (i = 0; i < 3; i++) {
        bed_stop(&b);
        server_put_slice(b.server, "shop", "web-a", "web", 20 + i);
        bed_start(&b);
        bed_settle(&b);
        bed_assert_equal(&b);
        assert_int_equal(bed_version(&b, 1), b.server->rv);
    }

    /* not one list more, and nobody asks for a state file */
    assert_int_equal(b.server->lists, 2);
    assert_false(kube_informer_wants_state(b.inf));
    assert_int_equal(b.logged[KUBE_EV_TAKEOVER], 4);
    bed_done(&b);
}


/* Another selector: listed again while the old data serves. */
static void
test_scope_changed(void **state)
{
    bed_t              b;
    char               ns[16];
    kube_scope_info_t  info;

    static view_t  view;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    bed_stop(&b);
    kube_zone_scope_set(&b.zone, 1, KUBE_COUNTER_EVENTS_MODIFIED, 7);
    kube_zone_scope_set(&b.zone, 0, KUBE_COUNTER_EVENTS_MODIFIED, 7);

    b.selector = "app=web";
    bed_start(&b);
    b.server->mute = true;
    bed_settle(&b);

    /* nothing is claimed, but all is there; what was counted was another's */
    assert_int_equal(zone_version(&b.zone, 0, &info, ns), 0);
    assert_false(info.synced);
    assert_int_equal(kube_zone_scope_counter(&b.zone, 0,
                                             KUBE_COUNTER_EVENTS_MODIFIED),
                     0);
    assert_int_equal(kube_zone_scope_counter(&b.zone, 1,
                                             KUBE_COUNTER_EVENTS_MODIFIED),
                     7);
    assert_true(zone_version(&b.zone, 1, &info, ns) != 0);
    assert_true(info.synced);
    view_make(&view, &b.zone);
    assert_int_equal(view.n, 6);
    assert_non_null(strstr(io_find(&b.server->io, "/services?")->path,
                           "labelSelector=app%3Dweb"));

    /* the server knows fewer now */
    server_delete(b.server, KUBE_RESOURCE_SERVICES, "shop", "api");
    b.server->mute = false;
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, 3);
    bed_done(&b);
}


/* Namespaces come, go and change places: only what is new is listed. */
static void
test_namespaces(void **state)
{
    bed_t  b;

    static view_t  view;

    (void) state;

    bed_make(&b, ZONE_BYTES);
    bed_shop(&b);
    server_put_service(b.server, "third", "one", 7);

    b.namespaces[0] = KUBE_STR("shop");
    b.namespaces[1] = KUBE_STR("infra");
    b.namespaces_n = 2;
    bed_start(&b);
    bed_settle(&b);
    assert_true(kube_informer_synced(b.inf));
    assert_int_equal(b.server->lists, 4);
    assert_int_equal(b.server->lists_at_once, 1);
    view_make(&view, &b.zone);
    assert_int_equal(view.n, 6);
    bed_stop(&b);

    b.namespaces[0] = KUBE_STR("third");
    b.namespaces[1] = KUBE_STR("shop");
    bed_start(&b);
    bed_settle(&b);
    assert_true(kube_informer_synced(b.inf));
    assert_int_equal(b.server->lists, 6);

    /* what no scope covers any more is gone */
    view_make(&view, &b.zone);
    assert_int_equal(view.n, 6);
    assert_null(view_find(&view, KUBE_RESOURCE_SERVICES, "infra", "echo"));
    assert_non_null(view_find(&view, KUBE_RESOURCE_SERVICES, "third", "one"));
    bed_stop(&b);

    /* and one alone: the other slots are empty */
    b.namespaces[0] = KUBE_STR("shop");
    b.namespaces_n = 1;
    bed_start(&b);
    bed_settle(&b);
    assert_int_equal(b.server->lists, 6);
    assert_int_equal(bed_version(&b, 2), 0);
    assert_int_equal(bed_version(&b, 3), 0);
    bed_done(&b);
}


static uint64_t
contact(const bed_t *b, unsigned scope)
{
    return kube_zone_scope_counter(&b->zone, scope,
                                   KUBE_COUNTER_GAUGE_CONTACT_MS);
}


/* Followed in shop and in one namespace more, scope i current at i + 1. */
static void
age_begin(bed_t *b, const char *more)
{
    unsigned  i;

    bed_make(b, ZONE_BYTES);
    bed_shop(b);
    b->namespaces[0] = KUBE_STR("shop");
    b->namespaces[1] = kube_str(more);
    b->namespaces_n = 2;
    b->endpoints = KUBE_ENDPOINTS_SLICES;
    bed_start(b);
    bed_settle(b);

    for (i = 0; i < 4; i++) {
        kube_zone_scope_set(&b->zone, i, KUBE_COUNTER_GAUGE_CONTACT_MS, i + 1);
    }

    b->server->mute = true;
    bed_stop(b);
}


/* What is served goes on to age, whatever place its scope has now. */
static void
test_age(void **state)
{
    bed_t          b;
    unsigned       i;
    kube_health_t  health;

    (void) state;

    age_begin(&b, "infra");

    /* they change places */
    b.namespaces[0] = KUBE_STR("infra");
    b.namespaces[1] = KUBE_STR("shop");
    bed_start(&b);
    bed_settle(&b);

    for (i = 0; i < 4; i++) {
        assert_true(contact(&b, i) == (i + 2) % 4 + 1);
    }

    bed_stop(&b);

    /* another selector: as old as the oldest; and one that was never there */
    b.selector = "app=web";
    b.namespaces[0] = KUBE_STR("shop");
    b.namespaces[1] = KUBE_STR("third");
    bed_start(&b);
    bed_settle(&b);
    assert_true(contact(&b, 0) == 1 && contact(&b, 1) == 2);
    assert_true(contact(&b, 2) == 0 && contact(&b, 3) == 0);

    kube_zone_health(&b.zone, 1000000000, 1000, &health);
    assert_true(health.stale && !health.synced);
    bed_done(&b);
}


/* Endpoints have no object yet: slices serve, of a namespace that has some. */
static void
test_age_of_another_resource(void **state)
{
    bed_t  b;

    (void) state;

    age_begin(&b, "empty");

    b.endpoints = KUBE_ENDPOINTS_ENDPOINTS;
    bed_start(&b);
    bed_settle(&b);
    assert_true(contact(&b, 0) == 1 && contact(&b, 1) == 2);
    assert_true(contact(&b, 2) == 3 && contact(&b, 3) == 0);
    bed_done(&b);
}


/* The same slices serve, whatever else changes before the first list. */
static void
test_age_after_changes(void **state)
{
    bed_t  b;

    (void) state;

    age_begin(&b, "empty");

    /* all namespaces, and another resource */
    b.namespaces_n = 0;
    b.endpoints = KUBE_ENDPOINTS_ENDPOINTS;
    bed_start(&b);
    bed_settle(&b);
    assert_true(contact(&b, 0) == 1 && contact(&b, 1) == 2);
    bed_stop(&b);

    /* what was not listed has no count */
    b.namespaces_n = 1;
    bed_start(&b);
    bed_settle(&b);
    assert_true(contact(&b, 0) == 1 && contact(&b, 1) == 2);
    bed_done(&b);
}


/* A record that was damaged: nothing the zone claims is trusted. */
static void
test_damaged_zone(void **state)
{
    bed_t     b;
    char     *p, *end;
    unsigned  n;

    static view_t  view;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    bed_stop(&b);

    n = 0;
    end = (char *) b.mem + b.mem_size;

    for (p = b.mem; p + 5 <= end; p++) {

        if (memcmp(p, "web-a", 5) == 0) {
            *p ^= 0x01;
            n++;
        }
    }

    assert_true(n > 0);

    bed_start(&b);
    b.server->mute = true;
    (void) kube_informer_process(b.inf, b.server->io.now_ms, 1);
    view_make(&view, &b.zone);
    assert_null(view_find(&view, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                          "web-a"));
    assert_int_equal(bed_version(&b, 0), 0);
    assert_int_equal(bed_version(&b, 1), 0);

    b.server->mute = false;
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, 4);
    bed_done(&b);
}


/* Becomes the writer between two informers. */
static kube_zone_writer_t *
takeover_writer(bed_t *b, kube_takeover_t *takeover)
{
    kube_zone_writer_t  *w;

    w = kube_zone_writer_create(&b->own.alloc, &b->zone);
    assert_non_null(w);
    assert_int_equal(kube_zone_writer_acquire(w, b->server->io.now_ms,
                                              takeover), KUBE_OK);
    return w;
}


/* What was cut off is distrusted until every scope shows no version. */
static void
test_distrust(void **state)
{
    bed_t                b;
    unsigned             i;
    uint32_t             e;
    kube_takeover_t      takeover;
    kube_zone_writer_t  *w;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    bed_stop(&b);

    w = takeover_writer(&b, &takeover);
    assert_false(takeover.distrust);
    e = kube_zone_writer_find(w, KUBE_RESOURCE_ENDPOINTSLICES,
                              KUBE_STR("shop"), KUBE_STR("web-a"));
    assert_int_not_equal(e, 0);
    kube_zone_record_at(&b.zone,
                        kube_zone_entry_offset(&b.zone, e))->check ^= 1;
    kube_zone_writer_destroy(w);

    /* the first finds it, and the next, who find nothing, know of it */
    for (i = 0; i < 3; i++) {
        w = takeover_writer(&b, &takeover);
        assert_true(takeover.distrust);
        assert_int_equal(takeover.cut_off, i == 0);
        kube_zone_writer_destroy(w);
    }

    /* as long as one of them shows a version, for its record has no room */
    takeover_full = 1;
    bed_start(&b);
    assert_int_equal(kube_informer_process(b.inf, b.server->io.now_ms, 0),
                     KUBE_OK);
    bed_stop(&b);
    takeover_full = KUBE_SCOPES_MAX;
    w = takeover_writer(&b, &takeover);
    assert_true(takeover.distrust);
    kube_zone_writer_destroy(w);

    bed_start(&b);
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, 4);

    /* there is no version, but more than in any state file */
    assert_false(kube_informer_wants_state(b.inf));
    bed_stop(&b);

    w = takeover_writer(&b, &takeover);
    assert_false(takeover.distrust);
    kube_zone_writer_destroy(w);
    bed_start(&b);
    bed_settle(&b);
    assert_int_equal(b.server->lists, 4);
    bed_done(&b);
}


/*
 * A shop with a slice of no Service, whose informer has stopped: another writer
 * in *w, and the slice's entry.
 */
static uint32_t
takeover_lone(bed_t *b, kube_zone_writer_t **w)
{
    uint32_t         e;
    kube_takeover_t  takeover;

    bed_init(b);
    bed_shop(b);
    server_put_slice(b->server, "shop", "lone-a", "lone", 3);
    bed_settle(b);
    bed_stop(b);

    *w = takeover_writer(b, &takeover);
    e = kube_zone_writer_find(*w, KUBE_RESOURCE_ENDPOINTSLICES,
                              KUBE_STR("shop"), KUBE_STR("lone-a"));
    assert_int_not_equal(e, 0);

    return e;
}


/*
 * A process that died within a list, and its successor: what it took readers
 * have seen, so no older list may follow, but of another server.
 */
static void
test_floor(void **state)
{
    bed_t                b;
    char                 floor[64];
    unsigned             other;
    kube_zone_writer_t  *w;
    kube_takeover_t      takeover;

    (void) state;

    for (other = 0; other < 2; other++) {
        bed_init(&b);
        bed_shop(&b);
        bed_settle(&b);
        bed_stop(&b);
        b.selector = "app=web";
        snprintf(floor, sizeof(floor),
                 "resourceVersion=%llu&resourceVersionMatch=NotOlderThan",
                 (unsigned long long)
                 server_row(b.server, KUBE_RESOURCE_SERVICES, "infra",
                            "echo")->rv);

        if (other) {
            w = takeover_writer(&b, &takeover);
            assert_int_equal(kube_zone_server_set(w, KUBE_STR("https://b")),
                             KUBE_OK);
            kube_zone_writer_destroy(w);
        }

        b.server->mute = true;
        bed_start(&b);
        bed_settle(&b);

        if (other) {
            assert_non_null(strstr(io_find(&b.server->io, "/services?")->path,
                                   "resourceVersion=0"));

        } else {
            assert_non_null(strstr(io_find(&b.server->io, "/services?")->path,
                                   floor));
        }

        b.server->mute = false;
        bed_settle(&b);
        bed_assert_equal(&b);
        bed_done(&b);
    }
}


/* The newest object is lost: readers have seen what the record says. */
static void
test_floor_of_a_record(void **state)
{
    bed_t                b;
    char                 floor[64];
    uint32_t             e;
    kube_takeover_t      takeover;
    kube_zone_writer_t  *w;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    server_put_service(b.server, "infra", "echo", 4);
    bed_settle(&b);
    bed_stop(&b);

    w = takeover_writer(&b, &takeover);
    e = kube_zone_writer_find(w, KUBE_RESOURCE_SERVICES, KUBE_STR("infra"),
                              KUBE_STR("echo"));
    assert_int_not_equal(e, 0);
    kube_zone_record_at(&b.zone,
                        kube_zone_entry_offset(&b.zone, e))->check ^= 1;
    kube_zone_writer_destroy(w);

    snprintf(floor, sizeof(floor),
             "resourceVersion=%llu&resourceVersionMatch=NotOlderThan",
             (unsigned long long) b.server->rv);
    b.server->mute = true;
    bed_start(&b);
    bed_settle(&b);
    assert_non_null(strstr(io_find(&b.server->io, "/services?")->path, floor));

    b.server->mute = false;
    bed_settle(&b);
    bed_assert_equal(&b);
    bed_done(&b);
}


/*
 * A deletion leaves nothing that is newer: the record has its version before it
 * is seen, and a death then is followed by no older list.  listed: a list was
 * without the object.
 */
static void
takeover_deletion(bool listed)
{
    bed_t              b;
    char               floor[64], ns[16];
    unsigned           i;
    kube_scope_info_t  info;

    static view_t  view;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);

    if (listed) {
        bed_stop(&b);
        b.server->window = b.server->rv + 2;
        bed_start(&b);
        (void) bed_process(&b);
    }

    server_delete(b.server, KUBE_RESOURCE_SERVICES, "infra", "echo");
    server_run(b.server);

    /* as far as the deletion, not to the version */
    takeover_full = 0;

    for (i = 0; i < 100; i++) {

        if (listed) {
            server_run(b.server);
        }

        (void) bed_process(&b);
        view_make(&view, &b.zone);

        if (view.counts[0] == 2) {
            break;
        }
    }

    takeover_full = KUBE_SCOPES_MAX;
    assert_true(i < 100);
    assert_true(zone_version(&b.zone, 0, &info, ns) < b.server->rv);
    bed_stop(&b);

    snprintf(floor, sizeof(floor),
             "resourceVersion=%llu&resourceVersionMatch=NotOlderThan",
             (unsigned long long) b.server->rv);
    b.server->window = b.server->rv + 1;
    bed_start(&b);

    for (i = 0; i < 100; i++) {
        (void) bed_process(&b);

        if (io_find(&b.server->io, "/services?limit") != NULL) {
            break;
        }

        server_run(b.server);
    }

    assert_true(i < 100);
    assert_non_null(strstr(io_find(&b.server->io, "/services?limit")->path,
                           floor));
    bed_converge(&b);
    bed_assert_equal(&b);
    bed_done(&b);
}


static void
test_floor_of_a_deletion(void **state)
{
    (void) state;

    takeover_deletion(false);
    takeover_deletion(true);
}


/*
 * A watch that is resumed repeats a change of an object that is gone since, or
 * the deletion of one that is there again: neither is shown, nor a version
 * before all is listed.
 */
static void
takeover_repeats(bool anew)
{
    bed_t              b;
    char               ns[16];
    unsigned           i, lists;
    uint64_t           version;
    kube_scope_info_t  info;

    static view_t  view;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    version = zone_version(&b.zone, 0, &info, ns);

    /* all are held, and the version does not move */
    takeover_full = 0;

    if (!anew) {
        server_put_service(b.server, "infra", "echo", 4);
    }

    server_delete(b.server, KUBE_RESOURCE_SERVICES, "infra", "echo");
    bed_settle(&b);

    if (anew) {
        server_put_service(b.server, "infra", "echo", 4);
    }

    server_put_service(b.server, "shop", "new", 5);
    bed_settle(&b);
    takeover_full = KUBE_SCOPES_MAX;
    view_make(&view, &b.zone);
    assert_int_equal(view.counts[0], 3 + anew);
    assert_int_equal(zone_version(&b.zone, 0, &info, ns), version);
    lists = b.server->lists;
    bed_stop(&b);

    /* the first event alone */
    b.server->log_n -= 2;
    bed_start(&b);

    for (i = 0; i < 20; i++) {
        server_run(b.server);
        (void) bed_process(&b);
        view_make(&view, &b.zone);
        assert_int_equal(view.counts[0], 3 + anew);

        if (b.server->lists == lists) {
            assert_int_equal(zone_version(&b.zone, 0, &info, ns), version);
        }
    }

    b.server->log_n += 2;
    bed_converge(&b);
    bed_assert_equal(&b);
    assert_int_equal(bed_version(&b, 0), b.server->rv);
    assert_int_equal(b.server->lists, lists + 1);
    bed_done(&b);
}


static void
test_repeated_change(void **state)
{
    (void) state;

    takeover_repeats(false);
    takeover_repeats(true);
}


/*
 * Nothing of the scope is used until that list begins: it waits for its turn,
 * not until nobody else wants one.
 */
static void
test_repeated_change_beside_others(void **state)
{
    bed_t              b;
    unsigned           i;
    kube_list_turn_t  *turn;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);

    takeover_full = 0;
    server_put_service(b.server, "infra", "echo", 4);
    server_delete(b.server, KUBE_RESOURCE_SERVICES, "infra", "echo");
    bed_settle(&b);
    takeover_full = KUBE_SCOPES_MAX;
    bed_stop(&b);

    /* the first event alone */
    b.server->log_n--;
    bed_start(&b);
    turn = &b.inf->turn;

    /* two others list without a pause, three seconds each */

    assert_true(kube_list_turn_take(turn, 20, b.server->io.now_ms));
    assert_false(kube_list_turn_take(turn, 21, b.server->io.now_ms));
    bed_settle(&b);
    b.server->log_n++;
    server_put_service(b.server, "shop", "new", 5);

    for (i = 0; i < 20; i++) {
        bed_settle(&b);
        b.server->io.now_ms += 3000;
        kube_list_turn_give(turn, 20 + i % 2);
        (void) kube_list_turn_take(turn, 21 - i % 2, b.server->io.now_ms);
        (void) kube_list_turn_take(turn, 20 + i % 2, b.server->io.now_ms);
        bed_settle(&b);
    }

    bed_assert_equal(&b);
    bed_done(&b);
}


/* How many slices a reader finds of a Service of shop. */
static size_t
takeover_slices(const bed_t *b, const char *name)
{
    size_t           n;
    uint32_t         entry;
    alloc_test_t     at;
    kube_arena_t     arena;
    kube_snapshot_t  snapshot;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);
    assert_int_equal(kube_zone_find(&b->zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), kube_str(name), &entry),
                     KUBE_OK);
    assert_int_equal(kube_zone_read(&b->zone, entry, KUBE_STR("shop"),
                                    kube_str(name), &arena, &snapshot),
                     KUBE_OK);
    n = snapshot.slices_n;
    kube_arena_done(&arena);

    return n;
}


/* The successor shows one slice of api all along, and comes to what is so. */
static void
takeover_shows_api(bed_t *b)
{
    unsigned  i;

    bed_start(b);

    for (i = 0; i < 10; i++) {
        (void) bed_process(b);
        assert_int_equal(takeover_slices(b, "api"), 1);
        server_run(b->server);
    }

    bed_settle(b);
    bed_assert_equal(b);
}


/* What else is in the queue with an event that waits for a list. */
typedef enum {
    BESIDE_NOTHING,
    BESIDE_A_LIST,            /* of Services */
    BESIDE_ANOTHER            /* of Services, that waits, too */
} beside_t;


/* Tells it, between a change of shop/api-a and what waits for a list. */
static void
takeover_beside(bed_t *b, kube_zone_writer_t *w, beside_t beside)
{
    char  text[32];

    if (beside == BESIDE_A_LIST) {
        b->selector = "app=web";
    }

    if (beside == BESIDE_ANOTHER) {
        server_put_service(b->server, "infra", "new", 9);
        snprintf(text, sizeof(text), "%llu",
                 (unsigned long long) b->server->rv);
        assert_int_equal(kube_zone_scope_floor(w, 0, kube_str(text)),
                         KUBE_OK);
    }
}


/*
 * What waits for a list keeps nothing newer from waiting that stands before it
 * in the queue, where a key has the place of its first change: a Service whose
 * one slice has come for another is never without both.
 */
static void
takeover_keeps_order(beside_t beside)
{
    bed_t                b;
    char                 rv[32];
    uint32_t             e;
    kube_zone_writer_t  *w;

    e = takeover_lone(&b, &w);

    server_put_slice(b.server, "shop", "api-a", "api", 31);
    takeover_beside(&b, w, beside);
    server_put_slice(b.server, "infra", "echo-a", "echo", 32);
    server_put_slice(b.server, "shop", "api-b", "api", 33);
    server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "lone-a");
    snprintf(rv, sizeof(rv), "%llu", (unsigned long long) b.server->rv);
    assert_int_equal(kube_zone_scope_floor(w, 1, kube_str(rv)), KUBE_OK);
    kube_zone_remove(w, e);
    kube_zone_writer_destroy(w);
    server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "api-a");

    takeover_shows_api(&b);
    assert_int_equal(b.server->lists, 3 + (beside == BESIDE_A_LIST)
                                      + (beside == BESIDE_ANOTHER));
    bed_done(&b);
}


static void
test_repeated_change_keeps_order(void **state)
{
    (void) state;

    takeover_keeps_order(BESIDE_NOTHING);
    takeover_keeps_order(BESIDE_A_LIST);
    takeover_keeps_order(BESIDE_ANOTHER);
}


/* So many Services or slices of a namespace, in a version. */
static void
takeover_many(bed_t *b, kube_resource_t resource, const char *ns, unsigned n,
    unsigned version)
{
    char  name[16];

    while (n-- > 0) {
        snprintf(name, sizeof(name), "many-%u", n);

        if (resource == KUBE_RESOURCE_SERVICES) {
            server_put_service(b->server, ns, name, version);

        } else {
            server_put_slice(b->server, ns, name, "many", version);
        }
    }
}


#define MANY_SERVICES  248     /* of infra, slices of it, and slices of shop: */
#define MANY_INFRA     160     /* what is read of each at a time, and more */
#define MANY_SHOP      112     /* than is applied */

/*
 * The same where what waits for a list is not applied at once with what stands
 * before it, for so much has changed of other scopes.
 */
static void
test_repeated_change_among_many(void **state)
{
    bed_t                b;
    char                 rv[32];
    kube_takeover_t      takeover;
    kube_zone_writer_t  *w;

    (void) state;
    bed_make(&b, ZONE_BYTES);
    b.namespaces[0] = KUBE_STR("infra");
    b.namespaces[1] = KUBE_STR("shop");
    b.namespaces_n = 2;
    bed_shop(&b);
    server_put_slice(b.server, "shop", "lone-a", "lone", 3);
    takeover_many(&b, KUBE_RESOURCE_ENDPOINTSLICES, "shop", MANY_SHOP, 1);
    bed_start(&b);
    bed_settle(&b);
    bed_stop(&b);

    takeover_many(&b, KUBE_RESOURCE_SERVICES, "infra", MANY_SERVICES, 1);
    takeover_many(&b, KUBE_RESOURCE_ENDPOINTSLICES, "infra", MANY_INFRA, 1);
    server_put_slice(b.server, "shop", "api-a", "api", 31);
    takeover_many(&b, KUBE_RESOURCE_ENDPOINTSLICES, "shop", MANY_SHOP, 2);
    server_put_slice(b.server, "shop", "new-a", "new", 32);
    server_put_slice(b.server, "shop", "api-b", "api", 33);
    server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "lone-a");
    snprintf(rv, sizeof(rv), "%llu", (unsigned long long) b.server->rv);
    server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "api-a");

    w = takeover_writer(&b, &takeover);
    assert_int_equal(kube_zone_scope_floor(w, 3, kube_str(rv)), KUBE_OK);
    kube_zone_remove(w, kube_zone_writer_find(w, KUBE_RESOURCE_ENDPOINTSLICES,
                                              KUBE_STR("shop"),
                                              KUBE_STR("lone-a")));
    kube_zone_writer_destroy(w);
    takeover_shows_api(&b);
    assert_int_equal(b.server->lists, 5);
    bed_done(&b);
}


/* An object that goes without a trace is missed: count and digest say so. */
static void
test_lost_without_a_store(void **state)
{
    bed_t                b;
    uint32_t             e;
    kube_zone_writer_t  *w;

    (void) state;

    e = takeover_lone(&b, &w);
    kube_zone_writer_destroy(w);
    kube_word_set(&kube_zone_entry(&b.zone, e)->head, 0);

    bed_start(&b);
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, 3);
    bed_done(&b);
}


/* Nothing was stored since the scope's record: all that it says must be so. */
static void
test_sums_agree(void **state)
{
    bed_t                b;
    unsigned             i;
    kube_arena_t         arena;
    kube_scope_info_t    info;
    kube_zone_writer_t  *w;

    (void) state;

    for (i = 0; i < 4; i++) {
        (void) takeover_lone(&b, &w);
        kube_arena_init(&arena, &b.own.alloc, 1 << 16);
        assert_int_equal(kube_zone_scope_read(&b.zone, 1, &arena, &info),
                         KUBE_OK);
        info.count += (i == 1);
        info.digest.lo += (i == 2);
        info.digest.hi += (i == 3);
        assert_int_equal(kube_zone_scope_publish(w, 1, &info), KUBE_OK);
        kube_zone_writer_destroy(w);
        kube_arena_done(&arena);

        bed_start(&b);
        bed_settle(&b);
        bed_assert_equal(&b);
        assert_int_equal(b.server->lists, (i == 0) ? 2 : 3);
        bed_done(&b);
    }
}


/* One that takes over, and dies once it has published what it found. */
static void
takeover_dies(bed_t *b)
{
    takeover_left = malloc(b->mem_size);
    assert_non_null(takeover_left);

    b->server->mute = true;
    takeover_dying = b;
    bed_start(b);
    (void) bed_process(b);
    assert_null(takeover_dying);
    bed_stop(b);
    b->server->mute = false;

    memcpy(b->mem, takeover_left, b->mem_size);
    free(takeover_left);
}


/*
 * One that died in a burst, and as many of its successors: the watch repeats
 * what it stored, without list, and what it has not repeated yet is no loss.
 */
static void
takeover_stored_since(unsigned deaths)
{
    bed_t                b;
    uint32_t             e;
    kube_zone_writer_t  *w;

    e = takeover_lone(&b, &w);
    server_delete(b.server, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "lone-a");
    kube_zone_remove(w, e);
    kube_zone_writer_destroy(w);

    while (deaths-- > 0) {
        takeover_dies(&b);
    }

    bed_start(&b);
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, 2);
    bed_done(&b);
}


static void
test_stored_since(void **state)
{
    (void) state;

    takeover_stored_since(0);
    takeover_stored_since(2);
}


/*
 * One that died in a burst, with the newest state of what had changed twice and
 * not yet what was new in between: that was not deleted, and needs no list; nor
 * where the next one dies before it has come there.
 */
static void
takeover_new_in_a_burst(unsigned deaths)
{
    bed_t           b;
    unsigned        lists;
    server_event_t  event, *e;

    bed_init(&b);
    bed_shop(&b);
    server_put_slice(b.server, "shop", "lone-a", "lone", 3);
    bed_settle(&b);
    lists = b.server->lists;

    /* the second of three is not told, and the version does not move */
    takeover_full = 1;
    server_put_slice(b.server, "shop", "lone-a", "lone", 4);
    server_put_slice(b.server, "shop", "lone-b", "lone", 5);
    event = b.server->log[--b.server->log_n];
    server_put_slice(b.server, "shop", "lone-a", "lone", 6);
    bed_settle(&b);
    takeover_full = KUBE_SCOPES_MAX;
    bed_stop(&b);

    e = &b.server->log[b.server->log_n++];
    e[0] = e[-1];
    e[-1] = event;

    while (deaths-- > 0) {
        takeover_dies(&b);
    }

    bed_start(&b);
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, lists);
    bed_done(&b);
}


static void
test_new_in_a_burst(void **state)
{
    (void) state;

    takeover_new_in_a_burst(0);
    takeover_new_in_a_burst(2);
}


/*
 * A slice that was on its way from one Service to another is let go, and its
 * version with it: the watch repeats an older one, which readers do not see.
 * That is so for who lets it go, and for who follows where that one dies.
 */
static void
takeover_let_go(bool dies)
{
    bed_t                b;
    bool                 changed;
    unsigned             i, lists;
    uint32_t             service;
    kube_takeover_t      takeover;
    kube_zone_writer_t  *w;

    static view_t  view;

    bed_init(&b);
    server_put_service(b.server, "shop", "web", 1);
    server_put_slice(b.server, "shop", "web-a", "web", 1);
    bed_settle(&b);
    lists = b.server->lists;

    takeover_full = 1;
    server_put_slice(b.server, "shop", "web-a", "web", 2);
    server_put_slice(b.server, "shop", "lone-a", "lone", 3);
    bed_settle(&b);
    takeover_full = KUBE_SCOPES_MAX;
    bed_stop(&b);

    w = takeover_writer(&b, &takeover);
    service = kube_zone_writer_find(w, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), KUBE_STR("web"));
    assert_int_equal(kube_zone_publish(w, service, NULL, 0, &changed),
                     KUBE_OK);
    kube_zone_writer_destroy(w);

    if (dies) {
        takeover_dies(&b);
    }

    server_put_slice(b.server, "shop", "web-a", "api", 2);
    b.server->log_n -= 2;
    bed_start(&b);

    for (i = 0; i < 20; i++) {
        server_run(b.server);
        (void) bed_process(&b);
        view_make(&view, &b.zone);
        assert_true(b.server->lists != lists || view.counts[1] == 1);
    }

    b.server->log_n += 2;
    bed_converge(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, lists + 1);
    bed_done(&b);
}


static void
test_let_go(void **state)
{
    (void) state;

    takeover_let_go(true);
    takeover_let_go(false);
}


static unsigned
takeover_kind(const bed_t *b, uint32_t entry)
{
    return kube_zone_record_at(&b->zone,
                               kube_zone_entry_offset(&b->zone, entry))->kind;
}


/*
 * An eviction that was begun is finished by the successor, but not before what
 * it found was compared with the records.
 */
static void
test_evicted_by_half(void **state)
{
    bed_t                b;
    char                 ns[16];
    unsigned             i;
    uint32_t             e;
    kube_zone_item_t     item;
    kube_scope_info_t    info;
    kube_zone_writer_t  *w;

    (void) state;

    e = takeover_lone(&b, &w);
    assert_int_equal(kube_zone_item_name(w, KUBE_RESOURCE_SERVICES,
                                         KUBE_STR("shop"), KUBE_STR("lone"),
                                         &item), KUBE_OK);
    assert_int_equal(kube_zone_refuse(w, &item, KUBE_STR("1"),
                                      kube_reason_text(KUBE_REASON_ZONE_FULL)),
                     KUBE_OK);
    kube_zone_writer_destroy(w);

    takeover_dies(&b);
    assert_int_equal(takeover_kind(&b, e), KUBE_RECORD_SLICE);

    b.server->mute = true;
    bed_start(&b);
    (void) bed_process(&b);
    assert_int_equal(takeover_kind(&b, e), KUBE_RECORD_REFUSED);

    /* both go on, and their records are no longer behind what is held */

    for (i = 0; i < 2; i++) {
        assert_true(zone_version(&b.zone, i, &info, ns) != 0);
        assert_int_equal(info.stores,
                         kube_word_get(&b.zone.image->stores));
    }

    /* there is room: it comes back */
    b.server->mute = false;

    for (i = 0; i < 60 && takeover_kind(&b, e) != KUBE_RECORD_SLICE; i++) {
        bed_settle(&b);
        b.server->io.now_ms += 1000;
    }

    assert_int_equal(b.server->lists, 4);
    bed_assert_equal(&b);
    bed_done(&b);
}


/* An eviction that could not even leave a name: counted, and it heals. */
static void
test_evicted_without_a_name(void **state)
{
    bed_t                b;
    uint32_t             e;
    kube_arena_t         arena;
    kube_takeover_t      takeover;
    kube_scope_info_t    info;
    kube_zone_writer_t  *w;

    (void) state;

    e = takeover_lone(&b, &w);
    kube_zone_evict_begin(w, e, 1);
    kube_zone_scope_unnamed(w, 1);
    kube_zone_remove(w, e);
    kube_zone_evict_end(w);
    kube_zone_writer_destroy(w);

    kube_arena_init(&arena, &b.own.alloc, 1 << 16);

    for (e = 0; e < 2; e++) {
        w = takeover_writer(&b, &takeover);
        assert_false(takeover.distrust);
        assert_int_equal(kube_zone_scope_read(&b.zone, 1, &arena, &info),
                         KUBE_OK);
        assert_int_equal(info.refused_unnamed, 1);
        assert_int_equal(kube_zone_scope_publish(w, 1, &info), KUBE_OK);
        kube_zone_writer_destroy(w);
    }

    kube_arena_done(&arena);

    /* there is room: the scope is listed, and it alone */
    bed_start(&b);
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, 3);
    bed_done(&b);
}


/*
 * The same, known by the word beside the scope's record alone; also where
 * nothing is missing after all: then the list changes nothing but that.
 */
static void
test_evicted_uncounted(void **state)
{
    bed_t                b;
    char                 ns[16];
    unsigned             missing;
    uint32_t             e;
    kube_scope_info_t    info;
    kube_zone_writer_t  *w;

    (void) state;

    for (missing = 0; missing < 2; missing++) {
        e = takeover_lone(&b, &w);
        kube_zone_scope_unnamed(w, 1);

        if (missing) {
            kube_zone_evict_begin(w, e, 1);
            kube_zone_remove(w, e);
            kube_zone_evict_end(w);
        }

        kube_zone_writer_destroy(w);

        /* the successor says so as well, and then heals it */
        bed_start(&b);
        (void) bed_process(&b);
        assert_true(zone_version(&b.zone, 1, &info, ns) != 0);
        assert_int_equal(info.refused_unnamed, 1);
        bed_settle(&b);
        b.server->io.now_ms += 10000;
        bed_settle(&b);
        bed_assert_equal(&b);
        (void) zone_version(&b.zone, 1, &info, ns);
        assert_int_equal(info.refused_unnamed, 0);
        assert_int_equal(b.server->lists, 3);
        bed_done(&b);
    }
}


/*
 * Each successor finds one that was between two Services, also in a record of
 * its own, until a list has ended.
 */
static void
takeover_interrupted(unsigned n)
{
    bed_t                b;
    char                 ns[16];
    unsigned             i;
    kube_scope_info_t    info;
    kube_zone_writer_t  *w;

    (void) takeover_lone(&b, &w);
    kube_zone_scope_interrupted(w, 1);
    kube_word_set(&kube_zone_scope(&b.zone, 1)->uncounted, n);
    kube_zone_writer_destroy(w);

    for (i = 0; i < 3; i++) {
        bed_start(&b);
        bed_settle(&b);

        if (i == 1) {
            server_put_service(b.server, "infra", "echo", 4);
            server_put_slice(b.server, "shop", "lone-b", "lone", 3);
            bed_settle(&b);
        }

        assert_true(zone_version(&b.zone, 1, &info, ns) != 0);
        assert_int_equal(info.refused_unnamed, n);
        assert_true(info.interrupted);
        (void) zone_version(&b.zone, 0, &info, ns);
        assert_false(info.interrupted);
        assert_int_equal(b.server->lists, 2);

        if (i != 2) {
            bed_stop(&b);
        }
    }

    b.server->io.now_ms += 10000;
    bed_settle(&b);
    (void) zone_version(&b.zone, 1, &info, ns);
    assert_int_equal(info.refused_unnamed, 0);
    assert_false(info.interrupted);
    assert_int_equal(b.server->lists, 3);
    bed_assert_equal(&b);
    bed_done(&b);
}


/* ... also where the count was published, and the word stayed behind. */
static void
test_interrupted_uncounted(void **state)
{
    (void) state;

    takeover_interrupted(1);
    takeover_interrupted(0);
}


/* Who cannot show a scope has not synced it, and tries again. */
static void
test_scope_without_room(void **state)
{
    bed_t  b;

    (void) state;

    bed_make(&b, ZONE_BYTES);
    bed_shop(&b);
    takeover_full = 1;
    bed_start(&b);
    bed_settle(&b);
    assert_false(kube_informer_synced(b.inf));
    assert_int_equal(b.logged[KUBE_EV_SYNCED], 1);
    assert_true(b.logged[KUBE_EV_ZONE_FULL] != 0);

    takeover_full = KUBE_SCOPES_MAX;
    bed_converge(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.logged[KUBE_EV_SYNCED], 2);

    /* and the next version is not left for what else may happen */
    takeover_full = 1;
    server_put_slice(b.server, "shop", "web-a", "web", 9);
    bed_settle(&b);
    assert_true(bed_version(&b, 1) < b.server->rv);
    takeover_full = KUBE_SCOPES_MAX;
    assert_in_range(kube_informer_deadline(b.inf), b.server->io.now_ms + 1,
                    b.server->io.now_ms + KUBE_INFORMER_RETRY_MS);
    b.server->io.now_ms += KUBE_INFORMER_RETRY_MS;
    bed_settle(&b);
    assert_int_equal(bed_version(&b, 1), b.server->rv);
    bed_done(&b);
}


/* A cluster without objects has been seen, too: no state file knows better. */
static void
test_empty(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_settle(&b);
    assert_true(kube_informer_wants_state(b.inf));
    bed_stop(&b);
    bed_start(&b);
    bed_settle(&b);
    assert_false(kube_informer_wants_state(b.inf));
    bed_done(&b);
}


static void
test_guard(void **state)
{
    bed_t             b;
    unsigned          i, said;
    kube_informer_t  *second;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);

    second = bed_informer(&b, &b.own.alloc);
    assert_non_null(second);
    assert_int_equal(kube_informer_process(second, b.server->io.now_ms, 1),
                     KUBE_BUSY);
    assert_null(kube_informer_writer(second));
    assert_int_equal(kube_informer_deadline(second),
                     b.server->io.now_ms + KUBE_TAKEOVER_RETRY_MS);

    /* one that does not leave is named after a while, and once a minute */

    said = b.logged[KUBE_EV_TAKEOVER];

    for (i = 0; i < 66000 / KUBE_TAKEOVER_RETRY_MS; i++) {
        assert_int_equal(b.logged[KUBE_EV_TAKEOVER] - said,
                         (i * KUBE_TAKEOVER_RETRY_MS >= 5000)
                         + (i * KUBE_TAKEOVER_RETRY_MS >= 65000));
        b.server->io.now_ms += KUBE_TAKEOVER_RETRY_MS;
        assert_int_equal(kube_informer_process(second, b.server->io.now_ms, 1),
                         KUBE_BUSY);
    }

    kube_informer_stop(b.inf);
    assert_true(kube_informer_deadline(b.inf) == UINT64_MAX);
    assert_int_equal(kube_zone_scope_counter(&b.zone, 0,
                                             KUBE_COUNTER_GAUGE_STATE),
                     KUBE_STATE_STOPPED);
    assert_null(io_find(&b.server->io, "/"));

    b.server->io.now_ms += KUBE_TAKEOVER_RETRY_MS;
    assert_int_equal(kube_informer_process(second, b.server->io.now_ms, 1),
                     KUBE_OK);
    assert_non_null(kube_informer_writer(second));
    assert_int_equal(b.server->lists, 2);

    kube_informer_destroy(second);
    bed_done(&b);
}


/* Informers in children that die holding the guard, n of them. */
static void
crash_in_children(bed_t *b, unsigned n)
{
    int    status;
    pid_t  pid;

    while (n--) {

        pid = fork();
        assert_true(pid >= 0);

        if (pid == 0) {
            bed_start(b);
            (void) kube_informer_process(b->inf, b->server->io.now_ms, 1);
            _exit(0);
        }

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        b->server->io.now_ms += 100;
    }
}


static void
assert_damped(const bed_t *b, unsigned scope, uint64_t until_ms)
{
    assert_int_equal(kube_zone_scope_counter(&b->zone, scope,
                                             KUBE_COUNTER_GAUGE_STATE),
                     KUBE_STATE_DAMPED);
    assert_int_equal(kube_zone_scope_counter(&b->zone, scope,
                                             KUBE_COUNTER_GAUGE_RETRY_AT_MS),
                     until_ms);
}


/* Where a list is needed it waits longer and longer; nothing else does. */
static void
test_crash_loop(void **state)
{
    bed_t     b;
    uint64_t  at_ms;

    (void) state;

    bed_make(&b, ZONE_BYTES);
    bed_shop(&b);
    crash_in_children(&b, 6);
    at_ms = b.server->io.now_ms;

    bed_start(&b);
    assert_int_equal(bed_process(&b), KUBE_BUSY);
    assert_int_equal(b.logged[KUBE_EV_CRASH_LOOP], 1);
    assert_int_equal(b.server->io.started, 0);
    assert_in_range(kube_informer_deadline(b.inf), at_ms + 500, at_ms + 1500);
    assert_damped(&b, 0, kube_informer_deadline(b.inf));

    b.server->io.now_ms = kube_informer_deadline(b.inf) - 1;
    assert_int_equal(bed_process(&b), KUBE_BUSY);

    /* it is the writer, but it asks for nothing yet */

    b.server->io.now_ms++;
    assert_int_equal(bed_process(&b), KUBE_OK);
    assert_int_equal(b.server->io.started, 0);
    assert_int_equal(kube_informer_deadline(b.inf), at_ms + 4000);
    assert_damped(&b, 0, at_ms + 4000);
    assert_damped(&b, 1, at_ms + 4000);

    b.server->io.now_ms = at_ms + 3999;
    assert_int_equal(bed_process(&b), KUBE_OK);
    assert_int_equal(b.server->io.started, 0);

    b.server->io.now_ms = at_ms + 4000;
    bed_settle(&b);
    bed_assert_equal(&b);
    bed_done(&b);
}


/* Where a watch can go on it does so within 1.5 s, however long the loop. */
static void
test_crash_loop_resumes(void **state)
{
    bed_t     b;
    unsigned  lists;
    uint64_t  at_ms;

    (void) state;

    bed_make(&b, ZONE_BYTES);
    bed_shop(&b);
    bed_start(&b);
    bed_settle(&b);
    bed_assert_equal(&b);
    lists = b.server->lists;
    bed_stop(&b);

    crash_in_children(&b, 20);
    at_ms = b.server->io.now_ms;

    bed_start(&b);
    assert_int_equal(bed_process(&b), KUBE_BUSY);
    assert_in_range(kube_informer_deadline(b.inf), at_ms + 500, at_ms + 1500);

    b.server->io.now_ms = kube_informer_deadline(b.inf);
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.server->lists, lists);
    assert_int_equal(kube_zone_scope_counter(&b.zone, 1,
                                             KUBE_COUNTER_GAUGE_STATE),
                     KUBE_STATE_WATCHING);
    bed_done(&b);
}


/* The last words of an informer that a slice of shop kills. */
static void
say_slice(bed_t *b, const char *name)
{
    kube_str_t   ns, names, uid;
    kube_hand_t  what, hand;

    ns = KUBE_STR("shop");
    names = kube_str(name);
    uid = KUBE_STR_NULL;

    what = (kube_hand_t) { .scope = 1,
                           .resource = KUBE_RESOURCE_ENDPOINTSLICES,
                           .ns = &ns,
                           .name = &names,
                           .uid = &uid };

    kube_hand_take(&hand, &what, KUBE_STAGE_DECODE);
    kube_zone_poison_say(&b->zone, &hand, 11);
}


/* The informer dies of a slice of shop, and another one takes over. */
static void
die_of_slice(bed_t *b, const char *name)
{
    say_slice(b, name);
    bed_stop(b);
    bed_start(b);
}


/* A loop of crashes that nothing is to blame for slows down; others do not. */
static void
test_crash_loop_blameless(void **state)
{
    bed_t     b;
    unsigned  blamed;
    uint64_t  before;

    (void) state;

    for (blamed = 0; blamed < 2; blamed++) {
        bed_make(&b, ZONE_BYTES);
        crash_in_children(&b, 6);

        if (blamed) {
            say_slice(&b, "web-a");
        }

        before = kube_word_get(&b.zone.image->history.crashes_blameless);
        assert_true(before != 0);
        bed_start(&b);
        (void) bed_process(&b);
        assert_int_equal(kube_word_get(
                             &b.zone.image->history.crashes_blameless),
                         before + !blamed);
        bed_done(&b);
    }
}


static bool
is_refused(const bed_t *b, const char *name)
{
    const view_row_t  *row;

    static view_t  view;

    view_make(&view, &b->zone);
    row = view_find(&view, KUBE_RESOURCE_ENDPOINTSLICES, "shop", name);
    assert_non_null(row);

    return row->refused;
}


/*
 * A slice that the informer died of twice: refused as an event and as an item
 * of a list, and tried again when its time is over.
 */
static void
test_poison(void **state)
{
    bed_t     b;
    uint64_t  refused_ms;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    assert_int_equal(b.server->lists, 2);

    die_of_slice(&b, "web-a");
    server_put_slice(b.server, "shop", "web-a", "web", 51);
    bed_settle(&b);
    bed_assert_equal(&b);
    assert_int_equal(b.logged[KUBE_EV_CRASHED], 1);

    die_of_slice(&b, "web-a");
    server_put_slice(b.server, "shop", "web-a", "web", 52);
    server_put_slice(b.server, "shop", "web-b", "web", 53);
    bed_settle(&b);
    refused_ms = b.server->io.now_ms;
    assert_int_equal(b.logged[KUBE_EV_CRASHED], 2);
    assert_true(is_refused(&b, "web-a"));
    assert_false(is_refused(&b, "web-b"));
    assert_int_equal(bed_version(&b, 1), b.server->rv);
    assert_int_equal(b.server->lists, 2);
    assert_int_equal(kube_zone_scope_counter(&b.zone, 1,
                                             KUBE_COUNTER_SKIPPED_CRASHED),
                     1);

    /* a list does not hold it either, and is complete without it */

    bed_stop(&b);
    b.selector = "app=web";
    bed_start(&b);
    bed_settle(&b);
    assert_true(is_refused(&b, "web-a"));
    assert_true(kube_informer_synced(b.inf));

    /* ten minutes later it is fetched, once, and it does no harm now */

    b.server->io.now_ms = refused_ms + KUBE_POISON_MS;
    bed_converge(&b);
    assert_false(is_refused(&b, "web-a"));
    bed_assert_equal(&b);
    assert_int_equal(kube_zone_scope_counter(&b.zone, 1,
                                             KUBE_COUNTER_RELISTS_OTHER), 1);
    b.server->io.now_ms += KUBE_POISON_MS / 2;
    bed_converge(&b);
    assert_int_equal(kube_zone_scope_counter(&b.zone, 1,
                                             KUBE_COUNTER_RELISTS_OTHER), 1);
    bed_done(&b);
}


/*
 * The trial lists where the object is, and nothing else, whatever number that
 * scope has by now; who dies of a record in the zone knows of no number.
 */
static void
test_poison_trial_scope(void **state)
{
    bed_t     b;
    unsigned  scope;
    uint64_t  relists;

    (void) state;

    bed_make(&b, ZONE_BYTES);
    bed_shop(&b);
    b.namespaces[0] = KUBE_STR("shop");
    b.namespaces[1] = KUBE_STR("infra");
    b.namespaces_n = 2;
    bed_start(&b);
    bed_settle(&b);

    die_of_slice(&b, "web-a");
    bed_settle(&b);

    say_slice(&b, "web-a");
    bed_stop(&b);
    b.namespaces[0] = KUBE_STR("infra");
    b.namespaces[1] = KUBE_STR("shop");
    bed_start(&b);
    bed_settle(&b);

    b.server->io.now_ms += KUBE_POISON_MS;
    bed_converge(&b);

    for (scope = 0; scope < 4; scope++) {
        relists = kube_zone_scope_counter(&b.zone, scope,
                                          KUBE_COUNTER_RELISTS_OTHER);
        assert_int_equal(relists, (scope == 3));
    }

    bed_done(&b);
}


/* A Service of shop, of a state file. */
static kube_rc_t
state_try(bed_t *b, const char *name)
{
    uint64_t       mem[512];
    kube_port_t    port;
    kube_object_t  object;

    memset(&object, 0, sizeof(object));
    memset(&port, 0, sizeof(port));
    port.port = 80;
    object.resource = KUBE_RESOURCE_SERVICES;
    object.u.service.meta.ns = KUBE_STR("shop");
    object.u.service.meta.name = kube_str(name);
    object.u.service.meta.uid = kube_str(name);
    object.u.service.meta.rv = KUBE_STR("42");
    object.u.service.ports = &port;
    object.u.service.ports_n = 1;
    assert_true(kube_record_size(&object) <= sizeof(mem));
    kube_record_encode(&object, mem);

    return kube_informer_put_state(b->inf, (void *) mem);
}


static void
state_put(bed_t *b, const char *name)
{
    assert_int_equal(state_try(b, name), KUBE_OK);
}


/* Services of a file that takes three turns, as the host puts them. */
static void
state_put_many(bed_t *b)
{
    char      name[16];
    unsigned  i;

    for (i = 0; i < 2 * KUBE_INFORMER_SERVICES + 1; i++) {
        snprintf(name, sizeof(name), "s-%u", i);
        state_put(b, name);
    }

    kube_zone_set_state_file(&b->zone, 1, true, false);
}


/* Answers lists, those of the first text by 403; of the last ones none. */
static void
lists_but(bed_t *b, const char *text, const char *last)
{
    unsigned        i;
    io_exchange_t  *x;

    for (i = 0; i < 16; i++) {
        (void) bed_process(b);
        x = io_find(&b->server->io, "limit=");

        if (x == NULL || strstr(x->path, last) != NULL) {
            continue;
        }

        if (strstr(x->path, text) != NULL) {
            io_answer(&b->server->io, x, 403,
                      "{\"kind\":\"Status\",\"code\":403}");

        } else {
            server_list(b->server, x);
            io_done(x, KUBE_OK, "");
        }
    }
}


/* One namespace that nobody may list keeps no other out of the state file. */
static void
test_state_file_beside_a_forbidden_scope(void **state)
{
    bed_t     b;
    bool      unconfirmed;
    unsigned  i;

    static const struct {
        unsigned     namespaces_n;   /* 0: all */
        const char  *forbidden;
        const char  *last;           /* has no answer yet */
        bool         put;            /* the file had a Service of shop */
        bool         settled;
        bool         unconfirmed;
    } cases[] = {
        { 2, "/none/", "/none/", true, true, false },
        { 2, "/shop/services?", "/none/", false, true, false },
        { 2, "/shop/services?", "/none/", true, true, true },
        { 2, "/shop/", "/none/", true, true, true },
        { 2, "/infra/", "/none/", true, true, false },
        { 2, "/none/", "/infra/endpointslices?", false, false, false },
        { 2, "/services?", "/none/", false, false, false },
        { 2, "/namespaces/", "/none/", false, false, false },
        { 1, "/services?", "/none/", false, false, false },
        { 0, "/services?", "/none/", true, false, true },
        { 0, "/endpointslices?", "/none/", false, false, false }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_make(&b, ZONE_BYTES);
        b.namespaces[0] = KUBE_STR("shop");
        b.namespaces[1] = KUBE_STR("infra");
        b.namespaces_n = cases[i].namespaces_n;
        bed_start(&b);
        (void) bed_process(&b);

        if (cases[i].put) {
            state_put(&b, "old");
        }

        assert_false(kube_informer_settled(b.inf, &unconfirmed));
        lists_but(&b, cases[i].forbidden, cases[i].last);
        assert_int_equal(kube_informer_settled(b.inf, &unconfirmed),
                         cases[i].settled);
        assert_int_equal(unconfirmed, cases[i].unconfirmed);
        bed_done(&b);
    }
}


static void
test_state_file(void **state)
{
    bed_t               b;
    unsigned            i;
    kube_writer_info_t  writer;

    static view_t  view;

    (void) state;

    bed_init(&b);
    b.server->mute = true;
    assert_false(kube_informer_wants_state(b.inf));
    (void) bed_process(&b);
    assert_true(kube_informer_wants_state(b.inf));
    assert_false(kube_informer_wants_state(b.inf));

    state_put(&b, "old");
    kube_zone_writer_info(&b.zone, &writer);
    assert_int_equal(writer.state_in_use, KUBE_STATE_FILE_LOADING);
    bed_settle(&b);
    kube_zone_writer_info(&b.zone, &writer);
    assert_int_equal(writer.state_in_use, KUBE_STATE_FILE_WHOLE);
    view_make(&view, &b.zone);
    assert_int_equal(view.n, 1);
    assert_int_equal(bed_version(&b, 0), 0);
    assert_false(kube_informer_synced(b.inf));

    /* the server knows better */
    bed_shop(&b);
    b.server->mute = false;

    for (i = 0; i < 2; i++) {
        bed_converge(&b);
    }

    bed_assert_equal(&b);
    assert_true(kube_informer_identity(b.inf) != 0);
    bed_done(&b);
}


/* More than a turn publishes: it is loading until readers have all of it. */
static void
test_state_file_in_turns(void **state)
{
    bed_t     b;
    unsigned  turns;

    static view_t  view;

    (void) state;

    bed_init(&b);
    b.server->mute = true;
    (void) bed_process(&b);
    assert_true(kube_informer_wants_state(b.inf));
    assert_false(kube_informer_loading(b.inf));

    state_put_many(&b);

    for (turns = 0; kube_informer_loading(b.inf); turns++) {
        assert_in_range(turns, 0, 2);
        (void) bed_process(&b);

        /* the next turn is at once */
        assert_true(!kube_informer_loading(b.inf)
                    || kube_informer_deadline(b.inf) <= b.server->io.now_ms);
    }

    view_make(&view, &b.zone);
    assert_int_equal(view.n, 2 * KUBE_INFORMER_SERVICES + 1);
    bed_done(&b);
}


/* Who ends meanwhile leaves the rest to the next, that has no server either. */
static void
test_state_file_half_loaded(void **state)
{
    bed_t               b;
    unsigned            i;
    kube_writer_info_t  writer;

    static view_t  view;

    (void) state;

    bed_init(&b);
    b.server->mute = true;
    (void) bed_process(&b);
    assert_true(kube_informer_wants_state(b.inf));

    for (i = 0; i < 2; i++) {
        state_put_many(&b);
        (void) bed_process(&b);
        assert_true(kube_informer_loading(b.inf));
        bed_stop(&b);
        bed_start(&b);
        (void) bed_process(&b);

        /* until it has the file this is no more than it was */
        kube_zone_writer_info(&b.zone, &writer);
        assert_int_equal(writer.state_in_use, KUBE_STATE_FILE_LOADING);
        assert_true(kube_informer_wants_state(b.inf));
    }

    state_put_many(&b);
    bed_settle(&b);
    view_make(&view, &b.zone);
    assert_int_equal(view.n, 2 * KUBE_INFORMER_SERVICES + 1);

    /* that was all */

    bed_stop(&b);
    bed_start(&b);
    (void) bed_process(&b);
    assert_false(kube_informer_wants_state(b.inf));
    bed_done(&b);
}


/* Who dies of what the server says leaves nothing to the file. */
static void
test_state_file_after_a_death(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    bed_shop(&b);
    bed_settle(&b);
    say_slice(&b, "web-a");
    bed_stop(&b);
    b.namespaces[0] = KUBE_STR("shop");
    b.namespaces_n = 1;
    b.selector = "app=web";
    b.server->mute = true;
    bed_start(&b);
    (void) bed_process(&b);
    assert_false(kube_informer_wants_state(b.inf));
    bed_done(&b);
}


/*
 * The file is of no use for a while, as by a reload with other namespaces: what
 * is there of it serves, is not taken for all, and the rest follows.
 */
static void
test_state_file_half_lost(void **state)
{
    bed_t               b;
    unsigned            i;
    kube_writer_info_t  writer;

    static view_t  view;

    (void) state;

    bed_init(&b);
    b.server->mute = true;
    (void) bed_process(&b);
    assert_true(kube_informer_wants_state(b.inf));
    state_put_many(&b);
    (void) bed_process(&b);

    for (i = 0; i < 2; i++) {
        bed_stop(&b);
        bed_start(&b);
        (void) bed_process(&b);
        assert_true(kube_informer_wants_state(b.inf));
        (void) bed_process(&b);
        kube_zone_writer_info(&b.zone, &writer);
        assert_int_equal(writer.state_in_use, KUBE_STATE_FILE_LOADING);
    }

    state_put_many(&b);
    bed_settle(&b);
    view_make(&view, &b.zone);
    assert_int_equal(view.n, 2 * KUBE_INFORMER_SERVICES + 1);
    kube_zone_writer_info(&b.zone, &writer);
    assert_int_equal(writer.state_in_use, KUBE_STATE_FILE_WHOLE);
    bed_done(&b);
}


/* There was no memory for all: who has it comes next. */
static void
test_state_file_no_memory(void **state)
{
    bed_t               b;
    kube_writer_info_t  writer;

    (void) state;

    bed_init(&b);
    b.server->mute = true;
    (void) bed_process(&b);
    assert_true(kube_informer_wants_state(b.inf));
    state_put(&b, "web");
    b.own.fail_from = true;
    b.own.fail_at = b.own.calls + 1;
    assert_int_equal(state_try(&b, "other"), KUBE_NOMEM);
    b.own.fail_from = false;
    b.own.fail_at = 0;
    state_put(&b, "more");
    bed_settle(&b);
    assert_false(kube_informer_loading(b.inf));
    kube_zone_writer_info(&b.zone, &writer);
    assert_int_equal(writer.state_in_use, KUBE_STATE_FILE_LOADING);

    bed_stop(&b);
    bed_start(&b);
    (void) bed_process(&b);
    assert_true(kube_informer_wants_state(b.inf));
    state_put_many(&b);
    bed_settle(&b);
    kube_zone_writer_info(&b.zone, &writer);
    assert_int_equal(writer.state_in_use, KUBE_STATE_FILE_WHOLE);
    bed_done(&b);
}


/* Whichever allocation fails: what is known is gone on from, without a list. */
static void
test_no_memory(void **state)
{
    bool      failed;
    bed_t     b;
    unsigned  lists;
    size_t    n;

    (void) state;

    bed_make(&b, ZONE_BYTES);
    b.endpoints = KUBE_ENDPOINTS_SLICES;
    bed_start(&b);
    bed_shop(&b);
    bed_settle(&b);
    lists = b.server->lists;

    for (n = 0, failed = true; failed; n++) {
        assert_true(n < 1000);
        failed = bed_succeed_without(&b, n);
        assert_int_equal(b.server->lists, lists);
        bed_assert_equal(&b);
    }

    assert_true(n > 4);
    bed_done(&b);
}


/* Services of so many slices each, of which the zone cannot hold all. */
static void
bed_crowd(bed_t *b, unsigned services, unsigned slices)
{
    char      name[32], slice[32];
    unsigned  i, n;

    server_put_service(b->server, "shop", "web", 1);
    server_put_slice(b->server, "shop", "web-a", "web", 1);
    b->server->endpoints = 60;

    for (i = 0; i < services; i++) {
        snprintf(name, sizeof(name), "hog-%u", i);
        server_put_service(b->server, "hog", name, i);

        for (n = 0; n < slices; n++) {
            snprintf(slice, sizeof(slice), "hog-%u-%u", i, n);
            server_put_slice(b->server, "hog", slice, name, n);
        }
    }

    b->server->endpoints = 1;
}


/*
 * A zone that lacks something, of which a part is free, is listed once after
 * each take-over, when its watches have gone on for a while.
 */
static void
test_room_after_takeovers(void **state)
{
    bed_t     b;
    unsigned  i, lists;
    uint64_t  until_ms;

    (void) state;

    bed_make(&b, 128u << 10);
    bed_crowd(&b, 12, 16);
    bed_start(&b);
    bed_converge(&b);
    b.server->io.now_ms += 300000;
    bed_converge(&b);
    lists = b.server->lists;
    assert_true(b.logged[KUBE_EV_ZONE_FULL] != 0);

    for (i = 0; i < 6; i++) {
        bed_stop(&b);
        bed_start(&b);
        bed_settle(&b);
        server_put_slice(b.server, "shop", "web-a", "web", 10 + i);
        until_ms = b.server->io.now_ms + (i < 5 ? 5000 : 60000);

        while (b.server->io.now_ms < until_ms) {
            bed_settle(&b);
            b.server->io.now_ms += 500;

            if (i < 5) {
                assert_int_equal(b.server->lists, lists);
            }
        }

        assert_int_equal(bed_version(&b, 1), b.server->rv);
    }

    assert_int_equal(b.server->lists, lists + 2);
    bed_done(&b);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_take_over),
        cmocka_unit_test(test_scope_changed),
        cmocka_unit_test(test_namespaces),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_age_of_another_resource),
        cmocka_unit_test(test_age_after_changes),
        cmocka_unit_test(test_damaged_zone),
        cmocka_unit_test(test_distrust),
        cmocka_unit_test(test_floor),
        cmocka_unit_test(test_floor_of_a_record),
        cmocka_unit_test(test_floor_of_a_deletion),
        cmocka_unit_test(test_repeated_change),
        cmocka_unit_test(test_repeated_change_beside_others),
        cmocka_unit_test(test_repeated_change_keeps_order),
        cmocka_unit_test(test_repeated_change_among_many),
        cmocka_unit_test(test_lost_without_a_store),
        cmocka_unit_test(test_sums_agree),
        cmocka_unit_test(test_stored_since),
        cmocka_unit_test(test_new_in_a_burst),
        cmocka_unit_test(test_let_go),
        cmocka_unit_test(test_evicted_by_half),
        cmocka_unit_test(test_evicted_without_a_name),
        cmocka_unit_test(test_evicted_uncounted),
        cmocka_unit_test(test_interrupted_uncounted),
        cmocka_unit_test(test_scope_without_room),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_guard),
        cmocka_unit_test(test_crash_loop),
        cmocka_unit_test(test_crash_loop_resumes),
        cmocka_unit_test(test_crash_loop_blameless),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_poison_trial_scope),
        cmocka_unit_test(test_room_after_takeovers),
        cmocka_unit_test(test_state_file),
        cmocka_unit_test(test_state_file_beside_a_forbidden_scope),
        cmocka_unit_test(test_state_file_in_turns),
        cmocka_unit_test(test_state_file_half_loaded),
        cmocka_unit_test(test_state_file_half_lost),
        cmocka_unit_test(test_state_file_no_memory),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_state_file_after_a_death),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

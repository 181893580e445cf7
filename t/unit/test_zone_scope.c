/*
 * test_zone_scope - kube_zone_scope: scopes and the server as records, health
 * as the interface defines it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "zone_test.h"


#define SCOPE_IDLE_MS   90000
#define SCOPE_STALE_MS  (SCOPE_IDLE_MS + 30000)


static kube_scope_info_t
scope_info(kube_str_t ns, kube_str_t rv, bool synced)
{
    kube_scope_info_t  info;

    memset(&info, 0, sizeof(kube_scope_info_t));
    info.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    info.ns = ns;
    info.rv = rv;
    info.synced = synced;
    info.scope_hash = 0x1122334455667788ull;
    info.count = 42;
    info.digest.lo = 7;
    info.digest.hi = 8;

    return info;
}


static void
test_scope_state_text(void **state)
{
    (void) state;
    assert_string_equal(kube_scope_state_text(KUBE_STATE_IDLE), "idle");
    assert_string_equal(kube_scope_state_text(KUBE_STATE_LISTING), "listing");
    assert_string_equal(kube_scope_state_text(KUBE_STATE_WATCHING),
                        "watching");
    assert_string_equal(kube_scope_state_text(KUBE_STATE_BACKOFF), "backoff");
    assert_string_equal(kube_scope_state_text(KUBE_STATE_DAMPED), "damped");
    assert_string_equal(kube_scope_state_text(KUBE_STATE_STOPPED), "stopped");
    assert_string_equal(kube_scope_state_text(KUBE_STATES), "unknown");
}


/* A place that is free again lacks nothing. */
static void
test_scope_clear(void **state)
{
    zone_test_t        t;
    kube_scope_info_t  info, got;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    info = scope_info(KUBE_STR("shop"), KUBE_STR("123"), true);
    assert_int_equal(kube_zone_scope_publish(t.writer, 2, &info), KUBE_OK);
    kube_zone_scope_interrupted(t.writer, 2);
    assert_int_equal(kube_zone_scope_read(&t.zone, 2, &t.arena, &got),
                     KUBE_OK);
    assert_int_equal(got.refused_unnamed, 1);
    assert_true(got.interrupted);

    kube_zone_scope_clear(t.writer, 2);
    assert_int_equal(kube_zone_scope_read(&t.zone, 2, &t.arena, &got),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_word_get(&kube_zone_scope(&t.zone, 2)->uncounted),
                     0);
    assert_int_equal(kube_word_get(&kube_zone_scope(&t.zone, 2)->interrupted),
                     0);
    zone_test_close(&t);
}


/* A floor is noted beside what was published, and counts as no store. */
static void
test_scope_floor(void **state)
{
    zone_test_t        t;
    kube_scope_info_t  info, first, got;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(kube_zone_scope_floor(t.writer, 1, KUBE_STR("7")),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_scope_floor(t.writer, KUBE_SCOPES_MAX,
                                           KUBE_STR("7")),
                     KUBE_NOT_FOUND);

    info = scope_info(KUBE_STR("shop"), KUBE_STR("123"), true);
    assert_int_equal(kube_zone_scope_publish(t.writer, 1, &info), KUBE_OK);
    kube_zone_scope_unnamed(t.writer, 1);
    assert_int_equal(kube_zone_scope_read(&t.zone, 1, &t.arena, &first),
                     KUBE_OK);
    kube_word_set(&t.zone.image->stores,
                  kube_word_get(&t.zone.image->stores) + 5);
    assert_int_equal(kube_zone_scope_floor(t.writer, 1, KUBE_STR("125")),
                     KUBE_OK);
    assert_int_equal(kube_zone_scope_read(&t.zone, 1, &t.arena, &got),
                     KUBE_OK);
    assert_true(kube_str_eq(got.floor, KUBE_STR("125")));
    assert_true(kube_str_eq(got.rv, info.rv));
    assert_true(kube_str_eq(got.ns, info.ns));
    assert_true(got.synced);
    assert_true(got.stores == first.stores);
    assert_true(got.count == 42 && got.digest.lo == 7 && got.digest.hi == 8);
    assert_int_equal(got.refused_unnamed, 1);

    assert_int_equal(kube_zone_scope_publish(t.writer, 1, &info), KUBE_OK);
    assert_int_equal(kube_zone_scope_read(&t.zone, 1, &t.arena, &got),
                     KUBE_OK);
    assert_int_equal(got.floor.len, 0);
    assert_true(got.stores == first.stores + 5);
    zone_test_close(&t);
}


static void
test_scope_record(void **state)
{
    char               text[400];
    zone_test_t        t;
    kube_takeover_t    takeover;
    kube_scope_info_t  info, got;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(kube_zone_scope_read(&t.zone, 0, &t.arena, &got),
                     KUBE_NOT_FOUND);

    info = scope_info(KUBE_STR("shop"), KUBE_STR("123"), true);
    assert_int_equal(kube_zone_scope_publish(t.writer, 2, &info), KUBE_OK);
    assert_int_equal(kube_zone_scope_read(&t.zone, 2, &t.arena, &got),
                     KUBE_OK);
    assert_int_equal(got.resource, KUBE_RESOURCE_ENDPOINTSLICES);
    assert_true(kube_str_eq(got.ns, info.ns));
    assert_true(kube_str_eq(got.rv, info.rv));
    assert_true(got.synced);
    assert_true(got.scope_hash == info.scope_hash);
    assert_true(got.count == 42 && got.digest.lo == 7 && got.digest.hi == 8);
    assert_true(got.error_at_ms == 0 && got.error_reason.len == 0);

    /* an error beside it; too long a text is cut */
    memset(text, 'e', sizeof(text));
    assert_int_equal(kube_zone_scope_error(t.writer, 2, KUBE_STR("timeout"),
                                           (kube_str_t) { text,
                                                          sizeof(text) },
                                           -5), KUBE_OK);
    assert_int_equal(kube_zone_scope_read(&t.zone, 2, &t.arena, &got),
                     KUBE_OK);
    assert_true(kube_str_eq(got.error_reason, KUBE_STR("timeout")));
    assert_int_equal(got.error_message.len, 255);
    assert_true(got.error_at_ms == -5);

    /* counters and records survive the writer */
    kube_zone_scope_add(&t.zone, 2, KUBE_COUNTER_LISTS, 2);
    kube_zone_scope_add(&t.zone, 2, KUBE_COUNTER_LISTS, 3);
    kube_zone_scope_set(&t.zone, 2, KUBE_COUNTER_GAUGE_STATE, 4);
    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 2000, &takeover);
    assert_int_equal(takeover.cut_off, 0);
    assert_int_equal(kube_zone_scope_read(&t.zone, 2, &t.arena, &got),
                     KUBE_OK);
    assert_true(kube_str_eq(got.rv, info.rv));
    assert_int_equal(kube_zone_scope_counter(&t.zone, 2, KUBE_COUNTER_LISTS),
                     5);

    kube_zone_scope_clear(t.writer, 2);
    assert_int_equal(kube_zone_scope_read(&t.zone, 2, &t.arena, &got),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_scope_counter(&t.zone, 2, KUBE_COUNTER_LISTS),
                     0);
    zone_test_close(&t);
}


static void
test_scope_numbers_missing(void **state)
{
    unsigned           scopes;
    zone_test_t        t;
    kube_scope_info_t  info, got;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    scopes = t.zone.geometry.scopes_n;
    assert_true(scopes >= 4);
    info = scope_info(KUBE_STR("shop"), KUBE_STR("123"), true);

    /* scopes that a zone of this size does not have */
    assert_int_equal(kube_zone_scope_publish(t.writer, scopes, &info),
                     KUBE_FULL);
    assert_int_equal(kube_zone_scope_error(t.writer, scopes, KUBE_STR("x"),
                                           KUBE_STR("y"), 1), KUBE_FULL);
    assert_int_equal(kube_zone_scope_read(&t.zone, scopes, &t.arena, &got),
                     KUBE_NOT_FOUND);
    kube_zone_scope_add(&t.zone, scopes, KUBE_COUNTER_LISTS, 1);
    kube_zone_scope_set(&t.zone, 0, KUBE_COUNTERS, 1);
    kube_zone_scope_clear(t.writer, scopes);
    assert_int_equal(kube_zone_scope_counter(&t.zone, scopes,
                                             KUBE_COUNTER_LISTS), 0);
    zone_test_close(&t);
}


static void
test_scope_numbers_scale(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, 1u << 20);
    assert_int_equal(t.zone.geometry.scopes_n, KUBE_SCOPES_MAX);
    assert_int_equal(t.zone.geometry.workers_n, KUBE_WORKER_ROWS);
    zone_test_close(&t);
}


static void
scope_set(zone_test_t *t, unsigned scope, bool synced, uint64_t contact,
    bool forbidden)
{
    kube_scope_info_t  info;

    info = scope_info(KUBE_STR("shop"), KUBE_STR("1"), synced);
    assert_int_equal(kube_zone_scope_publish(t->writer, scope, &info),
                     KUBE_OK);
    kube_zone_scope_set(&t->zone, scope, KUBE_COUNTER_GAUGE_CONTACT_MS,
                        contact);
    kube_zone_scope_set(&t->zone, scope, KUBE_COUNTER_GAUGE_FORBIDDEN,
                        forbidden);
}


static void
test_scope_health(void **state)
{
    zone_test_t    t;
    kube_health_t  h;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    kube_zone_health(&t.zone, 1000000, SCOPE_IDLE_MS, &h);
    assert_false(h.synced);
    assert_false(h.stale);
    assert_int_equal(h.scopes, 0);
    assert_true(h.age_ms == UINT64_MAX);

    /* one of two has not listed yet */
    scope_set(&t, 0, true, 999000, false);
    scope_set(&t, 3, false, 0, false);
    kube_zone_health(&t.zone, 1000000, SCOPE_IDLE_MS, &h);
    assert_false(h.synced);
    assert_false(h.stale);
    assert_true(h.age_ms == UINT64_MAX);
    assert_int_equal(h.scopes, 2);

    /* which hides nothing of the other */
    kube_zone_health(&t.zone, 999000 + SCOPE_STALE_MS, SCOPE_IDLE_MS, &h);
    assert_false(h.stale);
    kube_zone_health(&t.zone, 999001 + SCOPE_STALE_MS, SCOPE_IDLE_MS, &h);
    assert_true(h.stale);
    assert_true(h.age_ms == UINT64_MAX);

    /* the oldest counts */
    scope_set(&t, 3, true, 1000000 - SCOPE_STALE_MS, false);
    kube_zone_health(&t.zone, 1000000, SCOPE_IDLE_MS, &h);
    assert_true(h.synced);
    assert_true(h.age_ms == SCOPE_STALE_MS);
    assert_false(h.stale);
    kube_zone_health(&t.zone, 1000001, SCOPE_IDLE_MS, &h);
    assert_true(h.stale);

    /* synced, but never any evidence in this zone */
    scope_set(&t, 3, true, 0, false);
    kube_zone_health(&t.zone, 1000000, SCOPE_IDLE_MS, &h);
    assert_true(h.stale);
    assert_true(h.age_ms == UINT64_MAX);

    /* never allowed: degraded, and the others' age is shown */
    scope_set(&t, 3, false, 0, true);
    kube_zone_health(&t.zone, 1000000, SCOPE_IDLE_MS, &h);
    assert_int_equal(h.forbidden, 1);
    assert_false(h.synced);
    assert_false(h.stale);
    assert_true(h.age_ms == 1000);

    /* was allowed once: what is there grows old */
    scope_set(&t, 3, true, 1, true);
    kube_zone_health(&t.zone, 1000000, SCOPE_IDLE_MS, &h);
    assert_true(h.stale);

    /* a contact noted a moment after now was taken */
    scope_set(&t, 3, true, 1000005, false);
    kube_zone_health(&t.zone, 1000000, SCOPE_IDLE_MS, &h);
    assert_true(h.age_ms == 1000);

    kube_zone_set_state_file(&t.zone, 77, true, false);
    kube_zone_health(&t.zone, 1000000, SCOPE_IDLE_MS, &h);
    assert_true(h.state_in_use);
    zone_test_close(&t);
}


static void
test_scope_server(void **state)
{
    kube_str_t   server;
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(kube_zone_server(&t.zone, &t.arena).len, 0);
    assert_int_equal(kube_zone_server_set(t.writer,
                                          KUBE_STR("https://10.0.0.1:443")),
                     KUBE_OK);
    server = kube_zone_server(&t.zone, &t.arena);
    assert_true(kube_str_eq(server, KUBE_STR("https://10.0.0.1:443")));
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_scope_state_text),
        cmocka_unit_test(test_scope_clear),
        cmocka_unit_test(test_scope_floor),
        cmocka_unit_test(test_scope_record),
        cmocka_unit_test(test_scope_numbers_missing),
        cmocka_unit_test(test_scope_numbers_scale),
        cmocka_unit_test(test_scope_health),
        cmocka_unit_test(test_scope_server),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

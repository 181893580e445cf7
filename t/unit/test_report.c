/*
 * test_report - what a zone says, and what is degraded.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_zone_damping.h"
#include "status_test.h"


/* All of degraded as "cause@seconds:text;", seconds ago, "?" not known. */
static const char *
degraded(status_test_t *st)
{
    size_t                  i, len;
    const kube_degraded_t  *d;

    static char  text[1024];

    assert_int_equal(status_test_report(st), KUBE_OK);

    text[0] = '\0';

    for (i = 0; i < st->report.degraded_n; i++) {
        d = &st->report.degraded[i];
        len = strlen(text);

        assert_true(st->report.causes[d->cause]);

        if (d->since_ms == 0) {
            snprintf(text + len, sizeof(text) - len, "%s@?:%.*s;",
                     kube_cause_text(d->cause), (int) d->text.len,
                     d->text.data);
            continue;
        }

        snprintf(text + len, sizeof(text) - len, "%s@%d:%.*s;",
                 kube_cause_text(d->cause),
                 (int) ((STATUS_TEST_UNIX - d->since_ms) / 1000),
                 (int) d->text.len, d->text.data);
    }

    return text;
}


#define DEGRADED(expected)  assert_string_equal(degraded(&st), expected)


/* Two scopes cannot reach the server, for 20 and for 30 s. */
static void
unreachable(status_test_t *st, const char *first, const char *second)
{
    status_test_error(st, 0, KUBE_CAUSE_UNREACHABLE, "closed", first, 20000);
    status_test_error(st, 1, KUBE_CAUSE_UNREACHABLE, "closed", second, 30000);
}


static void
test_report_following(void **state)
{
    unsigned       i;
    status_test_t  st;
    char           expected[64];

    static const kube_cause_t  causes[] = {
        KUBE_CAUSE_UNAUTHORIZED, KUBE_CAUSE_TLS, KUBE_CAUSE_CREDENTIALS
    };

    (void) state;
    status_test_open(&st);

    DEGRADED("");

    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "");
    status_test_watch(&st, 1, KUBE_RESOURCE_ENDPOINTSLICES, "");
    DEGRADED("");
    assert_true(st.report.scopes[0].watching);

    /* one reason for all scopes is said once, with the oldest of the times */

    status_test_error(&st, 0, KUBE_CAUSE_UNREACHABLE, "connect",
                      "connection refused", 20000);
    DEGRADED("unreachable@20:connection refused;");
    status_test_error(&st, 1, KUBE_CAUSE_UNREACHABLE, "connect",
                      "connection refused", 30000);
    DEGRADED("unreachable@30:connection refused;");
    assert_true(kube_cause_info(KUBE_CAUSE_UNREACHABLE)->not_following);

    /* so is one that tells of each how long it took, but no other */

    unreachable(&st, "Resolving timed out after 3000 ms",
                "Resolving timed out after 999 ms");
    DEGRADED("unreachable@30:Resolving timed out after 3000 ms;");
    unreachable(&st, "after 7", "after 7 ms");
    DEGRADED("unreachable@20:after 7;unreachable@30:after 7 ms;");
    unreachable(&st, "after 7", "after ");
    DEGRADED("unreachable@20:after 7;unreachable@30:after ;");
    unreachable(&st, "after 7 ms", "after  ms");
    DEGRADED("unreachable@20:after 7 ms;unreachable@30:after  ms;");
    unreachable(&st, "after 7", "after 12");
    DEGRADED("unreachable@30:after 7;");

    /* a short failure is none; without a message the reason is said */

    status_test_error(&st, 0, KUBE_CAUSE_UNREACHABLE, "closed", "it closed",
                      4000);
    status_test_error(&st, 1, KUBE_CAUSE_UNREACHABLE, "closed", "it closed",
                      4999);
    DEGRADED("");
    status_test_error(&st, 1, KUBE_CAUSE_UNREACHABLE, "internal", "", 5001);
    DEGRADED("unreachable@5:internal;");

    /* what no waiting heals is said soon, by its name */

    for (i = 0; i < 3; i++) {
        status_test_error(&st, 1, causes[i], "x", "why", 999);
        DEGRADED("");
        status_test_error(&st, 1, causes[i], "x", "why", 1000);
        snprintf(expected, sizeof(expected), "%s@1:why;",
                 kube_cause_text(causes[i]));
        DEGRADED(expected);
    }

    /* words that nobody sane wrote */

    kube_zone_scope_set(&st.t.zone, 1, KUBE_COUNTER_GAUGE_CAUSE, UINT64_MAX);
    DEGRADED("");
    status_test_error(&st, 1, KUBE_CAUSE_TLS, "tls", "why", UINT64_MAX / 2);
    DEGRADED("");

    status_test_close(&st);
}


static void
test_report_forbidden(void **state)
{
    status_test_t  st;

    (void) state;
    status_test_open(&st);

    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "");
    status_test_watch(&st, 1, KUBE_RESOURCE_ENDPOINTSLICES, "shop");

    status_test_error(&st, 0, KUBE_CAUSE_FORBIDDEN, "forbidden", "no", 2000);
    status_test_error(&st, 1, KUBE_CAUSE_FORBIDDEN, "forbidden", "no", 3000);
    DEGRADED("forbidden@2:services in all namespaces;"
             "forbidden@3:endpointslices in shop;");

    status_test_close(&st);
}


/* So many objects of a namespace are refused, "x-0" the first. */
static void
refuse_many(status_test_t *st, const char *ns, unsigned n)
{
    char      name[16];
    unsigned  i;

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "x-%u", i);
        status_test_refuse(st, ns, name, "malformed");
    }
}


static void
test_report_other_causes(void **state)
{
    status_test_t  st;

    (void) state;
    status_test_open(&st);
    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "");

    kube_zone_set_state_file(&st.t.zone, 0, false, true);
    DEGRADED("state_file@?:the state file could not be written;");
    assert_true(st.report.state_error.len != 0);
    kube_zone_set_state_file(&st.t.zone, 0, false, false);

    status_test_refuse(&st, "shop", "a", "too_large");
    DEGRADED("");
    status_test_refuse(&st, "shop", "b", "zone_full");
    DEGRADED("zone_full@?:the zone \"kube\" is full: objects are refused;");
    kube_zone_cause_set(&st.t.zone, KUBE_CAUSE_ZONE_FULL,
                        STATUS_TEST_NOW - 9000);
    DEGRADED("zone_full@9:the zone \"kube\" is full: objects are refused;");

    assert_int_equal(st.report.scopes[0].refused_total, 2);
    assert_int_equal(st.report.scopes[0].refused_n, 2);
    assert_true(kube_str_eq(st.report.scopes[0].refused[1].key,
                            KUBE_STR("shop/b")));
    assert_true(kube_str_eq(st.report.scopes[0].refused[1].reason,
                            KUBE_STR("zone_full")));

    /* only so many are named, but all are counted */

    refuse_many(&st, "shop", KUBE_REFUSED_SHOWN_MAX + 5);

    assert_int_equal(status_test_report(&st), KUBE_OK);
    assert_int_equal(st.report.scopes[0].refused_n, KUBE_REFUSED_SHOWN_MAX);
    assert_int_equal(st.report.scopes[0].refused_total,
                     KUBE_REFUSED_SHOWN_MAX + 7);

    status_test_close(&st);
}


/* The rows of the namespace, among the first n. */
static size_t
named_of(const status_test_t *st, size_t n, const char *ns)
{
    size_t      i, found;
    kube_str_t  key;

    found = 0;

    for (i = 0; i < n; i++) {
        key = st->report.scopes[0].refused[i].key;
        found += (key.len > strlen(ns) && key.data[strlen(ns)] == '/'
                  && memcmp(key.data, ns, strlen(ns)) == 0);
    }

    return found;
}


/* A mark that is newer than what the reader has of the clock is new. */
static void
test_outdated_since(void **state)
{
    uint32_t       entry;
    status_test_t  st;

    (void) state;
    status_test_open(&st);
    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "");
    route_test_service(&st.t, "shop", "web", ":80");
    entry = zone_test_find(&st.t, KUBE_RESOURCE_SERVICES, "shop", "web");

    kube_zone_outdate(st.t.writer, entry, KUBE_REASON_TOO_LARGE,
                      STATUS_TEST_NOW - 7000);
    assert_int_equal(status_test_report(&st), KUBE_OK);
    assert_int_equal(st.report.scopes[0].refused_n, 1);
    assert_int_equal(st.report.scopes[0].refused[0].outdated_ms, 7000);
    assert_true(kube_str_eq(st.report.scopes[0].refused[0].reason,
                            KUBE_STR("too_large")));

    st.report.now_ms = STATUS_TEST_NOW - 7001;
    assert_int_equal(status_test_report(&st), KUBE_OK);
    assert_int_equal(st.report.scopes[0].refused[0].outdated_ms, 0);

    status_test_close(&st);
}


/* A namespace with very many refused objects takes no other's names away. */
static void
test_refused_of_each_namespace(void **state)
{
    status_test_t  st;

    (void) state;
    status_test_open(&st);
    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "");

    refuse_many(&st, "evil", KUBE_REFUSED_SHOWN_MAX + 20);
    refuse_many(&st, "mean", 60);
    status_test_refuse(&st, "shop", "a", "too_large");
    status_test_refuse(&st, "bank", "a", "malformed");
    status_test_refuse(&st, "bank", "b", "malformed");

    assert_int_equal(status_test_report(&st), KUBE_OK);
    assert_int_equal(st.report.scopes[0].refused_n, KUBE_REFUSED_SHOWN_MAX);
    assert_int_equal(st.report.scopes[0].refused_total,
                     KUBE_REFUSED_SHOWN_MAX + 83);

    assert_int_equal(named_of(&st, KUBE_REFUSED_SHOWN_MAX, "shop"), 1);
    assert_int_equal(named_of(&st, KUBE_REFUSED_SHOWN_MAX, "bank"), 2);
    assert_in_range(named_of(&st, KUBE_REFUSED_SHOWN_MAX, "evil"), 48, 49);
    assert_in_range(named_of(&st, KUBE_REFUSED_SHOWN_MAX, "mean"), 48, 49);

    /* the page shows the first five */

    assert_int_equal(named_of(&st, 4, "shop"), 1);
    assert_int_equal(named_of(&st, 4, "bank"), 1);
    assert_int_equal(named_of(&st, 4, "evil"), 1);
    assert_int_equal(named_of(&st, 4, "mean"), 1);

    status_test_close(&st);
}


/* What the zone does not tell of; more than there is room for is a cause. */
static void
test_report_degrade(void **state)
{
    unsigned       i;
    kube_rc_t      rc;
    status_test_t  st;

    (void) state;
    status_test_open(&st);
    assert_int_equal(status_test_report(&st), KUBE_OK);

    for (i = 0; i < KUBE_REPORT_DEGRADED_MAX + 3; i++) {
        rc = kube_report_degrade(&st.report, &st.arena,
                                 KUBE_CAUSE_MISSING_SERVICE, 0, "shop/%u", i);
        assert_int_equal(rc, KUBE_OK);
    }

    assert_int_equal(st.report.degraded_n, KUBE_REPORT_DEGRADED_MAX);
    rc = kube_report_degrade(&st.report, &st.arena, KUBE_CAUSE_TRUNCATED, 0,
                             "one more");
    assert_int_equal(rc, KUBE_OK);
    assert_true(st.report.causes[KUBE_CAUSE_TRUNCATED]);
    assert_true(st.report.causes[KUBE_CAUSE_MISSING_SERVICE]);
    assert_false(st.report.causes[KUBE_CAUSE_TLS]);

    status_test_close(&st);
}


/* Each worker names some and counts the others. */
static void
test_report_truncated(void **state)
{
    unsigned          i;
    status_test_t     st;
    kube_truncated_t  truncated;

    (void) state;
    status_test_open(&st);
    route_test_scope(&st.t, 0, KUBE_RESOURCE_SERVICES, "shop", "synced");
    route_test_service(&st.t, "shop", "a", "http:80");
    route_test_service(&st.t, "shop", "b", "http:80");
    memset(&truncated, 0, sizeof(kube_truncated_t));

    /* an entry that holds nothing, and a time that is to come */
    for (i = 0; i < KUBE_TRUNCATED_SHOWN_MAX; i++) {
        truncated.rows[i].entry = 4000000000u + i;
        truncated.rows[i].since_ms = STATUS_TEST_NOW;
    }

    truncated.rows[0].entry = zone_test_find(&st.t, KUBE_RESOURCE_SERVICES,
                                             "shop", "a");
    truncated.rows[1].entry = zone_test_find(&st.t, KUBE_RESOURCE_SERVICES,
                                             "shop", "b");
    truncated.rows[0].since_ms = STATUS_TEST_NOW - 7000;
    truncated.rows[1].since_ms = STATUS_TEST_NOW + 1000;
    truncated.n = KUBE_TRUNCATED_SHOWN_MAX;
    kube_zone_worker_truncated(&st.t.zone, 0, STATUS_TEST_NOW, &truncated);
    DEGRADED("truncated@7:Service shop/a has more endpoints than are used;");

    truncated.rows[0].since_ms = STATUS_TEST_NOW - 9000;
    truncated.rows[1].since_ms = STATUS_TEST_NOW - 1000;
    truncated.n = KUBE_TRUNCATED_SHOWN_MAX + 3;
    kube_zone_worker_truncated(&st.t.zone, 5, STATUS_TEST_NOW, &truncated);
    DEGRADED("truncated@9:Service shop/a has more endpoints than are used;"
             "truncated@1:Service shop/b has more endpoints than are used;"
             "truncated@?:3 more Services have more endpoints than are used;");

    /* another worker that keeps the same: since the first, and counted once */

    truncated.rows[0].since_ms = STATUS_TEST_NOW - 8000;
    truncated.n = KUBE_TRUNCATED_SHOWN_MAX + 2;
    kube_zone_worker_truncated(&st.t.zone, 6, STATUS_TEST_NOW, &truncated);
    DEGRADED("truncated@9:Service shop/a has more endpoints than are used;"
             "truncated@1:Service shop/b has more endpoints than are used;"
             "truncated@?:3 more Services have more endpoints than are used;");

    status_test_close(&st);
}


static void
test_report_crash_loop(void **state)
{
    status_test_t      st;
    kube_zone_delay_t  delay;

    (void) state;
    status_test_open(&st);

    /* at the third nothing is put off yet: the log does not say so either */
    kube_zone_crashed(&st.t.zone, true, 0, STATUS_TEST_NOW - 115000);
    kube_zone_crashed(&st.t.zone, true, 0, STATUS_TEST_NOW - 110000);
    kube_zone_crashed(&st.t.zone, true, 0, STATUS_TEST_NOW - 100000);
    DEGRADED("");
    kube_zone_crashed(&st.t.zone, true, 0, STATUS_TEST_NOW - 90000);
    kube_zone_crash_delay(&st.t.zone, STATUS_TEST_NOW - 90000, &delay);
    assert_true(delay.resume_ms != 0);

    /* as long as another crash would be one of this loop: 60 s from the end
       of the longest delay */
    kube_zone_crashed(&st.t.zone, true, 0, STATUS_TEST_NOW - 62000);
    DEGRADED("crash_loop@90:the informer process dies again and again; its "
             "start is delayed;");

    st.report.now_ms = STATUS_TEST_NOW + 1;
    DEGRADED("");

    status_test_close(&st);
}


static void
test_report_scopes(void **state)
{
    status_test_t         st;
    kube_scope_info_t     info;
    kube_report_scope_t  *scope;

    (void) state;
    status_test_open(&st);
    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "shop");
    status_test_watch(&st, 3, KUBE_RESOURCE_ENDPOINTSLICES, "shop");

    kube_zone_scope_add(&st.t.zone, 3, KUBE_COUNTER_LISTS, 2);
    kube_zone_scope_add(&st.t.zone, 3, KUBE_COUNTER_SKIPPED_TOO_LARGE, 1);
    kube_zone_scope_add(&st.t.zone, 3, KUBE_COUNTER_SKIPPED_MALFORMED, 2);
    kube_zone_scope_add(&st.t.zone, 3, KUBE_COUNTER_SKIPPED_ENDPOINTS, 4);
    kube_zone_scope_set(&st.t.zone, 3, KUBE_COUNTER_GAUGE_LAST_EVENT_MS,
                        STATUS_TEST_NOW - 700);
    kube_zone_scope_set(&st.t.zone, 3, KUBE_COUNTER_GAUGE_RETRY_AT_MS,
                        STATUS_TEST_NOW + 900);
    kube_zone_worker_add(&st.t.zone, 5, KUBE_WORKER_REBUILDS, 6);

    assert_int_equal(status_test_report(&st), KUBE_OK);
    assert_int_equal(st.report.scopes_n, 2);
    assert_int_equal(st.report.rebuilds, 6);

    scope = &st.report.scopes[0];
    assert_true(kube_str_eq(scope->resource, KUBE_STR("services")));
    assert_true(scope->last_event_ms == KUBE_NEVER);
    assert_true(scope->retry_ms == KUBE_NEVER);

    /* a time to retry means something only while it waits for it */

    scope = &st.report.scopes[1];
    assert_int_equal(scope->counters[KUBE_COUNTER_LISTS], 2);
    assert_int_equal(scope->skipped, 7);
    assert_int_equal(scope->last_event_ms, 700);
    assert_true(scope->retry_ms == KUBE_NEVER);
    assert_int_equal(scope->digest.len, 32);

    assert_int_equal(scope->version, 0);

    /* a version longer than a metric's value can be */

    info = scope->info;
    info.rv = KUBE_STR("98123456789012345");
    assert_int_equal(kube_zone_scope_publish(st.t.writer, 3, &info), KUBE_OK);
    kube_zone_set_queue(&st.t.zone, 1, STATUS_TEST_NOW - 30);

    kube_zone_scope_set(&st.t.zone, 3, KUBE_COUNTER_GAUGE_STATE,
                        KUBE_STATE_BACKOFF);
    assert_int_equal(st.report.queue_age_ms, 0);
    assert_int_equal(status_test_report(&st), KUBE_OK);
    assert_int_equal(st.report.queue_age_ms, 30);
    assert_true(st.report.scopes[1].version == 123456789012345);
    assert_int_equal(st.report.scopes[1].retry_ms, 900);

    kube_zone_damped(&st.t.zone, 3, 1, STATUS_TEST_NOW + 800);
    assert_int_equal(status_test_report(&st), KUBE_OK);
    assert_int_equal(st.report.scopes[1].retry_ms, 800);
    assert_true(kube_str_eq(st.report.scopes[1].state, KUBE_STR("damped")));

    /* clocks of two processes may differ by a tick */

    st.report.now_ms = STATUS_TEST_NOW - 701;
    assert_int_equal(status_test_report(&st), KUBE_OK);
    assert_int_equal(st.report.scopes[1].last_event_ms, 0);

    status_test_close(&st);
}


static void
report_oom(alloc_test_t *at, void *ctx)
{
    kube_rc_t       rc;
    kube_arena_t    arena, scratch;
    kube_report_t   report;
    status_test_t  *st = ctx;

    report = st->report;

    kube_arena_init(&arena, &at->alloc, 16u << 20);
    kube_arena_init(&scratch, &at->alloc, 16u << 20);

    rc = kube_report_read(&report, &st->t.zone, &arena, &scratch);
    alloc_test_assert_rc(at, rc);

    if (rc == KUBE_OK) {
        assert_int_equal(report.degraded_n, 1);
        assert_int_equal(report.scopes[0].refused_n, 1);
    }

    kube_arena_done(&arena);
    kube_arena_done(&scratch);
}


static void
test_report_oom(void **state)
{
    status_test_t  st;

    (void) state;
    status_test_open(&st);
    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "shop");
    status_test_error(&st, 0, KUBE_CAUSE_UNREACHABLE, "connect",
                      "connection refused", 20000);
    status_test_refuse(&st, "shop", "a", "too_large");

    ALLOC_TEST_RUN(report_oom, &st);

    status_test_close(&st);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_report_following),
        cmocka_unit_test(test_report_forbidden),
        cmocka_unit_test(test_report_other_causes),
        cmocka_unit_test(test_outdated_since),
        cmocka_unit_test(test_refused_of_each_namespace),
        cmocka_unit_test(test_report_degrade),
        cmocka_unit_test(test_report_truncated),
        cmocka_unit_test(test_report_crash_loop),
        cmocka_unit_test(test_report_scopes),
        cmocka_unit_test(test_report_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_service_counts - endpoints of each Service by state, in steps between
 * which the zone may change.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_service_counts.h"
#include "kube_zone_image.h"
#include "status_test.h"


static status_test_t          st;
static kube_service_counts_t  counts;
static char                   rows[16384];


static int
setup(void **state)
{
    (void) state;

    status_test_open(&st);

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    status_test_close(&st);

    return 0;
}


static void
begin(const char *ns, uint32_t limit)
{
    rows[0] = '\0';
    assert_int_equal(kube_service_counts_init(&counts, &st.t.zone,
                                              zone_test_str(ns), limit,
                                              &st.t.at.alloc), KUBE_OK);
}


/* Goes so many steps; rows are "ns/name=ready,terminating,not_ready ". */
static kube_rc_t
steps(size_t n)
{
    size_t                     len;
    kube_rc_t                  rc;
    kube_service_counts_row_t  row;

    for (rc = KUBE_AGAIN; n != 0 && rc != KUBE_NOT_FOUND; n--) {
        rc = kube_service_counts_step(&counts, &row);

        if (rc == KUBE_OK) {
            len = strlen(rows);
            snprintf(rows + len, sizeof(rows) - len, "%.*s/%.*s=%u,%u,%u ",
                     (int) row.ns.len, row.ns.data,
                     (int) row.name.len, row.name.data,
                     (unsigned) row.endpoints[KUBE_SERVICE_COUNTS_READY],
                     (unsigned) row.endpoints[KUBE_SERVICE_COUNTS_TERMINATING],
                     (unsigned) row.endpoints[KUBE_SERVICE_COUNTS_NOT_READY]);

        } else {
            assert_true(rc == KUBE_AGAIN || rc == KUBE_NOT_FOUND);
        }
    }

    return rc;
}


/* To the end; returns what was omitted. */
static uint64_t
finish(void)
{
    assert_int_equal(steps(100000), KUBE_NOT_FOUND);
    kube_service_counts_done(&counts);

    return counts.omitted;
}


static size_t
occurrences(const char *text)
{
    size_t       n;
    const char  *p;

    for (n = 0, p = rows; (p = strstr(p, text)) != NULL; p++) {
        n++;
    }

    return n;
}


static void
test_counts_states(void **state)
{
    (void) state;

    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs 10.0.0.2=rs 10.0.0.3=st 10.0.0.4=s "
                     "10.0.0.5=t 10.0.0.6=rst 10.0.0.7=st");
    route_test_service(&st.t, "shop", "none", "http:80");
    route_test_service(&st.t, "infra", "web", "http:80");
    status_test_refuse(&st, "shop", "big", "too_large");

    begin("", 100);
    assert_int_equal(finish(), 0);
    assert_string_equal(rows, "shop/web=3,2,2 shop/none=0,0,0 "
                              "infra/web=0,0,0 ");

    begin("infra", 100);
    assert_int_equal(finish(), 0);
    assert_string_equal(rows, "infra/web=0,0,0 ");

    begin("inf", 100);
    assert_int_equal(finish(), 0);
    assert_string_equal(rows, "");

    assert_string_equal(kube_service_counts_state_text(
                            KUBE_SERVICE_COUNTS_TERMINATING), "terminating");
}


/* Beyond the limit Services are counted, those of other namespaces not. */

static void
test_counts_limit(void **state)
{
    char      name[16];
    unsigned  i;

    (void) state;

    for (i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "s%02u", i);
        route_test_service(&st.t, i % 3 ? "shop" : "infra", name, "http:80");
    }

    for (i = 0; i < 40; i++) {
        begin("", i);
        assert_int_equal(finish(), i < 30 ? 30 - i : 0);
        assert_int_equal(occurrences("/"), i < 30 ? i : 30);

        begin("infra", i);
        assert_int_equal(finish(), i < 10 ? 10 - i : 0);
        assert_int_equal(occurrences("infra/"), i < 10 ? i : 10);
        assert_int_equal(occurrences("shop/"), 0);
    }

    begin("", UINT32_MAX);
    assert_int_equal(counts.limit, KUBE_SERVICE_COUNTS_MAX);
    assert_int_equal(finish(), 0);
}


/* The steps that Services of so many entries take in a zone of many. */

static void
test_counts_steps(void **state)
{
    size_t    n;
    char      name[16];
    unsigned  i;

    (void) state;

    zone_test_close(&st.t);
    zone_test_open(&st.t, 16u << 20);

    for (i = 0; i < 1200; i++) {
        snprintf(name, sizeof(name), "r%04u", i);
        status_test_refuse(&st, "shop", name, "too_large");
    }

    assert_int_equal(zone_test_put(&st.t, "shop", "big", 1, 1, 9, 4, 0),
                     KUBE_OK);

    begin("shop", 100);

    for (n = 1; steps(1) != KUBE_NOT_FOUND; n++) { /* void */ }

    /* two that find nothing, one that finds it, nine, the row and the end */

    assert_int_equal(n, 2 + 1 + 9 + 1 + 1);
    assert_string_equal(rows, "shop/big=36,0,0 ");
    kube_service_counts_done(&counts);
}


/* Deleted and made anew behind the walk's place: it is told once. */

static void
test_counts_made_anew(void **state)
{
    (void) state;

    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_service(&st.t, "shop", "api", "http:80");

    begin("", 100);
    assert_int_equal(steps(2), KUBE_OK);
    assert_string_equal(rows, "shop/web=0,0,0 ");

    zone_test_remove(&st.t, KUBE_RESOURCE_SERVICES, "shop", "web", 0);
    route_test_service(&st.t, "shop", "web", "http:80");

    assert_int_equal(finish(), 0);
    assert_string_equal(rows, "shop/web=0,0,0 shop/api=0,0,0 ");
}


/*
 * A Service that gets another number of slices at any step is told as before
 * or as after, never as a mixture; one that is deleted may be missing.
 */

static void
test_counts_changes(void **state)
{
    size_t  at;

    (void) state;

    for (at = 0; at < 8; at++) {
        assert_int_equal(zone_test_put(&st.t, "shop", "web", 1, 1, 4, 3, 0),
                         KUBE_OK);
        begin("", 100);
        (void) steps(at);
        assert_int_equal(zone_test_put(&st.t, "shop", "web", 2, 2, 4, 7, 0),
                         KUBE_OK);
        assert_int_equal(finish(), 0);

        assert_string_equal(rows, at < 6 ? "shop/web=28,0,0 "
                                         : "shop/web=12,0,0 ");

        begin("", 100);
        (void) steps(at);
        zone_test_remove(&st.t, KUBE_RESOURCE_SERVICES, "shop", "web", 0);
        assert_int_equal(finish(), 0);
        assert_true(rows[0] == '\0'
                    || strcmp(rows, "shop/web=28,0,0 ") == 0);
    }
}


/* Another process writes a ref, which no checksum covers. */

static void
test_counts_hostile(void **state)
{
    size_t          i, at;
    uint32_t        entry;
    kube_ref_t     *ref;
    kube_record_t  *record;

    const uint32_t  entries[] = { 0, 1, 2, 3, 77, st.t.zone.geometry.entries_n,
                                  st.t.zone.geometry.entries_n + 1,
                                  st.t.zone.geometry.entries_n + 9,
                                  UINT32_MAX };

    (void) state;
    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs");
    route_test_service(&st.t, "shop", "api", "http:80");

    entry = zone_test_find(&st.t, KUBE_RESOURCE_SERVICES, "shop", "web");
    record = (kube_record_t *) (void *)
             kube_zone_words(&st.t.zone,
                             kube_zone_entry_offset(&st.t.zone, entry));
    assert_int_equal(record->refs_n, 1);
    at = (size_t) ((const char *) kube_record_refs(record)
                   - (const char *) record);
    ref = (kube_ref_t *) (void *) ((char *) record + at);

    for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {

        if (entries[i] == zone_test_find(&st.t, KUBE_RESOURCE_ENDPOINTSLICES,
                                         "shop", "web-1"))
        {
            continue;
        }

        ref->entry = entries[i];

        begin("", 100);
        assert_int_equal(finish(), 1);
        assert_string_equal(rows, "shop/api=0,0,0 ");
    }
}


static void
counts_oom(alloc_test_t *at, void *ctx)
{
    kube_rc_t                  rc;
    kube_service_counts_t      own;
    kube_service_counts_row_t  row;

    (void) ctx;

    rc = kube_service_counts_init(&own, &st.t.zone, KUBE_STR_NULL, 100,
                                  &at->alloc);

    while (rc == KUBE_OK || rc == KUBE_AGAIN) {
        rc = kube_service_counts_step(&own, &row);
    }

    alloc_test_assert_rc(at, rc == KUBE_NOT_FOUND ? KUBE_OK : rc);
    kube_service_counts_done(&own);
}


static void
test_counts_oom(void **state)
{
    (void) state;

    assert_int_equal(zone_test_put(&st.t, "shop", "web", 1, 1, 4, 30, 0),
                     KUBE_OK);

    ALLOC_TEST_RUN(counts_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_counts_states, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counts_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counts_steps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counts_made_anew, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_counts_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counts_hostile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_counts_oom, setup, teardown)
    };

    return cmocka_run_group_tests_name("service_counts", tests, NULL, NULL);
}

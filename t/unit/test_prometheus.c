/*
 * test_prometheus - the lines of metrics, one family after the other.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_prometheus.h"
#include "status_test.h"


static status_test_t  st;


static int
setup(void **state)
{
    (void) state;

    status_test_open(&st);
    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "shop");
    status_test_watch(&st, 1, KUBE_RESOURCE_ENDPOINTSLICES, "shop");

    return 0;
}


static int
teardown(void **state)
{
    (void) state;

    status_test_close(&st);

    return 0;
}


/* A family has one head, and all of its lines stand below it. */
static void
check_families(void)
{
    int          len;
    char         head[96];
    const char  *line, *type, *name;

    name = "";
    len = 0;

    for (line = st.tt.data; *line != '\0'; line = strchr(line, '\n') + 1) {

        if (strncmp(line, "# TYPE ", 7) == 0) {
            name = line + 7;
            len = (int) strcspn(name, " ");
            snprintf(head, sizeof(head), "# TYPE %.*s ", len, name);
            type = strstr(st.tt.data, head);
            assert_ptr_equal(type, line);
            assert_null(strstr(line + 1, head));

        } else if (line[0] != '#') {
            assert_true(len != 0);
            assert_memory_equal(line, name, (size_t) len);
        }
    }
}


static void
print(size_t n)
{
    kube_report_t  reports[2];

    assert_int_equal(status_test_report(&st), KUBE_OK);
    reports[0] = st.report;
    reports[1] = st.report;
    reports[1].name = KUBE_STR("b\"\\\nx");

    text_test_reset(&st.tt);
    kube_prometheus_print(&st.tt.text, reports, n, KUBE_STR("1.22\"1"));
    assert_false(st.tt.text.failed);
    check_families();
}


static void
has(const char *lines)
{
    if (strstr(st.tt.data, lines) == NULL) {
        fail_msg("missing:\n%s\n%s", lines, st.tt.data);
    }
}


static void
test_prometheus_informer(void **state)
{
    (void) state;

    st.report.ready = true;
    print(2);

    has("# HELP nginx_kube_build_info Versions, as labels; always 1.\n"
        "# TYPE nginx_kube_build_info gauge\n"
        "nginx_kube_build_info{version=\"");
    has(",nginx=\"1.22\\\"1\"} 1\n");
    has("# HELP nginx_kube_ready Whether what the configuration needs has "
        "once synced.\n"
        "# TYPE nginx_kube_ready gauge\n"
        "nginx_kube_ready{informer=\"default\"} 1\n"
        "nginx_kube_ready{informer=\"b\\\"\\\\\\nx\"} 1\n");
    has("nginx_kube_cache_age_seconds{informer=\"default\"} 1.000\n");
    has("# TYPE nginx_kube_takeovers_total counter\n");
    has("nginx_kube_degraded{informer=\"default\",cause=\"unreachable\"} 0\n");
    has("nginx_kube_zone_bytes{informer=\"default\",state=\"live\"} ");
    has("nginx_kube_resolve_total{informer=\"default\",result=\"ok\"} 0\n");
    has("nginx_kube_resolve_total{informer=\"default\","
        "result=\"no_service\"} 0\n");

    status_test_error(&st, 0, KUBE_CAUSE_UNREACHABLE, "connect",
                      "refused", 20000);
    kube_zone_worker_add(&st.t.zone, 3,
                         KUBE_WORKER_RESOLVED(KUBE_RESOLVE_OK), 5);
    print(1);
    has("nginx_kube_degraded{informer=\"default\",cause=\"unreachable\"} 1\n");
    has("result=\"ok\"} 5\n");
}


/* There is no number for the age of what was never current. */

static void
test_prometheus_never(void **state)
{
    (void) state;

    kube_zone_scope_set(&st.t.zone, 0, KUBE_COUNTER_GAUGE_CONTACT_MS, 0);
    print(1);

    has("# TYPE nginx_kube_cache_age_seconds gauge\n# HELP");
    assert_null(strstr(st.tt.data, "nginx_kube_cache_age_seconds{"));
}


static void
test_prometheus_scopes(void **state)
{
    (void) state;

    kube_zone_scope_add(&st.t.zone, 1, KUBE_COUNTER_EVENTS_MODIFIED, 3);
    print(1);

    has("# TYPE nginx_kube_watching gauge\n"
        "nginx_kube_watching{informer=\"default\",resource=\"services\","
        "namespace=\"shop\"} 1\n"
        "nginx_kube_watching{informer=\"default\","
        "resource=\"endpointslices\",namespace=\"shop\"} 1\n");
    has("nginx_kube_lists_total{informer=\"default\",resource=\"services\","
        "namespace=\"shop\"} 0\n");
    has("nginx_kube_events_total{informer=\"default\","
        "resource=\"endpointslices\",namespace=\"shop\",type=\"modified\"} "
        "3\n");
}


static void
test_prometheus_histograms(void **state)
{
    (void) state;

    kube_zone_histogram_observe(&st.t.zone, KUBE_HISTOGRAM_LIST_DURATION,
                                KUBE_RESOURCE_SERVICES, 1500);
    kube_zone_histogram_observe(&st.t.zone, KUBE_HISTOGRAM_LIST_DURATION,
                                KUBE_RESOURCE_SERVICES, 3000000);
    kube_zone_histogram_observe(&st.t.zone, KUBE_HISTOGRAM_ITEMS_PER_LIST,
                                KUBE_RESOURCE_SERVICES, 7);
    print(1);

    has("# TYPE nginx_kube_list_duration_seconds histogram\n");
    has("nginx_kube_list_duration_seconds_bucket{informer=\"default\","
        "resource=\"services\",le=\"+Inf\"} 2\n"
        "nginx_kube_list_duration_seconds_sum{informer=\"default\","
        "resource=\"services\"} 3.0015\n"
        "nginx_kube_list_duration_seconds_count{informer=\"default\","
        "resource=\"services\"} 2\n");
    has("nginx_kube_list_duration_seconds_sum{informer=\"default\","
        "resource=\"endpointslices\"} 0\n");
    has("nginx_kube_items_per_list_sum{informer=\"default\","
        "resource=\"services\"} 7\n");
    assert_null(strstr(st.tt.data, "resource=\"endpoints\""));

    /* what was counted of a resource that is not followed any more stays */

    kube_zone_histogram_observe(&st.t.zone, KUBE_HISTOGRAM_LIST_DURATION,
                                KUBE_RESOURCE_ENDPOINTS, 1500);
    print(1);
    has("nginx_kube_list_duration_seconds_count{informer=\"default\","
        "resource=\"endpoints\"} 1\n");
    assert_null(strstr(st.tt.data, "nginx_kube_items_per_list_count{"
                       "informer=\"default\",resource=\"endpoints\"}"));
}


/* A text that fails anywhere fails as a whole. */

static void
test_prometheus_failure(void **state)
{
    size_t  calls, k;

    (void) state;

    print(1);
    calls = st.tt.calls;

    for (k = 1; k <= calls; k += 97) {
        text_test_reset(&st.tt);
        st.tt.fail_at = k;
        kube_prometheus_print(&st.tt.text, &st.report, 1, KUBE_STR("1"));
        assert_true(st.tt.text.failed);
        assert_int_equal(st.tt.calls, k);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_prometheus_informer, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_prometheus_never, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_prometheus_scopes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_prometheus_histograms, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_prometheus_failure, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

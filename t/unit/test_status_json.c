/*
 * test_status_json - /api/v1/status, and the facts as HTML.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "kube_prometheus.h"
#include "kube_status_html.h"
#include "kube_status_json.h"
#include "status_test.h"


static status_test_t       st;
static kube_resolver_t     resolver;
static kube_status_json_t  status;

/* What the processor has been at when it is looked at next, us. */
static uint64_t            worked, costs;


static uint64_t
worked_us(void)
{
    worked += costs;

    return worked;
}


static int
setup(void **state)
{
    (void) state;

    status_test_open(&st);
    status_test_watch(&st, 0, KUBE_RESOURCE_SERVICES, "");
    status_test_watch(&st, 1, KUBE_RESOURCE_ENDPOINTSLICES, "");

    route_test_service(&st.t, "shop", "web", "http:80");
    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080",
                     "10.0.0.1=rs 10.0.0.2=rs 10.0.0.3=st");

    memset(&resolver, 0, sizeof(kube_resolver_t));
    resolver.zone = &st.t.zone;
    resolver.namespaces.all = true;

    memset(&status, 0, sizeof(kube_status_json_t));
    status.nginx = KUBE_STR("1.22.1");
    status.worker = 123;
    status.now_unix_ms = STATUS_TEST_UNIX;
    status.reports = &st.report;
    status.reports_n = 1;
    status.worked_us = worked_us;
    costs = 0;

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
print(void)
{
    assert_int_equal(status_test_report(&st), KUBE_OK);

    text_test_reset(&st.tt);
    assert_int_equal(kube_status_json_print(&st.tt.text, &status,
                                            &st.t.arena), KUBE_OK);
    status_test_is_json(&st);
}


static void
has(const char *text)
{
    if (strstr(st.tt.data, text) == NULL) {
        fail_msg("missing:\n%s\n%s", text, st.tt.data);
    }
}


static void
test_json_informer(void **state)
{
    (void) state;

    kube_zone_writer_announce(st.t.writer, 77, STATUS_TEST_UNIX);
    status_test_refuse(&st, "shop", "a", "too_large");
    st.report.reason = KUBE_STR("no_service: shop/x");
    print();

    has("\"nginx\":\"1.22.1\",\"worker\":123,"
        "\"time\":\"2026-01-01T00:00:00Z\",\"informers\":[{"
        "\"name\":\"default\",\"synced\":true,\"ready\":false,"
        "\"reason\":\"no_service: shop/x\"");
    has("\"age_seconds\":1.000,\"stale\":false");
    has("\"writer\":{\"pid\":77,\"since\":\"2026-01-01T00:00:00Z\","
        "\"takeovers\":0,\"crashes\":0,\"disturbances\":0}");
    has("\"zone\":{\"name\":\"kube\",\"size\":1048576,\"used\":");
    has("\"state_file\":{\"written\":null,\"in_use\":false,\"error\":null}");
    has("\"degraded\":[],\"resources\":[{\"resource\":\"services\","
        "\"namespace\":\"\",\"state\":\"watching\"");
    has("\"events\":{\"added\":0,\"modified\":0,\"deleted\":0,"
        "\"bookmark\":0,\"error\":0}");
    has("\"last_event_seconds\":null,\"retry_seconds\":null,"
        "\"last_error\":{\"reason\":\"\",\"message\":\"\",\"at\":null},"
        "\"refused\":[{\"key\":\"shop/a\",\"reason\":\"too_large\"}]");
    has("\"upstreams\":[]}");

    /* nobody writes, and nothing was ever heard */

    kube_zone_writer_announce(st.t.writer, 0, 0);
    kube_zone_scope_set(&st.t.zone, 0, KUBE_COUNTER_GAUGE_CONTACT_MS, 0);
    print();
    has("\"writer\":{\"pid\":null,\"since\":null,");
    has("\"age_seconds\":null");
}


static void
test_json_degraded(void **state)
{
    (void) state;

    status_test_error(&st, 0, KUBE_CAUSE_UNREACHABLE, "connect",
                      "\"x\" refused", 20000);
    print();

    has("\"degraded\":[{\"cause\":\"unreachable\",\"following\":false,"
        "\"since\":\"2025-12-31T23:59:40Z\",\"text\":\"\\\"x\\\" refused\"}]");
    has("\"last_error\":{\"reason\":\"connect\",\"message\":"
        "\"\\\"x\\\" refused\",\"at\":\"2025-12-31T23:59:40Z\"}");
}


static void
use_init(kube_status_use_t *use, const char *name, const char *text,
    const kube_key_t *key)
{
    memset(use, 0, sizeof(kube_status_use_t));

    use->directive = KUBE_STR("kube_service");
    use->name = kube_str(name);
    use->informer = KUBE_STR("default");
    use->file = KUBE_STR("/etc/nginx.conf");
    use->line = 12;
    use->key = kube_str(text);
    use->resolver = &resolver;
    use->static_key = key;
}


static void
test_json_uses(void **state)
{
    kube_key_t         key, gone;
    kube_str_t         keys[3];
    kube_arena_t       small;
    kube_status_use_t  uses[3];

    (void) state;

    assert_int_equal(kube_key_parse(KUBE_STR("shop/web"), false, &key, NULL),
                     KUBE_OK);
    assert_int_equal(kube_key_parse(KUBE_STR("shop/gone:x"), false, &gone,
                                    NULL), KUBE_OK);

    keys[0] = KUBE_STR("shop/web:80");
    keys[1] = KUBE_STR("../x");
    keys[2] = KUBE_STR("shop/web:81");

    use_init(&uses[0], "web", "web.shop", &key);
    use_init(&uses[1], "gone", "shop/gone:x", &gone);
    use_init(&uses[2], "many", "$http_x", NULL);
    uses[2].keys = keys;
    uses[2].keys_n = 3;

    status.uses = uses;
    status.uses_n = 3;
    print();

    has("{\"directive\":\"kube_service\",\"name\":\"web\","
        "\"informer\":\"default\",\"file\":\"/etc/nginx.conf\",\"line\":12,"
        "\"key\":\"web.shop\",\"static\":true,\"service\":\"shop/web:http\","
        "\"endpoints\":2,\"state\":\"ready\",\"generation\":");
    has(",\"error\":null,\"why\":null}");
    has("\"service\":\"shop/gone:x\",\"endpoints\":0,\"state\":null,"
        "\"generation\":0,\"error\":\"no_service\",\"why\":\"");
    has("\"key\":\"$http_x\",\"static\":false,\"keys\":["
        "{\"key\":\"shop/web:80\",\"service\":\"shop/web:http\"");
    has("{\"key\":\"../x\",\"service\":null,\"endpoints\":0,\"state\":null,"
        "\"generation\":0,\"error\":\"bad_key\",\"why\":\"");
    has("{\"key\":\"shop/web:81\",\"service\":\"shop/web:81\","
        "\"endpoints\":0,\"state\":null,");
    has("\"error\":\"no_port\",\"why\":\"Service shop/web has no port 81; it "
        "has http (80)\"");

    /* as many as requests find, whatever the arena of the status may hold */

    kube_arena_init(&small, st.t.arena.alloc, 64);
    text_test_reset(&st.tt);
    status.uses_n = 1;
    assert_int_equal(kube_status_json_print(&st.tt.text, &status, &small),
                     KUBE_OK);
    has("\"endpoints\":2,\"state\":\"ready\",\"generation\":");
    kube_arena_done(&small);
}


/* Prints, and looks for how many endpoints the only use has. */
static void
has_endpoints(unsigned n)
{
    char  text[64];

    (void) snprintf(text, sizeof(text), "\"endpoints\":%u,", n);
    print();
    has(text);
}


static void
more_of_web(unsigned n)
{
    unsigned  i;
    size_t    len;
    char      text[8192];

    len = 0;

    for (i = 0; i < n; i++) {
        len += (size_t) snprintf(text + len, sizeof(text) - len,
                                 "%sfd00::%x=rs", i != 0 ? " " : "", i + 1);
    }

    route_test_slice(&st.t, "shop", "web-1", "web", "http:8080", text);
}


/* What is large is not read again for each look at the status. */
static void
test_json_kept(void **state)
{
    kube_key_t          key;
    kube_status_use_t   use;
    kube_status_kept_t  kept;

    (void) state;

    assert_int_equal(kube_key_parse(KUBE_STR("shop/web"), false, &key, NULL),
                     KUBE_OK);
    use_init(&use, "web", "shop/web", &key);
    memset(&kept, 0, sizeof(kube_status_kept_t));
    use.kept = &kept;
    status.uses = &use;
    status.uses_n = 1;
    status.now_ms = 5000;

    has_endpoints(2);

    /* nothing has changed: what is kept is printed, and nothing is read */

    kept.n = 77;
    has_endpoints(77);

    /* what is cheap, or small, is as it is now */

    costs = 1000;
    more_of_web(98);
    has_endpoints(98);

    more_of_web(99);
    has_endpoints(99);

    costs = 5000;
    more_of_web(3);
    has_endpoints(3);

    more_of_web(98);
    has_endpoints(98);

    /* now it was not: 5 ms of the processor are 100 ms */

    more_of_web(99);
    status.now_ms = 5099;
    has_endpoints(98);

    status.now_ms = 5100;
    has_endpoints(99);

    /* but what is gone is gone */

    zone_test_remove(&st.t, KUBE_RESOURCE_SERVICES, "shop", "web", 5100);
    print();
    has("\"endpoints\":0,\"state\":null,\"generation\":0,"
        "\"error\":\"no_service\"");
}


static void
test_upstreams_metric(void **state)
{
    static const kube_prometheus_upstream_t  upstreams[] = {
        { { "default", 7 }, { "w\"eb", 4 }, 2 },
        { { "other", 5 }, { "gone", 4 }, 0 }
    };

    (void) state;

    text_test_reset(&st.tt);
    kube_prometheus_print_upstreams(&st.tt.text, upstreams, 2);
    has("# TYPE nginx_kube_upstream_endpoints gauge\n"
        "nginx_kube_upstream_endpoints{informer=\"default\","
        "upstream=\"w\\\"eb\"} 2\n"
        "nginx_kube_upstream_endpoints{informer=\"other\","
        "upstream=\"gone\"} 0\n");
}


static void
json_oom(alloc_test_t *at, void *ctx)
{
    kube_arena_t  scratch;

    (void) ctx;

    kube_arena_init(&scratch, &at->alloc, 16u << 20);
    text_test_reset(&st.tt);

    alloc_test_assert_rc(at, kube_status_json_print(&st.tt.text, &status,
                                                    &scratch));
    kube_arena_done(&scratch);
}


static void
test_json_oom(void **state)
{
    kube_key_t         key;
    kube_status_use_t  use;

    (void) state;

    assert_int_equal(kube_key_parse(KUBE_STR("shop/web"), false, &key, NULL),
                     KUBE_OK);
    use_init(&use, "web", "shop/web", &key);
    status.uses = &use;
    status.uses_n = 1;

    print();
    ALLOC_TEST_RUN(json_oom, NULL);
}


static void
test_html(void **state)
{
    (void) state;

    status_test_error(&st, 0, KUBE_CAUSE_UNREACHABLE, "connect",
                      "<b>&\"", 20000);
    assert_int_equal(status_test_report(&st), KUBE_OK);

    text_test_reset(&st.tt);
    kube_status_html_print(&st.tt.text, &st.report, 1);
    assert_false(st.tt.text.failed);

    has("<h2>Informer default</h2>\n<p class=\"banner warn\">unreachable: "
        "&#60;b&#62;&#38;&#34;</p>\n<dl class=\"facts\">\n"
        "<div><dt>name</dt><dd>default</dd></div>\n"
        "<div><dt>synced</dt><dd>yes</dd></div>\n");
    has("<div><dt>writer.pid</dt><dd>none</dd></div>\n");
    has("<div><dt>age_seconds</dt><dd>20.000</dd></div>\n");
    has("<div><dt>state</dt><dd>watching</dd></div>\n");
    has("<div><dt>last_error.at</dt><dd>2025-12-31T23:59:40Z</dd></div>\n");
    assert_null(strstr(st.tt.data, "<b>"));

    text_test_reset(&st.tt);
    kube_status_html_print(&st.tt.text, NULL, 0);
    has("no kube_informer");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(test_json_informer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_degraded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_uses, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(test_json_oom, setup, teardown),
        cmocka_unit_test_setup_teardown(test_upstreams_metric, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_html, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

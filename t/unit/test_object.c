/*
 * test_object - names, texts.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_object.h"


static void
object_names(void **state)
{
    char               long_name[300];
    size_t             i;
    kube_str_t         s;
    static const char  *const bad[] = {
        "", "-", "-a", "a-", "A", "a_b", "a/b", "..", ".", "a..b", ".a",
        "a.", "a.-b", "a-.b", "a\\", "a\"", "a%00", "a\r\n", "a\x1b[0m",
        "\xc3\xa4", "a b"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (kube_name_is_label(kube_str(bad[i]))
            || kube_name_is_subdomain(kube_str(bad[i])))
        {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }

    assert_true(kube_name_is_label(KUBE_STR("a")));
    assert_true(kube_name_is_label(KUBE_STR("0")));
    assert_true(kube_name_is_label(KUBE_STR("a--b-9")));
    assert_false(kube_name_is_label(KUBE_STR("a.b")));
    assert_true(kube_name_is_subdomain(KUBE_STR("a.b-c.9")));
    assert_false(kube_name_is_subdomain((kube_str_t) { "a\0b", 3 }));

    memset(long_name, 'a', sizeof(long_name));
    s.data = long_name;

    s.len = 63;
    assert_true(kube_name_is_label(s));
    s.len = 64;
    assert_false(kube_name_is_label(s));

    /* apimachinery limits the whole, not each part */
    assert_true(kube_name_is_subdomain(s));
    s.len = 253;
    assert_true(kube_name_is_subdomain(s));
    s.len = 254;
    assert_false(kube_name_is_subdomain(s));
}


static void
object_texts(void **state)
{
    kube_object_t  o;

    (void) state;

    assert_string_equal(kube_resource_text(KUBE_RESOURCE_SERVICES),
                        "services");
    assert_string_equal(kube_resource_text(KUBE_RESOURCE_ENDPOINTSLICES),
                        "endpointslices");
    assert_string_equal(kube_resource_text(KUBE_RESOURCES), "unknown");
    assert_string_equal(kube_protocol_text(KUBE_PROTOCOL_TCP), "TCP");
    assert_string_equal(kube_protocol_text(KUBE_PROTOCOL_UDP), "UDP");
    assert_string_equal(kube_protocol_text(KUBE_PROTOCOL_SCTP), "SCTP");
    assert_string_equal(kube_protocol_text((kube_protocol_t) 9), "unknown");
    assert_string_equal(kube_service_type_text(KUBE_SERVICE_CLUSTER_IP),
                        "ClusterIP");
    assert_string_equal(kube_service_type_text(KUBE_SERVICE_NODE_PORT),
                        "NodePort");
    assert_string_equal(kube_service_type_text(KUBE_SERVICE_LOAD_BALANCER),
                        "LoadBalancer");
    assert_string_equal(kube_service_type_text(KUBE_SERVICE_EXTERNAL_NAME),
                        "ExternalName");
    assert_string_equal(kube_service_type_text((kube_service_type_t) 9),
                        "unknown");

    o.resource = KUBE_RESOURCE_SERVICES;
    assert_ptr_equal(kube_object_meta(&o), &o.u.service.meta);
    o.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    assert_ptr_equal(kube_object_meta(&o), &o.u.slice.meta);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(object_names),
        cmocka_unit_test(object_texts)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

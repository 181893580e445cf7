/*
 * test_object - addresses, names, texts.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "addr_test.h"
#include "kube_object.h"


typedef struct {
    const char  *in;
    const char  *out;       /* RFC 5952; NULL: refused */
} object_addr_t;


static const object_addr_t  object_addrs[] = {
    { "10.0.0.1", "10.0.0.1" },
    { "0.0.0.0", "0.0.0.0" },
    { "255.255.255.255", "255.255.255.255" },
    { "01.2.3.4", NULL },
    { "1.2.3.04", NULL },
    { "1.2.3", NULL },
    { "1.2.3.", NULL },
    { "1.2.3.4.", NULL },
    { "1.2.3.4.5", NULL },
    { ".1.2.3", NULL },
    { "1..2.3", NULL },
    { "256.1.1.1", NULL },
    { "1.2.3.-4", NULL },
    { "1.2.3.4 ", NULL },
    { " 1.2.3.4", NULL },
    { "0x1.2.3.4", NULL },
    { "16909060", NULL },
    { "web.shop", NULL },
    { "localhost", NULL },
    { "", NULL },
    { "1.2.3.4/32", NULL },

    { "::", "::" },
    { "::1", "::1" },
    { "1::", "1::" },
    { "2001:db8::1", "2001:db8::1" },
    { "2001:DB8:0:0:0:0:0:1", "2001:db8::1" },
    { "2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1" },
    { "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
    { "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
    { "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
    { "1:0:0:2:3:0:0:0", "1:0:0:2:3::" },
    { "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8" },
    { "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" },
    { "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
    { "::ffff:10.0.0.1", "::ffff:10.0.0.1" },
    { "::ffff:a00:1", "::ffff:10.0.0.1" },
    { "::10.0.0.1", "::a00:1" },
    { "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304" },
    { "64:ff9b::1.2.3.4", "64:ff9b::102:304" },
    { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
    { ":", NULL },
    { ":::", NULL },
    { ":1", NULL },
    { "1:", NULL },
    { "1:2:3:4:5:6:7", NULL },
    { "1:2:3:4:5:6:7:", NULL },
    { "1:2:3:4:5:6:7:8:9", NULL },
    { "1:2:3:4:5:6:7:8::", NULL },
    { "1:2:3:4::5:6:7:8", NULL },
    { "1::2::3", NULL },
    { "::1:", NULL },
    { "1:::2", NULL },
    { "12345::", NULL },
    { "g::", NULL },
    { "fe80::1%eth0", NULL },
    { "[::1]", NULL },
    { "::1.2.3", NULL },
    { "::01.2.3.4", NULL },
    { "::1.2.3.4:5", NULL },
    { "1:2:3:4:5:6:7:1.2.3.4", NULL },
    { "::ffff:1.2.3.4.5", NULL },
    { "::ffff:1.2.3.400", NULL },
    { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NULL }
};


static void
object_addr_table(void **state)
{
    char                  text[KUBE_ADDR_TEXT_MAX];
    size_t                i, n;
    kube_rc_t             rc;
    kube_str_t            in;
    kube_addr_t           addr, again;
    const object_addr_t  *a;

    (void) state;

    for (i = 0; i < sizeof(object_addrs) / sizeof(object_addrs[0]); i++) {
        a = &object_addrs[i];
        memset(&addr, 0x5a, sizeof(addr));
        in = kube_str(a->in);

        rc = kube_addr_parse(in, &addr);

        if ((rc == KUBE_OK) != (a->out != NULL)) {
            fail_msg("\"%s\": %s", a->in, kube_rc_text(rc));
        }

        if (rc != KUBE_OK) {
            assert_int_equal(addr.bytes[0], 0x5a);
            continue;
        }

        n = kube_addr_text(&addr, text);
        assert_string_equal(text, a->out);
        assert_int_equal(n, strlen(a->out));

        assert_int_equal(kube_addr_parse(kube_str(text), &again), KUBE_OK);
        assert_true(addr_eq(&addr, &again));
    }
}


/* Any address survives text and back. */
static void
object_addr_round_trip(void **state)
{
    char         text[KUBE_ADDR_TEXT_MAX];
    unsigned     bits, i;
    kube_addr_t  addr, again;

    (void) state;

    /* every pattern of zero and non-zero groups */
    for (bits = 0; bits < 256; bits++) {
        memset(&addr, 0, sizeof(addr));
        addr.family = KUBE_FAMILY_IPV6;

        for (i = 0; i < 8; i++) {
            if (bits & (1u << i)) {
                addr.bytes[2 * i] = (uint8_t) (bits * 7);
                addr.bytes[2 * i + 1] = (uint8_t) (1 + i);
            }
        }

        assert_true(kube_addr_text(&addr, text) < KUBE_ADDR_TEXT_MAX);
        assert_int_equal(kube_addr_parse(kube_str(text), &again), KUBE_OK);
        assert_memory_equal(&addr, &again, sizeof(addr));
    }
}


static void
object_addr_eq(void **state)
{
    char         text[KUBE_ADDR_TEXT_MAX];
    kube_addr_t  a, b;

    (void) state;

    memset(&a, 0, sizeof(a));
    b = a;
    assert_true(addr_eq(&a, &b));
    assert_int_equal(kube_addr_text(&a, text), 0);
    assert_string_equal(text, "");

    a.family = KUBE_FAMILY_IPV4;
    assert_false(addr_eq(&a, &b));

    /* only four bytes of an IPv4 address count */
    b.family = KUBE_FAMILY_IPV4;
    b.bytes[7] = 1;
    assert_true(addr_eq(&a, &b));
    b.bytes[3] = 1;
    assert_false(addr_eq(&a, &b));
}


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
        cmocka_unit_test(object_addr_table),
        cmocka_unit_test(object_addr_round_trip),
        cmocka_unit_test(object_addr_eq),
        cmocka_unit_test(object_names),
        cmocka_unit_test(object_texts)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

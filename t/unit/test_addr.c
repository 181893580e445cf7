/*
 * test_addr - addresses from text, as text, as numbers.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "addr_test.h"
#include "kube_addr.h"


typedef struct {
    const char  *in;
    const char  *out;       /* RFC 5952; NULL: refused */
} addr_case_t;


static const addr_case_t  addrs[] = {
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
addr_table(void **state)
{
    char                  text[KUBE_ADDR_TEXT_MAX];
    size_t                i, n;
    kube_rc_t             rc;
    kube_str_t            in;
    kube_addr_t           addr, again;
    const addr_case_t    *a;

    (void) state;

    for (i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
        a = &addrs[i];
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
addr_round_trip(void **state)
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
addr_equal(void **state)
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


/* Numbers compare as bytes do; of IPv4 only four count. */
static void
addr_numbers(void **state)
{
    size_t              i;
    kube_addr_t         addr;
    kube_addr_number_t  number;

    static const struct {
        const char  *text;
        uint64_t     high;
        uint64_t     low;
    } cases[] = {
        { "0.0.0.0", 0, 0 },
        { "10.1.2.3", 0x0a01020300000000, 0 },
        { "255.255.255.255", 0xffffffff00000000, 0 },
        { "::", 0, 0 },
        { "::1", 0, 1 },
        { "::ffff:10.1.2.3", 0, 0x0000ffff0a010203 },
        { "102:304:506:708:90a:b0c:d0e:f10",
          0x0102030405060708, 0x090a0b0c0d0e0f10 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(kube_addr_parse(kube_str(cases[i].text), &addr),
                         KUBE_OK);

        if (addr.family == KUBE_FAMILY_IPV4) {
            memset(addr.bytes + 4, 0x5a, sizeof(addr.bytes) - 4);
        }

        number = kube_addr_number(&addr);
        assert_int_equal(number.family, addr.family);
        assert_true(number.high == cases[i].high);
        assert_true(number.low == cases[i].low);
    }

    memset(&addr, 0x5a, sizeof(addr));
    addr.family = KUBE_FAMILY_NONE;
    number = kube_addr_number(&addr);
    assert_true(number.high == 0 && number.low == 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(addr_table),
        cmocka_unit_test(addr_round_trip),
        cmocka_unit_test(addr_equal),
        cmocka_unit_test(addr_numbers)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

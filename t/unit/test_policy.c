/*
 * test_policy - addresses that may be used, and namespaces.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "alloc_test.h"
#include "kube_policy.h"


#define N(array)  (sizeof(array) / sizeof(array[0]))

typedef enum {
    PLAIN,
    SPECIAL,
    NEVER
} class_t;

typedef struct {
    const char  *text;
    class_t      class;
} address_t;

/* The same few places in every spelling that reaches them. */
static const address_t  addresses[] = {
    { "127.0.0.1", SPECIAL },
    { "127.255.255.254", SPECIAL },
    { "::1", SPECIAL },
    { "0:0:0:0:0:0:0:1", SPECIAL },
    { "::ffff:127.0.0.1", SPECIAL },
    { "::ffff:7f00:1", SPECIAL },
    { "0:0:0:0:0:ffff:7f00:0001", SPECIAL },
    { "::127.0.0.1", SPECIAL },
    { "64:ff9b::127.0.0.1", SPECIAL },
    { "64:ff9b::7f00:1", SPECIAL },
    { "2002:7f00:1::", SPECIAL },
    { "169.254.169.254", SPECIAL },
    { "169.254.0.1", SPECIAL },
    { "::ffff:169.254.169.254", SPECIAL },
    { "::FFFF:A9FE:A9FE", SPECIAL },
    { "64:ff9b::a9fe:a9fe", SPECIAL },
    { "2002:a9fe:a9fe::1", SPECIAL },
    { "fe80::1", SPECIAL },
    { "febf:ffff::1", SPECIAL },
    { "fd00:ec2::254", SPECIAL },
    { "fd00:0ec2:0:0:0:0:0:0254", SPECIAL },
    { "0.0.0.0", NEVER },
    { "0.1.2.3", NEVER },
    { "::", NEVER },
    { "::ffff:0.0.0.0", NEVER },
    { "::0.1.2.3", NEVER },
    { "64:ff9b::", NEVER },
    { "255.255.255.255", NEVER },
    { "::ffff:255.255.255.255", NEVER },
    { "224.0.0.1", NEVER },
    { "239.255.255.255", NEVER },
    { "::ffff:224.0.0.1", NEVER },
    { "2002:e000:1::", NEVER },
    { "ff02::1", NEVER },
    { "ff00::", NEVER },
    { "10.0.0.1", PLAIN },
    { "172.16.0.1", PLAIN },
    { "192.168.1.1", PLAIN },
    { "100.64.0.1", PLAIN },
    { "126.255.255.255", PLAIN },
    { "128.0.0.1", PLAIN },
    { "169.253.255.255", PLAIN },
    { "169.255.0.0", PLAIN },
    { "223.255.255.255", PLAIN },
    { "240.0.0.1", PLAIN },
    { "255.255.255.254", PLAIN },
    { "1.0.0.0", PLAIN },
    { "::ffff:10.0.0.1", PLAIN },
    { "fd00::1", PLAIN },
    { "fd00:ec2::253", PLAIN },
    { "2001:db8::1", PLAIN },
    { "fec0::1", PLAIN },
    { "64:ff9b::10.0.0.1", PLAIN },
    { "2002:a00:1::", PLAIN }
};


static kube_addr_t
addr_of(const char *text)
{
    kube_addr_t  addr;

    assert_int_equal(kube_addr_parse(kube_str(text), &addr), KUBE_OK);

    return addr;
}


static kube_cidr_t
cidr_of(const char *text)
{
    kube_cidr_t  cidr;

    assert_int_equal(kube_cidr_parse(kube_str(text), &cidr, NULL), KUBE_OK);

    return cidr;
}


static void
test_policy_defaults(void **state)
{
    size_t         i;
    kube_addr_t    addr;
    kube_policy_t  empty;

    (void) state;

    memset(&empty, 0, sizeof(kube_policy_t));

    for (i = 0; i < N(addresses); i++) {
        addr = addr_of(addresses[i].text);

        if (kube_policy_check(NULL, &addr) != (addresses[i].class == PLAIN)
            || kube_policy_check(&empty, &addr)
               != (addresses[i].class == PLAIN))
        {
            fail_msg("%s", addresses[i].text);
        }
    }
}


/* With everything allowed, only what is never used stays out. */
static void
test_policy_never(void **state)
{
    size_t         i;
    kube_addr_t    addr;
    kube_cidr_t    all[2];
    kube_policy_t  policy;

    (void) state;

    memset(&policy, 0, sizeof(kube_policy_t));
    all[0] = cidr_of("0.0.0.0/0");
    all[1] = cidr_of("::/0");
    policy.allow = all;
    policy.allow_n = 2;

    for (i = 0; i < N(addresses); i++) {
        addr = addr_of(addresses[i].text);

        if (kube_policy_check(&policy, &addr)
            == (addresses[i].class == NEVER))
        {
            fail_msg("%s", addresses[i].text);
        }
    }
}


static void
test_policy_none(void **state)
{
    kube_addr_t  addr;

    (void) state;

    memset(&addr, 0, sizeof(kube_addr_t));
    assert_false(kube_policy_check(NULL, &addr));
}


static bool
allowed(const char *allow, const char *deny, const char *text)
{
    kube_addr_t    addr;
    kube_cidr_t    allow_cidr, deny_cidr;
    kube_policy_t  policy;

    memset(&policy, 0, sizeof(kube_policy_t));

    if (allow != NULL) {
        allow_cidr = cidr_of(allow);
        policy.allow = &allow_cidr;
        policy.allow_n = 1;
    }

    if (deny != NULL) {
        deny_cidr = cidr_of(deny);
        policy.deny = &deny_cidr;
        policy.deny_n = 1;
    }

    addr = addr_of(text);

    return kube_policy_check(&policy, &addr);
}


static void
test_policy_lists(void **state)
{
    (void) state;

    /* named: used, though special; and nothing else */
    assert_true(allowed("127.0.0.0/8", NULL, "127.0.0.1"));
    assert_true(allowed("127.0.0.0/8", NULL, "::ffff:127.0.0.1"));
    assert_true(allowed("127.0.0.5", NULL, "127.0.0.5"));
    assert_false(allowed("127.0.0.5", NULL, "127.0.0.6"));
    assert_false(allowed("127.0.0.0/8", NULL, "10.0.0.1"));
    assert_false(allowed("127.0.0.0/8", NULL, "::1"));
    assert_true(allowed("::1", NULL, "::1"));
    assert_true(allowed("fe80::/10", NULL, "fe80::1"));
    assert_true(allowed("fd00:ec2::254", NULL, "fd00:ec2::254"));
    assert_true(allowed("10.0.0.0/8", NULL, "10.255.0.1"));
    assert_false(allowed("10.0.0.0/8", NULL, "11.0.0.1"));
    assert_false(allowed("10.0.0.0/8", NULL, "fd00::1"));
    assert_true(allowed("::ffff:10.0.0.0/104", NULL, "10.1.2.3"));

    /* denied: whatever is allowed */
    assert_false(allowed(NULL, "10.0.0.0/8", "10.0.0.1"));
    assert_false(allowed(NULL, "10.0.0.0/8", "::ffff:10.0.0.1"));
    assert_true(allowed(NULL, "10.0.0.0/8", "11.0.0.1"));
    assert_false(allowed("10.0.0.0/8", "10.1.0.0/16", "10.1.0.1"));
    assert_true(allowed("10.0.0.0/8", "10.1.0.0/16", "10.2.0.1"));
    assert_false(allowed("10.1.0.0/16", "10.0.0.0/8", "10.1.0.1"));
    assert_false(allowed("127.0.0.0/8", "127.0.0.1", "127.0.0.1"));
    assert_false(allowed("127.0.0.0/8", "::ffff:127.0.0.1", "127.0.0.1"));

    /* never, though named */
    assert_false(allowed("0.0.0.0", NULL, "0.0.0.0"));
    assert_false(allowed("255.255.255.255", NULL, "255.255.255.255"));
    assert_false(allowed("224.0.0.0/4", NULL, "224.0.0.1"));
    assert_false(allowed("::", NULL, "::"));
    assert_false(allowed("ff00::/8", NULL, "ff02::1"));
}


static void
test_cidr_parse(void **state)
{
    size_t        i;
    kube_cidr_t   cidr;
    kube_addr_t   addr;
    kube_error_t  error;

    static const char  *bad[] = {
        "", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1",
        "10.0.0.0/08", "10.0.0.0/8/8", "10.0.0/8", "10.0.0.0.0", "::/129",
        "::/", "010.0.0.1", "10.0.0.0 /8", "fe80::1%eth0", "x", "10.0.0.0/x",
        "10.0.0.0/99999999999999999999"
    };

    (void) state;

    for (i = 0; i < N(bad); i++) {
        memset(&error, 0, sizeof(kube_error_t));
        assert_int_equal(kube_cidr_parse(kube_str(bad[i]), &cidr, &error),
                         KUBE_INVALID);
        assert_int_equal(error.rc, KUBE_INVALID);
        assert_non_null(error.what);
    }

    cidr = cidr_of("10.1.2.3/8");
    assert_int_equal(cidr.bits, 8);
    assert_true(cidr.low_bits);
    addr = addr_of("10.0.0.0");
    assert_true(kube_addr_eq(&cidr.addr, &addr));

    cidr = cidr_of("10.1.2.3");
    assert_int_equal(cidr.bits, 32);
    assert_false(cidr.low_bits);

    cidr = cidr_of("2001:db8::/33");
    assert_int_equal(cidr.bits, 33);
    assert_false(cidr.low_bits);
    addr = addr_of("2001:db8:7fff::1");
    assert_true(kube_cidr_contains(&cidr, &addr));
    addr = addr_of("2001:db8:8000::1");
    assert_false(kube_cidr_contains(&cidr, &addr));

    cidr = cidr_of("::ffff:10.0.0.0/104");
    assert_int_equal(cidr.addr.family, KUBE_FAMILY_IPV4);
    assert_int_equal(cidr.bits, 8);

    cidr = cidr_of("10.0.0.0/31");
    addr = addr_of("10.0.0.1");
    assert_true(kube_cidr_contains(&cidr, &addr));
    addr = addr_of("10.0.0.2");
    assert_false(kube_cidr_contains(&cidr, &addr));

    cidr = cidr_of("::/0");
    assert_true(cidr.bits == 0 && !cidr.low_bits);
    addr = addr_of("2001:db8::1");
    assert_true(kube_cidr_contains(&cidr, &addr));
    addr = addr_of("::ffff:10.0.0.1");
    assert_false(kube_cidr_contains(&cidr, &addr));
}


static void
test_namespaces(void **state)
{
    kube_str_t         names[2];
    kube_namespaces_t  ns;

    (void) state;

    memset(&ns, 0, sizeof(kube_namespaces_t));
    assert_false(kube_namespaces_allow(&ns, KUBE_STR("shop")));
    assert_false(kube_namespaces_allow(&ns, KUBE_STR_NULL));

    names[0] = KUBE_STR("shop");
    names[1] = KUBE_STR("api");
    ns.names = names;
    ns.names_n = 2;

    assert_true(kube_namespaces_allow(&ns, KUBE_STR("shop")));
    assert_true(kube_namespaces_allow(&ns, KUBE_STR("api")));
    assert_false(kube_namespaces_allow(&ns, KUBE_STR("shop2")));
    assert_false(kube_namespaces_allow(&ns, KUBE_STR("sho")));
    assert_false(kube_namespaces_allow(&ns, KUBE_STR("")));
    assert_false(kube_namespaces_allow(&ns, KUBE_STR("kube-system")));

    ns.all = true;
    assert_true(kube_namespaces_allow(&ns, KUBE_STR("kube-system")));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_policy_defaults),
        cmocka_unit_test(test_policy_never),
        cmocka_unit_test(test_policy_none),
        cmocka_unit_test(test_policy_lists),
        cmocka_unit_test(test_cidr_parse),
        cmocka_unit_test(test_namespaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

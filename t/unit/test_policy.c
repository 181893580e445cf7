/*
 * test_policy - addresses that may be used, and namespaces.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_policy.h"


#define N(array)  (sizeof(array) / sizeof(array[0]))

typedef enum {
    PLAIN,
    SPECIAL,
    NEVER
} class_t;

/* named: the widest network that names a special address. */
typedef struct {
    const char  *text;
    class_t      class;
    const char  *why;
    const char  *named;
} address_t;

/* The same few places in every spelling that reaches them. */
static const address_t  addresses[] = {
    { "127.0.0.1", SPECIAL, "loopback (127.0.0.0/8)", "127.0.0.0/8" },
    { "127.255.255.254", SPECIAL, "loopback (127.0.0.0/8)", "127.0.0.0/8" },
    { "::1", SPECIAL, "loopback (::1)", "::1" },
    { "0:0:0:0:0:0:0:1", SPECIAL, "loopback (::1)", "::1/128" },
    { "::ffff:127.0.0.1", SPECIAL, "loopback (127.0.0.0/8)", "127.0.0.0/8" },
    { "::ffff:7f00:1", SPECIAL,
      "loopback (127.0.0.0/8)", "::ffff:127.0.0.0/104" },
    { "0:0:0:0:0:ffff:7f00:0001", SPECIAL,
      "loopback (127.0.0.0/8)", "127.0.0.0/8" },
    { "::127.0.0.1", SPECIAL, "loopback (127.0.0.0/8)", "::127.0.0.0/104" },
    { "64:ff9b::127.0.0.1", SPECIAL,
      "loopback (127.0.0.0/8)", "64:ff9b::7f00:0/104" },
    { "64:ff9b::7f00:1", SPECIAL,
      "loopback (127.0.0.0/8)", "64:ff9b::7f00:0/104" },
    { "2002:7f00:1::", SPECIAL, "loopback (127.0.0.0/8)", "2002:7f00::/24" },
    { "169.254.169.254", SPECIAL,
      "link-local, cloud metadata (169.254.0.0/16)", "169.254.0.0/16" },
    { "169.254.0.1", SPECIAL,
      "link-local, cloud metadata (169.254.0.0/16)", "169.254.0.0/16" },
    { "::ffff:169.254.169.254", SPECIAL,
      "link-local, cloud metadata (169.254.0.0/16)", "169.254.0.0/16" },
    { "::FFFF:A9FE:A9FE", SPECIAL,
      "link-local, cloud metadata (169.254.0.0/16)", "169.254.0.0/16" },
    { "64:ff9b::a9fe:a9fe", SPECIAL,
      "link-local, cloud metadata (169.254.0.0/16)", "64:ff9b::a9fe:0/112" },
    { "2002:a9fe:a9fe::1", SPECIAL,
      "link-local, cloud metadata (169.254.0.0/16)", "2002:a9fe::/32" },
    { "168.63.129.16", SPECIAL,
      "Azure's host agent (168.63.129.16)", "168.63.129.16" },
    { "::ffff:168.63.129.16", SPECIAL,
      "Azure's host agent (168.63.129.16)", "168.63.129.16" },
    { "100.100.100.200", SPECIAL,
      "metadata of Alibaba Cloud (100.100.100.200)", "100.100.100.200" },
    { "192.0.0.192", SPECIAL,
      "metadata of Oracle Cloud (192.0.0.192)", "192.0.0.192" },
    { "fe80::1", SPECIAL, "link-local (fe80::/10)", "fe80::/10" },
    { "febf:ffff::1", SPECIAL, "link-local (fe80::/10)", "fe80::/10" },
    { "fec0::1", SPECIAL, "site-local (fec0::/10)", "fec0::/10" },
    { "feff:ffff::1", SPECIAL, "site-local (fec0::/10)", "fec0::/10" },
    { "fd00:ec2::254", SPECIAL,
      "metadata of AWS (fd00:ec2::/32)", "fd00:ec2::/32" },
    { "fd00:0ec2:0:0:0:0:0:0254", SPECIAL,
      "metadata of AWS (fd00:ec2::/32)", "fd00:ec2::/32" },
    { "fd00:ec2::253", SPECIAL,
      "metadata of AWS (fd00:ec2::/32)", "fd00:ec2::/32" },
    { "fd00:ec2:ffff::1", SPECIAL,
      "metadata of AWS (fd00:ec2::/32)", "fd00:ec2::/32" },
    { "fd20:ce::254", SPECIAL,
      "metadata of Google Cloud (fd20:ce::254)", "fd20:ce::254" },
    { "64:ff9b:1::1", SPECIAL,
      "NAT64 of local use (64:ff9b:1::/48)", "64:ff9b:1::/48" },
    { "64:ff9b:1:ffff::10.0.0.1", SPECIAL,
      "NAT64 of local use (64:ff9b:1::/48)", "64:ff9b:1::/48" },
    { "::ffff:0:10.0.0.1", SPECIAL,
      "IPv4-translated (::ffff:0:0:0/96)", "::ffff:0:0:0/96" },
    { "::ffff:0:127.0.0.1", SPECIAL,
      "IPv4-translated (::ffff:0:0:0/96)", "::ffff:0:0:0/96" },
    { "2001::1", SPECIAL, "Teredo (2001::/32)", "2001::/32" },
    { "2001:0:a00:1::1", SPECIAL, "Teredo (2001::/32)", "2001::/32" },
    { "2001:db8::5efe:10.0.0.1", SPECIAL,
      "ISATAP (interface ::5efe:0:0)", "2001:db8::5efe:0:0/96" },
    { "2001:db8::200:5efe:10.0.0.1", SPECIAL,
      "ISATAP (interface ::200:5efe:0:0)", "2001:db8::200:5efe:0:0/96" },
    { "fe80::5efe:10.0.0.1", SPECIAL,
      "link-local (fe80::/10)", "fe80::5efe:0:0/96" },
    { "0.0.0.0", NEVER, "\"this network\" (0.0.0.0/8)", NULL },
    { "0.1.2.3", NEVER, "\"this network\" (0.0.0.0/8)", NULL },
    { "::", NEVER, "unspecified (::)", NULL },
    { "::ffff:0.0.0.0", NEVER, "\"this network\" (0.0.0.0/8)", NULL },
    { "::0.1.2.3", NEVER, "\"this network\" (0.0.0.0/8)", NULL },
    { "64:ff9b::", NEVER, "\"this network\" (0.0.0.0/8)", NULL },
    { "255.255.255.255", NEVER, "broadcast (255.255.255.255)", NULL },
    { "::ffff:255.255.255.255", NEVER, "broadcast (255.255.255.255)", NULL },
    { "224.0.0.1", NEVER, "multicast (224.0.0.0/4)", NULL },
    { "239.255.255.255", NEVER, "multicast (224.0.0.0/4)", NULL },
    { "::ffff:224.0.0.1", NEVER, "multicast (224.0.0.0/4)", NULL },
    { "2002:e000:1::", NEVER, "multicast (224.0.0.0/4)", NULL },
    { "ff02::1", NEVER, "multicast (ff00::/8)", NULL },
    { "ff00::", NEVER, "multicast (ff00::/8)", NULL },
    { "10.0.0.1", PLAIN, NULL, NULL },
    { "172.16.0.1", PLAIN, NULL, NULL },
    { "192.168.1.1", PLAIN, NULL, NULL },
    { "100.64.0.1", PLAIN, NULL, NULL },
    { "126.255.255.255", PLAIN, NULL, NULL },
    { "128.0.0.1", PLAIN, NULL, NULL },
    { "169.253.255.255", PLAIN, NULL, NULL },
    { "169.255.0.0", PLAIN, NULL, NULL },
    { "223.255.255.255", PLAIN, NULL, NULL },
    { "240.0.0.1", PLAIN, NULL, NULL },
    { "255.255.255.254", PLAIN, NULL, NULL },
    { "1.0.0.0", PLAIN, NULL, NULL },
    { "::ffff:10.0.0.1", PLAIN, NULL, NULL },
    { "fd00::1", PLAIN, NULL, NULL },
    { "2001:db8::1", PLAIN, NULL, NULL },
    { "64:ff9b::10.0.0.1", PLAIN, NULL, NULL },
    { "2002:a00:1::", PLAIN, NULL, NULL },
    { "168.63.129.15", PLAIN, NULL, NULL },
    { "168.63.129.17", PLAIN, NULL, NULL },
    { "100.100.100.199", PLAIN, NULL, NULL },
    { "192.0.0.191", PLAIN, NULL, NULL },
    { "192.0.0.193", PLAIN, NULL, NULL },
    { "fd00:ec3::1", PLAIN, NULL, NULL },
    { "fd20:ce::253", PLAIN, NULL, NULL },
    { "64:ff9b:2::1", PLAIN, NULL, NULL },
    { "::fffe:0:a00:1", PLAIN, NULL, NULL },
    { "2001:1::1", PLAIN, NULL, NULL },
    { "2001:db8::5eff:10.0.0.1", PLAIN, NULL, NULL },
    { "2001:db8::100:5efe:10.0.0.1", PLAIN, NULL, NULL },
    { "fdff::5efe", PLAIN, NULL, NULL }
};


static kube_addr_t
addr_of(const char *text)
{
    kube_addr_t  addr;

    assert_int_equal(kube_addr_parse(kube_str(text), &addr), KUBE_OK);

    return addr;
}


static const char *
judged(const kube_policy_t *policy, const kube_addr_t *addr, uint16_t port)
{
    kube_addr_number_t  number;

    number = kube_addr_number(addr);

    return kube_policy_denies(policy, &number, port);
}


static kube_cidr_t
cidr_of(const char *text)
{
    kube_cidr_t  cidr;

    assert_int_equal(kube_cidr_parse(kube_str(text), &cidr, NULL), KUBE_OK);

    return cidr;
}


/* The network of one bit less. */
static kube_cidr_t
wider_of(const char *text)
{
    char         wider[KUBE_ADDR_TEXT_MAX + 4];
    kube_cidr_t  cidr;

    cidr = cidr_of(text);
    (void) snprintf(wider, sizeof(wider), "%.*s/%d",
                    (int) strcspn(text, "/"), text, cidr.bits - 1);

    /* an IPv4-mapped prefix counts from its beginning */

    if (strncmp(text, "::ffff:", 7) == 0
        && cidr.addr.family == KUBE_FAMILY_IPV4)
    {
        (void) snprintf(wider, sizeof(wider), "%.*s/%d",
                        (int) strcspn(text, "/"), text, cidr.bits + 95);
    }

    return cidr_of(wider);
}


/* why: what it must say; NULL: the address may be used. */
static void
denies(const kube_policy_t *policy, const char *text, const char *why)
{
    kube_addr_t  addr;
    const char  *got;

    addr = addr_of(text);
    got = judged(policy, &addr, 0);

    if ((got == NULL) != (why == NULL)
        || (why != NULL && strcmp(got, why) != 0))
    {
        fail_msg("%s: \"%s\", not \"%s\"", text, got != NULL ? got : "used",
                 why != NULL ? why : "used");
    }
}


static void
test_policy_defaults(void **state)
{
    size_t         i;
    kube_policy_t  empty;

    (void) state;

    memset(&empty, 0, sizeof(kube_policy_t));

    for (i = 0; i < N(addresses); i++) {
        assert_true((addresses[i].why == NULL)
                    == (addresses[i].class == PLAIN));
        denies(NULL, addresses[i].text, addresses[i].why);
        denies(&empty, addresses[i].text, addresses[i].why);
    }
}


/* A wide network names what it contains, but nothing special. */
static void
test_policy_wide(void **state)
{
    size_t         i, k;
    kube_cidr_t    nets[8];
    kube_policy_t  policy;

    static const char  *wide[N(nets)] = {
        "0.0.0.0/0", "::/0", "0.0.0.0/1", "128.0.0.0/1", "::/1", "fc00::/6",
        "2000::/3", "64:ff9b::/32"
    };

    (void) state;

    memset(&policy, 0, sizeof(kube_policy_t));

    for (k = 0; k < N(nets); k++) {
        nets[k] = cidr_of(wide[k]);
    }

    policy.allow = nets;
    policy.allow_n = N(nets);

    for (i = 0; i < N(addresses); i++) {
        denies(&policy, addresses[i].text, addresses[i].why);
    }
}


/* A network inside a special one names it; one bit shorter, it does not. */
static void
test_policy_named(void **state)
{
    size_t         i;
    kube_cidr_t    net;
    kube_policy_t  policy;

    (void) state;

    memset(&policy, 0, sizeof(kube_policy_t));
    policy.allow = &net;
    policy.allow_n = 1;

    for (i = 0; i < N(addresses); i++) {
        if (addresses[i].class != SPECIAL) {
            continue;
        }

        net = cidr_of(addresses[i].named);
        denies(&policy, addresses[i].text, NULL);

        net = wider_of(addresses[i].named);
        denies(&policy, addresses[i].text, addresses[i].why);
    }
}


/* Whatever names it, what is never used stays out. */
static void
test_policy_never(void **state)
{
    size_t         i;
    kube_cidr_t    net;
    kube_policy_t  policy;

    (void) state;

    memset(&policy, 0, sizeof(kube_policy_t));
    policy.allow = &net;
    policy.allow_n = 1;

    for (i = 0; i < N(addresses); i++) {
        if (addresses[i].class == NEVER) {
            net = cidr_of(addresses[i].text);
            denies(&policy, addresses[i].text, addresses[i].why);
        }
    }
}


static void
test_policy_none(void **state)
{
    kube_addr_t  addr;

    (void) state;

    memset(&addr, 0, sizeof(kube_addr_t));
    assert_string_equal(judged(NULL, &addr, 80), "no IP address");
}


/* A gateway at 0.0.0.0:80, 192.0.2.1:81 and [::]:82, of two addresses. */
static void
test_policy_self(void **state)
{
    size_t         i;
    const char    *why;
    kube_addr_t    addr, local[2];
    kube_cidr_t    allow;
    kube_listen_t  listen[3];
    kube_policy_t  policy;

    static const struct {
        const char  *allow;
        const char  *address;
        uint16_t     port;
        bool         self;
    } cases[] = {
        { NULL, "10.0.0.5", 80, true },
        { NULL, "::ffff:10.0.0.5", 80, true },
        { NULL, "10.0.0.6", 80, false },
        { NULL, "10.0.0.5", 8080, false },
        { "127.0.0.0/8", "127.0.0.1", 80, true },
        { "127.0.0.0/8", "127.9.9.9", 80, true },
        { "127.0.0.1", "127.0.0.1", 80, false },
        { NULL, "192.0.2.1", 81, true },
        { NULL, "192.0.2.1", 80, false },
        { NULL, "10.0.0.5", 81, false },
        { NULL, "2001:db8::5", 82, true },
        { NULL, "2001:db8::6", 82, false },
        { NULL, "10.0.0.5", 82, false },
        { "10.0.0.0/8", "10.0.0.5", 80, true },
        { "10.0.0.5/32", "10.0.0.5", 80, false },
        { "2001:db8::5", "2001:db8::5", 82, false }
    };

    static const char  self[] = "the gateway's own address and port";

    (void) state;

    listen[0] = (kube_listen_t) { addr_of("0.0.0.0"), 80 };
    listen[1] = (kube_listen_t) { addr_of("192.0.2.1"), 81 };
    listen[2] = (kube_listen_t) { addr_of("::"), 82 };
    local[0] = addr_of("10.0.0.5");
    local[1] = addr_of("2001:db8::5");

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&policy, 0, sizeof(kube_policy_t));
        policy.listen = listen;
        policy.listen_n = 3;
        policy.local = local;
        policy.local_n = 2;

        if (cases[i].allow != NULL) {
            allow = cidr_of(cases[i].allow);
            policy.allow = &allow;
            policy.allow_n = 1;
        }

        addr = addr_of(cases[i].address);

        why = judged(&policy, &addr, cases[i].port);

        if ((why != NULL && strcmp(why, self) == 0) != cases[i].self) {
            fail_msg("case %d: %s port %u", (int) i, cases[i].address,
                     cases[i].port);
        }

        /* where the port is not asked for, nothing is known of it */
        why = judged(&policy, &addr, 0);
        assert_true(why == NULL || strcmp(why, self) != 0);

        assert_true(kube_policy_listens(&policy, cases[i].port)
                    == (cases[i].port < 8080));
    }

    addr = addr_of("10.0.0.5");
    assert_null(judged(NULL, &addr, 80));
    assert_false(kube_policy_listens(NULL, 80));
}


static void
test_policy_wider(void **state)
{
    size_t       i;
    kube_cidr_t  cidr;
    const char  *what;

    static const struct {
        const char  *network;
        const char  *special;     /* NULL: none inside */
    } cases[] = {
        { "0.0.0.0/0", "loopback (127.0.0.0/8)" },
        { "126.0.0.0/7", "loopback (127.0.0.0/8)" },
        { "127.0.0.0/8", NULL },
        { "10.0.0.0/8", NULL },
        { "::/0", "loopback (::1)" },
        { "fe00::/8", "link-local (fe80::/10)" },
        { "2001:db8::/32", NULL }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cidr = cidr_of(cases[i].network);
        what = kube_policy_wider(&cidr);

        if (cases[i].special == NULL) {
            assert_null(what);

        } else {
            assert_non_null(what);
            assert_string_equal(what, cases[i].special);
        }
    }
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

    return judged(&policy, &addr, 0) == NULL;
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

    /* whatever carries it */
    assert_false(allowed(NULL, "10.0.0.0/8", "::10.0.0.1"));
    assert_false(allowed(NULL, "10.0.0.0/8", "64:ff9b::10.0.0.1"));
    assert_false(allowed(NULL, "10.0.0.0/8", "2002:a00:1::1"));
    assert_false(allowed("64:ff9b::/96", "10.0.0.0/8", "64:ff9b::a00:1"));
    assert_true(allowed(NULL, "10.0.0.0/8", "64:ff9b::11.0.0.1"));
    assert_true(allowed(NULL, "10.0.0.0/8", "fd00::10.0.0.1"));
    assert_true(allowed("::1", "0.0.0.0/0", "::1"));

    /* never, though named */
    assert_false(allowed("0.0.0.0", NULL, "0.0.0.0"));
    assert_false(allowed("255.255.255.255", NULL, "255.255.255.255"));
    assert_false(allowed("224.0.0.0/4", NULL, "224.0.0.1"));
    assert_false(allowed("::", NULL, "::"));
    assert_false(allowed("ff00::/8", NULL, "ff02::1"));
}


static void
test_policy_list_why(void **state)
{
    kube_cidr_t    net;
    kube_policy_t  policy;

    (void) state;

    memset(&policy, 0, sizeof(kube_policy_t));
    net = cidr_of("10.0.0.0/8");

    policy.allow = &net;
    policy.allow_n = 1;
    denies(&policy, "10.0.0.1", NULL);
    denies(&policy, "11.0.0.1", "not named by allow_address");

    policy.deny = &net;
    policy.deny_n = 1;
    denies(&policy, "10.0.0.1", "named by deny_address");
}


/* Whether a deny_address of that network names the address. */
static bool
denied_by(const kube_cidr_t *cidr, const kube_addr_t *addr)
{
    const char     *why;
    kube_policy_t   policy;

    memset(&policy, 0, sizeof(kube_policy_t));
    policy.deny = cidr;
    policy.deny_n = 1;
    why = judged(&policy, addr, 0);

    return why != NULL && strcmp(why, "named by deny_address") == 0;
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
    addr = addr_of("10.255.0.1");
    assert_true(denied_by(&cidr, &addr));
    addr = addr_of("11.0.0.1");
    assert_false(denied_by(&cidr, &addr));

    cidr = cidr_of("10.1.2.3");
    assert_int_equal(cidr.bits, 32);
    assert_false(cidr.low_bits);

    cidr = cidr_of("2001:db8::/33");
    assert_int_equal(cidr.bits, 33);
    assert_false(cidr.low_bits);
    addr = addr_of("2001:db8:7fff::1");
    assert_true(denied_by(&cidr, &addr));
    addr = addr_of("2001:db8:8000::1");
    assert_false(denied_by(&cidr, &addr));

    cidr = cidr_of("::ffff:10.0.0.0/104");
    assert_int_equal(cidr.addr.family, KUBE_FAMILY_IPV4);
    assert_int_equal(cidr.bits, 8);

    cidr = cidr_of("10.0.0.0/31");
    addr = addr_of("10.0.0.1");
    assert_true(denied_by(&cidr, &addr));
    addr = addr_of("10.0.0.2");
    assert_false(denied_by(&cidr, &addr));

    cidr = cidr_of("::/0");
    assert_true(cidr.bits == 0 && !cidr.low_bits);
    addr = addr_of("2001:db8::1");
    assert_true(denied_by(&cidr, &addr));
    addr = addr_of("::ffff:10.0.0.1");
    assert_false(denied_by(&cidr, &addr));
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


/* Most pods are judged by a short way; a rule that names no other is none. */
static void
test_policy_short_way(void **state)
{
    size_t         j;
    uint32_t       i;
    const char    *one, *two;
    kube_addr_t    addr;
    kube_cidr_t    other;
    kube_policy_t  policy;

    static const uint8_t  tails[][2] = {
        { 0, 0 }, { 0, 1 }, { 129, 16 }, { 100, 200 }, { 0, 192 }, { 255, 255 }
    };

    (void) state;

    assert_int_equal(kube_cidr_parse(KUBE_STR("2001:db8::1/128"), &other,
                                     NULL), KUBE_OK);

    memset(&policy, 0, sizeof(kube_policy_t));
    policy.deny = &other;
    policy.deny_n = 1;

    memset(&addr, 0, sizeof(kube_addr_t));
    addr.family = KUBE_FAMILY_IPV4;

    for (i = 0; i <= 0xffff; i++) {
        for (j = 0; j < N(tails); j++) {
            addr.bytes[0] = (uint8_t) (i >> 8);
            addr.bytes[1] = (uint8_t) i;
            memcpy(&addr.bytes[2], tails[j], 2);

            one = judged(NULL, &addr, 0);
            two = judged(&policy, &addr, 0);

            if (one != two) {
                print_error("%d.%d.%d.%d: %s, %s\n", addr.bytes[0],
                            addr.bytes[1], addr.bytes[2], addr.bytes[3],
                            one != NULL ? one : "-", two != NULL ? two : "-");
                fail();
            }
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_policy_defaults),
        cmocka_unit_test(test_policy_wide),
        cmocka_unit_test(test_policy_named),
        cmocka_unit_test(test_policy_never),
        cmocka_unit_test(test_policy_none),
        cmocka_unit_test(test_policy_self),
        cmocka_unit_test(test_policy_wider),
        cmocka_unit_test(test_policy_lists),
        cmocka_unit_test(test_policy_short_way),
        cmocka_unit_test(test_policy_list_why),
        cmocka_unit_test(test_cidr_parse),
        cmocka_unit_test(test_namespaces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

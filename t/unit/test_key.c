/*
 * test_key - what is a key and what is not; the canonical text.
 *
 * Not for the namespaces a key may name: see test_policy.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_hash.h"
#include "kube_key.h"
#include "kube_object.h"


#define N(array)  (sizeof(array) / sizeof(array[0]))

#define A10   "aaaaaaaaaa"
#define A60   A10 A10 A10 A10 A10 A10
#define A63   A60 "aaa"


typedef struct {
    const char  *text;
    bool         dns;
    const char  *canonical;
} key_good_t;

static const key_good_t  key_good[] = {
    { "shop/web", false, "shop/web" },
    { "shop/web", true, "shop/web" },
    { "shop/web:http", false, "shop/web:http" },
    { "shop/web:80", false, "shop/web:80" },
    { "shop/web:1", false, "shop/web:1" },
    { "shop/web:65535", false, "shop/web:65535" },
    { "s/w", false, "s/w" },
    { "0/1:2", false, "0/1:2" },
    { "a-b/c--d:e-f", false, "a-b/c--d:e-f" },
    { "shop/web:8080-alt", false, "shop/web:8080-alt" },
    { "web.shop", true, "shop/web" },
    { "web.shop:http", true, "shop/web:http" },
    { "web.shop.svc", true, "shop/web" },
    { "web.shop.svc:80", true, "shop/web:80" },
    { "web.shop.svc.cluster.local", true, "shop/web" },
    { "web.shop.svc.cluster.local:8443", true, "shop/web:8443" },
    { "svc.svc.svc", true, "svc/svc" },
    { A63 "/" A63 ":" A63, false, A63 "/" A63 ":" A63 }
};

typedef struct {
    const char  *text;
    size_t       len;
    bool         dns;
} key_bad_t;

#define BAD(s)      { s, sizeof(s) - 1, false }
#define BAD_DNS(s)  { s, sizeof(s) - 1, true }

static const key_bad_t  key_bad[] = {
    BAD(""), BAD("/"), BAD(":"), BAD("web"), BAD("shop/"), BAD("/web"),
    BAD("shop//web"), BAD("shop/web/x"), BAD("/shop/web"), BAD("shop/web/"),
    BAD("../web"), BAD("shop/.."), BAD("shop/../x"), BAD("./web"),
    BAD("shop/%2e%2e"), BAD("shop%2fweb"), BAD("shop/web%00"),
    BAD("Shop/web"), BAD("shop/Web"), BAD("shop/web:HTTP"),
    BAD("shop/web:"), BAD("shop/web:0"), BAD("shop/web:080"),
    BAD("shop/web:65536"), BAD("shop/web:99999999999999999999"),
    BAD("shop/web:-1"), BAD("shop/web:+80"), BAD("shop/web: 80"),
    BAD("shop/web:80:80"), BAD("shop/web::80"), BAD("shop:80/web"),
    BAD("shop/web:-a"), BAD("shop/web:a-"), BAD("shop/web:a_b"),
    BAD("shop/web:a.b"), BAD(" shop/web"), BAD("shop/web "),
    BAD("shop/web\n"), BAD("shop/web\r\nHost: x"), BAD("shop\t/web"),
    BAD("shop/we\0b"), BAD("shop/web\0"), BAD("\0shop/web"),
    BAD("shop\\web"), BAD("shop/web?x"), BAD("shop/web#x"), BAD("shop/*"),
    BAD("*/web"), BAD("-shop/web"), BAD("shop-/web"), BAD("shop/-web"),
    BAD("shop/web-"), BAD("shop.x/web"), BAD("shop/web.x"),
    BAD("sh\xc3\xb6p/web"), BAD("shop/w\x7f" "eb"), BAD("shop/\xff"),
    BAD(A63 "a/web"), BAD("shop/" A63 "a"), BAD("shop/web:" A63 "a"),
    BAD("web.shop"), BAD("web.shop.svc"), BAD("shop/web@10.0.0.1"),
    BAD("10.0.0.1:80"), BAD("[::1]:80"), BAD("127.0.0.1"),
    BAD("shop/$web"), BAD("unix:/tmp/x"), BAD("http://shop/web"),
    BAD_DNS(""), BAD_DNS("web"), BAD_DNS("web."), BAD_DNS(".shop"),
    BAD_DNS("web..shop"), BAD_DNS("web.shop."), BAD_DNS("web.shop.pod"),
    BAD_DNS("web.shop.svc."), BAD_DNS("web.shop.svc..x"),
    BAD_DNS("web.shop.Svc"), BAD_DNS("web.shop.svc.x_y"),
    BAD_DNS("web.shop.svc.-x"), BAD_DNS("web.shop:80:80"),
    BAD_DNS("web:80.shop"), BAD_DNS("web.shop/x"), BAD_DNS("10.0.0.1"),
    BAD_DNS("a.b.c.d"), BAD_DNS("web.shop.svc.%2e"), BAD_DNS("../x")
};


static void
test_key_good(void **state)
{
    size_t        i, len;
    char          text[KUBE_KEY_TEXT_MAX], again[KUBE_KEY_TEXT_MAX];
    kube_key_t    key;
    kube_str_t    s;
    kube_error_t  error;

    (void) state;

    for (i = 0; i < N(key_good); i++) {
        s = kube_str(key_good[i].text);

        assert_int_equal(kube_key_parse(s, key_good[i].dns, &key, &error),
                         KUBE_OK);

        len = kube_key_text(&key, text);
        assert_string_equal(text, key_good[i].canonical);
        assert_int_equal(len, strlen(text));

        assert_int_equal(kube_key_parse((kube_str_t) { text, len }, false,
                                        &key, NULL),
                         KUBE_OK);
        kube_key_text(&key, again);
        assert_string_equal(again, text);
    }
}


static void
test_key_views(void **state)
{
    kube_key_t  key;
    kube_str_t  s;

    (void) state;

    s = KUBE_STR("web.shop.svc.cluster.local:http");
    assert_int_equal(kube_key_parse(s, true, &key, NULL), KUBE_OK);
    assert_ptr_equal(key.name.data, s.data);
    assert_ptr_equal(key.ns.data, s.data + 4);
    assert_true(kube_str_eq(key.port.name, KUBE_STR("http")));
    assert_int_equal(key.port.number, 0);

    s = KUBE_STR("shop/web:8080");
    assert_int_equal(kube_key_parse(s, true, &key, NULL), KUBE_OK);
    assert_ptr_equal(key.ns.data, s.data);
    assert_int_equal(key.port.name.len, 0);
    assert_int_equal(key.port.number, 8080);

    assert_int_equal(kube_key_parse(KUBE_STR("shop/web"), true, &key, NULL),
                     KUBE_OK);
    assert_int_equal(key.port.name.len, 0);
    assert_int_equal(key.port.number, 0);
}


static void
test_key_bad(void **state)
{
    size_t        i;
    kube_key_t    key, before;
    kube_str_t    s;
    kube_error_t  error;

    (void) state;

    memset(&before, 0x5a, sizeof(kube_key_t));

    for (i = 0; i < N(key_bad); i++) {
        s = (kube_str_t) { key_bad[i].text, key_bad[i].len };
        key = before;
        memset(&error, 0, sizeof(kube_error_t));

        if (kube_key_parse(s, key_bad[i].dns, &key, &error) != KUBE_INVALID) {
            fail_msg("taken: %zu \"%s\"", i, key_bad[i].text);
        }

        assert_int_equal(error.rc, KUBE_INVALID);
        assert_non_null(error.what);
        assert_true(error.offset <= s.len);
        assert_memory_equal(&key, &before, sizeof(kube_key_t));
    }
}


static void
test_key_long(void **state)
{
    char        *text;
    size_t       n;
    kube_key_t   key;

    (void) state;

    text = malloc(8192);
    assert_non_null(text);
    memset(text, 'a', 8192);
    memcpy(text, "a.b.svc.", 8);

    for (n = 8; n + 1 < 8192; n += 2) {
        text[n] = 'a';
        text[n + 1] = '.';
    }

    assert_int_equal(kube_key_parse((kube_str_t) { text, 7167 }, true, &key,
                                    NULL), KUBE_INVALID);
    assert_int_equal(kube_key_parse((kube_str_t) { text,
                                                   KUBE_KEY_INPUT_MAX + 1 },
                                    true, &key, NULL), KUBE_INVALID);

    /* the cluster's domain may be a subdomain of full length */
    assert_int_equal(kube_key_parse((kube_str_t) { text, 8 + 253 }, true,
                                    &key, NULL), KUBE_OK);

    free(text);
}


/* Whatever is accepted names one namespace and one Service, canonically. */
static void
test_key_random(void **state)
{
    char           buf[64], text[KUBE_KEY_TEXT_MAX], again[KUBE_KEY_TEXT_MAX];
    bool           dns;
    size_t         i, j, n, accepted, len;
    kube_key_t     key, back;
    kube_random_t  random;

    static const char  alphabet[] = "ab0-./:svc.svc%A\0\n9";

    (void) state;

    kube_random_init(&random, 7);
    accepted = 0;

    for (i = 0; i < 400000; i++) {
        n = kube_random_range(&random, 0, 12);
        dns = kube_random_range(&random, 0, 1) == 1;

        for (j = 0; j < n; j++) {
            buf[j] = (i % 8 == 0)
                     ? (char) kube_random_next(&random)
                     : alphabet[kube_random_range(&random, 0,
                                                  sizeof(alphabet) - 2)];
        }

        if (kube_key_parse((kube_str_t) { buf, n }, dns, &key, NULL)
            != KUBE_OK)
        {
            continue;
        }

        accepted++;
        assert_true(kube_name_is_label(key.ns));
        assert_true(kube_name_is_label(key.name));
        assert_true(key.port.name.len == 0
                    || kube_name_is_label(key.port.name));
        assert_true(key.port.name.len == 0 || key.port.number == 0);

        len = kube_key_text(&key, text);
        assert_int_equal(kube_key_parse((kube_str_t) { text, len }, false,
                                        &back, NULL), KUBE_OK);
        assert_true(kube_str_eq(back.ns, key.ns));
        assert_true(kube_str_eq(back.name, key.name));
        assert_true(kube_str_eq(back.port.name, key.port.name));
        assert_int_equal(back.port.number, key.port.number);

        kube_key_text(&back, again);
        assert_string_equal(again, text);
    }

    /* a loop that accepts nothing shows nothing */
    assert_true(accepted > 100);
}


/* A short buffer behind it would be overrun by a key parse never gave. */
static void
test_key_text_bounds(void **state)
{
    char        text[KUBE_KEY_TEXT_MAX], name[300];
    kube_key_t  key;

    (void) state;

    memset(&key, 0, sizeof(kube_key_t));
    memset(name, 'a', sizeof(name));
    key.ns = KUBE_STR("shop");
    key.name = (kube_str_t) { name, sizeof(name) };

    assert_int_equal(kube_key_text(&key, text), 0);
    assert_string_equal(text, "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_key_good),
        cmocka_unit_test(test_key_views),
        cmocka_unit_test(test_key_bad),
        cmocka_unit_test(test_key_long),
        cmocka_unit_test(test_key_random),
        cmocka_unit_test(test_key_text_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

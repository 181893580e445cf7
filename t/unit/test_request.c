/*
 * Tests of kube_request: every combination the reflector asks for, encoding,
 * and each size that is too small.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"

#include "kube_request.h"


#define SERVICES  KUBE_RESOURCE_SERVICES
#define SLICES    KUBE_RESOURCE_ENDPOINTSLICES
#define S(text)   { (text), sizeof(text) - 1 }


typedef struct {
    kube_request_t   request;
    const char      *path;
} request_case_t;


static const request_case_t  request_cases[] = {

    { { .resource = SERVICES }, "/api/v1/services" },

    { { .resource = SLICES },
      "/apis/discovery.k8s.io/v1/endpointslices" },

    { { .resource = SERVICES, .ns = S("shop") },
      "/api/v1/namespaces/shop/services" },

    { { .resource = SLICES, .ns = S("a-1"), .limit = 500 },
      "/apis/discovery.k8s.io/v1/namespaces/a-1/endpointslices?limit=500" },

    /* a list at a version, exact or not older */

    { { .resource = SERVICES, .rv = S("0") },
      "/api/v1/services?resourceVersion=0" },

    { { .resource = SERVICES, .rv = S("17"), .not_older_than = true,
        .limit = 2 },
      "/api/v1/services?limit=2&resourceVersion=17"
      "&resourceVersionMatch=NotOlderThan" },

    { { .resource = SERVICES, .not_older_than = true }, "/api/v1/services" },

    { { .resource = SERVICES, .rv = S("17"), .exact = true, .limit = 2 },
      "/api/v1/services?limit=2&resourceVersion=17"
      "&resourceVersionMatch=Exact" },

    { { .resource = SERVICES, .watch = true, .rv = S("17"), .exact = true },
      "/api/v1/services?watch=true&resourceVersion=17" },

    /* a continuation names no version, whatever the caller left there */

    { { .resource = SERVICES, .rv = S("17"), .not_older_than = true,
        .limit = 2, .continue_token = S("eyJ2IjoibWV0YS5rOHMu=") },
      "/api/v1/services?limit=2&continue=eyJ2IjoibWV0YS5rOHMu%3D" },

    { { .resource = SERVICES, .continue_token = S("a"),
        .label_selector = S("app=web") },
      "/api/v1/services?continue=a&labelSelector=app%3Dweb" },

    /* a watch never has a match, a limit or a continuation */

    { { .resource = SLICES, .watch = true, .bookmarks = true, .rv = S("369"),
        .not_older_than = true, .limit = 500, .continue_token = S("x"),
        .timeout_s = 301 },
      "/apis/discovery.k8s.io/v1/endpointslices?watch=true"
      "&allowWatchBookmarks=true&resourceVersion=369&timeoutSeconds=301" },

    { { .resource = SLICES, .watch = true },
      "/apis/discovery.k8s.io/v1/endpointslices?watch=true" },

    { { .resource = SLICES, .watch = true, .label_selector = S("a=b"),
        .field_selector = S("c=d") },
      "/apis/discovery.k8s.io/v1/endpointslices?watch=true"
      "&labelSelector=a%3Db&fieldSelector=c%3Dd" },

    { { .resource = SLICES, .bookmarks = true, .timeout_s = 5 },
      "/apis/discovery.k8s.io/v1/endpointslices" },

    { { .resource = SLICES, .watch = true, .timeout_s = 4294967295u },
      "/apis/discovery.k8s.io/v1/endpointslices?watch=true"
      "&timeoutSeconds=4294967295" },

    /* encoding */

    { { .resource = SERVICES, .label_selector = S("a in (b,c),!d"),
        .field_selector = S("metadata.name!=x y") },
      "/api/v1/services?labelSelector=a%20in%20%28b%2Cc%29%2C%21d"
      "&fieldSelector=metadata.name%21%3Dx%20y" },

    { { .resource = SERVICES, .rv = S("1&watch=true#/../?") },
      "/api/v1/services?resourceVersion=1%26watch%3Dtrue%23%2F..%2F%3F" },

    { { .resource = SERVICES,
        .label_selector = S("\0\r\n\x7f\xc3\xa4%\"<>\\^`{|}") },
      "/api/v1/services?labelSelector=%00%0D%0A%7F%C3%A4%25%22%3C%3E%5C%5E%60"
      "%7B%7C%7D" },

    { { .resource = SERVICES, .label_selector = S("AZaz09-._~") },
      "/api/v1/services?labelSelector=AZaz09-._~" },
};

static const kube_str_t  request_bad_namespaces[] = {
    S(".."), S("."), S("a/b"), S("../services"), S("A"), S("a.b"), S("-a"),
    S("a-"), S("%2e%2e"), S("a?b"), S("a b"), S("a\0"), S("\r\n"),
    S("\xc3\xa4"),
    S("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
};


static void
test_request_table(void **state)
{
    char    out[512];
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(request_cases) / sizeof(request_cases[0]); i++) {
        assert_int_equal(kube_request_path(&request_cases[i].request, out,
                                           sizeof(out)), KUBE_OK);
        assert_string_equal(out, request_cases[i].path);
    }
}


/* Nothing is written past the size, and the exact size suffices. */
static void
test_request_sizes(void **state)
{
    char       *out;
    size_t      i, size, len;
    kube_rc_t   rc;

    (void) state;

    for (i = 0; i < sizeof(request_cases) / sizeof(request_cases[0]); i++) {
        len = strlen(request_cases[i].path);

        for (size = 0; size <= len + 2; size++) {
            out = malloc(size + 1);
            assert_non_null(out);
            out[size] = 'x';

            rc = kube_request_path(&request_cases[i].request, out, size);

            assert_int_equal(rc, size > len ? KUBE_OK : KUBE_TOO_LARGE);
            assert_int_equal(out[size], 'x');

            if (size > len) {
                assert_string_equal(out, request_cases[i].path);

            } else if (size != 0) {
                assert_string_equal(out, "");
            }

            free(out);
        }
    }
}


/* Each byte, by RFC 3986 section 2.3: a server reads '+' as a space. */
static void
test_request_bytes(void **state)
{
    int              c;
    char             byte, out[128], path[128];
    kube_request_t   request;

    static const char  unreserved[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    (void) state;

    for (c = 0; c < 256; c++) {
        byte = (char) c;
        memset(&request, 0, sizeof(request));
        request.label_selector = (kube_str_t) { &byte, 1 };
        snprintf(path, sizeof(path),
                 (c != 0 && strchr(unreserved, c) != NULL)
                 ? "/api/v1/services?labelSelector=%c"
                 : "/api/v1/services?labelSelector=%%%02X", (unsigned) c);
        assert_int_equal(kube_request_path(&request, out, sizeof(out)),
                         KUBE_OK);
        assert_string_equal(out, path);
    }
}


static void
test_request_bad_namespace(void **state)
{
    char            out[512];
    size_t          i, n;
    kube_request_t  request;

    (void) state;

    n = sizeof(request_bad_namespaces) / sizeof(request_bad_namespaces[0]);

    for (i = 0; i < n; i++) {
        memset(&request, 0, sizeof(request));
        request.ns = request_bad_namespaces[i];

        assert_int_equal(kube_request_path(&request, out, sizeof(out)),
                         KUBE_INVALID);
        assert_string_equal(out, "");
    }
}


static void
test_request_accept(void **state)
{
    size_t  i;

    static const struct {
        kube_encoding_t   encoding;
        bool              watch;
        const char       *accept;
    } cases[] = {
        { KUBE_ENCODING_AUTO, false,
          "application/vnd.kubernetes.protobuf, application/json" },
        { KUBE_ENCODING_AUTO, true,
          "application/vnd.kubernetes.protobuf;stream=watch, "
          "application/json" },
        { KUBE_ENCODING_JSON, false, "application/json" },
        { KUBE_ENCODING_JSON, true, "application/json" },
        { KUBE_ENCODING_PROTOBUF, false,
          "application/vnd.kubernetes.protobuf" },
        { KUBE_ENCODING_PROTOBUF, true,
          "application/vnd.kubernetes.protobuf;stream=watch" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(kube_request_accept(&(kube_request_t) {
                                .encoding = cases[i].encoding,
                                .watch = cases[i].watch }),
                            cases[i].accept);

        /* the metadata alone is there in JSON */

        assert_string_equal(kube_request_accept(&(kube_request_t) {
                                .resource = KUBE_RESOURCE_PODS,
                                .encoding = cases[i].encoding,
                                .watch = cases[i].watch }),
                            kube_resource_accept(KUBE_RESOURCE_PODS,
                                                 cases[i].watch));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_request_table),
        cmocka_unit_test(test_request_sizes),
        cmocka_unit_test(test_request_bytes),
        cmocka_unit_test(test_request_bad_namespace),
        cmocka_unit_test(test_request_accept)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

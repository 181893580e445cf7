/*
 * test_status - a Status or a bare code to a verdict.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_status.h"
#include "message_test.h"


typedef struct {
    int             http_code;
    const char     *body;
    kube_verdict_t  verdict;
    int             code;
    uint32_t        retry_after_s;
} status_case_t;

typedef struct {
    const char      *reason;
    kube_verdict_t   verdict;
} status_reason_case_t;


#define STATUS(members)  "{\"kind\":\"Status\",\"apiVersion\":\"v1\","        \
                         "\"metadata\":{},\"status\":\"Failure\"" members "}"


static const status_case_t  status_cases[] = {
    { 200, "", KUBE_VERDICT_OK, 200, 0 },
    { 200, "{\"kind\":\"ServiceList\"}", KUBE_VERDICT_OK, 200, 0 },
    { 204, "", KUBE_VERDICT_OK, 204, 0 },
    { 301, "", KUBE_VERDICT_REDIRECT, 301, 0 },
    { 308, "<html>", KUBE_VERDICT_REDIRECT, 308, 0 },
    { 400, "", KUBE_VERDICT_INVALID, 400, 0 },
    { 401, "Unauthorized", KUBE_VERDICT_UNAUTHORIZED, 401, 0 },
    { 403, "", KUBE_VERDICT_FORBIDDEN, 403, 0 },
    { 404, "404 page not found", KUBE_VERDICT_NOT_FOUND, 404, 0 },
    { 405, "", KUBE_VERDICT_OTHER, 405, 0 },
    { 409, "", KUBE_VERDICT_OTHER, 409, 0 },
    { 410, "", KUBE_VERDICT_EXPIRED, 410, 0 },
    { 422, "", KUBE_VERDICT_INVALID, 422, 0 },
    { 429, "", KUBE_VERDICT_TOO_MANY, 429, 0 },
    { 500, "", KUBE_VERDICT_INTERNAL, 500, 0 },
    { 502, "", KUBE_VERDICT_OTHER, 502, 0 },
    { 503, "", KUBE_VERDICT_UNAVAILABLE, 503, 0 },
    { 504, "", KUBE_VERDICT_OTHER, 504, 0 },
    { 100, "", KUBE_VERDICT_OTHER, 100, 0 },
    { 0, "", KUBE_VERDICT_OTHER, 0, 0 },
    { -1, "", KUBE_VERDICT_OTHER, -1, 0 },
    { 999, "", KUBE_VERDICT_OTHER, 999, 0 },

    /* the object of an ERROR event */
    { 0, STATUS(",\"reason\":\"Expired\",\"code\":410,\"message\":"
                "\"too old resource version: 1 (2)\""),
      KUBE_VERDICT_EXPIRED, 410, 0 },
    { 0, STATUS(",\"reason\":\"Gone\""), KUBE_VERDICT_EXPIRED, 0, 0 },
    { 0, STATUS(",\"code\":410"), KUBE_VERDICT_EXPIRED, 410, 0 },
    { 0, STATUS(",\"reason\":\"NewReason\",\"code\":410"),
      KUBE_VERDICT_EXPIRED, 410, 0 },
    { 0, STATUS(",\"reason\":\"Conflict\",\"code\":410"), KUBE_VERDICT_OTHER,
      410, 0 },
    { 0, STATUS(",\"code\":\"410\""), KUBE_VERDICT_OTHER, 0, 0 },
    { 0, STATUS(",\"code\":0"), KUBE_VERDICT_OTHER, 0, 0 },
    { 0, STATUS(",\"code\":-410"), KUBE_VERDICT_OTHER, 0, 0 },
    { 0, STATUS(",\"code\":1e99"), KUBE_VERDICT_OTHER, 0, 0 },
    { 0, STATUS(",\"code\":200"), KUBE_VERDICT_OTHER, 200, 0 },
    { 0, STATUS(",\"details\":null"), KUBE_VERDICT_OTHER, 0, 0 },
    { 0, STATUS(",\"details\":[]"), KUBE_VERDICT_OTHER, 0, 0 },
    { 0, "{\"kind\":\"Pod\",\"reason\":\"Expired\",\"code\":410}",
      KUBE_VERDICT_OTHER, 0, 0 },
    { 0, "[]", KUBE_VERDICT_OTHER, 0, 0 },
    { 0, "null", KUBE_VERDICT_OTHER, 0, 0 },
    { 0, "{\"kind\":\"Status\"", KUBE_VERDICT_OTHER, 0, 0 },

    /* too large resource version, as 1.19+, 1.17 and older say it */
    { 504, STATUS(",\"reason\":\"Timeout\",\"code\":504,\"details\":{"
                  "\"causes\":[{},{\"reason\":\"ResourceVersionTooLarge\","
                  "\"message\":\"Too large resource version\"}],"
                  "\"retryAfterSeconds\":1}"),
      KUBE_VERDICT_TOO_LARGE_RV, 504, 1 },
    { 0, STATUS(",\"details\":{\"causes\":[{\"reason\":"
                "\"ResourceVersionTooLarge\"}]}"),
      KUBE_VERDICT_TOO_LARGE_RV, 0, 0 },
    { 504, STATUS(",\"reason\":\"Timeout\",\"code\":504,\"details\":{"
                  "\"causes\":[{\"message\":\"Too large resource version\"}]}"),
      KUBE_VERDICT_TOO_LARGE_RV, 504, 0 },
    { 504, STATUS(",\"reason\":\"Timeout\",\"code\":504,\"message\":"
                  "\"Timeout: Too large resource version: 9, current: 1\""),
      KUBE_VERDICT_TOO_LARGE_RV, 504, 0 },
    { 504, STATUS(",\"message\":\"Too large resource version: 9\""),
      KUBE_VERDICT_TOO_LARGE_RV, 504, 0 },
    { 504, STATUS(",\"reason\":\"Timeout\",\"code\":504"),
      KUBE_VERDICT_OTHER, 504, 0 },
    { 403, STATUS(",\"reason\":\"Forbidden\",\"code\":403,\"message\":"
                  "\"Too large resource version\""),
      KUBE_VERDICT_FORBIDDEN, 403, 0 },
    { 0, STATUS(",\"details\":{\"causes\":{\"reason\":"
                "\"ResourceVersionTooLarge\"}}"), KUBE_VERDICT_OTHER, 0, 0 },

    /* client-go: the code alone makes it retriable */
    { 429, STATUS(",\"reason\":\"Conflict\",\"code\":429,\"details\":{"
                  "\"retryAfterSeconds\":5}"), KUBE_VERDICT_TOO_MANY, 429, 5 },
    { 429, STATUS(",\"details\":{\"retryAfterSeconds\":3600}"),
      KUBE_VERDICT_TOO_MANY, 429, KUBE_RETRY_AFTER_MAX },
    { 429, STATUS(",\"details\":{\"retryAfterSeconds\":-1}"),
      KUBE_VERDICT_TOO_MANY, 429, 0 },
    { 429, STATUS(",\"details\":{\"retryAfterSeconds\":\"5\"}"),
      KUBE_VERDICT_TOO_MANY, 429, 0 },
    { 200, "{\"kind\":\"Status\",\"status\":\"Success\"}", KUBE_VERDICT_OK,
      200, 0 },
    { 200, STATUS(",\"reason\":\"\""), KUBE_VERDICT_OTHER, 200, 0 }
};


/* In the order of metav1.StatusReason. */
static const status_reason_case_t  status_by_reason[] = {
    { "Unauthorized", KUBE_VERDICT_UNAUTHORIZED },
    { "Forbidden", KUBE_VERDICT_FORBIDDEN },
    { "NotFound", KUBE_VERDICT_NOT_FOUND },
    { "AlreadyExists", KUBE_VERDICT_OTHER },
    { "Conflict", KUBE_VERDICT_OTHER },
    { "Gone", KUBE_VERDICT_EXPIRED },
    { "Invalid", KUBE_VERDICT_INVALID },
    { "ServerTimeout", KUBE_VERDICT_OTHER },
    { "StorageReadError", KUBE_VERDICT_OTHER },
    { "Timeout", KUBE_VERDICT_OTHER },
    { "TooManyRequests", KUBE_VERDICT_TOO_MANY },
    { "BadRequest", KUBE_VERDICT_INVALID },
    { "MethodNotAllowed", KUBE_VERDICT_OTHER },
    { "NotAcceptable", KUBE_VERDICT_OTHER },
    { "RequestEntityTooLarge", KUBE_VERDICT_OTHER },
    { "UnsupportedMediaType", KUBE_VERDICT_OTHER },
    { "InternalError", KUBE_VERDICT_INTERNAL },
    { "Expired", KUBE_VERDICT_EXPIRED },
    { "ServiceUnavailable", KUBE_VERDICT_UNAVAILABLE }
};


static void
status_judge_with(size_t max_bytes, int http_code, kube_str_t body,
    kube_status_t *status)
{
    kube_arena_t  arena;
    alloc_test_t  at;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, max_bytes);

    kube_status_judge(&arena, http_code, body, status);

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


static void
status_table(void **state)
{
    size_t                i;
    kube_status_t         status;
    const status_case_t  *c;

    (void) state;

    for (i = 0; i < sizeof(status_cases) / sizeof(status_cases[0]); i++) {
        c = &status_cases[i];

        status_judge_with(1u << 20, c->http_code, kube_str(c->body),
                          &status);

        if (status.verdict != c->verdict || status.code != c->code
            || status.retry_after_s != c->retry_after_s)
        {
            fail_msg("%d %s: %s, code %d, retry %u", c->http_code, c->body,
                     kube_verdict_text(status.verdict), status.code,
                     (unsigned) status.retry_after_s);
        }
    }
}


/* Each reason outweighs any code; an unknown one does not. */
static void
status_reasons(void **state)
{
    int                          code;
    char                         body[256];
    size_t                       i;
    kube_status_t                status;
    const status_reason_case_t  *c;

    (void) state;

    for (i = 0; i < sizeof(status_by_reason) / sizeof(status_by_reason[0]);
         i++)
    {
        c = &status_by_reason[i];

        for (code = 400; code < 600; code += 10) {
            (void) snprintf(body, sizeof(body),
                            "{\"kind\":\"Status\",\"reason\":\"%s\","
                            "\"code\":%d}", c->reason, code);

            status_judge_with(1u << 20, 0, kube_str(body), &status);

            assert_int_equal(status.verdict, c->verdict);
            assert_string_equal(status.reason, c->reason);
            assert_int_equal(status.code, code);
        }
    }
}


static void
status_texts(void **state)
{
    unsigned       v;
    char           body[2048];
    kube_status_t  status;

    (void) state;

    for (v = 0; v < KUBE_VERDICTS; v++) {
        assert_string_not_equal(kube_verdict_text((kube_verdict_t) v),
                                "unknown");
    }

    assert_string_equal(kube_verdict_text(KUBE_VERDICT_TOO_LARGE_RV),
                        "too_large_rv");
    assert_string_equal(kube_verdict_text(KUBE_VERDICTS), "unknown");

    /* what is printed is escaped and cut */
    status_judge_with(1u << 20, 500, KUBE_STR(
        STATUS(",\"reason\":\"a\\nb\",\"message\":\"x\\u001b[0m\\\"\"")),
        &status);
    assert_string_equal(status.reason, "a\\x0ab");
    assert_string_equal(status.message, "x\\x1b[0m\\x22");

    (void) snprintf(body, sizeof(body),
                    "{\"kind\":\"Status\",\"code\":410,\"message\":\"%01000d\","
                    "\"reason\":\"%0500d\"}", 0, 0);
    status_judge_with(1u << 20, 500, kube_str(body), &status);
    assert_int_equal(strlen(status.message), KUBE_MESSAGE_LEN_MAX - 1);
    assert_int_equal(strlen(status.reason), 63);
    assert_int_equal(status.verdict, KUBE_VERDICT_EXPIRED);
}


static void
status_body_too_large(void **state)
{
    char           *body;
    size_t          len;
    kube_status_t   status;

    (void) state;

    len = KUBE_STATUS_BYTES_MAX + 1;
    body = malloc(len);
    assert_non_null(body);

    memset(body, ' ', len);
    memcpy(body, "{\"kind\":\"Status\",\"code\":410}", 28);

    status_judge_with(1u << 20, 500, (kube_str_t) { body, len }, &status);
    assert_int_equal(status.verdict, KUBE_VERDICT_INTERNAL);

    status_judge_with(1u << 20, 500, (kube_str_t) { body, len - 1 },
                      &status);
    assert_int_equal(status.verdict, KUBE_VERDICT_EXPIRED);

    free(body);
}


/* Out of memory anywhere: the code alone, or all of it. */
static void
status_oom_body(alloc_test_t *at, void *ctx)
{
    size_t         max;
    kube_arena_t   arena;
    kube_status_t  status;

    (void) ctx;

    for (max = 0; max < 4096; max += 64) {
        kube_arena_init(&arena, &at->alloc, max);

        kube_status_judge(&arena, 500, KUBE_STR(
            STATUS(",\"reason\":\"Expired\",\"code\":410")), &status);

        if (status.verdict != KUBE_VERDICT_EXPIRED) {
            assert_true(at->failed || max < 2048);
            assert_int_equal(status.verdict, KUBE_VERDICT_INTERNAL);
            assert_int_equal(status.code, 500);
            assert_string_equal(status.reason, "");
        }

        kube_arena_done(&arena);
    }
}


static void
status_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(status_oom_body, NULL);
}


static const message_field_t  status_of_cause[] = {
    { "reason", 1, MESSAGE_TEXT, false, NULL },
    { "message", 2, MESSAGE_TEXT, false, NULL },
    { "field", 3, MESSAGE_TEXT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  status_of_details[] = {
    { "name", 1, MESSAGE_TEXT, false, NULL },
    { "causes", 4, MESSAGE_MESSAGE, true, status_of_cause },
    { "retryAfterSeconds", 5, MESSAGE_INT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};

static const message_field_t  status_of_status[] = {
    { "status", 2, MESSAGE_TEXT, false, NULL },
    { "message", 3, MESSAGE_TEXT, false, NULL },
    { "reason", 4, MESSAGE_TEXT, false, NULL },
    { "details", 5, MESSAGE_MESSAGE, false, status_of_details },
    { "code", 6, MESSAGE_INT, false, NULL },
    { NULL, 0, MESSAGE_TEXT, false, NULL }
};


/* What can be written as a message is judged as it is in JSON. */
static void
status_messages(void **state)
{
    size_t         i, len, n;
    message_t      m, object;
    alloc_test_t   at;
    kube_arena_t   arena;
    kube_status_t  json, status;

    (void) state;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1u << 20);
    n = 0;

    for (i = 0; i < sizeof(status_cases) / sizeof(status_cases[0]); i++) {
        m.len = 0;
        object.len = 0;

        if (strstr(status_cases[i].body, "\"kind\":\"Status\"") == NULL
            || !message_convert(kube_str(status_cases[i].body),
                                status_of_status, &object))
        {
            continue;
        }

        n++;
        message_unknown(&m, "v1", "Status", message_str(&object));

        kube_status_judge(&arena, status_cases[i].http_code,
                          kube_str(status_cases[i].body), &json);
        kube_status_judge(&arena, status_cases[i].http_code, message_str(&m),
                          &status);
        assert_memory_equal(&status, &json, sizeof(status));

        /* with rubbish in it, cut, or of another kind, the code alone counts */

        m.len = 0;
        message_put(&object, "\xff", 1);
        message_unknown(&m, "v1", "Status", message_str(&object));
        kube_status_judge(&arena, 403, message_str(&m), &status);
        assert_int_equal(status.verdict, KUBE_VERDICT_FORBIDDEN);
        assert_int_equal(status.code, 403);
        object.len--;
        m.len = 0;
        message_unknown(&m, "v1", "Status", message_str(&object));

        for (len = 0; len + 4 < m.len; len++) {
            kube_status_judge(&arena, 403, (kube_str_t) { m.data, len },
                              &status);
            assert_int_equal(status.verdict, KUBE_VERDICT_FORBIDDEN);
        }

        m.len = 0;
        message_unknown(&m, "v1", "Pod", message_str(&object));
        kube_status_judge(&arena, 403, message_str(&m), &status);
        assert_int_equal(status.verdict, KUBE_VERDICT_FORBIDDEN);
        kube_arena_reset(&arena);
    }

    assert_in_range(n, 10, 100);

    kube_arena_done(&arena);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(status_table),
        cmocka_unit_test(status_reasons),
        cmocka_unit_test(status_texts),
        cmocka_unit_test(status_body_too_large),
        cmocka_unit_test(status_out_of_memory),
        cmocka_unit_test(status_messages)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

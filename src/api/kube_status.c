/*
 * kube_status - metav1.Status to what happened.
 *
 * It decides nothing: the reflector does.  No state; whoever owns the
 * scratch arena may call it.
 *
 * A reason that is known outweighs the code; an unknown or empty one leaves
 * the judgement to the code (client-go: ReasonAndCodeForError).  The code in
 * the body outweighs that of the response, which a proxy may have set.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_json.h"
#include "kube_status.h"


typedef struct {
    kube_str_t      reason;
    kube_verdict_t  verdict;
} status_reason_t;


/* metav1.StatusReason*, in the order of apimachinery's types.go. */
static const status_reason_t  status_reasons[] = {
    { { "Unauthorized", 12 },          KUBE_VERDICT_UNAUTHORIZED },
    { { "Forbidden", 9 },              KUBE_VERDICT_FORBIDDEN },
    { { "NotFound", 8 },               KUBE_VERDICT_NOT_FOUND },
    { { "AlreadyExists", 13 },         KUBE_VERDICT_OTHER },
    { { "Conflict", 8 },               KUBE_VERDICT_OTHER },
    { { "Gone", 4 },                   KUBE_VERDICT_EXPIRED },
    { { "Invalid", 7 },                KUBE_VERDICT_INVALID },
    { { "ServerTimeout", 13 },         KUBE_VERDICT_OTHER },
    { { "StorageReadError", 16 },      KUBE_VERDICT_OTHER },
    { { "Timeout", 7 },                KUBE_VERDICT_OTHER },
    { { "TooManyRequests", 15 },       KUBE_VERDICT_TOO_MANY },
    { { "BadRequest", 10 },            KUBE_VERDICT_INVALID },
    { { "MethodNotAllowed", 16 },      KUBE_VERDICT_OTHER },
    { { "NotAcceptable", 13 },         KUBE_VERDICT_OTHER },
    { { "RequestEntityTooLarge", 21 }, KUBE_VERDICT_OTHER },
    { { "UnsupportedMediaType", 20 },  KUBE_VERDICT_OTHER },
    { { "InternalError", 13 },         KUBE_VERDICT_INTERNAL },
    { { "Expired", 7 },                KUBE_VERDICT_EXPIRED },
    { { "ServiceUnavailable", 18 },    KUBE_VERDICT_UNAVAILABLE }
};


const char *
kube_verdict_text(kube_verdict_t v)
{
    switch (v) {
#define XX(name, text)  case KUBE_VERDICT_##name: return text;
    KUBE_VERDICT_MAP(XX)
#undef XX
    default:
        return "unknown";
    }
}


static kube_verdict_t
status_judge_code(int code)
{
    switch (code) {
    case 400:
    case 422:
        return KUBE_VERDICT_INVALID;

    case 401:
        return KUBE_VERDICT_UNAUTHORIZED;

    case 403:
        return KUBE_VERDICT_FORBIDDEN;

    case 404:
        return KUBE_VERDICT_NOT_FOUND;

    case 410:
        return KUBE_VERDICT_EXPIRED;

    case 429:
        return KUBE_VERDICT_TOO_MANY;

    case 500:
        return KUBE_VERDICT_INTERNAL;

    case 503:
        return KUBE_VERDICT_UNAVAILABLE;

    default:
        break;
    }

    if (code >= 200 && code <= 299) {
        return KUBE_VERDICT_OK;
    }

    if (code >= 300 && code <= 399) {
        return KUBE_VERDICT_REDIRECT;
    }

    return KUBE_VERDICT_OTHER;
}


static const status_reason_t *
status_reason_find(kube_str_t reason)
{
    size_t  i;

    for (i = 0; i < sizeof(status_reasons) / sizeof(status_reasons[0]); i++) {
        if (kube_str_eq(reason, status_reasons[i].reason)) {
            return &status_reasons[i];
        }
    }

    return NULL;
}


/* An integer member of 0..max, or 0. */
static uint32_t
status_number(const cJSON *object, const char *name, uint32_t max,
    bool clamp)
{
    double        v;
    const cJSON  *value;

    value = kube_json_get(object, name);

    if (!cJSON_IsNumber(value)) {
        return 0;
    }

    v = cJSON_GetNumberValue(value);

    /* written so that NaN is refused as well */
    if (!(v >= 1.0)) {
        return 0;
    }

    if (v > (double) max) {
        return clamp ? max : 0;
    }

    return (uint32_t) v;
}


static bool
status_message_says_too_large(const cJSON *object)
{
    kube_str_t  message;

    message = kube_json_string(object, "message");

    return message.len != 0
           && strstr(message.data, "Too large resource version") != NULL;
}


/*
 * isTooLargeResourceVersionError: the cause, or what servers before 1.19
 * said under the reason Timeout.
 */
static bool
status_is_too_large(const cJSON *root, const status_reason_t *known,
    int code)
{
    bool          timeout;
    kube_str_t    reason;
    const cJSON  *causes, *cause;

    timeout = (known != NULL)
                  ? kube_str_eq(known->reason, KUBE_STR("Timeout"))
                  : (code == 504);

    causes = kube_json_get(kube_json_get(root, "details"), "causes");

    if (cJSON_IsArray(causes)) {
        for (cause = causes->child; cause != NULL; cause = cause->next) {
            reason = kube_json_string(cause, "reason");

            if (kube_str_eq(reason, KUBE_STR("ResourceVersionTooLarge"))
                || (timeout && status_message_says_too_large(cause)))
            {
                return true;
            }
        }
    }

    return timeout && status_message_says_too_large(root);
}


static void
status_judge_body(const cJSON *root, kube_status_t *status)
{
    int                     code;
    kube_str_t              reason;
    const status_reason_t  *known;

    /* a 2xx with "Success" is what DELETE answers: nothing went wrong */
    if (kube_str_eq(kube_json_string(root, "status"), KUBE_STR("Success"))) {
        return;
    }

    code = (int) status_number(root, "code", 999, false);

    if (code != 0) {
        status->code = code;
    }

    reason = kube_json_string(root, "reason");
    known = status_reason_find(reason);

    (void) kube_str_escape(status->reason, sizeof(status->reason), reason);
    (void) kube_str_escape(status->message, sizeof(status->message),
                           kube_json_string(root, "message"));

    status->retry_after_s = status_number(kube_json_get(root, "details"),
                                          "retryAfterSeconds",
                                          KUBE_RETRY_AFTER_MAX, true);

    if (status_is_too_large(root, known, status->code)) {
        status->verdict = KUBE_VERDICT_TOO_LARGE_RV;

    } else if (known != NULL) {
        status->verdict = known->verdict;

    } else {
        status->verdict = status_judge_code(status->code);
    }

    /* a Status that is a failure is never OK, whatever its code says */
    if (status->verdict == KUBE_VERDICT_OK) {
        status->verdict = KUBE_VERDICT_OTHER;
    }

    /* client-go's isRetriable: the code is enough */
    if (status->code == 429 && status->verdict == KUBE_VERDICT_OTHER) {
        status->verdict = KUBE_VERDICT_TOO_MANY;
    }
}


void
kube_status_judge(kube_arena_t *scratch, int http_code, kube_str_t body,
    kube_status_t *status)
{
    cJSON         *root;
    kube_error_t   error;

    memset(status, 0, sizeof(kube_status_t));

    status->code = http_code;
    status->verdict = status_judge_code(http_code);

    if (body.len == 0 || body.len > KUBE_STATUS_BYTES_MAX) {
        return;
    }

    if (kube_json_parse(scratch, body, &root, &error) != KUBE_OK) {
        return;
    }

    if (kube_str_eq(kube_json_string(root, "kind"), KUBE_STR("Status"))) {
        status_judge_body(root, status);
    }
}

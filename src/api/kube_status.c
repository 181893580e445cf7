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
#include "kube_protobuf.h"
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


/* What is used of a Status, in whichever encoding it came. */
typedef struct {
    kube_str_t  kind;
    kube_str_t  status;
    kube_str_t  reason;
    kube_str_t  message;
    uint32_t    code;            /* 0: none, or none of HTTP */
    uint32_t    retry_after_s;
    bool        cause_says;      /* a cause: the version is too large */
    bool        text_says;       /* a message does */
} status_body_t;


static bool
status_says_too_large(kube_str_t message)
{
    size_t      i;
    kube_str_t  text;

    text = KUBE_STR("Too large resource version");

    for (i = 0; i + text.len <= message.len; i++) {
        if (memcmp(message.data + i, text.data, text.len) == 0) {
            return true;
        }
    }

    return false;
}


static void
status_cause(status_body_t *body, kube_str_t reason, kube_str_t message)
{
    if (kube_str_eq(reason, KUBE_STR("ResourceVersionTooLarge"))) {
        body->cause_says = true;
    }

    if (status_says_too_large(message)) {
        body->text_says = true;
    }
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
status_read_json(kube_arena_t *scratch, kube_str_t text, status_body_t *body)
{
    cJSON         *root;
    kube_error_t   error;
    const cJSON   *causes, *cause;

    if (kube_json_parse(scratch, text, &root, &error) != KUBE_OK) {
        return false;
    }

    body->kind = kube_json_string(root, "kind");
    body->status = kube_json_string(root, "status");
    body->reason = kube_json_string(root, "reason");
    body->message = kube_json_string(root, "message");
    body->code = status_number(root, "code", 999, false);
    body->retry_after_s = status_number(kube_json_get(root, "details"),
                                        "retryAfterSeconds",
                                        KUBE_RETRY_AFTER_MAX, true);

    causes = kube_json_get(kube_json_get(root, "details"), "causes");

    if (cJSON_IsArray(causes)) {
        for (cause = causes->child; cause != NULL; cause = cause->next) {
            status_cause(body, kube_json_string(cause, "reason"),
                         kube_json_string(cause, "message"));
        }
    }

    return true;
}


/* The numbers of metav1.Status, StatusDetails, and StatusCause. */
enum {
    STATUS_STATUS = 2,
    STATUS_MESSAGE = 3,
    STATUS_REASON = 4,
    STATUS_DETAILS = 5,
    STATUS_CODE = 6
};

enum {
    DETAILS_CAUSES = 4,
    DETAILS_RETRY_AFTER = 5
};

enum {
    CAUSE_REASON = 1,
    CAUSE_MESSAGE = 2
};


static void
status_read_cause(kube_str_t text, status_body_t *body)
{
    kube_str_t             reason, message;
    kube_protobuf_t        m;
    kube_protobuf_field_t  f;

    reason = KUBE_STR_NULL;
    message = KUBE_STR_NULL;
    kube_protobuf_init(&m, text);

    while (kube_protobuf_next(&m, &f)) {

        if (f.number == CAUSE_REASON) {
            (void) kube_protobuf_bytes(&m, &f, &reason);

        } else if (f.number == CAUSE_MESSAGE) {
            (void) kube_protobuf_bytes(&m, &f, &message);
        }
    }

    status_cause(body, reason, message);
}


static void
status_read_details(kube_str_t text, status_body_t *body)
{
    uint64_t               value;
    kube_str_t             cause;
    kube_protobuf_t        m;
    kube_protobuf_field_t  f;

    kube_protobuf_init(&m, text);

    while (kube_protobuf_next(&m, &f)) {

        if (f.number == DETAILS_CAUSES
            && kube_protobuf_bytes(&m, &f, &cause))
        {
            status_read_cause(cause, body);

        } else if (f.number == DETAILS_RETRY_AFTER
                   && kube_protobuf_number(&m, &f, &value))
        {
            /* an int32: what is negative is far above */
            body->retry_after_s = (value > INT32_MAX) ? 0
                                  : (value < KUBE_RETRY_AFTER_MAX)
                                    ? (uint32_t) value
                                    : KUBE_RETRY_AFTER_MAX;
        }
    }
}


/* What is wrong in it costs what follows: the code of the response is left. */
static bool
status_read_message(kube_str_t text, status_body_t *body)
{
    uint64_t                  code;
    kube_str_t                details;
    kube_protobuf_t           m;
    kube_protobuf_field_t     f;
    kube_protobuf_unknown_t   unknown;

    if (kube_protobuf_unknown(text, &unknown) != NULL) {
        return false;
    }

    body->kind = unknown.kind;
    kube_protobuf_init(&m, unknown.raw);

    while (kube_protobuf_next(&m, &f)) {

        switch (f.number) {

        case STATUS_STATUS:
            (void) kube_protobuf_bytes(&m, &f, &body->status);
            break;

        case STATUS_MESSAGE:
            (void) kube_protobuf_bytes(&m, &f, &body->message);
            break;

        case STATUS_REASON:
            (void) kube_protobuf_bytes(&m, &f, &body->reason);
            break;

        case STATUS_DETAILS:

            if (kube_protobuf_bytes(&m, &f, &details)) {
                status_read_details(details, body);
            }

            break;

        case STATUS_CODE:

            if (kube_protobuf_number(&m, &f, &code)) {
                body->code = (code <= 999) ? (uint32_t) code : 0;
            }

            break;

        default:
            break;
        }
    }

    return m.what == NULL;
}


/*
 * isTooLargeResourceVersionError: the cause, or what servers before 1.19
 * said under the reason Timeout.
 */
static bool
status_is_too_large(const status_body_t *body, const status_reason_t *known,
    int code)
{
    bool  timeout;

    timeout = (known != NULL)
                  ? kube_str_eq(known->reason, KUBE_STR("Timeout"))
                  : (code == 504);

    return body->cause_says
           || (timeout
               && (body->text_says || status_says_too_large(body->message)));
}


static void
status_judge_body(const status_body_t *body, kube_status_t *status)
{
    const status_reason_t  *known;

    /* a 2xx with "Success" is what DELETE answers: nothing went wrong */
    if (kube_str_eq(body->status, KUBE_STR("Success"))) {
        return;
    }

    if (body->code != 0) {
        status->code = (int) body->code;
    }

    known = status_reason_find(body->reason);

    (void) kube_str_escape(status->reason, sizeof(status->reason),
                           body->reason);
    (void) kube_str_escape(status->message, sizeof(status->message),
                           body->message);

    status->retry_after_s = body->retry_after_s;

    if (status_is_too_large(body, known, status->code)) {
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
    bool           good;
    status_body_t  read;

    memset(status, 0, sizeof(kube_status_t));
    memset(&read, 0, sizeof(status_body_t));

    status->code = http_code;
    status->verdict = status_judge_code(http_code);

    if (body.len == 0 || body.len > KUBE_STATUS_BYTES_MAX) {
        return;
    }

    good = (body.len >= KUBE_PROTOBUF_MAGIC_LEN
            && memcmp(body.data, KUBE_PROTOBUF_MAGIC, KUBE_PROTOBUF_MAGIC_LEN)
               == 0)
           ? status_read_message(body, &read)
           : status_read_json(scratch, body, &read);

    if (good && kube_str_eq(read.kind, KUBE_STR("Status"))) {
        status_judge_body(&read, status);
    }
}

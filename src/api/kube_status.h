/*
 * kube_status - metav1.Status (a failed response's body, or the object of an
 * ERROR event) to what happened.
 *
 * The predicates are client-go's isExpiredError and isTooLargeResourceVersion
 * Error (tools/cache/reflector.go) and apierrors.ReasonForError.  A body that
 * is no Status is judged by the HTTP code alone.  It decides nothing: the
 * reflector does.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_STATUS_H
#define KUBE_STATUS_H


#include "kube_arena.h"
#include "kube_limits.h"


/* The classes the reflector tells apart; the text is a metric's label. */
#define KUBE_VERDICT_MAP(XX)                                                  \
    XX(OK, "ok")                                                              \
    XX(EXPIRED, "expired")               /* 410, Expired, Gone */             \
    XX(TOO_LARGE_RV, "too_large_rv")     /* ahead of the server */            \
    XX(UNAUTHORIZED, "unauthorized")     /* 401 */                            \
    XX(FORBIDDEN, "forbidden")           /* 403 */                            \
    XX(NOT_FOUND, "not_found")           /* 404: the API is missing */        \
    XX(TOO_MANY, "too_many_requests")    /* 429 */                            \
    XX(UNAVAILABLE, "unavailable")       /* 503 */                            \
    XX(INTERNAL, "internal")             /* 500 */                            \
    XX(REDIRECT, "redirect")             /* 3xx: never followed */            \
    XX(INVALID, "invalid")               /* 400, 422 */                       \
    XX(OTHER, "other")

typedef enum {
#define XX(name, text)  KUBE_VERDICT_##name,
    KUBE_VERDICT_MAP(XX)
#undef XX
    KUBE_VERDICTS
} kube_verdict_t;

const char *kube_verdict_text(kube_verdict_t v);

typedef struct {
    kube_verdict_t  verdict;
    int             code;                             /* 0: none given */
    uint32_t        retry_after_s;                    /* 0: none given */
    const char     *remedy;                           /* static; NULL, or what
                                                         helps: who asked knows
                                                         more than the answer */
    char            reason[64];                       /* escaped, NUL */
    char            message[KUBE_MESSAGE_LEN_MAX];    /* escaped, cut, NUL */
} kube_status_t;

/*
 * Judges an HTTP code and body: in JSON, or in Protocol Buffers with the four
 * bytes that say so; it may be empty or neither.  For an ERROR
 * event pass http_code 0 and the event's object.  Never fails: out of memory
 * gives the verdict of the code alone.  Memory of scratch is taken and left
 * for the caller to reset (body may lie in it).
 */
void kube_status_judge(kube_arena_t *scratch, int http_code, kube_str_t body,
    kube_status_t *status);


#endif /* KUBE_STATUS_H */

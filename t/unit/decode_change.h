/*
 * decode_change - random changes of the text of an object, and whether two
 * objects that were decoded are the same.
 *
 * For t/unit only: test_decode_oracle holds the decoder against cJSON with it,
 * test_decode_scan one way of reading against another.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_DECODE_CHANGE_H
#define KUBE_DECODE_CHANGE_H


#include <stdio.h>

#include "alloc_test.h"
#include "kube_lexer.h"
#include "kube_record.h"


#define CHANGE_MAX       8192
#define CHANGE_COUNT(a)  (sizeof(a) / sizeof((a)[0]))


static inline void
change_same(const kube_object_t *a, const kube_object_t *b, const char *text)
{
    size_t   size;
    void    *p, *q;

    size = kube_record_size(a);

    if (size == 0 || size != kube_record_size(b)) {
        fail_msg("%s: records of %zu and %zu bytes", text, size,
                 kube_record_size(b));
    }

    p = aligned_alloc(8, size);
    q = aligned_alloc(8, size);
    assert_non_null(p);
    assert_non_null(q);

    kube_record_encode(a, p);
    kube_record_encode(b, q);

    if (memcmp(p, q, size) != 0
        || (kube_resource_info(a->resource)->shape == KUBE_SHAPE_SLICE
            && a->u.slice.trigger_ms != b->u.slice.trigger_ms))
    {
        fail_msg("another object: %s", text);
    }

    free(p);
    free(q);
}


static inline uint32_t
change_random(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;

    return (uint32_t) (*seed >> 33) % below;
}


/*
 * Mostly a value is replaced by another, or a member put before others; at
 * times any bytes by anything.
 */
static inline void
change_text(uint64_t *seed, char *text)
{
    char                      tail[CHANGE_MAX];
    size_t                    len, at, cut;
    kube_str_t                value;
    const char               *with;
    kube_lexer_t              lx;
    static const char *const  values[] = {
        "null", "null", "\"\"", "{}", "[]", "7", "80", "-1", "65536", "true",
        "false", "\"a\"", "\"Pod\"", "\"None\"", "\"1.1.1.1\"", "\"::1\"",
        "\"UDP\"", "\"IPv6\"", "\"FQDN\"", "[null]", "[{}]", "[7,\"a\"]",
        "\"a\\u0000\"", "\"\\ud800\"", "\"\\u0041\"", "\"a\\\"b\"", "\"\xff\"",
        "\"\x01\"", "\"\xc3\xa4\"", "\"a b\"", "1e3", "8.0", "080"
    };
    static const char *const  members[] = {
        "\"name\":\"x\",", "\"port\":5,", "\"port\":null,",
        "\"conditions\":{\"ready\":false},", "\"zone\":\"z\",", "{\"port\":5},",
        "\"endpoints\":[{}],", "\"ports\":[{}],", "\"spec\":{},",
        "\"metadata\":{},", "\"addressType\":\"IPv4\",", "\"a\":[[{}]],"
    };
    static const char *const  others[] = {
        "", "", "\\", "\"", "{", "}", "[", "]", ",", ":", "0", "x", "\n"
    };

    len = strlen(text);
    at = change_random(seed, (uint32_t) len + 1);
    cut = 0;

    switch (change_random(seed, 8)) {
    case 0:
        with = others[change_random(seed, CHANGE_COUNT(others))];
        cut = change_random(seed, 5);
        break;

    case 1:
    case 2:
        at += strcspn(text + at, "{[");
        at += (text[at] != '\0');
        with = members[change_random(seed, CHANGE_COUNT(members))];
        break;

    default:
        at += strcspn(text + at, ":");
        at += (text[at] != '\0');
        kube_lexer_init(&lx, kube_str(text + at));
        kube_lexer_value(&lx, &value);
        cut = value.len;
        with = values[change_random(seed, CHANGE_COUNT(values))];
    }

    cut = (cut < len - at) ? cut : len - at;

    if (len - cut + strlen(with) + 1 > CHANGE_MAX) {
        return;
    }

    (void) snprintf(tail, sizeof(tail), "%s%s", with, text + at + cut);
    memcpy(text + at, tail, strlen(tail) + 1);
}



#endif /* KUBE_DECODE_CHANGE_H */

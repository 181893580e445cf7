/*
 * kube_json_writer - JSON into a kube_text: the commas come by themselves,
 * and every string is escaped.
 *
 * It keeps no stack and reads no JSON (src/api does).  Any layer may call it,
 * in any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <inttypes.h>

#include "kube_json_writer.h"


void
kube_json_writer_init(kube_json_writer_t *json, kube_text_t *text)
{
    json->text = text;
    json->comma = false;
}


static void
json_key(kube_json_writer_t *json, const char *key)
{
    if (json->comma) {
        kube_text_put(json->text, KUBE_STR(","));
    }

    json->comma = true;

    if (key != NULL) {
        kube_text_printf(json->text, "\"%s\":", key);
    }
}


void
kube_json_open(kube_json_writer_t *json, const char *key, char bracket)
{
    json_key(json, key);
    kube_text_put(json->text, (kube_str_t) { &bracket, 1 });
    json->comma = false;
}


void
kube_json_close(kube_json_writer_t *json, char bracket)
{
    kube_text_put(json->text, (kube_str_t) { &bracket, 1 });
    json->comma = true;
}


void
kube_json_put_str(kube_json_writer_t *json, const char *key, kube_str_t s)
{
    json_key(json, key);
    kube_text_put(json->text, KUBE_STR("\""));
    kube_text_escape(json->text, s, KUBE_ESCAPE_JSON);
    kube_text_put(json->text, KUBE_STR("\""));
}


void
kube_json_put_optional(kube_json_writer_t *json, const char *key,
    kube_str_t s)
{
    if (s.len == 0) {
        kube_json_put_null(json, key);
        return;
    }

    kube_json_put_str(json, key, s);
}


void
kube_json_put_num(kube_json_writer_t *json, const char *key, uint64_t n)
{
    json_key(json, key);
    kube_text_printf(json->text, "%" PRIu64, n);
}


void
kube_json_put_bool(kube_json_writer_t *json, const char *key, bool value)
{
    json_key(json, key);
    kube_text_put(json->text, value ? KUBE_STR("true") : KUBE_STR("false"));
}


void
kube_json_put_null(kube_json_writer_t *json, const char *key)
{
    json_key(json, key);
    kube_text_put(json->text, KUBE_STR("null"));
}


void
kube_json_put_seconds(kube_json_writer_t *json, const char *key, uint64_t ms)
{
    if (ms == KUBE_NEVER) {
        kube_json_put_null(json, key);
        return;
    }

    json_key(json, key);
    kube_text_thousandths(json->text, ms);
}


void
kube_json_put_time(kube_json_writer_t *json, const char *key,
    int64_t unix_ms)
{
    if (unix_ms <= 0) {
        kube_json_put_null(json, key);
        return;
    }

    json_key(json, key);
    kube_text_put(json->text, KUBE_STR("\""));
    kube_text_time(json->text, unix_ms);
    kube_text_put(json->text, KUBE_STR("\""));
}

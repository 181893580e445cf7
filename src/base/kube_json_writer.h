/*
 * kube_json_writer - JSON into a kube_text: the commas come by themselves,
 * and every string is escaped.
 *
 * It keeps no stack: the caller closes what it opened.  Reading JSON is
 * src/api's.  Any layer may use it, in any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_JSON_WRITER_H
#define KUBE_JSON_WRITER_H


#include "kube_text.h"


typedef struct {
    kube_text_t  *text;
    bool          comma;     /* one is due before the next value */
} kube_json_writer_t;

void kube_json_writer_init(kube_json_writer_t *json, kube_text_t *text);

/*
 * key is NULL for an element of an array and for the whole value; it is a
 * static text and not escaped.  bracket is '{', '[', '}' or ']'.
 */
void kube_json_open(kube_json_writer_t *json, const char *key, char bracket);
void kube_json_close(kube_json_writer_t *json, char bracket);

void kube_json_put_str(kube_json_writer_t *json, const char *key,
    kube_str_t s);
/* null where s is empty */
void kube_json_put_optional(kube_json_writer_t *json, const char *key,
    kube_str_t s);
void kube_json_put_num(kube_json_writer_t *json, const char *key, uint64_t n);
void kube_json_put_bool(kube_json_writer_t *json, const char *key,
    bool value);
void kube_json_put_null(kube_json_writer_t *json, const char *key);
/* Milliseconds as seconds with three digits; KUBE_NEVER: null. */
void kube_json_put_seconds(kube_json_writer_t *json, const char *key,
    uint64_t ms);
/* Unix ms as a string, "2026-01-01T00:00:00Z"; 0 and below: null. */
void kube_json_put_time(kube_json_writer_t *json, const char *key,
    int64_t unix_ms);


#endif /* KUBE_JSON_WRITER_H */

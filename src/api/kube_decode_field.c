/*
 * kube_decode_field - readers of single members, and of ports.
 *
 * Strict in kind: a member of another JSON type than the API's is never
 * converted.  A text is never cut.  For kube_decode*.c only.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>

#include "kube_decode_field.h"


/* 2^53: above it a double has no unit digits. */
#define KUBE_DECODE_INTEGER_MAX  9007199254740992.0


kube_rc_t
kube_decode_fail(kube_decode_t *d, const char *what)
{
    d->what = what;

    return KUBE_INVALID;
}


kube_rc_t
kube_decode_nomem(kube_decode_t *d)
{
    if (d->arena->full) {
        return kube_decode_fail(d, "too large as a tree");
    }

    d->what = "out of memory";

    return KUBE_NOMEM;
}


bool
kube_decode_is_absent(const cJSON *value)
{
    return value == NULL || cJSON_IsNull(value);
}


bool
kube_decode_is_printable(kube_str_t s, size_t max)
{
    size_t  i;

    if (s.len == 0 || s.len > max) {
        return false;
    }

    for (i = 0; i < s.len; i++) {
        if (s.data[i] <= ' ' || s.data[i] > '~') {
            return false;
        }
    }

    return true;
}


/* A text that only informs: empty unless it can be shown as it is. */
kube_str_t
kube_decode_text(const cJSON *object, const char *name)
{
    kube_str_t  s;

    s = kube_json_string(object, name);

    if (!kube_decode_is_printable(s, KUBE_STRING_LEN_MAX)) {
        return KUBE_STR_NULL;
    }

    return s;
}


/* An integer of low..high. */
bool
kube_decode_integer(const cJSON *value, int64_t low, int64_t high,
    int64_t *out)
{
    double  v;

    if (!cJSON_IsNumber(value)) {
        return false;
    }

    v = cJSON_GetNumberValue(value);

    /* written so that NaN is refused as well */
    if (!(v >= (double) low && v <= (double) high)
        || v < -KUBE_DECODE_INTEGER_MAX || v > KUBE_DECODE_INTEGER_MAX)
    {
        return false;
    }

    *out = (int64_t) v;

    return v - (double) *out == 0.0;
}


/* A condition: null and absent mean otherwise. */
bool
kube_decode_condition(const cJSON *object, const char *name, bool otherwise,
    bool *out)
{
    const cJSON  *value;

    value = kube_json_get(object, name);

    if (kube_decode_is_absent(value)) {
        *out = otherwise;
        return true;
    }

    *out = cJSON_IsTrue(value);

    return cJSON_IsBool(value);
}


/*
 * The member name of object as an array of at most max elements; *n is 0
 * where it is absent.  Else room for *n elements of size bytes is made.
 */
kube_rc_t
kube_decode_array(kube_decode_t *d, const cJSON *object, const char *name,
    size_t max, size_t size, const char *what, const cJSON **array, size_t *n,
    void **p)
{
    const cJSON  *child;

    *n = 0;
    *p = NULL;
    *array = kube_json_get(object, name);

    if (kube_decode_is_absent(*array)) {
        *array = NULL;
        return KUBE_OK;
    }

    if (!cJSON_IsArray(*array)) {
        return kube_decode_fail(d, what);
    }

    for (child = (*array)->child; child != NULL; child = child->next) {
        if (++(*n) > max) {
            return kube_decode_fail(d, what);
        }
    }

    if (*n == 0) {
        return KUBE_OK;
    }

    *p = kube_arena_alloc(d->arena, *n * size);

    return (*p != NULL) ? KUBE_OK : kube_decode_nomem(d);
}


static bool
decode_protocol(const cJSON *object, kube_protocol_t *protocol)
{
    unsigned      i;
    kube_str_t    text;
    const cJSON  *value;

    value = kube_json_get(object, "protocol");

    if (kube_decode_is_absent(value)) {
        *protocol = KUBE_PROTOCOL_TCP;
        return true;
    }

    text = kube_json_string(object, "protocol");

    for (i = KUBE_PROTOCOL_TCP; i <= KUBE_PROTOCOL_SCTP; i++) {
        *protocol = (kube_protocol_t) i;

        if (kube_str_eq(text, kube_str(kube_protocol_text(*protocol)))) {
            return true;
        }
    }

    return false;
}


/*
 * A port without a usable name is dropped and not taken for the unnamed
 * one: it would be joined with a port it does not belong to.
 */
static bool
decode_port(const cJSON *object, bool number_required, kube_port_t *port)
{
    int64_t       number;
    const cJSON  *value;

    memset(port, 0, sizeof(kube_port_t));

    if (!cJSON_IsObject(object) || !decode_protocol(object, &port->protocol))
    {
        return false;
    }

    value = kube_json_get(object, "name");

    if (!kube_decode_is_absent(value)) {
        if (!cJSON_IsString(value)) {
            return false;
        }

        port->name = kube_json_string(object, "name");

        if (port->name.len != 0 && !kube_name_is_label(port->name)) {
            return false;
        }
    }

    port->app_protocol = kube_decode_text(object, "appProtocol");

    value = kube_json_get(object, "port");

    if (kube_decode_is_absent(value)) {
        return !number_required;
    }

    if (!kube_decode_integer(value, 1, 65535, &number)) {
        return false;
    }

    port->port = (uint16_t) number;

    return true;
}


kube_rc_t
kube_decode_ports(kube_decode_t *d, const cJSON *object, bool service,
    kube_port_t **ports, size_t *ports_n)
{
    void         *p;
    size_t        n, max;
    kube_rc_t     rc;
    const cJSON  *array, *child;

    max = service ? KUBE_SERVICE_PORTS_MAX : KUBE_SLICE_PORTS_MAX;

    rc = kube_decode_array(d, object, "ports", max, sizeof(kube_port_t),
                      "ports is no array or has too many elements",
                      &array, &n, &p);
    if (rc != KUBE_OK || n == 0) {
        return rc;
    }

    *ports = p;

    for (child = array->child; child != NULL; child = child->next) {
        if (decode_port(child, service, *ports + *ports_n)) {
            (*ports_n)++;

        } else {
            d->dropped++;
        }
    }

    return KUBE_OK;
}

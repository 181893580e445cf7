/*
 * kube_key - parsing of keys, strict and in one pass over each part.
 *
 * It knows no Service and no policy.  No state; may be called from any
 * process.
 *
 * Source: DNS-1123 labels as in apimachinery/pkg/util/validation; what a
 * client may not say is refused, never mended.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <string.h>

#include "kube_key.h"
#include "kube_resource.h"


static kube_rc_t
key_invalid(kube_error_t *error, const char *what, size_t offset)
{
    if (error != NULL) {
        error->rc = KUBE_INVALID;
        error->what = what;
        error->offset = offset;
    }

    return KUBE_INVALID;
}


static kube_str_t
key_part(kube_str_t text, size_t start, size_t end)
{
    return (kube_str_t) { text.data + start, end - start };
}


/* Where c stands first from start on; the end where it does not. */
static size_t
key_find(kube_str_t text, size_t start, char c)
{
    const char  *p;

    p = (start < text.len)
        ? memchr(text.data + start, c, text.len - start) : NULL;

    return (p != NULL) ? (size_t) (p - text.data) : text.len;
}


static bool
key_is_digits(kube_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return false;
        }
    }

    return true;
}


static kube_rc_t
key_parse_port(kube_str_t s, size_t offset, kube_key_port_t *port,
    kube_error_t *error)
{
    uint64_t  number;

    if (s.len == 0) {
        return key_invalid(error, "empty port", offset);
    }

    if (key_is_digits(s)) {

        if (kube_str_to_u64(s, UINT16_MAX, &number) != KUBE_OK
            || number == 0)
        {
            return key_invalid(error, "port number not in 1..65535", offset);
        }

        port->number = (uint16_t) number;
        return KUBE_OK;
    }

    if (!kube_name_is_label(s)) {
        return key_invalid(error, "port is neither a number nor a name",
                           offset);
    }

    port->name = s;

    return KUBE_OK;
}


/* name.namespace[.svc[.anything]], up to end. */
static kube_rc_t
key_parse_dns(kube_str_t text, size_t end, kube_key_t *key,
    kube_error_t *error)
{
    size_t      ns, svc, rest;
    kube_str_t  host;

    host = key_part(text, 0, end);

    ns = key_find(host, 0, '.');

    if (ns == host.len) {
        return key_invalid(error, "no namespace", end);
    }

    svc = key_find(host, ns + 1, '.');

    key->name = key_part(host, 0, ns);
    key->ns = key_part(host, ns + 1, svc);

    if (svc == host.len) {
        return KUBE_OK;
    }

    rest = key_find(host, svc + 1, '.');

    if (!kube_str_eq(key_part(host, svc + 1, rest), KUBE_STR("svc"))) {
        return key_invalid(error, "\"svc\" expected after the namespace",
                           svc + 1);
    }

    if (rest != host.len
        && !kube_name_is_subdomain(key_part(host, rest + 1, host.len)))
    {
        return key_invalid(error, "invalid cluster domain", rest + 1);
    }

    return KUBE_OK;
}


kube_rc_t
kube_key_parse(kube_str_t text, bool allow_dns, kube_key_t *key,
    kube_error_t *error)
{
    size_t      slash, colon;
    kube_rc_t   rc;
    kube_key_t  parsed;

    memset(&parsed, 0, sizeof(kube_key_t));

    if (text.len == 0) {
        return key_invalid(error, "empty key", 0);
    }

    if (text.len > KUBE_KEY_INPUT_MAX) {
        return key_invalid(error, "key is too long", KUBE_KEY_INPUT_MAX);
    }

    slash = key_find(text, 0, '/');
    colon = key_find(text, 0, ':');

    if (slash < text.len) {

        if (colon < slash) {
            return key_invalid(error, "port before the name", colon);
        }

        parsed.ns = key_part(text, 0, slash);
        parsed.name = key_part(text, slash + 1, colon);

    } else if (allow_dns) {
        rc = key_parse_dns(text, colon, &parsed, error);
        if (rc != KUBE_OK) {
            return rc;
        }

    } else {
        return key_invalid(error, "\"namespace/name\" expected", 0);
    }

    if (!kube_name_is_label(parsed.ns)) {
        return key_invalid(error, "invalid namespace",
                           (size_t) (parsed.ns.data - text.data));
    }

    if (!kube_name_is_label(parsed.name)) {
        return key_invalid(error, "invalid service name",
                           (size_t) (parsed.name.data - text.data));
    }

    if (colon < text.len) {
        rc = key_parse_port(key_part(text, colon + 1, text.len), colon + 1,
                            &parsed.port, error);
        if (rc != KUBE_OK) {
            return rc;
        }
    }

    *key = parsed;

    return KUBE_OK;
}


static size_t
key_append(char *out, size_t len, kube_str_t s)
{
    if (s.len != 0) {
        memcpy(out + len, s.data, s.len);
    }

    return len + s.len;
}


size_t
kube_key_text(const kube_key_t *key, char out[KUBE_KEY_TEXT_MAX])
{
    size_t  len;

    if (key->ns.len > KUBE_NAMESPACE_LEN_MAX
        || key->name.len > 63
        || key->port.name.len > KUBE_PORT_NAME_LEN_MAX)
    {
        out[0] = '\0';
        return 0;
    }

    len = key_append(out, 0, key->ns);
    out[len++] = '/';
    len = key_append(out, len, key->name);

    if (key->port.name.len != 0 || key->port.exact) {
        out[len++] = ':';
        len = key_append(out, len, key->port.name);

    } else if (key->port.number != 0) {
        len += (size_t) snprintf(out + len, KUBE_KEY_TEXT_MAX - len, ":%u",
                                 (unsigned) key->port.number);
    }

    out[len] = '\0';

    return len;
}

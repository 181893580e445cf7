/*
 * kube_key - what names a Service: parsing of "namespace/name[:port]" and of
 * the DNS form, and the canonical text.
 *
 * Keys come from clients (Host headers through maps): any bytes are accepted
 * and judged.  It decides syntax only; which namespaces may be named is
 * kube_policy's.  No state; may be called from any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_KEY_H
#define KUBE_KEY_H


#include "kube_base.h"
#include "kube_limits.h"


/* A longer text is refused unread. */
#define KUBE_KEY_INPUT_MAX  (KUBE_KEY_LEN_MAX + 17)

/* Canonical text and NUL: Service names are labels. */
#define KUBE_KEY_TEXT_MAX                                                     \
    (KUBE_NAMESPACE_LEN_MAX + 1 + 63 + 1 + KUBE_PORT_NAME_LEN_MAX + 1)


/* A port of the Service (never the endpoints'): by name, number, or none. */
typedef struct {
    kube_str_t  name;      /* len 0: not by name, unless exact */
    uint16_t    number;    /* 0: not by number */
    bool        exact;     /* the port of this name, "" being the unnamed
                              one; parse never sets it */
} kube_key_port_t;

typedef struct {
    kube_str_t       ns;      /* DNS-1123 label */
    kube_str_t       name;    /* DNS-1123 label */
    kube_key_port_t  port;
} kube_key_t;

/*
 * namespace/name[:port]; with allow_dns, where the text has no '/', also
 * name.namespace[.svc[.anything]][:port].  Lower case only; a port of digits
 * is a number, 1..65535 without leading zeros; else a DNS-1123 label.
 *
 * KUBE_OK, and key's strings are views into text; or KUBE_INVALID with
 * *error (NULL: not wanted) and *key untouched.
 */
kube_rc_t kube_key_parse(kube_str_t text, bool allow_dns, kube_key_t *key,
    kube_error_t *error)  KUBE_MUST_CHECK;

/*
 * "namespace/name[:port]" and NUL; returns the length.  Of a key as parse gave
 * it: parsing the result gives the same key and the same text.  The unnamed
 * port of an exact key is written "namespace/name:".
 */
size_t kube_key_text(const kube_key_t *key, char out[KUBE_KEY_TEXT_MAX]);


#endif /* KUBE_KEY_H */

/*
 * kube_url - takes the address of an API server apart.
 *
 * Not a general URL parser: it knows https://host[:port][/prefix], http:// for
 * the machine itself, and http://unix:/path.sock; all else is refused, so
 * that libcurl never sees a form the two could read differently.  For
 * kube_config and the transport.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_URL_PRIVATE_H
#define KUBE_URL_PRIVATE_H


#include "kube_object.h"


/* All strings point into the text that was parsed. */
typedef struct {
    bool        tls;
    bool        literal;     /* the host is an address: no DNS */
    kube_str_t  host;        /* without brackets; empty for a unix socket */
    kube_str_t  authority;   /* host[:port] as written */
    uint16_t    port;        /* 443 and 80 where it is left out */
    kube_str_t  prefix;      /* "" or "/…" without the last slash */
    kube_str_t  path;        /* of a unix socket, else empty */
} kube_url_t;

/* KUBE_OK, KUBE_TOO_LARGE or KUBE_INVALID; *what gets a static text. */
kube_rc_t kube_url_parse(kube_str_t text, kube_url_t *url, const char **what)
    KUBE_MUST_CHECK;

/* Letters, digits, "-", "_" and dots; 1..253; what TLS and DNS can mean. */
bool kube_url_is_host(kube_str_t host);


#endif /* KUBE_URL_PRIVATE_H */

/*
 * kube_url - takes the address of an API server apart.
 *
 * Not a general URL parser.  It allocates nothing; anyone in src/client may
 * call it.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <string.h>
#include <strings.h>

#include "kube_url_private.h"


/* sockaddr_un.sun_path with its NUL */
#define KUBE_URL_SOCKET_LEN_MAX  107


static bool
url_starts_with(kube_str_t text, const char *prefix)
{
    size_t  len;

    len = strlen(prefix);

    return text.len >= len && strncasecmp(text.data, prefix, len) == 0;
}


static kube_str_t
url_after(kube_str_t text, size_t n)
{
    text.data += n;
    text.len -= n;

    return text;
}


static bool
url_is_host_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}


bool
kube_url_is_host(kube_str_t host)
{
    size_t  i;

    if (host.len == 0 || host.len > KUBE_NAME_LEN_MAX || host.data[0] == '.'
        || host.data[0] == '-')
    {
        return false;
    }

    for (i = 0; i < host.len; i++) {
        if (!url_is_host_byte(host.data[i])
            || (i != 0 && host.data[i] == '.' && host.data[i - 1] == '.'))
        {
            return false;
        }
    }

    return true;
}


/*
 * "127.1", "0x7f.1" and "2130706433" are addresses to some and names to
 * others: whatever ends in a number must be a plain IPv4 address.
 */
static bool
url_is_numeric(kube_str_t host)
{
    size_t  i;

    i = host.len;

    while (i != 0 && host.data[i - 1] != '.') {
        i--;
    }

    return i == host.len || (host.data[i] >= '0' && host.data[i] <= '9');
}


static bool
url_is_loopback(kube_str_t host)
{
    kube_addr_t           addr;
    static const uint8_t  one[16] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
    };

    if (kube_addr_parse(host, &addr) != KUBE_OK) {
        return host.len == 9 && strncasecmp(host.data, "localhost", 9) == 0;
    }

    if (addr.family == KUBE_FAMILY_IPV4) {
        return addr.bytes[0] == 127;
    }

    return memcmp(addr.bytes, one, 16) == 0;
}


static kube_rc_t
url_parse_host(kube_str_t host, bool bracketed, kube_url_t *url,
    const char **what)
{
    kube_addr_t  addr;

    url->host = host;
    url->literal = (kube_addr_parse(host, &addr) == KUBE_OK);

    if (bracketed) {
        if (!url->literal || addr.family != KUBE_FAMILY_IPV6) {
            *what = "what is in brackets is not an IPv6 address";
            return KUBE_INVALID;
        }

        return KUBE_OK;
    }

    if (url->literal && addr.family == KUBE_FAMILY_IPV6) {
        *what = "an IPv6 address is written in brackets";
        return KUBE_INVALID;
    }

    if (!url->literal && (!kube_url_is_host(host) || url_is_numeric(host))) {
        *what = "the host is neither a name nor an address";
        return KUBE_INVALID;
    }

    return KUBE_OK;
}


static kube_rc_t
url_parse_authority(kube_str_t text, kube_url_t *url, const char **what)
{
    bool         bracketed;
    uint64_t     port;
    kube_str_t   host, rest;
    const char  *end;

    url->authority = text;
    bracketed = (text.len != 0 && text.data[0] == '[');

    if (bracketed) {
        end = memchr(text.data, ']', text.len);
        if (end == NULL) {
            *what = "the bracket of the address is not closed";
            return KUBE_INVALID;
        }

        host.data = text.data + 1;
        host.len = (size_t) (end - host.data);
        rest = url_after(text, host.len + 2);

    } else {
        end = text.len ? memchr(text.data, ':', text.len) : NULL;
        host.data = text.data;
        host.len = end ? (size_t) (end - text.data) : text.len;
        rest = url_after(text, host.len);
    }

    url->port = url->tls ? 443 : 80;

    if (rest.len != 0) {
        if (rest.data[0] != ':'
            || kube_str_to_u64(url_after(rest, 1), 65535, &port) != KUBE_OK
            || port == 0)
        {
            *what = "the port is not a number from 1 to 65535";
            return KUBE_INVALID;
        }

        url->port = (uint16_t) port;
    }

    return url_parse_host(host, bracketed, url, what);
}


static kube_rc_t
url_parse_prefix(kube_str_t text, kube_url_t *url, const char **what)
{
    char    c;
    size_t  i;

    while (text.len != 0 && text.data[text.len - 1] == '/') {
        text.len--;
    }

    for (i = 0; i < text.len; i++) {
        c = text.data[i];

        if (!url_is_host_byte(c) && (c == '\0' || strchr("/~:+,;=", c) == NULL))
        {
            *what = "the path holds a byte that is not allowed there";
            return KUBE_INVALID;
        }

        if (c == '.' && text.data[i - 1] == '/') {
            *what = "no part of the path begins with a dot";
            return KUBE_INVALID;
        }
    }

    url->prefix = text;

    return KUBE_OK;
}


static kube_rc_t
url_parse_socket(kube_str_t path, kube_url_t *url, const char **what)
{
    size_t  i;

    if (path.len < 2 || path.data[0] != '/'
        || path.len > KUBE_URL_SOCKET_LEN_MAX)
    {
        *what = "a unix socket is written http://unix:/path, 107 bytes at most";
        return KUBE_INVALID;
    }

    for (i = 0; i < path.len; i++) {
        if (path.data[i] <= 0x20 || path.data[i] >= 0x7f) {
            *what = "the path of the socket holds a byte that is not allowed";
            return KUBE_INVALID;
        }
    }

    url->path = path;
    url->authority = KUBE_STR("localhost");
    url->port = 80;

    return KUBE_OK;
}


kube_rc_t
kube_url_parse(kube_str_t text, kube_url_t *url, const char **what)
{
    size_t      n;
    kube_rc_t   rc;
    kube_str_t  rest;

    memset(url, 0, sizeof(kube_url_t));

    if (text.len > KUBE_URL_LEN_MAX / 2) {
        *what = "the URL is too long";
        return KUBE_TOO_LARGE;
    }

    if (url_starts_with(text, "http://unix:")) {
        return url_parse_socket(url_after(text, 12), url, what);
    }

    if (url_starts_with(text, "https://")) {
        url->tls = true;
        rest = url_after(text, 8);

    } else if (url_starts_with(text, "http://")) {
        rest = url_after(text, 7);

    } else {
        *what = "a URL begins with https:// (or http://, loopback only)";
        return KUBE_INVALID;
    }

    for (n = 0; n < rest.len && rest.data[n] != '/'; n++) {
        if (rest.data[n] == '@') {
            *what = "user and password do not belong in the URL";
            return KUBE_INVALID;
        }

        if (rest.data[n] == '?' || rest.data[n] == '#') {
            *what = "no query and no fragment in the URL";
            return KUBE_INVALID;
        }
    }

    rc = url_parse_authority((kube_str_t) { rest.data, n }, url, what);
    if (rc != KUBE_OK) {
        return rc;
    }

    if (!url->tls && !url_is_loopback(url->host)) {
        *what = "http:// would send the token in clear: use https://, http:// "
                "is for loopback addresses and unix sockets";
        return KUBE_INVALID;
    }

    return url_parse_prefix(url_after(rest, n), url, what);
}

/*
 * test_select - from a Service and its slices to endpoints, and why not.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "alloc_test.h"
#include "kube_hash.h"
#include "kube_select.h"


#define PORTS_MAX      4
#define SLICES_MAX     6
#define ENDPOINTS_MAX  40

/* A snapshot with room of its own. */
typedef struct {
    kube_snapshot_t   snapshot;
    kube_port_t       ports[PORTS_MAX];
    kube_slice_t      slices[SLICES_MAX];
    kube_port_t       slice_ports[SLICES_MAX][PORTS_MAX];
    kube_endpoint_t   endpoints[SLICES_MAX][ENDPOINTS_MAX];
    char              names[SLICES_MAX][8];
} world_t;

static const kube_key_port_t  no_port = { { NULL, 0 }, 0, false };


static void
world_init(world_t *w)
{
    memset(w, 0, sizeof(world_t));

    w->snapshot.service.meta.ns = KUBE_STR("shop");
    w->snapshot.service.meta.name = KUBE_STR("web");
    w->snapshot.service.ports = w->ports;
    w->snapshot.slices = w->slices;
}


static kube_port_t
port_of(const char *name, uint16_t number, kube_protocol_t protocol)
{
    kube_port_t  port;

    memset(&port, 0, sizeof(kube_port_t));
    port.name = kube_str(name);
    port.port = number;
    port.protocol = protocol;

    return port;
}


static void
world_port(world_t *w, const char *name, uint16_t number,
    kube_protocol_t protocol)
{
    w->ports[w->snapshot.service.ports_n++] = port_of(name, number, protocol);
}


static size_t
world_slice(world_t *w, kube_family_t family)
{
    size_t         i;
    kube_slice_t  *slice;

    i = w->snapshot.slices_n++;
    slice = &w->slices[i];

    w->names[i][0] = 's';
    w->names[i][1] = (char) ('a' + i);
    slice->meta.ns = KUBE_STR("shop");
    slice->meta.name = (kube_str_t) { w->names[i], 2 };
    slice->service = KUBE_STR("web");
    slice->family = family;
    slice->ports = w->slice_ports[i];
    slice->endpoints = w->endpoints[i];

    return i;
}


static void
slice_port(world_t *w, size_t i, const char *name, uint16_t number,
    kube_protocol_t protocol)
{
    w->slice_ports[i][w->slices[i].ports_n++] = port_of(name, number,
                                                        protocol);
}


/* flags: r ready, s serving, t terminating */
static kube_endpoint_t *
slice_endpoint(world_t *w, size_t i, const char *address, const char *flags)
{
    kube_endpoint_t  *e;

    e = &w->endpoints[i][w->slices[i].endpoints_n++];

    assert_int_equal(kube_addr_parse(kube_str(address), &e->address),
                     KUBE_OK);
    e->ready = strchr(flags, 'r') != NULL;
    e->serving = strchr(flags, 's') != NULL;
    e->terminating = strchr(flags, 't') != NULL;

    return e;
}


/* One port, one slice with it. */
static void
world_simple(world_t *w)
{
    world_init(w);
    world_port(w, "http", 80, KUBE_PROTOCOL_TCP);
    (void) world_slice(w, KUBE_FAMILY_IPV4);
    slice_port(w, 0, "http", 8080, KUBE_PROTOCOL_TCP);
}


/* "address:port ..." of what is chosen, or the error. */
static const char *
chosen(const world_t *w, const kube_key_port_t *port,
    const kube_select_options_t *options)
{
    size_t                  i, len;
    alloc_test_t            at;
    kube_arena_t            arena;
    kube_selection_t        selection;
    kube_select_options_t   none;
    char                    addr[KUBE_ADDR_TEXT_MAX];

    static char  text[4096];

    memset(&none, 0, sizeof(kube_select_options_t));
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1 << 20);

    assert_int_equal(kube_select(&arena, &w->snapshot,
                                 port != NULL ? port : &no_port,
                                 options != NULL ? options : &none, 0,
                                 &selection), KUBE_OK);

    assert_true((selection.n == 0) == (selection.error != KUBE_RESOLVE_OK));
    len = 0;
    text[0] = '\0';

    for (i = 0; i < selection.n; i++) {
        kube_addr_text(&selection.endpoints[i].addr, addr);
        len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%s:%u%s",
                                 i != 0 ? " " : "", addr,
                                 selection.endpoints[i].port,
                                 selection.endpoints[i].state
                                 == KUBE_ENDPOINT_READY ? "" : "(t)");
    }

    if (selection.n == 0) {
        snprintf(text, sizeof(text), "%.*s",
                 (int) kube_resolve_error_text(selection.error).len,
                 kube_resolve_error_text(selection.error).data);
    }

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);

    return text;
}


/* "reason,reason ..." per endpoint; "-": used.  port NULL: any. */
static const char *
explained(const world_t *w, const kube_key_port_t *port,
    const kube_select_options_t *options)
{
    size_t                  i, len;
    unsigned                flags;
    alloc_test_t            at;
    kube_arena_t            arena;
    kube_explained_t       *row;
    kube_selection_t        selection;
    kube_select_options_t   none;

    static char  text[4096];

    memset(&none, 0, sizeof(kube_select_options_t));
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1 << 20);

    flags = KUBE_SELECT_EXPLAIN | (port == NULL ? KUBE_SELECT_ANY_PORT : 0);

    assert_int_equal(kube_select(&arena, &w->snapshot, port,
                                 options != NULL ? options : &none, flags,
                                 &selection), KUBE_OK);
    len = 0;
    text[0] = '\0';

    for (i = 0; i < selection.rows_n; i++) {
        row = &selection.rows[i];
        len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%s",
                                 i != 0 ? "," : "",
                                 row->excluded_because != NULL
                                 ? row->excluded_because : "-");

        /* the rule is told wherever the policy is the reason */
        assert_true((row->denied_because != NULL)
                    == (row->excluded_because != NULL
                        && strcmp(row->excluded_because, "address denied")
                           == 0));
    }

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);

    return text;
}


static kube_key_port_t
by_name(const char *name)
{
    return (kube_key_port_t) { kube_str(name), 0, false };
}


static kube_key_port_t
by_number(uint16_t number)
{
    return (kube_key_port_t) { { NULL, 0 }, number, false };
}


static void
test_select_texts(void **state)
{
    (void) state;

#define TEXT(e, s)                                                            \
    assert_true(kube_str_eq(kube_resolve_error_text(KUBE_RESOLVE_##e),        \
                            KUBE_STR(s)))
    TEXT(OK, "");
    TEXT(NO_KEY, "no_key");
    TEXT(BAD_KEY, "bad_key");
    TEXT(NAMESPACE_DENIED, "namespace_denied");
    TEXT(NO_SERVICE, "no_service");
    TEXT(NO_PORT, "no_port");
    TEXT(PORT_NEEDED, "port_needed");
    TEXT(NO_ENDPOINTS, "no_endpoints");
    TEXT(NO_READY_ENDPOINT, "no_ready_endpoint");
    TEXT(NO_FAMILY, "no_family");
    TEXT(ADDRESS_DENIED, "address_denied");
    TEXT(EXTERNAL_NAME, "external_name");
    TEXT(TOO_LARGE, "too_large");
    TEXT(NOT_SYNCED, "not_synced");
    TEXT(FORBIDDEN, "forbidden");
#undef TEXT

    assert_true(kube_str_eq(
        kube_resolve_error_text((kube_resolve_error_t) 99), KUBE_STR("")));
    assert_true(kube_str_eq(kube_endpoint_state_text(KUBE_ENDPOINT_READY),
                            KUBE_STR("ready")));
    assert_true(kube_str_eq(
        kube_endpoint_state_text(KUBE_ENDPOINT_TERMINATING),
        KUBE_STR("terminating")));
}


static void
test_select_states(void **state)
{
    world_t                w;
    kube_select_options_t  options;

    (void) state;

    world_simple(&w);
    assert_string_equal(chosen(&w, NULL, NULL), "no_endpoints");

    slice_endpoint(&w, 0, "10.0.0.5", "st");
    slice_endpoint(&w, 0, "10.0.0.4", "t");
    slice_endpoint(&w, 0, "10.0.0.3", "");
    slice_endpoint(&w, 0, "10.0.0.2", "s");
    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.5:8080(t)");
    assert_string_equal(explained(&w, &no_port, NULL),
                        "-,terminating,not ready,not ready");

    memset(&options, 0, sizeof(kube_select_options_t));
    options.terminating_never = true;
    assert_string_equal(chosen(&w, NULL, &options), "no_ready_endpoint");
    assert_string_equal(explained(&w, &no_port, &options),
                        "terminating,terminating,not ready,not ready");

    slice_endpoint(&w, 0, "10.0.0.9", "rs");
    slice_endpoint(&w, 0, "10.0.0.1", "rs");
    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8080 10.0.0.9:8080");
    assert_string_equal(explained(&w, &no_port, NULL),
                        "terminating,terminating,not ready,not ready,-,-");

    /* publishNotReadyAddresses: ready says so, whatever else does */
    slice_endpoint(&w, 0, "10.0.0.8", "rt");
    assert_string_equal(chosen(&w, NULL, NULL),
                        "10.0.0.1:8080 10.0.0.8:8080 10.0.0.9:8080");
}


static void
test_select_ports(void **state)
{
    world_t          w;
    kube_key_port_t  port;

    (void) state;

    world_init(&w);
    world_port(&w, "http", 80, KUBE_PROTOCOL_TCP);
    world_port(&w, "admin", 9000, KUBE_PROTOCOL_TCP);
    world_port(&w, "dns", 53, KUBE_PROTOCOL_UDP);
    (void) world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, 0, "admin", 80, KUBE_PROTOCOL_TCP);
    slice_port(&w, 0, "http", 9000, KUBE_PROTOCOL_TCP);
    slice_port(&w, 0, "dns", 53, KUBE_PROTOCOL_UDP);
    slice_endpoint(&w, 0, "10.0.0.1", "rs");

    /* joined by name, though the numbers would cross */
    port = by_number(80);
    assert_string_equal(chosen(&w, &port, NULL), "10.0.0.1:9000");
    port = by_name("http");
    assert_string_equal(chosen(&w, &port, NULL), "10.0.0.1:9000");
    port = by_name("admin");
    assert_string_equal(chosen(&w, &port, NULL), "10.0.0.1:80");

    assert_string_equal(chosen(&w, NULL, NULL), "port_needed");
    port = by_name("nope");
    assert_string_equal(chosen(&w, &port, NULL), "no_port");
    assert_string_equal(explained(&w, &port, NULL), "no such port");
    port = by_number(8080);
    assert_string_equal(chosen(&w, &port, NULL), "no_port");
    port = by_name("dns");
    assert_string_equal(chosen(&w, &port, NULL), "no_port");
    port = by_number(53);
    assert_string_equal(chosen(&w, &port, NULL), "no_port");

    /* a number that TCP and UDP share is the TCP one */
    world_port(&w, "dns-tcp", 53, KUBE_PROTOCOL_TCP);
    slice_port(&w, 0, "dns-tcp", 5353, KUBE_PROTOCOL_TCP);
    assert_string_equal(chosen(&w, &port, NULL), "10.0.0.1:5353");

    assert_string_equal(explained(&w, NULL, NULL), "-");
}


/* The slices of one Service need not have the same ports. */
static void
test_select_named_target(void **state)
{
    world_t  w;
    size_t   i;

    (void) state;

    world_simple(&w);
    slice_endpoint(&w, 0, "10.0.0.2", "rs");

    i = world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, i, "http", 8081, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, i, "10.0.0.1", "rs");

    /* scaled to nothing: a slice without ports */
    i = world_slice(&w, KUBE_FAMILY_IPV4);
    slice_endpoint(&w, i, "10.0.0.3", "rs");

    /* "all ports": nothing to connect to */
    i = world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, i, "http", 0, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, i, "10.0.0.4", "rs");

    /* same name, other protocol */
    i = world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_UDP);
    slice_endpoint(&w, i, "10.0.0.5", "rs");

    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8081 10.0.0.2:8080");
    assert_string_equal(explained(&w, &no_port, NULL),
                        "-,-,no such port,no port number,no such port");
    assert_string_equal(explained(&w, NULL, NULL),
                        "-,-,no such port,no port number,no such port");
}


/* The port of the first row, where any is meant. */
static unsigned
any_port(const world_t *w)
{
    unsigned               port;
    alloc_test_t           at;
    kube_arena_t           arena;
    kube_selection_t       selection;
    kube_select_options_t  none;

    memset(&none, 0, sizeof(kube_select_options_t));
    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 4 << 20);
    assert_int_equal(kube_select(&arena, &w->snapshot, &no_port, &none,
                                 KUBE_SELECT_EXPLAIN | KUBE_SELECT_ANY_PORT,
                                 &selection), KUBE_OK);
    assert_int_equal(selection.rows_n, 1);
    port = selection.rows[0].port;
    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);

    return port;
}


/*
 * Any port: the Service's first that the slice has with a number, whatever the
 * order of the slice.  Whoever may write both may give them thousands each.
 */
static void
test_select_any_port(void **state)
{
    size_t        i, n;
    clock_t       begin;
    world_t       w;
    kube_port_t  *ports;
    char        (*names)[8];

    (void) state;

    world_init(&w);
    world_port(&w, "b", 80, KUBE_PROTOCOL_UDP);
    world_port(&w, "c", 81, KUBE_PROTOCOL_TCP);
    world_port(&w, "a", 82, KUBE_PROTOCOL_TCP);
    world_port(&w, "b", 83, KUBE_PROTOCOL_TCP);
    (void) world_slice(&w, KUBE_FAMILY_IPV4);
    slice_endpoint(&w, 0, "10.0.0.1", "rs");
    slice_port(&w, 0, "b", 1, KUBE_PROTOCOL_TCP);
    assert_int_equal(any_port(&w), 1);
    slice_port(&w, 0, "a", 2, KUBE_PROTOCOL_TCP);
    assert_int_equal(any_port(&w), 2);
    slice_port(&w, 0, "c", 0, KUBE_PROTOCOL_TCP);
    assert_int_equal(any_port(&w), 2);
    w.slice_ports[0][2].port = 3;
    assert_int_equal(any_port(&w), 3);
    w.slice_ports[0][0] = w.slice_ports[0][2];
    w.slices[0].ports_n = 1;
    w.slice_ports[0][0].port = 0;
    assert_string_equal(explained(&w, NULL, NULL), "no port number");
    w.slice_ports[0][0].name = KUBE_STR("d");
    assert_string_equal(explained(&w, NULL, NULL), "no such port");

    n = 2 * KUBE_SLICE_PORTS_MAX;
    ports = calloc(n, sizeof(kube_port_t));
    names = calloc(n, 8);
    assert_true(ports != NULL && names != NULL);

    for (i = 0; i < n; i++) {
        (void) snprintf(names[i], 8, "p%06zu", i);
        ports[i] = port_of(names[i], 80, KUBE_PROTOCOL_TCP);
    }

    w.snapshot.service.ports = ports;
    w.snapshot.service.ports_n = n / 2;
    w.slices[0].ports = ports + n / 2;
    w.slices[0].ports_n = n / 2;

    begin = clock();
    assert_int_equal(any_port(&w), 0);
    assert_true(clock() - begin < CLOCKS_PER_SEC / 2);

    free(ports);
    free(names);
}


static void
test_select_unnamed(void **state)
{
    world_t          w;
    kube_key_port_t  port;

    (void) state;

    world_init(&w);
    world_port(&w, "", 80, KUBE_PROTOCOL_TCP);
    (void) world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, 0, "", 8080, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, 0, "10.0.0.1", "rs");

    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8080");
    port = by_number(80);
    assert_string_equal(chosen(&w, &port, NULL), "10.0.0.1:8080");

    /* without ports at all (headless): there is nothing to join */
    w.snapshot.service.ports_n = 0;
    assert_string_equal(chosen(&w, NULL, NULL), "no_port");
    assert_string_equal(chosen(&w, &port, NULL), "no_port");
}


static void
test_select_families(void **state)
{
    world_t                w;
    size_t                 i;
    kube_select_options_t  options;

    (void) state;

    world_simple(&w);
    slice_endpoint(&w, 0, "10.0.0.1", "rs");
    i = world_slice(&w, KUBE_FAMILY_IPV6);
    slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, i, "fd00::2", "rs");
    slice_endpoint(&w, i, "fd00::1", "rs");

    /* FQDN slices, and addresses of another family than their slice */
    i = world_slice(&w, KUBE_FAMILY_NONE);
    slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, i, "10.0.0.66", "rs");
    i = world_slice(&w, KUBE_FAMILY_IPV6);
    slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, i, "10.0.0.67", "rs");

    assert_string_equal(chosen(&w, NULL, NULL),
                        "10.0.0.1:8080 fd00::1:8080 fd00::2:8080");

    memset(&options, 0, sizeof(kube_select_options_t));
    options.family = KUBE_SELECT_FAMILY_IPV4;
    assert_string_equal(chosen(&w, NULL, &options), "10.0.0.1:8080");
    assert_string_equal(explained(&w, &no_port, &options),
                        "-,wrong family,wrong family,wrong family,"
                        "wrong family");
    options.family = KUBE_SELECT_FAMILY_IPV6;
    assert_string_equal(chosen(&w, NULL, &options),
                        "fd00::1:8080 fd00::2:8080");

    /* none of the family asked for, and none of any */
    world_simple(&w);
    slice_endpoint(&w, 0, "10.0.0.1", "rs");
    assert_string_equal(chosen(&w, NULL, &options), "no_family");
    w.slices[0].family = KUBE_FAMILY_NONE;
    assert_string_equal(chosen(&w, NULL, NULL), "no_family");
}


static void
test_select_own_family(void **state)
{
    world_t                w;
    size_t                 i;
    kube_select_options_t  options;

    (void) state;

    world_simple(&w);
    w.snapshot.service.family = KUBE_FAMILY_IPV6;
    slice_endpoint(&w, 0, "10.0.0.1", "rs");
    slice_endpoint(&w, 0, "10.0.0.2", "st");
    i = world_slice(&w, KUBE_FAMILY_IPV6);
    slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_TCP);
    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8080");

    slice_endpoint(&w, i, "fd00::1", "");
    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8080");
    assert_string_equal(explained(&w, &no_port, NULL),
                        "-,terminating,not ready");

    /* denied is not usable either */
    slice_endpoint(&w, i, "fe80::1", "rs");
    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8080");

    slice_endpoint(&w, i, "fd00::2", "st");
    assert_string_equal(chosen(&w, NULL, NULL), "fd00::2:8080(t)");
    assert_string_equal(explained(&w, &no_port, NULL),
                        "wrong family,terminating,not ready,address denied,"
                        "-");

    slice_endpoint(&w, i, "fd00::3", "rs");
    assert_string_equal(chosen(&w, NULL, NULL), "fd00::3:8080");
    assert_string_equal(explained(&w, &no_port, NULL),
                        "wrong family,terminating,not ready,address denied,"
                        "terminating,-");

    memset(&options, 0, sizeof(kube_select_options_t));
    options.family = KUBE_SELECT_FAMILY_ANY;
    assert_string_equal(chosen(&w, NULL, &options),
                        "10.0.0.1:8080 fd00::3:8080");
}


/* While a slice is split, an endpoint is in two: the ready state wins. */
static void
test_select_duplicates(void **state)
{
    world_t  w;
    size_t   i;

    (void) state;

    world_simple(&w);
    slice_endpoint(&w, 0, "10.0.0.1", "st");
    slice_endpoint(&w, 0, "10.0.0.2", "rs");
    slice_endpoint(&w, 0, "10.0.0.2", "rs");
    i = world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, i, "10.0.0.1", "rs");

    /* another port is another endpoint */
    i = world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, i, "http", 8081, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, i, "10.0.0.1", "rs");

    assert_string_equal(chosen(&w, NULL, NULL),
                        "10.0.0.1:8080 10.0.0.1:8081 10.0.0.2:8080");
    assert_string_equal(explained(&w, &no_port, NULL),
                        "terminating,-,duplicate,-,-");

    /* terminating in both */
    world_simple(&w);
    slice_endpoint(&w, 0, "10.0.0.1", "st");
    i = world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_TCP);
    slice_endpoint(&w, i, "10.0.0.1", "st");
    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8080(t)");
}


static void
test_select_policy(void **state)
{
    world_t                w;
    kube_cidr_t            deny;
    kube_listen_t          listen;
    kube_policy_t          policy;
    kube_select_options_t  options;

    (void) state;

    world_simple(&w);
    slice_endpoint(&w, 0, "127.0.0.1", "rs");
    slice_endpoint(&w, 0, "169.254.169.254", "rs");
    assert_string_equal(chosen(&w, NULL, NULL), "address_denied");

    slice_endpoint(&w, 0, "10.0.0.1", "rs");
    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8080");
    assert_string_equal(explained(&w, &no_port, NULL),
                        "address denied,address denied,-");

    memset(&policy, 0, sizeof(kube_policy_t));
    memset(&options, 0, sizeof(kube_select_options_t));
    assert_int_equal(kube_cidr_parse(KUBE_STR("10.0.0.0/8"), &deny, NULL),
                     KUBE_OK);
    policy.deny = &deny;
    policy.deny_n = 1;
    options.policy = &policy;
    assert_string_equal(chosen(&w, NULL, &options), "address_denied");

    /* a request to the gateway itself would come back for ever */
    memset(&policy, 0, sizeof(kube_policy_t));
    assert_int_equal(kube_addr_parse(KUBE_STR("10.0.0.1"), &listen.addr),
                     KUBE_OK);
    listen.port = 8081;
    policy.listen = &listen;
    policy.listen_n = 1;
    assert_string_equal(chosen(&w, NULL, &options), "10.0.0.1:8080");
    listen.port = 8080;
    assert_string_equal(chosen(&w, NULL, &options), "address_denied");

    /* one that could not be used anyway was not denied */
    world_simple(&w);
    slice_endpoint(&w, 0, "127.0.0.1", "");
    assert_string_equal(chosen(&w, NULL, NULL), "no_ready_endpoint");

    /* ready but denied does not hide one that goes and may be used */
    slice_endpoint(&w, 0, "127.0.0.2", "rs");
    slice_endpoint(&w, 0, "10.0.0.1", "st");
    assert_string_equal(chosen(&w, NULL, NULL), "10.0.0.1:8080(t)");
}


static void
test_select_external(void **state)
{
    world_t  w;

    (void) state;

    world_simple(&w);
    slice_endpoint(&w, 0, "10.0.0.1", "rs");
    w.snapshot.service.type = KUBE_SERVICE_EXTERNAL_NAME;

    assert_string_equal(chosen(&w, NULL, NULL), "external_name");
    assert_string_equal(explained(&w, NULL, NULL), "external name");
    assert_string_equal(explained(&w, &no_port, NULL), "external name");
}


static void
test_select_strings(void **state)
{
    world_t                 w;
    alloc_test_t            at;
    kube_arena_t            arena;
    kube_endpoint_t        *e;
    kube_selection_t        selection;
    kube_select_options_t   options;

    (void) state;

    world_simple(&w);
    (void) world_slice(&w, KUBE_FAMILY_IPV4);
    slice_port(&w, 1, "http", 8080, KUBE_PROTOCOL_TCP);
    e = slice_endpoint(&w, 1, "10.0.0.1", "rs");
    e->pod = KUBE_STR("web-1");
    e->node = KUBE_STR("node-1");
    e->zone = KUBE_STR("zone-b");

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1 << 20);
    memset(&options, 0, sizeof(kube_select_options_t));

    assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options, 0,
                                 &selection), KUBE_OK);
    assert_int_equal(selection.n, 1);
    assert_ptr_equal(selection.port, &w.ports[0]);
    assert_int_equal(selection.endpoints[0].slice, 1);
    assert_true(kube_str_eq(selection.endpoints[0].pod, KUBE_STR("web-1")));
    assert_true(kube_str_eq(selection.endpoints[0].node, KUBE_STR("node-1")));
    assert_true(kube_str_eq(selection.endpoints[0].zone, KUBE_STR("zone-b")));

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


/* reused: the address of a terminating endpoint may be another's, too. */
static void
world_random(world_t *w, kube_random_t *random, bool dual, bool reused)
{
    bool    six;
    char    address[32], flags[4];
    size_t  i, j, n, slices, base;

    world_init(w);
    world_port(w, "http", 80, KUBE_PROTOCOL_TCP);
    slices = kube_random_range(random, 0, SLICES_MAX);

    for (i = 0; i < slices; i++) {
        six = dual && kube_random_range(random, 0, 1);
        (void) world_slice(w, six ? KUBE_FAMILY_IPV6 : KUBE_FAMILY_IPV4);
        slice_port(w, i, "http",
                   (uint16_t) (8080 + kube_random_range(random, 0, 1)),
                   KUBE_PROTOCOL_TCP);
        n = kube_random_range(random, 0, ENDPOINTS_MAX);

        for (j = 0; j < n; j++) {
            snprintf(flags, sizeof(flags), "%s",
                     (const char *[]) { "rs", "st", "", "t", "s", "rst" }
                     [kube_random_range(random, 0, 5)]);
            base = (!reused && strchr(flags, 't') != NULL) ? 40 : 0;
            snprintf(address, sizeof(address), "%s%u",
                     six ? "fd00::" : "10.0.0.",
                     (unsigned) (base + kube_random_range(random, 1, 40)));
            slice_endpoint(w, i, address, flags);
        }
    }
}


static void
world_reverse(world_t *w)
{
    size_t           i, j, n;
    kube_slice_t     slice;
    kube_endpoint_t  e;

    n = w->snapshot.slices_n;

    for (i = 0; i < n; i++) {
        for (j = 0; j < w->slices[i].endpoints_n / 2; j++) {
            e = w->endpoints[i][j];
            w->endpoints[i][j] =
                w->endpoints[i][w->slices[i].endpoints_n - 1 - j];
            w->endpoints[i][w->slices[i].endpoints_n - 1 - j] = e;
        }
    }

    for (i = 0; i < n / 2; i++) {
        slice = w->slices[i];
        w->slices[i] = w->slices[n - 1 - i];
        w->slices[n - 1 - i] = slice;
    }
}


/*
 * An address that the pod network gave to a new Pod while the old one's object
 * was still there is the new one's: kube-proxy's rule, in whatever order.
 */
static void
test_select_reused_address(void **state)
{
    world_t   w;
    size_t    i, row;
    unsigned  six;

    static const struct {
        const char  *flags[3];       /* of the same address and port */
        const char  *chosen;
        const char  *explained;
    } rows[] = {
        { { "st", "s" }, "no_ready_endpoint", "duplicate,not ready" },
        { { "st", "" }, "no_ready_endpoint", "duplicate,not ready" },
        { { "rst", "s" }, "no_ready_endpoint", "duplicate,not ready" },
        { { "rst", "st", "s" }, "no_ready_endpoint",
          "duplicate,terminating,not ready" },
        { { "st", "t" }, "(t)", "-,terminating" },
        { { "rst", "rs", "s" }, "", "duplicate,-,not ready" },
        { { "rs", "s" }, "", "-,not ready" },
        { { "st", "st", "s" }, "no_ready_endpoint",
          "duplicate,duplicate,not ready" },
    };

    static const char *const  addrs[2][2] = {
        { "10.0.0.1", "10.0.0.2" }, { "fd00::1", "fd00::2" }
    };

    (void) state;

    for (row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        for (six = 0; six < 2; six++) {
            char  expected[128];

            world_init(&w);
            world_port(&w, "http", 80, KUBE_PROTOCOL_TCP);

            for (i = 0; i < 3 && rows[row].flags[i] != NULL; i++) {
                (void) world_slice(&w, six ? KUBE_FAMILY_IPV6
                                           : KUBE_FAMILY_IPV4);
                slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_TCP);
                slice_endpoint(&w, i, addrs[six][0], rows[row].flags[i]);
            }

            snprintf(expected, sizeof(expected), "%s", rows[row].chosen);

            if (expected[0] != 'n') {
                snprintf(expected, sizeof(expected), "%s:8080%s",
                         addrs[six][0], rows[row].chosen);
            }

            assert_string_equal(chosen(&w, NULL, NULL), expected);
            assert_string_equal(explained(&w, &no_port, NULL),
                                rows[row].explained);

            world_reverse(&w);
            assert_string_equal(chosen(&w, NULL, NULL), expected);

            /* at another port, or another address, it is another endpoint */
            slice_endpoint(&w, 0, addrs[six][1], "s");
            assert_string_equal(chosen(&w, NULL, NULL), expected);
        }
    }
}


/*
 * Against a slow restatement of the rules (of duplicates addEndpoints() of
 * kube-proxy's endpointslicecache.go); and the order of slices and endpoints
 * decides nothing.
 */
static void
test_select_random(void **state)
{
    bool           ready, any;
    char           expected[4096], key[64], first[4096];
    size_t         i, j, len;
    world_t        w;
    unsigned       round, a, p, refilled;
    kube_random_t  random;

    /*
     * By last byte of the address and port: 0 none, 1 terminating, 2 ready;
     * and whether it is one that does not terminate.
     */
    unsigned char          best[41][2];
    bool                   stays[41][2];
    const kube_endpoint_t  *e;

    (void) state;

    refilled = 0;
    kube_random_init(&random, 11);

    for (round = 0; round < 400; round++) {
        world_random(&w, &random, false, true);
        memset(best, 0, sizeof(best));
        memset(stays, 0, sizeof(stays));
        ready = false;
        any = false;

        for (i = 0; i < w.snapshot.slices_n; i++) {
            any = any || w.slices[i].endpoints_n != 0;
            p = w.slice_ports[i][0].port - 8080u;

            for (j = 0; j < w.slices[i].endpoints_n; j++) {
                e = &w.endpoints[i][j];
                a = e->address.bytes[3];
                ready = ready || e->ready;

                if (!e->terminating && !stays[a][p]) {
                    refilled += (best[a][p] != 0 && !e->ready);
                    best[a][p] = 0;
                    stays[a][p] = true;

                } else if (e->terminating && stays[a][p]) {
                    continue;
                }

                if (e->ready) {
                    best[a][p] = 2;

                } else if (e->serving && e->terminating && best[a][p] == 0) {
                    best[a][p] = 1;
                }
            }
        }

        len = 0;
        expected[0] = '\0';

        for (a = 0; a <= 40; a++) {
            for (p = 0; p < 2; p++) {
                if (best[a][p] != (ready ? 2 : 1)) {
                    continue;
                }

                snprintf(key, sizeof(key), "%s10.0.0.%u:%u%s",
                         len != 0 ? " " : "", a, 8080 + p,
                         ready ? "" : "(t)");
                memcpy(expected + len, key, strlen(key) + 1);
                len += strlen(key);
            }
        }

        if (len == 0) {
            snprintf(expected, sizeof(expected), "%s",
                     any ? "no_ready_endpoint" : "no_endpoints");
        }

        snprintf(first, sizeof(first), "%s", chosen(&w, NULL, NULL));
        assert_string_equal(first, expected);

        world_reverse(&w);
        assert_string_equal(chosen(&w, NULL, NULL), first);
    }

    assert_in_range(refilled, 10, UINT_MAX);
}


/*
 * The Service's own family is what family= with its name gives, and the other
 * one where that gives nothing; without one it is family=any.
 */
static void
test_select_random_families(void **state)
{
    char                   own[4096], expected[4096];
    world_t                w;
    unsigned               round, both;
    kube_random_t          random;
    kube_select_options_t  options;

    (void) state;

    both = 0;
    kube_random_init(&random, 13);
    memset(&options, 0, sizeof(kube_select_options_t));

    for (round = 0; round < 400; round++) {
        world_random(&w, &random, true, false);

        options.family = KUBE_SELECT_FAMILY_ANY;
        snprintf(expected, sizeof(expected), "%s", chosen(&w, NULL, &options));
        assert_string_equal(chosen(&w, NULL, NULL), expected);

        w.snapshot.service.family = (round % 2) ? KUBE_FAMILY_IPV4
                                                : KUBE_FAMILY_IPV6;
        snprintf(own, sizeof(own), "%s", chosen(&w, NULL, NULL));

        options.family = (kube_select_family_t) w.snapshot.service.family;
        snprintf(expected, sizeof(expected), "%s", chosen(&w, NULL, &options));

        if (expected[0] == 'n') {
            both++;
            options.family = (round % 2) ? KUBE_SELECT_FAMILY_IPV6
                                         : KUBE_SELECT_FAMILY_IPV4;
            snprintf(expected, sizeof(expected), "%s",
                     chosen(&w, NULL, &options));
        }

        if (expected[0] != 'n') {
            assert_string_equal(own, expected);
        }

        world_reverse(&w);
        assert_string_equal(chosen(&w, NULL, NULL), own);
    }

    assert_in_range(both, 10, 390);
}


static void
select_oom(alloc_test_t *at, void *ctx)
{
    world_t                *w = ctx;
    kube_rc_t               rc;
    kube_arena_t            arena;
    kube_selection_t        selection;
    kube_select_options_t   options;

    memset(&options, 0, sizeof(kube_select_options_t));
    kube_arena_init(&arena, &at->alloc, 1 << 20);

    rc = kube_select(&arena, &w->snapshot, &no_port, &options,
                     KUBE_SELECT_EXPLAIN, &selection);
    alloc_test_assert_rc(at, rc);

    kube_arena_done(&arena);
}


static void
test_select_oom(void **state)
{
    world_t        w;
    kube_random_t  random;

    (void) state;

    kube_random_init(&random, 12);
    world_random(&w, &random, true, false);
    w.snapshot.service.family = KUBE_FAMILY_IPV6;
    ALLOC_TEST_RUN(select_oom, &w);
}


/*
 * Selects slice by slice, each from memory that is gone when the next comes;
 * the arena and *made are the caller's to end.
 */
static void
select_pieces(kube_arena_t *arena, const world_t *w,
    const kube_select_options_t *options, kube_selector_t **made,
    kube_selection_t *selection)
{
    char             *pods;
    size_t            i, j, n;
    kube_rc_t         rc;
    kube_slice_t      slice;
    kube_endpoint_t  *eps;

    assert_int_equal(kube_selector_create(arena, &w->snapshot.service,
                                          &no_port, options, 0, made),
                     KUBE_OK);

    for (i = 0; i < w->snapshot.slices_n; i++) {
        slice = w->slices[i];
        n = slice.endpoints_n;
        eps = malloc((n + 1) * sizeof(kube_endpoint_t));
        pods = malloc((n + 1) * 8);
        assert_true(eps != NULL && pods != NULL);

        for (j = 0; j < n; j++) {
            eps[j] = slice.endpoints[j];

            if (eps[j].pod.len != 0) {
                memcpy(pods + j * 8, eps[j].pod.data, eps[j].pod.len);
                eps[j].pod.data = pods + j * 8;
            }
        }

        slice.endpoints = eps;
        assert_int_equal(kube_selector_add(*made, &slice), KUBE_OK);
        free(eps);
        free(pods);
    }

    do {
        rc = kube_selector_sort(*made);
    } while (rc == KUBE_AGAIN);

    assert_int_equal(rc, KUBE_OK);
    assert_int_equal(kube_selector_result(*made, selection), KUBE_OK);
}


static bool
same_choice(const kube_choice_t *a, const kube_choice_t *b)
{
    return memcmp(a->addr.bytes, b->addr.bytes, 4) == 0
           && a->port == b->port
           && a->state == b->state
           && kube_str_eq(a->pod, b->pod);
}


/* How many of a are not in b. */
static size_t
missing(const kube_selection_t *a, const kube_selection_t *b)
{
    size_t  i, j, n;

    n = 0;

    for (i = 0; i < a->n; i++) {
        for (j = 0; j < b->n && !same_choice(&a->endpoints[i],
                                             &b->endpoints[j]); j++)
        {
            /* void */
        }

        n += (j == b->n);
    }

    return n;
}


static void
world_name_pods(world_t *w, char pods[SLICES_MAX][ENDPOINTS_MAX][8])
{
    int     len;
    size_t  i, j;

    for (i = 0; i < w->snapshot.slices_n; i++) {
        for (j = 0; j < w->slices[i].endpoints_n; j++) {
            len = snprintf(pods[i][j], 8, "p%zu%zu", i, j % 7);
            w->endpoints[i][j].pod = (kube_str_t) { pods[i][j],
                                                    (size_t) len };
        }
    }
}


/*
 * With a ceiling: a subset of what is chosen without one, the same whatever the
 * order and however it is read, and stable against what others do.
 */
static void
test_select_ceiling(void **state)
{
    size_t                 i, more;
    world_t                w;
    unsigned               round, k;
    alloc_test_t           at;
    kube_arena_t           arena;
    kube_random_t          random;
    kube_selector_t       *made;
    kube_selection_t       all, some, next, pieces, explained_by;
    kube_select_options_t  options;
    char                   pods[SLICES_MAX][ENDPOINTS_MAX][8];

    (void) state;

    kube_random_init(&random, 13);
    alloc_test_init(&at);
    memset(&options, 0, sizeof(kube_select_options_t));

    for (round = 0; round < 300; round++) {
        kube_arena_init(&arena, &at.alloc, 1 << 22);
        world_random(&w, &random, true, false);
        world_name_pods(&w, pods);
        k = 1 + (unsigned) kube_random_range(&random, 0, 30);

        options.max = 0;
        assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options,
                                     0, &all), KUBE_OK);
        assert_false(all.truncated);

        options.max = k;
        assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options,
                                     0, &some), KUBE_OK);
        assert_int_equal(some.n, all.n < k ? all.n : k);
        assert_int_equal(some.truncated, all.n > k);
        assert_int_equal(some.error, all.error);
        assert_int_equal(missing(&some, &all), 0);

        for (i = 1; i < some.n; i++) {
            assert_true(memcmp(some.endpoints[i - 1].addr.bytes,
                               some.endpoints[i].addr.bytes, 4) <= 0);
        }

        /* one more may be chosen: the others stay */
        options.max = k + 1;
        assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options,
                                     0, &next), KUBE_OK);
        assert_int_equal(missing(&some, &next), 0);

        options.max = k;
        select_pieces(&arena, &w, &options, &made, &pieces);
        assert_int_equal(pieces.n, some.n);
        assert_int_equal(pieces.truncated, some.truncated);
        assert_int_equal(missing(&some, &pieces), 0);
        kube_selector_done(made);

        /* a row for each, and as many used ones as chosen */
        assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options,
                                     KUBE_SELECT_EXPLAIN, &explained_by),
                         KUBE_OK);
        more = 0;

        for (i = 0; i < explained_by.rows_n; i++) {
            more += (explained_by.rows[i].excluded_because == NULL);
        }

        assert_int_equal(more, some.n);

        world_reverse(&w);
        assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options,
                                     0, &next), KUBE_OK);
        assert_int_equal(missing(&some, &next), 0);
        assert_int_equal(next.n, some.n);

        /* one endpoint goes: at most one other takes its place */
        if (w.slices[0].endpoints_n != 0 && all.endpoints != NULL
            && all.endpoints[0].state == KUBE_ENDPOINT_READY)
        {
            w.slices[0].endpoints_n--;
            assert_int_equal(kube_select(&arena, &w.snapshot, &no_port,
                                         &options, 0, &next), KUBE_OK);
            assert_true(missing(&some, &next) <= 1
                        || next.endpoints[0].state != KUBE_ENDPOINT_READY);
        }

        kube_arena_done(&arena);
        alloc_test_assert_no_leak(&at);
    }
}


/*
 * Many that come and go below the ceiling, each told of by two slices: none is
 * used twice, for what has made room hides no other.
 */
static void
test_select_ceiling_twice(void **state)
{
    size_t                 i, j, n;
    world_t                w;
    unsigned               round;
    alloc_test_t           at;
    kube_arena_t           arena;
    kube_selection_t       once, twice;
    kube_select_options_t  options;
    char                   address[32];

    (void) state;

    alloc_test_init(&at);
    memset(&options, 0, sizeof(kube_select_options_t));
    options.max = 100;

    for (round = 0; round < 100; round++) {
        kube_arena_init(&arena, &at.alloc, 1 << 22);
        world_init(&w);
        world_port(&w, "http", 80, KUBE_PROTOCOL_TCP);

        for (i = 0; i < SLICES_MAX; i++) {
            (void) world_slice(&w, KUBE_FAMILY_IPV4);
            slice_port(&w, i, "http", 8080, KUBE_PROTOCOL_TCP);

            for (j = 0; j < ENDPOINTS_MAX; j++) {
                snprintf(address, sizeof(address), "10.%u.%u.%u", round,
                         (unsigned) (i % (SLICES_MAX / 2)),
                         (unsigned) (j + 1));
                slice_endpoint(&w, i, address, "rs");
            }
        }

        assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options,
                                     0, &twice), KUBE_OK);
        n = w.snapshot.slices_n;
        w.snapshot.slices_n = n / 2;
        assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options,
                                     0, &once), KUBE_OK);

        assert_int_equal(once.n, options.max);
        assert_int_equal(twice.n, options.max);
        assert_int_equal(missing(&once, &twice), 0);
        assert_true(once.truncated && twice.truncated);

        kube_arena_done(&arena);
        alloc_test_assert_no_leak(&at);
    }
}


/* Those that terminate were too many, and none of them is used any more. */
static void
test_select_ceiling_of_rank(void **state)
{
    world_t                w;
    alloc_test_t           at;
    kube_arena_t           arena;
    kube_selection_t       selection;
    kube_select_options_t  options;

    (void) state;

    world_simple(&w);
    slice_endpoint(&w, 0, "10.0.0.1", "st");
    slice_endpoint(&w, 0, "10.0.0.2", "st");
    slice_endpoint(&w, 0, "10.0.0.3", "st");

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1 << 20);
    memset(&options, 0, sizeof(kube_select_options_t));
    options.max = 2;

    assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options, 0,
                                 &selection), KUBE_OK);
    assert_int_equal(selection.n, 2);
    assert_true(selection.truncated);

    slice_endpoint(&w, 0, "10.0.0.4", "rs");
    assert_int_equal(kube_select(&arena, &w.snapshot, &no_port, &options, 0,
                                 &selection), KUBE_OK);
    assert_int_equal(selection.n, 1);
    assert_false(selection.truncated);

    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
}


/*
 * A hundred thousand endpoints with long names: what was displaced is swept,
 * and each name is still its address's.
 */
static void
test_select_many(void **state)
{
    size_t                 i, j, bytes;
    alloc_test_t           at;
    kube_arena_t           arena;
    kube_port_t            port, service_port;
    kube_slice_t           slice;
    kube_endpoint_t       *eps;
    kube_service_t         service;
    kube_selector_t       *made;
    kube_selection_t       selection;
    kube_select_options_t  options;
    uint32_t               n;
    char                   pod[208];

    static char  pods[1000][208];

    (void) state;

    memset(&service, 0, sizeof(kube_service_t));
    memset(&slice, 0, sizeof(kube_slice_t));
    memset(&options, 0, sizeof(kube_select_options_t));
    options.max = 1000;
    service_port = port_of("", 80, KUBE_PROTOCOL_TCP);
    service.ports = &service_port;
    service.ports_n = 1;
    port = port_of("", 8080, KUBE_PROTOCOL_TCP);
    slice.ports = &port;
    slice.ports_n = 1;
    slice.family = KUBE_FAMILY_IPV4;
    eps = calloc(1000, sizeof(kube_endpoint_t));
    assert_non_null(eps);
    slice.endpoints = eps;
    slice.endpoints_n = 1000;

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1 << 20);
    assert_int_equal(kube_selector_create(&arena, &service, &no_port, &options,
                                          0, &made), KUBE_OK);

    for (i = 0; i < 100; i++) {
        for (j = 0; j < 1000; j++) {
            n = (uint32_t) (0x0a000001 + i * 1000 + j);
            memset(&eps[j], 0, sizeof(kube_endpoint_t));
            eps[j].address.family = KUBE_FAMILY_IPV4;
            eps[j].address.bytes[0] = (uint8_t) (n >> 24);
            eps[j].address.bytes[1] = (uint8_t) (n >> 16);
            eps[j].address.bytes[2] = (uint8_t) (n >> 8);
            eps[j].address.bytes[3] = (uint8_t) n;
            eps[j].ready = true;
            eps[j].serving = true;
            snprintf(pods[j], sizeof(pods[j]), "%0200u", (unsigned) n);
            eps[j].pod = kube_str(pods[j]);
        }

        assert_int_equal(kube_selector_add(made, &slice), KUBE_OK);
    }

    while (kube_selector_sort(made) == KUBE_AGAIN) { /* void */ }

    assert_int_equal(kube_selector_result(made, &selection), KUBE_OK);
    assert_int_equal(selection.n, 1000);
    assert_true(selection.truncated);

    for (i = 0; i < selection.n; i++) {
        n = (uint32_t) selection.endpoints[i].addr.bytes[0] << 24
            | (uint32_t) selection.endpoints[i].addr.bytes[1] << 16
            | (uint32_t) selection.endpoints[i].addr.bytes[2] << 8
            | (uint32_t) selection.endpoints[i].addr.bytes[3];
        snprintf(pod, sizeof(pod), "%0200u", (unsigned) n);
        assert_true(kube_str_eq(selection.endpoints[i].pod, kube_str(pod)));
    }

    bytes = at.peak_bytes;
    assert_true(bytes < 4u << 20);

    kube_selector_done(made);
    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
    free(eps);
}


static void
pieces_oom(alloc_test_t *at, void *ctx)
{
    world_t                *w = ctx;
    size_t                  i;
    kube_rc_t               rc;
    kube_arena_t            arena;
    kube_selector_t        *made;
    kube_selection_t        selection;
    kube_select_options_t   options;

    memset(&options, 0, sizeof(kube_select_options_t));
    options.max = 5;
    kube_arena_init(&arena, &at->alloc, 1 << 20);

    rc = kube_selector_create(&arena, &w->snapshot.service, &no_port,
                              &options, 0, &made);

    if (rc == KUBE_OK) {
        for (i = 0; i < w->snapshot.slices_n && rc == KUBE_OK; i++) {
            rc = kube_selector_add(made, &w->slices[i]);
        }

        while (rc == KUBE_OK && (rc = kube_selector_sort(made)) == KUBE_AGAIN) {
            rc = KUBE_OK;
        }

        if (rc == KUBE_OK) {
            rc = kube_selector_result(made, &selection);
        }

        kube_selector_done(made);
    }

    alloc_test_assert_rc(at, rc);
    kube_arena_done(&arena);
}


static void
test_select_pieces_oom(void **state)
{
    world_t        w;
    kube_random_t  random;

    (void) state;

    kube_random_init(&random, 12);
    world_random(&w, &random, true, false);
    w.snapshot.service.family = KUBE_FAMILY_IPV6;
    ALLOC_TEST_RUN(pieces_oom, &w);
}


/* Without a seed, too, many endpoints are told apart in few steps. */
static void
test_select_many_without_seed(void **state)
{
    size_t                 i;
    clock_t                began;
    kube_port_t            port, service_port;
    alloc_test_t           at;
    kube_arena_t           arena;
    kube_slice_t           slice;
    kube_service_t         service;
    kube_endpoint_t       *eps;
    kube_selector_t       *made;
    kube_select_options_t  options;

    (void) state;

    memset(&service, 0, sizeof(kube_service_t));
    memset(&slice, 0, sizeof(kube_slice_t));
    memset(&options, 0, sizeof(kube_select_options_t));
    service_port = port_of("", 80, KUBE_PROTOCOL_TCP);
    service.ports = &service_port;
    service.ports_n = 1;
    port = port_of("", 8080, KUBE_PROTOCOL_TCP);
    slice.ports = &port;
    slice.ports_n = 1;
    slice.family = KUBE_FAMILY_IPV4;
    slice.endpoints_n = 60000;
    eps = calloc(slice.endpoints_n, sizeof(kube_endpoint_t));
    assert_non_null(eps);
    slice.endpoints = eps;

    for (i = 0; i < slice.endpoints_n; i++) {
        eps[i].address.family = KUBE_FAMILY_IPV4;
        eps[i].address.bytes[0] = 10;
        eps[i].address.bytes[2] = (uint8_t) (i >> 8);
        eps[i].address.bytes[3] = (uint8_t) i;
        eps[i].ready = true;
    }

    alloc_test_init(&at);
    kube_arena_init(&arena, &at.alloc, 1 << 20);
    assert_int_equal(kube_selector_create(&arena, &service, &no_port, &options,
                                          KUBE_SELECT_BORROW, &made), KUBE_OK);

    /* 30 ms; 20 s where all meet */
    began = clock();
    assert_int_equal(kube_selector_add(made, &slice), KUBE_OK);
    assert_true(clock() - began < 2 * CLOCKS_PER_SEC);

    kube_selector_done(made);
    kube_arena_done(&arena);
    alloc_test_assert_no_leak(&at);
    free(eps);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_select_texts),
        cmocka_unit_test(test_select_states),
        cmocka_unit_test(test_select_ports),
        cmocka_unit_test(test_select_named_target),
        cmocka_unit_test(test_select_any_port),
        cmocka_unit_test(test_select_unnamed),
        cmocka_unit_test(test_select_families),
        cmocka_unit_test(test_select_own_family),
        cmocka_unit_test(test_select_duplicates),
        cmocka_unit_test(test_select_reused_address),
        cmocka_unit_test(test_select_policy),
        cmocka_unit_test(test_select_external),
        cmocka_unit_test(test_select_strings),
        cmocka_unit_test(test_select_random),
        cmocka_unit_test(test_select_random_families),
        cmocka_unit_test(test_select_oom),
        cmocka_unit_test(test_select_ceiling),
        cmocka_unit_test(test_select_ceiling_twice),
        cmocka_unit_test(test_select_ceiling_of_rank),
        cmocka_unit_test(test_select_many),
        cmocka_unit_test(test_select_many_without_seed),
        cmocka_unit_test(test_select_pieces_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_lib - the library for programs: what kube.h says, over sources in
 * memory, and memory that fails.
 *
 * What libkube.so exports, and a program that is linked with it, is in
 * t/test_lib.py.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "alloc_test.h"
#include "kube_lib.h"
#include "kube_memory_lister_watcher.h"


#define BED_TOLD  1024

typedef struct {
    alloc_test_t            own;         /* of what is not under test */
    kube_memory_source_t   *sources[KUBE_RESOURCES];
    kube_lib_env_t          env;
    kube_t                 *kube;
    kube_informer_t        *services;
    kube_informer_t        *slices;
    char                    why[128];
} bed_t;

/* A handler; "+a!" initial, "+a", "~a", "-a", "-a?". */
typedef struct {
    bed_t                  *bed;
    char                    text[BED_TOLD];
    uint64_t                id;
    bool                    leaves;      /* after its first call */
    const kube_v1_object_t *held;
} told_t;


static uint64_t
bed_now(void *ctx)
{
    (void) ctx;

    return kube_now_ms();
}


static kube_rc_t
bed_lister_watcher(void *ctx, kube_resource_t resource, kube_str_t ns,
    kube_lister_watcher_t *lw)
{
    bed_t  *b = ctx;

    return kube_memory_lister_watcher_create(b->sources[resource], ns, lw);
}


static void
bed_put(bed_t *b, const char *ns, const char *name, uint16_t port)
{
    kube_port_t    ports[1];
    kube_object_t  o;

    memset(&o, 0, sizeof(kube_object_t));
    memset(ports, 0, sizeof(ports));

    ports[0].port = port;
    ports[0].name = KUBE_STR("http");

    o.resource = KUBE_RESOURCE_SERVICES;
    o.u.service.meta.ns = kube_str(ns);
    o.u.service.meta.name = kube_str(name);
    o.u.service.ports = ports;
    o.u.service.ports_n = 1;

    assert_int_equal(kube_addr_parse(KUBE_STR("10.0.0.7"),
                                     &o.u.service.cluster_ips[0]), KUBE_OK);
    o.u.service.cluster_ips_n = 1;
    assert_int_equal(kube_memory_source_put(b->sources[0], &o), KUBE_OK);
}


static void
bed_put_slice(bed_t *b, const char *name, const char *service)
{
    kube_port_t      port;
    kube_object_t    o;
    kube_endpoint_t  endpoints[2];

    memset(&o, 0, sizeof(kube_object_t));
    memset(&port, 0, sizeof(kube_port_t));
    memset(endpoints, 0, sizeof(endpoints));

    port.port = 53;
    port.protocol = KUBE_PROTOCOL_UDP;

    assert_int_equal(kube_addr_parse(KUBE_STR("2001:db8::1"),
                                     &endpoints[0].address), KUBE_OK);
    assert_int_equal(kube_addr_parse(KUBE_STR("2001:db8::2"),
                                     &endpoints[1].address), KUBE_OK);
    endpoints[0].ready = true;
    endpoints[0].serving = true;
    endpoints[0].pod = KUBE_STR("pod-a");
    endpoints[0].node = KUBE_STR("node-a");
    endpoints[1].terminating = true;
    endpoints[1].zone = KUBE_STR("zone-b");

    o.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    o.u.slice.meta.ns = KUBE_STR("shop");
    o.u.slice.meta.name = kube_str(name);
    o.u.slice.service = kube_str(service);
    o.u.slice.family = KUBE_FAMILY_IPV6;
    o.u.slice.ports = &port;
    o.u.slice.ports_n = 1;
    o.u.slice.endpoints = endpoints;
    o.u.slice.endpoints_n = 2;

    assert_int_equal(kube_memory_source_put(b->sources[1], &o), KUBE_OK);
}


static void
bed_remove(bed_t *b, const char *ns, const char *name)
{
    assert_int_equal(kube_memory_source_remove(b->sources[0], kube_str(ns),
                                               kube_str(name)), KUBE_OK);
}


/* Until nothing is due now. */
static void
bed_settle(bed_t *b)
{
    unsigned  n;

    for (n = 0; n < 10000; n++) {
        kube_memory_source_process(b->sources[0], kube_now_ms());
        kube_memory_source_process(b->sources[1], kube_now_ms());
        kube_process(b->kube);

        if (kube_deadline_ms(b->kube) > kube_now_ms()) {
            return;
        }
    }

    fail_msg("it never settles");
}


/* alloc NULL: the bed's own. */
static int
bed_make(bed_t *b, const kube_alloc_t *alloc)
{
    int             rc;
    size_t          i;
    kube_options_t  options = { .size = sizeof(options) };

    memset(b, 0, sizeof(bed_t));
    alloc_test_init(&b->own);

    for (i = 0; i < KUBE_RESOURCES; i++) {
        b->sources[i] = kube_memory_source_create(&b->own.alloc,
                                                  (kube_resource_t) i, 64);
        assert_non_null(b->sources[i]);
    }

    b->env = (kube_lib_env_t) {
        .alloc = (alloc != NULL) ? *alloc : b->own.alloc,
        .now = bed_now,
        .lister_watcher = bed_lister_watcher,
        .ctx = b
    };

    rc = kube_lib_create(&b->env, &options, &b->kube, b->why,
                         sizeof(b->why));
    if (rc == KUBE_E_OK) {
        rc = kube_informer(b->kube, KUBE_V1_SERVICE, NULL, &b->services);
    }

    if (rc == KUBE_E_OK) {
        rc = kube_informer(b->kube, KUBE_V1_ENDPOINTSLICE, "", &b->slices);
    }

    return rc;
}


static void
bed_done(bed_t *b)
{
    size_t  i;

    kube_destroy(b->kube);

    for (i = 0; i < KUBE_RESOURCES; i++) {
        kube_memory_source_destroy(b->sources[i]);
    }

    alloc_test_assert_no_leak(&b->own);
}


static void
told_say(told_t *told, const char *sign, const kube_v1_object_t *o,
    const char *end)
{
    size_t  len;

    len = strlen(told->text);
    (void) snprintf(told->text + len, sizeof(told->text) - len, "%s%s%s%s",
                    len != 0 ? " " : "", sign, o->name, end);

    /* neither waits nor runs from within, and may leave */

    kube_process(told->bed->kube);
    assert_int_equal(kube_run_once(told->bed->kube, 0), KUBE_E_INVALID);
    assert_int_equal(kube_wait_for_sync(told->bed->kube, 0, NULL, 0),
                     KUBE_E_INVALID);

    if (told->leaves) {
        kube_informer_remove_handlers(told->bed->services, told->id);
    }
}


static void
told_added(void *ctx, const kube_v1_object_t *o, int in_initial_list)
{
    told_say(ctx, "+", o, in_initial_list ? "!" : "");
}


static void
told_updated(void *ctx, const kube_v1_object_t *old_object,
    const kube_v1_object_t *new_object)
{
    told_t  *told = ctx;

    assert_string_equal(old_object->uid, new_object->uid);
    assert_string_not_equal(old_object->rv, new_object->rv);

    if (told->held == NULL) {
        told->held = kube_v1_object_hold(old_object);
    }

    told_say(told, "~", new_object, "");
}


static void
told_deleted(void *ctx, const kube_v1_object_t *o, int final_state_unknown)
{
    told_say(ctx, "-", o, final_state_unknown ? "?" : "");
}


/* Ports above 1000 are not seen. */
static int
told_filter(void *ctx, const kube_v1_object_t *o)
{
    (void) ctx;

    return o->service->ports[0].port <= 1000;
}


static int
told_try(told_t *told, bed_t *b, int (*filter)(void *ctx,
    const kube_v1_object_t *o))
{
    kube_handlers_t  handlers = {
        .size = sizeof(handlers),
        .ctx = told,
        .added = told_added,
        .updated = told_updated,
        .deleted = told_deleted,
        .filter = filter
    };

    memset(told, 0, sizeof(told_t));
    told->bed = b;

    return kube_informer_add_handlers(b->services, &handlers, &told->id);
}


static void
assert_told(told_t *told, const char *text)
{
    assert_string_equal(told->text, text);
    told->text[0] = '\0';
}


static void
test_handlers(void **state)
{
    bed_t             b;
    told_t            all, few, once, late;
    kube_informer_t  *again;

    (void) state;

    assert_int_equal(bed_make(&b, NULL), KUBE_E_OK);
    assert_int_equal(kube_informer(b.kube, KUBE_V1_SERVICE, "", &again), 0);
    assert_ptr_equal(again, b.services);
    assert_int_equal(kube_informer(b.kube, KUBE_V1_SERVICE, "A", &again),
                     KUBE_E_INVALID);

    assert_int_equal(told_try(&all, &b, NULL), KUBE_E_OK);
    assert_int_equal(told_try(&few, &b, told_filter), KUBE_E_OK);
    assert_int_equal(told_try(&once, &b, NULL), KUBE_E_OK);
    once.leaves = true;

    bed_put(&b, "shop", "a", 80);
    bed_put(&b, "shop", "b", 2000);
    assert_int_equal(kube_start(b.kube), KUBE_E_OK);
    assert_int_equal(kube_informer_handlers_synced(b.services, all.id), 0);
    bed_settle(&b);

    assert_int_equal(kube_informer_handlers_synced(b.services, all.id), 1);
    assert_told(&all, "+a! +b!");
    assert_told(&few, "+a!");
    assert_told(&once, "+a!");
    assert_int_equal(kube_informer_handlers_synced(b.services, once.id), 0);

    /* what crosses the filter is added and deleted */
    bed_put(&b, "shop", "a", 2000);
    bed_settle(&b);
    assert_told(&all, "~a");
    assert_told(&few, "-a");
    bed_put(&b, "shop", "a", 81);
    bed_put(&b, "shop", "c", 2000);
    bed_settle(&b);
    assert_told(&all, "~a +c");
    assert_told(&few, "+a");
    bed_remove(&b, "shop", "a");
    bed_remove(&b, "shop", "c");
    bed_settle(&b);
    assert_told(&all, "-a -c");
    assert_told(&few, "-a");

    /* one that comes late, and one that has left */
    assert_int_equal(told_try(&late, &b, NULL), KUBE_E_OK);
    kube_informer_remove_handlers(b.services, few.id);
    kube_informer_remove_handlers(b.services, few.id);
    bed_put(&b, "shop", "d", 1);
    bed_settle(&b);
    assert_told(&late, "+b! +d");
    assert_told(&all, "+d");
    assert_told(&few, "");
    assert_told(&once, "");

    /* what was held is as it was, longer than all */
    kube_destroy(b.kube);
    b.kube = NULL;
    assert_string_equal(all.held->name, "a");
    assert_int_equal(all.held->service->ports[0].port, 80);
    kube_v1_object_release(all.held);
    kube_v1_object_release(few.held);
    bed_done(&b);
}


static int
visit_name(void *ctx, const kube_v1_object_t *o)
{
    char    *text = ctx;
    size_t   len;

    len = strlen(text);
    (void) snprintf(text + len, 32 - len, "%s", o->name);

    return strlen(text) == 3;
}


static void
test_objects(void **state)
{
    bed_t                          b;
    const kube_v1_object_t        *o;
    const kube_v1_endpoint_t      *e;

    (void) state;

    assert_int_equal(bed_make(&b, NULL), KUBE_E_OK);
    bed_put(&b, "shop", "a", 80);
    bed_put_slice(&b, "a-1", "a");
    assert_int_equal(kube_start(b.kube), KUBE_E_OK);
    bed_settle(&b);

    assert_int_equal(kube_informer_get(b.services, "shop", "a", &o), 0);
    assert_int_equal(o->resource, KUBE_V1_SERVICE);
    assert_null(o->slice);
    assert_string_equal(o->ns, "shop");
    assert_string_equal(o->name, "a");
    assert_int_equal(o->service->type, KUBE_V1_CLUSTER_IP);
    assert_int_equal(o->service->cluster_ips_n, 1);
    assert_string_equal(o->service->cluster_ips[0], "10.0.0.7");
    assert_string_equal(o->service->cluster_ips[1], "");
    assert_string_equal(o->service->ports[0].name, "http");
    assert_string_equal(o->service->ports[0].app_protocol, "");
    kube_v1_object_release(o);
    kube_v1_object_release(NULL);

    assert_int_equal(kube_informer_get(b.slices, "shop", "a-1", &o), 0);
    assert_null(o->service);
    assert_string_equal(o->slice->service, "a");
    assert_int_equal(o->slice->family, 6);
    assert_int_equal(o->slice->ports[0].protocol, KUBE_V1_UDP);
    assert_int_equal(o->slice->endpoints_n, 2);
    e = o->slice->endpoints;
    assert_string_equal(e[0].address, "2001:db8::1");
    assert_true(e[0].ready && e[0].serving && !e[0].terminating);
    assert_string_equal(e[0].pod, "pod-a");
    assert_string_equal(e[0].node, "node-a");
    assert_string_equal(e[0].zone, "");
    assert_string_equal(e[1].address, "2001:db8::2");
    assert_true(!e[1].ready && !e[1].serving && e[1].terminating);
    assert_string_equal(e[1].zone, "zone-b");
    kube_v1_object_release(o);

    assert_int_equal(kube_informer_get(b.slices, "shop", "x", &o),
                     KUBE_E_NOT_FOUND);
    assert_int_equal(kube_informer_get(b.slices, NULL, "a-1", &o),
                     KUBE_E_NOT_FOUND);
    bed_done(&b);
}


/* Under its port, in words; those of an even one have no value. */
static int
index_port(void *ctx, const kube_v1_object_t *o, kube_values_t *values)
{
    char  text[8];

    assert_string_equal(ctx, "ctx");
    (void) snprintf(text, sizeof(text), "%d", o->service->ports[0].port);
    kube_value(values, text);

    return (o->service->ports[0].port % 2 == 0) ? -1 : 0;
}


static void
test_store(void **state)
{
    bed_t  b;
    char   text[32];

    (void) state;

    assert_int_equal(bed_make(&b, NULL), KUBE_E_OK);
    bed_put(&b, "shop", "a", 1);
    bed_put(&b, "shop", "b", 2);
    bed_put(&b, "toys", "c", 3);
    bed_put(&b, "toys", "d", 3);
    bed_put_slice(&b, "s", "a");
    assert_int_equal(kube_informer_add_index(b.services, "namespace", NULL,
                                             NULL), 0);
    assert_int_equal(kube_start(b.kube), KUBE_E_OK);
    bed_settle(&b);
    assert_int_equal(kube_informer_count(b.services), 4);
    assert_int_equal(kube_informer_refused(b.services), 0);
    assert_string_equal(kube_informer_name(b.slices), "endpointslices");
    assert_string_equal(kube_informer_error(b.slices), "");

#define assert_list(call, names)                                              \
    text[0] = '\0';                                                           \
    assert_int_equal(call, 0);                                                \
    assert_string_equal(text, names)

    assert_list(kube_informer_list(b.services, "toys", visit_name, text),
                "cd");
    assert_list(kube_informer_list(b.services, NULL, visit_name, text),
                "abc");

    assert_int_equal(kube_informer_add_index(b.services, "port", index_port,
                                             "ctx"), 0);
    assert_int_equal(kube_informer_index_errors(b.services), 1);
    assert_list(kube_informer_by_index(b.services, "port", "1", visit_name,
                                       text), "a");
    assert_list(kube_informer_by_index(b.services, "port", "2", visit_name,
                                       text), "");
    assert_list(kube_informer_by_index(b.services, "namespace", "none",
                                       visit_name, text), "");
    text[0] = '\0';
    assert_int_equal(kube_informer_by_index(b.services, "namespace", "toys",
                                            visit_name, text), 0);
    assert_int_equal(strlen(text), 2);

    assert_int_equal(kube_informer_add_index(b.slices, "service", NULL,
                                             NULL), 0);
    assert_int_equal(kube_informer_add_index(b.slices, "node", NULL, NULL),
                     0);
    assert_int_equal(kube_informer_add_index(b.slices, "address", NULL,
                                             NULL), 0);
    assert_list(kube_informer_by_index(b.slices, "service", "shop/a",
                                       visit_name, text), "s");
    assert_list(kube_informer_by_index(b.slices, "node", "node-a",
                                       visit_name, text), "s");
    assert_list(kube_informer_by_index(b.slices, "address", "2001:db8::2",
                                       visit_name, text), "s");

    assert_int_equal(kube_informer_add_index(b.slices, "node", NULL, NULL),
                     KUBE_E_INVALID);
    assert_int_equal(kube_informer_add_index(b.slices, "none", NULL, NULL),
                     KUBE_E_INVALID);
    assert_int_equal(kube_informer_add_index(b.services, "port", index_port,
                                             "ctx"), KUBE_E_INVALID);
    assert_int_equal(kube_informer_by_index(b.slices, "none", "", visit_name,
                                            text), KUBE_E_NOT_FOUND);
    bed_done(&b);
}


static void
test_loop(void **state)
{
    bed_t              b;
    told_t             told;
    kube_informer_t   *more;

    (void) state;

    assert_int_equal(bed_make(&b, NULL), KUBE_E_OK);
    assert_true(kube_fd(b.kube) >= 0);
    assert_int_equal(kube_deadline_ms(b.kube), KUBE_FOREVER);

    /* nothing was started: there is nothing to wait for */
    assert_int_equal(kube_has_synced(b.kube, NULL, 0), 1);
    assert_int_equal(kube_wait_for_sync(b.kube, KUBE_FOREVER, NULL, 0),
                     KUBE_E_OK);

    /* a wait ends by kube_wake(), which is taken once */
    kube_wake(b.kube);
    kube_wake(b.kube);
    assert_int_equal(kube_run_once(b.kube, -1), KUBE_E_OK);
    assert_int_equal(kube_run_once(b.kube, 0), KUBE_E_OK);

    /* what is missing is named, and why */
    kube_memory_source_refuse(b.sources[1], false, 100, 403, 0);
    kube_memory_source_refuse(b.sources[1], true, 100, 403, 0);
    bed_put(&b, "shop", "a", 1);
    assert_int_equal(told_try(&told, &b, NULL), KUBE_E_OK);
    assert_int_equal(kube_start(b.kube), KUBE_E_OK);
    assert_int_equal(kube_wait_for_sync(b.kube, 20, b.why, sizeof(b.why)),
                     KUBE_E_TIMEOUT);
    assert_non_null(strstr(b.why, "endpointslices"));
    assert_non_null(strstr(b.why, kube_informer_error(b.slices)));
    assert_null(strstr(b.why, "services"));
    assert_int_equal(kube_has_synced(b.kube, NULL, 0), 0);
    assert_int_equal(kube_informer_has_synced(b.services), 1);
    assert_int_equal(kube_informer_has_synced(b.slices), 0);

    /* an end, with what is not told yet, and without */
    assert_told(&told, "+a!");
    bed_put(&b, "shop", "b", 1);
    kube_shutdown(b.kube, 0);
    assert_int_equal(kube_is_stopped(b.kube), 1);
    assert_int_equal(kube_run_once(b.kube, -1), KUBE_E_CLOSED);
    assert_int_equal(kube_wait_for_sync(b.kube, KUBE_FOREVER, NULL, 0),
                     KUBE_E_CLOSED);
    assert_int_equal(kube_start(b.kube), KUBE_E_INVALID);
    assert_int_equal(told_try(&told, &b, NULL), KUBE_E_INVALID);
    assert_int_equal(kube_informer(b.kube, KUBE_V1_SERVICE, "x", &more),
                     KUBE_E_INVALID);
    assert_int_equal(kube_informer_count(b.services), 1);
    bed_done(&b);

    assert_int_equal(bed_make(&b, NULL), KUBE_E_OK);
    bed_put(&b, "shop", "a", 1);
    assert_int_equal(kube_start(b.kube), KUBE_E_OK);
    assert_int_equal(kube_wait_for_sync(b.kube, KUBE_FOREVER, NULL, 0),
                     KUBE_E_OK);
    bed_settle(&b);
    assert_int_equal(told_try(&told, &b, NULL), KUBE_E_OK);
    kube_shutdown(b.kube, 1);
    assert_int_equal(kube_is_stopped(b.kube), 0);

    while (kube_run_once(b.kube, 0) == KUBE_E_OK) { /* void */ }

    assert_told(&told, "+a!");
    assert_int_equal(kube_is_stopped(b.kube), 1);
    bed_done(&b);
}


static void
test_options(void **state)
{
    int      rc;
    char     why[64], long_selector[2048];
    size_t   i;
    kube_t  *kube;

    static kube_local_source_t  *none[1];

    struct {
        const char      *says;
        int              rc;
        kube_options_t   options;
    } cases[] = {
        { "size", KUBE_E_INVALID, { .size = 8 } },
        { "", KUBE_E_IO, { .kubeconfig = "/nonexistent" } },
        { "server", KUBE_E_INVALID,
          { .kubeconfig = "x", .server = "https://a" } },
        { "context", KUBE_E_INVALID, { .context = "x" } },
        { "token_file", KUBE_E_INVALID, { .token_file = "x" } },
        { "ca_file", KUBE_E_INVALID,
          { .kubeconfig = "x", .ca_file = "x" } },
        { "connect_timeout_ms", KUBE_E_INVALID,
          { .server = "https://a", .connect_timeout_ms = 600001 } },
        { "", KUBE_E_INVALID, { .server = "http://example.com" } },
        { "agent", KUBE_E_INVALID,
          { .server = "http://127.0.0.1:1", .agent = "a\r\nX-More: b" } },
        { "sources", KUBE_E_INVALID, { .sources_n = 1 } },
        { "source", KUBE_E_INVALID, { .sources = none, .sources_n = 1 } },
        { "long", KUBE_E_TOO_LARGE,
          { .server = "https://a", .slice_selector = long_selector } },
        { "", KUBE_E_OK,
          { .server = "http://127.0.0.1:1", .service_selector = "a=b" } }
    };

    (void) state;

    memset(long_selector, 'a', sizeof(long_selector));
    long_selector[sizeof(long_selector) - 1] = '\0';

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        kube = NULL;
        why[0] = '\0';

        if (cases[i].options.size == 0) {
            cases[i].options.size = sizeof(kube_options_t);
        }

        rc = kube_create(&cases[i].options, &kube, why, sizeof(why));

        if (rc != cases[i].rc || strstr(why, cases[i].says) == NULL
            || (rc != KUBE_E_OK) != (why[0] != '\0'))
        {
            fail_msg("case %zu: %d, \"%s\"", i, rc, why);
        }

        kube_destroy(kube);
    }

    assert_int_equal(kube_create(&cases[0].options, &kube, NULL, 0),
                     KUBE_E_INVALID);
    assert_string_equal(kube_strerror(KUBE_E_TIMEOUT), "timed out");
    assert_string_equal(kube_strerror(KUBE_E_CLOSED), "it was shut down");
    assert_non_null(strstr(kube_strerror(KUBE_E_INVALID), "wrong time"));
    assert_string_equal(kube_strerror(-100), "unknown result");
    assert_true(kube_version()[0] != '\0');
}


/* KUBE_E_IO: errno is of this call. */
static void
test_io(void **state)
{
    int             err;
    char            why[64];
    size_t          i;
    kube_t         *kube;
    kube_options_t  options;

    static const struct {
        const char  *path;
        const char  *why;
        int          err;
    } cases[] = {
        { "/proc/none", "no such file", ENOENT },
        { "/proc/version/none", "no such file", ENOTDIR },
        { "/", "a directory, not a file", EISDIR },
        { "/dev/null", "not a regular file", EINVAL }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        options = (kube_options_t) {
            .size = sizeof(options),
            .kubeconfig = cases[i].path
        };

        errno = 0;
        assert_int_equal(kube_create(&options, &kube, why, sizeof(why)),
                         KUBE_E_IO);
        err = errno;

        assert_int_equal(err, cases[i].err);
        assert_string_equal(why, cases[i].why);
    }
}


static uint64_t  queue_now_ms;


static uint64_t
queue_now(void *ctx)
{
    (void) ctx;

    return queue_now_ms;
}


static kube_lib_env_t
queue_env(const kube_alloc_t *alloc)
{
    queue_now_ms = 1000000;

    return (kube_lib_env_t) { .alloc = *alloc, .now = queue_now };
}


static kube_queue_t *
queue_make(alloc_test_t *at, size_t keys)
{
    kube_queue_t    *q;
    kube_lib_env_t   env;

    alloc_test_init(at);
    env = queue_env(&at->alloc);
    q = kube_lib_queue_create(&env, keys);
    assert_non_null(q);

    return q;
}


static void
test_queue(void **state)
{
    char              name[KUBE_LIB_QUEUE_KEY_MAX + 2];
    unsigned          i;
    const char       *key;
    alloc_test_t      at;
    kube_queue_t     *q;
    kube_lib_env_t    env;

    (void) state;

    alloc_test_init(&at);
    env = queue_env(&at.alloc);
    assert_null(kube_lib_queue_create(&env, 0));
    assert_null(kube_lib_queue_create(&env, KUBE_LIB_QUEUE_KEYS_MAX + 1));
    q = kube_lib_queue_create(&env, 3);
    assert_non_null(q);
    assert_null(kube_queue_get(q));
    assert_int_equal(kube_queue_deadline_ms(q), KUBE_FOREVER);

    /* once, and once more if it was added meanwhile */
    assert_int_equal(kube_queue_add(q, "a"), 0);
    assert_int_equal(kube_queue_add(q, "b"), 0);
    assert_int_equal(kube_queue_add(q, "a"), 0);
    assert_int_equal(kube_queue_depth(q), 2);
    key = kube_queue_get(q);
    assert_string_equal(key, "a");
    assert_int_equal(kube_queue_add(q, "a"), 0);
    assert_string_equal(kube_queue_get(q), "b");
    assert_null(kube_queue_get(q));
    kube_queue_done(q, key);
    assert_string_equal(kube_queue_get(q), "a");
    kube_queue_done(q, "a");
    kube_queue_done(q, "b");
    kube_queue_done(q, "b");
    kube_queue_done(q, "nobody");
    assert_null(kube_queue_get(q));

    /* more keys one after the other than there may be at once */
    for (i = 0; i < 100; i++) {
        (void) snprintf(name, sizeof(name), "key-%u", i);
        assert_int_equal(kube_queue_add(q, name), 0);
        assert_string_equal(kube_queue_get(q), name);
        kube_queue_done(q, name);
    }

    for (i = 0; i < 3; i++) {
        (void) snprintf(name, sizeof(name), "key-%u", i);
        assert_int_equal(kube_queue_add_after(q, name, 10 + i), 0);
    }

    assert_int_equal(kube_queue_add(q, "a"), KUBE_E_TOO_LARGE);
    assert_int_equal(kube_queue_deadline_ms(q), queue_now_ms + 10);

    for (i = 0; i < 3; i++) {
        (void) snprintf(name, sizeof(name), "key-%u", i);
        assert_null(kube_queue_get(q));
        queue_now_ms += (i == 0) ? 10 : 1;
        assert_string_equal(kube_queue_get(q), name);
        kube_queue_done(q, name);
    }

    /* a delay that is left behind keeps its key, and its key alone */
    assert_int_equal(kube_queue_add_after(q, "a", 50), 0);
    assert_int_equal(kube_queue_add(q, "a"), 0);
    assert_string_equal(kube_queue_get(q), "a");
    kube_queue_done(q, "a");
    queue_now_ms += 50;
    assert_string_equal(kube_queue_get(q), "a");
    kube_queue_done(q, "a");
    queue_now_ms += 100;
    assert_null(kube_queue_get(q));

    /* failures */
    assert_int_equal(kube_queue_add_failed(q, "a"), 0);
    assert_int_equal(kube_queue_failures(q, "a"), 1);
    assert_null(kube_queue_get(q));
    queue_now_ms += 5;
    assert_string_equal(kube_queue_get(q), "a");
    assert_int_equal(kube_queue_add_failed(q, "a"), 0);
    kube_queue_done(q, "a");
    queue_now_ms += 5;
    assert_null(kube_queue_get(q));
    queue_now_ms += 5;
    assert_string_equal(kube_queue_get(q), "a");
    kube_queue_forget(q, "a");
    kube_queue_done(q, "a");
    assert_int_equal(kube_queue_failures(q, "a"), 0);

    /* they are known, and none of another key's, until they are forgotten */
    assert_int_equal(kube_queue_add_failed(q, "a"), 0);
    queue_now_ms += 5;
    assert_string_equal(kube_queue_get(q), "a");
    kube_queue_done(q, "a");
    assert_int_equal(kube_queue_add(q, "b"), 0);
    assert_int_equal(kube_queue_failures(q, "a"), 1);
    assert_int_equal(kube_queue_failures(q, "b"), 0);
    assert_string_equal(kube_queue_get(q), "b");
    kube_queue_done(q, "b");
    kube_queue_forget(q, "a");

    /* limits, and the end */
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(kube_queue_add(q, name), KUBE_E_TOO_LARGE);
    name[sizeof(name) - 2] = '\0';
    assert_int_equal(kube_queue_add(q, name), 0);
    assert_int_equal(kube_queue_add(q, ""), KUBE_E_INVALID);
    assert_int_equal(kube_queue_add_after(q, "z", KUBE_FOREVER), 0);
    kube_queue_shutdown(q);
    assert_int_equal(kube_queue_add(q, "late"), 0);
    assert_int_equal(kube_queue_add_after(q, "late", 0), 0);
    assert_int_equal(kube_queue_add_failed(q, "late"), 0);
    assert_int_equal(kube_queue_is_over(q), 0);
    assert_string_equal(kube_queue_get(q), name);
    assert_int_equal(kube_queue_is_over(q), 0);
    kube_queue_done(q, name);
    assert_null(kube_queue_get(q));
    assert_int_equal(kube_queue_is_over(q), 1);
    kube_queue_destroy(q);
    kube_queue_destroy(NULL);
    alloc_test_assert_no_leak(&at);

    q = kube_queue_create(1000000);
    assert_non_null(q);
    assert_int_equal(kube_queue_add(q, "a"), 0);
    kube_queue_destroy(q);
}


/* A key waits from the moment at which it is due, whoever asks first. */
static void
test_queue_due(void **state)
{
    uint64_t              waited_ms;
    alloc_test_t          at;
    kube_queue_t         *q;
    kube_queue_metrics_t  m = { .size = sizeof(m) };

    (void) state;

    q = queue_make(&at, 4);

    assert_int_equal(kube_queue_add_after(q, "a", 5), KUBE_E_OK);
    assert_int_equal(kube_queue_add_after(q, "b", 6), KUBE_E_OK);
    assert_int_equal(kube_queue_add_after(q, "later", 60000), KUBE_E_OK);
    queue_now_ms += 4;
    assert_int_equal(kube_queue_depth(q), 0);
    queue_now_ms += 1;
    assert_int_equal(kube_queue_depth(q), 1);
    queue_now_ms += 1;
    assert_int_equal(kube_queue_metrics(q, &m), KUBE_E_OK);
    assert_int_equal(m.depth, 2);
    assert_int_equal(m.adds_total, 2);

    assert_string_equal(kube_queue_get(q), "a");
    kube_queue_done(q, "a");
    assert_string_equal(kube_queue_get(q), "b");
    kube_queue_done(q, "b");

    /* it has waited since it was due, not since somebody came for it */

    assert_int_equal(kube_queue_metrics(q, &m), KUBE_E_OK);
    waited_ms = m.queue_duration.sum_ms;
    assert_int_equal(kube_queue_add_after(q, "a", 5), KUBE_E_OK);
    queue_now_ms += 25;
    assert_string_equal(kube_queue_get(q), "a");
    kube_queue_done(q, "a");
    assert_int_equal(kube_queue_metrics(q, &m), KUBE_E_OK);
    assert_int_equal(m.queue_duration.sum_ms - waited_ms, 20);

    /* the slots of both are free again */

    assert_int_equal(kube_queue_add_after(q, "c", 5), KUBE_E_OK);
    assert_int_equal(kube_queue_add_after(q, "d", 7), KUBE_E_OK);
    assert_int_equal(kube_queue_add(q, "e"), KUBE_E_OK);
    assert_int_equal(kube_queue_add(q, "f"), KUBE_E_TOO_LARGE);

    /* what is due at a shutdown was not delayed any more */

    queue_now_ms += 5;
    kube_queue_shutdown(q);
    assert_int_equal(kube_queue_is_over(q), 0);
    assert_string_equal(kube_queue_get(q), "e");
    assert_string_equal(kube_queue_get(q), "c");
    kube_queue_done(q, "e");
    assert_int_equal(kube_queue_is_over(q), 0);
    kube_queue_done(q, "c");
    queue_now_ms += 60000;
    assert_null(kube_queue_get(q));
    assert_int_equal(kube_queue_is_over(q), 1);

    kube_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


/* One that was due, and is delayed anew before it is got: it comes twice. */
static void
test_queue_delayed_again(void **state)
{
    alloc_test_t   at;
    kube_queue_t  *q;

    (void) state;

    q = queue_make(&at, 4);

    assert_int_equal(kube_queue_add_after(q, "a", 5), KUBE_E_OK);
    assert_int_equal(kube_queue_add_after(q, "b", 6), KUBE_E_OK);
    queue_now_ms += 6;
    assert_string_equal(kube_queue_get(q), "a");
    assert_int_equal(kube_queue_add_after(q, "b", 50), KUBE_E_OK);
    kube_queue_done(q, "a");
    assert_string_equal(kube_queue_get(q), "b");
    kube_queue_done(q, "b");
    assert_null(kube_queue_get(q));

    queue_now_ms += 49;
    assert_null(kube_queue_get(q));
    queue_now_ms += 1;
    assert_string_equal(kube_queue_get(q), "b");
    kube_queue_done(q, "b");
    assert_null(kube_queue_get(q));
    assert_int_equal(kube_queue_deadline_ms(q), KUBE_FOREVER);

    kube_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


/* Its sources and the others stay whole: what was told once memory was back. */
static void
oom_informers(alloc_test_t *at, void *ctx)
{
    int                      rc;
    bed_t                    b;
    told_t                   told;
    const kube_v1_object_t  *o;

    (void) ctx;

    rc = bed_make(&b, &at->alloc);
    alloc_test_assert_rc(at, (kube_rc_t) rc);

    if (rc == KUBE_E_OK) {
        rc = told_try(&told, &b, told_filter);
        alloc_test_assert_rc(at, (kube_rc_t) rc);
    }

    if (rc == KUBE_E_OK) {
        rc = kube_informer_add_index(b.services, "port", index_port, "ctx");
        alloc_test_assert_rc(at, (kube_rc_t) rc);
    }

    if (rc == KUBE_E_OK) {
        bed_put(&b, "shop", "a", 1);
        assert_int_equal(kube_start(b.kube), KUBE_E_OK);
        bed_settle(&b);

        rc = kube_informer_get(b.services, "shop", "a", &o);

        if (rc == KUBE_E_OK) {
            kube_v1_object_release(o);

        } else if (rc != KUBE_E_NOT_FOUND || !at->failed) {
            alloc_test_assert_rc(at, (kube_rc_t) rc);
        }

        if (!at->failed) {
            assert_told(&told, "+a!");
        }
    }

    bed_done(&b);
}


static void
oom_queue(alloc_test_t *at, void *ctx)
{
    int               rc;
    kube_queue_t     *q;
    kube_lib_env_t    env;

    (void) ctx;

    env = queue_env(&at->alloc);
    q = kube_lib_queue_create(&env, 4);

    if (q == NULL) {
        assert_true(at->failed);
        return;
    }

    rc = ALLOC_TEST_AGAIN(at, (kube_rc_t) kube_queue_add(q, "a"));
    rc |= ALLOC_TEST_AGAIN(at, (kube_rc_t) kube_queue_add_after(q, "b", 5));
    rc |= ALLOC_TEST_AGAIN(at, (kube_rc_t) kube_queue_add_failed(q, "c"));

    if (rc == KUBE_E_OK) {
        queue_now_ms += 100;
        assert_string_equal(kube_queue_get(q), "a");
        assert_non_null(kube_queue_get(q));
        assert_non_null(kube_queue_get(q));
    }

    kube_queue_destroy(q);
}


/* What a handler could not be shown for want of memory it is told later. */
static void
test_no_memory_for_handler(void **state)
{
    bed_t         b;
    told_t        told;
    alloc_test_t  at;

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(bed_make(&b, &at.alloc), KUBE_E_OK);
    bed_put(&b, "shop", "a", 1);
    assert_int_equal(kube_start(b.kube), KUBE_E_OK);
    bed_settle(&b);
    assert_int_equal(told_try(&told, &b, NULL), KUBE_E_OK);

    alloc_test_fail(&at, 1, true);
    bed_settle(&b);
    assert_true(at.failed);
    assert_told(&told, "");
    assert_true(kube_deadline_ms(b.kube) <= kube_now_ms() + 1000);

    alloc_test_heal(&at);
    kube_process(b.kube);
    assert_told(&told, "+a!");
    bed_done(&b);
    alloc_test_assert_no_leak(&at);
}


static void
test_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(oom_informers, NULL);
    ALLOC_TEST_RUN(oom_queue, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_handlers),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_io),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_queue_due),
        cmocka_unit_test(test_queue_delayed_again),
        cmocka_unit_test(test_no_memory_for_handler),
        cmocka_unit_test(test_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

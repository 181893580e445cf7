/*
 * test_lib_source - the library for programs over sources of their own: each
 * resource as it is put and as it is shown, transforms, errors of watches, and
 * memory that fails.
 *
 * An object that was read from a store and put into another source is the same
 * there: what goes in comes out.  The rest of kube.h is in test_lib.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_lib.h"


#define RESOURCES  (KUBE_V1_POD + 1)

typedef struct {
    alloc_test_t          own;
    kube_lib_env_t        env;
    kube_local_source_t  *sources[RESOURCES];
    kube_informer_t      *informers[RESOURCES];
    kube_t               *kube;
    char                  why[128];
    char                  errors[128];   /* of watches: "services reason" */
} bed_t;

static const kube_v1_port_t  ports[] = {
    { "http", "", 8080, KUBE_V1_TCP },
    { "dns", "kubernetes.io/dns", 53, KUBE_V1_UDP }
};

static const kube_v1_endpoint_t  ipv4[] = {
    { "10.0.0.1", 1, 1, 0, "web-1", "node-a", "zone-a" },
    { "10.0.0.2", 0, 1, 1, "web-2", "node-b", "zone-a" }
};

static const kube_v1_endpoint_t  ipv6[] = {
    { "2001:db8::1", 1, 1, 0, NULL, NULL, NULL }
};

static const kube_v1_subset_t  subsets[] = {
    { 4, &ports[0], 1, ipv4, 2 },
    { 0, &ports[1], 1, NULL, 0 },
    { 6, &ports[1], 1, ipv6, 1 }
};

static const kube_v1_label_t  labels[] = {
    { "tier", "front" }, { "app", "web" }, { "canary", NULL }
};

static const kube_v1_service_t  web_service = {
    KUBE_V1_NODE_PORT, 0, { "10.96.0.1", "fd00::1" }, 2, ports, 2
};

static const kube_v1_endpointslice_t  web_slice = {
    .service = "web", .family = 4, .ports = ports, .ports_n = 2,
    .endpoints = ipv4, .endpoints_n = 2
};

static const kube_v1_endpointslice_t  web_endpoints = {
    .subsets = subsets, .subsets_n = 3
};

static const kube_v1_metadata_t  web_pod = { labels, 3, 1772323200000 };

static const kube_v1_object_t  objects[RESOURCES] = {
    { .resource = KUBE_V1_SERVICE, .ns = "shop", .name = "web",
      .service = &web_service },
    { .resource = KUBE_V1_ENDPOINTSLICE, .ns = "shop", .name = "web-abc",
      .slice = &web_slice },
    { .resource = KUBE_V1_ENDPOINTS, .ns = "shop", .name = "web",
      .slice = &web_endpoints },
    { .resource = KUBE_V1_POD, .ns = "shop", .name = "web-1",
      .uid = "u-1", .metadata = &web_pod }
};


static uint64_t  bed_ahead_ms;


static uint64_t
bed_now(void *ctx)
{
    (void) ctx;

    return kube_now_ms() + bed_ahead_ms;
}


static void
bed_watch_error(void *ctx, kube_informer_t *informer, const char *reason,
    const char *message)
{
    bed_t  *b = ctx;

    assert_true(message[0] != '\0');
    (void) snprintf(b->errors, sizeof(b->errors), "%s %s",
                    kube_informer_name(informer), reason);
}


/* alloc NULL: the bed's own. */
static int
bed_make(bed_t *b, const kube_alloc_t *alloc, const kube_options_t *from)
{
    int             rc;
    size_t          i;
    kube_options_t  options;

    memset(b, 0, sizeof(bed_t));
    alloc_test_init(&b->own);

    b->env = (kube_lib_env_t) {
        .alloc = (alloc != NULL) ? *alloc : b->own.alloc,
        .now = bed_now
    };

    for (i = 0; i < RESOURCES; i++) {
        b->sources[i] = kube_lib_local_source_create(&b->env,
                                                     (kube_v1_resource_t) i,
                                                     8);
        if (b->sources[i] == NULL) {
            return KUBE_E_NOMEM;
        }
    }

    options = *from;
    options.size = sizeof(options);
    options.sources = b->sources;
    options.sources_n = RESOURCES;
    options.watch_error = bed_watch_error;
    options.watch_error_ctx = b;

    rc = kube_lib_create(&b->env, &options, &b->kube, b->why,
                         sizeof(b->why));

    for (i = 0; rc == KUBE_E_OK && i < RESOURCES; i++) {
        rc = kube_informer(b->kube, (kube_v1_resource_t) i, NULL,
                           &b->informers[i]);
    }

    return (rc == KUBE_E_OK) ? kube_start(b->kube) : rc;
}


static void
bed_done(bed_t *b)
{
    size_t  i;

    kube_destroy(b->kube);

    for (i = 0; i < RESOURCES; i++) {
        kube_local_source_destroy(b->sources[i]);
    }

    alloc_test_assert_no_leak(&b->own);
}


/* Until nothing is due now. */
static void
bed_settle(bed_t *b)
{
    unsigned  n;

    for (n = 0; n < 10000; n++) {
        kube_process(b->kube);

        if (kube_deadline_ms(b->kube) > bed_now(NULL)) {
            return;
        }
    }

    fail_msg("it never settles");
}


static void
check_port(const kube_v1_port_t *port, const kube_v1_port_t *expected)
{
    assert_string_equal(port->name, expected->name);
    assert_string_equal(port->app_protocol, expected->app_protocol);
    assert_int_equal(port->port, expected->port);
    assert_int_equal(port->protocol, expected->protocol);
}


static void
check_object(const kube_v1_object_t *o)
{
    const kube_v1_endpointslice_t  *slice;

    assert_string_equal(o->ns, "shop");
    assert_true(o->uid[0] != '\0' && o->rv[0] != '\0');
    slice = o->slice;

    switch (o->resource) {

    case KUBE_V1_SERVICE:
        assert_true(o->slice == NULL && o->metadata == NULL);
        assert_int_equal(o->service->type, KUBE_V1_NODE_PORT);
        assert_string_equal(o->service->cluster_ips[1], "fd00::1");
        check_port(&o->service->ports[1], &ports[1]);
        assert_null(kube_v1_label(o, "app"));
        break;

    case KUBE_V1_ENDPOINTSLICE:
        assert_string_equal(slice->service, "web");
        assert_int_equal(slice->subsets_n, 1);
        assert_ptr_equal(slice->subsets[0].ports, slice->ports);
        assert_ptr_equal(slice->subsets[0].endpoints, slice->endpoints);
        assert_int_equal(slice->subsets[0].endpoints_n, 2);
        assert_int_equal(slice->subsets[0].family, 4);
        assert_string_equal(slice->endpoints[1].zone, "zone-a");
        break;

    case KUBE_V1_ENDPOINTS:
        assert_string_equal(slice->service, "web");
        assert_int_equal(slice->subsets_n, 2);
        assert_int_equal(slice->endpoints_n, 3);
        assert_int_equal(slice->subsets[0].family, 4);
        check_port(&slice->subsets[0].ports[0], &ports[0]);
        assert_string_equal(slice->subsets[0].endpoints[1].pod, "web-2");
        assert_int_equal(slice->subsets[1].family, 6);
        assert_int_equal(slice->subsets[1].ports_n, 1);
        check_port(&slice->subsets[1].ports[0], &ports[1]);
        assert_string_equal(slice->subsets[1].endpoints[0].address,
                            "2001:db8::1");
        break;

    case KUBE_V1_POD:
        assert_true(o->slice == NULL && o->service == NULL);
        assert_string_equal(o->uid, "u-1");
        assert_int_equal(o->metadata->labels_n, 3);
        assert_string_equal(o->metadata->labels[0].name, "app");
        assert_string_equal(o->metadata->labels[2].name, "tier");
        assert_string_equal(kube_v1_label(o, "tier"), "front");
        assert_string_equal(kube_v1_label(o, "canary"), "");
        assert_null(kube_v1_label(o, "none"));
        assert_int_equal(o->metadata->deletion_ms, 1772323200000);
        break;
    }
}


static void
test_in_and_out(void **state)
{
    bed_t                    b, other;
    size_t                   i;
    const kube_v1_object_t  *o;

    (void) state;

    assert_int_equal(bed_make(&b, NULL, &(kube_options_t) { 0 }), 0);
    assert_int_equal(bed_make(&other, NULL, &(kube_options_t) { 0 }), 0);

    for (i = 0; i < RESOURCES; i++) {
        assert_int_equal(kube_local_source_put(b.sources[i], &objects[i]),
                         0);
        bed_settle(&b);
        assert_int_equal(kube_informer_get(b.informers[i], "shop",
                                           objects[i].name, &o), 0);
        check_object(o);
        assert_string_equal(kube_informer_rv(b.informers[i]), "2");

        /* a source has bookmarks to send, as a server */
        assert_true(kube_deadline_ms(b.kube)
                    <= kube_now_ms() + KUBE_MEMORY_BOOKMARK_MS);

        assert_int_equal(kube_local_source_put(other.sources[i], o), 0);
        kube_v1_object_release(o);
        bed_settle(&other);
        assert_int_equal(kube_informer_get(other.informers[i], "shop",
                                           objects[i].name, &o), 0);
        check_object(o);
        kube_v1_object_release(o);

        assert_int_equal(kube_local_source_remove(b.sources[i], "shop",
                                                  objects[i].name), 0);
        assert_int_equal(kube_local_source_remove(b.sources[i], "shop",
                                                  objects[i].name),
                         KUBE_E_NOT_FOUND);
        bed_settle(&b);
        assert_int_equal(kube_informer_count(b.informers[i]), 0);
        assert_string_equal(kube_informer_rv(b.informers[i]), "3");
    }

    bed_done(&b);
    bed_done(&other);
}


/* How long the loop sleeps until there are so many; and how often, at most. */
static uint64_t
bed_slept(bed_t *b, size_t n, unsigned naps_max)
{
    unsigned  naps;
    uint64_t  now_ms, deadline_ms, slept_ms;

    naps = 0;
    slept_ms = 0;

    for ( ;; ) {
        kube_process(b->kube);

        if (kube_informer_count(b->informers[KUBE_V1_POD]) == n) {
            return slept_ms;
        }

        now_ms = bed_now(NULL);
        deadline_ms = kube_deadline_ms(b->kube);

        if (deadline_ms > now_ms) {
            slept_ms += deadline_ms - now_ms;
            bed_ahead_ms += deadline_ms - now_ms;
            assert_true(++naps <= naps_max);
        }
    }
}


/*
 * Above changes_max changes at once are listed anew, in milliseconds: there is
 * no server to be spared.  It does not spin either.
 */
static void
test_burst(void **state)
{
    bed_t             b;
    char              name[16];
    unsigned          round, i;
    uint64_t          slept_ms;
    kube_v1_object_t  pod;

    (void) state;

    bed_ahead_ms = 0;
    slept_ms = 0;
    assert_int_equal(bed_make(&b, NULL, &(kube_options_t) { 0 }), 0);
    bed_settle(&b);

    pod = objects[KUBE_V1_POD];
    pod.uid = NULL;
    pod.name = name;

    for (round = 0; round < 20; round++) {

        for (i = 0; i < 20; i++) {
            (void) snprintf(name, sizeof(name), "p-%u-%u", round, i);
            assert_int_equal(kube_local_source_put(b.sources[KUBE_V1_POD],
                                                   &pod), 0);
        }

        slept_ms += bed_slept(&b, (round + 1) * 20, 2);
        bed_settle(&b);
        assert_string_equal(kube_informer_error(b.informers[KUBE_V1_POD]),
                            "");
    }

    assert_string_equal(b.errors, "pods expired");

    /* 1 ms, which doubles up to 20 */

    assert_in_range(slept_ms, 20, 20 * 20);

    bed_ahead_ms = 0;
    bed_done(&b);
}


static void
test_refused(void **state)
{
    bed_t   b;
    size_t  i;

    static const kube_v1_endpoint_t  bad_endpoint = { .address = "10.0.0" };
    static const kube_v1_label_t     twice[] = { { "a", "" }, { "a", "b" } };
    static const kube_v1_label_t     no_name = { NULL, "a" };
    static const kube_v1_port_t      bad_port = { .port = 80, .protocol = 7 };
    static const kube_v1_port_t      no_port = { .name = "http" };

    static const kube_v1_service_t  bad_services[] = {
        { .type = 9 },
        { .cluster_ips_n = 3 },
        { .cluster_ips = { "x" }, .cluster_ips_n = 1 },
        { .ports = &bad_port, .ports_n = 1 },
        { .ports_n = 1 },
        { .ports = &no_port, .ports_n = 1 }
    };

    static const kube_v1_subset_t  bad_subset = {
        .family = 4, .ports = &no_port, .ports_n = 1, .endpoints = ipv4,
        .endpoints_n = 1
    };

    static const kube_v1_endpointslice_t  bad_slices[] = {
        { .family = 5 },
        { .family = 4, .endpoints = &bad_endpoint, .endpoints_n = 1 },
        { .family = 6, .endpoints = ipv4, .endpoints_n = 1 },
        { .endpoints = ipv4, .endpoints_n = 1 },
        { .family = 4, .endpoints = ipv4,
          .endpoints_n = KUBE_SLICE_ENDPOINTS_MAX + 1 },
        { .family = 4, .ports_n = 1 },
        { .family = 4, .endpoints_n = 1 },
        { .subsets_n = 1 },
        { .subsets = &bad_subset, .subsets_n = 1 }
    };

    static const kube_v1_metadata_t  bad_pods[] = {
        { twice, 2, 0 }, { &no_name, 1, 0 }, { labels, 257, 0 },
        { NULL, 1, 0 }
    };

    static const struct {
        kube_v1_object_t  object;
        size_t            source;
    } cases[] = {
        { { .ns = "shop", .name = "a" }, 0 },
        { { .ns = "shop", .name = "a" }, 1 },
        { { .ns = "", .name = "a", .service = &web_service }, 0 },
        { { .ns = "shop", .name = "A", .service = &web_service }, 0 },
        { { .ns = "shop", .name = "a", .service = &bad_services[0] }, 0 },
        { { .ns = "shop", .name = "a", .service = &bad_services[1] }, 0 },
        { { .ns = "shop", .name = "a", .service = &bad_services[2] }, 0 },
        { { .ns = "shop", .name = "a", .service = &bad_services[3] }, 0 },
        { { .resource = 1, .ns = "a", .name = "a", .slice = bad_slices }, 1 },
        { { .resource = 1, .ns = "a", .name = "a",
            .slice = &bad_slices[1] }, 1 },
        { { .resource = 1, .ns = "a", .name = "a",
            .slice = &bad_slices[2] }, 1 },
        { { .resource = 1, .ns = "a", .name = "a",
            .slice = &bad_slices[3] }, 1 },
        { { .resource = 1, .ns = "a", .name = "a",
            .slice = &bad_slices[4] }, 1 },
        { { .resource = 3, .ns = "a", .name = "a",
            .metadata = &bad_pods[0] }, 3 },
        { { .resource = 3, .ns = "a", .name = "a",
            .metadata = &bad_pods[1] }, 3 },
        { { .resource = 3, .ns = "a", .name = "a",
            .metadata = &bad_pods[2] }, 3 },
        { { .ns = "shop", .name = "a", .service = &bad_services[4] }, 0 },
        { { .resource = 1, .ns = "a", .name = "a",
            .slice = &bad_slices[5] }, 1 },
        { { .resource = 1, .ns = "a", .name = "a",
            .slice = &bad_slices[6] }, 1 },
        { { .resource = 2, .ns = "a", .name = "a",
            .slice = &bad_slices[7] }, 2 },
        { { .resource = 3, .ns = "a", .name = "a",
            .metadata = &bad_pods[3] }, 3 },
        { { .ns = "shop", .name = "a", .service = &bad_services[5] }, 0 },
        { { .resource = 2, .ns = "a", .name = "a",
            .slice = &bad_slices[8] }, 2 }
    };

    (void) state;

    assert_null(kube_local_source_create((kube_v1_resource_t) 4, 0));
    assert_null(kube_local_source_create(KUBE_V1_POD, 1000001));
    assert_int_equal(bed_make(&b, NULL, &(kube_options_t) { 0 }), 0);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (kube_local_source_put(b.sources[cases[i].source],
                                  &cases[i].object) != KUBE_E_INVALID)
        {
            fail_msg("case %zu", i);
        }
    }

    bed_done(&b);
}


typedef struct {
    unsigned  resyncs;
    unsigned  updates;
    int       hidden;
} resynced_t;


static void
resynced_updated(void *ctx, const kube_v1_object_t *old_object,
    const kube_v1_object_t *new_object)
{
    resynced_t  *r = ctx;

    if (old_object == new_object) {
        r->resyncs++;

    } else {
        r->updates++;
        assert_string_not_equal(old_object->rv, new_object->rv);
    }
}


static int
resynced_filter(void *ctx, const kube_v1_object_t *o)
{
    (void) o;

    return !((resynced_t *) ctx)->hidden;
}


/* A resync is the same object twice; no period is too long for the clock. */
static void
test_resync(void **state)
{
    bed_t            b;
    size_t           i;
    resynced_t       r, hidden;
    kube_handlers_t  handlers = {
        .size = sizeof(handlers),
        .updated = resynced_updated,
        .filter = resynced_filter
    };

    static const uint64_t  periods[] = {
        5000, KUBE_FOREVER, KUBE_FOREVER - 1, KUBE_FOREVER / 2
    };

    (void) state;

    for (i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
        bed_ahead_ms = 0;
        memset(&r, 0, sizeof(r));
        hidden = (resynced_t) { .hidden = 1 };

        assert_int_equal(bed_make(&b, NULL, &(kube_options_t) {
                                      .resync_ms = periods[i]
                                  }), KUBE_E_OK);
        handlers.ctx = &r;
        assert_int_equal(kube_informer_add_handlers(b.informers[0], &handlers,
                                                    NULL), KUBE_E_OK);
        handlers.ctx = &hidden;
        assert_int_equal(kube_informer_add_handlers(b.informers[0], &handlers,
                                                    NULL), KUBE_E_OK);
        assert_int_equal(kube_local_source_put(b.sources[0], &objects[0]), 0);
        bed_settle(&b);

        bed_ahead_ms = 6000;
        bed_settle(&b);
        assert_int_equal(r.resyncs, i == 0);

        assert_int_equal(kube_local_source_put(b.sources[0], &objects[0]), 0);
        bed_settle(&b);
        assert_int_equal(hidden.resyncs + hidden.updates, 0);

        bed_done(&b);
    }

    bed_ahead_ms = 0;
}


static int
visit_count(void *ctx, const kube_v1_object_t *o)
{
    (void) o;
    ++*(unsigned *) ctx;

    return 0;
}


static unsigned
found(const kube_informer_t *informer, const char *index, const char *value)
{
    unsigned  n;

    n = 0;
    assert_int_equal(kube_informer_by_index(informer, index, value,
                                            visit_count, &n), 0);
    return n;
}


static void
test_label_index(void **state)
{
    char              text[KUBE_LABEL_NAME_MAX + 1 + KUBE_LABEL_VALUE_MAX + 1];
    bed_t             b;
    kube_v1_label_t   longest;
    kube_v1_object_t  pod;

    (void) state;

    assert_int_equal(bed_make(&b, NULL, &(kube_options_t) { 0 }), 0);
    assert_int_equal(kube_local_source_put(b.sources[KUBE_V1_POD],
                                           &objects[KUBE_V1_POD]), 0);
    bed_settle(&b);
    assert_int_equal(kube_informer_add_index(b.informers[KUBE_V1_POD],
                                             "label", NULL, NULL), 0);
    assert_int_equal(kube_informer_add_index(b.informers[KUBE_V1_POD],
                                             "namespace", NULL, NULL), 0);
    assert_int_equal(kube_informer_add_index(b.informers[KUBE_V1_SERVICE],
                                             "label", NULL, NULL), 0);
    assert_int_equal(found(b.informers[KUBE_V1_POD], "label", "app=web"), 1);
    assert_int_equal(found(b.informers[KUBE_V1_POD], "label", "canary="), 1);
    assert_int_equal(found(b.informers[KUBE_V1_POD], "label", "app"), 0);
    assert_int_equal(found(b.informers[KUBE_V1_POD], "namespace", "shop"), 1);

    /* the longest that Kubernetes takes */
    memset(text, 'a', sizeof(text) - 1);
    text[KUBE_NAME_LEN_MAX] = '/';
    text[KUBE_LABEL_NAME_MAX] = '\0';
    text[sizeof(text) - 1] = '\0';

    longest.name = text;
    longest.value = text + KUBE_LABEL_NAME_MAX + 1;
    pod = objects[KUBE_V1_POD];
    pod.name = "longest";
    pod.metadata = &(kube_v1_metadata_t) { &longest, 1, 0 };
    assert_int_equal(kube_local_source_put(b.sources[KUBE_V1_POD], &pod), 0);
    bed_settle(&b);
    text[KUBE_LABEL_NAME_MAX] = '=';
    assert_int_equal(found(b.informers[KUBE_V1_POD], "label", text), 1);
    assert_int_equal(kube_local_source_remove(b.sources[KUBE_V1_POD], pod.ns,
                                              pod.name), 0);

    /* its labels go, it stays */
    pod = objects[KUBE_V1_POD];
    pod.metadata = &(kube_v1_metadata_t) { NULL, 0, 0 };
    assert_int_equal(kube_local_source_put(b.sources[KUBE_V1_POD], &pod), 0);
    bed_settle(&b);
    assert_int_equal(found(b.informers[KUBE_V1_POD], "label", "app=web"), 0);
    assert_int_equal(found(b.informers[KUBE_V1_POD], "namespace", "shop"), 1);
    assert_int_equal(kube_informer_index_errors(b.informers[KUBE_V1_POD]), 0);
    bed_done(&b);
}


/* Refuses what is named so, drops half of slices, and names Pods' labels. */
static int
transform(void *ctx, kube_v1_object_t *o)
{
    static kube_v1_label_t          one;
    static kube_v1_metadata_t       metadata;
    static kube_v1_endpointslice_t  slice;

    ++*(unsigned *) ctx;

    if (strcmp(o->name, "refused") == 0) {
        return -1;
    }

    if (o->resource == KUBE_V1_ENDPOINTSLICE) {
        slice = *o->slice;
        slice.endpoints_n = 1;
        o->slice = &slice;
    }

    if (o->resource == KUBE_V1_POD) {
        one.name = "only";
        one.value = o->name;
        metadata.labels = &one;
        metadata.labels_n = 1;
        o->metadata = &metadata;
        o->name = "another";
    }

    return 0;
}


static void
count_updated(void *ctx, const kube_v1_object_t *old,
    const kube_v1_object_t *new)
{
    assert_string_not_equal(old->rv, new->rv);
    ++*(unsigned *) ctx;
}


static int
index_all(void *ctx, const kube_v1_object_t *object, kube_values_t *values)
{
    (void) ctx;
    (void) object;

    kube_value(values, "all");

    return 0;
}


/* A put is a new version, whatever it changes and is left of it. */
static void
test_new_version(void **state)
{
    bed_t                    b;
    unsigned                 calls, updates;
    kube_v1_object_t         less;
    kube_v1_endpointslice_t  slice;
    const kube_v1_object_t  *o, *same;
    kube_handlers_t          handlers = { .size = sizeof(handlers) };

    (void) state;

    calls = 0;
    updates = 0;
    assert_int_equal(bed_make(&b, NULL, &(kube_options_t) {
                                  .transform = transform,
                                  .transform_ctx = &calls }), 0);

    handlers.updated = count_updated;
    handlers.ctx = &updates;
    assert_int_equal(kube_informer_add_handlers(b.informers[1], &handlers,
                                                NULL), 0);
    assert_int_equal(kube_local_source_put(b.sources[1], &objects[1]), 0);
    bed_settle(&b);
    assert_int_equal(updates, 0);

    assert_int_equal(kube_local_source_put(b.sources[1], &objects[1]), 0);
    bed_settle(&b);
    assert_int_equal(updates, 1);

    /* the second endpoint is what the transform drops */

    less = objects[1];
    slice = *less.slice;
    slice.endpoints_n = 1;
    less.slice = &slice;
    assert_int_equal(kube_local_source_put(b.sources[1], &less), 0);
    bed_settle(&b);
    assert_int_equal(updates, 2);

    assert_int_equal(kube_informer_get(b.informers[1], "shop", "web-abc", &o),
                     0);
    assert_int_equal(kube_informer_get(b.informers[1], "shop", "web-abc",
                                       &same), 0);
    assert_ptr_not_equal(o, same);
    assert_string_equal(o->rv, same->rv);
    kube_v1_object_release(o);
    kube_v1_object_release(same);

    /* indexes of a name that is there, and of what a slice does not have */

    assert_int_equal(kube_informer_add_index(b.informers[1], "service",
                                             index_all, NULL), 0);
    assert_int_equal(kube_informer_add_index(b.informers[1], "service", NULL,
                                             NULL), KUBE_E_INVALID);
    assert_int_equal(kube_informer_add_index(b.informers[1], "label", NULL,
                                             NULL), 0);
    assert_int_equal(found(b.informers[1], "service", "all"), 1);
    assert_int_equal(found(b.informers[1], "service", "shop/web"), 0);
    assert_int_equal(found(b.informers[1], "label", "app=web"), 0);
    bed_done(&b);
}


static void
test_transform(void **state)
{
    bed_t                    b;
    unsigned                 calls;
    kube_v1_object_t         refused;
    const kube_v1_object_t  *o;

    (void) state;

    calls = 0;
    assert_int_equal(bed_make(&b, NULL, &(kube_options_t) {
                                  .transform = transform,
                                  .transform_ctx = &calls }), 0);
    refused = objects[KUBE_V1_SERVICE];
    refused.name = "refused";
    assert_int_equal(kube_local_source_put(b.sources[0], &refused), 0);
    assert_int_equal(kube_local_source_put(b.sources[0], &objects[0]), 0);
    assert_int_equal(kube_local_source_put(b.sources[1], &objects[1]), 0);
    assert_int_equal(kube_local_source_put(b.sources[2], &objects[2]), 0);
    assert_int_equal(kube_local_source_put(b.sources[3], &objects[3]), 0);
    bed_settle(&b);
    assert_int_equal(calls, 5);

    assert_int_equal(kube_informer_count(b.informers[0]), 1);
    assert_int_equal(kube_informer_refused(b.informers[0]), 1);
    assert_int_equal(kube_informer_get(b.informers[0], "shop", "web", &o), 0);
    check_object(o);
    kube_v1_object_release(o);
    assert_int_equal(kube_informer_get(b.informers[1], "shop", "web-abc", &o),
                     0);
    assert_int_equal(o->slice->endpoints_n, 1);
    kube_v1_object_release(o);
    assert_int_equal(kube_informer_get(b.informers[2], "shop", "web", &o), 0);
    check_object(o);
    kube_v1_object_release(o);
    assert_int_equal(kube_informer_get(b.informers[3], "shop", "web-1", &o),
                     0);
    assert_string_equal(kube_v1_label(o, "only"), "web-1");
    assert_int_equal(o->metadata->labels_n, 1);
    kube_v1_object_release(o);
    bed_done(&b);
}


static void
test_watch_error(void **state)
{
    bed_t     b;
    unsigned  n;

    (void) state;

    assert_int_equal(bed_make(&b, NULL, &(kube_options_t) { 0 }), 0);
    kube_memory_source_refuse(b.sources[KUBE_V1_POD]->memory, false, 100, 403,
                              0);
    kube_memory_source_refuse(b.sources[KUBE_V1_POD]->memory, true, 100, 403,
                              0);

    for (n = 0; n < 1000 && b.errors[0] == '\0'; n++) {
        kube_process(b.kube);
    }

    assert_string_equal(b.errors, "pods forbidden");
    assert_int_equal(kube_wait_for_sync(b.kube, 10, b.why, sizeof(b.why)),
                     KUBE_E_TIMEOUT);
    assert_non_null(strstr(b.why, "pods"));
    bed_done(&b);
}


static void
test_options(void **state)
{
    bed_t                 b;
    kube_t               *kube;
    kube_options_t        options;
    kube_informer_t      *informer;
    kube_local_source_t  *pods, *two[2];

    (void) state;

    pods = kube_local_source_create(KUBE_V1_POD, 0);
    assert_non_null(pods);
    two[0] = pods;
    two[1] = pods;

    /* without a server what has no source is not there */
    memset(&options, 0, sizeof(options));
    options.size = sizeof(options);
    options.sources = two;
    options.sources_n = 1;
    assert_int_equal(kube_create(&options, &kube, b.why, sizeof(b.why)), 0);
    assert_int_equal(kube_informer(kube, KUBE_V1_SERVICE, NULL, &informer),
                     KUBE_E_NOT_FOUND);
    assert_int_equal(kube_informer(kube, KUBE_V1_POD, "Shop", &informer),
                     KUBE_E_INVALID);
    assert_int_equal(kube_informer(kube, KUBE_V1_POD, "shop", &informer), 0);
    assert_string_equal(kube_informer_rv(informer), "");
    kube_destroy(kube);

    /* with one both are */
    options.server = "http://127.0.0.1:1";
    assert_int_equal(kube_create(&options, &kube, b.why, sizeof(b.why)), 0);
    assert_int_equal(kube_informer(kube, KUBE_V1_SERVICE, NULL, &informer),
                     0);
    kube_destroy(kube);

    options.sources_n = 2;
    assert_int_equal(kube_create(&options, &kube, b.why, sizeof(b.why)),
                     KUBE_E_INVALID);
    assert_non_null(strstr(b.why, "two sources"));

    /* a program that was compiled with the first header has none of it */
    options.size = KUBE_LIB_OPTIONS_FIRST;
    assert_int_equal(kube_create(&options, &kube, b.why, sizeof(b.why)), 0);
    kube_destroy(kube);

    options.size = KUBE_LIB_OPTIONS_FIRST - 1;
    assert_int_equal(kube_create(&options, &kube, b.why, sizeof(b.why)),
                     KUBE_E_INVALID);
    options.size = sizeof(options) + 1;
    assert_int_equal(kube_create(&options, &kube, b.why, sizeof(b.why)),
                     KUBE_E_INVALID);
    kube_local_source_destroy(pods);
    kube_local_source_destroy(NULL);
}


static uint64_t  queue_now_ms = 1000000;


static uint64_t
queue_now(void *ctx)
{
    (void) ctx;

    return queue_now_ms;
}


static void
test_queue_metrics(void **state)
{
    alloc_test_t          at;
    kube_queue_t         *q;
    kube_lib_env_t        env;
    kube_queue_metrics_t  m = { .size = sizeof(m) };

    (void) state;

    alloc_test_init(&at);
    env = (kube_lib_env_t) { .alloc = at.alloc, .now = queue_now };
    q = kube_lib_queue_create(&env, 8);
    assert_non_null(q);

    assert_int_equal(kube_queue_metrics(q, &m), 0);
    assert_true(m.depth == 0 && m.adds_total == 0 && m.retries_total == 0);

    /* "a" waits 50 ms and is worked on for 5; "b" runs still */
    assert_int_equal(kube_queue_add(q, "a"), 0);
    assert_int_equal(kube_queue_add(q, "b"), 0);
    queue_now_ms += 50;
    assert_string_equal(kube_queue_get(q), "a");
    assert_string_equal(kube_queue_get(q), "b");
    queue_now_ms += 5;
    assert_int_equal(kube_queue_add_failed(q, "a"), 0);
    kube_queue_done(q, "a");
    queue_now_ms += 2;

    assert_int_equal(kube_queue_metrics(q, &m), 0);
    assert_int_equal(m.adds_total, 2);
    assert_int_equal(m.retries_total, 1);
    assert_int_equal(m.queue_duration.count, 2);
    assert_int_equal(m.queue_duration.sum_ms, 100);
    assert_int_equal(m.queue_duration.buckets[2], 2);
    assert_int_equal(m.work_duration.count, 1);
    assert_int_equal(m.work_duration.sum_ms, 5);
    assert_int_equal(m.work_duration.buckets[1], 1);
    assert_int_equal(m.unfinished_work_ms, 7);
    assert_int_equal(m.longest_running_ms, 7);

    m.size--;
    assert_int_equal(kube_queue_metrics(q, &m), KUBE_E_INVALID);
    kube_queue_destroy(q);
    alloc_test_assert_no_leak(&at);
}


/* What was told stays true; once there is memory again all of it is there. */
static void
oom_sources(alloc_test_t *at, void *ctx)
{
    int       rc;
    bed_t     b;
    size_t    i;
    unsigned  calls;

    (void) ctx;

    calls = 0;
    rc = bed_make(&b, &at->alloc, &(kube_options_t) {
                      .transform = transform, .transform_ctx = &calls });
    alloc_test_assert_rc(at, (kube_rc_t) rc);

    for (i = 0; rc == KUBE_E_OK && i < RESOURCES; i++) {
        rc = kube_local_source_put(b.sources[i], &objects[i]);
        alloc_test_assert_rc(at, (kube_rc_t) rc);
    }

    if (rc == KUBE_E_OK) {
        bed_settle(&b);

        for (i = 0; i < RESOURCES; i++) {
            assert_int_equal(kube_informer_refused(b.informers[i]), 0);
            assert_true(at->failed || kube_informer_count(b.informers[i]));
        }
    }

    bed_done(&b);
}


static void
test_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(oom_sources, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_in_and_out),
        cmocka_unit_test(test_burst),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_label_index),
        cmocka_unit_test(test_new_version),
        cmocka_unit_test(test_transform),
        cmocka_unit_test(test_watch_error),
        cmocka_unit_test(test_resync),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_queue_metrics),
        cmocka_unit_test(test_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

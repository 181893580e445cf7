/*
 * offers - what the installed library offers beside lists and watches of a
 * server, from outside: sources, Endpoints, Pods, transform, filter, errors of
 * watches, waits, metrics of a queue.
 *
 *     offers SERVER
 *
 * SERVER is one that refuses Pods; Services come from a source.  It ends with
 * 0, or names the line that was not so.  For t/test_lib.py.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kube/kube.h>


#define IS(condition)                                                         \
    if (!(condition)) {                                                       \
        fprintf(stderr, "offers: %d: %s\n", __LINE__, #condition);            \
        exit(1);                                                              \
    }

typedef struct {
    char  text[256];
} told_t;


static void
added(void *ctx, const kube_v1_object_t *object, int in_initial_list)
{
    told_t  *told = ctx;

    (void) in_initial_list;
    strcat(told->text, "+");
    strcat(told->text, object->name);
}


static void
updated(void *ctx, const kube_v1_object_t *old_object,
    const kube_v1_object_t *new_object)
{
    told_t  *told = ctx;

    (void) old_object;
    strcat(told->text, "~");
    strcat(told->text, new_object->name);
}


static void
deleted(void *ctx, const kube_v1_object_t *object, int final_state_unknown)
{
    told_t  *told = ctx;

    (void) final_state_unknown;
    strcat(told->text, "-");
    strcat(told->text, object->name);
}


/* Those with a port; of a Pod those with a label. */
static int
filter(void *ctx, const kube_v1_object_t *object)
{
    (void) ctx;

    return object->service != NULL ? object->service->ports_n != 0
                                   : kube_v1_label(object, "app") != NULL;
}


/* Services lose their addresses. */
static int
transform(void *ctx, kube_v1_object_t *object)
{
    static kube_v1_service_t  service;

    if (strcmp(object->name, "bad") == 0) {
        return 1;
    }

    if (object->service != NULL) {
        service = *object->service;
        service.cluster_ips_n = 0;
        object->service = &service;
    }

    ++*(int *) ctx;

    return 0;
}


static void
watch_error(void *ctx, kube_informer_t *informer, const char *reason,
    const char *message)
{
    char  *text = ctx;

    (void) message;
    sprintf(text, "%.60s: %.60s", kube_informer_name(informer), reason);
}


/* The program's own Services, a filter, a transform. */
static void
sources(const char *server)
{
    int                       transformed = 0;
    char                      why[256], errors[128] = "";
    kube_t                   *kube;
    uint64_t                  id;
    told_t                    all = { "" }, some = { "" };
    kube_v1_port_t            port = { "http", "", 80, KUBE_V1_TCP };
    kube_v1_service_t         spec = { KUBE_V1_CLUSTER_IP, 0,
                                       { "10.0.0.1", "" }, 1, NULL, 0 };
    kube_v1_object_t          object;
    const kube_v1_object_t   *held;
    kube_informer_t          *services, *pods, *endpoints;
    kube_local_source_t      *source;
    kube_options_t            options = { .size = sizeof(options) };
    kube_handlers_t           handlers = { .size = sizeof(handlers),
                                           .added = added,
                                           .updated = updated,
                                           .deleted = deleted };

    source = kube_local_source_create(KUBE_V1_SERVICE, 0);
    IS(source != NULL);

    memset(&object, 0, sizeof(object));
    object.resource = KUBE_V1_SERVICE;
    object.ns = "shop";
    object.name = "a";
    object.service = &spec;
    IS(kube_local_source_put(source, &object) == KUBE_E_OK);
    object.name = "Bad name";
    IS(kube_local_source_put(source, &object) == KUBE_E_INVALID);
    object.name = "bad";
    IS(kube_local_source_put(source, &object) == KUBE_E_OK);

    options.server = server;
    options.sources = &source;
    options.sources_n = 1;
    options.transform = transform;
    options.transform_ctx = &transformed;
    options.watch_error = watch_error;
    options.watch_error_ctx = errors;

    IS(kube_create(&options, &kube, why, sizeof(why)) == KUBE_E_OK);
    IS(kube_informer(kube, KUBE_V1_SERVICE, NULL, &services) == KUBE_E_OK);
    IS(kube_informer(kube, KUBE_V1_ENDPOINTS, "shop", &endpoints)
       == KUBE_E_OK);

    handlers.ctx = &all;
    IS(kube_informer_add_handlers(services, &handlers, &id) == KUBE_E_OK);
    handlers.ctx = &some;
    handlers.filter = filter;
    IS(kube_informer_add_handlers(services, &handlers, NULL) == KUBE_E_OK);
    IS(kube_start(kube) == KUBE_E_OK);
    IS(kube_wait_for_sync(kube, KUBE_FOREVER, why, sizeof(why))
       == KUBE_E_OK);

    while (!kube_informer_handlers_synced(services, id)) {
        IS(kube_run_once(kube, -1) == KUBE_E_OK);
    }

    IS(strcmp(all.text, "+a") == 0 && some.text[0] == '\0');
    IS(kube_informer_refused(services) == 1 && transformed >= 2);
    IS(kube_informer_get(services, "shop", "a", &held) == KUBE_E_OK);
    IS(held->service->cluster_ips_n == 0);
    kube_v1_object_release(held);

    /* Endpoints of the server, subset by subset */
    IS(kube_informer_get(endpoints, "shop", "web", &held) == KUBE_E_OK);
    IS(held->slice->subsets_n == 2);
    IS(strcmp(held->slice->subsets[1].endpoints[0].address, "10.0.0.2")
       == 0);
    IS(held->slice->subsets[1].ports[0].port == 9090);
    kube_v1_object_release(held);

    /* an update that crosses the filter, twice */
    object.name = "a";
    spec.ports = &port;
    spec.ports_n = 1;
    IS(kube_local_source_put(source, &object) == KUBE_E_OK);

    while (some.text[0] == '\0') {
        IS(kube_run_once(kube, -1) == KUBE_E_OK);
    }

    spec.ports_n = 0;
    IS(kube_local_source_put(source, &object) == KUBE_E_OK);

    while (strcmp(some.text, "+a-a") != 0) {
        IS(kube_run_once(kube, -1) == KUBE_E_OK);
    }

    IS(strcmp(all.text, "+a~a~a") == 0);
    IS(kube_local_source_remove(source, "shop", "a") == KUBE_E_OK);

    while (strcmp(all.text, "+a~a~a-a") != 0) {
        IS(kube_run_once(kube, -1) == KUBE_E_OK);
    }

    /* what is refused is named, by its handler and by who waits */
    IS(kube_informer(kube, KUBE_V1_POD, "shop", &pods) == KUBE_E_OK);
    IS(kube_start(kube) == KUBE_E_OK);

    while (errors[0] == '\0') {
        IS(kube_run_once(kube, -1) == KUBE_E_OK);
    }

    IS(strcmp(errors, "pods in shop: forbidden") == 0);
    IS(kube_wait_for_sync(kube, 1, why, sizeof(why)) == KUBE_E_TIMEOUT);
    IS(strstr(why, "pods in shop") != NULL && strstr(why, "forbidden"));

    kube_shutdown(kube, 0);
    kube_destroy(kube);
    kube_local_source_destroy(source);
}


/* Pods, and no server at all. */
static void
pods(void)
{
    kube_t                  *kube;
    told_t                   told = { "" };
    kube_v1_label_t          label = { "app", "web" };
    kube_v1_metadata_t       metadata = { &label, 1, 0 };
    kube_v1_object_t         object;
    const kube_v1_object_t  *held;
    kube_informer_t         *informer;
    kube_local_source_t     *source;
    kube_options_t           options = { .size = sizeof(options) };
    kube_handlers_t          handlers = { .size = sizeof(handlers),
                                          .ctx = &told, .added = added,
                                          .filter = filter };

    source = kube_local_source_create(KUBE_V1_POD, 100);
    memset(&object, 0, sizeof(object));
    object.resource = KUBE_V1_POD;
    object.ns = "shop";
    object.name = "web-1";
    object.metadata = &metadata;
    IS(kube_local_source_put(source, &object) == KUBE_E_OK);

    options.sources = &source;
    options.sources_n = 1;
    IS(kube_create(&options, &kube, NULL, 0) == KUBE_E_OK);
    IS(kube_informer(kube, KUBE_V1_SERVICE, NULL, &informer)
       == KUBE_E_NOT_FOUND);
    IS(kube_informer(kube, KUBE_V1_POD, NULL, &informer) == KUBE_E_OK);
    IS(kube_informer_add_index(informer, "label", NULL, NULL) == KUBE_E_OK);
    IS(kube_informer_add_handlers(informer, &handlers, NULL) == KUBE_E_OK);
    IS(strcmp(kube_informer_rv(informer), "") == 0);
    IS(kube_start(kube) == KUBE_E_OK);
    IS(kube_wait_for_sync(kube, 60000, NULL, 0) == KUBE_E_OK);

    while (told.text[0] == '\0') {
        IS(kube_run_once(kube, -1) == KUBE_E_OK);
    }

    IS(strcmp(kube_informer_rv(informer), "2") == 0);
    IS(kube_informer_get(informer, "shop", "web-1", &held) == KUBE_E_OK);
    IS(strcmp(kube_v1_label(held, "app"), "web") == 0);
    IS(held->metadata->deletion_ms == 0);

    /* an object outlives all of it */
    kube_destroy(kube);
    kube_local_source_destroy(source);
    IS(strcmp(held->name, "web-1") == 0);
    kube_v1_object_release(held);
}


static void
queue(void)
{
    kube_queue_t          *q;
    kube_queue_metrics_t   m = { .size = sizeof(m) };

    q = kube_queue_create(10);
    IS(kube_queue_add(q, "a") == KUBE_E_OK);
    IS(kube_queue_add_failed(q, "b") == KUBE_E_OK);
    IS(kube_queue_get(q) != NULL);
    IS(kube_queue_metrics(q, &m) == KUBE_E_OK);
    IS(m.adds_total >= 1 && m.retries_total == 1);
    IS(m.queue_duration.count == 1 && m.work_duration.count == 0);
    kube_queue_done(q, "a");
    IS(kube_queue_metrics(q, &m) == KUBE_E_OK);
    IS(m.work_duration.count == 1 && m.longest_running_ms == 0);
    kube_queue_destroy(q);
}


int
main(int argc, char **argv)
{
    IS(argc == 2);
    signal(SIGPIPE, SIG_IGN);

    sources(argv[1]);
    pods();
    queue();

    return 0;
}

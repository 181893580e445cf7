/*
 * handlers - what our handlers are told of a script of changes: beside
 * client-go's (t/cluster/handlers), by t/proof/test_handlers.py.
 *
 *   handlers SCRIPT STREAM
 *
 * A line of a script: "p NAME VERSION" puts an object, "d NAME" deletes it;
 * "P" and "D" do so while no watch is told; "r" ends the watch for good, so
 * that a list follows; "s" sleeps past a resync; "a NAME KIND" adds a handler
 * (plain, odd: it sees odd versions alone, resync: each 10 s), "x NAME"
 * removes it; "!" starts the informer; "w" waits until all is told.
 *
 * A line of the stream: "HANDLER + OBJECT VERSION initial", "HANDLER ~ OBJECT
 * OLD NEW", "HANDLER - OBJECT VERSION unknown", "= N" at each wait.
 *
 * Not part of the product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kube_memory_lister_watcher.h"
#include "kube_shared_informer.h"


#define HANDLERS_MAX  64

typedef struct {
    char                  name[16];
    kube_registration_t   registration;
} handler_t;

static FILE                    *out;
static kube_memory_source_t    *source;
static kube_shared_informer_t  *informer;
static handler_t                handlers[HANDLERS_MAX];
static uint64_t                 now_ms = 1000000;


static void *
heap_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
heap_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


static void
die(const char *what)
{
    fprintf(stderr, "handlers: %s\n", what);
    exit(1);
}


static kube_rc_t
notify(void *ctx, const kube_notification_t *n)
{
    handler_t          *h = ctx;
    const kube_meta_t  *old, *new;

    old = (n->old != NULL) ? &n->old->id.meta : NULL;
    new = (n->new != NULL) ? &n->new->id.meta : NULL;

    switch (n->kind) {

    case KUBE_NOTIFY_ADDED:
        fprintf(out, "%s + %.*s %.*s %s\n", h->name,
                (int) new->name.len, new->name.data, (int) new->rv.len,
                new->rv.data, n->in_initial_list ? "true" : "false");
        break;

    case KUBE_NOTIFY_UPDATED:
        fprintf(out, "%s ~ %.*s %.*s %.*s\n", h->name,
                (int) new->name.len, new->name.data, (int) old->rv.len,
                old->rv.data, (int) new->rv.len, new->rv.data);
        break;

    case KUBE_NOTIFY_DELETED:
        fprintf(out, "%s - %.*s %.*s %s\n", h->name,
                (int) old->name.len, old->name.data, (int) old->rv.len,
                old->rv.data, n->final_state_unknown ? "true" : "false");
        break;

    case KUBE_NOTIFY_RESYNC:
        fprintf(out, "%s R\n", h->name);
    }

    return KUBE_OK;
}


static bool
is_odd(void *ctx, const kube_stored_t *stored)
{
    kube_str_t  rv;

    (void) ctx;

    rv = stored->id.meta.rv;

    return (rv.data[rv.len - 1] - '0') % 2 == 1;
}


static void
settle(void)
{
    do {
        kube_memory_source_process(source, now_ms);
        kube_shared_informer_process(informer, now_ms);
    } while (kube_shared_informer_deadline(informer) <= now_ms);
}


static void
pass(uint64_t ms)
{
    uint64_t  until_ms, next_ms;

    settle();

    for (until_ms = now_ms + ms; now_ms < until_ms; settle()) {
        next_ms = kube_shared_informer_deadline(informer);
        now_ms = (next_ms < until_ms) ? next_ms : until_ms;
    }
}


static void
put(const char *name, const char *version)
{
    char           text[24];
    kube_object_t  o;

    memset(&o, 0, sizeof(o));
    o.resource = KUBE_RESOURCE_SERVICES;
    o.u.service.meta.ns = KUBE_STR("shop");
    o.u.service.meta.name = kube_str(name);

    if (kube_memory_source_put(source, &o) != KUBE_OK) {
        die("put");
    }

    snprintf(text, sizeof(text), "%llu",
             (unsigned long long) kube_memory_source_rv(source));

    if (strcmp(text, version) != 0) {
        die("the script's versions are not the source's");
    }
}


static void
handler_add(const char *name, const char *kind)
{
    unsigned        i;
    kube_handler_t  h;

    for (i = 0; i < HANDLERS_MAX && handlers[i].name[0] != '\0'; i++) {
        /* void */
    }

    if (i == HANDLERS_MAX) {
        die("too many handlers");
    }

    snprintf(handlers[i].name, sizeof(handlers[i].name), "%s", name);

    h = (kube_handler_t) {
        .notify = notify,
        .filter = (strcmp(kind, "odd") == 0) ? is_odd : NULL,
        .ctx = &handlers[i],
        .resync_ms = (strcmp(kind, "resync") == 0) ? 10000 : KUBE_NEVER
    };

    if (kube_shared_informer_add_handler(informer, &h,
                                         &handlers[i].registration, now_ms)
        != KUBE_OK)
    {
        die("add");
    }
}


static void
handler_remove(const char *name)
{
    unsigned  i;

    for (i = 0; i < HANDLERS_MAX; i++) {
        if (strcmp(handlers[i].name, name) == 0) {
            kube_shared_informer_remove_handler(informer,
                                                handlers[i].registration);
            handlers[i].name[0] = '\0';
        }
    }
}


static void
line_do(const char *op, const char *a, const char *b)
{
    static unsigned  waits;

    kube_memory_source_quiet(source, op[0] == 'P' || op[0] == 'D');

    switch (op[0]) {

    case 'p':
    case 'P':
        put(a, b);
        break;

    case 'd':
    case 'D':
        if (kube_memory_source_remove(source, KUBE_STR("shop"), kube_str(a))
            != KUBE_OK)
        {
            die("remove");
        }

        break;

    case 'r':
        kube_memory_source_compact(source);
        kube_memory_source_reset(source, KUBE_CLOSED);
        pass(120000);
        break;

    case 's':
        pass(15000);
        break;

    case 'a':
        handler_add(a, b);
        break;

    case 'x':
        handler_remove(a);
        break;

    case '!':
        if (kube_shared_informer_start(informer, now_ms) != KUBE_OK) {
            die("start");
        }

        break;

    case 'w':
        settle();
        fprintf(out, "= %u\n", ++waits);
    }
}


int
main(int argc, char **argv)
{
    char                          line[256], op[4], a[64], b[64];
    FILE                         *in;
    kube_alloc_t                  heap;
    kube_lister_watcher_t         lw;
    kube_shared_informer_conf_t   conf;

    if (argc != 3
        || (in = fopen(argv[1], "r")) == NULL
        || (out = fopen(argv[2], "w")) == NULL)
    {
        die("SCRIPT STREAM");
    }

    heap = (kube_alloc_t) { .alloc = heap_alloc, .free = heap_free };
    memset(&conf, 0, sizeof(conf));

    conf.resource = KUBE_RESOURCE_SERVICES;
    conf.reflector = kube_reflector_conf_defaults(1);
    conf.reflector.watch_list = KUBE_WATCH_LIST_OFF;
    conf.processor.changes_max = KUBE_RING_CHANGES;
    conf.processor.bytes_max = KUBE_RING_BYTES;
    conf.processor.resync_ms = 3600000;

    source = kube_memory_source_create(&heap, conf.resource, 8192);

    if (source == NULL
        || kube_memory_lister_watcher_create(source, KUBE_STR_NULL, &lw)
           != KUBE_OK
        || (informer = kube_shared_informer_create(&heap, &conf, &lw)) == NULL)
    {
        die("no memory");
    }

    while (fgets(line, sizeof(line), in) != NULL) {
        a[0] = '\0';
        b[0] = '\0';

        if (sscanf(line, "%3s %63s %63s", op, a, b) >= 1) {
            line_do(op, a, b);
        }
    }

    kube_shared_informer_destroy(informer);
    kube_memory_source_destroy(source);
    fclose(in);

    return fclose(out);
}

/*
 * informer_bed - an informer over server_bed with the real FIFO, indexer and
 * zone, for the tests of kube_informer and its files; not part of the product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_INFORMER_BED_H
#define KUBE_INFORMER_BED_H


#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server_bed.h"


#define ZONE_BYTES  (2u << 20)

typedef struct {
    alloc_test_t      own;
    server_t         *server;
    void             *mem;
    size_t            mem_size;
    kube_zone_t       zone;
    kube_informer_t  *inf;
    const char       *selector;
    kube_str_t        namespaces[4];
    size_t            namespaces_n;
    kube_endpoints_t  endpoints;
    unsigned          logged[KUBE_EV_MAX];
    unsigned          changes[4];
} bed_t;


static inline void
bed_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    bed_t  *b = ctx;

    (void) level;
    (void) line;

    b->logged[id]++;
}


static inline void
bed_change(void *ctx, kube_change_t change, const kube_record_t *record)
{
    bed_t  *b = ctx;

    assert_int_equal(kube_record_validate(record, record->size), KUBE_OK);
    b->changes[change]++;
}


static inline kube_informer_t *
bed_informer(bed_t *b, const kube_alloc_t *alloc)
{
    kube_informer_conf_t  conf;

    memset(&conf, 0, sizeof(conf));

    conf.io = io_of(&b->server->io);
    conf.zone = &b->zone;
    conf.server = KUBE_STR("https://10.0.0.1:443");
    conf.namespaces = b->namespaces;
    conf.namespaces_n = b->namespaces_n;
    conf.endpoints = b->endpoints;
    conf.label_selector[0] = kube_str(b->selector);
    conf.object_bytes_max = KUBE_OBJECT_BYTES_DEFAULT;
    conf.reflector = kube_reflector_conf_defaults(11);
    conf.reflector.watch_list = KUBE_WATCH_LIST_OFF;
    conf.sink.write = bed_log;
    conf.sink.ctx = b;
    conf.change = bed_change;
    conf.change_ctx = b;
    conf.pid = 77;

    return kube_informer_create(alloc, &conf);
}


static inline void
bed_make(bed_t *b, size_t size)
{
    kube_seed_t  seed;

    memset(b, 0, sizeof(bed_t));
    alloc_test_init(&b->own);

    b->server = calloc(1, sizeof(server_t));
    assert_non_null(b->server);
    b->server->rv = 100;
    b->server->io.now_ms = 7000000;
    b->selector = "";

    b->mem_size = size;
    b->mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                  -1, 0);
    assert_true(b->mem != MAP_FAILED);

    seed.k0 = 5;
    seed.k1 = 6;
    assert_int_equal(kube_zone_create(&b->zone, b->mem, size, seed), KUBE_OK);
}


static inline void
bed_start(bed_t *b)
{
    b->inf = bed_informer(b, &b->own.alloc);
    assert_non_null(b->inf);
}


static inline void
bed_init(bed_t *b)
{
    bed_make(b, ZONE_BYTES);
    bed_start(b);
}


static inline void
bed_stop(bed_t *b)
{
    kube_informer_destroy(b->inf);
    b->inf = NULL;
    assert_null(io_find(&b->server->io, "/"));
    alloc_test_assert_no_leak(&b->own);
}


static inline void
bed_done(bed_t *b)
{
    bed_stop(b);
    munmap(b->mem, b->mem_size);
    free(b->server);
}


static inline kube_rc_t
bed_process(bed_t *b)
{
    kube_rc_t  rc;

    rc = kube_informer_process(b->inf, b->server->io.now_ms,
                               1700000000000 + (int64_t)
                                               b->server->io.now_ms);
    server_assert_promise(b->server, &b->zone);
    assert_int_equal(b->logged[KUBE_EV_INTERNAL], 0);

    return rc;
}


/* Until nothing is left to do at this time. */
static inline void
bed_settle(bed_t *b)
{
    unsigned  i, started;

    for (i = 0; i < 5000; i++) {
        started = b->server->io.started;
        server_run(b->server);
        (void) bed_process(b);

        if (kube_informer_deadline(b->inf) > b->server->io.now_ms
            && b->server->io.started == started
            && i > 2)
        {
            return;
        }
    }

    fail_msg("never settled");
}


/*
 * A successor whose allocation n of ours fails as it takes over, and which is
 * left to settle; false: it made no more than n.
 */
static inline bool
bed_succeed_without(bed_t *b, size_t n)
{
    bool  failed;

    bed_stop(b);
    bed_start(b);
    b->own.failed = false;
    b->own.fail_at = b->own.calls + 1 + n;
    (void) bed_process(b);
    failed = b->own.failed;
    b->own.fail_at = 0;
    b->server->io.now_ms += 2000;
    bed_settle(b);

    return failed;
}


/* Lets time pass until all is synced and equal to the server. */
static inline void
bed_converge(bed_t *b)
{
    uint64_t  deadline_ms, until_ms;

    until_ms = b->server->io.now_ms + 60000;

    for ( ;; ) {
        bed_settle(b);
        deadline_ms = kube_informer_deadline(b->inf);

        if (deadline_ms > until_ms) {
            return;
        }

        if (b->server->io.now_ms < deadline_ms) {
            b->server->io.now_ms = deadline_ms;
        }
    }
}


/* The zone holds what the server holds, and says so. */
static inline void
bed_assert_equal(bed_t *b)
{
    char               ns[16];
    unsigned           i, slot, live[KUBE_RESOURCES];
    kube_scope_info_t  info;

    static view_t  view;

    view_make(&view, &b->zone);
    memset(live, 0, sizeof(live));

    for (i = 0; i < b->server->objects_n; i++) {
        live[b->server->objects[i].resource] += b->server->objects[i].live;
    }

    for (slot = 0; slot < KUBE_SCOPES_A_NAMESPACE; slot++) {
        assert_int_equal(view.counts[slot], live[slot]);
        assert_true(zone_version(&b->zone, slot, &info, ns) != 0);
        assert_true(info.synced);
        assert_int_equal(info.resource, slot);

        if (b->namespaces_n == 0) {
            assert_int_equal(info.count, live[slot]);
            assert_true(info.digest.lo == view.digests[slot].lo);
            assert_true(info.digest.hi == view.digests[slot].hi);
        }
    }

    assert_true(kube_informer_synced(b->inf));
}


static inline uint64_t
bed_version(bed_t *b, unsigned slot)
{
    char               ns[16];
    kube_scope_info_t  info;

    return zone_version(&b->zone, slot, &info, ns);
}


static inline void
bed_shop(bed_t *b)
{
    server_put_service(b->server, "shop", "web", 1);
    server_put_slice(b->server, "shop", "web-a", "web", 1);
    server_put_slice(b->server, "shop", "web-b", "web", 2);
    server_put_service(b->server, "shop", "api", 2);
    server_put_slice(b->server, "shop", "api-a", "api", 3);
    server_put_service(b->server, "infra", "echo", 3);
}


#endif /* KUBE_INFORMER_BED_H */

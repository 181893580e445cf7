/*
 * list_watch_bed - one scope over io_bed with the real FIFO and zone, for
 * test_list_watch*; not part of the product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_LIST_WATCH_BED_H
#define KUBE_LIST_WATCH_BED_H


#include "io_bed.h"

#include "kube_list_watch.h"


#define ZONE_BYTES  (256u << 10)

#define LIST(rv, rest, items)                                                 \
    "{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\",\"metadata\":"           \
    "{\"resourceVersion\":\"" rv "\"" rest "},\"items\":[" items "]}\n"

#define META(name, rv)                                                        \
    "\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\","             \
    "\"uid\":\"u-" name "\",\"resourceVersion\":\"" rv "\"}"

#define SERVICE(name, rv)                                                     \
    "{" META(name, rv) ",\"spec\":{\"type\":\"ClusterIP\","                   \
    "\"clusterIP\":\"10.0.0.9\",\"ports\":[{\"name\":\"http\",\"port\":80,"   \
    "\"protocol\":\"TCP\"}]}}"

#define FULL(name, rv)                                                        \
    "{\"kind\":\"Service\",\"apiVersion\":\"v1\"," META(name, rv)             \
    ",\"spec\":{\"type\":\"ClusterIP\",\"clusterIP\":\"10.0.0.9\","           \
    "\"ports\":[{\"name\":\"http\",\"port\":80,\"protocol\":\"TCP\"}]}}"

#define EVENT(type, object)                                                   \
    "{\"type\":\"" type "\",\"object\":" object "}\n"

#define BOOKMARK(rv)                                                          \
    EVENT("BOOKMARK", "{\"kind\":\"Service\",\"apiVersion\":\"v1\","          \
          "\"metadata\":{\"resourceVersion\":\"" rv "\"}}")

#define STATUS(code, reason, more)                                            \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"             \
    "\"status\":\"Failure\",\"message\":\"told so\",\"reason\":\"" reason     \
    "\"," more "\"code\":" #code "}"


typedef struct {
    alloc_test_t          own;         /* of what is not under test */
    kube_alloc_t          alloc;       /* of what is */
    io_bed_t              io;
    void                 *mem;
    kube_zone_t           zone;
    kube_delta_fifo_t    *fifo;
    kube_list_watch_t    *lw;
    bool                  turn_free;
    unsigned              turns;
    unsigned              turns_over;
    char                  reason[64];
    char                  message[KUBE_MESSAGE_LEN_MAX];
    unsigned              logged[KUBE_EV_MAX];
    char                  dump[8192];
} bed_t;


static inline bool
bed_turn(void *ctx, unsigned slot)
{
    bed_t  *b = ctx;

    assert_int_equal(slot, 2);
    b->turns += b->turn_free;

    return b->turn_free;
}


static inline void
bed_over(void *ctx, unsigned slot)
{
    bed_t  *b = ctx;

    assert_int_equal(slot, 2);
    b->turns_over++;
}


static inline void
bed_error(void *ctx, unsigned slot, kube_str_t reason, kube_str_t message)
{
    bed_t  *b = ctx;

    assert_int_equal(slot, 2);
    snprintf(b->reason, sizeof(b->reason), "%.*s", (int) reason.len,
             reason.data);
    snprintf(b->message, sizeof(b->message), "%.*s", (int) message.len,
             message.data);
}


static inline void
bed_log(void *ctx, kube_log_level_t level, kube_event_id_t id,
    const char *line)
{
    bed_t  *b = ctx;

    assert_true(level <= KUBE_LOG_DEBUG);
    assert_true(strlen(line) < KUBE_LOG_LINE_MAX);
    b->logged[id]++;
}


static inline void
bed_make(bed_t *b, const kube_alloc_t *alloc, const char *ns, size_t keys_max)
{
    kube_seed_t             seed;
    kube_list_watch_conf_t  conf;

    memset(b, 0, sizeof(bed_t));
    alloc_test_init(&b->own);

    b->alloc = (alloc != NULL) ? *alloc : b->own.alloc;
    b->io.now_ms = 5000000;
    b->turn_free = true;

    b->mem = malloc(ZONE_BYTES);
    assert_non_null(b->mem);

    seed.k0 = 1;
    seed.k1 = 2;
    assert_int_equal(kube_zone_create(&b->zone, b->mem, ZONE_BYTES, seed),
                     KUBE_OK);

    b->fifo = kube_delta_fifo_create(&b->alloc, seed, keys_max, 1u << 20);
    if (b->fifo == NULL) {
        return;
    }

    memset(&conf, 0, sizeof(conf));

    conf.io = io_of(&b->io);
    conf.fifo = b->fifo;
    conf.zone = &b->zone;
    conf.sink.write = bed_log;
    conf.sink.ctx = b;
    conf.slot = 2;
    conf.resource = KUBE_RESOURCE_SERVICES;
    conf.ns = kube_str(ns);
    conf.object_bytes_max = KUBE_OBJECT_BYTES_MIN;
    conf.reflector.page_size = 2;
    conf.reflector.watch_timeout_ms = 300000;
    conf.reflector.idle_timeout_ms = 90000;
    conf.reflector.backoff.first_ms = 800;
    conf.reflector.backoff.max_ms = 30000;
    conf.reflector.backoff.unreachable_ms = 4000;
    conf.reflector.seed = 3;
    conf.list_turn = bed_turn;
    conf.list_over = bed_over;
    conf.error = bed_error;
    conf.ctx = b;

    b->lw = kube_list_watch_create(&b->alloc, &conf);
}


static inline void
bed_init(bed_t *b)
{
    bed_make(b, NULL, "", 1024);
    assert_non_null(b->lw);
}


static inline void
bed_done(bed_t *b)
{
    kube_list_watch_destroy(b->lw);
    kube_delta_fifo_destroy(b->fifo);
    free(b->mem);
    alloc_test_assert_no_leak(&b->own);
}


static inline void
bed_process(bed_t *b)
{
    kube_list_watch_process(b->lw, b->io.now_ms);
}


static inline void
bed_start(bed_t *b, const char *version)
{
    kube_rv_t  rv;

    memset(&rv, 0, sizeof(rv));

    if (version[0] != '\0') {
        assert_int_equal(kube_rv_parse(kube_str(version), &rv), KUBE_OK);
    }

    kube_list_watch_start(b->lw, &rv, b->io.now_ms);
    bed_process(b);
}


/* The one exchange in flight. */
static inline io_exchange_t *
bed_x(bed_t *b)
{
    io_exchange_t  *x;

    x = io_find(&b->io, "/");
    assert_non_null(x);

    return x;
}


/* Goes to the deadline, which must be in the future and not far. */
static inline uint64_t
bed_sleep(bed_t *b)
{
    uint64_t  ms;

    assert_null(io_find(&b->io, "/"));

    ms = kube_list_watch_deadline(b->lw);
    assert_in_range(ms, b->io.now_ms, b->io.now_ms + 300000);
    ms -= b->io.now_ms;

    b->io.now_ms += ms;
    bed_process(b);

    return ms;
}


/* Watching from 5, nothing in the FIFO. */
static inline void
bed_watch(bed_t *b)
{
    bed_start(b, "5");
    assert_true(io_head(bed_x(b), 200, "application/json", 0));
}


static inline uint64_t
counted(const bed_t *b, kube_counter_t counter)
{
    return kube_zone_scope_counter(&b->zone, 2, counter);
}


/* Empties the FIFO into text: one word a delta. */
static inline const char *
drained(bed_t *b)
{
    size_t            n;
    kube_delta_t      d;
    kube_record_id_t  id;

    static const char  letters[] = "RUDX[]";

    n = 0;
    b->dump[0] = '\0';

    while (kube_delta_fifo_peek(b->fifo, &d) == KUBE_OK) {

        n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n, "%s%c",
                               n ? " " : "", letters[d.kind]);
        assert_int_equal(d.scope, 2);

        if (d.kind < KUBE_DELTA_LIST_BEGIN) {
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n,
                                   ":%.*s/%.*s", (int) d.ns.len, d.ns.data,
                                   (int) d.name.len, d.name.data);
        }

        if (d.record != NULL) {
            assert_int_equal(kube_record_id(d.record, d.record->size, &id),
                             KUBE_OK);
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n, "@%.*s",
                                   (int) id.meta.rv.len, id.meta.rv.data);

        } else if (d.kind == KUBE_DELTA_DELETED) {
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n, "@%.*s",
                                   (int) d.rv.len, d.rv.data);

        } else if (d.kind == KUBE_DELTA_REFUSED) {
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n, "(%.*s)",
                                   (int) d.reason.len, d.reason.data);
        }

        assert_true(n < sizeof(b->dump));
        kube_delta_fifo_drop(b->fifo);
    }

    return b->dump;
}


static inline void
assert_rv(const bed_t *b, const char *text)
{
    const kube_rv_t  *rv;

    rv = kube_list_watch_rv(b->lw);
    assert_int_equal(rv->len, strlen(text));
    assert_memory_equal(rv->data, text, rv->len);
}


#endif /* KUBE_LIST_WATCH_BED_H */

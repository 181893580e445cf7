/*
 * reflector_bed - one scope over io_bed with the real lister-watcher of the
 * API server, FIFO and zone, for the tests of kube_reflector and its files, and
 * for script_bed; not part of the product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_REFLECTOR_BED_H
#define KUBE_REFLECTOR_BED_H


#include "io_bed.h"

#include "kube_api_lister_watcher.h"
#include "kube_reflector.h"
#include "kube_zone_counters.h"
#include "kube_zone_scope.h"


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

#define INITIAL_END(rv, is)                                                   \
    EVENT("BOOKMARK", "{\"kind\":\"Service\",\"apiVersion\":\"v1\","          \
          "\"metadata\":{\"resourceVersion\":\"" rv "\",\"annotations\":{"     \
          "\"k8s.io/initial-events-end\":" is "}}}")

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
    kube_reflector_t     *r;
    kube_list_turn_t      turn;
    kube_server_traits_t  traits;
    uint32_t              coverage[KUBE_REFLECTOR_STATES][KUBE_INPUTS];
    char                  reason[64];
    char                  message[KUBE_MESSAGE_LEN_MAX];
    unsigned              logged[KUBE_EV_MAX];
    bool                  beside;      /* a list beside a watch may be there */
    char                  dump[8192];
} bed_t;


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
bed_make_for(bed_t *b, const kube_alloc_t *alloc, const char *ns,
    size_t keys_max, kube_watch_list_t watch_list)
{
    kube_seed_t                      seed;
    kube_lister_watcher_t            lw;
    kube_reflector_options_t         options;
    kube_api_lister_watcher_conf_t   conf;

    memset(b, 0, sizeof(bed_t));
    alloc_test_init(&b->own);

    b->alloc = (alloc != NULL) ? *alloc : b->own.alloc;
    b->io.now_ms = 5000000;
    kube_list_turn_init(&b->turn);

    b->mem = calloc(1, ZONE_BYTES);
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
    conf.resource = KUBE_RESOURCE_SERVICES;
    conf.ns = kube_str(ns);
    conf.object_bytes_max = KUBE_OBJECT_BYTES_MIN;

    if (kube_api_lister_watcher_create(&b->alloc, &conf, &lw) != KUBE_OK) {
        return;
    }

    memset(&options, 0, sizeof(options));

    options.fifo = b->fifo;
    options.zone = &b->zone;
    options.turn = &b->turn;
    options.sink.write = bed_log;
    options.sink.ctx = b;
    options.scope = 2;
    options.resource = KUBE_RESOURCE_SERVICES;
    options.ns = kube_str(ns);
    options.step = kube_reflector_conf_defaults(3);
    options.step.page_size = 2;
    options.step.watch_list = watch_list;
    options.step.traits = &b->traits;
    options.step.coverage = b->coverage;

    b->r = kube_reflector_create(&b->alloc, &options, &lw);
}


static inline void
bed_make(bed_t *b, const kube_alloc_t *alloc, const char *ns, size_t keys_max)
{
    bed_make_for(b, alloc, ns, keys_max, KUBE_WATCH_LIST_OFF);
}


static inline void
bed_init(bed_t *b)
{
    bed_make(b, NULL, "", 1024);
    assert_non_null(b->r);
}


static inline void
bed_done(bed_t *b)
{
    kube_reflector_destroy(b->r);
    kube_delta_fifo_destroy(b->fifo);
    free(b->mem);
    alloc_test_assert_no_leak(&b->own);
}


/*
 * Whatever is due; the error is taken, and one call is in progress at most, or
 * two where a watch was suspect or a list is made beside it.
 */
static inline void
bed_process(bed_t *b)
{
    unsigned    i, live;
    kube_str_t  reason, message;

    kube_reflector_process(b->r, b->io.now_ms);

    if (kube_reflector_error(b->r, &reason, &message)) {
        snprintf(b->reason, sizeof(b->reason), "%.*s", (int) reason.len,
                 reason.data);
        snprintf(b->message, sizeof(b->message), "%.*s", (int) message.len,
                 message.data);
    }

    assert_false(kube_reflector_error(b->r, &reason, &message));

    for (i = 0, live = 0; i < IO_EXCHANGES_MAX; i++) {
        live += b->io.exchanges[i].live;
    }

    assert_true(live <= ((b->io.suspect != NULL || b->beside) ? 2 : 1));
    assert_int_equal(b->logged[KUBE_EV_INTERNAL], 0);
}


static inline void
bed_start(bed_t *b, const char *version)
{
    kube_rv_t  rv, floor;

    memset(&rv, 0, sizeof(rv));
    memset(&floor, 0, sizeof(floor));

    if (version[0] != '\0') {
        assert_int_equal(kube_rv_parse(kube_str(version), &rv), KUBE_OK);
    }

    kube_reflector_start(b->r, &rv, &floor, b->io.now_ms);
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

    ms = kube_reflector_deadline(b->r);
    assert_in_range(ms, b->io.now_ms, b->io.now_ms + 450000);
    ms -= b->io.now_ms;

    b->io.now_ms += ms;
    bed_process(b);

    return ms;
}


/* Delivers what must end the exchange. */
static inline void
bed_cut(bed_t *b, const char *text)
{
    unsigned  cancelled;

    cancelled = b->io.cancelled;
    assert_true(io_body(&b->io, bed_x(b), text));
    bed_process(b);
    assert_int_equal(b->io.cancelled, cancelled + 1);
}


/* Watching from 5, nothing in the FIFO. */
static inline void
bed_watch(bed_t *b)
{
    bed_start(b, "5");
    assert_true(io_head(bed_x(b), 200, "application/json", 0));
    bed_process(b);
}


/* The same with a list beside it, which is urgent and has the turn. */
static inline void
bed_watch_beside(bed_t *b)
{
    bed_watch(b);
    b->beside = true;
    kube_reflector_fill(b->r, true, b->io.now_ms);
    bed_process(b);
    assert_int_equal(b->turn.holder, 2);
}


static inline kube_histogram_t
observed(const bed_t *b, kube_histogram_id_t id)
{
    kube_histogram_t  h;

    kube_zone_histogram_read(&b->zone, id, KUBE_RESOURCE_SERVICES, &h);

    return h;
}


/* A list was given to the FIFO as a whole. */
static inline bool
bed_listed(const bed_t *b)
{
    return observed(b, KUBE_HISTOGRAM_LIST_DURATION).count != 0;
}


static inline uint64_t
counted(const bed_t *b, kube_counter_t counter)
{
    return kube_zone_scope_counter(&b->zone, 2, counter);
}


/* Takes what came, and empties the FIFO into text: one word a delta. */
static inline const char *
drained(bed_t *b)
{
    size_t            n;
    kube_delta_t      d;
    kube_record_id_t  id;

    static const char  letters[] = "RUDX[]{}!";

    n = 0;
    b->dump[0] = '\0';
    bed_process(b);

    while (kube_delta_fifo_peek(b->fifo, &d) == KUBE_OK) {

        n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n, "%s%c",
                               n ? " " : "", letters[d.kind]);
        assert_int_equal(d.scope, 2);

        if (!kube_delta_is_mark(d.kind)) {
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

    rv = kube_reflector_rv(b->r);
    assert_int_equal(rv->len, strlen(text));
    assert_memory_equal(rv->data, text, rv->len);
}


#endif /* KUBE_REFLECTOR_BED_H */

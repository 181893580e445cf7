/*
 * decode - the list path without a network: how many instructions and how
 * much time it takes from the bytes of a list to records, and to the zone.
 *
 *     decode [-i] slices services
 *
 * reads slices.json, slices.pb, services.json and services.pb.  Each stage does
 * all that the one before does, but for cJSON's; those of protobuf stand beside
 * their like of JSON.  With -i it runs each once and measures no time: "make
 * bench-decode" runs it so under callgrind, which counts what each
 * bench_run_*() takes.  No test: it says what things cost, and checks only that
 * nothing was lost.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kube_api_lister_watcher.h"
#include "kube_frame.h"
#include "kube_informer.h"
#include "kube_zone.h"


/* What libcurl hands over at once. */
#define BENCH_PIECE       (16u << 10)

#define BENCH_ROUNDS      7
#define BENCH_ZONE_BYTES  (256u << 20)
#define BENCH_CALLS       4
#define BENCH_STAGES      6

#define BENCH_CALLED      __attribute__((noinline))


typedef enum {
    BENCH_JSON,
    BENCH_PROTOBUF,
    BENCH_FORMS
} bench_form_t;

/* What a stage has seen. */
typedef struct {
    size_t    objects;
    size_t    endpoints;
    size_t    dropped;
    size_t    bytes;
} bench_sum_t;

typedef struct bench_s  bench_t;

typedef struct {
    bench_t                        *bench;
    const kube_exchange_handler_t  *handler;     /* NULL: not in use */
    void                           *ctx;
    kube_str_t                      rest;        /* of the body */
    bool                            watch;
    bool                            headed;
    bool                            paused;
} bench_call_t;

struct bench_s {
    kube_str_t    lists[BENCH_FORMS][KUBE_RESOURCES];
    bench_form_t  form;                /* of what is answered */
    bench_call_t  calls[BENCH_CALLS];
    kube_zone_t   zone;
};

typedef bench_sum_t (*bench_run_pt)(bench_t *bench);


static void
bench_fail(const char *what)
{
    fprintf(stderr, "decode: %s\n", what);
    exit(1);
}


static void *
bench_alloc(void *ctx, size_t size)
{
    (void) ctx;

    return malloc(size);
}


static void
bench_free(void *ctx, void *p)
{
    (void) ctx;

    free(p);
}


static void *
bench_pages(void *ctx, size_t size)
{
    void  *p;

    (void) ctx;

    p = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1,
             0);

    return (p != MAP_FAILED) ? p : NULL;
}


static void
bench_pages_free(void *ctx, void *p, size_t size)
{
    (void) ctx;

    munmap(p, size);
}


static const kube_alloc_t  bench_heap = {
    .alloc = bench_alloc,
    .free = bench_free,
    .pages = bench_pages,
    .pages_free = bench_pages_free
};


static kube_str_t
bench_read(const char *name, const char *form)
{
    long    size;
    char   *data, path[4096];
    FILE   *file;

    (void) snprintf(path, sizeof(path), "%s.%s", name, form);
    file = fopen(path, "rb");

    if (file == NULL || fseek(file, 0, SEEK_END) != 0
        || (size = ftell(file)) <= 0)
    {
        bench_fail(path);
    }

    rewind(file);
    data = malloc((size_t) size + 1);

    if (data == NULL || fread(data, 1, (size_t) size, file) != (size_t) size) {
        bench_fail(path);
    }

    data[size] = '\0';
    fclose(file);

    return (kube_str_t) { data, (size_t) size };
}


static void
bench_sum(bench_sum_t *sum, const kube_object_t *object)
{
    sum->objects++;

    if (object->resource == KUBE_RESOURCE_ENDPOINTSLICES) {
        sum->endpoints += object->u.slice.endpoints_n;
    }
}


/* Cuts, and decodes and writes the record as far as is asked for. */
static bench_sum_t
bench_frames(bench_t *bench, bool decode)
{
    size_t              n;
    uint32_t            dropped;
    kube_rc_t           rc;
    kube_str_t          in, rest;
    bench_sum_t         sum;
    kube_arena_t        arena;
    kube_error_t        error;
    kube_frame_t       *frame;
    kube_object_t       object;
    kube_frame_item_t   item;

    memset(&sum, 0, sizeof(sum));
    kube_arena_init(&arena, &bench_heap, 64u << 20);

    frame = kube_frame_create(&bench_heap, KUBE_FRAME_LIST,
                              KUBE_OBJECT_BYTES_DEFAULT);
    if (frame == NULL) {
        bench_fail("no memory");
    }

    rest = bench->lists[BENCH_JSON][KUBE_RESOURCE_ENDPOINTSLICES];

    while (rest.len != 0) {
        n = (rest.len < KUBE_TICK_BYTES) ? rest.len : KUBE_TICK_BYTES;
        in = (kube_str_t) { rest.data, n };
        rest = (kube_str_t) { rest.data + n, rest.len - n };

        while (in.len != 0) {
            rc = kube_frame_next(frame, &in, &item);

            if (rc == KUBE_AGAIN) {
                break;
            }

            if (rc != KUBE_OK) {
                bench_fail("no list");
            }

            if (item.kind != KUBE_FRAME_ITEM) {
                continue;
            }

            sum.bytes += item.bytes.len;

            if (!decode) {
                sum.objects++;
                continue;
            }

            kube_arena_reset(&arena);

            if (kube_decode_object(&arena, KUBE_RESOURCE_ENDPOINTSLICES,
                                   &item.envelope, &object, &dropped, &error)
                != KUBE_OK)
            {
                bench_fail(error.what);
            }

            sum.dropped += dropped;
            bench_sum(&sum, &object);
        }
    }

    kube_frame_destroy(frame);
    kube_arena_done(&arena);

    return sum;
}


static bench_sum_t BENCH_CALLED
bench_run_frame(bench_t *bench)
{
    return bench_frames(bench, false);
}


static bench_sum_t BENCH_CALLED
bench_run_decode(bench_t *bench)
{
    return bench_frames(bench, true);
}


/* An API server that answers with the lists, and never with an event. */

static kube_rc_t
bench_start(void *ctx, const kube_request_t *request,
    const kube_exchange_handler_t *handler, void *handler_ctx,
    uint64_t now_ms, kube_exchange_t **exchange)
{
    unsigned       i;
    bench_t       *bench = ctx;
    bench_call_t  *call;

    (void) now_ms;

    for (i = 0; i < BENCH_CALLS && bench->calls[i].handler != NULL; i++) {
        /* void */
    }

    if (i == BENCH_CALLS) {
        return KUBE_NOMEM;
    }

    call = &bench->calls[i];

    *call = (bench_call_t) {
        .bench = bench,
        .handler = handler,
        .ctx = handler_ctx,
        .watch = request->watch
    };

    if (!request->watch) {
        call->rest = bench->lists[bench->form][request->resource];
    }

    *exchange = (void *) call;

    return KUBE_OK;
}


static void
bench_cancel(void *ctx, kube_exchange_t *exchange)
{
    (void) ctx;

    ((bench_call_t *) (void *) exchange)->handler = NULL;
}


static void
bench_resume(void *ctx, kube_exchange_t *exchange)
{
    (void) ctx;

    ((bench_call_t *) (void *) exchange)->paused = false;
}


static void
bench_verdict(void *ctx, size_t server, kube_server_verdict_t verdict)
{
    (void) ctx;
    (void) server;
    (void) verdict;
}


static bool
bench_suspect(void *ctx, const kube_exchange_t *exchange)
{
    (void) ctx;
    (void) exchange;

    return false;
}


static uint64_t
bench_healed(void *ctx)
{
    (void) ctx;

    return 0;
}


static kube_rc_t
bench_credentials(void *ctx, uint64_t now_ms)
{
    (void) ctx;
    (void) now_ms;

    return KUBE_OK;
}


static const char *
bench_remedy(void *ctx, kube_rc_t rc)
{
    (void) ctx;
    (void) rc;

    return NULL;
}


static uint64_t
bench_now(void *ctx)
{
    (void) ctx;

    return 1000000;
}


static kube_io_t
bench_io(bench_t *bench)
{
    memset(bench->calls, 0, sizeof(bench->calls));

    return KUBE_IO(bench_start, bench_cancel, bench_resume, bench_verdict,
                   bench_suspect, bench_healed, bench_credentials,
                   bench_remedy, bench_now, bench);
}


/* Sends what each call takes before it asks for a pause. */
static void
bench_send(bench_t *bench)
{
    size_t           n;
    unsigned         i;
    kube_take_t      take;
    bench_call_t    *call;
    kube_response_t  response;

    static const kube_str_t  types[] = {
        KUBE_STR("application/json"),
        KUBE_STR("application/vnd.kubernetes.protobuf")
    };

    for (i = 0; i < BENCH_CALLS; i++) {
        call = &bench->calls[i];

        if (call->handler == NULL) {
            continue;
        }

        if (!call->headed) {
            call->headed = true;

            response = (kube_response_t) {
                .code = 200,
                .content_type = types[bench->form]
            };

            (void) call->handler->response(call->ctx, &response);
        }

        while (call->handler != NULL && !call->paused && !call->watch) {

            if (call->rest.len == 0) {
                call->handler->done(call->ctx, KUBE_OK, "");
                call->handler = NULL;
                break;
            }

            n = (call->rest.len < BENCH_PIECE) ? call->rest.len : BENCH_PIECE;
            take = call->handler->bytes(call->ctx, call->rest.data, n);
            call->rest = (kube_str_t) { call->rest.data + n,
                                        call->rest.len - n };
            call->paused = (take == KUBE_TAKE_PAUSE);

            if (take == KUBE_TAKE_ABORT) {
                bench_fail("aborted");
            }
        }
    }
}


/* What the reflector is given of it. */
static bench_sum_t
bench_results(bench_t *bench, bench_form_t form)
{
    bool                             over;
    bench_sum_t                      sum;
    kube_call_t                     *call;
    kube_result_t                    result;
    kube_list_options_t              options;
    kube_lister_watcher_t            lw;
    kube_api_lister_watcher_conf_t   conf;

    memset(&sum, 0, sizeof(sum));
    memset(&conf, 0, sizeof(conf));
    memset(&options, 0, sizeof(options));

    bench->form = form;
    conf.io = bench_io(bench);
    conf.resource = KUBE_RESOURCE_ENDPOINTSLICES;
    conf.object_bytes_max = KUBE_OBJECT_BYTES_DEFAULT;

    if (kube_api_lister_watcher_create(&bench_heap, &conf, &lw) != KUBE_OK
        || (call = lw.list(lw.ctx, &options, bench_now(NULL))) == NULL)
    {
        bench_fail("no memory");
    }

    over = false;

    while (!over) {
        bench_send(bench);

        while (lw.next(lw.ctx, call, &result) == KUBE_OK) {
            over |= (result.kind == KUBE_RESULT_END);

            if (result.kind == KUBE_RESULT_ITEM) {
                sum.dropped += result.dropped;
                bench_sum(&sum, &result.object);
            }
        }
    }

    lw.cancel(lw.ctx, call);
    lw.destroy(lw.ctx);

    return sum;
}


static bench_sum_t BENCH_CALLED
bench_run_results(bench_t *bench)
{
    return bench_results(bench, BENCH_JSON);
}


static bench_sum_t BENCH_CALLED
bench_run_protobuf_results(bench_t *bench)
{
    return bench_results(bench, BENCH_PROTOBUF);
}


static void
bench_zone(bench_t *bench)
{
    void  *memory;

    memory = mmap(NULL, BENCH_ZONE_BYTES, PROT_READ|PROT_WRITE,
                  MAP_SHARED|MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED
        || kube_zone_create(&bench->zone, memory, BENCH_ZONE_BYTES,
                            (kube_seed_t) { 5, 6 }) != KUBE_OK)
    {
        bench_fail("no memory");
    }
}


/* Bytes to synced: both lists into an empty zone. */
static bench_sum_t
bench_list(bench_t *bench, bench_form_t form)
{
    kube_rc_t              rc;
    bench_sum_t            sum;
    kube_informer_t       *informer;
    kube_informer_conf_t   conf;

    memset(&sum, 0, sizeof(sum));
    memset(&conf, 0, sizeof(conf));

    bench->form = form;
    conf.io = bench_io(bench);
    conf.zone = &bench->zone;
    conf.server = KUBE_STR("https://10.0.0.1:443");
    conf.object_bytes_max = KUBE_OBJECT_BYTES_DEFAULT;
    conf.reflector = kube_reflector_conf_defaults(11);
    conf.reflector.page_size = 0;
    conf.reflector.watch_list = KUBE_WATCH_LIST_OFF;
    conf.pid = 77;

    informer = kube_informer_create(&bench_heap, &conf);
    if (informer == NULL) {
        bench_fail("no memory");
    }

    while (!kube_informer_synced(informer)) {
        bench_send(bench);
        rc = kube_informer_process(informer, bench_now(NULL), 1700000000000);

        if (rc != KUBE_OK) {
            bench_fail("the informer failed");
        }
    }

    kube_informer_destroy(informer);

    return sum;
}


static bench_sum_t BENCH_CALLED
bench_run_list(bench_t *bench)
{
    return bench_list(bench, BENCH_JSON);
}


static bench_sum_t BENCH_CALLED
bench_run_protobuf_list(bench_t *bench)
{
    return bench_list(bench, BENCH_PROTOBUF);
}


static bench_sum_t BENCH_CALLED
bench_run_cjson(bench_t *bench)
{
    cJSON        *tree;
    bench_sum_t   sum;

    memset(&sum, 0, sizeof(sum));

    tree = cJSON_ParseWithLength(
               bench->lists[BENCH_JSON][KUBE_RESOURCE_ENDPOINTSLICES].data,
               bench->lists[BENCH_JSON][KUBE_RESOURCE_ENDPOINTSLICES].len);

    sum.objects = (size_t) cJSON_GetArraySize(cJSON_GetObjectItem(tree,
                                                                  "items"));
    cJSON_Delete(tree);

    return sum;
}


/* Reads every byte and does nothing: what memory alone allows. */
static bench_sum_t BENCH_CALLED
bench_run_memchr(bench_t *bench)
{
    kube_str_t   list;
    bench_sum_t  sum;

    memset(&sum, 0, sizeof(sum));

    list = bench->lists[BENCH_JSON][KUBE_RESOURCE_ENDPOINTSLICES];
    sum.bytes = (memchr(list.data, 1, list.len) != NULL);

    return sum;
}


static double
bench_ms(void)
{
    struct timespec  ts;

    /* the time of this process alone: others may be busy */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);

    return (double) ts.tv_sec * 1e3 + (double) ts.tv_nsec / 1e6;
}


static int
bench_order(const void *a, const void *b)
{
    return (*(const double *) a > *(const double *) b)
           - (*(const double *) a < *(const double *) b);
}


/* Before cJSON leaves a heap to tidy up; each into a zone of its own. */
static void
bench_lists(bench_t *bench, size_t endpoints, bool count)
{
    double    from;
    unsigned  i;

    static const struct {
        const char    *name;
        bench_run_pt   run;
    } stages[] = {
        { "both lists to synced", bench_run_list },
        { "the same, of protobuf", bench_run_protobuf_list }
    };

    for (i = 0; i < 2; i++) {
        bench_zone(bench);
        from = bench_ms();
        (void) stages[i].run(bench);
        from = bench_ms() - from;

        if (!count) {
            printf("%-24s %8.2f ms  %8.1f ns an endpoint (Services, FIFO, "
                   "zone)\n", stages[i].name, from,
                   from * 1e6 / (double) endpoints);
        }
    }
}


int
main(int argc, char **argv)
{
    bool          count;
    size_t        endpoints, i;
    double        ms[BENCH_STAGES][BENCH_ROUNDS + 1], from;
    bench_t       bench;
    unsigned      round;
    bench_sum_t   sum;

    static const struct {
        const char    *name;
        bench_run_pt   run;
    } stages[BENCH_STAGES] = {
        { "memchr", bench_run_memchr },
        { "frame", bench_run_frame },
        { "frame, then decode", bench_run_decode },
        { "both at once", bench_run_results },
        { "the same, of protobuf", bench_run_protobuf_results },
        { "cJSON, whole document", bench_run_cjson }
    };

    static const char *const  forms[] = { "json", "pb" };

    count = (argc == 4 && strcmp(argv[1], "-i") == 0);

    if (argc != 3 + count) {
        bench_fail("usage: decode [-i] slices services");
    }

    for (i = 0; i < BENCH_FORMS; i++) {
        bench.lists[i][KUBE_RESOURCE_ENDPOINTSLICES] =
                                       bench_read(argv[1 + count], forms[i]);
        bench.lists[i][KUBE_RESOURCE_SERVICES] =
                                       bench_read(argv[2 + count], forms[i]);
    }

    sum = bench_frames(&bench, true);
    endpoints = sum.endpoints;

    if (endpoints == 0 || sum.dropped != 0) {
        bench_fail("endpoints were lost");
    }

    printf("%zu slices, %zu endpoints, %.1f bytes each (protobuf: %.1f)\n",
           sum.objects, endpoints,
           (double) bench.lists[BENCH_JSON][KUBE_RESOURCE_ENDPOINTSLICES].len
           / (double) endpoints,
           (double) bench.lists[BENCH_PROTOBUF]
                               [KUBE_RESOURCE_ENDPOINTSLICES].len
           / (double) endpoints);

    bench_lists(&bench, endpoints, count);

    /* the rounds of all stages take turns: what disturbs one disturbs all */

    for (round = 0; round <= (count ? 0 : BENCH_ROUNDS); round++) {
        for (i = 0; i < BENCH_STAGES; i++) {
            from = bench_ms();
            sum = stages[i].run(&bench);
            ms[i][round] = bench_ms() - from;

            if (sum.endpoints != 0 && sum.endpoints != endpoints) {
                bench_fail("endpoints were lost");
            }
        }
    }

    for (i = 0; !count && i < BENCH_STAGES; i++) {
        qsort(&ms[i][1], BENCH_ROUNDS, sizeof(double), bench_order);
    }

    for (i = 0; !count && i < BENCH_STAGES; i++) {
        from = ms[i][1 + BENCH_ROUNDS / 2];
        printf("%-24s %8.2f ms  %8.1f ns an endpoint  cJSON's / %.1f\n",
               stages[i].name, from, from * 1e6 / (double) endpoints,
               ms[BENCH_STAGES - 1][1 + BENCH_ROUNDS / 2] / from);
    }

    return 0;
}

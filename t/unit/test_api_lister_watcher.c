/*
 * test_api_lister_watcher - what the API server's answers become, call by call:
 * the contract of kube_lister_watcher.h over a scripted kube_io_t.
 *
 * What a whole reflector makes of it is in test_reflector*.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "io_bed.h"
#include "message_test.h"

#include "kube_api_lister_watcher.h"
#include "kube_frame.h"


#define META(name, rv)                                                        \
    "\"metadata\":{\"name\":\"" name "\",\"namespace\":\"shop\","             \
    "\"uid\":\"u-" name "\",\"resourceVersion\":\"" rv "\"}"

#define SERVICE(name, rv)                                                     \
    "{\"kind\":\"Service\",\"apiVersion\":\"v1\"," META(name, rv)             \
    ",\"spec\":{\"ports\":[{\"port\":80}]}}"

#define LIST(rv, items)                                                       \
    "{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\",\"metadata\":"           \
    "{\"resourceVersion\":\"" rv "\",\"continue\":\"more\"},\"items\":["      \
    items "]}\n"

#define FRAME(type, object)  "{\"type\":\"" type "\",\"object\":" object "}"

#define EVENT(type, object)  FRAME(type, object) "\n"

typedef struct {
    alloc_test_t            own;
    io_bed_t                io;
    kube_lister_watcher_t   lw;
    kube_zone_t             zone;
    kube_hand_t             hand;
    char                    dump[8192];
} bed_t;

/* What a bed that is made asks for. */
static kube_encoding_t  bed_encoding = KUBE_ENCODING_AUTO;

/* Of the bed's zone: where poison is remembered. */
static _Alignas(64) char  zone_memory[KUBE_ZONE_SIZE_MIN];

static const kube_list_options_t  at_5 = {
    .rv = { "5", 1 },
    .timeout_s = 300
};

static const kube_list_options_t  page_of_2 = {
    .rv = { "5", 1 },
    .not_older_than = true,
    .limit = 2
};


static void
bed_conf(bed_t *b, kube_api_lister_watcher_conf_t *conf)
{
    memset(b, 0, sizeof(bed_t));
    alloc_test_init(&b->own);
    b->io.now_ms = 5000000;

    memset(conf, 0, sizeof(kube_api_lister_watcher_conf_t));
    conf->io = io_of(&b->io);
    conf->resource = KUBE_RESOURCE_SERVICES;
    conf->ns = KUBE_STR("shop");
    conf->label_selector = KUBE_STR("app=web");
    conf->object_bytes_max = KUBE_OBJECT_BYTES_MIN;
    conf->encoding = bed_encoding;
    conf->zone = &b->zone;
    conf->hand = &b->hand;
    conf->scope = 4;

    memset(zone_memory, 0, sizeof(zone_memory));
    assert_int_equal(kube_zone_create(&b->zone, zone_memory,
                                      sizeof(zone_memory),
                                      (kube_seed_t) { 1, 2 }),
                     KUBE_OK);
}


static kube_rc_t
bed_make(bed_t *b, const kube_alloc_t *alloc)
{
    kube_api_lister_watcher_conf_t  conf;

    bed_conf(b, &conf);

    return kube_api_lister_watcher_create(alloc ? alloc : &b->own.alloc,
                                          &conf, &b->lw);
}


static void
bed_init(bed_t *b)
{
    assert_int_equal(bed_make(b, NULL), KUBE_OK);
}


static void
bed_done(bed_t *b)
{
    b->lw.destroy(b->lw.ctx);
    assert_null(io_find(&b->io, "/"));
    alloc_test_assert_no_leak(&b->own);
}


static kube_call_t *
bed_list(bed_t *b)
{
    return b->lw.list(b->lw.ctx, &page_of_2, b->io.now_ms);
}


static kube_call_t *
bed_watch(bed_t *b)
{
    return b->lw.watch(b->lw.ctx, &at_5, b->io.now_ms);
}


/* The next result is of that kind; what it says of its object is in dump. */
static void
take_one(bed_t *b, kube_call_t *call, kube_result_kind_t kind)
{
    kube_result_t  r;

    r.what = "";

    assert_int_equal(b->lw.next(b->lw.ctx, call, &r), KUBE_OK);
    assert_int_equal(r.kind, kind);

    if (kind == KUBE_RESULT_EVENT) {
        (void) snprintf(b->dump, sizeof(b->dump), "%s", r.what);
    }
}


/* All that the call yields now, a word each. */
static const char *
yielded(bed_t *b, kube_call_t *call)
{
    bool                ready;
    size_t              n;
    kube_result_t       r;
    const kube_meta_t  *meta;

    static const char *const  kinds[] = {
        [KUBE_RESULT_OPENED] = "OPENED",
        [KUBE_RESULT_META] = "META",
        [KUBE_RESULT_ITEM] = "ITEM",
        [KUBE_RESULT_EVENT] = "EVENT",
        [KUBE_RESULT_BOOKMARK] = "BOOKMARK",
        [KUBE_RESULT_UNREADABLE] = "UNREADABLE",
        [KUBE_RESULT_ALIVE] = "ALIVE",
        [KUBE_RESULT_STATUS] = "STATUS",
        [KUBE_RESULT_END] = "END"
    };

    static const char  refusals[] = "-LMC";

    n = 0;
    b->dump[0] = '\0';

    for ( ;; ) {
        memset(&r, 0xa5, sizeof(r));
        ready = b->lw.ready(b->lw.ctx, call);

        if (b->lw.next(b->lw.ctx, call, &r) != KUBE_OK) {
            assert_false(b->lw.ready(b->lw.ctx, call));
            return b->dump;
        }

        assert_true(ready);

        n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n, "%s%s",
                               n ? " " : "", kinds[r.kind]);

        switch (r.kind) {

        case KUBE_RESULT_ITEM:
        case KUBE_RESULT_EVENT:
            meta = kube_object_meta(&r.object);
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n,
                                   ":%c%d:%.*s@%.*s", refusals[r.refusal],
                                   (int) r.type, (int) meta->name.len,
                                   meta->name.len ? meta->name.data : "",
                                   (int) meta->rv.len,
                                   meta->rv.len ? meta->rv.data : "");
            break;

        case KUBE_RESULT_META:
        case KUBE_RESULT_BOOKMARK:
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n, ":%.*s",
                                   (int) r.rv.len, r.rv.data);
            break;

        case KUBE_RESULT_ALIVE:
            assert_true(r.size_bytes != 0);
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n, "%s",
                                   r.partial ? ":partial" : "");
            break;

        case KUBE_RESULT_STATUS:
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n,
                                   ":%s:%u", kube_verdict_text(
                                                 r.status->verdict),
                                   (unsigned) r.status->retry_after_s);
            break;

        case KUBE_RESULT_END:
            n += (size_t) snprintf(b->dump + n, sizeof(b->dump) - n,
                                   ":%s:%.*s", kube_rc_text(r.rc),
                                   (int) r.continue_token.len,
                                   r.continue_token.len
                                       ? r.continue_token.data : "");
            break;

        default:
            break;
        }

        assert_true(n < sizeof(b->dump));
    }
}


static void
test_two_calls_at_once(void **state)
{
    bed_t           b;
    kube_call_t    *list, *watch;
    io_exchange_t  *lx, *wx;

    (void) state;

    bed_init(&b);
    watch = bed_watch(&b);
    assert_non_null(watch);
    wx = io_find(&b.io, "/");
    list = bed_list(&b);
    assert_non_null(list);
    lx = io_find(&b.io, "/");

    assert_string_equal(lx->path, "/api/v1/namespaces/shop/services?"
                        "limit=2&resourceVersion=5&"
                        "resourceVersionMatch=NotOlderThan&"
                        "labelSelector=app%3Dweb");
    assert_non_null(strstr(wx->path, "watch=true"));
    assert_non_null(strstr(wx->path, "allowWatchBookmarks=true"));
    assert_non_null(strstr(wx->path, "timeoutSeconds=300"));

    /* nothing yet */
    assert_string_equal(yielded(&b, list), "");
    assert_string_equal(yielded(&b, watch), "");

    /* each has its own bytes, in any order, and no result is lost */
    assert_true(io_head(lx, 200, "application/json", 0));
    assert_true(io_head(wx, 200, "Application/JSON", 0));
    assert_true(io_body(&b.io, wx, EVENT("ADDED", SERVICE("a", "6"))
                                   "{\"type\":\"MODI"));
    assert_true(io_body(&b.io, lx, LIST("7", SERVICE("b", "3"))));
    assert_string_equal(yielded(&b, watch),
                        "OPENED EVENT:-0:a@6 ALIVE:partial");
    assert_true(io_body(&b.io, wx, "FIED\",\"object\":" SERVICE("a", "8")
                                   "}\n"));
    io_done(lx, KUBE_OK, "");
    assert_string_equal(yielded(&b, list),
                        "OPENED META:7 ITEM:-0:b@3 ALIVE:partial "
                        "END:ok:more");
    assert_string_equal(yielded(&b, watch), "EVENT:-1:a@8 ALIVE");

    /* over is over */
    assert_string_equal(yielded(&b, list), "");
    b.lw.cancel(b.lw.ctx, list);
    assert_int_equal(b.io.cancelled, 0);
    b.lw.cancel(b.lw.ctx, watch);
    assert_int_equal(b.io.cancelled, 1);
    bed_done(&b);
}


/* A head that looks good proves little of an address. */
static void
test_blame(void **state)
{
    bed_t           b;
    unsigned        i;
    kube_call_t    *call;
    io_exchange_t  *x;

    static const struct {
        bool         watch;
        bool         done;
        const char  *body;
        unsigned     bad;
    } cases[] = {
        { false, true, LIST("7", SERVICE("b", "3")), 0 },
        { false, true, "{\"kind\":\"Table\"}", 1 },
        { false, true, "<html>", 1 },
        { false, true, "{\"kind\":\"ServiceList\",", 1 },
        { false, false, "", 1 },
        { false, false, "  ", 1 },
        { true, true, EVENT("ADDED", SERVICE("a", "6")), 0 },
        { true, false, "", 0 },
        { true, true, "", 0 },
        { true, true, "<html>", 1 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_init(&b);
        call = cases[i].watch ? bed_watch(&b) : bed_list(&b);
        x = io_find(&b.io, "/");
        assert_true(io_head(x, 200, "application/json", 0));

        if (cases[i].body[0] != '\0') {
            (void) io_body(&b.io, x, cases[i].body);
        }

        if (cases[i].done) {
            io_done(x, KUBE_OK, "");
        }

        (void) yielded(&b, call);
        b.lw.cancel(b.lw.ctx, call);

        assert_int_equal(b.io.verdicts[KUBE_SERVER_BAD] != 0, cases[i].bad);
        assert_int_equal(b.io.verdicts[KUBE_SERVER_ANSWERS], 1);
        bed_done(&b);
    }
}


/* A WatchList begins with a list, which does not come to its end, or does. */
static void
test_blame_of_streams(void **state)
{
    bed_t                 b;
    unsigned              i;
    kube_call_t          *call;
    io_exchange_t        *x;
    kube_list_options_t   options;

    static const struct {
        const char  *body;
        unsigned     bad;
    } cases[] = {
        { "", 1 },
        { EVENT("ADDED", SERVICE("a", "6")), 1 },
        { EVENT("BOOKMARK", "{\"kind\":\"Service\",\"metadata\":{"
                "\"resourceVersion\":\"7\"}}"), 1 },
        { EVENT("BOOKMARK", "{\"kind\":\"Service\",\"metadata\":{"
                "\"resourceVersion\":\"7\",\"annotations\":{"
                "\"k8s.io/initial-events-end\":\"true\"}}}"), 0 },
        { EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410}"), 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_init(&b);
        options = at_5;
        options.initial_events = true;
        call = b.lw.watch(b.lw.ctx, &options, b.io.now_ms);
        x = io_find(&b.io, "/");
        assert_true(io_head(x, 200, "application/json", 0));

        if (cases[i].body[0] != '\0') {
            (void) io_body(&b.io, x, cases[i].body);
        }

        io_done(x, KUBE_OK, "");

        (void) yielded(&b, call);
        b.lw.cancel(b.lw.ctx, call);

        assert_int_equal(b.io.verdicts[KUBE_SERVER_BAD] != 0, cases[i].bad);
        bed_done(&b);
    }
}


/*
 * What is given is told once.  An ERROR event with nothing before it refuses,
 * and its exchange is none that stands by then.
 */
static void
test_blame_of_first_events(void **state)
{
    bed_t           b;
    size_t          i;
    kube_call_t    *call;
    io_exchange_t  *x;

    static const struct {
        const char  *body;
        unsigned     refuses;
        unsigned     grants;
    } cases[] = {
        { "", 0, 0 },
        { EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410}"), 1, 0 },
        { EVENT("ADDED", SERVICE("a", "6")) EVENT("ADDED", SERVICE("b", "7"))
          EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410}"), 0, 1 },
        { EVENT("BOOKMARK", "{\"kind\":\"Service\",\"metadata\":{"
                "\"resourceVersion\":\"7\"}}"), 0, 1 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_init(&b);
        call = bed_watch(&b);
        x = io_find(&b.io, "/");
        assert_true(io_head(x, 200, "application/json", 0));

        if (cases[i].body[0] != '\0') {
            (void) io_body(&b.io, x, cases[i].body);
        }

        (void) yielded(&b, call);
        assert_int_equal(b.io.verdicts[KUBE_SERVER_DECLINES],
                         cases[i].refuses);
        assert_int_equal(b.io.verdicts[KUBE_SERVER_GRANTS], cases[i].grants);
        assert_int_equal(x->live, !cases[i].refuses);
        b.lw.cancel(b.lw.ctx, call);
        bed_done(&b);
    }

    /* an empty list is given, too */

    bed_init(&b);
    call = bed_list(&b);
    io_answer(&b.io, io_find(&b.io, "/"), 200,
              "{\"kind\":\"ServiceList\",\"metadata\":{"
              "\"resourceVersion\":\"7\"},\"items\":[]}");
    (void) yielded(&b, call);
    assert_int_equal(b.io.verdicts[KUBE_SERVER_GRANTS], 1);
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


/* Whose head says that another address may do better. */
static void
test_blame_of_heads(void **state)
{
    bed_t           b;
    size_t          i;
    kube_call_t    *call;
    io_exchange_t  *x;

    static const struct {
        int                     code;
        const char             *type;
        kube_server_verdict_t   verdict;
    } cases[] = {
        { 200, "application/json", KUBE_SERVER_ANSWERS },
        { 200, "text/html", KUBE_SERVER_BAD },
        { 401, "application/json", KUBE_SERVER_BAD },
        { 403, "application/json", KUBE_SERVER_DECLINES },
        { 404, "application/json", KUBE_SERVER_BAD },
        { 408, "application/json", KUBE_SERVER_BAD },
        { 410, "application/json", KUBE_SERVER_DECLINES },
        { 421, "application/json", KUBE_SERVER_BAD },
        { 429, "text/plain", KUBE_SERVER_DECLINES },
        { 429, "application/json", KUBE_SERVER_DECLINES },
        { 500, "application/json", KUBE_SERVER_BAD }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_init(&b);
        call = bed_list(&b);
        x = io_find(&b.io, "/");
        assert_true(io_head(x, cases[i].code, cases[i].type, 0));
        assert_int_equal(b.io.verdicts[cases[i].verdict], 1);
        b.lw.cancel(b.lw.ctx, call);
        bed_done(&b);
    }
}


/* Of a scope's refusals the second counts for all, unless it comes at once. */
static void
test_blame_of_a_second_no(void **state)
{
    bed_t           b;
    size_t          i;
    kube_call_t    *call;
    io_exchange_t  *x;

    static const struct {
        int       code;
        size_t    server;
        uint64_t  after_ms;
        unsigned  refuses;
    } steps[] = {
        { 403, 0, 0, 0 },
        { 403, 0, KUBE_SERVER_FIRST_MS - 1, 0 },
        { 403, 0, 1, 1 },
        { 429, 0, KUBE_SERVER_FIRST_MS, 2 },
        { 403, 1, KUBE_SERVER_FIRST_MS, 2 },
        { 403, 0, KUBE_SERVER_FIRST_MS, 2 },
        { 410, 0, KUBE_SERVER_FIRST_MS, 3 },
        { 200, 0, KUBE_SERVER_FIRST_MS, 3 },
        { 403, 0, KUBE_SERVER_FIRST_MS, 3 }
    };

    (void) state;

    bed_init(&b);

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        b.io.now_ms += steps[i].after_ms;
        b.io.server = steps[i].server;
        call = bed_list(&b);
        x = io_find(&b.io, "/");
        assert_true(io_head(x, steps[i].code, "application/json", 0));

        if (steps[i].code == 200) {
            (void) io_body(&b.io, x, LIST("7", ""));
            io_done(x, KUBE_OK, "");
        }

        (void) yielded(&b, call);
        assert_int_equal(b.io.verdicts[KUBE_SERVER_REFUSES],
                         steps[i].refuses);
        b.lw.cancel(b.lw.ctx, call);
    }

    bed_done(&b);
}


/* A Role grants in its namespace alone. */
static void
test_remedy_of_forbidden(void **state)
{
    size_t                          i;
    bed_t                           b;
    kube_call_t                    *call;
    kube_result_t                   r;
    kube_api_lister_watcher_conf_t  conf;

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_conf(&b, &conf);
        conf.ns = kube_str(i ? "shop" : "");
        assert_int_equal(kube_api_lister_watcher_create(&b.own.alloc, &conf,
                                                        &b.lw),
                         KUBE_OK);
        call = bed_list(&b);
        io_answer(&b.io, io_find(&b.io, "/"), 403,
                  "{\"kind\":\"Status\",\"code\":403}");
        assert_int_equal(b.lw.next(b.lw.ctx, call, &r), KUBE_OK);
        assert_int_equal(r.kind, KUBE_RESULT_STATUS);
        assert_int_equal(r.status->remedy != NULL
                         && strstr(r.status->remedy, "ClusterRole") != NULL,
                         i == 0);
        b.lw.cancel(b.lw.ctx, call);
        bed_done(&b);
    }
}


/* Who has no credentials is told so, and not to let anybody list. */
static void
test_remedy_of_anonymous(void **state)
{
    bed_t          b;
    kube_call_t   *call;
    kube_result_t  r;

    (void) state;

    bed_init(&b);
    call = bed_list(&b);
    io_answer(&b.io, io_find(&b.io, "/"), 403,
              "{\"kind\":\"Status\",\"code\":403,\"message\":"
              "\"services is forbidden: User \\\"system:anonymous\\\" cannot "
              "list resource \\\"services\\\" in API group \\\"\\\" at the "
              "cluster scope\"}");
    assert_int_equal(b.lw.next(b.lw.ctx, call, &r), KUBE_OK);
    assert_int_equal(r.kind, KUBE_RESULT_STATUS);
    assert_non_null(strstr(r.status->remedy, "name a token"));
    assert_null(strstr(r.status->remedy, "grant"));
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


static void
test_failures_wait(void **state)
{
    bed_t           b;
    kube_call_t    *call;
    io_exchange_t  *x;

    (void) state;

    bed_init(&b);

    /* not even started: told by next() all the same */
    b.io.start_rc = KUBE_TOO_LARGE;
    call = bed_watch(&b);
    assert_non_null(call);
    assert_string_equal(yielded(&b, call), "END:larger than the limit:");
    b.lw.cancel(b.lw.ctx, call);

    call = bed_watch(&b);
    io_done(io_find(&b.io, "/"), KUBE_CONNECT, "no route");
    assert_string_equal(yielded(&b, call), "END:cannot connect:");
    b.lw.cancel(b.lw.ctx, call);

    /* closed without a head is no answer */
    call = bed_list(&b);
    io_done(io_find(&b.io, "/"), KUBE_OK, "");
    assert_string_equal(yielded(&b, call), "END:the peer broke the protocol:");
    b.lw.cancel(b.lw.ctx, call);

    /* a refusal is told when it is whole */
    call = bed_list(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 429, "application/json", 7));
    assert_true(io_body(&b.io, x, "{\"kind\":\"Status\",\"code\":429}"));
    assert_string_equal(yielded(&b, call), "");
    io_done(x, KUBE_OK, "");
    assert_string_equal(yielded(&b, call), "STATUS:too_many_requests:7");
    b.lw.cancel(b.lw.ctx, call);

    /* what comes before a failure comes first */
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_true(io_body(&b.io, x, EVENT("ADDED", SERVICE("a", "6")) "{"));
    io_done(x, KUBE_CLOSED, "reset");
    assert_string_equal(yielded(&b, call), "OPENED EVENT:-0:a@6 ALIVE:partial "
                        "END:the peer closed the connection:");
    b.lw.cancel(b.lw.ctx, call);

    /* an ERROR event ends the watch, whatever comes behind it */
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_true(io_body(&b.io, x,
                        EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410}")
                        EVENT("ADDED", SERVICE("a", "6"))));
    assert_string_equal(yielded(&b, call), "OPENED STATUS:expired:0");
    assert_false(io_body(&b.io, x, "more"));
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


static void
test_objects(void **state)
{
    bed_t           b;
    size_t          may;
    kube_call_t    *call;
    io_exchange_t  *x;
    static char     huge[8192], text[32768];

    (void) state;

    memset(huge, 'x', sizeof(huge) - 1);

    bed_init(&b);
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_string_equal(yielded(&b, call), "OPENED");

    assert_true(io_body(&b.io, x,
        EVENT("ADDED", "{\"kind\":\"Service\",\"apiVersion\":\"v1\","
              META("bad", "6") ",\"spec\":[]}")
        EVENT("DELETED", "{\"kind\":\"Service\",\"apiVersion\":\"v1\","
              META("bad", "7") ",\"spec\":[]}")
        EVENT("ADDED", "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\","
              "\"uid\":\"u\",\"resourceVersion\":\"8\"}}")
        EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"9\"}}")
        EVENT("RENAMED", SERVICE("web", "10"))
        "{}\n"));
    assert_string_equal(yielded(&b, call),
                        "EVENT:M0:bad@6 EVENT:-2:bad@7 EVENT:M0:@ BOOKMARK:9 "
                        "EVENT:M5:@ UNREADABLE ALIVE");

    snprintf(text, sizeof(text), EVENT("MODIFIED", "{" META("big", "11")
             ",\"x\":\"%s\"}") EVENT("DELETED", "{" META("big", "12")
             ",\"x\":\"%s\"}"), huge, huge);
    assert_true(io_body(&b.io, x, text));
    assert_string_equal(yielded(&b, call),
                        "EVENT:L1:big@11 EVENT:-2:big@12 ALIVE");

    /* both sizes are told: that of the object, then what it may have */
    assert_true(io_body(&b.io, x, text));
    take_one(&b, call, KUBE_RESULT_EVENT);
    may = kube_frame_item_bytes(KUBE_OBJECT_BYTES_MIN);
    (void) snprintf(text, sizeof(text), "more than max_object, %zu", may);
    assert_non_null(strstr(b.dump, text));
    (void) snprintf(text, sizeof(text), "its %zu bytes", may);
    assert_null(strstr(b.dump, text));
    (void) yielded(&b, call);

    /* not JSON at all: the stream is lost */
    assert_true(io_body(&b.io, x, "rubbish\n"));
    assert_string_equal(yielded(&b, call), "END:the peer broke the protocol:");
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


/*
 * A list of nothing but another namespace's is the answer to another request,
 * which a proxy was late with; one with some of ours is ours.
 */
static void
test_another_answer(void **state)
{
    bed_t           b;
    size_t          i;
    kube_call_t    *call;
    io_exchange_t  *x;

#define OTHERS                                                                \
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\","                   \
    "\"uid\":\"u\",\"resourceVersion\":\"3\"}}"

    static const struct {
        const char  *list;
        const char  *yields;
    } cases[] = {
        { LIST("7", OTHERS "," OTHERS), "OPENED META:7 ITEM:M0:@ ITEM:M0:@ "
          "ALIVE:partial END:the peer broke the protocol:more" },
        { LIST("7", OTHERS "," SERVICE("b", "3")), "OPENED META:7 ITEM:M0:@ "
          "ITEM:-0:b@3 ALIVE:partial END:ok:more" },
        { LIST("7", SERVICE("b", "3") "," OTHERS), "OPENED META:7 ITEM:-0:b@3 "
          "ITEM:M0:@ ALIVE:partial END:ok:more" },
        { LIST("7", "{}"), "OPENED META:7 ITEM:M0:@ ALIVE:partial "
          "END:ok:more" },
        { LIST("7", ""), "OPENED META:7 ALIVE:partial END:ok:more" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_init(&b);
        call = bed_list(&b);
        x = io_find(&b.io, "/");
        io_answer(&b.io, x, 200, cases[i].list);
        assert_string_equal(yielded(&b, call), cases[i].yields);
        b.lw.cancel(b.lw.ctx, call);
        assert_int_equal(b.io.verdicts[KUBE_SERVER_BAD] != 0, i == 0);
        bed_done(&b);
    }

#undef OTHERS
}


/* Twice the process dies of what was yielded last and ended the bytes. */
static void
die_twice(bed_t *b)
{
    unsigned      i;
    kube_death_t  death;

    for (i = 1; i <= 2; i++) {
        assert_int_equal(b->hand.stage, KUBE_STAGE_DECODE);
        kube_zone_poison_say(&b->zone, &b->hand, 11);
        assert_true(kube_zone_poison_take(&b->zone, i, &death));
        assert_int_equal(death.crashes, i);
        assert_int_equal(death.scope, 4);
    }
}


/* What is in hand is what next() has yielded; what is poison is not decoded. */
static void
test_poison(void **state)
{
    bed_t           b;
    kube_call_t    *call;
    io_exchange_t  *x;

    (void) state;

    bed_init(&b);
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_true(io_body(&b.io, x, FRAME("ADDED", SERVICE("a", "6"))));
    assert_string_equal(yielded(&b, call), "OPENED EVENT:-0:a@6 ALIVE");
    die_twice(&b);

    /* nor is what has begun in hand while its end is awaited */

    kube_hand_leave(&b.hand);
    assert_true(io_body(&b.io, x, "{\"type\":\"ADDED\",\"object\":{"
                        "\"kind\":\"Service\",\"apiVersion\":\"v1\","
                        META("b", "6") ",\"spec\":{\"ports\":["
                        "{\"port\":80},"));
    assert_string_equal(yielded(&b, call), "ALIVE:partial");
    assert_int_equal(b.hand.stage, KUBE_STAGE_NONE);
    assert_true(io_body(&b.io, x, "{\"port\":81}]}}}"));
    assert_string_equal(yielded(&b, call), "EVENT:-0:b@6 ALIVE");

    /* not what kills, and not looked at: the spec is no spec */
    assert_true(io_body(&b.io, x,
        EVENT("MODIFIED", "{\"kind\":\"Service\",\"apiVersion\":\"v1\","
              META("a", "7") ",\"spec\":[]}")
        EVENT("ADDED", SERVICE("b", "8"))
        EVENT("ADDED", "{\"kind\":\"Service\",\"metadata\":{\"name\":\"a\","
              "\"namespace\":\"shop\",\"uid\":\"new\","
              "\"resourceVersion\":\"9\"}}")
        EVENT("DELETED", SERVICE("a", "10"))));
    assert_string_equal(yielded(&b, call),
                        "EVENT:C1:a@7 EVENT:-0:b@8 EVENT:-0:a@9 "
                        "EVENT:-2:a@10 ALIVE");

    /* a frame without a key */
    assert_true(io_body(&b.io, x, FRAME("ADDED", "{\"x\":1}")));
    assert_string_equal(yielded(&b, call), "UNREADABLE ALIVE");
    die_twice(&b);
    assert_true(io_body(&b.io, x, EVENT("ADDED", "{\"x\":1}")
                                  EVENT("BOOKMARK", "{\"metadata\":{"
                                        "\"resourceVersion\":\"11\"}}")));
    assert_string_equal(yielded(&b, call), "UNREADABLE BOOKMARK:11 ALIVE");
    b.lw.cancel(b.lw.ctx, call);

    /* of a list it is an item like others */
    call = bed_list(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_true(io_body(&b.io, x, LIST("12", SERVICE("a", "7") ","
                                             SERVICE("b", "8"))));
    io_done(x, KUBE_OK, "");
    assert_string_equal(yielded(&b, call), "OPENED META:12 ITEM:C0:a@7 "
                                           "ITEM:-0:b@8 ALIVE:partial "
                                           "END:ok:more");
    b.lw.cancel(b.lw.ctx, call);

    /* until its time is over */
    b.hand.now_ms = KUBE_POISON_MS + 2;
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_true(io_body(&b.io, x, EVENT("ADDED", SERVICE("a", "13"))));
    assert_string_equal(yielded(&b, call), "OPENED EVENT:-0:a@13 ALIVE");
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


/* What nobody asks for is bounded, and the exchange rests meanwhile. */
static void
test_backpressure(void **state)
{
    bed_t           b;
    char            one[256];
    size_t          sent, seen;
    unsigned        i;
    kube_call_t    *call;
    kube_result_t   r;
    io_exchange_t  *x;

    static char  spaces[40001];

    (void) state;

    bed_init(&b);
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    b.io.chunk = 1000;
    sent = 0;
    seen = 0;

    for (i = 0; i < 5000 || !x->paused; i++) {

        if (!x->paused) {
            snprintf(one, sizeof(one), EVENT("BOOKMARK", "{\"metadata\":"
                     "{\"resourceVersion\":\"%zu\"}}"), 10 + sent++);
            assert_true(io_body(&b.io, x, one));
        }

        /* slower than the server: one for ten, but never quite up to date */
        if (i % 10 == 0 || x->paused) {
            assert_int_equal(b.lw.next(b.lw.ctx, call, &r), KUBE_OK);

            if (r.kind == KUBE_RESULT_BOOKMARK) {
                snprintf(one, sizeof(one), "%zu", 10 + seen++);
                assert_int_equal(r.rv.len, strlen(one));
                assert_memory_equal(r.rv.data, one, r.rv.len);
            }
        }

        assert_true(b.own.live_bytes < 6 * KUBE_TICK_BYTES);
    }

    assert_true(sent > 1000);
    assert_true(x->paused);

    while (seen != sent) {
        assert_int_equal(b.lw.next(b.lw.ctx, call, &r), KUBE_OK);
        seen += (r.kind == KUBE_RESULT_BOOKMARK);
    }

    assert_true(x->paused);
    assert_string_equal(yielded(&b, call), "ALIVE");
    assert_false(x->paused);
    assert_true(b.io.resumed >= 1);
    assert_true(b.own.live_bytes < 3 * KUBE_TICK_BYTES);

    /* what a quarter of the buffer holds is its end */
    memset(spaces, ' ', sizeof(spaces) - 1);
    assert_true(io_body(&b.io, x, spaces));
    snprintf(one, sizeof(one), EVENT("BOOKMARK", "{\"metadata\":"
             "{\"resourceVersion\":\"%zu\"}}"), 10 + sent);
    assert_true(io_body(&b.io, x, one));
    assert_int_equal(b.lw.next(b.lw.ctx, call, &r), KUBE_OK);
    assert_string_equal(yielded(&b, call), "ALIVE");
    assert_true(b.own.live_bytes < KUBE_TICK_BYTES);
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


/* What has arrived is told, though its exchange ends while it is paused. */
static void
test_end_while_paused(void **state)
{
    bed_t           b;
    kube_call_t    *call;
    io_exchange_t  *x;

    static char  spaces[KUBE_TICK_BYTES];

    (void) state;

    bed_init(&b);
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_string_equal(yielded(&b, call), "OPENED");

    memset(spaces, ' ', sizeof(spaces) - 1);
    assert_true(io_body(&b.io, x, spaces));
    assert_true(io_body(&b.io, x, EVENT("ADDED", SERVICE("a", "6"))));
    assert_true(x->paused);

    io_done(x, KUBE_CLOSED, "reset");
    assert_string_equal(yielded(&b, call), "EVENT:-0:a@6 ALIVE "
                        "END:the peer closed the connection:");
    assert_int_equal(b.io.resumed, 0);
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


/*
 * The room that a WatchList's items needed goes with the last of them, and that
 * of a list stays though its last bytes are few.
 */
static void
test_room(void **state)
{
    bed_t           b;
    size_t          before;
    kube_call_t    *call;
    io_exchange_t  *x;

    static char  spaces[100001];

    (void) state;

    memset(spaces, ' ', sizeof(spaces) - 1);

    bed_init(&b);
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_string_equal(yielded(&b, call), "OPENED");
    before = b.own.live_bytes;

    assert_true(io_body(&b.io, x, spaces));
    assert_true(io_body(&b.io, x,
        EVENT("ADDED", SERVICE("a", "6"))
        EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"7\","
              "\"annotations\":{\"k8s.io/initial-events-end\":"
              "\"true\"}}}")));
    assert_string_equal(yielded(&b, call), "EVENT:-0:a@6 BOOKMARK:7 ALIVE");
    assert_true(b.own.live_bytes < before + 90000);
    b.lw.cancel(b.lw.ctx, call);

    call = bed_list(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    assert_string_equal(yielded(&b, call), "OPENED");
    before = b.own.live_bytes;

    assert_true(io_body(&b.io, x, "{\"kind\":\"ServiceList\",\"metadata\":{"
                        "\"resourceVersion\":\"9\"},\"items\":["));
    assert_true(io_body(&b.io, x, spaces));
    assert_true(io_body(&b.io, x, SERVICE("a", "6")));
    take_one(&b, call, KUBE_RESULT_META);
    take_one(&b, call, KUBE_RESULT_ITEM);
    assert_true(io_body(&b.io, x, ","));
    assert_string_equal(yielded(&b, call), "ALIVE:partial");
    assert_true(b.own.live_bytes > before + 90000);
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


/* Sends the text in pieces, and asks after each; how many items came. */
static unsigned
pieces(const char *text, size_t size, size_t step, unsigned *refused)
{
    bed_t           b;
    char            piece[20000];
    size_t          n, at;
    unsigned        items;
    kube_call_t    *call;
    kube_result_t   r;
    io_exchange_t  *x;

    bed_init(&b);
    call = bed_list(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    items = 0;
    *refused = 0;
    r.kind = KUBE_RESULT_OPENED;

    for (at = 0; r.kind != KUBE_RESULT_END; at += n) {
        n = (size - at < step) ? size - at : step;

        if (n != 0) {
            memcpy(piece, text + at, n);
            piece[n] = '\0';
            assert_true(io_body(&b.io, x, piece));

        } else {
            io_done(x, KUBE_OK, "");
        }

        while (b.lw.next(b.lw.ctx, call, &r) == KUBE_OK) {

            if (r.kind == KUBE_RESULT_ITEM) {
                items++;
                *refused += (r.refusal == KUBE_REFUSAL_TOO_LARGE);
                assert_int_equal(kube_object_meta(&r.object)->name.len, 1);
            }

            if (r.kind == KUBE_RESULT_END) {
                assert_int_equal(r.rc, KUBE_OK);
                break;
            }
        }

        assert_false(x->live && x->paused);
        assert_true(b.own.live_bytes < 4 * KUBE_TICK_BYTES);
    }

    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);

    return items;
}


/*
 * An item whose end has not arrived waits in the buffer: whatever its pieces,
 * the same comes of a list, and a long one without a bracket holds up nothing.
 */
static void
test_pieces(void **state)
{
    char         *text;
    size_t        i, n;
    unsigned      refused;

    static const size_t  steps[] = { 1, 7, 333, 4096, 16384 };

    (void) state;

    text = malloc(200000);
    assert_non_null(text);

    n = (size_t) snprintf(text, 200000, "%s",
                          "{\"kind\":\"ServiceList\",\"apiVersion\":\"v1\","
                          "\"metadata\":{\"resourceVersion\":\"9\"},"
                          "\"items\":[" SERVICE("a", "1") ",\n{"
                          META("b", "2") ",\"x\":\"");
    memset(text + n, 'x', 150000);
    n += 150000;
    n += (size_t) snprintf(text + n, 200000 - n, "%s",
                           "\"}," SERVICE("c", "3") " ,{"
                           META("d", "4") "}, " SERVICE("e", "5") "]}\n");

    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        assert_int_equal(pieces(text, n, steps[i], &refused), 5);
        assert_int_equal(refused, 1);
    }

    free(text);
}


static void
test_credentials(void **state)
{
    bed_t  b;

    (void) state;

    bed_init(&b);
    b.lw.credentials(b.lw.ctx, b.io.now_ms);
    assert_int_equal(b.io.credentials, 1);
    bed_done(&b);
}


/* Every allocation fails: a call ends with NOMEM or yields what it should. */

static void
oom_run(alloc_test_t *at, void *ctx)
{
    bed_t           b;
    kube_call_t    *call;
    const char     *text;
    io_exchange_t  *x;

    (void) ctx;

    if (bed_make(&b, &at->alloc) != KUBE_OK) {
        assert_true(at->failed);
        return;
    }

    call = bed_list(&b);

    if (call != NULL) {
        x = io_find(&b.io, "/");
        assert_true(io_head(x, 200, "application/json", 0));

        if (io_body(&b.io, x, LIST("7", SERVICE("b", "3")))) {
            io_done(x, KUBE_OK, "");
        }

        text = yielded(&b, call);
        assert_true(strstr(text, "END:ok:more") != NULL
                    || (at->failed && strstr(text, "END:out of memory")));
        assert_true(strstr(text, "END:ok") == NULL
                    || strstr(text, "META:7 ITEM:-0:b@3") != NULL);
        b.lw.cancel(b.lw.ctx, call);

    } else {
        assert_true(at->failed);
    }

    call = bed_watch(&b);

    if (call != NULL) {
        x = io_find(&b.io, "/");
        assert_true(io_head(x, 403, "application/json", 0));

        if (io_body(&b.io, x, "{\"kind\":\"Status\",\"code\":403}")) {
            io_done(x, KUBE_OK, "");
        }

        /* without memory the code has to do */
        assert_string_equal(yielded(&b, call), "STATUS:forbidden:0");
        b.lw.cancel(b.lw.ctx, call);

    } else {
        assert_true(at->failed);
    }

    b.lw.destroy(b.lw.ctx);
}


static void
test_oom(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(oom_run, NULL);
}


#define PROTOBUF  "application/vnd.kubernetes.protobuf"


/* Writes an event of a Service as a watch in Protocol Buffers has it. */
static void
message_frame(message_t *m, const char *type, const char *name,
    const char *rv, bool ends)
{
    message_t  meta, entry, object, unknown, event;

    entry.len = 0;
    message_text(&entry, 1, "k8s.io/initial-events-end");
    message_text(&entry, 2, "true");

    meta.len = 0;

    if (name[0] != '\0') {
        message_text(&meta, 1, name);
        message_text(&meta, 3, "shop");
        message_text(&meta, 5, name);
    }

    message_text(&meta, 6, rv);

    if (ends) {
        message_bytes(&meta, 12, message_str(&entry));
    }

    object.len = 0;
    message_bytes(&object, 1, message_str(&meta));
    unknown.len = 0;
    message_unknown(&unknown, "v1", "Service", message_str(&object));
    event.len = 0;
    message_event(&event, type, message_str(&unknown));

    message_length(m, event.len);
    message_put(m, event.data, event.len);
}


/* Appends a Status, with what says that it is one. */
static void
message_status(message_t *m, const char *reason, uint64_t code,
    uint64_t retry_after_s)
{
    message_t  details, status;

    details.len = 0;
    message_number(&details, 5, retry_after_s);

    status.len = 0;
    message_text(&status, 1, "");
    message_text(&status, 2, "Failure");
    message_text(&status, 3, "said the server");
    message_text(&status, 4, reason);
    message_bytes(&status, 5, message_str(&details));
    message_number(&status, 6, code);

    message_unknown(m, "v1", "Status", message_str(&status));
}


static void
test_messages_list(void **state)
{
    size_t          k;
    bed_t           b;
    message_t       m, raw, meta;
    kube_call_t    *call;
    io_exchange_t  *x;

    (void) state;

    meta.len = 0;
    message_text(&meta, 2, "7");
    message_text(&meta, 3, "more");

    raw.len = 0;
    message_bytes(&raw, 1, message_str(&meta));
    meta.len = 0;
    message_meta(&meta, 1, "shop", "a", "u", "3");
    message_bytes(&raw, 2, message_str(&meta));
    meta.len = 0;
    message_meta(&meta, 1, "other", "b", "u", "4");
    message_bytes(&raw, 2, message_str(&meta));
    message_text(&raw, 2, "\xff");
    meta.len = 0;
    message_meta(&meta, 1, "shop", "c", "u", "5");
    message_bytes(&meta, 77, (kube_str_t) { m.data, 6000 });
    memset(m.data, 0, 6000);
    message_bytes(&raw, 2, message_str(&meta));

    m.len = 0;
    message_unknown(&m, "v1", "ServiceList", message_str(&raw));

    /* whole, in pieces, and cut anywhere: then it is no page */

    for (k = 0; k <= m.len; k += (k < 200) ? 1 : 997) {
        bed_init(&b);
        call = bed_list(&b);
        x = io_find(&b.io, "/");
        assert_int_equal(x->encoding, KUBE_ENCODING_AUTO);
        assert_true(io_head(x, 200, PROTOBUF, 0));
        b.io.chunk = (k % 3 == 0) ? 0 : 700 * (k % 3);

        if (k == 0) {
            assert_true(io_bytes(&b.io, x, m.data, m.len));

        } else {
            assert_true(io_bytes(&b.io, x, m.data, k - 1));
        }

        io_done(x, KUBE_OK, "");
        (void) yielded(&b, call);

        if (k == 0) {
            assert_string_equal(b.dump, "OPENED META:7 ITEM:-0:a@3 "
                                "ITEM:M0:@ ITEM:M0:@ ITEM:L0:c@5 "
                                "ALIVE:partial END:ok:more");
        } else {
            assert_null(strstr(b.dump, "END:ok"));
        }

        b.lw.cancel(b.lw.ctx, call);
        assert_int_equal(b.io.verdicts[KUBE_SERVER_BAD] != 0, k != 0);
        bed_done(&b);
    }

    /* the list of another resource, and none */

    m.len = 0;
    message_unknown(&m, "v1", "PodList", KUBE_STR("\x0a\x03\x12\x01" "7"));
    bed_init(&b);
    call = bed_list(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, PROTOBUF, 0));
    (void) io_bytes(&b.io, x, m.data, m.len);
    io_done(x, KUBE_OK, "");
    assert_non_null(strstr(yielded(&b, call), "END:the peer broke"));
    b.lw.cancel(b.lw.ctx, call);
    assert_true(b.io.verdicts[KUBE_SERVER_BAD] != 0);
    bed_done(&b);
}


/* A watch yields the same in either encoding, however its bytes arrive. */
static void
test_messages_watch(void **state)
{
    bed_t           b;
    size_t          chunk;
    char            words[sizeof(b.dump)];
    message_t       m, error, event;
    kube_call_t    *call;
    io_exchange_t  *x;

    static const char  json[] =
        EVENT("ADDED", SERVICE("a", "6"))
        EVENT("MODIFIED", SERVICE("b", "7"))
        EVENT("DELETED", SERVICE("a", "8"))
        EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"9\"}}")
        EVENT("ADDED", SERVICE("UP", "10"))
        EVENT("FUTURE", SERVICE("a", "11"))
        "{}\n"
        EVENT("ERROR", "{\"kind\":\"Status\",\"status\":\"Failure\","
                       "\"reason\":\"Expired\",\"code\":410,\"details\":"
                       "{\"retryAfterSeconds\":3}}");

    (void) state;

    m.len = 0;
    message_frame(&m, "ADDED", "a", "6", false);
    message_frame(&m, "MODIFIED", "b", "7", false);
    message_frame(&m, "DELETED", "a", "8", false);
    message_frame(&m, "BOOKMARK", "", "9", true);
    message_frame(&m, "ADDED", "UP", "10", false);
    message_frame(&m, "FUTURE", "a", "11", false);
    message_length(&m, 0);

    error.len = 0;
    message_status(&error, "Expired", 410, 3);
    event.len = 0;
    message_event(&event, "ERROR", message_str(&error));
    message_length(&m, event.len);
    message_put(&m, event.data, event.len);

    bed_init(&b);
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, "application/json", 0));
    (void) io_body(&b.io, x, json);
    (void) snprintf(words, sizeof(words), "%s", yielded(&b, call));
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);

    assert_non_null(strstr(words, "STATUS:expired:3"));

    for (chunk = 0; chunk < m.len + 2; chunk = chunk * 2 + 1) {
        bed_init(&b);
        b.io.chunk = chunk;
        call = bed_watch(&b);
        x = io_find(&b.io, "/");
        assert_true(io_head(x, 200, PROTOBUF, 0));
        (void) io_bytes(&b.io, x, m.data, m.len);
        assert_string_equal(yielded(&b, call), words);
        b.lw.cancel(b.lw.ctx, call);
        bed_done(&b);
    }

    /* an event that has begun and goes on later */

    bed_init(&b);
    call = bed_watch(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 200, PROTOBUF, 0));
    assert_true(io_bytes(&b.io, x, m.data, 30));
    assert_string_equal(yielded(&b, call), "OPENED ALIVE:partial");
    io_done(x, KUBE_OK, "");
    assert_non_null(strstr(yielded(&b, call), "END:the peer closed"));
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


/* What can be read and is no list is not called unreadable. */
static void
test_no_list(void **state)
{
    bed_t           b;
    size_t          i;
    kube_call_t    *call;
    io_exchange_t  *x;
    kube_result_t   r;

    static const struct {
        const char  *body;
        const char  *text;
    } cases[] = {
        { "{}", "JSON, but not a list" },
        { " { } ", "JSON, but not a list" },
        { "[1]", "JSON, but not a list" },
        { "{\"kind\":\"ServiceList\",\"metadata\":{\"resourceVersion\":"
          "\"5\"}}",
          "JSON, but not a list" },
        { "{,", "unreadable JSON" },
        { "{\"a\":1,}", "unreadable JSON" },
        { "<html>", "unreadable JSON" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bed_init(&b);
        call = bed_list(&b);
        x = io_find(&b.io, "/");
        assert_true(io_head(x, 200, "application/json", 0));
        (void) io_body(&b.io, x, cases[i].body);

        do {
            assert_int_equal(b.lw.next(b.lw.ctx, call, &r), KUBE_OK);
        } while (r.kind != KUBE_RESULT_END);

        assert_int_equal(r.rc, KUBE_PROTO);
        assert_string_equal(r.text, cases[i].text);
        b.lw.cancel(b.lw.ctx, call);
        bed_done(&b);
    }
}


/* The server's refusals come in what was asked for, a proxy's in anything. */
static void
test_messages_status(void **state)
{
    bed_t           b;
    size_t          i;
    message_t       m;
    kube_call_t    *call;
    io_exchange_t  *x;

    static const struct {
        int          code;
        const char  *type;
        const char  *body;        /* NULL: a Status in Protocol Buffers */
        const char  *words;
    } cases[] = {
        { 410, PROTOBUF, NULL, "STATUS:expired:3" },
        { 500, PROTOBUF, NULL, "STATUS:expired:3" },
        { 403, PROTOBUF, "k8s", "STATUS:forbidden:0" },
        { 429, PROTOBUF, "", "STATUS:too_many_requests:0" },
        { 429, "text/plain", "Not now", "STATUS:too_many_requests:0" },
        { 401, "application/json", "{\"kind\":\"Status\"}",
          "STATUS:unauthorized:0" },
        { 200, "text/html", "<html>", "END:the peer broke the protocol:" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        m.len = 0;

        if (cases[i].body == NULL) {
            message_status(&m, "Expired", 410, 3);

        } else {
            message_put(&m, cases[i].body, strlen(cases[i].body));
        }

        bed_init(&b);
        call = bed_list(&b);
        x = io_find(&b.io, "/");
        assert_true(io_head(x, cases[i].code, cases[i].type, 0));
        (void) io_bytes(&b.io, x, m.data, m.len);
        io_done(x, KUBE_OK, "");
        assert_string_equal(yielded(&b, call), cases[i].words);
        b.lw.cancel(b.lw.ctx, call);
        bed_done(&b);
    }
}


/*
 * What cannot do without JSON is asked again at once, with nothing else
 * changed, and from then on for nothing but JSON.
 */
static void
test_messages_refused(void **state)
{
    bed_t           b;
    size_t          i;
    char            path[sizeof(b.io.exchanges[0].path)];
    kube_call_t    *call;
    io_exchange_t  *x;

    static const int  codes[] = { 406, 415 };

    (void) state;

    for (i = 0; i < 2; i++) {
        bed_init(&b);
        call = bed_list(&b);
        x = io_find(&b.io, "/");
        assert_int_equal(x->encoding, KUBE_ENCODING_AUTO);
        (void) snprintf(path, sizeof(path), "%s", x->path);
        io_answer(&b.io, x, codes[i], "only 406 here");
        assert_string_equal(yielded(&b, call), "");

        x = io_find(&b.io, "/");
        assert_non_null(x);
        assert_int_equal(x->encoding, KUBE_ENCODING_JSON);
        assert_string_equal(x->path, path);
        io_answer(&b.io, x, 200, LIST("7", SERVICE("b", "3")));
        assert_string_equal(yielded(&b, call), "OPENED META:7 ITEM:-0:b@3 "
                                               "ALIVE:partial END:ok:more");
        b.lw.cancel(b.lw.ctx, call);

        call = bed_watch(&b);
        x = io_find(&b.io, "/");
        assert_int_equal(x->encoding, KUBE_ENCODING_JSON);
        io_answer(&b.io, x, codes[i], "");
        assert_string_equal(yielded(&b, call), "STATUS:other:0");
        b.lw.cancel(b.lw.ctx, call);
        assert_int_equal(b.io.started, 3);
        bed_done(&b);
    }

    /* where nothing else was wanted it is an answer like any other */

    bed_encoding = KUBE_ENCODING_PROTOBUF;
    bed_init(&b);
    bed_encoding = KUBE_ENCODING_AUTO;
    call = bed_list(&b);
    x = io_find(&b.io, "/");
    assert_int_equal(x->encoding, KUBE_ENCODING_PROTOBUF);
    io_answer(&b.io, x, 406, "");
    assert_string_equal(yielded(&b, call), "STATUS:other:0");
    b.lw.cancel(b.lw.ctx, call);
    assert_int_equal(b.io.started, 1);
    bed_done(&b);

    /* an answer that goes on after more than anybody wants to read of it */

    bed_init(&b);
    call = bed_list(&b);
    x = io_find(&b.io, "/");
    assert_true(io_head(x, 406, "text/plain", 0));
    assert_true(io_body(&b.io, x, "no"));
    assert_string_equal(yielded(&b, call), "");
    b.lw.cancel(b.lw.ctx, call);
    bed_done(&b);
}


static kube_rc_t
messages_without_memory(kube_alloc_t *alloc, void *ctx)
{
    bed_t           b;
    message_t      *m = ctx;
    kube_rc_t       rc;
    kube_call_t    *call;
    io_exchange_t  *x;

    rc = bed_make(&b, alloc);
    if (rc != KUBE_OK) {
        return rc;
    }

    call = bed_watch(&b);

    if (call != NULL) {
        b.io.chunk = 40;
        x = io_find(&b.io, "/");
        (void) io_head(x, 200, PROTOBUF, 0);
        (void) io_bytes(&b.io, x, m->data, m->len);
        (void) yielded(&b, call);
        rc = (strstr(b.dump, "END") == NULL) ? KUBE_OK : KUBE_NOMEM;
        b.lw.cancel(b.lw.ctx, call);

    } else {
        rc = KUBE_NOMEM;
    }

    b.lw.destroy(b.lw.ctx);

    return rc;
}


static void
test_messages_memory(void **state)
{
    message_t  m;

    (void) state;

    m.len = 0;
    message_frame(&m, "ADDED", "a", "6", false);
    message_frame(&m, "ADDED", "b", "7", false);

    ALLOC_TEST_EACH(messages_without_memory, &m);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_two_calls_at_once),
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_blame_of_streams),
        cmocka_unit_test(test_blame_of_first_events),
        cmocka_unit_test(test_blame_of_heads),
        cmocka_unit_test(test_blame_of_a_second_no),
        cmocka_unit_test(test_remedy_of_forbidden),
        cmocka_unit_test(test_remedy_of_anonymous),
        cmocka_unit_test(test_failures_wait),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_another_answer),
        cmocka_unit_test(test_poison),
        cmocka_unit_test(test_backpressure),
        cmocka_unit_test(test_end_while_paused),
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_credentials),
        cmocka_unit_test(test_oom),
        cmocka_unit_test(test_messages_list),
        cmocka_unit_test(test_messages_watch),
        cmocka_unit_test(test_no_list),
        cmocka_unit_test(test_messages_status),
        cmocka_unit_test(test_messages_refused),
        cmocka_unit_test(test_messages_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

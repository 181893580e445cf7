/*
 * test_shared_informer - an informer over a store on the heap: what deltas
 * become, how it ends, what callbacks may do, and memory that fails.
 *
 * What client-go's tests look at is in test_clientgo_handlers.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "handler_bed.h"


#define NO_RESYNC  KUBE_NEVER


/* An object that was made anew is two, whoever saw the end of the first. */
static void
test_recreated(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&told, &b, NO_RESYNC);
    bed_do(&b, "a b");
    bed_start(&b);
    (void) told_take(&told);

    /* the watch tells the end: one waits in the FIFO, both are told */
    bed_do(&b, "-a a");
    bed_settle(&b);
    assert_told(&told, "-a@2 +a@5");

    /* twice, and of the second nobody ever knew */
    bed_do(&b, "-a a -a a");
    bed_settle(&b);
    assert_told(&told, "-a@5 +a@9");

    bed_do(&b, "-b b -b");
    bed_settle(&b);
    assert_told(&told, "-b@3");

    bed_do(&b, "c -c");
    bed_settle(&b);
    assert_told(&told, "");
    bed_done(&b);
}


static void
remove_at_end(told_t *told, const kube_notification_t *n)
{
    if (n->kind == KUBE_NOTIFY_DELETED) {
        told_remove(told);
    }
}


/* Of an object made anew the second half is not told to who left meanwhile. */
static void
test_recreated_and_removed(void **state)
{
    bed_t     b;
    told_t    told;
    unsigned  again;

    (void) state;

    for (again = 0; again < 2; again++) {
        bed_init(&b, NO_RESYNC);
        told_add(&told, &b, NO_RESYNC);
        told.hook = remove_at_end;
        bed_do(&b, "a");
        bed_start(&b);
        assert_told(&told, "+a@2!");

        /* from the ring, and from what was pending */
        told.rc = again ? KUBE_AGAIN : KUBE_OK;
        bed_do(&b, "-a a");
        bed_settle(&b);
        told.rc = KUBE_OK;
        bed_sleep(&b, 2000);
        assert_told(&told, "-a@2");
        bed_done(&b);
    }
}


/*
 * A source that says what stands in a text: for each call what is asked and,
 * word by word, what comes.  "+a@5" ADDED, an item of a list; "*a@5" the same
 * with other content; "-a@5" DELETED; "xa@5" one that cannot be held and has
 * no uid; "=7" the end of initial events, the version of a list; "!" 410; "."
 * the end of a list; "," nothing more for this time.
 */
typedef struct {
    const char   *asked;
    const char   *says;
} canned_t;

static struct {
    const canned_t  *next;
    const char      *says;          /* of the call that runs */
    unsigned         lists;         /* asked for once all was said */
    kube_status_t    status;
} canned_now;


static kube_call_t *
canned_call(const char *asked)
{
    /* what is asked once all was said is not answered */
    if (canned_now.next->asked != NULL) {
        assert_string_equal(asked, canned_now.next->asked);
        canned_now.says = (canned_now.next++)->says;

    } else {
        canned_now.lists += (strcmp(asked, "LIST") == 0);
    }

    return (void *) &canned_now;
}


static kube_call_t *
canned_list(void *ctx, const kube_list_options_t *options, uint64_t now_ms)
{
    (void) ctx;
    (void) options;
    (void) now_ms;

    return canned_call("LIST");
}


static kube_call_t *
canned_watch(void *ctx, const kube_list_options_t *options, uint64_t now_ms)
{
    (void) ctx;
    (void) now_ms;

    return canned_call(options->initial_events ? "WATCHLIST" : "WATCH");
}


static kube_rc_t
canned_next(void *ctx, kube_call_t *call, kube_result_t *result)
{
    char               sign;
    size_t             len;
    kube_str_t         word;
    kube_meta_t       *meta;

    (void) ctx;
    (void) call;

    canned_now.says += strspn(canned_now.says, " ");
    len = strcspn(canned_now.says, " ");
    word = (kube_str_t) { canned_now.says, len };

    if (len == 0) {
        return KUBE_AGAIN;
    }

    canned_now.says += len;
    sign = *word.data++;
    word.len--;
    memset(result, 0, sizeof(kube_result_t));

    switch (sign) {

    case ',':
        return KUBE_AGAIN;

    case 'o':
        result->kind = KUBE_RESULT_OPENED;
        return KUBE_OK;

    case '.':
        result->kind = KUBE_RESULT_END;
        return KUBE_OK;

    case '!':
        result->kind = KUBE_RESULT_STATUS;
        canned_now.status.verdict = KUBE_VERDICT_EXPIRED;
        canned_now.status.code = 410;
        result->status = &canned_now.status;
        return KUBE_OK;

    case '=':
        result->kind = (strchr(canned_now.says, '.') != NULL)
                       ? KUBE_RESULT_META : KUBE_RESULT_BOOKMARK;
        result->initial_events_end = true;
        assert_int_equal(kube_rv_parse(word, &result->rv), KUBE_OK);
        return KUBE_OK;
    }

    result->kind = (strchr(canned_now.says, '.') != NULL) ? KUBE_RESULT_ITEM
                                                          : KUBE_RESULT_EVENT;
    result->type = (sign == '-') ? KUBE_WATCH_DELETED : KUBE_WATCH_ADDED;
    result->object.resource = KUBE_RESOURCE_SERVICES;

    meta = &result->object.u.service.meta;
    meta->ns = KUBE_STR("shop");
    meta->name = (kube_str_t) { word.data, 1 };
    meta->uid = KUBE_STR("u");
    meta->rv = (kube_str_t) { word.data + 2, word.len - 2 };
    assert_int_equal(kube_rv_parse(meta->rv, &result->rv), KUBE_OK);

    result->object.u.service.headless = (sign == '*');

    if (sign == 'x') {
        result->refusal = KUBE_REFUSAL_MALFORMED;
        meta->uid = KUBE_STR_NULL;
    }

    return KUBE_OK;
}


static bool
canned_ready(void *ctx, const kube_call_t *call)
{
    (void) ctx;
    (void) call;

    return canned_now.says[strspn(canned_now.says, " ")] != '\0';
}


static void
canned_cancel(void *ctx, kube_call_t *call)
{
    (void) ctx;
    (void) call;

    canned_now.says = "";
}


static void
canned_credentials(void *ctx, uint64_t now_ms)
{
    (void) ctx;
    (void) now_ms;
}


static void
canned_destroy(void *ctx)
{
    (void) ctx;
}


/*
 * Initial events of a WatchList may be older than what is held, where the
 * server went back: nothing older takes the place of what is newer, and a
 * plain list, which has a version, says what is true.
 */
static void
test_older(void **state)
{
    size_t                       i;
    bed_t                        b;
    told_t                       told;
    kube_shared_informer_conf_t  conf;

    static const kube_lister_watcher_t  lw = {
        .list = canned_list,
        .watch = canned_watch,
        .next = canned_next,
        .ready = canned_ready,
        .cancel = canned_cancel,
        .credentials = canned_credentials,
        .destroy = canned_destroy
    };

    static const struct {
        canned_t     calls[5];
        const char  *told;
        const char  *rv;
        unsigned     lists;         /* asked for, and not answered */
    } rows[] = {
        { { { "WATCHLIST", "o +a@5 +b@6 =7 , !" },
            { "WATCHLIST", "o +a@5 +b@6 =8 +b@9" } },
          "+a@5! +b@6! ~b@6>9", "9", 0 },

        /* one that cannot be held, nor said whether it was made anew */
        { { { "WATCHLIST", "o +a@5 +b@6 =7 , xa@8 +b@9 " } },
          "+a@5! +b@6! ~b@6>9", "9", 0 },

        /* an older one: what a list says is taken, whatever its version */
        { { { "WATCHLIST", "o +a@5 +b@6 =7 , !" },
            { "WATCHLIST", "o +a@3 , +b@6 =8 " },
            { "LIST", "o =9 +a@4 , +b@6 ." } },
          "+a@5! +b@6! ~a@5>4", "9", 0 },

        /* a version that comes twice, of what is other; and again */
        { { { "WATCHLIST", "o +a@5 +b@6 =7 , !" },
            { "WATCHLIST", "o *a@5 , +b@6 *a@5 =8 " } },
          "+a@5! +b@6! ~a@5>5", "8", 0 },
        { { { "WATCHLIST", "o +a@5 +b@6 =7 , !" },
            { "WATCHLIST", "o !" },
            { "LIST", "o =8 *a@5 , +b@6 ." } },
          "+a@5! +b@6! ~a@5>5", "8", 0 },

        /* an older end of what was seen to be there */
        { { { "WATCHLIST", "o +a@5 +b@6 =7 , !" },
            { "WATCHLIST", "o +a@8 +b@6 , -a@3 , =9 +b@10" } },
          "+a@5! +b@6! ~a@5>8 ~b@6>10", "10", 0 },
        { { { "WATCHLIST", "o +a@5 +b@6 =7 , !" },
            { "WATCHLIST", "o +a@8 +b@6 , -a@9 , =9 +b@10" } },
          "+a@5! +b@6! ~a@5>8 -a@8 ~b@6>10", "10", 0 },

        /* a list that showed a version that was to come */
        { { { "WATCHLIST", "o !" },
            { "LIST", "o =7 +a@90 , +b@6 ." },
            { "WATCH", "o +a@8 , +b@9 " },
            { "LIST", "o =9 +a@8 , +b@9 ." } },
          "+a@90! +b@6! ~a@90>8 ~b@6>9", "9", 0 },
        { { { "WATCHLIST", "o !" },
            { "LIST", "o =7 +a@90 , +b@6 ." },
            { "WATCH", "o -a@8 , +b@9 " },
            { "LIST", "o =9 +b@9 ." } },
          "+a@90! +b@6! ~b@6>9 -a@90?", "9", 0 },

        /* until it has come the version is that of the list before */
        { { { "WATCHLIST", "o !" },
            { "LIST", "o =7 +a@90 , +b@6 ." },
            { "WATCH", "o , +a@8 , +b@9 " } },
          "+a@90! +b@6!", "7", 1 },
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bed_init(&b, NO_RESYNC);
        kube_shared_informer_destroy(b.inf);

        memset(&canned_now, 0, sizeof(canned_now));
        canned_now.next = rows[i].calls;
        canned_now.says = "";
        conf = bed_conf(NO_RESYNC);
        conf.reflector.watch_list = KUBE_WATCH_LIST_ON;
        b.inf = kube_shared_informer_create(&b.alloc, &conf, &lw);
        assert_non_null(b.inf);

        told_add(&told, &b, NO_RESYNC);
        bed_start(&b);
        bed_sleep(&b, 60000);
        assert_told(&told, rows[i].told);
        assert_null(canned_now.next->asked);
        assert_int_equal(canned_now.lists, rows[i].lists);
        assert_true(kube_str_eq(kube_shared_informer_rv(b.inf),
                                kube_str(rows[i].rv)));
        bed_done(&b);
    }
}


/* Told or not, held or not: at each stop nothing is told any more. */
static void
test_stop(void **state)
{
    bed_t     b;
    told_t    told, slow;
    unsigned  drain, steps, i;

    (void) state;

    for (drain = 0; drain < 2; drain++) {
        for (steps = 0; steps < 12; steps++) {
            bed_init(&b, 1000);
            told_add(&told, &b, 1000);
            bed_do(&b, "a b c d e");
            assert_int_equal(kube_shared_informer_start(b.inf, b.now_ms),
                             KUBE_OK);
            told.rc = KUBE_AGAIN;

            for (i = 0; i < steps; i++) {
                kube_shared_informer_process(b.inf, b.now_ms);
            }

            kube_shared_informer_stop(b.inf, drain, b.now_ms);
            bed_do(&b, "f");

            if (drain) {
                assert_false(kube_shared_informer_is_stopped(b.inf));
                assert_true(kube_shared_informer_deadline(b.inf) <= b.now_ms);
                memset(&slow, 0, sizeof(slow));
                assert_int_equal(told_try(&slow, &b, 0, NULL), KUBE_INVALID);
                told.rc = KUBE_OK;
                bed_settle(&b);
                assert_int_equal(told.n, kube_store_count(
                                     kube_shared_informer_store(b.inf)));
            }

            assert_true(kube_shared_informer_is_stopped(b.inf));
            told.rc = KUBE_OK;
            drain ? (void) told_take(&told) : (void) 0;
            b.now_ms += 10000;
            bed_settle(&b);
            assert_told(&told, "");
            assert_int_equal(kube_shared_informer_deadline(b.inf), KUBE_NEVER);
            bed_done(&b);
        }
    }

    /* a drain that does not end is ended */
    bed_init(&b, NO_RESYNC);
    told_add(&told, &b, NO_RESYNC);
    told.rc = KUBE_AGAIN;
    bed_do(&b, "a");
    bed_start(&b);
    kube_shared_informer_stop(b.inf, true, b.now_ms);
    bed_settle(&b);
    assert_false(kube_shared_informer_is_stopped(b.inf));
    kube_shared_informer_stop(b.inf, false, b.now_ms);
    assert_true(kube_shared_informer_is_stopped(b.inf));
    bed_done(&b);

    /* never started, and never stopped */
    bed_init(&b, NO_RESYNC);
    kube_shared_informer_process(b.inf, b.now_ms);
    assert_int_equal(kube_shared_informer_deadline(b.inf), KUBE_NEVER);
    kube_shared_informer_stop(b.inf, true, b.now_ms);
    assert_true(kube_shared_informer_is_stopped(b.inf));
    bed_done(&b);
}


static void
busy_hook(told_t *told, const kube_notification_t *n)
{
    bed_t           *b = told->bed;
    kube_stored_t   *stored;

    /* the store has what is told, or newer; process() does nothing */

    if (told->n == 2) {
        bed_put(b, "e");
        kube_memory_source_process(b->source, b->now_ms);
    }

    kube_shared_informer_process(b->inf, b->now_ms);

    if (n->new != NULL) {
        stored = kube_store_get(kube_shared_informer_store(b->inf),
                                n->new->id.meta.ns, n->new->id.meta.name);
        assert_ptr_equal(stored, n->new);
    }

    if (told->n == 1) {
        assert_int_equal(told_try(told->other, b, NO_RESYNC, NULL), KUBE_OK);
    }

    if (told->n == 3) {
        kube_shared_informer_stop(b->inf, false, b->now_ms);
    }
}


static void
test_callbacks(void **state)
{
    bed_t   b;
    told_t  told, other;

    (void) state;

    bed_init(&b, NO_RESYNC);
    memset(&other, 0, sizeof(other));
    told_add(&told, &b, NO_RESYNC);
    told.hook = busy_hook;
    told.other = &other;
    bed_do(&b, "a b c d");
    bed_start(&b);
    assert_told(&told, "+a@2! +b@3! +c@4!");
    assert_told(&other, "");
    bed_done(&b);
}


/* More than one process() may take, and a FIFO that holds the source. */
static void
test_many(void **state)
{
    bed_t     b;
    char      name[16];
    told_t    told;
    unsigned  i;

    (void) state;

    bed_init(&b, NO_RESYNC);
    told_add(&told, &b, NO_RESYNC);

    for (i = 0; i < 3 * KUBE_SHARED_DELTAS; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        bed_put(&b, name);
    }

    assert_int_equal(kube_shared_informer_start(b.inf, b.now_ms), KUBE_OK);

    for (i = 0; !told_synced(&told); i++) {
        assert_true(i < 10000);
        assert_true(kube_shared_informer_deadline(b.inf) <= b.now_ms);
        kube_shared_informer_process(b.inf, b.now_ms);
    }

    assert_int_equal(told.n, 3 * KUBE_SHARED_DELTAS);
    assert_true(kube_str_eq(kube_shared_informer_rv(b.inf),
                            KUBE_STR("1537")));
    assert_string_equal(kube_shared_informer_name(b.inf), "services");
    bed_done(&b);
}


/* A refused state leaves the one before it, but not that of another object. */
static kube_rc_t
refuse_third(void *ctx, kube_object_t *object)
{
    bed_t  *b = ctx;

    (void) object;

    return (++b->transforms >= 3) ? KUBE_INVALID : KUBE_OK;
}


static void
test_refused(void **state)
{
    bed_t     b;
    told_t    told;
    uint64_t  n;

    (void) state;

    bed_init(&b, NO_RESYNC);
    assert_int_equal(kube_shared_informer_set_transform(b.inf, refuse_third,
                                                        &b), KUBE_OK);
    told_add(&told, &b, NO_RESYNC);
    bed_do(&b, "a b");
    bed_start(&b);
    bed_do(&b, "a");
    bed_settle(&b);
    assert_told(&told, "+a@2! +b@3!");
    assert_int_equal(kube_shared_informer_refused(b.inf), 1);

    bed_do(&b, "-b b");
    bed_settle(&b);
    assert_told(&told, "-b@3");

    /* a list of refused ones deletes what it does not have, and only that */
    kube_memory_source_quiet(b.source, true);
    bed_do(&b, "c");
    kube_memory_source_compact(b.source);
    kube_memory_source_reset(b.source, KUBE_CLOSED);
    kube_memory_source_quiet(b.source, false);
    n = kube_shared_informer_refused(b.inf);
    bed_sleep(&b, 60000);
    assert_told(&told, "");
    assert_int_equal(kube_store_count(kube_shared_informer_store(b.inf)), 1);
    assert_int_equal(kube_shared_informer_refused(b.inf), n + 3);
    bed_done(&b);
}


static kube_rc_t
rename_all(void *ctx, kube_object_t *object)
{
    (void) ctx;

    object->resource = KUBE_RESOURCES;
    object->u.meta.ns = KUBE_STR("other");
    object->u.meta.name = KUBE_STR("other");
    object->u.meta.rv = KUBE_STR("1");

    return KUBE_OK;
}


/* A transform changes what an object is made of, not which one it is. */
static void
test_renamed(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    assert_int_equal(kube_shared_informer_set_transform(b.inf, rename_all,
                                                        NULL), KUBE_OK);
    told_add(&told, &b, NO_RESYNC);
    bed_do(&b, "a b");
    bed_start(&b);
    bed_do(&b, "-a");
    bed_settle(&b);
    assert_told(&told, "+a@2! +b@3! -a@2");
    bed_done(&b);
}


/* Who comes late is told of what is held at once, not with the next event. */
static void
test_late_handler(void **state)
{
    bed_t   b;
    told_t  told;

    (void) state;

    bed_init(&b, NO_RESYNC);
    bed_do(&b, "a");
    bed_start(&b);
    assert_true(kube_shared_informer_deadline(b.inf) > b.now_ms);

    told_add(&told, &b, NO_RESYNC);
    assert_true(kube_shared_informer_deadline(b.inf) <= b.now_ms);
    bed_settle(&b);
    assert_told(&told, "+a@2!");
    bed_done(&b);
}


/* What there was no memory for is tried again soon, whether anything comes. */
static void
test_memory_comes_back(void **state)
{
    bed_t                        b;
    unsigned                     k;
    alloc_test_t                 at;
    const kube_stored_t         *stored;
    kube_shared_informer_conf_t  conf;

    (void) state;

    for (k = 1; k <= 12; k++) {
        alloc_test_init(&at);
        conf = bed_conf(NO_RESYNC);
        assert_int_equal(bed_make(&b, &at.alloc, &conf), KUBE_OK);
        bed_do(&b, "a");
        bed_start(&b);

        alloc_test_fail(&at, k, false);
        bed_do(&b, "a");
        bed_settle(&b);
        assert_true(!at.failed
                    || kube_shared_informer_deadline(b.inf)
                       <= b.now_ms + 1500);
        alloc_test_heal(&at);
        bed_sleep(&b, 1500);

        stored = kube_store_get(kube_shared_informer_store(b.inf),
                                KUBE_STR("shop"), KUBE_STR("a"));
        assert_non_null(stored);
        assert_true(kube_str_eq(stored->id.meta.rv, KUBE_STR("3")));
        bed_done(&b);
        alloc_test_assert_no_leak(&at);
    }
}


/* A list that had no memory to take away the second of three takes away all. */
static void
list_oom(alloc_test_t *at, void *ctx)
{
    bed_t                        b;
    told_t                       told;
    kube_shared_informer_conf_t  conf;

    (void) ctx;

    conf = bed_conf(NO_RESYNC);
    conf.processor.changes_max = 1;
    memset(&told, 0, sizeof(told));

    if (bed_make(&b, &at->alloc, &conf) != KUBE_OK
        || told_try(&told, &b, NO_RESYNC, NULL) != KUBE_OK)
    {
        assert_true(at->failed);
        bed_done(&b);
        return;
    }

    bed_do(&b, "a b c d e");
    bed_start(&b);
    bed_sleep(&b, 20000);
    told.rc = KUBE_AGAIN;

    kube_memory_source_quiet(b.source, true);
    bed_do(&b, "-c -d -e");
    kube_memory_source_compact(b.source);
    kube_memory_source_reset(b.source, KUBE_CLOSED);
    kube_memory_source_quiet(b.source, false);
    bed_sleep(&b, 100000);

    if (!at->fail_from || !at->failed) {
        assert_int_equal(kube_store_count(kube_shared_informer_store(b.inf)),
                         2);
    }

    bed_done(&b);
}


static void
informer_oom(alloc_test_t *at, void *ctx)
{
    bed_t                        b;
    told_t                       one, late;
    unsigned                     n;
    kube_shared_informer_conf_t  conf;

    (void) ctx;

    conf = bed_conf(2000);
    conf.processor.changes_max = 2;
    memset(&one, 0, sizeof(one));
    memset(&late, 0, sizeof(late));

    if (bed_make(&b, &at->alloc, &conf) != KUBE_OK) {
        assert_true(at->failed);
        bed_done(&b);
        return;
    }

    if (told_try(&one, &b, 0, NULL) != KUBE_OK
        || kube_shared_informer_add_index(b.inf, KUBE_STR("ns"),
                                          kube_index_namespace, NULL)
           != KUBE_OK)
    {
        assert_true(at->failed);
        bed_done(&b);
        return;
    }

    bed_do(&b, "a b c d");
    bed_start(&b);
    one.rc = KUBE_AGAIN;
    bed_do(&b, "a b -c e");
    bed_sleep(&b, 5000);
    one.rc = KUBE_OK;

    if (told_try(&late, &b, NO_RESYNC, NULL) != KUBE_OK) {
        assert_true(at->failed);
    }

    bed_do(&b, "-d d");
    bed_sleep(&b, 100000);

    /* it comes to the truth, unless there is no memory for ever */

    if (!at->fail_from || !at->failed) {
        assert_int_equal(kube_store_count(kube_shared_informer_store(b.inf)),
                         4);
        assert_true(told_synced(&one));
        assert_true(one.n >= 4);
        n = (late.registration.id != 0) ? late.n : 4;
        assert_true(n >= 4);
    }

    bed_done(&b);
}


static void
test_out_of_memory(void **state)
{
    (void) state;

    ALLOC_TEST_RUN(informer_oom, NULL);
    ALLOC_TEST_RUN(list_oom, NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_recreated),
        cmocka_unit_test(test_recreated_and_removed),
        cmocka_unit_test(test_older),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_renamed),
        cmocka_unit_test(test_late_handler),
        cmocka_unit_test(test_memory_comes_back),
        cmocka_unit_test(test_out_of_memory)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

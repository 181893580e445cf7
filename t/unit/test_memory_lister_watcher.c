/*
 * test_memory_lister_watcher - a source in memory, call by call: the contract
 * of kube_lister_watcher.h, and what an API server would answer.
 *
 * A script is words: "+shop/a" puts an object (":2" behind it: of another
 * uid), "-shop/a" removes it; "l5,2" lists at version 5 by pages of two, "n"
 * asks for the next page, "w5" watches from 5, "W" is a WatchList; "?" reads
 * what the call yields, "." cancels it.  The rest is in script_word().
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <stdio.h>

#include "alloc_test.h"
#include "kube_hash.h"
#include "kube_memory_lister_watcher.h"


#define CHANGES  4

/* Of the walk: objects, and changes that are remembered. */
#define KEYS     12
#define MEMORY   24

typedef struct {
    kube_memory_source_t   *source;
    kube_lister_watcher_t   lw;
    kube_call_t            *call;
    kube_list_options_t     options;
    char                    token[400];
    size_t                  n;
    char                    said[2048];
} bed_t;


static void
service_make(kube_object_t *object, const char *ns, size_t ns_len,
    const char *name, size_t name_len, unsigned port, kube_port_t *storage)
{
    memset(object, 0, sizeof(kube_object_t));
    memset(storage, 0, sizeof(kube_port_t));

    storage->port = (uint16_t) port;

    object->resource = KUBE_RESOURCE_SERVICES;
    object->u.meta.ns = (kube_str_t) { ns, ns_len };
    object->u.meta.name = (kube_str_t) { name, name_len };
    object->u.service.ports = storage;
    object->u.service.ports_n = 1;
}


static kube_rc_t
bed_make(bed_t *b, const kube_alloc_t *alloc, const char *ns)
{
    kube_rc_t  rc;

    memset(b, 0, sizeof(bed_t));

    b->source = kube_memory_source_create(alloc, KUBE_RESOURCE_SERVICES,
                                          CHANGES);
    if (b->source == NULL) {
        return KUBE_NOMEM;
    }

    rc = kube_memory_lister_watcher_create(b->source, kube_str(ns), &b->lw);

    if (rc != KUBE_OK) {
        kube_memory_source_destroy(b->source);
        b->source = NULL;
    }

    return rc;
}


static void
bed_done(bed_t *b)
{
    if (b->call != NULL) {
        b->lw.cancel(b->lw.ctx, b->call);
    }

    b->lw.destroy(b->lw.ctx);
    kube_memory_source_destroy(b->source);
}


static void
say_word(bed_t *b, const char *fmt, ...)
{
    int      n;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(b->said + b->n, sizeof(b->said) - b->n, fmt, args);
    va_end(args);

    assert_true(n > 0 && b->n + (size_t) n < sizeof(b->said));
    b->n += (size_t) n;
}


static void
say_object(bed_t *b, const kube_result_t *r, char sign)
{
    const kube_meta_t  *meta;

    meta = kube_object_meta(&r->object);

    assert_int_equal(r->refusal, KUBE_REFUSAL_NONE);
    assert_int_equal(r->object.resource, KUBE_RESOURCE_SERVICES);
    assert_int_equal(r->object.u.service.ports_n, 1);
    assert_true(kube_str_eq(meta->rv, kube_rv_str(&r->rv)));
    assert_true(meta->uid.len != 0);

    say_word(b, "%c%.*s/%.*s@%.*s ", sign, (int) meta->ns.len, meta->ns.data,
             (int) meta->name.len, meta->name.data, (int) r->rv.len,
             r->rv.data);
}


/* All that the call yields now, a word each. */
static void
say(bed_t *b)
{
    kube_result_t  r;

    static const char  signs[] = "+~-";

    for ( ;; ) {
        memset(&r, 0xa5, sizeof(r));

        if (!b->lw.ready(b->lw.ctx, b->call)) {
            assert_int_equal(b->lw.next(b->lw.ctx, b->call, &r), KUBE_AGAIN);
            return;
        }

        assert_int_equal(b->lw.next(b->lw.ctx, b->call, &r), KUBE_OK);

        switch (r.kind) {

        case KUBE_RESULT_OPENED:
            say_word(b, "( ");
            break;

        case KUBE_RESULT_META:
            say_word(b, "@%.*s ", (int) r.rv.len, r.rv.data);
            break;

        case KUBE_RESULT_ITEM:
            say_object(b, &r, '=');
            break;

        case KUBE_RESULT_EVENT:
            say_object(b, &r, signs[r.type]);
            break;

        case KUBE_RESULT_BOOKMARK:
            say_word(b, "^%.*s%s ", (int) r.rv.len, r.rv.data,
                     r.initial_events_end ? "!" : "");
            break;

        case KUBE_RESULT_ALIVE:
            assert_true(r.size_bytes != 0 && !r.partial);
            break;

        case KUBE_RESULT_STATUS:
            say_word(b, "%d%s ", r.status->code,
                     kube_verdict_text(r.status->verdict));

            if (r.status->retry_after_s != 0) {
                say_word(b, "(%u) ", r.status->retry_after_s);
            }

            break;

        case KUBE_RESULT_END:
            snprintf(b->token, sizeof(b->token), "%.*s",
                     (int) r.continue_token.len, r.continue_token.data);
            say_word(b, "%s%s ", (r.rc == KUBE_OK) ? "" : "broken",
                     (b->token[0] != '\0') ? ".." : ")");
            break;

        default:
            fail();
        }
    }
}


/* "shop/a" or "shop/a:2" */
static kube_rc_t
script_change(bed_t *b, const char *word, size_t len)
{
    size_t         ns_len, name_len;
    kube_port_t    port;
    kube_object_t  object;

    ns_len = strcspn(word + 1, "/");
    name_len = strcspn(word + 2 + ns_len, ": ");

    if (word[0] == '-') {
        return kube_memory_source_remove(b->source,
                                         (kube_str_t) { word + 1, ns_len },
                                         (kube_str_t) { word + 2 + ns_len,
                                                        name_len });
    }

    service_make(&object, word + 1, ns_len, word + 2 + ns_len, name_len, 80,
                 &port);

    if (2 + ns_len + name_len < len) {
        object.u.meta.uid = (kube_str_t) { word + 3 + ns_len + name_len,
                                           len - 3 - ns_len - name_len };
    }

    return kube_memory_source_put(b->source, &object);
}


static kube_rc_t
script_call(bed_t *b, const char *word, size_t len)
{
    size_t  rv_len;

    if (b->call != NULL) {
        b->lw.cancel(b->lw.ctx, b->call);
        b->call = NULL;
    }

    if (word[0] == 'n') {
        b->options.continue_token = kube_str(b->token);
        b->options.rv = KUBE_STR_NULL;

    } else {
        memset(&b->options, 0, sizeof(kube_list_options_t));
        rv_len = strcspn(word + 1, ", >");

        b->options.rv = (kube_str_t) { word + 1, rv_len };
        b->options.initial_events = (word[0] == 'W');
        b->options.not_older_than = (len > 1 && word[len - 1] == '>');
        b->options.limit = (word[1 + rv_len] == ',')
                           ? (uint32_t) (word[2 + rv_len] - '0') : 0;
        b->options.timeout_s = (word[0] == 'l') ? 0 : 300;
    }

    b->call = (word[0] == 'l' || word[0] == 'n')
              ? b->lw.list(b->lw.ctx, &b->options, 1000)
              : b->lw.watch(b->lw.ctx, &b->options, 1000);

    return (b->call != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static kube_rc_t
script_word(bed_t *b, const char *word, size_t len)
{
    switch (word[0]) {

    case '+':
    case '-':
        return script_change(b, word, len);

    case 'q':
        kube_memory_source_quiet(b->source, true);
        return KUBE_OK;

    case 'Q':
        kube_memory_source_quiet(b->source, false);
        return KUBE_OK;

    case 'c':
        kube_memory_source_compact(b->source);
        return KUBE_OK;

    case 'b':
        kube_memory_source_bookmark(b->source);
        return KUBE_OK;

    case 'x':
        kube_memory_source_reset(b->source, KUBE_CLOSED);
        return KUBE_OK;

    case 'f':      /* the next list or watch fails */
        kube_memory_source_refuse(b->source, word[1] == 'w', 1, 503, 7);
        return KUBE_OK;

    case 't':      /* a minute, and five, after the call began */
        kube_memory_source_process(b->source, (word[1] == '1') ? 61000
                                                               : 301000);
        return KUBE_OK;

    case '?':
        say(b);
        return KUBE_OK;

    case '.':
        b->lw.cancel(b->lw.ctx, b->call);
        b->call = NULL;
        return KUBE_OK;

    default:
        return script_call(b, word, len);
    }
}


static kube_rc_t
script_run(bed_t *b, const char *script)
{
    size_t     len;
    kube_rc_t  rc;

    while (*script != '\0') {
        len = strcspn(script, " ");
        rc = script_word(b, script, len);

        if (rc != KUBE_OK) {
            return rc;
        }

        script += len;
        script += strspn(script, " ");
    }

    return KUBE_OK;
}


static const struct {
    const char  *title;
    const char  *ns;
    const char  *script;
    const char  *said;
} scenarios[] = {
    { "an empty list", "", "l ?", "( @1 ) " },
    { "a list is in order", "", "+b/x +a/y +a/x l ?",
      "( @4 =a/x@4 =a/y@3 =b/x@2 ) " },
    { "a list of a namespace", "a", "+b/x +a/y l ?", "( @3 =a/y@3 ) " },
    { "pages", "", "+a/1 +a/2 +a/3 l,2 ? n ?",
      "( @4 =a/1@2 =a/2@3 .. ( @4 =a/3@4 ) " },
    { "pages of one version, whatever happens between them", "",
      "+a/1 +a/2 +a/3 +a/4 l,1 ? +a/2 -a/3 +a/11 n ? n ? n ?",
      "( @5 =a/1@2 .. ( @5 =a/2@3 .. ( @5 =a/3@4 .. ( @5 =a/4@5 ) " },
    { "a version that was forgotten between two pages", "",
      "+a/1 +a/2 l,1 ? +a/3 c n ?", "( @3 =a/1@2 .. 410expired " },
    { "a list at an old version", "", "+a/1 +a/1 +a/2 l3,9 ?",
      "( @3 =a/1@3 ) " },
    { "a list not older than it", "", "+a/1 +a/1 +a/2 l3,9> ?",
      "( @4 =a/1@3 =a/2@4 ) " },
    { "a list from the future", "", "+a/1 l3> ?", "504too_large_rv " },
    { "a version that is none", "", "lx ?", "400invalid " },
    { "a watch from a version", "", "+a/1 w2 ? +a/1 +a/2 -a/1 ?",
      "( ~a/1@3 +a/2@4 -a/1@5 " },
    { "a watch from the past", "", "+a/1 +a/2 w2 ?", "( +a/2@3 " },
    { "a watch of a namespace", "a", "w1 ? +b/1 +b/1 +b/1 +b/1 +b/1 +b/1 ? "
      "+a/1 ?", "( +a/1@8 " },
    { "a watch without a version", "", "+a/1 w ? -a/1 ?",
      "( +a/1@2 -a/1@3 " },
    { "a WatchList", "", "+a/1 +a/2 W> ? -a/1 ?",
      "( +a/1@2 +a/2@3 ^3! -a/1@4 " },
    { "a WatchList begins with one version", "", "+a/1 W> +a/1 ?",
      "( +a/1@2 ^2! ~a/1@3 " },
    { "a watch from what is forgotten", "", "+a/1 +a/1 c w2 ?",
      "410expired " },
    { "a watch that fell behind", "",
      "w1 ? +a/1 +a/1 +a/1 +a/1 ? +a/1 +a/1 +a/1 +a/1 +a/1 ?",
      "( +a/1@2 ~a/1@3 ~a/1@4 ~a/1@5 410expired " },
    { "compaction does not end a watch that has read all", "",
      "w1 ? +a/1 ? c +a/2 ?", "( +a/1@2 +a/2@3 " },
    { "recreated under its name", "", "+a/1:u1 +a/1:u1 w3 ? +a/1:u2 ?",
      "( -a/1@4 +a/1@5 " },
    { "a lost event", "", "w1 ? q +a/1 Q ? +a/2 ? l ?",
      "( +a/2@3 ( @3 =a/1@2 =a/2@3 ) " },
    { "a bookmark stands behind what was not read", "",
      "w1 ? +a/1 b ? b ?", "( +a/1@2 ^2 ^2 " },
    { "a bookmark a minute", "", "w1 ? +a/1 t1 ?", "( +a/1@2 ^2 " },
    { "the timeout of a watch", "", "w1 ? t5 ?", "( ) " },
    { "a watch that is cut off", "", "w1 ? +a/1 x ?", "( broken) " },
    { "a list that is cut off", "", "+a/1 l x ?", "broken) " },
    { "one list is refused", "", "fl w1 ? l ? l ?",
      "( 503unavailable (7) ( @1 ) " },
    { "one watch is refused", "", "fw l ? w1 ? w1 ?",
      "( @1 ) 503unavailable (7) ( " },
    { "deleted and added again", "", "+a/1 -a/1 +a/1 w1 ? l ?",
      "( +a/1@2 -a/1@3 +a/1@4 ( @4 =a/1@4 ) " },
};


static void
test_scenarios(void **state)
{
    bed_t         b;
    size_t        i;
    alloc_test_t  at;

    (void) state;

    for (i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        alloc_test_init(&at);
        assert_int_equal(bed_make(&b, &at.alloc, scenarios[i].ns), KUBE_OK);
        assert_int_equal(script_run(&b, scenarios[i].script), KUBE_OK);

        if (strcmp(b.said, scenarios[i].said) != 0) {
            fail_msg("%s: \"%s\"", scenarios[i].title, b.said);
        }

        bed_done(&b);
        alloc_test_assert_no_leak(&at);
    }
}


static void
test_refused_objects(void **state)
{
    bed_t          b;
    size_t         i;
    kube_port_t    port;
    alloc_test_t   at;
    kube_object_t  object;

    static const struct {
        const char       *ns;
        const char       *name;
        kube_resource_t   resource;
    } bad[] = {
        { "shop", "web", KUBE_RESOURCE_ENDPOINTSLICES },
        { "", "web", KUBE_RESOURCE_SERVICES },
        { "shop", "", KUBE_RESOURCE_SERVICES },
        { "shop", "Web", KUBE_RESOURCE_SERVICES },
        { "a.b", "web", KUBE_RESOURCE_SERVICES }
    };

    (void) state;

    alloc_test_init(&at);
    assert_int_equal(bed_make(&b, &at.alloc, ""), KUBE_OK);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        service_make(&object, bad[i].ns, strlen(bad[i].ns), bad[i].name,
                     strlen(bad[i].name), 80, &port);
        object.resource = bad[i].resource;

        assert_int_equal(kube_memory_source_put(b.source, &object),
                         KUBE_INVALID);
    }

    assert_int_equal(script_run(&b, "-shop/web"), KUBE_NOT_FOUND);
    assert_int_equal(kube_memory_source_rv(b.source), 1);
    assert_int_equal(kube_memory_source_count(b.source), 0);
    assert_true(kube_memory_source_deadline(b.source) == KUBE_NEVER);

    assert_int_equal(script_run(&b, "+shop/web w1"), KUBE_OK);
    assert_int_equal(kube_memory_source_count(b.source), 1);
    assert_int_equal(kube_memory_source_deadline(b.source),
                     1000 + KUBE_MEMORY_BOOKMARK_MS);

    bed_done(&b);
    alloc_test_assert_no_leak(&at);
}


/* A follower's view: the version of each key, 0 where it is not there. */
typedef struct {
    kube_lister_watcher_t   lw;
    kube_call_t            *call;
    bool                    listing;
    char                    ns;             /* 0: all */
    uint64_t                rv;
    uint64_t                page_rv;        /* of the list in progress */
    char                    token[64];
    uint64_t                objects[KEYS];
} follower_t;


static void
follower_begin(follower_t *f)
{
    char                 rv[24];
    kube_list_options_t  options;

    if (f->call != NULL) {
        f->lw.cancel(f->lw.ctx, f->call);
    }

    memset(&options, 0, sizeof(options));
    snprintf(rv, sizeof(rv), "%llu", (unsigned long long) f->rv);

    options.continue_token = kube_str(f->token);
    options.limit = 3;
    options.timeout_s = 100;

    if (!f->listing) {
        options.rv = kube_str(rv);
    }

    f->call = f->listing ? f->lw.list(f->lw.ctx, &options, 0)
                         : f->lw.watch(f->lw.ctx, &options, 0);
    assert_non_null(f->call);
}


static void
follower_relist(follower_t *f)
{
    memset(f->objects, 0, sizeof(f->objects));
    f->listing = true;
    f->page_rv = 0;
    f->token[0] = '\0';
}


static void
follower_object(follower_t *f, const kube_result_t *r)
{
    unsigned            key;
    uint64_t            rv;
    const kube_meta_t  *meta;

    meta = kube_object_meta(&r->object);
    assert_int_equal(kube_str_to_u64(meta->rv, UINT64_MAX, &rv), KUBE_OK);

    key = (unsigned) (meta->name.data[0] - 'a');
    assert_true(key < KEYS);
    assert_true(f->ns == 0 || meta->ns.data[0] == f->ns);

    if (r->kind == KUBE_RESULT_ITEM) {
        assert_true(rv <= f->page_rv);
        assert_int_equal(f->objects[key], 0);
        f->objects[key] = rv;

        return;
    }

    assert_true(rv > f->rv);
    assert_int_equal(f->objects[key] == 0, r->type == KUBE_WATCH_ADDED);

    f->rv = rv;
    f->objects[key] = (r->type == KUBE_WATCH_DELETED) ? 0 : rv;
}


/* Takes one result; false: there is none. */
static bool
follower_step(follower_t *f)
{
    kube_result_t  r;

    if (f->call == NULL) {
        follower_begin(f);
    }

    if (f->lw.next(f->lw.ctx, f->call, &r) != KUBE_OK) {
        return false;
    }

    switch (r.kind) {

    case KUBE_RESULT_META:
        assert_int_equal(kube_str_to_u64(kube_rv_str(&r.rv), UINT64_MAX,
                                         &f->rv),
                         KUBE_OK);

        /* each page is of the same version */
        assert_true(f->page_rv == 0 || f->page_rv == f->rv);
        f->page_rv = f->rv;
        break;

    case KUBE_RESULT_ITEM:
    case KUBE_RESULT_EVENT:
        follower_object(f, &r);
        break;

    case KUBE_RESULT_STATUS:
        assert_int_equal(r.status->verdict, KUBE_VERDICT_EXPIRED);
        follower_relist(f);
        follower_begin(f);
        break;

    case KUBE_RESULT_END:
        snprintf(f->token, sizeof(f->token), "%.*s",
                 (int) r.continue_token.len, r.continue_token.data);
        f->listing = (f->token[0] != '\0');
        follower_begin(f);
        break;

    default:
        break;
    }

    return true;
}


/*
 * Followers that read at random times, by lists of pages and by watches, and
 * are told 410 now and then: whoever has read everything holds what was put.
 */
static void
test_followers_agree(void **state)
{
    char                   name[2], ns[2];
    unsigned               i, key, step;
    uint64_t               truth[KEYS];
    follower_t             f[3];
    kube_port_t            port;
    alloc_test_t           at;
    kube_object_t          object;
    kube_random_t          random;
    kube_memory_source_t  *source;

    (void) state;

    memset(f, 0, sizeof(f));
    memset(truth, 0, sizeof(truth));
    alloc_test_init(&at);
    kube_random_init(&random, 11);

    source = kube_memory_source_create(&at.alloc, KUBE_RESOURCE_SERVICES,
                                       MEMORY);
    assert_non_null(source);

    f[2].ns = 'x';

    for (i = 0; i < 3; i++) {
        assert_int_equal(kube_memory_lister_watcher_create(source,
                                                           (kube_str_t) {
                                                               &f[i].ns,
                                                               f[i].ns != 0 },
                                                           &f[i].lw),
                         KUBE_OK);
        follower_relist(&f[i]);
    }

    for (step = 0; step < 20000; step++) {
        key = (unsigned) kube_random_range(&random, 0, KEYS - 1);
        name[0] = (char) ('a' + key);
        ns[0] = (key % 3 == 0) ? 'x' : 'y';

        switch (kube_random_range(&random, 0, 7)) {

        case 0:
        case 1:
        case 2:
            service_make(&object, ns, 1, name, 1, key + 1, &port);
            assert_int_equal(kube_memory_source_put(source, &object),
                             KUBE_OK);
            truth[key] = kube_memory_source_rv(source);
            break;

        case 3:
            assert_int_equal(kube_memory_source_remove(
                                 source, (kube_str_t) { ns, 1 },
                                 (kube_str_t) { name, 1 }),
                             truth[key] ? KUBE_OK : KUBE_NOT_FOUND);
            truth[key] = 0;
            break;

        case 4:
            if (step % 50 == 0) {
                kube_memory_source_compact(source);
                kube_memory_source_reset(source, KUBE_OK);
                follower_relist(&f[0]);
                follower_begin(&f[0]);
            }

            break;

        default:
            (void) follower_step(&f[key % 3]);
        }

        if (step % 500 != 499) {
            continue;
        }

        for (i = 0; i < 3; i++) {
            while (follower_step(&f[i])) {
                /* void */
            }

            assert_false(f[i].listing);

            for (key = 0; key < KEYS; key++) {
                assert_int_equal(f[i].objects[key],
                                 (i == 2 && key % 3 != 0) ? 0 : truth[key]);
            }
        }
    }

    for (i = 0; i < 3; i++) {
        f[i].lw.cancel(f[i].lw.ctx, f[i].call);
        f[i].lw.destroy(f[i].lw.ctx);
    }

    kube_memory_source_destroy(source);
    alloc_test_assert_no_leak(&at);
}


static kube_rc_t
memory_script(kube_alloc_t *alloc, void *ctx)
{
    bed_t        b;
    kube_rc_t    rc;
    const char  *script = ctx;

    rc = bed_make(&b, alloc, "a");

    if (rc != KUBE_OK) {
        return rc;
    }

    rc = script_run(&b, script);
    bed_done(&b);

    return rc;
}


static void
test_memory_oom(void **state)
{
    static char  script[] = "+a/1 +a/2 +b/1 +a/1 -a/2 +b/1:u l3,1 . l . w3 . "
                            "W> .";

    (void) state;

    ALLOC_TEST_EACH(memory_script, script);
}


/* What could not be put has changed nothing, and a call survives it. */
static void
test_nothing_changed(void **state)
{
    bed_t         b;
    size_t        k;
    alloc_test_t  at;

    (void) state;

    for (k = 1; k < 3; k++) {
        alloc_test_init(&at);
        assert_int_equal(bed_make(&b, &at.alloc, ""), KUBE_OK);
        assert_int_equal(script_run(&b, "+a/1 w2 ?"), KUBE_OK);

        alloc_test_fail(&at, k, true);

        if (script_run(&b, "+a/2 +a/3 +a/4 +a/5 +a/6") != KUBE_OK) {
            assert_true(at.failed);
        }

        alloc_test_heal(&at);
        assert_int_equal(script_run(&b, "? l ?"), KUBE_OK);
        assert_string_equal(b.said, (k == 1) ? "( ( @2 =a/1@2 ) "
                            : "( +a/2@3 ( @3 =a/1@2 =a/2@3 ) ");

        bed_done(&b);
        alloc_test_assert_no_leak(&at);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_scenarios),
        cmocka_unit_test(test_refused_objects),
        cmocka_unit_test(test_followers_agree),
        cmocka_unit_test(test_memory_oom),
        cmocka_unit_test(test_nothing_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

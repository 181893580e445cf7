/*
 * handler_bed - a shared informer over a source in memory, and handlers that
 * write down what they are told.
 *
 * What is told, a word each: "+a@2" an ADDED at version 2, "+a@2!" one of the
 * initial list, "~a@2>3" an UPDATED, "-a@3" a DELETED, "-a@3?" one of which
 * the final state is not known, "RESYNC".
 *
 * For the tests of kube_shared_informer and what is in it; not part of the
 * product.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_HANDLER_BED_H
#define KUBE_HANDLER_BED_H


#include <stdio.h>

#include "alloc_test.h"
#include "kube_memory_lister_watcher.h"
#include "kube_shared_informer.h"


#define HANDLER_SEED   { 5, 6 }
#define HANDLER_TOLD   8192

typedef struct bed_s   bed_t;
typedef struct told_s  told_t;

/* One handler. */
struct told_s {
    bed_t                *bed;
    kube_registration_t   registration;
    char                  text[HANDLER_TOLD];
    size_t                len;
    unsigned              n;            /* callbacks that were taken */
    kube_rc_t             rc;           /* what it answers */
    void                (*hook)(told_t *told, const kube_notification_t *n);
    told_t               *other;        /* for the hook */
    bool                  inside;
};

struct bed_s {
    alloc_test_t             own;       /* of what is not under test */
    kube_alloc_t             alloc;     /* of what is */
    kube_memory_source_t    *source;
    kube_shared_informer_t  *inf;
    uint64_t                 now_ms;
    unsigned                 port;      /* of the last object: each differs */
    unsigned                 errors;    /* watch errors */
    unsigned                 transforms;
};


/* "~name@rv>rv", "+name@rv!" */
static inline void
told_say(told_t *told, const char *sign, const kube_meta_t *meta,
    const kube_meta_t *new, const char *end)
{
    told->len += (size_t) snprintf(told->text + told->len,
                                   sizeof(told->text) - told->len,
                                   "%s%.*s@%.*s%s%.*s%s", sign,
                                   (int) meta->name.len, meta->name.data,
                                   (int) meta->rv.len, meta->rv.data,
                                   new != NULL ? ">" : "",
                                   new != NULL ? (int) new->rv.len : 0,
                                   new != NULL ? new->rv.data : "", end);
}


static inline kube_rc_t
told_notify(void *ctx, const kube_notification_t *n)
{
    told_t              *told = ctx;
    const kube_meta_t   *old, *new;

    assert_false(told->inside);

    if (told->rc == KUBE_AGAIN) {
        return KUBE_AGAIN;
    }

    old = (n->old != NULL) ? &n->old->id.meta : NULL;
    new = (n->new != NULL) ? &n->new->id.meta : NULL;

    if (told->len + 256 > sizeof(told->text)) {
        told->len = 0;
    }

    if (told->len != 0) {
        told->text[told->len++] = ' ';
    }

    switch (n->kind) {

    case KUBE_NOTIFY_ADDED:
        assert_true(old == NULL && new != NULL);
        told_say(told, "+", new, NULL, n->in_initial_list ? "!" : "");
        break;

    case KUBE_NOTIFY_UPDATED:
        assert_true(old != NULL && new != NULL);
        assert_true(kube_str_eq(old->name, new->name));
        assert_true(kube_str_eq(old->uid, new->uid));
        told_say(told, "~", old, new, "");
        break;

    case KUBE_NOTIFY_DELETED:
        assert_true(old != NULL && new == NULL);
        told_say(told, "-", old, NULL, n->final_state_unknown ? "?" : "");
        break;

    case KUBE_NOTIFY_RESYNC:
        assert_true(old == NULL && new == NULL);
        told->len += (size_t) snprintf(told->text + told->len, 8, "RESYNC");
    }

    told->n++;

    if (told->hook != NULL) {
        told->inside = true;
        told->hook(told, n);
        told->inside = false;
    }

    return told->rc;
}


/* What was told since the last time. */
static inline const char *
told_take(told_t *told)
{
    told->text[told->len] = '\0';
    told->len = 0;

    return told->text;
}

#define assert_told(told, words)  assert_string_equal(told_take(told), words)


static inline kube_shared_informer_conf_t
bed_conf(uint64_t resync_ms)
{
    kube_shared_informer_conf_t  conf;

    static const kube_seed_t  seed = HANDLER_SEED;

    memset(&conf, 0, sizeof(conf));

    conf.resource = KUBE_RESOURCE_SERVICES;
    conf.reflector = kube_reflector_conf_defaults(3);
    conf.reflector.page_size = 2;
    conf.reflector.watch_list = KUBE_WATCH_LIST_OFF;
    conf.processor.seed = seed;
    conf.processor.changes_max = KUBE_RING_CHANGES;
    conf.processor.bytes_max = KUBE_RING_BYTES;
    conf.processor.resync_ms = resync_ms;

    return conf;
}


/* alloc NULL: the bed's own. */
static inline kube_rc_t
bed_make(bed_t *b, const kube_alloc_t *alloc,
    const kube_shared_informer_conf_t *conf)
{
    kube_rc_t              rc;
    kube_lister_watcher_t  lw;

    memset(b, 0, sizeof(bed_t));
    alloc_test_init(&b->own);

    b->alloc = (alloc != NULL) ? *alloc : b->own.alloc;
    b->now_ms = 1000000;

    b->source = kube_memory_source_create(&b->own.alloc, conf->resource, 64);
    assert_non_null(b->source);

    rc = kube_memory_lister_watcher_create(b->source, KUBE_STR_NULL, &lw);
    assert_int_equal(rc, KUBE_OK);

    b->inf = kube_shared_informer_create(&b->alloc, conf, &lw);

    return (b->inf != NULL) ? KUBE_OK : KUBE_NOMEM;
}


static inline void
bed_init(bed_t *b, uint64_t resync_ms)
{
    kube_shared_informer_conf_t  conf;

    conf = bed_conf(resync_ms);
    assert_int_equal(bed_make(b, NULL, &conf), KUBE_OK);
}


static inline void
bed_done(bed_t *b)
{
    kube_shared_informer_destroy(b->inf);
    kube_memory_source_destroy(b->source);
    alloc_test_assert_no_leak(&b->own);
}


/* Adds or changes a Service: each time something of it is another. */
static inline void
bed_put(bed_t *b, const char *name)
{
    kube_port_t    port;
    kube_object_t  o;

    memset(&o, 0, sizeof(kube_object_t));
    memset(&port, 0, sizeof(kube_port_t));

    b->port = b->port % 60000 + 1;
    port.port = (uint16_t) b->port;

    o.resource = KUBE_RESOURCE_SERVICES;
    o.u.service.meta.ns = KUBE_STR("shop");
    o.u.service.meta.name = kube_str(name);
    o.u.service.ports = &port;
    o.u.service.ports_n = 1;

    assert_int_equal(kube_memory_source_put(b->source, &o), KUBE_OK);
}


static inline void
bed_remove(bed_t *b, const char *name)
{
    assert_int_equal(kube_memory_source_remove(b->source, KUBE_STR("shop"),
                                               kube_str(name)), KUBE_OK);
}


/* "a b -c": puts and removals. */
static inline void
bed_do(bed_t *b, const char *words)
{
    char   copy[512];
    char  *word, *last;

    snprintf(copy, sizeof(copy), "%s", words);

    for (word = strtok_r(copy, " ", &last);
         word != NULL;
         word = strtok_r(NULL, " ", &last))
    {
        if (word[0] == '-') {
            bed_remove(b, word + 1);

        } else {
            bed_put(b, word);
        }
    }
}


/* Until nothing more is due now. */
static inline void
bed_settle(bed_t *b)
{
    unsigned  n;

    kube_memory_source_process(b->source, b->now_ms);

    for (n = 0; n < 10000; n++) {
        kube_shared_informer_process(b->inf, b->now_ms);

        if (kube_shared_informer_deadline(b->inf) > b->now_ms) {
            return;
        }
    }

    fail_msg("it never settles");
}


static inline void
bed_sleep(bed_t *b, uint64_t ms)
{
    uint64_t  until_ms, next_ms;

    until_ms = b->now_ms + ms;

    while (b->now_ms < until_ms) {
        next_ms = kube_shared_informer_deadline(b->inf);
        b->now_ms = (next_ms <= b->now_ms) ? b->now_ms + 1
                    : (next_ms < until_ms) ? next_ms : until_ms;
        bed_settle(b);
    }
}


static inline void
bed_start(bed_t *b)
{
    assert_int_equal(kube_shared_informer_start(b->inf, b->now_ms), KUBE_OK);
    bed_settle(b);
}


static inline kube_rc_t
told_try(told_t *told, bed_t *b, uint64_t resync_ms,
    bool (*filter)(void *ctx, const kube_stored_t *stored))
{
    kube_handler_t  handler;

    told->bed = b;

    handler = (kube_handler_t) {
        .notify = told_notify,
        .filter = filter,
        .ctx = told,
        .resync_ms = resync_ms
    };

    return kube_shared_informer_add_handler(b->inf, &handler,
                                            &told->registration, b->now_ms);
}


/* A handler from now on. */
static inline void
told_add(told_t *told, bed_t *b, uint64_t resync_ms)
{
    memset(told, 0, sizeof(told_t));
    assert_int_equal(told_try(told, b, resync_ms, NULL), KUBE_OK);
}


static inline bool
told_synced(const told_t *told)
{
    return kube_shared_informer_handler_has_synced(told->bed->inf,
                                                   told->registration);
}


static inline void
told_remove(told_t *told)
{
    kube_shared_informer_remove_handler(told->bed->inf, told->registration);
}


#endif /* KUBE_HANDLER_BED_H */

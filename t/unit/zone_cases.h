/*
 * zone_cases - what events of the API server do to a zone, through indexer and
 * publisher, each case from a small cluster on: for tests that stop a writer
 * or a reader half-way.
 *
 * Not part of the product.  It includes the writer's log, whose inside it
 * looks at: a test that includes it builds that file in.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_CASES_H
#define KUBE_ZONE_CASES_H


#include "kube_zone_live.h"
#include "kube_zone_log.c"
#include "indexer_test.h"


#define CASE_SIZE    KUBE_ZONE_SIZE_MIN
#define CASE_NAMES   32
#define CASE_TEXT    400
#define CASE_EVENTS  48

/* How long the last good state of what is refused may stay, where it may. */
#define CASE_OUTDATED_MS  1000


/* What the API server sends.  Marks have a scope and no object. */
typedef struct {
    kube_delta_kind_t  kind;
    unsigned           scope;
    it_object_t        o;
} case_event_t;

/* A Service that may change. */
typedef struct {
    char  ns[16];
    char  name[32];
} case_name_t;

/* The cluster of the case that is tried now, and what it sends. */
static struct {
    it_t           live;
    void          *pristine;         /* the image before the events */
    unsigned       names_n;
    case_name_t    names[CASE_NAMES];
    unsigned       events_n;
    case_event_t   events[CASE_EVENTS];
    bool           expires;          /* time passes after the last one */
} case_bed;

static const kube_str_t  case_static[] = { KUBE_STR("shop/new") };


/* "port slice=version*endpoints ...", the slices by name. */
static void
case_text(const kube_snapshot_t *s, char *text)
{
    size_t         i, j, len;
    kube_slice_t   slice;

    for (i = 1; i < s->slices_n; i++) {
        for (j = i; j > 0 && kube_str_cmp(s->slices[j].meta.name,
                                          s->slices[j - 1].meta.name) < 0; j--)
        {
            slice = s->slices[j];
            s->slices[j] = s->slices[j - 1];
            s->slices[j - 1] = slice;
        }
    }

    len = (size_t) snprintf(text, CASE_TEXT, "%u",
                            s->service.ports[0].port - 1u);

    for (i = 0; i < s->slices_n; i++) {
        slice = s->slices[i];
        len += (size_t) snprintf(text + len, CASE_TEXT - len, " %.*s=%u*%zu",
                                 (int) slice.meta.name.len,
                                 slice.meta.name.data,
                                 slice.endpoints[0].address.bytes[2],
                                 slice.endpoints_n);
        assert_true(len < CASE_TEXT);
    }
}


static void
case_open(it_t *it)
{
    it_zone(it, CASE_SIZE);
    it->conf.static_keys = case_static;
    it->conf.static_keys_n = 1;
}


static void
case_start(it_t *it)
{
    it->conf.max_outdated_ms = case_bed.expires ? CASE_OUTDATED_MS : 0;
    assert_int_equal(it_start(it), KUBE_OK);
    assert_int_equal(it_scopes(it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it->ix, it->now_ms), KUBE_OK);
}


/* Back to before the events. */
static void
case_rewind(void)
{
    it_stop(&case_bed.live);
    memcpy(case_bed.live.mem, case_bed.pristine, CASE_SIZE);
    case_start(&case_bed.live);
}


/* The events first .. end - 1 of what the watch sends. */
static void
case_run(it_t *it, unsigned first, unsigned end)
{
    unsigned             i;
    kube_rc_t            rc;
    const case_event_t  *e;

    for (i = first; i < end; i++) {
        e = &case_bed.events[i];

        if (e->kind == KUBE_DELTA_LIST_BEGIN || e->kind == KUBE_DELTA_SYNC) {
            rc = it_mark(it, e->kind, e->scope);

        } else {
            rc = it_apply(it, e->kind, &e->o);
        }

        assert_int_equal(rc, KUBE_OK);
    }

    if (case_bed.expires && first < end && end == case_bed.events_n) {
        it->now_ms += 2 * CASE_OUTDATED_MS;
    }

    (void) it_publish(it);
}


/* All that is not live may be overwritten by now. */
static void
case_overwrite(it_t *it)
{
    uint32_t             at, end, size, segment;
    kube_zone_writer_t  *w;

    w = it->writer;

    for (segment = 0; segment < log_segments_n(w); segment++) {
        at = log_segment_offset(w, segment);
        end = at + log_segment_size(w) / KUBE_ZONE_UNIT;

        while (at < end) {
            size = kube_zone_live_size(w, at);

            if (size == 0) {
                size = KUBE_ZONE_UNIT;
                memset(kube_zone_record_at(&it->zone, at), 0xff, size);
            }

            at += size / KUBE_ZONE_UNIT;
        }
    }
}


static void
case_event(kube_delta_kind_t kind, const it_object_t *o)
{
    case_event_t  *e;

    assert_true(case_bed.events_n < CASE_EVENTS);
    e = &case_bed.events[case_bed.events_n++];
    e->kind = kind;
    e->o = *o;
}


static void
case_mark(kube_delta_kind_t kind, unsigned scope)
{
    case_event_t  *e;

    assert_true(case_bed.events_n < CASE_EVENTS);
    e = &case_bed.events[case_bed.events_n++];
    e->kind = kind;
    e->scope = scope;
}


/* The next version of an object. */
static it_object_t
case_next(const it_object_t *o)
{
    it_object_t  next;

    next = *o;
    next.version++;
    it_stamp(&case_bed.live, &next);

    return next;
}


static void
case_watch(const char *ns, const char *name)
{
    case_name_t  *n;

    assert_true(case_bed.names_n < CASE_NAMES);
    n = &case_bed.names[case_bed.names_n++];
    snprintf(n->ns, sizeof(n->ns), "%s", ns);
    snprintf(n->name, sizeof(n->name), "%s", name);
}


/* Services a and b with two slices each; x and new are none yet. */
typedef struct {
    it_object_t  a, b, a1, a2, b1, b2;
} case_shop_t;


static case_shop_t
case_shop(void)
{
    it_t         *it;
    case_shop_t   shop;

    it = &case_bed.live;
    shop.a = it_service(it, "shop", "a");
    shop.b = it_service(it, "shop", "b");
    shop.a1 = it_slice(it, "shop", "a-1", "a");
    shop.a2 = it_slice(it, "shop", "a-2", "a");
    shop.b1 = it_slice(it, "shop", "b-1", "b");
    shop.b2 = it_slice(it, "shop", "b-2", "b");

    IT_UPDATE(it, &shop.a);
    IT_UPDATE(it, &shop.b);
    IT_UPDATE(it, &shop.a1);
    IT_UPDATE(it, &shop.a2);
    IT_UPDATE(it, &shop.b1);
    IT_UPDATE(it, &shop.b2);
    (void) it_publish(it);

    case_watch("shop", "a");
    case_watch("shop", "b");
    case_watch("shop", "x");
    case_watch("shop", "new");

    return shop;
}


static void
case_insert(void)
{
    it_object_t  o;

    (void) case_shop();
    o = it_slice(&case_bed.live, "shop", "new-1", "new");
    case_event(KUBE_DELTA_UPDATED, &o);
    o = it_service(&case_bed.live, "shop", "new");
    case_event(KUBE_DELTA_UPDATED, &o);
    o = it_slice(&case_bed.live, "shop", "new-2", "new");
    case_event(KUBE_DELTA_UPDATED, &o);
}


static void
case_update(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    o = case_next(&shop.a1);
    case_event(KUBE_DELTA_UPDATED, &o);
    o = case_next(&shop.b);
    case_event(KUBE_DELTA_UPDATED, &o);
    o = case_next(&shop.b2);
    case_event(KUBE_DELTA_UPDATED, &o);
}


static void
case_delete(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    o = case_next(&shop.a1);
    case_event(KUBE_DELTA_DELETED, &o);
    o = case_next(&shop.b);
    case_event(KUBE_DELTA_DELETED, &o);
}


static void
case_delete_all(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    o = case_next(&shop.a1);
    case_event(KUBE_DELTA_DELETED, &o);
    o = case_next(&shop.a);
    case_event(KUBE_DELTA_DELETED, &o);
    o = case_next(&shop.a2);
    case_event(KUBE_DELTA_DELETED, &o);
}


/* To another Service, and to one that does not exist. */
static void
case_relabel(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    o = case_next(&shop.a1);
    snprintf(o.service, sizeof(o.service), "b");
    case_event(KUBE_DELTA_UPDATED, &o);
    o = case_next(&shop.b2);
    snprintf(o.service, sizeof(o.service), "x");
    case_event(KUBE_DELTA_UPDATED, &o);
}


static void
case_refuse(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    o = case_next(&shop.a1);
    case_event(KUBE_DELTA_REFUSED, &o);
    o = case_next(&shop.b);
    case_event(KUBE_DELTA_REFUSED, &o);
}


/* What could not be held, and its next version can. */
static void
case_refuse_once(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    o = case_next(&shop.b);
    case_event(KUBE_DELTA_REFUSED, &o);
    o = case_next(&o);
    case_event(KUBE_DELTA_UPDATED, &o);
}


/* Of a Service that goes on: no event repeats that its slice is refused. */
static void
case_expire(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    o = case_next(&shop.a1);
    (void) !it_apply(&case_bed.live, KUBE_DELTA_REFUSED, &o);
    (void) it_publish(&case_bed.live);
    o = case_next(&shop.b2);
    case_event(KUBE_DELTA_UPDATED, &o);
}


static void
case_fill(void)
{
    char         name[8], slice[16];
    unsigned     i, k;
    it_t        *it;
    it_object_t  o;

    it = &case_bed.live;

    for (i = 0; it->logs[KUBE_EV_ZONE_FULL] == 0; i++) {
        assert_true(i < 24);
        snprintf(name, sizeof(name), "f-%02u", i);
        case_watch("zz", name);
        o = it_service(it, "zz", name);
        (void) !it_apply(it, KUBE_DELTA_UPDATED, &o);

        for (k = 1; k <= 3; k++) {
            snprintf(slice, sizeof(slice), "%s-%u", name, k);
            o = it_slice(it, "zz", slice, name);
            o.endpoints = 70;
            (void) !it_apply(it, KUBE_DELTA_UPDATED, &o);
        }

        (void) it_publish(it);
    }
}


/* shop/new, a static key, makes the last ones go. */
static void
case_evict(void)
{
    it_object_t  o;

    (void) case_shop();
    case_fill();
    o = it_service(&case_bed.live, "shop", "new");
    case_event(KUBE_DELTA_UPDATED, &o);
    o = it_slice(&case_bed.live, "shop", "new-1", "new");
    o.endpoints = 150;
    case_event(KUBE_DELTA_UPDATED, &o);
    o = it_slice(&case_bed.live, "shop", "new-2", "new");
    o.endpoints = 150;
    case_event(KUBE_DELTA_UPDATED, &o);
}


/* A list in which one slice has taken the place of two. */
static void
case_replace(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    case_mark(KUBE_DELTA_LIST_BEGIN, IT_SLICES);
    o = it_slice(&case_bed.live, "shop", "a-3", "a");
    case_event(KUBE_DELTA_REPLACED, &o);
    case_event(KUBE_DELTA_REPLACED, &shop.b1);
    case_event(KUBE_DELTA_REPLACED, &shop.b2);
    case_mark(KUBE_DELTA_SYNC, IT_SLICES);
}


static void
case_relist(void)
{
    it_object_t  o;
    case_shop_t  shop;

    shop = case_shop();
    case_mark(KUBE_DELTA_LIST_BEGIN, IT_SERVICES);
    case_mark(KUBE_DELTA_LIST_BEGIN, IT_SLICES);
    case_event(KUBE_DELTA_REPLACED, &shop.a);
    o = it_service(&case_bed.live, "shop", "new");
    case_event(KUBE_DELTA_REPLACED, &o);
    case_mark(KUBE_DELTA_SYNC, IT_SERVICES);
    o = case_next(&shop.a1);
    case_event(KUBE_DELTA_REPLACED, &o);
    case_event(KUBE_DELTA_REPLACED, &shop.a2);
    case_event(KUBE_DELTA_REPLACED, &shop.b2);
    case_mark(KUBE_DELTA_SYNC, IT_SLICES);
}


static uint32_t
case_offset(const it_t *it, const it_object_t *o)
{
    uint32_t  e;

    e = kube_zone_writer_find(it->writer, o->resource, kube_str(o->ns),
                              kube_str(o->name));

    return it->writer->side[e].offset;
}


/*
 * Events that move a-1's record: its segment is full to the end and more than
 * half of it is dead, and that of "fill", which a take-over opens, is not.
 */
static void
case_evacuate(void)
{
    char          name[16];
    unsigned      i;
    uint32_t      segment;
    it_t         *it;
    it_object_t   p[40], fill;
    case_shop_t   shop;

    it = &case_bed.live;
    shop = case_shop();
    segment = log_segment_of(it->writer, case_offset(it, &shop.a1));

    for (i = 0; i < 40; i++) {
        snprintf(name, sizeof(name), "p-%u", i);
        p[i] = it_slice(it, "shop", name, "nobody");
        IT_UPDATE(it, &p[i]);

        if (log_segment_of(it->writer, case_offset(it, &p[i])) != segment) {
            break;
        }
    }

    /* the last one in the segment, and one in the next, stay */
    assert_true(i > 1 && i < 40);
    fill = p[i];

    for (i--; i-- > 0; /* void */ ) {
        it_delete(it, &p[i]);
    }

    for (i = 0; i < 3; i++) {
        fill = case_next(&fill);
        fill.endpoints = 250;
        case_event(KUBE_DELTA_UPDATED, &fill);
    }

    fill = case_next(&shop.a1);
    case_event(KUBE_DELTA_UPDATED, &fill);
}


/* evicts: how many go depends on how records lie. */
static const struct {
    const char  *name;
    void       (*prepare)(void);
    bool         evicts;
    bool         moves;        /* a slice, for certain */
    bool         expires;
    bool         stepped;      /* through each instruction, in test_zone_kill */
} cases[] = {
    { "insert", case_insert, false, false, false, false },
    { "update", case_update, false, false, false, false },
    { "delete", case_delete, false, false, false, false },
    { "delete all", case_delete_all, false, false, false, false },
    { "relabel", case_relabel, false, false, false, true },
    { "refuse", case_refuse, false, false, false, false },
    { "refuse once", case_refuse_once, false, false, false, false },
    { "expire", case_expire, false, false, true, false },
    { "evict", case_evict, true, false, false, false },
    { "replace", case_replace, false, false, false, false },
    { "relist", case_relist, false, false, false, false },
    { "evacuate", case_evacuate, false, true, false, false },
};


#define CASES_N  (sizeof(cases) / sizeof(cases[0]))


/* The cluster before the events of case n; the writer waits for them. */
static void
case_prepare(size_t n)
{
    it_t  *it;

    memset(&case_bed, 0, sizeof(case_bed));
    case_bed.pristine = malloc(CASE_SIZE);
    assert_non_null(case_bed.pristine);
    case_bed.expires = cases[n].expires;
    it = &case_bed.live;

    case_open(it);
    case_start(it);
    cases[n].prepare();
    it_stop(it);
    memcpy(case_bed.pristine, it->mem, CASE_SIZE);
    case_start(it);
}


static void
case_done(void)
{
    it_done(&case_bed.live);
    free(case_bed.pristine);
}


#endif /* KUBE_ZONE_CASES_H */

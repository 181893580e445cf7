/*
 * test_publisher - the events of an indexer, without an indexer: what they
 * return, what readers see, what listeners hear.
 *
 * It is the test of kube_publication, too.  Whole histories are in
 * test_indexer*.c.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "indexer_test.h"

#include "kube_publisher.c"


#define ZONE  (512u << 10)

typedef struct {
    it_t    it;
    char    heard[512];
    size_t  heard_len;
} bed_t;


static void
bed_hear(void *ctx, kube_change_t change, const kube_record_t *record)
{
    bed_t             *bed = ctx;
    kube_record_id_t   id;

    assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);

    /* more than a text holds is heard by nobody */
    if (bed->heard_len + id.meta.name.len + 3 > sizeof(bed->heard)) {
        return;
    }

    bed->heard_len += (size_t) snprintf(bed->heard + bed->heard_len,
                                        sizeof(bed->heard) - bed->heard_len,
                                        "%c%.*s ", "+~-"[change],
                                        (int) id.meta.name.len,
                                        id.meta.name.data);
}


#define HEARD(bed, expected)                                                  \
    do {                                                                      \
        assert_string_equal((bed)->heard, expected);                          \
        (bed)->heard_len = 0;                                                 \
        (bed)->heard[0] = '\0';                                               \
    } while (0)


static void
bed_init(bed_t *bed, size_t size)
{
    memset(bed, 0, sizeof(bed_t));
    it_zone(&bed->it, size);
    bed->it.conf.change = bed_hear;
    bed->it.conf.change_ctx = bed;
    assert_int_equal(it_start(&bed->it), KUBE_OK);
}


/* One event of an object, as an indexer would fill it. */
static kube_rc_t
bed_event(bed_t *bed, kube_item_event_t event, const it_object_t *o,
    bool optional)
{
    kube_rc_t       rc;
    kube_item_t     item;
    kube_record_t  *record;

    memset(&item, 0, sizeof(kube_item_t));
    record = NULL;

    if (event == KUBE_ITEM_PUT) {
        record = it_record(o);
        rc = kube_zone_item(bed->it.writer, record, &item.zone);

    } else {
        rc = kube_zone_item_name(bed->it.writer, o->resource,
                                 kube_str(o->ns), kube_str(o->name),
                                 &item.zone);
        item.zone.id.meta.rv = kube_str(o->rv);
    }

    assert_int_equal(rc, KUBE_OK);

    item.service = (o->resource == KUBE_RESOURCE_SERVICES)
                   ? kube_str(o->name) : kube_str(o->service);
    item.reason = KUBE_STR("malformed");
    item.scope = it_slot(o);
    item.uid_hash = kube_uid_hash(kube_str(o->uid));
    item.optional = optional;
    item.read_ms = KUBE_NEVER;
    item.now_ms = bed->it.now_ms;

    rc = kube_publisher_on_change(bed->it.publisher, event, &item);

    if (rc == KUBE_OK && event == KUBE_ITEM_PUT) {
        assert_int_not_equal(item.zone.entry, 0);
    }

    free(record);

    return rc;
}


static void
bed_mark(bed_t *bed, kube_item_event_t event, unsigned scope)
{
    kube_item_t  item;

    memset(&item, 0, sizeof(kube_item_t));
    item.scope = scope;
    item.now_ms = bed->it.now_ms;
    assert_int_equal(kube_publisher_on_change(bed->it.publisher, event,
                                              &item), KUBE_OK);
}


#define PUT(o)                                                                \
    assert_int_equal(bed_event(&bed, KUBE_ITEM_PUT, o, false), KUBE_OK)
#define NOT_TAKEN(o)                                                          \
    assert_int_equal(bed_event(&bed, KUBE_ITEM_PUT, o, false), KUBE_FULL)
#define DELETED(o)                                                            \
    assert_int_equal(bed_event(&bed, KUBE_ITEM_DELETED, o, false), KUBE_OK)
#define REFUSED(o)                                                            \
    assert_int_equal(bed_event(&bed, KUBE_ITEM_REFUSED, o, false), KUBE_OK)
#define SUMS(services, slices, names)                                         \
    do {                                                                      \
        assert_int_equal(it_sum(&bed.it, IT_SERVICES).count, services);       \
        assert_int_equal(it_sum(&bed.it, IT_SLICES).count, slices);           \
        assert_int_equal(it_sum(&bed.it, IT_SLICES).refused, names);          \
    } while (0)


static void
test_publisher_order(void **state)
{
    bed_t        bed;
    it_object_t  web, api, a;

    (void) state;

    bed_init(&bed, ZONE);
    web = it_service(&bed.it, "shop", "web");
    api = it_service(&bed.it, "shop", "api");
    a = it_slice(&bed.it, "shop", "a", "web");

    /* a slice without a Service is readable at once, one with it is not */
    PUT(&a);
    HEARD(&bed, "+a ");
    SUMS(0, 1, 0);
    PUT(&web);
    PUT(&api);
    SUMS(0, 1, 0);
    assert_true(kube_publisher_pending(bed.it.publisher, IT_SERVICES));
    assert_int_equal(it_publish(&bed.it), 2);
    HEARD(&bed, "+web +api ");
    SUMS(2, 1, 0);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");

    /* one that moves leaves its old Service before it enters the new one */
    a.version = 2;
    snprintf(a.service, sizeof(a.service), "api");
    it_stamp(&bed.it, &a);
    PUT(&a);
    SUMS(2, 1, 0);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");
    assert_int_equal(kube_publisher_run(bed.it.publisher, 1, 1000, 0), 1);
    IT_READS(&bed.it, "shop", "web", "1");
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "api", "1 a=2*2");
    HEARD(&bed, "~a ");

    /* deleted, it goes with the publication of what references it */
    DELETED(&a);
    SUMS(2, 1, 0);
    HEARD(&bed, "");
    it_publish(&bed.it);
    HEARD(&bed, "-a ");
    SUMS(2, 0, 0);

    /* what is not there cannot be deleted */
    DELETED(&a);
    DELETED(&web);
    DELETED(&web);
    it_publish(&bed.it);
    HEARD(&bed, "-web ");
    assert_int_equal(it_publish(&bed.it), 0);
    SUMS(1, 0, 0);
    it_done(&bed.it);
}


/*
 * A slice moves to a Service that is not there yet: once that is there, the
 * slice's scope waits for it, however long ago the old one was published.
 */
static void
test_publisher_moves_ahead(void **state)
{
    bed_t        bed;
    it_object_t  web, api, a;

    (void) state;
    bed_init(&bed, ZONE);
    web = it_service(&bed.it, "shop", "web");
    api = it_service(&bed.it, "shop", "api");
    a = it_slice(&bed.it, "shop", "a", "web");
    PUT(&web);
    PUT(&a);
    it_publish(&bed.it);

    a.version = 2;
    snprintf(a.service, sizeof(a.service), "api");
    it_stamp(&bed.it, &a);
    PUT(&a);
    PUT(&api);
    assert_int_equal(kube_publisher_run(bed.it.publisher, 1, 1000, 0), 1);
    IT_READS(&bed.it, "shop", "web", "1");
    IT_READS(&bed.it, "shop", "api", "-");
    assert_true(kube_publisher_pending(bed.it.publisher, IT_SLICES));
    assert_true(kube_publisher_pending(bed.it.publisher, IT_SERVICES));

    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "api", "1 a=2*2");
    assert_false(kube_publisher_pending(bed.it.publisher, IT_SLICES));
    assert_false(kube_publisher_pending(bed.it.publisher, IT_SERVICES));
    it_done(&bed.it);
}


#define MOVES  5

/* Services s0 to s5 with slices x0 to x5. */
typedef struct {
    bed_t        *bed;
    it_object_t   slices[MOVES + 1];
    unsigned      empty;              /* times that one had no slice */
    unsigned      changes;
} moves_t;


/* Each has a slice before and after: it has one whenever a reader looks. */
static void
moves_hear(void *ctx, kube_change_t change, const kube_record_t *record)
{
    char      name[8], text[64];
    moves_t  *moves = ctx;
    unsigned  i;

    (void) change;
    (void) record;

    for (i = 0; i <= MOVES; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        (void) it_read(&moves->bed->it, "shop", name, text, sizeof(text),
                       NULL);
        moves->empty += (strchr(text, '=') == NULL);
    }

    moves->changes++;
}


/* All that there is, and then somebody who looks at each change. */
static void
moves_init(moves_t *moves, bed_t *bed)
{
    it_t         *it;
    char          name[8], slice[8];
    unsigned      i;
    it_object_t   service;

    memset(moves, 0, sizeof(moves_t));
    moves->bed = bed;
    bed_init(bed, ZONE);
    it = &bed->it;

    for (i = 0; i <= MOVES; i++) {
        snprintf(name, sizeof(name), "s%u", i);
        snprintf(slice, sizeof(slice), "x%u", i);
        service = it_service(it, "shop", name);
        moves->slices[i] = it_slice(it, "shop", slice, name);
        assert_int_equal(bed_event(bed, KUBE_ITEM_PUT, &service, false),
                         KUBE_OK);
        assert_int_equal(bed_event(bed, KUBE_ITEM_PUT, &moves->slices[i],
                                   false), KUBE_OK);
    }

    it_publish(it);
    it_stop(it);
    it->conf.change = moves_hear;
    it->conf.change_ctx = moves;
    assert_int_equal(it_start(it), KUBE_OK);
    assert_int_equal(it_scopes(it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it->ix, it->now_ms), KUBE_OK);
    it_publish(it);
    moves->changes = 0;
    moves->empty = 0;
}


/*
 * A slice of each Service moves to the next, all within one burst; the last
 * has one more then, and the first gets one of its own.  In whatever order
 * they have their turns, none is without any: one that is published for another
 * one's sake is so after those that it waits for itself.
 */
static void
test_publisher_moves_chain(void **state)
{
    bed_t         bed;
    moves_t       moves;
    unsigned      i, n, most, ahead;
    it_object_t   fresh, *slice;

    (void) state;

    for (ahead = 0; ahead < 2; ahead++) {
        moves_init(&moves, &bed);
        fresh = it_slice(&bed.it, "shop", "fresh", "s0");
        PUT(&fresh);

        for (i = 0; i < MOVES; i++) {
            n = ahead ? i : MOVES - 1 - i;
            slice = &moves.slices[n];
            snprintf(slice->service, sizeof(slice->service), "s%u", n + 1);
            slice->version = 2;
            it_stamp(&bed.it, slice);
            PUT(slice);
        }

        most = 0;

        while ((n = kube_publisher_run(bed.it.publisher, 1, 1000, 0)) != 0) {
            most = n > most ? n : most;
        }

        assert_int_equal(most, ahead ? 1 : MOVES - 1);
        assert_true(moves.changes >= MOVES);
        assert_int_equal(moves.empty, 0);
        IT_READS(&bed.it, "shop", "s0", "1 fresh=1*2");
        IT_READS(&bed.it, "shop", "s3", "1 x2=2*2");
        IT_READS(&bed.it, "shop", "s5", "1 x4=2*2 x5=1*2");
        it_done(&bed.it);
    }
}


/* A slice is of one Service at a time, whenever a reader looks. */
static void
bed_hear_swap(void *ctx, kube_change_t change, const kube_record_t *record)
{
    bed_t  *bed = ctx;
    char    a[64], b[64];

    (void) change;
    (void) record;

    (void) it_read(&bed->it, "shop", "a", a, sizeof(a), NULL);
    (void) it_read(&bed->it, "shop", "b", b, sizeof(b), NULL);
    assert_true(strstr(a, " x=") == NULL || strstr(b, " x=") == NULL);
    assert_true(strstr(a, " y=") == NULL || strstr(b, " y=") == NULL);
    bed->heard_len++;
}


/* Two Services swap a slice each: neither can be published before the other. */
static void
test_publisher_swap(void **state)
{
    it_t         *it;
    bed_t         bed;
    it_object_t   a, b, x, y;

    (void) state;
    bed_init(&bed, ZONE);
    it = &bed.it;
    a = it_service(it, "shop", "a");
    b = it_service(it, "shop", "b");
    x = it_slice(it, "shop", "x", "a");
    y = it_slice(it, "shop", "y", "b");
    PUT(&a);
    PUT(&b);
    PUT(&x);
    PUT(&y);
    it_publish(it);
    IT_READS(it, "shop", "a", "1 x=1*2");
    IT_READS(it, "shop", "b", "1 y=1*2");

    it_stop(it);
    it->conf.change = bed_hear_swap;
    assert_int_equal(it_start(it), KUBE_OK);
    assert_int_equal(it_scopes(it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it->ix, it->now_ms), KUBE_OK);
    bed.heard_len = 0;

    snprintf(x.service, sizeof(x.service), "b");
    snprintf(y.service, sizeof(y.service), "a");
    it_stamp(it, &x);
    it_stamp(it, &y);
    PUT(&x);
    PUT(&y);
    it_publish(it);
    IT_READS(it, "shop", "a", "1 y=1*2");
    IT_READS(it, "shop", "b", "1 x=1*2");
    assert_true(bed.heard_len >= 2);
    it_done(it);
}


/* A slice that is another Service's from now on. */
static void
bed_move(bed_t *bed, it_object_t *slice, const char *service)
{
    snprintf(slice->service, sizeof(slice->service), "%s", service);
    slice->version++;
    it_stamp(&bed->it, slice);
    assert_int_equal(bed_event(bed, KUBE_ITEM_PUT, slice, false), KUBE_OK);
}


/*
 * What is gone leaves nothing in memory; nor does a Service that is published,
 * or ends, before its turn, for the sake of one that waits for it.
 */
static void
test_publisher_frees(void **state)
{
    bed_t        bed;
    size_t       live;
    unsigned     ends;
    it_object_t  a, b, x;

    (void) state;
    bed_init(&bed, 128u << 10);
    a = it_service(&bed.it, "shop", "once");
    PUT(&a);
    DELETED(&a);
    it_publish(&bed.it);
    live = bed.it.at.live;

    for (ends = 0; ends < 2; ends++) {
        a = it_service(&bed.it, "shop", "a");
        b = it_service(&bed.it, "shop", "b");
        x = it_slice(&bed.it, "shop", "x", "b");
        PUT(&a);
        PUT(&b);
        PUT(&x);
        it_publish(&bed.it);
        PUT(&a);
        bed_move(&bed, &x, "a");

        if (ends) {
            DELETED(&b);
        }

        assert_int_equal(kube_publisher_run(bed.it.publisher, 1, 1000, 0), 2);
        IT_READS(&bed.it, "shop", "a", "1 x=2*2");
        IT_READS(&bed.it, "shop", "b", ends ? "-" : "1");

        DELETED(&x);
        DELETED(&a);
        REFUSED(&b);
        DELETED(&b);
        it_publish(&bed.it);
        assert_int_equal(bed.it.at.live, live);
    }

    /* nor does one that was never held */
    x = it_slice(&bed.it, "shop", "x", "b");
    x.endpoints = KUBE_SLICE_ENDPOINTS_MAX;
    NOT_TAKEN(&x);
    DELETED(&x);
    assert_int_equal(bed.it.at.live, live);
    it_done(&bed.it);
}


static void
test_publisher_refused(void **state)
{
    bed_t        bed;
    it_object_t  web, a, b;

    (void) state;

    bed_init(&bed, ZONE);
    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    b = it_slice(&bed.it, "shop", "b", "web");
    PUT(&web);
    PUT(&a);
    it_publish(&bed.it);

    /* never held: a name at once; again: the same name */
    REFUSED(&b);
    SUMS(1, 1, 1);
    REFUSED(&b);
    SUMS(1, 1, 1);

    /* held: a name once its Service was published without it */
    REFUSED(&a);
    SUMS(1, 1, 1);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");
    it_publish(&bed.it);
    SUMS(1, 0, 2);
    IT_READS(&bed.it, "shop", "web", "1");

    /* a name that becomes an object; one that is deleted */
    PUT(&a);
    SUMS(1, 0, 1);
    it_publish(&bed.it);
    SUMS(1, 1, 1);
    DELETED(&b);
    SUMS(1, 1, 0);

    /* refused, then good again, before anything was published */
    REFUSED(&a);
    PUT(&a);
    it_publish(&bed.it);
    SUMS(1, 1, 0);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");

    /* a Service at once; its slices stay */
    REFUSED(&web);
    SUMS(0, 1, 0);
    assert_int_equal(it_sum(&bed.it, IT_SERVICES).refused, 1);
    assert_false(kube_publisher_pending(bed.it.publisher, IT_SERVICES));
    it_done(&bed.it);
}


/* A refusal of each kind, of a slice and of a Service, over a good state. */
static const struct {
    const char         *reason;
    kube_resource_t     resource;
    kube_item_event_t   event;
    unsigned            endpoints;       /* of the slice that is put */
    const char         *read;            /* when it is held no more */
} outdated_rows[] = {

    { "malformed", KUBE_RESOURCE_ENDPOINTSLICES, KUBE_ITEM_REFUSED, 2, "1" },
    { "malformed", KUBE_RESOURCE_SERVICES, KUBE_ITEM_REFUSED, 0, "-" },
    { "too_large", KUBE_RESOURCE_ENDPOINTSLICES, KUBE_ITEM_PUT, 1000, "1" }
};


#define OUTDATED_MS  600000u

/* What the zone says of the object; the reason, or "" where it is current. */
static const char *
outdated_reason(const bed_t *bed, const it_object_t *o, char *text,
    size_t size)
{
    uint32_t              e;
    kube_str_t            reason;
    const kube_record_t  *record;

    e = kube_zone_writer_find(bed->it.writer, o->resource, kube_str(o->ns),
                              kube_str(o->name));
    record = kube_zone_published(bed->it.writer, e);
    assert_non_null(record);
    reason = KUBE_STR_NULL;

    if (record->flags & KUBE_RECORD_F_OUTDATED) {
        reason = kube_reason_text(kube_record_outdated_reason(record));
    }

    snprintf(text, size, "%.*s", (int) reason.len,
             reason.len != 0 ? reason.data : "");

    return text;
}


/* By field: what lies between them is nobody's. */
static void
outdated_sums_equal(const kube_scope_sum_t *a, const kube_scope_sum_t *b)
{
    assert_int_equal(a->count, b->count);
    assert_int_equal(a->digest.lo, b->digest.lo);
    assert_int_equal(a->digest.hi, b->digest.hi);
    assert_int_equal(a->refused, b->refused);
    assert_int_equal(a->refused_unnamed, b->refused_unnamed);
    assert_int_equal(a->lacks_room, b->lacks_room);
}


static void
outdated_run(size_t row, bool takeover)
{
    char              text[64];
    bed_t             bed;
    it_object_t       web, a, *o, bad;
    kube_scope_sum_t  before, sum;

    bed_init(&bed, 128u << 10);
    bed.it.conf.max_outdated_ms = OUTDATED_MS;
    it_takeover(&bed.it);
    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    o = (outdated_rows[row].resource == KUBE_RESOURCE_SERVICES) ? &web : &a;
    PUT(&web);
    PUT(&a);
    it_publish(&bed.it);
    before = it_sum(&bed.it, it_slot(o));

    /* readers find what they found, but it does not count */
    bad = *o;
    bad.version++;
    bad.endpoints = outdated_rows[row].endpoints;
    it_stamp(&bed.it, &bad);
    assert_int_equal(bed_event(&bed, outdated_rows[row].event, &bad, false),
                     outdated_rows[row].event == KUBE_ITEM_PUT ? KUBE_FULL
                                                               : KUBE_OK);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");
    assert_string_equal(outdated_reason(&bed, o, text, sizeof(text)),
                        outdated_rows[row].reason);
    sum = it_sum(&bed.it, it_slot(o));
    assert_int_equal(sum.count, before.count - 1);
    assert_int_equal(sum.digest.lo, 0);
    assert_int_equal(sum.refused, 1);

    if (takeover) {
        it_takeover(&bed.it);
        assert_int_equal(it_sum(&bed.it, it_slot(o)).count, before.count - 1);
        assert_int_equal(it_sum(&bed.it, it_slot(o)).refused, 1);
    }

    /* refused again, it does not get younger */
    bed.it.now_ms += OUTDATED_MS - 2000;
    assert_int_not_equal(bed_event(&bed, outdated_rows[row].event, &bad,
                                   false), KUBE_NOMEM);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");
    bed.it.now_ms += 1999;
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");

    /* the end of its time: a name */
    bed.it.now_ms += 1001;
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", outdated_rows[row].read);
    sum = it_sum(&bed.it, it_slot(o));
    assert_int_equal(sum.count, before.count - 1);
    assert_int_equal(sum.refused, 1);
    assert_int_equal(it_refused(&bed.it, o->resource, text, sizeof(text)), 1);
    assert_string_equal(text, outdated_rows[row].reason);

    /* a good one brings it back, with the sums of before */
    PUT(o);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");
    sum = it_sum(&bed.it, it_slot(o));
    outdated_sums_equal(&sum, &before);

    /* the same content again is good, too, and a delete ends all */
    (void) bed_event(&bed, outdated_rows[row].event, &bad, false);
    it_stamp(&bed.it, o);
    PUT(o);
    it_publish(&bed.it);
    assert_string_equal(outdated_reason(&bed, o, text, sizeof(text)), "");
    sum = it_sum(&bed.it, it_slot(o));
    outdated_sums_equal(&sum, &before);

    (void) bed_event(&bed, outdated_rows[row].event, &bad, false);
    DELETED(o);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", outdated_rows[row].read);
    assert_int_equal(it_sum(&bed.it, it_slot(o)).refused, 0);

    /* another uid is another object: nothing of it was ever good */
    PUT(o);
    it_publish(&bed.it);
    snprintf(bad.uid, sizeof(bad.uid), "anew");
    (void) bed_event(&bed, outdated_rows[row].event, &bad, false);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", outdated_rows[row].read);
    it_done(&bed.it);
}


static void
test_publisher_outdated(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(outdated_rows) / sizeof(outdated_rows[0]); i++) {
        outdated_run(i, false);
        outdated_run(i, true);
    }
}


static void
test_publisher_list(void **state)
{
    bed_t            bed;
    it_object_t      web, a;
    kube_room_ask_t  ask;

    (void) state;

    bed_init(&bed, ZONE);
    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    PUT(&web);
    it_publish(&bed.it);

    bed_mark(&bed, KUBE_ITEM_LIST_BEGIN, IT_SLICES);
    PUT(&a);
    assert_int_equal(it_publish(&bed.it), 0);
    assert_true(kube_publisher_pending(bed.it.publisher, IT_SLICES));
    assert_false(kube_publisher_pending(bed.it.publisher, IT_SERVICES));
    assert_false(it_room_returned(&bed.it, IT_SLICES, &ask));
    bed_mark(&bed, KUBE_ITEM_LIST_END, IT_SLICES);
    assert_int_equal(it_publish(&bed.it), 1);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");

    /* a Service that is held can be refused */
    bed_mark(&bed, KUBE_ITEM_LIST_BEGIN, IT_SLICES);
    it_stamp(&bed.it, &a);
    PUT(&a);
    assert_int_equal(it_publish(&bed.it), 0);
    REFUSED(&web);
    bed_mark(&bed, KUBE_ITEM_LIST_END, IT_SLICES);
    assert_int_equal(it_publish(&bed.it), 0);
    SUMS(0, 1, 0);
    it_done(&bed.it);
}


/* Slices by name, or counted. */
static uint64_t
publisher_refused(const bed_t *bed)
{
    kube_scope_sum_t  sum;

    sum = it_sum(&bed->it, IT_SLICES);

    return sum.refused + sum.refused_unnamed;
}


/* In a zone that is full, each object says what became of it. */
static void
test_publisher_full(void **state)
{
    bed_t         bed;
    char          name[24];
    unsigned      i, refused;
    kube_rc_t     rc;
    it_object_t   o, first;

    (void) state;

    bed_init(&bed, 128u << 10);
    refused = 0;

    for (i = 0; i < 400; i++) {
        snprintf(name, sizeof(name), "s%03u", i);
        o = it_slice(&bed.it, "shop", name, name);
        o.endpoints = 20;
        rc = bed_event(&bed, KUBE_ITEM_PUT, &o, false);
        assert_true(rc == KUBE_OK || rc == KUBE_FULL);
        refused += (rc == KUBE_FULL);
    }

    assert_true(refused != 0);
    assert_int_equal(publisher_refused(&bed), refused);
    assert_int_equal(it_sum(&bed.it, IT_SLICES).count, 400 - refused);

    /* an optional one is not even named */
    o = it_slice(&bed.it, "shop", "zzz", "zzz");
    o.endpoints = 20;
    assert_int_equal(bed_event(&bed, KUBE_ITEM_PUT, &o, true), KUBE_FULL);
    assert_int_equal(publisher_refused(&bed), refused);

    /* one that ranks before others takes the place of the last */
    first = it_slice(&bed.it, "infra", "first", "first");
    first.endpoints = 20;
    assert_int_equal(bed_event(&bed, KUBE_ITEM_PUT, &first, false), KUBE_OK);
    assert_true(publisher_refused(&bed) > refused);

    /* larger than any record may be */
    o = it_slice(&bed.it, "infra", "huge", "first");
    o.endpoints = KUBE_SLICE_ENDPOINTS_MAX;
    refused = (unsigned) publisher_refused(&bed);
    assert_int_equal(bed_event(&bed, KUBE_ITEM_PUT, &o, false), KUBE_FULL);
    assert_int_equal(publisher_refused(&bed), refused + 1);
    it_done(&bed.it);
}


/* Each event comes again until it is taken; then all is as it should be. */
static void
publisher_oom(alloc_test_t *at, void *ctx)
{
    bed_t       *bed = ctx;
    unsigned     i;
    kube_rc_t    rc;
    it_object_t  objects[4];

    static const kube_item_event_t  events[] = {
        KUBE_ITEM_PUT, KUBE_ITEM_PUT, KUBE_ITEM_PUT, KUBE_ITEM_REFUSED
    };

    memset(bed, 0, sizeof(bed_t));
    it_zone(&bed->it, ZONE);
    bed->it.at = *at;
    bed->it.at.alloc.ctx = &bed->it.at;
    rc = it_start(&bed->it);

    objects[0] = it_slice(&bed->it, "shop", "a", "web");
    objects[1] = it_service(&bed->it, "shop", "web");
    objects[2] = it_slice(&bed->it, "shop", "b", "web");
    objects[3] = objects[0];

    for (i = 0; i < 4 && rc == KUBE_OK; i++) {
        rc = ALLOC_TEST_AGAIN(&bed->it.at, bed_event(bed, events[i],
                                                     &objects[i], false));
        it_publish(&bed->it);
    }

    if (rc == KUBE_OK) {
        IT_READS(&bed->it, "shop", "web", "1 b=1*2");
        assert_int_equal(it_sum(&bed->it, IT_SLICES).refused, 1);

    } else {
        alloc_test_assert_rc(&bed->it.at, rc);
    }

    it_stop(&bed->it);
    assert_int_equal(kube_zone_validate(bed->it.mem, bed->it.size), KUBE_OK);
    free(bed->it.mem);

    *at = bed->it.at;
    at->alloc.ctx = at;
}


static void
test_publisher_oom(void **state)
{
    bed_t  *bed;

    (void) state;

    bed = malloc(sizeof(bed_t));
    assert_non_null(bed);
    ALLOC_TEST_RUN(publisher_oom, bed);
    free(bed);
}


/* A process that dies twice while it publishes shop/web of that uid. */
static void
bed_poison(bed_t *bed, const it_object_t *web)
{
    unsigned      i;
    kube_str_t    ns, name, uid;
    kube_hand_t   what, hand;
    kube_death_t  death;

    ns = kube_str(web->ns);
    name = kube_str(web->name);
    uid = kube_str(web->uid);
    what = (kube_hand_t) { .now_ms = bed->it.now_ms, .scope = IT_SERVICES,
                           .resource = KUBE_RESOURCE_SERVICES,
                           .blame = KUBE_BLAME_SERVICE,
                           .ns = &ns, .name = &name, .uid = &uid };

    for (i = 0; i < 2; i++) {
        kube_hand_take(&hand, &what, KUBE_STAGE_PUBLISH);
        kube_zone_poison_say(&bed->it.zone, &hand, 11);
        assert_true(kube_zone_poison_take(&bed->it.zone, bed->it.now_ms,
                                          &death));
    }

    assert_true(death.refused);
    assert_string_equal(kube_stage_text(death.stage), "publish");
}


/*
 * What of the publication is in hand when a listener is told of web: what is
 * read at the end does not lie in the zone, where records move meanwhile.
 */
static void
poison_hear(void *ctx, kube_change_t change, const kube_record_t *record)
{
    const bed_t        *bed = ctx;
    kube_record_id_t    id;
    const kube_hand_t  *hand;

    (void) change;

    hand = bed->it.conf.hand;

    if (record->kind == KUBE_RECORD_SERVICE) {
        assert_int_equal(hand->stage, KUBE_STAGE_PUBLISH);
        assert_int_equal(hand->resource, KUBE_RESOURCE_SERVICES);
        assert_true(kube_str_eq(*hand->name, KUBE_STR("web"))
                    || kube_str_eq(*hand->name, KUBE_STR("other")));
        assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
        assert_true(kube_str_eq(*hand->uid, id.meta.uid));
        assert_not_in_range((uintptr_t) hand->uid->data,
                            (uintptr_t) bed->it.mem,
                            (uintptr_t) bed->it.mem + bed->it.size - 1);
    }
}


/*
 * A Service whose publication has killed two processes is not published: it is
 * served as it was, named with those of its slices that have changed, and the
 * sums leave these out.  Other Services follow; another uid, or the end of its
 * time, brings it back with all that came meanwhile.
 */
static void
test_publisher_poison(void **state)
{
    char              text[64];
    bed_t             bed;
    unsigned          round;
    it_object_t       web, a, b, other, fresh;
    kube_hand_t       hand;
    kube_scope_sum_t  before, sum;

    (void) state;

    for (round = 0; round < 3; round++) {
        bed_init(&bed, 128u << 10);
        memset(&hand, 0, sizeof(kube_hand_t));
        bed.it.conf.hand = &hand;
        bed.it.conf.change = poison_hear;
        bed.it.conf.max_outdated_ms = 2 * KUBE_POISON_MS;
        it_takeover(&bed.it);

        web = it_service(&bed.it, "shop", "web");
        a = it_slice(&bed.it, "shop", "a", "web");
        b = it_slice(&bed.it, "shop", "b", "web");
        fresh = it_slice(&bed.it, "shop", "fresh", "web");
        other = it_service(&bed.it, "shop", "other");
        PUT(&web);
        PUT(&a);
        PUT(&b);
        it_publish(&bed.it);
        assert_int_equal(hand.stage, KUBE_STAGE_NONE);
        IT_READS(&bed.it, "shop", "web", "1 a=1*2 b=1*2");
        before = it_sum(&bed.it, IT_SLICES);
        bed_poison(&bed, &web);

        a.version++;
        it_stamp(&bed.it, &a);
        NOT_TAKEN(&a);
        NOT_TAKEN(&fresh);
        PUT(&other);
        it_publish(&bed.it);
        IT_READS(&bed.it, "shop", "web", "1 a=1*2 b=1*2");
        IT_READS(&bed.it, "shop", "other", "1");
        assert_string_equal(outdated_reason(&bed, &web, text, sizeof(text)),
                            "crashed_informer");
        assert_string_equal(outdated_reason(&bed, &a, text, sizeof(text)),
                            "crashed_informer");
        assert_string_equal(outdated_reason(&bed, &b, text, sizeof(text)), "");
        assert_int_equal(it_sum(&bed.it, IT_SERVICES).count, 1);
        assert_int_equal(it_sum(&bed.it, IT_SERVICES).refused, 1);
        assert_int_equal(it_sum(&bed.it, IT_SLICES).count, 1);
        assert_int_equal(it_sum(&bed.it, IT_SLICES).refused, 2);
        assert_false(kube_publisher_pending(bed.it.publisher, IT_SERVICES));
        assert_false(kube_publisher_pending(bed.it.publisher, IT_SLICES));
        assert_int_equal(kube_zone_scope_counter(&bed.it.zone, IT_SERVICES,
                                                 KUBE_COUNTER_SKIPPED_CRASHED),
                         1);

        /* again, and by the next process: the sums are the same */
        NOT_TAKEN(&a);
        it_publish(&bed.it);
        sum = it_sum(&bed.it, IT_SLICES);

        if (round == 1) {
            it_takeover(&bed.it);
            it_publish(&bed.it);
        }

        assert_int_equal(it_sum(&bed.it, IT_SLICES).digest.lo, sum.digest.lo);
        assert_int_equal(it_sum(&bed.it, IT_SLICES).count, 1);
        assert_int_equal(it_sum(&bed.it, IT_SLICES).refused, 2);
        IT_READS(&bed.it, "shop", "web", "1 a=1*2 b=1*2");

        if (round == 2) {
            bed.it.now_ms += KUBE_POISON_MS;

        } else {
            snprintf(web.uid, sizeof(web.uid), "anew");
        }

        it_stamp(&bed.it, &web);
        PUT(&web);
        PUT(&a);
        PUT(&fresh);
        it_publish(&bed.it);
        IT_READS(&bed.it, "shop", "web", "1 a=2*2 b=1*2 fresh=1*2");
        assert_int_equal(it_sum(&bed.it, IT_SERVICES).refused, 0);
        assert_int_equal(it_sum(&bed.it, IT_SLICES).refused, 0);
        assert_int_equal(it_sum(&bed.it, IT_SLICES).count, before.count + 1);

        it_done(&bed.it);
    }
}


/* A zone of which the process that holds it has its Services in hand. */
static void
poison_init(bed_t *bed, kube_hand_t *hand, uint64_t max_outdated_ms)
{
    bed_init(bed, 128u << 10);
    memset(hand, 0, sizeof(kube_hand_t));
    bed->it.conf.hand = hand;
    bed->it.conf.change = NULL;
    bed->it.conf.max_outdated_ms = max_outdated_ms;
    it_takeover(&bed->it);
}


/* One that was never published is a name; its slices are there without it. */
static void
test_publisher_poison_new(void **state)
{
    char         text[64];
    bed_t        bed;
    it_object_t  web, a;
    kube_hand_t  hand;

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    bed_poison(&bed, &web);
    PUT(&web);
    PUT(&a);
    it_publish(&bed.it);
    assert_int_equal(it_refused(&bed.it, web.resource, text, sizeof(text)), 1);
    assert_string_equal(text, "crashed_informer");
    assert_int_equal(it_sum(&bed.it, IT_SLICES).count, 1);
    assert_int_equal(it_sum(&bed.it, IT_SERVICES).count, 0);

    /* deleted it is forgotten */
    DELETED(&web);
    it_publish(&bed.it);
    assert_int_equal(it_sum(&bed.it, IT_SERVICES).refused, 0);
    it_done(&bed.it);
}


/*
 * Of a Service that crashed only what it would give up itself is not taken: not
 * what moves there from another one, nor what it has not come to name, nor what
 * is left once it is deleted.
 */
static void
test_publisher_poison_taken(void **state)
{
    bed_t        bed;
    it_object_t  web, other, a, fresh, moved;
    kube_hand_t  hand;

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    web = it_service(&bed.it, "shop", "web");
    other = it_service(&bed.it, "shop", "other");
    a = it_slice(&bed.it, "shop", "a", "web");
    fresh = it_slice(&bed.it, "shop", "fresh", "web");
    moved = it_slice(&bed.it, "shop", "moved", "other");
    PUT(&web);
    PUT(&other);
    PUT(&a);
    PUT(&moved);
    it_publish(&bed.it);
    PUT(&fresh);
    bed_poison(&bed, &web);

    it_stamp(&bed.it, &fresh);
    PUT(&fresh);
    snprintf(moved.service, sizeof(moved.service), "web");
    it_stamp(&bed.it, &moved);
    PUT(&moved);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");
    IT_READS(&bed.it, "shop", "other", "1");

    DELETED(&web);
    a.version++;
    it_stamp(&bed.it, &a);
    PUT(&a);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "-");
    IT_READS(&bed.it, "shop", "other", "1");
    it_done(&bed.it);
}


/* Where nothing may be outdated, it gives up itself, and no slice. */
static void
test_publisher_poison_ends(void **state)
{
    bed_t        bed;
    it_object_t  web, a, fresh;
    kube_hand_t  hand;

    (void) state;
    poison_init(&bed, &hand, 0);

    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    fresh = it_slice(&bed.it, "shop", "fresh", "web");
    PUT(&web);
    PUT(&a);
    it_publish(&bed.it);
    bed_poison(&bed, &web);
    PUT(&fresh);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "-");
    assert_int_equal(it_sum(&bed.it, IT_SLICES).count, 2);
    it_done(&bed.it);
}


/*
 * One that is a name, and comes again: it is a name for the same reason, for
 * readers find no older version that could be kept.
 */
static void
test_publisher_poison_again(void **state)
{
    char         text[64];
    bed_t        bed;
    it_object_t  web, a;
    kube_hand_t  hand;

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    web = it_service(&bed.it, "shop", "web");
    bed_poison(&bed, &web);
    PUT(&web);
    it_publish(&bed.it);
    it_stamp(&bed.it, &web);
    PUT(&web);
    it_publish(&bed.it);

    /* were it outdated, it would be too long */
    bed.it.now_ms += 2 * OUTDATED_MS;
    it_publish(&bed.it);
    assert_int_equal(it_refused(&bed.it, web.resource, text, sizeof(text)), 1);
    assert_string_equal(text, "crashed_informer");
    assert_int_equal(it_sum(&bed.it, IT_SERVICES).refused, 1);

    a = it_slice(&bed.it, "shop", "a", "web");
    PUT(&a);
    it_publish(&bed.it);
    assert_int_equal(it_sum(&bed.it, IT_SLICES).count, 1);
    it_done(&bed.it);
}


/*
 * The first slice of a Service that is refused as one that crashed, and one
 * that moves there before its turn: nothing waits once it has had that.
 */
static void
test_publisher_poison_waits(void **state)
{
    bed_t        bed;
    it_object_t  web, api, a, b;
    kube_hand_t  hand;

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    web = it_service(&bed.it, "shop", "web");
    api = it_service(&bed.it, "shop", "api");
    a = it_slice(&bed.it, "shop", "a", "web");
    b = it_slice(&bed.it, "shop", "b", "api");
    PUT(&web);
    PUT(&api);
    PUT(&b);
    it_publish(&bed.it);
    bed_poison(&bed, &web);

    NOT_TAKEN(&a);
    assert_true(kube_publisher_pending(bed.it.publisher, IT_SLICES));
    snprintf(b.service, sizeof(b.service), "web");
    b.version++;
    it_stamp(&bed.it, &b);
    PUT(&b);
    it_publish(&bed.it);
    assert_false(kube_publisher_pending(bed.it.publisher, IT_SLICES));
    assert_false(kube_publisher_pending(bed.it.publisher, IT_SERVICES));
    it_done(&bed.it);
}


/*
 * What was staged before its Service was found to have crashed is given up: no
 * more is held than was, nor for longer than what is outdated may be, however
 * long ago anything was.  refused: its version is so, too.
 */
static void
poison_withdraws(bool refused)
{
    bed_t        bed;
    uint64_t     bytes;
    it_object_t  web, a;
    kube_hand_t  hand;

    poison_init(&bed, &hand, OUTDATED_MS);
    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    PUT(&web);
    PUT(&a);
    it_publish(&bed.it);
    bytes = bed.it.publisher->eviction.bytes;

    /* one was outdated, and is looked at when its time would be over */
    REFUSED(&a);
    it_publish(&bed.it);
    PUT(&a);
    bed.it.now_ms += OUTDATED_MS;
    it_publish(&bed.it);

    a.endpoints = 40;
    PUT(&web);
    PUT(&a);

    if (refused) {
        REFUSED(&a);
    }

    bed_poison(&bed, &web);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");
    SUMS(0, 0, 1);
    assert_int_equal(bed.it.publisher->eviction.bytes, bytes);

    bed.it.now_ms += OUTDATED_MS;
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "-");
    it_done(&bed.it);
}


static void
test_publisher_poison_withdraws(void **state)
{
    (void) state;

    poison_withdraws(false);
    poison_withdraws(true);
}


/* Nothing of a Service that crashed is left in memory once it is gone. */
static void
test_publisher_poison_frees(void **state)
{
    bed_t        bed;
    size_t       live;
    it_object_t  web;
    kube_hand_t  hand;

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    web = it_service(&bed.it, "shop", "once");
    PUT(&web);
    DELETED(&web);
    it_publish(&bed.it);
    live = bed.it.at.live;

    web = it_service(&bed.it, "shop", "web");
    PUT(&web);
    it_publish(&bed.it);
    PUT(&web);
    bed_poison(&bed, &web);
    it_publish(&bed.it);
    DELETED(&web);
    it_publish(&bed.it);
    assert_int_equal(bed.it.at.live, live);
    it_done(&bed.it);
}


/*
 * What moves to a Service that crashed is given up there once nobody else shows
 * it; another one that crashed does until it is tried anew.
 */
static void
test_publisher_poison_moves(void **state)
{
    char         text[64];
    bed_t        bed;
    it_object_t  web, api, other, a, b;
    kube_hand_t  hand;

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    web = it_service(&bed.it, "shop", "web");
    api = it_service(&bed.it, "shop", "api");
    other = it_service(&bed.it, "shop", "other");
    a = it_slice(&bed.it, "shop", "a", "api");
    b = it_slice(&bed.it, "shop", "b", "other");
    PUT(&web);
    PUT(&api);
    PUT(&other);
    PUT(&a);
    PUT(&b);
    it_publish(&bed.it);
    bed_poison(&bed, &web);
    bed_poison(&bed, &api);

    NOT_TAKEN(&web);
    bed_move(&bed, &a, "web");
    bed_move(&bed, &b, "web");
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1");
    IT_READS(&bed.it, "shop", "api", "1 a=1*2");
    IT_READS(&bed.it, "shop", "other", "1");
    assert_string_equal(outdated_reason(&bed, &a, text, sizeof(text)), "");
    assert_string_equal(outdated_reason(&bed, &b, text, sizeof(text)),
                        "crashed_informer");

    bed.it.now_ms += KUBE_POISON_MS;
    PUT(&web);
    PUT(&api);
    PUT(&b);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1 a=2*2 b=2*2");
    IT_READS(&bed.it, "shop", "api", "1");
    it_done(&bed.it);
}


/* A name of a Service that crashed is of the version that came last. */
static void
test_publisher_poison_named(void **state)
{
    bed_t             bed;
    unsigned          i;
    it_object_t       web, a;
    kube_hand_t       hand;
    kube_zone_item_t  item;

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    PUT(&web);
    it_publish(&bed.it);
    bed_poison(&bed, &web);

    for (i = 0; i < 2; i++) {
        it_stamp(&bed.it, &a);
        NOT_TAKEN(&a);
        assert_int_equal(kube_zone_item_name(bed.it.writer, a.resource,
                                             kube_str(a.ns), kube_str(a.name),
                                             &item), KUBE_OK);
        assert_true(kube_str_eq(item.held.meta.rv, kube_str(a.rv)));
        it_publish(&bed.it);
        SUMS(0, 0, 1);
    }

    it_done(&bed.it);
}


/* Two uids of the greatest length: the other one is of another Service. */
static void
test_publisher_poison_uid(void **state)
{
    bed_t        bed;
    it_object_t  web, a;
    kube_hand_t  hand;

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    memset(web.uid, 'u', sizeof(web.uid) - 1);
    bed_poison(&bed, &web);
    web.uid[0] = 'v';
    PUT(&web);
    PUT(&a);
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "web", "1 a=1*2");
    it_done(&bed.it);
}


/*
 * Of three Services in a circle with another one that crashed one is deleted,
 * and ends as the first of them has its turn for a fourth one's sake.  It has
 * no turn then: whoever shows a slice that was to be its goes on.
 */
static void
test_publisher_poison_circle(void **state)
{
    bed_t        bed;
    unsigned     i;
    it_object_t  services[4], slices[4];
    kube_hand_t  hand;

    static const char *const  names[] = { "a", "b", "c", "d" };
    static const char *const  from[] = { "b", "c", "c", "d" };
    static const char *const  to[] = { "c", "b", "a", "c" };
    static const char *const  slice[] = { "v", "w", "x", "y" };

    (void) state;
    poison_init(&bed, &hand, OUTDATED_MS);

    for (i = 0; i < 4; i++) {
        services[i] = it_service(&bed.it, "shop", names[i]);
        slices[i] = it_slice(&bed.it, "shop", slice[i], from[i]);
        PUT(&services[i]);
        PUT(&slices[i]);
    }

    it_publish(&bed.it);
    bed_poison(&bed, &services[3]);
    PUT(&services[0]);

    for (i = 0; i < 4; i++) {
        bed_move(&bed, &slices[i], to[i]);
    }

    DELETED(&services[2]);
    assert_int_equal(kube_publisher_run(bed.it.publisher, 1, 1000, 0), 4);
    IT_READS(&bed.it, "shop", "a", "1 x=2*2");
    IT_READS(&bed.it, "shop", "b", "1 w=2*2");
    IT_READS(&bed.it, "shop", "c", "-");
    IT_READS(&bed.it, "shop", "d", "1 y=1*2");
    it_publish(&bed.it);
    IT_READS(&bed.it, "shop", "d", "1 y=1*2");
    it_done(&bed.it);
}


/*
 * A Service whose chain somebody else has cut comes as a new one, and the entry
 * that is not found any more ends: nothing of it takes room.
 */
static void
test_publisher_hidden(void **state)
{
    bed_t               bed;
    uint32_t            entry;
    it_object_t         web, a;
    const kube_zone_t  *zone;

    (void) state;
    bed_init(&bed, ZONE);
    zone = &bed.it.zone;
    web = it_service(&bed.it, "shop", "web");
    a = it_slice(&bed.it, "shop", "a", "web");
    PUT(&a);
    PUT(&web);
    it_publish(&bed.it);
    assert_int_equal(kube_zone_find(zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), KUBE_STR("web"),
                                    &entry), KUBE_OK);

    bed.it.disturbed = true;
    kube_half_set(kube_zone_bucket(zone, kube_half_get(
                                       &kube_zone_entry(zone, entry)->hash)),
                  0);
    web.version++;
    it_stamp(&bed.it, &web);
    PUT(&web);
    it_publish(&bed.it);
    assert_int_equal(it_sum(&bed.it, IT_SERVICES).count, 1);
    IT_READS(&bed.it, "shop", "web", "2 a=1*2");

    DELETED(&a);
    DELETED(&web);
    it_publish(&bed.it);
    assert_int_equal(it_sum(&bed.it, IT_SERVICES).count, 0);
    assert_int_equal(bed.it.publisher->eviction.bytes, 0);
    it_done(&bed.it);
}


/*
 * Whether room has returned since a take-over is told by what is held once the
 * evictions that a predecessor had begun are finished.
 */
static void
test_publisher_found(void **state)
{
    bed_t              bed;
    it_object_t        a, b;
    kube_zone_item_t   item;
    kube_publisher_t  *p;

    (void) state;
    bed_init(&bed, ZONE);
    a = it_slice(&bed.it, "shop", "a", "web");
    b = it_slice(&bed.it, "shop", "b", "api");
    PUT(&a);
    PUT(&b);
    it_publish(&bed.it);
    assert_int_equal(kube_zone_item_name(bed.it.writer, KUBE_RESOURCE_SERVICES,
                                         kube_str(a.ns), kube_str("web"),
                                         &item), KUBE_OK);
    assert_int_equal(kube_zone_refuse(bed.it.writer, &item, KUBE_STR("1"),
                                      kube_reason_text(KUBE_REASON_ZONE_FULL)),
                     KUBE_OK);
    it_takeover(&bed.it);
    SUMS(0, 2, 0);
    it_publish(&bed.it);
    SUMS(0, 1, 1);
    p = bed.it.publisher;
    assert_int_equal(p->publication.scopes[IT_SLICES].room.found_bytes,
                     p->eviction.bytes);
    it_done(&bed.it);
}


/*
 * What is asked for where room has returned: a list that replaces, where not
 * all that lacks is known.  One that begins beside the watch answers all that
 * was asked for before.
 */
static void
test_publisher_room(void **state)
{
    bed_t            bed;
    size_t           i;
    kube_room_t     *room;
    kube_room_ask_t  ask;

    static const struct {
        kube_room_t  room;
        bool         urgent;
        bool         whole;
    } cases[] = {
        { { .returned = true }, false, false },
        { { .returned = true, .idle = true }, true, false },
        { { .has_place = true, .idle = true }, false, false },
        { { .returned = true, .wanted = true }, false, true },
        { { .returned = true, .unknown = 1 }, false, true },
        { { .returned = true, .more = 1 }, false, true },
        { { .returned = true, .idle = true, .asked = true }, true, false }
    };

    (void) state;
    bed_init(&bed, ZONE);
    room = &bed.it.publisher->publication.scopes[IT_SLICES].room;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        *room = cases[i].room;
        assert_true(kube_publisher_room_returned(bed.it.publisher, IT_SLICES,
                                                 &ask));
        assert_int_equal(ask.urgent, cases[i].urgent);
        assert_int_equal(ask.whole, cases[i].whole);
        assert_false(kube_publisher_room_returned(bed.it.publisher, IT_SLICES,
                                                  &ask));
    }

    /* once more in haste, and not again: until a list begins */

    *room = (kube_room_t) { .returned = true, .idle = true, .asked = true,
                            .urgent = true };
    assert_false(kube_publisher_room_returned(bed.it.publisher, IT_SLICES,
                                              &ask));
    bed_mark(&bed, KUBE_ITEM_REFILL_BEGIN, IT_SLICES);
    assert_false(kube_publisher_room_returned(bed.it.publisher, IT_SLICES,
                                              &ask));
    bed_mark(&bed, KUBE_ITEM_REFILL_END, IT_SLICES);
    room->returned = true;
    assert_true(kube_publisher_room_returned(bed.it.publisher, IT_SLICES,
                                             &ask));
    room->returned = true;
    room->asked = true;
    room->urgent = true;
    bed_mark(&bed, KUBE_ITEM_REFILL_BEGIN, IT_SLICES);
    assert_false(room->urgent);
    bed_mark(&bed, KUBE_ITEM_REFILL_END, IT_SLICES);

    *room = (kube_room_t) { .more = 0 };
    it_done(&bed.it);
}


/*
 * Of what is outdated for want of room some are looked at a second, in turn: a
 * list is asked for where one gets room for all that it may need.
 */
static void
test_publisher_room_outdated(void **state)
{
    bed_t              bed;
    char               name[24];
    unsigned           i, n, top;
    uint64_t           most;
    it_object_t        o;
    kube_room_t       *room;
    kube_member_t     *member;
    kube_refusal_t     refusal;
    kube_publisher_t  *p;

    (void) state;
    bed_init(&bed, ZONE);
    p = bed.it.publisher;
    room = &p->publication.scopes[IT_SLICES].room;
    most = kube_zone_record_max(&bed.it.zone);

    for (n = 0; kube_eviction_free(&p->eviction) > most; n++) {
        snprintf(name, sizeof(name), "s%04u", n);
        o = it_service(&bed.it, "hog", name);
        PUT(&o);
        o = it_slice(&bed.it, "hog", name, name);
        o.endpoints = 20;
        PUT(&o);
    }

    o = it_service(&bed.it, "other", "web");
    PUT(&o);
    o = it_slice(&bed.it, "other", "web", "web");
    o.endpoints = 40;
    PUT(&o);
    it_publish(&bed.it);
    assert_true(n > 2 * PUBLISHER_ROOM_TRIES);

    /* the last one is that of who goes before the others */
    top = kube_publisher_top(p);

    for (i = 1; i <= top; i++) {
        member = &p->index.members[i];
        refusal = (kube_refusal_t) {
            .reason = kube_reason_text(KUBE_REASON_ZONE_FULL),
            .size = (i != top)
        };

        if (!kube_member_is_service(member)) {
            kube_publication_outdate(&p->publication, i, &refusal);
        }
    }

    for (i = 0; i < 2 * n / PUBLISHER_ROOM_TRIES; i++) {
        publisher_room_outdated(p);
        assert_false(room->returned);
    }

    refusal.size = 1;
    kube_publication_outdate(&p->publication, top, &refusal);
    p->room_row = 0;

    for (i = 0; i < n / PUBLISHER_ROOM_TRIES; i++) {
        publisher_room_outdated(p);
        assert_false(room->returned);
    }

    publisher_room_outdated(p);
    assert_true(room->returned);
    it_done(&bed.it);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_publisher_order),
        cmocka_unit_test(test_publisher_moves_ahead),
        cmocka_unit_test(test_publisher_moves_chain),
        cmocka_unit_test(test_publisher_swap),
        cmocka_unit_test(test_publisher_frees),
        cmocka_unit_test(test_publisher_refused),
        cmocka_unit_test(test_publisher_outdated),
        cmocka_unit_test(test_publisher_list),
        cmocka_unit_test(test_publisher_full),
        cmocka_unit_test(test_publisher_poison),
        cmocka_unit_test(test_publisher_poison_new),
        cmocka_unit_test(test_publisher_poison_taken),
        cmocka_unit_test(test_publisher_poison_ends),
        cmocka_unit_test(test_publisher_poison_again),
        cmocka_unit_test(test_publisher_poison_waits),
        cmocka_unit_test(test_publisher_poison_withdraws),
        cmocka_unit_test(test_publisher_poison_frees),
        cmocka_unit_test(test_publisher_poison_moves),
        cmocka_unit_test(test_publisher_poison_named),
        cmocka_unit_test(test_publisher_poison_uid),
        cmocka_unit_test(test_publisher_poison_circle),
        cmocka_unit_test(test_publisher_hidden),
        cmocka_unit_test(test_publisher_found),
        cmocka_unit_test(test_publisher_room),
        cmocka_unit_test(test_publisher_room_outdated),
        cmocka_unit_test(test_publisher_oom),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * test_zone_kill - a writer that dies after any store, and readers who
 * remember: no reader ever sees an earlier state of a Service again, or one
 * that never was.
 *
 * Each case is what events of the API server do to the zone, through indexer
 * and publisher.  It runs once to its end, which gives the states that every
 * Service was in, in order.  Then it runs again, and after each single store
 * into the image a copy of the image is taken over: readers look at each
 * store of the take-over and afterwards, readers who paused between a
 * Service's record and its slices go on, and the watch repeats the events.
 * The end must be that of the first run.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_FAILPOINTS  1
#define _GNU_SOURCE      1

#include <stdlib.h>

#include "kube_zone_guard.c"
#include "kube_zone_log.c"
#include "kube_zone_reader.c"
#include "kube_zone_recover.c"
#include "kube_zone_scope.c"
#include "kube_zone_store.c"
#include "kube_zone_table.c"
#include "kube_zone_writer.c"
#include "indexer_test.h"


#define KILL_SIZE      KUBE_ZONE_SIZE_MIN
#define KILL_SERVICES  32
#define KILL_STATES    24
#define KILL_TEXT      400
#define KILL_EVENTS    48
#define KILL_PAUSES    4
#define KILL_RECORD    128      /* words of a Service's record */

/* Every so many deaths the take-over dies, too, after each of its stores. */
#define KILL_NESTED    7

/*
 * Of the stores into a record that nothing names yet every so many; all with
 * KUBE_CRASH_ALL=1.
 */
#define KILL_STRIDE    16


/* A reader who has copied a Service's record, and not yet its slices. */
typedef struct {
    uint32_t  entry;
    uint64_t  head;
    unsigned  seen;
    uint64_t  record[KILL_RECORD];
} kill_pause_t;

/* A Service, and the states that it was in, oldest first. */
typedef struct {
    char          ns[16];
    char          name[32];
    unsigned      states_n;
    char          states[KILL_STATES][KILL_TEXT];
    uint64_t      head;          /* as it was read last */
    unsigned      seen;          /* what readers of the living have seen */
    unsigned      pauses_n;
    kill_pause_t  pauses[KILL_PAUSES];
} kill_service_t;

/* What the API server sends.  Marks have a scope and no object. */
typedef struct {
    kube_delta_kind_t  kind;
    unsigned           scope;
    it_object_t        o;
} kill_event_t;

typedef struct {
    kube_scope_sum_t  sums[2];
    unsigned          refused[2];
} kill_end_t;

static struct {
    const char      *name;
    bool             evicts;
    bool             all;
    uint64_t         visible;         /* of what is not records, at a death */
    void           (*hook)(void);
    it_t             live;
    it_t             copies[2];
    void            *pristine;
    kube_arena_t     arena;
    alloc_test_t     at;

    unsigned         services_n;
    kill_service_t   services[KILL_SERVICES];
    unsigned         events_n;
    kill_event_t     events[KILL_EVENTS];
    kill_end_t       end;

    unsigned         stores;
    unsigned         deaths;          /* of the first writer */
    unsigned         takeovers;
    unsigned         paused;          /* readers who went on, and saw that */

    /* of the copy that is read now */
    it_t            *it;
    unsigned         level;
    unsigned         seen[2][KILL_SERVICES];
    uint64_t         signature;
} kill_now;

static const kube_str_t  kill_static[] = { KUBE_STR("shop/new") };


static void  kill_take_over(const it_t *dead, const unsigned *seen,
    unsigned level);


void
kube_failpoint_hit(const char *name)
{
    void  (*hook)(void);

    /* what it does stores itself */
    if (kill_now.hook != NULL && strcmp(name, "store") == 0) {
        hook = kill_now.hook;
        kill_now.hook = NULL;
        hook();
        kill_now.hook = hook;
    }
}


/* "port slice=version*endpoints ...", the slices by name. */
static void
kill_text(const kube_snapshot_t *s, char *text)
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

    len = (size_t) snprintf(text, KILL_TEXT, "%u",
                            s->service.ports[0].port - 1u);

    for (i = 0; i < s->slices_n; i++) {
        slice = s->slices[i];
        len += (size_t) snprintf(text + len, KILL_TEXT - len, " %.*s=%u*%zu",
                                 (int) slice.meta.name.len,
                                 slice.meta.name.data,
                                 slice.endpoints[0].address.bytes[2],
                                 slice.endpoints_n);
        assert_true(len < KILL_TEXT);
    }
}


static uint32_t
kill_find(const it_t *it, const kill_service_t *service)
{
    uint32_t  entry;

    if (kube_zone_find(&it->zone, KUBE_RESOURCE_SERVICES,
                       kube_str(service->ns), kube_str(service->name),
                       &entry) != KUBE_OK)
    {
        return 0;
    }

    return entry;
}


/* What a reader finds; "-": nothing. */
static void
kill_read(const it_t *it, const kill_service_t *service, char *text)
{
    uint32_t         entry;
    kube_snapshot_t  s;

    entry = kill_find(it, service);
    snprintf(text, KILL_TEXT, "-");

    if (entry != 0) {
        kube_arena_reset(&kill_now.arena);
        assert_int_equal(kube_zone_read(&it->zone, entry,
                                        kube_str(service->ns),
                                        kube_str(service->name),
                                        &kill_now.arena, &s), KUBE_OK);
        kill_text(&s, text);
    }
}


/* The state's place, from that of the last one seen on. */
static unsigned
kill_place(const kill_service_t *service, const char *text, unsigned seen)
{
    unsigned  i;

    for (i = seen; i < service->states_n; i++) {
        if (strcmp(service->states[i], text) == 0) {
            return i;
        }
    }

    print_error("%s: death after store %u: %s/%s: \"%s\" after \"%s\"\n",
                kill_now.name, kill_now.stores, service->ns, service->name,
                text, service->states[seen]);

    for (i = 0; i < service->states_n; i++) {
        print_error("  state %u: %s\n", i, service->states[i]);
    }

    fail();

    return 0;
}


/* Readers of steady state look at the head alone; all: at everything. */
static void
kill_look(const it_t *it, unsigned *seen, bool all)
{
    unsigned         i;
    uint64_t         head;
    char             text[KILL_TEXT];
    kill_service_t  *service;

    for (i = 0; i < kill_now.services_n; i++) {
        service = &kill_now.services[i];
        head = kube_zone_head(&it->zone, kill_find(it, service));

        if (all || head != service->head) {
            kill_read(it, service, text);
            seen[i] = kill_place(service, text, seen[i]);
            service->head = head;
        }
    }
}


/* Of all heads and chains: readers find nothing new while it is the same. */
static uint64_t
kill_signature(const it_t *it)
{
    const kube_zone_geometry_t  *g;

    g = &it->zone.geometry;

    return kube_hash64((kube_seed_t) { 1, 2 },
                       (const char *) it->mem + g->buckets,
                       g->scopes - g->buckets);
}


/* The hook in a copy: during take-over and afterwards. */
static void
kill_on_copy_store(void)
{
    uint64_t  signature;
    unsigned  level;

    level = kill_now.level;
    signature = kill_signature(kill_now.it);

    if (signature != kill_now.signature) {
        kill_now.signature = signature;
        kill_look(kill_now.it, kill_now.seen[level], false);
    }

    /* the successor is still taking over: it dies, too */
    if (level == 0
        && kill_now.deaths % KILL_NESTED == 0
        && kill_now.it->publisher == NULL)
    {
        kill_take_over(kill_now.it, kill_now.seen[0], 1);
        kill_now.it = &kill_now.copies[0];
        kill_now.level = 0;
    }
}


static bool
kill_is_live(const kube_zone_writer_t *w, uint32_t at)
{
    uint64_t  bit;

    bit = at - w->zone->geometry.segments / KUBE_ZONE_UNIT;

    return (w->bits[bit / 64] >> bit % 64 & 1) != 0;
}


/* All that is not live may be overwritten by now. */
static void
kill_overwrite(it_t *it)
{
    uint32_t             at, end, segment;
    kube_zone_writer_t  *w;

    w = it->writer;

    for (segment = 0; segment < log_segments_n(w); segment++) {
        at = log_segment_offset(w, segment);
        end = at + log_segment_size(w) / KUBE_ZONE_UNIT;

        while (at < end) {
            if (kill_is_live(w, at)) {
                at += kube_zone_record_at(&it->zone, at)->size
                      / KUBE_ZONE_UNIT;
            } else {
                memset(kube_zone_record_at(&it->zone, at), 0xff,
                       KUBE_ZONE_UNIT);
                at++;
            }
        }
    }
}


/* A reader goes on with the slices of a record that it had copied. */
static void
kill_resume(const it_t *it, const kill_service_t *service,
    const kill_pause_t *pause)
{
    char                  text[KILL_TEXT];
    kube_rc_t             rc;
    kube_object_t         object;
    kube_snapshot_t       s;
    reader_space_t        space;
    kube_zone_bundle_t    bundle;
    const kube_record_t  *record;

    kube_arena_reset(&kill_now.arena);
    memset(&space, 0, sizeof(space));
    memset(&s, 0, sizeof(s));
    space.arena = &kill_now.arena;
    record = (const kube_record_t *) (const void *) pause->record;

    rc = reader_load_slices(&it->zone, record, &space, &bundle);

    if (kube_word_get(&kube_zone_entry(&it->zone, pause->entry)->head)
        != pause->head)
    {
        return;
    }

    kill_now.paused++;

    if (rc != KUBE_OK || reader_bundle_check(&bundle) != KUBE_OK) {
        print_error("%s: death after store %u: %s/%s: a paused reader finds "
                    "its slices gone under an unchanged head\n",
                    kill_now.name, kill_now.stores, service->ns,
                    service->name);
        fail();
    }

    assert_int_equal(kube_record_decode(&kill_now.arena, bundle.service,
                                        bundle.service->size, &object),
                     KUBE_OK);
    s.service = object.u.service;
    assert_int_equal(reader_decode_slices(&kill_now.arena, &bundle, &s),
                     KUBE_OK);
    kill_text(&s, text);
    (void) kill_place(service, text, pause->seen);
}


static void
kill_resume_all(const it_t *it)
{
    unsigned               i, k;
    const kill_service_t  *service;

    for (i = 0; i < kill_now.services_n; i++) {
        service = &kill_now.services[i];

        for (k = 0; k < service->pauses_n; k++) {
            kill_resume(it, service, &service->pauses[k]);
        }
    }
}


/*
 * Readers who pause here; those before them whose head is the same.  True if
 * a record that is named has changed.
 */
static bool
kill_pause(const it_t *it)
{
    bool                  changed;
    unsigned              i;
    uint64_t              head;
    uint32_t              entry;
    kill_pause_t         *pause;
    kill_service_t       *service;
    const kube_record_t  *record;

    changed = false;

    for (i = 0; i < kill_now.services_n; i++) {
        service = &kill_now.services[i];
        entry = kill_find(it, service);

        if (entry == 0) {
            service->pauses_n = 0;
            continue;
        }

        head = kube_zone_head(&it->zone, entry);
        record = kube_zone_record_at(&it->zone, kube_head_offset(head));
        assert_true(record->size <= sizeof(pause->record));

        if (service->pauses_n != 0) {
            pause = &service->pauses[service->pauses_n - 1];

            if (pause->head != head || pause->entry != entry) {
                service->pauses_n = 0;

            } else if (memcmp(pause->record, record, record->size) == 0
                       || service->pauses_n == KILL_PAUSES)
            {
                continue;
            }
        }

        pause = &service->pauses[service->pauses_n++];
        pause->entry = entry;
        pause->head = head;
        pause->seen = service->seen;
        memcpy(pause->record, record, record->size);
        changed = true;
    }

    return changed;
}


static void
kill_start(it_t *it)
{
    assert_int_equal(it_start(it), KUBE_OK);
    assert_int_equal(it_scopes(it), KUBE_OK);
    assert_int_equal(kube_indexer_load(it->ix, it->now_ms), KUBE_OK);
}


/* What the watch sends, from the version on that readers were shown. */
static void
kill_run(it_t *it)
{
    unsigned             i;
    kube_rc_t            rc;
    const kill_event_t  *e;

    for (i = 0; i < kill_now.events_n; i++) {
        e = &kill_now.events[i];

        if (e->kind == KUBE_DELTA_LIST_BEGIN || e->kind == KUBE_DELTA_SYNC) {
            rc = it_mark(it, e->kind, e->scope);

        } else {
            rc = it_apply(it, e->kind, &e->o);
        }

        assert_int_equal(rc, KUBE_OK);
    }

    (void) it_publish(it);
}


static void
kill_end(const it_t *it, kill_end_t *end)
{
    memset(end, 0, sizeof(kill_end_t));
    end->sums[0] = it_sum(it, IT_SERVICES);
    end->sums[1] = it_sum(it, IT_SLICES);
    end->refused[0] = it_refused(it, KUBE_RESOURCE_SERVICES, NULL, 0);
    end->refused[1] = it_refused(it, KUBE_RESOURCE_ENDPOINTSLICES, NULL, 0);
}


/*
 * How many make room depends on how records lie, which a death changes: then
 * each object is held, or named.
 */
static bool
kill_sums_agree(const kill_end_t *end, unsigned scope)
{
    const kube_scope_sum_t  *a, *b;

    a = &end->sums[scope];
    b = &kill_now.end.sums[scope];

    if (kill_now.evicts) {
        return a->count + end->refused[scope]
               == b->count + kill_now.end.refused[scope];
    }

    return a->count == b->count
           && end->refused[scope] == kill_now.end.refused[scope]
           && a->digest.lo == b->digest.lo
           && a->digest.hi == b->digest.hi;
}


static void
kill_check_end(const it_t *it)
{
    unsigned         i;
    char             text[KILL_TEXT];
    kill_end_t       end;
    kill_service_t  *service;

    for (i = 0; i < kill_now.services_n; i++) {
        service = &kill_now.services[i];

        if (!kill_now.evicts || strcmp(service->ns, "shop") == 0) {
            kill_read(it, service, text);
            assert_string_equal(text,
                                service->states[service->states_n - 1]);
        }
    }

    kill_end(it, &end);

    for (i = 0; i < 2; i++) {
        if (!kill_sums_agree(&end, i)) {
            print_error("%s: death after store %u: scope %u ends with %u "
                        "objects and %u names, not %u and %u\n",
                        kill_now.name, kill_now.stores, i,
                        (unsigned) end.sums[i].count, end.refused[i],
                        (unsigned) kill_now.end.sums[i].count,
                        kill_now.end.refused[i]);
            fail();
        }
    }
}


/* The writer of dead's image is gone as it is now: what comes after it? */
static void
kill_take_over(const it_t *dead, const unsigned *seen, unsigned level)
{
    it_t  *it;

    it = &kill_now.copies[level];
    memcpy(it->mem, dead->mem, KILL_SIZE);
    memcpy(kill_now.seen[level], seen, sizeof(kill_now.seen[level]));
    kill_now.it = it;
    kill_now.level = level;
    kill_now.signature = 0;
    kill_now.takeovers++;
    kill_now.deaths += (level == 0);

    kill_now.hook = kill_on_copy_store;
    kill_start(it);
    kill_now.hook = NULL;

    assert_true(it->takeover.crashed);
    assert_false(it->takeover.distrust);
    assert_int_equal(it->takeover.cut_off, 0);
    assert_int_equal(kube_zone_validate(it->mem, it->size), KUBE_OK);
    kill_overwrite(it);
    kill_look(it, kill_now.seen[level], true);
    kill_resume_all(it);

    /* what it makes of it by itself, and what the watch then says */
    kill_now.signature = 0;
    kill_now.hook = kill_on_copy_store;
    (void) it_publish(it);
    kill_run(it);
    kill_now.hook = NULL;

    kill_resume_all(it);
    kill_look(it, kill_now.seen[level], true);
    kill_check_end(it);
    it_stop(it);
    assert_int_equal(kube_zone_validate(it->mem, it->size), KUBE_OK);
}


static void
kill_on_store(void)
{
    bool      named;
    unsigned  i, seen[KILL_SERVICES];
    uint64_t  visible;

    kill_now.stores++;
    visible = kube_hash64((kube_seed_t) { 1, 2 }, kill_now.live.mem,
                          kill_now.live.zone.geometry.segments);

    for (i = 0; i < KILL_SERVICES; i++) {
        seen[i] = kill_now.services[i].seen;
    }

    kill_look(&kill_now.live, seen, kill_now.stores % 8 == 0);

    for (i = 0; i < KILL_SERVICES; i++) {
        kill_now.services[i].seen = seen[i];
    }

    named = kill_pause(&kill_now.live);

    if (named
        || visible != kill_now.visible
        || kill_now.stores % KILL_STRIDE == 0
        || kill_now.all)
    {
        kill_now.visible = visible;
        kill_take_over(&kill_now.live, seen, 0);
    }
}


/* The hook of the first run, in which nobody dies. */
static void
kill_record(void)
{
    unsigned         i;
    char             text[KILL_TEXT];
    kill_service_t  *service;

    for (i = 0; i < kill_now.services_n; i++) {
        service = &kill_now.services[i];
        kill_read(&kill_now.live, service, text);

        if (service->states_n == 0
            || strcmp(service->states[service->states_n - 1], text) != 0)
        {
            assert_true(service->states_n < KILL_STATES);
            snprintf(service->states[service->states_n++], KILL_TEXT, "%s",
                     text);
        }
    }
}


static void
kill_event(kube_delta_kind_t kind, const it_object_t *o)
{
    kill_event_t  *e;

    assert_true(kill_now.events_n < KILL_EVENTS);
    e = &kill_now.events[kill_now.events_n++];
    e->kind = kind;
    e->o = *o;
}


static void
kill_mark(kube_delta_kind_t kind, unsigned scope)
{
    kill_event_t  *e;

    assert_true(kill_now.events_n < KILL_EVENTS);
    e = &kill_now.events[kill_now.events_n++];
    e->kind = kind;
    e->scope = scope;
}


/* The next version of an object. */
static it_object_t
kill_next(const it_object_t *o)
{
    it_object_t  next;

    next = *o;
    next.version++;
    it_stamp(&kill_now.live, &next);

    return next;
}


static void
kill_watch(const char *ns, const char *name)
{
    kill_service_t  *service;

    assert_true(kill_now.services_n < KILL_SERVICES);
    service = &kill_now.services[kill_now.services_n++];
    snprintf(service->ns, sizeof(service->ns), "%s", ns);
    snprintf(service->name, sizeof(service->name), "%s", name);
}


/* Services a and b with two slices each; x and new are none yet. */
typedef struct {
    it_object_t  a, b, a1, a2, b1, b2;
} kill_shop_t;


static kill_shop_t
kill_shop(void)
{
    it_t         *it;
    kill_shop_t   shop;

    it = &kill_now.live;
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

    kill_watch("shop", "a");
    kill_watch("shop", "b");
    kill_watch("shop", "x");
    kill_watch("shop", "new");

    return shop;
}


static void
kill_case_insert(void)
{
    it_object_t  o;

    (void) kill_shop();
    o = it_slice(&kill_now.live, "shop", "new-1", "new");
    kill_event(KUBE_DELTA_UPDATED, &o);
    o = it_service(&kill_now.live, "shop", "new");
    kill_event(KUBE_DELTA_UPDATED, &o);
    o = it_slice(&kill_now.live, "shop", "new-2", "new");
    kill_event(KUBE_DELTA_UPDATED, &o);
}


static void
kill_case_update(void)
{
    it_object_t  o;
    kill_shop_t  shop;

    shop = kill_shop();
    o = kill_next(&shop.a1);
    kill_event(KUBE_DELTA_UPDATED, &o);
    o = kill_next(&shop.b);
    kill_event(KUBE_DELTA_UPDATED, &o);
    o = kill_next(&shop.b2);
    kill_event(KUBE_DELTA_UPDATED, &o);
}


static void
kill_case_delete(void)
{
    it_object_t  o;
    kill_shop_t  shop;

    shop = kill_shop();
    o = kill_next(&shop.a1);
    kill_event(KUBE_DELTA_DELETED, &o);
    o = kill_next(&shop.b);
    kill_event(KUBE_DELTA_DELETED, &o);
}


static void
kill_case_delete_all(void)
{
    it_object_t  o;
    kill_shop_t  shop;

    shop = kill_shop();
    o = kill_next(&shop.a1);
    kill_event(KUBE_DELTA_DELETED, &o);
    o = kill_next(&shop.a);
    kill_event(KUBE_DELTA_DELETED, &o);
    o = kill_next(&shop.a2);
    kill_event(KUBE_DELTA_DELETED, &o);
}


/* To another Service, and to one that does not exist. */
static void
kill_case_relabel(void)
{
    it_object_t  o;
    kill_shop_t  shop;

    shop = kill_shop();
    o = kill_next(&shop.a1);
    snprintf(o.service, sizeof(o.service), "b");
    kill_event(KUBE_DELTA_UPDATED, &o);
    o = kill_next(&shop.b2);
    snprintf(o.service, sizeof(o.service), "x");
    kill_event(KUBE_DELTA_UPDATED, &o);
}


static void
kill_case_refuse(void)
{
    it_object_t  o;
    kill_shop_t  shop;

    shop = kill_shop();
    o = kill_next(&shop.a1);
    kill_event(KUBE_DELTA_REFUSED, &o);
    o = kill_next(&shop.b);
    kill_event(KUBE_DELTA_REFUSED, &o);
}


static void
kill_fill(void)
{
    char         name[8], slice[16];
    unsigned     i, k;
    it_t        *it;
    it_object_t  o;

    it = &kill_now.live;

    for (i = 0; it->logs[KUBE_EV_ZONE_FULL] == 0; i++) {
        assert_true(i < 24);
        snprintf(name, sizeof(name), "f-%02u", i);
        kill_watch("zz", name);
        o = it_service(it, "zz", name);
        (void) !it_apply(it, KUBE_DELTA_UPDATED, &o);

        for (k = 1; k <= 3; k++) {
            snprintf(slice, sizeof(slice), "%s-%u", name, k);
            o = it_slice(it, "zz", slice, name);
            o.endpoints = 100;
            (void) !it_apply(it, KUBE_DELTA_UPDATED, &o);
        }

        (void) it_publish(it);
    }
}


/* shop/new, a static key, makes the last ones go. */
static void
kill_case_evict(void)
{
    it_object_t  o;

    (void) kill_shop();
    kill_fill();
    o = it_service(&kill_now.live, "shop", "new");
    kill_event(KUBE_DELTA_UPDATED, &o);
    o = it_slice(&kill_now.live, "shop", "new-1", "new");
    o.endpoints = 150;
    kill_event(KUBE_DELTA_UPDATED, &o);
    o = it_slice(&kill_now.live, "shop", "new-2", "new");
    o.endpoints = 150;
    kill_event(KUBE_DELTA_UPDATED, &o);
}


/* A list in which one slice has taken the place of two. */
static void
kill_case_replace(void)
{
    it_object_t  o;
    kill_shop_t  shop;

    shop = kill_shop();
    kill_mark(KUBE_DELTA_LIST_BEGIN, IT_SLICES);
    o = it_slice(&kill_now.live, "shop", "a-3", "a");
    kill_event(KUBE_DELTA_REPLACED, &o);
    kill_event(KUBE_DELTA_REPLACED, &shop.b1);
    kill_event(KUBE_DELTA_REPLACED, &shop.b2);
    kill_mark(KUBE_DELTA_SYNC, IT_SLICES);
}


static void
kill_case_relist(void)
{
    it_object_t  o;
    kill_shop_t  shop;

    shop = kill_shop();
    kill_mark(KUBE_DELTA_LIST_BEGIN, IT_SERVICES);
    kill_mark(KUBE_DELTA_LIST_BEGIN, IT_SLICES);
    kill_event(KUBE_DELTA_REPLACED, &shop.a);
    o = it_service(&kill_now.live, "shop", "new");
    kill_event(KUBE_DELTA_REPLACED, &o);
    kill_mark(KUBE_DELTA_SYNC, IT_SERVICES);
    o = kill_next(&shop.a1);
    kill_event(KUBE_DELTA_REPLACED, &o);
    kill_event(KUBE_DELTA_REPLACED, &shop.a2);
    kill_event(KUBE_DELTA_REPLACED, &shop.b2);
    kill_mark(KUBE_DELTA_SYNC, IT_SLICES);
}


/* The next record has no room before the segment with a-1 is emptied. */
static bool
kill_is_due(const it_t *it)
{
    uint32_t             e, x;
    kube_zone_writer_t  *w;

    w = it->writer;
    x = log_emptiest(w);
    e = kube_zone_writer_find(w, KUBE_RESOURCE_ENDPOINTSLICES,
                              KUBE_STR("shop"), KUBE_STR("a-1"));

    return log_tail(w, w->open_segment) < 600
           && x != KUBE_ZONE_NO_SEGMENT
           && x == log_segment_of(w, kube_zone_entry_offset(w->zone, e))
           && (w->free_n == 1
               || w->segments[x].live <= log_segment_size(w) / 2);
}


static void
kill_case_evacuate(void)
{
    unsigned      i;
    it_t         *it;
    it_object_t   o;
    kill_shop_t   shop;

    it = &kill_now.live;
    shop = kill_shop();
    o = it_slice(it, "shop", "fill", "nobody");

    for (i = 0; i < 4000 && !kill_is_due(it); i++) {
        o.endpoints = 1 + i * 7 % 23;
        it_change(it, &o);
    }

    assert_true(kill_is_due(it));
    o = kill_next(&o);
    o.endpoints = 60;
    kill_event(KUBE_DELTA_UPDATED, &o);
    o = kill_next(&shop.a1);
    kill_event(KUBE_DELTA_UPDATED, &o);
}


static const struct {
    const char  *name;
    void       (*prepare)(void);
    bool         evicts;
} kill_cases[] = {
    { "insert", kill_case_insert, false },
    { "update", kill_case_update, false },
    { "delete", kill_case_delete, false },
    { "delete all", kill_case_delete_all, false },
    { "relabel", kill_case_relabel, false },
    { "refuse", kill_case_refuse, false },
    { "evict", kill_case_evict, true },
    { "replace", kill_case_replace, false },
    { "relist", kill_case_relist, false },
    { "evacuate", kill_case_evacuate, false },
};


static void
kill_open(it_t *it)
{
    it_zone(it, KILL_SIZE);
    it->conf.static_keys = kill_static;
    it->conf.static_keys_n = 1;
}


/* Back to before the events. */
static void
kill_rewind(void)
{
    it_stop(&kill_now.live);
    memcpy(kill_now.live.mem, kill_now.pristine, KILL_SIZE);
    kill_start(&kill_now.live);
}


static void
kill_try(size_t n)
{
    unsigned  i;
    it_t     *it;

    memset(&kill_now, 0, sizeof(kill_now));
    kill_now.name = kill_cases[n].name;
    kill_now.evicts = kill_cases[n].evicts;
    kill_now.all = (getenv("KUBE_CRASH_ALL") != NULL);
    kill_now.pristine = malloc(KILL_SIZE);
    assert_non_null(kill_now.pristine);
    alloc_test_init(&kill_now.at);
    kube_arena_init(&kill_now.arena, &kill_now.at.alloc, 16u << 20);
    it = &kill_now.live;

    kill_open(it);
    kill_open(&kill_now.copies[0]);
    kill_open(&kill_now.copies[1]);
    kill_start(it);
    kill_cases[n].prepare();
    it_stop(it);
    memcpy(kill_now.pristine, it->mem, KILL_SIZE);
    kill_start(it);

    kill_record();
    kill_now.hook = kill_record;
    kill_run(it);
    kill_now.hook = NULL;
    kill_end(it, &kill_now.end);

    kill_rewind();
    kill_now.hook = kill_on_store;
    kill_run(it);
    kill_now.hook = NULL;

    print_message("kill: %s: %u stores, %u take-overs, %u paused readers\n",
                  kill_now.name, kill_now.stores, kill_now.takeovers,
                  kill_now.paused);
    assert_true(kill_now.stores > 8);
    assert_true(kill_now.takeovers > 8);

    for (i = 0; i < kill_now.services_n; i++) {
        if (kill_now.services[i].states_n > 1) {
            break;
        }
    }

    assert_true(i < kill_now.services_n);

    it_done(it);
    free(kill_now.copies[0].mem);
    free(kill_now.copies[1].mem);
    free(kill_now.pristine);
    kube_arena_done(&kill_now.arena);
}


static void
test_kill_after_every_store(void **state)
{
    size_t  n;

    (void) state;

    for (n = 0; n < sizeof(kill_cases) / sizeof(kill_cases[0]); n++) {
        kill_try(n);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_kill_after_every_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

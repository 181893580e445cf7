/*
 * test_zone_recover - the walk at acquire, by what it leaves behind: heads
 * after a crash and after a hand-over, and distrust where something was lost,
 * also if whoever repairs it dies himself.  It allocates nothing.
 *
 * What readers see of it is test_zone_kill's and test_zone_crash's, any bytes
 * are test_zone_walk's.  The writer's sources are built into this program,
 * with failpoints.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_FAILPOINTS  1

#include "kube_zone_guard.c"
#include "kube_zone_log.c"
#include "kube_zone_recover.c"
#include "kube_zone_store.c"
#include "kube_zone_table.c"
#include "kube_zone_writer.c"
#include "kube_zone_poison.h"
#include "zone_test.h"


#define REPAIR_SIZE  KUBE_ZONE_SIZE_MIN
#define REPAIR_NOW   1000


/* After each store, or at the failpoint of that name; NULL: never. */
static const char  *repair_at;
static void       (*repair_hook)(void);

static struct {
    zone_test_t  t;
    zone_test_t  copy;
    void        *image;        /* as it was at a moment */
    unsigned     hits;
    uint32_t     service;
    uint32_t     slice;
    uint64_t     heads[2];     /* of both, before */
} repair_now;


void
kube_failpoint_hit(const char *name)
{
    void  (*hook)(void);

    if (repair_hook != NULL && strcmp(name, repair_at) == 0) {
        hook = repair_hook;
        repair_hook = NULL;
        repair_now.hits++;
        hook();
        repair_hook = hook;
    }
}


static void
repair_hook_set(const char *at, void (*hook)(void))
{
    repair_at = at;
    repair_hook = hook;
    repair_now.hits = 0;
}


static uint64_t
repair_head_of(const zone_test_t *t, uint32_t entry)
{
    return kube_word_get(&kube_zone_entry(&t->zone, entry)->head);
}


/* Two Services of two slices each, an orphan, and a scope. */
static void
repair_open(void)
{
    bool               same;
    uint32_t           orphan;
    zone_test_t       *t;
    kube_scope_info_t  info;

    memset(&repair_now, 0, sizeof(repair_now));
    t = &repair_now.t;
    zone_test_open(t, REPAIR_SIZE);
    zone_test_open(&repair_now.copy, REPAIR_SIZE);
    kube_zone_writer_release(repair_now.copy.writer);
    repair_now.image = zone_test_memory(REPAIR_SIZE);

    assert_int_equal(zone_test_put(t, "shop", "web", 1, 1, 2, 3, REPAIR_NOW),
                     KUBE_OK);
    assert_int_equal(zone_test_put(t, "shop", "api", 1, 1, 2, 3, REPAIR_NOW),
                     KUBE_OK);
    assert_int_equal(zone_test_stage(t, zone_test_slice("shop", "lone",
                                                        "nobody", 1, 1, 2),
                                     REPAIR_NOW, &orphan, &same), KUBE_OK);
    kube_zone_publish_orphan(t->writer, orphan);

    memset(&info, 0, sizeof(info));
    info.rv = KUBE_STR("1");
    assert_int_equal(kube_zone_scope_publish(t->writer, 0, &info), KUBE_OK);

    repair_now.service = zone_test_find(t, KUBE_RESOURCE_SERVICES, "shop",
                                         "web");
    repair_now.slice = zone_test_find(t, KUBE_RESOURCE_ENDPOINTSLICES,
                                       "shop", "web-0");
}


static void
repair_close(void)
{
    repair_hook = NULL;
    zone_test_close(&repair_now.t);
    zone_test_close(&repair_now.copy);
    free(repair_now.image);
}


/* What the writer counts is what there is. */
static void
repair_counts(const zone_test_t *t)
{
    uint32_t                   e, used, refused, outdated;
    uint64_t                   bytes;
    const kube_zone_side_t    *side;
    const kube_zone_writer_t  *w;

    w = t->writer;
    used = 0;
    refused = 0;
    outdated = 0;
    bytes = 0;

    for (e = 1; e <= w->entries_top; e++) {
        side = &w->side[e];

        if (side->offset == 0) {
            continue;
        }

        used++;
        outdated += side->outdated;

        if (side->kind == KUBE_RECORD_REFUSED) {
            refused++;
            bytes += kube_zone_live_size(w, side->offset);
        }
    }

    assert_int_equal(w->entries_used, used);
    assert_int_equal(w->outdated, outdated);
    assert_int_equal(w->refused, refused);
    assert_int_equal(w->refused_bytes, bytes);
}


static void
repair_heads_note(const zone_test_t *t)
{
    repair_now.heads[0] = repair_head_of(t, repair_now.service);
    repair_now.heads[1] = repair_head_of(t, repair_now.slice);
}


static void
repair_image_take(void)
{
    memcpy(repair_now.image, repair_now.t.mem, REPAIR_SIZE);
}


/* The writer of the image that was taken has died with it. */
static void
repair_image_start(zone_test_t *t)
{
    kube_zone_writer_release(t->writer);
    memcpy(t->mem, repair_now.image, REPAIR_SIZE);
}


/* Workers read anew what has another head: after a hand-over nothing has. */
static void
test_recover_heads(void **state)
{
    zone_test_t      *t;
    kube_takeover_t   takeover;

    (void) state;
    repair_open();
    t = &repair_now.t;
    repair_heads_note(t);

    kube_zone_writer_release(t->writer);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    assert_false(takeover.crashed);
    assert_true(repair_head_of(t, repair_now.service)
                == repair_now.heads[0]);
    assert_true(repair_head_of(t, repair_now.slice)
                == repair_now.heads[1]);

    repair_image_take();
    repair_image_start(t);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    assert_true(takeover.crashed);
    assert_false(takeover.distrust);
    assert_true(repair_head_of(t, repair_now.service)
                != repair_now.heads[0]);
    assert_int_equal(kube_head_offset(repair_head_of(t,
                                                      repair_now.service)),
                     kube_head_offset(repair_now.heads[0]));
    repair_close();
}


/* A slice's head follows its Service's, which readers see changed by then. */
static void
repair_order(void)
{
    const zone_test_t  *t;

    t = &repair_now.copy;

    if (repair_head_of(t, repair_now.slice) != repair_now.heads[1]) {
        assert_true(repair_head_of(t, repair_now.service)
                    != repair_now.heads[0]);
    }
}


static void
test_recover_bumps_first(void **state)
{
    zone_test_t      *t;
    kube_takeover_t   takeover;

    (void) state;
    repair_open();
    t = &repair_now.copy;

    /* dead before the slice's own head is stored */
    repair_hook_set("service_head", repair_image_take);
    assert_int_equal(zone_test_put(&repair_now.t, "shop", "web", 2, 2, 2, 3,
                                   REPAIR_NOW), KUBE_OK);
    assert_int_equal(repair_now.hits, 1);
    repair_hook = NULL;

    repair_image_start(t);
    repair_heads_note(t);
    repair_hook_set("store", repair_order);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    repair_hook = NULL;

    assert_true(repair_now.hits > 3);
    assert_true(repair_head_of(t, repair_now.slice)
                != repair_now.heads[1]);
    assert_int_equal(repair_head_of(t, repair_now.slice) & UINT32_MAX,
                     repair_now.t.writer->side[repair_now.slice].offset);
    repair_close();
}


static kube_record_t *
repair_record(const zone_test_t *t, kube_resource_t resource,
    const char *name)
{
    uint32_t  entry;

    entry = zone_test_find(t, resource, "shop", name);
    assert_int_not_equal(entry, 0);

    return kube_zone_record_at(&t->zone, t->writer->side[entry].offset);
}


static void
repair_damage_nothing(const zone_test_t *t)
{
    (void) t;
}


static void
repair_damage_service(const zone_test_t *t)
{
    repair_record(t, KUBE_RESOURCE_SERVICES, "web")->check++;
}


/* Nobody names it: it is cut off, and that is all. */
static void
repair_damage_orphan(const zone_test_t *t)
{
    repair_record(t, KUBE_RESOURCE_ENDPOINTSLICES, "lone")->check++;
}


static kube_ref_t *
repair_refs(const zone_test_t *t, const char *name)
{
    kube_record_t  *service;

    service = repair_record(t, KUBE_RESOURCE_SERVICES, name);

    return (kube_ref_t *) (void *) ((char *) service
                                    + kube_record_base(service));
}


/* Every record is good, and one of them is not what the Service names. */
static void
repair_damage_ref(const zone_test_t *t)
{
    kube_ref_t  *refs;

    refs = repair_refs(t, "web");
    refs[1].offset = t->writer->side[repair_now.service].offset;
}


/* Of two slices one is named twice, and the other one by nobody. */
static void
repair_damage_twice(const zone_test_t *t)
{
    kube_ref_t  *refs;

    refs = repair_refs(t, "web");
    refs[1] = refs[0];
}


/* The same of the slice whose entry is the last that was ever used. */
static void
repair_damage_last(const zone_test_t *t)
{
    kube_ref_t  *refs;

    assert_int_equal(zone_test_put(&repair_now.t, "shop", "last", 1, 1, 2, 3,
                                   REPAIR_NOW), KUBE_OK);
    refs = repair_refs(t, "last");
    assert_int_equal(refs[1].entry, t->writer->entries_top);
    refs[0] = refs[1];
}


static void
repair_damage_scope(const zone_test_t *t)
{
    uint32_t  number;

    number = kube_zone_scope_number(&t->zone, 0, false);
    kube_zone_record_at(&t->zone, t->writer->side[number].offset)->check++;
}


/* A chain that leads back: what it had led to is not known. */
static void
repair_damage_link(const zone_test_t *t)
{
    kube_half_set(&kube_zone_entry(&t->zone, repair_now.service)->next,
                  repair_now.service);
}


static const struct {
    const char  *name;
    void       (*damage)(const zone_test_t *t);
    bool         distrust;      /* a scope that is lost is listed anyway */
    unsigned     cut_off;
    bool         repaired;
} repair_damages[] = {
    { "nothing", repair_damage_nothing, false, 0, false },
    { "a Service", repair_damage_service, true, 1, false },
    { "an orphan", repair_damage_orphan, true, 1, false },
    { "a ref", repair_damage_ref, true, 0, true },
    { "a ref twice", repair_damage_twice, true, 0, true },
    { "the last ref twice", repair_damage_last, true, 0, true },
    { "a scope", repair_damage_scope, false, 0, false },
    { "a link", repair_damage_link, true, 0, false },
};

#define REPAIR_DAMAGES  (sizeof(repair_damages) / sizeof(repair_damages[0]))


/* Whoever repairs dies after this store; what is lost is known after him. */
static void
repair_die(void)
{
    zone_test_t      *t;
    kube_takeover_t   takeover;

    t = &repair_now.copy;
    memcpy(t->mem, repair_now.t.mem, REPAIR_SIZE);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    assert_true(takeover.distrust);
    kube_zone_writer_release(t->writer);
}


static void
test_recover_distrust(void **state)
{
    size_t            i;
    zone_test_t      *t;
    kube_takeover_t   takeover;

    (void) state;

    for (i = 0; i < REPAIR_DAMAGES; i++) {
        repair_open();
        t = &repair_now.t;
        repair_damages[i].damage(t);
        kube_word_set(&t->zone.image->corrupt, i + 1);
        repair_image_take();
        repair_image_start(t);

        if (repair_damages[i].distrust) {
            repair_hook_set("store", repair_die);
        }

        zone_test_acquire(t, REPAIR_NOW, &takeover);
        repair_hook = NULL;

        if (takeover.distrust != repair_damages[i].distrust
            || takeover.cut_off != repair_damages[i].cut_off
            || (takeover.repaired != 0) != repair_damages[i].repaired)
        {
            print_error("%s: distrust %d, %u cut off, %u repaired\n",
                        repair_damages[i].name, takeover.distrust,
                        (unsigned) takeover.cut_off,
                        (unsigned) takeover.repaired);
            fail();
        }

        assert_true(!takeover.distrust || repair_now.hits > 2);
        assert_int_equal(kube_zone_validate(t->mem, t->size), KUBE_OK);
        repair_counts(t);

        /* what was found before it was repaired is found no more */
        assert_false(kube_zone_writer_is_disturbed(t->writer));

        /* it lasts until somebody says that he trusts the zone again */
        kube_zone_writer_release(t->writer);
        zone_test_acquire(t, REPAIR_NOW, &takeover);
        assert_int_equal(takeover.distrust, repair_damages[i].distrust);
        assert_int_equal(takeover.cut_off, 0);
        kube_zone_writer_trust(t->writer);
        kube_zone_writer_release(t->writer);
        zone_test_acquire(t, REPAIR_NOW, &takeover);
        assert_false(takeover.distrust);
        repair_close();
    }
}


/*
 * A writer dies while it evicts web-1 of scope 5: before it did anything, once
 * its Service was published without it, also where no name has room, and when
 * the eviction was over and the slice was let go for another reason.  That is
 * repeated, but where the slice was outdated.
 */
static const struct {
    const char  *name;
    bool         outdated;       /* the slice, before all else */
    bool         over;           /* the eviction, next */
    bool         published;      /* the Service, without the slice */
    bool         no_names;
    unsigned     slices;         /* of the Service, after the take-over */
    const char  *refused;        /* why; NULL: not named */
    unsigned     uncounted;
    bool         all;            /* namespaces are those of the scope */
    bool         asks;           /* the scope, for a list at once */
} repair_evictions[] = {
    { "begun", false, false, false, false, 2, NULL, 0, false, false },
    { "published", false, false, true, false, 1, "zone_full", 0, false, false },
    { "without a name", false, false, true, true, 1, NULL, 1, false, false },
    { "over", false, true, true, false, 1, NULL, 0, false, false },
    { "outdated", true, false, true, false, 1, "too_large", 0, false, false },
    { "outdated, no name", true, false, true, true, 1, NULL, 1, false, false },
    { "outdated, over", true, true, true, false, 1, "interrupted", 0, false,
      false },
    { "outdated, over, no name", true, true, true, true, 1, NULL, 1, true,
      true },
    { "outdated, named", true, true, false, false, 2, NULL, 0, false, false },
    { "outdated, over, no name, of one namespace", true, true, true, true, 1,
      NULL, 1, false, true },
};

#define REPAIR_EVICTIONS                                                      \
    (sizeof(repair_evictions) / sizeof(repair_evictions[0]))


/* Scope 5 is that of the slices, 4 that of another namespace's. */
static void
repair_scopes(zone_test_t *t, bool all)
{
    unsigned           scope;
    kube_scope_info_t  info;

    memset(&info, 0, sizeof(kube_scope_info_t));
    info.resource = KUBE_RESOURCE_ENDPOINTSLICES;

    for (scope = 4; scope <= 5; scope++) {
        info.ns = (scope == 4) ? KUBE_STR("other")
                  : all ? KUBE_STR_NULL : KUBE_STR("shop");
        assert_int_equal(kube_zone_scope_publish(t->writer, scope, &info),
                         KUBE_OK);
    }
}


static void
repair_evict(zone_test_t *t, size_t n)
{
    bool       changed;
    char       name[16];
    unsigned   i;
    uint32_t   slice, other, e;
    kube_rc_t  rc;

    repair_scopes(t, repair_evictions[n].all);
    slice = zone_test_find(t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web-1");
    other = zone_test_find(t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web-0");

    for (i = 0, rc = KUBE_OK;
         repair_evictions[n].no_names && rc == KUBE_OK;
         i++)
    {
        snprintf(name, sizeof(name), "n-%u", i);
        rc = zone_test_refuse(t, KUBE_RESOURCE_SERVICES, "shop", name, "1",
                              "x", &e);
    }

    if (repair_evictions[n].outdated) {
        kube_zone_outdate(t->writer, slice, KUBE_REASON_TOO_LARGE, REPAIR_NOW);
    }

    /* one of another scope, which is over */
    kube_zone_evict_begin(t->writer, other, 4);
    kube_zone_evict_end(t->writer);
    kube_zone_evict_begin(t->writer, slice, 5);

    if (repair_evictions[n].over) {
        kube_zone_evict_end(t->writer);
    }

    if (repair_evictions[n].published) {
        assert_int_equal(kube_zone_publish(t->writer, repair_now.service,
                                           &other, 1, &changed), KUBE_OK);
    }
}


/* Whether web-1 is a name, and why; NULL: it is none. */
static void
repair_is_named(zone_test_t *t, const char *why)
{
    uint32_t              entry;
    kube_record_id_t      id;
    const kube_record_t  *record;

    assert_int_equal(kube_zone_is_refused(&t->zone,
                                          KUBE_RESOURCE_ENDPOINTSLICES,
                                          KUBE_STR("shop"),
                                          KUBE_STR("web-1")), why != NULL);

    if (why != NULL) {
        entry = kube_zone_writer_find(t->writer, KUBE_RESOURCE_ENDPOINTSLICES,
                                      KUBE_STR("shop"), KUBE_STR("web-1"));
        record = kube_zone_published(t->writer, entry);
        assert_non_null(record);
        assert_int_equal(kube_record_id(record, record->size, &id), KUBE_OK);
        assert_true(kube_str_eq(id.reason, kube_str(why)));
    }
}


static void
test_recover_evicting(void **state)
{
    size_t             n;
    zone_test_t       *t;
    kube_snapshot_t    s;
    kube_takeover_t    takeover;

    (void) state;

    for (n = 0; n < REPAIR_EVICTIONS; n++) {
        repair_open();
        t = &repair_now.t;
        repair_evict(t, n);
        repair_image_take();
        repair_image_start(t);
        zone_test_acquire(t, REPAIR_NOW, &takeover);

        print_message("recover: an eviction, %s\n", repair_evictions[n].name);
        repair_counts(t);
        assert_false(takeover.distrust);
        assert_int_equal(zone_test_read(t, "shop", "web", &s), KUBE_OK);
        assert_int_equal(s.slices_n, repair_evictions[n].slices);
        repair_is_named(t, repair_evictions[n].refused);
        assert_int_equal(kube_word_get(&kube_zone_scope(&t->zone,
                                                        5)->uncounted),
                         repair_evictions[n].uncounted);
        assert_int_equal(kube_word_get(&kube_zone_scope(&t->zone,
                                                        4)->uncounted), 0);
        assert_int_equal(kube_word_get(&kube_zone_scope(&t->zone,
                                                        5)->interrupted),
                         repair_evictions[n].asks);
        assert_int_equal(kube_word_get(&kube_zone_scope(&t->zone,
                                                        4)->interrupted), 0);
        assert_int_equal(kube_head_get(&t->zone.image->evicting), 0);

        /* nor does the same writer count anything twice */
        kube_zone_writer_release(t->writer);
        zone_test_acquire(t, REPAIR_NOW, &takeover);
        repair_counts(t);
        repair_close();
    }
}


static void
repair_is_interrupted(void)
{
    zone_test_t        *t;
    kube_scope_info_t   info;

    t = &repair_now.t;
    kube_arena_reset(&t->arena);
    assert_int_equal(kube_zone_scope_read(&t->zone, 5, &t->arena, &info),
                     KUBE_OK);
    assert_true(info.interrupted);
}


/* A record that is the first to say so says it at once, the last to the end. */
static void
test_recover_interrupted(void **state)
{
    zone_test_t        *t;
    kube_scope_info_t   info;

    (void) state;
    repair_open();
    t = &repair_now.t;
    memset(&info, 0, sizeof(kube_scope_info_t));
    info.interrupted = true;
    repair_hook_set("raw_head", repair_is_interrupted);
    assert_int_equal(kube_zone_scope_publish(t->writer, 5, &info), KUBE_OK);
    info.interrupted = false;
    assert_int_equal(kube_zone_scope_publish(t->writer, 5, &info), KUBE_OK);
    assert_int_equal(repair_now.hits, 2);
    repair_hook_set(NULL, NULL);
    assert_int_equal(kube_zone_scope_read(&t->zone, 5, &t->arena, &info),
                     KUBE_OK);
    assert_false(info.interrupted);
    repair_close();
}


/* Who does not find what is there can tell that he has to look again. */
static void
repair_find(void)
{
    uint32_t            entry;
    const kube_zone_t  *zone;

    zone = &repair_now.t.zone;

    if (kube_zone_find(zone, KUBE_RESOURCE_SERVICES, KUBE_STR("shop"),
                       KUBE_STR("web"), &entry) != KUBE_OK)
    {
        assert_int_equal(kube_word_get(&zone->image->reuse) % 2, 1);
    }
}


/*
 * Who has not written there himself finds all entries that were taken, also
 * where the first behind the last one lost its hash, or its head.
 */
static void
recover_top_run(unsigned lost)
{
    uint32_t            top;
    zone_test_t        *t;
    kube_takeover_t     takeover;
    kube_zone_entry_t  *behind;

    repair_open();
    top = repair_now.t.writer->entries_top;
    kube_word_set(&repair_now.t.zone.image->entries_top, 2);
    behind = kube_zone_entry(&repair_now.t.zone, 3);

    if (lost == 1) {
        kube_half_set(&behind->hash, 0);

    } else if (lost == 2) {
        kube_word_set(&behind->head, 0);
    }

    repair_image_take();

    t = &repair_now.copy;
    assert_int_equal(t->writer->entries_top, 0);
    repair_image_start(t);
    zone_test_acquire(t, REPAIR_NOW, &takeover);

    assert_true(takeover.distrust);

    /* one in another's chain is not found, a Service names one without head */
    assert_int_equal(takeover.records, lost == 1 ? top - 1 : top);
    assert_int_equal(kube_zone_top(&t->zone), top);
    assert_int_equal(kube_zone_validate(t->mem, t->size), KUBE_OK);
    repair_close();
}


static void
test_recover_top(void **state)
{
    unsigned  lost;

    (void) state;

    for (lost = 0; lost < 3; lost++) {
        recover_top_run(lost);
    }
}


/* After damage all chains are made anew, and readers know of it. */
static void
test_recover_rebuild(void **state)
{
    zone_test_t      *t;
    kube_takeover_t   takeover;

    (void) state;
    repair_open();
    t = &repair_now.t;
    repair_damage_orphan(t);
    repair_image_take();
    repair_image_start(t);
    repair_hook_set("store", repair_find);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    repair_hook = NULL;

    assert_true(takeover.distrust);
    assert_true(repair_now.hits > t->zone.geometry.buckets_n);
    assert_int_equal(kube_word_get(&t->zone.image->reuse) % 2, 0);
    repair_close();
}


/* An object that is held twice, for its chain was cut and is whole again. */
static void
test_recover_twin(void **state)
{
    bool              same;
    uint32_t          first, second, found;
    zone_test_t      *t;
    kube_half_t      *bucket;
    kube_takeover_t   takeover;

    (void) state;
    repair_open();
    t = &repair_now.t;
    first = zone_test_find(t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "lone");
    bucket = kube_zone_bucket(&t->zone, t->writer->side[first].hash);
    found = kube_half_get(bucket);

    kube_half_set(bucket, 0);
    assert_int_equal(zone_test_stage(t, zone_test_slice("shop", "lone",
                                                        "nobody", 2, 2, 2),
                                     REPAIR_NOW, &second, &same), KUBE_OK);
    assert_int_not_equal(first, second);
    kube_zone_publish_orphan(t->writer, second);
    kube_half_set(&kube_zone_entry(&t->zone, second)->next, found);

    kube_zone_writer_release(t->writer);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    assert_int_equal(takeover.cut_off, 1);
    assert_true(takeover.distrust);
    assert_true(kube_zone_holds(t->writer, second));
    assert_false(kube_zone_holds(t->writer, first));
    assert_int_equal(kube_zone_validate(t->mem, t->size), KUBE_OK);
    repair_close();
}


static void
repair_image_take_odd(void)
{
    if (kube_word_get(&repair_now.t.zone.image->reuse) % 2 == 1) {
        repair_image_take();
    }
}


/* Who does not find a name while reuse is odd looks again: not for ever. */
static void
test_recover_reuse(void **state)
{
    uint32_t          entry;
    zone_test_t      *t;
    kube_takeover_t   takeover;

    (void) state;
    repair_open();
    t = &repair_now.copy;
    zone_test_remove(&repair_now.t, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                     "lone", REPAIR_NOW);
    repair_hook_set("entry_unlinked", repair_image_take_odd);
    assert_int_equal(zone_test_put(&repair_now.t, "shop", "new", 1, 1, 0, 0,
                                   REPAIR_NOW + KUBE_ZONE_QUARANTINE_MS),
                     KUBE_OK);
    repair_hook = NULL;

    repair_image_start(t);
    assert_int_equal(kube_word_get(&t->zone.image->reuse) % 2, 1);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    assert_int_equal(kube_word_get(&t->zone.image->reuse) % 2, 0);
    assert_false(takeover.distrust);
    assert_int_equal(kube_zone_find(&t->zone, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop"), KUBE_STR("new"),
                                    &entry), KUBE_NOT_FOUND);
    repair_close();
}


/* Whoever looks at a Service's revision alone sees that it has changed. */
static void
repair_change(zone_test_t *t, unsigned variant)
{
    uint64_t         before;
    kube_snapshot_t  s;

    assert_int_equal(zone_test_read(t, "shop", "web", &s), KUBE_OK);
    before = s.revision;
    assert_int_equal(zone_test_put(t, "shop", "web", variant, variant, 2, 3,
                                   REPAIR_NOW), KUBE_OK);
    assert_int_equal(zone_test_read(t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(zone_test_variant(&s), variant);
    assert_true(s.revision > before);
}


/*
 * A revision that no writer has given out, in a record or in the image: it is
 * not gone on from, for what comes after it was given out before.
 */
static void
test_recover_revision(void **state)
{
    bool              image, lost;
    unsigned          i, run;
    uint64_t          revision;
    zone_test_t      *t;
    kube_record_t    *api;
    kube_takeover_t   takeover;

    (void) state;

    for (run = 0; run < 4; run++) {
        image = (run % 2 == 1);
        revision = (run < 2) ? UINT64_MAX : KUBE_ZONE_REVISION_MAX;
        lost = (!image && run < 2);
        repair_open();
        t = &repair_now.t;
        api = repair_record(t, KUBE_RESOURCE_SERVICES, "api");

        if (image) {
            kube_word_set(&t->zone.image->revision, revision);

        } else {
            api->revision = revision;
        }

        for (i = 2; i < 5; i++) {
            repair_image_take();
            repair_image_start(t);
            zone_test_acquire(t, REPAIR_NOW, &takeover);
            assert_int_equal(takeover.distrust, lost);
            assert_int_equal(takeover.cut_off, lost && i == 2);
            repair_change(t, i);
            assert_int_equal(kube_zone_validate(t->mem, REPAIR_SIZE), KUBE_OK);
        }

        repair_close();
    }
}


static bool
repair_is_refused(const zone_test_t *t)
{
    return kube_zone_is_refused(&t->zone, KUBE_RESOURCE_ENDPOINTSLICES,
                                KUBE_STR("shop"), KUBE_STR("web-1"));
}


/* The third dies as well: the object is named, or known to be missing. */
static void
repair_die_of_poison(void)
{
    zone_test_t      *t;
    kube_takeover_t   takeover;

    t = &repair_now.copy;
    memcpy(t->mem, repair_now.t.mem, REPAIR_SIZE);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    assert_true(takeover.distrust || repair_is_refused(t));
    kube_zone_writer_release(t->writer);
}


/*
 * A record that two processes have died of becomes a name, and is not lost;
 * what was lost before is so still.
 */
static void
recover_poison_run(bool distrusted)
{
    unsigned          i;
    kube_str_t        ns, name, uid;
    kube_hand_t       what, hands[2];
    zone_test_t      *t;
    kube_death_t      death;
    kube_takeover_t   takeover;

    repair_open();
    t = &repair_now.t;
    memset(hands, 0, sizeof(hands));

    if (distrusted) {
        kube_zone_writer_distrust(t->writer);
    }

    ns = KUBE_STR("shop");
    name = KUBE_STR("web-1");
    uid = KUBE_STR_NULL;
    what = (kube_hand_t) { .now_ms = REPAIR_NOW,
                           .resource = KUBE_RESOURCE_ENDPOINTSLICES,
                           .blame = KUBE_BLAME_RECORD,
                           .ns = &ns, .name = &name, .uid = &uid };

    for (i = 0; i < 2; i++) {
        kube_hand_take(&hands[0], &what, KUBE_STAGE_WALK);
        kube_zone_poison_say(&t->zone, &hands[0], 11);
        assert_true(i == 1 || kube_zone_poison_take(&t->zone, REPAIR_NOW,
                                                    &death));
    }

    repair_image_take();
    repair_image_start(t);
    kube_zone_writer_hand(t->writer, &hands[0]);
    kube_zone_writer_hand(repair_now.copy.writer, &hands[1]);
    repair_hook_set("store", repair_die_of_poison);
    zone_test_acquire(t, REPAIR_NOW, &takeover);
    repair_hook = NULL;

    assert_true(takeover.blamed && takeover.death.refused);
    assert_int_equal(takeover.cut_off, 1);
    assert_true(repair_is_refused(t));
    assert_int_equal(takeover.distrust, distrusted);
    assert_int_equal(takeover.stores,
                     kube_word_get(&t->zone.image->stores));
    assert_true(repair_now.hits > 5);
    repair_counts(t);
    repair_close();
}


static void
test_recover_poison(void **state)
{
    (void) state;

    recover_poison_run(false);
    recover_poison_run(true);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_recover_heads),
        cmocka_unit_test(test_recover_bumps_first),
        cmocka_unit_test(test_recover_distrust),
        cmocka_unit_test(test_recover_evicting),
        cmocka_unit_test(test_recover_interrupted),
        cmocka_unit_test(test_recover_top),
        cmocka_unit_test(test_recover_rebuild),
        cmocka_unit_test(test_recover_twin),
        cmocka_unit_test(test_recover_reuse),
        cmocka_unit_test(test_recover_revision),
        cmocka_unit_test(test_recover_poison),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

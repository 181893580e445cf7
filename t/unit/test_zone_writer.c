/*
 * test_zone_writer - kube_zone_writer: staging, publishing, refusing, removing,
 * random operations against a model, memory running out.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include "zone_test.h"


#define WRITER_MODEL_KEYS   24
#define WRITER_MODEL_STEPS  6000


static void
writer_remove(zone_test_t *t, const char *key, size_t slices,
    uint64_t now)
{
    char    name[80];
    size_t  i;

    zone_test_remove(t, KUBE_RESOURCE_SERVICES, "shop", key, now);

    for (i = 0; i < slices; i++) {
        snprintf(name, sizeof(name), "%s-%zu", key, i);
        zone_test_remove(t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", name, now);
    }
}


static void
test_writer_stage_is_hidden(void **state)
{
    bool                  same, changed;
    uint32_t              e, slice;
    zone_test_t           t;
    kube_snapshot_t       s;
    const kube_record_t  *record;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    assert_int_equal(zone_test_stage(&t, zone_test_service("shop", "web", 1,
                                                           80),
                                     1000, &e, &same), KUBE_OK);
    assert_false(same);
    assert_int_equal(zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop",
                                    "web"), 0);
    assert_null(kube_zone_published(t.writer, e));
    assert_non_null(kube_zone_newest(t.writer, e));
    assert_int_equal(kube_zone_writer_find(t.writer, KUBE_RESOURCE_SERVICES,
                                           KUBE_STR("shop"),
                                           KUBE_STR("web")), e);

    assert_int_equal(kube_zone_publish(t.writer, e, NULL, 0, &changed),
                     KUBE_OK);
    assert_true(changed);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(s.slices_n, 0);

    /* a slice alone changes nothing until its Service is published */
    assert_int_equal(zone_test_stage(&t, zone_test_slice("shop", "web-0",
                                                         "web", 2, 80, 3),
                                     1000, &slice, &same), KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(s.slices_n, 0);
    assert_int_equal(kube_zone_publish(t.writer, e, &slice, 1,
                                       &changed), KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(s.slices_n, 1);
    assert_int_equal(s.slices[0].endpoints_n, 3);

    /* staging again replaces; going back to what is published drops it */
    assert_int_equal(zone_test_stage(&t, zone_test_slice("shop", "web-0",
                                                         "web", 3, 81, 3),
                                     1000, &slice, &same), KUBE_OK);
    assert_false(same);
    assert_int_equal(zone_test_stage(&t, zone_test_slice("shop", "web-0",
                                                         "web", 2, 80, 3),
                                     1000, &slice, &same), KUBE_OK);
    assert_true(same);
    record = kube_zone_newest(t.writer, slice);
    assert_memory_equal(record, kube_zone_published(t.writer, slice),
                        record->size);

    zone_test_close(&t);
}


static void
test_writer_revision_is_content(void **state)
{
    bool              same, changed;
    uint32_t          e, slices[2];
    uint64_t          revision, head;
    zone_test_t       t;
    kube_snapshot_t   s;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 80, 2, 3, 1000),
                     KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    e = s.entry;
    revision = s.revision;
    head = s.head;
    slices[0] = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                               "web-0");
    slices[1] = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                               "web-1");

    /* nothing at all: not even the head moves, in any order of slices */
    assert_int_equal(kube_zone_publish(t.writer, e, slices, 2,
                                       &changed), KUBE_OK);
    assert_false(changed);
    slices[0] ^= slices[1];
    slices[1] ^= slices[0];
    slices[0] ^= slices[1];
    assert_int_equal(kube_zone_publish(t.writer, e, slices, 2,
                                       &changed), KUBE_OK);
    assert_false(changed);
    assert_true(kube_zone_head(&t.zone, e) == head);

    /* a resourceVersion only: another head, the same revision */
    assert_int_equal(zone_test_stage(&t, zone_test_slice("shop", "web-0",
                                                         "web", 9, 80, 3),
                                     1000, &slices[0], &same), KUBE_OK);
    assert_true(same);
    slices[1] = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                               "web-1");
    assert_int_equal(kube_zone_publish(t.writer, e, slices, 2,
                                       &changed), KUBE_OK);
    assert_false(changed);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_true(s.revision == revision);
    assert_true(s.head != head);
    assert_true(kube_str_eq(s.slices[0].meta.rv, KUBE_STR("9")));

    /* one slice less */
    assert_int_equal(kube_zone_publish(t.writer, e, slices, 1,
                                       &changed), KUBE_OK);
    assert_true(changed);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_true(s.revision > revision);
    assert_int_equal(s.slices_n, 1);

    /* made again under the same name: it does not begin anew */
    revision = s.revision;
    kube_zone_remove(t.writer, e);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 80, 2, 3, 2000),
                     KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_true(s.revision > revision);

    zone_test_close(&t);
}


/* A slice whose label moves from one Service to another. */
static void
test_writer_slice_moves(void **state)
{
    bool               same, changed;
    uint32_t           a, b, slice;
    unsigned           i;
    zone_test_t        t;
    kube_snapshot_t    s;
    kube_takeover_t    takeover;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "a", 1, 1, 1, 3, 1000),
                     KUBE_OK);
    assert_int_equal(zone_test_put(&t, "shop", "b", 1, 2, 0, 3, 1000),
                     KUBE_OK);
    a = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "a");
    b = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "b");

    assert_int_equal(zone_test_stage(&t, zone_test_slice("shop", "a-0", "b",
                                                         2, 2, 3),
                                     1000, &slice, &same), KUBE_OK);
    assert_int_equal(kube_zone_publish(t.writer, a, &slice, 1,
                                       &changed), KUBE_INVALID);
    assert_int_equal(kube_zone_publish(t.writer, b, &slice, 1,
                                       &changed), KUBE_OK);

    /* a is as it was until it is published, too, whatever else is put */
    for (i = 0; i < 500; i++) {
        assert_int_equal(zone_test_put(&t, "shop", "c", 1 + i, i, 3, 30,
                                       1000), KUBE_OK);
    }

    writer_remove(&t, "c", 3, 1000);
    assert_int_equal(zone_test_read(&t, "shop", "a", &s), KUBE_OK);
    assert_int_equal(s.slices_n, 1);
    assert_int_equal(zone_test_variant(&s), 1);
    assert_int_equal(zone_test_read(&t, "shop", "b", &s), KUBE_OK);
    assert_int_equal(zone_test_variant(&s), 2);

    /* ... or somebody takes over */
    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 1000, &takeover);
    assert_int_equal(takeover.repaired, 1);
    assert_int_equal(takeover.cut_off, 0);
    assert_int_equal(zone_test_read(&t, "shop", "a", &s), KUBE_OK);
    assert_int_equal(s.slices_n, 0);

    kube_zone_remove(t.writer, a);
    kube_zone_remove(t.writer, b);
    kube_zone_remove(t.writer, slice);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.live_bytes, 0);
    assert_int_equal(u.entries_used, 0);
    zone_test_close(&t);
}


static void
test_writer_refuse(void **state)
{
    bool               same, changed;
    uint32_t           e, again;
    zone_test_t        t;
    kube_snapshot_t    s;
    kube_takeover_t    takeover;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 0, 0, 1000),
                     KUBE_OK);
    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                      "web", "2", "zone_full", &e), KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_writer_find(t.writer, KUBE_RESOURCE_SERVICES,
                                           KUBE_STR("shop"),
                                           KUBE_STR("web")), e);
    assert_int_equal(kube_zone_writer_next(t.writer, 0), e);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, 1);
    assert_int_equal(u.entries_used, 1);

    /* it survives a take-over, and may be fetched again */
    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 1000, &takeover);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, 1);

    /* a name has no good state */
    kube_zone_outdate(t.writer, e, KUBE_REASON_MALFORMED, 1);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, 1);

    assert_int_equal(zone_test_stage(&t, zone_test_service("shop", "web", 3,
                                                           3),
                                     1000, &again, &same), KUBE_OK);
    assert_int_equal(again, e);
    assert_false(same);
    assert_int_equal(kube_zone_publish(t.writer, e, NULL, 0, &changed),
                     KUBE_OK);
    assert_true(changed);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, 0);

    /* what is held is read as before, counted, and stays so */
    kube_zone_outdate(t.writer, e, KUBE_REASON_MALFORMED, 70);
    kube_zone_outdate(t.writer, e, KUBE_REASON_ZONE_FULL, 77);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, 1);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 1000, &takeover);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, 1);
    assert_int_equal(kube_record_outdated_since(
                         kube_zone_published(t.writer, e)), 77);
    kube_zone_remove(t.writer, e);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, 0);

    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "", "web",
                                      "2", "x", &e), KUBE_INVALID);
    zone_test_close(&t);
}


/* The ceilings of what is held, and of what one Service names. */
static void
test_writer_ceilings(void **state)
{
    bool          same, changed;
    char          name[16];
    size_t        k;
    uint32_t      e, slice, service;
    unsigned      i;
    zone_test_t   t;

    static uint32_t  slices[KUBE_SERVICE_SLICES_MAX + 1];

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 1, 3, 1000),
                     KUBE_OK);
    service = zone_test_find(&t, KUBE_RESOURCE_SERVICES, "shop", "web");
    slice = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", "web-0");

    for (k = 0; k < KUBE_SERVICE_SLICES_MAX + 1; k++) {
        slices[k] = slice;
    }

    assert_int_equal(kube_zone_publish(t.writer, service, slices,
                                       KUBE_SERVICE_SLICES_MAX + 1, &changed),
                     KUBE_INVALID);

    /* two are held */
    t.zone.geometry.objects_max = 6;

    for (i = 0; i < 6; i++) {
        snprintf(name, sizeof(name), "s-%u", i);
        assert_int_equal(zone_test_stage(&t, zone_test_slice("shop", name,
                                                             "x", 1, 1, 2),
                                         1000, &e, &same),
                         (i < 4) ? KUBE_OK : KUBE_FULL);
    }

    zone_test_close(&t);
}


static const char *
writer_name(char *name, int len, unsigned i)
{
    snprintf(name, KUBE_NAME_LEN_MAX + 1, "%0*u", len, i);

    return name;
}


/* Refuses n objects, whose names have len bytes; returns how many fitted. */
static unsigned
writer_names(zone_test_t *t, int len, unsigned n)
{
    char       name[KUBE_NAME_LEN_MAX + 1];
    uint32_t   e;
    unsigned   i;
    kube_rc_t  rc;

    for (i = 0; i < n; i++) {
        rc = zone_test_refuse(t, KUBE_RESOURCE_SERVICES, "shop",
                              writer_name(name, len, i), "1", "x", &e);

        if (rc != KUBE_OK) {
            assert_int_equal(rc, KUBE_FULL);
            break;
        }
    }

    return i;
}


/* Names have room of their own, by number and by bytes, and no more. */
static void
test_writer_names_ceilings(void **state)
{
    char               name[KUBE_NAME_LEN_MAX + 1];
    uint32_t           e;
    unsigned           n, max, size;
    zone_test_t        t;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    max = t.zone.geometry.entries_n - t.zone.geometry.objects_max;
    assert_int_equal(kube_zone_names_left(t.writer), max);

    assert_int_equal(writer_names(&t, 5, max + 1), max);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, max);
    assert_int_equal(kube_zone_names_left(t.writer), 0);

    /* one that is there may be refused for another reason */
    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                      writer_name(name, 5, 0), "2", "y", &e),
                     KUBE_OK);
    kube_zone_usage(&t.zone, &u);
    assert_int_equal(u.refused, max);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
    zone_test_close(&t);

    /* of long ones there are fewer; each may still be another */
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    n = writer_names(&t, 200, max);
    assert_int_equal(kube_zone_names_left(t.writer), 0);
    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                      writer_name(name, 200, 0), "2", "y",
                                      &e), KUBE_OK);
    size = kube_zone_published(t.writer, e)->size;
    assert_in_range(max * KUBE_ZONE_NAME_BYTES, n * size,
                    n * size + size - 1);
    zone_test_close(&t);
}


static void
test_writer_too_large(void **state)
{
    uint32_t        e;
    zone_test_t     t;
    kube_record_t  *record;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    record = malloc(8192);
    assert_non_null(record);
    memset(record, 0, 8192);
    record->size = 8192;
    assert_int_equal(kube_zone_stage(t.writer, record, 0, &e),
                     KUBE_TOO_LARGE);
    record->size = 128;
    assert_int_equal(kube_zone_stage(t.writer, record, 0, &e),
                     KUBE_INVALID);
    free(record);
    zone_test_close(&t);
}


/* What the zone should hold: a variant and a number of slices each. */
typedef struct {
    bool      there;
    unsigned  variant;
    size_t    slices;
} writer_model_t;


static void
writer_model_check(zone_test_t *t, const writer_model_t *model)
{
    char             name[32];
    unsigned         i;
    kube_snapshot_t  s;

    for (i = 0; i < WRITER_MODEL_KEYS; i++) {
        snprintf(name, sizeof(name), "key-%u", i);

        if (!model[i].there) {
            assert_int_equal(zone_test_read(t, "shop", name, &s),
                             KUBE_NOT_FOUND);
            continue;
        }

        assert_int_equal(zone_test_read(t, "shop", name, &s), KUBE_OK);
        assert_int_equal(s.slices_n, model[i].slices);
        assert_int_equal(zone_test_variant(&s), model[i].variant);
    }

    assert_int_equal(kube_zone_validate(t->mem, t->size), KUBE_OK);
}


static void
writer_model_step(zone_test_t *t, writer_model_t *model, kube_random_t *r,
    uint64_t now, unsigned step)
{
    char             name[32];
    size_t           slices, old;
    unsigned         i;
    kube_rc_t        rc;
    kube_takeover_t  takeover;

    i = (unsigned) (kube_random_next(r) % WRITER_MODEL_KEYS);
    snprintf(name, sizeof(name), "key-%u", i);

    switch (kube_random_next(r) % 8) {
    case 0:
        if (model[i].there) {
            writer_remove(t, name, model[i].slices, now);
            model[i].there = false;
        }

        return;

    case 1:
        if (step % 5 == 0) {
            kube_zone_writer_release(t->writer);
            zone_test_acquire(t, now, &takeover);
            assert_int_equal(takeover.cut_off, 0);
            assert_int_equal(takeover.repaired, 0);
        }

        return;

    default:
        break;
    }

    /* as many slices as before, or more: fewer would leave some behind */
    old = model[i].there ? model[i].slices : 0;
    slices = (size_t) kube_random_range(r, old, old + 1);
    slices = (slices > 4) ? 4 : slices;

    rc = zone_test_put(t, "shop", name, step, step % 60000, slices,
                       (size_t) kube_random_range(r, 0, 12), now);

    if (rc == KUBE_OK) {
        model[i] = (writer_model_t) { true, step % 60000, slices };
        return;
    }

    /* staged in part: what is published is as it was; forget the rest */
    assert_int_equal(rc, KUBE_FULL);
    kube_zone_writer_release(t->writer);
    zone_test_acquire(t, now, &takeover);
    assert_int_equal(takeover.cut_off, 0);
    assert_int_equal(takeover.repaired, 0);
}


static void
test_writer_model(void **state)
{
    uint64_t        now;
    unsigned        step, seed;
    zone_test_t     t;
    kube_random_t   r;
    writer_model_t  model[WRITER_MODEL_KEYS];

    (void) state;

    for (seed = 0; seed < 3; seed++) {
        zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
        memset(model, 0, sizeof(model));
        kube_random_init(&r, seed);
        now = 1000;

        for (step = 1; step <= WRITER_MODEL_STEPS; step++) {
            now += kube_random_range(&r, 0, 400);
            writer_model_step(&t, model, &r, now, step);

            if (step % 97 == 0) {
                writer_model_check(&t, model);
            }
        }

        writer_model_check(&t, model);
        zone_test_close(&t);
    }
}


static void
writer_oom_body(alloc_test_t *at, void *ctx)
{
    kube_zone_writer_t  *w;

    w = kube_zone_writer_create(&at->alloc, ctx);
    assert_true(w != NULL || at->failed);
    kube_zone_writer_destroy(w);
}


static void
test_writer_no_memory(void **state)
{
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    ALLOC_TEST_RUN(writer_oom_body, &t.zone);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_writer_stage_is_hidden),
        cmocka_unit_test(test_writer_revision_is_content),
        cmocka_unit_test(test_writer_slice_moves),
        cmocka_unit_test(test_writer_refuse),
        cmocka_unit_test(test_writer_ceilings),
        cmocka_unit_test(test_writer_names_ceilings),
        cmocka_unit_test(test_writer_too_large),
        cmocka_unit_test(test_writer_model),
        cmocka_unit_test(test_writer_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

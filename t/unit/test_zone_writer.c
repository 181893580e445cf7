/*
 * test_zone_writer - kube_zone_writer: the guard, staging, publishing, moves,
 * a full zone, and random operations against a model.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube_zone_private.h"
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
test_writer_guard(void **state)
{
    kube_zone_t           zone;
    zone_test_t           t;
    kube_takeover_t       takeover;
    kube_zone_writer_t   *other;
    kube_writer_info_t    info;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_true(kube_zone_writer_held(t.writer));
    kube_zone_writer_announce(t.writer, 42, 4711);

    assert_int_equal(kube_zone_attach(&zone, t.mem, t.size), KUBE_OK);
    other = kube_zone_writer_create(&t.at.alloc, &zone);
    assert_non_null(other);
    assert_int_equal(kube_zone_writer_acquire(other, 1000, &takeover),
                     KUBE_BUSY);
    assert_false(kube_zone_writer_held(other));

    kube_zone_writer_release(t.writer);
    kube_zone_writer_info(&zone, &info);
    assert_int_equal(info.writer_pid, 0);
    assert_int_equal(info.epoch, 1);
    assert_int_equal(info.takeovers, 0);

    assert_int_equal(kube_zone_writer_acquire(other, 1000, &takeover),
                     KUBE_OK);
    assert_false(takeover.crashed);
    assert_int_equal(takeover.epoch, 2);
    assert_int_equal(kube_zone_writer_acquire(t.writer, 1000, &takeover),
                     KUBE_BUSY);
    kube_zone_writer_info(&zone, &info);
    assert_int_equal(info.takeovers, 1);

    kube_zone_writer_destroy(other);
    zone_test_close(&t);
}


static void
test_writer_dead_owner(void **state)
{
    int               status;
    void             *mem;
    pid_t             pid;
    zone_test_t       t;
    kube_takeover_t   takeover;
    kube_snapshot_t   s;

    (void) state;
    mem = mmap(NULL, KUBE_ZONE_SIZE_MIN, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(mem != MAP_FAILED);
    zone_test_over(&t, mem, KUBE_ZONE_SIZE_MIN);
    kube_zone_writer_release(t.writer);

    pid = fork();
    assert_true(pid >= 0);

    if (pid == 0) {
        zone_test_acquire(&t, 1000, &takeover);
        (void) !zone_test_put(&t, "shop", "web", 1, 5, 2, 3, 1000);
        raise(SIGKILL);
    }

    assert_int_equal(waitpid(pid, &status, 0), pid);
    zone_test_acquire(&t, 1000, &takeover);
    assert_true(takeover.crashed);
    assert_int_equal(takeover.records, 3);
    assert_int_equal(takeover.cut_off, 0);
    assert_int_equal(takeover.repaired, 0);
    assert_int_equal(zone_test_read(&t, "shop", "web", &s), KUBE_OK);
    assert_int_equal(zone_test_variant(&s), 5);

    t.mem = NULL;
    zone_test_close(&t);
    munmap(mem, KUBE_ZONE_SIZE_MIN);
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
    assert_ptr_equal(record, kube_zone_published(t.writer, slice));

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

    assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "", "web",
                                      "2", "x", &e), KUBE_INVALID);
    zone_test_close(&t);
}


static void
test_writer_quarantine(void **state)
{
    char               name[32];
    uint32_t           e;
    unsigned           i, max;
    uint64_t           now;
    zone_test_t        t;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_zone_usage(&t.zone, &u);
    max = (unsigned) u.entries;
    now = 1000;
    kube_zone_writer_now(t.writer, now);

    /* every entry once: held and freed */
    for (i = 0; i < max; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                          name, "1", "x", &e), KUBE_OK);
        kube_zone_remove(t.writer, e);
        assert_true(kube_zone_head(&t.zone, e) == 0);
    }

    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 0, 0,
                                   now + KUBE_ZONE_QUARANTINE_MS - 1),
                     KUBE_FULL);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 0, 0,
                                   now + KUBE_ZONE_QUARANTINE_MS), KUBE_OK);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);

    /* nobody knows how long they were free: the time begins anew */
    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 90000, &(kube_takeover_t) { 0 });
    assert_int_equal(zone_test_put(&t, "shop", "api", 1, 1, 0, 0, 99999),
                     KUBE_FULL);
    assert_int_equal(zone_test_put(&t, "shop", "api", 1, 1, 0, 0, 100000),
                     KUBE_OK);
    zone_test_close(&t);
}


static void
test_writer_baseline(void **state)
{
    char               name[32];
    uint64_t           now;
    unsigned           round, i, n, first;
    zone_test_t        t;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, 128u << 10);
    first = 0;

    for (round = 0; round < 20; round++) {
        now = 1000 + round * 20000ull;

        for (n = 0; /* void */ ; n++) {
            snprintf(name, sizeof(name), "svc-%u-%u", round, n);

            if (zone_test_put(&t, "shop", name, 1, n, 1, 10, now)
                != KUBE_OK)
            {
                break;
            }
        }

        if (round == 0) {
            first = n;
        }

        assert_int_equal(n, first);
        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);

        for (i = kube_zone_writer_next(t.writer, 0); i != 0;
             i = kube_zone_writer_next(t.writer, i))
        {
            if (kube_zone_newest(t.writer, i)->kind == KUBE_RECORD_SERVICE) {
                kube_zone_remove(t.writer, i);
            }
        }

        for (i = kube_zone_writer_next(t.writer, 0); i != 0;
             i = kube_zone_writer_next(t.writer, i))
        {
            kube_zone_remove(t.writer, i);
        }

        kube_zone_usage(&t.zone, &u);
        assert_int_equal(u.live_bytes, 0);
        assert_int_equal(u.entries_used, 0);
    }

    assert_true(first > 20);
    zone_test_close(&t);
}


static unsigned
writer_fill(zone_test_t *t)
{
    char      name[32];
    unsigned  n;

    for (n = 0; /* void */ ; n++) {
        snprintf(name, sizeof(name), "svc-%u", n);

        if (zone_test_put(t, "shop", name, 1, n, 1, 10, 1000) != KUBE_OK) {
            return n;
        }
    }
}


/* Even what may use the reserve leaves a place to evacuate to. */
static void
writer_fill_reserve(zone_test_t *t)
{
    char               name[32];
    uint32_t           entries[200];
    unsigned           n;
    kube_rc_t          rc;
    kube_record_t     *record;
    kube_zone_usage_t  u;

    for (n = 0; n < 200; n++) {
        snprintf(name, sizeof(name), "more-%u", n);
        record = zone_test_slice("shop", name, "more", 1, n, 10);
        rc = kube_zone_stage(t->writer, record, KUBE_STAGE_USE_RESERVE,
                             &entries[n]);
        free(record);
        assert_true(t->writer->free_n >= 1);

        if (rc != KUBE_OK) {
            break;
        }
    }

    assert_in_range(n, 5, 199);
    kube_zone_usage(&t->zone, &u);
    assert_true(u.live_bytes > u.records_bytes / 10 * 8);

    while (n-- != 0) {
        kube_zone_remove(t->writer, entries[n]);
    }
}


/* What could not be is named, and there is room for that. */
static void
writer_refuse_many(zone_test_t *t, unsigned n)
{
    char      name[32];
    uint32_t  e;
    unsigned  i;

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "refused-%u", i);
        assert_int_equal(zone_test_refuse(t, KUBE_RESOURCE_ENDPOINTSLICES,
                                          "shop", name, "1", "zone_full", &e),
                         KUBE_OK);
    }
}


/* A zone that is full: nothing is harmed, updates go on, deletes help. */
static void
test_writer_full(void **state)
{
    char               name[32];
    uint32_t           e;
    unsigned           i, n, round;
    kube_record_t     *record;
    zone_test_t        t;
    kube_snapshot_t    s;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    n = writer_fill(&t);
    kube_zone_usage(&t.zone, &u);
    assert_true(u.failures > 0);
    assert_true(n > 30);
    assert_false(kube_zone_has_room(t.writer, 400));

    record = zone_test_slice("shop", "one-0", "one", 1, 1, 10);
    assert_int_equal(kube_zone_stage(t.writer, record, 0, &e), KUBE_FULL);
    assert_int_equal(kube_zone_stage(t.writer, record,
                                     KUBE_STAGE_USE_RESERVE, &e), KUBE_OK);
    kube_zone_remove(t.writer, e);
    free(record);
    writer_fill_reserve(&t);

    /* the same size fits where the old one was, again and again */
    for (round = 1; round < 40; round++) {
        for (i = 0; i < n; i++) {
            snprintf(name, sizeof(name), "svc-%u", i);
            assert_int_equal(zone_test_put(&t, "shop", name, round, i + round,
                                           1, 10, 1000), KUBE_OK);
        }
    }

    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);

    for (i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_read(&t, "shop", name, &s), KUBE_OK);
        assert_int_equal(s.slices_n, 1);
        assert_int_equal(zone_test_variant(&s), i + 39);
    }

    writer_refuse_many(&t, 20);

    for (i = 0; i < 15; i++) {
        snprintf(name, sizeof(name), "svc-%u", i);
        zone_test_remove(&t, KUBE_RESOURCE_SERVICES, "shop", name, 1000);
        snprintf(name, sizeof(name), "svc-%u-0", i);
        zone_test_remove(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop", name,
                         1000);
    }

    assert_true(kube_zone_has_room(t.writer, 400));
    assert_int_equal(zone_test_put(&t, "shop", "new", 1, 5, 1, 10, 1000),
                     KUBE_OK);
    assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
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


/* The places of a Service's slices may change only under another head. */
static void
writer_check_moves(const zone_test_t *t, uint32_t service, uint64_t *head,
    kube_ref_t refs[100], unsigned *moves)
{
    bool                  moved;
    const kube_record_t  *record;

    record = kube_zone_published(t->writer, service);
    assert_int_equal(record->refs_n, 100);
    moved = (memcmp(refs, kube_record_refs(record), 100 * sizeof(kube_ref_t))
             != 0);

    if (moved) {
        assert_true(kube_zone_head(&t->zone, service) != *head);
        memcpy(refs, kube_record_refs(record), 100 * sizeof(kube_ref_t));
        (*moves)++;
    }

    *head = kube_zone_head(&t->zone, service);

    /* there is always a place to evacuate to */
    assert_true(t->writer->free_n >= 1);
}


static uint32_t
writer_put_big(zone_test_t *t)
{
    bool      changed, same;
    char      name[32];
    uint32_t  service, slices[100];
    unsigned  i;

    assert_int_equal(zone_test_stage(t, zone_test_service("shop", "big", 1,
                                                          77),
                                     1000, &service, &same), KUBE_OK);

    for (i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "big-%u", i);
        assert_int_equal(zone_test_stage(t, zone_test_slice("shop", name,
                                                            "big", 1, 77, 20),
                                         1000, &slices[i], &same), KUBE_OK);

        /* neighbours that will not stay */
        snprintf(name, sizeof(name), "svc-%u", i);
        assert_int_equal(zone_test_put(t, "shop", name, 1, i, 1, 20, 1000),
                         KUBE_OK);
    }

    assert_int_equal(kube_zone_publish(t->writer, service, slices, 100,
                                       &changed), KUBE_OK);

    return service;
}


/* Slices of one Service move with the churn around them, at 80 % fill. */
static void
test_writer_evacuation(void **state)
{
    bool               changed, same;
    char               name[32];
    uint32_t           service, late;
    uint64_t           revision, head;
    unsigned           round, moves, staged, staged_moves;
    kube_ref_t         refs[100];
    zone_test_t        t;
    kube_snapshot_t    s;
    kube_zone_usage_t  u;

    (void) state;
    zone_test_open(&t, 256u << 10);
    /* what is staged moves, too */
    assert_int_equal(zone_test_stage(&t, zone_test_service("shop", "late", 1,
                                                           55),
                                     1000, &late, &same), KUBE_OK);
    assert_int_equal(zone_test_put(&t, "shop", "svc-0", 1, 1, 1, 80, 1000),
                     KUBE_OK);
    service = writer_put_big(&t);
    assert_int_equal(zone_test_read(&t, "shop", "big", &s), KUBE_OK);
    revision = s.revision;

    memset(refs, 0, sizeof(refs));
    head = 0;
    moves = 0;
    staged = t.writer->side[late].staged;
    staged_moves = 0;

    for (round = 0; round < 3000; round++) {
        snprintf(name, sizeof(name), "svc-%u", round % 120);
        (void) !zone_test_put(&t, "shop", name, round + 1, round, 1,
                              50 + round % 40, 1000);
        writer_check_moves(&t, service, &head, refs, &moves);
        staged_moves += (t.writer->side[late].staged != staged);
        staged = t.writer->side[late].staged;

        if (round % 100 == 0) {
            assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
            assert_int_equal(zone_test_read(&t, "shop", "big", &s), KUBE_OK);
            assert_int_equal(s.slices_n, 100);
            assert_int_equal(zone_test_variant(&s), 77);
            assert_true(s.revision == revision);
        }
    }

    assert_true(moves > 10);
    assert_true(staged_moves > 0);
    kube_zone_usage(&t.zone, &u);
    assert_true(u.live_bytes > u.records_bytes / 10 * 8);

    assert_int_equal(kube_zone_publish(t.writer, late, NULL, 0,
                                       &changed), KUBE_OK);
    assert_int_equal(zone_test_read(&t, "shop", "late", &s), KUBE_OK);
    assert_int_equal(zone_test_variant(&s), 55);
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
        cmocka_unit_test(test_writer_guard),
        cmocka_unit_test(test_writer_dead_owner),
        cmocka_unit_test(test_writer_stage_is_hidden),
        cmocka_unit_test(test_writer_revision_is_content),
        cmocka_unit_test(test_writer_slice_moves),
        cmocka_unit_test(test_writer_refuse),
        cmocka_unit_test(test_writer_quarantine),
        cmocka_unit_test(test_writer_baseline),
        cmocka_unit_test(test_writer_full),
        cmocka_unit_test(test_writer_too_large),
        cmocka_unit_test(test_writer_evacuation),
        cmocka_unit_test(test_writer_model),
        cmocka_unit_test(test_writer_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

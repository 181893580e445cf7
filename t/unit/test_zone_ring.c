/*
 * test_zone_ring - the event ring: what a subscriber reads is each event, in
 * order and whole, or that it was late; whoever dies in the middle, whoever
 * pauses, whatever bytes are there.
 *
 * The objects of most tests exist in their events alone: an event's name says
 * which one it is.  The last ones go through indexer and publisher, where an
 * event must not come before what it tells is readable.  Appending allocates
 * nothing, so there is no run without memory.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_FAILPOINTS   1
#define KUBE_ZONE_PAUSES  1
#define _GNU_SOURCE       1

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "indexer_test.h"
#include "kube_zone_ring.c"
#include "step_bed.h"
#include "zone_test.h"


#define RING_ZONE     (512u << 10)      /* the smallest with a ring */
#define RING_READERS  4
#define RING_STEPS    20000
#define RING_FLIPS    20000


static struct {
    void              (*store)(void);       /* after each of the writer's */
    void              (*load)(void);        /* before each of a reader's */

    zone_test_t         t;
    unsigned            loads;
    unsigned            pause_at;
    unsigned            deaths;
    unsigned            next;               /* event that is appended */

    it_t                it;
    kube_zone_cursor_t  cursor;
    unsigned            events;
    char                seen[1024];
} ring_now;


void
kube_failpoint_hit(const char *name)
{
    void  (*store)(void);

    if (ring_now.store != NULL && strcmp(name, "store") == 0) {
        store = ring_now.store;
        ring_now.store = NULL;
        store();
        ring_now.store = store;
    }
}


void
kube_zone_pause_hit(const void *address)
{
    void  (*load)(void);

    (void) address;

    if (ring_now.load != NULL) {
        load = ring_now.load;
        ring_now.load = NULL;
        load();
        ring_now.load = load;
    }
}


/* Lengths differ from event to event, up to the longest. */
static void
ring_event(kube_zone_event_t *event, unsigned n)
{
    char              rv[16], old_rv[16], name[KUBE_NAME_LEN_MAX + 1];
    size_t            len;
    kube_record_id_t  id;

    snprintf(rv, sizeof(rv), "%u", n);
    snprintf(old_rv, sizeof(old_rv), "%u", n / 2);
    len = 12 + n % (KUBE_NAME_LEN_MAX - 11);
    memset(name, 'a' + (int) (n % 26), len);
    name[len] = '\0';
    snprintf(name, sizeof(name), "%010u-", n);
    name[11] = (char) ('a' + n % 26);

    memset(&id, 0, sizeof(kube_record_id_t));
    id.resource = (kube_resource_t) (n % KUBE_RESOURCES_ROUTED);
    id.meta.ns = (kube_str_t) { name, n % KUBE_NAMESPACE_LEN_MAX % len };
    id.meta.name = (kube_str_t) { name, len };
    id.meta.rv = zone_test_str(rv);

    kube_zone_event_set(event, (kube_zone_event_kind_t) (n % 4), &id,
                        zone_test_str(old_rv));
}


static bool
ring_is_event(const kube_zone_event_t *event, unsigned n)
{
    kube_zone_event_t  expected;

    ring_event(&expected, n);

    return event->kind == expected.kind
           && event->resource == expected.resource
           && kube_str_eq(event->ns, expected.ns)
           && kube_str_eq(event->name, expected.name)
           && kube_str_eq(event->rv, expected.rv)
           && kube_str_eq(event->old_rv, expected.old_rv);
}


/* Its sequence is n, too, in a ring that began with 1. */
static void
ring_append(kube_zone_writer_t *w, unsigned n)
{
    kube_zone_event_t  event;

    ring_event(&event, n);
    kube_zone_ring_append(w, &event);
}


static void
test_ring_sizes(void **state)
{
    size_t       i;
    void        *mem;
    kube_zone_t  zone;

    static const struct {
        size_t    size;
        uint32_t  events;
    } rows[] = {
        { KUBE_ZONE_SIZE_MIN, 0 },
        { 256u << 10, 0 },
        { RING_ZONE, 39 },
        { 1u << 20, 78 },
        { 32u << 20, 2520 },
        { 128u << 20, 10082 },
        { 256u << 20, 10240 }
    };

    (void) state;

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mem = calloc(1, rows[i].size);
        assert_non_null(mem);
        assert_int_equal(kube_zone_create(&zone, mem, rows[i].size,
                                          zone_test_seed), KUBE_OK);
        assert_int_equal(kube_zone_ring_size(&zone), rows[i].events);
        assert_true(zone.geometry.segments - zone.geometry.events
                    <= rows[i].size / 30);
        free(mem);
    }
}


/* Nobody waits for events that never come. */
static void
test_ring_none(void **state)
{
    zone_test_t         t;
    kube_zone_event_t   event;
    kube_zone_cursor_t  cursor;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    ring_append(t.writer, 1);
    kube_zone_ring_newest(&t.zone, &cursor);
    assert_int_equal(cursor.sequence, 0);
    assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event),
                     KUBE_NOT_FOUND);
    cursor.sequence = 4711;
    assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event),
                     KUBE_CHANGED);
    zone_test_close(&t);
}


/* Each event in turn, for all lengths; one that is a ring behind is told. */
static void
test_ring_order(void **state)
{
    unsigned            i, k, n;
    zone_test_t         t;
    kube_zone_event_t   event;
    kube_zone_cursor_t  cursor, late, ahead;

    (void) state;
    zone_test_open(&t, RING_ZONE);
    n = kube_zone_ring_size(&t.zone);
    kube_zone_ring_newest(&t.zone, &cursor);
    assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event),
                     KUBE_NOT_FOUND);

    for (i = 1; i <= 600; i++) {
        late = cursor;
        ring_append(t.writer, i);
        assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event),
                         KUBE_OK);
        assert_true(ring_is_event(&event, i));
        assert_int_equal(cursor.sequence, i);
        assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event),
                         KUBE_NOT_FOUND);
    }

    /* a ring behind, and one more */
    for (k = 1; k < n; k++) {
        ring_append(t.writer, 600 + k);
    }

    ahead = cursor;

    for (k = 0, cursor = late; k < n; k++) {
        assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event),
                         KUBE_OK);
        assert_true(ring_is_event(&event, 600 + k));
    }

    ring_append(t.writer, 600 + n);
    assert_int_equal(kube_zone_ring_next(&t.zone, &late, &event),
                     KUBE_CHANGED);
    assert_int_equal(late.sequence, 600 + n);
    assert_int_equal(kube_zone_ring_next(&t.zone, &late, &event),
                     KUBE_NOT_FOUND);
    assert_int_equal(kube_zone_ring_next(&t.zone, &ahead, &event), KUBE_OK);

    zone_test_close(&t);
}


/* What clients send as the last event that they have seen. */
static void
test_ring_made_up_cursors(void **state)
{
    size_t              i;
    kube_rc_t           rc;
    zone_test_t         t;
    kube_zone_event_t   event;
    kube_zone_cursor_t  cursor, real;

    static const struct {
        bool       epoch;        /* the right one */
        uint64_t   sequence;
        kube_rc_t  rc;
    } rows[] = {
        { true, 100, KUBE_NOT_FOUND },
        { true, 99, KUBE_OK },
        { true, 100 - 39, KUBE_OK },
        { true, 100 - 40, KUBE_CHANGED },
        { true, 0, KUBE_CHANGED },
        { true, 101, KUBE_CHANGED },
        { true, 1ull << 63, KUBE_CHANGED },
        { true, UINT64_MAX, KUBE_CHANGED },
        { false, 100, KUBE_CHANGED },
        { false, 99, KUBE_CHANGED },
    };

    (void) state;
    zone_test_open(&t, RING_ZONE);

    /* a slot that nobody has written is no event */
    kube_zone_ring_newest(&t.zone, &cursor);
    ring_append(t.writer, 1);
    cursor.sequence = UINT64_MAX;
    assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event),
                     KUBE_CHANGED);
    assert_int_equal(cursor.sequence, 1);

    for (i = 2; i <= 100; i++) {
        ring_append(t.writer, (unsigned) i);
    }

    kube_zone_ring_newest(&t.zone, &real);

    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cursor.epoch = real.epoch ^ (rows[i].epoch ? 0 : 1);
        cursor.sequence = rows[i].sequence;
        rc = kube_zone_ring_next(&t.zone, &cursor, &event);
        assert_int_equal(rc, rows[i].rc);
        assert_int_equal(cursor.epoch, real.epoch);

        if (rc == KUBE_CHANGED) {
            assert_int_equal(cursor.sequence, 100);
        }
    }

    zone_test_close(&t);
}


/* A numbering is one zone's alone. */
static void
test_ring_epochs(void **state)
{
    void                *mem;
    kube_zone_t          other;
    zone_test_t          t;
    kube_takeover_t      takeover;
    kube_zone_event_t    event;
    kube_zone_cursor_t   cursor, there;

    (void) state;
    zone_test_open(&t, RING_ZONE);
    mem = zone_test_memory(RING_ZONE);
    assert_int_equal(kube_zone_create(&other, mem, RING_ZONE,
                                      (kube_seed_t) { 1, 2 }), KUBE_OK);
    ring_append(t.writer, 1);
    kube_zone_ring_newest(&t.zone, &cursor);
    kube_zone_ring_newest(&other, &there);
    assert_true(cursor.epoch != there.epoch);
    free(mem);

    /* a clean hand-over goes on with it */
    kube_zone_writer_release(t.writer);
    zone_test_acquire(&t, 1000, &takeover);
    ring_append(t.writer, 2);
    assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event), KUBE_OK);
    assert_true(ring_is_event(&event, 2));

    /* somebody has changed it to what no writer reaches: it begins anew */
    kube_zone_writer_release(t.writer);
    kube_word_set(&t.zone.image->events, UINT64_MAX - 1);
    zone_test_acquire(&t, 1000, &takeover);
    assert_int_equal(kube_word_get(&t.zone.image->events), 0);
    ring_append(t.writer, 3);
    ring_append(t.writer, 4);
    assert_int_equal(kube_zone_ring_next(&t.zone, &cursor, &event),
                     KUBE_CHANGED);
    assert_int_equal(cursor.sequence, 2);

    zone_test_close(&t);
}


/* The writer dies now; its successor goes on, and a reader sees all of it. */
static void
ring_die(void)
{
    void                *mem;
    unsigned             i, n;
    kube_rc_t            rc;
    kube_zone_t          zone;
    kube_takeover_t      takeover;
    kube_zone_event_t    event;
    kube_zone_cursor_t   cursor;
    kube_zone_writer_t  *w;

    ring_now.deaths++;
    mem = zone_test_memory(RING_ZONE);
    memcpy(mem, ring_now.t.mem, RING_ZONE);
    assert_int_equal(kube_zone_attach(&zone, mem, RING_ZONE), KUBE_OK);
    w = kube_zone_writer_create(&ring_now.t.at.alloc, &zone);
    assert_non_null(w);
    n = kube_zone_ring_size(&zone);

    /* he had read all but the last half of a ring */
    kube_zone_ring_newest(&zone, &cursor);
    cursor.sequence -= n / 2;

    assert_int_equal(kube_zone_writer_acquire(w, 1000, &takeover), KUBE_OK);
    assert_true(takeover.crashed);
    ring_append(w, 9000);

    for (i = (unsigned) cursor.sequence + 1; /* void */; i++) {
        rc = kube_zone_ring_next(&zone, &cursor, &event);
        assert_int_equal(rc, KUBE_OK);

        if (event.kind == KUBE_ZONE_EVENT_RESYNC) {
            break;
        }

        assert_true(ring_is_event(&event, i));
    }

    assert_true(i == ring_now.next || i == ring_now.next + 1);
    assert_int_equal(kube_zone_ring_next(&zone, &cursor, &event), KUBE_OK);
    assert_true(ring_is_event(&event, 9000));
    assert_int_equal(kube_zone_ring_next(&zone, &cursor, &event),
                     KUBE_NOT_FOUND);

    kube_zone_writer_destroy(w);
    free(mem);
}


/* After each store of an append, also of one that goes round. */
static void
test_ring_writer_dies(void **state)
{
    unsigned  i;

    (void) state;
    zone_test_open(&ring_now.t, RING_ZONE);
    ring_now.deaths = 0;

    for (i = 1; i <= 90; i++) {
        ring_now.next = i;
        ring_now.store = (i == 40 || i == 41 || i == 78) ? ring_die : NULL;
        ring_append(ring_now.t.writer, i);
        ring_now.store = NULL;
    }

    print_message("ring: %u deaths\n", ring_now.deaths);
    assert_true(ring_now.deaths > 3 * 4);
    zone_test_close(&ring_now.t);
}


/* What no object can have is cut, and runs into nothing else. */
static void
test_ring_too_long(void **state)
{
    char               text[2 * KUBE_NAME_LEN_MAX];
    kube_record_id_t   id;
    kube_zone_event_t  event;

    (void) state;
    memset(text, 'a', sizeof(text));
    memset(&id, 0, sizeof(kube_record_id_t));
    id.meta.ns = (kube_str_t) { text, KUBE_NAMESPACE_LEN_MAX + 1 };
    id.meta.name = (kube_str_t) { text, KUBE_NAME_LEN_MAX + 1 };
    id.meta.rv = (kube_str_t) { text, KUBE_RV_LEN_MAX + 1 };

    kube_zone_event_set(&event, KUBE_ZONE_EVENT_UPDATE, &id, id.meta.name);

    assert_int_equal(event.ns.len, KUBE_NAMESPACE_LEN_MAX);
    assert_int_equal(event.name.len, KUBE_NAME_LEN_MAX);
    assert_int_equal(event.rv.len, KUBE_RV_LEN_MAX);
    assert_int_equal(event.old_rv.len, KUBE_RV_LEN_MAX);
    assert_ptr_equal(event.old_rv.data + event.old_rv.len,
                     event.text + sizeof(event.text));
}


static void
ring_append_next(void)
{
    ring_append(ring_now.t.writer, ring_now.next);
}


/* After each instruction of an append into a slot that was written before. */
static void
test_ring_at_every_instruction(void **state)
{
    uint64_t  steps;

    (void) state;
    zone_test_open(&ring_now.t, RING_ZONE);
    ring_now.deaths = 0;

    for (ring_now.next = 1; ring_now.next <= 60; ring_now.next++) {
        ring_append_next();
    }

    steps = step_through(ring_now.t.mem, RING_ZONE, ring_append_next,
                         ring_die);

    print_message("ring: %u deaths in %llu instructions\n", ring_now.deaths,
                  (unsigned long long) steps);
    assert_true(ring_now.deaths >= 4);
    zone_test_close(&ring_now.t);
}


/*
 * After a store of the writer: who is one event behind reads it, and who is a
 * ring behind reads the oldest one whole, or is told.
 */
static void
ring_look_around(void)
{
    unsigned            n;
    kube_rc_t           rc;
    kube_zone_event_t   event;
    kube_zone_cursor_t  cursor, newest;

    n = kube_zone_ring_size(&ring_now.t.zone);
    kube_zone_ring_newest(&ring_now.t.zone, &newest);
    cursor = newest;
    cursor.sequence--;
    assert_int_equal(kube_zone_ring_next(&ring_now.t.zone, &cursor, &event),
                     KUBE_OK);
    assert_true(ring_is_event(&event, (unsigned) newest.sequence));

    cursor = newest;
    cursor.sequence -= n;
    rc = kube_zone_ring_next(&ring_now.t.zone, &cursor, &event);
    assert_true(rc == KUBE_OK || rc == KUBE_CHANGED);

    if (rc == KUBE_OK) {
        assert_true(ring_is_event(&event, (unsigned) cursor.sequence));
    }

    ring_now.events += (rc == KUBE_OK);
    ring_now.loads++;
}


static void
test_ring_after_each_store(void **state)
{
    unsigned  i;

    (void) state;
    zone_test_open(&ring_now.t, RING_ZONE);
    ring_now.events = ring_now.loads = 0;

    for (i = 1; i <= 200; i++) {
        ring_now.store = (i > 50) ? ring_look_around : NULL;
        ring_append(ring_now.t.writer, i);
        ring_now.store = NULL;
    }

    print_message("ring: looked %u times, %u were not late\n", ring_now.loads,
                  ring_now.events);
    assert_true(ring_now.loads > 1000 && ring_now.events >= 150);
    zone_test_close(&ring_now.t);
}


/* The writer goes on while a reader pauses: for a ring, or more, or less. */
static void
ring_overtake(void)
{
    unsigned  n, end;

    if (++ring_now.loads != ring_now.pause_at) {
        return;
    }

    n = kube_zone_ring_size(&ring_now.t.zone);
    end = ring_now.next + n - 1 + ring_now.loads % 3;

    while (ring_now.next < end) {
        ring_append(ring_now.t.writer, ++ring_now.next);
    }
}


static void
test_ring_reader_pauses(void **state)
{
    unsigned            i, missed, read;
    kube_rc_t           rc;
    kube_zone_event_t   event;
    kube_zone_cursor_t  cursor;

    (void) state;
    zone_test_open(&ring_now.t, RING_ZONE);
    ring_now.next = 0;
    missed = read = 0;

    for (i = 1; i < 400; i++) {
        kube_zone_ring_newest(&ring_now.t.zone, &cursor);
        ring_append(ring_now.t.writer, ++ring_now.next);

        ring_now.loads = 0;
        ring_now.pause_at = 1 + i % 56;
        ring_now.load = ring_overtake;
        rc = kube_zone_ring_next(&ring_now.t.zone, &cursor, &event);
        ring_now.load = NULL;

        if (rc == KUBE_OK) {
            assert_true(ring_is_event(&event, (unsigned) cursor.sequence));
            read++;

        } else {
            assert_int_equal(rc, KUBE_CHANGED);
            missed++;
        }
    }

    print_message("ring: paused %u times, %u read, %u were late\n", i - 1,
                  read, missed);
    assert_true(read > 50 && missed > 50);
    zone_test_close(&ring_now.t);
}


/* Any bytes: a reader gets an event within the limits, or is told. */
static void
test_ring_any_bytes(void **state)
{
    char                *bytes;
    size_t               i, size;
    unsigned             k, n;
    kube_rc_t            rc;
    zone_test_t          t;
    kube_random_t        random;
    kube_takeover_t      takeover;
    kube_zone_event_t    event;
    kube_zone_cursor_t   cursor;

    (void) state;
    zone_test_open(&t, RING_ZONE);
    kube_random_init(&random, 7);
    n = kube_zone_ring_size(&t.zone);
    bytes = kube_zone_at(&t.zone, t.zone.geometry.events);
    size = n * sizeof(kube_zone_slot_t);
    kube_zone_ring_newest(&t.zone, &cursor);

    for (i = 0; i < RING_FLIPS; i++) {
        ring_append(t.writer, (unsigned) i);
        bytes[kube_random_range(&random, 0, size - 1)] ^=
                                (char) kube_random_range(&random, 1, 255);

        if (i % 50 == 0) {
            kube_word_set(&t.zone.image->events,
                          kube_random_range(&random, 0, UINT64_MAX));
        }

        if (i % 1000 == 0) {
            kube_word_add(&t.zone.image->numbering, 1);
            kube_zone_writer_release(t.writer);
            zone_test_acquire(&t, 1000, &takeover);
        }

        for (k = 0; k <= n; k++) {
            rc = kube_zone_ring_next(&t.zone, &cursor, &event);

            if (rc != KUBE_OK) {
                break;
            }

            assert_true(event.kind < KUBE_ZONE_EVENTS);
            assert_true(event.resource < KUBE_RESOURCES_ROUTED);
            assert_true(event.ns.len <= KUBE_NAMESPACE_LEN_MAX
                        && event.name.len <= KUBE_NAME_LEN_MAX
                        && event.rv.len <= KUBE_RV_LEN_MAX
                        && event.old_rv.len <= KUBE_RV_LEN_MAX);
        }

        assert_true(k <= n);

        if (i % 7 == 0) {
            cursor.sequence -= n;
        }
    }

    zone_test_close(&t);
}


typedef struct {
    zone_test_t  *t;
    atomic_uint  *stop;
    atomic_uint  *ready;
    unsigned      read;
    unsigned      late;
    unsigned      wrong;
} ring_reader_t;


static void *
ring_follow(void *arg)
{
    bool                stop;
    uint64_t            before;
    kube_rc_t           rc;
    ring_reader_t      *r = arg;
    kube_zone_event_t   event;
    kube_zone_cursor_t  cursor;

    kube_zone_ring_newest(&r->t->zone, &cursor);
    atomic_fetch_add(r->ready, 1);

    do {
        stop = atomic_load(r->stop) != 0;
        before = cursor.sequence;
        rc = kube_zone_ring_next(&r->t->zone, &cursor, &event);

        if (rc == KUBE_OK) {
            r->read++;
            r->wrong += (cursor.sequence != before + 1
                         || !ring_is_event(&event,
                                           (unsigned) cursor.sequence));

        } else if (rc == KUBE_CHANGED) {
            r->late++;
            r->wrong += (cursor.sequence <= before);

        } else {
            sched_yield();
        }

    } while (!stop || rc != KUBE_NOT_FOUND);

    r->wrong += (cursor.sequence != RING_STEPS);

    return NULL;
}


static void
test_ring_threads(void **state)
{
    size_t         k;
    unsigned       i, read, late;
    pthread_t      tid[RING_READERS];
    atomic_uint    stop, ready;
    zone_test_t    t;
    ring_reader_t  readers[RING_READERS];

    (void) state;
    zone_test_open(&t, RING_ZONE);
    memset(readers, 0, sizeof(readers));
    atomic_store(&stop, 0);
    atomic_store(&ready, 0);

    for (k = 0; k < RING_READERS; k++) {
        readers[k] = (ring_reader_t) {
            .t = &t, .stop = &stop, .ready = &ready
        };
        assert_int_equal(pthread_create(&tid[k], NULL, ring_follow,
                                        &readers[k]), 0);
    }

    while (atomic_load(&ready) < RING_READERS) {
        sched_yield();
    }

    for (i = 1; i <= RING_STEPS; i++) {
        ring_append(t.writer, i);

        if (i % 30 == 0) {
            sched_yield();
        }
    }

    atomic_store(&stop, 1);
    read = late = 0;

    for (k = 0; k < RING_READERS; k++) {
        assert_int_equal(pthread_join(tid[k], NULL), 0);
        assert_int_equal(readers[k].wrong, 0);
        read += readers[k].read;
        late += readers[k].late;
    }

    print_message("ring: %u events, %u read by %u readers, who were late "
                  "%u times\n", RING_STEPS, read, RING_READERS, late);
    assert_true(read > 100);
    zone_test_close(&t);
}


/* As a subscriber who looks after each store: what he is told he can read. */
static void
ring_look(void)
{
    bool                  there;
    size_t                len;
    uint32_t              entry;
    kube_arena_t          arena;
    kube_record_id_t      id;
    kube_zone_event_t     event;
    const kube_record_t  *record;

    static const char *const  kinds[] = {
        [KUBE_ZONE_EVENT_ADD] = "add",
        [KUBE_ZONE_EVENT_UPDATE] = "update",
        [KUBE_ZONE_EVENT_DELETE] = "delete",
        [KUBE_ZONE_EVENT_REFUSE] = "refuse",
        [KUBE_ZONE_EVENT_RESYNC] = "resync"
    };

    while (kube_zone_ring_next(&ring_now.it.zone, &ring_now.cursor, &event)
           == KUBE_OK)
    {
        there = kube_zone_find(&ring_now.it.zone, event.resource, event.ns,
                               event.name, &entry) == KUBE_OK;

        if (there) {
            kube_arena_init(&arena, &ring_now.it.at.alloc, 1u << 20);
            there = kube_zone_load(&ring_now.it.zone, entry, &arena, &record)
                    == KUBE_OK
                    && record->kind != KUBE_RECORD_REFUSED
                    && kube_record_id(record, record->size, &id) == KUBE_OK
                    && kube_str_eq(id.meta.name, event.name)
                    && kube_str_eq(id.meta.rv, event.rv);
            kube_arena_done(&arena);
        }

        assert_int_equal(there, event.kind == KUBE_ZONE_EVENT_ADD
                                || event.kind == KUBE_ZONE_EVENT_UPDATE);

        len = strlen(ring_now.seen);
        snprintf(ring_now.seen + len, sizeof(ring_now.seen) - len,
                 "%s%s %.*s %.*s>%.*s", len == 0 ? "" : ", ",
                 kinds[event.kind], (int) event.name.len, event.name.data,
                 (int) event.old_rv.len, event.old_rv.data,
                 (int) event.rv.len, event.rv.data);
        ring_now.events++;
    }
}


#define RING_SEES(expected)                                                   \
    do {                                                                      \
        ring_now.seen[0] = '\0';                                              \
        (void) it_publish(&ring_now.it);                                      \
        assert_string_equal(ring_now.seen, expected);                         \
    } while (0)


static void
test_ring_of_a_publisher(void **state)
{
    it_object_t  web, a, b;

    (void) state;
    it_init(&ring_now.it, RING_ZONE);
    kube_zone_ring_newest(&ring_now.it.zone, &ring_now.cursor);
    ring_now.seen[0] = '\0';
    ring_now.store = ring_look;

    /* nobody can read a slice before its Service */
    web = it_service(&ring_now.it, "shop", "web");
    a = it_slice(&ring_now.it, "shop", "web-a", "web");
    b = it_slice(&ring_now.it, "shop", "web-b", "web");
    IT_UPDATE(&ring_now.it, &web);
    IT_UPDATE(&ring_now.it, &a);
    assert_string_equal(ring_now.seen, "");
    RING_SEES("add web >1, add web-a >2");

    IT_UPDATE(&ring_now.it, &b);
    it_change(&ring_now.it, &a);
    RING_SEES("add web-b >3, update web-a 2>4");

    it_change(&ring_now.it, &web);
    RING_SEES("update web 1>5");

    /* a version alone is no change of what is held */
    it_stamp(&ring_now.it, &a);
    IT_UPDATE(&ring_now.it, &a);
    RING_SEES("");

    ring_now.seen[0] = '\0';
    it_delete(&ring_now.it, &a);
    (void) it_publish(&ring_now.it);
    assert_string_equal(ring_now.seen, "delete web-a >6");

    ring_now.seen[0] = '\0';
    it_delete(&ring_now.it, &web);
    (void) it_publish(&ring_now.it);
    assert_string_equal(ring_now.seen, "delete web >5");

    ring_now.store = NULL;
    it_done(&ring_now.it);
}


/* A clean hand-over says nothing, for nothing was lost. */
static void
test_ring_hand_over(void **state)
{
    it_object_t         web;
    kube_zone_event_t   event;

    (void) state;
    it_init(&ring_now.it, RING_ZONE);
    web = it_service(&ring_now.it, "shop", "web");
    IT_UPDATE(&ring_now.it, &web);
    (void) it_publish(&ring_now.it);
    kube_zone_ring_newest(&ring_now.it.zone, &ring_now.cursor);
    it_takeover(&ring_now.it);
    assert_int_equal(kube_zone_ring_next(&ring_now.it.zone, &ring_now.cursor,
                                         &event), KUBE_NOT_FOUND);
    it_done(&ring_now.it);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_ring_sizes),
        cmocka_unit_test(test_ring_none),
        cmocka_unit_test(test_ring_order),
        cmocka_unit_test(test_ring_made_up_cursors),
        cmocka_unit_test(test_ring_epochs),
        cmocka_unit_test(test_ring_too_long),
        cmocka_unit_test(test_ring_writer_dies),
        cmocka_unit_test(test_ring_at_every_instruction),
        cmocka_unit_test(test_ring_after_each_store),
        cmocka_unit_test(test_ring_reader_pauses),
        cmocka_unit_test(test_ring_any_bytes),
        cmocka_unit_test(test_ring_threads),
        cmocka_unit_test(test_ring_of_a_publisher),
        cmocka_unit_test(test_ring_hand_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

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
 * KUBE_PROOF=1: also after each instruction of those cases that
 * test_zone_crash.c does not have.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_FAILPOINTS  1
#define _GNU_SOURCE      1

#include <stdlib.h>

#include "kube_zone_guard.c"
#include "kube_zone_reader.c"
#include "kube_zone_recover.c"
#include "kube_zone_scope.c"
#include "kube_zone_store.c"
#include "kube_zone_table.c"
#include "kube_zone_writer.c"
#include "step_bed.h"
#include "zone_cases.h"


#define KILL_STATES  24
#define KILL_PAUSES  4
#define KILL_RECORD  128      /* words of a Service's record */

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
    case_name_t   id;
    unsigned      states_n;
    char          states[KILL_STATES][CASE_TEXT];
    uint64_t      head;          /* as it was read last */
    unsigned      seen;          /* what readers of the living have seen */
    unsigned      pauses_n;
    kill_pause_t  pauses[KILL_PAUSES];
} kill_service_t;

typedef struct {
    kube_scope_sum_t  sums[2];
    unsigned          refused[2];
    char              why[32];       /* of the last slice refused */
} kill_end_t;

static struct {
    const char      *name;
    bool             evicts;
    bool             all;
    uint64_t         visible;         /* of what is not records, at a death */
    void           (*hook)(void);
    it_t             copies[2];
    kube_arena_t     arena;
    alloc_test_t     at;

    kill_service_t   services[CASE_NAMES];
    kill_end_t       end;

    unsigned         stores;
    unsigned         deaths;          /* of the first writer */
    unsigned         takeovers;
    bool             moved;           /* a slice, by the first writer */
    unsigned         paused;          /* readers who went on, and saw that */

    /* of the copy that is read now */
    it_t            *it;
    unsigned         level;
    unsigned         seen[2][CASE_NAMES];
    uint64_t         signature;
} kill_now;


static void  kill_take_over(const it_t *dead, const unsigned *seen,
    unsigned level);


void
kube_failpoint_hit(const char *name)
{
    void  (*hook)(void);

    kill_now.moved = kill_now.moved || strcmp(name, "move_service_head") == 0;

    /* what it does stores itself */
    if (kill_now.hook != NULL && strcmp(name, "store") == 0) {
        hook = kill_now.hook;
        kill_now.hook = NULL;
        hook();
        kill_now.hook = hook;
    }
}


static uint32_t
kill_find(const it_t *it, const kill_service_t *service)
{
    uint32_t  entry;

    if (kube_zone_find(&it->zone, KUBE_RESOURCE_SERVICES,
                       kube_str(service->id.ns), kube_str(service->id.name),
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
    snprintf(text, CASE_TEXT, "-");

    if (entry != 0) {
        kube_arena_reset(&kill_now.arena);
        assert_int_equal(kube_zone_read(&it->zone, entry,
                                        kube_str(service->id.ns),
                                        kube_str(service->id.name),
                                        &kill_now.arena, &s), KUBE_OK);
        case_text(&s, text);
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
                kill_now.name, kill_now.stores, service->id.ns,
                service->id.name, text, service->states[seen]);

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
    char             text[CASE_TEXT];
    kill_service_t  *service;

    for (i = 0; i < case_bed.names_n; i++) {
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


/* A reader goes on with the slices of a record that it had copied. */
static void
kill_resume(const it_t *it, const kill_service_t *service,
    const kill_pause_t *pause)
{
    char                  text[CASE_TEXT];
    kube_rc_t             rc;
    kube_object_t         object;
    kube_snapshot_t       s;
    reader_load_t         load;
    kube_zone_bundle_t    bundle;
    const kube_record_t  *record;

    kube_arena_reset(&kill_now.arena);
    memset(&s, 0, sizeof(s));
    reader_load_init(&load, &kill_now.arena, &kill_now.arena);
    record = (const kube_record_t *) (const void *) pause->record;

    rc = reader_load_slices(&it->zone, record, &load, &bundle);

    if (kube_word_get(&kube_zone_entry(&it->zone, pause->entry)->head)
        != pause->head)
    {
        return;
    }

    kill_now.paused++;

    if (rc != KUBE_OK || reader_bundle_check(&bundle) != KUBE_OK) {
        print_error("%s: death after store %u: %s/%s: a paused reader finds "
                    "its slices gone under an unchanged head\n",
                    kill_now.name, kill_now.stores, service->id.ns,
                    service->id.name);
        fail();
    }

    assert_int_equal(kube_record_decode(&kill_now.arena, bundle.service,
                                        bundle.service->size, &object),
                     KUBE_OK);
    s.service = object.u.service;
    assert_int_equal(reader_decode_slices(&kill_now.arena, &bundle, &s),
                     KUBE_OK);
    case_text(&s, text);
    (void) kill_place(service, text, pause->seen);
}


static void
kill_resume_all(const it_t *it)
{
    unsigned               i, k;
    const kill_service_t  *service;

    for (i = 0; i < case_bed.names_n; i++) {
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

    for (i = 0; i < case_bed.names_n; i++) {
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
kill_end(const it_t *it, kill_end_t *end)
{
    memset(end, 0, sizeof(kill_end_t));
    end->sums[0] = it_sum(it, IT_SERVICES);
    end->sums[1] = it_sum(it, IT_SLICES);
    end->refused[0] = it_refused(it, KUBE_RESOURCE_SERVICES, NULL, 0);
    end->refused[1] = it_refused(it, KUBE_RESOURCE_ENDPOINTSLICES, end->why,
                                 sizeof(end->why));
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
    char             text[CASE_TEXT];
    kill_end_t       end;
    kill_service_t  *service;

    for (i = 0; i < case_bed.names_n; i++) {
        service = &kill_now.services[i];

        if (!kill_now.evicts || strcmp(service->id.ns, "shop") == 0) {
            kill_read(it, service, text);
            assert_string_equal(text,
                                service->states[service->states_n - 1]);
        }
    }

    kill_end(it, &end);

    /* a death in the middle does not take the reason away */
    assert_string_equal(end.why, kill_now.end.why);

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
    memcpy(it->mem, dead->mem, CASE_SIZE);
    memcpy(kill_now.seen[level], seen, sizeof(kill_now.seen[level]));
    kill_now.it = it;
    kill_now.level = level;
    kill_now.signature = 0;
    kill_now.takeovers++;
    kill_now.deaths += (level == 0);

    kill_now.hook = kill_on_copy_store;
    case_start(it);
    kill_now.hook = NULL;

    assert_true(it->takeover.crashed);
    assert_false(it->takeover.distrust);
    assert_int_equal(it->takeover.cut_off, 0);
    assert_int_equal(kube_zone_validate(it->mem, it->size), KUBE_OK);
    case_overwrite(it);
    kill_look(it, kill_now.seen[level], true);
    kill_resume_all(it);

    /* what it makes of it by itself, and what the watch then says */
    kill_now.signature = 0;
    kill_now.hook = kill_on_copy_store;
    (void) it_publish(it);
    case_run(it, 0, case_bed.events_n);
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
    unsigned  i, seen[CASE_NAMES];
    uint64_t  visible;

    kill_now.stores++;
    visible = kube_hash64((kube_seed_t) { 1, 2 }, case_bed.live.mem,
                          case_bed.live.zone.geometry.segments);

    for (i = 0; i < CASE_NAMES; i++) {
        seen[i] = kill_now.services[i].seen;
    }

    kill_look(&case_bed.live, seen, kill_now.stores % 8 == 0);

    for (i = 0; i < CASE_NAMES; i++) {
        kill_now.services[i].seen = seen[i];
    }

    named = kill_pause(&case_bed.live);

    if (named
        || visible != kill_now.visible
        || kill_now.stores % KILL_STRIDE == 0
        || kill_now.all)
    {
        kill_now.visible = visible;
        kill_take_over(&case_bed.live, seen, 0);
    }
}


/* The hook of the first run, in which nobody dies. */
static void
kill_record(void)
{
    unsigned         i;
    char             text[CASE_TEXT];
    kill_service_t  *service;

    for (i = 0; i < case_bed.names_n; i++) {
        service = &kill_now.services[i];
        kill_read(&case_bed.live, service, text);

        if (service->states_n == 0
            || strcmp(service->states[service->states_n - 1], text) != 0)
        {
            assert_true(service->states_n < KILL_STATES);
            snprintf(service->states[service->states_n++], CASE_TEXT, "%s",
                     text);
        }
    }
}


static void
kill_run(void)
{
    case_run(&case_bed.live, 0, case_bed.events_n);
}


/* Runs case n to its end, and goes back to where it began. */
static void
kill_open(size_t n)
{
    unsigned  i;

    memset(&kill_now, 0, sizeof(kill_now));
    kill_now.name = cases[n].name;
    kill_now.evicts = cases[n].evicts;
    kill_now.all = (getenv("KUBE_CRASH_ALL") != NULL);
    alloc_test_init(&kill_now.at);
    kube_arena_init(&kill_now.arena, &kill_now.at.alloc, 16u << 20);

    case_open(&kill_now.copies[0]);
    case_open(&kill_now.copies[1]);
    case_prepare(n);

    for (i = 0; i < case_bed.names_n; i++) {
        kill_now.services[i].id = case_bed.names[i];
    }

    kill_record();
    kill_now.moved = false;
    kill_now.hook = kill_record;
    kill_run();
    kill_now.hook = NULL;
    assert_true(kill_now.moved || !cases[n].moves);
    kill_end(&case_bed.live, &kill_now.end);

    case_rewind();
}


static void
kill_close(const char *what)
{
    unsigned  i;

    print_message("kill: %s: %u %s, %u take-overs, %u paused readers\n",
                  kill_now.name, kill_now.stores, what, kill_now.takeovers,
                  kill_now.paused);

    for (i = 0; i < case_bed.names_n; i++) {
        if (kill_now.services[i].states_n > 1) {
            break;
        }
    }

    assert_true(i < case_bed.names_n);

    case_done();
    free(kill_now.copies[0].mem);
    free(kill_now.copies[1].mem);
    kube_arena_done(&kill_now.arena);
}


static void
test_kill_after_every_store(void **state)
{
    size_t  n;

    (void) state;

    for (n = 0; n < CASES_N; n++) {
        kill_open(n);

        kill_now.hook = kill_on_store;
        kill_run();
        kill_now.hook = NULL;

        assert_true(kill_now.stores > 8);
        assert_true(kill_now.takeovers > 8);
        kill_close("stores");
    }
}


static void
test_kill_at_every_instruction(void **state)
{
    size_t    n;
    uint64_t  steps;

    (void) state;

    if (getenv("KUBE_PROOF") == NULL) {
        skip();
    }

    for (n = 0; n < CASES_N; n++) {

        if (!cases[n].stepped) {
            continue;
        }

        kill_open(n);
        steps = step_through(case_bed.live.mem, CASE_SIZE, kill_run,
                             kill_on_store);

        print_message("kill: %s: %llu instructions\n", kill_now.name,
                      (unsigned long long) steps);
        assert_true(kill_now.stores > 8);
        kill_close("images");
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_kill_after_every_store),
        cmocka_unit_test(test_kill_at_every_instruction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

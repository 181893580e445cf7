/*
 * test_zone_paused - a reader who pauses before any load of the zone while the
 * writer goes on: what he gets is a state that was, and none that is older
 * than what he had seen.
 *
 * Each case is what events of the API server do to the zone, through indexer
 * and publisher.  It runs once with readers who look after each store, which
 * gives the states that every object was in, in order.  Then each reader is
 * run once for every load that he makes: before this one the writer does all
 * that is left of the case, or it does that and takes freed entries for other
 * objects, or it dies after one of its stores and a successor takes over.  All
 * room that holds no live record is overwritten then.
 *
 * One thread: the writer runs in the hook before the load (kube_zone_pause.h),
 * so nothing here happens by chance.  What the order of loads and stores
 * means on a machine that is free to change it is t/model's.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_FAILPOINTS   1
#define KUBE_ZONE_PAUSES  1
#define _GNU_SOURCE       1

#include <stdlib.h>

#include "kube_zone_guard.c"
#include "kube_zone_reader.c"
#include "kube_zone_recover.c"
#include "kube_zone_scope.c"
#include "kube_zone_store.c"
#include "kube_zone_table.c"
#include "kube_zone_writer.c"
#include "zone_cases.h"
#include "zone_test.h"


#define PAUSED_STATES  24
#define PAUSED_IMAGES  800
#define PAUSED_NAMES   5        /* that are read: the first ones */

/*
 * A reader pauses before each of his first loads that are not of a record, and
 * before every so many of all others; before each with KUBE_PROOF=1.
 */
#define PAUSED_EACH    40
#define PAUSED_STRIDE  7


typedef struct {
    const char  *name;

    /* what he finds of the name; "-": nothing */
    void       (*read)(const it_t *it, const case_name_t *n, char *text);
    unsigned     stride;
} paused_reader_t;

typedef struct {
    unsigned  states_n;
    char      states[PAUSED_STATES][CASE_TEXT];
} paused_states_t;

/* What the writer does while the reader pauses. */
typedef enum {
    PAUSED_FINISH,
    PAUSED_REUSE,
    PAUSED_CRASH,
    PAUSED_ENDS
} paused_end_t;

static const char *const  paused_ends[PAUSED_ENDS] = {
    "finish", "reuse", "crash"
};

static struct {
    const char             *name;
    bool                    all;
    kube_arena_t            arena;
    alloc_test_t            at;
    void                   *crashed;       /* the image after a store */
    void                  (*hook)(void);   /* at a failpoint */

    /* the pause */
    const kube_zone_t      *zone;
    void                  (*begin)(void);  /* as the reader finds it */
    void                  (*write)(void);
    bool                    reading;
    unsigned                loads;
    unsigned                pause_at;
    bool                    structural;    /* it is not within a record */
    paused_end_t            end;
    unsigned                first;         /* event */
    unsigned                steps;         /* where the writer may die */
    unsigned                crash_at;
    bool                    dead;
    bool                    moved;
    unsigned                pauses;
    unsigned                crashes;
} paused_now;


static uint32_t
paused_find(const it_t *it, kube_resource_t resource, const char *ns,
    const char *name)
{
    uint32_t  entry;

    if (kube_zone_find(&it->zone, resource, kube_str(ns), kube_str(name),
                       &entry) != KUBE_OK)
    {
        return 0;
    }

    assert_int_not_equal(entry, 0);

    return entry;
}


/* Both it and its slices. */
static void
paused_service(const it_t *it, const case_name_t *n, char *text)
{
    uint32_t         entry;
    kube_rc_t        rc;
    kube_snapshot_t  s;

    entry = paused_find(it, KUBE_RESOURCE_SERVICES, n->ns, n->name);

    if (entry == 0) {
        return;
    }

    rc = kube_zone_read(&it->zone, entry, kube_str(n->ns),
                        kube_str(n->name), &paused_now.arena, &s);

    if (rc == KUBE_OK) {
        case_text(&s, text);

    } else if (rc != KUBE_NOT_FOUND) {
        snprintf(text, CASE_TEXT, "error %d", (int) rc);
    }
}


/* The first slice of a Service as it is by itself. */
static void
paused_slice(const it_t *it, const case_name_t *n, char *text)
{
    char                  name[40];
    uint32_t              entry;
    kube_rc_t             rc;
    kube_record_id_t      id;
    const kube_record_t  *record;

    snprintf(name, sizeof(name), "%s-1", n->name);
    entry = paused_find(it, KUBE_RESOURCE_ENDPOINTSLICES, n->ns, name);

    if (entry == 0) {
        return;
    }

    rc = kube_zone_load(&it->zone, entry, &paused_now.arena, &record);

    if (rc == KUBE_NOT_FOUND) {
        return;
    }

    if (rc != KUBE_OK
        || kube_record_id(record, record->size, &id) != KUBE_OK)
    {
        snprintf(text, CASE_TEXT, "error %d", (int) rc);

    } else if (record->kind == KUBE_RECORD_SLICE
               && kube_str_eq(id.meta.name, kube_str(name)))
    {
        snprintf(text, CASE_TEXT, "%.*s %.*s",
                 (int) id.meta.rv.len, id.meta.rv.data,
                 (int) id.service.len, id.service.data);
    }
}


static void
paused_is_refused(const it_t *it, const case_name_t *n, char *text)
{
    if (kube_zone_is_refused(&it->zone, KUBE_RESOURCE_SERVICES,
                             kube_str(n->ns), kube_str(n->name)))
    {
        snprintf(text, CASE_TEXT, "refused");
    }
}


/* The name among all of a walk: of Services, or of what is refused. */
static void
paused_walk(const it_t *it, const case_name_t *n, bool refused, char *text)
{
    uint32_t              cursor, entry;
    kube_rc_t             rc;
    kube_record_id_t      id;
    const kube_record_t  *record;

    cursor = 0;

    for ( ;; ) {
        rc = refused
             ? kube_zone_next_refused(&it->zone, &cursor, &paused_now.arena,
                                      &record)
             : kube_zone_next(&it->zone, KUBE_RECORD_SERVICE, &cursor,
                              &paused_now.arena, &record, &entry);

        if (rc != KUBE_OK) {
            assert_int_equal(rc, KUBE_NOT_FOUND);
            return;
        }

        if (kube_record_id(record, record->size, &id) == KUBE_OK
            && id.resource == KUBE_RESOURCE_SERVICES
            && kube_str_eq(id.meta.ns, kube_str(n->ns))
            && kube_str_eq(id.meta.name, kube_str(n->name)))
        {
            snprintf(text, CASE_TEXT, "%.*s", (int) id.meta.rv.len,
                     id.meta.rv.data);
        }
    }
}


static void
paused_services(const it_t *it, const case_name_t *n, char *text)
{
    paused_walk(it, n, false, text);
}


static void
paused_refused(const it_t *it, const case_name_t *n, char *text)
{
    paused_walk(it, n, true, text);
}


static const paused_reader_t  paused_readers[] = {
    { "service", paused_service, PAUSED_STRIDE },
    { "slice", paused_slice, PAUSED_STRIDE },
    { "is refused", paused_is_refused, PAUSED_STRIDE },
    { "services", paused_services, 20 * PAUSED_STRIDE },
    { "refused", paused_refused, 20 * PAUSED_STRIDE },
};

#define PAUSED_READERS  (sizeof(paused_readers) / sizeof(paused_readers[0]))

static paused_states_t  paused_states[PAUSED_READERS][PAUSED_NAMES];


static void
paused_read(size_t reader, size_t name, char *text)
{
    kube_arena_reset(&paused_now.arena);
    snprintf(text, CASE_TEXT, "-");
    paused_readers[reader].read(&case_bed.live, &case_bed.names[name], text);
}


static size_t
paused_names(void)
{
    return (case_bed.names_n < PAUSED_NAMES) ? case_bed.names_n
                                             : PAUSED_NAMES;
}


/* The hook of the first run: readers look after each store. */
static void
paused_record(void)
{
    char              text[CASE_TEXT];
    size_t            r, n;
    paused_states_t  *s;

    for (r = 0; r < PAUSED_READERS; r++) {
        for (n = 0; n < paused_names(); n++) {
            s = &paused_states[r][n];
            paused_read(r, n, text);

            if (s->states_n == 0
                || strcmp(s->states[s->states_n - 1], text) != 0)
            {
                assert_true(s->states_n < PAUSED_STATES);
                snprintf(s->states[s->states_n++], CASE_TEXT, "%s", text);
            }
        }
    }
}


/* The place of a state, from that of the last one seen on. */
static unsigned
paused_place(size_t reader, size_t name, const char *text, unsigned seen)
{
    unsigned                i;
    const paused_states_t  *s;

    s = &paused_states[reader][name];

    for (i = seen; i < s->states_n; i++) {
        if (strcmp(s->states[i], text) == 0) {
            return i;
        }
    }

    print_error("%s, %s from event %u on, death after step %u, %s %s/%s "
                "paused before load %u: \"%s\" after \"%s\"\n",
                paused_now.name, paused_ends[paused_now.end],
                paused_now.first, paused_now.crash_at,
                paused_readers[reader].name, case_bed.names[name].ns,
                case_bed.names[name].name, paused_now.pause_at, text,
                s->states[seen]);

    for (i = 0; i < s->states_n; i++) {
        print_error("  state %u: %s\n", i, s->states[i]);
    }

    fail();

    return 0;
}


/* Ordinarily a writer dies between the steps of the protocol alone. */
void
kube_failpoint_hit(const char *name)
{
    void  (*hook)(void);

    hook = paused_now.hook;

    if (hook != NULL) {
        paused_now.hook = NULL;
        paused_now.moved = paused_now.moved
                           || strcmp(name, "move_service_head") == 0;
        paused_now.steps += (paused_now.all || strcmp(name, "store") != 0);
        hook();
        paused_now.hook = hook;
    }
}


static void
paused_crash(void)
{
    if (paused_now.steps == paused_now.crash_at) {
        memcpy(paused_now.crashed, case_bed.live.mem, CASE_SIZE);
        paused_now.crash_at = 0;
        paused_now.dead = true;
    }
}


/* The entries of what was deleted go to others. */
static void
paused_reuse(it_t *it)
{
    unsigned     i;
    it_object_t  o;

    it->now_ms += 2 * KUBE_ZONE_QUARANTINE_MS;
    it->writer->unused = 0;

    for (i = 0; i < 3; i++) {
        o = it_service(it, "shop", (i == 0) ? "y" : (i == 1) ? "z" : "zz");
        (void) !it_apply(it, KUBE_DELTA_UPDATED, &o);
        o = it_slice(it, "shop", (i == 0) ? "y-1" : (i == 1) ? "z-1" : "zz-1",
                     o.name);
        (void) !it_apply(it, KUBE_DELTA_UPDATED, &o);
    }

    (void) it_publish(it);
}


static void
paused_begin(void)
{
    case_bed.live.now_ms = 1000;
    case_rewind();
    case_run(&case_bed.live, 0, paused_now.first);
}


static void
paused_write(void)
{
    it_t      *it;
    unsigned   crash_at;

    it = &case_bed.live;
    crash_at = paused_now.crash_at;
    paused_now.dead = false;
    paused_now.steps = 0;
    paused_now.hook = (paused_now.end == PAUSED_CRASH) ? paused_crash : NULL;
    case_run(it, paused_now.first, case_bed.events_n);
    paused_now.hook = NULL;
    paused_now.crash_at = crash_at;

    if (paused_now.end == PAUSED_REUSE) {
        paused_reuse(it);
    }

    if (paused_now.end == PAUSED_CRASH) {
        assert_true(paused_now.dead);
        it_stop(it);
        memcpy(it->mem, paused_now.crashed, CASE_SIZE);
        case_start(it);
        assert_true(it->takeover.crashed);
    }

    case_overwrite(it);
}


void
kube_zone_pause_hit(const void *address)
{
    if (!paused_now.reading || ++paused_now.loads != paused_now.pause_at) {
        return;
    }

    paused_now.structural = ((const char *) address
                             < (const char *) kube_zone_at(paused_now.zone,
                                      paused_now.zone->geometry.segments));
    paused_now.reading = false;
    paused_now.pauses++;
    paused_now.write();
    paused_now.reading = true;
}


/* One reader, one pause; false: there are not so many loads. */
static bool
paused_once(size_t reader, size_t name)
{
    char      text[CASE_TEXT], after[CASE_TEXT];
    it_t     *it;
    unsigned  seen, place;

    it = &case_bed.live;
    paused_now.begin();
    paused_read(reader, name, text);
    seen = paused_place(reader, name, text, 0);

    paused_now.loads = 0;
    paused_now.reading = true;
    paused_read(reader, name, text);
    paused_now.reading = false;
    place = paused_place(reader, name, text, seen);

    if (paused_now.loads < paused_now.pause_at) {
        assert_int_equal(place, seen);
        return false;
    }

    paused_read(reader, name, after);
    (void) paused_place(reader, name, after, place);
    assert_true(kube_word_get(&it->zone.image->corrupt) == 0);

    /* who has loaded nothing yet has seen nothing */
    if (paused_now.pause_at == 1) {
        assert_string_equal(text, after);
    }

    return true;
}


static void
paused_loads(size_t reader, size_t name, unsigned stride)
{
    paused_now.pause_at = 1;

    while (paused_once(reader, name)) {
        paused_now.pause_at += (paused_now.all
                                || (paused_now.structural
                                    && paused_now.pause_at < PAUSED_EACH))
                               ? 1 : stride;
    }
}


/* The run in which nobody pauses. */
static void
paused_record_all(void)
{
    it_t  *it;

    it = &case_bed.live;
    memset(paused_states, 0, sizeof(paused_states));
    it->now_ms = 1000;
    case_rewind();

    paused_record();
    paused_now.hook = paused_record;
    case_run(it, 0, paused_now.first);
    paused_now.steps = 0;
    paused_now.hook = paused_record;
    case_run(it, paused_now.first, case_bed.events_n);
    paused_now.hook = NULL;
}


/* Ordinarily of what changes, and of one that does not. */
static void
paused_ends_all(size_t reader, size_t name, unsigned steps)
{
    unsigned  stride;

    stride = paused_readers[reader].stride;

    if (!paused_now.all
        && paused_states[reader][name].states_n == 1
        && (name != 0 || reader != 0))
    {
        return;
    }

    paused_now.crash_at = 0;
    paused_now.end = PAUSED_FINISH;
    paused_loads(reader, name, stride);
    paused_now.end = PAUSED_REUSE;
    paused_loads(reader, name, stride);

    /* what a take-over may do wrong shows where slices are read */
    if (reader != 0) {
        return;
    }

    paused_now.end = PAUSED_CRASH;

    while (paused_now.crash_at++ < steps) {
        paused_loads(reader, name, 2 * stride);
        paused_now.crashes++;
    }
}


static void
paused_try(size_t n)
{
    size_t    r, i;
    unsigned  steps;

    case_prepare(n);
    paused_now.zone = &case_bed.live.zone;
    paused_now.begin = paused_begin;
    paused_now.write = paused_write;
    paused_now.name = cases[n].name;
    paused_now.pauses = 0;
    paused_now.crashes = 0;
    paused_now.first = 0;
    paused_now.moved = false;

    while (paused_now.first < case_bed.events_n) {
        paused_record_all();
        steps = paused_now.steps;

        for (r = 0; r < PAUSED_READERS; r++) {
            for (i = 0; i < paused_names(); i++) {
                paused_ends_all(r, i, steps);
            }
        }

        paused_now.first += paused_now.all ? 1 : 1 + case_bed.events_n / 4;
    }

    print_message("paused: %s: %u pauses, %u deaths\n", paused_now.name,
                  paused_now.pauses, paused_now.crashes);
    assert_true(paused_now.pauses > 50);
    assert_true(paused_now.crashes > 2);
    assert_true(paused_now.moved || !cases[n].moves);
    case_done();
}


static void
test_paused_before_every_load(void **state)
{
    size_t  n;

    (void) state;
    memset(&paused_now, 0, sizeof(paused_now));
    paused_now.all = (getenv("KUBE_PROOF") != NULL);
    paused_now.crashed = malloc(CASE_SIZE);
    assert_non_null(paused_now.crashed);
    alloc_test_init(&paused_now.at);
    kube_arena_init(&paused_now.arena, &paused_now.at.alloc, 16u << 20);

    for (n = 0; n < CASES_N; n++) {
        paused_try(n);
    }

    kube_arena_done(&paused_now.arena);
    free(paused_now.crashed);
}


/* The image after each store that readers can tell, and at the end. */
static struct {
    unsigned  n, at;
    uint64_t  signature;
    void     *images[PAUSED_IMAGES];
    void     *end;
} paused_images;


static void *
paused_image(void)
{
    void  *image;

    image = malloc(CASE_SIZE);
    assert_non_null(image);
    memcpy(image, case_bed.live.mem, CASE_SIZE);

    return image;
}


/* Of all that is not records, and of the records of Services. */
static uint64_t
paused_signature(void)
{
    it_t                 *it;
    uint32_t              e;
    uint64_t              sum;
    const kube_record_t  *record;

    it = &case_bed.live;
    sum = kube_hash64(zone_test_seed, it->mem, it->zone.geometry.segments);

    for (e = 1; e <= it->zone.geometry.entries_n; e++) {
        if (it->writer->side[e].kind == KUBE_RECORD_SERVICE
            && kube_zone_entry_offset(&it->zone, e) != 0)
        {
            record = kube_zone_record_at(&it->zone,
                                      kube_zone_entry_offset(&it->zone, e));
            sum += kube_hash64(zone_test_seed, record, record->size);
        }
    }

    return sum;
}


static void
paused_images_take(void)
{
    uint64_t  signature;

    paused_record();
    signature = paused_signature();

    if (signature != paused_images.signature) {
        paused_images.signature = signature;
        assert_true(paused_images.n < PAUSED_IMAGES);
        paused_images.images[paused_images.n++] = paused_image();
    }
}


static void
paused_images_begin(void)
{
    memcpy(case_bed.live.mem, paused_images.images[paused_images.at],
           CASE_SIZE);
}


static void
paused_images_write(void)
{
    memcpy(case_bed.live.mem, paused_images.end, CASE_SIZE);
}


static void
paused_images_try(size_t n)
{
    it_t     *it;
    size_t    r, i;

    memset(&paused_images, 0, sizeof(paused_images));
    memset(paused_states, 0, sizeof(paused_states));
    case_prepare(n);
    it = &case_bed.live;
    paused_now.zone = &it->zone;
    paused_now.name = cases[n].name;
    paused_now.pauses = 0;
    paused_now.moved = false;

    paused_images_take();
    paused_now.hook = paused_images_take;
    case_run(it, 0, case_bed.events_n);
    paused_now.hook = NULL;
    case_overwrite(it);
    paused_images.end = paused_image();
    paused_now.begin = paused_images_begin;
    paused_now.write = paused_images_write;

    for (r = 0; r < PAUSED_READERS; r++) {
        for (i = 0; i < paused_names(); i++) {

            if (paused_states[r][i].states_n == 1 && (r != 0 || i > 1)) {
                continue;
            }

            for (paused_images.at = 0;
                 paused_images.at < paused_images.n;
                 paused_images.at++)
            {
                paused_now.first = paused_images.at;
                paused_loads(r, i, paused_readers[r].stride);
            }
        }
    }

    print_message("paused: %s: %u pauses from %u images\n", paused_now.name,
                  paused_now.pauses, paused_images.n);
    assert_true(paused_images.n > 4);
    assert_true(paused_now.moved || !cases[n].moves);
    paused_images_write();
    case_done();

    for (i = 0; i < paused_images.n; i++) {
        free(paused_images.images[i]);
    }

    free(paused_images.end);
}


/* Readers who come in the middle of what the writer does, and pause then. */
static void
test_paused_from_every_store(void **state)
{
    size_t  n;

    (void) state;
    memset(&paused_now, 0, sizeof(paused_now));
    paused_now.all = (getenv("KUBE_PROOF") != NULL);
    alloc_test_init(&paused_now.at);
    kube_arena_init(&paused_now.arena, &paused_now.at.alloc, 16u << 20);

    for (n = 0; n < CASES_N; n++) {
        paused_images_try(n);
    }

    kube_arena_done(&paused_now.arena);
}


static struct {
    zone_test_t  t;
    void        *pristine;
    char         names[4][16];      /* the last one: another bucket's */
} paused_chain;


/* Entries of three keys of one bucket: the middle one is freed by now. */
static void
paused_chain_open(void)
{
    char          name[16];
    uint32_t      bucket, first, mask;
    unsigned      i, n;
    zone_test_t  *t;

    t = &paused_chain.t;
    zone_test_open(t, CASE_SIZE);
    mask = t->zone.geometry.buckets_n - 1;
    first = 0;

    for (i = 0, n = 0; n < 4; i++) {
        snprintf(name, sizeof(name), "n-%u", i);
        bucket = kube_key_hash(zone_test_seed, KUBE_RESOURCE_SERVICES,
                               KUBE_STR("shop"), zone_test_str(name)) & mask;
        first = (i == 0) ? bucket : first;

        if ((bucket == first) == (n < 3)) {
            snprintf(paused_chain.names[n++], sizeof(name), "%s", name);
        }
    }

    for (n = 0; n < 3; n++) {
        assert_int_equal(zone_test_put(t, "shop", paused_chain.names[n], 1,
                                       n, 0, 0, 1000), KUBE_OK);
    }

    zone_test_remove(t, KUBE_RESOURCE_SERVICES, "shop",
                     paused_chain.names[1], 1000);
    kube_zone_writer_release(t->writer);
    paused_chain.pristine = malloc(CASE_SIZE);
    assert_non_null(paused_chain.pristine);
    memcpy(paused_chain.pristine, t->mem, CASE_SIZE);
}


static void
paused_chain_crash(void)
{
    if (paused_now.steps == paused_now.crash_at) {
        memcpy(paused_now.crashed, paused_chain.t.mem, CASE_SIZE);
        paused_now.dead = true;
    }
}


/* The entry of the middle one goes into another chain, or half-way there. */
static void
paused_chain_write(void)
{
    zone_test_t      *t;
    kube_takeover_t   takeover;

    t = &paused_chain.t;
    t->writer->unused = 0;
    paused_now.steps = 0;
    paused_now.dead = false;
    paused_now.hook = (paused_now.crash_at != 0) ? paused_chain_crash : NULL;
    assert_int_equal(zone_test_put(t, "shop", paused_chain.names[3], 1, 3, 0,
                                   0, 90000), KUBE_OK);
    paused_now.hook = NULL;

    if (paused_now.dead) {
        kube_zone_writer_release(t->writer);
        memcpy(t->mem, paused_now.crashed, CASE_SIZE);
        zone_test_acquire(t, 90000, &takeover);
    }
}


/* Three entries long or not, the chain's first and last are always found. */
static bool
paused_chain_once(void)
{
    bool              last;
    unsigned          n;
    zone_test_t      *t;
    kube_takeover_t   takeover;

    t = &paused_chain.t;
    last = true;

    for (n = 0; n < 3; n += 2) {
        memcpy(t->mem, paused_chain.pristine, CASE_SIZE);
        zone_test_acquire(t, 1000, &takeover);

        paused_now.loads = 0;
        paused_now.reading = true;
        assert_int_not_equal(zone_test_find(t, KUBE_RESOURCE_SERVICES,
                                            "shop", paused_chain.names[n]),
                             0);
        paused_now.reading = false;
        last = last && paused_now.loads < paused_now.pause_at;
        kube_zone_writer_release(t->writer);
    }

    return !last;
}


/* In a chain, while an entry leaves it for another one. */
static void
test_paused_in_a_chain(void **state)
{
    (void) state;
    memset(&paused_now, 0, sizeof(paused_now));
    paused_now.all = true;
    paused_now.crashed = malloc(CASE_SIZE);
    assert_non_null(paused_now.crashed);
    paused_chain_open();
    paused_now.zone = &paused_chain.t.zone;
    paused_now.write = paused_chain_write;

    do {
        paused_now.pause_at = 1;

        while (paused_chain_once()) {
            paused_now.pause_at++;
        }

        paused_now.crash_at++;
    } while (paused_now.crash_at == 1 || paused_now.dead);

    print_message("paused: in a chain: %u pauses, %u deaths\n",
                  paused_now.pauses, paused_now.crash_at);
    assert_true(paused_now.crash_at > 20);
    zone_test_acquire(&paused_chain.t, 1000, &(kube_takeover_t) { 0 });
    zone_test_close(&paused_chain.t);
    free(paused_chain.pristine);
    free(paused_now.crashed);
}


static zone_test_t  *paused_zone;


/* The version, count and digest of a scope, and its error: all say n. */
static void
paused_scope_put(unsigned n)
{
    char               text[16];
    kube_scope_info_t  info;

    snprintf(text, sizeof(text), "%u", n);
    memset(&info, 0, sizeof(info));
    info.synced = true;
    info.rv = zone_test_str(text);
    info.count = n;
    info.digest.lo = n;
    info.digest.hi = ~(uint64_t) n;
    assert_int_equal(kube_zone_scope_publish(paused_zone->writer, 1, &info),
                     KUBE_OK);
    assert_int_equal(kube_zone_scope_error(paused_zone->writer, 1,
                                           zone_test_str(text),
                                           zone_test_str(text), n), KUBE_OK);
    assert_int_equal(kube_zone_server_set(paused_zone->writer,
                                          zone_test_str(text)), KUBE_OK);
}


static void
paused_scope_write(void)
{
    unsigned  i;

    /* the record's old place is in use again */
    for (i = 0; i < 100; i++) {
        paused_scope_put(1000 + i);
    }

    paused_scope_put(2);
}


static bool
paused_scope_once(void)
{
    uint64_t           rv;
    kube_str_t         server;
    kube_health_t      health;
    kube_scope_info_t  info;

    paused_scope_put(1);
    paused_now.loads = 0;
    paused_now.reading = true;
    kube_arena_reset(&paused_zone->arena);
    assert_int_equal(kube_zone_scope_read(&paused_zone->zone, 1,
                                          &paused_zone->arena, &info),
                     KUBE_OK);
    server = kube_zone_server(&paused_zone->zone, &paused_zone->arena);
    kube_zone_health(&paused_zone->zone, 1, 1, &health);
    paused_now.reading = false;

    assert_int_equal(kube_str_to_u64(info.rv, UINT64_MAX, &rv), KUBE_OK);
    assert_true(rv == 1 || rv == 2);
    assert_true(info.count == rv && info.digest.lo == rv
                && info.digest.hi == ~rv);
    assert_true(kube_str_eq(info.error_reason, info.error_message));
    assert_true(info.error_at_ms >= (int64_t) rv && info.error_at_ms <= 2);
    assert_true(server.len == 1 && server.data[0] >= '0' + info.error_at_ms);
    assert_int_equal(health.scopes, 1);
    assert_true(health.synced);
    assert_true(kube_word_get(&paused_zone->zone.image->corrupt) == 0);

    return paused_now.loads >= paused_now.pause_at;
}


/* What is not an object: a scope, its error, the server's name, health. */
static void
test_paused_in_a_scope(void **state)
{
    zone_test_t  t;

    (void) state;
    memset(&paused_now, 0, sizeof(paused_now));
    zone_test_open(&t, CASE_SIZE);
    paused_zone = &t;
    paused_now.zone = &t.zone;
    paused_now.write = paused_scope_write;
    paused_now.pause_at = 1;

    while (paused_scope_once()) {
        paused_now.pause_at++;
    }

    print_message("paused: in a scope: %u pauses\n", paused_now.pauses);
    assert_true(paused_now.pauses > 50);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_paused_before_every_load),
        cmocka_unit_test(test_paused_from_every_store),
        cmocka_unit_test(test_paused_in_a_chain),
        cmocka_unit_test(test_paused_in_a_scope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

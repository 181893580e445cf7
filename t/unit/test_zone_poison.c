/*
 * test_zone_poison - kube_zone_poison: who was in hand when a process died,
 * what is refused for it and for how long.  It allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube_zone_poison.h"
#include "kube_zone_reader.h"
#include "kube_zone_recover.h"
#include "kube_zone_walk.h"
#include "zone_test.h"


#define MINUTE  (60u * 1000)

/* What a hand's pointers point to. */
typedef struct {
    kube_str_t  ns;
    kube_str_t  name;
    kube_str_t  uid;
    kube_str_t  frame;
} held_t;


static kube_hand_t
hand_of(held_t *held, const char *ns, const char *name, const char *uid,
    uint64_t now_ms)
{
    held->ns = kube_str(ns);
    held->name = kube_str(name);
    held->uid = kube_str(uid);
    held->frame = KUBE_STR_NULL;

    return (kube_hand_t) { .now_ms = now_ms,
                           .scope = 3,
                           .resource = KUBE_RESOURCE_ENDPOINTSLICES,
                           .ns = &held->ns,
                           .name = &held->name,
                           .uid = &held->uid,
                           .frame = &held->frame };
}


static bool
refuses(const kube_zone_t *zone, const char *name, const char *uid,
    uint64_t now_ms)
{
    held_t       held;
    kube_hand_t  hand;

    hand = hand_of(&held, "shop", name, uid, now_ms);

    return kube_zone_poison_refuses(zone, &hand);
}


/* A process that dies of shop/name. */
static bool
die_of(kube_zone_t *zone, const char *name, const char *uid, uint64_t now_ms,
    kube_death_t *death)
{
    held_t       held;
    kube_hand_t  what, hand;

    what = hand_of(&held, "shop", name, uid, now_ms);
    kube_hand_take(&hand, &what, KUBE_STAGE_APPLY);
    kube_zone_poison_say(zone, &hand, SIGBUS);

    return kube_zone_poison_take(zone, now_ms, death);
}


static void
test_poison_words(void **state)
{
    held_t        held;
    zone_test_t   t;
    kube_hand_t   what, hand;
    kube_death_t  death;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    memset(&hand, 0, sizeof(hand));

    /* nothing in hand, nothing to say */

    what = hand_of(&held, "shop", "web-1", "u1", 1000);
    kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
    assert_false(kube_zone_poison_take(&t.zone, 1000, &death));

    kube_hand_take(&hand, &what, KUBE_STAGE_DECODE);
    kube_hand_leave(&hand);
    kube_hand_leave(NULL);
    kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
    assert_false(kube_zone_poison_take(&t.zone, 1000, &death));

    kube_hand_take(&hand, &what, KUBE_STAGE_DECODE);
    kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
    assert_true(kube_zone_poison_take(&t.zone, 1000, &death));
    assert_int_equal(death.stage, KUBE_STAGE_DECODE);
    assert_int_equal(death.signal_number, SIGSEGV);
    assert_int_equal(death.scope, 3);
    assert_int_equal(death.resource, KUBE_RESOURCE_ENDPOINTSLICES);
    assert_string_equal(death.key, "shop/web-1");
    assert_int_equal(death.crashes, 1);
    assert_false(death.refused);

    /* once */

    assert_false(kube_zone_poison_take(&t.zone, 1000, &death));
    assert_string_equal(kube_stage_text(KUBE_STAGE_APPLY), "apply");
    assert_string_equal(kube_stage_text(KUBE_STAGES), "unknown");
    zone_test_close(&t);
}


/* The longest key comes out as it went in. */
static void
test_poison_long_key(void **state)
{
    char          ns[KUBE_NAMESPACE_LEN_MAX + 2];
    char          name[KUBE_NAME_LEN_MAX + 2];
    char          key[KUBE_KEY_LEN_MAX + 4];
    held_t        held;
    zone_test_t   t;
    kube_hand_t   what, hand;
    kube_death_t  death;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    memset(ns, 'n', sizeof(ns));
    memset(name, 'o', sizeof(name));
    ns[KUBE_NAMESPACE_LEN_MAX] = '\0';
    name[KUBE_NAME_LEN_MAX] = '\0';
    name[KUBE_NAME_LEN_MAX - 1] = 'z';

    what = hand_of(&held, ns, name, "u", 1000);
    kube_hand_take(&hand, &what, KUBE_STAGE_DECODE);
    kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
    assert_true(kube_zone_poison_take(&t.zone, 1000, &death));
    (void) snprintf(key, sizeof(key), "%s/%s", ns, name);
    assert_string_equal(death.key, key);

    /* a longer one is no key: its frame is to blame */

    name[KUBE_NAME_LEN_MAX] = 'o';
    held.name = (kube_str_t) { name, KUBE_NAME_LEN_MAX + 1 };
    held.frame = KUBE_STR("{\"object\":7}");
    kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
    assert_true(kube_zone_poison_take(&t.zone, 1001, &death));
    assert_string_equal(death.key, "");
    kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
    assert_true(kube_zone_poison_take(&t.zone, 1002, &death));
    assert_true(death.refused);

    hand.now_ms = 1003;
    assert_true(kube_zone_poison_refuses(&t.zone, &hand));
    held.frame = KUBE_STR("{\"object\":8}");
    assert_false(kube_zone_poison_refuses(&t.zone, &hand));

    /* neither key nor frame: nobody to blame */

    hand.frame = NULL;
    kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
    assert_false(kube_zone_poison_take(&t.zone, 1004, &death));
    zone_test_close(&t);
}


/* Deaths of one key at these times; what each says, and for how long. */
static void
test_poison_refuses(void **state)
{
    size_t        i;
    zone_test_t   t;
    kube_death_t  death;

    static const struct {
        uint64_t     at_ms;
        const char  *uid;
        unsigned     crashes;
    } table[] = {
        { 1 * MINUTE,       "u1", 1 },
        { 11 * MINUTE + 1,  "u1", 1 },    /* more than 10 min later */
        { 21 * MINUTE + 1,  "u1", 2 },
        { 31 * MINUTE + 2,  "u1", 3 },    /* its trial */
        { 60 * MINUTE,      "u1", 1 },    /* long over */
        { 61 * MINUTE,      "u2", 1 },    /* another object */
        { 62 * MINUTE,      "u2", 2 },
        { 63 * MINUTE,      "",   3 },    /* it could not be read */
        { 64 * MINUTE,      "u3", 4 },    /* so this may be the same */
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        assert_true(die_of(&t.zone, "web-1", table[i].uid, table[i].at_ms,
                           &death));
        assert_int_equal(death.crashes, table[i].crashes);
        assert_int_equal(death.refused, table[i].crashes >= 2);
        assert_int_equal(refuses(&t.zone, "web-1", table[i].uid,
                                 table[i].at_ms),
                         death.refused);
        assert_int_equal(refuses(&t.zone, "web-1", table[i].uid,
                                 table[i].at_ms + KUBE_POISON_MS - 1),
                         death.refused);
        assert_false(refuses(&t.zone, "web-1", table[i].uid,
                             table[i].at_ms + KUBE_POISON_MS));
        assert_int_equal(refuses(&t.zone, "web-1", "other", table[i].at_ms),
                         death.refused && table[i].uid[0] == '\0');
        assert_false(refuses(&t.zone, "web-2", table[i].uid, table[i].at_ms));
    }

    zone_test_close(&t);
}


/* Another resource or namespace of the same name is another object. */
static void
test_poison_key_is_whole(void **state)
{
    held_t        held;
    zone_test_t   t;
    kube_hand_t   hand;
    kube_death_t  death;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_true(die_of(&t.zone, "web-1", "u", 10, &death));
    assert_true(die_of(&t.zone, "web-1", "u", 20, &death));
    assert_true(refuses(&t.zone, "web-1", "u", 30));

    hand = hand_of(&held, "shop", "web-1", "u", 30);
    hand.resource = KUBE_RESOURCE_SERVICES;
    assert_false(kube_zone_poison_refuses(&t.zone, &hand));

    hand = hand_of(&held, "shopweb", "-1", "u", 30);
    assert_false(kube_zone_poison_refuses(&t.zone, &hand));
    hand = hand_of(&held, "sho", "pweb-1", "u", 30);
    assert_false(kube_zone_poison_refuses(&t.zone, &hand));
    zone_test_close(&t);
}


/* True: there is a trial, and it is of an object that die_of() made. */
static bool
tried(kube_zone_t *zone, uint64_t now_ms)
{
    kube_trial_t  trial;

    if (!kube_zone_poison_trial(zone, now_ms, &trial)) {
        return false;
    }

    assert_true(kube_trial_concerns(&trial, 7, KUBE_RESOURCE_ENDPOINTSLICES,
                                    KUBE_STR("shop")));
    assert_true(kube_trial_concerns(&trial, 7, KUBE_RESOURCE_ENDPOINTSLICES,
                                    KUBE_STR_NULL));
    assert_false(kube_trial_concerns(&trial, 3, KUBE_RESOURCE_ENDPOINTSLICES,
                                     KUBE_STR("infra")));
    assert_false(kube_trial_concerns(&trial, 3, KUBE_RESOURCE_SERVICES,
                                     KUBE_STR("shop")));

    return true;
}


/* When the time is over each gets one trial, and is forgotten after another. */
static void
test_poison_trial(void **state)
{
    zone_test_t   t;
    kube_death_t  death;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    assert_false(tried(&t.zone, 5));

    assert_true(die_of(&t.zone, "web-1", "u", 1000, &death));
    assert_false(tried(&t.zone, 1000 + KUBE_POISON_MS));
    assert_true(die_of(&t.zone, "web-1", "u", 2000, &death));
    assert_false(tried(&t.zone, 2000 + KUBE_POISON_MS - 1));
    assert_true(tried(&t.zone, 2000 + KUBE_POISON_MS));
    assert_false(tried(&t.zone, 2001 + KUBE_POISON_MS));

    /* it failed */

    assert_true(die_of(&t.zone, "web-1", "u", 3000 + KUBE_POISON_MS, &death));
    assert_true(death.refused);
    assert_true(tried(&t.zone, 3000 + 2 * KUBE_POISON_MS));
    assert_false(tried(&t.zone, 3001 + 3 * KUBE_POISON_MS));
    assert_true(die_of(&t.zone, "web-1", "u", 3002 + 3 * KUBE_POISON_MS,
                       &death));
    assert_int_equal(death.crashes, 1);
    zone_test_close(&t);
}


/* A frame whose key is not known is told by the number of its scope. */
static void
test_poison_trial_of_a_frame(void **state)
{
    unsigned      i;
    held_t        held;
    kube_hand_t   hand;
    zone_test_t   t;
    kube_death_t  death;
    kube_trial_t  trial;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (i = 0; i < 2; i++) {
        hand = hand_of(&held, "", "", "", 1000);
        held.frame = KUBE_STR("{\"kind\":\"Service\"");
        hand.stage = KUBE_STAGE_DECODE;
        kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
        assert_true(kube_zone_poison_take(&t.zone, 1000, &death));
    }

    assert_true(kube_zone_poison_trial(&t.zone, 1000 + KUBE_POISON_MS,
                                       &trial));
    assert_true(kube_trial_concerns(&trial, 3, KUBE_RESOURCE_SERVICES,
                                    KUBE_STR("shop")));
    assert_false(kube_trial_concerns(&trial, 1, KUBE_RESOURCE_ENDPOINTSLICES,
                                     KUBE_STR("shop")));
    zone_test_close(&t);
}


/* More than are remembered: the oldest goes, and the newest counts. */
static void
test_poison_many(void **state)
{
    char          name[16];
    uint64_t      i;
    zone_test_t   t;
    kube_death_t  death;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (i = 0; i < 3 * KUBE_POISON_ROWS; i++) {
        (void) snprintf(name, sizeof(name), "web-%u", (unsigned) i);
        assert_true(die_of(&t.zone, name, "u", 1000 + 2 * i, &death));
        assert_int_equal(death.crashes, 1);
        assert_true(die_of(&t.zone, name, "u", 1001 + 2 * i, &death));
        assert_int_equal(death.crashes, 2);
    }

    for (i = 0; i < 3 * KUBE_POISON_ROWS; i++) {
        (void) snprintf(name, sizeof(name), "web-%u", (unsigned) i);
        assert_int_equal(refuses(&t.zone, name, "u", 2000),
                         i >= 2 * KUBE_POISON_ROWS);
    }

    zone_test_close(&t);
}


/* No word is trusted: whatever stands there, nothing is read out of bounds. */
static void
test_poison_foreign_words(void **state)
{
    size_t               i, blame_words;
    unsigned             round;
    zone_test_t          t;
    kube_death_t         death;
    kube_trial_t         trial;
    kube_random_t        random;
    kube_zone_words_t   *words;
    kube_zone_blame_t   *blame;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_random_init(&random, 7);
    words = &t.zone.image->history.words;
    blame = t.zone.image->history.blame;
    blame_words = KUBE_POISON_ROWS * sizeof(*blame) / sizeof(kube_word_t);

    for (round = 0; round < 20000; round++) {

        for (i = 0; i < sizeof(*words) / sizeof(kube_word_t); i++) {
            kube_word_set(&((kube_word_t *) words)[i],
                          kube_random_next(&random)
                          >> (kube_random_next(&random) % 64));
        }

        kube_word_set(&((kube_word_t *) blame)[kube_random_next(&random)
                                               % blame_words],
                      kube_random_next(&random));

        if (kube_zone_poison_take(&t.zone, 1000 + round, &death)) {
            assert_true(death.scope < KUBE_SCOPES_MAX);
            assert_true((unsigned) death.resource < KUBE_RESOURCES);
            assert_true(strlen(death.key) < sizeof(death.key));
            assert_non_null(kube_stage_text(death.stage));
        }

        (void) refuses(&t.zone, "web-1", "u", 1000 + round);
        (void) kube_zone_poison_trial(&t.zone, 1000 + round, &trial);
        (void) kube_trial_concerns(&trial, 0, KUBE_RESOURCE_SERVICES,
                                   KUBE_STR("shop"));
    }

    zone_test_close(&t);
}


/* In the child: a record whose memory is gone. */
static kube_zone_t  poison_zone;
static kube_hand_t  poison_hand;


static void
poison_handler(int signal_number)
{
    signal(signal_number, SIG_DFL);
    kube_zone_poison_say(&poison_zone, &poison_hand, signal_number);
}


/* From a handler; where that faults as it reads the uid, the key is said. */
static void
test_poison_in_a_handler(void **state)
{
    int           status;
    void         *mem, *gone;
    pid_t         pid;
    held_t        held;
    unsigned      n;
    zone_test_t   t;
    kube_hand_t   what;
    kube_death_t  death;

    (void) state;
    mem = mmap(NULL, KUBE_ZONE_SIZE_MIN, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    gone = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mem != MAP_FAILED && gone != MAP_FAILED);
    zone_test_over(&t, mem, KUBE_ZONE_SIZE_MIN);
    poison_zone = t.zone;

    for (n = 1; n <= 2; n++) {

        pid = fork();
        assert_true(pid >= 0);

        if (pid == 0) {
            signal(SIGSEGV, poison_handler);
            what = hand_of(&held, "shop", "web-1", "u", 1);
            what.uid = NULL;
            what.record = gone;
            kube_hand_take(&poison_hand, &what, KUBE_STAGE_APPLY);
            *(volatile char *) gone = 1;
            _exit(0);
        }

        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        assert_true(kube_zone_poison_take(&t.zone, 1000 + n, &death));
        assert_string_equal(death.key, "shop/web-1");
        assert_int_equal(death.signal_number, SIGSEGV);
        assert_int_equal(death.crashes, n);
    }

    /* its uid was never known */

    assert_true(refuses(&t.zone, "web-1", "u1", 1003));

    t.mem = NULL;
    zone_test_close(&t);
    munmap(mem, KUBE_ZONE_SIZE_MIN);
    munmap(gone, 4096);
}


/* The writer dies with shop/NAME in hand, as the walk has it. */
static void
die_in_walk(zone_test_t *t, const char *name, kube_resource_t resource,
    unsigned times)
{
    held_t        held;
    kube_hand_t   what, hand;
    kube_death_t  death;

    for ( /* void */ ; times != 0; times--) {
        what = hand_of(&held, "shop", name, "", 1000);
        what.resource = resource;
        what.blame = KUBE_BLAME_RECORD;
        kube_hand_take(&hand, &what, KUBE_STAGE_WALK);
        kube_zone_poison_say(&t->zone, &hand, SIGSEGV);

        if (times > 1) {
            assert_true(kube_zone_poison_take(&t->zone, 1000, &death));
        }
    }
}


static bool
reads(zone_test_t *t, const char *name, size_t slices)
{
    kube_snapshot_t  snapshot;

    kube_arena_reset(&t->arena);

    return kube_zone_read(&t->zone, zone_test_find(t, KUBE_RESOURCE_SERVICES,
                                                   "shop", name),
                          kube_str("shop"), kube_str(name), &t->arena,
                          &snapshot) == KUBE_OK
           && snapshot.slices_n == slices;
}


/*
 * What killed two processes in the walk is not looked at by the third: it is a
 * refused name, its Service goes on without it, and no list is needed.
 */
static void
test_poison_walk(void **state)
{
    unsigned         row;
    zone_test_t      t;
    kube_hand_t      hand;
    kube_takeover_t  takeover;

    static const struct {
        const char       *name;
        kube_resource_t   resource;
        unsigned          deaths;
        unsigned          cut_off;
        bool              web;           /* readable */
        size_t            slices;        /* of web */
    } rows[] = {
        { "web-1", KUBE_RESOURCE_ENDPOINTSLICES, 1, 0, true, 2 },
        { "web-1", KUBE_RESOURCE_ENDPOINTSLICES, 2, 1, true, 1 },
        { "web", KUBE_RESOURCE_SERVICES, 2, 1, false, 0 },
        { "none", KUBE_RESOURCE_SERVICES, 2, 0, true, 2 },
    };

    (void) state;

    for (row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        zone_test_open(&t, 1u << 20);
        memset(&hand, 0, sizeof(kube_hand_t));
        assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 2, 3, 1000),
                         KUBE_OK);
        assert_int_equal(zone_test_put(&t, "shop", "other", 1, 1, 2, 3, 1000),
                         KUBE_OK);

        die_in_walk(&t, rows[row].name, rows[row].resource, rows[row].deaths);
        kube_zone_writer_destroy(t.writer);
        t.writer = kube_zone_writer_create(&t.at.alloc, &t.zone);
        assert_non_null(t.writer);
        kube_zone_writer_hand(t.writer, &hand);
        zone_test_acquire(&t, 2000, &takeover);

        assert_true(takeover.blamed);
        assert_int_equal(takeover.death.stage, KUBE_STAGE_WALK);
        assert_int_equal(takeover.death.refused, rows[row].deaths > 1);
        assert_int_equal(takeover.cut_off, rows[row].cut_off);
        assert_false(takeover.distrust);
        assert_int_equal(hand.stage, KUBE_STAGE_NONE);
        assert_int_equal(reads(&t, "web", rows[row].slices), rows[row].web);
        assert_true(reads(&t, "other", 2));
        assert_int_equal(kube_zone_is_refused(&t.zone, rows[row].resource,
                                              KUBE_STR("shop"),
                                              kube_str(rows[row].name)),
                         rows[row].cut_off != 0);
        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);

        /* and the next one finds nothing to be done */
        kube_zone_writer_release(t.writer);
        zone_test_acquire(&t, 3000, &takeover);
        assert_false(takeover.blamed);
        assert_int_equal(takeover.cut_off, 0);
        assert_int_equal(takeover.repaired, 0);
        zone_test_close(&t);
    }
}


/* One that has killed them before its name was known is lost: a list. */
static void
test_poison_walk_unnamed(void **state)
{
    unsigned         i;
    kube_str_t       none, frame;
    kube_ref_t       place;
    zone_test_t      t;
    kube_hand_t      hand, what;
    kube_death_t     death;
    kube_takeover_t  takeover;

    (void) state;
    zone_test_open(&t, 1u << 20);
    assert_int_equal(zone_test_put(&t, "shop", "web", 1, 1, 2, 3, 1000),
                     KUBE_OK);

    memset(&place, 0, sizeof(kube_ref_t));
    place.entry = zone_test_find(&t, KUBE_RESOURCE_ENDPOINTSLICES, "shop",
                                 "web-1");
    place.offset = kube_head_offset(kube_zone_head(&t.zone, place.entry));
    none = KUBE_STR_NULL;
    frame = (kube_str_t) { (const char *) &place, sizeof(kube_ref_t) };
    what = (kube_hand_t) { .now_ms = 1000, .blame = KUBE_BLAME_RECORD,
                           .ns = &none, .name = &none, .uid = &none,
                           .frame = &frame };

    for (i = 0; i < 2; i++) {
        kube_hand_take(&hand, &what, KUBE_STAGE_WALK);
        kube_zone_poison_say(&t.zone, &hand, SIGSEGV);
        assert_true(kube_zone_poison_take(&t.zone, 1000, &death));
    }

    memset(&hand, 0, sizeof(kube_hand_t));
    kube_zone_writer_destroy(t.writer);
    t.writer = kube_zone_writer_create(&t.at.alloc, &t.zone);
    assert_non_null(t.writer);
    kube_zone_writer_hand(t.writer, &hand);
    zone_test_acquire(&t, 2000, &takeover);
    assert_int_equal(takeover.cut_off, 1);
    assert_true(takeover.distrust);
    assert_true(reads(&t, "web", 1));
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_poison_words),
        cmocka_unit_test(test_poison_long_key),
        cmocka_unit_test(test_poison_refuses),
        cmocka_unit_test(test_poison_key_is_whole),
        cmocka_unit_test(test_poison_trial),
        cmocka_unit_test(test_poison_trial_of_a_frame),
        cmocka_unit_test(test_poison_many),
        cmocka_unit_test(test_poison_foreign_words),
        cmocka_unit_test(test_poison_walk),
        cmocka_unit_test(test_poison_walk_unnamed),
        cmocka_unit_test(test_poison_in_a_handler),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

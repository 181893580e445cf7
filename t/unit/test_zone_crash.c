/*
 * test_zone_crash - a writer that dies anywhere: under random operations;
 * after every single store of the operations that matter; by SIGKILL at
 * instructions around those stores; and after each instruction that changed
 * the image.  Who takes over finds each Service as it was or as it was to be.
 *
 * The writer's sources are built into this program with failpoints, of which
 * every store into the image is one; the rest of the library has none.
 *
 * A process that is killed leaves what it had stored: of instructions that
 * leave the same image one stands for all.  KUBE_PROOF=1: in each operation;
 * else in one of a single store's length.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#define KUBE_FAILPOINTS  1
#define _GNU_SOURCE      1

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kube_zone_guard.c"
#include "kube_zone_log.c"
#include "kube_zone_recover.c"
#include "kube_zone_store.c"
#include "kube_zone_table.c"
#include "kube_zone_writer.c"
#include "zone_test.h"


#define CRASH_SIZE    KUBE_ZONE_SIZE_MIN
#define CRASH_KEYS    10
#define CRASH_ROUNDS  700
#define CRASH_STEPS   12
#define CRASH_KILLS   60
#define CRASH_STRIDE  97
#define CRASH_NOW     1000


/* Where the child dies: at this failpoint from now; 0: nowhere. */
static unsigned  crash_countdown;

/* What happens there, and after each store; NULL: _exit, nothing. */
static void    (*crash_act)(void);
static void    (*crash_on_store)(void);

/* The image, and how often its reuse counter was odd as a link changed. */
static const kube_zone_image_t  *crash_image;
static unsigned                  crash_odd;


void
kube_failpoint_hit(const char *name)
{
    void  (*on_store)(void);

    if (crash_countdown != 0 && --crash_countdown == 0) {
        if (crash_act == NULL) {
            _exit(0);
        }

        crash_act();
    }

    if (crash_image != NULL && strcmp(name, "entry_unlinked") == 0) {
        crash_odd += kube_word_get(&crash_image->reuse) & 1;
    }

    /* what it does stores itself */
    if (crash_on_store != NULL && strcmp(name, "store") == 0) {
        on_store = crash_on_store;
        crash_on_store = NULL;
        on_store();
        crash_on_store = on_store;
    }
}


/* What one Service may be found as: variants, 0 for absent. */
typedef struct {
    unsigned  old;
    unsigned  now;
} crash_key_t;

/* Shared with the child: what it was about to do. */
typedef struct {
    crash_key_t  keys[CRASH_KEYS];
    uint64_t     now_ms;
    unsigned     hits;
} crash_plan_t;


static void *
crash_share(size_t size)
{
    void  *p;

    p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
             -1, 0);
    assert_true(p != MAP_FAILED);

    return p;
}


static void
crash_open(zone_test_t *t)
{
    zone_test_over(t, crash_share(CRASH_SIZE), CRASH_SIZE);
}


static void
crash_close(zone_test_t *t)
{
    void  *mem;

    mem = t->mem;
    t->mem = NULL;
    zone_test_close(t);
    munmap(mem, CRASH_SIZE);
}


/* One Service with two slices; all carry the variant. */
static kube_rc_t
crash_put(zone_test_t *t, unsigned key, unsigned variant, uint64_t now_ms)
{
    char  name[32];

    snprintf(name, sizeof(name), "key-%u", key);

    return zone_test_put(t, "shop", name, variant, variant, 2,
                         1 + variant % 11, now_ms);
}


static void
crash_remove_one(zone_test_t *t, kube_resource_t resource, const char *name,
    uint64_t now_ms)
{
    uint32_t  e;

    e = kube_zone_writer_find(t->writer, resource, KUBE_STR("shop"),
                              zone_test_str(name));

    if (e != 0) {
        kube_zone_writer_now(t->writer, now_ms);
        kube_zone_remove(t->writer, e);
    }
}


static void
crash_remove(zone_test_t *t, unsigned key, uint64_t now_ms)
{
    char  name[32];

    snprintf(name, sizeof(name), "key-%u", key);
    crash_remove_one(t, KUBE_RESOURCE_SERVICES, name, now_ms);
    snprintf(name, sizeof(name), "key-%u-0", key);
    crash_remove_one(t, KUBE_RESOURCE_ENDPOINTSLICES, name, now_ms);
    snprintf(name, sizeof(name), "key-%u-1", key);
    crash_remove_one(t, KUBE_RESOURCE_ENDPOINTSLICES, name, now_ms);
}


/* The variant that the zone has under a key: 0 absent, UINT32_MAX torn. */
static unsigned
crash_found(zone_test_t *t, unsigned key)
{
    char             name[32];
    kube_rc_t        rc;
    kube_snapshot_t  s;

    snprintf(name, sizeof(name), "key-%u", key);
    rc = zone_test_read(t, "shop", name, &s);

    if (rc == KUBE_NOT_FOUND) {
        return 0;
    }

    /* two, and one more in the case of the walk */
    if (rc != KUBE_OK || s.slices_n < 2) {
        return UINT32_MAX;
    }

    return zone_test_variant(&s);
}


static void
crash_check(zone_test_t *t, crash_key_t *keys)
{
    unsigned  i, found;

    for (i = 0; i < CRASH_KEYS; i++) {
        found = crash_found(t, i);

        if (found != keys[i].old && found != keys[i].now) {
            print_error("key %u: found %u, was %u, was to be %u\n", i, found,
                        keys[i].old, keys[i].now);
            fail();
        }
    }
}


static void
crash_settle(zone_test_t *t, crash_key_t *keys)
{
    unsigned  i;

    for (i = 0; i < CRASH_KEYS; i++) {
        keys[i].old = keys[i].now = crash_found(t, i);
    }
}


/* The child's life: operations until the failpoint. */
static void
crash_child(zone_test_t *t, crash_plan_t *plan, unsigned seed, unsigned kill)
{
    unsigned         step, key, variant;
    kube_random_t    r;
    kube_takeover_t  takeover;

    kube_random_init(&r, seed);
    crash_countdown = kill;

    /* a walk may be cut short as well */
    (void) !kube_zone_writer_acquire(t->writer, plan->now_ms, &takeover);

    for (step = 0; step < CRASH_STEPS; step++) {
        key = (unsigned) (kube_random_next(&r) % CRASH_KEYS);
        plan->now_ms += 700;
        variant = 0;

        if (kube_random_next(&r) % 6 != 0) {
            variant = (unsigned) kube_random_range(&r, 1, 60000);
        }

        plan->keys[key].now = variant;

        if (variant == 0) {
            crash_remove(t, key, plan->now_ms);

        } else if (crash_put(t, key, variant, plan->now_ms) != KUBE_OK) {
            plan->keys[key].now = plan->keys[key].old;
        }

        plan->keys[key].old = plan->keys[key].now;
    }

    plan->hits = kill - crash_countdown;
    _exit(0);
}


static void
test_crash_at_failpoints(void **state)
{
    int              status;
    pid_t            pid;
    unsigned         round, died;
    zone_test_t      t;
    kube_random_t    r;
    crash_plan_t    *plan;
    kube_takeover_t  takeover;

    (void) state;
    crash_open(&t);
    kube_zone_writer_release(t.writer);
    plan = crash_share(sizeof(crash_plan_t));
    plan->now_ms = CRASH_NOW;
    kube_random_init(&r, 7);
    died = 0;

    for (round = 0; round < CRASH_ROUNDS; round++) {
        pid = fork();
        assert_true(pid >= 0);

        if (pid == 0) {
            crash_child(&t, plan, round,
                        (unsigned) kube_random_range(&r, 1, 6000));
        }

        (void) kube_random_next(&r);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);

        /* readers first: nobody has taken over yet */
        crash_check(&t, plan->keys);

        zone_test_acquire(&t, plan->now_ms, &takeover);
        died += takeover.crashed;
        assert_int_equal(takeover.cut_off, 0);
        assert_int_equal(kube_zone_validate(t.mem, t.size), KUBE_OK);
        crash_check(&t, plan->keys);
        crash_settle(&t, plan->keys);
        kube_zone_writer_release(t.writer);
    }

    /* a run in which nobody died shows nothing */
    assert_true(died > CRASH_ROUNDS / 2);
    munmap(plan, sizeof(crash_plan_t));
    crash_close(&t);
}


/* An operation to die in; keys say what it changes. */
typedef struct {
    const char  *name;
    void       (*prepare)(zone_test_t *t, crash_key_t *keys);
    void       (*run)(zone_test_t *t);
    bool         acquires;       /* itself */
    bool         brief;          /* in instructions */
} crash_case_t;


static void
crash_prepare_publish(zone_test_t *t, crash_key_t *keys)
{
    unsigned  i;

    for (i = 0; i < 4; i++) {
        assert_int_equal(crash_put(t, i, 10 + i, CRASH_NOW), KUBE_OK);
        keys[i].old = keys[i].now = 10 + i;
    }

    keys[2].now = 999;
    keys[7].now = 777;
}


static void
crash_run_publish(zone_test_t *t)
{
    (void) !crash_put(t, 2, 999, CRASH_NOW);
    (void) !crash_put(t, 7, 777, CRASH_NOW);
}


static void
crash_prepare_remove(zone_test_t *t, crash_key_t *keys)
{
    crash_prepare_publish(t, keys);
    keys[2].now = 0;
    keys[7].now = 0;
}


static void
crash_run_remove(zone_test_t *t)
{
    crash_remove(t, 2, CRASH_NOW);
}


static void
crash_run_refuse(zone_test_t *t)
{
    uint32_t  entry;

    (void) !zone_test_refuse(t, KUBE_RESOURCE_SERVICES, "shop", "key-2",
                             "1000", "malformed", &entry);
}


/* The next put of some size has to evacuate a segment. */
static bool
crash_is_due(const kube_zone_writer_t *w)
{
    uint32_t  x;

    x = log_emptiest(w);

    return log_tail(w, w->open_segment) < 100
           && x != KUBE_ZONE_NO_SEGMENT
           && w->segments[x].live > 500
           && (w->free_n == 1
               || w->segments[x].live <= log_segment_size(w) / 2);
}


static void
crash_prepare_evacuate(zone_test_t *t, crash_key_t *keys)
{
    char      name[32];
    unsigned  i;

    crash_prepare_publish(t, keys);
    keys[7].now = 0;

    for (i = 0; i < 4000; i++) {
        snprintf(name, sizeof(name), "fill-%u", i % 36);

        if (i > 100 && crash_is_due(t->writer)) {
            return;
        }

        (void) !zone_test_put(t, "shop", name, i, i, 1, 1 + i % 13,
                              CRASH_NOW);
    }

    fail();
}


static void
crash_run_evacuate(zone_test_t *t)
{
    (void) !crash_put(t, 2, 999, CRASH_NOW);
}


/* Dying in the walk itself, which has a Service to repair. */
static void
crash_prepare_walk(zone_test_t *t, crash_key_t *keys)
{
    bool      same;
    uint32_t  e;

    crash_prepare_publish(t, keys);
    keys[7].now = 0;
    keys[2].now = keys[2].old;

    /* as if somebody had died between the slice and its Service */
    assert_int_equal(zone_test_stage(t, zone_test_slice("shop", "lone",
                                                        "key-3", 1, 13, 2),
                                     CRASH_NOW, &e, &same), KUBE_OK);
    kube_zone_publish_orphan(t->writer, e);
}


static void
crash_run_walk(zone_test_t *t)
{
    kube_takeover_t  takeover;

    kube_zone_writer_release(t->writer);
    (void) !kube_zone_writer_acquire(t->writer, CRASH_NOW, &takeover);
}


static const crash_case_t  crash_cases[] = {
    { "publish", crash_prepare_publish, crash_run_publish, false, false },
    { "remove", crash_prepare_remove, crash_run_remove, false, true },
    { "refuse", crash_prepare_remove, crash_run_refuse, false, false },
    { "evacuate", crash_prepare_evacuate, crash_run_evacuate, false,
      false },
    { "walk", crash_prepare_walk, crash_run_walk, true, false },
};


/* The case under test, for the hooks. */
static struct {
    zone_test_t  *t;
    zone_test_t   copy;
    crash_key_t   keys[CRASH_KEYS];
    unsigned      stores;
} crash_now;


/* Takes over a copy of the image as it is after this store. */
static void
crash_try_copy(void)
{
    zone_test_t      *copy;
    kube_takeover_t   takeover;

    copy = &crash_now.copy;
    crash_now.stores++;

    memcpy(copy->mem, crash_now.t->mem, CRASH_SIZE);
    crash_check(copy, crash_now.keys);

    zone_test_acquire(copy, CRASH_NOW, &takeover);
    assert_int_equal(takeover.cut_off, 0);
    assert_int_equal(kube_zone_validate(copy->mem, copy->size), KUBE_OK);
    crash_check(copy, crash_now.keys);
    assert_true(copy->writer->free_n >= 1);
    kube_zone_writer_release(copy->writer);
}


static void
crash_case_open(zone_test_t *t, const crash_case_t *c)
{
    crash_open(t);
    memset(&crash_now, 0, sizeof(crash_now));
    crash_now.t = t;
    zone_test_open(&crash_now.copy, CRASH_SIZE);
    kube_zone_writer_release(crash_now.copy.writer);
    c->prepare(t, crash_now.keys);
}


static void
crash_case_close(zone_test_t *t)
{
    zone_test_close(&crash_now.copy);
    crash_close(t);
}


static void
test_crash_after_every_store(void **state)
{
    size_t       i;
    zone_test_t  t;

    (void) state;

    for (i = 0; i < sizeof(crash_cases) / sizeof(crash_cases[0]); i++) {
        crash_case_open(&t, &crash_cases[i]);

        crash_on_store = crash_try_copy;
        crash_cases[i].run(&t);
        crash_on_store = NULL;

        print_message("crash: %s: taken over after each of %u stores\n",
                      crash_cases[i].name, crash_now.stores);
        assert_true(crash_now.stores > 8);
        crash_case_close(&t);
    }
}


static void
crash_stop(void)
{
    raise(SIGSTOP);
}


/*
 * A child that stops at failpoint number store.  KUBE_DENIED: it may not be
 * traced; KUBE_NOT_FOUND: it had fewer.
 */
static kube_rc_t
crash_start(zone_test_t *t, const crash_case_t *c, unsigned store,
    pid_t *pid)
{
    int              status;
    kube_takeover_t  takeover;

    *pid = fork();
    assert_true(*pid >= 0);

    if (*pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(1);
        }

        if (!c->acquires
            && kube_zone_writer_acquire(t->writer, CRASH_NOW, &takeover)
               != KUBE_OK)
        {
            _exit(2);
        }

        crash_act = crash_stop;
        crash_countdown = store;
        c->run(t);
        _exit(0);
    }

    assert_int_equal(waitpid(*pid, &status, 0), *pid);

    if (WIFEXITED(status)) {
        assert_int_not_equal(WEXITSTATUS(status), 2);
        return (WEXITSTATUS(status) == 1) ? KUBE_DENIED : KUBE_NOT_FOUND;
    }

    assert_true(WIFSTOPPED(status));

    return KUBE_OK;
}


/* Steps n instructions and kills.  False: the child had ended before. */
static bool
crash_kill(pid_t pid, unsigned n)
{
    int       status;
    unsigned  i;

    for (i = 0; i < n; i++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);

        if (WIFEXITED(status)) {
            return false;
        }

        assert_true(WIFSTOPPED(status));
    }

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);

    return true;
}


/* False: there are not so many stores, or instructions. */
static bool
crash_try_kill(zone_test_t *t, const crash_case_t *c, unsigned store,
    unsigned n, const void *pristine)
{
    pid_t            pid;
    kube_rc_t        rc;
    kube_takeover_t  takeover;

    memcpy(t->mem, pristine, CRASH_SIZE);
    rc = crash_start(t, c, store, &pid);

    if (rc == KUBE_DENIED) {
        print_message("crash: ptrace is not allowed here\n");
        skip();
    }

    if (rc != KUBE_OK || !crash_kill(pid, n)) {
        return false;
    }

    crash_check(t, crash_now.keys);
    zone_test_acquire(t, CRASH_NOW, &takeover);
    assert_true(takeover.crashed);
    assert_int_equal(takeover.cut_off, 0);
    assert_int_equal(kube_zone_validate(t->mem, t->size), KUBE_OK);
    crash_check(t, crash_now.keys);

    /* and life goes on */
    (void) !crash_put(t, 9, 4321, CRASH_NOW);
    kube_zone_writer_release(t->writer);

    return true;
}


static unsigned
crash_kill_all_over(zone_test_t *t, const crash_case_t *c,
    const void *pristine)
{
    unsigned  kills, store, stride;

    stride = crash_now.stores / CRASH_KILLS + 1;
    kills = 0;

    for (store = 1; store <= crash_now.stores; store += stride) {
        kills += crash_try_kill(t, c, store, store * 31 % CRASH_STRIDE,
                                pristine);
    }

    return kills;
}


static void
crash_count_store(void)
{
    crash_now.stores++;
}


static void
test_crash_at_instructions(void **state)
{
    void         *pristine;
    size_t        i;
    unsigned      kills;
    zone_test_t   t;

    (void) state;
    pristine = zone_test_memory(CRASH_SIZE);

    for (i = 0; i < sizeof(crash_cases) / sizeof(crash_cases[0]); i++) {
        crash_case_open(&t, &crash_cases[i]);
        kube_zone_writer_release(t.writer);
        memcpy(pristine, t.mem, CRASH_SIZE);

        if (!crash_cases[i].acquires) {
            zone_test_acquire(&t, CRASH_NOW, &(kube_takeover_t) { 0 });
        }

        crash_on_store = crash_count_store;
        crash_cases[i].run(&t);
        crash_on_store = NULL;
        kube_zone_writer_release(t.writer);

        kills = crash_kill_all_over(&t, &crash_cases[i], pristine);
        print_message("crash: %s: %u times SIGKILL\n", crash_cases[i].name,
                      kills);
        assert_true(kills > 5);
        crash_case_close(&t);
    }

    free(pristine);
}


/* Single-steps the child from its first store to its end. */
static void
crash_step_through(zone_test_t *t, const crash_case_t *c, void *last)
{
    int            status;
    pid_t          pid;
    uint64_t       steps;

    if (crash_start(t, c, 1, &pid) == KUBE_DENIED) {
        print_message("crash: ptrace is not allowed here\n");
        skip();
    }

    memcpy(last, t->mem, CRASH_SIZE);
    crash_try_copy();

    for (steps = 0; /* void */ ; steps++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);

        if (WIFEXITED(status)) {
            break;
        }

        assert_true(WIFSTOPPED(status));

        if (memcmp(last, t->mem, CRASH_SIZE) != 0) {
            memcpy(last, t->mem, CRASH_SIZE);
            crash_try_copy();
        }
    }

    assert_int_equal(WEXITSTATUS(status), 0);
    print_message("crash: %s: taken over from each of %u images that %llu "
                  "instructions left\n", c->name, crash_now.stores,
                  (unsigned long long) steps);
    assert_true(crash_now.stores > 5);
}


static void
test_crash_at_every_instruction(void **state)
{
    void         *last;
    size_t        i;
    zone_test_t   t;

    (void) state;
    last = zone_test_memory(CRASH_SIZE);

    for (i = 0; i < sizeof(crash_cases) / sizeof(crash_cases[0]); i++) {

        if (!crash_cases[i].brief && getenv("KUBE_PROOF") == NULL) {
            continue;
        }

        crash_case_open(&t, &crash_cases[i]);
        kube_zone_writer_release(t.writer);
        crash_step_through(&t, &crash_cases[i], last);
        crash_case_close(&t);
    }

    free(last);
}


/* An entry that changes chains does so under an odd counter. */
static void
test_crash_reuse_is_announced(void **state)
{
    char         name[32];
    uint32_t     e;
    unsigned     i, odd;
    zone_test_t  t;

    (void) state;
    zone_test_open(&t, CRASH_SIZE);
    crash_odd = 0;
    crash_image = t.zone.image;

    for (i = 0; i < 2 * t.zone.geometry.entries_n; i++) {
        odd = crash_odd;
        snprintf(name, sizeof(name), "gone-%u", i);
        kube_zone_writer_now(t.writer, i * 1000ull);
        assert_int_equal(zone_test_refuse(&t, KUBE_RESOURCE_SERVICES, "shop",
                                          name, "1", "x", &e), KUBE_OK);
        kube_zone_remove(t.writer, e);

        /* the first ones come from no chain, the others have rested */
        assert_int_equal(crash_odd - odd,
                         i >= KUBE_ZONE_QUARANTINE_MS / 1000);
        assert_int_equal(kube_word_get(&crash_image->reuse) & 1, 0);
    }

    crash_image = NULL;
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_crash_at_failpoints),
        cmocka_unit_test(test_crash_after_every_store),
        cmocka_unit_test(test_crash_at_instructions),
        cmocka_unit_test(test_crash_at_every_instruction),
        cmocka_unit_test(test_crash_reuse_is_announced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

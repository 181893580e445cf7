/*
 * test_zone_guard - kube_zone_guard: who writes, a writer that died.  It
 * allocates nothing.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "zone_test.h"


#define GUARD_SIZE  KUBE_ZONE_SIZE_MIN


/* A zone that children share, its guard, no writer. */
static void
guard_open(zone_test_t *t)
{
    void  *mem;

    mem = mmap(NULL, GUARD_SIZE, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(mem != MAP_FAILED);
    zone_test_over(t, mem, GUARD_SIZE);
    kube_zone_writer_release(t->writer);
    t->zone.guard_fd = kube_zone_guard_open();
    assert_true(t->zone.guard_fd >= 0);
}


static void
guard_close(zone_test_t *t)
{
    void  *mem;

    mem = t->mem;
    t->mem = NULL;
    kube_zone_writer_release(t->writer);
    assert_int_equal(close(t->zone.guard_fd), 0);
    zone_test_close(t);
    munmap(mem, GUARD_SIZE);
}


/* What acquire says to another process, which then ends without leaving. */
static kube_rc_t
guard_try(zone_test_t *t)
{
    int              status;
    pid_t            pid;
    kube_takeover_t  takeover;

    pid = fork();
    assert_true(pid >= 0);

    if (pid == 0) {
        /* the parent's, if it is one, is not inherited */
        t->zone.guard_held = false;
        t->writer->held = false;
        _exit((int) kube_zone_writer_acquire(t->writer, 1000, &takeover));
    }

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));

    return (kube_rc_t) (int8_t) WEXITSTATUS(status);
}


static void
test_guard_is_one(void **state)
{
    zone_test_t           t;
    kube_takeover_t       takeover;
    kube_zone_writer_t   *other;
    kube_writer_info_t    info;

    (void) state;
    guard_open(&t);
    zone_test_acquire(&t, 1000, &takeover);
    assert_false(takeover.crashed);
    assert_true(kube_zone_writer_held(t.writer));
    kube_zone_writer_announce(t.writer, 42, 4711);

    /* in this process, in another one, and its death changes nothing */
    other = kube_zone_writer_create(&t.at.alloc, &t.zone);
    assert_non_null(other);
    assert_int_equal(kube_zone_writer_acquire(other, 1000, &takeover),
                     KUBE_BUSY);
    assert_false(kube_zone_writer_held(other));
    assert_int_equal(guard_try(&t), KUBE_BUSY);
    assert_int_equal(guard_try(&t), KUBE_BUSY);

    kube_zone_writer_release(t.writer);
    kube_zone_writer_info(&t.zone, &info);
    assert_int_equal(info.writer_pid, 0);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.takeovers, 1);

    assert_int_equal(kube_zone_writer_acquire(other, 1000, &takeover),
                     KUBE_OK);
    assert_false(takeover.crashed);
    assert_int_equal(takeover.epoch, 3);
    assert_int_equal(kube_zone_writer_acquire(t.writer, 1000, &takeover),
                     KUBE_BUSY);
    assert_int_equal(guard_try(&t), KUBE_BUSY);

    kube_zone_writer_destroy(other);
    assert_int_equal(guard_try(&t), KUBE_OK);
    guard_close(&t);
}


/* A copy of the handle, as after a reload, is of the same guard. */
static void
test_guard_over_reload(void **state)
{
    zone_test_t      t;
    kube_zone_t      old;
    kube_takeover_t  takeover;

    (void) state;
    guard_open(&t);
    old = t.zone;
    t.zone.guard_fd = dup(old.guard_fd);
    assert_true(t.zone.guard_fd >= 0);
    assert_int_equal(close(old.guard_fd), 0);
    zone_test_acquire(&t, 1000, &takeover);
    assert_int_equal(guard_try(&t), KUBE_BUSY);
    guard_close(&t);
}


/* Whatever was written to the image, the guard is taken or is not. */
static void
test_guard_any_bytes(void **state)
{
    unsigned           i;
    zone_test_t        t;
    kube_random_t      r;
    kube_takeover_t    takeover;

    (void) state;
    guard_open(&t);
    kube_random_init(&r, 5);

    for (i = 0; i < 40; i++) {
        zone_test_acquire(&t, 1000, &takeover);
        memset((char *) t.mem + kube_random_range(&r, 0, 2000),
               (int) kube_random_range(&r, 0, 255), 200);
        assert_int_equal(guard_try(&t), KUBE_BUSY);
        kube_zone_writer_release(t.writer);
        assert_int_equal(guard_try(&t), KUBE_OK);
    }

    guard_close(&t);
}


static void
test_guard_no_file(void **state)
{
    zone_test_t      t;
    kube_takeover_t  takeover;

    (void) state;
    zone_test_open(&t, GUARD_SIZE);
    kube_zone_writer_release(t.writer);
    t.zone.guard_fd = 9999;
    assert_int_equal(kube_zone_writer_acquire(t.writer, 1000, &takeover),
                     KUBE_CORRUPT);
    assert_false(kube_zone_writer_held(t.writer));
    zone_test_close(&t);
}


static void
test_guard_dead_owner(void **state)
{
    int               status;
    pid_t             pid;
    zone_test_t       t;
    kube_takeover_t   takeover;
    kube_snapshot_t   s;

    (void) state;
    guard_open(&t);

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
    guard_close(&t);
}


static void
test_guard_writer_info(void **state)
{
    zone_test_t         t;
    kube_writer_info_t  info;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_zone_writer_announce(t.writer, 77, 123456);
    kube_zone_writer_epoch(t.writer);
    kube_zone_set_queue(&t.zone, 9, 700);
    kube_zone_set_state_file(&t.zone, 55, false, true);
    kube_zone_writer_info(&t.zone, &info);
    assert_int_equal(info.writer_pid, 77);
    assert_int_equal(info.writer_since_ms, 123456);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.queue_depth, 9);
    assert_int_equal(info.queue_since_ms, 700);

    kube_zone_set_services(&t.zone, 5, 6);
    kube_zone_set_services(&t.zone, 4, 1);
    kube_zone_writer_info(&t.zone, &info);
    assert_int_equal(info.services_waiting, 4);
    assert_int_equal(info.services_added, 7);
    assert_int_equal(info.state_written_ms, 55);
    assert_int_equal(info.state_failed, 1);
    assert_int_equal(info.state_in_use, 0);
    zone_test_close(&t);
}


/* Who shows that a state file serves does not know how much of it does. */
static void
test_guard_state_file(void **state)
{
    unsigned            i;
    zone_test_t         t;
    kube_writer_info_t  info;

    static const uint64_t  shown[] = {
        0, KUBE_STATE_FILE_WHOLE, KUBE_STATE_FILE_LOADING,
        KUBE_STATE_FILE_LOADING, KUBE_STATE_FILE_WHOLE, 0
    };

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);

    for (i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {

        if (i == 2 || i == 4) {
            kube_zone_set_state_loading(&t.zone, (i == 2));

        } else if (i == 0) {
            kube_zone_set_state_loading(&t.zone, false);

        } else {
            kube_zone_set_state_file(&t.zone, 55, (i != 5), false);
        }

        kube_zone_writer_info(&t.zone, &info);
        assert_int_equal(info.state_in_use, shown[i]);
    }

    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_guard_is_one),
        cmocka_unit_test(test_guard_over_reload),
        cmocka_unit_test(test_guard_any_bytes),
        cmocka_unit_test(test_guard_no_file),
        cmocka_unit_test(test_guard_dead_owner),
        cmocka_unit_test(test_guard_writer_info),
        cmocka_unit_test(test_guard_state_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

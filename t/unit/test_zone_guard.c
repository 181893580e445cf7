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


static void
test_guard_is_one(void **state)
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
test_guard_dead_owner(void **state)
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
test_guard_writer_info(void **state)
{
    zone_test_t         t;
    kube_writer_info_t  info;

    (void) state;
    zone_test_open(&t, KUBE_ZONE_SIZE_MIN);
    kube_zone_writer_announce(t.writer, 77, 123456);
    kube_zone_writer_epoch(t.writer);
    kube_zone_set_queue_depth(&t.zone, 9);
    kube_zone_set_state_file(&t.zone, 55, false, true);
    kube_zone_writer_info(&t.zone, &info);
    assert_int_equal(info.writer_pid, 77);
    assert_int_equal(info.writer_since_ms, 123456);
    assert_int_equal(info.epoch, 2);
    assert_int_equal(info.queue_depth, 9);
    assert_int_equal(info.state_written_ms, 55);
    assert_int_equal(info.state_failed, 1);
    assert_int_equal(info.state_in_use, 0);
    zone_test_close(&t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_guard_is_one),
        cmocka_unit_test(test_guard_dead_owner),
        cmocka_unit_test(test_guard_writer_info),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

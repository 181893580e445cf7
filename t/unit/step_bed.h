/*
 * step_bed - a child that is looked at after each of its instructions, as a
 * SIGKILL there would leave it.
 *
 * Of instructions that leave the same image one stands for all.  For tests of
 * t/unit that define _GNU_SOURCE; one thread.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef STEP_BED_H
#define STEP_BED_H


#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alloc_test.h"


/*
 * Calls act in a child.  Whenever an instruction of it has changed the size
 * bytes at mem, they are copied to mem here, and seen is called; at the end
 * they are as they were.  How many instructions there were.  Where a child may
 * not be traced the test is skipped.
 */
static uint64_t
step_through(void *mem, size_t size, void (*act)(void), void (*seen)(void))
{
    int           status;
    void         *now, *before;
    pid_t         pid;
    uint64_t      steps;
    struct iovec  here, there;

    pid = fork();
    assert_true(pid >= 0);

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(1);
        }

        raise(SIGSTOP);
        act();
        _exit(0);
    }

    now = malloc(size);
    before = malloc(size);
    assert_true(now != NULL && before != NULL);
    memcpy(before, mem, size);
    here = (struct iovec) { now, size };
    there = (struct iovec) { mem, size };

    for (steps = 0; /* void */ ; steps++) {
        assert_int_equal(waitpid(pid, &status, 0), pid);

        if (WIFEXITED(status)) {
            break;
        }

        assert_true(WIFSTOPPED(status));
        assert_int_equal(process_vm_readv(pid, &here, 1, &there, 1, 0), size);

        if (memcmp(now, mem, size) != 0) {
            memcpy(mem, now, size);
            seen();
        }

        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
    }

    memcpy(mem, before, size);
    free(before);
    free(now);

    if (steps == 0) {
        print_message("step: ptrace is not allowed here\n");
        skip();
    }

    assert_int_equal(WEXITSTATUS(status), 0);

    return steps;
}


#endif /* STEP_BED_H */

/*
 * kube_zone_guard - who writes: the guard, the writer's identity, and what
 * the status page says of it.  Damping of crashes is kube_zone_damping's.
 *
 * The guard is a POSIX record lock (F_SETLK) on a file without a name, held
 * for a writer's life; the kernel frees it at death, and nothing in shared
 * memory is followed for it.  It guards nothing but the right to write:
 * readers take no lock.  Taking it is one step of kube_zone_writer_acquire()
 * (kube_zone_recover.h), which callers use.
 *
 * fcntl(2): such a lock is the process's, not the descriptor's.  A child does
 * not inherit it, and closing any descriptor of the file gives it up.
 *
 * Functions that take the writer are for the process that holds the guard;
 * the others are for any process.
 *
 * Copyright (C) the nginx-kube-informer authors
 * SPDX-License-Identifier: BSD-2-Clause
 */

#ifndef KUBE_ZONE_GUARD_H
#define KUBE_ZONE_GUARD_H


#include "kube_zone.h"


/*
 * A new file for the guard of a zone that other processes see, closed on exec;
 * the caller's, who sets zone.guard_fd in each handle and closes it.  -1, and
 * errno: there is none.
 */
int kube_zone_guard_open(void)  KUBE_MUST_CHECK;

/*
 * Tries to take the guard; crashed tells that the last writer did not leave.
 * KUBE_OK, KUBE_BUSY (another process has it, or this one), KUBE_CORRUPT (it
 * cannot be locked).
 */
kube_rc_t kube_zone_guard_take(kube_zone_t *zone, bool *crashed)
    KUBE_MUST_CHECK;

/* Gives it back; there is no writer then. */
void kube_zone_guard_release(kube_zone_t *zone);


/* A state file serves: what of it is published. */
#define KUBE_STATE_FILE_WHOLE    1
#define KUBE_STATE_FILE_LOADING  2

/* The writer and the informer around it, for the status page. */
typedef struct {
    uint64_t  epoch;                 /* take-overs and rollbacks */
    uint64_t  takeovers;
    uint64_t  writer_pid;            /* 0: none now */
    int64_t   writer_since_ms;       /* unix ms */
    uint64_t  crashes;               /* take-overs from a dead writer, ever */
    uint64_t  disturbances;          /* take-overs since another process had
                                        changed the zone, ever */
    uint64_t  crash_times_ms[4];     /* monotonic ms of the latest, newest
                                        first; KUBE_NEVER: none */
    uint64_t  start_delay_until_ms;  /* no start before this monotonic ms */
    uint64_t  list_delay_until_ms;   /* and no list */
    int64_t   state_written_ms;      /* unix ms of the state file; 0: never */
    uint64_t  state_in_use;          /* 0; or a state file serves, as a
                                        KUBE_STATE_FILE_ says */
    uint64_t  state_failed;          /* 1: the last write failed */
    uint64_t  queue_depth;           /* objects that wait to be published */
    uint64_t  queue_since_ms;        /* when the first of them was read,
                                        monotonic; 0: nothing waits */
    uint64_t  services_waiting;      /* in the work queue */
    uint64_t  services_added;        /* to it, ever */
} kube_writer_info_t;

void kube_zone_writer_info(const kube_zone_t *zone, kube_writer_info_t *info);

/* Shows who writes, after acquire. */
void kube_zone_writer_announce(kube_zone_writer_t *writer, uint64_t pid,
    int64_t since_ms);

/* Counts a rollback of the server as an epoch. */
void kube_zone_writer_epoch(kube_zone_writer_t *writer);

/* One that is in use already stays as whole as it is. */
void kube_zone_set_state_file(kube_zone_t *zone, int64_t written_ms,
    bool in_use, bool failed);

/*
 * The writer's: from the first that it publishes of a state file until the
 * last.  A successor finds it, and has the rest still to publish.
 */
void kube_zone_set_state_loading(kube_zone_t *zone, bool loading);

/*
 * Bytes above which the writer refuses objects; 0: no writer said so yet.  A
 * copy to larger records says less, so that what was too large is listed.
 */
uint64_t kube_zone_object_max(const kube_zone_t *zone);
void kube_zone_set_object_max(kube_zone_t *zone, uint64_t bytes);

/* The work queue's, as in kube_writer_info_t; so many more were added. */
void kube_zone_set_services(kube_zone_t *zone, uint64_t waiting,
    uint64_t added);

/* The FIFO's, as in kube_writer_info_t. */
void kube_zone_set_queue(kube_zone_t *zone, uint64_t depth,
    uint64_t since_ms);


#endif /* KUBE_ZONE_GUARD_H */
